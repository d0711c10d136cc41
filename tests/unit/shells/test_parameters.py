"""Arguments of a tool against its schema: both say yes to the same."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from ragx.errors import UsageError
from ragx.shells.mcp.tools import TOOLS
from ragx.shells.parameters import Parameter, check, input_schema

PARAMETERS = (
    Parameter("text", "string", "A text.", required=True),
    Parameter("side", "string", "A side.", default="left", choices=("left", "right")),
    Parameter("many", "integer", "A number.", least=1, most=9),
    Parameter("more", "integer", "A number.", least=0),
    Parameter("names", "array", "Names.", choices=("a", "b")),
    Parameter("loud", "boolean", "A flag."),
)


@pytest.mark.parametrize(
    ("arguments", "good"),
    [
        ({"text": ""}, True),
        ({"text": "x", "side": "right", "many": 9, "names": ["a", "b"], "loud": True}, True),
        ({"text": "x", "many": 3.0}, True),
        ({"text": "x", "names": []}, True),
        ({}, False),
        ({"text": 1}, False),
        ({"text": ["x"]}, False),
        ({"text": "x", "side": "up"}, False),
        ({"text": "x", "many": 0}, False),
        ({"text": "x", "many": 10}, False),
        ({"text": "x", "many": "3"}, False),
        ({"text": "x", "many": 2.5}, False),
        ({"text": "x", "many": True}, False),
        ({"text": "x", "more": -1}, False),
        ({"text": "x", "names": "a"}, False),
        ({"text": "x", "names": ["c"]}, False),
        ({"text": "x", "names": [1]}, False),
        ({"text": "x", "names": [None]}, False),
        ({"text": "x", "loud": 1}, False),
        ({"text": "x", "tex": "y"}, False),
        ({"text": "x", "": "y"}, False),
    ],
)
def test_schema_and_check_agree(arguments: dict[str, Any], good: bool) -> None:
    assert Draft202012Validator(input_schema(PARAMETERS)).is_valid(arguments) is good
    if good:
        found = check("tool", PARAMETERS, arguments)
        assert {name: found[name] for name in arguments} == arguments
    else:
        with pytest.raises(UsageError) as caught:
            check("tool", PARAMETERS, arguments)
        assert caught.value.hint


def test_defaults_are_filled_in_and_null_is_not_given() -> None:
    found = check("tool", PARAMETERS, {"text": "x", "side": None})
    assert found == {
        "text": "x",
        "side": "left",
        "many": None,
        "more": None,
        "names": None,
        "loud": None,
    }


@pytest.mark.parametrize("name", TOOLS)
def test_every_parameter_is_plain_and_explained(name: str) -> None:
    schema = TOOLS[name].input_schema()
    Draft202012Validator.check_schema(schema)
    for item in schema["properties"].values():
        assert item["description"].endswith(".")
        assert isinstance(item["type"], str)
        assert not {"anyOf", "oneOf", "$ref", "not"} & item.keys()

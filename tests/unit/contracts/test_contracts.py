from __future__ import annotations

import jsonschema
import pytest

from ragx import contracts
from ragx.errors import UsageError


def test_every_schema_is_valid_named_after_its_file_and_closed() -> None:
    assert "ragx.error.v1" in contracts.names()
    assert list(contracts.names()) == sorted(contracts.names())
    for name in contracts.names():
        schema = contracts.load(name)
        jsonschema.Draft202012Validator.check_schema(schema)
        assert schema["$id"] == name
        assert schema["properties"]["schema"] == {"const": name}
        assert "schema" in schema["required"]
        assert schema["additionalProperties"] is False


@pytest.mark.parametrize("name", ["ragx.eror.v1", "../errors", "", "ragx.error.v1.json"])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(UsageError) as caught:
        contracts.text(name)
    assert caught.value.code == "unknown_schema"
    assert caught.value.hint

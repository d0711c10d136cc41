"""What a tool takes: its JSON Schema, and arguments checked by it.

Schemas keep to what every client understands: one plain type for each parameter, no references.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ragx.errors import UsageError

__all__ = ["Parameter", "check", "input_schema"]


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a tool; an array is one of strings.

    Args:
        least, most: bounds of an integer.
        choices: of a string, or of an array's items; empty for any.
    """

    name: str
    kind: Literal["string", "integer", "array", "boolean"]
    description: str
    required: bool = False
    default: int | str | None = None
    least: int | None = None
    most: int | None = None
    choices: tuple[str, ...] = ()

    def schema(self) -> dict[str, Any]:
        """Its JSON Schema."""
        strings: dict[str, Any] = {"type": "string"}
        if self.choices:
            strings["enum"] = list(self.choices)
        found: dict[str, Any]
        if self.kind == "array":
            found = {"type": "array", "items": strings}
        elif self.kind == "string":
            found = strings
        else:
            found = {"type": self.kind}
        found["description"] = self.description
        if self.default is not None:
            found["default"] = self.default
        if self.least is not None:
            found["minimum"] = self.least
        if self.most is not None:
            found["maximum"] = self.most
        return found


def input_schema(parameters: tuple[Parameter, ...]) -> dict[str, Any]:
    """The JSON Schema of a tool's arguments; no others are allowed."""
    return {
        "type": "object",
        "properties": {item.name: item.schema() for item in parameters},
        "required": [item.name for item in parameters if item.required],
        "additionalProperties": False,
    }


def check(
    tool: str, parameters: tuple[Parameter, ...], arguments: Mapping[str, Any]
) -> dict[str, Any]:
    """Arguments with defaults filled in; null counts as not given.

    Raises:
        UsageError: one is unknown (the hint has the nearest names), missing, or of no use.
    """
    known = {item.name: item for item in parameters}
    for name in arguments:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
            raise UsageError(
                f"{tool}: no such parameter: {name}",
                hint=f"did you mean {' or '.join(near)}?"
                if near
                else f"it takes {', '.join(known) or 'none'}",
                code="unknown_parameter",
            )
    given = {name: value for name, value in arguments.items() if value is not None}
    for item in parameters:
        if item.name not in given:
            if item.required:
                raise UsageError(
                    f"{tool}: {item.name} is missing", hint=item.description, code="bad_parameter"
                )
            continue
        given[item.name] = _checked(tool, item, given[item.name])
    return {item.name: given.get(item.name, item.default) for item in parameters}


def _checked(tool: str, item: Parameter, value: Any) -> Any:
    if item.kind == "integer" and isinstance(value, float) and value.is_integer():
        value = int(value)
    match value, item.kind:
        case bool(), "boolean":
            return value
        case int(number), "integer" if not isinstance(value, bool):
            _check_bounds(tool, item, number)
            return value
        case str(text), "string":
            _check_choices(tool, item, [text])
            return value
        case list(texts), "array":
            _check_choices(tool, item, texts)
            return value
    article = "an" if item.kind[0] in "aeiou" else "a"
    raise _bad(tool, item, f"must be {article} {item.kind}")


def _check_bounds(tool: str, item: Parameter, number: int) -> None:
    low, high = item.least, item.most
    if (low is not None and number < low) or (high is not None and number > high):
        bounds = f"at least {low}" if high is None else f"from {low} to {high}"
        raise _bad(tool, item, f"must be {bounds}")


def _check_choices(tool: str, item: Parameter, texts: list[Any]) -> None:
    for text in texts:
        if not isinstance(text, str):
            raise _bad(tool, item, "must hold strings only")
        if item.choices and text not in item.choices:
            raise _bad(tool, item, f"must be one of {', '.join(item.choices)}, not {text}")


def _bad(tool: str, item: Parameter, what: str) -> UsageError:
    return UsageError(f"{tool}: {item.name} {what}", hint=item.description, code="bad_parameter")

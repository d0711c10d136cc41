"""How settings are declared: a class per TOML table, one line per key.

The class body is the only place that knows a key's name, type, default, range and meaning;
loading, validation, messages, `ragx.toml` and its example are all derived from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import ClassVar, NamedTuple, TypeVar, cast, dataclass_transform

from ragx.config.rules import Rule, Value

__all__ = ["Declared", "Section", "key"]

T = TypeVar("T")


class Declared(NamedTuple):
    """One key as declared: what it accepts, its default, what it does (one line)."""

    rule: Rule[Value]
    default: Value
    doc: str


def key(rule: Rule[T], default: T, doc: str) -> T:
    """Declare a key in a Section's body; on an instance the name holds the value itself."""
    return cast("T", Declared(cast("Rule[Value]", rule), cast("Value", default), doc))


# Hand-made: thirteen @dataclass classes cost 14 ms of every command's start, these under 1 ms.
@dataclass_transform(kw_only_default=True, frozen_default=True)
class Section:
    """A frozen record of settings, compared by value; keyword arguments only.

    Raises:
        TypeError: an argument names no key of the section.
        AttributeError: an instance is assigned to.
    """

    about: ClassVar[str] = ""
    entries: ClassVar[Mapping[str, Declared | type[Section]]] = MappingProxyType({})

    def __init_subclass__(cls, *, about: str = "") -> None:
        entries: dict[str, Declared | type[Section]] = {}
        for name, value in list(vars(cls).items()):
            if isinstance(value, Declared):
                entries[name] = value
                setattr(cls, name, value.default)
            elif isinstance(value, Section):
                entries[name] = type(value)
        cls.about = about
        cls.entries = MappingProxyType(entries)

    def __init__(self, **values: object) -> None:
        for name in values:
            if name not in self.entries:
                raise TypeError(f"{type(self).__name__} has no setting {name!r}")
        for name in self.entries:
            value = values[name] if name in values else getattr(type(self), name)
            object.__setattr__(self, name, value)

    def __iter__(self) -> Iterator[tuple[str, object]]:
        return ((name, getattr(self, name)) for name in self.entries)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={value!r}" for name, value in self)
        return f"{type(self).__name__}({inside})"

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"settings are frozen: cannot assign {name!r}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"settings are frozen: cannot delete {name!r}")

"""Lookups over the declared settings: by dotted key, with the nearest names for a wrong one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import NamedTuple, TypeVar, cast

from ragx.config.rules import Rule, Value, did_you_mean, nearest
from ragx.config.section import Declared, Section
from ragx.config.sections import Config
from ragx.errors import ConfigError

__all__ = ["MACHINE_SECTIONS", "Key", "build", "find_key", "keys", "table_keys", "values_of"]

MACHINE_SECTIONS = ("embeddings", "expansion", "rerank")
"""Sections that `~/.ragxrc` may hold: what belongs to the machine, not to the corpus."""

S = TypeVar("S", bound=Section)


class Key(NamedTuple):
    """One setting: `dotted` is `section.name`, or `graph.weights.link`."""

    dotted: str
    rule: Rule[Value]
    default: Value
    doc: str

    @property
    def path(self) -> tuple[str, ...]:
        """The names of the enclosing tables, then the key's own."""
        return tuple(self.dotted.split("."))

    @property
    def section(self) -> str:
        """The top-level table."""
        return self.path[0]


@cache
def keys() -> Mapping[str, Key]:
    """Every setting by its dotted key, in the order of `ragx.toml`."""
    return {item.dotted: item for item in _walk(Config, "")}


def table_keys(table: str) -> tuple[str, ...]:
    """Return what may stand directly in a table ("" is the file itself), sub-tables included."""
    start = f"{table}." if table else ""
    inside = (dotted[len(start) :] for dotted in keys() if dotted.startswith(start))
    return tuple(dict.fromkeys(name.split(".", 1)[0] for name in inside))


def find_key(dotted: str) -> Key:
    """Return the setting of that name.

    Raises:
        ConfigError: there is none; the hint gives the nearest names.
    """
    item = keys().get(dotted)
    if item is not None:
        return item
    if any(known.startswith(f"{dotted}.") for known in keys()):
        raise ConfigError(
            f"{dotted} is a section, not a key",
            hint="its keys: " + ", ".join(table_keys(dotted)),
            code="unknown_key",
        )
    raise ConfigError(f"unknown key {dotted}", hint=_similar(dotted), code="unknown_key")


def build(values: Mapping[str, Value]) -> Config:
    """Make a Config of checked values by dotted key; what is absent keeps its default."""
    return _fill(Config, values, "")


def values_of(config: Config) -> dict[str, Value]:
    """Return a Config's values by dotted key: the reverse of `build`."""
    return dict(_flatten(config, ""))


def _walk(section: type[Section], above: str) -> Iterator[Key]:
    for attribute, entry in section.entries.items():
        dotted = above + _toml_name(attribute)
        if isinstance(entry, Declared):
            yield Key(dotted, *entry)
        else:
            yield from _walk(entry, f"{dotted}.")


def _fill(section: type[S], values: Mapping[str, Value], above: str) -> S:
    filled: dict[str, object] = {}
    for attribute, entry in section.entries.items():
        dotted = above + _toml_name(attribute)
        if not isinstance(entry, Declared):
            filled[attribute] = _fill(entry, values, f"{dotted}.")
        elif dotted in values:
            filled[attribute] = values[dotted]
    return section(**filled)


def _flatten(section: Section, above: str) -> Iterator[tuple[str, Value]]:
    for attribute, value in section:
        dotted = above + _toml_name(attribute)
        if isinstance(value, Section):
            yield from _flatten(value, f"{dotted}.")
        else:
            yield dotted, cast("Value", value)


def _toml_name(attribute: str) -> str:
    """`import_` is `import` in TOML: the underscore only dodges Python's keyword."""
    return attribute.removesuffix("_")


def _similar(dotted: str) -> str:
    """Suggest keys for a wrong one, also when only its section is wrong or missing."""
    known = tuple(keys())
    close = nearest(dotted, known)
    if not close:
        last = dotted.rsplit(".", 1)[-1]
        close = [name for name in known if name.rsplit(".", 1)[-1] == last][:3]
    return did_you_mean(close) or "ragx config list shows all keys"

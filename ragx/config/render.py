"""Settings as TOML text: single values, and the commented file that `ragx init` writes."""

from __future__ import annotations

from collections.abc import Iterator

from ragx.config.rules import Value
from ragx.config.section import Section
from ragx.config.sections import Config
from ragx.config.table import keys

__all__ = ["default_toml", "literal"]

_WIDTH = 100
_HEADER = """\
# ragx settings. Commit this file; it is never indexed itself.
# `ragx config set KEY VALUE` edits it and keeps comments. What belongs to one machine
# ([embeddings], [expansion], [rerank]) can be overridden in ~/.ragxrc. API keys never go in
# either file, only the names of the environment variables that hold them.
"""


def literal(value: Value) -> str:
    """Return a value as one line of TOML."""
    import tomli_w

    if isinstance(value, tuple):
        return "[" + ", ".join(literal(item) for item in value) + "]"
    return tomli_w.dumps({"v": value}).removeprefix("v = ").rstrip("\n")


def default_toml() -> str:
    """Return `ragx.toml` with every key at its default, each under a line on its meaning."""
    return _HEADER + "".join(_table(Config, ""))


def _table(section: type[Section], name: str) -> Iterator[str]:
    subtables: list[tuple[type[Section], str]] = []
    if name:
        yield f"\n# {section.about}\n[{name}]\n"
    for attribute, entry in section.entries.items():
        dotted = f"{name}.{attribute}" if name else attribute
        if isinstance(entry, type):
            subtables.append((entry, dotted))
    for item in keys().values():
        if name and ".".join(item.path[:-1]) == name:
            limits = "" if item.rule.plain else f" ({item.rule.allowed})"
            yield from _wrapped(item.doc + limits)
            yield _assignment(item.path[-1], item.default)
    for subsection, dotted in subtables:
        yield from _table(subsection, dotted)


def _wrapped(text: str) -> Iterator[str]:
    line = "#"
    for word in text.split():
        if len(line) + 1 + len(word) > _WIDTH:
            yield line + "\n"
            line = "#"
        line += f" {word}"
    yield line + "\n"


def _assignment(name: str, value: Value) -> str:
    """Return `name = value`; a list too long for a line is folded, several items to a line."""
    whole = f"{name} = {literal(value)}\n"
    if len(whole) <= _WIDTH or not isinstance(value, tuple):
        return whole
    lines, line = [f"{name} = ["], "   "
    for item in value:
        shown = f" {literal(item)},"
        if len(line) + len(shown) > _WIDTH:
            lines.append(line)
            line = "   "
        line += shown
    return "\n".join([*lines, line, "]"]) + "\n"

"""Places in documents, in words and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ragx.types import Locator

__all__ = ["COLUMNS", "across", "locator_document", "place", "spoken"]

# What the last heading of rows of a table begins with if it names their columns.
COLUMNS = "| "

# Kinds that number their places by their own name; others do so by "number".
_COUNTED = frozenset({"page", "slide", "cell", "chapter", "part"})


def across(first: Locator | None, last: Locator | None) -> Locator | None:
    """Where a passage stands that begins in one place and ends in another."""
    if first is None or last is None or first.kind != last.kind:
        return first
    name = first.name if first.name == last.name or first.kind == "heading" else ""
    return Locator(first.kind, first.number, last.end if first.number else 0, name)


def spoken(locator: Locator, heading: Sequence[str] = ()) -> str:
    """As people say it: `page 12`, `pages 12-13`, `sheet Costs, rows 2-40`, `under Setup`."""
    if locator.kind == "heading":
        above = locator.name or next(reversed(_without_columns(heading)), "")
        return f"under {above}" if above else "at the start"
    if locator.kind == "sheet":
        rows = _counted("row", locator)
        return f"sheet {locator.name}, {rows}" if rows else f"sheet {locator.name}"
    counted = _counted(locator.kind, locator)
    if locator.kind == "page" and locator.name:
        return f"{counted} (printed {locator.name})"
    if locator.kind == "chapter" and locator.name:
        # Counting may differ from the numbers that a book prints before its titles.
        return f"chapter {locator.name}"
    if counted and locator.name and locator.kind == "part":
        return f"{counted}: {locator.name}"
    return counted or locator.name or locator.kind


def _without_columns(heading: Sequence[str]) -> Sequence[str]:
    return heading[:-1] if heading and heading[-1].startswith(COLUMNS) else heading


def _counted(what: str, locator: Locator) -> str:
    if not locator.number:
        return ""
    if locator.end > locator.number:
        return f"{what}s {locator.number}-{locator.end}"
    return f"{what} {locator.number}"


def place(
    path: str,
    line_start: int,
    line_end: int,
    locator: Locator | None,
    heading: Sequence[str] = (),
) -> str:
    """A path with its lines, as editors and `ragx read` take it; of a document with the place."""
    lines = f"{path}:{line_start}-{line_end}"
    return lines if locator is None else f"{lines} ({spoken(locator, heading)})"


def locator_document(
    locator: Locator, heading: Sequence[str], line_start: int, line_end: int
) -> dict[str, Any]:
    """The locator of `ragx.query.v3`; lines are those of the extracted text."""
    document: dict[str, Any] = {"kind": locator.kind, "label": spoken(locator, heading)}
    if locator.kind == "sheet":
        document["sheet"] = locator.name
    elif locator.name:
        document["name"] = locator.name
    if locator.number:
        counts = locator.kind if locator.kind in _COUNTED else "number"
        counts = "row" if locator.kind == "sheet" else counts
        document[counts] = locator.number
        document["end"] = max(locator.number, locator.end)
    if locator.kind == "heading":
        document["heading"] = list(_without_columns(heading))
    return {**document, "text_line_start": line_start, "text_line_end": line_end}

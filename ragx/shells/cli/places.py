"""Places as programs and people see them: lines of a file, and where in a document they stand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ragx.shells.cli import envelope

if TYPE_CHECKING:
    from ragx.types import Locator

__all__ = [
    "Placed",
    "bytes_document",
    "label_of",
    "lines_document",
    "lines_text",
    "locator_of",
    "place",
]


class Placed(Protocol):
    """A chunk, a passage, or whatever else stands somewhere in a file."""

    @property
    def path(self) -> str:
        """Root-relative."""

    @property
    def line_start(self) -> int:
        """First line, from 1."""

    @property
    def line_end(self) -> int:
        """Last line, inclusive."""

    @property
    def heading(self) -> tuple[str, ...]:
        """What it stands under, outermost first."""

    @property
    def locator(self) -> Locator | None:
        """Where in its document it stands; None in a text file."""


def locator_of(part: Placed) -> dict[str, object] | None:
    """The locator as JSON; None for a text file."""
    from ragx.api import locator_document

    if part.locator is None:
        return None
    return locator_document(part.locator, part.heading, part.line_start, part.line_end)


def label_of(part: Placed) -> str:
    """Where in a document it stands, in words; "" for a text file."""
    from ragx.api import spoken_locator

    return "" if part.locator is None else spoken_locator(part.locator, part.heading)


def lines_document(part: Placed) -> dict[str, object]:
    """Lines of a text file; of a document there are none, and its locator stands beside them."""
    if part.locator is None:
        return {"line_start": part.line_start, "line_end": part.line_end}
    return {"line_start": None, "line_end": None, "locator": locator_of(part)}


def bytes_document(part: Placed, start: int, end: int) -> dict[str, object]:
    """Bytes in a text file; none in a document."""
    if part.locator is None:
        return {"byte_start": start, "byte_end": end}
    return {"byte_start": None, "byte_end": None}


def lines_text(part: Placed) -> str:
    """`12-30`, as `ragx read` takes it; of a document `12-30 (page 3)`."""
    from ragx.api import spoken_locator

    lines = f"{part.line_start}-{part.line_end}"
    # A heading is shown beside every place anyway.
    if part.locator is None or part.locator.kind == "heading":
        return lines
    return f"{lines} ({envelope.one_line(spoken_locator(part.locator, part.heading))})"


def place(part: Placed) -> str:
    """`notes/a.md:12-30`, as editors take it, or `paper.pdf:12-30 (page 3)`."""
    return f"{envelope.one_line(part.path)}:{lines_text(part)}"

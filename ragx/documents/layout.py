"""An extracted document as one text with its structure: what chunkers cut and locators point into.

The text is that of the blocks in order, a blank line between two, none between items of a list.
Bytes and lines of chunks count in it as if it were a file in UTF-8.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from ragx.algo.chunking.outline import Block as Row
from ragx.algo.chunking.outline import plain_heading
from ragx.algo.references.base import Reference, link
from ragx.documents.formats.base import Block, Extracted, Place
from ragx.types import Locator

__all__ = ["Layout", "lay_out"]

# A reader turns to pages, slides and the like one by one: a chunk lies within one of them. Cells of
# a notebook and sections of a text are often a line or two, so that tiny ones may share a chunk.
_SHARED = frozenset({"cell", "heading"})


@dataclass(frozen=True, slots=True)
class Layout:
    """A document's text, and what stands where in it.

    Args:
        text: with LF line ends, no white space at either end.
        rows: its blocks as `chunk_rows` takes them; the first at row 0.
        borders: rows where a new place begins, the first block's left out.
        firm: whether no chunk may reach over a border, or tiny ones may.
        tables: for each table with a header the offsets of its body and the header itself.
        links: what the text refers to, in order.
    """

    text: str
    rows: tuple[Row, ...]
    borders: frozenset[int]
    firm: bool
    tables: tuple[tuple[int, int, str], ...]
    links: tuple[Reference, ...]
    _starts: tuple[int, ...]
    _blocks: tuple[Block, ...]
    _headings: tuple[int, ...]

    def locator(self, start: int, end: int) -> Locator:
        """Where `text[start:end]`, not blank, stands in the document."""
        first = max(0, bisect_right(self._starts, start) - 1)
        last = max(first, bisect_left(self._starts, end) - 1)
        place = self._blocks[first].place
        numbers = [
            self._number(at, position)
            for at, position in ((first, start), (last, end - 1))
            if self._blocks[at].place.kind == place.kind
        ]
        name = place.name or (self._section(first, end) if place.kind == "heading" else "")
        return Locator(place.kind, numbers[0], numbers[-1], name)

    def _section(self, first: int, end: int) -> str:
        """The nearest heading of what a stretch begins with, its own headings included."""
        at = first
        while (
            at + 1 < len(self._starts)
            and self._starts[at + 1] < end
            and self._blocks[at].kind == "heading"
        ):
            at += 1
        above = bisect_right(self._headings, at) - 1
        return self.rows[self._headings[above]].title if above >= 0 else ""

    def header_above(self, position: int) -> str:
        """Header of the table whose body holds a position; "" outside one."""
        at = bisect_right(self.tables, position, key=lambda table: table[0]) - 1
        if at < 0:
            return ""
        _, end, header = self.tables[at]
        return header if position < end else ""

    def _number(self, at: int, position: int) -> int:
        block = self._blocks[at]
        if not block.place.by_line:
            return block.place.number
        offset = min(max(position - self._starts[at], 0), len(block.text))
        return block.place.number + block.text.count("\n", 0, offset)


def lay_out(extracted: Extracted) -> Layout:
    """Write a document's blocks out one after the other."""
    pieces: list[str] = []
    rows: list[Row] = []
    borders: set[int] = set()
    starts: list[int] = []
    offset = row = 0
    before: Block | None = None
    for block in extracted.blocks:
        if before is not None:
            gap = "\n" if _is_one_list(before, block) else "\n\n"
            pieces.append(gap)
            offset += len(gap)
            row += len(gap)
            if not _share(before.place, block.place):
                borders.add(row)
        rows.append(_row(block, row))
        starts.append(offset)
        pieces.append(block.text)
        offset += len(block.text)
        row += block.text.count("\n")
        before = block
    return Layout(
        text="".join(pieces),
        rows=tuple(rows),
        borders=frozenset(borders),
        firm=not extracted.blocks or extracted.blocks[0].place.kind not in _SHARED,
        tables=tuple(_tables(extracted.blocks, starts)),
        links=tuple(_links(extracted.blocks, starts)),
        _starts=tuple(starts),
        _blocks=extracted.blocks,
        _headings=tuple(at for at, block in enumerate(extracted.blocks) if block.kind == "heading"),
    )


def _row(block: Block, row: int) -> Row:
    if block.kind == "heading":
        return Row(row, "heading", max(1, block.level), plain_heading(block.text))
    return Row(row, "rows" if block.kind in ("table", "code") else "text")


def _is_one_list(before: Block, block: Block) -> bool:
    return before.kind == block.kind == "list" and before.place == block.place


def _share(one: Place, other: Place) -> bool:
    """Whether two blocks stand in one place, as far as chunks go."""
    counted = one.number == other.number or (one.by_line and other.by_line)
    return one.kind == other.kind and one.name == other.name and counted


def _tables(blocks: Sequence[Block], starts: Sequence[int]) -> list[tuple[int, int, str]]:
    found = []
    header = ""
    place: Place | None = None
    for block, start in zip(blocks, starts, strict=True):
        if block.kind != "table":
            header = ""
            continue
        body = start
        if block.header_rows:
            lines = block.text.split("\n", block.header_rows)
            header, place = "\n".join(lines[: block.header_rows]), block.place
            body += len(header) + 1
        elif not (place is not None and block.place.by_line and _share(place, block.place)):
            header = ""  # rows after a gap in a sheet still stand under its header
        end = start + len(block.text)
        if header and body < end:
            found.append((body, end, header))
    return found


def _links(blocks: Sequence[Block], starts: Sequence[int]) -> list[Reference]:
    found = []
    for block, start in zip(blocks, starts, strict=True):
        for one in block.links:
            reference = link(one.target, start + one.start, start + one.end)
            if reference is not None:
                found.append(reference)
    return found

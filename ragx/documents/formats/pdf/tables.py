"""Tables of a PDF's page, where the places of their cells leave no doubt."""

from __future__ import annotations

import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import pairwise

from ragx.documents.formats.pdf.rows import Cell, Row
from ragx.documents.formats.pdf.text import BULLETS, seam
from ragx.documents.formats.tidy import table_row

__all__ = ["Table", "read_table"]

_LEAST_ROWS = 3
# So many words cut at the ends of lines show that a column's cells are no cells.
_LEAST_CUT = 2
# Marks and numbers of list items, each set apart from its item.
_ITEM = re.compile(rf"[{BULLETS}–—*-]|\(?\d{{1,3}}[.)]|\(?[a-zA-Z]\)")
# In units of the font size.
_ALIGNED = 0.8
_ROW_GAP = 3.5
_WRAP_GAP = 1.3
# Characters before a seam of two lines that can hold a word.
_SEAM = 60


@dataclass(frozen=True, slots=True)
class Table:
    """A table's text, and how many rows of the page it takes.

    `columns` says that it is no table but text in columns, one a line.
    """

    text: str
    n_rows: int
    header_rows: int
    columns: bool = False


def read_table(rows: Sequence[Row], pitch: float, words: AbstractSet[str]) -> Table | None:
    """The table that begins with the first row; None if none does.

    It has three lines at least, of two cells or more, each below one of the line before. A row
    that has nothing in the first column goes on in the cells of the row above it.
    """
    lines: list[list[Cell]] = []
    first, previous = rows[0], rows[0]
    end = 0
    for index, row in enumerate(rows):
        step = previous.base - row.base
        if (index and not 0 < step <= _ROW_GAP * row.size) or row.turned:
            break
        if len(row.cells) > 1 and (not lines or _fits(lines[-1], row.cells, row.size)):
            lines.append(list(row.cells))
            if len(lines) == _LEAST_ROWS and all(map(_is_item, lines)):
                return None
        elif lines and step <= _WRAP_GAP * pitch * row.size and _wraps(lines[-1], row):
            lines[-1] = _merged(lines[-1], row.cells, words)
        else:
            break
        end, previous = index + 1, row
    if len(lines) < _LEAST_ROWS:
        return None
    widest = max(lines, key=len)
    cells = [_in_columns(widest, line) for line in lines]
    header = int(first.bold and not any(row.bold for row in rows[1:end]))
    columns = [[text for text in column if text] for column in zip(*cells, strict=True)]
    if any(_runs_on(column) for column in columns):
        # Boxes side by side: what stands in a line does not belong together.
        return Table("\n".join(_joined(column, words) for column in columns), end, 0, True)
    return Table("\n".join(map(table_row, cells)), end, header)


def _is_item(line: Sequence[Cell]) -> bool:
    return len(line) == 2 and bool(_ITEM.fullmatch(line[0].text))


def _runs_on(column: Sequence[str]) -> bool:
    """Whether the cells of a column are the lines of one text: words go on from line to line.

    Small letters below a line without a full stop say nothing: they are usual in good tables.
    """
    n_cut = sum(
        above[-1] == "-" and above[-2:-1].isalpha() and below[0].islower()
        for above, below in pairwise(column)
    )
    return n_cut >= _LEAST_CUT


def _joined(column: Sequence[str], words: AbstractSet[str]) -> str:
    text = ""
    for line in column:
        cut, between = seam(text[-_SEAM:], line, words) if text else (0, "")
        text = text[: len(text) - cut] + between + line
    return text


def _fits(above: Sequence[Cell], cells: Sequence[Cell], size: float) -> bool:
    """Whether each cell of the shorter line stands below or above one of the other."""
    shorter, longer = sorted((above, cells), key=len)
    return all(any(_offset(a, b) <= _ALIGNED * size for b in longer) for a in shorter)


def _offset(a: Cell, b: Cell) -> float:
    """How far two cells are from standing flush left, flush right or centred."""
    middle = abs(a.left + a.right - b.left - b.right) / 2
    return min(abs(a.left - b.left), abs(a.right - b.right), middle)


def _wraps(above: Sequence[Cell], row: Row) -> bool:
    return all(
        any(abs(cell.left - other.left) <= 0.3 * row.size for other in above[1:])
        for cell in row.cells
    )


def _merged(above: Sequence[Cell], cells: Sequence[Cell], words: AbstractSet[str]) -> list[Cell]:
    merged = list(above)
    for cell in cells:
        at = min(range(1, len(merged)), key=lambda i: abs(merged[i].left - cell.left))
        old = merged[at]
        cut, between = seam(old.text[-_SEAM:], cell.text, words)
        text = old.text[: len(old.text) - cut] + between + cell.text
        merged[at] = Cell(text, old.left, max(old.right, cell.right))
    return merged


def _in_columns(columns: Sequence[Cell], line: Sequence[Cell]) -> list[str]:
    texts = [""] * len(columns)
    for cell in line:
        at = min(range(len(columns)), key=lambda i: _offset(columns[i], cell))
        texts[at] = f"{texts[at]} {cell.text}".strip()
    return texts

"""Rows of a spreadsheet as blocks: runs without gaps, columns without content dropped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ragx.documents.formats.base import Block, ExtractLimits, Place
from ragx.documents.formats.office.text import one_line

__all__ = ["Budget", "Cell", "cell", "sheet_blocks"]

# Wider tables than this, with fewer cells filled than one in ten, are written without their empty
# cells: a sheet that uses its first and its last column would be bars for the most part.
_WIDE = 40
_SPARSE = 0.1


class Cell(NamedTuple):
    """A cell that is not empty.

    Args:
        text: what it shows, on one line.
        is_text: words, not a number, date or truth value.
    """

    text: str
    is_text: bool


def cell(text: str, *, is_text: bool) -> Cell | None:
    """A cell with clean text, None if nothing is left of it."""
    text = one_line(text)
    return Cell(text, is_text) if text else None


class Budget:
    """Characters that may still be taken, over all sheets of a workbook."""

    def __init__(self, limits: ExtractLimits) -> None:
        self._to_read = limits.max_chars
        self.to_write = limits.max_chars

    def read(self, cells: dict[int, Cell]) -> bool:
        """Count a row that was read; False once it is over the limit, however it is written."""
        self._to_read -= sum(len(cell.text) for cell in cells.values()) + 3 * (len(cells) - 1)
        return self._to_read >= 0


def sheet_blocks(
    rows: Iterable[tuple[int, dict[int, Cell]]], name: str, budget: Budget
) -> Iterator[Block]:
    """The blocks of one sheet.

    Args:
        rows: numbers, counted from 1 and rising, and cells by column. No more are read than the
            budget allows, and one. Where it ends a block ends, so that `bounded` takes all before
            and says at which row the rest begins.
    """
    kept: list[tuple[int, dict[int, Cell]]] = []
    columns: set[int] = set()
    n_cells = 0
    for number, cells in rows:
        if not cells:
            continue
        kept.append((number, cells))
        columns.update(cells)
        n_cells += len(cells)
        if not budget.read(cells):
            break
    order = sorted(columns)
    if len(order) > _WIDE and n_cells < _SPARSE * len(kept) * len(order):
        order = []
    for run in _runs(kept):
        yield from _blocks(run, order, name, budget)


def _blocks(
    run: list[tuple[int, dict[int, Cell]]], columns: list[int], name: str, budget: Budget
) -> Iterator[Block]:
    header = int(_is_header([cells for _number, cells in run]))
    start = 0
    lines: list[str] = []
    for index, (_number, cells) in enumerate(run):
        line = _line(cells, columns)
        budget.to_write -= len(line) + 1
        if budget.to_write < -1 and lines:
            yield _block(run[start][0], lines, name, header)
            start, lines, header = index, [], 0
        lines.append(line)
    yield _block(run[start][0], lines, name, header)


def _block(first_row: int, lines: list[str], name: str, header: int) -> Block:
    place = Place("sheet", first_row, name, by_line=True)
    return Block("table", "\n".join(lines), place, header_rows=header if len(lines) > 1 else 0)


def _runs(
    rows: list[tuple[int, dict[int, Cell]]],
) -> Iterator[list[tuple[int, dict[int, Cell]]]]:
    run: list[tuple[int, dict[int, Cell]]] = []
    for row in rows:
        if run and row[0] != run[-1][0] + 1:
            yield run
            run = []
        run.append(row)
    if run:
        yield run


def _line(cells: dict[int, Cell], columns: list[int]) -> str:
    last = max(cells)
    wanted = [column for column in columns if column <= last] if columns else sorted(cells)
    texts = [cells[column].text if column in cells else "" for column in wanted]
    return " | ".join(text.replace("|", "\\|") for text in texts).lstrip()


def _is_header(rows: list[dict[int, Cell]]) -> bool:
    """Whether the first row names the columns: all words, none empty, and not so below."""
    if len(rows) < 2 or len(rows[0]) < 2:
        return False
    first = rows[0]
    if not all(cell.is_text for cell in first.values()):
        return False
    below = rows[1:50]
    # The first column may go without a name: that of row names mostly does.
    nameless = {column for row in below for column in row} - set(first)
    if nameless and nameless != {min(min(row) for row in rows[:50])}:
        return False
    if any(not cell.is_text for row in below for cell in row.values()):
        return True
    # All words: names are short, differ from each other, and are not said again below.
    texts = [cell.text for cell in first.values()]
    repeated = {cell.text for row in below for cell in row.values()} & set(texts)
    return len(set(texts)) == len(texts) and not repeated and max(map(len, texts)) <= 40

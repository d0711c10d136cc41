"""Running headers, footers and page numbers: rows that come back page after page."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from ragx.documents.formats.pdf.rows import Row

__all__ = ["running_rows"]

_NUMBER = re.compile(r"\d+")
_ROMAN = re.compile(r"\W*[ivxlc]+\W*")
# Of the rows of a page, only those on its first and last lines can be running ones.
_N_LINES = 2
_LEAST_PAGES = 3
_NEAR = 2
_LEAST_CELL = 8
# A height where this share of the rows, and so many, come back holds running ones only.
_SLOT_SHARE = 0.6
_SLOT_LEAST = 5

# Top or bottom edge, and height in steps of two points.
_Slot = tuple[int, int]


def running_rows(pages: Sequence[Sequence[Row]]) -> list[set[int]]:
    """For each page, which of its rows are running headers, footers or page numbers.

    A row is one if rows with the same text but for numbers, or with one same cell, stand at the
    same height on three pages, one of them at most two pages away. Where most rows of a height are
    such, all of the same size are: headers of short sections come once.
    """
    slots = [_slots(rows) for rows in pages]
    seen: dict[tuple[_Slot, str], list[int]] = {}
    for number, rows in enumerate(slots):
        for slot, index in rows:
            for key in _keys(pages[number][index]):
                seen.setdefault((slot, key), []).append(number)
    dropped: list[set[int]] = [set() for _ in pages]
    in_slot: Counter[_Slot] = Counter()
    dropped_in_slot: Counter[_Slot] = Counter()
    sizes: dict[_Slot, float] = {}
    for number, rows in enumerate(slots):
        for slot, index in rows:
            in_slot[slot] += 1
            row = pages[number][index]
            if any(_comes_back(seen, slot, key, number) for key in _keys(row)):
                dropped[number].add(index)
                dropped_in_slot[slot] += 1
                sizes[slot] = max(sizes.get(slot, 0.0), row.size)
    for number, rows in enumerate(slots):
        for slot, index in rows:
            n_dropped = dropped_in_slot[slot]
            if (
                n_dropped >= max(_SLOT_LEAST, _SLOT_SHARE * in_slot[slot])
                and pages[number][index].size <= sizes[slot] + 0.2
            ):
                dropped[number].add(index)
    n_emptied = sum(0 < len(rows) == len(gone) for rows, gone in zip(pages, dropped, strict=True))
    # Pages that would say nothing, such as labels printed in number, say the same on purpose.
    if 2 * n_emptied > sum(map(bool, pages)):
        return [set() for _ in pages]
    return dropped


def _comes_back(
    seen: Mapping[tuple[_Slot, str], list[int]], slot: _Slot, key: str, number: int
) -> bool:
    edge, height = slot
    places = {n for h in (-1, 0, 1) for n in seen.get(((edge, height + h), key), ())}
    return len(places) >= _LEAST_PAGES and any(
        other in places for other in range(number - _NEAR, number + _NEAR + 1) if other != number
    )


def _slots(rows: Sequence[Row]) -> list[tuple[_Slot, int]]:
    """Rows near the edges of a page, with the place where they stand."""
    upright = [index for index, row in enumerate(rows) if not row.turned]
    found = []
    for edge in (1, -1):
        lines: list[float] = []
        for index in sorted(upright, key=lambda i: -edge * rows[i].base):
            base = rows[index].base
            if not lines or abs(lines[-1] - base) > 0.5 * rows[index].size:
                if len(lines) == _N_LINES:
                    break
                lines.append(base)
            found.append(((edge, round(base / 2)), index))
    return found


def _keys(row: Row) -> set[str]:
    """What a row says, numbers aside: as a whole, and in each longer cell."""
    text = row.text.casefold()
    keys = {"#" if _ROMAN.fullmatch(text) else _NUMBER.sub("#", text)}
    if len(row.cells) > 1:
        cells = (_NUMBER.sub("#", cell.text.casefold()) for cell in row.cells)
        keys.update(cell for cell in cells if len(cell) >= _LEAST_CELL)
    return keys

"""Headings of a PDF that are told by bold type alone, not by their size."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence

from ragx.documents.formats.pdf.rows import Row

__all__ = ["hanging", "is_bold_throughout", "numbered"]

_NUMBERED = re.compile(r"(\d{1,2}(?:\.\d{1,2}){0,4})\.?\s+[^\W\d_]")
_MAX_CHARS = 100
_MAX_HANGING = 60
_MAX_LEVEL = 6
# Share of a document's text that begins at a margin, so that it is where paragraphs begin.
_MARGIN_SHARE = 0.05
# Heads that hang at one place come back, or they are something else.
_LEAST_HEADS = 3
# In units of the font size, and of the line pitch.
_HANGS = 0.8
_DIVIDED = 1.4


def is_bold_throughout(pages: Sequence[Sequence[Row]], body: float) -> bool:
    """Whether bold type says little, as much of the text is set in it."""
    rows = [row for page in pages for row in page if row.size == body]
    return sum(row.bold for row in rows) > 0.3 * len(rows)


def numbered(rows: Sequence[Row], taken: Collection[int], body: float) -> list[tuple[int, int]]:
    """Rows in bold with a section number in front, and their levels."""
    found = []
    for index, row in enumerate(rows):
        if index in taken or not _may_head(row, body) or len(row.cells) > 2:
            continue
        number = _NUMBERED.match(row.text)
        if not number or len(row.text) > _MAX_CHARS:
            continue
        below = rows[index + 1] if index + 1 < len(rows) else None
        if below and below.bold:
            # The first part of a section may follow at once.
            deeper = _NUMBERED.match(below.text)
            if not deeper or not deeper[1].startswith(number[1] + "."):
                continue
        found.append((index, min(number[1].count(".") + 1, _MAX_LEVEL)))
    return found


def hanging(pages: Sequence[Sequence[Row]], body: float) -> list[list[tuple[int, int]]]:
    """Rows in bold, alone on their line, that begin left of all paragraphs; with their levels.

    So are the heads of man pages. Those further out are a level higher.
    """
    margin = _margin(pages)
    places: Counter[int] = Counter()
    candidates: list[list[int]] = []
    for rows in pages:
        on_page = [i for i, row in enumerate(rows) if _hangs(rows, i, margin, body)]
        candidates.append(on_page)
        places.update(round(rows[i].left) for i in on_page)
    lefts = sorted(left for left, n in places.items() if n >= _LEAST_HEADS)
    levels = {left: min(level, _MAX_LEVEL) for level, left in enumerate(lefts, 1)}
    return [
        [(i, levels[round(rows[i].left)]) for i in on_page if round(rows[i].left) in levels]
        for rows, on_page in zip(pages, candidates, strict=True)
    ]


def _margin(pages: Sequence[Sequence[Row]]) -> float:
    """Where the outermost paragraphs begin."""
    n_chars: Counter[int] = Counter()
    for rows in pages:
        for row in rows:
            if not row.bold and not row.turned:
                n_chars[round(row.left)] += len(row.text)
    least = _MARGIN_SHARE * n_chars.total()
    return min((left for left, n in n_chars.items() if n >= least), default=0)


def _hangs(rows: Sequence[Row], index: int, margin: float, body: float) -> bool:
    row = rows[index]
    if not _may_head(row, body) or len(row.cells) > 1 or len(row.text) > _MAX_HANGING:
        return False
    below = rows[index + 1] if index + 1 < len(rows) else None
    return (
        row.left < margin - _HANGS * row.size
        and row.text[:1].isalpha()
        and sum(c.isalpha() for c in row.text) > 0.6 * len(row.text)
        and below is not None
        and below.base < row.base
        and below.left >= row.left - 1
    )


def _may_head(row: Row, body: float) -> bool:
    return (
        row.bold
        and not row.mono
        and not row.turned
        and row.size >= 0.95 * body
        and not row.text.endswith((".", ",", ";", ":"))
    )

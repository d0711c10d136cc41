"""From words to rows in reading order: what stands side by side, and which column comes first."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ragx.documents.formats.base import Link
from ragx.documents.formats.pdf.pages import Word
from ragx.documents.formats.pdf.text import join_links

__all__ = ["Cell", "Row", "rows_of"]

# In units of the font size.
_WIDE_GAP = 1.2
_SAME_LINE = 0.45
_LEAST_GUTTER = 0.8
# Lines that a column or a cell may have: what is looked at once must not grow with a page.
_LOOK_BACK = 100
# Words in one row that are not monospaced, at most this share, do not make code prose.
_MONO_SHARE = 0.9


@dataclass(frozen=True, slots=True)
class Cell:
    """Words of one line with no wide gap between them."""

    text: str
    left: float
    right: float


@dataclass(frozen=True, slots=True)
class Row:
    """One line of one column: its cells, a space between them in `text`.

    `code` is the text with its gaps kept as spaces, of monospaced rows only; `turned` says that it
    does not run as most of the page does.
    """

    cells: tuple[Cell, ...]
    text: str
    left: float
    right: float
    base: float
    size: float
    bold: bool
    mono: bool
    links: tuple[Link, ...] = ()
    code: str = ""
    turned: bool = False


def rows_of(words: Sequence[Word]) -> list[Row]:
    """Rows of a page in the order in which they are read.

    That is the order in which they were written into the file, as most programs write a page as
    it is read, unless the places of the rows speak against it.
    """
    if not words:
        return []
    turns: Counter[int] = Counter()
    for word in words:
        turns[word.turn] += len(word.text)
    main = min(turns, key=lambda turn: (-turns[turn], turn))
    pieces = _pieces([word for word in words if word.turn == main])
    gutter = _gutter(pieces)
    lines = _in_columns(pieces, gutter) if gutter else _side_by_side(pieces)
    if not gutter and _is_jumbled(lines):
        pieces.sort(key=lambda piece: (-round(piece[0].base), piece[0].left))
        lines = _side_by_side(pieces)
    rows = [_row(line, turned=False) for line in lines]
    for turn in sorted(set(turns) - {main}):
        aside = _side_by_side(_pieces([word for word in words if word.turn == turn]))
        rows += [_row(line, turned=True) for line in aside]
    return rows


_Piece = list[Word]


def _gap(before: Word, after: Word) -> float:
    """White space between two words of a line, whichever way it runs; below 0 if they overlap."""
    return max(after.left - before.right, before.left - after.right)


def _pieces(words: Iterable[Word]) -> list[_Piece]:
    pieces: list[_Piece] = []
    open_piece: _Piece = []
    for word in words:
        if open_piece and _gap(open_piece[-1], word) > _WIDE_GAP * max(
            word.size, open_piece[-1].size
        ):
            pieces.append(open_piece)
            open_piece = []
        open_piece.append(word)
        if word.breaks:
            pieces.append(open_piece)
            open_piece = []
    if open_piece:
        pieces.append(open_piece)
    return pieces


def _left(piece: _Piece) -> float:
    return min(word.left for word in piece)


def _right(piece: _Piece) -> float:
    return max(word.right for word in piece)


def _follows(before: _Piece, piece: _Piece) -> bool:
    """Whether a piece goes on in the line in which the one before it stands."""
    size = max(before[-1].size, piece[0].size)
    if abs(before[0].base - piece[0].base) > _SAME_LINE * size:
        return False
    slack = 0.3 * size
    return _left(piece) >= _right(before) - slack or _right(piece) <= _left(before) + slack


def _side_by_side(pieces: Iterable[_Piece]) -> list[list[_Piece]]:
    lines: list[list[_Piece]] = []
    for piece in pieces:
        if lines and _follows(lines[-1][-1], piece):
            lines[-1].append(piece)
        else:
            lines.append([piece])
    return lines


def _is_jumbled(lines: Sequence[list[_Piece]]) -> bool:
    """Whether the order in the file leads up the page again and again, without a new column.

    The next cell of a table may begin above the last line of the one before it, too.
    """
    n_jumps = 0
    for number, line in enumerate(lines[1:], 1):
        size, base = line[0][0].size, line[0][0].base
        if base <= lines[number - 1][0][0].base + 0.5 * size:
            continue
        left = _left(line[0])
        for before in reversed(lines[max(0, number - _LOOK_BACK) : number]):
            if before[0][0].base > base + 0.5 * size:
                break
            if _right(before[-1]) > left + size:
                n_jumps += 1
                break
    return n_jumps > max(2, len(lines) // 10)


def _gutter(pieces: Sequence[_Piece]) -> float | None:
    """The x between two columns of text whose lines were written alternately; None if none is.

    A table has gaps one below the other, too: what is left and right of this one must be lines of
    prose, each filling most of its column.
    """
    if len(pieces) < 12:
        return None
    left, right = min(map(_left, pieces)), max(map(_right, pieces))
    size = statistics.median(piece[0].size for piece in pieces)
    if right - left < 20 * size:
        return None
    step = (right - left) / 100
    covered = [0] * 102
    for piece in pieces:
        for i in range(int((_left(piece) - left) / step), int((_right(piece) - left) / step) + 1):
            covered[i] += 1
    allowed = len(pieces) * 0.08
    best: tuple[int, int] = (0, 0)
    start = None
    for i in range(30, 72):
        if i < 71 and covered[i] <= allowed:
            start = i if start is None else start
        elif start is not None:
            best = max(best, (i - start, start))
            start = None
    width, start = best
    if width * step < _LEAST_GUTTER * size:
        return None
    middle = left + (start + width / 2) * step
    return middle if _is_prose_beside(pieces, middle) else None


def _is_prose_beside(pieces: Sequence[_Piece], middle: float) -> bool:
    lefts = [piece for piece in pieces if _right(piece) <= middle]
    rights = [piece for piece in pieces if _left(piece) >= middle]
    if min(len(lefts), len(rights)) < 0.25 * len(pieces):
        return False
    for side in (lefts, rights):
        width = max(map(_right, side)) - min(map(_left, side))
        n_full = sum(_right(piece) - _left(piece) > 0.7 * width for piece in side)
        if n_full < 0.5 * len(side) or sum(map(len, side)) < 4 * len(side):
            return False
    sides = [_left(piece) >= middle for piece in pieces]
    n_changes = sum(a != b for a, b in pairwise(sides))
    return n_changes > 6


def _in_columns(pieces: Sequence[_Piece], gutter: float) -> list[list[_Piece]]:
    """Left column, right column; what crosses the gutter ends a stretch of columns."""
    ordered: list[list[_Piece]] = []
    columns: tuple[list[_Piece], list[_Piece]] = ([], [])

    def flush() -> None:
        for column in columns:
            ordered.extend(_side_by_side(column))
            column.clear()

    for piece in sorted(pieces, key=lambda piece: (-round(piece[0].base), _left(piece))):
        if _left(piece) < gutter < _right(piece):
            flush()
            ordered.append([piece])
        else:
            columns[_left(piece) >= gutter].append(piece)
    flush()
    return ordered


def _row(line: Sequence[_Piece], *, turned: bool) -> Row:
    words = [word for piece in line for word in piece]
    weights: Counter[float] = Counter()
    n_chars = n_bold = n_mono = 0
    for word in words:
        weights[round(word.size, 1)] += len(word.text)
        n_chars += len(word.text)
        n_bold += word.bold * len(word.text)
        n_mono += word.mono * len(word.text)
    mono = n_mono >= _MONO_SHARE * n_chars
    cells = tuple(
        Cell(" ".join(word.text for word in piece), _left(piece), _right(piece)) for piece in line
    )
    return Row(
        cells,
        " ".join(cell.text for cell in cells),
        min(cell.left for cell in cells),
        max(cell.right for cell in cells),
        words[0].base,
        min(weights, key=lambda size: (-weights[size], -size)),
        n_bold >= 0.9 * n_chars,
        mono,
        _links(words),
        _spaced(words) if mono else "",
        turned,
    )


def _links(words: Sequence[Word]) -> tuple[Link, ...]:
    links, at = [], 0
    for word in words:
        if word.target:
            links.append(Link(at, at + len(word.text), word.target))
        at += len(word.text) + 1
    return join_links(links) if links else ()


def _spaced(words: Sequence[Word]) -> str:
    """Monospaced words with as many spaces between them as their places say."""
    width = max(sum(w.right - w.left for w in words) / sum(len(w.text) for w in words), 0.1)
    text = words[0].text
    for before, word in pairwise(words):
        text += " " * max(1, min(80, round((word.left - before.right) / width))) + word.text
    return text

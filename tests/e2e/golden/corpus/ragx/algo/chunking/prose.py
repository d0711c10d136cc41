"""Running text by paragraphs; data files by rows."""

from __future__ import annotations

from ragx.algo.chunking.lines import Source
from ragx.algo.chunking.packing import Piece, Unit, merge_small, pack, split_rows, split_text

__all__ = ["data_units", "prose_units"]


def prose_units(source: Source) -> list[Unit]:
    """Pack paragraphs; a text without blank rows counts each row as a paragraph.

    A paragraph over the limits becomes overlapping windows that end at lines, sentences or words.
    """
    pieces: list[Piece] = []
    for first, after in _paragraphs(source):
        pieces.extend(split_text(source, source.starts[first], source.row_end(after - 1)))
    return _units(source, pack(source, pieces))


def data_units(source: Source) -> list[Unit]:
    """Split at blank rows and low indentation, into as few chunks as fit."""
    return _units(source, split_rows(source, 0, source.n_rows))


def _units(source: Source, pieces: list[Piece]) -> list[Unit]:
    return merge_small(
        source, [Unit(piece.start, piece.end, alone=piece.alone) for piece in pieces]
    )


def _paragraphs(source: Source) -> list[tuple[int, int]]:
    """Return row ranges of the paragraphs, without blank rows."""
    found: list[tuple[int, int]] = []
    first = -1
    for row in range(source.n_rows):
        if source.is_blank(row):
            if first >= 0:
                found.append((first, row))
            first = -1
        elif first < 0:
            first = row
    if first >= 0:
        found.append((first, source.n_rows))
    if len(found) == 1:
        first, after = found[0]
        return [(row, row + 1) for row in range(first, after)]
    return found

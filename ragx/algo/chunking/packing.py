"""From ranges to chunks: cut long rows apart, pack short neighbours together."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from ragx.algo.chunking.lines import Source
from ragx.algo.chunking.windows import split_windows

__all__ = [
    "SMALL_SHARE",
    "Piece",
    "Unit",
    "common_path",
    "merge_small",
    "pack",
    "split_rows",
    "split_text",
]

# A chunk under this share of the size limit is joined to a neighbour where that fits.
SMALL_SHARE = 4
# What a break costs, in columns of indentation: see _break_cost.
_COST_NO_BLANK_LINE = 8
_COST_CLOSER = 40
_CLOSER = re.compile(r"[)}\]]|(?:end|else|elif|except|catch|finally|fi|done|esac)\b")


@dataclass(frozen=True, slots=True)
class Piece:
    """A character range; `alone` when it overlaps its neighbours, and so cannot be joined."""

    start: int
    end: int
    alone: bool = False


@dataclass(frozen=True, slots=True)
class Unit:
    """A chunk in the making.

    `path` is its breadcrumb, empty for what stands under no heading or definition, and for `mixed`
    ones, whose parts have no heading in common; `depth` is its level in the document's tree.
    """

    start: int
    end: int
    path: tuple[str, ...] = ()
    depth: int = 0
    alone: bool = False
    mixed: bool = False


def pack(source: Source, pieces: Sequence[Piece]) -> list[Piece]:
    """Join neighbouring pieces, in order, as far as the limits allow.

    A last group that is small takes over pieces from the one before, to even the two out.
    """
    packed: list[Piece] = []
    at = 0
    previous = -1
    while at < len(pieces):
        first = pieces[at]
        after = at + 1
        if not first.alone:
            while (
                after < len(pieces)
                and not pieces[after].alone
                and source.fits(first.start, pieces[after].end)
            ):
                after += 1
        group = Piece(first.start, pieces[after - 1].end, first.alone)
        if after == len(pieces) and previous >= 0 and not group.alone and not packed[-1].alone:
            at = _evened(source, pieces, previous, at)
            packed[-1] = Piece(packed[-1].start, pieces[at - 1].end)
            group = Piece(pieces[at].start, group.end)
        packed.append(group)
        previous, at = at, after
    return packed


def _evened(source: Source, pieces: Sequence[Piece], first: int, split: int) -> int:
    """Return where to split `pieces[first:]` in two so that the second part is not small."""
    end = pieces[-1].end
    while (
        split - 1 > first
        and _is_small(source, pieces[split].start, end)
        and source.fits(pieces[split - 1].start, end)
    ):
        split -= 1
    return split


def _is_small(source: Source, start: int, end: int, share: int = SMALL_SHARE) -> bool:
    return source.size(start, end) * share < source.size_tokens


def merge_small(source: Source, units: Sequence[Unit], *, share: int = SMALL_SHARE) -> list[Unit]:
    """Join units too small to stand alone with the next, else with the one before.

    Too small is what has less than the `share`th part of the size limit.

    Only what stands under one parent is joined: every unit of a group is as deep as its first or
    deeper. The group's path is what the paths of its units have in common, those without a path
    (what precedes the first heading, imports) left out.
    """
    merged: list[Unit] = []
    current: Unit | None = None
    for unit in units:
        if current is None:
            current = unit
        elif _is_small(source, current.start, current.end, share) and _may_join(
            source, current, unit
        ):
            current = _joined(current, unit)
        else:
            _settle(source, merged, current, share)
            current = unit
    if current is not None:
        _settle(source, merged, current, share)
    return merged


def _settle(source: Source, merged: list[Unit], unit: Unit, share: int) -> None:
    small = _is_small(source, unit.start, unit.end, share)
    if merged and small and _may_join(source, merged[-1], unit):
        merged[-1] = _joined(merged[-1], unit)
    else:
        merged.append(unit)


def _may_join(source: Source, first: Unit, second: Unit) -> bool:
    return (
        not first.alone
        and not second.alone
        and second.depth >= first.depth
        and source.fits(first.start, second.end)
    )


def _joined(first: Unit, second: Unit) -> Unit:
    if first.path and second.path:
        path = common_path(first.path, second.path)
        mixed = not path
    else:
        mixed = first.mixed or second.mixed
        path = () if mixed else first.path or second.path
    return Unit(first.start, second.end, path, first.depth, mixed=mixed)


def common_path(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    """Return the longest common prefix of two paths."""
    length = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        length += 1
    return one[:length]


def split_text(source: Source, start: int, end: int) -> list[Piece]:
    """Split a range of running text into overlapping windows; one piece if it fits."""
    if source.fits(start, end):
        return [Piece(start, end)]
    windows = split_windows(
        source.view,
        start,
        end,
        sizer=source.sizer,
        size_tokens=source.size_tokens,
        overlap=source.overlap,
        max_chars=source.max_chars,
        by_lines=True,
    )
    return [Piece(*window, alone=True) for window in windows]


def split_rows(source: Source, first: int, after: int) -> list[Piece]:
    """Split rows `[first, after)` at blank rows and low indentation, as few pieces as fit.

    A single row over the limits becomes overlapping windows. All-blank rows give nothing.
    """
    pieces: list[Piece] = []
    first, after = source.trimmed(first, after)
    while first < after:
        fitting = _rows_that_fit(source, first, after)
        if fitting == first:
            pieces.extend(split_text(source, source.starts[first], source.row_end(first)))
            cut = first + 1
        elif fitting == after:
            cut = after
        else:
            cut = _best_row(source, first, fitting, after)
        extent = source.extent(first, cut)
        if fitting > first and extent is not None:
            pieces.append(Piece(*extent))
        first, _ = source.trimmed(cut, after)
    return pieces


def _rows_that_fit(source: Source, first: int, after: int) -> int:
    """Return the last cut row such that rows from `first` up to it fit; `first` if none do."""
    start = source.starts[first]
    step = 64
    while first + step < after and source.fits(start, source.row_end(first + step - 1)):
        step *= 2
    ends = range(first + 1, min(after, first + step) + 1)
    return first + bisect_left(
        ends, True, key=lambda row: not source.fits(start, source.row_end(row - 1))
    )


def _best_row(source: Source, first: int, fitting: int, after: int) -> int:
    """Choose the cheapest break in the later half of the rows that fit.

    When two pieces finish the block, any break that leaves both within the limits will do, and
    of equals the one nearest the middle; otherwise of equals the last.
    """
    low = first + (fitting - first + 1) // 2
    end = source.row_end(after - 1)
    finishing = source.fits(source.starts[fitting], end)
    while finishing and low < fitting and not source.fits(source.starts[low], end):
        low += 1
    middle = (first + after) // 2
    best, best_cost = fitting, (_COST_CLOSER * 100, 0)
    for row in range(max(low, first + 1), fitting + 1):
        if not source.is_blank(row):
            cost = (_break_cost(source, row), abs(row - middle) if finishing else -row)
            if cost < best_cost:
                best, best_cost = row, cost
    return best


def _break_cost(source: Source, row: int) -> int:
    cost = source.indent(row)
    if not source.is_blank(row - 1):
        cost += _COST_NO_BLANK_LINE
    if _CLOSER.match(source.lines[row], source.indent(row)):
        cost += _COST_CLOSER
    return cost

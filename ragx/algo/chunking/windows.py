"""Cutting a block that is too long into overlapping windows at the best places there are."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass

from ragx.algo.chunking.base import Sizer
from ragx.algo.chunking.graphemes import (
    boundary_at_or_after,
    boundary_at_or_before,
    is_boundary,
)

__all__ = ["split_windows"]

_BLANK_LINE = re.compile(r"(?:\r\n?|\n)[^\S\r\n]*(?:\r\n?|\n)")
_LINE_END = re.compile(r"\r\n?|\n")
# A full stop before a small letter is an abbreviation far more often than an end.
_SENTENCE_END = re.compile(
    r"[.!?\u2026\u0964\u06d4]['\")\]\u2019\u201d\u00bb]*\s+(?![a-z\s])"
    r"|[\u3002\uff01\uff1f\uff61][\u201d\u2019\u300d\u300f\uff09]*"
)
_ENDS_SENTENCE = re.compile(r"[.!?:;\u2026\u3002\uff01\uff1f]['\")\]\u2019\u201d\u00bb]*\s*$")
_SPACE = re.compile(r"\s+")
_VISIBLE = re.compile(r"\S")
_LINE_ENDS = ("\r", "\n")
# Indentation wider than this is layout gone wrong, not structure worth repeating.
_MAX_INDENT = 200


def split_windows(
    text: str,
    start: int,
    end: int,
    *,
    sizer: Sizer,
    size_tokens: int,
    overlap: float,
    max_chars: int,
    by_lines: bool = False,
) -> list[tuple[int, int]]:
    """Split `text[start:end]` into windows that cover all of it but white space.

    A window ends, in this order of preference, at a blank line, a sentence, a line, a word or a
    grapheme; with `by_lines`, at a line wherever one ends inside the window. Each starts about
    `overlap` times `size_tokens` before its predecessor's end, at a sentence (a line with
    `by_lines`) or a word. The last two share what is left, so that no window is a stub.

    Args:
        start, end: character offsets, both at grapheme boundaries.
        sizer: of `text`.
        size_tokens: most tokens of a window; only a single grapheme may exceed it.
        overlap: share of `size_tokens`, in [0, 0.9].
        max_chars: most characters of a window, without exception (a longer grapheme is cut).
        by_lines: prefer line ends to sentence ends.
    Returns:
        Ranges in order, starts and ends both rising; none blank; [] for blank text.
    """
    cutter = _Cutter(text, end, sizer, size_tokens, overlap, max_chars, by_lines)
    windows: list[tuple[int, int]] = []
    position = cutter.visible_from(start)
    unseen = cutter.next_visible(start)
    while position is not None and unseen is not None:
        cut = cutter.window_end(position, unseen)
        last = cutter.without_tail(position, cut)
        # Blank only where max_chars parted white space from a mark on it.
        if text[position:last].strip():
            windows.append((position, last))
        following = cutter.visible_from(cut)
        unseen = cutter.next_visible(cut)
        if following is None or unseen is None:
            break
        overlapped = cutter.overlapped_start(position, cut, unseen)
        position = following if overlapped is None else overlapped
    return windows


@dataclass(frozen=True, slots=True)
class _Cutter:
    """The choices of one split: where windows end and begin."""

    text: str
    end: int
    sizer: Sizer
    size_tokens: int
    overlap: float
    max_chars: int
    by_lines: bool

    @property
    def overlap_tokens(self) -> int:
        """Tokens that the next window repeats."""
        return int(self.overlap * self.size_tokens)

    def next_visible(self, at: int) -> int | None:
        """Return the offset of the first character from `at` on that is not white space."""
        found = _VISIBLE.search(self.text, at, self.end)
        return found.start() if found else None

    def visible_from(self, at: int) -> int | None:
        """Return where a window that may start at boundary `at` does; None if all is blank.

        Blank rows and, inside a row, white space are passed over; a row's indentation stays.
        """
        visible = self.next_visible(at)
        if visible is None:
            return None
        row = self.row_start(at, visible)
        if (
            row is not None
            and visible - row < min(_MAX_INDENT, self.max_chars)
            and self.sizer.size(row, visible + 1) <= self.size_tokens
        ):
            return row
        return boundary_at_or_before(self.text, visible, at)

    def row_start(self, at: int, visible: int) -> int | None:
        """Return where the row of `visible` starts, if that is not before `at`."""
        line_end = max(self.text.rfind("\n", at, visible), self.text.rfind("\r", at, visible))
        if line_end >= 0:
            return line_end + 1
        if at == 0 or self.text[at - 1] in _LINE_ENDS:
            return at
        return None

    def without_tail(self, start: int, cut: int) -> int:
        """Return the window's end without the white space before the cut."""
        kept = start + len(self.text[start:cut].rstrip())
        return boundary_at_or_after(self.text, kept, start, cut)

    def reach(self, position: int, tokens: int) -> int:
        """Return the furthest end of a window at `position` that holds at most `tokens`."""
        last = min(self.end, position + self.max_chars)
        size = self.sizer.size
        candidates = range(position + 1, last + 1)
        return position + bisect_right(candidates, tokens, key=lambda at: size(position, at))

    def window_end(self, position: int, unseen: int) -> int:
        """Return the cut that ends the window at `position`.

        It lies beyond `unseen`, the first visible character that no window holds yet.
        """
        limit = self.reach(position, self.size_tokens)
        if limit >= self.end:
            return self.end
        limit = self.whole_graphemes(position, limit)
        target = max(min(self.balanced(position, limit), limit), position + 1)
        low = position + (target - position) // 2
        low = max(unseen, boundary_at_or_before(self.text, low, position))
        cut = self.best_cut(position, low, limit, target)
        if cut is None and low > unseen:
            cut = self.best_cut(position, unseen, low, low)
        if cut is None:
            cut = boundary_at_or_before(self.text, target, position)
        return cut if cut > unseen else limit

    def whole_graphemes(self, position: int, limit: int) -> int:
        """Move a limit back to a grapheme boundary, or forward over the first grapheme."""
        back = boundary_at_or_before(self.text, limit, position)
        if back > position:
            return back
        last = min(self.end, position + self.max_chars)
        return boundary_at_or_after(self.text, position + 1, position, last)

    def balanced(self, position: int, limit: int) -> int:
        """Return where to end this window if two more windows finish the block, else `limit`."""
        rest = self.sizer.size(position, self.end)
        if rest >= 2 * self.size_tokens - self.overlap_tokens:
            return limit
        return self.reach(position, (rest + self.overlap_tokens) // 2 + 1)

    def best_cut(self, position: int, low: int, high: int, target: int) -> int | None:
        """Return the cut in `(low, high]` of the best kind, of those the one nearest `target`.

        A cut stands after the white space that it is made at. None when there is no such place.
        """
        line_ends = self.cuts(_LINE_END, position, low, high)
        found = self.cuts(_BLANK_LINE, position, low, high) if len(line_ends) > 1 else []
        if not found and self.by_lines:
            found = [cut for cut in line_ends if self.ends_sentence(position, cut)] or line_ends
        if not found:
            found = self.cuts(_SENTENCE_END, position, low, high) or line_ends
        if not found:
            found = self.cuts(_SPACE, position, low, high)
        return min(found, key=lambda cut: abs(cut - target), default=None)

    def cuts(self, pattern: re.Pattern[str], position: int, low: int, high: int) -> list[int]:
        """Return the ends of a pattern's matches in `(low, high]` that are boundaries."""
        ends = (match.end() for match in pattern.finditer(self.text, low, high))
        return [cut for cut in ends if cut > low and is_boundary(self.text, cut, position)]

    def ends_sentence(self, position: int, cut: int) -> bool:
        return bool(_ENDS_SENTENCE.search(self.text, max(position, cut - 12), cut))

    def overlapped_start(self, position: int, cut: int, unseen: int) -> int | None:
        """Return where in the last window's tail the next may start and still hold `unseen`."""
        if self.overlap_tokens == 0:
            return None
        size = self.sizer.size
        candidates = range(position + 1, cut)
        # Sizes fall as the start rises, so their negatives are sorted.
        least = (
            position
            + 1
            + bisect_left(candidates, -self.overlap_tokens, key=lambda at: -size(at, cut))
        )
        # One token can be a very long word: without a bound in characters, too, the windows would
        # creep through it.
        least = max(least, cut - int(min(0.5, 2 * self.overlap) * (cut - position)))
        start = self.tail_start(position, least, cut)
        if start is None:
            return None
        beyond = boundary_at_or_after(self.text, unseen + 1, start, self.end)
        fits = beyond - start <= self.max_chars and size(start, beyond) <= self.size_tokens
        return start if fits else None

    def tail_start(self, position: int, least: int, cut: int) -> int | None:
        at_line = self.text[cut - 1] in _LINE_ENDS
        patterns = (_LINE_END,) if self.by_lines and at_line else (_SENTENCE_END, _SPACE)
        for pattern in patterns:
            for match in pattern.finditer(self.text, max(position, least - 1), cut):
                start = match.end()
                if start >= cut:
                    break
                if start >= least and is_boundary(self.text, start, position):
                    visible = self.visible_from(start)
                    if visible is not None and position < visible < cut:
                        return visible
        if self.by_lines and at_line:
            return None
        start = boundary_at_or_after(self.text, least, position, cut)
        return start if start < cut and not self.text[start].isspace() else None

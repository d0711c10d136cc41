"""A text seen as rows: the view that all chunkers cut along."""

from __future__ import annotations

import re
from itertools import accumulate

from ragx.algo.chunking.base import ChunkOptions, Sizer

__all__ = ["Source"]

_LONE_CR = re.compile(r"\r(?!\n)")
_PLUS_ONE = (1).__add__


class Source:
    """One text with its rows, its sizer and its limits.

    Rows end at LF, CRLF and CR. `lines[row]` is the row without its LF (a CRLF row keeps its CR);
    `starts[row]` is its character offset, `starts[n_rows]` the text's length. `view` is the text
    with each lone CR as LF: same offsets, one kind of line end.
    """

    __slots__ = (
        "lines",
        "max_chars",
        "n_rows",
        "overlap",
        "size_tokens",
        "sizer",
        "starts",
        "view",
    )

    def __init__(self, text: str, sizer: Sizer, options: ChunkOptions) -> None:
        self.view = text
        if "\r" in text and text.count("\r") != text.count("\r\n"):
            self.view = _LONE_CR.sub("\n", text)
        self.lines = self.view.split("\n")
        self.n_rows = len(self.lines)
        lengths = map(len, self.lines)
        self.starts = list(accumulate(map(_PLUS_ONE, lengths), initial=0))
        self.starts[-1] = len(text)
        self.sizer = sizer
        self.size_tokens = options.size_tokens
        self.overlap = options.overlap
        self.max_chars = options.max_chunk_chars

    def is_blank(self, row: int) -> bool:
        """Tell whether a row holds nothing but white space."""
        line = self.lines[row]
        return not line or line.isspace()

    def row_end(self, row: int) -> int:
        """Return the offset after the row's last character, its line end excluded."""
        line = self.lines[row]
        return self.starts[row] + len(line) - line.endswith("\r")

    def trimmed(self, first: int, after: int) -> tuple[int, int]:
        """Narrow rows `[first, after)` to those between its outermost non-blank rows.

        An all-blank range comes back empty (first == after).
        """
        while first < after and self.is_blank(first):
            first += 1
        while after > first and self.is_blank(after - 1):
            after -= 1
        return first, after

    def extent(self, first: int, after: int) -> tuple[int, int] | None:
        """Return the character range of rows `[first, after)` trimmed; None when all are blank."""
        first, after = self.trimmed(first, after)
        return (self.starts[first], self.row_end(after - 1)) if first < after else None

    def size(self, start: int, end: int) -> int:
        """Return the tokens of a character range."""
        return self.sizer.size(start, end)

    def fits(self, start: int, end: int) -> bool:
        """Tell whether a character range is within both limits."""
        return end - start <= self.max_chars and self.sizer.size(start, end) <= self.size_tokens

    def indent(self, row: int) -> int:
        """Return the number of white-space characters that a row starts with."""
        line = self.lines[row]
        return len(line) - len(line.lstrip())

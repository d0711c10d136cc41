"""How much text each place in `ragx query --json` shows: the first in full, then pointers.

Chosen by what it costs and keeps (research/tokens.md): on documentation and code the answer takes
40% of the tokens, and the first 2,000 of them show more of the relevant files.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Shares"]

_LEAST_CHARS = 100
_FULL = 3  # files at the top that are worth reading here
_NEAR = 10
# Divisors of `query.max_chunk_chars`, for a file's best chunk and for its second and third.
_TOP, _MIDDLE, _BELOW = (1, 4), (4, 12), (12, 12)


@dataclass(frozen=True, slots=True)
class Shares:
    """Limits by place; ranks of files, and of chunks within a file, count from 1.

    Args:
        max_chars: most characters of any chunk's text, `query.max_chunk_chars`.
        context_everywhere: lines around chunks were asked for, so every chunk has them.
    """

    max_chars: int
    context_everywhere: bool

    def text_chars(self, rank: int, nth: int) -> int:
        """Most characters of the nth chunk of the file at a rank."""
        best, further = _TOP if rank <= _FULL else _MIDDLE if rank <= _NEAR else _BELOW
        share = self.max_chars // (best if nth == 1 else further)
        return max(share, min(self.max_chars, _LEAST_CHARS))

    def has_context(self, rank: int, nth: int) -> bool:
        """Whether the lines around that chunk are shown."""
        return self.context_everywhere or (rank <= _FULL and nth == 1)

"""Where words of a PDF begin and end, by the white space between their letters.

PDFium goes by the characters for spaces, and guesses where there are none. Over 40 documents the
gaps inside words reach 0.08 of the font size and those between words begin at 0.17, so that what
it missed can be told from kerning; only letters set apart need to be compared with their line.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ragx.documents.formats.pdf.pages import Word

__all__ = ["SUSPICIOUS", "Span", "cuts", "may_join", "mend"]

# In units of the font size. What a word may be wider than its letters before it is looked at.
SUSPICIOUS = 0.12
_WORD_GAP = 0.17
_NO_GAP = 0.05
_OVERLAP = -0.12
# More than this beyond the usual distance of spaced letters divides words.
_BEYOND = 0.12
# Characters; no word is longer, and the time for joining must not take the square of a page.
_MAX_JOINED = 200

# Left and right edge of a character.
Span = tuple[float, float]


def cuts(spans: Sequence[Span], unit: float) -> list[int]:
    """Before which characters of what was taken for one word a new one begins."""
    gaps = [
        max(after[0] - before[1], before[0] - after[1]) / unit for before, after in pairwise(spans)
    ]
    if max(gaps, default=0.0) <= _WORD_GAP:
        return []
    # One gap in two would lift the median of a short word: words are rarely that short in a row.
    usual = statistics.median_low(gaps) if len(gaps) > 1 else 0.0
    least = max(_WORD_GAP, usual + _BEYOND)
    return [at for at, gap in enumerate(gaps, 1) if gap > least]


def may_join(before: Word, word: Word) -> bool:
    """Whether a space between two words of a line takes no room, so that it may be none at all."""
    size = word.size
    return (
        _OVERLAP * size < word.left - before.right < _NO_GAP * size
        and before.text[-1].isalpha()
        and word.text[0].isalpha()
        and not word.turn
        and before.size == size
        and abs(word.base - before.base) < _NO_GAP * size
        and not before.breaks
    )


def mend(words: list[Word]) -> list[Word]:
    """Words that were divided are put together again."""
    mended: list[Word] = []
    for word in words:
        before = mended[-1] if mended else None
        if word.joins and before and len(before.text) < _MAX_JOINED:
            before.text += word.text
            before.right, before.breaks = max(before.right, word.right), word.breaks
        else:
            mended.append(word)
    return mended

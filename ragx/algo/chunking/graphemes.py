"""Where a text may be cut without breaking what a reader sees as one character.

A conservative reading of Unicode Standard Annex 29 (extended grapheme clusters): every true
cluster stays whole; a few sequences that may legally be cut are kept together too.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache

__all__ = ["boundary_at_or_after", "boundary_at_or_before", "is_boundary"]

_ZWJ = "\u200d"
_VIRAMA = 9  # canonical combining class of the signs that join consonants in Indic scripts
_PREPENDED = frozenset(
    [
        *map(chr, range(0x0600, 0x0606)),
        *"\u06dd\u070f\u0890\u0891\u08e2\u0d4e",
        *"\U000110bd\U000110cd\U000111c2\U000111c3\U000113d1\U0001193f\U00011941",
        *"\U00011a3a\U00011d46\U00011f02",
        *map(chr, range(0x11A84, 0x11A8A)),
    ]
)
# Marks that unicodedata files as letters, modifiers or format characters.
_EXTRA_MARKS = frozenset(
    [
        *"\u0e33\u0eb3\u200c\u200d\uff9e\uff9f",
        *map(chr, range(0x1F3FB, 0x1F400)),
        *map(chr, range(0xE0020, 0xE0080)),
    ]
)


@lru_cache(maxsize=4096)
def _is_mark(character: str) -> bool:
    return character in _EXTRA_MARKS or unicodedata.category(character)[0] == "M"


@lru_cache(maxsize=4096)
def _is_control(character: str) -> bool:
    return character not in _EXTRA_MARKS and (
        unicodedata.category(character) in {"Cc", "Zl", "Zp"} or character in "\u200b\ufeff"
    )


def _may_be_pictograph(character: str) -> bool:
    return character == "\u2139" or unicodedata.category(character)[0] not in "LNZ"


def _is_flag_letter(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _is_hangul_part(character: str) -> bool:
    return (
        "\u1100" <= character <= "\u11ff"
        or "\ua960" <= character <= "\ua97f"
        or "\ud7b0" <= character <= "\ud7ff"
    )


def is_boundary(text: str, at: int, floor: int = 0) -> bool:
    """Tell whether `text` may be cut before offset `at`.

    Args:
        floor: offset known to be a boundary; nothing before it is looked at.
    """
    if at <= floor or at >= len(text):
        return True
    before, after = text[at - 1], text[at]
    if before < "\u0300" and after < "\u0300":  # nothing below U+0300 combines
        return not (before == "\r" and after == "\n")
    if _is_control(before) or _is_control(after):
        return True
    if _is_mark(after) or before in _PREPENDED:
        return False
    if before == _ZWJ and _may_be_pictograph(after):
        return False
    if _is_flag_letter(before) and _is_flag_letter(after):
        first = at - 1
        while first > floor and _is_flag_letter(text[first - 1]):
            first -= 1
        return (at - first) % 2 == 0
    if _is_hangul_part(after) and (_is_hangul_part(before) or "\uac00" <= before <= "\ud7a3"):
        return False
    if "\u1100" <= before <= "\u115f" and "\uac00" <= after <= "\ud7a3":
        return False
    return not _joins_consonants(text, at, floor)


def _joins_consonants(text: str, at: int, floor: int) -> bool:
    """Tell whether a virama among the marks before `at` joins the letter at `at`."""
    if not unicodedata.category(text[at]).startswith("L"):
        return False
    for index in range(at - 1, max(floor, at - 32) - 1, -1):
        if not _is_mark(text[index]):
            return False
        if unicodedata.combining(text[index]) == _VIRAMA:
            return True
    return False


def boundary_at_or_before(text: str, at: int, floor: int) -> int:
    """Return the last boundary in `(floor, at]`, or `floor` when there is none.

    Args:
        floor: offset known to be a boundary.
    """
    while at > floor and not is_boundary(text, at, floor):
        if _is_flag_letter(text[at]):
            # An odd run of flag letters: one step back restores the parity.
            return at - 1
        at -= 1
    return at


def boundary_at_or_after(text: str, at: int, floor: int, ceiling: int) -> int:
    """Return the first boundary in `[at, ceiling]`, or `ceiling` when there is none."""
    while at < ceiling and not is_boundary(text, at, floor):
        at += 1
    return min(at, ceiling)

"""Texts that say the same: equal ones, and copies with a few words changed.

Two texts are near copies if most of their runs of three words are the same (shingling; Broder
1997). Vectors cannot tell: two pages of one kind lie as close as a page and its copy. Only texts
that share lines or sentences are compared word by word, so that a copy of one long sentence with a
word changed is a text of its own.
"""

from __future__ import annotations

import re
from functools import lru_cache

__all__ = ["Repeats"]

_RUN = 3
_LEAST_ALIKE = 0.9  # of the runs of both together; one changed word takes part in three
# In shorter texts a changed word changes what is said.
_LEAST_RUNS = 40
_LEAST_SHARED = 0.3  # of a text's lines and sentences, before words are compared
_LEAST_PIECE_CHARS = 16  # shorter ones stand everywhere
_WORD = re.compile(r"\w+")


class Repeats:
    """Remembers texts, best first, and knows the first of each kind.

    Args:
        near: whether near copies count besides equal texts.
    """

    def __init__(self, *, near: bool = True) -> None:
        self._near = near
        self._equal: dict[str, int] = {}
        self._texts: dict[int, tuple[str, str]] = {}
        self._holders: dict[str, list[int]] = {}
        self._runs: dict[int, frozenset[tuple[str, ...]]] = {}

    def first_of(self, key: int, text: str, *, group: str = "") -> int:
        """The key of the first text that says what this one says; its own if it is the first.

        Args:
            key: names the text; new with each call.
            group: texts of one group are not near copies of each other; "" is no group.
        """
        stripped = text.strip()
        owner = self._equal.setdefault(stripped, key)
        if owner != key or not self._near:
            return owner
        self._texts[key] = stripped, group
        pieces = _pieces(stripped)
        shared: dict[int, int] = {}
        for piece in pieces:
            for other in self._holders.get(piece, ()):
                shared[other] = shared.get(other, 0) + 1
        for other, n in sorted(shared.items(), key=lambda item: (-item[1], item[0])):
            if n < _LEAST_SHARED * len(pieces):
                break
            if not (group and group == self._texts[other][1]) and self._alike(key, other):
                self._equal[stripped] = other
                return other
        for piece in pieces:
            self._holders.setdefault(piece, []).append(key)
        return key

    def _alike(self, one: int, other: int) -> bool:
        a, b = self._runs_of(one), self._runs_of(other)
        return min(len(a), len(b)) >= _LEAST_RUNS and len(a & b) >= _LEAST_ALIKE * len(a | b)

    def _runs_of(self, key: int) -> frozenset[tuple[str, ...]]:
        runs = self._runs.get(key)
        if runs is None:
            words = _WORD.findall(self._texts[key][0])
            runs = frozenset(zip(*(words[at:] for at in range(_RUN)), strict=False))
            self._runs[key] = runs
        return runs


@lru_cache(maxsize=4096)
def _pieces(text: str) -> frozenset[str]:
    """Lines and sentences that are long enough to be told apart."""
    pieces = text.replace(". ", "\n").split("\n")
    return frozenset(
        [piece for piece in map(str.strip, pieces) if len(piece) >= _LEAST_PIECE_CHARS]
    )

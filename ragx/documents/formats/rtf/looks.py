"""Headings of documents that mark none: short lines in larger or bold letters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ragx.documents.formats.base import Block

__all__ = ["Looks", "heading_levels"]

_MAX_CHARS = 100
_MAX_SHARE = 0.25  # of the text: a document in bold letters has no headings
_MAX_SIZES = 5


@dataclass(slots=True)
class Looks:
    """The letters of one paragraph: the smallest size, and whether all are bold."""

    size: int = 0
    is_bold: bool = True
    n_chars: int = 0

    def add(self, size: int, n_chars: int, *, is_bold: bool) -> None:
        self.size = min(self.size, size) if self.n_chars else size
        self.is_bold &= is_bold
        self.n_chars += n_chars


def heading_levels(blocks: Sequence[Block], looks: Mapping[int, Looks]) -> dict[int, int]:
    """Blocks that look like headings, by number, with their level; {} if that does not say much.

    Args:
        looks: of those blocks that are paragraphs.
    """
    sizes: Counter[int] = Counter()
    for look in looks.values():
        sizes[look.size] += look.n_chars
    if not sizes:
        return {}
    # Of two sizes with as much text the smaller is that of running text.
    usual = min(sizes, key=lambda size: (-sizes[size], size))
    found = {
        number: (-look.size, not look.is_bold)
        for number, look in looks.items()
        if (look.size > usual or (look.is_bold and look.size == usual))
        and _is_short(blocks[number].text)
    }
    if sum(len(blocks[number].text) for number in found) > _MAX_SHARE * sizes.total():
        return {}
    ranks = sorted(set(found.values()))[:_MAX_SIZES]
    levels = {rank: level for level, rank in enumerate(ranks, start=1)}
    return {number: levels.get(rank, _MAX_SIZES) for number, rank in found.items()}


def _is_short(text: str) -> bool:
    return (
        len(text) <= _MAX_CHARS
        and "\n" not in text
        and not text.endswith((".", ",", ";"))
        and "@" not in text
        and "://" not in text
        and any(char.isalnum() for char in text)
    )

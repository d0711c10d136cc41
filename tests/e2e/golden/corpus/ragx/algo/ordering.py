"""The one tie rule: score descending, then path, then position in the file.

Hits that one seed's cap holds have one score; among them the one that the cap took most from leads.
"""

from __future__ import annotations

from collections.abc import Iterable

from ragx.types import Hit

__all__ = ["hit_key", "rank_hits"]


def hit_key(hit: Hit) -> tuple[float, float, str, int]:
    """Sort key that puts better hits first and breaks ties by where they stand."""
    return (-hit.score, -hit.uncapped, hit.path, hit.ordinal)


def rank_hits(hits: Iterable[Hit]) -> list[Hit]:
    """Hits from best to worst; the order they came in has no influence.

    Raises:
        ValueError: a score is NaN, which no order can place.
    """
    ranked = list(hits)
    for hit in ranked:
        if hit.score != hit.score:
            raise ValueError(f"score of chunk {hit.chunk_id} is not a number")
    ranked.sort(key=hit_key)
    return ranked

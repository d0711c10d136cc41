"""How good a ranking is, given what was judged: recall, reciprocal rank, nDCG.

The definitions are trec_eval's, and `ir_measures` gives the same numbers. What nobody judged counts
as not relevant; a file is relevant if its grade is above 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

__all__ = ["hit_ranks", "ndcg", "recall", "reciprocal_rank"]

Grades = Mapping[str, float]


def hit_ranks(ranked: Sequence[str], grades: Grades) -> list[int]:
    """Ranks, from 1, at which something relevant stands, ascending; empty for an empty ranking.

    Args:
        ranked: distinct names, best first.
        grades: what was judged, by name.
    """
    return [rank for rank, name in enumerate(ranked, start=1) if grades.get(name, 0) > 0]


def recall(ranked: Sequence[str], grades: Grades, k: int) -> float:
    """The share of everything relevant that stands among the first k; 0 if nothing is relevant.

    Args:
        ranked: distinct names, best first.
        grades: what was judged, by name.
        k: ranks that count, at least 1.
    """
    n_relevant = sum(1 for grade in grades.values() if grade > 0)
    return len(hit_ranks(ranked[:k], grades)) / n_relevant if n_relevant else 0.0


def reciprocal_rank(ranked: Sequence[str], grades: Grades, k: int | None = None) -> float:
    """1 / rank of the first that is relevant; 0 where none is, or none among the first k.

    Args:
        ranked: distinct names, best first.
        grades: what was judged, by name.
        k: ranks that count; None counts all.
    """
    ranks = hit_ranks(ranked[:k], grades)
    return 1.0 / ranks[0] if ranks else 0.0


def ndcg(ranked: Sequence[str], grades: Grades, k: int) -> float:
    """Discounted gain of the first k as a share of the best that the judgments allow.

    A gain is the grade itself, 0 for negative ones, over log2(rank + 1).

    Args:
        ranked: distinct names, best first.
        grades: what was judged, by name.
        k: ranks that count, at least 1.
    Returns:
        A number in [0, 1]; 0 if nothing is relevant.
    Source: Jarvelin and Kekalainen, TOIS 2002, with the discount of trec_eval's `ndcg_cut`.
    """
    best = _discounted(sorted(grades.values(), reverse=True)[:k])
    return _discounted([grades.get(name, 0) for name in ranked[:k]]) / best if best else 0.0


def _discounted(gains: Sequence[float]) -> float:
    return math.fsum(
        max(0.0, gain) / math.log2(rank + 1) for rank, gain in enumerate(gains, start=1)
    )

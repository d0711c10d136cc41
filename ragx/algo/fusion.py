"""Two rankings into one: a weighted sum of scaled scores, or reciprocal ranks.

Scores of the two sides live on different scales, so each is scaled per query over the union of
candidates. Score fusion beat rank fusion on every collection tried (research/first-stage.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

__all__ = [
    "Terms",
    "reciprocal_ranks",
    "scale_by_maximum",
    "scale_by_range",
    "total",
    "weighted_sum",
]

Terms = dict[str, float]


def scale_by_range(scores: Mapping[int, float]) -> dict[int, float]:
    """(s - min) / (max - min): 0 for the worst candidate, 1 for the best.

    Equal scores all give 1, so that a single candidate counts. Empty gives empty.

    Raises:
        ValueError: a score is NaN, which would hide behind the order of candidates.
    """
    _refuse_nan(scores)
    if not scores:
        return {}
    low, high = min(scores.values()), max(scores.values())
    span = high - low
    if span <= 0:
        return dict.fromkeys(scores, 1.0)
    return {key: (score - low) / span for key, score in scores.items()}


def _refuse_nan(scores: Mapping[int, float]) -> None:
    if any(map(math.isnan, scores.values())):
        raise ValueError("a score is not a number")


def scale_by_maximum(scores: Mapping[int, float]) -> dict[int, float]:
    """s / max, for scores whose zero means "no match". All zero or empty gives zeros.

    Raises:
        ValueError: a score is NaN.
    """
    _refuse_nan(scores)
    high = max(scores.values(), default=0.0)
    if high <= 0:
        return dict.fromkeys(scores, 0.0)
    return {key: score / high for key, score in scores.items()}


def weighted_sum(
    cosines: Mapping[int, float],
    bm25: Mapping[int, float],
    *,
    vector_weight: Callable[[int], float],
) -> dict[int, Terms]:
    """Score terms of every candidate: w * cosine' + (1 - w) * bm25'.

    Args:
        cosines: cosine of each candidate that has a vector.
        bm25: BM25 of each candidate that matches; higher is better.
        vector_weight: w in [0, 1] of a candidate; the weight may follow its kind of file.
    Returns:
        `{"vector": ..., "lexical": ...}` by candidate, over the union of both sides; the score is
        the sum of the terms.
    """
    scaled_cosines, scaled_bm25 = scale_by_range(cosines), scale_by_maximum(bm25)
    fused: dict[int, Terms] = {}
    for key in scaled_cosines.keys() | scaled_bm25.keys():
        weight = vector_weight(key)
        fused[key] = {
            "vector": weight * scaled_cosines.get(key, 0.0),
            "lexical": (1.0 - weight) * scaled_bm25.get(key, 0.0),
        }
    return fused


def reciprocal_ranks(rankings: Mapping[str, Sequence[int]], *, rrf_k: float) -> dict[int, Terms]:
    """Score terms of every candidate: 1 / (rrf_k + rank) per ranking that holds it, rank from 1.

    Args:
        rankings: candidates from best to worst, by the name their term shall have.
        rrf_k: k of the paper, 60 there.
    Source: Cormack, Clarke and Buettcher, SIGIR 2009.
    """
    fused: dict[int, Terms] = {}
    for name, ranking in rankings.items():
        for rank, key in enumerate(ranking, start=1):
            fused.setdefault(key, {})[name] = 1.0 / (rrf_k + rank)
    return fused


def total(terms: Terms) -> float:
    """The score that terms add up to, independent of their order."""
    return math.fsum(terms.values())

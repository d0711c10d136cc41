"""A second look joined with the first: a reranker's scores beside those of the searches.

A cross-encoder's numbers have a scale of its own (logits, or shares of 1), so that only their order
and distances within one question mean anything. They are laid onto the range that the first
stage's scores span, and the two are mixed: neither side alone decides.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from ragx.algo.fusion import Terms, scale_by_range

__all__ = ["blend", "lay_onto", "weigh"]


def lay_onto(scores: Mapping[int, float], low: float, high: float) -> dict[int, float]:
    """Scores moved and stretched so that the worst has `low` and the best `high`.

    Args:
        scores: finite numbers by candidate; higher is better.
    Returns:
        Numbers from `low` to `high`, in the same order; {} where all scores are the same, which
        says nothing about any of them.
    Raises:
        ValueError: a score is not finite.
    """
    _refuse_unfinite(scores)
    if not scores or min(scores.values()) == max(scores.values()):
        return {}
    # Mixed, not added to `low`: the ends are met exactly.
    return {
        key: (1.0 - share) * low + share * high for key, share in scale_by_range(scores).items()
    }


def blend(
    first: Mapping[int, float], scores: Mapping[int, float], *, low: float, alpha: float
) -> dict[int, float]:
    """What the second look gives each candidate: its term in (1 - alpha) x first + term.

    Args:
        first: the first stage's score of each candidate.
        scores: the reranker's, over the same candidates.
        low: first-stage score that the reranker's worst counts as; that of the last candidate keeps
            all of them above what was not looked at.
        alpha: weight of the reranker, in [0, 1].
    Returns:
        alpha x the reranker's score on the range from `low` to the highest of `first`; where the
        reranker tells nothing apart, alpha x `first`, so that nothing changes.
    Raises:
        ValueError: a score is not finite.
    """
    laid = lay_onto(scores, low, max(first.values(), default=low)) or first
    return {key: alpha * laid[key] for key in first}


def weigh(
    parts: Mapping[str, Mapping[int, float]], weights: Mapping[str, float]
) -> dict[int, Terms]:
    """The seed document's sum: each part scaled to [0, 1] over the candidates, then weighted.

    Args:
        parts: numbers by candidate, by name; one that lacks a candidate gives it nothing.
        weights: by the same names; they are scaled to a sum of 1.
    Returns:
        Terms of every candidate that any part knows.
    Raises:
        ValueError: a number is not finite.
    """
    for scores in parts.values():
        _refuse_unfinite(scores)
    whole = math.fsum(weights[name] for name in parts) or 1.0
    scaled = {name: scale_by_range(scores) for name, scores in parts.items()}
    keys = sorted({key for scores in parts.values() for key in scores})
    return {
        key: {name: weights[name] / whole * side.get(key, 0.0) for name, side in scaled.items()}
        for key in keys
    }


def _refuse_unfinite(scores: Mapping[int, float]) -> None:
    if not all(map(math.isfinite, scores.values())):
        raise ValueError("a score is not finite")

"""Two rankings into one: a weighted sum of scores on their own scales, or reciprocal ranks.

Each side is measured by a yardstick of the corpus and not stretched to the same height for every
query: what the words find counts by how much rare evidence it is, what the vectors find by how far
it stands out among the corpus's own likenesses. So the side that has something to say for a
question is heard, without a weight for each kind of material (research/fusion.md; the family of
"theoretical min-max" scaling in Bruch, Gai and Ingber, TOIS 2023).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

__all__ = [
    "Scales",
    "Terms",
    "bm25_unit",
    "cosine_unit",
    "reciprocal_ranks",
    "scale_by_range",
    "total",
    "trust",
    "weighted_sum",
    "with_others",
]

Terms = dict[str, float]

_STRONG_WORDS = 3.75  # full matches of a word give 2.2 times its rarity at most
_USUAL_SPREAD, _USUAL_PAIRS = 0.12, 100
_LEAST_UNIT = 0.05
_COMPARED = 10
_SUITED = 0.3


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


@dataclass(frozen=True, slots=True)
class Scales:
    """Yardsticks of the two sides.

    Args:
        floor: cosine that counts 0.
        cosine_unit: how far above the floor a cosine counts 1, over 0.
        bm25_unit: BM25 that counts 1, over 0; scores may be higher, as for long questions.
    """

    floor: float
    cosine_unit: float
    bm25_unit: float


def cosine_unit(spread: float, n_pairs: int) -> float:
    """What stands far out: four times the spread of cosines between passages of the corpus.

    A spread of few pairs says little, so it is mixed with the one that is usual for small models.

    Args:
        spread: their standard deviation, 0 where there are no pairs.
        n_pairs: how many it was taken from.
    """
    known = n_pairs * spread**2 + _USUAL_PAIRS * _USUAL_SPREAD**2
    return max(_LEAST_UNIT, 4.0 * math.sqrt(known / (n_pairs + _USUAL_PAIRS)))


def bm25_unit(n_chunks: int, best: float) -> float:
    """What is strong evidence: the rarest words that there can be, matched well, nearly twice.

    Args:
        n_chunks: chunks that BM25 counts words in.
        best: highest score of this query; the unit where so few chunks give words no rarity.
    """
    rarest = math.log((n_chunks - 0.5) / 1.5) if n_chunks > 2 else 0.0
    return _STRONG_WORDS * rarest or best or 1.0


def trust(
    vector_ranking: Sequence[int], lexical_ranking: Sequence[int], bm25: Mapping[int, float]
) -> float:
    """How far a model that may not know the language or the subject is to be believed, in [0, 1].

    What its best ten hold of the query's words, against the best ten by words. A model that suits
    the text finds over half of that even where it goes its own ways; one that does not finds what
    chance gives it, and then the words decide.

    Args:
        vector_ranking, lexical_ranking: candidates, best first.
        bm25: scores over both.
    Returns:
        1 where the words find nothing: then there is nothing to compare with.
    """
    by_words = math.fsum(bm25.get(key, 0.0) for key in lexical_ranking[:_COMPARED])
    if by_words <= 0 or not vector_ranking:
        return 1.0
    by_vector = math.fsum(bm25.get(key, 0.0) for key in vector_ranking[:_COMPARED])
    n_words, n_vector = (min(len(r), _COMPARED) for r in (lexical_ranking, vector_ranking))
    share = (by_vector / n_vector) / (by_words / n_words)
    return min(1.0, share / _SUITED) ** 2


def weighted_sum(
    cosines: Mapping[int, float],
    bm25: Mapping[int, float],
    *,
    scales: Scales,
    vector_weight: Callable[[int], float],
) -> dict[int, Terms]:
    """Score terms of every candidate: w * cosine' + (1 - w) * bm25', the best candidate's sum 1.

    Args:
        cosines: cosine of each candidate that has a vector.
        bm25: BM25 of each candidate that matches; higher is better, 0 is no match.
        vector_weight: w in [0, 1] of a candidate; the weight may follow its kind of file.
    Returns:
        `{"vector": ..., "lexical": ...}` by candidate, over the union of both sides; the score is
        the sum of the terms, -1 at least. What lies below the floor has a negative vector term.
    Raises:
        ValueError: a score is NaN, which would hide behind the order of candidates.
    """
    _refuse_nan(cosines)
    _refuse_nan(bm25)
    sides: dict[int, tuple[float, float]] = {}
    for key in cosines.keys() | bm25.keys():
        weight = vector_weight(key)
        near = (cosines.get(key, scales.floor) - scales.floor) / scales.cosine_unit
        words = bm25.get(key, 0.0) / scales.bm25_unit
        sides[key] = (weight * near, (1.0 - weight) * words)
    best = max(map(math.fsum, sides.values()), default=0.0)
    best = best if best > 0 else 1.0
    return {
        key: {"vector": max(near, -best - words) / best, "lexical": words / best}
        for key, (near, words) in sides.items()
    }


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


def with_others(
    fused: Mapping[int, Terms],
    others: Sequence[Mapping[int, float]],
    *,
    weight: float,
    to_one: bool,
) -> dict[int, Terms]:
    """Add to each candidate what other wordings of the question say of it, on the average.

    What only one of several wordings finds gets a fraction: a wording that misses the point cannot
    put its own hits before those of the question, and what all of them find rises.

    Args:
        fused: terms of what the question itself finds.
        others: scores that each wording gives, one mapping at least; 0 where it lacks a candidate.
        weight: of the average.
        to_one: whether all is divided by the best sum, so that the best candidate has 1.
    Returns:
        All candidates, with a term `expansion` where a wording knows them.
    """
    whole: dict[int, Terms] = {}
    for key in sorted(fused.keys() | {key for scores in others for key in scores}):
        mean = math.fsum(scores.get(key, 0.0) for scores in others) / len(others)
        terms = fused.get(key, {"lexical": 0.0})
        whole[key] = {**terms, **({"expansion": weight * mean} if mean else {})}
    best = max(map(total, whole.values()), default=0.0) if to_one else 1.0
    if best <= 0:
        best = 1.0
    return {
        key: {name: value / best for name, value in terms.items()} for key, terms in whole.items()
    }


def total(terms: Terms) -> float:
    """The score that terms add up to, independent of their order."""
    return math.fsum(terms.values())

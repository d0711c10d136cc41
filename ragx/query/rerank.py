"""The second look: a cross-encoder reads the question and the best chunks, each as a whole.

What it says is mixed with what the searches, the rules and the graph say. A chunk that the graph
brought in stands below the hit it came from as long as nobody has read it; here its own text speaks
for it, so it may rise above that hit (research/second-stage.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ragx.algo import combine, fusion
from ragx.errors import ProviderRefused
from ragx.providers.base import Reranker
from ragx.types import Chunk, Hit

__all__ = ["RerankRule", "passage_of", "rerank"]

_ABSURD = 1e100


@dataclass(frozen=True, slots=True)
class RerankRule:
    """How a reranker's scores count, from `[scoring]`.

    Args:
        alpha: its weight beside the first stage, or in the three-term sum.
        depth: chunks that it reads, the best of the first stage.
        formula: "capped" mixes it with the first stage's score; "seed" is the seed document's sum
            alpha x rerank + beta x heat + gamma x vector, each scaled over the candidates.
    """

    alpha: float = 0.6
    depth: int = 100
    formula: str = "capped"
    beta_heat: float = 0.25
    gamma_vector: float = 0.15


def passage_of(chunk: Chunk) -> str:
    """What is read of a chunk: where it stands, then its whole text."""
    return f"{' > '.join((chunk.path, *chunk.heading))}\n{chunk.text}"


def rerank(
    question: str,
    hits: Sequence[Hit],
    kept: Sequence[Hit],
    owners: Mapping[int, int],
    chunks: Mapping[int, Chunk],
    reranker: Reranker,
    rule: RerankRule,
) -> list[Hit]:
    """Hits with a `rerank` term wherever a chunk was read, and its raw score.

    What was not read keeps its score and stays below what was, in so far as it was below.

    Args:
        question: without operators.
        hits: of the first stage, before phrases are put first.
        kept: the ranking, phrases first, one hit for each text.
        owners: of every hit the one in `kept` that stands for its text; copies are not read again
            and get what was said of it, so that the same one goes on standing for them.
        chunks: those of the hits.
    Raises:
        ProviderError: the reranker failed, or does not answer with one number per passage.
        MissingDependency: its engine is not installed.
    """
    read = _shortlist(hits, kept, rule)
    if not read:
        return list(hits)
    passages = [passage_of(chunks[chunk_id]) for chunk_id in read]
    scores = reranker.scores(question, passages)
    # NaN is no less than anything; differences of larger numbers would not be finite.
    if len(scores) != len(read) or not all(abs(score) < _ABSURD for score in scores):
        raise ProviderRefused(
            f"reranker {reranker.model!r} does not give one number for each passage"
        )
    said = dict(zip(read, map(float, scores), strict=True))
    raw = {
        hit.chunk_id: said[owner]
        for hit in hits
        if (owner := owners.get(hit.chunk_id, hit.chunk_id)) in said
    }
    if rule.formula == "seed":
        return _three_terms(hits, raw, rule)
    return _blended(hits, read, raw, rule)


def _shortlist(hits: Sequence[Hit], kept: Sequence[Hit], rule: RerankRule) -> list[int]:
    """Ids of the chunks to read, best first."""
    if rule.formula == "seed":
        # By heat alone, as its authors have it: weights of 0 must not make the choice blind.
        heat = {hit.chunk_id: hit.raw.get("heat_score", hit.score) for hit in hits}
        kept = sorted(kept, key=lambda hit: (-heat[hit.chunk_id], hit.path, hit.ordinal))
    return [hit.chunk_id for hit in kept[: rule.depth]]


def _blended(
    hits: Sequence[Hit], read: Sequence[int], raw: Mapping[int, float], rule: RerankRule
) -> list[Hit]:
    by_id = {hit.chunk_id: hit for hit in hits}
    first = {chunk_id: by_id[chunk_id].score for chunk_id in raw}
    # The last one read: with phrases, those that hold one may have less and still come first.
    low = first[read[-1]]
    terms = combine.blend(first, raw, low=low, alpha=rule.alpha)
    mixed = []
    for hit in hits:
        if hit.chunk_id in raw:
            # Every term shrinks alike, so that what the graph gave can still be told from the sum.
            shrunk = {name: (1.0 - rule.alpha) * value for name, value in hit.terms.items()}
            shrunk = {name: value for name, value in shrunk.items() if value}
            hit = replace(
                hit,
                score=(1.0 - rule.alpha) * hit.score + terms[hit.chunk_id],
                terms={**shrunk, "rerank": terms[hit.chunk_id]},
                raw={**hit.raw, "rerank_score": raw[hit.chunk_id]},
            )
        mixed.append(hit)
    return mixed


def _three_terms(hits: Sequence[Hit], raw: Mapping[int, float], rule: RerankRule) -> list[Hit]:
    by_id = {hit.chunk_id: hit for hit in hits}
    read = [by_id[chunk_id] for chunk_id in sorted(raw)]
    parts = {
        "rerank": dict(raw),
        "heat": {hit.chunk_id: hit.raw.get("heat_score", hit.score) for hit in read},
        "vector": {hit.chunk_id: hit.raw["cosine"] for hit in read if "cosine" in hit.raw},
    }
    weights = {"rerank": rule.alpha, "heat": rule.beta_heat, "vector": rule.gamma_vector}
    terms = combine.weigh(parts, weights)
    # What was not read has a sum without the reranker: it follows below, in its own order.
    lowest = min(fusion.total(found) for found in terms.values())
    highest = max((hit.score for hit in hits if hit.chunk_id not in raw), default=lowest)
    below = min(0.0, lowest - highest)
    mixed = []
    for hit in hits:
        if hit.chunk_id in raw:
            found = terms[hit.chunk_id]
            hit = replace(
                hit,
                score=fusion.total(found),
                terms=found,
                raw={**hit.raw, "rerank_score": raw[hit.chunk_id]},
            )
        elif below:
            hit = replace(hit, score=hit.score + below, terms={**hit.terms, "rerank": below})
        mixed.append(hit)
    return mixed

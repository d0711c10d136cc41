"""First stage: candidates from both sides with their true scores on each."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragx.algo.lexical import LexicalQuery
from ragx.store.base import Reader

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["COLUMN_WEIGHTS", "Seeds", "find_seeds", "lexical_match"]

# Of body, heading, path and symbols in BM25 (research/first-stage.md).
COLUMN_WEIGHTS = (1.0, 0.5, 1.0, 0.5)
_MAX_TERMS = 400
_DEFINITION_WEIGHTS = (0.0, 0.0, 0.0, 1.0)
_DEFINITION_DEPTH = 50
_PHRASE_DEPTH = 500  # all that hold it come first


@dataclass(frozen=True, slots=True)
class Seeds:
    """Candidates of one query.

    Args:
        cosines, bm25: score of each candidate on the side that knows it, over the union of both
            shortlists: a candidate of one side has its score on the other, too.
        vector_ranking, lexical_ranking: the shortlists, best first.
        nearest: cosines of the vector side's shortlist, also of what the query leaves out.
        named: chunks that hold a phrase of the query, or define something of a name like it, or
            that the caller named.
        exhausted: neither side has more to give at a greater depth.
    """

    cosines: dict[int, float]
    bm25: dict[int, float]
    vector_ranking: tuple[int, ...]
    lexical_ranking: tuple[int, ...]
    nearest: tuple[float, ...]
    named: tuple[int, ...]
    exhausted: bool

    @property
    def candidates(self) -> set[int]:
        """Every chunk on any shortlist."""
        return {*self.vector_ranking, *self.lexical_ranking, *self.named}


def lexical_match(reader: Reader, query: LexicalQuery) -> str:
    """The full-text expression to rank by: all of a query's alternatives, or its rarest.

    Ranking takes time by terms and matches, so of a very long query the rarest terms decide.
    """
    terms = query.alternatives
    if len(terms) > _MAX_TERMS:
        terms = tuple(reader.rarest(terms, _MAX_TERMS))
    return " OR ".join(terms)


def find_seeds(
    reader: Reader,
    query: LexicalQuery,
    match: str,
    vector: NDArray[np.float32] | None,
    *,
    depth: int,
    weights: Sequence[float] = COLUMN_WEIGHTS,
    definitions: bool = False,
    others: Collection[int] = (),
) -> Seeds:
    """Best `depth` chunks of each side and the scores of all that are found.

    Args:
        vector: (d,) float32 unit query vector; None leaves the vector side out.
        match: what the lexical side ranks by; "" leaves it out.
        definitions: whether to look for what the query names among defined names alone, too.
        others: chunks that are candidates whatever the query says to them.
    """
    lexical = dict(reader.lexical(match, depth=depth, weights=weights, exclude=query.exclude))
    named = [
        chunk_id
        for phrase in query.phrases
        for chunk_id, _ in reader.lexical(
            phrase, depth=_PHRASE_DEPTH, weights=weights, exclude=query.exclude
        )
    ]
    if match and definitions:
        named += [
            chunk_id
            for chunk_id, _ in reader.lexical(
                f"symbols : ({match})",
                depth=_DEFINITION_DEPTH,
                weights=_DEFINITION_WEIGHTS,
                exclude=query.exclude,
            )
        ]
    near: dict[int, float] = {}
    nearest: list[float] = []
    if vector is not None:
        found = reader.vector(vector, depth=depth)
        nearest = [score for _, score in found]
        excluded = reader.matching(query.exclude, [chunk_id for chunk_id, _ in found])
        near = {chunk_id: score for chunk_id, score in found if chunk_id not in excluded}
    named += others
    candidates = {*near, *lexical, *named}
    cosines, bm25 = dict(near), dict(lexical)
    if vector is not None:
        cosines |= reader.vector_scores(vector, candidates - near.keys())
    if match:
        bm25 |= reader.lexical_scores(match, candidates - lexical.keys(), weights=weights)
    return Seeds(
        cosines=cosines,
        bm25=bm25,
        vector_ranking=tuple(near),
        lexical_ranking=tuple(lexical),
        nearest=tuple(nearest),
        named=tuple(named),
        exhausted=len(nearest) < depth and len(lexical) < depth,
    )

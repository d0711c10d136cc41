"""Fusion, ranking and folding over arbitrary scores."""

from __future__ import annotations

import itertools
import math

from hypothesis import given, settings
from hypothesis import strategies as st

from ragx.algo.fold import CHUNKS_PER_FILE, fold
from ragx.algo.fusion import (
    reciprocal_ranks,
    scale_by_maximum,
    scale_by_range,
    total,
    weighted_sum,
)
from ragx.algo.ordering import rank_hits
from ragx.types import Hit

keys = st.integers(0, 30)
cosines = st.dictionaries(keys, st.floats(-1, 1, width=32), max_size=12)
bm25 = st.dictionaries(keys, st.floats(0, 50, width=32), max_size=12)
weights = st.floats(0, 1)
# Few distinct scores, so that ties are common.
hits = st.lists(
    st.builds(
        Hit,
        chunk_id=st.integers(0, 10**6),
        path=st.sampled_from(["a", "a/b", "b", "c", "ä", "A"]),
        ordinal=st.integers(0, 5),
        score=st.sampled_from([0.0, 0.1, 0.1 + 1e-12, 0.5, 1.0]),
    ),
    max_size=25,
    unique_by=lambda hit: (hit.path, hit.ordinal),
)


@given(cosines, bm25, weights, st.randoms(use_true_random=False))
def test_the_order_of_candidates_never_matters(vector, lexical, weight, random) -> None:
    shuffled = []
    for side in (vector, lexical):
        items = list(side.items())
        random.shuffle(items)
        shuffled.append(dict(items))
    a = weighted_sum(vector, lexical, vector_weight=lambda _: weight)
    b = weighted_sum(*shuffled, vector_weight=lambda _: weight)
    assert a == b
    assert {key: total(terms) for key, terms in a.items()} == {
        key: total(dict(reversed(list(terms.items())))) for key, terms in b.items()
    }


@given(cosines, bm25, weights)
def test_scores_stay_between_zero_and_one_and_cover_both_sides(vector, lexical, weight) -> None:
    fused = weighted_sum(vector, lexical, vector_weight=lambda _: weight)
    assert fused.keys() == vector.keys() | lexical.keys()
    assert all(-1e-9 <= total(terms) <= 1 + 1e-9 for terms in fused.values())


@given(bm25)
def test_scaling_keeps_the_order(scores) -> None:
    for scale in (scale_by_range, scale_by_maximum):
        scaled = scale(scores)
        assert scaled.keys() == scores.keys()
        for one, other in zip(scores, list(scores)[1:], strict=False):
            if scores[one] >= scores[other]:
                assert scaled[one] >= scaled[other]
        assert not scores or max(scaled.values()) in (0.0, 1.0)


@given(st.lists(keys, unique=True, max_size=12), st.lists(keys, unique=True, max_size=12))
def test_reciprocal_ranks_against_a_direct_sum(vector, lexical) -> None:
    fused = reciprocal_ranks({"vector": vector, "lexical": lexical}, rrf_k=60)
    swapped = reciprocal_ranks({"lexical": lexical, "vector": vector}, rrf_k=60)
    for key in {*vector, *lexical}:
        expected = math.fsum(
            1 / (60 + ranking.index(key) + 1) for ranking in (lexical, vector) if key in ranking
        )
        assert total(fused[key]) == total(swapped[key]) == expected
    assert fused.keys() == {*vector, *lexical}


@given(hits, st.randoms(use_true_random=False))
def test_ranking_is_a_total_order(found, random) -> None:
    ranked = rank_hits(found)
    random.shuffle(found)
    assert rank_hits(found) == ranked
    for one, other in itertools.pairwise(ranked):
        assert (one.score, other.path, other.ordinal) > (other.score, one.path, one.ordinal) or (
            one.score == other.score and (one.path, one.ordinal) < (other.path, other.ordinal)
        )


@settings(max_examples=200)
@given(hits, st.integers(1, 8), st.sampled_from([0.0, 0.25, 1.0]))
def test_folding_against_a_direct_definition(found, top, weight) -> None:
    ranking = rank_hits(found)
    entries = fold(ranking, top=top, fold_weight=weight)
    paths = list(dict.fromkeys(hit.path for hit in ranking))
    assert {entry.path for entry in entries} == set(paths[:top])
    # The stretch ends where the first file beyond `top` begins.
    beyond = [i for i, hit in enumerate(ranking) if hit.path in paths[top:]]
    stretch = ranking[: beyond[0]] if beyond else ranking
    for entry in entries:
        own = [hit for hit in stretch if hit.path == entry.path][:CHUNKS_PER_FILE]
        assert entry.hits == tuple(own)
        assert entry.score == math.fsum([own[0].score, *(weight * hit.score for hit in own[1:])])
    order = [(-entry.score, entry.path) for entry in entries]
    assert order == sorted(order)

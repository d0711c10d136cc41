"""Fusion, ranking and folding over arbitrary scores."""

from __future__ import annotations

import itertools
import math

from hypothesis import given, settings
from hypothesis import strategies as st

from ragx.algo.fold import CHUNKS_PER_FILE, fold
from ragx.algo.fusion import (
    Scales,
    reciprocal_ranks,
    scale_by_range,
    total,
    trust,
    weighted_sum,
)
from ragx.algo.ordering import rank_hits
from ragx.types import Hit

keys = st.integers(0, 30)
cosines = st.dictionaries(keys, st.floats(-1, 1, width=32), max_size=12)
bm25 = st.dictionaries(keys, st.floats(0, 50, width=32), max_size=12)
weights = st.floats(0, 1)
scales = st.builds(
    Scales, floor=st.floats(-1, 1), cosine_unit=st.floats(0.05, 2), bm25_unit=st.floats(0.1, 50)
)
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


@given(cosines, bm25, weights, scales, st.randoms(use_true_random=False))
def test_the_order_of_candidates_never_matters(vector, lexical, weight, scales, random) -> None:
    shuffled = []
    for side in (vector, lexical):
        items = list(side.items())
        random.shuffle(items)
        shuffled.append(dict(items))
    a = weighted_sum(vector, lexical, scales=scales, vector_weight=lambda _: weight)
    b = weighted_sum(*shuffled, scales=scales, vector_weight=lambda _: weight)
    assert a == b
    assert {key: total(terms) for key, terms in a.items()} == {
        key: total(dict(reversed(list(terms.items())))) for key, terms in b.items()
    }


@given(cosines, bm25, weights, scales)
def test_the_best_candidate_has_one_and_both_sides_are_covered(
    vector, lexical, weight, scales
) -> None:
    fused = weighted_sum(vector, lexical, scales=scales, vector_weight=lambda _: weight)
    assert fused.keys() == vector.keys() | lexical.keys()
    scores = [total(terms) for terms in fused.values()]
    assert all(-1 - 1e-9 <= score <= 1 + 1e-9 for score in scores)
    assert not scores or max(scores) <= 0 or math.isclose(max(scores), 1)


@given(cosines, bm25, weights, scales, st.floats(-1, 1))
def test_the_floor_moves_all_candidates_with_a_vector_alike(
    vector, lexical, weight, scales, floor
) -> None:
    both = {key: score for key, score in lexical.items() if key in vector}
    one = weighted_sum(vector, both, scales=scales, vector_weight=lambda _: weight)
    other = weighted_sum(
        vector,
        both,
        scales=Scales(floor, scales.cosine_unit, scales.bm25_unit),
        vector_weight=lambda _: weight,
    )
    for a, b in itertools.combinations(vector, 2):
        clipped = any(total(fused[key]) <= -1 + 1e-9 for fused in (one, other) for key in (a, b))
        if not clipped and total(one[a]) > total(one[b]) + 1e-6:
            assert total(other[a]) >= total(other[b]) - 1e-6


@given(bm25)
def test_scaling_keeps_the_order(scores) -> None:
    scaled = scale_by_range(scores)
    assert scaled.keys() == scores.keys()
    for one, other in zip(scores, list(scores)[1:], strict=False):
        if scores[one] >= scores[other]:
            assert scaled[one] >= scaled[other]
    assert not scores or max(scaled.values()) == 1.0


@given(st.lists(keys, unique=True), st.lists(keys, unique=True), bm25)
def test_trust_is_a_share_and_full_for_equal_rankings(vector, lexical, scores) -> None:
    assert 0.0 <= trust(vector, lexical, scores) <= 1.0
    assert trust(lexical, lexical, scores) == 1.0


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

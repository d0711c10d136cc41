"""Two rankings into one: expected values are the formulas themselves."""

from __future__ import annotations

import itertools
import math

import pytest

from ragx.algo.fusion import (
    Scales,
    bm25_unit,
    cosine_unit,
    reciprocal_ranks,
    scale_by_range,
    total,
    trust,
    weighted_sum,
    with_others,
)

SCALES = Scales(floor=0.1, cosine_unit=0.5, bm25_unit=20.0)


def constant(weight: float):
    return lambda _: weight


def test_empty_gives_empty() -> None:
    assert scale_by_range({}) == {}
    assert weighted_sum({}, {}, scales=SCALES, vector_weight=constant(0.5)) == {}
    assert reciprocal_ranks({}, rrf_k=60) == {}
    assert reciprocal_ranks({"vector": (), "lexical": ()}, rrf_k=60) == {}
    assert total({}) == 0.0


def test_range_puts_worst_at_zero_and_best_at_one() -> None:
    scaled = scale_by_range({1: -0.2, 2: 0.6, 3: 0.1})
    assert scaled == {1: 0.0, 2: 1.0, 3: (0.1 - -0.2) / (0.6 - -0.2)}


@pytest.mark.parametrize("score", [0.7, 0.0, -0.3])
def test_equal_scores_all_count_fully(score: float) -> None:
    assert scale_by_range({4: score}) == {4: 1.0}
    assert scale_by_range({4: score, 9: score}) == {4: 1.0, 9: 1.0}


def test_weighted_sum_by_hand() -> None:
    fused = weighted_sum(
        {1: 0.9, 2: 0.5, 3: 0.1}, {2: 8.0, 4: 2.0}, scales=SCALES, vector_weight=constant(0.6)
    )
    best = 0.6 * (0.9 - 0.1) / 0.5
    assert fused[1] == {"vector": best / best, "lexical": 0.0}
    assert fused[2] == {
        "vector": 0.6 * ((0.5 - 0.1) / 0.5) / best,
        "lexical": (1.0 - 0.6) * (8.0 / 20.0) / best,
    }
    assert fused[3] == {"vector": 0.0, "lexical": 0.0}
    assert fused[4] == {"vector": 0.0, "lexical": (1.0 - 0.6) * (2.0 / 20.0) / best}
    assert total(fused[2]) == math.fsum(fused[2].values())


def test_much_rare_evidence_outweighs_the_vectors_and_little_does_not() -> None:
    cosines = {1: 0.6, 2: 0.2}
    strong = weighted_sum(cosines, {2: 40.0}, scales=SCALES, vector_weight=constant(0.5))
    weak = weighted_sum(cosines, {2: 4.0}, scales=SCALES, vector_weight=constant(0.5))
    assert total(strong[2]) > total(strong[1])
    assert total(weak[1]) > total(weak[2])


def test_a_candidate_below_the_floor_counts_against_and_one_without_a_vector_does_not() -> None:
    fused = weighted_sum({1: 0.0, 2: 0.4}, {3: 1.0}, scales=SCALES, vector_weight=constant(0.5))
    assert fused[1]["vector"] < 0.0 == fused[3]["vector"]


def test_the_weight_may_follow_the_candidate() -> None:
    weight_of = {1: 0.25, 2: 1.0}.__getitem__
    fused = weighted_sum(
        {1: 0.6, 2: 0.6}, {1: 20.0, 2: 20.0}, scales=SCALES, vector_weight=weight_of
    )
    assert fused[1] == {"vector": 0.25, "lexical": 0.75}
    assert fused[2] == {"vector": 1.0, "lexical": 0.0}


@pytest.mark.parametrize("weight", [0.0, 1.0])
def test_an_extreme_weight_is_one_side_alone(weight: float) -> None:
    cosines, bm25 = {1: 0.2, 2: 0.8, 3: 0.4}, {1: 3.0, 3: 9.0}
    fused = weighted_sum(cosines, bm25, scales=SCALES, vector_weight=constant(weight))
    alone = cosines if weight else {1: 3.0, 2: 0.0, 3: 9.0}
    assert sorted(fused, key=lambda key: total(fused[key])) == sorted(alone, key=alone.get)
    assert max(map(total, fused.values())) == 1.0


def test_a_cosine_stands_out_by_the_spread_of_the_corpus() -> None:
    assert cosine_unit(0.1, 10**9) == pytest.approx(4 * 0.1)
    # A few pairs say little: what is usual counts with them.
    assert cosine_unit(0.0, 0) == pytest.approx(4 * 0.12)
    assert cosine_unit(0.3, 100) == pytest.approx(4 * math.sqrt((0.3**2 + 0.12**2) / 2))
    assert cosine_unit(0.0, 10**9) == 0.05  # copies of one text do not make a cosine infinite


def test_the_unit_of_words_is_their_rarity_in_the_corpus() -> None:
    assert bm25_unit(1000, best=3.0) == 3.75 * math.log((1000 - 0.5) / 1.5)
    # In two chunks no word is rare: then the best match is the yardstick.
    assert bm25_unit(2, best=1e-6) == 1e-6
    assert bm25_unit(0, best=0.0) == 1.0


def test_vectors_are_believed_if_what_they_find_holds_the_words() -> None:
    bm25 = {1: 9.0, 2: 6.0, 3: 1.5}
    assert trust((1, 2), (1, 2), bm25) == 1.0
    # 1.5 and nothing against 9 and 6: a tenth, a third of what suits.
    assert trust((3, 4), (1, 2), bm25) == pytest.approx((0.1 / 0.3) ** 2)
    assert trust((4, 5), (1, 2), bm25) == 0.0
    assert trust((4, 5), (), {}) == 1.0  # nothing to compare with
    assert trust((), (1,), bm25) == 1.0


def test_trust_looks_at_the_first_ten_of_each() -> None:
    words = tuple(range(100))
    bm25 = dict.fromkeys(words[:10], 5.0) | dict.fromkeys(words[10:], 1e-3)
    assert trust(words[10:], words, bm25) < 1e-6
    assert trust((*words[:10], *range(200, 300)), words, bm25) == 1.0


def test_reciprocal_ranks_by_hand() -> None:
    fused = reciprocal_ranks({"vector": (7, 8, 9), "lexical": (9, 7)}, rrf_k=60)
    assert fused == {
        7: {"vector": 1 / (60 + 1), "lexical": 1 / (60 + 2)},
        8: {"vector": 1 / (60 + 2)},
        9: {"vector": 1 / (60 + 3), "lexical": 1 / (60 + 1)},
    }
    assert total(fused[9]) == math.fsum([1 / (60 + 3), 1 / (60 + 1)])


def test_ranks_count_from_one() -> None:
    assert reciprocal_ranks({"only": (5,)}, rrf_k=0) == {5: {"only": 1.0}}


def test_a_total_does_not_depend_on_the_order_of_its_terms() -> None:
    parts = [("a", 0.1), ("b", 0.2), ("c", 0.3), ("d", 1e16), ("e", -1e16)]
    totals = {total(dict(order)) for order in itertools.permutations(parts)}
    assert totals == {math.fsum([0.1, 0.2, 0.3])}


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2), (1, 2, 0)])
def test_order_of_candidates_has_no_influence(order: tuple[int, ...]) -> None:
    cosines, bm25 = [(1, 0.31), (2, 0.77), (3, 0.11)], [(4, 2.5), (3, 7.25), (2, 1.0)]
    expected = weighted_sum(dict(cosines), dict(bm25), scales=SCALES, vector_weight=constant(0.55))
    shuffled = weighted_sum(
        dict([cosines[i] for i in order]),
        dict([bm25[i] for i in order]),
        scales=SCALES,
        vector_weight=constant(0.55),
    )
    assert shuffled == expected


@pytest.mark.parametrize("order", [(1, 2, 3), (3, 2, 1), (2, 1, 3), (2, 3, 1)])
def test_nan_is_an_error_in_any_place(order: tuple[int, ...]) -> None:
    scores = {1: 0.5, 2: math.nan, 3: 0.25}
    scores = {key: scores[key] for key in order}
    with pytest.raises(ValueError, match="not a number"):
        scale_by_range(scores)
    for sides in ((scores, {}), ({}, scores)):
        with pytest.raises(ValueError, match="not a number"):
            weighted_sum(*sides, scales=SCALES, vector_weight=constant(0.5))


def test_other_wordings_add_what_they_find_on_the_average() -> None:
    fused = {1: {"vector": 0.6, "lexical": 0.4}, 2: {"vector": 0.5}}
    others = [{2: 1.0, 3: 0.6}, {2: 0.4}]
    added = with_others(fused, others, weight=0.5, to_one=False)
    assert added[1] == fused[1]
    assert added[2] == pytest.approx({"vector": 0.5, "expansion": 0.5 * (1.0 + 0.4) / 2})
    assert added[3] == pytest.approx({"lexical": 0.0, "expansion": 0.5 * 0.6 / 2})


def test_other_wordings_leave_the_best_candidate_at_1() -> None:
    fused = {1: {"vector": 0.6, "lexical": 0.4}, 2: {"vector": 0.5}}
    added = with_others(fused, [{1: 1.0, 2: 0.2}], weight=0.25, to_one=True)
    assert total(added[1]) == pytest.approx(1.0)
    assert total(added[2]) == pytest.approx((0.5 + 0.25 * 0.2) / 1.25)


def test_wordings_that_find_nothing_change_nothing() -> None:
    assert with_others({}, [{}], weight=0.5, to_one=True) == {}
    fused = {1: {"vector": 0.0}}
    assert with_others(fused, [{}], weight=0.5, to_one=True) == fused

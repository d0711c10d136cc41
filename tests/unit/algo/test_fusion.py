"""Two rankings into one: expected values are the formulas themselves."""

from __future__ import annotations

import itertools
import math

import pytest

from ragx.algo.fusion import (
    reciprocal_ranks,
    scale_by_maximum,
    scale_by_range,
    total,
    weighted_sum,
)


def constant(weight: float):
    return lambda _: weight


def test_empty_gives_empty() -> None:
    assert scale_by_range({}) == {}
    assert scale_by_maximum({}) == {}
    assert weighted_sum({}, {}, vector_weight=constant(0.5)) == {}
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


def test_maximum_keeps_zero_at_zero() -> None:
    assert scale_by_maximum({1: 4.0, 2: 1.0, 3: 0.0}) == {1: 1.0, 2: 1.0 / 4.0, 3: 0.0}
    assert scale_by_maximum({1: 0.0, 2: 0.0}) == {1: 0.0, 2: 0.0}


def test_weighted_sum_by_hand() -> None:
    fused = weighted_sum({1: 0.9, 2: 0.5, 3: 0.3}, {2: 8.0, 4: 2.0}, vector_weight=constant(0.6))
    assert fused == {
        1: {"vector": 0.6 * 1.0, "lexical": 0.0},
        2: {"vector": 0.6 * ((0.5 - 0.3) / (0.9 - 0.3)), "lexical": (1.0 - 0.6) * 1.0},
        3: {"vector": 0.0, "lexical": 0.0},
        4: {"vector": 0.0, "lexical": (1.0 - 0.6) * (2.0 / 8.0)},
    }
    assert total(fused[2]) == math.fsum(fused[2].values())


def test_the_weight_may_follow_the_candidate() -> None:
    fused = weighted_sum({1: 1.0, 2: 1.0}, {1: 1.0, 2: 1.0}, vector_weight={1: 0.25, 2: 1.0}.get)
    assert fused[1] == {"vector": 0.25, "lexical": 0.75}
    assert fused[2] == {"vector": 1.0, "lexical": 0.0}


@pytest.mark.parametrize("weight", [0.0, 1.0])
def test_an_extreme_weight_is_one_side_alone(weight: float) -> None:
    cosines, bm25 = {1: 0.2, 2: 0.8, 3: 0.4}, {1: 3.0, 3: 9.0}
    fused = weighted_sum(cosines, bm25, vector_weight=constant(weight))
    alone = scale_by_range(cosines) if weight else scale_by_maximum(bm25)
    assert {key: total(terms) for key, terms in fused.items()} == {
        key: alone.get(key, 0.0) for key in fused
    }


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
    expected = weighted_sum(dict(cosines), dict(bm25), vector_weight=constant(0.55))
    shuffled = weighted_sum(
        dict([cosines[i] for i in order]),
        dict([bm25[i] for i in order]),
        vector_weight=constant(0.55),
    )
    assert shuffled == expected


@pytest.mark.parametrize("scale", [scale_by_range, scale_by_maximum])
@pytest.mark.parametrize("order", [(1, 2, 3), (3, 2, 1), (2, 1, 3), (2, 3, 1)])
def test_nan_is_an_error_in_any_place(scale, order: tuple[int, ...]) -> None:
    scores = {1: 0.5, 2: math.nan, 3: 0.25}
    with pytest.raises(ValueError, match="not a number"):
        scale({key: scores[key] for key in order})

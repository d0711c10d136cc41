"""Scores of two stages on one scale."""

from __future__ import annotations

import math

import pytest

from ragx.algo.combine import blend, lay_onto, weigh


def test_scores_are_laid_onto_a_range_in_their_order() -> None:
    assert lay_onto({1: -8.0, 2: 4.0, 3: -2.0}, 0.2, 1.0) == pytest.approx(
        {1: 0.2, 2: 1.0, 3: 0.2 + 0.8 * (-2.0 + 8.0) / 12.0}
    )
    ends = lay_onto({1: 0.1, 2: 0.3}, 0.1, 0.7)
    assert (ends[1], ends[2]) == (0.1, 0.7)  # exactly


def test_scores_that_say_the_same_of_all_say_nothing() -> None:
    assert lay_onto({1: 3.0, 2: 3.0}, 0.0, 1.0) == {}
    assert lay_onto({}, 0.0, 1.0) == {}
    first = {1: 0.9, 2: 0.4}
    assert blend(first, {1: 3.0, 2: 3.0}, low=0.4, alpha=0.6) == {1: 0.6 * 0.9, 2: 0.6 * 0.4}


def test_a_blend_keeps_to_the_range_of_the_first_stage() -> None:
    first = {1: 1.0, 2: 0.6, 3: 0.2}
    terms = blend(first, {1: -5.0, 2: 0.0, 3: 5.0}, low=0.2, alpha=0.6)
    assert terms == pytest.approx({1: 0.6 * 0.2, 2: 0.6 * 0.6, 3: 0.6 * 1.0})
    mixed = {key: 0.4 * first[key] + terms[key] for key in first}
    assert min(mixed.values()) >= 0.2
    assert max(mixed.values()) <= 1.0


def test_the_scale_of_a_reranker_makes_no_difference() -> None:
    first = {1: 1.0, 2: 0.6, 3: 0.2}
    logits = {1: -5.0, 2: 0.0, 3: 5.0}
    moved = {key: 0.01 * value + 7.0 for key, value in logits.items()}
    assert blend(first, moved, low=0.2, alpha=0.3) == pytest.approx(
        blend(first, logits, low=0.2, alpha=0.3)
    )


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        blend({1: 1.0, 2: 0.5}, {1: bad, 2: 0.0}, low=0.5, alpha=0.6)
    with pytest.raises(ValueError, match="finite"):
        weigh({"rerank": {1: bad}}, {"rerank": 1.0})


def test_the_three_term_sum_scales_each_part_over_the_candidates() -> None:
    parts = {
        "rerank": {1: -1.0, 2: 3.0, 3: 1.0},
        "heat": {1: 0.8, 2: 0.4, 3: 0.6},
        "vector": {1: 0.7, 2: 0.2},
    }
    weights = {"rerank": 0.6, "heat": 0.25, "vector": 0.15}
    terms = weigh(parts, weights)
    assert terms[1] == pytest.approx({"rerank": 0.0, "heat": 0.25, "vector": 0.15})
    assert terms[2] == pytest.approx({"rerank": 0.6, "heat": 0.0, "vector": 0.0})
    assert terms[3] == pytest.approx({"rerank": 0.3, "heat": 0.125, "vector": 0.0})


def test_weights_are_scaled_to_one_and_may_all_be_nothing() -> None:
    parts = {"rerank": {1: 0.0, 2: 1.0}, "heat": {1: 1.0, 2: 0.0}}
    assert weigh(parts, {"rerank": 3.0, "heat": 1.0})[2] == {"rerank": 0.75, "heat": 0.0}
    assert weigh(parts, {"rerank": 0.0, "heat": 0.0}) == {
        1: {"rerank": 0.0, "heat": 0.0},
        2: {"rerank": 0.0, "heat": 0.0},
    }
    assert weigh({"rerank": {}}, {"rerank": 1.0}) == {}

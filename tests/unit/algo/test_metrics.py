"""Metrics of one ranking, with the expected values as formulas."""

from __future__ import annotations

from math import log2

import pytest

from ragx.algo.metrics import hit_ranks, ndcg, recall, reciprocal_rank

RANKED = ["a", "x", "b", "y", "c"]


def test_recall_is_the_share_of_what_is_relevant() -> None:
    grades = {"a": 1, "b": 2, "c": 1, "missing": 1, "judged-bad": 0}
    assert recall(RANKED, grades, 1) == 1 / 4
    assert recall(RANKED, grades, 3) == 2 / 4
    assert recall(RANKED, grades, 100) == 3 / 4


def test_reciprocal_rank_looks_at_the_first_that_is_relevant() -> None:
    assert reciprocal_rank(RANKED, {"b": 1, "c": 5}) == 1 / 3
    assert reciprocal_rank(RANKED, {"b": 1}, 3) == 1 / 3
    assert reciprocal_rank(RANKED, {"b": 1}, 2) == 0
    assert reciprocal_rank(RANKED, {"missing": 1}) == 0


def test_ndcg_takes_the_grade_as_gain() -> None:
    grades = {"a": 1, "b": 3, "missing": 2}
    found = 1 / log2(1 + 1) + 3 / log2(3 + 1)
    best = 3 / log2(1 + 1) + 2 / log2(2 + 1) + 1 / log2(3 + 1)
    assert ndcg(RANKED, grades, 10) == pytest.approx(found / best, abs=1e-15)
    assert ndcg(RANKED, grades, 1) == pytest.approx(1 / 3, abs=1e-15)


def test_the_best_possible_is_cut_at_the_same_rank() -> None:
    assert ndcg(["a", "b"], {"a": 1, "b": 1, "c": 1}, 2) == 1.0


def test_what_is_graded_below_zero_gains_nothing_and_costs_nothing() -> None:
    assert ndcg(["bad", "a"], {"a": 1, "bad": -2}, 10) == pytest.approx(1 / log2(3), abs=1e-15)
    assert hit_ranks(["bad", "a"], {"a": 1, "bad": -2}) == [2]


@pytest.mark.parametrize("grades", [{}, {"a": 0}, {"a": -1}])
def test_without_anything_relevant_all_is_zero(grades: dict[str, int]) -> None:
    assert recall(RANKED, grades, 5) == 0
    assert reciprocal_rank(RANKED, grades) == 0
    assert ndcg(RANKED, grades, 5) == 0
    assert hit_ranks(RANKED, grades) == []


def test_an_empty_ranking_scores_zero() -> None:
    assert recall([], {"a": 1}, 5) == 0
    assert reciprocal_rank([], {"a": 1}) == 0
    assert ndcg([], {"a": 1}, 5) == 0


def test_fractions_of_a_grade_count() -> None:
    best = 1 / log2(2) + 0.5 / log2(3)
    assert ndcg(["b"], {"a": 1, "b": 0.5}, 10) == pytest.approx(0.5 / best, abs=1e-15)
    assert recall(["b"], {"a": 1, "b": 0.5}, 10) == 1 / 2

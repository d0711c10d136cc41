"""The paired randomisation test, and the topics that two configurations win."""

from __future__ import annotations

import itertools
import random

import pytest

from ragx.evaluation.compare import DRAWS, Pair, compare, randomisation_p


def exact_p(differences: list[float]) -> float:
    """Share of all assignments of signs whose sum lies at least as far from zero."""
    observed = abs(sum(differences))
    sums = [
        abs(sum(sign * item for sign, item in zip(signs, differences, strict=True)))
        for signs in itertools.product((1, -1), repeat=len(differences))
    ]
    return sum(value >= observed - 1e-12 for value in sums) / len(sums)


@pytest.mark.parametrize("seed", range(5))
def test_p_is_that_of_all_assignments_of_signs(seed: int) -> None:
    draw = random.Random(seed)
    differences = [draw.choice([0.0, 0.1, 0.25, -0.1, 0.5]) for _ in range(12)]
    # Four standard errors of a share of 10,000 draws, and what the one more draw adds.
    assert randomisation_p(differences) == pytest.approx(
        exact_p(differences), abs=4 * (0.25 / DRAWS) ** 0.5 + 1 / DRAWS
    )


def test_no_difference_is_no_evidence() -> None:
    assert randomisation_p([]) == 1.0
    assert randomisation_p([0.0, 0.0]) == 1.0
    # Both signs of a single difference lie equally far from zero.
    assert randomisation_p([0.3]) == 1.0


def test_the_same_lead_everywhere_is_evidence() -> None:
    assert randomisation_p([0.1] * 40) == 1 / (DRAWS + 1)
    assert randomisation_p([0.1] * 20 + [-0.1] * 20) == 1.0


def test_p_has_no_direction_and_no_memory() -> None:
    differences = [0.1, 0.2, -0.05, 0.3, 0.0, 0.2]
    p = randomisation_p(differences)
    assert p == randomisation_p(differences)
    assert p == randomisation_p([-item for item in differences])
    assert p == randomisation_p([*differences, 0.0, 0.0])
    assert 0 < p < 1


def test_more_topics_than_one_block_holds() -> None:
    draw = random.Random(1)
    assert randomisation_p([draw.gauss(0.0, 1.0) for _ in range(3000)]) > 1 / (DRAWS + 1)


def test_topics_won_and_lost_are_sorted_by_size() -> None:
    one = {"a": 0.5, "b": 0.2, "c": 1.0, "d": 0.3, "e": 0.0}
    other = {"a": 0.75, "b": 0.7, "c": 0.0, "d": 0.3, "e": 0.25}
    found = compare("mrr", "old", "new", one, other)
    assert (found.metric, found.one, found.other) == ("mrr", "old", "new")
    assert found.won == (Pair("b", 0.2, 0.7), Pair("a", 0.5, 0.75), Pair("e", 0.0, 0.25))
    assert found.lost == (Pair("c", 1.0, 0.0),)
    assert found.tied == 1
    assert found.mean_one == pytest.approx((0.5 + 0.2 + 1.0 + 0.3 + 0.0) / 5)
    assert found.mean_other == pytest.approx((0.75 + 0.7 + 0.0 + 0.3 + 0.25) / 5)
    assert found.difference == found.mean_other - found.mean_one
    assert found.p == randomisation_p([other[name] - one[name] for name in one])


def test_two_configurations_that_agree() -> None:
    found = compare("mrr", "old", "new", {"a": 0.5}, {"a": 0.5})
    assert (found.difference, found.p, found.won, found.lost, found.tied) == (0.0, 1.0, (), (), 1)


@pytest.mark.parametrize(("one", "other"), [({}, {}), ({"a": 1.0}, {"b": 1.0})])
def test_topics_must_be_the_same(one: dict[str, float], other: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="same topics"):
        compare("mrr", "old", "new", one, other)

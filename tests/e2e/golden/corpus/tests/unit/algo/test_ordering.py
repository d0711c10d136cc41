"""The one tie rule."""

from __future__ import annotations

import itertools
import math

import pytest

from ragx.algo.ordering import hit_key, rank_hits
from ragx.types import Hit


def hit(path: str, ordinal: int, score: float) -> Hit:
    return Hit(hash((path, ordinal)) & 0xFFFF, path, ordinal, score)


def test_nothing_to_rank() -> None:
    assert rank_hits([]) == []
    assert rank_hits(iter(())) == []


def test_score_then_path_then_position_whatever_order_they_came_in() -> None:
    expected = [
        hit("z.md", 7, 0.9),
        hit("a.md", 2, 0.5),
        hit("a.md", 10, 0.5),
        hit("a/b.md", 0, 0.5),
        hit("b.md", 0, 0.5),
        hit("a.md", 0, 0.1),
    ]
    for order in itertools.permutations(expected):
        assert rank_hits(order) == expected


def test_paths_compare_as_text_and_positions_as_numbers() -> None:
    assert hit_key(hit("B.md", 0, 1.0)) < hit_key(hit("a.md", 0, 1.0))
    assert hit_key(hit("a.md", 9, 1.0)) < hit_key(hit("a.md", 10, 1.0))


def test_infinities_and_signed_zero_have_a_place() -> None:
    ranked = rank_hits(
        [
            hit("c", 0, -math.inf),
            hit("b", 0, -0.0),
            hit("a", 0, 0.0),
            hit("d", 0, math.inf),
        ]
    )
    assert [entry.path for entry in ranked] == ["d", "a", "b", "c"]


@pytest.mark.parametrize("position", [0, 1, 2])
def test_nan_is_refused_wherever_it_stands(position: int) -> None:
    hits = [hit("a", 0, 0.5), hit("b", 0, 0.5)]
    hits.insert(position, hit("c", 0, math.nan))
    with pytest.raises(ValueError, match="not a number"):
        rank_hits(hits)


def held(path: str, score: float, uncapped: float) -> Hit:
    """A hit that a cap holds at `score`."""
    terms = {"lexical": 0.25, "heat": uncapped - 0.25, "cap": score - uncapped}
    return Hit(hash(path) & 0xFFFF, path, 0, score, terms)


def test_of_hits_that_one_cap_holds_the_hottest_leads() -> None:
    expected = [
        held("z.md", 0.5, 1.0),
        held("b.md", 0.5, 0.75),
        held("a.md", 0.5, 0.625),
        hit("c.md", 0, 0.5),  # nothing was taken from it
        held("a2.md", 0.375, 2.0),
    ]
    assert [entry.uncapped for entry in expected] == [1.0, 0.75, 0.625, 0.5, 2.0]
    for order in itertools.permutations(expected):
        assert rank_hits(order) == expected


def test_without_heat_nothing_is_capped() -> None:
    plain = Hit(1, "a.md", 0, 0.5, {"vector": 0.25, "lexical": 0.25})
    assert plain.uncapped == plain.unheated == 0.5
    warm = Hit(1, "a.md", 0, 0.5, {"vector": 0.25, "heat": 0.5, "cap": -0.25})
    assert (warm.uncapped, warm.unheated) == (0.75, 0.25)

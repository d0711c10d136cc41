"""Chunks into file entries."""

from __future__ import annotations

import itertools
import math

import pytest

from ragx.algo.fold import CHUNKS_PER_FILE, fold
from ragx.algo.ordering import rank_hits
from ragx.types import Hit


def hit(path: str, score: float, ordinal: int = 0) -> Hit:
    return Hit(abs(hash((path, ordinal))), path, ordinal, score)


def test_nothing_folds_to_nothing() -> None:
    assert fold([], top=5, fold_weight=0.25) == []


@pytest.mark.parametrize("weight", [0.0, 0.25, 1.0])
def test_an_entry_is_its_best_plus_a_share_of_the_next_two(weight: float) -> None:
    ranking = [hit("a", 0.9, 3), hit("a", 0.7, 1), hit("a", 0.6, 0), hit("a", 0.5, 2)]
    (entry,) = fold(ranking, top=3, fold_weight=weight)
    assert entry.score == math.fsum([0.9, weight * 0.7, weight * 0.6])
    assert entry.hits == tuple(ranking[:3])
    assert len(entry.hits) == CHUNKS_PER_FILE


def test_one_hit_scores_itself() -> None:
    (entry,) = fold([hit("a", 0.3)], top=1, fold_weight=1.0)
    assert entry.score == 0.3


def test_the_walk_stops_where_one_file_too_many_begins() -> None:
    ranking = [hit("a", 0.9), hit("b", 0.8), hit("a", 0.7, 1), hit("c", 0.6), hit("a", 0.5, 2)]
    entries = {entry.path: entry for entry in fold(ranking, top=2, fold_weight=1.0)}
    assert set(entries) == {"a", "b"}
    # a's chunk behind the stretch does not count.
    assert entries["a"].score == math.fsum([0.9, 0.7])
    whole = {entry.path: entry for entry in fold(ranking, top=3, fold_weight=1.0)}
    assert whole["a"].score == math.fsum([0.9, 0.7, 0.5])


def test_folding_can_lift_a_file_above_a_better_chunk() -> None:
    ranking = [hit("b", 0.9), hit("a", 0.8), hit("a", 0.8, 1)]
    assert [entry.path for entry in fold(ranking, top=2, fold_weight=1.0)] == ["a", "b"]
    assert [entry.path for entry in fold(ranking, top=2, fold_weight=0.0)] == ["b", "a"]


def test_equal_entries_stand_by_path() -> None:
    for paths in itertools.permutations("cab"):
        ranking = rank_hits([hit(path, 0.5) for path in paths])
        assert [entry.path for entry in fold(ranking, top=3, fold_weight=0.5)] == ["a", "b", "c"]


def test_equal_sums_from_different_terms_tie_exactly() -> None:
    """0.1 + 0.2 and 0.2 + 0.1: a plain sum of three terms would depend on the order."""
    ranking = rank_hits(
        [hit(path, score, i) for path in "ba" for i, score in enumerate((0.3, 0.2, 0.1))]
    )
    entries = fold(ranking, top=2, fold_weight=1.0)
    assert entries[0].score == entries[1].score == math.fsum([0.3, 0.2, 0.1])
    assert [entry.path for entry in entries] == ["a", "b"]


def test_fewer_files_than_asked() -> None:
    assert len(fold([hit("a", 1.0), hit("b", 0.5)], top=1000, fold_weight=0.25)) == 2

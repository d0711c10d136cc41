"""Chunks into file entries."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import pytest

from ragx.algo.fold import CHUNKS_PER_FILE, fold
from ragx.algo.heat import CAP
from ragx.algo.ordering import rank_hits
from ragx.types import FileHit, Hit, Hop


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


# Heat.


def heated(
    path: str,
    own: float,
    score: float,
    seed_path: str,
    ordinal: int = 0,
    uncapped: float = 0.0,
    seed_score: float = 1.0,
) -> Hit:
    """A hit of `own` points that heat from a seed lifted to `score`."""
    uncapped = uncapped or score
    terms = {"lexical": own, "heat": uncapped - own, "cap": score - uncapped}
    return Hit(
        abs(hash((path, ordinal))),
        path,
        ordinal,
        score,
        terms,
        hops=(Hop(1, 2, "link", 1.0),),
        seed_path=seed_path,
        seed_score=seed_score,
    )


def by_path(entries: list[FileHit]) -> dict[str, FileHit]:
    return {entry.path: entry for entry in entries}


def test_terms_name_what_an_entry_is_made_of() -> None:
    (entry,) = fold([hit("a", 0.5), hit("a", 0.25, 1), hit("a", 0.125, 2)], top=1, fold_weight=0.5)
    assert entry.terms == {"best": 0.5, "further": math.fsum([0.5 * 0.25, 0.5 * 0.125])}
    (entry,) = fold([hit("a", 0.5)], top=1, fold_weight=0.5)
    assert entry.terms == {"best": 0.5, "further": 0.0}


def test_folded_heat_is_held_below_the_entry_it_came_from() -> None:
    """Hits at the cap of one seed would fold to more than the seed."""
    ranking = [
        hit("seed", 1.0),
        *(heated("a", 0.25, 0.75, "seed", i) for i in range(3)),
    ]
    entries = fold(ranking, top=2, fold_weight=1.0)
    assert [entry.path for entry in entries] == ["seed", "a"]
    assert entries[1].score == CAP * 1.0
    assert entries[1].terms == {"best": 0.75, "further": 0.5, "cap": CAP - 1.25}
    free = fold(ranking, top=2, fold_weight=1.0, capped=False)
    assert [(entry.path, entry.score) for entry in free] == [("a", 2.25), ("seed", 1.0)]
    assert "cap" not in free[0].terms


def test_an_entry_keeps_what_it_has_without_heat() -> None:
    ranking = [hit("seed", 1.0), heated("a", 0.7, 0.75, "seed"), heated("a", 0.7, 0.75, "seed", 1)]
    entries = by_path(fold(ranking, top=2, fold_weight=1.0))
    assert entries["a"].score == pytest.approx(0.7 + 0.7)
    assert entries["a"].terms["cap"] == pytest.approx(1.4 - 1.45)


def test_the_seed_counts_by_its_own_score_wherever_its_file_stands() -> None:
    """Its copy may be shown instead of it, its file through a weak chunk or not at all."""
    lifted = [heated("a", 0.25, 0.375, "seed", i, seed_score=0.5) for i in range(3)]
    for others in ([], [hit("seed", 0.01)], [hit("seed", 9.0), hit("seed", 8.0, 1)]):
        entries = by_path(fold([*others, *lifted], top=3, fold_weight=1.0))
        assert entries["a"].score == 0.75  # its own three hits: .25 each
        entries = by_path(fold([*others, *lifted[:2]], top=3, fold_weight=1.0))
        assert entries["a"].score == 0.25 + 0.25
        entries = by_path(fold([*others, *lifted], top=3, fold_weight=0.25))
        assert entries["a"].score == CAP * 0.5


def test_an_entry_never_scores_below_its_best_chunk() -> None:
    (entry,) = fold([heated("a", 0.0, 0.75, "z", seed_score=0.1)], top=1, fold_weight=0.25)
    assert entry.score == 0.75
    assert "cap" not in entry.terms


def test_phrases_count_beside_the_cap() -> None:
    best = heated("a", 0.25, 0.75, "z")
    with_phrase = replace(best, score=4.75, terms={**best.terms, "phrase": 4.0})
    (entry,) = fold([with_phrase, hit("a", 0.5, 1)], top=1, fold_weight=1.0)
    assert entry.score == 4.75
    assert entry.terms["cap"] == pytest.approx(-0.5)


def test_heat_from_the_same_file_is_not_held() -> None:
    own = [heated("a", 0.25, 0.5, "a"), heated("a", 0.25, 0.375, "a", 1), hit("a", 0.125, 2)]
    (entry,) = fold(own, top=1, fold_weight=1.0)
    assert entry.score == 0.5 + 0.25 + 0.125


def test_further_hits_speak_for_a_file_without_their_heat() -> None:
    ranking = [hit("a", 0.5), heated("a", 0.25, 0.375, "z", 1), heated("a", 0.0, 0.25, "z", 2)]
    (entry,) = fold(ranking, top=1, fold_weight=0.5)
    assert entry.terms == {"best": 0.5, "further": 0.5 * 0.25}


def test_of_entries_that_one_cap_holds_the_hottest_leads() -> None:
    ranking = rank_hits(
        [
            hit("seed", 1.0),
            heated("a", 0.0, 0.75, "seed", uncapped=0.875),
            heated("z", 0.0, 0.75, "seed", uncapped=1.5),
            heated("m", 0.0, 0.75, "seed", uncapped=0.875),
        ]
    )
    assert [e.path for e in fold(ranking, top=4, fold_weight=0.0)] == ["seed", "z", "a", "m"]

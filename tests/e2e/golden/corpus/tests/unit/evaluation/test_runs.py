"""Rankings of files and percentiles of times."""

from __future__ import annotations

import pytest

from ragx.evaluation.runs import percentile, ranked_paths
from ragx.query.pipeline import Answer, FileResult


def entry(path: str, *also_in: str) -> FileResult:
    return FileResult(path, 1.0, (), also_in)


def test_copies_stand_with_the_entry_that_they_were_folded_into() -> None:
    answer = Answer("q", (entry("a", "c", "d"), entry("b"), entry("c", "e")), {})
    assert ranked_paths(answer) == ("a", "c", "d", "b", "e")


def test_nothing_found_is_an_empty_ranking() -> None:
    assert ranked_paths(Answer("q", (), {})) == ()


@pytest.mark.parametrize(
    ("share", "expected"), [(0.5, 5.0), (0.95, 10.0), (0.9, 9.0), (0.01, 1.0), (1.0, 10.0)]
)
def test_a_percentile_is_one_of_the_values(share: float, expected: float) -> None:
    assert percentile([float(n) for n in range(10, 0, -1)], share) == expected
    assert percentile([3.0], share) == 3.0


def test_nothing_has_no_percentile() -> None:
    with pytest.raises(ValueError, match="nothing"):
        percentile([], 0.5)

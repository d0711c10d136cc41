"""Dates in scores."""

from __future__ import annotations

import pytest

from ragx.query.temporal import TemporalRule, apply_dates, nearness_of
from ragx.store.base import FileFacts
from ragx.types import Hit

RULE = TemporalRule(half_life_days=10.0)


class Facts:
    def __init__(self, *rows: tuple[str, str]) -> None:
        self.rows = rows

    def facts(self) -> list[FileFacts]:
        return [
            FileFacts(0, path, "", "text", day or "2024-01-31", bool(day), "2024-01-31", ())
            for path, day in self.rows
        ]


def test_nearness_halves_with_each_half_life_from_the_end_that_is_wanted() -> None:
    reader = Facts(("new", "2024-01-31"), ("mid", "2024-01-21"), ("old", "2024-01-11"))
    recent = nearness_of(reader, ["new", "mid", "old"], "recent", RULE)  # type: ignore[arg-type]
    assert recent == {"new": 1.0, "mid": 0.5, "old": 0.25}
    oldest = nearness_of(reader, ["new", "mid", "old"], "oldest", RULE)  # type: ignore[arg-type]
    assert oldest == {"new": 0.25, "mid": 0.5, "old": 1.0}
    assert nearness_of(reader, ["new"], "", RULE) == {}  # type: ignore[arg-type]
    assert nearness_of(Facts(), ["new"], "recent", RULE) == {}  # type: ignore[arg-type]


def test_a_day_after_the_last_change_of_any_file_is_no_present_for_the_others() -> None:
    reader = Facts(("plan", "2099-01-01"), ("new", "2024-01-31"), ("old", "2024-01-21"))
    recent = nearness_of(reader, ["plan", "new", "old"], "recent", RULE)  # type: ignore[arg-type]
    assert recent == {"plan": 1.0, "new": 1.0, "old": 0.5}


def test_a_date_of_the_file_system_alone_speaks_half_as_loud() -> None:
    reader = Facts(("new", ""), ("old", "2024-01-21"))
    found = nearness_of(reader, ["new", "old"], "recent", RULE)  # type: ignore[arg-type]
    assert found == {"new": (1.0 + 0.5) / 2, "old": 0.5}


def test_a_date_takes_at_most_half_and_never_adds() -> None:
    hits = [
        Hit(1, "old", 0, 1.0, {"vector": 1.0}),
        Hit(2, "new", 0, 0.49, {"vector": 0.49}),
        Hit(3, "old", 1, -0.2, {"vector": -0.2}),
        Hit(4, "unknown", 0, 0.3, {"vector": 0.3}),
    ]
    dated = apply_dates(hits, {"old": 0.0, "new": 1.0}, RULE)
    assert [hit.score for hit in dated] == [1.0 - 0.5, 0.49, -0.2, 0.3]
    assert dated[0].terms == {"vector": 1.0, "temporal": -0.5}
    assert dated[1:] == hits[1:]
    for hit in dated:
        assert hit.score == pytest.approx(sum(hit.terms.values()))

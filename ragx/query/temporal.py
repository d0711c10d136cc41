"""What a document's date adds to its score, or takes from it, when a question asks for that.

score x (1 - weight x (1 - nearness)), where nearness = 0.5 ** (days / half_life_days) and days lie
between the document and the end of time that is wanted: the newest or the oldest in the index. So a
date takes at most the share `weight` of a score: whatever has less than that of the best one's
score stays below it, however well its date suits.

Today is not asked for: the newest date of the index counts as its present, so that an answer
depends on the index and the question alone. A date after the last change of any file is a plan or a
slip, and counts as that day. Where only the file system tells a date, which a copy or a checkout
sets anew, nearness is drawn half way to 1/2: it speaks half as loud.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

from ragx.query.filters import Temporal
from ragx.store.base import Reader
from ragx.types import Hit

__all__ = ["TemporalRule", "apply_dates", "nearness_of"]


@dataclass(frozen=True, slots=True)
class TemporalRule:
    """Settings from `[temporal]`.

    Args:
        half_life_days: days after which nearness has halved; above 0.
        weight: largest share of a score that a date takes.
    """

    half_life_days: float = 180.0
    weight: float = 0.5


def apply_dates(
    hits: Sequence[Hit], nearness: Mapping[str, float], rule: TemporalRule
) -> list[Hit]:
    """Hits with a term `temporal`, which is never above 0; a score that is not above 0 stays.

    Args:
        nearness: by path, as `nearness_of` gives it; files that are absent keep their scores.
    """
    dated = []
    for hit in hits:
        taken = rule.weight * (1.0 - nearness.get(hit.path, 1.0)) * max(0.0, hit.score)
        if taken > 0.0:
            terms = {**hit.terms, "temporal": -taken}
            hit = replace(hit, score=hit.score - taken, terms=terms)
        dated.append(hit)
    return dated


def nearness_of(
    reader: Reader, paths: Collection[str], wanted: Temporal, rule: TemporalRule
) -> dict[str, float]:
    """How near to the wanted end of time each file's date is, from 0 to 1."""
    rows = reader.facts()
    if not rows or not wanted:
        return {}
    present = max(row.changed for row in rows)
    days = [min(row.day, present) for row in rows]
    end = _number(max(days) if wanted == "recent" else min(days))
    asked = set(paths)
    found = {}
    for row, day in zip(rows, days, strict=True):
        if row.path in asked:
            nearness = 0.5 ** (abs(_number(day) - end) / rule.half_life_days)
            found[row.path] = nearness if row.dated else (nearness + 0.5) / 2
    return found


def _number(day: str) -> int:
    return date.fromisoformat(day).toordinal()

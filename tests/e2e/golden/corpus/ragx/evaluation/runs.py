"""What a configuration answered: per topic the ranked files and the time it took."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from ragx.query.pipeline import Answer

__all__ = ["Run", "percentile", "ranked_paths"]


@dataclass(frozen=True, slots=True)
class Run:
    """One configuration's rankings.

    Args:
        paths: distinct files, best first, by topic.
        elapsed_ms: time from the question to the ranking, by topic.
    """

    name: str
    paths: dict[str, tuple[str, ...]] = field(default_factory=dict)
    elapsed_ms: dict[str, float] = field(default_factory=dict)


def ranked_paths(answer: Answer) -> tuple[str, ...]:
    """The files of an answer in the order in which a reader meets them, each once.

    Files whose same text was folded into an entry stand with it, and so count directly after it.
    """
    return tuple(
        dict.fromkeys(path for entry in answer.results for path in (entry.path, *entry.also_in))
    )


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of all does not exceed (nearest rank).

    Args:
        share: in (0, 1].
    Raises:
        ValueError: there is no value.
    """
    if not values:
        raise ValueError("no percentile of nothing")
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]

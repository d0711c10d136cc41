"""Whether one configuration's lead over another is more than chance, and where it wins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["DRAWS", "Comparison", "Pair", "compare", "randomisation_p"]

DRAWS = 10_000
_SEED = 20_240
_BLOCK = 2**22  # signs drawn at a time
# Sums of the same differences in another order may differ by rounding: they count as equal.
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class Pair:
    """A topic's values under the two configurations."""

    topic: str
    one: float
    other: float

    @property
    def difference(self) -> float:
        """What `other` has more than `one`."""
        return self.other - self.one


@dataclass(frozen=True, slots=True)
class Comparison:
    """`other` against `one`, topic by topic.

    Args:
        difference: mean of `other` less mean of `one`.
        p: how often chance alone gives a difference at least as large, in (0, 1].
        won, lost: topics on which `other` is better or worse, the largest differences first, ties
            in the order of the topics.
        tied: number of topics without a difference.
    """

    metric: str
    one: str
    other: str
    mean_one: float
    mean_other: float
    difference: float
    p: float
    won: tuple[Pair, ...]
    lost: tuple[Pair, ...]
    tied: int


def compare(
    metric: str,
    one: str,
    other: str,
    values_one: Mapping[str, float],
    values_other: Mapping[str, float],
) -> Comparison:
    """Compare two configurations by one metric.

    Args:
        values_one, values_other: the metric's value by topic; the same topics, one at least.
    Raises:
        ValueError: the topics differ, or there are none.
    """
    import math

    if values_one.keys() != values_other.keys() or not values_one:
        raise ValueError("a comparison needs the same topics on both sides, one at least")
    pairs = [Pair(topic, value, values_other[topic]) for topic, value in values_one.items()]
    n = len(pairs)
    mean_one = math.fsum(pair.one for pair in pairs) / n
    mean_other = math.fsum(pair.other for pair in pairs) / n
    by_size = sorted(pairs, key=lambda pair: -abs(pair.difference))
    won = tuple(pair for pair in by_size if pair.difference > 0)
    lost = tuple(pair for pair in by_size if pair.difference < 0)
    return Comparison(
        metric=metric,
        one=one,
        other=other,
        mean_one=mean_one,
        mean_other=mean_other,
        difference=mean_other - mean_one,
        p=randomisation_p([pair.difference for pair in pairs]),
        won=won,
        lost=lost,
        tied=n - len(won) - len(lost),
    )


def randomisation_p(differences: list[float]) -> float:
    """The p-value of the paired two-sided randomisation test.

    If the two sides were alike, each difference could as well have the other sign: signs are drawn
    at random 10,000 times, always the same ones for as many differences. The draw that was observed
    counts as one of them, so p is never 0.

    Args:
        differences: one a topic, in the topics' order; empty or all zero gives 1.
    Source: Smucker, Allan and Carterette, CIKM 2007; Phipson and Smyth 2010 for the one more draw.
    """
    import numpy as np

    # What is zero is so under either sign.
    moved = np.array([item for item in differences if item], np.float64)
    if not moved.size:
        return 1.0
    observed = abs(float(moved.sum()))
    least = observed - _ROUNDING * float(np.abs(moved).sum())
    random = np.random.Generator(np.random.PCG64(_SEED))
    n_extreme = 0
    rows = max(1, _BLOCK // moved.size)
    for start in range(0, DRAWS, rows):
        shape = (min(rows, DRAWS - start), moved.size)
        n_extreme += _extreme(random.integers(0, 2, shape, np.int8), moved, least)
    return (1 + n_extreme) / (1 + DRAWS)


def _extreme(bits: NDArray[np.int8], moved: NDArray[np.float64], least: float) -> int:
    """How many rows of signs, 1 for minus, give a sum at least as far from zero."""
    sums = moved.sum() - 2.0 * (bits.astype(moved.dtype) @ moved)
    return int((abs(sums) >= least).sum())

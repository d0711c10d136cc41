"""What array code of several parts needs and numpy has no name for."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["ranges"]


def ranges(starts: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """All positions of the ranges `starts[i] : starts[i] + counts[i]`, one after the other.

    Args:
        starts, counts: (n,) int64; counts not negative.
    Returns:
        (sum of counts,) int64.
    """
    import numpy as np

    before = np.cumsum(counts) - counts
    positions: NDArray[np.int64] = np.repeat(starts - before, counts) + np.arange(counts.sum())
    return positions

"""Checks and scaling of vectors on their way in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragx.errors import BadEmbedding

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import numpy.typing as npt

__all__ = ["mean_direction", "unit_rows"]


def unit_rows(rows: npt.ArrayLike) -> npt.NDArray[np.float32]:
    """Scale vectors to unit length.

    Args:
        rows: (n, d) numbers.
    Returns:
        (n, d) float32.
    Raises:
        BadEmbedding: a row is not finite or has no length; `details["rows"]` lists which.
    """
    import numpy as np

    # float64: squares of float32 components overflow from about 1e19.
    wide = np.asarray(rows, dtype=np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        lengths = np.sqrt(np.einsum("ij,ij->i", wide, wide))
    bad = np.flatnonzero(~np.isfinite(lengths) | (lengths < np.finfo(np.float32).tiny))
    if bad.size:
        raise BadEmbedding(
            f"{bad.size} of {len(wide)} vectors are zero or not finite",
            hint="the model or its server is at fault; the text itself is not indexed by vector",
            details={"rows": [int(i) for i in bad]},
        )
    scaled: npt.NDArray[np.float32] = (wide / lengths[:, None]).astype(np.float32)
    return scaled


def mean_direction(
    rows: npt.NDArray[np.float32], weights: Sequence[float]
) -> npt.NDArray[np.float32]:
    """Average the windows of one text into one unit vector.

    Args:
        rows: (n, d) unit rows, n >= 1.
        weights: n positive numbers, such as window lengths.
    Returns:
        (d,) float32 unit vector.
    Raises:
        BadEmbedding: the windows cancel out.
    """
    import numpy as np

    mean = np.average(rows, axis=0, weights=np.asarray(weights))
    direction: npt.NDArray[np.float32] = unit_rows(mean[None, :])[0]
    return direction

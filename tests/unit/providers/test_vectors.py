from __future__ import annotations

import math

import numpy as np
import pytest

from ragx.errors import BadEmbedding
from ragx.providers.vectors import mean_direction, unit_rows


def test_rows_become_unit():
    np.testing.assert_allclose(unit_rows([[3.0, 4.0], [0.0, -2.0]]), [[3 / 5, 4 / 5], [0, -1]])


def test_extreme_lengths_survive():
    rows = unit_rows(np.array([[1e30, 1e30], [1e-30, 0]], np.float32))
    np.testing.assert_allclose(rows, [[1 / math.sqrt(2)] * 2, [1, 0]], rtol=1e-6)


@pytest.mark.parametrize("bad", [[0.0, 0.0], [math.nan, 1.0], [math.inf, 1.0], [-math.inf, 1.0]])
def test_bad_rows_are_named(bad):
    with pytest.raises(BadEmbedding) as caught:
        unit_rows([[1.0, 0.0], bad, [0.0, 1.0], bad])
    assert caught.value.details == {"rows": [1, 3]}


def test_mean_is_weighted_and_unit():
    rows = np.array([[1, 0], [0, 1]], np.float32)
    np.testing.assert_allclose(mean_direction(rows, [3, 4]), [3 / 5, 4 / 5], rtol=1e-6)


def test_windows_that_cancel_out_are_refused():
    with pytest.raises(BadEmbedding):
        mean_direction(np.array([[1, 0], [-1, 0]], np.float32), [1, 1])

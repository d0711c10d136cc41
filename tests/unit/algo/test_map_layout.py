"""Maps of small graphs, whose places can be told beforehand."""

from __future__ import annotations

import numpy as np
import pytest

from ragx.algo.map_layout import MapLayout, lay_out, pack

NO_EDGES = (np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))


def laid(community: list[int], file: list[int], edges: list[tuple[int, int, float]]) -> MapLayout:
    source, target, weight = (list(column) for column in zip(*edges, strict=True)) if edges else (
        [], [], [],
    )  # fmt: skip
    return lay_out(
        np.array(community, np.int64),
        np.array(file, np.int64),
        np.array(source, np.int64),
        np.array(target, np.int64),
        np.array(weight, np.float64),
        n_communities=max(community, default=-1) + 1,
    )


def distance(layout: MapLayout, one: int, other: int) -> float:
    discs = layout.communities
    return float(np.hypot(discs.x[one] - discs.x[other], discs.y[one] - discs.y[other]))


def test_nothing_takes_no_room() -> None:
    layout = laid([], [], [])
    assert (len(layout.x), len(layout.groups), len(layout.communities)) == (0, 0, 0)
    assert layout.extent == 0


def test_a_single_chunk_lies_in_the_middle() -> None:
    layout = laid([0], [0], [])
    assert (layout.x.tolist(), layout.y.tolist()) == ([0], [0])
    assert layout.extent == layout.communities.radius[0] > 1


def test_a_file_in_two_communities_has_a_disc_in_each() -> None:
    layout = laid([0, 1, 0], [7, 7, 8], [])
    assert layout.group_community.tolist() == [0, 0, 1]
    assert layout.group_file.tolist() == [7, 8, 7]
    assert layout.group_size.tolist() == [1, 1, 1]


def test_what_is_joined_lies_nearer() -> None:
    # Communities of 30 chunks: 0 is joined to all, 1 to 5 and 2 to 6 as strongly.
    n = 30
    community = [number for number in range(7) for _ in range(n)]
    edges = [(0, n * other, 1.0) for other in range(1, 7)]
    edges += [(n * 1, n * 5, 9.0), (n * 2, n * 6, 9.0)]
    layout = laid(community, list(range(7 * n)), edges)
    assert distance(layout, 1, 5) < distance(layout, 1, 6)
    assert distance(layout, 2, 6) < distance(layout, 2, 5)


def test_the_best_joined_lies_in_the_middle_of_its_community() -> None:
    hub = 17
    edges = [(hub, other, 1.0) for other in range(40) if other != hub]
    layout = laid([0] * 40, list(range(40)), edges)
    reach = np.hypot(layout.groups.x, layout.groups.y)
    assert int(np.argmin(reach)) == hub


def test_edges_within_a_file_move_nothing() -> None:
    community, file = [0] * 9, [0, 0, 0, 1, 1, 1, 2, 2, 2]
    without = laid(community, file, [])
    with_edges = laid(community, file, [(0, 1, 1.0), (4, 5, 1.0)])
    assert np.array_equal(without.x, with_edges.x)


def test_direction_and_order_of_edges_mean_nothing() -> None:
    community = [0] * 4 + [1] * 4 + [2] * 4
    edges = [(0, 5, 0.5), (4, 9, 0.7), (1, 10, 0.2), (2, 3, 0.9)]
    one = laid(community, list(range(12)), edges)
    other = laid(community, list(range(12)), [(t, s, w) for s, t, w in reversed(edges)])
    assert np.array_equal(one.x, other.x)
    assert np.array_equal(one.y, other.y)


@pytest.mark.parametrize("n", [0, 1, 2, 251, 3000])
def test_any_number_of_discs_is_packed(n: int) -> None:
    discs = pack(np.linspace(1, 5, n), *NO_EDGES, gap=0.5)
    assert len(discs) == n
    assert np.isfinite(discs.x).all()


def test_many_discs_stay_close() -> None:
    discs = pack(np.ones(3000), *NO_EDGES, gap=0.2)
    extent = float((np.hypot(discs.x, discs.y) + 1).max())
    # Half of the circle's area and more is disc.
    assert 3000 / extent**2 > 0.5

"""Maps of any graph: nothing overlaps, everything lies inside what holds it."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ragx.algo.map_layout import Discs, MapLayout, lay_out, pack

SLACK = 1e-6


@st.composite
def layouts(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, MapLayout]:
    n = draw(st.integers(0, 120))
    n_communities = draw(st.integers(1, 12))
    numbers = st.integers(0, 10**6)
    rng = np.random.default_rng(draw(numbers))
    community = rng.integers(0, n_communities, n)
    file = rng.integers(0, draw(st.integers(1, 40)), n)
    m = draw(st.integers(0, 200)) if n else 0
    source, target = rng.integers(0, max(n, 1), (2, m))
    weight = rng.random(m) + 1e-3
    found = lay_out(community, file, source, target, weight, n_communities=n_communities)
    return community, file, found


def overlap(discs: Discs) -> float:
    """The deepest that two discs reach into each other; negative for a gap."""
    if len(discs) < 2:
        return -np.inf
    apart = np.hypot(discs.x[:, None] - discs.x, discs.y[:, None] - discs.y)
    depth = discs.radius[:, None] + discs.radius - apart
    np.fill_diagonal(depth, -np.inf)
    return float(depth.max())


@given(layouts())
@settings(deadline=None)
def test_discs_hold_what_is_theirs_and_do_not_overlap(
    case: tuple[np.ndarray, np.ndarray, MapLayout],
) -> None:
    community, file, layout = case
    towns, groups = layout.communities, layout.groups
    held = np.unique(community)
    assert overlap(Discs(towns.x[held], towns.y[held], towns.radius[held])) < SLACK
    assert overlap(groups) < SLACK
    of = layout.group_community
    reach = np.hypot(groups.x - towns.x[of], groups.y - towns.y[of]) + groups.radius
    assert (reach <= towns.radius[of] + SLACK).all()
    assert (np.hypot(towns.x, towns.y) + towns.radius <= layout.extent + SLACK).all()
    place = {pair: at for at, pair in enumerate(zip(of, layout.group_file, strict=True))}
    at = np.array([place[pair] for pair in zip(community, file, strict=True)], np.int64)
    reach = np.hypot(layout.x - groups.x[at], layout.y - groups.y[at]) + 1
    assert (reach <= groups.radius[at] + SLACK).all()
    assert layout.group_size.sum() == len(community)


@given(layouts())
@settings(deadline=None)
def test_dots_do_not_touch(case: tuple[np.ndarray, np.ndarray, MapLayout]) -> None:
    _, _, layout = case
    assert overlap(Discs(layout.x, layout.y, np.ones(len(layout.x)))) < -0.3


@given(
    st.lists(st.floats(0.5, 50), max_size=400),
    st.integers(0, 10**6),
    st.floats(0.1, 5),
)
@settings(deadline=None, max_examples=30)
def test_packed_discs_do_not_overlap(radius: list[float], seed: int, gap: float) -> None:
    rng = np.random.default_rng(seed)
    m = 3 * len(radius)
    source, target = rng.integers(0, max(len(radius), 1), (2, m))
    discs = pack(np.array(radius), source, target, rng.random(m), gap=gap)
    assert overlap(discs) < SLACK

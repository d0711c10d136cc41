"""Where chunks lie on a map: dots in the discs of their files, those in discs of communities.

Everything is placed once, in an order that follows from the graph, so equal input gives an equal
map. Discs of one level never overlap; a disc goes to the free place nearest to what it is joined
to, so that what belongs together lies together. Unit: the radius of a chunk's dot.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Discs", "MapLayout", "lay_out", "pack"]

_GOLDEN_ANGLE = 2.399963229728653
_DOT_STEP = 1.5  # r = step * sqrt(i): neighbours in Vogel's spiral then lie 2.5 apart
_FILE_MARGIN = 1.2
_FILE_GAP = 0.8
_COMMUNITY_MARGIN = 3.0
_COMMUNITY_GAP = 6.0
# Discs placed one by one, beside what they are joined to; further ones go into rings around them.
_PLACED_SINGLY = 250
_DIRECTIONS = 24
_TOWARDS_CENTRE = 0.35


@dataclass(frozen=True, slots=True)
class Discs:
    """(k,) float64 centres and radii."""

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    radius: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.radius)


@dataclass(frozen=True, slots=True)
class MapLayout:
    """A map of n chunks in g groups and c communities.

    Args:
        x, y: (n,) float64 places of the chunks.
        groups: discs of the chunks that one file has in one community, by (community, file).
        group_community, group_file: (g,) int64 what each is of.
        group_size: (g,) int64 chunks in each.
        communities: their discs.
        extent: radius of the circle round (0, 0) that holds all.
    """

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    groups: Discs
    group_community: NDArray[np.int64]
    group_file: NDArray[np.int64]
    group_size: NDArray[np.int64]
    communities: Discs
    extent: float


def lay_out(
    community: NDArray[np.int64],
    file: NDArray[np.int64],
    source: NDArray[np.int64],
    target: NDArray[np.int64],
    weight: NDArray[np.float64],
    *,
    n_communities: int,
) -> MapLayout:
    """Place chunks, their files and communities.

    Args:
        community: (n,) of each chunk, from 0 to `n_communities` - 1; one may be empty.
        file: (n,) of each chunk, any numbers.
        source, target, weight: (m,) edges between chunks, in any order.
    """
    import numpy as np

    pairs, group = np.unique(np.stack([community, file], axis=1), axis=0, return_inverse=True)
    group = group.reshape(-1)
    n_groups = len(pairs)
    size = np.bincount(group, minlength=n_groups)
    radius = np.where(size > 1, _DOT_STEP * np.sqrt(size - 0.5), 0.0) + 1.0 + _FILE_MARGIN
    x, y = np.zeros(n_groups), np.zeros(n_groups)

    bounds = np.searchsorted(pairs[:, 0], np.arange(n_communities + 1))
    joined = _joined(group[source], group[target], weight, n_groups)
    inside = pairs[joined[0], 0] == pairs[joined[1], 0]
    within = tuple(column[inside] for column in joined)
    starts = np.searchsorted(within[0], bounds)
    held = np.zeros(n_communities)
    for number in range(n_communities):
        first, last = int(bounds[number]), int(bounds[number + 1])
        if last - first < 2:  # most communities of a corpus with few edges
            held[number] = radius[first:last].sum()
            continue
        near = slice(int(starts[number]), int(starts[number + 1]))
        a, b, w = within[0][near] - first, within[1][near] - first, within[2][near]
        placed = pack(radius[first:last], a, b, w, gap=_FILE_GAP)
        x[first:last], y[first:last], held[number] = _centred(placed)
    # A chunk by itself is dust: it needs no rim.
    held += np.where(np.bincount(community, minlength=n_communities) > 1, _COMMUNITY_MARGIN, 0.0)

    by_community = (pairs[joined[0], 0], pairs[joined[1], 0], joined[2])
    towns = pack(held, *_joined(*by_community, n_communities), gap=_COMMUNITY_GAP)
    town_x, town_y, extent = _centred(towns)
    x += town_x[pairs[:, 0]]
    y += town_y[pairs[:, 0]]

    nth = _position_in(group)
    reach = np.where(size[group] > 1, _DOT_STEP * np.sqrt(nth + 0.5), 0.0)
    angle = nth * _GOLDEN_ANGLE
    return MapLayout(
        x=x[group] + reach * np.cos(angle),
        y=y[group] + reach * np.sin(angle),
        groups=Discs(x, y, radius),
        group_community=pairs[:, 0],
        group_file=pairs[:, 1],
        group_size=size.astype(np.int64),
        communities=Discs(town_x, town_y, held),
        extent=extent,
    )


def pack(
    radius: NDArray[np.float64],
    source: NDArray[np.int64],
    target: NDArray[np.int64],
    weight: NDArray[np.float64],
    *,
    gap: float,
) -> Discs:
    """Discs side by side without overlap, each near to those that it is joined to.

    The best joined comes first, in the middle. Each further one starts from the weighted mean of
    those it is joined to and goes out to the nearest free place along one of some directions. Of
    many discs, those that are joined least, or to nothing, lie in rings around the others.

    Args:
        radius: (k,) float64.
        source, target, weight: (m,) what is joined; both directions or one.
        gap: left between any two, or less in the rings.
    """
    import numpy as np

    n = len(radius)
    degree = np.zeros(n)
    np.add.at(degree, source, weight)
    np.add.at(degree, target, weight)
    order = np.lexsort((np.arange(n), -radius, -degree))
    singly, outer = order[:_PLACED_SINGLY], order[_PLACED_SINGLY:]
    if len(outer):
        n_joined = max(1, int((degree[singly] > 0).sum()))
        singly, outer = order[:n_joined], order[n_joined:]
    where = np.full(n, -1)
    where[singly] = np.arange(len(singly))
    pull = np.zeros((len(singly), len(singly)))
    both = (where[source] >= 0) & (where[target] >= 0)
    np.add.at(pull, (where[source[both]], where[target[both]]), weight[both])
    pull += pull.T

    x, y = np.zeros(n), np.zeros(n)
    spokes = np.arange(_DIRECTIONS) * (2 * np.pi / _DIRECTIONS)
    centres, reach = np.zeros((len(singly), 2)), radius[singly] + gap
    for at in range(1, len(singly)):
        # Turned each time, or what is joined to nothing would lie along the same few rays.
        angle = spokes + at * _GOLDEN_ANGLE
        along = np.stack([np.cos(angle), np.sin(angle)])
        pulls = pull[at, :at]
        total = float(pulls.sum())
        origin = pulls @ centres[:at] / total if total else np.zeros(2)
        free = _first_free(centres[:at] - origin, reach[:at] + radius[singly[at]], along)
        found = origin + (along * free).T
        cost = free + _TOWARDS_CENTRE * np.hypot(found[:, 0], found[:, 1])
        # Rounded, so that the directions of a tie are told apart by their order alone.
        centres[at] = found[int(np.argmin(np.round(cost, 6)))]
    x[singly], y[singly], edge = _centred(Discs(centres[:, 0], centres[:, 1], radius[singly]))
    _add_rings(x, y, radius, outer, edge, gap)
    return Discs(x, y, radius)


def _first_free(
    offset: NDArray[np.float64], reach: NDArray[np.float64], along: NDArray[np.float64]
) -> NDArray[np.float64]:
    """(d,) how far to go from the origin along each of d directions to be clear of k discs.

    Args:
        offset: (k, 2) their centres from the origin.
        reach: (k,) how near one may come to each.
        along: (2, d) unit vectors.
    """
    import numpy as np

    towards = offset @ along  # (k, d) the nearest point of each ray
    under = towards**2 - ((offset**2).sum(axis=1) - reach**2)[:, None]
    half = np.sqrt(np.maximum(under, 0.0))
    blocks = (under > 0) & (towards + half > 0)
    start = np.where(blocks, towards - half, np.inf).T
    end = np.where(blocks, towards + half, 0.0).T
    order = np.argsort(start, axis=1)
    start = np.take_along_axis(start, order, axis=1)
    end = np.maximum.accumulate(np.take_along_axis(end, order, axis=1), axis=1)
    # Up to where the first i blocks lead, if the next begins only beyond that.
    upto = np.concatenate([np.zeros((len(end), 1)), end], axis=1)
    begins = np.concatenate([start, np.full((len(start), 1), np.inf)], axis=1)
    first = np.argmax(begins > upto, axis=1)
    found: NDArray[np.float64] = upto[np.arange(len(upto)), first]
    return found


def _add_rings(
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    radius: NDArray[np.float64],
    outer: NDArray[np.int64],
    edge: float,
    gap: float,
) -> None:
    """Place the outer discs in rings around a circle of radius `edge`, the largest first."""
    import numpy as np

    outer = outer[np.argsort(-radius[outer], kind="stable")]
    at = 0
    while at < len(outer):
        # Between small discs the gap of large ones would be mostly gap.
        space = min(gap, float(radius[outer[at]]))
        ring = edge + space + float(radius[outer[at]])
        half = np.arcsin(np.minimum(1.0, (radius[outer[at:]] + space / 2) / ring))
        until = np.cumsum(2 * half)
        n = max(1, int(np.searchsorted(until, 2 * np.pi, side="right")))
        angle = until[:n] - half[:n]
        spare = (2 * np.pi - float(until[n - 1])) / n
        angle = angle + spare * np.arange(n)
        chosen = outer[at : at + n]
        x[chosen], y[chosen] = ring * np.cos(angle), ring * np.sin(angle)
        edge = ring + float(radius[outer[at]])
        at += n


def _centred(discs: Discs) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """The discs about their common centre, and the radius of the circle that holds them all."""
    import numpy as np

    x, y = discs.x, discs.y
    if not len(discs):
        return x, y, 0.0
    # Towards the farthest, in shrinking steps (Badoiu and Clarkson 2003): near enough to the least.
    for step in range(1, 30):
        far = int(np.argmax(np.hypot(x, y) + discs.radius))
        x, y = x - x[far] / (step + 1), y - y[far] / (step + 1)
    return x, y, float((np.hypot(x, y) + discs.radius).max())


def _joined(
    one: NDArray[np.int64], other: NDArray[np.int64], weight: NDArray[np.float64], n: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Sums of weights between different ones of n, each pair once, ascending."""
    import numpy as np

    apart = one != other
    low = np.minimum(one, other)[apart].astype(np.int64)
    high = np.maximum(one, other)[apart].astype(np.int64)
    keys, place = np.unique(low * max(n, 1) + high, return_inverse=True)
    total = np.zeros(len(keys))
    np.add.at(total, place.reshape(-1), weight[apart])
    return keys // max(n, 1), keys % max(n, 1), total


def _position_in(group: NDArray[np.int64]) -> NDArray[np.int64]:
    """(n,) how many earlier members of its group each one has."""
    import numpy as np

    order = np.argsort(group, kind="stable")
    ordered = group[order]
    begins = np.searchsorted(ordered, ordered)
    found = np.empty(len(group), np.int64)
    found[order] = np.arange(len(group)) - begins
    return found

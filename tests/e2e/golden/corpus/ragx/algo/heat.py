"""Heat: what the best hits pass on along the graph, and how far it may lift what it reaches.

`propagate` spreads, `lift` turns heat into scores. Both are pure functions of arrays. A neighbour
that gets in on heat may rise to three quarters of the score of the seed its heat came from: what
the searches themselves found that good stays above it, and what they could not see fills the ranks
below (research/graph.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ragx.algo.arrays import ranges
from ragx.algo.graph import EDGE_KINDS, CsrGraph
from ragx.types import Hop

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["CAP", "Heat", "HeatOptions", "Step", "hops_of", "lift", "propagate"]

CAP = 0.75  # of the origin seed's score
_TAKES, _GIVES = 6.0, 0.25  # how much many edges damp a receiver and a sender


@dataclass(frozen=True, slots=True)
class HeatOptions:
    """How heat spreads.

    Args:
        hops: steps from a seed; 0 spreads nothing.
        decay: share of the heat kept per step.
        decays_at_once: whether the first step decays, too, as in the seed document's formula.
        damped: whether nodes with many edges give and take less: divided by degree ** (1/4) of the
            sender, so that a table of contents does not pass its heat to all it lists, and by
            1 + ln(1 + degree) / 6 of the receiver. Degrees count edges of the same kind.
        max_frontier: nodes that pass heat on per step, the hottest first.
        weights: factor by edge kind, 1 where it is not named; 0 turns a kind off.
    """

    hops: int = 2
    decay: float = 0.7
    decays_at_once: bool = False
    damped: bool = True
    max_frontier: int = 150
    weights: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Step:
    """One edge on the way from a seed: from `parent` to `node` at position `edge` of the arrays."""

    parent: int
    node: int
    edge: int


@dataclass(frozen=True, slots=True)
class Heat:
    """What reached which node; nodes ascending, seeds only where another seed reached them.

    Args:
        nodes: (k,) int64.
        heat: (k,) float64, positive.
        origins: (k,) int64 seed that the heat came from.
        hops: (k,) int64 steps from there.
    """

    nodes: NDArray[np.int64]
    heat: NDArray[np.float64]
    origins: NDArray[np.int64]
    hops: NDArray[np.int64]
    layers: tuple[_Layer, ...] = ()

    def way_to(self, node: int) -> list[Step]:
        """Edges from the origin seed to `node` that its heat took; [] where it did not get."""
        import numpy as np

        place = int(np.searchsorted(self.nodes, node))
        if place >= len(self.nodes) or self.nodes[place] != node:
            return []
        steps: list[Step] = []
        for layer in reversed(self.layers[: int(self.hops[place])]):
            at = int(np.searchsorted(layer.nodes, node))
            steps.append(Step(int(layer.parents[at]), node, int(layer.edges[at])))
            node = int(layer.parents[at])
        return steps[::-1]


@dataclass(frozen=True, slots=True)
class _Layer:
    """Heat after one step: the best that reached each node by exactly that many steps."""

    nodes: NDArray[np.int64]
    heat: NDArray[np.float64]
    origins: NDArray[np.int64]
    parents: NDArray[np.int64]
    edges: NDArray[np.int64]


# Nodes that pass heat on, their heat and the seeds it came from.
_Front = tuple["NDArray[np.int64]", "NDArray[np.float64]", "NDArray[np.int64]"]


def propagate(
    graph: CsrGraph,
    seeds: NDArray[np.int64],
    scores: NDArray[np.float64],
    options: HeatOptions,
    *,
    admits: Callable[[NDArray[np.int64]], NDArray[np.bool_]] | None = None,
    bars: Callable[[NDArray[np.int64]], NDArray[np.bool_]] | None = None,
) -> Heat:
    """Spread the seeds' scores over the graph; a node keeps the maximum of what reaches it.

    Along an edge u -> t of weight w: heat_t = heat_u x w x weights[kind] x decay, divided by the
    damping of u and t. Of equal heat the lower parent, then the lower edge wins. No heat returns to
    the seed it came from.

    Args:
        graph: n nodes.
        seeds: (s,) int64 distinct nodes.
        scores: (s,) float64 their heat at the start, non-negative.
        admits: (k,) node numbers -> (k,) bool, whether `similar` edges may lead there; asked once
            per step. None admits all.
        bars: the same for every kind of edge: whether heat must not come there.
    Returns:
        Heat of every node reached within `options.hops` steps.
    Source: the "seed document" of ragx for spreading, maximum and frontier; damping and the order
        of magnitude of decay from research/graph.md.
    """
    import numpy as np

    factor = np.array([options.weights.get(kind, 1.0) for kind in EDGE_KINDS])
    order = np.argsort(seeds, kind="stable")
    order = order[scores[order] > 0]
    front = (seeds[order], scores[order].astype(np.float64), seeds[order])
    layers: list[_Layer] = []
    for hop in range(options.hops):
        decay = options.decay if hop or options.decays_at_once else 1.0
        front = _hottest(front, options.max_frontier)
        layer = _step(graph, front, factor * decay, options, admits, bars)
        if not len(layer.nodes):
            break
        layers.append(layer)
        front = (layer.nodes, layer.heat, layer.origins)
    return _best_of(layers)


def _hottest(front: _Front, limit: int) -> _Front:
    import numpy as np

    nodes, heat, origins = front
    if len(nodes) <= limit:
        return front
    chosen = np.sort(np.lexsort((nodes, -heat))[:limit])
    return nodes[chosen], heat[chosen], origins[chosen]


def _step(
    graph: CsrGraph,
    front: _Front,
    factor: NDArray[np.float64],
    options: HeatOptions,
    admits: Callable[[NDArray[np.int64]], NDArray[np.bool_]] | None,
    bars: Callable[[NDArray[np.int64]], NDArray[np.bool_]] | None,
) -> _Layer:
    import numpy as np

    nodes, hot, origins = front
    starts, ends = graph.indptr[nodes], graph.indptr[nodes + 1]
    edges = ranges(starts, ends - starts)
    source = np.repeat(np.arange(len(nodes)), ends - starts)
    kinds = graph.kinds[edges]
    targets = graph.targets[edges].astype(np.int64)
    passes = (factor[kinds] > 0) & (targets != origins[source])
    if admits is not None:
        similar = passes & (kinds == EDGE_KINDS.index("similar"))
        if similar.any():
            asked, back = np.unique(targets[similar], return_inverse=True)
            passes[similar] = admits(asked)[back]
    if bars is not None and passes.any():
        asked, back = np.unique(targets[passes], return_inverse=True)
        passes[passes] = ~bars(asked)[back]
    edges, source, kinds, targets = edges[passes], source[passes], kinds[passes], targets[passes]
    heat = hot[source] * graph.weights[edges].astype(np.float64) * factor[kinds]
    if options.damped:
        heat = heat / _degrees(graph, nodes[source], kinds).astype(np.float64) ** _GIVES
        heat = heat / (1.0 + np.log1p(_degrees(graph, targets, kinds)) / _TAKES)
    best = np.lexsort((edges, -heat, targets))
    first = np.ones(len(best), bool)
    first[1:] = targets[best][1:] != targets[best][:-1]
    best = best[first]
    source = source[best]
    return _Layer(targets[best], heat[best], origins[source], nodes[source], edges[best])


def _degrees(
    graph: CsrGraph, targets: NDArray[np.int64], kinds: NDArray[np.uint8]
) -> NDArray[np.int64]:
    """(k,) edges of the same kind that each target has."""
    import numpy as np

    nodes, back = np.unique(targets, return_inverse=True)
    counts = graph.indptr[nodes + 1] - graph.indptr[nodes]
    owner = np.repeat(np.arange(len(nodes)), counts)
    n_kinds = len(EDGE_KINDS)
    all_kinds = graph.kinds[ranges(graph.indptr[nodes], counts)]
    table = np.bincount(owner * n_kinds + all_kinds, minlength=len(nodes) * n_kinds)
    degrees: NDArray[np.int64] = table[back * n_kinds + kinds]
    return degrees


def _best_of(layers: list[_Layer]) -> Heat:
    """The hottest of each node over all steps; of equal heat the shorter way."""
    import numpy as np

    if not layers:
        none = np.zeros(0, np.int64)
        return Heat(none, np.zeros(0), none, none)
    nodes = np.concatenate([layer.nodes for layer in layers])
    heat = np.concatenate([layer.heat for layer in layers])
    origins = np.concatenate([layer.origins for layer in layers])
    hops = np.repeat(np.arange(1, len(layers) + 1), [len(layer.nodes) for layer in layers])
    best = np.lexsort((hops, -heat, nodes))
    first = np.ones(len(best), bool)
    first[1:] = nodes[best][1:] != nodes[best][:-1]
    best = best[first]
    return Heat(nodes[best], heat[best], origins[best], hops[best], tuple(layers))


def lift(base: float, heat: float, origin: float, *, capped: bool = True) -> tuple[float, float]:
    """Score of a node that heat reached, and the negative term that the cap takes.

    Args:
        base: the node's own fused score.
        heat: what reached it.
        origin: fused score of the seed that the heat came from.
    Returns:
        `(score, cap)` with score = max(base, min(base + heat, CAP x origin)), and
        base + heat + cap = score up to rounding.
    """
    whole = base + heat
    if not capped:
        return whole, 0.0
    score = max(base, min(whole, CAP * origin))
    return score, min(0.0, score - whole)


def hops_of(graph: CsrGraph, steps: Iterable[Step]) -> tuple[Hop, ...]:
    """Steps over nodes as hops between chunks."""
    return tuple(
        Hop(
            int(graph.ids[step.parent]),
            int(graph.ids[step.node]),
            EDGE_KINDS[graph.kinds[step.edge]],
            float(graph.weights[step.edge]),
        )
        for step in steps
    )

"""The strongest way between two places of the graph."""

from __future__ import annotations

import heapq
from collections.abc import Collection

from ragx.algo.graph import EDGE_KINDS, CsrGraph
from ragx.algo.heat import Step

__all__ = ["STEP_DECAY", "strongest_path"]

STEP_DECAY = 0.7  # what a further step costs, as in propagation
# Standing side by side says less than naming.
_FACTOR = {kind: 0.5 if kind == "adjacent" else 1.0 for kind in EDGE_KINDS}


def strongest_path(
    graph: CsrGraph, starts: Collection[int], ends: Collection[int]
) -> tuple[float, list[Step]] | None:
    """The way whose product of edge weights, each times `STEP_DECAY`, is greatest.

    Args:
        graph: n nodes.
        starts, ends: nodes to begin at and to arrive at.
    Returns:
        Strength in (0, 1] and the edges in order; strength 1 and no edges where the two have a
        node in common; None where no way leads. Of equal ways the one of fewer steps, then of
        lower nodes.
    Source: Dijkstra 1959, with products in place of sums.
    """
    goals = frozenset(ends)
    factor = [_FACTOR[kind] * STEP_DECAY for kind in EDGE_KINDS]
    queue = [(-1.0, 0, node, -1, -1) for node in sorted(set(starts))]
    came: dict[int, tuple[int, int]] = {}
    while queue:
        strength, n_steps, node, parent, edge = heapq.heappop(queue)
        if node in came:
            continue
        came[node] = parent, edge
        if node in goals:
            return -strength, _steps(came, node)
        for at in range(int(graph.indptr[node]), int(graph.indptr[node + 1])):
            target = int(graph.targets[at])
            if target not in came:
                passed = strength * float(graph.weights[at]) * factor[graph.kinds[at]]
                heapq.heappush(queue, (passed, n_steps + 1, target, node, at))
    return None


def _steps(came: dict[int, tuple[int, int]], node: int) -> list[Step]:
    steps: list[Step] = []
    while came[node][0] >= 0:
        parent, edge = came[node]
        steps.append(Step(parent, node, edge))
        node = parent
    return steps[::-1]

"""The strongest way on hand-made graphs, and against a search over all ways."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragx.algo.graph import EDGE_KINDS, CsrGraph, build_graph
from ragx.algo.heat import Step
from ragx.algo.paths import STEP_DECAY, strongest_path

ADJACENT = 0.5  # standing side by side says less than naming

Edge = tuple[int, int, str, float]


def graph_of(n: int, *edges: Edge) -> CsrGraph:
    """Nodes 0 to n - 1."""
    arrays = {}
    for kind in EDGE_KINDS:
        chosen = [edge for edge in edges if edge[2] == kind]
        arrays[kind] = (
            np.array([edge[0] for edge in chosen], np.int64),
            np.array([edge[1] for edge in chosen], np.int64),
            np.array([edge[3] for edge in chosen], np.float32),
        )
    return build_graph(np.arange(n, dtype=np.int64) + 100, arrays)


def way(graph: CsrGraph, starts: Collection[int], ends: Collection[int]) -> tuple[float, list[int]]:
    """Strength and nodes; every step must be an edge of the graph that continues the last."""
    found = strongest_path(graph, starts, ends)
    assert found is not None
    strength, steps = found
    for step, after in pairwise(steps):
        assert step.node == after.parent
    for step in steps:
        assert graph.indptr[step.parent] <= step.edge < graph.indptr[step.parent + 1]
        assert graph.targets[step.edge] == step.node
    return strength, [steps[0].parent, *(step.node for step in steps)] if steps else []


# Formulas.


def test_each_step_takes_its_weight_and_the_decay() -> None:
    graph = graph_of(3, (0, 1, "link", 0.5), (1, 2, "mention", 0.25))
    assert way(graph, [0], [1]) == (0.5 * STEP_DECAY, [0, 1])
    strength, nodes = way(graph, [0], [2])
    assert nodes == [0, 1, 2]
    assert strength == pytest.approx(0.5 * STEP_DECAY * 0.25 * STEP_DECAY)


@pytest.mark.parametrize("kind", EDGE_KINDS)
def test_standing_side_by_side_counts_half(kind: str) -> None:
    strength, _ = way(graph_of(2, (0, 1, kind, 0.5)), [0], [1])
    assert strength == pytest.approx(0.5 * STEP_DECAY * (ADJACENT if kind == "adjacent" else 1))


def test_edges_lead_both_ways() -> None:
    graph = graph_of(3, (0, 1, "link", 0.5), (2, 1, "import", 0.75))
    there, back = way(graph, [0], [2]), way(graph, [2], [0])
    assert there[0] == pytest.approx(back[0])
    assert there[1] == back[1][::-1] == [0, 1, 2]


def test_a_detour_wins_where_it_is_stronger() -> None:
    weak = 0.9 * STEP_DECAY  # what two steps of weights 1 and 0.9 are worth to one
    detour = [(0, 1, "link", 1.0), (1, 2, "link", 0.9)]
    assert way(graph_of(3, (0, 2, "link", weak - 0.01), *detour), [0], [2])[1] == [0, 1, 2]
    assert way(graph_of(3, (0, 2, "link", weak + 0.01), *detour), [0], [2])[1] == [0, 2]


def test_of_parallel_edges_the_one_that_is_worth_most() -> None:
    graph = graph_of(2, (0, 1, "adjacent", 1.0), (0, 1, "link", 0.6), (0, 1, "similar", 0.55))
    found = strongest_path(graph, [0], [1])
    assert found is not None
    ((step,), strength) = (found[1], found[0])
    assert EDGE_KINDS[graph.kinds[step.edge]] == "link"
    assert strength == pytest.approx(float(np.float32(0.6)) * STEP_DECAY)


# Ends.


def test_no_way() -> None:
    graph = graph_of(4, (0, 1, "link", 1.0), (2, 3, "link", 1.0))
    assert strongest_path(graph, [0], [3]) is None
    assert strongest_path(graph, [0, 1], [2, 3]) is None


def test_nowhere_to_begin_or_to_arrive() -> None:
    graph = graph_of(2, (0, 1, "link", 1.0))
    assert strongest_path(graph, [], [1]) is None
    assert strongest_path(graph, [0], []) is None
    assert strongest_path(graph_of(0), [], []) is None


@pytest.mark.parametrize(("starts", "ends"), [([1], [1]), ([0, 1], [2, 1]), ([2, 1, 1], [1])])
def test_a_node_in_common_needs_no_step(starts: list[int], ends: list[int]) -> None:
    graph = graph_of(3, (0, 1, "link", 1.0), (1, 2, "link", 1.0))
    assert strongest_path(graph, starts, ends) == (1.0, [])


def test_the_best_pair_of_many() -> None:
    graph = graph_of(
        6, (0, 3, "link", 0.5), (1, 4, "link", 0.9), (2, 5, "link", 0.7), (0, 1, "link", 1.0)
    )
    for starts in ([0, 1, 2], [2, 1, 0], {2, 0, 1}):
        assert way(graph, starts, [5, 4, 3])[1] == [1, 4]


def test_a_way_never_passes_a_second_start_or_an_earlier_end() -> None:
    graph = graph_of(4, *((node, node + 1, "link", 1.0) for node in range(3)))
    assert way(graph, [0, 1], [2, 3])[1] == [1, 2]


# Ties.


def test_of_equal_ways_the_shorter_one() -> None:
    # 1 x 1/2 in two steps against 0.35 in one; in binary only where the decay is a factor of both.
    direct = float(np.float32(STEP_DECAY * 0.5))
    graph = graph_of(4, (0, 3, "link", direct), (0, 1, "link", 1.0), (1, 3, "link", 0.5))
    strength, nodes = way(graph, [0], [3])
    assert strength == pytest.approx(0.5 * STEP_DECAY**2)
    if direct * STEP_DECAY >= 0.5 * STEP_DECAY * STEP_DECAY:
        assert nodes == [0, 3]


def test_of_equal_ways_that_by_lower_nodes() -> None:
    edges = [(0, 1), (0, 2), (1, 3), (2, 3), (0, 4), (4, 3)]
    for order in (edges, edges[::-1]):
        graph = graph_of(5, *((a, b, "link", 0.5) for a, b in order))
        assert way(graph, [0], [3])[1] == [0, 1, 3]
        assert way(graph, [3], [0])[1] == [3, 1, 0]


def test_of_equal_ends_the_lower() -> None:
    graph = graph_of(5, *((a, b, "link", 0.5) for a, b in ((0, 3), (0, 4), (1, 4), (1, 3))))
    assert way(graph, [1, 0], [4, 3])[1] == [0, 3]


def test_of_equal_edges_the_first_kind() -> None:
    graph = graph_of(2, (0, 1, "symbol", 0.5), (0, 1, "link", 0.5), (0, 1, "similar", 0.5))
    found = strongest_path(graph, [0], [1])
    assert found is not None
    assert EDGE_KINDS[graph.kinds[found[1][0].edge]] == "link"


# Length.


def test_a_way_of_many_steps() -> None:
    """A long file is a chain of neighbours: its strength underflows, the way stays."""
    n = 3000
    graph = graph_of(n, *((node, node + 1, "adjacent", 1.0) for node in range(n - 1)))
    strength, nodes = way(graph, [0], [n - 1])
    assert nodes == list(range(n))
    assert strength >= 0


# Against a search over all ways.

WEIGHTS = st.sampled_from([1.0, 0.5, 0.25, 0.75, 0.3, 0.9])


@st.composite
def _graphs(draw: st.DrawFn) -> tuple[CsrGraph, list[int], list[int]]:
    n = draw(st.integers(1, 6))
    nodes = st.integers(0, n - 1)
    edges = draw(
        st.lists(st.tuples(nodes, nodes, st.sampled_from(EDGE_KINDS), WEIGHTS), max_size=12)
    )
    ends = st.lists(nodes, min_size=1, max_size=3)
    return graph_of(n, *edges), draw(ends), draw(ends)


def _all_ways(graph: CsrGraph, node: int, goals: set[int]) -> Iterator[tuple[Fraction, list[int]]]:
    """Exact strength and nodes of every way without a circle."""
    decay, half = Fraction(STEP_DECAY), Fraction(1, 2)

    def onward(node: int, strength: Fraction, seen: list[int]) -> Iterator:
        if node in goals:
            yield strength, seen
        for at in range(int(graph.indptr[node]), int(graph.indptr[node + 1])):
            target = int(graph.targets[at])
            if target not in seen:
                kept = half if EDGE_KINDS[graph.kinds[at]] == "adjacent" else 1
                worth = Fraction(float(graph.weights[at])) * decay * kept
                yield from onward(target, strength * worth, [*seen, target])

    yield from onward(node, Fraction(1), [node])


@given(_graphs())
def test_no_way_is_stronger(case: tuple[CsrGraph, list[int], list[int]]) -> None:
    graph, starts, ends = case
    every = [found for start in set(starts) for found in _all_ways(graph, start, set(ends))]
    if not every:
        assert strongest_path(graph, starts, ends) is None
        return
    strength, nodes = way(graph, starts, ends)
    best = max(found[0] for found in every)
    assert math.isclose(strength, best, rel_tol=1e-12)
    if nodes:
        assert (nodes[0] in starts, nodes[-1] in ends) == (True, True)
        assert any(math.isclose(one, best, rel_tol=1e-12) and n == nodes for one, n in every)
    # Of exactly equal ways none is shorter.
    assert max(len(nodes) - 1, 0) <= min(len(n) - 1 for one, n in every if one == best) or (
        any(one != best and math.isclose(one, best, rel_tol=1e-12) for one, _ in every)
    )


@given(_graphs())
def test_the_order_of_ends_has_no_influence(case: tuple[CsrGraph, list[int], list[int]]) -> None:
    graph, starts, ends = case
    found = strongest_path(graph, starts, ends)
    assert strongest_path(graph, [*starts[::-1], *starts], set(ends)) == found
    back = strongest_path(graph, ends, starts)
    assert (found is None) == (back is None)
    if found and back:
        assert found[0] == pytest.approx(back[0])


# Edges of a node.


def test_steps_say_which_edge() -> None:
    graph = graph_of(3, (0, 1, "link", 1.0), (1, 2, "import", 0.5))
    found = strongest_path(graph, [0], [2])
    assert found is not None
    assert found[1] == [Step(0, 1, int(graph.indptr[0])), Step(1, 2, int(graph.indptr[1]) + 1)]

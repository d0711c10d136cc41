"""Heat on hand-made graphs; a search over all paths is in property/test_heat.py."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ragx.algo.graph import CsrGraph, build_graph
from ragx.algo.heat import CAP, Heat, HeatOptions, Step, lift, propagate

PLAIN = HeatOptions(damped=False)


def graph_of(n: int, *edges: tuple[int, int] | tuple[int, int, float], **kinds: list) -> CsrGraph:
    """Nodes 0 to n - 1; `edges` are links, weight 1 unless given."""
    arrays = {}
    for kind, triples in {"link": list(edges), **kinds}.items():
        full = [(*triple, 1.0)[:3] for triple in triples]
        arrays[kind.rstrip("_")] = (
            np.array([edge[0] for edge in full], np.int64),
            np.array([edge[1] for edge in full], np.int64),
            np.array([edge[2] for edge in full], np.float32),
        )
    return build_graph(np.arange(n, dtype=np.int64) + 100, arrays)


def spread(graph: CsrGraph, seeds: dict[int, float], options: HeatOptions = PLAIN, **more) -> Heat:
    nodes, scores = np.array(list(seeds), np.int64), np.array(list(seeds.values()), float)
    return propagate(graph, nodes, scores, options, **more)


def warm(graph: CsrGraph, seeds: dict[int, float], options: HeatOptions = PLAIN) -> dict:
    heat = spread(graph, seeds, options)
    return dict(zip(heat.nodes.tolist(), heat.heat.tolist(), strict=True))


CHAIN = graph_of(5, (0, 1), (1, 2), (2, 3), (3, 4))


# Formulas.


def test_one_hop_is_damped_by_the_degrees_of_both_ends() -> None:
    """score * w / (deg_u ** .25) / (1 + ln(1 + deg_t) / 6)."""
    graph = graph_of(6, (0, 1, 0.5), (0, 2), (0, 3), (1, 4), (1, 5))
    heat = warm(graph, {0: 0.8}, HeatOptions(hops=1))
    assert heat[1] == pytest.approx(0.8 * 0.5 / 3**0.25 / (1 + math.log(1 + 3) / 6))
    assert heat[2] == pytest.approx(0.8 / 3**0.25 / (1 + math.log(1 + 1) / 6))
    assert heat.keys() == {1, 2, 3}


def test_only_edges_of_the_same_kind_damp() -> None:
    graph = graph_of(5, (0, 1), mention=[(0, 2), (0, 3), (1, 4), (1, 2)], adjacent=[(0, 1)])
    heat = warm(graph, {0: 1.0}, HeatOptions(hops=1, weights={"adjacent": 0.0}))
    assert heat[1] == pytest.approx(1 / (1 + math.log(2) / 6))
    assert heat[3] == pytest.approx(1 / 2**0.25 / (1 + math.log(2) / 6))


def test_decay_begins_at_the_second_hop_or_at_once() -> None:
    assert warm(CHAIN, {0: 1.0}, HeatOptions(hops=3, decay=0.7, damped=False)) == pytest.approx(
        {1: 1.0, 2: 0.7, 3: 0.7 * 0.7}
    )
    at_once = HeatOptions(hops=3, decay=0.7, decays_at_once=True, damped=False)
    assert warm(CHAIN, {0: 1.0}, at_once) == pytest.approx({1: 0.7, 2: 0.7**2, 3: 0.7**3})


def test_the_seed_documents_example() -> None:
    """Undamped, decayed at once: 1.0 x .86 x .5 = .43, then x .70 x .5."""
    graph = graph_of(3, similar=[(0, 1, 0.86), (1, 2, 0.70)])
    options = HeatOptions(2, 0.5, True, False, 150, {"link": 0.0, "similar": 1.0})
    assert warm(graph, {0: 1.0}, options) == pytest.approx(
        {1: 1.0 * 0.86 * 0.5, 2: 0.43 * 0.70 * 0.5}, rel=1e-6
    )


def test_kinds_are_weighed_and_turned_off() -> None:
    graph = graph_of(4, (0, 1), mention=[(0, 2)], similar=[(0, 3)])
    options = HeatOptions(damped=False, weights={"mention": 0.25, "similar": 0.0})
    assert warm(graph, {0: 1.0}, options) == {1: 1.0, 2: 0.25}


def test_the_strongest_of_several_ways_counts_and_is_not_added_to() -> None:
    graph = graph_of(4, (0, 3, 0.5), (1, 3, 0.25), (0, 2, 1.0), (2, 3, 0.125))
    heat = spread(graph, {0: 1.0, 1: 1.0})
    at = heat.nodes.tolist().index(3)
    assert (heat.heat[at], heat.origins[at], heat.hops[at]) == (0.5, 0, 1)


def test_the_longer_way_may_be_the_hotter() -> None:
    graph = graph_of(3, (0, 2, 0.25), (0, 1, 1.0), (1, 2, 1.0))
    heat = spread(graph, {0: 1.0})
    assert heat.heat.tolist() == pytest.approx([1.0, 0.7])
    assert heat.hops.tolist() == [1, 2]
    assert [(step.parent, step.node) for step in heat.way_to(2)] == [(0, 1), (1, 2)]


# What ends it.


@pytest.mark.parametrize(
    ("graph", "seeds", "options"),
    [
        (CHAIN, {0: 1.0}, HeatOptions(hops=0)),
        (CHAIN, {0: 0.0, 3: 0.0}, HeatOptions()),
        (CHAIN, {}, HeatOptions()),
        (graph_of(3), {0: 1.0, 1: 0.5}, HeatOptions()),
        (CHAIN, {0: 1.0}, HeatOptions(weights={"link": 0.0})),
        (graph_of(0), {}, HeatOptions()),
    ],
    ids=["no hops", "cold", "no seeds", "no edges", "kind off", "empty"],
)
def test_nothing_spreads(graph: CsrGraph, seeds: dict[int, float], options: HeatOptions) -> None:
    heat = spread(graph, seeds, options)
    assert [len(a) for a in (heat.nodes, heat.heat, heat.origins, heat.hops)] == [0] * 4
    assert heat.way_to(0) == []


def test_a_cold_seed_among_warm_ones_gives_nothing() -> None:
    heat = spread(CHAIN, {4: 0.0, 0: 1.0}, HeatOptions(hops=1, damped=False))
    assert heat.nodes.tolist() == [1]


def test_more_hops_than_the_graph_is_long() -> None:
    far = warm(CHAIN, {0: 1.0}, HeatOptions(hops=10, decay=1.0, damped=False))
    assert far == {1: 1.0, 2: 1.0, 3: 1.0, 4: 1.0}


def test_heat_never_returns_to_where_it_came_from() -> None:
    assert warm(graph_of(2, (0, 1)), {0: 1.0}, HeatOptions(hops=5, damped=False)) == {1: 1.0}
    # A seed is reached by the heat of another, and that heat goes on past it.
    heat = spread(graph_of(3, (0, 1), (1, 2)), {0: 1.0, 1: 0.5})
    assert heat.nodes.tolist() == [0, 1, 2]
    assert heat.heat.tolist() == pytest.approx([0.5, 1.0, 0.7])
    assert heat.origins.tolist() == [1, 0, 0]


# The frontier.


def test_only_the_hottest_pass_heat_on() -> None:
    graph = graph_of(6, (0, 3), (1, 4), (2, 5))
    seeds = {2: 0.9, 0: 0.5, 1: 0.7}
    for limit, reached in ((1, [5]), (2, [4, 5]), (3, [3, 4, 5]), (9, [3, 4, 5])):
        heat = spread(graph, seeds, HeatOptions(hops=1, max_frontier=limit))
        assert heat.nodes.tolist() == reached


def test_of_equally_hot_nodes_the_first_pass_heat_on() -> None:
    graph = graph_of(6, (0, 3), (1, 4), (2, 5))
    heat = spread(graph, {2: 1.0, 1: 1.0, 0: 1.0}, HeatOptions(hops=1, max_frontier=2))
    assert heat.nodes.tolist() == [3, 4]


def test_the_frontier_is_cut_at_every_step() -> None:
    graph = graph_of(5, (0, 1, 0.5), (0, 2, 1.0), (1, 3), (2, 4))
    heat = spread(graph, {0: 1.0}, HeatOptions(damped=False, max_frontier=1))
    assert heat.nodes.tolist() == [1, 2, 4]


def test_of_equal_heat_the_lower_parent_and_the_shorter_way_win() -> None:
    graph = graph_of(4, (1, 3), (0, 3), mention=[(0, 3)])
    heat = spread(graph, {0: 1.0, 1: 1.0})
    (step,) = heat.way_to(3)
    assert step == Step(0, 3, int(graph.indptr[0]))
    triangle = graph_of(3, (0, 1), (1, 2), (0, 2))
    heat = spread(triangle, {0: 1.0}, HeatOptions(decay=1.0, damped=False))
    assert heat.hops.tolist() == [1, 1]


# What `similar` edges may bring in.


def test_only_similar_edges_are_asked_about_once_a_step() -> None:
    graph = graph_of(5, (0, 1), (1, 4), similar=[(0, 1), (0, 2), (1, 3), (2, 3)])
    asked: list[list[int]] = []

    def admits(nodes: np.ndarray) -> np.ndarray:
        asked.append(nodes.tolist())
        return nodes == 3

    heat = spread(graph, {0: 1.0}, admits=admits)
    assert heat.nodes.tolist() == [1, 3, 4]
    assert asked == [[1, 2], [3]]
    asked.clear()
    heat = spread(graph, {0: 1.0}, HeatOptions(weights={"similar": 0.0}), admits=admits)
    assert (heat.nodes.tolist(), asked) == ([1, 4], [])


# From heat to scores.


@pytest.mark.parametrize(
    ("base", "heat", "origin", "score"),
    [
        (0.0, 0.5, 1.0, 0.5),  # below the cap
        (0.2, 0.9, 1.0, CAP * 1.0),  # held
        (0.8, 0.9, 1.0, 0.8),  # above already: stays
        (0.9, 0.4, 0.5, 0.9),  # better than the seed
        (0.0, 0.0, 0.0, 0.0),
        (0.3, 0.0, 1.0, 0.3),
    ],
)
def test_lift(base: float, heat: float, origin: float, score: float) -> None:
    lifted, cap = lift(base, heat, origin)
    assert lifted == score == max(base, min(base + heat, CAP * origin))
    assert cap == pytest.approx(score - (base + heat), abs=1e-15)
    assert cap <= 0
    assert lift(base, heat, origin, capped=False) == (base + heat, 0.0)

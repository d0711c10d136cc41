"""Typed edges into compressed rows."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragx.algo.graph import EDGE_KINDS, CsrGraph, build_graph, kind_code, rarity

Triples = dict[str, list[tuple[int, int, float]]]


def graph_of(ids: list[int], edges: Triples) -> CsrGraph:
    arrays = {
        kind: (
            np.array([one for one, _, _ in triples], np.int64),
            np.array([other for _, other, _ in triples], np.int64),
            np.array([weight for _, _, weight in triples], np.float32),
        )
        for kind, triples in edges.items()
    }
    return build_graph(np.array(ids, np.int64), arrays)


def rows(graph: CsrGraph) -> list[list[tuple[int, str, float]]]:
    """Each node's edges: (target, kind, weight), in the order of the arrays."""
    return [
        [
            (int(graph.targets[at]), EDGE_KINDS[graph.kinds[at]], float(graph.weights[at]))
            for at in range(int(graph.indptr[node]), int(graph.indptr[node + 1]))
        ]
        for node in range(len(graph))
    ]


def test_every_edge_stands_at_both_ends() -> None:
    graph = graph_of([10, 20, 30], {"link": [(0, 1, 0.5), (2, 1, 0.25)]})
    assert rows(graph) == [
        [(1, "link", 0.5)],
        [(0, "link", 0.5), (2, "link", 0.25)],
        [(1, "link", 0.25)],
    ]
    assert (len(graph), graph.n_edges) == (3, 2)


def test_self_loops_go() -> None:
    graph = graph_of([1, 2], {"mention": [(0, 0, 1.0), (1, 1, 1.0), (0, 1, 0.5)]})
    assert rows(graph) == [[(1, "mention", 0.5)], [(0, "mention", 0.5)]]
    assert graph_of([1], {"link": [(0, 0, 1.0)]}).n_edges == 0


@pytest.mark.parametrize(
    "order", list(itertools.permutations([(0, 1, 0.25), (1, 0, 0.75), (0, 1, 0.5)]))
)
def test_of_parallel_edges_the_strongest_stays(order: tuple[tuple[int, int, float], ...]) -> None:
    graph = graph_of([1, 2], {"link": list(order)})
    assert rows(graph) == [[(1, "link", 0.75)], [(0, "link", 0.75)]]


def test_kinds_between_the_same_nodes_stay_apart_in_the_order_of_kinds() -> None:
    triples: Triples = {kind: [(0, 1, 0.5)] for kind in reversed(EDGE_KINDS)}
    graph = graph_of([1, 2], triples)
    assert rows(graph) == [[(1, k, 0.5) for k in EDGE_KINDS], [(0, k, 0.5) for k in EDGE_KINDS]]
    assert graph.counts_by_kind() == dict.fromkeys(EDGE_KINDS, 1)
    assert [kind_code(kind) for kind in EDGE_KINDS] == list(range(len(EDGE_KINDS)))


def test_counts_name_only_kinds_that_occur() -> None:
    graph = graph_of([1, 2, 3], {"link": [(0, 1, 1.0), (0, 2, 1.0)], "similar": [(1, 2, 0.5)]})
    assert graph.counts_by_kind() == {"link": 2, "similar": 1}
    assert graph_of([1, 2], {"link": []}).counts_by_kind() == {}


@pytest.mark.parametrize("n", [0, 1, 3])
@pytest.mark.parametrize("edges", [{}, {"link": []}])
def test_without_edges_every_row_is_empty(n: int, edges: Triples) -> None:
    graph = graph_of(list(range(n)), edges)
    assert (len(graph), graph.n_edges) == (n, 0)
    assert graph.indptr.tolist() == [0] * (n + 1)


def test_types_are_those_of_the_file() -> None:
    for graph in (graph_of([], {}), graph_of([5, 3], {"link": [(0, 1, 0.5)]})):
        kinds = [graph.ids, graph.indptr, graph.targets, graph.kinds, graph.weights, graph.by_id]
        assert [array.dtype.name for array in kinds] == [
            "int64",
            "int64",
            "int32",
            "uint8",
            "float32",
            "int32",
        ]
        assert all(array.flags.c_contiguous for array in kinds)


def test_nodes_by_chunk_id() -> None:
    ids = [2**53 - 1, 7, 500, 1]
    graph = graph_of(ids, {})
    assert graph.nodes_of(ids).tolist() == [0, 1, 2, 3]
    assert graph.nodes_of([1, 1, 7]).tolist() == [3, 3, 1]
    # Unknown ones: below, between, above.
    assert graph.nodes_of([0, 2, 2**53, -5, 500]).tolist() == [-1, -1, -1, -1, 2]
    assert graph.nodes_of([]).tolist() == []
    assert graph_of([], {}).nodes_of([1, 2]).tolist() == [-1, -1]
    assert graph_of([], {}).nodes_of([]).tolist() == []


@st.composite
def edge_lists(draw: st.DrawFn) -> tuple[list[int], Triples]:
    n = draw(st.integers(1, 7))
    node = st.integers(0, n - 1)
    weight = st.sampled_from([0.125, 0.25, 0.5, 1.0])
    triples = st.lists(st.tuples(node, node, weight), max_size=12)
    ids = draw(st.lists(st.integers(0, 10**6), min_size=n, max_size=n, unique=True))
    return ids, draw(st.dictionaries(st.sampled_from(EDGE_KINDS), triples))


@given(edge_lists(), st.randoms(use_true_random=False))
def test_the_order_of_edges_and_their_ends_has_no_influence(
    case: tuple[list[int], Triples], random
) -> None:
    ids, edges = case
    kinds = list(edges)
    random.shuffle(kinds)
    shuffled: Triples = {}
    for kind in kinds:
        triples = [(b, a, w) if random.random() < 0.5 else (a, b, w) for a, b, w in edges[kind]]
        random.shuffle(triples)
        shuffled[kind] = triples
    one, other = graph_of(ids, edges), graph_of(ids, shuffled)
    for name in ("ids", "indptr", "targets", "kinds", "weights", "by_id"):
        assert getattr(one, name).tolist() == getattr(other, name).tolist()


@given(edge_lists())
def test_rows_hold_exactly_the_strongest_edges_in_canonical_order(
    case: tuple[list[int], Triples],
) -> None:
    ids, edges = case
    graph = graph_of(ids, edges)
    best: dict[tuple[int, int, int], float] = {}
    for kind, triples in edges.items():
        for a, b, weight in triples:
            for ends in ((a, b), (b, a)):
                if a != b:
                    key = (*ends, kind_code(kind))
                    best[key] = max(best.get(key, 0.0), weight)
    found = {
        (node, target, kind_code(kind)): weight
        for node, row in enumerate(rows(graph))
        for target, kind, weight in row
    }
    assert found == best
    for row in rows(graph):
        keys = [(target, kind_code(kind)) for target, kind, _ in row]
        assert keys == sorted(keys)
    assert graph.n_edges * 2 == len(best)
    assert graph.nodes_of(ids).tolist() == list(range(len(ids)))


def test_rarity_is_one_for_a_name_of_one_chunk_and_falls() -> None:
    n = 100
    df = np.array([1, 2, 10, 100])
    expected = [math.log(1 + n / d) / math.log(1 + n) for d in (1, 2, 10, 100)]
    assert rarity(n, df).tolist() == pytest.approx(expected, rel=1e-6)
    assert rarity(n, df)[0] == 1.0
    assert rarity(n, df)[-1] == pytest.approx(math.log(2) / math.log(101), rel=1e-6)
    assert rarity(n, df).dtype == np.float32


@given(st.integers(1, 10**6))
def test_rarity_stays_above_zero_and_falls_with_frequency(n: int) -> None:
    values = rarity(n, np.unique(np.linspace(1, n, 50).astype(np.int64)))
    assert values[0] == 1.0
    assert (values > 0).all()
    assert (np.diff(values) <= 0).all()


def test_rarity_of_nothing() -> None:
    assert rarity(0, np.array([1])).tolist() == [0.0]
    assert rarity(5, np.array([], np.int64)).tolist() == []

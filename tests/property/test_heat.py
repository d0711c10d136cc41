"""Heat against a search over all paths in plain Python, on random small graphs."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragx.algo.fold import CHUNKS_PER_FILE, fold
from ragx.algo.graph import EDGE_KINDS, CsrGraph, build_graph
from ragx.algo.heat import CAP, Heat, HeatOptions, lift, propagate
from ragx.algo.ordering import rank_hits
from ragx.types import Hit, Hop

Triples = dict[str, list[tuple[int, int, float]]]


@dataclass(frozen=True)
class Case:
    n: int
    edges: Triples
    seeds: dict[int, float]
    options: HeatOptions

    @property
    def graph(self) -> CsrGraph:
        return graph_of(self.n, self.edges)


def graph_of(n: int, edges: Triples) -> CsrGraph:
    arrays = {
        kind: (
            np.array([one for one, _, _ in triples], np.int64),
            np.array([other for _, other, _ in triples], np.int64),
            np.array([weight for _, _, weight in triples], np.float32),
        )
        for kind, triples in edges.items()
    }
    return build_graph(np.arange(n, dtype=np.int64) * 10, arrays)


def run(graph: CsrGraph, seeds: dict[int, float], options: HeatOptions) -> Heat:
    return propagate(
        graph, np.array(list(seeds), np.int64), np.array(list(seeds.values()), float), options
    )


def as_dict(heat: Heat) -> dict[int, float]:
    return dict(zip(heat.nodes.tolist(), heat.heat.tolist(), strict=True))


KINDS = ("link", "mention", "similar")
# Few distinct weights and scores, so that ties are common.
weight = st.sampled_from([0.125, 0.5, 1.0]) | st.floats(0.015625, 1.0, width=32)
score = st.sampled_from([0.0, 0.25, 1.0]) | st.floats(0.001, 1.0)
options = st.builds(
    HeatOptions,
    hops=st.integers(0, 4),
    decay=st.sampled_from([0.5, 0.7, 1.0]),
    decays_at_once=st.booleans(),
    damped=st.booleans(),
    max_frontier=st.sampled_from([1, 2, 150]),
    weights=st.dictionaries(st.sampled_from(KINDS), st.sampled_from([0.0, 0.3, 1.0])),
)


@st.composite
def cases(draw: st.DrawFn, max_seeds: int = 4) -> Case:
    n = draw(st.integers(1, 7))
    node = st.integers(0, n - 1)
    triples = st.lists(st.tuples(node, node, weight), max_size=10)
    return Case(
        n,
        draw(st.dictionaries(st.sampled_from(KINDS), triples)),
        draw(st.dictionaries(node, score, min_size=1, max_size=max_seeds)),
        draw(options),
    )


# What one edge passes on, written once more. Roots and logarithms come from the same library, so
# that equal heat ties here where it ties there.
GIVES = (np.arange(64).astype(np.float64) ** 0.25).tolist()
TAKES = (1.0 + np.log1p(np.arange(64)) / 6.0).tolist()


def edges_from(graph: CsrGraph, node: int) -> list[tuple[int, int, float, int]]:
    """(target, kind, weight, position) of a node's edges."""
    return [
        (int(graph.targets[at]), int(graph.kinds[at]), float(graph.weights[at]), at)
        for at in range(int(graph.indptr[node]), int(graph.indptr[node + 1]))
    ]


def passed(
    graph: CsrGraph, options: HeatOptions, hop: int, heat: float, u: int, edge: tuple
) -> float:
    """Heat that arrives at the other end of an edge at this step, from 1."""
    target, kind, weight, _ = edge
    decay = options.decay if hop > 1 or options.decays_at_once else 1.0
    heat = heat * weight * (options.weights.get(EDGE_KINDS[kind], 1.0) * decay)
    if options.damped:

        def degree(node: int) -> int:
            return sum(other[1] == kind for other in edges_from(graph, node))

        heat = heat / GIVES[degree(u)] / TAKES[degree(target)]
    return heat


def best_paths(case: Case) -> dict[int, tuple[float, int, int]]:
    """(heat, hops, origin) of each node, hop by hop, each with the best of exactly that hop."""
    graph, options = case.graph, case.options
    front = {node: (score, node) for node, score in case.seeds.items() if score > 0}
    best: dict[int, tuple[float, int, int]] = {}
    for hop in range(1, options.hops + 1):
        hottest = sorted(front, key=lambda node: (-front[node][0], node))[: options.max_frontier]
        reached: dict[int, tuple[float, int]] = {}
        for u in sorted(hottest):
            heat, origin = front[u]
            for edge in edges_from(graph, u):
                amount = passed(graph, options, hop, heat, u, edge)
                if edge[0] != origin and amount > reached.get(edge[0], (0.0, -1))[0]:
                    reached[edge[0]] = amount, origin
        for node, (heat, origin) in reached.items():
            if heat > best.get(node, (0.0, 0, 0))[0]:
                best[node] = heat, hop, origin
        front = reached
    return best


def all_walks(case: Case) -> dict[int, float]:
    """Best heat of each node over every single walk, from every seed, that avoids its start."""
    graph, options = case.graph, case.options
    best: dict[int, float] = {}

    def walk(origin: int, node: int, heat: float, hop: int) -> None:
        if hop > options.hops:
            return
        for edge in edges_from(graph, node):
            amount = passed(graph, options, hop, heat, node, edge)
            if edge[0] != origin and amount > 0:
                best[edge[0]] = max(best.get(edge[0], 0.0), amount)
                walk(origin, edge[0], amount, hop + 1)

    for seed, score in case.seeds.items():
        walk(seed, seed, score, 1)
    return best


@settings(max_examples=300, deadline=None)
@given(cases())
def test_heat_equals_a_search_hop_by_hop(case: Case) -> None:
    heat = run(case.graph, case.seeds, case.options)
    columns = (heat.nodes, heat.heat, heat.hops, heat.origins)
    found = {node: rest for node, *rest in zip(*(c.tolist() for c in columns), strict=True)}
    assert found == {node: list(best) for node, best in best_paths(case).items()}
    assert all(origin != node for node, (_, _, origin) in found.items())


@settings(max_examples=150, deadline=None)
@given(cases(max_seeds=1))
def test_heat_of_one_seed_is_the_best_of_all_walks(case: Case) -> None:
    case = replace(
        case, options=replace(case.options, max_frontier=99, hops=min(3, case.options.hops))
    )
    heat = as_dict(run(case.graph, case.seeds, case.options))
    expected = all_walks(case)
    assert heat.keys() == expected.keys()
    assert heat == pytest.approx(expected, rel=1e-12)


@settings(max_examples=150, deadline=None)
@given(cases())
def test_heat_of_many_seeds_is_no_more_than_the_best_of_all_walks(case: Case) -> None:
    """A node passes on only its hottest; what its origin would have to take back is lost."""
    case = replace(
        case, options=replace(case.options, max_frontier=99, hops=min(2, case.options.hops))
    )
    heat = as_dict(run(case.graph, case.seeds, case.options))
    expected = all_walks(case)
    assert heat.keys() <= expected.keys()
    for node, amount in expected.items():
        if node in case.seeds:
            assert heat.get(node, 0.0) <= amount * (1 + 1e-12)
        else:
            assert heat[node] == pytest.approx(amount, rel=1e-12)


@given(cases())
def test_heat_is_positive_and_no_more_than_the_hottest_seed(case: Case) -> None:
    heat = run(case.graph, case.seeds, case.options)
    assert (heat.heat > 0).all()
    assert (heat.heat <= max(case.seeds.values())).all()
    assert (np.diff(heat.nodes) > 0).all()
    assert set(heat.origins.tolist()) <= {node for node, score in case.seeds.items() if score > 0}
    assert ((heat.hops >= 1) & (heat.hops <= case.options.hops)).all()


@settings(deadline=None)
@given(cases(), st.data())
def test_more_at_a_seed_is_no_less_elsewhere(case: Case, data: st.DataObject) -> None:
    """Where nothing is cut and no seed is in the way.

    With `max_frontier`, or where a seed is on the way back to itself, more heat in one place can
    take the place of heat from another.
    """
    case = replace(
        case, options=replace(case.options, max_frontier=99, hops=min(2, case.options.hops))
    )
    seed = data.draw(st.sampled_from(sorted(case.seeds)))
    more = {**case.seeds, seed: case.seeds[seed] + data.draw(st.floats(0, 1))}
    before = as_dict(run(case.graph, case.seeds, case.options))
    after = as_dict(run(case.graph, more, case.options))
    for node, amount in before.items():
        if node not in case.seeds:
            assert after[node] >= amount


@given(cases(max_seeds=1), st.floats(0, 1))
def test_one_seed_with_more_heats_all_it_reaches_more(case: Case, extra: float) -> None:
    ((seed, score),) = case.seeds.items()
    before = as_dict(run(case.graph, case.seeds, case.options))
    after = as_dict(run(case.graph, {seed: score + extra}, case.options))
    assert before.keys() <= after.keys()
    # The frontier may be another one only where two of it differ in the last bit.
    if case.options.max_frontier == 150:
        assert all(after[node] >= amount for node, amount in before.items())


@given(cases(), st.randoms(use_true_random=False))
def test_the_order_of_seeds_and_edges_has_no_influence(case: Case, random) -> None:
    seeds = list(case.seeds.items())
    random.shuffle(seeds)
    edges: Triples = {}
    for kind in random.sample(list(case.edges), len(case.edges)):
        triples = [
            (b, a, w) if random.random() < 0.5 else (a, b, w) for a, b, w in case.edges[kind]
        ]
        random.shuffle(triples)
        edges[kind] = triples
    one = run(case.graph, case.seeds, case.options)
    other = run(graph_of(case.n, edges), dict(seeds), case.options)
    for name in ("nodes", "heat", "origins", "hops"):
        assert getattr(one, name).tolist() == getattr(other, name).tolist()
    assert all(one.way_to(node) == other.way_to(node) for node in range(case.n))


@settings(max_examples=200)
@given(cases())
def test_the_way_explains_the_heat_exactly(case: Case) -> None:
    graph, options = case.graph, case.options
    heat = run(graph, case.seeds, options)
    for node, amount, hops, origin in zip(
        heat.nodes.tolist(),
        heat.heat.tolist(),
        heat.hops.tolist(),
        heat.origins.tolist(),
        strict=True,
    ):
        way = heat.way_to(node)
        assert len(way) == hops
        assert (way[0].parent, way[-1].node) == (origin, node)
        carried, at = case.seeds[origin], origin
        for hop, step in enumerate(way, start=1):
            assert step.parent == at
            assert step.node != origin
            edge = next(e for e in edges_from(graph, at) if e[3] == step.edge)
            assert edge[0] == step.node
            assert options.weights.get(EDGE_KINDS[edge[1]], 1.0) > 0
            carried = passed(graph, options, hop, carried, at, edge)
            at = step.node
        assert carried == amount
    assert all(heat.way_to(node) == [] for node in range(case.n) if node not in heat.nodes)
    assert heat.way_to(case.n + 5) == []


@given(cases())
def test_only_similar_edges_ask_for_leave(case: Case) -> None:
    graph = case.graph
    similar = {
        int(graph.targets[at])
        for at in range(len(graph.targets))
        if EDGE_KINDS[graph.kinds[at]] == "similar"
    }
    asked: list[list[int]] = []

    def bar_all(nodes: np.ndarray) -> np.ndarray:
        asked.append(nodes.tolist())
        return np.zeros(len(nodes), bool)

    seeds = np.array(list(case.seeds), np.int64)
    scores = np.array(list(case.seeds.values()), float)
    barred = propagate(graph, seeds, scores, case.options, admits=bar_all)
    assert len(asked) <= case.options.hops
    for nodes in asked:
        assert nodes == sorted(set(nodes))
        assert set(nodes) <= similar
    # Barring all is the same as switching the kind off; degrees of other kinds do not mind.
    off = replace(case.options, weights={**case.options.weights, "similar": 0.0})
    assert as_dict(barred) == as_dict(run(graph, case.seeds, off))
    every = propagate(
        graph, seeds, scores, case.options, admits=lambda nodes: np.ones(len(nodes), bool)
    )
    assert as_dict(every) == as_dict(run(graph, case.seeds, case.options))


scores = st.floats(0, 2) | st.sampled_from([0.0, 0.5, 1.0])


@given(scores, scores, scores)
def test_a_lift_never_passes_the_cap_and_its_terms_add_up(
    base: float, heat: float, origin: float
) -> None:
    score, cap = lift(base, heat, origin)
    assert base <= score <= max(base, CAP * origin)
    assert score <= base + heat
    assert cap <= 0
    assert abs(math.fsum((base, heat, cap)) - score) < 1e-12
    whole, none = lift(base, heat, origin, capped=False)
    assert (whole, none) == (base + heat, 0.0)


# Entries.

PATHS = ["a", "b", "c", "d"]


@st.composite
def hits(draw: st.DrawFn) -> list[Hit]:
    found = []
    for chunk_id, path in enumerate(draw(st.lists(st.sampled_from(PATHS), max_size=14))):
        terms = {"lexical": draw(score)}
        hops: tuple[Hop, ...] = ()
        seed_path, seed_score = "", 0.0
        if draw(st.booleans()):
            terms["heat"] = draw(st.floats(0.01, 1))
            terms["cap"] = -draw(st.floats(0, 1)) * terms["heat"]
            hops = (Hop(99, chunk_id, "link", 1.0),)
            seed_path = draw(st.sampled_from([*PATHS, "elsewhere"]))
            # As `lift` leaves it: what heat lifted stands below the seed's cap.
            own = terms["lexical"]
            seed_score = (own + terms["heat"] + terms["cap"]) / CAP + draw(st.floats(0, 1))
        if draw(st.integers(0, 5)) == 0:
            terms["phrase"] = 4.0
        total = math.fsum(terms.values())
        found.append(Hit(chunk_id, path, chunk_id, total, terms, {}, hops, seed_path, seed_score))
    return rank_hits(found)


fold_weights = st.sampled_from([0.0, 0.15, 0.5, 1.0]) | st.fixed_dictionaries(
    {path: st.sampled_from([0.0, 0.15, 1.0]) for path in PATHS}
).map(lambda table: table.__getitem__)


def unheated_entries(ranking: list[Hit], top: int, fold_weight) -> dict[str, float]:
    """What each file of the stretch would score without the graph."""
    by_file: dict[str, list[float]] = {}
    for hit in ranking:
        if hit.path not in by_file and len(by_file) == top:
            break
        own = (value for name, value in hit.terms.items() if name not in ("heat", "cap"))
        by_file.setdefault(hit.path, []).append(math.fsum(own))
    entries = {}
    for path, scores in by_file.items():
        weight = fold_weight(path) if callable(fold_weight) else fold_weight
        best, *rest = sorted(scores, reverse=True)[:CHUNKS_PER_FILE]
        entries[path] = best + weight * math.fsum(rest)
    return entries


@settings(max_examples=300)
@given(hits(), st.integers(1, 5), fold_weights)
def test_no_entry_rises_above_the_entry_its_heat_came_from(
    ranking: list[Hit], top: int, fold_weight
) -> None:
    unheated = unheated_entries(ranking, top, fold_weight)
    by_file: dict[str, list[Hit]] = {}
    for hit in ranking:
        if hit.path not in by_file and len(by_file) == top:
            break
        by_file.setdefault(hit.path, []).append(hit)
    entries = fold(ranking, top=top, fold_weight=fold_weight)
    assert [entry.path for entry in entries] == [
        entry.path
        for entry in sorted(entries, key=lambda e: (-e.score, -e.hits[0].uncapped, e.path))
    ]
    for entry in entries:
        best = entry.hits[0]
        is_held = bool(best.hops) and best.seed_path != entry.path
        if is_held:
            limit = CAP * best.seed_score + best.terms.get("phrase", 0.0)
            assert entry.score <= max(unheated[entry.path], limit, best.score) + 1e-12
        assert entry.score >= best.score
        weight = fold_weight(entry.path) if callable(fold_weight) else fold_weight
        others = [hit.unheated for hit in by_file[entry.path] if hit is not entry.hits[0]]
        further = (weight * score for score in sorted(others, reverse=True)[:2])
        whole = math.fsum([entry.hits[0].score, *further])
        assert entry.score >= unheated[entry.path] - 1e-12
        assert entry.score <= whole + 1e-12
        if not is_held:
            assert entry.score == whole


@settings(max_examples=200)
@given(hits(), st.integers(1, 5), fold_weights)
def test_terms_of_an_entry_add_up(ranking: list[Hit], top: int, fold_weight) -> None:
    for entry in fold(ranking, top=top, fold_weight=fold_weight):
        assert abs(math.fsum(entry.terms.values()) - entry.score) < 1e-12
        assert entry.terms["best"] == entry.hits[0].score
        assert entry.terms.get("cap", -1.0) < 0


@given(hits(), st.integers(1, 5), fold_weights)
def test_without_a_cap_entries_are_plain_sums(ranking: list[Hit], top: int, fold_weight) -> None:
    for entry in fold(ranking, top=top, fold_weight=fold_weight, capped=False):
        weight = fold_weight(entry.path) if callable(fold_weight) else fold_weight
        rest = (weight * hit.score for hit in entry.hits[1:])
        assert entry.score == math.fsum([entry.hits[0].score, *rest])
        assert "cap" not in entry.terms

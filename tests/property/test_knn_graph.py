"""Neighbour lists against a direct definition, and repaired lists against lists built anew."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragx.algo import knn_graph
from ragx.algo.knn_graph import KnnLists, approximate_lists, build_lists, repair_lists

F32 = np.float32
THRESHOLDS = st.sampled_from([-1.0, 0.0, 0.3, 0.5, 0.7, 0.9999999, 1.0])
KS = st.integers(1, 9)


def brute(matrix: np.ndarray, groups: np.ndarray, *, k: int, min_similarity: float) -> KnnLists:
    """The definition: one row at a time against all others."""
    n = len(matrix)
    neighbours, similarities = np.full((n, k), -1, np.int32), np.zeros((n, k), F32)
    for row in range(n):
        products = np.multiply(matrix, matrix[row], dtype=np.float64)
        scores = np.minimum(np.add.reduce(products, axis=1).astype(F32), F32(1))
        near = np.flatnonzero((groups != groups[row]) & (scores >= F32(min_similarity)))
        near = near[np.lexsort((near, -scores[near]))][:k]
        neighbours[row, : len(near)] = near
        similarities[row, : len(near)] = scores[near] + F32(0)
    return KnnLists(neighbours, similarities)


def assert_same(one: KnnLists, other: KnnLists) -> None:
    assert one.neighbours.tolist() == other.neighbours.tolist()
    assert one.similarities.tobytes() == other.similarities.tobytes()
    assert one.neighbours.dtype == np.int32
    assert one.similarities.dtype == F32


NAMES = ("_BLOCK", "_MANY", "_DENSE", "_PENDING", "_PIECE", "_PAIRS")
SIZES = st.tuples(
    st.sampled_from([2, 5, 16, 2048]),
    st.sampled_from([1, 4, 256, 10**9]),
    st.sampled_from([1, 4, 32, 10**9]),
    st.sampled_from([0, 10, 1 << 15]),
    st.sampled_from([1, 50, 1 << 19]),
    st.sampled_from([1, 7, 64]),
)


def cut(sizes: tuple[int, ...]) -> None:
    """Work in blocks of other sizes, which must not have any influence."""
    for name, size in zip(NAMES, sizes, strict=True):
        setattr(knn_graph, name, size)


@pytest.fixture(autouse=True, scope="module")
def _usual_sizes_afterwards():
    before = tuple(getattr(knn_graph, name) for name in NAMES)
    yield
    cut(before)


def unit(rows: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return (rows / np.where(lengths > 0, lengths, 1)).astype(F32)


@st.composite
def vectors(draw, n: int, dimension: int) -> np.ndarray:
    """Rows in all directions, in clusters, on a grid with many ties, or few distinct ones."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(st.sampled_from(["random", "clustered", "tied", "copies", "nearly equal", "long"]))
    if kind == "tied":
        return unit(rng.integers(-1, 2, (n, dimension)).astype(float))
    rows = rng.standard_normal((n, dimension))
    if kind == "random":
        return unit(rows)
    if kind == "long":  # no unit rows: products beyond 1 are cut, and tie
        return rows.astype(F32)
    rows = rows[rng.integers(0, min(n, 3), n)] if n else rows
    noise = {"clustered": 0.2, "copies": 0.0, "nearly equal": 1e-7}[kind]
    return unit(unit(rows) + noise * rng.standard_normal((n, dimension)))


@st.composite
def inputs(draw) -> tuple[np.ndarray, np.ndarray]:
    n, dimension = draw(st.integers(0, 40)), draw(st.integers(0, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_groups = draw(st.sampled_from([1, 3, 12, 10**9]))
    groups = rng.integers(-n_groups, n_groups, n) if n_groups > 1 else np.full(n, 4)
    if draw(st.booleans()):
        groups = np.sort(groups)
    return draw(vectors(n, dimension)), groups


@settings(max_examples=300, deadline=None)
@given(inputs(), KS, THRESHOLDS, SIZES)
def test_built_lists_are_the_definition(rows, k, min_similarity, sizes) -> None:
    cut(sizes)
    lists = build_lists(*rows, k=k, min_similarity=min_similarity)
    assert_same(lists, brute(*rows, k=k, min_similarity=min_similarity))


@settings(max_examples=100, deadline=None)
@given(inputs(), KS, THRESHOLDS, SIZES)
def test_proposed_lists_hold_true_pairs_in_order(rows, k, min_similarity, sizes) -> None:
    cut(sizes)
    lists = approximate_lists(*rows, k=k, min_similarity=min_similarity)
    whole = brute(*rows, k=max(len(rows[0]), 1), min_similarity=min_similarity)
    for row in range(len(lists)):
        scores = dict(zip(whole.neighbours[row].tolist(), whole.similarities[row], strict=True))
        near = [other for other in lists.neighbours[row].tolist() if other >= 0]
        assert len(set(near)) == len(near)
        assert near == sorted(near, key=lambda other: (-scores[other], other))
        assert lists.similarities[row, : len(near)].tolist() == [scores[other] for other in near]
        assert not lists.similarities[row, len(near) :].any()


@st.composite
def edits(draw, n: int) -> tuple[list[int], list[int]]:
    """Old rows that go or change, and places before which new rows come."""
    some = st.integers(0, max(n - 1, 0))
    share = draw(st.sampled_from([2, 4, 40]))
    gone = draw(st.lists(some, max_size=share)) if n else []
    return gone, draw(st.lists(st.integers(0, n), max_size=share // 2))


@settings(max_examples=150, deadline=None)
@given(st.data(), inputs(), KS, THRESHOLDS)
def test_repaired_lists_are_built_lists(data, rows, k, min_similarity) -> None:
    matrix, groups = rows
    options = {"k": k, "min_similarity": min_similarity}
    cut(data.draw(SIZES))
    lists = build_lists(matrix, groups, **options)
    for _ in range(data.draw(st.integers(1, 4))):
        n = len(matrix)
        gone, places = data.draw(edits(n))
        changed = gone[::2] if data.draw(st.booleans()) else []
        kept = np.arange(n)
        kept[changed] = -1
        leaving = [row for row in gone if row not in changed]
        source = np.arange(n)
        source[changed] = -1
        sources = np.delete(source, leaving)
        kept = np.delete(kept, leaving)
        at = [min(place, len(kept)) for place in places]
        kept, sources = np.insert(kept, at, -1), np.insert(sources, at, -1)
        fresh = data.draw(vectors(len(kept), matrix.shape[1]))
        # New rows are other directions, or copies of rows that stay, or join their groups.
        if n and data.draw(st.booleans()):
            fresh = matrix[data.draw(st.integers(0, n - 1))] + np.zeros_like(fresh)
        mine = np.arange(len(kept)) % 5 - 2
        matrix = np.where(kept[:, None] >= 0, matrix[kept], fresh) if n else fresh
        groups = np.where(kept >= 0, groups[kept], mine) if n else mine
        cut(data.draw(SIZES))
        repaired = repair_lists(lists, kept, matrix, groups, **options)
        lists = build_lists(matrix, groups, **options)
        assert_same(repaired, lists)

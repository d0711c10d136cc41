"""Neighbour lists on rows whose neighbours can be told by hand, and on rows that invite trouble."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from ragx.algo import knn_graph
from ragx.algo.knn_graph import (
    KnnLists,
    approximate_lists,
    build_lists,
    edge_recall,
    repair_lists,
)

F32 = np.float32


def circle(*degrees: float) -> np.ndarray:
    """Unit vectors in the plane: the similarity of two is the cosine of the angle between them."""
    angles = np.deg2rad(np.array(degrees))
    return np.stack((np.cos(angles), np.sin(angles)), axis=1).astype(F32)


def alone(matrix: np.ndarray) -> np.ndarray:
    return np.arange(len(matrix), dtype=np.int64)


def same(one: KnnLists, other: KnnLists) -> bool:
    return (
        one.neighbours.tobytes() == other.neighbours.tobytes()
        and one.similarities.tobytes() == other.similarities.tobytes()
        and one.neighbours.shape == other.neighbours.shape
    )


def clusters(n: int, n_clusters: int, dimension: int = 48) -> np.ndarray:
    rng = np.random.default_rng(5)
    centres = rng.standard_normal((n_clusters, dimension))
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    rows = centres[rng.integers(0, n_clusters, n)]
    rows = rows + rng.standard_normal((n, dimension)) * (0.6 / dimension**0.5)
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(F32)


BUILDERS = [build_lists, approximate_lists]


@pytest.mark.parametrize("build", BUILDERS)
@pytest.mark.parametrize("dimension", [0, 3])
def test_no_rows_give_no_lists(build, dimension: int) -> None:
    lists = build(np.zeros((0, dimension), F32), np.zeros(0, np.int64), k=3, min_similarity=0.5)
    assert len(lists) == 0
    assert lists.neighbours.shape == lists.similarities.shape == (0, 3)
    assert (lists.neighbours.dtype, lists.similarities.dtype) == (np.int32, F32)
    assert same(
        repair_lists(
            lists,
            np.zeros(0, np.int64),
            np.zeros((0, dimension), F32),
            np.zeros(0, np.int64),
            k=3,
            min_similarity=0.5,
        ),
        lists,
    )


@pytest.mark.parametrize("build", BUILDERS)
def test_one_row_has_no_neighbour(build) -> None:
    lists = build(circle(10), np.zeros(1, np.int64), k=2, min_similarity=-1.0)
    assert lists.neighbours.tolist() == [[-1, -1]]
    assert lists.similarities.tolist() == [[0.0, 0.0]]


@pytest.mark.parametrize("build", BUILDERS)
def test_rows_without_dimensions_have_similarity_zero(build) -> None:
    matrix = np.zeros((3, 0), F32)
    lists = build(matrix, alone(matrix), k=2, min_similarity=0.0)
    assert lists.neighbours.tolist() == [[1, 2], [0, 2], [0, 1]]
    assert not lists.similarities.any()
    assert (build(matrix, alone(matrix), k=2, min_similarity=0.1).neighbours == -1).all()


@pytest.mark.parametrize("build", BUILDERS)
def test_neighbours_are_ordered_by_cosine_and_cut_at_the_threshold(build) -> None:
    matrix = circle(0, 10, 30, 100)
    lists = build(matrix, alone(matrix), k=3, min_similarity=float(np.cos(np.deg2rad(75))))
    assert lists.neighbours.tolist() == [[1, 2, -1], [0, 2, -1], [1, 0, 3], [2, -1, -1]]
    angles = np.deg2rad([[10, 30, 90], [10, 20, 90], [20, 30, 70], [70, 90, 90]])
    assert np.allclose(lists.similarities, np.cos(angles), atol=1e-6)


@pytest.mark.parametrize("build", BUILDERS)
def test_more_neighbours_wanted_than_there_are(build) -> None:
    matrix = circle(0, 10, 30)
    lists = build(matrix, alone(matrix), k=5, min_similarity=-1.0)
    assert lists.neighbours.tolist() == [
        [1, 2, -1, -1, -1],
        [0, 2, -1, -1, -1],
        [1, 0, -1, -1, -1],
    ]


@pytest.mark.parametrize("build", BUILDERS)
def test_a_group_is_passed_over(build) -> None:
    matrix = circle(0, 1, 2, 40)
    lists = build(matrix, np.array([7, 7, -2, 7]), k=2, min_similarity=0.0)
    assert lists.neighbours.tolist() == [[2, -1], [2, -1], [1, 0], [2, -1]]


@pytest.mark.parametrize("build", BUILDERS)
def test_ties_go_to_the_lower_row(build) -> None:
    a, b, between = [1.0, 0.0], [0.0, 1.0], [0.5**0.5, 0.5**0.5]
    matrix = np.array([b, between, a, b, a, b], F32)
    lists = build(matrix, alone(matrix), k=3, min_similarity=0.0)
    assert lists.neighbours.tolist() == [
        [3, 5, 1],
        [0, 2, 3],
        [4, 1, 0],
        [0, 5, 1],
        [2, 1, 0],
        [0, 3, 1],
    ]


def test_the_threshold_is_rounded_like_the_similarity() -> None:
    matrix = np.array([[1, 0], [0.7, np.sqrt(1 - 0.7**2)]], F32)
    assert float(F32(0.7)) < 0.7
    lists = build_lists(matrix, alone(matrix), k=1, min_similarity=0.7)
    assert lists.neighbours.tolist() == [[1], [0]]
    above = float(np.nextafter(F32(0.7), F32(1)))
    assert (build_lists(matrix, alone(matrix), k=1, min_similarity=above).neighbours == -1).all()


def test_similarities_are_at_most_one_and_the_same_both_ways() -> None:
    matrix = np.repeat(clusters(40, 4), 3, axis=0) * F32(1.000001)
    lists = build_lists(matrix, alone(matrix), k=119, min_similarity=-1.0)
    assert lists.similarities.max() == 1
    whole = np.zeros((120, 120), F32)
    np.put_along_axis(whole, lists.neighbours.astype(np.int64), lists.similarities, axis=1)
    assert (whole.view(np.uint32) == whole.T.view(np.uint32)).all()


def test_a_zero_row_and_a_negative_zero_tie() -> None:
    matrix = np.array([[1, 0], [0, 0], [-0.0, -0.0], [0, 1]], F32)
    lists = build_lists(matrix, alone(matrix), k=3, min_similarity=0.0)
    assert lists.neighbours[0].tolist() == [1, 2, 3]
    assert not np.signbit(lists.similarities).any()


def test_a_tile_has_the_bits_of_its_pairs_where_rounding_turns() -> None:
    # Sums of half a float32 step above 1/2, and of terms that a float64 sum may lose: which way
    # they round depends on the order of adding up.
    rng = np.random.default_rng(3)
    matrix = np.ones((400, 64), F32)
    tiny = rng.integers(-4, 5, (399, 62)) * 2.0**-54
    matrix[1:] = np.concatenate((np.full((399, 1), 0.5), np.full((399, 1), 2.0**-25), tiny), axis=1)
    matrix[1:] = rng.permuted(matrix[1:], axis=1)
    search = knn_graph._Search(matrix, alone(matrix), 3, -1.0)
    tile = search._tile(alone(matrix), np.arange(1))
    rows = np.arange(1, 400)
    scores = knn_graph._score(matrix, rows, np.zeros(399, np.int64))
    assert (tile[1:, 0] == scores).all()
    assert len(np.unique(scores)) == 2


def test_memory_layout_and_read_only_input_change_nothing() -> None:
    matrix = clusters(300, 10)
    expected = build_lists(matrix, alone(matrix), k=4, min_similarity=0.2)
    columns = np.asfortranarray(matrix)
    columns.flags.writeable = False
    assert same(build_lists(columns, alone(matrix), k=4, min_similarity=0.2), expected)
    wide = np.concatenate((matrix, matrix), axis=1)[:, : matrix.shape[1]]
    assert same(build_lists(wide, alone(matrix), k=4, min_similarity=0.2), expected)


@pytest.mark.parametrize("nudge", [0.0, 1e-7])
def test_thousands_of_equal_rows_stay_within_bounds(nudge: float) -> None:
    n, k = 5000, 4
    matrix = np.repeat(clusters(1, 1, 16), n, axis=0)
    if nudge:
        noise = np.random.default_rng(0).standard_normal(matrix.shape)
        matrix = (matrix + noise * nudge).astype(F32)
    tracemalloc.start()
    lists = build_lists(matrix, alone(matrix), k=k, min_similarity=0.5)
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak_bytes < 200e6  # 8 bytes for all pairs would be 200 MB
    if not nudge:
        assert lists.neighbours[:2].tolist() == [[1, 2, 3, 4], [0, 2, 3, 4]]
        assert (lists.neighbours[k:] == np.arange(k)).all()
        assert same(approximate_lists(matrix, alone(matrix), k=k, min_similarity=0.5), lists)
        return
    for row in (0, 2047, 2048, 4999):
        scores = np.minimum(np.add.reduce(matrix.astype(float) * matrix[row], axis=1), 1)
        scores = scores.astype(F32)
        scores[row] = -np.inf
        order = np.lexsort((np.arange(n), -scores))[:k]
        assert lists.neighbours[row].tolist() == order.tolist()
        assert (lists.similarities[row] == scores[order]).all()


@pytest.mark.parametrize("build", BUILDERS)
def test_one_group_of_thousands_has_no_edges(build) -> None:
    matrix = np.repeat(clusters(50, 1, 16), 100, axis=0)
    lists = build(matrix, np.zeros(5000, np.int64), k=4, min_similarity=0.0)
    assert (lists.neighbours == -1).all()
    assert not lists.similarities.any()


def test_equal_rows_in_groups_find_each_other_approximately() -> None:
    # The first k rows of a vector may all be of the group that asks.
    matrix = np.repeat(circle(0, 90), 30, axis=0)
    groups = np.concatenate((np.repeat([0, 1, 2], 10), np.repeat([3, 0, 4], 10)))
    for k in (1, 4, 15):
        expected = build_lists(matrix, groups, k=k, min_similarity=0.5)
        assert same(approximate_lists(matrix, groups, k=k, min_similarity=0.5), expected)


def test_a_kept_list_takes_in_what_is_new_and_a_full_one_that_lost_is_searched_again() -> None:
    options = {"k": 1, "min_similarity": 0.5}
    before = circle(0, 10, 30, 200)
    old = build_lists(before, alone(before), **options)
    assert old.neighbours.tolist() == [[1], [0], [1], [-1]]
    # Row 1 leaves; 2 falls back on 0; a new row becomes the neighbour of 3.
    after = circle(0, 30, 190, 200)
    new = repair_lists(old, np.array([0, 2, -1, 3]), after, alone(after), **options)
    assert new.neighbours.tolist() == [[1], [0], [3], [2]]
    assert same(new, build_lists(after, alone(after), **options))


def test_a_small_repair_multiplies_only_what_it_must(monkeypatch) -> None:
    monkeypatch.setattr(knn_graph, "_BLOCK", 64)
    matrix = clusters(900, 90)
    options = {"k": 3, "min_similarity": 0.3}
    old = build_lists(matrix, alone(matrix), **options)
    met = []
    meet = knn_graph._Search.meet

    def counting(self, left, right, *, both):
        met.append(len(left) * len(right))
        meet(self, left, right, both=both)

    monkeypatch.setattr(knn_graph._Search, "meet", counting)
    kept = np.delete(np.arange(900), [5, 400])
    new = repair_lists(old, kept, matrix[kept], alone(kept), **options)
    stale = np.isin(old.neighbours[kept], [5, 400]).any(axis=1) & (old.neighbours[kept, -1] >= 0)
    assert sum(met) == int(stale.sum()) * len(kept)
    assert same(new, build_lists(matrix[kept], alone(kept), **options))


def test_a_large_repair_builds_anew(monkeypatch) -> None:
    matrix = clusters(20, 2)
    options = {"k": 3, "min_similarity": 0.3}
    old = build_lists(matrix, alone(matrix), **options)
    built = []

    def counting(*arguments, **options):
        built.append(len(arguments[0]))
        return build_lists(*arguments, **options)

    monkeypatch.setattr(knn_graph, "build_lists", counting)
    for n_new, n_builds in ((0, 0), (11, 1)):
        kept = np.where(np.arange(20) < n_new, -1, np.arange(20))
        assert same(repair_lists(old, kept, matrix, alone(matrix), **options), old)
        assert built == [20] * n_builds


def test_nothing_changed_is_nothing_to_do(monkeypatch) -> None:
    matrix = clusters(200, 20)
    old = build_lists(matrix, alone(matrix), k=3, min_similarity=0.3)
    monkeypatch.setattr(knn_graph._Search, "meet", None)
    renamed = alone(matrix) * 3 - 100
    assert same(repair_lists(old, np.arange(200), matrix, renamed, k=3, min_similarity=0.3), old)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"k": 0}, "k is 0"),
        ({"min_similarity": float("nan")}, "min_similarity is nan"),
        ({"min_similarity": 1.5}, "min_similarity is 1.5"),
        ({"matrix": np.zeros((2, 2))}, "float64"),
        ({"matrix": np.zeros(2, F32)}, r"\(2,\)"),
        ({"matrix": np.array([[1, 0], [np.nan, 0]], F32)}, "not finite"),
        ({"matrix": np.array([[1, 0], [np.inf, 0]], F32)}, "not finite"),
        ({"groups": np.zeros(3, np.int64)}, r"\(3,\)"),
        ({"groups": np.zeros(2, np.int32)}, "int32"),
    ],
)
@pytest.mark.parametrize("build", BUILDERS)
def test_bad_input_is_refused(build, change, message: str) -> None:
    good = {"matrix": circle(0, 1), "groups": np.arange(2), "k": 1, "min_similarity": 0.5}
    build(**good)
    with pytest.raises(ValueError, match=message):
        build(**{**good, **change})


@pytest.mark.parametrize(
    "kept", [[1, 0], [0, 0], [0, 2], np.zeros(3, np.int64), np.zeros(2, np.int32)]
)
def test_impossible_repairs_are_refused(kept) -> None:
    matrix = circle(0, 1)
    old = build_lists(matrix, alone(matrix), k=1, min_similarity=0.5)
    with pytest.raises(ValueError, match="kept"):
        repair_lists(old, np.asarray(kept), matrix, alone(matrix), k=1, min_similarity=0.5)
    with pytest.raises(ValueError, match="not of 2 neighbours"):
        repair_lists(old, np.arange(2), matrix, alone(matrix), k=2, min_similarity=0.5)


def lists_of(*neighbours: list[int]) -> KnnLists:
    array = np.array(neighbours, np.int32)
    return KnnLists(array, np.where(array >= 0, F32(0.5), F32(0)))


def test_edge_recall_counts_directed_edges_whatever_their_order() -> None:
    exact = lists_of([1, 2], [0, -1], [-1, -1])
    assert edge_recall(exact, exact) == 1
    assert edge_recall(exact, lists_of([2, 1], [-1, -1], [0, 1])) == 2 / 3
    assert edge_recall(exact, lists_of([-1], [2], [0])) == 0
    assert edge_recall(lists_of([-1], [-1]), lists_of([1], [0])) == 1
    with pytest.raises(ValueError, match="3 and of 1 rows"):
        edge_recall(exact, lists_of([-1]))


def test_hnsw_finds_most_edges_of_clustered_rows_and_always_the_same() -> None:
    matrix = clusters(3000, 60)
    groups = alone(matrix) // 3
    exact = build_lists(matrix, groups, k=8, min_similarity=0.3)
    found = approximate_lists(matrix, groups, k=8, min_similarity=0.3)
    assert (exact.neighbours >= 0).mean() > 0.9
    assert edge_recall(exact, found) >= 0.9
    assert same(found, approximate_lists(matrix, groups, k=8, min_similarity=0.3))
    # What is found is scored exactly.
    known = dict(
        zip(
            knn_graph._edges(exact).tolist(),
            exact.similarities[exact.neighbours >= 0].tolist(),
            strict=True,
        )
    )
    scores = found.similarities[found.neighbours >= 0].tolist()
    pairs = zip(knn_graph._edges(found).tolist(), scores, strict=True)
    assert all(known.get(edge, score) == score for edge, score in pairs)


def test_hnsw_that_cannot_reach_so_many_is_asked_for_fewer(monkeypatch) -> None:
    import hnswlib

    class Shy(hnswlib.Index):
        def knn_query(self, points, k, num_threads):
            if k > 3:
                raise RuntimeError("Cannot return the results in a contiguous 2D array.")
            return super().knn_query(points, k=k, num_threads=num_threads)

    monkeypatch.setattr(hnswlib, "Index", Shy)
    matrix = circle(*range(0, 90, 3))
    found = approximate_lists(matrix, alone(matrix), k=4, min_similarity=0.0)
    # Of 8, 4 and 2 asked for, the last are the row itself and its nearest.
    assert found.neighbours[10].tolist() in ([9, -1, -1, -1], [11, -1, -1, -1])

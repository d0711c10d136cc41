"""Which chunks resemble each other: weights, what is left out, and lists that commits repair."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ragx.algo.chunking.base import ChunkOptions
from ragx.errors import IndexDamaged
from ragx.indexing.prepare import Preparer
from ragx.providers.fakes import HashEmbedder
from ragx.store.base import LinkOptions
from ragx.store.rows import all_vectors, load_vectors
from ragx.store.similar import update_neighbours

Cosine = Callable[[tuple[float, ...], tuple[float, ...]], float]

A, B, C = (1.0, 0.0, 0.0), (0.8, 0.6, 0.0), (0.0, 0.0, 1.0)


def neighbours(bench: Any) -> int:
    """Listed pairs, in each direction."""
    return sum(len(row[2]) // 20 for row in bench.rows()["neighbours"])


def test_the_weight_is_the_cosine(bench: Any, cosine: Cosine) -> None:
    bench.commit(
        {
            "a.md": [bench.Piece("one", windows=(A,))],
            "b.md": [bench.Piece("two", windows=(B,))],
            "c.md": [bench.Piece("three", windows=(C,))],
        }
    )
    assert bench.edges("similar") == {("a.md", "b.md"): pytest.approx(cosine(A, B), abs=1e-6)}
    bench.commit({"b.md": None})
    assert bench.edges("similar") == {}
    assert neighbours(bench) == 0


@pytest.mark.parametrize(("least", "n"), [(0.79, 1), (0.81, 0)])
def test_the_least_cosine(bench: Any, least: float, n: int) -> None:
    tree = {
        "a.md": [bench.Piece("one", windows=(A,))],
        "b.md": [bench.Piece("two", windows=(B,))],
    }
    bench.commit(tree, LinkOptions(min_edge_sim=least))
    assert len(bench.edges("similar")) == n


@pytest.mark.parametrize(("limit", "n"), [(0.81, 1), (0.79, 0)])
def test_copies_get_no_edge(bench: Any, limit: float, n: int) -> None:
    tree = {
        "a.md": [bench.Piece("one", windows=(A,))],
        "b.md": [bench.Piece("two", windows=(B,))],
    }
    bench.commit(tree, LinkOptions(near_dup_sim=limit))
    assert len(bench.edges("similar")) == n
    assert neighbours(bench) == 2  # the lists know them all the same


def test_chunks_of_one_file_may_be_alike(bench: Any) -> None:
    bench.commit({"a.md": [bench.Piece("one", windows=(A,)), bench.Piece("two", windows=(B,))]})
    assert bench.edges("similar").keys() == {("a.md", "a.md:1")}


def test_a_shared_stretch_joins_with_weight_one(bench: Any) -> None:
    bench.commit(
        {
            "a.md": [bench.Piece("one", windows=(A,), parts=(A, C))],
            "b.md": [bench.Piece("two", windows=((0.0, 1.0, 0.0),), parts=(C, (0.0, 1.0, 0.0)))],
        }
    )
    assert bench.edges("similar") == {("a.md", "b.md"): 1.0}


def test_the_strongest_pair_of_stretches_counts(bench: Any, cosine: Cosine) -> None:
    far, near = (0.7, 0.0, 0.714), (0.95, 0.31, 0.0)
    whole = (0.0, 1.0, 0.0)
    bench.commit(
        {
            "a.md": [bench.Piece("one", windows=(C,), parts=(A, (0.0, -1.0, 0.0)))],
            "b.md": [bench.Piece("two", windows=(whole,), parts=(far, near))],
        }
    )
    assert bench.edges("similar") == {("a.md", "b.md"): pytest.approx(cosine(A, near), abs=1e-6)}


def test_stretches_of_one_chunk_are_no_neighbours(bench: Any) -> None:
    bench.commit({"a.md": [bench.Piece("one", windows=(A,), parts=(A, B))]})
    assert bench.edges("similar") == {}
    assert neighbours(bench) == 0


def test_windows_serve_where_there_are_no_parts(bench: Any) -> None:
    """Of a chunk with parts, windows stand for the whole alone."""
    bench.commit(
        {
            "a.md": [bench.Piece("one", windows=(A,), parts=(C, (0.0, 1.0, 0.0)))],
            "b.md": [bench.Piece("two", windows=(B,))],
        },
        LinkOptions(min_edge_sim=0.7),
    )
    assert len(bench.rows()["neighbours"]) == 3
    assert bench.edges("similar") == {}


def test_without_a_whole_vector_there_are_no_parts(bench: Any) -> None:
    bench.commit(
        {
            "a.md": [bench.Piece("one", parts=(A, C))],
            "b.md": [bench.Piece("two", parts=(B, C))],
        }
    )
    assert bench.rows()["parts"] == bench.rows()["neighbours"] == []
    assert bench.edges("similar") == {}


def test_whole_chunks_are_compared_by_the_mean_of_their_windows(bench: Any, cosine: Cosine) -> None:
    tree = {
        "a.md": [bench.Piece("one", windows=(A, C))],
        "b.md": [bench.Piece("two", windows=(B,))],
    }
    bench.commit(tree, LinkOptions(edge_source="chunk", min_edge_sim=0.3))
    mean = (1.0, 0.0, 1.0)
    expected = cosine(mean, B)
    assert bench.edges("similar") == {("a.md", "b.md"): pytest.approx(expected, abs=1e-3)}
    bench.commit({}, LinkOptions(edge_source="subchunk", min_edge_sim=0.3))
    assert bench.edges("similar") == {("a.md", "b.md"): pytest.approx(cosine(A, B), abs=1e-6)}


# Boilerplate.


def test_what_more_chunks_share_than_a_list_has_room_for(bench: Any) -> None:
    k = 3
    own = [tuple(np.eye(8)[i].tolist()) for i in range(8)]
    header = (1.0,) * 8

    def piece(i: int) -> Any:
        return [bench.Piece(f"text {i}", windows=(own[i],), parts=(header, own[i]))]

    bench.commit({f"{i}.md": piece(i) for i in range(k)}, LinkOptions(k=k))
    assert set(bench.edges("similar").values()) == {1.0}
    assert len(bench.edges("similar")) == k - 1  # each with the next
    assert len(bench.rows()["neighbours"]) == k + 1
    bench.commit({"more.md": piece(k)})
    assert bench.edges("similar") == {}
    assert len(bench.rows()["neighbours"]) == k + 1
    bench.commit({"0.md": None})
    assert len(bench.edges("similar")) == k - 1  # each with the next
    # One bearer left: the stretch is that chunk's own now.
    bench.commit({"1.md": None, "2.md": None})
    owners = {row[1] for row in bench.rows()["neighbours"]}
    assert owners == {bench.id_of("more.md")}
    assert bench.edges("similar") == {}


def test_a_stretch_changes_hands(bench: Any) -> None:
    """Its own chunk's stretches are no neighbours, so that the owner decides the list."""
    near = (0.9, 0.43, 0.0)
    bench.commit(
        {
            "a.md": [bench.Piece("one", windows=(C,), parts=(A, B))],
            "b.md": [bench.Piece("two", windows=((0.0, 1.0, 0.0),), parts=(near, C))],
        }
    )
    bench.commit({"b.md": [bench.Piece("two", windows=((0.0, 1.0, 0.0),), parts=(near, A))]})
    assert bench.edges("similar")[("a.md", "b.md")] == 1.0
    bench.commit({"a.md": [bench.Piece("one", windows=(C,), parts=(B, C))]})
    bench.commit({"a.md": [bench.Piece("new", windows=(C,), parts=(A, C))], "b.md": None})


# Repair.


@pytest.mark.parametrize("source", ["chunk", "subchunk"])
@pytest.mark.parametrize("seed", range(3))
def test_any_order_of_edits_ends_in_the_lists_of_a_fresh_index(
    bench: Any, source: str, seed: int
) -> None:
    """`commit` compares; many equal vectors and equal similarities make ties."""
    rng = random.Random(seed)
    pool = [(float(x), float(y), float(z)) for x in range(3) for y in range(3) for z in (0, 1)][1:]
    options = LinkOptions(k=2, min_edge_sim=0.3, near_dup_sim=0.99, edge_source=source)

    def file() -> list[Any]:
        pieces = []
        for i in range(rng.randrange(1, 4)):
            windows = tuple(rng.sample(pool, rng.choice([0, 1, 1, 2])))
            parts = tuple(rng.sample(pool, rng.choice([0, 2, 3])))
            pieces.append(bench.Piece(f"{i}{windows}{parts}", windows=windows, parts=parts))
        return pieces

    bench.commit({f"{i}.md": file() for i in range(4)}, options)
    for _ in range(12):
        paths = rng.sample([f"{i}.md" for i in range(7)], rng.randrange(1, 4))
        changes = {
            path: None if path in bench.tree and rng.random() < 0.4 else file() for path in paths
        }
        bench.commit(changes)
    for other in (replace(options, k=4), replace(options, min_edge_sim=0.8), options):
        bench.commit({}, other)


def test_other_options_with_a_relink_are_as_from_the_start(bench: Any) -> None:
    vectors = [(1.0, 0.1 * i, 0.0) for i in range(8)]
    tree = {f"{i}.md": [bench.Piece(f"text {i}", windows=(v,))] for i, v in enumerate(vectors)}
    bench.commit(tree, LinkOptions(k=1, near_dup_sim=1.1))
    few = len(bench.edges("similar"))
    bench.commit({}, LinkOptions(k=5, near_dup_sim=1.1))
    assert len(bench.edges("similar")) > few
    bench.commit({}, LinkOptions(k=1, near_dup_sim=1.1))
    assert len(bench.edges("similar")) == few


def test_nothing_to_do_changes_nothing(bench: Any) -> None:
    tree = {
        "a.md": [bench.Piece("one", windows=(A,))],
        "b.md": [bench.Piece("two", windows=(B,))],
    }
    bench.commit(tree)
    with closing(sqlite3.connect(bench.root / ".ragx" / "index.db")) as db:
        before = db.total_changes
        vectors = all_vectors(db, load_vectors(db))
        update_neighbours(db, bench.options, vectors, all_anew=False)
        assert db.total_changes == before


# Damage.


def broken(bench: Any, statement: str) -> None:
    """Change the rows behind the index's back."""
    with closing(sqlite3.connect(bench.root / ".ragx" / "index.db")) as db:
        db.execute(statement)
        db.commit()
    (bench.root / ".ragx" / "index.seal").unlink()
    for name in ("graph.bin", "vectors.bin"):
        (bench.root / ".ragx" / name).unlink()


@pytest.mark.parametrize("source", ["chunk", "subchunk"])
def test_a_lost_vector_stands_for_nothing(bench: Any, source: str) -> None:
    tree = {
        "a.md": [bench.Piece("one", windows=(A,))],
        "b.md": [bench.Piece("two", windows=(B,))],
    }
    bench.commit(tree, LinkOptions(edge_source=source))
    broken(bench, "DELETE FROM embeddings WHERE key = (SELECT min(key) FROM embeddings)")
    bench._run(bench.root, {"c.md": [bench.Piece("three", windows=(C,))]}, relink=False)
    assert bench.edges("similar") == {}


def test_vectors_of_two_widths_are_damage(bench: Any) -> None:
    tree = {
        "a.md": [bench.Piece("one", windows=(A,))],
        "b.md": [bench.Piece("two", windows=(B,))],
    }
    bench.commit(tree)
    broken(
        bench, "UPDATE embeddings SET vector = x'0000' WHERE key = (SELECT min(key) FROM windows)"
    )
    with pytest.raises(IndexDamaged):
        bench._run(bench.root, {"c.md": [bench.Piece("three", windows=(C,))]}, relink=False)


# What is compared.

PARAGRAPHS = " ".join(f"word{i} here." for i in range(60))


@pytest.mark.parametrize(
    ("limit", "size", "compares_parts"),
    [(None, 32, True), (1000, 32, True), (32, 32, False), (20, 32, False), (None, 400, False)],
)
def test_parts_are_made_where_windows_are_longer(
    limit: int | None, size: int, compares_parts: bool
) -> None:
    embedder = HashEmbedder(max_tokens=limit)
    preparer = Preparer(ChunkOptions(size_tokens=200), embedder, size)
    prepared = preparer.prepare("a.md", f"# Title\n\n{PARAGRAPHS}\n".encode())
    assert len(prepared.chunks) == 1
    (parts,) = prepared.parts
    assert bool(parts) == compares_parts
    for part in parts:
        heading, _, text = part.text.partition("\n")
        assert heading == "Title"
        assert text in prepared.chunks[0].text
        assert embedder.count_tokens(text) - 2 <= size
    # They follow from the stored chunk alone, so that edges can be made anew without the files.
    assert preparer.parts(prepared.chunks[0], prepared.title) == parts


def test_no_parts_where_whole_chunks_are_compared_or_nothing_is() -> None:
    raw = f"# Title\n\n{PARAGRAPHS}\n".encode()
    for preparer in (
        Preparer(ChunkOptions(size_tokens=200), HashEmbedder(), None),
        Preparer(ChunkOptions(size_tokens=200), None, 32),
    ):
        assert not any(preparer.prepare("a.md", raw).parts)

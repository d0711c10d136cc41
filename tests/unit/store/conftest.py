"""Small hand-made indexes: files are lists of chunk texts, vectors follow from the text.

`write` is for rows and searches; `bench` for edges, and compares with a fresh index at each step.
"""

from __future__ import annotations

import shutil
import sqlite3
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ragx.algo.chunking.languages import language_of
from ragx.algo.graph import EDGE_KINDS, CsrGraph
from ragx.algo.mentions import name_key
from ragx.algo.references import references
from ragx.indexing.prepare import chunk_identity
from ragx.store.base import Evidence, FileRow, LinkOptions, StagedChunk
from ragx.store.sqlite import SqliteReader, SqliteWriter
from ragx.types import Chunk

DIMENSION = 32


def unit_vector(text: str, dimension: int = DIMENSION) -> np.ndarray:
    """A fixed (dimension,) float32 unit vector for a text."""
    vector = np.random.default_rng(zlib.crc32(text.encode())).normal(size=dimension)
    return (vector / np.linalg.norm(vector)).astype(np.float32)


def file_row(path: str, texts: Sequence[str], **changes: object) -> FileRow:
    """An ok row whose hash follows from the texts."""
    digest = f"{zlib.crc32(repr(list(texts)).encode()):08x}"
    values: dict[str, object] = {
        "path": path,
        "content_hash": digest,
        "size": sum(map(len, texts)),
        "mtime_ns": 1,
        "ctime_ns": 2,
        "inode": 3,
        "scanned_ns": 4,
        "encoding": "utf-8",
        "language": "markdown",
        "title": path,
        "n_chunks": len(texts),
    }
    return FileRow(**{**values, **changes})  # type: ignore[arg-type]


def staged_chunks(path: str, texts: Sequence[str], *, vectors: bool) -> list[StagedChunk]:
    """Chunks of a file, one line each; `A > B | text` gives headings, `text @ name` a symbol."""
    staged = []
    seen: dict[str, int] = {}
    for ordinal, given in enumerate(texts):
        heading, bar, rest = given.rpartition(" | ")
        text, at, symbol = rest.partition(" @ ")
        occurrence = seen.get(text, 0)
        seen[text] = occurrence + 1
        chunk = Chunk(
            chunk_id=chunk_identity(path, text, occurrence),
            path=path,
            ordinal=ordinal,
            byte_start=10 * ordinal,
            byte_end=10 * ordinal + len(text.encode()),
            line_start=ordinal + 1,
            line_end=ordinal + 1,
            text=text,
            heading=tuple(heading.split(" > ")) if bar else (),
            symbols=(symbol,) if at else (),
        )
        keys = (zlib.crc32(text.encode()).to_bytes(16, "big"),) if vectors else ()
        staged.append(StagedChunk(chunk, keys))
    return staged


Write = Callable[..., None]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """`write({path: texts or None}, root=tmp_path, vectors=True)` commits one run; None deletes."""

    def run(
        files: Mapping[str, Sequence[str] | None],
        *,
        root: Path = tmp_path,
        vectors: bool = True,
        derived: bool = True,
        reset: bool = False,
    ) -> None:
        with closing(SqliteWriter(root)) as writer:
            if reset:
                writer.reset()
            for path, texts in files.items():
                if texts is None:
                    writer.stage_delete(path)
                    continue
                staged = staged_chunks(path, texts, vectors=vectors)
                writer.put_embeddings(
                    (key, unit_vector(item.chunk.text))
                    for item in staged
                    for key in item.window_keys
                )
                writer.stage_file(file_row(path, texts), staged)
            writer.commit({"analysis_version": "1", "embeddings_provider": "hash"}, LinkOptions())
            if vectors and derived:
                writer.write_derived()

    return run


@pytest.fixture
def make_row() -> Callable[..., FileRow]:
    return file_row


@pytest.fixture
def make_staged() -> Callable[..., list[StagedChunk]]:
    return staged_chunks


@pytest.fixture
def vector_of() -> Callable[..., np.ndarray]:
    return unit_vector


# Edges.

GRAPH_TABLES = ("names", "mentions", "links", "windows", "parts", "neighbours")


@dataclass(frozen=True)
class Piece:
    """One chunk: its text and what the graph takes from it. References are read from the text.

    Args:
        names: what the file is called; of a file's first piece.
        windows, parts: vectors of any length above 0.
    """

    text: str
    names: tuple[str, ...] = ()
    symbols: tuple[str, ...] = ()
    heading: tuple[str, ...] = ()
    windows: tuple[tuple[float, ...], ...] = ()
    parts: tuple[tuple[float, ...], ...] = ()


Tree = Mapping[str, Sequence[Piece] | None]


def stored_vector(values: Sequence[float]) -> np.ndarray:
    """The unit vector as it comes back from the index, in float64."""
    vector = np.array(values, np.float32)
    return (vector / np.linalg.norm(vector)).astype(np.float16).astype(np.float64)


class Bench:
    """An index under test; after each commit it must equal one built from nothing."""

    Piece = Piece

    def __init__(self, base: Path) -> None:
        self.root = base / "bench"
        self._fresh = base / "fresh"
        self.root.mkdir()
        self.tree: dict[str, Sequence[Piece]] = {}
        self.options = LinkOptions()

    def commit(self, changes: Tree, options: LinkOptions | None = None) -> None:
        """One run; None deletes a file. Other options make all edges anew."""
        anew = options is not None and options != self.options
        self.options = options or self.options
        for path, pieces in changes.items():
            if pieces is None:
                del self.tree[path]
            else:
                self.tree[path] = pieces
        self._run(self.root, changes, relink=anew)
        self.check()

    def check(self) -> None:
        """Compare all rows and the graph with those of a fresh index."""
        self._fresh.mkdir()
        try:
            self._run(self._fresh, self.tree, relink=False)
            expected, found = self.rows(self._fresh), self.rows()
            for table in GRAPH_TABLES:
                assert found[table] == expected[table], table
            with (
                closing(SqliteReader(self.root)) as reader,
                closing(SqliteReader(self._fresh)) as fresh,
            ):
                assert reader.digests() == fresh.digests()
                assert reader.counts() == fresh.counts()
                assert same(reader.graph(), fresh.graph())
        finally:
            shutil.rmtree(self._fresh)

    def _run(self, root: Path, changes: Tree, *, relink: bool) -> None:
        with closing(SqliteWriter(root)) as writer:
            if relink:
                writer.relink()
            for path, pieces in changes.items():
                if pieces is None:
                    writer.stage_delete(path)
                else:
                    self._stage(writer, path, pieces)
            manifest = {
                "graph_k": str(self.options.k),
                "graph_min_edge_sim": repr(self.options.min_edge_sim),
                "graph_near_dup_sim": repr(self.options.near_dup_sim),
                "graph_edge_source": self.options.edge_source,
            }
            writer.commit(manifest, self.options)
            writer.write_derived()

    def _stage(self, writer: SqliteWriter, path: str, pieces: Sequence[Piece]) -> None:
        texts = [piece.text for piece in pieces]
        staged = []
        for ordinal, piece in enumerate(pieces):
            chunk = Chunk(
                chunk_id=chunk_identity(path, piece.text, texts[:ordinal].count(piece.text)),
                path=path,
                ordinal=ordinal,
                byte_start=10 * ordinal,
                byte_end=10 * ordinal + 9,
                line_start=ordinal + 1,
                line_end=ordinal + 1,
                text=piece.text,
                heading=piece.heading,
                symbols=piece.symbols,
            )
            names = tuple(map(name_key, piece.names))
            links = tuple(references(piece.text, language_of(path)))
            keys = [self._keys(writer, vectors) for vectors in (piece.windows, piece.parts)]
            staged.append(StagedChunk(chunk, keys[0], keys[1], names, links))
        writer.stage_file(file_row(path, texts, language=language_of(path)), staged)

    @staticmethod
    def _keys(writer: SqliteWriter, vectors: Sequence[Sequence[float]]) -> tuple[bytes, ...]:
        items = {}
        for values in vectors:
            vector = np.array(values, np.float32)
            vector /= np.linalg.norm(vector)
            items[zlib.crc32(vector.tobytes()).to_bytes(16, "big")] = vector
        writer.put_embeddings(items.items())
        return tuple(items)

    def rows(self, root: Path | None = None) -> dict[str, list[Any]]:
        """All rows that edges are derived from, by table."""
        with closing(sqlite3.connect((root or self.root) / ".ragx" / "index.db")) as db:
            return {
                table: db.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall()
                for table in GRAPH_TABLES
            }

    def id_of(self, path: str, ordinal: int = 0) -> int:
        with closing(SqliteReader(self.root)) as reader:
            return reader.chunks_of(path)[ordinal].chunk_id

    def edges(self, kind: str) -> dict[tuple[str, str], float]:
        """Weight by both ends, each `path` or `path:ordinal`, in order; each edge once."""
        with closing(SqliteReader(self.root)) as reader:
            graph = reader.graph()
            chunks = reader.chunks(graph.ids.tolist())
        labels = [
            chunk.path + (f":{chunk.ordinal}" if chunk.ordinal else "")
            for chunk in map(chunks.__getitem__, graph.ids.tolist())
        ]
        found = {}
        for node, label in enumerate(labels):
            for at in range(int(graph.indptr[node]), int(graph.indptr[node + 1])):
                other = int(graph.targets[at])
                if node < other and EDGE_KINDS[graph.kinds[at]] == kind:
                    found[label, labels[other]] = float(graph.weights[at])
        return found

    def evidence(self, one: int, other: int) -> list[Evidence]:
        with closing(SqliteReader(self.root)) as reader:
            return reader.evidence([(one, other)])[one, other]


def same(one: CsrGraph, other: CsrGraph) -> bool:
    """Whether two graphs have the same nodes, edges, weights and order."""
    return all(
        np.array_equal(getattr(one, name), getattr(other, name))
        for name in ("ids", "indptr", "targets", "kinds", "weights", "by_id")
    )


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """An empty index whose edges are under test."""
    return Bench(tmp_path)


@pytest.fixture
def cosine() -> Callable[[Sequence[float], Sequence[float]], float]:
    """Cosine of two vectors as stored."""
    return lambda one, other: float(stored_vector(one) @ stored_vector(other))

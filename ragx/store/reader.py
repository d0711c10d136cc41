"""The SQLite engine's reader: a snapshot of the last commit."""

from __future__ import annotations

import contextlib
import copy
import json
import sqlite3
import stat
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ragx.errors import IndexMissing
from ragx.store import schema, seal, vectors
from ragx.store.base import Counts, Digests, Evidence, FileFacts, FileRow, Scored
from ragx.store.communities import (
    CommunityOptions,
    Partition,
    find_communities,
    read_communities,
)
from ragx.store.connect import DATABASE_NAME, connect_reading, index_directory
from ragx.store.edges import find_evidence, map_graph, write_graph
from ragx.store.faults import reading, translated
from ragx.store.rows import (
    CHUNK_COLUMNS,
    FILE_COLUMNS,
    ROWID_IN_LIST,
    digests,
    graph_stamp,
    id_list,
    known_embeddings,
    load_vectors,
    marks,
    read_counts,
    read_extraction,
    read_facts,
    read_files,
    read_manifest,
    stored_graph,
    to_chunk,
    to_file,
    vector_stamp,
)
from ragx.types import Chunk

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ragx.algo.graph import CsrGraph

__all__ = ["SqliteReader"]

_VERY_COMMON = 10_000  # the same where shares are taken of it
_FEW_FILES = 1000
_ENOUGH = 1000  # matches after which a word is common, however many more there are


def _mode(path: Path) -> int:
    """Kind and permissions of a path; 0 if there is nothing."""
    try:
        return path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return 0


def _generation(db: sqlite3.Connection) -> int:
    """Number of the last commit; 0 also where a first run ended before it had made the tables."""
    (any_table,) = db.execute("SELECT EXISTS (SELECT 1 FROM sqlite_master)").fetchone()
    if not any_table:
        return 0
    schema.require_current(db)
    row = db.execute("SELECT value FROM meta WHERE key = 'generation'").fetchone()
    return int(row[0])


@dataclass(slots=True)
class _Kept:
    """What a snapshot reads or makes once, for all views of it."""

    vectors: vectors.VectorIndex | None = None
    graph: CsrGraph | None = None
    n_chunks: int | None = None
    facts: list[FileFacts] | None = None
    n_scopes: int = 0


@dataclass(slots=True)
class _Scope:
    """Chunks that the searches of a view may find: their ids, ascending, and the name of an SQL
    function that tells whether an id is among them."""

    ids: NDArray[np.int64]
    function: str


class SqliteReader:
    """A snapshot of the last commit; see `store.base.Reader`.

    Raises:
        IndexMissing: there is no index.
        IndexDamaged, StoreError: it cannot be read.
    """

    def __init__(self, root: Path, *, directory: Path | None = None) -> None:
        self._directory = directory or index_directory(root)
        path = self._directory / DATABASE_NAME
        with translated("opening the index"):
            exists = stat.S_ISREG(_mode(path))
        if not exists:
            raise IndexMissing(f"no index in {root}", hint="ragx index builds it")
        self._kept = _Kept()
        self._scope: _Scope | None = None
        with translated("opening the index"):
            seal.check_seal(path)
            self._db = connect_reading(path)
        try:
            with reading("opening the index"):
                self._generation = _generation(self._db)
            if self._generation == 0:
                raise IndexMissing(
                    f"the index in {root} is empty: no run has finished",
                    hint="ragx index builds it",
                )
        except BaseException:
            self._db.close()
            raise

    @property
    def generation(self) -> int:
        return self._generation

    def manifest(self) -> dict[str, str]:
        with reading("reading the manifest"):
            return read_manifest(self._db)

    def counts(self) -> Counts:
        with reading("counting rows"):
            return read_counts(self._db)

    def n_chunks(self) -> int:
        if self._kept.n_chunks is None:
            with reading("counting chunks"):
                (n,) = self._db.execute("SELECT count(*) FROM chunks").fetchone()
                self._kept.n_chunks = int(n)
        return self._kept.n_chunks

    @property
    def scope(self) -> NDArray[np.int64] | None:
        return self._scope.ids if self._scope else None

    def within(self, paths: Collection[str]) -> SqliteReader:
        import numpy as np

        wanted = frozenset(paths)
        numbers = [one.number for one in self.facts() if one.path in wanted]
        # Looking up each of many files takes longer than looking at all chunks.
        column = "file_id" if len(numbers) < _FEW_FILES else "+file_id"
        with reading("reading chunks"):
            rows = self._db.execute(
                # The index holds both columns; the table has all texts in between.
                "SELECT chunk_id FROM chunks INDEXED BY chunks_by_file"
                f" WHERE {column} IN (SELECT value FROM json_each(?))",
                (json.dumps(numbers),),
            ).fetchall()
        ids = np.sort(np.fromiter((one for (one,) in rows), np.int64, len(rows)))
        if self._scope is not None:
            ids = np.intersect1d(ids, self._scope.ids, assume_unique=True)
        self._kept.n_scopes += 1
        view = copy.copy(self)
        view._scope = _Scope(ids, f"in_scope_{self._kept.n_scopes}")
        # The full text asks it of what matches; a table would have to be filled first.
        self._db.create_function(
            view._scope.function, 1, frozenset(ids.tolist()).__contains__, deterministic=True
        )
        return view

    def n_chunks_of(self, paths: Collection[str]) -> dict[str, int]:
        with reading("counting chunks"):
            return dict(
                self._db.execute(
                    "SELECT path, n_chunks FROM files"
                    " WHERE n_chunks > 0 AND path IN (SELECT value FROM json_each(?))",
                    (json.dumps(list(paths)),),
                )
            )

    def extraction(self, key: str) -> bytes | None:
        with reading("looking up an extraction"):
            return read_extraction(self._db, key)

    def paths_below(self, directory: str, limit: int) -> list[str]:
        with reading("reading the files"):
            rows = self._db.execute(
                # "0" follows "/"
                "SELECT path FROM files WHERE path > ? AND path < ? AND n_chunks > 0"
                " ORDER BY path LIMIT ?",
                (f"{directory}/", f"{directory}0", limit),
            )
            return [path for (path,) in rows]

    def files(self) -> dict[str, FileRow]:
        with reading("reading the files"):
            return read_files(self._db)

    def facts(self) -> list[FileFacts]:
        if self._kept.facts is None:
            with reading("reading the files"):
                self._kept.facts = read_facts(self._db)
        return self._kept.facts

    def file(self, path: str) -> FileRow | None:
        with reading("reading a file's entry"):
            row = self._db.execute(
                f"SELECT {FILE_COLUMNS} FROM files WHERE path = ?", (path,)
            ).fetchone()
            return to_file(row) if row else None

    def chunks(self, chunk_ids: Sequence[int]) -> dict[int, Chunk]:
        with reading("reading chunks"):
            rows = self._db.execute(
                f"SELECT {CHUNK_COLUMNS} FROM chunks c JOIN files f USING (file_id)"
                " WHERE c.chunk_id IN (SELECT value FROM json_each(?))",
                (id_list(chunk_ids),),
            )
            return {row[0]: to_chunk(row) for row in rows}

    def chunk_paths(self) -> dict[int, str]:
        with reading("reading chunks"):
            return dict(
                self._db.execute(
                    "SELECT c.chunk_id, f.path FROM chunks c JOIN files f USING (file_id)"
                )
            )

    def outlines(self, max_chars: int) -> list[Chunk]:
        columns = CHUNK_COLUMNS.replace("c.text", f"substr(c.text, 1, {int(max_chars)})")
        with reading("reading chunks"):
            rows = self._db.execute(
                f"SELECT {columns} FROM chunks c JOIN files f USING (file_id)"
                " ORDER BY f.path, c.ordinal"
            )
            return [to_chunk(row) for row in rows]

    def chunks_of(self, path: str) -> list[Chunk]:
        with reading("reading chunks"):
            return [
                to_chunk(row)
                for row in self._db.execute(
                    f"SELECT {CHUNK_COLUMNS} FROM chunks c JOIN files f USING (file_id)"
                    " WHERE f.path = ? ORDER BY c.ordinal",
                    (path,),
                )
            ]

    def unembedded(self, limit: int) -> tuple[int, list[str]]:
        with reading("looking for chunks without a vector"):
            row = self._db.execute("SELECT value FROM meta WHERE key = 'state.unembedded'")
            n = int(row.fetchone()[0])
            if not n or limit < 1:
                return n, []
            paths = self._db.execute(
                "SELECT DISTINCT f.path FROM chunks c JOIN files f USING (file_id) WHERE NOT EXISTS"
                " (SELECT 1 FROM windows w WHERE w.chunk_id = c.chunk_id) ORDER BY f.path LIMIT ?",
                (limit,),
            ).fetchall()
        return n, [path for (path,) in paths]

    def known_embeddings(self, keys: Collection[bytes]) -> set[bytes]:
        with reading("looking up embeddings"):
            return known_embeddings(self._db, keys)

    def lexical(
        self, expression: str, *, depth: int, weights: Sequence[float], exclude: str = ""
    ) -> list[Scored]:
        if not expression or depth < 1:
            return []
        match = f"({expression}) NOT ({exclude})" if exclude else expression
        ranked = f"SELECT rowid, -bm25(postings, {marks(len(weights))}) AS score FROM postings"
        matching = f"postings MATCH ?{self._within_scope()}"
        order = "ORDER BY score DESC, rowid LIMIT ?"
        with reading("searching the full text"):
            rows = self._db.execute(
                f"{ranked} WHERE {matching} {order}", (*weights, match, depth + 1)
            ).fetchall()
            if len(rows) > depth and rows[depth][1] == rows[depth - 1][1]:
                # The cut falls among equals: fetch them all, so that their places can decide.
                rows = self._db.execute(
                    f"SELECT * FROM ({ranked} WHERE {matching}) WHERE score >= ?",
                    (*weights, match, rows[depth][1]),
                ).fetchall()
        return self._best(rows, depth)

    def _within_scope(self) -> str:
        """What has to hold for the row ids of a search, beside that they match."""
        return f" AND {self._scope.function}(rowid)" if self._scope else ""

    def rarest(self, expressions: Sequence[str], limit: int) -> list[str]:
        counts = self._counted(expressions, _ENOUGH)
        counted = [(n, place) for place, n in enumerate(counts) if n]
        chosen = sorted(place for _, place in sorted(counted)[:limit])
        return [expressions[place] for place in chosen]

    def frequencies(self, words: Sequence[str]) -> list[int]:
        return self._counted([f'"{word}"' for word in words], _VERY_COMMON)

    def _counted(self, expressions: Sequence[str], enough: int) -> list[int]:
        """How many chunks match each, up to what is enough to know."""
        sql = "SELECT count(*) FROM (SELECT 1 FROM postings WHERE postings MATCH ? LIMIT ?)"
        with reading("searching the full text"):
            return [
                int(self._db.execute(sql, (expression, enough)).fetchone()[0])
                for expression in expressions
            ]

    def lexical_scores(
        self, expression: str, chunk_ids: Collection[int], *, weights: Sequence[float]
    ) -> dict[int, float]:
        if not expression or not chunk_ids:
            return {}
        with reading("searching the full text"):
            return dict(
                self._db.execute(
                    f"SELECT rowid, -bm25(postings, {marks(len(weights))}) FROM postings"
                    f" WHERE postings MATCH ? AND {ROWID_IN_LIST}",
                    (*weights, expression, id_list(chunk_ids)),
                )
            )

    def matching(self, expression: str, chunk_ids: Collection[int]) -> set[int]:
        if not expression or not chunk_ids:
            return set()
        with reading("searching the full text"):
            rows = self._db.execute(
                f"SELECT rowid FROM postings WHERE postings MATCH ? AND {ROWID_IN_LIST}",
                (expression, id_list(chunk_ids)),
            )
            return {chunk_id for (chunk_id,) in rows}

    def vector(self, query: NDArray[np.float32], *, depth: int) -> list[Scored]:
        found = self._vector_index().search(query, depth=depth, within=self.scope)
        return self._best(found, depth)

    def vector_scores(
        self, query: NDArray[np.float32], chunk_ids: Collection[int]
    ) -> dict[int, float]:
        return self._vector_index().scores(query, chunk_ids)

    def likeness_spread(self) -> tuple[float, int]:
        return self._vector_index().spread

    def dimension(self) -> int:
        """Width of the stored vectors; 0 when there are none."""
        return self._vector_index().dimension

    def graph(self) -> CsrGraph:
        if self._kept.graph is None:
            with reading("reading the graph"):
                stamp = graph_stamp(self._db)
                graph = map_graph(self._directory, stamp)
                if graph is None:
                    rows = vectors.map_rows(self._directory, vector_stamp(self._db))
                    graph = stored_graph(self._db, rows)
                    if self._is_current():
                        with contextlib.suppress(OSError):
                            write_graph(self._directory, stamp, graph)
            self._kept.graph = graph
        return self._kept.graph

    def graph_stamp(self) -> str:
        with reading("reading the graph"):
            return graph_stamp(self._db).hex()

    def communities(self, options: CommunityOptions) -> Partition:
        graph = self.graph()
        with reading("finding communities"):
            return find_communities(
                self._directory,
                graph,
                self.graph_stamp(),
                options,
                self._described,
                keep=self._is_current(),
            )

    def known_communities(self, options: CommunityOptions) -> Partition | None:
        return read_communities(self._directory, options)

    def _described(self) -> Iterator[tuple[Chunk, str]]:
        """Every chunk with its document's title, in the order of the graph."""
        rows = self._db.execute(
            f"SELECT {CHUNK_COLUMNS}, f.title FROM chunks c JOIN files f USING (file_id)"
            " ORDER BY f.path, c.ordinal"
        )
        return ((to_chunk(row[:-1]), row[-1]) for row in rows)

    def evidence(self, pairs: Collection[tuple[int, int]]) -> dict[tuple[int, int], list[Evidence]]:
        graph = self.graph()
        with reading("reading the edges"):
            return find_evidence(self._db, graph, pairs)

    def digests(self) -> Digests:
        with reading("comparing indexes"):
            return digests(self._db)

    def close(self) -> None:
        if self._scope is None:
            self._db.close()
        else:
            self._db.create_function(self._scope.function, 1, None)

    def _vector_index(self) -> vectors.VectorIndex:
        if self._kept.vectors is None:
            with reading("reading the vectors"):
                stamp = vector_stamp(self._db)
            self._kept.vectors = vectors.open_vectors(
                self._directory,
                stamp,
                lambda: load_vectors(self._db),
                is_current=self._is_current,
            )
        return self._kept.vectors

    def _best(self, scored: Sequence[Scored], depth: int) -> list[Scored]:
        """The best of a list that holds all that tie with the last; ties by path and position."""
        n_of = Counter(score for _, score in scored)
        tied = [chunk_id for chunk_id, score in scored if n_of[score] > 1]
        place: dict[int, int] = {}
        if tied:
            with reading("reading chunks"):
                rows = self._db.execute(
                    "SELECT c.chunk_id FROM chunks c JOIN files f USING (file_id)"
                    " WHERE c.chunk_id IN (SELECT value FROM json_each(?))"
                    " ORDER BY f.path, c.ordinal",
                    (id_list(tied),),
                )
                place = {chunk_id: at for at, (chunk_id,) in enumerate(rows)}
        ordered = sorted(scored, key=lambda item: (-item[1], place.get(item[0], 0)))
        return [(int(chunk_id), float(score)) for chunk_id, score in ordered[:depth]]

    def _is_current(self) -> bool:
        """Whether no commit has followed the one that this snapshot shows."""
        try:
            with contextlib.closing(connect_reading(self._directory / DATABASE_NAME)) as db:
                return graph_stamp(db) == graph_stamp(self._db)
        except sqlite3.Error:
            return False

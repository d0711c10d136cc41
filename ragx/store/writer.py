"""The SQLite engine's writer: stages a run's changes and commits them at once."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ragx.errors import StoreError
from ragx.store import seal, vectors
from ragx.store.base import CommitResult, Digests, FileRow, LinkOptions, StagedChunk
from ragx.store.connect import (
    DATABASE_NAME,
    connect_reading,
    connect_writing,
    index_directory,
    is_sound,
    make_directory,
    recreate,
)
from ragx.store.derived import sweep
from ragx.store.edges import derive_graph, write_graph
from ragx.store.failpoints import reach
from ragx.store.faults import reading, translated
from ragx.store.linking import MentionUpdate, names_of
from ragx.store.lock import WriterLock
from ragx.store.rows import (
    CHUNK_COLUMNS,
    FILE_COLUMNS,
    all_vectors,
    checksum,
    digests,
    graph_stamp,
    known_embeddings,
    load_vectors,
    marks,
    packed_locator,
    posting_terms,
    read_counts,
    read_extraction,
    read_files,
    read_manifest,
    to_chunk,
    vector_stamp,
)
from ragx.store.similar import update_neighbours
from ragx.types import Chunk

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ragx.algo.graph import CsrGraph

__all__ = ["SqliteWriter"]

_KEEP_RETIRED_S = 30 * 24 * 3600  # an embedding without a chunk waits this long for a comeback
_STAGE_EVERY = 256  # files or chunks that wait in memory for the temporary tables
_SHORTEST, _LONGEST = 0.9, 1.1  # squared length of what counts as a unit vector

_STAGING = """
CREATE TEMP TABLE staged_files (
    path TEXT PRIMARY KEY, content_hash, size, mtime_ns, ctime_ns, inode, scanned_ns, status, code,
    note, encoding, language, title, n_chunks, date, date_source, tags, extractor, skipped_parts,
    replaces_chunks INTEGER NOT NULL
);
CREATE TEMP TABLE staged_embeddings (key BLOB PRIMARY KEY, vector BLOB, checksum INTEGER);
CREATE TEMP TABLE staged_deletes (path TEXT PRIMARY KEY);
CREATE TEMP TABLE staged_chunks (
    chunk_id INTEGER PRIMARY KEY, path, ordinal, byte_start, byte_end, line_start, line_end,
    heading, symbols, text, locator, t_body, t_heading, t_path, t_symbols
);
CREATE TEMP TABLE staged_windows (
    chunk_id INTEGER, window INTEGER, key BLOB, PRIMARY KEY (chunk_id, window)
) WITHOUT ROWID;
CREATE TEMP TABLE staged_parts (
    chunk_id INTEGER, part INTEGER, key BLOB, PRIMARY KEY (chunk_id, part)
) WITHOUT ROWID;
CREATE TEMP TABLE staged_names (
    name INTEGER, chunk_id INTEGER, kind INTEGER, key TEXT, PRIMARY KEY (name, chunk_id)
) WITHOUT ROWID;
CREATE TEMP TABLE staged_links (
    chunk_id INTEGER, place INTEGER, kind, form, target, fragment, char_start, char_end,
    PRIMARY KEY (chunk_id, place)
) WITHOUT ROWID;
CREATE TEMP TABLE reparted (chunk_id INTEGER PRIMARY KEY);
"""
_LIVE = "SELECT key FROM windows UNION ALL SELECT key FROM parts"
# What belongs to chunks and goes and comes with them.
_OF_CHUNKS = ("windows", "parts", "names", "links")


class SqliteWriter:
    """The only writer; see `store.base.Writer`. What is staged lies in temporary tables on disk.

    Args:
        root: the corpus; `.ragx/` is made if need be.
        rebuild: start from an empty index where the present one is damaged or of another version.
        directory: where the index lies, if not in the corpus.

    Raises:
        IndexBusy: another process is writing.
        StoreError: the index cannot be opened or made.
    """

    def __init__(self, root: Path, *, rebuild: bool = False, directory: Path | None = None) -> None:
        self._directory = directory or index_directory(root)
        with translated("making the index directory"):
            make_directory(self._directory)
        self._lock = WriterLock(self._directory)
        try:
            sweep(self._directory)
            self._db = self._open(rebuild)
            self._reset = False
            self._relink = False
            self._extractions: set[str] = set()  # keys that this run has had to do with
            self._graph: CsrGraph | None = None
            self._rows: vectors.VectorRows | None = None
            self._waiting_rows: list[tuple[object, ...]] = []
            self._waiting_chunks: list[StagedChunk] = []
            self._begin_staging()
        except BaseException:
            self._lock.release()
            raise

    def _open(self, rebuild: bool) -> sqlite3.Connection:
        path = self._directory / DATABASE_NAME
        try:
            seal.check_seal(path)
            # Whether it was known to be whole before this run; only then may it be sealed unseen.
            self._whole = seal.has_seal(path) or not path.exists()
            db = connect_writing(path)
        except StoreError as fault:
            if not rebuild or fault.code not in ("index_damaged", "manifest_mismatch"):
                raise
        else:
            if not rebuild:
                return self._checked(db)
            self._whole = (self._whole or is_sound(db)) and _can_be_read(db)
            if self._whole:
                return db
            db.close()
        with translated("replacing the damaged index"):
            recreate(path)
        self._whole = True
        return connect_writing(path)

    def _checked(self, db: sqlite3.Connection) -> sqlite3.Connection:
        """The connection, if the rows behind it agree with each other."""
        try:
            with reading("counting rows"):
                read_counts(db)
        except BaseException:
            db.close()
            raise
        return db

    def _begin_staging(self) -> None:
        try:
            with translated("preparing the run"):
                self._db.executescript(_STAGING)
                reach("writer_opened")
        except BaseException:
            self._db.close()
            raise

    def manifest(self) -> dict[str, str]:
        with reading("reading the manifest"):
            return read_manifest(self._db)

    def files(self) -> dict[str, FileRow]:
        with reading("reading the files"):
            return read_files(self._db)

    def known_embeddings(self, keys: Collection[bytes], *, width: int = 0) -> set[bytes]:
        with translated("looking up embeddings"):
            return known_embeddings(self._db, keys, width=width)

    def width_of(self, keys: Collection[bytes]) -> int:
        with reading("reading the vectors"):
            row = self._db.execute(
                "SELECT length(vector) FROM embeddings WHERE key = ?", (min(keys, default=b""),)
            ).fetchone()
        return row[0] // 2 if row else 0

    def borrow_embeddings(self, other: Path) -> None:
        # Read as queries read: to attach it, its directory would have to be writable.
        path = index_directory(other) / DATABASE_NAME
        with (
            translated("copying embeddings"),
            contextlib.closing(connect_reading(path)) as theirs,
            self._transaction(),
        ):
            self._db.executemany(
                "INSERT OR IGNORE INTO embeddings VALUES (?, ?, ?)",
                theirs.execute("SELECT key, vector, checksum FROM embeddings"),
            )

    def put_embeddings(
        self, items: Iterable[tuple[bytes, NDArray[np.float32]]], *, at_commit: bool = False
    ) -> None:
        rows = []
        for key, vector in items:
            blob = vector.astype("<f2").tobytes()
            length = float(vector @ vector)
            if not _SHORTEST < length < _LONGEST:
                raise StoreError(
                    f"a vector of length {length**0.5:g} was refused: unit vectors are stored",
                    code="bad_vector",
                    hint="the embedding model or its server is at fault",
                )
            rows.append((key, blob, checksum(blob)))
        kind = "DEFERRED" if at_commit else "IMMEDIATE"
        table = "temp.staged_embeddings" if at_commit else "main.embeddings"
        with translated("saving embeddings"), self._transaction(kind):
            self._db.executemany(f"INSERT OR REPLACE INTO {table} VALUES (?, ?, ?)", rows)
        with translated("saving embeddings"):
            reach("embeddings_saved")

    def extraction(self, key: str) -> bytes | None:
        self._extractions.add(key)
        with reading("looking up an extraction"):
            return read_extraction(self._db, key)

    def put_extraction(self, key: str, data: bytes) -> None:
        self._extractions.add(key)
        with translated("saving an extraction"), self._transaction():
            self._db.execute(
                "INSERT OR REPLACE INTO extractions VALUES (?, ?, ?)", (key, data, checksum(data))
            )
        with translated("saving an extraction"):
            reach("extraction_saved")

    def stage_file(self, row: FileRow, chunks: Sequence[StagedChunk]) -> None:
        self._waiting_rows.append(_file_values(row, replaces_chunks=1))
        self._waiting_chunks += chunks
        if len(self._waiting_chunks) >= _STAGE_EVERY or len(self._waiting_rows) >= _STAGE_EVERY:
            self._flush()

    def _flush(self) -> None:
        """Move what waits in memory to the temporary tables, many files in one transaction."""
        rows, chunks = self._waiting_rows, self._waiting_chunks
        if not rows:
            return
        self._waiting_rows, self._waiting_chunks = [], []
        with translated("staging a file"), self._transaction("DEFERRED"):
            self._db.executemany(
                f"INSERT OR REPLACE INTO temp.staged_files VALUES ({marks(20)})", rows
            )
            self._db.executemany(
                f"INSERT INTO temp.staged_chunks VALUES ({marks(15)})",
                [_staged_row(staged.chunk) for staged in chunks],
            )
            self._db.executemany(
                "INSERT INTO temp.staged_windows VALUES (?, ?, ?)",
                [
                    (staged.chunk.chunk_id, window, key)
                    for staged in chunks
                    for window, key in enumerate(staged.window_keys)
                ],
            )
            self._db.executemany(
                "INSERT INTO temp.staged_parts VALUES (?, ?, ?)",
                [
                    (staged.chunk.chunk_id, part, key)
                    for staged in chunks
                    if staged.window_keys  # without a whole vector there is nothing to compare
                    for part, key in enumerate(staged.part_keys)
                ],
            )
            self._db.executemany(
                "INSERT OR IGNORE INTO temp.staged_names VALUES (?, ?, ?, ?)",
                [
                    (number, staged.chunk.chunk_id, kind, key)
                    for staged in chunks
                    for number, kind, key in names_of(staged)
                ],
            )
            self._db.executemany(
                f"INSERT INTO temp.staged_links VALUES ({marks(8)})",
                [
                    (staged.chunk.chunk_id, place, link.kind, link.form, link.target,
                     link.fragment, link.start, link.end)
                    for staged in chunks
                    for place, link in enumerate(staged.references)
                ],
            )  # fmt: skip
            reach("file_staged")

    def stage_stat(self, row: FileRow) -> None:
        self._waiting_rows.append(_file_values(row, replaces_chunks=0))
        if len(self._waiting_rows) >= _STAGE_EVERY:
            self._flush()

    def stage_git_dates(self, days: Mapping[str, str]) -> None:
        self._flush()
        with translated("staging a file"), self._transaction("DEFERRED"):
            self._db.executemany(
                "UPDATE temp.staged_files SET date = :day,"
                " date_source = CASE :day WHEN '' THEN '' ELSE 'git' END WHERE path = :path",
                [{"path": path, "day": day} for path, day in sorted(days.items())],
            )

    def confirm(self, path: str, scanned_ns: int) -> None:
        self._flush()
        with translated("staging a file"):
            self._db.execute(
                "UPDATE temp.staged_files SET scanned_ns = ? WHERE path = ?", (scanned_ns, path)
            )

    def stage_delete(self, path: str) -> None:
        with translated("staging a file"):
            self._db.execute("INSERT OR IGNORE INTO temp.staged_deletes VALUES (?)", (path,))

    def reset(self) -> None:
        self._reset = True

    def chunks(self) -> Iterator[tuple[FileRow, list[StagedChunk]]]:
        with reading("reading chunks"):
            windows: dict[int, list[bytes]] = {}
            for chunk_id, key in self._db.execute(
                "SELECT chunk_id, key FROM windows ORDER BY chunk_id, window"
            ):
                windows.setdefault(chunk_id, []).append(key)
            for row in read_files(self._db).values():
                found = self._db.execute(
                    f"SELECT {CHUNK_COLUMNS} FROM chunks c JOIN files f USING (file_id)"
                    " WHERE f.path = ? ORDER BY c.ordinal",
                    (row.path,),
                ).fetchall()
                if found:
                    chunks = [to_chunk(one) for one in found]
                    yield (
                        row,
                        [
                            StagedChunk(chunk, tuple(windows.get(chunk.chunk_id, ())))
                            for chunk in chunks
                        ],
                    )

    def stage_parts(self, chunk_id: int, part_keys: Sequence[bytes]) -> None:
        with translated("staging parts"):
            self._db.execute("INSERT OR REPLACE INTO temp.reparted VALUES (?)", (chunk_id,))
            self._db.executemany(
                "INSERT OR REPLACE INTO temp.staged_parts VALUES (?, ?, ?)",
                [(chunk_id, part, key) for part, key in enumerate(part_keys)],
            )

    def relink(self) -> None:
        self._relink = True

    def commit(self, manifest: Mapping[str, str], linking: LinkOptions) -> CommitResult:
        self._flush()
        self._graph = self._rows = None
        all_anew = self._reset or self._relink
        with translated("committing the run"), self._transaction():
            generation = self._next_generation()
            reach("commit_begun")
            if self._reset:
                # Everything known goes unless it was staged again.
                self._db.execute(
                    "INSERT OR IGNORE INTO temp.staged_deletes SELECT path FROM files"
                    " WHERE path NOT IN (SELECT path FROM temp.staged_files)"
                )
            base = self._known_rows()
            mentions = MentionUpdate(self._db, all_anew)
            deleted = self._drop_old_chunks(mentions)
            reach("commit_chunks_dropped")
            self._stamp_vectors()
            self._db.execute(
                "DELETE FROM files WHERE path IN (SELECT path FROM temp.staged_deletes)"
            )
            self._db.execute(
                "INSERT OR REPLACE INTO embeddings SELECT * FROM temp.staged_embeddings"
            )
            added = self._insert_staged()
            edges, graph, rows = self._link(mentions, linking, base, all_anew=all_anew)
            reach("commit_linked")
            self._db.execute(
                "DELETE FROM meta WHERE key != 'generation' AND key NOT LIKE 'state.%'"
            )
            self._db.execute(
                "INSERT OR REPLACE INTO meta SELECT 'state.unembedded', count(*) FROM chunks c"
                " WHERE NOT EXISTS (SELECT 1 FROM windows w WHERE w.chunk_id = c.chunk_id)"
            )
            self._db.executemany("INSERT INTO meta VALUES (?, ?)", sorted(manifest.items()))
            self._retire_embeddings()
            self._drop_extractions()
            for table in ("files", "deletes", "chunks", "embeddings", *_OF_CHUNKS):
                self._db.execute(f"DELETE FROM temp.staged_{table}")
            self._db.execute("DELETE FROM temp.reparted")
            reach("commit_before_end")
        with translated("committing the run"):
            reach("committed")
        self._reset = self._relink = False
        self._graph, self._rows = graph, rows
        return CommitResult(generation, added, deleted, edges)

    def write_derived(self) -> None:
        """Make what readers map instead of reading rows: the vectors of this generation."""
        with reading("reading the manifest"):
            stamp = vector_stamp(self._db)
            (any_vector,) = self._db.execute("SELECT EXISTS (SELECT 1 FROM windows)").fetchone()
        if any_vector:
            rows, self._rows = self._rows, None
            vectors.write_vectors(
                self._directory, stamp, lambda: load_vectors(self._db) if rows is None else rows
            )
        else:
            vectors.drop_vectors(self._directory)
        if self._graph is not None:
            with translated("writing the graph"):
                write_graph(self._directory, graph_stamp(self._db), self._graph)
        with translated("writing the vectors"):
            reach("derived_written")

    def dimension(self) -> int:
        """Width of the vectors of the last commit; 0 when there are none."""
        with reading("reading the vectors"):
            row = self._db.execute(
                "SELECT length(e.vector) FROM windows w JOIN embeddings e USING (key) LIMIT 1"
            ).fetchone()
        return row[0] // 2 if row else 0

    def n_edges(self) -> int:
        """Edges of the last commit."""
        with reading("counting rows"):
            row = self._db.execute("SELECT value FROM meta WHERE key = 'state.edges'").fetchone()
        return int(row[0]) if row else 0

    def digests(self) -> Digests:
        with reading("comparing indexes"):
            return digests(self._db)

    def close(self) -> None:
        path = self._directory / DATABASE_NAME
        try:
            # Leave no log behind where nobody else reads: the database alone is then complete.
            complete = False
            with contextlib.suppress(sqlite3.Error):
                self._db.execute("PRAGMA busy_timeout = 0")  # an open reader is not waited for
                self._whole = self._whole or is_sound(self._db)
                busy, _, _ = self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                complete = not busy
            self._db.close()
            with translated("closing the index"):
                reach("log_emptied")
                if complete and self._whole and not seal.is_fresh(path):
                    seal.write_seal(path)
                reach("sealed")
        finally:
            self._lock.release()

    def _next_generation(self) -> int:
        self._db.execute(
            "UPDATE meta SET value = CAST(value AS INTEGER) + 1 WHERE key = 'generation'"
        )
        (value,) = self._db.execute("SELECT value FROM meta WHERE key = 'generation'").fetchone()
        return int(value)

    def _stamp_vectors(self) -> None:
        """Give the vectors a new stamp if this commit changes any, so that derived files follow.

        The stamp is random: a database made anew never fits files that an older one left.
        """
        (changed,) = self._db.execute(
            "SELECT EXISTS (SELECT 1 FROM temp.outgoing) OR EXISTS"
            " (SELECT 1 FROM temp.staged_windows) OR NOT EXISTS"
            " (SELECT 1 FROM meta WHERE key = 'state.vectors')"
        ).fetchone()
        if changed:
            self._db.execute(
                "INSERT OR REPLACE INTO meta VALUES ('state.vectors', ?)", (os.urandom(16).hex(),)
            )

    def _known_rows(self) -> vectors.VectorRows | None:
        """Vectors of the last commit, where they are the same in this one as far as it has them."""
        (replaced,) = self._db.execute(
            "SELECT EXISTS (SELECT 1 FROM temp.staged_embeddings)"
        ).fetchone()
        if replaced or self._reset:
            return None
        return vectors.map_rows(self._directory, vector_stamp(self._db))

    def _link(
        self,
        mentions: MentionUpdate,
        linking: LinkOptions,
        base: vectors.VectorRows | None,
        *,
        all_anew: bool,
    ) -> tuple[int, CsrGraph | None, vectors.VectorRows | None]:
        """Bring the graph in step with the rows as they are now: the number of its edges; itself
        and all vectors, if anything has changed."""
        db = self._db
        (changed,) = db.execute(
            "SELECT EXISTS (SELECT 1 FROM temp.outgoing)"
            " OR EXISTS (SELECT 1 FROM temp.staged_chunks)"
            " OR EXISTS (SELECT 1 FROM temp.reparted)"
            " OR NOT EXISTS (SELECT 1 FROM meta WHERE key = 'state.graph')"
        ).fetchone()
        if not changed and not all_anew:
            (edges,) = db.execute("SELECT value FROM meta WHERE key = 'state.edges'").fetchone()
            return int(edges), None, None
        mentions.after()
        rows = load_vectors(db, base)
        known = all_vectors(db, rows)
        similar = update_neighbours(db, linking, known, all_anew=all_anew)
        graph = derive_graph(db, linking, known, similar)
        db.executemany(
            "INSERT OR REPLACE INTO meta VALUES (?, ?)",
            [("state.graph", os.urandom(16).hex()), ("state.edges", str(graph.n_edges))],
        )
        return graph.n_edges, graph, rows

    def _drop_old_chunks(self, mentions: MentionUpdate) -> int:
        """Remove rows of replaced and deleted files; postings of unchanged chunks stay."""
        db = self._db
        db.execute("DROP TABLE IF EXISTS temp.outgoing")
        db.execute(
            "CREATE TEMP TABLE outgoing AS SELECT c.chunk_id,"
            " s.chunk_id IS NOT NULL AS stays,"
            " s.chunk_id IS NOT NULL AND s.heading = c.heading AND s.symbols = c.symbols"
            " AND s.path = f.path AS same_terms"
            " FROM chunks c JOIN files f USING (file_id)"
            " LEFT JOIN temp.staged_chunks s ON s.chunk_id = c.chunk_id"
            " WHERE f.path IN (SELECT path FROM temp.staged_deletes"
            " UNION SELECT path FROM temp.staged_files WHERE replaces_chunks)"
            " ORDER BY c.chunk_id"
        )
        mentions.before()
        if self._reset:
            # Also right when the stored terms were made by another version of the analysis.
            db.execute("UPDATE temp.outgoing SET same_terms = 0")
            db.execute("INSERT INTO postings (postings) VALUES ('delete-all')")
            self._restore_postings()
        else:
            self._drop_postings()
        now = int(time.time())
        db.execute(
            "INSERT OR REPLACE INTO retired SELECT w.key, ? FROM windows w"
            " JOIN temp.outgoing USING (chunk_id)"
            " UNION SELECT p.key, ? FROM parts p WHERE p.chunk_id IN"
            " (SELECT chunk_id FROM temp.outgoing UNION SELECT chunk_id FROM temp.reparted)",
            (now, now),
        )
        db.execute("DELETE FROM parts WHERE chunk_id IN (SELECT chunk_id FROM temp.reparted)")
        for table in (*_OF_CHUNKS, "mentions"):
            db.execute(
                f"DELETE FROM {table} WHERE chunk_id IN (SELECT chunk_id FROM temp.outgoing)"
            )
        db.execute("DELETE FROM chunks WHERE chunk_id IN (SELECT chunk_id FROM temp.outgoing)")
        (deleted,) = db.execute("SELECT count(*) FROM temp.outgoing WHERE NOT stays").fetchone()
        return int(deleted)

    def _drop_postings(self) -> None:
        """A contentless FTS5 row goes by naming the very terms that it was made of."""
        db = self._db
        # Ascending row ids keep FTS5 from flushing its buffer at every step.
        gone = db.execute(
            f"SELECT {CHUNK_COLUMNS} FROM temp.outgoing o JOIN chunks c USING (chunk_id)"
            " JOIN files f USING (file_id) WHERE NOT o.same_terms ORDER BY c.chunk_id"
        )
        while rows := gone.fetchmany(1000):
            db.executemany(
                "INSERT INTO postings (postings, rowid, body, heading, path, symbols)"
                " VALUES ('delete', ?, ?, ?, ?, ?)",
                [(row[0], *posting_terms(to_chunk(row))) for row in rows],
            )

    def _restore_postings(self) -> None:
        """Postings of the chunks that a full rebuild keeps: of files that it could not read."""
        kept = self._db.execute(
            f"SELECT {CHUNK_COLUMNS} FROM chunks c JOIN files f USING (file_id)"
            " WHERE c.chunk_id NOT IN (SELECT chunk_id FROM temp.outgoing) ORDER BY c.chunk_id"
        )
        self._db.executemany(
            "INSERT INTO postings (rowid, body, heading, path, symbols) VALUES (?, ?, ?, ?, ?)",
            [(row[0], *posting_terms(to_chunk(row))) for row in kept.fetchall()],
        )

    def _insert_staged(self) -> int:
        db = self._db
        updates = ", ".join(
            f"{name} = excluded.{name}" for name in FILE_COLUMNS.replace(" ", "").split(",")[1:]
        )
        db.execute(
            f"INSERT INTO files ({FILE_COLUMNS}) SELECT {FILE_COLUMNS} FROM temp.staged_files"
            f" WHERE true ORDER BY path ON CONFLICT (path) DO UPDATE SET {updates}"
        )
        db.execute(
            "INSERT INTO chunks SELECT s.chunk_id, f.file_id, s.ordinal, s.byte_start, s.byte_end,"
            " s.line_start, s.line_end, s.heading, s.symbols, s.text, s.locator"
            " FROM temp.staged_chunks s JOIN files f USING (path) ORDER BY s.chunk_id"
        )
        for table in _OF_CHUNKS:
            db.execute(f"INSERT INTO {table} SELECT * FROM temp.staged_{table} ORDER BY 1, 2")
        reach("commit_chunks_inserted")
        db.execute(
            "INSERT INTO postings (rowid, body, heading, path, symbols)"
            " SELECT chunk_id, t_body, t_heading, t_path, t_symbols FROM temp.staged_chunks"
            " WHERE chunk_id NOT IN (SELECT chunk_id FROM temp.outgoing WHERE same_terms)"
            " ORDER BY chunk_id"
        )
        reach("commit_postings_inserted")
        (added,) = db.execute(
            "SELECT count(*) FROM temp.staged_chunks"
            " WHERE chunk_id NOT IN (SELECT chunk_id FROM temp.outgoing)"
        ).fetchone()
        return int(added)

    def _retire_embeddings(self) -> None:
        if self._reset:
            # Vectors that never got a chunk: of killed runs, of versions that were never stored.
            self._db.execute(
                "INSERT OR IGNORE INTO retired SELECT key, ? FROM embeddings"
                f" WHERE key NOT IN ({_LIVE})",
                (int(time.time()),),
            )
        self._db.execute(f"DELETE FROM retired WHERE key IN ({_LIVE})")
        old = (int(time.time()) - _KEEP_RETIRED_S,)
        self._db.execute(
            "DELETE FROM embeddings WHERE key IN (SELECT key FROM retired WHERE at_s < ?)", old
        )
        self._db.execute("DELETE FROM retired WHERE at_s < ?", old)

    def _drop_extractions(self) -> None:
        """Unlike a vector, it is text: what belongs to no file goes with the file.

        Failures (marked F) hold none, and stay as long as any file fails.
        """
        self._db.execute("CREATE TEMP TABLE IF NOT EXISTS kept_extractions (key TEXT PRIMARY KEY)")
        self._db.execute("DELETE FROM temp.kept_extractions")
        self._db.executemany(
            "INSERT INTO temp.kept_extractions VALUES (?)", [(key,) for key in self._extractions]
        )
        self._db.execute(
            "DELETE FROM extractions WHERE key NOT IN (SELECT key FROM temp.kept_extractions)"
            " AND key NOT IN (SELECT content_hash || ' ' || extractor FROM files)"
            # A file whose last good version is kept does not say what it fails with.
            " AND (substr(data, 1, 1) != x'46' OR NOT EXISTS"
            " (SELECT 1 FROM files WHERE status = 'failed'))"
        )

    @contextlib.contextmanager
    def _transaction(self, kind: str = "IMMEDIATE") -> Iterator[None]:
        if kind == "IMMEDIATE":
            seal.drop_seal(self._directory / DATABASE_NAME)
        self._db.execute(f"BEGIN {kind}")
        try:
            yield
        except BaseException:
            # A full disk may have rolled back already.
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")


def _can_be_read(db: sqlite3.Connection) -> bool:
    """Whether the files are of a corpus: an index that somebody else made may be whole and lie."""
    try:
        with reading("reading the files"):
            read_files(db)
    except StoreError:
        return False
    return True


def _file_values(row: FileRow, *, replaces_chunks: int) -> tuple[object, ...]:
    return (
        row.path, row.content_hash, row.size, row.mtime_ns, row.ctime_ns, row.inode,
        row.scanned_ns, row.status, row.code, row.note, row.encoding, row.language,
        row.title, row.n_chunks, row.date, row.date_source,
        json.dumps(row.tags, ensure_ascii=False), row.extractor,
        json.dumps(row.skipped_parts, ensure_ascii=False), replaces_chunks,
    )  # fmt: skip


def _staged_row(chunk: Chunk) -> tuple[object, ...]:
    return (
        chunk.chunk_id, chunk.path, chunk.ordinal, chunk.byte_start, chunk.byte_end,
        chunk.line_start, chunk.line_end, json.dumps(chunk.heading, ensure_ascii=False),
        json.dumps(chunk.symbols, ensure_ascii=False), chunk.text, packed_locator(chunk.locator),
        *posting_terms(chunk),
    )  # fmt: skip

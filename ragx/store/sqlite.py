"""The SQLite engine behind `store.base`: one database in WAL mode holds the whole truth."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import xxhash

from ragx.algo.lexical import analyse
from ragx.errors import IndexDamaged, IndexMissing, StoreError
from ragx.store import schema, seal, vectors
from ragx.store.base import CommitResult, Counts, FileRow, Scored, StagedChunk
from ragx.store.failpoints import reach
from ragx.store.faults import REBUILD_HINT, reading, translated
from ragx.store.lock import WriterLock
from ragx.types import Chunk

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["DATABASE_NAME", "INDEX_DIRECTORY", "SqliteReader", "SqliteWriter", "index_directory"]

INDEX_DIRECTORY = ".ragx"
DATABASE_NAME = "index.db"
_BUSY_TIMEOUT_S = 10.0
_KEEP_RETIRED_S = 30 * 24 * 3600  # an embedding without a chunk waits this long for a comeback
_VECTOR_BATCH = 4096
_SHORTEST, _LONGEST = 0.9, 1.1  # squared length of what counts as a unit vector
_IN_LIMIT = 500  # bound parameters per statement; SQLite's oldest default limit is 999

# The plus keeps the planner from running the match anew for every id.
_ROWID_IN_LIST = "+rowid IN (SELECT value FROM json_each(?))"

_FILE_COLUMNS = (
    "path, content_hash, size, mtime_ns, ctime_ns, inode, scanned_ns, status, code, note,"
    " encoding, language, title, n_chunks"
)
_CHUNK_COLUMNS = (
    "c.chunk_id, f.path, c.ordinal, c.byte_start, c.byte_end, c.line_start, c.line_end, c.text,"
    " c.heading, c.symbols"
)


def index_directory(root: Path) -> Path:
    """Where the index of a corpus lives."""
    return root / INDEX_DIRECTORY


def _id_list(chunk_ids: Iterable[int]) -> str:
    """Ids as one bound parameter, however many there are."""
    return json.dumps(sorted(chunk_ids))


def _marks(n: int) -> str:
    return ",".join("?" * n)


def _chunk(row: tuple[int, str, int, int, int, int, int, str, str, str]) -> Chunk:
    return Chunk(*row[:8], heading=_strings(row[8]), symbols=_strings(row[9]))


def _strings(packed: str) -> tuple[str, ...]:
    return tuple(json.loads(packed)) if packed != "[]" else ()


def _posting_terms(chunk: Chunk) -> tuple[str, str, str, str]:
    """Terms of the four full-text columns: body, heading, path, symbols."""
    return (
        analyse(chunk.text),
        analyse("\n".join(chunk.heading)),
        analyse(chunk.path),
        analyse("\n".join(chunk.symbols)),
    )


class SqliteReader:
    """A snapshot of the last commit; see `store.base.Reader`.

    Raises:
        IndexMissing: there is no index.
        IndexDamaged, StoreError: it cannot be read.
    """

    def __init__(self, root: Path) -> None:
        self._directory = index_directory(root)
        path = self._directory / DATABASE_NAME
        if not path.is_file():
            raise IndexMissing(f"no index in {root}", hint="ragx index builds it")
        self._vectors: vectors.VectorIndex | None = None
        with translated("opening the index"):
            seal.check_seal(path)
            self._db = _connect_reading(path)
        try:
            with reading("opening the index"):
                schema.require_current(self._db)
                row = self._db.execute("SELECT value FROM meta WHERE key = 'generation'").fetchone()
                self._generation = int(row[0])
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
            return _read_manifest(self._db)

    def counts(self) -> Counts:
        with reading("counting rows"):
            return _read_counts(self._db)

    def files(self) -> dict[str, FileRow]:
        with reading("reading the files"):
            return _read_files(self._db)

    def file(self, path: str) -> FileRow | None:
        with reading("reading a file's entry"):
            row = self._db.execute(
                f"SELECT {_FILE_COLUMNS} FROM files WHERE path = ?", (path,)
            ).fetchone()
        return FileRow(*row) if row else None

    def chunks(self, chunk_ids: Sequence[int]) -> dict[int, Chunk]:
        with reading("reading chunks"):
            rows = self._db.execute(
                f"SELECT {_CHUNK_COLUMNS} FROM chunks c JOIN files f USING (file_id)"
                " WHERE c.chunk_id IN (SELECT value FROM json_each(?))",
                (_id_list(chunk_ids),),
            )
            return {row[0]: _chunk(row) for row in rows}

    def chunks_of(self, path: str) -> list[Chunk]:
        with reading("reading chunks"):
            return [
                _chunk(row)
                for row in self._db.execute(
                    f"SELECT {_CHUNK_COLUMNS} FROM chunks c JOIN files f USING (file_id)"
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
            return _known_embeddings(self._db, keys)

    def lexical(
        self, expression: str, *, depth: int, weights: Sequence[float], exclude: str = ""
    ) -> list[Scored]:
        if not expression or depth < 1:
            return []
        match = f"({expression}) NOT ({exclude})" if exclude else expression
        with reading("searching the full text"):
            rows = self._db.execute(
                f"SELECT rowid, -bm25(postings, {_marks(len(weights))}) AS score FROM postings"
                " WHERE postings MATCH ? ORDER BY score DESC, rowid LIMIT ?",
                (*weights, match, depth),
            ).fetchall()
        return [(int(chunk_id), float(score)) for chunk_id, score in rows]

    def lexical_scores(
        self, expression: str, chunk_ids: Collection[int], *, weights: Sequence[float]
    ) -> dict[int, float]:
        if not expression or not chunk_ids:
            return {}
        with reading("searching the full text"):
            return dict(
                self._db.execute(
                    f"SELECT rowid, -bm25(postings, {_marks(len(weights))}) FROM postings"
                    f" WHERE postings MATCH ? AND {_ROWID_IN_LIST}",
                    (*weights, expression, _id_list(chunk_ids)),
                )
            )

    def matching(self, expression: str, chunk_ids: Collection[int]) -> set[int]:
        if not expression or not chunk_ids:
            return set()
        with reading("searching the full text"):
            rows = self._db.execute(
                f"SELECT rowid FROM postings WHERE postings MATCH ? AND {_ROWID_IN_LIST}",
                (expression, _id_list(chunk_ids)),
            )
            return {chunk_id for (chunk_id,) in rows}

    def vector(self, query: NDArray[np.float32], *, depth: int) -> list[Scored]:
        return self._vector_index().search(query, depth=depth)

    def vector_scores(
        self, query: NDArray[np.float32], chunk_ids: Collection[int]
    ) -> dict[int, float]:
        return self._vector_index().scores(query, chunk_ids)

    def dimension(self) -> int:
        """Width of the stored vectors; 0 when there are none."""
        return self._vector_index().dimension

    def close(self) -> None:
        self._db.close()

    def _vector_index(self) -> vectors.VectorIndex:
        if self._vectors is None:
            self._vectors = vectors.open_vectors(
                self._directory,
                _vector_stamp(self._db),
                lambda: _load_vectors(self._db),
                is_current=self._is_current,
            )
        return self._vectors

    def _is_current(self) -> bool:
        """Whether no commit has followed the one that this snapshot shows."""
        try:
            with contextlib.closing(_connect_reading(self._directory / DATABASE_NAME)) as db:
                return _vector_stamp(db) == _vector_stamp(self._db)
        except sqlite3.Error:
            return False


def _connect_reading(path: Path) -> sqlite3.Connection:
    """A read-only connection inside a read transaction: the snapshot."""
    uri = path.resolve().as_uri()
    # A writable directory first: WAL readers need to make the shared-memory file. In a read-only
    # one nobody can be writing, so the file is read as it lies.
    faults: list[sqlite3.Error] = []
    for options in ("mode=ro", "mode=ro&immutable=1"):
        if "immutable" in options and _wal_holds_data(path):
            continue
        connection = sqlite3.connect(
            f"{uri}?{options}",
            uri=True,
            timeout=_BUSY_TIMEOUT_S,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            connection.execute("BEGIN")
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.OperationalError as fault:
            connection.close()
            faults.append(fault)
            continue
        except BaseException:
            connection.close()
            raise
        return connection
    raise faults[0]


def _wal_holds_data(path: Path) -> bool:
    with contextlib.suppress(OSError):
        return path.with_name(path.name + "-wal").stat().st_size > 0
    return False


def _read_manifest(db: sqlite3.Connection) -> dict[str, str]:
    rows = db.execute("SELECT key, value FROM meta ORDER BY key").fetchall()
    return {key: value for key, value in rows if key != "generation" and "." not in key}


def _known_embeddings(db: sqlite3.Connection, keys: Collection[bytes]) -> set[bytes]:
    ordered = sorted(keys)
    known: set[bytes] = set()
    for start in range(0, len(ordered), _IN_LIMIT):
        batch = ordered[start : start + _IN_LIMIT]
        rows = db.execute(f"SELECT key FROM embeddings WHERE key IN ({_marks(len(batch))})", batch)
        known.update(key for (key,) in rows)
    return known


def _checksum(blob: bytes) -> int:
    return xxhash.xxh3_64_intdigest(blob) >> 1  # SQLite's integers are signed


def _vector_stamp(db: sqlite3.Connection) -> bytes:
    """What marks the derived files that fit the vectors of this snapshot; 16 bytes."""
    row = db.execute("SELECT value FROM meta WHERE key = 'state.vectors'").fetchone()
    return bytes.fromhex(row[0]) if row else bytes(16)


def _read_files(db: sqlite3.Connection) -> dict[str, FileRow]:
    rows = db.execute(f"SELECT {_FILE_COLUMNS} FROM files ORDER BY path")
    return {row[0]: FileRow(*row) for row in rows}


def _read_counts(db: sqlite3.Connection) -> Counts:
    def one(sql: str) -> int:
        return int(db.execute(sql).fetchone()[0])

    return Counts(
        files=one("SELECT count(*) FROM files WHERE status = 'ok'"),
        chunks=one("SELECT count(*) FROM chunks"),
        vectors=one("SELECT count(*) FROM windows WHERE window = 0"),
        postings=one("SELECT count(*) FROM postings_docsize"),
    )


def _load_vectors(db: sqlite3.Connection) -> vectors.VectorRows:
    """Rows of the vector index in (chunk id, window) order."""
    import numpy as np

    with reading("reading the vectors"):
        joined = " FROM windows w JOIN embeddings e USING (key)"
        n, low, high = db.execute(
            f"SELECT count(*), min(length(e.vector)), max(length(e.vector)){joined}"
        ).fetchone()
        if low != high:
            raise IndexDamaged("the index holds vectors of different widths", hint=REBUILD_HINT)
        owners, labels = np.zeros(n, np.int64), np.zeros(n, np.int64)
        matrix = np.zeros((n, (low or 0) // 2), np.float32)
        cursor = db.execute(
            f"SELECT w.chunk_id, w.key, e.vector, e.checksum{joined} ORDER BY w.chunk_id, w.window"
        )
        at = 0
        while rows := cursor.fetchmany(_VECTOR_BATCH):
            end = at + len(rows)
            owners[at:end] = [row[0] for row in rows]
            # Equal keys are equal vectors, so the key names the vector.
            tails = b"".join(row[1][-8:] for row in rows)
            labels[at:end] = np.frombuffer(tails, "<u8") >> 1
            if any(_checksum(row[2]) != row[3] for row in rows):
                raise IndexDamaged("a stored vector is damaged", hint=REBUILD_HINT)
            blobs = b"".join(row[2] for row in rows)
            matrix[at:end] = np.frombuffer(blobs, "<f2").reshape(len(rows), -1)
            at = end
    return vectors.VectorRows(owners, labels, matrix)


_STAGING = """
CREATE TEMP TABLE staged_files (
    path TEXT PRIMARY KEY, content_hash, size, mtime_ns, ctime_ns, inode, scanned_ns, status, code,
    note, encoding, language, title, n_chunks, replaces_chunks INTEGER NOT NULL
);
CREATE TEMP TABLE staged_deletes (path TEXT PRIMARY KEY);
CREATE TEMP TABLE staged_chunks (
    chunk_id INTEGER PRIMARY KEY, path, ordinal, byte_start, byte_end, line_start, line_end,
    heading, symbols, text, t_body, t_heading, t_path, t_symbols
);
CREATE TEMP TABLE staged_windows (
    chunk_id INTEGER, window INTEGER, key BLOB, PRIMARY KEY (chunk_id, window)
) WITHOUT ROWID;
"""


class SqliteWriter:
    """The only writer; see `store.base.Writer`. What is staged lies in temporary tables on disk.

    Args:
        root: the corpus; `.ragx/` is made if need be.
        rebuild: start from an empty index where the present one is damaged or of another version.

    Raises:
        IndexBusy: another process is writing.
        StoreError: the index cannot be opened or made.
    """

    def __init__(self, root: Path, *, rebuild: bool = False) -> None:
        self._directory = index_directory(root)
        with translated("making the index directory"):
            _make_directory(self._directory)
        self._lock = WriterLock(self._directory)
        try:
            vectors.sweep(self._directory)
            self._db = self._open(rebuild)
            self._reset = False
            self._begin_staging()
            reach("writer_opened")
        except BaseException:
            self._lock.release()
            raise

    def _open(self, rebuild: bool) -> sqlite3.Connection:
        path = self._directory / DATABASE_NAME
        try:
            seal.check_seal(path)
            sealed = seal.has_seal(path)
            db = _connect_writing(path)
        except StoreError as fault:
            if not rebuild or fault.code not in ("index_damaged", "manifest_mismatch"):
                raise
        else:
            if not rebuild or sealed or _is_sound(db):
                return db
            db.close()
        with translated("replacing the damaged index"):
            _recreate(path)
        return _connect_writing(path)

    def _begin_staging(self) -> None:
        with translated("preparing the run"):
            self._db.executescript(_STAGING)

    def manifest(self) -> dict[str, str]:
        with reading("reading the manifest"):
            return _read_manifest(self._db)

    def files(self) -> dict[str, FileRow]:
        with reading("reading the files"):
            return _read_files(self._db)

    def counts(self) -> Counts:
        """Rows of the last commit."""
        with translated("counting rows"):
            return _read_counts(self._db)

    def known_embeddings(self, keys: Collection[bytes]) -> set[bytes]:
        with translated("looking up embeddings"):
            return _known_embeddings(self._db, keys)

    def put_embeddings(self, items: Iterable[tuple[bytes, NDArray[np.float32]]]) -> None:
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
            rows.append((key, blob, _checksum(blob)))
        with translated("saving embeddings"), self._transaction():
            self._db.executemany("INSERT OR REPLACE INTO embeddings VALUES (?, ?, ?)", rows)
        with translated("saving embeddings"):
            reach("embeddings_saved")

    def stage_file(self, row: FileRow, chunks: Sequence[StagedChunk]) -> None:
        with translated("staging a file"), self._transaction("DEFERRED"):
            self._stage_row(row, replaces_chunks=1)
            self._db.executemany(
                f"INSERT INTO temp.staged_chunks VALUES ({_marks(14)})",
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
            reach("file_staged")

    def stage_stat(self, row: FileRow) -> None:
        with translated("staging a file"), self._transaction("DEFERRED"):
            self._stage_row(row, replaces_chunks=0)

    def _stage_row(self, row: FileRow, *, replaces_chunks: int) -> None:
        self._db.execute(
            f"INSERT OR REPLACE INTO temp.staged_files VALUES ({_marks(15)})",
            (
                row.path, row.content_hash, row.size, row.mtime_ns, row.ctime_ns, row.inode,
                row.scanned_ns, row.status, row.code, row.note, row.encoding, row.language,
                row.title, row.n_chunks, replaces_chunks,
            ),
        )  # fmt: skip

    def confirm(self, path: str, scanned_ns: int) -> None:
        with translated("staging a file"):
            self._db.execute(
                "UPDATE temp.staged_files SET scanned_ns = ? WHERE path = ?", (scanned_ns, path)
            )

    def stage_delete(self, path: str) -> None:
        with translated("staging a file"):
            self._db.execute("INSERT OR IGNORE INTO temp.staged_deletes VALUES (?)", (path,))

    def reset(self) -> None:
        self._reset = True

    def commit(self, manifest: Mapping[str, str]) -> CommitResult:
        with translated("committing the run"), self._transaction():
            generation = self._next_generation()
            reach("commit_begun")
            if self._reset:
                # Everything known goes unless it was staged again.
                self._db.execute(
                    "INSERT OR IGNORE INTO temp.staged_deletes SELECT path FROM files"
                    " WHERE path NOT IN (SELECT path FROM temp.staged_files)"
                )
            deleted = self._drop_old_chunks()
            reach("commit_chunks_dropped")
            self._stamp_vectors()
            self._db.execute(
                "DELETE FROM files WHERE path IN (SELECT path FROM temp.staged_deletes)"
            )
            added = self._insert_staged()
            self._db.execute(
                "DELETE FROM meta WHERE key != 'generation' AND key NOT LIKE 'state.%'"
            )
            self._db.execute(
                "INSERT OR REPLACE INTO meta SELECT 'state.unembedded', count(*) FROM chunks c"
                " WHERE NOT EXISTS (SELECT 1 FROM windows w WHERE w.chunk_id = c.chunk_id)"
            )
            self._db.executemany("INSERT INTO meta VALUES (?, ?)", sorted(manifest.items()))
            self._retire_embeddings()
            for table in ("files", "deletes", "chunks", "windows"):
                self._db.execute(f"DELETE FROM temp.staged_{table}")
            reach("commit_before_end")
        with translated("committing the run"):
            reach("committed")
        self._reset = False
        return CommitResult(generation, added, deleted)

    def write_derived(self) -> None:
        """Make what readers map instead of reading rows: the vectors of this generation."""
        with reading("reading the manifest"):
            stamp = _vector_stamp(self._db)
            (any_vector,) = self._db.execute("SELECT EXISTS (SELECT 1 FROM windows)").fetchone()
        if any_vector:
            vectors.write_vectors(self._directory, stamp, lambda: _load_vectors(self._db))
        else:
            vectors.drop_vectors(self._directory)
        with translated("writing the vectors"):
            reach("derived_written")

    def dimension(self) -> int:
        """Width of the vectors of the last commit; 0 when there are none."""
        with reading("reading the vectors"):
            row = self._db.execute(
                "SELECT length(e.vector) FROM windows w JOIN embeddings e USING (key) LIMIT 1"
            ).fetchone()
        return row[0] // 2 if row else 0

    def close(self) -> None:
        path = self._directory / DATABASE_NAME
        try:
            # Leave no log behind where nobody else reads: the database alone is then complete.
            complete = False
            with contextlib.suppress(sqlite3.Error):
                self._db.execute("PRAGMA busy_timeout = 0")  # an open reader is not waited for
                busy, _, _ = self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                complete = not busy
            self._db.close()
            with translated("closing the index"):
                reach("log_emptied")
                if complete and not seal.has_seal(path):
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

    def _drop_old_chunks(self) -> int:
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
        if self._reset:
            # Also right when the stored terms were made by another version of the analysis.
            db.execute("UPDATE temp.outgoing SET same_terms = 0")
            db.execute("INSERT INTO postings (postings) VALUES ('delete-all')")
            self._restore_postings()
        else:
            self._drop_postings()
        db.execute(
            "INSERT OR REPLACE INTO retired SELECT DISTINCT w.key, ? FROM windows w"
            " JOIN temp.outgoing o USING (chunk_id)",
            (int(time.time()),),
        )
        db.execute("DELETE FROM windows WHERE chunk_id IN (SELECT chunk_id FROM temp.outgoing)")
        db.execute("DELETE FROM chunks WHERE chunk_id IN (SELECT chunk_id FROM temp.outgoing)")
        (deleted,) = db.execute("SELECT count(*) FROM temp.outgoing WHERE NOT stays").fetchone()
        return int(deleted)

    def _drop_postings(self) -> None:
        """A contentless FTS5 row goes by naming the very terms that it was made of."""
        db = self._db
        # Ascending row ids keep FTS5 from flushing its buffer at every step.
        gone = db.execute(
            f"SELECT {_CHUNK_COLUMNS} FROM temp.outgoing o JOIN chunks c USING (chunk_id)"
            " JOIN files f USING (file_id) WHERE NOT o.same_terms ORDER BY c.chunk_id"
        )
        while rows := gone.fetchmany(1000):
            db.executemany(
                "INSERT INTO postings (postings, rowid, body, heading, path, symbols)"
                " VALUES ('delete', ?, ?, ?, ?, ?)",
                [(row[0], *_posting_terms(_chunk(row))) for row in rows],
            )

    def _restore_postings(self) -> None:
        """Postings of the chunks that a full rebuild keeps: of files that it could not read."""
        kept = self._db.execute(
            f"SELECT {_CHUNK_COLUMNS} FROM chunks c JOIN files f USING (file_id)"
            " WHERE c.chunk_id NOT IN (SELECT chunk_id FROM temp.outgoing) ORDER BY c.chunk_id"
        )
        self._db.executemany(
            "INSERT INTO postings (rowid, body, heading, path, symbols) VALUES (?, ?, ?, ?, ?)",
            [(row[0], *_posting_terms(_chunk(row))) for row in kept.fetchall()],
        )

    def _insert_staged(self) -> int:
        db = self._db
        updates = ", ".join(
            f"{name} = excluded.{name}" for name in _FILE_COLUMNS.replace(" ", "").split(",")[1:]
        )
        db.execute(
            f"INSERT INTO files ({_FILE_COLUMNS}) SELECT {_FILE_COLUMNS} FROM temp.staged_files"
            f" WHERE true ORDER BY path ON CONFLICT (path) DO UPDATE SET {updates}"
        )
        db.execute(
            "INSERT INTO chunks SELECT s.chunk_id, f.file_id, s.ordinal, s.byte_start, s.byte_end,"
            " s.line_start, s.line_end, s.heading, s.symbols, s.text"
            " FROM temp.staged_chunks s JOIN files f USING (path) ORDER BY s.chunk_id"
        )
        db.execute(
            "INSERT INTO windows SELECT chunk_id, window, key FROM temp.staged_windows"
            " ORDER BY chunk_id, window"
        )
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
        self._db.execute("DELETE FROM retired WHERE key IN (SELECT key FROM windows)")
        old = (int(time.time()) - _KEEP_RETIRED_S,)
        self._db.execute(
            "DELETE FROM embeddings WHERE key IN (SELECT key FROM retired WHERE at_s < ?)", old
        )
        self._db.execute("DELETE FROM retired WHERE at_s < ?", old)

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


def _staged_row(chunk: Chunk) -> tuple[object, ...]:
    return (
        chunk.chunk_id, chunk.path, chunk.ordinal, chunk.byte_start, chunk.byte_end,
        chunk.line_start, chunk.line_end, json.dumps(chunk.heading, ensure_ascii=False),
        json.dumps(chunk.symbols, ensure_ascii=False), chunk.text, *_posting_terms(chunk),
    )  # fmt: skip


def _make_directory(directory: Path) -> None:
    directory.mkdir(mode=0o700, exist_ok=True)
    ignore = directory / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n", encoding="utf-8")


def _is_sound(db: sqlite3.Connection) -> bool:
    """Whether SQLite finds its own structures whole, those of the full text included."""
    try:
        (verdict,) = db.execute("PRAGMA quick_check(1)").fetchone()
        db.execute("INSERT INTO postings (postings) VALUES ('integrity-check')")
    except sqlite3.Error:
        return False
    return bool(verdict == "ok")


def _recreate(path: Path) -> None:
    """Put an empty index in the place of a damaged one, with every embedding that can be read."""
    fresh = path.with_name(f"{path.name}.{os.getpid()}{vectors.TEMPORARY_SUFFIX}")
    fresh.unlink(missing_ok=True)
    with contextlib.closing(sqlite3.connect(fresh, isolation_level=None)) as db:
        schema.create(db)
        db.execute("BEGIN")
        db.executemany("INSERT OR IGNORE INTO embeddings VALUES (?, ?, ?)", _salvaged(path))
        db.execute("COMMIT")
    seal.drop_seal(path)
    for suffix in ("-wal", "-shm", "-journal"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    os.replace(fresh, path)


def _salvaged(path: Path) -> Iterator[tuple[bytes, bytes, int]]:
    """Embeddings of a damaged index as far as it can be read: those whose checksum holds."""
    try:
        with contextlib.closing(_connect_reading(path)) as db:
            for key, blob, checksum in db.execute("SELECT key, vector, checksum FROM embeddings"):
                if isinstance(blob, bytes) and _checksum(blob) == checksum:
                    yield key, blob, checksum
    except sqlite3.Error:
        return  # the rest has to be computed again


def _connect_writing(path: Path) -> sqlite3.Connection:
    with translated("opening the index"):
        db = sqlite3.connect(
            path, timeout=_BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
        )
        try:
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = NORMAL")
            (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
            if not tables:
                schema.create(db)
            schema.require_current(db)
        except BaseException:
            db.close()
            raise
    path.chmod(0o600)
    return db

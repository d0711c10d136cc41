"""Rows of the SQLite index and what they stand for; used by reader and writer alike."""

from __future__ import annotations

import json
import os
import re
import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import xxhash

from ragx.algo.knn_graph import EXACT_LIMIT
from ragx.algo.lexical import analyse
from ragx.errors import IndexDamaged
from ragx.store import vectors
from ragx.store.base import Counts, Digests, FileFacts, FileRow, LinkOptions
from ragx.store.edges import derive_graph, graph_digest
from ragx.store.faults import REBUILD_HINT, reading
from ragx.store.similar import Vectors, labels_of
from ragx.types import Chunk, Locator

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ragx.algo.graph import CsrGraph

__all__ = [
    "CHUNK_COLUMNS",
    "FILE_COLUMNS",
    "ROWID_IN_LIST",
    "all_vectors",
    "checksum",
    "digests",
    "graph_stamp",
    "id_list",
    "is_intact",
    "known_embeddings",
    "link_options",
    "load_vectors",
    "marks",
    "packed_locator",
    "posting_terms",
    "read_counts",
    "read_extraction",
    "read_facts",
    "read_files",
    "read_manifest",
    "stored_graph",
    "to_chunk",
    "to_file",
    "vector_stamp",
]

_MAX_NUMBER = 1 << 53
_IN_LIMIT = 500  # bound parameters per statement; SQLite's oldest default limit is 999

# What no run stores: paths that lead out of the corpus once they are joined to its root.
_OUTSIDE = re.compile(r"\A(?:/|\Z)|(?:\A|/)\.\.(?:/|\Z)|\0")
_OUTSIDE_ON_WINDOWS = re.compile(r"[\\:]")

# The plus keeps the planner from running the match anew for every id.
ROWID_IN_LIST = "+rowid IN (SELECT value FROM json_each(?))"

FILE_COLUMNS = (
    "path, content_hash, size, mtime_ns, ctime_ns, inode, scanned_ns, status, code, note,"
    " encoding, language, title, n_chunks, date, date_source, tags, extractor, skipped_parts"
)
CHUNK_COLUMNS = (
    "c.chunk_id, f.path, c.ordinal, c.byte_start, c.byte_end, c.line_start, c.line_end, c.text,"
    " c.heading, c.symbols, c.locator"
)


def id_list(chunk_ids: Iterable[int]) -> str:
    """Ids as one bound parameter, however many there are."""
    return json.dumps(sorted(chunk_ids))


def marks(n: int) -> str:
    """Placeholders for n bound parameters."""
    return ",".join("?" * n)


def to_chunk(row: tuple[int, str, int, int, int, int, int, str, str, str, str]) -> Chunk:
    """A row of CHUNK_COLUMNS as a chunk.

    Raises:
        ValueError: its path is none of a corpus.
    """
    _require_inside(row[1])
    return Chunk(
        *row[:8],
        heading=_strings(row[8]),
        symbols=_strings(row[9]),
        locator=_locator(row[10]) if row[10] else None,
    )


def to_file(row: tuple[Any, ...]) -> FileRow:
    """A row of FILE_COLUMNS.

    Raises:
        ValueError: its path is none of a corpus.
    """
    _require_inside(row[0])
    *plain, tags, extractor, packed = row
    if not isinstance(extractor, str):
        raise TypeError("an extractor that is no text")
    parts = tuple((str(what), int(n), str(note)) for what, n, note in json.loads(packed))
    return FileRow(*(*plain, _strings(tags), extractor, parts))


def _require_inside(path: str) -> None:
    """Refuse a path that leads out of the corpus: rows may come from somebody else's index."""
    if _OUTSIDE.search(path) or (os.name == "nt" and _OUTSIDE_ON_WINDOWS.search(path)):
        raise ValueError(f"a row for {path!r}, which is not below the corpus")


@lru_cache(maxsize=20_000)
def _strings(packed: str) -> tuple[str, ...]:
    return tuple(json.loads(packed)) if packed != "[]" else ()


def packed_locator(locator: Locator | None) -> str:
    """As it is stored; "" for a chunk of a text file."""
    if locator is None:
        return ""
    return json.dumps([locator.kind, locator.number, locator.end, locator.name], ensure_ascii=False)


@lru_cache(maxsize=20_000)
def _locator(packed: str) -> Locator:
    kind, number, end, name = json.loads(packed)
    if not (isinstance(kind, str) and kind.strip() and isinstance(name, str)):
        raise ValueError("a place without a kind or name")
    if not (0 <= int(number) <= _MAX_NUMBER and 0 <= int(end) <= _MAX_NUMBER):
        raise ValueError("a place out of range")
    return Locator(kind, int(number), int(end), name)


def posting_terms(chunk: Chunk) -> tuple[str, str, str, str]:
    """Terms of the four full-text columns: body, heading, path, symbols."""
    return (
        analyse(chunk.text),
        analyse("\n".join(chunk.heading)),
        analyse(chunk.path),
        analyse("\n".join(chunk.symbols)),
    )


def read_manifest(db: sqlite3.Connection) -> dict[str, str]:
    """Settings that the index was built with."""
    rows = db.execute("SELECT key, value FROM meta ORDER BY key").fetchall()
    return {key: value for key, value in rows if key != "generation" and "." not in key}


def known_embeddings(
    db: sqlite3.Connection, keys: Collection[bytes], *, width: int = 0
) -> set[bytes]:
    """Those of the keys whose vectors are stored, with this width if it is not 0."""
    ordered = sorted(keys)
    known: set[bytes] = set()
    for start in range(0, len(ordered), _IN_LIMIT):
        batch = ordered[start : start + _IN_LIMIT]
        rows = db.execute(
            f"SELECT key FROM embeddings WHERE key IN ({marks(len(batch))})"
            " AND (? = 0 OR length(vector) = 2 * ?)",
            (*batch, width, width),
        )
        known.update(key for (key,) in rows)
    return known


def checksum(blob: bytes) -> int:
    """What a stored vector is compared with when it is read."""
    return xxhash.xxh3_64_intdigest(blob) >> 1  # SQLite's integers are signed


def is_intact(blob: object, stored: object) -> bool:
    """Whether a stored vector is what was written, by the checksum beside it."""
    return isinstance(blob, bytes) and checksum(blob) == stored


def vector_stamp(db: sqlite3.Connection) -> bytes:
    """What marks the derived files that fit the vectors of this snapshot; 16 bytes."""
    row = db.execute("SELECT value FROM meta WHERE key = 'state.vectors'").fetchone()
    return bytes.fromhex(row[0]) if row else bytes(16)


def graph_stamp(db: sqlite3.Connection) -> bytes:
    """What marks the graph file that fits the rows of this snapshot; 16 bytes."""
    row = db.execute("SELECT value FROM meta WHERE key = 'state.graph'").fetchone()
    return bytes.fromhex(row[0]) if row else bytes(16)


def link_options(manifest: Mapping[str, str]) -> LinkOptions:
    """What the `similar` edges of an index were made with, by its manifest."""
    defaults = LinkOptions()
    return LinkOptions(
        k=int(manifest.get("graph_k", defaults.k)),
        min_edge_sim=float(manifest.get("graph_min_edge_sim", defaults.min_edge_sim)),
        near_dup_sim=float(manifest.get("graph_near_dup_sim", defaults.near_dup_sim)),
        edge_source=("chunk" if manifest.get("graph_edge_source") == "chunk" else "subchunk"),
    )


def stored_graph(db: sqlite3.Connection, base: vectors.VectorRows | None = None) -> CsrGraph:
    """The graph of the rows as they are stored; `base` as for `load_vectors`."""
    options = link_options(read_manifest(db))
    return derive_graph(db, options, all_vectors(db, load_vectors(db, base)))


def all_vectors(db: sqlite3.Connection, rows: vectors.VectorRows) -> Vectors:
    """Vectors of the windows that are given, and of the parts that are none."""
    with reading("reading the vectors"):
        keys = [key for (key,) in db.execute("SELECT DISTINCT key FROM parts ORDER BY key")]
        return Vectors(rows, _read_vectors(db, keys))


def read_files(db: sqlite3.Connection) -> dict[str, FileRow]:
    """Every known file by path, in path order."""
    rows = db.execute(f"SELECT {FILE_COLUMNS} FROM files ORDER BY path")
    return {row[0]: to_file(row) for row in rows}


@lru_cache(maxsize=20_000)
def _day(text: str) -> str:
    return date.fromisoformat(text).isoformat()


def read_facts(db: sqlite3.Connection) -> list[FileFacts]:
    """What filters ask of every file that has chunks, by path.

    Raises:
        ValueError: a date is none.
    """
    return [
        FileFacts(number, path, content_hash, language, _day(dated or changed), bool(dated),
                  changed, _strings(tags))
        for number, path, content_hash, language, dated, changed, tags in db.execute(
            "SELECT file_id, path, content_hash, language, date,"
            " coalesce(date(mtime_ns / 1000000000, 'unixepoch'), '1970-01-01'), tags"
            " FROM files WHERE n_chunks > 0 ORDER BY path"
        )
    ]  # fmt: skip


def read_extraction(db: sqlite3.Connection, key: str) -> bytes | None:
    """What was read out of a document, by its key; None if nothing was kept, or it is damaged."""
    row = db.execute("SELECT data, checksum FROM extractions WHERE key = ?", (key,)).fetchone()
    return row[0] if row and is_intact(*row) else None


def read_counts(db: sqlite3.Connection) -> Counts:
    """How many rows of each kind there are.

    Raises:
        IndexDamaged: chunks and postings do not agree, or a vector belongs to no chunk.
    """

    def one(sql: str) -> int:
        return int(db.execute(sql).fetchone()[0])

    counts = Counts(
        files=one("SELECT count(*) FROM files WHERE status = 'ok'"),
        chunks=one("SELECT count(*) FROM chunks"),
        vectors=one("SELECT count(*) FROM windows WHERE window = 0"),
        postings=one("SELECT count(*) FROM postings_docsize"),
        edges=one(
            "SELECT coalesce((SELECT CAST(value AS INTEGER) FROM meta"
            " WHERE key = 'state.edges'), 0)"
        ),
    )
    if counts.chunks != counts.postings or counts.vectors > counts.chunks:
        raise IndexDamaged(
            f"the index is damaged: {counts.chunks} chunks, {counts.postings} postings,"
            f" {counts.vectors} vectors",
            hint=REBUILD_HINT,
        )
    return counts


def load_vectors(
    db: sqlite3.Connection, base: vectors.VectorRows | None = None
) -> vectors.VectorRows:
    """Rows of the vector index in (chunk id, window) order.

    Args:
        base: rows of an earlier state of the same vectors; what they have is not read again.
    """
    import numpy as np

    with reading("reading the vectors"):
        # Asking for each whether its vector is there takes longer than all the rest.
        pairs = db.execute("SELECT chunk_id, key FROM windows ORDER BY chunk_id, window").fetchall()
        have, known = _known_rows(pairs, base)
        missing = sorted({pairs[row][1] for row in np.flatnonzero(~have).tolist()})
        fresh = _read_vectors(db, missing)
        if len(fresh) < len(missing):  # a window whose vector is lost stands for nothing
            pairs = [pair for pair, kept in zip(pairs, have.tolist(), strict=True)
                     if kept or pair[1] in fresh]  # fmt: skip
            have, known = _known_rows(pairs, base)
        owners = np.array([chunk_id for chunk_id, _ in pairs], np.int64)
        labels = labels_of([key for _, key in pairs])
        widths = {len(row) for row in fresh.values()}
        if have.any() and base is not None:
            widths.add(base.matrix.shape[1])
        if len(widths) > 1:
            raise IndexDamaged("the index holds vectors of different widths", hint=REBUILD_HINT)
        if have.all() and base is not None and np.array_equal(known, np.arange(len(base))):
            return vectors.VectorRows(owners, labels, base.matrix)
        if have.any() and base is not None:
            matrix = base.matrix[known]  # at once, for memory is what takes the time here
        else:
            matrix = np.empty((len(pairs), max(widths, default=0)), np.float32)
        for row in np.flatnonzero(~have).tolist():
            matrix[row] = fresh[pairs[row][1]]
    return vectors.VectorRows(owners, labels, matrix)


def _known_rows(
    pairs: Sequence[tuple[int, bytes]], base: vectors.VectorRows | None
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """For each window whether a row of `base` has its vector, and which."""
    import numpy as np

    have, known = np.zeros(len(pairs), np.bool_), np.zeros(len(pairs), np.int64)
    if base is not None and len(base) and pairs:
        labels = labels_of([key for _, key in pairs])
        stored, first = np.unique(base.labels, return_index=True)
        places = np.minimum(np.searchsorted(stored, labels), len(stored) - 1)
        have, known = stored[places] == labels, first[places]
    return have, known


def _read_vectors(
    db: sqlite3.Connection, keys: Sequence[bytes]
) -> dict[bytes, NDArray[np.float32]]:
    """Stored vector of each key that has one.

    Raises:
        IndexDamaged: one is not what was written.
    """
    import numpy as np

    found: dict[bytes, NDArray[np.float32]] = {}
    for at in range(0, len(keys), _IN_LIMIT):
        batch = keys[at : at + _IN_LIMIT]
        for key, blob, stored in db.execute(
            f"SELECT key, vector, checksum FROM embeddings WHERE key IN ({marks(len(batch))})",
            batch,
        ):
            if not is_intact(blob, stored):
                raise IndexDamaged("a stored vector is damaged", hint=REBUILD_HINT)
            found[key] = np.frombuffer(blob, "<f2").astype(np.float32)
    return found


def _digest_files(db: sqlite3.Connection) -> dict[str, str]:
    """Digest of each file's row and chunks, by path."""
    states: dict[str, xxhash.xxh3_128] = {}
    for path, *facts in db.execute(
        "SELECT path, content_hash, status, code, note, encoding, language, title, n_chunks, tags,"
        " extractor, skipped_parts,"
        # Commits and the file system change the others while the files stay the same.
        " CASE WHEN date_source IN ('name', 'front_matter', 'metadata') THEN date END"
        " FROM files ORDER BY path"
    ):
        states[path] = xxhash.xxh3_128(repr(facts).encode("utf-8", "surrogatepass"))
    for path, *facts in db.execute(
        "SELECT f.path, c.chunk_id, c.ordinal, c.byte_start, c.byte_end, c.line_start, c.line_end,"
        " c.heading, c.symbols, c.locator, c.text FROM chunks c JOIN files f USING (file_id)"
        " ORDER BY f.path, c.ordinal"
    ):
        states[path].update(repr(facts).encode("utf-8", "surrogatepass"))
    return {path: state.hexdigest() for path, state in states.items()}


def _digest_vectors(db: sqlite3.Connection) -> str:
    """Digest of all embedding windows with their vectors."""
    state = xxhash.xxh3_128()
    for chunk_id, window, key, vector in db.execute(
        "SELECT w.chunk_id, w.window, w.key, e.vector FROM windows w"
        " LEFT JOIN embeddings e USING (key) ORDER BY w.chunk_id, w.window"
    ):
        state.update(f"{chunk_id} {window} ".encode() + key + (vector or b""))
    for chunk_id, part, key in db.execute("SELECT chunk_id, part, key FROM parts ORDER BY 1, 2"):
        state.update(f"{chunk_id} {part} ".encode() + key)
    return state.hexdigest()


def _digest_postings(db: sqlite3.Connection) -> str:
    """Digest of the full text: each term's chunks and occurrences by column, all lengths."""
    db.execute("CREATE VIRTUAL TABLE temp.terms USING fts5vocab (main, postings, col)")
    state = xxhash.xxh3_128()
    try:
        for row in db.execute("SELECT term, col, doc, cnt FROM temp.terms ORDER BY term, col"):
            state.update(repr(row).encode("utf-8", "surrogatepass"))
    finally:
        db.execute("DROP TABLE temp.terms")
    for chunk_id, sizes in db.execute("SELECT id, sz FROM postings_docsize ORDER BY id"):
        state.update(str(chunk_id).encode() + sizes)
    return state.hexdigest()


def digests(db: sqlite3.Connection) -> Digests:
    """Digests of everything that files and settings decide."""
    (n_lists,) = db.execute("SELECT count(*) FROM neighbours").fetchone()
    return Digests(
        files=_digest_files(db),
        vectors=_digest_vectors(db),
        postings=_digest_postings(db),
        # Beyond that, lists are close to the exact ones, and depend on how they came about.
        edges=graph_digest(stored_graph(db), exact=n_lists <= EXACT_LIMIT),
    )

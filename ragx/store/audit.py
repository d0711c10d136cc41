"""Is what is stored whole? Every check reads; none needs a model or a writer."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from ragx.store import seal
from ragx.store.connect import DATABASE_NAME, connect_reading, index_directory
from ragx.store.faults import reading
from ragx.store.orphans import rows_astray
from ragx.store.rows import is_intact

__all__ = ["Finding", "audit"]


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found: `detail` says it in words, whether good or bad."""

    name: str
    ok: bool
    detail: str


def audit(root: Path) -> tuple[Finding, ...]:
    """Check the whole database: its structure, its checksums, and that all rows belong together.

    Returns:
        One finding per check: structure, checksum, vectors, orphans.
    Raises:
        IndexMissing, StoreError: there is no index, or it cannot be opened at all.
    """
    path = index_directory(root) / DATABASE_NAME
    with reading("checking the index"), closing(connect_reading(path)) as db:
        return tuple(check(db, path) for check in _CHECKS)


def _structure(db: sqlite3.Connection, _path: Path) -> Finding:
    said = [str(row[0]) for row in db.execute("PRAGMA integrity_check(3)")]
    ok = said == ["ok"]
    return Finding("structure", ok, "sound" if ok else "; ".join(said))


def _checksum(_db: sqlite3.Connection, path: Path) -> Finding:
    if seal.log_holds_data(path):
        return Finding("checksum", True, "a run is at work or was killed: none to compare with")
    known = seal.sealed_digest(path)
    if known is None:
        return Finding("checksum", True, "none: the last run was killed; the next one makes it")
    ok = seal.file_digest(path) == known
    return Finding("checksum", ok, "as the last run left it" if ok else "not as the last run left")


def _vectors(db: sqlite3.Connection, _path: Path) -> Finding:
    n, broken, widths = 0, 0, set()
    for blob, stored in db.execute("SELECT vector, checksum FROM embeddings"):
        n += 1
        broken += not is_intact(blob, stored)
        widths.add(len(blob))
    live = {
        len(blob)
        for (blob,) in db.execute(
            "SELECT vector FROM embeddings WHERE key IN (SELECT key FROM windows)"
        )
    }
    if broken:
        return Finding("vectors", False, f"{broken} of {n} are not what was written")
    if len(live) > 1:
        return Finding("vectors", False, f"of {len(live)} widths: two models in one index")
    return Finding("vectors", True, f"{n} intact")


def _orphans(db: sqlite3.Connection, _path: Path) -> Finding:
    bad = list(rows_astray(db))
    if bad:
        return Finding("orphans", False, ", ".join(bad))
    counts = {
        table: db.execute(f"SELECT count(*) FROM {name}").fetchone()[0]
        for table, name in (("chunks", "chunks"), ("texts", "postings_docsize"))
    }
    return Finding("orphans", True, f"none; {counts['chunks']} chunks, as many in the full text")


_CHECKS: tuple[Callable[[sqlite3.Connection, Path], Finding], ...] = (
    _structure,
    _checksum,
    _vectors,
    _orphans,
)

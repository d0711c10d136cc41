"""Rows that refer to what is not there: by damage, or by a defect of ragx."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

__all__ = ["rows_astray"]

_ORPHANS = {
    "chunks without their file": (
        "SELECT count(*) FROM chunks WHERE file_id NOT IN (SELECT file_id FROM files)"
    ),
    "windows without their chunk": (
        "SELECT count(*) FROM windows WHERE chunk_id NOT IN (SELECT chunk_id FROM chunks)"
    ),
    "parts without their chunk": (
        "SELECT count(*) FROM parts WHERE chunk_id NOT IN (SELECT chunk_id FROM chunks)"
    ),
    "names without their chunk": (
        "SELECT count(*) FROM names WHERE chunk_id NOT IN (SELECT chunk_id FROM chunks)"
    ),
    "mentions without their chunk": (
        "SELECT count(*) FROM mentions WHERE chunk_id NOT IN (SELECT chunk_id FROM chunks)"
    ),
    "links without their chunk": (
        "SELECT count(*) FROM links WHERE chunk_id NOT IN (SELECT chunk_id FROM chunks)"
    ),
    "windows without their vector": (
        "SELECT count(*) FROM windows WHERE key NOT IN (SELECT key FROM embeddings)"
    ),
    "parts without their vector": (
        "SELECT count(*) FROM parts WHERE key NOT IN (SELECT key FROM embeddings)"
    ),
    "chunks that the full text lacks": (
        "SELECT count(*) FROM chunks WHERE chunk_id NOT IN (SELECT id FROM postings_docsize)"
    ),
    "texts in the full text without their chunk": (
        "SELECT count(*) FROM postings_docsize WHERE id NOT IN (SELECT chunk_id FROM chunks)"
    ),
    "files whose number of chunks is another": (
        "SELECT count(*) FROM files f WHERE n_chunks !="
        " (SELECT count(*) FROM chunks c WHERE c.file_id = f.file_id)"
    ),
}


def rows_astray(db: sqlite3.Connection) -> Iterator[str]:
    """Yield, in words, how many rows there are of each kind that should not be.

    Raises:
        sqlite3.Error: the database cannot be read.
    """
    for what, statement in _ORPHANS.items():
        n = db.execute(statement).fetchone()[0]
        if n:
            yield f"{n} {what}"

"""A checksum of the whole database between runs, so that damage is said instead of searched.

SQLite notices a broken structure, not a changed byte in a text or a vector. The last writer leaves
`index.seal`: the database's digest with its stat. As long as the stat holds, opening costs
nothing; where it differs (copied, restored, tampered with, damaged) the digest decides. There is
no seal while a writer is at work or after one was killed; SQLite's log covers that case.
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

import xxhash

from ragx.errors import IndexDamaged
from ragx.store.derived import open_new, temporary_name
from ragx.store.faults import REBUILD_HINT

__all__ = [
    "SEAL_NAME",
    "check_seal",
    "drop_seal",
    "file_digest",
    "has_seal",
    "is_fresh",
    "log_holds_data",
    "sealed_digest",
    "write_seal",
]

SEAL_NAME = "index.seal"
_BLOCK = 1 << 22


def write_seal(database: Path) -> None:
    """Seal a database that nobody is writing to and whose log is empty. Failure leaves no seal."""
    seal = database.with_name(SEAL_NAME)
    with contextlib.suppress(OSError):
        facts = {**_stat(database), "xxh3_128": file_digest(database)}
        temporary = temporary_name(seal)
        try:
            with open_new(temporary) as file:
                file.write(json.dumps(facts).encode("ascii"))
            os.replace(temporary, seal)
        finally:
            temporary.unlink(missing_ok=True)


def drop_seal(database: Path) -> None:
    """Break the seal before the first write."""
    with contextlib.suppress(OSError):
        database.with_name(SEAL_NAME).unlink()


def has_seal(database: Path) -> bool:
    """Whether there is a seal, right or wrong."""
    return database.with_name(SEAL_NAME).exists()


def is_fresh(database: Path) -> bool:
    """Whether the seal knows the database by its stat, so that opening needs no digest."""
    facts = _read(database)
    try:
        return facts == {**_stat(database), "xxh3_128": (facts or {}).get("xxh3_128")}
    except OSError:
        return False


def check_seal(database: Path) -> None:
    """Compare a database with its seal, if it has one and no log waits to be applied.

    Raises:
        IndexDamaged: the bytes are not those that the last run left.
    """
    facts = _read(database)
    if facts is None or log_holds_data(database):
        return
    try:
        if is_fresh(database):
            return
        digest = file_digest(database)
    except OSError:
        return  # opening it will say what is wrong
    if digest == facts.get("xxh3_128") or _read(database) != facts or log_holds_data(database):
        return  # the same bytes elsewhere, or a writer has begun meanwhile
    raise IndexDamaged(
        "the index is damaged: its database is not what the last run left", hint=REBUILD_HINT
    )


def sealed_digest(database: Path) -> str | None:
    """The digest that the last run left; None where there is no seal that can be read."""
    digest = (_read(database) or {}).get("xxh3_128")
    return digest if isinstance(digest, str) else None


def _read(database: Path) -> dict[str, object] | None:
    try:
        facts = json.loads(database.with_name(SEAL_NAME).read_bytes())
    except (OSError, ValueError):
        return None
    return facts if isinstance(facts, dict) else None


def _stat(path: Path) -> dict[str, object]:
    status = path.stat()
    return {
        "size": status.st_size,
        "mtime_ns": status.st_mtime_ns,
        "ctime_ns": status.st_ctime_ns,
        "inode": status.st_ino,
    }


def file_digest(path: Path) -> str:
    """Hex xxh3-128 of a file's bytes, read in blocks."""
    state = xxhash.xxh3_128()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            state.update(block)
    return state.hexdigest()


def log_holds_data(database: Path) -> bool:
    """Whether SQLite's log has something that the database file lacks."""
    with contextlib.suppress(OSError):
        return database.with_name(database.name + "-wal").stat().st_size > 0
    return False

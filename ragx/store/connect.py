"""Where the database lies, and how it is opened, checked and replaced."""

from __future__ import annotations

import contextlib
import os
import shlex
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path

from ragx.errors import StoreError
from ragx.store import schema, seal
from ragx.store.derived import TEMPORARY_SUFFIX, open_new
from ragx.store.faults import translated
from ragx.store.orphans import rows_astray
from ragx.store.rows import is_intact

__all__ = [
    "DATABASE_NAME",
    "INDEX_DIRECTORY",
    "connect_reading",
    "connect_writing",
    "index_directory",
    "is_sound",
    "make_directory",
    "recreate",
]

INDEX_DIRECTORY = ".ragx"
DATABASE_NAME = "index.db"
_BUSY_TIMEOUT_S = 10.0


def index_directory(root: Path) -> Path:
    """Where the index of a corpus lives; nothing in there leads elsewhere.

    A clone brings whatever its maker put into `.ragx`. A link there would have ragx read, replace
    or delete a file of the reader's; a pipe would have it wait for ever.

    Raises:
        StoreError: code "linked_index": it is a link, or holds something that is neither a file
            nor a directory. Also where it cannot be listed.
    """
    directory = root / INDEX_DIRECTORY
    with translated("opening the index"):
        try:
            if stat.S_ISLNK(directory.lstat().st_mode):
                raise _refusal(directory, "a link")
            entries = sorted(directory.iterdir())
        except (FileNotFoundError, NotADirectoryError):
            return directory
        for entry in entries:
            # Files of a run that is at work come and go.
            with contextlib.suppress(FileNotFoundError):
                mode = entry.lstat().st_mode
                if stat.S_ISLNK(mode):
                    raise _refusal(entry, "a link")
                if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
                    raise _refusal(entry, "no regular file")
    return directory


def _refusal(path: Path, what: str) -> StoreError:
    return StoreError(
        f"{path} is {what}: an index is kept in its corpus alone, as a clone could bring a link"
        " that leads to other files",
        code="linked_index",
        hint=f"rm {shlex.quote(str(path))}",
    )


def make_directory(directory: Path) -> None:
    """Make the index directory, private and ignored by git."""
    directory.mkdir(mode=0o700, exist_ok=True)
    with contextlib.suppress(FileExistsError), open_new(directory / ".gitignore", 0o666) as file:
        file.write(b"*\n")


def connect_reading(path: Path) -> sqlite3.Connection:
    """A read-only connection inside a read transaction: the snapshot."""
    uri = path.resolve().as_uri()
    # A writable directory first: WAL readers need to make the shared-memory file. In a read-only
    # one nobody can be writing, so the file is read as it lies.
    faults: list[sqlite3.Error] = []
    for options in ("mode=ro", "mode=ro&immutable=1"):
        if "immutable" in options and seal.log_holds_data(path):
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


def connect_writing(path: Path) -> sqlite3.Connection:
    """A connection to the database, which is made if need be."""
    with translated("opening the index"):
        db = sqlite3.connect(
            path.resolve().as_uri(),
            uri=True,
            timeout=_BUSY_TIMEOUT_S,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = NORMAL")
            (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
            if not tables:
                schema.create(db)
            schema.require_current(db)
            # Setting even the same mode would change the time that the seal goes by.
            if os.name == "posix" and path.stat().st_mode & 0o077:
                with contextlib.suppress(PermissionError):  # file systems that know no modes
                    path.chmod(0o600)
        except BaseException:
            db.close()
            raise
    return db


def is_sound(db: sqlite3.Connection) -> bool:
    """Whether SQLite finds its own structures whole, the full text's too, vectors are right and
    all rows belong together."""
    try:
        (verdict,) = db.execute("PRAGMA integrity_check(1)").fetchone()
        db.execute("INSERT INTO postings (postings) VALUES ('integrity-check')")
        for blob, stored in db.execute("SELECT vector, checksum FROM embeddings"):
            if not is_intact(blob, stored):
                return False
        if any(rows_astray(db)):
            return False
    except sqlite3.Error:
        return False
    return bool(verdict == "ok")


def recreate(path: Path) -> None:
    """Put an empty index in the place of a damaged one, with every embedding that can be read."""
    fresh = path.with_name(f"{path.name}.{os.getpid()}{TEMPORARY_SUFFIX}")
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
        with contextlib.closing(connect_reading(path)) as db:
            for key, blob, stored in db.execute("SELECT key, vector, checksum FROM embeddings"):
                if is_intact(blob, stored):
                    yield key, blob, stored
    except sqlite3.Error:
        return  # the rest has to be computed again

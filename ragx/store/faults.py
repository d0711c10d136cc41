"""The one place where SQLite's and the operating system's exceptions become ragx errors."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from ragx.errors import IndexBusy, IndexDamaged, StoreError

__all__ = ["REBUILD_HINT", "reading", "translated"]

REBUILD_HINT = "ragx index --full rebuilds it; your files are untouched"
_FULL_HINT = "free some space and run the command again"
_DISK_HINT = "check the disk and the permissions of .ragx/"

# https://www.sqlite.org/rescode.html, primary codes
_BUSY, _LOCKED, _READONLY, _IOERR, _CORRUPT, _FULL, _CANTOPEN, _NOTADB = 5, 6, 8, 10, 11, 13, 14, 26

# No room for the file that readers and writer share; SQLite calls only other writes "full".
_IOERR_SHMSIZE = 4874


def _from_sqlite(fault: sqlite3.Error, doing: str) -> StoreError:
    code = getattr(fault, "sqlite_errorcode", 0)
    primary = code & 0xFF
    if primary in (_BUSY, _LOCKED):
        return IndexBusy(f"the index is in use while {doing}", hint="try again in a moment")
    if primary == _FULL or code == _IOERR_SHMSIZE:
        return StoreError(
            f"no space left on the disk while {doing}",
            code="disk_full",
            hint=_FULL_HINT,
        )
    if primary == _READONLY:
        return StoreError(
            f"the index directory is read-only ({doing})",
            code="read_only",
            hint="make .ragx/ writable to index; queries work as it is",
        )
    if primary in (_CORRUPT, _NOTADB):
        return IndexDamaged(f"the index is damaged ({doing}: {fault})", hint=REBUILD_HINT)
    if primary in (_IOERR, _CANTOPEN):
        return StoreError(
            f"the index cannot be read or written ({doing}: {fault})",
            code="io_error",
            hint=_DISK_HINT,
        )
    return IndexDamaged(
        f"the index does not answer as it should ({doing}: {fault})", hint=REBUILD_HINT
    )


def _from_os(fault: OSError, doing: str) -> StoreError:
    if fault.errno in (errno.ENOSPC, errno.EDQUOT):
        return StoreError(
            f"no space left on the disk while {doing}",
            code="disk_full",
            hint=_FULL_HINT,
        )
    if fault.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        return StoreError(
            f"no permission while {doing}: {fault.filename or ''}".rstrip(": "),
            code="read_only",
            hint="make .ragx/ writable to index; queries work as it is",
        )
    what = f"{fault.filename}: " if fault.filename else ""
    return StoreError(
        f"{what}{fault.strerror or fault} while {doing}", code="io_error", hint=_DISK_HINT
    )


@contextmanager
def translated(doing: str) -> Iterator[None]:
    """Turn foreign exceptions of the block into StoreError and its children.

    `doing` completes the sentence "... while <doing>".
    """
    try:
        yield
    except sqlite3.Error as fault:
        raise _from_sqlite(fault, doing) from fault
    except OSError as fault:
        raise _from_os(fault, doing) from fault


@contextmanager
def reading(doing: str) -> Iterator[None]:
    """As `translated`, for blocks that interpret stored values: nonsense in a row is damage."""
    with translated(doing):
        try:
            yield
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as fault:
            raise IndexDamaged(
                f"the index is damaged ({doing}: {fault})", hint=REBUILD_HINT
            ) from fault

"""Files that are made from the database and can be made again: how they are written and swept."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from pathlib import Path
from secrets import token_hex
from typing import IO, TYPE_CHECKING, Any

import xxhash

from ragx.store.failpoints import reach

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

__all__ = [
    "TEMPORARY_SUFFIX",
    "arrays_digest",
    "open_new",
    "read_head",
    "replace_file",
    "sweep",
    "temporary_name",
]

TEMPORARY_SUFFIX = ".tmp"
_LEFTOVER_S = 600.0  # longer than any file here takes to write


def replace_file(path: Path, parts: list[Any], *, place: str = "matrix") -> None:
    """Write beside the target and move over it, so that readers see the old file or the new.

    Args:
        place: what a test can break the run at: "<place>_written" and "<place>_replaced".
    """
    temporary = temporary_name(path)
    try:
        with open_new(temporary) as file:
            for part in parts:
                file.write(part)
        reach(f"{place}_written")
        os.replace(temporary, path)
        reach(f"{place}_replaced")
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def open_new(path: Path, mode: int = 0o600) -> IO[bytes]:
    """A file to write that was not there; never one that a link leads to.

    Raises:
        FileExistsError: something has that name, be it a link to nothing.
    """
    return open(path, "xb", opener=lambda name, flags: os.open(name, flags, mode))


def read_head(path: Path, size: int) -> tuple[bytes, int] | None:
    """The first `size` bytes of a file, and how long it is; None where there are not so many."""
    try:
        n_bytes = path.stat().st_size
        with path.open("rb") as file:
            head = file.read(size)
    except OSError:
        return None
    return (head, n_bytes) if len(head) == size else None


def arrays_digest(arrays: Iterable[NDArray[Any]]) -> bytes:
    """xxh3-128 of the bytes of contiguous arrays, one after the other."""
    state = xxhash.xxh3_128()
    for array in arrays:
        if array.size:
            state.update(array.reshape(-1).view("u1").data)
    return state.digest()


def temporary_name(path: Path) -> Path:
    """A name that no other process or thread uses; `sweep` knows it for a leftover later."""
    return path.with_name(f"{path.name}.{token_hex(6)}{TEMPORARY_SUFFIX}")


def sweep(directory: Path) -> None:
    """Remove what killed processes left half written."""
    for path in directory.glob(f"*{TEMPORARY_SUFFIX}"):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime <= _LEFTOVER_S:
                continue
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()

"""Reading a file of the corpus: regular files only, and never waiting for anybody."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from ragx.errors import ExtractionError

__all__ = ["read_inside", "read_regular"]

# A FIFO that has taken a file's place would otherwise be waited for until someone writes to it.
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def read_inside(root: Path, path: str) -> tuple[bytes, os.stat_result, os.stat_result]:
    """As `read_regular`, of a path that an index has stored: nothing outside the root is opened.

    A clone may bring an index, and links beside it that lead out.

    Args:
        root: the corpus; may be a link itself.
        path: root-relative.
    Raises:
        ExtractionError: code "special"; it leads out of the root or is no regular file.
        OSError: it cannot be opened or read.
    """
    real = os.path.realpath(root / path)
    if not Path(real).is_relative_to(os.path.realpath(root)):
        raise ExtractionError("not a file of the corpus", code="special")
    return read_regular(Path(real))


def read_regular(path: Path) -> tuple[bytes, os.stat_result, os.stat_result]:
    """Bytes of a file with its stat before and after reading; equal ones belong to the bytes.

    Raises:
        ExtractionError: code "special"; it is no regular file.
        OSError: it cannot be opened or read.
    """
    with os.fdopen(os.open(path, _FLAGS | getattr(os, "O_CLOEXEC", 0)), "rb") as file:
        before = os.fstat(file.fileno())
        if not stat.S_ISREG(before.st_mode):
            raise ExtractionError("not a regular file", code="special")
        raw = file.read()
        return raw, before, os.fstat(file.fileno())

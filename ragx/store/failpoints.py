"""Named places where a test can break a run: `RAGX_FAILPOINT=name[:nth]=kill|enospc|eio`.

Unset, as always outside tests, `reach` does nothing but compare a string.
"""

from __future__ import annotations

import errno
import os
import signal
from typing import Final

__all__ = ["FAILPOINTS", "reach"]

FAILPOINTS: Final = (
    "writer_opened",
    "embeddings_saved",
    "extraction_saved",
    "file_staged",
    "commit_begun",
    "commit_chunks_dropped",
    "commit_chunks_inserted",
    "commit_postings_inserted",
    "commit_linked",
    "commit_before_end",
    "committed",
    "matrix_written",
    "matrix_replaced",
    "derived_written",
    "log_emptied",
    "sealed",
)

_armed, _, _action = os.environ.get("RAGX_FAILPOINT", "").partition("=")
_name, _, _nth = _armed.partition(":")
_left = int(_nth) if _nth.isdigit() else 1


def reach(name: str) -> None:
    """Pass a named place; break there if a test has asked for it.

    Raises:
        OSError: ENOSPC or EIO, as asked.
    """
    if name == _name:
        _break()


def _break() -> None:
    global _left  # noqa: PLW0603  # one process, one failpoint
    _left -= 1
    if _left:
        return
    if _action == "enospc":
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    if _action == "eio":
        raise OSError(errno.EIO, os.strerror(errno.EIO))
    os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))

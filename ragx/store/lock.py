"""One writer at a time, by a lock of the operating system: it ends with the process, however."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from pathlib import Path

from ragx.errors import IndexBusy
from ragx.store.faults import translated

__all__ = ["WriterLock"]

LOCK_NAME = "writer.lock"
# What a link leads to would be emptied.
_FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)


class WriterLock:
    """Held from construction to `release`.

    Raises:
        IndexBusy: another process holds it; the message names its process id.
        StoreError: the lock file cannot be made.
    """

    def __init__(self, directory: Path) -> None:
        path = directory / LOCK_NAME
        with translated("taking the writer's lock"):
            self._fd = os.open(path, _FLAGS, 0o600)
        try:
            _lock(self._fd)
        except OSError as fault:
            if fault.errno not in (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES, errno.EDEADLK):
                self.release()
                with translated("taking the writer's lock"):
                    raise
            holder = _holder(self._fd)
            self.release()
            who = f" (process {holder})" if holder else ""
            raise IndexBusy(
                f"another ragx is indexing this directory{who}",
                hint="wait for it to finish, then run the command again",
            ) from None
        # Whose lock it is helps whoever finds it taken; a full disk must not keep it from us.
        with contextlib.suppress(OSError):
            os.ftruncate(self._fd, 0)
            os.lseek(self._fd, 0, os.SEEK_SET)
            os.write(self._fd, str(os.getpid()).encode())

    def release(self) -> None:
        """Give the lock back; harmless when repeated."""
        if self._fd >= 0:
            with contextlib.suppress(OSError):
                os.close(self._fd)
            self._fd = -1


def _holder(fd: int) -> str:
    with contextlib.suppress(OSError):
        os.lseek(fd, 0, os.SEEK_SET)
        text = os.read(fd, 20).decode("ascii", "replace").strip()
        if text.isdigit():
            return text
    return ""


if sys.platform == "win32":
    import msvcrt

    def _lock(fd: int) -> None:
        # A byte far past the content, so that others can read the process id.
        os.lseek(fd, 1 << 30, os.SEEK_SET)
        msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        os.lseek(fd, 0, os.SEEK_SET)

else:
    import fcntl

    def _lock(fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)

"""A running worker (`documents.worker`) as its parent holds it: asked, waited for, ended.

One thread a worker starts it, writes to it and reads from it, so that nothing the worker does or
leaves undone (reading nothing, writing half a reply, dying in between) blocks the caller beyond
the caller's own deadline. That thread stays as long as the worker lives: on Linux the kernel ends
a worker with the thread that started it, not with the process.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from dataclasses import asdict
from io import FileIO
from pathlib import Path
from typing import IO, Any

from ragx.documents.formats.base import ExtractLimits
from ragx.documents.wire import (
    Frame,
    WireError,
    max_reply_bytes,
    read_frame,
    write_frame,
)

__all__ = ["WorkerGone", "WorkerProcess", "WorkerSilent"]

_WORKER = Path(__file__).with_name("worker.py")
# What the worker's Python needs to start and to find the same packages. Nothing that may hold a
# key: what a document takes over must find none.
_PASSED_ON = (
    "APPDATA", "DYLD_LIBRARY_PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH",
    "PATH", "PYTHONDONTWRITEBYTECODE", "PYTHONHOME", "PYTHONNOUSERSITE", "PYTHONPYCACHEPREFIX",
    "PYTHONUSERBASE", "SYSTEMROOT", "TEMP", "TMP", "TMPDIR", "USERPROFILE", "WINDIR",
)  # fmt: skip
_TAIL_BYTES = 2048
# A machine under load starts a Python in seconds.
_START_S = 60.0
# What a worker gets to end by itself after its pipe has closed, which tells how it ended.
_ENDING_S = 1.0
_KILLED_S = 5.0
# Waiting in slices lets Ctrl-C through where a wait cannot be interrupted (Windows).
_SLICE_S = 0.5


class WorkerGone(Exception):
    """The worker has ended in place of an answer; the message says how, `tail` its last words."""

    def __init__(self, how: str, tail: str = "") -> None:
        super().__init__(how)
        self.tail = tail


class WorkerSilent(Exception):
    """No answer came in time."""


class WorkerProcess:
    """A worker that is ready to be asked.

    Raises:
        WorkerGone: it does not start.
        WorkerSilent: it does not get ready.
    """

    def __init__(self, limits: ExtractLimits) -> None:
        self._limits = limits
        self._process: subprocess.Popen[bytes] | None = None
        self._requests: queue.SimpleQueue[Frame | None] = queue.SimpleQueue()
        self._replies: queue.SimpleQueue[Frame | WorkerGone] = queue.SimpleQueue()
        self._tail = bytearray()
        self._ending = False
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="ragx-worker", daemon=True)
        self._thread.start()
        try:
            self._wait(_START_S)
        except BaseException:  # an interrupt, too: what was started must not stay
            self.end()
            raise

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid if self._process else 0

    @property
    def is_running(self) -> bool:
        """Whether it could be asked."""
        process = self._process
        return process is not None and self._thread.is_alive() and process.poll() is None

    def ask(self, header: dict[str, Any], body: bytes = b"") -> Frame:
        """Send a request and wait for the reply; after an exception the worker must be ended.

        Raises:
            WorkerGone: it has ended.
            WorkerSilent: the time for one document is over.
        """
        self._requests.put((header, body))
        return self._wait(self._limits.timeout_s)

    def end(self) -> None:
        """End the process, at once and with all that it started. Twice does nothing."""
        with self._lock:
            self._ending = True
            # The thread waits for the process last, and then its id may be another's.
            if self._process is not None and self._thread.is_alive():
                _kill(self._process)
        self._requests.put(None)
        self._thread.join(_KILLED_S)

    def _wait(self, timeout_s: float) -> Frame:
        deadline = time.monotonic() + timeout_s
        while True:
            left = deadline - time.monotonic()
            try:
                reply = self._replies.get(timeout=max(0.0, min(left, _SLICE_S)))
            except queue.Empty:
                if left <= 0:
                    raise WorkerSilent from None
                continue
            if isinstance(reply, WorkerGone):
                raise reply
            return reply

    def _run(self) -> None:
        try:
            with self._lock:
                if self._ending:
                    return
                process = self._process = _start(self._limits)
        except (OSError, subprocess.SubprocessError) as exc:
            self._replies.put(WorkerGone(f"cannot be started: {exc}"))
            return
        listener = threading.Thread(target=_keep_tail, args=(process.stderr, self._tail))
        listener.daemon = True
        listener.start()
        fault = self._serve(process)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_ENDING_S)
        ended_itself = process.returncode is not None
        _kill(process)
        process.wait()
        listener.join(_ENDING_S)
        how = fault or (_spoken(process.returncode) if ended_itself else "closed its pipe")
        self._replies.put(WorkerGone(how, self._tail.decode("utf-8", "replace")))

    def _serve(self, process: subprocess.Popen[bytes]) -> str:
        """Pass requests and replies on until the pipe closes; says what is wrong with a reply."""
        source, sink = process.stdout, process.stdin
        if not isinstance(source, FileIO) or not isinstance(sink, FileIO):
            return ""  # never: they have no buffers
        bound = max_reply_bytes(self._limits)
        # The worker's end of a pipe that closes is reported as its end, not as an error here.
        with contextlib.suppress(OSError), source, sink:
            try:
                while reply := read_frame(source, bound):
                    self._replies.put(reply)
                    request = self._requests.get()
                    if request is None:
                        break
                    write_frame(sink, *request)
            except WireError as exc:
                return "" if "cut off" in str(exc) else str(exc)
        return ""


def _start(limits: ExtractLimits) -> subprocess.Popen[bytes]:
    import json

    return subprocess.Popen(
        # Libraries' warnings would be all there is in the last words of a crash.
        [
            sys.executable, "-P", "-W", "ignore", str(_WORKER), str(os.getpid()),
            json.dumps(asdict(limits)),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        cwd=os.path.abspath(os.sep),
        env=_environment(),
        # Signals of the terminal reach the parent alone, and `_kill` all that the worker starts.
        start_new_session=True,
        creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
    )  # fmt: skip


def _environment() -> dict[str, str]:
    passed = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    # The worker stands in another directory.
    path = [os.path.abspath(part) for part in os.environ.get("PYTHONPATH", "").split(os.pathsep)
            if part]  # fmt: skip
    if path:
        passed["PYTHONPATH"] = os.pathsep.join(path)
    # With hashes of its own a worker would walk sets in another order than the one before.
    return passed | {"PYTHONUTF8": "1", "PYTHONHASHSEED": "0"}


def _keep_tail(pipe: IO[bytes] | None, tail: bytearray) -> None:
    if pipe is None:
        return
    with contextlib.suppress(OSError), pipe:
        while data := pipe.read(65536):
            tail += data
            del tail[:-_TAIL_BYTES]


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(OSError):
        if sys.platform == "win32":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)


def _spoken(returncode: int) -> str:
    """How a process has ended: "SIGSEGV" or "exit status 3"."""
    if returncode >= 0:
        return f"exit status {returncode}"
    try:
        return signal.Signals(-returncode).name
    except ValueError:
        return f"signal {-returncode}"

"""A child process that ends with this one, however this one ends.

`ReapedProcess` does not start the program itself. It starts this file as a watchdog (a Python of
its own, standard library alone), which starts the program and reads a pipe that only ragx writes
to. The kernel closes that pipe when ragx goes: by return, Ctrl-C or `kill -9`, also in the middle
of starting; the watchdog then ends the program with all that it started. Both live in sessions of
their own, so no signal of the terminal reaches them. On Linux the kernel also ends the program
should the watchdog be killed; elsewhere that one case leaves it.

The watchdog says on its standard output, a JSON document a line: `{"pid"}` or `{"error"}` first,
then `{"returncode", "output"}` with the end of what the program wrote.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from types import FrameType
from typing import IO, Any

__all__ = ["ReapedProcess", "main"]

# What a program gets to end in peace after SIGTERM: a model server has nothing to save, and
# somebody waits for the prompt of the shell.
_GRACE_S = 0.4
_STOP_S = 0.8
_OUTPUT_BYTES = 16384
_PR_SET_PDEATHSIG = 1


class ReapedProcess:
    """A running program that never outlives this process.

    Args:
        command: program and arguments.
    Raises:
        OSError: it cannot be started.
    """

    def __init__(self, command: Sequence[str]) -> None:
        # Isolated: this folder has modules named like those of the standard library.
        python = (sys.executable, "-I", "-S", __file__)
        self._watchdog = subprocess.Popen(
            [*python, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            # Unbuffered, or Python's end may wait for a buffer that the reading thread holds.
            bufsize=0,
            start_new_session=True,
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
        )
        self.pid: int | None = None
        self.returncode: int | None = None
        self.output = ""
        self.ended = threading.Event()
        self._error = ""
        self._told = threading.Event()
        threading.Thread(target=self._listen, name="ragx-child", daemon=True).start()
        try:
            self._told.wait()
        except BaseException:  # an interrupt, too: what was started must not stay
            self.stop()
            raise
        if self.pid is None:
            self.stop()
            raise OSError(self._error or "the watchdog process ended at once")

    def stop(self) -> None:
        """End the program, killing it if need be, which takes under a second.

        On a machine so busy that this takes longer it ends without being waited for. Twice does
        nothing.
        """
        if self._watchdog.stdin is not None:
            self._watchdog.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._watchdog.wait(timeout=_STOP_S)
            self.ended.wait(timeout=_GRACE_S)

    def _listen(self) -> None:
        pipe = self._watchdog.stdout
        if pipe is None:
            return
        pending = b""
        with pipe:
            while data := pipe.read(65536):
                *lines, pending = (pending + data).split(b"\n")
                for line in lines:
                    self._hear(json.loads(line))
        self._told.set()
        self.ended.set()

    def _hear(self, said: dict[str, Any]) -> None:
        if "returncode" in said:
            self.returncode = said["returncode"]
            self.output = said["output"]
            self.ended.set()
        else:
            self.pid = said.get("pid")
            self._error = said.get("error", "")
            self._told.set()


def main(command: Sequence[str]) -> None:
    """Be the watchdog: run a program until it ends or standard input does."""
    parent = os.getpid()
    try:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            bufsize=0,
            start_new_session=True,
            # Safe here: this process has no other thread yet.
            preexec_fn=_bound_to(parent) if sys.platform == "linux" else None,  # noqa: PLW1509
        )
    except (OSError, subprocess.SubprocessError) as exc:
        _say({"error": str(exc)})
        return
    for name in ("SIGTERM", "SIGHUP", "SIGINT"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), _on_signal(child))
    _say({"pid": child.pid})
    tail = bytearray()
    reader = threading.Thread(target=_keep_tail, args=(child.stdout, tail), daemon=True)
    reader.start()
    threading.Thread(target=_end_with_input, args=(child,), daemon=True).start()
    returncode = child.wait()
    # Of a script that starts the server as its child, the child may still be there.
    _end_group(child, at_once=True)
    reader.join(timeout=1.0)
    _say({"returncode": returncode, "output": tail.decode("utf-8", "replace")})
    # Without waiting for the thread that still reads standard input.
    os._exit(0)


def _bound_to(parent: int) -> Callable[[], None]:
    """Make what runs in the child before the program does: it shall not outlive the watchdog.

    The signal follows the thread that started the child, which here is the only one and stays.
    """
    import ctypes

    prctl = ctypes.CDLL(None).prctl

    def bind() -> None:
        prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)

    return bind


def _say(document: dict[str, Any]) -> None:
    with contextlib.suppress(OSError):
        os.write(1, json.dumps(document).encode() + b"\n")


def _keep_tail(pipe: IO[bytes] | None, tail: bytearray) -> None:
    while pipe is not None and (data := pipe.read(65536)):
        tail += data
        del tail[:-_OUTPUT_BYTES]


def _end_with_input(child: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(OSError):
        while os.read(0, 4096):
            pass
    _end(child)


def _on_signal(child: subprocess.Popen[bytes]) -> Callable[[int, FrameType | None], None]:
    def ended(_number: int, _frame: FrameType | None) -> None:
        # Not in the handler, which interrupts the wait for the same child.
        threading.Thread(target=_end, args=(child,), daemon=True).start()

    return ended


def _end(child: subprocess.Popen[bytes]) -> None:
    _end_group(child, at_once=False)
    try:
        child.wait(timeout=_GRACE_S)
    except subprocess.TimeoutExpired:
        _end_group(child, at_once=True)


def _end_group(child: subprocess.Popen[bytes], *, at_once: bool) -> None:
    """Signal the program and whatever it has started, which share a process group."""
    if sys.platform == "win32":
        if at_once:
            child.kill()
        else:
            child.terminate()
        return
    with contextlib.suppress(OSError):
        os.killpg(child.pid, signal.SIGKILL if at_once else signal.SIGTERM)


if __name__ == "__main__":
    main(sys.argv[1:])

"""The watchdog: a child that goes with its parent, whatever becomes of the parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ragx.providers.reaper import ReapedProcess

PATIENCE_S = 60.0
WAITS = "import threading; threading.Event().wait()"


def is_running(pid: int) -> bool:
    """Whether a process exists and has not ended; a zombie is only a line in a table."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    try:
        return not stat.is_file() or stat.read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def ends(pid: int) -> bool:
    deadline = time.monotonic() + PATIENCE_S
    while is_running(pid):
        if time.monotonic() > deadline:
            return False
        threading.Event().wait(0.02)
    return True


@contextmanager
def owner(*command: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A process that runs a reaped child; yields it and the child's id."""
    program = (
        "import sys, threading; from ragx.providers.reaper import ReapedProcess;"
        "child = ReapedProcess(sys.argv[1:]); print(child.pid, flush=True);"
        "sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            assert process.stdout is not None
            yield process, int(process.stdout.readline())
        finally:
            process.kill()


def python(program: str) -> tuple[str, ...]:
    return (sys.executable, "-I", "-c", program)


def test_a_program_that_ends_by_itself_leaves_its_status_and_last_words():
    child = ReapedProcess(python("import sys; print('one'); sys.exit('two')"))
    assert child.ended.wait(PATIENCE_S)
    assert child.returncode == 1
    assert sorted(child.output.split()) == ["one", "two"]
    child.stop()


def test_only_the_end_of_a_long_output_is_kept():
    child = ReapedProcess(python("print('a' * 10**6); print('last')"))
    assert child.ended.wait(PATIENCE_S)
    assert child.output.endswith("aaa\nlast\n")
    assert len(child.output) < 10**5
    child.stop()


def test_a_program_that_is_not_there_is_an_os_error():
    with pytest.raises(OSError, match="no-such-program"):
        ReapedProcess(["./no-such-program"])


def test_stop_ends_it_and_may_be_called_twice():
    child = ReapedProcess(python(WAITS))
    assert child.pid is not None
    assert is_running(child.pid)
    child.stop()
    assert not is_running(child.pid)
    assert child.returncode == -signal.SIGTERM
    child.stop()


def test_a_child_that_ignores_the_polite_signal_is_killed(tmp_path):
    ready = tmp_path / "ready"
    ignoring = f"import signal; signal.signal(15, signal.SIG_IGN); open({str(ready)!r}, 'w'); "
    child = ReapedProcess(python(ignoring + WAITS))
    while not ready.exists():
        threading.Event().wait(0.02)
    child.stop()
    assert child.ended.wait(PATIENCE_S)
    assert child.returncode == -signal.SIGKILL
    assert child.pid is not None
    assert ends(child.pid)


def test_what_a_script_has_started_goes_with_it():
    starts = (
        "import subprocess, sys;"
        f"p = subprocess.Popen([sys.executable, '-I', '-c', {WAITS!r}]);"
        "print(p.pid, flush=True); sys.exit(0)"
    )
    child = ReapedProcess(python(starts))
    assert child.ended.wait(PATIENCE_S)
    assert ends(int(child.output))
    child.stop()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_is_left_after_a_signal_to_the_parent(number):
    with owner(*python(WAITS)) as (process, pid):
        process.send_signal(number)
        assert ends(pid)


def test_nothing_is_left_after_the_parents_end_without_a_call():
    with owner(*python(WAITS)) as (process, pid):
        process.communicate()
        assert process.returncode == 0
        assert ends(pid)


def test_signals_of_the_terminal_do_not_reach_it(tmp_path):
    heard = tmp_path / "heard"
    listens = (
        "import signal; signal.signal(signal.SIGINT,"
        f" lambda *_: open({str(heard)!r}, 'w').close()); {WAITS}"
    )
    with owner(*python(listens)) as (process, pid):
        # As Ctrl-C does: to the whole group in the foreground.
        os.killpg(process.pid, signal.SIGINT)
        process.wait(PATIENCE_S)
        assert ends(pid)
    assert not heard.exists()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ties a child to its parent's end")
def test_nothing_is_left_after_the_watchdog_is_killed():
    child = ReapedProcess(python(WAITS))
    assert child.pid is not None
    watchdog = int(Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(watchdog, signal.SIGKILL)
    assert ends(child.pid)
    assert child.ended.wait(PATIENCE_S)
    child.stop()


def test_a_polite_signal_to_the_watchdog_ends_both():
    child = ReapedProcess(python(WAITS))
    assert child.pid is not None
    watchdog = int(Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(watchdog, signal.SIGTERM)
    assert child.ended.wait(PATIENCE_S)
    assert child.returncode == -signal.SIGTERM
    child.stop()

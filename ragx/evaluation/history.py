"""Commits of the repository that holds a corpus, read from git as if it meant harm.

A repository's own configuration can name programs: pagers, hooks, monitors, diff and signature
tools, remote helpers. Only `git log` with names of files is asked for, everything that would start
a program is turned off, and time and output are bounded. Git's own refusal of a repository that
belongs to somebody else stands.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Commit", "History", "read_history"]

MAX_COMMITS = 5000
MAX_OUTPUT_BYTES = 64 << 20
TIMEOUT_S = 30.0
_MESSAGE_BYTES = 2000

_TOO_SLOW = "git took too long"
_TOO_LONG = "the history is too long"

# No path within a tree can be this: git has no empty names.
_MARK = "//"

_SAFE_SETTINGS = (
    "core.fsmonitor=false",
    f"core.hooksPath={os.devnull}",
    "core.pager=cat",
    "diff.external=",
    "log.showSignature=false",
    "log.showRoot=true",
    "log.mailmap=false",
    "submodule.recurse=false",
)
_LOG = (
    "log",
    "--no-merges",
    "--no-ext-diff",
    "--no-textconv",
    "--no-renames",
    "--no-color",
    "--no-notes",
    "--no-decorate",
    "--no-show-signature",
    "--no-follow",
    f"-O{os.devnull}",
    "--encoding=UTF-8",
    "--name-only",
    "--relative",
    "-z",
    "--format=%x00//%x00%H%x00%s%x00",
)


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit: its id, its subject, and the files it changed, relative to the corpus."""

    number: str
    subject: str
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class History:
    """Commits, the newest first. `note` says why there are none, or not all."""

    commits: tuple[Commit, ...] = ()
    note: str = ""


def read_history(
    root: Path,
    *,
    max_commits: int = MAX_COMMITS,
    timeout_s: float = TIMEOUT_S,
    max_output_bytes: int = MAX_OUTPUT_BYTES,
    env: Mapping[str, str] | None = None,
) -> History:
    """Read the newest commits, merges left out, that touched something below `root`.

    Args:
        root: existing directory, at or below the top of a working tree.
        env: variables of the process; None takes this one's. Those of git are dropped.
    Returns:
        No commits and a note where there is no git, no repository or an error.
    """
    variables = dict(os.environ if env is None else env)
    program = shutil.which("git", path=variables.get("PATH"))
    # A relative answer comes from a search path with ".": that could be the corpus's own file.
    if program is None or not os.path.isabs(program):
        return History(note="no commits: git is not installed")
    command = [program, "--no-pager", "--no-replace-objects", "--literal-pathspecs"]
    for setting in _SAFE_SETTINGS:
        command += ["-c", setting]
    command += [*_LOG, f"--max-count={max_commits}", "--", "."]
    output, complaint = _run(command, root, _environment(variables), timeout_s, max_output_bytes)
    if complaint is None:
        return History(_parse(output))
    if "not a git repository" in complaint:
        return History(note="no commits: the corpus is not in a git repository")
    if "does not have any commits" in complaint or "bad default revision" in complaint:
        return History(note="no commits: the repository has none yet")
    if complaint in {_TOO_SLOW, _TOO_LONG}:
        # What came by then holds whole records up to its last mark.
        known = _parse(output.rpartition(b"\0//\0")[0])
        if known:
            return History(known, f"older commits left out: {complaint}")
    return History(note=f"no commits: {complaint}")


def _environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Variables without those that redirect git, and with those that hold it back."""
    kept = {name: value for name, value in variables.items() if not name.startswith("GIT_")}
    return kept | {
        "LC_ALL": "C",
        "GIT_ALLOW_PROTOCOL": "none",  # a partial clone must not fetch what it lacks
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_PROTOCOL_FROM_USER": "0",
        "GIT_TERMINAL_PROMPT": "0",
    }


def _run(
    command: list[str], root: Path, env: Mapping[str, str], timeout_s: float, max_bytes: int
) -> tuple[bytes, str | None]:
    """Output up to the limit, and what went wrong; None if nothing did."""
    with tempfile.TemporaryFile() as errors:
        try:
            process = subprocess.Popen(
                command,
                cwd=root,
                env=dict(env),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )
        except OSError as fault:
            return b"", f"git cannot be run: {fault.strerror or fault}"
        late = threading.Event()

        def stop() -> None:
            late.set()
            _kill(process)

        timer = threading.Timer(timeout_s, stop)
        timer.daemon = True
        timer.start()
        try:
            assert process.stdout is not None
            output = process.stdout.read(max_bytes + 1)
            over = len(output) > max_bytes
            if over:
                _kill(process)
            process.wait()
        finally:
            timer.cancel()
            _kill(process)
            if process.stdout is not None:
                process.stdout.close()
            process.wait()
        if late.is_set():
            return output, _TOO_SLOW
        if over:
            return output, _TOO_LONG
        if process.returncode == 0:
            return output, None
        errors.seek(0)
        text = errors.read(_MESSAGE_BYTES).decode("utf-8", "replace").strip()
        first = text.splitlines()[0] if text else f"exit code {process.returncode}"
        return b"", f"git: {first.removeprefix('fatal: ')}"


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a process that is still running, with all it has started."""
    if process.poll() is not None:
        return
    with contextlib.suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()


def _parse(output: bytes) -> tuple[Commit, ...]:
    """Records of `_LOG`: mark, id, subject, then names until the next mark."""
    fields = [field.removeprefix(b"\n") for field in output.split(b"\0")]
    mark = _MARK.encode()
    commits = []
    at = 0
    while at < len(fields):
        if fields[at] != mark or at + 2 >= len(fields):
            at += 1
            continue
        number = fields[at + 1].decode("ascii", "replace")
        subject = fields[at + 2].decode("utf-8", "replace")
        at += 3
        paths = []
        while at < len(fields) and fields[at] != mark:
            if fields[at]:
                paths.append(os.fsdecode(fields[at]))
            at += 1
        commits.append(Commit(number, subject, tuple(paths)))
    return tuple(commits)

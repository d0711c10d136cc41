"""A run of the real program from outside: its output, time, memory, and what it leaves behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

RAGX = (sys.executable, "-m", "ragx")
_STEP_S = 0.05
_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


class TrialError(Exception):
    """The program could not do its work at all; the message is its own."""


@dataclass(slots=True)
class Run:
    """How a process and all that it started went.

    Args:
        peak_mb: most resident memory of the whole tree at one time, shared pages counted for
            each process; 0 where the system has no /proc.
        left: ids of processes of the tree that were there a second after it had ended.
    """

    code: int
    out: str
    err: str
    seconds: float
    peak_mb: float = 0.0
    left: list[int] = field(default_factory=list)

    def document(self) -> dict[str, Any]:
        """What it printed, as JSON.

        Raises:
            TrialError: it is an error of the whole run, or no JSON.
        """
        try:
            found: dict[str, Any] = json.loads(self.out)
        except ValueError as fault:
            raise TrialError(f"exit {self.code}, no JSON: {self.err[-300:]}") from fault
        if found.get("error", {}).get("code", "no_such_file") != "no_such_file":
            raise TrialError(f"exit {self.code}: {found['error']['message']}")
        return found


def ragx(*arguments: str, root: Path, timeout_s: float = 3600.0) -> Run:
    """Run ragx on a directory."""
    command = [*RAGX, *arguments, "--root", str(root)]
    started = time.perf_counter()
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    watch = _Watch(process.pid)
    watch.start()
    try:
        out, err = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
    seconds = time.perf_counter() - started
    watch.stop()
    return Run(process.returncode, out, err, seconds, watch.peak / 1e6, watch.left())


class _Watch(threading.Thread):
    """Samples the memory of a process and its descendants, and remembers who they were."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.peak = 0
        self._root = pid
        self._seen: dict[int, str] = {}
        self._ended = threading.Event()

    def run(self) -> None:
        while not self._ended.wait(_STEP_S):
            self.peak = max(self.peak, self._now())

    def stop(self) -> None:
        """Sample no more."""
        self._ended.set()
        self.join()

    def left(self) -> list[int]:
        """Those of the tree that are still running after a second's grace."""
        end = time.monotonic() + 1
        while time.monotonic() < end and self._alive():
            time.sleep(_STEP_S)
        return self._alive()

    def _alive(self) -> list[int]:
        now = {pid: started for pid, _, started in _processes()}
        return [pid for pid, started in self._seen.items() if now.get(pid) == started]

    def _now(self) -> int:
        processes = list(_processes())
        tree = {self._root}
        grown = True
        while grown:
            more = {pid for pid, parent, _ in processes if parent in tree} - tree
            tree |= more
            grown = bool(more)
        for pid, _, started in processes:
            if pid in tree and pid != self._root:
                self._seen[pid] = started
        return sum(_resident(pid) for pid in tree)


def _processes() -> list[tuple[int, int, str]]:
    """Id, parent's id and starting time of every process that is not a zombie."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text("utf-8", "replace").rpartition(")")[2].split()
        except OSError:
            continue
        if fields and fields[0] != "Z":
            found.append((int(path.parent.name), int(fields[1]), fields[19]))
    return found


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1]) * _PAGE
    except (OSError, IndexError):
        return 0


def settle(root: Path, paths: Sequence[str], *, words: bool) -> None:
    """Give a directory settings under which these files count and no others.

    Args:
        paths: of files, or of folders with a slash at the end.
        words: whether to do without vectors.
    """
    globs = ", ".join(
        json.dumps(f"/{path}**" if path.endswith("/") else f"/{path}") for path in paths
    )
    # Answers are looked for in whole chunks.
    settings = f"[corpus]\ninclude = [{globs}]\n[query]\nmax_chunk_chars = 100000\n"
    if words:
        settings += '[embeddings]\nprovider = "none"\n'
    (root / "ragx.toml").write_text(settings, "utf-8")


def outcomes(root: Path, files: Sequence[str]) -> dict[str, tuple[str, str, tuple[int, ...]]]:
    """Of each file its status, its note and the ids of its chunks, as `ragx inspect` gives them."""
    found: dict[str, tuple[str, str, tuple[int, ...]]] = {}
    for name in files:
        run = ragx("inspect", "file", name, "--json", root=root)
        document: Mapping[str, Any] = run.document()
        if "error" in document:
            found[name] = ("unknown", document["error"]["code"], ())
        else:
            ids = tuple(chunk["id"] for chunk in document["chunks"])
            found[name] = (document["status"], document["note"], ids)
    return found

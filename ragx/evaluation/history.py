"""Commits of the repository that holds a corpus; `indexing.git` says how it is asked."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ragx.indexing.git import LOG_OPTIONS, TOO_LONG, TOO_SLOW, Git

__all__ = ["Commit", "History", "read_history"]

MAX_COMMITS = 5000
MAX_OUTPUT_BYTES = 64 << 20
TIMEOUT_S = 30.0

# No path within a tree can be this: git has no empty names.
_MARK = "//"
_FORMAT = "--format=%x00//%x00%H%x00%s%x00"


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
    git = Git(root, timeout_s=timeout_s, max_output_bytes=max_output_bytes, env=env)
    output, complaint = b"", git.complaint()
    if complaint is None:
        output, complaint = git.ask(
            "log", *LOG_OPTIONS, _FORMAT, f"--max-count={max_commits}", "--", "."
        )
    if complaint is None:
        return History(_parse(output))
    if "not a git repository" in complaint:
        return History(note="no commits: the corpus is not in a git repository")
    if "does not have any commits" in complaint or "bad default revision" in complaint:
        return History(note="no commits: the repository has none yet")
    if complaint in {TOO_SLOW, TOO_LONG}:
        # What came by then holds whole records up to its last mark.
        known = _parse(output.rpartition(b"\0//\0")[0])
        if known:
            return History(known, f"older commits left out: {complaint}")
    return History(note=f"no commits: {complaint}")


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

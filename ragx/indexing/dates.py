"""The day of the last commit that touched each file, for many files in one pass over the history.

The log is read from the newest commit on, names only, and left as soon as each file that git knows
has its day: after a look at most of the times, and never more than once over the whole.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ragx.indexing.git import LOG_OPTIONS, Git
from ragx.indexing.gitignore import enclosing_repository

__all__ = ["GitDates", "read_git_dates"]

TIMEOUT_S = 120.0
MAX_OUTPUT_BYTES = 1 << 36  # nothing of it is kept
# So many files are named to git, which then looks at nothing else; a command line has its limits.
_MOST_NAMED = 100

# No path within a tree can be this: git has no empty names.
_MARK = b"//"
_DAY = re.compile(rb"\d{4}-\d\d-\d\d\Z")


@dataclass(frozen=True, slots=True)
class GitDates:
    """Days by path, YYYY-MM-DD, of the files that have one. `note` says why others may lack it."""

    days: Mapping[str, str] = field(default_factory=dict)
    note: str = ""


def read_git_dates(
    root: Path,
    paths: Collection[str],
    *,
    timeout_s: float = TIMEOUT_S,
    env: Mapping[str, str] | None = None,
) -> GitDates:
    """The author's day, in the author's time zone, of the last commit that touched each file.

    Merges do not count: what they bring was committed before.

    Args:
        paths: relative to `root`; those that git does not track get no day.
        env: variables of the process; None takes this one's. Those of git are dropped.
    Returns:
        No days where there is no git or no repository, which is no reason for a note.
    """
    if not paths or enclosing_repository(root.absolute()) is None:
        return GitDates()
    git = Git(root, timeout_s=timeout_s, max_output_bytes=MAX_OUTPUT_BYTES, env=env)
    if git.complaint() is not None:
        return GitDates()
    named = sorted(paths) if len(paths) <= _MOST_NAMED else ["."]
    tracked, complaint = git.ask("ls-files", "-z", "--", *named)
    if complaint is not None:
        return GitDates(note=f"no dates from git: {complaint}")
    names = {os.fsdecode(name) for name in tracked.split(b"\0")}
    log = _Log(names & set(paths))
    if log.missing:
        _, complaint = git.ask(
            "log", "--date=short", *LOG_OPTIONS, "--format=%x00//%x00%ad%x00",
            "--", *(sorted(log.missing) if len(log.missing) <= _MOST_NAMED else ["."]),
            take=log.take,
        )  # fmt: skip
    # A repository without a commit yet is nothing to complain of.
    if complaint is None or "does not have any commits" in complaint:
        return GitDates(log.days)
    return GitDates(log.days, f"not all dates from git: {complaint}")


class _Log:
    """Reads the log piece by piece until every file has its day."""

    def __init__(self, missing: set[str]) -> None:
        self.missing = missing
        self.days: dict[str, str] = {}
        self._day = ""
        self._after_mark = False
        self._rest = b""

    def take(self, piece: bytes) -> bool:
        """Read on; False if there is nothing left to look for."""
        *fields, self._rest = (self._rest + piece).split(b"\0")
        for name in fields:
            name = name.removeprefix(b"\n")
            if name == _MARK:
                self._after_mark = True
            elif self._after_mark:
                self._after_mark = False
                self._day = name.decode() if _DAY.match(name) else ""
            elif name and self._day:
                path = os.fsdecode(name)
                if path in self.missing:
                    self.missing.discard(path)
                    self.days[path] = self._day
        return bool(self.missing)

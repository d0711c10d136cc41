"""Decide what an incremental run must do with every path; pure, it reads no clock and no disk.

Every decision names its reason, and the racy-timestamp rule keeps same-second edits from being
missed: a file changed within two seconds of the last scan is read again, whatever its stat says.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ragx.indexing.scan import SeenFile

__all__ = ["RACY_NS", "Action", "Decision", "Plan", "StoredFile", "plan"]

Action = Literal["add", "check", "delete", "keep", "force"]

# Coarsest timestamps in use (FAT) step by two seconds.
RACY_NS = 2_000_000_000


@dataclass(frozen=True, slots=True)
class StoredFile:
    """What the index remembers of a file.

    The stat fields and `content_hash` are of the bytes that were read; `scanned_ns` is the wall
    clock just before that scan; `status` is "ok", "failed", "unembedded" or "skipped:<reason>".
    `extractor` is what read it, `extractor_now` what would: both "" for text.
    """

    path: str
    content_hash: str
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    scanned_ns: int
    status: str
    extractor: str = ""
    extractor_now: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """One path's lot.

    `add` is new; `check` must be read again, its hash then tells whether it changed (a file that
    failed last time counts as changed); `force` must be read and indexed whatever its hash;
    `delete` leaves the index; `keep` needs nothing.
    """

    path: str
    action: Action
    reason: str


@dataclass(frozen=True, slots=True)
class Plan:
    """Decisions by path, each path once; `unmatched` are names that no path answers to."""

    decisions: tuple[Decision, ...]
    unmatched: tuple[str, ...] = ()

    def paths(self, *actions: Action) -> tuple[str, ...]:
        """Paths with one of the actions, in order."""
        return tuple(decision.path for decision in self.decisions if decision.action in actions)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return all(decision.action == "keep" for decision in self.decisions)


def plan(
    stored: Mapping[str, StoredFile],
    seen: Sequence[SeenFile],
    *,
    only: Collection[str] | None = None,
    full: bool = False,
    force: Collection[str] = (),
    unreadable: Collection[str] = (),
) -> Plan:
    """Sort every stored or seen path into what must be done with it.

    Args:
        stored: what the index holds, by path.
        seen: what the scan found.
        only: paths, or directories ending in "/" ("./" is all), to decide on; others get no
            decision. None decides on all.
        full: index every seen file again.
        force: paths or directories to index again; they count as named.
        unreadable: paths or directories that the scan could not look into: what is stored of
            them is kept, not taken for deleted.
    """
    current = {file.path: file for file in seen}
    forced = _Names(force)
    named = None if only is None else _Names((*only, *force))
    dark = _Names(unreadable)
    decisions = []
    for path in sorted(stored.keys() | current.keys()):
        is_forced = forced.match(path)
        if named is not None and not named.match(path):
            continue
        old, new = stored.get(path), current.get(path)
        if new is None:
            if dark.match(path):
                decisions.append(Decision(path, "keep", "could not be read this time"))
            else:
                decisions.append(Decision(path, "delete", "no longer on disk or excluded"))
        elif old is None:
            decisions.append(Decision(path, "add", "new"))
        elif is_forced:
            decisions.append(Decision(path, "force", "forced"))
        elif full:
            decisions.append(Decision(path, "force", "full run"))
        else:
            reason = _reason_to_read(old, new)
            decisions.append(Decision(path, "check" if reason else "keep", reason or "unchanged"))
    return Plan(tuple(decisions), tuple((named or forced).unmatched()))


def _reason_to_read(old: StoredFile, new: SeenFile) -> str:
    """Why a stored file must be read again; empty if its stat vouches for it."""
    if old.status in ("failed", "unembedded"):
        return "failed last time"
    if old.extractor != old.extractor_now:
        return "another extractor"
    differing = [
        name
        for name, before, now in (
            ("size", old.size, new.size),
            ("mtime", old.mtime_ns, new.mtime_ns),
            ("ctime", old.ctime_ns, new.ctime_ns),
            ("inode", old.inode, new.inode),
        )
        if before != now
    ]
    if differing:
        return f"{', '.join(differing)} changed"
    if max(new.mtime_ns, new.ctime_ns) >= old.scanned_ns - RACY_NS:
        return "touched within 2 s of the last scan"
    return ""


class _Names:
    """Named paths; one that is a directory, with or without its slash, stands for all below."""

    def __init__(self, names: Iterable[str]) -> None:
        self._given = dict.fromkeys(names)
        self._bare = {name.rstrip("/"): name for name in self._given}
        self._hit: set[str] = set()

    def match(self, path: str) -> bool:
        if not self._bare:
            return False
        found = [bare for bare in (".", *_prefixes(path)) if bare in self._bare]
        self._hit.update(found)
        return bool(found)

    def unmatched(self) -> list[str]:
        return sorted(name for bare, name in self._bare.items() if bare not in self._hit)


def _prefixes(path: str) -> list[str]:
    """The path and every directory above it."""
    prefixes = [path]
    while "/" in path:
        path = path.rpartition("/")[0]
        prefixes.append(path)
    return prefixes

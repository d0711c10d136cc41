"""Keep something in step with a directory: look, run, wait for a hint, look again.

What the operating system tells of changes is a hint to look, no more: it may be late, doubled, lost
or about files that do not count. Each look is a scan, as a run makes it; a run follows if the scan
differs from the one before the last run. So changes during a run lead to another, those of ignored
files to none, and where hints are not to be had, looking now and then serves as well.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path, PurePath

from ragx.errors import IndexBusy, ProviderUnavailable, RagxError
from ragx.indexing.plan import RACY_NS
from ragx.indexing.scan import ScanOptions, SeenFile, scan
from ragx.store.connect import DATABASE_NAME, index_directory

__all__ = ["Seen", "WatchTimes", "look", "watch"]

_SETTINGS_NAME = "ragx.toml"
_INDEX_NAME = ".ragx"
# Never part of a corpus, and busy.
_NOT_OURS = frozenset({".git", "node_modules", "__pycache__"})
# How often in a row hints may be asked for just as a directory goes.
_MOST_TRIES = 10


@dataclass(frozen=True, slots=True)
class WatchTimes:
    """How long to wait, in seconds.

    Args:
        quiet: without a further change before a look; `longest` is waited at most in a burst.
        unasked: between looks that no hint asks for.
        polled: between looks where there are no hints; `polled_share` bounds the time they take.
        retry, longest_retry: before a failed run is tried again, and the most it doubles to.
        busy: the most of it while another process indexes.
    """

    quiet: float = 0.25
    longest: float = 3.0
    unasked: float = 60.0
    polled: float = 2.0
    polled_share: float = 0.05
    retry: float = 2.0
    longest_retry: float = 300.0
    busy: float = 5.0


@dataclass(frozen=True, slots=True)
class Seen:
    """What one look found: equal looks need no run."""

    files: tuple[SeenFile, ...]
    settings: tuple[int, int] | None
    has_index: bool

    def is_young(self, at_ns: int) -> bool:
        """Whether a file changed so close to a time that a further change may not show."""
        return any(max(file.mtime_ns, file.ctime_ns) >= at_ns - RACY_NS for file in self.files)


def look(root: Path, options: ScanOptions) -> Seen:
    """Scan a corpus.

    Raises:
        CorpusError: it cannot be listed, or holds too many files.
    """
    return Seen(
        scan(root, options).files,
        _stamp(root / _SETTINGS_NAME),
        (index_directory(root) / DATABASE_NAME).exists(),
    )


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def _place(root: Path) -> tuple[int, int] | None:
    """Which directory it is, whatever its name; None if there is none."""
    try:
        status = root.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def watch(
    root: Path,
    see: Callable[[], Seen],
    run: Callable[[], bool],
    *,
    failed: Callable[[RagxError], None],
    tell: Callable[[str], None],
    hints: bool = True,
    times: WatchTimes = WatchTimes(),
) -> None:
    """Run at once, and again whenever what is seen changes; ends only by an exception.

    Args:
        see: looks; see `look`.
        run: does the work; False asks for another try later, though it is done.
        failed: told of a run, or look, that is tried again later.
        tell: told, once, if there are no hints, and why.
        hints: whether to ask the operating system for hints.
    Raises:
        RagxError: the first run failed in a way that waiting does not mend.
        KeyboardInterrupt: the user ended it.
    """
    source = _Hints(root, times, tell, enabled=hints)
    waits = source.waits()
    retries = _Retries(times)
    last: Seen | None = None
    hinted, again, looked_ns = False, True, 0
    is_first = True
    while True:
        if hinted or again or retries.are_due or source.is_time:
            again = False
            try:
                before_ns = time.time_ns()
                started = time.monotonic()
                try:
                    seen = see()
                finally:
                    source.took(time.monotonic() - started)
                changed = seen != last or (hinted and seen.is_young(looked_ns))
                if changed or retries.are_due:
                    last, looked_ns = seen, before_ns
                    if run():
                        retries.clear()
                    else:
                        retries.add()
                    is_first = False
                    last = Seen(seen.files, seen.settings, True)
                    again = True  # what has changed meanwhile needs no hint
            except RagxError as fault:
                if is_first and not isinstance(fault, (IndexBusy, ProviderUnavailable)):
                    raise
                failed(fault)
                retries.add(busy=isinstance(fault, IndexBusy))
        hinted = not again and next(waits)


class _Retries:
    """When to try again: later each time."""

    def __init__(self, times: WatchTimes) -> None:
        self._times = times
        self._delay = 0.0
        self._at = 0.0

    @property
    def are_due(self) -> bool:
        return self._delay > 0 and time.monotonic() >= self._at

    def clear(self) -> None:
        self._delay = 0.0

    def add(self, *, busy: bool = False) -> None:
        most = self._times.busy if busy else self._times.longest_retry
        self._delay = min(most, self._delay * 2 or self._times.retry)
        self._at = time.monotonic() + self._delay


class _Hints:
    """Waits for the operating system's word, or where there is none, for a while."""

    def __init__(
        self, root: Path, times: WatchTimes, tell: Callable[[str], None], *, enabled: bool
    ) -> None:
        self._given = root
        self._root = ""  # hints name real paths
        self._times = times
        self._tell = tell
        self._enabled = enabled
        self._looked = time.monotonic()
        self._pause = times.unasked

    @property
    def is_time(self) -> bool:
        """Whether the last look is so long ago that it is time for another."""
        return time.monotonic() - self._looked >= self._pause

    def took(self, seconds: float) -> None:
        """A look has ended that took so long."""
        self._looked = time.monotonic()
        shortest = self._times.polled if not self._enabled else self._times.unasked
        self._pause = max(shortest, seconds / self._times.polled_share)

    def waits(self) -> Iterator[bool]:
        """Each step waits a little, and gives whether something may have changed."""
        if self._enabled:
            yield from self._hinted()
        self._enabled = False
        self._pause = self._times.polled
        while True:
            self._nap()
            yield False

    def _nap(self) -> None:
        time.sleep(min(0.5, self._times.polled))

    def _hinted(self) -> Iterator[bool]:
        """As `waits`, for as long as there are hints; ends where there are none."""
        n_tries, was_there = 0, True
        while True:
            place = _place(self._given)
            if place is None:  # there are no hints of it, and none that it comes back
                self._nap()
                yield was_there
                was_there = False
                continue
            was_there = True
            try:
                for is_hint in self._hints_of(place):
                    n_tries = 0
                    yield is_hint
            except ImportError as fault:
                return self._without(f"{fault.name} is missing")
            except (OSError, RuntimeError) as fault:  # its own class is a RuntimeError
                n_tries += 1
                if not isinstance(fault, FileNotFoundError) or n_tries == _MOST_TRIES:
                    return self._without(str(fault) or type(fault).__name__)
                self._nap()  # a directory went before its turn: those after it give no hints
                yield False

    def _hints_of(self, place: tuple[int, int]) -> Iterator[bool]:
        """Hints of one directory; ends when it may be another, or gone."""
        from watchfiles import Change
        from watchfiles import watch as wait_for_changes

        self._root = os.path.realpath(self._given)
        changes = wait_for_changes(
            self._root,
            # Chosen here: a filter of its own would keep on waiting, whatever else is due.
            watch_filter=None,
            step=round(1000 * self._times.quiet),
            debounce=round(1000 * self._times.longest),
            rust_timeout=round(1000 * min(1.0, self._times.retry)),
            yield_on_timeout=True,
            raise_interrupt=True,
            # Else it stops at the first directory it may not read, or finds no root at all, and
            # says nothing of those that it left out.
            ignore_permission_denied=False,
        )
        is_new = True  # what changed before the first wait has left no hint
        with closing(changes):
            for batch in changes:
                yield is_new or any(self._counts(path) for _, path in batch)
                is_new = False
                # Moved away and back, it has no hints of directories made in between.
                if (Change.deleted, self._root) in batch or _place(self._given) != place:
                    return

    def _without(self, why: str) -> None:
        self._tell(f"no word of changes from the system ({why}): looking for them now and then")

    def _counts(self, path: str) -> bool:
        """Whether a change may matter; the index's own files would be an endless loop."""
        try:
            parts = PurePath(path).relative_to(self._root).parts
        except ValueError:
            return True
        if _INDEX_NAME in parts:
            # That the whole index has gone matters.
            return parts[-1] == _INDEX_NAME or (
                parts[-1] == DATABASE_NAME and not os.path.lexists(path)
            )
        return not _NOT_OURS.intersection(parts)

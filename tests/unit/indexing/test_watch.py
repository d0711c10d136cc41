"""Real files that change while something follows them; nothing here waits for a fixed time."""

from __future__ import annotations

import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import watchfiles

from ragx.errors import (
    ConfigError,
    CorpusError,
    IndexBusy,
    ProviderUnavailable,
    RagxError,
    StoreError,
)
from ragx.indexing.scan import ScanOptions
from ragx.indexing.watch import Seen, WatchTimes, look, watch

SOON_S = 120  # far more than any of this takes
# Looks that no hint asks for come too late: where a hint is lost, a test fails.
TIMES = WatchTimes(
    quiet=0.05,
    longest=1.0,
    unasked=10 * SOON_S,
    polled=0.05,
    polled_share=1.0,
    retry=0.05,
    busy=0.1,
)


class End(BaseException):
    """Ends a watch, as an interrupt does."""


class Watched:
    """A directory that a thread watches; `runs` holds the files that each run found."""

    def __init__(self, root: Path, *, hints: bool) -> None:
        self.root = root
        self.hints = hints
        self.changed = threading.Condition()
        self.runs: list[dict[str, int]] = []
        self.failures: list[RagxError] = []
        self.told: list[str] = []
        self.outcomes: list[bool | RagxError] = []
        self.during: Callable[[], None] = lambda: None
        self.raised: BaseException | None = None
        self.ended = False
        self.n_hinted = 0
        self._files: dict[str, int] = {}
        # One that is not told to look again must not keep the tests from ending.
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def start(self) -> Watched:
        self._thread.start()
        return self

    def end(self) -> None:
        self.ended = True
        if self._thread.is_alive():
            self.root.mkdir(exist_ok=True)
            (self.root / "end.md").write_text("end")
            self._thread.join(SOON_S)
        assert not self._thread.is_alive(), "no look at a file that came last"

    def put(self, path: str, text: str) -> None:
        """A file that comes whole: no look finds it empty, which would be one run more."""
        beside = self.root.parent / "beside"
        beside.write_text(text)
        beside.replace(self.root / path)

    def until(self, holds: Callable[[], object]) -> None:
        with self.changed:
            assert self.changed.wait_for(holds, SOON_S), (self.runs, self.told, self.failures)

    def until_found(self, *paths: str) -> None:
        self.until(lambda: self.runs and set(self.runs[-1]) == set(paths))

    def until_hinted(self, times: int) -> None:
        """Hints were asked for so often, and the look that follows has been: what changes from
        here on is found by a hint, or not at all."""
        if self.hints:
            self.until(lambda: self.n_hinted >= times)

    def ask(self, *args: Any, **options: Any) -> Iterator[set[Any]]:
        """Asks for hints, and counts."""
        changes = watchfiles.main.watch(*args, **options)
        yield next(changes)
        with self.changed:
            self.n_hinted += 1
            self.changed.notify_all()
        yield from changes

    def _watch(self) -> None:
        try:
            watch(
                self.root,
                self._see,
                self._run,
                failed=self._failed,
                tell=self._tell,
                hints=self.hints,
                times=TIMES,
            )
        except End:
            pass
        except RagxError as fault:
            self.raised = fault
        with self.changed:
            self.changed.notify_all()

    def _see(self) -> Seen:
        if self.ended:
            raise End
        seen = look(self.root, ScanOptions())
        self._files = {file.path: file.size for file in seen.files}
        # Files that changed just now are looked at once more; here a run is counted.
        aged = (replace(file, mtime_ns=file.mtime_ns - 10**11, ctime_ns=0) for file in seen.files)
        return replace(seen, files=tuple(aged))

    def _run(self) -> bool:
        outcome = self.outcomes.pop(0) if self.outcomes else True
        if isinstance(outcome, RagxError):
            raise outcome
        found = dict(self._files)
        self.during()
        try:
            (self.root / ".ragx").mkdir(exist_ok=True)
            (self.root / ".ragx" / "index.db").write_text(str(len(self.runs)))
        except OSError as fault:  # the root went between a look and its run
            raise CorpusError(str(fault)) from fault
        with self.changed:
            self.runs.append(found)
            self.changed.notify_all()
        return outcome

    def _failed(self, fault: RagxError) -> None:
        with self.changed:
            self.failures.append(fault)
            self.changed.notify_all()

    def _tell(self, line: str) -> None:
        with self.changed:
            self.told.append(line)
            self.changed.notify_all()


@pytest.fixture(params=[True, False], ids=["hints", "polled"])
def watched(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Watched]:
    root = tmp_path / "corpus"
    (root / "docs").mkdir(parents=True)
    (root / "docs" / "a.md").write_text("a")
    watched = Watched(root, hints=request.param)
    monkeypatch.setattr(watchfiles, "watch", watched.ask)
    yield watched
    watched.end()


def test_files_that_come_change_move_and_go(watched: Watched) -> None:
    root = watched.start().root
    watched.until_found("docs/a.md")
    (root / "docs" / "b.md").write_text("b")
    watched.until_found("docs/a.md", "docs/b.md")
    (root / "docs" / "b.md").write_text("longer")
    watched.until(lambda: watched.runs[-1].get("docs/b.md") == 6)
    (root / "docs").rename(root / "pages")
    watched.until_found("pages/a.md", "pages/b.md")
    (root / "pages" / "deep" / "er").mkdir(parents=True)
    (root / "pages" / "deep" / "er" / "c.md").write_text("c")
    watched.until_found("pages/a.md", "pages/b.md", "pages/deep/er/c.md")
    shutil.rmtree(root / "pages" / "deep")
    os.replace(root / "pages" / "a.md", root / "pages" / "b.md")
    watched.until_found("pages/b.md")


def test_a_burst_is_few_runs(watched: Watched) -> None:
    root = watched.start().root
    watched.until_found("docs/a.md")
    names = [f"docs/n{at}.md" for at in range(500)]
    for name in names:
        (root / name).write_text(name)
    watched.until_found("docs/a.md", *names)
    assert len(watched.runs) < len(names) / 2


def test_what_changes_during_a_run_leads_to_another(watched: Watched) -> None:
    def change() -> None:
        watched.during = lambda: None
        (watched.root / "docs" / "late.md").write_text("late")

    watched.during = change
    watched.start()
    watched.until_found("docs/a.md", "docs/late.md")
    assert [len(found) for found in watched.runs] == [1, 2]


def test_what_does_not_count_leads_to_no_run(watched: Watched) -> None:
    root = watched.root
    (root / ".gitignore").write_text("built/\n")
    for name in ("built", "node_modules", ".git", ".ragx"):
        (root / name).mkdir()
    watched.start()
    watched.until_found("docs/a.md")
    for name in ("built/x.md", "node_modules/x.md", ".git/x.md", ".ragx/x.md", "program.bin"):
        (root / name).write_text("x")
    watched.put("docs/b.md", "b")
    watched.until_found("docs/a.md", "docs/b.md")
    assert len(watched.runs) == 2


def test_settings_and_a_lost_index_lead_to_a_run(watched: Watched) -> None:
    watched.start()
    watched.until(lambda: len(watched.runs) == 1)
    (watched.root / "ragx.toml").write_text("")
    watched.until(lambda: len(watched.runs) == 2)
    (watched.root / ".ragx" / "index.db").unlink()
    watched.until(lambda: len(watched.runs) == 3)


@pytest.mark.parametrize("fault", [IndexBusy("busy"), ProviderUnavailable("down")])
def test_a_first_run_that_has_to_wait_is_tried_again(watched: Watched, fault: RagxError) -> None:
    watched.outcomes = [fault, fault, fault]
    watched.start()
    watched.until_found("docs/a.md")
    assert watched.failures == [fault] * 3


@pytest.mark.parametrize("fault", [ConfigError("wrong"), StoreError("damaged")])
def test_a_first_run_that_waiting_does_not_mend_ends_it(watched: Watched, fault: RagxError) -> None:
    watched.outcomes = [fault]
    watched.start()
    watched.until(lambda: watched.raised is fault)
    assert watched.runs == []


@pytest.mark.parametrize("fault", [ConfigError("wrong"), StoreError("disk full")])
def test_a_later_run_that_fails_is_tried_again(watched: Watched, fault: RagxError) -> None:
    watched.start()
    watched.until_found("docs/a.md")
    watched.outcomes = [fault, fault]
    (watched.root / "docs" / "b.md").write_text("b")
    watched.until_found("docs/a.md", "docs/b.md")
    assert watched.failures == [fault, fault]


def test_a_run_that_asks_for_another_try_gets_one(watched: Watched) -> None:
    watched.outcomes = [False, False, True]
    watched.start()
    watched.until(lambda: len(watched.runs) == 3)
    watched.put("docs/b.md", "b")
    watched.until_found("docs/a.md", "docs/b.md")
    assert len(watched.runs) == 4


def test_a_root_that_goes_and_comes_back(watched: Watched, tmp_path: Path) -> None:
    watched.start()
    watched.until_found("docs/a.md")
    watched.root.rename(tmp_path / "elsewhere")
    watched.until(lambda: watched.failures)
    assert isinstance(watched.failures[0], CorpusError)
    (tmp_path / "elsewhere" / "docs" / "b.md").write_text("b")
    (tmp_path / "elsewhere").rename(watched.root)
    watched.until_found("docs/a.md", "docs/b.md")
    assert watched.told == []


def test_a_root_that_goes_and_is_made_anew(watched: Watched, tmp_path: Path) -> None:
    watched.start()
    watched.until_found("docs/a.md")
    watched.root.rename(tmp_path / "elsewhere")
    watched.until(lambda: watched.failures)
    watched.root.mkdir()
    watched.put("b.md", "b")
    watched.until_found("b.md")
    watched.put("c.md", "c")
    watched.until_found("b.md", "c.md")
    assert watched.told == []


def test_a_link_that_leads_elsewhere(watched: Watched, tmp_path: Path) -> None:
    watched.root = tmp_path / "current"
    watched.root.symlink_to("corpus")
    (tmp_path / "next").mkdir()
    (tmp_path / "next" / "b.md").write_text("b")
    watched.start()
    watched.until_found("docs/a.md")
    watched.until_hinted(1)
    (tmp_path / "link").symlink_to("next")
    (tmp_path / "link").replace(watched.root)
    watched.until_found("b.md")
    watched.until_hinted(2)
    watched.put("c.md", "c")
    watched.until_found("b.md", "c.md")
    assert watched.told == []


@pytest.mark.parametrize("watched", [True], indirect=True)
def test_a_root_that_is_away_when_hints_are_asked_for(
    watched: Watched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    n_asked = 0

    def ask_without_it(*args: Any, **options: Any) -> Iterator[set[Any]]:
        nonlocal n_asked
        n_asked += 1
        changes = watched.ask(*args, **options)
        if n_asked == 1:
            watched.root.rename(tmp_path / "elsewhere")
            try:
                first = next(changes)
            finally:
                (tmp_path / "elsewhere").rename(watched.root)
            yield first
        yield from changes

    monkeypatch.setattr(watchfiles, "watch", ask_without_it)
    watched.start()
    watched.until_hinted(1)
    watched.put("docs/b.md", "b")
    watched.until_found("docs/a.md", "docs/b.md")
    assert watched.told == []


@pytest.mark.parametrize("watched", [True], indirect=True)
def test_a_root_that_goes_as_hints_are_asked_for(
    watched: Watched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask_too_late(*args: Any, **options: Any) -> Iterator[set[Any]]:
        monkeypatch.setattr(watchfiles, "watch", watched.ask)
        watched.root.rename(tmp_path / "elsewhere")
        yield from watched.ask(*args, **options)

    monkeypatch.setattr(watchfiles, "watch", ask_too_late)
    watched.start()
    watched.until(lambda: watched.failures)
    (tmp_path / "elsewhere").rename(watched.root)
    watched.until_hinted(1)
    watched.put("docs/b.md", "b")
    watched.until_found("docs/a.md", "docs/b.md")
    assert watched.told == []


@pytest.mark.parametrize("watched", [True], indirect=True)
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a watch is of the whole")
def test_directories_beside_one_that_may_not_be_read(watched: Watched) -> None:
    names = [f"n{at}" for at in range(9)]
    for name in names:
        (watched.root / name).mkdir()
    closed = next(name for name in os.listdir(watched.root) if name in names)
    names.remove(closed)
    (watched.root / closed).chmod(0)
    try:
        if os.access(watched.root / closed, os.R_OK):
            pytest.skip("this user may read all")
        watched.start()
        watched.until(lambda: watched.told)
        for name in names:
            (watched.root / name / "b.md").write_text("b")
        watched.until_found("docs/a.md", *(f"{name}/b.md" for name in names))
        assert "denied" in watched.told[0]
    finally:
        (watched.root / closed).chmod(0o700)


@pytest.mark.parametrize("watched", [True], indirect=True)
@pytest.mark.parametrize("why", ["missing", "limit"])
def test_where_there_are_no_hints_it_looks_by_itself(
    watched: Watched, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if why == "missing":
        monkeypatch.setitem(sys.modules, "watchfiles", None)
    else:

        def refuse(*_: object, **__: object) -> Iterator[set[object]]:
            raise OSError(28, "OS file watch limit reached")
            yield set()

        monkeypatch.setattr(watchfiles, "watch", refuse)
    watched.start()
    watched.until(lambda: watched.told)
    (watched.root / "docs" / "b.md").write_text("b")
    watched.until_found("docs/a.md", "docs/b.md")
    assert len(watched.told) == 1
    assert ("watchfiles" if why == "missing" else "limit") in watched.told[0]


def test_a_file_that_changed_at_the_time_of_a_look_is_young(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("a")
    seen = look(tmp_path, ScanOptions())
    changed_ns = max(seen.files[0].mtime_ns, seen.files[0].ctime_ns)
    assert seen.is_young(changed_ns)
    assert seen.is_young(changed_ns + 10**9)
    assert not seen.is_young(changed_ns + 3 * 10**9)
    assert not seen.has_index
    assert seen.settings is None
    assert look(tmp_path, ScanOptions()) == seen

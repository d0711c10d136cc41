"""`ragx index --watch` as a process: real files change, and what it says is waited for."""

from __future__ import annotations

import json
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

SOON_S = 180  # far more than any of this takes
WATCHING = "watching for changes"


class Watching:
    """A watch at work; `until` waits for words that it says."""

    def __init__(self, root: Path, environment: dict[str, str], *flags: str) -> None:
        self.root = root
        self.process = subprocess.Popen(
            [sys.executable, "-m", "ragx", "index", "--watch", *flags],
            cwd=root,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
        )
        self.said: list[str] = []
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def until(self, words: str) -> str:
        """The next line that holds the words."""
        while True:
            line = self._lines.get(timeout=SOON_S)
            assert line is not None, "".join(self.said)
            self.said.append(line)
            if words in line:
                return line

    def rest(self) -> str:
        """What is said until the end."""
        lines = []
        while (line := self._lines.get(timeout=SOON_S)) is not None:
            lines.append(line)
        return "".join(lines)

    def interrupt(self) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(SOON_S)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(SOON_S)
        self._thread.join(SOON_S)
        assert self.process.stdout is not None
        self.process.stdout.close()


Start = Callable[..., Watching]


@pytest.fixture
def start(ragx_environment: Callable[..., dict[str, str]]) -> Iterator[Start]:
    """`start(root, *flags)` starts a watch; it is gone after the test."""
    started: list[Watching] = []

    def begin(root: Path, *flags: str) -> Watching:
        started.append(Watching(root, ragx_environment(), *flags))
        return started[-1]

    yield begin
    for watching in started:
        watching.close()


def test_the_index_follows_the_files(make_corpus, ask, ragx_inline, start: Start) -> None:
    root = make_corpus({"docs/a.md": "# A\n\nThe pelican landed.\n"})
    watching = start(root)
    watching.until("indexed 1 file")
    watching.until(WATCHING)

    (root / "docs" / "b.md").write_text("# B\n\nThe zeppelin rose.\n")
    watching.until("indexed 1 file (1 file unchanged")
    found = ask("query", "zeppelin", cwd=root)
    assert [entry["file"] for entry in found["results"]] == ["docs/b.md"]

    (root / "docs" / "b.md").write_text("# B\n\nThe submarine sank.\n")
    watching.until("1 gone")
    ask("query", "zeppelin", cwd=root, status=1)

    (root / "docs").rename(root / "pages")
    watching.until("2 deleted")
    found = ask("query", "submarine", cwd=root)
    assert [entry["file"] for entry in found["results"]] == ["pages/b.md"]

    (root / "pages" / "b.md").unlink()
    watching.until("1 deleted")
    ask("query", "submarine", cwd=root, status=1)

    assert watching.interrupt() == 130
    assert "Traceback" not in "".join(watching.said) + watching.rest()
    assert ragx_inline("verify", cwd=root).returncode == 0


def test_a_burst_of_files(make_corpus, ask, start: Start) -> None:
    root = make_corpus({"a.md": "# A\n"})
    watching = start(root)
    watching.until(WATCHING)
    for at in range(500):
        (root / f"n{at}.md").write_text(f"# Note {at}\n\nIt says {at}.\n")
    indexed = 0
    while indexed < 500:
        indexed += int(watching.until("indexed ").split()[1])
    assert ask("status", cwd=root)["files"] == 501
    assert ask("status", cwd=root)["drift"] == {"new": 0, "changed": 0, "deleted": 0}


def test_a_switch_of_branches(make_corpus, ask, start: Start) -> None:
    root = make_corpus({f"n{at}.md": f"# Note {at}\n" for at in range(20)})

    def git(*args: str) -> None:
        subprocess.run(
            ["git", "-c", "user.name=n", "-c", "user.email=n@example.org", *args],
            cwd=root,
            check=True,
            capture_output=True,
        )

    git("init", "-b", "main")
    git("add", "--", "*.md")
    git("commit", "-m", "notes")
    git("switch", "-c", "other")
    for at in range(10):
        (root / f"n{at}.md").unlink()
    (root / "new.md").write_text("# Quagga\n")
    git("add", "-A", "--", "*.md")
    git("commit", "-m", "other notes")
    watching = start(root)
    watching.until(WATCHING)
    assert ask("status", cwd=root)["files"] == 11
    git("switch", "main")
    deleted = 0
    while not deleted or ask("status", cwd=root)["files"] != 20:
        deleted += " 1 deleted" in watching.until("indexed ")
    ask("query", "quagga", cwd=root, status=1)
    git("switch", "other")
    while ask("status", cwd=root)["files"] != 11:
        watching.until("indexed ")


def test_another_writer_is_waited_for(make_corpus, start: Start) -> None:
    from ragx.store.lock import WriterLock

    root = make_corpus({"a.md": "# A\n"})
    (root / ".ragx").mkdir(mode=0o700)
    lock = WriterLock(root / ".ragx")
    watching = start(root)
    try:
        watching.until("another ragx is indexing")
    finally:
        lock.release()
    watching.until("indexed 1 file")
    watching.until(WATCHING)


def test_settings_are_read_anew_and_wrong_ones_do_not_end_it(
    make_corpus, ask, start: Start
) -> None:
    root = make_corpus({"a.md": "# A\n", "b.log": "A log of the pelican.\n"})
    watching = start(root)
    watching.until(WATCHING)
    settings = (root / "ragx.toml").read_text()
    (root / "ragx.toml").write_text("nonsense")
    assert "tried again" in watching.until("ragx.toml")
    (root / "ragx.toml").write_text(settings + '[corpus]\ninclude = ["*.md", "*.log"]\n')
    watching.until("indexed 1 file")
    found = ask("query", "pelican", cwd=root)
    assert [entry["file"] for entry in found["results"]] == ["b.log"]


def test_an_index_that_is_deleted_is_built_again(make_corpus, ask, start: Start) -> None:
    root = make_corpus({"a.md": "# A\n\nThe pelican landed.\n"})
    watching = start(root)
    watching.until(WATCHING)
    (root / ".ragx").rename(root.parent / "gone")
    watching.until("indexed 1 file")
    ask("query", "pelican", cwd=root)


def test_a_first_run_that_cannot_work_is_an_error(make_corpus, ragx_cli) -> None:
    root = make_corpus({"a.md": "# A\n"}, settings="[corpus]\nmax_files = 0\n")
    done = ragx_cli("index", "--watch", "--root", str(root / "absent"))
    assert done.returncode == 2
    (root / "b.md").write_text("# B\n")
    done = ragx_cli("index", "--watch", "--max-files", "1", cwd=root)
    assert done.returncode == 2
    assert "hint:" in done.stderr or "error:" in done.stderr


@pytest.mark.parametrize(
    "flags", [["a.md"], ["--json"], ["--dry-run"], ["--edges-only"], ["--refresh-dates"]]
)
def test_what_ends_does_not_go_with_a_watch(make_corpus, ragx_inline, flags: list[str]) -> None:
    root = make_corpus({"a.md": "# A\n"})
    done = ragx_inline("index", "--watch", *flags, cwd=root)
    assert done.returncode == 2
    said = json.loads(done.stdout)["error"] if "--json" in flags else {"message": done.stderr}
    assert "--watch" in said["message"]
    assert not (root / ".ragx").exists()


def test_quiet_says_nothing_while_all_is_well(make_corpus, ask, start: Start) -> None:
    root = make_corpus({"a.md": "# A\n"})
    watching = start(root, "--quiet")
    while not ask("status", cwd=root, status=None)["files"]:
        assert watching.process.poll() is None
    (root / "ragx.toml").write_text((root / "ragx.toml").read_text() + "nonsense")
    said = watching.until("not valid TOML")
    assert said.startswith("warning:")
    assert watching.said == [said]

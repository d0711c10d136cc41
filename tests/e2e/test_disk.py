"""Disks that are full or read-only, for real: small file systems mounted over `.ragx/`."""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

MakeCorpus = Callable[..., Path]
Ask = Callable[..., dict[str, Any]]
Put = Callable[[Path, Mapping[str, str | bytes]], None]
Environment = Callable[..., dict[str, str]]

NOTES = {"a.md": "# Alpha\n\nThe zebra grazes.\n", "b.md": "# Beta\n\nA lion sleeps.\n"}


def call(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, timeout=60, check=False
    )


def may_mount() -> bool:
    """Whether this process may mount, found out where nobody else sees it."""
    if sys.platform != "linux" or not shutil.which("unshare"):
        return False
    return call("unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", "/mnt").returncode == 0


pytestmark = pytest.mark.skipif(not may_mount(), reason="needs the right to mount file systems")


@contextmanager
def mounted(at: Path, *options: str | Path) -> Iterator[None]:
    at.mkdir(exist_ok=True)
    done = call("mount", *options, at)
    if done.returncode:
        pytest.skip(f"mount refused: {done.stderr.strip()}")
    try:
        yield
    finally:
        done = call("umount", at)
        assert done.returncode == 0, done.stderr


@contextmanager
def small_disk(root: Path, kilobytes: int) -> Iterator[Path]:
    """The index directory on a disk of its own."""
    with mounted(root / ".ragx", "-t", "tmpfs", "-o", f"size={kilobytes}k,mode=700", "tmpfs"):
        yield root / ".ragx"


@contextmanager
def read_only(root: Path) -> Iterator[None]:
    """The index directory as it is, on a disk that cannot be written to."""
    directory = root / ".ragx"
    with mounted(directory, "--bind", directory):
        assert call("mount", "-o", "remount,ro,bind", directory).returncode == 0
        yield


def fill(disk: Path, leave: int) -> Path:
    """A file that leaves about `leave` bytes of the disk free."""
    ballast = disk / "ballast.tmp"
    with ballast.open("wb", buffering=0) as file:
        room = shutil.disk_usage(disk).free - leave
        while room > 0:
            try:
                room -= file.write(bytes(min(room, 1 << 16)))
            except OSError:
                break
    return ballast


def prose(seed: int, n: int) -> str:
    rng = random.Random(seed)
    words = [f"word{i}" for i in range(400)]
    return "".join(f"# Part {i}\n\n{' '.join(rng.choices(words, k=60))}\n\n" for i in range(n))


def names(answer: dict[str, Any]) -> set[str]:
    return {entry["file"] for entry in answer["results"]}


@pytest.fixture
def served(make_corpus: MakeCorpus, embedding_server: Any) -> Path:
    """A corpus with a server's embeddings, not yet indexed."""
    embedding_server.delay_s = 0.0
    root = make_corpus(NOTES)
    (root / "ragx.toml").write_text(
        f"[embeddings]\n{embedding_server.settings}[chunking]\nsize_tokens = 100\n"
    )
    return root


# Full.


def test_a_first_run_that_does_not_fit(served: Path, ask: Ask, put: Put) -> None:
    put(served, {"big.md": prose(1, 400)})
    with small_disk(served, 300) as disk:
        error = ask("index", cwd=served, status=2)["error"]
        assert error["code"] == "disk_full"
        assert "free some space" in error["hint"]
        assert ask("query", "zebra", cwd=served, status=2)["error"]["code"] == "index_missing"
        assert ask("status", cwd=served, status=1)["indexed"] is False
        assert call("mount", "-o", "remount,size=16m", disk).returncode == 0
        assert ask("index", cwd=served)["ok"]
        assert ask("verify", cwd=served)["ok"]
        assert list(disk.glob("*.tmp")) == []


@pytest.mark.parametrize(
    ("free_kb", "flags"),
    [(0, []), (40, ["--full"]), (150, []), (400, ["--full"]), (700, []), (1000, ["--full"])],
)
def test_a_run_that_no_longer_fits(
    served: Path, ask: Ask, put: Put, free_kb: int, flags: list[str]
) -> None:
    """HOSTILE: disk full: search still works; indexing says why it cannot."""
    put(served, {"other.md": prose(2, 60)})
    with small_disk(served, 4096) as disk:
        ask("index", cwd=served)
        put(served, {"new.md": "# New\n\nA zebra, new here.\n", "big.md": prose(1, 300)})
        (served / "b.md").unlink()
        ballast = fill(disk, free_kb * 1024)
        document = ask("index", *flags, cwd=served, status=None)
        committed = "error" not in document
        if not committed:
            assert document["error"]["code"] == "disk_full", document
            assert "free some space" in document["error"]["hint"]
        # The old state or the new one, all of it, though there is no room for anything.
        for name in ("vectors.bin", "graph.bin"):
            (disk / name).unlink(missing_ok=True)
        fill(disk, 0)
        for mode in ("hybrid", "lexical", "vector"):
            found = names(ask("query", "zebra lion", "--mode", mode, cwd=served))
            old, new = {"a.md", "b.md"}, {"a.md", "new.md"}
            if mode != "lexical":  # what has none of the words is found by vectors
                old, new = old | {"other.md"}, new | {"other.md", "big.md"}
            assert found in (old, new)
            assert not committed or "new.md" in found
        status = ask("status", cwd=served)
        assert status["files"] == (4 if "new.md" in found else 3)
        assert ask("inspect", "file", "a.md", cwd=served)["chunk_count"] == 1
        # Space is there again: the next run finishes.
        ballast.unlink()
        assert ask("index", cwd=served)["ok"]
        assert "new.md" in names(ask("query", "zebra", "--mode", "lexical", cwd=served))
        assert ask("verify", cwd=served)["ok"]
        assert list(disk.glob("*.tmp")) == []


# Read-only.


def say(root: Path, ask: Ask, *, drift: dict[str, int]) -> list[Any]:
    """What every reading command answers, which must be the same on a read-only disk."""
    chunk_id = ask("inspect", "file", "a.md", cwd=root)["chunks"][0]["id"]
    assert ask("status", cwd=root)["drift"] == drift
    return [
        *(ask("query", "zebra", "--mode", mode, cwd=root) for mode in ("hybrid", "lexical")),
        ask("inspect", "file", "a.md", cwd=root),
        ask("inspect", "chunk", str(chunk_id), cwd=root),
    ]


@pytest.mark.parametrize(
    "lost",
    [(), ("index.db-shm", "index.db-wal"), ("vectors.bin",), ("graph.bin",), ("index.seal",)],
    ids=" ".join,
)
def test_a_read_only_index_answers_and_index_says_why_it_cannot(
    served: Path, ask: Ask, lost: tuple[str, ...]
) -> None:
    """HOSTILE: Read-only index directory: search still works; indexing says why it cannot."""
    ask("index", cwd=served)
    said = say(served, ask, drift={"new": 0, "changed": 0, "deleted": 0})
    (served / "new.md").write_text("A new zebra.\n")
    for name in lost:
        (served / ".ragx" / name).unlink(missing_ok=True)
    before = {path.name: path.read_bytes() for path in (served / ".ragx").iterdir()}
    with read_only(served):
        assert say(served, ask, drift={"new": 1, "changed": 0, "deleted": 0}) == said
        assert ask("index", "--dry-run", cwd=served)["files"] == 1
        for flags in ([], ["--full"]):
            error = ask("index", *flags, cwd=served, status=2)["error"]
            assert error["code"] == "read_only"
            assert "writable" in error["hint"]
        found = ask("verify", cwd=served, status=1)
        assert found["differing"] == [{"file": "new.md", "how": "not in the index"}]
    assert {path.name: path.read_bytes() for path in (served / ".ragx").iterdir()} == before
    assert ask("index", cwd=served)["files_indexed"] == 1
    assert ask("verify", cwd=served)["ok"]


@pytest.mark.parametrize("failpoint", ["embeddings_saved", "committed", "matrix_replaced"])
def test_a_read_only_index_that_a_killed_run_left(
    served: Path, ask: Ask, ragx_environment: Environment, failpoint: str
) -> None:
    """The log of a killed writer holds what the database does not: it must be read, too."""
    killed_run(served, ask, ragx_environment, failpoint)
    copy = shutil.copytree(served, served.parent / "copy")
    drift = {"new": int(failpoint == "embeddings_saved"), "changed": 0, "deleted": 0}
    said = say(copy, ask, drift=drift)
    with read_only(served):
        assert say(served, ask, drift=drift) == said
        assert ask("index", cwd=served, status=2)["error"]["code"] == "read_only"
        assert ask("verify", cwd=served, status=drift["new"])
    assert ask("index", cwd=served)["ok"]
    assert ask("verify", cwd=served)["ok"]


def test_a_read_only_index_whose_log_cannot_be_read(
    served: Path, ask: Ask, ragx_environment: Environment
) -> None:
    """Without the shared-memory file SQLite cannot read a log there: said, not answered wrongly."""
    killed_run(served, ask, ragx_environment, "committed")
    (served / ".ragx" / "index.db-shm").unlink()
    with read_only(served):
        for command in (["query", "zebra"], ["status"], ["inspect", "file", "a.md"], ["verify"]):
            error = ask(*command, cwd=served, status=2)["error"]
            assert error["code"] == "io_error"
            assert "permissions of .ragx/" in error["hint"]
    assert "new.md" in names(ask("query", "zebra", cwd=served))


def killed_run(root: Path, ask: Ask, environment: Environment, failpoint: str) -> None:
    """An index, a new file, and a run over it that ends at the failpoint."""
    ask("index", cwd=root)
    (root / "new.md").write_text("A new zebra.\n")
    killed = subprocess.run(
        [sys.executable, "-m", "ragx", "index"], cwd=root, check=False, timeout=60,
        env=environment({"RAGX_FAILPOINT": f"{failpoint}=kill"}),
    )  # fmt: skip
    assert killed.returncode == -signal.SIGKILL
    assert (root / ".ragx" / "index.db-wal").stat().st_size > 0


def test_a_read_only_corpus_without_an_index(served: Path, ask: Ask) -> None:
    with mounted(served, "--bind", served):
        assert call("mount", "-o", "remount,ro,bind", served).returncode == 0
        error = ask("index", cwd=served, status=2)["error"]
        assert error["code"] == "read_only"
        assert ask("query", "zebra", cwd=served, status=2)["error"]["code"] == "index_missing"
        assert ask("status", cwd=served, status=1)["drift"]["new"] == 2

"""HOSTILE.md, "Incremental", through the command line: what a user does between two runs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

RunCli = Callable[..., "subprocess.CompletedProcess[str]"]
MakeCorpus = Callable[..., Path]
Ask = Callable[..., dict[str, Any]]
Put = Callable[[Path, Mapping[str, str | bytes]], None]

NOTES = {
    "a.md": "# Alpha\n\nThe zebra grazes on the plain.\n\n# Second\n\nA quagga stands by.\n",
    "sub/b.md": "# Beta\n\nA lion sleeps under the tree.\n",
    "c.py": "def count(zebra):\n    return len(zebra)\n",
}
QUESTIONS = ["zebra", "lion", "quagga stands", '"the tree"', "count", "okapi", "tapir -lion"]


def everything(root: Path, ask: Ask) -> list[object]:
    """What a user can learn from an index, but for what tells of the disk."""
    answers: list[object] = [
        ask("query", text, "--top", "50", cwd=root, status=None) for text in QUESTIONS
    ]
    paths = sorted(
        str(path.relative_to(root))
        for path in root.rglob("*")
        if path.is_file() and ".ragx" not in path.parts and ".git" not in path.parts
    )
    views = [ask("inspect", "file", path, "--text", cwd=root, status=None) for path in paths]
    return [*answers, *views]


def check_equals_fresh(root: Path, ask: Ask) -> None:
    """The index equals one made from nothing on a copy of the tree, and a full run's."""
    now = everything(root, ask)
    fresh = root.parent / f"fresh{time.monotonic_ns()}"
    shutil.copytree(root, fresh, ignore=shutil.ignore_patterns(".ragx"))
    ask("index", cwd=fresh)
    assert everything(fresh, ask) == now
    ask("index", "--full", cwd=root)
    assert everything(root, ask) == now


def test_a_day_of_edits(make_corpus: MakeCorpus, ask: Ask, put: Put) -> None:
    root = make_corpus(NOTES)
    ask("index", cwd=root)
    put(root, {"d.md": "# Delta\n\nAn okapi.\n", "a.md": NOTES["a.md"] + "\n# Third\n\nTapir.\n"})
    (root / "sub").rename(root / "moved")
    ask("index", cwd=root)
    check_equals_fresh(root, ask)
    (root / "c.py").unlink()
    put(root, {"c.py/x.md": "# Dir now\n\nzebra\n", "a.md": "# Inserted above\n\n" + NOTES["a.md"]})
    shutil.copy(root / "d.md", root / "moved" / "copy.md")
    ask("index", cwd=root)
    check_equals_fresh(root, ask)
    put(root, {"d.md": b"\0binary now", "moved/b.md": "", "a.md": NOTES["a.md"].encode("utf-16")})
    report = ask("index", cwd=root)
    assert report["skipped"]["binary"] == 1
    check_equals_fresh(root, ask)


def test_a_branch_switched_back_and_forth(make_corpus: MakeCorpus, ask: Ask, put: Put) -> None:
    """A branch switched back and forth; a delete while nothing watched."""
    root = make_corpus(NOTES)

    def git(*args: str) -> None:
        subprocess.run(
            ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *args],
            cwd=root, check=True, capture_output=True,
        )  # fmt: skip

    git("init", "-q", "-b", "main")
    git("add", ".")
    git("commit", "-qm", "one")
    ask("index", cwd=root)
    before = everything(root, ask)
    git("checkout", "-qb", "other")
    put(root, {"a.md": "# Other\n\nokapi\n", "new.md": "tapir\n"})
    (root / "c.py").unlink()
    git("add", "-A")
    git("commit", "-qm", "two")
    report = ask("index", cwd=root)
    assert (report["files_indexed"], report["files_deleted"]) == (2, 1)
    check_equals_fresh(root, ask)
    git("checkout", "-q", "main")
    ask("index", cwd=root)
    assert everything(root, ask) == before


def test_no_embedding_is_paid_twice(ragx_cli: RunCli, make_corpus: MakeCorpus) -> None:
    """`touch **`, `git checkout`, clone to another path: no embedding is paid twice."""
    root = make_corpus(NOTES, provider="builtin")

    def run(*args: str, cwd: Path = root) -> dict[str, Any]:
        done = ragx_cli("index", *args, "--json", cwd=cwd)
        assert done.returncode == 0, done.stdout
        return json.loads(done.stdout)  # type: ignore[no-any-return]

    assert run()["embedded"] > 0
    for path in root.rglob("*.md"):
        os.utime(path)
    assert run()["embedded"] == 0
    (root / "sub").rename(root / "dir")
    shutil.copy(root / "a.md", root / "dir" / "copy.md")
    report = run()
    assert (report["files_indexed"], report["files_deleted"], report["embedded"]) == (2, 1, 0)
    assert run("--full")["embedded"] == 0
    assert run("--full", "--no-cache")["embedded"] > 0


def test_counts_agree(make_corpus: MakeCorpus, ask: Ask, put: Put) -> None:
    """Counts must agree: chunks = vectors = postings."""
    root = make_corpus(NOTES)
    ask("index", cwd=root)
    put(root, {"a.md": "# A\n\nzebra\n", "e.md": ""})
    ask("index", cwd=root)
    status = ask("status", cwd=root)
    views = [ask("inspect", "file", name, cwd=root) for name in (*NOTES, "e.md")]
    assert status["chunks"] == sum(view["chunk_count"] for view in views)
    assert status["files"] == 4


def test_everything_deleted(make_corpus: MakeCorpus, ask: Ask) -> None:
    root = make_corpus(NOTES)
    ask("index", cwd=root)
    for name in NOTES:
        (root / name).unlink()
    report = ask("index", cwd=root)
    assert report["files_deleted"] == 3
    status = ask("status", cwd=root)
    assert (status["files"], status["chunks"]) == (0, 0)
    assert ask("query", "zebra", cwd=root, status=1)["results"] == []


def test_an_edit_in_the_same_instant_is_not_missed(make_corpus: MakeCorpus, ask: Ask) -> None:
    root = make_corpus({"a.md": "zebra0\n"})
    for i in range(1, 6):
        ask("index", cwd=root)
        (root / "a.md").write_text(f"zebra{i}\n")
        stat = (root / "a.md").stat()
        os.utime(root / "a.md", ns=(stat.st_atime_ns, 10**18))  # and its mtime tells nothing
        ask("index", cwd=root)
        assert ask("query", f"zebra{i}", cwd=root)["results"]


def test_a_settled_tree_is_not_read_again(make_corpus: MakeCorpus, ask: Ask) -> None:
    root = make_corpus(NOTES)
    time.sleep(2.2)
    first = ask("index", cwd=root)
    assert first["files_read"] == 3
    assert ask("index", cwd=root)["files_read"] == 0
    assert ask("status", cwd=root)["drift"] == {"new": 0, "changed": 0, "deleted": 0}


def test_deleting_the_index_leaves_the_corpus(make_corpus: MakeCorpus, ask: Ask) -> None:
    root = make_corpus(NOTES)
    ask("index", cwd=root)
    before = everything(root, ask)
    shutil.rmtree(root / ".ragx")
    assert ask("query", "zebra", cwd=root, status=2)["error"]["code"] == "index_missing"
    ask("index", cwd=root)
    assert everything(root, ask) == before


@pytest.mark.parametrize(
    ("key", "old", "new"),
    [("chunking.size_tokens", "auto", "64"), ("chunking.overlap", "0.15", "0.3")],
)
def test_a_setting_changed_and_changed_back(
    make_corpus: MakeCorpus, ask: Ask, key: str, old: str, new: str
) -> None:
    root = make_corpus(NOTES)
    ask("index", cwd=root)
    ask("config", "set", key, new, cwd=root)
    assert ask("index", cwd=root, status=2)["error"]["code"] == "manifest_mismatch"
    ask("config", "set", key, old, cwd=root)
    assert ask("index", cwd=root)["ok"]

"""Filters and dates from the command line."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

RunCli = Callable[..., "subprocess.CompletedProcess[str]"]
MakeCorpus = Callable[..., Path]
Document = Callable[..., dict[str, Any]]

FILES = {
    "docs/retry.md": (
        "---\ntags: [Network, http]\ndate: 2021-05-06\n---\n# Retry policy\n\nRetry a request.\n"
    ),
    "docs/2024-03-17-retry.md": "# Retry notes\n\nRetry with backoff when a request failed.\n",
    "src/retry.py": 'def retry(request):\n    """Retry a failed request."""\n    return request\n',
    "src/retry.rs": "// Retry a failed request.\npub fn retry() {}\n",
    "plain.txt": "Retry the failed request later.\n",
}
DAY_S = 86_400


def git(root: Path, *args: str, day: str) -> None:
    subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@example.org",
         "-c", "commit.gpgsign=false", *args],
        cwd=root, check=True, capture_output=True,
        env={**os.environ, "GIT_AUTHOR_DATE": f"{day}T12:00:00Z"},
    )  # fmt: skip


@pytest.fixture
def root(make_corpus: MakeCorpus, ask: Document) -> Path:
    """No repository: dates come from names, front matter and the file system."""
    root = make_corpus(FILES)
    for name, day in (("src/retry.py", 10_000), ("src/retry.rs", 15_000), ("plain.txt", 19_000)):
        os.utime(root / name, (day * DAY_S, day * DAY_S))
    ask("index", cwd=root)
    return root


def found(document: dict[str, Any]) -> set[str]:
    return {entry["file"] for entry in document["results"]}


@pytest.mark.parametrize(
    ("flags", "left"),
    [
        ("--path docs/", {"docs/retry.md", "docs/2024-03-17-retry.md"}),
        ("--path src/ --path !*.rs", {"src/retry.py"}),
        ("--file plain.txt --file src/retry.py", {"plain.txt", "src/retry.py"}),
        ("--lang py --lang rust", {"src/retry.py", "src/retry.rs"}),
        ("--kind code", {"src/retry.py", "src/retry.rs"}),
        ("--tag HTTP", {"docs/retry.md"}),
        ("--since 2024", {"docs/2024-03-17-retry.md"}),
        ("--until 1997-05-19", {"src/retry.py"}),
        ("--since 2021-05-06 --until 2021-05", {"docs/retry.md"}),
    ],
)
def test_filters_bind_and_the_best_come_from_what_they_leave(
    root: Path, ask: Document, flags: str, left: set[str]
) -> None:
    document = ask("query", "retry a failed request", "--top", "9", *flags.split(), cwd=root)
    assert found(document) == left
    about_time = "--since" in flags or "--until" in flags
    assert all(("date" in entry) == about_time for entry in document["results"])
    brief = ask("query", "retry", "--brief", *flags.split(), cwd=root)
    files = ask("query", "retry", "--files-only", *flags.split(), cwd=root)
    assert {entry["file"] for entry in brief["files"]} == left
    assert {entry["file"] for entry in files["files"]} == left


def test_a_filter_that_keeps_everything_changes_not_a_byte(root: Path, ragx_inline: RunCli) -> None:
    plain = ragx_inline("query", "retry a failed request", "--json", "--explain", cwd=root)
    flags = ("--path", "*", "--kind", "docs", "--kind", "code", "--kind", "data")
    kept = ragx_inline("query", "retry a failed request", "--json", "--explain", *flags, cwd=root)
    assert kept.stdout == plain.stdout


def test_a_version_names_one_content(root: Path, ask: Document) -> None:
    version = ask("inspect", "file", "plain.txt", cwd=root)["content_hash"]
    assert found(ask("query", "retry", "--source-version", version, cwd=root)) == {"plain.txt"}


def test_nothing_left_is_an_empty_answer_that_says_which_filter(root: Path, ask: Document) -> None:
    document = ask("query", "retry", "--lang", "go", "--kind", "code", cwd=root, status=1)
    assert document["results"] == []
    assert document["warnings"] == ["no file passes --lang go"]
    document = ask("query", "retry", "--file", "doc/retry.md", cwd=root, status=1)
    assert "docs/retry.md" in document["warnings"][0]


@pytest.mark.parametrize(
    "flags",
    ["--lang pyton", "--kind prose", "--since soon", "--path [z-a]", "--file ../x", "--tag ",
     "--source-version xyz", "--since 2024 --until 2023"],
)  # fmt: skip
def test_what_means_nothing_is_exit_2_with_what_would(
    root: Path, ask: Document, flags: str
) -> None:
    document = ask("query", "retry", *flags.split(" "), cwd=root, status=2)
    assert document["error"]["code"] == "bad_filter"
    assert document["error"]["hint"]


def test_dates_say_where_they_come_from(root: Path, ask: Document, ragx_inline: RunCli) -> None:
    document = ask("query", "retry request", "--temporal", "recent", "--explain", cwd=root)
    dates = {entry["file"]: (entry["date"], entry["date_source"]) for entry in document["results"]}
    assert dates == {
        "docs/retry.md": ("2021-05-06", "front_matter"),
        "docs/2024-03-17-retry.md": ("2024-03-17", "name"),
        "src/retry.py": ("1997-05-19", "mtime"),
        "src/retry.rs": ("2011-01-26", "mtime"),
        "plain.txt": ("2022-01-08", "mtime"),
    }
    chunks = [chunk for entry in document["results"] for chunk in entry["chunks"]]
    assert any(chunk["breakdown"].get("temporal", 0) < 0 for chunk in chunks)
    shown = ragx_inline("query", "retry", "--since", "2024", cwd=root).stdout
    assert "2024-03-17 (file name)" in shown


def test_an_end_of_time_that_is_wanted_moves_up(root: Path, ask: Document) -> None:
    def place(path: str, *flags: str) -> int:
        document = ask("query", "retry a failed request", "--no-graph", *flags, cwd=root)
        return [entry["file"] for entry in document["results"]].index(path)

    newest, oldest = "docs/2024-03-17-retry.md", "src/retry.py"
    assert place(newest, "--temporal", "recent") <= place(newest, "--temporal", "oldest")
    assert place(oldest, "--temporal", "oldest") <= place(oldest, "--temporal", "recent")


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_commits_date_files_and_are_asked_again_only_when_told(
    make_corpus: MakeCorpus, ask: Document
) -> None:
    root = make_corpus(FILES)
    git(root, "init", "-q", day="2020-02-02")
    git(root, "add", "src", "docs", day="2020-02-02")
    git(root, "commit", "-q", "-m", "x", day="2020-02-02")
    ask("index", cwd=root)

    def dated() -> dict[str, str]:
        document = ask("query", "retry", "--temporal", "recent", cwd=root)
        return {entry["file"]: entry["date_source"] + entry["date"]
                for entry in document["results"] if entry["date_source"] != "mtime"}  # fmt: skip

    before = dated()
    assert before == {
        "docs/retry.md": "front_matter2021-05-06",
        "docs/2024-03-17-retry.md": "name2024-03-17",
        "src/retry.py": "git2020-02-02",
        "src/retry.rs": "git2020-02-02",
    }
    git(root, "add", "-A", day="2023-03-03")
    git(root, "rm", "-q", "--cached", "src/retry.rs", day="2023-03-03")
    git(root, "commit", "-q", "-m", "y", day="2023-03-03")
    # A commit changes no file: the index is what a fresh one would be, but for what git says.
    ask("verify", cwd=root)
    assert dated() == before
    assert ask("index", "--refresh-dates", cwd=root)["dates_changed"] == 2
    after = dated()
    assert after == {
        **{path: day for path, day in before.items() if path != "src/retry.rs"},
        "plain.txt": "git2023-03-03",
    }
    again = ask("index", "--refresh-dates", cwd=root)
    assert (again["dates_changed"], again["embedded"], again["files_read"]) == (0, 0, 0)
    # Reading a file asks git, too, and a full run asks for all.
    git(root, "add", "-f", "src/retry.rs", day="2024-04-04")
    git(root, "commit", "-q", "-m", "z", day="2024-04-04")
    (root / "src/retry.rs").touch()
    ask("index", cwd=root)
    assert dated()["src/retry.rs"] == "git2024-04-04"
    incremental = dated()
    ask("index", "--full", cwd=root)
    assert dated() == incremental
    ask("verify", cwd=root)


def test_dates_of_the_file_system_follow_a_touch(root: Path, ask: Document) -> None:
    os.utime(root / "plain.txt", (12_000 * DAY_S, 12_000 * DAY_S))
    ask("index", cwd=root)
    ask("verify", cwd=root)
    assert found(ask("query", "retry", "--until", "2002-11-09", cwd=root)) == {
        "src/retry.py",
        "plain.txt",
    }


@pytest.mark.parametrize("flags", ["--full", "--no-cache", "--edges-only", "--force plain.txt"])
def test_refreshing_dates_does_nothing_else(root: Path, ask: Document, flags: str) -> None:
    document = ask("index", "--refresh-dates", *flags.split(), cwd=root, status=2)
    assert document["error"]["code"] == "usage"
    document = ask("index", "--refresh-dates", "--dry-run", cwd=root, status=2)
    assert document["error"]["code"] == "usage"


def test_refreshing_needs_an_index(make_corpus: MakeCorpus, ask: Document) -> None:
    document = ask("index", "--refresh-dates", cwd=make_corpus(FILES), status=2)
    assert document["error"]["code"] == "index_missing"


def test_an_older_format_asks_for_a_full_run(root: Path, ask: Document) -> None:
    (root / ".ragx" / "index.seal").unlink()
    with closing(sqlite3.connect(root / ".ragx" / "index.db")) as db:
        db.execute("PRAGMA user_version = 2")
    for command in (("query", "retry"), ("index",), ("index", "--refresh-dates")):
        document = ask(*command, cwd=root, status=2)
        assert document["error"]["code"] == "manifest_mismatch"
        assert "ragx index --full" in document["error"]["hint"]
    assert ask("index", "--full", cwd=root)["ok"]

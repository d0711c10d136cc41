"""Days of commits, in one pass over the history."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from ragx.indexing.dates import _Log, read_git_dates

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


def git(root: Path, *args: str, day: str = "2024-01-01T12:00:00 +0000") -> None:
    subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@example.org",
         "-c", "commit.gpgsign=false", *args],
        cwd=root, check=True, capture_output=True,
        env={**os.environ, "GIT_AUTHOR_DATE": day, "GIT_COMMITTER_DATE": "2030-01-01T00:00:00Z"},
    )  # fmt: skip


def commit(root: Path, day: str, *paths: str) -> None:
    for path in paths:
        full = root / path
        full.parent.mkdir(parents=True, exist_ok=True)
        with full.open("a", encoding="utf-8") as stream:
            stream.write(day + "\n")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "x", day=day)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repository"
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    commit(root, "2020-01-01T12:00:00 +0000", "a.md", "sub/b.md", "sub/ünï \n code.md")
    commit(root, "2021-02-03T23:30:00 +1100", "a.md")
    return root


def test_the_last_commit_that_touched_a_file_gives_the_authors_own_day(repository: Path) -> None:
    (repository / "new.md").write_text("x")
    paths = ["a.md", "sub/b.md", "sub/ünï \n code.md", "new.md", "absent.md"]
    found = read_git_dates(repository, paths)
    assert dict(found.days) == {
        "a.md": "2021-02-03",
        "sub/b.md": "2020-01-01",
        "sub/ünï \n code.md": "2020-01-01",
    }
    assert found.note == ""


def test_many_files_are_read_as_few_are(repository: Path) -> None:
    names = [f"many/{n}.md" for n in range(150)]
    commit(repository, "2022-05-05T12:00:00 +0000", *names)
    commit(repository, "2023-05-05T12:00:00 +0000", *names[:10])
    found = read_git_dates(repository, [*names, "a.md"])
    expected = dict.fromkeys(names[:10], "2023-05-05") | dict.fromkeys(names[10:], "2022-05-05")
    assert dict(found.days) == {**expected, "a.md": "2021-02-03"}


def test_below_the_top_paths_are_those_of_the_corpus(repository: Path) -> None:
    assert dict(read_git_dates(repository / "sub", ["b.md", "a.md"]).days) == {"b.md": "2020-01-01"}


def test_a_merge_is_no_change_of_its_own(repository: Path) -> None:
    git(repository, "checkout", "-q", "-b", "side", "HEAD~1")
    commit(repository, "2019-01-01T12:00:00 +0000", "side.md")
    git(repository, "checkout", "-q", "main")
    git(repository, "merge", "-q", "--no-ff", "-m", "m", "side", day="2025-01-01T12:00:00Z")
    found = read_git_dates(repository, ["side.md", "a.md"])
    assert dict(found.days) == {"side.md": "2019-01-01", "a.md": "2021-02-03"}


def test_no_repository_no_git_no_commit_and_nothing_staged_give_nothing(
    tmp_path: Path, repository: Path
) -> None:
    (tmp_path / "plain").mkdir()
    assert not read_git_dates(tmp_path / "plain", ["a.md"]).days
    assert not read_git_dates(repository, []).days
    assert not read_git_dates(repository, ["a.md"], env={"PATH": ""}).days
    empty = tmp_path / "empty"
    empty.mkdir()
    git(empty, "init", "-q")
    (empty / "a.md").write_text("x")
    git(empty, "add", "a.md")
    found = read_git_dates(empty, ["a.md"])
    assert (dict(found.days), found.note) == ({}, "")


def test_a_file_that_is_staged_only_has_no_day(repository: Path) -> None:
    (repository / "new.md").write_text("x")
    git(repository, "add", "new.md")
    assert dict(read_git_dates(repository, ["new.md", "a.md"]).days) == {"a.md": "2021-02-03"}


def test_a_repository_that_names_programs_starts_none(repository: Path, tmp_path: Path) -> None:
    trap, mark = tmp_path / "trap", tmp_path / "sprung"
    trap.write_text(f"#!/bin/sh\ntouch '{mark}'\n")
    trap.chmod(0o755)
    for key in ("core.fsmonitor", "core.pager", "diff.external", "gpg.program", "core.hooksPath"):
        git(repository, "config", key, str(trap))
    git(repository, "config", "log.showSignature", "true")
    assert read_git_dates(repository, ["a.md"]).days == {"a.md": "2021-02-03"}
    assert not mark.exists()


def test_a_borrowed_repository_is_not_read(repository: Path, tmp_path: Path) -> None:
    thief = tmp_path / "thief"
    thief.mkdir()
    (thief / "a.md").write_text("x")
    (thief / ".git").write_text(f"gitdir: {repository / '.git'}\n")
    assert not read_git_dates(thief, ["a.md"]).days


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_the_log_is_read_in_pieces_of_any_size(size: int) -> None:
    text = (
        b"\0//\0002024-02-02\0\0\nb.md\0c\n.md\0\0//\0002023-01-01\0\0\na.md\0b.md\0"
        b"\0//\0not a day\0\0\nd.md\0\0//\0002022-01-01\0\0\nd.md\0"
    )
    log = _Log({"a.md", "b.md", "c\n.md", "d.md", "e.md"})
    for at in range(0, len(text), size):
        assert log.take(text[at : at + size])
    assert log.days == {
        "a.md": "2023-01-01",
        "b.md": "2024-02-02",
        "c\n.md": "2024-02-02",
        "d.md": "2022-01-01",
    }
    assert log.missing == {"e.md"}


def test_the_log_is_left_as_soon_as_every_file_has_its_day() -> None:
    log = _Log({"a.md"})
    assert not log.take(b"\0//\0002024-02-02\0\0\na.md\0")

"""Reading a history from repositories that are plain, odd or hostile."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from ragx.evaluation.history import History, read_history

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")

AUTHOR = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")


def git(root: Path, *args: str) -> str:
    done = subprocess.run(
        ["git", *AUTHOR, *args], cwd=root, check=True, capture_output=True, encoding="utf-8"
    )
    return done.stdout


def commit(root: Path, subject: str, *paths: str) -> None:
    for path in paths:
        full = root / path
        full.parent.mkdir(parents=True, exist_ok=True)
        with full.open("a", encoding="utf-8") as stream:
            stream.write(subject + "\n")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", subject)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repository"
    root.mkdir()
    git(root, "init", "-q")
    commit(root, "First of all", "a.md", "sub/b.md")
    commit(root, "Ünïcode and\na second row\n\nA body.", "sub/ünï code.md")
    return root


def shown(history: History) -> list[tuple[str, tuple[str, ...]]]:
    return [(item.subject, item.paths) for item in history.commits]


def test_commits_come_newest_first_with_the_names_of_their_files(repository: Path) -> None:
    history = read_history(repository)
    assert shown(history) == [
        ("Ünïcode and a second row", ("sub/ünï code.md",)),
        ("First of all", ("a.md", "sub/b.md")),
    ]
    assert history.commits[0].number == git(repository, "rev-parse", "HEAD").strip()
    assert history.note == ""


def test_below_the_top_names_are_relative_and_other_commits_left_out(repository: Path) -> None:
    commit(repository, "Elsewhere", "a.md")
    assert shown(read_history(repository / "sub")) == [
        ("Ünïcode and a second row", ("ünï code.md",)),
        ("First of all", ("b.md",)),
    ]


def test_merges_are_left_out_and_renames_are_two_names(repository: Path) -> None:
    git(repository, "checkout", "-q", "-b", "side")
    git(repository, "mv", "a.md", "z.md")
    git(repository, "commit", "-q", "-m", "Move it away")
    git(repository, "checkout", "-q", "-")
    commit(repository, "Meanwhile", "sub/b.md")
    git(repository, "merge", "-q", "--no-ff", "-m", "Joined", "side")
    subjects = dict(shown(read_history(repository)))
    assert "Joined" not in subjects
    assert subjects["Move it away"] == ("a.md", "z.md")


def test_the_number_of_commits_is_bounded(repository: Path) -> None:
    assert len(read_history(repository, max_commits=1).commits) == 1


def test_long_output_is_cut_between_commits(repository: Path) -> None:
    history = read_history(repository, max_output_bytes=120)
    assert [subject for subject, _ in shown(history)] == ["Ünïcode and a second row"]
    assert history.note == "older commits left out: the history is too long"


def test_where_there_is_nothing_to_read(tmp_path: Path) -> None:
    outside = read_history(tmp_path)
    assert outside == History((), "no commits: the corpus is not in a git repository")
    git(tmp_path, "init", "-q")
    assert read_history(tmp_path) == History((), "no commits: the repository has none yet")
    (tmp_path / ".git" / "HEAD").write_text("garbage\n")
    assert read_history(tmp_path).note.startswith("no commits: ")


def test_without_git_or_with_one_from_the_corpus_itself(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without = History((), "no commits: git is not installed")
    assert read_history(repository, env={"PATH": str(repository)}) == without
    own = repository / "git"
    own.write_text("#!/bin/sh\ntouch run\n")
    own.chmod(0o755)
    monkeypatch.chdir(repository)
    assert read_history(repository, env={"PATH": "."}) == without
    assert not (repository / "run").exists()


def test_a_git_that_hangs_is_ended_with_what_it_started(tmp_path: Path) -> None:
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nsleep 60 & sleep 60\n")
    program.chmod(0o755)
    env = {"PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}"}
    history = read_history(tmp_path, timeout_s=0.3, env=env)
    assert history == History((), "no commits: git took too long")


def test_variables_that_redirect_git_are_dropped(repository: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    env = {
        **os.environ,
        "GIT_DIR": str(elsewhere),
        "GIT_TRACE": str(tmp_path / "trace"),
        "GIT_EXTERNAL_DIFF": "false",
    }
    assert len(read_history(repository, env=env).commits) == 2
    assert not (tmp_path / "trace").exists()


def test_a_hostile_repository_starts_nothing_and_changes_nothing(
    repository: Path, tmp_path: Path
) -> None:
    trap = tmp_path / "sprung"
    script = tmp_path / "trap.sh"
    script.write_text(f"#!/bin/sh\necho sprung >> '{trap}'\n")
    script.chmod(0o755)
    hooks = repository / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("post-index-change", "reference-transaction", "fsmonitor-watchman"):
        shutil.copy(script, hooks / name)
    (repository / ".gitattributes").write_text("*.md diff=evil filter=evil\n")
    for key in (
        "core.fsmonitor", "core.pager", "pager.log", "core.sshCommand", "diff.external",
        "diff.evil.command", "diff.evil.textconv", "filter.evil.smudge", "filter.evil.clean",
        "gpg.program", "core.askPass", "core.editor", "core.gitProxy", "alias.log",
        "core.alternateRefsCommand", "credential.helper", "uploadpack.packObjectsHook",
    ):  # fmt: skip
        git(repository, "config", key, str(script) if key != "alias.log" else f"!{script}")
    for key, value in (
        ("log.showSignature", "true"),
        ("core.hooksPath", str(hooks)),
        ("diff.orderFile", str(script)),
        ("diff.renames", "copies"),
        ("log.showRoot", "false"),
        ("log.follow", "true"),
        ("color.ui", "always"),
        ("format.pretty", "%GG%n%B"),
        ("core.quotePath", "true"),
        ("mailmap.file", str(script)),
        ("trace2.normalTarget", str(tmp_path / "trace")),
    ):
        git(repository, "config", key, value)
    before = snapshot(repository)
    trap.unlink(missing_ok=True)
    assert [subject for subject, _ in shown(read_history(repository))] == [
        "Ünïcode and a second row",
        "First of all",
    ]
    assert not trap.exists()
    assert not (tmp_path / "trace").exists()
    assert snapshot(repository) == before


def test_a_partial_clone_does_not_fetch_what_it_lacks(repository: Path, tmp_path: Path) -> None:
    """Its remote may be any command, where the configuration allows that transport."""
    trap = tmp_path / "sprung"
    tree = git(repository, "rev-parse", "HEAD^{tree}").strip()
    for key, value in (
        ("core.repositoryFormatVersion", "1"),
        ("extensions.partialClone", "origin"),
        ("remote.origin.url", f"ext::sh -c touch% {trap}"),
        ("remote.origin.promisor", "true"),
        ("remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*"),
        ("protocol.ext.allow", "always"),
        ("protocol.allow", "always"),
    ):
        git(repository, "config", key, value)
    (repository / ".git" / "objects" / tree[:2] / tree[2:]).unlink()
    subprocess.run(["git", "log", "--name-only"], cwd=repository, check=False, capture_output=True)
    assert trap.exists(), "the trap is a real one"
    trap.unlink()
    history = read_history(repository)
    assert history.commits == ()
    assert history.note.startswith("no commits: git: ")
    assert not trap.exists()


def test_replaced_commits_show_as_they_were_made(repository: Path) -> None:
    git(repository, "replace", "HEAD", "HEAD~1")
    assert shown(read_history(repository))[0][0] == "Ünïcode and a second row"


def snapshot(root: Path) -> dict[str, tuple[int, int]]:
    """Every path with its size and change time."""
    stats = {path: path.lstat() for path in sorted(root.rglob("*"))}
    return {str(path): (stat.st_size, stat.st_mtime_ns) for path, stat in stats.items()}


SECRET = "What only the other repository knows"
BORROWED = History((), "no commits: the repository belongs to another directory")


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """A repository of the reader's, beside the corpus."""
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q")
    commit(other, SECRET, "a.md", "doc/a.md")
    return other


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A directory with the same file names, and no repository yet."""
    clone = tmp_path / "clone"
    (clone / "doc").mkdir(parents=True)
    (clone / "a.md").write_text("x")
    return clone


def test_worktrees_of_this_machine_are_read(repository: Path, tmp_path: Path) -> None:
    git(repository, "worktree", "add", "-q", str(tmp_path / "tree"))
    commit(tmp_path / "tree", "In the worktree", "w.md")
    assert shown(read_history(tmp_path / "tree"))[0] == ("In the worktree", ("w.md",))
    git(repository, "worktree", "add", "-q", str(repository / "nested"))
    assert len(read_history(repository / "nested").commits) == 2


def test_submodules_and_their_worktrees_are_read(
    repository: Path, other: Path, tmp_path: Path
) -> None:
    allowed = ("-c", "protocol.file.allow=always")
    git(repository, *allowed, "submodule", "add", "-q", str(other), "parts/sub")
    sub = repository / "parts" / "sub"
    assert shown(read_history(sub)) == [(SECRET, ("a.md", "doc/a.md"))]
    assert shown(read_history(sub / "doc")) == [(SECRET, ("a.md",))]
    git(sub, "worktree", "add", "-q", str(tmp_path / "tree"))
    assert len(read_history(tmp_path / "tree").commits) == 1


def test_a_separate_directory_that_names_its_working_tree_is_read(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    git(root, "init", "-q", f"--separate-git-dir={tmp_path / 'kept elsewhere'}")
    commit(root, "Apart", "a.md")
    git(root, "config", "core.worktree", str(root))
    assert shown(read_history(root)) == [("Apart", ("a.md",))]


@pytest.mark.parametrize("below", [".", "doc"])
def test_a_file_that_names_the_repository_of_others_is_not_followed(
    below: str, clone: Path, other: Path
) -> None:
    (clone / ".git").write_text("gitdir: ../other/.git\n")
    assert SECRET in git(clone, "log", "--format=%s")  # git itself would
    assert read_history(clone / below) == BORROWED


def test_a_link_to_the_repository_of_others_is_not_followed(clone: Path, other: Path) -> None:
    (clone / ".git").symlink_to("../other/.git")
    assert read_history(clone) == BORROWED


def test_the_worktree_and_the_submodule_of_others_are_not_borrowed(
    clone: Path, other: Path, repository: Path, tmp_path: Path
) -> None:
    git(other, "worktree", "add", "-q", str(tmp_path / "tree"))
    (clone / ".git").write_text("gitdir: ../other/.git/worktrees/tree\n")
    assert read_history(clone) == BORROWED
    allowed = ("-c", "protocol.file.allow=always")
    git(repository, *allowed, "submodule", "add", "-q", str(other), "part")
    (clone / ".git").write_text("gitdir: ../repository/.git/modules/part\n")
    assert read_history(clone).commits == ()


def test_a_repository_whose_parts_are_those_of_others_is_not_read(
    clone: Path, other: Path, tmp_path: Path
) -> None:
    git(clone, "init", "-q")
    inner = clone / ".git"
    shutil.rmtree(inner / "objects")
    shutil.rmtree(inner / "refs")
    for name in ("objects", "refs"):
        (inner / name).symlink_to(f"../../other/.git/{name}")
    shutil.copy(other / ".git" / "HEAD", inner / "HEAD")
    assert SECRET in git(clone, "log", "--format=%s")
    assert read_history(clone) == BORROWED
    # One link is enough, deep among the names of branches.
    head = git(other, "symbolic-ref", "HEAD").strip()
    (inner / "refs").unlink()
    (inner / head).parent.mkdir(parents=True)
    (inner / head).symlink_to(other / ".git" / head)
    (inner / "objects").unlink()
    (inner / "objects" / "info").mkdir(parents=True)
    (inner / "objects" / "info" / "alternates").write_text(f"{other / '.git' / 'objects'}\n")
    assert SECRET in git(clone, "log", "--format=%s")
    assert read_history(clone) == BORROWED


def test_a_directory_that_shares_with_the_repository_of_others_is_not_read(
    clone: Path, other: Path
) -> None:
    (clone / "fake").mkdir()
    (clone / ".git").write_text("gitdir: fake\n")
    (clone / "fake" / "commondir").write_text("../../other/.git\n")
    (clone / "fake" / "gitdir").write_text(f"{clone / '.git'}\n")
    shutil.copy(other / ".git" / "HEAD", clone / "fake" / "HEAD")
    assert SECRET in git(clone, "log", "--format=%s")
    assert read_history(clone) == BORROWED

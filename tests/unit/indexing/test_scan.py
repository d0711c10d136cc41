from __future__ import annotations

import os
import socket
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ragx.errors import CorpusError, UsageError
from ragx.indexing import scan as scan_module
from ragx.indexing.scan import (
    DEFAULT_EXCLUDE,
    DEFAULT_INCLUDE,
    ScanOptions,
    ScanResult,
    check_root,
    resolve_named,
    scan,
)

ALL = ScanOptions(include=(), exclude=())
DEFAULTS = ScanOptions()
FOLLOW = replace(ALL, follow_symlinks=True)
posix_only = pytest.mark.skipif(os.name != "posix", reason="needs a POSIX file system")


def write(root: Path, *paths: str, text: str = "x\n") -> Path:
    for path in paths:
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, "utf-8")
    return root


def files(root: Path, options: ScanOptions = ALL) -> list[str]:
    return [file.path for file in scan(root, options).files]


def reasons(result: ScanResult) -> dict[str, str]:
    return {skipped.path: skipped.reason for skipped in result.skipped}


def test_an_empty_root_has_nothing(tmp_path: Path) -> None:
    assert scan(tmp_path, ALL) == ScanResult((), ())


def test_files_are_sorted_and_carry_their_stat(tmp_path: Path) -> None:
    write(tmp_path, "b.py", "a/z.py", "a.py", "a/b/c.py")
    result = scan(tmp_path, DEFAULTS)
    assert [file.path for file in result.files] == ["a.py", "a/b/c.py", "a/z.py", "b.py"]
    for file in result.files:
        status = (tmp_path / file.path).stat()
        assert (file.size, file.mtime_ns, file.ctime_ns, file.inode) == (
            status.st_size,
            status.st_mtime_ns,
            status.st_ctime_ns,
            status.st_ino,
        )


def test_no_file_but_ignore_files_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "a.py", "d/b.py")
    monkeypatch.setattr(Path, "read_bytes", lambda path: pytest.fail(f"opened {path}"))
    assert files(tmp_path) == ["a.py", "d/b.py"]


# What counts by default


def test_default_globs(tmp_path: Path) -> None:
    wanted = [
        *("README.md", "a.py", "deep/er/b.rs", "Dockerfile", "src/Makefile", "notes.txt"),
        *("src/build/real.go", "pkg/vendor/x.js", "lib/dist/y.ts", ".eslintrc.json"),
    ]
    unwanted = [
        *("package-lock.json", "web/yarn.lock", "Cargo.lock", "go.sum", "uv.lock"),
        *("package.json", "requirements.txt", "requirements-dev.txt", "go.mod"),
        *("LICENSE", "LICENSE.txt", "sub/COPYING.md", "NOTICE.txt", "app.min.js", "style.min.css"),
        *("dist/a.js", "build/b.py", "target/c.rs", "coverage/d.html", "vendor/e.go"),
    ]
    neither = ["photo.png", "data.bin", "noextension"]
    write(tmp_path, *wanted, *unwanted, *neither)
    result = scan(tmp_path, DEFAULTS)
    assert [file.path for file in result.files] == sorted(wanted)
    why = reasons(result)
    assert {why[path] for path in neither} == {"not_included"}
    directories = {"dist/", "build/", "target/", "coverage/", "vendor/"}
    left = {path for path in unwanted if f"{path.split('/', maxsplit=1)[0]}/" not in directories}
    assert {path for path, reason in why.items() if reason == "excluded"} == left | directories


def test_default_globs_are_plain_and_distinct() -> None:
    assert 60 < len(DEFAULT_INCLUDE) < 120
    for globs in (DEFAULT_INCLUDE, DEFAULT_EXCLUDE):
        assert len(set(globs)) == len(globs)


def test_include_matches_names_paths_and_directories(tmp_path: Path) -> None:
    write(tmp_path, "a.py", "d/b.py", "docs/x.bin", "docs/sub/y.bin", "other/docs2/z.bin", "q.bin")
    assert files(tmp_path, replace(ALL, include=("*.py",))) == ["a.py", "d/b.py"]
    assert files(tmp_path, replace(ALL, include=("/*.py",))) == ["a.py"]
    assert files(tmp_path, replace(ALL, include=("docs/",))) == ["docs/sub/y.bin", "docs/x.bin"]
    assert files(tmp_path, replace(ALL, include=("docs/**", "!x.bin"))) == ["docs/sub/y.bin"]


def test_exclude_prunes_directories_whole(tmp_path: Path) -> None:
    write(tmp_path, "a.py", "gen/b.py", "gen/deep/c.py", "keep/gen.py")
    result = scan(tmp_path, replace(ALL, exclude=("gen/",)))
    assert [file.path for file in result.files] == ["a.py", "keep/gen.py"]
    assert reasons(result) == {"gen/": "excluded"}


def test_an_excluded_file_can_be_named_back(tmp_path: Path) -> None:
    write(tmp_path, "a.md", "b.md")
    assert files(tmp_path, replace(ALL, exclude=("*.md", "!b.md"))) == ["b.md"]


def test_what_is_never_indexed(tmp_path: Path) -> None:
    hidden = [".git/config", ".ragx/data.md", "d/.ragx/data.md", ".hg/x", ".svn/x", ".venv/x.py",
              ".mypy_cache/x.json", ".github/x.md"]  # fmt: skip
    caches = ["node_modules/p/i.js", "d/node_modules/i.js", "__pycache__/x.py"]
    write(tmp_path, "a.py", ".hidden.md", "ragx.toml", "d/ragx.toml", *hidden, *caches)
    write(tmp_path, "env/pyvenv.cfg", "env/lib/x.py", "d/my/pyvenv.cfg", "d/my/y.py")
    result = scan(tmp_path, ALL)
    assert [file.path for file in result.files] == [".hidden.md", "a.py", "d/ragx.toml"]
    assert Counter(reasons(result).values()) == {"hidden": 6, "excluded": 5}  # ours are no part
    assert reasons(result)["d/my/"] == "excluded"


def test_a_root_that_is_hidden_or_a_virtualenv_is_still_a_root(tmp_path: Path) -> None:
    root = write(tmp_path / ".dot", "pyvenv.cfg", "a.py")
    assert files(root) == ["a.py", "pyvenv.cfg"]


def test_secrets_are_left_out_by_name(tmp_path: Path) -> None:
    write(tmp_path, ".env", "app/.env.local", ".env.example", "id_rsa", "a.py")
    result = scan(tmp_path, DEFAULTS)
    assert {path for path, why in reasons(result).items() if why == "secret"} == {
        ".env",
        "app/.env.local",
        "id_rsa",
    }
    assert files(tmp_path, ALL) == [".env.example", "a.py"]


def test_sizes_over_the_limit(tmp_path: Path) -> None:
    write(tmp_path, "small.md", text="12345")
    write(tmp_path, "large.md", text="123456")
    write(tmp_path, "empty.md", text="")
    result = scan(tmp_path, replace(ALL, max_file_bytes=5))
    assert [file.path for file in result.files] == ["empty.md", "small.md"]
    assert reasons(result) == {"large.md": "too_large"}
    assert len(files(tmp_path, replace(ALL, max_file_bytes=0))) == 3


def test_too_many_files_is_said_and_never_cut(tmp_path: Path) -> None:
    write(tmp_path, *(f"{i}.md" for i in range(5)))
    assert len(files(tmp_path, replace(ALL, max_files=5))) == 5
    with pytest.raises(CorpusError) as caught:
        scan(tmp_path, replace(ALL, max_files=4))
    assert caught.value.code == "too_many_files"
    assert caught.value.details == {"max_files": 4, "n_files": 5}
    assert "max_files" in caught.value.hint


# Ignore files (the rules themselves are judged by git in tests/property)


def test_ignore_files_nest_and_prune(tmp_path: Path) -> None:
    write(tmp_path, "a.log", "d/a.log", "d/keep.log", "gen/x.md", "d/gen/y.md")
    (tmp_path / ".gitignore").write_bytes(b"\xef\xbb\xbf*.log\r\n/gen/\r\n")
    (tmp_path / "d" / ".gitignore").write_bytes(b"!keep.log\n")
    result = scan(tmp_path, ALL)
    assert [file.path for file in result.files] == [
        ".gitignore", "d/.gitignore", "d/gen/y.md", "d/keep.log"
    ]  # fmt: skip
    assert reasons(result) == {"a.log": "ignored", "d/a.log": "ignored", "gen/": "ignored"}
    assert "a.log" in files(tmp_path, replace(ALL, respect_gitignore=False))


@pytest.mark.parametrize("respect", [True, False])
def test_ragxignore_counts_always_and_has_the_last_word(tmp_path: Path, respect: bool) -> None:
    write(tmp_path, "a.md", "b.md", "c.md", "d/a.md", "d/b.md")
    (tmp_path / ".gitignore").write_text("/b.md\n")
    (tmp_path / ".ragxignore").write_text("a.md\n!/b.md\n")
    (tmp_path / "d" / ".ragxignore").write_text("!a.md\n")
    found = files(tmp_path, replace(ALL, include=("*.md",), respect_gitignore=respect))
    assert found == ["b.md", "c.md", "d/a.md", "d/b.md"]


def test_rules_above_the_root_count_up_to_the_repository(tmp_path: Path) -> None:
    write(tmp_path, "repo/.git/HEAD", "repo/pkg/sub/a.md", "repo/pkg/sub/b.md")
    write(tmp_path, "repo/pkg/sub/c.md", "repo/pkg/sub/d.md", "repo/pkg/sub/d/c.md")
    write(tmp_path, ".gitignore", text="d.md\n")
    write(tmp_path, "repo/.gitignore", text="a.md\n/pkg/sub/c.md\n")
    write(tmp_path, "repo/pkg/.gitignore", text="!a.md\n/b.md\n")
    write(tmp_path, "repo/.git/info/exclude", text="b.md\n")
    assert files(tmp_path / "repo" / "pkg" / "sub") == ["a.md", "d.md", "d/c.md"]
    assert len(files(tmp_path / "repo/pkg/sub", replace(ALL, respect_gitignore=False))) == 5


def test_a_named_root_counts_even_if_its_repository_ignores_it(tmp_path: Path) -> None:
    write(tmp_path, ".git/HEAD", "out/a.md")
    write(tmp_path, ".gitignore", text="out/\n")
    assert files(tmp_path / "out") == ["a.md"]


def test_a_nested_repository_starts_afresh(tmp_path: Path) -> None:
    write(tmp_path, "sub/.git/HEAD", "sub/a.md", "sub/b.md", "a.md")
    write(tmp_path, ".gitignore", text="a.md\n")
    write(tmp_path, "sub/.git/info/exclude", text="/b.md\n")
    assert files(tmp_path, replace(ALL, include=("*.md",))) == ["sub/a.md"]


def test_a_worktree_reads_the_main_repositorys_exclude_file(tmp_path: Path) -> None:
    write(tmp_path, "main/.git/info/exclude", text="a.md\n")
    write(tmp_path, "main/.git/worktrees/w/commondir", text="../..\n")
    write(tmp_path, "w/.git", text=f"gitdir: {tmp_path}/main/.git/worktrees/w\n")
    write(tmp_path, "w/a.md", "w/b.md")
    assert files(tmp_path / "w") == ["b.md"]


def test_a_binary_or_huge_ignore_file_is_survived(tmp_path: Path) -> None:
    write(tmp_path, "a.md", "b.md", "d/b.md")
    (tmp_path / ".gitignore").write_bytes(bytes(range(256)) * 40 + b"\na.md\n")
    (tmp_path / "d" / ".gitignore").write_bytes(b"b.md\n" * 300_000)
    result = scan(tmp_path, replace(ALL, include=("*.md",)))
    assert [file.path for file in result.files] == ["b.md", "d/b.md"]
    assert ("d/.gitignore", "too_large") in {(s.path, s.reason) for s in result.skipped}


def test_a_hostile_pattern_takes_no_time(tmp_path: Path) -> None:
    write(tmp_path, "/".join(["a"] * 60) + "/" + "a" * 200)
    stars = "*a" * 40 + "*b"
    write(tmp_path, ".gitignore", text=f"{stars}\n/{'**/a/' * 30}b\n/{'a/**/' * 30}{stars}\n")
    begin = time.perf_counter()
    assert len(files(tmp_path)) == 2
    assert time.perf_counter() - begin < 2


@posix_only
def test_an_ignore_file_that_is_a_link_or_a_fifo_is_not_read(tmp_path: Path) -> None:
    write(tmp_path, "a.md", "d/a.md")
    write(tmp_path, "rules", text="a.md\n")
    (tmp_path / ".gitignore").symlink_to("rules")
    os.mkfifo(tmp_path / "d" / ".gitignore")
    assert files(tmp_path) == ["a.md", "d/a.md", "rules"]


# Links


@posix_only
def test_links_are_not_followed_unless_asked(tmp_path: Path) -> None:
    write(tmp_path, "real/a.md")
    (tmp_path / "dir").symlink_to("real")
    (tmp_path / "file.md").symlink_to("real/a.md")
    (tmp_path / "broken").symlink_to("nowhere")
    result = scan(tmp_path, ALL)
    assert [file.path for file in result.files] == ["real/a.md"]
    assert reasons(result) == dict.fromkeys(("broken", "dir", "file.md"), "symlink")
    result = scan(tmp_path, FOLLOW)
    assert [file.path for file in result.files] == ["dir/a.md", "file.md", "real/a.md"]
    assert reasons(result) == {"broken": "symlink"}


@posix_only
def test_links_never_lead_out_up_or_round(tmp_path: Path) -> None:
    write(tmp_path, "outside/secret.md", "corpus/a/x.md", "corpus/b/y.md", "corpus-2/z.md")
    root = tmp_path / "corpus"
    links = {
        "self": ".", "a/up": "..", "a/here": ".", "out": "../outside", "near": "../corpus-2",
        "out.md": "../outside/secret.md", "abs": str(tmp_path / "outside"), "ring": "ring",
    }  # fmt: skip
    for name, target in links.items():
        (root / name).symlink_to(target)
    result = scan(root, FOLLOW)
    assert [file.path for file in result.files] == ["a/x.md", "b/y.md"]
    assert reasons(result) == dict.fromkeys(links, "symlink")


@posix_only
def test_directories_that_link_to_each_other_are_not_walked_in_every_order(tmp_path: Path) -> None:
    n = 12
    for i in range(n):
        write(tmp_path, f"d{i}/f.md")
        for j in range(n):
            (tmp_path / f"d{i}" / f"to{j}").symlink_to(f"../d{j}")
    begin = time.perf_counter()
    found = files(tmp_path, FOLLOW)
    assert set(found) == {f"d{i}/f.md" for i in range(n)} | {
        f"d{i}/to{j}/f.md" for i in range(n) for j in range(n) if i != j
    }
    assert time.perf_counter() - begin < 5


@posix_only
def test_links_do_not_open_what_is_closed(tmp_path: Path) -> None:
    write(tmp_path, ".git/notes.md", "d/.env", "node_modules/p/r.md", "d/.ragx/x.md")
    (tmp_path / "git").symlink_to(".git")
    (tmp_path / "notes.md").symlink_to(".git/notes.md")
    (tmp_path / "settings.md").symlink_to("d/.env")
    (tmp_path / "p").symlink_to("node_modules/p")
    (tmp_path / "index").symlink_to("d/.ragx")
    assert files(tmp_path, FOLLOW) == []


@posix_only
def test_globs_and_ignore_rules_apply_behind_a_link(tmp_path: Path) -> None:
    write(tmp_path, "real/a.md", "real/b.md", "real/sub/c.md")
    write(tmp_path, "real/.gitignore", text="b.md\n/sub/\n")
    write(tmp_path, ".gitignore", text="*.md\n!/link/a.md\n")
    (tmp_path / "link").symlink_to("real")
    assert files(tmp_path, replace(FOLLOW, include=("*.md",))) == ["link/a.md"]


@posix_only
def test_a_root_that_is_a_link(tmp_path: Path) -> None:
    write(tmp_path, "real/a.md")
    (tmp_path / "root").symlink_to("real")
    assert files(tmp_path / "root") == files(tmp_path / "root", FOLLOW) == ["a.md"]


# Things that are not files, and things that go wrong


@posix_only
def test_special_files_are_named_and_never_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.md")
    (tmp_path / "to-pipe").symlink_to("pipe.md")
    write(tmp_path, "a.md")
    with socket.socket(socket.AF_UNIX) as server:
        here = os.getcwd()
        os.chdir(tmp_path)  # a socket's path is limited to about 100 characters
        try:
            server.bind("sock.md")
        finally:
            os.chdir(here)
        result = scan(tmp_path, FOLLOW)
    assert [file.path for file in result.files] == ["a.md"]
    assert reasons(result) == dict.fromkeys(("pipe.md", "sock.md", "to-pipe"), "special")


@pytest.mark.parametrize(
    ("fault", "reason"),
    [(PermissionError(13, "denied"), "unreadable"), (FileNotFoundError(2, "gone"), "vanished"),
     (NotADirectoryError(20, "replaced"), "vanished"), (OSError(5, "I/O error"), "unreadable")],
)  # fmt: skip
def test_a_directory_that_cannot_be_listed_does_not_stop_the_walk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: OSError, reason: str
) -> None:
    write(tmp_path, "a.md", "dark/b.md", "z/c.md")
    real = os.scandir

    def scandir(path: str) -> object:
        if path.endswith("dark"):
            raise fault
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    result = scan(tmp_path, ALL)
    assert [file.path for file in result.files] == ["a.md", "z/c.md"]
    assert reasons(result) == {"dark/": reason}


class _Entry:
    """A directory entry whose stat fails."""

    def __init__(self, entry: os.DirEntry[str], fault: OSError) -> None:
        self.name, self.path, self._entry, self._fault = entry.name, entry.path, entry, fault

    def is_symlink(self) -> bool:
        return False

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        return self._entry.is_dir(follow_symlinks=follow_symlinks)

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        return True

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        raise self._fault


class _Listing:
    def __init__(self, entries: list[object]) -> None:
        self._entries = entries

    def __enter__(self) -> Iterator[object]:
        return iter(self._entries)

    def __exit__(self, *exc: object) -> None: ...


@pytest.mark.parametrize(
    ("fault", "reason"),
    [(FileNotFoundError(2, "gone"), "vanished"), (PermissionError(13, "denied"), "unreadable")],
)
def test_a_file_that_cannot_be_asked_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: OSError, reason: str
) -> None:
    write(tmp_path, "a.md", "b.md")
    with os.scandir(tmp_path) as listing:
        entries: list[object] = [
            _Entry(entry, fault) if entry.name == "a.md" else entry for entry in listing
        ]
    monkeypatch.setattr(os, "scandir", lambda path: _Listing(entries))
    result = scan(tmp_path, ALL)
    assert [file.path for file in result.files] == ["b.md"]
    assert reasons(result) == {"a.md": reason}


@posix_only
def test_strange_names_are_fine(tmp_path: Path) -> None:
    strange = [
        "-rf.md",
        "a b.md",
        "line\nbreak.md",
        "quo\"te'.md",
        "🐘.md",
        "é/ü.md",
        "*.md",
        "\\.md",
    ]
    write(tmp_path, *strange)
    assert files(tmp_path, DEFAULTS) == sorted(strange)


@posix_only
def test_names_that_are_not_unicode_are_told(tmp_path: Path) -> None:
    place = os.fsencode(tmp_path)
    try:
        with open(place + b"/caf\xe9.md", "wb"):
            pass
        os.mkdir(place + b"/d\xff")
    except OSError:
        pytest.skip("the file system refuses such names")
    result = scan(tmp_path, ALL)
    assert result.files == ()
    assert reasons(result) == {"caf\\xe9.md": "bad_name", "d\\xff/": "bad_name"}


@pytest.mark.parametrize("name", ["nowhere", "file"])
def test_a_root_that_cannot_be_listed(tmp_path: Path, name: str) -> None:
    write(tmp_path, "file")
    with pytest.raises(CorpusError, match=name):
        scan(tmp_path / name, ALL)


def test_twenty_thousand_files_in_well_under_a_second(tmp_path: Path) -> None:
    for directory in range(100):
        (tmp_path / f"d{directory}").mkdir()
        for number in range(60):
            (tmp_path / f"d{directory}" / f"{number}.py").touch()
    (tmp_path / ".gitignore").write_text("*.log\nbuild/\n/dist/*\n*~\n__*\n")
    best = min(_timed(tmp_path) for _ in range(3))
    # 6,000 files; the measured rate is a quarter of this bound.
    assert best < 0.3 * 4 * 6000 / 20_000


def _timed(root: Path) -> float:
    begin = time.perf_counter()
    assert len(scan(root, DEFAULTS).files) == 6000
    return time.perf_counter() - begin


# Roots and names


def test_broad_roots_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    (home / "project").mkdir(parents=True)
    monkeypatch.setattr(scan_module.Path, "home", lambda: home)
    top = Path(tmp_path.anchor)
    for root in (home, top, home / "project" / ".."):
        with pytest.raises(CorpusError) as caught:
            check_root(root, confirmed=False)
        assert caught.value.code == "broad_root"
        assert caught.value.hint
        check_root(root, confirmed=True)
    check_root(home / "project", confirmed=False)


@posix_only
def test_a_link_to_home_is_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "link").symlink_to("home")
    monkeypatch.setattr(scan_module.Path, "home", lambda: tmp_path / "home")
    with pytest.raises(CorpusError):
        check_root(tmp_path / "link", confirmed=False)


def test_one_identity_for_every_spelling(tmp_path: Path) -> None:
    write(tmp_path, "src/a.py", "src/sub/b.py")
    spelled = ["src/a.py", "./src/a.py", "src//a.py", "src/sub/../a.py", str(tmp_path / "src/a.py")]
    assert resolve_named(tmp_path, spelled, tmp_path) == ["src/a.py"] * len(spelled)
    assert resolve_named(tmp_path, ["a.py", "../src/a.py"], tmp_path / "src") == ["src/a.py"] * 2
    assert resolve_named(tmp_path, ["src", "src/", "./src/."], tmp_path) == ["src/"] * 3
    assert resolve_named(tmp_path, [".", str(tmp_path), "src/.."], tmp_path) == ["./"] * 3
    assert resolve_named(tmp_path, ["gone.py", "gone/", "-x"], tmp_path) == [
        "gone.py",
        "gone/",
        "-x",
    ]


@posix_only
def test_links_on_the_way_are_one_identity_too(tmp_path: Path) -> None:
    write(tmp_path, "real/src/a.py")
    (tmp_path / "root").symlink_to("real")
    (tmp_path / "real" / "alias").symlink_to("src")
    root = tmp_path / "root"
    for cwd in (root, tmp_path / "real"):
        given = ["src/a.py", "alias/a.py", str(root / "src/a.py"), str(tmp_path / "real/src/a.py")]
        assert resolve_named(root, given, cwd) == ["src/a.py"] * 4
    assert resolve_named(root, [str(root), "../real"], root) == ["./"] * 2


@pytest.mark.parametrize("name", ["", "..", "../x.py", "/", "/etc/passwd", "a\0b", "src/../../x"])
def test_names_outside_or_impossible_are_refused(tmp_path: Path, name: str) -> None:
    root = tmp_path / "corpus"
    write(root, "src/a.py")
    with pytest.raises(UsageError):
        resolve_named(root, [name], root)


def test_a_sibling_with_the_same_beginning_is_outside(tmp_path: Path) -> None:
    write(tmp_path, "corpus/a.py", "corpus-2/b.py")
    with pytest.raises(UsageError, match="outside"):
        resolve_named(tmp_path / "corpus", ["../corpus-2/b.py"], tmp_path / "corpus")

"""Random trees and ignore files, with git itself as the judge."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ragx.indexing.gitignore import match_key, parse_ignore_file
from ragx.indexing.scan import ScanOptions, scan

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

EVERYTHING = ScanOptions(include=(), exclude=())
NAMES = [
    "a",
    "b",
    "ab",
    "foo",
    "foo.c",
    "x y",
    "b.c",
    "build",
    "é",
    "-n",
    ".h",
    "[a]",
    "!a",
    "a\\b",
]
DIRS = ["a", "b", "foo", "build", "x y", "é"]
ATOMS = [
    "a", "b", "foo", "bar", ".c", "*", "**", "?", "/", "/", "/**/", "**/", "/**", "[ab]", "[!a]",
    "[^b]", "[a-f]", "[]a]", "[[:alpha:]]", "[![:digit:]x]", "[a", "[[:bad:]]", "\\", "\\a", "\\*",
    "\\/", " ", "\\ ", "é", "build", "x y", ".", "[!]a-]", "[\\]a]", "***", "o", "!", "#", "-",
    "\t", "[é]", "[+-9]", "[b-a]", "[--a]", "[:alpha:]", "[[:]", "[[::]]",
]  # fmt: skip

names = st.sampled_from(NAMES)
dirs = st.sampled_from(DIRS)
paths = st.builds(lambda above, name: "/".join([*above, name]), st.lists(dirs, max_size=3), names)
patterns = st.builds(
    lambda sign, lead, atoms, tail: sign + lead + "".join(atoms) + tail,
    st.sampled_from(["", "", "", "!", "#", "\\!"]),
    st.sampled_from(["", "", "/", "**/"]),
    st.lists(st.sampled_from(ATOMS), min_size=1, max_size=5),
    st.sampled_from(["", "", "", "/", "/*", " ", "  ", "\\ ", "\r", " \r"]),
)
likely = st.sampled_from(
    [*NAMES, "*", "!*", "/*", "!*/", "*.c", "a/b", "!foo", "foo/", "/a/**", ".*/"]
)
line = st.one_of(patterns, likely, likely)
ignore_text = st.builds(
    lambda bom, lines, end: bom + "\n".join(lines).encode() + end,
    st.sampled_from([b"", b"", b"\xef\xbb\xbf"]),
    st.lists(line, max_size=6),
    st.sampled_from([b"", b"\n", b"\r\n", b"\x00\xff\n"]),
)
trees = st.tuples(
    st.sets(paths, max_size=12),
    st.dictionaries(
        st.sampled_from(["", "", "a/", "b/", "a/b/", "foo/", "build/a/"]), ignore_text, max_size=3
    ),
    ignore_text,
)


def git(root: Path, *args: str, stdin: bytes = b"") -> bytes:
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(root),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
    }
    done = subprocess.run(
        ["git", "-c", "core.excludesFile=", *args],
        cwd=root,
        env=env,
        input=stdin,
        capture_output=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


def write_tree(root: Path, files: set[str], ignores: dict[str, bytes]) -> None:
    for path in sorted(files):
        target = root / path
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(b"")
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            continue  # one drawn path is another's directory
    for where, data in ignores.items():
        if (root / where).is_dir():
            (root / where / ".gitignore").write_bytes(data)


def git_lists(root: Path, below: str = ".") -> set[str]:
    output = git(root / below, "ls-files", "-o", "--exclude-standard", "-z")
    return {os.fsdecode(path) for path in output.split(b"\0") if path}


def ours(root: Path) -> set[str]:
    return {seen.path for seen in scan(root, EVERYTHING).files}


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(trees)
def test_scan_lists_what_git_lists(tree: tuple[set[str], dict[str, bytes], bytes]) -> None:
    files, ignores, local = tree
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        git(root, "init", "-q")
        (root / ".git" / "info").mkdir(exist_ok=True)
        (root / ".git" / "info" / "exclude").write_bytes(local)
        write_tree(root, files, ignores)
        assert ours(root) == git_lists(root)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(trees)
def test_a_root_inside_a_repository_obeys_the_rules_above(
    tree: tuple[set[str], dict[str, bytes], bytes],
) -> None:
    files, ignores, local = tree
    with tempfile.TemporaryDirectory() as place:
        top = Path(place)
        git(top, "init", "-q")
        (top / ".git" / "info").mkdir(exist_ok=True)
        (top / ".git" / "info" / "exclude").write_bytes(local)
        (top / "a").mkdir()
        write_tree(top, files, ignores)
        # Where git ignores the root itself it lists nothing; for us a named root counts.
        ignored = git(top, "check-ignore", "--no-index", "a")
        if not ignored:
            assert ours(top / "a") == git_lists(top, "a")


CHUNK = 40


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(patterns, min_size=CHUNK, max_size=CHUNK),
    st.lists(paths, min_size=4, max_size=12, unique=True),
)
def test_single_patterns_match_as_in_git(lines: list[str], candidates: list[str]) -> None:
    """Many patterns at once: each gets a directory of its own in a repository without files."""
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        git(root, "init", "-q")
        asked = []
        for number, pattern in enumerate(lines):
            (root / str(number)).mkdir()
            (root / str(number) / ".gitignore").write_text(pattern + "\n", "utf-8", newline="")
            asked += [f"{number}/{path}" for path in candidates]
        output = git(
            root, "check-ignore", "--no-index", "-v", "-n", "-z", "--stdin",
            stdin=b"\0".join(path.encode() for path in asked) + b"\0",
        )  # fmt: skip
        fields = output.split(b"\0")[:-1]
        verdicts = {
            fields[i + 3].decode(): fields[i + 2].decode() for i in range(0, len(fields), 4)
        }
        for number, pattern in enumerate(lines):
            rules = parse_ignore_file(pattern.encode() + b"\n")
            for path in candidates:
                parts = path.split("/")
                keys = [match_key("/".join(parts[: i + 1])) for i in range(len(parts))]
                found = [
                    rules.verdict(match_key(part), key, is_dir=key != keys[-1])
                    for part, key in zip(parts, keys, strict=True)
                ]
                # A negated pattern above the path is no verdict on the path.
                matched = True in found or found[-1] is not None
                assert matched == (verdicts[f"{number}/{path}"] != ""), (pattern, path)

"""HOSTILE.md, "The tree", through the command line. Docstrings quote its lines."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

RunCli = Callable[..., "subprocess.CompletedProcess[str]"]
MakeCorpus = Callable[..., Path]
Ask = Callable[..., dict[str, Any]]
Put = Callable[[Path, Mapping[str, str | bytes]], None]
Environment = Callable[..., dict[str, str]]


def files(answer: dict[str, Any]) -> list[str]:
    return [entry["file"] for entry in answer["results"]]


def indexed(root: Path, ask: Ask) -> list[str]:
    """Every file that holds the word all test files hold."""
    document = ask("query", "zebra", "--files-only", "--top", "1000", cwd=root, status=None)
    found = [entry["file"] for entry in document["files"]]
    also = ask("query", "zebra", "-C", "0", "--top", "1000", cwd=root, status=None)
    return sorted({*found, *(name for entry in also["results"] for name in entry["also_in"])})


TREE = {
    "keep.md": "zebra keep\n",
    "skip.log.txt": "zebra\n",
    "docs/skip.md": "zebra docs skip\n",
    "docs/deep/keep.md": "zebra docs deep keep\n",
    "docs/deep/anchored.md": "zebra deep anchored\n",
    "anchored.md": "zebra anchored\n",
    "logs/a.md": "zebra logs a\n",
    "logs/keep.md": "zebra logs keep\n",
    "build/out.md": "zebra root build\n",
    "src/build/code.py": "zebra = 'build is real code here'\n",
    ".hidden/x.md": "zebra hidden\n",
    ".dot.md": "zebra dot file\n",
}


def test_gitignore_as_git_means_it(make_corpus: MakeCorpus, ask: Ask) -> None:
    """`.gitignore` as git means it: nested, anchored by an inner slash, negation, `.*/` at root."""
    root = make_corpus(
        {
            **TREE,
            ".gitignore": "*.log.txt\n/anchored.md\nlogs/*\n!logs/keep.md\n.*/\n",
            "docs/.gitignore": "skip.md\ndeep/anchored.md\n",
        }
    )
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    ask("index", cwd=root)
    expected = ["docs/deep/keep.md", "keep.md", "logs/keep.md", "src/build/code.py", ".dot.md"]
    assert indexed(root, ask) == sorted(expected)
    listed = subprocess.run(
        ["git", "ls-files", "-o", "--exclude-standard"], cwd=root, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    assert set(expected) <= set(listed.stdout.split())
    (root / ".ragxignore").write_text("src/\n!skip.log.txt\n")
    ask("index", cwd=root)
    assert indexed(root, ask) == sorted({*expected, "skip.log.txt"} - {"src/build/code.py"})
    ask("config", "set", "corpus.respect_gitignore", "false", cwd=root)
    ask("index", cwd=root)
    assert "anchored.md" in indexed(root, ask)
    assert "src/build/code.py" not in indexed(root, ask)


def test_a_binary_gitignore(make_corpus: MakeCorpus, ask: Ask) -> None:
    """A binary `.gitignore`."""
    root = make_corpus({**TREE, ".gitignore": bytes(range(256)) * 50})
    (root / ".git").mkdir()
    assert ask("index", cwd=root)["ok"]
    assert "keep.md" in indexed(root, ask)


def test_an_exclude_added_later(make_corpus: MakeCorpus, ask: Ask) -> None:
    """An exclude added later: rows of the now-excluded file are gone after the next run."""
    root = make_corpus(TREE)
    ask("index", cwd=root)
    assert "docs/skip.md" in indexed(root, ask)
    ask("config", "set", "corpus.exclude", "docs/, *.log.txt", cwd=root)
    report = ask("index", cwd=root)
    assert report["files_deleted"] == 4
    assert not [name for name in indexed(root, ask) if name.startswith("docs/")]
    assert ask("status", cwd=root)["drift"] == {"new": 0, "changed": 0, "deleted": 0}


def test_links_of_every_kind(make_corpus: MakeCorpus, ask: Ask, put: Put) -> None:
    """Links: to `.`, to an ancestor, to a file outside the root."""
    root = make_corpus({"a.md": "zebra a\n", "sub/b.md": "zebra b\n"})
    put(root.parent, {"outside/secret.md": "zebra outside\n"})
    for name, target in {
        "self": ".",
        "sub/up": "..",
        "sub/top": str(root),
        "out.md": "../outside/secret.md",
        "outdir": "../outside",
        "dangling.md": "nowhere.md",
        "loop.md": "loop.md",
        "inside.md": "sub/b.md",
        "insidedir": "sub",
        "etc.txt": "/etc/passwd",
    }.items():
        (root / name).symlink_to(target)
    report = ask("index", cwd=root)
    assert report["ok"]
    assert indexed(root, ask) == ["a.md", "sub/b.md"]
    assert report["skipped"]["symlink"] == 10
    ask("index", "--follow-symlinks", cwd=root)
    assert indexed(root, ask) == ["a.md", "inside.md", "insidedir/b.md", "sub/b.md"]
    ask("index", cwd=root)
    assert indexed(root, ask) == ["a.md", "sub/b.md"]


def test_a_corpus_that_is_a_link(make_corpus: MakeCorpus, ask: Ask) -> None:
    """A corpus that *is* a link."""
    root = make_corpus({"a.md": "zebra a\n", "sub/b.md": "zebra b\n"})
    link = root.parent / "link"
    link.symlink_to(root)
    ask("index", cwd=link)
    assert indexed(link, ask) == ["a.md", "sub/b.md"]
    report = ask("index", cwd=root)
    assert (report["files_indexed"], report["files_unchanged"]) == (0, 2)
    ask("index", str(link / "a.md"), cwd=root)
    ask("index", str(root / "a.md"), cwd=link / "sub")
    assert ask("status", cwd=root)["files"] == 2


def test_special_files_do_not_block(
    make_corpus: MakeCorpus, ask: Ask, ragx_environment: Environment
) -> None:
    """FIFO, socket, device: a FIFO that nobody writes to would block for ever."""
    root = make_corpus({"a.md": "zebra a\n"})
    os.mkfifo(root / "pipe.md")
    listener = socket.socket(socket.AF_UNIX)
    here = Path.cwd()
    try:
        os.chdir(root)  # a socket's path may have about 100 characters
        listener.bind("sock.md")
    finally:
        os.chdir(here)
        listener.close()
    (root / "null.md").symlink_to("/dev/null")
    done = subprocess.run(
        [sys.executable, "-m", "ragx", "index", "--json"],
        cwd=root, env=ragx_environment(), capture_output=True, timeout=30, check=False,
    )  # fmt: skip
    assert done.returncode == 0
    report = json.loads(done.stdout)
    assert report["skipped"]["special"] == 2
    assert report["skipped"]["symlink"] == 1
    (root / "pipe.md").unlink()
    os.mkfifo(root / "b.md")
    assert ask("index", cwd=root)["ok"]


def test_a_file_that_becomes_a_fifo_before_it_is_read(
    make_corpus: MakeCorpus, ragx_environment: Environment
) -> None:
    root = make_corpus({"a.md": "zebra a\n", "b.md": "zebra b\n"})
    code = (
        "import os, sys, ragx.indexing.build as b\n"
        "real = b.scan\n"
        "def scan(root, options):\n"
        "    seen = real(root, options)\n"
        "    os.unlink(root / 'a.md'); os.mkfifo(root / 'a.md')\n"
        "    return seen\n"
        "b.scan = scan\n"
        "from ragx.shells.cli.main import main\n"
        "sys.exit(main(['index', '--json']))"
    )
    try:
        subprocess.run(
            [sys.executable, "-c", code], cwd=root, env=ragx_environment(), capture_output=True,
            timeout=30, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        pytest.fail("the run hangs")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads everything")
def test_modes_that_forbid_reading(make_corpus: MakeCorpus, ask: Ask) -> None:
    """Mode 000, directory without x. (As root: simulated in unit/indexing/test_build.py.)"""
    root = make_corpus({"a.md": "zebra a\n", "b.md": "zebra b\n", "dark/c.md": "zebra c\n"})
    (root / "b.md").chmod(0)
    (root / "dark").chmod(0)
    try:
        report = ask("index", cwd=root, status=2)
        assert {item["file"] for item in report["failed"]} == {"b.md", "dark/"}
        assert indexed(root, ask) == ["a.md"]
    finally:
        (root / "dark").chmod(0o700)


NAMES = [
    "with space.md",
    "new\nline.md",
    "tab\there.md",
    "quote'\".md",
    "-dash.md",
    "--json.md",
    "émoji 🦓.md",
    "日本語.md",
    "semi;colon&.md",
    "back\\slash.md",
    "star*?[x].md",
    "#hash!.md",
    "trailing .md",
    "..dots.md",
    "%41.md",
    "\u202ertl.md",
    "e\u0301 nfd.md",
    "\u00e9 nfc.md",
    "x" * 250 + ".md",
    "\x1b[31mred.md",
]


def test_names_of_every_kind(make_corpus: MakeCorpus, ask: Ask, ragx_inline: RunCli) -> None:
    """Names with spaces, newlines, quotes, leading dash, emoji."""
    root = make_corpus({name: f"zebra number{i}\n" for i, name in enumerate(NAMES)})
    report = ask("index", cwd=root)
    assert report["files_indexed"] == len(NAMES)
    assert indexed(root, ask) == sorted(NAMES)
    for i, name in enumerate(NAMES):
        assert files(ask("query", f"number{i}", cwd=root))[0] == name
        assert ask("inspect", "file", "--", name, cwd=root)["path"] == name
        (root / name).write_text(f"zebra other{i}\n")
        assert ask("index", "--", f"./{name}", cwd=root)["files_indexed"] == 1
    assert indexed(root, ask) == sorted(NAMES)
    done = ragx_inline("query", "zebra", "--files-only", "--top", "100", cwd=root)
    assert len(done.stdout.splitlines()) == len(NAMES)
    assert "\x1b" not in done.stdout
    for name in NAMES:
        (root / name).unlink()
    assert ask("index", cwd=root)["files_deleted"] == len(NAMES)


def test_a_name_that_is_no_unicode(
    make_corpus: MakeCorpus, ask: Ask, ragx_environment: Environment
) -> None:
    """Names with invalid UTF-8."""
    root = make_corpus({"a.md": "zebra a\n"})
    bad = os.fsencode(root) + b"/bad\xff\xfe.md"
    with open(bad, "wb") as handle:
        handle.write(b"zebra bad\n")
    os.mkdir(os.fsencode(root) + b"/dir\xe9")
    done = subprocess.run(
        [sys.executable, "-m", "ragx", "index", "-v", "--json"],
        cwd=root, env=ragx_environment(), capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0
    report = json.loads(done.stdout.decode("utf-8"))
    assert report["skipped"]["bad_name"] == 2
    shown = [item["file"] for item in report["skipped_files"] if item["reason"] == "bad_name"]
    assert any("bad" in name for name in shown)
    assert indexed(root, ask) == ["a.md"]


def test_a_corpus_below_a_name_that_is_no_unicode(
    tmp_path: Path, ragx_environment: Environment
) -> None:
    root = os.fsencode(tmp_path) + b"/corp\xff"
    os.mkdir(root)
    with open(root + b"/ragx.toml", "w") as handle:
        handle.write('[embeddings]\nprovider = "none"\n')
    with open(root + b"/a.md", "w") as handle:
        handle.write("zebra\n")
    for args, status in ((["index"], 0), (["query", "zebra"], 0), (["status"], 0)):
        done = subprocess.run(
            [sys.executable, "-m", "ragx", *args, "--json"],
            cwd=root, env=ragx_environment(), capture_output=True, check=False,
        )  # fmt: skip
        assert done.returncode == status, done.stdout
        json.loads(done.stdout.decode("utf-8"))


def test_what_is_never_entered(make_corpus: MakeCorpus, ask: Ask) -> None:
    """SPEC 4: Always skipped: `.git`, `.ragx`, `node_modules`, virtualenvs, caches, hidden dirs."""
    root = make_corpus(
        {
            "a.md": "zebra\n",
            "node_modules/x/readme.md": "zebra x\n",
            "env/pyvenv.cfg": "home = /usr\n",
            "env/lib/site.py": "zebra = 1\n",
            "pkg/__pycache__/m.py": "zebra = 2\n",
            ".git/config.md": "zebra git\n",
            ".cache/c.md": "zebra cache\n",
            "nested/.ragx/old.md": "zebra old\n",
            ".env.local": "ZEBRA=1\n",
            "id_rsa": "zebra\n",
        }
    )
    ask("index", cwd=root)
    assert indexed(root, ask) == ["a.md"]


def test_a_tree_that_is_very_deep(make_corpus: MakeCorpus, ask: Ask) -> None:
    root = make_corpus({"a.md": "zebra top\n"})
    deep = "/".join(["d"] * 300) + "/z.md"
    directory = root
    for _ in range(300):
        directory = directory / "d"
        directory.mkdir()
    (directory / "z.md").write_text("zebra deep\n")
    ask("index", cwd=root)
    assert indexed(root, ask) == sorted(["a.md", deep])


def test_names_that_differ_in_case_or_form_only(make_corpus: MakeCorpus, ask: Ask) -> None:
    root = make_corpus({"A.md": "zebra one\n", "a.md": "zebra two\n"})
    if len(list(root.glob("*.md"))) < 2:
        pytest.skip("the file system does not tell them apart")
    ask("index", cwd=root)
    assert indexed(root, ask) == ["A.md", "a.md"]

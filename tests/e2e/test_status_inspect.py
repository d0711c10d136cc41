"""`ragx status` and `ragx inspect` through the command line."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

RunCli = Callable[..., "subprocess.CompletedProcess[str]"]
MakeCorpus = Callable[..., Path]
Ask = Callable[..., dict[str, Any]]
Put = Callable[[Path, Mapping[str, str | bytes]], None]

NOTES = {
    "a.md": "# Alpha\n\nThe zebra grazes.\n\n# Beta\n\n" + "A lion sleeps. " * 200,
    "sub/c.py": "class Größe:\n    def count(self):\n        return 1\n",
    "empty.md": "",
    "old.md": b"caf\xe9\r\nzebra\r\n",
}


@pytest.fixture
def notes(make_corpus: MakeCorpus, ask: Ask) -> Path:
    root = make_corpus(NOTES)
    ask("index", cwd=root)
    return root


# Status.


def test_before_the_first_run(make_corpus: MakeCorpus, ask: Ask, ragx_inline: RunCli) -> None:
    root = make_corpus(NOTES)
    document = ask("status", cwd=root, status=1)
    assert (document["schema"], document["indexed"]) == ("ragx.status.v1", False)
    assert document["drift"] == {"new": 4, "changed": 0, "deleted": 0}
    assert not (root / ".ragx").exists()
    done = ragx_inline("status", cwd=root)
    assert done.returncode == 1
    assert "ragx index" in done.stdout


def test_counts_and_drift(notes: Path, ask: Ask, put: Put) -> None:
    document = ask("status", cwd=notes)
    assert (document["files"], document["drift"]) == (4, {"new": 0, "changed": 0, "deleted": 0})
    assert document["root"] == str(notes)
    assert document["embedding_provider"] == "none"
    put(notes, {"new.md": "x\n", "a.md": "# Alpha\n\nother\n"})
    (notes / "old.md").unlink()
    (notes / "empty.md").touch()  # only touched
    document = ask("status", cwd=notes)
    assert document["drift"] == {"new": 1, "changed": 1, "deleted": 1}
    ask("index", cwd=notes)
    assert ask("status", cwd=notes)["drift"] == {"new": 0, "changed": 0, "deleted": 0}


def test_status_and_index_see_the_same_files(make_corpus: MakeCorpus, ask: Ask) -> None:
    """HOSTILE: The same walker for index, status, `--full`: the same set of files from each."""
    root = make_corpus(
        {
            **NOTES, ".gitignore": "ignored/\n*.log\n!keep.log\n", "ignored/x.md": "x",
            "b.log": "x",
            "keep.log": "x", "node_modules/m/r.md": "x", ".hidden/h.md": "x", ".env": "K=1",
            "bin.md": b"\0\1", "LICENSE": "x", "pic.xyz": "x", "big.md": "x" * 5000,
        },
        settings="[corpus]\nmax_file_bytes = 4000\n",
    )  # fmt: skip
    (root / ".git").mkdir()
    (root / "link.md").symlink_to("a.md")
    dry = ask("index", "--dry-run", cwd=root)
    new = ask("status", cwd=root, status=1)["drift"]["new"]
    report = ask("index", cwd=root)
    status = ask("status", cwd=root)
    full = ask("index", "--full", cwd=root)
    assert dry["files"] == report["files_indexed"] == status["files"] == full["files_indexed"] == 4
    assert new == 5  # the binary one is known for what it is once it has been read
    assert report["skipped"] == status["skipped"] == full["skipped"] == dry["skipped"]
    assert report["skipped"]["binary"] == 1


def test_limits_are_printed(notes: Path, ask: Ask, ragx_inline: RunCli) -> None:
    """HOSTILE: Two size limits, one undocumented. One limit, one place, printed by `status`."""
    document = ask("status", cwd=notes)
    assert document["limits"]["max_file_bytes"] == 10485760
    assert "limits" in ragx_inline("status", cwd=notes).stdout


def test_a_damaged_index_is_said_by_status(notes: Path, ask: Ask) -> None:
    (notes / ".ragx" / "index.db").write_bytes(b"garbage " * 5000)
    document = ask("status", cwd=notes, status=2)
    assert document["error"]["code"] == "index_damaged"
    assert "--full" in document["error"]["hint"]


# Inspect.


def test_a_file_and_its_chunks(notes: Path, ask: Ask, ragx_cli: RunCli) -> None:
    done = ragx_cli("inspect", "file", "a.md", "--json", cwd=notes)
    document = json.loads(done.stdout)
    assert document["schema"] == "ragx.inspect.file.v1"
    assert document["path"] == "a.md"
    assert document["chunk_count"] == len(document["chunks"]) >= 2
    raw = (notes / "a.md").read_bytes()
    ids = [part["id"] for part in document["chunks"]]
    for at, part in enumerate(document["chunks"]):
        text = raw[part["byte_start"] : part["byte_end"]].decode()
        chunk = ask("inspect", "chunk", str(part["id"]), cwd=notes)
        assert chunk["text"] == text
        assert chunk["file"] == "a.md"
        assert (chunk["line_start"], chunk["line_end"]) == (part["line_start"], part["line_end"])
        assert " ".join(text.split()).startswith(part["preview"])
        # Nothing in this corpus names anything: chunks are joined to those they stand between.
        assert {edge["id"] for edge in chunk["edges"]} == {
            *ids[max(0, at - 1) : at],
            *ids[at + 1 : at + 2],
        }
        assert {(edge["kind"], edge["weight"]) for edge in chunk["edges"]} == {("adjacent", 1.0)}


def test_encodings_symbols_and_nothing(notes: Path, ask: Ask) -> None:
    old = ask("inspect", "file", "old.md", "--text", cwd=notes)
    assert old["encoding"] == "cp1252"
    assert old["note"]
    assert old["chunks"][0]["text"].split() == ["café", "zebra"]
    empty = ask("inspect", "file", "empty.md", cwd=notes)
    assert (empty["status"], empty["chunk_count"], empty["chunks"]) == ("ok", 0, [])
    code = ask("inspect", "file", "sub/c.py", cwd=notes)
    chunk = ask("inspect", "chunk", str(code["chunks"][0]["id"]), cwd=notes)
    assert "Größe" in chunk["symbols"]
    assert code["language"] == "python"


@pytest.mark.parametrize("name", ["sub/c.py", "./sub/c.py", "sub/../sub/c.py"])
def test_one_file_however_it_is_spelled(notes: Path, ask: Ask, name: str) -> None:
    assert ask("inspect", "file", name, cwd=notes)["path"] == "sub/c.py"
    assert ask("inspect", "file", str(notes / name), cwd=notes)["path"] == "sub/c.py"


def test_from_below(notes: Path, ask: Ask) -> None:
    assert ask("inspect", "file", "c.py", cwd=notes / "sub")["path"] == "sub/c.py"


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["chunk", "1"], "no_such_chunk"),
        (["chunk", "--", "-1"], "no_such_chunk"),
        (["chunk", "99999999999999999999"], "no_such_chunk"),
        (["chunk", "abc"], "usage"),
        (["chunk"], "usage"),
        (["file", "nope.md"], "no_such_file"),
        (["file", "../x.md"], "usage"),
        (["file", ""], None),
        (["file", "sub"], "no_such_file"),
        (["nothing"], "unknown_command"),
        ([], "no_command"),
    ],
)
def test_refusals(notes: Path, ask: Ask, args: list[str], code: str | None) -> None:
    document = ask("inspect", *args, cwd=notes, status=2)
    assert document["schema"] == "ragx.error.v1"
    assert code in (None, document["error"]["code"])


def test_the_nearest_name_is_suggested(notes: Path, ask: Ask) -> None:
    document = ask("inspect", "file", "sub/cc.py", cwd=notes, status=2)
    assert "sub/c.py" in document["error"]["hint"]


def test_as_text(notes: Path, ragx_inline: RunCli) -> None:
    done = ragx_inline("inspect", "file", "a.md", cwd=notes)
    assert done.returncode == 0
    assert done.stdout.startswith("a.md: ok")
    done = ragx_inline("inspect", "file", "a.md", "--text", cwd=notes)
    assert "The zebra grazes." in done.stdout


def test_control_characters_do_not_reach_a_terminal(
    make_corpus: MakeCorpus, ask: Ask, ragx_inline: RunCli
) -> None:
    root = make_corpus({"a.md": "zebra \x1b]0;title\x07 end\n"})
    ask("index", cwd=root)
    (part,) = ask("inspect", "file", "a.md", cwd=root)["chunks"]
    for args in (["chunk", str(part["id"])], ["file", "a.md", "--text"]):
        assert "\x1b" not in ragx_inline("inspect", *args, cwd=root).stdout


def test_looking_changes_nothing(notes: Path, ask: Ask) -> None:
    before = {p.name: p.read_bytes() for p in (notes / ".ragx").iterdir() if "-shm" not in p.name}
    ask("status", cwd=notes)
    ask("inspect", "file", "a.md", cwd=notes)
    after = {p.name: p.read_bytes() for p in (notes / ".ragx").iterdir() if "-shm" not in p.name}
    assert {k: v for k, v in after.items() if v} == {k: v for k, v in before.items() if v}

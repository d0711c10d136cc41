"""`ragx read`: chunks and lines as they were indexed, whatever the disk holds by now."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

RunCli = Callable[..., "subprocess.CompletedProcess[str]"]
MakeCorpus = Callable[..., Path]
Ask = Callable[..., dict[str, Any]]

PARTS = "".join(
    f"## Part {n}\n\nOkapi {n} eats leaves.\n\n\n" + f"Line of part {n}. " * 60 + "\n\n"
    for n in range(12)
)


@pytest.fixture
def root(make_corpus: MakeCorpus, ask: Ask) -> Path:
    root = make_corpus(
        {
            "a.md": "# One\r\n\r\nfirst\r\n\r\nlast",
            "mac.txt": b"one\rtwo\rthree\r",
            "wide.md": "\ufeff# Ä\n\nschön\n".encode("utf-16-le"),
            "latin.txt": "Schöne Preise – ab fünf\n".encode("cp1252"),
            "parts.md": PARTS,
            "odd:3-4": "one\ntwo\n",
            "12345": "a file with the name of a number\n",
            "empty.md": b"",
        },
        settings="\n[corpus]\ninclude = ['**']\n",
    )
    ask("index", cwd=root)
    return root


@pytest.mark.parametrize(
    ("place", "lines", "text"),
    [
        ("a.md", (1, 5, 5), "# One\r\n\r\nfirst\r\n\r\nlast"),
        ("a.md:3", (3, 5, 5), "first\r\n\r\nlast"),
        ("a.md:2-4", (2, 4, 5), "\r\nfirst\r\n"),
        ("a.md:5-99", (5, 5, 5), "last"),
        ("./a.md:1-1", (1, 1, 5), "# One"),
        ("mac.txt:2-2", (2, 2, 3), "two"),
        ("wide.md", (1, 3, 3), "# Ä\n\nschön"),
        ("latin.txt", (1, 1, 1), "Schöne Preise – ab fünf"),
        ("odd:3-4", (1, 2, 2), "one\ntwo"),
        ("odd:3-4:2", (2, 2, 2), "two"),
        ("12345", (1, 1, 1), "a file with the name of a number"),
    ],
)
def test_lines(root: Path, ask: Ask, place: str, lines: tuple[int, int, int], text: str) -> None:
    found = ask("read", place, cwd=root)
    assert (found["line_start"], found["line_end"], found["total_lines"]) == lines
    assert found["text"] == text
    assert (found["state"], found["next_line"], found["truncated"]) == ("current", None, False)
    assert (
        found["source_version"] == ask("inspect", "file", found["file"], cwd=root)["content_hash"]
    )


def test_a_long_range_is_read_in_steps(root: Path, ask: Ask) -> None:
    at, text = 1, ""
    while at:
        found = ask("read", f"parts.md:{at}", "--max-chars", "3000", cwd=root)
        assert len(found["text"]) <= 3000
        text += found["text"] + "\n"
        at = found["next_line"]
    assert text == PARTS


def test_a_long_line_is_cut_and_it_says_so(root: Path, ask: Ask, ragx_inline: RunCli) -> None:
    found = ask("read", "parts.md:6", "--max-chars", "50", cwd=root)
    assert (len(found["text"]), found["truncated"], found["next_line"]) == (50, True, 7)
    done = ragx_inline("read", "parts.md:6", "--max-chars", "50", cwd=root)
    assert done.stdout.startswith("parts.md:6-6 of 84  version ")
    assert done.stderr.splitlines() == [
        "line 6 is longer than what is shown of it",
        "more follows from line 7",
    ]


def test_a_chunk(root: Path, ask: Ask) -> None:
    for part in ask("inspect", "file", "parts.md", "--text", cwd=root)["chunks"]:
        found = ask("read", str(part["id"]), cwd=root)
        assert (found["chunk_id"], found["text"]) == (part["id"], part["text"])
        assert (found["line_start"], found["line_end"]) == (part["line_start"], part["line_end"])


@pytest.mark.parametrize("name", ["a.md", "mac.txt", "wide.md", "latin.txt", "parts.md"])
@pytest.mark.parametrize("gone", [False, True])
def test_a_file_that_has_changed_is_shown_as_it_was_indexed(
    root: Path, ask: Ask, ragx_inline: RunCli, name: str, gone: bool
) -> None:
    before = ask("read", name, "--max-chars", "100000", cwd=root)
    if gone:
        (root / name).unlink()
    else:
        (root / name).write_bytes(b"something else entirely\n" * 3)
    after = ask("read", name, "--max-chars", "100000", cwd=root)
    assert after["state"] == ("gone" if gone else "changed")
    assert after["source_version"] == before["source_version"]
    # Blank lines between chunks are not stored: their ends are filled in.
    shown = [item["text"].splitlines() for item in (before, after)]
    assert [[row.strip() for row in rows] for rows in shown[:1]] == [
        [row.strip() for row in rows] for rows in shown[1:]
    ]
    assert "ragx index" in ragx_inline("read", name, cwd=root).stderr


def test_another_version_is_never_shown_in_its_place(root: Path, ask: Ask) -> None:
    old = ask("read", "a.md", cwd=root)["source_version"]
    assert ask("read", "a.md", "--source-version", old, cwd=root)["source_version"] == old
    (root / "a.md").write_text("# Two\n")
    assert ask("read", "a.md", "--source-version", old, cwd=root)["text"].startswith("# One")
    ask("index", cwd=root)
    found = ask("read", "a.md", "--source-version", old, cwd=root, status=2)
    assert found["error"]["code"] == "source_replaced"
    assert ask("read", "a.md", cwd=root)["text"] == "# Two"


@pytest.mark.parametrize(
    ("place", "code"),
    [
        ("b.md", "no_such_file"),
        ("a.md:6", "no_such_lines"),
        ("a.md:0", "no_such_lines"),
        ("a.md:4-2", "no_such_lines"),
        ("empty.md", "not_indexed"),
        ("../a.md", "usage"),
        ("99", "no_such_chunk"),
        ("9999999999999999", "no_such_chunk"),
    ],
)
def test_what_is_not_there(root: Path, ask: Ask, place: str, code: str) -> None:
    error = ask("read", place, cwd=root, status=2)["error"]
    assert error["code"] == code
    assert error["hint"] or "range" in error["message"]

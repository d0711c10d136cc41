"""`ragx eval-draft`: where a draft goes, what it says, and what it leaves alone."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from ragx import contracts

RunCli = Callable[..., "subprocess.CompletedProcess[str]"]
MakeCorpus = Callable[..., Path]
Document = Callable[..., dict[str, Any]]

FILES = {
    "docs/care.md": "# Painting the keel in winter\n\nWith a brush.\n",
    "docs/keys.rst": "Rotate the signing keys\n=======================\n\nOnce a year.\n",
    "src/hold.py": '"""Where barrels of salt are stowed."""\n\nDEPTH = 4\n',
}


@pytest.fixture
def corpus(make_corpus: MakeCorpus, ragx_inline: RunCli) -> Path:
    root = make_corpus(FILES)
    assert ragx_inline("index", cwd=root).returncode == 0
    return root


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_the_draft_is_the_output_as_a_process(corpus: Path, ragx_cli: RunCli) -> None:
    done = ragx_cli("eval-draft", cwd=corpus / "docs")
    assert done.returncode == 0
    found = lines(done.stdout)
    assert [list(item) for item in found] == [["id", "query", "relevant", "kind", "from"]] * 3
    assert [(item["query"], item["relevant"]) for item in found] == [
        ("Painting the keel in winter", ["docs/care.md"]),
        ("Rotate the signing keys", ["docs/keys.rst"]),
        ("Where barrels of salt are stowed", ["src/hold.py"]),
    ]
    assert done.stderr == "note: no commits: the corpus is not in a git repository\n"
    assert ragx_cli("eval-draft", "-o", "-", cwd=corpus).stdout == done.stdout


def test_a_file_is_written_where_the_user_stands_and_never_over_another(
    corpus: Path, ragx_inline: RunCli, ask: Document
) -> None:
    done = ragx_inline("eval-draft", "-o", "queries.jsonl", cwd=corpus / "docs")
    written = corpus / "docs" / "queries.jsonl"
    assert done.returncode == 0
    assert done.stdout == (
        "wrote 3 queries to queries.jsonl (2 from headings, 1 from docstrings);"
        " edit them, then: ragx eval queries.jsonl\n"
    )
    assert len(lines(written.read_text(encoding="utf-8"))) == 3

    written.write_text("edited\n", encoding="utf-8")
    again = ragx_inline("eval-draft", "-o", "queries.jsonl", cwd=corpus / "docs")
    assert again.returncode == 2
    assert "queries.jsonl exists" in again.stderr
    assert "hint: " in again.stderr
    assert written.read_text(encoding="utf-8") == "edited\n"
    # A draft in the corpus is not taken for a part of it.
    assert ask("status", cwd=corpus)["drift"] == {"new": 0, "changed": 0, "deleted": 0}


def test_a_file_that_cannot_be_made(corpus: Path, ask: Document, tmp_path: Path) -> None:
    (tmp_path / "dangling").symlink_to("nowhere")
    for name, code in (("absent/q.jsonl", "usage"), (str(tmp_path / "dangling"), "file_exists")):
        found = ask("eval-draft", "-o", name, cwd=corpus, status=2)
        assert found["error"]["code"] == code
        assert found["error"]["hint"]
    assert not (tmp_path / "nowhere").exists()


def test_the_document_has_the_queries_and_the_file(corpus: Path, ask: Document) -> None:
    found = ask("eval-draft", "--limit", "2", cwd=corpus)
    assert (found["count"], found["by_kind"]) == (
        2,
        {"headings": 1, "docstrings": 1, "commits": 0},
    )
    assert "file" not in found
    found = ask("eval-draft", "-o", "q.jsonl", "--kinds", "headings", cwd=corpus)
    assert found["file"] == str(corpus / "q.jsonl")
    assert found["by_kind"] == {"headings": 2}
    written = lines((corpus / "q.jsonl").read_text(encoding="utf-8"))
    assert written == found["queries"]
    validator = Draft202012Validator(contracts.load("ragx.eval_draft.v1"))
    assert [error.message for error in validator.iter_errors(found)] == []
    found["queries"][0]["surprise"] = 1
    assert not validator.is_valid(found)


def test_nothing_to_draft_is_empty_and_writes_no_file(
    corpus: Path, ragx_inline: RunCli, ask: Document
) -> None:
    done = ragx_inline("eval-draft", "--kinds", "commits", "-o", "q.jsonl", cwd=corpus)
    assert (done.returncode, done.stdout) == (1, "")
    assert "nothing to draft" in done.stderr
    found = ask("eval-draft", "--kinds", "commits", "-o", "q.jsonl", cwd=corpus, status=1)
    assert (found["count"], found["queries"]) == (0, [])
    assert found["notes"] == ["no commits: the corpus is not in a git repository"]
    assert "file" not in found
    assert not (corpus / "q.jsonl").exists()


@pytest.mark.parametrize("kinds", ["titles", "headings,titles", "", ","])
def test_kinds_that_there_are_not(corpus: Path, ask: Document, kinds: str) -> None:
    found = ask("eval-draft", "--kinds", kinds, cwd=corpus, status=2)
    assert found["error"]["code"] == "usage"
    assert found["error"]["hint"] == "kinds: headings,docstrings,commits"


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_commits_of_a_larger_repository(
    make_corpus: MakeCorpus, ragx_inline: RunCli, ask: Document, tmp_path: Path
) -> None:
    root = make_corpus(FILES, root=tmp_path / "whole" / "part")

    def git(*args: str) -> None:
        identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        subprocess.run(["git", *identity, *args], cwd=root.parent, check=True, capture_output=True)

    git("init", "-q")
    git("add", "-A")
    git("commit", "-q", "-m", "feat(hold): Stow barrels below the deck (#7)")
    ragx_inline("index", cwd=root)
    found = ask("eval-draft", "--kinds", "commits", cwd=root)
    (only,) = found["queries"]
    assert only["query"] == "Stow barrels below the deck"
    assert only["relevant"] == ["docs/care.md", "docs/keys.rst", "src/hold.py"]
    assert found["notes"] == []


def test_what_could_command_a_terminal_is_escaped_and_reads_back(
    make_corpus: MakeCorpus, ragx_inline: RunCli
) -> None:
    name = "do\u202ecs.md"
    root = make_corpus({name: "# Painting the \x9bkeel in winter\n"})
    ragx_inline("index", cwd=root)
    done = ragx_inline("eval-draft", cwd=root)
    assert "\u202e" not in done.stdout
    (only,) = lines(done.stdout)
    assert only["relevant"] == [name]
    assert "\x9b" not in only["query"]

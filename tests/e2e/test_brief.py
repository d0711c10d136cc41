"""`ragx query --brief`, and how little `--json` says of what stands far down."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from ragx import contracts

RunCli = Callable[..., "subprocess.CompletedProcess[str]"]
MakeCorpus = Callable[..., Path]
Ask = Callable[..., dict[str, Any]]

LONG = "".join(
    f"## Part {part}\n\nzebra{part} grazes here. {'Grass grows on. ' * 90}\n\n" for part in range(4)
)


@pytest.fixture
def zoo(make_corpus: MakeCorpus, ask: Ask) -> Path:
    root = make_corpus(
        {
            "a/zebra.md": "# Zebra\n\nIt has stripes.\nNobody knows why.\nLions hunt the zebra.\n",
            "käse 斑马.md": "zebra\n\n斑马 🦓 grazes\n",
            "copy1.md": "A copied zebra.\n",
            "copy2.md": "A copied zebra.\n",
            "long.md": "# Long\n\n" + LONG,
        }
    )
    ask("index", cwd=root)
    return root


def test_a_block_for_each_file(ragx_inline: RunCli, ask: Ask, zoo: Path) -> None:
    done = ragx_inline("query", "hunt zebra", "--brief", cwd=zoo)
    assert (done.returncode, done.stderr) == (0, "")
    rows = done.stdout.splitlines()
    assert rows[:2] == ["a/zebra.md:1-5  Zebra", "    Lions hunt the zebra."]
    assert "käse 斑马.md:1-3" in rows
    at = rows.index("copy1.md:1-1")
    assert rows[at + 1 : at + 3] == ["  same text in copy2.md", "    A copied zebra."]
    named = [row.partition(".md:")[0] + ".md" for row in rows if not row.startswith(" ")]
    assert named == [e["file"] for e in ask("query", "hunt zebra", cwd=zoo)["results"]]


def test_the_document_says_what_the_long_one_says(ask: Ask, zoo: Path) -> None:
    long = ask("query", "zebra2 zebra3 grazes grass", cwd=zoo)
    brief = ask("query", "zebra2 zebra3 grazes grass", "--brief", cwd=zoo)
    assert not list(Draft202012Validator(contracts.load("ragx.brief.v1")).iter_errors(brief))
    assert list(brief) == ["schema", "query", "files"]
    for short, entry in zip(brief["files"], long["results"], strict=True):
        spans = [f"{part['line_start']}-{part['line_end']}" for part in entry["chunks"]]
        assert [short["lines"], *short.get("more", [])] == spans
        assert short["file"] == entry["file"]
        assert short.get("also_in", []) == entry["also_in"]
        assert short.get("heading", "") == " > ".join(entry["chunks"][0]["heading"])
        disk = (zoo / entry["file"]).read_text(encoding="utf-8")
        for row in short["text"].split("\n"):
            assert row.removeprefix("...").removesuffix("...") in disk
    (first,) = [entry for entry in brief["files"] if entry["file"] == "long.md"]
    assert len(first["more"]) == 2
    assert "zebra" in first["text"]


def test_it_is_short(make_corpus: MakeCorpus, ragx_inline: RunCli, ask: Ask) -> None:
    root = make_corpus({f"f{i:02}.md": f"# Title {i}\n\nzebra {i}. " + LONG for i in range(20)})
    ask("index", cwd=root)
    done = ragx_inline("query", "zebra", "--brief", cwd=root)
    assert done.stdout.count(".md:") == 20
    assert len(done.stdout) < 20 * 160


def test_nothing_found(ragx_inline: RunCli, ask: Ask, zoo: Path) -> None:
    done = ragx_inline("query", "platypus", "--brief", cwd=zoo)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.strip()
    assert ask("query", "platypus", "--brief", cwd=zoo, status=1)["files"] == []


@pytest.mark.parametrize(
    "flags",
    [["--explain"], ["--files-only"], ["-A", "0"], ["-B", "1"], ["-C", "2"], ["--explain", "-C1"]],
)
def test_what_it_does_not_go_with(
    ask: Ask, ragx_inline: RunCli, zoo: Path, flags: list[str]
) -> None:
    error = ask("query", "zebra", "--brief", *flags, cwd=zoo, status=2)["error"]
    assert error["code"] == "usage"
    assert flags[0] in error["message"]
    assert "leave out" in error["hint"]
    done = ragx_inline("query", "zebra", "--brief", *flags, cwd=zoo)
    assert (done.returncode, done.stdout) == (2, "")


def test_hostile_names_and_texts(make_corpus: MakeCorpus, ask: Ask, ragx_inline: RunCli) -> None:
    names = ["b\x1b[1m.md", "new\nline.md", "turn\u202e.md", 'quote".md']
    text = "# H\x1b[2J\u202e\n\nzebra \x1b[31mred \x07 \u009b \u2028 end\n"
    root = make_corpus({name: f"{text}{i}\n" for i, name in enumerate(names)})
    ask("index", cwd=root)
    done = ragx_inline("query", "zebra", "--brief", cwd=root)
    assert done.returncode == 0
    assert not set(done.stdout) & set("\x1b\x07\u009b\u202e\u2028")
    heads = [row for row in done.stdout.splitlines() if not row.startswith(" ")]
    assert len(heads) == len(names)
    assert any(row.startswith("new\\nline.md:") for row in heads)
    document = ask("query", "zebra", "--brief", cwd=root)
    assert {entry["file"] for entry in document["files"]} == set(names)


def test_a_file_that_went_is_still_named(ask: Ask, zoo: Path) -> None:
    (zoo / "copy1.md").unlink()
    brief = ask("query", "copied", "--brief", cwd=zoo)
    assert [entry["file"] for entry in brief["files"]] == ["copy1.md"]


def test_same_question_same_bytes(ragx_cli: RunCli, zoo: Path) -> None:
    runs = {ragx_cli("query", "zebra grass", "--brief", "--json", cwd=zoo).stdout for _ in range(2)}
    assert len(runs) == 1
    assert json.loads(runs.pop())["schema"] == "ragx.brief.v1"


# The long document: first results in full, pointers for the rest.


@pytest.fixture
def herd(make_corpus: MakeCorpus, ask: Ask) -> Path:
    root = make_corpus({f"f{i:02}.md": f"# Title {i}\n\nherd{i}\n\n{LONG}" for i in range(12)})
    ask("index", cwd=root)
    return root


def test_texts_get_shorter_down_the_list_and_stay_beginnings(ask: Ask, herd: Path) -> None:
    results = ask("query", "zebra1 zebra2 grazes", cwd=herd)["results"]
    assert len(results) == 12
    for rank, entry in enumerate(results, start=1):
        raw = (herd / entry["file"]).read_bytes()
        for nth, part in enumerate(entry["chunks"], start=1):
            best, further = (1200, 300) if rank <= 3 else (300, 100) if rank <= 10 else (100, 100)
            whole = raw[part["byte_start"] : part["byte_end"]].decode()
            assert part["text"] == whole[: best if nth == 1 else further]
            assert part["truncated"] == (part["text"] != whole)


def test_context_comes_with_the_first_results_unless_asked_for(ask: Ask, herd: Path) -> None:
    def shown(*flags: str) -> list[tuple[int, int]]:
        results = ask("query", "zebra1 zebra2 grazes", *flags, cwd=herd)["results"]
        return [
            (rank, nth)
            for rank, entry in enumerate(results, start=1)
            for nth, part in enumerate(entry["chunks"], start=1)
            if "context" in part
        ]

    assert shown() == [(1, 1), (2, 1), (3, 1)]
    everywhere = shown("-C", "5")
    assert len(everywhere) > 12
    assert shown("-A", "1") == shown("-B", "1", "-A", "0") == everywhere
    assert shown("-C", "0") == []


# The benchmark.


def test_the_benchmark_measures_every_form(zoo: Path, ragx_environment: Callable[..., Any]) -> None:
    repository = Path(__file__).parents[2]
    topics = [
        {"query": "lions hunt", "relevant": ["a/zebra.md"], "answer": "hunt the zebra"},
        {"query": "copied zebra", "relevant": ["copy2.md"]},
        {"query": "platypus", "relevant": ["long.md"]},
    ]
    queries = zoo.parent / "queries.jsonl"
    queries.write_text("".join(json.dumps(topic) + "\n" for topic in topics[:1]))
    done = _benchmark(repository, f"{zoo}={queries}", ragx_environment())
    assert done.stderr == ""
    rows = {row.split("|")[1].strip(): row for row in done.stdout.splitlines() if "|" in row}
    assert "| 1.00 / 1.00 / 1.00 | 1.00 / 1.00 / 1.00 |" in rows["`--brief`"]
    assert "| .00 / .00 / .00 | .00 / .00 / .00 |" in rows["`--files-only`"]
    assert rows["`--json`"].endswith("| 1.00 / 1.00 / 1.00 |")
    queries.write_text("".join(json.dumps(topic) + "\n" for topic in topics[1:]))
    done = _benchmark(repository, f"{zoo}={queries}", ragx_environment())
    assert "| .50 / .50 / .50 | .50 / .50 / .50 |" in done.stdout  # one by its copy, one not at all


def _benchmark(
    repository: Path, corpus: str, environment: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(repository / "benchmarks" / "tokens.py"), "--parts", corpus],
        env={**environment, "PYTHONPATH": str(repository)}, capture_output=True, encoding="utf-8",
        check=False,
    )  # fmt: skip

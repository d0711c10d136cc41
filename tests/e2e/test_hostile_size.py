"""HOSTILE.md, "Size and shape", through the command line. Docstrings quote its lines."""

from __future__ import annotations

import json
import random
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

MakeCorpus = Callable[..., Path]
Ask = Callable[..., dict[str, Any]]
Environment = Callable[..., dict[str, str]]
RunCli = Callable[..., "subprocess.CompletedProcess[str]"]


def files(answer: dict[str, Any]) -> list[str]:
    return [entry["file"] for entry in answer["results"]]


def base64_text(n: int) -> str:
    import base64

    return base64.b64encode(random.Random(0).randbytes(n * 3 // 4)).decode()


SHAPES = {
    "line.txt": "needle " + "word " * 1000,
    "bundle.js": "/*needle*/" + "function a(b){return b+1};var c=a(2);" * 8300,
    "base64.md": base64_text(40_000) + "\n\nneedle\n",
    "hex.txt": random.Random(1).randbytes(9_900).hex() + "\nneedle\n",
    "spaces.txt": " " * 100_000 + "needle",
    "newlines.txt": "\n" * 100_000 + "needle",
    "list.md": "needle\n\n" + "- item\n" * 8000,
    "table.md": "# needle\n\n| a | b |\n|---|---|\n" + "| cell | other |\n" * 4000,
    "fence.md": "needle\n\n```\n" + "code line\n" * 4000,
    "quotes.md": ">" * 5000 + " needle\n",
    "numbers.json": "[" + "0," * 40_000 + '"needle"]',
    "minified.css": ".a{color:red}" * 4000 + ".needle{color:blue}",
}


@pytest.mark.parametrize("name", SHAPES)
def test_hostile_shapes(make_corpus: MakeCorpus, ask: Ask, name: str) -> None:
    """A 5,000-character line, a 300 KB one-line bundle, 40 KB of base64 first in the corpus."""
    text = SHAPES[name]
    root = make_corpus({name: text, "z.md": "zebra\n"})
    started = time.monotonic()
    report = ask("index", cwd=root)
    assert time.monotonic() - started < 8
    assert (report["files_indexed"], report["skipped"]) in (
        (2, {}),
        (2, {"excluded": 1}),  # ragx.toml itself
    )
    assert files(ask("query", "zebra", "-C", "0", cwd=root)) == ["z.md"]
    assert files(ask("query", "needle", "-C", "0", cwd=root)) == [name]
    view = ask("inspect", "file", name, "--text", cwd=root)
    lengths = [len(part["text"]) for part in view["chunks"]]
    assert max(lengths) <= 20_000
    # Windows of a split block overlap by 15 %.
    assert sum(lengths) <= 1.4 * len(text) + 1000


@pytest.mark.parametrize("limit", [200, 1000])
def test_the_hard_limit_of_a_chunk(make_corpus: MakeCorpus, ask: Ask, limit: int) -> None:
    root = make_corpus({name: text[:30_000] for name, text in SHAPES.items()})
    ask("index", "--max-chunk-chars", str(limit), cwd=root)
    for name in SHAPES:
        view = ask("inspect", "file", name, "--text", cwd=root)
        assert all(len(part["text"]) <= limit for part in view["chunks"]), name


def test_megabytes_of_markdown_in_bounded_memory(
    make_corpus: MakeCorpus, ragx_environment: Environment
) -> None:
    """60 MB of Markdown: no crash, bounded memory. Here 5 MB in one file, and 4 in small ones."""
    section = (
        "## Part {}\n\n" + "Some words about zebras, lions and the like, in a line.\n" * 12 + "\n"
    )
    text = "# Big\n\n" + "".join(section.format(i) for i in range(7_500))
    assert len(text) > 5_000_000
    small = "".join(section.format(i) for i in range(60))
    root = make_corpus(
        {"big.md": text, **{f"s{i:03}.md": f"# S{i}\n\n{small}" for i in range(100)}}
    )
    started = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "ragx", "index", "--json"],
        cwd=root, env=ragx_environment(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert process.stdout is not None
    out = process.stdout.read()
    process.stdout.close()
    _, status, usage = _wait(process)
    assert status == 0
    assert json.loads(out)["files_indexed"] == 101
    assert usage.ru_maxrss < 700_000  # KiB
    assert time.monotonic() - started < 40


def _wait(process: subprocess.Popen[bytes]) -> tuple[int, int, resource.struct_rusage]:
    import os

    pid, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return pid, status, usage


@pytest.mark.parametrize("raw", [b"", b"  \n\t \n", b"\xef\xbb\xbf", b"\n\n", b"\xff\xfe", b"\r"])
@pytest.mark.parametrize("name", ["a.md", "a.py", "a.txt", "a.json"])
def test_nothing_to_read_is_remembered(
    make_corpus: MakeCorpus, ask: Ask, name: str, raw: bytes
) -> None:
    """Empty, whitespace-only, BOM-only, newline-only file: zero chunks is legal and remembered."""
    root = make_corpus({name: raw, "z.md": "zebra\n"})
    report = ask("index", cwd=root)
    assert (report["ok"], report["files_indexed"], report["skipped"].get("binary", 0)) == (
        True,
        2,
        0,
    )
    again = ask("index", cwd=root)
    assert (again["files_indexed"], again["files_unchanged"]) == (0, 2)
    view = ask("inspect", "file", name, cwd=root)
    assert (view["status"], view["chunk_count"]) == ("ok", 0)
    assert ask("status", cwd=root)["drift"] == {"new": 0, "changed": 0, "deleted": 0}


def test_a_small_file_with_one_long_line_stays(make_corpus: MakeCorpus, ask: Ask) -> None:
    """A small file dropped because one line is long ("minified" guessed from averages)."""
    root = make_corpus(
        {"a.js": "var zebra = '" + "x" * 3000 + "';\n", "b.json": '{"zebra": 1}' + " " * 9000}
    )
    report = ask("index", cwd=root)
    assert report["files_indexed"] == 2
    assert set(files(ask("query", "zebra", cwd=root))) == {"a.js", "b.json"}


def test_the_one_size_limit_is_exact_and_said(make_corpus: MakeCorpus, ask: Ask) -> None:
    """Two size limits, one undocumented. One limit, one place, printed by `status`."""
    root = make_corpus(
        {"fits.md": "zebra" + "x" * 995, "over.md": "zebra" + "x" * 996},
        settings="[corpus]\nmax_file_bytes = 1000\n",
    )
    report = ask("index", "-v", cwd=root)
    assert report["skipped"]["too_large"] == 1
    assert {"file": "over.md", "reason": "too_large"} in report["skipped_files"]
    status = ask("status", cwd=root)
    assert status["limits"]["max_file_bytes"] == 1000
    assert status["skipped"]["too_large"] == 1
    assert ask("index", "--max-file-bytes", "2000", cwd=root)["files_indexed"] == 1


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.js", "(" * 50_000 + "1" + ")" * 50_000 + "\nvar zebra = 1;\n"),
        ("a.py", "x = " + "[" * 50_000 + "]" * 50_000 + "\nzebra = 1\n"),
        ("a.c", "{" * 50_000 + "int zebra;" + "}" * 50_000),
        ("a.json", "[" * 50_000 + '"zebra"' + "]" * 50_000),
        ("a.ts", "<div>" * 9000 + "zebra" + "</div>" * 9000),
        ("a.py", "".join(" " * i + f"if x{i}:\n" for i in range(400)) + " " * 400 + "zebra = 1\n"),
        ("a.md", "".join("> " * i + f"- item {i}\n" for i in range(300)) + "\nzebra\n"),
        ("a.rs", "fn f() {" * 9000 + "zebra" + "}" * 9000),
    ],
    ids=["js", "py", "c", "json", "ts", "py-indent", "md", "rs"],
)  # fmt: skip
def test_deeply_nested_source(make_corpus: MakeCorpus, ask: Ask, name: str, text: str) -> None:
    """Deeply nested source overflows the parser's stack: fall back to text chunks."""
    root = make_corpus({name: text})
    started = time.monotonic()
    report = ask("index", cwd=root)
    assert report["files_indexed"] == 1
    assert files(ask("query", "zebra", "-C", "0", cwd=root)) == [name]
    assert time.monotonic() - started < 8


def test_copies_are_indexed_once_for_all(make_corpus: MakeCorpus, ask: Ask) -> None:
    """2,000 copies of one licence header: duplicates do not break the index nor fill the answer."""
    header = "# Copyright the zebra authors. All rights are reserved by the herd.\n"
    root = make_corpus(
        {f"p{i % 50}/f{i:04}.py": f"{header}\n\ndef f{i}():\n    return {i}\n" for i in range(500)}
    )
    report = ask("index", cwd=root)
    assert (report["ok"], report["files_indexed"]) == (True, 500)
    answer = ask("query", "zebra herd copyright", "--top", "20", cwd=root)
    assert len(answer["results"]) == 20
    answer = ask("query", "f0123", "--top", "3", cwd=root)
    assert files(answer)[0] == "p23/f0123.py"


def test_the_embedder_never_sees_more_than_its_limit(
    ragx_cli: RunCli, make_corpus: MakeCorpus
) -> None:
    """The embedder never sees more than its limit: none of these files may fail."""
    shapes = {
        name: SHAPES[name][:6000] for name in ("line.txt", "bundle.js", "base64.md", "numbers.json")
    }
    root = make_corpus(
        {
            **shapes,
            "deep.md": "".join(f"{'#' * i} {'alpha beta ' * 50}{i}\n\n" for i in range(1, 7))
            + "word " * 500,
        },
        provider="builtin",
    )  # fmt: skip
    done = ragx_cli("index", "--json", cwd=root)
    report = json.loads(done.stdout)
    assert done.returncode == 0, report
    assert report["failed"] == []
    status = json.loads(ragx_cli("status", "--json", cwd=root).stdout)
    assert status["chunks_without_vector"] == 0

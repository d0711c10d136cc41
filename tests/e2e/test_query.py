"""`ragx query` through the real command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

RunCli = Callable[..., "subprocess.CompletedProcess[str]"]
MakeCorpus = Callable[..., Path]
Ask = Callable[..., dict[str, Any]]
Put = Callable[[Path, Mapping[str, str | bytes]], None]
Environment = Callable[..., dict[str, str]]

NOTES = {
    "zebra.md": "# Zebra\n\nIntro.\n\n\n## Stripes\n\nThe zebra is striped.\n\n\nOutro line.\n",
    "lion.md": "# Lion\n\nThe lion hunts the zebra at night.\n",
    "fish.md": "# Fish\n\nThe trout swims.\n",
    "code.py": "def count_stripes(zebra):\n    return len(zebra.stripes)\n",
}


@pytest.fixture
def notes(make_corpus: MakeCorpus, ask: Ask) -> Path:
    root = make_corpus(NOTES)
    ask("index", cwd=root)
    return root


def files(answer: dict[str, Any]) -> list[str]:
    return [entry["file"] for entry in answer["results"]]


# Exit codes and documents.


def test_found_not_found_and_wrong(ragx_cli: RunCli, notes: Path) -> None:
    found = ragx_cli("query", "zebra", "--json", cwd=notes)
    assert found.returncode == 0
    document = json.loads(found.stdout)
    assert document["schema"] == "ragx.query.v3"
    assert set(files(document)) == {"zebra.md", "lion.md", "code.py"}
    nothing = ragx_cli("query", "platypus", "--json", cwd=notes)
    assert nothing.returncode == 1
    assert json.loads(nothing.stdout)["results"] == []
    wrong = ragx_cli("query", "zebra", "--tpo", "3", "--json", cwd=notes)
    assert wrong.returncode == 2
    assert "--top" in json.loads(wrong.stdout)["error"]["hint"]
    for done in (found, nothing, wrong):
        assert done.stderr == ""


def test_as_text(ragx_inline: RunCli, notes: Path) -> None:
    done = ragx_inline("query", "striped zebra", cwd=notes)
    assert done.returncode == 0
    assert done.stdout.splitlines()[0].startswith("zebra.md")
    assert "The zebra is striped." in done.stdout
    assert "\x1b" not in done.stdout
    done = ragx_inline("query", "platypus", cwd=notes)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.strip()


def test_words_need_no_quotes(ask: Ask, notes: Path) -> None:
    assert ask("query", "striped", "zebra", cwd=notes)["query"] == "striped zebra"


@pytest.mark.parametrize(
    ("args", "code"),
    [
        ([], "usage"),
        ([""], "empty_query"),
        ([" \n"], "empty_query"),
        (["x", "--top", "0"], "usage"),
        (["x", "--top", "1001"], "usage"),
        (["x", "--top", "many"], "usage"),
        (["x", "--mode", "psychic"], "usage"),
        (["x", "-A", "-1"], "usage"),
        (["x", "--mode", "vector"], "usage"),
        (["é" * 50_001], "query_too_long"),
    ],
)
def test_refusals(ask: Ask, notes: Path, args: list[str], code: str) -> None:
    document = ask("query", *args, cwd=notes, status=2)
    assert (document["schema"], document["error"]["code"]) == ("ragx.error.v1", code)
    assert document["error"]["message"]
    assert document["error"]["hint"] or code == "usage"


def test_no_index_and_empty_index(make_corpus: MakeCorpus, ask: Ask) -> None:
    root = make_corpus(NOTES)
    document = ask("query", "zebra", cwd=root, status=2)
    assert document["error"]["code"] == "index_missing"
    assert "ragx index" in document["error"]["hint"]
    assert not (root / ".ragx").exists()
    empty = make_corpus({}, root=root.parent / "empty")
    ask("index", cwd=empty)
    assert ask("query", "zebra", cwd=empty, status=1)["results"] == []


def test_from_standard_input(ragx_cli: RunCli, notes: Path) -> None:
    done = ragx_cli("query", "-", "--json", cwd=notes, input="\ufeffstriped\r\nzebra\n\n")
    assert done.returncode == 0
    assert json.loads(done.stdout)["results"][0]["file"] == "zebra.md"
    for given, code in (
        ("", "empty_query"),
        (" \n", "empty_query"),
        ("x" * 100_001, "query_too_long"),
    ):
        done = ragx_cli("query", "-", "--json", cwd=notes, input=given)
        assert done.returncode == 2
        assert json.loads(done.stdout)["error"]["code"] == code


def test_standard_input_that_is_not_utf8_or_closed(
    notes: Path, ragx_environment: Environment
) -> None:
    command = [sys.executable, "-m", "ragx", "query", "-", "--json"]
    done = subprocess.run(
        command, input=b"caf\xe9 zebra", cwd=notes, env=ragx_environment(), capture_output=True,
        check=False,
    )  # fmt: skip
    assert (done.returncode, json.loads(done.stdout)["error"]["code"]) == (2, "not_utf8")
    done = subprocess.run(
        ["sh", "-c", '"$@" <&-', "sh", *command],
        cwd=notes, env=ragx_environment(), capture_output=True, check=False,
    )  # fmt: skip
    assert (done.returncode, json.loads(done.stdout)["error"]["code"]) == (2, "empty_query")


def test_a_question_of_100_kilobytes(ask: Ask, notes: Path) -> None:
    """HOSTILE: Empty, blank, 100 KB, whole-file queries."""
    text = ("zebra and other words number " * 4000)[:100_000].strip()
    assert len(text) <= 100_000
    answer = ask("query", "-", cwd=notes, input=text)
    assert set(files(answer)) == {"zebra.md", "lion.md", "code.py"}
    whole = NOTES["zebra.md"] * 300
    assert files(ask("query", "-", cwd=notes, input=whole))[0] == "zebra.md"


@pytest.mark.parametrize(
    "text",
    [
        "POL-358", "a'b", '"', "NEAR(", "col:x", "foo AND", "*", "^x", "🐘", '""', "(", ")", "a OR",
        "-", "--", "\\", "NOT zebra", "zebra*", "body:zebra", "zebra\0lion", "\u202e",
        "zebra)(", "{zebra}", "zebra;drop table chunks", "%", "?", "zebra\nlion",
    ],
)  # fmt: skip
@pytest.mark.parametrize("mode", ["hybrid", "lexical"])
def test_signs_are_signs(ask: Ask, notes: Path, text: str, mode: str) -> None:
    """HOSTILE: FTS syntax in plain text."""
    document = ask("query", "-", "--mode", mode, cwd=notes, input=text, status=None)
    assert document["schema"] == "ragx.query.v3"
    assert bool(document["results"]) == ("zebra" in text or "lion" in text)


def test_a_question_that_is_no_unicode(notes: Path, ragx_environment: Environment) -> None:
    done = subprocess.run(
        [sys.executable.encode(), b"-m", b"ragx", b"query", b"zebra \xff\xfe", b"--json"],
        cwd=notes, env=ragx_environment(), capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["results"]) == 3


# Operators.


def test_phrases_and_words_to_leave_out(ask: Ask, notes: Path) -> None:
    assert files(ask("query", '"hunts the zebra"', cwd=notes)) == ["lion.md"]
    assert files(ask("query", 'stripes "hunts the zebra"', cwd=notes))[0] == "lion.md"
    assert set(files(ask("query", "zebra -lion", cwd=notes))) == {"zebra.md", "code.py"}
    assert set(files(ask("query", "zebra", "-lion", cwd=notes))) == {"zebra.md", "code.py"}
    assert set(files(ask("query", "--", "-lion", "zebra", cwd=notes))) == {"zebra.md", "code.py"}
    assert ask("query", "--", "-zebra", cwd=notes, status=1)["results"] == []


# Shapes of the answer.


def test_every_location_is_the_text_on_disk(ask: Ask, notes: Path) -> None:
    for entry in ask("query", "zebra trout", cwd=notes)["results"]:
        raw = (notes / entry["file"]).read_bytes()
        for chunk in entry["chunks"]:
            text = raw[chunk["byte_start"] : chunk["byte_end"]].decode()
            assert text == chunk["text"]
            assert not chunk["truncated"]
            lines = raw.decode().split("\n")[chunk["line_start"] - 1 : chunk["line_end"]]
            assert "\n".join(lines).strip() == text.strip()
            assert 0 <= chunk["chunk_id"] < 2**53


def test_scores_fall_and_are_rounded(ask: Ask, notes: Path) -> None:
    answer = ask("query", "zebra stripes", cwd=notes)
    scores = [entry["score"] for entry in answer["results"]]
    assert scores == sorted(scores, reverse=True)
    for entry in answer["results"]:
        for chunk in entry["chunks"]:
            assert chunk["score"] == round(chunk["score"], 6)
            assert all(value == round(value, 6) for value in chunk["breakdown"].values())


def test_a_long_chunk_is_cut_between_characters(
    make_corpus: MakeCorpus, ask: Ask, tmp_path: Path
) -> None:
    """HOSTILE: Chunk cuts inside an emoji, surrogate pair, combining sequence; previews too."""
    family, accent = "👩‍👩‍👧‍👦", "e\u0301\u0323"
    for i, unit in enumerate((family, accent, "🇨🇭", "𠮷")):
        for lead in range(3):
            root = make_corpus(
                {"a.md": "zebra " + "x" * lead + unit * (200 // len(unit))},
                root=tmp_path / f"corpus{i}{lead}",
                settings="[query]\nmax_chunk_chars = 100\n",
            )
            ask("index", cwd=root)
            (entry,) = ask("query", "zebra", cwd=root)["results"]
            chunk = entry["chunks"][0]
            assert chunk["truncated"]
            assert 100 - len(unit) < len(chunk["text"]) <= 100
            assert (len(chunk["text"]) - 6 - lead) % len(unit) == 0
            raw = (root / "a.md").read_bytes()
            whole = raw[chunk["byte_start"] : chunk["byte_end"]].decode()
            assert whole.startswith(chunk["text"])
            assert len(whole) > len(chunk["text"])


def test_files_only(ask: Ask, ragx_inline: RunCli, notes: Path) -> None:
    full = ask("query", "zebra", cwd=notes)
    document = ask("query", "zebra", "--files-only", cwd=notes)
    assert document["schema"] == "ragx.files.v1"
    assert [(e["file"], e["score"], e["chunk_ids"]) for e in document["files"]] == [
        (e["file"], e["score"], [c["chunk_id"] for c in e["chunks"]]) for e in full["results"]
    ]
    done = ragx_inline("query", "zebra", "--files-only", cwd=notes)
    assert done.stdout == "".join(f"{name}\n" for name in files(full))


@pytest.mark.parametrize("top", [1, 2, 3, 1000])
def test_top(ask: Ask, notes: Path, top: int) -> None:
    every = files(ask("query", "zebra", cwd=notes))
    assert files(ask("query", "zebra", "--top", str(top), cwd=notes)) == every[:top]


def test_top_from_the_settings(make_corpus: MakeCorpus, ask: Ask) -> None:
    root = make_corpus(NOTES, settings="[query]\ntop = 1\n")
    ask("index", cwd=root)
    assert len(ask("query", "zebra", cwd=root)["results"]) == 1
    assert len(ask("query", "zebra", "--top", "5", cwd=root)["results"]) == 3


def test_paths_are_of_the_root_wherever_one_stands(
    make_corpus: MakeCorpus, ask: Ask, tmp_path: Path
) -> None:
    root = make_corpus({**NOTES, "deep/er/okapi.md": "# Okapi\n\nshy\n"})
    ask("index", cwd=root)
    for cwd, extra in ((root / "deep" / "er", []), (tmp_path, ["--root", str(root)])):
        assert files(ask("query", "okapi", *extra, cwd=cwd)) == ["deep/er/okapi.md"]


def test_same_question_same_bytes(ragx_inline: RunCli, notes: Path) -> None:
    runs = {ragx_inline("query", "zebra stripes", "--json", cwd=notes).stdout for _ in range(3)}
    assert len(runs) == 1


# Context lines.


def around(answer: dict[str, Any], needle: str) -> Any:
    for entry in answer["results"]:
        for chunk in entry["chunks"]:
            if needle in chunk["text"]:
                return chunk.get("context", "absent")
    raise AssertionError(f"no chunk with {needle!r}")


@pytest.fixture
def lines(make_corpus: MakeCorpus, ask: Ask) -> Path:
    body = "".join(f"## Part {i}\n\n{f'word{i} ' * 60}\n\n\n" for i in range(9))
    root = make_corpus({"a.md": "# Top\n\n" + body}, settings="[chunking]\nsize_tokens = 40\n")
    ask("index", cwd=root)
    return root


@pytest.mark.parametrize(
    ("flags", "n_before", "n_after"),
    [
        ([], 5, 5),
        (["-C", "2"], 2, 2),
        (["-C", "2", "-B", "1"], 1, 2),
        (["-A", "3", "-C", "2"], 2, 3),
        (["-A", "1"], 5, 1),
        (["-B", "0", "-A", "1"], 0, 1),
        (["--before", "1", "--after", "0"], 1, 0),
        (["-C", "0", "-A", "1"], 0, 1),
    ],
)
def test_explicit_sides_win_over_context_which_wins_over_the_default(
    ask: Ask, lines: Path, flags: list[str], n_before: int, n_after: int
) -> None:
    context = around(ask("query", "word4", *flags, cwd=lines), "word4")
    for side, n in (("before", n_before), ("after", n_after)):
        if n == 0:
            assert context[side] is None
        else:
            text = context[side]["text"]
            assert sum(bool(line.strip()) for line in text.split("\n")) == n


def test_both_sides_off_means_no_key(ask: Ask, lines: Path) -> None:
    assert around(ask("query", "word4", "-C", "0", cwd=lines), "word4") == "absent"
    assert around(ask("query", "word4", "-B", "0", "-A", "0", cwd=lines), "word4") == "absent"


def test_no_lines_left_is_null(make_corpus: MakeCorpus, ask: Ask) -> None:
    root = make_corpus({"a.md": "zebra\n\n\n"})
    ask("index", cwd=root)
    assert around(ask("query", "zebra", cwd=root), "zebra") == {"before": None, "after": None}


def test_context_lines_are_what_stands_there(ask: Ask, lines: Path) -> None:
    disk = (lines / "a.md").read_text().split("\n")
    for entry in ask("query", "word4", "-C", "3", cwd=lines)["results"]:
        for chunk in entry["chunks"]:
            for side in ("before", "after"):
                part = chunk["context"][side]
                if part:
                    wanted = "\n".join(disk[part["line_start"] - 1 : part["line_end"]])
                    assert part["text"].rstrip("\n") == wanted.rstrip("\n")
            if chunk["context"]["before"]:
                assert chunk["context"]["before"]["line_end"] == chunk["line_start"] - 1
            if chunk["context"]["after"]:
                assert chunk["context"]["after"]["line_start"] == chunk["line_end"] + 1


def test_long_context_is_never_cut(make_corpus: MakeCorpus, ask: Ask) -> None:
    long = "long " * 5000
    root = make_corpus({"a.py": f"x = '{long}'\n\n\ndef zebra():\n    return 1\n"})
    ask("index", cwd=root)
    context = around(ask("query", "zebra", cwd=root), "def zebra")
    if context["before"]:
        assert context["before"]["text"].count("long") == 5000


def test_a_file_that_changed_or_went_is_said_and_not_guessed(ask: Ask, notes: Path) -> None:
    (notes / "zebra.md").write_text("# Other\n\ntext now\n" * 20)
    (notes / "lion.md").unlink()
    answer = ask("query", "zebra", cwd=notes)
    assert set(files(answer)) == {"zebra.md", "lion.md", "code.py"}
    for entry in answer["results"]:
        if entry["file"] != "code.py":
            for chunk in entry["chunks"]:
                assert chunk["context"] == {"before": None, "after": None}
    assert any("zebra.md" in line and "changed" in line for line in answer["warnings"])
    assert any("lion.md" in line and "gone" in line for line in answer["warnings"])
    assert ask("query", "zebra", "--files-only", cwd=notes)["warnings"] == []


# Duplicates.


def test_copies_are_folded_and_k_are_returned(make_corpus: MakeCorpus, ask: Ask) -> None:
    """HOSTILE: 2,000 copies of one licence header: duplicates do not fill the answer."""
    header = "/* Permission is granted to use this zebra software freely. */\n"
    copies = {f"src/f{i:04}.c": header for i in range(2000)}
    own = {f"own{i}.md": f"Permission to keep a zebra, case {i}.\n" for i in range(8)}
    root = make_corpus({**copies, **own})
    report = ask("index", cwd=root)
    assert report["files_indexed"] == 2008
    answer = ask("query", "permission zebra software", "--top", "9", cwd=root)
    assert len(answer["results"]) == 9
    assert [name for name in files(answer) if name.startswith("src/")] == ["src/f0000.c"]
    (entry,) = [e for e in answer["results"] if e["file"] == "src/f0000.c"]
    assert "src/f0001.c" in entry["also_in"]
    done = ask("query", "permission zebra software", "--top", "9", "--files-only", cwd=root)
    assert len(done["files"]) == 9


# Terminals and pipes.


def test_control_characters_do_not_reach_a_terminal(
    make_corpus: MakeCorpus, ask: Ask, ragx_inline: RunCli
) -> None:
    root = make_corpus(
        {"a.md": "zebra \x1b[31mred\x1b[0m \x07 \x08 \x7f end\n", "b\x1b[1m.md": "zebra\n"}
    )
    ask("index", cwd=root)
    done = ragx_inline("query", "zebra", cwd=root)
    assert done.returncode == 0
    assert not set(done.stdout) & set("\x1b\x07\x08\x7f")


def test_c1_control_characters_do_not_reach_a_terminal(
    make_corpus: MakeCorpus, ask: Ask, ragx_inline: RunCli
) -> None:
    root = make_corpus({"a.md": "zebra \u009b31mred \u0085 \u009d end\n"})
    ask("index", cwd=root)
    done = ragx_inline("query", "zebra", cwd=root)
    assert not {char for char in done.stdout if "\x80" <= char <= "\x9f"}


@pytest.mark.parametrize(
    "env",
    [
        {"LC_ALL": "C"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    ],
)
def test_any_locale(
    ragx_cli: RunCli, make_corpus: MakeCorpus, ask: Ask, env: dict[str, str]
) -> None:
    """HOSTILE: Reading with the platform's default encoding: once under `LC_ALL=C`."""
    root = make_corpus({"plain.md": "# Käse\n\nŽebra 斑马 🦓 läuft.\n"})
    done = ragx_cli("index", "--json", cwd=root, env=env)
    assert (done.returncode, json.loads(done.stdout)["files_indexed"]) == (0, 1), done.stderr
    for text in ("斑马", "läuft 🦓"):
        # From standard input, whose encoding is ragx's own choice; arguments are the system's.
        done = ragx_cli("query", "-", "--json", cwd=root, env=env, input=text)
        assert done.returncode == 0, text
        (entry,) = json.loads(done.stdout)["results"]
        assert entry["chunks"][0]["text"] == "# Käse\n\nŽebra 斑马 🦓 läuft."
        assert entry["chunks"][0]["heading"] == ["Käse"]
    done = ragx_cli("query", "zebra", cwd=root, env=env)
    assert "Žebra 斑马 🦓" in done.stdout


def test_names_in_the_c_locale(ragx_cli: RunCli, make_corpus: MakeCorpus) -> None:
    root = make_corpus({"käse.md": "zebra\n"})
    ragx_cli("index", cwd=root, env={"LC_ALL": "C"})
    done = ragx_cli("query", "zebra", "--files-only", cwd=root, env={"LC_ALL": "C"})
    assert done.stdout == "käse.md\n"


def test_a_reader_that_leaves_early(
    make_corpus: MakeCorpus, ask: Ask, ragx_environment: Environment
) -> None:
    root = make_corpus({f"f{i:03}.md": f"zebra {i} " + f"text{i} " * 900 for i in range(120)})
    ask("index", cwd=root)
    for extra in ([], ["--json"], ["--files-only"]):
        process = subprocess.Popen(
            [sys.executable, "-m", "ragx", "query", "zebra", "--top", "100", *extra],
            cwd=root, env=ragx_environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(1)
        process.stdout.close()
        assert process.stderr.read() == b""
        process.stderr.close()
        assert process.wait(timeout=30) == 0


def test_a_query_while_the_index_is_written(make_corpus: MakeCorpus, ask: Ask, put: Put) -> None:
    """HOSTILE: query loop during index. No "database is locked", no torn state."""
    root = make_corpus({f"f{i}.md": "zebra generation0\n" for i in range(30)})
    ask("index", cwd=root)
    process = None
    seen = set()
    for generation in range(1, 3):
        put(root, {f"f{i}.md": f"zebra generation{generation}\n" for i in range(30)})
        process = subprocess.Popen(
            [sys.executable, "-m", "ragx", "index", "--json"], cwd=root, stdout=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        )  # fmt: skip
        while process.poll() is None:
            answer = ask("query", "zebra", "-C", "0", "--top", "30", cwd=root)
            texts = {c["text"] for e in answer["results"] for c in e["chunks"]}
            assert len(texts) == 1, texts
            seen |= texts
            time.sleep(0.01)
        assert process.returncode == 0
    assert len(seen) >= 2


# The model.


def test_a_server_that_is_down_names_the_way_out(make_corpus: MakeCorpus, ask: Ask) -> None:
    """SPEC 5: an embedding server that is down: exit 2 with the hint `--mode lexical`."""
    settings = 'base_url = "http://127.0.0.1:9/v1"\nmodel = "m"\nconnect_timeout_s = 0.2\n'
    root = make_corpus(NOTES)
    ask("index", cwd=root)
    # An index whose vectors belong to that server, as far as its manifest goes.
    make_corpus(NOTES, provider="openai", settings=settings)
    document = ask("query", "zebra", cwd=root, status=2)
    assert document["error"]["code"] in ("manifest_mismatch", "provider_unavailable")
    assert files(ask("query", "zebra", "--mode", "lexical", cwd=root))


def test_another_model_than_the_index_has(make_corpus: MakeCorpus, ask: Ask) -> None:
    root = make_corpus(NOTES)
    ask("index", cwd=root)
    make_corpus(NOTES, provider="builtin")
    document = ask("query", "zebra", cwd=root, status=2)
    assert document["error"]["code"] == "manifest_mismatch"
    assert "none" in document["error"]["message"]
    assert "builtin" in document["error"]["message"]
    assert "--full" in document["error"]["hint"]

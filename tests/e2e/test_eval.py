"""`ragx eval` through the real command line."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable
from math import log2
from pathlib import Path
from typing import Any

import pytest

from ragx.store.queries import QUERIES_NAME

RunCli = Callable[..., "subprocess.CompletedProcess[str]"]
MakeCorpus = Callable[..., Path]
Ask = Callable[..., dict[str, Any]]

FILES = {
    "zebra.md": "# Zebra\n\nThe striped zebra grazes on the plain; see [lions](lion.md).\n",
    "lion.md": "# Lion\n\nThe lion hunts at night and sleeps all day.\n",
    "trout.md": "# Trout\n\nThe trout swims in the cold river.\n",
    "twin.md": "# Trout\n\nThe trout swims in the cold river.\n",
    "bread.md": "# Bread\n\nKnead the dough, let it rise, then bake it in a hot oven.\n",
    "empty.md": "",
}
QUERIES = [
    {"id": "stripes", "query": "striped zebra", "relevant_files": ["zebra.md"]},
    {"query": "how to make a loaf at home", "relevant": {"./bread.md": 2, "lion.md": 0}},
    {"query": "cold river", "relevant": ["trout.md", "twin.md"], "grades": {"twin.md": 2}},
    {"id": 7, "query": "quantum chromodynamics", "relevant_files": ["lion.md"]},
]
NAMES = ("recall_at_5", "recall_at_10", "recall_at_20", "recall_at_100", "mrr", "mrr_at_10")


def write_queries(path: Path, queries: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in queries), encoding="utf-8")
    return path


@pytest.fixture
def lexical(make_corpus: MakeCorpus, ask: Ask, tmp_path: Path) -> Path:
    """An index of words alone, and beside the corpus the questions."""
    root = make_corpus(FILES)
    ask("index", cwd=root)
    write_queries(tmp_path / "q.jsonl", QUERIES)
    return root


@pytest.fixture
def built(make_corpus: MakeCorpus, ask: Ask, tmp_path: Path) -> Path:
    """The same with the built-in model."""
    root = make_corpus(FILES, provider="builtin")
    ask("index", cwd=root)
    write_queries(tmp_path / "q.jsonl", QUERIES)
    return root


def without_times(document: dict[str, Any]) -> str:
    return re.sub(r'"latency_ms": (\{[^}]*\}|[\d.]+)', "", json.dumps(document))


# The document.


def test_an_index_of_words_alone(ragx_cli: RunCli, lexical: Path) -> None:
    done = ragx_cli("eval", "../q.jsonl", "--json", cwd=lexical)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    found = json.loads(done.stdout)
    assert (found["schema"], found["top"], found["query_count"]) == ("ragx.eval.v1", 100, 4)
    assert [item["name"] for item in found["configs"]] == ["lexical", "rules", "graph"]
    assert [(item["id"], item["query"]) for item in found["queries"]] == [
        (str(line.get("id", at)), line["query"]) for at, line in enumerate(QUERIES, start=1)
    ]
    ranks = {item["id"]: item["per_config"]["lexical"] for item in found["queries"]}
    assert ranks["stripes"]["hit_ranks"] == [1]
    # Equal texts are one entry, and the other file stands directly after it.
    assert ranks["3"]["hit_ranks"] == [1, 2]
    best = 2 / log2(2) + 1 / log2(3)
    assert ranks["3"]["ndcg_at_10"] == round((1 / log2(2) + 2 / log2(3)) / best, 6)
    assert ranks["7"]["hit_ranks"] == []
    assert all(ranks["7"][name] == 0 for name in (*NAMES, "ndcg_at_10"))
    # A query without any hit counts.
    lexical_scores = found["configs"][0]
    for name in (*NAMES, "ndcg_at_10"):
        values = [item["per_config"]["lexical"][name] for item in found["queries"]]
        assert lexical_scores[name] == pytest.approx(sum(values) / 4, abs=1e-6)
    assert 0 < lexical_scores["latency_ms"]["p50"] <= lexical_scores["latency_ms"]["p95"]


def test_all_configurations_with_the_built_in_model(ragx_cli: RunCli, built: Path) -> None:
    done = ragx_cli("eval", "../q.jsonl", "--json", cwd=built)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    names = ["baseline", "lexical", "rrf", "fusion", "rules", "graph"]
    assert [item["name"] for item in found["configs"]] == names
    bread = found["queries"][1]["per_config"]
    assert bread["baseline"]["hit_ranks"] == [1]  # it has no word of the question
    assert bread["lexical"]["hit_ranks"] != [1]
    assert [(item["one"], item["other"]) for item in found["comparisons"]] == [
        (name, "graph") for name in names[:-1]
    ]
    for item in found["comparisons"]:
        assert item["metric"] == "ndcg_at_10"
        assert 0 < item["p"] <= 1
        counts = (item["queries_won"], item["queries_lost"], item["queries_tied"])
        assert sum(counts) == 4
        assert "won" not in item

    # Again: nothing is embedded, and all but the times is the same.
    kept = built / ".ragx" / QUERIES_NAME
    before = kept.read_bytes()
    again = ragx_cli("eval", "../q.jsonl", "--json", cwd=built)
    assert without_times(json.loads(again.stdout)) == without_times(found)
    assert kept.read_bytes() == before

    # A damaged file of vectors is only slower.
    kept.write_bytes(before[:-1] + bytes([before[-1] ^ 1]))
    third = ragx_cli("eval", "../q.jsonl", "--json", cwd=built)
    assert without_times(json.loads(third.stdout)) == without_times(found)
    assert len(kept.read_bytes()) == len(before)
    assert kept.read_bytes() != before[:-1] + bytes([before[-1] ^ 1])


def test_a_rerun_asks_the_server_nothing(
    make_corpus: MakeCorpus, ask: Ask, tmp_path: Path, embedding_server: Any
) -> None:
    root = make_corpus(FILES)
    (root / "ragx.toml").write_text(f"[embeddings]\n{embedding_server.settings}")
    ask("index", cwd=root)
    path = write_queries(tmp_path / "q.jsonl", QUERIES)
    embedding_server.taken()
    first = ask("eval", str(path), cwd=root)
    asked = embedding_server.taken()
    assert set(asked) == {line["query"] for line in QUERIES}
    assert len(asked) == len(QUERIES) + 1  # the first one twice, to be warm
    second = ask("eval", str(path), cwd=root)
    assert embedding_server.taken() == []
    assert without_times(first) == without_times(second)
    # Configurations that search words alone need neither.
    (root / ".ragx" / QUERIES_NAME).unlink()
    ask("eval", str(path), "--configs", "lexical", cwd=root)
    assert embedding_server.taken() == []


def test_queries_won_and_lost(ask: Ask, built: Path) -> None:
    found = ask(
        "eval", "../q.jsonl", "--configs", "lexical", "--compare", "lexical", "baseline",
        "--metric", "mrr", cwd=built,
    )  # fmt: skip
    assert [item["name"] for item in found["configs"]] == ["baseline", "lexical"]
    table, asked = found["comparisons"]
    assert (table["one"], table["other"]) == ("baseline", "lexical")
    assert (asked["one"], asked["other"], asked["metric"]) == ("lexical", "baseline", "mrr")
    assert len(asked["won"]) == asked["queries_won"]
    assert len(asked["lost"]) == asked["queries_lost"]
    assert "2" in [item["id"] for item in asked["won"]]
    for item in asked["won"]:
        assert item["other"] > item["one"]
    means = {item["name"]: item["mrr"] for item in found["configs"]}
    assert (asked["mean_one"], asked["mean_other"]) == (means["lexical"], means["baseline"])


def test_fewer_questions_from_all_over(ask: Ask, lexical: Path) -> None:
    found = ask("eval", "../q.jsonl", "--limit", "2", cwd=lexical)
    assert found["query_count"] == 2
    assert [item["id"] for item in found["queries"]] == ["stripes", "3"]
    assert ask("eval", "../q.jsonl", "--limit", "99", cwd=lexical)["query_count"] == 4


def test_fewer_files(ask: Ask, lexical: Path) -> None:
    found = ask("eval", "../q.jsonl", "--top", "5", cwd=lexical)
    assert found["top"] == 5
    assert any("5 files were asked for" in line for line in found["warnings"])


def test_questions_from_standard_input(ragx_cli: RunCli, lexical: Path) -> None:
    lines = "\ufeff\r\n" + json.dumps(QUERIES[0]) + "\r\n"
    done = ragx_cli("eval", "-", "--json", cwd=lexical, input=lines)
    assert done.returncode == 0
    assert json.loads(done.stdout)["query_count"] == 1


def test_the_file_is_looked_for_from_where_the_user_stands(ask: Ask, lexical: Path) -> None:
    found = ask("eval", "q.jsonl", "--root", str(lexical), cwd=lexical.parent)
    assert found["query_count"] == 4


# For people.


def test_as_text(ragx_inline: RunCli, lexical: Path) -> None:
    done = ragx_inline("eval", "../q.jsonl", cwd=lexical)
    assert done.returncode == 0
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert lines[0] == "4 queries, 100 files asked for"
    head, *rows = [re.split(r"\s{2,}", line.strip()) for line in lines[2:6]]
    assert head == ["config", "nDCG@10", "MRR@10", "MRR", "R@5", "R@10", "R@20", "R@100", "p50 ms",
                    "p95 ms", "p vs graph"]  # fmt: skip
    assert [row[0] for row in rows] == ["lexical", "rules", "graph"]
    assert [len(row) for row in rows] == [11, 11, 10]
    assert len({len(line) for line in lines[2:5]}) == 1
    assert "paired randomisation test of nDCG@10 against graph" in lines[-1]


def test_one_configuration_is_compared_with_none(ragx_inline: RunCli, lexical: Path) -> None:
    done = ragx_inline("eval", "../q.jsonl", "--configs", "lexical", cwd=lexical)
    assert "p vs" not in done.stdout
    assert "randomisation" not in done.stdout


def test_wins_and_each_query_as_text(ragx_inline: RunCli, built: Path) -> None:
    done = ragx_inline(
        "eval", "../q.jsonl", "--configs", "baseline", "--compare", "lexical", "baseline",
        "--per-query", cwd=built,
    )  # fmt: skip
    assert done.returncode == 0
    assert re.search(r"nDCG@10 from lexical to baseline: [\d.]+ -> [\d.]+ \(\+[\d.]+\), p [\d.]+;"
                     r" \d won, \d lost, \d tied", done.stdout)  # fmt: skip
    won = done.stdout.partition("won:\n")[2].splitlines()[0]
    assert re.fullmatch(
        r"  \+[\d.]+  [\d.]+ -> 1\.0000  2 .*how to make a loaf at home", won
    )  # fmt: skip
    listed = done.stdout.partition("nDCG@10 of each query\n")[2].splitlines()
    assert [line.split()[0] for line in listed] == ["query", "stripes", "2", "3", "7"]


def test_text_of_queries_cannot_command_the_terminal(
    ragx_inline: RunCli, lexical: Path, tmp_path: Path
) -> None:
    line = {
        "id": "\x1b[2J",
        "query": "zebra \x1b]0;x\x07\n" + "long " * 40,
        "relevant": ["zebra.md"],
    }
    write_queries(tmp_path / "odd.jsonl", [line])
    done = ragx_inline("eval", "../odd.jsonl", "--per-query", cwd=lexical)
    assert done.returncode == 0
    assert "\x1b" not in done.stdout
    assert "..." in done.stdout.splitlines()[-1]


# Errors.


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "q2.jsonl holds no question"),
        (b'{"query": "q"', "q2.jsonl, line 1: not JSON"),
        (b"\n[1]\n", "q2.jsonl, line 2: not an object"),
        (b'{"relevant": ["lion.md"]}', "line 1: query is missing"),
        (b'{"query": " ", "relevant": ["lion.md"]}', "line 1: query is blank"),
        (b'{"query": "q"}', "line 1: no relevant file"),
        (b'{"query": "q", "relevant": {"lion.md": "x"}}', "line 1: relevant: the grade of lion.md"),
        (b'{"query": "\xff"}', "q2.jsonl: line 1 is not UTF-8"),
    ],
)
def test_a_wrong_file_of_questions(ask: Ask, lexical: Path, content: bytes, message: str) -> None:
    (lexical.parent / "q2.jsonl").write_bytes(content)
    error = ask("eval", "../q2.jsonl", cwd=lexical, status=2)["error"]
    assert error["code"] == "bad_queries"
    assert message in error["message"]
    assert error["hint"]


def test_a_file_of_questions_that_cannot_be_read(ask: Ask, lexical: Path) -> None:
    for name in ("absent.jsonl", "..", "\0"):
        error = ask("eval", name, cwd=lexical, status=2)["error"]
        assert error["code"] == "bad_queries"
        assert "cannot be read" in error["message"]


def test_judged_files_that_are_not_in_the_index(ragx_cli: RunCli, lexical: Path) -> None:
    queries = [
        *QUERIES,
        {"query": "hunting", "relevant_files": ["loin.md"]},
        {"query": "nothing", "relevant_files": ["empty.md"]},  # known, and without text to find
    ]
    write_queries(lexical.parent / "q2.jsonl", queries)
    done = ragx_cli("eval", "../q2.jsonl", cwd=lexical)
    assert (done.returncode, done.stdout) == (2, "")
    assert "2 judged files are not in the index: loin.md (line 5), empty.md (line 6)" in done.stderr
    assert "did you mean lion.md" in done.stderr
    as_json = ragx_cli("eval", "../q2.jsonl", "--json", cwd=lexical)
    error = json.loads(as_json.stdout)["error"]
    assert error["code"] == "unknown_paths"
    assert error["details"]["unknown"][0]["nearest"][0] == "lion.md"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--configs", "lexcial"), "no configuration is called 'lexcial'"),
        (("--configs", " , "), "names no configuration"),
        (("--configs", "baseline"), "this index has no vectors"),
        (("--compare", "baseline", "graph"), "this index has no vectors"),
        (("--metric", "precision"), "--metric"),
        (("--top", "0"), "--top"),
        (("--limit", "0"), "--limit"),
    ],
)
def test_what_cannot_be_asked_for(
    ask: Ask, lexical: Path, options: tuple[str, ...], message: str
) -> None:
    error = ask("eval", "../q.jsonl", *options, cwd=lexical, status=2)["error"]
    assert error["code"] == "usage"
    assert message in error["message"]


def test_an_index_in_another_space(
    make_corpus: MakeCorpus, ask: Ask, tmp_path: Path, embedding_server: Any
) -> None:
    root = make_corpus(FILES)
    settings = f"[embeddings]\n{embedding_server.settings}"
    (root / "ragx.toml").write_text(settings)
    ask("index", cwd=root)
    write_queries(tmp_path / "q.jsonl", QUERIES)
    (root / "ragx.toml").write_text(settings.replace('"words"', '"other"'))
    error = ask("eval", "../q.jsonl", cwd=root, status=2)["error"]
    assert error["code"] == "manifest_mismatch"
    ask("eval", "../q.jsonl", "--configs", "lexical", cwd=root)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root writes anywhere")
def test_an_index_that_cannot_be_written(ragx_cli: RunCli, built: Path) -> None:
    (built / ".ragx").chmod(0o500)
    try:
        done = ragx_cli("eval", "../q.jsonl", "--json", cwd=built)
    finally:
        (built / ".ragx").chmod(0o700)
    assert done.returncode == 0, done.stdout


def test_without_an_index(make_corpus: MakeCorpus, ask: Ask, tmp_path: Path) -> None:
    root = make_corpus(FILES)
    write_queries(tmp_path / "q.jsonl", QUERIES)
    assert ask("eval", "../q.jsonl", cwd=root, status=2)["error"]["code"] == "index_missing"


def test_questions_that_warn(ask: Ask, ragx_inline: RunCli, lexical: Path) -> None:
    queries = [*QUERIES, {"id": "odd", "query": "?!", "relevant_files": ["lion.md"]}]
    write_queries(lexical.parent / "q2.jsonl", queries)
    expected = "the query holds no word to look for (1 of 5 queries: odd)"
    assert ask("eval", "../q2.jsonl", cwd=lexical)["warnings"] == [expected]
    assert expected in ragx_inline("eval", "../q2.jsonl", cwd=lexical).stderr

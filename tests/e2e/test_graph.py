"""The graph through the command line: why a hit is there, what is joined, and by which words."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from ragx import contracts

RunCli = Callable[..., "subprocess.CompletedProcess[str]"]
MakeCorpus = Callable[..., Path]
Ask = Callable[..., dict[str, Any]]
Put = Callable[[Path, Mapping[str, str | bytes]], None]
Json = dict[str, Any]

SMALL = "[chunking]\nsize_tokens = 64\n"
# Long enough for a section to be a chunk of its own.
PLAIN = "Plain words about nothing much follow here, and they go on for a while. " * 3

WORK: dict[str, str | bytes] = {
    "notes/storage.md": (
        "---\ntitle: Storage engine\naliases: [Block keeper]\n---\n"
        "# Storage engine\n\nPages are written in blocks of four kilobytes.\n"
    ),
    "notes/recovery.md": (
        f"# Recovery runbook\n\n{PLAIN}\n\n## Replay order\n\nOldest first. {PLAIN}\n\n"
        f"## Torn pages\n\nA checksum tells. {PLAIN}\n"
    ),
    "notes/quorum.md": "# Quorum voting\n\nThe Block keeper waits for a majority.\n",
    "notes/crash.md": (
        "# Crash course\n\nAfter a blackout see\n[the order](recovery.md#replay-order).\n"
    ),
    "notes/pager.md": "# Pager duty\n\nWhom to wake: [[quorum|the voters]].\n",
    "notes/lonely.md": "# Hermit crab\n\nNobody comes by.\n",
    "shop/__init__.py": "",
    "shop/cart.py": "def basket_sum(basket):\n    return sum(basket)  # without postage\n",
    "shop/till.py": (
        "from shop import cart\n\n\ndef checkout(basket):\n    return cart.basket_sum(basket)\n"
    ),
    "shop/report.py": "def monthly_sheet(baskets):\n    return [basket_sum(b) for b in baskets]\n",
}


@pytest.fixture
def work(make_corpus: MakeCorpus, ask: Ask) -> Path:
    root = make_corpus(WORK, settings=SMALL)
    ask("index", cwd=root)
    return root


@pytest.fixture
def embedded(make_corpus: MakeCorpus, ask: Ask) -> Path:
    """The same corpus with vectors."""
    root = make_corpus(WORK, provider="builtin", settings=SMALL)
    ask("index", cwd=root)
    return root


def set_to(root: Path, settings: str, provider: str = "none") -> None:
    (root / "ragx.toml").write_text(f'[embeddings]\nprovider = "{provider}"\n{SMALL}{settings}')


def checked(document: Json) -> Json:
    """A document, once its schema has been found to fit."""
    Draft202012Validator(contracts.load(document["schema"])).validate(document)
    return document


def lines_of(raw: bytes) -> list[str]:
    encoding = "utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    return re.split(r"\r\n|\r|\n", raw.decode(encoding))


def check_evidence(root: Path, evidence: Json) -> None:
    """The words stand on that line of that file, as it is on disk."""
    lines = lines_of((root / evidence["file"]).read_bytes())
    words = re.split(r"\r\n|\r|\n", evidence["text"])
    at = evidence["line"] - 1
    stands = lines[at : at + len(words)]
    assert words[0] in stands[0], (evidence, stands)
    assert "\n".join(words) in "\n".join(stands)


def check_step(root: Path, step: Json) -> None:
    if step["kind"] in ("adjacent", "similar"):
        assert step["evidence"] is None
        return
    assert step["evidence"]["chunk_id"] in (step["source"], step["target"])
    check_evidence(root, step["evidence"])


def check_explained(root: Path, ask: Ask, document: Json) -> None:
    """What an explanation says is true of the answer it stands in, of the index and of the disk."""
    checked(document)
    for entry in document["results"]:
        assert sum(entry["terms"].values()) == pytest.approx(entry["score"], abs=1e-5)
        assert entry["terms"]["best"] == pytest.approx(entry["chunks"][0]["score"], abs=1e-6)
        for part in entry["chunks"]:
            why = part["explain"]
            assert sum(why["terms"].values()) == pytest.approx(part["score"], abs=1e-5)
            assert {**part["breakdown"], **why["terms"]} == part["breakdown"]
            path, steps = why["path"], why["steps"]
            assert (path[0], path[-1]) == (why["seed"], part["chunk_id"])
            assert len(set(path)) == len(path) == len(steps) + 1 == why["hop"] + 1
            assert [step["source"] for step in steps] == path[:-1]
            assert [step["target"] for step in steps] == path[1:]
            assert why["parent"] == (path[-2] if steps else None)
            assert why["edge_weight"] == (steps[-1]["weight"] if steps else None)
            for step in steps:
                check_step(root, step)
                chunk = ask("inspect", "chunk", str(step["target"]), cwd=root)
                for name in ("file", "line_start", "line_end"):
                    assert step[name] == chunk[name]
                assert any(
                    (edge["id"], edge["kind"], edge["weight"])
                    == (step["source"], step["kind"], step["weight"])
                    for edge in chunk["edges"]
                )
            ask("inspect", "chunk", str(why["seed"]), cwd=root)


def hops_of(document: Json) -> set[int]:
    return {part["explain"]["hop"] for entry in document["results"] for part in entry["chunks"]}


def chains(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if " -> " in line]


def ids_of(ask: Ask, root: Path, path: str) -> list[int]:
    return [part["id"] for part in ask("inspect", "file", path, cwd=root)["chunks"]]


def joined(ask: Ask, root: Path, path: str, kind: str) -> set[str]:
    """`path:first line` of what the chunks of a file are joined to."""
    return {
        f"{edge['file']}:{edge['line_start']}"
        for chunk_id in ids_of(ask, root, path)
        for edge in ask("inspect", "chunk", str(chunk_id), cwd=root)["edges"]
        if edge["kind"] == kind
    }


def evidence_of(ask: Ask, root: Path, one: str, other: str, kind: str) -> list[Json]:
    """What is said where chunks of one file are joined to those of another."""
    found = [
        edge
        for chunk_id in ids_of(ask, root, one)
        for edge in ask("inspect", "chunk", str(chunk_id), cwd=root)["edges"]
        if edge["file"] == other and edge["kind"] == kind
    ]
    for edge in found:
        check_evidence(root, edge["evidence"])
    return [edge["evidence"] for edge in found]


# Explained, as text.


@pytest.mark.parametrize(
    ("words", "chain"),
    [
        (
            "majority",
            'notes/quorum.md:1-3 -> mentions "Block keeper" -> notes/storage.md:5-7',
        ),
        (
            "kilobytes",
            'notes/storage.md:5-7 -> is mentioned as "Block keeper" in -> notes/quorum.md:1-3',
        ),
        (
            "blackout",
            (
                'notes/crash.md:1-4 -> links to "[the order](recovery.md#replay-order)"'
                " -> notes/recovery.md:5-7"
            ),
        ),
        ("oldest", "notes/recovery.md:5-7 -> is linked from -> notes/crash.md:1-4"),
        ("wake", 'notes/pager.md:1-3 -> links to "[[quorum|the voters]]" -> notes/quorum.md:1-3'),
        ("checkout", 'shop/till.py:1-5 -> imports "from shop import cart" -> shop/cart.py:1-2'),
        ("postage", "shop/cart.py:1-2 -> is imported by -> shop/till.py:1-5"),
        ("monthly", 'shop/report.py:1-2 -> uses "basket_sum" -> shop/cart.py:1-2'),
    ],
)
def test_the_chain_as_text(work: Path, ragx_inline: RunCli, words: str, chain: str) -> None:
    done = ragx_inline("query", words, "--explain", "--mode", "lexical", cwd=work)
    assert (done.returncode, done.stderr) == (0, "")
    assert chain in chains(done.stdout), done.stdout


def test_a_chain_of_two_hops(work: Path, ragx_inline: RunCli) -> None:
    done = ragx_inline("query", "wake", "--explain", cwd=work)
    assert (
        'notes/pager.md:1-3 -> links to "[[quorum|the voters]]" -> notes/quorum.md:1-3'
        ' -> mentions "Block keeper" -> notes/storage.md:5-7'
    ) in chains(done.stdout)


def test_the_sum_as_text(work: Path, ragx_inline: RunCli) -> None:
    done = ragx_inline("query", "majority", "--explain", cwd=work)
    rows = [line.strip() for line in done.stdout.splitlines() if line.startswith("    = ")]
    assert rows[0] == "= lexical 1.000"
    assert any(re.fullmatch(r"= heat 0\.\d{3}( - cap 0\.\d{3})?", row) for row in rows[1:]), rows
    plain = ragx_inline("query", "majority", cwd=work).stdout
    kept = [
        re.sub(r"^(  \d+-\d+)  id \d+", r"\1", line)
        for line in done.stdout.splitlines()
        if not line.startswith("    = ") and " -> " not in line
    ]
    assert "\n".join(kept) + "\n" == plain


def test_words_of_a_file_cannot_command_the_terminal(
    make_corpus: MakeCorpus, ask: Ask, ragx_inline: RunCli
) -> None:
    long = "very long words " * 30
    root = make_corpus({
        "b.md": "# Beaver\n\nDams.\n",
        "esc.md": "# Esc page\n\nQuoll [x\x07\x08y\x9b0m](b.md)\n",
        "long.md": f"# Long page\n\nPotoroo [{long}](b.md)\n",
        "lines.md": "# Lines page\n\nKoala [over\ntwo   lines](b.md)\n",
        "quote.md": '# Quote page\n\nNumbat [say "hi"](b.md)\n',
        "odd \x1b[31mname\u202e.md": "# Odd page\n\nBilby [b](b.md)\n",
    })  # fmt: skip
    ask("index", cwd=root)
    said = {}
    for word in ("quoll", "potoroo", "koala", "numbat", "bilby"):
        done = ragx_inline("query", word, "--explain", "--hops", "1", cwd=root)
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", done.stdout)
        (said[word],) = [row for row in chains(done.stdout) if row.endswith("b.md:1-3")]
        check_explained(root, ask, ask("query", word, "--explain", cwd=root))
    assert said["quoll"] == r'esc.md:1-3 -> links to "[x\x07\x08y\x9b0m](b.md)" -> b.md:1-3'
    assert said["potoroo"] == (f'long.md:1-3 -> links to "{("[" + long)[:60]}..." -> b.md:1-3')
    assert said["koala"] == 'lines.md:1-4 -> links to "[over two lines](b.md)" -> b.md:1-3'
    assert said["numbat"] == 'quote.md:1-3 -> links to "[say "hi"](b.md)" -> b.md:1-3'
    assert said["bilby"].startswith(r"odd \x1b[31mname")
    for path in ("esc.md", "long.md"):
        (chunk_id,) = ids_of(ask, root, path)
        for args in (["neighbors", str(chunk_id)], ["path", path, "b.md"]):
            done = ragx_inline("inspect", *args, cwd=root)
            assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", done.stdout)
            assert max(map(len, done.stdout.splitlines())) < 160


# Explained, as JSON.

QUESTIONS = (
    "majority", "blackout", "wake", "checkout", "monthly sheet", "pages", "plain words",
    '"oldest first" pages', "crash -blackout", "hermit",
)  # fmt: skip


@pytest.mark.parametrize("corpus", ["work", "embedded"])
@pytest.mark.parametrize("settings", ["", "[traversal]\ncap = false\n"])
def test_what_an_explanation_says_is_so(
    request: pytest.FixtureRequest, ask: Ask, corpus: str, settings: str
) -> None:
    root: Path = request.getfixturevalue(corpus)
    set_to(root, settings, "builtin" if corpus == "embedded" else "none")
    hops = set()
    for question in QUESTIONS:
        document = ask("query", "--explain", "--", *question.split(), cwd=root, status=None)
        check_explained(root, ask, document)
        hops |= hops_of(document)
    assert max(hops) == 2


@pytest.mark.parametrize("settings", ["", "[graph.weights]\nadjacent = 1.0\nsimilar = 1.0\n"])
def test_explaining_changes_nothing(embedded: Path, ask: Ask, settings: str) -> None:
    set_to(embedded, settings, "builtin")
    for question in ("wake", "plain words", '"oldest first" pages'):
        for extra in ([], ["--hops", "3"], ["--no-graph"], ["--mode", "lexical"], ["--top", "2"]):
            words = ["--", *question.split()]
            plain = ask("query", *extra, *words, cwd=embedded, status=None)
            full = ask("query", *extra, "--explain", *words, cwd=embedded, status=None)
            for entry in full["results"]:
                del entry["terms"]
                for part in entry["chunks"]:
                    del part["explain"]
            assert json.dumps(full) == json.dumps(plain)


def test_without_explain_nothing_is_explained(work: Path, ask: Ask) -> None:
    (first, *_) = checked(ask("query", "majority", cwd=work))["results"]
    assert "terms" not in first
    assert "explain" not in first["chunks"][0]


def test_files_only_explains_nothing(work: Path, ask: Ask, ragx_inline: RunCli) -> None:
    with_it = ask("query", "majority", "--files-only", "--explain", cwd=work)
    assert checked(with_it) == ask("query", "majority", "--files-only", cwd=work)
    assert with_it["schema"] == "ragx.files.v1"
    assert "notes/storage.md" in [entry["file"] for entry in with_it["files"]]
    done = ragx_inline("query", "majority", "--files-only", "--explain", cwd=work)
    assert done.stdout == "".join(f"{entry['file']}\n" for entry in with_it["files"])


# How far.


def reach(ask: Ask, root: Path, *args: str) -> dict[str, int]:
    """Least hops to each file."""
    document = ask("query", "wake", "--explain", *args, cwd=root)
    check_explained(root, ask, document)
    return {
        entry["file"]: min(part["explain"]["hop"] for part in entry["chunks"])
        for entry in document["results"]
    }


def test_hops(work: Path, ask: Ask) -> None:
    none = {"notes/pager.md": 0}
    one = {**none, "notes/quorum.md": 1}
    two = {**one, "notes/storage.md": 2}
    assert reach(ask, work, "--no-graph") == none
    assert reach(ask, work, "--no-graph", "--hops", "2") == none
    assert reach(ask, work, "--hops", "0") == none
    assert reach(ask, work, "--hops", "1") == one
    assert reach(ask, work, "--hops", "2") == two
    assert reach(ask, work) == two
    assert reach(ask, work, "--hops", "10") == two


def test_stages_say_whether_the_graph_was_used(work: Path, ask: Ask) -> None:
    for extra, stage in (([], "used"), (["--no-graph"], "off"), (["--hops", "0"], "off")):
        assert ask("query", "wake", *extra, cwd=work)["stages"]["graph"] == stage


@pytest.mark.parametrize("hops", ["11", "-1", "two", "1.5", ""])
def test_hops_out_of_range(work: Path, ask: Ask, hops: str) -> None:
    document = checked(ask("query", "wake", "--hops", hops, cwd=work, status=2))
    assert document["error"]["code"] == "usage"
    assert "--hops" in document["error"]["message"]


def test_what_is_left_out_is_not_reached_either(work: Path, ask: Ask) -> None:
    document = ask("query", "--", "wake", "-majority", cwd=work)
    assert [entry["file"] for entry in document["results"]] == ["notes/pager.md"]


# Settings of the read side.


def test_uncapped(work: Path, ask: Ask) -> None:
    def storage() -> Json:
        document = ask("query", "majority", "--explain", cwd=work)
        return next(e for e in document["results"] if e["file"] == "notes/storage.md")

    capped = storage()["chunks"][0]["explain"]["terms"]
    set_to(work, "[traversal]\ncap = false\n")
    free = storage()["chunks"][0]["explain"]["terms"]
    assert "cap" not in free
    assert free["heat"] == capped["heat"]
    assert storage()["score"] == pytest.approx(free["heat"], abs=1e-5)


def test_the_seed_documents_formula(embedded: Path, ask: Ask) -> None:
    near = "[graph]\nmin_edge_sim = 0.05\n[traversal]\nquery_floor = -1.0\n"
    set_to(embedded, f'{near}[scoring]\nformula = "seed"\n', "builtin")
    ask("index", "--edges-only", cwd=embedded)
    hops = set()
    for question in QUESTIONS:
        document = ask("query", "--explain", "--", *question.split(), cwd=embedded, status=None)
        check_explained(embedded, ask, document)
        hops |= hops_of(document)
        for entry in document["results"]:
            for part in entry["chunks"]:
                terms = part["explain"]["terms"]
                assert set(terms) - {"phrase"} == {"heat", "vector"}
                assert terms["heat"] <= 0.25 / (0.25 + 0.15) + 1e-6
                assert terms["vector"] <= 0.15 / (0.25 + 0.15) + 1e-6
                assert {step["kind"] for step in part["explain"]["steps"]} <= {"similar"}
    assert max(hops) >= 1


def test_the_seed_documents_formula_without_vectors(work: Path, ask: Ask) -> None:
    set_to(work, '[scoring]\nformula = "seed"\n')
    for question in QUESTIONS:
        document = ask("query", "--explain", "--", *question.split(), cwd=work, status=None)
        check_explained(work, ask, document)
        assert hops_of(document) <= {0}


def test_weights_turn_kinds_off(work: Path, ask: Ask) -> None:
    set_to(work, "[graph.weights]\nlink = 0.0\n")
    assert reach(ask, work) == {"notes/pager.md": 0}
    set_to(work, "[graph.weights]\nmention = 0.0\n")
    assert reach(ask, work) == {"notes/pager.md": 0, "notes/quorum.md": 1}
    set_to(work, "[traversal]\nhops = 1\n")
    assert reach(ask, work) == {"notes/pager.md": 0, "notes/quorum.md": 1}


@pytest.mark.parametrize(
    "settings",
    [
        "[graph.weights]\nlink = 0.5\nsimilar = 0.7\n",
        "[traversal]\nhops = 3\ndecay = 0.5\nquery_floor = 0.1\nmax_frontier = 9\ncap = false\n",
        "[communities]\nresolution = 3.0\nseed = 7\n",
        '[scoring]\nformula = "seed"\nbeta_heat = 0.9\n',
    ],
)
def test_settings_that_never_make_an_index_out_of_date(
    embedded: Path, ask: Ask, settings: str
) -> None:
    edges = ask("status", cwd=embedded)["edges"]
    set_to(embedded, settings, "builtin")
    status = checked(ask("status", cwd=embedded))
    assert (status["settings_differ"], status["edges"]) == ("", edges)
    report = ask("index", cwd=embedded)
    assert (report["files_indexed"], report["embedded"]) == (0, 0)
    assert report["edges_total"] == edges
    ask("query", "majority", cwd=embedded)


# Kinds of edges.


def test_a_link_leads_to_the_chunk_of_its_heading(work: Path, ask: Ask) -> None:
    assert joined(ask, work, "notes/crash.md", "link") == {"notes/recovery.md:5"}
    (evidence,) = evidence_of(ask, work, "notes/crash.md", "notes/recovery.md", "link")
    assert (evidence["line"], evidence["text"]) == (4, "[the order](recovery.md#replay-order)")


def test_a_wiki_link_with_an_alias(work: Path, ask: Ask) -> None:
    assert joined(ask, work, "notes/pager.md", "link") == {"notes/quorum.md:1"}
    (evidence,) = evidence_of(ask, work, "notes/pager.md", "notes/quorum.md", "link")
    assert evidence["text"] == "[[quorum|the voters]]"


def test_an_alias_of_the_front_matter(work: Path, ask: Ask) -> None:
    assert joined(ask, work, "notes/quorum.md", "mention") == {"notes/storage.md:5"}
    (evidence,) = evidence_of(ask, work, "notes/quorum.md", "notes/storage.md", "mention")
    assert (evidence["line"], evidence["text"]) == (3, "Block keeper")


def test_imports_and_symbols(work: Path, ask: Ask) -> None:
    assert joined(ask, work, "shop/till.py", "import") == {"shop/cart.py:1"}
    assert joined(ask, work, "shop/till.py", "symbol") == {"shop/cart.py:1"}
    assert joined(ask, work, "shop/report.py", "symbol") == {"shop/cart.py:1"}
    assert joined(ask, work, "shop/report.py", "import") == set()
    (evidence,) = evidence_of(ask, work, "shop/cart.py", "shop/till.py", "import")
    assert (evidence["file"], evidence["line"]) == ("shop/till.py", 1)
    (evidence,) = evidence_of(ask, work, "shop/till.py", "shop/cart.py", "symbol")
    assert (evidence["line"], evidence["text"]) == (5, "basket_sum")


def test_an_imported_symbol_weighs_more(work: Path, ask: Ask) -> None:
    (cart,) = ids_of(ask, work, "shop/cart.py")
    weights = {
        edge["file"]: edge["weight"]
        for edge in ask("inspect", "chunk", str(cart), cwd=work)["edges"]
        if edge["kind"] == "symbol"
    }
    assert weights["shop/report.py"] == pytest.approx(0.2 * weights["shop/till.py"], abs=1e-5)


def test_nobody_names_the_hermit(work: Path, ask: Ask) -> None:
    (chunk_id,) = ids_of(ask, work, "notes/lonely.md")
    assert ask("inspect", "chunk", str(chunk_id), cwd=work)["edges"] == []


def test_similar_edges_need_vectors(embedded: Path, ask: Ask) -> None:
    kinds = {
        edge["kind"]
        for path in WORK
        for chunk_id in ids_of(ask, embedded, path)
        for edge in checked(ask("inspect", "chunk", str(chunk_id), cwd=embedded))["edges"]
    }
    assert kinds == {"link", "mention", "import", "symbol", "adjacent", "similar"}


# Chunks and their neighbours.


def test_both_ends_say_the_same(embedded: Path, ask: Ask) -> None:
    edges: dict[tuple[int, int, str], tuple[float, str]] = {}
    for path in WORK:
        for chunk_id in ids_of(ask, embedded, path):
            near = checked(ask("inspect", "neighbors", str(chunk_id), cwd=embedded, status=None))
            whole = ask("inspect", "chunk", str(chunk_id), cwd=embedded)
            assert near["neighbors"] == whole["edges"]
            order = [edge["weight"] for edge in near["neighbors"]]
            assert order == sorted(order, reverse=True)
            for edge in near["neighbors"]:
                assert edge["id"] != chunk_id
                assert 0 < edge["weight"] <= 1
                if edge["evidence"]:
                    check_evidence(embedded, edge["evidence"])
                said = json.dumps(edge["evidence"])
                edges[chunk_id, edge["id"], edge["kind"]] = (edge["weight"], said)
    assert edges == {(b, a, kind): value for (a, b, kind), value in edges.items()}
    assert len(edges) == 2 * ask("status", cwd=embedded)["edges"]


def test_neighbours_as_text(work: Path, ask: Ask, ragx_inline: RunCli) -> None:
    (quorum,) = ids_of(ask, work, "notes/quorum.md")
    done = ragx_inline("inspect", "neighbors", str(quorum), cwd=work)
    assert done.returncode == 0
    head, *rows = done.stdout.splitlines()
    assert head == "notes/quorum.md:1-3"
    assert len(rows) == 2
    assert re.fullmatch(r"  1\.000  link +\d+  is linked from -> notes/pager\.md:1-3", rows[0])
    assert re.fullmatch(
        r'  1\.000  mention +\d+  mentions "Block keeper" -> notes/storage\.md:5-7', rows[1]
    )
    done = ragx_inline("inspect", "chunk", str(quorum), cwd=work)
    assert done.stdout.startswith("notes/quorum.md:1-3  Quorum voting\n")
    assert f"2 edges: ragx inspect neighbors {quorum}" in done.stderr


def test_a_chunk_without_edges(work: Path, ask: Ask, ragx_inline: RunCli) -> None:
    (hermit,) = ids_of(ask, work, "notes/lonely.md")
    document = checked(ask("inspect", "neighbors", str(hermit), cwd=work, status=1))
    assert document["neighbors"] == []
    done = ragx_inline("inspect", "neighbors", str(hermit), cwd=work)
    assert done.returncode == 1
    done = ragx_inline("inspect", "chunk", str(hermit), cwd=work)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["neighbors", "5"], "no_such_chunk"),
        (["neighbors", "--", "-5"], "no_such_chunk"),
        (["neighbors", "9" * 30], "no_such_chunk"),
        (["neighbors", "notes/quorum.md"], "usage"),
        (["neighbors"], "usage"),
        (["community", "99"], "no_such_community"),
        (["community", "--", "-1"], "no_such_community"),
        (["community", "9" * 30], "no_such_community"),
        (["community", "first"], "usage"),
        (["path", "notes/quorum.md"], "usage"),
        (["path", "notes/quorum.md", "notes/qorum.md"], "no_such_file"),
        (["path", "5", "notes/quorum.md"], "no_such_chunk"),
        (["path", "notes/quorum.md", "9" * 30], "no_such_chunk"),
        (["path", "--", "-5", "notes/quorum.md"], "no_such_file"),
        (["path", "../x", "notes/quorum.md"], "usage"),
        (["path", "", "notes/quorum.md"], "usage"),
        (["path", "notes", "notes/quorum.md"], "no_such_file"),
    ],
)
def test_refusals(work: Path, ask: Ask, args: list[str], code: str) -> None:
    document = checked(ask("inspect", *args, cwd=work, status=2))
    assert document["error"]["code"] == code
    assert document["error"]["message"]
    assert document["error"]["hint"] or args[1:2] == [""]


def test_a_number_of_thousands_of_digits(work: Path, ask: Ask) -> None:
    document = ask("inspect", "path", "9" * 5000, "notes/quorum.md", cwd=work, status=2)
    assert document["error"]["code"] in ("no_such_chunk", "no_such_file")


def test_hints_lead_on(work: Path, ask: Ask) -> None:
    def hint(*args: str) -> str:
        found: str = ask("inspect", *args, cwd=work, status=2)["error"]["hint"]
        return found

    assert "notes/quorum.md" in hint("path", "notes/qorum.md", "notes/pager.md")
    assert "ragx inspect file" in hint("neighbors", "5")
    assert "ragx inspect communities" in hint("community", "99")


def test_without_an_index(make_corpus: MakeCorpus, ask: Ask) -> None:
    root = make_corpus(WORK)
    for args in (
        ["chunk", "1"], ["neighbors", "1"], ["communities"], ["community", "0"], ["path", "1", "2"],
    ):  # fmt: skip
        document = ask("inspect", *args, cwd=root, status=2)
        assert document["error"]["code"] == "index_missing"
        assert "ragx index" in document["error"]["hint"]
    assert not (root / ".ragx").exists()


# Communities.


def test_communities(work: Path, ask: Ask, ragx_inline: RunCli) -> None:
    document = checked(ask("inspect", "communities", cwd=work))
    found = document["communities"]
    assert document["count"] == len(found) == ask("status", cwd=work)["communities"]
    assert [group["community_id"] for group in found] == [*range(len(found))]
    sizes = [group["size"] for group in found]
    assert sizes == sorted(sizes, reverse=True)
    assert sum(sizes) == ask("status", cwd=work)["chunks"]
    members: set[int] = set()
    for group in found:
        one = checked(ask("inspect", "community", str(group["community_id"]), cwd=work))
        assert (one["label"], one["size"]) == (group["label"], group["size"])
        assert len(one["members"]) == one["size"]
        assert list(dict.fromkeys(part["file"] for part in one["members"])) == group["files"]
        assert group["label"].strip() == group["label"] != ""
        members |= {part["id"] for part in one["members"]}
    assert len(members) == sum(sizes)
    by_file = {path: group["community_id"] for group in found for path in group["files"]}
    assert by_file["shop/cart.py"] == by_file["shop/till.py"] != by_file["notes/quorum.md"]
    done = ragx_inline("inspect", "communities", cwd=work)
    n_single = sizes.count(1)
    summaries = [row for row in done.stdout.splitlines() if row.startswith(" " * 7)]
    assert [row.strip() for row in summaries] == [
        group["summary"] for group in found if group["summary"] and group["size"] > 1
    ]
    assert len(done.stdout.splitlines()) - len(summaries) == len(found) - n_single + 1
    assert f"and {n_single} of a single chunk" in done.stdout
    done = ragx_inline("inspect", "communities", "--all", cwd=work)
    assert len(done.stdout.splitlines()) - len(summaries) == len(found)
    number = str(by_file["shop/cart.py"])
    done = ragx_inline("inspect", "community", number, cwd=work)
    head, *rows = done.stdout.splitlines()
    assert head.endswith(f"{found[int(number)]['size']} chunks")
    assert any("shop/cart.py:1-2" in row for row in rows)


def test_communities_of_an_empty_index(
    make_corpus: MakeCorpus, ask: Ask, ragx_inline: RunCli
) -> None:
    root = make_corpus({"empty.md": ""})
    ask("index", cwd=root)
    document = checked(ask("inspect", "communities", cwd=root, status=1))
    assert (document["count"], document["communities"]) == (0, [])
    assert ragx_inline("inspect", "communities", cwd=root).returncode == 1
    document = ask("inspect", "community", "0", cwd=root, status=2)
    assert document["error"]["code"] == "no_such_community"


def test_communities_without_leidenalg(
    work: Path, ask: Ask, ragx_inline: RunCli, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("igraph", "leidenalg"):
        monkeypatch.setitem(sys.modules, name, None)
    known = ask("inspect", "communities", cwd=work)["count"]
    assert known  # of the file that the index run left
    (work / ".ragx" / "communities.json").unlink()
    for args in (["communities"], ["community", "0"]):
        document = checked(ask("inspect", *args, cwd=work, status=2))
        assert document["error"]["code"] == "missing_dependency"
        assert "pip install leidenalg igraph" in document["error"]["hint"]
    report = checked(ask("index", "--edges-only", "-v", cwd=work))
    assert (report["ok"], report["communities_total"]) == (True, 0)
    assert any("leidenalg" in note["note"] for note in report["notes"])
    assert "leidenalg" in ragx_inline("index", "--edges-only", "-v", cwd=work).stderr
    ask("query", "majority", "--explain", cwd=work)


def test_other_settings_of_communities_count_at_once(work: Path, ask: Ask) -> None:
    before = ask("inspect", "communities", cwd=work)["count"]
    set_to(work, "[communities]\nresolution = 50.0\n")
    status = ask("status", cwd=work)
    assert (status["communities"], status["communities_stale"]) == (0, True)
    assert ask("inspect", "communities", cwd=work)["count"] > before
    assert ask("status", cwd=work)["communities_stale"] is False


# Paths.


def test_a_path_between_files(work: Path, ask: Ask, ragx_inline: RunCli) -> None:
    document = checked(ask("inspect", "path", "notes/pager.md", "notes/storage.md", cwd=work))
    steps = document["steps"]
    assert (document["from"], document["to"]) == ("notes/pager.md", "notes/storage.md")
    assert [step["kind"] for step in steps] == ["link", "mention"]
    assert [step["source"] for step in steps] == document["path"][:-1]
    assert [step["target"] for step in steps] == document["path"][1:]
    assert document["path"][0] in ids_of(ask, work, "notes/pager.md")
    assert document["path"][-1] in ids_of(ask, work, "notes/storage.md")
    assert document["strength"] == pytest.approx(
        0.7 * steps[0]["weight"] * 0.7 * steps[1]["weight"], abs=1e-5
    )
    for step in steps:
        check_step(work, step)
    done = ragx_inline("inspect", "path", "notes/pager.md", "notes/storage.md", cwd=work)
    assert done.stdout.splitlines() == [
        "notes/pager.md:1-3",
        '  1.000  links to "[[quorum|the voters]]" -> notes/quorum.md:1-3',
        f'  {steps[1]["weight"]:.3f}  mentions "Block keeper" -> notes/storage.md:5-7',
        f"strength {document['strength']:.3f}",
    ]
    back = ask("inspect", "path", "notes/storage.md", "notes/pager.md", cwd=work)
    assert back["path"] == document["path"][::-1]
    assert back["strength"] == document["strength"]


def test_a_path_between_chunks(work: Path, ask: Ask) -> None:
    _, first, last, *_ = ids_of(ask, work, "notes/recovery.md")
    document = checked(ask("inspect", "path", str(first), str(last), cwd=work))
    assert (document["path"][0], document["path"][-1]) == (first, last)
    assert {step["kind"] for step in document["steps"]} == {"adjacent"}
    assert document["strength"] == pytest.approx(0.35 ** len(document["steps"]), abs=1e-6)
    (crash,) = ids_of(ask, work, "notes/crash.md")
    document = ask("inspect", "path", "notes/crash.md", str(first), cwd=work)
    assert document["path"] == [crash, first]
    assert [step["kind"] for step in document["steps"]] == ["link"]


def test_the_strength_of_a_long_way(make_corpus: MakeCorpus, ask: Ask, ragx_inline: RunCli) -> None:
    """What is little is not nothing: 0 says that no way leads."""
    parts = "\n\n".join(f"Paragraph {at}. {PLAIN}" for at in range(30))
    root = make_corpus({"long.txt": parts}, settings=SMALL)
    ask("index", cwd=root)
    ids = [str(chunk_id) for chunk_id in ids_of(ask, root, "long.txt")]
    for n in (3, 20):
        document = checked(ask("inspect", "path", ids[0], ids[n], cwd=root))
        assert len(document["steps"]) == n
        assert document["strength"] == pytest.approx(0.35**n, rel=1e-5)
        text = ragx_inline("inspect", "path", ids[0], ids[n], cwd=root).stdout.splitlines()[-1]
        assert float(text.removeprefix("strength ")) == pytest.approx(0.35**n, rel=0.05)


def test_a_path_to_itself(work: Path, ask: Ask, ragx_inline: RunCli) -> None:
    first, second, *_ = ids_of(ask, work, "notes/recovery.md")
    for one, other, at in (
        ("notes/recovery.md", "notes/recovery.md", first),
        ("notes/recovery.md", str(second), second),
        (str(second), "./notes/recovery.md", second),
        (str(first), str(first), first),
    ):
        document = checked(ask("inspect", "path", one, other, cwd=work))
        assert (document["path"], document["steps"], document["strength"]) == ([at], [], 1.0)
    done = ragx_inline("inspect", "path", str(first), str(first), cwd=work)
    assert (done.returncode, done.stdout) == (0, "both are notes/recovery.md:1-3\n")


def test_no_path(work: Path, ask: Ask, ragx_inline: RunCli, put: Put) -> None:
    put(work, {"notes/empty.md": ""})
    ask("index", cwd=work)
    for other in ("notes/quorum.md", "shop/cart.py", "notes/empty.md"):
        document = checked(ask("inspect", "path", "notes/lonely.md", other, cwd=work, status=1))
        assert (document["path"], document["steps"], document["strength"]) == ([], [], 0)
    done = ragx_inline("inspect", "path", "notes/lonely.md", "shop/cart.py", cwd=work)
    assert (done.returncode, done.stdout) == (1, "")
    assert "no way" in done.stderr


def test_a_file_whose_name_is_a_number(make_corpus: MakeCorpus, ask: Ask) -> None:
    root = make_corpus(
        {
            "12345": "# Five\n\nSee [b](b.md).\n",
            "sub/678": "[b](../b.md)\n",
            "b.md": "# Beaver\n\nDams.\n",
        },
        settings='[corpus]\ninclude = ["*"]\n',
    )
    ask("index", cwd=root)
    (numbered,) = ids_of(ask, root, "12345")
    document = ask("inspect", "path", "12345", "b.md", cwd=root, status=None)
    assert document["path"][:1] in ([], [numbered])
    document = ask("inspect", "path", "12345", str(numbered), cwd=root)
    assert document["path"] == [numbered]
    (below,) = ids_of(ask, root, "sub/678")
    document = ask("inspect", "path", "./678", str(below), cwd=root / "sub")
    assert document["path"] == [below]
    # A number alone is a chunk; a file of that name is meant only as results give it.
    document = ask("inspect", "path", "678", str(below), cwd=root / "sub", status=2)
    assert document["error"]["code"] == "no_such_chunk"


def test_paths_from_below(work: Path, ask: Ask) -> None:
    document = ask("inspect", "path", "pager.md", "../notes/quorum.md", cwd=work / "notes")
    assert len(document["steps"]) == 1


# Edges alone.


def edges_of(ask: Ask, root: Path) -> dict[int, list[Json]]:
    return {
        chunk_id: ask("inspect", "chunk", str(chunk_id), cwd=root)["edges"]
        for path in WORK
        if (root / path).exists()
        for chunk_id in ids_of(ask, root, path)
    }


def test_a_changed_k_wants_edges_only(embedded: Path, ask: Ask, ragx_inline: RunCli) -> None:
    before = edges_of(ask, embedded)
    set_to(embedded, "[graph]\nk = 1\nmin_edge_sim = 0.2\n", "builtin")
    document = checked(ask("index", cwd=embedded, status=2))
    assert document["error"]["code"] == "manifest_mismatch"
    assert "ragx index --edges-only" in document["error"]["hint"]
    assert "graph.k" in document["error"]["message"]
    assert "graph.k" in ask("status", cwd=embedded)["settings_differ"]
    assert edges_of(ask, embedded) == before
    ask("query", "majority", cwd=embedded)  # what is there still answers
    report = checked(ask("index", "--edges-only", cwd=embedded))
    assert (report["files_indexed"], report["files_read"], report["embedded"]) == (0, 0, 0)
    after = edges_of(ask, embedded)
    assert after.keys() == before.keys()
    assert after != before
    for chunk_id in before:
        named = [
            [edge for edge in edges[chunk_id] if edge["kind"] != "similar"]
            for edges in (before, after)
        ]
        assert named[0] == named[1]
    assert ask("index", cwd=embedded)["files_indexed"] == 0
    assert ask("status", cwd=embedded)["settings_differ"] == ""
    assert "edges" in ragx_inline("index", "--edges-only", cwd=embedded).stdout


def test_status_names_the_cheap_way(embedded: Path, ragx_inline: RunCli) -> None:
    set_to(embedded, "[graph]\nk = 2\n", "builtin")
    (row,) = [
        line
        for line in ragx_inline("status", cwd=embedded).stdout.splitlines()
        if line.startswith("settings")
    ]
    assert "--edges-only" in row


def test_edges_only_gives_what_a_full_run_gives(embedded: Path, ask: Ask) -> None:
    set_to(embedded, "[graph]\nk = 2\n", "builtin")
    ask("index", "--edges-only", cwd=embedded)
    edges = edges_of(ask, embedded)
    communities = ask("inspect", "communities", cwd=embedded)
    ask("index", "--full", cwd=embedded)
    assert edges_of(ask, embedded) == edges
    assert ask("inspect", "communities", cwd=embedded) == communities
    set_to(embedded, '[graph]\nk = 2\nedge_source = "chunk"\n', "builtin")
    ask("index", "--edges-only", cwd=embedded)
    assert ask("verify", cwd=embedded, status=0)


def test_edges_only_reads_no_file(work: Path, ask: Ask, put: Put) -> None:
    before = edges_of(ask, work)
    put(work, {"notes/new.md": "# New page\n", "notes/quorum.md": "# Other\n"})
    (work / "notes" / "pager.md").unlink()
    report = ask("index", "--edges-only", cwd=work)
    assert report["files_read"] == 0
    status = ask("status", cwd=work)
    assert status["drift"] == {"new": 1, "changed": 1, "deleted": 1}
    assert status["communities_stale"] is False
    put(work, {path: text for path, text in WORK.items() if path.startswith("notes/")})
    (work / "notes" / "new.md").unlink()
    assert edges_of(ask, work) == before


def test_edges_only_counts_all_files(work: Path, ask: Ask) -> None:
    report = ask("index", "--edges-only", cwd=work)
    n_files = ask("status", cwd=work)["files"]
    assert (report["files_total"], report["files_unchanged"]) == (n_files, n_files)


@pytest.mark.parametrize(
    "args",
    [
        ["notes/quorum.md"],
        ["no-such-file.md"],
        ["--full"],
        ["--no-cache"],
        ["--force", "notes/quorum.md"],
        ["--dry-run"],
    ],
)
def test_edges_only_goes_with_nothing_else(work: Path, ask: Ask, args: list[str]) -> None:
    document = ask("index", "--edges-only", *args, cwd=work, status=2)
    assert document["error"]["code"] == "usage"
    assert "--edges-only" in document["error"]["message"]


def test_edges_only_needs_an_index(make_corpus: MakeCorpus, ask: Ask) -> None:
    root = make_corpus(WORK)
    document = ask("index", "--edges-only", cwd=root, status=2)
    assert document["error"]["code"] == "index_missing"


def test_edges_only_without_an_index_fails_and_makes_none(
    make_corpus: MakeCorpus, ask: Ask
) -> None:
    root = make_corpus(WORK)
    ask("index", "--edges-only", cwd=root, status=2)
    assert ask("status", cwd=root, status=1)["indexed"] is False


def test_edges_only_does_not_hide_other_settings(work: Path, ask: Ask) -> None:
    (work / "ragx.toml").write_text(
        '[embeddings]\nprovider = "none"\n[chunking]\nsize_tokens = 99\n[graph]\nk = 3\n'
    )
    document = ask("index", "--edges-only", cwd=work, status=2)
    assert document["error"]["code"] == "manifest_mismatch"
    assert "chunking.size_tokens" in document["error"]["message"]
    assert "--full" in document["error"]["hint"]


# Status.


def test_status(work: Path, ask: Ask, ragx_inline: RunCli, put: Put) -> None:
    status = checked(ask("status", cwd=work))
    assert status["edges"] > 0
    assert (status["communities"] > 1, status["communities_stale"]) == (True, False)
    row = f"graph    {status['edges']} edges, {status['communities']} communities"
    assert row in ragx_inline("status", cwd=work).stdout.splitlines()
    put(work, {"notes/new.md": "# New page\n\nSee [quorum](quorum.md).\n"})
    report = ask("index", cwd=work)
    status = checked(ask("status", cwd=work))
    assert (status["edges"], status["communities"]) == (
        report["edges_total"], report["communities_total"],
    )  # fmt: skip
    assert status["communities_stale"] is True
    assert "older graph" in ragx_inline("status", cwd=work).stdout
    ask("inspect", "communities", cwd=work)
    assert ask("status", cwd=work)["communities_stale"] is False
    assert "older graph" not in ragx_inline("status", cwd=work).stdout


# Weird files.

HANDBOOK = {
    "handbook.md": f"# Field handbook\n\n{PLAIN}\n\n## Turtle care\n\n{PLAIN}\n",
}
SOUP = "a (b) [c]+^$.*|{2}\\d.md"
WEIRD: dict[str, str | bytes] = {
    **HANDBOOK,
    "crlf.md": b"# Windows page\r\n\r\nOne.\r\n\r\nZebra [care](handbook.md#turtle-care)\r\n",
    "over.md": b"# Over page\r\n\r\nGnu [the\r\ncare](handbook.md#turtle-care)\r\n",
    "mark.md": b"\xef\xbb\xbf# Marked page\n\nGiraffe. The Field handbook says so.\n",
    "wide.md": "# Wide page\r\n\r\nOne.\r\n\r\nOkapi. Der Field handbook sagt größer.\r\n".encode(
        "utf-16"
    ),
    "mac.md": b"# Mac page\r\rTapir.\r\rSee [care](handbook.md#turtle-care)\r",
    "mit leer & ümlaut/größe eins.md": "# Größe eins\n\nWombat.\n",
    "angle.md": "# Angle page\n\nDingo [x](<mit leer & ümlaut/größe eins.md>)\n",
    "coded.md": (
        "# Coded page\n\nQuoll [x](mit%20leer%20&%20%C3%BCmlaut/gr%C3%B6%C3%9Fe%20eins.md)\n"
    ),
    "wiki.md": "# Wiki page\n\nNumbat [[Größe eins#x|größer]]\n",
    SOUP: "# Soup kitchen\n\nBilby [h](handbook.md)\n",
    "named.md": f"# Named page\n\nKoala `{SOUP}` and the Soup kitchen.\n",
    "untitled.md": "---\ntitle: ''\n---\n#\n\nCassowary [h](handbook.md)\n",
}


@pytest.fixture
def weird(make_corpus: MakeCorpus, ask: Ask) -> Path:
    root = make_corpus(WEIRD, settings=SMALL)
    ask("index", cwd=root)
    return root


@pytest.mark.parametrize(
    ("one", "other", "kind", "line", "text"),
    [
        ("crlf.md", "handbook.md", "link", 5, "[care](handbook.md#turtle-care)"),
        ("over.md", "handbook.md", "link", 3, "[the\r\ncare](handbook.md#turtle-care)"),
        ("mark.md", "handbook.md", "mention", 3, "Field handbook"),
        ("wide.md", "handbook.md", "mention", 5, "Field handbook"),
        ("mac.md", "handbook.md", "link", 5, "[care](handbook.md#turtle-care)"),
        ("angle.md", "mit leer & ümlaut/größe eins.md", "link", 3,
         "[x](<mit leer & ümlaut/größe eins.md>)"),
        ("coded.md", "mit leer & ümlaut/größe eins.md", "link", 3,
         "[x](mit%20leer%20&%20%C3%BCmlaut/gr%C3%B6%C3%9Fe%20eins.md)"),
        ("wiki.md", "mit leer & ümlaut/größe eins.md", "link", 3, "[[Größe eins#x|größer]]"),
        (SOUP, "handbook.md", "link", 3, "[h](handbook.md)"),
        ("untitled.md", "handbook.md", "link", 6, "[h](handbook.md)"),
    ],
)  # fmt: skip
def test_evidence_in_odd_files(
    weird: Path, ask: Ask, one: str, other: str, kind: str, line: int, text: str
) -> None:
    found = [
        evidence
        for evidence in evidence_of(ask, weird, one, other, kind)
        if (evidence["line"], evidence["text"]) == (line, text)
    ]
    assert found, evidence_of(ask, weird, one, other, kind)
    document = ask("inspect", "path", one, other, cwd=weird)
    assert len(document["steps"]) == 1


def test_a_heading_is_found_behind_any_line_end(weird: Path, ask: Ask) -> None:
    for path in ("crlf.md", "over.md", "mac.md"):
        assert joined(ask, weird, path, "link") == {"handbook.md:5"}


def test_names_in_a_file_with_lone_carriage_returns(make_corpus: MakeCorpus, ask: Ask) -> None:
    root = make_corpus({
        **HANDBOOK, "mac.md": b"# Mac page\r\rTapir. The Field handbook says so.\r",
    })  # fmt: skip
    ask("index", cwd=root)
    assert joined(ask, root, "mac.md", "mention") == {"handbook.md:1"}


def test_a_name_of_special_characters(weird: Path, ask: Ask, ragx_inline: RunCli) -> None:
    texts = {evidence["text"] for evidence in evidence_of(ask, weird, "named.md", SOUP, "mention")}
    assert texts <= {"Soup kitchen", SOUP, SOUP.rstrip()} != set()
    assert texts
    done = ragx_inline("query", "bilby", "--explain", cwd=weird)
    assert f'{SOUP}:1-3 -> links to "[h](handbook.md)" -> handbook.md:1-3' in chains(done.stdout)
    assert ask("inspect", "path", SOUP, SOUP, cwd=weird)["strength"] == 1


def test_explanations_of_odd_files(weird: Path, ask: Ask) -> None:
    for word in (
        "zebra", "gnu", "giraffe", "okapi", "tapir", "wombat", "dingo", "quoll", "numbat", "bilby",
        "koala", "cassowary", "turtle",
    ):  # fmt: skip
        document = ask("query", word, "--explain", cwd=weird)
        check_explained(weird, ask, document)
        assert max(hops_of(document)) >= 1

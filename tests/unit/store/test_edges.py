"""The graph of a state: which rows give which edges, its file, and what an edge is shown by."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ragx.store import edges
from ragx.store.base import LinkOptions
from ragx.store.edges import GRAPH_NAME, graph_digest, map_graph, write_graph
from ragx.store.sqlite import SqliteReader, SqliteWriter


def rarity(n: int, df: int) -> float:
    return math.log(1 + n / df) / math.log(1 + n)


def graph_file(bench: Any) -> Path:
    path: Path = bench.root / ".ragx" / GRAPH_NAME
    return path


# Names.


def test_a_mention_weighs_by_how_rare_the_name_is(bench: Any) -> None:
    bench.commit(
        {
            "panda.md": [bench.Piece("Text.", names=("Red Panda",))],
            "x.md": [bench.Piece("A red panda.")],
            "y.md": [bench.Piece("Red panda, red panda.")],
            "z.md": [bench.Piece("No more.")],
        }
    )
    weight = pytest.approx(rarity(4, 2))
    assert bench.edges("mention") == {("panda.md", "x.md"): weight, ("panda.md", "y.md"): weight}
    bench.commit({"y.md": None})
    assert bench.edges("mention") == {("panda.md", "x.md"): pytest.approx(1.0)}


def test_a_name_of_several_is_shared_out(bench: Any) -> None:
    bench.commit(
        {
            "a.md": [bench.Piece("Text.", names=("Red Panda",))],
            "b.md": [bench.Piece("Text.", names=("Red Panda",))],
            "x.md": [bench.Piece("A red panda.")],
        }
    )
    half = pytest.approx(rarity(3, 1) / 2)
    assert bench.edges("mention") == {("a.md", "x.md"): half, ("b.md", "x.md"): half}


def test_of_several_names_the_strongest_counts(bench: Any) -> None:
    bench.commit(
        {
            "a.md": [bench.Piece("Text.", names=("Red Panda", "Firefox"))],
            "x.md": [bench.Piece("A red panda, or «Firefox».")],
            "y.md": [bench.Piece("A red panda.")],
        }
    )
    assert bench.edges("mention") == {
        ("a.md", "x.md"): pytest.approx(rarity(3, 1)),
        ("a.md", "y.md"): pytest.approx(rarity(3, 2)),
    }


def test_a_file_that_bears_the_name_points_at_nobody(bench: Any) -> None:
    bench.commit(
        {
            "a.md": [bench.Piece("Red panda.", names=("Red Panda",)), bench.Piece("Red panda.")],
            "b.md": [bench.Piece("Red panda.", names=("Red Panda",))],
        }
    )
    assert bench.edges("mention") == {}
    bench.commit({"x.md": [bench.Piece("Red panda.")]})
    # Those who bear the name do not make it less rare.
    half = pytest.approx(rarity(4, 1) / 2)
    assert bench.edges("mention") == {("a.md", "x.md"): half, ("b.md", "x.md"): half}


def test_a_name_that_all_use_is_no_pointer(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edges, "_MIN_COMMON", 2)
    bench.commit({"a.md": [bench.Piece("Text.", names=("Red Panda",))]})
    for i in range(2):
        bench.commit({f"{i}.md": [bench.Piece(f"Red panda {i}.")]})
    assert len(bench.edges("mention")) == 2
    bench.commit({"2.md": [bench.Piece("Red panda 2.")]})
    assert bench.edges("mention") == {}
    bench.commit({"0.md": None})
    assert len(bench.edges("mention")) == 2


def test_a_symbol_weighs_less_where_it_is_not_in_sight(bench: Any) -> None:
    bench.commit(
        {
            "lib.py": [bench.Piece("def compute_total(): ...", symbols=("compute_total",))],
            "x.py": [bench.Piece("from lib import compute_total\ncompute_total()")],
            "y.py": [bench.Piece("compute_total()")],
        }
    )
    whole = rarity(3, 2)
    assert bench.edges("symbol") == {
        ("lib.py", "x.py"): pytest.approx(whole),
        ("lib.py", "y.py"): pytest.approx(edges._UNSEEN_SYMBOL * whole),
    }
    # The import leads nowhere any more.
    pieces = bench.tree["lib.py"]
    bench.commit({"lib.py": None, "other.py": pieces})
    assert bench.edges("import") == {}
    unseen = pytest.approx(edges._UNSEEN_SYMBOL * whole)
    assert bench.edges("symbol") == {("other.py", "x.py"): unseen, ("other.py", "y.py"): unseen}


# Links.


def test_a_link_to_what_comes_later_moves_and_goes(bench: Any) -> None:
    page = [bench.Piece("One."), bench.Piece("Two.")]
    bench.commit({"x.md": [bench.Piece("[see](sub/page.md)")]})
    assert bench.edges("link") == {}
    bench.commit({"sub/page.md": page})
    assert bench.edges("link") == {("sub/page.md", "x.md"): 1.0}
    bench.commit({"sub/page.md": None, "sub/else.md": page})
    assert bench.edges("link") == {}
    bench.commit({"sub/else.md": None, "sub/page.md": page})
    assert bench.edges("link") == {("sub/page.md", "x.md"): 1.0}
    # A relative link leads elsewhere when its own file moves.
    bench.commit(
        {"x.md": None, "y/x.md": [bench.Piece("[see](sub/page.md)")], "y/sub/page.md": page}
    )
    assert bench.edges("link") == {("y/sub/page.md", "y/x.md"): 1.0}


def test_a_wiki_link_follows_the_title(bench: Any) -> None:
    bench.commit({"x.md": [bench.Piece("[[Red Panda]]")], "a.md": [bench.Piece("Text.")]})
    assert bench.edges("link") == {}
    bench.commit({"b.md": [bench.Piece("Text.", names=("Red Panda",))]})
    assert bench.edges("link") == {("b.md", "x.md"): 1.0}
    # A file of that very name is nearer than a title.
    bench.commit({"Red Panda.md": [bench.Piece("Text.")]})
    assert bench.edges("link") == {("Red Panda.md", "x.md"): 1.0}
    bench.commit({"Red Panda.md": None, "b.md": None})
    assert bench.edges("link") == {}


@pytest.mark.parametrize(
    ("fragment", "ordinal"),
    [("", 0), ("#top", 0), ("#red-panda", 1), ("#Red%20Panda", 1), ("#food", 2), ("#nowhere", 0)],
)
def test_a_fragment_leads_to_its_heading(bench: Any, fragment: str, ordinal: int) -> None:
    bench.commit(
        {
            "page.md": [
                bench.Piece("One.", heading=("Top",)),
                bench.Piece("Two.", heading=("Top", "Red Panda")),
                bench.Piece("Three.", heading=("Top", "Red Panda", "Food")),
                bench.Piece("Four.", heading=("Top", "Red Panda", "Food")),
            ],
            "x.md": [bench.Piece(f"[see](page.md{fragment})")],
        }
    )
    target = "page.md" + (f":{ordinal}" if ordinal else "")
    assert bench.edges("link") == {(target, "x.md"): 1.0}


def test_a_heading_that_moves_takes_the_link_along(bench: Any) -> None:
    food = bench.Piece("Eats bamboo.", heading=("Top", "Food"))
    bench.commit(
        {"page.md": [bench.Piece("One."), food], "x.md": [bench.Piece("[f](page.md#food)")]}
    )
    assert bench.edges("link").keys() == {("page.md:1", "x.md")}
    bench.commit({"page.md": [bench.Piece("One."), bench.Piece("New."), food]})
    assert bench.edges("link").keys() == {("page.md:2", "x.md")}
    bench.commit({"page.md": [bench.Piece("One."), bench.Piece("New.")]})
    assert bench.edges("link").keys() == {("page.md", "x.md")}


def test_a_link_within_a_file(bench: Any) -> None:
    bench.commit(
        {
            "a.md": [
                bench.Piece("[below](#food)", heading=("Top",)),
                bench.Piece("Text.", heading=("Top", "Food")),
            ]
        }
    )
    assert bench.edges("link") == {("a.md", "a.md:1"): 1.0}


def test_a_link_to_itself_is_none(bench: Any) -> None:
    bench.commit({"a.md": [bench.Piece("[me](a.md) [[a]]"), bench.Piece("More.")]})
    assert bench.edges("link") == {}


def test_an_import_leads_to_the_definition(bench: Any) -> None:
    bench.commit(
        {
            "lib.py": [
                bench.Piece("import os", symbols=()),
                bench.Piece("def compute_total(): ...", symbols=("compute_total",)),
                bench.Piece("class ZebraStripe: ...", symbols=("ZebraStripe",)),
            ],
            "x.py": [bench.Piece("from lib import ZebraStripe")],
            "y.py": [bench.Piece("import lib")],
            "z.py": [bench.Piece("from lib import unknown")],
        }
    )
    assert bench.edges("import") == {
        ("lib.py:2", "x.py"): 1.0,
        ("lib.py", "y.py"): 1.0,
        ("lib.py", "z.py"): 1.0,
    }


def test_a_reference_to_several_files_is_shared_out(bench: Any) -> None:
    tree = {f"a/b/{name}.java": [bench.Piece(f"package a.b; class {name} {{}}")] for name in "CDE"}
    bench.commit({"Main.java": [bench.Piece("import a.b.*;")], **tree})
    third = pytest.approx(1 / 3)
    assert bench.edges("import") == {("Main.java", path): third for path in tree}
    bench.commit({"a/b/E.java": None})
    assert set(bench.edges("import").values()) == {1 / 2}


def test_chunks_that_follow_each_other(bench: Any) -> None:
    bench.commit(
        {"a.md": [bench.Piece(f"Text {i}.") for i in range(3)], "b.md": [bench.Piece("B")]}
    )
    assert bench.edges("adjacent") == {("a.md", "a.md:1"): 1.0, ("a.md:1", "a.md:2"): 1.0}


# Evidence.


def everything(bench: Any) -> None:
    near = ((1.0, 0.0),), ((0.8, 0.6),)
    bench.commit(
        {
            "panda.md": [
                bench.Piece("Eats bamboo.", names=("Red Panda",), windows=near[0]),
                bench.Piece("Sleeps.", heading=("Red Panda", "Sleep")),
            ],
            "lib.py": [bench.Piece("def compute_total(): ...", symbols=("compute_total",))],
            "x.md": [
                bench.Piece("日本 é [zzz](panda.md#sleep). The red panda: `compute_total`."),
                bench.Piece("Else.", windows=near[1]),
            ],
            "y.py": [bench.Piece("from lib import compute_total\n\ncompute_total()")],
        }
    )


@pytest.mark.parametrize("back", [False, True])
def test_what_an_edge_is_shown_by(bench: Any, back: bool) -> None:
    everything(bench)
    cases = {
        ("x.md", 0, "panda.md", 0): [("mention", "red panda")],
        ("x.md", 0, "panda.md", 1): [("link", "[zzz](panda.md#sleep)")],
        ("x.md", 0, "lib.py", 0): [("symbol", "compute_total")],
        ("y.py", 0, "lib.py", 0): [
            ("import", "from lib import compute_total"),
            ("symbol", "compute_total"),
        ],
        ("panda.md", 0, "x.md", 1): [("similar", "")],
        ("x.md", 0, "x.md", 1): [("adjacent", "")],
        ("panda.md", 0, "y.py", 0): [],
    }
    with closing(SqliteReader(bench.root)) as reader:
        for (source, at, target, there), expected in cases.items():
            ends = (bench.id_of(source, at), bench.id_of(target, there))
            pair = ends[::-1] if back else ends
            found = reader.evidence([pair])
            assert found.keys() == {pair}
            assert [(item.kind, item.text) for item in found[pair]] == expected
            texts = {key: chunk.text for key, chunk in reader.chunks(ends).items()}
            for item in found[pair]:
                assert texts[item.source][item.start : item.end] == item.text
                assert {item.source, item.target} == set(ends)
                if item.text:
                    # Whoever asks, the text is of the chunk that names the other.
                    assert (item.source, item.target) == ends


def test_evidence_of_many_pairs_at_once(bench: Any) -> None:
    everything(bench)
    with closing(SqliteReader(bench.root)) as reader:
        ids = reader.graph().ids.tolist()
        pairs = [(a, b) for a in ids for b in ids if a != b]
        together = reader.evidence(pairs)
        assert together == {pair: reader.evidence([pair])[pair] for pair in pairs}
        n_edges = 0
        for (a, b), items in together.items():
            other = together[b, a]
            assert [(i.kind, i.weight) for i in items] == [(i.kind, i.weight) for i in other]
            assert [i.weight for i in items] == sorted((i.weight for i in items), reverse=True)
            n_edges += len(items)
        assert n_edges == 2 * reader.counts().edges
        assert reader.evidence([]) == {}
        assert reader.evidence([(ids[0], 12345), (ids[0], ids[0])]) == {
            (ids[0], 12345): [],
            (ids[0], ids[0]): [],
        }


def test_the_evidence_is_the_name_that_gave_the_edge(bench: Any) -> None:
    """A name that the source's own file bears joins nobody, however rare it is."""
    bench.commit(
        {
            "a.md": [bench.Piece("Text.", names=("Red Panda", "Zebra Crossing"))],
            "b.md": [
                bench.Piece("Text.", names=("Red Panda",)),
                bench.Piece("A red panda, then a zebra crossing."),
            ],
            "c.md": [bench.Piece("A zebra crossing.")],
        }
    )
    (item,) = bench.evidence(bench.id_of("b.md", 1), bench.id_of("a.md"))
    assert (item.kind, item.text) == ("mention", "zebra crossing")


# The file.


def broken_file(path: Path, how: str) -> None:
    raw = path.read_bytes()
    if how == "missing":
        path.unlink()
        return
    if how == "truncated":
        raw = raw[:-1]
    elif how == "head":
        raw = raw[:20]
    elif how == "longer":
        raw += b"\0"
    elif how == "stale":
        raw = raw[:8] + bytes(16) + raw[24:]
    else:
        at = int(how.removeprefix("flip "))
        raw = bytearray(raw)
        raw[at] ^= 0xFF
    path.write_bytes(bytes(raw))


@pytest.mark.parametrize(
    "how",
    ["missing", "truncated", "head", "longer", "stale"]
    + [f"flip {at}" for at in (0, 8, 24, 32, 40, 56, 63, 64, 200, -1)],
)
def test_a_graph_file_that_is_not_right_is_made_anew(bench: Any, how: str) -> None:
    everything(bench)
    path = graph_file(bench)
    right = path.read_bytes()
    with closing(SqliteReader(bench.root)) as reader:
        expected = graph_digest(reader.graph())
    broken_file(path, how)
    assert how == "missing" or path.read_bytes() != right
    with closing(SqliteReader(bench.root)) as reader:
        assert graph_digest(reader.graph()) == expected == reader.digests().edges
    assert path.read_bytes() == right


def test_a_whole_file_is_believed(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    everything(bench)

    def refuse(*_: object) -> None:
        raise AssertionError("derived though the file is right")

    monkeypatch.setattr("ragx.store.reader.stored_graph", refuse)
    with closing(SqliteReader(bench.root)) as reader:
        assert reader.graph() is reader.graph()
        assert len(reader.graph()) == 6


def test_a_directory_that_takes_no_file_still_gives_the_graph(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    everything(bench)
    graph_file(bench).unlink()

    def refuse(*_: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("ragx.store.edges.replace_file", refuse)
    with closing(SqliteReader(bench.root)) as reader:
        assert graph_digest(reader.graph()) == reader.digests().edges
    assert not graph_file(bench).exists()


def test_an_open_reader_keeps_its_graph(bench: Any) -> None:
    everything(bench)
    early, late = SqliteReader(bench.root), SqliteReader(bench.root)
    with closing(early), closing(late):
        before, stamp = graph_digest(early.graph()), early.graph_stamp()
        pair = (bench.id_of("x.md"), bench.id_of("panda.md"))
        said = early.evidence([pair])
        bench.commit({"x.md": None, "new.md": [bench.Piece("A red panda.")]})
        newer = graph_file(bench).read_bytes()
        assert graph_digest(early.graph()) == before
        # Opened before the commit, asked after it: the file is another state's by now.
        assert graph_digest(late.graph()) == before
        assert (late.graph_stamp(), early.graph_stamp()) == (stamp, stamp)
        assert late.evidence([pair]) == early.evidence([pair]) == said
        assert graph_file(bench).read_bytes() == newer
    with closing(SqliteReader(bench.root)) as reader:
        assert graph_digest(reader.graph()) != before
        assert reader.graph_stamp() != stamp


def test_the_stamp_stays_where_the_graph_stays(bench: Any) -> None:
    everything(bench)
    with closing(SqliteReader(bench.root)) as reader:
        stamp, row = reader.graph_stamp(), reader.file("x.md")
    assert row is not None
    with closing(SqliteWriter(bench.root)) as writer:
        n_edges = writer.n_edges()
        writer.stage_stat(row)
        result = writer.commit(writer.manifest(), bench.options)
        writer.write_derived()
    with closing(SqliteReader(bench.root)) as reader:
        assert reader.graph_stamp() == stamp
        assert result.edges == n_edges == reader.counts().edges == reader.graph().n_edges


def test_a_graph_without_edges_and_one_without_nodes(bench: Any, tmp_path: Path) -> None:
    bench.commit({"a.md": [bench.Piece("Text.")]})
    with closing(SqliteReader(bench.root)) as reader:
        graph = reader.graph()
        assert (len(graph), graph.n_edges, reader.counts().edges) == (1, 0, 0)
    bench.commit({"a.md": None})
    with closing(SqliteReader(bench.root)) as reader:
        graph = reader.graph()
        assert (len(graph), graph.n_edges) == (0, 0)
        assert reader.evidence([(1, 2)]) == {(1, 2): []}
    write_graph(tmp_path, bytes(16), graph)
    mapped = map_graph(tmp_path, bytes(16))
    assert mapped is not None
    assert graph_digest(mapped) == graph_digest(graph)
    assert map_graph(tmp_path, bytes(15) + b"x") is None


# Anew.


@pytest.mark.parametrize(
    "options", [LinkOptions(), LinkOptions(k=1), LinkOptions(edge_source="chunk")]
)
def test_relinking_ends_where_a_full_rebuild_does(
    bench: Any, options: LinkOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    everything(bench)
    bench.commit({}, options)
    before: Callable[[], Any] = bench.rows
    rows = before()
    bench._run(bench.root, {}, relink=True)
    bench.check()
    assert bench.rows() == rows
    # And whatever stood there before.
    monkeypatch.setattr("ragx.store.linking.MAX_BEARERS", 0)
    bench._run(bench.root, {}, relink=True)
    assert bench.rows()["mentions"] == []
    monkeypatch.undo()
    bench._run(bench.root, {}, relink=True)
    assert bench.rows() == rows

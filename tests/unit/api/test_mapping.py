"""Maps of small real indexes: what is shown where not all can be, and what groups it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ragx.api import Corpus, CorpusMap, IndexRequest, open_corpus
from ragx.api.mapping import draw_map
from ragx.errors import MissingDependency
from ragx.store.communities import CommunityOptions
from ragx.store.sqlite import SqliteReader

HUB = "# Hub\n\n" + " ".join(f"[leaf {n}](leaf{n}.md)" for n in range(6)) + "\n"


@pytest.fixture
def star(tmp_path: Path) -> Corpus:
    """A hub that links to six leaves and so names them, and a loner in a directory of its own."""
    (tmp_path / "ragx.toml").write_text('[embeddings]\nprovider = "none"\n')
    (tmp_path / "hub.md").write_text(HUB)
    for n in range(6):
        (tmp_path / f"leaf{n}.md").write_text(f"# Leaf {n}\n\nText number {n}.\n")
    (tmp_path / "apart").mkdir()
    (tmp_path / "apart" / "loner.md").write_text("Nobody knows me.\n")
    corpus = open_corpus(tmp_path)
    corpus.index(IndexRequest())
    return corpus


@pytest.fixture
def reader(star: Corpus) -> Iterator[SqliteReader]:
    with closing(SqliteReader(star.root)) as found:
        yield found


def drawn(reader: SqliteReader, **limits: int) -> CorpusMap:
    return draw_map(
        Path("/corpus"),
        reader,
        CommunityOptions(),
        edge_source="subchunk",
        subchunk_size_tokens=200,
        embedding_model="",
        **limits,
    )


def test_a_map_of_all_says_nothing(reader: SqliteReader) -> None:
    found = drawn(reader)
    assert found.notices == ()
    assert [node.chunk.path for node in found.nodes] == sorted(reader.files())
    assert len(found.edges) == found.n_edges == 12
    assert found.edge_counts == {"link": 6, "mention": 6}
    weights = [edge.weight for edge in found.edges]
    assert weights == sorted(weights, reverse=True)
    degrees = {node.chunk.path: node.degree for node in found.nodes}
    assert (degrees["hub.md"], degrees["leaf0.md"], degrees["apart/loner.md"]) == (12, 2, 0)


def test_where_not_all_fits_the_best_joined_are_shown(reader: SqliteReader) -> None:
    found = drawn(reader, max_nodes=3)
    assert [node.chunk.path for node in found.nodes] == ["hub.md", "leaf0.md", "leaf1.md"]
    assert (found.n_nodes, found.n_edges, len(found.edges)) == (8, 12, 4)
    assert found.notices == ("the map shows 3 of 8 chunks: those with the most edges",)
    assert all(found.node(edge.source) and found.node(edge.target) for edge in found.edges)
    # Sizes are those of the index, not of the map.
    assert sum(group.size for group in found.communities) <= 8
    assert max(group.size for group in found.communities) == 7


def test_where_not_all_edges_fit_it_is_said(reader: SqliteReader) -> None:
    found = drawn(reader, max_edges=4)
    assert (len(found.nodes), len(found.edges), found.n_edges) == (8, 4, 12)
    assert found.notices == ("the map holds 4 of 12 edges: the heaviest",)


def test_without_leidenalg_directories_group(
    reader: SqliteReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(*_: Any) -> None:
        raise MissingDependency("communities need leidenalg", hint="pip install leidenalg")

    monkeypatch.setattr(reader, "communities", missing)
    found = drawn(reader)
    assert found.grouping == "directory"
    assert [(group.label, group.size) for group in found.communities] == [("./", 7), ("apart/", 1)]
    assert found.notices == (
        "communities need leidenalg; pip install leidenalg: chunks are grouped by directory",
    )


def test_labels_are_headings_symbols_or_beginnings(tmp_path: Path) -> None:
    (tmp_path / "ragx.toml").write_text('[embeddings]\nprovider = "none"\n')
    (tmp_path / "a.md").write_text("# Title\n\n## Part of it\n\nText.\n")
    (tmp_path / "b.txt").write_text("Only\n  text, " + "and more of it, " * 20)
    (tmp_path / "c.py").write_text("def named():\n    return 1\n")
    (tmp_path / "d.py").write_text('"""What it is for."""\n\n__all__ = ["x"]\n')
    corpus = open_corpus(tmp_path)
    corpus.index(IndexRequest())
    labels = {node.chunk.path: node.label for node in corpus.map().nodes}
    assert labels["a.md"] in ("Title", "Part of it")
    assert labels["b.txt"].startswith("Only text, and more")
    assert labels["b.txt"].endswith("…")
    assert len(labels["b.txt"]) <= 60
    assert labels["c.py"] == "named"
    assert labels["d.py"].startswith('"""What it is for.')


def test_the_same_index_gives_the_same_map(star: Corpus) -> None:
    assert star.map() == star.map()


def test_the_stamp_changes_with_index_and_settings(star: Corpus) -> None:
    before = star.stamp()
    assert star.stamp() == before
    (star.root / "leaf0.md").write_text("# Leaf 0\n\nAnother text.\n")
    star.index(IndexRequest())
    changed = star.stamp()
    assert changed != before
    with (star.root / "ragx.toml").open("a") as settings:
        settings.write("[communities]\nresolution = 2.0\n")
    assert open_corpus(star.root).stamp() != changed

"""Communities beside the index: found once per state of the graph, never taken from elsewhere."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import xxhash

from ragx.algo import communities as algo
from ragx.api import IndexRequest, open_corpus
from ragx.errors import MissingDependency
from ragx.store.communities import COMMUNITIES_NAME, CommunityOptions, Partition, read_communities
from ragx.store.sqlite import SqliteReader

DEFAULT = CommunityOptions()
Text = Mapping[str, str | None]

# Two groups that name each other, and a bridge.
NOTES = {
    "bee.md": "# Bee hive\n\nSee [wax](wax.md) and [honey](honey.md).\n",
    "wax.md": "# Wax comb\n\nSee [honey](honey.md) and [bee](bee.md).\n",
    "honey.md": "# Honey jar\n\nSee [bee](bee.md) and [wax](wax.md).\n",
    "oak.md": "# Oak tree\n\nSee [elm](elm.md) and [ash](ash.md).\n",
    "elm.md": "# Elm tree\n\nSee [ash](ash.md) and [oak](oak.md).\n",
    "ash.md": "# Ash tree\n\nSee [oak](oak.md) and [elm](elm.md). A [bee](bee.md) lives there.\n",
}


def write(root: Path, files: Text) -> None:
    for path, text in files.items():
        full = root / path
        if text is None:
            full.unlink()
        else:
            full.parent.mkdir(parents=True, exist_ok=True)
            full.write_text(text)


def index(root: Path, **how: Any) -> Any:
    return open_corpus(root, env={}).index(IndexRequest(**how))


def corpus_of(root: Path, files: Text, settings: str = "") -> Path:
    root.mkdir()
    (root / "ragx.toml").write_text(f'[embeddings]\nprovider = "none"\n{settings}')
    write(root, files)
    index(root)
    return root


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """An index, as its first run leaves it."""
    return corpus_of(tmp_path / "corpus", NOTES)


def found(root: Path, options: CommunityOptions = DEFAULT) -> Partition:
    with closing(SqliteReader(root)) as reader:
        return reader.communities(options)


def groups(root: Path, options: CommunityOptions = DEFAULT) -> list[tuple[str, list[str]]]:
    """Label and paths of each community."""
    with closing(SqliteReader(root)) as reader:
        partition = reader.communities(options)
        paths = [reader.chunk_paths()[chunk] for chunk in reader.graph().ids.tolist()]
    assert len(partition.of) == len(paths)
    return [
        (label, [path for path, at in zip(paths, partition.of, strict=True) if at == number])
        for number, label in enumerate(partition.labels)
    ]


def file_of(root: Path) -> Path:
    return root / ".ragx" / COMMUNITIES_NAME


@pytest.fixture
def detections(monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, int]]:
    """Resolution and seed of each time that communities are really found."""
    calls: list[tuple[float, int]] = []
    detect = algo.detect

    def counted(*args: Any, resolution: float, seed: int) -> Any:
        calls.append((resolution, seed))
        return detect(*args, resolution=resolution, seed=seed)

    monkeypatch.setattr(algo, "detect", counted)
    return calls


@pytest.fixture
def no_leiden(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if leidenalg and igraph were not installed."""
    for name in ("igraph", "leidenalg"):
        monkeypatch.setitem(sys.modules, name, None)


# What is found.


def test_groups_of_files_that_name_each_other(corpus: Path) -> None:
    paths = sorted(paths for _, paths in groups(corpus))
    assert paths == [["ash.md", "elm.md", "oak.md"], ["bee.md", "honey.md", "wax.md"]]
    assert all(label for label, _ in groups(corpus))


def test_an_empty_index(tmp_path: Path) -> None:
    root = corpus_of(tmp_path / "corpus", {})
    partition = found(root)
    assert (partition.of, partition.labels) == ((), ())


def test_neighbours_in_a_file_do_not_hold_it_together(tmp_path: Path) -> None:
    """Side by side counts 0.3 here: a page that names two others more falls apart."""
    filler = "word " * 300
    parts = "\n".join(f"# Part {at}\n\n{filler}\n[x](p{at}.md) [y](q{at}.md)\n" for at in range(2))
    pages = {
        f"{name}{at}.md": f"# {name}{at}\n\n[x]({other}{at}.md) [part](all.md#part-{at})\n"
        for at in range(2)
        for name, other in (("p", "q"), ("q", "p"))
    }
    root = corpus_of(tmp_path / "corpus", {"all.md": parts, **pages})
    homes = [sorted(set(paths)) for _, paths in groups(root)]
    assert ["all.md", "p0.md", "q0.md"] in homes
    assert ["all.md", "p1.md", "q1.md"] in homes


# The file.


def test_the_file_serves_while_the_graph_is_the_same(
    corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise AssertionError("found anew")

    first = found(corpus)
    monkeypatch.setattr(algo, "detect", fails)
    monkeypatch.setattr(algo, "label_communities", fails)
    assert found(corpus) == first
    index(corpus)  # nothing has changed
    assert found(corpus) == first


def test_a_change_of_the_graph_makes_them_anew(
    corpus: Path, detections: list[tuple[float, int]]
) -> None:
    before = found(corpus)
    assert detections == []
    write(corpus, {"new.md": "# New page\n\nSee [oak](oak.md).\n"})
    index(corpus)
    assert detections == []  # an update leaves that to whoever asks
    assert read_communities(corpus / ".ragx", DEFAULT) == before
    after = found(corpus)
    assert detections == [(1.0, 42)]
    assert (len(after.of), after.stamp != before.stamp) == (7, True)
    assert found(corpus) == after == read_communities(corpus / ".ragx", DEFAULT)
    assert detections == [(1.0, 42)]


def test_labels_follow_the_text_although_the_edges_stay(corpus: Path) -> None:
    before = dict(map(reversed, ((label, tuple(paths)) for label, paths in groups(corpus))))
    bees = ("bee.md", "honey.md", "wax.md")
    text = "# {}\n\nQuokka marsupials, quokka burrows. See [a]({}.md) and [b]({}.md).\n"
    write(corpus, {
        "bee.md": text.format("Quokka one", "wax", "honey"),
        "wax.md": text.format("Quokka two", "honey", "bee"),
        "honey.md": text.format("Quokka three", "bee", "wax"),
    })  # fmt: skip
    index(corpus)
    after = {tuple(paths): label for label, paths in groups(corpus)}
    assert "quokka" in after[bees].lower()
    assert "quokka" not in before[bees].lower()


@pytest.mark.parametrize("options", [CommunityOptions(resolution=2.5), CommunityOptions(seed=7)])
def test_other_settings_make_them_anew(
    corpus: Path, detections: list[tuple[float, int]], options: CommunityOptions
) -> None:
    assert read_communities(corpus / ".ragx", options) is None
    changed = found(corpus, options)
    assert detections == [(options.resolution, options.seed)]
    assert found(corpus, options) == changed
    assert len(detections) == 1
    found(corpus)  # the file keeps one partition
    assert detections == [(options.resolution, options.seed), (1.0, 42)]


@pytest.mark.parametrize("command", ["full", "no_cache", "edges_only"])
def test_an_index_made_as_a_whole_has_them(corpus: Path, command: str) -> None:
    file_of(corpus).unlink()
    report = index(corpus, **{command: True})
    known = read_communities(corpus / ".ragx", DEFAULT)
    assert known is not None
    assert report.communities_total == len(known.labels) == 2
    with closing(SqliteReader(corpus)) as reader:
        assert known.stamp == reader.graph_stamp()


@pytest.mark.parametrize("command", ["full", "edges_only"])
def test_an_index_made_as_a_whole_replaces_old_ones(corpus: Path, command: str) -> None:
    write(corpus, {"oak.md": "# Oak tree\n\nAlone.\n", "new.md": "# New page\n\nAlone, too.\n"})
    index(corpus)
    index(corpus, **{command: True})
    assert open_corpus(corpus, env={}).status().communities_stale is False


# Damage.


def _sealed(body: bytes) -> bytes:
    return xxhash.xxh3_128_hexdigest(body).encode() + b"\n" + body


def _altered(key: str, change: Callable[[list[Any]], object]) -> Callable[[bytes], bytes]:
    """The document with one list changed, and a sum that fits."""

    def alter(data: bytes) -> bytes:
        facts = json.loads(data.partition(b"\n")[2])
        change(facts[key])
        return _sealed(json.dumps(facts).encode())

    return alter


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "cut": lambda data: data[: len(data) // 2],
    "one byte less": lambda data: data[:-1],
    "one byte more": lambda data: data + b" ",
    "a flipped bit": lambda data: data[:-9] + bytes([data[-9] ^ 1]) + data[-8:],
    "a flipped bit of the sum": lambda data: bytes([data[0] ^ 1]) + data[1:],
    "no sum": lambda data: data.partition(b"\n")[2],
    "binary": lambda data: bytes(range(256)) * 9,
    "zeros": lambda data: bytes(len(data)),
    "sealed, no JSON": lambda data: _sealed(b"not JSON"),
    "sealed, not UTF-8": lambda data: _sealed(b'"\xff"'),
    "sealed, a list": lambda data: _sealed(b"[1, 2]"),
    "sealed, a number": lambda data: _sealed(b"1"),
    "sealed, another document": lambda data: _sealed(b'{"schema": "other"}'),
    "sealed, half a document": lambda data: _sealed(b'{"resolution": 1.0, "seed": 42, "of": 5}'),
    "sealed, a number of no community": _altered("of", lambda of: of.__setitem__(0, 99)),
    "sealed, a number below 0": _altered("of", lambda of: of.__setitem__(0, -1)),
    "sealed, a huge number": _altered("of", lambda of: of.__setitem__(0, 10**30)),
    "sealed, a fraction": _altered("of", lambda of: of.__setitem__(0, 0.5)),
    "sealed, a truth": _altered("of", lambda of: of.__setitem__(0, True)),
    "sealed, text for a number": _altered("of", lambda of: of.__setitem__(0, "0")),
    "sealed, a label without members": _altered("labels", lambda labels: labels.append("x")),
    "sealed, a number for a label": _altered("labels", lambda labels: labels.__setitem__(0, 5)),
    "sealed, a label without end": _altered("labels", lambda all_: all_.__setitem__(0, "x" * 999)),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_what_is_not_whole_is_not_used(
    corpus: Path, detections: list[tuple[float, int]], damage: Callable[[bytes], bytes]
) -> None:
    whole = file_of(corpus).read_bytes()
    expected = found(corpus)
    file_of(corpus).write_bytes(damage(whole))
    assert read_communities(corpus / ".ragx", DEFAULT) is None
    assert open_corpus(corpus, env={}).status().communities_stale is True
    assert found(corpus) == expected
    assert len(detections) == 1
    assert file_of(corpus).read_bytes() == whole


def test_a_sealed_file_of_fewer_nodes_is_not_used(
    corpus: Path, detections: list[tuple[float, int]]
) -> None:
    whole = file_of(corpus).read_bytes()
    expected = found(corpus)
    file_of(corpus).write_bytes(_altered("of", lambda of: of.pop())(whole))
    assert found(corpus) == expected
    assert len(detections) == 1


def test_the_file_of_another_corpus_is_not_used(
    corpus: Path, tmp_path: Path, detections: list[tuple[float, int]]
) -> None:
    other = corpus_of(tmp_path / "other", {"oak.md": "# Oak tree\n\nAlone.\n"})
    detections.clear()
    expected = found(corpus)
    file_of(corpus).write_bytes(file_of(other).read_bytes())
    assert found(corpus) == expected
    assert len(detections) == 1


def test_a_directory_in_its_place(corpus: Path) -> None:
    expected = found(corpus)
    file_of(corpus).unlink()
    file_of(corpus).mkdir()
    assert found(corpus) == expected
    assert not list((corpus / ".ragx").glob("*.tmp"))


def test_what_cannot_be_written_is_answered_all_the_same(
    corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a read-only directory; modes do not stop root, so the write itself is refused."""

    def refused(*_: Any) -> None:
        raise PermissionError(13, "Permission denied")

    expected = found(corpus)
    file_of(corpus).unlink()
    monkeypatch.setattr("ragx.store.communities.replace_file", refused)
    assert found(corpus) == expected
    assert not file_of(corpus).exists()


def test_a_read_only_directory(corpus: Path, detections: list[tuple[float, int]]) -> None:
    expected = found(corpus)
    file_of(corpus).unlink()
    directory = corpus / ".ragx"
    directory.chmod(0o500)
    try:
        assert found(corpus) == expected
    finally:
        directory.chmod(0o700)
    assert len(detections) == 1


def test_only_its_owner_may_read_it(corpus: Path) -> None:
    assert file_of(corpus).stat().st_mode & 0o077 == 0


def test_an_older_snapshot_keeps_its_own(corpus: Path) -> None:
    """A reader that a commit has overtaken answers for its state and leaves the file alone."""
    with closing(SqliteReader(corpus)) as reader:
        reader.graph()
        old_stamp = reader.graph_stamp()
        file_of(corpus).unlink()
        write(corpus, {"new.md": "# New page\n\nSee [oak](oak.md).\n"})
        index(corpus)
        now = found(corpus)
        partition = reader.communities(DEFAULT)
        assert (len(partition.of), partition.stamp) == (6, old_stamp)
    assert read_communities(corpus / ".ragx", DEFAULT) == now
    assert len(now.of) == 7


# Without leidenalg.


def test_without_leidenalg_the_hint_says_what_to_install(corpus: Path, no_leiden: None) -> None:
    assert found(corpus).labels  # what is known already needs nothing
    file_of(corpus).unlink()
    with pytest.raises(MissingDependency) as caught:
        found(corpus)
    assert "igraph" in caught.value.message
    assert "pip install" in caught.value.hint
    assert isinstance(caught.value.__cause__, ImportError)
    assert not file_of(corpus).exists()


def test_an_index_run_without_leidenalg_notes_it(tmp_path: Path, no_leiden: None) -> None:
    root = tmp_path / "corpus"
    root.mkdir()
    (root / "ragx.toml").write_text('[embeddings]\nprovider = "none"\n')
    write(root, NOTES)
    report = index(root)
    assert (report.committed, report.failed, report.communities_total) == (True, [], 0)
    notes = [note for path, note in report.notes if path == ".ragx"]
    assert len(notes) == 1
    assert "leidenalg" in notes[0]
    status = open_corpus(root, env={}).status()
    assert (status.communities, status.communities_stale) == (0, True)


def test_a_full_run_without_leidenalg_does_not_count_old_ones(
    corpus: Path, no_leiden: None
) -> None:
    write(corpus, {"new.md": "# New page\n\nAlone.\n"})
    report = index(corpus, full=True)
    assert any("no communities" in note for _, note in report.notes)
    assert report.communities_total == 0


# Incremental and fresh.

CHANGES: dict[str, Text] = {
    "edit": {"oak.md": "# Oak tree\n\nNow of [honey](honey.md) and [wax](wax.md) only.\n"},
    "rename": {"oak.md": None, "quercus.md": NOTES["oak.md"]},
    "delete": {"bee.md": None},
    "add": {"yew.md": "# Yew tree\n\nThe Oak tree and the Elm tree. [ash](ash.md)\n"},
    "all": dict.fromkeys(NOTES) | {"one.md": "# One page\n"},
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_an_updated_index_has_those_of_a_fresh_one(
    corpus: Path, tmp_path: Path, change: Text
) -> None:
    found(corpus)
    write(corpus, change)
    index(corpus)
    now = {path: text for path, text in {**NOTES, **change}.items() if text is not None}
    fresh = corpus_of(tmp_path / "fresh", now)
    assert groups(corpus) == groups(fresh)
    assert found(corpus).of == found(fresh).of


def test_and_after_many_changes(corpus: Path, tmp_path: Path) -> None:
    files: dict[str, str] = dict(NOTES)
    for change in [*CHANGES.values()][:4]:
        gone = [path for path in change if path not in files and change[path] is None]
        kept = {path: text for path, text in change.items() if path not in gone}
        write(corpus, kept)
        index(corpus)
        files = {p: t for p, t in {**files, **kept}.items() if t is not None}
        found(corpus)
    assert groups(corpus) == groups(corpus_of(tmp_path / "fresh", files))


# Status.


def test_status_says_when_they_are_of_an_older_graph(corpus: Path) -> None:
    opened = open_corpus(corpus, env={})
    assert (opened.status().communities, opened.status().communities_stale) == (2, False)
    write(corpus, {"new.md": "# New page\n\nAlone.\n"})
    report = index(corpus)
    status = opened.status()
    assert (status.communities, status.communities_stale) == (2, True)
    assert report.communities_total == 2  # the last known
    assert len(opened.communities()) == 3
    status = opened.status()
    assert (status.communities, status.communities_stale) == (3, False)


def test_status_finds_none_by_itself(corpus: Path, detections: list[tuple[float, int]]) -> None:
    file_of(corpus).unlink()
    status = open_corpus(corpus, env={}).status()
    assert (status.communities, status.communities_stale, detections) == (0, True, [])
    assert not file_of(corpus).exists()


def test_the_file_is_one_line_of_json_after_its_sum(corpus: Path) -> None:
    head, body = file_of(corpus).read_bytes().split(b"\n")
    assert head.decode() == xxhash.xxh3_128_hexdigest(body)
    assert set(json.loads(body)) == {"stamp", "made_by", "of", "labels"}

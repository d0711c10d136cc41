"""Whatever is done to a corpus, and however runs end, the next run makes the index a fresh one.

A machine edits a real directory and drives the library. After each run that succeeds, the index
must equal one built elsewhere from a copy of the tree, answers and graph included, and row by row
what the graph is derived from, since a graph may hide stale rows; readers that were open all the
while must still give the answers they gave at first. `RAGX_SEQUENCES=200` runs more of them
(research/increments.md).
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
import time
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from ragx.api import Corpus, IndexRequest, QueryRequest, open_corpus
from ragx.api.options import scan_options
from ragx.errors import BadEmbedding, IndexMissing, ManifestMismatch, ProviderError
from ragx.indexing.build import BuildOptions, make_plan
from ragx.indexing.extract import DocumentReader
from ragx.indexing.scan import scan
from ragx.providers.fakes import HashEmbedder
from ragx.query.seeds import COLUMN_WEIGHTS
from ragx.store.base import Digests
from ragx.store.edges import graph_digest
from ragx.store.sqlite import SqliteReader, SqliteWriter
from ragx.types import Progress

SEQUENCES = int(os.environ.get("RAGX_SEQUENCES", "40"))
STEPS = 15
AHEAD_NS = 10_000_000_000

PATHS = [
    *("a.md", "b.py", "sub/a.md", "sub/c.txt", "sub/deep/d.md", "a.md/e.md", "ä b.md", ".f.md"),
    *("lib.py", "sub/lib.py", "red panda.md", "日本語.md", "new/index.md"),
]
DIRECTORIES = ["sub", "sub/deep", "new", "new/sub"]
WORDS = ["zebra", "apple", "getName", "naïve", "日本語", "2026.4", "snake_case", "poison"]
QUERIES = ["zebra apple", "name 日本", "2026.4 snake", '"h1"', "red panda"]
EXPRESSIONS = ['"zebra"', '"apple" OR "name"', '"日本"', '"md"']
IGNORES = ["", "a.md\n", "sub/\n", "*\n!*.py\n", "/sub/*\n!/sub/deep/\n", "ä*\n"]
# Names of files, some inside others; composed and in pieces, with a sign that folds to several.
TITLES = [
    *("Zebra", "Red Panda", "Red Panda Farm", "Panda Farm", "日本語", "日本語の本", "Café Crème"),
    *("Cafe\u0301 Cre\u0300me", "½ Pint", "Col\u0140ecció", "H1", "Quagga (animal)", "Quagga"),
]
SYMBOLS = ["compute_total", "parseTree", "ZebraStripe", "計算_する", "naïve_sum"]
GRAPH_TABLES = ("names", "mentions", "links", "windows", "parts", "neighbours")
GRAPH_SETTINGS = [
    *(("k", 2), ("k", 3), ("edge_source", "chunk"), ("edge_source", "subchunk")),
    *(("subchunk_size_tokens", 16), ("subchunk_size_tokens", 24), ("near_dup_sim", 0.99)),
]

sentence = st.lists(st.sampled_from(WORDS), min_size=1, max_size=14).map(" ".join)
title = st.sampled_from(TITLES)
symbol = st.sampled_from(SYMBOLS)
target = st.sampled_from([*PATHS, "../a.md", "deep/d.md", "/sub/c.txt", "new", ""])
fragment = st.sampled_from(["", "", "#H1", "#h2", "#red-panda", "#日本語", "#nowhere"])
pointer = st.one_of(
    st.builds("see {0}, not the zebra".format, title),
    st.builds("see {0}, not the zebra".format, title),
    st.builds("a `{0}` of it".format, st.one_of(title, symbol)),
    st.builds("[there](<{0}{1}>)".format, target, fragment),
    st.builds("[[{0}{1}]]".format, st.one_of(title, target), fragment),
)
section = st.builds(
    lambda level, title, body, times, points: (
        f"{'#' * level} {title}\n\n{(body + '. ') * times}{'; '.join(points)}\n\n"
    ),
    st.integers(1, 3),
    st.one_of(st.integers(0, 2).map("H{}".format), title),
    sentence,
    st.sampled_from([1, 1, 3, 12]),
    st.lists(pointer, max_size=3),
)
shared = st.sampled_from(
    [f"# Licence {i}\n\n" + "Granted to all who ask for it. " * 6 + "\n\n" for i in range(2)]
)
imports = st.one_of(
    st.just(""),
    st.builds(
        "from {0} import {1}\n\n".format, st.sampled_from(["b", "lib", "sub.lib", ".lib"]), symbol
    ),
    st.builds("import {0}\n\n".format, st.sampled_from(["b", "lib", "sub.lib"])),
)
function = st.one_of(
    st.builds("def {0}():\n    return '{1}'\n\n\n".format, symbol, st.sampled_from(WORDS)),
    st.builds("def f():\n    return {0}('{1}')\n\n\n".format, symbol, title),
)
code = st.builds(
    lambda head, body: head + "".join(body), imports, st.lists(function, min_size=1, max_size=3)
)
_texts = st.one_of(
    st.lists(st.one_of(section, section, shared), min_size=1, max_size=4).map("".join),
    st.lists(section, min_size=1, max_size=2).map("".join),
    sentence,
    code,
)


@st.composite
def texts(draw: st.DrawFn) -> str:
    """A file's text; one step, because hypothesis spells out what strategies are made of."""
    return draw(_texts)


text = texts()
content = st.one_of(
    text.map(str.encode),
    text.map(str.encode),
    text.map(lambda t: t.encode("utf-16")),
    st.sampled_from([b"", b"\n", b"caf\xe9 zebra\n", b"\0\1binary", b"zebra\r\n" * 5]),
)
path = st.sampled_from(PATHS)
directory = st.sampled_from(DIRECTORIES)
settled = st.sampled_from([True, True, True, False])
edit = st.one_of(
    st.tuples(st.just("write"), path, content),
    st.tuples(st.just("write"), path, content),
    st.tuples(st.just("append"), path, text.map(str.encode), st.booleans()),
    st.tuples(st.just("write_to_all"), st.lists(path, min_size=2, max_size=6), text),
    st.tuples(st.just("entitle"), st.lists(path, min_size=1, max_size=5), title),
    st.tuples(st.just("touch"), path, st.sampled_from([0, 10**9])),
    st.tuples(st.just("edit_unseen"), st.integers(0, 7), st.booleans()),
    st.tuples(st.just("edit_unseen"), st.integers(0, 7), st.booleans()),
    st.tuples(st.just("edit_unseen"), st.integers(0, 7), st.booleans()),
    st.tuples(st.just("move"), path, path, st.booleans()),
    st.tuples(st.just("move"), directory, directory, st.booleans()),
    st.tuples(st.just("delete"), st.one_of(path, path, directory)),
    st.tuples(
        st.just("write"),
        st.sampled_from([".gitignore", ".ragxignore", "sub/.gitignore"]),
        st.sampled_from(IGNORES).map(str.encode),
    ),
    st.tuples(st.just("exclude"), st.sampled_from(["", "*.py", "sub/", "/a.md", "deep/"])),
)


class Killed(Exception):
    """The run ends here, as if by a power cut of the caller."""


def rows_of(root: Path) -> dict[str, list[Any]]:
    """All rows of the tables that edges are derived from."""
    with closing(sqlite3.connect(root / ".ragx" / "index.db")) as db:
        return {
            table: db.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall()
            for table in GRAPH_TABLES
        }


def answers(reader: SqliteReader) -> object:
    """What a snapshot says, its vectors and its graph included."""
    files = reader.files()
    vector = HashEmbedder().embed_query("zebra apple")
    return (
        files,
        {name: reader.chunks_of(name) for name in files},
        [reader.lexical(e, depth=999, weights=COLUMN_WEIGHTS) for e in EXPRESSIONS],
        reader.vector(vector, depth=999) if reader.counts().vectors else None,
        reader.counts(),
        reader.generation,
        graph_digest(reader.graph()),
        reader.digests().edges,
    )


def digests(root: Path) -> Digests | None:
    try:
        with closing(SqliteReader(root)) as reader:
            return reader.digests()
    except IndexMissing:
        return None


class IndexMachine(RuleBasedStateMachine):
    """Edits, settings, runs of every kind and readers, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self._temporary = tempfile.TemporaryDirectory()
        self.base = Path(self._temporary.name)
        self.root = self.base / "corpus"
        self.root.mkdir()
        self.readers: list[tuple[SqliteReader, object]] = []
        self.settings = {"size_tokens": 32, "overlap": 0.15, "exclude": "", "prefix": ""}
        self.graph = {"k": 2, "min_edge_sim": 0.3, "edge_source": "subchunk",
                      "subchunk_size_tokens": 16, "near_dup_sim": 0.9}  # fmt: skip
        self.outdated = False
        self.edges_outdated = False
        self.embedders: list[HashEmbedder] = []
        self.poisoned = False
        self.ahead_ns = 0
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr("ragx.providers.registry.open_embedder", self.embedder)
        self.patch.setattr("ragx.providers.registry.fingerprint", self.fingerprint)
        # So few that names start and stop counting all the time.
        self.patch.setattr("ragx.store.linking.MAX_BEARERS", 2)
        # A clock that can be ahead, so that files need not be two seconds old to count as settled.
        clock = SimpleNamespace(
            time_ns=lambda: time.time_ns() + self.ahead_ns, monotonic=time.monotonic
        )
        self.patch.setattr("ragx.indexing.build.time", clock)

    def teardown(self) -> None:
        try:
            # Hypothesis leaves some rules out of each sequence; all of them end like this.
            if hasattr(self, "provider"):
                self.index(full=False, ahead=False)
                self.readers_keep_their_answers()
        finally:
            for reader, _ in self.readers:
                reader.close()
            self.patch.undo()
            self._temporary.cleanup()

    def embedder(self, options: Any, **_: Any) -> HashEmbedder | None:
        """Stands in for the registry; "builtin" is the hashing embedder here."""
        if options.provider == "none":
            return None

        def refuse(passage: str) -> ProviderError | None:
            return BadEmbedding("refused") if self.poisoned and "poison" in passage else None

        embedder = HashEmbedder(options, max_tokens=self.limit, fail=refuse)
        self.embedders.append(embedder)
        return embedder

    @staticmethod
    def fingerprint(options: Any) -> str:
        return "none" if options.provider == "none" else HashEmbedder(options).fingerprint

    def corpus(self, root: Path | None = None) -> Corpus:
        return open_corpus(root or self.root, env={})

    def write_settings(self) -> None:
        exclude = f'exclude = ["{self.settings["exclude"]}"]\n' if self.settings["exclude"] else ""
        graph = "".join(f"{name} = {value!r}\n" for name, value in self.graph.items())
        (self.root / "ragx.toml").write_text(
            f"[corpus]\n{exclude}[chunking]\nsize_tokens = {self.settings['size_tokens']}\n"
            f"overlap = {self.settings['overlap']}\n[embeddings]\n"
            f'provider = "{self.provider}"\ndoc_prefix = "{self.settings["prefix"]}"\n'
            f"[graph]\n{graph}"
        )

    def room_for(self, target: Path) -> None:
        """Put directories where files are in the way, and the other way round."""
        for parent in reversed(target.relative_to(self.root).parents):
            if (self.root / parent).is_file():
                (self.root / parent).unlink()
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.is_dir():
            shutil.rmtree(target)

    # The tree.

    @initialize(
        provider=st.sampled_from(["builtin", "builtin", "builtin", "none"]),
        limit=st.sampled_from([25, None]),  # with a limit, windows are shorter than parts would be
        data=content,
    )
    def begin(self, provider: str, limit: int | None, data: bytes) -> None:
        self.provider, self.limit = provider, limit
        self.write_settings()
        self.write("a.md", data)
        self.write("sub/c.txt", b"zebra apple\n")
        # They say every name, and are never edited: whatever comes and goes, comes and goes here.
        said = "".join(f"We know {name} well, and `{name}`.\n\n" for name in (*TITLES, *SYMBOLS))
        led = "".join(f"[to](<{name}#H1>) and [[{name}]]\n\n" for name in (*PATHS, *TITLES))
        self.write("glossary.txt", (said + led).encode())
        used = "".join(f"def use_{i}():\n    {name}()\n\n\n" for i, name in enumerate(SYMBOLS))
        self.write("use.pyi", f"from lib import {', '.join(SYMBOLS)}\n\n\n{used}".encode())

    @rule(changes=st.lists(edit, min_size=1, max_size=4))
    def change(self, changes: list[tuple[Any, ...]]) -> None:
        self.apply(changes)

    @rule(changes=st.lists(edit, min_size=1, max_size=3), ahead=settled)
    def change_and_index(self, changes: list[tuple[Any, ...]], ahead: bool) -> None:
        self.apply(changes)
        self.index(full=False, ahead=ahead)

    @rule(names=st.lists(path, min_size=1, max_size=4), title=title, ahead=settled)
    def entitle_and_index(self, names: list[str], title: str, ahead: bool) -> None:
        self.entitle(names, title)
        self.index(full=False, ahead=ahead)

    def apply(self, changes: list[tuple[Any, ...]]) -> None:
        for kind, *arguments in changes:
            getattr(self, kind)(*arguments)

    def write(self, name: str, data: bytes) -> None:
        target = self.root / name
        self.room_for(target)
        target.write_bytes(data)

    def append(self, name: str, data: bytes, front: bool) -> None:
        target = self.root / name
        if target.is_file():
            old = target.read_bytes()
            target.write_bytes(data + old if front else old + data)

    def write_to_all(self, names: list[str], text: str) -> None:
        for name in names:
            self.write(name, text.encode())

    def entitle(self, names: list[str], title: str) -> None:
        """Give files a title, or take it from those that have it."""
        for name in names:
            target = self.root / name
            line = f"# {title}\n\n".encode()
            if target.is_file() and target.read_bytes().startswith(line):
                target.write_bytes(target.read_bytes().removeprefix(line))
            elif target.is_file():
                target.write_bytes(line + target.read_bytes())

    def touch(self, name: str, seconds: int) -> None:
        target = self.root / name
        if target.is_file():
            os.utime(target, (seconds, seconds))

    def edit_unseen(self, place: int, in_place: bool) -> None:
        """An edit that a look at size and mtime misses: of the bytes, or as editors save.

        Editors move another inode over the file.
        """
        files = [path for path in sorted(self.root.rglob("*.*")) if path.suffix in (".md", ".py")]
        files = [path for path in files if path.is_file() and ".ragx" not in path.parts]
        if files:
            target = files[place % len(files)]
            stat = target.stat()
            beside = target if in_place else self.base / "beside"
            beside.write_bytes(target.read_bytes().swapcase())
            os.utime(beside, ns=(stat.st_mtime_ns,) * 2)
            beside.replace(target)

    def move(self, name: str, other: str, copy: bool) -> None:
        source, target = self.root / name, self.root / other
        inside = source in (target, *target.parents) or target in source.parents
        if source.exists() and not inside:
            self.room_for(target)
            target.unlink(missing_ok=True)
            if not copy:
                source.rename(target)
            elif source.is_dir():
                shutil.copytree(source, target)
            else:
                shutil.copy2(source, target)

    def delete(self, name: str) -> None:
        target = self.root / name
        if target.is_file():
            target.unlink()
        else:
            shutil.rmtree(target, ignore_errors=True)

    # What belongs to the corpus, and how it is cut.

    def exclude(self, pattern: str) -> None:
        self.settings["exclude"] = pattern
        self.write_settings()

    @rule(
        change=st.sampled_from(
            [("size_tokens", 32), ("size_tokens", 48), ("overlap", 0.0), ("prefix", "doc: ")]
        )
    )
    def change_what_shapes_the_index(self, change: tuple[str, Any]) -> None:
        before = dict(self.settings)
        self.settings[change[0]] = change[1]
        self.write_settings()
        if self.settings == before or digests(self.root) is None:
            return
        if change[0] != "prefix" or self.provider != "none":
            self.outdated = True

    @rule(change=st.sampled_from(GRAPH_SETTINGS))
    def change_what_shapes_the_edges(self, change: tuple[str, Any]) -> None:
        before = dict(self.graph)
        self.graph[change[0]] = change[1]
        self.write_settings()
        if self.graph != before and digests(self.root) is not None:
            self.edges_outdated = True

    # Runs.

    def fresh(self) -> tuple[Digests, list[Any], dict[str, list[Any]]]:
        """Digests, answers and rows of an index of a copy of the tree, built from nothing."""
        elsewhere = self.base / "fresh"
        shutil.copytree(self.root, elsewhere, ignore=shutil.ignore_patterns(".ragx"))
        try:
            corpus = self.corpus(elsewhere)
            corpus.index(IndexRequest())
            found = digests(elsewhere)
            assert found is not None
            return found, self.found(corpus), rows_of(elsewhere)
        finally:
            shutil.rmtree(elsewhere)

    @staticmethod
    def found(corpus: Corpus) -> list[Any]:
        return [corpus.search(QueryRequest(query, before=1, after=1)) for query in QUERIES]

    @rule(full=st.booleans(), ahead=settled)
    def index(self, full: bool, ahead: bool) -> None:
        self.ahead_ns = AHEAD_NS if ahead else 0
        if self.outdated and not full:
            # Settings may be back to what they were; a run that is not stopped must be right.
            try:
                self.corpus().index(IndexRequest())
            except ManifestMismatch:
                full = True
        if self.edges_outdated and not full:
            try:
                self.corpus().index(IndexRequest())
            except ManifestMismatch:
                self.make_edges_anew()
        report = self.corpus().index(IndexRequest(full=full))
        assert report.failed == []
        self.outdated = self.edges_outdated = False
        self.check_all(ahead)

    @precondition(lambda self: not self.outdated)
    @rule()
    def make_edges_anew(self) -> None:
        """Rows that files decide stay; the others follow from them."""
        before = digests(self.root)
        if before is None:
            return
        rows = rows_of(self.root)
        self.corpus().index(IndexRequest(edges_only=True))
        now, after = digests(self.root), rows_of(self.root)
        assert now is not None
        assert (now.files, now.postings) == (before.files, before.postings)
        assert all(rows[table] == after[table] for table in ("names", "links", "windows"))
        whole = all(row.status != "unembedded" for row in self.stored_rows().values())
        if whole and not self.edges_outdated:
            assert (now, after) == (before, rows)
        self.edges_outdated = False

    def check_all(self, ahead: bool) -> None:
        stored = digests(self.root)
        fresh, found, rows_then = self.fresh()
        rows_now = rows_of(self.root)
        for table, expected in rows_then.items():
            assert rows_now[table] == expected, table
        assert stored == fresh
        assert self.found(self.corpus()) == found
        with closing(SqliteReader(self.root)) as reader:
            counts = reader.counts()
            rows = reader.files()
            graph = reader.graph()
        assert graph_digest(graph) == fresh.edges
        assert graph.n_edges == counts.edges
        assert counts.chunks == counts.postings == sum(row.n_chunks for row in rows.values())
        assert counts.vectors == (0 if self.provider == "none" else counts.chunks)
        todo = self.plan(rows)
        assert todo.paths("add", "delete", "force") == ()
        # Only files that are too young to be trusted are looked at again.
        assert not ahead or todo.is_empty
        before = len(self.embedders)
        again = self.corpus().index(IndexRequest())
        assert (again.embedded, again.chunks_added, again.chunks_deleted) == (0, 0, 0)
        assert not any(embedder.calls for embedder in self.embedders[before:])
        assert digests(self.root) == fresh

    def plan(self, rows: Any) -> Any:
        corpus = self.corpus()
        options = corpus._build_options(IndexRequest(), None)
        assert isinstance(options, BuildOptions)
        with DocumentReader(options.documents) as documents:
            return make_plan(rows, scan(self.root, options.scan), options, documents)

    @precondition(lambda self: not self.outdated and not self.edges_outdated)
    @rule(names=st.lists(st.sampled_from([*PATHS, "sub"]), min_size=1, max_size=2, unique=True))
    def index_named(self, names: list[str]) -> None:
        seen = {file.path for file in scan(self.root, scan_options(self.corpus().config)).files}
        rows = {} if digests(self.root) is None else self.stored_rows()
        known = seen | rows.keys()
        names = [n for n in names if any(k == n or k.startswith(n + "/") for k in known)]
        if not names:
            return
        self.corpus().index(IndexRequest(only=names))
        now = self.stored_rows()
        for name, row in now.items():
            if any(name == n or name.startswith(n + "/") for n in names):
                assert name in seen
                assert row.size == (self.root / name).stat().st_size
            else:
                assert row == rows[name]

    def stored_rows(self) -> Any:
        with closing(SqliteReader(self.root)) as reader:
            return reader.files()

    @precondition(lambda self: not self.outdated and not self.edges_outdated)
    @rule(after=st.integers(0, 12), full=st.booleans())
    def index_killed(self, after: int, full: bool) -> None:
        """The caller fails at some sign of progress; the last one comes after the commit."""
        before = digests(self.root)
        calls = 0

        def progress(_: Progress) -> None:
            nonlocal calls
            calls += 1
            if calls > after:
                raise Killed

        try:
            self.corpus().index(IndexRequest(full=full), progress=progress)
        except Killed:
            now = digests(self.root)
            assert now == before or now == self.fresh()[0]

    @precondition(lambda self: not self.outdated and not self.edges_outdated)
    @rule(name=path, data=text.map(str.encode))
    def index_with_failures(self, name: str, data: bytes) -> None:
        """Some texts cannot be embedded: counted, and found by their words all the same."""
        self.write(name, data + b"\n\npoison\n")
        self.poisoned, self.ahead_ns = True, AHEAD_NS
        try:
            self.corpus().index(IndexRequest())
        finally:
            self.poisoned = False
        with closing(SqliteReader(self.root)) as reader:
            counts = reader.counts()
            assert counts.chunks == counts.postings
            assert counts.vectors <= counts.chunks

    @rule(name=st.sampled_from(["vectors.bin", "index.seal", "graph.bin", "graph.bin"]))
    def lose_a_derived_file(self, name: str) -> None:
        (self.root / ".ragx" / name).unlink(missing_ok=True)

    @rule(at=st.integers(0, 10_000), flip=st.booleans())
    def damage_the_graph_file(self, at: int, flip: bool) -> None:
        path = self.root / ".ragx" / "graph.bin"
        if path.exists():
            data = bytearray(path.read_bytes())
            at %= len(data)
            if flip:
                data[at] ^= 0xFF
            beside = self.base / "beside"
            beside.write_bytes(data if flip else data[:at])
            beside.replace(path)  # readers keep what they have mapped

    @rule()
    def staged_and_abandoned(self) -> None:
        """A writer that stages and goes away without a commit leaves no trace."""
        before = digests(self.root)
        with closing(SqliteWriter(self.root)) as writer:
            writer.reset()
            writer.stage_delete("a.md")
        assert digests(self.root) == before

    # Readers.

    @precondition(lambda self: len(self.readers) < 2)
    @rule()
    def open_reader(self) -> None:
        if digests(self.root) is not None:
            reader = SqliteReader(self.root)
            self.readers.append((reader, answers(reader)))

    @precondition(lambda self: self.readers)
    @rule()
    def close_reader(self) -> None:
        reader, said = self.readers.pop(0)
        with closing(reader):
            assert answers(reader) == said

    @invariant()
    def readers_keep_their_answers(self) -> None:
        for reader, said in self.readers:
            assert answers(reader) == said


TestIndexMachine = IndexMachine.TestCase
TestIndexMachine.settings = settings(
    max_examples=SEQUENCES,
    stateful_step_count=STEPS,
    derandomize=True,
    database=None,
    deadline=None,
    # A failing sequence is readable as it is; to shrink one takes minutes of real runs.
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)

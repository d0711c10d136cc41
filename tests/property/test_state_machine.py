"""Whatever is done to a corpus, and however runs end, the next run makes the index a fresh one.

A machine edits a real directory and drives the library. After each run that succeeds, the index
must equal one built elsewhere from a copy of the tree, answers included; readers that were open
all the while must still give the answers they gave at first. `RAGX_SEQUENCES=200` runs more of
them (research/increments.md).
"""

from __future__ import annotations

import os
import shutil
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
from ragx.errors import BadEmbedding, IndexMissing, ManifestMismatch, ProviderError
from ragx.indexing.build import BuildOptions, make_plan
from ragx.indexing.scan import scan
from ragx.providers.fakes import HashEmbedder
from ragx.query.seeds import COLUMN_WEIGHTS
from ragx.store.base import Digests
from ragx.store.sqlite import SqliteReader, SqliteWriter
from ragx.types import Progress

SEQUENCES = int(os.environ.get("RAGX_SEQUENCES", "40"))
STEPS = 15
AHEAD_NS = 10_000_000_000

PATHS = ["a.md", "b.py", "sub/a.md", "sub/c.txt", "sub/deep/d.md", "a.md/e.md", "ä b.md", ".f.md"]
DIRECTORIES = ["sub", "sub/deep", "new", "new/sub"]
WORDS = ["zebra", "apple", "getName", "naïve", "日本語", "2026.4", "snake_case", "poison"]
QUERIES = ["zebra apple", "name 日本", "2026.4 snake", '"h1"']
EXPRESSIONS = ['"zebra"', '"apple" OR "name"', '"日本"', '"md"']
IGNORES = ["", "a.md\n", "sub/\n", "*\n!*.py\n", "/sub/*\n!/sub/deep/\n", "ä*\n"]

sentence = st.lists(st.sampled_from(WORDS), min_size=1, max_size=14).map(" ".join)
section = st.builds(
    lambda level, title, body, times: f"{'#' * level} H{title}\n\n{(body + '. ') * times}\n\n",
    st.integers(1, 3),
    st.integers(0, 2),
    sentence,
    st.sampled_from([1, 1, 3, 12]),
)
code = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(
    lambda names: "".join(f"def f{i}():\n    return '{name}'\n\n\n" for i, name in enumerate(names))
)
text = st.one_of(st.lists(section, min_size=1, max_size=4).map("".join), sentence, code)
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


def answers(reader: SqliteReader) -> object:
    """What a snapshot says, its vectors included."""
    files = reader.files()
    vector = HashEmbedder().embed_query("zebra apple")
    return (
        files,
        {name: reader.chunks_of(name) for name in files},
        [reader.lexical(e, depth=999, weights=COLUMN_WEIGHTS) for e in EXPRESSIONS],
        reader.vector(vector, depth=999) if reader.counts().vectors else None,
        reader.counts(),
        reader.generation,
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
        self.outdated = False
        self.embedders: list[HashEmbedder] = []
        self.poisoned = False
        self.ahead_ns = 0
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr("ragx.providers.registry.open_embedder", self.embedder)
        self.patch.setattr("ragx.providers.registry.fingerprint", self.fingerprint)
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

    def embedder(self, options: Any) -> HashEmbedder | None:
        """Stands in for the registry; "builtin" is the hashing embedder here."""
        if options.provider == "none":
            return None

        def refuse(passage: str) -> ProviderError | None:
            return BadEmbedding("refused") if self.poisoned and "poison" in passage else None

        embedder = HashEmbedder(options, max_tokens=25, fail=refuse)
        self.embedders.append(embedder)
        return embedder

    @staticmethod
    def fingerprint(options: Any) -> str:
        return "none" if options.provider == "none" else HashEmbedder(options).fingerprint

    def corpus(self, root: Path | None = None) -> Corpus:
        return open_corpus(root or self.root, env={})

    def write_settings(self) -> None:
        exclude = f'exclude = ["{self.settings["exclude"]}"]\n' if self.settings["exclude"] else ""
        (self.root / "ragx.toml").write_text(
            f"[corpus]\n{exclude}[chunking]\nsize_tokens = {self.settings['size_tokens']}\n"
            f"overlap = {self.settings['overlap']}\n[embeddings]\n"
            f'provider = "{self.provider}"\ndoc_prefix = "{self.settings["prefix"]}"\n'
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

    @initialize(provider=st.sampled_from(["builtin", "builtin", "none"]), data=content)
    def begin(self, provider: str, data: bytes) -> None:
        self.provider = provider
        self.write_settings()
        self.write("a.md", data)
        self.write("sub/c.txt", b"zebra apple\n")

    @rule(changes=st.lists(edit, min_size=1, max_size=4))
    def change(self, changes: list[tuple[Any, ...]]) -> None:
        self.apply(changes)

    @rule(changes=st.lists(edit, min_size=1, max_size=3), ahead=settled)
    def change_and_index(self, changes: list[tuple[Any, ...]], ahead: bool) -> None:
        self.apply(changes)
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

    # Runs.

    def fresh(self) -> tuple[Digests, list[Any]]:
        """Digests and answers of an index of a copy of the tree, built from nothing."""
        elsewhere = self.base / "fresh"
        shutil.copytree(self.root, elsewhere, ignore=shutil.ignore_patterns(".ragx"))
        try:
            corpus = self.corpus(elsewhere)
            corpus.index(IndexRequest())
            found = digests(elsewhere)
            assert found is not None
            return found, self.found(corpus)
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
        report = self.corpus().index(IndexRequest(full=full))
        assert report.failed == []
        self.outdated = False
        self.check_all(ahead)

    def check_all(self, ahead: bool) -> None:
        stored = digests(self.root)
        fresh, found = self.fresh()
        assert stored == fresh
        assert self.found(self.corpus()) == found
        with closing(SqliteReader(self.root)) as reader:
            counts = reader.counts()
            rows = reader.files()
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
        return make_plan(rows, scan(self.root, options.scan), options)

    @precondition(lambda self: not self.outdated)
    @rule(names=st.lists(st.sampled_from([*PATHS, "sub"]), min_size=1, max_size=2, unique=True))
    def index_named(self, names: list[str]) -> None:
        seen = {
            file.path for file in scan(self.root, self.corpus()._scan_options(IndexRequest())).files
        }
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

    @precondition(lambda self: not self.outdated)
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

    @precondition(lambda self: not self.outdated)
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

    @rule(derived=st.booleans())
    def lose_derived_files(self, derived: bool) -> None:
        for name in ("vectors.bin",) if derived else ("index.seal",):
            (self.root / ".ragx" / name).unlink(missing_ok=True)

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

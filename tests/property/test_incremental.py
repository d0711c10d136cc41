"""After any sequence of edits an incremental run leaves what a fresh index of the tree holds."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import closing
from dataclasses import astuple, dataclass
from pathlib import Path

from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from ragx.algo.chunking.base import ChunkOptions
from ragx.errors import BadEmbedding, ProviderError
from ragx.indexing.build import BuildOptions, build, expected_manifest
from ragx.indexing.scan import ScanOptions
from ragx.providers.fakes import HashEmbedder
from ragx.query.seeds import COLUMN_WEIGHTS
from ragx.store.base import LinkOptions
from ragx.store.sqlite import SqliteReader, SqliteWriter
from ragx.types import BuildReport

PATHS = [
    "a.md",
    "b.md",
    "c.py",
    "sub/a.md",
    "sub/d.txt",
    "sub/deep/e.md",
    "a.md/f.md",
    "g.md",
    "ä b.md",
]
WORDS = ["zebra", "apple", "getName", "naïve", "日本語", "2026.4", "snake_case", "Straße", "🐘"]
EXPRESSIONS = [
    '"zebra"',
    '"apple"',
    '"name"',
    '"naiv"',
    '"日本"',
    '"2026"',
    '"case"',
    '"md"',
    '"h1"',
]
CHUNKING = ChunkOptions(size_tokens=30)

sentence = st.lists(st.sampled_from(WORDS), min_size=1, max_size=14).map(" ".join)
section = st.builds(
    lambda level, title, body, times: f"{'#' * level} H{title}\n\n{(body + '. ') * times}\n\n",
    st.integers(1, 3),
    st.integers(0, 2),
    sentence,
    st.sampled_from([1, 1, 2, 12]),
)
code = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(
    lambda names: "".join(f"def f{i}():\n    return '{name}'\n\n\n" for i, name in enumerate(names))
)
text = st.one_of(
    st.lists(section, min_size=1, max_size=4).map("".join),
    sentence,
    code,
    st.sampled_from(["", "\n\n", "zebra\n" * 3, "---\ntitle: Zebra\n---\n\n# H1\n\napple\n"]),
)
content = st.one_of(
    text.map(str.encode),
    text.map(lambda t: t.encode("utf-16")),
    text.map(lambda t: t.replace("\n", "\r\n").encode()),
    text.map(lambda t: b"\xef\xbb\xbf" + t.encode()),
    st.sampled_from([b"caf\xe9 zebra\n", b"\0\1binary", b"%PDF-1.4", b"\xff\xfe"]),
)
path = st.sampled_from(PATHS)
edit = st.one_of(
    st.tuples(st.just("write"), path, content),
    st.tuples(st.just("write"), path, content),
    st.tuples(st.just("append"), path, text.map(str.encode)),
    st.tuples(st.just("prepend"), path, st.just(b"# H0\n\napple first\n\n")),
    st.tuples(st.just("delete"), path),
    st.tuples(st.just("move"), path, path),
    st.tuples(st.just("copy"), path, path),
    st.tuples(st.just("swap"), path, path),
    st.tuples(
        st.just("move directory"),
        st.sampled_from(["sub", "sub/deep"]),
        st.sampled_from(["new", "sub2"]),
    ),
    st.tuples(st.just("touch"), path),
    st.tuples(st.just("ignore"), st.sampled_from(["", "a.md\n", "sub/\n", "*\n!g.md\n"])),
)
steps = st.lists(st.lists(edit, min_size=1, max_size=4), min_size=1, max_size=4)


def apply(root: Path, change: tuple) -> None:
    kind, *arguments = change
    if kind == "ignore":
        (root / ".ragxignore").write_text(arguments[0])
        return
    target = root / arguments[0]
    if kind == "write":
        make_room(root, target)
        target.write_bytes(arguments[1])
    elif kind in ("move directory", "move", "copy", "swap"):
        other = root / arguments[1]
        if not target.exists() or (kind != "move directory" and not target.is_file()):
            return
        if kind == "swap":
            if other.is_file() and other != target:
                one, two = target.read_bytes(), other.read_bytes()
                target.write_bytes(two)
                other.write_bytes(one)
        elif target not in (other, *other.parents) and other not in target.parents:
            make_room(root, other)
            shutil.copy(target, other) if kind == "copy" else target.rename(other)
    elif target.is_file():
        if kind == "append":
            target.write_bytes(target.read_bytes() + arguments[1])
        elif kind == "prepend":
            target.write_bytes(arguments[1] + target.read_bytes())
        elif kind == "touch":
            os.utime(target)
        elif kind == "delete":
            target.unlink()


def make_room(root: Path, target: Path) -> None:
    """Put directories where files are in the way, and the other way round."""
    for parent in reversed(target.relative_to(root).parents):
        if (root / parent).is_file():
            (root / parent).unlink()
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.is_dir():
        shutil.rmtree(target)


def run(root: Path, embedder: HashEmbedder | None, *, full: bool = False) -> BuildReport:
    manifest = expected_manifest(
        fingerprint=embedder.fingerprint if embedder else "none",
        provider="hash" if embedder else "none",
        model="",
        mode="",
        chunking=CHUNKING,
        linking=LinkOptions(),
        part_tokens=256,
    )
    options = BuildOptions(ScanOptions(), CHUNKING, full=full)
    with closing(SqliteWriter(root, rebuild=full)) as writer:
        report = build(root, writer, embedder, options, manifest)
        writer.write_derived()
    return report


@dataclass
class State:
    """All that a user can see, without what tells of the disk and the clock."""

    files: dict
    chunks: dict
    counts: object
    lexical: dict
    vectors: list
    unembedded: object


def state(root: Path) -> State:
    with closing(SqliteReader(root)) as reader:
        rows = reader.files()
        embedder = HashEmbedder()
        return State(
            files={
                path: (row.content_hash, row.size, row.status, row.code, row.note, row.encoding,
                       row.language, row.title, row.n_chunks)
                for path, row in rows.items()
            },
            chunks={path: reader.chunks_of(path) for path in rows},
            counts=astuple(reader.counts()),
            lexical={
                expression: reader.lexical(expression, depth=9999, weights=COLUMN_WEIGHTS)
                for expression in EXPRESSIONS
            },
            vectors=[reader.vector(embedder.embed_query(word), depth=9999) for word in WORDS],
            unembedded=reader.unembedded(99),
        )  # fmt: skip


def check_equal(one: State, other: State) -> None:
    for name in State.__annotations__:
        assert getattr(one, name) == getattr(other, name), name


@settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(steps, st.booleans())
def test_incremental_runs_equal_a_fresh_index(edits, with_vectors: bool) -> None:
    with tempfile.TemporaryDirectory() as name:
        root, fresh = Path(name) / "corpus", Path(name) / "fresh"
        root.mkdir()

        def embedder() -> HashEmbedder | None:
            return HashEmbedder(max_tokens=25) if with_vectors else None

        for step in edits:
            for change in step:
                apply(root, change)
            report = run(root, embedder())
            assert report.failed == []
            note(f"{report}")
        incremental = state(root)
        shutil.copytree(root, fresh, ignore=shutil.ignore_patterns(".ragx"))
        run(fresh, embedder())
        check_equal(incremental, state(fresh))
        report = run(root, embedder(), full=True)
        assert report.embedded == 0  # all of it was paid for
        check_equal(incremental, state(root))
        assert incremental.counts[1] == incremental.counts[3]
        if with_vectors:
            assert incremental.counts[1] == incremental.counts[2]
        again = run(root, embedder())
        assert (again.embedded, again.chunks_added, again.chunks_deleted) == (0, 0, 0)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.lists(edit, min_size=1, max_size=3), min_size=2, max_size=3), st.sampled_from(WORDS)
)
def test_after_failures_are_mended_the_index_is_a_fresh_one(edits, poison: str) -> None:
    """Whatever failed on the way leaves no trace once it succeeds."""

    def refuse(passage: str) -> ProviderError | None:
        return BadEmbedding("refused") if poison in passage else None

    with tempfile.TemporaryDirectory() as name:
        root, fresh = Path(name) / "corpus", Path(name) / "fresh"
        root.mkdir()
        for step in edits:
            for change in step:
                apply(root, change)
            run(root, HashEmbedder(fail=refuse))
        report = run(root, HashEmbedder())
        assert report.failed == []
        shutil.copytree(root, fresh, ignore=shutil.ignore_patterns(".ragx"))
        run(fresh, HashEmbedder())
        check_equal(state(root), state(fresh))

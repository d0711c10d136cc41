"""What a clone can put into `.ragx`: links that lead elsewhere, pipes, rows for foreign files."""

from __future__ import annotations

import os
import shlex
import shutil
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from ragx.errors import IndexDamaged, StoreError
from ragx.store.audit import audit
from ragx.store.connect import index_directory, make_directory
from ragx.store.derived import open_new, replace_file
from ragx.store.learned import read_learned, write_learned
from ragx.store.lock import WriterLock
from ragx.store.sqlite import SqliteReader, SqliteWriter

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links need privileges there")

Write = Callable[..., None]
NAMES = (
    ".gitignore", "communities.json", "config.toml", "eval-queries.bin", "graph.bin", "index.db",
    "index.db-journal", "index.db-shm", "index.db-wal", "index.seal", "index.seal.77.tmp",
    "left.tmp", "server.json", "vectors.bin", "vectors.hnsw", "vectors.hnsw.json", "writer.lock",
)  # fmt: skip
OPENINGS: dict[str, Callable[[Path], object]] = {
    "reader": SqliteReader,
    "writer": SqliteWriter,
    "rebuild": lambda root: SqliteWriter(root, rebuild=True),
    "audit": audit,
    "read_learned": lambda root: read_learned(root, "server"),
    "write_learned": lambda root: write_learned(root, "server", {}),
    "directory": index_directory,
}


@pytest.fixture
def root(tmp_path: Path, write: Write) -> Path:
    root = tmp_path / "it's a clone"
    root.mkdir()
    write({"a.md": ["alpha"]}, root=root)
    return root


def state(directory: Path) -> dict[str, tuple[int, int, bytes]]:
    """Everything about the files of a directory that must not change."""
    found = {}
    for path in sorted(directory.rglob("*")):
        status = path.lstat()
        content = path.read_bytes() if path.is_file() else b""
        found[path.name] = (status.st_mode, status.st_mtime_ns, content)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_a_link_in_the_index_directory_is_never_followed(
    name: str, root: Path, tmp_path: Path
) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_bytes(b"what the reader has")
    shutil.copy(root / ".ragx" / "index.db", precious / "index.db")
    entry = root / ".ragx" / name
    for target in ("file", "index.db", "missing", "."):
        entry.unlink(missing_ok=True)
        entry.symlink_to(precious / target)
        before = state(precious)
        for opening in OPENINGS.values():
            with pytest.raises(StoreError) as caught:
                opening(root)
            assert caught.value.code == "linked_index"
            assert caught.value.message.startswith(f"{entry} is a link")
            assert caught.value.hint == f"rm {shlex.quote(str(entry))}"
        assert state(precious) == before


def test_what_the_hint_names_is_all_that_is_wrong(root: Path, tmp_path: Path, write: Write) -> None:
    (root / ".ragx" / "server.json").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError) as caught:
        SqliteWriter(root)
    command, path = shlex.split(caught.value.hint)
    assert command == "rm"
    os.unlink(path)
    write({"b.md": ["beta"]}, root=root)
    with closing(SqliteReader(root)) as reader:
        assert list(reader.files()) == ["a.md", "b.md"]


def test_an_index_directory_that_is_a_link_is_refused(root: Path, tmp_path: Path) -> None:
    theirs = tmp_path / "another project" / ".ragx"
    theirs.parent.mkdir()
    (root / ".ragx").rename(theirs)
    leftover = theirs / "left.tmp"
    leftover.write_bytes(b"")
    os.utime(leftover, (1, 1))
    before = state(theirs)
    for target in (theirs, tmp_path / "missing"):
        (root / ".ragx").unlink(missing_ok=True)
        (root / ".ragx").symlink_to(target)
        for opening in OPENINGS.values():
            with pytest.raises(StoreError) as caught:
                opening(root)
            assert caught.value.code == "linked_index"
            assert caught.value.hint == f"rm {shlex.quote(str(root / '.ragx'))}"
    assert state(theirs) == before
    assert not (tmp_path / "missing").exists()


def test_a_pipe_is_not_waited_for(root: Path) -> None:
    seal = root / ".ragx" / "index.seal"
    seal.unlink()
    os.mkfifo(seal)
    for opening in OPENINGS.values():
        with pytest.raises(StoreError, match="is no regular file") as caught:
            opening(root)
        assert caught.value.code == "linked_index"


def test_a_corpus_that_is_a_link_itself_has_an_index(root: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(root)
    with closing(SqliteReader(link)) as reader:
        assert list(reader.files()) == ["a.md"]


def test_borrowing_vectors_follows_no_link(root: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / ".ragx").symlink_to(root / ".ragx")
    with closing(SqliteWriter(root)) as writer:
        with pytest.raises(StoreError) as caught:
            writer.borrow_embeddings(other)
        assert caught.value.code == "linked_index"


def test_files_that_are_made_are_new_ones(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    link.symlink_to(target)
    with pytest.raises(FileExistsError):
        open_new(link)
    replace_file(link, [b"data"])
    assert (link.is_symlink(), link.read_bytes()) == (False, b"data")
    directory = tmp_path / "index"
    directory.mkdir()
    (directory / ".gitignore").symlink_to(target)
    make_directory(directory)
    (directory / "writer.lock").symlink_to(target)
    with pytest.raises(StoreError):
        WriterLock(directory)
    assert not target.exists()


ESCAPES = (
    "/etc/passwd", "..", "../a.md", "../../etc/passwd", "b/../../a.md", "b/..", "", "a\0.md",
)  # fmt: skip


def rename(root: Path, path: str) -> None:
    """Give the only file another path, as the maker of a prepared index could, sealing it anew."""
    (root / ".ragx" / "index.seal").unlink(missing_ok=True)
    with closing(sqlite3.connect(root / ".ragx" / "index.db")) as db, db:
        db.execute("UPDATE files SET path = ?", (path,))


@pytest.mark.parametrize("path", ESCAPES)
def test_rows_for_files_outside_of_the_corpus_are_damage(
    path: str, root: Path, write: Write
) -> None:
    rename(root, path)
    with closing(SqliteReader(root)) as reader:
        (chunk_id,) = reader.chunk_paths()
        for look in (
            reader.files,
            lambda: reader.file(path),
            lambda: reader.chunks([chunk_id]),
            lambda: reader.chunks_of(path),
        ):
            with pytest.raises(IndexDamaged) as caught:
                look()
            assert caught.value.hint.startswith("ragx index --full")
    with closing(SqliteWriter(root)) as writer, pytest.raises(IndexDamaged):
        writer.files()
    with closing(SqliteWriter(root, rebuild=True)) as writer:  # what the hint does
        assert writer.files() == {}
    write({"a.md": ["alpha"]}, root=root)
    with closing(SqliteReader(root)) as reader:
        assert list(reader.files()) == ["a.md"]


@pytest.mark.parametrize("path", ["..a.md", "a..b/c", ".../a", "a/..b", "b/...", "a\nb", "~/a"])
def test_odd_names_are_no_damage(path: str, root: Path) -> None:
    rename(root, path)
    with closing(SqliteReader(root)) as reader:
        assert list(reader.files()) == [path]
        assert [chunk.path for chunk in reader.chunks_of(path)] == [path]

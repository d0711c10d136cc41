"""A small hand-made index: files are lists of chunk texts, vectors follow from the text."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from ragx.indexing.prepare import chunk_identity
from ragx.store.base import FileRow, StagedChunk
from ragx.store.sqlite import SqliteWriter
from ragx.types import Chunk

DIMENSION = 32


def unit_vector(text: str, dimension: int = DIMENSION) -> np.ndarray:
    """A fixed (dimension,) float32 unit vector for a text."""
    vector = np.random.default_rng(zlib.crc32(text.encode())).normal(size=dimension)
    return (vector / np.linalg.norm(vector)).astype(np.float32)


def file_row(path: str, texts: Sequence[str], **changes: object) -> FileRow:
    """An ok row whose hash follows from the texts."""
    digest = f"{zlib.crc32(repr(list(texts)).encode()):08x}"
    values: dict[str, object] = {
        "path": path,
        "content_hash": digest,
        "size": sum(map(len, texts)),
        "mtime_ns": 1,
        "ctime_ns": 2,
        "inode": 3,
        "scanned_ns": 4,
        "encoding": "utf-8",
        "language": "markdown",
        "title": path,
        "n_chunks": len(texts),
    }
    return FileRow(**{**values, **changes})  # type: ignore[arg-type]


def staged_chunks(path: str, texts: Sequence[str], *, vectors: bool) -> list[StagedChunk]:
    """Chunks of a file, one line each; `A > B | text` gives headings, `text @ name` a symbol."""
    staged = []
    seen: dict[str, int] = {}
    for ordinal, given in enumerate(texts):
        heading, bar, rest = given.rpartition(" | ")
        text, at, symbol = rest.partition(" @ ")
        occurrence = seen.get(text, 0)
        seen[text] = occurrence + 1
        chunk = Chunk(
            chunk_id=chunk_identity(path, text, occurrence),
            path=path,
            ordinal=ordinal,
            byte_start=10 * ordinal,
            byte_end=10 * ordinal + len(text.encode()),
            line_start=ordinal + 1,
            line_end=ordinal + 1,
            text=text,
            heading=tuple(heading.split(" > ")) if bar else (),
            symbols=(symbol,) if at else (),
        )
        keys = (zlib.crc32(text.encode()).to_bytes(16, "big"),) if vectors else ()
        staged.append(StagedChunk(chunk, keys))
    return staged


Write = Callable[..., None]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """`write({path: texts or None}, root=tmp_path, vectors=True)` commits one run; None deletes."""

    def run(
        files: Mapping[str, Sequence[str] | None],
        *,
        root: Path = tmp_path,
        vectors: bool = True,
        derived: bool = True,
        reset: bool = False,
    ) -> None:
        with closing(SqliteWriter(root)) as writer:
            if reset:
                writer.reset()
            for path, texts in files.items():
                if texts is None:
                    writer.stage_delete(path)
                    continue
                staged = staged_chunks(path, texts, vectors=vectors)
                writer.put_embeddings(
                    (key, unit_vector(item.chunk.text))
                    for item in staged
                    for key in item.window_keys
                )
                writer.stage_file(file_row(path, texts), staged)
            writer.commit({"analysis_version": "1", "embeddings_provider": "hash"})
            if vectors and derived:
                writer.write_derived()

    return run


@pytest.fixture
def make_row() -> Callable[..., FileRow]:
    return file_row


@pytest.fixture
def make_staged() -> Callable[..., list[StagedChunk]]:
    return staged_chunks


@pytest.fixture
def vector_of() -> Callable[..., np.ndarray]:
    return unit_vector

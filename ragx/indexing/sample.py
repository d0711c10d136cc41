"""A few files cut anew and compared with what is stored: what `verify` does to all, in a moment."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ragx.documents.read import read_inside
from ragx.errors import ExtractionError
from ragx.indexing.extract import DocumentReader
from ragx.indexing.prepare import Preparer, content_hash
from ragx.store.base import FileRow, Reader

__all__ = ["Sample", "compare_sample"]


@dataclass(frozen=True, slots=True)
class Sample:
    """How many files were compared, and those whose stored chunks are not what a run would make."""

    n_compared: int
    differing: tuple[str, ...]


def compare_sample(
    root: Path, reader: Reader, preparer: Preparer, documents: DocumentReader, *, size: int
) -> Sample:
    """Cut files anew that have not changed since they were indexed, and compare their chunks.

    Args:
        size: how many files at most; every so many-th by path, so the same ones each time.
    """
    rows = sorted(row.path for row in reader.files().values() if row.status == "ok")
    step = max(1, -(-len(rows) // size))
    n_compared, differing = 0, []
    for path in rows[::step]:
        row = reader.file(path)
        if row is None:
            continue
        same = _is_as_stored(root, reader, preparer, documents, row)
        n_compared += same is not None
        if same is False:
            differing.append(path)
    return Sample(n_compared, tuple(differing))


def _is_as_stored(
    root: Path, reader: Reader, preparer: Preparer, documents: DocumentReader, row: FileRow
) -> bool | None:
    """None where the file has changed since, and so tells nothing."""
    try:
        raw, _, _ = read_inside(root, row.path)
        if content_hash(raw) != row.content_hash:
            return None
        document = documents.read(row.path, documents.claim(row.path, raw), raw, row.content_hash)
        prepared = preparer.prepare(row.path, raw, document)
    except (OSError, ExtractionError):
        return None
    return prepared.chunks == tuple(reader.chunks_of(row.path))

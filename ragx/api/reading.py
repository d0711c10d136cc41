"""Reading what was indexed: a chunk, or lines of a file, always of the version in the index.

What is shown is what was searched. While the file's bytes are those that were indexed, its lines
come from disk; once they are not, from the stored chunks, and `state` says so. What the index left
out (secrets, binaries) is never opened.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ragx.algo.locators import across
from ragx.errors import UsageError
from ragx.query.context import FileText, read_current, stored_lines
from ragx.store.base import FileRow
from ragx.types import Chunk, Locator

__all__ = [
    "DEFAULT_READ_CHARS",
    "ReadRequest",
    "Reading",
    "check_range",
    "read_chunk",
    "read_lines",
]

DEFAULT_READ_CHARS = 12_000
_LAST_END = re.compile(r"(?:\r\n|\r|\n)\Z")
_HINT = "ragx query finds places to read"


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """What to read: a chunk, or lines of a file.

    Args:
        chunk_id: of the chunk to read whole; then nothing else but `source_version` counts.
        path: of an indexed file, as results give it or as seen from `cwd`.
        line_start: first line wanted, from 1.
        line_end: last line wanted, inclusive; None for all that follow.
        source_version: content hash that the file must have been indexed with; "" takes any.
        max_chars: lines end where so many characters are full; a longer first line is cut.
        cwd: None for the root of the corpus.
    """

    chunk_id: int | None = None
    path: str = ""
    line_start: int = 1
    line_end: int | None = None
    source_version: str = ""
    max_chars: int = DEFAULT_READ_CHARS
    cwd: Path | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """Text of one version of a file.

    Args:
        text: without the last line's end.
        source_version: content hash of the file as it was indexed.
        state: how the file on disk stands to that: the same, another by now, or not there.
        chunk: the chunk that was asked for; None where lines were.
        extracted: whether lines are those of a text that was extracted from a document.
        locator: where in the document they stand; None in a text file.
        heading: what the chunk stands under, or the first of the chunks that hold the lines.
        total_lines: of the file, in that version; None where a chunk was asked for.
        next_line: where to go on if the range was too long; None if all of it is here.
        cut: whether the first line alone was too long, and its rest is not shown.
    """

    path: str
    line_start: int
    line_end: int
    text: str
    source_version: str
    state: Literal["current", "changed", "gone"]
    chunk: Chunk | None = None
    total_lines: int | None = None
    next_line: int | None = None
    cut: bool = False
    extracted: bool = False
    locator: Locator | None = None
    heading: tuple[str, ...] = ()


def check_range(request: ReadRequest) -> None:
    """Refuse a request that cannot be meant.

    Raises:
        UsageError: neither or both of a chunk and a path are named, or the lines make no range.
    """
    if (request.chunk_id is None) == (not request.path):
        raise UsageError("a chunk's id or a file's path says what to read, one of them", hint=_HINT)
    first, last = request.line_start, request.line_end
    if first < 1 or (last is not None and last < first):
        raise UsageError(
            f"lines {first} to {last} are no range: lines count from 1", code="no_such_lines"
        )


def read_chunk(root: Path, row: FileRow, chunk: Chunk, request: ReadRequest) -> Reading:
    """The stored text of a chunk, whole.

    Args:
        row: its file's entry.
    Raises:
        UsageError: code "source_replaced": the index holds another version of the file.
    """
    _check_version(row, request)
    state = _on_disk(root, row, ()).state
    return Reading(
        row.path,
        chunk.line_start,
        chunk.line_end,
        chunk.text,
        row.content_hash,
        state,
        chunk,
        extracted=chunk.locator is not None,
        locator=chunk.locator,
        heading=chunk.heading,
    )


def read_lines(root: Path, row: FileRow, chunks: Sequence[Chunk], request: ReadRequest) -> Reading:
    """A range of an indexed file's lines.

    Args:
        chunks: all of the file's, in order.
    Raises:
        UsageError: nothing of the file is in the index (code "not_indexed"), another version is
            (code "source_replaced"), or it has no such lines (code "no_such_lines").
    """
    if not chunks:
        why = f": {row.note}" if row.note else f" ({row.status})" if row.status != "ok" else ""
        raise UsageError(
            f"{row.path} has no text in the index{why}",
            code="not_indexed",
            hint="ragx index -v lists what is left out, and why",
        )
    _check_version(row, request)
    found = _on_disk(root, row, chunks)
    # An index may come with a clone: what it calls text is shown only if it says so in chunks.
    lines = found.lines if found.state == "current" else stored_lines(chunks, row.encoding)
    first = request.line_start
    if first > len(lines):
        raise UsageError(
            f"{row.path} has {len(lines)} lines, not {first}",
            code="no_such_lines",
            hint=f"ragx read {row.path}:1-{min(40, len(lines))}",
        )
    last = min(len(lines), request.line_end or len(lines))
    end, size = first - 1, 0
    while end < last and (end < first or size + len(lines[end]) <= request.max_chars):
        size += len(lines[end])
        end += 1
    text = _LAST_END.sub("", "".join(lines[first - 1 : end]))
    shown = _shortened(text, request.max_chars)
    held = [one for one in chunks if one.line_start <= end and one.line_end >= first]
    return Reading(
        row.path,
        first,
        end,
        shown,
        row.content_hash,
        found.state,
        total_lines=len(lines),
        next_line=end + 1 if end < last else None,
        cut=len(shown) < len(text),
        extracted=chunks[0].locator is not None,
        locator=across(held[0].locator, held[-1].locator) if held else None,
        heading=held[0].heading if held else (),
    )


def _shortened(text: str, max_chars: int) -> str:
    from ragx.algo.chunking.graphemes import boundary_at_or_before

    return text if len(text) <= max_chars else text[: boundary_at_or_before(text, max_chars, 0)]


def _check_version(row: FileRow, request: ReadRequest) -> None:
    asked = request.source_version
    if asked and asked != row.content_hash:
        raise UsageError(
            f"{row.path} is in the index as version {row.content_hash}, not {asked}",
            code="source_replaced",
            hint="query again: places and text of another version may differ",
        )


def _on_disk(root: Path, row: FileRow, chunks: Sequence[Chunk]) -> FileText:
    return read_current(root, row, lambda _: chunks)

"""Lines around a chunk, read fresh from disk and only if the file is still the one indexed."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import xxhash

from ragx.documents.read import read_inside
from ragx.errors import ExtractionError
from ragx.store.base import FileRow
from ragx.types import Chunk

__all__ = [
    "ContextLines",
    "FileText",
    "lines_after",
    "lines_before",
    "read_current",
    "stored_lines",
]

_MAX_SPACES = 1000
_LAST_END = re.compile(r"(?:\r\n|\r|\n)\Z")
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")


@dataclass(frozen=True, slots=True)
class ContextLines:
    """1-based inclusive line range with its text, line endings inside kept."""

    line_start: int
    line_end: int
    text: str


@dataclass(frozen=True, slots=True)
class FileText:
    """A file as it is now: its lines, or why they cannot be shown."""

    lines: tuple[str, ...] = ()
    state: Literal["current", "changed", "gone"] = "current"


def read_current(root: Path, row: FileRow, chunks: Callable[[str], Sequence[Chunk]]) -> FileText:
    """Lines of a file whose bytes are still those that were indexed.

    A file that changed, went or cannot be read any more gives no lines and says which. The lines
    of a document are those of its extracted text, which only the index has.

    Args:
        chunks: gives all chunks of a path, in order.
    """
    try:
        raw, _, _ = read_inside(root, row.path)
    except FileNotFoundError:
        return FileText(state="gone")
    except (OSError, ExtractionError):
        return FileText(state="changed")
    if xxhash.xxh3_128_hexdigest(raw) != row.content_hash:
        return FileText(state="changed")
    if row.extractor:
        stored = chunks(row.path)
        if not stored:
            return FileText()
        if stored[0].locator is not None:
            return FileText(stored_lines(stored, row.encoding))
    try:
        text = raw.decode(row.encoding, "replace")
    except LookupError:  # no run stores such an encoding, but an index may come from anybody
        return FileText(state="changed")
    return FileText(tuple(_LINE.findall(text.lstrip("\ufeff"))))


def stored_lines(chunks: Sequence[Chunk], encoding: str) -> tuple[str, ...]:
    """A file's lines from its chunks; what lay between them, white space, is filled in."""
    try:
        "".encode(encoding)
    except LookupError:  # no run stores such an encoding, but an index may come from anybody
        encoding = "utf-8"
    pieces: list[str] = []
    line, covered = 1, 0
    for chunk in sorted(chunks, key=lambda chunk: (chunk.byte_start, chunk.byte_end)):
        if chunk.byte_end <= covered:
            continue
        piece, gap = chunk.text, chunk.byte_start - covered
        if gap < 0:
            piece = piece.encode(encoding, "replace")[-gap:].decode(encoding, "replace")
        else:
            # Never more lines than there are bytes: the index may lie.
            breaks = max(0, min(chunk.line_start - line, gap))
            pieces.append("\n" * breaks or " " * min(gap, _MAX_SPACES))
            line += breaks
        pieces.append(piece)
        line += _n_ends(piece)
        covered = chunk.byte_end
    return tuple(_LINE.findall("".join(pieces)))


def _n_ends(text: str) -> int:
    return text.count("\n") + text.count("\r") - text.count("\r\n")


def lines_before(lines: Sequence[str], line_start: int, n: int) -> ContextLines | None:
    """The stretch above line `line_start` that reaches up to its nth non-blank line."""
    first = _reach(lines, range(line_start - 2, -1, -1), n)
    if first is None:
        return None
    return _context(lines, first, line_start - 2)


def lines_after(lines: Sequence[str], line_end: int, n: int) -> ContextLines | None:
    """The stretch below line `line_end` that reaches down to its nth non-blank line."""
    last = _reach(lines, range(line_end, len(lines)), n)
    if last is None:
        return None
    return _context(lines, line_end, last)


def _reach(lines: Sequence[str], walk: range, n: int) -> int | None:
    """Index of the nth non-blank line along `walk`, or of the last one there is."""
    found: int | None = None
    for index in walk:
        if n <= 0:
            break
        if lines[index].strip():
            found = index
            n -= 1
    return found


def _context(lines: Sequence[str], first: int, last: int) -> ContextLines:
    text = "".join(lines[first : last + 1])
    return ContextLines(first + 1, last + 1, _LAST_END.sub("", text))

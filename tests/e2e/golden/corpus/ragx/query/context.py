"""Lines around a chunk, read fresh from disk and only if the file is still the one indexed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import xxhash

from ragx.documents.read import read_regular
from ragx.errors import ExtractionError

__all__ = ["ContextLines", "FileText", "lines_after", "lines_before", "read_current"]

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


def read_current(root: Path, path: str, *, content_hash: str, encoding: str) -> FileText:
    """Lines of a file whose bytes still have the recorded hash.

    A file that changed, went or cannot be read any more gives no lines and says which.
    """
    try:
        raw, _, _ = read_regular(root / path)
    except FileNotFoundError:
        return FileText(state="gone")
    except (OSError, ExtractionError):
        return FileText(state="changed")
    if xxhash.xxh3_128_hexdigest(raw) != content_hash:
        return FileText(state="changed")
    return FileText(tuple(_LINE.findall(raw.decode(encoding, "replace").lstrip("\ufeff"))))


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

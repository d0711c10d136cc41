"""Where Markdown tables lie, so that a part cut from one can be read with its header row."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable

__all__ = ["TableHeaders"]

# A delimiter row: cells of dashes with optional colons, and at least one pipe.
_DELIMITER = re.compile(
    r"(?:(?<=[\r\n])|\A)[ \t]{0,3}(?=[^\r\n]*\|)"
    r"\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*(?=[\r\n]|\Z)"
)
_ROW = re.compile(r"[^\r\n]*\|[^\r\n]*(?:\r\n|\r|\n|\Z)")


class TableHeaders:
    """Header rows of all pipe tables of one text, by position; found in one pass.

    A line that looks like a delimiter row inside a fence counts, too: at worst a passage gets one
    line more than it needs.
    """

    def __init__(self, text: str) -> None:
        self._starts: list[int] = []
        self._bodies: list[tuple[int, str]] = []
        if "|" not in text or "-" not in text:
            return
        for match in _DELIMITER.finditer(text):
            header_end = match.start()
            header_start = _line_start(text, header_end)
            header = text[header_start:header_end].strip()
            if "|" not in header:
                continue
            end = _body_end(text, match.end())
            self._starts.append(match.end())
            self._bodies.append((end, f"{header}\n{match.group().strip()}"))

    @classmethod
    def of(cls, tables: Iterable[tuple[int, int, str]]) -> TableHeaders:
        """Of tables that are known: offsets of each body, and its header, in order."""
        headers = cls("")
        for start, end, header in tables:
            headers._starts.append(start)
            headers._bodies.append((end, header))
        return headers

    def above(self, position: int) -> str:
        """Header and delimiter row of the table whose body holds the position; "" outside one."""
        index = bisect_right(self._starts, position) - 1
        if index < 0:
            return ""
        end, header = self._bodies[index]
        return header if position < end else ""

    def longest(self, start: int, end: int) -> str:
        """The longest of the headers that `above` gives for positions from start to before end."""
        first = max(0, bisect_right(self._starts, start) - 1)
        last = bisect_right(self._starts, end - 1)
        headers = [header for body_end, header in self._bodies[first:last] if body_end > start]
        return max(headers, key=len, default="")

    def __bool__(self) -> bool:
        return bool(self._starts)


def _line_start(text: str, end: int) -> int:
    """Start of the line that ends just before `end`."""
    stripped = end
    while stripped > 0 and text[stripped - 1] in "\r\n" and end - stripped < 2:
        stripped -= 1
    return max(text.rfind("\n", 0, stripped), text.rfind("\r", 0, stripped)) + 1


def _body_end(text: str, at: int) -> int:
    """End of the rows that follow a delimiter row: the first line without a pipe ends them."""
    if at < len(text) and text[at] == "\r":
        at += 1
    if at < len(text) and text[at] == "\n":
        at += 1
    while at < len(text):
        row = _ROW.match(text, at)
        if row is None or row.end() == at:
            return at
        at = row.end()
    return at

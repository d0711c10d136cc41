"""Text that grows piece by piece, with white space as a browser shows it, and its links."""

from __future__ import annotations

import re
import unicodedata

from ragx.documents.formats.base import Link
from ragx.documents.formats.markup.tree import clean

__all__ = ["Run"]

_NO_LINKS = ("", "javascript:", "data:", "about:")
_LONGEST_TARGET = 2000
_FOOTNOTE_MARK = re.compile(r"\[[^\s\[\]]{1,8}\](?: \([\d,]{1,4}\))?")


class Run:
    """The text of one block to be.

    White space between words is one blank, none at the ends. Line breaks are asked for by
    `break_line` and come only between texts, as does a `mark` of a list item.

    Args:
        one_line: breaks become blanks.
        cell: a table's cell: "|" is escaped.
    """

    def __init__(self, *, one_line: bool = False, cell: bool = False) -> None:
        self._one_line = one_line or cell
        self._cell = cell
        self._parts: list[str] = []
        self._length = 0
        self._gap = ""
        self._mark = ""
        self._links: list[Link] = []
        self._open: list[tuple[int, str]] = []

    def __bool__(self) -> bool:
        return self._length > 0

    @property
    def is_footnote_mark(self) -> bool:
        """Whether all there is so far is the number of a footnote."""
        return self._length <= 14 and bool(_FOOTNOTE_MARK.fullmatch("".join(self._parts)))

    def successor(self, *, one_line: bool = False) -> Run:
        """An empty run, within the links that are open in this one."""
        run = Run(one_line=one_line)
        run._open = [(-1, target) for _, target in self._open]
        return run

    def add(self, text: str) -> None:
        """Append text of the page."""
        text = clean(text)
        words = text.split()
        if not words:
            if text and self._length and not self._gap:
                self._gap = " "
            return
        if text[0].isspace() and not self._gap and self._length:
            self._gap = " "
        joined = " ".join(words)
        self._put(joined.replace("|", "\\|") if self._cell else joined)
        if text[-1].isspace():
            self._gap = " "

    def break_line(self, indent: str = "") -> None:
        """What follows begins a line."""
        if self._mark or not self._length:
            return
        self._gap = " " if self._one_line else "\n" + indent

    def mark(self, text: str, indent: str) -> None:
        """What follows begins a list item with this mark, if anything does."""
        self.break_line(indent)
        self._mark = text + " "

    def open_link(self, target: str) -> None:
        """What follows leads to a target, until `close_link`."""
        self._open.append((-1, target.strip()))

    def close_link(self) -> None:
        """End the last open link; one around no text, or that leads nowhere, is none."""
        if not self._open:
            return
        start, target = self._open.pop()
        if start < 0 or start >= self._length or len(target) > _LONGEST_TARGET:
            return
        if target and not target.lower().startswith(_NO_LINKS[1:]):
            self._links.append(Link(start, self._length, "".join(target.split())))

    def finish(self) -> tuple[str, tuple[Link, ...]]:
        """The text and the links within it, in order."""
        while self._open:
            self.close_link()
        text = "".join(self._parts)
        links = sorted(self._links, key=lambda link: (link.start, link.end))
        if not unicodedata.is_normalized("NFC", text):
            text, links = _composed(text, links)
        return text, tuple(links)

    def _put(self, text: str) -> None:
        lead = (self._gap if self._length else "") + self._mark
        self._gap = self._mark = ""
        start = self._length + len(lead)
        self._open = [(start if at < 0 else at, target) for at, target in self._open]
        self._parts += (lead, text)
        self._length = start + len(text)


def _composed(text: str, links: list[Link]) -> tuple[str, list[Link]]:
    """Compose across the border of two pieces; links are moved along."""

    def moved(offset: int) -> int:
        return len(unicodedata.normalize("NFC", text[:offset]))

    shifted = [Link(moved(link.start), moved(link.end), link.target) for link in links[:1000]]
    return unicodedata.normalize("NFC", text), shifted

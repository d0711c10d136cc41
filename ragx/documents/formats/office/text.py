"""Text of office documents: pieces joined to clean lines that know their links; tables as lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from ragx.documents.formats import tidy
from ragx.documents.formats.base import Block, Link, Place

__all__ = [
    "MAX_LIST_CHARS",
    "Line",
    "clean",
    "is_figure",
    "join_cells",
    "list_block",
    "moved",
    "one_line",
    "table_blocks",
]

# What `tidy` leaves, as other formats do not have it: glyphs of symbol fonts, which are no text,
# and the tabulator that breaks a line in presentations.
_OFFICE = {
    0x0B: "\n",
    0x0D: " ",
    0x2007: " ",
    0x2011: "-",
    **dict.fromkeys(range(0xF000, 0xF100)),
}
# A list longer than this goes on in a block of its own.
MAX_LIST_CHARS = 4000

_FIGURE = re.compile(r"[^\w]*\d[\d.,:/%\s'-]*[^\w]*$")
_SPACES = re.compile(r"[ \t\u1680\u2000-\u200a\u205f\u3000]+")
_BREAKS = re.compile(r" ?\n[ \n]*")


def clean(text: str) -> str:
    """Composed (NFC), without control and zero-width characters, ligatures spelled out."""
    return tidy.clean(text if text.isprintable() and text.isascii() else text.translate(_OFFICE))


def one_line(text: str) -> str:
    """Clean text with every run of white space as one space."""
    return " ".join(clean(text).split())


class Line:
    """A paragraph under way: pieces of text, each leading somewhere or nowhere."""

    __slots__ = ("_pieces",)

    def __init__(self) -> None:
        self._pieces: list[tuple[list[str], str]] = []

    def add(self, text: str, target: str = "") -> None:
        """Append text, which leads to `target` if given."""
        if not text:
            return
        if self._pieces and self._pieces[-1][1] == target:
            self._pieces[-1][0].append(text)
        else:
            self._pieces.append(([text], target))

    @property
    def raw(self) -> str:
        """The text as it came, cleaned, with its white space: for code."""
        return clean("".join(text for texts, _target in self._pieces for text in texts))

    def build(self) -> tuple[str, tuple[Link, ...]]:
        """The text, white space squeezed and no empty lines, and its links."""
        out: list[str] = []
        links: list[Link] = []
        length = 0
        for texts, target in self._pieces:
            text = _BREAKS.sub("\n", _SPACES.sub(" ", clean("".join(texts))))
            last = out[-1][-1] if out else "\n"
            if last == "\n":
                text = text.lstrip()
            elif last == " ":
                text = text.lstrip(" ")
                if text.startswith("\n"):
                    out[-1] = out[-1][:-1]
                    length -= 1
            if not text:
                continue
            stripped = text.strip()
            if target and stripped:
                start = length + len(text) - len(text.lstrip())
                links.append(Link(start, start + len(stripped), target))
            if out and not out[-1]:
                out.pop()
            out.append(text)
            length += len(text)
        return "".join(out).rstrip(), tuple(links)


def join_cells(cells: Sequence[str]) -> str:
    """One row: cells cleaned to one line each and divided by " | "; "" if all are empty.

    Empty cells at the end are dropped, those between keep the columns in place; blocks must not
    start with white space, so an empty first cell is a row that starts with "|".
    """
    texts = [one_line(cell).replace("|", "\\|") for cell in cells]
    while texts and not texts[-1]:
        texts.pop()
    return " | ".join(texts).lstrip()


def table_blocks(
    rows: Iterable[str], place: Place, *, header_rows: int, max_chars: int
) -> Iterator[Block]:
    """A table as few blocks as `max_chars` allows for each, every one with the header rows."""
    lines = [row for row in rows if row]
    header = lines[:header_rows] if header_rows < len(lines) else []
    taken: list[str] = []
    n_header_chars = n_chars = sum(len(line) + 1 for line in header)
    for line in lines[len(header) :]:
        if taken and n_chars + len(line) > max_chars:
            yield _table(header, taken, place)
            taken, n_chars = [], n_header_chars
        taken.append(line)
        n_chars += len(line) + 1
    if taken:
        yield _table(header, taken, place)


def _table(header: list[str], lines: list[str], place: Place) -> Block:
    return Block("table", "\n".join([*header, *lines]), place, header_rows=len(header))


def is_figure(text: str) -> bool:
    """Whether a cell holds a number, a date or an amount rather than words."""
    return len(text) <= 40 and bool(_FIGURE.match(text))


def moved(links: tuple[Link, ...], by: int) -> tuple[Link, ...]:
    """The same links in a text that has `by` characters more before them."""
    return tuple(Link(link.start + by, link.end + by, link.target) for link in links)


def list_block(items: Sequence[tuple[int, str, tuple[Link, ...]]], place: Place) -> Block:
    """Items (depth, text with its mark, links) one below the other, the deeper ones indented."""
    lines: list[str] = []
    links: list[Link] = []
    length = 0
    top = items[0][0]
    for depth, text, own in items:
        indent = "  " * max(0, depth - top)
        links.extend(moved(own, length + len(indent)))
        lines.append(indent + text)
        length += len(indent) + len(text) + 1
    return Block("list", "\n".join(lines), place, links=tuple(links))

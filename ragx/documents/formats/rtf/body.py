"""The text of an RTF file as it comes in: paragraphs, cells and notes become blocks."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from ragx.documents.formats.base import Block, BlockKind, ExtractLimits, Link, Place
from ragx.documents.formats.rtf.looks import Looks, heading_levels
from ragx.documents.formats.tidy import clean, table_row

__all__ = ["Body", "ParagraphStyle"]

_PLACE = Place("heading")
_SPACES = re.compile(r"[ \t]+")
# Where links begin and end inside a text: characters that the text itself is freed of.
_FIRST, _LAST, _CLOSE = 0xF0000, 0x10FFFC, "\U0010fffd"
_MARKS = re.compile("[\U000f0000-\U0010fffd]")
_MARKED = re.compile(f"([\U000f0000-\U0010fffc])([^\U000f0000-\U0010fffd]*){_CLOSE}?|{_CLOSE}")
_TYPED_BULLET = re.compile(r"[•▪◦‣][ \n]")
_BULLETS = frozenset("•·*-–—o§▪◦‣\uf0b7\uf0a7\uf0d8")
# What is longer or a whole sentence is text in the wrong style.
_MAX_HEADING = 200
_MAX_SENTENCE = 5  # words
_MAX_LEVEL = 9


@dataclass(frozen=True, slots=True)
class ParagraphStyle:
    """What a paragraph is: `level` of a heading or 0, whether in a table, depth of a list item."""

    level: int = 0
    in_table: bool = False
    indent: int = 0


@dataclass(slots=True)
class _Flow:
    """A text of its own: the document's, or that of a note or a frame inside it."""

    pieces: list[str] = field(default_factory=list)
    marker: str = ""
    looks: Looks = field(default_factory=Looks)
    paragraphs: list[str] = field(default_factory=list)  # of the cell that is open
    cells: list[str] = field(default_factory=list)
    rows: list[str] = field(default_factory=list)
    n_columns: int = 0
    header_rows: int = 0
    items: list[str] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    asides: list[Block] = field(default_factory=list)  # to follow what is open


class Body:
    """Takes text and the marks between it; `blocks` holds what is complete.

    Args:
        limits: it is `is_full` soon after it holds more than they allow.
    """

    def __init__(self, limits: ExtractLimits) -> None:
        self._limits = limits
        self._flows = [_Flow()]
        self._flow = self._flows[0]
        self._targets: list[str] = []
        self._n_chars = 0
        self._looks: dict[int, Looks] = {}  # of the document's paragraphs, by their block

    @property
    def blocks(self) -> list[Block]:
        return self._flows[0].blocks

    @property
    def is_full(self) -> bool:
        return (
            self._n_chars > 2 * self._limits.max_chars + 1000
            or len(self.blocks) > self._limits.max_blocks
        )

    @property
    def in_aside(self) -> bool:
        return len(self._flows) > 1

    def text(self, text: str, size: int, *, is_bold: bool) -> None:
        """Text in letters of `size` half points."""
        self._n_chars += len(text)
        if not text.isspace():
            self._flow.looks.add(size, len(text), is_bold=is_bold)
        self._flow.pieces.append(_MARKS.sub("", text) if text > "\U000f0000" else text)

    def marker(self, text: str) -> None:
        """A list item's number or bullet."""
        marker = " ".join(clean(text).split())
        if marker:
            self._flow.marker = "-" if marker in _BULLETS else marker

    def link(self, target: str) -> None:
        """A link begins; `link_end` follows."""
        code = _FIRST + len(self._targets)
        if code <= _LAST:
            self._targets.append(target)
            self._flow.pieces.append(chr(code))

    def link_end(self) -> None:
        self._flow.pieces.append(_CLOSE)

    def paragraph(self, style: ParagraphStyle) -> None:
        flow = self._flow
        text = self._taken(flow)
        marker, flow.marker = flow.marker, ""
        looks, flow.looks = flow.looks, Looks()
        if style.in_table:
            if text:
                flow.paragraphs.append(f"{marker} {text}" if marker else text)
            return
        self._end_table(flow)
        if not text:
            return
        typed = None if marker else _TYPED_BULLET.match(text)
        if typed and not style.level:
            marker, text = "-", text[typed.end() :]
        if style.level and _can_be_heading(_MARKS.sub("", text)):
            self._end_list(flow)
            heading = " ".join(f"{'' if marker == '-' else marker} {text}".split())
            self._add(flow, "heading", heading, level=min(style.level, _MAX_LEVEL))
        elif marker:
            body = text.replace("\n", "\n  ")
            flow.items.append(f"{'  ' * min(style.indent, 8)}{marker} {body}")
            if flow.asides:
                self._end_list(flow)
            return
        else:
            self._end_list(flow)
            self._add(flow, "text", text)
            if len(self._flows) == 1:
                self._looks[len(flow.blocks) - 1] = looks
        self._add_asides(flow)

    def cell(self) -> None:
        flow = self._flow
        text = self._taken(flow)
        marker, flow.marker = flow.marker, ""
        if text:
            flow.paragraphs.append(f"{marker} {text}" if marker else text)
        flow.cells.append(" ".join(flow.paragraphs))
        flow.paragraphs = []

    def row(self, *, is_header: bool) -> None:
        flow = self._flow
        if flow.pieces or flow.paragraphs:
            self.cell()
        if not flow.rows:
            self._end_list(flow)
        if any(_MARKS.sub("", cell).strip() for cell in flow.cells):
            if is_header and flow.header_rows == len(flow.rows):
                flow.header_rows += 1
            flow.n_columns = max(flow.n_columns, len(flow.cells))
            flow.rows.append(table_row(flow.cells))
        flow.cells = []

    def aside(self) -> None:
        """A note or a frame begins; its blocks will follow the paragraph that it is in."""
        self._flow = _Flow()
        self._flows.append(self._flow)

    def aside_end(self) -> None:
        if len(self._flows) > 1:
            self._finish(self._flow)
            done = self._flows.pop()
            self._flow = self._flows[-1]
            self._flow.asides += done.blocks

    def close(self) -> None:
        """The end of the file: what is open is complete."""
        while len(self._flows) > 1:
            self.aside_end()
        self._finish(self._flow)
        if all(block.kind != "heading" for block in self.blocks):
            for number, level in heading_levels(self.blocks, self._looks).items():
                self.blocks[number] = replace(self.blocks[number], kind="heading", level=level)

    def _finish(self, flow: _Flow) -> None:
        if flow.cells or flow.paragraphs:
            self.row(is_header=False)
        self.paragraph(ParagraphStyle())
        self._end_table(flow)
        self._end_list(flow)
        self._add_asides(flow)

    def _taken(self, flow: _Flow) -> str:
        """The open paragraph's text, in which links are still marked."""
        text = clean("".join(flow.pieces))
        flow.pieces = []
        lines = (_SPACES.sub(" ", line).strip() for line in text.split("\n"))
        text = "\n".join(line for line in lines if line)
        return text if _MARKS.sub("", text).strip() else ""

    def _end_table(self, flow: _Flow) -> None:
        if not flow.rows:
            return
        rows, flow.rows = flow.rows, []
        header_rows, flow.header_rows = flow.header_rows, 0
        if flow.n_columns > 1:
            self._add(flow, "table", "\n".join(rows), header_rows=min(header_rows, len(rows) - 1))
        else:  # a frame around text
            for row in rows:
                self._add(flow, "text", row.replace("\\|", "|"))
        flow.n_columns = 0
        self._add_asides(flow)

    def _end_list(self, flow: _Flow) -> None:
        if flow.items:
            items, flow.items = flow.items, []
            self._add(flow, "list", "\n".join(items))
            self._add_asides(flow)

    def _add_asides(self, flow: _Flow) -> None:
        flow.blocks += flow.asides
        flow.asides = []

    def _add(
        self, flow: _Flow, kind: BlockKind, marked: str, level: int = 0, header_rows: int = 0
    ) -> None:
        text, links = self._unmarked(marked.strip())
        if text:
            flow.blocks.append(Block(kind, text, _PLACE, level, header_rows, links))

    def _unmarked(self, marked: str) -> tuple[str, tuple[Link, ...]]:
        """The text without the marks of links, and where they stand in it."""
        if not _MARKS.search(marked):
            return marked, ()
        pieces: list[str] = []
        links: list[Link] = []
        at = done = 0
        for match in _MARKED.finditer(marked):
            before = marked[done : match.start()]
            pieces.append(before)
            at += len(before)
            done = match.end()
            if match[1]:
                pieces.append(match[2])
                if match[2].strip():
                    target = self._targets[ord(match[1]) - _FIRST]
                    links.append(Link(at, at + len(match[2]), target))
                at += len(match[2])
        pieces.append(marked[done:])
        text = "".join(pieces)
        start = len(text) - len(text.lstrip())
        end = len(text.rstrip())
        shifted = (
            Link(max(link.start - start, 0), min(link.end, end) - start, link.target)
            for link in links
        )
        return text.strip(), tuple(link for link in shifted if link.start < link.end)


def _can_be_heading(text: str) -> bool:
    words = text.split()
    if len(text) > _MAX_HEADING or (text[-1] in ".;" and len(words) > _MAX_SENTENCE):
        return False
    return len(words) == 1 or any(char.isalpha() for char in text)

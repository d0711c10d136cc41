"""The main part of a page as blocks: headings, paragraphs, items, tables and code, in order."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from ragx.algo.chunking.languages import named_language
from ragx.documents.formats.base import Block, BlockKind, Link, Place
from ragx.documents.formats.markup.main import Left, is_permalink, why_left
from ragx.documents.formats.markup.run import Run
from ragx.documents.formats.markup.table import image_text, is_layout, is_line, table_blocks
from ragx.documents.formats.markup.tree import HEADINGS, Element, clean, walk

__all__ = ["LeftOut", "Walker"]

# Elements that begin and end a line.
_BLOCKS = frozenset(
    "address article aside blockquote body caption center details dialog dd div dl dt fieldset"
    " figcaption figure footer form header hgroup hr legend li main nav ol p pre search section"
    " summary table tbody td tfoot th thead tr ul optgroup option".split()
)
_LISTS = frozenset(["ul", "ol", "menu", "dir"])
_LANGUAGE_CLASS = re.compile(
    r"(?:^|\s)(?:language-|lang-|highlight-source-|highlight-|brush:\s*|sourceCode\s+|src-)"
    r"([A-Za-z0-9+#_-]+)"
)
_LANGUAGES = {"python3": "python", "py3": "python", "pycon": "python", "ipython3": "python",
              "default": "", "none": "", "text": "", "notranslate": ""}  # fmt: skip
# A longer text is cut at a line or word, lest one block be all of the limit.
_LONGEST = 100_000


@dataclass(slots=True)
class LeftOut:
    """What a walk left out, in numbers."""

    links: int = 0
    hidden: int = 0
    images: int = 0


@dataclass(slots=True)
class _List:
    numbered: bool
    next_number: int
    element: Element


@dataclass(slots=True)
class Walker:
    """Walks one page.

    Args:
        main: what is walked; what `why_left` says of its parts is left out.
        place: of the blocks. May be changed at an anchor, by `places`.
        places: ids and names of anchors that begin another place.
        keep_navigation: take it for text, as it is all that there is.
    """

    main: Element
    place: Place
    places: dict[str, Place] = field(default_factory=dict)
    left: LeftOut = field(default_factory=LeftOut)
    keep_navigation: bool = False
    _run: Run = field(default_factory=Run)
    _kind: BlockKind = "text"
    _lists: list[_List] = field(default_factory=list)
    _level: int = 0
    _ready: list[Block] = field(default_factory=list)

    def blocks(self) -> Iterator[Block]:
        """The blocks, as far as they are asked for."""
        skipping: Element | None = None
        for kind, value in walk(self.main):
            if isinstance(value, str):
                if skipping is None:
                    self._run.add(value)
                continue
            if skipping is not None:
                skipping = None if kind == "out" and value is skipping else skipping
                continue
            if kind == "in":
                if self._enter(value):
                    skipping = value
            else:
                self._leave(value)
            if self._ready:
                yield from self._ready
                self._ready.clear()
        self._flush()
        yield from self._ready

    def _enter(self, element: Element) -> bool:
        """Begin an element; True if its children are dealt with."""
        if self.places:
            self._turn_to(element)
        why = why_left(element, self.main)
        if why == "navigation" and self.keep_navigation:
            why = ""
        if why or is_permalink(element):
            self._count(element, why)
            return True
        tag = element.tag
        if tag == "pre":
            self._code(element)
            return True
        if tag == "table" and not is_layout(element):
            self._table(element)
            return True
        if tag in HEADINGS:
            self._flush()
            self._level = HEADINGS[tag]
            self._run = self._run.successor(one_line=True)
        elif tag in _LISTS:
            self._begin_list(element)
        elif tag == "li" and self._lists:
            self._begin_item(element)
        elif tag in _BLOCKS:
            self._break(element)
        elif tag == "br":
            self._run.break_line(self._indent())
        elif tag == "a" and "href" in element.attrs:
            self._run.open_link(element.get("href"))
        elif tag == "img":
            self._image(element)
        elif tag == "span" and is_line(element):
            self._run.break_line(self._indent())
        elif tag == "span" and not element.children and "sep" in element.get("class").split():
            self._run.add(" ")  # gi-docgen's dots are drawn by style
        return False

    def _leave(self, element: Element) -> None:
        tag = element.tag
        if tag in HEADINGS:
            self._flush()
        elif tag in _LISTS:
            if self._lists and self._lists[-1].element is element:
                self._lists.pop()
                self._break(element)
            elif not self._lists:
                self._flush()
        elif tag in _BLOCKS:
            self._break(element)
        elif tag == "a" and "href" in element.attrs:
            self._run.close_link()

    def _break(self, element: Element) -> None:
        """Between two paragraphs: of one item or cell of a signature, a line; else a block."""
        if self._lists or self._level:
            self._run.break_line(self._indent())
            return
        table = _signature_table(element)
        if self._run.is_footnote_mark or (table and (element.tag != "tr" or table == "memname")):
            self._run.add(" ")
        else:
            self._flush()

    def _begin_list(self, element: Element) -> None:
        # Lists around whole sections are scaffolding (Javadoc).
        if not self._lists and (element.has & (HEADINGS.keys() | {"section"})):
            self._flush()
            return
        if not self._lists:
            self._flush()
        start = element.get("start")
        first = int(start) if re.fullmatch(r"-?\d{1,6}", start) else 1
        self._lists.append(_List(element.tag == "ol", first, element))

    def _begin_item(self, element: Element) -> None:
        inner = self._lists[-1]
        if len(self._lists) == 1:
            self._flush()
        mark = "-"
        if inner.numbered:
            value = element.get("value")
            if value.isdecimal() and len(value) < 7:
                inner.next_number = int(value)
            mark = f"{inner.next_number}."
            inner.next_number += 1
        self._kind = "list"
        self._run.mark(mark, self._indent(-1))

    def _indent(self, more: int = 0) -> str:
        # Twenty levels deep, more white space tells nobody anything.
        return "  " * min(max(len(self._lists) + more, 0), 20)

    def _image(self, element: Element) -> None:
        text = image_text(element)
        if text:
            self._run.add(text)
        else:
            self.left.images += 1

    def _count(self, element: Element, why: Left) -> None:
        if why == "navigation":
            self.left.links += element.links
        elif why == "hidden" and element.chars:
            self.left.hidden += 1

    def _turn_to(self, element: Element) -> None:
        """An anchor of the table of contents begins a place."""
        name = element.get("id") or (element.get("name") if element.tag == "a" else "")
        place = self.places.get(name) if name else None
        if place is not None and place != self.place:
            self._flush()
            self.place = place

    def _flush(self) -> None:
        """End the block that is being written, if it has text."""
        run, level, kind = self._run, self._level, self._kind
        self._run, self._level, self._kind = run.successor(), 0, "text"
        if not run:
            return
        text, links = run.finish()
        if level:
            self._ready.append(Block("heading", text, self.place, level=level, links=links))
            return
        for at, piece in _pieces(text):
            inside = tuple(
                Link(link.start - at, link.end - at, link.target)
                for link in links
                if at <= link.start and link.end <= at + len(piece)
            )
            self._ready.append(Block(kind, piece, self.place, links=inside))

    def _code(self, element: Element) -> None:
        if self._level:
            self._run.add(_raw_text(element, self.main))
            return
        self._flush()
        text = _trimmed(_raw_text(element, self.main))
        language = _language(element)
        for _, piece in _pieces(text):
            self._ready.append(Block("code", piece, self.place, language=language))

    def _table(self, element: Element) -> None:
        self._flush()
        caption = next(
            (c for c in element.children if isinstance(c, Element) and c.tag == "caption"), None
        )
        if caption is not None and not why_left(caption, self.main):
            inner = Walker(caption, self.place)
            self._ready.extend(inner.blocks())
        self._ready.extend(table_blocks(element, self.main, self.place))


def _signature_table(element: Element) -> str:
    """Doxygen sets a function's type, name and parameters as cells of one table."""
    if element.tag not in ("td", "th", "tr"):
        return ""
    parent = element.parent
    while parent is not None and parent.tag != "table":
        parent = parent.parent
    names = parent.get("class").split() if parent is not None else ()
    return next((name for name in ("memname", "memberdecls") if name in names), "")


def _raw_text(element: Element, main: Element) -> str:
    """Text with its line ends and indentation, without line numbers."""
    parts: list[str] = []
    skipping: Element | None = None
    for kind, value in walk(element):
        if isinstance(value, str):
            if skipping is None:
                parts.append(value)
        elif skipping is not None:
            skipping = None if kind == "out" and value is skipping else skipping
        elif kind == "in":
            if value.tag == "br":
                parts.append("\n")
            elif value.children and (why_left(value, main) or is_permalink(value)):
                skipping = value
            elif value.tag in _BLOCKS and parts and not parts[-1].endswith("\n"):
                parts.append("\n")
        elif value.tag in _BLOCKS and parts and not parts[-1].endswith("\n"):
            parts.append("\n")
    return clean("".join(parts).replace("\r\n", "\n").replace("\r", "\n"))


def _trimmed(text: str) -> str:
    """Without blank lines at the ends and white space that lines end in."""
    lines = [line.rstrip() for line in text.split("\n")]
    while lines and not lines[0]:
        lines.pop(0)
    while lines and not lines[-1]:
        lines.pop()
    indent = min((len(line) - len(line.lstrip()) for line in lines if line), default=0)
    return "\n".join(line[indent:] for line in lines)


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    """Parts of bounded length, each with its offset."""
    at = 0
    while len(text) - at > _LONGEST:
        end = max(text.rfind("\n", at, at + _LONGEST), text.rfind(" ", at, at + _LONGEST))
        end = end if end > at else at + _LONGEST
        piece = text[at:end]
        lead = len(piece) - len(piece.lstrip())
        if piece.strip():
            yield at + lead, piece.strip()
        at = end
    rest = text[at:]
    lead = len(rest) - len(rest.lstrip())
    if rest.strip():
        yield at + lead, rest.strip()


def _language(element: Element) -> str:
    """The language that a class of the code, or of what is just around it, names."""
    inner = [c for c in element.children if isinstance(c, Element) and c.tag == "code"]
    around: list[Element] = []
    parent = element.parent
    while parent is not None and len(around) < 3:
        around.append(parent)
        parent = parent.parent
    for candidate in (*inner[:1], element, *around):
        given = candidate.get("data-lang") or candidate.get("data-language")
        names = [given] if given else _LANGUAGE_CLASS.findall(candidate.get("class"))
        for name in names:
            name = name.lower()
            if name in _LANGUAGES:
                if _LANGUAGES[name]:
                    return _LANGUAGES[name]
                continue
            language = named_language(name)
            if language is not None and language != "text":
                return language
    return ""

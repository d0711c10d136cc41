"""Paragraphs, lists and tables of OpenDocument as blocks."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from ragx.documents.formats.base import Block, Link, Place
from ragx.documents.formats.office.odf_inline import Inline
from ragx.documents.formats.office.odf_styles import Styles
from ragx.documents.formats.office.text import (
    MAX_LIST_CHARS,
    Line,
    is_figure,
    join_cells,
    list_block,
    moved,
    table_blocks,
)
from ragx.documents.formats.office.word import number
from ragx.documents.formats.office.xml import name

__all__ = ["Texts"]

_P = name("text:p")
_H = name("text:h")
_LIST = name("text:list")
_TABLE = name("table:table")
_ROW = name("table:table-row")
_STYLE = name("text:style-name")
_REPEATED = name("table:number-columns-repeated")
_INDEXES = frozenset(
    name(f"text:{tag}")
    for tag in (
        "table-of-content alphabetical-index illustration-index table-index object-index user-index"
    ).split()
)
# What holds text among other things, and is nothing itself.
_HOLDERS = frozenset(
    name(tag)
    for tag in (
        "text:section text:index-body text:bibliography draw:text-box draw:g draw:a office:text"
        " text:numbered-paragraph text:index-title"
    ).split()
)
_MAX_COLUMNS = 1000

_Item = tuple[int, str, tuple[Link, ...]]


class Texts:
    """Blocks from elements, at the place that is set."""

    def __init__(self, styles: Styles, inline: Inline, max_chars: int) -> None:
        self._styles = styles
        self._inline = inline
        self._max_chars = max_chars
        self.place = Place("heading")
        self.title = ""
        self._code: list[str] = []
        self._pending: list[_Item] = []
        self._outline: dict[int, int] = {}
        # Counts at which lists ended, for those that go on.
        self._counts: dict[str, int] = {}

    def blocks(self, element: Element) -> Iterator[Block]:
        """An element's own blocks, then the text boxes and the notes that stand in it."""
        yield from self._element(element)
        while boxes := self._inline.take_boxes():
            for box in boxes:
                for child in box:
                    yield from self._element(child)
        while notes := self._inline.take_notes():
            yield from self.flush()
            for mark, body in notes:
                line = Line()
                line.add(f"[{mark}]")
                self._inline_of(line, body)
                text, links = line.build()
                if text != f"[{mark}]":
                    yield Block("text", text, self.place, links=links)

    def flush(self) -> Iterator[Block]:
        """The listing or the list that ends here."""
        text = "\n".join(self._code).strip("\n")
        self._code = []
        if text.strip():
            yield Block("code", text, self.place)
        items, self._pending = self._pending, []
        if items:
            yield list_block(items, self.place)

    def _element(self, element: Element) -> Iterator[Block]:
        tag = element.tag
        if tag in (_P, _H):
            yield from self._paragraph(element)
            return
        if tag in _INDEXES:
            self._inline.seen["tables of contents and indexes"] += 1
            return
        if tag == _LIST:
            if self._code:
                yield from self.flush()
            yield from self._list(element)
            return
        yield from self.flush()
        if tag == _TABLE:
            yield from self._table(element)
        elif tag in _HOLDERS:
            for child in element:
                yield from self._element(child)
        elif tag.startswith(name("draw:a")[:-1]):
            line = Line()
            wrapper = Element("wrapper")
            wrapper.append(element)
            self._inline.fill(line, wrapper)
            if text := line.build()[0]:
                yield Block("text", text, self.place)

    def _paragraph(self, element: Element) -> Iterator[Block]:
        style = self._styles.paragraph(element.get(_STYLE, ""))
        line = Line()
        self._inline.fill(line, element)
        if style.is_code and element.tag == _P:
            if self._pending:
                yield from self.flush()
            self._code.append(line.raw.rstrip())
            return
        text, links = line.build()
        if not text:
            if not self._pending:
                yield from self.flush()
            return
        yield from self.flush()
        if element.tag == _H:
            yield self._heading(element, text, links)
        elif style.is_title and "\n" not in text:
            self.title = self.title or text
            yield Block("heading", text, self.place, level=1, links=links)
        else:
            yield Block("text", text, self.place, links=links)

    def _heading(self, element: Element, text: str, links: tuple[Link, ...]) -> Block:
        level = min(max(1, number(element.get(name("text:outline-level"), ""), 1)), 10)
        mark = "" if element.get(name("text:is-list-header")) == "true" else self._number(level)
        text = mark + text.replace("\n", " ")
        return Block("heading", text, self.place, level=level, links=moved(links, len(mark)))

    def _number(self, level: int) -> str:
        form = self._styles.outline.get(level)
        if form is None or not form.form:
            return ""
        self._outline[level] = self._outline.get(level, form.start - 1) + 1
        for deeper in [one for one in self._outline if one > level]:
            del self._outline[deeper]
        return self._styles.outline_mark([self._outline.get(one, 1) for one in range(1, level + 1)])

    def _list(self, element: Element) -> Iterator[Block]:
        for item in self._items(element, "", 1, []):
            if isinstance(item, Block):
                yield from self.flush()
                yield item
            else:
                self._pending.append(item)
                if sum(len(text) for _, text, _ in self._pending) > MAX_LIST_CHARS:
                    yield from self.flush()

    def _items(
        self, element: Element, style: str, depth: int, above: list[int]
    ) -> Iterator[_Item | Block]:
        style = element.get(_STYLE, "") or style
        level = self._styles.level(style, depth)
        goes_on = (
            element.get(name("text:continue-numbering")) == "true"
            or element.get(name("text:continue-list")) is not None
        )
        key = f"{style}/{depth}"
        count = self._counts.get(key, level.start - 1) if goes_on else level.start - 1
        for item in element:
            is_item = item.tag == name("text:list-item")
            filled = is_item and any(child.tag in (_P, _H) for child in item)
            if filled:
                count = number(item.get(name("text:start-value"), ""), count + 1)
            mark = self._styles.mark(style, [*above, count]) if filled else ""
            for child in item:
                if child.tag == _LIST:
                    yield from self._items(child, style, depth + 1, [*above, max(count, 1)])
                elif child.tag in (_P, _H):
                    yield from self._item(child, mark, depth)
                    mark = ""
                else:
                    yield from self._element(child)
        self._counts[key] = count

    def _item(self, element: Element, mark: str, depth: int) -> Iterator[_Item | Block]:
        line = Line()
        self._inline.fill(line, element)
        text, links = line.build()
        if not text:
            return
        if element.tag == _H:
            text = mark.removeprefix("- ") + text.replace("\n", " ")
            level = max(1, number(element.get(name("text:outline-level"), ""), 1))
            yield Block("heading", text, self.place, level=min(level, 10))
        else:
            # A further paragraph of an item stands under its text.
            depth = depth if mark else depth + 1
            yield depth, mark + text.replace("\n", " "), moved(links, len(mark))

    def _table(self, table: Element) -> Iterator[Block]:
        rows = list(_rows(table, False))
        cells = [[cell for cell in row if cell.tag.endswith("table-cell")] for row, _named in rows]
        if len(cells) == 1 and len(cells[0]) == 1:  # a frame around text
            for child in cells[0][0]:
                yield from self._element(child)
            yield from self.flush()
            return
        texts = [self._row(row) for row in cells]
        header = sum(named for _row, named in rows) or self._looks_named(cells, texts)
        yield from table_blocks(
            [join_cells(row) for row in texts],
            self.place,
            header_rows=header,
            max_chars=self._max_chars,
        )

    def _row(self, cells: list[Element]) -> list[str]:
        texts: list[str] = []
        for cell in cells:
            line = Line()
            if not cell.tag.endswith("covered-table-cell"):
                self._inline_of(line, cell)
            repeats = min(max(1, number(cell.get(_REPEATED, ""), 1)), _MAX_COLUMNS)
            texts.extend([line.build()[0]] * repeats)
        return texts[:_MAX_COLUMNS]

    def _inline_of(self, line: Line, parent: Element) -> None:
        """All paragraphs within, one after the other."""
        for child in parent:
            if child.tag in (_P, _H):
                line.add(" ")
                self._inline.fill(line, child)
            elif child.tag == name("draw:frame"):
                self._inline.frame(line, child)
            elif child.tag not in (name("office:annotation"), name("text:tracked-changes")):
                self._inline_of(line, child)

    def cell(self, element: Element) -> str:
        """What a cell of a sheet shows."""
        line = Line()
        self._inline_of(line, element)
        return line.build()[0]

    def _looks_named(self, cells: list[list[Element]], texts: list[list[str]]) -> int:
        if len(texts) < 2 or len(texts[0]) < 2:
            return 0
        first = texts[0]
        if not all(0 < len(text) <= 100 and not is_figure(text) for text in first):
            return 0
        paragraphs = [p for cell in cells[0] for p in cell.iter(_P)]
        marked = all(self._styles.is_table_heading(p.get(_STYLE, "")) for p in paragraphs)
        return int(marked or any(is_figure(text) for row in texts[1:] for text in row))


def _rows(parent: Element, named: bool) -> Iterator[tuple[Element, bool]]:
    for child in parent:
        if child.tag == _ROW:
            yield child, named
        elif child.tag == name("table:table-header-rows"):
            yield from _rows(child, True)
        elif child.tag in (name("table:table-rows"), name("table:table-row-group")):
            yield from _rows(child, named)

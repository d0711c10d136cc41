"""Word documents: headings by style, lists with their numbers, tables, notes where they belong."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from xml.etree.ElementTree import Element

from ragx.documents.formats.base import (
    Block,
    Extracted,
    ExtractLimits,
    Link,
    Place,
    bounded,
    no_text,
)
from ragx.documents.formats.office.docx_inline import Inline
from ragx.documents.formats.office.package import (
    Package,
    best_title,
    open_package,
    skipped,
)
from ragx.documents.formats.office.text import (
    MAX_LIST_CHARS,
    Line,
    is_figure,
    join_cells,
    list_block,
    moved,
    table_blocks,
)
from ragx.documents.formats.office.word import (
    Numbering,
    Style,
    Styles,
    heading_level,
    is_on,
    number,
    value,
)
from ragx.documents.formats.office.xml import name, read, stream

__all__ = ["extract"]

_PLACE = Place("heading")
_P = name("w:p")
_TBL = name("w:tbl")
_ALTERNATE = name("mc:AlternateContent")
_FIRST_ROW_BIT = 0x20


def extract(raw: bytes, limits: ExtractLimits) -> Extracted:
    """The text of a Word document.

    Raises:
        ExtractionError: it is encrypted, damaged, too big, of another kind, or only pictures.
    """
    package = open_package(raw, limits, "w:document", "a Word document")
    body = _Body(package, limits)
    blocks, rest = bounded(body.blocks(), limits)
    properties = package.properties()
    seen = body.inline.seen
    if not blocks and rest is None and seen["images"]:
        raise no_text(f"it holds nothing but images, {seen['images']:,} of them")
    parts = [
        *skipped("images", seen["images"]),
        *skipped("charts and diagrams", seen["charts and diagrams"], "titles of charts are taken"),
        *skipped("embedded files", seen["embedded files"]),
        *skipped("headers and footers", _headers_and_footers(package)),
        *skipped("comments", _comments(package)),
        *skipped("tracked deletions", seen["tracked deletions"]),
        *skipped("hidden passages", seen["hidden passages"]),
        *skipped("lines of tables of contents", seen["lines of tables of contents"]),
        *([rest] if rest else []),
    ]
    return Extracted(
        tuple(blocks),
        best_title(properties.title, body.title),
        properties.date,
        properties.tags,
        tuple(parts),
    )


def _headers_and_footers(package: Package) -> int:
    kinds = Counter(relation.kind for relation in package.relations(package.main).values())
    return kinds["header"] + kinds["footer"]


def _comments(package: Package) -> int:
    for relation in package.relations(package.main).values():
        if relation.kind == "comments":
            root = read(package.archive, relation.target)
            return 0 if root is None else len(root.findall(name("w:comment")))
    return 0


class _Body:
    """Blocks of the body, in order."""

    def __init__(self, package: Package, limits: ExtractLimits) -> None:
        self._package = package
        self._max_chars = limits.max_chars // 8
        relations = package.relations(package.main)
        parts = {relation.kind: relation.target for relation in relations.values()}

        def part(kind: str) -> Element | None:
            return read(package.archive, parts.get(kind, ""))

        self._styles = Styles(part("styles"))
        self._numbering = Numbering(part("numbering"))
        self.inline = Inline(package)
        self.title = ""
        self._items: list[tuple[int, str, tuple[Link, ...]]] = []
        self._code: list[str] = []
        self._carried: Line | None = None

    def blocks(self) -> Iterator[Block]:
        """All blocks; footnotes follow the paragraph that points to them."""
        raw = self._package.archive.read(self._package.main)
        for event, element in stream(raw, self._package.main, (_P, _TBL, _ALTERNATE)):
            if event == "unit":
                yield from self._unit(element)
                yield from self._extras()
        yield from self._flush()

    def _unit(self, element: Element) -> Iterator[Block]:
        if element.tag == _P:
            yield from self._paragraph(element)
        elif element.tag == _TBL:
            yield from self._table(element)
        else:
            for child in self.inline.chosen(element):
                yield from self._unit(child)

    def _extras(self) -> Iterator[Block]:
        """What the last unit has called for: text boxes standing at it, then its notes."""
        while boxes := self.inline.take_boxes():
            for element in boxes:
                for child in self.inline.contents(element, (_P, _TBL)):
                    yield from self._unit(child)
        while notes := self.inline.take_notes():
            yield from self._flush()
            for note in notes:
                line = Line()
                line.add(f"[{note[0]}]")
                self.inline.fill_note(line, note)
                text, links = line.build()
                if text != f"[{note[0]}]":
                    yield Block("text", text, _PLACE, links=links)

    def _paragraph(self, element: Element) -> Iterator[Block]:
        properties = element.find(name("w:pPr"))
        style = self._styles.get(value(properties, "w:pStyle") or self._styles.default)
        line = self._carried or Line()
        self._carried = None
        self.inline.fill(line, element)
        run = None if properties is None else properties.find(name("w:rPr"))
        if run is not None and run.find(name("w:del")) is not None:
            self._carried = line  # its end is deleted: it goes on in the next paragraph
            return
        if style.is_contents:
            self.inline.seen["lines of tables of contents"] += 1
            return
        if style.is_code and not style.level:
            if self._items:
                yield from self._flush()
            self._code.append(line.raw.rstrip())
            return
        text, links = line.build()
        if not text:
            return
        level = heading_level(value(properties, "w:outlineLvl")) or style.level
        mark, depth = self._mark(properties, style)
        if level or style.is_title:
            yield from self._flush()
            yield self._heading(text, links, level or 1, mark or "", style.is_title)
        elif mark is not None:
            yield from self._item(_marked(mark, text, links), depth)
        else:
            yield from self._flush()
            yield Block("text", text, _PLACE, links=links)

    def _heading(
        self, text: str, links: tuple[Link, ...], level: int, mark: str, is_title: bool
    ) -> Block:
        text, links = _marked("" if mark == "- " else mark, text, links)
        if is_title and not self.title:
            self.title = text
        return Block("heading", text, _PLACE, level=level, links=links)

    def _mark(self, properties: Element | None, style: Style) -> tuple[str | None, int]:
        own = None if properties is None else properties.find(name("w:numPr"))
        num_id = value(own, "w:numId") or style.num_id
        level = number(value(own, "w:ilvl"), -1)
        if level < 0:
            level = style.num_level
        if not num_id or num_id == "0":
            return None, 0
        return self._numbering.mark(num_id, level), level

    def _item(self, item: tuple[str, tuple[Link, ...]], depth: int) -> Iterator[Block]:
        if self._code or sum(len(text) for _, text, _ in self._items) > MAX_LIST_CHARS:
            yield from self._flush()
        self._items.append((depth, *item))

    def _flush(self) -> Iterator[Block]:
        """The list or listing that ends here."""
        if self._code:
            text = "\n".join(self._code).strip("\n")
            self._code = []
            if text.strip():
                yield Block("code", text, _PLACE)
        if self._items:
            items, self._items = self._items, []
            yield list_block(items, _PLACE)

    def _table(self, table: Element) -> Iterator[Block]:
        yield from self._flush()
        rows = list(self.inline.contents(table, (name("w:tr"),)))
        cells = [list(self.inline.contents(row, (name("w:tc"),))) for row in rows]
        if len(cells) == 1 and len(cells[0]) == 1:  # a frame around text
            for element in self.inline.contents(cells[0][0], (_P, _TBL)):
                yield from self._unit(element)
            yield from self._flush()
            return
        texts = [self._row(row, row_cells) for row, row_cells in zip(rows, cells, strict=True)]
        header = _header_rows(table, rows, texts)
        lines = [join_cells(row) for row in texts]
        yield from table_blocks(lines, _PLACE, header_rows=header, max_chars=self._max_chars)

    def _row(self, row: Element, cells: list[Element]) -> list[str]:
        properties = row.find(name("w:trPr"))
        if properties is not None and properties.find(name("w:del")) is not None:
            self.inline.seen["tracked deletions"] += 1
            return []
        texts = [""] * min(number(value(properties, "w:gridBefore")), 63)
        for cell in cells:
            setup = cell.find(name("w:tcPr"))
            merge = None if setup is None else setup.find(name("w:vMerge"))
            goes_on = merge is not None and merge.get(name("w:val"), "continue") == "continue"
            texts.append("" if goes_on else self._cell(cell))
            span = number(value(setup, "w:gridSpan"), 1)
            texts.extend([""] * (min(span, 63) - 1))
        return texts

    def _cell(self, cell: Element) -> str:
        """Its paragraphs, and those of tables within it, one after the other."""
        line = Line()
        for paragraph in self._paragraphs(cell):
            properties = paragraph.find(name("w:pPr"))
            style = self._styles.get(value(properties, "w:pStyle") or self._styles.default)
            mark, _depth = self._mark(properties, style)
            line.add(" ")
            if mark and mark != "- ":
                line.add(mark)
            self.inline.fill(line, paragraph)
        return line.build()[0]

    def _paragraphs(self, parent: Element) -> Iterator[Element]:
        inner = (_P, _TBL, name("w:tr"), name("w:tc"))
        for child in self.inline.contents(parent, inner):
            if child.tag == _P:
                yield child
            else:
                yield from self._paragraphs(child)


def _marked(mark: str, text: str, links: tuple[Link, ...]) -> tuple[str, tuple[Link, ...]]:
    """One line with its mark before it."""
    return mark + text.replace("\n", " "), moved(links, len(mark))


def _header_rows(table: Element, rows: list[Element], texts: list[list[str]]) -> int:
    """How many rows name the columns: those marked so, else a first row that looks like it."""
    marked = 0
    for row in rows:
        if not is_on(row.find(name("w:trPr")), "w:tblHeader"):
            break
        marked += 1
    if marked or len(texts) < 2:
        return marked if marked < len(rows) else 0
    first = texts[0]
    if len(first) < 2 or not all(0 < len(text) <= 100 for text in first):
        return 0
    if any(is_figure(text) for text in first):
        return 0
    stands_out = _all_bold(rows[0]) or any(is_figure(text) for row in texts[1:] for text in row)
    return int(stands_out or _look_of_first_row(table))


def _look_of_first_row(table: Element) -> bool:
    look = table.find(f"{name('w:tblPr')}/{name('w:tblLook')}")
    if look is None:
        return False
    flags = look.get(name("w:val"), "")
    bits = int(flags, 16) if re.fullmatch("[0-9A-Fa-f]{4}", flags) else 0
    return look.get(name("w:firstRow")) in ("1", "true", "on") or bool(bits & _FIRST_ROW_BIT)


def _all_bold(row: Element) -> bool:
    runs = [run for run in row.iter(name("w:r")) if run.find(name("w:t")) is not None]
    return bool(runs) and all(is_on(run.find(name("w:rPr")), "w:b") for run in runs)

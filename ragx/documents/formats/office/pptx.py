"""Presentations of PowerPoint: a slide's title first, its shapes in their order, its notes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
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
from ragx.documents.formats.office.package import (
    Package,
    Relation,
    alt_text,
    best_title,
    chart_text,
    open_package,
    skipped,
)
from ragx.documents.formats.office.text import (
    Line,
    is_figure,
    join_cells,
    list_block,
    moved,
    table_blocks,
)
from ragx.documents.formats.office.word import number
from ragx.documents.formats.office.xml import name, read

__all__ = ["extract"]

_P = name("a:p")
_SHAPE = name("p:sp")
_PICTURE = name("p:pic")
_FRAME = name("p:graphicFrame")
_GROUP = name("p:grpSp")
_ALTERNATE = name("mc:AlternateContent")
_ID = name("r:id")
_TITLES = frozenset({"title", "ctrTitle"})
_RUNNING = frozenset({"dt", "ftr", "sldNum", "hdr"})
# Placeholders whose paragraphs are bulleted unless they say otherwise.
_BULLETED = frozenset({"body", "obj"})
_ON = frozenset({"1", "true", "on"})

_Item = tuple[int, str, tuple[Link, ...]]


def extract(raw: bytes, limits: ExtractLimits) -> Extracted:
    """The text of a presentation.

    Raises:
        ExtractionError: it is encrypted, damaged, too big, of another kind, or only pictures.
    """
    package = open_package(raw, limits, "p:presentation", "a PowerPoint presentation")
    deck = _Deck(package, limits)
    blocks, rest = bounded(deck.blocks(), limits)
    properties = package.properties()
    seen = deck.seen
    if not blocks and rest is None and (n := seen["images"] + seen["charts"]):
        raise no_text(f"it holds nothing but images, {n:,} of them")
    hidden = ", ".join(deck.hidden[:10]) + (", ..." if len(deck.hidden) > 10 else "")
    parts = [
        *skipped("images", seen["images"]),
        *skipped("charts", seen["charts"], "their titles and labels are taken"),
        *skipped("embedded files", seen["embedded files"]),
        *skipped("footers, dates and slide numbers", seen["running"]),
        *skipped("comments", package.count("ppt/comments/")),
        *skipped("missing slides", seen["missing slides"]),
        *skipped("hidden slides", len(deck.hidden), f"their text is taken: {hidden}"),
        *([rest] if rest else []),
    ]
    return Extracted(
        tuple(blocks),
        best_title(properties.title, deck.title),
        properties.date,
        properties.tags,
        tuple(parts),
    )


class _Deck:
    """All slides, in the order in which they are shown."""

    def __init__(self, package: Package, limits: ExtractLimits) -> None:
        self._package = package
        self._max_chars = limits.max_chars // 8
        self.seen: Counter[str] = Counter()
        self.hidden: list[str] = []
        self.title = ""

    def blocks(self) -> Iterator[Block]:
        relations = self._package.relations(self._package.main)
        root = read(self._package.archive, self._package.main)
        ids = [] if root is None else root.findall(f"{name('p:sldIdLst')}/{name('p:sldId')}")
        for count, element in enumerate(ids, 1):
            relation = relations.get(element.get(_ID, ""))
            part = relation.target if relation is not None else ""
            slide = read(self._package.archive, part)
            if slide is None:
                self.seen["missing slides"] += 1
                continue
            if slide.get("show", "1") not in _ON:
                self.hidden.append(str(count))
            yield from self._slide(slide, part, count)

    def _slide(self, slide: Element, part: str, count: int) -> Iterator[Block]:
        relations = self._package.relations(part)
        reader = _Shapes(self._package, relations, self.seen, self._max_chars)
        shapes = list(reader.flat(slide.find(f"{name('p:cSld')}/{name('p:spTree')}")))
        titles = [shape for shape in shapes if _placeholder(shape) in _TITLES]
        title, links = reader.title(titles[0]) if titles else ("", ())
        place = Place("slide", count, title)
        if title:
            self.title = self.title or title
            yield Block("heading", title, place, level=1, links=links)
        for shape in shapes:
            if not (titles and shape is titles[0]):
                yield from reader.blocks(shape, place)
        yield from self._notes(relations, place)

    def _notes(self, relations: Mapping[str, Relation], place: Place) -> Iterator[Block]:
        for relation in relations.values():
            root = (
                read(self._package.archive, relation.target)
                if relation.kind == "notesSlide"
                else None
            )
            if root is None:
                continue
            own = self._package.relations(relation.target)
            # Footers and numbers of notes pages are no slide's.
            reader = _Shapes(self._package, own, Counter(), self._max_chars)
            prefix = "Notes: "
            for shape in reader.flat(root.find(f"{name('p:cSld')}/{name('p:spTree')}")):
                if _placeholder(shape) == "body":
                    for block in reader.blocks(shape, place, plain=True):
                        links = moved(block.links, len(prefix))
                        yield Block(block.kind, prefix + block.text, place, links=links)
                        prefix = ""


class _Shapes:
    """The shapes of one slide."""

    def __init__(
        self,
        package: Package,
        relations: Mapping[str, Relation],
        seen: Counter[str],
        max_chars: int,
    ) -> None:
        self._package = package
        self._relations = relations
        self._seen = seen
        self._max_chars = max_chars

    def flat(self, tree: Element | None) -> Iterator[Element]:
        """All shapes, those of groups included."""
        for child in () if tree is None else tree:
            if child.tag == _GROUP:
                yield from self.flat(child)
            elif child.tag == _ALTERNATE:
                choice = child.find(name("mc:Choice"))
                yield from self.flat(child.find(name("mc:Fallback")) if choice is None else choice)
            else:
                yield child

    def title(self, shape: Element) -> tuple[str, tuple[Link, ...]]:
        """All of a title on one line."""
        line = Line()
        for paragraph in shape.iter(_P):
            line.add(" ")
            self._fill(line, paragraph)
        text, links = line.build()
        return text.replace("\n", " "), links

    def blocks(self, shape: Element, place: Place, *, plain: bool = False) -> Iterator[Block]:
        """A shape's text; `plain` has no bullets but those that are named."""
        tag = shape.tag
        if tag == _PICTURE:
            yield from self._picture(shape, place)
        elif tag == _FRAME:
            yield from self._frame(shape, place)
        elif tag == _SHAPE:
            kind = _placeholder(shape)
            if kind in _RUNNING:
                self._seen["running"] += any(text.text for text in shape.iter(name("a:t")))
            else:
                yield from self._text(shape, place, kind in _BULLETED and not plain)

    def _picture(self, shape: Element, place: Place) -> Iterator[Block]:
        self._seen["images"] += 1
        setup = shape.find(f"{name('p:nvPicPr')}/{name('p:cNvPr')}")
        text = alt_text("" if setup is None else setup.get("descr", ""))
        if text:
            yield Block("text", text, place)

    def _frame(self, shape: Element, place: Place) -> Iterator[Block]:
        for element in shape.iter():
            if element.tag == name("a:tbl"):
                yield from self._table(element, place)
                return
            if element.tag == name("c:chart"):
                yield from self._chart(element, place)
                return
            if element.tag == name("dgm:relIds"):
                yield from self._diagram(element, place)
                return
            if element.tag == name("p:oleObj"):
                self._seen["embedded files"] += 1
                return

    def _chart(self, element: Element, place: Place) -> Iterator[Block]:
        self._seen["charts"] += 1
        relation = self._relations.get(element.get(_ID, ""))
        if text := chart_text(self._package, relation):
            yield Block("text", text, place)

    def _diagram(self, element: Element, place: Place) -> Iterator[Block]:
        relation = self._relations.get(element.get(name("r:dm"), ""))
        root = read(self._package.archive, relation.target) if relation is not None else None
        items: list[_Item] = []
        for point in () if root is None else root.iter(name("dgm:t")):
            text, links = self.title(point)
            if text:
                items.append((0, f"- {text}", moved(links, 2)))
        if items:
            yield list_block(items, place)

    def _text(self, shape: Element, place: Place, bulleted: bool) -> Iterator[Block]:
        items: list[_Item] = []
        body = shape.find(name("p:txBody"))
        paragraphs = [] if body is None else body.findall(_P)
        built = [self._built(paragraph) for paragraph in paragraphs]
        # A placeholder with one paragraph is seldom a list of one.
        bulleted = bulleted and sum(bool(text) for text, _links in built) > 1
        count = 0
        for paragraph, (text, links) in zip(paragraphs, built, strict=True):
            if not text:
                continue
            setup = paragraph.find(name("a:pPr"))
            depth = number("" if setup is None else setup.get("lvl", ""))
            mark = _mark(setup, bulleted)
            count = count + 1 if mark == "#" else 0
            mark = f"{count}. " if mark == "#" else mark
            if mark:
                items.append((depth, mark + text.replace("\n", " "), moved(links, len(mark))))
                continue
            if items:
                yield list_block(items, place)
                items = []
            yield Block("text", text, place, links=links)
        if items:
            yield list_block(items, place)

    def _table(self, table: Element, place: Place) -> Iterator[Block]:
        rows = [
            [self._cell(cell) for cell in row.findall(name("a:tc"))]
            for row in table.findall(name("a:tr"))
        ]
        setup = table.find(name("a:tblPr"))
        named = setup is not None and setup.get("firstRow") in _ON
        named = named and len(rows) > 1 and not any(is_figure(text) for text in rows[0])
        lines = [join_cells(row) for row in rows]
        yield from table_blocks(
            lines, place, header_rows=int(named and bool(lines[0])), max_chars=self._max_chars
        )

    def _cell(self, cell: Element) -> str:
        if cell.get("hMerge") in _ON or cell.get("vMerge") in _ON:
            return ""
        return self.title(cell)[0]

    def _built(self, paragraph: Element) -> tuple[str, tuple[Link, ...]]:
        line = Line()
        self._fill(line, paragraph)
        return line.build()

    def _fill(self, line: Line, paragraph: Element) -> None:
        for child in paragraph:
            if child.tag in (name("a:r"), name("a:fld")):
                text = child.find(name("a:t"))
                if text is not None:
                    line.add((text.text or "").replace("_x000B_", "\n"), self._target(child))
            elif child.tag == name("a:br"):
                line.add("\n")
            elif child.tag == _ALTERNATE or child.tag.endswith("}m"):  # a formula
                formula = next((one for one in child.iter(name("m:oMath"))), None)
                for text in () if formula is None else formula.iter(name("m:t")):
                    line.add(text.text or "")

    def _target(self, run: Element) -> str:
        click = run.find(f"{name('a:rPr')}/{name('a:hlinkClick')}")
        if click is None or click.get("action", "").startswith("ppaction://"):
            return ""
        relation = self._relations.get(click.get(_ID, ""))
        return relation.target if relation is not None and relation.external else ""


def _placeholder(shape: Element) -> str:
    """What kind of placeholder a shape is: "obj" if it does not say, "" if it is none."""
    setup = shape.find(f"{name('p:nvSpPr')}/{name('p:nvPr')}/{name('p:ph')}")
    return "" if setup is None else setup.get("type", "obj")


def _mark(setup: Element | None, bulleted: bool) -> str:
    """How a paragraph starts: "- ", "#" for a number, "" for nothing."""
    for child in () if setup is None else setup:
        if child.tag == name("a:buNone"):
            return ""
        if child.tag == name("a:buAutoNum"):
            return "#"
        if child.tag in (name("a:buChar"), name("a:buBlip")):
            return "- "
    return "- " if bulleted else ""

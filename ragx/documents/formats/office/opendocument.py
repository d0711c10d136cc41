"""OpenDocument: texts, spreadsheets and presentations, told apart by what their body holds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from xml.etree.ElementTree import Element

from ragx.documents.formats.archive import Archive
from ragx.documents.formats.base import (
    Block,
    Extracted,
    ExtractLimits,
    Place,
    SkippedPart,
    bounded,
    damaged,
    encrypted,
    no_text,
)
from ragx.documents.formats.office.odf_inline import Inline
from ragx.documents.formats.office.odf_sheet import sheet_rows
from ragx.documents.formats.office.odf_styles import Styles
from ragx.documents.formats.office.odf_text import Texts
from ragx.documents.formats.office.ole import MAGIC, explain
from ragx.documents.formats.office.package import best_title, iso_day, skipped, tags
from ragx.documents.formats.office.sheet import Budget, sheet_blocks
from ragx.documents.formats.office.text import moved, one_line
from ragx.documents.formats.office.xml import Event, name, parse, stream

__all__ = ["extract"]

_CONTENT = "content.xml"
_MANIFEST = "META-INF/manifest.xml"
_TABLE = name("table:table")
_PAGE = name("draw:page")
_ASIDE = (
    name("office:automatic-styles"),
    name("office:scripts"),
    name("office:font-face-decls"),
    name("office:forms"),
    name("text:tracked-changes"),
    name("table:shapes"),
)
_UNITS = {
    "text": tuple(
        name(tag)
        for tag in (
            "text:h text:p text:list table:table text:table-of-content text:alphabetical-index"
            " text:illustration-index text:table-index text:object-index text:user-index"
            " text:bibliography draw:frame draw:g draw:a draw:custom-shape draw:rect draw:line"
        ).split()
    ),
    "spreadsheet": (name("table:table-row"),),
    "presentation": (_PAGE,),
    "drawing": (_PAGE,),
}
_RUNNING = frozenset({"header", "footer", "date-time", "page-number"})
_CLASS = name("presentation:class")


def extract(raw: bytes, limits: ExtractLimits) -> Extracted:
    """The text of an OpenDocument text, spreadsheet, presentation or drawing.

    Raises:
        ExtractionError: it is encrypted, damaged, too big, of another kind, or only pictures.
    """
    if raw.startswith(MAGIC):
        raise explain(raw)
    archive = Archive(raw, limits)
    if _CONTENT not in archive:
        raise damaged("its archive has no content.xml: it is no OpenDocument")
    if _MANIFEST in archive and b"encryption-data" in archive.read(_MANIFEST):
        raise encrypted()
    document = _Document(archive, limits)
    blocks, rest = bounded(document.blocks(), limits)
    seen = document.inline.seen
    if not blocks and rest is None and seen["images"]:
        raise no_text(f"it holds nothing but images, {seen['images']:,} of them")
    title, date, keywords = _meta(archive)
    parts = [
        *(part for what in _SAID for part in skipped(what, seen[what])),
        *document.hidden(),
        *([rest] if rest else []),
    ]
    return Extracted(tuple(blocks), best_title(title, document.title), date, keywords, tuple(parts))


_SAID = (
    "images",
    "charts and embedded objects",
    "headers and footers",
    "footers, dates and slide numbers",
    "comments",
    "tracked deletions",
    "tables of contents and indexes",
)


def _meta(archive: Archive) -> tuple[str, str, tuple[str, ...]]:
    if "meta.xml" not in archive:
        return "", "", ()
    title = date = ""
    keywords: list[str] = []
    for element in parse(archive.read("meta.xml"), "meta.xml").iter():
        if element.tag == name("dc:title"):
            title = one_line(element.text or "")
        elif element.tag == name("dc:date"):
            date = iso_day((element.text or "").strip())
        elif element.tag == name("meta:keyword"):
            keywords.extend(tags(element.text or ""))
    return title, date, tuple(dict.fromkeys(keywords))


class _Document:
    """Blocks of the body, whichever kind it has."""

    def __init__(self, archive: Archive, limits: ExtractLimits) -> None:
        self._raw = archive.read(_CONTENT)
        self._limits = limits
        self._styles = Styles()
        self.inline = Inline()
        self._texts = Texts(self._styles, self.inline, limits.max_chars // 8)
        self._hidden: list[str] = []
        self._kind = self._body_kind()
        if "styles.xml" in archive:
            self._read_styles(parse(archive.read("styles.xml"), "styles.xml"))

    @property
    def title(self) -> str:
        """The first title in the text."""
        return self._texts.title

    def hidden(self) -> tuple[SkippedPart, ...]:
        """Slides or sheets that are not shown, though their text is taken."""
        names = ", ".join(self._hidden[:10]) + (", ..." if len(self._hidden) > 10 else "")
        what = "hidden sheets" if self._kind == "spreadsheet" else "hidden slides"
        return skipped(what, len(self._hidden), f"their text is taken: {names}")

    def _body_kind(self) -> str:
        in_body = False
        for event, element in stream(self._raw, _CONTENT, _ASIDE):
            if in_body and event == "start":
                kind = element.tag.rpartition("}")[2]
                if kind in _UNITS:
                    return kind
                raise damaged(f"an OpenDocument of another kind: {kind}")
            in_body = in_body or (event == "start" and element.tag == name("office:body"))
        raise damaged("its content.xml has no body")

    def _read_styles(self, root: Element) -> None:
        tags = (name("office:styles"), name("office:automatic-styles"))
        self._styles.add(parent for tag in tags for parent in root.findall(tag))
        if self._kind == "text":
            for tag in (name("style:header"), name("style:footer")):
                filled = [one for one in root.iter(tag) if "".join(one.itertext()).strip()]
                self.inline.seen["headers and footers"] += len(filled)

    def blocks(self) -> Iterator[Block]:
        events = self._events()
        if self._kind == "text":
            for event, element in events:
                if event == "unit":
                    yield from self._texts.blocks(element)
            yield from self._texts.flush()
        elif self._kind == "spreadsheet":
            yield from self._sheets(events)
        else:
            count = 0
            for event, element in events:
                if event == "unit":
                    count += 1
                    yield from self._page(element, count)

    def _events(self) -> Iterator[Event]:
        """The body's events; what stands aside of the text is taken care of here."""
        for event, element in stream(self._raw, _CONTENT, (*_ASIDE, *_UNITS[self._kind])):
            if event == "unit" and element.tag in _ASIDE:
                if element.tag == name("office:automatic-styles"):
                    self._styles.add([element])
                elif element.tag == name("text:tracked-changes"):
                    n_deletions = sum(1 for _ in element.iter(name("text:deletion")))
                    self.inline.seen["tracked deletions"] += n_deletions
                elif element.tag == name("table:shapes"):
                    self.inline.seen["images"] += sum(1 for _ in element.iter(name("draw:image")))
            else:
                yield event, element

    def _sheets(self, events: Iterator[Event]) -> Iterator[Block]:
        budget = Budget(self._limits)
        for event, element in events:
            if event == "start" and element.tag == _TABLE:
                title = one_line(element.get(name("table:name"), ""))
                if self._styles.is_hidden_table(element.get(name("table:style-name"), "")):
                    self._hidden.append(title)
                rows = sheet_rows(events, self._texts.cell, self._limits.max_chars)
                yield from sheet_blocks(rows, title, budget)

    def _page(self, page: Element, count: int) -> Iterator[Block]:
        if self._styles.is_hidden_page(page.get(name("draw:style-name"), "")):
            self._hidden.append(str(count))
        kind = "slide" if self._kind == "presentation" else "page"
        shapes = [shape for shape in page if shape.tag != name("presentation:notes")]
        titled = next((one for one in shapes if one.get(_CLASS) == "title"), None)
        title = "" if titled is None else one_line(self._texts.cell(titled))
        place = self._texts.place = Place(kind, count, title)
        if title:
            self._texts.title = self._texts.title or title
            yield Block("heading", title, place, level=1)
        for shape in shapes:
            if shape.get(_CLASS) in _RUNNING:
                self.inline.seen["footers, dates and slide numbers"] += 1
            elif shape is not titled or not title:
                yield from self._texts.blocks(shape)
                yield from self._texts.flush()
        for notes in page.findall(name("presentation:notes")):
            yield from self._notes(notes)

    def _notes(self, notes: Element) -> Iterator[Block]:
        prefix = "Notes: "
        for frame in notes.findall(name("draw:frame")):
            if frame.get(_CLASS) != "notes":
                continue
            for block in self._texts.blocks(frame):
                moved_links = moved(block.links, len(prefix))
                yield replace(block, text=prefix + block.text, links=moved_links)
                prefix = ""
            yield from self._texts.flush()

"""Workbooks of Excel: every sheet's rows as they are displayed, read as a stream."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from xml.etree.ElementTree import Element

from ragx.documents.formats.base import (
    Block,
    Extracted,
    ExtractLimits,
    SkippedPart,
    bounded,
    no_text,
)
from ragx.documents.formats.office.numbers import Form, displayed, form_of
from ragx.documents.formats.office.package import Package, Relation, open_package, skipped
from ragx.documents.formats.office.sheet import Budget, Cell, cell, sheet_blocks
from ragx.documents.formats.office.text import one_line
from ragx.documents.formats.office.word import number
from ragx.documents.formats.office.xml import name, read, stream

__all__ = ["extract"]

_ROW = name("s:row")
_CELL = name("s:c")
_VALUE = name("s:v")
_FORMULA = name("s:f")
_TEXT = name("s:t")
_ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")
_MAX_COLUMNS = 16_384
_MAX_ROWS = 1_048_576
# A cell holds 32,767 characters at most.
_MAX_CELL_CHARS = 32_767


def extract(raw: bytes, limits: ExtractLimits) -> Extracted:
    """The text of a workbook.

    Raises:
        ExtractionError: it is encrypted, damaged, too big, of another kind, or only pictures.
    """
    package = open_package(raw, limits, "s:workbook", "an Excel workbook")
    book = _Book(package, limits)
    blocks, rest = bounded(book.blocks(), limits)
    properties = package.properties()
    parts = _skipped(package, book)
    if not blocks and rest is None and (images := package.count("xl/media/")):
        raise no_text(f"it holds nothing but images, {images:,} of them")
    return Extracted(
        tuple(blocks),
        properties.title,
        properties.date,
        properties.tags,
        (*parts, *([rest] if rest else [])),
    )


def _skipped(package: Package, book: _Book) -> list[SkippedPart]:
    hidden = ", ".join(book.hidden[:10]) + (", ..." if len(book.hidden) > 10 else "")
    return [
        *skipped("images", package.count("xl/media/")),
        *skipped("charts", package.count("xl/charts/chart")),
        *skipped("sheets with comments", package.count("xl/comments")),
        *skipped("embedded files", package.count("xl/embeddings/")),
        *skipped("headers and footers", book.seen["headers and footers"]),
        *skipped("missing sheets", book.seen["missing sheets"]),
        *skipped("hidden sheets", len(book.hidden), f"their text is taken: {hidden}"),
    ]


class _Book:
    """All sheets, in the order of their tabs."""

    def __init__(self, package: Package, limits: ExtractLimits) -> None:
        self._package = package
        self._budget = Budget(limits)
        self._relations = package.relations(package.main)
        self.seen: Counter[str] = Counter()
        self.hidden: list[str] = []
        root = read(package.archive, package.main)
        self._sheets = [] if root is None else root.findall(f"{name('s:sheets')}/{name('s:sheet')}")
        setup = None if root is None else root.find(name("s:workbookPr"))
        self._since_1904 = setup is not None and setup.get("date1904") in ("1", "true")
        self._forms = _forms(read(package.archive, self._part("styles")))
        self._shared: list[str] = []

    def _part(self, kind: str) -> str:
        relations = (one for one in self._relations.values() if one.kind == kind)
        return next((one.target for one in relations if not one.external), "")

    def blocks(self) -> Iterator[Block]:
        self._shared = list(self._shared_strings())
        for sheet in self._sheets:
            relation = self._relations.get(sheet.get(name("r:id"), ""))
            if relation is None or relation.target not in self._package.archive:
                self.seen["missing sheets"] += 1
                continue
            title = one_line(sheet.get("name", ""))
            if sheet.get("state", "visible") != "visible":
                self.hidden.append(title)
            if relation.kind == "worksheet":
                rows = self._rows(relation)
                yield from sheet_blocks(rows, title, self._budget)

    def _shared_strings(self) -> Iterator[str]:
        part = self._part("sharedStrings")
        if part not in self._package.archive:
            return
        for event, element in stream(self._package.archive.read(part), part, (name("s:si"),)):
            if event == "unit":
                yield _text(element)

    def _rows(self, sheet: Relation) -> Iterator[tuple[int, dict[int, Cell]]]:
        raw = self._package.archive.read(sheet.target)
        count = 0
        for event, element in stream(raw, sheet.target, (_ROW,)):
            if event == "unit":
                # Numbers may be left out, and must rise: what is behind them otherwise is broken.
                given = number(element.get("r", ""))
                count = given if count < given <= _MAX_ROWS else count + 1
                cells = self._cells(element)
                if cells:
                    yield count, cells
            elif event == "start" and element.tag == name("s:headerFooter"):
                self.seen["headers and footers"] += 1

    def _cells(self, row: Element) -> dict[int, Cell]:
        found: dict[int, Cell] = {}
        column = 0
        for element in row:
            if element.tag != _CELL:
                continue
            column = _column(element.get("r", "")) or column + 1
            if len(element) and column <= _MAX_COLUMNS:
                value = self._value(element)
                if value is not None:
                    found[column] = value
        return found

    def _value(self, element: Element) -> Cell | None:
        kind = element.get("t", "n")
        if kind == "inlineStr":
            inline = element.find(name("s:is"))
            return None if inline is None else cell(_text(inline), is_text=True)
        value = element.findtext(_VALUE) or ""
        if not value:
            formula = (element.findtext(_FORMULA) or "")[:_MAX_CELL_CHARS]
            return cell(f"={formula}", is_text=True) if formula else None
        if kind == "s":
            index = number(value, -1)
            known = 0 <= index < len(self._shared)
            return cell(self._shared[index], is_text=True) if known else None
        if kind == "b":
            return Cell("TRUE" if value.strip() in ("1", "true") else "FALSE", False)
        if kind == "d":
            return cell(value.removesuffix("T00:00:00").replace("T", " "), is_text=False)
        if kind in ("str", "e"):
            return cell(_unescaped(value)[:_MAX_CELL_CHARS], is_text=kind == "str")
        style = number(element.get("s", ""))
        form = self._forms[style] if 0 <= style < len(self._forms) else Form("general")
        shown = displayed(value.strip()[:_MAX_CELL_CHARS], form, since_1904=self._since_1904)
        return cell(shown, is_text=False)


def _column(reference: str) -> int:
    """The column of "AB12", counted from 1; 0 if there is none."""
    column = 0
    for letter in reference[:4]:
        if not "A" <= letter <= "Z":
            break
        column = column * 26 + ord(letter) - 64
    return column


def _text(element: Element) -> str:
    """Text of a string, runs joined, without how it is pronounced."""
    pieces = []
    for child in element:
        if child.tag == _TEXT:
            pieces.append(child.text or "")
        elif child.tag == name("s:r"):
            pieces.append(child.findtext(_TEXT) or "")
    return _unescaped("".join(pieces))[:_MAX_CELL_CHARS]


def _unescaped(text: str) -> str:
    if "_x" not in text:
        return text
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text)


def _forms(root: Element | None) -> list[Form]:
    """Number formats by cell style."""
    if root is None:
        return []
    codes = {
        element.get("numFmtId", ""): element.get("formatCode", "")
        for element in root.iterfind(f"{name('s:numFmts')}/{name('s:numFmt')}")
    }
    return [
        form_of(number(style.get("numFmtId", "")), codes.get(style.get("numFmtId", "")))
        for style in root.iterfind(f"{name('s:cellXfs')}/{name('s:xf')}")
    ]

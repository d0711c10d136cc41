"""XML parts of office documents, read with the standard library: streamed, no entities, no depth.

Expat, as Python brings it, resolves nothing outside of the document. What is left of XML's dangers
is refused here: entities that a document declares itself, and nesting that would overflow the
stack of whoever walks the tree.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cache
from typing import Literal
from xml.etree.ElementTree import Element, ParseError, XMLPullParser
from xml.parsers import expat

from ragx.documents.formats.archive import Archive
from ragx.documents.formats.base import damaged

__all__ = ["NS", "Event", "name", "parse", "read", "stream"]

# Walkers take up to three frames a level, and Python allows a thousand.
_MAX_DEPTH = 200
_STEP = 1 << 18

# The short names that extractors use for the namespaces of both families.
NS = {
    "a": "http://schemas.openxmlformats.org/drawingml/2006/main",
    "c": "http://schemas.openxmlformats.org/drawingml/2006/chart",
    "cp": "http://schemas.openxmlformats.org/package/2006/metadata/core-properties",
    "ct": "http://schemas.openxmlformats.org/package/2006/content-types",
    "dc": "http://purl.org/dc/elements/1.1/",
    "dcterms": "http://purl.org/dc/terms/",
    "dgm": "http://schemas.openxmlformats.org/drawingml/2006/diagram",
    "draw": "urn:oasis:names:tc:opendocument:xmlns:drawing:1.0",
    "m": "http://schemas.openxmlformats.org/officeDocument/2006/math",
    "mc": "http://schemas.openxmlformats.org/markup-compatibility/2006",
    "meta": "urn:oasis:names:tc:opendocument:xmlns:meta:1.0",
    "office": "urn:oasis:names:tc:opendocument:xmlns:office:1.0",
    "p": "http://schemas.openxmlformats.org/presentationml/2006/main",
    "pic": "http://schemas.openxmlformats.org/drawingml/2006/picture",
    "pr": "http://schemas.openxmlformats.org/package/2006/relationships",
    "presentation": "urn:oasis:names:tc:opendocument:xmlns:presentation:1.0",
    "r": "http://schemas.openxmlformats.org/officeDocument/2006/relationships",
    "s": "http://schemas.openxmlformats.org/spreadsheetml/2006/main",
    "style": "urn:oasis:names:tc:opendocument:xmlns:style:1.0",
    "svg": "urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0",
    "table": "urn:oasis:names:tc:opendocument:xmlns:table:1.0",
    "text": "urn:oasis:names:tc:opendocument:xmlns:text:1.0",
    "v": "urn:schemas-microsoft-com:vml",
    "w": "http://schemas.openxmlformats.org/wordprocessingml/2006/main",
    "wp": "http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing",
    "wps": "http://schemas.microsoft.com/office/word/2010/wordprocessingShape",
    "xlink": "http://www.w3.org/1999/xlink",
}

# ISO's strict form of Office Open XML differs from the common one in its namespaces above all.
_STRICT = {
    b"http://purl.oclc.org/ooxml/drawingml/chart": NS["c"].encode(),
    b"http://purl.oclc.org/ooxml/drawingml/diagram": NS["dgm"].encode(),
    b"http://purl.oclc.org/ooxml/drawingml/main": NS["a"].encode(),
    b"http://purl.oclc.org/ooxml/drawingml/picture": NS["pic"].encode(),
    b"http://purl.oclc.org/ooxml/drawingml/wordprocessingDrawing": NS["wp"].encode(),
    b"http://purl.oclc.org/ooxml/officeDocument/math": NS["m"].encode(),
    b"http://purl.oclc.org/ooxml/officeDocument/relationships": NS["r"].encode(),
    b"http://purl.oclc.org/ooxml/presentationml/main": NS["p"].encode(),
    b"http://purl.oclc.org/ooxml/spreadsheetml/main": NS["s"].encode(),
    b"http://purl.oclc.org/ooxml/wordprocessingml/main": NS["w"].encode(),
}

Event = tuple[Literal["start", "end", "unit"], Element]


@cache
def name(short: str) -> str:
    """The full name of an element or attribute: `name("w:p")`."""
    prefix, _, local = short.partition(":")
    return f"{{{NS[prefix]}}}{local}"


def read(archive: Archive, part: str) -> Element | None:
    """The root of a part, None if there is no such part.

    Raises:
        ExtractionError: it is not well-formed, nested too deep, declares entities or is too big.
    """
    return parse(archive.read(part), part) if part in archive else None


def parse(raw: bytes, part: str) -> Element:
    """The whole tree of one part; for parts that are small by nature.

    Raises:
        ExtractionError: as `read`.
    """
    root: Element | None = None
    for _kind, element in stream(raw, part, (), keep=True):
        if root is None:
            root = element
    if root is None:
        raise damaged(f"its part {part} is empty")
    return root


def stream(raw: bytes, part: str, units: Collection[str], *, keep: bool = False) -> Iterator[Event]:
    """Walk through a part without holding it.

    Args:
        units: full names of elements that are given whole, outermost first met, as ("unit",
            element), and are forgotten afterwards. All others are given as they start, where only
            their attributes are sure to be there, and as they end.
        keep: forget nothing.
    Raises:
        ExtractionError: as `read`.
    """
    raw = _refuse_entities(_transitional(raw), part)
    units = frozenset(units)
    open_elements: list[Element] = []
    unit_depth = 0  # how deep the open unit is; 0 if none is open
    for event, element in _events(raw, part):
        if event == "start":
            open_elements.append(element)
            if len(open_elements) > _MAX_DEPTH:
                raise damaged(f"its part {part} is nested over {_MAX_DEPTH} levels deep")
            if not unit_depth and element.tag in units:
                unit_depth = len(open_elements)
            elif not unit_depth:
                yield "start", element
            continue
        closed_unit = unit_depth == len(open_elements)
        open_elements.pop()
        if closed_unit:
            unit_depth = 0
            yield "unit", element
        elif not unit_depth:
            yield "end", element
        if not unit_depth and not keep and open_elements:
            open_elements[-1].remove(element)


def _events(raw: bytes, part: str) -> Iterator[tuple[str, Element]]:
    parser: XMLPullParser[Element] = XMLPullParser(("start", "end"))
    try:
        for start in range(0, len(raw), _STEP):
            parser.feed(raw[start : start + _STEP])
            yield from _read(parser)
        parser.close()
        yield from _read(parser)
    except (ParseError, LookupError, ValueError) as exc:
        raise damaged(f"its part {part} is not well-formed XML: {exc}") from exc


def _read(parser: XMLPullParser[Element]) -> Iterator[tuple[str, Element]]:
    for event in parser.read_events():
        # Only namespace events, which are not asked for, carry anything else.
        if len(event) == 2 and isinstance(event[1], Element):
            yield event[0], event[1]


def _transitional(raw: bytes) -> bytes:
    if b"http://purl.oclc.org/ooxml/" in raw[:8192]:
        for strict, common in _STRICT.items():
            raw = raw.replace(strict, common)
    return raw


class _RootReachedError(Exception):
    """The prologue is over: declarations cannot follow any more."""


class _EntityDeclaredError(Exception):
    """The prologue declares an entity."""


def _refuse_entities(raw: bytes, part: str) -> bytes:
    def declared(*_args: object) -> None:
        raise _EntityDeclaredError

    def root(*_args: object) -> None:
        raise _RootReachedError

    parser = expat.ParserCreate()
    parser.EntityDeclHandler = declared
    parser.StartElementHandler = root
    try:
        for start in range(0, len(raw), _STEP):
            parser.Parse(raw[start : start + _STEP], False)
    except _EntityDeclaredError as exc:
        raise damaged(f"its part {part} declares entities, as no office program does") from exc
    except (_RootReachedError, expat.ExpatError, LookupError, ValueError):
        pass  # what is wrong beyond is found, and named, by the real parser
    return raw

"""What an e-book says of itself: its files in reading order, contents, title, and protection."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import unquote
from xml.parsers import expat

from ragx.documents.formats.archive import Archive
from ragx.documents.formats.base import damaged
from ragx.documents.formats.markup.html import decode_markup
from ragx.documents.formats.markup.tree import Element, clean, elements, parse, plain_text, walk

__all__ = ["Chapter", "Package", "protected", "read_package"]

_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"
_MAX_XML = 16 << 20
_MAX_NODES = 500_000
_MAX_XML_DEPTH = 1000
_PAGES = ("application/xhtml+xml", "text/html", "application/x-dtbncx+xml", "text/x-oeb1-document")
# Algorithms that only hide embedded fonts; the text is readable.
_FONT_ALGORITHMS = ("http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC")
_MAX_TAGS = 50


@dataclass(frozen=True, slots=True)
class Chapter:
    """A top entry of the table of contents; `anchor` is where in its file it begins."""

    number: int
    title: str
    anchor: str


@dataclass(slots=True)
class Package:
    """A book's description.

    Args:
        spine: names of the archive's parts that are read, in order.
        chapters: those that begin in a part, in order of the table of contents.
        dates: of change first, then of publication.
    """

    spine: tuple[str, ...]
    title: str = ""
    dates: tuple[str, ...] = ()
    subjects: tuple[str, ...] = ()
    chapters: dict[str, list[Chapter]] = field(default_factory=dict)


@dataclass(slots=True)
class _Item:
    name: str
    media: str
    properties: frozenset[str]


def read_package(archive: Archive) -> Package:
    """Read the package document that the container names.

    Raises:
        ExtractionError: there is none, or it lists nothing to read.
    """
    name = _package_name(archive)
    root = _xml(archive, name)
    folder = posixpath.dirname(name)
    items = _items(root, folder)
    spine = next(elements(root, "spine"), None)
    order = [e.get("idref") for e in elements(spine, "itemref")] if spine else []
    parts = [items[key].name for key in dict.fromkeys(order) if key in items
             and _is_page(items[key])]  # fmt: skip
    # Pages of the manifest in its own order are better than no book.
    parts = parts or [item.name for item in items.values() if _is_page(item)]
    if not parts:
        raise damaged("its package lists no pages to read")
    package = Package(tuple(dict.fromkeys(parts)))
    _describe(package, root)
    toc = spine.get("toc") if spine else ""
    package.chapters = _chapters(archive, items, toc, package.spine)
    return package


def protected(archive: Archive) -> set[str]:
    """Names of parts that are encrypted, fonts that are merely obfuscated excepted."""
    if _ENCRYPTION not in archive:
        return set()
    names = set()
    for data in elements(_xml(archive, _ENCRYPTION), "EncryptedData"):
        method = next(elements(data, "EncryptionMethod"), None)
        if method is not None and method.get("Algorithm") in _FONT_ALGORITHMS:
            continue
        for reference in elements(data, "CipherReference"):
            names.add(_joined("", reference.get("URI")))
    return names


def _package_name(archive: Archive) -> str:
    if _CONTAINER in archive:
        for rootfile in elements(_xml(archive, _CONTAINER), "rootfile"):
            name = _joined("", rootfile.get("full-path"))
            if name in archive:
                return name
    found = sorted(name for name in archive.names if name.lower().endswith(".opf"))
    if not found:
        raise damaged("it has no package document (.opf)")
    return found[0]


def _items(root: Element, folder: str) -> dict[str, _Item]:
    manifest = next(elements(root, "manifest"), root)
    return {
        e.get("id"): _Item(
            # Some books list each chapter of a file as an item: they are read with the file.
            _joined(folder, e.get("href")).partition("#")[0],
            e.get("media-type").lower(),
            frozenset(e.get("properties").split()),
        )
        for e in elements(manifest, "item")
        if e.get("href")
    }


def _is_page(item: _Item) -> bool:
    if item.media in _PAGES[:2] or item.media == _PAGES[3]:
        return "nav" not in item.properties
    return item.name.lower().endswith((".xhtml", ".html", ".htm")) and not item.media


def _describe(package: Package, root: Element) -> None:
    metadata = next(elements(root, "metadata"), root)
    texts = {name: [plain_text(e) for e in elements(metadata, name)] for name in
             ("title", "date", "subject")}  # fmt: skip
    modified = [plain_text(e) for e in elements(metadata, "meta")
                if e.get("property") == "dcterms:modified"]  # fmt: skip
    package.title = next(filter(None, texts["title"]), "")[:500].strip()
    package.dates = (*modified, *texts["date"])
    words = (word.strip() for text in texts["subject"] for word in re.split(r"[;,]", text))
    package.subjects = tuple(dict.fromkeys(w for w in words if 0 < len(w) <= 100))[:_MAX_TAGS]


def _chapters(
    archive: Archive, items: dict[str, _Item], toc: str, spine: tuple[str, ...]
) -> dict[str, list[Chapter]]:
    """Top entries of the contents by the part that they begin in, numbered as they are read."""
    nav = next((i.name for i in items.values() if "nav" in i.properties), "")
    ncx = items[toc].name if toc in items else next(
        (i.name for i in items.values() if i.media == _PAGES[2]), "")  # fmt: skip
    entries: list[tuple[int, str, str]] = []
    if nav in archive:
        entries = list(_nav_entries(archive, nav))
    if not entries and ncx in archive:
        entries = list(_ncx_entries(archive, ncx))
    places = {name: number for number, name in enumerate(spine)}
    found: dict[str, list[Chapter]] = {}
    known = [(title, *target.partition("#")[::2]) for title, target in _top(entries)]
    known = [entry for entry in known if entry[1] in places]
    # Sorting is stable: entries of one file keep the order of the table.
    known.sort(key=lambda entry: places[entry[1]])
    for number, (title, part, anchor) in enumerate(known, 1):
        found.setdefault(part, []).append(Chapter(number, title[:200].strip(), anchor))
    return found


def _nav_entries(archive: Archive, name: str) -> Iterator[tuple[int, str, str]]:
    """EPUB 3: depth, title and target of what the navigation document lists as contents."""
    root, _ = parse(decode_markup(archive.read(name)), _MAX_XML, is_xml=True)
    navs = list(elements(root, "nav"))
    tocs = [nav for nav in navs if "toc" in nav.get("epub:type").split()] or navs
    folder = posixpath.dirname(name)
    depth = 0
    for kind, value in walk(tocs[0]) if tocs else ():
        if isinstance(value, str):
            continue
        if value.tag in ("ol", "ul"):
            depth += 1 if kind == "in" else -1
        elif value.tag == "li" and kind == "in":
            # A part's heading without a link begins where its first chapter does.
            link = next(elements(value, "a"), None)
            label = next(
                (c for c in value.children if isinstance(c, Element) and c.tag != "ol"), link
            )
            if link is not None and label is not None:
                yield depth, plain_text(label), _joined(folder, link.get("href"))


def _ncx_entries(archive: Archive, name: str) -> Iterator[tuple[int, str, str]]:
    """EPUB 2: the same of the navigation map."""
    folder = posixpath.dirname(name)
    nav_map = next(elements(_xml(archive, name), "navMap"), None)
    depth = 0
    for kind, value in walk(nav_map) if nav_map else ():
        if isinstance(value, str) or value.tag != "navPoint":
            continue
        depth += 1 if kind == "in" else -1
        if kind == "in":
            label = next(elements(value, "navLabel"), None)
            content = next(elements(value, "content"), None)
            if label is not None and content is not None:
                yield depth, plain_text(label), _joined(folder, content.get("src"))


def _top(entries: list[tuple[int, str, str]]) -> list[tuple[str, str]]:
    """The outermost entries; below one that is the whole book (DocBook), those within it."""
    for depth in range(1, 5):
        top = [(title, target) for level, title, target in entries if level == depth]
        if len(top) > 1:
            return top
    return [(title, target) for level, title, target in entries if level == 1]


def _joined(folder: str, href: str) -> str:
    """A part's name from a reference relative to a folder; an anchor stays."""
    path, hash_mark, anchor = href.strip().partition("#")
    path = posixpath.normpath(posixpath.join(folder, unquote(path))) if path else ""
    return path.lstrip("/") + hash_mark + unquote(anchor)


def _xml(archive: Archive, name: str) -> Element:
    """A part as a tree of local names; entities of a document type are refused.

    Raises:
        ExtractionError: it is no XML, or too large or deep to be a book's.
    """
    raw = archive.read(name)
    if len(raw) > _MAX_XML:
        raise damaged(f"its part {name} is far too large")
    tree = Element("", {}, None)
    builder = _Builder(tree)
    try:
        builder.feed(raw)
    except (expat.ExpatError, ValueError, LookupError) as exc:
        # What was read until then may do: a stray "&" in a title is the commonest fault.
        if not tree.children:
            raise damaged(f"its part {name} is no XML: {exc}") from exc
    return tree


class _Builder:
    """Builds a tree as expat reads; stops at the first declared entity."""

    def __init__(self, tree: Element) -> None:
        self._at = tree
        self._depth = self._count = 0
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        parser.EntityDeclHandler = self._entity
        self._parser = parser

    def feed(self, raw: bytes) -> None:
        self._parser.Parse(raw.lstrip(), True)

    def _start(self, name: str, attrs: dict[str, str]) -> None:
        self._depth += 1
        self._count += 1
        if self._depth > _MAX_XML_DEPTH or self._count > _MAX_NODES:
            raise ValueError("too many or too deeply nested elements")
        local = {key.rpartition(" ")[2]: value for key, value in attrs.items()}
        element = Element(name.rpartition(" ")[2], local, self._at)
        self._at.children.append(element)
        self._at = element

    def _end(self, _name: str) -> None:
        self._depth -= 1
        if self._at.parent is not None:
            self._at = self._at.parent

    def _text(self, text: str) -> None:
        self._at.children.append(clean(text))

    def _entity(self, *_declaration: object) -> None:
        raise ValueError("it declares entities")

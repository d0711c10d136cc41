"""Web pages: the main text, its links, and what the page says of itself.

How the main text is told from navigation is in `markup_main`; how it becomes blocks is in
`markup_blocks`.
"""

from __future__ import annotations

import codecs
import re

from ragx.documents.dates import written_date
from ragx.documents.decode import SNIFF_BYTES, decode, looks_binary
from ragx.documents.formats.base import (
    Block,
    Extracted,
    ExtractLimits,
    Place,
    SkippedPart,
    bounded,
    damaged,
    no_text,
    too_big,
)
from ragx.documents.formats.charsets import meant
from ragx.documents.formats.markup.blocks import LeftOut, Walker
from ragx.documents.formats.markup.main import main_part
from ragx.documents.formats.markup.tree import Element, elements, parse, plain_text
from ragx.errors import ExtractionError

__all__ = ["decode_markup", "extract", "is_document", "parts_left_out", "title_without_site"]

_HEAD_BYTES = 8192
# What is looked at to tell a page from a template or from a text about pages.
_LOOKED_AT_BYTES = 8 * _HEAD_BYTES
_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"),
         (codecs.BOM_UTF16_BE, "utf-16-be"))  # fmt: skip
_XML_ENCODING = re.compile(rb"""^\s*<\?xml[^>]{0,200}?encoding\s*=\s*["']([A-Za-z0-9._:-]{1,40})""")
_META_CHARSET = re.compile(
    rb"""<meta\b[^>]{0,300}?charset\s*=\s*["']?\s*([A-Za-z0-9._:-]{1,40})""", re.IGNORECASE
)
_TITLE_SEPARATORS = re.compile(r"\s+[—–|·•»«:-]+\s+|\s*[|—»]\s*|:\s+")
_LONGEST_TITLE = 500
_MAX_TAGS = 50
_DATE_NAMES = (
    "article:modified_time", "dcterms.modified", "dcterms:modified", "dc.date.modified",
    "last-modified", "og:updated_time", "datemodified", "revised", "date", "dcterms.date",
    "dc.date", "article:published_time", "dcterms.created",
)  # fmt: skip
_MODIFIED = re.compile(r"\b(?:updated|modified|dateModified|last-update)\b", re.IGNORECASE)

# The start of a page: what may stand before the first element.
_BEFORE = re.compile(r"(?:\s+|<!--.*?(?:-->|\Z)|<\?xml.*?\?>)*", re.DOTALL)
_IS_HTML = re.compile(r"<!doctype\s+html\b|<html[\s>]|<head[\s>]|<body[\s>]", re.IGNORECASE)
_PAGE_PARTS = re.compile(r"<(?:head|body)[\s>]", re.IGNORECASE)
_PAGE_START = re.compile(
    r"(?:<!doctype\s[^<>]*>\s*(?:<html\b[^<>]*>\s*)?|<html\b[^<>]*>\s*)<", re.IGNORECASE
)
_PAGE_END = re.compile(rb"</html\s*>", re.IGNORECASE)
# At the start of a line, where pages hardly ever have them: headings and fences of code.
_MARKDOWN = re.compile(r"^(?:#{1,6}[ \t]+\S|```|~~~)", re.MULTILINE)
_IS_XML = re.compile(r"^\s*<\?xml\b|<html\b[^>]*\sxmlns\s*=")
_TEMPLATE = re.compile(
    r"\{%[-+\s]|\{\{[#/>!&^]|<%|<\?php|<\?=|%sveltekit\.|\[%-?\s|@(?:extends|section|yield|model)\b"
    r"|<th:|\sth:\w+=|\s(?:ng-app|ng-controller|v-(?:if|for|bind|on)|x-data|\*ng[A-Z]\w+)\b[:=\s]"
)
_HEAD_OR_TAG = re.compile(
    r"<head\b.*?(?:</head|<body|\Z)|<[A-Za-z][^<>]*>", re.DOTALL | re.IGNORECASE
)
_NOT_MARKUP = re.compile(
    r"<(script|style|pre|code|textarea)\b.*?(?:</\1|\Z)|<!--.*?(?:-->|\Z)",
    re.DOTALL | re.IGNORECASE,
)


def extract(raw: bytes, limits: ExtractLimits) -> Extracted:
    """Read an HTML page.

    Raises:
        ExtractionError: it holds scripts alone, is no text, or is too big to parse.
    """
    if len(raw) > limits.max_bytes:
        raise too_big(f"it has {len(raw):,} bytes, over {limits.max_bytes:,}")
    # Navigation and other text around the main part counts, too: hence the factor.
    text = decode_markup(raw)
    root, whole = parse(text, 4 * limits.max_chars, is_xml=bool(_IS_XML.search(text[:2000])))
    main = main_part(root)
    left = LeftOut()
    blocks, rest = bounded(Walker(main, Place("heading"), left=left).blocks(), limits)
    if not blocks and main.tag != "body":
        # What the page marks as its main text may be filled by a script; the rest is not.
        main, left = _body(root), LeftOut()
        blocks, rest = bounded(Walker(main, Place("heading"), left=left).blocks(), limits)
    if not blocks:
        _check_empty(root)
        left = LeftOut()
        walker = Walker(main, Place("heading"), left=left, keep_navigation=True)
        blocks, rest = bounded(walker.blocks(), limits)
        if not blocks and rest is None and main.chars:
            raise no_text("all of its text is hidden")
    if not whole and rest is None:
        rest = SkippedPart("rest", 0, "the end of a page of very many elements")
    left.links += _links_around(root, main)
    metas = _metas(root)
    return Extracted(
        tuple(blocks),
        title=_title(root, blocks),
        date=_date(root, metas),
        tags=_tags(metas),
        skipped_parts=parts_left_out(left, rest),
    )


def is_document(raw: bytes, *, named_as_text: bool = False) -> bool:
    """Whether bytes are a page for readers: HTML, and no template that a program fills in.

    Looks at no more than 64 KiB and calls no codec that the bytes name unless it is a charset of
    documents: this runs outside the guarded process.

    Args:
        named_as_text: the file's name says that it is a text, which may begin like a page or hold
            one; so more than the beginning must show that it is one.
    """
    head = _head_text(raw[:_LOOKED_AT_BYTES])
    start = _BEFORE.match(head)
    begin = start.end() if start else 0
    if not _IS_HTML.match(head, begin):
        return False
    # Code that a page shows may hold template syntax, and so may its scripts.
    shown = _NOT_MARKUP.sub("", head[begin:])
    if named_as_text and not _is_all_page(shown, raw):
        return False
    if _TEMPLATE.search(shown):
        return False
    return not any("{{" in match[0] for match in _HEAD_OR_TAG.finditer(shown))


def _is_all_page(shown: str, raw: bytes) -> bool:
    """Whether what begins like a page goes on and ends like one, without Markdown around it."""
    tail = raw[-_HEAD_BYTES:].replace(b"\0", b"")  # of UTF-16 the ASCII is left
    ends = [match.end() for match in _PAGE_END.finditer(tail)]
    if not _PAGE_START.match(shown) or not (ends or _PAGE_PARTS.search(shown)):
        return False
    if ends and not (tail[ends[-1] :].lstrip() or b"<").startswith(b"<"):
        return False
    return not _MARKDOWN.search(shown)


def _head_text(head: bytes) -> str:
    """The beginning of a page as far as its markup goes, which is ASCII; "" if it is no text."""
    if looks_binary(head[:SNIFF_BYTES]):
        return ""
    for bom, encoding in _BOMS:
        if head.startswith(bom):
            return head[len(bom) :].decode(encoding, "ignore")
    if b"\0" in head:  # wide characters without a mark
        try:
            return decode(head[: len(head) // 4 * 4]).text
        except ExtractionError:
            return ""
    try:
        return codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        # The second byte of a character may look like markup in what East Asia writes.
        return head.decode(_declared_charset(head) or "latin-1", "replace")


def decode_markup(raw: bytes) -> str:
    """The text of a page: by its mark, by what it declares, as UTF-8, or as text files are read.

    Raises:
        ExtractionError: the bytes are not text.
    """
    for bom, encoding in _BOMS:
        if raw.startswith(bom):
            return raw[len(bom) :].decode(encoding, "replace")
    try:
        # A declaration that UTF-8 bytes contradict is a leftover more often than not.
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        pass
    charset = _declared_charset(raw)
    if charset:
        text = raw.decode(charset, "replace")
        # A few broken characters are no reason to guess another encoding.
        if text.count("\ufffd") * 100 <= len(text):
            return text
    try:
        return decode(raw).text
    except ExtractionError as exc:
        raise damaged(f"it cannot be read as text: {exc}") from exc


def parts_left_out(left: LeftOut, rest: SkippedPart | None) -> tuple[SkippedPart, ...]:
    """What a walk left out, named."""
    parts = [
        SkippedPart(what, count)
        for what, count in (
            ("images", left.images),
            ("hidden parts", left.hidden),
        )
        if count
    ]
    if left.links:
        parts.insert(0, SkippedPart("navigation", left.links, "links left out"))
    return tuple(parts if rest is None else [*parts, rest])


def title_without_site(title: str, heading: str) -> str:
    """A page's title, without the name of its site if its heading says the same as the rest."""
    if not heading:
        return title
    if not title:
        return heading
    parts = [part.strip() for part in _TITLE_SEPARATORS.split(title)]
    folded = heading.casefold()
    if title.casefold().startswith(folded) and _TITLE_SEPARATORS.match(title, len(heading)):
        return heading
    return heading if folded in (part.casefold() for part in parts) else title


def _declared_charset(raw: bytes) -> str:
    """The codec of what a page declares; "" if that is nothing or unknown."""
    head = raw[:_HEAD_BYTES]
    declared = _XML_ENCODING.search(head) or _META_CHARSET.search(head)
    codec = meant(declared[1].decode("ascii")) if declared else ""
    # As browsers have it: a declaration of wide characters could not be read in them, and nobody
    # who has other bytes means ASCII.
    return "utf-8" if codec.startswith("utf-") else {"ascii": "cp1252"}.get(codec, codec)


def _body(root: Element) -> Element:
    return next(elements(root, "body"), root)


def _check_empty(root: Element) -> None:
    """A page without text: an empty one is fine, one that scripts fill is not."""
    if root.has & {"script", "noscript", "iframe", "frame", "object"}:
        raise no_text("it holds scripts and no text of its own")
    if root.has & {"img", "svg", "canvas", "video"}:
        raise no_text("it holds images and no text of its own")


def _links_around(root: Element, main: Element) -> int:
    """Links outside of the main part."""
    body = _body(root)
    return body.links - main.links if main is not body else 0


def _title(root: Element, blocks: list[Block]) -> str:
    head = next(elements(root, "head"), None)
    named = next(elements(head, "title"), None) if head else None
    title = plain_text(named) if named else ""
    headings = (block for block in blocks[:200] if block.kind == "heading")
    first = next(headings, None)
    heading = first.text if first is not None and first.level <= 2 else ""
    return title_without_site(title, heading)[:_LONGEST_TITLE].strip()


def _metas(root: Element) -> dict[str, str]:
    found: dict[str, str] = {}
    # Microdata may stand in the body; where none does, it is not searched.
    body_too = "meta" in _body(root).has
    head = next(elements(root, "head"), root)
    for element in elements(root if body_too else head, "meta"):
        name = (
            element.get("name") or element.get("property") or element.get("http-equiv")
            or element.get("itemprop")
        ).strip().lower()  # fmt: skip
        if name and (content := element.get("content").strip()):
            found.setdefault(name, content)
    return found


def _date(root: Element, metas: dict[str, str]) -> str:
    for name in _DATE_NAMES:
        day = written_date(metas.get(name, ""))
        if day is not None:
            return day.isoformat()
    for element in elements(root, "time") if "time" in root.has else ():
        marks = f"{element.get('class')} {element.get('itemprop')}"
        day = written_date(element.get("datetime") or plain_text(element))
        if day is not None and _MODIFIED.search(marks):
            return day.isoformat()
    return ""


def _tags(metas: dict[str, str]) -> tuple[str, ...]:
    words = (" ".join(word.split()) for word in metas.get("keywords", "").split(","))
    return tuple(dict.fromkeys(word for word in words if 0 < len(word) <= 100))[:_MAX_TAGS]

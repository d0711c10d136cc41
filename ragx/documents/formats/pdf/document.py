"""PDF: text in reading order page by page, through PDFium."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

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
from ragx.documents.formats.pdf.blocks import Page, blocks_of
from ragx.documents.formats.pdf.headings import OutlineEntry, body_size, find_headings
from ragx.documents.formats.pdf.pages import PageWords, Reader
from ragx.documents.formats.pdf.rows import Row, rows_of
from ragx.documents.formats.pdf.running import running_rows
from ragx.documents.formats.pdf.text import clean, is_junk_title, iso_date

__all__ = ["extract"]

_MAX_OUTLINE = 20_000
_MAX_OUTLINE_DEPTH = 12
# With so many pages lost, and fewer seen that are not, those that follow are not tried.
_MAX_LOST = 500
# Running headers are not text, so that a little more is read than may be taken.
_READ_AHEAD = 1.25
_MAX_KEYWORDS = 50
_MOSTLY = 0.5
_CONTENTS = re.compile(
    r"(?i)(table of )?contents|inhalt(sverzeichnis)?|table des matières|sommaire|índice|sumário"
)
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")


def extract(raw: bytes, limits: ExtractLimits) -> Extracted:
    """Read a PDF.

    Raises:
        ExtractionError: it is encrypted, damaged, or holds images of text only.
    """
    import pypdfium2
    from pypdfium2.raw import FPDF_ERR_PASSWORD, FPDF_ERR_SECURITY

    if b"%PDF-" not in raw[:1_100]:
        raise damaged("it does not begin as a PDF does")
    try:
        document = pypdfium2.PdfDocument(raw)
    except pypdfium2.PdfiumError as exc:
        if exc.err_code in (FPDF_ERR_PASSWORD, FPDF_ERR_SECURITY):
            raise encrypted() from exc
        raise damaged("it is cut off, or not a PDF") from exc
    try:
        return _read(document, limits)
    finally:
        document.close()


class _Pages:
    """What was read of a document's pages, and what could not be."""

    def __init__(self, reader: Reader, max_chars: int) -> None:
        self.read: list[tuple[Place, list[Row]]] = []
        self.scanned: list[int] = []
        self.drawn: list[int] = []
        self.unreadable: list[int] = []
        self.lost: list[int] = []
        self.n_images = 0
        self.n_pages = len(reader)
        self.n_seen = 0
        self.max_chars = max_chars
        self.n_chars = 0
        for number in range(1, self.n_pages + 1):
            if self.n_chars > max_chars or len(self.lost) >= _MAX_LOST > number - len(self.lost):
                break
            page = reader.page(number)
            self.n_seen = number
            if page is None:
                self.lost.append(number)
                self.read.append((Place("page", number), []))
                continue
            self.n_chars += page.n_chars
            self._take(page)

    def _take(self, page: PageWords) -> None:
        place = Place("page", page.number, page.label)
        rows: list[Row] = []
        if not page.words and page.n_images and not page.n_unmapped:
            self.scanned.append(page.number)
        elif not page.words and page.is_drawn and not page.n_unmapped:
            self.drawn.append(page.number)
        elif page.n_unmapped > _MOSTLY * page.n_chars:
            self.unreadable.append(page.number)
        else:
            rows = rows_of(page.words)
            self.n_images += page.n_images
        self.read.append((place, rows))


def _read(document: Any, limits: ExtractLimits) -> Extracted:
    pages = _Pages(Reader(document.raw), int(limits.max_chars * _READ_AHEAD))
    if not any(rows for _, rows in pages.read):
        _raise_empty(pages)
    outline = _outline(document)
    running = running_rows([rows for _, rows in pages.read])
    n_running = sum(map(len, running))
    kept = [
        (place, [row for i, row in enumerate(rows) if i not in gone])
        for (place, rows), gone in zip(pages.read, running, strict=True)
    ]
    blocks, rest = bounded(_blocks(kept, outline), limits)
    title = _metadata(document, "Title")
    if is_junk_title(title):
        heads = (block.text for block in blocks if block.kind == "heading")
        title = next((text for text in heads if not _CONTENTS.fullmatch(text)), "")
    return Extracted(
        tuple(blocks),
        title=title,
        date=iso_date(_metadata(document, "ModDate"))
        or iso_date(_metadata(document, "CreationDate")),
        tags=_keywords(_metadata(document, "Keywords")),
        skipped_parts=tuple(_skipped(pages, n_running, rest)),
    )


def _blocks(
    pages: Sequence[tuple[Place, list[Row]]], outline: Sequence[OutlineEntry]
) -> Iterator[Block]:
    rows_by_page = [rows for _, rows in pages]
    headings = find_headings(rows_by_page, outline, body_size(rows_by_page))
    n_chars = n_mono = 0
    words: set[str] = set()
    for rows in rows_by_page:
        for row in rows:
            text = row.text
            n_chars += len(text)
            n_mono += len(text) if row.mono else 0
            for cell in row.cells:
                # The last word of a line may be half of one.
                words.update(_WORD.findall(cell.text.lower().rpartition(" ")[0]))
    code_is_mono = n_mono < 0.6 * n_chars
    for (place, rows), found in zip(pages, headings, strict=True):
        yield from blocks_of(Page(rows, found, place, code_is_mono), words)


def _raise_empty(pages: _Pages) -> None:
    """Say why no page has text; a document whose pages are all blank is just empty."""
    if pages.n_pages == 0 or len(pages.lost) == pages.n_seen:
        raise damaged("none of its pages can be read")
    if pages.unreadable:
        n = len(pages.unreadable)
        raise no_text(f"{_count(n, 'page')} whose fonts cannot be read: run OCR over it first")
    if pages.scanned:
        n = len(pages.scanned)
        raise no_text(f"{_count(n, 'page')} of images and no text: run OCR over it first")
    if pages.drawn:
        n = len(pages.drawn)
        raise no_text(f"{_count(n, 'page')} of drawings and no text: run OCR over it first")


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}" if n == 1 else f"{n:,} {what}s"


def _skipped(pages: _Pages, n_running: int, rest: SkippedPart | None) -> Iterator[SkippedPart]:
    if n_running:
        yield SkippedPart("headers and footers", n_running)
    if pages.n_images:
        yield SkippedPart("images", pages.n_images)
    if pages.scanned:
        yield SkippedPart("scanned pages", len(pages.scanned), _ranges(pages.scanned))
    if pages.drawn:
        yield SkippedPart("pages of drawings only", len(pages.drawn), _ranges(pages.drawn))
    if pages.unreadable:
        yield SkippedPart(
            "pages whose fonts cannot be read", len(pages.unreadable), _ranges(pages.unreadable)
        )
    if pages.lost:
        yield SkippedPart("damaged pages", len(pages.lost), _ranges(pages.lost))
    if rest:
        yield rest
    elif pages.n_seen < pages.n_pages:
        why = f": over {pages.max_chars:,} characters read" if pages.n_chars else ""
        yield SkippedPart("rest", 0, f"all from page {pages.n_seen + 1} on{why}")


def _ranges(numbers: Sequence[int]) -> str:
    """ "pages 3, 7-9"; long lists are cut."""
    spans: list[tuple[int, int]] = []
    for number in numbers:
        if spans and spans[-1][1] == number - 1:
            spans[-1] = (spans[-1][0], number)
        else:
            spans.append((number, number))
    shown = [f"{a}-{b}" if b > a else str(a) for a, b in spans[:10]]
    return f"{'page' if len(numbers) == 1 else 'pages'} {', '.join(shown)}" + (
        ", ..." if len(spans) > len(shown) else ""
    )


def _outline(document: Any) -> list[OutlineEntry]:
    entries = []
    for bookmark in islice(document.get_toc(max_depth=_MAX_OUTLINE_DEPTH), _MAX_OUTLINE):
        dest = bookmark.get_dest()
        page = dest.get_index() if dest else None
        title = clean(bookmark.get_title()).strip()
        if page is not None and title:
            entries.append(OutlineEntry(bookmark.level + 1, title, page))
    return entries


def _metadata(document: Any, key: str) -> str:
    return " ".join(clean(document.get_metadata_value(key)).split())


def _keywords(text: str) -> tuple[str, ...]:
    divider = ";" if ";" in text else ","
    words = dict.fromkeys(" ".join(word.split()) for word in text.split(divider))
    return tuple(word for word in words if word)[:_MAX_KEYWORDS]

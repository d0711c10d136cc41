"""E-books (EPUB 2 and 3): chapters in reading order, read as the pages that they are.

Chapters are the top entries of the book's own table of contents; what stands before the first one
has number 0. An entry may point into a file, which it then divides, and a chapter may span files.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from ragx.documents.dates import written_date
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
    too_big,
)
from ragx.documents.formats.markup.blocks import LeftOut, Walker
from ragx.documents.formats.markup.epub_package import Package, protected, read_package
from ragx.documents.formats.markup.html import decode_markup, parts_left_out
from ragx.documents.formats.markup.tree import elements, parse
from ragx.errors import ExtractionError

__all__ = ["extract"]

_FRONT = "front matter"


@dataclass(slots=True)
class _Reading:
    """What is known while the files of a book are read one after another."""

    archive: Archive
    package: Package
    max_chars: int
    place: Place
    left: LeftOut = field(default_factory=LeftOut)
    missing: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    cut: bool = False


def extract(raw: bytes, limits: ExtractLimits) -> Extracted:
    """Read an e-book.

    Raises:
        ExtractionError: it is protected, broken, too big, or holds no text.
    """
    if len(raw) > limits.max_bytes:
        raise too_big(f"it has {len(raw):,} bytes, over {limits.max_bytes:,}")
    archive = Archive(raw, limits)
    package = read_package(archive)
    if not protected(archive).isdisjoint(package.spine):
        raise encrypted("its text is protected against copying (DRM)")
    reading = _Reading(archive, package, 4 * limits.max_chars, Place("chapter", 0, _FRONT))
    blocks, rest = bounded(_blocks(reading), limits)
    if not blocks and rest is None:
        _explain(reading)
    if reading.cut and rest is None:
        rest = SkippedPart("rest", 0, "the end of a file of very many elements")
    return Extracted(
        tuple(_named_front(blocks)),
        title=package.title,
        date=_date(package),
        tags=package.subjects,
        skipped_parts=(*_missing(reading), *parts_left_out(reading.left, rest)),
    )


def _blocks(reading: _Reading) -> Iterator[Block]:
    for name in reading.package.spine:
        if name not in reading.archive:
            reading.missing.append(name)
            continue
        try:
            # The limit of what all parts unpack to is for the whole book, and ends it.
            raw = reading.archive.read(name)
        except ExtractionError as exc:
            if exc.code != "damaged":
                raise
            reading.broken.append(name)
            continue
        yield from _file_blocks(reading, name, raw)


def _file_blocks(reading: _Reading, name: str, raw: bytes) -> Iterator[Block]:
    root, whole = parse(decode_markup(raw), reading.max_chars, is_xml=True)
    reading.cut = reading.cut or not whole
    entries = reading.package.chapters.get(name) or []
    anchors: dict[str, Place] = {}
    for entry in entries:
        place = Place("chapter", entry.number, entry.title)
        if entry.anchor:
            anchors.setdefault(entry.anchor, place)
        else:
            reading.place = place
    main = next(elements(root, "body"), root)
    # All of a book's file is main text: asides are its notes, headers its chapters' titles.
    main.tag = "main"
    if anchors and not entries[0].anchor:
        anchors = {key: place for key, place in anchors.items() if place != reading.place}
    walker = Walker(main, reading.place, places=anchors, left=reading.left)
    yield from walker.blocks()
    # An anchor that the file does not have begins its chapter in the next file at the latest.
    last = [Place("chapter", entry.number, entry.title) for entry in entries]
    reading.place = max([walker.place, *last], key=lambda place: place.number)


def _named_front(blocks: list[Block]) -> Iterator[Block]:
    """Front matter is called by its first heading, or if all of the book is, by nothing."""
    front = [block for block in blocks if block.place.number == 0]
    heading = next((block.text for block in front if block.kind == "heading"), "")
    name = heading.replace("\n", " ")[:200].strip() or (_FRONT if len(front) < len(blocks) else "")
    for block in blocks:
        yield replace(block, place=Place("chapter", 0, name)) if not block.place.number else block


def _explain(reading: _Reading) -> None:
    """Why a book gave no text at all."""
    if reading.missing or reading.broken:
        raise damaged(f"its file {(reading.missing or reading.broken)[0]} is missing or broken")
    if reading.left.images or any(_is_image(name) for name in reading.archive.names):
        raise no_text("its pages are images without text")


def _is_image(name: str) -> bool:
    return posixpath.splitext(name)[1].lower() in (".jpg", ".jpeg", ".png", ".gif", ".svg", ".webp")


def _missing(reading: _Reading) -> Iterator[SkippedPart]:
    for what, names in (("missing files", reading.missing), ("broken files", reading.broken)):
        if names:
            shown = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
            yield SkippedPart(what, len(names), shown[:300])


def _date(package: Package) -> str:
    for text in package.dates:
        day = written_date(text)
        if day is not None:
            return day.isoformat()
    return ""

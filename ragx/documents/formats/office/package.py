"""Packages of Office Open XML: how parts find each other, and what a package says of itself."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from urllib.parse import unquote

from ragx.documents.formats.archive import Archive
from ragx.documents.formats.base import ExtractLimits, SkippedPart, damaged
from ragx.documents.formats.office.ole import MAGIC, explain
from ragx.documents.formats.office.text import one_line
from ragx.documents.formats.office.xml import name, parse, read, stream

__all__ = [
    "Package",
    "Properties",
    "Relation",
    "alt_text",
    "best_title",
    "chart_text",
    "iso_day",
    "open_package",
    "skipped",
    "tags",
]

_TARGET = "Target"
# Programs put the picture's file name, or the name of its kind, where a description belongs.
# Titles that programs write into a new document, and into one that they converted.
_NO_TITLE = re.compile(
    r"(powerpoint[- ])?pr[eä]sentation( (powerpoint|title|\d+))?|untitled.*|slide \d+|contents"
    r"|title|document ?\d*|microsoft (word|powerpoint|excel) -.*|workbook ?\d*|table of contents",
    re.I,
)
_MAX_LABELS = 100
_MAX_ALT_CHARS = 1000
_NO_DESCRIPTION = re.compile(r"^(\S+\.\w{2,4}|[\w ]{0,20}\d*|[A-Za-z]:\\.*|.*[\\/][^ ]+)$")


@dataclass(frozen=True, slots=True)
class Relation:
    """Where a part points: a part of the package, or an address outside, which nobody fetches."""

    kind: str
    target: str
    external: bool


@dataclass(frozen=True, slots=True)
class Properties:
    """What the package says of itself, in the form of `Extracted`."""

    title: str = ""
    date: str = ""
    tags: tuple[str, ...] = ()


class Package:
    """The parts of one document.

    Args:
        archive: its zip archive.
        wanted: the root element that its main part must have.
        label: what such a document is called.
    Raises:
        ExtractionError: it is no package, or one of another kind.
    """

    def __init__(self, archive: Archive, wanted: str, label: str) -> None:
        self.archive = archive
        self.main = self._main_part(label)
        if (root := _root_tag(archive, self.main)) != name(wanted):
            kinds = {
                name("w:document"): "a text document",
                name("p:presentation"): "a presentation",
                name("s:workbook"): "a workbook",
            }
            raise damaged(f"it is {kinds.get(root, 'something else')}, not {label}")

    def _main_part(self, label: str) -> str:
        for relation in self.relations("").values():
            if relation.kind == "officeDocument" and relation.target in self.archive:
                return relation.target
        if "mimetype" in self.archive:
            raise damaged(f"it is an OpenDocument or an e-book, not {label}")
        raise damaged(f"its archive has no main part: it is not {label}")

    def relations(self, part: str) -> dict[str, Relation]:
        """What a part points to, by the id that it uses; "" is the package itself."""
        folder, base = posixpath.split(part)
        root = read(self.archive, posixpath.join(folder, "_rels", f"{base}.rels"))
        found = {}
        for element in root.iter(name("pr:Relationship")) if root is not None else ():
            external = element.get("TargetMode") == "External"
            target = element.get(_TARGET, "")
            if not external:
                target = self._resolve(folder, target)
            kind = element.get("Type", "").rsplit("/", 1)[-1]
            found[element.get("Id", "")] = Relation(kind, target, external)
        return found

    def _resolve(self, folder: str, target: str) -> str:
        path, _, anchor = target.partition("#")
        if not path:
            return f"#{anchor}"
        for candidate in (path, unquote(path)):
            full = posixpath.normpath(posixpath.join("/", folder, candidate)).lstrip("/")
            if full in self.archive:
                return full
        return path.lstrip("/")

    def count(self, prefix: str) -> int:
        """How many parts have a name that starts so, folders not counted."""
        return sum(
            entry.startswith(prefix) and not entry.endswith(("/", ".rels"))
            for entry in self.archive.names
        )

    def properties(self) -> Properties:
        """Title, date of the last change and keywords; nothing where they are missing or broken."""
        for relation in self.relations("").values():
            if relation.kind == "core-properties" and relation.target in self.archive:
                root = parse(self.archive.read(relation.target), relation.target)
                break
        else:
            return Properties()
        found = {child.tag: one_line(child.text or "") for child in root}
        day = found.get(name("dcterms:modified")) or found.get(name("dcterms:created"), "")
        return Properties(
            found.get(name("dc:title"), ""), iso_day(day), tags(found.get(name("cp:keywords"), ""))
        )


def open_package(raw: bytes, limits: ExtractLimits, wanted: str, label: str) -> Package:
    """The package in a file.

    Raises:
        ExtractionError: it is encrypted, of the old binary format, damaged, too big, or of
            another kind than wanted.
    """
    if raw.startswith(MAGIC):
        raise explain(raw)
    return Package(Archive(raw, limits), wanted, label)


def _root_tag(archive: Archive, part: str) -> str:
    for _kind, element in stream(archive.read(part), part, ()):
        return element.tag
    return ""


def iso_day(text: str) -> str:
    """The day of an ISO date with or without a time; "" if it is none."""
    import datetime

    try:
        return datetime.date.fromisoformat(text[:10]).isoformat() if len(text) >= 10 else ""
    except ValueError:
        return ""


def tags(text: str) -> tuple[str, ...]:
    """Keywords, which people divide by commas or semicolons, each once."""
    words = (one_line(word) for word in re.split(r"[,;\n]", text))
    return tuple(dict.fromkeys(word for word in words if word))


def alt_text(text: str) -> str:
    """A picture's description as "[Image: ...]"; "" where it says nothing."""
    text = one_line(text[:_MAX_ALT_CHARS])
    return "" if _NO_DESCRIPTION.match(text) else f"[Image: {text}]"


def skipped(what: str, count: int, note: str = "") -> tuple[SkippedPart, ...]:
    """A part that was left out, if there is any."""
    return (SkippedPart(what, count, note),) if count else ()


def best_title(said: str, found: str) -> str:
    """The title that a document gives itself, unless it says nothing and one was found in it."""
    return said if said and not _NO_TITLE.fullmatch(said) else found


def chart_text(package: Package, relation: Relation | None) -> str:
    """Title, axes, names of series and categories of a chart, as "Chart: ..."."""
    if relation is None or relation.kind != "chart":
        return ""
    root = read(package.archive, relation.target)
    if root is None:
        return ""
    titles = [
        one_line(" ".join(text.text or "" for text in title.iter(name("a:t"))))
        for title in root.iter(name("c:title"))
    ]
    labels = [
        one_line(value.text or "")
        for cache in root.iter(name("c:strCache"))
        for value in cache.iter(name("c:v"))
    ]
    shown = list(dict.fromkeys(label for label in (*titles, *labels) if label))
    return f"Chart: {'; '.join(shown[:_MAX_LABELS])}" if shown else ""

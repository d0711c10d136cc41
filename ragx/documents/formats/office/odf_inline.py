"""Within a paragraph of OpenDocument: spans, links, notes, spaces, frames."""

from __future__ import annotations

from collections import Counter
from xml.etree.ElementTree import Element

from ragx.documents.formats.office.package import alt_text
from ragx.documents.formats.office.text import Line
from ragx.documents.formats.office.word import number
from ragx.documents.formats.office.xml import name

__all__ = ["Inline"]

_MAX_SPACES = 200
_GRAPHICS = frozenset({name("draw:object"), name("draw:object-ole")})
_COMMENT = frozenset({name("office:annotation"), name("office:annotation-end")})
# What stands in a paragraph for the program's own use, or twice.
_UNSEEN = frozenset(
    name(tag)
    for tag in (
        "text:ruby-text text:tracked-changes office:event-listeners svg:title svg:desc"
        " text:bookmark-start office:forms presentation:notes"
    ).split()
)
_SHAPES = frozenset(
    name(f"draw:{tag}")
    for tag in (
        "custom-shape rect ellipse circle line polyline polygon path regular-polygon connector"
        " caption"
    ).split()
)


class Inline:
    """Fills lines from paragraphs, and remembers what else stands in them.

    `seen` counts what is not in the text; `notes` and `boxes` wait for whoever takes them.
    """

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()
        self._notes: list[tuple[str, Element]] = []
        self._boxes: list[Element] = []
        self._n_notes = 0

    def take_notes(self) -> list[tuple[str, Element]]:
        """Notes met since the last call, each with its mark."""
        taken, self._notes = self._notes, []
        return taken

    def take_boxes(self) -> list[Element]:
        """Text boxes met since the last call."""
        taken, self._boxes = self._boxes, []
        return taken

    def fill(self, line: Line, element: Element, target: str = "") -> None:
        """Append the text of a paragraph."""
        # White space of the file is one space, by the format's own rule; more is an element.
        line.add((element.text or "").replace("\n", " ").replace("\t", " "), target)
        for child in element:
            self._child(line, child, target)
            line.add((child.tail or "").replace("\n", " ").replace("\t", " "), target)

    def _child(self, line: Line, child: Element, target: str) -> None:
        tag = child.tag
        if tag == name("text:s"):
            line.add(" " * min(number(child.get(name("text:c"), ""), 1), _MAX_SPACES), target)
        elif tag == name("text:tab"):
            line.add("\t", target)
        elif tag == name("text:line-break"):
            line.add("\n", target)
        elif tag == name("text:a"):
            self.fill(line, child, child.get(name("xlink:href"), "") or target)
        elif tag == name("text:note"):
            self._note(line, child)
        elif tag in _COMMENT:
            self.seen["comments"] += tag == name("office:annotation")
        elif tag == name("draw:frame"):
            self.frame(line, child)
        elif tag in (name("draw:g"), name("draw:a")):
            for shape in child:
                self._child(line, shape, target)
        elif tag in _SHAPES:
            self._boxes.append(child)
        elif tag not in _UNSEEN:
            self.fill(line, child, target)

    def frame(self, line: Line, frame: Element) -> None:
        """Sort out what a frame holds: a text box, a picture with its description, an object."""
        described = frame.findtext(name("svg:desc")) or frame.findtext(name("svg:title")) or ""
        tags = {child.tag for child in frame}
        if name("draw:text-box") in tags:
            self._boxes.extend(frame.findall(name("draw:text-box")))
        elif name("table:table") in tags:
            self._boxes.append(frame)
        elif tags & _GRAPHICS:
            self.seen["charts and embedded objects"] += 1
        elif name("draw:image") in tags:
            self.seen["images"] += 1
            if text := alt_text(described):
                line.add(f" {text} ")

    def _note(self, line: Line, note: Element) -> None:
        self._n_notes += 1
        citation = note.find(name("text:note-citation"))
        mark = "" if citation is None else "".join(citation.itertext()).strip()
        mark = mark or str(self._n_notes)
        line.add(f"[{mark}]")
        body = note.find(name("text:note-body"))
        if body is not None:
            self._notes.append((mark, body))

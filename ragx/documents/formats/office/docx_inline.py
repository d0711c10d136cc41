"""Within a paragraph of a Word document: runs, fields, links, revisions, notes, drawings."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from xml.etree.ElementTree import Element

from ragx.documents.formats.office.package import Package, Relation, alt_text, chart_text
from ragx.documents.formats.office.text import Line
from ragx.documents.formats.office.word import is_on, roman
from ragx.documents.formats.office.xml import name, read

__all__ = ["Inline", "Note"]

Note = tuple[str, Element, Mapping[str, Relation]]

_ALTERNATE = name("mc:AlternateContent")
_CHOICE = name("mc:Choice")
_BOX = name("w:txbxContent")
_DELETED = frozenset({name("w:del"), name("w:moveFrom")})
_ID = name("w:id")
# Elements that hold others without being text themselves.
_TRANSPARENT = frozenset(
    name(tag)
    for tag in (
        "w:sdt w:sdtContent w:ins w:moveTo w:smartTag w:customXml w:dir w:bdo w:rubyBase w:ruby"
    ).split()
)
_LITERAL = {
    name("w:tab"): "\t",
    name("w:ptab"): "\t",
    name("w:br"): "\n",
    name("w:cr"): "\n",
    name("w:noBreakHyphen"): "-",
}
_HYPERLINK = re.compile(r'\s*HYPERLINK\s+(?:"([^"]*)"|([^\s"\\]+))?\s*(?:\\l\s+"([^"]*)")?', re.I)
_PICTURES = frozenset({name("a:blip"), name("v:imagedata")})
_GRAPHICS = frozenset({name("c:chart"), name("dgm:relIds")})


class _Field:
    """A field that is open: its code first, then, from the separator on, its result."""

    __slots__ = ("code", "in_result", "target")

    def __init__(self) -> None:
        self.code = ""
        self.in_result = False
        self.target = ""

    def separate(self) -> None:
        self.in_result = True
        if match := _HYPERLINK.match(self.code):
            anchor = f"#{match[3]}" if match[3] else ""
            target = match[1] or match[2] or ""
            self.target = target.replace("\\\\", "\\") + anchor  # codes double the backslash


class Inline:
    """Fills lines from paragraphs, and remembers what else stands in them.

    `seen` counts what is not in the text.
    """

    def __init__(self, package: Package) -> None:
        self.seen: Counter[str] = Counter()
        self._package = package
        self._relations: Mapping[str, Relation] = package.relations(package.main)
        self._notes: dict[str, tuple[dict[str, Element], Mapping[str, Relation]]] = {}
        for relation in self._relations.values():
            if relation.kind in ("footnotes", "endnotes") and not relation.external:
                root = read(package.archive, relation.target)
                found = () if root is None else root
                self._notes[relation.kind] = (
                    {note.get(_ID, ""): note for note in found},
                    package.relations(relation.target),
                )
        self._n_notes: Counter[str] = Counter()
        self._pending: list[Note] = []
        self._boxes: list[Element] = []
        self._fields: list[_Field] = []

    def take_notes(self) -> list[Note]:
        """Notes pointed to since the last call."""
        taken, self._pending = self._pending, []
        return taken

    def take_boxes(self) -> list[Element]:
        """Text boxes met since the last call."""
        taken, self._boxes = self._boxes, []
        return taken

    @staticmethod
    def chosen(alternate: Element) -> list[Element]:
        """What one form of a content that comes in several holds: the first, as the newest."""
        choice = alternate.find(_CHOICE)
        if choice is None:
            choice = alternate.find(name("mc:Fallback"))
        return [] if choice is None else list(choice)

    def contents(self, parent: Element, wanted: Collection[str]) -> Iterator[Element]:
        """Descendants of the tags wanted, through everything that only wraps them."""
        for child in parent:
            if child.tag in wanted:
                yield child
            elif child.tag in _TRANSPARENT:
                yield from self.contents(child, wanted)
            elif child.tag == _ALTERNATE:
                for inner in self.chosen(child):
                    if inner.tag in wanted:
                        yield inner
            elif child.tag in _DELETED:
                self.seen["tracked deletions"] += 1

    def fill_note(self, line: Line, note: Note) -> None:
        """Append a note's paragraphs, divided by spaces."""
        _mark, element, relations = note
        kept, self._relations = self._relations, relations
        try:
            for paragraph in element.iter(name("w:p")):
                line.add(" ")
                self.fill(line, paragraph)
        finally:
            self._relations = kept

    def fill(self, line: Line, paragraph: Element) -> None:
        """Append a paragraph's text."""
        self._walk(line, paragraph, "")
        # A code goes on to its separator within a paragraph; what does not is broken, and would
        # swallow the rest of the document.
        self._fields = [field for field in self._fields if field.in_result]

    def _walk(self, line: Line, parent: Element, target: str) -> None:
        for child in parent:
            tag = child.tag
            if tag == name("w:r"):
                self._run(line, child, target)
            elif tag == name("w:hyperlink"):
                self._walk(line, child, self._target(child) or target)
            elif tag == name("w:fldSimple"):
                field = _Field()
                field.code = child.get(name("w:instr"), "")
                field.separate()
                self._walk(line, child, field.target or target)
            elif tag in _DELETED:
                self.seen["tracked deletions"] += 1
            elif tag in (name("m:oMath"), name("m:oMathPara")):
                line.add(formula(child), target)
            elif tag == _ALTERNATE:
                for inner in self.chosen(child):
                    self._walk(line, _wrapped(inner), target)
            elif tag in _TRANSPARENT:
                self._walk(line, child, target)

    def _target(self, link: Element) -> str:
        relation = self._relations.get(link.get(name("r:id"), ""))
        anchor = link.get(name("w:anchor"), "")
        target = relation.target if relation is not None else ""
        return f"{target}#{anchor}" if anchor and "#" not in target else target

    def _run(self, line: Line, run: Element, target: str) -> None:
        hidden = is_on(run.find(name("w:rPr")), "w:vanish")
        if hidden and run.find(name("w:t")) is not None:
            self.seen["hidden passages"] += 1
        for child in run:
            tag = child.tag
            if tag == name("w:fldChar"):
                self._field_char(child.get(name("w:fldCharType"), ""))
            elif tag == name("w:instrText"):
                if self._fields and not self._fields[-1].in_result:
                    self._fields[-1].code += child.text or ""
            elif not hidden and all(field.in_result for field in self._fields):
                self._content(line, child, self._field_target() or target)

    def _field_char(self, kind: str) -> None:
        if kind == "begin":
            self._fields.append(_Field())
        elif kind == "separate" and self._fields:
            self._fields[-1].separate()
        elif kind == "end" and self._fields:
            self._fields.pop()

    def _field_target(self) -> str:
        return next((field.target for field in reversed(self._fields) if field.target), "")

    def _content(self, line: Line, child: Element, target: str) -> None:
        tag = child.tag
        if tag == name("w:t"):
            line.add((child.text or "").replace("\n", " "), target)
        elif tag in _LITERAL:
            line.add(_LITERAL[tag], target)
        elif tag in (name("w:footnoteReference"), name("w:endnoteReference")):
            self._note(line, child, tag == name("w:endnoteReference"))
        elif tag == name("w:ruby"):
            base = child.find(name("w:rubyBase"))
            if base is not None:
                self._walk(line, base, target)
        elif tag == _ALTERNATE:
            for inner in self.chosen(child):
                self._content(line, inner, target)
        elif tag == name("w:object"):
            self.seen["embedded files"] += 1
        elif tag in (name("w:drawing"), name("w:pict")):
            self._drawing(line, child)

    def _note(self, line: Line, reference: Element, at_end: bool) -> None:
        kind = "endnotes" if at_end else "footnotes"
        notes, relations = self._notes.get(kind, ({}, {}))
        note = notes.get(reference.get(_ID, ""))
        if note is not None:
            self._n_notes[kind] += 1
            count = self._n_notes[kind]
            mark = roman(count).lower() if at_end else str(count)
            line.add(f"[{mark}]")
            self._pending.append((mark, note, relations))

    def _drawing(self, line: Line, drawing: Element) -> None:
        described = ""
        n_images = 0
        for element in self._drawn(drawing):
            if element.tag == _BOX:
                self._boxes.append(element)
            elif element.tag == name("wp:docPr"):
                described = element.get("descr", "")
            elif element.tag in _GRAPHICS:
                self.seen["charts and diagrams"] += 1
                relation = self._relations.get(element.get(name("r:id"), ""))
                line.add(f" {chart_text(self._package, relation)} ")
            elif element.tag in _PICTURES:
                n_images += 1
        self.seen["images"] += n_images
        if n_images and (text := alt_text(described)):
            line.add(f" {text} ")

    def _drawn(self, parent: Element) -> Iterator[Element]:
        for child in self.chosen(parent) if parent.tag == _ALTERNATE else parent:
            yield child
            if child.tag != _BOX:
                yield from self._drawn(child)


def _wrapped(element: Element) -> Element:
    wrapper = Element("wrapper")
    wrapper.append(element)
    return wrapper


def formula(element: Element) -> str:
    """A formula on one line: fractions by a slash, scripts by "^" and "_"."""
    tag = element.tag
    if tag == name("m:t"):
        return element.text or ""
    parts = {child.tag: child for child in element}

    def part(short: str) -> str:
        child = parts.get(name(short))
        return "" if child is None else formula(child)

    if tag == name("m:f"):
        return f"({part('m:num')})/({part('m:den')})"
    if tag in (name("m:sSup"), name("m:sSub"), name("m:sSubSup")):
        below, above = part("m:sub"), part("m:sup")
        return part("m:e") + (f"_{below}" if below else "") + (f"^{above}" if above else "")
    return "".join(formula(child) for child in element)

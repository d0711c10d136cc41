"""Styles of OpenDocument: which paragraphs are titles or code, which lists are numbered."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from ragx.documents.formats.office.word import number, spell
from ragx.documents.formats.office.xml import name

__all__ = ["Level", "Paragraph", "Styles"]

_NAME = name("style:name")
_CODE = re.compile(r"\bcode\b|preformatted|source ?(code|text)|verbatim|\blisting\b")
_MAX_CHAIN = 20
_ESCAPED = re.compile("_([0-9a-f]{2})_")


@dataclass(frozen=True, slots=True)
class Level:
    """How items of one level of a list are marked; no `form`: by a bullet."""

    form: str = ""
    prefix: str = ""
    suffix: str = ""
    start: int = 1
    shown: int = 1


def _mark(levels: Mapping[int, Level], counts: list[int]) -> str:
    """The mark of an item, from the counts of its level and those above."""
    depth = len(counts)
    level = levels.get(depth, Level())
    if not level.form:
        return "- "
    shown = range(max(1, depth + 1 - max(1, level.shown)), depth + 1)
    forms = {one: levels.get(one, level).form or "1" for one in shown}
    numbers = ".".join(spell(counts[one - 1], forms[one]) for one in shown)
    return " ".join(f"{level.prefix}{numbers}{level.suffix}".split()) + " "


@dataclass(frozen=True, slots=True)
class Paragraph:
    """What a paragraph's style says."""

    is_title: bool = False
    is_code: bool = False
    is_table_heading: bool = False
    list_style: str = ""


class Styles:
    """Styles by name, those of the document's body and the common ones."""

    def __init__(self) -> None:
        self._styles: dict[tuple[str, str], Element] = {}
        self._lists: dict[str, dict[int, Level]] = {}
        self._known: dict[str, Paragraph] = {}
        self.outline: dict[int, Level] = {}

    def add(self, parents: Iterable[Element]) -> None:
        """Take in the styles below these elements."""
        for parent in parents:
            for element in parent:
                called = element.get(_NAME, "")
                if element.tag == name("style:style"):
                    self._styles[element.get(name("style:family"), ""), called] = element
                elif element.tag == name("text:list-style"):
                    self._lists[called] = _levels(element)
                elif element.tag == name("text:outline-style"):
                    self.outline = _levels(element)

    def paragraph(self, called: str) -> Paragraph:
        """A paragraph's style, with what it inherits."""
        if called not in self._known:
            self._known[called] = self._resolve(called)
        return self._known[called]

    def _resolve(self, called: str) -> Paragraph:
        list_style = ""
        names: list[str] = []
        current = called
        while current and len(names) < _MAX_CHAIN:
            element = self._styles.get(("paragraph", current))
            shown = None if element is None else element.get(name("style:display-name"))
            spaced = _ESCAPED.sub(lambda match: chr(int(match[1], 16)), current)
            names.append((shown or spaced).lower())
            if element is None:
                break
            list_style = list_style or element.get(name("style:list-style-name"), "")
            current = element.get(name("style:parent-style-name"), "")
        is_code = any(_CODE.search(one) for one in names)
        return Paragraph("title" in names, is_code, "table heading" in names, list_style)

    def level(self, list_style: str, depth: int) -> Level:
        """How items of a list are marked; depth counts from 1."""
        return self._lists.get(list_style, {}).get(depth, Level())

    def mark(self, list_style: str, counts: list[int]) -> str:
        """How an item of a list starts: counts of its level and those above it."""
        return _mark(self._lists.get(list_style, {}), counts)

    def outline_mark(self, counts: list[int]) -> str:
        """How a heading starts; "" if headings of its level have no numbers."""
        level = self.outline.get(len(counts))
        return _mark(self.outline, counts) if level is not None and level.form else ""

    def is_table_heading(self, called: str) -> bool:
        """Whether a paragraph of that style names a column."""
        return self.paragraph(called).is_table_heading

    def is_hidden_page(self, called: str) -> bool:
        """Whether a slide of that style is left out when the presentation runs."""
        element = self._styles.get(("drawing-page", called))
        setup = None if element is None else element.find(name("style:drawing-page-properties"))
        return setup is not None and setup.get(name("presentation:visibility")) == "hidden"

    def is_hidden_table(self, called: str) -> bool:
        """Whether a sheet of that style is hidden."""
        element = self._styles.get(("table", called))
        setup = None if element is None else element.find(name("style:table-properties"))
        return setup is not None and setup.get(name("table:display")) == "false"


def _levels(style: Element) -> dict[int, Level]:
    found = {}
    for element in style:
        depth = number(element.get(name("text:level"), ""), 1)
        form = element.get(name("style:num-format"), "")
        if element.tag.endswith("}list-level-style-bullet"):
            form = ""
        found[depth] = Level(
            form,
            element.get(name("style:num-prefix"), ""),
            element.get(name("style:num-suffix"), ""),
            number(element.get(name("text:start-value"), ""), 1),
            number(element.get(name("text:display-levels"), ""), 1),
        )
    return found

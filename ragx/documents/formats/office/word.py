"""Styles and numbering of Word documents: which paragraphs are headings, items or code."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from xml.etree.ElementTree import Element

from ragx.documents.formats.office.xml import name

__all__ = [
    "Numbering",
    "Style",
    "Styles",
    "heading_level",
    "is_on",
    "number",
    "roman",
    "spell",
    "value",
]

_VAL = name("w:val")
_HEADING = re.compile(r"heading ([1-9])$")
_CODE = re.compile(r"\bcode\b|source ?(code|text)|preformatted|verbatim|\blisting\b")
_CONTENTS = re.compile(r"(toc|table of figures|index) ?\d?$")
_MAX_CHAIN = 20
_N_LEVELS = 9


@dataclass(slots=True)
class Style:
    """What a paragraph's style says; `level` is that of a heading, 0 for other text."""

    level: int = 0
    is_title: bool = False
    is_code: bool = False
    is_contents: bool = False
    num_id: str = ""
    num_level: int = 0


def value(parent: Element | None, tag: str) -> str:
    """`w:val` of a child, "" if there is none."""
    child = None if parent is None else parent.find(name(tag))
    return "" if child is None else child.get(_VAL, "")


def is_on(parent: Element | None, tag: str) -> bool:
    """Whether a switch is there and not switched off."""
    child = None if parent is None else parent.find(name(tag))
    return child is not None and child.get(_VAL, "1") not in ("0", "false", "off", "none")


class Styles:
    """Paragraph styles by id, what they inherit included."""

    def __init__(self, root: Element | None) -> None:
        found = [] if root is None else root.findall(name("w:style"))
        self._elements = {style.get(name("w:styleId"), ""): style for style in found}
        self._known: dict[str, Style] = {}
        self.default = next(
            (
                style.get(name("w:styleId"), "")
                for style in found
                if style.get(name("w:type")) == "paragraph"
                and style.get(name("w:default")) in ("1", "true", "on")
            ),
            "",
        )

    def get(self, style_id: str) -> Style:
        """A style by its id; a plain one where it is unknown."""
        if style_id not in self._known:
            self._known[style_id] = self._resolve(style_id)
        return self._known[style_id]

    def _resolve(self, style_id: str) -> Style:
        style = Style()
        outline = ""
        seen = 0
        current = self._elements.get(style_id)
        if current is None:
            # Programs that write no styles still name the built-in ones.
            _apply_name(style, re.sub(r"(\d)$", r" \1", style_id.lower()))
        while current is not None and seen < _MAX_CHAIN:
            seen += 1
            _apply_name(style, value(current, "w:name").lower())
            properties = current.find(name("w:pPr"))
            outline = outline or value(properties, "w:outlineLvl")
            numbering = None if properties is None else properties.find(name("w:numPr"))
            if not style.num_id and numbering is not None:
                style.num_id = value(numbering, "w:numId")
                style.num_level = number(value(numbering, "w:ilvl"))
            current = self._elements.get(value(current, "w:basedOn"))
        if outline and not style.level and not style.is_title:
            style.level = heading_level(outline)
        return style


def _apply_name(style: Style, called: str) -> None:
    """The nearest style of a chain decides: a heading's heir that is code stays a heading."""
    if match := _HEADING.search(called):
        style.level = style.level or int(match[1])
    style.is_title = style.is_title or called == "title"
    style.is_code = style.is_code or bool(_CODE.search(called))
    style.is_contents = style.is_contents or bool(_CONTENTS.match(called))


def heading_level(outline: str) -> int:
    """Level from 1 of an outline level, which counts from 0 and where 9 is body text."""
    level = number(outline, _N_LEVELS)
    return level + 1 if 0 <= level < _N_LEVELS else 0


def number(text: str, default: int = 0) -> int:
    """A whole number as programs write them; `default` where it is none, or absurd."""
    return int(text) if re.fullmatch(r"-?[0-9]{1,9}", text) else default


@dataclass(slots=True)
class _Level:
    form: str = "bullet"
    text: str = ""
    start: int = 1


@dataclass(slots=True)
class _List:
    levels: dict[int, _Level] = field(default_factory=dict)
    abstract: str = ""
    restarts: dict[int, int] = field(default_factory=dict)


class Numbering:
    """Numbers of list items and headings, counted as Word counts them."""

    def __init__(self, root: Element | None) -> None:
        abstracts = {
            element.get(name("w:abstractNumId"), ""): _levels(element)
            for element in (() if root is None else root.findall(name("w:abstractNum")))
        }
        self._lists: dict[str, _List] = {}
        for element in () if root is None else root.findall(name("w:num")):
            abstract = value(element, "w:abstractNumId")
            overrides = element.findall(name("w:lvlOverride"))
            own = dict(abstracts.get(abstract, {}))
            restarts = {}
            for override in overrides:
                level = number(override.get(name("w:ilvl"), ""))
                own.update(_levels(override))
                if start := value(override, "w:startOverride"):
                    restarts[level] = number(start, 1)
            self._lists[element.get(name("w:numId"), "")] = _List(own, abstract, restarts)
        self._counts: dict[str, list[int | None]] = {}
        self._started: set[tuple[str, int]] = set()

    def mark(self, num_id: str, level: int) -> str | None:
        """The next item's mark: "- ", a number with a space, or "" for an invisible one.

        None: there is no such list, the paragraph is no item.
        """
        found = self._lists.get(num_id)
        if found is None or not 0 <= level < _N_LEVELS:
            return None
        form = found.levels.get(level, _Level())
        counts = self._count(num_id, found, level)
        if form.form == "bullet":
            return "- "
        if form.form == "none" or not form.text:
            return ""

        def one(match: re.Match[str]) -> str:
            index = int(match[1]) - 1
            if index > level:
                return ""
            other = found.levels.get(index, _Level())
            count = counts[index]
            return spell(other.start if count is None else count, other.form)

        return re.sub(r"%([1-9])", one, form.text).strip() + " "

    def _count(self, num_id: str, found: _List, level: int) -> list[int | None]:
        # Lists with the same abstract definition count on, unless one says where it starts.
        counts = self._counts.setdefault(found.abstract, [None] * _N_LEVELS)
        if level in found.restarts and (num_id, level) not in self._started:
            counts[level] = None
        start = found.restarts.get(level, found.levels.get(level, _Level()).start)
        self._started.add((num_id, level))
        before = counts[level]
        counts[level] = start if before is None else before + 1
        counts[level + 1 :] = [None] * (_N_LEVELS - level - 1)
        return counts


def _levels(parent: Element) -> dict[int, _Level]:
    return {
        number(element.get(name("w:ilvl"), "")): _Level(
            value(element, "w:numFmt") or "decimal",
            value(element, "w:lvlText"),
            number(value(element, "w:start"), 1),
        )
        for element in parent.findall(name("w:lvl"))
    }


def spell(count: int, form: str) -> str:
    """A number in one of the forms of office documents; digits where the form is another."""
    if form in ("lowerLetter", "a") and count > 0:
        return _letters(count)
    if form in ("upperLetter", "A") and count > 0:
        return _letters(count).upper()
    if form in ("lowerRoman", "i"):
        return roman(count).lower()
    if form in ("upperRoman", "I"):
        return roman(count)
    return f"{count:02d}" if form == "decimalZero" else str(count)


def _letters(count: int) -> str:
    times, index = divmod(count - 1, 26)
    return chr(ord("a") + index) * min(times + 1, 9)


def roman(count: int) -> str:
    """Roman numerals; digits for what Romans did not write."""
    if not 0 < count < 4000:
        return str(count)
    out = ""
    for worth, letters in zip(
        (1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1),
        "M CM D CD C XC L XL X IX V IV I".split(),
        strict=True,
    ):
        times, count = divmod(count, worth)
        out += letters * times
    return out

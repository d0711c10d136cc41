"""Words of a PDF's pages with their places and fonts, read through PDFium.

PDFium is asked for the text of a page once, and for boxes and fonts once a word: a call for each
character would make up most of the time.
"""

from __future__ import annotations

import ctypes
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from ragx.documents.formats.pdf.spaces import SUSPICIOUS, Span, cuts, may_join, mend
from ragx.documents.formats.pdf.text import clean, unmapped

__all__ = ["LEADER", "PageWords", "Reader", "Word"]

# Leaders come first: the dots between a title and its page in a table of contents are one word.
_TOKEN = re.compile(
    r"(?P<leader>(?<!\.)\.(?:[ \xa0]\.){3,}|\.{5,}(?=\s*[\divxlc]+\s*(?:\r|$)))"
    "|\r\n|\n|[\ufffe\x02]|[^\\s\ufffe\x02]+?(?=\\.(?:[ \xa0]\\.){3})|[^\\s\ufffe\x02]+"
)
LEADER = "…"
_HYPHENS = ("\ufffe", "\x02")
_MONO = re.compile(
    r"(?i)mono|courier|consol|typewriter|cmtt|cmsltt|cmitt|sftt|ectt|txtt|menlo|inconsolata"
    r"|lettergothic|nimbusmon|fixed|lucidasanstyp|andale|beramon|sourcecode|firacode|hack-|tt\d+$"
)
_BOLD = re.compile(r"(?i)bold|black|heavy|cmbx|cmb\d|sfbx|ecbx|cmssbx|demi|medi$|-bd|\bbd\b")
_MAX_OBJECTS_LOOKED_AT = 5_000
_MAX_LINKS = 2_000
_NAME_BYTES = 256
_URI_BYTES = 4_096


@dataclass(slots=True)
class Word:
    """A word in a frame whose x grows along the line and whose y grows upwards.

    `turn` says by how many quarters the page has to be turned for that frame; `breaks` that PDFium
    ends a line after the word, `joins` that the space before it is none; `target` where a link on
    it leads.
    """

    text: str
    left: float
    right: float
    base: float
    size: float
    bold: bool
    mono: bool
    turn: int
    target: str = ""
    breaks: bool = False
    joins: bool = False


@dataclass(slots=True)
class PageWords:
    """What one page holds.

    `label` is printed on it, "" if that is its number; `is_drawn` says that it has lines or areas.
    """

    number: int
    label: str = ""
    words: list[Word] = field(default_factory=list)
    n_chars: int = 0
    n_unmapped: int = 0
    n_images: int = 0
    is_drawn: bool = False
    height: float = 0.0


class Reader:
    """Pages of one open document."""

    def __init__(self, document: Any) -> None:
        import pypdfium2.raw as pdfium

        self._api: Any = pdfium
        self._document = document
        self._fonts: dict[bytes, _Font] = {}
        self._box = pdfium.FS_RECTF()
        self._matrix = pdfium.FS_MATRIX()
        self._x, self._y = ctypes.c_double(), ctypes.c_double()
        self._name = ctypes.create_string_buffer(_NAME_BYTES)
        self._flags = ctypes.c_int()

    def __len__(self) -> int:
        return int(self._api.FPDF_GetPageCount(self._document))

    def page(self, number: int) -> PageWords | None:
        """Page `number`, counted from 1; None if it cannot be read."""
        page = self._api.FPDF_LoadPage(self._document, number - 1)
        if not page:
            return None
        try:
            text_page = self._api.FPDFText_LoadPage(page)
            if not text_page:
                return None
            try:
                return self._read(number, page, text_page)
            finally:
                self._api.FPDFText_ClosePage(text_page)
        finally:
            self._api.FPDF_ClosePage(page)

    def _read(self, number: int, page: Any, text_page: Any) -> PageWords:
        text = self._text(text_page)
        found = PageWords(number, self._label(number))
        found.height = float(self._api.FPDF_GetPageHeightF(page))
        self._look(page, found)
        links = list(self._link_areas(page)) if text else []
        run = _Run()
        end = -1
        for token in _TOKEN.finditer(text):
            piece = token[0]
            if piece[0] in "\r\n" or piece in _HYPHENS:
                if found.words:
                    found.words[-1].breaks = True
                    if piece in _HYPHENS:
                        found.words[-1].text += "-"
                continue
            follows = token.start() == end + 1
            end, font = token.end(), run.font
            run = self._run(text_page, token.start(), run)
            follows = follows and run.font is font
            n_words = len(found.words)
            run = self._take(text_page, token, run, found, links)
            if follows and 0 < n_words < len(found.words):
                word = found.words[n_words]
                if may_join(found.words[n_words - 1], word):
                    word.joins = self._is_no_space(text_page, token.start() - 1, word.left)
        found.words = mend(found.words)
        return found

    def _take(
        self,
        text_page: Any,
        token: re.Match[str],
        run: _Run,
        found: PageWords,
        links: Sequence[_Area],
    ) -> _Run:
        """Add what PDFium gives as one word; the run that it ends in."""
        start = token.start()
        for part, left, right in self._parts(text_page, token, run):
            if start > token.start():
                run = self._run(text_page, start, run)
            start += len(part)
            found.n_chars += len(part)
            found.n_unmapped += len(part) if run.unmapped else unmapped(part)
            text = LEADER if token["leader"] else clean(part)
            if text:
                word = run.word(text, left, right)
                if links:
                    self._link(word, links)
                found.words.append(word)
        return run

    def _is_no_space(self, text_page: Any, index: int, left: float) -> bool:
        """Whether a space was PDFium's guess, or the next character stands upon it."""
        if self._api.FPDFText_IsGenerated(text_page, index) == 1:
            return True
        begin, end = self._span(text_page, index, 0)
        return left - begin < 0.3 * (end - begin)

    def _parts(
        self, text_page: Any, token: re.Match[str], run: _Run
    ) -> Sequence[tuple[str, float, float]]:
        """The words of what PDFium gives as one, with their edges: it misses gaps between words
        that no character of the file stands for.
        """
        piece, start, last = token[0], token.start(), token.end() - 1
        left, right = self._span(text_page, start, run.turn)
        if last > start:
            begin, end = self._span(text_page, last, run.turn)
            left, right = min(left, begin), max(right, end)
        whole = ((piece, left, right),)
        if last == start or token["leader"] or run.unit <= 0:
            return whole
        # To ask where each letter stands would take most of the time. Text of one object is in one
        # font, whose letters' widths are asked for once.
        if self._address(text_page, last) == run.address:
            try:
                width = sum(map(run.font.widths.__getitem__, piece))
            except KeyError:
                width = self._learn(text_page, token, run)
            if right - left <= (width + SUSPICIOUS) * run.unit:
                return whole
        spans = [self._span(text_page, at, run.turn) for at in range(start, last + 1)]
        found = cuts(spans, run.unit)
        if not found:
            return whole
        return [
            (piece[a:b], min(spans[a][0], spans[b - 1][0]), max(spans[a][1], spans[b - 1][1]))
            for a, b in pairwise((0, *found, len(piece)))
        ]

    def _learn(self, text_page: Any, token: re.Match[str], run: _Run) -> float:
        widths = run.font.widths
        for at, letter in enumerate(token[0], token.start()):
            if letter not in widths:
                left, right = self._span(text_page, at, run.turn)
                widths[letter] = (right - left) / run.unit
        return sum(map(widths.__getitem__, token[0]))

    def _span(self, text_page: Any, index: int, turn: int) -> Span:
        """Where a character begins and ends along its line."""
        box = self._box
        self._api.FPDFText_GetLooseCharBox(text_page, index, box)
        if turn == 0:
            return box.left, box.right
        if turn == 1:
            return box.bottom, box.top
        return (-box.right, -box.left) if turn == 2 else (-box.top, -box.bottom)

    def _address(self, text_page: Any, index: int) -> int:
        item = self._api.FPDFText_GetTextObject(text_page, index)
        return ctypes.addressof(item.contents) if item else 0

    def _text(self, text_page: Any) -> str:
        """One character of text for each of the page's characters."""
        api = self._api
        n_chars = api.FPDFText_CountChars(text_page)
        if n_chars <= 0:
            return ""
        buffer = (ctypes.c_ushort * (2 * n_chars + 2))()
        n_units = api.FPDFText_GetText(text_page, 0, n_chars, buffer) - 1
        if n_units == n_chars and api.FPDFText_GetTextIndexFromCharIndex(
            text_page, n_chars - 1
        ) == (n_chars - 1):
            text = bytes(buffer)[: 2 * n_units].decode("utf-16-le", "surrogatepass")
            if len(text) == n_chars:
                return text
        # Characters that the text leaves out or writes as two: ask for them one by one.
        units = (api.FPDFText_GetUnicode(text_page, i) for i in range(n_chars))
        return "".join(chr(unit) if 0 < unit < 0x110000 else "\ufffd" for unit in units)

    def _run(self, text_page: Any, index: int, before: _Run) -> _Run:
        """What the character at `index` shares with all of its text object."""
        api = self._api
        address = self._address(text_page, index)
        if address and address == before.address:
            return before
        api.FPDFText_GetCharOrigin(text_page, index, self._x, self._y)
        api.FPDFText_GetMatrix(text_page, index, self._matrix)
        matrix = self._matrix
        turn, base = 0, self._y.value
        if abs(matrix.b) > abs(matrix.a):
            turn, base = (1, -self._x.value) if matrix.b > 0 else (3, self._x.value)
        elif matrix.a < 0 < -matrix.d:
            turn, base = 2, -base
        points = api.FPDFText_GetFontSize(text_page, index)
        size = points * math.hypot(matrix.c, matrix.d)
        unit = points * math.hypot(matrix.a, matrix.b)
        if not size:
            api.FPDFText_GetLooseCharBox(text_page, index, self._box)
            size = self._box.top - self._box.bottom
        bad = api.FPDFText_HasUnicodeMapError(text_page, index) == 1
        return _Run(address, base, size, unit, self._font(text_page, index), turn, bad)

    def _font(self, text_page: Any, index: int) -> _Font:
        length = self._api.FPDFText_GetFontInfo(
            text_page, index, self._name, _NAME_BYTES, self._flags
        )
        raw = self._name.raw[: max(0, length - 1)]
        known = self._fonts.get(raw)
        if known is None:
            name = raw.decode("latin-1").split("+")[-1]
            known = _Font(bool(_BOLD.search(name)), bool(_MONO.search(name)), {})
            self._fonts[raw] = known
        return known

    def _label(self, number: int) -> str:
        buffer = ctypes.create_string_buffer(128)
        length = self._api.FPDF_GetPageLabel(self._document, number - 1, buffer, 128)
        label = clean(buffer.raw[: max(0, min(length, 128) - 2)].decode("utf-16-le", "replace"))
        label = label.strip()
        return "" if label == str(number) else label

    def _look(self, page: Any, found: PageWords) -> None:
        """Count the images of a page, and see whether anything else is drawn on it."""
        api = self._api
        waiting = [
            api.FPDFPage_GetObject(page, i)
            for i in range(min(api.FPDFPage_CountObjects(page), _MAX_OBJECTS_LOOKED_AT))
        ]
        n_left = _MAX_OBJECTS_LOOKED_AT
        while waiting and n_left:
            item, n_left = waiting.pop(), n_left - 1
            kind = api.FPDFPageObj_GetType(item)
            if kind == api.FPDF_PAGEOBJ_IMAGE:
                found.n_images += 1
            elif kind == api.FPDF_PAGEOBJ_FORM:
                n_parts = min(api.FPDFFormObj_CountObjects(item), n_left)
                waiting.extend(api.FPDFFormObj_GetObject(item, i) for i in range(n_parts))
            elif kind in (api.FPDF_PAGEOBJ_PATH, api.FPDF_PAGEOBJ_SHADING):
                found.is_drawn = True

    def _link(self, word: Word, links: Sequence[_Area]) -> None:
        """Give a word the target of the area that holds its middle."""
        x, y = (word.left + word.right) / 2, word.base + 0.25 * word.size
        for _ in range(word.turn):
            x, y = -y, x
        for area in links:
            if area.left <= x <= area.right and area.bottom <= y <= area.top:
                word.target = area.target
                return

    def _link_areas(self, page: Any) -> Iterator[_Area]:
        api = self._api
        position, link = ctypes.c_int(0), api.FPDF_LINK()
        for _ in range(_MAX_LINKS):
            if not api.FPDFLink_Enumerate(page, position, link):
                return
            target = self._target(link)
            box = api.FS_RECTF()
            if target and api.FPDFLink_GetAnnotRect(link, box):
                yield _Area(box.left, box.right, box.bottom, box.top, target)

    def _target(self, link: Any) -> str:
        api = self._api
        action = api.FPDFLink_GetAction(link)
        if not action:
            return ""
        kind = api.FPDFAction_GetType(action)
        buffer = ctypes.create_string_buffer(_URI_BYTES)
        if kind == api.PDFACTION_URI:
            length = api.FPDFAction_GetURIPath(self._document, action, buffer, _URI_BYTES)
        elif kind in (api.PDFACTION_REMOTEGOTO, api.PDFACTION_LAUNCH):
            length = api.FPDFAction_GetFilePath(action, buffer, _URI_BYTES)
        else:
            return ""
        if not 1 < length <= _URI_BYTES:
            return ""
        target = clean(buffer.raw[: length - 1].decode("utf-8", "replace")).strip()
        return "" if any(c.isspace() for c in target) and ":" in target else target


@dataclass(frozen=True, slots=True)
class _Area:
    left: float
    right: float
    bottom: float
    top: float
    target: str


@dataclass(frozen=True, slots=True)
class _Font:
    """`widths` are those of letters seen so far, in units of the font size."""

    bold: bool
    mono: bool
    widths: dict[str, float]


_NO_FONT = _Font(False, False, {})


@dataclass(frozen=True, slots=True)
class _Run:
    """What the words of one text object share: baseline, font, direction.

    `size` is the font size up the page, `unit` along the line.
    """

    address: int = 0
    base: float = 0.0
    size: float = 0.0
    unit: float = 0.0
    font: _Font = _NO_FONT
    turn: int = 0
    unmapped: bool = False

    def word(self, text: str, left: float, right: float) -> Word:
        font = self.font
        return Word(text, left, right, self.base, self.size, font.bold, font.mono, self.turn)

"""What an RTF file says about itself before its text: fonts, styles, title and dates."""

from __future__ import annotations

import re
from datetime import date

from ragx.documents.formats.rtf.text import CHARSETS, code_page, symbol_text

__all__ = ["Fonts", "Info", "Styles"]

_HEADING_NAME = re.compile(
    r"(?i)(?:heading|überschrift|titre|título|titolo|kop|rubrik|overskrift|nagłówek|заголовок"
    r"|见出し|見出し|标题|標題)\s*([1-9])\b"
)
_MAX_NAME = 100
_MAX_BASES = 20
_BODY_LEVEL = 9  # an outline level that means running text
_EAST_ASIAN = frozenset(("cp932", "gbk", "cp949", "cp950"))


class Fonts:
    """The font table: by which codec the bytes of a text in each font are read.

    While the table is read, `current` is the font that it is about.
    """

    def __init__(self) -> None:
        self.document_codec = "cp1252"
        self.default = -1
        self.current = 0
        self._codecs: dict[int, str] = {}
        self._names: dict[int, str] = {}

    def add_name(self, text: str) -> None:
        self._names[self.current] = (self._names.get(self.current, "") + text)[:_MAX_NAME]

    def set_document_page(self, number: int) -> None:
        self.document_codec = code_page(number) or self.document_codec

    def set_page(self, number: int) -> None:
        codec = code_page(number)
        if codec:
            self._codecs[self.current] = codec

    def set_charset(self, number: int) -> None:
        if number == 2:
            self._codecs[self.current] = "symbol"
        elif number in CHARSETS:
            self._codecs[self.current] = CHARSETS[number]
        elif number == 0 and self.document_codec in _EAST_ASIAN:
            # Western fonts of East Asian documents; elsewhere 0 is what the document says.
            self._codecs[self.current] = "cp1252"

    def decode(self, data: bytes, font: int) -> str:
        """Read bytes in a font, by number; -1 is the default font."""
        font = font if font >= 0 else self.default
        codec = self._codecs.get(font, self.document_codec)
        if codec == "symbol":
            is_greek = "symbol" in self._names.get(font, "").lower()
            return symbol_text(data.decode("latin-1"), greek=is_greek)
        return data.decode(codec, "replace")


class Styles:
    """The style sheet: which paragraph styles are headings.

    While the sheet is read, `current` is the style that it is about; -1 is of no interest.
    """

    def __init__(self) -> None:
        self.current = 0
        self._names: dict[int, str] = {}
        self._levels: dict[int, int] = {}
        self._bases: dict[int, int] = {}

    def add_name(self, text: str) -> None:
        self._names[self.current] = (self._names.get(self.current, "") + text)[:_MAX_NAME]

    def set_level(self, level: int) -> None:
        self._levels[self.current] = level

    def set_base(self, style: int) -> None:
        self._bases[self.current] = style

    def heading_level(self, style: int, outline: int) -> int:
        """Level from 1 by a paragraph's own outline level, or by its style's value or name.

        Args:
            outline: -1 if the paragraph has none of its own.
        Returns:
            0 for running text.
        """
        if outline >= 0:
            return outline + 1 if outline < _BODY_LEVEL else 0
        for _ in range(_MAX_BASES):  # styles may be based on each other in a circle
            name = self._names.get(style, "").strip(" ;")
            named = _HEADING_NAME.match(name)
            if named:
                return int(named[1])
            if name.lower() == "title":
                return 1
            if style in self._levels:
                level = self._levels[style]
                return level + 1 if 0 <= level < _BODY_LEVEL else 0
            if self._bases.get(style, style) == style:
                break
            style = self._bases[style]
        return 0


class Info:
    """The document's title, keywords and dates."""

    def __init__(self) -> None:
        self.title = ""
        self.keywords = ""
        self._dates: dict[str, dict[str, int]] = {}
        self._stamp: dict[str, int] = {}

    def start_date(self, word: str) -> None:
        """`yr`, `mo` and `dy` of a time follow."""
        self._stamp = self._dates.setdefault(word, {})

    def set_part(self, word: str, number: int) -> None:
        self._stamp[word] = number

    def date(self) -> str:
        """The day of the last change, or else that of creation; "" if there is none."""
        for key in ("revtim", "creatim"):
            stamp = self._dates.get(key, {})
            try:
                day = date(stamp.get("yr", 0), stamp.get("mo", 0), stamp.get("dy", 0))
            except (ValueError, OverflowError):
                continue
            if 1900 <= day.year < 2100:
                return day.isoformat()
        return ""

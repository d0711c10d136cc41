"""Clean text from what a PDF's fonts say: characters, hyphens at line ends, titles and dates."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Set as AbstractSet

from ragx.documents.formats import tidy
from ragx.documents.formats.base import Link

__all__ = ["BULLETS", "clean", "is_junk_title", "iso_date", "join_links", "seam", "unmapped"]

# Marks that stand for "next item"; those of symbol fonts lie in the private use area.
BULLETS = "•◦▪▫‣⁃●○■□◆◇►▶✓✔❖➢∙·"
_SYMBOL_BULLETS = dict.fromkeys((0xF0B7, 0xF0A7, 0xF0D8, 0xF076, 0xF0FC, 0xF02D), "•")
_DROPPED = dict.fromkeys((0xFFFD, 0xFFFE, 0xFFFF))
_COMPATIBILITY = re.compile("[\ufb00-\ufb06\ufb13-\ufb17\ufb1d-\ufdfb\ufe70-\ufefc]")
_PRIVATE = re.compile("[\ue000-\uf8ff\U000f0000-\U0010fffd]")
_BAD = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffd\ue000-\uf8ff\U000f0000-\U0010fffd]")

# Old TeX fonts draw an accent as a glyph of its own in front of its letter.
_ACCENTS = {
    "´": "\u0301", "¨": "\u0308", "ˆ": "\u0302", "˜": "\u0303", "ˇ": "\u030c", "˚": "\u030a",
    "˘": "\u0306", "˝": "\u030b", "˙": "\u0307",
}  # fmt: skip
_ACCENTED = re.compile(f"([{''.join(_ACCENTS)}]) ?([A-Za-zı])")

# Man pages are set with minus signs for the dashes of options.
_OPTION_DASH = re.compile("−(?=[−A-Za-z])|(?<=−)−")

_WORD_AT_END = re.compile(r"([^\W\d_]+)-$")
_WORD_AT_START = re.compile(r"[^\W\d_]+")
# Scripts written without spaces between words: Han, kana, their punctuation, full-width forms.
_UNSPACED = re.compile("[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]")

_JUNK_TITLE = re.compile(
    r"""(?ix) ^(microsoft\s+(word|powerpoint|excel|publisher)\b.*
        | (untitled(\ document)?|unbenannt|sans\ titre|no\ title|title|contents|document
            |dokument|layout|slide)[\s\d]*
        | \W* (presentation|présentation|folie|diapositive)\s*\d*
        | [^\s]+ \. (pdf|docx?|dvi|tex|odt|rtf|pptx?|xlsx?|indd|qxd|html?|txt|ps|eps|fm|pages|md)
        | (/|[a-z]:\\|file:|https?:).*
        | [\W\d_]*)$"""
)
_DATE = re.compile(r"(?:D:)?(\d{4})(\d{2})?(\d{2})?")
_DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def unmapped(text: str) -> int:
    """How many characters of `text` no reader could make sense of."""
    return len(_BAD.findall(text))


def clean(text: str) -> str:
    """Text as a reader would type it: ligatures spelt out, accents composed, no invisible marks."""
    if text.isascii() and text.isprintable():
        return text
    if "−" in text:
        text = _OPTION_DASH.sub("-", text)
    text = text.translate(_SYMBOL_BULLETS).translate(_DROPPED)
    text = _COMPATIBILITY.sub(lambda found: unicodedata.normalize("NFKC", found[0]), text)
    text = _ACCENTED.sub(_composed, _PRIVATE.sub("", text))
    return tidy.clean(text)


def _composed(found: re.Match[str]) -> str:
    letter = "i" if found[2] == "ı" else found[2]
    whole = unicodedata.normalize("NFC", letter + _ACCENTS[found[1]])
    return whole if len(whole) == 1 else found[0]


def seam(before: str, after: str, words: AbstractSet[str]) -> tuple[int, str]:
    """How two lines of one paragraph become one: characters to cut from `before`, what to insert.

    A hyphen at a line's end goes if the word without it occurs in the document (`words`, lower
    case), or if nothing speaks for it: the document has the word with it, or both halves alone.
    """
    head, tail = _WORD_AT_END.search(before), _WORD_AT_START.match(after)
    if head and tail:
        left, right = head[1].lower(), tail[0].lower()
        if tail[0][0].isupper() or f"{left}-{right}" in words:
            return 0, ""
        if left + right in words or left not in words or right not in words:
            return 1, ""
        return 0, ""
    if before.endswith("-") and after[:1].isalnum() and not before.endswith((" -", "--")):
        return 0, ""
    if before and after and _UNSPACED.match(before[-1]) and _UNSPACED.match(after[0]):
        return 0, ""
    return 0, " "


def join_links(links: list[Link]) -> tuple[Link, ...]:
    """Links in order; those of words side by side that lead to the same target become one."""
    joined: list[Link] = []
    for link in links:
        if joined and joined[-1].target == link.target and link.start - joined[-1].end <= 1:
            joined[-1] = Link(joined[-1].start, link.end, link.target)
        else:
            joined.append(link)
    return tuple(joined)


def is_junk_title(title: str) -> bool:
    """Whether a title says what made the file, or what the file was called, not what it is about.

    An empty one counts as junk.
    """
    return bool(_JUNK_TITLE.match(title.strip()))


def iso_date(text: str) -> str:
    """YYYY-MM-DD of a PDF date ("D:20240131120000Z"), "" if it is none."""
    found = _DATE.match(text.strip())
    if not found:
        return ""
    year, month, day = int(found[1]), int(found[2] or 0), int(found[3] or 0)
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if not 1970 <= year <= 2200 or not 1 <= month <= 12 or not 1 <= day <= _DAYS[month - 1]:
        return ""
    return "" if (month, day) == (2, 29) and not leap else f"{year:04}-{month:02}-{day:02}"

"""Clean characters: what formats that carry raw text have in common before it becomes blocks."""

from __future__ import annotations

import re
import unicodedata

__all__ = ["bullet_line", "clean", "one_line", "strip_markup", "table_row"]

# Marks of direction, joins of words that nobody searches for, and what is left of other tools.
# The joiners U+200C and U+200D stay: Persian and the scripts of India need them.
_DROPPED = dict.fromkeys(
    (0xAD, 0x200B, 0x200E, 0x200F, 0x2060, 0xFEFF, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
)
_DROPPED |= dict.fromkeys(code for code in (*range(32), *range(0x7F, 0xA0)) if code not in (9, 10))
_CHANGED: dict[int, str | None] = {
    **_DROPPED,
    0x85: "\n",
    0xA0: " ",
    0x2028: "\n",
    0x2029: "\n",
    0x202F: " ",
    0xFB00: "ff",
    0xFB01: "fi",
    0xFB02: "fl",
    0xFB03: "ffi",
    0xFB04: "ffl",
    0xFB05: "st",
    0xFB06: "st",
}
_SURROGATE = re.compile("[\ud800-\udfff]")
_BULLET = re.compile(r"([ \t]*)[-*+•‣▪◦·–—][ \t]+(?=\S)")
_COMMENT = re.compile(r"<!--(?:.*?-->|.*)|<(script|style)\b[^<>]*>(?:.*?</\1\s*>|.*)", re.S | re.I)
_BREAK = re.compile(r"(?i)<(?:br|/?(?:p|div|tr|li|ul|ol|table|h[1-6]|blockquote|pre))\b[^<>]*>")
_TAG = re.compile(r"</?[A-Za-z][^<>]*>|<![A-Za-z][^<>]*>")
_CELLS = re.compile(r"(?i)</t[dh]\s*>\s*(?=<t[dh]\b)")
_SPACES = re.compile(r"[ \t]+")


def clean(text: str) -> str:
    """Unicode NFC without control characters, soft hyphens and marks that nobody sees.

    Lines end in LF; tabs stay. Halves of surrogate pairs join or become U+FFFD.
    """
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if text.isascii():
        return text if text.isprintable() else text.translate(_CHANGED)
    if _SURROGATE.search(text):
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return unicodedata.normalize("NFC", text.translate(_CHANGED))


def one_line(text: str) -> str:
    """A title, a header or a cell: white space of all kinds becomes single spaces."""
    return " ".join(clean(text).split())


def bullet_line(line: str) -> str:
    """A list item's line with its bullet as "- "; any other line as it is."""
    return _BULLET.sub(r"\1- ", line, count=1)


def table_row(cells: list[str]) -> str:
    """Cells as one line; what divides them is escaped inside them."""
    return " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in cells)


def strip_markup(text: str) -> str:
    """HTML without its tags, a line for each block or row: where no HTML reader is at hand."""
    import html

    bare = _CELLS.sub(" | ", _COMMENT.sub("", text).replace("\n", " "))
    bare = _TAG.sub("", _BREAK.sub("\n", bare))
    lines = (_SPACES.sub(" ", line).strip() for line in clean(html.unescape(bare)).split("\n"))
    return "\n".join(line for line in lines if line)

"""Characters of RTF: code pages by font, words that stand for one character, symbol fonts."""

from __future__ import annotations

from ragx.documents.formats.charsets import known

__all__ = ["CHARSETS", "SYMBOLS", "code_page", "symbol_text"]

# What \fcharset means. 0 and 1 are the document's own code page.
CHARSETS = {
    77: "mac_roman", 78: "shift_jis", 128: "cp932", 129: "cp949", 130: "johab", 134: "gbk",
    136: "cp950", 161: "cp1253", 162: "cp1254", 163: "cp1258", 177: "cp1255", 178: "cp1256",
    186: "cp1257", 204: "cp1251", 222: "cp874", 238: "cp1250", 254: "cp437", 255: "cp850",
}  # fmt: skip

# Code pages that go by other names than their number.
_PAGES = {708: "cp720", 936: "gbk", 10000: "mac_roman", 10006: "mac_greek", 10007: "mac_cyrillic",
          10029: "mac_latin2", 10081: "mac_turkish", 65001: "utf-8"}  # fmt: skip
# Control words and symbols that are text.
SYMBOLS = {
    "tab": "\t", "line": "\n", "lquote": "‘", "rquote": "’", "ldblquote": "“", "rdblquote": "”",
    "bullet": "•", "emdash": "—", "endash": "–", "emspace": " ", "enspace": " ", "qmspace": " ",
    "zwj": "\u200d", "zwnj": "\u200c", "~": " ", "_": "-", "{": "{", "}": "}", "\\": "\\",
    "softline": "\n", "lbr": "\n", "nestcell": " ", "nestrow": " ",
}  # fmt: skip

_GREEK = str.maketrans(
    "ABGDEZHQIKLMNXOPRSTUFCYWabgdezhqiklmnxoprstufcyw",
    "ΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡΣΤΥΦΧΨΩαβγδεζηθικλμνξοπρστυφχψω",
)
_PRIVATE = range(0xF000, 0xF100)
# The few signs of symbol fonts that text is made with.
_SIGNS = {0xA3: "≤", 0xB3: "≥", 0xB1: "±", 0xB4: "×", 0xB8: "÷", 0xB9: "≠", 0xAE: "→", 0xDE: "⇒",
          0xA5: "∞", 0xD2: "®", 0xD3: "©", 0xD4: "™"}  # fmt: skip


def code_page(number: int) -> str:
    """Name of the codec for a code page's number; "" if there is none."""
    return known(_PAGES.get(number, f"cp{number}"))


def symbol_text(text: str, *, greek: bool) -> str:
    """What characters of a symbol font mean: Greek in "Symbol", else pictures, shown as bullets."""
    if not greek:
        return "".join("•" if not char.isspace() else char for char in text)
    return "".join(_symbol(char) for char in text)


def _symbol(char: str) -> str:
    code = ord(char)
    if code in _PRIVATE:
        code -= _PRIVATE.start
    if code < 0x80:
        return chr(code).translate(_GREEK)
    return _SIGNS.get(code, "•")

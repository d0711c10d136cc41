"""Which charsets a document may name: encodings of text alone, each read in linear time.

A name in a file is chosen by whoever wrote it. Python knows codecs by such names that run for
seconds on what a page may hold ("punycode", "idna"), that run escapes ("unicode_escape"), that are
no encodings at all ("zlib"), or that differ by machine ("mbcs", "oem"). None of them is looked up:
a name is read off a list, and what is not on it counts as unknown.
"""

from __future__ import annotations

import codecs
import re
from encodings.aliases import aliases
from functools import cache

__all__ = ["known", "meant"]

# By the names of their modules. Left out on purpose: EBCDIC, which no document declares that can
# be read as far as its declaration, and UTF-7, in which plain text turns into something else.
_CODECS = frozenset(
    "utf_8 utf_8_sig utf_16 utf_16_le utf_16_be utf_32 utf_32_le utf_32_be ascii latin_1 iso8859_1"
    " iso8859_2 iso8859_3 iso8859_4 iso8859_5 iso8859_6 iso8859_7 iso8859_8 iso8859_9 iso8859_10"
    " iso8859_11 iso8859_13 iso8859_14 iso8859_15 iso8859_16"
    " cp1250 cp1251 cp1252 cp1253 cp1254 cp1255 cp1256 cp1257 cp1258"
    " cp437 cp720 cp737 cp775 cp850 cp852 cp855 cp856 cp857 cp858 cp860 cp861 cp862 cp863 cp864"
    " cp865 cp866 cp869 cp874 cp1006 cp1125"
    " koi8_r koi8_u koi8_t kz1048 ptcp154 hp_roman8 tis_620"
    " mac_arabic mac_croatian mac_cyrillic mac_farsi mac_greek mac_iceland mac_latin2 mac_roman"
    " mac_romanian mac_turkish"
    " shift_jis shift_jis_2004 shift_jisx0213 cp932 euc_jp euc_jis_2004 euc_jisx0213"
    " iso2022_jp iso2022_jp_1 iso2022_jp_2 iso2022_jp_2004 iso2022_jp_3 iso2022_jp_ext"
    " gb2312 gbk gb18030 hz big5 big5hkscs cp950 euc_kr cp949 johab iso2022_kr".split()
)
# Names in use that Python's own list lacks, written as `_bare` leaves them.
_MORE = {"unicode11utf8": "utf_8", "macce": "mac_latin2", "iso88598i": "iso8859_8",
         "iso88598e": "iso8859_8", "iso88596i": "iso8859_6", "iso88596e": "iso8859_6",
         "cp51932": "euc_jp", "cp54936": "gb18030", "koi8ru": "koi8_u",
         "windows31j": "cp932", "cswindows31j": "cp932"}  # fmt: skip
# Writers mean the larger set by these names, as browsers have it.
_LARGER = {"iso8859-1": "cp1252", "iso8859-9": "cp1254", "iso8859-11": "cp874", "tis-620": "cp874",
           "gb2312": "gb18030", "gbk": "gb18030", "big5": "cp950", "shift_jis": "cp932",
           "euc_kr": "cp949"}  # fmt: skip
_LONGEST_NAME = 60
_PUNCTUATION = re.compile("[^a-z0-9]+")
_CODE_PAGE = re.compile(r"(?:windows|ibm|dos|ms|cp)(\d{2,5})")


def known(name: str) -> str:
    """The codec of a charset, as Python names it: "cp1251" for "Windows-1251".

    Case and punctuation do not matter.

    Returns:
        "" for what is no charset of documents.
    """
    if len(name) > _LONGEST_NAME:
        return ""
    bare = _bare(name)
    names = _names()
    for form in (bare, bare.removeprefix("x")):
        page = _CODE_PAGE.fullmatch(form)
        codec = names.get(form) or (names.get(f"cp{page[1]}") if page else "")
        if codec:
            return codec
    return ""


def meant(name: str) -> str:
    """As `known`, but the larger set where writers use a name for more than it stands for."""
    codec = known(name)
    return _LARGER.get(codec, codec)


@cache
def _names() -> dict[str, str]:
    listed = {name: name for name in _CODECS}
    listed |= {alias: name for alias, name in aliases.items() if name in _CODECS}
    listed |= _MORE
    return {_bare(name): codecs.lookup(codec).name for name, codec in listed.items()}


def _bare(name: str) -> str:
    return _PUNCTUATION.sub("", name.lower())

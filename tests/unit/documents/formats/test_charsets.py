"""Charsets: what documents name is found, and nothing that is no charset is ever used."""

from __future__ import annotations

import codecs
import pkgutil
from encodings import __path__ as codec_path
from encodings.aliases import aliases

import pytest

from ragx.documents.formats.base import ExtractLimits
from ragx.documents.formats.charsets import known, meant
from ragx.documents.formats.mail.document import extract as extract_mail
from ragx.documents.formats.markup.html import decode_markup, is_document
from ragx.documents.formats.markup.html import extract as extract_html
from ragx.documents.formats.rtf.document import extract as extract_rtf
from ragx.documents.formats.rtf.text import CHARSETS, code_page

LIMITS = ExtractLimits()
# Every name by which Python finds a codec, some only on Windows.
NAMES = sorted(
    {*aliases, *aliases.values(), *(each.name for each in pkgutil.iter_modules(codec_path))}
)
NEVER = (
    "punycode idna unicode_escape raw_unicode_escape unicode-escape utf-7 utf_7 u7 unicode_internal"
    " mbcs oem ansi dbcs undefined charmap palmos aliases base64 hex zlib bz2 rot13 quopri uu"
    " cp037 cp500 cp1026 cp1140 cp875 string_escape"
).split()  # fmt: skip


@pytest.mark.parametrize(
    ("name", "codec"),
    [
        ("UTF-8", "utf-8"),
        ("utf8", "utf-8"),
        ("UTF-16LE", "utf-16-le"),
        ("us-ascii", "ascii"),
        ("ANSI_X3.4-1968", "ascii"),
        ("Latin-1", "iso8859-1"),
        ("ISO-8859-15", "iso8859-15"),
        ("ISO-8859-8-I", "iso8859-8"),
        ("Windows-1251", "cp1251"),
        ("x-cp1251", "cp1251"),
        ("windows-874", "cp874"),
        ("IBM866", "cp866"),
        ("cp437", "cp437"),
        ("KOI8-R", "koi8-r"),
        ("koi8-u", "koi8-u"),
        ("macintosh", "mac-roman"),
        ("x-mac-cyrillic", "mac-cyrillic"),
        ("Shift_JIS", "shift_jis"),
        ("x-sjis", "shift_jis"),
        ("windows-31j", "cp932"),
        ("EUC-JP", "euc_jp"),
        ("ISO-2022-JP", "iso2022_jp"),
        ("csISO2022JP", "iso2022_jp"),
        ("GB2312", "gb2312"),
        ("x-gbk", "gbk"),
        ("gb18030", "gb18030"),
        ("Big5-HKSCS", "big5hkscs"),
        ("ks_c_5601-1987", "euc_kr"),
        ("TIS-620", "tis-620"),
        ('"utf-8" ', "utf-8"),
    ],
)
def test_charsets_have_many_names(name: str, codec: str) -> None:
    assert known(name) == codec


@pytest.mark.parametrize(
    "name", [*NEVER, "", "-", "é", "no-such-thing", "utf-8" * 20, "cp" + "9" * 50]
)
def test_what_is_no_charset_is_unknown(name: str) -> None:
    assert known(name) == ""
    assert meant(name) == ""


@pytest.mark.parametrize("name", NAMES)
def test_what_is_known_is_an_encoding_of_text_that_reads_any_bytes(name: str) -> None:
    codec = known(name)
    if codec:
        assert codecs.lookup(codec).name == codec
        assert codecs.lookup(aliases.get(name, name)).name == codec
        assert isinstance(bytes(range(256)).decode(codec, "replace"), str)
        assert "abc" in "abc".encode(codec).decode(codec)
    assert bool(codec) == bool(meant(name))


def test_the_larger_set_is_meant() -> None:
    assert meant("iso-8859-1") == "cp1252"
    assert meant("GB2312") == meant("gbk") == "gb18030"
    assert meant("shift-jis") == "cp932"
    assert meant("utf-8") == "utf-8"
    assert meant("us-ascii") == "ascii"


@pytest.mark.parametrize("name", [*NAMES, *NEVER])
@pytest.mark.parametrize("tail", [b"caf\xe9 au lait, bient\xf4t", b"\\x41 +AGE- xn--a-b abc\xff"])
def test_no_name_of_a_codec_fails_a_page_or_a_mail(name: str, tail: bytes) -> None:
    word = name.encode()
    for page in (
        b"<meta charset=" + word + b"><p>words, " + tail,
        b'<?xml version="1.0" encoding="' + word + b'"?><html><p>words, ' + tail,
    ):
        assert extract_html(page, LIMITS).blocks
        is_document(page)
    head = b"From: a@b\nSubject: =?" + word + b"?q?caf=E9?=\nContent-Type: text/plain; charset="
    name_in = b"Content-Disposition: inline; filename*=" + word + b"''a%E9-b.txt\n"
    for more in (b"", name_in, b"Content-Transfer-Encoding: base64\n", b"MIME-Version: 1.0\n"):
        assert extract_mail(head + word + b"\n" + more + b"\nwords, " + tail, LIMITS).blocks


@pytest.mark.parametrize("name", NEVER)
def test_what_is_no_charset_changes_nothing(name: str) -> None:
    plain = b"caf\xe9 au lait \\u0041 +AGE-"
    page = b"<meta charset=%s><p>" + plain
    assert decode_markup(page % name.encode())[-len(plain) :] == plain.decode("cp1252")
    mail = b"From: a@b\nContent-Type: text/plain; charset=%s\n\n" + plain
    assert extract_mail(mail % name.encode(), LIMITS).blocks[-1].text == plain.decode("cp1252")


def test_python_is_never_asked_for_a_codec_by_an_unknown_name() -> None:
    """What it is asked for and does not have reaches the functions that are registered."""
    asked: list[str] = []

    def search(name: str) -> None:
        asked.append(name)

    codecs.register(search)
    try:
        page = b'<?xml version="1.0" encoding="x-odd"?><html><p>' + b"\xe9-a" * 30_000
        assert is_document(page)
        extract_html(page, LIMITS)
        head = (
            b"From: =?x-odd?q?=E9?= <a@b>\nContent-Type: text/plain; charset=x-odd; name*=x-odd''a"
        )
        for encoding in (b"8bit", b"base64", b"quoted-printable"):
            mail = head + b"\nContent-Transfer-Encoding: " + encoding + b"\n\ncaf\xe9 abcd"
            extract_mail(mail, LIMITS)
    finally:
        codecs.unregister(search)
    assert [name for name in asked if "odd" in name] == []


@pytest.mark.parametrize("number", [37, 500, 1026, 1140, 65000, 0, -1, 7, 99999, 10**19])
def test_code_pages_of_rtf_that_are_no_charsets(number: int) -> None:
    assert code_page(number) == ""
    raw = b"{\\rtf1\\ansi\\ansicpg%d caf\\'e9}" % number
    assert extract_rtf(raw, LIMITS).blocks[0].text == "café"


def test_code_pages_of_rtf_are_charsets() -> None:
    assert code_page(65001) == "utf-8"
    assert code_page(1251) == "cp1251"
    assert code_page(936) == "gbk"
    assert code_page(10007) == "mac-cyrillic"
    assert [codec for codec in CHARSETS.values() if not known(codec)] == []

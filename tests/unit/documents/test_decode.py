from __future__ import annotations

import codecs
import random
import time

import pytest

from ragx.documents.decode import ByteMap, LineMap, decode, looks_binary
from ragx.errors import ExtractionError

JAPANESE = "これは日本語のテキストです。文字コードの判定を確認します。カタカナも含みます。\n"
RUSSIAN = "Привет, мир! Это простой текст на русском языке для проверки кодировки.\n"


def refused(raw: bytes) -> bool:
    with pytest.raises(ExtractionError) as caught:
        decode(raw)
    return caught.value.code == "binary" and looks_binary(raw[:8192])


@pytest.mark.parametrize("raw", [b"", b"\n\n", b"   \t\n", b"plain ascii\n", "naïve 🐘".encode()])
def test_utf8_needs_no_note(raw: bytes) -> None:
    got = decode(raw)
    assert (got.text, got.encoding, got.bom_bytes, got.note) == (raw.decode(), "utf-8", 0, "")


@pytest.mark.parametrize(
    ("bom", "encoding"),
    [
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
        (codecs.BOM_UTF32_LE, "utf-32-le"),
        (codecs.BOM_UTF32_BE, "utf-32-be"),
    ],
)
@pytest.mark.parametrize("text", ["", "# Heading\n", "日本 🐘\r\n"])
@pytest.mark.parametrize("marks", [1, 2])
def test_marks_are_counted_and_not_in_the_text(
    bom: bytes, encoding: str, text: str, marks: int
) -> None:
    raw = bom * marks + text.encode(encoding)
    got = decode(raw)
    assert (got.text, got.encoding, got.bom_bytes) == (text, encoding, len(bom) * marks)
    assert not looks_binary(raw)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
@pytest.mark.parametrize(
    "text", ["hi\n", "int main() { return 0; }\n" * 900, "日本語の文 a\n" * 30]
)
def test_wide_encodings_without_a_mark_are_text(encoding: str, text: str) -> None:
    raw = text.encode(encoding)
    got = decode(raw)
    assert (got.text, got.encoding, got.bom_bytes) == (text, encoding, 0)
    assert encoding in got.note
    assert not looks_binary(raw[:8192])


def test_one_windows_byte_does_not_stop_a_file() -> None:
    got = decode(b"price \x96 5\n")
    assert (got.text, got.encoding) == ("price \u2013 5\n", "cp1252")
    assert "cp1252" in got.note


@pytest.mark.parametrize(
    ("text", "encoding", "expected"),
    [
        ("Les élèves étaient très contents, à côté du château.\n", "cp1252", "cp1252"),
        ("Die Straße führt über größere Brücken. Natürlich!\n", "latin-1", "cp1252"),
        ("# Author: José\nx = 1  # größer\n", "cp1252", "cp1252"),
        (
            "Zażółć gęślą jaźń. Proszę powiedzieć, że książka leży na stole w różnych miejscach.\n",
            "cp1250",
            "cp1250",
        ),
        (RUSSIAN, "cp1251", "cp1251"),
        (RUSSIAN, "koi8_r", "koi8_r"),
        (JAPANESE, "cp932", "cp932"),
        (JAPANESE, "euc_jp", "euc_jp"),
        ("这是一个简单的中文文本，用于检查编码检测。我们希望它能够正确工作。\n", "gbk", "gb18030"),
        ("這是一個簡單的中文文本，用於檢查編碼檢測。我們希望它能夠正確工作。\n", "big5", "cp950"),
        (
            "이것은 한국어 텍스트입니다. 문자 인코딩을 확인하기 위한 예제입니다.\n",
            "euc_kr",
            "cp949",
        ),
    ],
)
@pytest.mark.parametrize("copies", [1, 200])
def test_legacy_encodings_are_detected(
    text: str, encoding: str, expected: str, copies: int
) -> None:
    got = decode((text * copies).encode(encoding))
    assert (got.encoding, got.text) == (expected, text * copies)
    assert got.note == f"not UTF-8, read as {expected}"


def test_detection_looks_where_the_foreign_bytes_are() -> None:
    text = "x = 1\n" * 40_000 + RUSSIAN * 5
    assert decode(text.encode("cp1251")).text == text


def test_bytes_that_no_legacy_codec_knows_are_latin1() -> None:
    got = decode(b"a\x81b")
    assert (got.text, got.encoding) == ("a\x81b", "latin-1")


def test_two_codes_for_one_character_keep_the_offsets() -> None:
    # cp932 reads 0x8790 and 0x81E0 as the same sign and writes only the latter.
    raw = JAPANESE.encode("cp932") + b"\x87\x90\n" + JAPANESE.encode("cp932")
    got = decode(raw)
    assert got.encoding == "cp932"
    at = len(JAPANESE)
    start, end = ByteMap(got.text, got.encoding, 0).byte_offsets([at, at + 1])
    assert raw[start:end] == b"\x87\x90"


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("😀é".encode()[:-1], "😀"),
        (codecs.BOM_UTF8 + "ab日".encode()[:-2], "ab"),
        (codecs.BOM_UTF16_LE + "ab".encode("utf-16-le") + b"\x41", "ab"),
        (b"caf\xe9", "café"),
    ],
)
def test_a_cut_last_character_costs_only_itself(raw: bytes, text: str) -> None:
    assert decode(raw).text == text


@pytest.mark.parametrize(
    "raw",
    [
        b"%PDF-1.7\nreadable all the way\n",
        b"PK\x03\x04stuff",
        b"\x89PNG\r\n\x1a\nstuff",
        b"\x7fELFstuff",
        b"GIF89a stuff",
        b"text with a \0 in it",
        codecs.BOM_UTF8 + b"a\0b",
        b"\x01\x02\x03\x04 abc \x05\x06",
        b"\0" * 64,
        bytes(range(256)),
        random.Random(7).randbytes(4000),
        codecs.BOM_UTF16_LE + b"\x00\xd8\x41\x00",
        b"".join(i.to_bytes(2, "little") for i in range(1, 900)),
    ],
)
def test_what_is_not_text_is_refused(raw: bytes) -> None:
    assert refused(raw)


def test_a_nul_far_into_a_text_stays_in_it() -> None:
    raw = b"line\n" * 2000 + b"a\0b\n"
    assert decode(raw).text == raw.decode()
    assert not looks_binary(raw[:8192])


def test_a_head_cut_inside_a_character_is_still_text() -> None:
    assert not looks_binary(("a" + "é" * 5000).encode()[:8192])
    assert not looks_binary((codecs.BOM_UTF16_LE + ("a" + "🐘" * 4000).encode("utf-16-le"))[:8192])


def test_terminal_logs_are_text() -> None:
    assert not looks_binary(b"\x1b[31merror\x1b[0m progress\b\b\b done\r\n" * 9)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", []),
        ("a\nb", [1, 1, 2]),
        ("a\r\nb", [1, 1, 1, 2]),
        ("a\rb", [1, 1, 2]),
        ("\r\r\n\n\ra", [1, 2, 2, 3, 4, 5]),
        ("a\u2028b\x0bc\x85d\n", [1] * 8),
    ],
)
def test_lines_end_at_lf_crlf_and_cr_only(text: str, lines: list[int]) -> None:
    where = LineMap(text)
    assert [where.line_of(i) for i in range(len(text))] == lines


def test_the_end_of_a_text_has_a_line() -> None:
    assert LineMap("").line_of(0) == 1
    assert LineMap("a\n").line_of(2) == 2
    assert LineMap("a\r\n").line_of(3) == 2


def test_maps_of_a_large_text_are_fast() -> None:
    line = "Zeile mit Umläuten und 🐘, mehr nicht.\r\n"
    text = line * 100_000
    raw = text.encode()
    begin = time.perf_counter()
    offsets = list(range(0, len(text), 700))
    mapped = ByteMap(text, "utf-8", 0).byte_offsets(offsets)
    single = ByteMap(text, "utf-8", 0)
    lines = LineMap(text)
    for offset, byte in zip(offsets, mapped, strict=True):
        assert single.byte_offset(offset) == byte
        assert lines.line_of(offset) == 1 + offset // len(line)
    assert raw[mapped[-1] :].decode() == text[offsets[-1] :]
    assert time.perf_counter() - begin < 5  # linear work takes a tenth of it

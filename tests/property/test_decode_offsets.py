from __future__ import annotations

import codecs
import re

from hypothesis import given, settings
from hypothesis import strategies as st

from ragx.documents.decode import ByteMap, LineMap, decode, looks_binary
from ragx.errors import ExtractionError

ENCODINGS = {
    "utf-8": codecs.BOM_UTF8,
    "utf-16-le": codecs.BOM_UTF16_LE,
    "utf-16-be": codecs.BOM_UTF16_BE,
    "utf-32-le": codecs.BOM_UTF32_LE,
    "utf-32-be": codecs.BOM_UTF32_BE,
}
LEGACY = ["cp1252", "cp1250", "cp1251", "koi8_r", "cp932", "euc_jp", "gb18030", "cp950", "cp949"]
WORDS = [
    "the ",
    "élan",
    "Привет ",
    "日本語",
    "中文，",
    "한국어",
    "ñ",
    "\n",
    "\r\n",
    "=",
    "🐘",
    "e\u0301",
]

texts = st.one_of(st.text(max_size=80), st.lists(st.sampled_from(WORDS), max_size=60).map("".join))


@st.composite
def raws(draw: st.DrawFn) -> bytes:
    kind = draw(st.integers(0, 3))
    if kind == 0:
        return draw(st.binary(max_size=120))
    text = draw(texts)
    if kind == 1:
        encoding = draw(st.sampled_from(list(ENCODINGS)))
        return ENCODINGS[encoding] * draw(st.integers(0, 2)) + text.encode(encoding)
    raw = text.encode(draw(st.sampled_from(LEGACY)), "replace")
    if kind == 3 and raw:
        at = draw(st.integers(0, len(raw) - 1))
        raw = raw[:at] + draw(st.binary(min_size=1, max_size=2)) + raw[at:]
    return raw


@settings(max_examples=500, deadline=None)
@given(raws(), st.data())
def test_every_range_is_the_bytes_on_disk(raw: bytes, data: st.DataObject) -> None:
    try:
        got = decode(raw)
    except ExtractionError:
        return
    assert not looks_binary(raw[:8192])
    size = len(got.text)
    cuts = sorted(data.draw(st.lists(st.integers(0, size), min_size=2, max_size=6)))
    mapping = ByteMap(got.text, got.encoding, got.bom_bytes)
    offsets = mapping.byte_offsets(cuts)
    assert offsets == [mapping.byte_offset(cut) for cut in cuts]
    for start, end, low, high in zip(cuts, cuts[1:], offsets, offsets[1:], strict=False):
        assert raw[low:high].decode(got.encoding) == got.text[start:end]
    assert mapping.byte_offset(0) == got.bom_bytes
    if not got.note.startswith("ends inside"):
        assert mapping.byte_offset(size) == len(raw)


@settings(max_examples=200, deadline=None)
@given(texts)
def test_marked_text_comes_back(text: str) -> None:
    if "\0" in text or text.startswith("\ufeff") or decode_is_control_ridden(text):
        return
    for encoding, bom in ENCODINGS.items():
        assert decode(bom + text.encode(encoding)).text == text


def decode_is_control_ridden(text: str) -> bool:
    return bool(re.search(r"[\x01-\x07\x0e-\x1a\x1c-\x1f\x7f]", text)) or text.startswith(
        ("%PDF-", "PK", "GIF8", "BZh", "wOF", "Rar!", "!<arch>", "SQLite")
    )


@given(
    st.lists(st.sampled_from(["a", "\r", "\n", "\r\n", "\u2028", "é"]), max_size=40).map("".join)
)
def test_lines_are_those_of_a_split(text: str) -> None:
    where = LineMap(text)
    starts = [0, *(match.end() for match in re.finditer(r"\r\n|\r|\n", text))]
    for offset in range(len(text) + 1):
        assert where.line_of(offset) == sum(start <= offset for start in starts)

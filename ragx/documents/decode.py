"""Bytes of a text file -> characters, and the way back from characters to bytes and lines.

The promise everything else rests on: for every `raw` that `decode` accepts, with `ByteMap` giving
the byte offsets of any character range,
`raw[byte_start:byte_end].decode(encoding) == text[start:end]`.
Hence `encoding` always names a stateless codec of fixed byte order ("utf-16-le", never
"utf-16"), and byte-order marks are counted in `bom_bytes` instead of standing in the text.
"""

from __future__ import annotations

import codecs
import re
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from ragx.errors import ExtractionError

__all__ = ["SNIFF_BYTES", "ByteMap", "Decoded", "LineMap", "decode", "looks_binary"]

SNIFF_BYTES = 8192
_SAMPLE_BYTES = 65536

# The UTF-32 mark begins with the UTF-16 one, so it is tried first.
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)

# Formats whose first bytes are text-like enough to pass the other tests; one is enough.
_MAGIC = (
    b"%PDF-",
    b"PK\x03\x04",
    b"PK\x05\x06",
    b"\x89PNG",
    b"\x7fELF",
    b"\xff\xd8\xff",
    b"GIF87a",
    b"GIF89a",
    b"\x1f\x8b",
    b"BZh91AY&SY",
    b"\xfd7zXZ",
    b"7z\xbc\xaf\x27\x1c",
    b"Rar!\x1a\x07",
    b"\x28\xb5\x2f\xfd",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
    b"\xca\xfe\xba\xbe",
    b"SQLite format 3",
    b"OggS\x00",
    b"wOF2",
    b"wOFF",
    b"!<arch>\n",
)

# Whitespace, backspace and escape (terminal logs) are ordinary in text files.
_CONTROLS = bytes(set(range(32)) - set(b"\t\n\v\f\r\b\x1b")) + b"\x7f"
_MAX_CONTROL_SHARE = 0.05

_SINGLE_BYTE = (
    "cp1252",
    "cp1250",
    "cp1251",
    "koi8_r",
    "cp1253",
    "cp1254",
    "cp1255",
    "cp1256",
    "cp1257",
    "cp866",
    "cp874",
)
# Stateless, and one character per byte sequence. ISO-2022, HZ and UTF-7 carry state and the
# JIS X 0213 and HKSCS codecs map some sequences to two characters, so none of them is here.
_MULTI_BYTE = ("cp932", "euc_jp", "gb18030", "cp950", "cp949")
_FIXED_WIDTH = {
    **dict.fromkeys((*_SINGLE_BYTE, "latin-1", "iso8859_1", "ascii"), 1),
    "utf-32-le": 4,
    "utf-32-be": 4,
}
_ASCII_COMPATIBLE = frozenset((*_MULTI_BYTE, "utf-8"))

_HIGH_BYTE = re.compile(rb"[\x80-\xff]")
_HIGH_RUN = re.compile(rb"[\x80-\xff]+")
_LONE_CR = re.compile(r"\r(?!\n)")
_LINE_END = re.compile(r"\r\n?|\n")


@dataclass(frozen=True, slots=True)
class Decoded:
    """Text of one file.

    `encoding` decodes any slice of the raw bytes that falls on character borders; `bom_bytes`
    precede the first character; `note` is empty or says what had to be assumed.
    """

    text: str
    encoding: str
    bom_bytes: int
    note: str


def looks_binary(head: bytes) -> bool:
    """Tell from a file's first 8 KiB whether it is something other than text.

    UTF-16 and UTF-32, marked or not, are text. Empty input is text.
    """
    return _sniff(head[:SNIFF_BYTES]) is None


def decode(raw: bytes) -> Decoded:
    """Decode a whole file, trying what is certain before what is likely.

    The order: byte-order mark, strict UTF-8, unmarked UTF-16/32, a detected legacy encoding,
    Latin-1. A file cut off inside its last character loses that character alone. Empty input
    gives empty text.

    Raises:
        ExtractionError: code "binary"; the bytes are not text.
    """
    head = raw[:SNIFF_BYTES]
    guess = _sniff(head)
    if guess is None:
        raise ExtractionError("not a text file", code="binary")
    marked, bom_bytes = _bom(raw)
    encoding = marked or guess or "utf-8"
    decoded = _decode_unicode(raw, encoding, bom_bytes)
    if decoded is not None:
        text, note = decoded
        if not guess or marked:
            return Decoded(text, encoding, bom_bytes, note)
        if not note:  # a guess must hold to the last byte
            return Decoded(text, encoding, 0, f"no byte-order mark, read as {guess}")
    if encoding != "utf-8":
        raise ExtractionError(f"looks like {encoding} text but is damaged", code="binary")
    return _decode_legacy(raw, bom_bytes)


def _sniff(head: bytes) -> str | None:
    """None for binary, the Unicode codec that the NUL pattern or mark shows, "" for 8-bit text."""
    encoding, bom_bytes = _bom(head)
    if encoding and encoding != "utf-8":
        sample = _sample_text(head[bom_bytes:], encoding)
        return encoding if sample is not None and _is_clean(sample) else None
    body = head[bom_bytes:]
    if body.startswith(_MAGIC):
        return None
    if b"\0" in body:
        return _guess_wide(body) if not bom_bytes else None
    return None if _control_ridden(body) else ""


def _bom(raw: bytes) -> tuple[str, int]:
    """Codec and length of the leading marks; concatenated files can carry more than one."""
    for bom, encoding in _BOMS:
        length = 0
        while raw.startswith(bom, length):
            length += len(bom)
        if length:
            return encoding, length
    return "", 0


def _control_ridden(data: bytes) -> bool:
    return len(data) - len(data.translate(None, _CONTROLS)) > _MAX_CONTROL_SHARE * len(data)


def _is_clean(sample: str) -> bool:
    return "\0" not in sample and not _control_ridden(sample.encode("utf-8"))


def _sample_text(data: bytes, encoding: str) -> str | None:
    """The decodable text of a head that may stop inside a character; None if malformed."""
    try:
        return codecs.getincrementaldecoder(encoding)().decode(data)
    except UnicodeDecodeError:
        return None


def _guess_wide(head: bytes) -> str | None:
    """Find UTF-16/32 by where its NULs stand: ASCII leaves them in fixed columns of each unit."""
    columns = [head[i::4].count(0) for i in range(4)]
    if sum(columns) * 16 < len(head) and _is_utf8(head.replace(b"\0", b"")):
        return None  # 8-bit text with a stray NUL or two: no evidence of wide characters
    candidates = []
    if columns[2] and columns[3] and not columns[0]:
        candidates.append("utf-32-le")
    if columns[0] and columns[1] and not columns[3]:
        candidates.append("utf-32-be")
    # U+0100, U+4E00 and the like put a NUL in the other column now and then.
    even, odd = columns[0] + columns[2], columns[1] + columns[3]
    if odd > 4 * even:
        candidates.append("utf-16-le")
    if even > 4 * odd:
        candidates.append("utf-16-be")
    for encoding in candidates:
        sample = _sample_text(head, encoding)
        if sample and _is_clean(sample) and _reads_as_text(sample):
            return encoding
    return None


def _is_utf8(head: bytes) -> bool:
    return _sample_text(head, "utf-8") is not None


def _reads_as_text(sample: str) -> bool:
    """Random units decode to unassigned and private characters soon; text has next to none."""
    odd = sum(1 for char in set(sample) if not char.isprintable() and not char.isspace())
    return odd * 20 <= len(set(sample))


def _decode_unicode(raw: bytes, encoding: str, bom_bytes: int) -> tuple[str, str] | None:
    """Text and note; None if malformed anywhere but in a cut-off last character."""
    body = raw[bom_bytes:] if bom_bytes else raw
    try:
        return body.decode(encoding), ""
    except UnicodeDecodeError as exc:
        if exc.reason not in ("unexpected end of data", "truncated data"):
            return None
        start = exc.start
    text = body[:start].decode(encoding)
    # Latin-1 text that ends in an accented letter looks the same; it keeps that letter.
    if encoding == "utf-8" and not bom_bytes and text.isascii():
        return None
    return text, "ends inside a character, which is left out"


def _decode_legacy(raw: bytes, bom_bytes: int) -> Decoded:
    body = raw[bom_bytes:] if bom_bytes else raw
    for encoding in _legacy_candidates(body):
        try:
            text = body.decode(encoding)
        except UnicodeDecodeError:
            continue
        if encoding in _FIXED_WIDTH or _lengths_hold(text, body, encoding):
            return Decoded(text, encoding, bom_bytes, f"not UTF-8, read as {encoding}")
    return Decoded(body.decode("latin-1"), "latin-1", bom_bytes, "not UTF-8, read as latin-1")


def _legacy_candidates(body: bytes) -> Iterator[str]:
    sample = _legacy_sample(body)
    if _is_sparse_western(sample) or _is_damaged_utf8(sample):
        yield "cp1252"
        return
    from charset_normalizer import from_bytes

    matches = list(from_bytes(sample, cp_isolation=[*_SINGLE_BYTE, *_MULTI_BYTE]))
    if matches:
        best = matches[0]
        western = next((match for match in matches if match.encoding == "cp1252"), None)
        if (
            western and western.chaos <= best.chaos and western.coherence >= best.coherence
        ) or _same_text(sample, best.encoding, "cp1252"):
            yield "cp1252"
    for match in matches:
        yield match.encoding
    yield "cp1252"


def _legacy_sample(body: bytes) -> bytes:
    """At most 64 KiB around the first byte that is not ASCII, cut where no character can be."""
    first = _HIGH_BYTE.search(body)
    begin = max(0, first.start() - 1024) if first else 0
    end = begin + _SAMPLE_BYTES
    if end >= len(body):
        return body[begin:]
    for stop in (b"\n", b" "):
        cut = body.rfind(stop, begin, end)
        if cut > begin:
            return body[begin:cut]
    return body[begin:end]


def _is_sparse_western(sample: bytes) -> bool:
    """A handful of single accented letters or typographic marks: too little for a detector."""
    runs = _HIGH_RUN.findall(sample)
    return len(runs) < 10 and all(len(run) <= 2 for run in runs)


def _is_damaged_utf8(sample: bytes) -> bool:
    """Mostly well-formed UTF-8 with a stray byte, which a detector takes for anything at all."""
    text = sample.decode("utf-8", "replace")
    broken = text.count("\ufffd")
    well_formed = sum(1 for char in text if char > "\x7f") - broken
    return well_formed > 4 * broken


def _same_text(sample: bytes, encoding: str, other: str) -> bool:
    try:
        return sample.decode(encoding) == sample.decode(other)
    except UnicodeDecodeError:
        return False


def _lengths_hold(text: str, body: bytes, encoding: str) -> bool:
    """Whether encoding each character takes as many bytes as decoding it consumed.

    Equality of the bytes proves it. Where a codec reads two codes as one character (cp932 does),
    the lines that differ are walked; no line feed can be part of a longer sequence.
    """
    try:
        again = text.encode(encoding)
        if again == body:
            return True
        if len(again) != len(body):
            return False
        raw_lines, lines = body.split(b"\n"), text.split("\n")
        if len(raw_lines) != len(lines):
            return False
        return all(
            raw_line == line.encode(encoding) or _line_lengths_hold(line, raw_line, encoding)
            for raw_line, line in zip(raw_lines, lines, strict=True)
        )
    except UnicodeEncodeError:
        return False


def _line_lengths_hold(line: str, raw_line: bytes, encoding: str) -> bool:
    at = 0
    for char in line:
        end = at + len(char.encode(encoding))
        if raw_line[at:end].decode(encoding, "ignore") != char:
            return False
        at = end
    return at == len(raw_line)


class ByteMap:
    """Character offsets of a decoded text -> byte offsets in the raw file.

    Constant time for ASCII text and fixed-width encodings; otherwise near-linear over all
    offsets asked for together, and one block's encoding for a single one.
    """

    __slots__ = ("_bom_bytes", "_encoding", "_marks", "_text", "_width")

    _BLOCK = 4096

    def __init__(self, text: str, encoding: str, bom_bytes: int) -> None:
        self._text = text
        self._encoding = encoding
        self._bom_bytes = bom_bytes
        self._marks: array[int] | None = None
        width = _FIXED_WIDTH.get(encoding, 0)
        if encoding in _ASCII_COMPATIBLE and text.isascii():
            width = 1
        elif encoding in ("utf-16-le", "utf-16-be") and len(text.encode(encoding)) == 2 * len(text):
            width = 2
        self._width = width

    def byte_offset(self, char_offset: int) -> int:
        """Byte offset in the raw file (marks counted) of the character offset, 0 to len(text)."""
        if self._width:
            return self._bom_bytes + self._width * char_offset
        if self._marks is None:
            self._marks = array("q", self._block_starts())
        block = char_offset // self._BLOCK
        begin = block * self._BLOCK
        return self._marks[block] + len(self._text[begin:char_offset].encode(self._encoding))

    def byte_offsets(self, char_offsets: Sequence[int]) -> list[int]:
        """Byte offsets of many character offsets, which must be in ascending order."""
        if self._width:
            base, width = self._bom_bytes, self._width
            return [base + width * offset for offset in char_offsets]
        text, encoding = self._text, self._encoding
        at, byte = 0, self._bom_bytes
        result = []
        for offset in char_offsets:
            byte += len(text[at:offset].encode(encoding))
            at = offset
            result.append(byte)
        return result

    def _block_starts(self) -> Iterator[int]:
        text, encoding, size = self._text, self._encoding, self._BLOCK
        lengths = (len(text[i : i + size].encode(encoding)) for i in range(0, len(text), size))
        return accumulate(lengths, initial=self._bom_bytes)


class LineMap:
    """Character offsets of a text -> line numbers from 1; lines end at LF, CRLF and lone CR."""

    __slots__ = ("_starts",)

    def __init__(self, text: str) -> None:
        if "\r" in text and _LONE_CR.search(text):
            starts = [0, *(match.end() for match in _LINE_END.finditer(text))]
            self._starts = array("q", starts)
        else:
            # Every CR is part of a CRLF, so line feeds alone mark the line ends.
            lengths = (len(line) + 1 for line in text.split("\n"))
            self._starts = array("q", accumulate(lengths, initial=0))
            self._starts.pop()

    def line_of(self, char_offset: int) -> int:
        """Line that holds the character; a line's end belongs to it. len(text) is accepted."""
        return bisect_right(self._starts, char_offset)

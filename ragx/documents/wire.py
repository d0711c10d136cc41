"""What crosses the border between ragx and the process that reads documents.

A frame is two lengths (4 bytes each, big-endian), a header in JSON and a body of bytes. Nothing
is unpickled, and ragx believes nothing of what it receives: a document may have taken over the
process that read it. `checked` is the customs.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import replace
from io import FileIO
from typing import Any, get_args

import orjson

from ragx.documents.formats.base import (
    Block,
    BlockKind,
    Extracted,
    ExtractLimits,
    Link,
    Place,
    SkippedPart,
    from_wire,
)

__all__ = [
    "MAX_HEADER_BYTES",
    "Frame",
    "WireError",
    "checked",
    "max_reply_bytes",
    "one_line",
    "read_frame",
    "write_frame",
]

Frame = tuple[dict[str, Any], bytes]

MAX_HEADER_BYTES = 1 << 16
_LENGTHS = struct.Struct(">II")
# One write or read; the kernel takes what fits into the pipe.
_STEP = 1 << 20
_KINDS = frozenset(get_args(BlockKind))
_DATE = re.compile(r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])")
# All but tab and line feed. They become spaces, so that the places of links stay right.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_MAX_TITLE_CHARS = 1000
_MAX_TAGS = 200
_MAX_PARTS = 1000
_MAX_NAME_CHARS = 4000
_MAX_NUMBER = 1 << 53
_MAX_LEVEL = 10
_MAX_LINKS = 200_000


class WireError(ValueError):
    """What came over the pipe is not what the protocol says."""


def write_frame(pipe: FileIO, header: dict[str, Any], body: bytes = b"") -> None:
    """Send a frame whole.

    Raises:
        OSError: the other end is gone.
    """
    head = orjson.dumps(header)
    for data in (_LENGTHS.pack(len(head), len(body)) + head, body):
        left = memoryview(data)
        while left:
            left = left[pipe.write(left[:_STEP]) or 0 :]


def read_frame(pipe: FileIO, max_body_bytes: int) -> Frame | None:
    """Receive a frame; None at the end of the pipe.

    Raises:
        OSError: the pipe cannot be read.
        WireError: it is cut off, too large, or its header is no JSON object.
    """
    lengths = _read(pipe, _LENGTHS.size, may_end=True)
    if not lengths:
        return None
    n_header, n_body = _LENGTHS.unpack(lengths)
    if n_header > MAX_HEADER_BYTES or n_body > max_body_bytes:
        raise WireError(f"a message of {n_header + n_body:,} bytes is too large")
    try:
        header = orjson.loads(_read(pipe, n_header))
    except orjson.JSONDecodeError as exc:
        raise WireError("a message's header is not JSON") from exc
    if not isinstance(header, dict):
        raise WireError("a message's header is no object")
    return header, bytes(_read(pipe, n_body))


def _read(pipe: FileIO, n_bytes: int, *, may_end: bool = False) -> bytearray:
    data = bytearray(n_bytes)
    view = memoryview(data)
    at = 0
    while at < n_bytes:
        n_read = pipe.readinto(view[at : at + _STEP]) or 0
        if not n_read:
            if may_end and not at:
                return bytearray()
            raise WireError("a message is cut off")
        at += n_read
    return data


def max_reply_bytes(limits: ExtractLimits) -> int:
    """Bound of an extracted document in JSON: no character takes over six bytes there.

    Blocks and what surrounds them come on top, with room for links.
    """
    return 6 * limits.max_chars + 256 * limits.max_blocks + (16 << 20)


def one_line(text: object, max_chars: int = 300) -> str:
    """The beginning of a text as one printable line."""
    line = "".join(char if char.isprintable() else " " for char in str(text)[: 4 * max_chars])
    line = " ".join(line.split())
    return line if len(line) <= max_chars else line[: max_chars - 1] + "…"


def checked(body: bytes, limits: ExtractLimits) -> Extracted:
    """An extracted document as received.

    What a careless extractor leaves is put right: control characters, blank blocks, a date that
    is none, a title without end.

    Raises:
        WireError: it is none, or exceeds the limits.
    """
    try:
        extracted = from_wire(orjson.loads(body))
        return replace(
            extracted,
            blocks=tuple(_blocks(extracted, limits)),
            title=one_line(_text(extracted.title), _MAX_TITLE_CHARS),
            date=extracted.date if _DATE.fullmatch(_text(extracted.date)) else "",
            tags=tuple(one_line(_text(tag), 200) for tag in extracted.tags[:_MAX_TAGS]),
            skipped_parts=tuple(map(_part, extracted.skipped_parts[:_MAX_PARTS])),
        )
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as exc:
        raise WireError(one_line(f"{type(exc).__name__}: {exc}")) from exc


def _blocks(extracted: Extracted, limits: ExtractLimits) -> Iterator[Block]:
    if len(extracted.blocks) > limits.max_blocks:
        raise WireError(f"{len(extracted.blocks):,} blocks, over {limits.max_blocks:,}")
    places: dict[int, Place] = {}
    n_chars = n_links = 0
    for block in extracted.blocks:
        text = _text(block.text)
        n_chars += len(text)
        if n_chars > limits.max_chars:
            raise WireError(f"over {limits.max_chars:,} characters")
        if block.kind not in _KINDS:
            raise WireError(f"a block of kind {block.kind!r}")
        # Blocks share their places, so each is looked at once.
        place = places.get(id(block.place))
        if place is None:
            place = places[id(block.place)] = _place(block.place)
        level = min(_number(block.level), _MAX_LEVEL)
        _number(block.header_rows)
        n_links += len(block.links)
        if n_links > _MAX_LINKS:
            raise WireError(f"over {_MAX_LINKS:,} links")
        for link in block.links:
            _link(link, len(text))
        language = _text(block.language) and one_line(block.language, 40)
        if _CONTROLS.search(text):
            text = _CONTROLS.sub(" ", text)
        if text.isspace() or not text:
            continue
        same = text is block.text and place is block.place and level == block.level
        if same and language == block.language:
            yield block
        else:
            yield Block(
                block.kind, text, place, level, block.header_rows, block.links, language
            )  # fmt: skip


def _place(place: Place) -> Place:
    name = one_line(_text(place.name), _MAX_NAME_CHARS)
    tidy = Place(
        one_line(_text(place.kind), 40), _number(place.number), name, place.by_line is True
    )
    return place if tidy == place else tidy


def _link(link: Link, n_chars: int) -> None:
    _text(link.target)
    if not 0 <= _number(link.start) < _number(link.end) <= n_chars:
        raise WireError("a link outside its text")


def _part(part: SkippedPart) -> SkippedPart:
    return SkippedPart(
        one_line(_text(part.what), 100), _number(part.count), one_line(_text(part.note))
    )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise WireError(f"{type(value).__name__} in place of text")
    return value


def _number(value: object) -> int:
    if type(value) is not int or not 0 <= value < _MAX_NUMBER:
        raise WireError("a number that is none or out of range")
    return value

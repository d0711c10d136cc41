"""Frames over a real pipe, and the customs at the border."""

from __future__ import annotations

import os
import struct
import threading
from collections.abc import Iterator
from dataclasses import replace
from io import FileIO
from typing import Any

import orjson
import pytest

from ragx.documents.formats.base import (
    Block,
    Extracted,
    ExtractLimits,
    Link,
    Place,
    SkippedPart,
    to_wire,
)
from ragx.documents.wire import (
    MAX_HEADER_BYTES,
    WireError,
    checked,
    max_reply_bytes,
    one_line,
    read_frame,
    write_frame,
)

LIMITS = ExtractLimits()
PAGE = Place("page", 3, "iii")
DOCUMENT = Extracted(
    (
        Block("heading", "Tides", PAGE, level=2),
        Block("text", "see the moon", PAGE, links=(Link(8, 12, "moon.pdf#page=2"),)),
        Block("table", "a | b\n1 | 2", Place("sheet", 7, "S", by_line=True), header_rows=1),
        Block("code", "x\n\ty", PAGE, language="python"),
    ),
    title="Tides",
    date="2024-02-29",
    tags=("sea", "moon"),
    skipped_parts=(SkippedPart("images", 2, "pages 1, 2"),),
)


@pytest.fixture
def pipe() -> Iterator[tuple[FileIO, FileIO]]:
    source, sink = os.pipe()
    with FileIO(source, "r") as reader, FileIO(sink, "w") as writer:
        yield reader, writer


def test_frames_arrive_as_sent_and_an_end_is_none(pipe: tuple[FileIO, FileIO]):
    source, sink = pipe
    body = os.urandom(3 << 20)

    def send() -> None:
        write_frame(sink, {"op": "é"}, body)
        write_frame(sink, {})
        sink.close()

    sender = threading.Thread(target=send)
    sender.start()
    assert read_frame(source, len(body)) == ({"op": "é"}, body)
    assert read_frame(source, 0) == ({}, b"")
    assert read_frame(source, 0) is None
    sender.join()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (struct.pack(">II", 2, 101) + b"{}", "too large"),
        (struct.pack(">II", MAX_HEADER_BYTES + 1, 0), "too large"),
        (struct.pack(">II", 2, 3) + b"{}ab", "cut off"),
        (b"\0\0\0", "cut off"),
        (struct.pack(">II", 2, 0) + b"{]", "not JSON"),
        (struct.pack(">II", 2, 0) + b"[]", "no object"),
        (struct.pack(">II", 0, 0), "not JSON"),
    ],
)
def test_a_frame_that_is_none_is_refused(pipe: tuple[FileIO, FileIO], data: bytes, message: str):
    source, sink = pipe
    sink.write(data)
    sink.close()
    with pytest.raises(WireError, match=message):
        read_frame(source, 100)


def through(document: Extracted, limits: ExtractLimits = LIMITS) -> Extracted:
    return checked(orjson.dumps(to_wire(document)), limits)


def test_a_good_document_passes_unchanged():
    assert through(DOCUMENT) == DOCUMENT
    assert through(Extracted(())) == Extracted(())


def test_the_largest_document_fits_in_a_reply():
    limits = ExtractLimits(max_chars=10_000, max_blocks=10_000)
    worst = Extracted(tuple(Block("text", "\x01", Place("sheet", i)) for i in range(10_000)))
    assert len(orjson.dumps(to_wire(worst))) < max_reply_bytes(limits)


def test_limits_are_kept_to_the_block_and_the_character():
    two = Extracted((Block("text", "abc", PAGE), Block("text", "de", PAGE)))
    assert through(two, ExtractLimits(max_chars=5, max_blocks=2)) == two
    with pytest.raises(WireError, match="over 4 characters"):
        through(two, ExtractLimits(max_chars=4))
    with pytest.raises(WireError, match="2 blocks, over 1"):
        through(two, ExtractLimits(max_blocks=1))


def wire(**changes: Any) -> dict[str, Any]:
    return to_wire(DOCUMENT) | changes


def block(**changes: Any) -> dict[str, Any]:
    names = ("kind", "text", "place", "level", "header_rows", "links", "language")
    values = dict(zip(names, ("text", "abc", 0, 0, 0, [], ""), strict=True)) | changes
    return wire(blocks=[list(values.values())])


@pytest.mark.parametrize(
    "document",
    [
        [],
        {},
        None,
        wire(title=None),
        wire(date=5),
        wire(tags=[1]),
        wire(tags=None),
        wire(skipped_parts=[["images", "two", ""]]),
        wire(skipped_parts=[["images", -1, ""]]),
        wire(skipped_parts=[[]]),
        wire(places=[["page", 1.5, "", False]]),
        wire(places=[["page", True, "", False]]),
        wire(places=[[None, 1, "", False]]),
        wire(places=[["page", 1, None, False]]),
        wire(places=[]),
        wire(blocks=[[]]),
        wire(blocks=5),
        block(kind="picture"),
        block(kind=[]),
        block(text=None),
        block(text=["a"]),
        block(place=9),
        block(place=None),
        block(level=-1),
        block(level=1 << 60),
        block(header_rows="1"),
        block(language=3),
        block(links=[[0, 0, "t"]]),
        block(links=[[0, 4, "t"]]),
        block(links=[[-1, 2, "t"]]),
        block(links=[[0, 1, None]]),
        block(links=[[0, 1]]),
        block(links=5),
    ],
)
def test_what_is_no_document_is_refused(document: Any):
    with pytest.raises(WireError):
        checked(orjson.dumps(document), LIMITS)


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"[" * 100_000, b'"\\ud800"'])
def test_what_is_no_json_is_refused(body: bytes):
    with pytest.raises(WireError):
        checked(body, LIMITS)


@pytest.mark.parametrize("date", ["", "2024", "2024-13-01", "2024-01-00", "x2024-01-01", "today"])
def test_a_date_that_is_none_is_dropped(date: str):
    assert through(replace(DOCUMENT, date=date)).date == ""


def test_control_characters_become_spaces_and_blank_blocks_go():
    untidy = Extracted(
        (
            Block("text", "a\x00b\r\nc\x7f", PAGE, links=(Link(2, 3, "t"),)),
            Block("text", "\x00 \n", PAGE),
            Block("text", "", PAGE),
        ),
        title="one\ntwo\x1b[0m",
    )
    (only,) = through(untidy).blocks
    assert only.text == "a b \nc "
    assert only.text[only.links[0].start : only.links[0].end] == "b"
    assert through(untidy).title == "one two [0m"


def test_a_line_is_one_line():
    assert one_line("a\n\tb\x1b  c\u2028d") == "a b c d"
    assert one_line("x" * 11, 10) == "x" * 9 + "…"
    assert one_line("x" * 10, 10) == "x" * 10
    assert one_line(" " * 10**6) == ""

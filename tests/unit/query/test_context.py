"""Context lines by the letter of SPEC section 5."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
import xxhash

from ragx.query.context import (
    ContextLines,
    FileText,
    lines_after,
    lines_before,
    read_current,
    stored_lines,
)
from ragx.store.base import FileRow
from ragx.types import Chunk, Locator


def read(root: Path, path: str, digest: str, encoding: str = "utf-8") -> FileText:
    return read_current(root, row_of(path, digest, encoding), lambda _: ())


def row_of(path: str, digest: str, encoding: str = "utf-8", extractor: str = "") -> FileRow:
    return FileRow(path, digest, 0, 0, 0, 0, 0, encoding=encoding, extractor=extractor)


#        1        2       3        4        5       6       7
LINES = ("one\n", "\n", "two\n", "three\n", " \n", "\n", "four\n")


def test_n_counts_lines_with_content_and_keeps_the_blank_ones_between() -> None:
    assert lines_before(LINES, 4, 1) == ContextLines(3, 3, "two")
    assert lines_before(LINES, 4, 2) == ContextLines(1, 3, "one\n\ntwo")
    assert lines_before(LINES, 4, 99) == ContextLines(1, 3, "one\n\ntwo")
    assert lines_after(LINES, 1, 1) == ContextLines(2, 3, "\ntwo")
    assert lines_after(LINES, 3, 2) == ContextLines(4, 7, "three\n \n\nfour")


def test_blank_lines_beyond_the_nth_are_not_shown() -> None:
    assert lines_after(LINES, 3, 1) == ContextLines(4, 4, "three")
    assert lines_before(("a\n", "\n", "b\n", "c\n"), 4, 1) == ContextLines(3, 3, "b")


def test_none_available_is_none() -> None:
    assert lines_before(LINES, 1, 5) is None
    assert lines_after(LINES, 7, 5) is None
    assert lines_before(LINES, 4, 0) is None
    assert lines_after(("a\n", "\n", " \n"), 1, 5) is None
    assert lines_before(("\n", "\t\n", "a\n"), 3, 5) is None


def test_text_and_line_range_agree() -> None:
    context = lines_before(("a\n", "\n", "chunk\n"), 3, 1)
    assert context is not None
    assert (context.line_start, context.line_end) == (1, 2)
    assert len(context.text.split("\n")) == 2


@pytest.mark.parametrize(("end", "n"), [("\n", 3), ("\r\n", 3), ("\r", 3)])
def test_line_ends_of_every_kind(tmp_path: Path, end: str, n: int) -> None:
    raw = end.join(["a", "b\u2028b\x0b\x0c\x1c\x85", "c"]).encode()
    (tmp_path / "f").write_bytes(raw)
    digest = xxhash.xxh3_128_hexdigest(raw)
    current = read(tmp_path, "f", digest, "utf-8")
    assert len(current.lines) == n
    assert lines_before(current.lines, 3, 1) == ContextLines(2, 2, "b\u2028b\x0b\x0c\x1c\x85")


def test_states_of_a_file(tmp_path: Path) -> None:
    digest = xxhash.xxh3_128_hexdigest(b"a\n")
    assert read(tmp_path, "f", digest, "utf-8").state == "gone"
    (tmp_path / "f").write_bytes(b"b\n")
    assert read(tmp_path, "f", digest, "utf-8").state == "changed"
    (tmp_path / "f").write_bytes(b"a\n")
    assert read(tmp_path, "f", digest, "utf-8").state == "current"
    (tmp_path / "f").unlink()
    (tmp_path / "f").mkdir()
    assert read(tmp_path, "f", digest, "utf-8").state == "changed"


@pytest.mark.parametrize(
    "marks",
    [
        1,
        pytest.param(
            2,
        ),
    ],
)
def test_a_mark_is_in_no_line(tmp_path: Path, marks: int) -> None:
    """SPEC 4: BOM tolerated, in no chunk; concatenated files can carry more than one."""
    raw = b"\xef\xbb\xbf" * marks + b"a\nb\n"
    (tmp_path / "f").write_bytes(raw)
    digest = xxhash.xxh3_128_hexdigest(raw)
    current = read(tmp_path, "f", digest, "utf-8")
    assert current.lines == ("a\n", "b\n")


@pytest.mark.skipif(sys.platform == "win32", reason="links need privileges there")
def test_a_path_that_leads_out_of_the_corpus_is_never_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    (root / "sub").mkdir(parents=True)
    outside.mkdir()
    digest = xxhash.xxh3_128_hexdigest(b"secret")
    for place in (outside, root / "sub"):
        (place / "file").write_bytes(b"secret")
    (root / "out").symlink_to(outside)
    (root / "file").symlink_to(outside / "file")
    (root / "in").symlink_to("sub")
    opened: list[Path] = []
    real_open = os.open

    def watched(path: Any, *args: Any, **how: Any) -> int:
        opened.append(Path(os.path.realpath(path)))
        return real_open(path, *args, **how)

    monkeypatch.setattr(os, "open", watched)
    for path in ("file", "out/file", "../outside/file", str(outside / "file"), "in/../../x"):
        text = read(root, path, digest, "utf-8")
        assert text == FileText(state="changed")
    assert opened == []
    # A link that stays inside is followed, as `corpus.follow_symlinks` does; so is one to the root.
    link = tmp_path / "link"
    link.symlink_to(root)
    for start, path in ((root, "in/file"), (link, "sub/file")):
        text = read(start, path, digest, "utf-8")
        assert text == FileText(("secret",))


def test_an_encoding_that_nobody_knows_shows_nothing(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"text")
    digest = xxhash.xxh3_128_hexdigest(b"text")
    for encoding in ("no such", "hex", "../os"):
        assert read(tmp_path, "a", digest, encoding) == FileText(state="changed")


def test_lines_of_a_document_are_those_of_its_chunks(tmp_path: Path) -> None:
    """What its bytes would be as text is nothing that anybody has indexed."""
    (tmp_path / "a.pdf").write_bytes(b"%PDF- one\ntwo")
    row = row_of("a.pdf", xxhash.xxh3_128_hexdigest(b"%PDF- one\ntwo"), extractor="pdf@1/x")
    chunks = [
        Chunk(1, "a.pdf", 0, 0, 7, 1, 1, "Grüße", locator=Locator("page", 1, 1)),
        Chunk(2, "a.pdf", 1, 9, 16, 3, 4, "three\n4", locator=Locator("page", 2, 2)),
    ]
    text = read_current(tmp_path, row, lambda path: chunks if path == "a.pdf" else ())
    assert text.lines == ("Grüße\n", "\n", "three\n", "4")
    assert read_current(tmp_path, row, lambda _: ()) == FileText()
    (tmp_path / "a.pdf").write_bytes(b"%PDF- another")
    assert read_current(tmp_path, row, lambda _: chunks) == FileText(state="changed")


def piece(at: int, start: int, line: int, text: str) -> Chunk:
    end = start + len(text.encode())
    return Chunk(at, "a", at, start, end, line, line + text.count("\n"), text)


def test_lines_from_chunks_that_overlap_touch_or_leave_gaps() -> None:
    text = "eins zwei\nüber drei\n\n\nvier fünf sechs"
    raw = text.encode()
    for cuts in ([(0, 9), (10, 20)], [(0, 15), (10, 20), (23, 27), (28, 39)]):
        chunks = [
            piece(at, start, 1 + raw[:start].count(b"\n"), raw[start:end].decode())
            for at, (start, end) in enumerate(cuts)
        ]
        assert "".join(stored_lines(chunks, "utf-8")) == raw[: cuts[-1][1]].decode()


def test_chunks_that_lie_about_their_lines_cost_nothing() -> None:
    far = Chunk(1, "a", 0, 3, 4, 2**62, 2**62, "x")
    assert stored_lines([piece(0, 0, 1, "a"), far], "no such encoding") == ("a\n", "\n", "x")

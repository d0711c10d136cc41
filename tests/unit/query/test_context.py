"""Context lines by the letter of SPEC section 5."""

from __future__ import annotations

from pathlib import Path

import pytest
import xxhash

from ragx.query.context import ContextLines, lines_after, lines_before, read_current

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
    current = read_current(tmp_path, "f", content_hash=digest, encoding="utf-8")
    assert len(current.lines) == n
    assert lines_before(current.lines, 3, 1) == ContextLines(2, 2, "b\u2028b\x0b\x0c\x1c\x85")


def test_states_of_a_file(tmp_path: Path) -> None:
    digest = xxhash.xxh3_128_hexdigest(b"a\n")
    assert read_current(tmp_path, "f", content_hash=digest, encoding="utf-8").state == "gone"
    (tmp_path / "f").write_bytes(b"b\n")
    assert read_current(tmp_path, "f", content_hash=digest, encoding="utf-8").state == "changed"
    (tmp_path / "f").write_bytes(b"a\n")
    assert read_current(tmp_path, "f", content_hash=digest, encoding="utf-8").state == "current"
    (tmp_path / "f").unlink()
    (tmp_path / "f").mkdir()
    assert read_current(tmp_path, "f", content_hash=digest, encoding="utf-8").state == "changed"


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
    current = read_current(tmp_path, "f", content_hash=digest, encoding="utf-8")
    assert current.lines == ("a\n", "b\n")

"""Lines around a chunk against a direct reading of SPEC section 5."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import xxhash
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ragx.documents.decode import decode
from ragx.query.context import lines_after, lines_before, read_current
from ragx.store.base import FileRow

ENDS = ("\n", "\r\n", "\r")
rows = st.lists(
    st.tuples(
        st.sampled_from(["alpha", "é b", "日本", "x\u2028y", "", "  ", "\t"]), st.sampled_from(ENDS)
    ),
    min_size=1,
    max_size=14,
)


def _lines(text: str) -> list[str]:
    """Content of each line, by the three line ends of SPEC section 4 alone."""
    lines = re.split(r"\r\n|\r|\n", text)
    return lines[:-1] if lines[-1] == "" else lines


@settings(max_examples=150, deadline=None)
@given(rows, st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-16-be"]))
@example([("a", "\r"), ("", "\n"), ("b", "\n")], "utf-8")
def test_lines_are_those_of_the_file_on_disk(content, encoding: str) -> None:
    text = "".join(body + end for body, end in content)
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "f.md"
        raw = text.encode(encoding)
        path.write_bytes(raw)
        try:
            decoded = decode(raw)
        except Exception:
            return  # so short that it cannot be told from binary
        row = FileRow(
            "f.md",
            xxhash.xxh3_128_hexdigest(raw),
            len(raw),
            mtime_ns=0,
            ctime_ns=0,
            inode=0,
            scanned_ns=0,
            encoding=decoded.encoding,
        )
        current = read_current(Path(name), row, lambda _: ())
    assert current.state == "current"
    assert "".join(current.lines) == decoded.text
    assert [line.rstrip("\r\n") for line in current.lines] == [
        line.rstrip("\r\n") for line in _lines(decoded.text)
    ]


@settings(max_examples=200)
@given(rows, st.data(), st.integers(0, 5))
def test_n_counts_lines_with_content_outward(content, data: st.DataObject, n: int) -> None:
    lines = tuple(body + end for body, end in content)
    start = data.draw(st.integers(1, len(lines)))
    end = data.draw(st.integers(start, len(lines)))
    before, after = lines_before(lines, start, n), lines_after(lines, end, n)

    def has_content(number: int) -> bool:
        return bool(lines[number - 1].strip())

    above = [number for number in range(1, start) if has_content(number)][-n:] if n else []
    below = [number for number in range(end + 1, len(lines) + 1) if has_content(number)][:n]
    assert (before is None) == (not above)
    assert (after is None) == (not below)
    if before is not None:
        assert before.line_start == above[0]
        assert before.line_end == start - 1
    if after is not None:
        assert after.line_start == end + 1
        assert after.line_end == below[-1]


def test_no_lines_have_no_neighbours() -> None:
    assert lines_before((), 1, 5) is None
    assert lines_after((), 1, 5) is None
    assert lines_after(("a\n",), 1, 5) is None

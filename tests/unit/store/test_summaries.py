"""Summaries by a model, kept from run to run."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from ragx.store.summaries import SUMMARIES_NAME, WrittenSummaries


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / ".ragx").mkdir()
    return tmp_path


def keep(root: Path, **texts: str) -> Path:
    written = WrittenSummaries(root)
    for key, text in texts.items():
        written.put(key, text)
    written.close()
    return root / ".ragx" / SUMMARIES_NAME


def test_what_was_put_is_there_in_the_next_run(root: Path) -> None:
    path = keep(root, a="About boats.", b="Über Brot.")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    again = WrittenSummaries(root)
    assert (again.get("a"), again.get("b"), again.get("c")) == ("About boats.", "Über Brot.", None)


def test_nothing_new_writes_nothing(root: Path) -> None:
    path = keep(root, a="About boats.")
    before = path.stat().st_mtime_ns
    written = WrittenSummaries(root)
    assert written.get("a")
    written.close()
    assert path.stat().st_mtime_ns == before


@pytest.mark.parametrize("content", [b"", b"\n", b"no digest\n{}", b"\xff\xfe", b"[]"])
def test_a_damaged_file_counts_as_absent(root: Path, content: bytes) -> None:
    path = keep(root, a="About boats.")
    path.write_bytes(content)
    assert WrittenSummaries(root).get("a") is None
    keep(root, b="About bread.")
    assert WrittenSummaries(root).get("b") == "About bread."


def test_a_flipped_byte_is_noticed(root: Path) -> None:
    path = keep(root, a="About boats.")
    raw = bytearray(path.read_bytes())
    raw[-3] ^= 1
    path.write_bytes(raw)
    assert WrittenSummaries(root).get("a") is None


def test_where_it_cannot_be_written_the_run_goes_on(tmp_path: Path) -> None:
    keep(tmp_path, a="About boats.")  # no directory to write to
    assert WrittenSummaries(tmp_path).get("a") is None

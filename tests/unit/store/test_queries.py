"""Vectors of questions, kept from run to run."""

from __future__ import annotations

import stat
from pathlib import Path

import numpy as np
import pytest
import xxhash

from ragx.store import queries
from ragx.store.queries import QUERIES_NAME, QueryVectors


def vector(seed: int, width: int = 4) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=width).astype(np.float32)


def keep(directory: Path, n: int = 3) -> QueryVectors:
    kept = QueryVectors(directory, "model:1", 4)
    for i in range(n):
        kept.put(f"question {i}", vector(i), 1.5 * i)
    kept.save()
    return kept


def test_what_was_put_is_there_in_the_next_run(tmp_path: Path) -> None:
    keep(tmp_path)
    again = QueryVectors(tmp_path, "model:1", 4)
    for i in range(3):
        found = again.get(f"question {i}")
        assert found is not None
        assert found[0].dtype == np.float32
        assert np.array_equal(found[0], vector(i))
        assert found[1] == 1.5 * i
    assert again.get("question 3") is None
    assert stat.S_IMODE((tmp_path / QUERIES_NAME).stat().st_mode) == 0o600


def test_new_ones_are_added_to_the_old(tmp_path: Path) -> None:
    keep(tmp_path)
    again = QueryVectors(tmp_path, "model:1", 4)
    again.put("another", vector(9), 2.0)
    again.save()
    last = QueryVectors(tmp_path, "model:1", 4)
    assert last.get("question 0") is not None
    assert last.get("another") is not None


def test_questions_are_not_in_the_file(tmp_path: Path) -> None:
    keep(tmp_path)
    assert b"question" not in (tmp_path / QUERIES_NAME).read_bytes()


def test_nothing_new_writes_nothing(tmp_path: Path) -> None:
    QueryVectors(tmp_path, "model:1", 4).save()
    assert list(tmp_path.iterdir()) == []
    keep(tmp_path)
    before = (tmp_path / QUERIES_NAME).stat()
    QueryVectors(tmp_path, "model:1", 4).save()
    after = (tmp_path / QUERIES_NAME).stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


@pytest.mark.parametrize(("fingerprint", "width"), [("model:2", 4), ("model:1", 5)])
def test_vectors_of_another_space_are_not_taken(
    tmp_path: Path, fingerprint: str, width: int
) -> None:
    keep(tmp_path)
    other = QueryVectors(tmp_path, fingerprint, width)
    assert other.get("question 0") is None
    other.put("question 0", vector(7, width), 1.0)
    other.save()
    assert QueryVectors(tmp_path, fingerprint, width).get("question 0") is not None
    assert QueryVectors(tmp_path, "model:1", 4).get("question 0") is None


def test_an_index_without_a_width_takes_any(tmp_path: Path) -> None:
    keep(tmp_path)
    assert QueryVectors(tmp_path, "model:1", 0).get("question 0") is not None


@pytest.mark.parametrize("how", ["flipped", "cut", "empty", "text", "other arrays", "directory"])
def test_a_damaged_file_counts_as_absent_and_is_written_anew(tmp_path: Path, how: str) -> None:
    keep(tmp_path)
    path = tmp_path / QUERIES_NAME
    raw = bytearray(path.read_bytes())
    if how == "flipped":
        raw[len(raw) // 2] ^= 1
    elif how == "cut":
        del raw[-40:]
    elif how == "empty":
        raw.clear()
    elif how == "text":
        raw[:] = b"text" + xxhash.xxh3_128_digest(b"text")
    path.write_bytes(raw)
    if how == "other arrays":
        with path.open("wb") as file:
            np.savez(file, something=np.zeros(3))
        data = path.read_bytes()
        path.write_bytes(data + xxhash.xxh3_128_digest(data))
    elif how == "directory":
        path.unlink()
        path.mkdir()
    again = QueryVectors(tmp_path, "model:1", 4)
    assert again.get("question 0") is None
    again.put("question 0", vector(0), 1.0)
    again.save()  # where that cannot be done nothing is said: the file is only derived
    if how != "directory":
        assert QueryVectors(tmp_path, "model:1", 4).get("question 0") is not None
    assert [item.name for item in tmp_path.iterdir()] == [QUERIES_NAME]


def test_the_oldest_go_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "_KEPT", 2)
    keep(tmp_path)
    again = QueryVectors(tmp_path, "model:1", 4)
    assert [again.get(f"question {i}") is None for i in range(3)] == [True, False, False]

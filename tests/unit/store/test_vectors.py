"""Exact search, the derived files and what becomes of them, and the approximate index."""

from __future__ import annotations

import json
import shutil
import stat
import zlib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from ragx.store import derived, vectors
from ragx.store.sqlite import SqliteReader
from ragx.store.vectors import (
    ANN_NAME,
    MATRIX_NAME,
    VectorIndex,
    VectorRows,
    open_vectors,
    write_vectors,
)

Write = Callable[..., None]
STAMP = bytes(range(16))


def unit(rows: np.ndarray) -> np.ndarray:
    return (rows / np.linalg.norm(rows, axis=-1, keepdims=True)).astype(np.float32)


def clustered(n: int, dimension: int = 48, n_clusters: int = 15, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    centres = unit(rng.normal(size=(n_clusters, dimension)))
    noise = rng.normal(size=(n, dimension)) / np.sqrt(dimension)
    return unit(centres[rng.integers(0, n_clusters, n)] + 0.6 * noise)


def rows(owners: np.ndarray, matrix: np.ndarray) -> VectorRows:
    """Rows whose labels follow from the vectors."""
    labels = [zlib.crc32(row.tobytes()) for row in matrix]
    return VectorRows(owners.astype(np.int64), np.array(labels, np.int64), matrix)


def brute_force(
    owners: np.ndarray, matrix: np.ndarray, query: np.ndarray
) -> list[tuple[int, float]]:
    """Best window of each chunk in double precision."""
    best: dict[int, float] = {}
    for owner, row in zip(owners.tolist(), matrix.astype(np.float64), strict=True):
        score = float(row @ query.astype(np.float64))
        best[owner] = max(best.get(owner, -2.0), score)
    return sorted(best.items(), key=lambda item: (-item[1], item[0]))


# In memory.


def test_no_rows() -> None:
    index = VectorIndex(rows(np.zeros(0, np.int64), np.zeros((0, 0), np.float32)))
    assert len(index) == index.dimension == 0
    assert index.search(np.ones(4, np.float32), depth=3) == []
    assert index.scores(np.ones(4, np.float32), [1]) == {}


@pytest.mark.parametrize("depth", [0, 1, 2, 7, 60, 1000])
def test_exact_search_is_brute_force(depth: int) -> None:
    """HOSTILE: k larger than what lives."""
    rng = np.random.default_rng(1)
    owners = np.sort(rng.integers(0, 40, 60)).astype(np.int64)  # chunks of one to several windows
    matrix = unit(rng.normal(size=(60, 24)))
    index = VectorIndex(rows(owners, matrix))
    for _ in range(5):
        query = unit(rng.normal(size=24))
        expected = brute_force(owners, matrix, query)[:depth]
        found = index.search(query, depth=depth)
        assert [owner for owner, _ in found] == [owner for owner, _ in expected]
        assert [score for _, score in found] == pytest.approx([s for _, s in expected], abs=1e-6)


def test_scores_of_given_chunks() -> None:
    rng = np.random.default_rng(2)
    owners = np.array([3, 3, 5, 9, 9, 9], np.int64)
    matrix = unit(rng.normal(size=(6, 16)))
    query = unit(rng.normal(size=16))
    expected = dict(brute_force(owners, matrix, query))
    index = VectorIndex(rows(owners, matrix))
    assert index.scores(query, [9, 4, 3, 10**15]) == pytest.approx(
        {3: expected[3], 9: expected[9]}, abs=1e-6
    )
    assert index.scores(query, []) == {}


def test_ties_at_the_border_are_all_given_by_chunk_id() -> None:
    matrix = np.tile(np.eye(1, 8, dtype=np.float32), (20, 1))
    index = VectorIndex(rows(np.arange(100, 120, dtype=np.int64), matrix))
    found = index.search(matrix[0], depth=5)
    assert [owner for owner, _ in found] == list(range(100, 120))  # places decide, elsewhere


def test_equal_rows_score_equally() -> None:
    rng = np.random.default_rng(3)
    row, query = unit(rng.normal(size=384)), unit(rng.normal(size=384))
    for n in range(2, 24):
        index = VectorIndex(rows(np.arange(n, dtype=np.int64), np.tile(row, (n, 1))))
        found = index.search(query, depth=n)
        assert {score for _, score in found} == {found[0][1]}
        assert [owner for owner, _ in found] == list(range(n))


def test_a_chunks_score_does_not_depend_on_its_company() -> None:
    rng = np.random.default_rng(4)
    matrix, query = unit(rng.normal(size=(203, 384))), unit(rng.normal(size=384))
    index = VectorIndex(rows(np.arange(203, dtype=np.int64), matrix))
    every = dict(index.search(query, depth=203))
    for size in range(1, 12):
        some = rng.choice(203, size, replace=False).tolist()
        assert index.scores(query, some) == {key: every[key] for key in some}


# The mapped file.


@pytest.fixture
def stored(tmp_path: Path, write: Write) -> Path:
    write({f"f{i}.md": [f"text{i} {j}" for j in range(3)] for i in range(15)})
    return tmp_path


def answers(root: Path, vector_of: Callable[[str], np.ndarray]) -> list[object]:
    with closing(SqliteReader(root)) as reader:
        found: list[object] = [reader.vector(vector_of(f"text{i} 1"), depth=100) for i in range(5)]
        ids = [chunk.chunk_id for chunk in reader.chunks_of("f3.md")]
        return [*found, reader.vector_scores(vector_of("q"), ids), reader.dimension()]


def _drop(path: Path) -> None:
    path.unlink()


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


def _cut_in_header(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:20])


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _longer(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\0")


def _flip(position: int) -> Callable[[Path], None]:
    def flip(path: Path) -> None:
        raw = bytearray(path.read_bytes())
        raw[position] ^= 0x40
        path.write_bytes(raw)

    flip.__name__ = f"flip{position}"
    return flip


def _directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    "damage",
    [
        _drop, _truncate, _cut_in_header, _empty, _longer, _directory,
        *(_flip(at) for at in (0, 9, 24, 33, 41, 56, 60, -1, -100)),
    ],
    ids=lambda damage: damage.__name__,
)  # fmt: skip
def test_a_damaged_matrix_gives_the_same_answers(
    stored: Path, vector_of: Callable[[str], np.ndarray], damage: Callable[[Path], None]
) -> None:
    expected = answers(stored, vector_of)
    path = stored / ".ragx" / MATRIX_NAME
    whole = path.read_bytes()
    damage(path)
    assert answers(stored, vector_of) == expected
    if damage is not _directory:
        assert path.read_bytes() == whole  # mended for the next process
    assert answers(stored, vector_of) == expected


def test_a_stale_matrix_gives_the_new_answers(
    stored: Path, write: Write, vector_of: Callable[[str], np.ndarray], tmp_path: Path
) -> None:
    old = (stored / ".ragx" / MATRIX_NAME).read_bytes()
    write({"f3.md": ["other text"], "f4.md": None})
    expected = answers(stored, vector_of)
    (stored / ".ragx" / MATRIX_NAME).write_bytes(old)
    assert answers(stored, vector_of) == expected


def test_the_matrix_of_another_index_is_never_believed(
    stored: Path, write: Write, vector_of: Callable[[str], np.ndarray], tmp_path: Path
) -> None:
    """Same number of rows, same generation, other texts: only the stamp tells."""
    other = tmp_path / "other"
    other.mkdir()
    write({f"f{i}.md": [f"else{i} {j}" for j in range(3)] for i in range(15)}, root=other)
    expected = answers(stored, vector_of)
    shutil.copy(other / ".ragx" / MATRIX_NAME, stored / ".ragx" / MATRIX_NAME)
    assert answers(stored, vector_of) == expected


def test_a_directory_that_takes_no_file_still_answers(
    stored: Path, vector_of: Callable[[str], np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = answers(stored, vector_of)
    (stored / ".ragx" / MATRIX_NAME).unlink()

    def refuse(*_: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(vectors, "replace_file", refuse)
    assert answers(stored, vector_of) == expected
    assert not (stored / ".ragx" / MATRIX_NAME).exists()


def test_writing_that_fails_leaves_no_rest(stored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = stored / ".ragx"
    before = {path.name: path.read_bytes() for path in directory.iterdir()}

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(derived.os, "replace", refuse)
    with pytest.raises(OSError, match="No space"):
        vectors._write_matrix(directory, STAMP, rows(np.arange(3), np.eye(3, dtype=np.float32)))
    assert {path.name: path.read_bytes() for path in directory.iterdir()} == before


# HNSW.


@pytest.fixture
def approximate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "EXACT_LIMIT", 100)


def opened(directory: Path, owners: np.ndarray, matrix: np.ndarray) -> VectorIndex:
    return open_vectors(directory, STAMP, lambda: rows(owners, matrix))


@pytest.mark.usefixtures("approximate")
def test_recall_on_clustered_rows(tmp_path: Path) -> None:
    owners, matrix = np.arange(3000, dtype=np.int64), clustered(3000)
    write_vectors(tmp_path, STAMP, lambda: rows(owners, matrix))
    index = opened(tmp_path, owners, matrix)
    rng = np.random.default_rng(5)
    hits = total = 0
    for _ in range(40):
        query = unit(matrix[rng.integers(3000)] + 0.2 * rng.normal(size=48) / 7)
        expected = {owner for owner, _ in brute_force(owners, matrix, query)[:20]}
        found = index.search(query, depth=20)
        hits += len(expected & {owner for owner, _ in found})
        total += 20
        # What it finds is scored by exact products, in order.
        assert [score for _, score in found] == pytest.approx(
            [float(matrix[owner] @ query) for owner, _ in found], abs=1e-6
        )
        assert found == sorted(found, key=lambda item: (-item[1], item[0]))
    assert hits / total >= 0.99


@pytest.mark.usefixtures("approximate")
def test_the_limit_decides_which_search_it_is(tmp_path: Path) -> None:
    for n, is_approximate in ((100, False), (101, True)):
        directory = tmp_path / str(n)
        directory.mkdir()
        owners, matrix = np.arange(n, dtype=np.int64), clustered(n)
        write_vectors(directory, STAMP, lambda stored=rows(owners, matrix): stored)
        assert (directory / ANN_NAME).exists() is is_approximate
        found = opened(directory, owners, matrix).search(matrix[7], depth=n)
        assert found[0][0] == 7
        assert len(found) == n


@pytest.mark.usefixtures("approximate")
def test_windows_of_a_chunk_count_once(tmp_path: Path) -> None:
    owners = np.repeat(np.arange(150, dtype=np.int64), 2)
    matrix = clustered(300)
    write_vectors(tmp_path, STAMP, lambda: rows(owners, matrix))
    index = opened(tmp_path, owners, matrix)
    for i in range(0, 300, 37):
        expected = brute_force(owners, matrix, matrix[i])[:20]
        assert [owner for owner, _ in index.search(matrix[i], depth=20)] == [o for o, _ in expected]


@pytest.mark.usefixtures("approximate")
@pytest.mark.parametrize("name", [ANN_NAME, ANN_NAME + ".json", MATRIX_NAME])
@pytest.mark.parametrize(
    "damage", [_drop, _truncate, _empty, _flip(40), _flip(-3)], ids=lambda damage: damage.__name__
)
def test_a_damaged_graph_is_made_again(
    tmp_path: Path, name: str, damage: Callable[[Path], None]
) -> None:
    """hnswlib trusts its input: an unchecked file would crash the process or answer wrongly."""
    owners, matrix = np.arange(300, dtype=np.int64), clustered(300)
    write_vectors(tmp_path, STAMP, lambda: rows(owners, matrix))
    whole = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    expected = opened(tmp_path, owners, matrix).search(matrix[3], depth=20)
    damage(tmp_path / name)
    assert opened(tmp_path, owners, matrix).search(matrix[3], depth=20) == expected
    after = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert json.loads(after[ANN_NAME + ".json"]) == json.loads(whole[ANN_NAME + ".json"])
    assert after == whole  # same rows, same graph, byte for byte


@pytest.mark.usefixtures("approximate")
def test_a_graph_of_other_vectors_is_not_used(tmp_path: Path) -> None:
    owners, matrix = np.arange(300, dtype=np.int64), clustered(300)
    write_vectors(tmp_path, bytes(16), lambda: rows(owners, clustered(300, seed=9)))
    index = opened(tmp_path, owners, matrix)
    assert index.search(matrix[3], depth=1)[0][0] == 3


@pytest.mark.usefixtures("approximate")
def test_a_graph_that_is_no_longer_needed_goes(tmp_path: Path) -> None:
    """HOSTILE: 95 of 100 deleted."""
    owners, matrix = np.arange(300, dtype=np.int64), clustered(300)
    write_vectors(tmp_path, STAMP, lambda: rows(owners, matrix))
    write_vectors(tmp_path, bytes(16), lambda: rows(owners[:15], matrix[:15]))
    assert [path.name for path in tmp_path.iterdir()] == [MATRIX_NAME]


@pytest.mark.usefixtures("approximate")
def test_a_graph_that_cannot_be_saved_still_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    owners, matrix = np.arange(300, dtype=np.int64), clustered(300)
    write_vectors(tmp_path, STAMP, lambda: rows(owners, matrix))
    expected = opened(tmp_path, owners, matrix).search(matrix[3], depth=20)
    (tmp_path / ANN_NAME).unlink()

    def refuse(*_: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(derived.os, "replace", refuse)
    assert opened(tmp_path, owners, matrix).search(matrix[3], depth=20) == expected


@pytest.mark.usefixtures("approximate")
def test_the_graph_is_as_private_as_the_rest(tmp_path: Path) -> None:
    write_vectors(tmp_path, STAMP, lambda: rows(np.arange(300), clustered(300)))
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o600}


@pytest.mark.usefixtures("approximate")
@pytest.mark.parametrize("depth", [20, 1000])
def test_many_copies_and_some_others(tmp_path: Path, depth: int) -> None:
    """HOSTILE: 2,000 copies of one licence header."""
    matrix = np.concatenate([np.tile(clustered(1), (1000, 1)), clustered(200, seed=6)])
    owners = np.arange(1200, dtype=np.int64)
    index = opened(tmp_path, owners, matrix)
    assert index.search(matrix[1100], depth=depth)[0][0] == 1100


@pytest.mark.usefixtures("approximate")
def test_a_deep_search_among_copies(tmp_path: Path) -> None:
    """The pipeline looks up to 40,000 deep when the first hits are all of a few files."""
    matrix = np.tile(clustered(1), (3000, 1))
    index = opened(tmp_path, np.arange(3000, dtype=np.int64), matrix)
    assert len(index.search(matrix[0], depth=1600)) == 3000  # all tie with the last


@pytest.mark.usefixtures("approximate")
def test_sequences_of_edits_against_exact_search(
    tmp_path: Path, write: Write, vector_of: Callable[[str], np.ndarray]
) -> None:
    """HOSTILE: random add/delete sequences compared with exact search."""
    rng = np.random.default_rng(8)
    now: dict[str, list[str]] = {}
    for step in range(4):
        edits: dict[str, list[str] | None] = {
            f"f{i}.md": [f"text {step} {i} {j}" for j in range(6)]
            for i in rng.choice(40, 25, replace=False)
        }
        for path in list(now)[::4]:
            edits[path] = None
        write(edits)
        for path, texts in edits.items():
            now.pop(path, None)
            if texts:
                now[path] = texts
        with closing(SqliteReader(tmp_path)) as reader:
            for path in list(now)[:5]:
                query = vector_of(now[path][0])
                chunk = reader.chunks_of(path)[0]
                found = reader.vector(query, depth=20)
                assert found[0][0] == chunk.chunk_id
                assert len(found) == min(20, sum(map(len, now.values())))
    write(dict.fromkeys(now))
    with closing(SqliteReader(tmp_path)) as reader:
        assert reader.vector(vector_of("x"), depth=20) == []

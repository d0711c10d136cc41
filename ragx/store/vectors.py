"""Vector search over one committed state of the index.

SQLite holds the vectors; `vectors.bin` is derived from it, one row per embedding window ordered by
(chunk id, window), so that a cold process maps it instead of reading rows one by one. Up to
`EXACT_LIMIT` rows are searched exactly, which is as fast there and never misses; beyond that
`vectors.hnsw` answers and exact products rescore what it finds. Both files carry the stamp of
the vectors they were made from and a checksum; missing, stale or damaged ones are made again from
SQLite.

A chunk's score is the maximum over its windows.
"""

from __future__ import annotations

import contextlib
import json
import os
import struct
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import xxhash

from ragx.store.base import Scored
from ragx.store.faults import translated

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["ANN_NAME", "EXACT_LIMIT", "MATRIX_NAME", "VectorIndex", "open_vectors", "write_vectors"]

MATRIX_NAME = "vectors.bin"
ANN_NAME = "vectors.hnsw"
# One query against this many 384-dimensional rows takes about as long as loading the HNSW file of
# the same rows (research/vector-search.md).
EXACT_LIMIT = 50_000

_MAGIC = b"RAGXVEC1"
_HEADER = struct.Struct("<8s16sQQ16s")  # magic, stamp, rows, dimension, xxh3-128 of the body
_M, _EF_CONSTRUCTION, _EF_SEARCH = 16, 200, 200


class VectorIndex:
    """Search over (n, d) float32 unit rows.

    Args:
        owners: (n,) int64 chunk id of each row, ascending.
        matrix: (n, d) float32 unit rows; may be memory-mapped.
        load_ann: gives the HNSW index over the row numbers, or None while exact search serves.
    """

    def __init__(
        self,
        owners: NDArray[np.int64],
        matrix: NDArray[np.float32],
        load_ann: Callable[[], Any] | None = None,
    ) -> None:
        self._owners = owners
        self._matrix = matrix
        self._load_ann = load_ann

    @property
    def dimension(self) -> int:
        """Width d of the rows; 0 without rows."""
        return int(self._matrix.shape[1]) if self._matrix.size else 0

    def __len__(self) -> int:
        return len(self._owners)

    def search(self, query: NDArray[np.float32], *, depth: int) -> list[Scored]:
        """Best `depth` chunks for a (d,) unit query by cosine, ties by chunk id; [] when empty."""
        import numpy as np

        if not len(self) or depth < 1:
            return []
        if self._load_ann is None:
            owners, scores = self._owners, self._matrix @ query
        else:
            rows = self._approximate(query, depth)
            owners, scores = self._owners[rows], self._matrix[rows] @ query
        owners, scores = _best_per_owner(owners, scores)
        if len(owners) > depth:
            # Everything that ties with the last place stays until the tie rule has spoken.
            floor = np.partition(scores, len(scores) - depth)[len(scores) - depth]
            keep = scores >= floor
            owners, scores = owners[keep], scores[keep]
        order = np.lexsort((owners, -scores))[:depth]
        return [(int(owners[i]), float(scores[i])) for i in order]

    def scores(self, query: NDArray[np.float32], chunk_ids: Collection[int]) -> dict[int, float]:
        """Cosine of the given chunks to a (d,) unit query; chunks without a vector are absent."""
        import numpy as np

        if not len(self) or not chunk_ids:
            return {}
        wanted = np.array(sorted(chunk_ids), dtype=np.int64)
        first = np.searchsorted(self._owners, wanted, side="left")
        last = np.searchsorted(self._owners, wanted, side="right")
        rows = np.concatenate([np.arange(a, b) for a, b in zip(first, last, strict=True)])
        if not len(rows):
            return {}
        owners, best = _best_per_owner(self._owners[rows], self._matrix[rows] @ query)
        return {int(owner): float(score) for owner, score in zip(owners, best, strict=True)}

    def _approximate(self, query: NDArray[np.float32], depth: int) -> NDArray[np.int64]:
        import numpy as np

        assert self._load_ann is not None  # narrowed by the caller
        ann = self._load_ann()
        k = min(len(self), max(2 * depth, 50))
        ann.set_ef(max(_EF_SEARCH, 2 * k))
        labels, _ = ann.knn_query(query.reshape(1, -1), k=k, num_threads=1)
        return np.sort(labels[0].astype(np.int64))


def _best_per_owner(
    owners: NDArray[np.int64], scores: NDArray[np.float32]
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Maximum per run of equal owners; `owners` ascends."""
    import numpy as np

    starts = np.flatnonzero(np.concatenate(([True], owners[1:] != owners[:-1])))
    if len(starts) == len(owners):
        return owners, scores
    return owners[starts], np.maximum.reduceat(scores, starts)


def open_vectors(
    directory: Path,
    stamp: bytes,
    load: Callable[[], tuple[NDArray[np.int64], NDArray[np.float32]]],
) -> VectorIndex:
    """Vectors of one committed state, from the derived files where they fit, else by `load`.

    `load` reads owners and rows from the database. What had to be made again is written back for
    the next process when the directory allows it.
    """
    mapped = _map_matrix(directory / MATRIX_NAME, stamp)
    if mapped is None:
        owners, matrix = load()
        with contextlib.suppress(OSError):
            _write_matrix(directory, stamp, owners, matrix)
    else:
        owners, matrix = mapped
    if len(owners) <= EXACT_LIMIT:
        return VectorIndex(owners, matrix)
    return VectorIndex(owners, matrix, _ann_loader(directory, stamp, matrix))


def write_vectors(
    directory: Path,
    stamp: bytes,
    load: Callable[[], tuple[NDArray[np.int64], NDArray[np.float32]]],
) -> None:
    """Make the derived files of a committed state, unless they are there already.

    Raises:
        StoreError: they cannot be written.
    """
    if _map_matrix(directory / MATRIX_NAME, stamp) is None:
        owners, matrix = load()
        with translated("writing the vectors"):
            _write_matrix(directory, stamp, owners, matrix)
    mapped = _map_matrix(directory / MATRIX_NAME, stamp)
    if mapped is not None and len(mapped[0]) > EXACT_LIMIT:
        _ann_loader(directory, stamp, mapped[1])()
    else:
        for name in (ANN_NAME, ANN_NAME + ".json"):
            (directory / name).unlink(missing_ok=True)


def _digest(owners: NDArray[np.int64], matrix: NDArray[np.float32]) -> bytes:
    state = xxhash.xxh3_128()
    state.update(owners.view("u1").data if len(owners) else b"")
    state.update(matrix.reshape(-1).view("u1").data if matrix.size else b"")
    return state.digest()


def _map_matrix(path: Path, stamp: bytes) -> tuple[NDArray[np.int64], NDArray[np.float32]] | None:
    import numpy as np

    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            head = file.read(_HEADER.size)
    except OSError:
        return None
    if len(head) < _HEADER.size:
        return None
    magic, stored, rows, dimension, digest = _HEADER.unpack(head)
    if magic != _MAGIC or stored != stamp:
        return None
    if size != _HEADER.size + rows * 8 + rows * dimension * 4:
        return None
    if not rows:
        return np.zeros(0, np.int64), np.zeros((0, 0), np.float32)
    try:
        owners = np.memmap(path, np.int64, "r", _HEADER.size, (rows,))
        matrix = np.memmap(path, np.float32, "r", _HEADER.size + rows * 8, (rows, dimension))
    except (OSError, ValueError):
        return None
    plain = owners.view(np.ndarray), matrix.view(np.ndarray)
    return plain if _digest(*plain) == digest else None


def _write_matrix(
    directory: Path, stamp: bytes, owners: NDArray[np.int64], matrix: NDArray[np.float32]
) -> None:
    dimension = matrix.shape[1] if matrix.ndim == 2 else 0
    head = _HEADER.pack(_MAGIC, stamp, len(owners), dimension, _digest(owners, matrix))
    _replace(directory / MATRIX_NAME, [head, owners.tobytes(), matrix])


def _replace(path: Path, parts: list[Any]) -> None:
    """Write beside the target and move over it, so that readers see the old file or the new."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb", opener=_private) as file:
            for part in parts:
                file.write(part)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _ann_loader(directory: Path, stamp: bytes, matrix: NDArray[np.float32]) -> Callable[[], Any]:
    """A function that gives the HNSW index over `matrix`, reading it or building it once."""
    cached: list[Any] = []

    def load() -> Any:
        if not cached:
            cached.append(
                _read_ann(directory, stamp, matrix) or _build_ann(directory, stamp, matrix)
            )
        return cached[0]

    return load


def _read_ann(directory: Path, stamp: bytes, matrix: NDArray[np.float32]) -> Any:
    path, notes = directory / ANN_NAME, directory / (ANN_NAME + ".json")
    try:
        facts = json.loads(notes.read_bytes())
        if facts.get("stamp") != stamp.hex() or facts.get("rows") != len(matrix):
            return None
        # hnswlib trusts its input completely, so nothing unchecked may reach it.
        if _file_digest(path) != facts.get("xxh3_128"):
            return None
    except (OSError, ValueError, AttributeError):
        return None
    import hnswlib

    index = hnswlib.Index(space="ip", dim=matrix.shape[1])
    index.load_index(str(path), max_elements=len(matrix))
    return index


def _file_digest(path: Path) -> str:
    state = xxhash.xxh3_128()
    with path.open("rb") as file:
        while block := file.read(1 << 22):
            state.update(block)
    return state.hexdigest()


def _build_ann(directory: Path, stamp: bytes, matrix: NDArray[np.float32]) -> Any:
    """Build in row order on one thread, so that the same rows give the same graph."""
    import hnswlib
    import numpy as np

    index = hnswlib.Index(space="ip", dim=matrix.shape[1])
    index.init_index(
        max_elements=len(matrix), M=_M, ef_construction=_EF_CONSTRUCTION, random_seed=42
    )
    index.add_items(matrix, np.arange(len(matrix)), num_threads=1)
    temporary = directory / f"{ANN_NAME}.{os.getpid()}.tmp"
    try:
        index.save_index(str(temporary))
        facts = {
            "stamp": stamp.hex(),
            "rows": len(matrix),
            "xxh3_128": _file_digest(temporary),
        }
        # The notes go last: a file without matching notes is not used.
        os.replace(temporary, directory / ANN_NAME)
        _replace(directory / (ANN_NAME + ".json"), [json.dumps(facts).encode()])
    except (OSError, RuntimeError):
        temporary.unlink(missing_ok=True)  # the index in memory serves; the next process retries
    return index

"""Vector search over one committed state of the index.

SQLite holds the vectors; `vectors.bin` is derived from it, one row per embedding window ordered by
(chunk id, window), so that a cold process maps it instead of reading rows one by one. Up to
`EXACT_LIMIT` rows are searched exactly, which is as fast there and never misses; beyond that
`vectors.hnsw` (Malkov and Yashunin, 2016, by hnswlib) proposes rows and exact products score them.
Both files carry the stamp of the vectors they were made from and a checksum; missing, stale or
damaged ones are made again from SQLite.

A chunk's score is the maximum over its windows. Equal vectors have one label, so the graph holds
them once however many chunks share them.
"""

from __future__ import annotations

import contextlib
import json
import os
import struct
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragx.algo.arrays import ranges
from ragx.store.base import Scored
from ragx.store.derived import arrays_digest, read_head, replace_file, temporary_name
from ragx.store.faults import translated
from ragx.store.seal import file_digest

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "ANN_NAME",
    "EXACT_LIMIT",
    "MATRIX_NAME",
    "VectorIndex",
    "VectorRows",
    "drop_vectors",
    "map_rows",
    "open_vectors",
    "write_vectors",
]

MATRIX_NAME = "vectors.bin"
ANN_NAME = "vectors.hnsw"
# Up to here a cold process is done with exact products before it has read the graph file
# (research/vector-search.md).
EXACT_LIMIT = 200_000

_MAGIC = b"RAGXVEC2"
# Magic, stamp, rows, dimension, xxh3-128 of the body, zeros up to 64 bytes.
_HEADER = struct.Struct("<8s16sQQ16s8s")
_M, _EF_CONSTRUCTION, _EF_SEARCH = 16, 200, 200
# The graph keeps deleted points as way stations; past this share it is built anew.
_MAX_DELETED_SHARE = 0.3
# BLAS adds up in an order that depends on the shape, so its sums only preselect.
_BLAS_SLACK = 1e-5
_COPY_COST = 4  # times longer than a product over all rows takes a product over picked ones
_SAMPLED = 400  # rows whose likeness to each other tells what is usual


@dataclass(frozen=True, slots=True)
class VectorRows:
    """Rows of the vector index in (chunk id, window) order.

    Args:
        owners: (n,) int64 chunk id of each row, ascending.
        labels: (n,) int64 name of each row's vector: equal vectors, equal labels.
        matrix: (n, d) float32 unit rows; may be memory-mapped.
    """

    owners: NDArray[np.int64]
    labels: NDArray[np.int64]
    matrix: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.owners)


class VectorIndex:
    """Search over rows.

    Args:
        rows: what is searched.
        load_ann: gives an HNSW index over the labels, or None while exact search serves.
    """

    def __init__(self, rows: VectorRows, load_ann: Callable[[], Any] | None = None) -> None:
        self._owners = rows.owners
        self._labels = rows.labels
        self._matrix = rows.matrix
        self._load_ann = load_ann
        self._by_label: NDArray[np.int64] | None = None

    @property
    def dimension(self) -> int:
        """Width d of the rows; 0 without rows."""
        return int(self._matrix.shape[1]) if self._matrix.size else 0

    def __len__(self) -> int:
        return len(self._owners)

    @cached_property
    def spread(self) -> tuple[float, int]:
        """Standard deviation of the cosines between rows, over an even sample, and its pairs."""
        import numpy as np

        n = min(len(self), _SAMPLED)
        if n < 2:
            return 0.0, 0
        rows = self._matrix[np.linspace(0, len(self) - 1, n).astype(np.int64)]
        cosines = (rows @ rows.T)[np.triu_indices(n, 1)].astype(np.float64)
        # Rounded, for the sums of a product depend on how BLAS divides it.
        return round(float(cosines.std()), 4), len(cosines)

    def search(
        self,
        query: NDArray[np.float32],
        *,
        depth: int,
        within: NDArray[np.int64] | None = None,
    ) -> list[Scored]:
        """Best chunks for a (d,) unit query by cosine; [] when empty.

        `depth` of them, and all that tie with the last, by falling score and then by chunk id.

        Args:
            within: (k,) int64 ids of the only chunks that count, ascending; these are searched
                exactly.
        """
        import numpy as np

        if not len(self) or depth < 1:
            return []
        if within is not None:
            rows = self._among(query, depth, _rows_of(self._owners, within))
            if not len(rows):
                return []
        else:
            found = None if self._load_ann is None else self._approximate(query, depth)
            rows = self._preselect(query, depth) if found is None else found
        owners, scores = _best_per_owner(self._owners[rows], _cosines(self._matrix[rows], query))
        order = np.lexsort((owners, -scores))
        if len(order) > depth:
            order = order[: np.searchsorted(-scores[order], -scores[order[depth - 1]], "right")]
        return [(int(owners[i]), float(scores[i])) for i in order]

    def scores(self, query: NDArray[np.float32], chunk_ids: Collection[int]) -> dict[int, float]:
        """Cosine of the given chunks to a (d,) unit query; chunks without a vector are absent."""
        import numpy as np

        if not len(self) or not chunk_ids:
            return {}
        wanted = np.array(sorted(chunk_ids), dtype=np.int64)
        rows = _rows_of(self._owners, wanted)
        if not len(rows):
            return {}
        owners, best = _best_per_owner(self._owners[rows], _cosines(self._matrix[rows], query))
        return {int(owner): float(score) for owner, score in zip(owners, best, strict=True)}

    def _among(
        self, query: NDArray[np.float32], depth: int, rows: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Those of the given rows that may belong to the best `depth` chunks."""
        import numpy as np

        owners = self._owners[rows]
        if np.count_nonzero(owners[1:] != owners[:-1]) < depth:
            return rows
        if len(rows) * _COPY_COST < len(self):
            rough = self._matrix[rows] @ query
        else:
            rough = (self._matrix @ query)[rows]
        owners, scores = _best_per_owner(owners, rough)
        floor = np.partition(scores, len(scores) - depth)[len(scores) - depth]
        return _rows_of(self._owners, owners[scores >= floor - _BLAS_SLACK])

    def _preselect(self, query: NDArray[np.float32], depth: int) -> NDArray[np.int64]:
        """Rows that may belong to the best `depth` chunks, all ties included."""
        import numpy as np

        rough = self._matrix @ query
        owners, scores = _best_per_owner(self._owners, rough)
        if len(owners) <= depth:
            return np.arange(len(self))
        floor = np.partition(scores, len(scores) - depth)[len(scores) - depth]
        # A window far below still belongs to a chunk that its best window brings in.
        good = owners[scores >= floor - _BLAS_SLACK]
        return _rows_of(self._owners, good)

    def _approximate(self, query: NDArray[np.float32], depth: int) -> NDArray[np.int64] | None:
        """Rows of the chunks that HNSW proposes, ascending; None where it cannot answer."""
        import numpy as np

        if self._load_ann is None:
            return None
        ann = self._load_ann()
        if self._by_label is None:
            self._by_label = np.argsort(self._labels, kind="stable")
        k = min(ann.live, max(2 * depth, 50))
        try:
            ann.index.set_ef(max(_EF_SEARCH, 2 * k))
            found, _ = ann.index.knn_query(query.reshape(1, -1), k=k, num_threads=1)
        except RuntimeError:
            # hnswlib cannot reach k points: too many deletions around here. Exact search can.
            return None
        labels = np.unique(found[0].astype(np.int64))
        places = _rows_of(self._labels[self._by_label], labels)
        owners = np.unique(self._owners[self._by_label[places]])
        return _rows_of(self._owners, owners)


def _rows_of(sorted_keys: NDArray[np.int64], wanted: NDArray[np.int64]) -> NDArray[np.int64]:
    """Positions of all occurrences of the wanted keys (ascending) in a sorted array."""
    import numpy as np

    first = np.searchsorted(sorted_keys, wanted, side="left")
    counts = np.searchsorted(sorted_keys, wanted, side="right") - first
    return ranges(first, counts)


def _cosines(rows: NDArray[np.float32], query: NDArray[np.float32]) -> NDArray[np.float64]:
    """(n,) products in double precision, each row by itself: the same whatever else is asked."""
    import numpy as np

    products = np.multiply(rows, query, dtype=np.float64)
    sums: NDArray[np.float64] = np.add.reduce(products, axis=1)
    return sums


def _best_per_owner(
    owners: NDArray[np.int64], scores: NDArray[Any]
) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Maximum per run of equal owners; `owners` ascends and is not empty."""
    import numpy as np

    starts = np.flatnonzero(np.concatenate(([True], owners[1:] != owners[:-1])))
    if len(starts) == len(owners):
        return owners, scores
    return owners[starts], np.maximum.reduceat(scores, starts)


def map_rows(directory: Path, stamp: bytes) -> VectorRows | None:
    """Rows of the derived file, if it is whole and of the vectors with this stamp."""
    return _map_matrix(directory / MATRIX_NAME, stamp)


def open_vectors(
    directory: Path,
    stamp: bytes,
    load: Callable[[], VectorRows],
    *,
    is_current: Callable[[], bool] = lambda: True,
) -> VectorIndex:
    """Vectors of one committed state, from the derived files where they fit, else by `load`.

    Args:
        load: reads the rows from the database.
        is_current: whether the state is still the last one. If so, what had to be made again is
            written back for the next process, where the directory allows it; an old snapshot
            must not replace the files of a newer one.
    """
    rows = _map_matrix(directory / MATRIX_NAME, stamp)
    if rows is None:
        rows = load()
        if is_current():
            with contextlib.suppress(OSError):
                _write_matrix(directory, stamp, rows)
    if len(rows) <= EXACT_LIMIT:
        return VectorIndex(rows)
    return VectorIndex(rows, _ann_loader(directory, stamp, rows, is_current))


def write_vectors(directory: Path, stamp: bytes, load: Callable[[], VectorRows]) -> None:
    """Make the derived files of a committed state, unless they are there already.

    Raises:
        StoreError: they cannot be written.
    """
    path = directory / MATRIX_NAME
    rows = _map_matrix(path, stamp)
    if rows is None:
        before = _map_matrix(path, None)
        rows = load()
        if before is not None and len(rows) > EXACT_LIMIT:
            with translated("updating the vector index"):
                _update_ann(directory, stamp, rows, before)
        del before
        with translated("writing the vectors"):
            _write_matrix(directory, stamp, rows)
    if len(rows) > EXACT_LIMIT:
        _ann_loader(directory, stamp, rows, lambda: True)()
    else:
        _remove(directory, ANN_NAME, ANN_NAME + ".json")


def _remove(directory: Path, *names: str) -> None:
    with translated("removing the vectors"):
        for name in names:
            (directory / name).unlink(missing_ok=True)


def drop_vectors(directory: Path) -> None:
    """Remove the derived files."""
    _remove(directory, MATRIX_NAME, ANN_NAME, ANN_NAME + ".json")


def _digest(rows: VectorRows) -> bytes:
    return arrays_digest((rows.owners, rows.labels, rows.matrix))


def _map_matrix(path: Path, stamp: bytes | None) -> VectorRows | None:
    """Rows of the file if it is whole and has the stamp; None asks for no stamp."""
    import numpy as np

    opened = read_head(path, _HEADER.size)
    if opened is None:
        return None
    head, size = opened
    magic, stored, n, dimension, digest, rest = _HEADER.unpack(head)
    if magic != _MAGIC or any(rest) or stamp not in (None, stored):
        return None
    if size != _HEADER.size + n * 16 + n * dimension * 4:
        return None
    if not n:
        return VectorRows(
            np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros((0, 0), np.float32)
        )
    try:
        at = _HEADER.size
        owners = np.memmap(path, np.int64, "r", at, (n,)).view(np.ndarray)
        labels = np.memmap(path, np.int64, "r", at + n * 8, (n,)).view(np.ndarray)
        matrix = np.memmap(path, np.float32, "r", at + n * 16, (n, dimension)).view(np.ndarray)
    except (OSError, ValueError):
        return None
    rows = VectorRows(owners, labels, matrix)
    return rows if _digest(rows) == digest else None


def _write_matrix(directory: Path, stamp: bytes, rows: VectorRows) -> None:
    dimension = rows.matrix.shape[1] if len(rows) else 0
    head = _HEADER.pack(_MAGIC, stamp, len(rows), dimension, _digest(rows), bytes(8))
    parts = [head, rows.owners.data, rows.labels.data, rows.matrix.data]
    replace_file(directory / MATRIX_NAME, parts if len(rows) else [head])


@dataclass(slots=True)
class _Ann:
    """An HNSW index and how many of its points are live."""

    index: Any
    live: int
    deleted: int


def _ann_loader(
    directory: Path, stamp: bytes, rows: VectorRows, is_current: Callable[[], bool]
) -> Callable[[], _Ann]:
    """A function that gives the HNSW index over the rows, reading it or building it once."""
    cached: list[_Ann] = []

    def load() -> _Ann:
        if not cached:
            ann = _read_ann(directory, stamp, rows.matrix.shape[1])
            if ann is None:
                ann = _build_ann(rows)
                if is_current():
                    with contextlib.suppress(OSError):  # else the next process builds again
                        _save_ann(directory, stamp, ann)
            cached.append(ann)
        return cached[0]

    return load


def _read_ann(directory: Path, stamp: bytes, dimension: int, room: int = 0) -> _Ann | None:
    """The stored graph if it is whole and has the stamp, with room for more points."""
    path, notes = directory / ANN_NAME, directory / (ANN_NAME + ".json")
    try:
        facts = json.loads(notes.read_bytes())
        if facts["stamp"] != stamp.hex() or facts["dimension"] != dimension:
            return None
        live, deleted = int(facts["live"]), int(facts["deleted"])
        # hnswlib trusts its input completely, so nothing unchecked may reach it.
        if file_digest(path) != facts["xxh3_128"]:
            return None
    except (OSError, ValueError, KeyError, TypeError):
        return None
    import hnswlib

    index = hnswlib.Index(space="ip", dim=dimension)
    index.load_index(str(path), max_elements=live + deleted + room)
    return _Ann(index, live, deleted)


def _build_ann(rows: VectorRows) -> _Ann:
    """Build in label order on one thread, so that the same rows give the same graph."""
    import hnswlib
    import numpy as np

    labels, first = np.unique(rows.labels, return_index=True)
    index = hnswlib.Index(space="ip", dim=rows.matrix.shape[1])
    index.init_index(
        max_elements=len(labels), M=_M, ef_construction=_EF_CONSTRUCTION, random_seed=42
    )
    index.add_items(rows.matrix[first], labels, num_threads=1)
    return _Ann(index, len(labels), 0)


def _update_ann(directory: Path, stamp: bytes, rows: VectorRows, before: VectorRows) -> None:
    """Bring the stored graph from the rows before to the rows now, where that is worth it."""
    import numpy as np

    old_stamp = _stamp_of(directory / MATRIX_NAME)
    labels, first = np.unique(rows.labels, return_index=True)
    gone = np.setdiff1d(before.labels, labels)
    new = np.setdiff1d(labels, before.labels)
    if len(new) > len(labels) // 4:
        return
    ann = _read_ann(directory, old_stamp, rows.matrix.shape[1], room=len(new))
    if ann is None or ann.deleted + len(gone) > _MAX_DELETED_SHARE * (ann.live + ann.deleted):
        return
    try:
        for label in gone.tolist():
            ann.index.mark_deleted(label)
        if len(new):
            places = first[np.searchsorted(labels, new)]
            ann.index.add_items(rows.matrix[places], new, num_threads=1)
    except RuntimeError:
        return  # not the graph of those rows after all: it will be built anew
    points = int(ann.index.get_current_count())
    _save_ann(directory, stamp, _Ann(ann.index, len(labels), points - len(labels)))


def _stamp_of(path: Path) -> bytes:
    with path.open("rb") as file:
        stamp: bytes = _HEADER.unpack(file.read(_HEADER.size))[1]
    return stamp


def _save_ann(directory: Path, stamp: bytes, ann: _Ann) -> None:
    temporary = temporary_name(directory / ANN_NAME)
    try:
        try:
            ann.index.save_index(str(temporary))
        except RuntimeError as fault:
            raise OSError(f"hnswlib cannot write {temporary.name}: {fault}") from fault
        temporary.chmod(0o600)
        facts = {
            "stamp": stamp.hex(),
            "dimension": int(ann.index.dim),
            "live": ann.live,
            "deleted": ann.deleted,
            "xxh3_128": file_digest(temporary),
        }
        # The notes go last: a file without matching notes is not used.
        os.replace(temporary, directory / ANN_NAME)
        replace_file(directory / (ANN_NAME + ".json"), [json.dumps(facts).encode()])
    finally:
        temporary.unlink(missing_ok=True)

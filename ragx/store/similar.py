"""Nearest neighbours among what was embedded: stored lists, kept exact, and the edges they give.

What is compared is called a stretch: a whole chunk, or a part of one. Stretches of the same content
are one node; one that more chunks share than a list has room for is boilerplate, which says nothing
about any of them, and stays out. Lists are directed and follow from the vectors alone, so that
adding and removing chunks repairs exactly the lists it touches (algo.knn_graph).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import xxhash

from ragx.algo.arrays import ranges
from ragx.errors import IndexDamaged
from ragx.store.base import LinkOptions
from ragx.store.faults import REBUILD_HINT

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ragx.algo.graph import Edges
    from ragx.algo.knn_graph import KnnLists
    from ragx.store.vectors import VectorRows

__all__ = [
    "Similar",
    "Vectors",
    "labels_of",
    "similar_edges",
    "stored_neighbours",
    "update_neighbours",
]

_KEY_BYTES = 16
_ENTRY_BYTES = _KEY_BYTES + 4  # key of the neighbour, float32 similarity
_SHARED = 0  # owner of a stretch that several chunks share
# As the vector index sees it: a key whose vector is lost stands for nothing.
_HAS_VECTOR = "key IN (SELECT key FROM embeddings)"
_PAIRS = 1 << 12  # chunk pairs whose whole vectors are compared at a time


@dataclass(slots=True)
class _Stretches:
    """Nodes in the order of their keys.

    Args:
        keys: (n,) of 16 bytes each, ascending.
        rows, chunks: (p,) node and chunk of each pair of the two that belong together, by node.
        owners: (n,) the chunk of a stretch that only one holds, else 0.
    """

    keys: list[bytes]
    rows: NDArray[np.int64]
    chunks: NDArray[np.int64]
    owners: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Similar:
    """Stretches and the nearest others of each."""

    nodes: _Stretches
    lists: KnnLists


class Vectors:
    """Vectors of windows and parts, by key and by chunk.

    Args:
        rows: all windows.
        parts: vector of each part that is no window.
    Raises:
        IndexDamaged: the vectors are not all of one width.
    """

    def __init__(self, rows: VectorRows, parts: Mapping[bytes, NDArray[np.float32]]) -> None:
        import numpy as np

        self._owners, self._matrix = rows.owners, rows.matrix
        self._labels, self._first = np.unique(rows.labels, return_index=True)
        if any(len(vector) != self._matrix.shape[1] for vector in parts.values()):
            raise IndexDamaged("the index holds vectors of different widths", hint=REBUILD_HINT)
        self._parts = parts
        self.n_parts = len(parts)

    def by_key(self, keys: Sequence[bytes]) -> NDArray[np.float32]:
        """(n, d) vector of each key."""
        import numpy as np

        labels = labels_of(keys)
        places = np.minimum(np.searchsorted(self._labels, labels), len(self._labels) - 1)
        known = self._labels[places] == labels
        matrix: NDArray[np.float32] = self._matrix[self._first[places]]
        for row in np.flatnonzero(~known).tolist():
            matrix[row] = self._parts[keys[row]]
        return matrix

    def n_windows(self, chunks: NDArray[np.int64]) -> NDArray[np.int64]:
        """(p,) windows of each chunk."""
        import numpy as np

        counts: NDArray[np.int64] = np.searchsorted(
            self._owners, chunks, "right"
        ) - np.searchsorted(self._owners, chunks, "left")
        return counts

    def whole(self, chunks: NDArray[np.int64]) -> NDArray[np.float32]:
        """(p, d) what stands for each chunk as a whole: the direction of its windows' mean."""
        import numpy as np

        first = np.searchsorted(self._owners, chunks)
        counts = self.n_windows(chunks)
        matrix: NDArray[np.float32] = self._matrix[first]
        several = np.flatnonzero(counts > 1)
        for at in range(0, len(several), _PAIRS):
            places = several[at : at + _PAIRS]
            starts = np.cumsum(counts[places]) - counts[places]
            rows = ranges(first[places], counts[places])
            totals = np.add.reduceat(self._matrix[rows].astype(np.float64), starts, axis=0)
            lengths = np.sqrt(np.add.reduce(totals * totals, axis=1, keepdims=True))
            matrix[places] = totals / np.where(lengths > 0, lengths, 1.0)
        return matrix


def labels_of(keys: Sequence[bytes]) -> NDArray[np.int64]:
    """(n,) int64 names of vectors by their keys: equal keys, equal vectors."""
    import numpy as np

    return (np.frombuffer(b"".join(key[-8:] for key in keys), "<u8") >> 1).astype(np.int64)


def update_neighbours(
    db: sqlite3.Connection, options: LinkOptions, vectors: Vectors, *, all_anew: bool
) -> Similar | None:
    """Bring the stored lists in step with the windows and parts that are there now; None where
    there is nothing to compare."""
    from ragx.algo import knn_graph

    if all_anew:
        db.execute("DELETE FROM neighbours")
    now = _stretches(db, options)
    if not now.keys:
        db.execute("DELETE FROM neighbours")
        return None
    old_keys, old_owners, blobs = _stored(db)
    kept = _kept(now, old_keys, old_owners)
    if len(old_keys) == len(now.keys) and (kept >= 0).all():
        return Similar(now, _unpacked(blobs, old_keys, options.k))
    import numpy as np

    groups = np.where(now.owners == _SHARED, -1 - np.arange(len(now.keys)), now.owners)
    matrix = _matrix(db, options, now, vectors)
    k, least = options.k, options.min_edge_sim
    if old_keys:
        old = _unpacked(blobs, old_keys, k)
        lists = knn_graph.repair_lists(old, kept, matrix, groups, k=k, min_similarity=least)
    elif len(matrix) <= knn_graph.EXACT_LIMIT:
        lists = knn_graph.build_lists(matrix, groups, k=k, min_similarity=least)
    else:
        lists = knn_graph.approximate_lists(matrix, groups, k=k, min_similarity=least)
    _store(db, now, lists, dict(zip(old_keys, zip(old_owners, blobs, strict=True), strict=True)))
    return Similar(now, lists)


def stored_neighbours(db: sqlite3.Connection, options: LinkOptions) -> Similar | None:
    """What the last commit left; None where there is nothing to compare."""
    now = _stretches(db, options)
    old_keys, _, blobs = _stored(db)
    if not now.keys or old_keys != now.keys:
        return None
    return Similar(now, _unpacked(blobs, old_keys, options.k))


def _stretches(db: sqlite3.Connection, options: LinkOptions) -> _Stretches:
    """What there is to compare; boilerplate is left out."""
    import numpy as np

    if options.edge_source == "chunk":
        pairs = sorted((_whole_key(keys), chunk) for chunk, keys in _windows_by_chunk(db))
    else:
        pairs = db.execute(
            "SELECT key, chunk_id FROM (SELECT key, chunk_id FROM parts"
            " UNION SELECT key, chunk_id FROM windows"
            " WHERE chunk_id NOT IN (SELECT chunk_id FROM parts))"
            f" WHERE {_HAS_VECTOR} ORDER BY key, chunk_id"
        ).fetchall()
    chunks = np.array([chunk for _, chunk in pairs], np.int64)
    joined = np.frombuffer(b"".join(key for key, _ in pairs), "u1").reshape(-1, _KEY_BYTES)
    first = np.ones(len(pairs), bool)
    first[1:] = (joined[1:] != joined[:-1]).any(axis=1)
    node = np.cumsum(first) - 1
    counts = np.bincount(node, minlength=int(first.sum()))
    telling = counts <= options.k
    number = np.cumsum(telling) - 1
    keep = telling[node] if len(pairs) else np.zeros(0, bool)
    starts = np.flatnonzero(first)[telling]
    return _Stretches(
        keys=[pairs[at][0] for at in starts.tolist()],
        rows=number[node[keep]],
        chunks=chunks[keep],
        owners=np.where(counts[telling] == 1, chunks[starts], _SHARED),
    )


def _windows_by_chunk(db: sqlite3.Connection) -> list[tuple[int, list[bytes]]]:
    found: dict[int, list[bytes]] = {}
    for chunk_id, key in db.execute(
        f"SELECT chunk_id, key FROM windows WHERE {_HAS_VECTOR} ORDER BY chunk_id, window"
    ):
        found.setdefault(chunk_id, []).append(key)
    return list(found.items())


def _whole_key(keys: list[bytes]) -> bytes:
    return keys[0] if len(keys) == 1 else xxhash.xxh3_128_digest(b"".join(keys))


def _stored(db: sqlite3.Connection) -> tuple[list[bytes], list[int], list[bytes]]:
    rows = db.execute("SELECT key, owner, nearest FROM neighbours ORDER BY key").fetchall()
    return [row[0] for row in rows], [row[1] for row in rows], [row[2] for row in rows]


def _kept(now: _Stretches, old_keys: list[bytes], old_owners: list[int]) -> NDArray[np.int64]:
    """For each node the stored row that it is, -1 where it is new or has another owner."""
    import numpy as np

    at = {
        key: (row, owner) for row, (key, owner) in enumerate(zip(old_keys, old_owners, strict=True))
    }
    kept = np.full(len(now.keys), -1, np.int64)
    for row, (key, owner) in enumerate(zip(now.keys, now.owners.tolist(), strict=True)):
        old_row, old_owner = at.get(key, (-1, owner))
        if old_owner == owner:
            kept[row] = old_row
    return kept


def _matrix(
    db: sqlite3.Connection, options: LinkOptions, nodes: _Stretches, vectors: Vectors
) -> NDArray[np.float32]:
    """(n, d) vector of each node."""
    if options.edge_source != "chunk":
        return vectors.by_key(nodes.keys)
    import numpy as np

    # All chunks of a node have the same windows.
    first = np.searchsorted(nodes.rows, np.arange(len(nodes.keys)))
    return vectors.whole(nodes.chunks[first])


def _unpacked(blobs: list[bytes], keys: list[bytes], k: int) -> KnnLists:
    """Stored lists with row numbers for keys; what is no longer a key cannot occur in them."""
    import numpy as np

    from ragx.algo.knn_graph import KnnLists

    neighbours = np.full((len(blobs), k), -1, np.int32)
    similarities = np.zeros((len(blobs), k), np.float32)
    counts = np.array([len(blob) // _ENTRY_BYTES for blob in blobs], np.int64)
    entries = np.frombuffer(b"".join(blobs), "u1").reshape(-1, _ENTRY_BYTES)
    row = np.repeat(np.arange(len(blobs)), counts)
    place = np.arange(len(entries)) - np.repeat(np.cumsum(counts) - counts, counts)
    numbers = _rows_of(np.ascontiguousarray(entries[:, :_KEY_BYTES]), keys)
    neighbours[row, place] = numbers
    similarities[row, place] = np.ascontiguousarray(entries[:, _KEY_BYTES:]).view("<f4").ravel()
    return KnnLists(neighbours, similarities)


def _rows_of(wanted: NDArray[np.uint8], keys: list[bytes]) -> NDArray[np.int64]:
    """(n,) places of keys, given as rows of bytes, among sorted ones that hold them all."""
    import numpy as np

    heads = np.frombuffer(b"".join(key[:8] for key in keys), ">u8")
    if len(heads) > 1 and (heads[1:] == heads[:-1]).any():
        row_of = {key: row for row, key in enumerate(keys)}
        return np.array([row_of[row.tobytes()] for row in wanted], np.int64)
    rows: NDArray[np.int64] = np.searchsorted(heads, wanted[:, :8].copy().view(">u8").ravel())
    return rows


def _store(
    db: sqlite3.Connection,
    nodes: _Stretches,
    lists: KnnLists,
    old: dict[bytes, tuple[int, bytes]],
) -> None:
    """Write the rows that changed, and drop those whose stretch has gone."""
    import numpy as np

    n, k = lists.neighbours.shape
    packed = np.zeros((n, k, _ENTRY_BYTES), "u1")
    keys = np.frombuffer(b"".join(nodes.keys), "u1").reshape(-1, _KEY_BYTES)
    packed[:, :, :_KEY_BYTES] = keys[lists.neighbours]
    packed[:, :, _KEY_BYTES:] = (
        lists.similarities.astype("<f4").reshape(n, k, 1).view("u1").reshape(n, k, 4)
    )
    counts = (lists.neighbours >= 0).sum(axis=1).tolist()
    changed = []
    owners = nodes.owners.tolist()
    for row, key in enumerate(nodes.keys):
        entry = (owners[row], packed[row, : counts[row]].tobytes())
        if old.pop(key, None) != entry:
            changed.append((key, *entry))
    db.executemany("DELETE FROM neighbours WHERE key = ?", [(key,) for key in old])
    db.executemany("INSERT OR REPLACE INTO neighbours VALUES (?, ?, ?)", changed)


def similar_edges(
    similar: Similar,
    vectors: Vectors,
    options: LinkOptions,
    node_of: Callable[[NDArray[np.int64]], NDArray[np.int64]],
) -> Edges:
    """Chunk pairs with a listed pair of stretches; weight is the highest similarity over those.

    Chunks whose whole vectors are too alike are copies, not relatives, and get no edge; nor does a
    list count that is full of near copies. Chunks that share a stretch are joined with weight 1,
    each with the next.
    """
    import numpy as np

    nodes, lists = similar.nodes, similar.lists
    # A list full of near copies leaves out as many more: whom it names is chance, and the same
    # few for everybody, which would make hubs of them.
    telling = lists.similarities[:, -1] < options.near_dup_sim
    source, place = np.nonzero((lists.neighbours >= 0) & telling[:, np.newaxis])
    near = lists.neighbours[source, place].astype(np.int64)
    one, other, pair = _paired_owners(nodes, source, near, node_of)
    weights = lists.similarities[source, place][pair]
    shared = _shared_owners(nodes, node_of)
    one, other = np.concatenate((one, shared[0])), np.concatenate((other, shared[1]))
    weights = np.concatenate((weights, np.ones(len(shared[0]), np.float32)))
    keep = one != other
    low, high = np.minimum(one, other)[keep], np.maximum(one, other)[keep]
    low, high, weight = _strongest(low, high, weights[keep])
    keep = _whole_similarity(vectors, low, high, weight, options) < options.near_dup_sim
    return node_of(low[keep]), node_of(high[keep]), np.minimum(weight[keep], np.float32(1.0))


def _in_order(
    nodes: _Stretches, node_of: Callable[[NDArray[np.int64]], NDArray[np.int64]]
) -> NDArray[np.int64]:
    """(p,) chunks of `nodes.rows`, those of one stretch in order of path and position."""
    import numpy as np

    chunks: NDArray[np.int64] = nodes.chunks[np.lexsort((node_of(nodes.chunks), nodes.rows))]
    return chunks


def _paired_owners(
    nodes: _Stretches,
    one: NDArray[np.int64],
    other: NDArray[np.int64],
    node_of: Callable[[NDArray[np.int64]], NDArray[np.int64]],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Chunks for pairs of stretches, and which pair each is of.

    Where several chunks hold a stretch, the first goes with the first of the other side, and so on,
    beginning again on the shorter side: copies of a tree are joined within themselves, at a cost
    that grows with the copies and not with their square.
    """
    import numpy as np

    chunks = _in_order(nodes, node_of)
    first = np.searchsorted(nodes.rows, np.arange(len(nodes.keys) + 1))
    n_one, n_other = np.diff(first)[one], np.diff(first)[other]
    counts = np.maximum(n_one, n_other)
    pair = np.repeat(np.arange(len(one)), counts)
    turn = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return (
        chunks[first[one[pair]] + turn % n_one[pair]],
        chunks[first[other[pair]] + turn % n_other[pair]],
        pair,
    )


def _shared_owners(
    nodes: _Stretches, node_of: Callable[[NDArray[np.int64]], NDArray[np.int64]]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Each chunk of a stretch that several hold, with the next one."""
    import numpy as np

    chunks = _in_order(nodes, node_of)
    at = np.flatnonzero(nodes.rows[1:] == nodes.rows[:-1])
    return chunks[at], chunks[at + 1]


def _strongest(a: NDArray[np.int64], b: NDArray[np.int64], weight: NDArray[np.float32]) -> Edges:
    import numpy as np

    order = np.lexsort((-weight, b, a))
    a, b, weight = a[order], b[order], weight[order]
    first = np.ones(len(a), bool)
    first[1:] = (a[1:] != a[:-1]) | (b[1:] != b[:-1])
    return a[first], b[first], weight[first]


def _whole_similarity(
    vectors: Vectors,
    a: NDArray[np.int64],
    b: NDArray[np.int64],
    weight: NDArray[np.float32],
    options: LinkOptions,
) -> NDArray[np.float64]:
    """(p,) cosine of the pairs' whole vectors, the same bits whatever else is asked.

    Args:
        a, b: chunks.
        weight: similarity of their nearest stretches, which are the chunks themselves where each
            is a single one.
    """
    import numpy as np

    alike = weight.astype(np.float64)
    if options.edge_source == "chunk":
        return alike
    several = (vectors.n_windows(a) > 1) | (vectors.n_windows(b) > 1)
    asked = np.flatnonzero(several | bool(vectors.n_parts))
    chunks, back = np.unique(np.concatenate((a[asked], b[asked])), return_inverse=True)
    if not len(chunks):
        return alike
    whole = vectors.whole(chunks)
    left, right = back[: len(asked)], back[len(asked) :]
    for at in range(0, len(asked), _PAIRS):
        part = slice(at, at + _PAIRS)
        product = np.multiply(whole[left[part]], whole[right[part]], dtype=np.float64)
        alike[asked[part]] = np.add.reduce(product, axis=1)
    return alike

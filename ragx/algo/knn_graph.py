"""Nearest neighbours of every row by cosine: directed lists, built exactly and repaired exactly.

The lists depend on the rows alone. A similarity is the float64 product of two rows, summed row by
row and rounded to float32, so (u, v) and (v, u) have the same bits whatever is computed beside
them; BLAS, whose sums depend on the shape, only preselects. Order is (similarity descending, row
ascending), so a list after any insertions and deletions is the list of a fresh build.

Every pair of blocks is multiplied once and serves both sides. A list in the making is a row of
sorted uint64 keys: the similarity, inverted so that better is smaller, above the row number.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "EXACT_LIMIT",
    "KnnLists",
    "approximate_lists",
    "build_lists",
    "edge_recall",
    "repair_lists",
]

# 100,000 rows take half a minute to a minute on two cores, and the time grows with the square; HNSW
# is slower than that up to here, and misses some (research/graph.md).
EXACT_LIMIT = 300_000

# Rows per block: a tile of products stays in the cache for the comparisons that follow.
_BLOCK = 2048
# If more than one in _MANY pairs of a tile passes, the best k of the tile are worth a selection.
_MANY = 256
# If still more than one in _DENSE passes, as with ties, the tile is multiplied again in double
# precision, which costs less than scoring that many pairs one by one.
_DENSE = 32
# Candidates kept before they are merged into the lists.
_PENDING = 1 << 15
# Pairs of a tile in double precision that are looked at together.
_PIECE = 1 << 19
# Pairs scored at a time: their products stay in the cache.
_PAIRS = 64

# Published names; the same values as the vector index.
_M, _EF_CONSTRUCTION, _EF_SEARCH = 16, 200, 200

_NO_KEY = 0xFFFF_FFFF_FFFF_FFFF
_LOW = 0xFFFF_FFFF
_SIGN = 0x8000_0000


@dataclass(frozen=True, slots=True)
class KnnLists:
    """Neighbours of n rows, k at most.

    Args:
        neighbours: (n, k) int32 row numbers, best first, padded with -1.
        similarities: (n, k) float32, at most 1, falling; padded with 0.
    """

    neighbours: NDArray[np.int32]
    similarities: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.neighbours)


def build_lists(
    matrix: NDArray[np.float32], groups: NDArray[np.int64], *, k: int, min_similarity: float
) -> KnnLists:
    """The k nearest neighbours of every row, exactly.

    Args:
        matrix: (n, d) float32 unit rows in the order that breaks ties. Rows of other lengths are
            compared by product; zero rows are allowed.
        groups: (n,) int64; rows of one group are never each other's neighbours.
        k: neighbours per row, at least 1.
        min_similarity: what a neighbour must have, in [-1, 1], itself rounded to float32.
    Returns:
        Lists of n rows; n = 0 gives lists of no rows.
    Raises:
        ValueError: shapes or types do not fit, a value is not finite, or an option out of range.
    """
    import numpy as np

    search = _Search(matrix, groups, k, min_similarity)
    blocks = list(_blocks(np.arange(len(search.matrix))))
    # Rows that stand together tend to be alike: with these first, less passes afterwards.
    for block in blocks:
        search.meet(block, block, both=False)
    for i, left in enumerate(blocks):
        for right in blocks[i + 1 :]:
            search.meet(left, right, both=True)
    return search.lists()


def repair_lists(
    old: KnnLists,
    kept: NDArray[np.int64],
    matrix: NDArray[np.float32],
    groups: NDArray[np.int64],
    *,
    k: int,
    min_similarity: float,
) -> KnnLists:
    """What `build_lists` gives for the rows now, from the lists of the rows before.

    A list that was full and lost a neighbour is searched anew, as what stood below it is unknown;
    any other list only loses what is gone and takes in what is new.

    Args:
        old: lists of the rows before, made with the same `k` and `min_similarity`.
        kept: (n,) int64; for each row now the row it was, or -1 if it is new or changed. Rows that
            were kept have the vector they had, share groups exactly with those they shared them
            with, and stand in the same order as before.
        matrix: (n, d) float32 rows now, as for `build_lists`.
        groups: (n,) int64 groups now; their numbers need not be those of before.
        k: as before.
        min_similarity: as before.
    Returns:
        Lists of n rows, bit for bit those of `build_lists`.
    Raises:
        ValueError: as for `build_lists`, or `kept` is out of order or range, or `old` differs in k.
    """
    import numpy as np

    search = _Search(matrix, groups, k, min_similarity)
    n = len(search.matrix)
    stays = _check_kept(old, kept, n, k)
    now = np.full(len(old) + 1, -1, np.int64)  # the last entry maps the padding, -1
    now[kept[stays]] = np.flatnonzero(stays)
    before = old.neighbours[kept[stays]]
    mapped = now[before]
    stale = np.zeros(n, np.bool_)
    stale[stays] = (before[:, -1] >= 0) & ((before >= 0) & (mapped < 0)).any(axis=1)
    fresh, redo = np.flatnonzero(~stays), np.flatnonzero(stale)
    if len(fresh) + len(redo) > n // 2:
        return build_lists(matrix, groups, k=k, min_similarity=min_similarity)
    keys = np.where(mapped >= 0, _keys(old.similarities[kept[stays]], mapped), _NO_KEY)
    keys.sort(axis=1)
    valid = np.flatnonzero(stays & ~stale)
    search.start(valid, keys[~stale[stays]])
    for left in _blocks(fresh):
        for right in _blocks(valid):
            search.meet(left, right, both=True)
        for right in _blocks(np.flatnonzero(~stays | stale)):
            search.meet(left, right, both=False)
    for left in _blocks(redo):
        for right in _blocks(np.arange(n)):
            search.meet(left, right, both=False)
    return search.lists()


def approximate_lists(
    matrix: NDArray[np.float32], groups: NDArray[np.int64], *, k: int, min_similarity: float
) -> KnnLists:
    """The k nearest neighbours of every row among those that HNSW proposes, scored exactly.

    For more rows than `EXACT_LIMIT`. Equal rows are one point of the graph, which would otherwise
    fall apart into cliques of them. The same input gives the same lists on one machine.

    Args:
        matrix: as for `build_lists`.
        groups: as for `build_lists`.
        k: neighbours per row, at least 1.
        min_similarity: as for `build_lists`.
    Returns:
        Lists of n rows; some neighbours may be missed.
    Raises:
        ValueError: as for `build_lists`.
    Source: Malkov and Yashunin, 2016; `M`, `ef_construction` and `ef_search` as there.
    """
    import numpy as np

    search = _Search(matrix, groups, k, min_similarity)
    n, dimension = search.matrix.shape
    if n < 2 or not dimension:
        return build_lists(matrix, groups, k=k, min_similarity=min_similarity)
    points, point_of = _distinct(search.matrix)
    members, starts = _members(point_of, search.groups, k)
    # So many may be wasted on rows of the own group, and one on the row itself.
    largest = int(np.unique(search.groups, return_counts=True)[1].max())
    ask = min(len(points), max(2 * k, min(k + largest, _EF_SEARCH)))
    for first, found in _propose(search.matrix[points], ask):
        rows = np.flatnonzero((point_of >= first) & (point_of < first + len(found)))
        for part in _blocks(rows, max(1, _BLOCK**2 // (2 * k * (ask + 1)))):
            near = found[point_of[part] - first]
            # HNSW may miss the point that was asked for, whose other rows are the nearest.
            near = np.concatenate((point_of[part, None], near), axis=1)
            again = near[:, 1:] == near[:, :1]
            counts = starts[near + 1] - starts[near]
            counts[:, 1:][again] = 0
            flat = counts.ravel()
            ends = np.cumsum(flat)
            offsets = np.arange(ends[-1]) - np.repeat(ends - flat, flat)
            others = members[np.repeat(starts[near].ravel(), flat) + offsets]
            search.propose(np.repeat(part, counts.sum(axis=1)), others)
    return search.lists()


def edge_recall(exact: KnnLists, approximate: KnnLists) -> float:
    """Share of the exact edges that the approximate lists hold; 1 if there are none.

    Raises:
        ValueError: the lists are of different numbers of rows.
    """
    import numpy as np

    if len(exact) != len(approximate):
        raise ValueError(f"lists of {len(exact)} and of {len(approximate)} rows")
    wanted, found = _edges(exact), _edges(approximate)
    return float(np.isin(wanted, found).mean()) if len(wanted) else 1.0


def _edges(lists: KnnLists) -> NDArray[np.int64]:
    """Edges as single numbers, owner * n + neighbour."""
    import numpy as np

    owners, places = np.nonzero(lists.neighbours >= 0)
    edges: NDArray[np.int64] = owners * len(lists) + lists.neighbours[owners, places]
    return edges


class _Search:
    """Lists in the making over checked rows; candidates are merged into them in any order."""

    def __init__(
        self,
        matrix: NDArray[np.float32],
        groups: NDArray[np.int64],
        k: int,
        min_similarity: float,
    ) -> None:
        import numpy as np

        if k < 1:
            raise ValueError(f"k is {k}, it must be at least 1")
        if not -1 <= min_similarity <= 1:
            raise ValueError(f"min_similarity is {min_similarity}, no cosine")
        if matrix.ndim != 2 or matrix.dtype != np.float32:
            raise ValueError(f"the matrix is {matrix.shape} {matrix.dtype}, not (n, d) float32")
        n, dimension = matrix.shape
        if groups.shape != (n,) or groups.dtype != np.int64:
            raise ValueError(f"the groups are {groups.shape} {groups.dtype}, not ({n},) int64")
        # Sums run along rows; another memory layout would change their order, so their bits.
        self.matrix = np.ascontiguousarray(matrix)
        self.groups = groups
        self.k = k
        self.minimum = np.float32(min_similarity)
        longest = float(np.einsum("ij,ij->i", self.matrix, self.matrix).max(initial=0.0))
        if not np.isfinite(longest):
            raise ValueError("the matrix holds a value that is not finite")
        # Twice the bound on the error of a sum of d products, in either precision; the bound
        # covers the rounding to float32, too.
        self.slack = max(1e-5, longest * (dimension + 1) * 2.0**-23)
        self.doubt = max(1.0, longest) * (dimension + 1) * 2.0**-52
        self.keys = np.full((n, k), _NO_KEY, np.uint64)
        self.floors = np.full(n, self.minimum - np.float32(self.slack), np.float32)
        # A fresh tile would cost a page fault for every 4 KiB, which adds up to a second product.
        size = min(n, _BLOCK) ** 2
        self._products = np.empty(size, np.float32)
        self._passed = np.empty((2, size), np.bool_)
        self._owners: list[NDArray[np.int64]] = []
        self._offers: list[NDArray[np.uint64]] = []
        self._pending = 0

    def start(self, rows: NDArray[np.int64], keys: NDArray[np.uint64]) -> None:
        """Give rows the lists that they have so far, sorted."""
        self.keys[rows] = keys
        self._raise_floors(rows)

    def lists(self) -> KnnLists:
        """The lists of everything met so far."""
        import numpy as np

        self._merge()
        neighbours = (self.keys & _LOW).astype(np.int32)  # the padding becomes -1
        similarities = np.where(neighbours >= 0, _similarities_of(self.keys), np.float32(0))
        return KnnLists(neighbours, similarities)

    def meet(self, left: NDArray[np.int64], right: NDArray[np.int64], *, both: bool) -> None:
        """Offer the rows on the right to the lists on the left, and the other way round if `both`.

        Rows ascend on each side. No pair may be offered twice.
        """
        import numpy as np

        shape = len(left), len(right)
        size = len(left) * len(right)
        tile = self._products[:size].reshape(shape)
        passed, for_right = self._passed[:, :size].reshape(2, *shape)
        np.matmul(self._rows(left), self._rows(right).T, out=tile)
        np.greater_equal(tile, self.floors[left][:, None], out=passed)
        if both:
            passed |= np.greater_equal(tile, self.floors[right], out=for_right)
        if np.count_nonzero(passed) > size // _MANY:
            tile[self.groups[left][:, None] == self.groups[right]] = -np.inf
            np.greater_equal(
                tile, self._best(tile, self.floors[left], self.slack)[:, None], out=passed
            )
            if both:
                turned = np.ascontiguousarray(tile.T)
                best = self._best(turned, self.floors[right], self.slack)
                passed |= np.greater_equal(tile, best, out=for_right)
        if np.count_nonzero(passed) <= size // _DENSE:
            hits = np.flatnonzero(passed)
            x, y = left[hits // len(right)], right[hits % len(right)]
            apart = self.groups[x] != self.groups[y]
            x, y = x[apart], y[apart]
            scores = _score(self.matrix, x, y)
            self._offer(x, y, scores)
            if both:
                self._offer(y, x, scores)
            return
        exact = self._tile(left, right)
        self._offer_tile(left, right, exact)
        if both:
            self._offer_tile(right, left, exact.T)

    def propose(self, owners: NDArray[np.int64], others: NDArray[np.int64]) -> None:
        """Offer single pairs, none of them twice, to the lists of the owners."""
        apart = self.groups[owners] != self.groups[others]
        owners, others = owners[apart], others[apart]
        self._offer(owners, others, _score(self.matrix, owners, others))

    def _rows(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """The rows, without a copy if they stand together."""
        if len(rows) and rows[-1] - rows[0] == len(rows) - 1:
            return self.matrix[rows[0] : rows[-1] + 1]
        return self.matrix[rows]

    def _best(
        self, tile: NDArray[np.float32], floors: NDArray[np.float32], error: float
    ) -> NDArray[np.float32]:
        """The floors, raised to what the best k of each row of the tile cannot be below."""
        import numpy as np

        if self.k >= tile.shape[1]:
            return floors
        # Among ties nothing can be raised, and selection is at its slowest.
        if bool(
            (np.minimum(tile.max(axis=1), np.float32(1)) - np.float32(2 * error) <= floors).all()
        ):
            return floors
        place = tile.shape[1] - self.k
        best = np.partition(tile, place, axis=1)[:, place]
        # Whatever is cut to 1 ties there, however far above 1 its product is.
        return np.maximum(floors, np.minimum(best, np.float32(1)) - np.float32(2 * error))

    def _tile(self, left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.float32]:
        """The exact similarities of all pairs; -inf within a group.

        A float64 product of BLAS rounds to the same float32 as the sum by rows unless it is very
        near to where rounding turns; only those are summed again.
        """
        import numpy as np

        a, b = self._rows(left).astype(np.float64), self._rows(right).astype(np.float64)
        products = a @ b.T
        products += self.doubt
        exact = products.astype(np.float32)
        products -= 2 * self.doubt
        doubtful = np.flatnonzero(products.astype(np.float32) != exact)
        np.minimum(exact, np.float32(1), out=exact)
        if len(doubtful):
            x, y = left[doubtful // len(right)], right[doubtful % len(right)]
            exact.ravel()[doubtful] = _score(self.matrix, x, y)
        exact[self.groups[left][:, None] == self.groups[right]] = -np.inf
        return exact

    def _offer_tile(
        self, owners: NDArray[np.int64], others: NDArray[np.int64], exact: NDArray[np.float32]
    ) -> None:
        """Offer what can enter the lists; `others` ascend, so that of a tie the first may."""
        import numpy as np

        self._merge()
        worst = self.keys[owners, -1]
        floors = np.maximum(_similarities_of(worst), self.minimum)
        # An equal similarity enters only with a lower row number than the worst in the list.
        beaten = (worst != _NO_KEY) & ((worst & _LOW) < others[0].astype(np.uint64))
        floors[beaten] = np.nextafter(floors[beaten], np.float32(np.inf))
        # All of a piece may tie, so pieces bound what is offered at once.
        step = max(1, _PIECE // len(others))
        for start in range(0, len(owners), step):
            piece = np.ascontiguousarray(exact[start : start + step])
            passed = piece >= self._best(piece, floors[start : start + step], 0.0)[:, None]
            hits = np.flatnonzero(passed)
            x, y = owners[start + hits // len(others)], others[hits % len(others)]
            self._offer(x, y, piece.ravel()[hits])

    def _offer(
        self, owners: NDArray[np.int64], others: NDArray[np.int64], scores: NDArray[np.float32]
    ) -> None:
        """Note the pairs that are good enough for the lists of their owners as they stand."""
        import numpy as np

        keys = _keys(scores, others)
        good = np.flatnonzero((keys < self.keys[owners, -1]) & (scores >= self.minimum))
        if not len(good):
            return
        self._owners.append(owners[good])
        self._offers.append(keys[good])
        self._pending += len(good)
        if self._pending > _PENDING:
            self._merge()

    def _merge(self) -> None:
        """Bring what was offered into the lists."""
        import numpy as np

        if not self._pending:
            return
        owners, offers = np.concatenate(self._owners), np.concatenate(self._offers)
        self._owners, self._offers, self._pending = [], [], 0
        order = np.lexsort((offers, owners))
        owners, offers = owners[order], offers[order]
        starts = np.flatnonzero(np.concatenate(([True], owners[1:] != owners[:-1])))
        sizes = np.diff(starts, append=len(owners))
        ranks = np.arange(len(owners)) - np.repeat(starts, sizes)
        first = ranks < self.k
        slots = np.repeat(np.arange(len(starts)), sizes)
        rows = owners[starts]
        both = np.full((len(rows), 2 * self.k), _NO_KEY, np.uint64)
        both[:, : self.k] = self.keys[rows]
        both[slots[first], self.k + ranks[first]] = offers[first]
        both.sort(axis=1)
        self.keys[rows] = both[:, : self.k]
        self._raise_floors(rows)

    def _raise_floors(self, rows: NDArray[np.int64]) -> None:
        import numpy as np

        worst = np.maximum(_similarities_of(self.keys[rows, -1]), self.minimum)
        self.floors[rows] = worst - np.float32(self.slack)


def _blocks(rows: NDArray[np.int64], size: int | None = None) -> Iterator[NDArray[np.int64]]:
    step = _BLOCK if size is None else size
    for start in range(0, len(rows), step):
        yield rows[start : start + step]


def _score(
    matrix: NDArray[np.float32], x: NDArray[np.int64], y: NDArray[np.int64]
) -> NDArray[np.float32]:
    """(m,) similarities of the pairs, each by itself: the same whatever else is asked."""
    import numpy as np

    scores = np.empty(len(x), np.float32)
    for start in range(0, len(x), _PAIRS):
        part = slice(start, start + _PAIRS)
        products = np.multiply(matrix[x[part]], matrix[y[part]], dtype=np.float64)
        scores[part] = np.add.reduce(products, axis=1)
    return np.minimum(scores, np.float32(1), out=scores)


def _keys(scores: NDArray[np.float32], rows: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Keys that ascend as (similarity descending, row ascending)."""
    import numpy as np

    bits = (scores + np.float32(0)).view(np.uint32)  # -0 becomes 0, which it ties with
    # IEEE bits ascend with positive values and descend with negative ones.
    falling = np.where(bits & _SIGN, bits, ~(bits | _SIGN))
    keys: NDArray[np.uint64] = (falling.astype(np.uint64) << np.uint64(32)) | rows.astype(np.uint64)
    return keys


def _similarities_of(keys: NDArray[np.uint64]) -> NDArray[np.float32]:
    """The similarities in keys; -inf for no key."""
    import numpy as np

    falling = (keys >> np.uint64(32)).astype(np.uint32)
    bits = np.where(falling & _SIGN, falling, ~(falling | _SIGN))
    bits[keys == _NO_KEY] = np.float32(-np.inf).view(np.uint32)
    similarities: NDArray[np.float32] = bits.view(np.float32)
    return similarities


def _check_kept(old: KnnLists, kept: NDArray[np.int64], n: int, k: int) -> NDArray[np.bool_]:
    """(n,) whether a row was there before, if `kept` can be true."""
    import numpy as np

    if old.neighbours.shape[1:] != (k,):
        raise ValueError(f"the old lists are {old.neighbours.shape}, not of {k} neighbours")
    if kept.shape != (n,) or kept.dtype != np.int64:
        raise ValueError(f"kept is {kept.shape} {kept.dtype}, not ({n},) int64")
    stays = kept >= 0
    rows = kept[stays]
    if len(rows) and (int(rows[-1]) >= len(old) or bool((np.diff(rows) <= 0).any())):
        raise ValueError("kept rows are out of order, or were not there")
    return stays


def _distinct(
    matrix: NDArray[np.float32],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """First row of each distinct row, ascending, and for each row which of them it equals."""
    import numpy as np

    whole = matrix.view(np.dtype((np.void, matrix.shape[1] * matrix.itemsize))).ravel()
    _, first, inverse = np.unique(whole, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return first[order], rank[inverse]


def _members(
    point_of: NDArray[np.int64], groups: NDArray[np.int64], k: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows of each point that can be neighbours: rows[starts[p] : starts[p + 1]], ascending.

    All rows of a point are equally near, so a list takes the first k outside its own group. These
    are among the first 2k once each group is cut to its first k.
    """
    import numpy as np

    rows = np.arange(len(point_of))
    order = np.lexsort((rows, groups, point_of))
    same = (np.diff(point_of[order]) == 0) & (np.diff(groups[order]) == 0)
    rows = order[_ranks(same) < k]
    order = np.lexsort((rows, point_of[rows]))
    rows = rows[order]
    rows = rows[_ranks(np.diff(point_of[rows]) == 0) < 2 * k]
    starts = np.searchsorted(point_of[rows], np.arange(int(point_of.max()) + 2))
    return rows, starts


def _ranks(same: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Places 0, 1, ... within runs, given where each item continues the run of the one before."""
    import numpy as np

    starts = np.flatnonzero(np.concatenate(([True], ~same)))
    return np.arange(len(same) + 1) - np.repeat(starts, np.diff(starts, append=len(same) + 1))


def _propose(points: NDArray[np.float32], ask: int) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """By blocks of points, the first and (m, <= ask) points near to each, the point included."""
    import hnswlib
    import numpy as np

    index = hnswlib.Index(space="ip", dim=points.shape[1])
    index.init_index(
        max_elements=len(points), M=_M, ef_construction=_EF_CONSTRUCTION, random_seed=42
    )
    # On one thread, so that the same rows give the same graph.
    index.add_items(points, np.arange(len(points)), num_threads=1)
    index.set_ef(max(_EF_SEARCH, ask))
    for first in range(0, len(points), _BLOCK):
        yield first, _query(index, points[first : first + _BLOCK], ask)


def _query(index: Any, points: NDArray[np.float32], ask: int) -> NDArray[np.int64]:
    import numpy as np

    while True:
        try:
            found, _ = index.knn_query(points, k=ask, num_threads=1)
        except RuntimeError:
            # hnswlib cannot reach so many from here.
            if ask == 1:
                raise
            ask //= 2
        else:
            near: NDArray[np.int64] = found.astype(np.int64)
            return near

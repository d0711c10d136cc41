"""The typed chunk graph as arrays: what names, links, imports, follows or resembles what.

Edges are undirected: each stands in the rows of both its ends. Between two nodes there is at most
one edge of a kind; of several, the strongest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["EDGE_KINDS", "CsrGraph", "Edges", "build_graph", "kind_code", "rarity"]

EDGE_KINDS = ("link", "mention", "import", "symbol", "adjacent", "similar")


def kind_code(kind: str) -> int:
    """Number of an edge kind in the arrays."""
    return EDGE_KINDS.index(kind)


@dataclass(frozen=True, slots=True)
class CsrGraph:
    """Nodes in canonical order (path, position) and their edges in compressed rows.

    Args:
        ids: (n,) int64 chunk id of each node.
        indptr: (n + 1,) int64; the edges of node i are `indptr[i]:indptr[i + 1]`.
        targets: (m,) int32 node at the other end, ascending by (target, kind) within a row.
        kinds: (m,) uint8 index into `EDGE_KINDS`.
        weights: (m,) float32 in (0, 1].
        by_id: (n,) int32 nodes by ascending chunk id.
    """

    ids: NDArray[np.int64]
    indptr: NDArray[np.int64]
    targets: NDArray[np.int32]
    kinds: NDArray[np.uint8]
    weights: NDArray[np.float32]
    by_id: NDArray[np.int32]

    @property
    def n_edges(self) -> int:
        """Undirected edges, counted by kind."""
        return len(self.targets) // 2

    def __len__(self) -> int:
        return len(self.ids)

    def nodes_of(self, chunk_ids: Sequence[int]) -> NDArray[np.int64]:
        """(k,) node of each chunk id; -1 for unknown ids."""
        import numpy as np

        wanted = np.asarray(chunk_ids, dtype=np.int64).reshape(-1)
        if not len(self.ids):
            return np.full(len(wanted), -1, np.int64)
        places = np.searchsorted(self.ids, wanted, sorter=self.by_id)
        nodes = self.by_id[np.minimum(places, len(self.ids) - 1)].astype(np.int64)
        nodes[self.ids[nodes] != wanted] = -1
        return nodes

    def counts_by_kind(self) -> dict[str, int]:
        """Undirected edges of each kind that has any."""
        import numpy as np

        counts = np.bincount(self.kinds, minlength=len(EDGE_KINDS)) // 2
        return {kind: int(n) for kind, n in zip(EDGE_KINDS, counts, strict=True) if n}


Edges = tuple["NDArray[np.int64]", "NDArray[np.int64]", "NDArray[np.float32]"]


def build_graph(ids: NDArray[np.int64], edges: Mapping[str, Edges]) -> CsrGraph:
    """Both directions of every edge, sorted; self-loops go, of parallel edges the strongest stays.

    Args:
        ids: (n,) int64 chunk ids in canonical order.
        edges: by kind: (m,) nodes at one end, (m,) nodes at the other, (m,) weights. The order
            of edges has no influence.
    """
    import numpy as np

    sources, targets, weights, kinds = [], [], [], []
    for kind, (one, other, weight) in edges.items():
        keep = one != other
        one, other, weight = one[keep], other[keep], weight[keep]
        sources += [one, other]
        targets += [other, one]
        weights += [weight, weight]
        kinds.append(np.full(2 * len(one), kind_code(kind), np.uint8))
    n = len(ids)
    if not sources:
        sources, targets = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        weights, kinds = [np.zeros(0, np.float32)], [np.zeros(0, np.uint8)]
    source = np.concatenate(sources).astype(np.int64)
    target = np.concatenate(targets).astype(np.int64)
    kind_of = np.concatenate(kinds)
    # One key per (source, target, kind), so that one sort serves order and doubles alike.
    key = (source * max(n, 1) + target) * len(EDGE_KINDS) + kind_of
    weight_of = np.concatenate(weights).astype(np.float32)
    order = np.lexsort((-weight_of, key))
    key = key[order]
    first = np.ones(len(key), bool)
    first[1:] = key[1:] != key[:-1]
    order = order[first]
    indptr = np.zeros(n + 1, np.int64)
    np.cumsum(np.bincount(source[order], minlength=n), out=indptr[1:])
    return CsrGraph(
        ids=np.ascontiguousarray(ids, np.int64),
        indptr=indptr,
        targets=target[order].astype(np.int32),
        kinds=kind_of[order],
        weights=weight_of[order],
        by_id=np.argsort(ids, kind="stable").astype(np.int32),
    )


def rarity(n: int, df: NDArray[np.int64]) -> NDArray[np.float32]:
    """ln(1 + n / df) / ln(1 + n): 1 for a name in one chunk of n, towards 0 for common ones.

    Args:
        n: chunks in the corpus.
        df: (k,) chunks that hold each name, at least 1.
    """
    import numpy as np

    if n < 1:
        return np.zeros(len(df), np.float32)
    result: NDArray[np.float32] = (np.log1p(n / df) / np.log1p(n)).astype(np.float32)
    return result

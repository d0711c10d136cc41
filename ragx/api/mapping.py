"""The graph of a corpus as a map: what there is, how it is grouped, where it lies.

A map is for looking: where an index holds more than can be looked at, the best joined chunks and
the heaviest edges stand for the rest, and `notices` says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ragx.algo.graph import EDGE_KINDS, CsrGraph, kind_code
from ragx.algo.locators import COLUMNS
from ragx.errors import MissingDependency
from ragx.store.base import Reader
from ragx.store.communities import CommunityOptions
from ragx.types import Chunk

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["CorpusMap", "MapCommunity", "MapEdge", "MapGroup", "MapNode", "draw_map"]

MAX_NODES = 40_000
MAX_EDGES = 120_000
_LABEL_CHARS = 60
_READ_CHARS = 200

Grouping = Literal["community", "directory", "none"]


@dataclass(frozen=True, slots=True)
class MapNode:
    """A chunk on the map; `degree` counts its edges of all kinds in the index."""

    chunk: Chunk
    label: str
    community: int
    degree: int
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class MapEdge:
    """An edge between two chunks on the map, by id."""

    source: int
    target: int
    weight: float
    kind: str


@dataclass(frozen=True, slots=True)
class MapCommunity:
    """A group of chunks and its disc; `size` and `n_files` are those in the index."""

    number: int
    label: str
    size: int
    n_files: int
    x: float
    y: float
    radius: float


@dataclass(frozen=True, slots=True)
class MapGroup:
    """The disc of the chunks that one file has in one community."""

    community: int
    path: str
    size: int
    x: float
    y: float
    radius: float


@dataclass(frozen=True)
class CorpusMap:
    """A map of one committed state.

    Args:
        nodes: in the order of path and position.
        edges: the heaviest first, those of mere neighbours in a file (adjacent) after the others.
        edge_counts: edges in the index, by kind; kinds without any are absent.
        grouping: what `communities` are; directories where communities say nothing or cannot be
            found, and `notices` tells why.
        extent: radius of the circle round (0, 0) that holds everything.
    """

    root: Path
    edge_source: str
    subchunk_size_tokens: int
    embedding_model: str
    n_nodes: int
    n_edges: int
    n_communities: int
    edge_counts: Mapping[str, int]
    grouping: Grouping
    communities: tuple[MapCommunity, ...]
    groups: tuple[MapGroup, ...]
    nodes: tuple[MapNode, ...]
    edges: tuple[MapEdge, ...]
    extent: float
    notices: tuple[str, ...]

    @property
    def name(self) -> str:
        """The root's own name."""
        return self.root.name or str(self.root)

    def node(self, chunk_id: int) -> MapNode | None:
        """A chunk on the map; None if it is not there."""
        return self._nodes.get(chunk_id)

    def community(self, number: int) -> MapCommunity | None:
        """A group on the map; None if it is not there."""
        return self._communities.get(number)

    @staticmethod
    def label(chunk: Chunk) -> str:
        """What a chunk is called on the map: its heading, else a symbol, else how it begins."""
        # Columns of a table are no name; `__all__` and its like stand in every module.
        names = (*reversed(chunk.heading), *chunk.symbols)
        text = next((one for one in names if not one.startswith((COLUMNS, "__"))), "")
        text = text or chunk.text[:_READ_CHARS]
        words = " ".join(text.split())
        return words if len(words) <= _LABEL_CHARS else words[: _LABEL_CHARS - 1].rstrip() + "…"

    @cached_property
    def _nodes(self) -> Mapping[int, MapNode]:
        return {node.chunk.chunk_id: node for node in self.nodes}

    @cached_property
    def _communities(self) -> Mapping[int, MapCommunity]:
        return {group.number: group for group in self.communities}


def draw_map(
    root: Path,
    reader: Reader,
    options: CommunityOptions,
    *,
    edge_source: str,
    subchunk_size_tokens: int,
    embedding_model: str,
    max_nodes: int = MAX_NODES,
    max_edges: int = MAX_EDGES,
) -> CorpusMap:
    """Draw the map of what a reader sees.

    Raises:
        IndexDamaged, StoreError: the index cannot be read.
    """
    import numpy as np

    from ragx.algo.map_layout import lay_out

    graph = reader.graph()
    chunks = reader.outlines(_READ_CHARS)
    degree = np.diff(graph.indptr)
    number_of: dict[str, int] = {}
    file = np.array([number_of.setdefault(one.path, len(number_of)) for one in chunks], np.int64)
    paths = list(number_of)
    grouping, community, labels, notices = _grouped(reader, graph, chunks, options)

    shown = np.arange(len(chunks))
    if len(chunks) > max_nodes:
        shown = np.sort(np.argsort(-degree, kind="stable")[:max_nodes])
        notices.append(
            f"the map shows {max_nodes:,} of {len(chunks):,} chunks: those with the most edges"
        )
    source, target, kind, weight, n_between = _heaviest(graph, shown, max_edges)
    if len(source) < n_between:
        notices.append(f"the map holds {len(source):,} of {n_between:,} edges: the heaviest")

    layout = lay_out(
        community[shown],
        file[shown],
        source,
        target,
        weight * (kind != kind_code("adjacent")),
        n_communities=len(labels),
    )
    sizes = np.bincount(community, minlength=len(labels))
    n_files = np.bincount(
        np.unique(np.stack([community, file], axis=1), axis=0)[:, 0], minlength=len(labels)
    )
    on_map = np.bincount(community[shown], minlength=len(labels))
    ids = graph.ids[shown]
    return CorpusMap(
        root=root,
        edge_source=edge_source,
        subchunk_size_tokens=subchunk_size_tokens,
        embedding_model=embedding_model,
        n_nodes=len(chunks),
        n_edges=graph.n_edges,
        n_communities=len(labels),
        edge_counts=graph.counts_by_kind(),
        grouping=grouping,
        communities=tuple(
            MapCommunity(number, labels[number], int(sizes[number]), int(n_files[number]), *disc)
            for number, disc in enumerate(
                zip(
                    layout.communities.x.tolist(),
                    layout.communities.y.tolist(),
                    layout.communities.radius.tolist(),
                    strict=True,
                )
            )
            if on_map[number]
        ),
        groups=tuple(
            MapGroup(one, paths[of], size, x, y, radius)
            for one, of, size, x, y, radius in zip(
                layout.group_community.tolist(),
                layout.group_file.tolist(),
                layout.group_size.tolist(),
                layout.groups.x.tolist(),
                layout.groups.y.tolist(),
                layout.groups.radius.tolist(),
                strict=True,
            )
        ),
        nodes=tuple(
            MapNode(chunks[at], CorpusMap.label(chunks[at]), group, joined, x, y)
            for at, group, joined, x, y in zip(
                shown.tolist(),
                community[shown].tolist(),
                degree[shown].tolist(),
                layout.x.tolist(),
                layout.y.tolist(),
                strict=True,
            )
        ),
        edges=tuple(
            MapEdge(one, other, by, EDGE_KINDS[code])
            for one, other, by, code in zip(
                ids[source].tolist(),
                ids[target].tolist(),
                weight.tolist(),
                kind.tolist(),
                strict=True,
            )
        ),
        extent=layout.extent,
        notices=tuple(notices),
    )


def _grouped(
    reader: Reader, graph: CsrGraph, chunks: Sequence[Chunk], options: CommunityOptions
) -> tuple[Grouping, NDArray[np.int64], Sequence[str], list[str]]:
    """What groups chunks: the kind of group, each chunk's, the groups' labels, and notices."""
    import numpy as np

    if not chunks:
        why = "the index holds no text: ragx index -v lists what is left out, and why"
        return "none", np.zeros(0, np.int64), (), [why]
    if graph.n_edges:
        try:
            found = reader.communities(options)
            return "community", np.array(found.of, np.int64), found.labels, []
        except MissingDependency as fault:
            why = f"{fault.message}; {fault.hint}"
    else:
        why = "no chunk is joined to another"
    names = [_directory(chunk.path) for chunk in chunks]
    # Counted as communities are: the largest first.
    ordered = [name for name, _ in Counter(names).most_common()]
    number_of = {name: number for number, name in enumerate(ordered)}
    community = np.array([number_of[name] for name in names], np.int64)
    return "directory", community, ordered, [f"{why}: chunks are grouped by directory"]


def _directory(path: str) -> str:
    first, slash, _ = path.partition("/")
    return f"{first}/" if slash else "./"


def _heaviest(
    graph: CsrGraph, shown: NDArray[np.int64], most: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint8], NDArray[np.float64], int]:
    """Edges between the shown nodes, each once, the heaviest first: ends as positions among these,
    kinds, weights; and how many there are without the limit."""
    import numpy as np

    source = np.repeat(np.arange(len(graph)), np.diff(graph.indptr))
    place = np.full(len(graph), -1, np.int64)
    place[shown] = np.arange(len(shown))
    one, other = place[source], place[graph.targets]
    kept = np.flatnonzero((one >= 0) & (other >= 0) & (one < other))
    adjacent = graph.kinds[kept] == kind_code("adjacent")
    order = np.lexsort((-graph.weights[kept], adjacent))
    best = kept[order[:most]]
    return (
        one[best],
        other[best],
        graph.kinds[best],
        graph.weights[best].astype(np.float64),
        len(kept),
    )

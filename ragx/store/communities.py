"""Communities of one committed state, kept in a file beside the index until the graph changes.

They follow from the graph, the resolution and the seed alone, so they are found when somebody asks
for the first time after a change; what an index run leaves behind is good until then.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import xxhash

from ragx.algo.graph import EDGE_KINDS, CsrGraph
from ragx.errors import MissingDependency
from ragx.store.derived import replace_file
from ragx.types import Chunk

__all__ = [
    "COMMUNITIES_NAME",
    "CommunityOptions",
    "Partition",
    "find_communities",
    "read_communities",
]

COMMUNITIES_NAME = "communities.json"
_VERSION = 1  # raised when the same graph gives other communities or labels than before
# Every two neighbours in a file are adjacent: at full weight that would make files of all groups.
_FACTORS = {kind: 0.3 if kind == "adjacent" else 1.0 for kind in EDGE_KINDS}


@dataclass(frozen=True, slots=True)
class CommunityOptions:
    """Settings from `[communities]`: higher resolution gives more and smaller groups."""

    resolution: float = 1.0
    seed: int = 42


@dataclass(frozen=True, slots=True)
class Partition:
    """Communities by number, the largest first.

    Args:
        of: community of each node of the graph, in its order.
        labels: one line for each community.
        stamp: of the graph that they are of.
    """

    of: tuple[int, ...]
    labels: tuple[str, ...]
    stamp: str


def find_communities(
    directory: Path,
    graph: CsrGraph,
    stamp: str,
    options: CommunityOptions,
    describe: Callable[[], Iterator[tuple[Chunk, str]]],
    *,
    keep: bool,
) -> Partition:
    """Communities of a graph, from the file where it fits, else found now.

    Args:
        describe: gives each node's chunk and its document's title, in the graph's order.
        keep: whether to write the file for the next process.
    Raises:
        MissingDependency: leidenalg or igraph is not installed.
    """
    known = read_communities(directory, options)
    if known is not None and known.stamp == stamp and len(known.of) == len(graph):
        return known
    import numpy as np

    from ragx.algo.communities import Member, detect, label_communities

    source = np.repeat(np.arange(len(graph)), np.diff(graph.indptr))
    factors = np.array([_FACTORS[kind] for kind in EDGE_KINDS], np.float64)
    try:
        found = detect(
            len(graph),
            source,
            graph.targets.astype(np.int64),
            graph.weights.astype(np.float64) * factors[graph.kinds],
            resolution=options.resolution,
            seed=options.seed,
        ).tolist()
    except ImportError as fault:
        raise MissingDependency(
            f"communities need leidenalg and igraph ({fault.name} is missing)",
            hint="pip install leidenalg igraph",
        ) from fault
    members = (
        Member(chunk.path, chunk.text, title, chunk.heading, chunk.symbols)
        for chunk, title in describe()
    )
    partition = Partition(tuple(found), tuple(label_communities(members, found)), stamp)
    if keep:
        with contextlib.suppress(OSError):
            _write(directory, partition, options)
    return partition


def read_communities(directory: Path, options: CommunityOptions) -> Partition | None:
    """What the file holds, if it is whole and of these options; its graph may be an older one."""
    try:
        head, body = (directory / COMMUNITIES_NAME).read_bytes().split(b"\n", 1)
        if head.decode("ascii") != xxhash.xxh3_128_hexdigest(body):
            return None
        facts = json.loads(body)
        if facts["made_by"] != _made_by(options):
            return None
        found = Partition(tuple(facts["of"]), tuple(facts["labels"]), facts["stamp"])
        return found if _makes_sense(found) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _makes_sense(partition: Partition) -> bool:
    """Whether it could have been found: an index may come from anybody, with a sum that fits."""
    from ragx.algo.communities import LABEL_CHARS

    numbers = set(partition.of)
    return (
        {type(number) for number in numbers} <= {int}
        and numbers == set(range(len(partition.labels)))
        and all(isinstance(label, str) for label in partition.labels)
        and max(map(len, partition.labels), default=0) <= LABEL_CHARS
    )


def _made_by(options: CommunityOptions) -> list[float]:
    """What decides communities and labels besides the graph."""
    return [_VERSION, options.resolution, options.seed]


def _write(directory: Path, partition: Partition, options: CommunityOptions) -> None:
    facts = {
        "stamp": partition.stamp,
        "made_by": _made_by(options),
        "of": partition.of,
        "labels": partition.labels,
    }
    body = json.dumps(facts).encode("ascii")
    head = xxhash.xxh3_128_hexdigest(body).encode("ascii")
    replace_file(directory / COMMUNITIES_NAME, [head, b"\n", body])

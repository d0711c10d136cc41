"""The graph of one committed state: derived from the rows, and kept as a file to be mapped.

Rows say what a text holds: names, links as they were written, nearest neighbours. Here they are
joined to edges and given weights, in one pass over arrays, so that whatever depends on the whole
corpus (how rare a name is, where a link leads now) always fits the rows.
"""

from __future__ import annotations

import json
import sqlite3
import struct
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragx.algo.arrays import ranges
from ragx.algo.chunking.languages import kind_of
from ragx.algo.graph import EDGE_KINDS, CsrGraph, Edges, build_graph, rarity
from ragx.algo.mentions import name_key
from ragx.algo.references import Reference, Resolver, fragment_keys, heading_keys
from ragx.store import similar
from ragx.store.base import Evidence, LinkOptions
from ragx.store.derived import arrays_digest, read_head, replace_file
from ragx.store.linking import TITLE, name_number

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "GRAPH_NAME",
    "derive_graph",
    "find_evidence",
    "graph_digest",
    "map_graph",
    "write_graph",
]

GRAPH_NAME = "graph.bin"
_MAGIC = b"RAGXGRF1"
# Magic, stamp, nodes, directed edges, xxh3-128 of the body, zeros up to 64 bytes.
_HEADER = struct.Struct("<8s16sQQ16s8s")


_RESOLVED = ("link", "import")

# A name in more chunks than this is a word of the trade, not a pointer.
_COMMON_SHARE, _MIN_COMMON = 0.02, 20
# A symbol that the using file cannot see, as far as imports tell, is often another of that name.
_UNSEEN_SYMBOL = 0.2
# Where a directory is a package: its files see each other without an import.
_DIRECTORY_PACKAGES = frozenset({"go", "java", "kotlin", "scala", "csharp", "swift", "c", "cpp"})


class _Nodes:
    """Chunks in canonical order (path, position) and what finding them takes."""

    def __init__(self, db: sqlite3.Connection) -> None:
        import numpy as np

        rows = db.execute(
            "SELECT c.chunk_id, c.file_id, f.path, f.language FROM chunks c"
            " JOIN files f USING (file_id) ORDER BY f.path, c.ordinal"
        ).fetchall()
        table = np.array([row[:2] for row in rows], np.int64).reshape(-1, 2)
        self.ids = np.ascontiguousarray(table[:, 0])
        self.files = np.ascontiguousarray(table[:, 1])
        numbers: dict[str, int] = {}
        # Number of the package that a chunk's directory makes; its own where that means nothing.
        self.packages = np.array(
            [
                numbers.setdefault(path.rpartition("/")[0], len(numbers))
                if language in _DIRECTORY_PACKAGES
                else -1 - file_id
                for _, file_id, path, language in rows
            ],
            np.int64,
        )
        self.prose = np.array([kind_of(row[3]) == "docs" for row in rows], np.bool_)
        self._order = np.argsort(self.ids, kind="stable")
        self._sorted = self.ids[self._order]

    def of(self, chunk_ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """(k,) node of each stored chunk."""
        import numpy as np

        nodes: NDArray[np.int64] = self._order[np.searchsorted(self._sorted, chunk_ids)]
        return nodes


def derive_graph(
    db: sqlite3.Connection,
    options: LinkOptions,
    vectors: similar.Vectors,
    found: similar.Similar | None = None,
) -> CsrGraph:
    """Join the rows of a state to edges.

    Args:
        vectors: those of its windows and parts.
        found: its neighbour lists, if they are at hand; else they are read.
    """
    nodes = _Nodes(db)
    edges: dict[str, Edges] = {}
    if len(nodes.ids):
        edges.update(_link_edges(db, nodes))
        edges.update(_name_edges(db, nodes, edges.get("import")))
        edges["adjacent"] = _adjacent_edges(nodes)
        found = found or similar.stored_neighbours(db, options)
        if found is not None:
            edges["similar"] = similar.similar_edges(found, vectors, options, nodes.of)
    return build_graph(nodes.ids, edges)


def _table(db: sqlite3.Connection, sql: str, width: int) -> NDArray[np.int64]:
    import numpy as np

    cursor = db.execute(sql)
    return np.fromiter(chain.from_iterable(cursor), np.int64).reshape(-1, width)


def _name_edges(
    db: sqlite3.Connection, nodes: _Nodes, imports: Edges | None
) -> Iterator[tuple[str, Edges]]:
    """From the chunk that holds a name to those that bear it; rarer names weigh more, and so do
    symbols that the using file can see."""
    import numpy as np

    bearers = _table(
        db,
        "SELECT name, chunk_id, kind, key GLOB '*?[_]?*' OR key GLOB '*[a-z][A-Z]*' FROM names"
        " ORDER BY name, chunk_id",
        4,
    )
    holders = _table(db, "SELECT name, chunk_id FROM mentions ORDER BY name, chunk_id", 2)
    if not len(holders):
        return
    first = np.searchsorted(bearers[:, 0], holders[:, 0], "left")
    counts = np.searchsorted(bearers[:, 0], holders[:, 0], "right") - first
    holder = np.repeat(np.arange(len(holders)), counts)
    bearer = ranges(first, counts)
    source = nodes.of(holders[:, 1])[holder]
    target = nodes.of(bearers[:, 1])[bearer]
    # A file that bears a name itself says nothing about others by using it.
    own = np.bincount(
        holder, weights=nodes.files[source] == nodes.files[target], minlength=len(holders)
    )
    keep = own[holder] == 0
    source, target, holder, bearer = source[keep], target[keep], holder[keep], bearer[keep]
    names, place = np.unique(holders[:, 0], return_inverse=True)
    df = np.bincount(place[own == 0], minlength=len(names))
    common = max(_MIN_COMMON, _COMMON_SHARE * len(nodes.ids))
    telling = df[place[holder]] <= common
    source, target, holder, bearer = (
        source[telling], target[telling], holder[telling], bearer[telling]
    )  # fmt: skip
    weight = rarity(len(nodes.ids), np.maximum(df, 1))[place[holder]] / counts[holder]
    titles = bearers[bearer, 2] == TITLE
    seen = titles | _in_sight(nodes, source, target, imports)
    weight = np.where(seen, weight, _UNSEEN_SYMBOL * weight)
    # In a program, a plain word that nothing connects with the definition is just a word, or some
    # other thing's method; in prose it was marked as code.
    symbols = ~titles & (seen | nodes.prose[source] | (bearers[bearer, 3] != 0))
    for kind, chosen in (("mention", titles), ("symbol", symbols)):
        yield kind, (source[chosen], target[chosen], weight[chosen].astype(np.float32))


def _in_sight(
    nodes: _Nodes,
    source: NDArray[np.int64],
    target: NDArray[np.int64],
    imports: Edges | None,
) -> NDArray[np.bool_]:
    """Whether the files of two nodes are one package, or one imports the other."""
    import numpy as np

    beside: NDArray[np.bool_] = nodes.packages[source] == nodes.packages[target]
    if imports is None:
        return beside
    a, b = nodes.files[imports[0]], nodes.files[imports[1]]
    n = int(nodes.files.max()) + 1
    pairs = np.unique(np.concatenate((a * n + b, b * n + a)))
    return beside | np.isin(nodes.files[source] * n + nodes.files[target], pairs)


def _link_edges(db: sqlite3.Connection, nodes: _Nodes) -> Iterator[tuple[str, Edges]]:
    """Along links and imports, to the chunk they mean; one that means many weighs less to each."""
    import numpy as np

    found: dict[str, list[tuple[int, int, float]]] = {"link": [], "import": []}
    for kind, source, targets, _, _ in _resolved(db):
        found[kind] += [(source, target, 1.0 / len(targets)) for target in targets]
    for kind, triples in found.items():
        if triples:
            ends = nodes.of(np.array([triple[:2] for triple in triples], np.int64).ravel())
            weights = np.array([triple[2] for triple in triples], np.float32)
            yield kind, (ends[::2], ends[1::2], weights)


def _adjacent_edges(nodes: _Nodes) -> Edges:
    import numpy as np

    before = np.flatnonzero(nodes.files[1:] == nodes.files[:-1])
    return before, before + 1, np.ones(len(before), np.float32)


def _resolved(
    db: sqlite3.Connection, only: Sequence[int] | None = None
) -> Iterator[tuple[str, int, list[int], int, int]]:
    """Kind, chunk, the chunks it refers to and the place of every reference into the corpus.

    Args:
        only: chunks whose references are wanted; None takes all.
    """
    where = "" if only is None else " WHERE l.chunk_id IN (SELECT value FROM json_each(?))"
    bound = () if only is None else (json.dumps(list(only)),)
    rows = db.execute(
        "SELECT l.chunk_id, f.path, l.kind, l.form, l.target, l.fragment, l.char_start, l.char_end"
        " FROM links l JOIN chunks c USING (chunk_id) JOIN files f USING (file_id)"
        f"{where} ORDER BY f.path, c.ordinal, l.place",
        bound,
    ).fetchall()
    if not rows:
        return
    places = _Places(db)
    resolver = Resolver(places.first, names=places.pages, roots=_own_package(db, places.first))
    cache: dict[tuple[str, str, str, str, str], list[int]] = {}
    for chunk_id, path, kind, form, target, fragment, start, end in rows:
        asked = (path, kind, form, target, fragment)
        if asked not in cache:
            reference = Reference(kind, target, form, fragment, start, end)
            files = (path,) if not target else resolver.resolve(reference, path)
            cache[asked] = list(
                dict.fromkeys(places.chunk_in(file, kind, fragment) for file in files)
            )
        targets = [other for other in cache[asked] if other != chunk_id]
        if targets:
            yield kind, chunk_id, targets, start, end


def _own_package(db: sqlite3.Connection, paths: Mapping[str, int]) -> dict[str, str]:
    """The name by which a Python package that is the corpus itself imports its own modules.

    Its directory's name is not known here and may be any; what most of its imports start with, and
    what leads to its files once that is taken away, is the name.
    """
    if "__init__.py" not in paths:
        return {}
    own = {path.partition("/")[0].removesuffix(".py") for path in paths}
    votes: Counter[str] = Counter()
    for target, n in db.execute(
        "SELECT target, count(*) FROM links WHERE form = 'python' GROUP BY target"
    ):
        name, dot, rest = target.partition(".")
        if name and dot and name not in own and rest.partition(".")[0] in own:
            votes[name] += n
    best = sorted(votes.items(), key=lambda item: (-item[1], item[0]))[:1]
    return {name: "" for name, _ in best}


def _pages(db: sqlite3.Connection) -> dict[str, list[str]]:
    """Files by the names that some reference calls a page by."""
    targets = db.execute(
        "SELECT DISTINCT target FROM links WHERE form IN ('wiki', 'ref')"
    ).fetchall()
    wanted = {name_key(part.replace("_", " ")) for (target,) in targets
              for part in (target, target.rpartition("/")[2])}  # fmt: skip
    pages: dict[str, list[str]] = {}
    for key in sorted(wanted):
        rows = db.execute(
            "SELECT DISTINCT f.path FROM names n JOIN chunks c USING (chunk_id)"
            " JOIN files f USING (file_id) WHERE n.name = ? ORDER BY f.path",
            (name_number(TITLE, key),),
        ).fetchall()
        if rows:
            pages[key] = [path for (path,) in rows]
    return pages


class _Places:
    """Where in a file a reference can lead: its first chunk, a heading's, a definition's."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        # The chunk that bears the file's names stands for it; else the first.
        self.first: dict[str, int] = dict(
            db.execute(
                "SELECT f.path, c.chunk_id FROM chunks c JOIN files f USING (file_id)"
                " WHERE c.ordinal = 0"
            )
        )
        self.first.update(
            db.execute(
                "SELECT f.path, c.chunk_id FROM (SELECT DISTINCT chunk_id FROM names"
                " WHERE kind = ?)"
                " JOIN chunks c USING (chunk_id) JOIN files f USING (file_id) WHERE c.ordinal > 0",
                (TITLE,),
            )
        )
        self.pages = _pages(db)
        self._marks: dict[str, dict[str, tuple[int, int]]] = {}

    def chunk_in(self, path: str, kind: str, fragment: str) -> int:
        """The first chunk that a fragment names, or the one that stands for the file."""
        if kind == "import":
            keys = [f"symbol {name}" for name in fragment.split()]
        else:
            keys = [*fragment_keys(fragment)]
        if keys:
            marks = self._of(path)
            found = [marks[key] for key in keys if key in marks]
            if found:
                return min(found)[1]
        return self.first[path]

    def _of(self, path: str) -> dict[str, tuple[int, int]]:
        """Position and id of the first chunk under each heading, and of each symbol's."""
        if path not in self._marks:
            rows = self._db.execute(
                "SELECT c.ordinal, c.chunk_id, c.heading, c.symbols FROM chunks c"
                " JOIN files f USING (file_id) WHERE f.path = ? ORDER BY c.ordinal",
                (path,),
            )
            marks = self._marks[path] = {}
            for ordinal, chunk_id, headings, symbols in rows:
                keys = [f"symbol {name}" for name in json.loads(symbols)]
                for heading in json.loads(headings)[-1:]:
                    keys += heading_keys(heading)
                for key in keys:
                    marks.setdefault(key, (ordinal, chunk_id))
        return self._marks[path]


def _arrays(graph: CsrGraph) -> list[NDArray[Any]]:
    return [graph.ids, graph.indptr, graph.targets, graph.weights, graph.by_id, graph.kinds]


def _digest(graph: CsrGraph) -> bytes:
    return arrays_digest(_arrays(graph))


def graph_digest(graph: CsrGraph, *, exact: bool = True) -> str:
    """Hex digest of nodes and edges; of `similar` ones only where they are `exact`."""
    import numpy as np

    if exact:
        return _digest(graph).hex()
    keep = graph.kinds != EDGE_KINDS.index("similar")
    before = np.concatenate(([0], np.cumsum(keep)))
    return _digest(
        replace(
            graph,
            indptr=before[graph.indptr].astype(np.int64),
            targets=graph.targets[keep],
            kinds=graph.kinds[keep],
            weights=graph.weights[keep],
        )
    ).hex()


def write_graph(directory: Path, stamp: bytes, graph: CsrGraph) -> None:
    """Write the graph's file."""
    head = _HEADER.pack(_MAGIC, stamp, len(graph), len(graph.targets), _digest(graph), bytes(8))
    replace_file(
        directory / GRAPH_NAME,
        [head, *(array.data for array in _arrays(graph) if len(array))],
    )


def map_graph(directory: Path, stamp: bytes) -> CsrGraph | None:
    """The graph's file, mapped, if it is whole and has the stamp."""
    import numpy as np

    path = directory / GRAPH_NAME
    opened = read_head(path, _HEADER.size)
    if opened is None:
        return None
    head, size = opened
    magic, stored, n, m, digest, rest = _HEADER.unpack(head)
    if magic != _MAGIC or any(rest) or stored != stamp:
        return None
    layout: Mapping[str, tuple[int, type]] = {
        "ids": (n, np.int64), "indptr": (n + 1, np.int64), "targets": (m, np.int32),
        "weights": (m, np.float32), "by_id": (n, np.int32), "kinds": (m, np.uint8),
    }  # fmt: skip
    if size != _HEADER.size + sum(k * np.dtype(kind).itemsize for k, kind in layout.values()):
        return None
    arrays: dict[str, Any] = {}
    at = _HEADER.size
    try:
        for name, (k, kind) in layout.items():
            arrays[name] = (
                np.memmap(path, kind, "r", at, (k,)).view(np.ndarray) if k else np.zeros(0, kind)
            )
            at += k * np.dtype(kind).itemsize
    except (OSError, ValueError):
        return None
    graph = CsrGraph(**arrays)
    return graph if _digest(graph) == digest else None


def find_evidence(
    db: sqlite3.Connection, graph: CsrGraph, pairs: Collection[tuple[int, int]]
) -> dict[tuple[int, int], list[Evidence]]:
    """Edges between the given pairs of chunks, the strongest first, with what the text says."""
    joined = {pair: _edges_between(graph, *pair) for pair in sorted(set(pairs))}
    # Resolving takes a look at every path, so only where a reference has led somewhere.
    links = _link_evidence(
        db,
        [pair for pair, edges in joined.items() if any(kind in _RESOLVED for kind, _ in edges)],
    )
    texts = _Texts(db)
    found: dict[tuple[int, int], list[Evidence]] = {}
    for pair, kinds in joined.items():
        by_name = any(kind in ("mention", "symbol") for kind, _ in kinds)
        named = _name_evidence(db, *pair) if by_name else {}
        edges = []
        for kind, weight in kinds:
            source, target, start, end = (
                named.get(kind) or links.get((kind, min(pair), max(pair))) or (*pair, 0, 0)
            )
            text = texts.of(source)[start:end] if end else ""
            edges.append(Evidence(kind, weight, source, target, text, start, end))
        found[pair] = sorted(edges, key=lambda edge: (-edge.weight, EDGE_KINDS.index(edge.kind)))
    return found


class _Texts:
    """Texts of chunks, read once each."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._known: dict[int, str] = {}

    def of(self, chunk_id: int) -> str:
        if chunk_id not in self._known:
            row = self._db.execute("SELECT text FROM chunks WHERE chunk_id = ?", (chunk_id,))
            self._known[chunk_id] = row.fetchone()[0]
        return self._known[chunk_id]


def _edges_between(graph: CsrGraph, one: int, other: int) -> list[tuple[str, float]]:
    import numpy as np

    a, b = graph.nodes_of([one, other]).tolist()
    if a < 0 or b < 0:
        return []
    start, end = int(graph.indptr[a]), int(graph.indptr[a + 1])
    row = graph.targets[start:end]
    low, high = (start + int(np.searchsorted(row, b, side)) for side in ("left", "right"))
    return [(EDGE_KINDS[graph.kinds[at]], float(graph.weights[at])) for at in range(low, high)]


def _name_evidence(
    db: sqlite3.Connection, one: int, other: int
) -> dict[str, tuple[int, int, int, int]]:
    """By kind, where one of two chunks says the rarest name of the other."""
    best: dict[str, tuple[int, tuple[int, int, int, int]]] = {}
    for source, target in ((one, other), (other, one)):
        for kind, start, end, n_holders in db.execute(
            "SELECT n.kind, m.char_start, m.char_end,"
            " (SELECT count(*) FROM mentions x WHERE x.name = m.name)"
            " FROM mentions m JOIN names n ON n.name = m.name AND n.chunk_id = ?"
            # As with edges, what the own file bears points at nobody.
            " WHERE m.chunk_id = ? AND NOT EXISTS (SELECT 1 FROM names o JOIN chunks c"
            " USING (chunk_id) WHERE o.name = m.name AND c.file_id ="
            " (SELECT file_id FROM chunks WHERE chunk_id = m.chunk_id)) ORDER BY m.char_start",
            (target, source),
        ):
            name = "mention" if kind == TITLE else "symbol"
            if name not in best or n_holders < best[name][0]:
                best[name] = n_holders, (source, target, start, end)
    return {kind: place for kind, (_, place) in best.items()}


def _link_evidence(
    db: sqlite3.Connection, pairs: Collection[tuple[int, int]]
) -> dict[tuple[str, int, int], tuple[int, int, int, int]]:
    """By kind and both ends, the first reference that joins them."""
    ends = sorted({end for pair in pairs for end in pair})
    wanted = {(min(pair), max(pair)) for pair in pairs}
    found: dict[tuple[str, int, int], tuple[int, int, int, int]] = {}
    if not ends:
        return found
    for kind, source, targets, start, end in _resolved(db, ends):
        for target in targets:
            low, high = sorted((source, target))
            if (low, high) in wanted:
                found.setdefault((kind, low, high), (source, target, start, end))
    return found

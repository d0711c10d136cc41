"""How to weigh vectors against words: scaled per query, on the corpus's own scales, or by rank.

    python research/fusion.py weights CORPUS QUERIES.jsonl [CORPUS QUERIES.jsonl ...]
    python research/fusion.py noise   CORPUS QUERIES.jsonl [CORPUS QUERIES.jsonl ...]

CORPUS is an indexed directory. `weights` compares ways to fuse without rules and graph. `noise`
puts random vectors (seed 1) in place of the model's: what is left of what the words find when the
model knows nothing of the text? Prints Markdown, nDCG@10 over files; results: research/fusion.md.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from graph import Collection as Labelled

from ragx.algo.fold import fold
from ragx.algo.fusion import scale_by_range, total
from ragx.algo.lexical import parse_query
from ragx.algo.metrics import ndcg
from ragx.algo.ordering import rank_hits
from ragx.query import pipeline
from ragx.query.pipeline import QueryOptions, QueryRequest, run_query
from ragx.query.seeds import find_seeds, lexical_match
from ragx.types import Hit

DEPTH = 100
FIXED = (0.3, 0.5, 0.7)


class Noise:
    """A reader whose vectors are random directions, as wide as the model's."""

    def __init__(self, reader: Any, dimension: int) -> None:
        self._reader = reader
        self._random = np.random.default_rng(1)
        self._ids = reader.graph().ids
        self._rows = self._directions(len(self._ids), dimension)
        self._at = {int(chunk_id): at for at, chunk_id in enumerate(self._ids)}
        self._dimension = dimension

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reader, name)

    def _directions(self, n: int, dimension: int) -> np.ndarray:
        rows = self._random.standard_normal((n, dimension)).astype(np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def question(self) -> np.ndarray:
        """The vector of a question."""
        return self._directions(1, self._dimension)[0]

    def vector(self, query: np.ndarray, *, depth: int) -> list[tuple[int, float]]:
        cosines = self._rows @ query
        best = np.argsort(-cosines, kind="stable")[:depth]
        return [(int(self._ids[at]), float(cosines[at])) for at in best]

    def vector_scores(self, query: np.ndarray, chunk_ids: Collection[int]) -> dict[int, float]:
        return {key: float(self._rows[self._at[key]] @ query) for key in chunk_ids}

    def likeness_spread(self) -> tuple[float, int]:
        rows = self._rows[:400]
        cosines = (rows @ rows.T)[np.triu_indices(len(rows), 1)]
        return float(cosines.std()), len(cosines)


def scaled_per_query(collection: Labelled, reader: Any, weight: float, vectors: Mapping) -> float:
    """Each side stretched to 1 for every query, as up to version 0.1 and in most tools."""
    found = []
    for question in collection.questions:
        query = parse_query(question["query"])
        match = lexical_match(reader, query)
        seeds = find_seeds(reader, query, match, vectors[question["query"]], depth=DEPTH)
        near, best = scale_by_range(seeds.cosines), max(seeds.bm25.values(), default=0.0) or 1.0
        chunks = reader.chunks(sorted(seeds.candidates))
        hits = [
            Hit(
                key,
                chunks[key].path,
                chunks[key].ordinal,
                total(
                    {
                        "vector": weight * near.get(key, 0.0),
                        "lexical": (1 - weight) * seeds.bm25.get(key, 0.0) / best,
                    }
                ),
            )
            for key in seeds.candidates
        ]
        kept, _ = pipeline._collapse(rank_hits(hits), chunks)
        entries = fold(kept, top=20, fold_weight=pipeline._auto_fold_weight)
        found.append(ndcg([entry.path for entry in entries], judged(question), 10))
    return float(np.mean(found))


def judged(question: Mapping[str, Any]) -> Mapping[str, float]:
    """Grades of a question."""
    return question.get("grades") or dict.fromkeys(question["relevant"], 1)


def asked(
    collection: Labelled,
    reader: Any,
    options: QueryOptions,
    vectors: Mapping[str, np.ndarray],
    **request: Any,
) -> float:
    """What the pipeline gives without rules and graph."""
    found = []
    for question in collection.questions:
        wanted = QueryRequest(question["query"], texts=False, graph=False, rules=False, **request)
        answer = run_query(collection.root, reader, wanted, options, embed=vectors.get)
        ranked = [entry.path for entry in answer.results]
        found.append(ndcg(ranked, judged(question), 10))
    return float(np.mean(found))


def columns(
    collection: Labelled, reader: Any, vectors: Mapping[str, np.ndarray]
) -> dict[str, Callable[[], float]]:
    """Ways to fuse by name."""

    def own(**options: Any) -> Callable[[], float]:
        return lambda: asked(collection, reader, QueryOptions(**options), vectors)

    return {
        "vector": lambda: asked(collection, reader, QueryOptions(), vectors, mode="vector"),
        "lexical": lambda: asked(collection, reader, QueryOptions(), vectors, mode="lexical"),
        "RRF": own(method="rrf"),
        **{
            f"per query {weight}": lambda weight=weight: scaled_per_query(
                collection, reader, weight, vectors
            )
            for weight in FIXED
        },
        **{f"own scales {weight}": own(vector_weight=weight) for weight in FIXED},
        "own scales, trust": own(),
    }


def main() -> None:
    """Run what the command line names."""
    what, *paths = sys.argv[1:]
    for number, (root, queries) in enumerate(zip(paths[::2], paths[1::2], strict=True)):
        collection = Labelled(Path(root), Path(queries))
        reader, vectors = collection.reader, collection.vectors
        if what == "noise":
            reader = Noise(reader, len(next(iter(vectors.values()))))
            vectors = {text: reader.question() for text in vectors}
        ways = columns(collection, reader, vectors)
        if number == 0:
            print("| collection | " + " | ".join(ways) + " |")
            print("|---" * (len(ways) + 1) + "|")
        cells = [f"{way():.4f}" for way in ways.values()]
        print(f"| {collection.root.name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()

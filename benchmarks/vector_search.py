"""Exact search against HNSW on real vectors: recall, time of one query, time of a cold process.

    python benchmarks/vector_search.py N QUERIES.jsonl INDEXED_ROOT...

Takes up to N distinct vectors from the indexes of the given corpora, embeds the questions of
QUERIES.jsonl (`{"query": ...}` a line) with the built-in model, and prints one table.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

import numpy as np

from ragx.providers.base import EmbeddingOptions
from ragx.providers.builtin import BuiltinEmbedder
from ragx.store import vectors
from ragx.store.rows import load_vectors
from ragx.store.sqlite import SqliteReader

STAMP = bytes(16)
DEPTH = 20

COLD = """
import sys, time
from pathlib import Path
import numpy as np
from ragx.store import vectors
vectors.EXACT_LIMIT = int(sys.argv[2])
query = np.load(sys.argv[3])
started = time.perf_counter()
index = vectors.open_vectors(Path(sys.argv[1]), bytes(16), lambda: None)
index.search(query, depth=100)
print(time.perf_counter() - started)
"""


def gather(roots: list[Path], limit: int) -> vectors.VectorRows:
    """Distinct vectors of several indexes, each as a chunk of its own."""
    seen: dict[int, np.ndarray] = {}
    for root in roots:
        with closing(SqliteReader(root)) as reader:
            rows = load_vectors(reader._db)
        for label, row in zip(rows.labels.tolist(), rows.matrix, strict=True):
            seen.setdefault(label, row)
    labels = np.array(sorted(seen)[:limit], np.int64)
    matrix = np.array([seen[label] for label in labels.tolist()], np.float32)
    return vectors.VectorRows(np.arange(len(labels), dtype=np.int64), labels, matrix)


def cold(directory: Path, limit: int, query: Path) -> float:
    """Seconds that a new process needs to open the vectors and answer once, the imports apart."""
    runs = [
        float(
            subprocess.run(
                [sys.executable, "-c", COLD, str(directory), str(limit), str(query)],
                capture_output=True,
                text=True,
                check=True,
            ).stdout
        )
        for _ in range(7)
    ]
    return statistics.median(runs)


def main() -> None:
    """Measure and print."""
    n, questions, *roots = sys.argv[1:]
    rows = gather([Path(root) for root in roots], int(n))
    lines = Path(questions).read_text(encoding="utf-8").splitlines()[:200]
    embedder = BuiltinEmbedder(EmbeddingOptions())
    queries = [embedder.embed_query(json.loads(line)["query"]) for line in lines]
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch)
        np.save(directory / "query.npy", queries[0])
        vectors.EXACT_LIMIT = 10**9
        vectors.write_vectors(directory, STAMP, lambda: rows)
        exact = vectors.open_vectors(directory, STAMP, lambda: rows)
        started = time.perf_counter()
        expected = [exact.search(query, depth=DEPTH) for query in queries]
        exact_ms = (time.perf_counter() - started) / len(queries) * 1000
        vectors.EXACT_LIMIT = 1
        started = time.perf_counter()
        vectors.write_vectors(directory, STAMP, lambda: rows)
        build_s = time.perf_counter() - started
        approximate = vectors.open_vectors(directory, STAMP, lambda: rows)
        approximate.search(queries[0], depth=DEPTH)
        started = time.perf_counter()
        found = [approximate.search(query, depth=DEPTH) for query in queries]
        ann_ms = (time.perf_counter() - started) / len(queries) * 1000
        hits = sum(
            len({owner for owner, _ in a[:DEPTH]} & {owner for owner, _ in b[:DEPTH]})
            for a, b in zip(expected, found, strict=True)
        )
        print(f"{len(rows)} vectors, {len(queries)} questions, top {DEPTH}")
        print(f"recall of HNSW: {hits / (DEPTH * len(queries)):.4f}")
        print(f"one query, warm: exact {exact_ms:.2f} ms, HNSW {ann_ms:.2f} ms")
        print(f"building HNSW: {build_s:.1f} s")
        sizes = {p.name: p.stat().st_size / 1e6 for p in sorted(directory.glob("vectors.*"))}
        print("files, MB: " + ", ".join(f"{name} {size:.1f}" for name, size in sizes.items()))
        as_exact = cold(directory, 10**9, directory / "query.npy")
        as_ann = cold(directory, 1, directory / "query.npy")
        print(f"cold process: exact {as_exact * 1000:.0f} ms, HNSW {as_ann * 1000:.0f} ms")


if __name__ == "__main__":
    main()

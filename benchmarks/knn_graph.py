"""Neighbour lists: exact build against the bare matrix product, repair, and HNSW.

    python benchmarks/knn_graph.py [--rows N] [--dim D] [--k K] [--approximate]

Three inputs: random unit vectors of which nothing passes the threshold; the same without a
threshold; and shuffled clusters of 200 whose members all pass it. The product is measured again
before every build, as other work on the machine slows both.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from ragx.algo.knn_graph import approximate_lists, build_lists, edge_recall, repair_lists

CLUSTER = 200
CHANGED = 20
BLOCK = 512


def unit(rows: np.ndarray) -> np.ndarray:
    """The rows as float32 unit vectors."""
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows.astype(np.float32)


def random_rows(n: int, dimension: int) -> np.ndarray:
    """Unit vectors in all directions."""
    return unit(np.random.default_rng(0).standard_normal((n, dimension), np.float32))


def clustered_rows(n: int, dimension: int) -> np.ndarray:
    """Unit vectors around n / 200 centres, about .67 from each other within a cluster."""
    rng = np.random.default_rng(1)
    centres = unit(rng.standard_normal((max(1, n // CLUSTER), dimension), np.float32))
    noise = rng.standard_normal((n, dimension), np.float32) * np.float32(0.7 / dimension**0.5)
    return unit(centres[rng.integers(0, len(centres), n)] + noise)


def bare_s(matrix: np.ndarray) -> float:
    """Seconds of `matrix @ matrix.T` by blocks, into one buffer."""
    out = np.empty((BLOCK, len(matrix)), np.float32)
    started = time.perf_counter()
    for start in range(0, len(matrix), BLOCK):
        block = matrix[start : start + BLOCK]
        np.matmul(block, matrix.T, out=out[: len(block)])
    return time.perf_counter() - started


def measure(name: str, matrix: np.ndarray, k: int, floor: float, approximate: bool) -> None:
    """Print what one input takes."""
    n = len(matrix)
    groups = np.arange(n)
    product_s = bare_s(matrix)
    started = time.perf_counter()
    lists = build_lists(matrix, groups, k=k, min_similarity=floor)
    build_s = time.perf_counter() - started
    edges = int((lists.neighbours >= 0).sum())
    print(f"{name}, min_similarity {floor}: {edges / max(n, 1):.2f} neighbours per row")
    print(f"  bare product {product_s:.1f} s, exact build {build_s:.1f} s", end=", ")
    print(f"ratio {build_s / product_s:.2f}")

    # Some rows leave, as many others come in the middle.
    rng = np.random.default_rng(2)
    kept = np.delete(np.arange(n), rng.choice(n, min(n, CHANGED), replace=False))
    kept = np.insert(kept, len(kept) // 2, np.full(CHANGED, -1))
    now = matrix[kept]
    now[kept < 0] = unit(matrix[:CHANGED] + matrix[CHANGED : 2 * CHANGED])
    started = time.perf_counter()
    repaired = repair_lists(lists, kept, now, np.arange(len(now)), k=k, min_similarity=floor)
    repair_s = time.perf_counter() - started
    print(f"  repair after {CHANGED} insertions and {CHANGED} deletions: {repair_s:.2f} s")
    del repaired
    if approximate:
        started = time.perf_counter()
        proposed = approximate_lists(matrix, groups, k=k, min_similarity=floor)
        hnsw_s = time.perf_counter() - started
        print(f"  HNSW {hnsw_s:.1f} s, edge recall {edge_recall(lists, proposed):.4f}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=40_000)
    parser.add_argument("--dim", type=int, default=384)
    parser.add_argument("--k", type=int, default=8)
    parser.add_argument("--approximate", action="store_true", help="measure HNSW, too")
    options = parser.parse_args()
    n, dimension, k = options.rows, options.dim, options.k
    if n < 2 * CHANGED:
        parser.error(f"--rows must be at least {2 * CHANGED}")
    print(f"{n} rows of {dimension} dimensions, k {k}")
    measure("random", random_rows(n, dimension), k, 0.5, False)
    measure("random", random_rows(n, dimension), k, -1.0, False)
    measure("clustered", clustered_rows(n, dimension), k, 0.3, options.approximate)


if __name__ == "__main__":
    main()

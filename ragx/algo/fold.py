"""Ranked chunks into file entries."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ragx.types import FileHit, Hit

__all__ = ["CHUNKS_PER_FILE", "fold"]

CHUNKS_PER_FILE = 3


def fold(
    ranking: Sequence[Hit], *, top: int, fold_weight: float | Callable[[str], float]
) -> list[FileHit]:
    """Walk a ranking until `top` files have been seen and fold each file's hits into one entry.

    An entry holds at most three hits of that stretch and scores
    `best + fold_weight * (second + third)`: one good passage names the file, further good ones
    speak for it. Chunks past the stretch never count, so weak ones cannot pad a file.

    Args:
        ranking: hits from best to worst.
        top: number of files wanted, at least 1.
        fold_weight: share of the second and third hit; 1 gives a plain sum. A function gives it
            by path.
    Returns:
        At most `top` entries, best first, ties by path; [] for an empty ranking.
    """
    by_file: dict[str, list[Hit]] = {}
    for hit in ranking:
        if hit.path not in by_file and len(by_file) == top:
            break
        by_file.setdefault(hit.path, []).append(hit)
    weight_of = fold_weight if callable(fold_weight) else lambda _: fold_weight
    entries = [
        FileHit(path, _entry_score(hits, weight_of(path)), tuple(hits[:CHUNKS_PER_FILE]))
        for path, hits in by_file.items()
    ]
    entries.sort(key=lambda entry: (-entry.score, entry.path))
    return entries


def _entry_score(hits: Sequence[Hit], fold_weight: float) -> float:
    rest = (fold_weight * hit.score for hit in hits[1:CHUNKS_PER_FILE])
    return math.fsum((hits[0].score, *rest))

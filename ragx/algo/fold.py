"""Ranked chunks into file entries."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ragx.algo.heat import CAP
from ragx.types import FileHit, Hit

__all__ = ["CHUNKS_PER_FILE", "fold"]

CHUNKS_PER_FILE = 3


def fold(
    ranking: Sequence[Hit],
    *,
    top: int,
    fold_weight: float | Callable[[str], float],
    capped: bool = True,
) -> list[FileHit]:
    """Walk a ranking until `top` files have been seen and fold each file's hits into one entry.

    An entry holds at most three hits of that stretch and scores
    `best + fold_weight * (second + third)`: one good passage names the file, further good ones
    speak for it, with what they have without heat. Chunks past the stretch never count, so weak
    ones cannot pad a file. Heat lifts no entry above the entry it came from.

    Args:
        ranking: hits from best to worst.
        top: number of files wanted, at least 1.
        fold_weight: share of the second and third hit; 1 gives a plain sum. A function gives it
            by path.
        capped: whether heat is held back, as in `algo.heat.lift`.
    Returns:
        At most `top` entries, best first, ties by path; [] for an empty ranking.
    """
    by_file: dict[str, list[Hit]] = {}
    for hit in ranking:
        if hit.path not in by_file and len(by_file) == top:
            break
        by_file.setdefault(hit.path, []).append(hit)
    weight_of = fold_weight if callable(fold_weight) else lambda _: fold_weight
    entries = [_entry(path, hits, weight_of(path), capped) for path, hits in by_file.items()]
    if capped:
        unheated = {path: _unheated(hits, weight_of(path)) for path, hits in by_file.items()}
        entries = [_capped(entry, unheated) for entry in entries]
    entries.sort(key=lambda entry: (-entry.score, -entry.hits[0].uncapped, entry.path))
    return entries


def _entry(path: str, hits: Sequence[Hit], weight: float, capped: bool) -> FileHit:
    shown = tuple(hits[:CHUNKS_PER_FILE])
    if capped:
        # What the graph lifts says where to look, not how much a file has to say.
        scores = sorted((hit.unheated for hit in hits[1:]), reverse=True)
    else:
        scores = [hit.score for hit in hits[1:]]
    further = [weight * score for score in scores[: CHUNKS_PER_FILE - 1]]
    terms = {"best": hits[0].score, "further": math.fsum(further)}
    # Summed at once: rounding in between would break ties of equal sums.
    return FileHit(path, math.fsum((hits[0].score, *further)), shown, terms)


def _unheated(hits: Sequence[Hit], weight: float) -> float:
    """What a file's entry would score without the graph."""
    scores = sorted((hit.unheated for hit in hits), reverse=True)[:CHUNKS_PER_FILE]
    return math.fsum((scores[0], *(weight * score for score in scores[1:])))


def _capped(entry: FileHit, unheated: Mapping[str, float]) -> FileHit:
    """Hold an entry below those its heat came from, as `algo.heat.lift` holds a chunk."""
    sources = {hit.seed_path for hit in entry.hits if hit.hops} - {entry.path}
    if not sources:
        return entry
    # A seed whose file is not among the entries cannot be overtaken.
    limit = max(CAP * unheated[path] if path in unheated else math.inf for path in sources)
    score = max(min(entry.score, limit), min(unheated[entry.path], entry.score))
    if score >= entry.score:
        return entry
    return replace(entry, score=score, terms={**entry.terms, "cap": score - entry.score})

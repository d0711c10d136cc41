"""Ranked chunks into file entries."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ragx.algo.heat import CAP
from ragx.types import FileHit, Hit

__all__ = ["CHUNKS_PER_FILE", "fold"]

CHUNKS_PER_FILE = 3
_ROUNDING = 1e-12


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
    entries.sort(key=lambda entry: (-entry.score, -entry.hits[0].uncapped, entry.path))
    return entries


def _entry(path: str, hits: Sequence[Hit], weight: float, capped: bool) -> FileHit:
    best, *others = hits
    if capped:
        # What the graph lifts says where to look, not how much a file has to say.
        others.sort(key=lambda hit: -hit.unheated)
    scores = [hit.unheated if capped else hit.score for hit in others[: CHUNKS_PER_FILE - 1]]
    further = [weight * score for score in scores]
    # Summed at once: rounding in between would break ties of equal sums.
    score = math.fsum((best.score, *further))
    terms = {"best": best.score, "further": math.fsum(further)}
    if capped and best.hops and best.seed_path != path:
        score = _held(best, hits, weight, score)
        if score < best.score + terms["further"] - _ROUNDING:
            terms["cap"] = score - best.score - terms["further"]
    return FileHit(path, score, tuple(hits[:CHUNKS_PER_FILE]), terms)


def _held(best: Hit, hits: Sequence[Hit], weight: float, score: float) -> float:
    """A file's score when its best hit owes its place to a seed elsewhere: it stays below that
    seed's as a chunk does, unless it has more without heat. Phrases it holds count beside that."""
    own = sorted((hit.unheated for hit in hits), reverse=True)[:CHUNKS_PER_FILE]
    unheated = math.fsum((own[0], *(weight * score for score in own[1:])))
    limit = max(CAP * best.seed_score + best.terms.get("phrase", 0.0), best.score)
    return max(min(score, limit), min(score, unheated))

"""Ranked chunks into file entries."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ragx.algo.heat import CAP
from ragx.types import FileHit, Hit

__all__ = ["CHUNKS_PER_FILE", "STRETCH", "fold"]

CHUNKS_PER_FILE = 3
STRETCH = 20  # files from the top whose further hits count
_ROUNDING = 1e-12


def fold(
    ranking: Sequence[Hit],
    *,
    top: int,
    fold_weight: float | Callable[[str], float],
    capped: bool = True,
    keep: int = CHUNKS_PER_FILE,
) -> list[FileHit]:
    """Walk a ranking until `top` files have been seen and fold each file's hits into one entry.

    An entry scores `best + fold_weight * (second + third)`: one good passage names the file,
    further good ones speak for it, with what they have without heat. Those past the first 20 files
    never count, so that weak ones cannot pad a file. Heat lifts no entry above the entry it came
    from.

    Args:
        ranking: hits from best to worst.
        top: number of files wanted, at least 1.
        fold_weight: share of the second and third hit; 1 gives a plain sum. A function gives it
            by path.
        capped: whether heat is held back, as in `algo.heat.lift`.
        keep: hits that an entry holds at most; its score does not depend on it.
    Returns:
        At most `top` entries, best first, ties by path; [] for an empty ranking.
    """
    by_file: dict[str, list[Hit]] = {}
    for hit in ranking:
        if hit.path not in by_file:
            if len(by_file) == top:
                break
            by_file[hit.path] = [hit]
        elif len(by_file) <= STRETCH:
            by_file[hit.path].append(hit)
    weight_of = fold_weight if callable(fold_weight) else lambda _: fold_weight
    entries = []
    for path, hits in by_file.items():
        score, further = _folded(hits, weight_of(path), capped)
        terms = {"best": hits[0].score, "further": further}
        if capped and hits[0].hops and hits[0].seed_path != path:
            limit = _limit(hits[0], by_file.get(hits[0].seed_path, ()), weight_of)
            own = _unheated(hits, weight_of(path))
            held = max(min(score, max(limit, hits[0].score)), min(score, own))
            if held < score - _ROUNDING:
                terms["cap"] = held - score
                score = held
        entries.append(FileHit(path, score, tuple(hits[:keep]), terms))
    entries.sort(key=lambda entry: (-entry.score, -_uncapped(entry), entry.path))
    return entries


def _uncapped(entry: FileHit) -> float:
    """What an entry would score without its caps: the order of those that one cap holds."""
    caps = (entry.hits[0].terms.get("cap", 0.0), entry.terms.get("cap", 0.0))
    return entry.score - math.fsum(caps)


def _folded(hits: Sequence[Hit], weight: float, capped: bool) -> tuple[float, float]:
    """Score of a file, and what its second and third hit add to it."""
    best, *others = hits
    if capped:
        # What the graph lifts says where to look, not how much a file has to say.
        others.sort(key=lambda hit: -hit.unheated)
    scores = [hit.unheated if capped else hit.score for hit in others[: CHUNKS_PER_FILE - 1]]
    further = [weight * max(0.0, score) for score in scores]
    # Summed at once: rounding in between would break ties of equal sums.
    return math.fsum((best.score, *further)), math.fsum(further)


def _unheated(hits: Sequence[Hit], weight: float, *, phrases: bool = True) -> float:
    """What a file scores without the graph."""
    own = [hit.unheated - (0.0 if phrases else hit.terms.get("phrase", 0.0)) for hit in hits]
    best, *rest = sorted(own, reverse=True)[:CHUNKS_PER_FILE]
    return math.fsum((best, *(weight * max(0.0, score) for score in rest)))


def _limit(best: Hit, seed_hits: Sequence[Hit], weight_of: Callable[[str], float]) -> float:
    """How high a file may stand whose best hit owes its place to a seed elsewhere: below the seed's
    own entry, as a chunk stands below its seed. Phrases count beside that.

    The seed's file may be shown through another chunk, or not at all, where a copy of the seed is
    shown instead; then the seed counts by itself.
    """
    seed = best.seed_score
    if any(hit.chunk_id == best.hops[0].source for hit in seed_hits):
        seed = max(seed, _unheated(seed_hits, weight_of(best.seed_path), phrases=False))
    return CAP * seed + best.terms.get("phrase", 0.0)

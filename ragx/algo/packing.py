"""Which passages go into a budget of tokens, and in which order they are tried.

The best chunk of each file comes before further ones of the same file unless those are much
better, and what does not fit makes way for what does: a pack answers more questions with several
files than with one (research/evidence.md). To try shorter passages first finds no more, and now and
then leaves out the best. Chunks that follow each other become one passage.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ragx.algo.repeats import Repeats
from ragx.types import Chunk

__all__ = [
    "FURTHER",
    "Candidate",
    "Left",
    "Packed",
    "Run",
    "best_score",
    "join_texts",
    "pack",
    "trial_order",
]

FURTHER = 0.5  # research/evidence.md


@dataclass(frozen=True, slots=True)
class Candidate:
    """A chunk that may go into a pack: its own score, and that of the file's entry."""

    chunk: Chunk
    score: float
    file_score: float


@dataclass(frozen=True, slots=True)
class Left:
    """A candidate that is not in the pack, and why: "budget", "limit" or "repeat"."""

    candidate: Candidate
    why: str


Run = tuple[Candidate, ...]
"""Chunks of one file that follow each other and make one passage."""


@dataclass(frozen=True, slots=True)
class Packed:
    """The passages of a pack, best first, and what was left out, in the order it was tried."""

    runs: tuple[Run, ...]
    left: tuple[Left, ...]


def trial_order(candidates: Sequence[Candidate], *, further: float = FURTHER) -> list[Candidate]:
    """Candidates in the order in which a pack tries them.

    A file's best chunk is worth what its entry scores, its nth one `further ** (n - 1)` of its own
    score.

    Args:
        candidates: those of one file best first.
        further: share of a file's next chunk, in [0, 1].
    Returns:
        All of them; ties by path and position.
    """
    seen: dict[str, int] = {}
    worths: list[tuple[float, str, int, Candidate]] = []
    for candidate in candidates:
        chunk = candidate.chunk
        nth = seen.get(chunk.path, 0)
        seen[chunk.path] = nth + 1
        worth = candidate.score * further**nth if nth else candidate.file_score
        worths.append((-worth, chunk.path, chunk.ordinal, candidate))
    worths.sort(key=lambda item: item[:3])
    return [item[3] for item in worths]


def pack(
    ordered: Sequence[Candidate],
    cost: Callable[[Run], int],
    *,
    budget: int,
    most: int,
    joinable: Callable[[Run], bool],
) -> Packed:
    """Fill a budget with whole passages; whatever does not fit is passed over.

    Args:
        ordered: in the order to try.
        cost: tokens of a passage with all that is written about it.
        budget: tokens that all passages may have together.
        most: passages.
        joinable: whether chunks that follow each other can be written as one text.
    """
    runs: list[Run] = []
    left: list[Left] = []
    copies = Repeats()
    chosen: set[int] = set()
    spent = 0
    for candidate in ordered:
        chunk = candidate.chunk
        owner = copies.first_of(chunk.chunk_id, chunk.text)
        if owner != chunk.chunk_id and owner in chosen:
            left.append(Left(candidate, "repeat"))
            continue
        grown, merged = _with(runs, candidate, joinable)
        total = spent - sum(cost(run) for run in merged) + cost(grown)
        if len(runs) - len(merged) + 1 > most:
            left.append(Left(candidate, "limit"))
        elif total > budget:
            left.append(Left(candidate, "budget"))
        else:
            runs = [run for run in runs if run not in merged] + [grown]
            chosen.add(chunk.chunk_id)
            spent = total
    runs.sort(key=lambda run: (-best_score(run), run[0].chunk.path, run[0].chunk.ordinal))
    return Packed(tuple(runs), tuple(left))


def best_score(run: Run) -> float:
    """The score of a passage: that of its best chunk."""
    return max(candidate.score for candidate in run)


def join_texts(chunks: Sequence[Chunk], encoding: str) -> str | None:
    """The text of a file from the first chunk's start to the last one's end.

    Chunks overlap, touch, or have nothing but line feeds between them: what is missing follows from
    the positions, and is checked against them. (A carriage return alone between lines that end in
    line feeds, which no system writes, would be read as one of those.)

    Args:
        chunks: of one file, in order, without a gap in `ordinal`.
        encoding: of the file.
    Returns:
        The exact slice, or None where it does not follow.
    """
    text, end = chunks[0].text, chunks[0]
    for chunk in chunks[1:]:
        if chunk.ordinal != end.ordinal + 1 or not _in_one_place(end, chunk):
            return None
        between = chunk.byte_start - end.byte_end
        if between < 0:
            shared = _prefix_of_bytes(chunk.text, -between, encoding)
            if shared is None or not text.endswith(shared):
                return None
            text += chunk.text[len(shared) :]
        else:
            breaks = _line_breaks(end, chunk, between, encoding)
            if breaks is None:
                return None
            text += breaks + chunk.text
        end = chunk
    if len(_encoded(text, encoding)) != chunks[-1].byte_end - chunks[0].byte_start:
        return None
    return text


def _in_one_place(one: Chunk, other: Chunk) -> bool:
    """Whether one locator can say where both stand: pages can, sheets and chapters cannot."""
    first, second = one.locator, other.locator
    if first is None or second is None:
        return first is second
    if first.kind != second.kind:
        return False
    return first.name == second.name or first.kind in ("page", "slide", "cell", "heading")


def _with(
    runs: Sequence[Run], candidate: Candidate, joinable: Callable[[Run], bool]
) -> tuple[Run, list[Run]]:
    """The run that a candidate makes with those beside it, and which runs it takes the place of."""
    grown: Run = (candidate,)
    merged: list[Run] = []
    for run in runs:
        if run[0].chunk.path != candidate.chunk.path:
            continue
        if run[-1].chunk.ordinal + 1 == grown[0].chunk.ordinal:
            longer = run + grown
        elif run[0].chunk.ordinal == grown[-1].chunk.ordinal + 1:
            longer = grown + run
        else:
            continue
        if joinable(longer):
            grown = longer
            merged.append(run)
    return grown, merged


def _prefix_of_bytes(text: str, n_bytes: int, encoding: str) -> str | None:
    """The characters at the start of a text that take so many bytes."""
    low, high = 0, min(len(text), n_bytes)
    while low < high:
        middle = (low + high) // 2
        if len(_encoded(text[:middle], encoding)) < n_bytes:
            low = middle + 1
        else:
            high = middle
    return text[:low] if len(_encoded(text[:low], encoding)) == n_bytes else None


def _line_breaks(before: Chunk, after: Chunk, n_bytes: int, encoding: str) -> str | None:
    """What stands between two chunks if that is nothing but line feeds."""
    if n_bytes == 0:
        return ""
    # Where lines end in two signs, as many bytes may be a blank and a line feed.
    if "\r" in before.text or "\r" in after.text:
        return None
    breaks = "\n" * (after.line_start - before.line_end)
    return breaks if len(_encoded(breaks, encoding)) == n_bytes else None


def _encoded(text: str, encoding: str) -> bytes:
    return text.encode(encoding or "utf-8", "replace")

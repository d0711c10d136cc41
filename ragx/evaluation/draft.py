"""Draft queries for an evaluation out of a corpus itself, for a person to edit.

Headings of documents, first sentences of what explains definitions, subjects of commits: each
says in words what a file is about, and the file is known. The same index and history give the same
draft: nothing is drawn at random, and what is taken is spread over the files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ragx.errors import UsageError

if TYPE_CHECKING:
    from ragx.evaluation.candidates import Candidate
    from ragx.evaluation.history import History
    from ragx.store.base import FileRow, Reader

__all__ = ["KINDS", "Draft", "DraftRequest", "DraftedQuery", "check_request", "draft"]

KINDS = ("headings", "docstrings", "commits")
MAX_FILES = 5  # a query that more files answer tells little
GOOD = 3  # least merit of those taken first


@dataclass(frozen=True, slots=True)
class DraftRequest:
    """How many queries to draft, and from which of KINDS."""

    limit: int = 50
    kinds: Sequence[str] = KINDS


@dataclass(frozen=True, slots=True)
class DraftedQuery:
    """One line of a draft; `origin` is `path:line`, or a commit's number."""

    name: str
    query: str
    relevant: tuple[str, ...]
    kind: str
    origin: str


@dataclass(frozen=True, slots=True)
class Draft:
    """What was drafted, kind by kind, and what people should know about it."""

    queries: tuple[DraftedQuery, ...]
    by_kind: Mapping[str, int]
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class _Pool:
    """Candidates of all kinds, one for each wording; `None` stands for a wording of no use."""

    by_wording: dict[str, Candidate | None] = field(default_factory=dict)

    def add(self, item: Candidate) -> None:
        known = self.by_wording.setdefault(item.wording, item)
        if known is None or known is item:
            return
        paths = tuple(dict.fromkeys((*known.paths, *item.paths)))
        merged = replace(known, paths=paths)
        self.by_wording[item.wording] = merged if len(paths) <= MAX_FILES else None

    def of(self, kind: str) -> list[Candidate]:
        return [item for item in self.by_wording.values() if item is not None and item.kind == kind]


def check_request(request: DraftRequest) -> None:
    """Refuse what cannot be meant.

    Raises:
        UsageError: no kind, an unknown one, or a limit below 1.
    """
    unknown = [kind for kind in request.kinds if kind not in KINDS]
    if unknown or not request.kinds:
        raise UsageError(
            f"no such kind of query: {unknown[0]!r}" if unknown else "no kind of query is named",
            hint=f"kinds: {','.join(KINDS)}",
        )
    if request.limit < 1:
        raise UsageError("a draft of no queries: the limit is below 1", hint="--limit 50")


def draft(reader: Reader, history: History, request: DraftRequest) -> Draft:
    """Draft at most `request.limit` queries.

    Each kind gets the same share; what one lacks goes to the others. Within a kind every file has
    its turn before one has a second; what has little merit waits until nothing else is left.

    Args:
        history: only looked at for commits.
    Raises:
        UsageError: see `check_request`.
    """
    check_request(request)
    kinds = [kind for kind in KINDS if kind in request.kinds]
    rows = {path: row for path, row in reader.files().items() if row.n_chunks}
    pool = _fill(reader, rows, history, kinds)
    found = {kind: pool.of(kind) for kind in kinds}
    shares = _shares({kind: len(items) for kind, items in found.items()}, request.limit)
    queries = []
    for kind in kinds:
        places = {item: place for place, item in enumerate(found[kind])}
        taken = _spread([item for item in found[kind] if item.merit >= GOOD], shares[kind])
        weak = [item for item in found[kind] if item.merit < GOOD]
        taken = sorted(taken + _spread(weak, shares[kind] - len(taken)), key=places.__getitem__)
        width = len(str(len(taken)))
        queries += [
            DraftedQuery(f"{kind[0]}{n:0{width}d}", item.query, item.paths, kind, item.origin)
            for n, item in enumerate(taken, 1)
        ]
    notes = [history.note] if history.note and "commits" in kinds else []
    notes += [
        f"no {kind}: none reads like a query"
        for kind in kinds
        if not found[kind] and not (kind == "commits" and history.note)
    ]
    return Draft(tuple(queries), shares, tuple(notes))


def _fill(
    reader: Reader, rows: Mapping[str, FileRow], history: History, kinds: Sequence[str]
) -> _Pool:
    from ragx.evaluation import candidates

    pool = _Pool()
    of_files: dict[str, list[Candidate]] = {"headings": [], "docstrings": []}
    if "headings" in kinds or "docstrings" in kinds:
        for path, row in rows.items():
            kind = candidates.kind_from_file(path, row.language)
            if kind in kinds:
                chunks = reader.chunks_of(path)
                of_files[kind] += candidates.from_file(kind, path, row.language, row.title, chunks)
    hashes = {path: row.content_hash for path, row in rows.items()}
    of_commits = (
        candidates.from_commits(history.commits, rows, MAX_FILES) if "commits" in kinds else []
    )
    own = _without_common(of_files["headings"], hashes)
    for item in (*own, *of_files["docstrings"], *of_commits):
        pool.add(item)
    return pool


def _without_common(items: Sequence[Candidate], hashes: Mapping[str, str]) -> list[Candidate]:
    """Headings of one file only; copies of a file count as that file."""
    texts: dict[str, set[str]] = {}
    for item in items:
        texts.setdefault(item.wording, set()).add(hashes[item.paths[0]])
    return [item for item in items if len(texts[item.wording]) == 1]


def _shares(available: Mapping[str, int], limit: int) -> dict[str, int]:
    """Deal out the limit one by one, in turn, to the kinds that still have something."""
    shares = dict.fromkeys(available, 0)
    left = min(limit, sum(available.values()))
    while left:
        for kind, n in available.items():
            if left and shares[kind] < n:
                shares[kind] += 1
                left -= 1
    return shares


def _spread(items: Sequence[Candidate], n: int) -> list[Candidate]:
    """Take n, the best of each file before the second of any; a last, partial round evenly."""
    by_file: dict[str, list[Candidate]] = {}
    for item in items:
        by_file.setdefault(item.paths[0], []).append(item)
    queues = [sorted(by_file[path], key=lambda item: -item.merit) for path in sorted(by_file)]
    taken: list[Candidate] = []
    turn = 0
    while len(taken) < n:
        round_ = [queue[turn] for queue in queues if turn < len(queue)]
        if not round_:
            break
        room = min(n - len(taken), len(round_))
        taken += [round_[(2 * place + 1) * len(round_) // (2 * room)] for place in range(room)]
        turn += 1
    return taken

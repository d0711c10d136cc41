"""The data that crosses borders between layers. Frozen, plain, no behaviour beyond access.

| type        | is                                            | made by       | used by       |
|-------------|-----------------------------------------------|---------------|---------------|
| Span        | character range of a chunk in decoded text    | algo.chunking | indexing      |
| Chunk       | stored span: identity, bytes, lines, text     | indexing      | store, query  |
| Locator     | where in a PDF, notebook, ... a chunk stands  | documents     | store, shells |
| Hit         | one chunk in a ranking, with its score terms  | query         | query, shells |
| Hop         | one edge on the way of a hit's heat           | query         | api, shells   |
| FileHit     | one file entry: its best hits folded          | algo.fold     | api, shells   |
| BuildReport | what an indexing run did, Failure by Failure  | indexing      | api, shells   |
| DryRun      | what a run would do                           | indexing      | api, shells   |
| Progress    | how far a run is                              | indexing      | shells        |
| Verification | how an index compares with a fresh one       | indexing      | api, shells   |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = [
    "BuildReport",
    "Chunk",
    "DryRun",
    "Failure",
    "FileHit",
    "Hit",
    "Hop",
    "Locator",
    "Progress",
    "Span",
    "Verification",
]


@dataclass(frozen=True, slots=True)
class Span:
    """Half-open range `text[start:end]` of decoded characters that becomes one chunk.

    `breadcrumb` is what stands above it in the document's structure, outermost first (headings,
    or class and function names); `symbols` are the names that the range itself defines.
    """

    start: int
    end: int
    breadcrumb: tuple[str, ...] = ()
    symbols: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Locator:
    """Where a chunk stands in a document whose text had to be extracted.

    `kind` is "page", "slide", "sheet", "cell", "chapter", "part", "heading", or what a plug-in
    names. `number` to `end`, both inclusive, count from 1 as a reader of the document counts:
    pages, rows of a sheet, ...; 0 where nothing counts. `name` is what the place is called.
    """

    kind: str
    number: int = 0
    end: int = 0
    name: str = ""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A stored span of one file.

    `text == raw[byte_start:byte_end].decode(encoding)` for the file's recorded encoding; lines
    are 1-based and inclusive; `ordinal` counts chunks of the file from 0. A chunk with a `locator`
    is of an extracted document: bytes and lines are then those of the extracted text in UTF-8.
    """

    chunk_id: int
    path: str
    ordinal: int
    byte_start: int
    byte_end: int
    line_start: int
    line_end: int
    text: str
    heading: tuple[str, ...] = ()
    symbols: tuple[str, ...] = ()
    locator: Locator | None = None


@dataclass(frozen=True, slots=True)
class Hop:
    """One edge that heat took from chunk `source` to chunk `target`."""

    source: int
    target: int
    kind: str
    weight: float


@dataclass(frozen=True, slots=True)
class Hit:
    """One chunk in a ranking.

    `terms` are the contributions whose sum is `score`; `raw` holds the unscaled leg scores
    (cosine, BM25) that they came from. `hops` lead from the seed whose heat is among the terms to
    this chunk; `seed_path` is that seed's file, `seed_score` what the searches gave it. Without
    heat all three are empty.
    """

    chunk_id: int
    path: str
    ordinal: int
    score: float
    terms: dict[str, float] = field(default_factory=dict)
    raw: dict[str, float] = field(default_factory=dict)
    hops: tuple[Hop, ...] = ()
    seed_path: str = ""
    seed_score: float = 0.0

    @property
    def uncapped(self) -> float:
        """The score before the cap: what orders those that one cap holds."""
        return self.score - self.terms.get("cap", 0.0)

    @property
    def unheated(self) -> float:
        """The score without what the graph added."""
        return self.score - self.terms.get("heat", 0.0) - self.terms.get("cap", 0.0)


@dataclass(frozen=True, slots=True)
class FileHit:
    """A file's entry in the answer: its best hits, best first, and the folded score.

    `terms` sum to the score: `best`, what further hits add (`further`), and where heat would lift
    the entry above the one its heat came from, a negative `cap`.
    """

    path: str
    score: float
    hits: tuple[Hit, ...]
    terms: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Failure:
    """A file that could not be indexed as it is now; `code` is stable, `message` for people."""

    path: str
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is. Bytes are of the files that have to be read."""

    files_done: int
    files_total: int
    bytes_done: int
    bytes_total: int
    chunks: int
    embedded: int


@dataclass(slots=True)
class BuildReport:
    """What a run did; counts of files unless named otherwise."""

    files_total: int = 0
    files_indexed: int = 0
    files_deleted: int = 0
    files_unchanged: int = 0
    files_read: int = 0
    chunks_added: int = 0
    chunks_deleted: int = 0
    embedded: int = 0
    cached: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    skipped_paths: list[tuple[str, str]] = field(default_factory=list)
    skipped_notes: dict[str, str] = field(default_factory=dict)
    notes: list[tuple[str, str]] = field(default_factory=list)
    failed: list[Failure] = field(default_factory=list)
    edges_total: int = 0
    communities_total: int = 0
    dates_changed: int = 0
    committed: bool = False


@dataclass(frozen=True, slots=True)
class DryRun:
    """What a run would do; counts are of files unless named otherwise.

    `embeddings` are passages without a stored vector. `seconds` is the time to embed them, None
    where the speed of a server is not known.
    """

    files: int
    by_kind: Mapping[str, int]
    n_bytes: int
    chunks: int
    tokens: int
    embeddings: int
    cached: int
    seconds: float | None
    to_delete: int
    unchanged: int
    skipped: Mapping[str, int]
    decisions: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, slots=True)
class Verification:
    """How a stored index compares with a fresh one: paths that differ and how, and the rest."""

    files: int
    differing: tuple[tuple[str, str], ...]
    vectors_agree: bool
    postings_agree: bool
    edges_agree: bool

    @property
    def ok(self) -> bool:
        """Whether nothing differs."""
        agree = self.vectors_agree and self.postings_agree and self.edges_agree
        return agree and not self.differing

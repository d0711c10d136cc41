"""What the pipelines may ask of storage. Another engine can stand behind these protocols.

A `Reader` is one snapshot: whatever a writer does meanwhile, its answers agree with each other.
A `Writer` collects a run's changes and makes them visible all at once in `commit`; embeddings are
the exception, saved as they are paid for, because they are addressed by content and harm nobody.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from ragx.algo.references.base import Reference
from ragx.types import Chunk

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ragx.algo.graph import CsrGraph
    from ragx.store.communities import CommunityOptions, Partition

__all__ = [
    "CommitResult",
    "Counts",
    "Digests",
    "Evidence",
    "FileFacts",
    "FileRow",
    "LinkOptions",
    "Reader",
    "Scored",
    "StagedChunk",
    "Writer",
]

Scored = tuple[int, float]
"""(chunk id, score); higher is better."""


@dataclass(frozen=True, slots=True)
class FileFacts:
    """What filters ask of a file that has chunks; `number` is its own within one snapshot.

    `day` is as in `FileRow`; `dated` says whether it is more than `changed`, the day that the file
    system tells.
    """

    number: int
    path: str
    content_hash: str
    language: str
    day: str
    dated: bool
    changed: str
    tags: tuple[str, ...]


def _day_of(time_ns: int) -> str:
    try:
        return datetime.fromtimestamp(time_ns // 1_000_000_000, UTC).date().isoformat()
    except (OverflowError, OSError, ValueError):
        return "1970-01-01"  # some file systems hold times that no calendar has


@dataclass(frozen=True, slots=True)
class FileRow:
    """One file as stored.

    `status` is "ok"; "failed" (an older version is stored, or none); "unembedded" (stored, but not
    all of its vectors could be had); or "skipped:<reason>". `code` is a failure's stable name;
    `note` says for people what was assumed or went wrong. `date` is YYYY-MM-DD and `date_source`
    "name", "front_matter", "metadata" or "git"; both are "" where only `mtime_ns` tells. `tags` are
    as written. `extractor` names what read the text out of a document, with its version, or what
    would have; "" for text. `skipped_parts` are (what, how many, more) of what it left out.
    """

    path: str
    content_hash: str
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    scanned_ns: int
    status: str = "ok"
    code: str = ""
    note: str = ""
    encoding: str = ""
    language: str = ""
    title: str = ""
    n_chunks: int = 0
    date: str = ""
    date_source: str = ""
    tags: tuple[str, ...] = ()
    extractor: str = ""
    skipped_parts: tuple[tuple[str, int, str], ...] = ()

    @property
    def day(self) -> str:
        """Its date, or where nothing but the file system tells, the day it was changed (UTC)."""
        return self.date or _day_of(self.mtime_ns)

    @property
    def day_source(self) -> str:
        """Where `day` comes from: "name", "front_matter", "metadata", "git" or "mtime"."""
        return self.date_source or "mtime"


@dataclass(frozen=True, slots=True)
class StagedChunk:
    """A chunk with the keys of its embedding windows, in order; no keys without an embedder.

    `part_keys` are those of the stretches that `similar` edges compare; empty where the windows
    are. `names` are keys of `algo.mentions.name_key` under which other texts may mention it;
    `references` have positions in the chunk's text.
    """

    chunk: Chunk
    window_keys: tuple[bytes, ...] = ()
    part_keys: tuple[bytes, ...] = ()
    names: tuple[str, ...] = ()
    references: tuple[Reference, ...] = ()


@dataclass(frozen=True, slots=True)
class LinkOptions:
    """What decides the `similar` edges besides the vectors.

    Args:
        k: nearest neighbours listed for each stretch that is compared.
        min_edge_sim: least cosine of a neighbour.
        near_dup_sim: chunks whose whole vectors are at least this alike get no edge.
        edge_source: "chunk" compares whole chunks, "subchunk" stretches of them.
    """

    k: int = 8
    min_edge_sim: float = 0.55
    near_dup_sim: float = 0.9
    edge_source: Literal["chunk", "subchunk"] = "subchunk"


@dataclass(frozen=True, slots=True)
class Evidence:
    """Why two chunks are joined: `text[start:end]` of chunk `source` names chunk `target`.

    Edges of chunks that follow or resemble each other have neither text nor positions.
    """

    kind: str
    weight: float
    source: int
    target: int
    text: str = ""
    start: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True)
class Counts:
    """Rows in the snapshot. `vectors` counts chunks that have one; `edges` are undirected."""

    files: int
    chunks: int
    vectors: int
    postings: int
    edges: int


@dataclass(frozen=True, slots=True)
class Digests:
    """What two indexes of the same tree must agree on; stat data and row numbers are left out.

    `files` digests each file's row and chunks by path, `vectors` all embedding windows and parts,
    `postings` the full text, `edges` the graph.
    """

    files: Mapping[str, str]
    vectors: str
    postings: str
    edges: str


class Reader(Protocol):
    """A consistent view of one committed state."""

    @property
    def generation(self) -> int:
        """Number of the commit that this snapshot shows."""

    def manifest(self) -> dict[str, str]:
        """Settings that the index was built with."""

    def counts(self) -> Counts:
        """How many rows of each kind there are."""

    def n_chunks(self) -> int:
        """How many chunks there are to find."""

    def within(self, paths: Collection[str]) -> Reader:
        """The same snapshot, whose two searches find chunks of these files only.

        All else is as before, the figures of the corpus that scores depend on above all. It has to
        be closed before the snapshot is.
        """

    @property
    def scope(self) -> NDArray[np.int64] | None:
        """(k,) int64 ids of the chunks that the searches may find, ascending; None for all."""

    def n_chunks_of(self, paths: Collection[str]) -> dict[str, int]:
        """How many chunks each of these files has; files without any are absent."""

    def files(self) -> dict[str, FileRow]:
        """Every known file by path, in path order."""

    def facts(self) -> list[FileFacts]:
        """What filters ask, of every file that has chunks, by path; much less than `files`."""

    def file(self, path: str) -> FileRow | None:
        """One file, or None if unknown."""

    def chunks(self, chunk_ids: Sequence[int]) -> dict[int, Chunk]:
        """Chunks by id; unknown ids are absent."""

    def chunk_paths(self) -> dict[int, str]:
        """File of every chunk."""

    def outlines(self, max_chars: int) -> list[Chunk]:
        """Every chunk in the order of the graph, with no more than the beginning of its text."""

    def chunks_of(self, path: str) -> list[Chunk]:
        """All chunks of a file in order."""

    def unembedded(self, limit: int) -> tuple[int, list[str]]:
        """How many chunks have no vector, and the first `limit` paths that hold them."""

    def known_embeddings(self, keys: Collection[bytes]) -> set[bytes]:
        """Those of the keys whose vectors are stored."""

    def extraction(self, key: str) -> bytes | None:
        """What was stored under a key; None if nothing was, or it is not what was written."""

    def paths_below(self, directory: str, limit: int) -> list[str]:
        """The first `limit` indexed files below a directory, by path."""

    def lexical(
        self, expression: str, *, depth: int, weights: Sequence[float], exclude: str = ""
    ) -> list[Scored]:
        """Best `depth` chunks by BM25, ties by path and position."""

    def rarest(self, expressions: Sequence[str], limit: int) -> list[str]:
        """Those of the expressions that fewest chunks match, in the given order; none that no
        chunk matches."""

    def frequencies(self, words: Sequence[str]) -> list[int]:
        """In how many chunks each word occurs, counted no further than where it is common."""

    def lexical_scores(
        self, expression: str, chunk_ids: Collection[int], *, weights: Sequence[float]
    ) -> dict[int, float]:
        """BM25 of those given chunks that match."""

    def matching(self, expression: str, chunk_ids: Collection[int]) -> set[int]:
        """Those of the given chunks that match the expression."""

    def vector(self, query: np.ndarray, *, depth: int) -> list[Scored]:
        """Best `depth` chunks by cosine to (d,) float32 `query`, ties by path and position."""

    def vector_scores(self, query: np.ndarray, chunk_ids: Collection[int]) -> dict[int, float]:
        """Cosine of the given chunks that have a vector."""

    def likeness_spread(self) -> tuple[float, int]:
        """Standard deviation of the cosines between passages of the corpus, over an even sample,
        and the number of pairs in it."""

    def dimension(self) -> int:
        """Width of the stored vectors; 0 when there are none."""

    def graph(self) -> CsrGraph:
        """The graph of all chunks."""

    def graph_stamp(self) -> str:
        """What changes with the graph."""

    def communities(self, options: CommunityOptions) -> Partition:
        """Communities of the graph; found now if nobody has asked since it changed.

        Raises:
            MissingDependency: leidenalg or igraph is not installed.
        """

    def known_communities(self, options: CommunityOptions) -> Partition | None:
        """The communities that were found last, be they of an older graph; None if none are
        known."""

    def evidence(self, pairs: Collection[tuple[int, int]]) -> dict[tuple[int, int], list[Evidence]]:
        """Edges between the given pairs of chunks, the strongest first, with what the text says;
        keyed as asked."""

    def digests(self) -> Digests:
        """Digests of everything that files and settings decide."""

    def close(self) -> None:
        """Let the snapshot go."""


class Writer(Protocol):
    """One run's changes. Only one writer exists at a time."""

    def manifest(self) -> dict[str, str]:
        """Settings that the stored index was built with; empty for a new one."""

    def files(self) -> dict[str, FileRow]:
        """Every stored file by path."""

    def dimension(self) -> int:
        """Width of the vectors of the last commit; 0 when there are none."""

    def n_edges(self) -> int:
        """Edges of the last commit."""

    def known_embeddings(self, keys: Collection[bytes], *, width: int = 0) -> set[bytes]:
        """Those of the keys whose vectors are already stored, with this width if it is not 0."""

    def width_of(self, keys: Collection[bytes]) -> int:
        """Width of the stored vectors with these keys; 0 for unknown keys."""

    def borrow_embeddings(self, other: Path) -> None:
        """Copy every stored vector of another corpus's index."""

    def put_embeddings(
        self, items: Iterable[tuple[bytes, np.ndarray]], *, at_commit: bool = False
    ) -> None:
        """Store (d,) float32 unit vectors durably, at once or with the commit."""

    def extraction(self, key: str) -> bytes | None:
        """What was stored under a key; None if nothing was, or it is not what was written."""

    def put_extraction(self, key: str, data: bytes) -> None:
        """Store what was read out of a document, durably and at once.

        A commit keeps what its files were made of, and what this run has asked for or put.
        """

    def stage_file(self, row: FileRow, chunks: Sequence[StagedChunk]) -> None:
        """Replace a file's rows at commit."""

    def stage_stat(self, row: FileRow) -> None:
        """Replace a file's own row at commit and keep its chunks."""

    def confirm(self, path: str, scanned_ns: int) -> None:
        """Set the reading time of a file that is staged already."""

    def stage_git_dates(self, days: Mapping[str, str]) -> None:
        """Set the dates of files that are staged already, by path; "" for no date."""

    def stage_delete(self, path: str) -> None:
        """Drop a file and its chunks at commit."""

    def reset(self) -> None:
        """Drop every file at commit that is not staged by then: a full rebuild."""

    def chunks(self) -> Iterator[tuple[FileRow, list[StagedChunk]]]:
        """Every stored file that has chunks, by path, with window keys; no names or references."""

    def stage_parts(self, chunk_id: int, part_keys: Sequence[bytes]) -> None:
        """Replace a chunk's parts at commit and keep all else; no keys: the windows serve."""

    def relink(self) -> None:
        """Make all mentions and neighbours anew at commit, from stored chunks."""

    def commit(self, manifest: Mapping[str, str], linking: LinkOptions) -> CommitResult:
        """Make everything staged visible at once, and the edges that follow from it."""

    def digests(self) -> Digests:
        """Digests of the last commit, as a reader gives them."""

    def close(self) -> None:
        """Discard what was not committed and release the lock."""


@dataclass(frozen=True, slots=True)
class CommitResult:
    """What a commit changed."""

    generation: int
    chunks_added: int
    chunks_deleted: int
    edges: int

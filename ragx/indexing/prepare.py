"""One file's bytes -> its chunks and the passages that stand for them in vector space."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace

import xxhash

from ragx.algo.chunking import body_start, chunk_text, document_title
from ragx.algo.chunking.base import ChunkOptions, EstimatedSizer, OffsetSizer, Sizer
from ragx.algo.chunking.languages import language_of
from ragx.algo.chunking.tables import TableHeaders
from ragx.algo.chunking.windows import split_windows
from ragx.algo.mentions import name_key
from ragx.algo.references import Reference, page_names, references
from ragx.documents.decode import ByteMap, LineMap, decode
from ragx.providers.base import Embedder
from ragx.types import Chunk, Span

__all__ = [
    "CHUNKER_VERSION",
    "LINKER_VERSION",
    "Passage",
    "Prepared",
    "Preparer",
    "chunk_identity",
    "content_hash",
]

# Part of the manifest: raised when the same bytes give other chunks or passages than before.
CHUNKER_VERSION = 2
# The same for names and references.
LINKER_VERSION = 2
_TRAILING_BRACKET = re.compile(r"\s*\([^()]*\)\s*$")
# A chunk over the model's limit is embedded as windows of about this share of the limit, so that
# they come out alike in size instead of full ones and a stub.
_WINDOW_SHARE = 0.85
_CRUMB_SHARE = 4  # the breadcrumb may take a quarter of the model's limit


@dataclass(frozen=True, slots=True)
class Passage:
    """What is embedded for one window of a chunk; `key` addresses its vector by content."""

    key: bytes
    text: str


@dataclass(frozen=True, slots=True)
class Prepared:
    """A file ready to be stored.

    `passages[i]` are the windows of `chunks[i]` in order; empty without an embedder. `parts[i]` are
    the stretches of it that `similar` edges compare; empty where the windows serve. `names` are
    keys under which other files may mention this one, and `page` the number of the chunk that they
    then mean: the first after the front matter; `references[i]` have positions in the text
    of `chunks[i]`. `n_tokens` is the size of all chunks by the sizer in use.
    """

    encoding: str
    language: str
    title: str
    note: str
    chunks: tuple[Chunk, ...]
    passages: tuple[tuple[Passage, ...], ...]
    parts: tuple[tuple[Passage, ...], ...]
    names: tuple[str, ...]
    page: int
    references: tuple[tuple[Reference, ...], ...]
    n_tokens: int


def content_hash(raw: bytes) -> str:
    """Hex xxh3-128 of a file's bytes."""
    return xxhash.xxh3_128_hexdigest(raw)


def chunk_identity(path: str, text: str, occurrence: int) -> int:
    """Chunk id below 2**53 from path, text and how many equal texts precede it in the file.

    An edit elsewhere in the file leaves it alone, and a fresh index finds the same one.
    """
    seed = f"{path}\0{occurrence}\0{text}".encode("utf-8", "surrogatepass")
    return xxhash.xxh3_64_intdigest(seed) >> 11


class Preparer:
    """Decodes, chunks and cuts to the model's limit.

    Args:
        chunking: limits of a chunk, in the embedder's tokens where it has a tokenizer.
        embedder: whose limit and vector space the passages are for; None makes none.
        part_tokens: size of the parts that `similar` edges compare; None compares whole chunks.
    """

    def __init__(
        self, chunking: ChunkOptions, embedder: Embedder | None, part_tokens: int | None = None
    ) -> None:
        self._chunking = chunking
        self._part_tokens = part_tokens
        self._embedder = embedder
        self._space = embedder.fingerprint.encode() + b"\0" if embedder else b""

    def prepare(self, path: str, raw: bytes) -> Prepared:
        """Cut one file.

        Raises:
            ExtractionError: the bytes are not text.
            ProviderError: the breadcrumb alone exceeds the model's limit.
        """
        decoded = decode(raw)
        text = decoded.text
        language = language_of(path)
        sizer = self._sizer(text)
        spans = chunk_text(text, language=language, sizer=sizer, options=self._chunking)
        title = document_title(text, language)
        chunks = self._chunks(path, text, spans, ByteMap(text, decoded.encoding, decoded.bom_bytes))
        tables = TableHeaders(text if language == "markdown" and self._embedder else "")
        passages = [
            tuple(self._passages(text, span, sizer, title, tables)) if self._embedder else ()
            for span in spans
        ]
        return Prepared(
            encoding=decoded.encoding,
            language=language,
            title=title,
            note=decoded.note,
            chunks=tuple(chunks),
            passages=tuple(passages),
            parts=tuple(self.parts(chunk, title) for chunk in chunks),
            names=_name_keys(path, text, language, title),
            page=_first_at(spans, body_start(text, language)),
            references=_by_chunk(references(text, language), spans),
            n_tokens=sum(sizer.size(span.start, span.end) for span in spans),
        )

    def parts(self, chunk: Chunk, title: str) -> tuple[Passage, ...]:
        """The stretches of a chunk that `similar` edges compare, by its own text; () where its
        windows are no longer than those would be, or it is one stretch itself.

        Raises:
            ProviderError: the breadcrumb alone exceeds the model's limit.
        """
        embedder, size = self._embedder, self._part_tokens
        if embedder is None or size is None:
            return ()
        if embedder.max_tokens is not None and embedder.max_tokens <= size:
            return ()
        text = chunk.text
        sizer = self._sizer(text)
        if sizer.size(0, len(text)) <= size:
            return ()
        crumb, spent = self._crumb(chunk.heading, title)
        limit = embedder.max_tokens
        if limit is not None:
            size = max(1, min(size, limit - spent - 2))
        while True:
            ranges = split_windows(
                text,
                0,
                len(text),
                sizer=sizer,
                size_tokens=size,
                overlap=0.0,
                max_chars=self._chunking.max_chunk_chars,
            )
            if limit is None or size == 1:
                break
            if all(
                embedder.count_tokens(_with_crumb(crumb, text[a:b])) <= limit for a, b in ranges
            ):
                break
            # A cut inside a word can change how it is tokenised; leave more room and try again.
            size = max(1, size * 3 // 4)
        return tuple(self._passage(_with_crumb(crumb, text[a:b])) for a, b in ranges)

    def _sizer(self, text: str) -> Sizer:
        starts = self._embedder.token_starts(text) if self._embedder else None
        return EstimatedSizer(text) if starts is None else OffsetSizer(starts)

    def _chunks(
        self, path: str, text: str, spans: Sequence[Span], to_bytes: ByteMap
    ) -> list[Chunk]:
        lines = LineMap(text)
        occurrences: dict[str, int] = {}
        starts = to_bytes.byte_offsets([span.start for span in spans])
        order = sorted(range(len(spans)), key=lambda i: spans[i].end)
        ends = dict(zip(order, to_bytes.byte_offsets([spans[i].end for i in order]), strict=True))
        chunks = []
        for ordinal, span in enumerate(spans):
            body = text[span.start : span.end]
            occurrence = occurrences.get(body, 0)
            occurrences[body] = occurrence + 1
            chunks.append(
                Chunk(
                    chunk_id=chunk_identity(path, body, occurrence),
                    path=path,
                    ordinal=ordinal,
                    byte_start=starts[ordinal],
                    byte_end=ends[ordinal],
                    line_start=lines.line_of(span.start),
                    line_end=lines.line_of(span.end - 1),
                    text=body,
                    heading=span.breadcrumb,
                    symbols=span.symbols,
                )
            )
        return chunks

    def _passages(
        self, text: str, span: Span, sizer: Sizer, title: str, tables: TableHeaders
    ) -> list[Passage]:
        embedder = self._embedder
        if embedder is None:
            return []
        crumb, spent = self._crumb(span.breadcrumb, title)
        limit = embedder.max_tokens
        ranges = [(span.start, span.end)]
        if limit is not None:
            header = tables.longest(span.start, span.end)
            if header and embedder.count_tokens(header) > limit // _CRUMB_SHARE:
                tables = TableHeaders("")  # as wide as that, it would leave no room for rows
                header = ""
            if header:
                spent = embedder.count_tokens(f"{crumb}\n{header}")
            spent += 2
            if sizer.size(span.start, span.end) + spent > limit:
                above = f"{crumb}\n{header}"
                ranges = self._windows(
                    embedder, text, span, sizer, above, limit=limit, room=max(1, limit - spent)
                )
        return [
            self._passage(_with_crumb(_with_crumb(crumb, tables.above(a)), text[a:b]))
            for a, b in ranges
        ]

    def _windows(
        self,
        embedder: Embedder,
        text: str,
        span: Span,
        sizer: Sizer,
        crumb: str,
        *,
        limit: int,
        room: int,
    ) -> list[tuple[int, int]]:
        """Ranges whose passages the model can read whole, by its own count.

        `room` is what the breadcrumb leaves of `limit`, in tokens.
        """
        size = sizer.size(span.start, span.end)
        n_windows = math.ceil(size / max(1, int(room * _WINDOW_SHARE)))
        target = min(room, math.ceil(1.1 * size / n_windows))
        while True:
            ranges = split_windows(
                text,
                span.start,
                span.end,
                sizer=sizer,
                size_tokens=target,
                overlap=0.0,
                max_chars=self._chunking.max_chunk_chars,
            )
            over = any(
                embedder.count_tokens(_with_crumb(crumb, text[a:b])) > limit for a, b in ranges
            )
            if not over or target == 1:
                return ranges
            # A cut inside a word can change how it is tokenised; leave more room and try again.
            target = max(1, target * 3 // 4)

    def _crumb(self, breadcrumb: tuple[str, ...], title: str) -> tuple[str, int]:
        """Where the passage stands, outermost first, within its share of the limit; its tokens.

        The path is not part of it: vectors follow from content alone, so that a moved or copied
        file costs nothing and an updated index equals a fresh one. Paths count on the lexical
        side (research/breadcrumb.md).
        """
        parts = list(breadcrumb)
        if title and title not in parts:
            parts.insert(0, title)
        embedder = self._embedder
        if embedder is None or embedder.max_tokens is None:
            return " > ".join(parts), 0
        room = embedder.max_tokens // _CRUMB_SHARE
        while True:
            crumb = " > ".join(parts)
            n_tokens = embedder.count_tokens(crumb)
            if not parts or n_tokens <= room:
                return crumb, n_tokens
            # The nearest heading says most about the passage, so the farthest goes first.
            parts.pop(0)

    def _passage(self, text: str) -> Passage:
        data = self._space + text.encode("utf-8", "surrogatepass")
        return Passage(xxhash.xxh3_128_digest(data), text)


def _name_keys(path: str, text: str, language: str, title: str) -> tuple[str, ...]:
    """What to look for in other texts: each name, also without what a bracket at its end adds."""
    names = [name.text for name in page_names(path, text, language, title)]
    names += [_TRAILING_BRACKET.sub("", name) for name in names]
    return tuple(dict.fromkeys(filter(None, map(name_key, names))))


def _first_at(spans: Sequence[Span], start: int) -> int:
    """The first span from a place on; the very first where there is none."""
    return next((at for at, span in enumerate(spans) if span.start >= start), 0)


def _by_chunk(
    found: Sequence[Reference], spans: Sequence[Span]
) -> tuple[tuple[Reference, ...], ...]:
    """References by the chunk they start in, with positions in its text."""
    starts = [span.start for span in spans]
    sorted_out: list[list[Reference]] = [[] for _ in spans]
    for reference in found:
        at = bisect_right(starts, reference.start) - 1
        if at >= 0:
            span = spans[at]
            start = min(reference.start, span.end) - span.start
            end = min(reference.end, span.end) - span.start
            sorted_out[at].append(replace(reference, start=start, end=end))
    return tuple(map(tuple, sorted_out))


def _with_crumb(crumb: str, text: str) -> str:
    return "\n".join(part for part in (crumb, text) if part)

"""One file's bytes -> its chunks and the passages that stand for them in vector space."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypedDict, Unpack

import xxhash

from ragx.algo.chunking import body_start, chunk_rows, chunk_text, document_title
from ragx.algo.chunking.base import ChunkOptions, EstimatedSizer, OffsetSizer, Sizer
from ragx.algo.chunking.languages import kind_of, language_of
from ragx.algo.chunking.tables import TableHeaders
from ragx.algo.chunking.windows import split_windows
from ragx.algo.locators import COLUMNS
from ragx.algo.mentions import name_key
from ragx.algo.references import Reference, page_names, references
from ragx.documents.dates import date_in_name
from ragx.documents.decode import ByteMap, LineMap, decode
from ragx.documents.formats.base import Extracted, SkippedPart
from ragx.documents.frontmatter import FrontMatter, read_front_matter
from ragx.documents.layout import Layout, lay_out
from ragx.providers.base import Embedder
from ragx.types import Chunk, Span

__all__ = [
    "CHUNKER_VERSION",
    "LINKER_VERSION",
    "Document",
    "Passage",
    "Prepared",
    "Preparer",
    "chunk_identity",
    "content_hash",
]

# Part of the manifest: raised when the same bytes give other chunks, passages, dates or tags than
# before.
CHUNKER_VERSION = 3
# The same for names and references.
LINKER_VERSION = 2
_TRAILING_BRACKET = re.compile(r"\s*\([^()]*\)\s*$")
# A chunk over the model's limit is embedded as windows of about this share of the limit, so that
# they come out alike in size instead of full ones and a stub.
_WINDOW_SHARE = 0.85
_MAX_COLUMNS_CHARS = 300
_CRUMB_SHARE = 4  # the breadcrumb may take a quarter of the model's limit


@dataclass(frozen=True, slots=True)
class Passage:
    """What is embedded for one window of a chunk; `key` addresses its vector by content."""

    key: bytes
    text: str


class _Facts(TypedDict):
    """What of `Prepared` is told by text and documents in ways of their own."""

    encoding: str
    language: str
    note: str
    names: tuple[str, ...]
    page: int
    references: tuple[tuple[Reference, ...], ...]
    date: str
    date_source: str
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A file ready to be stored.

    `passages[i]` are the windows of `chunks[i]` in order; empty without an embedder. `parts[i]` are
    the stretches of it that `similar` edges compare; empty where the windows serve. `names` are
    keys under which other files may mention this one, and `page` the number of the chunk that they
    then mean: the first after the front matter; `references[i]` have positions in the text
    of `chunks[i]`. `n_tokens` is the size of all chunks by the sizer in use. `date` is YYYY-MM-DD
    and `date_source` "name", "front_matter" or "metadata" (of a document); both are "" where none
    holds a date.
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
    date: str = ""
    date_source: str = ""
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Document:
    """What was read out of a file whose bytes are not its text.

    `language` names its format; `extractor` what read it, with its version.
    """

    language: str
    extractor: str
    extracted: Extracted


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

    def prepare(self, path: str, raw: bytes, document: Document | None = None) -> Prepared:
        """Cut one file.

        Args:
            document: what was extracted from the bytes, where they are not text themselves.
        Raises:
            ExtractionError: the bytes are not text.
            ProviderError: the breadcrumb alone exceeds the model's limit.
        """
        if document is not None:
            return self._prepare_document(path, document)
        decoded = decode(raw)
        text = decoded.text
        language = language_of(path)
        sizer = self._sizer(text)
        spans = chunk_text(text, language=language, sizer=sizer, options=self._chunking)
        title = document_title(text, language)
        front = read_front_matter(text) if kind_of(language) == "docs" else FrontMatter()
        date, date_source = _dated(path, front)
        return self._prepared(
            text,
            sizer,
            spans,
            self._chunks(path, text, spans, ByteMap(text, decoded.encoding, decoded.bom_bytes)),
            TableHeaders(text if language == "markdown" and self._embedder else ""),
            encoding=decoded.encoding,
            language=language,
            title=title,
            note=decoded.note,
            names=_name_keys(path, text, language, title),
            page=_first_at(spans, body_start(text, language)),
            references=_by_chunk(references(text, language), spans),
            date=date,
            date_source=date_source,
            tags=front.tags,
        )

    def _prepare_document(self, path: str, document: Document) -> Prepared:
        extracted = document.extracted
        layout = lay_out(extracted)
        text = layout.text
        sizer = self._sizer(text)
        spans = chunk_rows(
            text,
            layout.rows,
            borders=layout.borders,
            firm=layout.firm,
            sizer=sizer,
            options=self._chunking,
        )
        spans = [_with_columns(span, layout) for span in spans]
        chunks = self._chunks(path, text, spans, ByteMap(text, "utf-8", 0), layout)
        named = date_in_name(path)
        return self._prepared(
            text,
            sizer,
            spans,
            chunks,
            TableHeaders.of(layout.tables),
            encoding="utf-8",
            language=document.language,
            title=extracted.title,
            note=_parts_note(extracted.skipped_parts),
            names=_name_keys(path, text, document.language, extracted.title),
            page=0,
            references=_by_chunk(layout.links, spans),
            date=named.isoformat() if named else extracted.date,
            date_source="name" if named else "metadata" if extracted.date else "",
            tags=extracted.tags,
        )

    def _prepared(
        self,
        text: str,
        sizer: Sizer,
        spans: Sequence[Span],
        chunks: Sequence[Chunk],
        tables: TableHeaders,
        *,
        title: str,
        **facts: Unpack[_Facts],
    ) -> Prepared:
        none = TableHeaders("")
        passages = [
            tuple(
                # What says the columns already needs no header above its rows.
                self._passages(text, span, sizer, title, none if _says_columns(span) else tables)
            )
            if self._embedder
            else ()
            for span in spans
        ]
        return Prepared(
            title=title,
            chunks=tuple(chunks),
            passages=tuple(passages),
            parts=tuple(self.parts(chunk, title) for chunk in chunks),
            n_tokens=sum(sizer.size(span.start, span.end) for span in spans),
            **facts,
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
        self,
        path: str,
        text: str,
        spans: Sequence[Span],
        to_bytes: ByteMap,
        layout: Layout | None = None,
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
                    locator=layout.locator(span.start, span.end) if layout else None,
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
            above = f"{crumb}\n{header}"
            body = text[span.start : span.end]
            if sizer.size(span.start, span.end) + spent > limit or (
                # The sizer's guess is near the middle, and a limit must hold for every text.
                isinstance(sizer, EstimatedSizer)
                and embedder.count_tokens(_with_crumb(above, body)) > limit
            ):
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
        counted = size
        if isinstance(sizer, EstimatedSizer):
            counted = max(size, embedder.count_tokens(text[span.start : span.end]))
        n_windows = math.ceil(counted / max(1, int(room * _WINDOW_SHARE)))
        target = max(1, min(room, math.ceil(1.1 * size / n_windows)))
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


def _with_columns(span: Span, layout: Layout) -> Span:
    """Rows of a table that stand without its header, with their columns as the last heading."""
    header = layout.header_above(span.start)
    if not header:
        return span
    columns = " ".join(header.rpartition("\n")[2].split())[:_MAX_COLUMNS_CHARS]
    return replace(span, breadcrumb=(*span.breadcrumb, f"{COLUMNS}{columns}"))


def _says_columns(span: Span) -> bool:
    return bool(span.breadcrumb) and span.breadcrumb[-1].startswith(COLUMNS)


def _parts_note(parts: Sequence[SkippedPart]) -> str:
    """What of a document is not in its text, in one line; "" if nothing is left out."""
    left_out: list[str] = []
    taken: list[str] = []
    for part in parts:
        spoken = part.what + (f": {part.count}" if part.count else "")
        spoken += f" ({part.note})" if part.note else ""
        (taken if part.note.startswith("their text is taken") else left_out).append(spoken)
    return "; ".join(
        f"{what}: {', '.join(spoken)}"
        for what, spoken in (("not indexed", left_out), ("indexed", taken))
        if spoken
    )


def _dated(path: str, front: FrontMatter) -> tuple[str, str]:
    """The day that a document says it is of, and where it says so."""
    named = date_in_name(path)
    if named is not None:
        return named.isoformat(), "name"
    return (front.date.isoformat(), "front_matter") if front.date else ("", "")


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

"""One indexing run: scan -> plan -> read -> chunk -> embed -> commit.

The calling thread reads, cuts and stores while worker threads embed. Embeddings are saved as they
arrive; everything else becomes visible in one commit at the end, so a run that dies leaves the old
index and the vectors that it has already paid for.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeGuard

from ragx.algo.chunking.base import ChunkOptions
from ragx.algo.lexical import ANALYSIS_VERSION
from ragx.documents.formats.base import ExtractLimits
from ragx.documents.read import read_regular
from ragx.documents.secrets import secret_reason
from ragx.errors import (
    BadEmbedding,
    ExtractionError,
    ManifestMismatch,
    ProviderError,
    ProviderRefused,
    ProviderUnavailable,
    StoreError,
    UsageError,
)
from ragx.indexing.dates import read_git_dates
from ragx.indexing.extract import POLICY, DocumentReader, not_installed
from ragx.indexing.plan import RACY_NS, Plan, StoredFile, plan
from ragx.indexing.prepare import (
    CHUNKER_VERSION,
    LINKER_VERSION,
    Document,
    Passage,
    Prepared,
    Preparer,
    content_hash,
)
from ragx.indexing.scan import ScanOptions, ScanResult, SeenFile, scan
from ragx.providers.base import Embedder, may_concern_one_text
from ragx.providers.limits import MIN_PROBE_TOKENS, MeasuresLimit
from ragx.providers.pool import EmbedPool
from ragx.store.base import FileRow, LinkOptions, StagedChunk, Writer
from ragx.types import BuildReport, Failure, Progress

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "BuildOptions",
    "build",
    "check_manifest",
    "expected_manifest",
    "make_plan",
    "rebuild_edges",
    "refresh_dates",
    "stored_view",
]

_SAVE_EVERY = 256  # vectors per saving transaction
_SAVE_AFTER_S = 2.0
_READ_TRIES = 3
_GIT_DECIDES = ("", "git")  # sources of dates that a commit comes before
_OF_THE_RUN = ".ragx"  # what a note is of that concerns no single file
_MAX_TOKENS = "embeddings_max_tokens"


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """What a run shall do; without `ask_git` no file gets a date from its commits."""

    scan: ScanOptions
    chunking: ChunkOptions
    linking: LinkOptions = field(default_factory=LinkOptions)
    documents: ExtractLimits = field(default_factory=ExtractLimits)
    part_tokens: int = 256
    only: Collection[str] | None = None
    force: Collection[str] = ()
    full: bool = False
    no_cache: bool = False
    ask_git: bool = True

    def preparer(self, embedder: Embedder | None) -> Preparer:
        """What cuts files as these options say."""
        compares_parts = self.linking.edge_source == "subchunk"
        return Preparer(self.chunking, embedder, self.part_tokens if compares_parts else None)


def expected_manifest(
    *,
    fingerprint: str,
    provider: str,
    model: str,
    mode: str,
    max_tokens: int | None = None,
    chunking: ChunkOptions,
    linking: LinkOptions,
    part_tokens: int,
) -> dict[str, str]:
    """Settings that shape an index: equal manifests, equal index for the same tree.

    `max_tokens` is the measured limit of a served model; None for others.
    """
    if fingerprint == "none":
        linking, part_tokens = LinkOptions(), 0  # nothing to compare: they make no difference
    return {
        "analysis_version": str(ANALYSIS_VERSION),
        "chunker_version": str(CHUNKER_VERSION),
        "chunking_max_chunk_chars": str(chunking.max_chunk_chars),
        "chunking_overlap": repr(chunking.overlap),
        "chunking_size_tokens": str(chunking.size_tokens),
        "embeddings_fingerprint": fingerprint,
        _MAX_TOKENS: _limit_value(max_tokens),
        "embeddings_mode": mode,
        "embeddings_model": model,
        "embeddings_provider": provider,
        "graph_edge_source": linking.edge_source,
        "graph_k": str(linking.k),
        "graph_min_edge_sim": repr(float(linking.min_edge_sim)),
        "graph_near_dup_sim": repr(float(linking.near_dup_sim)),
        "graph_subchunk_size_tokens": str(part_tokens),
        "linker_version": str(LINKER_VERSION),
    }


def check_manifest(
    stored: Mapping[str, str], expected: Mapping[str, str], *, edges: bool = True
) -> None:
    """Stop when an index was built with other settings.

    Args:
        edges: whether settings of the edges count, too.
    Raises:
        ManifestMismatch: names the key, both values and the fix.
    """
    # What a user changes comes first; the rest follows from it.
    for key in sorted(expected, key=_importance):
        old, new = stored.get(key, ""), expected[key]
        of_edges = key.startswith("graph_")
        if old != new and (edges or not of_edges):
            flag = "--edges-only" if of_edges else "--full"
            raise ManifestMismatch(
                f"the index was built with {_spoken(key)} {old!r}, now it is {new!r}",
                hint=f"ragx index {flag} rebuilds it, or set the old value again",
                details={"key": key, "old": old, "new": new},
            )


_SETTINGS = {"embeddings_provider": 0, "embeddings_model": 1, "embeddings_fingerprint": 2}
# What one can put right without reading the files comes last.
_LAST = len(_SETTINGS) + 1


def _importance(key: str) -> tuple[int, str]:
    return _LAST if key.startswith("graph_") else _SETTINGS.get(key, len(_SETTINGS)), key


def _limit_value(max_tokens: int | None) -> str:
    return "" if max_tokens is None else str(max_tokens)


def _spoken(key: str) -> str:
    if key == "embeddings_fingerprint":
        return "the vector space"
    section, _, name = key.partition("_")
    return f"{section}.{name}" if section in ("chunking", "embeddings", "graph") else key


def stored_view(rows: Mapping[str, FileRow], reader: DocumentReader) -> dict[str, StoredFile]:
    """Stored files as the planner wants them; `reader` says what would read each one now."""
    return {
        path: StoredFile(
            path=path,
            content_hash=row.content_hash,
            size=row.size,
            mtime_ns=row.mtime_ns,
            ctime_ns=row.ctime_ns,
            inode=row.inode,
            scanned_ns=row.scanned_ns,
            status=row.status,
            extractor=row.extractor,
            extractor_now=reader.expected(path, row.extractor),
        )
        for path, row in rows.items()
    }


def build(
    root: Path,
    writer: Writer,
    embedder: Embedder | None,
    options: BuildOptions,
    manifest: Mapping[str, str],
    *,
    measure: bool = True,
    progress: Callable[[Progress], None] = lambda _: None,
) -> BuildReport:
    """Bring the index of `root` in step with the disk.

    Args:
        writer: open; the run ends with its `commit`, or with nothing changed.
        embedder: None for an index without vectors.
        manifest: what `expected_manifest` gives for these settings.
        measure: whether a served model is asked for its limit before it embeds the first text of
            a new index, or all of them anew; the manifest then has what it says.
        progress: called now and then from this thread.
    Returns:
        What was done; files that failed are in it, and do not stop the run.
    Raises:
        CorpusError: the tree cannot be scanned.
        ManifestMismatch: incremental run over an index of other settings.
        ProviderUnavailable, ProviderRefused: the model does not serve; nothing is committed.
        StoreError: the index cannot be written.
    """
    stored_manifest = writer.manifest()
    if stored_manifest and not options.full:
        check_manifest(stored_manifest, manifest)
    seen = scan(root, options.scan)
    rows = writer.files()
    with DocumentReader(options.documents, writer, retry=options.full) as reader:
        todo = make_plan(rows, seen, options, reader)
        anew = bool(todo.paths("add", "check", "force")) and (
            options.full or not writer.dimension()
        )
        if measure and anew and embedder is not None and isinstance(embedder, MeasuresLimit):
            # Later runs read it from the manifest, so that they cut the same text in the same way.
            limit = embedder.probe_limit(max(MIN_PROBE_TOKENS, 2 * options.chunking.size_tokens))
            manifest = {**manifest, _MAX_TOKENS: _limit_value(limit.max_tokens)}
        # Older versions of files that fail now are kept, unless their vectors may be another
        # model's.
        keeps_old = {_MAX_TOKENS: "", **stored_manifest} == dict(manifest) and not options.no_cache
        kept = rows if keeps_old else {}
        run = _Run(root, writer, embedder, options, kept, todo, seen, reader, progress)
        if options.full:
            writer.reset()
        run.embed(embedder)
        return run.finish(manifest, first=not stored_manifest)


def rebuild_edges(
    writer: Writer,
    embedder: Embedder | None,
    options: BuildOptions,
    manifest: Mapping[str, str],
    *,
    progress: Callable[[Progress], None] = lambda _: None,
) -> BuildReport:
    """Make parts and edges anew from the stored chunks; files are not looked at.

    Raises:
        ManifestMismatch: more than the edges was made with other settings.
        ProviderError: a part could not be embedded; nothing is committed.
        StoreError: the index cannot be written.
    """
    check_manifest(writer.manifest(), manifest, edges=False)
    preparer = options.preparer(embedder)
    report = BuildReport()
    missing: dict[bytes, str] = {}
    report.files_total = sum(row.status == "ok" for row in writer.files().values())
    report.files_unchanged = report.files_total
    for row, chunks in writer.chunks():
        for staged in chunks:
            parts = preparer.parts(staged.chunk, row.title) if staged.window_keys else ()
            writer.stage_parts(staged.chunk.chunk_id, [part.key for part in parts])
            missing.update((part.key, part.text) for part in parts)
    width = writer.dimension()
    known = writer.known_embeddings(missing.keys(), width=width)
    report.cached = len(known)
    jobs = ((key, text) for key, text in missing.items() if key not in known)
    if embedder is not None and len(known) < len(missing):
        unsaved: list[tuple[bytes, NDArray[np.float32]]] = []
        try:
            with EmbedPool(embedder) as pool:
                for key, result in pool.run(jobs):
                    if isinstance(result, ProviderError):
                        raise result
                    unsaved.append((key, _unit(result, width)))
                    report.embedded += 1
                    if len(unsaved) >= _SAVE_EVERY:
                        writer.put_embeddings(unsaved)
                        unsaved = []
                        progress(Progress(0, 0, 0, 0, 0, report.embedded))
        finally:
            # Interrupted or failed: what has been paid for is kept all the same.
            with suppress(StoreError):
                writer.put_embeddings(unsaved)
    writer.relink()
    report.edges_total = writer.commit(manifest, options.linking).edges
    report.committed = True
    return report


def refresh_dates(root: Path, writer: Writer, linking: LinkOptions) -> BuildReport:
    """Bring the dates that git gives up to its last commit; no file is looked at.

    Raises:
        StoreError: the index cannot be written.
    """
    rows = writer.files()
    report = BuildReport(files_total=sum(row.status == "ok" for row in rows.values()))
    report.files_unchanged = report.files_total
    report.edges_total = writer.n_edges()
    asked = [row for row in rows.values() if row.n_chunks and row.date_source in _GIT_DECIDES]
    found = read_git_dates(root, [row.path for row in asked])
    if found.note:
        report.notes.append((_OF_THE_RUN, found.note))
    for row in asked:
        day = found.days.get(row.path, "")
        if day != row.date and not (found.note and not day):
            writer.stage_stat(replace(row, date=day, date_source="git" if day else ""))
            report.dates_changed += 1
    if report.dates_changed:
        report.edges_total = writer.commit(writer.manifest(), linking).edges
        report.committed = True
    return report


def make_plan(
    rows: Mapping[str, FileRow], seen: ScanResult, options: BuildOptions, reader: DocumentReader
) -> Plan:
    """What a run has to do with every path.

    Raises:
        UsageError: a named file is neither in the corpus nor in the index.
    """
    dark = [item.path for item in seen.skipped if item.reason == "unreadable"]
    todo = plan(
        stored_view(rows, reader),
        seen.files,
        only=options.only,
        full=options.full,
        force=options.force,
        unreadable=dark,
    )
    if todo.unmatched:
        name = todo.unmatched[0]
        reason = next((item.reason for item in seen.skipped if item.path.rstrip("/") == name), "")
        why = f"it is left out ({reason})" if reason else "there is no such file in the corpus"
        raise UsageError(
            f"{name}: {why}",
            code="no_such_file",
            hint="ragx index -v lists what is left out and why",
        )
    return todo


@dataclass(slots=True)
class _Waiting:
    """A file whose passages are being embedded."""

    row: FileRow
    prepared: Prepared
    missing: set[bytes]
    error: ProviderError | None = None


class _Run:
    def __init__(
        self,
        root: Path,
        writer: Writer,
        embedder: Embedder | None,
        options: BuildOptions,
        rows: Mapping[str, FileRow],
        todo: Plan,
        seen: ScanResult,
        reader: DocumentReader,
        progress: Callable[[Progress], None],
    ) -> None:
        self._root = root
        self._writer = writer
        self._options = options
        self._rows = rows
        self._todo = todo
        self._seen = {file.path: file for file in seen.files}
        self._preparer = options.preparer(embedder)
        self._reader = reader
        self._progress = progress
        self._waiting: dict[bytes, list[_Waiting]] = {}
        self._failed_keys: dict[bytes, ProviderError] = {}
        self._fresh: set[bytes] = set()
        self._unsaved: list[tuple[bytes, NDArray[np.float32]]] = []
        self._saved_at = time.monotonic()
        self._racy: dict[str, FileRow] = {}
        self._undated: set[str] = set()
        self._dimension = 0 if options.full else writer.dimension()
        self._staged = 0
        self._bytes_done = 0
        self._files_done = 0
        self._chunks = 0
        self._to_read = [self._seen[path] for path in todo.paths("add", "check", "force")]
        self._forced = frozenset(todo.paths("force"))
        # A full run forces all of them, and pays for none twice.
        self._by_force = frozenset[str]() if options.full else self._forced
        self._bytes_total = sum(file.size for file in self._to_read)
        self.report = BuildReport(files_total=len(seen.files))
        # What cannot be read is a failure, not a choice.
        left_out = [item for item in seen.skipped if item.reason != "unreadable"]
        self.report.skipped = dict(Counter(item.reason for item in left_out))
        self.report.skipped_paths = [(item.path, item.reason) for item in left_out]
        self.report.failed = [
            Failure(item.path, "unreadable", "it cannot be read: check its permissions")
            for item in seen.skipped
            if item.reason == "unreadable"
        ]

    def embed(self, embedder: Embedder | None) -> None:
        """Read, cut, and have embedded whatever the plan says; what fails is in the report."""
        try:
            if embedder is None:
                for _ in self.jobs():
                    pass
                return
            with EmbedPool(embedder) as pool:
                for key, result in pool.run(self.jobs()):
                    self.receive(key, result)
        except BaseException:
            # Interrupted or failed: what has been paid for is kept all the same.
            with suppress(StoreError):
                self.save()
            raise

    def jobs(self) -> Iterator[tuple[bytes, str]]:
        """Read what the plan says and give out the passages that need a vector."""
        for decision in self._todo.decisions:
            if decision.action == "delete":
                self._writer.stage_delete(decision.path)
                self._staged += 1
                self.report.files_deleted += 1
            elif decision.action == "keep":
                self._keep(decision.path)
                if self._options.full and decision.path in self._rows:
                    # It could not be looked at; what a full run does not stage is dropped.
                    self._stage_stat(self._rows[decision.path])
        for position, file in enumerate(self._to_read):
            yield from self._read(file)
            self._bytes_done += file.size
            self._tell(position + 1)

    def receive(self, key: bytes, result: NDArray[np.float32] | ProviderError) -> None:
        """Take one vector, or the error that stands in its place."""
        if isinstance(result, ProviderError) and _concerns_all(result):
            raise result
        if not isinstance(result, ProviderError):
            result = self._checked(result)
        if isinstance(result, ProviderError):
            self._failed_keys[key] = result
        else:
            self.report.embedded += 1
            self._fresh.add(key)
            self._unsaved.append((key, result))
            if (
                len(self._unsaved) >= _SAVE_EVERY
                or time.monotonic() - self._saved_at > _SAVE_AFTER_S
            ):
                self.save()
        for waiting in self._waiting.pop(key, ()):
            waiting.missing.discard(key)
            if isinstance(result, ProviderError):
                waiting.error = result
            if not waiting.missing:
                self._settle(waiting)
        if self.report.embedded % 16 == 0:
            self._tell(None)

    def _checked(self, vector: NDArray[np.float32]) -> NDArray[np.float32] | ProviderError:
        """The vector, or the error that stands in its place if it is none.

        Raises:
            ManifestMismatch: it belongs to a second vector space.
        """
        try:
            unit = _unit(vector, self._dimension)
        except BadEmbedding as fault:
            return fault
        self._dimension = len(unit)
        return unit

    def finish(self, manifest: Mapping[str, str], *, first: bool) -> BuildReport:
        """Save, settle what is racy, commit."""
        self.save()
        self._confirm_racy()
        self._date_by_git()
        if self._staged or first or self._options.full:
            result = self._writer.commit(manifest, self._options.linking)
            self.report.edges_total = result.edges
            self.report.chunks_added = result.chunks_added
            self.report.chunks_deleted = result.chunks_deleted
            self.report.committed = True
        else:
            self.report.edges_total = self._writer.n_edges()
        self.report.notes += [(_OF_THE_RUN, line) for line in self._reader.warnings]
        self.report.failed.sort(key=lambda failure: failure.path)
        self._tell(len(self._to_read))
        return self.report

    def _keep(self, path: str) -> None:
        row = self._rows.get(path)
        if row is not None and row.status.startswith("skipped:"):
            self._count_skip(path, row.status.removeprefix("skipped:"), row.note)
        else:
            self.report.files_unchanged += 1

    def _count_skip(self, path: str, reason: str, note: str = "") -> None:
        if note:
            self.report.skipped_notes[path] = note
        self.report.skipped[reason] = self.report.skipped.get(reason, 0) + 1
        self.report.skipped_paths.append((path, reason))

    def _read(self, file: SeenFile) -> Iterator[tuple[bytes, str]]:
        path = file.path
        old = self._rows.get(path)
        try:
            raw, row = self._read_stable(file)
        except FileNotFoundError:
            self._drop(path, "vanished")
            return
        except (OSError, ExtractionError) as fault:
            if getattr(fault, "code", "") == "special":
                self._drop(path, "special")
                return
            code = fault.code if isinstance(fault, ExtractionError) else "unreadable"
            reason = getattr(fault, "message", None) or getattr(fault, "strerror", None) or fault
            self._fail(file, code, str(reason))
            return
        self.report.files_read += 1
        if row.scanned_ns - max(row.mtime_ns, row.ctime_ns) <= RACY_NS:
            self._racy[path] = row
        if (
            old
            and path not in self._forced
            and old.status == "ok"
            and old.content_hash == row.content_hash
            and old.extractor == self._reader.expected(path, old.extractor)
        ):
            kept = replace(
                old,
                size=row.size,
                mtime_ns=row.mtime_ns,
                ctime_ns=row.ctime_ns,
                inode=row.inode,
                scanned_ns=row.scanned_ns,
            )
            self._stage_stat(kept)
            self._note_undated(kept)
            self.report.files_unchanged += 1
            return
        secret = secret_reason(path, raw)
        if secret:
            self._skip(row, "secret", secret)
            return
        try:
            claim = self._reader.claim(path, raw)
            row = replace(row, extractor=claim.extractor)
            if not claim.format and self._is_too_large(raw):
                # Its name promised a document, which may be larger.
                self._skip(row, "too_large", "it is no document, and as text over the limit")
                return
            anew = path in self._by_force or self._options.no_cache
            document = self._reader.read(path, claim, raw, row.content_hash, anew=anew)
            if document is not None:
                row = replace(row, skipped_parts=_told(document))
            prepared = self._preparer.prepare(path, raw, document)
            if document is None and not claim.installed:
                note = f"its source is indexed; {not_installed(claim.format)}"
                prepared = replace(prepared, note=note)
        except ExtractionError as fault:
            if fault.code == "binary":
                self._skip(row, "binary", fault.message)
            elif fault.code in POLICY:
                self._skip(row, POLICY[fault.code], fault.message)
            else:
                self._fail(file, fault.code, fault.message, row)
            return
        except ProviderError as fault:
            if _concerns_all(fault):
                raise
            self._fail(file, fault.code, fault.message)
            return
        yield from self._request(row, prepared)

    def _drop(self, path: str, reason: str) -> None:
        """Leave out a path that is no file any more."""
        self._count_skip(path, reason)
        if path in self._rows:
            self._writer.stage_delete(path)
            self._staged += 1
            self.report.files_deleted += 1

    def _read_stable(self, file: SeenFile) -> tuple[bytes, FileRow]:
        """Bytes and the stat that belongs to them: one that held before and after reading.

        Raises:
            ExtractionError: code "changing"; it was written to at every try.
            OSError: it cannot be read.
        """
        for _ in range(_READ_TRIES):
            now = time.time_ns()
            raw, before, after = read_regular(self._root / file.path)
            if _identity(before) == _identity(after) and len(raw) == after.st_size:
                row = FileRow(
                    path=file.path,
                    content_hash=content_hash(raw),
                    size=after.st_size,
                    mtime_ns=after.st_mtime_ns,
                    ctime_ns=after.st_ctime_ns,
                    inode=after.st_ino,
                    scanned_ns=now,
                )
                return raw, row
        raise ExtractionError("it is being written to", code="changing")

    def _request(self, row: FileRow, prepared: Prepared) -> Iterator[tuple[bytes, str]]:
        """Hand out the passages of a file that have no vector yet; stage it if none is missing."""
        self._chunks += len(prepared.chunks)
        wanted = {p.key: p.text for row in (*prepared.passages, *prepared.parts) for p in row}
        known = self._fresh & wanted.keys()
        if not self._options.no_cache:
            # Only one width can be in an index, however the model behind a name has changed.
            known |= self._writer.known_embeddings(wanted.keys() - known, width=self._dimension)
        self.report.cached += len(known)
        self._note_width(known)
        waiting = _Waiting(row, prepared, set(wanted) - known)
        for key in waiting.missing & self._failed_keys.keys():
            waiting.error = self._failed_keys[key]
            waiting.missing.discard(key)
        new = [key for key in wanted if key in waiting.missing and key not in self._waiting]
        for key in waiting.missing:
            self._waiting.setdefault(key, []).append(waiting)
        if not waiting.missing:
            self._settle(waiting)
        for key in new:
            yield key, wanted[key]

    def _note_width(self, known: Collection[bytes]) -> None:
        """A full run's first stored vector says which width the others must have."""
        if known and not self._dimension:
            self._dimension = self._writer.width_of(known)

    def _settle(self, waiting: _Waiting) -> None:
        """Stage a file once the fate of all its passages is known."""
        row, prepared, error = waiting.row, waiting.prepared, waiting.error
        row = replace(
            row,
            note=prepared.note,
            encoding=prepared.encoding,
            language=prepared.language,
            title=prepared.title,
            n_chunks=len(prepared.chunks),
            date=prepared.date,
            date_source=prepared.date_source,
            tags=prepared.tags,
        )
        if prepared.note:
            self.report.notes.append((row.path, prepared.note))
        if error is not None:
            old = self._rows.get(row.path)
            self.report.failed.append(Failure(row.path, error.code, error.message))
            if _is_whole(old):
                self._stage_stat(replace(old, status="failed", code=error.code, note=error.message))
                return
            # Nothing older to show: its words can be searched even where vectors are missing.
            row = replace(row, status="unembedded", code=error.code, note=error.message)
        staged = [
            StagedChunk(
                chunk,
                self._embedded(windows),
                self._embedded(parts),
                prepared.names if chunk.ordinal == prepared.page else (),
                references,
            )
            for chunk, windows, parts, references in zip(
                prepared.chunks,
                prepared.passages,
                prepared.parts,
                prepared.references,
                strict=True,
            )
        ]
        self._writer.stage_file(row, staged)
        self._staged += 1
        self._note_undated(row)
        if error is None:
            self.report.files_indexed += 1

    def _embedded(self, passages: Sequence[Passage]) -> tuple[bytes, ...]:
        return tuple(p.key for p in passages if p.key not in self._failed_keys)

    def _skip(self, row: FileRow, reason: str, note: str) -> None:
        self._count_skip(row.path, reason, note)
        self._writer.stage_file(replace(row, status=f"skipped:{reason}", note=note), ())
        self._staged += 1

    def _is_too_large(self, raw: bytes) -> bool:
        limit = self._options.scan.max_file_bytes
        return bool(limit) and len(raw) > limit

    def _fail(self, file: SeenFile, code: str, message: str, read: FileRow | None = None) -> None:
        self.report.failed.append(Failure(file.path, code, message))
        old = self._rows.get(file.path)
        if old is not None and old.n_chunks:
            status = "failed" if _is_whole(old) else old.status
            self._stage_stat(replace(old, status=status, code=code, note=message))
            return
        row = FileRow(
            path=file.path,
            content_hash=read.content_hash if read else "",
            size=file.size,
            mtime_ns=file.mtime_ns,
            ctime_ns=file.ctime_ns,
            inode=file.inode,
            scanned_ns=0,
            status="failed",
            code=code,
            note=message,
            extractor=read.extractor if read else "",
        )
        self._writer.stage_file(row, ())
        self._staged += 1

    def _stage_stat(self, row: FileRow) -> None:
        self._writer.stage_stat(row)
        self._staged += 1

    def save(self) -> None:
        """Store the vectors that have arrived since the last time."""
        if self._unsaved:
            # What a run computes anew replaces vectors that the last commit still shows.
            self._writer.put_embeddings(self._unsaved, at_commit=self._options.no_cache)
            self._unsaved = []
        self._saved_at = time.monotonic()

    def _confirm_racy(self) -> None:
        """Look again at files that were written just before they were read.

        A run long enough to leave their timestamps behind can settle them now; otherwise the next
        run would have to read them all once more.
        """
        for path, row in self._racy.items():
            now = time.time_ns()
            if now - max(row.mtime_ns, row.ctime_ns) <= RACY_NS:
                continue
            try:
                raw, again = self._read_stable(self._seen[path])
            except (OSError, ExtractionError):
                continue  # the next run finds out
            del raw
            same = again.content_hash == row.content_hash and again.mtime_ns == row.mtime_ns
            if same and again.ctime_ns == row.ctime_ns and again.inode == row.inode:
                self._writer.confirm(path, now)

    def _note_undated(self, row: FileRow) -> None:
        """Remember a file that does not say itself of which day it is."""
        if row.date_source in _GIT_DECIDES:
            self._undated.add(row.path)

    def _date_by_git(self) -> None:
        """Give files that were read the days of their last commits, or take those that are gone."""
        if not self._options.ask_git:
            return
        found = read_git_dates(self._root, self._undated)
        if found.note:
            self.report.notes.append((_OF_THE_RUN, found.note))
        # Without a note, a file that has no day is one that git does not know.
        known = {} if found.note else dict.fromkeys(self._undated, "")
        self._writer.stage_git_dates({**known, **found.days})

    def _tell(self, files_done: int | None) -> None:
        if files_done is not None:
            self._files_done = files_done
        self._progress(
            Progress(
                files_done=self._files_done,
                files_total=len(self._to_read),
                bytes_done=self._bytes_done,
                bytes_total=self._bytes_total,
                chunks=self._chunks,
                embedded=self.report.embedded,
            )
        )


def _told(document: Document) -> tuple[tuple[str, int, str], ...]:
    parts = document.extracted.skipped_parts
    return tuple((part.what, part.count, part.note) for part in parts)


def _unit(vector: NDArray[np.float32], width: int) -> NDArray[np.float32]:
    """The vector, if it is one that can stand beside those of a width; 0 takes any.

    Raises:
        BadEmbedding: it is not of unit length.
        ManifestMismatch: it belongs to a second vector space.
    """
    length = float(vector @ vector)
    if not 0.9 < length < 1.1:
        raise BadEmbedding(f"the model gave a vector of length {length**0.5:g} for it")
    if width and len(vector) != width:
        raise ManifestMismatch(
            f"the model gives vectors of {len(vector)} numbers, the index holds {width}",
            hint="ragx index --no-cache embeds everything anew",
            details={"key": "dimension", "old": width, "new": len(vector)},
        )
    return vector


def _concerns_all(fault: ProviderError) -> bool:
    """Whether no other text would fare better: the model is missing, the key refused, ..."""
    if fault.details.get("scope") == "server":
        return True
    whole = isinstance(fault, ProviderUnavailable | ProviderRefused)
    return whole and not may_concern_one_text(fault)


def _is_whole(row: FileRow | None) -> TypeGuard[FileRow]:
    """Whether a file's stored version has all its vectors."""
    return row is not None and row.n_chunks > 0 and row.status != "unembedded"


def _identity(stat: os.stat_result) -> tuple[int, int, int, int]:
    return stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino

"""What a run would do: the same decisions as `build`, without embedding or writing."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from ragx.algo.chunking.languages import kind_of
from ragx.documents.read import read_regular
from ragx.documents.secrets import secret_reason
from ragx.errors import ExtractionError
from ragx.indexing.build import BuildOptions, check_manifest, make_plan
from ragx.indexing.extract import POLICY, DocumentReader, KeptExtractions
from ragx.indexing.prepare import Preparer, content_hash
from ragx.indexing.scan import ScanResult, scan
from ragx.providers.base import Embedder
from ragx.store.base import FileRow, Reader
from ragx.types import DryRun

__all__ = ["dry_run"]

_PER_WORKER = 0.8
_SAMPLE = "The quick brown fox jumps over the lazy dog, again and again and again. " * 10


def dry_run(
    root: Path,
    reader: Reader | None,
    embedder: Embedder | None,
    options: BuildOptions,
    manifest: Mapping[str, str],
) -> DryRun:
    """Read and cut what a run would read and cut.

    Args:
        reader: the present index; None if there is none yet.
    Raises:
        CorpusError: the tree cannot be scanned.
        ManifestMismatch: the index was built with other settings.
        UsageError: a named file is neither in the corpus nor in the index.
    """
    if reader and not options.full:
        check_manifest(reader.manifest(), manifest)
    rows = reader.files() if reader else {}
    seen = scan(root, options.scan)
    documents = DocumentReader(options.documents, KeptExtractions(reader) if reader else None)
    try:
        return _dry_run(root, reader, embedder, options, rows, seen, documents)
    finally:
        documents.close()


def _dry_run(
    root: Path,
    reader: Reader | None,
    embedder: Embedder | None,
    options: BuildOptions,
    rows: Mapping[str, FileRow],
    seen: ScanResult,
    documents: DocumentReader,
) -> DryRun:
    todo = make_plan(rows, seen, options, documents)
    preparer = Preparer(options.chunking, embedder)
    kinds: Counter[str] = Counter()
    skipped = Counter(item.reason for item in seen.skipped)
    forced = frozenset(todo.paths("force"))
    n_bytes = chunks = 0
    unchanged = 0
    sizes: dict[bytes, int] = {}
    tokens = 0
    for path in todo.paths("keep"):
        status = rows[path].status
        if status.startswith("skipped:"):
            skipped[status.removeprefix("skipped:")] += 1
        else:
            unchanged += 1
    for path in todo.paths("add", "check", "force"):
        try:
            raw, _, _ = read_regular(root / path)
        except FileNotFoundError:
            skipped["vanished"] += 1
            continue
        except ExtractionError as fault:
            skipped[fault.code] += 1
            continue
        except OSError:
            skipped["unreadable"] += 1
            continue
        old = rows.get(path)
        digest = content_hash(raw)
        same = old is not None and old.status == "ok" and old.content_hash == digest
        claim = documents.claim(path, raw)
        if same and old and old.extractor == claim.extractor and path not in forced:
            unchanged += 1
            continue
        if secret_reason(path, raw):
            skipped["secret"] += 1
            continue
        try:
            document = documents.read(path, claim, raw, digest)
            prepared = preparer.prepare(path, raw, document)
        except ExtractionError as fault:
            skipped[POLICY.get(fault.code, fault.code)] += 1
            continue
        kinds[kind_of(prepared.language)] += 1
        n_bytes += len(raw)
        chunks += len(prepared.chunks)
        tokens += prepared.n_tokens
        if embedder is not None:
            for windows in (*prepared.passages, *prepared.parts):
                for passage in windows:
                    sizes.setdefault(passage.key, embedder.count_tokens(passage.text))
    known = reader.known_embeddings(sizes) if reader and not options.no_cache else set()
    return DryRun(
        files=sum(kinds.values()),
        by_kind=dict(sorted(kinds.items())),
        n_bytes=n_bytes,
        chunks=chunks,
        tokens=tokens,
        embeddings=len(sizes) - len(known),
        cached=len(known),
        seconds=_seconds(embedder, sum(n for key, n in sizes.items() if key not in known)),
        to_delete=len(todo.paths("delete")),
        unchanged=unchanged,
        skipped=dict(sorted(skipped.items())),
        decisions=tuple((d.path, d.action, d.reason) for d in todo.decisions),
    )


def _seconds(embedder: Embedder | None, tokens: int) -> float | None:
    """Time to embed so many tokens, from a sample of this machine's speed."""
    if embedder is None or not tokens:
        return 0.0
    if not embedder.in_process:
        return None
    embedder.embed_documents([_SAMPLE])  # loads the model
    started = time.perf_counter()
    embedder.embed_documents([_SAMPLE])
    speed = embedder.count_tokens(_SAMPLE) / (time.perf_counter() - started)
    # The threads share memory and caches, and somebody has to read and cut meanwhile.
    return tokens / (speed * max(1.0, _PER_WORKER * embedder.workers))

"""Is the index what a fresh one would be? Build one beside it and compare."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from ragx.indexing.build import BuildOptions, build, check_manifest
from ragx.providers.base import Embedder
from ragx.store.base import Reader, Writer
from ragx.types import Verification

__all__ = ["verify"]


def verify(
    root: Path,
    reader: Reader,
    fresh: Writer,
    embedder: Embedder | None,
    options: BuildOptions,
    manifest: Mapping[str, str],
) -> Verification:
    """Compare a stored index with one built from scratch out of the same embeddings.

    Args:
        reader: the index in question.
        fresh: a writer of an empty index elsewhere; closed here.
    Returns:
        What differs: nothing, if the index is right and no file has changed since its last run.
    Raises:
        ManifestMismatch: the index was built with other settings.
        RagxError: the tree cannot be indexed.
    """
    with closing(fresh):
        check_manifest(reader.manifest(), manifest)
        fresh.borrow_embeddings(root)
        # What commits say is not compared: it changes while files do not.
        options = replace(options, ask_git=False)
        report = build(root, fresh, embedder, options, manifest, measure=False)
        now = fresh.digests()
    stored = reader.digests()
    differing = sorted(
        path
        for path in stored.files.keys() | now.files.keys()
        if stored.files.get(path) != now.files.get(path)
    )
    return Verification(
        files=report.files_indexed,
        differing=tuple((path, _how(path, stored.files, now.files)) for path in differing),
        vectors_agree=stored.vectors == now.vectors,
        postings_agree=stored.postings == now.postings,
        edges_agree=stored.edges == now.edges,
    )


def _how(path: str, stored: Mapping[str, str], now: Mapping[str, str]) -> str:
    if path not in stored:
        return "not in the index"
    return "differs" if path in now else "no longer in the corpus"

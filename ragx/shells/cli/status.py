"""`ragx status`: what is indexed, and how far it is from the disk. Loads no model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ragx.shells.cli import envelope
from ragx.shells.cli.frame import Command, command_options, open_corpus
from ragx.shells.cli.wording import count, size

if TYPE_CHECKING:
    from ragx.api import Status

__all__ = ["command", "status_document", "status_lines"]


@click.command(
    "status",
    cls=Command,
    short_help="Show what is indexed and what has changed.",
    help="Show what is indexed and what has changed since. Exit code 1: there is no index yet.",
)
@command_options
def command(root: Path | None, as_json: bool) -> int:
    """Look, then show."""
    from ragx.api import Corpus

    status = Corpus.of(open_corpus(root)).status()
    if as_json:
        envelope.emit(status_document(status))
    else:
        envelope.emit_text("\n".join(map(envelope.one_line, status_lines(status))))
    return envelope.EMPTY if status.counts is None else envelope.OK


def status_document(status: Status) -> dict[str, object]:
    """The state of a corpus as `ragx.status.v1`."""
    counts = status.counts
    return {
        "schema": "ragx.status.v1",
        "root": str(status.root),
        "embedding_provider": status.provider,
        "embedding_model": status.model,
        "indexed": counts is not None,
        "files": counts.files if counts else 0,
        "chunks": counts.chunks if counts else 0,
        "edges": counts.edges if counts else 0,
        "communities": status.communities,
        "communities_stale": status.communities_stale,
        "drift": {"new": status.new, "changed": status.changed, "deleted": status.deleted},
        "chunks_without_vector": status.unembedded,
        "settings_differ": status.settings_differ,
        "untrusted": list(status.untrusted),
        "failed": [
            {"file": row.path, "code": row.code, "message": row.note} for row in status.failed
        ],
        "skipped": dict(status.skipped),
        "limits": dict(status.limits),
    }


def status_lines(status: Status) -> list[str]:
    """The same for people; names in it are as the disk has them."""
    counts = status.counts
    model = f"{status.provider}" + (f", {status.model}" if status.model else "")
    lines = [f"corpus   {status.root}", f"model    {model}"]
    if counts is None:
        lines.append("index    none yet: ragx index builds it")
    else:
        lines.append(f"index    {count(counts.files, 'file')}, {count(counts.chunks, 'chunk')}")
        stale = " (of an older graph: found anew when next asked for)"
        lines.append(
            f"graph    {count(counts.edges, 'edge')}, {status.communities} communities"
            + (stale if status.communities_stale else "")
        )
    drift = (status.new, status.changed, status.deleted)
    if any(drift):
        lines.append(
            f"drift    {status.new} new, {status.changed} changed, {status.deleted} deleted:"
            " ragx index brings them in"
        )
    elif counts is not None:
        lines.append("drift    none")
    if status.settings_differ:
        lines.append(f"settings {status.settings_differ}: {status.settings_fix}")
    if status.untrusted:
        lines.append(f"trust    {', '.join(status.untrusted)} do not count yet: ragx trust --list")
    if status.unembedded and status.provider != "none":
        lines.append(f"vectors  {count(status.unembedded, 'chunk')} without one")
    for row in status.failed:
        lines.append(f"failed   {row.path}: {row.note}")
    if status.skipped:
        lines.append("skipped  " + ", ".join(f"{n} {why}" for why, n in status.skipped.items()))
    limits = status.limits
    n_files = limits["max_files"]
    lines.append(
        f"limits   files of at most {size(limits['max_file_bytes'])}"
        f" ({size(limits['max_document_bytes'])} for documents),"
        f" {'any number of files' if not n_files else count(n_files, 'file')},"
        f" chunks of at most {limits['max_chunk_chars']} characters"
    )
    return lines

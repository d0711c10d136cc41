"""`ragx verify`: is the index what a fresh one would be?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ragx.shells.cli import envelope
from ragx.shells.cli.frame import Command, command_options, open_corpus
from ragx.shells.cli.wording import count

if TYPE_CHECKING:
    from ragx.types import Verification

__all__ = ["command"]

_SHOWN = 20


@click.command(
    "verify",
    cls=Command,
    short_help="Compare the index with a fresh one.",
    help="Build a fresh index beside the stored one and compare. Exit code 1: they differ.",
)
@command_options
def command(root: Path | None, as_json: bool) -> int:
    """Compare, then show."""
    from ragx.api import Corpus

    corpus = Corpus.of(open_corpus(root))
    found = corpus.verify()
    if as_json:
        envelope.emit(_document(corpus.root, found))
    else:
        envelope.emit_text("\n".join(map(envelope.one_line, _lines(found))))
    return envelope.OK if found.ok else envelope.EMPTY


def _document(root: Path, found: Verification) -> dict[str, object]:
    return {
        "schema": "ragx.verify.v1",
        "root": str(root),
        "ok": found.ok,
        "files": found.files,
        "differing": [{"file": path, "how": how} for path, how in found.differing],
        "vectors_agree": found.vectors_agree,
        "postings_agree": found.postings_agree,
        "edges_agree": found.edges_agree,
    }


def _lines(found: Verification) -> list[str]:
    if found.ok:
        return [f"the index is what a fresh one would be: {count(found.files, 'file')} compared"]
    lines = [f"the index differs from a fresh one in {count(len(found.differing), 'file')}"]
    lines += [f"  {path}: {how}" for path, how in found.differing[:_SHOWN]]
    if len(found.differing) > _SHOWN:
        lines.append(f"  and {len(found.differing) - _SHOWN} more")
    if not found.vectors_agree:
        lines.append("  the vectors differ")
    if not found.postings_agree:
        lines.append("  the full text differs")
    if not found.edges_agree:
        lines.append("  the graph differs")
    lines.append("if files have changed since the last run: ragx index; else: ragx index --full")
    return lines

"""`ragx eval-draft`: draft queries from the corpus itself, for a person to edit."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ragx.errors import UsageError
from ragx.shells.cli import envelope
from ragx.shells.cli.frame import Command, command_options, open_corpus, working_directory

if TYPE_CHECKING:
    from ragx.api import Draft, DraftedQuery

__all__ = ["command"]

# What could command a terminal, and lone surrogates, which UTF-8 cannot hold.
_ESCAPED = re.compile("[\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


@click.command(
    "eval-draft",
    cls=Command,
    short_help="Draft queries for an evaluation, to be edited.",
    help="Draft queries for ragx eval from headings, docstrings and commits of the corpus; a person"
    " should edit them.",
)
@click.option("-o", "--output", metavar="FILE", help="Write a new file; default: standard output.")
@click.option(
    "--limit", type=click.IntRange(1, 100_000), default=50, show_default=True, help="Most queries."
)
@click.option(
    "--kinds",
    default="headings,docstrings,commits",
    show_default=True,
    metavar="KIND,...",
    help="What to draft from.",
)
@command_options
def command(*, output: str | None, limit: int, kinds: str, root: Path | None, as_json: bool) -> int:
    """Draft, then write."""
    from ragx.api import Corpus, DraftRequest

    target = None if output in (None, "-") else working_directory() / str(output)
    if target is not None:
        _refuse_existing(target)
    corpus = Corpus.of(open_corpus(root))
    named = tuple(kind.strip() for kind in kinds.split(",") if kind.strip())
    found = corpus.draft_queries(DraftRequest(limit=limit, kinds=named))
    if target is not None and found.queries:
        _write_new(target, "".join(f"{_line(query)}\n" for query in found.queries))
    if as_json:
        written = target if found.queries else None
        envelope.emit(_document(found, written))
        return envelope.OK if found.queries else envelope.EMPTY
    for note in found.notes:
        envelope.notice(f"note: {envelope.one_line(note)}")
    if not found.queries:
        envelope.notice("nothing to draft: no text of the corpus reads like a query")
        return envelope.EMPTY
    if target is None:
        envelope.emit_text("\n".join(_line(query) for query in found.queries))
    else:
        envelope.emit_text(_summary(found, str(output)))
    return envelope.OK


def _document(found: Draft, written: Path | None) -> dict[str, object]:
    document: dict[str, object] = {
        "schema": "ragx.eval_draft.v1",
        "count": len(found.queries),
        "by_kind": dict(found.by_kind),
        "notes": list(found.notes),
    }
    if written is not None:
        document["file"] = str(written)
    document["queries"] = [_entry(query) for query in found.queries]
    return document


def _entry(query: DraftedQuery) -> dict[str, object]:
    return {
        "id": query.name,
        "query": query.query,
        "relevant": list(query.relevant),
        "kind": query.kind,
        "from": query.origin,
    }


def _line(query: DraftedQuery) -> str:
    text = json.dumps(_entry(query), ensure_ascii=False)
    return _ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _summary(found: Draft, name: str) -> str:
    kinds = ", ".join(f"{n} from {kind}" for kind, n in found.by_kind.items() if n)
    n = len(found.queries)
    return (
        f"wrote {n} {'query' if n == 1 else 'queries'} to {envelope.one_line(name)} ({kinds});"
        f" edit them, then: ragx eval {envelope.one_line(shlex.quote(name))}"
    )


def _refuse_existing(target: Path) -> None:
    if target.is_symlink() or target.exists():
        raise UsageError(
            f"{target} exists",
            hint="name a new file with -o, or move that one away: it may hold edited queries",
            code="file_exists",
        )


def _write_new(target: Path, text: str) -> None:
    """Write a file that is not there yet; what could be written in part only is taken away."""
    try:
        with target.open("x", encoding="utf-8", newline="\n") as stream:
            try:
                stream.write(text)
                stream.flush()
            except OSError:
                target.unlink(missing_ok=True)
                raise
    except FileExistsError:
        _refuse_existing(target)
        raise
    except OSError as fault:
        raise UsageError(
            f"{target} cannot be written: {fault.strerror or fault}",
            hint="name another file with -o, or none for standard output",
        ) from fault

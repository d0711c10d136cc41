"""`ragx query`: plain words in, files and exact lines out."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ragx.errors import UsageError
from ragx.shells.cli import envelope
from ragx.shells.cli.brief import brief_document, brief_text, copies_document, date_document
from ragx.shells.cli.edges import chain, step_document
from ragx.shells.cli.filters import filter_options
from ragx.shells.cli.frame import Command, command_options, open_corpus
from ragx.shells.cli.overview import show_overview
from ragx.shells.cli.places import bytes_document, lines_document, lines_text
from ragx.shells.cli.shares import Shares

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ragx.api import (
        Answer,
        ChunkResult,
        ContextLines,
        Corpus,
        FileResult,
        Filters,
        QueryRequest,
    )
    from ragx.types import Chunk

__all__ = ["command", "query_document", "question"]

_PREVIEW_LINES = 6
_SOURCES = {"name": "file name", "front_matter": "front matter", "mtime": "file system"}
_WORD = re.compile(r"\w+")
_OWN_OPTION = re.compile(r"-[ABC]\d*")


class _QueryCommand(Command):
    """Takes `-word` for a word to leave out, where click would see a row of short options."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        from ragx.api import is_exclusion

        words = [
            item
            for item in args
            if "--" not in args and is_exclusion(item) and not _OWN_OPTION.fullmatch(item)
        ]
        options = {name for option in self.params for name in option.opts}
        for item in words:
            if f"-{item}" in options:
                raise UsageError(
                    f"{item}: an option, or a word to leave out?",
                    hint=f"the option is -{item}; to leave the word out, write -- {item} last",
                )
        if words:
            args = [*(item for item in args if item not in words), "--", *words]
        return super().parse_args(ctx, args)


@click.command(
    "query",
    cls=_QueryCommand,
    short_help="Find files and exact lines by plain words.",
    help='Find files by plain words. "A phrase" ranks first, -word leaves out, - reads stdin.',
)
@click.argument("text", nargs=-1, required=True)
@click.option("--top", type=click.IntRange(1, 1000), help="Files wanted (query.top).")
@click.option(
    "--mode",
    type=click.Choice(["hybrid", "vector", "lexical"]),
    default="hybrid",
    help="Which side searches; lexical needs no model.",
)
@filter_options
@click.option(
    "--temporal",
    type=click.Choice(["recent", "oldest"]),
    help="Let a file's date count beside what it says (temporal.half_life_days).",
)
@click.option("--no-graph", is_flag=True, help="Only what the searches find by themselves.")
@click.option("--hops", type=click.IntRange(0, 10), help="Steps through the graph at most.")
@click.option("--expand", is_flag=True, help="Search other wordings by a chat model as well.")
@click.option("--rerank", is_flag=True, help="Let a cross-encoder read the best chunks.")
@click.option("--explain", is_flag=True, help="Say why each chunk is there.")
@click.option("--files-only", is_flag=True, help="Paths and scores, no text.")
@click.option("--brief", is_flag=True, help="Each file's place and the few lines that say most.")
@click.option(
    "--budget",
    type=click.IntRange(100, 1_000_000),
    metavar="TOKENS",
    help="Whole passages to cite, in so many tokens at most.",
)
@click.option("--global", "whole", is_flag=True, help="What the corpus is about: its topics.")
@click.option("-B", "--before", type=click.IntRange(0, 1000), help="Lines shown before a chunk.")
@click.option("-A", "--after", type=click.IntRange(0, 1000), help="Lines shown after a chunk.")
@click.option("-C", "--context", type=click.IntRange(0, 1000), help="Both; -B and -A win.")
@command_options
def command(
    *,
    text: tuple[str, ...],
    top: int | None,
    mode: str,
    filters: Filters,
    temporal: str | None,
    no_graph: bool,
    hops: int | None,
    expand: bool,
    rerank: bool,
    explain: bool,
    files_only: bool,
    brief: bool,
    budget: int | None,
    whole: bool,
    before: int | None,
    after: int | None,
    context: int | None,
    root: Path | None,
    as_json: bool,
) -> int:
    """Ask, then show."""
    from ragx.api import Corpus, OverviewRequest, QueryRequest

    around_given = {
        f"-{side}": n is not None for side, n in zip("BAC", (before, after, context), strict=True)
    }
    asked_around = any(around_given.values())
    if brief:
        _refuse_beside(
            "--brief",
            {
                "--explain": explain,
                "--files-only": files_only,
                "--budget": budget is not None,
                **around_given,
            },
        )
    if budget is not None:
        _refuse_beside(
            "--budget", {"--explain": explain, "--files-only": files_only, **around_given}
        )
    if whole:
        others = {
            "--brief": brief,
            "--budget": budget is not None,
            "--explain": explain,
            "--files-only": files_only,
            "--hops": hops is not None,
            "--mode vector": mode == "vector",
            "--no-graph": no_graph,
            "--rerank": rerank,
            "--temporal": temporal is not None,
            **around_given,
        }
        _refuse_beside("--global", others)
    corpus = Corpus.of(open_corpus(root))
    if whole:
        overview = OverviewRequest(
            question(text),
            **({} if top is None else {"top": top}),
            filters=filters,
            vector=mode != "lexical",
            expand=expand,
        )
        return show_overview(corpus, overview, as_json=as_json)
    if explain and files_only:
        envelope.warn("--explain is about chunks: with --files-only it says nothing")
    settings = corpus.config.query
    around = settings.context_lines if context is None else context
    request = QueryRequest(
        text=question(text),
        top=settings.top if top is None else top,
        mode="lexical" if mode == "lexical" else "vector" if mode == "vector" else "hybrid",
        before=around if before is None else before,
        after=around if after is None else after,
        graph=not no_graph,
        hops=hops,
        explain=explain and not files_only,
        texts=not files_only and not brief and budget is None and (as_json or asked_around),
        expand=expand,
        rerank=rerank,
        filters=filters,
        temporal="recent" if temporal == "recent" else "oldest" if temporal == "oldest" else "",
    )
    if budget is not None:
        return _show_evidence(corpus, request, budget, as_json=as_json)
    answer = corpus.search(request, notice=envelope.tell)
    if not as_json:
        for line in answer.warnings:
            envelope.warn(line)
        for wording in answer.variants if explain else ():
            envelope.notice(f"searched as well: {envelope.one_line(wording)}")
    if as_json and brief:
        envelope.emit(brief_document(answer))
    elif as_json and files_only:
        envelope.emit(_files_document(answer))
    elif as_json:
        shares = Shares(settings.max_chunk_chars, context_everywhere=asked_around)
        envelope.emit(query_document(answer, request, shares))
    elif brief and answer.results:
        envelope.emit_text(brief_text(answer))
    elif files_only:
        envelope.emit_text(
            "".join(f"{envelope.one_line(entry.path)}\n" for entry in answer.results)
        )
    elif answer.results:
        shows_context = request.texts
        envelope.emit_text(
            "\n".join(
                _entry(entry, answer, whole=shows_context, explained=explain)
                for entry in answer.results
            )
        )
    else:
        envelope.notice("nothing found")
    return envelope.OK if answer.results else envelope.EMPTY


def question(words: tuple[str, ...]) -> str:
    """The words of a command line as one question; `-` reads it from standard input.

    Raises:
        UsageError: code "not_utf8".
    """
    if words != ("-",):
        return " ".join(words)
    raw = sys.stdin.buffer.read() if sys.stdin is not None else b""
    try:
        return raw.decode("utf-8-sig").strip()
    except UnicodeDecodeError as fault:
        raise UsageError(
            f"standard input is not UTF-8 (byte {fault.start})", code="not_utf8"
        ) from fault


def _refuse_beside(form: str, given: Mapping[str, bool]) -> None:
    wrong = [name for name, is_given in given.items() if is_given]
    if wrong:
        raise UsageError(
            f"{form} has a form of its own and goes without {', '.join(wrong)}",
            hint=f"leave out {' and '.join(wrong)}, or {form}",
        )


def _show_evidence(corpus: Corpus, request: QueryRequest, budget: int, *, as_json: bool) -> int:
    """Passages in place of files; `top` of the request bounds them."""
    from ragx.api import EvidenceRequest
    from ragx.shells.cli.evidence import evidence_document

    pack = corpus.evidence(
        EvidenceRequest(request, budget_tokens=budget, max_passages=request.top),
        notice=envelope.tell,
    )
    if as_json:
        envelope.emit(evidence_document(pack))
    else:
        for line in pack.warnings:
            envelope.warn(line)
        if pack.passages or pack.omitted:
            envelope.emit_text(pack.text)
        else:
            envelope.notice("nothing found")
    return envelope.OK if pack.passages else envelope.EMPTY


def query_document(answer: Answer, request: QueryRequest, shares: Shares) -> dict[str, object]:
    """The answer as `ragx.query.v3`."""
    with_context = bool(request.before or request.after)
    return {
        "schema": "ragx.query.v3",
        "query": answer.query,
        "variants": list(answer.variants),
        "results": [
            {
                "file": entry.path,
                "score": round(entry.score, 6),
                **copies_document(entry),
                **date_document(entry),
                **({} if entry.state == "current" else {"state": entry.state}),
                **({"terms": _rounded(entry.terms)} if request.explain else {}),
                "chunks": [
                    {
                        **_chunk_document(
                            part,
                            shares.text_chars(rank, nth),
                            with_context=with_context and shares.has_context(rank, nth),
                        ),
                        **({"explain": explanation(part, answer)} if request.explain else {}),
                    }
                    for nth, part in enumerate(entry.chunks, start=1)
                ],
            }
            for rank, entry in enumerate(answer.results, start=1)
        ],
        "stages": dict(answer.stages),
        "warnings": list(answer.warnings),
    }


def _files_document(answer: Answer) -> dict[str, object]:
    return {
        "schema": "ragx.files.v1",
        "query": answer.query,
        "variants": list(answer.variants),
        "files": [
            {
                "file": entry.path,
                "score": round(entry.score, 6),
                **copies_document(entry),
                **date_document(entry),
                "chunk_ids": [part.chunk.chunk_id for part in entry.chunks],
            }
            for entry in answer.results
        ],
        "stages": dict(answer.stages),
        "warnings": list(answer.warnings),
    }


def _chunk_document(part: ChunkResult, max_chars: int, *, with_context: bool) -> dict[str, object]:
    from ragx.api import shorten

    chunk, hit = part.chunk, part.hit
    text = shorten(chunk.text, max_chars)
    breakdown = {"vector": 0.0, "lexical": 0.0, **hit.terms, **hit.raw}
    document: dict[str, object] = {
        "chunk_id": chunk.chunk_id,
        "ordinal": chunk.ordinal,
        "locator": None,
        **lines_document(chunk),
        **bytes_document(chunk, chunk.byte_start, chunk.byte_end),
        "heading": list(chunk.heading),
        "score": round(hit.score, 6),
        "breakdown": _rounded(breakdown),
        "text": text,
        "truncated": len(text) < len(chunk.text),
    }
    if with_context:
        document["context"] = {
            "before": _context_document(part.before, chunk),
            "after": _context_document(part.after, chunk),
        }
    return document


def _rounded(terms: Mapping[str, float]) -> dict[str, float]:
    # Adding 0 makes a negative zero a plain one.
    return {name: round(value, 6) + 0.0 for name, value in terms.items()}


def explanation(part: ChunkResult, answer: Answer) -> dict[str, object]:
    """Why a chunk is in the answer: the terms of its score and the way that heat took to it."""
    hops, chunk_id = part.hit.hops, part.chunk.chunk_id
    return {
        "seed": hops[0].source if hops else chunk_id,
        "parent": hops[-1].source if hops else None,
        "edge_weight": round(hops[-1].weight, 6) if hops else None,
        "hop": len(hops),
        "path": [hop.source for hop in hops] + [chunk_id],
        "terms": _rounded(part.hit.terms),
        "steps": [step_document(hop, answer.evidence, answer.places) for hop in hops],
    }


def _context_document(context: ContextLines | None, chunk: Chunk) -> dict[str, object] | None:
    if context is None:
        return None
    return {
        "line_start": context.line_start,
        "line_end": context.line_end,
        **({} if chunk.locator is None else {"source": "extracted"}),
        "text": context.text,
    }


def _entry(entry: FileResult, answer: Answer, *, whole: bool, explained: bool) -> str:
    query = answer.query
    path = envelope.styled(envelope.one_line(entry.path), "cyan")
    lines = [f"{path}  {envelope.styled(f'{entry.score:.3f}', 'dim')}"]
    if entry.date:
        lines[0] += f"  {entry.date} ({_SOURCES.get(entry.date_source, entry.date_source)})"
    if entry.also_in:
        more = ", ".join(map(envelope.one_line, entry.also_in[:5]))
        lines.append(f"  same text in {more}" + (", ..." if len(entry.also_in) > 5 else ""))
    for part in entry.chunks:
        heading = envelope.one_line(" > ".join(part.chunk.heading))
        place = f"  {lines_text(part.chunk)}"
        place += f"  id {part.chunk.chunk_id}" if explained else ""
        lines.append(f"{envelope.styled(place, 'green')}  {heading}".rstrip())
        if explained:
            lines += [f"    {row}" for row in _explained(part, answer)]
        if part.before is not None:
            lines += _shown(part.before.text, "", whole=True)
        lines += _shown(part.chunk.text, query, whole=whole)
        if part.after is not None:
            lines += _shown(part.after.text, "", whole=True)
    return "\n".join(lines) + "\n"


def _explained(part: ChunkResult, answer: Answer) -> list[str]:
    """The sum that gives the score, and the chain of edges that heat came along."""
    terms = [(name, value) for name, value in part.hit.terms.items() if value]
    total = " ".join(
        f"{'-' if value < 0 else '+'} {name} {abs(value):.3f}" for name, value in terms
    )
    rows = [envelope.styled(f"= {total.removeprefix('+ ') or '0'}", "dim")]
    if part.hit.hops:
        rows.append(envelope.styled(chain(part.hit.hops, answer.evidence, answer.places), "dim"))
    return rows


def _shown(text: str, query: str, *, whole: bool) -> list[str]:
    """Lines for the terminal: indented, control characters visible, terms of the query bold."""
    rows = [row for row in re.split(r"\r\n|\r|\n", text) if whole or row.strip()]
    first = 0 if whole else _best_stretch(rows, query)
    shown = rows if whole else rows[first : first + _PREVIEW_LINES]
    out = [f"    {_highlighted(_visible(row, whole=whole), query)}".rstrip() for row in shown]
    if first:
        out.insert(0, "    ...")
    if first + len(shown) < len(rows):
        out.append("    ...")
    return out


def _best_stretch(rows: list[str], query: str) -> int:
    """Where the few lines start that hold most of the query's words, each counted once."""
    from ragx.api import query_terms

    terms = set(query_terms(query))
    found = [terms & {*query_terms(row)} for row in rows]
    starts = range(max(1, len(rows) - _PREVIEW_LINES + 1))
    return max(starts, key=lambda at: (len(set().union(*found[at : at + _PREVIEW_LINES])), -at))


def _visible(row: str, *, whole: bool) -> str:
    from ragx.api import shorten

    row = row.expandtabs(4)
    clean = envelope.harmless(row)
    short = clean if whole else shorten(clean, 160)
    return short if len(short) == len(clean) else short + "..."


def _highlighted(row: str, query: str) -> str:
    if not query or not envelope.is_tty():
        return row
    from ragx.api import query_terms

    terms = set(query_terms(query))
    return _WORD.sub(
        lambda match: (
            envelope.styled(match[0], "bold") if terms & {*query_terms(match[0])} else match[0]
        ),
        row,
    )

"""`ragx ask`: a question in, an answer with checked citations out."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ragx.errors import UsageError
from ragx.shells.cli import envelope
from ragx.shells.cli.filters import filter_options
from ragx.shells.cli.frame import Command, command_options, open_corpus
from ragx.shells.cli.places import lines_document
from ragx.shells.cli.query import question
from ragx.shells.cli.wording import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragx.api import CitationState, Corpus, EvidencePack, Filters, GroundedAnswer

__all__ = ["command"]

_BUDGET = 2400
_PASSAGES = 6
_ANSWER_TOKENS = 2048


@click.command(
    "ask",
    cls=Command,
    short_help="Let a chat model answer from the files, citations checked.",
    help="Let the chat model of [expansion] answer from passages, and check its citations.",
)
@click.argument("text", nargs=-1)
@click.option(
    "--budget",
    type=click.IntRange(100, 1_000_000),
    default=_BUDGET,
    metavar="TOKENS",
    help=f"Tokens of evidence that the model is shown (default {_BUDGET}).",
)
@click.option(
    "--passages",
    type=click.IntRange(1, 1000),
    default=_PASSAGES,
    help=f"Passages at most (default {_PASSAGES}).",
)
@click.option(
    "--answer-tokens",
    type=click.IntRange(1, 100_000),
    default=_ANSWER_TOKENS,
    metavar="TOKENS",
    help=f"Tokens that the model may write, thinking included (default {_ANSWER_TOKENS}).",
)
@click.option(
    "--mode",
    type=click.Choice(["hybrid", "vector", "lexical"]),
    default="hybrid",
    help="Which side searches; lexical needs no embedder.",
)
@filter_options
@click.option(
    "--temporal",
    type=click.Choice(["recent", "oldest"]),
    help="Let a file's date count beside what it says (temporal.half_life_days).",
)
@click.option(
    "--verify",
    "ids",
    multiple=True,
    metavar="ID",
    help="Say whether a cited version is current, replaced or deleted; more may follow.",
)
@command_options
def command(
    *,
    text: tuple[str, ...],
    budget: int,
    passages: int,
    answer_tokens: int,
    mode: str,
    filters: Filters,
    temporal: str | None,
    ids: tuple[str, ...],
    root: Path | None,
    as_json: bool,
) -> int:
    """Ask, or look citations up."""
    from ragx.api import AskRequest, Corpus, EvidenceRequest, QueryRequest

    if ids:
        # `--verify A B C`: what stands behind the first one is an id, too.
        return _verify(Corpus.of(open_corpus(root)), [*ids, *text], as_json=as_json)
    if not text:
        raise UsageError("ragx ask: no question", hint='ragx ask "your question"')
    corpus = Corpus.of(open_corpus(root))
    query = QueryRequest(
        text=question(text),
        mode="lexical" if mode == "lexical" else "vector" if mode == "vector" else "hybrid",
        texts=False,
        filters=filters,
        temporal="recent" if temporal == "recent" else "oldest" if temporal == "oldest" else "",
    )
    request = AskRequest(
        EvidenceRequest(query, budget_tokens=budget, max_passages=passages), answer_tokens
    )
    told = envelope.is_tty(sys.stderr) and not as_json
    live = told and envelope.is_tty()
    # Always as it comes: a slow machine may write for longer than a whole answer may take.
    answer = corpus.ask(
        request,
        notice=envelope.tell,
        on_evidence=_tell_evidence if told else lambda _: None,
        on_text=_show_piece if live else lambda _: None,
    )
    if as_json:
        envelope.emit(answer_document(answer))
    else:
        if live and answer.text:
            envelope.emit_piece("\n")
        for line in answer.warnings:
            envelope.warn(line)
        if answer.status == "missing":
            envelope.notice("the evidence does not answer this")
        envelope.emit_text(("" if live else _marked(answer)) + _cited(answer))
    return envelope.OK if answer.status == "answered" else envelope.EMPTY


def answer_document(answer: GroundedAnswer) -> dict[str, object]:
    """An answer as `ragx.answer.v1`."""
    pack = answer.evidence
    cited = {item.number for item in answer.cited}
    return {
        "schema": "ragx.answer.v1",
        "query": pack.query,
        "status": answer.status,
        "answer": answer.text,
        "flags": list(answer.flags),
        "citations": [
            {
                "citation": item.number,
                "id": item.id,
                "file": item.path,
                **lines_document(item),
                "heading": list(item.heading),
                "source_version": item.version,
                "verified": True,
            }
            for item in answer.cited
        ],
        "unverified": list(answer.unverified),
        "misquoted": list(answer.misquoted),
        "evidence": {
            "tokens": pack.tokens,
            "budget_tokens": pack.budget_tokens,
            "tokenizer": pack.tokenizer,
            "passages": [
                {
                    "citation": item.number,
                    "id": item.id,
                    "cited": item.number in cited,
                    "score": round(item.score, 6),
                    "tokens": item.tokens,
                    "flags": list(item.flags),
                }
                for item in pack.passages
            ],
            "omitted": len(pack.omitted) + pack.omitted_more,
        },
        "model": answer.model,
        "stages": dict(answer.stages),
        "warnings": list(answer.warnings),
    }


def _tell_evidence(pack: EvidencePack) -> None:
    if pack.passages:
        found = count(len(pack.passages), "passage")
        envelope.tell(f"{found}, {pack.tokens} tokens; asking the model ...")


def _show_piece(text: str) -> None:
    envelope.emit_piece(envelope.harmless(text))


def _marked(answer: GroundedAnswer) -> str:
    """The answer, with marks on numbers that are nobody's."""
    text = envelope.harmless(answer.text)
    for number in answer.unverified:
        text = re.sub(rf"\[\s*{number}\s*\]", f"[{number}: not in the evidence]", text)
    return f"{text}\n" if text else ""


def _cited(answer: GroundedAnswer) -> str:
    """Where the passages stand that the answer cites."""
    lines = [""] if answer.cited else []
    for item in answer.cited:
        place = envelope.styled(envelope.one_line(item.id), "cyan")
        heading = envelope.one_line(" > ".join(item.heading))
        lines.append(f"[{item.number}] {place}  {heading}".rstrip())
    return "".join(f"{line}\n" for line in lines)


def _verify(corpus: Corpus, ids: Sequence[str], *, as_json: bool) -> int:
    states = corpus.check_citations(list(dict.fromkeys(ids)))
    if as_json:
        envelope.emit(
            {
                "schema": "ragx.citations.v1",
                "ok": all(state.holds for state in states),
                "citations": [_state_document(state) for state in states],
            }
        )
    else:
        envelope.emit_text("".join(f"{_state_line(state)}\n" for state in states))
    return envelope.OK if all(state.holds for state in states) else envelope.EMPTY


def _state_document(state: CitationState) -> dict[str, object]:
    place = state.place
    return {
        "id": place.id,
        "file": place.path,
        "line_start": place.line_start,
        "line_end": place.line_end,
        "state": state.disk,
        "index": state.index,
        "lines_exist": state.lines_exist,
        **({"text": state.text} if state.text else {}),
    }


def _state_line(state: CitationState) -> str:
    style = {"current": "green", "replaced": "yellow", "deleted": "red"}[state.disk]
    line = f"{envelope.styled(f'{state.disk:8}', style)}  {envelope.one_line(state.place.id)}"
    line += "" if state.index == state.disk else f"  (index: {state.index})"
    return line if state.lines_exist else f"{line}  (it has no such lines)"

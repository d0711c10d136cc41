"""`ragx query --global`: what the corpus is about, topic by topic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragx.shells.cli import envelope
from ragx.shells.cli.places import lines_document, lines_text
from ragx.shells.cli.wording import count

if TYPE_CHECKING:
    from ragx.api import Corpus, Overview, OverviewRequest, Topic
    from ragx.types import Chunk

__all__ = ["overview_document", "overview_text", "show_overview"]

_FILES_NAMED = 3
_LABEL_SYMBOLS = 4


def show_overview(corpus: Corpus, request: OverviewRequest, *, as_json: bool) -> int:
    """Ask, then show; the exit code."""
    overview = corpus.overview(request, notice=envelope.tell)
    if as_json:
        envelope.emit(overview_document(overview))
    else:
        for line in overview.warnings:
            envelope.warn(line)
        if overview.topics:
            envelope.emit_text(overview_text(overview))
        else:
            envelope.notice("nothing found")
    return envelope.OK if overview.topics else envelope.EMPTY


def overview_document(overview: Overview) -> dict[str, object]:
    """The answer as `ragx.overview.v1`; keys that would hold nothing are left out."""
    lead = overview.lead
    return {
        "schema": "ragx.overview.v1",
        "query": overview.query,
        "about": "corpus" if overview.whole else "question",
        "grouped_by": overview.grouped_by,
        "files": overview.n_files,
        "chunks": overview.n_chunks,
        "topics_total": overview.n_topics,
        **({"lead": {**_place(lead.chunk), "text": lead.text}} if lead is not None else {}),
        "topics": [_topic_document(topic) for topic in overview.topics],
        "stages": dict(overview.stages),
        "warnings": list(overview.warnings),
    }


def _topic_document(topic: Topic) -> dict[str, object]:
    return {
        **({"community_id": topic.number} if topic.number is not None else {}),
        "label": topic.label,
        "score": round(topic.score, 6),
        "size": topic.n_chunks,
        "files_total": topic.n_files,
        "files": list(topic.files),
        "summary": topic.summary,
        "summary_by": topic.by,
        **({"symbols": list(topic.symbols)} if topic.symbols else {}),
        "chunks": [_place(chunk) for chunk in topic.chunks],
    }


def _place(chunk: Chunk) -> dict[str, object]:
    return {
        "chunk_id": chunk.chunk_id,
        "file": chunk.path,
        **lines_document(chunk),
        **({"heading": " > ".join(chunk.heading)} if chunk.heading else {}),
    }


def overview_text(overview: Overview) -> str:
    """What a document that introduces says first, then a block for each topic."""
    rows = [
        f"{count(overview.n_files, 'file')}, {count(overview.n_chunks, 'chunk')},"
        f" {count(overview.n_topics, 'topic')}"
        + (f"; the first {len(overview.topics)}" * (len(overview.topics) < overview.n_topics))
    ]
    if overview.lead is not None:
        rows += ["", envelope.one_line(overview.lead.text), f"  {_where(overview.lead.chunk)}"]
    for rank, topic in enumerate(overview.topics, start=1):
        label = envelope.styled(envelope.one_line(topic.label), "bold")
        size = f"{count(topic.n_chunks, 'chunk')}, {count(topic.n_files, 'file')}"
        rows += ["", f"{rank}. {label}  ({size})"]
        if topic.summary:
            rows.append(f"   {envelope.one_line(topic.summary)}")
        if topic.symbols:
            names = ", ".join(topic.symbols[:_LABEL_SYMBOLS])
            rows.append(f"   defines {envelope.one_line(names)}")
        if not topic.summary:
            named = topic.files[:_FILES_NAMED]
            rows.append(f"   in {', '.join(map(envelope.one_line, named))}")
        rows += [f"   {_where(chunk)}" for chunk in topic.chunks]
    return "\n".join(rows)


def _where(chunk: Chunk) -> str:
    path = envelope.styled(envelope.one_line(chunk.path), "cyan")
    lines = envelope.styled(lines_text(chunk), "green")
    heading = envelope.one_line(" > ".join(chunk.heading[-1:]))
    return f"{path}:{lines}  {heading}".rstrip()

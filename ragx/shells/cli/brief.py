"""`ragx query --brief`: what an agent needs to choose a file, in few tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragx.shells.cli import envelope
from ragx.shells.cli.places import label_of, lines_text

if TYPE_CHECKING:
    from ragx.api import Answer, FileResult
    from ragx.types import Chunk

__all__ = ["brief_document", "brief_text", "copies_document", "date_document"]

# (ranks up to, characters shown): better files say more (research/tokens.md).
_ALLOWANCE = ((3, 320), (10, 80))
_ALLOWANCE_BELOW = 48
_COPIES_NAMED = 3
_COPIES_LISTED = 20


def copies_document(entry: FileResult) -> dict[str, object]:
    """Files whose text was folded into an entry: the first by name, and how many more."""
    more = len(entry.also_in) - _COPIES_LISTED
    return {
        "also_in": list(entry.also_in[:_COPIES_LISTED]),
        **({"also_in_more": more} if more > 0 else {}),
    }


def date_document(entry: FileResult) -> dict[str, object]:
    """A file's date and where it comes from, for a question about time."""
    return {"date": entry.date, "date_source": entry.date_source} if entry.date else {}


def brief_document(answer: Answer) -> dict[str, object]:
    """The answer as `ragx.brief.v1`; keys that would hold nothing are left out."""
    return {
        "schema": "ragx.brief.v1",
        "query": answer.query,
        "files": [
            _entry(entry, answer.query, rank) for rank, entry in enumerate(answer.results, start=1)
        ],
        **({"warnings": list(answer.warnings)} if answer.warnings else {}),
    }


def _entry(entry: FileResult, query: str, rank: int) -> dict[str, object]:
    best, *further = (part.chunk for part in entry.chunks)
    return {
        "file": entry.path,
        "lines": _lines(best),
        **({"place": label} if (label := label_of(best)) else {}),
        **({"heading": _heading(best)} if best.heading else {}),
        "text": "\n".join(_shown(best, query, rank)),
        **({"more": [_lines(chunk) for chunk in further]} if further else {}),
        **(copies_document(entry) if entry.also_in else {}),
        **({"date": entry.date} if entry.date else {}),
    }


def brief_text(answer: Answer) -> str:
    """A block for each file: where, under which heading, and the lines that say most."""
    rows = []
    for rank, entry in enumerate(answer.results, start=1):
        best, *further = (part.chunk for part in entry.chunks)
        path = envelope.styled(envelope.one_line(entry.path), "cyan")
        lines = envelope.styled(lines_text(best), "green")
        head = f"{path}:{lines}"
        if entry.date:
            head += f"  {entry.date}"
        if best.heading:
            head += f"  {envelope.one_line(_heading(best))}"
        if further:
            head += f"  also {', '.join(map(lines_text, further))}"
        rows.append(head)
        if entry.also_in:
            named = ", ".join(map(envelope.one_line, entry.also_in[:_COPIES_NAMED]))
            rows.append(f"  same text in {named}" + ", ..." * (len(entry.also_in) > _COPIES_NAMED))
        rows += [
            f"    {envelope.one_line(row.expandtabs(4))}"
            for row in _shown(best, answer.query, rank)
        ]
    return "".join(f"{row}\n" for row in rows)


def _lines(chunk: Chunk) -> str:
    return f"{chunk.line_start}-{chunk.line_end}"


def _shown(chunk: Chunk, query: str, rank: int) -> list[str]:
    from ragx.api import excerpt

    allowed = next((chars for last, chars in _ALLOWANCE if rank <= last), _ALLOWANCE_BELOW)
    return excerpt(chunk.text, query, known=_heading(chunk), max_chars=allowed)


def _heading(chunk: Chunk) -> str:
    return " > ".join(chunk.heading)

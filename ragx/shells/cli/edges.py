"""Edges as people and programs see them: what joins two chunks, and the words that say so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ragx.shells.cli import envelope
from ragx.shells.cli.places import lines_document, place

if TYPE_CHECKING:
    from ragx.api import Evidence
    from ragx.types import Chunk, Hop

__all__ = ["chain", "evidence_document", "says", "step_document", "words_of"]

_QUOTE_CHARS = 60
# As one end says it, and as the other hears it.
_SPOKEN = {
    "link": ("links to", "is linked from"),
    "mention": ("mentions", "is mentioned in"),
    "import": ("imports", "is imported by"),
    "symbol": ("uses", "is used in"),
    "adjacent": ("stands beside", "stands beside"),
    "similar": ("resembles", "resembles"),
}


def words_of(edge: Evidence, source: int) -> str:
    """The edge as the chunk at its beginning would say it: `mentions "New York"`."""
    says, hears = _SPOKEN[edge.kind]
    verb = says if edge.source == source else hears
    if not edge.text:
        return verb
    from ragx.api import shorten

    quoted = " ".join(edge.text.split())
    short = shorten(quoted, _QUOTE_CHARS)
    text = envelope.one_line(short) + ("..." if len(short) < len(quoted) else "")
    if edge.source == source:
        return f'{verb} "{text}"'
    before, _, after = verb.partition(" in")
    return f'{before} as "{text}" in{after}' if edge.kind in ("mention", "symbol") else verb


def chain(
    hops: Sequence[Hop],
    evidence: Mapping[tuple[int, int], Sequence[Evidence]],
    places: Mapping[int, Chunk],
) -> str:
    """`seed -> mentions "..." -> chunk`, hop by hop."""
    parts = [place(places[hops[0].source])]
    for hop in hops:
        parts += [says(hop, evidence), place(places[hop.target])]
    return " -> ".join(parts)


def says(hop: Hop, evidence: Mapping[tuple[int, int], Sequence[Evidence]]) -> str:
    """The edge of a hop as the chunk at its beginning would say it."""
    edge = _edge_of(hop, evidence)
    return words_of(edge, hop.source) if edge else hop.kind


def _edge_of(hop: Hop, evidence: Mapping[tuple[int, int], Sequence[Evidence]]) -> Evidence | None:
    edges = evidence.get((hop.source, hop.target), ())
    return next((edge for edge in edges if edge.kind == hop.kind), None)


def step_document(
    hop: Hop,
    evidence: Mapping[tuple[int, int], Sequence[Evidence]],
    places: Mapping[int, Chunk],
) -> dict[str, object]:
    """One hop as JSON; `evidence` is null where no text stands behind it."""
    edge = _edge_of(hop, evidence)
    target = places[hop.target]
    return {
        "source": hop.source,
        "target": hop.target,
        "kind": hop.kind,
        "weight": round(hop.weight, 6),
        "file": target.path,
        **lines_document(target),
        "evidence": evidence_document(edge, places) if edge else None,
    }


def evidence_document(edge: Evidence, places: Mapping[int, Chunk]) -> dict[str, object] | None:
    """Where a chunk names the other, and with which words."""
    if not edge.text:
        return None
    chunk = places[edge.source]
    before = chunk.text[: edge.start]
    breaks = before.count("\n") + before.count("\r") - before.count("\r\n")
    return {
        "chunk_id": edge.source,
        "file": chunk.path,
        "line": chunk.line_start + breaks if chunk.locator is None else None,
        "text": edge.text,
    }

"""`ragx inspect`: a read-only look into the index. Loads no model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ragx.shells.cli import envelope
from ragx.shells.cli.edges import evidence_document, says, step_document, words_of
from ragx.shells.cli.frame import Group, command_options, open_corpus, working_directory
from ragx.shells.cli.places import bytes_document, lines_document, lines_text, place
from ragx.shells.cli.wording import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragx.api import Community, Neighbour, Way
    from ragx.types import Chunk

__all__ = ["command", "community_document", "edge_document", "path_document"]

_PREVIEW_CHARS = 80


@click.group(
    "inspect",
    cls=Group,
    short_help="Look into the index: chunks, files, edges, communities.",
    help="Look into the index: a chunk, a file, their edges, communities, the way between two.",
)
@command_options
def command(root: Path | None, as_json: bool) -> None:
    """Group the commands, which take the options from here too."""


@command.command("chunk", help="Show the chunk with this ID, as query and inspect file print it.")
@click.argument("chunk_id", metavar="ID", type=int)
@command_options
def chunk(chunk_id: int, root: Path | None, as_json: bool) -> int:
    """Show one chunk."""
    from ragx.api import Corpus

    view = Corpus.of(open_corpus(root)).chunk(chunk_id)
    found = view.chunk
    if as_json:
        envelope.emit(
            {
                "schema": "ragx.inspect.chunk.v1",
                "id": found.chunk_id,
                "file": found.path,
                "ordinal": found.ordinal,
                **bytes_document(found, found.byte_start, found.byte_end),
                **lines_document(found),
                "heading": list(found.heading),
                "symbols": list(found.symbols),
                "text": found.text,
                "edges": [edge_document(edge, found) for edge in view.neighbours],
            }
        )
    else:
        head = f"{place(found)}  {_crumb(found)}".rstrip()
        envelope.emit_text(f"{head}\n\n{envelope.harmless(found.text)}")
        if view.neighbours:
            envelope.notice(
                f"{count(len(view.neighbours), 'edge')}: ragx inspect neighbors {found.chunk_id}"
            )
    return envelope.OK


@command.command("neighbors", help="Show the edges of the chunk with this ID, strongest first.")
@click.argument("chunk_id", metavar="ID", type=int)
@command_options
def neighbors(chunk_id: int, root: Path | None, as_json: bool) -> int:
    """Show what one chunk is joined to."""
    from ragx.api import Corpus

    view = Corpus.of(open_corpus(root)).chunk(chunk_id)
    if as_json:
        envelope.emit(
            {
                "schema": "ragx.inspect.neighbors.v1",
                "id": view.chunk.chunk_id,
                "neighbors": [edge_document(edge, view.chunk) for edge in view.neighbours],
            }
        )
    else:
        lines = [place(view.chunk)]
        lines += [
            f"  {near.edge.weight:.3f}  {near.edge.kind:8}  {near.chunk.chunk_id:>16} "
            f" {words_of(near.edge, chunk_id)} -> {place(near.chunk)}"
            for near in view.neighbours
        ]
        envelope.emit_text("\n".join(lines))
    return envelope.OK if view.neighbours else envelope.EMPTY


def _crumb(chunk: Chunk) -> str:
    return envelope.one_line(" > ".join(chunk.heading))


def edge_document(near: Neighbour, chunk: Chunk) -> dict[str, object]:
    """An edge as JSON, seen from `chunk`."""
    ends = {chunk.chunk_id: chunk, near.chunk.chunk_id: near.chunk}
    return {
        "id": near.chunk.chunk_id,
        "weight": round(near.edge.weight, 6),
        "file": near.chunk.path,
        **lines_document(near.chunk),
        "kind": near.edge.kind,
        "evidence": evidence_document(near.edge, ends),
    }


@command.command("communities", help="List groups of related chunks, the largest first.")
@click.option("--all", "with_single", is_flag=True, help="Also those of a single chunk.")
@command_options
def communities(with_single: bool, root: Path | None, as_json: bool) -> int:
    """List the communities."""
    from ragx.api import Corpus

    found = Corpus.of(open_corpus(root)).communities(summaries=True)
    if as_json:
        envelope.emit(
            {
                "schema": "ragx.inspect.communities.v1",
                "count": len(found),
                "communities": [
                    {
                        "community_id": group.number,
                        "size": len(group.chunk_ids),
                        "label": group.label,
                        "summary": group.summary,
                        "files": list(group.files),
                    }
                    for group in found
                ],
            }
        )
        return envelope.OK if found else envelope.EMPTY
    shown = [group for group in found if with_single or len(group.chunk_ids) > 1]
    lines = []
    for group in shown:
        size = f"{count(len(group.chunk_ids), 'chunk'):>11}  {count(len(group.files), 'file'):>9}"
        lines.append(f"{group.number:>5}  {size}  {envelope.one_line(group.label)}")
        if group.summary:
            lines.append(f"       {envelope.one_line(group.summary)}")
    if len(shown) < len(found):
        lines.append(f"and {len(found) - len(shown)} of a single chunk (--all lists them)")
    envelope.emit_text("\n".join(lines) if lines else "no communities: the index is empty")
    return envelope.OK if found else envelope.EMPTY


@command.command("community", help="Show the community with this number and its chunks.")
@click.argument("number", metavar="ID", type=int)
@command_options
def community(number: int, root: Path | None, as_json: bool) -> int:
    """Show one community."""
    from ragx.api import Corpus

    group, chunks = Corpus.of(open_corpus(root)).community(number)
    if as_json:
        envelope.emit(community_document(group, chunks))
        return envelope.OK
    head = f"{envelope.one_line(group.label)}: {count(len(chunks), 'chunk')}"
    lines = [f"{part.chunk_id:>16}  {place(part)}  {_crumb(part)}".rstrip() for part in chunks]
    about = [envelope.one_line(group.summary), ""] if group.summary else []
    envelope.emit_text("\n".join([head, *about, *lines]))
    return envelope.OK


def community_document(group: Community, chunks: Sequence[Chunk]) -> dict[str, object]:
    """`ragx.inspect.community.v1`."""
    return {
        "schema": "ragx.inspect.community.v1",
        "community_id": group.number,
        "size": len(chunks),
        "label": group.label,
        "summary": group.summary,
        "members": [
            {"id": part.chunk_id, "file": part.path, **lines_document(part)} for part in chunks
        ],
    }


@command.command("path", help="Show the strongest way from A to B, each a chunk's ID or a file.")
@click.argument("one", metavar="A")
@click.argument("other", metavar="B")
@command_options
def path(one: str, other: str, root: Path | None, as_json: bool) -> int:
    """Show how two places hang together."""
    from ragx.api import Corpus

    way = Corpus.of(open_corpus(root)).path(one, other, working_directory())
    joined = bool(way.hops) or way.strength > 0
    if as_json:
        envelope.emit(path_document(one, other, way))
        return envelope.OK if joined else envelope.EMPTY
    if way.hops:
        lines = [place(way.places[way.hops[0].source])]
        lines += [
            f"  {hop.weight:.3f}  {says(hop, way.evidence)} -> {place(way.places[hop.target])}"
            for hop in way.hops
        ]
        shown = f"{way.strength:.3f}" if way.strength >= 0.001 else f"{way.strength:.1e}"
        envelope.emit_text("\n".join([*lines, f"strength {shown}"]))
    elif joined:
        envelope.emit_text(f"both are {place(next(iter(way.places.values())))}")
    else:
        envelope.notice("no way leads from one to the other")
    return envelope.OK if joined else envelope.EMPTY


def path_document(one: str, other: str, way: Way) -> dict[str, object]:
    """`ragx.inspect.path.v1`."""
    first = way.hops[0].source if way.hops else next(iter(way.places), None)
    return {
        "schema": "ragx.inspect.path.v1",
        "from": one,
        "to": other,
        # Digits that count, not places: twenty steps are little, but not nothing.
        "strength": float(f"{way.strength:.6g}"),
        "path": [] if first is None else [first, *(hop.target for hop in way.hops)],
        "steps": [step_document(hop, way.evidence, way.places) for hop in way.hops],
    }


@command.command("file", help="Show an indexed FILE and its chunks.")
@click.argument("file")
@click.option("--text", "with_text", is_flag=True, help="Print the text that was indexed.")
@command_options
def file(file: str, with_text: bool, root: Path | None, as_json: bool) -> int:
    """Show one file."""
    from ragx.api import Corpus, shorten

    view = Corpus.of(open_corpus(root)).file(file, working_directory())
    row = view.row
    if as_json:
        document: dict[str, object] = {
            "schema": "ragx.inspect.file.v1",
            "path": row.path,
            "content_hash": row.content_hash,
            "encoding": row.encoding,
            "language": row.language,
            "title": row.title,
            "status": row.status,
            "note": row.note,
            "extractor": row.extractor or None,
            "skipped_parts": [
                {"what": what, "count": n or None, "note": note}
                for what, n, note in row.skipped_parts
            ],
            "chunk_count": len(view.chunks),
            "chunks": [
                {
                    "id": part.chunk_id,
                    **lines_document(part),
                    **bytes_document(part, part.byte_start, part.byte_end),
                    "preview": shorten(" ".join(part.text.split()), _PREVIEW_CHARS),
                    **({"text": part.text} if with_text else {}),
                }
                for part in view.chunks
            ],
        }
        envelope.emit(document)
        return envelope.OK
    if with_text:
        envelope.emit_text(envelope.harmless(view.text))
        return envelope.OK
    facts = (
        row.status,
        row.encoding or "no encoding",
        row.language or "no language",
        count(len(view.chunks), "chunk"),
    )
    lines = [f"{row.path}: {', '.join(facts)}"]
    if row.note:
        lines.append(f"note: {row.note}")
    for part in view.chunks:
        preview = json.dumps(
            shorten(" ".join(part.text.split()), _PREVIEW_CHARS), ensure_ascii=False
        )
        lines.append(f"{part.chunk_id:>16}  {lines_text(part)}  {preview}")
    envelope.emit_text("\n".join(map(envelope.one_line, lines)))
    return envelope.OK

"""`ragx inspect`: a read-only look into the index. Loads no model."""

from __future__ import annotations

import json
from pathlib import Path

import click

from ragx.shells.cli import envelope
from ragx.shells.cli.frame import Group, command_options, open_corpus, working_directory
from ragx.shells.cli.wording import count

__all__ = ["command"]

_PREVIEW_CHARS = 80


@click.group(
    "inspect",
    cls=Group,
    short_help="Look into the index: chunks and files.",
    help="Look into the index: one chunk, or a file and its chunks.",
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

    found = Corpus.of(open_corpus(root)).chunk(chunk_id)
    if as_json:
        envelope.emit(
            {
                "schema": "ragx.inspect.chunk.v1",
                "id": found.chunk_id,
                "file": found.path,
                "ordinal": found.ordinal,
                "byte_start": found.byte_start,
                "byte_end": found.byte_end,
                "line_start": found.line_start,
                "line_end": found.line_end,
                "heading": list(found.heading),
                "symbols": list(found.symbols),
                "text": found.text,
                "edges": [],
            }
        )
    else:
        place = f"{envelope.one_line(found.path)}:{found.line_start}-{found.line_end}"
        heading = envelope.one_line(" > ".join(found.heading))
        envelope.emit_text(f"{place}  {heading}".rstrip() + f"\n\n{envelope.harmless(found.text)}")
    return envelope.OK


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
            "chunk_count": len(view.chunks),
            "chunks": [
                {
                    "id": part.chunk_id,
                    "line_start": part.line_start,
                    "line_end": part.line_end,
                    "byte_start": part.byte_start,
                    "byte_end": part.byte_end,
                    "preview": shorten(" ".join(part.text.split()), _PREVIEW_CHARS),
                    **({"text": part.text} if with_text else {}),
                }
                for part in view.chunks
            ],
        }
        envelope.emit(document)
        return envelope.OK
    if with_text:
        envelope.emit_text("\n".join(envelope.harmless(part.text) for part in view.chunks))
        return envelope.OK
    facts = (
        row.status,
        row.encoding or "no encoding",
        row.language or "no language",
        count(len(view.chunks), "chunk"),
    )
    lines = [f"{envelope.one_line(row.path)}: {', '.join(facts)}"]
    if row.note:
        lines.append(f"note: {envelope.one_line(row.note)}")
    for part in view.chunks:
        preview = json.dumps(
            shorten(" ".join(part.text.split()), _PREVIEW_CHARS), ensure_ascii=False
        )
        lines.append(f"{part.chunk_id:>16}  {part.line_start}-{part.line_end}  {preview}")
    envelope.emit_text("\n".join(lines))
    return envelope.OK

"""`ragx agents`: what coding agents should be told, and how their clients start `ragx mcp`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ragx.shells.cli import envelope
from ragx.shells.cli.frame import Command, command_options, find_corpus

if TYPE_CHECKING:
    from ragx.api.agents import Client, WrittenBlock

__all__ = ["command"]


@click.command(
    "agents",
    cls=Command,
    short_help="Print or write set-up for coding agents.",
    help="Print the text for AGENTS.md or CLAUDE.md and the MCP settings of Claude Desktop, Claude"
    " Code and Cursor.",
)
@click.option(
    "--write", is_flag=True, help="Put the text into AGENTS.md, or CLAUDE.md if only that exists."
)
@command_options
def command(write: bool, root: Path | None, as_json: bool) -> int:
    """Write if asked to, then show."""
    from ragx.api.agents import BLOCK, clients, write_block

    corpus = find_corpus(root)
    written = write_block(corpus) if write else None
    known = clients(corpus)
    if as_json:
        envelope.emit(_document(BLOCK, known, written))
        return envelope.OK
    if written is not None:
        what = {
            "created": "written, with this text",
            "added": "the text is added at the end",
            "updated": "the text is brought up to date",
            "unchanged": "the text is there already",
        }[written.action]
        envelope.tell(f"{corpus / written.file}: {what}")
    envelope.emit_text(_text(BLOCK, known, written))
    return envelope.OK


def _settings(client: Client) -> dict[str, object]:
    """The part of a client's settings file that is about ragx."""
    return {"mcpServers": {"ragx": {"command": client.command, "args": list(client.args)}}}


def _document(
    block: str, known: tuple[Client, ...], written: WrittenBlock | None
) -> dict[str, object]:
    return {
        "schema": "ragx.agents.v1",
        "block": block,
        "file": written.file if written else None,
        "action": written.action if written else "none",
        "clients": [
            {
                "name": client.name,
                "file": client.file,
                "command": client.shell or None,
                "settings": _settings(client),
            }
            for client in known
        ],
    }


def _text(block: str, known: tuple[Client, ...], written: WrittenBlock | None) -> str:
    rows = []
    if written is None:
        rows += ["For AGENTS.md or CLAUDE.md (ragx agents --write puts it there):", "", block]
    rows += ["To reach ragx as a tool (MCP), by client; needs pip install '.[mcp]':", ""]
    for client in known:
        rows.append(f"{client.name}: {client.file}")
        if client.shell:
            rows.append(f"  or run: {client.shell}")
        settings = json.dumps(_settings(client), ensure_ascii=False, indent=2)
        rows += [f"    {envelope.one_line(row)}" for row in settings.split("\n")]
        rows.append("")
    return "\n".join(rows[:-1])

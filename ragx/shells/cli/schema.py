"""`ragx schema`: the shapes of all documents, for programs that read them."""

from __future__ import annotations

from pathlib import Path

import click

from ragx import contracts
from ragx.shells.cli import envelope
from ragx.shells.cli.frame import Command, command_options

__all__ = ["command"]


@click.command(
    "schema",
    cls=Command,
    short_help="Print the JSON Schema of a document.",
    help="Print the JSON Schema of document NAME (such as ragx.error.v1); without NAME, all names.",
)
@click.argument("name", required=False)
@command_options
def command(name: str | None, root: Path | None, as_json: bool) -> int:
    """Print one schema, which is a JSON document with and without `--json`, or the names."""
    if name is not None:
        envelope.emit_text(contracts.text(name))
    elif as_json:
        envelope.emit({"schema": "ragx.schemas.v1", "names": contracts.names()})
    else:
        envelope.emit_text("\n".join(contracts.names()))
    return envelope.OK

"""`ragx mcp`: the corpus as tools for agents."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import click

from ragx.errors import UsageError
from ragx.shells.cli import envelope
from ragx.shells.cli.frame import Command, command_options

__all__ = ["command"]


@click.command(
    "mcp",
    cls=Command,
    short_help="Serve the corpus to agents by the Model Context Protocol.",
    help="Serve search, read, neighbors and status to agents by the Model Context Protocol: to one"
    " over standard input and output, or with --http to many.",
)
@click.option("--http", is_flag=True, help="Serve many clients over HTTP, at /mcp.")
@click.option("--host", metavar="HOST", help="Address to listen on with --http (127.0.0.1).")
@click.option(
    "--port", type=click.IntRange(0, 65535), help="Port with --http (8766; 0: one that is free)."
)
@click.option(
    "--token-env", metavar="NAME", help="Variable that holds the token clients must show."
)
@command_options
def command(
    *,
    http: bool,
    host: str | None,
    port: int | None,
    token_env: str | None,
    root: Path | None,
    as_json: bool,
) -> int:
    """Serve until the client leaves or the user interrupts."""
    from ragx.shells.mcp.server import require_sdk
    from ragx.shells.mcp.tools import Toolbox

    if not http:
        stray = [
            name
            for name, value in (("--host", host), ("--port", port), ("--token-env", token_env))
            if value is not None
        ]
        if stray:
            raise UsageError(f"{', '.join(stray)}: only with --http", hint="ragx mcp --http")
    require_sdk()
    box = Toolbox(root)
    if http:
        from ragx.shells.guard import HttpOptions
        from ragx.shells.mcp.http import DEFAULT_PORT, serve_http

        options = HttpOptions.checked(
            host or "127.0.0.1", DEFAULT_PORT if port is None else port, token_env, os.environ
        )
        serve_http(box, options)
        return envelope.OK
    from ragx.shells.mcp.stdio import serve_stdio

    serve_stdio(box)
    if box.busy and threading.current_thread() is threading.main_thread():
        # A call still at work is for nobody, and a thread cannot be ended.
        os._exit(envelope.OK)
    return envelope.OK

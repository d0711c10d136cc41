"""`ragx web`: the corpus to look at, in a browser."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import click

from ragx.shells.cli import envelope
from ragx.shells.cli.frame import Command, command_options, find_corpus

if TYPE_CHECKING:
    from ragx.shells.guard import HttpOptions
    from ragx.shells.web.service import Service

__all__ = ["command"]


@click.command(
    "web",
    cls=Command,
    short_help="Look at the graph and ask, in a browser.",
    help="Serve a page on this machine: a map of the corpus, questions, and the path to each"
    " answer. Ctrl-C ends it.",
)
@click.option(
    "--host", metavar="HOST", default="127.0.0.1", help="Address to listen on (127.0.0.1)."
)
@click.option(
    "--port", type=click.IntRange(0, 65535), help="Port to listen on (8765; 0: one that is free)."
)
@click.option("--open/--no-open", "opens", default=True, help="Whether to open a browser.")
@click.option(
    "--token-env", metavar="NAME", help="Variable that holds the token browsers must show."
)
@command_options
def command(
    *,
    host: str,
    port: int | None,
    opens: bool,
    token_env: str | None,
    root: Path | None,
    as_json: bool,
) -> int:
    """Serve until the user interrupts."""
    from ragx.shells.guard import HttpOptions
    from ragx.shells.web.server import DEFAULT_PORT
    from ragx.shells.web.service import Service

    options = HttpOptions.checked(
        host, DEFAULT_PORT if port is None else port, token_env, os.environ
    )
    service = Service(find_corpus(root))
    service.require_index()
    _serve(service, options, opens=opens, as_json=as_json)
    return envelope.OK


def _serve(service: Service, options: HttpOptions, *, opens: bool, as_json: bool) -> None:
    import threading

    from ragx.shells.guard import listen
    from ragx.shells.web.server import WebServer

    listener = listen(options)
    port = int(listener.getsockname()[1])
    url = f"{options.url(port)}/"
    # A question to a person, such as about settings in an old place, would wait for ever here.
    before = sys.stdin
    with (
        open(os.devnull, encoding="utf-8") as nothing,
        WebServer(listener, options, service) as server,
    ):
        sys.stdin = nothing
        try:
            if as_json:
                envelope.emit(
                    {"schema": "ragx.web.v1", "url": url, "host": options.host, "port": port}
                )
            envelope.tell(f"ragx: {service.root} at {url} (Ctrl-C ends it)")
            threading.Thread(target=service.warm, daemon=True).start()
            if opens:
                shown = f"{url}?token={quote(options.token, safe='')}" if options.token else url
                threading.Thread(target=_open, args=(shown,), daemon=True).start()
            server.serve_forever()
        except KeyboardInterrupt:
            envelope.tell("ragx: ended")
        finally:
            sys.stdin = before
            service.close()
    if service.busy and threading.current_thread() is threading.main_thread():
        # What is still at work is for nobody, and a thread cannot be ended.
        os._exit(envelope.OK)


def _open(url: str) -> None:
    """Open a browser with a window of its own; one in the terminal would take that over."""
    import webbrowser

    graphical = sys.platform in ("darwin", "win32") or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    )
    try:
        opened = graphical and webbrowser.open(url)
    except (webbrowser.Error, OSError):
        opened = False
    if not opened:
        envelope.tell("ragx: found no browser to open; the address is above")

"""Many clients over streamable HTTP."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from ragx.shells.cli import envelope
from ragx.shells.guard import HttpOptions, listen, refusal
from ragx.shells.mcp.server import build_server
from ragx.shells.mcp.tools import Toolbox

__all__ = ["DEFAULT_PORT", "PATH", "Guard", "serve_http"]

DEFAULT_PORT = 8766
PATH = "/mcp"
_GRACE_S = 1

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


def serve_http(box: Toolbox, options: HttpOptions) -> None:
    """Serve until interrupted.

    Raises:
        RagxError: code "port_taken": the address cannot be listened on.
        KeyboardInterrupt: the user interrupted.
    """
    import uvicorn
    from mcp.server.transport_security import TransportSecuritySettings

    app = build_server(box).streamable_http_app(
        streamable_http_path=PATH,
        json_response=True,
        stateless_http=True,
        # Its rules would stand beside those of Guard, and differ.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    settings = uvicorn.Config(
        Guard(app, options),
        log_config=None,
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=_GRACE_S,
        server_header=False,
    )
    # A question to a person, such as about settings in an old place, would wait for ever here.
    before = sys.stdin
    with open(os.devnull, encoding="utf-8") as nothing, listen(options) as listener:
        sys.stdin = nothing
        port = listener.getsockname()[1]
        envelope.tell(f"ragx: MCP at {options.url(port)}{PATH} (Ctrl-C ends it)")
        try:
            uvicorn.Server(settings).run(sockets=[listener])
        finally:
            sys.stdin = before
            box.close()


class Guard:
    """Lets through, to the application below, only requests that `refusal` has nothing against."""

    def __init__(self, app: App, options: HttpOptions) -> None:
        self._app = app
        self._options = options

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one ASGI connection."""
        if scope["type"] == "http":
            headers: dict[str, list[str]] = {}
            for name, value in scope["headers"]:
                headers.setdefault(name.decode("latin-1").lower(), []).append(
                    value.decode("latin-1")
                )
            refused = refusal(headers, self._options)
            if refused is not None:
                await _refuse(send, *refused)
                return
        await self._app(scope, receive, send)


async def _refuse(send: Send, status: int, reason: str) -> None:
    body = json.dumps({"error": reason}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})

"""Many clients over streamable HTTP, and who may ask.

The server is for programs on this machine. A page in a browser can send requests here, too, also
under a name of its own that it points at this address: hence Host and Origin are checked. Another
address than this machine's is served only to whoever knows the token.
"""

from __future__ import annotations

import hmac
import ipaddress
import json
import os
import re
import socket
import sys
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from ragx.errors import ConfigError, RagxError, UsageError
from ragx.shells.cli import envelope
from ragx.shells.mcp.server import build_server
from ragx.shells.mcp.tools import Toolbox

__all__ = ["DEFAULT_PORT", "PATH", "Guard", "HttpOptions", "refusal", "serve_http"]

DEFAULT_PORT = 8766
PATH = "/mcp"
_LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
_GRACE_S = 1
# Nothing but a name and a port: `user@name` would have two.
_HOST = re.compile(r"(?P<name>\[[0-9A-Fa-f:.]+\]|[^\[\]:@/?#\s]+)(?::\d{1,5})?")

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class HttpOptions:
    """Where to listen, and the token that clients must show; "" for none."""

    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    token: str = field(default="", repr=False)

    @classmethod
    def checked(
        cls, host: str, port: int, token_env: str | None, env: Mapping[str, str]
    ) -> HttpOptions:
        """Options from the command line.

        Args:
            token_env: the variable that holds the token.
        Raises:
            ConfigError: that variable is not set.
            UsageError: the host is not this machine, and there is no token.
        """
        token = env.get(token_env, "").strip() if token_env else ""
        if token_env and not token:
            raise ConfigError(
                f"--token-env names {token_env}, which is not set",
                hint=f"export {token_env}=...",
                code="no_token",
            )
        if not token and not _is_loopback(host):
            raise UsageError(
                f"--host {host} can be reached from other machines: that takes a token",
                hint="name the variable that holds it with --token-env, or leave --host out",
                code="needs_token",
            )
        return cls(host, port, token)


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
    with open(os.devnull, encoding="utf-8") as nothing, _listen(options) as listener:
        sys.stdin = nothing
        port = listener.getsockname()[1]
        shown = f"[{options.host}]" if ":" in options.host else options.host
        envelope.tell(f"ragx: MCP at http://{shown}:{port}{PATH} (Ctrl-C ends it)")
        try:
            uvicorn.Server(settings).run(sockets=[listener])
        finally:
            sys.stdin = before
            box.close()


def _listen(options: HttpOptions) -> socket.socket:
    try:
        found = socket.getaddrinfo(options.host, options.port, type=socket.SOCK_STREAM)
        family, _, _, _, address = found[0]
        listener = socket.socket(family, socket.SOCK_STREAM)
        if os.name == "posix":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(address)
            listener.listen(128)
        except OSError:
            listener.close()
            raise
    except OSError as exc:
        raise RagxError(
            f"cannot listen on {options.host} port {options.port}: {exc.strerror or exc}",
            hint="--port 0 takes one that is free",
            code="port_taken",
        ) from exc
    return listener


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


def refusal(headers: Mapping[str, list[str]], options: HttpOptions) -> tuple[int, str] | None:
    """Why a request may not pass: status and reason; None if it may.

    Args:
        headers: values by lower-case name.
    """
    hosts, origins = headers.get("host", []), headers.get("origin", [])
    if len(hosts) != 1 or len(origins) > 1:
        return 400, "one Host and at most one Origin"
    # Who listens on all addresses has names that only the user knows; there the token decides.
    if not _is_own_name(hosts[0], options.host) and not (options.token and _is_any(options.host)):
        return 421, "this server does not go by that Host"
    if origins and not _is_own_origin(origins[0], options.host):
        return 403, "requests from web pages of other origins are refused"
    if options.token:
        shown = headers.get("authorization", [""])[0]
        scheme, _, token = shown.partition(" ")
        right = hmac.compare_digest(token.strip().encode(), options.token.encode())
        if scheme.lower() != "bearer" or not right:
            return 401, "a bearer token is needed"
    return None


def _is_own_name(host: str, bound: str) -> bool:
    """Whether a Host header names this server; the port says nothing about who asks."""
    found = _HOST.fullmatch(host)
    return found is not None and found["name"].strip("[]").lower() in {
        *_LOOPBACK_NAMES,
        bound.lower(),
    }


def _is_own_origin(origin: str, bound: str) -> bool:
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and _is_own_name(parts.netloc, bound)


def _is_any(host: str) -> bool:
    return host in ("0.0.0.0", "::", "")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


async def _refuse(send: Send, status: int, reason: str) -> None:
    body = json.dumps({"error": reason}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})

"""Where a server of this machine listens, and who may ask it.

Servers are for programs on this machine. A page in a browser can send requests here, too, also
under a name of its own that it points at this address: hence Host and Origin are checked. Another
address than this machine's is served only to whoever knows the token.
"""

from __future__ import annotations

import hmac
import ipaddress
import os
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from ragx.errors import ConfigError, RagxError, UsageError

__all__ = ["HttpOptions", "listen", "refusal"]

_LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
# Nothing but a name and a port: `user@name` would have two.
_HOST = re.compile(r"(?P<name>\[[0-9A-Fa-f:.]+\]|[^\[\]:@/?#\s]+)(?::\d{1,5})?")


@dataclass(frozen=True, slots=True)
class HttpOptions:
    """Where to listen, and the token that clients must show; "" for none."""

    host: str = "127.0.0.1"
    port: int = 0
    token: str = field(default="", repr=False)

    def url(self, port: int) -> str:
        """The address of the server, once it listens on a port."""
        shown = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{shown}:{port}"

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


def listen(options: HttpOptions) -> socket.socket:
    """A socket that listens where the options say; closed by the caller.

    Raises:
        RagxError: code "port_taken": the address cannot be listened on.
    """
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

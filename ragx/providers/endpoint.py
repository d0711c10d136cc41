"""Where a model server is reached, and starting a local one that is not there.

Only this machine's own addresses are ever touched, and what answers there is used as it is. A
llama-server that ragx starts ends with ragx; LM Studio is the user's own program, and stays.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit

from ragx.errors import ConfigError
from ragx.providers.address import is_local
from ragx.providers.base import Notice, no_notice

__all__ = [
    "Endpoint",
    "EndpointOptions",
    "Role",
    "answers",
    "is_gone",
    "open_endpoint",
    "wait_until_answering",
]

Role = Literal["embedding", "reranking", "chat"]

_CONNECT_S = 0.5
_POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class EndpointOptions:
    """What decides where requests go: `section` is the part of ragx.toml that hints name."""

    section: str
    provider: str
    role: Role
    base_url: str = ""
    model: str = ""
    gguf: str = ""
    server_bin: str = ""
    autostart: bool = True


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server that can be asked; `notes` say what was started for it, in words for people."""

    base_url: str
    notes: tuple[str, ...] = ()
    stop: Callable[[], None] = field(default=lambda: None, repr=False)

    def close(self) -> None:
        """Stop what was started for this endpoint alone; twice does nothing."""
        self.stop()


def answers(base_url: str) -> bool:
    """Whether something accepts connections at an address; also a server that is loading does."""
    try:
        parts = urlsplit(base_url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        with socket.create_connection((parts.hostname or "", port), timeout=_CONNECT_S):
            return True
    except (OSError, ValueError):
        return False


def is_gone(endpoint: Endpoint, *, provider: str, autostart: bool) -> bool:
    """Whether a llama-server that was found, not started, has ended since: opening starts one."""
    return (
        provider == "llama-server"
        and autostart
        and not endpoint.notes
        and is_local(endpoint.base_url)
        and not answers(endpoint.base_url)
    )


def wait_until_answering(base_url: str, timeout_s: float) -> bool:
    """Wait for a server that is starting; False if nothing answers in time."""
    deadline = time.monotonic() + timeout_s
    pause = threading.Event()
    while not answers(base_url):
        if time.monotonic() >= deadline:
            return False
        pause.wait(_POLL_S)
    return True


def open_endpoint(options: EndpointOptions, *, notice: Notice = no_notice) -> Endpoint:
    """Find the server, or start it where the settings allow that.

    Args:
        options: address and what may be started there.
        notice: told one line before each start.
    Returns:
        The address to ask. Closing it ends a llama-server started here, and nothing else.
    Raises:
        ConfigError: what would be started is missing or cannot be used.
        ProviderUnavailable: it was started and does not work.
        ProviderRefused: LM Studio does not have the model.
    """
    address = options.base_url
    if options.provider == "llama-server":
        if not address and not options.autostart:
            raise ConfigError(
                f"{options.section}.base_url is not set, and {options.section}.autostart is off",
                hint=f"ragx config set {options.section}.autostart true",
            )
        if address and (not options.autostart or not is_local(address) or answers(address)):
            return Endpoint(address)
        from ragx.providers.llama_server import start_llama_server

        return start_llama_server(options, notice)
    if options.provider == "openai" and options.autostart and is_local(address):
        from ragx.providers.lm_studio import find_lms, start_lm_studio

        lms = find_lms()
        if lms is not None and not answers(address):
            return start_lm_studio(lms, options, notice)
    return Endpoint(address)

"""A model server that is looked for, or started, when the first thing is asked of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import TYPE_CHECKING, TypeVar

from ragx.errors import ConfigError, ProviderUnavailable
from ragx.providers.base import ExpansionOptions, Notice, RerankOptions
from ragx.providers.endpoint import Endpoint, EndpointOptions, Role, is_gone, open_endpoint
from ragx.providers.http import Classify, ServerClient, check_address, check_key, clean
from ragx.providers.retry import Clock, RetryPolicy

if TYPE_CHECKING:
    from ragx.providers.sse import EventStream

__all__ = ["Served"]

T = TypeVar("T")

# Somebody waits for the answer, which is complete without this model: a silent server is not asked
# twice, and a crowded one not for long.
_POLICY = RetryPolicy(
    attempts={"connect": 3, "transport": 2, "rate": 3, "busy": 5, "fault": 2, "reply": 2},
    max_pause_s=20.0,
)


class Served:
    """One server of a section, with what was started for it; safe to use from several threads."""

    def __init__(
        self,
        section: str,
        role: Role,
        options: RerankOptions | ExpansionOptions,
        *,
        notice: Notice,
        clock: Clock | None,
    ) -> None:
        """Check the settings; nothing is sent or started yet.

        Raises:
            ConfigError: model, address or key cannot be used.
        """
        own = options.provider == "llama-server"
        self.model = options.model or (PurePath(options.gguf).stem if own else "")
        if not self.model and not own:
            raise ConfigError(
                f"{section}.model is not set", hint=f"ragx config set {section}.model NAME"
            )
        if options.base_url or not own:
            check_address(options.base_url, section)
        check_key(options.api_key, section)
        self.section = section
        self._options = options
        self._role = role
        self._notice = notice
        self._clock = clock
        self._lock = threading.Lock()
        self._endpoint: Endpoint | None = None
        self._clients: dict[str, ServerClient] = {}
        self._closed = False

    @property
    def notes(self) -> tuple[str, ...]:
        """What was started for it, in words for people."""
        return self._endpoint.notes if self._endpoint is not None else ()

    def client(self) -> ServerClient:
        """The connection to its address.

        Raises:
            ConfigError: what would have to be started is missing.
            ProviderError: it was started and does not work.
        """
        return self.client_at("")

    def client_at(self, place: str) -> ServerClient:
        """The connection to the address ("") or beside it ("sibling"), made once."""
        options = self._options
        with self._lock:
            if self._closed:
                raise ProviderUnavailable(f"the {self._role} model was closed")
            if self._endpoint is None:
                self._endpoint = open_endpoint(
                    EndpointOptions(
                        section=self.section,
                        provider=options.provider,
                        role=self._role,
                        base_url=options.base_url,
                        model=options.model,
                        gguf=options.gguf,
                        server_bin=options.server_bin,
                        autostart=options.autostart,
                    ),
                    notice=self._notice,
                )
            if place not in self._clients:
                address = self._endpoint.base_url
                self._clients[place] = ServerClient(
                    _beside(address) if place else address,
                    section=self.section,
                    api_key=options.api_key,
                    timeout_s=options.timeout_s,
                    connect_timeout_s=options.connect_timeout_s,
                    policy=_POLICY,
                    clock=self._clock,
                )
            return self._clients[place]

    def post(
        self,
        path: str,
        body: Mapping[str, object],
        *,
        subject: str,
        parse: Callable[[object], T],
        classify: Classify,
        place: str = "",
        events: EventStream | None = None,
    ) -> T:
        """Send a JSON body as `ServerClient.post` does, to the address or ("sibling") beside it.

        A llama-server that another run started ends with that run: then it is started anew.

        Raises:
            ConfigError: what would have to be started is missing.
            ProviderError: the server failed, or what was started does not work.
        """

        def send(client: ServerClient) -> T:
            return client.post(
                path, body, subject=subject, parse=parse, classify=classify, events=events
            )

        client = self.client_at(place)
        try:
            return send(client)
        except ProviderUnavailable:
            begun = events is not None and events.n_events > 0
            if begun or not self._forgets(client, place):
                raise
        return send(self.client_at(place))

    def _forgets(self, client: ServerClient, place: str) -> bool:
        """Whether the server behind a connection has gone and can be opened anew."""
        with self._lock:
            if self._closed or self._endpoint is None:
                return False
            if self._clients.get(place) is not client:
                return True  # another thread was faster
            options = self._options
            if not is_gone(self._endpoint, provider=options.provider, autostart=options.autostart):
                return False
            self._endpoint = None
            for each in self._clients.values():
                each.close()
            self._clients.clear()
            return True

    def clean(self, text: str) -> str:
        """A server's own words, fit for one line on a terminal, without the key."""
        return clean(text, check_key(self._options.api_key, self.section))

    def close(self) -> None:
        """Close the connections and end what was started; nothing can be asked after it."""
        with self._lock:
            self._closed = True
            for client in self._clients.values():
                client.close()
            if self._endpoint is not None:
                self._endpoint.close()


def _beside(address: str) -> str:
    trimmed = address.strip().rstrip("/")
    return trimmed.removesuffix("/v1") if trimmed.endswith("/v1") else f"{trimmed}/v1"

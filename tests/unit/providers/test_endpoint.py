"""Which addresses are touched, and which are left alone."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import closing

import pytest

from ragx.errors import ConfigError
from ragx.providers import endpoint
from ragx.providers.endpoint import (
    Endpoint,
    EndpointOptions,
    answers,
    is_gone,
    open_endpoint,
    wait_until_answering,
)


def options(provider: str, base_url: str, **more: object) -> EndpointOptions:
    return EndpointOptions("embeddings", provider, "embedding", base_url, **more)


@pytest.fixture
def listening() -> Iterator[str]:
    """The address of a socket that accepts nothing: being there is enough."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}/v1"


@pytest.fixture
def silent() -> str:
    """An address where nothing answers."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        return f"http://127.0.0.1:{server.getsockname()[1]}/v1"


@pytest.mark.parametrize("provider", ["openai", "ollama", "llama-server"])
@pytest.mark.parametrize(
    "settings",
    [
        {"base_url": "http://127.0.0.1:9/v1", "autostart": False},
        {"base_url": "https://models.example.com/v1"},
    ],
)
def test_without_leave_or_elsewhere_nothing_is_touched(provider, settings, monkeypatch):
    monkeypatch.setattr(endpoint, "answers", lambda _: pytest.fail("touched"))
    told: list[str] = []
    found = open_endpoint(options(provider, **settings), notice=told.append)
    assert (found.base_url, found.notes, told) == (settings["base_url"], (), [])
    found.close()
    found.close()


@pytest.mark.parametrize("provider", ["openai", "ollama", "llama-server"])
def test_what_answers_is_used(provider, listening):
    told: list[str] = []
    found = open_endpoint(options(provider, listening), notice=told.append)
    assert (found.base_url, found.notes, told) == (listening, (), [])


@pytest.mark.parametrize("provider", ["openai", "ollama"])
def test_nothing_to_start_is_left_to_the_client(provider, silent, monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert open_endpoint(options(provider, silent)).base_url == silent


def test_llama_server_needs_an_address_or_leave_to_start():
    with pytest.raises(ConfigError, match=r"embeddings\.base_url is not set") as caught:
        open_endpoint(options("llama-server", "", autostart=False))
    assert caught.value.hint == "ragx config set embeddings.autostart true"


def test_answers_is_about_connections(listening, silent):
    assert answers(listening)
    assert not answers(silent)
    assert not answers("http://127.0.0.1:99999/v1")
    assert not answers("")


def test_only_what_was_found_can_be_gone(silent, listening):
    own = {"provider": "llama-server", "autostart": True}
    assert is_gone(Endpoint(silent), **own)
    assert not is_gone(Endpoint(listening), **own)
    assert not is_gone(Endpoint(silent, ("started it",)), **own)
    assert not is_gone(Endpoint("http://models.example.com/v1"), **own)
    assert not is_gone(Endpoint(silent), **own | {"provider": "openai"})
    assert not is_gone(Endpoint(silent), **own | {"autostart": False})


def test_waiting_ends_when_something_answers_or_time_is_up(silent):
    assert not wait_until_answering(silent, 0.0)
    port = int(silent.rsplit(":", 1)[1].split("/")[0])
    servers: list[socket.socket] = []
    timer = threading.Timer(0.05, lambda: servers.append(socket.create_server(("127.0.0.1", port))))
    timer.start()
    assert wait_until_answering(silent, 20.0)
    timer.join()
    servers[0].close()

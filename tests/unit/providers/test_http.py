from __future__ import annotations

import inspect
import json
import re

import httpx
import pytest

from ragx.errors import ProviderRefused, ProviderUnavailable
from ragx.providers.http import ServerClient, translate
from ragx.providers.retry import CircuitBreaker, RetryPolicy, retry_after_s
from ragx.providers.sse import EventStream

FOREIGN = sorted(
    {
        c
        for c in vars(httpx).values()
        if inspect.isclass(c) and issubclass(c, Exception) and c.__module__ == "httpx"
    },
    key=lambda c: c.__name__,
)

# Every class by hand: a new one in httpx fails the first test below until it has a place.
KINDS = {
    "CloseError": "transport",
    "ConnectError": "connect",
    "ConnectTimeout": "connect",
    "CookieConflict": "denied",
    "DecodingError": "transport",
    "HTTPError": "transport",
    "HTTPStatusError": "denied",
    "InvalidURL": "denied",
    "LocalProtocolError": "denied",
    "NetworkError": "transport",
    "PoolTimeout": "timeout",
    "ProtocolError": "transport",
    "ProxyError": "connect",
    "ReadError": "transport",
    "ReadTimeout": "timeout",
    "RemoteProtocolError": "transport",
    "RequestError": "transport",
    "RequestNotRead": "transport",
    "ResponseNotRead": "transport",
    "StreamClosed": "transport",
    "StreamConsumed": "transport",
    "StreamError": "transport",
    "TimeoutException": "timeout",
    "TooManyRedirects": "denied",
    "TransportError": "transport",
    "UnsupportedProtocol": "denied",
    "WriteError": "transport",
    "WriteTimeout": "timeout",
}


def make(kind):
    request = httpx.Request("POST", "http://h/v1")
    if kind is httpx.HTTPStatusError:
        return kind("boom", request=request, response=httpx.Response(500))
    if kind in (
        httpx.StreamConsumed,
        httpx.StreamClosed,
        httpx.ResponseNotRead,
        httpx.RequestNotRead,
    ):
        return kind()
    return kind("boom sk-key")


def test_every_foreign_class_has_a_place():
    assert [c.__name__ for c in FOREIGN] == sorted(KINDS)


@pytest.mark.parametrize("foreign", FOREIGN, ids=lambda c: c.__name__)
def test_translation(foreign):
    kind, error = translate(make(foreign), "http://h/v1", "embeddings", "sk-key")
    assert kind == KINDS[foreign.__name__]
    assert isinstance(error, ProviderRefused if kind == "denied" else ProviderUnavailable)
    assert "http://h/v1" in error.message
    assert "sk-key" not in error.message


@pytest.mark.parametrize("foreign", FOREIGN, ids=lambda c: c.__name__)
def test_every_foreign_class_is_one_that_the_client_catches(foreign):
    if foreign is not httpx.CookieConflict:  # reading cookies by name, which ragx never does
        assert issubclass(foreign, httpx.HTTPError | httpx.InvalidURL | httpx.StreamError)


def test_errors_within_a_stream_are_shown_without_the_key(server, reply_type):
    key = "sk-very-secret-0123456789"
    said = f"bad key {key}\x1b[31m or sk-very-secr..."
    event = f"data: {json.dumps({'error': said})}\n\n".encode()
    server.behaviour = lambda body: reply_type(
        body=event, headers={"Content-Type": "text/event-stream"}
    )
    events = []

    def parse(_value):
        raise ProviderRefused(events[0]["error"], hint=events[0]["error"])

    client = ServerClient(server.url, section="expansion", api_key=key)
    with pytest.raises(ProviderRefused) as caught:
        client.post("/x", {}, subject="it", parse=parse, events=EventStream(events.append))
    client.close()
    assert caught.value.message == caught.value.hint == str(caught.value)
    assert caught.value.message == "bad key *** [31m or ***"


@pytest.mark.parametrize("depth", [3, 200])
def test_lists_are_read_without_the_key_and_to_a_depth(server, depth):
    key = "sk-very-secret-0123456789"
    nested = f"a{key}\x1b"
    for _ in range(depth):
        nested = {f"b{key}": [nested]}
    server.models = {"data": nested}
    client = ServerClient(server.url, section="embeddings", api_key=key)
    found = json.dumps(client.get("/models", subject="it", parse=lambda value: value))
    client.close()
    assert key not in found
    assert found.count("b***") == min(depth, 16)


NOW = 1_000_000_000.0  # Sun, 09 Sep 2001 01:46:40 GMT


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("", None),
        ("soon", None),
        ("-3", None),
        ("nan", None),
        ("9" * 50, None),
        ("0", 0.0),
        (" 12 ", 12.0),
        ("0.25", 0.25),
        ("Sun, 09 Sep 2001 01:47:40 GMT", 60.0),
        ("Sun, 09 Sep 2001 01:45:40 GMT", 0.0),
        ("Sun, 99 Sep 2001 01:45:40 GMT", None),
    ],
)
def test_retry_after(value, seconds):
    assert retry_after_s(value, NOW) == seconds


def test_policy_never_waits_without_a_bound():
    policy = RetryPolicy()
    for kind, attempts in policy.attempts.items():
        assert policy.pause_s[kind] * 2 ** (attempts - 2) <= policy.max_pause_s


def test_breaker_counts_failures_running():
    now = [0.0]
    breaker = CircuitBreaker(lambda: now[0], open_s=10.0)
    down = ProviderUnavailable("down", hint="start it", details={"status": 503, "scope": "input"})
    for _ in range(2):
        breaker.failed("connect", down)
    breaker.succeeded()
    for _ in range(2):
        breaker.failed("connect", down)
    breaker.check()
    breaker.failed("connect", down)
    with pytest.raises(ProviderUnavailable, match=re.escape("down")) as caught:
        breaker.check()
    assert caught.value is not down
    assert caught.value.details == {"status": 503, "scope": "server", "circuit": "open"}
    now[0] = 10.0
    breaker.check()
    with pytest.raises(ProviderUnavailable):
        breaker.check()
    breaker.succeeded()
    breaker.check()

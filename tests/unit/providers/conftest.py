"""A model server that misbehaves on demand, and a clock that nobody waits for."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from ragx.providers.retry import Clock

DIMENSION = 4


def vector_of(text: str) -> list[float]:
    """Any fixed function of the text that is not of unit length."""
    return [float(len(text)), float(ord(text[0]) if text else 0), 1.0, 2.0]


def good_reply(body: dict[str, Any]) -> dict[str, Any]:
    return {
        "object": "list",
        "data": [
            {"object": "embedding", "index": i, "embedding": vector_of(text)}
            for i, text in enumerate(body["input"])
        ],
    }


@dataclass(frozen=True)
class Reply:
    """What the server sends; `raw` replaces the whole exchange, headers included."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes | None = None


Behaviour = Callable[[dict[str, Any]], Reply]


class FaultServer:
    """Answers by `behaviour`, or by the entries of `script` first, one each."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.script: list[Reply | Behaviour] = []
        self.behaviour: Behaviour = lambda body: Reply(body=good_reply(body))
        self.models: dict[str, Any] | None = None
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.lock = threading.Lock()
        self.release = threading.Event()

    def answer(self, path: str, headers: dict[str, str], body: dict[str, Any]) -> Reply:
        with self.lock:
            self.paths.append(path)
            self.headers.append(headers)
            self.requests.append(body)
            step = self.script.pop(0) if self.script else self.behaviour
        return step if isinstance(step, Reply) else step(body)


@pytest.fixture
def server() -> Iterator[FaultServer]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # or every second answer waits 40 ms for an ACK

        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            body = json.loads(self.rfile.read(length))
            reply = faults.answer(self.path, dict(self.headers), body)
            if reply.raw is not None:
                self.wfile.write(reply.raw)
                self.close_connection = True
                return
            content = reply.body
            if not isinstance(content, bytes):
                content = json.dumps(content).encode()
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def do_GET(self) -> None:
            found = self.path == "/v1/models" and faults.models is not None
            content = json.dumps(faults.models if found else {"detail": "Not Found"}).encode()
            self.send_response(200 if found else 404)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            """A client that hangs up is part of the tests."""

    http = Quiet(("127.0.0.1", 0), Handler)
    faults = FaultServer(f"http://127.0.0.1:{http.server_address[1]}/v1")
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield faults
    faults.release.set()
    http.shutdown()
    thread.join()
    http.server_close()


class FakeTime:
    """Time that passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0
        self.sleeps: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.now += seconds

    @property
    def clock(self) -> Clock:
        return Clock(monotonic=lambda: self.now, wall=lambda: self.now, sleep=self.sleep)


@pytest.fixture
def fake_time() -> FakeTime:
    return FakeTime()


@pytest.fixture
def reply_type() -> type[Reply]:
    return Reply


@pytest.fixture
def good() -> Callable[[dict[str, Any]], dict[str, Any]]:
    return good_reply

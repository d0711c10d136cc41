"""An embedding server that fails on demand, one request at a time."""

from __future__ import annotations

import json
import re
import threading
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

WIDTH = 32
_TOKEN = re.compile(r"\w|[^\w\s]")


@dataclass(frozen=True)
class Fault:
    """What one request gets instead of its vectors.

    `how` is "status" (an answer of `status`, `body` and `headers`), "hangup" (none), "cut" (half a
    reply), "silence" (none until the test ends) or "items" (what `items` makes of the right ones).
    """

    how: str = "status"
    status: int = 500
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    items: Callable[[list[dict[str, Any]]], list[dict[str, Any]]] = lambda items: items


Judge = Callable[[int, list[str]], Fault | None]


class FaultyServer(ThreadingHTTPServer):
    """Answers with vectors of words, but for what `judge` says of a request.

    `judge` gets the number of the request, from 1, and its texts. A text has as many tokens as
    signs, white space apart; what is over `reads` tokens, if that is set, has no say in the vector,
    and such texts are kept in `cut`. `asked` holds the texts of every request in order of arrival,
    `bodies` the keys of the bodies, `keys` the Authorization headers.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Request)
        self.url = f"http://127.0.0.1:{self.server_address[1]}/v1"
        self.lock = threading.Lock()
        self.free = threading.Event()
        self.forget()
        self.judge: Judge = lambda number, texts: None
        self.reads: int | None = None
        self.width = WIDTH
        self.models: list[str] = ["words"]
        self.delay_s = 0.0

    def forget(self) -> None:
        """Begin to count anew."""
        with self.lock:
            self.asked: list[list[str]] = []
            self.bodies: list[set[str]] = []
            self.keys: set[str] = set()
            self.cut: list[str] = []

    def settings(self, **more: object) -> str:
        """A ragx.toml that uses this server."""
        values = {"provider": "openai", "base_url": self.url, "model": "words", **more}
        lines = [f"{key} = {json.dumps(value)}" for key, value in values.items()]
        return "\n".join(["[embeddings]", *lines, ""])

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that hang up are part of the tests."""

    def vector(self, text: str) -> list[float]:
        """Hashed counts of the words that are read."""
        tokens = list(_TOKEN.finditer(text))
        if self.reads is not None and len(tokens) > self.reads - 2:
            with self.lock:
                self.cut.append(text)
            text = text[: tokens[self.reads - 2].start()]
        counts = [0.01] * self.width
        for word in re.findall(r"\w+", text.lower()):
            counts[zlib.crc32(word.encode()) % self.width] += 1.0
        return counts


class _Request(BaseHTTPRequestHandler):
    server: FaultyServer
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        self._send(200, {"data": [{"id": name} for name in self.server.models]}, {})

    def do_POST(self) -> None:
        server = self.server
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        texts = body["input"]
        with server.lock:
            server.asked.append(texts)
            server.bodies.append(set(body))
            server.keys.add(self.headers.get("Authorization", ""))
            number = len(server.asked)
            fault = server.judge(number, texts)
        if server.delay_s:
            server.free.wait(server.delay_s)
        if fault is not None and fault.how == "status":
            echoed = json.dumps(fault.body).replace("{key}", self.headers.get("Authorization", ""))
            self._send(fault.status, json.loads(echoed), fault.headers)
        elif fault is not None and fault.how == "hangup":
            self.close_connection = True
        elif fault is not None and fault.how == "silence":
            server.free.wait(60)
            self.close_connection = True
        else:
            items = [{"index": i, "embedding": server.vector(t)} for i, t in enumerate(texts)]
            if fault is not None:
                items = fault.items(items)
            self._send(200, {"data": items}, {}, cut=fault is not None and fault.how == "cut")

    def _send(self, status: int, body: Any, headers: dict[str, str], *, cut: bool = False) -> None:
        content = json.dumps(body).encode()
        if cut:
            content = content[: len(content) // 2]
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture
def faulty_server() -> Iterator[FaultyServer]:
    """A running FaultyServer that has been asked nothing and fails at nothing."""
    server = FaultyServer()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield server
    server.free.set()
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def fault() -> type[Fault]:
    """The class of faults."""
    return Fault

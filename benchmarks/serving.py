"""How much of a model server's best speed the embedding client reaches.

For each kind of server: one in a process of its own, a load generator that sweeps texts per
request and requests at a time for the best rate, then the client that `ragx index` uses, with
default settings, against the same server: knowing nothing, and with what it has learned.

    python -m benchmarks.serving [--seconds 3] [--texts 20000]
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ragx.providers.limits import Learned

WIDTH = 384
_BATCHES = (8, 32, 128, 256)
_AT_ONCE = (1, 4, 8, 16, 32)
_TEXT = "The quick brown fox jumps over the lazy dog and comes back again. " * 12


@dataclass(frozen=True, slots=True)
class Kind:
    """A server: what a request and each text cost it, and how many it works on at a time."""

    name: str
    request_s: float
    text_s: float = 0.0
    slots: int = 64


KINDS = (
    Kind("50 ms a request", 0.05),
    Kind("50 ms a request, 8 slots", 0.05, slots=8),
    Kind("50 ms a request, 2 ms a text, 8 slots", 0.05, 0.002, slots=8),
    Kind("50 ms a request, 2 ms a text, 2 slots", 0.05, 0.002, slots=2),
)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def __init__(self, kind: Kind) -> None:
        super().__init__(("127.0.0.1", 0), _Request)
        self.kind = kind
        self.slots = threading.Semaphore(kind.slots)
        self.replies: dict[int, bytes] = {}

    def reply(self, n: int) -> bytes:
        """The bytes of n vectors, made once: the server's own Python shall not be measured."""
        if n not in self.replies:
            vector = [round((i % 37 - 18) / 131, 8) for i in range(WIDTH)]
            data = [{"object": "embedding", "index": i, "embedding": vector} for i in range(n)]
            self.replies[n] = json.dumps({"object": "list", "data": data}).encode()
        return self.replies[n]


class _Request(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        n = len(json.loads(body)["input"])
        with self.server.slots:
            time.sleep(self.server.kind.request_s + n * self.server.kind.text_s)
        content = self.server.reply(n)
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def _serve(kind: Kind, ready: Connection) -> None:
    server = _Server(kind)
    ready.send(server.server_address[1])
    server.serve_forever()


def load_rate(url: str, batch: int, at_once: int, seconds: float) -> float:
    """Texts a second of a bare client: requests sent, vectors parsed, nothing else."""
    import httpx
    import numpy as np

    body = json.dumps({"model": "m", "input": [_TEXT] * batch, "encoding_format": "float"})
    done: list[int] = []
    end = time.perf_counter() + seconds
    with httpx.Client(limits=httpx.Limits(max_connections=at_once), timeout=60) as client:

        def work() -> None:
            while time.perf_counter() < end:
                reply = client.post(url + "/embeddings", content=body).json()
                rows = np.array([item["embedding"] for item in reply["data"]], np.float32)
                done.append(len(rows))

        threads = [threading.Thread(target=work) for _ in range(at_once)]
        started = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sum(done) / (time.perf_counter() - started)


def client_rate(url: str, n_texts: int, known: Learned | None = None) -> tuple[float, Learned]:
    """Texts a second of ragx's client with default settings, and what it has learned.

    Args:
        url: of the server.
        n_texts: to embed.
        known: from an earlier run; None for a first one.
    """
    from ragx.providers.base import EmbeddingOptions
    from ragx.providers.openai import OpenAIEmbedder
    from ragx.providers.pool import EmbedPool

    embedder = OpenAIEmbedder(EmbeddingOptions(provider="openai", base_url=url, model="m"))
    if known is not None:
        embedder.start_from(known)
    started = time.perf_counter()
    with EmbedPool(embedder) as pool:
        n = sum(1 for _ in pool.run((i, _TEXT) for i in range(n_texts)))
    rate = n / (time.perf_counter() - started)
    learned = embedder.learned
    embedder.close()
    return rate, learned


def measure(kind: Kind, seconds: float, n_texts: int) -> Iterator[str]:
    """One line per result."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(
        target=_serve, args=(kind, theirs), daemon=True
    )
    process.start()
    try:
        url = f"http://127.0.0.1:{ours.recv()}/v1"
        rates = {
            (batch, at_once): load_rate(url, batch, at_once, seconds)
            for batch in _BATCHES
            for at_once in _AT_ONCE
        }
        best = max(rates.values())
        best_batch, best_at_once = max(rates, key=lambda key: rates[key])
        yield f"{kind.name}: at best {best:.0f} texts/s, {best_batch} x {best_at_once}"
        known = None
        for run in ("first", "next"):
            rate, known = client_rate(url, n_texts, known)
            yield (
                f"  {run} run of ragx: {rate:.0f} texts/s, at the end {known.batch_size} x"
                f" {known.in_flight}: {rate / best:.2f} of the best"
            )
    finally:
        process.terminate()
        process.join()


def main(say: Callable[[str], None]) -> None:
    """Measure every kind of server."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=3.0, help="per cell of the sweep")
    parser.add_argument("--texts", type=int, default=20_000, help="that ragx embeds")
    arguments = parser.parse_args()
    for kind in KINDS:
        for line in measure(kind, arguments.seconds, arguments.texts):
            say(line)


if __name__ == "__main__":
    import sys

    main(lambda line: print(line, file=sys.stdout, flush=True))

"""A llama-server that several runs share: it may end under any of them but the one it is of."""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ragx.errors import ProviderUnavailable
from ragx.providers.base import EmbeddingOptions, RerankOptions
from ragx.providers.endpoint import answers
from ragx.providers.openai import OpenAIEmbedder
from ragx.providers.rerank import ServerReranker

STAND_IN = """\
#!{python} -I
import json, os, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

value = lambda flag: sys.argv[sys.argv.index(flag) + 1]
with open(value("-m") + ".pids", "a") as file:
    file.write(str(os.getpid()) + "\\n")

class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.say({{}})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        n = len(body.get("documents") or body["input"])
        self.say({{
            "results": [{{"index": at, "score": at}} for at in range(n)],
            "data": [{{"index": at, "embedding": [1.0, 0.0]}} for at in range(n)],
        }})

    def say(self, value):
        content = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass

ThreadingHTTPServer((value("--host"), int(value("--port"))), Handler).serve_forever()
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF\x03\x00\x00\x00")
    return path


@pytest.fixture
def address() -> str:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        return f"http://127.0.0.1:{server.getsockname()[1]}/v1"


@pytest.fixture
def reranker(
    tmp_path: Path, model: Path, address: str, fake_time
) -> Iterator[Callable[..., ServerReranker]]:
    program = tmp_path / "llama-server"
    program.write_text(STAND_IN.format(python=sys.executable), encoding="utf-8")
    program.chmod(0o755)
    made: list[ServerReranker] = []

    def make(*, autostart: bool = True) -> ServerReranker:
        options = RerankOptions(
            provider="llama-server",
            base_url=address,
            gguf=str(model),
            server_bin=str(program),
            autostart=autostart,
        )
        made.append(ServerReranker(options, clock=fake_time.clock))
        return made[-1]

    yield make
    for each in made:
        each.close()


def pids(model: Path) -> list[int]:
    return [int(line) for line in Path(f"{model}.pids").read_text().split()]


def test_what_another_run_has_ended_is_started_anew(reranker, model, address) -> None:
    first, second = reranker(), reranker()
    assert first.scores("q", ["a", "b"]) == second.scores("q", ["a", "b"]) == [0.0, 1.0]
    assert (len(first.endpoint_notes), second.endpoint_notes) == (1, ())
    first.close()
    assert not answers(address)
    assert second.scores("q", ["a", "b"]) == [0.0, 1.0]
    assert second.endpoint_notes[0].startswith("started llama-server for rerank")
    assert len(pids(model)) == 2
    second.close()
    assert not answers(address)


def test_ones_own_server_that_ends_is_a_failure(reranker, model) -> None:
    one = reranker()
    one.scores("q", ["a"])
    os.kill(pids(model)[0], signal.SIGKILL)
    with pytest.raises(ProviderUnavailable):
        one.scores("q", ["a"])
    assert len(pids(model)) == 1


def test_without_leave_nothing_is_started(reranker, model) -> None:
    first, second = reranker(), reranker(autostart=False)
    first.scores("q", ["a"])
    second.scores("q", ["a"])
    first.close()
    with pytest.raises(ProviderUnavailable, match="cannot be reached"):
        second.scores("q", ["a"])
    assert len(pids(model)) == 1


def test_what_is_closed_starts_nothing(reranker, model) -> None:
    first, second = reranker(), reranker()
    first.scores("q", ["a"])
    second.scores("q", ["a"])
    first.close()
    second.close()
    with pytest.raises(ProviderUnavailable, match="closed"):
        second.scores("q", ["a"])
    assert len(pids(model)) == 1


def test_an_embedders_server_that_another_run_has_ended_is_started_anew(
    reranker, model, address, tmp_path, fake_time
) -> None:
    other = reranker()
    other.scores("q", ["a"])
    options = EmbeddingOptions(
        provider="llama-server",
        base_url=address,
        gguf=str(model),
        server_bin=str(tmp_path / "llama-server"),
    )
    embedder = OpenAIEmbedder(options, clock=fake_time.clock)
    assert embedder.embed_documents(["a"]).shape == (1, 2)
    other.close()
    assert embedder.embed_documents(["a", "b"]).shape == (2, 2)
    assert embedder.endpoint_notes[0].startswith("started llama-server for embeddings")
    assert len(pids(model)) == 2
    embedder.close()
    assert not answers(address)

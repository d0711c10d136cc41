"""Chat and rerank servers that misbehave: the query answers all the same, and says why."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from ragx.api import Corpus, IndexRequest, QueryRequest, open_corpus
from ragx.providers.base import ExpansionOptions
from ragx.providers.chat import ServerGenerator

KEY = "sk-very-secret-0123456789"
TEXTS = {
    "cats.md": "# Cats\n\nA cat sleeps most of the day.\n",
    "tax.md": "# Tax\n\nTax law knows no cats.\n",
}


class Server(ThreadingHTTPServer):
    """Writes given bytes, whatever it is asked; `reply` None closes without a word."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.status = 200
        self.reply: bytes | None = b"{}"
        self.promised = 0  # bytes more than are sent
        self.keys: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.do_GET()

    def do_GET(self) -> None:
        self.server.keys.append(self.headers.get("Authorization", ""))
        self.close_connection = True
        if self.server.reply is None:
            return
        self.send_response(self.server.status)
        length = len(self.server.reply) + self.server.promised
        self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.write(self.server.reply)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[Server]:
    http = Server()
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield http
    http.shutdown()
    thread.join()
    http.server_close()


@pytest.fixture
def corpus(tmp_path: Path, server: Server) -> Corpus:
    for path, text in TEXTS.items():
        (tmp_path / path).write_text(text, encoding="utf-8")
    sections = "".join(
        f"[{name}]\nenabled = true\nprovider = 'openai'\nmodel = 'm'\nbase_url = '{server.url}'\n"
        "autostart = false\n"
        for name in ("rerank", "expansion")
    )
    (tmp_path / "ragx.toml").write_text(
        f"[embeddings]\nprovider = 'none'\n{sections}", encoding="utf-8"
    )
    made = open_corpus(tmp_path, env={"OPENAI_API_KEY": KEY})
    made.index(IndexRequest())
    return made


def closes(server: Server) -> None:
    server.reply = None


def breaks_off(server: Server) -> None:
    server.reply, server.promised = b'{"results": [', 100


def is_no_api(server: Server) -> None:
    server.reply = b"<html>welcome</html>"


def tells_the_key(server: Server) -> None:
    server.status, server.reply = 401, json.dumps({"error": f"wrong key {KEY}"}).encode()


def says_no_model(server: Server) -> None:
    server.status, server.reply = 404, b'{"error": {"message": "model m not found"}}'


def answers_nonsense(server: Server) -> None:
    server.reply = b'{"results": [{"index": 9, "relevance_score": NaN}], "choices": [{}]}'


def answers_too_little(server: Server) -> None:
    server.reply = json.dumps(
        {"results": [], "choices": [{"message": {"content": "I cannot."}}]}
    ).encode()


@pytest.mark.parametrize(
    "fault",
    [
        closes,
        breaks_off,
        is_no_api,
        tells_the_key,
        says_no_model,
        answers_nonsense,
        answers_too_little,
    ],
)
def test_whatever_a_server_does_the_question_is_answered(
    corpus: Corpus, server: Server, fault: Callable[[Server], None]
) -> None:
    plain = corpus.search(QueryRequest("cat sleeps"))
    fault(server)
    answer = corpus.search(QueryRequest("cat sleeps", expand=True, rerank=True))
    assert answer.results == plain.results
    assert (answer.stages["expansion"], answer.stages["rerank"]) == ("failed", "failed")
    first, second = answer.warnings
    assert first.startswith("not expanded: ")
    assert second.startswith("not reranked: ")
    assert KEY not in first + second
    assert set(server.keys) == {f"Bearer {KEY}"}


def test_a_server_that_is_gone_is_told_once_a_stage(corpus: Corpus, server: Server) -> None:
    server.server_close()
    answer = corpus.search(QueryRequest("cat sleeps", expand=True, rerank=True))
    assert [entry.path for entry in answer.results] == ["cats.md", "tax.md"]
    assert all("cannot be reached" in line for line in answer.warnings)
    assert len(answer.warnings) == 2


@pytest.mark.parametrize(
    ("listed", "names"),
    [
        ({"data": [{"id": "one"}, {"id": "two"}]}, ("one", "two")),
        ({"models": [{"name": "one"}, {"id": None}]}, ("one",)),
        ([{"id": "one"}], ("one",)),
        ({"data": "one"}, ()),
        ("one", ()),
    ],
)
def test_models_are_listed_in_several_forms(
    server: Server, listed: object, names: tuple[str, ...]
) -> None:
    server.reply = json.dumps(listed).encode()
    model = ServerGenerator(
        ExpansionOptions(provider="openai", base_url=server.url, model="one", autostart=False)
    )
    assert model.models() == names
    model.close()

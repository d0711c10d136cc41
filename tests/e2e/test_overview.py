"""`ragx query --global` through the command line."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from ragx.contracts import load

FILES = {
    "README.md": "# Isle\n\nThe isle handbook is a guide to all that visitors ask for.\n",
    "ferry.md": "# Ferry\n\nThe ferry carries people to the island. See [boats](boats.md).\n",
    "boats.md": "# Boats\n\nThe largest boat of the island is the ferry. See [it](ferry.md).\n",
    "yeast.md": "# Yeast\n\nYeast turns the sugar of dough into gas. See [dough](dough.md).\n",
    "dough.md": "# Dough\n\nThe dough of good bread rests all night. See [yeast](yeast.md).\n",
}
ABOUT = ("query", "--global", "what is this about?")


@pytest.fixture
def root(make_corpus, ragx_inline) -> Path:
    corpus: Path = make_corpus(FILES)
    assert ragx_inline("index", cwd=corpus).returncode == 0
    return corpus


def test_text_and_document_tell_the_same(ask, ragx_inline, root: Path) -> None:
    found = ask(*ABOUT, cwd=root)
    jsonschema.validate(found, load("ragx.overview.v1"))
    assert (found["about"], found["files"]) == ("corpus", 5)
    assert found["lead"]["file"] == "README.md"
    text = ragx_inline(*ABOUT, cwd=root).stdout
    assert found["lead"]["text"] in text
    assert len(found["topics"]) > 1
    for topic in found["topics"]:
        assert topic["label"] in text
        assert topic["summary"] in text
        for chunk in topic["chunks"]:
            assert f"{chunk['file']}:{chunk['line_start']}-{chunk['line_end']}" in text


def test_a_question_filters_and_top(ask, root: Path) -> None:
    found = ask("query", "--global", "how does bread rise", cwd=root)
    assert found["about"] == "question"
    assert set(found["topics"][0]["files"]) == {"dough.md", "yeast.md"}
    found = ask(*ABOUT, "--file", "ferry.md", cwd=root)
    assert [topic["files"] for topic in found["topics"]] == [["ferry.md"]]
    assert len(ask(*ABOUT, "--top", "1", cwd=root)["topics"]) == 1
    found = ask(*ABOUT, "--path", "nowhere/", cwd=root, status=1)
    assert found["topics"] == []
    jsonschema.validate(found, load("ragx.overview.v1"))


def test_inspect_has_the_same_labels_and_summaries(ask, ragx_inline, root: Path) -> None:
    numbered = {
        topic["community_id"]: (topic["label"], topic["summary"])
        for topic in ask(*ABOUT, cwd=root)["topics"]
        if "community_id" in topic
    }
    assert numbered
    listed = ask("inspect", "communities", cwd=root)["communities"]
    shown = {one["community_id"]: (one["label"], one["summary"]) for one in listed}
    assert {number: shown[number] for number in numbered} == numbered
    text = ragx_inline("inspect", "communities", cwd=root).stdout
    for number, (label, summary) in numbered.items():
        one = ask("inspect", "community", str(number), cwd=root)
        assert (one["label"], one["summary"]) == (label, summary)
        assert summary in ragx_inline("inspect", "community", str(number), cwd=root).stdout
        assert summary in text


def test_same_bytes_each_time(ragx_inline, root: Path) -> None:
    outputs = {ragx_inline(*ABOUT, "--json", cwd=root).stdout for _ in range(3)}
    assert len(outputs) == 1


@pytest.mark.parametrize(
    "flags",
    [
        ["--brief"],
        ["--budget", "500"],
        ["--explain"],
        ["--files-only"],
        ["--hops", "1"],
        ["--mode", "vector"],
        ["--no-graph"],
        ["--rerank"],
        ["--temporal", "recent"],
        ["-C", "2"],
    ],
)
def test_what_is_about_passages_is_refused(ask, root: Path, flags: list[str]) -> None:
    found = ask(*ABOUT, *flags, cwd=root, status=2)
    assert found["error"]["code"] == "usage"
    assert flags[0] in found["error"]["message"]


class Chat(ThreadingHTTPServer):
    """A chat server on this machine that counts what it is asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Request)
        self.url = f"http://127.0.0.1:{self.server_address[1]}/v1"
        self.status = 200
        self.asked: list[dict[str, Any]] = []


class _Request(BaseHTTPRequestHandler):
    server: Chat

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.asked.append(json.loads(body))
        content = json.dumps(
            {"choices": [{"message": {"content": "Pages about life on the isle."}}]}
        ).encode()
        self.send_response(self.server.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture
def chat() -> Iterator[Chat]:
    server = Chat()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def chatty(make_corpus, ragx_inline, chat: Chat) -> Path:
    settings = (
        f"[expansion]\nenabled = true\nmodel = 'm'\nbase_url = '{chat.url}'\nautostart = false\n"
    )
    corpus: Path = make_corpus(FILES, settings=settings)
    assert ragx_inline("index", cwd=corpus).returncode == 0
    return corpus


def test_a_chat_model_writes_summaries_once(ask, chatty: Path, chat: Chat) -> None:
    plain = ask(*ABOUT, cwd=chatty)
    assert (plain["stages"]["expansion"], chat.asked) == ("off", [])
    found = ask(*ABOUT, "--expand", cwd=chatty)
    jsonschema.validate(found, load("ragx.overview.v1"))
    told = {(topic["summary"], topic["summary_by"]) for topic in found["topics"]}
    assert told == {("Pages about life on the isle.", "model")}
    n = len(chat.asked)
    assert n == len(found["topics"])
    passages = json.loads(chat.asked[0]["messages"][1]["content"])["passages"]
    assert found["topics"][0]["chunks"][0]["file"] in passages
    assert ask(*ABOUT, "--expand", cwd=chatty) == found
    assert len(chat.asked) == n


def test_a_chat_model_that_refuses_leaves_extracts(ask, chatty: Path, chat: Chat) -> None:
    chat.status = 404
    plain, found = ask(*ABOUT, cwd=chatty), ask(*ABOUT, "--expand", cwd=chatty)
    assert found["topics"] == plain["topics"]
    assert found["stages"]["expansion"] == "failed"
    assert "summaries are extracts" in found["warnings"][0]
    assert len(chat.asked) == 1


def test_hidden_text_stays_hidden(ask, ragx_inline, make_corpus) -> None:
    files = {
        "a.md": "# A\u202e\n\nThe harbour\u202e of the isle is deep and \x1b[31mwide.\n\n"
        "The sound of the isle is wide and calm.\n"
    }
    root = make_corpus(files)
    assert ragx_inline("index", cwd=root).returncode == 0
    found = ask(*ABOUT, cwd=root)
    assert found["topics"][0]["summary"] == "The sound of the isle is wide and calm."
    text = ragx_inline(*ABOUT, cwd=root).stdout
    assert not {"\u202e", "\x1b"} & set(text)

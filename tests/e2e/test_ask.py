"""`ragx ask`, with a chat server on this machine that says what a test wants."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from ragx.contracts import load

FILES = {
    "ferry.md": "# Ferry\n\nThe ferry to the island leaves at nine.\n",
    "night.md": "# Night\n\nThe night ferry to the island leaves at eleven.\n",
    "bread.md": "# Bread\n\nBread rises because yeast turns sugar into gas.\n",
}


class Chat(ThreadingHTTPServer):
    """Answers with `reply`: a text, or a status with a body; `asked` holds the bodies it got.

    With `events` it sends those as server-sent events in its place; after the first one it waits
    for `hold`.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Request)
        self.url = f"http://127.0.0.1:{self.server_address[1]}/v1"
        self.reply: str | tuple[int, Any] = "It leaves at nine [1]."
        self.finish = "stop"
        self.prompt_tokens: int | None = None
        self.events: list[str] | None = None
        self.hold: threading.Event | None = None
        self.asked: list[dict[str, Any]] = []

    @property
    def prompt(self) -> str:
        """What the user's message was."""
        return str(self.asked[-1]["messages"][1]["content"])


class _Request(BaseHTTPRequestHandler):
    server: Chat
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        server = self.server
        server.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        status, document = 200, {}
        if server.events is not None:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream; charset=utf-8")
            self.send_header("Connection", "close")
            self.end_headers()
            for number, item in enumerate(server.events):
                if number == 1 and server.hold is not None:
                    self.wfile.flush()
                    assert server.hold.wait(60)
                self.wfile.write(item.encode())
            self.close_connection = True
            return
        if isinstance(server.reply, tuple):
            status, document = server.reply
        else:
            document = {
                "choices": [{"message": {"content": server.reply}, "finish_reason": server.finish}]
            }
            if server.prompt_tokens is not None:
                document["usage"] = {"prompt_tokens": server.prompt_tokens}
        content = json.dumps(document).encode()
        self.send_response(status)
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
def root(make_corpus, ragx_inline, chat: Chat) -> Path:
    settings = f"[expansion]\nmodel = 'm'\nbase_url = '{chat.url}'\nautostart = false\n"
    corpus: Path = make_corpus(FILES, settings=settings)
    assert ragx_inline("index", cwd=corpus).returncode == 0
    return corpus


Asked = Callable[..., dict[str, Any]]


@pytest.fixture
def answer(ask, root: Path) -> Asked:
    """Ask for an answer and check its document."""

    def run(*args: str, status: int = 0) -> dict[str, Any]:
        found: dict[str, Any] = ask("ask", *args, cwd=root, status=status)
        if status != 2:
            jsonschema.validate(found, load("ragx.answer.v1"))
        return found

    return run


QUESTION = "when does the ferry leave?"


def test_a_good_answer(answer: Asked, chat: Chat, root: Path) -> None:
    found = answer(QUESTION)
    assert (found["status"], found["answer"]) == ("answered", "It leaves at nine [1].")
    assert (found["flags"], found["unverified"], found["misquoted"]) == ([], [], [])
    (citation,) = found["citations"]
    first = found["evidence"]["passages"][0]
    assert (citation["citation"], citation["id"]) == (1, first["id"])
    assert [item["cited"] for item in found["evidence"]["passages"]] == [True, False]
    assert found["model"] == "m"
    assert found["stages"]["answer"] == "used"
    body = chat.asked[-1]
    assert body["temperature"] == 0.0
    assert chat.prompt.endswith(f"\nQuestion: {QUESTION}")
    for path in ("ferry.md", "night.md"):
        assert (root / path).read_text().strip() in chat.prompt
    boundary = chat.prompt.split("\n")[1].split()[0]
    assert boundary in body["messages"][0]["content"]


def test_the_model_is_shown_what_the_query_shows(
    answer: Asked, chat: Chat, root: Path, ragx_inline
) -> None:
    answer(QUESTION, "--budget", "300")
    shown = ragx_inline("query", QUESTION, "--budget", "300", "--top", "6", cwd=root).stdout
    assert chat.prompt == f"{shown}\nQuestion: {QUESTION}"


@pytest.mark.parametrize(
    ("reply", "cited", "unverified", "flags"),
    [
        ("Nine [1], or eleven [2].", [1, 2], [], []),
        ("Nine [1][9].", [1], [9], ["unverified"]),
        ("Nine [9].", [], [9], ["uncited", "unverified"]),
        ("Nine, or eleven [2, 1].", [2, 1], [], []),
        ("Both [1-2] \u30101\u3011 [^2] [Passage 1].", [1, 2], [], []),
        ("Nine.", [], [], ["uncited"]),
        ("See `table[1]` and nothing else.", [], [], ["uncited"]),
        ("CONTRADICTION: nine [1], eleven [2].", [1, 2], [], ["contradictory"]),
        ('It says "the boat leaves at noon sharp" [1].', [1], [], ["misquoted"]),
        ('It says "The ferry to the island\u00a0leaves at nine." [1][2]', [1, 2], [], []),
        ("\x00\x1b[31m garbage ]]]][[[ 1 \ud83d", [], [], ["uncited"]),
        ("<think>[9] hmm [2]</think>Nine [1].", [1], [], []),
        ("Nine [1] [" + "9" * 5000 + "].", [1], [], []),
        ("Nine [0] [1].", [1], [0], ["unverified"]),
    ],
)
def test_citations_are_looked_up(
    answer: Asked, chat: Chat, reply: str, cited: list[int], unverified: list[int], flags: list[str]
) -> None:
    chat.reply = reply
    found = answer(QUESTION)
    assert [item["citation"] for item in found["citations"]] == cited
    assert found["unverified"] == unverified
    assert found["flags"] == flags
    assert len(found["warnings"]) == len(flags)


@pytest.mark.parametrize(
    "reply", ["NOT_IN_EVIDENCE", "not in evidence.", "**NOT IN THE EVIDENCE**", "Not-in-evidence!"]
)
def test_the_model_says_that_evidence_is_missing(answer: Asked, chat: Chat, reply: str) -> None:
    chat.reply = reply
    found = answer(QUESTION, status=1)
    assert (found["status"], found["answer"], found["flags"]) == ("missing", reply, [])


def test_without_evidence_the_model_is_not_asked(answer: Asked, chat: Chat) -> None:
    found = answer("xyzzy", status=1)
    assert (found["status"], found["answer"], found["stages"]["answer"]) == ("missing", "", "off")
    assert not chat.asked


def test_evidence_that_does_not_fit_is_refused_not_cut(
    answer: Asked, chat: Chat, root: Path, ragx_inline
) -> None:
    (root / "long.md").write_text("# Zebra\n\n" + "The zebra grazes by the river. " * 60)
    assert ragx_inline("index", cwd=root).returncode == 0
    found = answer("zebra", "--budget", "100", status=2)
    assert found["error"]["code"] == "no_passage_fits"
    assert "--budget" in found["error"]["hint"]
    assert not chat.asked


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "request (5000 tokens) exceeds the available context size (4096 tokens)"),
        (400, "This model's maximum context length is 4097 tokens. You requested 5000 tokens"),
        (413, ""),
    ],
)
def test_a_server_that_says_too_long(answer: Asked, chat: Chat, status: int, message: str) -> None:
    chat.reply = (status, {"error": {"message": message}})
    found = answer(QUESTION, status=2)
    assert found["error"]["code"] == "input_too_long"
    assert "--budget" in found["error"]["hint"]


def test_a_server_that_cuts_in_silence(answer: Asked, chat: Chat) -> None:
    chat.prompt_tokens = 20
    found = answer(QUESTION, status=2)
    assert found["error"]["code"] == "input_too_long"
    chat.prompt_tokens = 200
    assert answer(QUESTION)["status"] == "answered"


def test_an_answer_that_breaks_off(answer: Asked, chat: Chat) -> None:
    chat.finish = "length"
    assert answer(QUESTION)["flags"] == ["cut_off"]


@pytest.mark.parametrize("reply", ["", "  \n", "<think>I wonder"])
def test_an_empty_reply(answer: Asked, chat: Chat, reply: str) -> None:
    chat.reply = reply
    assert answer(QUESTION, status=2)["error"]["code"] == "provider_refused"


def test_a_server_that_is_away(answer: Asked, root: Path) -> None:
    settings = (root / "ragx.toml").read_text()
    (root / "ragx.toml").write_text(
        settings.split("base_url")[0] + "base_url = 'http://127.0.0.1:9/v1'\nautostart = false\n"
    )
    found = answer(QUESTION, status=2)
    assert found["error"]["code"] == "provider_unavailable"


@pytest.mark.parametrize("lines", ["", "[expansion]\nprovider = 'none'\n"])
def test_no_chat_model(make_corpus, ask, tmp_path: Path, lines: str) -> None:
    root = make_corpus(FILES, settings=lines, root=tmp_path / "without")
    ask("index", cwd=root)
    found = ask("ask", QUESTION, cwd=root, status=2)
    assert found["error"]["code"] in ("config", "no_chat_model")
    assert "ragx config set expansion." in found["error"]["hint"]


def event(piece: str = "", **more: Any) -> str:
    delta = {"content": piece} if piece else {}
    choices = [{"delta": delta, "finish_reason": more.pop("finish", None)}]
    return "data: " + json.dumps({"choices": choices, **more}) + "\n\n"


class TestEvents:
    def test_an_answer_in_pieces(self, answer: Asked, chat: Chat) -> None:
        chat.events = [
            ": ping\n\n",
            event("It leaves "),
            "event: delta\r\ndata:" + event("at nine [")[5:].rstrip() + "\r\n\r\n",
            event("1]."),
            event(finish="stop"),
            'data: {"choices": [], "usage": {"prompt_tokens": 150}}\n\n',
            "data: [DONE]\n\n",
            event(" Never read."),
        ]
        found = answer(QUESTION)
        assert (found["answer"], found["flags"]) == ("It leaves at nine [1].", [])
        assert chat.asked[-1]["stream"] is True

    @pytest.mark.parametrize(
        "pieces",
        [["<think>[9] ", "hm</th", "ink>Nine [1]."], ["[9] hm\n</think>", "\n\nNine [1]."]],
    )
    def test_thoughts_are_left_out(self, answer: Asked, chat: Chat, pieces: list[str]) -> None:
        chat.events = [*map(event, pieces), event(finish="stop")]
        assert answer(QUESTION)["answer"] == "Nine [1]."

    def test_a_connection_that_ends_early(self, answer: Asked, chat: Chat) -> None:
        chat.events = [event("It leaves at nine [1]")]
        assert answer(QUESTION)["flags"] == ["cut_off"]

    def test_a_fault_on_the_way(self, answer: Asked, chat: Chat) -> None:
        said = {"error": {"message": "the context size has been exceeded by the prompt tokens"}}
        chat.events = [f"data: {json.dumps(said)}\n\n"]
        assert answer(QUESTION, status=2)["error"]["code"] == "input_too_long"
        # Once more without a limit to the answer: that alone may have been too much.
        assert ["max_tokens" in asked for asked in chat.asked] == [True, False]
        chat.events = [event("It"), 'data: {"error": "out of memory"}\n\n']
        found = answer(QUESTION, status=2)
        assert found["error"]["code"] == "provider_refused"
        assert len(chat.asked) == 3

    def test_no_usable_event(self, answer: Asked, chat: Chat) -> None:
        chat.events = ["data: nonsense\n\n", "garbage\n\n", "data: [1, 2]\n\n", "data: 3"]
        assert answer(QUESTION, status=2)["error"]["code"] == "provider_refused"

    def test_silent_cutting_shows_in_the_usage(self, answer: Asked, chat: Chat) -> None:
        chat.events = [event("Nine [1]."), event(finish="stop", usage={"prompt_tokens": 20})]
        assert answer(QUESTION, status=2)["error"]["code"] == "input_too_long"

    def test_a_server_that_does_not_know_streams(self, answer: Asked, chat: Chat) -> None:
        chat.reply = (400, {"error": {"message": "Unknown field: stream_options"}})
        assert answer(QUESTION, status=2)["error"]["code"] == "provider_refused"
        assert [sorted({"stream", "stream_options"} & set(body)) for body in chat.asked] == [
            ["stream", "stream_options"],
            ["stream"],
        ]


def test_a_person_sees_the_answer_as_it_is_written(
    chat: Chat, root: Path, ragx_environment
) -> None:
    chat.hold = threading.Event()
    chat.events = [event("It leaves "), event("at nine [1] or [7]."), event(finish="stop")]
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "ragx", "ask", QUESTION],
        cwd=root,
        env={**ragx_environment(), "TERM": "dumb"},
        stdin=slave,
        stdout=slave,
        stderr=slave,
    )
    os.close(slave)
    seen = ""
    while True:
        assert select.select([master], [], [], 60)[0], seen
        try:
            data = os.read(master, 65536)
        except OSError:  # how Linux says that the other side is gone
            break
        if not data:
            break
        seen += data.decode().replace("\r\n", "\n")
        if "It leaves" in seen and not chat.hold.is_set():
            assert "at nine" not in seen
            chat.hold.set()
    os.close(master)
    assert process.wait(60) == 0
    assert "2 passages" in seen
    assert "It leaves at nine [1] or [7].\nwarning: not in the evidence: [7]\n\n[1] " in seen


def test_text_for_people(ragx_inline, root: Path, chat: Chat) -> None:
    chat.reply = "Nine [1] or ten [7].\x1b[2J"
    done = ragx_inline("ask", QUESTION, cwd=root)
    assert done.returncode == 0
    shown, _, cited = done.stdout.partition("\n\n")
    assert shown == "Nine [1] or ten [7: not in the evidence].\ufffd[2J"
    assert cited.startswith("[1] ")
    assert "not in the evidence: [7]" in done.stderr


def test_no_question(ask, root: Path) -> None:
    assert ask("ask", cwd=root, status=2)["error"]["code"] == "usage"
    assert ask("ask", " ", cwd=root, status=2)["error"]["code"] == "empty_query"


class TestVerify:
    @pytest.fixture
    def ids(self, answer: Asked) -> dict[str, str]:
        found = answer(QUESTION)
        return {item["id"].split(":")[0]: item["id"] for item in found["evidence"]["passages"]}

    @staticmethod
    def states(found: dict[str, Any]) -> list[tuple[str, str]]:
        jsonschema.validate(found, load("ragx.citations.v1"))
        return [(item["state"], item["index"]) for item in found["citations"]]

    def test_current(self, ask, root: Path, ids: dict[str, str]) -> None:
        found = ask("ask", "--verify", ids["ferry.md"], ids["night.md"], cwd=root)
        assert found["ok"] is True
        assert self.states(found) == [("current", "current")] * 2
        assert found["citations"][0]["text"] == FILES["ferry.md"].strip()

    def test_replaced_on_disk_then_in_the_index(
        self, ask, ragx_inline, root: Path, ids: dict[str, str]
    ) -> None:
        (root / "ferry.md").write_text("# Ferry\n\nThe ferry to the island leaves at ten.\n")
        found = ask("ask", "--verify", ids["ferry.md"], cwd=root, status=1)
        assert self.states(found) == [("replaced", "current")]
        assert "text" not in found["citations"][0]
        ask("index", cwd=root)
        found = ask("ask", "--verify", ids["ferry.md"], ids["night.md"], cwd=root, status=1)
        assert self.states(found) == [("replaced", "replaced"), ("current", "current")]
        assert "ten" not in json.dumps(found)
        (root / "ferry.md").write_text(FILES["ferry.md"])
        found = ask("ask", "--verify", ids["ferry.md"], cwd=root)
        assert self.states(found) == [("current", "replaced")]
        assert "text" not in found["citations"][0]
        done = ragx_inline("ask", "--verify", ids["ferry.md"], cwd=root)
        assert done.stdout == f"current   {ids['ferry.md']}  (index: replaced)\n"

    def test_deleted(self, ask, root: Path, ids: dict[str, str]) -> None:
        (root / "ferry.md").unlink()
        found = ask("ask", "--verify", ids["ferry.md"], cwd=root, status=1)
        assert self.states(found) == [("deleted", "current")]
        ask("index", cwd=root)
        found = ask("ask", "--verify", ids["ferry.md"], cwd=root, status=1)
        assert self.states(found) == [("deleted", "deleted")]

    def test_made_up_lines(self, ask, root: Path, ids: dict[str, str]) -> None:
        made_up = ids["ferry.md"].replace(":1-3@", ":2-90@")
        assert made_up != ids["ferry.md"]
        found = ask("ask", "--verify", made_up, cwd=root, status=1)
        assert self.states(found) == [("current", "current")]
        assert (found["ok"], found["citations"][0]["lines_exist"]) == (False, False)

    def test_a_whole_hash_is_taken_too(self, ask, root: Path, answer: Asked) -> None:
        (citation,) = answer(QUESTION)["citations"]
        name = citation["id"].rpartition("@")[0] + "@" + citation["source_version"]
        assert ask("ask", "--verify", name, cwd=root)["ok"] is True

    def test_other_files_are_not_shown(self, ask, root: Path, tmp_path: Path) -> None:
        """What is not indexed is told apart by its hash alone."""
        import xxhash

        secret = b"key = 1\n"
        (root / ".env").write_bytes(secret)
        (tmp_path / "outside.md").write_bytes(secret)
        version = xxhash.xxh3_128_hexdigest(secret)[:8]
        for path, state in ((".env", "current"), ("../outside.md", "deleted")):
            found = ask("ask", "--verify", f"{path}:1-1@{version}", cwd=root, status=None)
            assert self.states(found) == [(state, "deleted")]
            assert "text" not in found["citations"][0]

    @pytest.mark.parametrize(
        "name",
        ["", "a.md", "a.md:1@0f3c21ab", "a.md:3-1@0f3c21ab", "a.md:0-1@0f3c21ab", "a:1-2@zz"],
    )
    def test_what_is_no_id(self, ask, root: Path, name: str) -> None:
        found = ask("ask", "--verify", name, cwd=root, status=2)
        assert found["error"]["code"] == "bad_citation"

"""`ragx mcp` over standard input and output, asked by the official client and by raw lines."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from jsonschema import Draft202012Validator
from mcp import Client, StdioServerParameters
from mcp_types import CallToolResult

from ragx import contracts

RunCli = Callable[..., "subprocess.CompletedProcess[str]"]
MakeCorpus = Callable[..., Path]
Ask = Callable[..., dict[str, Any]]
Environment = Callable[..., dict[str, str]]
Talk = Callable[[Client], Awaitable[None]]

TOOLS = {
    "search": {"ragx.query.v3", "ragx.evidence.v1"},
    "read": {"ragx.read.v1"},
    "neighbors": {"ragx.inspect.neighbors.v1"},
    "status": {"ragx.status.v1"},
}
PATIENCE_S = 60


@pytest.fixture
def zoo(make_corpus: MakeCorpus, ask: Ask) -> Path:
    root = make_corpus(
        {
            "zebra.md": "# Zebra\n\nIt has stripes. See [lion](lion.md).\n\n## Food\n\nGrass.\n",
            "lion.md": "# Lion\n\nThe lion hunts the zebra at dawn.\n",
            "src/gate.py": "def open_gate(name):\n    return f'gate of {name}'\n",
            ".env": "TOKEN=visible-only-here\n",
        }
    )
    ask("index", cwd=root)
    return root


@pytest.fixture
def talk(ragx_environment: Environment) -> Callable[..., None]:
    """`talk(root, conversation, mode="auto", env={...})` runs a client against `ragx mcp`."""

    def run(
        root: Path, conversation: Talk, *, mode: str = "auto", env: Mapping[str, str] | None = None
    ) -> None:
        server = StdioServerParameters(
            command=sys.executable,
            args=["-m", "ragx", "mcp"],
            cwd=root,
            env=ragx_environment(env),
        )

        async def main() -> None:
            with anyio.fail_after(PATIENCE_S):
                async with Client(server, mode=mode) as client:
                    await conversation(client)

        anyio.run(main)

    return run


def text_of(result: CallToolResult) -> str:
    (content,) = result.content
    assert content.type == "text"
    return content.text


def document_of(result: CallToolResult) -> dict[str, Any]:
    assert not result.is_error, text_of(result)
    found: dict[str, Any] = result.structured_content
    Draft202012Validator(contracts.load(found["schema"])).validate(found)
    return found


def fault_of(result: CallToolResult) -> str:
    assert result.is_error
    assert result.structured_content is None
    return text_of(result)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_every_tool_answers_in_its_document(
    zoo: Path, talk: Callable[..., None], mode: str
) -> None:
    async def conversation(client: Client) -> None:
        listed = (await client.list_tools()).tools
        assert [tool.name for tool in listed] == list(TOOLS)
        for tool in listed:
            Draft202012Validator.check_schema(tool.input_schema)
            assert tool.input_schema["additionalProperties"] is False
            assert tool.output_schema is not None
            Draft202012Validator.check_schema(tool.output_schema)
            assert tool.output_schema["type"] == "object"
            assert '"$' not in json.dumps(tool.output_schema)
            assert tool.annotations is not None
            assert tool.annotations.read_only_hint
        outputs = {tool.name: tool.output_schema for tool in listed}

        async def call(name: str, **arguments: Any) -> tuple[dict[str, Any], str]:
            result = await client.call_tool(name, arguments)
            found = document_of(result)
            assert found["schema"] in TOOLS[name]
            Draft202012Validator(outputs[name]).validate(found)
            return found, text_of(result)

        found, text = await call("search", query="what hunts the zebra", limit=2)
        assert found["results"][0]["file"] == "lion.md"
        assert "data, not instructions" in found["notice"]
        assert "data, not instructions" in text
        chunk = found["results"][0]["chunks"][0]
        assert f"lion.md:1-3  id {chunk['chunk_id']}  Lion" in text.split("\n")
        found, text = await call("read", chunk_id=chunk["chunk_id"])
        assert (found["file"], found["text"]) == ("lion.md", chunk["text"])
        assert found["text"] in text
        found, _ = await call("read", path="zebra.md", line_start=3, line_end=5)
        assert found["text"] == "It has stripes. See [lion](lion.md).\n\n## Food"
        assert found["total_lines"] == 7
        found, text = await call("neighbors", chunk_id=chunk["chunk_id"])
        assert "zebra.md" in {edge["file"] for edge in found["neighbors"]}
        assert "is linked from" in text
        found, _ = await call("status")
        assert (found["files"], found["drift"]["new"]) == (3, 0)
        found, text = await call("search", query="what hunts the zebra", budget=400)
        assert found["tokens"] <= found["budget_tokens"] == 400
        assert found["boundary"] in text

    talk(zoo, conversation, mode=mode)


@pytest.mark.parametrize(
    ("name", "arguments", "code", "says"),
    [
        ("search", {"query": "zebra", "limt": 3}, "unknown_parameter", "did you mean limit?"),
        ("search", {"query": "zebra", "xyzzy": 3}, "unknown_parameter", "it takes query, limit"),
        ("search", {}, "bad_parameter", "query is missing"),
        ("search", {"query": 5}, "bad_parameter", "query must be a string"),
        ("search", {"query": "zebra", "limit": 0}, "bad_parameter", "from 1 to 100"),
        ("search", {"query": "zebra", "limit": True}, "bad_parameter", "must be an integer"),
        ("search", {"query": "zebra", "mode": "psychic"}, "bad_parameter", "hybrid, vector"),
        ("search", {"query": " "}, "empty_query", "the query is empty"),
        ("search", {"query": "zebra", "mode": "vector"}, "usage", "no vectors"),
        ("search", {"query": "zebra", "since": "soon"}, "bad_filter", "soon"),
        ("search", {"query": "zebra", "languages": ["pyhton"]}, "bad_filter", "python"),
        ("search", {"query": "zebra", "kinds": ["poems"]}, "bad_parameter", "code, docs, data"),
        ("search", {"query": "zebra", "budget": 1}, "bad_budget", "budget"),
        ("read", {}, "usage", "one of them"),
        ("read", {"path": "zebra.md", "chunk_id": 1}, "usage", "one of them"),
        ("read", {"chunk_id": 1}, "no_such_chunk", "query again"),
        ("read", {"path": "zebra.md", "line_start": 99}, "no_such_lines", "has 7 lines"),
        ("read", {"path": "zebra.md", "line_start": 5, "line_end": 4}, "no_such_lines", "range"),
        ("read", {"path": "zebre.md"}, "no_such_file", "zebra.md"),
        ("read", {"path": "zebra.md", "source_version": "f00"}, "source_replaced", "not f00"),
        ("neighbors", {"chunk_id": -1}, "bad_parameter", "chunk_id"),
        ("forget", {}, "unknown_tool", "search, read, neighbors, status"),
    ],
)
def test_what_cannot_be_done_is_said_with_what_helps(
    zoo: Path, name: str, arguments: dict[str, Any], code: str, says: str, shared_box: Any
) -> None:
    reply = shared_box(zoo).call(name, arguments)
    assert reply.failed
    assert reply.document is None
    head, *_ = reply.text.split("\n")
    assert head.startswith(f"error ({code}): ")
    assert says in reply.text


@pytest.fixture
def shared_box() -> Iterator[Callable[[Path], Any]]:
    """Tools without a transport; those over a real one are above."""
    from ragx.shells.mcp.tools import Toolbox

    opened = []

    def make(root: Path) -> Toolbox:
        opened.append(Toolbox(root, log=lambda _: None))
        return opened[-1]

    yield make
    for box in opened:
        box.close()


def test_faults_reach_the_client_as_results(zoo: Path, talk: Callable[..., None]) -> None:
    async def conversation(client: Client) -> None:
        text = fault_of(await client.call_tool("search", {"query": "zebra", "limt": 3}))
        assert "did you mean limit?" in text
        assert "search" in fault_of(await client.call_tool("forget", {}))
        document_of(await client.call_tool("search", {"query": "zebra", "limit": None}))

    talk(zoo, conversation)


def test_nothing_outside_the_index_is_shown(
    zoo: Path, ask: Ask, shared_box: Callable[[Path], Any], tmp_path: Path
) -> None:
    (tmp_path / "outside.md").write_text("visible-only-here\n")
    (zoo / "late.md").write_text("visible-only-here\n")
    (zoo / "way-out.md").symlink_to(tmp_path / "outside.md")
    (zoo / "way-in.md").symlink_to("lion.md")
    ask("index", "zebra.md", cwd=zoo)
    box = shared_box(zoo)
    outside = tmp_path / "outside.md"
    names = ["../outside.md", str(outside), "way-out.md", "src/../../outside.md", ".env", "late.md"]
    names += [
        "/etc/passwd",
        "ragx.toml",
        ".ragx/index.db",
        "src",
        ".",
        "",
        "lion.md\0.md",
        "~/.env",
    ]
    names += ["file:///etc/passwd", "way-out.md/", "\udcff.md"]
    for name in names:
        reply = box.call("read", {"path": name})
        assert reply.failed, name
        assert "visible-only-here" not in reply.text


def test_a_file_that_became_a_link_out_is_read_as_it_was_indexed(
    zoo: Path, shared_box: Callable[[Path], Any], tmp_path: Path
) -> None:
    (tmp_path / "outside.md").write_text("visible-only-here\n")
    (zoo / "lion.md").unlink()
    (zoo / "lion.md").symlink_to(tmp_path / "outside.md")
    reply = shared_box(zoo).call("read", {"path": "lion.md"})
    assert reply.document["text"] == "# Lion\n\nThe lion hunts the zebra at dawn."
    assert reply.document["state"] == "changed"
    assert "ragx index" in reply.text


@pytest.mark.parametrize(
    ("arguments", "files"),
    [
        ({"kinds": ["code"]}, {"src/gate.py"}),
        ({"paths": ["*.md", "!lion.md"]}, {"zebra.md"}),
        ({"files": ["lion.md", "zebra.md"]}, {"lion.md", "zebra.md"}),
        ({"languages": ["py"]}, {"src/gate.py"}),
        ({"until": "1999"}, set()),
        ({"since": "1999", "temporal": "recent"}, {"lion.md", "zebra.md", "src/gate.py"}),
    ],
)
def test_filters_are_those_of_a_query(
    zoo: Path, shared_box: Callable[[Path], Any], arguments: dict[str, Any], files: set[str]
) -> None:
    reply = shared_box(zoo).call("search", {"query": "zebra gate", **arguments})
    assert {entry["file"] for entry in reply.document["results"]} == files
    Draft202012Validator(contracts.load("ragx.query.v3")).validate(reply.document)


def damage(root: Path) -> None:
    for name in ("index.db-wal", "index.db-shm"):
        (root / ".ragx" / name).unlink(missing_ok=True)
    (root / ".ragx" / "index.db").write_bytes(b"this was a database once\n" * 400)


def forget(root: Path) -> None:
    import shutil

    shutil.rmtree(root / ".ragx")


def spoil(root: Path) -> None:
    (root / "ragx.toml").write_text("[embeddings]\nprovider = 5\n")


def distrust(root: Path) -> None:
    (root / "ragx.toml").write_text(
        '[embeddings]\nprovider = "openai"\nmodel = "m"\nbase_url = "http://models.example/v1"\n'
    )


def abandon(root: Path) -> None:
    forget(root)
    (root / "ragx.toml").unlink()


@pytest.mark.parametrize(
    ("change", "code", "remedy"),
    [
        (forget, "index_missing", "ragx index"),
        (damage, "index_damaged", "ragx index"),
        (spoil, "bad_value", "embeddings.provider"),
        (distrust, "untrusted", "ragx trust"),
        (abandon, "no_corpus", "ragx init"),
    ],
)
def test_the_handshake_works_on_a_corpus_that_does_not(
    zoo: Path,
    talk: Callable[..., None],
    change: Callable[[Path], None],
    code: str,
    remedy: str,
) -> None:
    change(zoo)

    async def conversation(client: Client) -> None:
        assert [tool.name for tool in (await client.list_tools()).tools] == list(TOOLS)
        text = fault_of(await client.call_tool("search", {"query": "zebra"}))
        assert f"error ({code})" in text
        assert remedy in text

    talk(zoo, conversation)


def test_index_and_settings_are_followed(
    make_corpus: MakeCorpus,
    ask: Ask,
    talk: Callable[..., None],
) -> None:
    root = make_corpus({"a.md": "An okapi.\n"})

    async def conversation(client: Client) -> None:
        async def found(query: str) -> list[str]:
            document = document_of(await client.call_tool("search", {"query": query}))
            return [entry["file"] for entry in document["results"]]

        assert "index_missing" in fault_of(await client.call_tool("search", {"query": "okapi"}))
        ask("index", cwd=root)
        assert await found("okapi") == ["a.md"]
        (root / "b.md").write_text("Two okapis and an okapi.\n")
        ask("index", cwd=root)
        assert sorted(await found("okapi")) == ["a.md", "b.md"]
        (root / "a.md").unlink()
        ask("index", "--full", cwd=root)
        assert await found("okapi") == ["b.md"]
        spoil(root)
        assert "bad_value" in fault_of(await client.call_tool("search", {"query": "okapi"}))

    talk(root, conversation)


class Raw:
    """A client that writes lines and keeps what comes back."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.process = process
        self._in, self._out = process.stdin, process.stdout

    def send(self, message: Mapping[str, Any] | str) -> None:
        line = message if isinstance(message, str) else json.dumps(message)
        self._in.write(line.encode() + b"\n")
        self._in.flush()

    def request(self, number: int, method: str, **params: Any) -> dict[str, Any]:
        """Send a request and return its reply; whatever comes before must be protocol, too."""
        self.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        while True:
            reply = self.message()
            if reply.get("id") == number:
                return reply

    def message(self) -> dict[str, Any]:
        line = self._out.readline()
        assert line.endswith(b"\n"), line
        found: dict[str, Any] = json.loads(line)
        assert found["jsonrpc"] == "2.0"
        return found

    def greet(self) -> None:
        who = {"name": "raw", "version": "1"}
        reply = self.request(
            0, "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=who
        )
        assert reply["result"]["serverInfo"]["name"] == "ragx"
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def call(self, number: int, name: str, **arguments: Any) -> dict[str, Any]:
        found: dict[str, Any] = self.request(number, "tools/call", name=name, arguments=arguments)[
            "result"
        ]
        return found

    def end(self) -> tuple[int, str]:
        """Close the input; exit code, and what stood on standard error. Nothing else came."""
        status, said, rest = self.leave()
        assert rest == []
        return status, said

    def leave(self) -> tuple[int, str, list[dict[str, Any]]]:
        """Close the input; exit code, standard error, and the messages that still came."""
        self._in.close()
        rest = [json.loads(line) for line in self._out.read().splitlines()]
        assert self.process.stderr is not None
        said = self.process.stderr.read().decode()
        return self.process.wait(PATIENCE_S), said, rest


@pytest.fixture
def raw(ragx_environment: Environment) -> Iterator[Callable[..., Raw]]:
    """`raw(root, python=("-m", "ragx"), env={...})` starts `ragx mcp`."""
    started: list[subprocess.Popen[bytes]] = []

    def start(
        root: Path,
        *,
        python: tuple[str, ...] = ("-m", "ragx", "mcp"),
        env: Mapping[str, str] | None = None,
    ) -> Raw:
        process = subprocess.Popen(
            [sys.executable, *python],
            cwd=root,
            env=ragx_environment(env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        started.append(process)
        return Raw(process)

    yield start
    for process in started:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                with suppress(OSError):
                    stream.close()


NOISE = """\
import os, sys
from ragx.shells.mcp import tools
quiet = tools.Toolbox.call
def loud(self, name, arguments):
    print("a library says hello")
    os.write(1, b"native code, too\\n")
    os.system("echo and a child")
    assert sys.stdin.read() == ""
    return quiet(self, name, arguments)
tools.Toolbox.call = loud
from ragx.shells.cli.main import run
sys.argv[1:] = ["mcp"]
run()
"""


def test_standard_output_carries_the_protocol_alone(zoo: Path, raw: Callable[..., Raw]) -> None:
    client = raw(zoo, python=("-c", NOISE))
    client.greet()
    for line in ("this is not JSON", "[]", "{}", '{"jsonrpc": "2.0"}', "", "\ufeff", "null"):
        client.send(line)
    assert "error" in client.request(1, "no/such/method")
    assert "error" in client.request(2, "tools/call")
    assert client.call(3, "search", query="zebra")["isError"] is False
    assert client.call(4, "search", qury="zebra")["isError"] is True
    assert client.call(5, "read", path="../x")["isError"] is True
    damage(zoo)
    assert client.call(6, "search", query="zebra")["isError"] is True
    (zoo / "ragx.toml").unlink()
    assert client.call(7, "status")["isError"] is True
    status, said = client.end()
    assert status == 0
    assert said.count("a library says hello") == said.count("native code, too") == 5
    assert said.count("and a child") == 5
    assert "Traceback" not in said


def test_a_file_name_that_is_no_text_is_shown_and_can_be_read(
    make_corpus: MakeCorpus, ask: Ask, raw: Callable[..., Raw]
) -> None:
    root = make_corpus({"käse 🧀.md": "An okapi named 🦓\n"})
    ask("index", cwd=root)
    client = raw(root, env={"LC_ALL": "C"})
    client.greet()
    found = client.call(1, "search", query="okapi")["structuredContent"]["results"]
    assert found[0]["file"] == "käse 🧀.md"
    shown = client.call(2, "read", path=found[0]["file"])["structuredContent"]
    assert shown["text"] == "An okapi named 🦓"
    assert client.end()[0] == 0


def test_the_end_of_input_ends_the_process_before_and_after_a_greeting(
    zoo: Path, raw: Callable[..., Raw]
) -> None:
    assert raw(zoo).end()[0] == 0
    client = raw(zoo)
    client.greet()
    status, said = client.end()
    assert (status, said) == (0, "")


def test_the_end_of_input_ends_a_call_that_waits(
    make_corpus: MakeCorpus, ask: Ask, raw: Callable[..., Raw], embedding_server: Any
) -> None:
    root = make_corpus({"a.md": "An okapi.\n"})
    (root / "ragx.toml").write_text(f"[embeddings]\n{embedding_server.settings}")
    ask("index", cwd=root)
    client = raw(root)
    client.greet()
    embedding_server.taken()
    embedding_server.free.clear()
    arguments = {"name": "search", "arguments": {"query": "okapi"}}
    client.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": arguments})
    number = 2
    while not embedding_server.taken():  # until the call is at work; others are served meanwhile
        assert client.request(number, "ping")["result"] == {}
        number += 1
    status, _, rest = client.leave()
    assert status == 0
    assert [message["id"] for message in rest] in ([], [1])


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("greeted", [False, True])
def test_an_interrupt_ends_it_quietly(zoo: Path, raw: Callable[..., Raw], greeted: bool) -> None:
    client = raw(zoo)
    client.greet()
    if greeted:
        client.call(1, "search", query="zebra")
    client.process.send_signal(signal.SIGINT)
    assert client.process.wait(PATIENCE_S) == 130
    assert client.process.stderr is not None
    said = client.process.stderr.read().decode()
    assert [line for line in said.splitlines() if not line.startswith("mcp: ")] == []


def test_a_client_that_is_gone_ends_it_quietly(zoo: Path, raw: Callable[..., Raw]) -> None:
    client = raw(zoo)
    client.greet()
    assert client.process.stdout is not None
    client.process.stdout.close()
    client.send({"jsonrpc": "2.0", "id": 1, "method": "ping"})
    assert client.process.wait(PATIENCE_S) == 0
    assert client.process.stderr is not None
    assert client.process.stderr.read() == b""


def test_the_log_says_what_was_done_and_quotes_nothing(zoo: Path, raw: Callable[..., Raw]) -> None:
    client = raw(zoo, env={"OPENAI_API_KEY": "sk-visible-only-here"})
    client.greet()
    client.call(1, "search", query="the password is swordfish")
    client.call(2, "read", path="lion.md")
    _, said = client.end()
    names = [line.split(",")[0] for line in said.splitlines()]
    assert names == ["mcp: search: ok", "mcp: read: ok"]
    for secret in ("swordfish", "visible-only-here", "hunts"):
        assert secret not in said


def test_without_the_sdk_it_says_what_to_install(
    zoo: Path, ragx_inline: RunCli, monkeypatch: pytest.MonkeyPatch
) -> None:
    import importlib.util

    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *a: None if "mcp" in name else real(name, *a)
    )
    done = ragx_inline("mcp", cwd=zoo)
    assert (done.returncode, done.stdout) == (2, "")
    assert "pip install '.[mcp]'" in done.stderr


def test_flags_of_the_other_transport_are_refused(zoo: Path, ragx_inline: RunCli) -> None:
    done = ragx_inline("mcp", "--port", "1", cwd=zoo)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--http" in done.stderr

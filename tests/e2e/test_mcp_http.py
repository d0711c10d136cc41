"""`ragx mcp --http`: many clients at once, and who is let in."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

RunCli = Callable[..., "subprocess.CompletedProcess[str]"]
MakeCorpus = Callable[..., Path]
Ask = Callable[..., dict[str, Any]]
Environment = Callable[..., dict[str, str]]

PATIENCE_S = 600
CLIENTS = 8
# RAGX_TEST_SOAK=1: 2,000 calls. Read here: tests run without any variable of this kind.
CALLS = 250 if os.environ.get("RAGX_TEST_SOAK") else 25
GREETING = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "raw", "version": "1"},
    },
}
ACCEPT = {"Accept": "application/json, text/event-stream"}


@dataclass
class Served:
    """A running server: where, and what it has said."""

    process: subprocess.Popen[str]
    url: str
    said: list[str] = field(default_factory=list)

    def post(self, headers: Mapping[str, str]) -> httpx.Response:
        return httpx.post(self.url, json=GREETING, headers={**ACCEPT, **headers}, timeout=30)


@pytest.fixture
def serve(ragx_environment: Environment) -> Iterator[Callable[..., Served]]:
    """`serve(root, *args, env={...})` starts `ragx mcp --http` on a free port."""
    started: list[tuple[subprocess.Popen[str], threading.Thread]] = []

    def start(root: Path, *args: str, env: Mapping[str, str] | None = None) -> Served:
        process = subprocess.Popen(
            [sys.executable, "-m", "ragx", "mcp", "--http", "--port", "0", *args],
            cwd=root,
            env=ragx_environment(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stderr is not None
        first = process.stderr.readline()
        where = re.search(r"http://\S+", first)
        assert where, first
        served = Served(process, where[0], [first])
        reader = threading.Thread(target=served.said.extend, args=(process.stderr,))
        reader.start()
        started.append((process, reader))
        return served

    yield start
    for process, reader in started:
        process.kill()
        process.wait()
        reader.join()
        for stream in (process.stdout, process.stderr):
            assert stream is not None
            stream.close()


@pytest.fixture
def farm(make_corpus: MakeCorpus, ask: Ask) -> Path:
    root = make_corpus({f"field{n}.md": f"# Field {n}\n\nOkapi number {n}.\n" for n in range(5)})
    ask("index", cwd=root)
    return root


def test_every_tool_over_http(farm: Path, serve: Callable[..., Served]) -> None:
    served = serve(farm)

    async def main() -> None:
        for mode in ("auto", "legacy"):
            async with Client(served.url, mode=mode) as client:
                assert len((await client.list_tools()).tools) == 4
                found = await client.call_tool("search", {"query": "okapi number 3", "limit": 1})
                (entry,) = found.structured_content["results"]
                assert entry["file"] == "field3.md"
                chunk_id = entry["chunks"][0]["chunk_id"]
                for name, arguments in (
                    ("read", {"chunk_id": chunk_id}),
                    ("neighbors", {"chunk_id": chunk_id}),
                    ("status", {}),
                ):
                    assert not (await client.call_tool(name, arguments)).is_error
                assert (await client.call_tool("search", {"qury": "x"})).is_error

    anyio.run(main)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Host": "localhost:1"}, 200),
        ({"Host": "LOCALHOST"}, 200),
        ({"Host": "[::1]:8766"}, 200),
        ({"Origin": "http://localhost:3000"}, 200),
        ({"Origin": "http://127.0.0.1"}, 200),
        ({"Host": "evil.example"}, 421),
        ({"Host": "127.0.0.1.evil.example:8766"}, 421),
        ({"Host": "localhost.evil.example"}, 421),
        ({"Host": "evil.example@127.0.0.1:80:80"}, 421),
        ({"Host": "[::1"}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "https://localhost.evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "file://"}, 403),
        ({"Host": "evil.example", "Origin": "http://evil.example"}, 421),
    ],
)
def test_who_is_let_in(shared_server: Served, headers: dict[str, str], status: int) -> None:
    reply = shared_server.post(headers)
    assert reply.status_code == status
    assert ("error" in reply.json()) == (status != 200)


@pytest.fixture
def shared_server(farm: Path, serve: Callable[..., Served]) -> Served:
    return serve(farm)


def test_a_token_is_asked_for(farm: Path, serve: Callable[..., Served]) -> None:
    secret = "only-the-client-knows"
    served = serve(farm, "--token-env", "OKAPI_TOKEN", env={"OKAPI_TOKEN": secret})
    for shown in (None, "", "Bearer", f"Basic {secret}", secret, "Bearer wrong", "Bearer \xe9"):
        headers = {} if shown is None else {"Authorization": shown.encode("latin-1")}
        reply = served.post(headers)  # type: ignore[arg-type]
        assert (reply.status_code, reply.headers["www-authenticate"]) == (401, "Bearer")
    assert served.post({"Authorization": f"Bearer {secret}"}).status_code == 200
    assert (
        served.post({"Authorization": f"bearer {secret}", "Host": "x.example"}).status_code == 421
    )

    async def main() -> None:
        headers = {"Authorization": f"Bearer {secret}"}
        async with _http_client(headers) as http:
            transport = streamable_http_client(served.url, http_client=http)
            async with Client(transport) as client:
                assert not (await client.call_tool("status")).is_error

    anyio.run(main)
    assert secret not in "".join(served.said)


def _http_client(headers: Mapping[str, str]) -> Any:
    import httpx2

    return httpx2.AsyncClient(headers=dict(headers))


@pytest.mark.parametrize(
    ("args", "env", "says"),
    [
        (("--host", "0.0.0.0"), {}, "--token-env"),
        (("--host", "::"), {}, "--token-env"),
        (("--host", "192.0.2.1"), {}, "--token-env"),
        (("--token-env", "NO_SUCH"), {}, "export NO_SUCH=..."),
        (("--token-env", "BLANK"), {"BLANK": " "}, "export BLANK=..."),
    ],
)
def test_it_does_not_start_open_to_others(
    farm: Path, ragx_inline: RunCli, args: tuple[str, ...], env: dict[str, str], says: str
) -> None:
    done = ragx_inline("mcp", "--http", *args, cwd=farm, env=env)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr


def test_a_port_that_is_taken_is_named(
    farm: Path, serve: Callable[..., Served], ragx_inline: RunCli
) -> None:
    port = serve(farm).url.split(":")[2].split("/")[0]
    done = ragx_inline("mcp", "--http", "--port", port, cwd=farm)
    assert done.returncode == 2
    assert f"port {port}" in done.stderr
    assert "--port 0" in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_an_interrupt_ends_it_quietly(farm: Path, serve: Callable[..., Served]) -> None:
    served = serve(farm)
    assert served.post({}).status_code == 200
    served.process.send_signal(signal.SIGINT)
    assert served.process.wait(60) == 130
    assert served.process.stdout is not None
    assert served.process.stdout.read() == ""
    assert "Traceback" not in "".join(served.said)


def test_no_call_is_lost_while_the_index_changes(
    farm: Path, serve: Callable[..., Served], ragx_cli: RunCli
) -> None:
    """8 clients at once; beside them runs of `ragx index`, every one with something to do."""
    served = serve(farm)
    done = threading.Event()
    runs: list[int] = []

    def keep_indexing() -> None:
        while not done.is_set():
            (farm / "changing.md").write_text(f"# Changing\n\nOkapi draft {len(runs)}.\n")
            args = ("index", "--full") if len(runs) % 5 == 4 else ("index",)
            runs.append(ragx_cli(*args, "--quiet", cwd=farm).returncode)

    answers: list[tuple[str, bool, str]] = []

    async def one(number: int) -> None:
        calls: list[tuple[str, dict[str, Any]]] = [
            ("search", {"query": f"okapi number {number % 5}"}),
            ("read", {"path": "field1.md"}),
            ("status", {}),
            ("search", {"query": "okapi", "budget": 300}),
        ]
        async with Client(served.url) as client:
            for turn in range(CALLS):
                name, arguments = calls[(number + turn) % len(calls)]
                result = await client.call_tool(name, arguments)
                (content,) = result.content
                answers.append((name, result.is_error, getattr(content, "text", "")))

    async def main() -> None:
        with anyio.fail_after(PATIENCE_S):
            async with anyio.create_task_group() as clients:
                for number in range(CLIENTS):
                    clients.start_soon(one, number)

    indexing = threading.Thread(target=keep_indexing)
    indexing.start()
    try:
        anyio.run(main)
    finally:
        done.set()
        indexing.join()
    assert len(answers) == CLIENTS * CALLS
    assert [answer for answer in answers if answer[1]] == []
    assert runs
    assert set(runs) == {0}

from __future__ import annotations

import json
import os
import shlex
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from ragx.api.machine import (
    LOCAL_SERVERS,
    LocalServer,
    Machine,
    chat_first,
    embedding_first,
    fetch_from_hub,
    fetch_with_lms,
    list_models,
    look_at_machine,
    looks_like_key,
    probe_servers,
    same_address,
)
from ragx.config import Config
from ragx.errors import ProviderUnavailable

Reply = Callable[[BaseHTTPRequestHandler], None]


@contextmanager
def serving(reply: Reply) -> Iterator[str]:
    """A server whose every GET is answered by `reply`; gives its base URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            reply(self)

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            """Clients give up on purpose here."""

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def body(text: bytes, status: int = 200) -> Reply:
    def reply(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        if status == 302:
            handler.send_header("Location", "http://192.0.2.1/")
        handler.send_header("Content-Length", str(len(text)))
        handler.end_headers()
        handler.wfile.write(text)

    return reply


def listing(*names: object) -> Reply:
    return body(json.dumps({"data": [{"id": name} for name in names]}).encode())


def test_servers_are_asked_what_they_serve() -> None:
    with serving(listing("b", "a", "b", " ", None)) as one, serving(listing()) as other:
        found = probe_servers([("One", one), ("Nobody", "http://127.0.0.1:9/v1"), ("Two", other)])
        assert found == (LocalServer("One", one, ("b", "a")), LocalServer("Two", other, ()))
        assert list_models(f"{one}/") == ("b", "a")


@pytest.mark.parametrize(
    "reply",
    [
        body(b"not json"),
        body(b"[]"),
        body(b'{"data": 3}'),
        body(b'{"data": [3]}'),
        body(b'{"data": [{"name": "x"}]}', status=500),
        body(b"", status=302),
        body(b'{"data": []}', status=404),
        body(b"[" * 100_000),
        body(b'{"data": [], "filler": "' + b"x" * 1_100_000 + b'"}'),
        body(b"\xff\xfe"),
    ],
)
def test_what_answers_in_another_way_is_no_model_server(reply: Reply) -> None:
    with serving(reply) as base_url:
        assert probe_servers([("It", base_url)], answer_s=5) == ()


def test_who_never_answers_is_not_waited_for() -> None:
    never = threading.Event()

    def drip(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        while not never.wait(0.01):
            handler.wfile.write(b" ")

    with ExitStack() as stack:
        stack.callback(never.set)
        silent = stack.enter_context(serving(lambda _: (never.wait(), None)[1]))
        slow = stack.enter_context(serving(drip))
        good = stack.enter_context(serving(listing("m")))
        addresses = [("Silent", silent), ("Slow", slow), ("Good", good)]
        # Both would answer one day: that this returns at all is the test.
        assert [item.name for item in probe_servers(addresses, answer_s=1)] == ["Good"]
        never.set()


def test_a_server_elsewhere_is_not_asked() -> None:
    assert list_models("http://192.0.2.1:9/v1") == ()


def test_the_usual_places() -> None:
    assert LOCAL_SERVERS == (
        ("LM Studio", "http://localhost:1234/v1"),
        ("Ollama", "http://localhost:11434/v1"),
    )
    assert same_address("http://localhost:1234/v1", "http://127.0.0.1:1234/v1/")
    assert not same_address("http://localhost:1234/v1", "http://localhost:1235/v1")


def test_likely_embedding_models_come_first() -> None:
    names = ["llama3.1:8b", "bge-reranker-v2-m3", "bge-m3:latest", "qwen3", "nomic-embed-text"]
    assert embedding_first(names) == [
        "bge-m3:latest", "nomic-embed-text", "llama3.1:8b", "qwen3", "bge-reranker-v2-m3"
    ]  # fmt: skip


def test_likely_reasoning_models_come_last_and_embedders_not_at_all() -> None:
    names = [
        "deepseek-r1:7b", "qwen3-4b-thinking", "text-embedding-bge-m3", "openai/gpt-oss-20b",
        "llama3.1:8b", "qwen3-4b-instruct-2507", "gemma-3-4b", "bge-reranker-v2-m3",
    ]  # fmt: skip
    assert chat_first(names) == [
        "llama3.1:8b", "qwen3-4b-instruct-2507", "gemma-3-4b",
        "deepseek-r1:7b", "qwen3-4b-thinking", "openai/gpt-oss-20b",
    ]  # fmt: skip
    assert chat_first(["bge-m3"]) == ["bge-m3"]


@pytest.mark.parametrize(
    "text", ["sk-abc", "gsk_x1", "hf_" + "aB3" * 8, "AIzaSyD", "f3b9c2d1e5a84f7690abcdef12345678"]
)
def test_a_pasted_key_is_seen(text: str) -> None:
    assert looks_like_key(text)


@pytest.mark.parametrize(
    "text", ["OPENAI_API_KEY", "MY_COMPANY_EMBEDDINGS_API_KEY_2", "key", "openai_api_key", ""]
)
def test_a_name_is_no_key(text: str) -> None:
    assert not looks_like_key(text)


def program(path: Path, text: str = "#!/bin/sh\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_programs_are_found_where_they_are_put(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    found = look_at_machine(Config(), home)
    assert (found.lms, found.llama_server) == ("", "")
    assert found.models_directory == home / ".lmstudio" / "models"
    assert found.cpus >= 1
    lms = program(home / ".lmstudio" / "bin" / "lms")
    server = program(tmp_path / "bin" / "llama-server")
    found = look_at_machine(Config(), home)
    assert (found.lms, found.llama_server) == (str(lms), str(server))


def test_lm_studios_models_are_where_its_settings_say(tmp_path: Path, home: Path) -> None:
    (home / ".cache" / "lm-studio").mkdir(parents=True)
    former = home / ".cache" / "lm-studio" / "models"
    assert look_at_machine(Config(), home).models_directory == former
    (home / ".lmstudio-home-pointer").write_text(f"{tmp_path / 'moved'}\n")
    assert look_at_machine(Config(), home).models_directory == tmp_path / "moved" / "models"
    (tmp_path / "moved").mkdir()
    (tmp_path / "moved" / "settings.json").write_text('{"downloadsFolder": "/big/disk"}')
    assert look_at_machine(Config(), home).models_directory == Path("/big/disk")
    for damaged in ("{", "[]", '{"downloadsFolder": 3}'):
        (tmp_path / "moved" / "settings.json").write_text(damaged)
        assert look_at_machine(Config(), home).models_directory == tmp_path / "moved" / "models"


def test_a_machine_without_a_home() -> None:
    assert look_at_machine(Config(), None).models_directory == Path("/.lmstudio/models")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("#!/bin/sh\necho one\necho 'no such model' >&2\nexit 3\n", "failed: no such model"),
        ("#!/bin/sh\nexit 3\n", "failed with exit code 3"),
        ("no program", "Exec format error"),
    ],
)
def test_a_download_that_fails_says_why(tmp_path: Path, text: str, told: str) -> None:
    machine = Machine(None, "any", 1, lms=str(program(tmp_path / "lms", text)))
    with pytest.raises(ProviderUnavailable, match=told) as caught:
        fetch_with_lms(machine, "some/model@q8_0", show=False)
    assert caught.value.hint == "try it by hand: lms get some/model@q8_0 --gguf --yes"


def test_a_download_runs_no_module_of_the_directory_it_is_started_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clone, installed = tmp_path / "clone", tmp_path / "installed"
    for folder in (clone, installed):
        folder.mkdir()
        (folder / "huggingface_hub.py").write_text(
            "import pathlib\n"
            "def snapshot_download(model, **_):\n"
            "    pathlib.Path(__file__).with_name('ran').write_text(model)\n"
        )
    monkeypatch.chdir(clone)
    for path in (str(installed), f"{os.pathsep}{installed}", f".{os.pathsep}{installed}"):
        monkeypatch.setenv("PYTHONPATH", path)
        (installed / "ran").unlink(missing_ok=True)
        fetch_from_hub("owner/name", show=False)
        assert (installed / "ran").read_text() == "owner/name"
        assert not (clone / "ran").exists()


def test_a_hint_names_what_is_downloaded_as_one_word(tmp_path: Path) -> None:
    source = "x; touch inj #"
    machine = Machine(1, "test", 1, lms=str(tmp_path / "absent"))
    with pytest.raises(ProviderUnavailable) as caught:
        fetch_with_lms(machine, source, show=False)
    assert f"lms get {shlex.quote(source)} " in caught.value.hint

"""A genuine llama-server, spawned and reaped by ragx."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from ragx.errors import ProviderUnavailable
from ragx.providers.endpoint import EndpointOptions, Role, answers, open_endpoint

# Read here, as every test starts without such variables.
FOLDER = os.environ.get("RAGX_TEST_SERVERS", "")
PROGRAM = str(Path(FOLDER) / "llama-server" / "bin" / "llama-server-vulkan")
MODELS = Path(FOLDER) / "models"

pytestmark = pytest.mark.skipif(
    not FOLDER, reason="no real servers: make test-servers installs them and sets RAGX_TEST_SERVERS"
)

PATIENCE_S = 30.0
MODEL_OF: dict[str, str] = {
    "embedding": "minilm-f16.gguf",
    "reranking": "ce-f16.gguf",
    "chat": "SmolLM2-135M-Instruct.Q4_1.gguf",
}


def options(role: Role) -> EndpointOptions:
    gguf = str(MODELS / MODEL_OF[role])
    return EndpointOptions("embeddings", "llama-server", role, gguf=gguf, server_bin=PROGRAM)


def ask(base_url: str, path: str, body: dict[str, Any]) -> tuple[int, Any]:
    request = urllib.request.Request(
        base_url + path, json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def ends(base_url: str) -> bool:
    deadline = time.monotonic() + PATIENCE_S
    while answers(base_url):
        if time.monotonic() > deadline:
            return False
        threading.Event().wait(0.02)
    return True


def test_an_embedder_reads_all_that_its_model_can_and_names_its_limit():
    server = open_endpoint(options("embedding"))
    try:
        status, found = ask(
            server.base_url, "/embeddings", {"model": "m", "input": ["cat " * 510, "a dog"]}
        )
        assert status == 200
        assert [len(entry["embedding"]) for entry in found["data"]] == [384, 384]
        status, found = ask(server.base_url, "/embeddings", {"model": "m", "input": ["cat " * 511]})
        assert status == 400
        assert found["error"]["n_ctx"] == 512
    finally:
        server.close()
    assert not answers(server.base_url)


def test_a_reranker_reads_long_passages():
    server = open_endpoint(options("reranking"))
    try:
        body = {"model": "m", "query": "cats", "documents": ["a cat", "law " * 480]}
        status, found = ask(server.base_url, "/rerank", body)
        assert status == 200
        assert sorted(entry["index"] for entry in found["results"]) == [0, 1]
    finally:
        server.close()


def test_a_chat_model_has_the_whole_context_for_one_question():
    server = open_endpoint(options("chat"))
    try:
        message = {"role": "user", "content": "Say hello."}
        body = {"messages": [message], "max_tokens": 4, "temperature": 0}
        status, found = ask(server.base_url, "/chat/completions", body)
        assert status == 200
        assert found["choices"][0]["message"]["content"]
        with urllib.request.urlopen(server.base_url.removesuffix("/v1") + "/slots") as response:
            assert [slot["n_ctx"] for slot in json.load(response)] == [8192]
    finally:
        server.close()


def test_a_cut_off_model_is_told_in_the_servers_words(tmp_path):
    whole = Path(MODELS) / MODEL_OF["embedding"]
    cut = tmp_path / "cut.gguf"
    with whole.open("rb") as file:
        cut.write_bytes(file.read(1_000_000))
    settings = EndpointOptions(
        "embeddings", "llama-server", "embedding", gguf=str(cut), server_bin=PROGRAM
    )
    with pytest.raises(ProviderUnavailable, match="corrupted or incomplete"):
        open_endpoint(settings)


RAGX = """\
import sys
from ragx.providers.endpoint import EndpointOptions, open_endpoint
server_bin, gguf = sys.argv[1:]
found = open_endpoint(
    EndpointOptions("embeddings", "llama-server", "embedding", gguf=gguf, server_bin=server_bin),
    notice=lambda line: print(line.split(" at ")[1].split(" ")[0], flush=True),
)
print("open", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM, None])
@pytest.mark.parametrize("is_open", [True, False])
def test_nothing_is_left_however_ragx_ends(number, is_open):
    gguf = str(Path(MODELS) / MODEL_OF["embedding"])
    with subprocess.Popen(
        [sys.executable, "-c", RAGX, PROGRAM, gguf],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as ragx:
        assert ragx.stdout is not None
        base_url = f"http://{ragx.stdout.readline().strip()}"
        if is_open:
            assert ragx.stdout.readline() == "open\n"
            assert answers(base_url)
        if number is None:
            ragx.communicate()
        else:
            ragx.send_signal(number)
            ragx.wait(PATIENCE_S)
        assert ends(base_url)
        assert _processes_with(base_url.rsplit(":", 1)[1]) == []


def _processes_with(port: str) -> list[str]:
    """Command lines of processes that were started for a port; watchdogs among them."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        lines = subprocess.run(
            ["ps", "-eo", "stat=,args="], capture_output=True, text=True, check=True
        ).stdout.splitlines()
        found = [line for line in lines if f"--port {port} " in line and line[0] != "Z"]
        if not found:
            return []
        threading.Event().wait(0.05)
    return found

"""Real servers of several makers, started on this machine: what `tests/servers/setup` installs."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
MODELS = {
    "embed": "minilm-f16.gguf",
    "rerank": "ce-f16.gguf",
    "chat": "SmolLM2-135M-Instruct.Q4_1.gguf",
}
_READY_S = 120


@dataclass(frozen=True)
class Tools:
    """Where `tests/servers/setup` has put programs and models."""

    folder: Path

    def model(self, role: str) -> Path:
        """The GGUF file for a role."""
        return self.folder / "models" / MODELS[role]

    @property
    def llama_server(self) -> Path:
        """The llama-server program."""
        return self.folder / "llama-server" / "bin" / "llama-server-vulkan"

    @property
    def has_infinity(self) -> bool:
        """Whether the part that needs torch is installed."""
        return (self.folder / "infinity" / "bin" / "infinity_emb").exists()

    def command(self, engine: str, role: str, port: int) -> list[str]:
        """How one engine serves one role."""
        if engine == "xllamacpp":
            python = self.folder / "xllamacpp" / "bin" / "python"
            script = HERE / "xllamacpp_server.py"
            return [str(python), str(script), role, str(self.model(role)), str(port)]
        extra = {
            "embed": ["--embedding"],
            "rerank": ["--reranking"],
            "chat": ["-c", "4096", "--parallel", "1"],
        }
        start = [str(self.llama_server), "--host", "127.0.0.1", "--port", str(port)]
        return [*start, "--device", "none", "-t", "2", "-m", str(self.model(role)), *extra[role]]

    def infinity_command(self, port: int) -> list[str]:
        """How infinity serves its embedder and its reranker."""
        models = ["--model-id", str(self.folder / "st"), "--served-model-name", "minilm"]
        models += ["--model-id", str(self.folder / "ce"), "--served-model-name", "ce"]
        plain = ["--engine", "torch", "--device", "cpu", "--no-bettertransformer"]
        place = ["--host", "127.0.0.1", "--port", str(port)]
        program = self.folder / "infinity" / "bin" / "infinity_emb"
        return [str(program), "v2", *models, *plain, *place]


@pytest.fixture(scope="session")
def tools() -> Tools:
    """Installed servers and models; the test is skipped where there are none."""
    folder = os.environ.get("RAGX_TEST_SERVERS")
    if not folder:
        pytest.skip("no real servers: make test-servers installs them and sets RAGX_TEST_SERVERS")
    return Tools(Path(folder))


def free_port() -> int:
    """A port of this machine that nothing listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def start(command: list[str], port: int, path: str = "/health") -> subprocess.Popen[bytes]:
    """Start a server and wait until it is ready.

    Raises:
        AssertionError: it ended, or was not ready in time.
    """
    quiet = {"DO_NOT_TRACK": "1", "HF_HUB_OFFLINE": "1"}
    process = subprocess.Popen(
        command,
        env={**os.environ, **quiet},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + _READY_S
    while time.monotonic() < deadline:
        assert process.poll() is None, f"{command[0]} ended with {process.returncode}"
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=2):
                return process
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    stop(process)
    raise AssertionError(f"{command[0]} was not ready within {_READY_S} s")


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a server by its process id."""
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


Serve = Callable[[str, str], str]


@pytest.fixture(scope="session")
def serve(tools: Tools) -> Iterator[Serve]:
    """`serve(engine, role)` gives the address of a running server, started once a session."""
    running: dict[tuple[str, str], tuple[subprocess.Popen[bytes], str]] = {}

    def address(engine: str, role: str) -> str:
        if engine == "infinity":
            role = "all"
        if (engine, role) not in running:
            port = free_port()
            if engine == "infinity":
                process = start(tools.infinity_command(port), port)
                url = f"http://127.0.0.1:{port}"
            else:
                process = start(tools.command(engine, role, port), port)
                url = f"http://127.0.0.1:{port}/v1"
            running[engine, role] = process, url
        return running[engine, role][1]

    yield address
    for process, _ in running.values():
        stop(process)

"""What every test starts from: an empty home, no settings from outside, no network."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stderr
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

# Shells start background jobs with interrupts ignored, and children inherit that: tests that
# interrupt one would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

REPOSITORY = Path(__file__).resolve().parents[1]
_STRAY = ("OPENAI_", "RAGX_", "HF_")
_STRAY_NAMES = {
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "no_color",
    "force_color",
    "columns",
}

RunCli = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(autouse=True)
def clean_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Point HOME at an empty directory and drop variables that change what ragx does."""
    home = tmp_path_factory.mktemp("home")
    for name in list(os.environ):
        if name.startswith(_STRAY) or name.lower() in _STRAY_NAMES:
            monkeypatch.delenv(name)
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / ".cache"))
    monkeypatch.setenv("XDG_DATA_HOME", str(home / ".local" / "share"))
    return home


@pytest.fixture
def home(clean_environment: Path) -> Path:
    """The user's home directory, empty."""
    return clean_environment


class NetworkBlocked(BaseException):
    """A test tried to leave this machine. No `except Exception` may hide that."""


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse sockets to, and look-ups of, anything but this machine."""
    resolve = socket.getaddrinfo

    def guard(name: str) -> None:
        original = getattr(socket.socket, name)

        def checked(self: socket.socket, *args: Any) -> Any:
            # The address is the last argument of connect, connect_ex and sendto alike.
            if self.family in (socket.AF_INET, socket.AF_INET6) and not _is_local(args[-1][0]):
                raise NetworkBlocked(f"{name} to {args[-1]}")
            return original(self, *args)

        monkeypatch.setattr(socket.socket, name, checked)

    def lookup(host: Any, *args: Any, **kwargs: Any) -> Any:
        if host is not None and not _is_local(host):
            raise NetworkBlocked(f"look-up of {host}")
        return resolve(host, *args, **kwargs)

    for name in ("connect", "connect_ex", "sendto"):
        guard(name)
    monkeypatch.setattr(socket, "getaddrinfo", lookup)


def _is_local(host: str | bytes) -> bool:
    name = host.decode() if isinstance(host, bytes) else host
    return name in ("", "localhost", "::1", "0.0.0.0", "::") or name.startswith("127.")


@pytest.fixture
def ragx_cli(tmp_path: Path) -> RunCli:
    """Run the real command line as a process.

    `ragx_cli(*args, cwd=tmp_path, input="", env={...})` returns a CompletedProcess with text
    (UTF-8, line ends as written); `env` adds to the environment, a value None removes a variable.
    """

    def run(
        *args: str,
        cwd: Path = tmp_path,
        input: str = "",
        env: Mapping[str, str | None] | None = None,
        timeout: float = 60,
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", "ragx", *args],
            cwd=cwd,
            input=input.encode(),
            env=process_environment(env),
            capture_output=True,
            timeout=timeout,
            check=False,
        )
        return subprocess.CompletedProcess(
            done.args, done.returncode, done.stdout.decode(), done.stderr.decode()
        )

    return run


@pytest.fixture
def ragx_environment() -> Callable[..., dict[str, str]]:
    """The environment `ragx_cli` gives its process, for tests that start one themselves."""
    return process_environment


def process_environment(extra: Mapping[str, str | None] | None = None) -> dict[str, str]:
    """Return the cleaned environment, with the repository importable from any directory."""
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    for name, value in (extra or {}).items():
        if value is None:
            environment.pop(name, None)
        else:
            environment[name] = value
    return environment


class _Captured(io.BytesIO):
    """Output whose bytes outlive the text layer above it."""

    def close(self) -> None:
        """Stay open: the text layer closes what is below it when it is collected."""


@pytest.fixture
def ragx_inline(tmp_path: Path) -> Iterator[RunCli]:
    """Run a command line inside this process: same arguments and result as `ragx_cli`."""
    before = Path.cwd()

    def run(
        *args: str,
        cwd: Path = tmp_path,
        input: str = "",
        env: Mapping[str, str | None] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        from ragx.shells.cli.main import main

        output, errors = _Captured(), io.StringIO()
        with pytest.MonkeyPatch.context() as patch, redirect_stderr(errors):
            patch.chdir(cwd)
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(input.encode()), "utf-8"))
            patch.setattr(sys, "stdout", io.TextIOWrapper(output, "utf-8", newline="\n"))
            for name, value in (env or {}).items():
                if value is None:
                    patch.delenv(name, raising=False)
                else:
                    patch.setenv(name, value)
            status = main(args)
        return subprocess.CompletedProcess(
            args, status, output.getvalue().decode(), errors.getvalue()
        )

    yield run
    os.chdir(before)


class EmbeddingServer(ThreadingHTTPServer):
    """An OpenAI-compatible embedding server on this machine: deterministic, slow, and it counts.

    Texts that share words get similar vectors. `texts` lists every text of a corpus or query it was
    asked for, in order of arrival, `n_requests` counts what arrived; `delay_s` is what each request
    takes; while `free` is cleared none is answered.
    """

    daemon_threads = True
    request_queue_size = 64

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _EmbeddingRequest)
        self.texts: list[str] = []
        self.n_requests = 0
        self.delay_s = 0.0
        self.lock = threading.Lock()
        self.free = threading.Event()
        self.free.set()

    @property
    def settings(self) -> str:
        """Lines of `[embeddings]` that use this server."""
        return (
            f'provider = "openai"\nbase_url = "http://127.0.0.1:{self.server_address[1]}/v1"\n'
            'model = "words"\nbatch_size = 4\nmax_in_flight = 2\n'
        )

    def taken(self) -> list[str]:
        """The texts asked for since the last call."""
        with self.lock:
            texts, self.texts = self.texts, []
        return texts

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that are killed in the middle of a request are what this server is for."""


class _EmbeddingRequest(BaseHTTPRequestHandler):
    server: EmbeddingServer
    protocol_version = "HTTP/1.1"
    # One packet an answer, or the client's delayed acknowledgement costs 40 ms.
    wbufsize = -1
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["input"]
        with self.server.lock:
            self.server.n_requests += 1
            self.server.texts.extend(text for text in asked if not is_probe(text))
        time.sleep(self.server.delay_s)
        self.server.free.wait()
        rows = [{"index": i, "embedding": word_vector(text)} for i, text in enumerate(asked)]
        body = json.dumps({"data": rows}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


def is_probe(text: str) -> bool:
    """Whether a text is one by which ragx finds out how much a server reads."""
    from ragx.providers.limits import probe_text

    known = {word for at in range(0, 400, 16) for word in probe_text(400, at).split()}
    return set(text.split()) <= known


def word_vector(text: str) -> list[float]:
    """32 counts of hashed words; the client makes them a unit vector."""
    counts = [0.01] * 32
    for word in re.findall(r"\w+", text.lower()):
        counts[zlib.crc32(word.encode()) % 32] += 1.0
    return counts


@pytest.fixture(scope="session")
def _one_embedding_server() -> Iterator[EmbeddingServer]:
    server = EmbeddingServer()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield server
    server.free.set()
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def embedding_server(_one_embedding_server: EmbeddingServer) -> Iterator[EmbeddingServer]:
    """A running EmbeddingServer that takes 5 ms a request and has been asked nothing."""
    server = _one_embedding_server
    server.delay_s = 0.005
    server.taken()
    yield server
    server.free.set()

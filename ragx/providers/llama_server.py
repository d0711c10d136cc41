"""llama.cpp's server for one GGUF file, started by ragx and gone with it."""

from __future__ import annotations

import os
import re
import shutil
import socket
import time
from http import HTTPStatus
from pathlib import Path
from urllib.parse import urlsplit

from ragx.errors import ConfigError, ProviderUnavailable
from ragx.providers.base import Notice
from ragx.providers.endpoint import Endpoint, EndpointOptions, answers
from ragx.providers.programs import program_on_path
from ragx.providers.reaper import ReapedProcess

__all__ = ["PROGRAM", "find_llama_server", "start_llama_server"]

PROGRAM = "llama-server"

# From a cold disk, a large model takes minutes.
_LOAD_S = 300.0
_POLL_S = 0.05
_ASK_S = 2.0
# Another program can take a free port before the server does; and the server logs from a thread
# that its own end outruns now and then (4 of 100 times on two busy cores), so that a start which
# failed without a cause is tried again to learn one.
_MAX_STARTS = 3
_INSTALL_HINT = (
    "install llama.cpp (brew install llama.cpp, or a release of ggml-org/llama.cpp), "
    "or name the program: ragx config set {section}.server_bin /path/to/llama-server"
)
# One text must fit into one physical batch (512 tokens unless asked for): 2,048 hold a chunk of
# any size that suits retrieval, at 150 MB more memory with MiniLM. The context is bounded, as some
# models name 32,768 tokens and more, whose cache takes gigabytes; it is cut to what a small model
# reads, so that longer texts are refused with the limit named.
_ENCODER_FLAGS = ("-c", "8192", "-b", "2048", "-ub", "2048")
_FLAGS = {
    "embedding": ("--embedding", *_ENCODER_FLAGS),
    "reranking": ("--reranking", *_ENCODER_FLAGS),
    # One question at a time, which has the whole context to itself.
    "chat": ("-c", "8192", "-np", "1"),
}
_TIMESTAMP = re.compile(r"^\d+\.\d+\.\d+\.\d+ [A-Z] (?:\w+ +)?")
_CAUSES = (
    re.compile(r"error loading model: (.+)"),
    re.compile(r"(.*(?:\berror\b|\bfail|couldn't|unable to|not found).*)", re.IGNORECASE),
)


def find_llama_server(server_bin: str = "") -> str | None:
    """Find the program.

    Args:
        server_bin: path or name of it; "" means `llama-server`.
    Returns:
        A path that can be started, None where there is none.
    """
    program = os.path.expanduser(server_bin) if server_bin else PROGRAM
    return shutil.which(program) if os.path.dirname(program) else program_on_path(program)


def start_llama_server(options: EndpointOptions, notice: Notice) -> Endpoint:
    """Start a server for the settings' GGUF and wait until it answers.

    Args:
        options: `gguf`, `role` and, where set, the port of `base_url` count.
        notice: told before the start.
    Returns:
        An endpoint whose `close` ends the server.
    Raises:
        ConfigError: program or model are missing, or the address cannot be served.
        ProviderUnavailable: it ended, or is not ready after five minutes.
    """
    program = _program(options)
    model = _model(options)
    host, wanted = _address(options)
    for attempt in range(_MAX_STARTS):
        port = wanted or _free_port()
        at = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        note = f"started llama-server for {options.section} at {at} with {model.name}"
        if attempt == 0:
            notice(note.replace("started", "starting", 1))
        command = [program, "-m", str(model), "--host", host, "--port", str(port)]
        try:
            server = ReapedProcess([*command, *_FLAGS[options.role]])
        except OSError as exc:
            raise ConfigError(
                f"{program} cannot be started: {exc}",
                hint=_INSTALL_HINT.format(section=options.section),
            ) from exc
        try:
            if _becomes_ready(server, host, port):
                return Endpoint(options.base_url or f"http://{at}/v1", (note,), server.stop)
        except BaseException:  # an interrupt, too: what was started must not stay
            server.stop()
            raise
        is_slow = not server.ended.is_set()
        server.stop()
        if is_slow:
            break
        is_taken = answers(f"http://{at}")
        if is_taken and wanted:
            # Another ragx was faster to start one at the address that both have.
            return Endpoint(options.base_url)
        if _cause(server) and not is_taken:
            break
    raise _failure(options, model, server, is_slow=is_slow)


def _program(options: EndpointOptions) -> str:
    found = find_llama_server(options.server_bin)
    if found is not None:
        return found
    if not options.server_bin:
        raise ConfigError(
            f"{PROGRAM} is not installed, or not on PATH",
            hint=_INSTALL_HINT.format(section=options.section),
        )
    path = Path(options.server_bin).expanduser()
    what = "is not a program that can be run" if path.exists() else "does not exist"
    raise ConfigError(
        f"{options.section}.server_bin: {path} {what}",
        hint=_INSTALL_HINT.format(section=options.section),
    )


def _model(options: EndpointOptions) -> Path:
    key = f"{options.section}.gguf"
    hint = f"ragx config set {key} /path/to/model.gguf"
    if not options.gguf:
        raise ConfigError(f"{key} is not set, so there is no model for llama-server", hint=hint)
    path = Path(options.gguf).expanduser()
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except OSError as exc:
        raise ConfigError(f"{key}: {path} cannot be read: {exc.strerror}", hint=hint) from exc
    if magic != b"GGUF":
        raise ConfigError(f"{key}: {path} is not a GGUF file", hint=hint)
    return path.absolute()


def _address(options: EndpointOptions) -> tuple[str, int]:
    """Host to bind and port to take, 0 for any."""
    if not options.base_url:
        return "127.0.0.1", 0
    key = f"{options.section}.base_url"
    try:
        parts = urlsplit(options.base_url)
        host, port = parts.hostname or "", parts.port or 80
    except ValueError as exc:
        raise ConfigError(
            f"{key} {options.base_url!r} is not an address",
            hint=f"ragx config set {key} http://127.0.0.1:8080/v1",
        ) from exc
    if parts.scheme != "http":
        raise ConfigError(
            f"{key} {options.base_url!r}: llama-server is started without TLS",
            hint=f"ragx config set {key} http://127.0.0.1:{port}/v1",
        )
    return (host if re.fullmatch(r"[\d.]+|::1", host) else "127.0.0.1"), port


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _becomes_ready(server: ReapedProcess, host: str, port: int) -> bool:
    """Wait until the model is loaded; False if the server ends or takes too long."""
    deadline = time.monotonic() + _LOAD_S
    while not server.ended.wait(_POLL_S):
        if _is_ready(host, port):
            return True
        if time.monotonic() >= deadline:
            return False
    return False


def _is_ready(host: str, port: int) -> bool:
    from http.client import HTTPConnection, HTTPException

    connection = HTTPConnection(host, port, timeout=_ASK_S)
    try:
        connection.request("GET", "/health")
        # 503 while the model loads.
        return connection.getresponse().status == HTTPStatus.OK
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


def _lines(server: ReapedProcess) -> list[str]:
    return [_TIMESTAMP.sub("", line) for line in server.output.splitlines() if line.strip()]


def _cause(server: ReapedProcess) -> str:
    """What the server says it ended of; "" where it does not."""
    lines = _lines(server)
    found = (match[1] for cause in _CAUSES for line in lines if (match := cause.search(line)))
    return next(found, "").strip()


def _failure(
    options: EndpointOptions, model: Path, server: ReapedProcess, *, is_slow: bool
) -> ProviderUnavailable:
    lines = _lines(server)
    if is_slow:
        said = f"is not ready after {_LOAD_S:.0f} s"
    else:
        last = lines[-1] if lines else f"status {server.returncode}, without a word"
        said = f"ended: {_cause(server) or last}"
    return ProviderUnavailable(
        f"llama-server with {model.name} {said}",
        hint=f"name another model: ragx config set {options.section}.gguf /path/to/model.gguf",
        details={"gguf": str(model), "output": lines[-20:], "scope": "server"},
    )

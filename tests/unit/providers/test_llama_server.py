"""Starting llama-server, against a stand-in that takes the same arguments."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
import urllib.request
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ragx.errors import ConfigError, ProviderUnavailable
from ragx.providers import llama_server
from ragx.providers.endpoint import EndpointOptions, Role, answers, open_endpoint
from ragx.providers.llama_server import find_llama_server

PATIENCE_S = 60.0

# Files beside the model steer it: `.loading` holds it in that state, `.says` makes it fail.
STAND_IN = """\
#!{python} -I
import json, os, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

args = sys.argv[1:]
value = lambda flag: args[args.index(flag) + 1]
model = value("-m")
with open(model + ".run.new", "w") as file:
    json.dump({{"pid": os.getpid(), "args": args}}, file)
os.replace(model + ".run.new", model + ".run")
if os.path.exists(model + ".says"):
    sys.exit(open(model + ".says").read())

class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(503 if os.path.exists(model + ".loading") else 200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass

try:
    server = ThreadingHTTPServer((value("--host"), int(value("--port"))), Handler)
except OSError:
    sys.exit("0.00.004.909 E srv         start: couldn't bind HTTP server socket")
server.serve_forever()
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "bin" / "llama-server"
    path.parent.mkdir()
    path.write_text(STAND_IN.format(python=sys.executable), encoding="utf-8")
    path.chmod(0o755)
    return path


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "some model.gguf"
    path.write_bytes(b"GGUF\x03\x00\x00\x00")
    return path


def options(program: Path, model: Path, role: Role = "embedding", **more: Any) -> EndpointOptions:
    settings: dict[str, Any] = {"gguf": str(model), "server_bin": str(program), **more}
    return EndpointOptions("rerank", "llama-server", role, **settings)


def run_of(model: Path) -> dict[str, Any]:
    """What the stand-in says of itself, once it runs."""
    path = Path(f"{model}.run")
    deadline = time.monotonic() + PATIENCE_S
    while not path.exists():
        assert time.monotonic() < deadline, "the stand-in was not started"
        threading.Event().wait(0.02)
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def ends(pid: int) -> bool:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        threading.Event().wait(0.02)
    return False


def free_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        return int(server.getsockname()[1])


@pytest.mark.parametrize(
    ("role", "flags"),
    [
        ("embedding", ["--embedding", "-c", "8192", "-b", "2048", "-ub", "2048"]),
        ("reranking", ["--reranking", "-c", "8192", "-b", "2048", "-ub", "2048"]),
        ("chat", ["-c", "8192", "-np", "1"]),
    ],
)
def test_it_is_started_used_and_gone_when_closed(role, flags, program, model):
    told: list[str] = []
    found = open_endpoint(options(program, model, role), notice=told.append)
    run = run_of(model)
    port = found.base_url.removeprefix("http://127.0.0.1:").removesuffix("/v1")
    assert run["args"] == ["-m", str(model), "--host", "127.0.0.1", "--port", port, *flags]
    assert urllib.request.urlopen(f"http://127.0.0.1:{port}/health").status == 200
    note = f"started llama-server for rerank at 127.0.0.1:{port} with some model.gguf"
    assert found.notes == (note,)
    assert told == [note.replace("started", "starting")]
    found.close()
    assert ends(run["pid"])
    assert not answers(found.base_url)
    found.close()


def test_an_address_of_ones_own_is_kept(program, model):
    port = free_port()
    address = f"http://localhost:{port}/api/v1"
    found = open_endpoint(options(program, model, base_url=address))
    assert found.base_url == address
    args = run_of(model)["args"]
    assert args[args.index("--host") + 1 : args.index("--host") + 4 : 2] == ["127.0.0.1", str(port)]
    second = open_endpoint(options(program, model, base_url=address))
    assert second.notes == ()
    second.close()
    assert answers(address)
    found.close()


def test_two_at_once_have_ports_of_their_own(program, model, tmp_path):
    other = tmp_path / "other.gguf"
    other.write_bytes(b"GGUF")
    first, second = (open_endpoint(options(program, path)) for path in (model, other))
    assert first.base_url != second.base_url
    first.close()
    assert not answers(first.base_url)
    assert answers(second.base_url)
    second.close()


def test_it_waits_while_the_model_loads(program, model):
    loading = Path(f"{model}.loading")
    loading.touch()
    opened: list[Any] = []
    thread = threading.Thread(target=lambda: opened.append(open_endpoint(options(program, model))))
    thread.start()
    port = int(run_of(model)["args"][5])
    while not answers(f"http://127.0.0.1:{port}"):
        threading.Event().wait(0.02)
    assert opened == []
    loading.unlink()
    thread.join(PATIENCE_S)
    opened[0].close()


def test_its_own_reason_for_ending_is_told(program, model):
    Path(f"{model}.says").write_text(
        "0.00.006.046 E common_fit_params: encountered an error: failed to load model\n"
        "0.00.006.063 E llama_model_load: error loading model: the magic is gone\n"
        "0.00.006.706 E srv  llama_server: exiting due to model loading error\n"
    )
    with pytest.raises(ProviderUnavailable) as caught:
        open_endpoint(options(program, model))
    assert caught.value.message == "llama-server with some model.gguf ended: the magic is gone"
    assert caught.value.hint.endswith("ragx config set rerank.gguf /path/to/model.gguf")
    assert len(caught.value.details["output"]) == 3


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("error: invalid argument: --embedding", "error: invalid argument: --embedding"),
        ("0.00.001.000 I main: hello\nbye", "bye"),
        ("", "status 1, without a word"),
    ],
)
def test_other_last_words(said, reason, program, model):
    Path(f"{model}.says").write_text(said)
    with pytest.raises(ProviderUnavailable) as caught:
        open_endpoint(options(program, model))
    assert caught.value.message == f"llama-server with some model.gguf ended: {reason}"


def test_one_that_never_gets_ready_is_ended(program, model, monkeypatch):
    monkeypatch.setattr(llama_server, "_LOAD_S", 0.0)
    # By then the stand-in runs; it is never asked.
    monkeypatch.setattr(llama_server, "_is_ready", lambda *_: run_of(model) is None)
    with pytest.raises(ProviderUnavailable, match="is not ready after 0 s"):
        open_endpoint(options(program, model))
    assert ends(run_of(model)["pid"])


def test_a_free_port_that_is_taken_meanwhile_is_given_up(program, model, monkeypatch):
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        ports = [taken.getsockname()[1], free_port()]
        wanted = iter(ports)
        monkeypatch.setattr(llama_server, "_free_port", lambda: next(wanted))
        # What answers there is no server: asking it for its health times out.
        monkeypatch.setattr(llama_server, "_ASK_S", 0.2)
        found = open_endpoint(options(program, model))
    assert found.base_url == f"http://127.0.0.1:{ports[1]}/v1"
    found.close()


def test_missing_program(model, monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ConfigError, match="llama-server is not installed") as caught:
        open_endpoint(EndpointOptions("embeddings", "llama-server", "embedding", gguf=str(model)))
    assert "ragx config set embeddings.server_bin" in caught.value.hint


def test_program_that_cannot_be_run(program, model, tmp_path):
    program.chmod(stat.S_IRUSR)
    with pytest.raises(ConfigError, match="is not a program that can be run"):
        open_endpoint(options(program, model))
    with pytest.raises(ConfigError, match=r"rerank\.server_bin: .*absent does not exist"):
        open_endpoint(options(tmp_path / "absent", model))
    broken = tmp_path / "broken"
    broken.write_text("#!/no/such/interpreter\n")
    broken.chmod(0o755)
    with pytest.raises(ConfigError, match="cannot be started"):
        open_endpoint(options(broken, model))


def test_program_on_path_and_in_the_home_directory(program, home, monkeypatch):
    monkeypatch.setenv("PATH", str(program.parent))
    assert find_llama_server() == str(program)
    assert find_llama_server("llama-server") == str(program)
    (home / "llama-server").symlink_to(program)
    assert find_llama_server("~/llama-server") == str(home / "llama-server")
    assert find_llama_server("llama-server-cuda") is None


def test_missing_model(program, tmp_path):
    for name, message in (
        ("", "rerank.gguf is not set"),
        ("absent.gguf", "cannot be read: No such file"),
        (".", "cannot be read: Is a directory"),
    ):
        gguf = str(tmp_path / name) if name else ""
        with pytest.raises(ConfigError, match=message) as caught:
            open_endpoint(options(program, Path(gguf), gguf=gguf))
        assert caught.value.hint == "ragx config set rerank.gguf /path/to/model.gguf"
    (tmp_path / "text.gguf").write_text("hello")
    with pytest.raises(ConfigError, match="is not a GGUF file"):
        open_endpoint(options(program, tmp_path / "text.gguf"))


def test_an_address_with_tls_cannot_be_served(program, model):
    with pytest.raises(ConfigError, match="without TLS") as caught:
        open_endpoint(options(program, model, base_url=f"https://localhost:{free_port()}/v1"))
    assert "ragx config set rerank.base_url http://127.0.0.1:" in caught.value.hint


RAGX = """\
import sys
from ragx.providers.endpoint import EndpointOptions, open_endpoint
server_bin, gguf = sys.argv[1:]
open_endpoint(
    EndpointOptions("rerank", "llama-server", "reranking", gguf=gguf, server_bin=server_bin),
    notice=lambda line: print(line, flush=True),
)
print("open", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize(
    ("state", "end"),
    [
        ("loading", signal.SIGKILL),
        ("loading", signal.SIGINT),
        ("open", signal.SIGKILL),
        ("open", signal.SIGINT),
        ("open", None),
    ],
)
def test_nothing_is_left_however_ragx_ends(state, end, program, model):
    if state == "loading":
        Path(f"{model}.loading").touch()
    with subprocess.Popen(
        [sys.executable, "-c", RAGX, str(program), str(model)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as ragx:
        assert ragx.stdout is not None
        ragx.stdout.readline()
        pid = run_of(model)["pid"]
        if state == "open":
            assert ragx.stdout.readline() == "open\n"
        if end is None:
            ragx.communicate()
        else:
            ragx.send_signal(end)
        assert ends(pid)

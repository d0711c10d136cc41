"""`ragx init` and `ragx models` as a person has them: in a real pseudo-terminal."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import threading
import time
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from ragx.config import default_toml

Environment = Callable[..., dict[str, str]]

# Makes the terminal the session's own, so that Ctrl-C reaches the program, then becomes ragx.
_START = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0);"
    "os.execv(sys.executable, [sys.executable, '-m', 'ragx', *sys.argv[1:]])"
)
_PATIENCE_S = 60.0


class Terminal:
    """A program in a terminal of 30 lines of 100 characters; `seen` is what a person sees."""

    def __init__(self, args: list[str], cwd: Path, environment: dict[str, str]) -> None:
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, "-c", _START, *args],
            cwd=cwd,
            env={**environment, "TERM": "dumb"},
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)
        self.seen = ""
        self.read_up_to = 0

    def expect(self, text: str) -> None:
        """Read until the program shows this, after what was expected before."""
        while True:
            place = self.seen.find(text, self.read_up_to)
            if place >= 0:
                self.read_up_to = place + len(text)
                return
            assert self.read(), f"ended without {text!r}:\n{self.seen}"

    def send(self, text: str) -> None:
        """Type a line."""
        os.write(self.master, f"{text}\n".encode())

    def press(self, key: bytes) -> None:
        """Type without Enter."""
        os.write(self.master, key)

    def answer(self, question: str, text: str = "") -> None:
        self.expect(question)
        self.send(text)

    def end(self) -> int:
        """Read to the end; return the exit code."""
        while self.read():
            pass
        return self.process.wait(timeout=_PATIENCE_S)

    def leave(self, key: bytes) -> int:
        """Press a key that ends the program; return the exit code.

        It is pressed again where nothing happens: a signal that arrives just before Python begins
        to wait for input is seen only once the wait is over.
        """
        for _ in range(5):
            self.press(key)
            while select.select([self.master], [], [], 2.0)[0]:
                if not self.read():
                    return self.process.wait(timeout=_PATIENCE_S)
        raise AssertionError(f"it does not end:\n{self.seen}")

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.master)

    def read(self) -> bool:
        """Take in what is shown next; False at the end."""
        ready, _, _ = select.select([self.master], [], [], _PATIENCE_S)
        assert ready, f"nothing more is shown:\n{self.seen}"
        try:
            data = os.read(self.master, 65536)
        except OSError:  # how Linux says that the other side is gone
            return False
        self.seen += data.decode().replace("\r\n", "\n")
        return bool(data)


Open = Callable[..., Terminal]


@pytest.fixture
def terminal(tmp_path: Path, ragx_environment: Environment) -> Iterator[Open]:
    """`terminal("init", cwd=tmp_path, env={})` starts ragx there."""
    opened = []

    def start(*args: str, cwd: Path = tmp_path, env: dict[str, str] | None = None) -> Terminal:
        opened.append(Terminal(list(args), cwd, ragx_environment(env)))
        return opened[-1]

    yield start
    for item in opened:
        item.close()


class _Models(BaseHTTPRequestHandler):
    """`GET /v1/models` as LM Studio and Ollama answer it."""

    def do_GET(self) -> None:
        names = self.server.names  # type: ignore[attr-defined]
        rows = [{"id": name, "object": "model"} for name in names]
        body = json.dumps({"object": "list", "data": rows}).encode()
        self.send_response(200 if self.path == "/v1/models" else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@contextmanager
def serving(port: int, names: list[str]) -> Iterator[int]:
    """A server on a port, 0 for a free one; skips where somebody else's is. Gives the port."""
    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), _Models)
    except OSError:
        pytest.skip(f"port {port} is in use on this machine")
    server.names = names  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def settings(root: Path) -> dict[str, Any]:
    return tomllib.loads((root / "ragx.toml").read_text(encoding="utf-8"))


def test_init_by_enter_alone_writes_every_default(terminal: Open, tmp_path: Path) -> None:
    screen = terminal("init")
    for question in ("Number or name [1]: ", "[y/N]: ", "Files that count", "Files left out"):
        screen.answer(question)
    assert os.listdir(tmp_path) == []
    screen.answer("ragx models)? [y/N]: ")
    screen.expect(f"wrote {tmp_path / 'ragx.toml'}")
    screen.expect("AGENTS.md")
    assert screen.end() == 0
    assert (tmp_path / "ragx.toml").read_text(encoding="utf-8") == default_toml()
    assert os.listdir(tmp_path) == ["ragx.toml"]


def test_init_takes_models_from_the_servers_that_run(terminal: Open, tmp_path: Path) -> None:
    studio = ["qwen3-4b-thinking", "gemma-3-4b", "text-embedding-nomic-embed-text-v1.5"]
    ollama = ["llama3.1:8b", "bge-m3:latest"]
    with serving(1234, studio), serving(11434, ollama):
        screen = terminal("init")
        screen.expect("LM Studio answers at http://localhost:1234/v1: 3 models")
        screen.expect("Ollama answers at http://localhost:11434/v1: 2 models")
        screen.answer("Number or name [1]: ", "ollama")
        screen.answer("Base URL [http://localhost:11434/v1]: ")
        screen.expect("1  bge-m3:latest")
        screen.expect("2  llama3.1:8b")
        screen.answer("[1: bge-m3:latest]: ", "1")
        screen.answer("API key [none]: ")
        screen.answer("ragx query --expand)? [y/N]: ", "y")
        screen.answer("Number or name [1]: ", "1")
        screen.answer("Base URL [http://localhost:1234/v1]: ")
        screen.expect("1  gemma-3-4b")
        screen.expect("2  qwen3-4b-thinking")
        screen.answer("[1: gemma-3-4b]: ")
        screen.answer("API key [none]: ")
        screen.answer("Files that count", "docs/**, *.md")
        screen.answer("Files left out")
        screen.answer("ragx models)? [y/N]: ", "n")
        assert screen.end() == 0
    written = settings(tmp_path)
    defaults = tomllib.loads(default_toml())
    assert written["embeddings"] == {
        **defaults["embeddings"],
        "provider": "ollama",
        "base_url": "http://localhost:11434/v1",
        "model": "bge-m3:latest",
    }
    assert written["expansion"] == {
        **defaults["expansion"],
        "enabled": True,
        "provider": "openai",
        "base_url": "http://localhost:1234/v1",
        "model": "gemma-3-4b",
    }
    assert written["corpus"]["include"] == ["docs/**", "*.md"]
    assert written["corpus"]["exclude"] == defaults["corpus"]["exclude"]
    text = (tmp_path / "ragx.toml").read_text(encoding="utf-8")
    comments = [line for line in default_toml().splitlines() if line.startswith("#")]
    assert [line for line in text.splitlines() if line.startswith("#")] == comments


def test_init_asks_a_server_at_another_address_too(terminal: Open, tmp_path: Path) -> None:
    names = [f"text-embedding-{letter}" for letter in "abcdefghijklmnopqrstuvwxy"]
    with serving(0, names) as port:
        screen = terminal("init")
        screen.answer("Number or name [1]: ", "openai")
        screen.answer("Base URL", f"http://127.0.0.1:{port}/v1/")
        screen.expect("20  text-embedding-t")
        screen.expect(f"and {len(names) - 20} more, by number or name")
        screen.answer("[1: text-embedding-a]: ", "23")
        screen.answer("API key [none]: ")
        for question in ("[y/N]: ", "Files that count", "Files left out", "[y/N]: "):
            screen.answer(question)
        assert screen.end() == 0
    assert settings(tmp_path)["embeddings"]["model"] == "text-embedding-w"
    assert settings(tmp_path)["embeddings"]["base_url"] == f"http://127.0.0.1:{port}/v1/"


def test_init_with_invalid_machine_settings_asks_nothing(
    terminal: Open, tmp_path: Path, home: Path
) -> None:
    (home / ".ragxrc").write_text("[query]\ntop = 5\n")
    screen = terminal("init")
    assert screen.end() == 2
    assert "~/.ragxrc: accepts only" in screen.seen
    assert os.listdir(tmp_path) == []


def test_init_says_what_is_wrong_and_asks_again(terminal: Open, tmp_path: Path) -> None:
    key = "sk-proj-a1B2c3D4e5F6g7H8i9J0"
    screen = terminal("init", env={"KEY_FOR_TESTS": "x"})
    screen.answer("Number or name [1]: ", "9")
    screen.expect("'9' is not in the list: 1 to 7, or a name")
    screen.answer("Number or name [1]: ", "openai")
    screen.answer("Base URL", "ftp://example.org")
    screen.expect("embeddings.base_url must be a URL")
    # An address elsewhere is not asked what it serves.
    screen.answer("Base URL", "https://api.example.org/v1")
    screen.answer("Model name: ", "")
    screen.expect("a name is needed")
    screen.answer("Model name: ", "text-embedding-3-small")
    screen.answer("API key [none]: ", key)
    screen.expect("looks like a key")
    refused = screen.seen[screen.seen.index(key) + len(key) :]
    assert key not in refused
    screen.answer("API key [none]: ", "not a name")
    screen.expect("must be the name of an environment variable")
    screen.answer("API key [none]: ", "KEY_FOR_TESTS")
    screen.answer("[y/N]: ", "maybe")
    screen.expect("y or n")
    screen.answer("[y/N]: ", "no")
    screen.answer("Files that count", "\x1b[A")
    screen.expect("keys that are no text")
    screen.answer("Files that count", " , ")
    screen.expect("corpus.include must be a list of globs (1 or more), not an empty list")
    screen.answer("Files that count", '["a,b.md", "c"]')
    screen.answer("Files left out", "old/")
    screen.answer("[y/N]: ")
    assert screen.end() == 0
    written = settings(tmp_path)
    assert written["embeddings"]["base_url"] == "https://api.example.org/v1"
    assert written["embeddings"]["model"] == "text-embedding-3-small"
    assert written["embeddings"]["api_key_env"] == "KEY_FOR_TESTS"
    assert written["expansion"]["enabled"] is False
    assert written["corpus"]["include"] == ["a,b.md", "c"]
    assert written["corpus"]["exclude"] == ["old/"]
    assert key not in (tmp_path / "ragx.toml").read_text(encoding="utf-8")


def test_what_a_person_typed_into_init_is_trusted(
    terminal: Open, tmp_path: Path, ragx_cli: Callable[..., Any]
) -> None:
    (tmp_path / "weights.gguf").touch()
    screen = terminal("init")
    screen.answer("Number or name [1]: ", "llama-server")
    screen.answer("GGUF file: ", "absent.gguf")
    screen.expect("absent.gguf: no such file")
    screen.answer("GGUF file: ", "weights.gguf")
    for question in ("[y/N]: ", "Files that count", "Files left out", "[y/N]: "):
        screen.answer(question)
    assert screen.end() == 0
    assert settings(tmp_path)["embeddings"]["gguf"] == "weights.gguf"
    listed = json.loads(ragx_cli("trust", "--list", "--json").stdout)
    assert listed["trusted"] is True


@pytest.mark.parametrize("key", [b"\x03", b"\x04"], ids=["ctrl-c", "ctrl-d"])
@pytest.mark.parametrize("answered", [0, 2, 4])
def test_leaving_init_in_the_middle_leaves_nothing(
    terminal: Open, tmp_path: Path, home: Path, key: bytes, answered: int
) -> None:
    questions = ["Number or name [1]: ", "[y/N]: ", "Files that count", "Files left out", "[y/N]: "]
    screen = terminal("init")
    for question in questions[:answered]:
        screen.answer(question)
    screen.expect(questions[answered])
    assert screen.leave(key) == (130 if key == b"\x03" else 2)
    assert "Traceback" not in screen.seen
    assert ("input ended" in screen.seen) == (key == b"\x04")
    assert os.listdir(tmp_path) == []
    assert os.listdir(home) == []


def test_init_asks_nothing_where_it_was_told_not_to(terminal: Open, tmp_path: Path) -> None:
    for flags in (["--yes"], ["--no-interactive"], ["--json"]):
        screen = terminal("init", *flags)
        assert screen.end() == 0
        assert "[" not in screen.seen.split("ragx.toml")[0]
        (tmp_path / "ragx.toml").unlink()


def test_init_where_there_are_settings_asks_nothing(terminal: Open, tmp_path: Path) -> None:
    (tmp_path / "ragx.toml").touch()
    screen = terminal("init")
    assert screen.end() == 2
    assert "exists already" in screen.seen
    assert "[" not in screen.seen


def test_models_by_menus(terminal: Open, tmp_path: Path, stand_ins: Any) -> None:
    stand_ins.llama_server()
    stand_ins.lms()
    (tmp_path / "ragx.toml").write_text("# mine\n[embeddings]\nmodel = ''  # none yet\n")
    screen = terminal("models", env=stand_ins.environment)
    screen.expect("This machine: ")
    screen.expect(str(stand_ins.bin / "llama-server"))
    screen.expect(str(stand_ins.bin / "lms"))
    screen.expect("Embedding model:")
    screen.answer("Number or name [", "0")
    screen.expect("'0' is not in the list: 1 to 5, or a name")
    screen.answer("Number or name [", "4")
    screen.expect("licence CC BY-NC 4.0, not for commercial use")
    screen.answer("[y/N]: ")
    screen.answer("Number or name [", "fast")
    screen.expect("What runs it:")
    screen.expect("» 1  llama-server")
    screen.answer("Number or name [1]: ")
    screen.expect("Reranker")
    screen.answer("Number or name [1]: ")
    screen.expect("embedding model: EmbeddingGemma 300M, download ~334 MB")
    screen.expect("reranker: bge-reranker-v2-m3, download ~636 MB")
    screen.expect('embeddings.provider: "builtin" -> "llama-server"')
    screen.expect("Do this now? [Y/n]: ")
    assert stand_ins.asked("get") == []
    assert settings(tmp_path) == {"embeddings": {"model": ""}}
    screen.send("")
    screen.expect("Downloading")
    screen.expect("settings written to")
    assert screen.end() == 0
    assert len(stand_ins.asked("get")) == 2
    text = (tmp_path / "ragx.toml").read_text(encoding="utf-8")
    assert text.startswith("# mine\n[embeddings]\n")
    assert "# none yet" in text
    written = settings(tmp_path)
    assert written["embeddings"]["doc_prefix"] == "title: none | text: "
    assert Path(written["embeddings"]["gguf"]).is_file()
    assert written["rerank"]["enabled"] is True
    again = terminal("models", "--quality", "fast", env=stand_ins.environment)
    again.answer("Number or name [1]: ")
    again.answer("Number or name [1]: ")
    again.expect("everything is set up this way already")
    assert again.end() == 0
    assert len(stand_ins.asked("get")) == 2


@pytest.mark.parametrize(("key", "code"), [(b"n\n", 1), (b"\x03", 130), (b"\x04", 2)])
def test_models_declined_changes_nothing(
    terminal: Open, tmp_path: Path, stand_ins: Any, key: bytes, code: int
) -> None:
    stand_ins.lms()
    (tmp_path / "ragx.toml").write_text("# mine\n")
    screen = terminal("models", "--quality", "fast", env=stand_ins.environment)
    screen.expect("llama-server is left out: llama-server was not found on PATH")
    screen.answer("Number or name [1]: ")
    screen.expect("Do this now? [Y/n]: ")
    assert screen.leave(key) == code
    assert stand_ins.asked("get") == []
    assert (tmp_path / "ragx.toml").read_text() == "# mine\n"


def test_an_interrupted_download_leaves_the_settings_as_they_were(
    terminal: Open, tmp_path: Path, stand_ins: Any
) -> None:
    stand_ins.lms()
    stand_ins.become_slow()
    (tmp_path / "ragx.toml").write_text("# mine\n")
    screen = terminal("models", "--quality", "fast", env=stand_ins.environment)
    screen.answer("Number or name [1]: ")
    screen.answer("Do this now? [Y/n]: ")
    screen.expect("Downloading")
    # The terminal is closed to nobody: the program that downloads is gone, too.
    assert screen.leave(b"\x03") == 130
    assert (tmp_path / "ragx.toml").read_text() == "# mine\n"


def test_models_without_anything_to_download_offers_what_is_there(
    terminal: Open, tmp_path: Path, stand_ins: Any
) -> None:
    (tmp_path / "ragx.toml").write_text('[embeddings]\nprovider = "none"\n')
    screen = terminal("models", env=stand_ins.environment)
    screen.expect("No model can be downloaded: LM Studio's program lms")
    screen.answer("Use the built-in model, which is there (English)? [Y/n]: ")
    screen.expect('embeddings.provider: "none" -> "builtin"')
    screen.answer("Do this now? [Y/n]: ")
    assert screen.end() == 0
    assert settings(tmp_path) == {"embeddings": {"provider": "builtin"}}


def test_init_goes_on_to_models(terminal: Open, tmp_path: Path, stand_ins: Any) -> None:
    stand_ins.lms()
    screen = terminal("init", env=stand_ins.environment)
    for question in ("Number or name [1]: ", "[y/N]: ", "Files that count", "Files left out"):
        screen.answer(question)
    screen.answer("ragx models)? [y/N]: ", "y")
    screen.expect("wrote ")
    screen.answer("Number or name [", "balanced")
    if "is heavy" in _until(screen, ("Number or name [1]: ", "[y/N]: ")):
        screen.send("y")
        screen.expect("Number or name [1]: ")
    screen.send("")
    screen.answer("Do this now? [Y/n]: ")
    assert screen.end() == 0
    written = settings(tmp_path)["embeddings"]
    assert (written["provider"], written["model"]) == ("openai", "text-embedding-bge-m3")
    assert written["base_url"] == "http://localhost:1234/v1"


def _until(screen: Terminal, texts: tuple[str, ...]) -> str:
    """Read on to the first of some texts; return what was shown on the way."""
    start = screen.read_up_to
    end = time.monotonic() + _PATIENCE_S
    while not any(text in screen.seen[start:] for text in texts) and time.monotonic() < end:
        assert screen.read(), screen.seen
    place, text = min(
        (screen.seen.find(text, start), text) for text in texts if text in screen.seen[start:]
    )
    screen.read_up_to = place + len(text)
    return screen.seen[start : screen.read_up_to]

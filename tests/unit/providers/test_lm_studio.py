"""Starting LM Studio, against a stand-in for its command line program."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ragx.errors import ProviderRefused, ProviderUnavailable
from ragx.providers import lm_studio
from ragx.providers.endpoint import EndpointOptions, answers, open_endpoint
from ragx.providers.lm_studio import downloaded_models, find_lms

NOMIC = {
    "type": "embedding",
    "modelKey": "text-embedding-nomic-embed-text-v1.5",
    "path": "nomic-ai/nomic-embed-text-v1.5-GGUF/nomic-embed-text-v1.5.Q4_K_M.gguf",
    "sizeBytes": 84106624,
}
QWEN = {"type": "llm", "modelKey": "qwen2.5-7b-instruct", "path": "lmstudio-community/Qwen.gguf"}

# Keeps a record of its calls, and leaves a server running as the real one does.
STAND_IN = """\
#!{python} -I
import json, os, socket, subprocess, sys

folder = os.path.dirname(os.path.realpath(__file__))
args = sys.argv[1:]
with open(folder + "/calls", "a") as file:
    file.write(json.dumps(args) + "\\n")
said = folder + "/" + args[0] + ".says"
if os.path.exists(said):
    sys.exit(open(said).read())
if args[:1] == ["ls"]:
    print("\\x1b[32mWaking up LM Studio service...\\x1b[39m", file=sys.stderr, flush=True)
    print("[LM Studio] logs here, too\\n[1] and so on", file=sys.stderr, flush=True)
    print(open(folder + "/models.json").read())
elif args[:2] == ["server", "start"]:
    serve = "import socket, threading; s = socket.create_server(('127.0.0.1', %s));" % args[3]
    child = subprocess.Popen(
        [sys.executable, "-I", "-c", serve + "threading.Event().wait()"],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )
    open(folder + "/pid", "w").write(str(child.pid))
    print("Success! Server is now running on port " + args[3])
elif args[:1] == ["load"]:
    print("Model loaded successfully")
"""


class LmStudio:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.models: list[dict[str, Any]] = [QWEN, NOMIC]

    @property
    def models(self) -> Any:
        return json.loads((self.folder / "models.json").read_text())

    @models.setter
    def models(self, models: Any) -> None:
        (self.folder / "models.json").write_text(json.dumps(models))

    @property
    def calls(self) -> list[list[str]]:
        path = self.folder / "calls"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def fails(self, command: str, said: str) -> None:
        (self.folder / f"{command}.says").write_text(said)


@pytest.fixture
def studio(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LmStudio]:
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "lms"
    program.write_text(STAND_IN.format(python=sys.executable), encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    yield LmStudio(folder)
    if (folder / "pid").exists():
        os.kill(int((folder / "pid").read_text()), signal.SIGKILL)


def options(model: str = NOMIC["modelKey"], role: Any = "embedding") -> EndpointOptions:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        address = f"http://127.0.0.1:{server.getsockname()[1]}/v1"
    return EndpointOptions("embeddings", "openai", role, address, model)


def port_of(settings: EndpointOptions) -> str:
    return settings.base_url.rsplit(":", 1)[1].split("/")[0]


@pytest.mark.parametrize("name", [NOMIC["modelKey"], NOMIC["path"]])
def test_server_and_model_are_started_and_left_running(name, studio):
    settings, told = options(name), []
    found = open_endpoint(settings, notice=told.append)
    port = port_of(settings)
    assert studio.calls == [
        ["ls", "--json"],
        ["server", "start", "--port", port],
        ["load", NOMIC["modelKey"], "--identifier", name, "--yes"],
    ]
    assert found.base_url == settings.base_url
    assert len(found.notes) == len(told) == 2
    assert all(port in line for line in (told[0], found.notes[0]))
    assert all(NOMIC["modelKey"] in line for line in (told[1], found.notes[1]))
    found.close()
    assert answers(settings.base_url)
    # What runs now is used as it is.
    assert open_endpoint(settings, notice=told.append).notes == ()
    assert len(told) == 2


def test_without_a_model_only_the_server_is_started(studio):
    settings = options("")
    found = open_endpoint(settings)
    assert studio.calls == [["server", "start", "--port", port_of(settings)]]
    assert len(found.notes) == 1


def test_a_model_that_is_not_there_is_refused_naming_those_that_are(studio):
    told: list[str] = []
    settings = options("bge-m3")
    with pytest.raises(ProviderRefused) as caught:
        open_endpoint(settings, notice=told.append)
    # Models of the wanted kind first.
    names = [NOMIC["modelKey"], QWEN["modelKey"]]
    assert caught.value.message.endswith(f"does not have bge-m3; it has: {', '.join(names)}")
    assert caught.value.details["models"] == names
    assert "lms get bge-m3" in caught.value.hint
    assert f"ragx config set embeddings.model {names[0]}" in caught.value.hint
    assert told == []
    assert studio.calls == [["ls", "--json"]]
    with pytest.raises(ProviderRefused) as caught:
        open_endpoint(options("bge-m3", role="chat"))
    assert caught.value.details["models"] == names[::-1]


@pytest.mark.parametrize(("n_models", "named"), [(0, "it has: none"), (11, "m7 and 3 more")])
def test_no_model_and_many(n_models, named, studio):
    studio.models = [{"type": "embedding", "modelKey": f"m{i}"} for i in range(n_models)]
    with pytest.raises(ProviderRefused) as caught:
        open_endpoint(options("bge-m3"))
    assert caught.value.message.endswith(named)


@pytest.mark.parametrize("command", ["ls", "server", "load"])
def test_what_lms_says_when_it_fails_is_told(command, studio):
    studio.fails(command, "\x1b[31mError:\x1b[39m\nno backend\n")
    with pytest.raises(ProviderUnavailable, match=f"lms {command}.* failed: no backend") as caught:
        open_endpoint(options())
    assert f"lms {command}" in caught.value.hint


def test_a_list_that_is_none(studio):
    for said in ("", "null", "{}", "[1", "[1]", "[INFO] no models"):
        (studio.folder / "models.json").write_text(said)
        with pytest.raises(ProviderUnavailable, match="cannot list its models"):
            downloaded_models(str(studio.folder / "lms"))


def test_a_list_among_lines_of_a_log(studio):
    listed = json.dumps([QWEN, {"path": "nameless.gguf"}, NOMIC], indent=2)
    (studio.folder / "models.json").write_text(
        f"[2026-01-01] [INFO] waking up\n[1] [2]\n{listed}\n[INFO] done\n"
    )
    assert downloaded_models(str(studio.folder / "lms")) == [QWEN, NOMIC]


def test_a_server_that_never_answers(studio, monkeypatch):
    monkeypatch.setattr(lm_studio, "_ANSWER_S", 0.0)
    monkeypatch.setattr("ragx.providers.endpoint.answers", lambda _: False)
    with pytest.raises(ProviderUnavailable, match="does not answer on port"):
        open_endpoint(options())


def test_one_that_hangs_is_given_up(studio, monkeypatch):
    monkeypatch.setattr(lm_studio, "_LIST_S", 0.0)
    with pytest.raises(ProviderUnavailable, match="lms ls --json: no end after 0 s"):
        open_endpoint(options())


def test_it_is_found_on_path_and_where_lm_studio_puts_it(studio, home, monkeypatch):
    assert find_lms() == str(studio.folder / "lms")
    monkeypatch.setenv("PATH", "")
    assert find_lms() is None
    own = home / ".lmstudio" / "bin" / "lms"
    own.parent.mkdir(parents=True)
    own.symlink_to(studio.folder / "lms")
    assert find_lms() == str(own)


def test_ollama_and_addresses_elsewhere_never_start_it(studio):
    settings = options()
    open_endpoint(EndpointOptions("embeddings", "ollama", "embedding", settings.base_url, "m"))
    open_endpoint(EndpointOptions("embeddings", "openai", "embedding", "https://x.example/v1", "m"))
    open_endpoint(
        EndpointOptions(
            "embeddings", "openai", "embedding", settings.base_url, "m", autostart=False
        )
    )
    assert studio.calls == []

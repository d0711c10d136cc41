"""Index, query, rerank, expand and doctor from end to end against servers of several makers."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]
Serve = Callable[[str, str], str]

TOPICS = {
    "ferry": "The ferry to the island leaves at nine and comes back before dusk.",
    "bread": "Bread rises because yeast turns sugar into gas; the dough doubles in an hour.",
    "tax": "The tax office wants the yearly declaration before the end of May.",
    "garden": "Tomatoes need sun and a stake; water them in the morning, never at noon.",
    "engine": "A diesel engine ignites fuel by compression, without any spark.",
    "choir": "The choir rehearses on Thursdays in the old chapel behind the mill.",
}
LONG_TAIL = "At the very end stands the password of the lighthouse keeper: marmalade."


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    root = tmp_path / "corpus"
    root.mkdir()
    for name, text in TOPICS.items():
        (root / f"{name}.md").write_text(f"# {name.title()}\n\n{text}\n")
    # Far over the 512 tokens that these models read at once, in one paragraph.
    words = " ".join(f"wave number {i} rolls over the reef" for i in range(700))
    (root / "log.md").write_text(f"# Log\n\n{words}. {LONG_TAIL}\n")
    dense = "\n".join(
        f"x{i:04x} = {{'k{i}': [0x{i * 7919:x}, -{i}.{i}e-{i % 9}]}}" for i in range(400)
    )
    (root / "table.py").write_text(dense + "\n")
    return root


def configure(root: Path, run: Run, settings: dict[str, str]) -> None:
    assert run("init", "--yes", cwd=root).returncode == 0
    for key, value in settings.items():
        done = run("config", "set", key, value, cwd=root)
        assert done.returncode == 0, done.stderr


def document(done: subprocess.CompletedProcess[str], expected: int = 0) -> dict[str, Any]:
    assert done.returncode == expected, (done.stdout, done.stderr)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def served(engine: str, serve: Serve) -> dict[str, str]:
    """Settings for servers that are running."""
    settings = {
        "embeddings.provider": "openai",
        "embeddings.base_url": serve(engine, "embed"),
        "embeddings.model": "minilm",
        "rerank.enabled": "true",
        "rerank.provider": "openai",
        "rerank.base_url": serve(engine, "rerank"),
        "rerank.model": "ce",
    }
    if engine != "infinity":  # which serves no chat model
        settings |= {
            "expansion.enabled": "true",
            "expansion.base_url": serve(engine, "chat"),
            "expansion.model": "smollm2",
        }
    return settings


def spawned(tools: Any) -> dict[str, str]:
    """Settings for servers that ragx starts itself."""
    settings = {
        "embeddings.provider": "llama-server",
        "rerank.enabled": "true",
        "rerank.provider": "llama-server",
        "expansion.enabled": "true",
        "expansion.provider": "llama-server",
    }
    for section, role in (("embeddings", "embed"), ("rerank", "rerank"), ("expansion", "chat")):
        settings[f"{section}.gguf"] = str(tools.model(role))
        settings[f"{section}.server_bin"] = str(tools.llama_server)
    return settings


def check_pipeline(root: Path, run: Run, *, chat: bool) -> None:
    built = document(run("index", "--json", cwd=root, timeout=300))
    assert built["ok"] is True
    assert built["failed"] == []
    assert built["files_indexed"] == len(TOPICS) + 2
    again = document(run("index", "--json", cwd=root))
    assert (again["embedded"], again["files_unchanged"]) == (0, len(TOPICS) + 2)

    plain = document(
        run("query", "when does the boat sail?", "--mode", "vector", "--json", cwd=root)
    )
    assert plain["results"][0]["file"] == "ferry.md"
    # What stands beyond the model's limit is in a vector, too.
    tail = document(run("query", LONG_TAIL, "--mode", "vector", "--json", cwd=root))
    assert tail["results"][0]["file"] == "log.md"

    flags = ["--rerank", *(["--expand"] if chat else [])]
    args = ("query", "when does the boat sail?", *flags, "--json")
    full = document(run(*args, cwd=root, timeout=300))
    assert full["stages"]["rerank"] == "used", full["warnings"]
    assert full["results"][0]["chunks"][0]["breakdown"]["rerank"] is not None
    if chat:
        # A tiny model may ramble; then the plain query stands, and it is said.
        assert full["stages"]["expansion"] == "used" or full["warnings"]
    assert {entry["file"] for entry in full["results"]} >= {"ferry.md"}

    health = document(run("doctor", "--deep", "--json", cwd=root, timeout=300))
    states = {check["name"]: check["status"] for check in health["checks"]}
    assert health["ok"] is True, health
    assert states["embeddings"] in ("ok", "warn")
    # An untrained head prefers either passage.
    assert states["rerank"] in ("ok", "warn")
    assert states["expansion"] == ("ok" if chat else "skip") or states["expansion"] == "warn"
    assert states["integrity"] == "ok"


@pytest.mark.parametrize("engine", ["xllamacpp", "llama-server"])
def test_running_servers(engine: str, corpus: Path, serve: Serve, ragx_cli: Run) -> None:
    configure(corpus, ragx_cli, served(engine, serve))
    check_pipeline(corpus, ragx_cli, chat=True)


def test_servers_that_ragx_starts_and_ends(corpus: Path, tools: Any, ragx_cli: Run) -> None:
    configure(corpus, ragx_cli, spawned(tools))
    check_pipeline(corpus, ragx_cli, chat=True)
    assert _left(tools) == []


def test_infinity(corpus: Path, tools: Any, serve: Serve, ragx_cli: Run) -> None:
    if not tools.has_infinity:
        pytest.skip("infinity needs torch: make test-torch installs it")
    configure(corpus, ragx_cli, served("infinity", serve))
    check_pipeline(corpus, ragx_cli, chat=False)


@pytest.mark.parametrize("engine", ["xllamacpp", "llama-server"])
@pytest.mark.parametrize(
    ("section", "role"), [("embeddings", "chat"), ("rerank", "embed"), ("expansion", "embed")]
)
def test_doctor_finds_the_wrong_kind_of_server(
    engine: str, section: str, role: str, corpus: Path, serve: Serve, ragx_cli: Run
) -> None:
    wrong = {**served(engine, serve), f"{section}.base_url": serve(engine, role)}
    configure(corpus, ragx_cli, wrong)
    health = document(ragx_cli("doctor", "--json", cwd=corpus, timeout=120), expected=1)
    failed = {
        check["name"]: check["hint"] for check in health["checks"] if check["status"] == "fail"
    }
    assert set(failed) == {section}
    assert "ragx config set" in failed[section]


def _left(tools: Any) -> list[str]:
    """Command lines of servers that still run one of our models, but for the session's own."""
    deadline = time.monotonic() + 10
    while True:
        found = []
        for entry in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                line = entry.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
                parent = int((entry.parent / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except (OSError, ValueError, IndexError):
                continue
            if str(tools.folder / "models") in line and parent != os.getpid():
                found.append(line)
        if not found or time.monotonic() > deadline:
            return found
        time.sleep(0.1)

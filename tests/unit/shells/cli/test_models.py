"""Menus on machines that the one running the tests may not be."""

from __future__ import annotations

import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from ragx.api.catalog import LOW_RAM_BYTES
from ragx.api.machine import Machine
from ragx.shells.cli import ask

RunCli = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def small_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Machine:
    """Little memory, an `lms` that has every model, and a person who answers."""
    models = tmp_path / "models"
    lms = tmp_path / "lms"
    rows = ", ".join(
        f'{{"modelKey": "{stem}", "path": "{stem}-Q8_0.gguf", "format": "gguf"}}'
        for stem in ("embeddinggemma-300M", "bge-m3", "bge-reranker-v2-m3")
    )
    lms.write_text(f"#!/bin/sh\necho '[{rows}]'\n")
    lms.chmod(0o755)
    machine = Machine(
        LOW_RAM_BYTES - 1, "any", 2, llama_server="/x/l", lms=str(lms), models_directory=models
    )
    monkeypatch.setattr("ragx.api.machine.look_at_machine", lambda _config, _home: machine)
    return machine


@pytest.fixture
def person(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ask, "person_there", lambda: True)


def run(ragx_inline: RunCli, root: Path, *flags: str, typed: str = "") -> tuple[int, str, str]:
    done = ragx_inline("models", *flags, cwd=root, input=typed)
    return done.returncode, done.stdout, done.stderr


def model(root: Path) -> str:
    settings = tomllib.loads((root / "ragx.toml").read_text())
    return str(settings.get("embeddings", {}).get("model", ""))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "ragx.toml").touch()
    return tmp_path


def test_little_memory_recommends_the_small_model(
    ragx_inline: RunCli, root: Path, small_machine: Machine, person: None
) -> None:
    status, _, shown = run(ragx_inline, root, typed="\n\n\n\n")
    assert status == 0
    assert "» 1  fast" in shown
    assert "already downloaded" in shown
    assert model(root) == "embeddinggemma-300M-Q8_0"


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("balanced\ny\n\n\n\n", "bge-m3-Q8_0"),
        ("balanced\nn\n\n\n\n\n", "embeddinggemma-300M-Q8_0"),
    ],
)
def test_a_heavier_pick_is_asked_about_and_then_honoured(
    ragx_inline: RunCli,
    root: Path,
    small_machine: Machine,
    person: None,
    typed: str,
    expected: str,
) -> None:
    status, _, shown = run(ragx_inline, root, typed=typed)
    assert status == 0
    assert "balanced is heavy for 8.0 GB of memory; fast is recommended" in shown
    assert model(root) == expected


def test_a_heavier_wish_is_asked_about_too(
    ragx_inline: RunCli, root: Path, small_machine: Machine, person: None
) -> None:
    status, _, _ = run(ragx_inline, root, "--quality", "balanced", typed="y\n\n\n\n")
    assert status == 0
    assert model(root) == "bge-m3-Q8_0"


def test_with_nobody_to_ask_a_heavier_wish_becomes_the_small_model(
    ragx_inline: RunCli, root: Path, small_machine: Machine
) -> None:
    status, output, shown = run(ragx_inline, root, "--quality", "best", "--yes")
    assert status == 0
    assert "best is heavy for 8.0 GB of memory: took fast instead" in shown
    assert "Next: ragx index" in output
    assert model(root) == "embeddinggemma-300M-Q8_0"


def test_input_that_ends_changes_nothing(
    ragx_inline: RunCli, root: Path, small_machine: Machine, person: None
) -> None:
    status, _, shown = run(ragx_inline, root, typed="\n\n")
    assert status == 2
    assert "input ended" in shown
    assert model(root) == ""

"""Programs are looked for on this machine, never where somebody stands."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from ragx.providers.llama_server import find_llama_server
from ragx.providers.lm_studio import find_lms
from ragx.providers.programs import program_on_path

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="programs are shell scripts")


def make_program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("entry", ["", ".", "bin", "./bin", "../clone", "::"])
def test_a_relative_entry_of_path_is_passed_over(
    entry: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clone, own = tmp_path / "clone", tmp_path / "own"
    for name in ("lms", "llama-server", "tool"):
        make_program(clone / name)
        make_program(clone / "bin" / name)
    monkeypatch.chdir(clone)
    monkeypatch.setenv("PATH", entry)
    assert program_on_path("tool") is None
    assert find_lms() is None
    assert find_llama_server() is None
    assert find_llama_server("llama-server") is None
    for name in ("lms", "llama-server", "tool"):
        make_program(own / name)
    monkeypatch.setenv("PATH", f"{entry}{os.pathsep}{own}")
    assert program_on_path("tool") == str(own / "tool")
    assert find_lms() == str(own / "lms")
    assert find_llama_server() == str(own / "llama-server")
    assert program_on_path("tool", {"PATH": entry}) is None


def test_a_server_program_named_by_its_path_is_taken_from_there(tmp_path: Path) -> None:
    program = make_program(tmp_path / "server")
    assert find_llama_server(str(program)) == str(program)

"""A cloned `ragx.toml` sends nothing away, runs nothing and loads nothing before `ragx trust`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]

REMOTE = '[embeddings]\nprovider = "openai"\nbase_url = "http://192.0.2.1:9/v1"\nmodel = "m"\n'


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    root = tmp_path / "clone"
    root.mkdir()
    (root / "note.md").write_text("# Pelican\n\nThe pelican keeps the harbour accounts.\n")
    return root


@pytest.mark.parametrize(
    "line",
    ["index", "index --full", "index --dry-run", "query pelican", "query pelican --mode vector"],
)
def test_a_cloned_address_is_not_used(line: str, clone: Path, ragx_cli: Run) -> None:
    (clone / "ragx.toml").write_text('[embeddings]\nprovider = "none"\n')
    assert ragx_cli("index", cwd=clone).returncode == 0
    (clone / "ragx.toml").write_text(REMOTE)
    done = ragx_cli(*line.split(), "--json", cwd=clone, env={"OPENAI_API_KEY": "sk-reader"})
    error = json.loads(done.stdout)["error"]
    assert (done.returncode, error["code"]) == (2, "untrusted")
    assert "ragx trust" in error["hint"]
    assert error["details"]["settings"] == {"embeddings.base_url": "http://192.0.2.1:9/v1"}
    assert "sk-reader" not in done.stdout + done.stderr


def test_what_asks_no_model_works_all_the_same(clone: Path, ragx_cli: Run) -> None:
    (clone / "ragx.toml").write_text('[embeddings]\nprovider = "none"\n')
    ragx_cli("index", cwd=clone)
    (clone / "ragx.toml").write_text(REMOTE)
    assert ragx_cli("query", "pelican", "--mode", "lexical", cwd=clone).returncode == 0
    status = json.loads(ragx_cli("status", "--json", cwd=clone).stdout)
    assert status["untrusted"] == ["embeddings.base_url"]
    assert ragx_cli("config", "list", cwd=clone).returncode == 0


@pytest.mark.skipif(sys.platform == "win32", reason="the program is a shell script")
def test_a_cloned_program_is_not_run(clone: Path, ragx_cli: Run) -> None:
    marker = clone / "it-ran"
    program = clone / "server.sh"
    program.write_text(f"#!/bin/sh\ntouch '{marker}'\n")
    program.chmod(0o755)
    (clone / "m.gguf").write_bytes(b"GGUF")
    (clone / "ragx.toml").write_text(
        '[embeddings]\nprovider = "llama-server"\ngguf = "m.gguf"\nserver_bin = "./server.sh"\n'
    )
    done = ragx_cli("index", "--json", cwd=clone)
    assert json.loads(done.stdout)["error"]["code"] == "untrusted"
    assert not marker.exists()
    assert ragx_cli("trust", "--json", cwd=clone).returncode == 0
    ragx_cli("index", cwd=clone)
    assert marker.exists()


def test_list_trust_and_revoke(clone: Path, home: Path, ragx_cli: Run) -> None:
    (clone / "ragx.toml").write_text(REMOTE)
    listed = ragx_cli("trust", "--list", cwd=clone)
    assert listed.returncode == 1
    assert "embeddings.base_url = http://192.0.2.1:9/v1" in listed.stdout
    assert not (home / ".ragxtrust").exists()
    done = json.loads(ragx_cli("trust", "--json", cwd=clone).stdout)
    assert (done["trusted"], done["changed"]) == (True, True)
    assert ragx_cli("trust", "--list", cwd=clone).returncode == 0
    again = json.loads(ragx_cli("trust", "--json", cwd=clone).stdout)
    assert (again["trusted"], again["changed"]) == (True, False)
    assert ragx_cli("trust", "--revoke", cwd=clone).returncode == 0
    assert ragx_cli("trust", "--list", cwd=clone).returncode == 1


def test_config_set_is_the_users_word_on_its_own_key_alone(clone: Path, ragx_cli: Run) -> None:
    (clone / "ragx.toml").write_text("")
    ragx_cli("config", "set", "embeddings.base_url", "http://192.0.2.1:9/v1", cwd=clone)
    assert ragx_cli("trust", "--list", cwd=clone).returncode == 0
    (clone / "ragx.toml").write_text(REMOTE.replace("192.0.2.1", "192.0.2.2"))
    done = ragx_cli("config", "set", "query.top", "5", cwd=clone)
    assert done.returncode == 0
    assert "ragx trust --list" in done.stderr
    assert ragx_cli("trust", "--list", cwd=clone).returncode == 1


def test_an_unreadable_record_is_said(clone: Path, home: Path, ragx_cli: Run) -> None:
    (clone / "ragx.toml").write_text(REMOTE)
    (home / ".ragxtrust").mkdir()
    done = ragx_cli("trust", "--json", cwd=clone)
    error = json.loads(done.stdout)["error"]
    assert (done.returncode, error["code"]) == (2, "config")
    assert ".ragxtrust" in error["message"]

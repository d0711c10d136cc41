from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest

from ragx import contracts
from ragx.config import default_toml

RunCli = Callable[..., "subprocess.CompletedProcess[str]"]


def test_init_writes_every_default_and_says_what_to_do(ragx_cli: RunCli, tmp_path: Path) -> None:
    done = ragx_cli("init")
    assert (done.returncode, done.stderr) == (0, "")
    target = tmp_path / "ragx.toml"
    assert target.read_text(encoding="utf-8") == default_toml()
    assert done.stdout.startswith(f"wrote {target}\n")
    assert "corpus.include" in done.stdout
    assert "AGENTS.md" in done.stdout
    assert os.listdir(tmp_path) == ["ragx.toml"]
    done = ragx_cli("config", "list", "--json")
    assert done.returncode == 0


@pytest.mark.parametrize("args", [["init", "sub"], ["init", "--root", "sub"], ["init", "./sub/"]])
def test_init_elsewhere(ragx_inline: RunCli, tmp_path: Path, args: list[str]) -> None:
    (tmp_path / "sub").mkdir()
    done = ragx_inline(*args, "--json")
    document = json.loads(done.stdout)
    jsonschema.validate(document, contracts.load("ragx.init.v1"))
    assert (done.returncode, done.stderr) == (0, "")
    assert document["root"] == str(tmp_path / "sub")
    assert (tmp_path / "sub" / document["config"]).read_text(encoding="utf-8") == default_toml()


@pytest.mark.parametrize("flag", [[], ["--yes"]])
def test_init_never_replaces(ragx_inline: RunCli, tmp_path: Path, flag: list[str]) -> None:
    target = tmp_path / "ragx.toml"
    target.write_text("# mine\n", encoding="utf-8")
    done = ragx_inline("init", *flag, "--json")
    assert done.returncode == 2
    assert json.loads(done.stdout)["error"]["code"] == "config_exists"
    assert target.read_text(encoding="utf-8") == "# mine\n"


def test_init_leaves_old_settings_to_be_moved(ragx_inline: RunCli, tmp_path: Path) -> None:
    (tmp_path / ".ragx").mkdir()
    (tmp_path / ".ragx" / "config.toml").touch()
    done = ragx_inline("init")
    assert done.returncode == 2
    assert "mv " in done.stderr
    assert not (tmp_path / "ragx.toml").exists()


def test_init_asks_over_a_pipe_only_if_told_to(ragx_inline: RunCli, tmp_path: Path) -> None:
    done = ragx_inline("init", "--interactive", input="none\n\n*.md\n\n\n")
    assert done.returncode == 0
    assert done.stdout.startswith(f"wrote {tmp_path / 'ragx.toml'}\n")
    expected = default_toml().replace('provider = "builtin"', 'provider = "none"')
    written = (tmp_path / "ragx.toml").read_text(encoding="utf-8")
    assert written.count("\n") < expected.count("\n")
    assert tomllib.loads(written)["corpus"]["include"] == ["*.md"]
    assert tomllib.loads(written)["embeddings"] == tomllib.loads(expected)["embeddings"]


def test_init_without_the_last_answers_writes_nothing(ragx_inline: RunCli, tmp_path: Path) -> None:
    done = ragx_inline("init", "--interactive", input="\n\n\n")
    assert done.returncode == 2
    assert "input ended before the question was answered" in done.stderr
    assert os.listdir(tmp_path) == []


def test_init_never_asks_for_a_document(ragx_inline: RunCli, tmp_path: Path) -> None:
    done = ragx_inline("init", "--interactive", "--json")
    assert (done.returncode, json.loads(done.stdout)["error"]["code"]) == (2, "usage")
    assert os.listdir(tmp_path) == []


def test_init_says_what_the_machines_own_settings_override(ragx_inline: RunCli, home: Path) -> None:
    (home / ".ragxrc").write_text('[embeddings]\nprovider = "none"\n')
    done = ragx_inline("init", "--interactive", input="\n\n\n\n\n")
    assert done.returncode == 0
    assert "~/.ragxrc wins over these answers: embeddings.provider" in done.stderr


def test_init_in_home_needs_a_yes(ragx_inline: RunCli, home: Path) -> None:
    done = ragx_inline("init", cwd=home)
    assert done.returncode == 2
    assert not (home / "ragx.toml").exists()
    assert "--yes" in done.stderr
    assert ragx_inline("init", "--yes", cwd=home).returncode == 0
    assert (home / "ragx.toml").exists()


def test_init_inside_a_corpus_says_so(ragx_inline: RunCli, tmp_path: Path) -> None:
    (tmp_path / "ragx.toml").touch()
    (tmp_path / "sub").mkdir()
    done = ragx_inline("init", cwd=tmp_path / "sub")
    assert done.returncode == 0
    assert f"inside the corpus {tmp_path}" in done.stderr


def test_init_through_a_link_writes_behind_it(ragx_inline: RunCli, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert ragx_inline("init", "link").returncode == 0
    assert (tmp_path / "real" / "ragx.toml").exists()


def test_a_directory_that_cannot_be_written(
    ragx_inline: RunCli, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = os.open

    def read_only(path: object, flags: int, mode: int = 0o777) -> int:
        if str(path).endswith(".tmp"):
            raise PermissionError(13, "Permission denied")
        return opened(path, flags, mode)  # type: ignore[arg-type]  # any path that os.open takes

    monkeypatch.setattr(os, "open", read_only)
    done = ragx_inline("init", "--json")
    assert done.returncode == 2
    assert "cannot be written: Permission denied" in json.loads(done.stdout)["error"]["message"]


def test_a_deleted_working_directory(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    done = subprocess.run(
        ["sh", "-c", 'rmdir "$PWD"; exec "$0" -m ragx init --json', sys.executable],
        cwd=gone,
        env={**os.environ, "PYTHONPATH": str(Path(contracts.__file__).parents[2])},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 2
    assert json.loads(done.stdout)["error"]["code"] == "no_directory"

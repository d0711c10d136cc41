from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from ragx import contracts
from ragx.config import default_toml, keys

RunCli = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    root = tmp_path / "corpus"
    (root / "deep" / "er").mkdir(parents=True)
    (root / "ragx.toml").write_text(default_toml(), encoding="utf-8")
    return root


def document(text: str) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(text)
    jsonschema.validate(parsed, contracts.load(parsed["schema"]))
    return parsed


def setting(text: str) -> dict[str, Any]:
    (only,) = document(text)["settings"]
    assert isinstance(only, dict)
    return only


def test_set_get_list_as_a_process(ragx_cli: RunCli, corpus: Path) -> None:
    below = corpus / "deep" / "er"
    done = ragx_cli("config", "set", "query.top", "7", cwd=below)
    assert (done.returncode, done.stdout, done.stderr) == (0, "query.top = 7  # ragx.toml\n", "")
    text = (corpus / "ragx.toml").read_text(encoding="utf-8")
    assert text == default_toml().replace("\ntop = 20\n", "\ntop = 7\n")
    done = ragx_cli("config", "get", "query.top", "--root", str(corpus))
    assert (done.returncode, done.stdout) == (0, "7\n")
    done = ragx_cli("config", "list", "--json", cwd=corpus)
    listed = document(done.stdout)
    assert listed["root"] == str(corpus)
    assert [item["key"] for item in listed["settings"]] == list(keys())


def test_list_names_each_origin(ragx_inline: RunCli, corpus: Path, home: Path) -> None:
    (corpus / "ragx.toml").write_text("[query]\ntop = 7\n", encoding="utf-8")
    (home / ".ragxrc").write_text('[embeddings]\nprovider = "openai"\n', encoding="utf-8")
    done = ragx_inline(
        "config", "list", cwd=corpus, env={"OPENAI_BASE_URL": "https://a.example/v1"}
    )
    lines = done.stdout.splitlines()
    assert len(lines) == len(keys())
    assert "query.top = 7  # ragx.toml" in lines
    assert "query.context_lines = 5  # default" in lines
    assert 'embeddings.provider = "openai"  # ~/.ragxrc' in lines
    assert 'embeddings.base_url = "https://a.example/v1"  # OPENAI_BASE_URL' in lines
    done = ragx_inline("config", "list", "graph.weights", cwd=corpus)
    assert len(done.stdout.splitlines()) == 6


@pytest.mark.parametrize(
    ("key", "raw", "value", "printed"),
    [
        ("corpus.include", "docs/**, *.md", ["docs/**", "*.md"], '["docs/**", "*.md"]'),
        ("corpus.exclude", "", [], "[]"),
        ("corpus.include", '["{a,b}.md"]', ["{a,b}.md"], '["{a,b}.md"]'),
        ("chunking.size_tokens", "800", 800, "800"),
        ("chunking.size_tokens", "auto", "auto", "auto"),
        ("fusion.vector_weight", "0.25", 0.25, "0.25"),
        ("traversal.query_floor", "-0.5", -0.5, "-0.5"),
        ("traversal.cap", "false", False, "false"),
        ("embeddings.query_prefix", "Instruct: x\nQuery: ", "Instruct: x\nQuery: ",
         "Instruct: x\nQuery: "),
        ("embeddings.doc_prefix", "", "", ""),
    ],
)  # fmt: skip
def test_typed_values(
    ragx_inline: RunCli, corpus: Path, key: str, raw: str, value: object, printed: str
) -> None:
    done = ragx_inline("config", "set", key, raw, "--json", cwd=corpus)
    assert done.returncode == 0, done.stdout
    assert setting(done.stdout)["value"] == value
    assert document(done.stdout)["file"] == str(corpus / "ragx.toml")
    assert setting(ragx_inline("config", "get", key, "--json", cwd=corpus).stdout)["value"] == value
    assert ragx_inline("config", "get", key, cwd=corpus).stdout == printed + "\n"


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        (["set", "query.tpo", "5"], "unknown_key", "query.top"),
        (["set", "query.top", "5000"], "bad_value", "from 1 to 1000"),
        (["set", "query.top", "-5"], "bad_value", "from 1 to 1000, not -5"),
        (["set", "query", "5"], "unknown_key", "context_lines"),
        (["set", "--global", "query.top", "5"], "not_machine", "without --global"),
        (["set", "embeddings.api_key_env", "sk-verysecret"], "bad_value", "environment variable"),
        (["set", "embeddings.api_key", "sk-verysecret"], "unknown_key", "api_key_env"),
        (["set", "embeddings.provider", "openia"], "bad_value", "openai"),
        (["get", "nothing.like.it"], "unknown_key", "config list"),
        (["list", "qery"], "unknown_key", "query"),
        (["list", "--global", "graph"], "not_machine", "[embeddings]"),
    ],
)
def test_refusals(ragx_inline: RunCli, corpus: Path, args: list[str], code: str, says: str) -> None:
    done = ragx_inline("config", *args, "--json", cwd=corpus)
    error = document(done.stdout)["error"]
    assert done.returncode == 2
    assert error["code"] == code
    assert says in error["message"] + error["hint"]
    assert "verysecret" not in done.stdout + done.stderr
    assert (corpus / "ragx.toml").read_text(encoding="utf-8") == default_toml()


def test_the_machine_overrides_and_every_command_says_so(
    ragx_inline: RunCli, corpus: Path, home: Path
) -> None:
    done = ragx_inline("config", "set", "--global", "embeddings.model", "mine", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert document(done.stdout)["root"] is None
    assert (home / ".ragxrc").read_text(encoding="utf-8") == '[embeddings]\nmodel = "mine"\n'
    assert ragx_inline("config", "get", "--global", "embeddings.model").stdout == "mine\n"
    listed = document(ragx_inline("config", "list", "--global", "--json").stdout)["settings"]
    assert {item["key"].split(".")[0] for item in listed} == {"embeddings", "expansion", "rerank"}
    warning = "warning: ~/.ragxrc overrides embeddings.model: '' -> 'mine'\n"
    assert ragx_inline("config", "list", cwd=corpus).stderr == warning
    done = ragx_inline("config", "set", "embeddings.model", "theirs", "--json", cwd=corpus)
    assert setting(done.stdout)["value"] == "mine"
    assert setting(done.stdout)["origin"] == "~/.ragxrc"
    assert done.stderr == warning.replace("''", "'theirs'")


def test_a_broken_file_can_be_mended_key_by_key(ragx_inline: RunCli, corpus: Path) -> None:
    (corpus / "ragx.toml").write_text("[query]\ntop = 0\ncontext_lines = -1\n", encoding="utf-8")
    done = ragx_inline("config", "get", "query.top", cwd=corpus)
    assert done.returncode == 2
    done = ragx_inline("config", "set", "query.top", "5", "--json", cwd=corpus)
    assert done.returncode == 0
    assert setting(done.stdout)["value"] == 5
    assert "still invalid" in done.stderr
    done = ragx_inline("config", "set", "query.context_lines", "0", cwd=corpus)
    assert (done.returncode, done.stderr) == (0, "")


def test_old_settings_move_on_first_use(ragx_cli: RunCli, tmp_path: Path) -> None:
    old = tmp_path / ".ragx" / "config.toml"
    old.parent.mkdir()
    old.write_text("[query]\ntop = 4\n", encoding="utf-8")
    done = ragx_cli("config", "get", "query.top", "--json")
    assert setting(done.stdout)["value"] == 4
    assert done.stderr == f"moved {old} to {tmp_path / 'ragx.toml'}\n"
    old.write_text("[query]\n", encoding="utf-8")
    done = ragx_cli("config", "get", "query.top")
    assert done.returncode == 2
    assert "two places" in done.stderr


def test_on_a_terminal_the_move_is_asked_for(
    ragx_environment: Callable[..., dict[str, str]], tmp_path: Path
) -> None:
    pty = pytest.importorskip("pty")
    import os
    import sys

    old = tmp_path / ".ragx" / "config.toml"
    old.parent.mkdir()
    old.write_text("[query]\ntop = 4\n", encoding="utf-8")
    for answer, moved in ((b"n\n", False), (b"\n", True)):
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            [sys.executable, "-m", "ragx", "config", "get", "query.top"],
            cwd=tmp_path,
            env=ragx_environment(),
            stdin=theirs,
            stdout=subprocess.PIPE,
            stderr=theirs,
        )
        os.close(theirs)
        os.write(ours, answer)
        said = b""
        try:
            while part := os.read(ours, 4096):
                said += part
        except OSError:  # how a terminal reports that the other end is gone
            pass
        output, _ = process.communicate(timeout=30)
        os.close(ours)
        assert process.returncode == (0 if moved else 2)
        assert output == (b"4\n" if moved else b"")
        assert (tmp_path / "ragx.toml").exists() is moved
        assert b"Move " in said
        assert (b"mv " in said) is not moved


def test_schema_prints_what_is_shipped(ragx_inline: RunCli) -> None:
    names = ragx_inline("schema").stdout.split()
    assert document(ragx_inline("schema", "--json").stdout)["names"] == names
    for name in names:
        for flag in ([], ["--json"]):
            assert json.loads(ragx_inline("schema", name, *flag).stdout) == contracts.load(name)

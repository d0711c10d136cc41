"""`ragx models` by flags, as programs use it; menus are in test_terminal.py."""

from __future__ import annotations

import json
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from ragx import contracts
from ragx.api.catalog import CATALOG, LOW_RAM_BYTES, RERANKER, find_model, recommended
from ragx.api.machine import look_at_machine
from ragx.config import Config

RunCli = Callable[..., "subprocess.CompletedProcess[str]"]
# Memory of the machine that runs the tests decides what is heavy.
HEAVY_HERE = recommended(look_at_machine(Config(), None)) == "fast"
BEST_HERE = "fast" if HEAVY_HERE else "best"


@pytest.fixture
def corpus(make_corpus: Callable[..., Path]) -> Path:
    return make_corpus({"a.md": "# One\n\nThe pelican landed.\n"})


@pytest.fixture
def models(corpus: Path, ragx_inline: RunCli, stand_ins: Any) -> Callable[..., dict[str, Any]]:
    """`models("--yes", status=0)` runs it on the corpus and returns its checked document."""

    def run(*flags: str, status: int = 0) -> dict[str, Any]:
        done = ragx_inline("models", "--json", *flags, cwd=corpus, env=stand_ins.environment)
        assert done.returncode == status, done.stdout + done.stderr
        document: dict[str, Any] = json.loads(done.stdout)
        jsonschema.validate(document, contracts.load(document["schema"]))
        return document

    return run


def settings(root: Path) -> dict[str, Any]:
    return tomllib.loads((root / "ragx.toml").read_text(encoding="utf-8"))


def test_a_whole_stack_on_llama_server(
    models: Callable[..., Any], corpus: Path, stand_ins: Any, ragx_cli: RunCli
) -> None:
    stand_ins.lms()
    stand_ins.llama_server()
    document = models("--quality", "best", "--yes")
    assert document["applied"] is True
    assert document["chosen"] == {
        "quality": BEST_HERE,
        "embed_engine": "llama-server",
        "rerank_engine": "llama-server",
    }
    chosen = find_model(BEST_HERE)
    assert [args[1] for args in stand_ins.asked("get")] == [chosen.source, RERANKER.source]
    assert all(args[2:] == ["--gguf", "--yes"] for args in stand_ins.asked("get"))
    assert [item["present"] for item in document["plan"]["downloads"]] == [True, True]
    written = settings(corpus)
    folder = stand_ins.models / chosen.repository
    assert written["embeddings"] == {
        "provider": "llama-server",
        "model": Path(chosen.file).stem,
        "gguf": str(folder / chosen.file),
        "query_prefix": chosen.query_prefix,
        **({"doc_prefix": chosen.doc_prefix} if chosen.doc_prefix else {}),
    }
    assert written["rerank"] == {
        "enabled": True,
        "provider": "llama-server",
        "model": "bge-reranker-v2-m3-Q8_0",
        "gguf": str(stand_ins.models / RERANKER.repository / RERANKER.file),
    }
    assert {change["key"]: change["new"] for change in document["plan"]["changes"]} == {
        f"{section}.{key}": value
        for section in ("embeddings", "rerank")
        for key, value in written[section].items()
    }
    # What was written on the user's behalf counts at once.
    trust = json.loads(ragx_cli("trust", "--list", "--json", cwd=corpus).stdout)
    assert trust["trusted"] is True


def test_lm_studio_serves_and_the_address_is_written_out(
    models: Callable[..., Any], corpus: Path, stand_ins: Any
) -> None:
    stand_ins.lms()
    (corpus / "ragx.toml").write_text('[embeddings]\nprovider = "openai"\napi_key_env = "CLOUD"\n')
    document = models("--quality", "fast", "--yes")
    assert document["chosen"]["embed_engine"] == "lm-studio"
    written = settings(corpus)["embeddings"]
    assert written["base_url"] == "http://localhost:1234/v1"
    assert written["model"] == "text-embedding-embeddinggemma-300m"
    assert written["doc_prefix"] == "title: none | text: "
    assert written["query_prefix"] == "task: search result | query: "
    # The key of a service elsewhere is not for LM Studio.
    assert written["api_key_env"] == ""


@pytest.mark.parametrize("flags", [["--dry-run"], [], ["--dry-run", "--yes"]])
def test_without_a_yes_nothing_is_done(
    models: Callable[..., Any], corpus: Path, stand_ins: Any, flags: list[str]
) -> None:
    stand_ins.lms()
    before = (corpus / "ragx.toml").read_bytes()
    document = models("--quality", "fast", *flags)
    assert document["applied"] is False
    assert [item["present"] for item in document["plan"]["downloads"]] == [False]
    assert document["plan"]["changes"]
    assert (corpus / "ragx.toml").read_bytes() == before
    assert stand_ins.asked("get") == []
    assert any("ragx models --yes" in note for note in document["notes"]) == (flags == [])


def test_what_is_there_is_not_downloaded_again(models: Callable[..., Any], stand_ins: Any) -> None:
    stand_ins.lms()
    elsewhere = stand_ins.models / "somebody" / "bge-m3"
    elsewhere.mkdir(parents=True)
    (elsewhere / "BGE-M3-q8_0.gguf").touch()
    stand_ins.llama_server()
    flags = ("--embed-engine", "llama-server", "--rerank-engine", "none", "--quality")
    fast = models(*flags, "fast")
    assert [item["present"] for item in fast["plan"]["downloads"]] == [False]
    if not HEAVY_HERE:
        found = models(*flags, "balanced")
        assert [item["present"] for item in found["plan"]["downloads"]] == [True]
        changes = {change["key"]: change["new"] for change in found["plan"]["changes"]}
        assert changes["embeddings.gguf"] == str(elsewhere / "BGE-M3-q8_0.gguf")


def test_a_failed_download_changes_nothing(
    models: Callable[..., Any], corpus: Path, stand_ins: Any
) -> None:
    stand_ins.lms()
    stand_ins.go_offline()
    before = (corpus / "ragx.toml").read_bytes()
    error = models("--quality", "fast", "--yes", status=2)["error"]
    assert error["code"] == "provider_unavailable"
    assert "network is unreachable" in error["message"]
    assert f"lms get {find_model('fast').source} --gguf --yes" in error["hint"]
    assert (corpus / "ragx.toml").read_bytes() == before


def test_a_program_that_does_not_work_is_told(models: Callable[..., Any], stand_ins: Any) -> None:
    stand_ins.lms()
    (stand_ins.bin / "lms").write_text("#!/bin/sh\necho 'LM Studio is not set up'\nexit 1\n")
    error = models("--quality", "fast", "--yes", status=2)["error"]
    assert error["code"] == "provider_unavailable"
    assert "LM Studio is not set up" in error["message"]


def test_nothing_to_download_with_and_without_a_demand(
    models: Callable[..., Any], corpus: Path
) -> None:
    error = models("--quality", "fast", "--yes", status=2)["error"]
    assert error["code"] == "missing_dependency"
    assert "lms" in error["message"]
    assert "--embed-engine builtin" in error["hint"]
    document = models("--yes")
    assert document["chosen"]["embed_engine"] == "builtin"
    assert document["chosen"]["quality"] is None
    assert any("built-in model is used" in note for note in document["notes"])
    assert settings(corpus) == {"embeddings": {"provider": "builtin"}}


@pytest.mark.parametrize(
    ("flags", "code"),
    [
        (["--quality", "jina-nano", "--embed-engine", "lm-studio"], "usage"),
        (["--quality", "fast", "--embed-engine", "builtin"], "usage"),
        (["--embed-engine", "llama-server"], "missing_dependency"),
        (["--quality", "jina-nano"], "missing_dependency"),
        (["--rerank-engine", "llama-server"], "missing_dependency"),
        (["--quality", "huge"], "usage"),
    ],
)
def test_what_cannot_be_had_is_refused(
    models: Callable[..., Any], corpus: Path, stand_ins: Any, flags: list[str], code: str
) -> None:
    stand_ins.lms()
    before = (corpus / "ragx.toml").read_bytes()
    error = models(*flags, "--yes", status=2)["error"]
    assert error["code"] == code
    assert error["hint"]
    assert (corpus / "ragx.toml").read_bytes() == before


def test_a_licence_is_named(models: Callable[..., Any], stand_ins: Any) -> None:
    stand_ins.lms()
    stand_ins.llama_server()
    document = models("--quality", "jina-nano", "--rerank-engine", "none")
    assert any("CC BY-NC 4.0: not for commercial use" in note for note in document["notes"])
    assert document["chosen"]["embed_engine"] == "llama-server"


def test_whether_the_index_has_to_be_built_again(
    models: Callable[..., Any], corpus: Path, stand_ins: Any, ragx_cli: RunCli
) -> None:
    stand_ins.lms()
    assert models("--quality", "fast")["plan"]["reindex"] is False
    assert ragx_cli("index", cwd=corpus).returncode == 0
    assert models("--quality", "fast")["plan"]["reindex"] is True
    assert models("--embed-engine", "builtin")["plan"]["reindex"] is True
    assert models("--embed-engine", "builtin", "--yes")["plan"]["reindex"] is True
    assert ragx_cli("index", "--full", cwd=corpus).returncode == 0
    document = models("--embed-engine", "builtin")
    assert (document["plan"]["reindex"], document["plan"]["changes"]) == (False, [])


def test_what_the_machines_own_settings_override_is_said(
    models: Callable[..., Any], home: Path, stand_ins: Any
) -> None:
    stand_ins.lms()
    (home / ".ragxrc").write_text('[embeddings]\nprovider = "none"\n')
    document = models("--quality", "fast")
    assert any("~/.ragxrc overrides embeddings.provider" in note for note in document["notes"])


def test_the_catalog_and_the_machine_are_in_the_document(
    models: Callable[..., Any], stand_ins: Any
) -> None:
    stand_ins.lms()
    document = models("--dry-run")
    assert [entry["quality"] for entry in document["catalog"]] == [
        model.quality for model in CATALOG
    ]
    marked = [entry["quality"] for entry in document["catalog"] if entry["recommended"]]
    assert marked == ["fast" if HEAVY_HERE else "balanced"]
    machine = document["machine"]
    assert machine["lms"] == str(stand_ins.bin / "lms")
    assert machine["llama_server"] is None
    assert (machine["ram_bytes"] < LOW_RAM_BYTES) == HEAVY_HERE


def test_text_has_table_plan_and_next_step(corpus: Path, ragx_cli: RunCli, stand_ins: Any) -> None:
    stand_ins.lms()
    shown = ragx_cli("models", "--dry-run", cwd=corpus, env=stand_ins.environment)
    assert (shown.returncode, shown.stderr) == (0, "")
    for model in CATALOG:
        assert model.name in shown.stdout
        assert model.licence in shown.stdout
    table = shown.stdout.split("Embedding models")[1].split("Plan:")[0]
    assert max(map(len, table.splitlines())) <= 100
    done = ragx_cli("models", "--quality", "fast", "--yes", cwd=corpus, env=stand_ins.environment)
    assert done.returncode == 0
    assert "Plan:" in done.stderr
    assert done.stdout == f"5 settings written to {corpus / 'ragx.toml'}\nNext: ragx index\n"


def test_outside_a_corpus(ragx_cli: RunCli, tmp_path: Path) -> None:
    done = ragx_cli("models", "--json", cwd=tmp_path)
    assert done.returncode == 2
    assert json.loads(done.stdout)["error"]["code"] == "no_corpus"

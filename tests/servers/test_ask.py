"""`ragx ask` against chat servers of several makers: whatever a tiny model says, it is checked."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]
Serve = Callable[[str, str], str]

NOTES = {
    "ferry": "The ferry to the island leaves at nine and comes back before dusk.",
    "night": "The night ferry to the island leaves at eleven, on Fridays only.",
    "bread": "Bread rises because yeast turns sugar into gas; the dough doubles in an hour.",
}
SHORT = ("--budget", "400", "--answer-tokens", "60", "--json")
QUESTIONS = ["When does the ferry leave?", "Why does bread rise?", "Who was the first emperor?"]


@pytest.fixture
def corpus(tmp_path: Path, ragx_cli: Run) -> Path:
    root = tmp_path / "corpus"
    root.mkdir()
    for name, text in NOTES.items():
        (root / f"{name}.md").write_text(f"# {name.title()}\n\n{text}\n")
    for i in range(30):
        words = " ".join(f"wave {i * 97 + n} rolls over the reef" for n in range(40))
        (root / f"log-{i}.md").write_text(f"# Log {i}\n\n{words}.\n")
    (root / "ragx.toml").write_text('[embeddings]\nprovider = "none"\n')
    assert ragx_cli("index", cwd=root).returncode == 0
    return root


def settings(serve: Serve, engine: str, run: Run, root: Path) -> None:
    for key, value in (("base_url", serve(engine, "chat")), ("model", "smollm2")):
        assert run("config", "set", f"expansion.{key}", value, cwd=root).returncode == 0


def check(found: dict[str, Any], status: int) -> None:
    """What holds of any answer."""
    if status == 2:  # a tiny model may say nothing at all
        assert found["error"]["code"] == "provider_refused", found
        return
    assert found["schema"] == "ragx.answer.v1"
    assert found["status"] == ("answered" if status == 0 else "missing")
    shown = {item["citation"]: item["id"] for item in found["evidence"]["passages"]}
    cited = [item["citation"] for item in found["citations"]]
    assert all(shown[item["citation"]] == item["id"] for item in found["citations"])
    assert not set(found["unverified"]) & set(shown)
    assert len(cited) == len(set(cited))
    for number in re.findall(r"\[(\d{1,3})\]", re.sub(r"`[^`]*`", "", found["answer"])):
        assert int(number) in cited or int(number) in found["unverified"]
    if found["status"] == "answered" and not cited:
        assert "uncited" in found["flags"]
    assert ("unverified" in found["flags"]) == bool(found["unverified"])
    assert len(found["flags"]) <= len(found["warnings"])


@pytest.mark.parametrize("engine", ["xllamacpp", "llama-server"])
@pytest.mark.parametrize("question", QUESTIONS)
def test_answers_are_checked_whatever_the_model_says(
    engine: str, question: str, corpus: Path, serve: Serve, ragx_cli: Run
) -> None:
    settings(serve, engine, ragx_cli, corpus)
    done = ragx_cli("ask", question, *SHORT, cwd=corpus, timeout=300)
    check(json.loads(done.stdout), done.returncode)
    assert done.stdout.count("\n") == 1


@pytest.mark.parametrize("engine", ["xllamacpp", "llama-server"])
def test_evidence_over_the_models_context_is_refused(
    engine: str, corpus: Path, serve: Serve, ragx_cli: Run
) -> None:
    settings(serve, engine, ragx_cli, corpus)
    args = ("ask", "which wave rolls over the reef", "--budget", "20000", "--passages", "30")
    done = ragx_cli(*args, "--json", cwd=corpus, timeout=300)
    found = json.loads(done.stdout)
    assert done.returncode == 2, found
    assert found["error"]["code"] == "input_too_long", found
    assert "--budget" in found["error"]["hint"]


@pytest.mark.parametrize("engine", ["xllamacpp", "llama-server"])
def test_what_it_cites_can_be_looked_up_later(
    engine: str, corpus: Path, serve: Serve, ragx_cli: Run
) -> None:
    settings(serve, engine, ragx_cli, corpus)
    done = ragx_cli("ask", QUESTIONS[0], *SHORT, cwd=corpus, timeout=300)
    found = json.loads(done.stdout)
    check(found, done.returncode)
    ids = {item["id"].split(":")[0]: item["id"] for item in found["evidence"]["passages"]}
    (corpus / "ferry.md").write_text("# Ferry\n\nNo ferry runs.\n")
    (corpus / "night.md").unlink()
    args = ("ask", "--verify", ids["ferry.md"], ids["night.md"], "--json")
    done = ragx_cli(*args, cwd=corpus)
    states = [item["state"] for item in json.loads(done.stdout)["citations"]]
    assert (done.returncode, states) == (1, ["replaced", "deleted"])
    assert "No ferry" not in done.stdout

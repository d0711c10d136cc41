"""`ragx doctor` names what is wrong, and running what it names puts it right."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]

NAMES = ["config", "embeddings", "expansion", "rerank", "index"]
_COMMAND = re.compile(r"ragx (?:config set \S+ (?:''|[^\s;,]+)|index(?: --[\w-]+)*|trust)")


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    root = tmp_path / "corpus"
    root.mkdir()
    for number in range(4):
        (root / f"note{number}.md").write_text(f"# Note {number}\n\nThe pelican number {number}.\n")
    return root


def examine(root: Path, run: Run, *flags: str, env: Any = None) -> tuple[int, dict[str, Any]]:
    """Exit code, and the checks by name."""
    done = run("doctor", *flags, "--json", cwd=root, env=env)
    document = json.loads(done.stdout)
    assert document["schema"] == "ragx.doctor.v1", document
    assert [check["name"] for check in document["checks"]][:5] == NAMES
    assert document["ok"] == (done.returncode == 0)
    return done.returncode, {check["name"]: check for check in document["checks"]}


def failing(checks: dict[str, Any]) -> list[str]:
    return [name for name, check in checks.items() if check["status"] == "fail"]


def cure(root: Path, run: Run, *flags: str, steps: int = 4) -> list[str]:
    """Run the command of the first failing check's hint until nothing fails; the commands run."""
    ran: list[str] = []
    for _ in range(steps):
        status, checks = examine(root, run, *flags)
        if status == 0:
            return ran
        hint = checks[failing(checks)[0]]["hint"]
        command = _COMMAND.search(hint)
        assert command, hint
        ran.append(command[0].strip())
        done = run(*shlex.split(ran[-1])[1:], cwd=root)
        assert done.returncode == 0, (ran, done.stderr)
    raise AssertionError(f"still failing after {ran}")


def test_healthy(corpus: Path, faulty_server: Any, ragx_cli: Run) -> None:
    (corpus / "ragx.toml").write_text(faulty_server.settings())
    assert ragx_cli("index", cwd=corpus).returncode == 0
    status, checks = examine(corpus, ragx_cli, "--deep")
    assert status == 0
    states = {name: check["status"] for name, check in checks.items()}
    assert states == {
        "config": "ok",
        "embeddings": "ok",
        "expansion": "skip",
        "rerank": "skip",
        "index": "ok",
        "integrity": "ok",
    }
    assert all(check["elapsed_ms"] >= 0 for check in checks.values())
    shown = ragx_cli("doctor", cwd=corpus).stdout
    assert [line.split()[1] for line in shown.splitlines() if line[:1] in "✓!✗-"] == NAMES


def test_no_server(corpus: Path, ragx_cli: Run) -> None:
    (corpus / "ragx.toml").write_text(
        '[embeddings]\nprovider = "openai"\nbase_url = "http://127.0.0.1:9/v1"\nmodel = "m"\n'
    )
    status, checks = examine(corpus, ragx_cli)
    assert status == 1
    assert failing(checks) == ["embeddings"]
    assert "http://127.0.0.1:9/v1" in checks["embeddings"]["detail"]
    assert cure(corpus, ragx_cli) == [
        "ragx config set embeddings.provider builtin",
        "ragx config set embeddings.model ''",
    ]


def test_wrong_model(corpus: Path, faulty_server: Any, fault: Any, ragx_cli: Run) -> None:
    (corpus / "ragx.toml").write_text(faulty_server.settings(model="wrods"))
    faulty_server.judge = lambda number, texts: (
        fault(status=404, body={"error": {"message": "model 'wrods' not found"}})
        if '"wrods"' in (corpus / "ragx.toml").read_text()
        else None
    )
    status, checks = examine(corpus, ragx_cli)
    assert status == 1
    assert failing(checks) == ["embeddings"]
    assert "words" in checks["embeddings"]["detail"] + checks["embeddings"]["hint"]
    assert cure(corpus, ragx_cli) == ["ragx config set embeddings.model words"]


def test_a_model_that_is_not_listed_may_be_loaded_on_demand(
    corpus: Path, faulty_server: Any, ragx_cli: Run
) -> None:
    (corpus / "ragx.toml").write_text(faulty_server.settings())
    faulty_server.models = ["other", "third"]
    status, checks = examine(corpus, ragx_cli)
    assert (status, checks["embeddings"]["status"]) == (0, "warn")
    assert "other" in checks["embeddings"]["detail"]


def test_wrong_dimension(corpus: Path, faulty_server: Any, ragx_cli: Run) -> None:
    (corpus / "ragx.toml").write_text(faulty_server.settings())
    assert ragx_cli("index", cwd=corpus).returncode == 0
    faulty_server.width = 48
    status, checks = examine(corpus, ragx_cli)
    assert status == 1
    assert failing(checks) == ["embeddings"]
    assert "48" in checks["embeddings"]["detail"]
    assert cure(corpus, ragx_cli) == ["ragx index --no-cache"]


@pytest.mark.parametrize(
    ("key", "value", "command"),
    [
        ("embeddings.model", "other", "ragx index --full"),
        ("chunking.size_tokens", "64", "ragx index --full"),
        ("graph.k", "5", "ragx index --edges-only"),
    ],
)
def test_an_index_of_other_settings(
    key: str, value: str, command: str, corpus: Path, faulty_server: Any, ragx_cli: Run
) -> None:
    (corpus / "ragx.toml").write_text(faulty_server.settings())
    faulty_server.models = ["words", "other"]
    ragx_cli("index", cwd=corpus)
    ragx_cli("config", "set", key, value, cwd=corpus)
    status, checks = examine(corpus, ragx_cli)
    assert status == 1
    assert failing(checks) == ["index"]
    assert cure(corpus, ragx_cli) == [command]


def test_a_stale_index_is_a_warning(corpus: Path, faulty_server: Any, ragx_cli: Run) -> None:
    (corpus / "ragx.toml").write_text(faulty_server.settings())
    status, checks = examine(corpus, ragx_cli)
    assert (status, checks["index"]["status"]) == (0, "warn")
    assert checks["index"]["hint"] == "ragx index"
    ragx_cli("index", cwd=corpus)
    (corpus / "note0.md").write_text("# Changed\n")
    (corpus / "new.md").write_text("# New\n")
    (corpus / "note3.md").unlink()
    status, checks = examine(corpus, ragx_cli)
    assert (status, checks["index"]["status"]) == (0, "warn")
    assert "1 new, 1 changed, 1 deleted" in checks["index"]["detail"]
    status, checks = examine(corpus, ragx_cli, "--fix")
    assert (status, checks["index"]["status"]) == (0, "ok")


def test_a_text_that_could_not_be_embedded_is_a_warning(
    corpus: Path, faulty_server: Any, fault: Any, ragx_cli: Run
) -> None:
    (corpus / "ragx.toml").write_text(faulty_server.settings())
    faulty_server.judge = lambda number, texts: (
        fault(status=400, body={"error": "no"})
        if any("number 2" in text for text in texts)
        else None
    )
    assert ragx_cli("index", cwd=corpus).returncode == 2
    faulty_server.judge = lambda number, texts: None
    status, checks = examine(corpus, ragx_cli)
    assert (status, checks["index"]["status"]) == (0, "warn")
    assert "note2.md" in checks["index"]["detail"]
    assert ragx_cli("index", cwd=corpus).returncode == 0
    assert examine(corpus, ragx_cli)[1]["index"]["status"] == "ok"


def flipped(path: Path) -> None:
    """Change one byte in the middle of a file."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(bytes(data))


@pytest.mark.parametrize("flag", ["", "--deep"])
def test_a_damaged_index(flag: str, corpus: Path, faulty_server: Any, ragx_cli: Run) -> None:
    (corpus / "ragx.toml").write_text(faulty_server.settings())
    ragx_cli("index", cwd=corpus)
    flipped(corpus / ".ragx" / "index.db")
    flags = [flag] if flag else []
    status, checks = examine(corpus, ragx_cli, *flags)
    assert status == 1
    assert "index" in failing(checks)
    assert cure(corpus, ragx_cli, *flags) == ["ragx index --full"]


def test_deep_finds_damage_that_the_seal_does_not_know(
    corpus: Path, faulty_server: Any, ragx_cli: Run
) -> None:
    import sqlite3

    (corpus / "ragx.toml").write_text(faulty_server.settings())
    ragx_cli("index", cwd=corpus)
    with sqlite3.connect(corpus / ".ragx" / "index.db") as db:
        db.execute("DELETE FROM windows WHERE chunk_id IN (SELECT chunk_id FROM chunks LIMIT 1)")
        db.execute("DELETE FROM files WHERE path = 'note1.md'")
        db.execute("UPDATE chunks SET line_end = line_end + 1 WHERE ordinal = 0")
    db.close()
    (corpus / ".ragx" / "index.seal").unlink()
    status, checks = examine(corpus, ragx_cli, "--deep")
    assert status == 1
    assert "1 chunks without their file" in checks["integrity"]["detail"]
    assert cure(corpus, ragx_cli, "--deep") == ["ragx index --full"]


def test_fix_repairs_a_damaged_index(corpus: Path, faulty_server: Any, ragx_cli: Run) -> None:
    (corpus / "ragx.toml").write_text(faulty_server.settings())
    ragx_cli("index", cwd=corpus)
    flipped(corpus / ".ragx" / "index.db")
    done = ragx_cli("doctor", "--fix", "--json", cwd=corpus)
    document = json.loads(done.stdout)
    assert (done.returncode, document["ok"]) == (0, True)
    assert document["fixed"] == "ragx index --full"
    assert json.loads(ragx_cli("doctor", "--fix", "--json", cwd=corpus).stdout)["fixed"] == ""


def test_a_server_that_has_begun_to_cut_texts(
    corpus: Path, faulty_server: Any, ragx_cli: Run
) -> None:
    (corpus / "long.md").write_text("# Long\n\n" + "wave after wave rolls in. " * 120)
    (corpus / "ragx.toml").write_text(faulty_server.settings())
    ragx_cli("index", cwd=corpus)
    assert examine(corpus, ragx_cli, "--deep")[0] == 0
    faulty_server.reads = 128
    status, checks = examine(corpus, ragx_cli, "--deep")
    assert status == 1
    assert failing(checks) == ["embeddings"]
    assert "cuts texts" in checks["embeddings"]["detail"]
    assert cure(corpus, ragx_cli, "--deep") == ["ragx index --full"]
    faulty_server.forget()
    ragx_cli("index", "--no-cache", cwd=corpus)
    passages = [text for texts in faulty_server.asked for text in texts if "rolls" in text]
    assert passages
    assert not set(passages) & set(faulty_server.cut)


def test_a_missing_key(corpus: Path, faulty_server: Any, ragx_cli: Run) -> None:
    (corpus / "ragx.toml").write_text(faulty_server.settings())
    ragx_cli("config", "set", "embeddings.api_key_env", "MY_KEY", cwd=corpus)
    status, checks = examine(corpus, ragx_cli)
    assert status == 1
    assert "embeddings" in failing(checks)
    assert "export MY_KEY=" in checks["embeddings"]["hint"]
    assert examine(corpus, ragx_cli, env={"MY_KEY": "secret-1"})[0] == 0
    assert cure(corpus, ragx_cli) == ["ragx config set embeddings.api_key_env ''"]


@pytest.mark.parametrize("section", ["embeddings", "expansion", "rerank"])
def test_a_missing_llama_server(section: str, corpus: Path, ragx_cli: Run) -> None:
    (corpus / "m.gguf").write_bytes(b"GGUF")
    (corpus / "ragx.toml").write_text("")
    for key, value in (
        (f"{section}.provider", "llama-server"),
        (f"{section}.gguf", "m.gguf"),
        *(() if section == "embeddings" else ((f"{section}.enabled", "true"),)),
    ):
        assert ragx_cli("config", "set", key, value, cwd=corpus).returncode == 0
    nowhere = {"PATH": str(Path(shutil.which("sh") or "/bin/sh").parent / "nowhere")}
    status, checks = examine(corpus, ragx_cli, env=nowhere)
    assert status == 1
    assert failing(checks) == [section]
    assert "llama-server" in checks[section]["detail"]
    assert f"ragx config set {section}.server_bin" in checks[section]["hint"]


@pytest.mark.parametrize(
    ("section", "command"),
    [
        ("expansion", "ragx config set expansion.enabled false"),
        ("rerank", "ragx config set rerank.enabled false"),
    ],
)
def test_a_second_stage_without_its_server(
    section: str, command: str, corpus: Path, ragx_cli: Run
) -> None:
    (corpus / "ragx.toml").write_text(
        f'[{section}]\nenabled = true\nprovider = "openai"\nmodel = "m"\n'
        'base_url = "http://127.0.0.1:9/v1"\n'
    )
    status, checks = examine(corpus, ragx_cli)
    assert status == 1
    assert failing(checks) == [section]
    assert cure(corpus, ragx_cli) == [command]


def test_settings_that_wait_for_trust(corpus: Path, ragx_cli: Run) -> None:
    (corpus / "ragx.toml").write_text('[rerank]\nenabled = true\ngguf = "m.gguf"\n')
    status, checks = examine(corpus, ragx_cli)
    assert status == 1
    assert {"config", "rerank"} == set(failing(checks))
    assert "ragx trust" in checks["config"]["hint"]


def test_it_could_not_run(tmp_path: Path, ragx_cli: Run) -> None:
    done = ragx_cli("doctor", "--json", cwd=tmp_path)
    assert (done.returncode, json.loads(done.stdout)["error"]["code"]) == (2, "no_corpus")
    (tmp_path / "ragx.toml").write_text("[nonsense\n")
    done = ragx_cli("doctor", "--json", cwd=tmp_path)
    assert (done.returncode, json.loads(done.stdout)["error"]["code"]) == (2, "config")


def test_a_missing_key_hides_nothing_of_the_index(
    corpus: Path, faulty_server: Any, ragx_cli: Run
) -> None:
    (corpus / "ragx.toml").write_text(faulty_server.settings())
    ragx_cli("index", cwd=corpus)
    ragx_cli("config", "set", "embeddings.api_key_env", "MY_KEY", cwd=corpus)
    assert ragx_cli("status", cwd=corpus).returncode == 0
    _, checks = examine(corpus, ragx_cli, "--deep")
    assert failing(checks) == ["embeddings"]
    assert (checks["index"]["status"], checks["integrity"]["status"]) == ("ok", "ok")


def test_a_damaged_index_says_nothing_about_the_server(
    corpus: Path, faulty_server: Any, ragx_cli: Run
) -> None:
    (corpus / "ragx.toml").write_text(faulty_server.settings())
    ragx_cli("index", cwd=corpus)
    flipped(corpus / ".ragx" / "index.db")
    _, checks = examine(corpus, ragx_cli)
    assert failing(checks) == ["index"]


def test_ollama_lists_a_model_with_its_tag(corpus: Path, faulty_server: Any, ragx_cli: Run) -> None:
    (corpus / "ragx.toml").write_text(faulty_server.settings(model="nomic-embed-text"))
    faulty_server.models = ["llama3:latest", "nomic-embed-text:latest"]
    assert examine(corpus, ragx_cli)[1]["embeddings"]["status"] == "ok"
    faulty_server.models = ["llama3:latest", "nomic-embed-text-v2"]
    hint = examine(corpus, ragx_cli)[1]["embeddings"]["hint"]
    assert hint == "ragx config set embeddings.model nomic-embed-text-v2"


def test_a_repair_that_fails_keeps_the_findings(
    corpus: Path, faulty_server: Any, ragx_cli: Run
) -> None:
    (corpus / "ragx.toml").write_text(faulty_server.settings())
    ragx_cli("index", cwd=corpus)
    (corpus / "new.md").write_text("# New\n")
    (corpus / "ragx.toml").write_text(faulty_server.settings(base_url="http://127.0.0.1:9/v1"))
    done = ragx_cli("doctor", "--fix", "--json", cwd=corpus)
    document = json.loads(done.stdout)
    assert (done.returncode, document["schema"], document["fixed"]) == (1, "ragx.doctor.v1", "")
    assert "127.0.0.1:9" in document["fix_failed"]


def test_hints_of_a_query_help(corpus: Path, faulty_server: Any, ragx_cli: Run) -> None:
    (corpus / "ragx.toml").write_text(faulty_server.settings())
    ragx_cli("index", cwd=corpus)
    faulty_server.width = 48
    error = json.loads(ragx_cli("query", "pelican", "--json", cwd=corpus).stdout)["error"]
    assert error["code"] == "manifest_mismatch"
    assert "ragx index --no-cache" in error["hint"]
    ragx_cli("index", "--no-cache", cwd=corpus)
    assert ragx_cli("query", "pelican", cwd=corpus).returncode == 0
    (corpus / "ragx.toml").write_text(faulty_server.settings(base_url="http://127.0.0.1:9/v1"))
    done = ragx_cli("query", "pelican", "--json", cwd=corpus)
    assert done.returncode == 2
    assert "--mode lexical" in json.loads(done.stdout)["error"]["hint"]


@pytest.mark.parametrize(
    "settings", ['provider = "openai"', 'provider = "none"', 'provider = "onnx"\nmodel = ""']
)
def test_a_second_stage_that_is_not_set_up_costs_a_warning(
    settings: str, corpus: Path, faulty_server: Any, ragx_cli: Run
) -> None:
    (corpus / "ragx.toml").write_text(
        faulty_server.settings() + f"[rerank]\nenabled = true\n{settings}\n"
    )
    ragx_cli("index", cwd=corpus)
    done = ragx_cli("query", "pelican", "--rerank", "--json", cwd=corpus)
    document = json.loads(done.stdout)
    assert done.returncode == 0, document
    assert document["stages"]["rerank"] == "failed"
    assert document["warnings"]

from __future__ import annotations

import os
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from ragx.api import setup
from ragx.api.catalog import (
    BUILTIN,
    CATALOG,
    LICENCE_TO_CONFIRM,
    LOW_RAM_BYTES,
    RERANKER,
    find_model,
    heavy_for,
    recommended,
)
from ragx.api.machine import Machine
from ragx.api.setup import (
    Choice,
    apply_plan,
    check_choice,
    default_choice,
    make_plan,
    rerank_engines,
)
from ragx.config import RC_LABEL, create_config, default_toml, load_config
from ragx.errors import ConfigError, MissingDependency, RagxError, UsageError
from ragx.shells.cli import models

SMALL = Machine(LOW_RAM_BYTES - 1, "any", 2, llama_server="/x/llama-server", lms="/x/lms")
LARGE = Machine(LOW_RAM_BYTES, "any", 2, llama_server="/x/llama-server", lms="/x/lms")
BARE = Machine(None, "any", 2)


def test_the_flags_name_what_there_is() -> None:
    """The command spells them out, so that its help imports none of this."""
    assert tuple(model.quality for model in CATALOG) == models._QUALITIES
    engines = [engine.name for engine in setup.embed_engines(LARGE)]
    assert (*engines, "builtin") == models._EMBED_ENGINES
    assert tuple(engine.name for engine in rerank_engines(LARGE)) == models._RERANK_ENGINES


@pytest.mark.parametrize(
    ("machine", "quality"), [(SMALL, "fast"), (LARGE, "balanced"), (BARE, "balanced")]
)
def test_memory_decides_what_is_recommended(machine: Machine, quality: str) -> None:
    assert recommended(machine) == quality
    heavy = {name for name in ("fast", "balanced", "best", "jina-nano") if heavy_for(machine, name)}
    assert heavy == ({"balanced", "best"} if machine is SMALL else set())
    assert not heavy_for(machine, None)


def test_every_model_can_be_asked_for_and_has_its_facts() -> None:
    for model in (*CATALOG, RERANKER):
        assert model.file.endswith(".gguf")
        assert model.source == f"https://huggingface.co/{model.repository}@q8_0"
        assert 100e6 < model.size_bytes < 1e9
        assert model.licence
    assert find_model("best").query_prefix.startswith("Instruct: ")
    assert find_model("best").query_prefix.endswith("\nQuery: ")
    assert BUILTIN.size_bytes == 0
    with pytest.raises(UsageError, match="no quality 'huge'"):
        find_model("huge")


@pytest.mark.parametrize(
    ("machine", "wishes", "expected"),
    [
        (LARGE, {}, Choice("balanced", "llama-server", "llama-server")),
        (SMALL, {}, Choice("fast", "llama-server", "llama-server")),
        (LARGE, {"embed_engine": "lm-studio"}, Choice("balanced", "lm-studio", "llama-server")),
        (LARGE, {"embed_engine": "builtin"}, Choice(None, "builtin", "llama-server")),
        (LARGE, {"rerank_engine": "none"}, Choice("balanced", "llama-server", "none")),
        (
            Machine(None, "any", 1, lms="/x/lms"),
            {"quality": "best"},
            Choice("best", "lm-studio", None),
        ),
        (
            Machine(None, "any", 1, lms="/x/lms", sentence_transformers=True),
            {},
            Choice("balanced", "lm-studio", "sentence-transformers"),
        ),
        (Machine(None, "any", 1, llama_server="/x/l"), {}, Choice(None, "builtin", None)),
        (BARE, {}, Choice(None, "builtin", None)),
        (BARE, {"quality": "fast"}, Choice("fast", "lm-studio", None)),
        (BARE, {"quality": "jina-nano"}, Choice("jina-nano", "llama-server", None)),
    ],
)
def test_what_suits_the_machine(machine: Machine, wishes: dict[str, Any], expected: Choice) -> None:
    assert default_choice(machine, **wishes) == expected


@pytest.mark.parametrize(
    ("machine", "choice", "fault", "hint"),
    [
        (BARE, Choice("fast", "lm-studio", None), MissingDependency, "--embed-engine builtin"),
        (BARE, Choice(None, "builtin", "sentence-transformers"), MissingDependency, "[rerank]"),
        (BARE, Choice(None, "builtin", "llama-server"), MissingDependency, "--rerank-engine none"),
        (
            Machine(None, "any", 1, lms="/x/lms"),
            Choice("fast", "llama-server", None),
            MissingDependency,
            "--embed-engine lm-studio",
        ),
        (LARGE, Choice("fast", "builtin", None), UsageError, "--embed-engine builtin"),
        (
            LARGE,
            Choice(LICENCE_TO_CONFIRM, "lm-studio", None),
            UsageError,
            "--embed-engine llama-server",
        ),
    ],
)
def test_what_cannot_be_had(
    machine: Machine, choice: Choice, fault: type[RagxError], hint: str
) -> None:
    with pytest.raises(fault) as caught:
        check_choice(machine, choice)
    assert hint in caught.value.hint


def test_a_choice_that_can_be_had() -> None:
    check_choice(LARGE, Choice("best", "llama-server", "none"))
    check_choice(BARE, Choice(None, "builtin", None))


def corpus(root: Path, text: str) -> Any:
    (root / "ragx.toml").write_text(text, encoding="utf-8")
    return load_config(root, env={}, home=None)


def test_a_reranker_on_torch_is_fetched_from_the_hub_and_a_failure_is_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = corpus(tmp_path, '[embeddings]\nprovider = "builtin"\n')
    machine = Machine(None, "any", 1, sentence_transformers=True)
    choice = Choice(None, "builtin", "sentence-transformers")
    plan = make_plan(loaded, machine, choice, {})
    assert [(item.via, item.source, item.present) for item in plan.downloads] == [
        ("hub", "BAAI/bge-reranker-v2-m3", False)
    ]
    # A Python whose huggingface_hub cannot reach anything.
    offline = tmp_path / "huggingface_hub.py"
    offline.write_text("def snapshot_download(*a, **k): raise OSError('network is unreachable')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    done = apply_plan(loaded, machine, plan, {})
    assert any("network is unreachable" in note for note in done.notes)
    assert any("Restricted networks" in note for note in done.notes)
    written = tomllib.loads((tmp_path / "ragx.toml").read_text())["rerank"]
    assert written == {"enabled": True}
    # One that works, and leaves what the library leaves.
    cache = tmp_path / "cache"
    monkeypatch.setenv("HF_HUB_CACHE", str(cache))
    offline.write_text(
        "import os, pathlib\n"
        "def snapshot_download(name, allow_patterns):\n"
        "    cache = pathlib.Path(os.environ['HF_HUB_CACHE'])\n"
        "    folder = cache / ('models--' + name.replace('/', '--'))\n"
        "    (folder / 'snapshots' / 'a1').mkdir(parents=True)\n"
        "    (folder / 'snapshots' / 'a1' / 'model.safetensors').touch()\n"
    )
    done = apply_plan(loaded, machine, plan, {})
    assert done.notes == ()
    assert [item.present for item in done.downloads] == [True]


def test_no_rerank_engine_leaves_the_section_alone_and_none_turns_it_off(tmp_path: Path) -> None:
    loaded = corpus(tmp_path, "[rerank]\nenabled = true\n")
    left = make_plan(loaded, BARE, Choice(None, "builtin", None), {})
    assert left.changes == ()
    off = make_plan(loaded, BARE, Choice(None, "builtin", "none"), {})
    assert [(item.key, item.old, item.new) for item in off.changes] == [
        ("rerank.enabled", True, False)
    ]


def test_the_plan_compares_with_the_corpus_own_file(tmp_path: Path, home: Path) -> None:
    (home / ".ragxrc").write_text('[embeddings]\nprovider = "builtin"\n')
    (tmp_path / "ragx.toml").write_text('[embeddings]\nprovider = "none"\n')
    loaded = load_config(tmp_path, env={}, home=home)
    plan = make_plan(loaded, BARE, Choice(None, "builtin", None), {})
    assert [(item.key, item.old, item.new) for item in plan.changes] == [
        ("embeddings.provider", "none", "builtin")
    ]
    assert any(note.startswith(f"{RC_LABEL} overrides") for note in plan.notes)


def test_a_download_that_leaves_no_file_is_no_success(tmp_path: Path) -> None:
    lms = tmp_path / "lms"
    lms.write_text(f"#!{sys.executable}\nimport sys\nsys.argv[1] == 'ls' and print('[]')\n")
    lms.chmod(0o755)
    loaded = corpus(tmp_path, "")
    machine = Machine(None, "any", 1, lms=str(lms))
    choice = Choice("fast", "lm-studio", None)
    with pytest.raises(RagxError, match="does not list EmbeddingGemma 300M"):
        apply_plan(loaded, machine, make_plan(loaded, machine, choice, {}), {})
    assert (tmp_path / "ragx.toml").read_text() == ""


def test_a_new_file_is_the_default_one_with_the_answers(tmp_path: Path, home: Path) -> None:
    target = create_config(tmp_path, {"query.top": 7}, env={}, home=home)
    assert target.read_text() == default_toml().replace("top = 20\n", "top = 7\n")
    assert os.listdir(tmp_path) == ["ragx.toml"]
    with pytest.raises(ConfigError) as caught:
        create_config(tmp_path, {}, env={}, home=home)
    assert caught.value.code == "config_exists"

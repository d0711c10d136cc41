from __future__ import annotations

from pathlib import Path

import pytest

from ragx.config import Embeddings, Expansion, LoadedConfig, load_config, resolve_api_key
from ragx.errors import ConfigError

LM_STUDIO = "http://localhost:1234/v1"
OLLAMA = "http://localhost:11434/v1"
ELSEWHERE = "https://api.example.org/v1"


def load(root: Path, text: str, **env: str) -> LoadedConfig:
    (root / "ragx.toml").write_text(text, encoding="utf-8")
    return load_config(root, env=env, home=None)


@pytest.mark.parametrize(
    ("text", "env", "url", "origin"),
    [
        ('provider = "openai"', {}, LM_STUDIO, "default"),
        ('provider = "openai"\nbase_url = ""', {}, LM_STUDIO, "default"),
        ('provider = "openai"', {"OPENAI_BASE_URL": ELSEWHERE}, ELSEWHERE, "OPENAI_BASE_URL"),
        ('provider = "openai"\nbase_url = ""', {"OPENAI_BASE_URL": ELSEWHERE}, ELSEWHERE,
         "OPENAI_BASE_URL"),
        ('provider = "openai"', {"OPENAI_BASE_URL": ""}, LM_STUDIO, "default"),
        ('provider = "openai"\nbase_url = "http://a/v1"', {"OPENAI_BASE_URL": ELSEWHERE},
         "http://a/v1", "ragx.toml"),
        (f'provider = "openai"\nbase_url = "{LM_STUDIO}"', {"OPENAI_BASE_URL": ELSEWHERE},
         LM_STUDIO, "ragx.toml"),
        ('provider = "ollama"', {"OPENAI_BASE_URL": ELSEWHERE}, OLLAMA, "default"),
        ('provider = "builtin"', {"OPENAI_BASE_URL": ELSEWHERE}, "", "default"),
        ('provider = "none"', {}, "", "default"),
    ],
)  # fmt: skip
def test_the_address_comes_from_the_file_first(
    tmp_path: Path, text: str, env: dict[str, str], url: str, origin: str
) -> None:
    loaded = load(tmp_path, f"[embeddings]\n{text}\n", **env)
    assert loaded.config.embeddings.base_url == url
    assert loaded.origins["embeddings.base_url"] == origin


def test_sections_resolve_apart(tmp_path: Path) -> None:
    loaded = load(
        tmp_path,
        '[embeddings]\nprovider = "ollama"\n[expansion]\nbase_url = "https://b.example/v1"\n',
        OPENAI_BASE_URL=ELSEWHERE,
    )
    assert loaded.config.embeddings.base_url == OLLAMA
    assert loaded.config.expansion.base_url == "https://b.example/v1"


def test_no_variable_changes_a_provider(tmp_path: Path) -> None:
    loaded = load(tmp_path, "", OPENAI_BASE_URL=ELSEWHERE, OPENAI_API_KEY="k")
    assert loaded.config.embeddings.provider == "builtin"
    assert loaded.config.expansion.provider == "openai"


def test_a_variable_that_is_no_address_is_refused_only_where_it_applies(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="OPENAI_BASE_URL must be a URL") as caught:
        load(tmp_path, '[embeddings]\nprovider = "openai"\n', OPENAI_BASE_URL="http://u:secret@h")
    assert "secret" not in caught.value.message
    explicit = '[embeddings]\nprovider = "ollama"\n[expansion]\nprovider = "none"\n'
    assert load(tmp_path, explicit, OPENAI_BASE_URL="nonsense").config.embeddings.base_url == OLLAMA


def test_keys_come_from_the_named_variable_or_the_usual_one() -> None:
    env = {"OPENAI_API_KEY": "usual", "MINE": "mine"}
    assert resolve_api_key("embeddings", Embeddings(provider="openai"), env=env) == "usual"
    assert (
        resolve_api_key("embeddings", Embeddings(provider="openai", api_key_env="MINE"), env=env)
        == "mine"
    )
    assert resolve_api_key("expansion", Expansion(), env=env) == "usual"
    assert resolve_api_key("expansion", Expansion(), env={}) is None
    assert resolve_api_key("expansion", Expansion(), env={"OPENAI_API_KEY": ""}) is None
    assert resolve_api_key("embeddings", Embeddings(), env=env) is None


@pytest.mark.parametrize("env", [{}, {"MINE": ""}, {"OPENAI_API_KEY": "usual"}])
def test_a_named_variable_that_is_unset_is_an_error(env: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=r"expansion\.api_key_env .* MINE.* not set") as caught:
        resolve_api_key("expansion", Expansion(api_key_env="MINE"), env=env)
    assert caught.value.code == "api_key_unset"
    assert "usual" not in caught.value.message + caught.value.hint

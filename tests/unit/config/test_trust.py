"""Which settings of a corpus wait for its reader's word, and what counts as that word."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ragx.config import (
    LoadedConfig,
    digest,
    forget,
    is_trusted,
    load_config,
    remember,
    require_trust,
    sensitive,
    set_value,
    trust_written,
    untrusted,
)
from ragx.errors import ConfigError

REMOTE = 'provider = "openai"\nbase_url = "https://models.example/v1"\nmodel = "m"\n'


def loaded(root: Path, home: Path, text: str, rc: str = "") -> LoadedConfig:
    root.mkdir(exist_ok=True)
    (root / "ragx.toml").write_text(text)
    if rc:
        (home / ".ragxrc").write_text(rc)
    return load_config(root, env={}, home=home)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('[embeddings]\nbase_url = "https://models.example/v1"', "embeddings.base_url"),
        ('[embeddings]\nbase_url = "http://localhost.example/v1"', "embeddings.base_url"),
        ('[embeddings]\nbase_url = "http://127.0.0.1.example/v1"', "embeddings.base_url"),
        ('[embeddings]\nbase_url = "http://10.0.0.7:1234/v1"', "embeddings.base_url"),
        ('[embeddings]\nbase_url = "http://0.0.0.0:1234/v1"', "embeddings.base_url"),
        ('[expansion]\nbase_url = "http://models.example"', "expansion.base_url"),
        ('[rerank]\nbase_url = "http://[2001:db8::1]/v1"', "rerank.base_url"),
        ('[embeddings]\napi_key_env = "AWS_SECRET_ACCESS_KEY"', "embeddings.api_key_env"),
        ('[expansion]\napi_key_env = "TOKEN"', "expansion.api_key_env"),
        ('[rerank]\napi_key_env = "TOKEN"', "rerank.api_key_env"),
        ('[embeddings]\nserver_bin = "./run.sh"', "embeddings.server_bin"),
        ('[expansion]\nserver_bin = "bash"', "expansion.server_bin"),
        ('[rerank]\nserver_bin = "/bin/sh"', "rerank.server_bin"),
        ('[embeddings]\ngguf = "model.gguf"', "embeddings.gguf"),
        ('[rerank]\ngguf = "/etc/passwd"', "rerank.gguf"),
        ('[embeddings]\nprovider = "onnx"\nmodel = "../model"', "embeddings.model"),
        ('[embeddings]\nprovider = "onnx"\nmodel = "inside"', "embeddings.model"),
        ('[rerank]\nprovider = "sentence-transformers"\nmodel = "/m"', "rerank.model"),
        ('[rerank]\nprovider = "sentence-transformers"\nmodel = "C:\\\\m"', "rerank.model"),
        ('[rerank]\nprovider = "sentence-transformers"\nmodel = "~/m"', "rerank.model"),
        ('[rerank]\nprovider = "sentence-transformers"\nmodel = "org/here"', "rerank.model"),
        ('[rerank]\nprovider = "sentence-transformers"\nmodel = "org/gone"', "rerank.model"),
        ('[embeddings]\nprovider = "sentence-transformers"\nmodel = "a"', "embeddings.model"),
        ('[embeddings]\nbase_url = "http://models.localhost/v1"', "embeddings.base_url"),
        ('[embeddings]\nbase_url = "http://127.0.0.1./v1"', "embeddings.base_url"),
        ('[embeddings]\nbase_url = "http://127.1/v1"', "embeddings.base_url"),
        ('[embeddings]\nbase_url = "http://127.999.0.1/v1"', "embeddings.base_url"),
        ('[embeddings]\nbase_url = "http://[::ffff:8.8.8.8]/v1"', "embeddings.base_url"),
    ],
)
def test_what_could_harm_the_reader_waits(tmp_path: Path, home: Path, text: str, key: str) -> None:
    (tmp_path / "c" / "inside").mkdir(parents=True)
    (tmp_path / "c" / "org" / "here").mkdir(parents=True)
    settings = loaded(tmp_path / "c", home, text)
    assert list(sensitive(settings)) == [key]
    assert list(untrusted(settings)) == [key]
    section, _, name = key.partition(".")
    using = "llama-server" if name in ("gguf", "server_bin") else "openai"
    if name != "model":
        text = text.replace("\n", f'\nprovider = "{using}"\n', 1)
        settings = loaded(tmp_path / "c", home, text)
    with pytest.raises(ConfigError) as caught:
        require_trust(settings, section)
    assert caught.value.code == "untrusted"
    assert "ragx trust" in caught.value.hint
    assert list(caught.value.details["settings"]) == [key]
    for other in {"embeddings", "expansion", "rerank"} - {section}:
        require_trust(settings, other)


@pytest.mark.parametrize(
    "text",
    [
        "",
        '[embeddings]\nprovider = "openai"\nbase_url = "http://localhost:1234/v1"\nmodel = "m"',
        '[embeddings]\nbase_url = "http://127.0.0.1:8080/v1"',
        '[embeddings]\nbase_url = "http://[::1]:8080/v1"',
        '[embeddings]\nprovider = "ollama"\nmodel = "nomic-embed-text"',
        '[embeddings]\nprovider = "openai"\nmodel = "/strange/but/a/name"',
        '[rerank]\nprovider = "sentence-transformers"\nmodel = "BAAI/bge-reranker-v2-m3"',
        '[embeddings]\nprovider = "ollama"',
        '[rerank]\nenabled = true\nmodel = "BAAI/bge-reranker-v2-m3"',
        '[embeddings]\nbase_url = ""\napi_key_env = ""\nserver_bin = ""\ngguf = ""',
        '[corpus]\ninclude = ["/etc/*"]',
    ],
)
def test_what_stays_on_this_machine_counts_at_once(tmp_path: Path, home: Path, text: str) -> None:
    settings = loaded(tmp_path / "c", home, text)
    assert sensitive(settings) == {}
    assert is_trusted(settings)
    assert not remember(settings)
    assert not (home / ".ragxtrust").exists()


def test_what_the_machines_own_file_says_is_the_users_own(tmp_path: Path, home: Path) -> None:
    ours = '[embeddings]\nbase_url = "https://ours.example/v1"\n'
    settings = loaded(tmp_path / "c", home, f"[embeddings]\n{REMOTE}", rc=ours)
    assert sensitive(settings) == {}
    # Its address does not make a stranger's variable harmless.
    theirs = '[embeddings]\napi_key_env = "SECRET"\n'
    assert list(sensitive(loaded(tmp_path / "c", home, theirs, rc=ours))) == [
        "embeddings.api_key_env"
    ]


def test_trust_is_by_content_on_this_machine(tmp_path: Path, home: Path) -> None:
    text = f"[embeddings]\n{REMOTE}"
    settings = loaded(tmp_path / "one", home, text)
    assert remember(settings)
    assert is_trusted(settings)
    assert not remember(settings)
    assert (home / ".ragxtrust").stat().st_mode & 0o777 == 0o600 or os.name != "posix"
    # The same settings in another clone are the same settings; other keys change nothing.
    assert is_trusted(loaded(tmp_path / "two", home, text + "batch_size = 7\n[query]\ntop = 3\n"))
    other = home / "other"
    other.mkdir()
    assert not is_trusted(load_config(tmp_path / "one", env={}, home=other))
    assert not is_trusted(load_config(tmp_path / "one", env={}, home=None))


@pytest.mark.parametrize(
    "change",
    ['base_url = "https://models.example.org/v1"', 'api_key_env = "MORE"', 'gguf = "x.gguf"'],
)
def test_any_change_to_them_asks_anew(tmp_path: Path, home: Path, change: str) -> None:
    remember(loaded(tmp_path / "c", home, f"[embeddings]\n{REMOTE}"))
    key = change.split(" ", maxsplit=1)[0]
    kept = "\n".join(line for line in REMOTE.splitlines() if not line.startswith(key))
    settings = loaded(tmp_path / "c", home, f"[embeddings]\n{kept}\n{change}\n")
    assert not is_trusted(settings)
    assert f"embeddings.{key}" in untrusted(settings)


def test_trust_can_be_taken_back(tmp_path: Path, home: Path) -> None:
    one = loaded(tmp_path / "one", home, f"[embeddings]\n{REMOTE}")
    two = loaded(tmp_path / "two", home, '[rerank]\ngguf = "r.gguf"')
    remember(one)
    remember(two)
    assert forget(one)
    assert not is_trusted(one)
    assert is_trusted(two)
    assert not forget(one)


def test_a_damaged_record_trusts_nothing_and_can_be_added_to(tmp_path: Path, home: Path) -> None:
    settings = loaded(tmp_path / "c", home, f"[embeddings]\n{REMOTE}")
    (home / ".ragxtrust").write_bytes(b'\xff\x00 rubbish\n[1]\n{"digest": 3}\n{"dig')
    assert not is_trusted(settings)
    assert remember(settings)
    assert is_trusted(settings)
    entry = json.loads((home / ".ragxtrust").read_bytes().splitlines()[-1])
    assert entry["digest"] == digest(settings)


def test_without_a_home_nothing_is_trusted_and_nothing_noted(tmp_path: Path) -> None:
    (tmp_path / "ragx.toml").write_text(f"[embeddings]\n{REMOTE}")
    settings = load_config(tmp_path, env={}, home=None)
    assert not is_trusted(settings)
    with pytest.raises(ConfigError, match="home"):
        remember(settings)


def test_what_a_user_has_written_is_trusted_by_that_act(tmp_path: Path, home: Path) -> None:
    before = loaded(tmp_path / "c", home, "[query]\ntop = 3\n")
    set_value(
        tmp_path / "c" / "ragx.toml", "embeddings.base_url", "https://m.example/v1", create=False
    )
    after = load_config(tmp_path / "c", env={}, home=home)
    assert trust_written(before, after, ["embeddings.base_url"])
    assert is_trusted(after)


def test_writing_one_setting_is_no_word_on_those_of_others(tmp_path: Path, home: Path) -> None:
    before = loaded(tmp_path / "c", home, f"[embeddings]\n{REMOTE}")
    path = tmp_path / "c" / "ragx.toml"
    for key, value in (("query.top", "5"), ("rerank.gguf", "r.gguf")):
        set_value(path, key, value, create=False)
        after = load_config(tmp_path / "c", env={}, home=home)
        assert not trust_written(before, after, [key])
        assert "embeddings.base_url" in untrusted(after)
        before = after
    # Once the user's own value stands in its place, nothing of others is left.
    set_value(path, "embeddings.base_url", "https://own.example/v1", create=False)
    set_value(path, "rerank.gguf", "own.gguf", create=False)
    after = load_config(tmp_path / "c", env={}, home=home)
    assert trust_written(before, after, ["embeddings.base_url", "rerank.gguf"])
    assert is_trusted(after)


def written(
    root: Path, home: Path, key: str, value: str, env: dict[str, str] | None = None
) -> bool:
    """What `config set` does: whether nothing waits afterwards."""
    try:
        before = load_config(root, env=env or {}, home=home)
    except ConfigError:
        before = None
    set_value(root / "ragx.toml", key, value, create=False)
    return trust_written(before, load_config(root, env=env or {}, home=home), [key])


def test_mending_a_broken_file_is_no_word_on_the_rest_of_it(tmp_path: Path, home: Path) -> None:
    (tmp_path / "ragx.toml").write_text(f"[embeddings]\n{REMOTE}[traversal]\nhops = 99\n")
    assert not written(tmp_path, home, "traversal.hops", "2")
    assert not is_trusted(load_config(tmp_path, env={}, home=home))


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ('[embeddings]\nmodel = "./theirs"', "embeddings.provider", "onnx"),
        ('[embeddings]\nmodel = "them/theirs"', "embeddings.provider", "sentence-transformers"),
        ('[rerank]\nmodel = "./theirs"\nprovider = "openai"', "rerank.provider", "onnx"),
    ],
)
def test_choosing_a_provider_is_no_word_on_what_a_stranger_left_for_it(
    tmp_path: Path, home: Path, text: str, key: str, value: str
) -> None:
    (tmp_path / "ragx.toml").write_text(text)
    assert not written(tmp_path, home, key, value)
    assert written(tmp_path, home, key.replace("provider", "model"), "./mine")


def test_what_was_trusted_for_one_provider_is_not_for_another(tmp_path: Path, home: Path) -> None:
    text = '[embeddings]\nprovider = "onnx"\nmodel = "./m"\n'
    assert remember(loaded(tmp_path / "c", home, text))
    assert not is_trusted(
        loaded(tmp_path / "c", home, text.replace("onnx", "sentence-transformers"))
    )


def test_a_path_is_trusted_where_it_leads_and_a_program_for_what_it_holds(
    tmp_path: Path, home: Path
) -> None:
    text = '[embeddings]\nprovider = "llama-server"\nserver_bin = "./run"\ngguf = "./m"\n'
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "run").write_text("#!/bin/sh\n")
    assert remember(loaded(tmp_path / "one", home, text))
    assert not is_trusted(loaded(tmp_path / "two", home, text))
    (tmp_path / "one" / "run").write_text("#!/bin/sh\nsomething else\n")
    assert not is_trusted(loaded(tmp_path / "one", home, text))


def test_a_key_is_trusted_for_one_address(tmp_path: Path, home: Path) -> None:
    text = '[embeddings]\napi_key_env = "KEY"\nbase_url = "http://localhost:1/v1"\n'
    assert remember(loaded(tmp_path / "c", home, text))
    assert not is_trusted(loaded(tmp_path / "c", home, text.replace(":1/", ":2/")))


def test_a_clone_does_not_choose_the_readers_own_remote(tmp_path: Path, home: Path) -> None:
    (tmp_path / "ragx.toml").write_text('[embeddings]\nprovider = "openai"\nmodel = "m"\n')
    env = {"OPENAI_BASE_URL": "https://gateway.example/v1"}
    settings = load_config(tmp_path, env=env, home=home)
    assert list(sensitive(settings)) == ["embeddings.provider"]
    assert "gateway.example" in sensitive(settings)["embeddings.provider"]
    assert sensitive(load_config(tmp_path, env={}, home=home)) == {}
    assert written(tmp_path, home, "embeddings.provider", "openai", env)
    assert is_trusted(load_config(tmp_path, env=env, home=home))


@pytest.mark.parametrize("provider", ["builtin", "none"])
def test_what_the_provider_does_not_use_stops_nobody(
    provider: str, tmp_path: Path, home: Path
) -> None:
    text = f"[embeddings]\n{REMOTE}gguf = 'm'\nserver_bin = './x'\napi_key_env = 'K'\n"
    settings = loaded(tmp_path / "c", home, text.replace('"openai"', f'"{provider}"'))
    assert len(untrusted(settings)) == 4
    require_trust(settings, "embeddings")

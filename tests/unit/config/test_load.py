from __future__ import annotations

import os
from pathlib import Path

import pytest

from ragx.config import Config, Expansion, LoadedConfig, keys, load_config
from ragx.errors import ConfigError

# An address that no file sets is the provider's own.
DEFAULT = Config(expansion=Expansion(base_url="http://localhost:1234/v1"))


def load(
    root: Path, text: str | bytes | None = None, rc: str | None = None, **env: str
) -> LoadedConfig:
    home = root / "home"
    home.mkdir(exist_ok=True)
    if text is not None:
        data = text if isinstance(text, bytes) else text.encode()
        (root / "ragx.toml").write_bytes(data)
    if rc is not None:
        (home / ".ragxrc").write_text(rc, encoding="utf-8")
    return load_config(root, env=env, home=home)


def refused(root: Path, text: str | bytes | None = None, rc: str | None = None) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        load(root, text, rc)
    assert "\n" not in caught.value.message
    return caught.value


def test_no_files_means_defaults(tmp_path: Path) -> None:
    loaded = load(tmp_path)
    assert loaded.config == DEFAULT
    assert (loaded.root, loaded.config_path, loaded.overrides) == (tmp_path, None, ())
    assert set(loaded.origins.values()) == {"default"}
    assert loaded.origins.keys() == keys().keys()


@pytest.mark.parametrize("text", ["", "\n", "# only a comment", "\ufeff", "\ufeff[query]\r\n"])
def test_files_that_say_nothing_mean_defaults(tmp_path: Path, text: str) -> None:
    loaded = load(tmp_path, text)
    assert loaded.config == DEFAULT
    assert loaded.config_path == tmp_path / "ragx.toml"


def test_a_byte_order_mark_hides_nothing(tmp_path: Path) -> None:
    assert load(tmp_path, "\ufeff[query]\r\ntop = 5\r\n").config.query.top == 5


def test_the_machine_overrides_the_corpus_and_says_so(tmp_path: Path) -> None:
    loaded = load(
        tmp_path,
        '[embeddings]\nmodel = "a"\nprovider = "openai"\n[query]\ntop = 7\n',
        rc='[embeddings]\nmodel = "b"\nprovider = "openai"\nbatch_size = 8\n',
    )
    assert loaded.config.embeddings.model == "b"
    assert loaded.overrides == ("~/.ragxrc overrides embeddings.model: 'a' -> 'b'",)
    assert loaded.origins["embeddings.model"] == "~/.ragxrc"
    assert loaded.origins["embeddings.batch_size"] == "~/.ragxrc"
    assert loaded.origins["query.top"] == "ragx.toml"
    assert loaded.origins["query.context_lines"] == "default"


def test_the_machine_alone(tmp_path: Path) -> None:
    (tmp_path / ".ragxrc").write_text("[rerank]\nenabled = true\n", encoding="utf-8")
    loaded = load_config(None, env={}, home=tmp_path)
    assert loaded.config.rerank.enabled
    assert loaded.config_path is None
    assert load_config(None, env={}, home=None).config == DEFAULT


@pytest.mark.parametrize("section", ["query", "chunking", "graph", "embedings", "top"])
def test_the_machine_file_holds_only_its_sections(tmp_path: Path, section: str) -> None:
    fault = refused(tmp_path, rc=f"[{section}]\n")
    assert fault.code == "unknown_key"
    assert "[embeddings], [expansion], [rerank]" in fault.message
    assert section in fault.message


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("[qurey]\n", "unknown section or key 'qurey'", "query"),
        ("top = 3\n", "unknown section or key 'top'", "sections: corpus"),
        ("[query]\ntopp = 3\n", "unknown key query.topp", "did you mean top?"),
        ("[graph.weights]\nlinks = 1\n", "unknown key graph.weights.links", "link"),
        ("[query]\nxyzzy = 3\n", "unknown key query.xyzzy", "keys here: top"),
        ("[embeddings]\napi_key = 'sk-1'\n", "unknown key embeddings.api_key", "api_key_env"),
    ],
)
def test_unknown_names(tmp_path: Path, text: str, message: str, hint: str) -> None:
    fault = refused(tmp_path, text)
    assert fault.message == f"{tmp_path}/ragx.toml: {message}"
    assert hint in fault.hint
    assert fault.code == "unknown_key"
    assert "sk-1" not in fault.message + fault.hint


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[query]\ntop = 5000\n", "query.top must be an integer from 1 to 1000, not 5000"),
        ("[query]\ntop = true\n", "query.top must be an integer from 1 to 1000, not true"),
        ("[query.top]\n", "query.top must be an integer from 1 to 1000, not a table"),
        ("query = 3\n", "[query] must be a table, not 3"),
        ("graph.weights = 1\n", "[graph.weights] must be a table, not 1"),
        ("[[query]]\n", "[query] must be a table, not a list"),
        (
            "[chunking]\nsize_tokens = 31\n",
            'chunking.size_tokens must be "auto" or an integer from 32 to 8192, not 31',
        ),
        (
            "[fusion]\nvector_weight = 1.5\n",
            'fusion.vector_weight must be "auto" or a number from 0 to 1, not 1.5',
        ),
        (
            "[traversal]\ndecay = nan\n",
            "traversal.decay must be a number above 0 and up to 1, not nan",
        ),
        (
            "[corpus]\ninclude = []\n",
            "corpus.include must be a list of globs (1 or more), not an empty list",
        ),
        (
            "[corpus]\nexclude = ['a', 1]\n",
            "corpus.exclude must be a list of globs, not a list whose item 2 is 1",
        ),
        (
            "[temporal]\nhalf_life_days = 2024-01-01\n",
            "temporal.half_life_days must be a number above 0 and up to 100000, not a date or time",
        ),
    ],
)
def test_bad_values(tmp_path: Path, text: str, message: str) -> None:
    fault = refused(tmp_path, text)
    assert fault.message == f"{tmp_path}/ragx.toml: {message}"
    assert fault.code == "bad_value"


@pytest.mark.parametrize(
    ("text", "position"),
    [
        (b"[query]\ntop = \n", "2:7"),
        (b"[query]\r\ntop = x\r\n", "2:7"),
        (b"[query]\ntop = 1\ntop = 2\n", "3:8"),
        (b"\xef\xbb\xbf[query", "1:7"),
        (b'[query]\na = """x', "2:9"),
        (b"# caf\xe9\n", "1:6"),
        (b"[query]\n# \xe9", "2:3"),
        ("[query]\n".encode("utf-16"), "1:1"),
    ],
)
def test_what_is_not_toml_is_located(tmp_path: Path, text: bytes, position: str) -> None:
    fault = refused(tmp_path, text)
    assert fault.message.startswith(f"{tmp_path}/ragx.toml:{position}: not ")


def test_monstrous_files_fail_in_words(tmp_path: Path) -> None:
    assert "too deeply" in refused(tmp_path, "a = " + "[" * 100_000).message
    assert "too long" in refused(tmp_path, "a = " + "9" * 10_000).message
    assert "very long integer" in refused(tmp_path, "[query]\ntop = " + "9" * 4000).message


def test_what_is_no_readable_file(tmp_path: Path) -> None:
    target = tmp_path / "ragx.toml"
    target.mkdir()
    assert "not a regular file" in refused(tmp_path).message
    target.rmdir()
    os.mkfifo(target)
    assert "not a regular file" in refused(tmp_path).message
    target.unlink()
    target.symlink_to("gone")
    assert "does not exist" in refused(tmp_path).message
    target.unlink()
    target.symlink_to("ragx.toml")
    assert "cannot be read" in refused(tmp_path).message


def test_a_home_that_is_no_directory_holds_no_settings(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("", encoding="utf-8")
    assert load_config(None, env={}, home=file).config == DEFAULT
    assert load_config(None, env={}, home=tmp_path / "absent").config == DEFAULT


def test_a_link_to_settings_is_followed(tmp_path: Path) -> None:
    real = tmp_path / "real.toml"
    real.write_text("[query]\ntop = 2\n", encoding="utf-8")
    (tmp_path / "ragx.toml").symlink_to(real)
    assert load(tmp_path).config.query.top == 2

"""Hints with commands: a value that others chose stays one word of the command."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from ragx.errors import RagxError
from ragx.providers import lm_studio
from ragx.providers.endpoint import EndpointOptions
from ragx.providers.lm_studio import downloaded_models, start_lm_studio
from ragx.providers.model_files import files_digest, onnx_directory

HOSTILE = ("x; touch inj #", "$(touch inj)", "`touch inj`", "a'; touch inj; '", "a b", "a&b", "~|x")


def assert_quoted(hint: str, value: str) -> None:
    """A hint that names a value does so in quotes, and nowhere else."""
    assert shlex.quote(value) in hint
    assert value not in hint.replace(shlex.quote(value), "")


def hint_of(call: Callable[[], object]) -> str:
    with pytest.raises(RagxError) as caught:
        call()
    return caught.value.hint


@pytest.mark.parametrize("value", HOSTILE)
def test_names_of_models(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    other = f"{value} of the server"
    monkeypatch.setattr(lm_studio, "downloaded_models", lambda _lms: [{"modelKey": other}])
    options = EndpointOptions("embeddings", "openai", "embedding", "http://127.0.0.1:9/v1", value)
    hint = hint_of(lambda: start_lm_studio("lms", options, lambda _line: None))
    assert f"lms get {shlex.quote(value)}, or" in hint
    assert hint.endswith(f"embeddings.model {shlex.quote(other)}")


@pytest.mark.parametrize("value", HOSTILE)
def test_paths_of_programs(value: str, tmp_path: Path) -> None:
    program = str(tmp_path / value / "lms")
    assert_quoted(hint_of(lambda: downloaded_models(program)), program)


@pytest.mark.parametrize("value", HOSTILE)
def test_paths_of_models(value: str, tmp_path: Path) -> None:
    folder = tmp_path / value
    folder.mkdir()
    for name in ("one.onnx", "two.onnx"):
        (folder / name).touch()
    tokenizer = folder / "tokenizer.json"
    look = lambda: onnx_directory(str(folder), "embeddings")  # noqa: E731
    assert_quoted(hint_of(look), str(folder / "one.onnx"))
    (folder / "two.onnx").unlink()
    assert_quoted(hint_of(look), str(tokenizer))
    assert_quoted(hint_of(lambda: files_digest([tokenizer])), str(tokenizer))

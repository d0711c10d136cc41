"""sentence-transformers where it is not installed; with it: tests/torch."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragx.errors import ConfigError, MissingDependency
from ragx.providers import torch
from ragx.providers.base import EmbeddingOptions, RerankOptions
from ragx.providers.registry import fingerprint, open_embedder, open_reranker


def options(model: Path | str, **more: str) -> EmbeddingOptions:
    return EmbeddingOptions(provider="sentence-transformers", model=str(model), **more)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    (folder / "1_Pooling").mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(b"weights")
    (folder / "1_Pooling" / "config.json").write_text("{}")
    return folder


def test_without_the_library_the_hint_installs_it(model, monkeypatch):
    monkeypatch.setattr(torch, "_LIBRARY", "ragx_no_such_library")
    for open_it in (
        lambda: open_embedder(options(model)),
        lambda: open_reranker(RerankOptions(model="BAAI/bge-reranker-v2-m3")),
    ):
        with pytest.raises(MissingDependency) as caught:
            open_it()
        assert caught.value.message == "sentence-transformers is not installed"
        assert "pip install '.[rerank]'" in caught.value.hint


def test_the_fingerprint_needs_no_library_and_follows_content(model, tmp_path):
    first = fingerprint(options(model))
    assert first == fingerprint(options(model.rename(tmp_path / "moved")))
    moved = tmp_path / "moved"
    (moved / "README.md").write_text("words")
    (moved / "onnx").mkdir()
    (moved / "onnx" / "config.json").write_text("{}")
    assert fingerprint(options(moved)) == first
    others = {first, fingerprint(options(moved, doc_prefix="x: "))}
    (moved / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": true}')
    others.add(fingerprint(options(moved)))
    (moved / "model.safetensors").write_bytes(b"other weights")
    others.add(fingerprint(options(moved)))
    assert len(others) == 4


def test_a_model_of_the_hub_is_known_by_its_name():
    assert "BAAI/bge-m3" in fingerprint(options("BAAI/bge-m3"))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("", "embeddings.model is not set"),
        ("/absent/model", "embeddings.model: /absent/model is not a directory"),
        ("./absent", "embeddings.model: absent is not a directory"),
        ("~/absent", "is not a directory"),
    ],
)
def test_directories_that_are_not_there_are_no_names(model, message):
    with pytest.raises(ConfigError) as caught:
        fingerprint(options(model))
    assert message in caught.value.message
    assert "ragx config set embeddings.model" in caught.value.hint

"""sentence-transformers for real, on tiny models with random weights made here."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ragx.errors import ConfigError, InputTooLong, ProviderRefused
from ragx.providers.base import EmbeddingOptions, RerankOptions
from ragx.providers.torch import TorchEmbedder, TorchReranker

pytestmark = [
    pytest.mark.skipif(
        find_spec("sentence_transformers") is None,
        reason="sentence-transformers is not installed: pip install '.[rerank]'",
    ),
    # Of the libraries, not ours: each version warns of something else.
    pytest.mark.filterwarnings("ignore"),
]

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "red", "blue", "green", "query", ":"]
LIMIT = 8
WIDTH = 16


def save_parts(folder: Path, kind: str, **config: Any) -> None:
    import torch
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    torch.manual_seed(0)
    settings = transformers.BertConfig(
        vocab_size=len(WORDS),
        hidden_size=WIDTH,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=WIDTH,
        max_position_embeddings=LIMIT,
        # Wide enough for texts to come out different.
        initializer_range=0.5,
        **config,
    )
    getattr(transformers, kind)(settings).eval().save_pretrained(folder)
    tokenizer = Tokenizer(
        models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]")
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=LIMIT,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
    ).save_pretrained(folder)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An embedding model whose own files ask for a prompt, which settings alone decide."""
    folder = tmp_path_factory.mktemp("models") / "tiny"
    save_parts(folder, "BertModel")
    kinds = {"": "Transformer", "1_Pooling": "Pooling", "2_Normalize": "Normalize"}
    entries = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (path, kind) in enumerate(kinds.items())
    ]
    (folder / "modules.json").write_text(json.dumps(entries))
    (folder / "1_Pooling").mkdir()
    pooling = {"word_embedding_dimension": WIDTH, "pooling_mode_mean_tokens": True}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    (folder / "config_sentence_transformers.json").write_text(
        json.dumps({"prompts": {"query": "query: "}, "default_prompt_name": "query"})
    )
    return folder


@pytest.fixture(scope="module")
def cross_encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "cross"
    save_parts(folder, "BertForSequenceClassification", num_labels=1)
    return folder


def embedder(model: Path, **options: Any) -> TorchEmbedder:
    settings = EmbeddingOptions(provider="sentence-transformers", model=str(model), **options)
    return TorchEmbedder(settings)


def reference(model: Path, text: str) -> Any:
    """The mean of the token vectors by transformers alone."""
    import torch
    import transformers

    tokens = transformers.AutoTokenizer.from_pretrained(model)(text, return_tensors="pt")
    with torch.no_grad():
        vectors = transformers.AutoModel.from_pretrained(model)(**tokens).last_hidden_state[0]
    mean = vectors.mean(dim=0).numpy()
    return mean / np.linalg.norm(mean)


def logit(model: Path, query: str, passage: str) -> float:
    import torch
    import transformers

    tokens = transformers.AutoTokenizer.from_pretrained(model)(query, passage, return_tensors="pt")
    scorer = transformers.AutoModelForSequenceClassification.from_pretrained(model)
    with torch.no_grad():
        return float(scorer(**tokens).logits[0, 0])


def test_vectors_are_the_models_own_without_its_prompt(model, capfd):
    ours = embedder(model)
    assert ours.max_tokens == LIMIT
    assert ours.default_chunk_tokens == 450
    texts = ["red", "blue green red", ""]
    got = ours.embed_documents(texts)
    np.testing.assert_allclose(got, [reference(model, text) for text in texts], atol=1e-5)
    assert (got.dtype, got.shape, ours.dimension) == (np.float32, (3, WIDTH), WIDTH)
    assert ours.embed_documents([]).shape == (0, WIDTH)
    ours.close()
    np.testing.assert_allclose(ours.embed_query("red"), got[0], atol=1e-5)
    assert capfd.readouterr() == ("", "")


def test_prefixes_of_the_settings_are_used(model):
    ours = embedder(model, doc_prefix="green ", query_prefix="query: ")
    got = ours.embed_documents(["red"])[0]
    np.testing.assert_allclose(got, reference(model, "green red"), atol=1e-5)
    np.testing.assert_allclose(ours.embed_query("red"), reference(model, "query: red"), atol=1e-5)
    assert ours.count_tokens("red") == 2 + 2


def test_nothing_is_cut(model):
    ours = embedder(model)
    fits = " ".join(["red"] * (LIMIT - 2))
    ours.embed_documents([fits])
    with pytest.raises(InputTooLong) as caught:
        ours.embed_documents(["red", f"{fits} blue"])
    assert caught.value.details == {"tokens": LIMIT + 1, "limit": LIMIT, "position": 1}
    halves = ("red red red blue ", "green green green green")
    expected = np.mean([reference(model, half) for half in halves], axis=0)
    got = ours.embed_query("".join(halves))
    np.testing.assert_allclose(got, expected / np.linalg.norm(expected), atol=1e-5)
    assert list(ours.token_starts("red  blue")) == [0, 5]


def test_scores_are_raw_logits_in_order(cross_encoder, capfd):
    ours = TorchReranker(RerankOptions(model=str(cross_encoder)))
    passages = ["blue", "green red", "blue blue red"]
    expected = [logit(cross_encoder, "red", passage) for passage in passages]
    assert ours.scores("red", passages) == pytest.approx(expected, abs=1e-5)
    assert ours.scores("red", []) == []
    assert capfd.readouterr() == ("", "")


def test_of_a_long_passage_the_best_window_counts(cross_encoder):
    ours = TorchReranker(RerankOptions(model=str(cross_encoder)))
    # Question and special tokens take four of eight.
    windows = ["red blue green ", "red green green "]
    expected = max(logit(cross_encoder, "blue", window) for window in windows)
    assert ours.scores("blue", ["".join(windows)]) == pytest.approx([expected], abs=1e-5)


def test_a_directory_that_brings_code_along_is_refused(model, tmp_path, monkeypatch):
    folder = tmp_path / "m"
    shutil.copytree(model, folder)
    (folder / "evilmod.py").write_text("open('it-ran', 'w').close()\n")
    entries = json.loads((folder / "modules.json").read_text())
    for name in ("evilmod.Evil", "os.path", "sentence_transformersx.Evil"):
        entries[0]["type"] = name
        (folder / "modules.json").write_text(json.dumps(entries))
        monkeypatch.chdir(tmp_path)
        with pytest.raises(ProviderRefused, match=re.escape(name)):
            embedder(folder).embed_documents(["red"])
    assert not (tmp_path / "it-ran").exists()


def test_a_directory_here_does_not_take_the_place_of_a_hub_model(model, tmp_path, monkeypatch):
    shutil.copytree(model, tmp_path / "owner" / "name")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match="owner/name"):
        embedder(Path("owner/name"))


def test_a_directory_without_a_model(tmp_path):
    with pytest.raises(ProviderRefused, match="is not a model") as caught:
        embedder(tmp_path).embed_documents(["red"])
    assert "\n" not in caught.value.message


@pytest.fixture
def hub() -> Iterator[tuple[str, list[str]]]:
    """A model hub that has nothing; yields its address and what it is asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(404)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_HEAD = do_POST = do_GET

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", asked
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("offline", ["0", "1"])
def test_a_failed_download_points_to_the_readme(offline, hub, tmp_path):
    address, asked = hub
    program = (
        "from ragx.providers.base import RerankOptions;"
        "from ragx.providers.torch import TorchReranker;"
        "from ragx.errors import ProviderUnavailable\n"
        "try: TorchReranker(RerankOptions(model='acme/absent')).scores('a', ['b'])\n"
        "except ProviderUnavailable as error: print(error.message, error.hint, sep='\\n')"
    )
    done = subprocess.run(
        # The library reads the environment when it is imported.
        [sys.executable, "-c", f"import sys;{program}"],
        env={
            **os.environ,
            "HF_ENDPOINT": address,
            "HF_HUB_OFFLINE": offline,
            "HF_HOME": str(tmp_path),
        },
        capture_output=True,
        text=True,
        check=True,
    )
    message, hint = done.stdout.splitlines()
    assert message.startswith("the model acme/absent cannot be had from the hub: ")
    assert "Restricted networks" in hint
    assert done.stderr == ""
    assert any("acme/absent" in path for path in asked) == (offline == "0")

"""Local ONNX models, against tiny graphs whose results are known, and the built-in weights."""

from __future__ import annotations

import json
import math
import shutil
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from ragx.errors import ConfigError, InputTooLong, ProviderError, ProviderRefused
from ragx.providers import builtin
from ragx.providers.base import EmbeddingOptions, RerankOptions
from ragx.providers.builtin import BuiltinEmbedder
from ragx.providers.model_files import suggested_prefixes
from ragx.providers.onnx import OnnxEmbedder, OnnxReranker, fingerprint
from ragx.providers.registry import fingerprint as registered_fingerprint
from ragx.providers.registry import open_embedder, open_reranker

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "red", "blue", "green", "query:", "passage:"]
IDS = {word: i for i, word in enumerate(WORDS)}
# A vector per word: the table of the model.
TABLE = np.random.default_rng(0).normal(size=(len(WORDS), 4)).astype(np.float32)


def make_tokenizer(path: Path, *, cut_to: int | None = None) -> None:
    tokenizer = Tokenizer(models.WordLevel(IDS, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", IDS["[CLS]"]), ("[SEP]", IDS["[SEP]"])],
    )
    if cut_to:
        tokenizer.enable_truncation(cut_to)
        tokenizer.enable_padding(length=cut_to)
    tokenizer.save(str(path))


def save(path: Path, nodes: list[Any], inputs: list[Any], outputs: list[Any], **more: Any) -> None:
    tensors = {"table": TABLE, **more}
    graph = helper.make_graph(
        nodes,
        "tiny",
        inputs,
        outputs,
        [numpy_helper.from_array(value, name) for name, value in tensors.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, str(path))


def integers(name: str, kind: int = TensorProto.INT64, shape: Any = ("batch", "tokens")) -> Any:
    return helper.make_tensor_value_info(name, kind, list(shape))


def floats(name: str, *shape: Any) -> Any:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, list(shape))


def make_embedder(
    folder: Path,
    *,
    graph: str = "model.onnx",
    output: str = "last_hidden_state",
    pooling: dict[str, Any] | None = None,
    modules: list[str] | None = None,
    inputs: list[Any] | None = None,
    cut_to: int | None = None,
    **files: Any,
) -> Path:
    """A model whose token vectors are the rows of TABLE; `sentence_embedding` is their maximum."""
    folder.mkdir(parents=True, exist_ok=True)
    lookup = helper.make_node("Gather", ["table", "input_ids"], ["tokens3"], axis=0)
    if output == "sentence_embedding":
        nodes = [lookup, helper.make_node("ReduceMax", ["tokens3"], [output], axes=[1], keepdims=0)]
        outputs = [floats("tokens3", "b", "t", 4), floats(output, "b", 4)]
    else:
        nodes = [lookup, helper.make_node("Identity", ["tokens3"], [output])]
        pooled = helper.make_node("ReduceMin", ["tokens3"], ["pooler_output"], axes=[1], keepdims=0)
        nodes.append(pooled)
        outputs = [floats("pooler_output", "b", 4), floats(output, "b", "t", 4)]
    inputs = inputs or [integers("input_ids"), integers("attention_mask")]
    save(folder / graph, nodes, inputs, outputs)
    make_tokenizer(folder / "tokenizer.json", cut_to=cut_to)
    if pooling is not None:
        (folder / "1_Pooling").mkdir()
        (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    if modules is not None:
        paths = ["", "1_Pooling", "2_Normalize", "3_Other"]
        kinds = [f"sentence_transformers.models.{name}" for name in modules]
        entries = [{"type": k, "path": p} for k, p in zip(kinds, paths, strict=False)]
        (folder / "modules.json").write_text(json.dumps(entries))
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return folder


def make_reranker(folder: Path, *, n_classes: int = 1, **files: Any) -> Path:
    """A cross-encoder: the sum of the pair's token vectors, less 10 per token of the second."""
    folder.mkdir(parents=True, exist_ok=True)
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["vectors"], axis=0),
        helper.make_node("MatMul", ["vectors", "weights"], ["each"]),
        helper.make_node("Cast", ["token_type_ids"], ["types"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["types", "two"], ["types3"]),
        helper.make_node("Mul", ["types3", "ten"], ["penalty"]),
        helper.make_node("Sub", ["each", "penalty"], ["less"]),
        helper.make_node("ReduceSum", ["less", "one"], ["logits"], keepdims=0),
    ]
    names = ("input_ids", "attention_mask", "token_type_ids")
    save(
        folder / "onnx" / "model.onnx",
        nodes,
        [integers(name) for name in names],
        [floats("logits", "b", n_classes)],
        weights=np.arange(1, 4 * n_classes + 1, dtype=np.float32).reshape(4, n_classes),
        ten=np.array(10, np.float32),
        one=np.array([1], np.int64),
        two=np.array([2], np.int64),
    )
    make_tokenizer(folder / "tokenizer.json")
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return folder


def rows(text: str) -> Any:
    """The table's rows of a text, framed."""
    return TABLE[[IDS["[CLS]"], *(IDS[word] for word in text.split()), IDS["[SEP]"]]]


def unit(vector: Any) -> Any:
    return vector / np.linalg.norm(vector)


def embedder(folder: Path, **options: Any) -> OnnxEmbedder:
    return OnnxEmbedder(EmbeddingOptions(provider="onnx", model=str(folder), **options))


def reranker(folder: Path) -> OnnxReranker:
    return OnnxReranker(RerankOptions(provider="onnx", model=str(folder)))


@pytest.mark.parametrize("output", ["last_hidden_state", "token_embeddings", "something"])
def test_token_vectors_are_averaged_by_default(output, tmp_path):
    model = embedder(make_embedder(tmp_path / "m", output=output))
    got = model.embed_documents(["red blue", "green"])
    expected = [unit(rows(text).mean(axis=0)) for text in ("red blue", "green")]
    np.testing.assert_allclose(got, expected, rtol=1e-6)
    assert got.dtype == np.float32
    assert model.dimension == 4
    assert model.embed_documents([]).shape == (0, 4)


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ({"pooling_mode_cls_token": True}, lambda t: t[0]),
        ({"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}, lambda t: t.mean(0)),
        ({"pooling_mode_max_tokens": True}, lambda t: t.max(0)),
        ({"pooling_mode_lasttoken": True}, lambda t: t[-1]),
        ({"pooling_mode_mean_sqrt_len_tokens": True}, lambda t: t.sum(0) / math.sqrt(len(t))),
        (
            {"pooling_mode_weightedmean_tokens": True},
            lambda t: np.average(t, axis=0, weights=range(1, len(t) + 1)),
        ),
        (
            {"pooling_mode_cls_token": True, "pooling_mode_max_tokens": True},
            lambda t: np.concatenate([t[0], t.max(0)]),
        ),
        ({"pooling_mode": "cls"}, lambda t: t[0]),
        ({}, lambda t: t.mean(0)),
    ],
)
def test_pooling_is_what_the_model_says(setting, expected, tmp_path):
    model = embedder(make_embedder(tmp_path / "m", pooling=setting))
    got = model.embed_documents(["red blue green"])[0]
    np.testing.assert_allclose(got, unit(expected(rows("red blue green"))), rtol=1e-5)


def test_the_models_own_sentence_vector_comes_first(tmp_path):
    folder = make_embedder(
        tmp_path / "m",
        output="sentence_embedding",
        pooling={"pooling_mode_cls_token": True},
        modules=["Transformer", "Pooling", "Normalize", "Dense"],
    )
    got = embedder(folder).embed_documents(["red blue"])[0]
    np.testing.assert_allclose(got, unit(rows("red blue").max(axis=0)), rtol=1e-6)


def test_a_module_that_the_graph_lacks_is_refused(tmp_path):
    folder = make_embedder(tmp_path / "m", modules=["Transformer", "Pooling", "Dense"])
    with pytest.raises(ProviderRefused, match="before the module Dense") as caught:
        embedder(folder).embed_documents(["red"])
    assert "sentence-transformers" in caught.value.hint


def test_only_the_graphs_own_inputs_are_fed_in_their_own_type(tmp_path):
    folder = tmp_path / "m"
    inputs = [integers("position_ids", TensorProto.INT32), integers("input_ids", TensorProto.INT32)]
    model = embedder(make_embedder(folder, inputs=inputs))
    np.testing.assert_allclose(
        model.embed_documents(["blue"])[0], unit(rows("blue").mean(axis=0)), rtol=1e-6
    )


def test_prefixes_stand_before_texts_of_their_kind(tmp_path):
    folder = make_embedder(tmp_path / "m")
    model = embedder(folder, doc_prefix="passage: ", query_prefix="query: ")
    for got, text in (
        (model.embed_documents(["red"])[0], "passage: red"),
        (model.embed_query("red"), "query: red"),
    ):
        np.testing.assert_allclose(got, unit(rows(text).mean(axis=0)), rtol=1e-6)
    assert model.count_tokens("red") == len(rows("passage: red"))


def test_prompts_of_the_model_are_a_suggestion(tmp_path):
    prompts = {"prompts": {"query": "query: ", "passage": "passage: "}}
    folder = make_embedder(tmp_path / "m", config_sentence_transformers=prompts)
    assert suggested_prefixes(str(folder), "embeddings") == ("passage: ", "query: ")
    plain = make_embedder(tmp_path / "n")
    assert suggested_prefixes(str(plain), "embeddings") == ("", "")
    np.testing.assert_array_equal(
        embedder(folder).embed_query("red"), embedder(plain).embed_query("red")
    )


@pytest.mark.parametrize(
    ("files", "limit"),
    [
        ({"sentence_bert_config": {"max_seq_length": 6}}, 6),
        ({"sentence_bert_config": {"max_seq_length": None}}, None),
        ({"tokenizer_config": {"model_max_length": 10**30}}, None),
        ({"tokenizer_config": {"model_max_length": 512}}, 512),
        ({"config": {"max_position_embeddings": 512, "model_type": "bert"}}, 512),
        ({"config": {"max_position_embeddings": 514, "model_type": "roberta"}}, 512),
        (
            {
                "sentence_bert_config": {"max_seq_length": 1000},
                "config": {"max_position_embeddings": 512},
            },
            512,
        ),
        ({"cut_to": 7}, 7),
        ({"cut_to": 7, "sentence_bert_config": {"max_seq_length": 9}}, 9),
    ],
)
def test_the_limit_is_the_smallest_that_the_files_name(files, limit, tmp_path):
    assert embedder(make_embedder(tmp_path / "m", **files)).max_tokens == limit


@pytest.mark.parametrize(("limit", "chunk"), [(256, 450), (512, 450), (8192, 800)])
def test_chunks_suit_what_the_model_reads(limit, chunk, tmp_path):
    files = {"sentence_bert_config": {"max_seq_length": limit}}
    assert embedder(make_embedder(tmp_path / "m", **files)).default_chunk_tokens == chunk


def test_nothing_is_cut_or_filled(tmp_path):
    folder = make_embedder(tmp_path / "m", cut_to=4, sentence_bert_config={"max_seq_length": 5})
    model = embedder(folder)
    fits = "red blue green"
    np.testing.assert_allclose(
        model.embed_documents([fits])[0], unit(rows(fits).mean(axis=0)), rtol=1e-6
    )
    with pytest.raises(InputTooLong) as caught:
        model.embed_documents([fits, f"{fits} red"])
    assert caught.value.details == {"tokens": 6, "limit": 5, "position": 1}


def test_a_long_question_is_the_mean_of_its_windows(tmp_path):
    model = embedder(make_embedder(tmp_path / "m", sentence_bert_config={"max_seq_length": 5}))
    halves = [unit(rows(text).mean(axis=0)) for text in ("red blue", "green green red")]
    expected = unit(np.average(halves, axis=0, weights=[4, 5]))
    np.testing.assert_allclose(model.embed_query("red blue green green red"), expected, rtol=1e-5)


def test_a_prefix_without_room_for_the_question(tmp_path):
    folder = make_embedder(tmp_path / "m", sentence_bert_config={"max_seq_length": 3})
    with pytest.raises(InputTooLong, match="no room"):
        embedder(folder, query_prefix="query: ").embed_query("red blue")


def test_places_and_numbers_of_tokens(tmp_path):
    model = embedder(make_embedder(tmp_path / "m"))
    assert list(model.token_starts("red  blue\ngreen")) == [0, 5, 10]
    assert list(model.token_starts("")) == []
    assert model.count_tokens("") == 2
    long = "red " * 40_000
    assert list(model.token_starts(long)) == list(range(0, len(long), 4))
    assert model.count_tokens(long) == 40_000 + 2


def test_lone_surrogates_are_no_obstacle(tmp_path):
    model = embedder(make_embedder(tmp_path / "m"))
    assert model.embed_documents(["red \ud800"]).shape == (1, 4)
    assert list(model.token_starts("\ud800 red")) == [0, 2]


def test_vectors_do_not_depend_on_company_or_thread(tmp_path):
    model = embedder(make_embedder(tmp_path / "m"))
    texts = ["red", "blue red green blue", "green", "red blue"]
    together = model.embed_documents(texts)
    with ThreadPoolExecutor(4) as pool:
        alone = list(pool.map(lambda text: model.embed_documents([text])[0], texts))
    np.testing.assert_array_equal(together, alone)
    model.close()
    np.testing.assert_array_equal(together, model.embed_documents(texts))


def test_fingerprint_follows_content_not_place(tmp_path):
    def of(folder: Path, **options: Any) -> str:
        return fingerprint(EmbeddingOptions(provider="onnx", model=str(folder), **options))

    folder = make_embedder(tmp_path / "m", pooling={"pooling_mode_cls_token": True})
    moved = shutil.copytree(folder, tmp_path / "elsewhere")
    first = of(folder)
    assert first == of(moved) == embedder(folder).fingerprint
    options = EmbeddingOptions(provider="onnx", model=str(folder))
    assert registered_fingerprint(options) == first
    others = {first, of(folder, query_prefix="query: "), of(folder, doc_prefix="query: ")}
    (moved / "1_Pooling" / "config.json").write_text("{}")
    others.add(of(moved))
    (moved / "model.onnx_data").write_bytes(b"weights")
    others.add(of(moved))
    (moved / "config.json").write_text('{"max_position_embeddings": 64}')
    others.add(of(moved))
    make_tokenizer(moved / "tokenizer.json", cut_to=9)
    others.add(of(moved))
    with (moved / "model.onnx").open("ab") as file:
        file.write(b"\0")
    others.add(of(moved))
    assert len(others) == 8


def test_which_graph_is_taken(tmp_path):
    both = make_embedder(tmp_path / "both")
    make_embedder(both, graph="onnx/model.onnx", output="sentence_embedding")
    got = embedder(both).embed_query("red blue")
    np.testing.assert_allclose(got, unit(rows("red blue").mean(axis=0)), rtol=1e-6)
    chosen = embedder(both / "onnx" / "model.onnx")
    assert chosen.model == "both"
    np.testing.assert_allclose(
        chosen.embed_query("red blue"), unit(rows("red blue").max(axis=0)), rtol=1e-6
    )
    only = make_embedder(tmp_path / "only", graph="onnx/model_quantized.onnx")
    assert embedder(only).embed_query("red").shape == (4,)
    make_embedder(only, graph="onnx/model_fp16.onnx")
    with pytest.raises(ConfigError, match=r"onnx/model_fp16\.onnx, onnx/model_quantized\.onnx"):
        embedder(only)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda m: (m / "model.onnx").unlink(), "neither model.onnx nor onnx/model.onnx"),
        (lambda m: (m / "tokenizer.json").unlink(), "has no tokenizer.json"),
        (lambda m: (m / "modules.json").write_text("{"), "modules.json is not JSON"),
        (lambda m: (m / "config.json").mkdir(), "config.json cannot be read"),
        (lambda m: shutil.rmtree(m), "embeddings.model: .* does not exist"),
    ],
)
def test_directories_that_cannot_be_used(spoil, message, tmp_path):
    folder = make_embedder(tmp_path / "m")
    spoil(folder)
    with pytest.raises(ConfigError, match=message) as caught:
        embedder(folder)
    assert caught.value.hint
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(
    ("pooling", "message"),
    [
        ({"pooling_mode_mean_tokens": True, "include_prompt": False}, "leaves its prompt out"),
        ({"pooling_mode": "attention"}, "pooling 'attention' is not supported"),
    ],
)
def test_poolings_that_are_not_supported(pooling, message, tmp_path):
    with pytest.raises(ConfigError, match=message):
        embedder(make_embedder(tmp_path / "m", pooling=pooling))


def test_no_model_named():
    with pytest.raises(ConfigError, match=r"embeddings\.model is not set"):
        OnnxEmbedder(EmbeddingOptions(provider="onnx"))
    with pytest.raises(ConfigError, match=r"rerank\.model is not set"):
        OnnxReranker(RerankOptions(provider="onnx"))


def test_files_that_are_something_else(tmp_path):
    folder = make_embedder(tmp_path / "m")
    (folder / "model.onnx").write_text("hello")
    with pytest.raises(ProviderRefused, match="onnxruntime cannot open") as caught:
        embedder(folder).embed_documents(["red"])
    assert "\n" not in caught.value.message
    (folder / "tokenizer.json").write_text("{}")
    with pytest.raises(ProviderRefused, match="is not a tokenizer"):
        embedder(folder).count_tokens("red")


@pytest.mark.parametrize(
    "inputs",
    [
        [integers("input_ids"), integers("past_key_values.0.key")],
        [integers("input_ids", shape=("batch", 128))],
    ],
)
def test_graphs_with_other_inputs_are_refused(inputs, tmp_path):
    folder = make_embedder(tmp_path / "m", inputs=inputs)
    with pytest.raises(ProviderRefused, match="wants an input"):
        embedder(folder).embed_documents(["red"])


def test_a_cross_encoder_is_no_embedder_and_the_reverse(tmp_path):
    with pytest.raises(ProviderRefused, match="a cross-encoder gives one number"):
        reranker(make_embedder(tmp_path / "e")).scores("red", ["blue"])
    folder = make_embedder(tmp_path / "r")
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["out"], axis=0)]
    flat = helper.make_node("Reshape", ["out", "shape"], ["logits"])
    save(
        folder / "model.onnx",
        [*nodes, flat],
        [integers("input_ids")],
        [floats("logits", "n", 2)],
        shape=np.array([-1, 2], np.int64),
    )
    with pytest.raises(ProviderRefused, match="neither a vector per token nor one per text"):
        embedder(folder).embed_documents(["red blue"])


def test_a_fault_while_running_is_a_provider_error(tmp_path):
    folder = make_embedder(tmp_path / "m")
    # A vocabulary that is larger than the model's table.
    tokenizer = Tokenizer(models.WordLevel({"red": 10**6, "[UNK]": 1}, unk_token="[UNK]"))
    tokenizer.save(str(folder / "tokenizer.json"))
    with pytest.raises(ProviderError, match="onnxruntime failed on a text of 1 tokens"):
        embedder(folder).embed_documents(["red"])


def test_equals_the_built_in_model_on_its_own_weights(tmp_path):
    spec = find_spec(builtin.WEIGHTS_PACKAGE)
    assert spec is not None
    assert spec.origin is not None
    folder = tmp_path / "minilm"
    folder.mkdir()
    (folder / "model.onnx").symlink_to(Path(spec.origin).with_name(builtin.WEIGHTS_FILE))
    assets = Path(builtin.__file__).with_name("assets")
    (folder / "tokenizer.json").symlink_to(assets / "tokenizer.json")
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 256}')
    ours = embedder(folder)
    theirs = BuiltinEmbedder(EmbeddingOptions(mode="wo"))
    texts = [
        "How are redirects followed?",
        "def close(self):\n    self._pool.shutdown()",
        "the cat sat on the mat " * 30,
        "日本語 and ümläuts",
    ]
    cosines = np.sum(ours.embed_documents(texts) * theirs.embed_documents(texts), axis=1)
    assert cosines.min() > 0.99
    for text in texts:
        assert list(ours.token_starts(text)) == list(theirs.token_starts(text))
        assert ours.count_tokens(text) == theirs.count_tokens(text)
    long = "one two three four " * 200
    assert float(ours.embed_query(long) @ theirs.embed_query(long)) > 0.99


def pair_score(query: str, passage: str, column: int = 0, n_classes: int = 1) -> float:
    weights = np.arange(1, 4 * n_classes + 1, dtype=np.float32).reshape(4, n_classes)[:, column]
    second = [*passage.split(), "[SEP]"]
    total = float((rows(query) @ weights).sum()) + float(
        sum(TABLE[IDS[word]] @ weights for word in second)
    )
    return total - 10 * len(second)


def test_pairs_are_read_as_the_model_was_trained(tmp_path):
    model = reranker(make_reranker(tmp_path / "ce"))
    passages = ["blue green", "", "red"]
    expected = [pair_score("red", passage) for passage in passages]
    assert model.scores("red", passages) == pytest.approx(expected, rel=1e-5)
    assert model.scores("red", []) == []
    assert model.model == "ce"
    model.close()
    assert model.scores("red", passages) == pytest.approx(expected, rel=1e-5)


def test_of_two_classes_the_difference_counts(tmp_path):
    model = reranker(make_reranker(tmp_path / "ce", n_classes=2))
    no, yes = (pair_score("red", "blue green", column, 2) for column in (0, 1))
    assert model.scores("red", ["blue green"]) == pytest.approx([yes - no], rel=1e-4)


def test_three_classes_are_refused(tmp_path):
    with pytest.raises(ProviderRefused, match="a cross-encoder gives one number"):
        reranker(make_reranker(tmp_path / "ce", n_classes=3)).scores("red", ["blue"])


def test_of_a_long_passage_the_best_window_counts(tmp_path):
    folder = make_reranker(tmp_path / "ce", tokenizer_config={"model_max_length": 7})
    # Query and special tokens take four of seven.
    passage = "red red red blue green"
    windows = ["red red", "red blue green"]
    expected = max(pair_score("blue", window) for window in windows)
    assert reranker(folder).scores("blue", [passage]) == pytest.approx([expected], rel=1e-5)


def test_of_a_long_question_the_first_half_of_the_limit_counts(tmp_path):
    folder = make_reranker(tmp_path / "ce", tokenizer_config={"model_max_length": 8})
    got = reranker(folder).scores("red blue green red green blue blue", ["green"])
    assert got == pytest.approx([pair_score("red blue green red", "green")], rel=1e-5)


def test_the_registry_opens_both(tmp_path):
    folder = make_embedder(tmp_path / "m")
    assert isinstance(
        open_embedder(EmbeddingOptions(provider="onnx", model=str(folder))), OnnxEmbedder
    )
    assert isinstance(
        open_reranker(RerankOptions(provider="onnx", model=str(folder))), OnnxReranker
    )

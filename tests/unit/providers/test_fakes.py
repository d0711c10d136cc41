from __future__ import annotations

import numpy as np
import pytest

from ragx.errors import InputTooLong, ProviderUnavailable
from ragx.providers.base import EmbeddingOptions
from ragx.providers.fakes import HashEmbedder


def test_shared_words_mean_similarity():
    cat, dog, tax = HashEmbedder().embed_documents(["the red cat", "the red dog", "income levy"])
    assert cat @ dog == pytest.approx(2 / 3, abs=0.02)
    assert abs(cat @ tax) < 0.05


def test_it_is_a_function_of_the_text():
    one, two = HashEmbedder(), HashEmbedder()
    np.testing.assert_array_equal(
        one.embed_documents(["a b", "c"])[1], two.embed_documents(["c"])[0]
    )
    np.testing.assert_array_equal(one.embed_documents(["c"])[0], two.embed_query("c"))
    assert one.calls == [("a b", "c"), ("c",)]


def test_empty_text_and_no_text():
    embedder = HashEmbedder(dimension=8)
    assert np.linalg.norm(embedder.embed_documents([""])[0]) == pytest.approx(1)
    assert embedder.embed_documents([]).shape == (0, 8)


def test_prefixes_count():
    embedder = HashEmbedder(EmbeddingOptions(doc_prefix="d ", query_prefix="q "))
    np.testing.assert_array_equal(
        embedder.embed_documents(["x"])[0], HashEmbedder().embed_query("d x")
    )
    np.testing.assert_array_equal(embedder.embed_query("x"), HashEmbedder().embed_query("q x"))
    assert embedder.fingerprint != HashEmbedder().fingerprint


def test_limit_and_failure():
    embedder = HashEmbedder(
        max_tokens=5, fail=lambda text: ProviderUnavailable("down") if "x" in text else None
    )
    assert embedder.token_starts("ab, cd") == [0, 2, 4]
    embedder.embed_documents(["ab, cd"])
    with pytest.raises(InputTooLong):
        embedder.embed_documents(["ab, cd ef"])
    with pytest.raises(ProviderUnavailable):
        embedder.embed_documents(["a", "x"])

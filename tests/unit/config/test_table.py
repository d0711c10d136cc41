from __future__ import annotations

import pytest

from ragx.config import Config, Embeddings, GraphWeights, Query, build, find_key, keys, values_of
from ragx.config.table import table_keys
from ragx.errors import ConfigError

# SPEC section 3, by hand: what users were promised.
PROMISED = {
    "corpus.respect_gitignore": True,
    "corpus.max_file_bytes": 10_485_760,
    "corpus.max_files": 0,
    "corpus.follow_symlinks": False,
    "documents.max_file_bytes": 33554432,
    "documents.max_chars": 2000000,
    "documents.max_blocks": 100000,
    "documents.max_expanded_bytes": 268435456,
    "documents.timeout_s": 60.0,
    "documents.max_memory_bytes": 1073741824,
    "chunking.size_tokens": "auto",
    "chunking.overlap": 0.15,
    "chunking.max_chunk_chars": 20_000,
    "graph.k": 8,
    "graph.min_edge_sim": 0.55,
    "graph.edge_source": "subchunk",
    "graph.subchunk_size_tokens": 256,
    "graph.near_dup_sim": 0.9,
    "graph.weights.link": 1.0,
    "graph.weights.mention": 1.0,
    "graph.weights.import": 1.0,
    "graph.weights.symbol": 1.0,
    "graph.weights.adjacent": 0.0,
    "graph.weights.similar": 0.3,
    "traversal.hops": 2,
    "traversal.decay": 0.7,
    "traversal.query_floor": 0.35,
    "traversal.max_frontier": 150,
    "traversal.cap": True,
    "communities.resolution": 1.0,
    "communities.seed": 42,
    "fusion.method": "weighted",
    "fusion.vector_weight": "auto",
    "fusion.rrf_k": 60,
    "fusion.per_query_top": 100,
    "scoring.alpha_rerank": 0.6,
    "scoring.beta_heat": 0.25,
    "scoring.gamma_vector": 0.15,
    "scoring.fold_weight": "auto",
    "embeddings.provider": "builtin",
    "embeddings.base_url": "",
    "embeddings.model": "",
    "embeddings.doc_prefix": "",
    "embeddings.query_prefix": "",
    "embeddings.batch_size": "auto",
    "embeddings.api_key_env": "",
    "embeddings.autostart": True,
    "embeddings.gguf": "",
    "embeddings.server_bin": "",
    "embeddings.timeout_s": 60.0,
    "embeddings.connect_timeout_s": 5.0,
    "embeddings.max_in_flight": "auto",
    "expansion.enabled": False,
    "expansion.variants": 3,
    "expansion.hyde": True,
    "expansion.autostart": True,
    "rerank.enabled": False,
    "rerank.model": "BAAI/bge-reranker-v2-m3",
    "query.top": 20,
    "query.max_chunk_chars": 1200,
    "query.context_lines": 5,
    "temporal.half_life_days": 180.0,
}


def test_defaults_are_the_promised_ones() -> None:
    defaults = values_of(Config())
    assert {name: defaults[name] for name in PROMISED} == PROMISED


def test_every_default_passes_its_own_rule_unchanged_and_has_a_meaning() -> None:
    for item in keys().values():
        checked = item.rule.check(item.default)
        assert (checked, type(checked)) == (item.default, type(item.default)), item.dotted
        assert item.doc.endswith((".", ").", ")")), item.dotted
        assert "\n" not in item.doc
        assert len(item.doc) < 100


def test_build_and_values_of_are_inverse() -> None:
    changed = {"graph.weights.import": 0.5, "query.top": 3}
    config = build(changed)
    assert config.graph.weights == GraphWeights(import_=0.5)
    assert config.query == Query(top=3)
    assert values_of(config) == {**values_of(Config()), **changed}


def test_records_are_frozen_and_compare_by_value() -> None:
    query = Query(top=3)
    with pytest.raises(AttributeError):
        query.top = 4  # type: ignore[misc]  # the point of the test
    with pytest.raises(AttributeError):
        del query.top
    with pytest.raises(TypeError, match="tpo"):
        Query(tpo=3)  # type: ignore[call-arg]  # the point of the test
    assert query == Query(top=3) != Query()
    assert hash(query) == hash(Query(top=3))
    assert query != Embeddings()
    assert repr(query) == "Query(top=3, max_chunk_chars=1200, context_lines=5)"


def test_table_keys_lists_direct_children() -> None:
    assert table_keys("query") == ("top", "max_chunk_chars", "context_lines")
    assert table_keys("graph")[-1] == "weights"
    assert table_keys("")[0] == "corpus"
    assert len(table_keys("")) == 13


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        ("query.tpo", "query.top"),
        ("top", "query.top"),
        ("qeury.top", "query.top"),
        ("graph.weights.imports", "graph.weights.import"),
        ("zzz", "ragx config list"),
        ("graph.weights", "link, mention"),
        ("query", "top, max_chunk_chars"),
    ],
)
def test_a_wrong_key_is_answered_with_the_nearest(wrong: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        find_key(wrong)
    assert caught.value.code == "unknown_key"
    assert hint in caught.value.hint

"""Questions asked under several configurations over a small real index."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from ragx.algo import metrics
from ragx.algo.chunking.base import ChunkOptions
from ragx.errors import ProviderUnavailable, UsageError
from ragx.evaluation.harness import (
    CONFIGS,
    METRICS,
    Evaluation,
    choose_configs,
    evaluate,
    needs_vectors,
    second_stages,
)
from ragx.evaluation.qrels import Topic
from ragx.evaluation.runs import ranked_paths
from ragx.indexing.build import BuildOptions, build, expected_manifest
from ragx.indexing.scan import ScanOptions
from ragx.providers.fakes import HashEmbedder
from ragx.query.pipeline import QueryOptions, QueryRequest, run_query
from ragx.shells.cli.eval import COLUMNS
from ragx.store.base import LinkOptions
from ragx.store.sqlite import SqliteReader, SqliteWriter

FILES = {
    "zebra.md": "# Zebra\n\nThe striped zebra grazes; see [the lion](lion.md).\n",
    "lion.md": "# Lion\n\nThe lion hunts at night and sleeps all day.\n",
    "trout.md": "# Trout\n\nThe trout swims in the cold river.\n",
    "river.md": "# River\n\nThe river is cold and deep.\n",
    "copy.md": "# Trout\n\nThe trout swims in the cold river.\n",
}
TOPICS = (
    Topic("t1", "striped zebra", {"zebra.md": 2, "lion.md": 1}),
    Topic("t2", "cold river", {"river.md": 1, "trout.md": 1}),
    Topic("t3", "who sleeps all day?", {"lion.md": 1}),
    Topic("t4", "platypus", {"trout.md": 1}),
)
QUERIES = {topic.query for topic in TOPICS}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("animals")
    for path, text in FILES.items():
        (root / path).write_text(text)
    embedder = HashEmbedder()
    chunking = ChunkOptions(size_tokens=60)
    manifest = expected_manifest(
        fingerprint=embedder.fingerprint,
        provider="hash",
        model="",
        mode="",
        chunking=chunking,
        linking=LinkOptions(),
        part_tokens=256,
    )
    with closing(SqliteWriter(root)) as writer:
        build(root, writer, embedder, BuildOptions(ScanOptions(), chunking), manifest)
    return root


@pytest.fixture
def reader(root: Path) -> Iterator[SqliteReader]:
    with closing(SqliteReader(root)) as reader:
        yield reader


class Counting:
    """An embedder's queries, counted."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, text: str) -> np.ndarray:
        self.asked.append(text)
        return HashEmbedder().embed_query(text)


class Kept(dict):
    """A cache in memory; `took_ms` is what it says that each vector took."""

    took_ms: float | None = None

    def put(self, text: str, vector: np.ndarray, elapsed_ms: float) -> None:
        self[text] = vector, elapsed_ms if self.took_ms is None else self.took_ms


def run(root: Path, reader: SqliteReader, configs: tuple[str, ...], **how: object) -> Evaluation:
    how.setdefault("embed", HashEmbedder().embed_query)
    return evaluate(root, reader, TOPICS, configs, QueryOptions(), **how)  # type: ignore[arg-type]


# Configurations.


def test_the_last_configuration_is_the_query_without_flags() -> None:
    assert CONFIGS["graph"].request("q", 20) == QueryRequest("q", texts=False, enough=20)
    assert CONFIGS["graph"].options(QueryOptions()) == QueryOptions()
    assert list(CONFIGS)[-1] == "graph"


def test_each_configuration_leaves_stages_out() -> None:
    asked = {name: config.request("q", 7) for name, config in CONFIGS.items()}
    assert {request.top for request in asked.values()} == {7}
    assert [(name, item.mode, item.rules, item.graph) for name, item in asked.items()] == [
        ("baseline", "vector", False, False),
        ("lexical", "lexical", False, False),
        ("rrf", "hybrid", False, False),
        ("fusion", "hybrid", False, False),
        ("rules", "hybrid", True, False),
        ("graph", "hybrid", True, True),
    ]
    methods = {name: config.options(QueryOptions()).method for name, config in CONFIGS.items()}
    assert {name for name, method in methods.items() if method == "rrf"} == {"rrf"}


def test_configurations_are_chosen_by_name_and_kept_in_order() -> None:
    assert choose_configs((), vectors=True) == tuple(CONFIGS)
    assert choose_configs((), vectors=False) == ("lexical", "rules", "graph")
    assert choose_configs(("graph", "lexical", "graph"), vectors=True) == ("lexical", "graph")
    assert not needs_vectors(["lexical"])
    assert needs_vectors(["lexical", "rules"])


def test_second_stages_are_asked_by_name_alone_and_come_last() -> None:
    assert choose_configs(("full", "rerank", "graph"), vectors=True) == ("graph", "rerank", "full")
    assert second_stages(tuple(CONFIGS)) == (False, False)
    assert second_stages(("graph", "rerank")) == (False, True)
    assert second_stages(("graph", "full")) == (True, True)


@pytest.mark.parametrize(
    ("name", "message", "hint"),
    [
        ("grpah", "no configuration is called 'grpah'", "graph"),
        ("zzz", "no configuration", "one of: baseline"),
        ("rernk", "no configuration", "did you mean rerank"),
    ],
)
def test_configurations_that_there_are_not(name: str, message: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        choose_configs(("lexical", name), vectors=True)
    assert message in caught.value.message
    assert hint in caught.value.hint


def test_the_command_line_knows_every_metric() -> None:
    assert COLUMNS.keys() == METRICS.keys()


# Measuring.


def test_values_are_the_metrics_of_the_plain_answers(root: Path, reader: SqliteReader) -> None:
    found = run(root, reader, tuple(CONFIGS))
    for name, config in CONFIGS.items():
        for topic in TOPICS:
            answer = run_query(
                root,
                reader,
                config.request(topic.query, 100),
                config.options(QueryOptions()),
                embed=HashEmbedder().embed_query,
            )
            ranked, scores = ranked_paths(answer), found.per_topic[name][topic.id]
            assert scores.hit_ranks == tuple(metrics.hit_ranks(ranked, topic.grades))
            assert scores.values["ndcg_at_10"] == metrics.ndcg(ranked, topic.grades, 10)
            assert scores.values["mrr"] == metrics.reciprocal_rank(ranked, topic.grades)
            assert scores.values["recall_at_5"] == metrics.recall(ranked, topic.grades, 5)


def test_means_count_topics_without_any_hit(root: Path, reader: SqliteReader) -> None:
    found = run(root, reader, ("lexical",))
    (scores,) = found.configs
    # t1: first rank, the lion unseen; t2: both files; t3: first rank; t4: none.
    assert found.per_topic["lexical"]["t4"].hit_ranks == ()
    assert found.per_topic["lexical"]["t1"].hit_ranks == (1,)
    assert scores.means["mrr"] == pytest.approx((1 + 1 + 1 + 0) / 4)
    assert scores.means["recall_at_5"] == pytest.approx((1 / 2 + 1 + 1 + 0) / 4)
    assert found.comparisons == ()
    assert found.asked is None


def test_the_same_twice_but_for_times(root: Path, reader: SqliteReader) -> None:
    first, second = (run(root, reader, tuple(CONFIGS)) for _ in range(2))
    assert [item.means for item in first.configs] == [item.means for item in second.configs]
    assert first.comparisons == second.comparisons
    for name in CONFIGS:
        for topic in TOPICS:
            one, other = (item.per_topic[name][topic.id] for item in (first, second))
            assert (one.hit_ranks, one.values) == (other.hit_ranks, other.values)


def test_each_is_compared_with_the_last_and_a_pair_on_demand(
    root: Path, reader: SqliteReader
) -> None:
    found = run(
        root, reader, ("baseline", "lexical", "graph"), pair=("graph", "lexical"), metric="mrr"
    )
    assert [(item.one, item.other, item.metric) for item in found.comparisons] == [
        ("baseline", "graph", "mrr"),
        ("lexical", "graph", "mrr"),
    ]
    assert found.asked is not None
    assert (found.asked.one, found.asked.other) == ("graph", "lexical")
    assert found.asked.difference == -found.comparisons[1].difference
    by_name = {item.name: item.means["mrr"] for item in found.configs}
    assert found.asked.mean_one == by_name["graph"]


def test_progress_counts_answers(root: Path, reader: SqliteReader) -> None:
    seen: list[tuple[int, int]] = []
    run(root, reader, ("lexical", "graph"), progress=lambda *so_far: seen.append(so_far))
    assert seen == [(n, 8) for n in range(1, 9)]


# Vectors of the questions.


def test_each_question_is_embedded_once_for_all_configurations(
    root: Path, reader: SqliteReader
) -> None:
    embed, cache = Counting(), Kept()
    run(root, reader, tuple(CONFIGS), embed=embed, cache=cache)
    assert cache.keys() == QUERIES
    # The first one twice: loading the model counts for no question.
    assert sorted(embed.asked) == sorted([*QUERIES, TOPICS[0].query])
    again = Counting()
    run(root, reader, tuple(CONFIGS), embed=again, cache=cache)
    assert again.asked == []


def test_words_alone_embed_nothing(root: Path, reader: SqliteReader) -> None:
    embed = Counting()
    run(root, reader, ("lexical",), embed=embed)
    assert embed.asked == []


def test_embedding_counts_where_vectors_are_searched(root: Path, reader: SqliteReader) -> None:
    cache = Kept()
    cache.took_ms = 60_000.0
    run(root, reader, ("baseline",), cache=cache)
    found = run(root, reader, ("baseline", "lexical", "graph"), cache=cache)
    slow = {item.name: item.p50_ms > 60_000 for item in found.configs}
    assert slow == {"baseline": True, "lexical": False, "graph": True}
    assert all(item.p50_ms <= item.p95_ms < 2 * 60_000 for item in found.configs)


# What is said, and faults.


def test_warnings_come_once_with_the_topics_that_gave_them(
    root: Path, reader: SqliteReader
) -> None:
    topics = (*TOPICS, Topic("odd", "?!", {"lion.md": 1}), Topic("odder", "...", {"lion.md": 1}))
    found = evaluate(root, reader, topics, ("lexical",), QueryOptions(), embed=None, top=10)
    assert found.warnings == (
        "the query holds no word to look for (2 of 6 queries: odd, odder)",
        "10 files were asked for: what stands deeper counts as not found",
    )


def test_configurations_that_lack_their_vectors_are_named(root: Path, reader: SqliteReader) -> None:
    found = run(root, reader, ("rrf", "fusion", "graph"), embed=None)
    assert found.warnings == ("the index has no vectors: rrf and fusion searched words alone",)
    with pytest.raises(UsageError, match="no vectors"):
        run(root, reader, ("baseline",), embed=None)


def test_a_fault_of_one_question_ends_the_evaluation(root: Path, reader: SqliteReader) -> None:
    def embed(text: str) -> np.ndarray:
        if text == TOPICS[2].query:
            raise ProviderUnavailable("gone")
        return HashEmbedder().embed_query(text)

    cache = Kept()
    with pytest.raises(ProviderUnavailable, match="gone"):
        run(root, reader, ("baseline",), embed=embed, cache=cache)
    assert cache.keys() == {TOPICS[0].query, TOPICS[1].query}  # paid for, and kept


@pytest.mark.parametrize(
    ("topics", "configs", "metric"),
    [((), ("graph",), "mrr"), (TOPICS, (), "mrr"), (TOPICS, ("graph",), "precision")],
)
def test_nothing_to_measure(
    root: Path,
    reader: SqliteReader,
    topics: tuple[Topic, ...],
    configs: tuple[str, ...],
    metric: str,
) -> None:
    with pytest.raises(UsageError):
        evaluate(root, reader, topics, configs, QueryOptions(), embed=None, metric=metric)

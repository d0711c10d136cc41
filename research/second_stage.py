"""What a second stage can do to a ranking: expansion by useless wordings, reranking by chance.

    python research/second_stage.py CORPUS QUERIES.jsonl [CORPUS QUERIES.jsonl ...] [--limit N]

CORPUS is an indexed directory. No trained chat model or reranker is at hand, so the table holds
bounds: other questions of the collection in place of rewordings (seed 1), the question itself in
other order, the start of a judged file as the passage, random scores in place of a reranker's
(seed 1), and an oracle that knows the judged files, right always or in 8 of 10 passages.
Prints Markdown, nDCG@10 over files; results: research/second-stage.md.
"""

from __future__ import annotations

import json
import math
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ragx.algo.metrics import ndcg
from ragx.api import open_corpus
from ragx.api.options import query_options
from ragx.evaluation.compare import compare
from ragx.evaluation.qrels import Topic, every_kth, parse_queries
from ragx.evaluation.runs import ranked_paths
from ragx.query.pipeline import QueryOptions, QueryRequest, SecondStage, run_query
from ragx.store.sqlite import SqliteReader

WEIGHTS = (0.25, 0.5)
ALPHAS = (0.3, 0.6, 0.9)
Embed = Callable[[str], NDArray[np.float32]]


class Wordings:
    """A chat model that answers with given texts."""

    model = "given"

    def __init__(self, queries: Sequence[str], passage: str = "") -> None:
        self._reply = json.dumps({"queries": list(queries), "passage": passage})

    def complete(self, _system: str, _prompt: str, **_: float) -> str:
        return self._reply

    def models(self) -> tuple[str, ...]:
        return ()

    def close(self) -> None:
        pass


class Judge:
    """A reranker by the file that a passage names in its first line."""

    model = "judge"

    def __init__(self, score: Callable[[str], float]) -> None:
        self._score = score

    def scores(self, _query: str, passages: Sequence[str]) -> list[float]:
        return [self._score(text.split("\n", 1)[0].split(" > ", 1)[0]) for text in passages]

    def close(self) -> None:
        pass


@dataclass
class Labelled:
    """A collection, its questions and what they are worth under some options."""

    root: Path
    topics: list[Topic]
    options: QueryOptions
    embed: Embed
    reader: SqliteReader

    def scores(
        self, models: Callable[[Topic], SecondStage], options: QueryOptions
    ) -> dict[str, float]:
        found = {}
        for topic in self.topics:
            stage = models(topic)
            request = QueryRequest(
                topic.query,
                top=20,
                texts=False,
                expand=stage.generator is not None,
                rerank=stage.reranker is not None,
            )
            answer = run_query(
                self.root, self.reader, request, options, embed=self.embed, models=stage
            )
            assert "failed" not in answer.stages.values(), answer.warnings
            found[topic.id] = ndcg(ranked_paths(answer), topic.grades, 10)
        return found


def main(arguments: Sequence[str]) -> None:
    limit = int(arguments[arguments.index("--limit") + 1]) if "--limit" in arguments else 100
    places = [item for item in arguments if item != "--limit" and not item.isdecimal()]
    for corpus_path, queries_path in zip(places[::2], places[1::2], strict=True):
        corpus = open_corpus(Path(corpus_path))
        topics = parse_queries(Path(queries_path).read_text("utf-8"), name=queries_path)
        with closing(SqliteReader(corpus.root)) as reader:
            embedder = corpus.open_embedder(reader.manifest())
            assert embedder is not None
            labelled = Labelled(
                corpus.root,
                list(every_kth(topics, limit)),
                query_options(corpus.config),
                cache(embedder.embed_query),
                reader,
            )
            report(Path(corpus_path).name, labelled, topics)
            embedder.close()


def report(name: str, data: Labelled, topics: Sequence[Topic]) -> None:
    plain = data.scores(lambda _: SecondStage(), data.options)
    say(f"\n{name}: {len(data.topics)} questions, nDCG@10 as it is {mean(plain):.4f}\n")
    say("| second stage | weight | nDCG@10 | difference | p |")
    say("|---|---|---|---|---|")

    def row(
        what: str, weight: float, models: Callable[[Topic], SecondStage], how: QueryOptions
    ) -> None:
        found = data.scores(models, how)
        p = compare("ndcg_at_10", "plain", what, plain, found).p
        say(
            f"| {what} | {weight:g} | {mean(found):.4f} | {mean(found) - mean(plain):+.4f}"
            f" | {p:.3f} |"
        )

    for weight in WEIGHTS:
        how = replace(data.options, expand=replace(data.options.expand, weight=weight))
        for n in (1, 3):
            row(f"{n} other question(s)", weight, lambda topic, n=n: garbage(topics, topic, n), how)
        row("own words shuffled, 2 others", weight, lambda topic: mixed(topics, topic), how)
        row("start of a judged file", weight, lambda topic: told(data.root, topic), how)
    for alpha in ALPHAS:
        how = replace(data.options, rerank=replace(data.options.rerank, alpha=alpha))
        row("random reranker", alpha, by_chance, how)
        row("oracle reranker", alpha, oracle, how)
        row("reranker right in 8 of 10", alpha, lambda topic: oracle(topic, 0.2), how)


def others(topics: Sequence[Topic], topic: Topic, n: int) -> list[str]:
    chance = random.Random(f"1 {topic.id}")
    return [other.query for other in chance.sample(topics, n + 1) if other.id != topic.id][:n]


def garbage(topics: Sequence[Topic], topic: Topic, n: int) -> SecondStage:
    model = Wordings(others(topics, topic, n))
    return SecondStage(generator=lambda: model)


def told(root: Path, topic: Topic) -> SecondStage:
    """What no model knows: the first words of a file that answers."""
    text = (root / min(topic.grades)).read_text("utf-8")
    model = Wordings([], " ".join(text.split())[:300])
    return SecondStage(generator=lambda: model)


def mixed(topics: Sequence[Topic], topic: Topic) -> SecondStage:
    words = topic.query.split()
    random.Random(f"2 {topic.id}").shuffle(words)
    model = Wordings([" ".join(words), *others(topics, topic, 2)])
    return SecondStage(generator=lambda: model)


def by_chance(topic: Topic) -> SecondStage:
    chance = random.Random(f"1 {topic.id}")
    return SecondStage(reranker=lambda: Judge(lambda _: chance.gauss(0, 1)))


def oracle(topic: Topic, wrong: float = 0.0) -> SecondStage:
    """Logits about +2 for judged files and -2 for others, turned around now and then."""
    chance = random.Random(f"3 {topic.id}")

    def score(path: str) -> float:
        right = 2.0 if topic.grades.get(path, 0) > 0 else -2.0
        return (-right if chance.random() < wrong else right) + chance.gauss(0, 0.5)

    return SecondStage(reranker=lambda: Judge(score))


def mean(values: Mapping[str, float]) -> float:
    return math.fsum(values.values()) / len(values)


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])

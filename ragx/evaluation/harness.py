"""Ask every judged question under several configurations, and measure the answers.

Each configuration is the same query with stages left out, so that two neighbours in the table show
what one stage is worth.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ragx.algo import metrics
from ragx.errors import ProviderUnavailable, UsageError
from ragx.evaluation.compare import Comparison, compare
from ragx.evaluation.qrels import Topic
from ragx.evaluation.runs import Run, percentile, ranked_paths
from ragx.evaluation.sharing import SharingReader
from ragx.query.pipeline import Answer, Mode, QueryOptions, QueryRequest, SecondStage, run_query
from ragx.store.base import Reader

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]

__all__ = [
    "CONFIGS",
    "METRICS",
    "Configuration",
    "Evaluation",
    "Scores",
    "TopicScores",
    "VectorCache",
    "choose_configs",
    "evaluate",
    "needs_vectors",
    "second_stages",
]


_USUAL_TOP = 20


@dataclass(frozen=True, slots=True)
class Configuration:
    """How a configuration asks; what is not said is as the corpus's settings have it."""

    mode: Mode = "hybrid"
    method: str = ""
    rules: bool = False
    graph: bool = False
    expand: bool = False
    rerank: bool = False

    def request(self, text: str, top: int) -> QueryRequest:
        """The question, without the texts that nobody measures.

        The searches look as deep as for a query of the usual size: what is measured is the ranking
        that a user sees, and what stands below it.
        """
        return QueryRequest(
            text,
            top=top,
            mode=self.mode,
            texts=False,
            rules=self.rules,
            graph=self.graph,
            expand=self.expand,
            rerank=self.rerank,
            enough=min(top, _USUAL_TOP),
        )

    def options(self, options: QueryOptions) -> QueryOptions:
        """The corpus's options, with this configuration's way to fuse."""
        return replace(options, method="rrf") if self.method == "rrf" else options


CONFIGS: Mapping[str, Configuration] = {
    "baseline": Configuration(mode="vector"),
    "lexical": Configuration(mode="lexical"),
    "rrf": Configuration(method="rrf"),
    "fusion": Configuration(),
    "rules": Configuration(rules=True),
    "graph": Configuration(rules=True, graph=True),
}
"""Names in the order of the table, the query as it is without flags last."""

_SECOND: Mapping[str, Configuration] = {
    "rerank": Configuration(rules=True, graph=True, rerank=True),
    "full": Configuration(rules=True, graph=True, expand=True, rerank=True),
}
# Asked only by name: they need models of their own and take their time.
_ALL: Mapping[str, Configuration] = {**CONFIGS, **_SECOND}
_WITHOUT_VECTORS = ("lexical", "rules", "graph")

METRICS: Mapping[str, Callable[[Sequence[str], Mapping[str, float]], float]] = {
    "recall_at_5": lambda ranked, grades: metrics.recall(ranked, grades, 5),
    "recall_at_10": lambda ranked, grades: metrics.recall(ranked, grades, 10),
    "recall_at_20": lambda ranked, grades: metrics.recall(ranked, grades, 20),
    "recall_at_100": lambda ranked, grades: metrics.recall(ranked, grades, 100),
    "mrr": metrics.reciprocal_rank,
    "mrr_at_10": lambda ranked, grades: metrics.reciprocal_rank(ranked, grades, 10),
    "ndcg_at_10": lambda ranked, grades: metrics.ndcg(ranked, grades, 10),
}
"""What is measured for each question; a configuration's value is the mean over all questions."""

_DEEPEST = 100  # rank that the deepest metric looks at


class VectorCache(Protocol):
    """Where vectors of questions are kept from run to run; see `store.queries.QueryVectors`."""

    def get(self, text: str) -> tuple[Vector, float] | None:
        """The vector and the milliseconds that it took; None if unknown."""

    def put(self, text: str, vector: Vector, elapsed_ms: float) -> None:
        """Remember a vector."""


@dataclass(frozen=True, slots=True)
class Scores:
    """One configuration over all topics: the mean of each metric, and times in milliseconds."""

    name: str
    means: Mapping[str, float]
    p50_ms: float
    p95_ms: float


@dataclass(frozen=True, slots=True)
class TopicScores:
    """One topic under one configuration; `hit_ranks` are those of its relevant files, from 1."""

    hit_ranks: tuple[int, ...]
    values: Mapping[str, float]
    elapsed_ms: float


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What the configurations are worth.

    Args:
        top: files asked for per question.
        configs: in the order of `CONFIGS`.
        per_topic: scores by configuration, by topic's id.
        comparisons: each configuration against the last.
        asked: the comparison that was asked for, if any.
    """

    top: int
    metric: str
    topics: tuple[Topic, ...]
    configs: tuple[Scores, ...]
    per_topic: Mapping[str, Mapping[str, TopicScores]]
    comparisons: tuple[Comparison, ...] = ()
    asked: Comparison | None = None
    warnings: tuple[str, ...] = ()


@dataclass(slots=True)
class _Questions:
    """Embeds each text once for all configurations, and knows how long that takes.

    The first text that has to be embedded is embedded twice, so that loading the model counts for
    no question.
    """

    embed: Callable[[str], Vector]
    cache: VectorCache
    owed_ms: float = 0.0  # what embedding took, less what it takes now
    known: dict[str, tuple[Vector, float]] = field(default_factory=dict)
    warm: bool = False

    def __call__(self, text: str) -> Vector:
        started = time.perf_counter()
        if text not in self.known:
            self.known[text] = self.cache.get(text) or self._embedded(text)
        vector, elapsed_ms = self.known[text]
        self.owed_ms += elapsed_ms - _since(started)
        return vector

    def _embedded(self, text: str) -> tuple[Vector, float]:
        if not self.warm:
            self.embed(text)
            self.warm = True
        started = time.perf_counter()
        vector = self.embed(text)
        elapsed_ms = _since(started)
        self.cache.put(text, vector, elapsed_ms)
        return vector, elapsed_ms


class _Forgetful:
    """Keeps nothing: a cache for those who bring none."""

    def get(self, _text: str) -> tuple[Vector, float] | None:
        return None

    def put(self, _text: str, _vector: Vector, _elapsed_ms: float) -> None:
        """Do nothing."""


def choose_configs(names: Sequence[str], *, vectors: bool) -> tuple[str, ...]:
    """The configurations to run, in the order of the table, whatever order they are named in.

    None named means all that this index can tell apart, without `rerank` and `full`.

    Raises:
        UsageError: there is no such configuration.
    """
    if not names:
        return tuple(CONFIGS) if vectors else _WITHOUT_VECTORS
    for name in names:
        if name not in _ALL:
            from difflib import get_close_matches

            near = get_close_matches(name, _ALL, n=2, cutoff=0.5)
            raise UsageError(
                f"no configuration is called {name!r}",
                hint=f"did you mean {' or '.join(near)}?" if near else f"one of: {', '.join(_ALL)}",
            )
    return tuple(name for name in _ALL if name in names)


def needs_vectors(names: Sequence[str]) -> bool:
    """Whether any of these configurations asks for the vector side."""
    return any(_ALL[name].mode != "lexical" for name in names)


def second_stages(names: Sequence[str]) -> tuple[bool, bool]:
    """Whether any of these configurations expands, and whether any reranks."""
    return any(_ALL[name].expand for name in names), any(_ALL[name].rerank for name in names)


def evaluate(
    root: Path,
    reader: Reader,
    topics: Sequence[Topic],
    configs: Sequence[str],
    options: QueryOptions,
    *,
    embed: Callable[[str], Vector] | None,
    cache: VectorCache | None = None,
    models: SecondStage | None = None,
    top: int = _DEEPEST,
    metric: str = "ndcg_at_10",
    pair: tuple[str, str] | None = None,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> Evaluation:
    """Ask all topics under all configurations over one snapshot.

    A question's time is what its query took and, where vectors were searched, what embedding it
    took when that was done. Each configuration has asked one question before its times count.

    Args:
        configs: as `choose_configs` gives them; the last is what the others are compared with.
        embed, models: as for `run_query`.
        cache: vectors from earlier runs; None embeds each question in this run.
        metric: of `METRICS`; what comparisons are by.
        pair: two of the configurations to compare besides.
        progress: told the answers given so far, and of how many.
    Raises:
        UsageError: there is nothing to ask or to ask it with, or a question cannot be asked.
        ProviderError: a question could not be embedded, reworded or reranked.
    """
    if not topics or not configs:
        raise UsageError("an evaluation needs a question and a configuration, one at least")
    if metric not in METRICS:
        raise UsageError(f"no metric is called {metric!r}", hint=f"one of: {', '.join(METRICS)}")
    kept = _Forgetful() if cache is None else cache
    questions = None if embed is None else _Questions(embed, kept)
    runs = {name: Run(name) for name in configs}
    said: dict[str, dict[str, None]] = {}
    shared = SharingReader(reader)

    def ask(topic: Topic, name: str) -> tuple[Answer, float]:
        config = _ALL[name]
        request, how = config.request(topic.query, top), config.options(options)
        owed_before_ms = owed_ms()
        started = time.perf_counter()
        answer = run_query(root, shared.as_reader(), request, how, embed=questions, models=models)
        elapsed_ms = _since(started)
        _require_all_stages(answer, topic, name)
        return answer, elapsed_ms + owed_ms() - owed_before_ms

    def owed_ms() -> float:
        return shared.owed_ms + (questions.owed_ms if questions else 0.0)

    for name in runs:
        run_query(
            root,
            reader,
            _ALL[name].request(topics[0].query, top),
            _ALL[name].options(options),
            embed=questions,
            models=models,
        )
    n_done = 0
    # Topic by topic, so that whatever else this machine does falls on all configurations alike.
    for topic in topics:
        shared.next_topic()
        for name, run in runs.items():
            answer, run.elapsed_ms[topic.id] = ask(topic, name)
            run.paths[topic.id] = ranked_paths(answer)
            for line in answer.warnings:
                said.setdefault(line, {})[topic.id] = None
            n_done += 1
            progress(n_done, len(topics) * len(runs))
    per_topic = {name: _topic_scores(topics, run) for name, run in runs.items()}

    def compared(one: str, other: str) -> Comparison:
        sides = [
            {key: scores.values[metric] for key, scores in per_topic[name].items()}
            for name in (one, other)
        ]
        return compare(metric, one, other, *sides)

    names = tuple(runs)
    return Evaluation(
        top=top,
        metric=metric,
        topics=tuple(topics),
        configs=tuple(_scores(name, per_topic[name].values()) for name in names),
        per_topic=per_topic,
        comparisons=tuple(compared(name, names[-1]) for name in names[:-1]),
        asked=compared(*pair) if pair else None,
        warnings=_warnings(said, len(topics), names, top, vectors=embed is not None),
    )


def _require_all_stages(answer: Answer, topic: Topic, name: str) -> None:
    """Stop where a stage gave up: the answer would count for what it is not."""
    failed = [stage for stage, state in answer.stages.items() if state == "failed"]
    if failed:
        said = "; ".join(line for line in answer.warnings if line.startswith("not "))
        raise ProviderUnavailable(
            f"{name}, query {topic.id}: {said}",
            hint="ragx doctor tests the models; --configs names what is measured",
            details={"stages": failed},
        )


def _since(started: float) -> float:
    """Milliseconds since a reading of the clock."""
    return 1000 * (time.perf_counter() - started)


def _topic_scores(topics: Sequence[Topic], run: Run) -> dict[str, TopicScores]:
    return {
        topic.id: TopicScores(
            tuple(metrics.hit_ranks(run.paths[topic.id], topic.grades)),
            {name: measure(run.paths[topic.id], topic.grades) for name, measure in METRICS.items()},
            run.elapsed_ms[topic.id],
        )
        for topic in topics
    }


def _scores(name: str, of_topics: Collection[TopicScores]) -> Scores:
    times = [scores.elapsed_ms for scores in of_topics]
    return Scores(
        name,
        {
            metric: math.fsum(scores.values[metric] for scores in of_topics) / len(of_topics)
            for metric in METRICS
        },
        percentile(times, 0.5),
        percentile(times, 0.95),
    )


def _warnings(
    said: Mapping[str, Mapping[str, None]],
    n_topics: int,
    names: Sequence[str],
    top: int,
    *,
    vectors: bool,
) -> tuple[str, ...]:
    """What queries warned of, each thing once, and what the numbers cannot say."""
    lines = [
        line
        + ("" if len(ids) == n_topics else f" ({len(ids)} of {n_topics} queries: {_some(ids)})")
        for line, ids in said.items()
    ]
    both = [name for name in names if name in ("rrf", "fusion")]
    if both and not vectors:
        lines.append(f"the index has no vectors: {' and '.join(both)} searched words alone")
    if top < _DEEPEST:
        lines.append(f"{top} files were asked for: what stands deeper counts as not found")
    return tuple(lines)


def _some(ids: Mapping[str, None]) -> str:
    first = list(ids)[:3]
    return ", ".join(first) + (", ..." if len(ids) > len(first) else "")

"""The ranking of a small corpus of real files, as text: whoever changes ranking sees what moves.

`golden/README.md` says what is in it and how a change is accepted.
"""

from __future__ import annotations

import difflib
import json
import math
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from ragx.algo import metrics
from ragx.api import Corpus, EvalRequest, Evaluation, IndexRequest, QueryRequest, open_corpus
from ragx.evaluation.qrels import Topic
from ragx.evaluation.runs import ranked_paths
from ragx.providers import registry
from ragx.providers.base import EmbeddingOptions
from ragx.providers.builtin import BuiltinEmbedder

GOLDEN = Path(__file__).with_name("golden")
QUERIES = (GOLDEN / "queries.jsonl").read_text(encoding="utf-8")
RANKING = GOLDEN / "ranking.txt"
# Read here: tests run without any variable of this kind.
ACCEPT = os.environ.get("RAGX_ACCEPT_RANKING", "") not in ("", "0")
HOW_TO_ACCEPT = (
    "if the change is meant: RAGX_ACCEPT_RANKING=1 pytest tests/e2e/" + Path(__file__).name
)

TOP = 20  # what a query gives by default
SHOWN = 5
MODEL, WORDS = "built-in model, float32", "words alone, provider none"
NAMES = {
    MODEL: ("lexical", "baseline", "rrf", "fusion", "rules", "graph"),
    WORDS: ("lexical", "rules", "graph"),
}
DEFAULT = "graph"
STATISTICS = ("recall@1", "recall@5", "MRR", "nDCG@10")
# CPUs differ in the sixth place or later; 0.02 covers what printing two places makes of that.
SCORE_TOLERANCE = 0.02
NEAR_TIE = 1e-3
FLOOR = 0.003
_SCORE = re.compile(r"^( +\d+ {2})(-?\d+\.\d\d)(?= )", re.MULTILINE)
_PLACE = re.compile(r"^ +(\d+) .* (\S+)$")


@dataclass(frozen=True)
class Ranked:
    """A topic and what the query without flags gives for it: paths with scores, best first."""

    topic: Topic
    files: tuple[tuple[str, float], ...]

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(path for path, _ in self.files)


@dataclass(frozen=True)
class Result:
    """A section's measurements."""

    evaluation: Evaluation
    ranked: tuple[Ranked, ...]


@pytest.fixture(scope="module")
def with_model(tmp_path_factory: pytest.TempPathFactory) -> Result:
    """The corpus through the real model in float32, the one arithmetic that all CPUs share.

    `wo` alone is not that: onnxruntime turns its products into MatMulNBits, which by default
    rounds activations to int8 where the CPU has kernels for it.
    """
    import onnxruntime

    session_options = onnxruntime.SessionOptions

    def in_float32() -> onnxruntime.SessionOptions:
        options = session_options()
        options.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "1")
        return options

    model = BuiltinEmbedder(EmbeddingOptions(provider="builtin", mode="wo"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(onnxruntime, "SessionOptions", in_float32)
        # One session for all questions, too: every search opens and closes its own.
        patch.setattr(registry, "open_embedder", lambda _options, **_: model)
        patch.setattr(model, "close", lambda: None)
        return measure(tmp_path_factory.mktemp("golden-model"), "builtin", MODEL)


@pytest.fixture(scope="module")
def without_model(tmp_path_factory: pytest.TempPathFactory) -> Result:
    return measure(tmp_path_factory.mktemp("golden-words"), "none", WORDS)


def measure(scratch: Path, provider: str, section: str) -> Result:
    """Index a copy of the corpus and ask it everything."""
    root = scratch / "corpus"
    shutil.copytree(GOLDEN / "corpus", root)
    (root / "ragx.toml").write_text(f'[embeddings]\nprovider = "{provider}"\n', encoding="utf-8")
    corpus = open_corpus(root, env={})
    report = corpus.index(IndexRequest())
    assert report.committed
    assert not report.failed
    assert not report.skipped
    evaluation = corpus.evaluate(EvalRequest(QUERIES, configs=NAMES[section], top=TOP))
    return Result(evaluation, tuple(rank(corpus, topic) for topic in evaluation.topics))


def rank(corpus: Corpus, topic: Topic) -> Ranked:
    """Ask one question as a user does; copies have their entry's score."""
    answer = corpus.search(QueryRequest(topic.query, top=TOP, texts=False))
    score_of: dict[str, float] = {}
    for entry in answer.results:
        for path in (entry.path, *entry.also_in):
            score_of.setdefault(path, entry.score)
    return Ranked(topic, tuple((path, score_of[path]) for path in ranked_paths(answer)))


# From measurements to text.


def statistics(result: Result, name: str) -> list[float]:
    """Means over all topics, in the order of `STATISTICS`; the default's from settled ranks."""
    rows = []
    for item in result.ranked:
        grades = item.topic.grades
        scores = result.evaluation.per_topic[name][item.topic.id]
        hits, ndcg = list(scores.hit_ranks), scores.values["ndcg_at_10"]
        if name == DEFAULT:
            hits, ndcg = metrics.hit_ranks(item.paths, grades), metrics.ndcg(item.paths, grades, 10)
        n_relevant = sum(grade > 0 for grade in grades.values())
        recalls = [sum(hit <= k for hit in hits) / n_relevant for k in (1, SHOWN)]
        rows.append((*recalls, 1 / hits[0] if hits else 0.0, ndcg))
    return [math.fsum(column) / len(rows) for column in zip(*rows, strict=True)]


def table(result: Result, section: str) -> list[str]:
    lines = [" " * 10 + "".join(f"{name:>10}" for name in STATISTICS)]
    for name in NAMES[section]:
        values = statistics(result, name)
        lines.append(f"{name:<10}" + "".join(f"{value:>10.4f}" for value in values))
    return lines


def places(item: Ranked) -> str:
    """The rank of each relevant file, in the order of the judgments."""
    rank_of = {path: at for at, path in enumerate(item.paths, start=1)}
    return ", ".join(
        f"{path} {rank_of.get(path, '-')}" for path, grade in item.topic.grades.items() if grade > 0
    )


def render(result: Result, section: str) -> str:
    lines = [f"== {section} ==", "", *table(result, section), ""]
    for item in result.ranked:
        grades = item.topic.grades
        if section == WORDS:
            lines.append(f"{item.topic.id}: {places(item)}; first: {' '.join(item.paths[:1])}")
            continue
        lines += [f"{item.topic.id}: {item.topic.query}", f"    relevant: {places(item)}"]
        for at, (path, score) in enumerate(item.files[:SHOWN], start=1):
            mark = "*" * int(grades.get(path, 0))
            lines.append(f"{at:>5}  {score:.2f} {mark:>2} {path}")
        lines.append("")
    return "\n".join(lines).rstrip("\n") + "\n"


# Comparing it with what was accepted.


def accepted(section: str) -> str:
    """The section of the golden file; "" while it has none."""
    text = RANKING.read_text(encoding="utf-8") if RANKING.exists() else ""
    start = text.find(f"== {section} ==")
    end = text.find("\n== ", start)
    return "" if start < 0 else text[start : end + 1 if end >= 0 else len(text)].rstrip("\n") + "\n"


def accept(section: str, text: str) -> None:
    """Put a section in the place of the old one."""
    sections = {name: accepted(name) for name in (MODEL, WORDS)} | {section: text}
    RANKING.write_text("\n".join(filter(None, sections.values())), encoding="utf-8")


def known_places(text: str) -> dict[str, dict[str, int]]:
    """By topic's id, the rank of every path that the golden file tells it of."""
    known: dict[str, dict[str, int]] = {}
    topic = ""
    for line in text.splitlines():
        if line.startswith("    relevant: "):
            for item in line.removeprefix("    relevant: ").split(", "):
                path, _, place = item.rpartition(" ")
                if place != "-":
                    known[topic][path] = int(place)
        elif match := _PLACE.match(line):
            known[topic][match[2]] = int(match[1])
        elif ": " in line:
            topic = line.partition(":")[0]
            known[topic] = {}
    return known


def settle(item: Ranked, known: Mapping[str, int]) -> Ranked:
    """Give neighbours that score nearly alike the accepted order, where it is known.

    In a run of near ties, each file whose accepted place lies within the run stands there; the
    others fill what is left, in their order.
    """
    files = list(item.files)
    start = 0
    while start < len(files):
        end = start + 1
        while end < len(files) and files[end - 1][1] - files[end][1] < NEAR_TIE:
            end += 1
        run = files[start:end]
        fixed = {known[file[0]] - 1: file for file in run if start < known.get(file[0], 0) <= end}
        others = iter([file for file in run if file not in fixed.values()])
        files[start:end] = [fixed.get(at) or next(others) for at in range(start, end)]
        start = end
    return Ranked(item.topic, tuple(files))


def same_but_for_scores(old: str, new: str) -> bool:
    scores = [[float(match[2]) for match in _SCORE.finditer(text)] for text in (old, new)]
    texts = [_SCORE.sub(r"\1#", text) for text in (old, new)]
    return texts[0] == texts[1] and all(
        abs(one - other) <= SCORE_TOLERANCE for one, other in zip(*scores, strict=True)
    )


def difference(old: str, new: str) -> str:
    lines = difflib.unified_diff(
        old.splitlines(), new.splitlines(), "accepted", "now", n=2, lineterm=""
    )
    return "\n".join(lines)


def check(result: Result, section: str) -> None:
    if ACCEPT:
        accept(section, render(result, section))
        return
    old = accepted(section)
    known = known_places(old) if section == MODEL else {}
    ranked = tuple(settle(item, known.get(item.topic.id, {})) for item in result.ranked)
    new = render(Result(result.evaluation, ranked), section)
    if not same_but_for_scores(old, new):
        pytest.fail(
            f"the ranking differs from {RANKING.name} ({section})\n{difference(old, new)}\n"
            f"{HOW_TO_ACCEPT}",
            pytrace=False,
        )


# The tests.


def test_with_the_built_in_model(with_model: Result) -> None:
    check(with_model, MODEL)


def test_words_alone(without_model: Result) -> None:
    check(without_model, WORDS)


@pytest.mark.parametrize("other", ["baseline", "lexical", "rrf", "fusion"])
def test_the_default_is_not_worse_than_its_parts(with_model: Result, other: str) -> None:
    means = {scores.name: scores.means["ndcg_at_10"] for scores in with_model.evaluation.configs}
    assert means[DEFAULT] >= means[other] - FLOOR


def test_evaluation_and_search_rank_alike(with_model: Result, without_model: Result) -> None:
    for result in (with_model, without_model):
        measured = result.evaluation.per_topic[DEFAULT]
        for item in result.ranked:
            found = metrics.hit_ranks(item.paths, item.topic.grades)
            assert tuple(found) == measured[item.topic.id].hit_ranks, item.topic.id


def test_every_line_of_the_corpus_is_judged_by_paths_that_exist() -> None:
    for line in QUERIES.splitlines():
        for path in json.loads(line)["relevant"]:
            assert (GOLDEN / "corpus" / path).is_file(), path


def test_near_ties_may_stand_either_way_and_nothing_else() -> None:
    topic = Topic("q", "?", {"b": 1.0})
    known = known_places("q: ?\n    relevant: b 1\n    1  0.50  * b\n    2  0.50    a\n")["q"]
    near = Ranked(topic, (("a", 0.5004), ("b", 0.5), ("c", 0.1)))
    assert settle(near, known).paths == ("b", "a", "c")
    apart = Ranked(topic, (("a", 0.502), ("b", 0.5), ("c", 0.1)))
    assert settle(apart, known).paths == ("a", "b", "c")


def test_scores_may_differ_a_little_and_ranks_not_at_all() -> None:
    line = "    1  0.50  * b\n"
    assert same_but_for_scores(line, "    1  0.51  * b\n")
    assert not same_but_for_scores(line, "    1  0.53  * b\n")
    assert not same_but_for_scores(line, "    2  0.50  * b\n")
    assert not same_but_for_scores("fusion  0.9400\n", "fusion  0.9399\n")

"""Metrics equal those of ir_measures (trec_eval's code), whatever the runs and judgments."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

import ir_measures
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ir_measures import RR, Qrel, R, ScoredDoc, nDCG

from ragx.algo.metrics import ndcg, recall, reciprocal_rank

OURS = {
    R @ 5: lambda ranked, grades: recall(ranked, grades, 5),
    R @ 10: lambda ranked, grades: recall(ranked, grades, 10),
    R @ 20: lambda ranked, grades: recall(ranked, grades, 20),
    R @ 100: lambda ranked, grades: recall(ranked, grades, 100),
    RR: reciprocal_rank,
    RR @ 10: lambda ranked, grades: reciprocal_rank(ranked, grades, 10),
    nDCG @ 10: lambda ranked, grades: ndcg(ranked, grades, 10),
}

Judged = Mapping[str, Mapping[str, int]]
Runs = Mapping[str, Sequence[str]]


def assert_equal_to_theirs(qrels: Judged, runs: Runs) -> None:
    """Every judged query, also one that the run missed, and the means over all of them."""
    theirs = {(item.query_id, item.measure): item.value for item in _calculated(qrels, runs)}
    assert len(theirs) == len(qrels) * len(OURS)
    for measure, ours in OURS.items():
        values = {topic: ours(runs.get(topic, ()), grades) for topic, grades in qrels.items()}
        for topic, value in values.items():
            assert value == pytest.approx(theirs[topic, measure], abs=1e-9), (topic, measure)


def _calculated(qrels: Judged, runs: Runs) -> list[ir_measures.Metric]:
    judged = [
        Qrel(topic, name, grade)
        for topic, grades in qrels.items()
        for name, grade in grades.items()
    ]
    # Scores fall strictly, so that no tie rule of theirs decides.
    scored = [
        ScoredDoc(topic, name, float(len(ranked) - place))
        for topic, ranked in runs.items()
        for place, name in enumerate(ranked)
    ]
    supported = [measure for measure in OURS if ir_measures.pytrec_eval.supports(measure)]
    others = [measure for measure in OURS if measure not in supported]
    assert others == [RR @ 10]  # which another part of ir_measures calculates
    return [
        *ir_measures.pytrec_eval.iter_calc(supported, judged, scored),
        *ir_measures.iter_calc(others, judged, scored),
    ]


names = st.sampled_from([f"f{n:03d}" for n in range(130)])
qrels = st.dictionaries(
    st.sampled_from(["1", "2", "q3", "q4"]),
    st.dictionaries(names, st.integers(-1, 4), min_size=1, max_size=30),
    min_size=1,
)


@settings(max_examples=150, deadline=None)
@given(qrels, st.data())
def test_equal_on_arbitrary_runs(judged: dict[str, dict[str, int]], data: st.DataObject) -> None:
    runs = data.draw(
        st.dictionaries(
            st.sampled_from(sorted(judged)), st.lists(names, unique=True, max_size=120), min_size=1
        )
    )
    # An entirely empty run is no run to them: one answer for a topic nobody judged makes it one.
    assert_equal_to_theirs(judged, {**runs, "unjudged": ["f000"]})


@pytest.mark.parametrize("seed", range(8))
def test_equal_on_large_random_runs(seed: int) -> None:
    draw = random.Random(seed)
    pool = [f"dir/f{n}.md" for n in range(400)]
    judged = {
        str(topic): {
            name: draw.choice([0, 1, 1, 2, 3]) for name in draw.sample(pool, draw.randint(1, 40))
        }
        for topic in range(60)
    }
    runs = {
        topic: draw.sample(pool, draw.choice([0, 1, 7, 100, 250]))
        for topic in judged
        if draw.random() < 0.8
    }
    assert_equal_to_theirs(judged, runs)


def test_queries_that_the_run_missed_count_zero() -> None:
    assert_equal_to_theirs({"1": {"a": 1}, "2": {"b": 2}, "3": {"c": 0}}, {"1": ["a"], "2": []})

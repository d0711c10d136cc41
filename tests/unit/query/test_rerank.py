"""The second look: what it reads, what it changes, and what it must leave alone."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from ragx.algo.chunking.base import ChunkOptions
from ragx.errors import ConfigError, MissingDependency, ProviderRefused, ProviderUnavailable
from ragx.indexing.build import BuildOptions, build, expected_manifest
from ragx.indexing.scan import ScanOptions
from ragx.providers.fakes import HashEmbedder
from ragx.query.expand import ExpandRule
from ragx.query.pipeline import Answer, QueryOptions, QueryRequest, SecondStage, run_query
from ragx.query.rerank import RerankRule, passage_of, rerank
from ragx.query.spread import SpreadOptions
from ragx.store.base import LinkOptions
from ragx.store.sqlite import SqliteReader, SqliteWriter
from ragx.types import Chunk, Hit

ALPHA = 0.6


class Scorer:
    """A reranker that scores by a function of the passage, and keeps what it read."""

    model = "scorer"

    def __init__(self, score: Callable[[str], float]) -> None:
        self._score = score
        self.read: list[str] = []
        self.questions: list[str] = []

    def scores(self, query: str, passages: Sequence[str]) -> list[float]:
        self.questions.append(query)
        self.read += passages
        return [self._score(passage) for passage in passages]

    def close(self) -> None:
        """Nothing is open."""


class Fixed(Scorer):
    """Answers with given numbers."""

    def __init__(self, numbers: Sequence[float]) -> None:
        super().__init__(lambda _: 0.0)
        self._numbers = numbers

    def scores(self, query: str, passages: Sequence[str]) -> list[float]:
        return list(self._numbers)


def chunk_of(chunk_id: int, text: str = "") -> Chunk:
    return Chunk(chunk_id, f"f{chunk_id}.md", 0, 0, 1, 1, 1, text or f"text {chunk_id}", ("Head",))


def hit_of(chunk_id: int, score: float, **terms: float) -> Hit:
    return Hit(chunk_id, f"f{chunk_id}.md", 0, score, terms=terms or {"vector": score})


def looked_at(
    scores: Mapping[int, float],
    said: Mapping[int, float],
    rule: RerankRule,
    owners: Mapping[int, int] | None = None,
) -> dict[int, Hit]:
    hits = [hit_of(chunk_id, score) for chunk_id, score in scores.items()]
    owners = owners or {chunk_id: chunk_id for chunk_id in scores}
    kept = sorted(
        (hit for hit in hits if owners[hit.chunk_id] == hit.chunk_id), key=lambda hit: -hit.score
    )
    chunks = {chunk_id: chunk_of(chunk_id) for chunk_id in scores}
    model = Scorer(lambda text: said[int(text.rsplit(" ", 1)[1])])
    mixed = rerank("q", hits, kept, owners, chunks, model, rule)
    return {hit.chunk_id: hit for hit in mixed}


def test_a_passage_names_its_place_and_holds_the_whole_text() -> None:
    text = "line\n" * 5000
    assert passage_of(chunk_of(7, text)) == f"f7.md > Head\n{text}"


def test_the_first_stage_keeps_its_share() -> None:
    hits = looked_at({1: 1.0, 2: 0.5, 3: 0.2}, {1: -4.0, 2: 2.0, 3: 5.0}, RerankRule(ALPHA))
    expected = {1: 0.2, 2: 0.2 + 0.8 * 6 / 9, 3: 1.0}
    for chunk_id, first in {1: 1.0, 2: 0.5, 3: 0.2}.items():
        hit = hits[chunk_id]
        assert hit.score == pytest.approx((1 - ALPHA) * first + ALPHA * expected[chunk_id])
        assert math.fsum(hit.terms.values()) == pytest.approx(hit.score)
        assert hit.terms["vector"] == pytest.approx((1 - ALPHA) * first)
        assert hit.terms["rerank"] == pytest.approx(ALPHA * expected[chunk_id])
    assert {key: hit.raw["rerank_score"] for key, hit in hits.items()} == {1: -4, 2: 2, 3: 5}


def test_weight_0_changes_no_score_and_weight_1_is_the_rerankers_order() -> None:
    first, said = {1: 1.0, 2: 0.5, 3: 0.2}, {1: -4.0, 2: 2.0, 3: 5.0}
    none = looked_at(first, said, RerankRule(0.0))
    assert {key: hit.score for key, hit in none.items()} == first
    all_of_it = looked_at(first, said, RerankRule(1.0))
    assert sorted(said, key=lambda key: -all_of_it[key].score) == [3, 2, 1]
    assert set(all_of_it[2].terms) == {"rerank"}


def test_equal_scores_change_nothing() -> None:
    first = {1: 1.0, 2: 0.5, 3: 0.2}
    hits = looked_at(first, dict.fromkeys(first, 0.3), RerankRule(ALPHA))
    assert {key: hit.score for key, hit in hits.items()} == pytest.approx(first)


@pytest.mark.parametrize("order", list(itertools.permutations([-3.0, 0.0, 2.0])))
def test_what_is_not_read_stays_below(order: Sequence[float]) -> None:
    first = {1: 1.0, 2: 0.8, 3: 0.7, 4: 0.7, 5: 0.1}
    hits = looked_at(first, dict(zip((1, 2, 3), order, strict=True)), RerankRule(0.9, depth=3))
    unread = max(hits[4].score, hits[5].score)
    assert (hits[4].score, hits[5].score) == (0.7, 0.1)
    assert "rerank" not in hits[4].terms
    assert all(hits[key].score >= unread for key in (1, 2, 3))


def test_a_copy_is_not_read_and_stays_behind_the_one_that_stands_for_it() -> None:
    owners = {1: 1, 2: 2, 3: 1}
    hits = looked_at({1: 1.0, 2: 0.9, 3: 0.95}, {1: -2.0, 2: 3.0}, RerankRule(ALPHA), owners)
    assert hits[3].raw["rerank_score"] == -2.0
    assert hits[3].score < hits[1].score < hits[2].score


@pytest.mark.parametrize(
    "numbers", [[], [1.0], [1.0, 2.0, 3.0], [1.0, math.nan], [math.inf, 1.0], [-1e308, 1e308]]
)
def test_numbers_that_cannot_be_used_are_refused(numbers: Sequence[float]) -> None:
    hits = [hit_of(1, 1.0), hit_of(2, 0.5)]
    chunks = {1: chunk_of(1), 2: chunk_of(2)}
    with pytest.raises(ProviderRefused, match="one number for each passage"):
        rerank("q", hits, hits, {1: 1, 2: 2}, chunks, Fixed(numbers), RerankRule())


def test_no_hits_are_not_looked_at() -> None:
    model = Scorer(lambda _: 1.0)
    assert rerank("q", [], [], {}, {}, model, RerankRule()) == []
    assert not model.questions


# --- the seed document's sum


def seed_hits() -> list[Hit]:
    heats, cosines = {1: 0.9, 2: 0.6, 3: 0.3, 4: 0.1}, {1: 0.2, 2: 0.8, 3: 0.5, 4: 0.4}
    return [
        replace(hit_of(key, 0.0), raw={"heat_score": heats[key], "cosine": cosines[key]})
        for key in heats
    ]


def by_seed(rule: RerankRule, said: Mapping[int, float]) -> dict[int, Hit]:
    hits = seed_hits()
    model = Scorer(lambda text: said[int(text.rsplit(" ", 1)[1])])
    owners = {hit.chunk_id: hit.chunk_id for hit in hits}
    chunks = {key: chunk_of(key) for key in owners}
    return {hit.chunk_id: hit for hit in rerank("q", hits, hits[::-1], owners, chunks, model, rule)}


def test_the_seed_formula_is_a_sum_of_three_scaled_parts() -> None:
    rule = RerankRule(0.6, depth=3, formula="seed", beta_heat=0.25, gamma_vector=0.15)
    hits = by_seed(rule, {1: 1.0, 2: -1.0, 3: 0.0})
    assert hits[1].terms == pytest.approx({"rerank": 0.6, "heat": 0.25, "vector": 0.0})
    assert hits[2].terms == pytest.approx({"rerank": 0.0, "heat": 0.125, "vector": 0.15})
    assert hits[3].terms == pytest.approx({"rerank": 0.3, "heat": 0.0, "vector": 0.075})
    lowest = min(hits[key].score for key in (1, 2, 3))
    assert hits[4].score <= lowest


def test_its_shortlist_is_by_heat_whatever_the_weights() -> None:
    rule = RerankRule(1.0, depth=2, formula="seed", beta_heat=0.0, gamma_vector=0.0)
    hits = by_seed(rule, {1: 0.0, 2: 1.0})
    assert {key for key, hit in hits.items() if "rerank_score" in hit.raw} == {1, 2}


# --- in the pipeline


class Library:
    """Small files, indexed with hashed words."""

    def __init__(self, root: Path, files: Mapping[str, str]) -> None:
        self.root = root
        for path, text in files.items():
            (root / path).write_text(text, encoding="utf-8")
        self.embedder = HashEmbedder()
        chunking = ChunkOptions(size_tokens=60)
        manifest = expected_manifest(
            fingerprint=self.embedder.fingerprint,
            provider="hash",
            model="",
            mode="",
            chunking=chunking,
            linking=LinkOptions(),
            part_tokens=256,
        )
        with closing(SqliteWriter(root)) as writer:
            build(root, writer, self.embedder, BuildOptions(ScanOptions(), chunking), manifest)
            writer.write_derived()

    def ask(
        self,
        text: str,
        *,
        models: SecondStage | None = None,
        options: QueryOptions | None = None,
        **request: object,
    ) -> Answer:
        with closing(SqliteReader(self.root)) as reader:
            return run_query(
                self.root,
                reader,
                QueryRequest(text, **request),  # type: ignore[arg-type]
                options or QueryOptions(),
                embed=self.embedder.embed_query,
                models=models,
            )


FILES = {
    "zebra.md": "# Zebra\n\nThe zebra grazes and the zebra sleeps.\n",
    "stripes.md": "# Stripes\n\nThe zebra has stripes against flies.\n",
    "horse.md": "# Horse\n\nA horse and a zebra meet at the river.\n",
    "boats.md": "# Boats\n\nBoats on the river carry grain, see [grain](grain.md).\n",
    "grain.md": "# Grain\n\nGrain is milled into flour.\n",
    "copy.md": "# Zebra\n\nThe zebra grazes and the zebra sleeps.\n",
}


@pytest.fixture
def library(tmp_path: Path) -> Library:
    return Library(tmp_path, FILES)


def reranked_by(score: Callable[[str], float]) -> SecondStage:
    return SecondStage(reranker=lambda: Scorer(score))


def files(answer: Answer) -> list[str]:
    return [entry.path for entry in answer.results]


def test_a_reranker_moves_what_it_likes_up(library: Library) -> None:
    plain = library.ask("zebra")
    assert files(plain)[0] != "horse.md"
    answer = library.ask(
        "zebra", rerank=True, models=reranked_by(lambda text: 5.0 * ("horse.md" in text))
    )
    assert files(answer)[0] == "horse.md"
    assert (answer.stages["rerank"], answer.warnings) == ("used", ())
    for entry in answer.results:
        for part in entry.chunks:
            assert math.fsum(part.hit.terms.values()) == pytest.approx(part.hit.score)


def test_copies_stay_folded_whatever_is_said_of_them(library: Library) -> None:
    for sign in (1.0, -1.0):
        answer = library.ask(
            "zebra",
            rerank=True,
            models=reranked_by(lambda text, sign=sign: sign * text.count("zebra")),
        )
        [entry] = [entry for entry in answer.results if entry.also_in]
        assert {entry.path, *entry.also_in} == {"zebra.md", "copy.md"}


def test_each_text_is_read_once_and_without_operators(library: Library) -> None:
    model = Scorer(lambda _: 1.0)
    library.ask('zebra "the river" -flies', rerank=True, models=SecondStage(reranker=lambda: model))
    assert model.questions == ["zebra the river"]
    assert len(model.read) == len(set(model.read))
    assert not [text for text in model.read if "flies" in text]
    assert sum("grazes" in text for text in model.read) == 1


def test_phrases_stay_first(library: Library) -> None:
    answer = library.ask(
        'zebra "carry grain"',
        rerank=True,
        models=reranked_by(lambda text: -9.0 if "carry grain" in text else text.count("zebra")),
    )
    assert files(answer)[0] == "boats.md"


def test_what_the_graph_brought_may_rise_above_its_seed_once_it_is_read(
    library: Library,
) -> None:
    options = QueryOptions(spread=SpreadOptions(query_floor=-1.0))
    plain = library.ask("boats", options=options, mode="lexical")
    assert files(plain)[:2] == ["boats.md", "grain.md"]
    answer = library.ask(
        "boats",
        options=options,
        mode="lexical",
        rerank=True,
        models=reranked_by(lambda text: float("milled" in text)),
    )
    assert files(answer)[:2] == ["grain.md", "boats.md"]
    [hit] = [part.hit for part in answer.results[0].chunks]
    assert hit.hops
    assert hit.terms["heat"] > 0
    assert hit.terms["rerank"] > hit.terms["heat"]


def test_it_runs_without_the_graph_and_on_every_side(library: Library) -> None:
    for request in ({"graph": False}, {"mode": "vector"}, {"mode": "lexical"}, {"rules": False}):
        answer = library.ask(
            "zebra",
            rerank=True,
            models=reranked_by(lambda text: 5.0 * ("horse.md" in text)),
            **request,
        )
        assert files(answer)[0] == "horse.md"


def test_the_first_files_do_not_depend_on_how_many_are_wanted(library: Library) -> None:
    models = reranked_by(lambda text: float(len(text)))
    many = library.ask("zebra river", top=5, rerank=True, models=models)
    few = library.ask("zebra river", top=2, rerank=True, models=models)
    assert few.results == many.results[:2]


def test_same_scores_same_answer(library: Library) -> None:
    models = reranked_by(lambda text: float(len(text) % 7))
    answers = [library.ask("zebra river", rerank=True, models=models) for _ in range(2)]
    assert answers[0] == answers[1]


def test_the_seed_formula_counts_the_reranker_too(library: Library) -> None:
    options = QueryOptions(
        spread=SpreadOptions(formula="seed"), rerank=RerankRule(0.9, formula="seed")
    )
    answer = library.ask(
        "zebra",
        options=options,
        rerank=True,
        models=reranked_by(lambda text: float("horse.md" in text)),
    )
    assert files(answer)[0] == "horse.md"
    [hit] = [part.hit for part in answer.results[0].chunks]
    assert set(hit.terms) == {"rerank", "heat", "vector"}
    assert hit.terms["rerank"] == pytest.approx(0.9 / (0.9 + 0.25 + 0.15))


def fails(error: Exception) -> Callable[[], Scorer]:
    def score(_text: str) -> float:
        raise error

    return lambda: Scorer(score)


def cannot_open(error: Exception) -> Callable[[], Scorer]:
    def opened() -> Scorer:
        raise error

    return opened


@pytest.mark.parametrize(
    "reranker",
    [
        fails(ProviderUnavailable("it is down", hint="start it")),
        fails(ConfigError("it is down", hint="start it")),
        cannot_open(MissingDependency("it is down", hint="start it")),
    ],
)
def test_a_reranker_that_fails_costs_a_warning_and_nothing_else(
    library: Library, reranker: Callable[[], Scorer]
) -> None:
    plain = library.ask("zebra")
    answer = library.ask("zebra", rerank=True, models=SecondStage(reranker=reranker))
    assert answer.results == plain.results
    assert answer.stages == {**plain.stages, "rerank": "failed"}
    assert answer.warnings == ("not reranked: it is down (start it)",)


@pytest.mark.parametrize("code", ["untrusted", "api_key_unset"])
def test_what_only_the_user_can_decide_is_no_failure_of_a_stage(
    library: Library, code: str
) -> None:
    models = SecondStage(reranker=cannot_open(ConfigError("trust first", code=code)))
    with pytest.raises(ConfigError, match="trust first"):
        library.ask("zebra", rerank=True, models=models)


# --- other wordings, in the pipeline


class Chat:
    """A chat model with one reply."""

    model = "chat"

    def __init__(self, queries: Sequence[str], passage: str = "") -> None:
        self._reply = json.dumps({"queries": list(queries), "passage": passage})

    def complete(
        self, system: str, prompt: str, *, max_tokens: int, temperature: float = 0.0
    ) -> str:
        return self._reply

    def models(self) -> tuple[str, ...]:
        return ()

    def close(self) -> None:
        """Nothing is open."""


def reworded(*queries: str, passage: str = "") -> SecondStage:
    return SecondStage(generator=lambda: Chat(queries, passage))


def test_another_wording_finds_what_the_question_does_not(library: Library) -> None:
    plain = library.ask("quadruped", mode="lexical")
    assert files(plain) == []
    answer = library.ask("quadruped", mode="lexical", expand=True, models=reworded("zebra"))
    assert answer.variants == ("zebra",)
    assert answer.stages["expansion"] == "used"
    assert "zebra.md" in {*files(answer), *answer.results[0].also_in}
    [hit] = [part.hit for part in answer.results[0].chunks]
    assert hit.terms["expansion"] > 0
    assert math.fsum(hit.terms.values()) == pytest.approx(hit.score)


def test_useless_wordings_leave_the_first_hit_alone(library: Library) -> None:
    for question in ("zebra stripes", "milled grain", "boats"):
        plain = library.ask(question)
        answer = library.ask(question, expand=True, models=reworded("flour", "river", "horse"))
        assert files(answer)[0] == files(plain)[0]


def test_a_passage_is_searched_by_vector_alone(library: Library) -> None:
    models = reworded("flour", passage="flies like stripes")
    both = library.ask("boats", expand=True, models=models)
    assert both.variants == ("flour", "flies like stripes")
    words = library.ask("boats", mode="lexical", expand=True, models=models)
    assert words.variants == ("flour",)
    assert "stripes.md" not in files(words)


def test_what_is_left_out_stays_out_of_other_wordings(library: Library) -> None:
    answer = library.ask(
        "boats -flies", expand=True, models=reworded("stripes against flies", "zebra")
    )
    assert "stripes.md" not in files(answer)


@pytest.mark.parametrize("method", ["weighted", "rrf"])
def test_both_ways_to_fuse_take_other_wordings(library: Library, method: str) -> None:
    options = QueryOptions(method=method, expand=ExpandRule(weight=0.5))  # type: ignore[arg-type]
    answer = library.ask("boats", options=options, expand=True, models=reworded("zebra"))
    assert files(answer)[0] == "boats.md"
    assert {"zebra.md", "copy.md"} & {*files(answer), *answer.results[1].also_in}


def test_a_chat_model_that_fails_costs_a_warning_and_nothing_else(library: Library) -> None:
    plain = library.ask("zebra")
    answer = library.ask("zebra", expand=True, models=reworded())
    assert answer.results == plain.results
    assert answer.stages == {**plain.stages, "expansion": "failed"}
    [line] = answer.warnings
    assert line.startswith("not expanded: model 'chat' gave no rewording")


def test_stages_are_off_unless_asked_for(library: Library) -> None:
    models = SecondStage(generator=lambda: Chat(["x"]), reranker=lambda: Scorer(lambda _: 1.0))
    stages = library.ask("zebra", models=models).stages
    assert (stages["expansion"], stages["rerank"]) == ("off", "off")
    empty = library.ask("...", models=models, expand=True, rerank=True).stages
    assert set(empty.values()) == {"off"}
    assert set(empty) == set(stages)

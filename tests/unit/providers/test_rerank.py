"""The reranking client against servers of every dialect, and against bad ones."""

from __future__ import annotations

import math
from typing import Any

import pytest

from ragx.errors import ConfigError, InputTooLong, ProviderRefused, ProviderUnavailable
from ragx.providers.base import RerankOptions
from ragx.providers.registry import open_reranker
from ragx.providers.rerank import ServerReranker

KEY = "sk-very-secret-0123456789"
SHORT = ["a cat", "tax law", "a kitten sleeps"]


def score_of(text: str) -> float:
    """Any number that depends on the whole text."""
    return 3.0 - 0.1 * (sum(map(ord, text)) % 97)


def results(body: dict[str, Any], *, n_read: int | None = None) -> list[dict[str, Any]]:
    texts = body.get("documents") or body["texts"]
    found = [
        {"index": at, "relevance_score": score_of(text[:n_read])} for at, text in enumerate(texts)
    ]
    return sorted(found, key=lambda item: -item["relevance_score"])


@pytest.fixture
def reranker(server, fake_time):
    made = []

    def make(**changes):
        options = RerankOptions(
            **{
                "provider": "openai",
                "base_url": server.url,
                "model": "ce",
                "timeout_s": 5,
                "autostart": False,
                **changes,
            }
        )
        made.append(ServerReranker(options, clock=fake_time.clock))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def reply(reply_type):
    return reply_type


def test_scores_come_in_the_order_of_the_passages(server, reranker, reply) -> None:
    server.behaviour = lambda body: reply(body={"results": results(body)})
    assert reranker().scores("cats", SHORT) == [score_of(text) for text in SHORT]
    assert server.requests == [{"query": "cats", "documents": SHORT, "model": "ce"}]
    assert server.paths == ["/v1/rerank"]


def test_no_passage_asks_nothing(server, reranker) -> None:
    assert reranker().scores("cats", []) == []
    assert not server.requests


def test_other_names_for_the_list_and_the_score(server, reranker, reply) -> None:
    server.behaviour = lambda body: reply(
        body=[{"index": item["index"], "score": item["relevance_score"]} for item in results(body)]
    )
    assert reranker().scores("cats", SHORT) == [score_of(text) for text in SHORT]
    server.behaviour = lambda body: reply(body={"data": results(body)})
    assert reranker().scores("cats", SHORT) == [score_of(text) for text in SHORT]


def test_a_server_that_wants_texts_gets_texts(server, reranker, reply) -> None:
    def behave(body):
        if "texts" not in body:
            return reply(422, "Failed to deserialize the JSON body: missing field `texts`")
        return reply(body=results(body))

    server.behaviour = behave
    model = reranker()
    assert model.scores("cats", SHORT) == [score_of(text) for text in SHORT]
    assert model.scores("cats", SHORT[:1]) == [score_of(SHORT[0])]
    assert [sorted(body) for body in server.requests] == [
        ["documents", "model", "query"],
        ["query", "texts"],
        ["query", "texts"],
    ]


@pytest.mark.parametrize("suffix", ["", "/v1"])
def test_rerank_is_found_beside_the_address(server, reranker, reply, suffix) -> None:
    wanted = "/rerank" if suffix else "/v1/rerank"

    def behave(body):
        if server.paths[-1] == wanted:
            return reply(body={"results": results(body)})
        return reply(404, {"detail": "Not Found"})

    server.behaviour = behave
    model = reranker(base_url=server.url.removesuffix("/v1") + suffix)
    assert model.scores("cats", SHORT) == [score_of(text) for text in SHORT]
    model.scores("cats", SHORT)
    assert server.paths == ["/rerank" if wanted != "/rerank" else "/v1/rerank", wanted, wanted]


def test_a_server_without_rerank_is_told_from_a_missing_model(server, reranker, reply) -> None:
    server.behaviour = lambda _: reply(404, {"detail": "Not Found"})
    with pytest.raises(ProviderRefused, match="no /rerank") as caught:
        reranker().scores("cats", SHORT)
    assert caught.value.hint.endswith("ragx config set rerank.provider llama-server")
    for status, words in ((404, "model 'ce' not found"), (400, "Invalid model: no engine for ce")):
        server.behaviour = lambda _, status=status, words=words: reply(
            status, {"error": {"message": words}}
        )
        with pytest.raises(ProviderRefused, match="no such model") as caught:
            reranker().scores("cats", SHORT)
        assert caught.value.hint == "ragx config set rerank.model NAME"


def test_a_server_of_another_kind_says_so(server, reranker, reply) -> None:
    words = "This server does not support reranking. Start it with `--reranking`"
    server.behaviour = lambda _: reply(
        501, {"error": {"code": 501, "message": words, "type": "not_supported_error"}}
    )
    with pytest.raises(ProviderRefused, match="does not rerank") as caught:
        reranker().scores("cats", SHORT)
    assert "--reranking" in caught.value.hint
    assert len(server.requests) == 1


def test_many_passages_go_in_several_requests(server, reranker, reply) -> None:
    server.behaviour = lambda body: reply(body={"results": results(body)})
    texts = [f"passage {n}" for n in range(100)]
    assert reranker().scores("cats", texts) == [score_of(text) for text in texts]
    assert [len(body["documents"]) for body in server.requests] == [32, 32, 32, 4]


def test_what_is_too_long_counts_as_the_best_of_its_windows(server, reranker, reply) -> None:
    def behave(body):
        if any(len(text) > 600 for text in body["documents"]):
            return reply(500, {"error": {"message": "input (700 tokens) is too large to process"}})
        return reply(body={"results": results(body)})

    server.behaviour = behave
    long = " ".join(f"word{n}" for n in range(200))
    found = reranker().scores("cats", [SHORT[0], long, SHORT[1]])
    read = [text for body in server.requests for text in body["documents"] if len(text) <= 600]
    parts = [text for text in dict.fromkeys(read) if text not in SHORT]
    assert "".join(parts) == long
    assert found == [score_of(SHORT[0]), max(map(score_of, parts)), score_of(SHORT[1])]


def test_a_question_that_leaves_no_room_is_an_error(server, reranker, reply) -> None:
    server.behaviour = lambda _: reply(413, {"error": "input is too long"})
    with pytest.raises(InputTooLong, match="question is too long") as caught:
        reranker().scores("cats " * 500, ["passage " * 40])
    assert "shorter question" in caught.value.hint


def test_a_beginning_that_is_read_alone_is_noticed(server, reranker, reply) -> None:
    server.behaviour = lambda body: reply(body={"results": results(body, n_read=1000)})
    long = " ".join(f"word{n}" for n in range(800))
    model = reranker()
    found = model.scores("cats", [*SHORT, long])
    assert found[:3] == [score_of(text) for text in SHORT]
    read = server.requests[-1]["documents"][3:]
    assert "".join(read) == long
    assert max(map(len, read)) <= 1000
    assert found[3] == max(map(score_of, read))
    asked = len(server.requests)
    model.scores("cats", [long])  # known by now
    assert len(server.requests) == asked + 1


@pytest.mark.parametrize("noise", [2e-6, 1e-3])
@pytest.mark.parametrize("n_read", [1000, None])
def test_scores_that_depend_on_the_place_a_little_hide_nothing(
    server, reranker, reply, noise, n_read
) -> None:
    def behave(body):
        found = results(body, n_read=n_read)
        for item in found:
            item["relevance_score"] *= 1 + noise * item["index"]
        return reply(body={"results": found})

    server.behaviour = behave
    long = " ".join(f"word{n}" for n in range(800))
    reranker().scores("cats", [long])
    assert (server.requests[-1]["documents"] == [long]) == (n_read is None)


def test_a_passage_that_is_read_to_its_end_stays_whole(server, reranker, reply) -> None:
    server.behaviour = lambda body: reply(body={"results": results(body)})
    long = " ".join(f"word{n}" for n in range(800))
    model = reranker()
    assert model.scores("cats", [long, SHORT[0]]) == [score_of(long), score_of(SHORT[0])]
    assert len(server.requests) == 2  # one to see
    model.scores("cats", [long])
    assert len(server.requests) == 3


def test_a_model_that_says_the_same_of_everything_is_left_alone(server, reranker, reply) -> None:
    server.behaviour = lambda body: reply(
        body=[{"index": at, "score": 0.5} for at in range(len(body["documents"]))]
    )
    long = " ".join(f"word{n}" for n in range(800))
    assert reranker().scores("cats", [long, *SHORT]) == [0.5] * 4
    assert server.requests[-1]["documents"] == [long, *SHORT]


def test_one_passage_that_makes_the_server_fail_is_not_guessed(server, reranker, reply) -> None:
    def behave(body):
        if "bad" in body["documents"]:
            return reply(500, {"error": "out of luck"})
        return reply(body={"results": results(body)})

    server.behaviour = behave
    with pytest.raises(ProviderUnavailable, match="out of luck"):
        reranker().scores("cats", [*SHORT, "bad"])
    assert server.requests[-1]["documents"] == ["bad"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "no list"),
        ({"results": [1, 2, 3]}, "no list"),
        ({"results": []}, "0 rerank scores for 3"),
        ({"results": [{"index": 0, "score": 1.0}]}, "1 rerank scores for 3"),
        ([{"index": 0, "score": 1}, {"index": 0, "score": 1}], "numbers"),
        ([{"index": 3, "score": 1}], "numbers"),
        ([{"index": -1, "score": 1}], "numbers"),
        ([{"index": True, "score": 1}], "numbers"),
        ([{"index": 0, "score": None}], "not a number"),
        ([{"index": 0, "score": "high"}], "not a number"),
        ([{"index": 0, "score": True}], "not a number"),
        ([{"index": 0, "score": math.nan}], "not finite"),
        ([{"index": 0, "score": math.inf}], "not finite"),
        ([{"index": 0, "score": 10**400}], "not finite"),
    ],
)
def test_replies_that_cannot_be_used_are_refused(
    server, reranker, reply, body: object, message: str
) -> None:
    server.behaviour = lambda _: reply(body=body)
    with pytest.raises(ProviderRefused, match=message):
        reranker().scores("cats", SHORT)


def test_a_server_that_loads_is_waited_for(server, reranker, reply) -> None:
    loading = reply(503, {"error": {"message": "Loading model", "code": 503}})
    server.script = [loading, loading, lambda body: reply(body={"results": results(body)})]
    assert reranker().scores("cats", SHORT) == [score_of(text) for text in SHORT]


def test_a_server_that_is_not_there_is_named(reranker) -> None:
    with pytest.raises(ProviderUnavailable, match="cannot be reached"):
        reranker(base_url="http://127.0.0.1:9").scores("cats", SHORT)


def test_the_key_is_sent_and_never_shown(server, reranker, reply) -> None:
    server.behaviour = lambda _: reply(401, {"error": f"bad key {KEY}"})
    model = reranker(api_key=KEY)
    with pytest.raises(ProviderRefused) as caught:
        model.scores("cats", SHORT)
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"
    assert KEY not in f"{caught.value} {caught.value.hint} {caught.value.details} {model!r}"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": ""}, "rerank.model is not set"),
        ({"base_url": ""}, "rerank.base_url is not set"),
        ({"base_url": "ftp://x"}, "rerank.base_url"),
        ({"api_key": "a b"}, "key for rerank"),
    ],
)
def test_settings_that_cannot_serve_are_refused_at_once(reranker, changes, message) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        reranker(**changes)
    # LM Studio's address, which others are told, would not do.
    assert "1234" not in caught.value.hint


def test_an_own_server_is_named_after_its_file() -> None:
    model = open_reranker(RerankOptions(provider="llama-server", gguf="/models/bge-m3.gguf"))
    assert isinstance(model, ServerReranker)
    assert (model.model, model.endpoint_notes) == ("bge-m3", ())
    model.close()


def test_nothing_is_asked_of_what_was_closed(server, reranker) -> None:
    model = reranker()
    model.close()
    with pytest.raises(ProviderUnavailable, match="closed"):
        model.scores("cats", SHORT)
    assert not server.requests

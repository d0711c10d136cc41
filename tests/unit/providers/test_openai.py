from __future__ import annotations

import base64
import itertools
import json
import math
import socket
import struct
import threading
import time
import zlib
from email.utils import formatdate

import numpy as np
import pytest

from ragx.errors import (
    BadEmbedding,
    ConfigError,
    InputTooLong,
    ProviderError,
    ProviderRefused,
    ProviderUnavailable,
)
from ragx.providers.base import EmbeddingOptions, may_concern_one_text
from ragx.providers.endpoint import Endpoint
from ragx.providers.limits import Learned, TextLimit, over_long
from ragx.providers.openai import OpenAIEmbedder, fingerprint
from ragx.providers.pool import EmbedPool, embed_each
from ragx.providers.retry import Clock, RetryPolicy
from ragx.providers.tokens import estimate_tokens

KEY = "sk-very-secret-0123456789"


@pytest.fixture
def embedder(server, fake_time):
    made = []

    def make(**changes):
        options = EmbeddingOptions(
            **{
                "provider": "openai",
                "base_url": server.url,
                "model": "m",
                "timeout_s": 5,
                "batch_size": 32,
                **changes,
            }
        )
        made.append(OpenAIEmbedder(options, clock=fake_time.clock))
        return made[-1]

    yield make
    for each in made:
        each.close()


def unit(vector):
    return np.asarray(vector, np.float64) / math.sqrt(sum(x * x for x in vector))


def embed_all(embedder, texts):
    """Embed as a run does, a text that fails raising its error."""
    for result in embed_each(embedder, texts):
        if isinstance(result, ProviderError):
            raise result


def expected(text):
    return unit([len(text), ord(text[0]), 1.0, 2.0])


# --- what is sent, and how the reply is read


def test_body_is_minimal_and_prefixed(embedder, server):
    e = embedder(doc_prefix="doc: ", query_prefix="query: ", api_key=KEY)
    e.embed_documents(["a", "b"])
    e.embed_query("c")
    assert server.requests == [
        {"model": "m", "input": ["doc: a", "doc: b"], "encoding_format": "float"},
        {"model": "m", "input": ["query: c"], "encoding_format": "float"},
    ]
    assert server.paths == ["/v1/embeddings"] * 2
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"


def test_no_key_no_header(embedder, server):
    embedder().embed_documents(["a"])
    assert "Authorization" not in server.headers[0]


def test_rows_are_unit_float32_and_in_order(embedder):
    rows = embedder().embed_documents(["a", "bb", "ccc"])
    assert rows.dtype == np.float32
    np.testing.assert_allclose(rows, [expected("a"), expected("bb"), expected("ccc")], rtol=1e-6)


def test_dimension_is_learned(embedder):
    e = embedder()
    assert e.dimension is None
    assert e.embed_documents([]).shape == (0, 0)
    e.embed_documents(["a"])
    assert e.dimension == 4


def test_shuffled_index_is_restored(embedder, server, reply_type, good):
    def shuffled(body):
        reply = good(body)
        reply["data"].reverse()
        return reply_type(body=reply)

    server.behaviour = shuffled
    rows = embedder().embed_documents(["a", "bb", "ccc"])
    np.testing.assert_allclose(rows[2], expected("ccc"), rtol=1e-6)


def test_missing_index_means_given_order(embedder, server, reply_type, good):
    def bare(body):
        data = [{"embedding": item["embedding"]} for item in good(body)["data"]]
        return reply_type(body={"data": data})

    server.behaviour = bare
    np.testing.assert_allclose(
        embedder().embed_documents(["a", "bb"])[1], expected("bb"), rtol=1e-6
    )


def test_base64_is_read_by_its_type(embedder, server, reply_type):
    packed = base64.b64encode(struct.pack("<4f", 3.0, 4.0, 0.0, 0.0)).decode()
    server.behaviour = lambda body: reply_type(body={"data": [{"index": 0, "embedding": packed}]})
    np.testing.assert_allclose(embedder().embed_query("a"), [3 / 5, 4 / 5, 0, 0], rtol=1e-6)


def test_many_texts_go_in_batches(embedder, server):
    rows = embedder(batch_size=2).embed_documents(["a", "bb", "ccc", "dddd", "eeeee"])
    assert [len(body["input"]) for body in server.requests] == [2, 2, 1]
    np.testing.assert_allclose(rows[4], expected("eeeee"), rtol=1e-6)


def test_lone_surrogates_are_sent_as_question_marks(embedder, server):
    embedder().embed_documents(["a\ud800b"])
    assert server.requests[0]["input"] == ["a?b"]


# --- replies that are not what was asked for


def bodies_that_are_wrong():
    ok = [1.0, 2.0, 3.0, 4.0]
    return {
        "empty data": {"data": []},
        "no data": {"embeddings": [ok, ok]},
        "data not a list": {"data": {"0": ok}},
        "items not objects": {"data": [ok, ok]},
        "a list": [ok, ok],
        "more": {"data": [{"index": i, "embedding": ok} for i in range(3)]},
        "index twice": {"data": [{"index": 0, "embedding": ok}] * 2},
        "index too high": {"data": [{"index": i + 1, "embedding": ok} for i in range(2)]},
        "index partly": {"data": [{"index": 0, "embedding": ok}, {"embedding": ok}]},
        "index boolean": {"data": [{"index": i, "embedding": ok} for i in (False, True)]},
        "nan": {"data": [{"index": i, "embedding": [math.nan, 1, 1, 1]} for i in range(2)]},
        "null": {"data": [{"index": i, "embedding": [None, 1, 1, 1]} for i in range(2)]},
        "infinite": {"data": [{"index": i, "embedding": [math.inf, 1, 1, 1]} for i in range(2)]},
        "too big for float32": {
            "data": [{"index": i, "embedding": [1e300, 1, 1, 1]} for i in range(2)]
        },
        "too big for float64": {
            "data": [{"index": i, "embedding": [10**400, 1, 1, 1]} for i in range(2)]
        },
        "zero": {"data": [{"index": i, "embedding": [0, 0, 0, 0]} for i in range(2)]},
        "no numbers": {"data": [{"index": i, "embedding": []} for i in range(2)]},
        "missing": {"data": [{"index": i} for i in range(2)]},
        "words": {"data": [{"index": i, "embedding": ["x", "y"]} for i in range(2)]},
        "nested": {"data": [{"index": i, "embedding": [[1.0], [2.0]]} for i in range(2)]},
        "ragged": {"data": [{"index": i, "embedding": [1.0] * (i + 1)} for i in range(2)]},
        "not base64": {"data": [{"index": i, "embedding": "§§§"} for i in range(2)]},
        "base64 of 3 bytes": {"data": [{"index": i, "embedding": "AAAA"} for i in range(2)]},
    }


@pytest.mark.parametrize("name", bodies_that_are_wrong())
def test_wrong_reply_is_a_bad_embedding(embedder, server, reply_type, name):
    server.behaviour = lambda body: reply_type(body=bodies_that_are_wrong()[name])
    with pytest.raises(BadEmbedding):
        embedder().embed_documents(["a", "b"])
    # Both together, then each, three times: such a reply is mostly right the next time.
    assert len(server.requests) == 3 * (1 + 2)


def test_dimension_may_not_change(embedder, server, reply_type):
    e = embedder()
    e.embed_documents(["a"])
    server.behaviour = lambda body: reply_type(
        body={"data": [{"index": 0, "embedding": [1.0, 2.0]}]}
    )
    with pytest.raises(BadEmbedding, match="2 numbers, earlier with 4") as caught:
        e.embed_documents(["b"])
    assert caught.value.code == "dimension_changed"
    assert caught.value.hint.endswith("ragx index --no-cache")
    assert not may_concern_one_text(caught.value)


def test_one_text_with_another_dimension_fails_alone(embedder, server, reply_type, good):
    def longer(body):
        reply = good(body)
        for item, text in zip(reply["data"], body["input"], strict=True):
            item["embedding"] += [1.0] * (text == "bad")
        return reply_type(body=reply)

    server.behaviour = longer
    results = embed_each(embedder(), ["a", "b", "c", "bad"])
    assert [isinstance(result, BadEmbedding) for result in results] == [False] * 3 + [True]
    assert may_concern_one_text(results[3])


def test_nan_for_one_text_fails_that_one_only(embedder, server, reply_type, good):
    def poisoned(body):
        reply = good(body)
        for item, text in zip(reply["data"], body["input"], strict=True):
            if text == "t13":
                item["embedding"] = [math.nan] * 4
        return reply_type(body=reply)

    server.behaviour = poisoned
    texts = [f"t{i}" for i in range(32)]
    results = embed_each(embedder(), texts)
    assert [i for i, r in enumerate(results) if isinstance(r, BadEmbedding)] == [13]
    np.testing.assert_allclose(results[31], expected("t31"), rtol=1e-6)
    # All of it three times, the good ones together, the bad one three times.
    assert [len(body["input"]) for body in server.requests] == [32] * 3 + [31] + [1] * 3


def test_nan_that_goes_away_costs_one_request(embedder, server, reply_type, good):
    def once(body):
        reply = good(body)
        reply["data"][2]["embedding"] = [math.nan] * 4
        return reply_type(body=reply)

    server.script = [once]
    rows = embedder().embed_documents(["a", "bb", "ccc"])
    np.testing.assert_allclose(rows[2], expected("ccc"), rtol=1e-6)
    assert len(server.requests) == 2


@pytest.mark.parametrize("keep", [0, 1, 3])
def test_too_few_vectors_once_are_asked_for_again(embedder, server, reply_type, good, keep):
    server.script = [lambda body: reply_type(body={"data": good(body)["data"][:keep]})]
    assert embedder().embed_documents(["a", "bb", "ccc", "d"]).shape == (4, 4)
    assert len(server.requests) == 2


def test_a_server_that_leaves_out_what_is_too_much_for_it(embedder, server, reply_type, good):
    server.behaviour = lambda body: reply_type(body={"data": good(body)["data"][:10]})
    e = embedder()
    rows = e.embed_documents([f"t{i}" for i in range(32)])
    np.testing.assert_allclose(rows[31], expected("t31"), rtol=1e-6)
    assert e.batch_size <= 10


def test_500_for_one_text_fails_that_one_only(embedder, server, reply_type, good):
    server.behaviour = lambda body: (
        reply_type(status=500, body={"error": {"message": "NaN in output"}})
        if "bad" in body["input"]
        else reply_type(body=good(body))
    )
    results = embed_each(embedder(), ["a", "bad", "b", "c"])
    assert [isinstance(r, ProviderUnavailable) for r in results] == [False, True, False, False]


# What servers say about too many texts, and how many they then take.
TOO_MANY = [
    (400, "batch size 32 > maximum allowed batch size 10"),
    (413, "batch size 32 > maximum allowed batch size 10"),
    (422, "List should have at most 10 items after validation, not 32"),
    (400, "array too long. Expected an array with maximum length 10, but got an array of 32"),
    (400, "The batch size is invalid, it should not be larger than 10."),
    (400, "at most 10 requests can be in one batch"),
    (400, "total number of texts must be at most 10 items - received 32"),
]


@pytest.mark.parametrize(("status", "words"), TOO_MANY)
def test_limit_of_items_that_is_named_costs_one_refusal(
    embedder, server, reply_type, good, status, words
):
    server.behaviour = lambda body: (
        reply_type(status=status, body={"error": {"message": words}})
        if len(body["input"]) > 10
        else reply_type(body=good(body))
    )
    e = embedder()
    for start in (0, 100):
        rows = e.embed_documents([f"t{i}" for i in range(start, start + 32)])
        np.testing.assert_allclose(rows[31], expected(f"t{start + 31}"), rtol=1e-6)
    assert [len(body["input"]) for body in server.requests] == [32] + 2 * [10, 10, 10, 2]
    assert e.batch_size == e.learned.max_items == 10


@pytest.mark.parametrize("status", [400, 413, 422, 500])
def test_limit_of_items_that_is_not_named_is_found(embedder, server, reply_type, good, status):
    server.behaviour = lambda body: (
        reply_type(status=status, body={"error": "no"})
        if len(body["input"]) > 10
        else reply_type(body=good(body))
    )
    e = embedder()
    texts = [f"t{i}" for i in range(32)]
    np.testing.assert_allclose(e.embed_documents(texts)[31], expected("t31"), rtol=1e-6)
    server.requests.clear()
    e.embed_documents(texts)
    sizes = [len(body["input"]) for body in server.requests]
    assert sum(sizes) == 32
    assert max(sizes) <= 10


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (400, "Too many tokens in batch: 9000 tokens, max 2048"),
        (413, ""),
        (422, "the total length of the input exceeds 6000 tokens"),
    ],
)
def test_limit_of_a_whole_request_is_learned(embedder, server, reply_type, good, status, words):
    most_chars = 6000
    server.behaviour = lambda body: (
        reply_type(status=status, body={"error": words})
        if sum(map(len, body["input"])) > most_chars
        else reply_type(body=good(body))
    )
    e = embedder()
    texts = [f"{i:03}" + "x" * 997 for i in range(32)]
    np.testing.assert_allclose(e.embed_documents(texts)[31], expected(texts[31]), rtol=1e-6)
    refused = sum(sum(map(len, body["input"])) > most_chars for body in server.requests)
    assert refused <= math.log2(32)
    # A later run begins with what the server has said, not with what was guessed.
    assert bool(e.learned.max_request_tokens) == bool(words)
    server.requests.clear()
    e.embed_documents(texts)
    assert all(sum(map(len, body["input"])) <= most_chars for body in server.requests)
    assert e.batch_size == 32


@pytest.mark.parametrize(
    "words", ["array element 3 must not be empty", "oops", "item 2 of the batch is null"]
)
def test_number_that_is_no_limit_teaches_nothing(embedder, server, reply_type, words):
    server.script = [reply_type(status=400, body={"error": words})]
    e = embedder()
    e.embed_documents([f"t{i}" for i in range(32)])
    assert [len(body["input"]) for body in server.requests] == [32, 16, 16]
    assert e.learned.max_items == 0


def test_server_that_names_one_less_each_time_is_soon_not_believed(
    embedder, server, reply_type, good
):
    server.behaviour = lambda body: (
        reply_type(
            status=400,
            body={"error": f"batch size must be at most {len(body['input']) - 1}"},
        )
        if len(body["input"]) > 1
        else reply_type(body=good(body))
    )
    e = embedder(batch_size=400)
    results = embed_each(e, [f"t{i}" for i in range(400)])
    assert all(isinstance(result, np.ndarray) for result in results)
    assert sum(len(body["input"]) > 1 for body in server.requests) <= 2 * math.log2(400)


def test_learned_limits_are_kept_from_the_start(embedder, server):
    e = embedder()
    e.start_from(Learned(max_items=3, max_request_tokens=10_000))
    e.embed_documents(["a"] * 7)
    assert [len(body["input"]) for body in server.requests] == [3, 3, 1]


def pooled(embedder, texts):
    with EmbedPool(embedder) as pool:
        return dict(pool.run(enumerate(texts)))


def test_requests_grow_while_that_pays_and_the_next_run_knows(
    embedder, server, reply_type, good, fake_time
):
    def answer(body):
        fake_time.now += 0.05  # whatever is asked
        return reply_type(body=good(body))

    server.behaviour = answer
    e = embedder(batch_size=None, max_in_flight=1)
    texts = [f"t{i}" for i in range(2000)]
    results = pooled(e, texts)
    np.testing.assert_allclose(results[1999], expected("t1999"), rtol=1e-6)
    sizes = [len(body["input"]) for body in server.requests]
    # A worker may have cut its batch before the first answer was there.
    assert sizes[0] == 8
    assert 32 in sizes[:5]
    assert max(sizes) == 256
    assert (e.learned.in_flight, e.learned.batch_size) == (1, 256)
    server.requests.clear()
    other = embedder(batch_size=None, max_in_flight=1)
    other.start_from(e.learned)
    pooled(other, texts)
    assert max(len(body["input"]) for body in server.requests[:5]) == 256


def test_requests_do_not_grow_where_time_is_proportional_to_texts(
    embedder, server, reply_type, good, fake_time
):
    def answer(body):
        fake_time.now += 0.1 * len(body["input"])
        return reply_type(body=good(body))

    server.behaviour = answer
    e = embedder(batch_size=None, max_in_flight=1, timeout_s=1000)
    pooled(e, [f"t{i:04}" for i in range(3000)])
    assert e.learned.batch_size == 32
    sizes = [len(body["input"]) for body in server.requests]
    # A larger size is tried now and then, one round long.
    assert sum(size > 32 for size in sizes) < len(sizes) / 4


def test_a_slow_server_gets_few_texts_from_the_start(embedder, server, reply_type, good, fake_time):
    def answer(body):
        fake_time.now += 0.1 * len(body["input"])
        return reply_type(body=good(body))

    server.behaviour = answer
    e = embedder(batch_size=None, max_in_flight=1, timeout_s=8 * 0.1 * 31)
    pooled(e, [f"t{i:04}" for i in range(500)])
    assert max(len(body["input"]) for body in server.requests) == 8
    assert e.learned.batch_size == 8


def test_growth_ends_where_the_server_refuses(embedder, server, reply_type, good):
    server.behaviour = lambda body: (
        reply_type(status=400, body={"error": {"message": "at most 100 inputs in one batch"}})
        if len(body["input"]) > 100
        else reply_type(body=good(body))
    )
    e = embedder(batch_size=None, max_in_flight=1)
    results = pooled(e, [f"t{i}" for i in range(3000)])
    np.testing.assert_allclose(results[2999], expected("t2999"), rtol=1e-6)
    refused = sum(len(body["input"]) > 100 for body in server.requests)
    assert refused <= 3
    assert e.batch_size <= 100


def test_requests_grow_within_the_budget_of_tokens(embedder, server, reply_type, good, fake_time):
    def answer(body):
        fake_time.now += 0.05
        return reply_type(body=good(body))

    server.behaviour = answer
    e = embedder(batch_size=None, max_in_flight=1)
    e.start_from(Learned(max_request_tokens=40_000))
    pooled(e, ["word " * 600 for _ in range(400)])
    assert max(len(body["input"]) for body in server.requests) == 32
    assert e.learned.batch_size == 32


def test_one_text_that_is_too_long_teaches_nothing_about_batches(
    embedder, server, reply_type, good
):
    server.behaviour = lambda body: (
        reply_type(status=400, body={"error": "too many tokens"})
        if any(len(text) > 200 for text in body["input"])
        else reply_type(body=good(body))
    )
    e = embedder()
    results = embed_each(e, ["a", "b " * 200, "c", "d"])
    assert all(isinstance(result, np.ndarray) for result in results)
    assert e.learned.max_items == e.learned.max_request_tokens == 0


# --- over-long input


OVER_LONG = [
    (500, "input (2002 tokens) is too large to process. increase the physical batch size"),
    (400, "This model's maximum context length is 8192 tokens, however you requested 9000"),
    (400, "the request exceeds the available context size (512 tokens)"),
    (400, "the input length exceeds the context length"),
    (500, "input exceeds maximum context length"),
    (413, "`inputs` must have less than 512 tokens. Given: 600"),
    (413, ""),
    (422, "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 2048; too long"),
    (400, "Input id 0 has 9000 tokens, exceeding max 8192 tokens."),
    (400, "The input token count (3000) exceeds the maximum number of tokens allowed (2048)."),
    (400, "Token indices sequence length is longer than the specified maximum"),
    (400, "Too many tokens in batch: reduce the length of the input"),
    (400, "context_length_exceeded"),
]


@pytest.mark.parametrize(("status", "words"), OVER_LONG)
def test_over_long_wordings(embedder, server, reply_type, status, words):
    server.behaviour = lambda body: reply_type(status=status, body={"error": {"message": words}})
    with pytest.raises(InputTooLong):
        embedder().embed_documents(["a"])
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (429, "Rate limit reached: Limit 40000 tokens per min exceeded"),
        (401, "Invalid token: too long"),
        (400, "unknown field 'encoding_format'"),
        (500, "internal error"),
        (422, "dimensions is not supported"),
        (404, "The model `x` does not exist"),
    ],
)
def test_other_refusals_are_not_over_long(status, words):
    assert over_long(status, words) is None


def parts_of(server, longest):
    """The distinct inputs that a server with a limit of characters has taken, in order."""
    taken = (text for body in server.requests for text in body["input"] if len(text) <= longest)
    return list(dict.fromkeys(taken))


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (400, "maximum context length is 75 tokens"),
        (500, "input is too large to process"),
        (422, "no"),
    ],
)
def test_over_long_text_is_the_mean_of_its_parts(embedder, server, reply_type, good, status, words):
    server.behaviour = lambda body: (
        reply_type(status=status, body={"error": words})
        if any(len(text) > 300 for text in body["input"])
        else reply_type(body=good(body))
    )
    text = " ".join(f"word{i}" for i in range(150))
    alone = embedder().embed_documents([text])[0]
    parts = parts_of(server, 300)
    assert "".join(parts) == text
    np.testing.assert_allclose(
        alone, unit(sum(len(part) * expected(part) for part in parts)), rtol=1e-5
    )
    # The same whatever stands beside it.
    beside = embedder().embed_documents(["a", text, "b"])[1]
    np.testing.assert_array_equal(alone, beside)


def test_text_over_a_known_limit_is_never_sent_whole(embedder, server):
    e = embedder(max_tokens=100)
    text = " ".join(f"word{i}" for i in range(300))
    rows = e.embed_documents(["a", text])
    sent = [text for body in server.requests for text in body["input"]]
    assert all(estimate_tokens(part) <= 100 for part in sent)
    parts = sent[1:]
    assert "".join(parts) == text
    np.testing.assert_allclose(
        rows[1], unit(sum(len(part) * expected(part) for part in parts)), rtol=1e-5
    )


def test_query_over_a_known_limit_is_cut(embedder, server):
    text = " ".join(f"word{i}" for i in range(300))
    embedder(max_tokens=100).embed_query(text)
    sent = [text for body in server.requests for text in body["input"]]
    assert "".join(sent) == text
    assert all(estimate_tokens(part) <= 100 for part in sent)


def test_text_refused_to_the_last_part_fails_alone(embedder, server, reply_type, good):
    server.behaviour = lambda body: (
        reply_type(status=413, body={"error": "input is too large"})
        if any("b" in text for text in body["input"])
        else reply_type(body=good(body))
    )
    e = embedder()
    results = embed_each(e, ["a", "b" * 2000, "c"])
    assert [type(r).__name__ for r in results] == ["ndarray", "InputTooLong", "ndarray"]
    assert "index --full" in results[1].hint


def test_parts_are_not_made_because_a_server_fails(embedder, server, reply_type, good):
    server.behaviour = lambda body: (
        reply_type(status=500, body={"error": "oops"})
        if any("bad" in text for text in body["input"])
        else reply_type(body=good(body))
    )
    results = embed_each(embedder(), ["bad " * 200])
    assert isinstance(results[0], ProviderUnavailable)
    assert {len(text) for body in server.requests for text in body["input"]} == {800}


# --- the limit of one text


def model_that_reads(n_words, good, reply_type):
    """A server that drops all but the first words of a text without a word about it."""

    def answer(body):
        data = []
        for i, text in enumerate(body["input"]):
            counts = [0.1] * 32
            for at, word in enumerate(text.split()[:n_words]):
                counts[zlib.crc32(f"{at % 7}{word}".encode()) % 32] += 1.0
            data.append({"index": i, "embedding": counts})
        return reply_type(body={"data": data})

    return answer


def refuse_over(n_words, status, words, reads, reply_type):
    def answer(body):
        asked = max(len(text.split()) for text in body["input"])
        if asked + 2 > n_words:
            said = words.format(sent=asked + 2, limit=n_words)
            return reply_type(status=status, body={"error": {"message": said}})
        return reads(body)

    return answer


def test_no_limit_takes_three_requests(embedder, server, reply_type, good):
    server.behaviour = model_that_reads(10**6, good, reply_type)
    e = embedder()
    assert e.probe_limit() == TextLimit(None, False, 32)
    assert e.max_tokens is None
    assert len(server.requests) == 3


@pytest.mark.parametrize("limit", [64, 256, 510, 2048])
def test_silent_cut_is_found_from_below(embedder, server, reply_type, good, limit):
    server.behaviour = model_that_reads(limit, good, reply_type)
    e = embedder()
    found = e.probe_limit()
    assert found.truncates
    assert limit - 16 <= found.max_tokens - 2 <= limit
    assert e.max_tokens == found.max_tokens
    assert len(server.requests) <= 12


@pytest.mark.parametrize("limit", [256, 512, 2048])
@pytest.mark.parametrize(
    ("status", "words"),
    [
        (500, "input ({sent} tokens) is too large to process. (current batch size: {limit})"),
        (400, "This model's maximum context length is {limit} tokens, you requested {sent}"),
        (413, "`inputs` must have less than {limit} tokens. Given: {sent}"),
    ],
)
def test_limit_that_a_refusal_names_is_found_at_once(
    embedder, server, reply_type, good, status, words, limit
):
    reads = model_that_reads(10**6, good, reply_type)
    server.behaviour = refuse_over(limit, status, words, reads, reply_type)
    assert embedder().probe_limit() == TextLimit(limit, False, 32)
    assert len(server.requests) <= 5


@pytest.mark.parametrize(
    ("status", "words"),
    [(400, "the input exceeds the context length"), (413, ""), (400, "no"), (500, "oops")],
)
def test_limit_that_is_not_named_is_narrowed_down(
    embedder, server, reply_type, good, status, words
):
    reads = model_that_reads(10**6, good, reply_type)
    server.behaviour = refuse_over(512, status, words, reads, reply_type)
    found = embedder().probe_limit()
    assert not found.truncates
    assert 512 - 16 <= found.max_tokens <= 512
    questions = {len(body["input"][0].split()) for body in server.requests}
    assert len(questions) <= 10


def test_refusing_long_and_cutting_shorter_texts(embedder, server, reply_type, good):
    reads = model_that_reads(300, good, reply_type)
    server.behaviour = refuse_over(1024, 400, "at most {limit} tokens", reads, reply_type)
    found = embedder().probe_limit()
    assert found.truncates
    assert 300 - 16 <= found.max_tokens - 2 <= 300


@pytest.mark.parametrize("fault", ["nan", "hangup"])
def test_length_without_a_usable_answer_is_not_taken(embedder, server, reply_type, fault):
    reads = model_that_reads(10**6, None, reply_type)

    def answer(body):
        n_words = max(len(text.split()) for text in body["input"])
        if n_words <= 512:
            return reads(body)
        nothing = {"data": [{"index": 0, "embedding": [None] * 32}]}
        return reply_type(raw=b"") if fault == "hangup" else reply_type(body=nothing)

    server.behaviour = answer
    found = embedder().probe_limit()
    assert 512 - 16 <= found.max_tokens - 2 <= 512


@pytest.mark.parametrize("n_faults", [1, 2, 3, 5])
def test_fault_that_passes_is_no_limit(embedder, server, reply_type, n_faults):
    reads = model_that_reads(10**6, None, reply_type)
    left = [n_faults]

    def answer(body):
        if left[0] and len(body["input"][0].split()) > 1:
            left[0] -= 1
            return reply_type(status=500, body={"error": "oops"})
        return reads(body)

    server.behaviour = answer
    assert embedder().probe_limit() == TextLimit(None, False, 32)


def test_server_that_refuses_everything_has_no_limit_but_a_fault(embedder, server, reply_type):
    server.behaviour = lambda body: reply_type(status=400, body={"error": "no"})
    with pytest.raises(ProviderRefused, match="status 400: no"):
        embedder().probe_limit()
    server.behaviour = lambda body: reply_type(status=413, body={})
    with pytest.raises(InputTooLong):
        embedder().probe_limit()


def test_probe_of_a_dead_server_says_so(embedder, nobody):
    with pytest.raises(ProviderUnavailable, match="cannot be reached"):
        embedder(base_url=nobody).probe_limit()


def test_refused_long_query_is_the_mean_of_its_windows(embedder, server, reply_type, good):
    server.behaviour = lambda body: (
        reply_type(status=400, body={"error": "input exceeds context length"})
        if len(body["input"][0]) > 300
        else reply_type(body=good(body))
    )
    text = "ab " * 200
    vector = embedder().embed_query(text)
    pieces = [body["input"][0] for body in server.requests if len(body["input"][0]) <= 300]
    total = sum(len(p) * expected(p) for p in pieces)
    assert "".join(pieces) == text
    np.testing.assert_allclose(vector, unit(total), rtol=1e-5)


def test_query_over_4096_characters_is_cut_before_it_is_sent(embedder, server):
    embedder().embed_query("word " * 2000)
    sizes = [len(body["input"][0]) for body in server.requests]
    assert sum(sizes) == 10_000
    assert max(sizes) <= 4096


def test_query_that_no_window_fits_is_too_long(embedder, server, reply_type):
    server.behaviour = lambda body: reply_type(status=413, body={})
    with pytest.raises(InputTooLong):
        embedder().embed_query("word " * 300)


# --- retries


@pytest.mark.parametrize(
    ("header", "pause"),
    [
        ("7", 7.0),
        ("1.5", 1.5),
        ("date", 30.0),
        (None, 1.0),
        ("soon", 1.0),
        ("0", 1.0),
        ("past", 1.0),
    ],
)
def test_429_waits_as_told(embedder, server, reply_type, fake_time, header, pause):
    if header == "date":
        header = formatdate(fake_time.now + 30, usegmt=True)
    if header == "past":
        header = formatdate(fake_time.now - 30, usegmt=True)
    headers = {"Retry-After": header} if header is not None else {}
    server.script = [reply_type(status=429, body={"error": "slow down"}, headers=headers)]
    embedder().embed_documents(["a"])
    assert fake_time.sleeps == [pause]


def test_429_for_ever_gives_up(embedder, server, reply_type, fake_time):
    server.behaviour = lambda body: reply_type(status=429, body={"error": "slow down"})
    with pytest.raises(ProviderUnavailable, match="status 429: slow down"):
        embedder().embed_documents(["a"])
    assert fake_time.sleeps == [1.0 * 2**i for i in range(5)]


def test_retry_after_an_hour_is_not_waited_for(embedder, server, reply_type, fake_time):
    server.script = [reply_type(status=429, body={}, headers={"Retry-After": "3600"})]
    with pytest.raises(ProviderUnavailable, match="wait 3600 s"):
        embedder().embed_documents(["a"])
    assert fake_time.sleeps == []


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_5xx_is_tried_again(embedder, server, reply_type, fake_time, status):
    loading = {"error": {"message": "Loading model", "code": status}}
    server.script = [reply_type(status=status, body=loading)] * 2
    embedder().embed_documents(["a"])
    assert fake_time.sleeps == [0.5, 1.0]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422, 501, 307])
def test_refusals_are_final(embedder, server, reply_type, fake_time, status):
    server.behaviour = lambda body: reply_type(
        status=status, body={"error": "no"}, headers={"Location": "http://elsewhere.test/v1"}
    )
    with pytest.raises(ProviderRefused):
        embedder().embed_documents(["a"])
    assert len(server.requests) == 1
    assert fake_time.sleeps == []


def test_404_names_the_models_that_there_are(embedder, server, reply_type):
    server.behaviour = lambda body: reply_type(status=404, body={"detail": "no such thing"})
    server.models = {"data": [{"id": "bge-m3"}, {"id": "m2"}, {"id": "other\x1b[31m"}]}
    with pytest.raises(ProviderRefused) as caught:
        embed_all(embedder(), ["a", "b", "c"])
    assert "has no model 'm'; it has bge-m3, m2, other [31m" in caught.value.message
    assert caught.value.hint == "ragx config set embeddings.model m2"
    assert caught.value.code == "no_model"
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [400, 404, 422])
def test_names_of_models_show_no_key_and_are_no_commands(embedder, server, reply_type, status):
    server.behaviour = lambda body: reply_type(status=status, body={"error": "model not found"})
    server.models = {"data": [{"id": f"m; touch x {KEY}"}, {"id": [KEY]}]}
    with pytest.raises(ProviderRefused) as caught:
        embedder(api_key=KEY).embed_documents(["a"])
    assert "it has m; touch x ***" in caught.value.message
    assert caught.value.hint == "ragx config set embeddings.model 'm; touch x ***'"
    assert KEY not in json.dumps(caught.value.details)


@pytest.mark.parametrize("status", [400, 404, 422])
def test_unknown_model_in_other_words(embedder, server, reply_type, status):
    server.behaviour = lambda body: reply_type(
        status=status, body={"error": 'model "m" not found, try pulling it first'}
    )
    with pytest.raises(ProviderRefused, match="has no model 'm': model") as caught:
        embed_all(embedder(), ["a", "b", "c"])
    assert "embeddings.model" in caught.value.hint
    assert len(server.requests) == 1


def test_404_of_a_wrong_address_is_not_about_the_model(embedder, server, reply_type):
    server.behaviour = lambda body: reply_type(status=404, body={"detail": "Not Found"})
    server.models = {"data": [{"id": "m"}]}
    with pytest.raises(ProviderRefused, match=r"127\.0\.0\.1.*/v1/embeddings refused model 'm'"):
        embed_all(embedder(), ["a"])


@pytest.mark.parametrize(
    "body",
    [
        {"error": "unknown field 'encoding_format'"},
        {"detail": [{"loc": ["body", "x"], "msg": "Extra inputs are not permitted"}]},
        {"error": {"message": "Unrecognized request argument supplied: encoding_format"}},
    ],
)
def test_field_that_the_server_does_not_know_is_left_out_from_then_on(
    embedder, server, reply_type, good, body
):
    server.behaviour = lambda asked: (
        reply_type(status=400, body=body)
        if "encoding_format" in asked
        else reply_type(body=good(asked))
    )
    e = embedder()
    e.embed_documents(["a"])
    e.embed_documents(["b"])
    assert ["encoding_format" in asked for asked in server.requests] == [True, False, False]


def test_redirects_are_not_followed(embedder, server, reply_type):
    server.script = [reply_type(status=308, body={}, headers={"Location": server.url + "/x"})]
    with pytest.raises(ProviderRefused, match="not followed"):
        embedder(api_key=KEY).embed_documents(["a"])
    assert len(server.requests) == 1


def test_page_instead_of_api(embedder, server, reply_type):
    server.behaviour = lambda body: reply_type(body=b"<html>Welcome</html>")
    with pytest.raises(ProviderRefused, match="not JSON"):
        embedder().embed_documents(["a"])


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{",
        b'HTTP/1.1 200 OK\r\n\r\n{"data": [{"ind',
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nabcd",
        b"\x00\x01 no http\r\n\r\n",
    ],
    ids=["hung up", "half body", "half json", "empty", "bad gzip", "no http"],
)
def test_broken_exchange_is_tried_again(embedder, server, reply_type, fake_time, raw):
    server.script = [reply_type(raw=raw)] * 2
    np.testing.assert_allclose(embedder().embed_documents(["a"])[0], expected("a"), rtol=1e-6)
    server.script = [reply_type(raw=raw)] * 3
    with pytest.raises(ProviderUnavailable):
        embedder().embed_documents(["a"])
    # Then another text, which shows whose fault it is.
    assert len(server.requests) == 3 + 3 + 1


def test_silent_server_times_out_twice(server, reply_type):
    def never(body):
        server.release.wait(30)
        return reply_type(body={})

    server.behaviour = never
    options = EmbeddingOptions(
        provider="openai", base_url=server.url, model="m", timeout_s=0.1, connect_timeout_s=0.1
    )
    e = OpenAIEmbedder(options)
    started = time.monotonic()
    with pytest.raises(ProviderUnavailable) as caught:
        e.embed_documents(["a"])
    assert caught.value.code == "provider_timeout"
    # The text, and then another one.
    assert len(server.requests) == 2 + 2
    assert time.monotonic() - started < 10  # one, on a machine that is not busy
    e.close()


def test_each_kind_of_fault_has_its_own_attempts(embedder, server, reply_type, fake_time):
    hang_up = reply_type(raw=b"")
    statuses = [503, 429, 500]
    server.script = 2 * [hang_up, *(reply_type(status=status, body={}) for status in statuses)]
    assert embedder().embed_documents(["a"]).shape == (1, 4)
    assert sorted(fake_time.sleeps) == sorted(
        first * 2**n for first in (0.25, 0.5, 1.0, 0.5) for n in range(2)
    )


def test_all_kinds_of_fault_together_have_an_end(embedder, server, reply_type):
    faults = [reply_type(status=status, body={}) for status in (503, 429)]
    server.behaviour = lambda body: faults[len(server.requests) % 2]
    policy = RetryPolicy(attempts={"busy": 100, "rate": 100})
    e = OpenAIEmbedder(
        EmbeddingOptions(provider="openai", base_url=server.url, model="m"),
        clock=Clock(sleep=lambda seconds: None, monotonic=itertools.count().__next__),
        policy=policy,
    )
    with pytest.raises(ProviderUnavailable) as caught:
        e.embed_documents(["a"])
    assert len(server.requests) == caught.value.details["attempts"] == policy.most_attempts
    e.close()


def hangs_at(marker, server, reply_type, good):
    def answer(body):
        if any(marker in text for text in body["input"]):
            server.release.wait(60)
        return reply_type(body=good(body))

    return answer


@pytest.mark.parametrize("place", [0, 13, 31])
def test_text_that_makes_the_server_hang_fails_alone_and_soon(
    embedder, server, reply_type, good, place
):
    server.behaviour = hangs_at("bad", server, reply_type, good)
    texts = [f"t{i}" for i in range(32)]
    texts[place] = "bad"
    e = embedder(timeout_s=0.5)
    results = embed_each(e, texts)
    assert [i for i, r in enumerate(results) if isinstance(r, ProviderError)] == [place]
    assert results[place].code == "provider_timeout"
    assert may_concern_one_text(results[place])
    assert "for other texts it answers" in results[place].message
    # Once in each of 32, 16, ... 2 texts, twice alone.
    assert sum("bad" in body["input"] for body in server.requests) == math.log2(32) + 2
    assert e.learned.max_items == 0


def test_texts_that_break_the_connection_fail_alone(embedder, server, reply_type, good):
    server.behaviour = lambda body: (
        reply_type(raw=b"")
        if any("bad" in text for text in body["input"])
        else reply_type(body=good(body))
    )
    results = pooled(embedder(batch_size=4), [f"bad{i}" if i % 9 == 0 else "x" for i in range(90)])
    failed = {i for i, result in results.items() if isinstance(result, ProviderError)}
    assert failed == set(range(0, 90, 9))
    assert all(may_concern_one_text(results[i]) for i in failed)


def test_circuit_that_texts_have_opened_is_closed_again(embedder, server, reply_type, good):
    e = embedder()
    server.behaviour = lambda body: reply_type(status=502, body={})
    for _ in range(5):
        with pytest.raises(ProviderUnavailable, match="status 502"):
            e.embed_query("a")
    server.behaviour = lambda body: reply_type(body=good(body))
    with pytest.raises(ProviderUnavailable, match="status 502"):
        e.embed_query("a")
    assert e.embed_documents(["a", "b"]).shape == (2, 4)


def test_server_that_is_gone_fails_all_texts_at_once(embedder, server, reply_type):
    e = embedder(batch_size=4)
    e.embed_documents(["a"])
    server.requests.clear()
    server.behaviour = lambda body: reply_type(raw=b"")
    results = pooled(e, [f"t{i}" for i in range(500)])
    assert not any(may_concern_one_text(result) for result in results.values())
    # Three tries for each call until the circuit is open, and for the texts that are to show it.
    assert len(server.requests) <= 3 * (5 + 2 * e.workers)


def test_slow_answer_within_the_limit_is_fine(embedder, server, reply_type, good):
    def slow(body):
        time.sleep(0.3)
        return reply_type(body=good(body))

    server.behaviour = slow
    assert embedder().embed_documents(["a"]).shape == (1, 4)


def test_dripping_answer_ends():
    listener = socket.create_server(("127.0.0.1", 0))
    stop = threading.Event()

    def drip():
        while not stop.is_set():
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                connection.recv(65536)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
                try:
                    while not stop.wait(0.02):
                        connection.sendall(b"[")
                except OSError:
                    continue

    thread = threading.Thread(target=drip)
    thread.start()
    e = OpenAIEmbedder(
        EmbeddingOptions(
            provider="openai",
            base_url=f"http://127.0.0.1:{listener.getsockname()[1]}",
            model="m",
            timeout_s=0.2,
            connect_timeout_s=0.1,
        )
    )
    with pytest.raises(ProviderUnavailable, match="in time"):
        e.embed_documents(["a"])
    e.close()
    stop.set()
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join()


# --- refused connections and the circuit breaker


@pytest.fixture
def nobody():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    return f"http://127.0.0.1:{port}/v1"


def test_thousands_of_texts_do_not_each_wait_for_a_dead_server(embedder, nobody, fake_time):
    e = embedder(base_url=nobody)
    with EmbedPool(e) as pool:
        results = list(pool.run((i, "text") for i in range(5000)))
    assert len(results) == 5000
    assert all(isinstance(result, ProviderUnavailable) for _, result in results)
    # Three failed calls open the circuit; the other workers' calls may be under way by then.
    assert len(fake_time.sleeps) <= 2 * (3 + e.workers)


def test_circuit_lets_one_request_try_after_a_while(embedder, server, reply_type, fake_time):
    e = embedder()
    server.script = [reply_type(status=401, body={"error": "key"})]
    for _ in range(3):
        with pytest.raises(ProviderRefused, match="status 401"):
            e.embed_documents(["a"])
    assert len(server.requests) == 1
    fake_time.now += 31
    assert e.embed_documents(["a"]).shape == (1, 4)
    assert e.embed_documents(["a"]).shape == (1, 4)


def test_server_that_never_worked_is_not_asked_for_every_text(embedder, server, reply_type):
    server.behaviour = lambda body: reply_type(
        status=422, body={"detail": [{"msg": "no such field"}]}
    )
    results = embed_each(embedder(), [f"t{i}" for i in range(64)])
    assert all("no such field" in str(result) for result in results)
    assert len(server.requests) == 10


def test_bad_texts_do_not_stop_a_server_that_works(embedder, server, reply_type, good):
    server.behaviour = lambda body: (
        reply_type(status=400, body={"error": "no"})
        if any(text.startswith("bad") for text in body["input"])
        else reply_type(body=good(body))
    )
    e = embedder()
    e.embed_documents(["a"])
    results = embed_each(e, [f"bad{i}" for i in range(32)] + ["good"])
    assert [isinstance(r, ProviderRefused) for r in results] == [True] * 32 + [False]


def test_close_wakes_a_request_that_waits_to_retry(server, reply_type):
    server.behaviour = lambda body: reply_type(status=429, body={}, headers={"Retry-After": "60"})
    e = OpenAIEmbedder(EmbeddingOptions(provider="openai", base_url=server.url, model="m"))
    errors = []

    def ask():
        try:
            e.embed_documents(["a"])
        except ProviderUnavailable as error:
            errors.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    while not server.requests:
        time.sleep(0.01)
    time.sleep(0.05)
    e.close()
    thread.join(30)
    assert len(errors) == 1
    with pytest.raises(ProviderUnavailable, match="closed"):
        e.embed_documents(["a"])


# --- secrets, settings, fingerprints


def test_key_appears_nowhere(embedder, server, reply_type, caplog):
    caplog.set_level("DEBUG")
    options = EmbeddingOptions(provider="openai", base_url=server.url, model="m", api_key=KEY)
    server.behaviour = lambda body: reply_type(
        status=401, body={"error": {"message": f"Incorrect API key provided: {KEY}"}}
    )
    e = embedder(api_key=KEY)
    with pytest.raises(ProviderRefused) as caught:
        e.embed_documents(["a"])
    shown = [repr(options), str(options), repr(e), str(caught.value), caught.value.hint]
    shown += [json.dumps(caught.value.details), caplog.text]
    assert "***" in str(caught.value)
    assert not any(KEY in text for text in shown)


@pytest.mark.parametrize("key", ["sk-a\nb", "sk-ü", "sk a"])
def test_unusable_key_is_refused_without_being_shown(embedder, key):
    with pytest.raises(ConfigError) as caught:
        embedder(api_key=key)
    assert key not in caught.value.message + caught.value.hint


def test_key_with_a_final_newline_is_used(embedder, server):
    embedder(api_key=f"{KEY}\n").embed_documents(["a"])
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    "url", ["", "localhost:1234", "ftp://x", "http://", "http://[::1", "http://u:pw@host/v1"]
)
def test_unusable_address_is_a_config_error(embedder, url):
    with pytest.raises(ConfigError) as caught:
        embedder(base_url=url)
    assert "pw" not in str(caught.value)


def test_query_of_the_address_is_sent_but_not_shown(embedder, server, reply_type):
    server.behaviour = lambda body: reply_type(status=404, body={})
    with pytest.raises(ProviderRefused) as caught:
        embedder(base_url=server.url + "/?api-version=9").embed_documents(["a"])
    assert server.paths == ["/v1/embeddings?api-version=9"]
    assert "api-version" not in str(caught.value)


def test_local_server_is_reached_past_the_proxy(embedder, nobody, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", nobody)
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:9")
    assert embedder().embed_documents(["a"]).shape == (1, 4)


def test_remote_server_is_reached_through_the_proxy(embedder, server, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", server.url.removesuffix("/v1"))
    embedder(base_url="http://models.test/v1").embed_documents(["a"])
    assert server.paths == ["http://models.test/v1/embeddings"]


def test_unusable_proxy_is_refused_without_its_password(embedder, monkeypatch):
    monkeypatch.setenv("ALL_PROXY", "nonsense://u:hunter2@127.0.0.1:9")
    with pytest.raises(ProviderRefused, match="proxy") as caught:
        embedder(base_url="http://models.test/v1").embed_documents(["a"])
    assert "hunter2" not in str(caught.value)


def test_terminal_controls_in_a_reply_are_removed(embedder, server, reply_type):
    server.behaviour = lambda body: reply_type(
        status=404, body={"error": "a\x1b[31m\nb" + "x" * 999}
    )
    with pytest.raises(ProviderRefused) as caught:
        embedder().embed_documents(["a"])
    assert caught.value.message.isprintable()
    assert len(caught.value.message) < 500


def test_fingerprint_is_about_the_vectors_only():
    base = EmbeddingOptions(provider="openai", base_url="http://a/v1", model="m")
    moved = EmbeddingOptions(
        provider="openai", base_url="http://b/v1", model="m", batch_size=1, api_key=KEY
    )
    assert fingerprint(base) == fingerprint(moved) == OpenAIEmbedder(base).fingerprint
    others = [
        EmbeddingOptions(provider="openai", model="n"),
        EmbeddingOptions(provider="openai", model="m", doc_prefix="x"),
        EmbeddingOptions(provider="openai", model="m", query_prefix="x"),
    ]
    assert len({fingerprint(o) for o in [base, *others]}) == 4


def test_no_model_is_a_config_error(embedder):
    with pytest.raises(ConfigError, match=r"embeddings\.model"):
        embedder(model="")


def test_tokens_are_estimated(embedder):
    e = embedder(doc_prefix="12345678")
    assert e.token_starts("any text") is None
    assert e.count_tokens("abcd") == estimate_tokens("12345678abcd")


def test_llama_server_is_named_by_its_file_wherever_that_lies():
    options = EmbeddingOptions(provider="llama-server", gguf="/models/a.gguf")
    moved = EmbeddingOptions(provider="llama-server", gguf="/elsewhere/a.gguf")
    named = EmbeddingOptions(provider="llama-server", gguf="/models/a.gguf", model="m")
    assert fingerprint(options) == fingerprint(moved) == OpenAIEmbedder(options).fingerprint
    assert OpenAIEmbedder(options).model == "a.gguf"
    assert fingerprint(named) == fingerprint(EmbeddingOptions(provider="openai", model="m"))
    with pytest.raises(ConfigError, match="gguf") as caught:
        fingerprint(EmbeddingOptions(provider="llama-server"))
    assert caught.value.hint == "ragx config set embeddings.gguf FILE"


def test_the_server_is_looked_for_once_and_closed(server, monkeypatch):
    opened, closed = [], []

    def find(options, *, notice):
        opened.append((options.section, options.role, options.base_url))
        return Endpoint(server.url, ("started",), lambda: closed.append(1))

    monkeypatch.setattr("ragx.providers.openai.open_endpoint", find)
    options = EmbeddingOptions(provider="openai", base_url="http://127.0.0.1:9/v1", model="m")
    e = OpenAIEmbedder(options)
    assert e.endpoint_notes == ()
    assert opened == []
    with EmbedPool(e) as pool:
        assert len(list(pool.run((i, "text") for i in range(100)))) == 100
    assert e.endpoint_notes == ("started",)
    assert opened == [("embeddings", "embedding", "http://127.0.0.1:9/v1")]
    assert closed == []
    e.close()
    assert closed == [1]
    with pytest.raises(ProviderUnavailable, match="closed"):
        e.embed_documents(["a"])


def test_a_setting_that_shows_late_is_not_taken_for_a_dead_thread(monkeypatch):
    def find(options, *, notice):
        raise ConfigError("there is no such file", hint="set another")

    monkeypatch.setattr("ragx.providers.openai.open_endpoint", find)
    e = OpenAIEmbedder(EmbeddingOptions(provider="llama-server", gguf="a.gguf"))
    with EmbedPool(e) as pool, pytest.raises(ConfigError, match="no such file"):
        list(pool.run([(1, "a")]))

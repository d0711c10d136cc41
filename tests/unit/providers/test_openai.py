from __future__ import annotations

import base64
import json
import math
import socket
import struct
import threading
import time
from email.utils import formatdate

import numpy as np
import pytest

from ragx.errors import (
    BadEmbedding,
    ConfigError,
    InputTooLong,
    ProviderRefused,
    ProviderUnavailable,
)
from ragx.providers.base import EmbeddingOptions
from ragx.providers.openai import OpenAIEmbedder, fingerprint, over_long
from ragx.providers.pool import EmbedPool, embed_each

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
        "fewer": {"data": [{"index": 0, "embedding": ok}]},
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
    assert len(server.requests) == 1


def test_dimension_may_not_change(embedder, server, reply_type):
    e = embedder()
    e.embed_documents(["a"])
    server.behaviour = lambda body: reply_type(
        body={"data": [{"index": 0, "embedding": [1.0, 2.0]}]}
    )
    with pytest.raises(BadEmbedding, match="2 numbers, earlier with 4") as caught:
        e.embed_documents(["b"])
    assert caught.value.code == "dimension_changed"


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
    # Two halves per level of the tree above the bad leaf, and the whole batch.
    assert len(server.requests) == 1 + 2 * math.log2(32)


def test_500_for_one_text_fails_that_one_only(embedder, server, reply_type, good):
    server.behaviour = lambda body: (
        reply_type(status=500, body={"error": {"message": "NaN in output"}})
        if "bad" in body["input"]
        else reply_type(body=good(body))
    )
    results = embed_each(embedder(), ["a", "bad", "b", "c"])
    assert [isinstance(r, ProviderUnavailable) for r in results] == [False, True, False, False]


def test_batch_limit_of_ten_is_met_by_halving(embedder, server, reply_type, good):
    server.behaviour = lambda body: (
        reply_type(status=400, body={"error": "batch size 32 > maximum allowed batch size 10"})
        if len(body["input"]) > 10
        else reply_type(body=good(body))
    )
    results = embed_each(embedder(), [f"t{i}" for i in range(32)])
    assert all(isinstance(r, np.ndarray) for r in results)
    assert len(server.requests) == 1 + 2 + 4


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


def test_over_long_text_in_a_batch_fails_alone(embedder, server, reply_type, good):
    server.behaviour = lambda body: (
        reply_type(status=500, body={"error": {"message": "input is too large to process"}})
        if any(len(text) > 100 for text in body["input"])
        else reply_type(body=good(body))
    )
    results = embed_each(embedder(), ["a", "b" * 200, "c"])
    assert [type(r).__name__ for r in results] == ["ndarray", "InputTooLong", "ndarray"]


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
    [("7", 7.0), ("0", 0.0), ("1.5", 1.5), ("date", 30.0), (None, 1.0), ("soon", 1.0)],
)
def test_429_waits_as_told(embedder, server, reply_type, fake_time, header, pause):
    if header == "date":
        header = formatdate(fake_time.now + 30, usegmt=True)
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


def test_404_names_model_and_address(embedder, server, reply_type):
    server.behaviour = lambda body: reply_type(status=404, body={"detail": "no such model"})
    with pytest.raises(ProviderRefused, match=r"127\.0\.0\.1.*/v1/embeddings refused model 'm'"):
        embedder().embed_documents(["a"])


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
    assert len(server.requests) == 3 + 3


def test_silent_server_times_out_twice(server, reply_type):
    def never(body):
        server.release.wait(5)
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
    assert len(server.requests) == 2
    assert time.monotonic() - started < 2
    e.close()


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
    thread.join(2)
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
    assert e.count_tokens("abcd") == (8 + 4) / 4 + 2

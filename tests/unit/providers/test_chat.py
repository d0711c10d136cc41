"""The chat client: what it sends, what it makes of replies, and of servers that refuse."""

from __future__ import annotations

import json

import pytest

from ragx.errors import ConfigError, InputTooLong, ProviderRefused, ProviderUnavailable
from ragx.providers import chat
from ragx.providers.base import ExpansionOptions
from ragx.providers.chat import ServerGenerator, without_thoughts
from ragx.providers.registry import open_generator

KEY = "sk-very-secret-0123456789"


def said(content: object, **message: object) -> dict[str, object]:
    finish = message.pop("finish_reason", "stop")
    return {
        "choices": [
            {
                "message": {"role": "assistant", "content": content, **message},
                "finish_reason": finish,
            }
        ]
    }


@pytest.fixture
def generator(server, fake_time):
    made = []

    def make(**changes):
        options = ExpansionOptions(
            **{
                "provider": "openai",
                "base_url": server.url,
                "model": "m",
                "timeout_s": 5,
                "autostart": False,
                **changes,
            }
        )
        made.append(ServerGenerator(options, clock=fake_time.clock))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def reply(reply_type):
    return reply_type


def streamed(reply, *parts: object):
    """A reply in events: texts are pieces of the answer, anything else is an event of its own."""
    lines = [
        json.dumps({"choices": [{"delta": {"content": part}}]} if isinstance(part, str) else part)
        for part in parts
    ]
    return reply(
        body="".join(f"data: {line}\n\n" for line in lines).encode(),
        headers={"Content-Type": "text/event-stream"},
    )


def listen(model: ServerGenerator, told: list[str]) -> str:
    return model.chat("be brief", "hello", max_tokens=16, on_text=told.append).text


def ask(model: ServerGenerator) -> str:
    return model.complete("be brief", "hello", max_tokens=16)


def test_the_smallest_body_is_sent(server, generator, reply) -> None:
    server.behaviour = lambda _: reply(body=said(" Hello. "))
    assert ask(generator()) == "Hello."
    assert server.paths == ["/v1/chat/completions"]
    assert server.requests == [
        {
            "model": "m",
            "messages": [
                {"role": "system", "content": "be brief"},
                {"role": "user", "content": "hello"},
            ],
            "max_tokens": 16,
            "temperature": 0.0,
        }
    ]


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (said([{"type": "text", "text": "one "}, {"type": "text", "text": "two"}]), "one two"),
        (said(["one ", "two", {"type": "image"}]), "one two"),
        (said("answer", reasoning_content="hm, let me think"), "answer"),
        (said("<think>\nhm\n</think>\n\nanswer"), "answer"),
        (said("hm, the template opened it\n</think>\n\nanswer"), "answer"),
        (said("</think>\n\nanswer"), "answer"),
        (said("<THINKING>a</THINKING>answer\n <think> \nafterthought"), "answer"),
        (said("\n<think>a</think> <thought>b</thought>answer"), "answer"),
        (said("one\n\n<reasoning>\nhm </reasoning>two"), "one\n\ntwo"),
        (said("answer", finish_reason="length"), "answer"),
    ],
)
def test_the_answer_is_told_from_the_thoughts(
    server, generator, reply, message: object, text: str
) -> None:
    server.behaviour = lambda _: reply(body=message)
    assert ask(generator()) == text


@pytest.mark.parametrize(
    ("message", "what"),
    [
        (said("<think>hm, and then", finish_reason="length"), "used up its tokens"),
        (said(None, reasoning_content="hm", finish_reason="length"), "used up its tokens"),
        (said(""), "empty"),
        (said(None, refusal="no"), "refused"),
        ({}, "no message"),
        ({"choices": []}, "no message"),
        ({"choices": [{"message": "text"}]}, "no message"),
        ([], "no message"),
    ],
)
def test_a_reply_without_text_is_an_error(
    server, generator, reply, message: object, what: str
) -> None:
    server.behaviour = lambda _: reply(body=message)
    with pytest.raises(ProviderRefused, match=what):
        ask(generator())


@pytest.mark.parametrize(
    "text",
    [
        "Use the </think> tag to end a thought.",
        "In XML, <reasoning> opens the block and the answer follows.",
        "The marks are:\n<think> opens a thought\n</think> ends it",
        "An answer, and `<think>`",
    ],
)
def test_an_answer_may_speak_of_marks(server, generator, reply, text: str) -> None:
    server.behaviour = lambda _: reply(body=said(text))
    assert ask(generator()) == text
    told: list[str] = []
    server.behaviour = lambda _: streamed(reply, *text)
    assert listen(generator(), told) == "".join(told) == text


def test_a_long_answer_is_not_looked_at_from_its_start_with_every_word(
    server, generator, reply, monkeypatch
) -> None:
    looked_at: list[int] = []

    def look(text: str) -> str:
        looked_at.append(len(text))
        return without_thoughts(text)

    monkeypatch.setattr(chat, "without_thoughts", look)
    words = [f"word{n} " for n in range(5000)]
    told: list[str] = []
    server.behaviour = lambda _: streamed(reply, *words)
    text = "".join(words).strip()
    assert listen(generator(), told) == "".join(told) == text
    assert len(told) > 500
    assert sum(looked_at) < 300 * len(text)


def test_thoughts_are_left_out_of_what_is_told_as_it_comes(server, generator, reply) -> None:
    told: list[str] = []
    text = "<think>hm\n</think> in two\n</think>\none\n<thought>\nhm\n</thought>\ntwo"
    server.behaviour = lambda _: streamed(reply, *text)
    # The first mark ends the thought, and the one alone on its line says that it was not the end.
    assert listen(generator(), told) == "one\n\ntwo"
    assert "".join(told) == "in two\n\none\n\ntwo"


@pytest.mark.parametrize(
    "words",
    [
        (
            "maximum context length is 4096 tokens. However, you requested 4200 tokens (104 in the"
            " messages, 4096 in the completion). Reduce the length of the messages or completion."
        ),
        (
            "'max_tokens' or 'max_completion_tokens' is too large: 4096. The maximum context"
            " length is 4096 tokens and your request has 104 input tokens"
        ),
        "the request exceeds the available context size",
    ],
)
def test_an_answer_that_does_not_fit_gets_what_is_left(
    server, generator, reply, words: str
) -> None:
    refusal = reply(400, {"error": {"message": words}})
    server.behaviour = lambda body: (
        refusal if {"max_tokens", "max_completion_tokens"} & {*body} else reply(body=said("hi"))
    )
    assert ask(generator()) == "hi"
    assert [sorted(body) for body in server.requests] == [
        ["max_tokens", "messages", "model", "temperature"],
        ["messages", "model", "temperature"],
    ]


def test_a_prompt_that_does_not_fit_is_said_to(server, generator, reply) -> None:
    words = "the request exceeds the available context size"
    server.behaviour = lambda _: reply(400, {"error": {"message": words}})
    with pytest.raises(InputTooLong, match="prompt is too long") as caught:
        ask(generator())
    assert caught.value.hint == "serve the model with a larger context"
    with pytest.raises(InputTooLong) as caught:
        generator().chat("be brief", "hello", max_tokens=16)
    assert caught.value.hint.endswith("--budget 1200")
    assert len(server.requests) == 4


def test_what_was_told_is_not_asked_for_anew(server, generator, reply) -> None:
    told: list[str] = []
    fault = {"error": {"message": "the input exceeds the context size"}}
    server.behaviour = lambda _: streamed(reply, "some words", fault)
    with pytest.raises(InputTooLong):
        listen(generator(), told)
    assert (told, len(server.requests)) == (["some words"], 1)


def test_an_error_among_events_is_cleaned(server, generator, reply) -> None:
    fault = {"error": {"message": f"bad key \x1b[31m\nBearer {KEY} {KEY[:9]}... " + "x" * 999}}
    server.behaviour = lambda _: streamed(reply, fault)
    with pytest.raises(ProviderRefused, match="broke off: bad key") as caught:
        listen(generator(api_key=f" {KEY}\n"), [])
    assert caught.value.message.isprintable()
    assert KEY[:9] not in caught.value.message
    assert len(caught.value.message) < 400


def test_fields_that_a_model_refuses_are_renamed_or_left_out(server, generator, reply) -> None:
    def behave(body):
        if "max_tokens" in body:
            return reply(
                400,
                {
                    "error": {
                        "message": "Unsupported parameter: 'max_tokens' is not supported with this"
                        " model. Use 'max_completion_tokens' instead."
                    }
                },
            )
        if "temperature" in body:
            return reply(400, {"error": {"message": "Unsupported value: 'temperature' is 0"}})
        return reply(body=said("hello"))

    server.behaviour = behave
    assert ask(generator()) == "hello"
    last = server.requests[-1]
    assert sorted(last) == ["max_completion_tokens", "messages", "model"]
    assert last["max_completion_tokens"] == 16
    assert len(server.requests) == 3


def test_a_limit_that_is_too_high_is_left_out(server, generator, reply) -> None:
    def behave(body):
        if "max_tokens" in body:
            return reply(400, {"error": {"message": "max_tokens must be at most 8"}})
        return reply(body=said("hello"))

    server.behaviour = behave
    assert ask(generator()) == "hello"
    assert "max_completion_tokens" not in server.requests[-1]


def test_a_refusal_of_something_else_is_final(server, generator, reply) -> None:
    server.behaviour = lambda _: reply(400, {"error": {"message": "the prompt is bad"}})
    with pytest.raises(ProviderRefused, match="the prompt is bad"):
        ask(generator())
    assert len(server.requests) == 1


def test_a_server_without_a_chat_model_says_so(server, generator, reply) -> None:
    words = "the current context does not logits computation. skipping"
    server.behaviour = lambda _: reply(500, {"error": {"message": words}})
    with pytest.raises(ProviderRefused, match="does not chat") as caught:
        ask(generator())
    assert "expansion.base_url" in caught.value.hint
    assert len(server.requests) == 1


def test_a_silent_server_is_not_asked_twice(server, generator, reply) -> None:
    def behave(_body):
        server.release.wait(10)
        return reply(body=said("late"))

    server.behaviour = behave
    with pytest.raises(ProviderUnavailable, match="in time"):
        ask(generator(timeout_s=0.2))
    assert len(server.requests) == 1


def test_the_key_is_sent_and_never_shown(server, generator, reply) -> None:
    server.behaviour = lambda _: reply(401, {"error": f"bad key {KEY}"})
    model = generator(api_key=KEY)
    with pytest.raises(ProviderRefused) as caught:
        ask(model)
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"
    assert KEY not in f"{caught.value} {caught.value.hint} {caught.value.details} {model!r}"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": ""}, "expansion.model is not set"),
        ({"base_url": ""}, "expansion.base_url is not set"),
    ],
)
def test_settings_that_cannot_serve_are_refused_at_once(generator, changes, message) -> None:
    with pytest.raises(ConfigError, match=message):
        generator(**changes)


@pytest.mark.parametrize("provider", ["openai", "ollama", "llama-server"])
def test_every_kind_of_server_is_this_client(provider: str) -> None:
    model = open_generator(
        ExpansionOptions(provider=provider, base_url="http://127.0.0.1:9/v1", model="m")
    )
    assert isinstance(model, ServerGenerator)
    model.close()


def test_thoughts_without_an_answer_leave_nothing() -> None:
    assert without_thoughts("<think>never ends") == ""
    assert without_thoughts("plain text < think") == "plain text < think"

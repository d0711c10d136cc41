"""A chat model on any server that speaks OpenAI's `/chat/completions`.

The body is the smallest that all take; what a server refuses by name is left out or renamed, since
newer models of the original itself take neither `max_tokens` nor a temperature.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from ragx.errors import InputTooLong, ProviderError, ProviderRefused
from ragx.providers.base import ExpansionOptions, Notice, Reply, no_notice
from ragx.providers.limits import over_long
from ragx.providers.retry import Clock
from ragx.providers.served import Served
from ragx.providers.sse import EventStream

__all__ = ["ServerGenerator", "without_thoughts"]

# An answer may speak of these marks, so they count where a model puts them: at the beginning of a
# reply, or alone on a line.
_MARK = "think|thinking|thought|reasoning"
_FLAGS = re.DOTALL | re.MULTILINE | re.IGNORECASE
_FIRST_THOUGHT = re.compile(rf"\s*<({_MARK})>.*?(?:</\1>|\Z)", _FLAGS)
_THOUGHT = re.compile(rf"^[^\S\n]*<({_MARK})>[^\S\n]*$.*?(?:</\1>|\Z)", _FLAGS)
# Templates may open the thought themselves, so that only its end is in the reply.
_THOUGHT_END = re.compile(rf"\A.*^[^\S\n]*</(?:{_MARK})>[^\S\n]*$|\A\s*</(?:{_MARK})>", _FLAGS)
# llama-server's words where it holds an embedder or a reranker.
_NO_CHAT = re.compile(r"not support|logits", re.I)
_REFUSED_FIELD = re.compile(
    r"max_completion_tokens|max_tokens|temperature|stream_options|\bstream\b", re.I
)
_LONGEST_MARK = 13
# A reply is told on each time it has grown by one part in so many.
_LOOKS = 256
_LARGER_CONTEXT = "serve the model with a larger context"


class ServerGenerator:
    """A served chat model; nothing is sent, and nothing started, before the first prompt."""

    def __init__(
        self,
        options: ExpansionOptions,
        *,
        notice: Notice = no_notice,
        clock: Clock | None = None,
    ) -> None:
        """Take settings.

        Args:
            options: address, model, key, timeouts, and what may be started.
            notice: told what is started on the way.
            clock: for tests.
        Raises:
            ConfigError: model, address or key cannot be used.
        """
        self._server = Served("expansion", "chat", options, notice=notice, clock=clock)
        self.model = self._server.model

    @property
    def endpoint_notes(self) -> tuple[str, ...]:
        """What was started for it, in words for people."""
        return self._server.notes

    def complete(
        self, system: str, prompt: str, *, max_tokens: int, temperature: float = 0.0
    ) -> str:
        """Answer one prompt; what the model thinks aloud is left out.

        Raises:
            InputTooLong: the server says that the prompt is too long for the model.
            ProviderUnavailable: nothing usable answers.
            ProviderRefused: the server said no, or the reply holds no text.
            ConfigError: what would have to be started is missing.
        """
        try:
            return self.chat(system, prompt, max_tokens=max_tokens, temperature=temperature).text
        except InputTooLong as fault:
            # How much evidence goes in is a choice of `ask` alone.
            fault.hint = _LARGER_CONTEXT
            raise

    def chat(
        self,
        system: str,
        prompt: str,
        *,
        max_tokens: int,
        temperature: float = 0.0,
        on_text: Callable[[str], None] | None = None,
    ) -> Reply:
        """Answer one prompt, and say how it went.

        Args:
            on_text: called with pieces of the answer as they come.
        Raises:
            InputTooLong: the server says that the prompt is too long for the model.
            ProviderUnavailable: nothing usable answers.
            ProviderRefused: the server said no, or the reply holds no text.
            ConfigError: what would have to be started is missing.
        """
        body: dict[str, object] = {
            "model": self.model,
            "messages": [
                {"role": "system", "content": system},
                {"role": "user", "content": prompt},
            ],
            "max_tokens": max_tokens,
            "temperature": temperature,
        }
        if on_text is not None:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        while True:
            written = _Written(on_text, self._server.clean) if on_text is not None else None
            try:
                return self._server.post(
                    "/chat/completions",
                    body,
                    subject=f"model {self.model!r}",
                    parse=_reply if written is None else written.reply,
                    classify=_classify,
                    events=None if written is None else written.events,
                )
            except (InputTooLong, ProviderRefused) as fault:
                smaller = _without_refused(body, fault)
                if smaller is None or (written is not None and written.has_begun):
                    raise
                body = smaller

    def models(self) -> tuple[str, ...]:
        """Names that the server lists, in its order; () where it lists none.

        Raises:
            ProviderUnavailable: nothing usable answers.
            ProviderRefused: the server said no.
        """
        return self._server.client().get("/models", subject="its models", parse=_names)

    def close(self) -> None:
        """Close the connections and end what was started."""
        self._server.close()


class _Written:
    """A reply that comes in pieces: told on as far as it is no thought."""

    def __init__(self, on_text: Callable[[str], None], clean: Callable[[str], str]) -> None:
        self._on_text = on_text
        self._clean = clean
        self._raw = ""
        self._new: list[str] = []
        self._n_new = 0
        self._told = ""
        self._finish: object = None
        self._usage: object = None
        self._fault: ProviderError | None = None
        self.events = EventStream(self._take)

    @property
    def has_begun(self) -> bool:
        """Whether something was told on: then the same cannot be asked for anew."""
        return bool(self._told)

    def reply(self, value: object) -> Reply:
        """The whole of it; `value` is the reply of a server that does not send events."""
        if self._fault is not None:
            raise self._fault
        if not self.events.n_events:
            whole = _reply(value)
            self._on_text(whole.text)
            return whole
        whole = _reply(
            {
                "choices": [
                    {
                        "message": {"content": "".join((self._raw, *self._new))},
                        "finish_reason": self._finish or "length",
                    }
                ],
                "usage": self._usage,
            }
        )
        self._tell(whole.text)
        return whole

    def _take(self, event: object) -> None:
        if not isinstance(event, dict):
            return
        if event.get("error") and self._fault is None:
            said = event["error"]
            said = said.get("message", "") if isinstance(said, dict) else said
            # Some refuse a prompt only after they have agreed to stream.
            message = self._clean(str(said))
            self._fault = _classify(400, message) or ProviderRefused(
                f"the server broke off: {message}"
            )
        self._usage = event.get("usage") or self._usage
        choices = event.get("choices")
        first = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(first, dict):
            return
        self._finish = first.get("finish_reason") or self._finish
        delta = first.get("delta")
        piece = _content(delta.get("content")) if isinstance(delta, dict) else ""
        if not piece:
            return
        self._new.append(piece)
        self._n_new += len(piece)
        # Not at every word of a long reply, all of which is looked at anew.
        if self._n_new * _LOOKS >= len(self._raw):
            self._raw = head = "".join((self._raw, *self._new))
            self._new, self._n_new = [], 0
            opened = head.rfind("<")
            # What may become the mark of a thought is held back.
            if opened >= 0 and len(head) - opened < _LONGEST_MARK:
                head = head[:opened]
            self._tell(without_thoughts(head))

    def _tell(self, text: str) -> None:
        # A mark that ends a thought may come after all of it: then the answer begins anew.
        known = self._told if text.startswith(self._told) else ""
        if text[len(known) :]:
            self._on_text(text[len(known) :] if known or not self._told else f"\n\n{text}")
            self._told = text


def without_thoughts(text: str) -> str:
    """Text without what stands in <think> and the like, also where only one end of it is there."""
    begin = 0
    while (thought := _FIRST_THOUGHT.match(text, begin)) is not None:
        begin = thought.end()
    return _THOUGHT_END.sub("", _THOUGHT.sub("", text[begin:])).strip()


def _without_refused(
    body: Mapping[str, object], fault: InputTooLong | ProviderRefused
) -> dict[str, object] | None:
    """The body without the field that a refusal names; None if that was not the reason."""
    limits = {"max_tokens", "max_completion_tokens"}
    if isinstance(fault, InputTooLong):
        # Prompt and answer share the context: without a limit the answer gets what is left. Only
        # if that is refused, too, the prompt itself is too long.
        left = {name: value for name, value in body.items() if name not in limits}
        return left if len(left) < len(body) else None
    if fault.details.get("status") not in (400, 422):
        return None
    # "Unsupported parameter: 'max_tokens' ... Use 'max_completion_tokens' instead": the first one
    # that was sent is what is refused.
    named = [match[0].lower() for match in _REFUSED_FIELD.finditer(fault.message)]
    refused = next((name for name in named if name in body), None)
    if refused is None:
        return None
    smaller = {name: value for name, value in body.items() if name != refused}
    # Some name both in saying that the number is too large.
    is_other_name = "max_completion_tokens" in named and over_long(400, fault.message) is None
    if refused == "max_tokens" and is_other_name:
        smaller["max_completion_tokens"] = body["max_tokens"]
    return smaller


def _classify(status: int, message: str) -> ProviderError | None:
    if status in (500, 501) and _NO_CHAT.search(message):
        return ProviderRefused(
            f"the server does not chat: {message}",
            hint="set expansion.base_url to a server with a chat model; ragx doctor tests it",
            details={"scope": "server"},
        )
    if over_long(status, message) is not None and not _REFUSED_FIELD.search(message):
        return InputTooLong(
            f"the server says that the prompt is too long for the model: {message}",
            hint=f"{_LARGER_CONTEXT}, or ask for less: --budget 1200",
            details={"status": status},
        )
    return None


def _reply(reply: object) -> Reply:
    choices = reply.get("choices") if isinstance(reply, dict) else None
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, dict) else None
    if not isinstance(first, dict) or not isinstance(message, dict):
        raise ProviderRefused("the server's reply holds no message")
    text = without_thoughts(_content(message.get("content")))
    if text:
        usage = reply.get("usage") if isinstance(reply, dict) else None
        read = usage.get("prompt_tokens") if isinstance(usage, dict) else None
        return Reply(
            text,
            cut_off=first.get("finish_reason") == "length",
            prompt_tokens=read if type(read) is int and read > 0 else None,
        )
    if message.get("refusal"):
        raise ProviderRefused("the model refused to answer")
    if first.get("finish_reason") == "length":
        raise ProviderRefused(
            "the model used up its tokens before it began to answer",
            hint="name a model that does not think first: ragx config set expansion.model NAME",
        )
    raise ProviderRefused("the model's reply is empty")


def _content(content: object) -> str:
    """The text of a message, whole or in parts."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    parts = (part.get("text") if isinstance(part, dict) else part for part in content)
    return "".join(part for part in parts if isinstance(part, str))


def _names(reply: object) -> tuple[str, ...]:
    listed = reply
    if isinstance(reply, dict):
        listed = reply.get("data", reply.get("models"))
    if not isinstance(listed, list):
        return ()
    names = (item.get("id") or item.get("name") for item in listed if isinstance(item, dict))
    return tuple(name for name in names if isinstance(name, str))

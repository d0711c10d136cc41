"""Reranking by any server with `/rerank`: llama-server, infinity, Jina's and Cohere's API, TEI.

They agree on what is asked and differ in how they answer: sorted or not, as logits or shares of 1,
with `relevance_score` or `score`, under /v1 or beside it. Scores are handed on as they are.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from itertools import islice

from ragx.errors import InputTooLong, ProviderError, ProviderRefused
from ragx.providers.base import Notice, RerankOptions, may_concern_one_text, no_notice
from ragx.providers.limits import over_long
from ragx.providers.retry import Clock
from ragx.providers.served import Served
from ragx.providers.tokens import estimate_tokens, halves, windows

__all__ = ["ServerReranker"]

_BATCH = 32  # what servers with a limit on documents take by default
_BATCH_CHARS = 64_000
_LEAST_CHARS = 128  # a window that is refused at this size is not what is too long
# Of passages up to this size, by the high estimate, and a question the smallest rerankers read all.
_SURELY_READ = 400
_END_CHARS = 80
_NO_MODEL = re.compile(
    r"model\b.{0,80}\b(?:not found|not exist|unknown|invalid|not loaded)"
    r"|(?:no such|unknown|invalid) model",
    re.IGNORECASE,
)
_NOISE = 1e-6  # of a score, at the least
_MARGIN = 0.8  # others have more tokens to a character
_TEXTS_WANTED = re.compile(r"\btexts\b", re.IGNORECASE)


class ServerReranker:
    """A served cross-encoder; nothing is sent, and nothing started, before the first question."""

    def __init__(
        self,
        options: RerankOptions,
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
        self._server = Served("rerank", "reranking", options, notice=notice, clock=clock)
        self.model = self._server.model
        self._place: str | None = None  # where /rerank was found
        self._documents = "documents"
        self._cut_at = 0  # characters of a passage that are read where the rest is cut in silence
        self._whole_tokens = _SURELY_READ

    @property
    def endpoint_notes(self) -> tuple[str, ...]:
        """What was started for it, in words for people."""
        return self._server.notes

    def scores(self, query: str, passages: Sequence[str]) -> list[float]:
        """Score passages against a question, in requests of at most 32.

        A passage that the server calls too long, or of which it reads the beginning only, is cut at
        white space into windows, and counts as the best of them. Of passages that fail together
        each is tried by itself.

        Returns:
            One finite number per passage, in order; [] for none.
        Raises:
            InputTooLong: even with a short passage it is too long: so is the question.
            ProviderUnavailable: nothing usable answers.
            ProviderRefused: the server said no, or does not give one number for each passage.
            ConfigError: what would have to be started is missing.
        """
        if not passages:
            return []
        limit = self._window_chars(query, max(passages, key=estimate_tokens))
        pieces = [windows(text, limit) if limit else [text] for text in passages]
        found: list[float] = []
        for batch in _batches([piece for parts in pieces for piece in parts]):
            found += self._scored(query, batch)
        each = iter(found)
        return [max(islice(each, len(parts))) for parts in pieces]

    def close(self) -> None:
        """Close the connections and end what was started."""
        self._server.close()

    def _window_chars(self, query: str, longest: str) -> int:
        """Characters of a passage that are surely read; 0 where all of the longest is.

        Some servers cut what is too long and say nothing. Then its end has no influence on the
        score, which takes one request to see.
        """
        size = estimate_tokens(longest)
        if self._cut_at or size <= self._whole_tokens:
            return self._cut_at
        text = longest
        try:
            while not self._reads_end(query, text):
                text = text[: len(text) // 2]
                if len(text) < _LEAST_CHARS:
                    break  # it says the same of everything: no sign of a limit
            else:
                if text is not longest:
                    self._cut_at = int(len(text) * _MARGIN)
        except InputTooLong:
            pass  # this one says so
        self._whole_tokens = size
        return self._cut_at

    def _reads_end(self, query: str, text: str) -> bool:
        other = text[:-_END_CHARS] + f" {query[:_END_CHARS]}".ljust(_END_CHARS, ".")
        # The same text twice: where a passage stands in a request may change its score a little.
        one, again, two = self._request(query, [text, text, other])
        return abs(two - one) > max(4 * abs(again - one), _NOISE * abs(one))

    def _scored(self, query: str, batch: Sequence[str]) -> list[float]:
        try:
            return self._request(query, batch)
        except ProviderError as fault:
            if not may_concern_one_text(fault):
                raise
            if len(batch) > 1:
                half = len(batch) // 2
                return [*self._scored(query, batch[:half]), *self._scored(query, batch[half:])]
            if not isinstance(fault, InputTooLong):
                raise
            if len(batch[0]) < 2 * _LEAST_CHARS:
                raise InputTooLong(
                    f"the question is too long for reranker {self.model!r}",
                    hint="ask a shorter question, or without --rerank",
                    details={"scope": "server"},
                ) from fault
            parts = [part for part in halves(batch[0]) if not part.isspace()]
        return [max(self._scored(query, parts))]

    def _request(self, query: str, batch: Sequence[str]) -> list[float]:
        if self._place is None:
            return self._find(query, batch)
        return self._ask(self._place, query, batch)

    def _find(self, query: str, batch: Sequence[str]) -> list[float]:
        """The first request: some have /rerank under /v1, others beside it."""
        place = ""
        try:
            found = self._ask(place, query, batch)
        except ProviderError as fault:
            if fault.details.get("status") != 404:
                raise
            place = "sibling"
            try:
                found = self._ask(place, query, batch)
            except ProviderError as other:
                raise (fault if other.details.get("status") == 404 else other) from None
        self._place = place
        return found

    def _ask(self, place: str, query: str, batch: Sequence[str]) -> list[float]:
        try:
            return self._post(place, query, batch)
        except ProviderRefused as fault:
            # One dialect has `texts` where the others have `documents`, and says so.
            missing = fault.details.get("status") in (400, 422) and _TEXTS_WANTED.search(
                fault.message
            )
            if not missing or self._documents == "texts":
                raise
        self._documents = "texts"
        try:
            return self._post(place, query, batch)
        except ProviderRefused:
            self._documents = "documents"
            raise

    def _post(self, place: str, query: str, batch: Sequence[str]) -> list[float]:
        body: dict[str, object] = {"query": query, self._documents: list(batch)}
        if self._documents == "documents":
            body["model"] = self.model
        return self._server.post(
            "/rerank",
            body,
            place=place,
            subject=f"model {self.model!r}",
            parse=lambda reply: _in_order(reply, len(batch)),
            classify=_classify,
        )


def _batches(passages: Sequence[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for passage in passages:
        if batch and (len(batch) == _BATCH or size + len(passage) > _BATCH_CHARS):
            yield batch
            batch, size = [], 0
        batch.append(passage)
        size += len(passage)
    if batch:
        yield batch


def _classify(status: int, message: str) -> ProviderError | None:
    said = f": {message}" if message else ""
    if status == 501:
        return ProviderRefused(
            f"the server does not rerank{said}",
            hint="start llama-server with --reranking, or set rerank.base_url to one that reranks",
            details={"scope": "server"},
        )
    if status == 404 or (status in (400, 422) and _NO_MODEL.search(message)):
        no_model = "model" in message.lower()
        return ProviderRefused(
            f"the server has no {'such model' if no_model else '/rerank'}{said}",
            hint="ragx config set rerank.model NAME"
            if no_model
            else "LM Studio and Ollama do not rerank: ragx config set rerank.provider llama-server",
            details={"scope": "server"},
        )
    return over_long(status, message)


def _in_order(reply: object, n: int) -> list[float]:
    """The scores of a reply in the order of the passages."""
    items = reply
    if isinstance(reply, dict):
        items = reply.get("results", reply.get("data"))
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise ProviderRefused("the server's reply holds no list of rerank scores")
    scores: dict[int, float] = {}
    for item in items:
        place, score = item.get("index"), item.get("relevance_score", item.get("score"))
        if type(place) is not int or not 0 <= place < n or place in scores:
            raise ProviderRefused("the server's reply numbers its rerank scores wrongly")
        if isinstance(score, bool) or not isinstance(score, int | float):
            raise ProviderRefused("a rerank score in the server's reply is not a number")
        try:
            number = float(score)
        except OverflowError:  # JSON bounds no integer
            number = math.inf
        if not math.isfinite(number):
            raise ProviderRefused("a rerank score in the server's reply is not finite")
        scores[place] = number
    if len(scores) != n:
        raise ProviderRefused(f"the server sent {len(scores)} rerank scores for {n} passages")
    return [scores[place] for place in range(n)]

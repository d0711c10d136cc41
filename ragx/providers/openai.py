"""Embeddings from any server that speaks OpenAI's `/embeddings`.

Only `model`, `input` and `encoding_format` are sent: servers refuse fields they do not know.
"""

from __future__ import annotations

import base64
import binascii
import re
import shlex
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Literal

from ragx.errors import (
    BadEmbedding,
    ConfigError,
    InputTooLong,
    ProviderError,
    ProviderRefused,
    ProviderUnavailable,
)
from ragx.providers.base import (
    EmbeddingOptions,
    Notice,
    may_concern_one_text,
    no_notice,
    prefix_fingerprint,
)
from ragx.providers.endpoint import Endpoint, EndpointOptions, is_gone, open_endpoint
from ragx.providers.http import ServerClient, check_address, check_key
from ragx.providers.limits import (
    MIN_PROBE_TOKENS,
    Learned,
    TextLimit,
    batch_refusal,
    find_limit,
    is_unknown_field,
    is_unknown_model,
    over_long,
    probe_text,
)
from ragx.providers.pacing import Sizes
from ragx.providers.retry import Clock, Kind, RetryPolicy
from ragx.providers.tokens import estimate_tokens, halves, rough_tokens, windows
from ragx.providers.vectors import mean_direction, unit_rows

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Result = npt.NDArray[np.float32] | ProviderError

__all__ = ["OpenAIEmbedder", "fingerprint"]

# As many as may be under way where the settings leave it open; see `pacing.Gate`.
_MOST_IN_FLIGHT = 32
# Calls beyond those that the server is given, so that the next one is ready when it answers.
_SPARE_WORKERS = 2
# As many texts as are in a request where the settings leave it open: in the very first one, in the
# next ones, and at the most.
_LEAST_TEXTS = 8
_USUAL_TEXTS = 32
_MOST_TEXTS = 256
# In rough tokens: 128 texts of 800. A smaller limit of the server is learned.
_REQUEST_TOKENS = 102_400
# Large-context models; a smaller limit is measured.
_CHUNK_TOKENS = 800
_SPECIAL_TOKENS = 2
# Some servers cut a long query in silence, so it is cut here, visibly, before that.
_QUERY_WINDOW_CHARS = 4096
_MIN_QUERY_WINDOW_CHARS = 128
# No limit of tokens is met by so short a text: a refusal of it means something else.
_MIN_PART_CHARS = 64
# Float noise between two answers for one text, at the least.
_NOISE = 1e-4
_LISTED = 5
_FIELD_REFUSED = "field_refused"
_NO_MODEL = "no_model"
_TIMEOUT = "provider_timeout"
_DIMENSION = "dimension_changed"


def fingerprint(options: EmbeddingOptions) -> str:
    """Name the vector space of a served model; asks nothing.

    The address is left out: the same model on another port gives the same vectors, and a model
    file in another directory, too.

    Raises:
        ConfigError: no model is named.
    """
    return f"openai:{_model_name(options)}:{prefix_fingerprint(options)}"


class OpenAIEmbedder:
    """A served embedding model; nothing is sent or started before the first text."""

    default_chunk_tokens = _CHUNK_TOKENS
    in_process = False

    def __init__(
        self,
        options: EmbeddingOptions,
        *,
        notice: Notice = no_notice,
        clock: Clock | None = None,
        policy: RetryPolicy | None = None,
    ) -> None:
        """Take settings.

        Args:
            options: address, model, key, prefixes, batch size, timeouts.
            notice: told what is started on the way.
            clock: for tests.
            policy: retries; None for the usual ones.
        Raises:
            ConfigError: model, address or key cannot be used.
        """
        self.fingerprint = fingerprint(options)
        self.model = _model_name(options)
        self.max_tokens = options.max_tokens
        self.dimension: int | None = None
        self._most_in_flight = max(1, options.max_in_flight or _MOST_IN_FLIGHT)
        self._options = options
        self._notice = notice
        self._clock = clock
        self._policy = policy
        self._lock = threading.Lock()
        self._learned = Learned()
        self._guessed = Learned()  # of its limits, what no refusal has named: for this run alone
        self._checking = threading.Lock()
        self._n_checks = 0
        self._answered = True
        self._asks_for_floats = True
        self._opening = threading.Lock()
        self._endpoint: Endpoint | None = None
        self._client: ServerClient | None = None
        self._closed = threading.Event()
        check_key(options.api_key, "embeddings")
        if options.provider != "llama-server" or options.base_url:
            check_address(options.base_url, "embeddings")

    @property
    def workers(self) -> int:
        """Calls worth making at once: slightly more than the server is given now."""
        if self._client is not None:
            return self._client.gate.limit + _SPARE_WORKERS
        return (self._options.max_in_flight or self._learned.in_flight or 1) + _SPARE_WORKERS

    @property
    def batch_size(self) -> int:
        """Texts per request now; fewer than the settings say where the server takes fewer."""
        if self._client is not None:
            size = self._client.gate.size
        else:
            sizes = self._sizes()
            size = sizes.least if sizes.tries_least else sizes.start
        return min(size, self._within("max_items") or size)

    @property
    def endpoint_notes(self) -> tuple[str, ...]:
        """What was found or started to reach the server; () before the first request."""
        return self._endpoint.notes if self._endpoint else ()

    @property
    def learned(self) -> Learned:
        """What the server has shown so far, without limits that are only guessed."""
        with self._lock:
            learned, client = self._learned, self._client
            if client is not None:
                in_flight, batch_size = client.gate.settled
                learned = replace(learned, in_flight=in_flight, batch_size=batch_size)
            return replace(learned, dimension=self.dimension or learned.dimension)

    def start_from(self, learned: Learned) -> None:
        """Keep to what an earlier run has learned; call it before the first request."""
        with self._lock:
            self._learned = learned

    def probe_limit(self, up_to_tokens: int = MIN_PROBE_TOKENS) -> TextLimit:
        """Find how many tokens the model reads of one text, and keep to it from now on.

        Texts of known length are sent: refusals are narrowed down, and whether the end of a text
        is read shows in the vector when only the end is changed. Three requests where there is no
        limit, seldom more than twelve otherwise.

        Args:
            up_to_tokens: what is longer is not tried.
        Raises:
            ProviderUnavailable: nothing usable answers.
            ProviderRefused: the server said no, to a short text, too.
            BadEmbedding: the replies hold no usable vectors.
        """
        import numpy as np

        vectors: dict[int, npt.NDArray[np.float32]] = {}
        noise: list[float] = []

        def takes(n_tokens: int) -> ProviderError | None:
            error = asked(n_tokens)
            if error is None or isinstance(error, InputTooLong):
                return error
            # Not a word about length: only if a short text passes is it about that, and only what
            # repeats is no fault that passes.
            repeats = isinstance(error, ProviderRefused)
            if not (repeats and vectors):
                self._request([probe_text(1)])
            return error if repeats else asked(n_tokens)

        def asked(n_tokens: int) -> ProviderError | None:
            try:
                vectors[n_tokens] = self._request([probe_text(n_tokens)])[0]
            except ProviderError as error:
                # A silent server costs too much time to ask it a dozen times.
                broken = error.details.get("scope") == "exchange" and error.code != _TIMEOUT
                if not broken and not may_concern_one_text(error):
                    raise
                return error
            return None

        def differs(n_tokens: int, place: int) -> bool:
            vector = vectors[n_tokens]
            if not noise:
                again = self._request([probe_text(n_tokens)])[0]
                noise.append(float(np.linalg.norm(again - vector)))
            changed = self._request([probe_text(n_tokens, place)])[0]
            return float(np.linalg.norm(changed - vector)) > max(4 * noise[0], _NOISE)

        read, truncates = find_limit(up_to_tokens, takes, differs)
        self.max_tokens = None if read is None else read + _SPECIAL_TOKENS
        return TextLimit(self.max_tokens, truncates, self.dimension or 0)

    def embed_documents(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Embed passages behind the document prefix, in requests that the server takes.

        Returns:
            (n, dimension) float32 unit rows; (0, dimension or 0) for no text.
        Raises:
            InputTooLong: the server says even of a short part of a text that it is too long.
            BadEmbedding: the reply does not hold one good vector per text.
            ProviderUnavailable: nothing usable answers.
            ProviderRefused: the server said no.
        """
        import numpy as np

        if not texts:
            return np.zeros((0, self.dimension or 0), np.float32)
        rows = []
        for result in self.embed_each(texts):
            if isinstance(result, ProviderError):
                raise result
            rows.append(result)
        return np.stack(rows)

    def embed_each(
        self, texts: Sequence[str], *, stop: threading.Event | None = None
    ) -> list[Result]:
        """Embed passages so that one that cannot be embedded fails alone.

        A text that is over the model's limit becomes the mean direction of its parts, weighted by
        length; which parts depends on the text and the server alone. How many texts or tokens the
        server takes at once is learned from its refusals.

        Args:
            texts: any number of passages.
            stop: when set, nothing more is tried.
        Returns:
            Per text, in order, its (dimension,) float32 unit vector or the error.
        """
        return self._each(texts, stop)[0]

    def embed_query(self, text: str) -> npt.NDArray[np.float32]:
        """Embed a question behind the query prefix.

        A question of more than 4,096 characters, or over the model's limit, is cut at white space
        into equal windows, each behind the prefix; their mean, weighted by length, is scaled to
        unit length.

        Returns:
            (dimension,) float32 unit vector.
        Raises:
            InputTooLong: even short windows are refused.
            BadEmbedding: the reply does not hold one good vector per window.
            ProviderUnavailable: nothing usable answers.
            ProviderRefused: the server said no.
        """
        prefix = self._options.query_prefix
        size = _QUERY_WINDOW_CHARS
        while True:
            pieces = windows(text, size)
            smaller = min(size, len(text)) // 2
            if smaller >= _MIN_QUERY_WINDOW_CHARS and any(
                self._is_over(prefix + piece) for piece in pieces
            ):
                size = smaller
                continue
            try:
                rows = self._query_rows([prefix + piece for piece in pieces])
            except InputTooLong:
                size = smaller
                if size < _MIN_QUERY_WINDOW_CHARS:
                    raise
                continue
            return mean_direction(rows, [max(1, len(piece)) for piece in pieces])

    def token_starts(self, text: str) -> Sequence[int] | None:
        """Return None: the server's tokenizer is unknown."""
        return None

    def count_tokens(self, text: str) -> int:
        """Estimate the tokens of a passage with its prefix, rather too high than too low."""
        return estimate_tokens(self._options.doc_prefix + text)

    def served_models(self) -> tuple[str, ...]:
        """Names of the models that the server lists; () where it lists none.

        Raises:
            ProviderError: the server failed.
        """
        return self._server().get("/models", subject="the list of models", parse=_names)

    def close(self) -> None:
        """Close the connections and stop what was started; requests waiting fail at once."""
        self._closed.set()
        # Not while a server is being started: `_server` looks at `_closed` when that is done.
        if self._client is not None:
            self._client.close()
        if self._endpoint is not None:
            self._endpoint.close()

    def _server(self) -> ServerClient:
        with self._opening:
            if self._client is not None:
                return self._client
            options = self._options
            if self._closed.is_set():
                raise ProviderUnavailable("the connection to the model's server was closed")
            self._endpoint = open_endpoint(
                EndpointOptions(
                    section="embeddings",
                    provider=options.provider,
                    role="embedding",
                    base_url=options.base_url,
                    model=options.model,
                    gguf=options.gguf,
                    server_bin=options.server_bin,
                    autostart=options.autostart,
                ),
                notice=self._notice,
            )
            self._client = ServerClient(
                self._endpoint.base_url,
                section="embeddings",
                api_key=options.api_key,
                timeout_s=options.timeout_s,
                connect_timeout_s=options.connect_timeout_s,
                max_connections=self._most_in_flight,
                adaptive=options.max_in_flight is None,
                start=self._learned.in_flight or None,
                sizes=self._sizes(),
                policy=self._policy,
                clock=self._clock,
            )
            if self._closed.is_set():
                self._client.close()
                self._endpoint.close()
            return self._client

    def _forgets(self, client: ServerClient) -> bool:
        """Whether the server has gone, with the run that had started it, and can be opened anew."""
        options = self._options
        with self._opening:
            if self._closed.is_set() or self._endpoint is None:
                return False
            if self._client is client:
                if not is_gone(
                    self._endpoint, provider=options.provider, autostart=options.autostart
                ):
                    return False
                client.close()
                self._client = None
            return True  # or another thread was faster

    def _sizes(self) -> Sizes:
        """Bounds of the texts in a request."""
        fixed, learned = self._options.batch_size, self._learned
        if fixed is not None:
            return Sizes(max(1, fixed), max(1, fixed), max(1, fixed))
        most = min(_MOST_TEXTS, self._within("max_items") or _MOST_TEXTS)
        return Sizes(
            least=min(_LEAST_TEXTS, most),
            start=min(learned.batch_size or _USUAL_TEXTS, most),
            most=most,
            tries_least=not learned.batch_size,
            most_weight=self._within("max_request_tokens") or _REQUEST_TOKENS,
        )

    def _each(
        self, texts: Sequence[str], stop: threading.Event | None
    ) -> tuple[list[Result], bool]:
        """Results, and whether all of them came with one request that was not refused."""
        results: list[Result] = []
        n_parts = 0
        direct = True
        while len(results) < len(texts):
            part = self._fitting(texts[len(results) :])
            found, at_once = self._ask(part, stop)
            results += found
            n_parts += 1
            direct &= at_once
        return results, direct and n_parts == 1

    def _fitting(self, texts: Sequence[str]) -> Sequence[str]:
        """As many of the first texts as one request may hold; a text over the limit goes alone."""
        budget = self._within("max_request_tokens") or _REQUEST_TOKENS
        most = self.batch_size
        spent = 0
        for n, text in enumerate(texts[:most]):
            passage = self._options.doc_prefix + text
            spent += rough_tokens(passage)
            if self._is_over(passage):
                return texts[: max(1, n)]
            if n and spent > budget:
                return texts[:n]
        return texts[:most]

    def _is_over(self, text: str) -> bool:
        return self.max_tokens is not None and estimate_tokens(text) > self.max_tokens

    def _ask(self, texts: Sequence[str], stop: threading.Event | None) -> tuple[list[Result], bool]:
        """Send texts with one request, or, where that fails for one of them, with several."""
        prefix = self._options.doc_prefix
        if len(texts) == 1 and self._is_over(prefix + texts[0]) and _can_be_cut(texts[0]):
            return [self._in_parts(texts[0], _too_long(len(texts[0])))], False
        try:
            return list(self._sent([prefix + text for text in texts], stop)), True
        except ProviderError as error:
            if not may_concern_one_text(error) or (stop is not None and stop.is_set()):
                return [error] * len(texts), False
            if len(texts) == 1:
                return [self._in_parts(texts[0], error) if _is_refusal(error) else error], False
            return self._split(texts, error, stop), False

    def _sent(
        self, passages: Sequence[str], stop: threading.Event | None = None
    ) -> npt.NDArray[np.float32]:
        """The vectors of one request; its error says whether it is about the passages."""
        while True:
            try:
                return self._request(passages)
            except ProviderError as fault:
                if stop is not None and stop.is_set():
                    raise
                error = self._judged(fault)
                if error is fault:
                    raise
                # Others had opened the circuit; it is closed again, and these were not sent yet.
                if error.details.get("circuit") != "open":
                    raise error from fault.__cause__

    def _judged(self, error: ProviderError) -> ProviderError:
        """The error, as one of the texts that were asked for if the server answers for others.

        Silence, a connection that breaks and vectors of another length may be due to either: a
        short text that is fine shows which. So n texts of which one makes the server hang cost at
        most 2 + log2(n) timeouts, see `once` in `_request`, and not the whole run.
        """
        unclear = error.details.get("scope") == "exchange" or error.code == _DIMENSION
        known_dead = error.details.get("circuit") == "open" and not self._answered
        if not unclear or known_dead or not self._still_answers():
            return error
        return type(error)(
            f"{error.message}; for other texts it answers",
            hint=error.hint,
            code=error.code,
            details={**error.details, "scope": "input", "unclear": True},
        )

    def _still_answers(self) -> bool:
        """Whether a short text gets its vector; those who ask at the same time share the answer."""
        before = self._n_checks
        with self._checking:
            if self._n_checks == before:
                try:
                    self._request([probe_text(1)], trial=True)
                    self._answered = True
                except ProviderError:
                    self._answered = False
                self._n_checks += 1
            return self._answered

    def _split(
        self, texts: Sequence[str], error: ProviderError, stop: threading.Event | None
    ) -> list[Result]:
        """Go on after several texts have failed together."""
        told = error.details.get("max_items")
        if isinstance(told, int):
            # Who refuses what he has named himself is not taken at his word again, or each text
            # would cost a request.
            named = not 0 < len(texts) <= self._learned.max_items
            most = told if named else min(told, len(texts) // 2)
            self._learn(Learned(max_items=most), named=named)
            return self._each(texts, stop)[0]
        bad = error.details.get("rows")
        if isinstance(bad, list) and 0 < len(bad) < len(texts):
            return self._around(texts, bad, stop)
        middle = len(texts) // 2
        first, one = self._each(texts[:middle], stop)
        second, other = self._each(texts[middle:], stop)
        if one and other and "unclear" not in error.details:
            # Each text is fine, it was too many of them.
            if isinstance(error, InputTooLong):
                sizes = [
                    sum(rough_tokens(self._options.doc_prefix + text) for text in half)
                    for half in (texts[:middle], texts[middle:])
                ]
                named = bool(error.details.get("names_number"))
                self._learn(Learned(max_request_tokens=max(sizes)), named=named)
            else:
                self._learn(Learned(max_items=len(texts) - middle), named=False)
        return first + second

    def _around(
        self, texts: Sequence[str], bad: Sequence[int], stop: threading.Event | None
    ) -> list[Result]:
        """Ask again for the texts whose vectors were unusable, one by one, and for the others."""
        good = [at for at in range(len(texts)) if at not in bad]
        results = dict(zip(good, self._each([texts[at] for at in good], stop)[0], strict=True))
        for at in bad:
            results[at] = self._ask([texts[at]], stop)[0][0]
        return [results[at] for at in range(len(texts))]

    def _in_parts(self, text: str, error: ProviderError) -> Result:
        """The vector of a text that is refused as a whole, or the error if parts are refused."""
        if not _can_be_cut(text):
            return error
        rows: list[npt.NDArray[np.float32]] = []
        lengths: list[int] = []
        waiting = list(reversed(halves(text)))
        try:
            while waiting:
                part = waiting.pop()
                if part.isspace():
                    continue
                row = self._part(part)
                if row is not None:
                    rows.append(row)
                    lengths.append(len(part))
                elif _can_be_cut(part):
                    waiting += reversed(halves(part))
                else:
                    return error
            return mean_direction(_stacked(rows), lengths)
        except ProviderError as fault:
            return fault

    def _part(self, part: str) -> npt.NDArray[np.float32] | None:
        """The vector of a part; None if it is refused, too."""
        passage = self._options.doc_prefix + part
        if self._is_over(passage) and _can_be_cut(part):
            return None
        try:
            row: npt.NDArray[np.float32] = self._sent([passage])[0]
        except ProviderError as error:
            if may_concern_one_text(error) and _is_refusal(error):
                return None
            raise
        return row

    def _learn(self, limits: Learned, *, named: bool) -> None:
        """Keep within limits from now on; later runs, too, if the server has named them."""
        with self._lock:
            old = self._learned if named else self._guessed
            new = replace(
                old,
                max_items=_smaller(old.max_items, limits.max_items),
                max_request_tokens=_smaller(old.max_request_tokens, limits.max_request_tokens),
            )
            if named:
                self._learned = new
            else:
                self._guessed = new
        if limits.max_items and self._client is not None:
            self._client.gate.keep_to(limits.max_items)

    def _within(self, limit: Literal["max_items", "max_request_tokens"]) -> int:
        """A limit of the server, named or guessed; 0 if none is known."""
        return _smaller(getattr(self._learned, limit), getattr(self._guessed, limit))

    def _query_rows(self, passages: Sequence[str]) -> npt.NDArray[np.float32]:
        # One by one: a batch may exceed a limit that each of its texts keeps.
        return _stacked([self._request([passage])[0] for passage in passages])

    def _request(self, inputs: Sequence[str], *, trial: bool = False) -> npt.NDArray[np.float32]:
        def parse(reply: object) -> npt.NDArray[np.float32]:
            rows = unit_rows(_rows(reply, len(inputs)))
            self._check_dimension(rows.shape[1])
            return rows

        def classify(status: int, message: str) -> ProviderError | None:
            if with_format and is_unknown_field(status, message):
                return ProviderRefused(message, code=_FIELD_REFUSED, details={"scope": "input"})
            if is_unknown_model(status, message):
                return ProviderRefused(message, code=_NO_MODEL, details={"scope": "server"})
            return batch_refusal(status, message, len(inputs)) or over_long(status, message)

        weight = sum(map(rough_tokens, inputs))
        # Halves are likelier to be answered in time than the same again.
        once: tuple[Kind, ...] = ("timeout",) if len(inputs) > 1 else ()
        while True:
            with_format = self._asks_for_floats
            body: dict[str, object] = {"model": self.model, "input": list(inputs)}
            if with_format:
                body["encoding_format"] = "float"
            client = self._server()
            try:
                return client.post(
                    "/embeddings",
                    body,
                    subject=f"model {self.model!r}",
                    parse=parse,
                    classify=classify,
                    weight=weight,
                    size=len(inputs),
                    once=once,
                    trial=trial,
                )
            except ProviderUnavailable:
                if not self._forgets(client):
                    raise
            except ProviderRefused as error:
                if error.code == _FIELD_REFUSED:
                    self._asks_for_floats = False
                elif error.code == _NO_MODEL or error.details.get("status") == 404:
                    raise self._without_model(error) from error.__cause__
                else:
                    raise

    def _without_model(self, error: ProviderRefused) -> ProviderRefused:
        """The refusal of a model, with those that the server does have."""
        try:
            names = self.served_models()
        except ProviderError:
            names = ()
        if error.code != _NO_MODEL and (not names or self.model in names):
            return error
        said = f": {error.message}" if error.code == _NO_MODEL and error.message else ""
        if not names:
            listed, hint = (
                "",
                "load the model on the server, or: ragx config set embeddings.model NAME",
            )
        else:
            from difflib import get_close_matches

            near = get_close_matches(self.model, names, n=1, cutoff=0.0) or names
            more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
            listed = f"; it has {', '.join(names[:_LISTED])}{more}"
            hint = f"ragx config set embeddings.model {shlex.quote(near[0])}"
        return ProviderRefused(
            f"the server has no model {self.model!r}{listed}{said}",
            hint=hint,
            code=_NO_MODEL,
            details={**error.details, "models": list(names), "scope": "server"},
        )

    def _check_dimension(self, dimension: int) -> None:
        with self._lock:
            if self.dimension is None:
                self.dimension = dimension
            elif self.dimension != dimension:
                raise BadEmbedding(
                    f"model {self.model!r} answers with {dimension} numbers, "
                    f"earlier with {self.dimension}",
                    code="dimension_changed",
                    hint="was another model loaded on the server? then: ragx index --no-cache",
                    # No other text would fare better: these are two vector spaces.
                    details={"scope": "server"},
                )


def _model_name(options: EmbeddingOptions) -> str:
    if options.model:
        return options.model
    if options.provider == "llama-server" and options.gguf:
        return PurePath(options.gguf).name
    key = "gguf FILE" if options.provider == "llama-server" else "model NAME"
    raise ConfigError(
        f"embeddings.{key.partition(' ')[0]} is not set",
        hint=f"ragx config set embeddings.{key}",
    )


def _can_be_cut(text: str) -> bool:
    return len(text) >= 2 * _MIN_PART_CHARS


def _is_refusal(error: ProviderError) -> bool:
    """Whether a single text was refused, in whatever words: a failing server is another matter, as
    the vector of a text must not depend on a passing fault."""
    return isinstance(error, InputTooLong | ProviderRefused)


def _smaller(one: int, other: int) -> int:
    """The smaller of two limits, 0 being none."""
    return min((limit for limit in (one, other) if limit), default=0)


def _too_long(n_chars: int) -> InputTooLong:
    return InputTooLong(
        f"a text of {n_chars} characters is over the model's limit",
        hint="ragx index --full measures the model's limit again, and keeps to it",
    )


def _stacked(rows: Sequence[npt.NDArray[np.float32]]) -> npt.NDArray[np.float32]:
    import numpy as np

    return np.stack(rows)


def _names(reply: object) -> tuple[str, ...]:
    """Model names of a reply to GET /models: `data[].id`, or a bare list of them."""
    data = reply.get("data", reply.get("models")) if isinstance(reply, dict) else reply
    if not isinstance(data, list):
        return ()
    found = (item.get("id", item.get("name")) if isinstance(item, dict) else item for item in data)
    return tuple(re.sub(r"[^ -~]", "?", name) for name in found if isinstance(name, str))


def _rows(reply: object, n_expected: int) -> npt.NDArray[np.float32]:
    """Take the vectors out of a reply, in the order of the texts; (n, d) float32."""
    import numpy as np

    data = reply.get("data") if isinstance(reply, dict) else None
    if not isinstance(data, list) or not all(isinstance(item, dict) for item in data):
        raise BadEmbedding("the server's reply holds no list of embeddings")
    if len(data) != n_expected:
        raise BadEmbedding(f"the server sent {len(data)} embeddings for {n_expected} texts")
    places = [item.get("index") for item in data]
    if all(place is None for place in places):
        places = list(range(n_expected))
    if any(type(place) is not int for place in places) or sorted(places) != list(range(n_expected)):
        raise BadEmbedding("the server's reply numbers its embeddings wrongly")
    embeddings = [item.get("embedding") for item in data]
    table = _table(embeddings)
    if table is not None:
        return table if places == list(range(n_expected)) else _in_order(table, places)
    vectors = [_vector(embedding) for embedding in embeddings]
    lengths = {len(vector) for vector in vectors}
    if len(lengths) != 1 or 0 in lengths:
        raise BadEmbedding(f"the server's embeddings differ in length: {sorted(lengths)}")
    return _in_order(np.stack(vectors), places)


def _in_order(table: npt.NDArray[np.float32], places: Sequence[int]) -> npt.NDArray[np.float32]:
    import numpy as np

    rows = np.empty_like(table)
    rows[list(places)] = table
    return rows


def _table(embeddings: Sequence[object]) -> npt.NDArray[np.float32] | None:
    """All embeddings at once, where they are lists of as many plain numbers: the usual case."""
    import numpy as np

    if not all(type(embedding) is list and embedding for embedding in embeddings):
        return None
    try:
        with np.errstate(over="ignore"):
            table = np.array(embeddings, dtype=np.float64).astype(np.float32)
    except (TypeError, ValueError, OverflowError):
        return None
    return table if table.ndim == 2 else None


def _vector(embedding: object) -> npt.NDArray[np.float32]:
    """Read one embedding, a list of numbers or base64 of little-endian float32."""
    import numpy as np

    try:
        if isinstance(embedding, str):
            return np.frombuffer(base64.b64decode(embedding, validate=True), dtype="<f4")
        # JSON has no NaN, so some servers send null; it becomes NaN and is refused as such.
        with np.errstate(over="ignore"):
            vector = np.asarray(embedding, dtype=np.float64).astype(np.float32)
    except (TypeError, ValueError, OverflowError, binascii.Error) as exc:
        raise BadEmbedding("an embedding in the server's reply is not a list of numbers") from exc
    if vector.ndim != 1:
        raise BadEmbedding("an embedding in the server's reply is not a flat list of numbers")
    return vector

"""Embeddings from any server that speaks OpenAI's `/embeddings`.

Only `model`, `input` and `encoding_format` are sent: servers refuse fields they do not know.
"""

from __future__ import annotations

import base64
import binascii
import re
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ragx.errors import BadEmbedding, ConfigError, InputTooLong
from ragx.providers.base import EmbeddingOptions, prefix_fingerprint
from ragx.providers.http import ServerClient
from ragx.providers.retry import Clock
from ragx.providers.tokens import estimate_tokens, windows
from ragx.providers.vectors import mean_direction, unit_rows

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["OpenAIEmbedder", "fingerprint", "over_long"]

# Large-context models; a smaller limit shows as InputTooLong.
_CHUNK_TOKENS = 800
# Some servers cut a long query in silence, so it is cut here, visibly, before that.
_QUERY_WINDOW_CHARS = 4096
_MIN_QUERY_WINDOW_CHARS = 128

_LONG_STATUSES = frozenset({400, 413, 422, 500})
_LONG_WORDS = re.compile(
    r"context[_ ](?:length|size|window)|maximum (?:context|sequence|input) |"
    r"(?:token|input|prompt|sequence|length|content)s?\b.{0,80}"
    r"(?:too (?:large|long|many|big)|exceed|longer|larger|greater|overflow|less than|at most)|"
    r"(?:too (?:large|long|many|big)|exceed|longer than|larger than|reduce|maximum|limit of).{0,80}"
    r"\b(?:token|input|prompt|sequence|length|context)|"
    r"physical batch size",
    re.IGNORECASE | re.DOTALL,
)


def fingerprint(options: EmbeddingOptions) -> str:
    """Name the vector space of a served model; asks nothing.

    The address is left out: the same model on another port gives the same vectors.

    Raises:
        ConfigError: no model is named.
    """
    if not options.model:
        raise ConfigError(
            "embeddings.model is not set", hint="ragx config set embeddings.model NAME"
        )
    return f"openai:{options.model}:{prefix_fingerprint(options)}"


def over_long(status: int, message: str) -> InputTooLong | None:
    """Recognise the many ways in which servers say that an input has too many tokens.

    Args:
        status: HTTP status; only 400, 413, 422 and 500 can mean it.
        message: the server's words.
    Returns:
        The error to raise, or None.
    """
    if status not in _LONG_STATUSES:
        return None
    if status != 413 and not _LONG_WORDS.search(message):
        return None
    said = f": {message}" if message else f" (status {status})"
    return InputTooLong(
        f"the server says that the input is too long{said}",
        hint="make chunking.size_tokens smaller",
        details={"status": status},
    )


class OpenAIEmbedder:
    """A served embedding model; nothing is sent before the first text."""

    max_tokens: int | None = None
    default_chunk_tokens = _CHUNK_TOKENS
    in_process = False

    def __init__(self, options: EmbeddingOptions, *, clock: Clock | None = None) -> None:
        """Take settings.

        Args:
            options: address, model, key, prefixes, batch size, timeouts.
            clock: for tests.
        Raises:
            ConfigError: model, address or key cannot be used.
        """
        self.fingerprint = fingerprint(options)
        self.model = options.model
        self.dimension: int | None = None
        self.workers = max(1, options.max_in_flight)
        self.batch_size = max(1, options.batch_size)
        self._options = options
        self._dimension_lock = threading.Lock()
        self._server = ServerClient(
            options.base_url,
            section="embeddings",
            api_key=options.api_key,
            timeout_s=options.timeout_s,
            connect_timeout_s=options.connect_timeout_s,
            max_connections=self.workers,
            clock=clock,
        )

    def embed_documents(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Embed passages behind the document prefix, in requests of at most `batch_size`.

        Returns:
            (n, dimension) float32 unit rows; (0, dimension or 0) for no text.
        Raises:
            InputTooLong: the server says a text, or all of them together, have too many tokens.
            BadEmbedding: the reply does not hold one good vector per text.
            ProviderUnavailable: nothing usable answers.
            ProviderRefused: the server said no.
        """
        import numpy as np

        if not texts:
            return np.zeros((0, self.dimension or 0), np.float32)
        prefix = self._options.doc_prefix
        parts = [
            self._request([prefix + text for text in texts[i : i + self.batch_size]])
            for i in range(0, len(texts), self.batch_size)
        ]
        return np.concatenate(parts)

    def embed_query(self, text: str) -> npt.NDArray[np.float32]:
        """Embed a question behind the query prefix.

        A question of more than 4,096 characters, or one the server calls too long, is cut at
        white space into equal windows, each behind the prefix; their mean, weighted by length, is
        scaled to unit length.

        Returns:
            (dimension,) float32 unit vector.
        Raises:
            InputTooLong: even short windows are refused.
            BadEmbedding: the reply does not hold one good vector per window.
            ProviderUnavailable: nothing usable answers.
            ProviderRefused: the server said no.
        """
        size = _QUERY_WINDOW_CHARS
        while True:
            pieces = windows(text, size)
            try:
                rows = self._query_rows(pieces)
            except InputTooLong:
                size = min(size, len(text)) // 2
                if size < _MIN_QUERY_WINDOW_CHARS:
                    raise
                continue
            return mean_direction(rows, [max(1, len(piece)) for piece in pieces])

    def token_starts(self, text: str) -> Sequence[int] | None:
        """Return None: the server's tokenizer is unknown."""
        return None

    def count_tokens(self, text: str) -> int:
        """Estimate the tokens of a passage with its prefix."""
        return estimate_tokens(self._options.doc_prefix + text)

    def close(self) -> None:
        """Close the connections; requests waiting for a retry fail at once."""
        self._server.close()

    def _query_rows(self, pieces: Sequence[str]) -> npt.NDArray[np.float32]:
        import numpy as np

        prefix = self._options.query_prefix
        # One by one: a batch may exceed a limit that each of its texts keeps.
        return np.concatenate([self._request([prefix + piece]) for piece in pieces])

    def _request(self, inputs: Sequence[str]) -> npt.NDArray[np.float32]:
        def parse(reply: object) -> npt.NDArray[np.float32]:
            rows = unit_rows(_rows(reply, len(inputs)))
            self._check_dimension(rows.shape[1])
            return rows

        return self._server.post(
            "/embeddings",
            {"model": self.model, "input": list(inputs), "encoding_format": "float"},
            subject=f"model {self.model!r}",
            parse=parse,
            classify=over_long,
        )

    def _check_dimension(self, dimension: int) -> None:
        with self._dimension_lock:
            if self.dimension is None:
                self.dimension = dimension
            elif self.dimension != dimension:
                raise BadEmbedding(
                    f"model {self.model!r} answers with {dimension} numbers, "
                    f"earlier with {self.dimension}",
                    code="dimension_changed",
                    hint="was another model loaded on the server? then: ragx index --full",
                )


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
    vectors = [_vector(item.get("embedding")) for item in data]
    lengths = {len(vector) for vector in vectors}
    if len(lengths) != 1 or 0 in lengths:
        raise BadEmbedding(f"the server's embeddings differ in length: {sorted(lengths)}")
    rows = np.empty((n_expected, lengths.pop()), np.float32)
    for place, vector in zip(places, vectors, strict=True):
        rows[place] = vector
    return rows


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

"""What ragx asks of anything that turns text into vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from ragx.errors import BadEmbedding, InputTooLong, ProviderError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Vectors = npt.NDArray[np.float32]

__all__ = ["Embedder", "EmbeddingOptions", "may_concern_one_text", "prefix_fingerprint"]


@dataclass(frozen=True, slots=True)
class EmbeddingOptions:
    """Settings of an embedder, as the `[embeddings]` section gives them.

    `mode` is for the built-in model only: "dyn", "wo", or "" for what suits this CPU. An existing
    index passes the mode it was built with.
    """

    provider: str = "builtin"
    base_url: str = ""
    model: str = ""
    doc_prefix: str = ""
    query_prefix: str = ""
    batch_size: int = 32
    api_key: str | None = field(default=None, repr=False)
    timeout_s: float = 60.0
    connect_timeout_s: float = 5.0
    max_in_flight: int = 4
    mode: str = ""


class Embedder(Protocol):
    """A model that maps texts to unit vectors; safe to call from `workers` threads at once."""

    @property
    def fingerprint(self) -> str:
        """Everything that decides the vector of a text: equal strings, equal vector space."""

    @property
    def model(self) -> str:
        """The model's name, as shown to people."""

    @property
    def dimension(self) -> int | None:
        """Length of a vector; None until the first reply of a server."""

    @property
    def max_tokens(self) -> int | None:
        """Tokens one text may have, special tokens and prefix included; None if unknown."""

    @property
    def default_chunk_tokens(self) -> int:
        """The chunk size that suits the model when the user leaves it open."""

    @property
    def workers(self) -> int:
        """How many `embed_documents` calls are worth making at once."""

    @property
    def batch_size(self) -> int:
        """How many texts one `embed_documents` call should hold."""

    @property
    def in_process(self) -> bool:
        """Whether calls run native code here: they end soon, and must end before Python does."""

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Embed passages, each behind the document prefix.

        Returns:
            (n, dimension) float32 unit rows in the order of `texts`; n may be 0.
        Raises:
            InputTooLong: a text is over the model's limit; nothing is ever cut.
            ProviderError: the model or its server failed.
        """

    def embed_query(self, text: str) -> Vectors:
        """Embed a question behind the query prefix; a long one as the mean of its windows.

        Returns:
            (dimension,) float32 unit vector.
        Raises:
            ProviderError: the model or its server failed.
        """

    def token_starts(self, text: str) -> Sequence[int] | None:
        """Character offsets at which the model's tokens of `text` start, ascending.

        Neither special tokens nor a prefix are counted. None if the tokenizer is unknown.
        """

    def count_tokens(self, text: str) -> int:
        """Tokens of a passage with prefix and special tokens; estimated if need be."""

    def close(self) -> None:
        """Release connections and memory; calls still running fail soon."""


def may_concern_one_text(error: ProviderError) -> bool:
    """Tell whether a batch failed because of its content, so that its halves may succeed."""
    scope = error.details.get("scope")
    if scope is not None:
        return bool(scope == "input")
    return isinstance(error, InputTooLong | BadEmbedding)


def prefix_fingerprint(options: EmbeddingOptions) -> str:
    """Return the part of a fingerprint that the two prefixes make."""
    return f"doc={options.doc_prefix!r}:query={options.query_prefix!r}"

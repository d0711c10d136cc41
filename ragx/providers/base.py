"""What ragx asks of anything that turns text into vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from ragx.errors import BadEmbedding, InputTooLong, ProviderError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Vectors = npt.NDArray[np.float32]

__all__ = [
    "Embedder",
    "EmbeddingOptions",
    "ExpansionOptions",
    "Generator",
    "Notice",
    "Reply",
    "RerankOptions",
    "Reranker",
    "may_concern_one_text",
    "no_notice",
    "prefix_fingerprint",
]

Notice = Callable[[str], None]
"""Takes one line about what was started on the user's behalf; called from any thread."""


def no_notice(_line: str) -> None:
    """Tell nobody."""


@dataclass(frozen=True, slots=True)
class EmbeddingOptions:
    """Settings of an embedder, as the `[embeddings]` section gives them.

    `batch_size` and `max_in_flight` None let the client find out what the server can do. `mode` is
    for the built-in model only: "dyn", "wo", or "" for what suits this CPU. `max_tokens` is the
    limit of a served model that an index was built with; None where none is known. An existing
    index passes both as it was built with.
    """

    provider: str = "builtin"
    base_url: str = ""
    model: str = ""
    doc_prefix: str = ""
    query_prefix: str = ""
    batch_size: int | None = None
    api_key: str | None = field(default=None, repr=False)
    timeout_s: float = 60.0
    connect_timeout_s: float = 5.0
    max_in_flight: int | None = None
    autostart: bool = True
    gguf: str = ""
    server_bin: str = ""
    mode: str = ""
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class ExpansionOptions:
    """Settings of the chat model that rewords questions, as `[expansion]` gives them."""

    provider: str = "openai"
    base_url: str = ""
    model: str = ""
    variants: int = 3
    hyde: bool = True
    api_key: str | None = field(default=None, repr=False)
    timeout_s: float = 120.0
    connect_timeout_s: float = 5.0
    autostart: bool = True
    gguf: str = ""
    server_bin: str = ""


@dataclass(frozen=True, slots=True)
class RerankOptions:
    """Settings of a reranker, as `[rerank]` gives them."""

    provider: str = "sentence-transformers"
    base_url: str = ""
    model: str = ""
    api_key: str | None = field(default=None, repr=False)
    timeout_s: float = 60.0
    connect_timeout_s: float = 5.0
    autostart: bool = True
    gguf: str = ""
    server_bin: str = ""


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
        """How many `embed_documents` calls are worth making at once; may change on the way."""

    @property
    def batch_size(self) -> int:
        """How many texts one `embed_documents` call should hold; may change on the way."""

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


class Reranker(Protocol):
    """A cross-encoder: reads a question and a passage together and says how well they fit."""

    @property
    def model(self) -> str:
        """The model's name, as shown to people."""

    def scores(self, query: str, passages: Sequence[str]) -> list[float]:
        """Score passages against a question; a passage over the model's limit counts as the best
        of its windows, none is cut.

        Returns:
            One finite number per passage, in order; higher is better. Scales differ between
            models and engines: compare the scores of one call only.
        Raises:
            ProviderError: the model or its server failed.
            MissingDependency: the engine is not installed.
        """

    def close(self) -> None:
        """Release connections, memory and what was started."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What a chat model answered.

    Args:
        text: without what it thought aloud.
        cut_off: whether it ran out of tokens before its end.
        prompt_tokens: what the server says that it read; None where it does not say.
    """

    text: str
    cut_off: bool = False
    prompt_tokens: int | None = None


class Generator(Protocol):
    """A chat model."""

    @property
    def model(self) -> str:
        """The model's name, as shown to people."""

    def complete(
        self, system: str, prompt: str, *, max_tokens: int, temperature: float = 0.0
    ) -> str:
        """Answer one prompt; thinking text that the server sends apart is left out.

        Raises:
            ProviderError: the model or its server failed, or the reply holds no text.
        """

    def chat(
        self,
        system: str,
        prompt: str,
        *,
        max_tokens: int,
        temperature: float = 0.0,
        on_text: Callable[[str], None] | None = None,
    ) -> Reply:
        """Answer one prompt, as `complete`, and say how it went.

        Args:
            on_text: called with pieces of the answer as they come, where the server sends any.
        Raises:
            InputTooLong: the server says that the prompt is too long for the model.
            ProviderError: as `complete`.
        """

    def models(self) -> tuple[str, ...]:
        """Names that the server lists; () where it lists none.

        Raises:
            ProviderError: the server failed.
        """

    def close(self) -> None:
        """Release connections and what was started."""


def may_concern_one_text(error: ProviderError) -> bool:
    """Tell whether a batch failed because of its content, so that its halves may succeed."""
    scope = error.details.get("scope")
    if scope is not None:
        return bool(scope == "input")
    return isinstance(error, InputTooLong | BadEmbedding)


def prefix_fingerprint(options: EmbeddingOptions) -> str:
    """Return the part of a fingerprint that the two prefixes make."""
    return f"doc={options.doc_prefix!r}:query={options.query_prefix!r}"

"""An embedder without a model, for tests that need speed and sameness, not meaning."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ragx.errors import InputTooLong, ProviderError
from ragx.providers.base import EmbeddingOptions, prefix_fingerprint
from ragx.providers.vectors import unit_rows

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["HashEmbedder"]

_WORD = re.compile(r"\w+|[^\w\s]")


class HashEmbedder:
    """Counts hashed words: texts that share words have a positive cosine, others about zero.

    A token is a word or a punctuation mark. `calls` lists the texts of every request, in order.
    """

    model = "hash"
    default_chunk_tokens = 200
    in_process = True

    def __init__(
        self,
        options: EmbeddingOptions | None = None,
        *,
        dimension: int = 256,
        max_tokens: int | None = None,
        workers: int = 2,
        batch_size: int = 8,
        fail: Callable[[str], ProviderError | None] | None = None,
    ) -> None:
        """Take settings.

        Args:
            options: only the prefixes matter.
            dimension: length of the vectors.
            max_tokens: limit including two imaginary special tokens.
            workers: see Embedder.
            batch_size: see Embedder.
            fail: given a passage, the error that its batch shall raise.
        """
        self._options = options or EmbeddingOptions(provider="hash")
        self._fail = fail
        self.dimension: int | None = dimension
        self._n_components = dimension
        self.max_tokens = max_tokens
        self.workers = workers
        self.batch_size = batch_size
        self.fingerprint = f"hash:{dimension}:{prefix_fingerprint(self._options)}"
        self.calls: list[tuple[str, ...]] = []

    def embed_documents(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return (n, dimension) float32 unit rows.

        Raises:
            InputTooLong: a text is over `max_tokens`.
            ProviderError: `fail` said so.
        """
        import numpy as np

        self.calls.append(tuple(texts))
        for text in texts:
            error = self._fail(text) if self._fail else None
            if error is not None:
                raise error
            if self.max_tokens is not None and self.count_tokens(text) > self.max_tokens:
                raise InputTooLong(f"a text has more than {self.max_tokens} tokens")
        if not texts:
            return np.zeros((0, self._n_components), np.float32)
        return unit_rows([self._counts(self._options.doc_prefix + text) for text in texts])

    def embed_query(self, text: str) -> npt.NDArray[np.float32]:
        """Return a (dimension,) float32 unit vector; a query has no limit."""
        row: npt.NDArray[np.float32] = unit_rows([self._counts(self._options.query_prefix + text)])[
            0
        ]
        return row

    def token_starts(self, text: str) -> Sequence[int]:
        """Return where words and punctuation marks start."""
        return [match.start() for match in _WORD.finditer(text)]

    def count_tokens(self, text: str) -> int:
        """Count words and punctuation marks of prefix and text, and two special tokens."""
        return len(self.token_starts(self._options.doc_prefix + text)) + 2

    def close(self) -> None:
        """Do nothing."""

    def _counts(self, text: str) -> list[float]:
        # The small constant gives a text without words a direction.
        counts = [1e-3] * self._n_components
        for word in _WORD.findall(text.lower()):
            counts[zlib.crc32(word.encode("utf-8", "replace")) % self._n_components] += 1.0
        return counts

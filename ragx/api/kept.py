"""An embedder that stays loaded from one indexing run to the next."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ragx.providers.base import Embedder

__all__ = ["KeptEmbedder"]


class KeptEmbedder:
    """Opens an embedder once and hands it out again; for one thread."""

    def __init__(self) -> None:
        self._embedder: Embedder | None = None

    def take(self, open_it: Callable[[], Embedder | None]) -> Embedder | None:
        """The embedder at hand, or one opened now; None where `open_it` gives none."""
        if self._embedder is None:
            self._embedder = open_it()
        return self._embedder

    def close(self) -> None:
        """Release it; the next `take` opens another."""
        if self._embedder is not None:
            self._embedder.close()
            self._embedder = None

"""A corpus for a process that stays: the embedder is loaded once and shared by all threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from ragx.api.corpus import Corpus
from ragx.api.options import embedding_options
from ragx.config import require_trust
from ragx.errors import ProviderUnavailable
from ragx.providers.base import Notice, no_notice

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ragx.providers.base import Embedder, EmbeddingOptions

__all__ = ["WarmCorpus", "WarmModels"]


class WarmModels:
    """The embedder of the settings last used, kept until others are asked for or it fails."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._current: _Shared | None = None

    def embedder(
        self, options: EmbeddingOptions, open_it: Callable[[], Embedder | None]
    ) -> Embedder | None:
        """The embedder for these options: the one at hand, or one opened now.

        Args:
            options: everything that decides which embedder it is.
            open_it: opens it; its faults come through.
        Returns:
            None where `open_it` gives none; else to be closed by the caller, which keeps it loaded.
        """
        with self._lock:
            shared = self._current
            if shared is None or shared.options != options or shared.failed:
                if shared is not None:
                    self._current = None
                    shared.retire()
                opened = open_it()
                if opened is None:
                    return None
                self._current = shared = _Shared(options, opened)
            shared.take()
            return cast("Embedder", _Lease(shared))

    def close(self) -> None:
        """Release the embedder, as soon as nobody uses it any more."""
        with self._lock:
            if self._current is not None:
                self._current.retire()
                self._current = None


class _Shared:
    """An embedder, and how many use it."""

    def __init__(self, options: EmbeddingOptions, embedder: Embedder) -> None:
        self.options = options
        self.embedder = embedder
        self.failed = False
        self._retired = False
        self._users = 0
        self._lock = threading.Lock()
        # A model is safe for so many threads at once; a question takes milliseconds.
        self.turns = threading.BoundedSemaphore(max(1, embedder.workers))

    def take(self) -> None:
        with self._lock:
            self._users += 1

    def give_back(self) -> None:
        with self._lock:
            self._users -= 1
            last = self._retired and not self._users
        if last:
            self.embedder.close()

    def retire(self) -> None:
        with self._lock:
            self._retired = True
            unused = not self._users
        if unused:
            self.embedder.close()


class _Lease:
    """An embedder as one caller holds it: closing it gives it back."""

    def __init__(self, shared: _Shared) -> None:
        self._shared = shared
        self._held = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._shared.embedder, name)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        with self._turn():
            return self._shared.embedder.embed_query(text)

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        with self._turn():
            return self._shared.embedder.embed_documents(texts)

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """A turn at the model; a server that is gone is looked for anew by who comes next."""
        with self._shared.turns:
            try:
                yield
            except ProviderUnavailable:
                self._shared.failed = True
                raise

    def close(self) -> None:
        if self._held:
            self._held = False
            self._shared.give_back()


@dataclass(frozen=True)
class WarmCorpus(Corpus):
    """A corpus whose embedder stays loaded between calls.

    Args:
        models: shared by the corpora of one process; whoever made it closes it.
    """

    models: WarmModels = field(default_factory=WarmModels, repr=False, compare=False)

    @classmethod
    def over(cls, corpus: Corpus, models: WarmModels) -> WarmCorpus:
        """The same corpus with models that stay."""
        return cls(corpus.root, corpus.loaded, corpus.env, models)

    def open_embedder(
        self, manifest: Mapping[str, str], *, notice: Notice = no_notice
    ) -> Embedder | None:
        """As `Corpus.open_embedder`; closing what it returns keeps it loaded."""
        require_trust(self.loaded, "embeddings")
        options = embedding_options(self.config, self.env, manifest, root=self.root)
        opener = super().open_embedder
        return self.models.embedder(options, lambda: opener(manifest, notice=notice))

"""What the embedding server has shown: kept by indexing runs, for later ones and for doctor."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ragx.errors import StoreError

if TYPE_CHECKING:
    from ragx.providers.base import Embedder, EmbeddingOptions
    from ragx.providers.limits import Learned

__all__ = ["learned_limits", "recall", "remember"]


def learned_limits(root: Path, options: EmbeddingOptions) -> Learned:
    """What earlier runs have learned about the server of some settings; all 0 if nothing."""
    from ragx.providers.limits import Learned
    from ragx.store.learned import read_learned

    return Learned.of(read_learned(root, _server(options)))


def recall(root: Path, options: EmbeddingOptions, embedder: Embedder | None) -> None:
    """Let an embedder that has asked nothing yet start with what is known of its server."""
    from ragx.providers.limits import Learns

    if embedder is not None and isinstance(embedder, Learns):
        embedder.start_from(learned_limits(root, options))


def remember(root: Path, options: EmbeddingOptions, embedder: Embedder | None) -> None:
    """Keep what an embedder has learned; where that cannot be written, the next run learns it."""
    from ragx.providers.limits import Learned, Learns
    from ragx.store.learned import write_learned

    if embedder is None or not isinstance(embedder, Learns):
        return
    learned = embedder.learned
    if learned not in (Learned(), learned_limits(root, options)):
        with suppress(StoreError):
            write_learned(root, _server(options), learned.as_dict())


def _server(options: EmbeddingOptions) -> str:
    """Names server and model; what follows a question mark may be a secret."""
    from ragx.providers.registry import fingerprint

    return f"{options.base_url.partition('?')[0]} {fingerprint(options)}"

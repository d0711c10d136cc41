"""A reader that does for several configurations at once what each of them asks of the store.

Configurations of one query ask the store for nearly the same things. What was read once is handed
out again, and the time that it took is put on the bill of everybody who gets it, so that a
configuration's time stays what it would take alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

from ragx.store.base import Reader, Scored
from ragx.types import Chunk

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["SharingReader"]

T = TypeVar("T")

_MAX_CHUNKS = 50_000  # kept for later topics, too; some 100 MB


class SharingReader:
    """Answers as the reader behind it does; what it does not share it passes on.

    `owed_ms` grows by the time that was saved, for the asker to add to its own.
    """

    def __init__(self, reader: Reader) -> None:
        self.owed_ms = 0.0
        self._reader = reader
        self._known: dict[tuple[object, ...], tuple[object, float]] = {}
        self._chunks: dict[int, tuple[Chunk, float]] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reader, name)

    def as_reader(self) -> Reader:
        """This object by the name of what it stands for."""
        return cast("Reader", self)

    def next_topic(self) -> None:
        """Forget what only one topic's queries can ask again."""
        self._known.clear()

    def chunks(self, chunk_ids: Sequence[int]) -> dict[int, Chunk]:
        if len(self._chunks) + len(chunk_ids) > _MAX_CHUNKS:
            self._chunks.clear()
        missing = [chunk_id for chunk_id in chunk_ids if chunk_id not in self._chunks]
        self.owed_ms += sum(self._chunks[i][1] for i in chunk_ids if i in self._chunks)
        if missing:
            started = time.perf_counter()
            found = self._reader.chunks(missing)
            each_ms = 1000 * (time.perf_counter() - started) / len(missing)
            self._chunks.update((i, (chunk, each_ms)) for i, chunk in found.items())
        return {i: self._chunks[i][0] for i in chunk_ids if i in self._chunks}

    def lexical(
        self, expression: str, *, depth: int, weights: Sequence[float], exclude: str = ""
    ) -> list[Scored]:
        return self._shared(
            ("lexical", expression, depth, tuple(weights), exclude),
            lambda: self._reader.lexical(expression, depth=depth, weights=weights, exclude=exclude),
        )

    def lexical_scores(
        self, expression: str, chunk_ids: Collection[int], *, weights: Sequence[float]
    ) -> dict[int, float]:
        return self._shared(
            ("lexical_scores", expression, frozenset(chunk_ids), tuple(weights)),
            lambda: self._reader.lexical_scores(expression, chunk_ids, weights=weights),
        )

    def matching(self, expression: str, chunk_ids: Collection[int]) -> set[int]:
        return self._shared(
            ("matching", expression, frozenset(chunk_ids)),
            lambda: self._reader.matching(expression, chunk_ids),
        )

    def vector(self, query: NDArray[np.float32], *, depth: int) -> list[Scored]:
        return self._shared(
            ("vector", query.tobytes(), depth), lambda: self._reader.vector(query, depth=depth)
        )

    def vector_scores(
        self, query: NDArray[np.float32], chunk_ids: Collection[int]
    ) -> dict[int, float]:
        return self._shared(
            ("vector_scores", query.tobytes(), frozenset(chunk_ids)),
            lambda: self._reader.vector_scores(query, chunk_ids),
        )

    def _shared(self, key: tuple[object, ...], read: Callable[[], T]) -> T:
        known = self._known.get(key)
        if known is None:
            started = time.perf_counter()
            value = read()
            self._known[key] = value, 1000 * (time.perf_counter() - started)
        else:
            value = cast("T", known[0])
            self.owed_ms += known[1]
        # A list, dict or set of the asker's own.
        return cast("T", value.copy())  # type: ignore[attr-defined]

"""The reader that reads once what several configurations ask for."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from ragx.evaluation import sharing
from ragx.evaluation.sharing import SharingReader
from ragx.types import Chunk

SLOW_S = 0.02
VECTOR = np.array([1.0, 0.0], np.float32)


class Store:
    """Slow answers, each a new object, and a list of what was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Any]] = []

    def _answer(self, name: str, asked: Any, value: Any) -> Any:
        self.asked.append((name, asked))
        time.sleep(SLOW_S)
        return value

    def lexical(self, expression: str, *, depth: int, weights: Any, exclude: str = "") -> Any:
        return self._answer("lexical", (expression, depth, exclude), [(1, 2.0), (2, 1.0)])

    def lexical_scores(self, expression: str, chunk_ids: Any, *, weights: Any) -> Any:
        return self._answer("lexical_scores", set(chunk_ids), dict.fromkeys(chunk_ids, 1.0))

    def matching(self, expression: str, chunk_ids: Any) -> Any:
        return self._answer("matching", set(chunk_ids), set(chunk_ids))

    def vector(self, query: np.ndarray, *, depth: int) -> Any:
        return self._answer("vector", depth, [(1, 0.5)])

    def vector_scores(self, query: np.ndarray, chunk_ids: Any) -> Any:
        return self._answer("vector_scores", set(chunk_ids), dict.fromkeys(chunk_ids, 0.5))

    def chunks(self, chunk_ids: Any) -> Any:
        known = [chunk_id for chunk_id in chunk_ids if chunk_id < 100]
        found = {chunk_id: Chunk(chunk_id, "a.md", 0, 0, 1, 1, 1, "x") for chunk_id in known}
        return self._answer("chunks", list(chunk_ids), found)

    def generation_of_another_kind(self) -> str:
        return "passed on"


CALLS = {
    "lexical": lambda reader: reader.lexical("a", depth=5, weights=(1.0,), exclude="b"),
    "lexical_scores": lambda reader: reader.lexical_scores("a", [1, 2], weights=(1.0,)),
    "matching": lambda reader: reader.matching("a", [1, 2]),
    "vector": lambda reader: reader.vector(VECTOR, depth=5),
    "vector_scores": lambda reader: reader.vector_scores(VECTOR, {1, 2}),
    "chunks": lambda reader: reader.chunks([1, 2]),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_second_asker_pays_what_the_first_one_did(name: str) -> None:
    store = Store()
    shared: Any = SharingReader(store)  # type: ignore[arg-type]
    first = CALLS[name](shared)
    assert shared.owed_ms == 0
    second = CALLS[name](shared)
    assert first == second == CALLS[name](Store())
    assert [asked for asked, _ in store.asked] == [name]
    assert shared.owed_ms >= 1000 * SLOW_S
    first.clear()  # what one asker does with its answer is no other's concern
    assert CALLS[name](shared) == second


def test_other_questions_are_asked() -> None:
    store = Store()
    shared: Any = SharingReader(store)  # type: ignore[arg-type]
    shared.vector(VECTOR, depth=5)
    shared.vector(VECTOR, depth=6)
    shared.vector(VECTOR[::-1].copy(), depth=5)
    shared.lexical("a", depth=5, weights=(1.0,))
    shared.lexical("a", depth=5, weights=(1.0,), exclude="b")
    shared.lexical("a", depth=5, weights=(2.0,))
    assert len(store.asked) == 6
    assert shared.owed_ms == 0


def test_the_next_topic_starts_anew_but_for_chunks() -> None:
    store = Store()
    shared: Any = SharingReader(store)  # type: ignore[arg-type]
    shared.vector(VECTOR, depth=5)
    shared.chunks([1, 2])
    shared.next_topic()
    shared.vector(VECTOR, depth=5)
    assert list(shared.chunks([3, 1])) == [3, 1]
    assert store.asked[2:] == [("vector", 5), ("chunks", [3])]


def test_unknown_chunks_stay_unknown() -> None:
    shared: Any = SharingReader(Store())  # type: ignore[arg-type]
    assert list(shared.chunks([1, 500])) == [1]
    assert list(shared.chunks([500])) == []


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "_MAX_CHUNKS", 3)
    store = Store()
    shared: Any = SharingReader(store)  # type: ignore[arg-type]
    assert list(shared.chunks([1, 2])) == [1, 2]
    assert list(shared.chunks([2, 3])) == [2, 3]  # four at once would be too many: 2 is read again
    assert list(shared.chunks([1, 2, 3, 4])) == [1, 2, 3, 4]
    assert [asked for _, asked in store.asked] == [[1, 2], [2, 3], [1, 2, 3, 4]]


def test_all_else_is_passed_on() -> None:
    shared: Any = SharingReader(Store())  # type: ignore[arg-type]
    assert shared.generation_of_another_kind() == "passed on"

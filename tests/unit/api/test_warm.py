"""Models that stay: opened once, shared, closed when the last one lets go."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from ragx.api.warm import WarmModels
from ragx.errors import ProviderUnavailable
from ragx.providers.base import Embedder, EmbeddingOptions
from ragx.providers.fakes import HashEmbedder

OPTIONS = EmbeddingOptions(provider="builtin")


class Counted(HashEmbedder):
    """Counts its ends, and fails on demand."""

    closed = 0
    down = False

    def embed_query(self, text: str):  # type: ignore[no-untyped-def]
        if self.down:
            raise ProviderUnavailable("gone")
        return super().embed_query(text)

    def close(self) -> None:
        self.closed += 1


class Opener:
    def __init__(self) -> None:
        self.opened: list[Counted] = []

    def __call__(self) -> Embedder:
        self.opened.append(Counted())
        return self.opened[-1]


def taken(models: WarmModels, opener: Opener, options: EmbeddingOptions = OPTIONS) -> Embedder:
    found = models.embedder(options, opener)
    assert found is not None
    return found


def test_closing_keeps_it_for_the_next() -> None:
    models, opener = WarmModels(), Opener()
    first = taken(models, opener)
    first.close()
    first.close()
    second = taken(models, opener)
    assert second.fingerprint == opener.opened[0].fingerprint
    assert len(opener.opened) == 1
    assert opener.opened[0].closed == 0
    models.close()
    assert opener.opened[0].closed == 0  # still in use
    second.close()
    assert opener.opened[0].closed == 1


def test_other_options_open_another_and_the_first_ends_when_unused() -> None:
    models, opener = WarmModels(), Opener()
    held = taken(models, opener)
    taken(models, opener, replace(OPTIONS, query_prefix="query: ")).close()
    assert [item.closed for item in opener.opened] == [0, 0]
    held.close()
    assert [item.closed for item in opener.opened] == [1, 0]
    models.close()
    models.close()
    assert [item.closed for item in opener.opened] == [1, 1]


def test_one_that_is_gone_is_opened_anew() -> None:
    models, opener = WarmModels(), Opener()
    held = taken(models, opener)
    opener.opened[0].down = True
    with pytest.raises(ProviderUnavailable):
        held.embed_query("text")
    held.close()
    taken(models, opener).embed_query("text")
    assert [item.closed for item in opener.opened] == [1, 0]


def test_none_stays_none() -> None:
    models = WarmModels()
    assert models.embedder(OPTIONS, lambda: None) is None
    models.close()


def test_many_threads_share_one() -> None:
    models, opener = WarmModels(), Opener()
    start = threading.Barrier(8)

    def use() -> None:
        start.wait()
        for _ in range(20):
            held = taken(models, opener)
            held.embed_query("text")
            held.close()

    threads = [threading.Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    models.close()
    assert [item.closed for item in opener.opened] == [1]

"""An embedder that stays loaded."""

from __future__ import annotations

from ragx.api.kept import KeptEmbedder
from ragx.providers.base import Embedder
from ragx.providers.fakes import HashEmbedder


class Closing(HashEmbedder):
    """Counts how often it is closed."""

    closed = 0

    def close(self) -> None:
        self.closed += 1


def test_it_is_opened_once_until_it_is_closed() -> None:
    opened: list[Closing] = []

    def open_it() -> Embedder:
        opened.append(Closing())
        return opened[-1]

    kept = KeptEmbedder()
    first = kept.take(open_it)
    assert kept.take(open_it) is first
    assert [one.closed for one in opened] == [0]
    kept.close()
    kept.close()
    assert [one.closed for one in opened] == [1]
    assert kept.take(open_it) is not first
    assert len(opened) == 2


def test_none_is_asked_for_again() -> None:
    kept = KeptEmbedder()
    assert kept.take(lambda: None) is None
    kept.close()
    assert kept.take(Closing) is not None

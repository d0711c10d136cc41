"""The page speaks of edges as the command line does."""

from __future__ import annotations

from importlib.resources import files

import pytest

from ragx.algo.graph import EDGE_KINDS
from ragx.shells.cli.edges import words_of
from ragx.store.base import Evidence


@pytest.mark.parametrize("kind", EDGE_KINDS)
@pytest.mark.parametrize("source", [1, 2])
def test_the_words_of_an_edge_are_the_same(kind: str, source: int) -> None:
    page = files("ragx.shells.web").joinpath("static", "js", "words.js").read_text("utf-8")
    spoken = words_of(Evidence(kind, 1.0, 1, 2), source)
    assert f'"{spoken}"' in page

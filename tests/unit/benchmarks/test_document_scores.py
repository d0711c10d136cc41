"""Whether `benchmarks/documents.py` counts the right places as right."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks"
MODULES = ("document_corpus", "document_scores")


@pytest.fixture(scope="module")
def modules() -> Iterator[tuple[ModuleType, ...]]:
    """The benchmark's modules, which import each other by bare names."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        yield tuple(importlib.import_module(name) for name in MODULES)
    for name in MODULES:
        sys.modules.pop(name, None)


@pytest.mark.parametrize(
    ("found", "wanted", "right"),
    [
        ({"kind": "page", "page": 11, "end": 13}, {"kind": "page", "page": 12}, True),
        ({"kind": "page", "page": 11, "end": 13}, {"kind": "page", "page": 13}, True),
        ({"kind": "page", "page": 13, "end": 14}, {"kind": "page", "page": 12}, False),
        ({"kind": "slide", "slide": 12}, {"kind": "page", "page": 12}, False),
        (None, {"kind": "page", "page": 12}, False),
        (
            {"kind": "sheet", "sheet": "A ", "row": 1, "end": 9},
            {"kind": "sheet", "sheet": "A", "row": 5},
            True,
        ),
        (
            {"kind": "sheet", "sheet": "B", "row": 1, "end": 9},
            {"kind": "sheet", "sheet": "A", "row": 5},
            False,
        ),
        (
            {"kind": "chapter", "chapter": 3, "name": "3. Files"},
            {"kind": "chapter", "chapter": 9, "name": "Files"},
            True,
        ),
        (
            {"kind": "part", "part": 3, "name": "a.spec"},
            {"kind": "part", "part": 2, "name": "a.spec"},
            True,
        ),
        ({"kind": "part", "part": 2}, {"kind": "part", "part": 2, "name": "a.spec"}, False),
        (
            {"kind": "heading", "heading": ["A", "2. Recording"]},
            {"kind": "heading", "heading": "Recording"},
            True,
        ),
        (
            {"kind": "heading", "heading": ["Recording and playing"]},
            {"kind": "heading", "heading": "Recording"},
            False,
        ),
    ],
)
def test_a_place_is_right_within_its_range_or_by_its_name(
    modules: tuple[ModuleType, ...],
    found: dict[str, object] | None,
    wanted: dict[str, object],
    right: bool,
) -> None:
    _, scores = modules

    assert scores.is_place(found, wanted) is right


def test_a_heading_within_a_chunk_of_small_sections_counts(
    modules: tuple[ModuleType, ...],
) -> None:
    _, scores = modules
    wanted = {"kind": "heading", "heading": "Recording"}

    assert scores.is_place({"heading": ["Playing"]}, wanted, "Play it.\n\nRecording\n\nRecord it.")
    assert not scores.is_place({"heading": ["Playing"]}, wanted, "Recording is easy.")


def test_an_answer_is_scored_by_rank_place_and_text(modules: tuple[ModuleType, ...]) -> None:
    corpus, scores = modules
    question = corpus.Question("1", "q", "pdf/a.pdf", ({"kind": "page", "page": 2},), "it is so")
    wrong = {"locator": {"kind": "page", "page": 1, "end": 1}, "heading": [], "text": "No."}
    right = {"locator": {"kind": "page", "page": 2, "end": 2}, "heading": [], "text": "It is\nso."}
    results = [
        {"file": "docx/b.docx", "chunks": [right]},
        {"file": "pdf/a.pdf", "chunks": [wrong, right]},
    ]

    assert scores.scores(question, results) == {
        "file@1": 0,
        "file@3": 1,
        "file@10": 1,
        "place@1": 0,
        "place@3": 1,
        "answer@3": 1,
        "mrr": 1 / 2,
    }
    assert set(scores.scores(question, []).values()) == {0}


def test_the_manifest_and_the_questions_hang_together(modules: tuple[ModuleType, ...]) -> None:
    corpus, _ = modules
    documents, questions = corpus.read_manifest(), corpus.read_questions()
    kinds = [one.kind for one in documents]

    assert {kind for kind in corpus.KINDS if kinds.count(kind) < 6} == set()
    assert {one.file for one in questions} <= {one.file for one in documents}
    assert len({one.id for one in questions}) == len(questions)
    asked = [one.kind for one in questions]
    assert {kind for kind in corpus.KINDS if asked.count(kind) < 5} == set()
    assert sum(one.cross for one in questions) >= 10

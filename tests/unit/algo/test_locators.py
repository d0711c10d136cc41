"""Places in words and as JSON."""

from __future__ import annotations

import pytest

from ragx.algo.locators import across, locator_document, place, spoken
from ragx.types import Locator


@pytest.mark.parametrize(
    ("locator", "words"),
    [
        (Locator("page", 12, 12), "page 12"),
        (Locator("page", 12, 13), "pages 12-13"),
        (Locator("page", 4, 4, "iv"), "page 4 (printed iv)"),
        (Locator("slide", 3, 3, "Costs"), "slide 3"),
        (Locator("sheet", 2, 40, "Budget"), "sheet Budget, rows 2-40"),
        (Locator("sheet", 2, 2, "Budget"), "sheet Budget, row 2"),
        (Locator("cell", 5, 7), "cells 5-7"),
        (Locator("chapter", 3, 3, "2. Down the hole"), "chapter 2. Down the hole"),
        (Locator("chapter", 0, 0, "Preface"), "chapter Preface"),
        (Locator("chapter", 3, 4), "chapters 3-4"),
        (Locator("part", 2, 2, "notes.txt"), "part 2: notes.txt"),
        (Locator("heading"), "under Setup"),
        (Locator("frame"), "frame"),
    ],
)
def test_as_people_say_it(locator: Locator, words: str) -> None:
    assert spoken(locator, ("Guide", "Setup")) == words


def test_names_of_columns_are_no_heading_to_stand_under() -> None:
    assert spoken(Locator("heading"), ("Guide", "| name | age")) == "under Guide"
    assert spoken(Locator("heading"), ("| name | age",)) == "at the start"
    document = locator_document(Locator("heading"), ("A", "| b"), 1, 2)
    assert document["heading"] == ["A"]


def test_a_heading_that_is_none() -> None:
    assert spoken(Locator("heading"), ()) == "at the start"


def test_text_files_have_lines_and_documents_places() -> None:
    assert place("a.md", 3, 9, None) == "a.md:3-9"
    assert place("a.pdf", 3, 9, Locator("page", 2, 2)) == "a.pdf:3-9 (page 2)"


def test_a_passage_from_one_place_into_another() -> None:
    one, two = Locator("page", 2, 2, "ii"), Locator("page", 3, 4, "iii")
    assert across(one, two) == Locator("page", 2, 4)
    assert across(one, None) == one
    assert across(None, None) is None
    assert across(Locator("heading"), Locator("heading")) == Locator("heading")


def test_json_has_the_count_under_its_own_name() -> None:
    lines = {"text_line_start": 3, "text_line_end": 9}
    assert locator_document(Locator("page", 2, 3), ("A",), 3, 9) == {
        "kind": "page", "label": "pages 2-3", "page": 2, "end": 3, **lines
    }  # fmt: skip
    assert locator_document(Locator("sheet", 2, 3, "S"), (), 3, 9) == {
        "kind": "sheet", "label": "sheet S, rows 2-3", "sheet": "S", "row": 2, "end": 3, **lines
    }  # fmt: skip
    assert locator_document(Locator("heading"), ("A", "B"), 3, 9) == {
        "kind": "heading", "label": "under B", "heading": ["A", "B"], **lines
    }  # fmt: skip
    assert locator_document(Locator("frame", 7, 7, "x"), (), 3, 9)["number"] == 7

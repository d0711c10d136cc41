"""Excerpts hold the query's words, in lines of the text, within their limits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragx.algo.excerpt import excerpt

TEXT = """\
# Storage

Barrels of salt stay below deck.
Nobody counts them.

  Sails are mended at noon;
the pelican watches, and the salt
is weighed."""


def test_the_line_with_most_words_and_those_that_add_one_in_order() -> None:
    assert excerpt(TEXT, "salt barrels") == ["Barrels of salt stay below deck."]
    assert excerpt(TEXT, "weighed salt barrels") == [
        "Barrels of salt stay below deck.",
        "is weighed.",
    ]
    assert excerpt(TEXT, "weighed pelican sails salt", max_lines=2) == [
        "Sails are mended at noon;",
        "the pelican watches, and the salt",
    ]


def test_endings_do_not_matter_and_short_words_are_exact() -> None:
    assert excerpt(TEXT, "mending a sail") == ["Sails are mended at noon;"]
    assert excerpt("the cart\nthe car", "car") == ["the car"]
    assert excerpt("international\ninternet", "internet") == ["internet"]


def test_what_the_reader_sees_anyway_is_left_out() -> None:
    assert excerpt(TEXT, "storage", known="Ship log > Storage")[0] == (
        "Barrels of salt stay below deck."
    )
    assert excerpt("# Storage\n", "storage", known="Storage") == ["# Storage"]
    assert excerpt(TEXT, "salt pelican", known="Salt") == ["the pelican watches, and the salt"]


def test_without_a_word_the_first_lines() -> None:
    assert excerpt(TEXT, "zeppelin", known="Storage", max_lines=2) == [
        "Barrels of salt stay below deck.",
        "Nobody counts them.",
    ]


@pytest.mark.parametrize("text", ["", " \n\n\t"])
def test_a_blank_text_has_none(text: str) -> None:
    assert excerpt(text, "salt") == []


def test_a_long_line_is_cut_to_the_stretch_with_most_words() -> None:
    line = "filler " * 40 + "the pelican ate the salt " + "filler " * 40 + "pelican"
    (found,) = excerpt(line, "pelican salt", max_chars=60)
    assert "pelican ate the salt" in found
    assert found.startswith("...")
    assert found.endswith("...")
    assert len(found) <= 60 + 2 * len("...")


def test_writing_without_spaces_is_searched_too() -> None:
    (found,) = excerpt("船" * 300 + "鹈鹕" + "海" * 300, "鹈鹕", max_chars=40)
    assert "鹈鹕" in found


def test_cuts_fall_between_characters() -> None:
    family = "👩‍👩‍👧‍👦"
    (found,) = excerpt(family * 40, "zebra", max_chars=30)
    assert found.removesuffix("...") == family * 4


def test_a_long_query_on_a_long_line_takes_no_time() -> None:
    query = " ".join(f"word{i}" for i in range(10_000))
    assert excerpt(query[:20_000], query, max_chars=80)


@given(
    text=st.text(alphabet="ab \n\r\t船é_-👩", max_size=200),
    query=st.text(alphabet="ab 船é", max_size=20),
    known=st.text(alphabet="ab >", max_size=8),
    max_lines=st.integers(1, 4),
    max_chars=st.integers(1, 60),
)
def test_limits_hold_and_every_line_is_of_the_text(
    text: str, query: str, known: str, max_lines: int, max_chars: int
) -> None:
    found = excerpt(text, query, known=known, max_lines=max_lines, max_chars=max_chars)
    assert bool(found) == bool(text.strip())
    assert len(found) <= max_lines
    bare = [row.removeprefix("...").removesuffix("...") for row in found]
    assert sum(map(len, bare)) <= max_chars
    at = 0
    for row in bare:
        at = text.index(row, at) + len(row)

"""Any text in, any query in: the expression parses, and what was written is found."""

from __future__ import annotations

import re
import sqlite3
from functools import cache

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ragx.algo.lexical import analyse, parse_query
from ragx.store import schema

_OPERATORS = [
    '"',
    "-",
    "*",
    "^",
    ":",
    "(",
    ")",
    "NEAR(",
    " AND ",
    " OR ",
    " NOT ",
    "+",
    "{",
    "}",
    "'",
]
_PIECES = ["foo", "Bar", "snake_case", "getName", "日本語", "ไทย", "한국", "हिन्दी", "é", "e\u0301"]
_SIGNS = [
    "🐘",
    "👩‍👩‍👧",
    "1️⃣",
    "\u200d",
    "\u0301",
    "\0",
    "\ud800",
    "\n",
    "\t",
    " ",
    "\u00a0",
    "½",
    "🄐",
]
any_query = st.one_of(
    st.text(max_size=80),
    st.lists(st.sampled_from(_OPERATORS + _PIECES + _SIGNS), max_size=12).map("".join),
)
_words = st.sampled_from(
    ["alpha", "beta2", "snake_case", "HTTPServer", "naïve", "2026", "हिन्दी", "Ελλάδα", "слово", "x"]
)
_unspaced = st.text(st.sampled_from("東京都庁舎日本語데이터ไทยสวย"), min_size=1, max_size=8)
texts = st.lists(st.one_of(_words, _unspaced), min_size=1, max_size=12)


@cache
def _table() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    schema.create(connection)
    return connection


def _matches(text: str, expression: str) -> bool:
    table = _table()
    table.execute("INSERT INTO postings (postings) VALUES ('delete-all')")
    table.execute("INSERT INTO postings (rowid, body) VALUES (1, ?)", (analyse(text),))
    rows = table.execute("SELECT rowid FROM postings WHERE postings MATCH ?", (expression,))
    return bool(rows.fetchall())


@settings(max_examples=150, deadline=None)
@given(any_query)
def test_no_query_makes_an_expression_that_does_not_parse(text: str) -> None:
    query = parse_query(text)
    for expression in (query.match, query.exclude, *query.phrases):
        if expression:
            _matches("some text", expression)
    if query.match and query.exclude:
        _matches("some text", f"({query.match}) NOT ({query.exclude})")


@settings(max_examples=100, deadline=None)
@given(any_query)
def test_parsing_is_pure_and_keeps_the_words(text: str) -> None:
    query = parse_query(text)
    assert parse_query(text) == query
    if not query.exclude:
        # Without operators to carry out, the model reads every word of the question.
        assert re.findall(r"[^\s\"]+", query.plain) == re.findall(r"[^\s\"]+", text)


@settings(max_examples=100, deadline=None)
@given(texts, st.data())
def test_a_stretch_of_whole_words_finds_its_text(parts: list[str], data: st.DataObject) -> None:
    first = data.draw(st.integers(0, len(parts) - 1))
    last = data.draw(st.integers(first, len(parts) - 1))
    separator = data.draw(st.sampled_from([" ", "-", ".", "::", "/", ", "]))
    text = separator.join(parts)
    query = parse_query(separator.join(parts[first : last + 1]))
    assert not query.exclude
    assert _matches(text, query.match)


@settings(max_examples=100, deadline=None)
@given(
    st.text(st.sampled_from("東京都庁舎日本語タワーไทยสวยความ데이터정부"), min_size=1, max_size=20),
    st.data(),
)
def test_any_stretch_of_an_unspaced_text_finds_it(text: str, data: st.DataObject) -> None:
    first = data.draw(st.integers(0, len(text) - 1))
    last = data.draw(st.integers(first + 1, len(text)))
    assert _matches(f"before {text} after", parse_query(text[first:last]).match)


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=60))
def test_any_text_finds_itself_or_holds_no_term(text: str) -> None:
    query = parse_query(text)
    assume(not query.exclude)
    if query.match:
        assert _matches(text, query.match)
    else:
        assert analyse(text).strip() == ""


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=60))
def test_analysis_does_not_depend_on_what_stands_around(text: str) -> None:
    alone = analyse(text)
    assert analyse(f"first {text} last").split() == ["first", *alone.split(), "last"]
    assert "\n" not in alone
    assert '"' not in alone
    assert "\0" not in alone

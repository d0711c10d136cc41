"""Mentions over arbitrary texts, with names taken from them."""

from __future__ import annotations

import re
import unicodedata
from itertools import pairwise

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ragx.algo.mentions import NameTree, find_symbols, is_telling, is_telling_symbol, name_key

NARROW = re.compile("[\uff66-\uff9f]")

words = st.sampled_from(
    "zebra Zebra apple New York new-york snake_case log4j Straße STRASSE Müller Mu\u0308ller 日本"
    " 東京タワー データ ﾃﾞｰﾀ ไทย 한국 हिन्दी \u037a \u309b \ufdfa ² 3 ﬁ İ `zebra` [Zebra]"
    " . \n \u200d".split(" ")
)
texts = st.lists(words, max_size=30).map(" ".join) | st.text(max_size=80)


@st.composite
def text_and_names(draw: st.DrawFn) -> tuple[str, list[str]]:
    """A text and names of which most are stretches of it."""
    text = draw(texts)
    tokens = re.findall(r"\w+|\W+", text)
    names = draw(st.lists(words | st.text(max_size=10), max_size=3))
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(tokens)))
        names.append("".join(tokens[start : start + draw(st.integers(1, 6))]))
    return text, names


@settings(max_examples=400)
@given(text_and_names())
def test_mentions_of_any_text(case: tuple[str, list[str]]) -> None:
    text, names = case
    keys = [name_key(name) for name in names]
    mentions = NameTree(keys).find(text)
    assert len({m.key for m in mentions}) == len(mentions)
    assert {m.key for m in mentions} <= {key for key in keys if key}
    # No two share a character.
    assert all(a.start < a.end <= b.start for a, b in pairwise(mentions))
    if unicodedata.is_normalized("NFC", text) and not NARROW.search(text):
        for m in mentions:
            assert 0 <= m.start < m.end <= len(text)
            # A word that folds to a blank stands in a key, and not between its words.
            assert name_key(text[m.start : m.end]).split() == m.key.split()


@given(text_and_names(), st.randoms(use_true_random=False))
def test_the_order_of_names_has_no_influence(case: tuple[str, list[str]], random) -> None:
    text, names = case
    keys = [name_key(name) for name in names]
    shuffled = random.sample(keys, len(keys)) + keys[:1]
    assert NameTree(keys).find(text) == NameTree(shuffled).find(text)


letters = st.lists(st.sampled_from(["ab", "cd", "EF", "日", "é"]), min_size=2, max_size=4)


@settings(max_examples=300)
@given(
    st.lists(st.sampled_from(["ab", "AB", "cd", "ef", "日", "é", "x"]), max_size=20),
    st.lists(letters.map(tuple), max_size=5),
    st.sampled_from([" ", "-", ",\n", " (", "... "]),
)
def test_longest_names_win_from_left_to_right(
    text_words: list[str], names: list[tuple[str, ...]], between: str
) -> None:
    folded = [name_key(word) for word in text_words]
    keys = {name_key(" ".join(name)) for name in names}
    expected: list[tuple[str, int, int]] = []
    at = 0
    while at < len(folded):
        sizes = [size for size in range(2, 5) if " ".join(folded[at : at + size]) in keys]
        size = min(max(sizes, default=1), len(folded) - at)
        key = " ".join(folded[at : at + size])
        if sizes and key not in {found[0] for found in expected}:
            expected.append((key, at, at + size))
        at += size
    text, starts, ends = "", [], []
    for word in text_words:
        starts.append(len(text))
        text += word
        ends.append(len(text))
        text += between
    assert [(m.key, m.start, m.end) for m in NameTree(keys).find(text)] == [
        (key, starts[first], ends[last - 1]) for key, first, last in expected
    ]


@given(text_and_names())
def test_what_comes_after_has_no_influence(case: tuple[str, list[str]]) -> None:
    """Whatever makes the text leave ASCII must not change what was found before it."""
    text, names = case
    text = unicodedata.normalize("NFC", text)
    assume(not NARROW.search(text))
    tree = NameTree(map(name_key, names))
    assert tree.find(text) == tree.find(f"{text} . \u20ac \u20ac")


@given(st.text(max_size=60))
def test_keys_of_any_name(name: str) -> None:
    key = name_key(name)
    assert key == key.strip() or not name.isascii()
    is_telling(key)
    is_telling_symbol(name)
    assert name_key(unicodedata.normalize("NFC", name)) == name_key(
        unicodedata.normalize("NFC", unicodedata.normalize("NFD", name))
    )


@given(texts, st.booleans())
def test_symbols_of_any_text(text: str, prose: bool) -> None:
    symbols = set(re.findall(r"\w+", text))
    mentions = find_symbols(text, symbols, prose=prose)
    assert len({m.key for m in mentions}) == len(mentions)
    assert [m.start for m in mentions] == sorted(m.start for m in mentions)
    for m in mentions:
        assert m.key in symbols
        assert text[m.start : m.end] == m.key
        if not prose:  # of prose only the places that are marked or look like code count
            assert m.key not in re.findall(r"\w+", text[: m.start])
    if prose:
        assert {m.key for m in mentions} <= {
            m.key for m in find_symbols(text, symbols, prose=False)
        }

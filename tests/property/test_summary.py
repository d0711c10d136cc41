"""Whatever the text: whole sentences of it, within limits, the same each time."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from ragx.algo.summary import Source, sentences, summarize

PIECES = st.sampled_from(
    [
        "The ferry to the island leaves at nine.",
        "Bread rises because yeast turns sugar into gas.",
        "# A heading",
        "- An item that is a whole sentence by itself.",
        "```",
        "| a | b |",
        "However, the `night` ferry is **late** today.",
        "    indented code that goes on and on and on.",
        "\u202ehidden\u202c words turn the direction of this text.",
        ".. note::",
        '"""',
        "// comment of a program that says a thing.",
        "",
        "\r",
    ]
)
TEXTS = st.one_of(st.lists(PIECES, max_size=12).map("\n".join), st.text(max_size=300))
PATHS = st.sampled_from(["a.md", "a.rst", "a.txt", "a.py", "a.rs", "a.json"])


@given(TEXTS, PATHS)
def test_sentences_are_one_line_of_words_of_the_text(text: str, path: str) -> None:
    words = set(re.findall(r"\w+", text))
    for sentence in sentences(text, path):
        assert sentence == " ".join(sentence.split())
        # Markup may go from inside a word, so that its pieces join.
        joined = re.sub(r"[\W_]+", "", text)
        assert set(re.findall(r"\w+", sentence)) <= words or (
            re.sub(r"[\W_]+", "", sentence.split()[0]) in joined
        )


@given(st.lists(st.tuples(TEXTS, PATHS), max_size=6), st.integers(0, 4), st.integers(0, 400))
def test_limits_hold_and_the_same_chunks_give_the_same(
    texts: list[tuple[str, str]], most: int, max_chars: int
) -> None:
    chunks = [Source(at, path, text) for at, (text, path) in enumerate(texts)]
    found = summarize(chunks, everywhere={}, n_everywhere=9, most=most, max_chars=max_chars)
    assert len(found) <= most
    assert len(" ".join(one.text for one in found)) <= max_chars
    assert len({one.text for one in found}) == len(found)
    for one in found:
        assert one.text in sentences(chunks[one.key].text, one.path)
    again = summarize(chunks, everywhere={}, n_everywhere=9, most=most, max_chars=max_chars)
    assert again == found

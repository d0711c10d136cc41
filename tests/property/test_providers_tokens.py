from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from ragx.providers.base import EmbeddingOptions
from ragx.providers.builtin import BuiltinEmbedder
from ragx.providers.tokens import encodable, estimate_tokens, segments, windows

EMBEDDER = BuiltinEmbedder(EmbeddingOptions())
WORDS = (
    "word",
    "Größe",
    "e\u0301",
    "\u0301",
    "你",
    "🐘",
    "[SEP]",
    "[",
    "SEP",
    "_",
    "42",
    "x" * 101,
)
SPACES = (" ", "  ", "\n", "\r\n", "\t", "\x00", "\x1c", "\u00a0", "\u200b", "\u2028")
PIECES = st.sampled_from(WORDS + SPACES)
TEXTS = st.one_of(st.text(), st.lists(PIECES, max_size=400).map("".join))
SURROGATES = st.text(st.characters(categories=["Cs", "L", "Zs"]))


@given(TEXTS)
@settings(deadline=None)
def test_token_starts_equal_the_tokenizers_own(text):
    direct = EMBEDDER._tokenizer().encode(text, add_special_tokens=False)
    starts = list(EMBEDDER.token_starts(text))
    assert starts == [start for start, _ in direct.offsets]
    assert EMBEDDER._ids(text) == direct.ids


@given(SURROGATES)
def test_encodable_keeps_the_length(text):
    clean = encodable(text)
    assert len(clean) == len(text)
    clean.encode("utf-8")
    assert all(a == b or b == "?" for a, b in zip(text, clean, strict=True))


@given(TEXTS, st.integers(2, 50), st.integers(1, 5))
def test_segments_cover_the_text_and_are_bounded(text, size, factor):
    ranges = list(segments(text, size, size * factor))
    assert "".join(text[a:b] for a, b in ranges) == text
    assert all(b - a <= size * factor for a, b in ranges)
    assert all(b > a for a, b in ranges[:-1])


@given(TEXTS, st.integers(2, 50))
def test_windows_lose_nothing_but_blanks(text, max_chars):
    pieces = windows(text, max_chars)
    assert pieces
    assert all(len(piece) <= max_chars for piece in pieces)
    assert [c for c in "".join(pieces) if not c.isspace()] == [c for c in text if not c.isspace()]


@given(st.text(), st.text())
def test_estimate_grows_with_the_text(a, b):
    assert estimate_tokens(a) <= estimate_tokens(a + b)
    assert estimate_tokens(a) >= 2

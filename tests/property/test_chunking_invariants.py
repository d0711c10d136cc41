"""What holds for every text, in every language."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragx.algo.chunking import ChunkOptions, EstimatedSizer, OffsetSizer, chunk_text, split_windows
from ragx.types import Span

LANGUAGES = [
    *["markdown", "rst", "asciidoc", "org", "text", "json", "yaml", "kotlin", "makefile"],
    *["python", "javascript", "typescript", "tsx", "go", "rust", "java", "c", "cpp", "csharp"],
    *["ruby", "php", "bash"],
]

# Whole graphemes: none of them combines with its neighbours as they stand.
GRAPHEMES = st.sampled_from(
    [
        *" \t\r\n\x00\x0b\u2028\u2029\x85\u200b",
        "\r\n",
        *"ab#=-*`~|>.:;!(){}[]<\"'\\_+0",
        "e\u0301",
        "o\u0308\u0323",
        "\U0001f468\u200d\U0001f469\u200d\U0001f467",
        "\U0001f44d\U0001f3fd",
        "\u2764\ufe0f",
        "\U0001f1e9\U0001f1ea",
        "\U0001f418",
        "\u6587",
        "\u0915\u094d\u0937\u093f",
    ]
)
SNIPPETS = st.sampled_from(
    [
        *[
            "# Head\n",
            "Title\n=====\n",
            "Part\n---\n",
            "---\n",
            "---\na: b\n---\n",
            "```\n",
            "~~~~\n",
        ],
        *["- item\n", "  - nested\n", "1. one\n", "> quote\n", "| a | b |\n|---|---|\n| 1 | 2 |\n"],
        *["<!-- x\n", "-->\n", "<div>\n", "    code\n", ".. note::\n   x\n", "== Sec\n", "----\n"],
        *["* Org\n", "#+begin_src\n", "#+end_src\n", "def f():\n", "    return 1\n", "class A:\n"],
        *[
            "    def m(self):\n        pass\n",
            "@deco\n",
            "function f() {\n",
            "}\n",
            "// c\n",
            "/* c\n",
        ],
        *["*/\n", "if (a) {\n", "int g(int a) { return 1; }\n", "const A = 1;\n", "end\n", "fi\n"],
        *["word " * 30, "Sentence one. Sentence two! ", "x" * 90, "\n\n", "\r", "\r\n", " " * 30],
    ]
)
TEXTS = st.lists(st.one_of(SNIPPETS, GRAPHEMES, st.text(max_size=6)), max_size=60).map("".join)
OPTIONS = st.builds(
    ChunkOptions,
    size_tokens=st.integers(1, 60),
    overlap=st.sampled_from([0.0, 0.15, 0.5, 0.9]),
    max_chunk_chars=st.one_of(st.integers(1, 40), st.just(20000)),
)


def check(text: str, spans: list[Span], options: ChunkOptions) -> None:
    position = 0
    for span in spans:
        assert 0 <= span.start < span.end <= len(text)
        assert span.end - span.start <= options.max_chunk_chars
        assert text[span.start : span.end].strip()
        assert not text[position : span.start].strip()
        position = max(position, span.end)
        rows = text[span.start : span.end].replace("\r", "\n").split("\n")
        assert rows[0].strip() or len(rows) == 1
        assert rows[-1].strip() or len(rows) == 1
    assert not text[position:].strip()
    for left, right in pairwise(spans):
        assert left.start < right.start
        assert left.end < right.end


@pytest.mark.parametrize("language", LANGUAGES)
@settings(max_examples=40, deadline=None)
@given(text=TEXTS, options=OPTIONS)
def test_spans_cover_the_text(language: str, text: str, options: ChunkOptions) -> None:
    sizer = EstimatedSizer(text)
    spans = chunk_text(text, language=language, sizer=sizer, options=options)
    check(text, spans, options)
    assert spans == chunk_text(text, language=language, sizer=sizer, options=options)


@pytest.mark.parametrize("language", ["markdown", "text", "json", "kotlin", "python"])
@settings(max_examples=60, deadline=None)
@given(
    graphemes=st.lists(GRAPHEMES, max_size=120),
    size=st.integers(1, 30),
    overlap=st.sampled_from([0.0, 0.3, 0.9]),
)
def test_no_grapheme_is_cut_and_only_graphemes_exceed_the_size(
    language: str, graphemes: list[str], size: int, overlap: float
) -> None:
    text = "".join(graphemes)
    cuts = {0}
    at = 0
    for grapheme in graphemes:
        at += len(grapheme)
        # A lone CR before a lone LF makes one line end of two list items.
        if text[at - 1 : at + 1] != "\r\n":
            cuts.add(at)
    sizer = OffsetSizer(range(len(text)))  # a token a character
    options = ChunkOptions(size_tokens=size, overlap=overlap)
    spans = chunk_text(text, language=language, sizer=sizer, options=options)
    check(text, spans, options)
    longest = max(map(len, graphemes), default=0)
    for span in spans:
        assert {span.start, span.end} <= cuts
        assert sizer.size(span.start, span.end) <= max(size, longest)


@settings(max_examples=80, deadline=None)
@given(text=TEXTS, options=OPTIONS, data=st.data())
def test_windows_cover_their_range(text: str, options: ChunkOptions, data: st.DataObject) -> None:
    line_starts = [0, *(at + 1 for at, char in enumerate(text) if char == "\n")]
    start = data.draw(st.sampled_from(line_starts))
    found = split_windows(
        text,
        start,
        len(text),
        sizer=EstimatedSizer(text),
        size_tokens=options.size_tokens,
        overlap=options.overlap,
        max_chars=options.max_chunk_chars,
    )
    position = start
    for left, right in found:
        assert start <= left < right <= len(text)
        assert right - left <= options.max_chunk_chars
        assert not text[position:left].strip()
        position = max(position, right)
    assert not text[position:].strip()
    assert found == sorted(set(found))


@settings(max_examples=60, deadline=None)
@given(text=TEXTS)
def test_estimate_is_monotone(text: str) -> None:
    sizer = EstimatedSizer(text)
    rng = random.Random(len(text))
    for _ in range(20):
        outer = sorted(rng.randint(0, len(text)) for _ in range(2))
        inner = sorted(rng.randint(*outer) for _ in range(2))
        assert 0 <= sizer.size(*inner) <= sizer.size(*outer)


@pytest.mark.parametrize("language", LANGUAGES)
def test_size_holds_wherever_there_is_a_cut(language: str) -> None:
    rng = random.Random(11)
    parts = ["word ", "other. ", "\n", "\n\n", "# h\n", "  indent\n", "def f():\n", "{\n", "}\n"]
    text = "".join(rng.choices(parts, k=4000))
    sizer = EstimatedSizer(text)
    options = ChunkOptions(size_tokens=40)
    spans = chunk_text(text, language=language, sizer=sizer, options=options)
    check(text, spans, options)
    assert max(sizer.size(span.start, span.end) for span in spans) <= options.size_tokens

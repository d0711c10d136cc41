"""Paragraphs, data rows, and windows of what is too long."""

from __future__ import annotations

import itertools
import random
import string

import pytest

from ragx.algo.chunking import ChunkOptions, EstimatedSizer, OffsetSizer, chunk_text, split_windows
from ragx.types import Span


def chunk(text: str, size: int = 50, language: str = "text", overlap: float = 0.15) -> list[Span]:
    return chunk_text(
        text,
        language=language,
        sizer=EstimatedSizer(text),
        options=ChunkOptions(size_tokens=size, overlap=overlap),
    )


def windows(text: str, size: int, overlap: float = 0.0, max_chars: int = 10_000) -> list[str]:
    found = split_windows(
        text,
        0,
        len(text),
        sizer=OffsetSizer(range(len(text))),  # a token a character
        size_tokens=size,
        overlap=overlap,
        max_chars=max_chars,
    )
    return [text[start:end] for start, end in found]


def test_paragraphs_are_packed_whole() -> None:
    paragraphs = [f"Paragraph {n} has a few words in it." for n in range(12)]
    text = "\n\n".join(paragraphs)
    pieces = [text[span.start : span.end] for span in chunk(text)]
    assert [part for piece in pieces for part in piece.split("\n\n")] == paragraphs


def test_rows_are_paragraphs_where_nothing_is_blank() -> None:
    rows = [f"Row {n} has a few words in it." for n in range(12)]
    text = "\n".join(rows)
    pieces = [text[span.start : span.end] for span in chunk(text)]
    assert [row for piece in pieces for row in piece.split("\n")] == rows


def test_windows_end_at_sentences() -> None:
    text = "One two three. Four five six! Seven (e.g. eight) nine? \u300cTen\u300d\u3002 Eleven."
    for piece in windows(text, 34)[:-1]:
        assert piece[-1] in ".!?\u3002"


def test_windows_overlap_by_the_share_asked_for() -> None:
    text = "".join(random.Random(7).choices("abcdefg", k=1000))
    sizes = [
        (start, end)
        for start, end in split_windows(
            text,
            0,
            len(text),
            sizer=OffsetSizer(range(len(text))),
            size_tokens=100,
            overlap=0.2,
            max_chars=10_000,
        )
    ]
    shared = [left[1] - right[0] for left, right in itertools.pairwise(sizes)]
    assert set(shared) == {20}


def test_last_windows_are_balanced() -> None:
    lengths = [len(piece) for piece in windows("x" * 210, 100)]
    assert sum(lengths) == 210
    assert min(lengths) >= 50


def test_cut_falls_back_from_word_to_grapheme() -> None:
    assert windows("aaaa bbbb cccc", 9) == ["aaaa", "bbbb cccc"]
    assert "".join(windows("abcdefghij", 4)) == "abcdefghij"


@pytest.mark.parametrize(
    "cluster",
    [
        "e\u0301\u0323",
        "\U0001f468\u200d\U0001f469\u200d\U0001f467",
        "\U0001f44d\U0001f3fd",
        "\U0001f1e9\U0001f1ea",
        "\u2764\ufe0f",
        "\u0e19\u0e33",
        "\u0915\u094d\u0937\u093f",
        "\u1100\u1161\u11a8",
        "\ud55c\u11a8",
        "\u0600\u0661",
        "1\ufe0f\u20e3",
        "\U0001f3f4\U000e0067\U000e0062\U000e007f",
    ],
)
def test_clusters_are_never_cut(cluster: str) -> None:
    text = cluster * 40
    for piece in windows(text, 7):
        assert piece.replace(cluster, "") == ""


def test_one_grapheme_over_the_character_limit_is_cut_all_the_same() -> None:
    pieces = windows("a" + "\u0301" * 50, 5, max_chars=20)
    assert [len(piece) for piece in pieces] == [20, 20, 11]


def test_blank_windows_and_empty_ranges() -> None:
    assert windows("", 5) == []
    assert windows(" \n \t ", 5) == []
    assert windows("a" + " " * 100 + "b", 5) == ["a", "b"]


def test_one_long_row_of_text() -> None:
    text = "word " * 1000
    spans = chunk(text, 200)
    assert all(text[span.start : span.end].split() for span in spans)
    assert all(text[span.start] == "w" and text[span.end - 1] == "d" for span in spans)


@pytest.mark.parametrize("language", ["text", "markdown", "python", "javascript", "json", "kotlin"])
def test_huge_rows_and_base64(language: str) -> None:
    letters = random.Random(3).choices(string.ascii_letters + string.digits + "+/", k=40_000)
    for text in ("".join(letters), "f(a, b); " * 33_000, "row\n" + "y " * 2500 + "\nrow\n"):
        sizer = EstimatedSizer(text)
        spans = chunk(text, 200, language)
        assert max(sizer.size(span.start, span.end) for span in spans) <= 200
        assert (
            min(sizer.size(span.start, span.end) for span in spans[:-1]) >= 40 or len(text) < 6000
        )


def test_yaml_is_cut_at_its_top_level() -> None:
    entry = "{}:\n" + "".join(f"  key{n}: value number {n}\n" for n in range(6))
    text = "".join(entry.format(name) for name in ("one", "two", "three", "four"))
    pieces = [text[span.start : span.end] for span in chunk(text, 80, "yaml")]
    assert all(not piece.startswith(" ") for piece in pieces)
    assert len(pieces) > 1


def test_unsplit_blocks_do_not_overlap() -> None:
    text = "\n\n".join(f"Paragraph {n} has a few words in it." for n in range(40))
    spans = chunk(text, 50, overlap=0.5)
    assert all(a.end <= b.start for a, b in itertools.pairwise(spans))

"""Markdown sections, blocks and front matter."""

from __future__ import annotations

import itertools

import pytest

from ragx.algo.chunking import ChunkOptions, EstimatedSizer, chunk_text, document_title
from ragx.algo.chunking.markdown import front_matter_end, markdown_blocks
from ragx.algo.chunking.outline import plain_heading
from ragx.types import Span


class Words:
    """Counts blank-separated words that start in a range: easy to reason about."""

    def __init__(self, text: str) -> None:
        self.starts = [
            at
            for at, char in enumerate(text)
            if not char.isspace() and (at == 0 or text[at - 1].isspace())
        ]

    def size(self, start: int, end: int) -> int:
        return sum(start <= at < end for at in self.starts)


def chunk(text: str, size: int = 10, **options: int) -> list[Span]:
    return chunk_text(
        text,
        language="markdown",
        sizer=Words(text),
        options=ChunkOptions(size_tokens=size, **options),
    )


def texts(text: str, size: int = 10) -> list[str]:
    return [text[span.start : span.end] for span in chunk(text, size)]


def headings(text: str) -> list[tuple[int, str]]:
    return [
        (block.level, block.title)
        for block in markdown_blocks(text.split("\n"))
        if block.kind == "heading"
    ]


def prose(n: int, word: str = "w") -> str:
    return " ".join(f"{word}{index}" for index in range(n))


def test_sections_become_chunks_with_their_heading_path() -> None:
    text = f"# Guide\n\n{prose(8)}\n\n## Install ##\n\n{prose(6)}\n\n### On *Linux*\n\n{prose(7)}\n"
    assert [(span.breadcrumb, text[span.start : span.start + 4]) for span in chunk(text)] == [
        (("Guide",), "# Gu"),
        (("Guide", "Install"), "## I"),
        (("Guide", "Install", "On Linux"), "### "),
    ]


def test_setext_headings_and_levels() -> None:
    assert headings("Title\n=====\n\nPart\n---\n\n# After") == [
        (1, "Title"),
        (2, "Part"),
        (1, "After"),
    ]


def test_setext_heading_takes_its_whole_paragraph() -> None:
    assert headings("one\ntwo\n---\nthree") == [(2, "one two")]


@pytest.mark.parametrize(
    "text",
    [
        "text\n\n---\n\nmore",  # a rule after a blank row
        "| a | b |\n|---|---|\n| 1 | 2 |\n",  # a delimiter row
        "a | b\n--- | ---\n1 | 2\n---\nafter",  # a rule ends a table
        "- item\n---\n",  # a rule after a list
        "> quote\nlazy\n---\n",  # nor does an underline reach into a quote
        "```\n# in a fence\n```\n",
        "~~~\n# tilde\n~~~\n",
        "````\n```\n# four around three\n```\n# still inside\n````\n",
        "```\n# unclosed to the end\n\n# of the document",
        "- item\n\n  ```\n  # in a list\n  ```\n",
        "1. item\n\n   ~~~sh\n   # stays in\n",
        "> ```\n> # quoted\n> ```\n",
        "    # indented code\n",
        "<!--\n# in a comment\n-->\n",
        "<pre>\n# in raw HTML\n\n# and past a blank row\n</pre>\n",
        "<div>\n# in an HTML block\n</div>\n",
        "#no space\n",
        "####### seven\n",
        "\\# escaped\n",
        "[ref]: /url\n---\n",
        "===\n",
    ],
)
def test_what_is_not_a_heading(text: str) -> None:
    assert headings(text) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("```\ncode\n```\n# after", [(1, "after")]),
        ("``` a`b\n# a fence's info holds no backtick", [(1, "a fence's info holds no backtick")]),
        ("```\n~~~\n```\n# after", [(1, "after")]),
        ("   ```\n   x\n   ```\n# after", [(1, "after")]),
        ("- ```\n  code\n# a row left of its item", [(1, "a row left of its item")]),
        ("<div>\n\n# after the blank row", [(1, "after the blank row")]),
        ("text\n# interrupts a paragraph", [(1, "interrupts a paragraph")]),
        ("#\n##\n", [(1, ""), (2, "")]),
        ("## ##", [(2, "")]),
        ("# C#", [(1, "C#")]),
        ("a | b\n---", [(2, "a | b")]),
        ("* * *\n# after a rule", [(1, "after a rule")]),
        ("- a\n- b\n\nText\n---\n", [(2, "Text")]),
    ],
)
def test_what_is_a_heading(text: str, expected: list[tuple[int, str]]) -> None:
    assert headings(text) == expected


@pytest.mark.parametrize("end", ["\r\n", "\r", "\n"])
def test_line_ends_do_not_matter(end: str) -> None:
    text = f"# One\n\n{prose(8)}\n\nTwo\n---\n\n{prose(8)}\n".replace("\n", end)
    assert [span.breadcrumb for span in chunk(text)] == [("One",), ("One", "Two")]


def test_unicode_line_separators_are_not_line_ends() -> None:
    assert headings("a\u2028# b\x0b# c\x85# d") == []


@pytest.mark.parametrize(
    ("markup", "plain"),
    [
        ("**Bold** and `code` and [link](http://x/y_(z))", "Bold and code and link"),
        ("![logo](a.png) Name", "logo Name"),
        ("`__init__` and snake_case_name", "__init__ and snake_case_name"),
        ('<a name="x"></a>Title {#anchor .class}', "Title"),
        ("Not \\*emphasis\\*", "Not *emphasis*"),
        ("[ref][1]  and   spaces", "ref and spaces"),
    ],
)
def test_heading_text_is_stripped_of_markup(markup: str, plain: str) -> None:
    assert plain_heading(markup) == plain


def test_long_headings_are_shortened_in_the_breadcrumb_only() -> None:
    text = "# " + "e\u0301" * 500
    (span,) = chunk(text)
    assert len(span.breadcrumb[0]) == 200
    assert (span.start, span.end) == (0, len(text))


def test_front_matter_is_a_chunk_of_its_own() -> None:
    text = "---\ntitle: A\ntags:\n  - x\n---\n# Head\n\ntext\n"
    first, second = chunk(text, 100)
    assert text[first.start : first.end] == "---\ntitle: A\ntags:\n  - x\n---"
    assert (first.breadcrumb, second.breadcrumb) == ((), ("Head",))


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("---\na: b\n---\nbody", 3),
        ("---\na: b\n...\nbody", 3),
        ('+++\n# c\na = "b"\n[t]\nx = 1\n+++\n', 6),
        ("---\r\na: b\r\n---\r\n", 3),
        ("---\na: b\nnever closed", 0),
        ("---\nJust a sentence here\n---\n", 0),
        ("---\n\n---\n", 0),
        ("text\n---\na: b\n---\n", 0),
        ("+++\nno keys\n+++", 0),
        ("", 0),
    ],
)
def test_front_matter_must_close_and_hold_keys(text: str, rows: int) -> None:
    assert front_matter_end(text.split("\n")) == rows


def test_false_front_matter_loses_nothing() -> None:
    text = "---\nJust words, not YAML\n---\n\nbody\n"
    assert "".join(texts(text, 100)) == text.rstrip("\n")


def test_small_siblings_are_packed_and_share_their_path() -> None:
    text = "# T\n\n" + "\n\n".join(f"## S{index}\n\nx y" for index in range(4))
    spans = chunk(text, 40)
    assert [span.breadcrumb for span in spans] == [("T",)]


def test_small_sections_do_not_join_across_parents() -> None:
    text = f"# A\n\n## A1\n\n{prose(8)}\n\n## tiny\n\nx\n\n# B\n\n{prose(5)}\n"
    assert [span.breadcrumb for span in chunk(text, 13)] == [
        ("A", "A1"),
        ("A", "tiny"),
        ("B",),
    ]


def test_bare_heading_joins_the_section_below() -> None:
    text = f"# Title\n\n## Part\n\n{prose(7)}\n"
    (span,) = chunk(text, 12)
    assert (span.start, span.breadcrumb) == (0, ("Title", "Part"))


def test_text_before_the_first_heading_has_no_path() -> None:
    text = f"{prose(9)}\n\n# T\n\n{prose(8)}"
    assert [span.breadcrumb for span in chunk(text)] == [(), ("T",)]


def test_fence_that_fits_is_never_cut() -> None:
    fence = "```\n" + "\n\n".join(f"row {index}" for index in range(4)) + "\n```"
    text = f"# T\n\n{prose(6)}\n\n{fence}\n\n{prose(6)}\n"
    assert fence in texts(text)


def test_long_fence_is_cut_at_blank_rows() -> None:
    parts = [f"a{index} b\nc d" for index in range(6)]
    text = "```\n" + "\n\n".join(parts) + "\n```\n"
    for piece in texts(text):
        assert piece.strip("`\n").split("\n\n") == [part for part in parts if part in piece], (
            "no part is split over two chunks"
        )


def test_long_table_is_cut_between_rows() -> None:
    rows = [f"| a{index} | b |" for index in range(12)]
    text = "\n".join(["| x | y |", "|---|---|", *rows])
    found = texts(text)
    assert "\n".join(found) == text
    assert len(found) > 1


def test_list_items_are_cut_points() -> None:
    items = [f"- {prose(3, f'i{index}x')}\n  {prose(2)}" for index in range(6)]
    text = "\n".join(items)
    for piece in texts(text):
        assert piece.startswith("- ")


def test_paragraph_ending_in_a_colon_stays_with_what_it_introduces() -> None:
    text = f"# T\n\n{prose(8)}\n\nDo this:\n\n```\na b c d\n```\n"
    assert texts(text)[-1].startswith("Do this:")


def test_long_paragraph_is_cut_at_rows_and_overlaps() -> None:
    rows = [f"{prose(4, f'r{index}x')}" for index in range(20)]
    text = "\n".join(rows)
    spans = chunk_text(
        text,
        language="markdown",
        sizer=Words(text),
        options=ChunkOptions(size_tokens=20, overlap=0.3),
    )
    assert all(span.start == 0 or text[span.start - 1] == "\n" for span in spans)
    assert all(later.start < earlier.end for earlier, later in itertools.pairwise(spans))


@pytest.mark.parametrize("text", ["", " ", "\n\n\r\n", "\u2028\t\r", "\x0c"])
def test_blank_text_gives_nothing(text: str) -> None:
    assert chunk(text) == []


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("---\ntitle: 'From front matter'\n---\n# Head", "From front matter"),
        ('+++\ntitle = "T"\n+++\n', "T"),
        ("text\n\n## First `heading`\n# Second", "First heading"),
        ("no heading", ""),
        ("", ""),
    ],
)
def test_title(text: str, title: str) -> None:
    assert document_title(text, "markdown") == title


def test_title_of_a_program_is_none() -> None:
    assert document_title("# comment\n'''doc'''\n", "python") == ""


def test_large_document_is_quick_enough_to_finish() -> None:
    text = "".join(f"# Head {index}\n\nSome *text* here.\n\n- item\n\n" for index in range(20_000))
    spans = chunk_text(
        text, language="markdown", sizer=EstimatedSizer(text), options=ChunkOptions()
    )
    assert sum(span.end - span.start for span in spans) > 0.9 * len(text)


def test_three_sections_without_a_common_heading_have_none() -> None:
    """The third joins two that share nothing, and lends them nothing of its own."""
    text = "# Berlin\n\nOne.\n\n# Paris\n\nTwo.\n\n# Rome\n\nThree.\n"
    (span,) = chunk(text, size=450)
    assert span.breadcrumb == ()

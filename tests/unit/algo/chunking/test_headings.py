"""reStructuredText, AsciiDoc and Org headings and blocks."""

from __future__ import annotations

import pytest

from ragx.algo.chunking import ChunkOptions, EstimatedSizer, chunk_text, document_title
from ragx.algo.chunking.headings import asciidoc_blocks, org_blocks, rst_blocks
from ragx.algo.chunking.outline import Block


def headings(blocks: list[Block]) -> list[tuple[int, str]]:
    return [(block.level, block.title) for block in blocks if block.kind == "heading"]


def test_rst_levels_follow_first_use() -> None:
    text = "=====\nTitle\n=====\n\nPart\n----\n\nSub\n~~~\n\nOther\n-----\n\nTop\n===\n"
    assert headings(rst_blocks(text.split("\n"))) == [
        (1, "Title"),
        (2, "Part"),
        (3, "Sub"),
        (2, "Other"),
        (4, "Top"),  # underlined only: another style than the title's
    ]


@pytest.mark.parametrize(
    "text",
    [
        "text\n\n----\n\nmore",  # a transition
        "=====  =====\na      b\n=====  =====\n",  # a simple table
        "+---+\n| a |\n+---+\n",
        "code::\n\n    Title\n    -----\n",
        "a sentence\nof two rows\n-----------\n",  # underlines the second row
        "Longer than\n--\n",
    ],
)
def test_rst_what_is_not_a_heading(text: str) -> None:
    assert headings(rst_blocks(text.split("\n"))) == []


def test_rst_heading_right_below_a_label_and_roles() -> None:
    text = ".. _label:\n:ref:`the thing <x>` now\n========================\n"
    assert headings(rst_blocks(text.split("\n"))) == [(1, "the thing now")]


def test_rst_directive_with_its_content_is_one_block() -> None:
    text = "T\n=\n\n.. code-block:: c\n\n   int a;\n\n   int b;\n\nafter\n"
    blocks = rst_blocks(text.split("\n"))
    assert [(block.row, block.kind) for block in blocks][-2:] == [(3, "rows"), (9, "text")]


def test_asciidoc_headings_outside_delimited_blocks_only() -> None:
    text = (
        "= Doc\n\n== Part\n\n----\n== in a listing\n----\n\n====\n== in an example\n====\n\n"
        "[source]\n....\n= literal\n....\n\n=== Sub *x*\n\nOld style\n~~~~~~~~~\n"
    )
    assert headings(asciidoc_blocks(text.split("\n"))) == [
        (1, "Doc"),
        (2, "Part"),
        (3, "Sub x"),
        (3, "Old style"),
    ]


def test_org_headings_keywords_and_tags() -> None:
    text = "#+TITLE: Notes\n* TODO [#A] Task :tag:b:\n** DONE Sub\n*bold* text\n#+begin_src\n"
    assert headings(org_blocks(text.split("\n"))) == [(1, "Task"), (2, "Sub")]


def test_org_source_block_is_whole() -> None:
    text = "* H\ntext\n#+BEGIN_SRC c\na\n\nb\n#+END_SRC\nafter\n"
    blocks = org_blocks(text.split("\n"))
    assert [(block.row, block.kind) for block in blocks] == [
        (0, "heading"),
        (1, "text"),
        (2, "rows"),
        (7, "text"),
    ]


@pytest.mark.parametrize(
    ("language", "text", "title"),
    [
        ("rst", "intro\n\nA title\n=======\n", "A title"),
        ("asciidoc", "= A title\nAuthor\n", "A title"),
        ("org", "#+title: A title\n* Head\n", "A title"),
        ("org", "* Head\n", "Head"),
        ("text", "A title\n=======\n", ""),
    ],
)
def test_titles(language: str, text: str, title: str) -> None:
    assert document_title(text, language) == title


@pytest.mark.parametrize(
    ("language", "marks"),
    [("rst", "Part {}\n=======\n"), ("asciidoc", "== Part {}\n"), ("org", "* Part {}\n")],
)
def test_sections_have_their_heading_as_path(language: str, marks: str) -> None:
    text = "".join(marks.format(n) + "\n" + "Some words here. " * 20 + "\n\n" for n in range(3))
    spans = chunk_text(
        text, language=language, sizer=EstimatedSizer(text), options=ChunkOptions(size_tokens=120)
    )
    assert [span.breadcrumb for span in spans] == [(f"Part {n}",) for n in range(3)]

"""Sentences that speak for a group."""

from __future__ import annotations

import pytest

from ragx.algo.summary import Source, defines, leans, sentences, summarize

PROSE = "notes.md"


@pytest.mark.parametrize(
    ("text", "path", "expected"),
    [
        (
            "# Isle\n\nThe ferry to the isle\nleaves at nine. It takes an hour to get there again.",
            PROSE,
            [
                "The ferry to the isle leaves at nine.",
                "It takes an hour to get there again.",
            ],
        ),
        # markup goes, the words stay
        (
            "See [the *long* guide](guide.md) for **all** that `ferry` can do in winter.",
            PROSE,
            ["See the long guide for all that ferry can do in winter."],
        ),
        (
            "Use the :doc:`rewrite plugin </plugins/rewrite>` and :ref:`queries` for such names.",
            "notes.rst",
            ["Use the rewrite plugin and queries for such names."],
        ),
        # what is no running text says nothing
        ("| a | b |\n|---|---|\n| The cells of a table say. | Much less than this. |", PROSE, []),
        ("```\nThe text of a block is code, not prose.\n```\n", PROSE, []),
        ("Title of the whole document here.\n=================================\n", "n.rst", []),
        ("    The indented block is code and not prose here.\n", PROSE, []),
        ("---\ntitle: The matter in front is not a part of the text.\n---\n", PROSE, []),
        # items of a list stand by themselves
        (
            "- The first item is a whole sentence.\n- none\n- The third one is a whole one again.",
            PROSE,
            ["The first item is a whole sentence.", "The third one is a whole one again."],
        ),
        # abbreviations end no sentence
        (
            "It takes bread, e.g. Rye bread, and some butter. The rest is up to the cook alone.",
            PROSE,
            [
                "It takes bread, e.g. Rye bread, and some butter.",
                "The rest is up to the cook alone.",
            ],
        ),
        # a name may begin a sentence in lower case, a word that goes on with another may not
        ("restic is a fast program for backups.", PROSE, ["restic is a fast program for backups."]),
        ("and so it goes on until the very end of it.", PROSE, []),
        ("album: list the albums that are there twice.", PROSE, []),
        # code: comments and docstrings alone
        (
            'def f():\n    """Give the number of boats in the harbour."""\n    return 4 + 3\n',
            "a.py",
            ["Give the number of boats in the harbour."],
        ),
        (
            "// The harbour holds every boat that is known.\nfn f() {}\n",
            "a.rs",
            ["The harbour holds every boat that is known."],
        ),
        ("/**\n * Holds every boat that is known here.\n */\nclass A {}\n", "A.java",
         ["Holds every boat that is known here."]),
        ("# Copyright 2020 The people of the harbour.\n", "a.py", []),
        ('{"text": "The value of a key is data, not prose."}', "a.json", []),
        # without spaces between words
        ("这个程序把目录里的文件编成索引。它回答问题并给出行号。", PROSE,
         ["这个程序把目录里的文件编成索引。", "它回答问题并给出行号。"]),
        # hidden text is not repeated
        ("The ferry leaves at nine\u202e every day of the week.", PROSE, []),
        ("", PROSE, []),
        (" \r\n\r\n ", PROSE, []),
    ],
)  # fmt: skip
def test_whole_sentences_without_markup(text: str, path: str, expected: list[str]) -> None:
    assert sentences(text, path) == expected


def test_what_defines_and_what_leans() -> None:
    assert defines("BorgBackup (short: Borg) is a deduplicating backup program.")
    assert not defines("This is a deduplicating backup program.")
    assert leans("However, the ferry leaves at nine.")
    assert not leans("The ferry leaves at nine.")


def source(key: int, text: str, path: str = "") -> Source:
    return Source(key, path or f"{key}.md", text)


def test_the_first_sentence_is_of_what_most_chunks_are_about() -> None:
    chunks = [
        source(1, "The ferry carries cars and people to the island."),
        source(2, "Bread rises because the yeast turns sugar into gas."),
        source(3, "Tickets for the ferry to the island are sold on board."),
        source(4, "Dogs on the ferry pay half of what people pay."),
    ]
    found = summarize(chunks, everywhere={}, n_everywhere=100, most=1)
    assert "ferry" in found[0].text


def test_words_that_are_common_elsewhere_count_less() -> None:
    chunks = [
        source(1, "The harbour office opens early in the morning."),
        source(2, "The harbour office closes late in the evening."),
        source(3, "Seals live behind the breakwater in the winter."),
        source(4, "Seals breed behind the breakwater in the summer."),
    ]
    everywhere = {"harbour": 90, "office": 90, "opens": 1, "closes": 1}
    found = summarize(chunks, everywhere=everywhere, n_everywhere=100, most=1)
    assert "Seals" in found[0].text


def test_words_of_the_question_count_more() -> None:
    chunks = [source(1, f"The ferry carries {what} to the island.") for what in ("cars", "mail")]
    chunks = [Source(at, f"{at}.md", one.text) for at, one in enumerate(chunks)]
    found = summarize(chunks, everywhere={}, n_everywhere=10, query="mail", most=1)
    assert found[0].text == "The ferry carries mail to the island."


def test_a_sentence_is_said_once_and_the_next_adds_words() -> None:
    chunks = [
        *(source(at, "The ferry carries cars and people to the island.") for at in range(3)),
        source(8, "Bread rises because the yeast turns sugar into gas."),
        source(9, "The yeast of this bread turns old sugar into much gas."),
    ]
    found = summarize(chunks, everywhere={}, n_everywhere=10, most=2)
    assert [one.text for one in found] == [chunks[0].text, chunks[3].text]


def test_limits_hold_and_nothing_is_cut() -> None:
    chunks = [
        source(at, f"The ferry number {at} carries {what} and people to the island.")
        for at, what in enumerate(["cars", "mail", "cattle", "bread", "coal"])
    ]
    texts = {one.text for one in chunks}
    for most, max_chars in ((1, 500), (3, 130), (5, 500), (3, 20), (0, 500)):
        found = summarize(chunks, everywhere={}, n_everywhere=9, most=most, max_chars=max_chars)
        assert len(found) <= most
        assert len(" ".join(one.text for one in found)) <= max_chars
        assert {one.text for one in found} <= texts


def test_nothing_to_say() -> None:
    assert summarize([], everywhere={}, n_everywhere=0) == []
    assert summarize([source(1, "| a | b |")], everywhere={}, n_everywhere=1) == []

from __future__ import annotations

import pytest

from ragx.algo.hidden import hidden_kinds, one_visible_line, plain_form, visible


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("plain text\twith\r\nlines\f", ()),
        ("", ()),
        ("caf\u00e9 \u6587\u5b57 \U0001f600", ()),
        ("a\u202eb", ("bidi",)),
        ("a\u2066b\u2069", ("bidi",)),
        ("a\x1b[31mb", ("control",)),
        ("a\x9bb", ("control",)),
        ("pass\u200bword", ("invisible",)),
        ("pass\u00adword", ("invisible",)),
        ("\ufeffword", ("invisible",)),
        ("pass\u200dword", ("invisible",)),
        ("\U000e0041\U000e007f", ("tags",)),
        ("\U000e0100", ("tags",)),
        ("\x00\u202e\u200b\U000e0041", ("bidi", "control", "invisible", "tags")),
        # What writing needs: families of emoji, Persian, Hindi, Hebrew marks.
        ("\U0001f468\u200d\U0001f469\u200d\U0001f467", ()),
        ("\u2764\ufe0f", ()),
        ("\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", ()),
        ("\u0915\u094d\u200d\u0937", ()),
        ("\u05d0\u200f\u05d1", ()),
    ],
)
def test_kinds(text: str, kinds: tuple[str, ...]) -> None:
    assert hidden_kinds(text) == kinds


def test_shown_text() -> None:
    assert visible("a\r\nb\rc\u2028d") == "a\nb\nc\nd"
    assert visible("a\x1b\x07\u202eb") == "a\ufffdb"
    assert visible("a" + "\U000e0041" * 1000 + "b") == "a\ufffdb"
    assert visible("a" + "\u200b" * 1000 + "b") == "a\ufffdb"
    assert visible("a\u200bb\tc") == "a\u200bb\tc"
    assert visible("a\ud800b") == "a\ufffdb"


def test_one_line() -> None:
    assert one_visible_line("a\nb\x1b\u202e\U000e0041\ud800 \u00e9") == (
        "a\\nb\\x1b\\u202e\\U000e0041\\ud800 \u00e9"
    )


def test_plain_form_sees_through_disguise() -> None:
    for text in ("0F3C21AB", "0f3c\u200b21ab", "\uff10f3c\U000e004121ab", "0f3\u202ec21ab"):
        assert "0f3c21ab" in plain_form(text)

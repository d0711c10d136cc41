from __future__ import annotations

from ragx.providers.builtin import shipped_tokenizer
from ragx.providers.counting import COUNTER_NAME, TokenCounter

KNOWN = "Barrels of salt stay below deck; see `stow_barrel` (2024-03-17).\n\tif x != 3: return None"


def test_known_words_count_as_the_tokenizer_says() -> None:
    tokenizer = shipped_tokenizer()
    counter = TokenCounter()
    for text in (KNOWN, KNOWN * 300, "caf\u00e9 \u6587\u5b57", ""):
        assert counter.count(text) == len(tokenizer.encode(text, add_special_tokens=False).ids)
    assert counter.name == COUNTER_NAME == "all-MiniLM-L6-v2 WordPiece"


def test_unknown_words_count_for_their_bytes() -> None:
    counter = TokenCounter()
    assert counter.count("a" * 400) == -(-400 // 3)
    assert counter.count("\U0001f600") == -(-4 // 3)
    thai = "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35" * 30
    assert counter.count(thai) >= len(thai) // 2
    assert counter.count(f"salt {'a' * 400} salt") == 2 + -(-400 // 3)


def test_lines_add_up() -> None:
    counter = TokenCounter()
    parts = [KNOWN, "a" * 400, "\u0301combining", "[UNK] [SEP]", "\ud800", "  ", "0f3c21ab end"]
    assert counter.count("\n".join(parts)) == sum(map(counter.count, parts))

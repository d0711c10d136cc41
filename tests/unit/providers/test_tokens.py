from __future__ import annotations

import base64
import random

import pytest

from ragx.providers.base import EmbeddingOptions
from ragx.providers.builtin import BuiltinEmbedder
from ragx.providers.tokens import estimate_tokens, halves

RANDOM = random.Random(3)
NOISE = RANDOM.randbytes(3000)
TEXTS = {
    "prose": "The quick brown fox jumps over the lazy dog; nobody knows why it does so. " * 20,
    "code": "def parseHTTPReply(self, raw_bytes: bytes) -> dict[str, int]:\n    return {}\n" * 20,
    "base64": base64.b64encode(NOISE).decode(),
    "digits": " ".join(str(RANDOM.randrange(10**6)) for _ in range(300)),
    "signs": "()[]{}=>;:,.!?/" * 40,
    "chinese": "".join(chr(RANDOM.randrange(0x4E00, 0x6FFF)) for _ in range(600)),
    "russian": "Однажды в студёную зимнюю пору я из лесу вышел; был сильный мороз. " * 10,
    "german": "Die Größe des Übertragungspuffers wird außergewöhnlich selten angepasst. " * 10,
    "thai": "สวัสดีครับผมชื่อสมชายและผมอาศัยอยู่ในกรุงเทพ " * 10,
    "emoji": "🐘🎉😀👍🏽 " * 50,
    "blank lines": "a\n\n" * 200,
    "empty": "",
}


@pytest.mark.parametrize("name", TEXTS)
def test_estimate_is_no_lower_than_what_a_real_tokenizer_counts(name):
    real = BuiltinEmbedder(EmbeddingOptions()).count_tokens(TEXTS[name])
    assert estimate_tokens(TEXTS[name]) >= real


def test_estimate_of_prose_is_not_absurdly_high():
    real = BuiltinEmbedder(EmbeddingOptions()).count_tokens(TEXTS["prose"])
    assert estimate_tokens(TEXTS["prose"]) < 1.6 * real


@pytest.mark.parametrize("text", [*filter(None, TEXTS.values()), "ab", "a b", " " * 9, "x" * 200])
def test_halves_join_and_are_about_alike(text):
    first, second = halves(text)
    assert first + second == text
    assert first
    assert second
    assert abs(len(first) - len(second)) <= 2 + len(text) // 4

"""Counting tokens the same way everywhere: by the tokenizer that every installation has."""

from __future__ import annotations

import re
import threading
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING

from ragx.providers.tokens import encodable, segments

if TYPE_CHECKING:
    from tokenizers import Tokenizer

__all__ = ["COUNTER_NAME", "TokenCounter", "token_counter"]

COUNTER_NAME = "all-MiniLM-L6-v2 WordPiece"
_UNKNOWN = 100  # the id of [UNK]
_UNKNOWN_BYTES = 3
_SEGMENT_CHARS = 8192
_LONGEST_SEGMENT_CHARS = 65536
# Plain ASCII is cut into these before anything else is done with it, so each needs to be counted
# once: ten times as fast (see the built-in model, which does the same).
_PLAIN = re.compile(r"[\t\n\r -~]*")
_PIECE = re.compile(r"[A-Za-z0-9]+|[^A-Za-z0-9\s]", re.ASCII)
_SPECIAL_TOKEN = re.compile(r"\[(?:PAD|UNK|CLS|SEP|MASK)\]")
_MOST_KNOWN = 1 << 17


class TokenCounter:
    """Tokens of a text by the built-in model's tokenizer, without special ones.

    To that tokenizer a word that it has no pieces for is one token, however long, such as a line
    of base64 or of Thai; here it is one for every three bytes of UTF-8 that are begun. A count is
    therefore never below the tokenizer's own, and equal to it for text of known words. Parts
    joined by a line end have the sum of their tokens.

    Safe for many threads; the tokenizer is loaded at the first count.
    """

    name = COUNTER_NAME

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tokenizer: Tokenizer | None = None
        self._known: dict[str, int] = {}

    def count(self, text: str) -> int:
        """Count the tokens of a text; 0 for one that is blank.

        Raises:
            ProviderRefused: the tokenizer is missing or not the pinned one.
        """
        text = encodable(text)
        if _PLAIN.fullmatch(text) and not _SPECIAL_TOKEN.search(text):
            known = self._known
            return sum(
                n * (known.get(piece) or self._learn(piece))
                for piece, n in Counter(_PIECE.findall(text)).items()
            )
        return sum(
            self._exact(text[start:end])
            for start, end in segments(text, _SEGMENT_CHARS, _LONGEST_SEGMENT_CHARS)
        )

    def _exact(self, text: str) -> int:
        encoding = self._loaded().encode(text, add_special_tokens=False)
        ids = encoding.ids
        total = len(ids)
        if _UNKNOWN in ids:
            for token, (first, last) in zip(ids, encoding.offsets, strict=True):
                if token == _UNKNOWN:
                    n_bytes = len(text[first:last].encode())
                    total += max(0, -(-n_bytes // _UNKNOWN_BYTES) - 1)
        return total

    def _learn(self, piece: str) -> int:
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        self._known[piece] = n = self._exact(piece)
        return n

    def _loaded(self) -> Tokenizer:
        with self._lock:
            if self._tokenizer is None:
                from ragx.providers.builtin import shipped_tokenizer

                self._tokenizer = shipped_tokenizer()
            return self._tokenizer


@cache
def token_counter() -> TokenCounter:
    """The counter of this process: what it has learned serves every question."""
    return TokenCounter()

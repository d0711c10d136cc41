"""A model's own tokenizer: counting, places of tokens, and cutting to what the model reads."""

from __future__ import annotations

import math
import threading
from array import array
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from ragx.errors import InputTooLong
from ragx.providers.tokens import encodable, segments

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

__all__ = ["ModelTokens"]

# Smaller ranges hold the GIL more briefly, and one huge encoding costs gigabytes.
_SEGMENT_CHARS = 4096
_LONGEST_SEGMENT_CHARS = 65536


class ModelTokens:
    """A tokenizer that cuts and fills nothing; loaded on first use, safe for many threads.

    Args:
        load: makes the tokenizer; what it raises, every method raises.
    """

    def __init__(self, load: Callable[[], Tokenizer]) -> None:
        self._load = load
        self._lock = threading.Lock()
        self._tokenizer: Tokenizer | None = None

    def encode(self, text: str, pair: str | None = None) -> Encoding:
        """Tokenize a text, or a pair of them, the way the model was trained to read them."""
        second = None if pair is None else encodable(pair)
        return self._loaded().encode(encodable(text), second)

    def count(self, text: str) -> int:
        """Count the tokens of a text, special ones included."""
        if len(text) <= _LONGEST_SEGMENT_CHARS:
            return len(self.encode(text))
        return len(self.starts(text)) + int(self._loaded().num_special_tokens_to_add(is_pair=False))

    def starts(self, text: str) -> Sequence[int]:
        """Return the character offsets at which tokens of a text start, ascending.

        Special tokens are left out. Near the cuts of a text of many thousand characters, offsets
        may differ from those of the whole.
        """
        tokenizer = self._loaded()
        text = encodable(text)
        starts = array("Q")
        for start, end in segments(text, _SEGMENT_CHARS, _LONGEST_SEGMENT_CHARS):
            offsets = tokenizer.encode(text[start:end], add_special_tokens=False).offsets
            starts.extend([start + begin for begin, _ in offsets])
        return starts

    def head(self, text: str, n_tokens: int) -> str:
        """Return the part of a text that holds its first tokens."""
        starts = self.starts(text)
        return text if len(starts) <= n_tokens else text[: starts[n_tokens]]

    def windows(
        self, text: str, limit: int | None, encode: Callable[[str], Encoding]
    ) -> list[tuple[str, Encoding]]:
        """Tokenize a text whole or, over the limit, as the fewest windows of about equal size.

        Args:
            text: what may be cut.
            limit: tokens of one window with all that `encode` adds; None for any number.
            encode: tokenizes a part of the text with what stands around it.
        Returns:
            Parts that make up the text, in order, each with its tokens; never empty.
        Raises:
            InputTooLong: what stands around it leaves no room.
        """
        whole = encode(text)
        if limit is None or len(whole) <= limit:
            return [(text, whole)]
        starts = self.starts(text)
        room = limit - (len(whole) - len(starts))
        n_windows = math.ceil(len(starts) / room) if room > 0 else len(starts) + 1
        while n_windows <= len(starts):
            cuts = [starts[len(starts) * i // n_windows] for i in range(1, n_windows)]
            parts = [text[a:b] for a, b in pairwise([0, *cuts, len(text)]) if a < b]
            windows = [(part, encode(part)) for part in parts]
            if all(len(encoding) <= limit for _, encoding in windows):
                return windows
            # A cut inside a word can change how it is tokenized.
            n_windows += 1
        raise InputTooLong(
            f"{len(whole)} tokens cannot be cut to {limit}: what stands before the text leaves no "
            "room",
            hint="shorten the prefix or the question",
            details={"tokens": len(whole), "limit": limit},
        )

    def _loaded(self) -> Tokenizer:
        with self._lock:
            if self._tokenizer is None:
                tokenizer = self._load()
                tokenizer.no_truncation()
                tokenizer.no_padding()
                self._tokenizer = tokenizer
            return self._tokenizer

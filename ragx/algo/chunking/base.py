"""What every chunker shares: options, and how the token size of a range is measured."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Protocol

from ragx.errors import ConfigError

__all__ = ["ChunkOptions", "EstimatedSizer", "OffsetSizer", "Sizer"]


@dataclass(frozen=True, slots=True)
class ChunkOptions:
    """Limits of one chunk.

    Args:
        size_tokens: most tokens in a chunk, at least 1.
        overlap: share of a window, in [0, 0.9], repeated by the next window of one split block.
        max_chunk_chars: most characters in a chunk, at least 1; holds without exception.
    Raises:
        ConfigError: a value is out of its range.
    """

    size_tokens: int = 200
    overlap: float = 0.15
    max_chunk_chars: int = 20000

    def __post_init__(self) -> None:
        for name, value in (
            ("size_tokens", self.size_tokens),
            ("max_chunk_chars", self.max_chunk_chars),
        ):
            if value < 1:
                raise ConfigError(f"chunking.{name} is {value}; it must be at least 1")
        if not 0 <= self.overlap <= 0.9:
            raise ConfigError(f"chunking.overlap is {self.overlap}; it must be between 0 and 0.9")


class Sizer(Protocol):
    """Token size of any range of ONE text, in O(log n).

    Sizes never fall when a range grows; an empty range has size 0.
    """

    def size(self, start: int, end: int) -> int:
        """Count the tokens of `text[start:end]` (character offsets)."""
        ...


class OffsetSizer:
    """Exact sizes from a tokenizer's own offsets: a token belongs to the range it starts in."""

    __slots__ = ("_starts",)

    def __init__(self, starts: Sequence[int]) -> None:
        """Keep the sorted character start offsets of every token of the text."""
        self._starts = starts

    def size(self, start: int, end: int) -> int:
        """Count the tokens that start in `[start, end)`."""
        starts = self._starts
        low = bisect_left(starts, start)
        return bisect_left(starts, end, low) - low


# The estimate gives each character a cost in units of 1/_UNITS token. English prose comes to about
# four characters a token, base64 (mixed case and digits) to about two and a half, white space is
# free: tokenizers fold it into words, and indentation into single tokens.
_UNITS = 100
_STEP = 32
_SEGMENT = 1 << 20  # characters encoded at once, so that non-ASCII text needs bounded memory


def _latin_costs() -> bytes:
    costs = bytearray([70] * 256)
    for code in range(256):
        character = chr(code)
        if character.isspace():
            costs[code] = 0
        elif code < 128 and character.islower():
            costs[code] = 28
        elif code < 128 and character.isupper():
            costs[code] = 45
        elif character.isdigit() or code >= 192:
            costs[code] = 50
    return bytes(costs)


def _plane_zero_costs() -> bytes:
    """Cost by the second byte of the code point; Latin-1 (0) is costed by its first byte."""
    costs = bytearray([100] * 256)
    costs[0] = 0
    for code in range(0x01, 0x06):  # Latin extended, Greek, Cyrillic, Hebrew
        costs[code] = 50
    for code in range(0x06, 0x12):  # Arabic to Georgian: short syllables
        costs[code] = 65
    return bytes(costs)


_LATIN = _latin_costs()
# Where code points above Latin-1 become "?", their cost comes from the other bytes alone.
_LATIN_OF_MIXED = _LATIN[:63] + b"\0" + _LATIN[64:]
_PLANE_ZERO = _plane_zero_costs()
_ASTRAL = bytes([0, *[100] * 255])


class EstimatedSizer:
    """Sizes for a tokenizer we cannot ask: about 4 characters a token, CJK about 1.

    Costs are cumulative, so size is monotone in both ends and takes constant time.
    """

    __slots__ = ("_costs", "_totals")

    def __init__(self, text: str) -> None:
        """Cost every character of `text` once."""
        self._costs = [text.encode("ascii").translate(_LATIN)] if text.isascii() else _mixed(text)
        self._totals = list(accumulate(self._step_totals(len(text)), initial=0))

    def size(self, start: int, end: int) -> int:
        """Estimate the tokens of `text[start:end]`, rounded up."""
        if end <= start:
            return 0
        first, last = start // _STEP, end // _STEP
        totals = self._totals
        units = totals[last] - totals[first]
        for layer in self._costs:
            units += sum(layer[last * _STEP : end]) - sum(layer[first * _STEP : start])
        return -(-units // _UNITS)

    def _step_totals(self, length: int) -> Iterator[int]:
        costs = self._costs
        steps = range(0, length, _STEP)
        if len(costs) == 1:
            layer = costs[0]
            return (sum(layer[at : at + _STEP]) for at in steps)
        return (sum([sum(layer[at : at + _STEP]) for layer in costs]) for at in steps)


def _mixed(text: str) -> list[bytes]:
    """Cost the characters of text beyond ASCII in three layers of one byte per character."""
    layers: tuple[list[bytes], list[bytes], list[bytes]] = ([], [], [])
    for at in range(0, len(text), _SEGMENT):
        segment = text[at : at + _SEGMENT]
        wide = segment.encode("utf-32-le", "surrogatepass")
        layers[0].append(segment.encode("latin-1", "replace").translate(_LATIN_OF_MIXED))
        layers[1].append(wide[1::4].translate(_PLANE_ZERO))
        layers[2].append(wide[2::4].translate(_ASTRAL))
    joined = [b"".join(layer) for layer in layers]
    return [layer for layer in joined if layer.count(0) < len(layer)] or joined[:1]

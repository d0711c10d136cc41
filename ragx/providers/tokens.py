"""Text handling that embedders share: estimates, safe cutting, characters that cannot be sent."""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["encodable", "estimate_tokens", "segments", "windows"]

# Two special tokens frame a text in BERT-like models; others add fewer.
_SPECIAL_TOKENS = 2


def encodable(text: str) -> str:
    """Replace lone surrogates, which no tokenizer or server takes, one character by one."""
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode("utf-8")
    return text


def estimate_tokens(text: str) -> int:
    """Guess the tokens of a text for a model whose tokenizer is unknown.

    Four ASCII characters or one other character make a token: English prose comes out slightly
    high, Chinese about right.
    """
    n_ascii = len(text.encode("ascii", "ignore"))
    return -(-n_ascii // 4) + (len(text) - n_ascii) + _SPECIAL_TOKENS


def segments(text: str, size: int, longest: int) -> Iterator[tuple[int, int]]:
    """Cut a text before white space into ranges of about `size` characters.

    Where no white space is near, a range grows to at most `longest` characters before it is cut
    anywhere. The ranges cover the text in order; an empty text gives one empty range.
    """
    start = 0
    while len(text) - start > size:
        half, end = start + size // 2, start + size
        cut = max(text.rfind("\n", half, end), text.rfind(" ", half, end))
        if cut <= start:
            limit = start + longest
            after = (text.find("\n", end, limit), text.find(" ", end, limit))
            cut = min((i for i in after if i >= 0), default=min(limit, len(text)))
        yield start, cut
        start = cut
    yield start, len(text)


def windows(text: str, max_chars: int) -> list[str]:
    """Cut a text into the fewest windows of about equal length, at white space where possible.

    Returns:
        Non-blank pieces of at most `max_chars` characters; [text] if it is short or blank.
    """
    if len(text) <= max_chars:
        return [text]
    n_windows = -(-len(text) // max_chars)
    size = -(-len(text) // n_windows)
    pieces = [text[start:end] for start, end in segments(text, size, size)]
    return [piece for piece in pieces if not piece.isspace()] or [text[:max_chars]]

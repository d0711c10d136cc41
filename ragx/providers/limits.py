"""What a served model takes, learned by asking it: tokens of one text, texts and tokens at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Protocol, runtime_checkable

from ragx.errors import InputTooLong, ProviderError, ProviderRefused

__all__ = [
    "MIN_PROBE_TOKENS",
    "Learned",
    "Learns",
    "MeasuresLimit",
    "TextLimit",
    "batch_refusal",
    "find_limit",
    "is_unknown_field",
    "is_unknown_model",
    "over_long",
    "probe_text",
]

# The usual limits end at 2,048; whoever reads more than that reads any chunk of the default size.
MIN_PROBE_TOKENS = 2112
# A limit is found to within so many tokens, always from below.
_STEP = 16

# Common enough to be one token each to every tokenizer.
_WORDS = "time year people way day man thing woman life child world school state family".split()
_OTHERS = "water room mother area money story fact month lot right study book eye job".split()

_LONG_STATUSES = frozenset({400, 413, 422, 500})
_REFUSALS = frozenset({400, 413, 422})
_LONG_WORDS = re.compile(
    r"context[_ ](?:length|size|window)|maximum (?:context|sequence|input) |"
    r"(?:token|input|prompt|sequence|length|content)s?\b.{0,80}"
    r"(?:too (?:large|long|many|big)|exceed|longer|larger|greater|overflow|less than|at most)|"
    r"(?:too (?:large|long|many|big)|exceed|longer than|larger than|reduce|maximum|limit of).{0,80}"
    r"\b(?:token|input|prompt|sequence|length|context)|"
    r"physical batch size",
    re.IGNORECASE | re.DOTALL,
)
_BATCH_WORDS = re.compile(
    r"batch[_ -]?size|\bbatch(?:es)?\b|\bitems\b|\barray\b|\bnumber of (?:texts|inputs|items)|"
    r"too many (?:inputs|texts|items|documents)",
    re.IGNORECASE,
)
_NOT_BATCH_WORDS = re.compile(r"token|physical batch|sequence|character|\bbytes\b", re.IGNORECASE)
# A number beside a word of limit: "at most 10 items", "maximum allowed batch size 10".
_LIMIT_BEFORE = re.compile(
    r"(?:at most|up to|max|limit|exceed|allow|(?:larger|greater|longer|fewer|more|less) than|<=?)"
    r"\D{0,40}(\d{1,6})",
    re.IGNORECASE,
)
_LIMIT_BEHIND = re.compile(
    r"\b(\d{1,6})\s+(?:[a-z]+\s+)?(?:max|at most|allowed|or (?:fewer|less))\b", re.IGNORECASE
)
_FIELD_WORDS = re.compile(
    r"encoding_format|"
    r"(?:unknown|extra|unexpected|unrecogni[sz]ed|unsupported|additional)\b.{0,40}"
    r"(?:field|input|param|argument|key|propert)",
    re.IGNORECASE | re.DOTALL,
)
_MODEL_WORDS = re.compile(
    r"\bmodel\b.{0,80}(?:not (?:found|exist|available|loaded)|does(?:n't| not) exist)|"
    r"(?:unknown|no such|invalid)\s+model|no models? loaded",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class TextLimit:
    """How much of one text a model reads.

    `max_tokens` counts special tokens and is None where no limit was met up to the length that was
    tried; `truncates` says that what is over it is dropped in silence instead of refused.
    """

    max_tokens: int | None
    truncates: bool
    dimension: int


@dataclass(frozen=True, slots=True)
class Learned:
    """What a server has shown on the way: a later run starts with it. 0 = not known.

    `max_request_tokens` is in rough tokens, see `tokens.rough_tokens`; `in_flight` requests of
    `batch_size` texts made the server fastest.
    """

    max_items: int = 0
    max_request_tokens: int = 0
    in_flight: int = 0
    dimension: int = 0
    batch_size: int = 0

    def as_dict(self) -> dict[str, int]:
        """JSON-ready."""
        return asdict(self)

    @classmethod
    def of(cls, values: Mapping[str, object]) -> Learned:
        """Read what `as_dict` gave; what is no sensible number counts as not known."""
        known = {
            field.name: value
            for field in fields(cls)
            if type(value := values.get(field.name)) is int and value > 0
        }
        return cls(**known)


@runtime_checkable
class MeasuresLimit(Protocol):
    """An embedder whose limit is not known before it has been asked."""

    def probe_limit(self, up_to_tokens: int = MIN_PROBE_TOKENS) -> TextLimit:
        """Find the limit of one text and keep to it from now on."""


@runtime_checkable
class Learns(Protocol):
    """An embedder that finds out on the way what its server takes."""

    @property
    def learned(self) -> Learned:
        """What is known so far."""

    def start_from(self, learned: Learned) -> None:
        """Take over what an earlier run knew."""


def over_long(status: int, message: str) -> InputTooLong | None:
    """Recognise the many ways in which servers say that an input has too many tokens.

    Args:
        status: HTTP status; only 400, 413, 422 and 500 can mean it.
        message: the server's words.
    Returns:
        The error to raise, or None.
    """
    if status not in _LONG_STATUSES:
        return None
    if status != 413 and not _LONG_WORDS.search(message):
        return None
    said = f": {message}" if message else f" (status {status})"
    return InputTooLong(
        f"the server says that the input is too long{said}",
        hint="ragx index --full measures the model's limit again, and keeps to it",
        details={"status": status, "names_number": bool(re.search(r"\d", message))},
    )


def batch_refusal(status: int, message: str, n_items: int) -> ProviderRefused | None:
    """Recognise that a request holds too many texts.

    Returns:
        The error, with the limit that the server names, if it does, as `details["max_items"]`;
        None where it is about something else.
    """
    if status not in _REFUSALS or n_items < 2:
        return None
    if not _BATCH_WORDS.search(message) or _NOT_BATCH_WORDS.search(message):
        return None
    named = [int(n) for words in (_LIMIT_BEFORE, _LIMIT_BEHIND) for n in words.findall(message)]
    details: dict[str, object] = {"status": status, "scope": "input"}
    below = [number for number in named if 0 < number < n_items]
    if below:
        details["max_items"] = max(below)
    return ProviderRefused(
        f"the server takes fewer than {n_items} texts at once: {message}", details=details
    )


def is_unknown_field(status: int, message: str) -> bool:
    """Whether the body was refused because of a field that the server does not know."""
    return status in _REFUSALS and bool(_FIELD_WORDS.search(message))


def is_unknown_model(status: int, message: str) -> bool:
    """Whether the server does not have the model."""
    return status in (*_REFUSALS, 404) and bool(_MODEL_WORDS.search(message))


def probe_text(n_tokens: int, changed_at: int | None = None) -> str:
    """A text of so many tokens, special tokens apart; `_STEP` of them differ from `changed_at` on.

    The order of its words never repeats with a short period, so that no change leaves it alike.
    """
    words = []
    for at in range(n_tokens):
        changed = changed_at is not None and changed_at <= at < changed_at + _STEP
        words.append((_OTHERS if changed else _WORDS)[(at * 7 + at // 14) % 14])
    return " ".join(words)


def find_limit(
    up_to: int,
    takes: Callable[[int], ProviderError | None],
    differs: Callable[[int, int], bool],
) -> tuple[int | None, bool]:
    """Find how many tokens, special ones apart, are read of one text.

    Args:
        up_to: the length to try.
        takes: sends a text of so many tokens; returns the refusal, None if it is taken.
        differs: (length, place): whether a change at a place shows in the vector of a text of that
            length, which was taken.
    Returns:
        The limit, at most `_STEP` too low, or None if all is read; whether what is over it is
        dropped in silence.
    Raises:
        ProviderError: the refusal, if even a few words are refused.
    """
    refusal = takes(up_to)
    if refusal is None:
        return _dropped_after(up_to, differs)
    low, high = 0, up_to
    hints = _hints(refusal, up_to)
    while high - low > _STEP:
        middle = next((hint for hint in hints if low < hint < high), (low + high) // 2)
        if takes(middle) is None:
            low = middle
        else:
            high = middle
    if not low:
        raise refusal
    # Some refuse very long texts and cut long ones.
    dropped, truncates = _dropped_after(low, differs)
    return (low if dropped is None else dropped), truncates


def _dropped_after(length: int, differs: Callable[[int, int], bool]) -> tuple[int | None, bool]:
    """From where on a text is not read; None, False where it is read to its end."""
    if differs(length, max(0, length - _STEP)):
        return None, False
    low, high = 0, length - _STEP
    while high - low > _STEP:
        middle = (low + high) // 2
        low, high = (middle, high) if differs(length, middle) else (low, middle)
    # A server whose vectors depend on no word at all has no limit that one could keep to.
    return (low, True) if low else (None, False)


def _hints(refusal: ProviderError, sent: int) -> list[int]:
    """Lengths that the refusal's own numbers suggest, the likeliest first.

    Two special tokens count in most models, none in some: so each number gives the length just
    within it and the one just beyond.
    """
    if not isinstance(refusal, InputTooLong):
        return []
    named = {int(number) for number in re.findall(r"\d{2,6}", refusal.message)}
    named.discard(refusal.details.get("status", 0))
    likely = sorted((number for number in named if _STEP < number < sent), reverse=True)
    return [length for number in likely[:2] for length in (number - 2, number + 1)]

"""What a setting may hold: one small class per kind of value.

A rule is used three ways: on values read from TOML (`check`), on text typed at the command line
(`parse`, then `check`), and in messages and generated comments (`allowed`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Generic, Literal, TypeVar

__all__ = [
    "Auto",
    "Choice",
    "EnvName",
    "Flag",
    "Globs",
    "Int",
    "Real",
    "Rejected",
    "Rule",
    "Text",
    "Url",
    "Value",
    "did_you_mean",
    "found",
    "nearest",
]

Value = bool | int | float | str | tuple[str, ...]
T_co = TypeVar("T_co", covariant=True)

_INT = re.compile(r"[+-]?[0-9]+(?:_[0-9]+)*")
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_URL = re.compile(r"https?://(?:\[[0-9A-Fa-f:.]+\]|[^\s/?#@:\[\]]+)(?::[0-9]{1,5})?(?:/[^\s?#]*)?")


class Rejected(ValueError):
    """A value breaks its rule; the message says what was found instead."""


class Rule(Generic[T_co]):
    """What one key accepts.

    `allowed` completes the sentence "must be ..."; a `plain` rule needs no such words beside
    its key.
    """

    allowed: str
    plain = False

    def check(self, value: object) -> T_co:
        """Return the value in its settled type.

        Raises:
            Rejected: the value is of another type or outside the range.
        """
        raise NotImplementedError

    def parse(self, raw: str) -> object:
        """Turn command-line text into the TOML value it stands for; `check` judges it."""
        return raw


class Flag(Rule[bool]):
    """true or false; numbers and words are not."""

    allowed = "true or false"
    plain = True

    def check(self, value: object) -> bool:
        if isinstance(value, bool):
            return value
        raise Rejected(found(value))

    def parse(self, raw: str) -> object:
        return {"true": True, "false": False}.get(raw.strip().lower(), raw)


class Int(Rule[int]):
    """A whole number between two bounds, both included."""

    def __init__(self, low: int, high: int) -> None:
        self.low, self.high = low, high
        self.allowed = f"an integer from {low} to {high}"

    def check(self, value: object) -> int:
        if (
            isinstance(value, int)
            and not isinstance(value, bool)
            and self.low <= value <= self.high
        ):
            return value
        raise Rejected(found(value))

    def parse(self, raw: str) -> object:
        text = raw.strip()
        # Python refuses to convert thousands of digits; no range here needs more than 30.
        return int(text) if len(text) <= 30 and _INT.fullmatch(text) else raw


class Real(Rule[float]):
    """A finite number between two bounds; an integer is taken as the same float."""

    def __init__(self, low: float, high: float, *, above: bool = False) -> None:
        self.low, self.high, self.above = low, high, above
        start = f"above {low:g} and up to" if above else f"from {low:g} to"
        self.allowed = f"a number {start} {high:g}"

    def check(self, value: object) -> float:
        # NaN and infinity fail the comparisons; an int beyond any float never reaches float().
        if isinstance(value, int | float) and not isinstance(value, bool):
            reaches = value > self.low if self.above else value >= self.low
            if reaches and value <= self.high:
                return float(value)
        raise Rejected(found(value))

    def parse(self, raw: str) -> object:
        try:
            return float(raw)
        except ValueError:
            return raw


class Auto(Rule[T_co | Literal["auto"]], Generic[T_co]):
    """The word "auto", or what another rule accepts."""

    def __init__(self, inner: Rule[T_co]) -> None:
        self.inner = inner
        self.allowed = f'"auto" or {inner.allowed}'

    def check(self, value: object) -> T_co | Literal["auto"]:
        return "auto" if value == "auto" else self.inner.check(value)

    def parse(self, raw: str) -> object:
        return "auto" if raw.strip() == "auto" else self.inner.parse(raw)


class Choice(Rule[str]):
    """One of a few names."""

    def __init__(self, *names: str) -> None:
        self.names = names
        self.allowed = "one of " + ", ".join(f'"{name}"' for name in names)

    def check(self, value: object) -> str:
        if isinstance(value, str):
            if value in self.names:
                return value
            close = nearest(value, self.names)
            raise Rejected(found(value) + (f' (did you mean "{close[0]}"?)' if close else ""))
        raise Rejected(found(value))


class Text(Rule[str]):
    """Any text, the empty one included."""

    allowed = "a string"
    plain = True

    def check(self, value: object) -> str:
        if isinstance(value, str) and _storable(value):
            return value
        raise Rejected(found(value))


class EnvName(Rule[str]):
    """The name of an environment variable, or nothing. The value is never echoed.

    People paste the key itself here; a message that quoted it would put it into logs.
    """

    allowed = "the name of an environment variable (letters, digits, _), or empty"
    plain = True

    def check(self, value: object) -> str:
        if isinstance(value, str) and (not value or _ENV_NAME.fullmatch(value)):
            return value
        raise Rejected("what is there (the key itself never goes in a file)")


class Url(Rule[str]):
    """An http(s) address without credentials, query or fragment, or nothing."""

    # Letters of other scripts can look like the name of somebody else; IDNs are written as xn--.
    allowed = "a URL such as http://localhost:1234/v1 (ASCII; no user, password, query), or empty"
    plain = True

    def check(self, value: object) -> str:
        if isinstance(value, str) and (not value or (value.isascii() and _URL.fullmatch(value))):
            return value
        if isinstance(value, str) and ("@" in value or "?" in value):
            raise Rejected("what is there")  # it may hold a password or a key
        raise Rejected(found(value))


class Globs(Rule[tuple[str, ...]]):
    """A list of gitignore-style globs."""

    plain = True

    def __init__(self, *, at_least: int = 0) -> None:
        self.at_least = at_least
        self.allowed = "a list of globs" + (f" ({at_least} or more)" if at_least else "")

    def check(self, value: object) -> tuple[str, ...]:
        if not isinstance(value, list | tuple):
            raise Rejected(found(value))
        if len(value) < self.at_least:
            raise Rejected("an empty list")
        globs: list[str] = []
        for position, item in enumerate(value, start=1):
            if not isinstance(item, str):
                raise Rejected(f"a list whose item {position} is {found(item)}")
            if not item.strip() or re.search(r"[\n\r\0]", item) or not _storable(item):
                raise Rejected(f"a list whose item {position} is {found(item)}")
            globs.append(item)
        return tuple(globs)

    def parse(self, raw: str) -> object:
        """Read `a, b` or, for globs that hold commas, the TOML array `["a", "b"]`."""
        text = raw.strip()
        if text.startswith("["):
            import tomllib

            try:
                parsed: object = tomllib.loads(f"value = {text}")["value"]
            except (ValueError, RecursionError):
                parsed = None
            # `[a-z]*.md` is a glob and no array; only what reads as an array is one.
            if isinstance(parsed, list):
                return parsed
        return [item.strip() for item in raw.split(",") if item.strip()]


def nearest(name: str, known: Sequence[str]) -> list[str]:
    """Return up to three of the known names that look like this one, best first."""
    import difflib

    return difflib.get_close_matches(name, known, n=3, cutoff=0.6)


def did_you_mean(names: Sequence[str]) -> str:
    """Word a suggestion; empty for no names."""
    return f"did you mean {' or '.join(names)}?" if names else ""


def found(value: object) -> str:
    """Describe a value read from TOML briefly, in TOML's own words."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        short = value if len(value) <= 60 else value[:57] + "..."
        return ascii(short) if not _storable(short) else repr(short)
    if isinstance(value, int | float):
        # Thousands of digits would raise in str(); no message needs them.
        huge = isinstance(value, int) and value.bit_length() > 200
        return "a very long integer" if huge else str(value)
    if isinstance(value, list | tuple):
        return "a list"
    if isinstance(value, dict):
        return "a table"
    return "a date or time"


def _storable(text: str) -> bool:
    """Whether the text can be written as UTF-8; bytes from a command line may not be."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True

"""When to ask a server again, and when to stop asking. Time comes from a `Clock`, chance never."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from ragx.errors import ProviderError

__all__ = ["CircuitBreaker", "Clock", "Kind", "RetryPolicy", "retry_after_s"]

# connect: nothing listens. timeout: it listens and is silent. transport: the exchange broke off.
# rate: 429. busy: 503 and the like. fault: any other 5xx. reply: an answer that is not what was
# asked for. content: this body was refused. classified: refused for a reason the caller recognised.
# denied: no body at all would be accepted (401, 404, ...).
Kind = Literal[
    "connect",
    "timeout",
    "transport",
    "rate",
    "busy",
    "fault",
    "reply",
    "content",
    "classified",
    "denied",
]


@dataclass(frozen=True, slots=True)
class Clock:
    """Where time comes from. `sleep` None waits for real, and wakes when the client closes."""

    monotonic: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
    sleep: Callable[[float], None] | None = None


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and after what pause a failed request is sent again; fixed, without chance.

    `attempts` counts the failures of one kind, the last one included, so that a fault of another
    kind takes nothing away from them; of all kinds together there are `most_attempts`. The pause
    after the nth failure of a kind is `pause_s * 2**(n - 1)`, or what the server asks for if that
    is longer; a server that asks for more than `max_pause_s` is given up. A kind that is not listed
    is never tried again.
    """

    attempts: Mapping[Kind, int] = field(
        # A refused connection may be a server that is starting; a silent one has already cost
        # the whole timeout; 429 without a date needs the most patience; "fault" is a plain 500,
        # which is as often about the content; an answer with too few vectors, or a NaN in one, is
        # mostly right the next time.
        default_factory=lambda: {
            "connect": 3,
            "timeout": 2,
            "transport": 3,
            "rate": 6,
            "busy": 5,
            "fault": 3,
            "reply": 3,
        }
    )
    pause_s: Mapping[Kind, float] = field(
        default_factory=lambda: {
            "connect": 0.25,
            "timeout": 0.0,
            "transport": 0.25,
            "rate": 1.0,
            "busy": 0.5,
            "fault": 0.5,
            "reply": 0.25,
        }
    )
    max_pause_s: float = 120.0
    most_attempts: int = 12


class CircuitBreaker:
    """Stops asking a server that has failed several times running, for a while.

    After `open_s` one request may try again. Refusals because of content, and replies that
    cannot be used, count only as long as nothing has ever succeeded: before that they are likely
    to be about the settings. What a caller's `classify` recognised never counts.
    """

    _LIMITS: ClassVar[Mapping[Kind, int]] = {
        "denied": 1,
        "timeout": 2,
        "connect": 3,
        "transport": 5,
        "rate": 5,
        "busy": 5,
        "fault": 10,
        "reply": 10,
        "content": 10,
    }

    def __init__(self, now: Callable[[], float], *, open_s: float = 30.0) -> None:
        self._now = now
        self._open_s = open_s
        self._lock = threading.Lock()
        self._failures: dict[Kind, int] = {}
        self._has_succeeded = False
        self._error: ProviderError | None = None
        self._closed_until = 0.0

    def check(self) -> None:
        """Let a request pass, or refuse it.

        Raises:
            ProviderError: a copy of the error that opened the circuit.
        """
        with self._lock:
            if self._error is None:
                return
            if self._now() >= self._closed_until:
                # One trial; others keep failing until it has succeeded.
                self._closed_until = self._now() + self._open_s
                return
            error = self._error
        scope = "exchange" if error.details.get("scope") == "exchange" else "server"
        raise type(error)(
            error.message,
            hint=error.hint,
            code=error.code,
            # What opened the circuit is no statement about the text at hand.
            details={**error.details, "scope": scope, "circuit": "open"},
        )

    def succeeded(self) -> None:
        """Note an answer."""
        with self._lock:
            self._failures.clear()
            self._has_succeeded = True
            self._error = None

    def failed(self, kind: Kind, error: ProviderError) -> None:
        """Note a request that failed for good."""
        with self._lock:
            if kind == "classified" or (kind in ("content", "reply") and self._has_succeeded):
                return
            count = self._failures.get(kind, 0) + 1
            self._failures[kind] = count
            if count >= self._LIMITS[kind]:
                self._error = error
                self._closed_until = self._now() + self._open_s


def retry_after_s(value: str | None, now: float) -> float | None:
    """Read a Retry-After header: seconds or an HTTP date.

    Args:
        value: the header, None if absent.
        now: seconds since the epoch.
    Returns:
        Seconds to wait, at least 0; None if absent or unreadable.
    """
    if value is None:
        return None
    value = value.strip()
    if re.fullmatch(r"\d{1,9}(\.\d*)?", value):
        return float(value)
    from email.utils import parsedate_to_datetime

    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - now)
    except (ValueError, OverflowError):
        return None

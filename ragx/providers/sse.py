"""Server-sent events with JSON inside: what chat servers send as they write."""

from __future__ import annotations

import json
from collections.abc import Callable

__all__ = ["EventStream"]

_MAX_LINE_BYTES = 4 * 1024 * 1024


class EventStream:
    """Takes a reply apart while it comes.

    Comments, by which servers keep a connection open, names of events and data that is no JSON are
    passed over.

    Args:
        on_event: called with the JSON value of each event.
    """

    def __init__(self, on_event: Callable[[object], None]) -> None:
        self._on_event = on_event
        self._rest = b""
        self._over = False
        self.n_events = 0

    def begin(self) -> None:
        """Forget a beginning that an earlier attempt has left."""
        self._rest = b""
        self._over = False

    def feed(self, part: bytes) -> int:
        """Take some bytes and return how many events they completed.

        Raises:
            ValueError: a line is absurdly long.
        """
        before = self.n_events
        *lines, self._rest = (self._rest + part).split(b"\n")
        if len(self._rest) > _MAX_LINE_BYTES:
            raise ValueError("an event is absurdly long")
        for line in lines:
            self._take(line)
        return self.n_events - before

    def end(self) -> None:
        """Take what has no line end behind it."""
        self._take(self._rest)
        self._rest = b""

    def _take(self, line: bytes) -> None:
        if not line.startswith(b"data:") or self._over:
            return
        data = line[5:].strip()
        if data == b"[DONE]":
            self._over = True
            return
        try:
            value = json.loads(data)
        except (ValueError, RecursionError):
            return
        self.n_events += 1
        self._on_event(value)

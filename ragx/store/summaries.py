"""Summaries that a chat model wrote, kept in a file beside the index.

A key is a digest of all that decides a summary, texts and model included, so one that is found is
never out of date. The file is derived: a damaged one counts as absent.
"""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import xxhash

from ragx.store.connect import index_directory
from ragx.store.derived import replace_file

__all__ = ["SUMMARIES_NAME", "WrittenSummaries"]

SUMMARIES_NAME = "summaries.json"
_KEPT = 2000  # the latest; half a kilobyte each


class WrittenSummaries:
    """Summaries of one index; `close` writes what is new, and where that fails they are made again.

    Args:
        root: of the corpus; its index exists.
    """

    def __init__(self, root: Path) -> None:
        self._path = index_directory(root) / SUMMARIES_NAME
        self._known: dict[str, str] | None = None
        self._changed = False

    def get(self, key: str) -> str | None:
        """The summary of a key, None if there is none."""
        return self._all().get(key)

    def put(self, key: str, text: str) -> None:
        """Remember a summary."""
        known = self._all()
        known.pop(key, None)
        known[key] = text
        self._changed = True

    def close(self) -> None:
        """Write the file if anything is new."""
        if not self._changed:
            return
        latest = dict(list(self._all().items())[-_KEPT:])
        body = json.dumps(latest).encode("ascii")
        with contextlib.suppress(OSError):
            head = xxhash.xxh3_128_hexdigest(body).encode("ascii")
            replace_file(self._path, [head, b"\n", body])
            self._changed = False

    def _all(self) -> dict[str, str]:
        if self._known is None:
            self._known = self._read()
        return self._known

    def _read(self) -> dict[str, str]:
        try:
            head, body = self._path.read_bytes().split(b"\n", 1)
            if head.decode("ascii") != xxhash.xxh3_128_hexdigest(body):
                return {}
            facts = json.loads(body)
        except (OSError, ValueError):
            return {}
        if not isinstance(facts, dict):
            return {}
        return {key: text for key, text in facts.items() if isinstance(text, str)}

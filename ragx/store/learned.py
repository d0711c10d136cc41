"""What a model's server has shown on earlier runs, kept beside the index as a small file.

It makes the next run faster and nothing else: absent, damaged or of another server, it is as if
nothing were known.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from ragx.store.connect import index_directory
from ragx.store.derived import replace_file
from ragx.store.faults import translated

__all__ = ["LEARNED_NAME", "read_learned", "write_learned"]

LEARNED_NAME = "server.json"
_MAX_BYTES = 1 << 16


def read_learned(root: Path, server: str) -> dict[str, object]:
    """What was written for a server.

    Args:
        root: the corpus.
        server: names the server and its model.
    Returns:
        The values; empty where there are none, or only another server's.
    """
    try:
        with (index_directory(root) / LEARNED_NAME).open("rb") as file:
            stored = json.loads(file.read(_MAX_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(stored, dict) or stored.get("server") != server:
        return {}
    values = stored.get("learned")
    return values if isinstance(values, dict) else {}


def write_learned(root: Path, server: str, values: Mapping[str, object]) -> None:
    """Keep values for a server in the place of what was known.

    Args:
        root: the corpus; its index directory exists.
        values: JSON-ready.
    Raises:
        StoreError: the file cannot be written.
    """
    text = json.dumps({"server": server, "learned": dict(values)}, sort_keys=True)
    with translated("keeping what the server has shown"):
        replace_file(index_directory(root) / LEARNED_NAME, [text.encode()], place="learned")

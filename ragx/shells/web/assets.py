"""The files of the page, read once: only what is in this table is ever served."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

__all__ = ["Asset", "assets"]

_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}


@dataclass(frozen=True, slots=True)
class Asset:
    """A file's bytes, packed and plain, and their tag."""

    content_type: str
    body: bytes
    packed: bytes
    tag: str


@cache
def assets() -> Mapping[str, Asset]:
    """Every file of the page by its path, such as `js/main.js`."""
    return dict(_below(files(__package__).joinpath("static"), ""))


def _below(directory: Traversable, prefix: str) -> list[tuple[str, Asset]]:
    import gzip

    import xxhash

    found: list[tuple[str, Asset]] = []
    for entry in sorted(directory.iterdir(), key=lambda one: one.name):
        name = f"{prefix}{entry.name}"
        if entry.is_dir():
            found += _below(entry, f"{name}/")
            continue
        content_type = _TYPES.get(entry.name[entry.name.rfind(".") :])
        if content_type is None:  # what an editor or a system leaves behind
            continue
        body = entry.read_bytes()
        packed = gzip.compress(body, 9, mtime=0)
        found.append((name, Asset(content_type, body, packed, xxhash.xxh3_128_hexdigest(body))))
    return found

"""Vectors of questions that are asked again and again, kept in a file beside the index.

Only hashes of the questions are stored. The file is derived: one that is damaged, or of another
vector space, counts as absent and is written anew.
"""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import TYPE_CHECKING

import xxhash

from ragx.store.derived import replace_file

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["QUERIES_NAME", "QueryVectors"]

QUERIES_NAME = "eval-queries.bin"
_DIGEST_BYTES = 16
_KEPT = 20_000  # questions, the latest; 30 MB with the built-in model


class QueryVectors:
    """Vector of each known question, and the time that embedding it took.

    Args:
        directory: of the index.
        fingerprint: the embedder's; vectors of another space are not taken.
        width: length of the index's vectors; 0 takes any.
    """

    def __init__(self, directory: Path, fingerprint: str, width: int) -> None:
        self._path = directory / QUERIES_NAME
        self._fingerprint = fingerprint
        self._known: dict[bytes, tuple[NDArray[np.float32], float]] = self._read(width)
        self._changed = False

    def get(self, text: str) -> tuple[NDArray[np.float32], float] | None:
        """The (width,) float32 unit vector and the milliseconds that it took; None if unknown."""
        return self._known.get(_key(text))

    def put(self, text: str, vector: NDArray[np.float32], elapsed_ms: float) -> None:
        """Remember a vector; `save` writes it."""
        self._known[_key(text)] = vector, elapsed_ms
        self._changed = True

    def save(self) -> None:
        """Write the file if anything is new; where that fails the next run embeds again."""
        if not self._changed:
            return
        import numpy as np

        latest = list(self._known.items())[-_KEPT:]
        body = io.BytesIO()
        np.savez(
            body,
            fingerprint=np.frombuffer(self._fingerprint.encode(), np.uint8),
            keys=np.frombuffer(b"".join(key for key, _ in latest), np.uint8).reshape(
                -1, _DIGEST_BYTES
            ),
            vectors=np.stack([vector for _, (vector, _) in latest]),
            elapsed_ms=np.array([elapsed for _, (_, elapsed) in latest], np.float64),
        )
        with contextlib.suppress(OSError):
            data = body.getbuffer()
            replace_file(self._path, [data, xxhash.xxh3_128_digest(data)])
            self._changed = False

    def _read(self, width: int) -> dict[bytes, tuple[NDArray[np.float32], float]]:
        import zipfile

        import numpy as np

        try:
            raw = self._path.read_bytes()
        except OSError:
            return {}
        data, digest = raw[:-_DIGEST_BYTES], raw[-_DIGEST_BYTES:]
        if xxhash.xxh3_128_digest(data) != digest:
            return {}
        # The digest is right, so this is what some version wrote; one that wrote it otherwise
        # lacks an array.
        try:
            with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
                fingerprint = arrays["fingerprint"].tobytes().decode()
                keys, vectors, elapsed = arrays["keys"], arrays["vectors"], arrays["elapsed_ms"]
        except (ValueError, KeyError, OSError, zipfile.BadZipFile):
            return {}
        if fingerprint != self._fingerprint or (width and vectors.shape[1] != width):
            return {}
        return {
            key.tobytes(): (vector, time)
            for key, vector, time in zip(keys, vectors, elapsed.tolist(), strict=True)
        }


def _key(text: str) -> bytes:
    return xxhash.xxh3_128_digest(text.encode("utf-8", "surrogatepass"))

"""Zip archives that hold documents: read part by part, never beyond what the limits allow."""

from __future__ import annotations

import io
import zipfile
import zlib

from ragx.documents.formats.base import ExtractLimits, damaged, encrypted, too_big

__all__ = ["Archive"]

_MAX_PARTS = 20_000
_STEP = 1 << 20
_ENCRYPTED_BIT = 0x1
# What a broken or hostile archive makes the standard library raise.
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError, OSError)


class Archive:
    """The parts of one archive, by name.

    What its directory claims to unpack to is checked at once, and what it does unpack to as it is
    read: a directory may lie.

    Raises:
        ExtractionError: it is damaged, encrypted or too big.
    """

    def __init__(self, raw: bytes, limits: ExtractLimits) -> None:
        self._left = limits.max_expanded_bytes
        self._limit = limits.max_expanded_bytes
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(raw))
            infos = self._zip.infolist()
        except _BROKEN as exc:
            raise damaged(f"its archive cannot be opened: {exc}") from exc
        if len(infos) > _MAX_PARTS:
            raise too_big(f"it has {len(infos):,} parts, over {_MAX_PARTS:,}")
        claimed = sum(info.file_size for info in infos)
        if claimed > self._limit:
            raise too_big(f"it unpacks to {claimed:,} bytes, over {self._limit:,}")
        self._infos = {info.filename: info for info in infos}

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all parts, in the archive's order."""
        return tuple(self._infos)

    def __contains__(self, name: str) -> bool:
        return name in self._infos

    def read(self, name: str) -> bytes:
        """A part's bytes.

        Raises:
            KeyError: there is no such part.
            ExtractionError: it is damaged, encrypted, or all that was read is too big.
        """
        info = self._infos[name]
        if info.flag_bits & _ENCRYPTED_BIT:
            raise encrypted()
        pieces = []
        try:
            with self._zip.open(info) as file:
                while piece := file.read(_STEP):
                    self._left -= len(piece)
                    if self._left < 0:
                        raise too_big(f"it unpacks to more than {self._limit:,} bytes")
                    pieces.append(piece)
        except _BROKEN as exc:
            raise damaged(f"its part {name} cannot be read: {exc}") from exc
        except RuntimeError as exc:  # a password is asked for
            raise encrypted() from exc
        return b"".join(pieces)

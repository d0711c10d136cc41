"""OLE2 containers: encrypted documents and the old binary formats, told apart, never read."""

from __future__ import annotations

import struct

from ragx.documents.formats.base import damaged, encrypted
from ragx.errors import ExtractionError

__all__ = ["MAGIC", "explain"]

MAGIC = bytes.fromhex("d0cf11e0a1b11ae1")

_ENTRY = 128
_NAME_BYTES = 64
_MAX_SECTORS = 4096  # of the directory: 2 MiB, far over what any document has
_FREE_FROM = 0xFFFFFFFA  # numbers from here on are marks, no sectors
_KINDS = (
    ("WordDocument", "a .doc of the old binary format; save it as .docx"),
    ("Workbook", "an .xls of the old binary format; save it as .xlsx"),
    ("Book", "an .xls of the old binary format; save it as .xlsx"),
    ("PowerPoint Document", "a .ppt of the old binary format; save it as .pptx"),
    ("VisioDocument", "a .vsd of the old binary format; save it as PDF"),
    ("__properties_version1.0", "an Outlook message; save it as .eml"),
)


def explain(raw: bytes) -> ExtractionError:
    """Why a file that starts with `MAGIC` cannot be read, as the error to raise."""
    names = _names(raw)
    if "EncryptedPackage" in names or "EncryptionInfo" in names:
        return encrypted()
    for stream, what in _KINDS:
        if stream in names:
            return damaged(what)
    return damaged("an OLE2 container that holds no document known to ragx")


def _names(raw: bytes) -> frozenset[str]:
    """Names in the container's directory, as far as its chain of sectors can be followed."""
    if len(raw) < 512:
        return frozenset()
    (shift,) = struct.unpack_from("<H", raw, 30)
    (sector,) = struct.unpack_from("<I", raw, 48)
    size = 1 << shift if shift in (9, 12) else 512
    found: set[str] = set()
    seen: set[int] = set()
    while sector < _FREE_FROM and sector not in seen and len(seen) < _MAX_SECTORS:
        seen.add(sector)
        start = (sector + 1) * size
        for offset in range(start, min(start + size, len(raw) - _ENTRY + 1), _ENTRY):
            found.add(_entry_name(raw[offset : offset + _NAME_BYTES + 2]))
        sector = _next_sector(raw, sector, size)
    return frozenset(found - {""})


def _entry_name(entry: bytes) -> str:
    (n_bytes,) = struct.unpack_from("<H", entry, _NAME_BYTES)
    if not 2 <= n_bytes <= _NAME_BYTES:
        return ""
    return entry[: n_bytes - 2].decode("utf-16-le", "replace")


def _next_sector(raw: bytes, sector: int, size: int) -> int:
    # The first 109 sectors of the allocation table stand in the header: enough for 6.8 MB of the
    # container, and directories stand near its start. Beyond, the rest of the names stays unknown.
    per_sector = size // 4
    index = sector // per_sector
    if index >= 109:
        return _FREE_FROM
    (table,) = struct.unpack_from("<I", raw, 76 + 4 * index)
    offset = (table + 1) * size + 4 * (sector % per_sector)
    if table >= _FREE_FROM or offset + 4 > len(raw):
        return _FREE_FROM
    (following,) = struct.unpack_from("<I", raw, offset)
    return int(following)

"""OLE2 containers, told apart by the names in their directory."""

import struct

import pytest

from ragx.documents.formats.base import ExtractLimits
from ragx.documents.formats.office import docx, opendocument, pptx, xlsx
from ragx.documents.formats.office.ole import MAGIC, explain
from ragx.errors import ExtractionError

FREE, END = 0xFFFFFFFF, 0xFFFFFFFE


def container(*names: str) -> bytes:
    """A header, an allocation table as sector 0, and the directory from sector 1 on."""
    entries = b""
    for name in ("Root Entry", *names):
        text = name.encode("utf-16-le")
        entries += text.ljust(64, b"\0") + struct.pack("<H", len(text) + 2) + b"\0" * 62
    n_sectors = -(-len(entries) // 512)
    header = bytearray(512)
    header[:8] = MAGIC
    struct.pack_into("<H", header, 30, 9)
    struct.pack_into("<I", header, 48, 1)
    struct.pack_into("<109I", header, 76, 0, *[FREE] * 108)
    chain = [*range(2, n_sectors + 1), END]
    table = struct.pack("<128I", FREE, *chain, *[FREE] * (127 - len(chain)))
    return bytes(header) + table + entries.ljust(n_sectors * 512, b"\0")


@pytest.mark.parametrize(
    ("names", "code", "says"),
    [
        (("EncryptionInfo", "EncryptedPackage"), "encrypted", "unprotected copy"),
        (("a", "b", "c", "d", "e", "EncryptedPackage"), "encrypted", "unprotected copy"),
        (("1Table", "WordDocument"), "damaged", ".docx"),
        (("Workbook",), "damaged", ".xlsx"),
        (("Book",), "damaged", ".xlsx"),
        (("PowerPoint Document",), "damaged", ".pptx"),
        (("__properties_version1.0",), "damaged", ".eml"),
        (("something",), "damaged", "no document known"),
    ],
)
def test_kinds(names: tuple[str, ...], code: str, says: str) -> None:
    error = explain(container(*names))
    assert error.code == code
    assert says in str(error)


@pytest.mark.parametrize("module", [docx, pptx, xlsx, opendocument])
def test_every_reader_of_office_formats_explains_them(module: object) -> None:
    extract = module.extract  # type: ignore[attr-defined]
    with pytest.raises(ExtractionError) as caught:
        extract(container("EncryptedPackage"), ExtractLimits())
    assert caught.value.code == "encrypted"


def test_broken_ones_are_explained_too() -> None:
    raw = container("a", "b", "c", "d", "WordDocument")
    for length in range(8, len(raw), 37):
        assert explain(raw[:length]).code == "damaged"
    for offset in (30, 48, 76, 512, 516):
        for value in (b"\xff\xff\xff\xff", b"\0\0\0\0", b"\1\0\0\0", b"\xfe\xff\xff\x7f"):
            assert explain(raw[:offset] + value + raw[offset + 4 :]).code == "damaged"

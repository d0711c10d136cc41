"""What format a file has, told from its content; its extension decides only where that cannot.

The rules, in order:

- "%PDF-" at the start is a PDF; further in, among the first 1,024 bytes, only in what is no text
  (this very file holds the mark, too).
- A zip archive is told by the names of its parts and its `mimetype`; one that has lost its
  directory, by the parts that are still there; failing both, by its extension.
- OLE2 is the container of the old Office formats and of encrypted new ones: "ole".
- "{\\rtf" at the start is RTF. A notebook has its extension, starts with "{" and names cells; a
  mail has its extension and starts with a header. An HTML page is one for readers
  (`html.is_document`) in a file named like a page or like a text: elsewhere it is source code.
- A text about a format may begin like one. So in a file that has not the extension of the format
  that it begins like, more than that must show it: a PDF has binary bytes or an object and an end,
  RTF a header and no words behind its last brace, a page goes on and ends like one.
- What is left and is text is text, whatever its extension claims. What is left and is no text is
  what its extension claims, so that a damaged PDF is reported as damaged, not passed over.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Sequence
from pathlib import PurePosixPath

from ragx.documents.decode import SNIFF_BYTES, looks_binary
from ragx.documents.formats.registry import BUILT_IN, Description, find

__all__ = ["OLE", "choose", "sniff"]

# No format of its own: `formats.ole.explain` says what such a file is.
OLE = "ole"

_OLE_MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_PDF_WITHIN = 1024
_ZIP_MAGIC = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")
_BY_EXTENSION = {extension: format.name for format in BUILT_IN for extension in format.extensions}
_ZIPPED = frozenset({"docx", "pptx", "xlsx", "odt", "ods", "odp", "epub"})
_IS_TEXT = frozenset({"html", "notebook", "mail"})
_PAGE_EXTENSIONS = frozenset({"html", "htm", "xhtml"})
_HTML_EXTENSIONS = _PAGE_EXTENSIONS | {"md", "txt", ""}
_OOXML = (("docx", "word/"), ("pptx", "ppt/"), ("xlsx", "xl/"))
_MIMETYPES = (
    (b"application/vnd.oasis.opendocument.text", "odt"),
    (b"application/vnd.oasis.opendocument.spreadsheet", "ods"),
    (b"application/vnd.oasis.opendocument.presentation", "odp"),
    (b"application/epub+zip", "epub"),
)
_PDF_HEADER = re.compile(rb"%PDF-\d\.\d\s*?[\r\n]")
# The comment of high bytes that the standard asks for, to show that it is no text.
_PDF_BINARY = re.compile(rb"%PDF-\d\.\d\s{1,4}%[^\r\n]?[\x80-\xff]{4}")
_PDF_OBJECT = re.compile(rb"[\r\n]\s{0,4}\d{1,10} \d{1,5} obj\b")
_RTF_START = re.compile(rb"\{\\rtf\d{0,3}\s{0,4}[\\{]")
_RTF_HEADER = re.compile(
    rb"\\(?:ansi|ansicpg|mac|pca?|a?deff|a?deflang|uc|fonttbl|colortbl|stylesheet|info)(?![a-z])"
)
_RTF_TOKEN = re.compile(rb"\\bin(?![a-z])|\\[^a-z]|[{}]", re.DOTALL | re.IGNORECASE)
_RTF_PADDING = b"\0\x1a \t\r\n"
_NOTEBOOK_KEY = re.compile(rb'"(?:cells|worksheets|nbformat)"\s{0,20}:')
_MAIL_HEADER = re.compile(rb"(?:From |>?[!-9;-~]{1,80}[ \t]*:)")
# Signatures and sizes of the zip format. Its end may be followed by a remark of 65,535 bytes.
_PART = b"PK\x03\x04"
_ENTRY = b"PK\x01\x02"
_DEFLATED = 8
_MAX_END_BYTES = 22 + 65535
# Bounds of what is looked at.
_MAX_PARTS = 20_000
_MAX_RESCUED = 2_000
_MAX_NAME_BYTES = 500
_BEGINNING_BYTES = 100
_LOOKED_AT_BYTES = 65_536
_TAIL_BYTES = 2048


def sniff(path: str, raw: bytes) -> str:
    """Name of the format that the content has; "" for text and for binaries of other kinds."""
    claimed = _BY_EXTENSION.get(_extension(path), "")
    head = raw[:SNIFF_BYTES]
    if head.startswith(_OLE_MAGIC):
        return OLE
    if head.startswith(_ZIP_MAGIC):
        return _zipped(raw, claimed)
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if start.startswith(b"%PDF-"):
        return "pdf" if claimed == "pdf" or _is_pdf(start, raw) else ""
    if start.startswith(b"{\\rtf"):
        if claimed == "rtf" or _is_rtf(raw):
            return "rtf"
    elif claimed == "notebook" and start.startswith(b"{") and _names_cells(raw):
        return "notebook"
    if claimed == "mail" and _MAIL_HEADER.match(start):
        return "mail"
    if looks_binary(head):
        if b"%PDF-" in head[:_PDF_WITHIN]:
            return "pdf"
        return "" if claimed in _IS_TEXT else claimed
    if claimed == "pdf" and b"%PDF-" in head[:_PDF_WITHIN]:
        return "pdf"
    return "html" if _is_page(path, raw) else ""


def choose(path: str, raw: bytes, plugins: Sequence[Description]) -> str:
    """Name of the extractor that a file is for: like `sniff`, but plug-ins come first.

    A plug-in takes over files of a format that has its name, and files that have one of its
    extensions unless their content shows that they are of another format than that. The first
    of several wins. "" where there is none: the file is text, or a binary nobody reads.
    """
    name = sniff(path, raw)
    extension = _extension(path)
    format = find(name)
    if any(plugin.name == name for plugin in plugins):
        return name
    if format is None or extension in format.extensions:
        for plugin in plugins:
            if extension in plugin.extensions:
                return plugin.name
    return name


def _extension(path: str) -> str:
    return PurePosixPath(path).suffix.removeprefix(".").lower()


def _is_page(path: str, raw: bytes) -> bool:
    if _extension(path) not in _HTML_EXTENSIONS or b"<" not in raw[:SNIFF_BYTES]:
        return False
    from ragx.documents.formats.markup.html import is_document

    return is_document(raw, named_as_text=_extension(path) not in _PAGE_EXTENSIONS)


def _is_pdf(start: bytes, raw: bytes) -> bool:
    """Whether what begins like a PDF is one."""
    if looks_binary(start.removeprefix(b"%PDF-")) or _PDF_BINARY.match(start):
        return True
    tail = raw[-_TAIL_BYTES:]
    has_end = b"%%EOF" in tail or b"startxref" in tail
    return has_end and bool(_PDF_HEADER.match(start) and _PDF_OBJECT.search(start))


def _is_rtf(raw: bytes) -> bool:
    """Whether what begins like RTF has a header and ends with the brace that it began with."""
    head = raw[:_LOOKED_AT_BYTES]
    start = head.find(b"{")
    if not (_RTF_START.match(head, start) and _RTF_HEADER.search(head, start, start + 1024)):
        return False
    depth = 0
    for token in _RTF_TOKEN.finditer(head, start):
        if token[0] == b"{":
            depth += 1
        elif token[0] == b"}":
            depth -= 1
        elif token[0] == b"\\bin":  # braces may stand in what follows, and no note holds any
            break
        if depth <= 0:
            return not raw[token.end() : token.end() + _TAIL_BYTES].strip(_RTF_PADDING)
    return raw[-_TAIL_BYTES:].rstrip(_RTF_PADDING).endswith(b"}")


def _names_cells(raw: bytes) -> bool:
    """Whether JSON has a key that notebooks have; the one in front may hold megabytes."""
    return any(
        _NOTEBOOK_KEY.search(part) for part in (raw[:_LOOKED_AT_BYTES], raw[-_LOOKED_AT_BYTES:])
    )


def _zipped(raw: bytes, claimed: str) -> str:
    parts = _listed(raw)
    found = _of_parts(raw, _rescued(raw) if parts is None else parts, claimed)
    # What shows nothing is what its name says, so that somebody says what is wrong with it.
    return found or (claimed if claimed in _ZIPPED else "")


def _of_parts(raw: bytes, parts: dict[str, int], claimed: str) -> str:
    mimetype = _beginning(raw, parts["mimetype"]) if "mimetype" in parts else b""
    for prefix, name in _MIMETYPES:
        if mimetype.startswith(prefix):
            return name
    if "[Content_Types].xml" in parts:
        held = [name for name, prefix in _OOXML if any(part.startswith(prefix) for part in parts)]
        return claimed if claimed in held else (held or [""])[0]
    # Some writers leave the mimetype out.
    if "content.xml" in parts and "META-INF/manifest.xml" in parts:
        return claimed if claimed in ("odt", "ods", "odp") else "odt"
    return "epub" if "META-INF/container.xml" in parts else ""


def _listed(raw: bytes) -> dict[str, int] | None:
    """Names of an archive's parts and where they stand, by its directory; None if that is broken.

    Not by the standard library: this runs outside the guarded process, and a directory of a
    million parts would cost gigabytes.
    """
    end = raw.rfind(b"PK\x05\x06", max(0, len(raw) - _MAX_END_BYTES))
    if end < 0 or end + 22 > len(raw):
        return None
    size, offset = struct.unpack_from("<II", raw, end + 12)
    # The offset is wrong if something was put in front, the size if there are 64-bit records.
    at = next((at for at in (offset, end - size) if raw[at : at + 4] == _ENTRY and at > 0), end)
    parts: dict[str, int] = {}
    while len(parts) < _MAX_PARTS and raw[at : at + 4] == _ENTRY and at + 46 <= end:
        name_bytes, extra_bytes, note_bytes = struct.unpack_from("<HHH", raw, at + 28)
        (start,) = struct.unpack_from("<I", raw, at + 42)
        parts.setdefault(_name(raw[at + 46 : at + 46 + name_bytes]), start)
        at += 46 + name_bytes + extra_bytes + note_bytes
    return parts or None


def _rescued(raw: bytes) -> dict[str, int]:
    """The same of an archive without a directory, by what stands in front of each part."""
    parts: dict[str, int] = {}
    at = 0
    for _ in range(_MAX_RESCUED):
        if at < 0 or at + 30 > len(raw):
            break
        name_bytes = int.from_bytes(raw[at + 26 : at + 28], "little")
        parts.setdefault(_name(raw[at + 30 : at + 30 + name_bytes]), at)
        at = raw.find(_PART, at + 4)
    return parts


def _name(name: bytes) -> str:
    return name[:_MAX_NAME_BYTES].decode("utf-8", "replace")


def _beginning(raw: bytes, at: int) -> bytes:
    """The first bytes of the part that stands at `at`; none if nothing does."""
    if raw[at : at + 4] != _PART or at + 30 > len(raw):
        return b""
    (method,) = struct.unpack_from("<H", raw, at + 8)
    name_bytes, extra_bytes = struct.unpack_from("<HH", raw, at + 26)
    start = at + 30 + name_bytes + extra_bytes
    data = raw[start : start + _BEGINNING_BYTES]
    if method == _DEFLATED:
        try:
            return zlib.decompressobj(-zlib.MAX_WBITS).decompress(data, _BEGINNING_BYTES)
        except zlib.error:
            return b""
    return data

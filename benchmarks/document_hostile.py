"""Documents that are broken, mislabelled, locked or made to exhaust what reads them.

Most are made of real ones. Everything is written the same in each run, except what is encrypted.
"""

from __future__ import annotations

import importlib
import io
import json
import shutil
import struct
import subprocess
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from document_corpus import KINDS

CANARY = "zanzibarcanary7391"  # stands in a file that only a document's external entity names
PASSWORD = "open sesame"
_EVERY = 1_000  # bytes between two that are flipped
_SHARES = (10, 50, 90)  # per cent left of truncated files
_MAGIC = {
    "pdf": b"%PDF-1.7\n",
    "rtf": b"{\\rtf1",
    "ipynb": b"{",
    "eml": b"Received: ",
    "html": b"<!DOCTYPE html>",
}
_MAIN = {
    "docx": "word/document.xml",
    "pptx": "ppt/slides/slide1.xml",
    "xlsx": "xl/worksheets/sheet1.xml",
    "odt": "content.xml",
    "ods": "content.xml",
    "odp": "content.xml",
}
_PARTS = ("docx", "pptx", "xlsx", "odt")  # kinds that bombs are packed into
_MB = 1 << 20

Made = Iterator[tuple[str, bytes]]


def make(target: Path, samples: Mapping[str, Path]) -> Iterator[str]:
    """Write all hostile documents below `target`.

    Args:
        samples: a real document of each kind.
    Yields:
        What could not be made here, and why.
    """
    canary = target.parent / "canary.txt"
    canary.write_text(CANARY, "utf-8")
    raw = {kind: path.read_bytes() for kind, path in samples.items()}
    makers: tuple[Made, ...] = (
        _damaged(raw),
        _empty(),
        _bombs(raw),
        _entities(raw, canary),
        _huge_sheets(raw),
        _nested(),
        _pages(),
    )
    for maker in makers:
        for name, content in maker:
            path = target / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    yield from _encrypt(target / "encrypted", samples)


def _damaged(raw: Mapping[str, bytes]) -> Made:
    for kind, content in raw.items():
        for share in _SHARES:
            yield f"truncated/{share}.{kind}", content[: len(content) * share // 100]
        flipped = bytearray(content)
        for at in range(_EVERY // 2, len(flipped), _EVERY):
            flipped[at] ^= 0x55
        yield f"flipped/one.{kind}", bytes(flipped)
        other = KINDS[(KINDS.index(kind) + 1) % len(KINDS)]
        yield f"renamed/{kind}-as.{other}", content
        yield f"trailing/{kind}-then-garbage.{kind}", content + b"\0\xff garbage " * 4_000


def _empty() -> Made:
    for kind in KINDS:
        magic = _MAGIC.get(kind, b"PK\x03\x04")
        yield f"empty/empty.{kind}", b""
        yield f"empty/magic.{kind}", magic
        yield f"empty/magic-then-noise.{kind}", magic + bytes(range(256)) * 40
        yield f"empty/spaces.{kind}", b" \n" * 5_000


def _rewritten(raw: bytes, parts: Mapping[str, bytes]) -> bytes:
    """An archive with some parts replaced or added."""
    out = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(raw)) as old,
        zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for info in old.infolist():
            if info.filename not in parts:
                new.writestr(info, old.read(info))
        for name, content in parts.items():
            new.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def _bombs(raw: Mapping[str, bytes]) -> Made:
    zeros = bytes(600 * _MB)
    for kind in _PARTS:
        bomb = _rewritten(raw[kind], {_MAIN[kind]: zeros})
        yield f"bombs/one-huge-part.{kind}", bomb
        yield f"bombs/lying-sizes.{kind}", _with_sizes(bomb, 600 * _MB, 1_000)
        yield f"bombs/nested.{kind}", _rewritten(raw[kind], {"word/nested.zip": bomb})
        many = {f"x/{i}": b"" for i in range(60_000)}
        yield f"bombs/many-parts.{kind}", _rewritten(raw[kind], many)
        yield f"bombs/overlapping.{kind}", _overlapping(raw[kind], 15_000)
        yield f"bombs/long-words.{kind}", _rewritten(raw[kind], {_MAIN[kind]: _long_word(kind)})
    for kind in ("epub",):
        big = {f"OEBPS/more{i}.xhtml": bytes(100 * _MB) for i in range(6)}
        yield f"bombs/many-huge-parts.{kind}", _rewritten(raw[kind], big)
    stream = zlib.compress(zeros, 9)
    yield "bombs/stream.pdf", _pdf({4: _stream(stream, "/Filter /FlateDecode")})
    twice = zlib.compress(stream, 9)
    yield "bombs/stream-twice.pdf", _pdf({4: _stream(twice, "/Filter [/FlateDecode /FlateDecode]")})


def _with_sizes(raw: bytes, honest: int, lie: int) -> bytes:
    """The archive with a size replaced by another wherever it is stated."""
    return raw.replace(struct.pack("<L", honest), struct.pack("<L", lie))


def _overlapping(raw: bytes, times: int) -> bytes:
    """A directory that names one and the same part again and again."""
    end = raw.rfind(b"PK\x05\x06")
    n, size, start = struct.unpack("<HLL", raw[end + 10 : end + 20])
    directory = raw[start : start + size]
    entry_end = 46 + sum(struct.unpack("<HHH", directory[28:34]))
    entry = directory[:entry_end]
    times = min(times, 65_535 - n)
    more = b"".join(
        entry[:46] + b"%0*d" % (len(entry[46:]), i) for i in range(times) if len(entry[46:]) > 5
    )
    tail = struct.pack("<4sHHHHLLH", b"PK\x05\x06", 0, 0, n + times, n + times,
                       size + len(more), start, 0)  # fmt: skip
    return raw[:start] + directory + more + tail


def _long_word(kind: str) -> bytes:
    """Well-formed XML whose text is one word of 40 million letters."""
    word = "a" * (40 * _MB)
    if kind == "docx":
        space = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
        return (
            f'<w:document xmlns:w="{space}"><w:body><w:p><w:r><w:t>{word}</w:t></w:r></w:p>'
            "</w:body></w:document>"
        ).encode()
    return f"<root>{word}</root>".encode()


def _entities(raw: Mapping[str, bytes], canary: Path) -> Made:
    levels = "".join(
        f'<!ENTITY e{i} "{f"&e{i - 1};" * 10}">' for i in range(1, 12)
    )  # ten to the eleventh
    laughs = f'<!DOCTYPE x [<!ENTITY e0 "ha">{levels}]>'
    outside = f'<!DOCTYPE x [<!ENTITY e11 SYSTEM "{canary.resolve().as_uri()}">]>'
    for kind, main in _MAIN.items():
        with zipfile.ZipFile(io.BytesIO(raw[kind])) as archive:
            part = archive.read(main).decode("utf-8", "replace")
        for what, doctype in (("laughs", laughs), ("outside", outside)):
            evil = _with_entity(part, doctype).encode()
            yield f"entities/{what}.{kind}", _rewritten(raw[kind], {main: evil})
    for what, doctype in (("laughs", laughs), ("outside", outside)):
        page = f"<?xml version='1.0'?>{doctype}<html><body><p>text &e11; text</p></body></html>"
        yield f"entities/{what}.html", page.encode()
        with zipfile.ZipFile(io.BytesIO(raw["epub"])) as archive:
            chapters = [n for n in archive.namelist() if n.endswith(("html", ".htm"))]
            packages = [n for n in archive.namelist() if n.endswith((".opf", ".ncx"))]
        parts = dict.fromkeys(chapters, page.encode())
        yield f"entities/{what}.epub", _rewritten(raw["epub"], parts)
        yield (
            f"entities/{what}-package.epub",
            _rewritten(raw["epub"], dict.fromkeys(packages, page.encode())),
        )


def _with_entity(part: str, doctype: str) -> str:
    """XML with a document type, and an entity as the first text of its body."""
    declared, _, rest = part.partition("?>") if part.startswith("<?xml") else ("", "", part)
    head = f"{declared}?>" if declared else ""
    for mark in ("<w:t>", "<a:t>", "<v>", "<text:p>", '<w:t xml:space="preserve">'):
        if mark in rest:
            return head + doctype + rest.replace(mark, f"{mark}&e11;", 1)
    close = rest.rfind("</")
    return head + doctype + rest[:close] + "&e11;" + rest[close:]


def _huge_sheets(raw: Mapping[str, bytes]) -> Made:
    space = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    cell = '<c r="A{0}" t="inlineStr"><is><t>row {0} of a long sheet</t></is></c>'
    rows = "".join(f'<row r="{i}">{cell.format(i)}</row>' for i in range(1, 1_048_577, 1))
    head, tail = f'<worksheet xmlns="{space}"><sheetData>', "</sheetData></worksheet>"
    whole = (head + rows + tail).encode()
    padded = whole + b"\n" * max(0, 200 * _MB - len(whole))
    yield "sheets/200-mb.xlsx", _rewritten(raw["xlsx"], {_MAIN["xlsx"]: padded})
    far = f'<row r="1048576">{cell.format(1_048_576)}</row><row r="99999999999">x</row>'
    yield (
        "sheets/far-row.xlsx",
        _rewritten(raw["xlsx"], {_MAIN["xlsx"]: (head + far + tail).encode()}),
    )
    with zipfile.ZipFile(io.BytesIO(raw["ods"])) as archive:
        content = archive.read("content.xml").decode()
    for what, count in (("rows", "rows"), ("columns", "columns")):
        tag = "table:table-row" if what == "rows" else "table:table-cell"
        evil = content.replace(f"<{tag}", f'<{tag} table:number-{count}-repeated="2000000000"', 1)
        evil = evil.replace('repeated="2000000000" table:number', 'repeated="2000000000" table:no')
        yield f"sheets/repeated-{what}.ods", _rewritten(raw["ods"], {"content.xml": evil.encode()})


def _nested() -> Made:
    yield "nested/tags.html", b"<html><body>" + b"<div>" * 200_000 + b"deep text"
    yield "nested/tables.html", b"<table><tr><td>" * 20_000 + b"deep text"
    yield "nested/wide.html", b"<table><tr><td colspan=999999999 rowspan=999999999>x</table>"
    yield "nested/blocks.html", b"<p>paragraph</p>\n" * 300_000
    yield "nested/groups.rtf", b"{\\rtf1 " + b"{" * 500_000 + b"deep text"
    yield "nested/long-word.rtf", b"{\\rtf1 " + b"a" * (20 * _MB) + b"}"
    yield "nested/binary.rtf", b"{\\rtf1 text \\bin2147483647 abc}"
    yield "nested/lists.ipynb", b'{"cells":' + b"[" * 500_000
    cell = {"cell_type": "code", "source": ["x = 1\n"], "metadata": {}, "outputs": []}
    book = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [cell] * 100_000}
    yield "nested/100000-cells.ipynb", json.dumps(book).encode()
    noise = {
        "output_type": "stream",
        "name": "stdout",
        "text": ["0123456789" * 10 + "\n"] * 200_000,
    }
    loud = {**book, "cells": [{**cell, "outputs": [noise]}]}
    yield "nested/20-mb-output.ipynb", json.dumps(loud).encode()
    parts = "".join(
        f"Content-Type: multipart/mixed; boundary=b{i}\n\n--b{i}\n" for i in range(3_000)
    )
    yield "nested/parts.eml", f"From: a@example.com\nSubject: deep\n{parts}".encode()
    yield "nested/headers.eml", b"From: a@example.com\n" + b"X-A: b\n" * 500_000 + b"\ntext\n"


def _pdf(objects: Mapping[int, bytes], count: int = 1, kids: str = "3 0 R") -> bytes:
    """A file of one page whose content is object 4; further objects as given."""
    everything = {
        1: b"<< /Type /Catalog /Pages 2 0 R >>",
        2: f"<< /Type /Pages /Kids [{kids}] /Count {count} >>".encode(),
        3: b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 200 200] /Contents 4 0 R"
        b" /Resources << /XObject << /I 5 0 R >> >> >>",
        **objects,
    }
    out = bytearray(b"%PDF-1.7\n")
    starts = {}
    for number, body in sorted(everything.items()):
        starts[number] = len(out)
        out += b"%d 0 obj\n%b\nendobj\n" % (number, body)
    table = len(out)
    size = max(everything) + 1
    out += b"xref\n0 %d\n0000000000 65535 f \n" % size
    for number in range(1, size):
        out += b"%010d 00000 %b \n" % (starts.get(number, 0), b"n" if number in starts else b"f")
    out += b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (size, table)
    return bytes(out)


def _stream(content: bytes, entries: str = "") -> bytes:
    head = f"<< /Length {len(content)} {entries} >>".encode()
    return head + b"\nstream\n" + content + b"\nendstream"


def _pages() -> Made:
    image = _stream(
        zlib.compress(bytes(100 * 100)),
        "/Type /XObject /Subtype /Image /Width 100 /Height 100 /BitsPerComponent 8"
        " /ColorSpace /DeviceGray /Filter /FlateDecode",
    )
    scan = {4: _stream(b"q 200 0 0 200 0 0 cm /I Do Q"), 5: image}
    yield "scanned/image-only.pdf", _pdf(scan)
    yield "pages/claimed.pdf", _pdf(scan, count=2_000_000_000)
    yield "pages/loop.pdf", _pdf(scan, kids="2 0 R 3 0 R")
    yield "pages/same-page.pdf", _pdf(scan, count=200_000, kids="3 0 R " * 200_000)


def _encrypt(folder: Path, samples: Mapping[str, Path]) -> Iterator[str]:
    """Documents that open with a password, as far as the tools for it are there."""
    folder.mkdir(parents=True, exist_ok=True)
    qpdf = shutil.which("qpdf")
    if qpdf is None:
        yield "no encrypted pdf: qpdf is not there"
    else:
        pair = ["--encrypt", PASSWORD, PASSWORD, "256", "--"]
        pdf = [qpdf, *pair, str(samples["pdf"]), str(folder / "locked.pdf")]
        subprocess.run(pdf, check=True, capture_output=True)
    try:
        office = importlib.import_module("msoffcrypto.format.ooxml")
    except ImportError:
        yield "no encrypted docx, pptx, xlsx: msoffcrypto-tool is not installed"
    else:
        for kind in ("docx", "pptx", "xlsx"):
            with samples[kind].open("rb") as plain, (folder / f"locked.{kind}").open("wb") as out:
                office.OOXMLFile(plain).encrypt(PASSWORD, out)
    for kind in ("odt", "ods", "odp"):
        (folder / f"locked.{kind}").write_bytes(_locked_odf(samples[kind].read_bytes(), kind))
    for kind in ("docx", "epub"):
        bits = _with_encrypted_bit(samples[kind].read_bytes())
        (folder / f"zip-password.{kind}").write_bytes(bits)


def _locked_odf(raw: bytes, kind: str) -> bytes:
    """An OpenDocument whose manifest says that its content is encrypted, which it looks like."""
    names = {"odt": "text", "ods": "spreadsheet", "odp": "presentation"}
    space = "urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"
    manifest = (
        f'<manifest:manifest xmlns:manifest="{space}">'
        f'<manifest:file-entry manifest:full-path="/"'
        f' manifest:media-type="application/vnd.oasis.opendocument.{names[kind]}"/>'
        '<manifest:file-entry manifest:full-path="content.xml" manifest:media-type="text/xml"'
        ' manifest:size="1000"><manifest:encryption-data><manifest:algorithm'
        ' manifest:algorithm-name="http://www.w3.org/2001/04/xmlenc#aes256-cbc"/>'
        "</manifest:encryption-data></manifest:file-entry></manifest:manifest>"
    )
    noise = bytes((i * i * 31 + i) & 0xFF for i in range(1_000))
    return _rewritten(raw, {"META-INF/manifest.xml": manifest.encode(), "content.xml": noise})


def _with_encrypted_bit(raw: bytes) -> bytes:
    """The archive with all its parts marked as encrypted, in the directory and before each."""
    out = bytearray(raw)
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        for info in archive.infolist():
            out[info.header_offset + 6] |= 1
    at = raw.rfind(b"PK\x05\x06")
    start = struct.unpack("<L", raw[at + 16 : at + 20])[0]
    while raw[start : start + 4] == b"PK\x01\x02":
        out[start + 8] |= 1
        start += 46 + sum(struct.unpack("<HHH", raw[start + 28 : start + 34]))
    return bytes(out)

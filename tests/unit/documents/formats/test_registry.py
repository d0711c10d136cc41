"""Which formats there are, and how a file's content shows its own."""

from __future__ import annotations

import io
import struct
import subprocess
import sys
import zipfile
from importlib.metadata import version
from pathlib import Path

import pytest

from ragx.documents.formats import registry
from ragx.documents.formats.registry import BUILT_IN, Description, Format, Plugin
from ragx.documents.formats.sniff import OLE, choose, sniff

ODT = b"application/vnd.oasis.opendocument.text"
OLE_MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
NOISE = bytes(range(256)) * 8


def archive(*names: str, mimetype: bytes = b"", method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A zip of parts that hold something; `mimetype` stands first, as it should."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as file:
        if mimetype:
            file.writestr("mimetype", mimetype, zipfile.ZIP_STORED)
        for name in names:
            file.writestr(name, NOISE)
    return buffer.getvalue()


WORD = archive("[Content_Types].xml", "_rels/.rels", "word/document.xml")
BOOK = archive("META-INF/container.xml", "a.opf", mimetype=b"application/epub+zip")

SAMPLES = {
    "pdf": b"%PDF-1.7\n" + NOISE,
    "docx": WORD,
    "pptx": archive("ppt/slides/slide1.xml", "[Content_Types].xml"),
    "xlsx": archive("xl/workbook.xml", "[Content_Types].xml"),
    "odt": archive("content.xml", "META-INF/manifest.xml", mimetype=ODT),
    "ods": archive("content.xml", mimetype=b"application/vnd.oasis.opendocument.spreadsheet"),
    "odp": archive("content.xml", mimetype=b"application/vnd.oasis.opendocument.presentation"),
    "epub": BOOK,
    "rtf": b"{\\rtf1\\ansi Hello}",
    OLE: OLE_MAGIC + bytes(512),
}


def test_names_and_extensions_are_each_given_once():
    names = [format.name for format in BUILT_IN]
    extensions = [extension for format in BUILT_IN for extension in format.extensions]
    assert len(set(names)) == len(names)
    assert len(set(extensions)) == len(extensions)
    assert all(each == each.lower().strip(".") for each in extensions)
    assert [registry.find(name) for name in names] == list(BUILT_IN)
    assert registry.find("txt") is None


def test_to_ask_what_is_installed_imports_nothing():
    program = (
        "import sys; before = set(sys.modules);"
        "from ragx.documents.formats import registry, sniff;"
        "[registry.is_installed(format) for format in registry.BUILT_IN];"
        "heavy = {name.partition('.')[0] for name in set(sys.modules) - before};"
        "needed = {name for format in registry.BUILT_IN for name in format.requires};"
        "print(sorted(heavy & (needed | {'numpy', 'lxml', 'email'})))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_a_format_is_installed_if_all_that_it_needs_is():
    def format(*requires: str) -> Format:
        return Format("tea", "3", ("tea",), "nowhere", requires, "Tea", ("orjson", "no-such-thing"))

    assert registry.is_installed(format())
    assert registry.is_installed(format("orjson"))
    assert not registry.is_installed(format("orjson", "no_such_library"))
    expected = f"tea@3/orjson-{version('orjson')}/no-such-thing-absent"
    assert registry.identity(format()) == expected


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("path", ["a.bin", "docs/a.PDF", "a.docx", "a.html", "a.ipynb", "a"])
def test_content_beats_the_extension(name: str, path: str):
    assert sniff(path, SAMPLES[name]) == name


@pytest.mark.parametrize("extension", [ext for each in BUILT_IN for ext in each.extensions])
def test_text_is_text_whatever_its_name_claims(extension: str):
    if extension not in ("html", "htm", "xhtml"):
        assert sniff(f"a.{extension}", b"Plain words, and more of them.\n") == ""
    assert sniff(f"a.{extension}", b"") == ""


@pytest.mark.parametrize("extension", ["pdf", "docx", "xlsm", "epub", "rtf", "odp"])
def test_a_binary_that_shows_no_format_is_what_it_claims(extension: str):
    claimed = next(each.name for each in BUILT_IN if extension in each.extensions)
    assert sniff(f"a.{extension}", NOISE) == claimed
    assert sniff(f"a.{extension}x", NOISE) == ""


@pytest.mark.parametrize("extension", ["html", "ipynb", "eml", "png", "zip", ""])
def test_a_binary_that_claims_to_be_text_is_a_binary(extension: str):
    assert sniff(f"a.{extension}", NOISE) == ""
    assert sniff(f"a.{extension}", archive("a.txt", "word/a.txt")) == ""


def test_a_pdf_may_start_late_if_it_is_no_text():
    late = b"HTTP/1.1 200 OK\r\n" + bytes(100) + b"%PDF-1.4\n" + NOISE
    assert sniff("a.bin", late) == "pdf"
    words = b"# How files begin\n\nA PDF starts with `%PDF-1.4`.\n"
    assert sniff("a.md", words) == ""
    assert sniff("a.pdf", words) == "pdf"
    assert sniff("a.bin", bytes(2000) + b"%PDF-1.4\n") == ""
    assert sniff("a", b"\xef\xbb\xbf\n%PDF-1.4\n" + NOISE) == "pdf"


def test_notebooks_and_mails_need_name_and_content():
    assert sniff("a.ipynb", b'\xef\xbb\xbf {"cells": []}') == "notebook"
    assert sniff("a.json", b'{"cells": []}') == ""
    assert sniff("a.ipynb", b"[1]") == ""
    assert sniff("a.eml", b"Subject: tides\n\nHello") == "mail"
    assert sniff("a.eml", b"From ann Mon Jan  1 00:00:00 2024\nTo: b\n\n") == "mail"
    assert sniff("a.eml", b"X-Odd : 1\n\n" + NOISE) == "mail"
    assert sniff("a.eml", b"Dear all, this is it: nothing.\n") == ""
    assert sniff("a.txt", b"Subject: tides\n\nHello") == ""


PAGE = b"<!DOCTYPE html>\n<html><head><title>Tides</title></head><body><p>Hello</p></body></html>"


def test_a_page_is_one_where_pages_are_expected():
    for path in ("a.html", "a.htm", "a.xhtml", "a.md", "a.txt", "a"):
        assert sniff(path, PAGE) == "html", path
    for path in ("a.py", "a.vue", "a.php", "a.js"):
        assert sniff(path, PAGE) == "", path


@pytest.mark.parametrize("name", ["docx", "epub", "odt"])
def test_an_archive_cut_off_shows_its_format_while_it_can(name: str):
    raw = SAMPLES[name]
    for length in range(4, len(raw)):
        assert sniff(f"a.{name}", raw[:length]) == name
        assert sniff("a.zip", raw[:length]) in (name, "")
    assert sniff("a.zip", raw[:-30]) == name


def test_an_archive_with_something_before_or_behind_it_is_read():
    shifted = bytearray(WORD)
    assert sniff("a.bin", bytes(shifted) + b"a remark") == "docx"
    assert sniff("a.bin", WORD[:30] + WORD[30:]) == "docx"
    assert sniff("a.bin", b"PK\x03\x04 junk " + WORD) == "docx"


def test_a_document_within_a_document_does_not_count():
    outer = archive(
        "[Content_Types].xml", "ppt/presentation.xml", "ppt/embeddings/a.docx",
        method=zipfile.ZIP_STORED,
    )  # fmt: skip
    buffer = io.BytesIO(outer)
    with zipfile.ZipFile(buffer, "a", zipfile.ZIP_STORED) as file:
        file.writestr("ppt/embeddings/b.docx", WORD)
    assert sniff("a", buffer.getvalue()) == "pptx"


def test_of_two_documents_in_one_the_name_decides():
    both = archive("[Content_Types].xml", "word/document.xml", "xl/workbook.xml")
    assert sniff("a.xlsx", both) == "xlsx"
    assert sniff("a.zip", both) == "docx"


def test_a_missing_or_compressed_mimetype_is_made_up_for():
    assert sniff("a", archive("META-INF/container.xml")) == "epub"
    assert sniff("a.ods", archive("content.xml", "META-INF/manifest.xml")) == "ods"
    assert sniff("a.zip", archive("content.xml", "META-INF/manifest.xml")) == "odt"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("mimetype", ODT)
    assert sniff("a", buffer.getvalue()) == "odt"


@pytest.mark.parametrize("at", range(10, 22))
def test_numbers_that_lie_do_no_harm(at: int):
    end = WORD.rfind(b"PK\x05\x06")
    for value in (0, 0x7F, 0xFF):
        raw = bytearray(WORD)
        raw[end + at] = value
        assert sniff("a.docx", bytes(raw)) == "docx"
    huge = bytearray(WORD)
    struct.pack_into("<II", huge, end + 12, 0xFFFFFFFF, 0xFFFFFFFF)
    assert sniff("a.zip", bytes(huge)) == "docx"


def test_an_archive_of_very_many_parts_is_looked_at_in_part():
    part = b"PK\x03\x04" + bytes(26)
    assert sniff("a.zip", part * 100_000) == ""
    assert sniff("a.docx", part * 100_000) == "docx"
    entry = b"PK\x01\x02" + bytes(42)
    end = struct.pack("<4s8xII2x", b"PK\x05\x06", 100_000 * len(entry), len(part))
    assert sniff("a.zip", part + entry * 100_000 + end) == ""


@pytest.mark.parametrize("flip", range(0, len(BOOK), 7))
def test_a_flipped_byte_raises_nothing(flip: int):
    raw = bytearray(BOOK)
    raw[flip] ^= 0xFF
    assert sniff("a.epub", bytes(raw)) in ("epub", "")


def described(name: str, *extensions: str) -> Description:
    return Description(name, "1", extensions, Plugin(name, f"{name}:reader", name, "1.0"))


def test_plugins_come_first_unless_the_content_speaks_against_it():
    tex, better, pages = described("tex", "tex", "sty"), described("pdf"), described("pages", "pdf")
    assert choose("a.tex", b"\\section{Tides}", (tex,)) == "tex"
    assert choose("a.tex", SAMPLES["pdf"], (tex,)) == "pdf"
    assert choose("a.pdf", SAMPLES["pdf"], (better, pages)) == "pdf"
    assert choose("a.pdf", SAMPLES["pdf"], (pages,)) == "pages"
    assert choose("a.pdf", SAMPLES["docx"], (pages,)) == "docx"
    assert choose("a.doc", SAMPLES[OLE], (described("word", "doc"),)) == "word"
    assert choose("a.doc", SAMPLES[OLE], (tex,)) == OLE
    assert choose("a.txt", b"words", (tex,)) == ""


def test_entry_points_are_found_without_importing_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    info = tmp_path / "tea_reader-2.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tea-reader\nVersion: 2.1\n")
    (info / "entry_points.txt").write_text(
        "[ragx.extractors]\nmilk = nowhere.at_all:milk\nlemon = nowhere.at_all:lemon\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    registry.plugins.cache_clear()
    try:
        found = [each for each in registry.plugins() if each.distribution == "tea-reader"]
    finally:
        registry.plugins.cache_clear()
    assert found == [
        Plugin("lemon", "nowhere.at_all:lemon", "tea-reader", "2.1"),
        Plugin("milk", "nowhere.at_all:milk", "tea-reader", "2.1"),
    ]

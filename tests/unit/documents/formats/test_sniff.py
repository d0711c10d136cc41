"""Texts that begin like a document, and documents that are named like a text."""

from __future__ import annotations

import json

import pytest

from ragx.documents.formats.markup.html import is_document
from ragx.documents.formats.sniff import sniff

TEXTS = ("a.md", "a.txt", "a.rst", "a", "a.py", "a.tex", "a.c")

PDF_WORDS = b"%PDF-1.4 is the magic of a PDF.\n\nIt ends with `%%EOF`, an object with `endobj`.\n"
PDF_TEXT = (
    b"%PDF-1.4\n1 0 obj\n<< /Type /Catalog /Pages 2 0 R >>\nendobj\n2 0 obj\n"
    b"<< /Type /Pages /Kids [] /Count 0 >>\nendobj\ntrailer\n<< /Root 1 0 R >>\n"
    b"startxref\n9\n%%EOF\n"
)
PDF_BINARY = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n<< /Length 9 >>\nstream\n" + bytes(range(256))

RTF_WORDS = b"{\\rtf1 is how every RTF file begins, and it ends with }"
RTF = b"{\\rtf1\\ansi\\deff0{\\fonttbl{\\f0 Arial;}}\\f0 The {\\b tide} is \\{high\\}.\\par}"

PAGE = (
    b"<!DOCTYPE html>\n<html lang=en><head><title>Tides</title></head>\n"
    b"<body><h1>Tides</h1>\n<pre>\n# a comment\n```\n</pre><p>Hello</p></body></html>\n"
)


@pytest.mark.parametrize("path", TEXTS)
@pytest.mark.parametrize(
    "raw",
    [
        PDF_WORDS,
        b"%PDF-1.4",
        b"%PDF-1.4\nfile header, see `1 0 obj` and %%EOF\n",
        b"%PDF-\n",
        b"\xef\xbb\xbf%PDF-1.5 starts a file\n",
        RTF_WORDS,
        b"{\\rtf1}",
        b"{\\rtf1\\ansi is a header.\n",
        b"{\\rtf1\\ansi Hello} is a whole file.\n",
        b"{\\rtf1\\ansi Hello} is a whole file, and {so on}",
        b"{\\rtfx\\ansi}",
        b"{\\rtf1\\par Hello}",
    ],
)
def test_a_text_may_begin_like_a_document(path: str, raw: bytes) -> None:
    assert sniff(path, raw) == ""


@pytest.mark.parametrize("path", TEXTS)
@pytest.mark.parametrize(
    ("raw", "name"),
    [
        (PDF_TEXT, "pdf"),
        (PDF_BINARY, "pdf"),
        (PDF_BINARY[:60], "pdf"),
        (b"\n" + PDF_TEXT.replace(b"\n", b"\r\n"), "pdf"),
        (PDF_TEXT + b"\n" * 1000, "pdf"),
        (RTF, "rtf"),
        (b"\xef\xbb\xbf\n" + RTF + b"\r\n\0", "rtf"),
        (RTF[:-1] + b"{\\pict\\bin3 }}}}" + b"}", "rtf"),
        (RTF[:-1] + b" The tide is high." * 9000 + b"}", "rtf"),
        (b"{\\rtf\\mac Hello}", "rtf"),
        (b"{\\rtf1{\\info{\\title Tides}}Hello}", "rtf"),
    ],
)
def test_a_document_may_be_named_like_a_text(path: str, raw: bytes, name: str) -> None:
    assert sniff(path, raw) == name


def test_the_extension_of_its_own_makes_up_for_the_rest() -> None:
    assert sniff("a.pdf", PDF_WORDS) == "pdf"
    assert sniff("a.pdf", PDF_TEXT[:20]) == "pdf"
    assert sniff("a.rtf", RTF_WORDS) == "rtf"
    assert sniff("a.rtf", RTF[:12]) == "rtf"
    assert sniff("a.html", b"<!DOCTYPE html><p>Hello") == "html"
    assert sniff("a.rtf", PDF_WORDS) == ""
    assert sniff("a.pdf", RTF_WORDS) == ""


@pytest.mark.parametrize("path", ["a.md", "a.txt", "a"])
@pytest.mark.parametrize(
    "text",
    [
        "<!DOCTYPE html> is what every page begins with\n\n# Pages\n\nA `<head>`, `<body>`.\n",
        "<!DOCTYPE html>\nis what every page begins with, </html> what it ends with.\n",
        "<html> and <body> are tags.\n",
        "<!DOCTYPE html><p>Hello",
        "<html><p>Hello",
        "<body>is a tag</body>",
        "<html><head></head><body>\n\n# Tides\n\nText\n</body></html>",
        "<html><body>\n```python\nx\n```\n</body></html>",
        "<html><body><h1>Tides</h1></body></html>\n\nThe tide is high.\n",
        "<html><body><h1>Tides</h1></body></html>\n<b>x</b>\n</html>\n## Usage\n",
        "<!-- </html> -->\n# Tides\n<html><head>",
    ],
)
def test_a_text_may_begin_like_a_page(path: str, text: str) -> None:
    assert sniff(path, text.encode()) == ""


@pytest.mark.parametrize("path", ["a.md", "a.txt", "a", "a.html"])
@pytest.mark.parametrize(
    "raw",
    [
        PAGE,
        PAGE[:-30],
        b"\xef\xbb\xbf<!-- made by hand -->\n" + PAGE + b"\n<!-- cached -->\n",
        PAGE.replace(b"Hello", b"caf\xe9"),
        PAGE.decode().encode("utf-16"),
        PAGE.decode().encode("utf-16-le"),
        PAGE.upper(),
        b"<html><p>Hello</html>",
        b"<?xml version='1.0'?>\n<!DOCTYPE html PUBLIC '-//W3C//DTD' 'x'>\n<html><p/></html>",
    ],
)
def test_a_page_may_be_named_like_a_text(path: str, raw: bytes) -> None:
    assert sniff(path, raw) == "html"


@pytest.mark.parametrize(
    "text",
    ["{}", '{"template": {"name": "x"}}', '{"cell": 1, "n": "cells"}', "{ not JSON at all", "{"],
)
def test_json_of_another_kind_is_no_notebook(text: str) -> None:
    assert sniff("a.ipynb", text.encode()) == ""


@pytest.mark.parametrize("key", ["cells", "worksheets", "nbformat"])
def test_a_notebook_has_a_key_of_its_own_at_either_end(key: str) -> None:
    large = {"metadata": {"widgets": "x" * 200_000}}
    for notebook in ({key: [], **large}, {**large, key: []}):
        assert sniff("a.ipynb", json.dumps(notebook).encode()) == "notebook"
        assert sniff("a.ipynb", json.dumps(notebook, indent=1).encode()) == "notebook"


@pytest.mark.parametrize("raw", [PDF_TEXT, PDF_BINARY, RTF, PAGE, RTF_WORDS, PDF_WORDS])
def test_cut_off_anywhere_it_is_that_format_or_none(raw: bytes) -> None:
    whole = sniff("a.txt", raw)
    for length in range(len(raw)):
        assert sniff("a.txt", raw[:length]) in (whole, "")


def test_only_the_head_of_a_page_is_looked_at() -> None:
    words = "naïve café — " * 20_000
    assert is_document(b"<!doctype html><p>" + words.encode())
    # One whose 64 KiB end inside of a character.
    for shift in range(4):
        assert is_document(b"<!doctype html>" + b" " * shift + "é€𝄞".encode() * 20_000)
    assert (
        is_document(b"<!doctype html><p>" + bytes(range(32, 256)) * 100 + b"{% late %}" * 9_000)
        is False
    )
    assert is_document(b"<!doctype html><p>" + b"a" * 65_536 + b"{% block x %}")


@pytest.mark.parametrize(
    "charset", ["punycode", "idna", "unicode_escape", "utf-7", "iso-2022-kr", "hz"]
)
def test_a_declared_codec_does_not_decide_what_a_page_is(charset: str) -> None:
    start = f'<?xml version="1.0" encoding="{charset}"?>\n'.encode()
    assert sniff("a.html", start + b"<html><body><p>" + b"\xe9a-b" * 20_000) == "html"


@pytest.mark.parametrize(
    "piece", [b"</html", b"</html>", b"<html ", b"<!--", b"<head", b"\n" * 9, b"{"]
)
def test_the_same_again_and_again(piece: bytes) -> None:
    for start in (b"", b"<!doctype html>", b"%PDF-1.4\n", b"{\\rtf1\\ansi", b"<html><head>"):
        for path in ("a.txt", "a.html", "a.ipynb"):
            assert sniff(path, start + piece * (200_000 // len(piece))) in ("", "html")

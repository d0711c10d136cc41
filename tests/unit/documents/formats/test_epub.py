"""E-books: chapters in reading order, what a book says of itself, protection and damage."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from urllib.parse import quote

import pytest

from ragx.documents.formats.base import Extracted, ExtractLimits, SkippedPart
from ragx.documents.formats.markup.epub import extract
from ragx.errors import ExtractionError

LIMITS = ExtractLimits()
CONTAINER = (
    '<?xml version="1.0"?><container xmlns="urn:oasis:names:tc:opendocument:xmlns:container">'
    '<rootfiles><rootfile full-path="OPS/book.opf"/></rootfiles></container>'
)
NAV = (
    '<html xmlns:epub="e"><body><nav epub:type="landmarks"><ol><li><a href="z">no</a></ol></nav>'
    '<nav epub:type="toc"><h1>Contents</h1><ol>{}</ol></nav></body></html>'
)


def book(
    pages: Mapping[str, str],
    *,
    nav: str = "",
    ncx: str = "",
    metadata: str = "",
    spine: str = "",
    extra: Mapping[str, str | bytes] | None = None,
) -> bytes:
    items = "".join(
        f'<item id="i{n}" href="{quote(name)}" media-type="application/xhtml+xml"/>'
        for n, name in enumerate(pages)
    )
    if nav:
        items += (
            '<item id="nav" href="nav.xhtml" properties="nav" media-type="application/xhtml+xml"/>'
        )
    if ncx:
        items += '<item id="ncx" href="toc.ncx" media-type="application/x-dtbncx+xml"/>'
    refs = spine or "".join(f'<itemref idref="i{n}"/>' for n in range(len(pages)))
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f"<metadata>{metadata}</metadata><manifest>{items}</manifest>"
        f'<spine toc="ncx">{refs}</spine></package>'
    )
    parts: dict[str, str | bytes] = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": CONTAINER,
        "OPS/book.opf": package,
    }
    if nav:
        parts["OPS/nav.xhtml"] = NAV.format(nav)
    if ncx:
        parts["OPS/toc.ncx"] = f"<ncx><navMap>{ncx}</navMap></ncx>"
    parts |= {f"OPS/{name}": text for name, text in pages.items() if text}
    return packed(parts | dict(extra or {}))


def packed(parts: Mapping[str, str | bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return file.getvalue()


def read(raw: bytes) -> Extracted:
    return extract(raw, LIMITS)


def placed(got: Extracted) -> list[tuple[int, str, str]]:
    return [(block.place.number, block.place.name, block.text) for block in got.blocks]


def fault(raw: bytes, limits: ExtractLimits = LIMITS) -> str:
    with pytest.raises(ExtractionError) as caught:
        extract(raw, limits)
    assert "\n" not in str(caught.value)
    return caught.value.code


def point(label: str, src: str, inner: str = "") -> str:
    label = f"<navLabel><text>{label}</text></navLabel>"
    return f"<navPoint>{label}<content src='{src}'/>{inner}</navPoint>"


class TestChapters:
    def test_are_numbered_by_the_table_of_contents(self) -> None:
        raw = book(
            {
                "cover.xhtml": "<h1>The Book</h1><p>by X</p>",
                "a.xhtml": "<h2>Alpha</h2><p>one</p>",
                "a2.xhtml": "<p>two</p>",
                "b c.xhtml": "<p>three</p>",
            },
            nav="<li><a href='a.xhtml'>A</a><ol><li><a href='a2.xhtml'>sub</a></li></ol></li>"
            "<li><a href='b%20c.xhtml'>B  c</a></li>",
        )
        assert placed(read(raw)) == [
            (0, "The Book", "The Book"),
            (0, "The Book", "by X"),
            (1, "A", "Alpha"),
            (1, "A", "one"),
            (1, "A", "two"),
            (2, "B c", "three"),
        ]
        assert {block.place.kind for block in read(raw).blocks} == {"chapter"}
        assert [block.level for block in read(raw).blocks][:3] == [1, 0, 2]

    def test_may_begin_within_a_file(self) -> None:
        raw = book(
            {
                "a.xhtml": "<p>before</p><div id='x'><h1>X</h1><p>x</p></div><h1><a id='y'/>Y</h1>",
                "b.xhtml": "<p>y goes on</p>",
            },
            ncx=point("X", "a.xhtml#x") + point("Y", "a.xhtml#y"),
        )
        assert placed(read(raw)) == [
            (0, "front matter", "before"),
            (1, "X", "X"),
            (1, "X", "x"),
            (2, "Y", "Y"),
            (2, "Y", "y goes on"),
        ]

    def test_of_a_book_that_is_one_entry_are_those_within(self) -> None:
        inner = point("One", "a.xhtml") + point("Two", "b.xhtml")
        raw = book(
            {"t.xhtml": "<p>t</p>", "a.xhtml": "<p>a</p>", "b.xhtml": "<p>b</p>"},
            ncx=point("Book", "t.xhtml", inner),
        )
        assert placed(read(raw)) == [(0, "front matter", "t"), (1, "One", "a"), (2, "Two", "b")]

    def test_without_contents_there_is_one(self) -> None:
        raw = book({"a.xhtml": "<p>a</p>", "b.xhtml": "<p>b</p>"})
        assert placed(read(raw)) == [(0, "", "a"), (0, "", "b")]

    def test_an_anchor_that_is_not_there_begins_at_the_next_file(self) -> None:
        raw = book(
            {"a.xhtml": "<p>a</p>", "b.xhtml": "<p>b</p>"},
            ncx=point("A", "a.xhtml") + point("Gone", "a.xhtml#gone"),
        )
        assert placed(read(raw)) == [(1, "A", "a"), (2, "Gone", "b")]

    def test_order_is_that_of_the_spine(self) -> None:
        raw = book(
            {"a.xhtml": "<p>a</p>", "b.xhtml": "<p>b</p>"},
            spine='<itemref idref="i1"/><itemref idref="i0"/><itemref idref="i1"/>',
            nav="<li><a href='a.xhtml'>A</a></li><li><a href='b.xhtml'>B</a></li>",
        )
        assert placed(read(raw)) == [(1, "B", "b"), (2, "A", "a")]

    def test_links_are_as_written(self) -> None:
        (block,) = read(book({"a.xhtml": "<p><a href='b.xhtml#n1'>note</a></p>"})).blocks
        assert [(k.start, k.end, k.target) for k in block.links] == [(0, 4, "b.xhtml#n1")]

    def test_xhtml_may_close_any_element_by_its_own_tag(self) -> None:
        text = "<html><head><title/><script src='x'/></head><body><p/><a id='n'/><p>a</p></body>"
        assert placed(read(book({"a.xhtml": text}))) == [(0, "", "a")]

    def test_notes_and_headers_are_text(self) -> None:
        text = (
            "<header><p>Part</p><h1>One</h1></header><p>Body.</p>"
            "<aside epub:type='footnote'><p>A note.</p></aside><nav><a href='b'>b</a></nav>"
        )
        assert [t for _, _, t in placed(read(book({"a.xhtml": text})))] == [
            "Part", "One", "Body.", "A note.",
        ]  # fmt: skip

    def test_any_script(self) -> None:
        raw = book({"a.xhtml": "<p>کتاب فارسی</p>", "b.xhtml": "<p>第一章</p>"})
        assert [text for _, _, text in placed(read(raw))] == ["کتاب فارسی", "第一章"]


class TestAbout:
    def test_title_date_subjects(self) -> None:
        got = read(
            book(
                {"a.xhtml": "<p>a</p>"},
                metadata="<dc:title>A  &amp; B</dc:title><dc:date>2001-01-01</dc:date>"
                "<meta property='dcterms:modified'>2024-03-17T00:00:00Z</meta>"
                "<dc:subject>Dogs; Cats</dc:subject><dc:subject>Dogs</dc:subject>",
            )
        )
        assert (got.title, got.date, got.tags) == ("A & B", "2024-03-17", ("Dogs", "Cats"))

    def test_missing_and_broken_files_are_named(self) -> None:
        got = read(book({"a.xhtml": "<p>a</p>", "gone.xhtml": ""}))
        assert placed(got) == [(0, "", "a")]
        assert got.skipped_parts == (SkippedPart("missing files", 1, "OPS/gone.xhtml"),)

    def test_items_that_are_anchors_of_a_file_are_read_with_it(self) -> None:
        """As SiSU writes the manifests of its books."""
        got = read(
            book(
                {"a.xhtml": "<p>a</p>", "a.xhtml#o2": "", "b.xhtml": "<p>b</p>"},
                nav='<li><a href="a.xhtml">A</a></li>',
            ).replace(b"%23o2", b"#o2")
        )
        assert [text for _, _, text in placed(got)] == ["a", "b"]
        assert got.skipped_parts == ()

    def test_images_are_counted(self) -> None:
        got = read(book({"a.xhtml": "<p>a<img src='x.png' alt=''/></p>"}))
        assert got.skipped_parts == (SkippedPart("images", 1),)


def protection(algorithm: str, uri: str) -> dict[str, str]:
    data = (
        f"<e:EncryptionMethod Algorithm='{algorithm}'/>"
        f"<e:CipherData><e:CipherReference URI='{uri}'/></e:CipherData>"
    )
    text = f"<encryption xmlns:e='x'><e:EncryptedData>{data}</e:EncryptedData></encryption>"
    return {"META-INF/encryption.xml": text}


class TestHostile:
    def test_protected_text(self) -> None:
        aes = "http://www.w3.org/2001/04/xmlenc#aes128-cbc"
        pages = {"a.xhtml": "<p>a</p>"}
        assert fault(book(pages, extra=protection(aes, "OPS/a.xhtml"))) == "encrypted"

    def test_hidden_fonts_are_no_protection(self) -> None:
        for algorithm in ("http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC"):
            extra = protection(algorithm, "OPS/font.otf")
            assert len(read(book({"a.xhtml": "<p>a</p>"}, extra=extra)).blocks) == 1

    def test_cut_off_anywhere(self) -> None:
        raw = book({"a.xhtml": "<p>a</p>" * 50}, nav="<li><a href='a.xhtml'>A</a></li>")
        for length in range(0, len(raw), 7):
            assert fault(raw[:length]) == "damaged"

    def test_flipped_bytes(self) -> None:
        raw = book({"a.xhtml": "<p>alpha</p>", "b.xhtml": "<p>beta</p>"}, ncx=point("A", "a.xhtml"))
        for at in range(0, len(raw), 3):
            changed = bytearray(raw)
            changed[at] ^= 0xFF
            assert _code(bytes(changed)) in ("", "damaged", "encrypted", "too_big", "no_text")

    def test_not_a_book(self) -> None:
        for raw in (b"", b"PK\3\4garbage", b"%PDF-1.4", packed({"a.txt": "x"})):
            assert fault(raw) == "damaged"

    def test_a_package_that_lists_nothing(self) -> None:
        assert fault(book({})) == "damaged"
        assert fault(book({"gone.xhtml": ""})) == "damaged"

    def test_a_package_that_is_no_xml(self) -> None:
        parts = {"META-INF/container.xml": CONTAINER, "OPS/book.opf": b"\0\1\2"}
        assert fault(packed(parts)) == "damaged"

    def test_entities_are_refused(self) -> None:
        types = '<!DOCTYPE p [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>'
        bomb = types + "<package>&b;</package>"
        parts = {"META-INF/container.xml": CONTAINER, "OPS/book.opf": bomb}
        assert fault(packed(parts)) == "damaged"

    def test_deep_package(self) -> None:
        parts = {"META-INF/container.xml": CONTAINER, "OPS/book.opf": "<a>" * 200_000}
        assert fault(packed(parts)) == "damaged"

    def test_unpacks_to_too_much(self) -> None:
        raw = book({"a.xhtml": "<p>" + "a" * 100_000})
        assert fault(raw, ExtractLimits(max_expanded_bytes=50_000)) == "too_big"
        assert fault(raw, ExtractLimits(max_bytes=100)) == "too_big"

    def test_many_blocks_end_at_the_limit(self) -> None:
        raw = book({f"{n}.xhtml": "<p>a</p>" * 100 for n in range(20)})
        got = extract(raw, ExtractLimits(max_blocks=150))
        assert (len(got.blocks), got.skipped_parts[-1].what) == (150, "rest")

    def test_pictures_only(self) -> None:
        raw = book({"a.xhtml": "<img src='a.jpg'/>"}, extra={"OPS/a.jpg": b"x"})
        assert fault(raw) == "no_text"

    def test_names_that_lead_out_of_the_archive(self) -> None:
        got = read(book({"a.xhtml": "<p>a</p>", "../../../etc/passwd": ""}))
        assert placed(got) == [(0, "", "a")]
        assert got.skipped_parts[0].what == "missing files"

    def test_contents_that_lead_nowhere(self) -> None:
        raw = book(
            {"a.xhtml": "<p>a</p>"},
            nav="<li><a href='http://e.org/'>web</a></li><li><span>no link</span></li>"
            "<li><a href=''>none</a></li><li><a href='a.xhtml'>A</a></li>",
        )
        assert placed(read(raw)) == [(1, "A", "a")]


def _code(raw: bytes) -> str:
    try:
        read(raw)
    except ExtractionError as exc:
        return exc.code
    return ""

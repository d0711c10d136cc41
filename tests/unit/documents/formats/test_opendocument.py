"""OpenDocument texts, spreadsheets and presentations, written here part by part."""

import io
import zipfile

import pytest

from ragx.documents.formats.base import Block, ExtractLimits, Link, Place
from ragx.documents.formats.office.opendocument import extract
from ragx.errors import ExtractionError

LIMITS = ExtractLimits()
NAMES = " ".join(
    f'xmlns:{prefix}="urn:oasis:names:tc:opendocument:xmlns:{space}:1.0"'
    for prefix, space in {
        "office": "office",
        "text": "text",
        "table": "table",
        "style": "style",
        "draw": "drawing",
        "svg": "svg-compatible",
        "meta": "meta",
        "presentation": "presentation",
    }.items()
) + (' xmlns:xlink="http://www.w3.org/1999/xlink" xmlns:dc="http://purl.org/dc/elements/1.1/"')
AUTOMATIC = """
<style:style style:name="P1" style:family="paragraph" style:parent-style-name="Title"/>
<style:style style:name="P2" style:family="paragraph"
 style:parent-style-name="Preformatted_20_Text"/>
<style:style style:name="P3" style:family="paragraph" style:parent-style-name="P3"/>
<style:style style:name="Hidden" style:family="drawing-page">
<style:drawing-page-properties presentation:visibility="hidden"/></style:style>
<style:style style:name="Away" style:family="table">
<style:table-properties table:display="false"/></style:style>
<text:list-style style:name="Numbers">
<text:list-level-style-number text:level="1" style:num-format="1" style:num-suffix="."/>
<text:list-level-style-number text:level="2" style:num-format="a" style:num-suffix=")"
 text:display-levels="2"/></text:list-style>
<text:list-style style:name="Dots"><text:list-level-style-bullet text:level="1"/></text:list-style>
"""
STYLES = f"""<office:document-styles {NAMES}><office:styles>
<style:style style:name="Title" style:family="paragraph"/>
<text:outline-style><text:outline-level-style text:level="1" style:num-format="1"/>
<text:outline-level-style text:level="2" style:num-format="1" text:display-levels="2"/>
</text:outline-style></office:styles><office:master-styles><style:master-page>
<style:header><text:p>Running</text:p></style:header><style:footer><text:p/></style:footer>
</style:master-page></office:master-styles></office:document-styles>"""
META = f"""<office:document-meta {NAMES}><office:meta><dc:title>Of wells</dc:title>
<dc:date>2024-05-06T07:08:09</dc:date><meta:keyword>water</meta:keyword>
<meta:keyword>depth, wells</meta:keyword></office:meta></office:document-meta>"""


def odf(kind: str, body: str, **parts: str) -> bytes:
    entries = {
        "mimetype": f"application/vnd.oasis.opendocument.{kind}",
        "content.xml": (
            f"<office:document-content {NAMES}><office:automatic-styles>{AUTOMATIC}"
            f"</office:automatic-styles><office:body><office:{kind}>{body}</office:{kind}>"
            "</office:body></office:document-content>"
        ),
        **{f"{name}.xml": text for name, text in parts.items()},
    }
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in entries.items():
            archive.writestr(name.replace("META.", "META-INF/manifest."), text)
    return out.getvalue()


def blocks(kind: str, body: str, **parts: str) -> tuple[Block, ...]:
    return extract(odf(kind, body, **parts), LIMITS).blocks


def texts(kind: str, body: str) -> list[tuple[str, str]]:
    return [(block.kind, block.text) for block in blocks(kind, body)]


def p(text: str, style: str = "Standard") -> str:
    return f'<text:p text:style-name="{style}">{text}</text:p>'


def items(*texts: str, style: str = "", more: str = "") -> str:
    named = f'text:style-name="{style}"' if style else ""
    inner = "".join(
        f"<text:list-item>{text if text.startswith('<') else p(text)}</text:list-item>"
        for text in texts
    )
    return f"<text:list {named} {more}>{inner}</text:list>"


def cell(text: str = "", setup: str = 'office:value-type="string"') -> str:
    return f"<table:table-cell {setup}>{p(text) if text else ''}</table:table-cell>"


def row(*cells: str, setup: str = "") -> str:
    return f"<table:table-row {setup}>{''.join(cells)}</table:table-row>"


class TestTexts:
    def test_headings_are_numbered_as_the_outline_says(self) -> None:
        def h(level: int, text: str) -> str:
            return f'<text:h text:outline-level="{level}">{text}</text:h>'

        body = p("The Title", "P1") + h(1, "A") + h(2, "B") + h(2, "C") + h(1, "D") + h(2, "E")
        found = blocks("text", body, styles=STYLES)
        assert [(b.level, b.text) for b in found] == [
            (1, "The Title"),
            (1, "1 A"),
            (2, "1.1 B"),
            (2, "1.2 C"),
            (1, "2 D"),
            (2, "2.1 E"),
        ]
        assert {b.kind for b in found} == {"heading"}
        assert {b.place for b in found} == {Place("heading")}

    def test_what_the_document_says_of_itself(self) -> None:
        found = extract(odf("text", p("x"), meta=META, styles=STYLES), LIMITS)
        assert (found.title, found.date) == ("Of wells", "2024-05-06")
        assert found.tags == ("water", "depth", "wells")
        assert [(part.what, part.count) for part in found.skipped_parts] == [
            ("headers and footers", 1)
        ]

    def test_lists_nest_count_and_go_on(self) -> None:
        nested = p("b") + items("b1", "b2")
        body = (
            items("a", nested, style="Numbers")
            + p("between")
            + items("c", style="Numbers", more='text:continue-numbering="true"')
            + items("d", style="Dots")
        )
        assert texts("text", body) == [
            ("list", "1. a\n2. b\n  2.a) b1\n  2.b) b2"),
            ("text", "between"),
            ("list", "3. c\n- d"),
        ]

    def test_code_spaces_breaks_and_tabs(self) -> None:
        body = (
            p("if x:", "P2")
            + p('<text:s text:c="4"/>y()', "P2")
            + p("a<text:s/><text:s/>b<text:tab/>c<text:line-break/>d\n   e")
        )
        assert texts("text", body) == [("code", "if x:\n    y()"), ("text", "a b c\nd e")]

    def test_notes_links_and_comments(self) -> None:
        body = (
            p(
                'See <text:a xlink:href="https://e.org/">the <text:span>page</text:span></text:a>'
                "<text:note><text:note-citation>4</text:note-citation><text:note-body>"
                f"{p('Deep.')}</text:note-body></text:note>."
                f"<office:annotation>{p('hm')}</office:annotation>"
            )
            + "<text:tracked-changes><text:changed-region><text:deletion>"
            + f"{p('gone')}</text:deletion></text:changed-region></text:tracked-changes>"
        )
        found = extract(odf("text", body), LIMITS)
        assert [b.text for b in found.blocks] == ["See the page[4].", "[4] Deep."]
        assert found.blocks[0].links == (Link(4, 12, "https://e.org/"),)
        assert {(part.what, part.count) for part in found.skipped_parts} == {
            ("comments", 1),
            ("tracked deletions", 1),
        }

    def test_tables_frames_and_pictures(self) -> None:
        table = (
            "<table:table><table:table-header-rows>"
            + row(cell("Name"), cell("De|pth"))
            + "</table:table-header-rows>"
            + row(cell("north", 'table:number-columns-spanned="2"'), "<table:covered-table-cell/>")
            + row(cell("a"), cell("b"))
            + "</table:table>"
        )
        frame = f"<draw:frame><draw:text-box>{p('boxed')}</draw:text-box></draw:frame>"
        image = (
            "<draw:frame><draw:image/><svg:desc>A well of brick and stone</svg:desc></draw:frame>"
        )
        found = blocks("text", table + p(f"around{frame}") + p(image) + frame)
        assert [b.text for b in found] == [
            "Name | De\\|pth\nnorth\na | b",
            "around",
            "boxed",
            "[Image: A well of brick and stone]",
            "boxed",
        ]
        assert found[0].header_rows == 1

    def test_contents_are_left_out_and_sections_are_not(self) -> None:
        body = (
            f"<text:table-of-content><text:index-body>{p('A 7')}</text:index-body>"
            f"</text:table-of-content><text:section>{p('within')}</text:section>"
        )
        found = extract(odf("text", body), LIMITS)
        assert [b.text for b in found.blocks] == ["within"]
        assert [part.what for part in found.skipped_parts] == ["tables of contents and indexes"]

    def test_characters_are_clean(self) -> None:
        assert texts("text", p("cafe\u0301 o\ufb03ce so\u00adft") + p("שלום") + p("図書館")) == [
            ("text", "caf\u00e9 office soft"),
            ("text", "שלום"),
            ("text", "図書館"),
        ]


class TestSheets:
    def test_rows_repeats_and_values(self) -> None:
        rows = (
            row(cell(), setup='table:number-rows-repeated="4"')
            + row(cell("Name"), cell("Day"), cell("Share"))
            + row(
                cell("north", 'office:value-type="string" table:number-columns-repeated="1"'),
                cell("6. Mai", 'office:value-type="date" office:date-value="2024-05-06"'),
                cell("12,5 %", 'office:value-type="percentage" office:value="0.125"'),
                cell("", 'table:number-columns-repeated="16000"'),
                setup='table:number-rows-repeated="2"',
            )
            + row(cell(), setup='table:number-rows-repeated="1048000"')
            + row(
                cell("", 'office:value-type="boolean" office:boolean-value="true"'),
                cell("", 'office:value-type="time" office:time-value="PT26H05M00S"'),
                cell("", 'office:value-type="float" office:value="1.5"'),
                cell("", 'table:formula="of:=SUM([.A1:.A2])"'),
            )
        )
        sheet = f'<table:table table:name="Wells">{rows}</table:table>'
        first, second = blocks("spreadsheet", sheet)
        assert first.place == Place("sheet", 5, "Wells", by_line=True)
        assert first.text == (
            "Name | Day | Share\nnorth | 2024-05-06 | 12,5 %\nnorth | 2024-05-06 | 12,5 %"
        )
        assert first.header_rows == 1
        assert second.place.number == 4 + 3 + 1_048_000 + 1
        assert second.text == "TRUE | 26:05:00 | 1.5 | =SUM([.A1:.A2])"

    def test_hidden_sheets_are_taken_and_said(self) -> None:
        body = (
            f'<table:table table:name="A">{row(cell("a"))}</table:table>'
            f'<table:table table:name="B" table:style-name="Away">{row(cell("b"))}</table:table>'
        )
        found = extract(odf("spreadsheet", body), LIMITS)
        assert [(b.place.name, b.text) for b in found.blocks] == [("A", "a"), ("B", "b")]
        assert [part.note for part in found.skipped_parts] == ["their text is taken: B"]

    def test_repeats_that_would_fill_memory(self) -> None:
        full = cell("x" * 100, 'office:value-type="string" table:number-columns-repeated="16384"')
        rows = row(full, setup='table:number-rows-repeated="1048576"')
        raw = odf("spreadsheet", f'<table:table table:name="S">{rows}</table:table>')
        found = extract(raw, ExtractLimits(max_chars=100_000))
        assert sum(len(block.text) for block in found.blocks) <= 100_000
        assert found.skipped_parts[-1].what == "rest"
        rows = row(cell("x"), setup='table:number-rows-repeated="99999999999999"') + row(cell("y"))
        assert blocks("spreadsheet", f"<table:table>{rows}</table:table>")[0].text == "x\ny"


class TestSlides:
    def test_title_shapes_notes_and_hidden_pages(self) -> None:
        def frame(text: str, kind: str = "") -> str:
            named = f'presentation:class="{kind}"' if kind else ""
            return f"<draw:frame {named}><draw:text-box>{text}</draw:text-box></draw:frame>"

        notes = f"<presentation:notes>{frame(p('Say this.'), 'notes')}</presentation:notes>"
        page = (
            frame(items("one", "two", style="Dots"), "outline")
            + frame(p("The Title"), "title")
            + frame(p("7"), "page-number")
            + f"<draw:custom-shape>{p('shape')}</draw:custom-shape>"
            + notes
        )
        body = (
            f'<draw:page draw:style-name="Hidden">{page}</draw:page>'
            f"<draw:page>{frame(p('second'))}</draw:page>"
        )
        found = extract(odf("presentation", body), LIMITS)
        assert [(b.kind, b.text, b.place) for b in found.blocks] == [
            ("heading", "The Title", Place("slide", 1, "The Title")),
            ("list", "- one\n- two", Place("slide", 1, "The Title")),
            ("text", "shape", Place("slide", 1, "The Title")),
            ("text", "Notes: Say this.", Place("slide", 1, "The Title")),
            ("text", "second", Place("slide", 2)),
        ]
        assert {(part.what, part.count) for part in found.skipped_parts} == {
            ("hidden slides", 1),
            ("footers, dates and slide numbers", 1),
        }


class TestHostile:
    def fault(self, raw: bytes, limits: ExtractLimits = LIMITS) -> str:
        with pytest.raises(ExtractionError) as caught:
            extract(raw, limits)
        return caught.value.code

    def test_encrypted(self) -> None:
        manifest = "<manifest><file-entry><encryption-data/></file-entry></manifest>"
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as archive:
            archive.writestr("META-INF/manifest.xml", manifest)
            archive.writestr("content.xml", b"\x93\x10 no xml at all")
        assert self.fault(out.getvalue()) == "encrypted"

    def test_cut_off_anywhere_and_garbage(self) -> None:
        raw = odf("text", p("some text") * 50, styles=STYLES, meta=META)
        for length in range(0, len(raw) - 1, 97):
            assert self.fault(raw[:length]) == "damaged"
        assert self.fault(b"PK\x05\x06garbage") == "damaged"

    def test_other_kinds_and_no_body(self) -> None:
        assert self.fault(odf("chart", "")) == "damaged"
        assert self.fault(odf("text", "", content="<a/>")) == "damaged"
        assert extract(odf("text", ""), LIMITS).blocks == ()

    def test_entities_are_refused(self) -> None:
        bomb = '<!DOCTYPE x [<!ENTITY a "aaaa">]><office:document-content/>'
        assert self.fault(odf("text", "", content=bomb)) == "damaged"

    def test_nesting_is_bounded(self) -> None:
        for opened, closed in (
            ("<text:section>", "</text:section>"),
            ("<text:list><text:list-item>", "</text:list-item></text:list>"),
            (
                "<table:table><table:table-row><table:table-cell>",
                "</table:table-cell></table:table-row></table:table>",
            ),
        ):
            found = blocks("text", opened * 60 + p("deep") + closed * 60)
            assert [b.text.removeprefix("- ") for b in found] == ["deep"]
            assert self.fault(odf("text", opened * 9000 + closed * 9000)) == "damaged"
        spans = "<text:span>" * 180 + "deep" + "</text:span>" * 180
        assert texts("text", p(spans)) == [("text", "deep")]

    def test_many_blocks_and_spaces(self) -> None:
        found = extract(odf("text", p("x") * 3000), ExtractLimits(max_blocks=50))
        assert len(found.blocks) == 50
        assert texts("text", p('a<text:s text:c="999999999"/>b')) == [("text", "a b")]

    def test_pictures_only(self) -> None:
        image = "<draw:frame><draw:image/></draw:frame>"
        assert self.fault(odf("text", p(image))) == "no_text"

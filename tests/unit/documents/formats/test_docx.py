"""Word documents, written here part by part."""

import io
import zipfile

import pytest

from ragx.documents.formats.base import ExtractLimits, Link
from ragx.documents.formats.office.docx import extract
from ragx.errors import ExtractionError

LIMITS = ExtractLimits()
W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
R = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
NAMES = (
    f'xmlns:w="{W}" xmlns:r="{R}"'
    ' xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
    ' xmlns:wp="http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing"'
    ' xmlns:wps="http://schemas.microsoft.com/office/word/2010/wordprocessingShape"'
    ' xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
    ' xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"'
    ' xmlns:v="urn:schemas-microsoft-com:vml"'
)
STYLES = f"""<w:styles {NAMES}>
<w:style w:type="paragraph" w:default="1" w:styleId="Standard"><w:name w:val="Normal"/></w:style>
<w:style w:type="paragraph" w:styleId="berschrift1"><w:name w:val="heading 1"/>
<w:basedOn w:val="Standard"/><w:pPr><w:outlineLvl w:val="0"/></w:pPr></w:style>
<w:style w:type="paragraph" w:styleId="Own"><w:name w:val="My Chapter"/>
<w:basedOn w:val="berschrift1"/></w:style>
<w:style w:type="paragraph" w:styleId="Outlined"><w:name w:val="Clause"/>
<w:pPr><w:outlineLvl w:val="2"/></w:pPr></w:style>
<w:style w:type="paragraph" w:styleId="T"><w:name w:val="Title"/></w:style>
<w:style w:type="paragraph" w:styleId="Code"><w:name w:val="Source Code"/></w:style>
<w:style w:type="paragraph" w:styleId="TOC1"><w:name w:val="toc 1"/></w:style>
<w:style w:type="paragraph" w:styleId="Loop"><w:basedOn w:val="Loop"/></w:style>
</w:styles>"""
NUMBERING = f"""<w:numbering {NAMES}>
<w:abstractNum w:abstractNumId="0"><w:lvl w:ilvl="0"><w:start w:val="1"/>
<w:numFmt w:val="decimal"/><w:lvlText w:val="%1."/></w:lvl>
<w:lvl w:ilvl="1"><w:start w:val="1"/><w:numFmt w:val="lowerLetter"/>
<w:lvlText w:val="%1.%2)"/></w:lvl></w:abstractNum>
<w:abstractNum w:abstractNumId="1"><w:lvl w:ilvl="0"><w:numFmt w:val="bullet"/>
<w:lvlText w:val="x"/></w:lvl></w:abstractNum>
<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>
<w:num w:numId="2"><w:abstractNumId w:val="1"/></w:num>
<w:num w:numId="3"><w:abstractNumId w:val="0"/>
<w:lvlOverride w:ilvl="0"><w:startOverride w:val="7"/></w:lvlOverride></w:num>
</w:numbering>"""
CORE = """<cp:coreProperties
 xmlns:cp="http://schemas.openxmlformats.org/package/2006/metadata/core-properties"
 xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:dcterms="http://purl.org/dc/terms/">
<dc:title>Of wells</dc:title><cp:keywords>water, wells; depth</cp:keywords>
<dcterms:modified>2024-05-06T07:08:09Z</dcterms:modified></cp:coreProperties>"""


def relations(*entries: tuple[str, str, str]) -> str:
    kinds = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    body = ""
    for key, kind, target in entries:
        mode = ' TargetMode="External"' if kind == "hyperlink" else ""
        body += f'<Relationship Id="{key}" Type="{kinds}/{kind}" Target="{target}"{mode}/>'
    space = "http://schemas.openxmlformats.org/package/2006/relationships"
    return f'<Relationships xmlns="{space}">{body}</Relationships>'


def document(body: str, parts: dict[str, str] | None = None, links: str = "") -> bytes:
    entries = {
        "_rels/.rels": relations(
            ("r1", "officeDocument", "word/document.xml"),
            ("r2", "metadata/core-properties", "docProps/core.xml"),
        ),
        "docProps/core.xml": CORE,
        "word/document.xml": f"<w:document {NAMES}><w:body>{body}</w:body></w:document>",
        "word/styles.xml": STYLES,
        "word/numbering.xml": NUMBERING,
        "word/_rels/document.xml.rels": relations(
            ("r1", "styles", "styles.xml"),
            ("r2", "numbering", "numbering.xml"),
            ("r3", "footnotes", "/word/footnotes.xml"),
            ("r4", "hyperlink", links or "https://example.org/a?b=c&amp;d"),
            ("r5", "header", "header1.xml"),
            ("r6", "comments", "comments.xml"),
        ),
        **(parts or {}),
    }
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in entries.items():
            archive.writestr(name, text)
    return out.getvalue()


def p(text: str, style: str = "", extra: str = "") -> str:
    named = f'<w:pStyle w:val="{style}"/>' if style else ""
    return f"<w:p><w:pPr>{named}{extra}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"


def item(text: str, num: int, level: int = 0) -> str:
    numbering = f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{num}"/></w:numPr>'
    return p(text, extra=numbering)


def table(*rows: list[str], setup: str = "") -> str:
    body = "".join(
        f"<w:tr>{''.join(f'<w:tc>{p(cell)}</w:tc>' for cell in row)}</w:tr>" for row in rows
    )
    return f"<w:tbl><w:tblPr>{setup}</w:tblPr>{body}</w:tbl>"


def texts(raw: bytes, limits: ExtractLimits = LIMITS) -> list[tuple[str, str]]:
    return [(block.kind, block.text) for block in extract(raw, limits).blocks]


class TestStructure:
    def test_headings_come_from_names_heirs_and_outline_levels(self) -> None:
        raw = document(
            p("One", "berschrift1")
            + p("Heir", "Own")
            + p("Clause", "Outlined")
            + p("Direct", extra='<w:outlineLvl w:val="1"/>')
            + p("Text", "Loop")
        )
        blocks = extract(raw, LIMITS).blocks
        assert [(b.kind, b.level) for b in blocks] == [
            ("heading", 1),
            ("heading", 1),
            ("heading", 3),
            ("heading", 2),
            ("text", 0),
        ]
        assert {block.place.kind for block in blocks} == {"heading"}

    def test_what_the_document_says_of_itself(self) -> None:
        found = extract(document(p("In the text", "T") + p("x")), LIMITS)
        assert (found.title, found.date) == ("Of wells", "2024-05-06")
        assert found.tags == ("water", "wells", "depth")
        untitled = CORE.replace("Of wells", "Microsoft Word - draft.doc")
        raw = document(p("In the text", "T") + p("x"), {"docProps/core.xml": untitled})
        assert extract(raw, LIMITS).title == "In the text"

    def test_lists_count_and_nest(self) -> None:
        raw = document(
            item("a", 1) + item("b", 1) + item("b1", 1, 1) + item("c", 1)
            + p("between")
            + item("d", 1) + item("e", 3) + item("x", 2)
        )  # fmt: skip
        assert texts(raw) == [
            ("list", "1. a\n2. b\n  2.a) b1\n3. c"),
            ("text", "between"),
            ("list", "4. d\n7. e\n- x"),
        ]

    def test_code_keeps_lines_and_indentation(self) -> None:
        line = '<w:p><w:pPr><w:pStyle w:val="Code"/></w:pPr><w:r>{}</w:r></w:p>'
        raw = document(
            line.format("<w:t>def f():</w:t>")
            + line.format('<w:t xml:space="preserve">    return  1</w:t>')
            + p("after")
        )
        assert texts(raw) == [("code", "def f():\n    return  1"), ("text", "after")]

    def test_contents_are_left_out_and_said(self) -> None:
        found = extract(document(p("1 One 7", "TOC1") + p("1 Two 8", "TOC1") + p("x")), LIMITS)
        assert [block.text for block in found.blocks] == ["x"]
        assert ("lines of tables of contents", 2) in [
            (part.what, part.count) for part in found.skipped_parts
        ]


class TestTables:
    def test_rows_are_lines_and_bars_are_escaped(self) -> None:
        raw = document(table(["Name", "Depth"], ["a|b", "12 m"], ["", "3"]))
        (block,) = extract(raw, LIMITS).blocks
        assert (block.kind, block.text, block.header_rows) == (
            "table",
            "Name | Depth\na\\|b | 12 m\n| 3",
            1,
        )

    def test_merged_cells_stand_once_and_columns_stay(self) -> None:
        row = (
            '<w:tr><w:tc><w:tcPr><w:gridSpan w:val="2"/></w:tcPr>{}</w:tc><w:tc>{}</w:tc></w:tr>'
            '<w:tr><w:tc><w:tcPr><w:vMerge w:val="restart"/></w:tcPr>{}</w:tc>'
            "<w:tc>{}</w:tc><w:tc>{}</w:tc></w:tr>"
            "<w:tr><w:tc><w:tcPr><w:vMerge/></w:tcPr>{}</w:tc><w:tc>{}</w:tc><w:tc>{}</w:tc></w:tr>"
        ).format(*(p(letter) for letter in "abcdefgh"))
        assert texts(document(f"<w:tbl>{row}</w:tbl>")) == [
            ("table", "a |  | b\nc | d | e\n| g | h")
        ]

    def test_a_single_cell_is_a_frame_and_tables_within_are_flat(self) -> None:
        inner = table(["x", "y"], ["1", "2"])
        raw = document(
            f"<w:tbl><w:tr><w:tc>{p('Framed', 'berschrift1')}{p('text')}</w:tc></w:tr></w:tbl>"
            f"<w:tbl><w:tr><w:tc>{p('a')}{inner}</w:tc><w:tc>{p('b')}</w:tc></w:tr></w:tbl>"
        )
        assert texts(raw) == [("heading", "Framed"), ("text", "text"), ("table", "a x y 1 2 | b")]

    def test_a_long_table_repeats_its_header(self) -> None:
        rows = [["Name", "Depth"], *([f"well {n}", str(n)] for n in range(40))]
        blocks = extract(document(table(*rows)), ExtractLimits(max_chars=1600)).blocks
        assert len(blocks) > 1
        assert all(block.text.startswith("Name | Depth\nwell") for block in blocks)
        assert {block.header_rows for block in blocks} == {1}
        lines = [line for block in blocks for line in block.text.split("\n")[1:]]
        assert lines == [f"well {n} | {n}" for n in range(40)]


class TestInline:
    def test_links_lie_where_their_text_is(self) -> None:
        raw = document(
            "<w:p><w:r><w:t>See  </w:t></w:r>"
            '<w:hyperlink r:id="r4"><w:r><w:t>the pa</w:t></w:r><w:r><w:t>ge</w:t></w:r>'
            '</w:hyperlink><w:r><w:t xml:space="preserve"> or </w:t></w:r>'
            '<w:hyperlink w:anchor="below"><w:r><w:t>below</w:t></w:r></w:hyperlink></w:p>'
        )
        (block,) = extract(raw, LIMITS).blocks
        assert block.text == "See the page or below"
        assert block.links == (Link(4, 12, "https://example.org/a?b=c&d"), Link(16, 21, "#below"))

    def test_links_of_list_items_move_with_them(self) -> None:
        link = '<w:hyperlink r:id="r4"><w:r><w:t>page</w:t></w:r></w:hyperlink>'
        linked = item("x", 1).replace("</w:p>", f"{link}</w:p>")
        (block,) = extract(document(item("first", 1) + linked), LIMITS).blocks
        assert [block.text[one.start : one.end] for one in block.links] == ["page"]

    def test_fields_give_results_not_codes(self) -> None:
        def char(kind: str) -> str:
            return f'<w:r><w:fldChar w:fldCharType="{kind}"/></w:r>'

        code = '<w:r><w:instrText> HYPERLINK "https://f.org" \\l "part" </w:instrText></w:r>'
        raw = document(
            f"<w:p>{char('begin')}{code}{char('separate')}<w:r><w:t>go</w:t></w:r>{char('end')}"
            '<w:fldSimple w:instr="PAGE"><w:r><w:t> 7</w:t></w:r></w:fldSimple></w:p>'
            f"<w:p>{char('begin')}{code}</w:p>{p('after a broken one')}"
        )
        blocks = extract(raw, LIMITS).blocks
        assert [block.text for block in blocks] == ["go 7", "after a broken one"]
        assert blocks[0].links == (Link(0, 2, "https://f.org#part"),)

    def test_insertions_are_taken_and_deletions_are_not(self) -> None:
        raw = document(
            "<w:p><w:r><w:t>old</w:t></w:r><w:ins><w:r><w:t>new</w:t></w:r></w:ins>"
            "<w:del><w:r><w:delText>gone</w:delText></w:r></w:del></w:p>"
            + p("joi", extra="<w:rPr><w:del/></w:rPr>")
            + p("ned")
        )
        found = extract(raw, LIMITS)
        assert [block.text for block in found.blocks] == ["oldnew", "joined"]
        assert "tracked deletions" in [part.what for part in found.skipped_parts]

    def test_notes_follow_their_paragraph(self) -> None:
        notes = (
            f'<w:footnotes {NAMES}><w:footnote w:id="5">{p("Deep indeed.")}</w:footnote>'
            f'<w:footnote w:id="6">{p("Not used.")}</w:footnote></w:footnotes>'
        )
        reference = '<w:r><w:footnoteReference w:id="5"/></w:r>'
        raw = document(
            p("A well").replace("</w:p>", f"{reference}</w:p>") + p("next"),
            {"word/footnotes.xml": notes},
        )
        assert texts(raw) == [
            ("text", "A well[1]"),
            ("text", "[1] Deep indeed."),
            ("text", "next"),
        ]

    def test_text_boxes_once_and_pictures_by_their_description(self) -> None:
        box = f"<w:txbxContent>{p('boxed')}</w:txbxContent>"
        picture = (
            '<w:drawing><wp:inline><wp:docPr id="1" name="P" descr="A well of brick and stone"/>'
            '<a:blip r:embed="r9"/></wp:inline></w:drawing>'
        )
        raw = document(
            "<w:p><w:r><mc:AlternateContent><mc:Choice Requires='wps'><w:drawing>"
            f"<wps:wsp><wps:txbx>{box}</wps:txbx></wps:wsp></w:drawing></mc:Choice>"
            f"<mc:Fallback><w:pict><v:textbox>{box}</v:textbox></w:pict></mc:Fallback>"
            f"</mc:AlternateContent><w:t>around</w:t></w:r></w:p><w:p><w:r>{picture}</w:r></w:p>"
        )
        found = extract(raw, LIMITS)
        assert [b.text for b in found.blocks] == [
            "around",
            "boxed",
            "[Image: A well of brick and stone]",
        ]
        assert ("images", 1) in [(part.what, part.count) for part in found.skipped_parts]

    def test_content_controls_formulas_breaks_and_hidden_text(self) -> None:
        raw = document(
            f"<w:sdt><w:sdtPr/><w:sdtContent>{p('controlled')}</w:sdtContent></w:sdt>"
            "<w:p><w:r><w:t>a</w:t><w:br/><w:t>b</w:t><w:tab/><w:t>c</w:t>"
            "<w:noBreakHyphen/><w:t>d</w:t></w:r>"
            "<w:r><w:rPr><w:vanish/></w:rPr><w:t>hidden</w:t></w:r></w:p>"
            "<w:p><m:oMath><m:f><m:num><m:r><m:t>1</m:t></m:r></m:num><m:den><m:sSup>"
            "<m:e><m:r><m:t>x</m:t></m:r></m:e><m:sup><m:r><m:t>2</m:t></m:r></m:sup></m:sSup>"
            "</m:den></m:f></m:oMath></w:p>"
        )
        assert texts(raw) == [("text", "controlled"), ("text", "a\nb c-d"), ("text", "(1)/(x^2)")]

    def test_characters_are_clean(self) -> None:
        raw = document(
            p("cafe\u0301 o\ufb03ce so\u00adft a\u200bb c\u00a0d \uf0b7 \u0645\u06cc\u200c\u062e")
            + p("שלום עולם")
            + p("図書館の本")
        )
        assert texts(raw) == [
            ("text", "caf\u00e9 office soft ab c d \u0645\u06cc\u200c\u062e"),
            ("text", "שלום עולם"),
            ("text", "図書館の本"),
        ]

    def test_strict_namespaces_read_the_same(self) -> None:
        raw = document(p("strict", "berschrift1"))
        out = io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(raw)) as old, zipfile.ZipFile(out, "w") as new:
            for name in old.namelist():
                text = old.read(name).decode()
                text = text.replace(W, "http://purl.oclc.org/ooxml/wordprocessingml/main")
                text = text.replace(R, "http://purl.oclc.org/ooxml/officeDocument/relationships")
                new.writestr(name, text)
        assert extract(out.getvalue(), LIMITS) == extract(raw, LIMITS)


class TestHostile:
    def fault(self, raw: bytes, limits: ExtractLimits = LIMITS) -> str:
        with pytest.raises(ExtractionError) as caught:
            extract(raw, limits)
        assert "\n" not in str(caught.value)
        return caught.value.code

    def test_empty_garbage_and_the_wrong_kind(self) -> None:
        assert self.fault(b"") == "damaged"
        assert self.fault(b"PK\x03\x04" + b"\xff" * 500) == "damaged"
        assert self.fault(b"%PDF-1.4") == "damaged"
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as archive:
            archive.writestr("hello.txt", "x")
        assert self.fault(out.getvalue()) == "damaged"
        body = f"<w:settings {NAMES}/>"
        assert self.fault(document("", {"word/document.xml": body})) == "damaged"

    def test_cut_off_anywhere(self) -> None:
        raw = document(p("some text") * 50)
        for length in range(0, len(raw) - 1, 97):
            assert self.fault(raw[:length]) == "damaged"

    def test_broken_xml(self) -> None:
        part = "word/document.xml"
        assert self.fault(document("", {part: "<w:document"})) == "damaged"
        assert self.fault(document("", {part: ""})) == "damaged"
        assert self.fault(document("", {"word/styles.xml": "<a><b></a>"})) == "damaged"
        assert self.fault(document("", {part: '<?xml version="1.0" encoding="nope"?><a/>'})) == (
            "damaged"
        )

    def test_entities_are_refused_and_nothing_is_fetched(self) -> None:
        bomb = '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]>'
        file = '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>'
        for prologue in (bomb, file):
            body = f"{prologue}<w:document {NAMES}><w:body>{p('&b;')}</w:body></w:document>"
            assert self.fault(document("", {"word/document.xml": body})) == "damaged"

    def test_nesting_is_bounded(self) -> None:
        for opened, closed in (
            ("<w:hyperlink>", "</w:hyperlink>"),
            ("<w:tbl><w:tr><w:tc>", "</w:tc></w:tr></w:tbl>"),
            ("<w:sdt><w:sdtContent>", "</w:sdtContent></w:sdt>"),
        ):
            deep = opened * 60 + p("deep") + closed * 60
            extract(document(f"<w:p>{deep}</w:p>" + deep), LIMITS)
            deep = opened * 50_000 + closed * 50_000
            assert self.fault(document(f"<w:p>{deep}</w:p>")) == "damaged"

    def test_expansion_is_bounded(self) -> None:
        raw = document(p("x" * 3_000_000))
        assert len(raw) < 20_000
        assert self.fault(raw, ExtractLimits(max_expanded_bytes=1_000_000)) == "too_big"

    def test_blocks_and_characters_are_bounded_and_said(self) -> None:
        found = extract(document(p("x") * 2000), ExtractLimits(max_blocks=100))
        assert len(found.blocks) == 100
        assert found.skipped_parts[-1].what == "rest"
        found = extract(document(p("x" * 100) * 50), ExtractLimits(max_chars=1000))
        assert len(found.blocks) == 10
        assert found.skipped_parts[-1].what == "rest"

    def test_absurd_numbers(self) -> None:
        cell = f'<w:tc><w:tcPr><w:gridSpan w:val="99999999999"/></w:tcPr>{p("a")}</w:tc>'
        raw = document(
            f"<w:tbl><w:tr>{cell}<w:tc>{p('b')}</w:tc></w:tr></w:tbl>"
            + item("x", 1, 99)
            + item("y", 77)
            + p("z", extra='<w:outlineLvl w:val="-3"/>')
        )
        assert texts(raw) == [("table", "a | b"), ("text", "x"), ("text", "y"), ("text", "z")]

    def test_pictures_only_is_no_text_and_empty_is_empty(self) -> None:
        picture = "<w:p><w:r><w:drawing><a:blip/></w:drawing></w:r></w:p>"
        assert self.fault(document(picture)) == "no_text"
        assert extract(document(""), LIMITS).blocks == ()

    def test_headers_and_comments_are_said(self) -> None:
        comments = f'<w:comments {NAMES}><w:comment w:id="1">{p("hm")}</w:comment></w:comments>'
        found = extract(document(p("x"), {"word/comments.xml": comments}), LIMITS)
        assert {(part.what, part.count) for part in found.skipped_parts} == {
            ("headers and footers", 1),
            ("comments", 1),
        }

    def test_the_same_bytes_give_the_same(self) -> None:
        raw = document(p("a", "Own") + item("b", 1) + table(["c", "d"], ["1", "2"]))
        assert extract(raw, LIMITS) == extract(raw, LIMITS)

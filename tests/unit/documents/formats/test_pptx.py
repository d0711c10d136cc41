"""Presentations, written here part by part."""

import io
import zipfile

import pytest

from ragx.documents.formats.base import ExtractLimits, Link, Place
from ragx.documents.formats.office.pptx import extract
from ragx.errors import ExtractionError

LIMITS = ExtractLimits()
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
NAMES = (
    'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main"'
    ' xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
    ' xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart"'
    ' xmlns:dgm="http://schemas.openxmlformats.org/drawingml/2006/diagram"'
    ' xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
    f' xmlns:r="{OFFICE}"'
)


def relations(entries: list[tuple[str, str, str]]) -> str:
    body = ""
    for key, kind, target in entries:
        mode = ' TargetMode="External"' if kind == "hyperlink" else ""
        body += f'<Relationship Id="{key}" Type="{OFFICE}/{kind}" Target="{target}"{mode}/>'
    space = "http://schemas.openxmlformats.org/package/2006/relationships"
    return f'<Relationships xmlns="{space}">{body}</Relationships>'


def para(text: str, setup: str = "") -> str:
    return f"<a:p><a:pPr {setup}/><a:r><a:t>{text}</a:t></a:r></a:p>"


def shape(*paragraphs: str, kind: str | None = None) -> str:
    named = "" if kind is None else f'<p:ph type="{kind}"/>'
    return (
        f"<p:sp><p:nvSpPr><p:nvPr>{named}</p:nvPr></p:nvSpPr>"
        f"<p:txBody>{''.join(paragraphs)}</p:txBody></p:sp>"
    )


def tree(root: str, shapes: str, setup: str = "") -> str:
    return f"<{root} {NAMES} {setup}><p:cSld><p:spTree>{shapes}</p:spTree></p:cSld></{root}>"


def deck(
    *slides: str,
    parts: dict[str, str] | None = None,
    links: dict[int, list[tuple[str, str, str]]] | None = None,
    setups: dict[int, str] | None = None,
) -> bytes:
    numbers = range(1, len(slides) + 1)
    # Parts are numbered against the order of the slides: only the relations tell it.
    ids = "".join(f'<p:sldId id="{255 + n}" r:id="r{n}"/>' for n in numbers)
    entries = {
        "_rels/.rels": relations([("r1", "officeDocument", "ppt/presentation.xml")]),
        "ppt/presentation.xml": (
            f"<p:presentation {NAMES}><p:sldIdLst>{ids}</p:sldIdLst></p:presentation>"
        ),
        "ppt/_rels/presentation.xml.rels": relations(
            [(f"r{n}", "slide", f"slides/slide{100 - n}.xml") for n in numbers]
        ),
    }
    for number, body in zip(numbers, slides, strict=True):
        name = f"slide{100 - number}.xml"
        entries[f"ppt/slides/{name}"] = tree("p:sld", body, (setups or {}).get(number, ""))
        entries[f"ppt/slides/_rels/{name}.rels"] = relations((links or {}).get(number, []))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for entry, text in {**entries, **(parts or {})}.items():
            archive.writestr(entry, text)
    return out.getvalue()


def seen(raw: bytes) -> list[tuple[str, str, int]]:
    return [(b.kind, b.text, b.place.number) for b in extract(raw, LIMITS).blocks]


class TestSlides:
    def test_title_first_then_shapes_in_the_order_of_the_show(self) -> None:
        raw = deck(
            shape(para("free text")) + shape(para("The Title"), kind="ctrTitle"),
            shape(para("second"), kind="title"),
        )
        found = extract(raw, LIMITS)
        assert [(b.kind, b.text, b.place) for b in found.blocks] == [
            ("heading", "The Title", Place("slide", 1, "The Title")),
            ("text", "free text", Place("slide", 1, "The Title")),
            ("heading", "second", Place("slide", 2, "second")),
        ]
        assert found.title == "The Title"

    def test_bullets_numbers_and_plain_paragraphs(self) -> None:
        body = (
            para("one")
            + para("deeper", 'lvl="1"')
            + "<a:p><a:pPr><a:buNone/></a:pPr><a:r><a:t>plain</a:t></a:r></a:p>"
        )
        numbered = (
            "<a:p><a:pPr><a:buAutoNum type='arabicPeriod'/></a:pPr><a:r><a:t>{}</a:t></a:r></a:p>"
        )
        raw = deck(
            shape(body, kind="body"),
            shape(numbered.format("first"), numbered.format("next")),
            shape(para("alone"), kind="body"),
        )
        assert seen(raw) == [
            ("list", "- one\n  - deeper", 1),
            ("text", "plain", 1),
            ("list", "1. first\n2. next", 2),
            ("text", "alone", 3),
        ]

    def test_tables_groups_and_alternates(self) -> None:
        def row(*cells: str) -> str:
            inner = (f"<a:tc><a:txBody>{para(cell)}</a:txBody></a:tc>" for cell in cells)
            return f"<a:tr>{''.join(inner)}</a:tr>"

        table = (
            '<p:graphicFrame><a:graphic><a:graphicData><a:tbl><a:tblPr firstRow="1"/>'
            f"{row('Name', 'Depth')}{row('a|b', '12')}"
            "</a:tbl></a:graphicData></a:graphic></p:graphicFrame>"
        )
        raw = deck(
            table
            + f"<p:grpSp>{shape(para('grouped'))}</p:grpSp>"
            + f"<mc:AlternateContent><mc:Choice>{shape(para('new'))}</mc:Choice>"
            f"<mc:Fallback>{shape(para('old'))}</mc:Fallback></mc:AlternateContent>"
        )
        blocks = extract(raw, LIMITS).blocks
        assert [b.text for b in blocks] == ["Name | Depth\na\\|b | 12", "grouped", "new"]
        assert blocks[0].header_rows == 1

    def test_notes_come_last_and_hidden_slides_are_said(self) -> None:
        notes = tree(
            "p:notes", shape(para("Say this."), kind="body") + shape(para("7"), kind="sldNum")
        )
        raw = deck(
            shape(para("shown")) + shape(para("9"), kind="sldNum"),
            parts={"ppt/notesSlides/n1.xml": notes},
            links={1: [("r1", "notesSlide", "../notesSlides/n1.xml")]},
            setups={1: 'show="0"'},
        )
        found = extract(raw, LIMITS)
        assert [b.text for b in found.blocks] == ["shown", "Notes: Say this."]
        assert {(part.what, part.count) for part in found.skipped_parts} == {
            ("hidden slides", 1),
            ("footers, dates and slide numbers", 1),
        }

    def test_links_breaks_and_fields(self) -> None:
        linked = (
            "<a:p><a:r><a:t>see </a:t></a:r><a:r><a:rPr><a:hlinkClick r:id='r1'/></a:rPr>"
            "<a:t>here</a:t></a:r><a:br/><a:fld type='datetime'><a:t>2024</a:t></a:fld></a:p>"
        )
        raw = deck(shape(linked), links={1: [("r1", "hyperlink", "https://example.org/")]})
        (block,) = extract(raw, LIMITS).blocks
        assert block.text == "see here\n2024"
        assert block.links == (Link(4, 8, "https://example.org/"),)

    def test_diagrams_and_charts_give_their_words(self) -> None:
        diagram = (
            f"<dgm:dataModel {NAMES}><dgm:ptLst><dgm:pt><dgm:t>{para('step one')}</dgm:t></dgm:pt>"
            f"<dgm:pt><dgm:t>{para('step two')}</dgm:t></dgm:pt></dgm:ptLst></dgm:dataModel>"
        )
        chart = (
            f"<c:chartSpace {NAMES}><c:title>{para('Depths')}</c:title><c:strCache><c:pt><c:v>north"
            "</c:v></c:pt></c:strCache></c:chartSpace>"
        )
        raw = deck(
            '<p:graphicFrame><dgm:relIds r:dm="r1"/></p:graphicFrame>'
            '<p:graphicFrame><c:chart r:id="r2"/></p:graphicFrame>',
            parts={"ppt/d.xml": diagram, "ppt/c.xml": chart},
            links={1: [("r1", "diagramData", "../d.xml"), ("r2", "chart", "../c.xml")]},
        )
        assert seen(raw) == [
            ("list", "- step one\n- step two", 1),
            ("text", "Chart: Depths; north", 1),
        ]


class TestHostile:
    def fault(self, raw: bytes) -> str:
        with pytest.raises(ExtractionError) as caught:
            extract(raw, LIMITS)
        return caught.value.code

    def test_cut_off_anywhere(self) -> None:
        raw = deck(*[shape(para(f"slide {n}")) for n in range(9)])
        for length in range(0, len(raw) - 1, 151):
            assert self.fault(raw[:length]) == "damaged"

    def test_slides_that_are_not_there(self) -> None:
        raw = deck(shape(para("a")), parts={"ppt/slides/slide99.xml": "<broken"})
        assert self.fault(raw) == "damaged"
        listed = "<p:sldIdLst><p:sldId r:id='r77'/></p:sldIdLst>"
        listed = f"<p:presentation {NAMES}>{listed}</p:presentation>"
        found = extract(deck(parts={"ppt/presentation.xml": listed}), LIMITS)
        assert [(part.what, part.count) for part in found.skipped_parts] == [("missing slides", 1)]

    def test_nesting_is_bounded(self) -> None:
        fine = "<p:grpSp>" * 150 + shape(para("deep")) + "</p:grpSp>" * 150
        assert seen(deck(fine)) == [("text", "deep", 1)]
        raw = deck("<p:grpSp>" * 9000 + "</p:grpSp>" * 9000)
        assert self.fault(raw) == "damaged"

    def test_pictures_only_and_nothing_at_all(self) -> None:
        picture = '<p:pic><p:nvPicPr><p:cNvPr id="1" name="x" descr="{}"/></p:nvPicPr></p:pic>'
        assert self.fault(deck(picture.format("IMG_1.jpg"))) == "no_text"
        assert seen(deck(picture.format("A well of brick and stone"))) == [
            ("text", "[Image: A well of brick and stone]", 1)
        ]
        assert extract(deck(), LIMITS).blocks == ()

    def test_absurd_levels_and_many_shapes(self) -> None:
        body = para("a", 'lvl="999999999999"') + para("b", 'lvl="-5"')
        assert seen(deck(shape(body, kind="body"))) == [("list", "- a\n- b", 1)]
        found = extract(deck(shape(para("x")) * 3000), ExtractLimits(max_blocks=500))
        assert len(found.blocks) == 500
        assert found.skipped_parts[-1].note.startswith("all from slide 1")

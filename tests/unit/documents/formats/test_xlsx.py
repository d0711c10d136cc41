"""Workbooks, written here part by part."""

import io
import zipfile

import pytest

from ragx.documents.formats.base import ExtractLimits, Place
from ragx.documents.formats.office.xlsx import extract
from ragx.errors import ExtractionError

LIMITS = ExtractLimits()
MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
# Cell styles by number: General, 0.00, a day, day and time, percent, zeros in front, elapsed.
STYLES = (
    f'<styleSheet xmlns="{MAIN}"><numFmts>'
    '<numFmt numFmtId="170" formatCode="dd/mm/yyyy;@"/><numFmt numFmtId="171"'
    ' formatCode="[$-409]d\\-mmm\\-yy h:mm"/><numFmt numFmtId="172" formatCode="00000"/>'
    '</numFmts><cellXfs><xf numFmtId="0"/><xf numFmtId="2"/><xf numFmtId="170"/>'
    '<xf numFmtId="171"/><xf numFmtId="10"/><xf numFmtId="172"/><xf numFmtId="46"/></cellXfs>'
    "</styleSheet>"
)


def relations(entries: list[tuple[str, str, str]]) -> str:
    body = "".join(
        f'<Relationship Id="{key}" Type="{OFFICE}/{kind}" Target="{target}"/>'
        for key, kind, target in entries
    )
    space = "http://schemas.openxmlformats.org/package/2006/relationships"
    return f'<Relationships xmlns="{space}">{body}</Relationships>'


def book(
    *sheets: tuple[str, str], shared: list[str] | None = None, setup: str = "", states: str = ""
) -> bytes:
    numbers = range(1, len(sheets) + 1)
    listed = "".join(
        f'<sheet name="{name}" sheetId="{n}" r:id="s{n}"{states if n == 2 else ""}/>'
        for n, (name, _rows) in zip(numbers, sheets, strict=True)
    )
    strings = "".join(f"<si>{text}</si>" for text in shared or [])
    entries = {
        "_rels/.rels": relations([("r1", "officeDocument", "/xl/workbook.xml")]),
        "xl/workbook.xml": (
            f'<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}"><workbookPr {setup}/>'
            f"<sheets>{listed}</sheets></workbook>"
        ),
        "xl/_rels/workbook.xml.rels": relations(
            [(f"s{n}", "worksheet", f"worksheets/sheet{n}.xml") for n in numbers]
            + [("a", "styles", "styles.xml"), ("b", "sharedStrings", "sharedStrings.xml")]
        ),
        "xl/styles.xml": STYLES,
        "xl/sharedStrings.xml": f'<sst xmlns="{MAIN}">{strings}</sst>',
    }
    for n, (_name, rows) in zip(numbers, sheets, strict=True):
        entries[f"xl/worksheets/sheet{n}.xml"] = (
            f'<worksheet xmlns="{MAIN}"><sheetData>{rows}</sheetData></worksheet>'
        )
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for entry, text in entries.items():
            archive.writestr(entry, text)
    return out.getvalue()


def row(number: int, *values: str | float | None) -> str:
    cells = ""
    for column, value in enumerate(values):
        reference = f"{chr(65 + column)}{number}"
        if isinstance(value, str):
            cells += f'<c r="{reference}" t="inlineStr"><is><t>{value}</t></is></c>'
        elif value is not None:
            cells += f'<c r="{reference}"><v>{value}</v></c>'
    return f'<row r="{number}">{cells}</row>'


def texts(raw: bytes, limits: ExtractLimits = LIMITS) -> list[str]:
    return [block.text for block in extract(raw, limits).blocks]


class TestSheets:
    def test_runs_of_rows_keep_their_numbers(self) -> None:
        rows = row(3, "Name", "Depth") + row(4, "north", 12) + row(5) + row(9, None, "alone")
        (first, second) = extract(book(("Wells", rows)), LIMITS).blocks
        assert first.place == Place("sheet", 3, "Wells", by_line=True)
        assert (first.text, first.header_rows, first.kind) == (
            "Name | Depth\nnorth | 12",
            1,
            "table",
        )
        assert (second.place.number, second.text, second.header_rows) == (9, "| alone", 0)

    def test_empty_columns_are_dropped_and_bars_escaped(self) -> None:
        rows = row(1, "a|b", None, "c\nd") + row(2, "e", None, None, "f")
        assert texts(book(("S", rows))) == ["a\\|b | c d\ne |  | f"]

    def test_headers_are_words_over_something_else(self) -> None:
        def header(*rows: str) -> int:
            return extract(book(("S", "".join(rows))), LIMITS).blocks[0].header_rows

        assert header(row(1, "Name", "Depth"), row(2, "x", 1)) == 1
        assert header(row(1, "Name", "Town"), row(2, "x", "y")) == 1
        assert header(row(1, "Name", 3), row(2, "x", 1)) == 0
        assert header(row(1, None, "mpg", "cyl"), row(2, "car", 1, 2)) == 1
        assert header(row(1, "Name", None, "Depth"), row(2, "x", 1, 2)) == 0
        assert header(row(1, "x", "x"), row(2, "x", "x")) == 0
        assert header(row(1, "Name", "Depth")) == 0

    def test_hidden_sheets_are_taken_and_said(self) -> None:
        raw = book(("A", row(1, "a")), ("B", row(1, "b")), states=' state="veryHidden"')
        found = extract(raw, LIMITS)
        assert [block.text for block in found.blocks] == ["a", "b"]
        (part,) = found.skipped_parts
        assert (part.what, part.count, part.note) == ("hidden sheets", 1, "their text is taken: B")

    def test_far_cells_are_no_sea_of_bars(self) -> None:
        def column(index: int) -> str:
            letters = ""
            while index:
                index, rest = divmod(index - 1, 26)
                letters = chr(65 + rest) + letters
            return letters

        cells = [f'<c r="{column(n * 37)}{n}"><v>{n}</v></c>' for n in range(1, 401)]
        rows = "".join(f'<row r="{n}">{cell}</row>' for n, cell in enumerate(cells, 1))
        assert texts(book(("S", rows))) == ["\n".join(str(n) for n in range(1, 401))]


class TestValues:
    @pytest.mark.parametrize(
        ("style", "value", "shown"),
        [
            (0, "0.1", "0.1"),
            (0, "0.30000000000000004", "0.3"),
            (0, "1E3", "1000"),
            (0, "12345678901234567890", "12345678901234567890"),
            (0, "1e300", "1e+300"),
            (0, "-0.5", "-0.5"),
            (0, "nonsense", "nonsense"),
            (0, "NaN", "NaN"),
            (1, "2.345678", "2.35"),
            (1, "-0.001", "0.00"),
            (2, "45000", "2023-03-15"),
            (2, "1", "1900-01-01"),
            (2, "61", "1900-03-01"),
            (2, "1e15", "1e+15"),
            (2, "-4", "-4"),
            (3, "45000.5", "2023-03-15 12:00"),
            (3, "45000", "2023-03-15"),
            (4, "0.125", "12.50%"),
            (5, "501", "00501"),
            (6, "1.5", "36:00:00"),
            (999, "3", "3"),
        ],
    )
    def test_numbers_are_shown_as_their_format_says(
        self, style: int, value: str, shown: str
    ) -> None:
        rows = f'<row r="1"><c r="A1" s="{style}"><v>{value}</v></c></row>'
        assert texts(book(("S", rows))) == [shown]

    def test_days_since_1904(self) -> None:
        rows = '<row r="1"><c r="A1" s="2"><v>43538</v></c></row>'
        assert texts(book(("S", rows), setup='date1904="1"')) == ["2023-03-15"]

    def test_strings_truth_errors_and_formulas(self) -> None:
        rows = (
            '<row r="1"><c t="s"><v>0</v></c><c t="s"><v>1</v></c><c t="s"><v>99</v></c>'
            '<c t="b"><v>1</v></c><c t="e"><v>#DIV/0!</v></c>'
            '<c t="str"><f>A1&amp;"x"</f><v>done</v></c><c><f>SUM(A1:A9)</f></c>'
            '<c t="d"><v>2024-05-06T00:00:00</v></c></row>'
        )
        shared = [
            "<r><t>rich</t></r><r><t xml:space='preserve'> text</t></r><rPh><t>sound</t></rPh>",
            "<t>two_x000a_lines</t>",
        ]
        assert texts(book(("S", rows), shared=shared)) == [
            "rich text | two lines | TRUE | #DIV/0! | done | =SUM(A1:A9) | 2024-05-06"
        ]

    def test_scripts(self) -> None:
        assert texts(book(("表", row(1, "図書館", "שלום", "cafe\u0301")))) == [
            "図書館 | שלום | caf\u00e9"
        ]


class TestHostile:
    def fault(self, raw: bytes, limits: ExtractLimits = LIMITS) -> str:
        with pytest.raises(ExtractionError) as caught:
            extract(raw, limits)
        return caught.value.code

    def test_cut_off_anywhere(self) -> None:
        raw = book(("S", "".join(row(n, "x", n) for n in range(1, 200))))
        for length in range(0, len(raw) - 1, 131):
            assert self.fault(raw[:length]) == "damaged"

    def test_many_empty_rows_with_styles(self) -> None:
        empty = "".join(f'<row r="{n}" s="1"><c r="A{n}" s="1"/></row>' for n in range(2, 60_000))
        raw = book(("S", row(1, "first") + empty + row(60_001, "last")))
        assert [block.place.number for block in extract(raw, LIMITS).blocks] == [1, 60_001]

    def test_what_is_over_the_limit_is_cut_at_a_row_and_said(self) -> None:
        rows = "".join(row(n, f"name {n:06}", n) for n in range(1, 3001))
        found = extract(book(("S", rows)), ExtractLimits(max_chars=10_000))
        (block,) = found.blocks
        assert 9_900 < len(block.text) <= 10_000
        n_rows = block.text.count("\n") + 1
        (part,) = found.skipped_parts
        assert part.note.startswith(f"all from sheet {n_rows + 1} S on")

    def test_padding_counts_too(self) -> None:
        # Every tenth row fills all columns, the others only the last: mostly bars.
        wide = "".join(
            row(n, *(["x"] * 20 if n % 10 == 0 else [None] * 19 + ["x"])) for n in range(1, 500)
        )
        found = extract(book(("S", wide)), ExtractLimits(max_chars=5_000))
        assert 4_900 < sum(len(block.text) for block in found.blocks) <= 5_000
        assert found.skipped_parts[-1].what == "rest"

    def test_every_other_row_is_bounded_by_blocks(self) -> None:
        rows = "".join(row(n, "x") for n in range(1, 4000, 2))
        found = extract(book(("S", rows)), ExtractLimits(max_blocks=100))
        assert len(found.blocks) == 100
        assert found.skipped_parts[-1].what == "rest"

    def test_absurd_references(self) -> None:
        rows = (
            '<row r="99999999999999999999"><c r="ZZZZZZ1"><v>1</v></c><c r="A1"><v>2</v></c></row>'
            '<row r="-7"><c r="??"><v>3</v></c></row><row r="1"><c><v>4</v></c></row>'
        )
        blocks = extract(book(("S", rows)), LIMITS).blocks
        assert [(block.place.number, block.text) for block in blocks] == [(1, "2\n3\n4")]

    def test_a_bomb_of_strings(self) -> None:
        raw = book(("S", ""), shared=["<t>" + "x" * 2_000_000 + "</t>"])
        assert self.fault(raw, ExtractLimits(max_expanded_bytes=500_000)) == "too_big"

    def test_missing_sheets_and_wrong_kinds(self) -> None:
        out = io.BytesIO()
        raw = io.BytesIO(book(("A", ""), ("B", row(1, "b"))))
        with zipfile.ZipFile(raw) as old, zipfile.ZipFile(out, "w") as new:
            for name in old.namelist():
                if not name.endswith("sheet1.xml"):
                    new.writestr(name, old.read(name))
        found = extract(out.getvalue(), LIMITS)
        assert [block.text for block in found.blocks] == ["b"]
        assert [part.what for part in found.skipped_parts] == ["missing sheets"]
        assert extract(book(), LIMITS).blocks == ()

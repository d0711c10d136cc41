"""PDF: reading order, paragraphs, headings, tables, code, running rows, faults, hostile files."""

from __future__ import annotations

import pytest

from ragx.documents.formats.base import Block, Extracted, ExtractLimits, Link, Place, SkippedPart
from ragx.documents.formats.pdf.document import extract
from ragx.documents.formats.pdf.spaces import cuts
from ragx.documents.formats.pdf.text import clean
from ragx.errors import ExtractionError
from tests.unit.documents.formats.pdf_files import Pdf, line, lines

LIMITS = ExtractLimits()
PROSE = (
    "The pump has to be primed before it is switched on for the first",
    "time, and again whenever the line was opened: air in the housing",
    "keeps it from drawing water.",
)
NAMES = ("inlet", "outlet", "rotor", "gasket", "valve", "motor", "shaft", "seal", "cover", "drain")


def read(document: Pdf, limits: ExtractLimits = LIMITS) -> Extracted:
    return extract(document.build(), limits)


def kinds(document: Pdf) -> list[tuple[str, str]]:
    return [(block.kind, block.text) for block in read(document).blocks]


def fault(raw: bytes) -> str:
    with pytest.raises(ExtractionError) as caught:
        extract(raw, LIMITS)
    assert "\n" not in str(caught.value)
    return caught.value.code


def attempt(raw: bytes) -> Extracted | str:
    """What comes of it, or the code of its fault."""
    try:
        return extract(raw, LIMITS)
    except ExtractionError as exc:
        return exc.code


def skipped(extracted: Extracted) -> dict[str, SkippedPart]:
    return {part.what: part for part in extracted.skipped_parts}


def test_lines_of_a_paragraph_become_one_text() -> None:
    got = read(Pdf([lines(72, 700, PROSE)]))
    assert got.blocks == (Block("text", " ".join(PROSE), Place("page", 1)),)
    assert got.skipped_parts == ()


def test_pages_are_counted_from_one_and_named_by_their_labels() -> None:
    pages = [line(72, 700, f"Text of page {word}.") for word in ("one", "two", "three")]
    got = read(Pdf(pages, labels="0 << /S /r >> 2 << /S /D /St 3 >>"))
    assert [block.place for block in got.blocks] == [
        Place("page", 1, "i"),
        Place("page", 2, "ii"),
        Place("page", 3),
    ]


@pytest.mark.parametrize(
    ("first", "second", "elsewhere", "expected"),
    [
        ("it needs an exam-", "ple of its use", "", "it needs an example of its use"),
        ("a well-", "known rule of it", "the well-known rule", "a well-known rule of it"),
        ("a user-", "defined one, too", "any user who defined it", "a user-defined one, too"),
        ("the Jones-", "Smith theorem of it", "", "the Jones-Smith theorem of it"),
        ("between 1990-", "2000 it was so", "", "between 1990-2000 it was so"),
    ],
)
def test_a_hyphen_at_the_end_of_a_line_goes_only_inside_a_word(
    first: str, second: str, elsewhere: str, expected: str
) -> None:
    page = lines(72, 700, (first, second))
    got = kinds(Pdf([page, line(72, 700, f"Here is {elsewhere} again.")]))
    assert got[0] == ("text", expected)


def shown(array: str, size: float = 10, y: float = 700, more: str = "") -> str:
    """Content that shows strings and the shifts between them, in thousandths of the size."""
    return f"BT /R {size} Tf {more} 1 0 0 1 72 {y} Tm [{array}] TJ ET"


@pytest.mark.parametrize(
    ("array", "text"),
    [
        ("(A) -260 (colon)", "A colon"),
        ("(if any) -255 (of them)", "if any of them"),
        ("(A) 260 (f) 30 (ter) -20 (wards)", "Afterwards"),
        ("(Dev ) 278 (elopment)", "Development"),
        ("(Dev ) 100 (elopers)", "Dev elopers"),
        ("(W) 80 (ords k) 20 (erned) -30 (apart)", "Words kernedapart"),
    ],
)
def test_gaps_divide_words_where_no_space_is_written_and_spaces_without_room_do_not(
    array: str, text: str
) -> None:
    assert kinds(Pdf([shown(array)])) == [("text", text)]


def test_a_gap_between_fonts_divides_words() -> None:
    bold = "BT /B 10 Tf 1 0 0 1 72 700 Tm (WWWW) Tj 1 0 0 1 114 700 Tm"
    assert kinds(Pdf([f"{bold} /R 10 Tf (iiiiiiii) Tj ET"])) == [("text", "WWWW iiiiiiii")]


def test_letters_set_apart_stay_words() -> None:
    assert kinds(Pdf([shown("(Spaced letters)", more="2 Tc")])) == [("text", "Spaced letters")]


def spans(*gaps: float) -> list[tuple[float, float]]:
    """Characters of width 5, with gaps between them."""
    placed = [(0.0, 5.0)]
    for gap in gaps:
        placed.append((placed[-1][1] + gap, placed[-1][1] + gap + 5))
    return placed


@pytest.mark.parametrize(
    ("gaps", "expected"),
    [
        ((), []),
        ((2.5,), [1]),
        ((1.6,), []),
        ((0, 0, 3, 0, -0.5), [3]),
        ((2, 2, 2, 5, 2, 2), [4]),
        ((2, 2.1, 2, 1.9), []),
        ((0, 2, 0, 2, 0), [2, 4]),
        ((-14, -14, -13), []),
    ],
)
def test_gaps_are_measured_against_the_font_and_the_other_letters(
    gaps: tuple[float, ...], expected: list[int]
) -> None:
    assert cuts(spans(*gaps), 10) == expected


def test_letters_from_right_to_left_are_cut_alike() -> None:
    assert cuts([(20, 25), (15, 20), (7, 12), (2, 7)], 10) == [2]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("−−debugger", "--debugger"),
        ("−o", "-o"),
        ("−−dump−po−strings", "--dump-po-strings"),
        ("−−", "--"),
        ("−1", "−1"),
        ("x−2", "x−2"),
        ("−", "−"),
    ],
)
def test_minus_signs_are_dashes_in_options_only(text: str, expected: str) -> None:
    assert clean(text) == expected


def test_gaps_and_indents_divide_paragraphs() -> None:
    gap = lines(72, 700, PROSE) + lines(72, 640, PROSE)
    assert kinds(Pdf([gap])) == [("text", " ".join(PROSE))] * 2
    indented = lines(72, 700, PROSE) + line(90, 664, PROSE[0]) + lines(72, 652, PROSE[1:])
    assert kinds(Pdf([indented])) == [("text", " ".join(PROSE))] * 2


def test_short_lines_that_were_meant_stay_lines() -> None:
    page = lines(72, 700, PROSE) + lines(72, 600, ("Pump Works Ltd", "Mill Lane", "Leeds"))
    assert kinds(Pdf([page]))[1] == ("text", "Pump Works Ltd\nMill Lane\nLeeds")


def test_list_items_are_blocks_of_their_own() -> None:
    page = (
        line(72, 700, "•") + line(84, 700, "a first item that is so long that it goes on in the")
        + line(84, 688, "line below") + line(72, 676, "•") + line(84, 676, "a second")
        + lines(72, 640, ("1. open the valve", "2. close it"))
    )  # fmt: skip
    assert kinds(Pdf([page])) == [
        ("list", "- a first item that is so long that it goes on in the line below"),
        ("list", "- a second"),
        ("list", "1. open the valve"),
        ("list", "2. close it"),
    ]


def test_columns_are_read_one_after_the_other_however_they_are_written() -> None:
    left = [f"Left hand line number {word} of the text" for word in "abcdefgh"]
    right = [f"Right hand line number {word} of the text" for word in "abcdefgh"]
    by_column = lines(72, 700, left) + lines(310, 700, right)
    by_row = "\n".join(
        line(72, 700 - 12 * i, a) + line(310, 700 - 12 * i, b)
        for i, (a, b) in enumerate(zip(left, right, strict=True))
    )
    for page in (by_column, by_row):
        text = " ".join(block.text for block in read(Pdf([page])).blocks)
        assert text.split() == " ".join(left + right).split()


def test_rows_written_in_disorder_are_read_from_top_to_bottom() -> None:
    order = [7, 2, 9, 0, 5, 3, 8, 1, 6, 4]
    texts = [f"line {i} of this text goes here," for i in range(10)]
    page = "\n".join(line(72, 700 - 12 * i, texts[i]) for i in order)
    text = " ".join(block.text for block in read(Pdf([page])).blocks)
    assert text.split() == [
        w for i in range(10) for w in f"line {i} of this text goes here,".split()
    ]


def test_tables_keep_their_rows() -> None:
    cells = (("Part", "Price", "Stock"), ("Valve", "12.50", "3"), ("Seal | ring", "0.80", "41"))
    page = lines(72, 760, PROSE)
    for i, row in enumerate(cells):
        for x, cell in zip((72, 250, 400), row, strict=True):
            page += line(x, 700 - 14 * i, cell, font="R" if i else "B")
    got = read(Pdf([page])).blocks[1]
    assert (got.kind, got.header_rows) == ("table", 1)
    assert got.text == "Part | Price | Stock\nValve | 12.50 | 3\nSeal \\| ring | 0.80 | 41"


def test_a_wrapped_cell_goes_on_in_its_row() -> None:
    page = ""
    for i, (key, value) in enumerate((("-a", "all of them"), ("-b", "both of"), ("", "them"))):
        page += line(72, 700 - 12 * i, key) * bool(key) + line(200, 700 - 12 * i, value)
    page += line(72, 664, "-c") + line(200, 664, "colours")
    assert kinds(Pdf([page])) == [("table", "-a | all of them\n-b | both of them\n-c | colours")]


def test_words_cut_at_line_ends_are_joined_in_cells_and_list_items() -> None:
    page = ""
    for i, (key, value) in enumerate(
        (("-a", "the first com-"), ("", "mand of all"), ("-b", "both of them"), ("-c", "colours"))
    ):
        page += line(72, 700 - 12 * i, key) * bool(key) + line(200, 700 - 12 * i, value)
    page += line(72, 600, "1.") + line(90, 600, "take the com-") + line(90, 588, "mand given")
    page += line(72, 576, "2.") + line(90, 576, "leave the rest")
    assert kinds(Pdf([page])) == [
        ("table", "-a | the first command of all\n-b | both of them\n-c | colours"),
        ("list", "1. take the command given"),
        ("list", "2. leave the rest"),
    ]


@pytest.mark.parametrize(("marks", "start"), [("•••", "- "), (("1.", "2.", "3."), None)])
def test_items_whose_marks_stand_apart_are_a_list(marks: str, start: str | None) -> None:
    page = "".join(
        line(72, 700 - 12 * i, mark) + line(100, 700 - 12 * i, f"the {name} is shut")
        for i, (mark, name) in enumerate(zip(marks, NAMES, strict=False))
    )
    assert kinds(Pdf([page])) == [
        ("list", f"{start or mark + ' '}the {name} is shut")
        for mark, name in zip(marks, NAMES, strict=False)
    ]


def test_text_in_columns_is_no_table() -> None:
    left = ("Open the hous-", "ing and look in-", "side of it now")
    right = ("Valves are mount-", "ed on the out-", "side of the box")
    page = "".join(
        line(72, 700 - 12 * i, a) + line(300, 700 - 12 * i, b)
        for i, (a, b) in enumerate(zip(left, right, strict=True))
    )
    text = (
        "Open the housing and look inside of it now\nValves are mounted on the outside of the box"
    )
    assert kinds(Pdf([page])) == [("text", text)]


def test_cells_written_one_after_the_other_are_not_woven_into_each_other() -> None:
    page = ""
    for i, name in enumerate(NAMES):
        y = 780 - 40 * i
        page += line(72, y - 6, f"the {name}")
        page += lines(200, y, (f"opens with the {name} of the", "pump, and shuts with it."))
        page += lines(72 + 300, y, ("It is checked once a", f"year with the {name}."))
    text = " ".join(block.text for block in read(Pdf([page])).blocks)
    for name in NAMES:
        assert f"opens with the {name} of the pump, and shuts with it." in text
        assert f"It is checked once a year with the {name}." in text


MAN = (
    (72, "B", "OPTIONS"),
    (108, "R", "These are all the options that the pump knows, and what they do to it."),
    (108, "B", "--prime"),
    (144, "R", "Fill the housing with water before the rotor of the pump is"),
    (144, "R", "switched on."),
    (108, "B", "--dry"),
    (144, "R", "Run without any."),
    (108, "B", "--file NAME"),
    (108, "B", "--log NAME"),
    (144, "R", "Write all that happens, and when it did, to the file of that"),
    (144, "R", "name."),
    (72, "B", "FILES"),
    (108, "R", "The pump keeps its state in a file, which it reads when it is switched on."),
    (72, "B", "SEE ALSO"),
    (108, "R", "The manual of the valve, which is sold apart and has one of its own."),
)


def test_terms_stay_with_their_definitions_and_heads_that_hang_are_headings() -> None:
    page = "".join(line(x, 700 - 12 * i, text, 10, font) for i, (x, font, text) in enumerate(MAN))
    got = read(Pdf([page, lines(108, 700, PROSE * 5)]))
    both = "--file NAME\n--log NAME\n"
    assert [(b.kind, b.level, b.text) for b in got.blocks if b.place.number == 1] == [
        ("heading", 1, "OPTIONS"),
        ("text", 0, MAN[1][2]),
        (
            "text",
            0,
            "--prime\nFill the housing with water before the rotor of the pump is switched on.",
        ),
        ("text", 0, "--dry\nRun without any."),
        ("text", 0, f"{both}Write all that happens, and when it did, to the file of that name."),
        ("heading", 1, "FILES"),
        ("text", 0, MAN[12][2]),
        ("heading", 1, "SEE ALSO"),
        ("text", 0, MAN[14][2]),
    ]


def test_a_definition_beside_its_term_goes_on_below() -> None:
    page = line(72, 700, "M-u") + line(
        110, 700, "Turn the word under the cursor into capitals, letter by"
    )
    page += line(110, 688, "letter.") + lines(72, 640, PROSE)
    first = "M-u Turn the word under the cursor into capitals, letter by letter."
    assert kinds(Pdf([page])) == [("text", first), ("text", " ".join(PROSE))]


def test_a_paragraph_with_its_first_line_further_in_is_no_definition() -> None:
    page = line(72, 700, "It was so") + line(96, 688, PROSE[0]) + lines(72, 676, PROSE[1:])
    assert kinds(Pdf([page])) == [("text", "It was so"), ("text", " ".join(PROSE))]


def test_bold_words_in_the_margin_are_headings_only_where_they_come_back() -> None:
    page = line(60, 740, "Aside", 10, "B") + line(108, 728, PROSE[0]) + lines(108, 700, PROSE)
    assert [kind for kind, _ in kinds(Pdf([page]))] == ["text", "text"]


def test_a_numbered_section_may_begin_with_its_first_part_and_captions_are_no_headings() -> None:
    page = (
        lines(72, 760, PROSE) + line(72, 700, "3. Pumps", 10, "B")
        + line(72, 680, "3.1. Seals", 10, "B") + lines(72, 660, PROSE)
        + line(72, 600, "Table 2.", 14) + lines(72, 560, PROSE)
    )  # fmt: skip
    got = read(Pdf([page]))
    assert [(b.text, b.level) for b in got.blocks if b.kind == "heading"] == [
        ("3. Pumps", 1),
        ("3.1. Seals", 2),
    ]


def test_code_keeps_its_lines_indents_and_gaps() -> None:
    page = (
        lines(72, 760, PROSE)
        + line(90, 700, "def pump(on):", font="M")
        + line(90 + 4 * 6, 688, "if on:", font="M")
        + line(90 + 8 * 6, 676, "run(1,", font="M")
        + line(90 + 18 * 6, 676, "fast=True)", font="M")
        + line(90, 652, "pump(True)", font="M")
        + lines(72, 620, PROSE)
    )
    code = "def pump(on):\n    if on:\n        run(1,    fast=True)\n\npump(True)"
    assert [kind for kind, _ in kinds(Pdf([page]))] == ["text", "code", "text"]
    assert kinds(Pdf([page]))[1] == ("code", code)


def test_a_document_all_in_one_monospaced_font_is_prose() -> None:
    page = lines(72, 700, PROSE, font="M")
    assert kinds(Pdf([page])) == [("text", " ".join(PROSE))]


def test_headings_come_from_the_outline_with_its_levels() -> None:
    page = (
        line(72, 760, "Chapter 2") + line(72, 740, "Pumps and pipes", 10, "B")
        + lines(72, 700, PROSE) + line(72, 640, "2.1 First start of a new pump that is", 10, "B")
        + line(72, 628, "installed below ground", 10, "B") + lines(72, 600, PROSE)
    )  # fmt: skip
    outline = [
        (1, "Pumps and pipes", 0),
        (2, "First start of a new pump that is installed below ground", 0),
        (2, "Not on any page", 0),
    ]
    got = read(Pdf([page], outline=outline))
    assert [(b.text, b.level) for b in got.blocks if b.kind == "heading"] == [
        ("Chapter 2 Pumps and pipes", 1),
        ("2.1 First start of a new pump that is installed below ground", 2),
    ]
    assert got.title == "Chapter 2 Pumps and pipes"


def test_headings_come_from_font_sizes_where_no_outline_is() -> None:
    page = (
        line(72, 780, "Chapter 1", 24) + line(72, 750, "Pumps", 24) + lines(72, 700, PROSE)
        + line(72, 640, "Care", 14) + lines(72, 600, PROSE)
        + line(72, 540, "1.2.3 Seals", 10, "B") + lines(72, 500, PROSE)
        + line(72, 440, "Bold words are not a heading", 10, "B") + lines(72, 400, PROSE)
    )  # fmt: skip
    got = read(Pdf([page]))
    assert [(b.text, b.level) for b in got.blocks if b.kind == "heading"] == [
        ("Chapter 1 Pumps", 1),
        ("Care", 2),
        ("1.2.3 Seals", 3),
    ]


def test_running_headers_footers_and_page_numbers_are_left_out_and_counted() -> None:
    pages = [
        line(72, 800, f"Chapter {1 + i // 5}. Pumps") + line(500, 800, str(i + 1))
        + lines(72, 700, (f"The {name} comes first here", f"and then the {name} goes."))
        + line(280, 40, f"- {i + 1} -")
        for i, name in enumerate(NAMES)
    ]  # fmt: skip
    got = read(Pdf(pages))
    expected = [f"The {name} comes first here and then the {name} goes." for name in NAMES]
    assert [block.text for block in got.blocks] == expected
    assert skipped(got)["headers and footers"].count == 2 * len(NAMES)


def test_headers_of_short_sections_go_with_the_others() -> None:
    headers = ["Pumps"] * 7 + ["Seals"] + ["Valves"] * 2
    pages = [
        line(72, 800, header, 8) + lines(72, 700, (f"The {name} comes first,", f"the {name} goes."))
        for header, name in zip(headers, NAMES, strict=True)
    ]
    got = read(Pdf(pages))
    assert len(got.blocks) == len(NAMES)
    assert skipped(got)["headers and footers"].count == len(NAMES)


def test_pages_that_all_say_the_same_keep_their_text() -> None:
    got = read(Pdf([line(72, 700, "Fragile: this side up")] * 4))
    assert [block.text for block in got.blocks] == ["Fragile: this side up"] * 4
    assert got.skipped_parts == ()


def test_first_lines_that_differ_are_no_running_headers() -> None:
    words = ("Valves", "Seals", "Rings", "Pipes", "Tanks")
    got = read(Pdf([lines(72, 780, (f"{word} are sold in boxes.", "Ask us.")) for word in words]))
    assert all(any(word in block.text for block in got.blocks) for word in words)
    assert not any("headers" in part.what for part in got.skipped_parts if part.count > len(words))


def test_contents_are_a_list_with_pages() -> None:
    page = lines(
        72, 700, ("1 Pumps . . . . . . . . 3", "1.1 Seals . . . . . . . 14", "Index. . . . . 90")
    )
    assert kinds(Pdf([page])) == [("list", "1 Pumps … 3\n1.1 Seals … 14\n- Index … 90")]


def test_links_lead_to_addresses_and_files() -> None:
    page = line(72, 700, "See the manual or") + line(72, 688, "the parts list today.")
    uri = "<< /S /URI /URI (https://example.org/m?a=1) >>"
    file = "<< /S /GoToR /F (parts.pdf) /D [0 /Fit] >>"
    inside = "<< /S /GoTo /D [2 0 R /Fit] >>"
    links = [
        ((88, 698, 145, 710), uri),
        ((88, 686, 135, 698), file),
        ((135, 686, 170, 698), inside),
    ]
    got = read(Pdf([page], links={0: links})).blocks[0]
    found = [(got.text[link.start : link.end], link.target) for link in got.links]
    assert found == [("the manual", "https://example.org/m?a=1"), ("parts list", "parts.pdf")]
    assert isinstance(got.links[0], Link)


def test_metadata_gives_title_date_and_keywords() -> None:
    info = {
        "Title": "Pumps and Pipes",
        "Keywords": "water, pumps,water, ",
        "CreationDate": "D:20200102030405Z",
        "ModDate": "D:20211301000000",
    }
    got = read(Pdf([lines(72, 700, PROSE)], info=info))
    assert (got.title, got.tags, got.date) == (
        "Pumps and Pipes", ("water", "pumps"), "2020-01-02"
    )  # fmt: skip


@pytest.mark.parametrize(
    "title",
    ["Microsoft Word - pumps.doc", "untitled", "pumps_v3.pdf", "", "  ", "/tmp/x y", "- 1 -"],
)
def test_a_junk_title_gives_way_to_the_first_heading(title: str) -> None:
    page = line(72, 780, "Pumps", 24) + lines(72, 700, PROSE)
    assert read(Pdf([page], info={"Title": title})).title == "Pumps"


def test_turned_text_and_turned_pages() -> None:
    stamp = "BT /R 20 Tf 0 1 -1 0 30 200 Tm (Preprint of May) Tj ET"
    got = kinds(Pdf([stamp + lines(72, 700, PROSE)]))
    assert got == [("text", " ".join(PROSE)), ("text", "Preprint of May")]
    turned = "\n".join(
        f"BT /R 10 Tf 0 1 -1 0 {100 + 12 * i} 60 Tm ({text}) Tj ET" for i, text in enumerate(PROSE)
    )
    assert kinds(Pdf([turned], page_entries="/Rotate 90")) == [("text", " ".join(PROSE))]


def test_size_counts_as_it_is_scaled() -> None:
    heading = "BT /R 1 Tf 24 0 0 24 72 780 Tm (Pumps) Tj ET"
    got = kinds(Pdf([heading + lines(72, 700, PROSE)]))
    assert got[0] == ("heading", "Pumps")


# What an embedded font says its codes mean.
def _mapped(pairs: list[tuple[int, str]]) -> Pdf:
    rows = "\n".join(f"<{code:02x}> <{text.encode('utf-16-be').hex()}>" for code, text in pairs)
    cmap = (
        "/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /X def\n"
        "1 begincodespacerange <00> <ff> endcodespacerange\n"
        f"{len(pairs)} beginbfchar\n{rows}\nendbfchar\nendcmap end end"
    )
    first = "<< /Type /XObject /Subtype /Image /Width 1 /Height 1 /BitsPerComponent 8 /Length 0 >>"
    stream = f"<< /Length {len(cmap)} >>\nstream\n{cmap}\nendstream"
    font = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /ToUnicode @1 >>"
    codes = "".join(f"{code:02x}" for code, _ in pairs)
    page = f"BT /U 10 Tf 1 0 0 1 72 700 Tm <{codes}> Tj ET"
    return Pdf([page], extra_fonts={"U": font}, extra_objects=[first, stream])


@pytest.mark.parametrize(
    ("drawn", "text"),
    [
        (["o", "ﬃ", "c", "e"], "office"),
        (["ﬁ", "n"], "fin"),
        (["e", "\u0301", "t", "e"], "éte"),
        (["ﬁ" * 2, "x"], "fifix"),
        (["в", "о", "д", "а"], "вода"),
        (["水", "泵"], "水泵"),
        (["𝜎", "x", "𝜋"], "𝜎x𝜋"),
        (["a", "\u200b", "b"], "ab"),
    ],
)
def test_characters_of_all_kinds(drawn: list[str], text: str) -> None:
    document = _mapped(list(zip(range(65, 65 + len(drawn)), drawn, strict=True)))
    assert "".join(block.text for block in read(document).blocks).replace(" ", "") == text


def test_right_to_left_text_comes_in_logical_order() -> None:
    # Drawn from left to right: the last letter first.
    document = _mapped(list(zip(range(65, 69), reversed("שלום"), strict=True)))
    assert [block.text for block in read(document).blocks] == ["שלום"]


def test_fonts_that_map_to_nothing_are_said() -> None:
    document = _mapped([(65 + i, chr(0xE000 + i)) for i in range(20)])
    with pytest.raises(ExtractionError, match="fonts cannot be read") as caught:
        read(document)
    assert caught.value.code == "no_text"


def test_scanned_documents_and_scanned_pages() -> None:
    image = "q 595 0 0 842 0 0 cm /Im Do Q"
    with pytest.raises(ExtractionError, match=r"^3 pages of images and no text: run OCR") as caught:
        read(Pdf([image] * 3))
    assert caught.value.code == "no_text"
    text = lines(72, 700, PROSE)
    got = read(Pdf([text, image, text + image, image, image, image, text, image]))
    assert skipped(got)["scanned pages"] == SkippedPart("scanned pages", 5, "pages 2, 4-6, 8")
    assert skipped(got)["images"].count == 1
    assert [block.place.number for block in got.blocks] == [1, 3, 7]


def test_pages_with_drawings_only_hold_no_text() -> None:
    drawing = "72 72 m 300 400 l S"
    with pytest.raises(ExtractionError, match=r"^2 pages of drawings and no text") as caught:
        read(Pdf([drawing, "", drawing]))
    assert caught.value.code == "no_text"
    got = read(Pdf([lines(72, 700, PROSE) + drawing, drawing, ""]))
    assert got.skipped_parts == (SkippedPart("pages of drawings only", 1, "page 2"),)


def test_blank_pages_are_an_empty_document() -> None:
    assert read(Pdf(["", ""])) == Extracted(())


def test_encryption() -> None:
    page = lines(72, 700, PROSE)
    assert fault(Pdf([page], encrypted="closed").build()) == "encrypted"
    assert read(Pdf([page], encrypted="open")).blocks[0].text == " ".join(PROSE)


@pytest.mark.parametrize(
    "raw", [b"", b"%PDF-", b"%PDF-1.7\n" + b"\0" * 5_000, b"%PDF-1.4\n%%EOF", b"PK\x03\x04", b"hi"]
)
def test_what_is_no_pdf_is_damaged(raw: bytes) -> None:
    assert fault(raw) == "damaged"


def test_cut_off_at_any_length_it_is_damaged_or_what_is_left() -> None:
    raw = Pdf([lines(72, 700, PROSE)] * 4, outline=[(1, "A", 0)], info={"Title": "T"}).build()
    whole = " ".join(PROSE)
    for length in range(0, len(raw), 37):
        got = attempt(raw[:length])
        assert got in ("damaged", "no_text") or (
            isinstance(got, Extracted) and all(block.text == whole for block in got.blocks)
        )


def test_lost_pages_are_named() -> None:
    raw = Pdf([lines(72, 700, PROSE)] * 3).build()
    broken = raw.replace(b"/Kids [6 0 R 8 0 R", b"/Kids [6 0 R 3 0 R")
    assert broken != raw
    got = extract(broken, LIMITS)
    assert {block.place.number for block in got.blocks} >= {1, 3}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"/Count 1", b"/Count 2147483647"),
        (b"/Count 1", b"/Count -7"),
        (b"[0 0 595 842]", b"[0 0 1e38 -1e38]"),
        (b"/Size ", b"/Size 99999999999999999999"),
        (b"/Parent 2 0 R", b"/Parent 6 0 R"),
        (b"/Kids [6 0 R]", b"/Kids [2 0 R 6 0 R 2 0 R]"),
        (b"/Length ", b"/Length 4294967295"),
    ],
)
def test_lying_numbers_and_loops_end(old: bytes, new: bytes) -> None:
    raw = Pdf([lines(72, 700, PROSE)]).build()
    assert old in raw
    got = attempt(raw.replace(old, new))
    assert isinstance(got, Extracted) or got in ("damaged", "no_text")


def test_an_outline_that_bites_its_tail_ends() -> None:
    raw = Pdf([line(72, 700, "Pumps", 20) + lines(72, 600, PROSE)], outline=[(1, "Pumps", 0)] * 2)
    built = raw.build()
    looped = built.replace(b"/Prev", b"/Next", 1)
    assert looped != built
    assert extract(looped, LIMITS).blocks[0].kind == "heading"


def test_a_page_that_unpacks_to_much_is_read_within_the_limits() -> None:
    page = lines(72, 700, ["All work and no play."] * 20_000).encode()
    raw = Pdf([page]).build()
    assert len(raw) * 8 < len(page)
    got = extract(raw, ExtractLimits(max_chars=5_000))
    assert sum(len(block.text) for block in got.blocks) <= 5_000
    assert skipped(got)["rest"].note.startswith("all from page 1 on")


def test_limits_name_where_the_rest_begins() -> None:
    pages = [lines(72, 700, [f"{chr(65 + i)}: {text}" for text in PROSE]) for i in range(26)]
    got = read(Pdf(pages), ExtractLimits(max_chars=1_000))
    assert sum(len(block.text) for block in got.blocks) <= 1_000
    n_whole = 1_000 // len(got.blocks[0].text)
    assert skipped(got)["rest"].note == f"all from page {n_whole + 1} on: over 1,000 characters"
    few = read(Pdf(pages), ExtractLimits(max_blocks=4))
    assert len(few.blocks) == 4
    assert "over 4 blocks" in skipped(few)["rest"].note


def test_the_same_bytes_give_the_same() -> None:
    raw = Pdf([lines(72, 700, PROSE), line(72, 700, "Pumps", 20)]).build()
    assert extract(raw, LIMITS) == extract(raw, LIMITS)

"""RTF: characters of all code pages, structure, and what hostile files do."""

from __future__ import annotations

import pytest

from ragx.documents.formats.base import Block, Extracted, ExtractLimits, SkippedPart
from ragx.documents.formats.rtf.document import extract
from ragx.errors import ExtractionError

LIMITS = ExtractLimits()
STYLES = (
    r"{\stylesheet{\s0 Normal;}{\s1\outlinelevel0 Chapter;}{\s2\sbasedon1\outlinelevel1 Section;}"
    r"{\s3 heading 3;}{\s4\sbasedon4 Loop;}{\*\cs10 heading 1;}}"
)


def read(body: str, head: str = r"\ansi\ansicpg1252\deff0") -> Extracted:
    return extract(("{\\rtf1" + head + "\n" + body + "}").encode("latin-1"), LIMITS)


def texts(body: str, head: str = r"\ansi\ansicpg1252\deff0") -> list[str]:
    return [block.text for block in read(body, head).blocks]


def fault(raw: bytes) -> tuple[str, str]:
    with pytest.raises(ExtractionError) as caught:
        extract(raw, LIMITS)
    return caught.value.code, str(caught.value)


def test_paragraphs_and_line_breaks() -> None:
    found = read("\\pard One\r\nword \\b bold\\b0 , two.\\par Next\\line row\\par\\par\n")
    assert [(block.kind, block.text) for block in found.blocks] == [
        ("text", "Oneword bold, two."),
        ("text", "Next\nrow"),
    ]
    assert found.blocks[0].place.kind == "heading"


def test_a_backslash_at_the_end_of_a_line_ends_a_paragraph() -> None:
    assert texts("one\\\ntwo\\\r\nthree") == ["one", "two", "three"]


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (r"caf\'e9", "café"),
        (r"\{a\}\\", "{a}\\"),
        (r"a\~b\_c\-d", "a b-cd"),
        (r"\ldblquote x\rdblquote\emdash y", "“x”—y"),
        (r"\u8364?5", "€5"),
        (r"\u8364\'805", "€5"),
        (r"{\uc0\u8364 5}\u960 p", "€5π"),
        (r"\uc2\u8364\'a2\'e35", "€5"),
        (r"\u-10179?\u-8704?!", "\U0001f600!"),
        (r"a\u-10179?b", "a\ufffdb"),
        (r"\u99999999999?x", "x"),
        (r"{\upr{old}{\*\ud{new}}}", "new"),
        (r"{\v hidden}shown", "shown"),
        (r"{\v hidden{\v0 shown}}", "shown"),
        (r"e\u769?", "é"),
        (r"of\u64257?ce\u173?", "office"),
    ],
)
def test_characters(body: str, text: str) -> None:
    assert texts(body) == [text]


@pytest.mark.parametrize(
    ("head", "body", "text"),
    [
        (r"\ansi\ansicpg1251", r"\'cf\'f0\'e8\'e2\'e5\'f2", "Привет"),
        (r"\ansi\ansicpg932", r"\'93\'fa\'96\'7b\'8c\'ea", "日本語"),
        (r"\ansi\ansicpg932", r"\'83e\'83X\'83g", "テスト"),
        (r"\ansi\ansicpg936", r"\'d6\'d0\'ce\'c4", "中文"),
        (r"\mac", r"caf\'8e", "café"),
        (r"\pc", r"caf\'82", "café"),
        (r"\ansi\ansicpg65001", r"\'c3\'a9t\'c3\'a9", "été"),
        (r"\ansi\ansicpg99999", r"caf\'e9", "café"),
    ],
)
def test_code_pages(head: str, body: str, text: str) -> None:
    assert texts(body, head) == [text]


def test_fonts_have_code_pages_of_their_own() -> None:
    fonts = (
        r"{\fonttbl{\f0\fcharset0 Arial;}{\f1\fcharset204{\*\falt x}Arial Cyr;}"
        r"{\f2\fcharset2 Symbol;}{\f3\fcharset2 Wingdings;}{\f4\fcharset178 Arabic;}}"
    )
    body = r"\f0 caf\'e9 {\f1\'cf\'f0}\'e9 \f2 a\'b7 \f3 x \f4\'e3\'d1"
    assert texts(fonts + body) == ["café Прé α• • مر"]


def test_western_fonts_of_japanese_documents() -> None:
    fonts = r"{\fonttbl{\f0\fcharset0 Times;}{\f1\fcharset128 Mincho;}}"
    body = r"\f0 don\'92t \f1\'93\'fa"
    assert texts(fonts + body, r"\ansi\ansicpg932\deff0") == ["don’t 日"]


def test_headings_by_outline_level_or_style() -> None:
    found = read(
        STYLES + r"\pard\s1 One\par\pard\s2 Two\par\pard\s3 Three\par\pard\s4 no\par"
        r"\pard\outlinelevel4 Own\par\pard\s1\outlinelevel9 body\par\pard text\par"
    )
    assert [(block.text, block.level) for block in found.blocks] == [
        ("One", 1), ("Two", 2), ("Three", 3), ("no", 0), ("Own", 5), ("body", 0), ("text", 0)
    ]  # fmt: skip
    assert found.title == "One"


def test_sentences_in_a_heading_style_are_text() -> None:
    found = read(STYLES + r"\pard\s1 This is a whole sentence that somebody styled.\par")
    assert found.blocks[0].kind == "text"


def test_headings_by_their_looks_where_none_is_marked() -> None:
    running = r"\pard\plain\fs24 Running text that goes on and on, for a line or two at least.\par"
    found = read(
        r"\pard\fs48 The Title\par" + running + r"\pard\b\fs24 Small\b0\par" + running
        + r"\pard{\b\fs32 Section}\par" + running + r"\pard\b a\b0  word only\par"
    )  # fmt: skip
    assert [(block.text, block.level) for block in found.blocks if block.kind == "heading"] == [
        ("The Title", 1), ("Small", 3), ("Section", 2)
    ]  # fmt: skip


def test_tables_are_rows() -> None:
    row = r"\trowd{}\cellx1000\cellx2000\pard\intbl {}\cell {}\cell\row "
    body = (
        row.format(r"\trhdr", "Name", "Size")
        + row.format("", r"a|b", r"1\par 2")
        + row.format("", "", "")
        + r"\pard after\par"
    )
    found = read(body)
    assert found.blocks == (
        Block("table", "Name | Size\na\\|b | 1 2", found.blocks[0].place, header_rows=1),
        Block("text", "after", found.blocks[0].place),
    )


def test_a_frame_of_one_cell_is_text() -> None:
    assert read(r"\trowd\pard\intbl boxed\cell\row\pard x\par").blocks[0].kind == "text"


def test_lists_have_bullets_and_numbers() -> None:
    body = (
        r"\pard{\listtext\'b7\tab}first\par{\listtext\tab\'b7\tab}\ilvl1 inner\par"
        r"\pard{\pntext\f0 1.\tab}one\par\pard text\par\pard \bullet\tab typed\par"
    )
    assert [(block.kind, block.text) for block in read(body).blocks] == [
        ("list", "- first\n  - inner\n1. one"),
        ("text", "text"),
        ("list", "- typed"),
    ]


def test_links_have_their_targets() -> None:
    found = read(
        r'See {\field{\*\fldinst{ HYPERLINK "https://a.example/x" }}{\fldrslt{\ul the page}}} or'
        r' {\field{\*\fldinst HYPERLINK \\l "part"}{\fldrslt below}},'
        r' {\field{\*\fldinst HYPERLINK notes.rtf \\o "tip" \\l "two"}{\fldrslt notes}}'
        r" {\field{\*\fldinst DATE}{\fldrslt today}}.\par"
    )
    block = found.blocks[0]
    assert block.text == "See the page or below, notes today."
    assert [(block.text[link.start : link.end], link.target) for link in block.links] == [
        ("the page", "https://a.example/x"),
        ("below", "#part"),
        ("notes", "notes.rtf#two"),
    ]


def test_links_in_cells_and_over_paragraphs() -> None:
    field = r'{\field{\*\fldinst HYPERLINK "u"}{\fldrslt a\par b}}'
    found = read(r"\trowd\pard\intbl x\cell " + field + r"\cell\row\pard " + field + r"\par")
    assert [(block.text, block.links[0].target) for block in found.blocks if block.links] == [
        ("x | a b", "u"),
        ("a", "u"),
    ]


def test_notes_and_text_boxes_follow_their_paragraph() -> None:
    body = (
        r"Before{\super\chftn}{\footnote\pard{\super\chftn} The note.} after.\par "
        r"Beside{\shp{\*\shpinst{\sp{\sn x}{\sv y}}{\shptxt\pard In a box.\par}}{\shprslt z}}.\par "
        r"{\*\footnote starred}Last.\par"
    )
    assert texts(body) == [
        "Before[1] after.", "[1] The note.", "Beside.", "In a box.", "Last.", "starred"
    ]  # fmt: skip


def test_what_is_left_out_is_counted() -> None:
    found = read(
        r"{\header Top}{\footerr Bottom}{\*\shppict{\pict\pngblip 89504e47}}"
        r"{\nonshppict{\pict 00}}{\pict{\*\blipuid 00}\bin4 }}}}}{\*\annotation remark}"
        r"{\object{\*\objdata 00ff}{\result shown}}{\deleted gone}"
        r"{\field{\*\fldinst TOC \\o}{\fldrslt One 1\par}}{\xe entry} text\par"
    )
    assert [block.text for block in found.blocks] == ["shown text"]
    assert found.skipped_parts == (
        SkippedPart("comments", 1),
        SkippedPart("deletions", 1),
        SkippedPart("embedded objects", 1),
        SkippedPart("headers and footers", 2),
        SkippedPart("images", 2),
        SkippedPart("tables of contents", 1),
    )


def test_title_keywords_and_dates() -> None:
    info = (
        r"{\info{\title Caf\'e9 {\b x}}{\author A}{\keywords sea; waves, sea}"
        r"{\creatim\yr2001\mo2\dy3\hr4}{\revtim\yr2003\mo4\dy5}{\printim\yr2009\mo9\dy9}}"
    )
    found = read(info + r"text\par")
    assert (found.title, found.tags, found.date) == ("Café x", ("sea", "waves"), "2003-04-05")
    assert [block.text for block in found.blocks] == ["text"]
    broken = read(r"{\info{\revtim\yr2003\mo44\dy5}{\creatim\yr2002\mo1\dy1}}x")
    assert broken.date == "2002-01-01"
    assert read(r"{\info{\revtim\yr99999999\mo1\dy1}}x").date == ""


def test_unknown_groups_are_skipped_only_if_starred() -> None:
    assert texts(r"{\*\unknown no{\b no}}{\unknown yes}{\*\generator Word;}\par") == ["yes"]


def test_nothing_is_nothing() -> None:
    assert extract(b"", LIMITS) == Extracted(())
    assert read("") == Extracted(())
    assert read(r"\pard\par\par") == Extracted(())


@pytest.mark.parametrize("raw", [b"PK\x03\x04", b"plain", b"{\\rtx1 a}", b"\\rtf1", b"{\\rtfx a}"])
def test_what_is_no_rtf_is_damaged(raw: bytes) -> None:
    assert fault(raw) == ("damaged", "it is no RTF: it does not begin with {\\rtf")


def test_cut_off_anywhere_it_gives_what_is_left() -> None:
    raw = (
        "{\\rtf1\\ansi{\\fonttbl{\\f0 Arial;}}"
        + STYLES
        + r"\pard\s1 Title\par\trowd\intbl a\cell b"
        r"\cell\row\pard {\field{\*\fldinst HYPERLINK x}{\fldrslt y}}{\footnote z}\u8364?\'e9\par}"
    ).encode("latin-1")
    whole = extract(raw, LIMITS)
    assert whole.skipped_parts == ()
    begin = raw.index(b"Title") + 1
    for length in range(1, len(raw)):
        if length < begin:
            assert fault(raw[:length])[0] == "damaged"
            continue
        found = extract(raw[:length], LIMITS)
        assert found.skipped_parts[-1] == SkippedPart("rest", 0, "the file is cut off")
        assert 0 < len(found.blocks) <= len(whole.blocks)


def test_garbage_after_the_magic() -> None:
    noise = bytes((n * n * 31 + n) % 256 for n in range(20_000))
    extracted = extract(b"{\\rtf1 x " + noise, LIMITS)
    assert all(block.text.isprintable() or "\n" in block.text for block in extracted.blocks)


def test_groups_nested_a_hundred_thousand_deep() -> None:
    deep = 100_000
    assert texts("{" * deep + "core" + "}" * deep + r"\par") == ["core"]
    assert texts("{\\b" * deep + " core") == ["core"]
    assert texts(r"{\footnote a" * deep + "}" * deep)[-1].startswith("a")
    assert texts(r"{\*\x " + "{" * deep + "}" * deep + "}after") == ["after"]
    assert fault(b"{\\rtf1" + b"{" * 200_000)[1] == "its groups are nested more than 150,000 deep"
    assert texts(r"{\field{\fldrslt a" * 20_000) == ["a" * 20_000]


def test_sizes_that_lie() -> None:
    assert texts(r"a\bin99999999999 b\bin-5 c\bin3 }}}d\par") == ["abcd"]
    assert texts(r"{\pict\bin9999999999 00}text") == ["text"]
    assert texts(r"\uc99999\u65?b\fs-99999999999\f-7\s-3\ilvl999999 c") == ["Ac"]
    assert texts(r"\ilvl999999{\listtext 1.}x")[0] == "1. x"


def test_braces_that_do_not_match() -> None:
    assert texts(r"a}b}}c") == ["a"]
    assert texts(r"\cell\row\cell\nestrow\row a\row") == ["a"]


def test_limits_hold() -> None:
    many = ("{\\rtf1 " + "word\\par " * 1_000 + "}").encode()
    few = extract(many, ExtractLimits(max_blocks=10))
    assert len(few.blocks) == 10
    assert few.skipped_parts == (SkippedPart("rest", 0, "all from heading on: over 10 blocks"),)
    short = extract(many, ExtractLimits(max_chars=50))
    assert sum(len(block.text) for block in short.blocks) <= 50
    assert short.skipped_parts[-1].what == "rest"


def test_a_hundred_thousand_paragraphs() -> None:
    found = extract(("{\\rtf1 " + "x\\par " * 100_001 + "}").encode(), LIMITS)
    assert len(found.blocks) == 100_000
    assert found.skipped_parts[-1].what == "rest"

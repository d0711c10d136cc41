"""What the readers of office formats share."""

import pytest

from ragx.documents.formats.base import Link, Place
from ragx.documents.formats.office.package import alt_text, best_title, iso_day, tags
from ragx.documents.formats.office.text import (
    Line,
    is_figure,
    join_cells,
    list_block,
    table_blocks,
)
from ragx.documents.formats.office.word import roman, spell
from ragx.documents.formats.office.xml import name, parse, stream
from ragx.errors import ExtractionError

HERE = Place("heading")


class TestLine:
    def test_white_space_is_squeezed_and_links_stay_on_their_words(self) -> None:
        line = Line()
        for text, target in (("  a ", ""), ("  b  c ", "x"), (" \n\n ", ""), ("  d", "y")):
            line.add(text, target)
        text, links = line.build()
        assert text == "a b c\nd"
        assert [(text[one.start : one.end], one.target) for one in links] == [
            ("b c", "x"),
            ("d", "y"),
        ]

    def test_pieces_of_one_link_are_one_and_accents_join(self) -> None:
        line = Line()
        for text in ("caf", "e", "\u0301"):
            line.add(text, "x")
        assert line.build() == ("caf\u00e9", (Link(0, 4, "x"),))

    def test_nothing(self) -> None:
        line = Line()
        line.add("")
        line.add(" \t\n")
        line.add("\u200b\u00ad", "x")
        assert line.build() == ("", ())


class TestTables:
    def test_cells(self) -> None:
        assert join_cells(["", "a|b", "c\n d", ""]) == "| a\\|b | c d"
        assert join_cells(["", ""]) == ""

    def test_blocks_keep_within_their_size(self) -> None:
        rows = [f"row {n}" for n in range(10)]
        blocks = list(table_blocks(rows, HERE, header_rows=1, max_chars=20))
        assert all(block.text.startswith("row 0\n") for block in blocks)
        assert [line for b in blocks for line in b.text.split("\n")[1:]] == rows[1:]
        assert list(table_blocks(["", ""], HERE, header_rows=1, max_chars=20)) == []
        (alone,) = table_blocks(["only"], HERE, header_rows=1, max_chars=20)
        assert alone.header_rows == 0

    def test_figures(self) -> None:
        assert all(map(is_figure, ("3", "-4,5", "€ 12.50", "2024-05-06", "12 %")))
        assert not any(map(is_figure, ("", "a1", "3 dogs", "1" * 100)))


def test_lists_indent_and_move_links() -> None:
    block = list_block([(2, "- a", ()), (3, "- b", (Link(2, 3, "x"),)), (0, "- c", ())], HERE)
    assert block.text == "- a\n  - b\n- c"
    assert [block.text[one.start : one.end] for one in block.links] == ["b"]


@pytest.mark.parametrize(
    ("count", "form", "shown"),
    [
        (4, "decimal", "4"),
        (4, "decimalZero", "04"),
        (28, "lowerLetter", "bb"),
        (3, "A", "C"),
        (1994, "upperRoman", "MCMXCIV"),
        (0, "i", "0"),
        (-1, "lowerLetter", "-1"),
        (10**6, "upperLetter", "M" * 9),
        (5, "chineseCounting", "5"),
    ],
)
def test_numbers_are_spelled(count: int, form: str, shown: str) -> None:
    if form == "upperLetter":
        assert len(spell(count, form)) == len(shown)
    else:
        assert spell(count, form) == shown


def test_romans_end_where_they_ended() -> None:
    assert roman(3999) == "MMMCMXCIX"
    assert roman(4000) == "4000"


def test_titles_tags_days_and_descriptions() -> None:
    assert best_title("PowerPoint Presentation", "Wells") == "Wells"
    assert best_title("Presentation of wells", "x") == "Presentation of wells"
    assert best_title("", "x") == "x"
    assert tags(" a, b;a ,,") == ("a", "b")
    assert iso_day("2024-05-06T01:02:03Z") == "2024-05-06"
    assert iso_day("2024-13-06") == iso_day("yesterday") == ""
    assert alt_text("A well of brick and stone") == "[Image: A well of brick and stone]"
    for empty in ("", "image1.png", "Picture 3", "C:\\a b\\c.png", "Grafik 12"):
        assert alt_text(empty) == ""
    assert alt_text("/" * 500_000 + " ") == ""


class TestXml:
    def test_units_are_whole_and_the_rest_is_not_kept(self) -> None:
        raw = b"<a><b x='1'><c>t</c></b><b/><d><b><b>in</b></b></d></a>"
        events = [
            (kind, one.tag, None if kind == "start" else len(one))
            for kind, one in stream(raw, "x", ("b",))
        ]
        assert events == [
            ("start", "a", None),
            ("unit", "b", 1),
            ("unit", "b", 0),
            ("start", "d", None),
            ("unit", "b", 1),
            ("end", "d", 0),
            ("end", "a", 0),
        ]

    def test_encodings_and_remarks(self) -> None:
        text = "<?xml version='1.0' encoding='utf-16'?><!-- x --><a>é</a>"
        assert parse(text.encode("utf-16"), "x").text == "é"
        assert parse(b"<?xml version='1.0' encoding='latin-1'?><a>\xe9</a>", "x").text == "é"
        assert parse(b"<!DOCTYPE a PUBLIC '-//x' 'http://127.0.0.1:1/x.dtd'><a/>", "x").tag == "a"

    @pytest.mark.parametrize(
        "raw",
        [
            b"",
            b"  ",
            b"<a>",
            b"<a></b>",
            b"<a>&b;</a>",
            b"\x00\x01\x02",
            b"<a>\xff\xff</a>",
            b"<?xml version='1.0' encoding='utf-7'?><a/>",
            b"<!DOCTYPE a [<!ENTITY b 'c'>]><a/>",
            b"<!DOCTYPE a [<!ENTITY % b SYSTEM 'file:///etc/passwd'> %b;]><a/>",
            "<!DOCTYPE a [<!ENTITY b 'c'>]><a/>".encode("utf-16"),
            b"<a>" * 100_000,
        ],
    )
    def test_what_is_no_xml_that_can_be_read(self, raw: bytes) -> None:
        with pytest.raises(ExtractionError) as caught:
            parse(raw, "x")
        assert caught.value.code == "damaged"
        assert "\n" not in str(caught.value)

    def test_names(self) -> None:
        assert name("dc:title") == "{http://purl.org/dc/elements/1.1/}title"

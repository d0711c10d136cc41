"""A document written out as one text: what stands where in it, and where chunks may end."""

from __future__ import annotations

from itertools import pairwise

import pytest

from ragx.algo.chunking.base import ChunkOptions, EstimatedSizer
from ragx.algo.chunking.chunker import chunk_rows
from ragx.documents.formats.base import Block, BlockKind, Extracted, Link, Place
from ragx.documents.layout import Layout, lay_out
from ragx.types import Locator, Span

WORDS = "The quick brown fox jumps over the lazy dog. "


def block(text: str, place: Place, kind: BlockKind = "text", level: int = 0) -> Block:
    return Block(kind, text, place, level)


def page(number: int) -> Place:
    return Place("page", number)


def cell(number: int) -> Place:
    return Place("cell", number)


def cut(layout: Layout, size: int = 100) -> list[Span]:
    return chunk_rows(
        layout.text,
        layout.rows,
        borders=layout.borders,
        firm=layout.firm,
        sizer=EstimatedSizer(layout.text),
        options=ChunkOptions(size_tokens=size),
    )


def test_blocks_stand_apart_and_items_of_a_list_together() -> None:
    blocks = (
        block("Title", page(1), "heading", 1),
        block("- one", page(1), "list"),
        block("- two", page(1), "list"),
        block("- three", page(2), "list"),
    )
    layout = lay_out(Extracted(blocks))
    assert layout.text == "Title\n\n- one\n- two\n\n- three"
    assert layout.borders == {5}
    assert [row.row for row in layout.rows] == [0, 2, 3, 5]


def test_nothing_gives_nothing() -> None:
    layout = lay_out(Extracted(()))
    assert (layout.text, cut(layout)) == ("", [])


def test_a_chunk_lies_on_one_page_and_keeps_the_heading_of_the_page_before() -> None:
    blocks = (
        block("Setup", page(1), "heading", 1),
        block(WORDS * 3, page(1)),
        block(WORDS * 3, page(2)),
        block("Short.", page(3)),
    )
    layout = lay_out(Extracted(tuple(blocks)))
    spans = cut(layout, size=1000)
    assert [layout.locator(span.start, span.end).number for span in spans] == [1, 2, 3]
    assert all(span.breadcrumb == ("Setup",) for span in spans)


def test_every_character_is_in_a_chunk_that_says_where_it_stands() -> None:
    blocks = []
    for number in range(1, 40):
        if number % 4 == 0:
            blocks.append(block(f"Part {number}", page(number), "heading", 1 + number % 3))
        blocks += [block(f"p{number} {WORDS * (number % 7)}".strip(), page(number))] * 2
    layout = lay_out(Extracted(tuple(blocks)))
    spans = cut(layout, size=40)
    covered = set()
    for span in spans:
        covered.update(range(span.start, span.end))
        locator = layout.locator(span.start, span.end)
        assert locator.number == locator.end
        starts = [at for at in range(len(layout.text)) if layout.text.startswith("p", at)]
        said = {layout.text[at:].split()[0] for at in starts if span.start <= at < span.end}
        assert {name for name in said if name[1:].isdigit()} <= {f"p{locator.number}"}
    missed = [at for at, sign in enumerate(layout.text) if not sign.isspace() and at not in covered]
    assert missed == []


def test_small_cells_share_a_chunk_and_large_ones_do_not() -> None:
    blocks = (
        block("Load", cell(1), "heading", 2),
        block("x = 1", cell(2), "code"),
        block(WORDS * 20, cell(3)),
        block(WORDS * 20, cell(4)),
    )
    layout = lay_out(Extracted(blocks))
    assert not layout.firm
    places = [layout.locator(span.start, span.end) for span in cut(layout, size=450)]
    assert [(place.number, place.end) for place in places] == [(1, 3), (4, 4)]


def test_sections_of_a_document_without_pages_stand_apart_unless_tiny() -> None:
    """Their heading is the only place that there is to name."""
    place = Place("heading")
    blocks = [block("Guide", place, "heading", 1)]
    for name in ("Install", "Use", "Remove"):
        blocks += [block(name, place, "heading", 2), block(WORDS * 5, place)]
    blocks += [block("Thanks", place, "heading", 2), block("To all.", place)]
    spans = cut(lay_out(Extracted(tuple(blocks))), size=450)
    assert [span.breadcrumb for span in spans[:2]] == [("Guide", "Install"), ("Guide", "Use")]
    assert len(spans) == 3


def test_a_heading_alone_joins_the_cell_below_it() -> None:
    blocks = (
        block("Results", cell(1), "heading", 2),
        block(WORDS * 12, cell(2)),
        block("Outlook", cell(3), "heading", 2),
        block(WORDS * 12, cell(4)),
    )
    layout = lay_out(Extracted(blocks))
    spans = cut(layout, size=200)
    places = [layout.locator(span.start, span.end) for span in spans]
    assert [(place.number, place.end) for place in places] == [(1, 2), (3, 4)]
    assert [span.breadcrumb for span in spans] == [("Results",), ("Outlook",)]


def rows(first: int, n: int, header: bool = False) -> Block:
    lines = [f"row {number} | {WORDS}" for number in range(first, first + n)]
    if header:
        lines[0] = "name | what it says"
    place = Place("sheet", first, "Costs", by_line=True)
    return Block("table", "\n".join(lines), place, header_rows=int(header))


def test_rows_of_a_sheet_are_counted_line_by_line_over_gaps() -> None:
    layout = lay_out(Extracted((rows(1, 30, header=True), rows(40, 30))))
    assert layout.borders == frozenset()
    seen = []
    for span in cut(layout, size=100):
        locator = layout.locator(span.start, span.end)
        first, *_, last = layout.text[span.start : span.end].split("\n")
        assert first.split(" | ")[0] in (f"row {locator.number}", "name")
        assert last.split(" | ")[0] == f"row {locator.end}"
        assert locator.name == "Costs"
        seen.append((locator.number, locator.end))
    assert (seen[0][0], seen[-1][1]) == (1, 69)
    assert all(end < start for (_, end), (start, _) in pairwise(seen))


def test_rows_after_a_gap_stand_under_the_header_and_another_sheet_does_not() -> None:
    other = Block("table", "a | b\nc | d", Place("sheet", 1, "Notes", by_line=True))
    layout = lay_out(Extracted((rows(1, 3, header=True), rows(9, 2), other)))
    headers = [header for _, _, header in layout.tables]
    assert headers == ["name | what it says"] * 2
    start, end, _ = layout.tables[1]
    assert layout.text[start:end].startswith("row 9 |")
    assert "Notes" not in {layout.locator(start, end).name}


def test_links_move_with_their_block_and_those_that_lead_out_are_left() -> None:
    text = "See the plan and the web."
    links = (Link(8, 12, "plan.pdf#page=3"), Link(21, 24, "https://example.org/"))
    layout = lay_out(Extracted((block("Top", page(1)), Block("text", text, page(1), links=links))))
    (reference,) = layout.links
    assert layout.text[reference.start : reference.end] == "plan"
    assert (reference.target, reference.fragment, reference.form) == ("plan.pdf", "page=3", "path")


@pytest.mark.parametrize("start", [0, 5])
def test_a_passage_over_two_chapters_says_both(start: int) -> None:
    first, second = Place("chapter", 1, "One"), Place("chapter", 2, "Two")
    layout = lay_out(Extracted((block("aaaaaaaa", first), block("bbbb", second))))
    assert layout.locator(start, len(layout.text)) == Locator("chapter", 1, 2, "One")

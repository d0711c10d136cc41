"""Tables of a page: which of them are data, and their rows as lines."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field

from ragx.documents.formats.base import Block, Link, Place
from ragx.documents.formats.markup.main import why_left
from ragx.documents.formats.markup.run import Run
from ragx.documents.formats.markup.tree import HEADINGS, Element, elements, walk

__all__ = ["image_text", "is_layout", "is_line", "table_blocks"]

# A long table is cut into blocks of about this many characters, each with the header rows.
_BLOCK_CHARS = 20_000
_MAX_SPAN = 50
_LONGEST_REPEATED = 80
_BREAKS = frozenset("p div br li dt dd tr ul ol dl pre blockquote section figure".split())
# Tables that stand for something else: Doxygen's signatures, line numbers beside code.
_LAYOUT_CLASSES = frozenset(
    "memname memberdecls mlabels highlighttable rouge-table linenotable codehilitetable"
    " docutils-field-list field-list footnote citation option-list simplelist hlist".split()
)
_SEPARATOR = " | "


@dataclass(slots=True)
class _Row:
    cells: list[tuple[str, tuple[Link, ...]]] = field(default_factory=list)
    is_header: bool = True


def is_layout(table: Element) -> bool:
    """Whether a table only places things on a page: its cells are read as text."""
    if table.get("role") in ("presentation", "none"):
        return True
    if not _LAYOUT_CLASSES.isdisjoint(table.get("class").lower().split()):
        return True
    # Asked of the sums: a walk for each of many nested tables would take for ever.
    inner = [child.has for child in table.children if isinstance(child, Element)]
    if any("table" in has or has & HEADINGS.keys() for has in inner):
        return True
    rows = list(elements(table, "tr"))
    cells = [c for r in rows for c in r.children if isinstance(c, Element)]
    if len(cells) <= len(rows):
        return True
    return len(rows) == 1 and next(elements(table, "pre", "p", "ul"), None) is not None


def table_blocks(table: Element, main: Element, place: Place) -> Iterator[Block]:
    """A data table as blocks, its header rows first in each."""
    rows = [row for row in _rows(table, main) if any(text for text, _ in row.cells)]
    _drop_empty(rows)
    n_header = 0
    while n_header < len(rows) and rows[n_header].is_header:
        n_header += 1
    if n_header == len(rows):  # nothing but names: they are the data
        n_header = 0
    header, lines = rows[:n_header], rows[n_header:]
    while lines:
        size = taken = 0
        while taken < len(lines) and (not taken or size < _BLOCK_CHARS):
            size += sum(len(text) for text, _ in lines[taken].cells)
            taken += 1
        yield _block([*header, *lines[:taken]], n_header, place)
        lines = lines[taken:]


def _drop_empty(rows: list[_Row]) -> None:
    """Columns that no row uses, which space others out, and empty cells at a row's end."""
    used = sorted({n for row in rows for n, (text, _) in enumerate(row.cells) if text})
    for row in rows:
        row.cells = [row.cells[n] for n in used if n < len(row.cells)]
        while row.cells and not row.cells[-1][0]:
            row.cells.pop()


def _block(rows: list[_Row], n_header: int, place: Place) -> Block:
    parts: list[str] = []
    links: list[Link] = []
    at = 0
    for number, row in enumerate(rows):
        for column, (text, cell_links) in enumerate(row.cells):
            lead = _SEPARATOR if column else ("\n" if number else "")
            at += len(lead)
            links += (Link(at + k.start, at + k.end, k.target) for k in cell_links)
            parts += (lead, text)
            at += len(text)
    text = "".join(parts)
    # An empty first cell leaves a blank at the start.
    moved = len(text) - len(text.lstrip())
    return Block(
        "table",
        text[moved:],
        place,
        header_rows=n_header,
        links=tuple(Link(k.start - moved, k.end - moved, k.target) for k in links),
    )


def _rows(table: Element, main: Element) -> Iterator[_Row]:
    """Rows with spans filled in: a short text spanning rows is repeated, a column stays empty."""
    row: _Row | None = None
    in_head = False
    spans: dict[int, tuple[int, str]] = {}
    skipping: Element | None = None
    for kind, value in walk(table):
        if isinstance(value, str):
            continue
        if skipping is not None:
            skipping = None if kind == "out" and value is skipping else skipping
        elif value.tag == "thead":
            in_head = kind == "in"
        elif value.tag == "tr":
            if kind == "in":
                row = _Row()
            elif row is not None:
                _fill(row, spans)
                yield row
                row = None
        elif value.tag in ("td", "th") and kind == "in" and row is not None:
            skipping = value
            if not why_left(value, main):
                _add_cell(row, value, spans, main, in_head)
        elif value.tag == "caption" and kind == "in":
            skipping = value


def _add_cell(
    row: _Row, cell: Element, spans: dict[int, tuple[int, str]], main: Element, in_head: bool
) -> None:
    _fill(row, spans)
    text, links = _cell_text(cell, main)
    column = len(row.cells)
    row.cells.append((text, links))
    row.is_header = row.is_header and (in_head or cell.tag == "th" or not text)
    across, down = _span(cell, "colspan"), _span(cell, "rowspan")
    row.cells += [("", ())] * (across - 1)
    if down > 1:
        spans[column] = (down - 1, text if len(text) <= _LONGEST_REPEATED else "")


def _fill(row: _Row, spans: dict[int, tuple[int, str]]) -> None:
    """Put what spans down from rows above into the next cells."""
    while (column := len(row.cells)) in spans:
        left, text = spans[column]
        row.cells.append((text, ()))
        if left > 1:
            spans[column] = (left - 1, text)
        else:
            del spans[column]


def _span(cell: Element, name: str) -> int:
    value = cell.get(name).strip()
    return min(int(value), _MAX_SPAN) or 1 if value.isdecimal() and len(value) < 6 else 1


def _cell_text(cell: Element, main: Element) -> tuple[str, tuple[Link, ...]]:
    run = Run(cell=True)
    skipping: Element | None = None
    for kind, value in walk(cell):
        if isinstance(value, str):
            if skipping is None:
                run.add(value)
        elif skipping is not None:
            skipping = None if kind == "out" and value is skipping else skipping
        elif kind == "in" and value.children and why_left(value, main):
            skipping = value
        else:
            _cell_element(run, kind, value)
    return run.finish()


def _cell_element(run: Run, kind: str, element: Element) -> None:
    if element.tag in _BREAKS or (element.tag == "span" and is_line(element)):
        run.break_line()
    elif element.tag == "a" and "href" in element.attrs:
        if kind == "in":
            run.open_link(element.get("href"))
        else:
            run.close_link()
    elif element.tag == "img" and kind == "in":
        run.add(image_text(element))


def is_line(span: Element) -> bool:
    """MediaWiki's cppreference sets alternatives as lines by style alone."""
    return span.parent is not None and "t-lines" in span.parent.get("class").split()


def image_text(image: Element) -> str:
    """What an image shows, where its page says that in so many words."""
    alt = unicodedata.normalize("NFC", " ".join(image.get("alt").split()))
    if "math" in image.get("class").split():
        return alt
    return f" [image: {alt}] " if len(alt.split()) >= 3 else ""

"""Blocks from the rows of a PDF's page: paragraphs, list items, code, contents lists, headings."""

from __future__ import annotations

import re
import statistics
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import pairwise

from ragx.documents.formats.base import Block, BlockKind, Link, Place
from ragx.documents.formats.pdf.definitions import begins_definition, continues_definition
from ragx.documents.formats.pdf.headings import Heading
from ragx.documents.formats.pdf.pages import LEADER
from ragx.documents.formats.pdf.rows import Row
from ragx.documents.formats.pdf.tables import read_table
from ragx.documents.formats.pdf.text import BULLETS, join_links, seam

__all__ = ["Page", "blocks_of"]

_BULLET = re.compile(rf"[{BULLETS}–—*-]\s+(?=\S)")
_NUMBER = re.compile(r"(?:\(?\d{1,3}[.)]|\(?[a-zA-Z]\)|\([ivx]{1,5}\))\s+(?=\S)")
_CONTENTS = re.compile(rf"{LEADER}\W*(?:\d+|[ivxlc]+|[A-Z]-?\d+)$")
_PAGE_CELL = re.compile(r"\d{1,4}|[ivxlc]{1,6}")
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff]")
_SENTENCE_ENDS = (".", ":", "!", "?", "。", "؟")
# What stands in front of the outcome of code in manuals.
_RESULTS = ("⇒", "⊣", "→", "=>", "-|")
# In units of the line pitch or of the font size.
_NEW_PARAGRAPH = 1.3
_INDENT = 0.6
_CODE_GAP = 3.2
# What is looked at once must not grow with a page, or hostile pages take the square of their size.
_SEAM = 60
_MAX_ROWS = 400


@dataclass(frozen=True, slots=True)
class Page:
    """The rows of a page and what is known of them.

    `code_is_mono` is false in documents that are monospaced throughout, where that says nothing.
    """

    rows: Sequence[Row]
    headings: Sequence[Heading]
    place: Place
    code_is_mono: bool


def blocks_of(page: Page, words: AbstractSet[str]) -> Iterator[Block]:
    """The blocks of a page, in order; `words` are those of the whole document, lower case."""
    pitch = _pitch(page.rows)
    starts = {heading.start: heading for heading in page.headings}
    ordered = sorted(starts)
    index, prose_from = 0, 0
    rows = page.rows
    while index < len(rows):
        heading = starts.get(index)
        if heading:
            yield from _prose(page, prose_from, index, pitch, words)
            text, links = _joined(rows[heading.start : heading.end], words)
            if heading.title:
                text, links = heading.title, ()
            if text:
                yield Block("heading", text, page.place, level=heading.level, links=links)
            index = prose_from = heading.end
            continue
        at = bisect_right(ordered, index)
        limit = min(index + _MAX_ROWS, ordered[at] if at < len(ordered) else len(rows))
        end, block = _special(page, index, limit, pitch, prose_from, words)
        if block:
            yield from _prose(page, prose_from, index, pitch, words)
            yield block
            prose_from = end
        index = end
    yield from _prose(page, prose_from, len(rows), pitch, words)


def _special(
    page: Page, start: int, limit: int, pitch: float, prose_from: int, words: AbstractSet[str]
) -> tuple[int, Block | None]:
    """The contents list, code or table that begins at a row and where it ends, or one row on."""
    rows = page.rows
    if end := _contents_end(rows, start, limit):
        lines = [_contents_line(row.text) for row in rows[start:end]]
        return end, Block("list", "\n".join(lines), page.place)
    if page.code_is_mono and (end := _code_end(rows, start, limit)):
        above = rows[start - 1] if start > prose_from else None
        if end - start > 1 or not above or not _runs_on(above, rows[start], pitch):
            text = _code_text(rows[start:end])
            return end, Block("code", text, page.place) if text else None
        return end, None
    table = read_table(rows[start:limit], pitch, words)
    if table:
        kind: BlockKind = "text" if table.columns else "table"
        return start + table.n_rows, Block(
            kind, table.text, page.place, header_rows=table.header_rows
        )
    return start + 1, None


def _pitch(rows: Sequence[Row]) -> float:
    """The usual distance of lines, in units of the font size."""
    steps: Counter[float] = Counter()
    for above, row in pairwise(rows):
        step = above.base - row.base
        if above.size == row.size and 0.8 * row.size < step < 2.5 * row.size:
            steps[round(step / row.size, 1)] += 1
    return min(steps, key=lambda step: (-steps[step], step)) if steps else 1.2


def _contents_end(rows: Sequence[Row], start: int, limit: int) -> int:
    """Where a list of titles with leaders to page numbers ends; 0 if none begins."""
    if not _CONTENTS.search(rows[start].text):
        return 0
    end = last = start + 1
    while end < limit:
        row = rows[end]
        if _CONTENTS.search(row.text):
            last = end + 1
        elif end - last >= 2 or not (
            len(row.cells) > 1 and _PAGE_CELL.fullmatch(row.cells[-1].text)
        ):
            break
        end += 1
    return last


def _contents_line(text: str) -> str:
    return text if text[:1].isdigit() else f"- {text}"


def _code_end(rows: Sequence[Row], start: int, limit: int) -> int:
    if not rows[start].mono or rows[start].turned:
        return 0
    end, left = start + 1, rows[start].left
    while end < limit and not rows[end].turned:
        row = rows[end]
        if not 0 < rows[end - 1].base - row.base <= _CODE_GAP * row.size:
            break
        if not row.mono and not _is_amid(rows, end, limit, left):
            break
        left = min(left, row.left)
        end += 1
    return end


def _is_amid(rows: Sequence[Row], at: int, limit: int, left: float) -> bool:
    """Whether a row in another font, such as what a call prints, belongs to the code around it."""
    row, above = rows[at], rows[at - 1]
    if row.left < left - 1 or not above.mono or above.base - row.base > 1.6 * row.size:
        return False
    if row.text.startswith(_RESULTS):
        return True
    below = rows[at + 1] if at + 1 < limit else None
    return below is not None and below.mono and 0 < row.base - below.base <= 1.6 * row.size


def _code_text(rows: Sequence[Row]) -> str:
    """Code with its indentation and blank lines, as far as places on the page tell."""
    mono = [row for row in rows if row.code]
    width = statistics.median((row.right - row.left) / len(row.code) for row in mono)
    left = min(row.left for row in rows)
    steps = [a.base - b.base for a, b in pairwise(rows)]
    usual = min(steps, default=0.0)
    lines: list[str] = []
    for row, step in zip(rows, [usual, *steps], strict=True):
        if usual and step > 1.6 * usual:
            lines.append("")
        indent = min(120, round((row.left - left) / width)) if width > 0 else 0
        lines.append(" " * indent + (row.code or row.text))
    return "\n".join(lines).strip()


def _runs_on(above: Row, row: Row, pitch: float) -> bool:
    """Whether a row stands right below another, flush with it."""
    return (
        0 < above.base - row.base <= _NEW_PARAGRAPH * pitch * row.size
        and abs(above.left - row.left) <= _INDENT * row.size
    )


def _prose(
    page: Page, start: int, end: int, pitch: float, words: AbstractSet[str]
) -> Iterator[Block]:
    paragraph: list[Row] = []
    forced: set[int] = set()
    edges: dict[int, float] = {}
    for index in range(start, end):
        row = page.rows[index]
        below = page.rows[index + 1] if index + 1 < end else None
        near = page.rows[max(0, index - _MAX_ROWS) : index + _MAX_ROWS]
        if paragraph and begins_definition(
            paragraph, row, below, _NEW_PARAGRAPH * pitch * row.size
        ):
            forced.add(len(paragraph))
        elif len(paragraph) >= _MAX_ROWS or (paragraph and _begins(paragraph, row, below, pitch)):
            yield from _paragraph(paragraph, forced, page.place, words)
            paragraph, forced = [], set()
        elif paragraph and _had_room(near, paragraph[-1], row, edges):
            if paragraph[-1].text.endswith(_SENTENCE_ENDS) and len(paragraph[-1].text) > 30:
                yield from _paragraph(paragraph, forced, page.place, words)
                paragraph, forced = [], set()
            else:
                forced.add(len(paragraph))
        paragraph.append(row)
    yield from _paragraph(paragraph, forced, page.place, words)


def _had_room(rows: Sequence[Row], above: Row, row: Row, edges: dict[int, float]) -> bool:
    """Whether a row's first word would have found room in the row above it.

    Then the break between them was meant. `edges` keeps how far columns reach to the right.
    """
    if above.turned or above.base <= row.base or above.text.endswith("-"):
        return False
    if _RIGHT_TO_LEFT.search(row.text):
        return False
    key = round(above.left)
    if key not in edges:
        near = 3 * above.size
        edges[key] = max(r.right for r in rows if abs(r.left - above.left) <= near)
    first = row.text.partition(" ")[0]
    width = (row.right - row.left) * len(first) / len(row.text)
    centred = abs(row.left + row.right - above.left - above.right) < row.size
    is_centred = centred and abs(row.left - above.left) > _INDENT * row.size
    return not is_centred and above.right + width + 1.5 * row.size < edges[key]


def _paragraph(
    rows: Sequence[Row], forced: AbstractSet[int], place: Place, words: AbstractSet[str]
) -> Iterator[Block]:
    text, links = _joined(rows, words, forced)
    bullet = _BULLET.match(text)
    if bullet:
        shift = len(bullet[0]) - 2
        text = "- " + text[bullet.end() :]
        links = tuple(
            Link(link.start - shift, link.end - shift, link.target)
            for link in links
            if link.start >= bullet.end()
        )
    if any(c.isalnum() for c in text):
        is_item = bool(bullet or _NUMBER.match(text))
        yield Block("list" if is_item else "text", text, place, links=links)


def _joined(
    rows: Sequence[Row], words: AbstractSet[str], forced: AbstractSet[int] = frozenset()
) -> tuple[str, tuple[Link, ...]]:
    """Rows as one text; those whose number is in `forced` begin a line."""
    text, links = "", list[Link]()
    for number, row in enumerate(rows):
        if number in forced:
            text += "\n"
        elif text:
            cut, between = seam(text[-_SEAM:], row.text, words)
            text = (text[:-cut] if cut else text) + between
        links += [Link(len(text) + a.start, len(text) + a.end, a.target) for a in row.links]
        text += row.text
    # A hyphen that went may have been the last character of a link.
    links = [Link(a.start, min(a.end, len(text)), a.target) for a in links]
    return text, join_links(links) if links else ()


def _begins(paragraph: Sequence[Row], row: Row, below: Row | None, pitch: float) -> bool:
    """Whether a row begins a paragraph or list item of its own."""
    above = paragraph[-1]
    if row.turned or above.turned:
        return row.turned != above.turned
    if continues_definition(paragraph, row, _NEW_PARAGRAPH * pitch * row.size):
        return False
    if _changes_font(above, row):
        return True
    step = above.base - row.base
    if step <= 0:
        # The next column: a sentence may run on.
        return above.text.endswith(_SENTENCE_ENDS) or not row.text[:1].islower()
    if step > _NEW_PARAGRAPH * pitch * row.size or _BULLET.match(row.text):
        return True
    if _NUMBER.match(row.text) and (
        _NUMBER.match(paragraph[0].text) or above.text.endswith((*_SENTENCE_ENDS, ";"))
    ):
        return True
    if _is_item(paragraph[0]):
        return _begin(row) <= _begin(paragraph[0]) + 0.3 * row.size
    return _shape_breaks(paragraph, row, below)


def _changes_font(above: Row, row: Row) -> bool:
    """Whether two rows differ in size, or one is bold, so that they are hardly one paragraph.

    A few small characters are a footnote mark or an exponent. A long row may be bold by chance.
    """
    if row.size < above.size and len(row.text) < 6:
        return False
    bold_differs = row.bold != above.bold and min(len(row.text), len(above.text)) < 60
    return abs(row.size - above.size) > 0.12 * row.size or bold_differs


def _is_item(row: Row) -> bool:
    return bool(_BULLET.match(row.text) or _NUMBER.match(row.text))


def _begin(row: Row) -> float:
    """Where a row begins, so that a greater number is further in."""
    return -row.right if _RIGHT_TO_LEFT.match(row.text) else row.left


def _shape_breaks(paragraph: Sequence[Row], row: Row, below: Row | None) -> bool:
    """Whether indents and short lines say that a row begins a paragraph."""
    above = paragraph[-1]
    near = [*paragraph[-3:], row, *([below] if below else [])]
    left, right = min(r.left for r in near), max(r.right for r in near)
    ends_short = above.right < right - 0.25 * (right - left)
    indent = _begin(row) - _begin(above)
    slack = _INDENT * row.size
    if abs(row.left + row.right - above.left - above.right) < row.size and abs(indent) > slack:
        return False  # centred lines
    if indent > slack:
        hangs = below is not None and abs(_begin(below) - _begin(row)) <= slack
        runs_on = hangs or not above.text.endswith(_SENTENCE_ENDS)
        return not (len(paragraph) == 1 and runs_on and not ends_short)
    if indent < -slack:
        return len(paragraph) > 1 or ends_short
    return ends_short and above.text.endswith(_SENTENCE_ENDS)

"""Which rows of a PDF are headings: what its outline names, or what is set clearly larger."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from ragx.documents.formats.pdf.bold import hanging, is_bold_throughout, numbered
from ragx.documents.formats.pdf.pages import LEADER
from ragx.documents.formats.pdf.rows import Row

__all__ = ["Heading", "OutlineEntry", "body_size", "find_headings"]

_MAX_LEVEL = 6
_MAX_ROWS = 4
_MAX_ON_PAGE = 200
_MAX_CHARS = 160
_CLEARLY_LARGER = 1.15
_NUMBERING = re.compile(
    r"(?i)^(?:(?:chapter|appendix|part|section|kapitel|anhang|teil|chapitre|annexe|partie"
    r"|cap[ií]tulo|ap[eé]ndice)\s+)?(?:\d+|[A-Z]|[IVXLC]+)(?:\.\d+)*[.:)]?\s+(?=\S)"
)
_LABEL_ROW = re.compile(
    r"(?i)(chapter|appendix|part|kapitel|anhang|teil|chapitre|annexe|partie|cap[ií]tulo)"
    r"\s+(\d+|[A-Z]|[IVXLC]+)"
)
_CAPTION = re.compile(
    r"(?i)(fig(ure|ura|\.)?|tab(le|elle|leau|la|\.)|abb(ildung|\.)|listing|example|plate)"
    r"\s*\d+([.-]\d+)*\b[.:]?$"
)
_PAGE_CELL = re.compile(r"\d{1,4}|[ivxlc]{1,6}")
_NOT_WORD = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True)
class OutlineEntry:
    """A bookmark: depth from 1, title, index of the page that it leads to."""

    level: int
    title: str
    page: int


@dataclass(frozen=True, slots=True)
class Heading:
    """Rows `start` to before `end` of a page are one heading, in the words of `title` if given."""

    start: int
    end: int
    level: int
    title: str = ""


def body_size(pages: Iterable[Sequence[Row]]) -> float:
    """The font size in which most of a document is set; 0 if there is no text."""
    sizes: Counter[float] = Counter()
    for rows in pages:
        for row in rows:
            sizes[row.size] += len(row.text)
    return min(sizes, key=lambda size: (-sizes[size], size)) if sizes else 0.0


def find_headings(
    pages: Sequence[Sequence[Row]], outline: Sequence[OutlineEntry], body: float
) -> list[list[Heading]]:
    """The headings of each page, in order and apart from each other.

    The outline knows best. Of what it does not name, rows are headings that are set clearly larger
    than the body, or bold with a section number in front; where nothing else is, those that hang
    out of the text in bold.
    """
    found = _named(pages, outline)
    levels = _size_levels(pages, found, body)
    bold_says = not is_bold_throughout(pages, body)
    for number, rows in enumerate(pages):
        taken = {i for heading in found[number] for i in range(heading.start, heading.end)}
        found[number] += _large(rows, taken, levels, body)
        if bold_says:
            taken = {i for heading in found[number] for i in range(heading.start, heading.end)}
            for index, level in numbered(rows, taken, body):
                if not _is_contents(rows[index]):
                    found[number].append(Heading(index, index + 1, level))
    if bold_says and not any(found):
        for number, heads in enumerate(hanging(pages, body)):
            found[number] += [Heading(index, index + 1, level) for index, level in heads]
    for headings in found:
        headings.sort(key=lambda heading: heading.start)
    return [_with_labels(rows, headings) for rows, headings in zip(pages, found, strict=True)]


def _key(text: str) -> str:
    return _NOT_WORD.sub("", unicodedata.normalize("NFKC", text).casefold())


def _keys(text: str) -> set[str]:
    """What two spellings of one title have in common, with or without its number."""
    return {key for key in (_key(text), _key(_NUMBERING.sub("", text, count=1))) if key}


def _named(pages: Sequence[Sequence[Row]], outline: Sequence[OutlineEntry]) -> list[list[Heading]]:
    wanted: defaultdict[int, list[OutlineEntry]] = defaultdict(list)
    for entry in outline:
        if len(wanted[entry.page]) < _MAX_ON_PAGE:
            wanted[entry.page].append(entry)
    found: list[list[Heading]] = [[] for _ in pages]
    for number, entries in wanted.items():
        if not 0 <= number < len(pages):
            continue
        rows = pages[number]
        taken: set[int] = set()
        keys = [_key(row.text) for row in rows]
        for entry in entries:
            spans = _matches(rows, keys, _keys(entry.title), taken)
            if spans:
                start, end = max(spans, key=lambda span: (rows[span[0]].size, -span[0]))
                taken.update(range(start, end))
                title = _spelt(" ".join(row.text for row in rows[start:end]), entry.title)
                found[number].append(Heading(start, end, min(entry.level, _MAX_LEVEL), title))
    return found


def _spelt(text: str, title: str) -> str:
    """The outline's spelling of a heading, where TeX drew underscores as rules; "" elsewhere."""
    if "_" not in title or "_" in text:
        return ""
    number = _NUMBERING.match(text)
    return title if _NUMBERING.match(title) or not number else number[0] + title


def _matches(
    rows: Sequence[Row], keys: Sequence[str], title: set[str], taken: set[int]
) -> list[tuple[int, int]]:
    longest = max(map(len, title), default=0)
    spans = []
    for start in range(len(rows)):
        if start in taken or not keys[start]:
            continue
        text = ""
        for end in range(start + 1, min(start + _MAX_ROWS, len(rows)) + 1):
            if end - 1 in taken or rows[end - 1].size != rows[start].size:
                break
            text = f"{text[:-1] if text.endswith('-') else text + ' '}{rows[end - 1].text}".strip()
            if len(keys[start]) > longest + 24 or len(text) > 2 * _MAX_CHARS:
                break
            if title & _keys(text):
                spans.append((start, end))
                break
    return spans


def _size_levels(
    pages: Sequence[Sequence[Row]], named: Sequence[Sequence[Heading]], body: float
) -> dict[float, int]:
    """Levels by font size, of sizes above the body's: as the outline has them, else by rank."""
    known: defaultdict[float, list[int]] = defaultdict(list)
    for rows, headings in zip(pages, named, strict=True):
        for heading in headings:
            known[rows[heading.start].size].append(heading.level)
    sizes: set[float] = set()
    for rows in pages:
        sizes.update(row.size for row in rows if _may_head(row, body))
    if not known:
        ranked = sorted(sizes, reverse=True)
        return {size: min(rank, _MAX_LEVEL) for rank, size in enumerate(ranked, 1)}
    levels = {}
    for size in sorted(sizes):
        larger = [s for s in known if s >= size]
        if size in known:
            levels[size] = int(median(known[size]))
        elif larger:
            levels[size] = min(int(median(known[min(larger)])) + 1, _MAX_LEVEL)
        else:
            levels[size] = 1
    return levels


def _may_head(row: Row, body: float) -> bool:
    text = row.text
    return (
        not row.turned
        and row.size >= _CLEARLY_LARGER * body
        and 2 <= len(text) <= _MAX_CHARS
        and sum(c.isalpha() for c in text) >= max(2, len(text) // 3)
        and not _is_contents(row)
        and not _CAPTION.match(text)
    )


def _is_contents(row: Row) -> bool:
    """Whether a row is a title with the number of its page."""
    return LEADER in row.text or (
        len(row.cells) > 1 and bool(_PAGE_CELL.fullmatch(row.cells[-1].text))
    )


def _large(
    rows: Sequence[Row], taken: set[int], levels: dict[float, int], body: float
) -> list[Heading]:
    upright = [row for row in rows if not row.turned]
    n_large = sum(_may_head(row, body) for row in upright)
    found: list[Heading] = []
    start = 0
    while start < len(rows):
        row, end = rows[start], start + 1
        if start in taken or not _may_head(row, body):
            start += 1
            continue
        while (
            end < len(rows)
            and end not in taken
            and _may_head(rows[end], body)
            and rows[end].size == row.size
            and 0 < rows[end - 1].base - rows[end].base <= 1.6 * row.size
        ):
            end += 1
        text = " ".join(r.text for r in rows[start:end])
        # Larger print that runs on for lines is a lead or a slide, not a heading.
        if end - start <= _MAX_ROWS and len(text) <= _MAX_CHARS and not _is_sentence(text):
            found.append(Heading(start, end, levels.get(row.size, _MAX_LEVEL)))
        start = end
    # A page all of large print, as a title page, has a body of its own: only the largest counts.
    if 2 * n_large > len(upright):
        top = max(row.size for row in upright)
        found = [heading for heading in found if rows[heading.start].size == top]
        if not found or top < _CLEARLY_LARGER * _second(upright, top):
            return []
        return [Heading(found[0].start, found[0].end, 1)]
    return found


def _second(rows: Sequence[Row], top: float) -> float:
    return max((row.size for row in rows if row.size < top), default=top)


def _is_sentence(text: str) -> bool:
    return text.endswith((".", ",", ";")) and len(text.split()) > 6


def _with_labels(rows: Sequence[Row], headings: Sequence[Heading]) -> list[Heading]:
    """Headings, with a row "Chapter 3" that stands above its title made a part of it."""
    done: list[Heading] = []
    for heading in headings:
        if (
            done
            and done[-1].end == heading.start
            and done[-1].end - done[-1].start == 1
            and _LABEL_ROW.fullmatch(rows[done[-1].start].text)
        ):
            start = done[-1].start
            title = f"{rows[start].text} {heading.title}" if heading.title else ""
            done[-1] = Heading(start, heading.end, heading.level, title)
        else:
            done.append(heading)
    return done

"""The few lines of a text that say most about a query, for answers that must be short."""

from __future__ import annotations

import re

from ragx.algo.chunking.graphemes import boundary_at_or_before
from ragx.algo.lexical import query_terms

__all__ = ["excerpt"]

_BREAK = re.compile(r"\r\n|\r|\n")
_WORD = re.compile(r"\w+")
_EDGE = re.compile(r"^\W+|\W+$")
_CUT = "..."
# Words of one stem share a beginning and differ in no more than an ending: route, routes, routing.
_STEM_CHARS = 4
_ENDING_CHARS = 3
_MAX_TERMS = 64  # of a query as long as a file
# Writing without spaces makes words as long as sentences: they are looked at piece by piece.
_PIECE_CHARS = 24
_PIECE_STEP = 16
_LEAST_CHARS = 24  # what is left of the allowance must be worth another line


def excerpt(
    text: str, query: str, *, known: str = "", max_lines: int = 3, max_chars: int = 240
) -> list[str]:
    """Choose the lines of a text that hold most of a query's words, each word counted once.

    The first line chosen has the most words, a further one must add a word. A line that is too
    long is cut to the stretch that holds most words, marked with `...` on the sides cut. Words
    that differ in their endings alone are the same.

    Args:
        known: what the reader sees anyway, such as the heading: a line that says no more than
            this is left out, and its words count only between lines that are otherwise equal.
        max_lines, max_chars: limits of the excerpt, marks and line ends apart; at least 1.
    Returns:
        Lines in the order of the text, without indentation; at least one unless the text is
        blank. Without any word of the query: the first lines.
    """
    rows = [row for row in (line.strip() for line in _BREAK.split(text)) if row]
    said = {_bare(part) for part in [known, *known.split(" > ")]}
    rows = [row for row in rows if _bare(row) and _bare(row) not in said] or rows[:1]
    terms = _Terms(query)
    found = [terms.within(row) for row in rows]
    seen = terms.within(known)
    chosen: dict[int, str] = {}
    left = max_chars
    while len(chosen) < min(max_lines, len(rows)) and (not chosen or left >= _LEAST_CHARS):
        at = max(
            (i for i in range(len(rows)) if i not in chosen),
            key=lambda i: (len(found[i] - seen), len(found[i]), -i),
        )
        if chosen and any(found) and not found[at] - seen:
            break
        wanted = found[at] - seen or found[at]
        chosen[at] = _stretch(rows[at], terms, wanted, max(left, 1))
        seen |= terms.within(chosen[at])
        left -= len(chosen[at])
    return [chosen[at] for at in sorted(chosen)]


class _Terms:
    """A query's words by their beginnings."""

    def __init__(self, query: str) -> None:
        self._by_start: dict[str, list[str]] = {}
        self._met: dict[str, frozenset[str]] = {}
        for term in query_terms(query)[:_MAX_TERMS]:
            self._by_start.setdefault(term[:_STEM_CHARS], []).append(term)

    def within(self, text: str) -> frozenset[str]:
        """The query's words that a text has."""
        return frozenset().union(*(self._like(word) for word in query_terms(text)))

    def _like(self, word: str) -> frozenset[str]:
        known = self._met.get(word)
        if known is None:
            near = self._by_start.get(word[:_STEM_CHARS], ())
            known = self._met[word] = frozenset(term for term in near if _same_stem(word, term))
        return known


def _same_stem(one: str, other: str) -> bool:
    if one == other:
        return True
    pairs = enumerate(zip(one, other, strict=False))
    shared = next((i for i, (a, b) in pairs if a != b), min(len(one), len(other)))
    return shared >= _STEM_CHARS and max(len(one), len(other)) - shared <= _ENDING_CHARS


def _bare(row: str) -> str:
    return _EDGE.sub("", row).casefold()


def _stretch(row: str, terms: _Terms, wanted: frozenset[str], max_chars: int) -> str:
    """The row, or the stretch of it that holds most terms, begun a little before the first."""
    if len(row) <= max_chars:
        return row
    places = [(start, end, hit) for start, end, hit in _places(row, terms, wanted) if hit]
    start = 0
    best: tuple[int, int] = (0, 0)
    for first, (begin, _, _) in enumerate(places):
        inside: set[str] = set()
        last = begin
        for _, end, hit in places[first:]:
            if end - begin > max_chars:
                break
            inside |= hit
            last = end
        if (len(inside), -begin) > best or not best[0]:
            best = (len(inside), -begin)
            # What is left over goes to both sides: words before say what is spoken of.
            start = max(0, begin - (max_chars - (last - begin)) // 2)
    start = min(start, len(row) - max_chars)
    if start > 0:
        space = row.find(" ", start, start + max_chars // 4)
        start = space + 1 if space >= 0 else boundary_at_or_before(row, start, 0)
    end = min(len(row), start + max_chars)
    if end < len(row):
        space = row.rfind(" ", end - max_chars // 4, end)
        end = space if space > start else boundary_at_or_before(row, end, start)
    return _CUT * (start > 0) + row[start:end].strip() + _CUT * (end < len(row))


def _places(
    row: str, terms: _Terms, wanted: frozenset[str]
) -> list[tuple[int, int, frozenset[str]]]:
    places = []
    for match in _WORD.finditer(row):
        begin, end = match.span()
        for at in range(begin, end, _PIECE_STEP if end - begin > _PIECE_CHARS else end - begin):
            stop = min(end, at + _PIECE_CHARS)
            places.append((at, stop, terms.within(row[at:stop]) & wanted))
    return places

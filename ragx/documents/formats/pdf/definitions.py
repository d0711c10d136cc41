"""Lists of terms and what they mean, as in man pages: a term stays with its definition."""

from __future__ import annotations

from collections.abc import Sequence

from ragx.documents.formats.pdf.rows import Row

__all__ = ["begins_definition", "continues_definition"]

_MAX_TERM = 80
# A term may have other spellings below it.
_MAX_TERMS = 3
# In units of the font size: how far in a definition stands. First lines of paragraphs are further
# out, and what is further in is set apart.
_LEAST_INDENT = 1.8
_MOST_INDENT = 10.0
_ALIGNED = 0.3
_ENDS = ("-", ".", ":", ";", ",", "!", "?", "。", "、")


def begins_definition(terms: Sequence[Row], row: Row, below: Row | None, step: float) -> bool:
    """Whether `row` begins, right below `terms`, to say what they mean.

    `step` is how far lines of one paragraph stand apart at most. The row after, if there is one,
    tells definitions from a paragraph with its first line further in.
    """
    above, size = terms[-1], row.size
    if len(terms) > _MAX_TERMS or not _is_right_below(above, row, step):
        return False
    if continues_definition(terms, row, step):
        return False
    if not all(_is_term(term, terms[0]) for term in terms):
        return False
    if not _LEAST_INDENT * size <= row.left - above.left <= _MOST_INDENT * size:
        return False
    if abs(above.left + above.right - row.left - row.right) < size:
        return False  # centred lines
    if below is None or not 0 < row.base - below.base <= step:
        return True
    return _stands_below(below, row, above)


def continues_definition(paragraph: Sequence[Row], row: Row, step: float) -> bool:
    """Whether `row` goes on with what the last cell of the row above it began to say."""
    above = paragraph[-1]
    if len(paragraph) > 1 or len(above.cells) != 2 or len(row.cells) > 1:
        return False
    term, meaning = above.cells
    return (
        _is_right_below(above, row, step)
        and abs(row.left - meaning.left) <= _ALIGNED * row.size
        and term.right < row.left
    )


def _is_right_below(above: Row, row: Row, step: float) -> bool:
    return (
        not row.turned
        and 0 < above.base - row.base <= step
        and abs(above.size - row.size) <= 0.05 * row.size
    )


def _is_term(term: Row, first: Row) -> bool:
    return (
        len(term.text) <= _MAX_TERM
        and not term.text.endswith(_ENDS)
        and abs(term.left - first.left) <= _ALIGNED * term.size
    )


def _stands_below(below: Row, row: Row, term: Row) -> bool:
    """Whether a row goes on with a definition of `row`, or is the next term after it."""
    slack = _ALIGNED * row.size
    if abs(below.left - row.left) <= slack:
        return term.right < max(row.right, below.right)
    # A paragraph that goes on reaches as far to the left; then its first line is full.
    ends_short = row.right < below.right - 2 * row.size or below.right < row.right
    return abs(below.left - term.left) <= slack and ends_short and row.text.endswith(_ENDS)

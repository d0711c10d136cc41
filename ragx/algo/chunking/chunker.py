"""The one way in: a text and its language to spans."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence, Set
from types import MappingProxyType

from ragx.algo.chunking.base import ChunkOptions, OffsetSizer, Sizer
from ragx.algo.chunking.code import code_units
from ragx.algo.chunking.headings import asciidoc_blocks, org_blocks, org_title, rst_blocks
from ragx.algo.chunking.languages import kind_of
from ragx.algo.chunking.lines import Source
from ragx.algo.chunking.markdown import (
    front_matter_end,
    front_matter_title,
    markdown_blocks,
)
from ragx.algo.chunking.outline import Block, outline_units
from ragx.algo.chunking.packing import Unit
from ragx.algo.chunking.prose import data_units, prose_units
from ragx.types import Span

__all__ = ["body_start", "chunk_rows", "chunk_text", "document_title"]

_BLOCKS: Mapping[str, Callable[[Sequence[str]], list[Block]]] = MappingProxyType(
    {
        "markdown": markdown_blocks,
        "rst": rst_blocks,
        "asciidoc": asciidoc_blocks,
        "org": org_blocks,
    }
)
# A title stands at the top; a document's first heading further down is not its title.
_TITLE_CHARS = 1 << 16


def chunk_text(text: str, *, language: str, sizer: Sizer, options: ChunkOptions) -> list[Span]:
    """Cut a text into chunks of at most `options.size_tokens` along its structure.

    Args:
        text: decoded, without a byte order mark.
        language: as `language_of` names it; unknown names count as running text.
        sizer: measures ranges of `text` in tokens.
    Returns:
        Spans sorted by start; [] for a text of white space only. Only a single grapheme may be
        over `size_tokens`.
    """
    if not text or text.isspace():
        return []
    source = Source(text, sizer, options)
    symbols: list[tuple[int, str]] = []
    if language in _BLOCKS:
        units = outline_units(source, _BLOCKS[language](source.lines))
    elif kind_of(language) == "docs" and language != "html":  # its source, where it is no page
        units = prose_units(source)
    elif kind_of(language) in ("data", "docs"):
        units = data_units(source)
    else:
        units, symbols = code_units(source, language)
    return _spans(source, units, symbols)


def chunk_rows(
    text: str,
    rows: Sequence[Block],
    *,
    borders: Set[int],
    firm: bool,
    sizer: Sizer,
    options: ChunkOptions,
) -> list[Span]:
    """Cut a text whose structure is known into chunks of at most `options.size_tokens`.

    Args:
        rows: its blocks in order, the first at row 0.
        borders: rows where something new begins: pages, slides, cells.
        firm: whether no chunk may reach over a border; else tiny ones are joined over it, and
            nothing but these under different headings.
    Returns:
        As `chunk_text` does.
    """
    if not text or text.isspace():
        return []
    source = Source(text, sizer, options)
    return _spans(source, outline_units(source, rows, borders=borders, firm=firm), ())


def _spans(source: Source, units: Sequence[Unit], symbols: Sequence[tuple[int, str]]) -> list[Span]:
    offsets = [source.starts[row] + source.indent(row) for row, _ in symbols]
    spans = []
    for unit in units:
        first = bisect_left(offsets, unit.start)
        after = bisect_left(offsets, unit.end, first)
        defined = dict.fromkeys(name for _, name in symbols[first:after])
        breadcrumb = tuple(name for name in unit.path if name)
        spans.append(Span(unit.start, unit.end, breadcrumb, tuple(defined)))
    return spans


def document_title(text: str, language: str) -> str:
    """Return the title of a marked-up document; "" when there is none, or for other languages.

    Front matter's `title` (Org's `#+TITLE:`) comes before the first heading. Only the first
    64 Ki characters are looked at.
    """
    if language not in _BLOCKS or not text:
        return ""
    top = text[:_TITLE_CHARS]
    source = Source(top, OffsetSizer(()), ChunkOptions())
    stated = {"markdown": front_matter_title, "org": org_title}.get(language)
    title = stated(source.lines) if stated is not None else ""
    if title:
        return title
    headings = (b.title for b in _BLOCKS[language](source.lines) if b.kind == "heading" and b.title)
    return next(headings, "")


def body_start(text: str, language: str) -> int:
    """Return where the text begins after its front matter; 0 without any."""
    if language != "markdown" or not text.startswith(("---", "+++")):
        return 0
    top = text[:_TITLE_CHARS]
    source = Source(top, OffsetSizer(()), ChunkOptions())
    row = front_matter_end(source.lines)
    return source.starts[row] if 0 < row < source.n_rows else 0

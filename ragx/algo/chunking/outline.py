"""From a document's headings and blocks to chunks: the same for every markup language."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence, Set
from dataclasses import dataclass
from typing import Literal, NamedTuple

from ragx.algo.chunking.graphemes import boundary_at_or_before
from ragx.algo.chunking.lines import Source
from ragx.algo.chunking.packing import (
    SMALL_SHARE,
    Piece,
    Unit,
    merge_small,
    pack,
    split_rows,
    split_text,
)

__all__ = ["Block", "BlockKind", "outline_units", "plain_heading"]

_MAX_HEADING_CHARS = 200
_TINY_SHARE = 14  # about 30 tokens

BlockKind = Literal["heading", "text", "rows", "front"]


class Block(NamedTuple):
    """A block starts at `row` and lasts until the next one.

    Kinds: `heading` (with its level from 1 and its text); `text` is split at sentences when too
    long; `rows` (fence, table) is whole if it fits, else split at rows; `front` is front matter.
    """

    row: int
    kind: BlockKind
    level: int = 0
    title: str = ""


@dataclass(frozen=True, slots=True)
class _Section:
    """Blocks `[first, after)` under one heading; `path` ends with its own heading."""

    first: int
    after: int
    path: tuple[str, ...]

    @property
    def depth(self) -> int:
        return len(self.path)


def outline_units(
    source: Source,
    blocks: Sequence[Block],
    *,
    borders: Set[int] = frozenset(),
    firm: bool = True,
) -> list[Unit]:
    """Turn the blocks of a document into chunks that follow its sections.

    A section that fits is one chunk; a longer one is cut between blocks. A heading with nothing
    under it but deeper headings joins the first of those. Small chunks join a neighbour under the
    same parent. A chunk's path is the heading path its sections have in common.

    Args:
        blocks: in order, the first at row 0; together they hold every row.
        borders: rows of blocks that begin something new: no section reaches over them.
        firm: whether small chunks are kept from joining over a border, too; else what is more than
            tiny stands alone everywhere.
    """
    units: list[Unit] = []
    groups: list[list[Unit]] = []
    for section in _with_content(blocks, _sections(blocks, borders), borders if firm else ()):
        if firm and blocks[section.first].row in borders:
            groups.append(units)
            units = []
        extent = source.extent(blocks[section.first].row, _end_row(source, blocks, section.after))
        if extent is None:
            continue
        front = blocks[section.first].kind == "front"
        if source.fits(*extent):
            pieces = [Piece(*extent, alone=front)]
        else:
            pieces = _split_section(source, blocks[section.first : section.after], section, blocks)
        units.extend(
            Unit(
                piece.start,
                piece.end,
                section.path,
                section.depth,
                alone=front or piece.alone,
            )
            for piece in pieces
        )
    groups.append(units)
    # Where a cell or a heading is all that tells a place, only what says nothing alone is joined.
    share = SMALL_SHARE if firm else _TINY_SHARE
    return [unit for group in groups for unit in merge_small(source, group, share=share)]


def _end_row(source: Source, blocks: Sequence[Block], index: int) -> int:
    return blocks[index].row if index < len(blocks) else source.n_rows


def _sections(blocks: Sequence[Block], borders: Container[int]) -> Iterator[_Section]:
    open_headings: list[tuple[int, str]] = []
    first = 0
    for index, block in enumerate(blocks):
        starts_section = block.kind == "heading" or (
            index > 0 and (blocks[index - 1].kind == "front" or block.row in borders)
        )
        if starts_section and index > first:
            yield _Section(first, index, tuple(title for _, title in open_headings))
            first = index
        if block.kind == "heading":
            while open_headings and open_headings[-1][0] >= block.level:
                open_headings.pop()
            open_headings.append((block.level, block.title))
    if first < len(blocks):
        yield _Section(first, len(blocks), tuple(title for _, title in open_headings))


def _with_content(
    blocks: Sequence[Block], sections: Iterator[_Section], borders: Container[int]
) -> Iterator[_Section]:
    """Join each bare heading to the deeper section that follows it, or to what a border parts
    from it."""
    bare: _Section | None = None
    for section in sections:
        if bare is not None and blocks[section.first].row in borders:
            yield bare
        elif bare is not None and _goes_on(blocks, bare, section):
            section = _Section(bare.first, section.after, section.path)
        elif bare is not None:
            yield bare
        bare = None
        if all(block.kind == "heading" for block in blocks[section.first : section.after]):
            bare = section
        else:
            yield section
    if bare is not None:
        yield bare


def _goes_on(blocks: Sequence[Block], bare: _Section, section: _Section) -> bool:
    """Whether a section stands under a heading that ends just before it."""
    if section.depth > bare.depth:
        return True
    return section.path == bare.path and blocks[section.first].kind != "heading"


def _split_section(
    source: Source, own: Sequence[Block], section: _Section, blocks: Sequence[Block]
) -> list[Piece]:
    """Cut a section between its blocks; headings stay with the block that follows them."""
    pieces: list[Piece] = []
    start = own[0].row
    for offset, block in enumerate(own):
        if block.kind == "heading" and offset + 1 < len(own):
            continue
        after = _end_row(source, blocks, section.first + offset + 1)
        extent = source.extent(start, after)
        if extent is not None:
            if source.fits(*extent):
                pieces.append(Piece(*extent))
            else:
                pieces.extend(_split_block(source, block, start, after, extent))
        start = after
    return pack(source, _introduced(source, pieces))


def _introduced(source: Source, pieces: Sequence[Piece]) -> list[Piece]:
    """Join a piece that ends in a colon to what it introduces, where both fit."""
    joined: list[Piece] = []
    for piece in pieces:
        last = joined[-1] if joined else None
        if (
            last is not None
            and not (last.alone or piece.alone)
            and source.view[last.start : last.end].rstrip().endswith(":")
            and source.fits(last.start, piece.end)
        ):
            joined[-1] = Piece(last.start, piece.end)
        else:
            joined.append(piece)
    return joined


def _split_block(
    source: Source, block: Block, start: int, after: int, extent: tuple[int, int]
) -> list[Piece]:
    """Split one block, with the headings from row `start` on above it, that is too long."""
    if block.kind not in {"rows", "front"}:
        return split_text(source, *extent)
    alone = source.extent(block.row, after)
    headings = source.extent(start, block.row)
    if alone is not None and headings is not None and source.fits(*alone):
        return [*split_text(source, *headings), Piece(*alone)]
    return split_rows(source, start, after)


_MARKUP = re.compile(r"[\\`*_~\[\]<>{}]")
_CODE_SPAN = re.compile(r"(`+)(?!`)(.+?)(?<!`)\1(?!`)")
_IMAGE_OR_LINK = re.compile(r"!?\[([^\[\]]*)\](?:\([^()]*(?:\([^()]*\)[^()]*)*\)|\[[^\[\]]*\])")
_ATTRIBUTES = re.compile(r" ?\{[#.:][^{}]*\}$")
_TAG = re.compile(r"</?[A-Za-z][^<>]*>|<!--.*?-->")
_EMPHASIS = re.compile(r"(?<![\w*_~\\])([*_~]{1,3})(?=\S)(.+?)(?<=\S)\1(?![\w*_~])")
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")


def plain_heading(text: str) -> str:
    """Return a heading's text without inline markup, white space folded, at most 200 characters."""
    # Several patterns below may look at each character more than once: bound what they see.
    text = " ".join(text[: _MAX_HEADING_CHARS * 5].split())
    if _MARKUP.search(text):
        text = _without_inline_markup(text)
    if len(text) > _MAX_HEADING_CHARS:
        text = text[: boundary_at_or_before(text, _MAX_HEADING_CHARS, 0)].rstrip()
    return text


def _without_inline_markup(text: str) -> str:
    text = _ATTRIBUTES.sub("", text)
    text = _IMAGE_OR_LINK.sub(r"\1", _IMAGE_OR_LINK.sub(r"\1", text))
    parts = []
    at = 0
    for code in _CODE_SPAN.finditer(text):
        parts += [_without_emphasis(text[at : code.start()]), code[2].strip()]
        at = code.end()
    return " ".join("".join([*parts, _without_emphasis(text[at:])]).split())


def _without_emphasis(text: str) -> str:
    text = _TAG.sub("", text)
    text = _EMPHASIS.sub(r"\2", _EMPHASIS.sub(r"\2", text))
    return _ESCAPE.sub(r"\1", text)

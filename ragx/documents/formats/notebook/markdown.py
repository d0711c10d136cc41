"""The Markdown of a notebook's cell as blocks."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Iterator

from ragx.algo.chunking.languages import named_language
from ragx.algo.chunking.markdown import markdown_blocks
from ragx.algo.references.links import markdown_links
from ragx.documents.formats.base import Block, BlockKind, Link, Place
from ragx.documents.formats.tidy import bullet_line, clean, strip_markup, table_row

__all__ = ["cell_blocks"]

_DATA_URI = re.compile(r"data:[\w.+-]{1,60}/[\w.+-]{1,60}(?:;[\w=-]{1,60})*,[\w+/=%-]*")
_PICTURE = re.compile(r"(?m)^[ \t]*<img\b")
_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]")
_FENCE = re.compile(r"[ \t]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?(`{3,}|~{3,})[ \t]*\{?\.?([\w+#-]*)")
_CELL_BORDER = re.compile(r"(?<!\\)\|")
_RULE = re.compile(r"[ \t]*(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})")
_DEFINITION = re.compile(r"^ {0,3}\[[^\]\n]{1,200}\]:[ \t]*\S[^\n]*$", re.M)


def cell_blocks(
    source: str, place: Place, left_out: Counter[str], *, headings: bool = True
) -> Iterator[Block]:
    """Cut Markdown into blocks. Images inside it are counted in `left_out`.

    Args:
        headings: whether headings open sections; else they are text.
    """
    text, n_images = _DATA_URI.subn("", clean(source))
    left_out["images"] += n_images + len(_PICTURE.findall(text))
    lines = [line.rstrip() for line in text.split("\n")]
    definitions = "\n".join(_DEFINITION.findall(text))
    found = markdown_blocks(lines)
    ends = [block.row for block in found[1:]] + [len(lines)]
    items: list[str] = []
    in_list = False
    for part, end in zip(found, ends, strict=True):
        rows = lines[part.row : end]
        item = _ITEM.match(rows[0]) or (items and rows[0][:1] in " \t")
        if part.kind == "text" and item and not _RULE.fullmatch(rows[0]):
            items += [bullet_line(row) for row in rows if row]
            in_list = True
            continue
        yield from _written("list", items, place, definitions)
        items = []
        if part.kind == "heading":
            if part.title and headings:
                yield Block("heading", part.title, place, level=part.level)
            elif part.title:
                yield Block("text", part.title, place)
        elif part.kind == "rows":
            yield from _rows(rows, place, definitions, in_list=in_list)
        elif not _RULE.fullmatch(rows[0]):
            yield from _written("text", rows, place, definitions)
        in_list = in_list and part.kind == "rows"
    yield from _written("list", items, place, definitions)


def _written(
    kind: BlockKind, rows: list[str], place: Place, definitions: str, header_rows: int = 0
) -> Iterator[Block]:
    """Rows as they are written, with their links."""
    text = "\n".join(rows).strip()
    if not text:
        return
    # A reference link's definition may stand anywhere in the cell.
    links = [
        Link(found.start, found.end, f"{found.target}#{found.fragment}" if found.fragment else
             found.target)
        for found in markdown_links(f"{text}\n\n{definitions}")
        if found.kind == "link" and found.end <= len(text)
    ]  # fmt: skip
    links.sort(key=lambda link: (link.start, link.end))
    yield Block(kind, text, place, header_rows=header_rows, links=tuple(links))


def _rows(rows: list[str], place: Place, definitions: str, *, in_list: bool) -> Iterator[Block]:
    """Fenced or indented code, a table, or HTML."""
    # Four columns in, a fence is the text of indented code, unless a list item is around it.
    fence = _FENCE.match(rows[0]) if in_list or not rows[0].startswith("    ") else None
    if fence:
        body = rows[1:]
        while body and not body[-1]:
            body.pop()
        if body and body[-1].strip().startswith(fence[1]) and not body[-1].strip(" \t`~"):
            body.pop()
        language = named_language(fence[2]) if fence[2] else None
        yield from _code(body, place, language or "")
    elif len(rows) > 1 and "|" in rows[0] and _is_delimiter(rows[1]):
        table = [_table_row(row) for row in (rows[0], *rows[2:]) if row]
        yield from _written("table", table, place, definitions, header_rows=1)
    elif rows[0].lstrip().startswith("<"):
        text = strip_markup("\n".join(rows))
        if text:
            yield Block("text", text, place)
    else:
        yield from _code(rows, place, "")


def _is_delimiter(row: str) -> bool:
    return "-" in row and not row.strip(" \t:|-")


def _code(rows: list[str], place: Place, language: str) -> Iterator[Block]:
    text = textwrap.dedent("\n".join(rows)).strip()
    if text:
        yield Block("code", text, place, language=language)


def _table_row(row: str) -> str:
    row = row.strip().removeprefix("|")
    if row.endswith("|") and not row.endswith("\\|"):
        row = row[:-1]
    return table_row([cell.replace("\\|", "|") for cell in _CELL_BORDER.split(row)])

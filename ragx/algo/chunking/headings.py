"""Blocks and headings of reStructuredText, AsciiDoc and Org."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ragx.algo.chunking.outline import Block, BlockKind, plain_heading

__all__ = ["asciidoc_blocks", "org_blocks", "org_title", "rst_blocks"]

_ADORNMENT = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_ROLE = re.compile(r":[\w.+-]+:`([^`<]*?)(?:\s*<[^`>]*>)?`")
_RST_ROWS = re.compile(r"\.\. |\+[-=]|={2,}[ \t]+=")
_LIST_ITEM = re.compile(r"(?:[-*+•]|#\.|\(?(?:\d{1,4}|[A-Za-z])[.)])[ \t]")
_ADOC_HEADING = re.compile(r"(={1,6}|#{1,6})[ \t]+(\S.*)$")
_ADOC_FENCE = re.compile(r"(?:-{4,}|\.{4,}|={4,}|\*{4,}|\+{4,}|/{4,}|_{4,}|`{3,}|--|[|,:!]={3,})$")
_ADOC_OLD_LEVEL = {"=": 1, "-": 2, "~": 3, "^": 4, "+": 5}
_ORG_HEADING = re.compile(r"(\*+)[ \t]+(.*)$")
_ORG_KEYWORD = re.compile(r"(?:TODO|DONE|NEXT|WAITING|CANCELLED|COMMENT)[ \t]+|\[#[A-Z]\][ \t]*")
_ORG_TAGS = re.compile(r"(?<=[ \t]):[\w@#%:]+:$")
_ORG_BEGIN = re.compile(r"[ \t]*#\+begin_(\w+)", re.I)
_ORG_TITLE = re.compile(r"#\+title:[ \t]*(.*)$", re.I)


class _Blocks:
    """Blocks in the making; the first row always starts one."""

    def __init__(self) -> None:
        self.found = [Block(0, "text")]

    def add(self, row: int, kind: BlockKind, level: int = 0, title: str = "") -> None:
        if self.found[-1].row == row:
            self.found.pop()
        self.found.append(Block(row, kind, level, title))


def rst_blocks(lines: Sequence[str]) -> list[Block]:
    """Find the blocks of reStructuredText; a style's first use decides the level it stands for.

    A directive, comment or literal block with all that is indented under it is one block.
    """
    blocks = _Blocks()
    styles: list[tuple[str, bool]] = []
    row = 0
    n_rows = len(lines)
    free = True  # the row above is blank, or ends something that a title may follow
    while row < n_rows:
        line = lines[row]
        if not line or line.isspace():
            free = True
            row += 1
            continue
        if line[0] in " \t":
            if blocks.found[-1].kind == "heading":
                blocks.add(row, "text")
            free = False
            row += 1
            continue
        length = _rst_title_rows(lines, row, free)
        if length:
            style = (lines[row + length - 1][0], length == 3)
            if style not in styles:
                styles.append(style)
            title = _ROLE.sub(r"\1", lines[row + length - 2])
            blocks.add(row, "heading", styles.index(style) + 1, plain_heading(title))
            row += length
            free = True
            continue
        marked = line.startswith("..")
        if free or marked or _LIST_ITEM.match(line):
            blocks.add(row, "rows" if _RST_ROWS.match(line) else "text")
        free = marked
        row += 1
    return blocks.found


def _rst_title_rows(lines: Sequence[str], row: int, free: bool) -> int:
    """Return how many rows the section title at `row` takes: 2, 3 with an overline, 0 for none."""
    if not free:
        return 0
    text = lines[row].rstrip()
    if _is_adornment(text):
        if row + 2 < len(lines) and lines[row + 2].rstrip() == text:
            title = lines[row + 1].strip()
            if title and not _is_adornment(title) and len(title) <= len(text):
                return 3
        return 0
    if row + 1 < len(lines):
        under = lines[row + 1].rstrip()
        if _is_adornment(under) and (len(under) >= len(text) or len(under) >= 4):
            return 2
    return 0


def _is_adornment(text: str) -> bool:
    return len(text) >= 2 and text[0] in _ADORNMENT and not text.strip(text[0])


def asciidoc_blocks(lines: Sequence[str]) -> list[Block]:
    """Find the blocks of AsciiDoc; delimited blocks are whole, and nothing in them is a heading."""
    blocks = _Blocks()
    free = True
    row = 0
    while row < len(lines):
        line = lines[row].rstrip()
        if not line:
            free = True
            row += 1
            continue
        heading = _ADOC_HEADING.match(line)
        if heading:
            blocks.add(row, "heading", len(heading[1]), plain_heading(heading[2]))
            row += 1
            free = True
        elif free and _is_old_adoc_title(lines, row):
            level = _ADOC_OLD_LEVEL[lines[row + 1][0]]
            blocks.add(row, "heading", level, plain_heading(line))
            row += 2
            free = True
        elif _ADOC_FENCE.match(line):
            if not _is_attribute_row(lines, row - 1):
                blocks.add(row, "rows")
            row = _fence_end(lines, row)
            free = True
        else:
            if free or _LIST_ITEM.match(line):
                attributes = _is_attribute_row(lines, row)
                blocks.add(row, "rows" if attributes else "text")
            free = False
            row += 1
    return blocks.found


def _is_attribute_row(lines: Sequence[str], row: int) -> bool:
    """Tell whether a row such as `[source,python]` or `.Title` belongs to the block below it."""
    if row < 0:
        return False
    line = lines[row].rstrip()
    return (line[:1] == "[" and line[-1:] == "]") or (line[:1] == "." and line[1:2].isalnum())


def _is_old_adoc_title(lines: Sequence[str], row: int) -> bool:
    title = lines[row].rstrip()
    under = lines[row + 1].rstrip() if row + 1 < len(lines) else ""
    return (
        len(under) >= 3
        and under[0] in _ADOC_OLD_LEVEL
        and not under.strip(under[0])
        and abs(len(under) - len(title)) <= 2
        and title[0] not in ".[|"
        and any(map(str.isalnum, title))
    )


def _fence_end(lines: Sequence[str], row: int) -> int:
    fence = lines[row].rstrip()
    row += 1
    while row < len(lines):
        row += 1
        if lines[row - 1].rstrip() == fence:
            break
    return row


def org_blocks(lines: Sequence[str]) -> list[Block]:
    """Find the blocks of an Org text; `#+begin_…` blocks and tables are whole."""
    blocks = _Blocks()
    free = True
    in_table = False
    row = 0
    while row < len(lines):
        line = lines[row]
        heading = _ORG_HEADING.match(line) if line[:1] == "*" else None
        begin = _ORG_BEGIN.match(line)
        if heading:
            blocks.add(row, "heading", len(heading[1]), _org_heading(heading[2]))
            row += 1
            free, in_table = True, False
            continue
        text = line.strip()
        if not text:
            free, in_table = True, False
        elif begin:
            blocks.add(row, "rows")
            row = _org_block_end(lines, row, begin[1].lower())
            free, in_table = True, False
            continue
        elif text[0] == "|":
            if not in_table:
                blocks.add(row, "rows")
            free, in_table = False, True
        else:
            if free or in_table or _LIST_ITEM.match(text):
                blocks.add(row, "text")
            free, in_table = False, False
        row += 1
    return blocks.found


def _org_heading(text: str) -> str:
    text = text.rstrip()
    keyword = _ORG_KEYWORD.match(text)
    while keyword:
        text = text[keyword.end() :]
        keyword = _ORG_KEYWORD.match(text)
    return plain_heading(_ORG_TAGS.sub("", text))


def _org_block_end(lines: Sequence[str], row: int, name: str) -> int:
    """Return the row after the block's end; a heading ends an unclosed block."""
    closing = "#+end_" + name
    row += 1
    while row < len(lines) and not _ORG_HEADING.match(lines[row]):
        row += 1
        if lines[row - 1].strip().lower().startswith(closing):
            break
    return row


def org_title(lines: Sequence[str]) -> str:
    """Return the text of the first `#+TITLE:` row; "" when there is none."""
    for line in lines:
        found = _ORG_TITLE.match(line)
        if found:
            return found[1].strip()
    return ""

"""Markdown's blocks as CommonMark and GitHub read them, as far as cutting needs it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ragx.algo.chunking.outline import Block, BlockKind, plain_heading

__all__ = ["front_matter_end", "front_matter_title", "markdown_blocks"]

# First characters that may mean something other than running text. Indented rows too.
_SPECIAL = frozenset(" \t#>`~-*+_=<|:[0123456789")
_ATX = re.compile(r"(#{1,6})(?:[ \t]+(.*))?$")
_FENCE = re.compile(r"(`{3,})[^`]*$|(~{3,})")
_BULLET = re.compile(r"[-+*](?=[ \t]|$)")
_NUMBER = re.compile(r"(\d{1,9})[.)](?=[ \t]|$)")
_DELIMITER_ROW = re.compile(r"\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$")
_LINK_DEFINITION = re.compile(r"\[[^\]]+\]:")
_HTML_UNTIL = (
    (re.compile(r"<(?:script|pre|style|textarea)(?=[\s>]|$)", re.I), "</"),
    (re.compile(r"<!--"), "-->"),
    (re.compile(r"<\?"), "?>"),
    (re.compile(r"<!\[CDATA\["), "]]>"),
    (re.compile(r"<![A-Za-z]"), ">"),
)
_HTML_RAW_END = re.compile(r"</(?:script|pre|style|textarea)>", re.I)
_HTML_BLOCK = re.compile(
    r"</?(?:address|article|aside|base|basefont|blockquote|body|caption|center|col|colgroup|dd"
    r"|details|dialog|dir|div|dl|dt|fieldset|figcaption|figure|footer|form|frame|frameset|h[1-6]"
    r"|head|header|hr|html|iframe|legend|li|link|main|menu|menuitem|nav|noframes|ol|optgroup"
    r"|option|p|param|search|section|summary|table|tbody|td|tfoot|th|thead|title|tr|track|ul)"
    r"(?=[\s>]|/>|$)",
    re.I,
)
_HTML_ALONE = re.compile(r"</?[A-Za-z][\w-]*(?:\s[^<>]*)?/?>\s*$")
_YAML_ROW = re.compile(r"(?:[\w\"'$@][^:#]*:(?:\s|$)|[ \t]|#|-(?:\s|$)|[\]})])")
_YAML_KEY = re.compile(r"[\w\"'$@][^:#]*:(?:\s|$)")
_TOML_KEY = re.compile(r"[\w\"'.-]+(?:[ \t]*\.[ \t]*[\w\"'-]+)*[ \t]*=|\[")
_TITLE = re.compile(r"title[ \t]*[:=][ \t]*(.*)$", re.I)


def front_matter_end(lines: Sequence[str]) -> int:
    """Return the row after the front matter; 0 when the text does not start with any.

    It counts only if it closes and reads as YAML keys (`---`) or TOML keys (`+++`).
    """
    fence = lines[0].rstrip() if lines else ""
    if fence not in {"---", "+++"}:
        return 0
    closers = {"---", "..."} if fence == "---" else {"+++"}
    n_keys = 0
    for row in range(1, len(lines)):
        line = lines[row].rstrip()
        if line in closers:
            return row + 1 if n_keys else 0
        if not line:
            continue
        if fence == "---":
            if not _YAML_ROW.match(line):
                return 0
            n_keys += _YAML_KEY.match(line) is not None
        elif _TOML_KEY.match(line):
            n_keys += 1
        elif not n_keys and line[0] != "#":
            return 0
    return 0


def front_matter_title(lines: Sequence[str]) -> str:
    """Return the `title` of the front matter; "" when there is none."""
    for row in range(1, front_matter_end(lines)):
        found = _TITLE.match(lines[row])
        if found:
            title = found[1].strip()
            if len(title) > 1 and title[0] == title[-1] and title[0] in "\"'":
                title = title[1:-1]
            return " ".join(title.split())
    return ""


def markdown_blocks(lines: Sequence[str]) -> list[Block]:
    """Find the blocks of a Markdown text.

    Headings inside lists, quotes, fences and HTML open no section. Rows inside a quote are one
    block, each list item is one.
    """
    reader = _Reader(lines)
    reader.read()
    return reader.blocks


def _columns(line: str) -> int:
    """Return the width of a row's indentation, tabs to multiples of 4."""
    width = len(line) - len(line.lstrip(" \t"))
    return len(line[:width].expandtabs(4)) if "\t" in line[:width] else width


class _Reader:
    """One pass over the rows; the state is what is open before the current row."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self.blocks: list[Block] = []
        self.items: list[int] = []  # content columns of the list items that are open
        self.paragraph = -1  # first row of an open paragraph outside lists and quotes
        self.lazy = False  # a paragraph inside a list item or quote is open
        self.open_run = ""  # "table", "html", "quote", "code" or "links" block that goes on

    def read(self) -> None:
        row = front_matter_end(self.lines)
        if row:
            self.blocks.append(Block(0, "front"))
        n_rows = len(self.lines)
        lines = self.lines
        if row < n_rows:
            self.blocks.append(Block(row, "text"))
        while row < n_rows:
            line = lines[row]
            if not line or line.isspace():
                self.paragraph = -1
                self.lazy = False
                if self.open_run != "code":
                    self.open_run = ""
                row += 1
            elif line[0] in _SPECIAL:
                row = self.special(row, line)
            else:
                self.running_text(row, 0)
                row += 1

    def start(self, row: int, kind: BlockKind, level: int = 0, title: str = "") -> None:
        block = Block(row, kind, level, title)
        last = self.blocks[-1]
        if last.row == row:
            self.blocks[-1] = block
        else:
            self.blocks.append(block)
        self.paragraph = -1
        self.lazy = False
        self.open_run = ""

    def running_text(self, row: int, width: int) -> None:
        """Take a row that has no block syntax of its own: it goes on or starts a paragraph."""
        if self.lazy or self.paragraph >= 0 or self.open_run in {"table", "html"}:
            return
        self.close_items(width)
        self.start(row, "text")
        if self.items:
            self.lazy = True
        else:
            self.paragraph = row

    def close_items(self, width: int) -> None:
        while self.items and width < self.items[-1]:
            self.items.pop()

    def special(self, row: int, line: str) -> int:
        """Take a row that may be more than running text; return the next row to read."""
        if self.open_run == "html":
            return row + 1
        width = _columns(line)
        rest = line.lstrip(" \t").rstrip()
        open_items = [column for column in self.items if column <= width]
        base = open_items[-1] if open_items else 0
        if width - base >= 4:
            self.indented(row)
            return row + 1
        if self.open_run == "code":
            self.open_run = ""
        following = self.structure(row, rest, width, base, nested=bool(open_items))
        if following:
            return following
        self.running_text(row, width)
        return row + 1

    def indented(self, row: int) -> None:
        if self.paragraph < 0 and not self.lazy and self.open_run not in {"code", "table"}:
            self.start(row, "rows")
            self.open_run = "code"

    def structure(self, row: int, rest: str, width: int, base: int, nested: bool) -> int:
        """Take a row with block syntax and return the next row; 0 for running text."""
        first = rest[0]
        if first == "#":
            return self.atx(row, rest, width, nested)
        if first in "`~":
            return self.fence(row, rest, width, base)
        if first == ">":
            if self.open_run != "quote":
                self.close_items(width)
                self.start(row, "text")
                self.open_run = "quote"
            self.lazy = bool(rest.strip("> \t"))
            return row + 1
        if first == "<":
            return self.html(row, rest, width)
        if first in "|:-" and self.table(row, rest):
            return row + 1
        if first in "-=" and self.setext(row, rest, nested):
            return row + 1
        if first in "-*_" and _is_rule(rest):
            self.close_items(width)
            self.start(row, "text")
            return row + 1
        if first == "[":
            return self.link_definition(row, rest, width)
        return self.list_item(row, rest, width)

    def atx(self, row: int, rest: str, width: int, nested: bool) -> int:
        found = _ATX.match(rest)
        if found is None:
            return 0
        self.close_items(width)
        if nested:
            self.start(row, "text")
        else:
            title = plain_heading(_without_closing_marks(found[2] or ""))
            self.start(row, "heading", len(found[1]), title)
        return row + 1

    def setext(self, row: int, rest: str, nested: bool) -> bool:
        """Turn the open paragraph into a heading if this row underlines it."""
        if self.paragraph < 0 or nested or rest.strip(rest[0]):
            return False
        text = " ".join(line.strip() for line in self.lines[self.paragraph : row])
        self.blocks[-1] = Block(
            self.paragraph, "heading", 1 if rest[0] == "=" else 2, plain_heading(text)
        )
        self.paragraph = -1
        return True

    def fence(self, row: int, rest: str, width: int, base: int) -> int:
        found = _FENCE.match(rest)
        if found is None:
            return 0
        self.close_items(width)
        self.start(row, "rows")
        return self.fence_end(row + 1, found[1] or found[2], base)

    def fence_end(self, row: int, fence: str, base: int) -> int:
        """Return the row after a fence opened above `row`; it ends with its list item, too."""
        lines = self.lines
        while row < len(lines):
            line = lines[row]
            text = line.strip()
            if base and text and _columns(line) < base:
                return row
            row += 1
            closes = text.startswith(fence) and not text.strip(fence[0])
            if closes and _columns(line) - base < 4:
                return row
        return row

    def html(self, row: int, rest: str, width: int) -> int:
        for opening, closing in _HTML_UNTIL:
            found = opening.match(rest)
            if found:
                self.close_items(width)
                self.start(row, "rows")
                return self.html_end(row, closing, rest[found.end() :])
        interrupts = _HTML_BLOCK.match(rest)
        if not interrupts and (self.paragraph >= 0 or self.lazy or not _HTML_ALONE.match(rest)):
            return 0
        self.close_items(width)
        self.start(row, "rows")
        self.open_run = "html"
        return row + 1

    def html_end(self, row: int, closing: str, rest: str) -> int:
        """Return the row after the one that holds `closing`; `rest` is what follows the opening."""
        lines = self.lines
        while True:
            if _HTML_RAW_END.search(rest) if closing == "</" else closing in rest:
                return row + 1
            row += 1
            if row >= len(lines):
                return row
            rest = lines[row]

    def table(self, row: int, rest: str) -> bool:
        """Start a table at the row above if this row is its delimiter row."""
        if self.paragraph < 0 or "|" not in rest or not _DELIMITER_ROW.match(rest):
            return False
        if "|" not in self.lines[row - 1]:
            return False
        self.start(row - 1, "rows")
        self.open_run = "table"
        return True

    def link_definition(self, row: int, rest: str, width: int) -> int:
        if self.paragraph >= 0 or self.lazy or not _LINK_DEFINITION.match(rest):
            return 0
        if self.open_run != "links":
            self.close_items(width)
            self.start(row, "text")
            self.open_run = "links"
        return row + 1

    def list_item(self, row: int, rest: str, width: int) -> int:
        found = _BULLET.match(rest) or _NUMBER.match(rest)
        if found is None:
            return 0
        content = rest[found.end() :].lstrip(" \t")
        if self.paragraph >= 0 and (not content or (rest[0].isdigit() and found[1] != "1")):
            return 0
        gap = len(rest) - found.end() - len(content)
        column = width + found.end() + (gap if content and gap <= 4 else 1)
        self.close_items(width)
        self.start(row, "text")
        self.items.append(column)
        self.lazy = bool(content)
        inner = _FENCE.match(content)
        if inner:
            self.lazy = False
            self.blocks[-1] = Block(row, "rows")
            return self.fence_end(row + 1, inner[1] or inner[2], column)
        return row + 1


def _without_closing_marks(title: str) -> str:
    text = title.rstrip()
    bare = text.rstrip("#")
    return bare if not bare or bare[-1] in " \t" else text


def _is_rule(rest: str) -> bool:
    marks = rest.replace(" ", "").replace("\t", "")
    return len(marks) >= 3 and not marks.strip(marks[0])

"""The plain text of a mail as blocks: paragraphs, quotes, lists."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ragx.documents.formats.base import Block, Place
from ragx.documents.formats.tidy import bullet_line, clean

__all__ = ["flowed", "text_blocks"]

_QUOTE = re.compile(r"(>+) ?")
_BLANK = re.compile(r"[>\s]*")
_WORD = re.compile(r"\w")
_CHANGES = re.compile(r"@@ -\d[\d,]* \+\d|diff --?\w")
_ITEM = re.compile(r"[ \t]*(?:[-*•]|\d{1,3}[.)])[ \t]+\S")


def flowed(text: str, *, delete_space: bool) -> str:
    """Join the lines that a mail program has wrapped (RFC 3676)."""
    lines: list[str] = []
    open_depth = -1  # of quotes, of the line before if it goes on
    pieces: list[str] = []

    def end() -> None:
        if open_depth >= 0:
            prefix = ">" * open_depth + (" " if open_depth else "")
            lines.append(prefix + "".join(pieces))
            pieces.clear()

    for line in text.split("\n"):
        quote = _QUOTE.match(line)
        depth = len(quote[1]) if quote else 0
        rest = line[depth:].removeprefix(" ")
        goes_on = rest.endswith(" ") and rest != "-- "
        if depth != open_depth or rest == "-- ":
            end()
            open_depth = depth
        pieces.append(rest[:-1] if goes_on and delete_space else rest)
        if not goes_on:
            end()
            open_depth = -1
    end()
    return "\n".join(lines)


def text_blocks(text: str, place: Place) -> Iterator[Block]:
    """Cut plain text at its blank lines; lines stay as they are, quoted ones with their ">"."""
    lines: list[str] = []
    for line in (*clean(text).split("\n"), ""):
        line = line.rstrip()
        if not _BLANK.fullmatch(line):
            lines.append(line)
            continue
        if any(_WORD.search(row) for row in lines):  # else it is a rule of dashes
            yield _block(lines, place)
        lines = []


def _block(lines: list[str], place: Place) -> Block:
    if any(_CHANGES.match(line) for line in lines):
        return Block("code", "\n".join(lines).strip(), place)
    if _ITEM.match(lines[0]):
        return Block("list", "\n".join(bullet_line(line) for line in lines).strip(), place)
    return Block("text", "\n".join(lines).strip(), place)

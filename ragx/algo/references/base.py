"""What all readers of references share: the reference itself, masking, and destinations."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = [
    "Reference",
    "decode_percent",
    "fold",
    "is_external",
    "line_before",
    "link",
    "mask",
    "split_destination",
    "trimmed_end",
]

# Longer destinations are data, not paths; the bound also keeps every scan linear.
_MAX_DESTINATION = 1000

_ESCAPED_BYTES = re.compile(r"(?:%[0-9A-Fa-f]{2})++")
# No dot, unlike RFC 3986: `setup.md:12` is a file and a line, not a scheme.
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+-]*+:")
_NOT_NEWLINE = re.compile(r"[^\r\n]")


@dataclass(frozen=True, slots=True)
class Reference:
    """One place where a file names another on purpose.

    `kind` is `"link"` or `"import"`. `target` is as a resolver wants it: a decoded path, a page's
    name or a module; `""` means the file itself. `form` says how to read it: `"path"`, `"wiki"`,
    `"ref"` (reStructuredText label), `"include"` and `"system"` (C, `"x.h"` and `<x.h>`), or a
    language's module rule (`"python"`, `"js"`, `"go"`, `"rust"`, `"java"`, ...). `fragment` is a
    heading or anchor without `#`, or imported names joined by a space. `text[start:end]` is the
    evidence.
    """

    kind: str
    target: str
    form: str
    fragment: str
    start: int
    end: int


def decode_percent(text: str) -> str:
    """Decode `%20` and the like; sequences that are no UTF-8 stay as they are."""
    if "%" not in text:
        return text
    return _ESCAPED_BYTES.sub(_decoded, text)


def _decoded(found: re.Match[str]) -> str:
    try:
        return bytes.fromhex(found[0].replace("%", "")).decode("utf-8")
    except UnicodeDecodeError:
        return found[0]


def fold(text: str) -> str:
    """Reduce a path to what file systems that ignore case and composition would compare."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", text).casefold()


def is_external(destination: str) -> bool:
    """Tell whether a destination has a scheme (`https:`, `mailto:`) or a host (`//host`)."""
    return destination.startswith(("//", "\\\\")) or _SCHEME.match(destination) is not None


def split_destination(destination: str) -> tuple[str, str] | None:
    """Split a URL-like destination into decoded path and fragment.

    The query is dropped. Returns None for an external or an empty destination.
    """
    destination = destination.strip()
    if not destination or len(destination) > _MAX_DESTINATION:
        return None
    if "&" in destination:
        destination = html.unescape(destination)
    if is_external(destination):
        return None
    path, _, fragment = destination.partition("#")
    path = decode_percent(path.partition("?")[0])
    fragment = decode_percent(fragment)
    if fragment.startswith("^"):
        fragment = ""
    if "\0" in path or (not path and not fragment):
        return None
    return path, fragment


def link(destination: str, start: int, end: int) -> Reference | None:
    """Make a link of a URL-like destination; None when it leads out of the corpus."""
    parts = split_destination(destination)
    if parts is None:
        return None
    return Reference("link", parts[0], "path", parts[1], start, end)


def mask(text: str, ranges: Iterable[tuple[int, int]]) -> str:
    """Blank out ranges, given in order; line breaks and offsets stay."""
    pieces = []
    done = 0
    for start, end in ranges:
        if end <= done:
            continue
        start = max(start, done)
        pieces.append(text[done:start])
        hidden = text[start:end]
        if "\n" in hidden or "\r" in hidden:
            pieces.append(_NOT_NEWLINE.sub(" ", hidden))
        else:
            pieces.append(" " * len(hidden))
        done = end
    if not done:
        return text
    pieces.append(text[done:])
    return "".join(pieces)


def line_before(text: str, offset: int, limit: int = 300) -> str:
    """Return what stands before `offset` in its line, at most `limit` characters of it."""
    begin = max(text.rfind("\n", max(0, offset - limit), offset) + 1, offset - limit, 0)
    return text[begin:offset]


def trimmed_end(text: str, start: int, end: int) -> int:
    """Move `end` back over white space, but not to `start`."""
    while end - 1 > start and text[end - 1].isspace():
        end -= 1
    return end

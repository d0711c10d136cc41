"""Links of Markdown and HTML; the other markup languages are in `markup`.

Every pattern is possessive or bounded, so that no text makes a scan quadratic: what a failed
match has looked at is either consumed or at most some hundred characters.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ragx.algo.references.base import Reference, line_before, link, mask
from ragx.algo.references.markup import (
    asciidoc_links,
    org_links,
    rst_links,
    toctree_entries,
    wiki_link,
)

__all__ = ["html_links", "link_references", "markdown_links", "tag_links"]

# A destination with its title; the length of one match is bounded by `endpos`.
_MAX_INLINE = 2500
_MAX_LABEL = 999

_PIECE = r"(?:[^\s()\\]++|\\.)"
_PIECE_1 = rf"(?:{_PIECE}|\({_PIECE}*+\))"
_PIECE_2 = rf"(?:{_PIECE}|\({_PIECE_1}*+\))"
_TITLE = r"(?:\"(?:[^\"\\]|\\.)*+\"|'(?:[^'\\]|\\.)*+'|\((?:[^()\\]|\\.)*+\))"
_INLINE = re.compile(
    rf"\(\s*+(?:<((?:[^<>\n\\]|\\.)*+)>|((?!<){_PIECE_2}*+))\s*+(?:{_TITLE}\s*+)?\)", re.S
)
# Not CommonMark, but what people write and editors follow: `[notes](My notes.md)`.
_INLINE_WITH_SPACES = re.compile(r"\([ \t]*+([^()<>\n\"]{1,300}+)\)")
_FILE_WITH_SPACES = re.compile(r"[^#]+\.\w{1,8}(?:#.*)?")
_LABEL = re.compile(rf"\[((?:[^\[\]\\]|\\.){{0,{_MAX_LABEL}}}+)\]", re.S)
_DEFINITION = re.compile(
    rf"^[ \t>]{{0,12}}+(\[((?:[^\[\]\\\r\n]|\\.){{1,{_MAX_LABEL}}}+)\]:[ \t]*+(?:\r?\n[ \t>]*+)?"
    rf"(?:<([^<>\r\n]*+)>|([^\s<]\S*+)))[ \t]*+(?:{_TITLE}[ \t]*+)?\r?$",
    re.M,
)
_WIKI = re.compile(r"\[\[([^\[\]\r\n|]{1,500}+)(?:\|[^\[\]\r\n]{0,500}+)?\]\](?!\()")
_AUTOLINK = re.compile(r"<([^\s<>:=@\"']{1,500}+)>")
_AUTOLINK_PATH = re.compile(r"[^#]*[^#/.]\.\w{1,8}(?:#.*)?")
_TAG = re.compile(r"<[A-Za-z][^<>]{0,3000}+>")
_ATTRIBUTE = re.compile(
    r"\s(?:href|src)\s{0,9}=\s{0,9}(?:\"([^\"]*+)\"|'([^']*+)'|([^\s\"'>]++))", re.I
)
_MARKDOWN_TOKEN = re.compile(r"[\[\]<]|\\[\[\]<\\]|\n[ \t>]*+\r?\n|\{\{|\{%")
_TEMPLATE = re.compile(
    r"\{\{[<%]\s{0,9}(?:rel)?ref\s{1,9}[\"']?([^\"'\s<>%]{1,500}+)[\"']?\s{0,9}[>%]\}\}"
    r"|\{%-?\s{0,9}(?:link|post_url)\s{1,9}([^\s%]{1,500}+)\s{0,9}-?%\}"
    r"|\{\{\s{0,9}#(?:include|playground)\s{1,9}([^\s:{}]{1,500}+)[^\n{}]{0,200}+\}\}"
)
_MDX_IMPORT = re.compile(r"^import[ \t][^'\"\n;]{1,300}+(['\"])([.@~][^'\"\n]{1,500}+)\1", re.M)
_FENCE = re.compile(r"`{3,}+|~{3,}+")
_CONTAINER = re.compile(r"[ \t>]*+(?:(?:[-*+]|\d{1,9}[.)])[ \t>]++)*+")
_MYST = re.compile(r"\{(toctree|include|literalinclude)\}[ \t]*+(\S*+)")
_BACKTICKS = re.compile(r"`+")
_BLANK_LINE = re.compile(r"\n[ \t>]*+\r?\n")
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
_HIDDEN_HTML = re.compile(r"<!--|<(script|style|textarea)(?=[\s>])", re.I)


def link_references(text: str, language: str) -> list[Reference]:
    """Read the links of a markup language; [] for any other language."""
    reader = _READERS.get(language)
    return reader(text) if reader is not None else []


def markdown_links(text: str) -> list[Reference]:
    """Read the links of Markdown and its dialects: CommonMark, Obsidian, MyST, mdBook, Hugo, MDX.

    Fenced code, code spans and HTML comments hold none. A reference link's evidence is its use;
    a definition without any use is its own evidence.
    """
    found: list[Reference] = []
    visible = _without_code(text, found)
    definitions: dict[str, _Definition] = {}
    if "]:" in visible:
        visible = _take_definitions(text, visible, definitions)
    _Inline(text, visible, definitions, found).read()
    for definition in definitions.values():
        if not definition.used:
            _append(found, link(definition.destination, definition.start, definition.end))
    if "import" in visible:
        for match in _MDX_IMPORT.finditer(visible):
            if visible[match.start() : match.start(1)].rstrip().endswith("from"):
                found.append(Reference("import", match[2], "js", "", match.start(), match.end()))
    return found


@dataclass(slots=True)
class _Definition:
    """A reference definition's destination and evidence, and whether the text uses it."""

    destination: str
    start: int
    end: int
    used: bool = False


def _append(found: list[Reference], reference: Reference | None) -> None:
    if reference is not None:
        found.append(reference)


def _unescaped(destination: str) -> str:
    return _ESCAPE.sub(r"\1", destination) if "\\" in destination else destination


def _label(text: str) -> str:
    return " ".join(text.split()).casefold()


def _take_definitions(text: str, visible: str, definitions: dict[str, _Definition]) -> str:
    """Collect reference definitions, the first of a label, and blank them out of the text."""
    ranges = []
    for match in _DEFINITION.finditer(visible):
        label = _label(text[match.start(2) : match.end(2)])
        if not label or label.startswith("^"):
            continue
        ranges.append(match.span())
        destination = _unescaped(match[3] if match[3] is not None else match[4])
        definitions.setdefault(label, _Definition(destination, match.start(1), match.end(1)))
    return mask(visible, ranges)


class _Inline:
    """One pass over the brackets of a text, in which code is blank already."""

    def __init__(
        self,
        text: str,
        visible: str,
        definitions: dict[str, _Definition],
        found: list[Reference],
    ) -> None:
        self.text = text
        self.visible = visible
        self.definitions = definitions
        self.found = found
        self.openers: list[int] = []

    def read(self) -> None:
        done = 0
        visible = self.visible
        for token in _MARKDOWN_TOKEN.finditer(visible):
            start = token.start()
            if start < done:
                continue
            first = visible[start]
            if first == "]":
                done = self.close(start)
            elif first == "[":
                done = self.wiki(start) if visible.startswith("[[", start) else 0
                if not done:
                    self.openers.append(start)
            elif first == "<":
                done = self.tag(start)
            elif first == "{":
                template = _TEMPLATE.match(visible, start)
                if template:
                    target = template[1] or template[2] or template[3]
                    _append(self.found, link(target, start, template.end()))
            elif first == "\n":
                self.openers.clear()

    def wiki(self, start: int) -> int:
        """Take `[[Page]]` at `start`; returns where it ends, 0 when it is none."""
        match = _WIKI.match(self.visible, start)
        if match is None:
            return 0
        if start and self.visible[start - 1] == "!":
            start -= 1
        _append(self.found, wiki_link(match[1], start, match.end()))
        return match.end()

    def close(self, end: int) -> int:
        """Match the bracket that closes at `end` with its opener, and what may follow it."""
        if not self.openers:
            return 0
        start = self.openers.pop()
        follows = self.visible[end + 1 : end + 2]
        after = 0
        if follows == "(":
            after = self.inline(start, end + 1)
        elif follows == "[" and self.definitions:
            match = _LABEL.match(self.visible, end + 1)
            if match:
                label = match[1] if match[1].strip() else self.text[start + 1 : end]
                after = self.reference(label, start, match.end())
        if not after and self.definitions and end - start <= _MAX_LABEL + 1:
            after = self.reference(self.text[start + 1 : end], start, end + 1)
        if after and not (start and self.visible[start - 1] == "!"):
            self.openers.clear()  # a link holds no other link
        return after

    def inline(self, start: int, opening: int) -> int:
        """Take the destination in parentheses at `opening`; returns where it ends, or 0."""
        match = _INLINE.match(self.visible, opening, opening + _MAX_INLINE)
        if match:
            destination = _unescaped(match[1] if match[1] is not None else match[2])
        else:
            match = _INLINE_WITH_SPACES.match(self.visible, opening)
            if match is None or not _FILE_WITH_SPACES.fullmatch(match[1].rstrip()):
                return 0
            destination = match[1]
        if not destination.startswith(("https://", "http://")):  # what most links start with
            _append(self.found, link(destination, self.evidence(start), match.end()))
        return match.end()

    def reference(self, label: str, start: int, end: int) -> int:
        """Take a use of a definition; returns where it ends, 0 when nothing defines the label."""
        definition = self.definitions.get(_label(label))
        if definition is None:
            return 0
        definition.used = True
        _append(self.found, link(definition.destination, self.evidence(start), end))
        return end

    def evidence(self, start: int) -> int:
        return start - 1 if start and self.visible[start - 1] == "!" else start

    def tag(self, start: int) -> int:
        """Take an autolink or an HTML tag at `start`; returns where it ends, 0 for neither."""
        match = _AUTOLINK.match(self.visible, start)
        if match:
            if _AUTOLINK_PATH.fullmatch(match[1]):
                _append(self.found, link(match[1], start, match.end()))
            return match.end()
        match = _TAG.match(self.visible, start)
        if match is None:
            return 0
        self.found += _attributes(match)
        return match.end()


def _attributes(tag: re.Match[str]) -> list[Reference]:
    found: list[Reference] = []
    if "=" in tag[0]:
        for match in _ATTRIBUTE.finditer(tag[0]):
            value = match[1] or match[2] or match[3] or ""
            _append(found, link(value, tag.start(), tag.end()))
    return found


def _without_code(text: str, found: list[Reference]) -> str:
    """Blank out fences, code spans and comments; MyST's directives in fences are read."""
    visible = text
    if "```" in text or "~~~" in text:
        visible = mask(text, _fences(text, found))
    if "`" in visible:
        visible = mask(visible, _code_spans(visible))
    if "<!--" in visible:
        visible = mask(visible, _comments(visible))
    return visible


def _fences(text: str, found: list[Reference]) -> Iterator[tuple[int, int]]:
    opened = -1
    fence = ""
    quote = 0  # where the last quote ends
    limit = 0  # where the open fence ends at the latest
    body = 0
    directive = ""
    for match in _FENCE.finditer(text):
        begin = match.start()
        prefix = line_before(text, begin)
        if not _CONTAINER.fullmatch(prefix):
            continue
        line_end = text.find("\n", begin)
        line_end = len(text) if line_end < 0 else line_end
        info = text[match.end() : line_end].strip()
        if opened >= 0 and begin > limit:
            yield opened, limit
            opened = -1
        if opened < 0:
            if match[0][0] == "`" and "`" in info:
                continue
            opened, fence, body = begin, match[0], line_end
            limit = len(text)
            if ">" in prefix:
                quote = quote if begin < quote else _quote_end(text, begin)
                limit = quote
            known = _MYST.match(info)
            directive = known[1] if known else ""
            if known and known[2] and directive != "toctree":
                _append(found, link(known[2], begin, body))
        elif match[0].startswith(fence) and not info and not prefix.strip(" \t>"):
            if directive == "toctree":
                found += toctree_entries(text, body, begin)
            yield opened, line_end
            opened = -1
    if opened >= 0:
        yield opened, limit


def _quote_end(text: str, offset: int) -> int:
    """Return the start of the first row after `offset` that is not quoted."""
    while True:
        newline = text.find("\n", offset)
        if newline < 0:
            return len(text)
        offset = newline + 1
        if not text[offset : offset + 99].lstrip(" \t-*+.)0123456789").startswith(">"):
            return offset


def _code_spans(visible: str) -> list[tuple[int, int]]:
    """Find inline code: a run of backticks up to the next run of that length in its paragraph."""
    runs: list[tuple[int, int]] = []
    of_length: dict[int, list[int]] = {}
    for match in _BACKTICKS.finditer(visible):
        start, end = match.span()
        escapes = 0
        while start > escapes and visible[start - escapes - 1] == "\\":
            escapes += 1
        # A backslash takes the first backtick away from a run that opens, never one that closes.
        of_length.setdefault(end - start, []).append(len(runs))
        runs.append((start + escapes % 2, end))
    breaks = [match.start() for match in _BLANK_LINE.finditer(visible)]
    breaks.append(len(visible))
    spans = []
    index = 0
    while index < len(runs):
        start, end = runs[index]
        same = of_length.get(end - start, [])
        after = bisect_right(same, index)
        closing = same[after] if after < len(same) else -1
        if closing < 0 or runs[closing][0] > breaks[bisect_right(breaks, start)]:
            index += 1
            continue
        spans.append((start, runs[closing][1]))
        index = closing + 1
    return spans


def _comments(visible: str) -> Iterator[tuple[int, int]]:
    start = visible.find("<!--")
    while start >= 0:
        end = visible.find("-->", start + 4)
        if end < 0:
            return
        yield start, end + 3
        start = visible.find("<!--", end)


def _hidden_html(text: str) -> Iterator[tuple[int, int]]:
    """Find comments and the contents of elements that hold no markup, in order."""
    folded = text.lower()
    if len(folded) != len(text):  # some letters change length; then only ASCII closers count
        folded = text
    missing: set[str] = set()
    at = 0
    while True:
        match = _HIDDEN_HTML.search(text, at)
        if match is None:
            return
        at = match.end()
        closer = f"</{match[1].lower()}" if match[1] else "-->"
        if closer in missing:
            continue
        end = folded.find(closer, at)
        if end < 0:
            missing.add(closer)
            continue
        tag_end = text.find(">", at, end) + 1 if match[1] else match.start()
        if tag_end:
            yield (tag_end, end)
        at = end


def html_links(text: str) -> list[Reference]:
    """Read the `href` and `src` attributes of HTML; scripts, styles and comments hold none."""
    return tag_links(mask(text, _hidden_html(text)))


def tag_links(visible: str) -> list[Reference]:
    """Read the `href` and `src` attributes of all tags; the evidence is the tag."""
    found: list[Reference] = []
    for match in _TAG.finditer(visible):
        found += _attributes(match)
    return found


_READERS: dict[str, Callable[[str], list[Reference]]] = {
    "markdown": markdown_links,
    "text": markdown_links,
    "html": html_links,
    "rst": rst_links,
    "org": org_links,
    "asciidoc": asciidoc_links,
}

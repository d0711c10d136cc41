"""Links of reStructuredText, Org and AsciiDoc, and wiki links wherever they stand."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ragx.algo.references.base import (
    Reference,
    decode_percent,
    is_external,
    link,
    mask,
    trimmed_end,
)

__all__ = ["asciidoc_links", "org_links", "rst_links", "toctree_entries", "wiki_link"]

_LINE = re.compile(r"[^\n]*+\n?")

_RST_ROLE = re.compile(r":(?:(\w{1,20}+):)?(\w{1,20}+):`([^`]{1,500}+)`")
_RST_LINK = re.compile(r"`[^`<>]{0,500}+<([^`<>]{1,500}+)>`__?")
_RST_TARGET = re.compile(
    r"^[ \t]*+\.\. _(?:`[^`\n]+`|[^:\n`]|\\:){1,300}:[ \t]+(\S+)[ \t]*\r?$", re.M
)
_RST_DIRECTIVE = re.compile(
    r"([ \t]*+)\.\.[ \t]+(?:\|[^|\n]+\|[ \t]+)?([\w:+.-]+?)::[ \t]*([^\n]*)"
)
_RST_COMMENT = re.compile(r"([ \t]*+)\.\.(?:[ \t]+(?![_\[|])[^\n]*|[ \t]*)\r?$")
_RST_LITERAL = re.compile(r"``[^`\n](?:[^`\n]|`(?!`)){0,500}+``")
_RST_HIDDEN = frozenset(
    "code-block code sourcecode highlight raw math prompt parsed-literal".split()
)
_RST_FILES = frozenset({"include", "literalinclude"})
_RST_DOCUMENTS = frozenset({"doc", "download"})
_RST_LABELS = frozenset({"ref", "numref"})
_RST_MODULES = frozenset({"mod", "automodule", "module", "currentmodule"})
_RST_OBJECTS = frozenset(
    "class func meth attr exc data obj autoclass autofunction automethod autoexception".split()
)
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.\w+)*")

_ORG_LINK = re.compile(r"\[\[((?:[^\[\]\n\\]|\\.){1,500}+)\](?:\[[^\[\]\n]{0,500}+\])?\]")
_ORG_PLAIN = re.compile(r"(?<![\w\[:])file:([^\s\[\]<>()\"]{1,500}+)")
_ORG_INCLUDE = re.compile(
    r"^[ \t]*+#\+(?:include|setupfile):[ \t]*+(?:\"([^\"\n]{1,500}+)\"|([^\s\"]{1,500}+))",
    re.M | re.I,
)
_ORG_BLOCK = re.compile(r"^[ \t]*+#\+(begin|end)_(src|example|export|comment)\b", re.M | re.I)
_ORG_FILE = re.compile(r"(?:file(?:\+\w+)?|attachment):|\.{0,2}/|~/", re.I)

_ADOC_BLOCK = re.compile(r"^(-{4,}|\.{4,}|\+{4,}|/{4,}|`{3,})[^\n]*$", re.M)
_ADOC_INCLUDE = re.compile(r"^include::([^\s\[\]]{1,500}+)\[[^\]\n]{0,500}+\]", re.M)
_ADOC_MACRO = re.compile(r"(?<![\w:])(link|xref):{1,2}([^\s\[\]]{1,500}+)\[[^\]]{0,500}+\]")
_ADOC_XREF = re.compile(r"<<([^<>\n,]{1,500}+)(?:,[^<>]{0,500}+)?>>")
_ADOC_ATTRIBUTES = re.compile(r"(?:\{[\w-]{1,60}\}/?)+")
_ADOC_ANTORA = re.compile(r"(?:[\w.-]*[@:])+|\w+\$")
_ADOC_COMMENT = re.compile(r"^//(?!/)[^\n]*", re.M)


def wiki_link(inside: str, start: int, end: int) -> Reference | None:
    """Make a link of what stands in `[[...]]` before any `|`; None for a URL or a block of itself.

    Of nested headings (`Page#Part#Detail`) the innermost is the fragment.
    """
    inside = inside.strip().removesuffix("\\").rstrip()
    target, *headings = inside.split("#")
    target = target.strip()
    fragment = next((part.strip() for part in reversed(headings) if part.strip()), "")
    if fragment.startswith("^"):
        fragment = ""
    if (not target and not fragment) or "://" in target or target.startswith("mailto:"):
        return None
    return Reference("link", target, "wiki", fragment, start, end)


def _append(found: list[Reference], reference: Reference | None) -> None:
    if reference is not None:
        found.append(reference)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))


def _without_title(text: str) -> str:
    """Return the target of `Title <target>`."""
    return text[text.rfind("<") + 1 : -1].strip() if text.endswith(">") else text


def toctree_entries(text: str, start: int, end: int) -> list[Reference]:
    """Read the documents that the body `text[start:end]` of a `toctree` directive lists."""
    found: list[Reference] = []
    for row in _LINE.finditer(text, start, end):
        entry = row[0].strip()
        if not entry or entry[0] in ":#" or entry == "self" or "*" in entry:
            continue
        target = _without_title(entry)
        begin = row.start() + _indent(row[0])
        _append(found, link(target, begin, begin + len(entry)))
    return found


def rst_links(text: str) -> list[Reference]:
    """Read the links of reStructuredText with Sphinx's roles and directives.

    Literal blocks, code blocks, comments and inline literals hold none. `automodule` and the like
    give references of form `"python"`.
    """
    found: list[Reference] = []
    visible = mask(text, _rst_hidden(text, found))
    if "``" in visible:
        visible = mask(visible, (match.span() for match in _RST_LITERAL.finditer(visible)))
    for match in _RST_ROLE.finditer(visible):
        _append(found, _rst_role(match))
    for match in _RST_LINK.finditer(visible):
        if visible[match.start() - 1 : match.start()] != ":":
            _append(found, link(match[1], match.start(), match.end()))
    for match in _RST_TARGET.finditer(visible):
        if not match[1].endswith("_"):
            start = match.start() + _indent(match[0])
            end = trimmed_end(visible, start, match.end())
            _append(found, link(match[1], start, end))
    return found


def _rst_role(match: re.Match[str]) -> Reference | None:
    role, content = match[2], match[3]
    target = " ".join(_without_title(content.strip()).split())
    if role in _RST_DOCUMENTS:
        return link(target, match.start(), match.end())
    if role in _RST_LABELS:
        return Reference("link", target, "ref", "", match.start(), match.end()) if target else None
    if role in _RST_MODULES or role in _RST_OBJECTS:
        return _python_object(role, target.lstrip("~!."), match.start(), match.end())
    return None


def _python_object(role: str, name: str, start: int, end: int) -> Reference | None:
    name = name.removesuffix("()")
    if not _DOTTED.fullmatch(name):
        return None
    if role in _RST_MODULES:
        return Reference("link", name, "python", "", start, end)
    module, _, symbol = name.rpartition(".")
    if not module:
        return None
    return Reference("link", module, "python", symbol, start, end)


def _rst_hidden(text: str, found: list[Reference]) -> Iterator[tuple[int, int]]:
    """Find literal blocks, code blocks and comments; reads the directives on the way."""
    hidden_from = -1
    limit = 0  # rows indented deeper belong to the directive or literal block that is open
    toctree = -1
    last = 0
    for row in _LINE.finditer(text):
        line = row[0]
        if not line.strip():
            continue
        indent = _indent(line)
        if (hidden_from >= 0 or toctree >= 0) and indent <= limit:
            if hidden_from >= 0:
                yield hidden_from, row.start()
            else:
                found += toctree_entries(text, toctree, row.start())
            hidden_from = toctree = -1
        last = row.end()
        if hidden_from >= 0 or toctree >= 0:
            continue
        stripped = line.lstrip(" \t")
        if not stripped.startswith(".."):
            if line.rstrip().endswith("::"):
                hidden_from, limit = row.end(), indent
            continue
        directive = _RST_DIRECTIVE.match(line)
        if directive is None:
            if _RST_COMMENT.match(line.rstrip("\n")):
                hidden_from, limit = row.start(), indent
            continue
        name = directive[2].rpartition(":")[2]
        begin = row.start() + indent
        if name in _RST_HIDDEN:
            hidden_from, limit = row.end(), indent
        elif name == "toctree":
            toctree, limit = row.end(), indent
        elif name in _RST_FILES:
            argument = directive[3].strip()
            if not argument.startswith("<"):
                _append(found, link(argument, begin, trimmed_end(text, begin, row.end())))
        elif name in _RST_MODULES or name in _RST_OBJECTS:
            end = trimmed_end(text, begin, row.end())
            if name.startswith("auto"):
                _append(found, _python_object(name, directive[3].strip(), begin, end))
    if hidden_from >= 0:
        yield hidden_from, max(last, hidden_from)
    elif toctree >= 0:
        found += toctree_entries(text, toctree, last)


def org_links(text: str) -> list[Reference]:
    """Read the links and includes of Org; source and example blocks hold none."""
    found: list[Reference] = []
    visible = mask(text, _org_blocks(text))
    for match in _ORG_LINK.finditer(visible):
        _append(found, _org_link(match[1], match.start(), match.end()))
    for match in _ORG_PLAIN.finditer(visible):
        target = match[0].rstrip(".,;:!?")
        _append(found, _org_link(target, match.start(), match.start() + len(target)))
    for match in _ORG_INCLUDE.finditer(visible):
        start = match.start() + _indent(match[0])
        target = (match[1] or match[2]).partition("::")[0]
        _append(found, link(target, start, match.end()))
    return found


def _org_link(target: str, start: int, end: int) -> Reference | None:
    target = target.replace("\\[", "[").replace("\\]", "]").strip()
    if target.startswith(("*", "#")):
        return Reference("link", "", "path", target[1:].strip(), start, end) if target[1:] else None
    prefix = _ORG_FILE.match(target)
    if prefix is None:
        if is_external(target) or not target:
            return None
        path, _, place = target.partition("::")
        if not re.fullmatch(r"[^\s]+\.\w{1,8}", path):
            return Reference("link", "", "path", target, start, end)  # a search in this file
    else:
        body = target[prefix.end() :] if prefix[0].endswith(":") else target
        path, _, place = body.partition("::")
    if path.startswith("~") or "://" in path or not path:
        return None
    place = "" if place.isdigit() else place.lstrip("*#").strip()
    return Reference("link", decode_percent(path), "path", place, start, end)


def _org_blocks(text: str) -> Iterator[tuple[int, int]]:
    opened, name = -1, ""
    for match in _ORG_BLOCK.finditer(text):
        kind = match[2].lower()
        if match[1].lower() == "begin":
            if opened < 0:
                opened, name = match.end(), kind
        elif opened >= 0 and kind == name:
            yield opened, match.start()
            opened = -1


def asciidoc_links(text: str) -> list[Reference]:
    """Read the links, cross references and includes of AsciiDoc.

    Listings, literals and comments hold none but includes, which AsciiDoc reads there too.
    """
    found: list[Reference] = []
    for match in _ADOC_INCLUDE.finditer(text):
        _append(found, _adoc_path(match[1], match.start(), match.end()))
    visible = mask(text, _adoc_blocks(text))
    if "//" in visible:
        visible = mask(visible, (match.span() for match in _ADOC_COMMENT.finditer(visible)))
    for match in _ADOC_MACRO.finditer(visible):
        anchor = match[1] == "xref" and not re.search(r"[#./:]", match[2])
        target = "#" + match[2] if anchor else match[2]
        _append(found, _adoc_path(target, match.start(), match.end()))
    for match in _ADOC_XREF.finditer(visible):
        target = match[1].strip()
        if "#" not in target and not re.search(r"\.(?:adoc|asciidoc|asc)$", target):
            target = "#" + target
        _append(found, _adoc_path(target, match.start(), match.end()))
    return found


def _adoc_path(target: str, start: int, end: int) -> Reference | None:
    attributes = _ADOC_ATTRIBUTES.match(target)
    if attributes:
        target = target[attributes.end() :]
    if "{" in target or "://" in target:
        return None
    antora = _ADOC_ANTORA.match(target)
    if antora is None or target.startswith("mailto:"):
        return link(target, start, end)
    page, _, fragment = target[antora.end() :].partition("#")
    page = page.rpartition("$")[2]
    return Reference("link", decode_percent(page), "wiki", fragment, start, end) if page else None


def _adoc_blocks(text: str) -> Iterator[tuple[int, int]]:
    opened, fence = -1, ""
    for match in _ADOC_BLOCK.finditer(text):
        if opened < 0:
            opened, fence = match.start(), match[1]
        elif match[1] == fence:
            yield opened, match.end()
            opened = -1
    if opened >= 0:
        yield opened, len(text)

"""Names of pages in running text, and how a link's fragment names a heading."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ragx.algo.chunking.headings import asciidoc_blocks, org_blocks, rst_blocks
from ragx.algo.chunking.languages import kind_of
from ragx.algo.chunking.markdown import markdown_blocks
from ragx.algo.chunking.outline import Block, plain_heading
from ragx.algo.references.base import decode_percent, fold

__all__ = [
    "PageName",
    "fragment_keys",
    "heading_keys",
    "heading_slug",
    "matches_heading",
    "page_names",
]

_TOP_CHARS = 65_536
_MAX_NAME = 200
_BLOCKS: dict[str, Callable[[Sequence[str]], list[Block]]] = {
    "markdown": markdown_blocks,
    "rst": rst_blocks,
    "asciidoc": asciidoc_blocks,
    "org": org_blocks,
}
_HTML_TITLE = re.compile(r"<(title|h1)\b[^>]{0,300}>([^<]{1,300}+)</", re.I)
_CLOSING_HASHES = re.compile(r"(?:^|[ \t]+)#+$")
_CUSTOM_ID = re.compile(r"\{#([\w.:-]+)[^{}]*\}\s*$")
_NOT_SLUG = re.compile(r"[^\w\- ]")
_KEY = re.compile(r"(title|alias|aliases)[ \t]*[:=][ \t]*(.*)$", re.I)
_ITEM = re.compile(r"[ \t]*-[ \t]+(.*)$")
_ROAM = re.compile(r":ROAM_ALIASES:[ \t]+(.*)$|#\+(?:roam_)?alias(?:es)?:[ \t]*(.*)$", re.I)
_ROAM_ITEM = re.compile(r'"([^"]+)"|(\S+)')
_QUOTED = re.compile(r"\"((?:[^\"\\]|\\.)*+)\"|'((?:[^']|'')*+)'")
_FLOW_ITEM = re.compile(
    r"\s*+(?:\"((?:[^\"\\]|\\.)*+)\"|'((?:[^']|'')*+)'|([^,\[\]]++))\s*+(?:,|$)"
)
_NUMBERING = re.compile(r"\d{1,4}(?:[.-]\d{1,4}){0,2}[.)]?[-_ ]+|\d{1,4}[.)][ ]*(?=\D)")
_DATE = re.compile(r"\d{4}[-_. ]?\d{2}(?:[-_. ]?\d{2})?[-_. T]*")
_WORD = re.compile(r"[^\W\d_]{2,}")
_HASH = re.compile(r"[0-9a-f]{7,}|[0-9a-f-]{32,}", re.I)
_GENERIC_STEMS = frozenset({"index", "_index", "readme"})


@dataclass(frozen=True, slots=True)
class PageName:
    """A name by which running text may mention a file.

    `origin` is `"title"`, `"heading"`, `"alias"`, `"stem"` or `"filename"`.
    """

    text: str
    origin: str


def heading_slug(heading: str) -> str:
    """Return the anchor that GitHub gives to a heading; "" for one without letters or digits.

    Markup is removed, then case and all punctuation but `-` and `_`; each space becomes `-`.
    """
    text = _plain(heading).lower().strip()
    return _NOT_SLUG.sub("", text).replace(" ", "-")


def matches_heading(fragment: str, heading: str) -> bool:
    """Tell whether a link's fragment names a heading.

    The fragment may be GitHub's slug, another generator's (`_setup_guide`, `setupguide`), the
    heading's own text, its custom id (`## Setup {#install}`), or any of these percent-encoded.
    Empty matches nothing.
    """
    return not set(fragment_keys(fragment)).isdisjoint(heading_keys(heading))


def heading_keys(heading: str) -> tuple[str, ...]:
    """What a heading can be found by: `matches_heading` as the meeting of two lists of keys."""
    plain = _plain(heading)
    keys = [f"text {heading.strip()}", f"text {plain}", f"core {_core(plain)}"]
    custom = _CUSTOM_ID.search(heading[-_MAX_NAME:])
    if custom:
        keys.append(f"id {custom[1]}")
    return tuple(keys)


def fragment_keys(fragment: str) -> tuple[str, ...]:
    """What a link's fragment looks for among the keys of headings; () for an empty one."""
    wanted = decode_percent(fragment).strip()
    if not wanted:
        return ()
    core = _core(wanted)
    # `c` is the slug of both `C` and `C++`; a text that is all punctuation equals only itself.
    return (f"id {wanted}", f"text {wanted}", *([f"core {core}"] if core else []))


def _core(text: str) -> str:
    return "".join(filter(str.isalnum, fold(text)))


def _plain(heading: str) -> str:
    heading = heading[: _MAX_NAME * 5].strip()
    return _CLOSING_HASHES.sub("", plain_heading(heading.lstrip("\ufeff"))).strip()


def page_names(path: str, text: str, language: str, title: str) -> list[PageName]:
    """List the names under which other files may mention this one in running text.

    Args:
        path: root-relative POSIX.
        text: the decoded text; only its first 64 Ki characters are looked at.
        language: as `language_of` names it.
        title: the title that the index knows; "" for none.
    Returns:
        Title, first heading, aliases, stem, file name, as far as they exist; no two alike but for
        case. Stems are names in documentation only, and only if they read as words; `index` and
        `README` do not.
    """
    names: dict[str, PageName] = {}

    def add(name: str, origin: str) -> None:
        name = " ".join(name.split())
        if name and len(name) <= _MAX_NAME:
            names.setdefault(name.casefold(), PageName(name, origin))

    add(_plain(title), "title")
    top = text[:_TOP_CHARS].replace("\r\n", "\n").replace("\r", "\n")
    documentation = kind_of(language) == "docs" or language == "html"
    if documentation:
        lines = top.split("\n")
        stated = [*_stated(lines, language)]
        for origin, name in stated:
            if origin == "title":
                add(_plain(name), origin)
        add(_first_heading(top, lines, language), "heading")
        for origin, name in stated:
            if origin == "alias":
                add(_plain(name), origin)
    file = path.rpartition("/")[2]
    if documentation:
        add(_words_of(file.rpartition(".")[0] or file), "stem")
    add(file, "filename")
    return list(names.values())


def _first_heading(top: str, lines: Sequence[str], language: str) -> str:
    if language == "html":
        titles = {match[1].lower(): match[2] for match in reversed([*_HTML_TITLE.finditer(top)])}
        return _plain(titles.get("h1", titles.get("title", "")))
    reader = _BLOCKS.get(language)
    if reader is None:
        return ""
    headings = (block.title for block in reader(lines) if block.kind == "heading" and block.title)
    return _plain(next(headings, ""))


def _stated(lines: Sequence[str], language: str) -> Iterator[tuple[str, str]]:
    """Yield `("title", ...)` and `("alias", ...)` as the document's own header states them."""
    if language == "org":
        for line in lines:
            roam = _ROAM.match(line.strip())
            if roam:
                for item in _ROAM_ITEM.finditer(roam[1] or roam[2] or ""):
                    yield "alias", item[1] or item[2]
            elif line[:8].lower() == "#+title:":
                yield "title", line[8:].strip()
        return
    if language not in {"markdown", "text"} or lines[0].strip("\ufeff \r\t") not in {"---", "+++"}:
        return
    fence = lines[0].strip("\ufeff \r\t")
    closers = {"---", "..."} if fence == "---" else {"+++"}
    end = next((row for row in range(1, len(lines)) if lines[row].rstrip() in closers), 0)
    row = 1
    while row < end:
        key = _KEY.match(lines[row].rstrip())
        row += 1
        if key is None:
            continue
        value = key[2].strip()
        if key[1].lower() == "title":
            title = _scalar(value)
            if title not in {">", "|", ">-", "|-"}:
                yield "title", title
            continue
        if value.startswith("["):
            while "]" not in value and row < end:
                value += " " + lines[row].strip()
                row += 1
            flow = value[1:].rpartition("]")[0]
            items = [_flow_text(found) for found in _FLOW_ITEM.finditer(flow)]
        elif value and not value.startswith("#"):
            items = [_scalar(value)]
        else:
            items = []
            while row < end and (entry := _ITEM.match(lines[row].rstrip())):
                items.append(_scalar(entry[1].strip()))
                row += 1
        for text in items:
            if text and not text.startswith("/"):  # Hugo's aliases are addresses
                yield "alias", text


def _flow_text(item: re.Match[str]) -> str:
    return _unquoted(item) if item[3] is None else item[3].strip()


def _unquoted(quoted: re.Match[str]) -> str:
    if quoted[1] is not None:
        return re.sub(r"\\(.)", r"\1", quoted[1]).strip()
    return quoted[2].replace("''", "'").strip()


def _scalar(value: str) -> str:
    quoted = _QUOTED.match(value)
    if quoted:
        return _unquoted(quoted)
    return re.split(r"\s#", value, maxsplit=1)[0].strip()


def _words_of(stem: str) -> str:
    """Return a stem as words; "" for a number, a date, a hash or a generic name."""
    if fold(stem) in _GENERIC_STEMS:
        return ""
    stem = _DATE.sub("", stem, count=1) if _DATE.match(stem) else stem
    stem = _NUMBERING.sub("", stem, count=1) if _NUMBERING.match(stem) else stem
    if not _WORD.search(stem) or (_HASH.fullmatch(stem) and any(map(str.isdigit, stem))):
        return ""
    return " ".join(stem.replace("-", " ").replace("_", " ").split())

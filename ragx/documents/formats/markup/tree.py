"""HTML as a plain tree, with what the search for the main text asks of each element.

The parser is lexbor (by selectolax), which builds the tree that a browser builds, whatever the
markup is like. Its nodes are copied, since walking them is slow and each question about a subtree
would cost a walk of its own. All walks are loops: depth of nesting is never depth of the stack.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from ragx.documents.formats.base import too_big

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

__all__ = [
    "HEADINGS",
    "SEVERAL",
    "Element",
    "Event",
    "clean",
    "elements",
    "parse",
    "plain_text",
    "walk",
]

HEADINGS = {f"h{level}": level for level in range(1, 7)}

Event = tuple[Literal["in", "out"], "Element"] | tuple[Literal["text"], str]

# Ten times what the largest page of all measured ones has (cppreference, python3-doc).
_MAX_ELEMENTS = 600_000
# A tag costs the parser 200 to 300 bytes: this many stay below half of the memory limit.
_MAX_TAGS = 2_000_000
# The parser's time grows with the square of the depth, a second at 20,000, and with that of the
# attributes of one tag.
_MAX_DEPTH = 20_000
_MAX_ATTRIBUTES = 5_000
_LONG_TAG = re.compile(r"<[A-Za-z][^<>]{20000,}")

# What is never text. Their contents are not even copied.
_OPAQUE = frozenset(
    "script style template noscript svg canvas iframe object embed audio video select button"
    " textarea input datalist applet noembed noframes annotation annotation-xml".split()
)
_KEPT_ATTRIBUTES = frozenset(
    "class id role href src alt title hidden style aria-hidden lang data-lang data-language"
    " colspan rowspan start value type reversed name content property http-equiv datetime itemprop"
    " epub:type open rel scope".split()
)
_EMPTY = frozenset("area base br col embed hr img input link meta source track wbr param".split())
# Those that need no end tag, or close themselves, tell nothing of the depth.
_VOID = _EMPTY | frozenset(
    "p li dt dd tr td th thead tbody tfoot option optgroup colgroup a path line rect circle"
    " ellipse polygon polyline use stop image".split()
)
_SELF_CLOSED = re.compile(r"<([A-Za-z][A-Za-z0-9:-]*)((?:\s[^<>]*?)?)/>")
_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9:-]*)")

_INVISIBLE = "\u00ad\u200b\u200e\u200f\u2060\u2061\u2062\u2063\u2064\ufeff\ufffc"
_JUNK = re.compile(
    f"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f{_INVISIBLE}\u202a-\u202e\u2066-\u206f\ufff9-\ufffb]"
)
_LIGATURES = {chr(code): unicodedata.normalize("NFKC", chr(code)) for code in range(0xFB00, 0xFB07)}
_LIGATURE = re.compile("[\ufb00-\ufb06]")


class Element:
    """One element: its children in order, and sums over all below it.

    `chars` counts its text without white space, `link_chars` the part of it within links,
    `links` the links. `has` holds those of `_TOLD` that it or an element below it is. `page` is
    the one page to whose anchors all its links lead, `SEVERAL` if there is none such.
    """

    __slots__ = ("attrs", "chars", "children", "has", "link_chars", "links", "page", "parent",
                 "tag")  # fmt: skip

    def __init__(self, tag: str, attrs: dict[str, str], parent: Element | None) -> None:
        self.tag = tag
        self.attrs = attrs
        self.parent = parent
        self.children: list[Element | str] = []
        self.chars = 0
        self.link_chars = 0
        self.links = 0
        self.has: frozenset[str] = frozenset()
        self.page: str | None = None

    def get(self, name: str) -> str:
        """An attribute's value; "" for one that is absent or has none."""
        return self.attrs.get(name, "")


_NO_ATTRIBUTES: dict[str, str] = {}
# Tags that `Element.has` tells of; roles and ids of main parts count as "main" and "#content".
_TOLD = frozenset(
    "h1 h2 h3 h4 h5 h6 table pre section main article time meta script noscript iframe frame"
    " object img svg canvas video".split()
)
_NOTHING: frozenset[str] = frozenset()
_CONTENT_IDS = frozenset(
    "content main-content main_content maincontent mw-content-text bodycontent doc-contents".split()
)
SEVERAL = "\0"


def clean(text: str) -> str:
    """Drop what no reader sees, spell ligatures out, compose accents."""
    if text.isascii() and text.isprintable():
        return text
    text = _JUNK.sub("", text).replace("\u00a0", " ").replace("\u2028", "\n")
    text = text.replace("\u2029", "\n")
    if text.isascii():
        return text
    text = _LIGATURE.sub(lambda match: _LIGATURES[match[0]], text)
    return unicodedata.normalize("NFC", text)


def parse(text: str, max_chars: int, *, is_xml: bool = False) -> tuple[Element, bool]:
    """The tree of a page, and whether all of it was taken.

    Args:
        text: the page; decoded, as the parser knows UTF-8 only.
        max_chars: characters after which no more is taken.
        is_xml: it is XHTML, where any element may be closed by its own tag. To an HTML parser
            `<title/>` is a title that never ends.
    Raises:
        ExtractionError: it has too many tags, or they are nested too deep.
    """
    _check_size(text)
    if is_xml:
        text = _SELF_CLOSED.sub(_close, text)
    from selectolax.lexbor import LexborHTMLParser, SelectolaxError

    try:
        root = LexborHTMLParser(text.encode("utf-8", "replace")).root
    except SelectolaxError as exc:
        # It parses all there is, given memory: unclosed formatting is repeated in each paragraph.
        raise too_big("its markup takes more memory than is allowed") from exc
    if root is None:
        return Element("html", {}, None), True
    tree, whole = _copy(root, max_chars)
    _sum_up(tree)
    return tree, whole


def walk(root: Element) -> Iterator[Event]:
    """All that is below an element, in order, without itself."""
    stack: list[tuple[Element, Iterator[Element | str]]] = [(root, iter(root.children))]
    while stack:
        element, children = stack[-1]
        for child in children:
            if isinstance(child, str):
                yield "text", child
                continue
            yield "in", child
            stack.append((child, iter(child.children)))
            break
        else:
            stack.pop()
            if stack:
                yield "out", element


def elements(root: Element, *tags: str) -> Iterator[Element]:
    """The elements below one, in order; only those of the given tags if any are given."""
    for kind, value in walk(root):
        if kind == "in" and isinstance(value, Element) and (not tags or value.tag in tags):
            yield value


def plain_text(element: Element) -> str:
    """Its text on one line."""
    text = "".join(value for _, value in walk(element) if isinstance(value, str))
    return " ".join(clean(text).split())


def _check_size(text: str) -> None:
    if text.count("<") > _MAX_TAGS:
        raise too_big(f"it has over {_MAX_TAGS:,} tags")
    for tag in _LONG_TAG.finditer(text):
        if len(tag[0].split()) > _MAX_ATTRIBUTES:
            raise too_big(f"a tag of it has over {_MAX_ATTRIBUTES:,} attributes")
    if text.count("<") < _MAX_DEPTH:
        return
    depth = deepest = 0
    for match in _TAG.finditer(text):
        if match[2].lower() not in _VOID:
            depth = max(0, depth - 1) if match[1] else depth + 1
            deepest = max(deepest, depth)
    if deepest > _MAX_DEPTH:
        raise too_big(f"its elements are nested over {_MAX_DEPTH:,} deep")


def _close(match: re.Match[str]) -> str:
    return match[0] if match[1].lower() in _EMPTY else f"<{match[1]}{match[2]}></{match[1]}>"


def _copy(root: LexborNode, max_chars: int) -> tuple[Element, bool]:
    """Copy what a reader can see; stops at the limits."""
    tree = Element("html", _attributes(root), None)
    stack = [(root.first_child, tree)]
    count = chars = 0
    while stack:
        node, parent = stack.pop()
        while node is not None:
            if node.is_text_node:
                value = node.text_content or ""
                chars += len(value)
                parent.children.append(value)
                if chars > max_chars:
                    return tree, False
            elif node.is_element_node and (tag := str(node.tag)) not in _OPAQUE:
                count += 1
                if count > _MAX_ELEMENTS:
                    return tree, False
                element = Element(tag, _attributes(node), parent)
                if tag == "div" and _is_title(element):
                    element.tag = "h1"
                parent.children.append(element)
                below = node.first_child
                if below is not None:
                    stack.append((node.next, parent))
                    node, parent = below, element
                    continue
            elif node.is_element_node:
                parent.children.append(Element(str(node.tag), _NO_ATTRIBUTES, parent))
            node = node.next
    return tree, True


def _attributes(node: LexborNode) -> dict[str, str]:
    given = node.attributes
    if not given:
        return _NO_ATTRIBUTES
    return {name: value or "" for name, value in given.items() if name in _KEPT_ATTRIBUTES}


def _is_title(div: Element) -> bool:
    """Titles that are headings by style alone: Doxygen's and SQLite's."""
    name = div.get("class")
    if name == "title":
        return div.parent is not None and "headertitle" in div.parent.get("class").split()
    return name == "fancy_title"


def _sum_up(tree: Element) -> None:
    """Fill the sums, children before parents."""
    for element in reversed([tree, *elements(tree)]):
        has = _own_marks(element)
        for child in element.children:
            if isinstance(child, str):
                element.chars += sum(map(len, child.split()))
                continue
            element.chars += child.chars
            element.link_chars += child.link_chars
            element.links += child.links
            if child.page is not None and child.page != element.page:
                element.page = child.page if element.page is None else SEVERAL
            if not child.has <= has:
                has |= child.has
        if element.tag == "a" and "href" in element.attrs:
            element.link_chars = element.chars
            element.links = 1
            page, _, anchor = element.attrs["href"].partition("#")
            element.page = page if anchor else SEVERAL
        element.has = has


def _own_marks(element: Element) -> frozenset[str]:
    tag = element.tag
    if element.attrs and tag in ("div", "section", "td"):
        if element.get("role") == "main":
            tag = "main"
        elif element.get("id").lower() in _CONTENT_IDS:
            return frozenset(["#content", *({tag} & _TOLD)])
    return _SINGLE.get(tag, _NOTHING)


_SINGLE = {tag: frozenset([tag]) for tag in _TOLD}

"""Which part of a page is its main text, and which is navigation around it.

Rules over marks that pages carry themselves: elements, roles, classes and ids, and the share of
the text that is links. They come from pages of Sphinx, MkDocs, DocBook, gtk-doc, gi-docgen,
Doxygen, Javadoc, rustdoc, AsciiDoc, MediaWiki and texinfo (`research/documents.md`). A word like
"header" or "menu" drops an element only if it reads like navigation as well: to lose text is worse
than to keep a link.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from ragx.documents.formats.markup.tree import HEADINGS, SEVERAL, Element, elements

__all__ = ["Left", "is_permalink", "main_part", "why_left"]

Left = Literal["", "navigation", "hidden", "marks"]

_SPLIT = re.compile(r"[\s_-]+|(?<=[a-z])(?=[A-Z])")
# Words that name nothing but navigation, and words that do so where links make up the text.
_NAVIGATION = frozenset(
    "breadcrumb breadcrumbs sphinxsidebar navheader navfooter navbar topnav bottomnav subnav"
    " skipnav skiplink pagination pager paginator cookie cookies consent gdpr noprint editsection"
    " searchbox searchform navpath jumpbox contentsub sitesub printfooter catlinks"
    " wy-nav-side wy-nav-top rst-versions titlearea projectname tagline".split()
)
_LIKELY = frozenset(
    "nav navigation menu sidebar sidenav related relations toc contents header footer topbar"
    " bottom bottombar prevnext breadcrumblist sourcelink summary navlist links toolbar search"
    " masthead banner skip index nextprev navi pagenav shortcuts titlearea top tabs copyright"
    " version versions branding social share".split()
)
_MARKS = frozenset(
    "headerlink permalink anchorjs heading-anchor linenos lineno linenodiv gutter rouge-gutter"
    " blob-num viewcode-link viewcode-back copybtn copybutton sr-only visually-hidden"
    " screenreader-text mw-editsection editsection src srclink anchor-link line-numbers"
    " linenumber skip-link skip-to-content visuallyhidden assistive".split()
)
_MARK_SIGNS = frozenset(["¶", "#", "§", "🔗", "¶¶", "[src]", "[source]"])
_NAVIGATION_ROLES = frozenset(
    "navigation search banner contentinfo dialog alertdialog menu menubar toolbar tablist".split()
)
_NOT_SHOWN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_OPAQUE_AS_NAVIGATION = frozenset(["nav", "menu", "dialog"])


def main_part(root: Element) -> Element:
    """The element that holds the main text; the body if nothing marks it."""
    body = next(elements(root, "body"), root)
    for mark in ("main", "#content", "article"):
        found = [element for element in _outermost(body, mark) if element.chars]
        if not found:
            continue
        # Articles side by side are a list of them, all of it text.
        if mark == "article" and len(found) > 1:
            return body
        if mark == "#content" and "h1" in body.has and all("h1" not in e.has for e in found):
            continue  # the page's title stands beside it
        best = max(found, key=lambda element: element.chars)
        if 2 * best.chars >= sum(e.chars for e in found) and _holds_enough(best, body):
            return best
    return body


def why_left(element: Element, main: Element) -> Left:
    """Why an element below `main` is no text of the page; "" if it is."""
    tag, attrs = element.tag, element.attrs
    if tag in _OPAQUE_AS_NAVIGATION:
        return "navigation"
    if not attrs:
        return _by_place(element, main)
    if attrs.get("role") != "tabpanel" and (
        "hidden" in attrs
        or attrs.get("aria-hidden") == "true"
        or ("style" in attrs and _NOT_SHOWN.search(attrs["style"]))
    ):
        return "hidden"
    if attrs.get("role", "").strip().lower() in _NAVIGATION_ROLES and "h1" not in element.has:
        return "navigation"
    if "class" in attrs or "id" in attrs:
        names = f"{attrs.get('class', '')} {attrs.get('id', '')}".lower().split()
        if tag != "body" and _is_mark(element, names):
            return "marks"
        if _is_navigation(element, names, main):
            return "navigation"
    return _by_place(element, main)


def _is_mark(element: Element, names: list[str]) -> bool:
    """Permalinks, line numbers and the like: small things in the midst of text."""
    if _MARKS.isdisjoint(names):
        return False
    if element.tag in ("td", "th", "div", "pre"):
        return True
    return element.chars <= 30 and element.tag in ("a", "span", "button", "label", "small")


def _is_navigation(element: Element, names: list[str], main: Element) -> bool:
    if not _NAVIGATION.isdisjoint(names):
        return "h1" not in element.has and 2 * element.chars <= main.chars
    words = {word for name in names for word in _SPLIT.split(name)}
    if words.isdisjoint(_LIKELY):
        return not words.isdisjoint(_NAVIGATION) and _is_dense(element)
    if element.tag in ("a", "span", "td", "dt", "dd", "code", "pre", "p", *HEADINGS):
        return False
    if not words.isdisjoint(("toc", "contents")):
        return _is_own_contents(element)
    if not words.isdisjoint(("footer", "copyright")) and element.chars <= 400:
        return "h1" not in element.has
    return _reads_as_list_of_links(element, words, main)


def _reads_as_list_of_links(element: Element, words: set[str], main: Element) -> bool:
    # Javadoc's summaries of methods are nothing but links, and worth more than all else there.
    told = element.has & {"h2", "h3", "h4", "h5", "table"}
    if told and element.tag != "table" and ("summary" in words or main.tag != "body"):
        return False
    return _is_dense(element)


def _is_dense(element: Element) -> bool:
    """More than half of it is links; where little else is on a page, that is its text."""
    return 2 * element.link_chars > element.chars and not (element.has & {"h1", "pre"})


def _is_own_contents(element: Element) -> bool:
    """A list of this page's own headings, which says nothing that they do not."""
    return element.page not in (None, SEVERAL) and 2 * element.link_chars > element.chars


def _by_place(element: Element, main: Element) -> Left:
    """Page headers, footers and asides stand outside of what holds the text."""
    if element.tag not in ("header", "footer", "aside", "address"):
        return ""
    within = _is(main, "main") or any(
        parent.tag in ("main", "article", "section", "blockquote") for parent in _parents(element)
    )
    if element.tag == "aside":
        return "navigation" if not within or _is_dense(element) else ""
    if element.tag == "header":
        return "navigation" if not within and "h1" not in element.has else ""
    if element.tag == "footer":
        return "navigation" if not within or _is_dense(element) or element.chars <= 400 else ""
    return ""


def _holds_enough(best: Element, body: Element) -> bool:
    """A marked part that holds next to nothing of the page is a fault of the page."""
    return 20 * best.chars >= body.chars - body.link_chars or "h1" in best.has


def _outermost(root: Element, mark: str) -> Iterator[Element]:
    """Elements that are what a mark tells of, and in no other that is."""
    stack = [root]
    while stack:
        element = stack.pop()
        below = [c for c in element.children if isinstance(c, Element) and mark in c.has]
        if element is not root and (not below or _is(element, mark)):
            yield element
        else:
            stack += reversed(below)


def _is(element: Element, mark: str) -> bool:
    if mark == "main" and element.get("role") == "main":
        return True
    return element.tag == mark or (mark == "#content" and "id" in element.attrs and all(
        mark not in c.has for c in element.children if isinstance(c, Element)
    ))  # fmt: skip


def _parents(element: Element) -> Iterator[Element]:
    """Those around it, as far as pages nest things on purpose."""
    for _ in range(50):
        if element.parent is None:
            return
        element = element.parent
        yield element


def is_permalink(element: Element) -> bool:
    """Whether an element is the mark beside a heading that leads to it."""
    if element.tag != "a" or element.chars > 8:
        return False
    text = "".join(child for child in element.children if isinstance(child, str)).strip()
    return text in _MARK_SIGNS and not any(isinstance(c, Element) for c in element.children) and (
        element.get("href").startswith("#")
    )  # fmt: skip

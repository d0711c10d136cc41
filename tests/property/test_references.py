"""Any text in any language: references are ranges of it, in order, found in linear time."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragx.algo.chunking.languages import language_of
from ragx.algo.references import (
    Reference,
    Resolver,
    heading_slug,
    matches_heading,
    page_names,
    references,
)

_SUFFIXES = (
    "md rst adoc org txt html tex py js ts tsx vue svelte go rs java kt scala groovy c cpp m cs rb"
    " php dart css sh fish lua proto sol zig jl r hs elm pl mk cmake nix tf json xyz"
)
LANGUAGES = sorted({language_of("x." + suffix) for suffix in _SUFFIXES.split()})
_PIECES = [
    "[",
    "]",
    "(",
    ")",
    "<",
    ">",
    "{",
    "}",
    "`",
    "``",
    "```",
    "~~~",
    "[[",
    "]]",
    "![[",
    "](",
    "][",
    "[x]:",
    "#",
    "|",
    "\\",
    "/",
    "//",
    "/*",
    "*/",
    "#",
    "--",
    "--[[",
    "]]",
    '"',
    "'",
    "'''",
    '"""',
    'r#"',
    '"#',
    "%41",
    "%FF",
    "&",
    "&amp;",
    ":",
    "::",
    "..",
    "...",
    ":doc:",
    ":ref:",
    ".._x:",
    "import",
    "from",
    "use",
    "mod",
    "require",
    "include",
    "using",
    "export",
    "source",
    "@import",
    "#include",
    "link:",
    "xref:",
    "<<",
    ">>",
    "file:",
    "*H",
    "a.md",
    "b/c.py",
    "./x",
    "../y",
    "crate::a",
    "super",
    "<!--",
    "-->",
    "<script",
    "<a",
    "href=",
    "src=",
    "</script>",
    "{{<",
    "ref",
    ">}}",
    "#+begin_src",
    "#+end_src",
    "----",
    "\n",
    "\n\n",
    " ",
    "\t",
    "\r\n",
    "é",
    "日本",
    "\ud800",
    "\x00",
    "\u2028",
    "\\\n",
    "---\n",
]
_TEXTS = st.one_of(
    st.text(max_size=300),
    st.lists(st.sampled_from(_PIECES), max_size=60).map("".join),
    st.lists(st.sampled_from(_PIECES), max_size=40).map(" ".join),
)


@settings(deadline=None, max_examples=300)
@given(text=_TEXTS, language=st.sampled_from(LANGUAGES))
def test_references_are_ranges_in_order(text: str, language: str) -> None:
    found = references(text, language)
    for one in found:
        assert 0 <= one.start < one.end <= len(text)
        assert one.kind in {"link", "import"}
        assert one.form
        assert one.target or one.fragment or one.kind == "link"
    order = [(one.start, one.end) for one in found]
    assert order == sorted(order)
    assert references(text, language) == found


_PATHS = st.lists(
    st.lists(st.sampled_from(["a", "b", "src", "A", "index", "x y"]), min_size=1, max_size=4).map(
        "/".join
    ),
    max_size=12,
).flatmap(
    lambda stems: st.tuples(
        *(
            st.sampled_from([".md", ".py", ".ts", ".rs", ".go", ".h", ""]).map(stem.__add__)
            for stem in stems
        )
    )
)
_FORMS = (
    "path wiki ref include system python js go rust java ruby php php-file csharp dart css shell"
    " lua tex haskell elm perl cmake nix terraform other"
).split()


@settings(deadline=None, max_examples=300)
@given(
    paths=_PATHS,
    target=st.one_of(
        st.text(max_size=20),
        st.lists(
            st.sampled_from(
                ["a", "b", "src", "..", ".", "/", "::", "\\", "A", "index", "*", "@/", "#"]
            ),
            max_size=8,
        ).map("".join),
    ),
    form=st.sampled_from(_FORMS),
    names=st.lists(st.sampled_from(["a", "b", "self", "super"]), max_size=2).map(" ".join),
    source=st.sampled_from(["a/b.md", "x.py", "src/a/mod.rs", "a/b/src/lib.rs"]),
    data=st.data(),
)
def test_what_is_resolved_is_in_the_corpus_whatever_its_order(
    paths: tuple[str, ...],
    target: str,
    form: str,
    names: str,
    source: str,
    data: st.DataObject,
) -> None:
    reference = Reference("link", target, form, names, 0, 1)
    found = Resolver(paths).resolve(reference, source)
    assert set(found) <= set(paths)
    assert len(set(found)) == len(found)
    shuffled = data.draw(st.permutations(paths))
    assert Resolver(shuffled).resolve(reference, source) == found


@settings(deadline=None, max_examples=200)
@given(text=_TEXTS, title=st.text(max_size=40), language=st.sampled_from(LANGUAGES))
def test_page_names_differ(text: str, title: str, language: str) -> None:
    found = page_names("a/01-my-file.md", "---\naliases: [" + text, language, title)
    found += page_names("", text, language, "")[:0]
    keys = [name.text.casefold() for name in found]
    assert len(set(keys)) == len(keys)
    assert all(name.text.strip() for name in found)


@given(heading=st.text(max_size=60))
def test_a_heading_matches_its_own_slug(heading: str) -> None:
    slug = heading_slug(heading)
    if any(map(str.isalnum, slug)):
        assert matches_heading(slug, heading)


_REPEATED = [
    "[",
    "[[",
    "](",
    "[](",
    "[](\\",
    '[](a "',
    "[](a (",
    "[a](<",
    "[x][",
    "[x]: ",
    "![",
    "`",
    "``` ",
    "```\n",
    "> ```\n",
    "~~~\n",
    "\\`",
    "\\",
    "<",
    "<a ",
    "<a href=",
    "<!--",
    "<<",
    "<<a",
    "<script",
    "{{< ref ",
    "{{#include ",
    ":doc:`",
    ":doc:`a <",
    "`a <",
    "::\n a\n",
    ".. x::\n",
    "..  ",
    "[[file:a",
    "file:",
    "xref:",
    "link:",
    "include::",
    "----\n",
    "import (\n",
    "import ",
    "import {",
    "export ",
    "from ",
    "from a import (\n",
    "from . ",
    "'''",
    '"""',
    '\\"',
    '"',
    "'",
    "/*",
    "//",
    "#",
    "#include <",
    'r#"',
    "use {",
    "use a::{",
    "use \n",
    "mod x{",
    "use A\\",
    "using a=",
    "require('",
    "import a.{",
    "@import ",
    '@"',
    "--[[",
    "$(",
    ". ",
    "\\input{",
    "=begin\n",
    "\n",
    " ",
    "\t",
    "a",
    "a ",
    "%41",
    "\n ",
    "> ",
]


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_text_is_slow_to_read(language: str) -> None:
    for piece in _REPEATED:
        text = piece * (200_000 // len(piece))
        began = time.perf_counter()
        references(text, language)
        assert time.perf_counter() - began < 10, (language, piece)


@pytest.mark.parametrize("language", ["markdown", "rst", "org", "asciidoc", "html", "text"])
def test_no_text_is_slow_to_name(language: str) -> None:
    for piece in _REPEATED:
        text = "---\naliases: [" + piece * (200_000 // len(piece))
        began = time.perf_counter()
        page_names("a.md", text, language, text)
        assert time.perf_counter() - began < 10, (language, piece)

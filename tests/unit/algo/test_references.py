"""References read from one text: each syntax with the target, fragment and evidence expected."""

from __future__ import annotations

import pytest

from ragx.algo.references import Reference, references


def read(text: str, language: str) -> list[tuple[str, str, str, str]]:
    """Form, target, fragment and evidence of all references."""
    found = references(text, language)
    assert found == sorted(found, key=lambda one: (one.start, one.end))
    return [(one.form, one.target, one.fragment, text[one.start : one.end]) for one in found]


def targets(text: str, language: str) -> list[str]:
    return [
        one.target + ("#" + one.fragment if one.fragment else "")
        for one in references(text, language)
    ]


@pytest.mark.parametrize(
    ("text", "target", "fragment", "evidence"),
    [
        ("see [Setup](setup.md#linux).", "setup.md", "linux", "[Setup](setup.md#linux)"),
        ('[b](<my file.md> "t")', "my file.md", "", '[b](<my file.md> "t")'),
        ("[b](a.md 'it''s')", "a.md", "", None),
        ("[b](a.md (note))", "a.md", "", "[b](a.md (note))"),
        ("[c](a(b(c)).md)", "a(b(c)).md", "", "[c](a(b(c)).md)"),
        (r"[c](a\(b.md)", "a(b.md", "", r"[c](a\(b.md)"),
        ("[d](a%20b.md)", "a b.md", "", "[d](a%20b.md)"),
        ("[d](caf%C3%A9.md#%C3%A9t%C3%A9)", "café.md", "été", "[d](caf%C3%A9.md#%C3%A9t%C3%A9)"),
        ("[d](a%FFb.md)", "a%FFb.md", "", "[d](a%FFb.md)"),
        ("[d](x.md?plain=1#y)", "x.md", "y", "[d](x.md?plain=1#y)"),
        ("[d](a%3Fb.md)", "a?b.md", "", "[d](a%3Fb.md)"),
        ("[d](a&amp;b.md)", "a&b.md", "", "[d](a&amp;b.md)"),
        ("[d](My notes.md)", "My notes.md", "", "[d](My notes.md)"),
        ("[d](../x/)", "../x/", "", "[d](../x/)"),
        ("[d](/abs/x.md)", "/abs/x.md", "", "[d](/abs/x.md)"),
        ("[s](#here)", "", "here", "[s](#here)"),
        ("![i](x.png)", "x.png", "", "![i](x.png)"),
        ("[`code`](c.md)", "c.md", "", "[`code`](c.md)"),
        ("[a\nb](c.md)", "c.md", "", "[a\nb](c.md)"),
        ("[a [x] b](c.md)", "c.md", "", "[a [x] b](c.md)"),
        ("[f](a.py:12)", "a.py:12", "", "[f](a.py:12)"),
        ("at <docs/a.md#x> now", "docs/a.md", "x", "<docs/a.md#x>"),
        ('<a class="x" href="h.html#q">y</a>', "h.html", "q", '<a class="x" href="h.html#q">'),
        ("<IMG SRC='i.md'/>", "i.md", "", "<IMG SRC='i.md'/>"),
        ('{{< ref "r.md#x" >}}', "r.md", "x", '{{< ref "r.md#x" >}}'),
        ("{% link _posts/p.md %}", "_posts/p.md", "", "{% link _posts/p.md %}"),
        ("{{#include ../c.rs:5:9}}", "../c.rs", "", "{{#include ../c.rs:5:9}}"),
        ("> - [q](q.md)", "q.md", "", "[q](q.md)"),
        ("[[1]](num.md)", "num.md", "", "[[1]](num.md)"),
    ],
)
def test_a_markdown_link(text: str, target: str, fragment: str, evidence: str | None) -> None:
    if evidence is None:
        assert read(text, "markdown") == []
    else:
        assert read(text, "markdown") == [("path", target, fragment, evidence)]


@pytest.mark.parametrize(
    ("text", "target", "fragment", "evidence"),
    [
        ("[[Page]]", "Page", "", "[[Page]]"),
        ("[[ Page ]]", "Page", "", "[[ Page ]]"),
        ("[[Page#Heading|alias]]", "Page", "Heading", "[[Page#Heading|alias]]"),
        ("[[Page#Part#Detail]]", "Page", "Detail", "[[Page#Part#Detail]]"),
        ("[[folder/Page]]", "folder/Page", "", "[[folder/Page]]"),
        ("![[embed]]", "embed", "", "![[embed]]"),
        ("[[#Heading]]", "", "Heading", "[[#Heading]]"),
        ("[[Page#^id]]", "Page", "", "[[Page#^id]]"),
        (r"| [[Page\|alias]] |", "Page", "", r"[[Page\|alias]]"),
        ("[[Note: a 100%]]", "Note: a 100%", "", "[[Note: a 100%]]"),
        ("[see [[Page]]](http://x)", "Page", "", "[[Page]]"),
    ],
)
def test_a_wiki_link(text: str, target: str, fragment: str, evidence: str) -> None:
    assert read(text, "markdown") == [("wiki", target, fragment, evidence)]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "plain text, [ ] and [x] and [^1]",
        "[x](http://a.b/c.md) [m](mailto:x@y) [p](//h/x) [w](C:\\x.md) [d](data:text/plain,x)",
        "<http://x> <x@y.org> <div> <T> [[https://x]] [[#^id]] [[]] [[ ]]",
        "`[no](no.md)` and ``a ` [no](no.md)`` and ```[no](no.md)```",
        "`[no](no.md)\n[no](no.md)`",
        "```\n[no](no.md)\n```",
        "~~~~ md\n```\n[no](no.md)\n~~~\n~~~~",
        "```py\n[no](no.md)\n````",
        "- ```\n  [[no]]\n  ```",
        "> ```\n> [no](no.md)",
        "````\n```\n[no](no.md)\n",
        "<!-- [no](no.md)\n\n[[no]] -->",
        r"\[no](no.md)",
        r"[no\](no.md)",
        "[no\n\nno](no.md)",
        "[no] (no.md)",
        "[no]()",
        "[no](<>)",
        "[no](a b c)",
        "[^1]: foot.md",
        "[[no\nno]]",
    ],
)
def test_no_markdown_link(text: str) -> None:
    assert read(text, "markdown") == []


def test_what_follows_code_is_read_again() -> None:
    text = "> ```\n> [no](no.md)\n\n[a](a.md) `x` [b](b.md) `` ` `` [c](c.md) lone ` [d](d.md)\n\n`"
    assert targets(text, "markdown") == ["a.md", "b.md", "c.md", "d.md"]
    assert targets(r"\`[a](a.md)`", "markdown") == ["a.md"]
    assert targets("```\nx\n```\r\n[a](a.md)", "markdown") == ["a.md"]


def test_reference_links_are_their_uses() -> None:
    text = (
        "[t][My  Id], [my id][], [MY\nID], ![i][my id] and [`x`][]; [none][other]\n\n"
        '[my id]: dest.md#z "Title"\n[my id]: second.md\n[`x`]: <code file.md>\n'
        "[unused]: other.md\n[prose]: this is no definition\n[url]: http://x\n"
    )
    assert read(text, "markdown") == [
        ("path", "dest.md", "z", "[t][My  Id]"),
        ("path", "dest.md", "z", "[my id][]"),
        ("path", "dest.md", "z", "[MY\nID]"),
        ("path", "dest.md", "z", "![i][my id]"),
        ("path", "code file.md", "", "[`x`][]"),
        ("path", "other.md", "", "[unused]: other.md"),
    ]


def test_links_do_not_nest_but_images_in_links_do() -> None:
    assert targets("[a [b](in.md) c](out.md)", "markdown") == ["in.md"]
    assert targets("[![img](pic.png)](outer.md)", "markdown") == ["outer.md", "pic.png"]


def test_myst_directives_and_mdx_imports() -> None:
    text = (
        "```{include} inc.md\n```\n```{toctree}\n:maxdepth: 2\nintro\nTitle <guide/x>\n"
        "http://x\n```\nimport X from './x.mdx'\nimport nothing\n"
    )
    assert read(text, "markdown") == [
        ("path", "inc.md", "", "```{include} inc.md"),
        ("path", "intro", "", "intro"),
        ("path", "guide/x", "", "Title <guide/x>"),
        ("js", "./x.mdx", "", "import X from './x.mdx'"),
    ]


def test_kinds() -> None:
    assert references("[a](b.md)", "markdown") == [Reference("link", "b.md", "path", "", 0, 9)]
    assert references("import a", "python") == [Reference("import", "a", "python", "", 0, 8)]


def test_html() -> None:
    text = (
        "<a href='a.html?x#y'>t</a><script src=\"m.js\">'<a href=\"no.html\">'</script>"
        "<!-- <a href=no.html> --><link rel=x href=s.css><a href='mailto:x'><a data-href='no'>"
        "<a\nhref=b.html>`<a href=c.html>`"
    )
    assert targets(text, "html") == ["a.html#y", "m.js", "s.css", "b.html", "c.html"]


def test_rst() -> None:
    text = """:doc:`/a/b` :doc:`text <a/b>` :ref:`lab` :ref:`t <lab2>` `text <path.rst>`_
``:doc:`no` `` `x <http://a>`_ :py:class:`~a.b.C` :mod:`a.b` :func:`f`

.. include:: inc.txt
.. literalinclude:: c.py
   :lines: 1-3
.. include:: <isonum.txt>
.. toctree::
   :maxdepth: 2

   one
   Two <two/x>
   self
   glob/*
   http://x

.. _name: path.rst
.. _label:
.. _other: label_

.. comment :doc:`no`
   :doc:`no`

code::

   :doc:`no`

.. code-block:: x

   :doc:`no`

.. automodule:: p.q
.. autoclass:: p.q.R
.. note:: :doc:`yes`
   :doc:`also`
"""
    assert read(text, "rst") == [
        ("path", "/a/b", "", ":doc:`/a/b`"),
        ("path", "a/b", "", ":doc:`text <a/b>`"),
        ("ref", "lab", "", ":ref:`lab`"),
        ("ref", "lab2", "", ":ref:`t <lab2>`"),
        ("path", "path.rst", "", "`text <path.rst>`_"),
        ("python", "a.b", "C", ":py:class:`~a.b.C`"),
        ("python", "a.b", "", ":mod:`a.b`"),
        ("path", "inc.txt", "", ".. include:: inc.txt"),
        ("path", "c.py", "", ".. literalinclude:: c.py"),
        ("path", "one", "", "one"),
        ("path", "two/x", "", "Two <two/x>"),
        ("path", "path.rst", "", ".. _name: path.rst"),
        ("python", "p.q", "", ".. automodule:: p.q"),
        ("python", "p.q", "R", ".. autoclass:: p.q.R"),
        ("path", "yes", "", ":doc:`yes`"),
        ("path", "also", "", ":doc:`also`"),
    ]


def test_org() -> None:
    text = (
        "[[file:x.org::*Heading][desc]] [[./y.org]] [[*H]] [[#cid]] [[id:abc][x]] [[https://x]]\n"
        "[[file:z.org::12]] file:p.org, [[a.org]] [[fuzzy text]]\n"
        '#+INCLUDE: "i.org" src\n#+begin_src\n[[file:no.org]]\n#+end_src\n[[file:e.org]]'
    )
    assert read(text, "org") == [
        ("path", "x.org", "Heading", "[[file:x.org::*Heading][desc]]"),
        ("path", "./y.org", "", "[[./y.org]]"),
        ("path", "", "H", "[[*H]]"),
        ("path", "", "cid", "[[#cid]]"),
        ("path", "z.org", "", "[[file:z.org::12]]"),
        ("path", "p.org", "", "file:p.org"),
        ("path", "a.org", "", "[[a.org]]"),
        ("path", "", "fuzzy text", "[[fuzzy text]]"),
        ("path", "i.org", "", '#+INCLUDE: "i.org"'),
        ("path", "e.org", "", "[[file:e.org]]"),
    ]


def test_asciidoc() -> None:
    text = (
        "link:x.html[t] xref:x.adoc#id[..] <<y.adoc#id,text>> <<id,text>> <<id2>> xref:id3[]\n"
        "link:http://x[] xref:mod:page.adoc#f[p]\ninclude::{dir}/inc.adoc[]\n"
        "----\n<<no>>\ninclude::code.py[lines=1]\n----\n// <<no>>\n<<z.adoc>>\n"
    )
    assert read(text, "asciidoc") == [
        ("path", "x.html", "", "link:x.html[t]"),
        ("path", "x.adoc", "id", "xref:x.adoc#id[..]"),
        ("path", "y.adoc", "id", "<<y.adoc#id,text>>"),
        ("path", "", "id", "<<id,text>>"),
        ("path", "", "id2", "<<id2>>"),
        ("path", "", "id3", "xref:id3[]"),
        ("wiki", "page.adoc", "f", "xref:mod:page.adoc#f[p]"),
        ("path", "inc.adoc", "", "include::{dir}/inc.adoc[]"),
        ("path", "code.py", "", "include::code.py[lines=1]"),
        ("path", "z.adoc", "", "<<z.adoc>>"),
    ]


def test_python() -> None:
    text = '''import a.b as c, d
from . import x
from ..a import (b, c as d,  # comment (x)
    e)
"""
import no
"""
# import no
def f():
    import g.h; import i
    x = r"""\\"""; y = "'"; z = 'import no'
from no import no
"""
    from j import *
    from k import \\
        l, m
try: import n
except ImportError: pass
from .importlib import q
from ... import r
yield from x
raise A from importlib
"import no"
'''
    text = text.replace('x = r"""\\"""', 'x = """')
    assert read(text, "python") == [
        ("python", "a.b", "", "import a.b as c, d"),
        ("python", "d", "", "import a.b as c, d"),
        ("python", ".", "x", "from . import x"),
        ("python", "..a", "b c e", "from ..a import (b, c as d,  # comment (x)\n    e)"),
        ("python", "g.h", "", "import g.h"),
        ("python", "i", "", "import i"),
        ("python", "j", "", "from j import *"),
        ("python", "k", "l m", "from k import \\\n        l, m"),
        ("python", "n", "", "import n"),
        ("python", ".importlib", "q", "from .importlib import q"),
        ("python", "...", "r", "from ... import r"),
    ]


def test_python_with_windows_line_ends() -> None:
    text = "from a import (\r\n    b,\r\n    c,\r\n)\r\nimport d\r\n"
    assert targets(text, "python") == ["a#b c", "d"]


JAVASCRIPT = """import D, {a as b, type T} from './x'
import './side.css'
import * as ns from "ns/y"
export * from './z'; export { q } from './q';
export const from2 = 1
const r = require('./r'), i = await import('./dyn'); /* import no from 'no' */
// import no from 'no'
const s = "import no from 'no'"; const t = `import x from 'no'`
import type { U } from './u.js'
import {
  // c
  v,
  w, } from './vw?raw'
a.import('no'); import fs from 'node:fs'; import x = require('./tsreq')
export { default } from './d'
export default function () { return Array.from('abc') }
"""


@pytest.mark.parametrize("language", ["javascript", "typescript", "tsx"])
def test_javascript(language: str) -> None:
    assert read(JAVASCRIPT, language) == [
        ("js", "./x", "D a T", "import D, {a as b, type T} from './x'"),
        ("js", "./side.css", "", "import './side.css'"),
        ("js", "ns/y", "", 'import * as ns from "ns/y"'),
        ("js", "./z", "", "export * from './z'"),
        ("js", "./q", "q", "export { q } from './q'"),
        ("js", "./r", "", "require('./r')"),
        ("js", "./dyn", "", "import('./dyn')"),
        ("js", "./u.js", "U", "import type { U } from './u.js'"),
        ("js", "./vw", "v w", "import {\n  // c\n  v,\n  w, } from './vw?raw'"),
        ("js", "./tsreq", "", "require('./tsreq')"),
        ("js", "./d", "", "export { default } from './d'"),
    ]


@pytest.mark.parametrize("language", ["vue", "svelte"])
def test_components(language: str) -> None:
    text = (
        "<template><a>don't ` import no from 'no'</a></template>\n<script setup lang='ts'>\n"
        "import X from './X.vue'\n</script>\n<style src='./s.css'>\n@import './t.css';\n</style>"
    )
    assert targets(text, language) == ["./X.vue#X", "./s.css", "./t.css"]


def test_go() -> None:
    text = (
        'package x // import "no"\nimport "fmt"\nimport m "a/b"\nimport (\n\t"c/d" // x )\n'
        '\te "f/g"\n\t_ "h"\n\t. "i"\n\t// "no"\n)\nfunc f() { import "no" }\nvar s = "no"\n'
    )
    assert read(text, "go") == [
        ("go", "fmt", "", 'import "fmt"'),
        ("go", "a/b", "", 'import m "a/b"'),
        ("go", "c/d", "", '"c/d"'),
        ("go", "f/g", "", 'e "f/g"'),
        ("go", "h", "", '_ "h"'),
        ("go", "i", "", '. "i"'),
    ]


def test_rust() -> None:
    text = """use crate::a::b::{c, d as e, f::{g, h}, self};
pub use super::x;
use r#try::*;
mod y; pub(crate) mod z;
#[cfg(test)] mod t { use super::*; use super::super::w; use crate::q; use self::no; }
extern crate foo;
use bar;
// use no::no;
let s = "use no::x;"; let r = r#"
use no::y; "#; let c = '"'; fn f<'a>() { use inner::k; }
const X: &str = include_str!("x.md");
"""
    assert [(form, target, names) for form, target, names, _ in read(text, "rust")] == [
        ("rust", "crate::a::b", "c d"),
        ("rust", "crate::a::b::f", "g h"),
        ("rust", "crate::a", "b"),
        ("rust", "super", "x"),
        ("rust", "try", ""),
        ("rust", "self::y", ""),
        ("rust", "self::z", ""),
        ("rust", "self", ""),
        ("rust", "super", "w"),
        ("rust", "crate", "q"),
        ("rust", "foo", ""),
        ("rust", "bar", ""),
        ("rust", "inner", "k"),
        ("include", "x.md", ""),
    ]
    assert read(text, "rust")[3][3] == "use super::x;"


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        (
            "java",
            (
                "import a.b.C;\nimport static a.b.D.m;\nimport static a.b.E.*;\nimport a.b.*;\n"
                '/* import no.X; */ // import no.Y;\nString s = "import no.Z;";'
            ),
            ["a.b.C", "a.b.D#m", "a.b.E", "a.b.*"],
        ),
        ("kotlin", "import a.b.C as D\nimport a.b.f\n", ["a.b.C", "a.b.f"]),
        (
            "scala",
            "import a.b.{C, D => E, _}\nimport a.b._\n",
            ["a.b.C", "a.b.D", "a.b.*", "a.b.*"],
        ),
        ("groovy", "import a.b.C\n", ["a.b.C"]),
        (
            "c",
            (
                '#include "x.h"\n  # include <y/z.h>\n// #include "no"\n/*\n#include "no"\n*/\n'
                'char c=\'"\';\n#include "p.h"\n#define X "#include"\n'
            ),
            ["x.h", "y/z.h", "p.h"],
        ),
        ("cpp", '#include <vector>\nint x = 1\'000;\n#include "a.hpp"', ["vector", "a.hpp"]),
        ("objc", '#import "o.h"\n#import <F/G.h>', ["o.h", "F/G.h"]),
        (
            "csharp",
            (
                "using A.B;\nusing static C.D;\nglobal using E;\nusing F = G.H;\n"
                'using (var x = 1) {}\nusing var y = z;\n// using No;\nvar s = @"\nusing No;";'
            ),
            ["A.B", "C.D", "E", "G.H"],
        ),
        (
            "ruby",
            (
                "require_relative 'a/b'\nrequire \"c/d\"\nload('e.rb')\nautoload :X, 'f/g'\n"
                "# require 'no'\n=begin\nrequire 'no'\n=end\nrequire \"#{no}\"\n"
            ),
            ["./a/b", "c/d", "e.rb", "f/g"],
        ),
        (
            "php",
            (
                "<?php\nrequire __DIR__ . '/x.php';\ninclude_once('y.php');\nuse A\\B\\C;\n"
                "use A\\{D, E\\F as G};\nuse function A\\fn;\nuse X\\Y, X\\Z;\nclass Q { use Tr; }"
                "\n$f = function() use ($x) {};\n// use No\\A;\n# use No\\B;\n"
            ),
            ["x.php", "y.php", "A\\B\\C", "A\\D", "A\\E\\F", "A\\fn", "X\\Y", "X\\Z", "Tr"],
        ),
        (
            "dart",
            (
                "import 'package:foo/x.dart' show A, B;\nimport 'dart:io';\nexport 'z.dart';\n"
                "part 'p.dart';\npart of 'q.dart';\npart of lib;\n// import 'no';\n"
            ),
            ["package:foo/x.dart#A B", "z.dart", "p.dart", "q.dart"],
        ),
        (
            "lua",
            (
                "local a = require 'x.y'\nrequire(\"z\")\n-- require 'no'\n--[[ require 'no' ]]\n"
                "s = [[ require 'no' ]]"
            ),
            ["x.y", "z"],
        ),
        (
            "bash",
            (
                'source x.sh\n. ./y.sh\n. "$(dirname "$0")/lib/z.sh"\nsource "${DIR}/w.sh"\n'
                "[ -f q ] && . q.sh\n# . no\necho ./no.sh\nsource $no\n"
            ),
            ["x.sh", "./y.sh", "lib/z.sh", "w.sh", "q.sh"],
        ),
        (
            "css",
            (
                '@import "a.css"; @import url(b.css); @import url("c.css") screen;'
                "@use \"sass:math\"; @use 'd';/* @import \"no\"; */ @import 'e', 'f'; @import url(http://x);"
            ),
            ["a.css", "b.css", "c.css", "d", "e", "f"],
        ),
        ("tex", "\\input{a} % \\input{no}\n\\bibliography{b,c}\n% \\include{no}", ["a", "b", "c"]),
        (
            "protobuf",
            'import "a/b.proto";\nimport public "c.proto";\n// import "no";',
            ["a/b.proto", "c.proto"],
        ),
        ("solidity", 'import {A} from "./A.sol";\nimport "b.sol";', ["./A.sol", "b.sol"]),
        ("zig", 'const a = @import("a.zig");\n// @import("no.zig")', ["a.zig"]),
        ("julia", 'include("a.jl")\n# include("no.jl")', ["a.jl"]),
        ("r", "x <- source('a.R')\n# source('no.R')", ["a.R"]),
        ("haskell", "import qualified Data.X as X\nimport Y (f)\n-- import No", ["Data.X", "Y"]),
        ("elm", "import Page.Home exposing (view)", ["Page.Home"]),
        ("perl", "use A::B;\nuse strict;\nrequire C;\n# use No;", ["A::B", "C"]),
        ("makefile", "include a.mk\n-include b.mk\n# include no", ["a.mk", "b.mk"]),
        (
            "cmake",
            "add_subdirectory(src)\ninclude(cmake/x.cmake)\n# include(no)",
            ["src", "cmake/x.cmake"],
        ),
        ("nix", "{ imports = [\n  ./a.nix ];\n  x = import ./c; }\n# ./no", ["./a.nix", "./c"]),
        ("terraform", 'module "m" {\n  source = "./m"\n}\nsource = "hashicorp/x"', ["./m"]),
        ("swift", "import Foundation", []),
        ("json", '{"a": "[x](y.md)"}', []),
        ("no such language", "import a [x](y.md)", []),
    ],
)
def test_other_languages(language: str, text: str, expected: list[str]) -> None:
    assert targets(text, language) == expected


def test_a_text_file_is_read_as_markdown() -> None:
    assert targets("see [a](b.md) and [[c]]", "text") == ["b.md", "c"]

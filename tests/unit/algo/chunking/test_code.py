"""Source code: definitions, names, paths, and the ways back when there is no syntax tree."""

from __future__ import annotations

import pytest

from ragx.algo.chunking import ChunkOptions, EstimatedSizer, chunk_text
from ragx.algo.chunking.code import code_units
from ragx.algo.chunking.grammars import GRAMMARS, load_grammar
from ragx.algo.chunking.lines import Source
from ragx.types import Span


def chunk(text: str, language: str, size: int = 200) -> list[Span]:
    return chunk_text(
        text,
        language=language,
        sizer=EstimatedSizer(text),
        options=ChunkOptions(size_tokens=size),
    )


def symbols(text: str, language: str) -> set[str]:
    return {name for span in chunk(text, language, 10_000) for name in span.symbols}


SAMPLES = {
    "python": (
        (
            "import os\nX: int = 1\nA, B = 1, 2\n@d\ndef f():\n    y = 2\n\n\nclass C(Base):\n"
            "    z = 3\n\n    @property\n    def m(self):\n        pass\n\n\n"
            "if os.name == 'nt':\n    def g(): pass\nelse:\n    def h(): pass\n"
        ),
        {"X", "A", "B", "f", "C", "m", "g", "h"},
    ),
    "javascript": (
        (
            "export default class Foo extends B { x = () => 1; n = 2; get a() {} }\n"
            "export const c = 1, {skipped} = {};\nfunction f() { const inner = 1; }\n"
            "module.exports.g = function () {};\nexports.k = 3;\nFoo.prototype.bar = () => {};\n"
            "other.thing = 5;\n"
        ),
        {"Foo", "x", "a", "c", "f", "g", "k", "bar"},
    ),
    "typescript": (
        (
            "export abstract class A<T> { x: number = 1; @Dec() foo(): void {}"
            " abstract q(): void; }\n"
            "namespace N.M { export function f() {} }\nexport type T = string;\nenum E { V }\n"
            "export interface I { m(): void }\ndeclare function d(): void;\n"
        ),
        {"A", "foo", "q", "f", "T", "E", "I", "d"},
    ),
    "tsx": ("export const App = () => <div>hi</div>;\n", {"App"}),
    "go": (
        (
            "package p\nconst (\n\tA = 1\n\tB\n)\nvar x, y int\ntype T struct{}\n"
            "type (\n\tU = T\n)\n"
            "func (s *Server[T]) Start() {}\nfunc f() { var inner int }\n"
        ),
        {"A", "B", "x", "y", "T", "U", "Start", "f"},
    ),
    "rust": (
        (
            "/// doc\n#[derive(X)]\npub struct S;\nimpl<T> Foo for Bar<T> { fn x(&self) {} }\n"
            "mod a { pub fn b() {} }\ntrait T { fn d(); }\nconst Q: i32 = 1;\n"
            "macro_rules! m { () => {} }\n"
        ),
        {"S", "x", "b", "T", "d", "Q", "m"},
    ),
    "java": (
        (
            "package p;\npublic class C { static final int X = 1; int y; C() {} void m() {}\n"
            "  enum E { A; void q() {} } }\ninterface I { int Z = 1; void n(); }\n"
            "record R(int a) {}\n"
        ),
        {"C", "X", "m", "E", "q", "I", "Z", "n", "R"},
    ),
    "c": (
        (
            "#ifndef A_H\n#define A_H\n#define MAX(a) a\n#define N 3\n"
            "typedef struct foo { int x; } foo_t;\n"
            "struct bar { int a; };\nenum e { V };\nstatic const int K = 3, *p;\nint proto(int);\n"
            "static int *g(int a) { int inner = 0; return 0; }\n#endif\n"
        ),
        {"MAX", "N", "foo", "foo_t", "bar", "e", "K", "p", "g"},
    ),
    "cpp": (
        (
            "namespace a::b { template <class T> class Foo : B {"
            " public: int m() const { return 1; }\n"
            "~Foo() {} bool operator==(const Foo &o) { return true; } }; }\n"
            "void ns::Foo::bar() {}\n"
            "using X = int;\ntemplate <class T> T max(T a) { return a; }\nenum class E { V };\n"
            "int &h() { static int i; return i; }\n"
        ),
        {"Foo", "m", "~Foo", "operator==", "bar", "X", "max", "E", "h"},
    ),
    "csharp": (
        (
            "namespace A.B { public class C { const int X = 1; int y; public int P { get; set; }\n"
            "public C() {} void M() {} } }\nrecord R(int A);\n"
        ),
        {"C", "X", "P", "M", "R"},
    ),
    "ruby": (
        (
            "module A\n  class B < C\n    X = 1\n    def m; end\n    def self.s; end\n"
            "    class << self\n      def t; end\n    end\n  end\nend\nclass A::D; end\n"
        ),
        {"A", "B", "X", "m", "s", "t", "D"},
    ),
    "php": (
        (
            "<?php\nnamespace A\\B;\nconst Q = 1;\n#[Attr]\nfinal class C { const Z = 2;"
            " public function m() {} }\nfunction f() {}\nenum E { case V; }\n"
        ),
        {"Q", "C", "Z", "m", "f", "E"},
    ),
    "bash": (
        "X=1\nreadonly Y=2\nf() { local z=1; }\nfunction g { echo; }\n",
        {"X", "Y", "f", "g"},
    ),
    "kotlin": (
        (
            "data class P(val x: Int)\n\nfun main() {\n    val inner = 1\n}\n\nobject O {\n"
            "    suspend fun go() {}\n}\nval TOP = 1\nenum class Color { RED }\nconst val MAX = 3\n"
            "fun <T> first(x: T) = x\n"
        ),
        {"P", "main", "O", "go", "TOP", "Color", "MAX", "first"},
    ),
    "swift": ("public protocol P {}\nextension S: P {\n  func f() {}\n}\n", {"P", "S", "f"}),
    "scala": ("case class A(b: Int)\nobject O {\n  def f = 1\n}\n", {"A", "O", "f"}),
    "ocaml": ("let rec map f = f\nlet one = 1\n", {"map", "one"}),
    "lua": ("local function f() end\nfunction M.g() end\n", {"f", "M.g"}),
    "haskell": (
        "module Main where\ndata T = T\nfoo :: Int -> Int\nfoo x = x\n",
        {"Main", "T", "foo"},
    ),
    "elixir": ("defmodule A.B do\n  def f(x), do: x\nend\n", {"A.B", "f"}),
    "zig": ("pub fn main() void {}\nconst S = struct {};\n", {"main", "S"}),
    "sql": (
        "CREATE TABLE IF NOT EXISTS users (id int);\ncreate or replace function f() returns int\n",
        {"users", "f"},
    ),
    "makefile": ("all: build\nbuild:\n\tgo build\nX := 1\n", {"all", "build"}),
}


@pytest.mark.parametrize("language", sorted(SAMPLES))
def test_symbols(language: str) -> None:
    text, expected = SAMPLES[language]
    assert symbols(text, language) == expected


def test_bash_is_cut_without_its_grammar() -> None:
    assert "bash" not in GRAMMARS
    body = "  call one two three\n" * 20
    text = f"#!/bin/sh\nset -e\n\nf() {{\n{body}}}\n\nfunction g {{\n{body}}}\n"
    assert [span.breadcrumb for span in chunk(text, "bash", 120)] == [("f",), ("g",)]


@pytest.mark.parametrize("language", sorted(GRAMMARS))
def test_every_grammar_loads(language: str) -> None:
    assert load_grammar(language) is not None


BODY = "".join(f"        value_{n} = compute({n}, other={n})\n" for n in range(10))
CLASS = (
    '"""Doc."""\n\nimport os\nimport sys\n\n\n'
    "# About Foo.\n@decorated\nclass Foo:\n"
    '    """Foo\'s own doc."""\n\n'
    f"    # About bar.\n    @deco\n    def bar(self):\n{BODY}\n"
    f"    def baz(self):\n{BODY}\n\n"
    f"def tail():\n{BODY}"
)


def test_class_is_cut_at_methods_with_comments_and_decorators() -> None:
    found = [
        (span.breadcrumb, span.symbols, CLASS[span.start : span.end].split("\n", maxsplit=1)[0])
        for span in chunk(CLASS, "python", 130)
    ]
    assert found == [
        (("Foo",), ("Foo",), '"""Doc."""'),  # too little before the class to stand alone
        (("Foo", "bar"), ("bar",), "    # About bar."),
        (("Foo", "baz"), ("baz",), "    def baz(self):"),
        (("tail",), ("tail",), "def tail():"),
    ]


def test_long_function_keeps_its_head_with_its_first_statements() -> None:
    text = f"def f(a):\n{BODY * 3}"
    spans = chunk(text, "python", 130)
    assert text[spans[0].start :].startswith("def f(a):\n        value_0")
    assert {span.breadcrumb for span in spans} == {("f",)}
    assert [span.symbols for span in spans] == [("f",)] + [()] * (len(spans) - 1)
    assert all(text[span.start - 1] == "\n" for span in spans[1:])


def test_small_definitions_are_packed_and_big_ones_stand_alone() -> None:
    small = "".join(f"def s{n}():\n    return {n}\n\n\n" for n in range(4))
    text = f"{small * 3}def big():\n{BODY}"
    assert [(span.breadcrumb, span.symbols) for span in chunk(text, "python", 170)] == [
        ((), ("s0", "s1", "s2", "s3")),  # three times over
        (("big",), ("big",)),
    ]


def test_functions_inside_a_wrapper_are_found_on_the_way_down() -> None:
    inner = "".join(
        f"  function part{n}() {{\n" + f"    return call({n}, {n});\n" * 10 + "  }\n"
        for n in range(3)
    )
    text = "(function (root) {\n" + inner + "})(this);\n"
    spans = chunk(text, "javascript", 120)
    assert [name for span in spans for name in span.symbols] == ["part0", "part1", "part2"]


def test_go_method_path_names_its_receiver() -> None:
    text = "package p\n\nfunc (s *Server[T]) Start() {\n" + "\ts.run(1, 2, 3)\n" * 40 + "}\n"
    assert ("Server", "Start") in {span.breadcrumb for span in chunk(text, "go", 120)}


def test_namespaces_and_outside_definitions_are_in_the_path() -> None:
    body = "  call(1, 2, 3);\n" * 40
    text = f"namespace a {{\nvoid Foo::bar() {{\n{body}}}\n}}\n"
    assert chunk(text, "cpp", 120)[-1].breadcrumb == ("a", "Foo", "bar")


def test_trailing_comment_stays_on_its_row_and_doc_comment_with_its_function() -> None:
    text = "int a = 1; // about a\n\n/* about f */\nint f() {\n" + "  g(1);\n" * 60 + "}\n"
    starts = [text[span.start : span.start + 10] for span in chunk(text, "c", 100)]
    assert "/* about f" in starts
    assert not any(start.startswith("// about a") for start in starts)


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_line_ends_do_not_move_the_cuts(end: str) -> None:
    changed = CLASS.replace("\n", end)
    spans = chunk(changed, "python", 130)
    plain = chunk(CLASS, "python", 130)
    assert [(s.breadcrumb, s.symbols) for s in spans] == [(s.breadcrumb, s.symbols) for s in plain]
    assert [changed[s.start : s.end].replace(end, "\n") for s in spans] == [
        CLASS[s.start : s.end] for s in plain
    ]


def test_non_ascii_source_is_cut_at_the_same_rows() -> None:
    changed = CLASS.replace("Doc", "D\u00f6c \U0001f418").replace("compute", "r\u00e9sum\u00e9")
    assert [s.breadcrumb for s in chunk(changed, "python", 140)] == [
        s.breadcrumb for s in chunk(CLASS, "python", 140)
    ]


@pytest.mark.parametrize(
    "text",
    [
        "trait fallback_only\n" + ")]}{[( ;; ++ --\n" * 40,  # mostly errors
        "trait fallback_only\n" + "x" * 100_000,  # minified
        "trait fallback_only\n" + "a = 1\n" * 200_000,  # over a megabyte
        "trait fallback_only\n" + "<!--\n" * 20_000,  # error recovery explodes
    ],
)
def test_indentation_is_the_fallback(text: str) -> None:
    source = Source(text, EstimatedSizer(text), ChunkOptions())
    _, names = code_units(source, "python")
    # Only the light patterns of the fallback know the keyword `trait`.
    assert (0, "fallback_only") in names


def test_deep_nesting_is_survived() -> None:
    for text in (
        "[" * 100_000,
        "[\n" * 30_000 + "]\n" * 30_000,
        "f(" * 50_000,
        "{" * 100_000,
        "function f() {\n" * 5000,
    ):
        for language in ("python", "javascript"):
            spans = chunk(text, language)
            assert sum(span.end - span.start for span in spans) >= len(text) / 2


def test_fallback_cuts_at_unindented_rows_below_blank_ones() -> None:
    body = "    doSomething(1, 2, 3)\n" * 12
    text = "".join(f"fun part{n}() {{\n{body}\n{body}}}\n\n" for n in range(3))
    spans = chunk(text, "kotlin", 250)
    assert [(span.breadcrumb, span.symbols) for span in spans] == [
        ((f"part{n}",), (f"part{n}",)) for n in range(3)
    ]


def test_unknown_language_counts_as_code_without_a_grammar() -> None:
    assert chunk("def f\n", "no such language")[0].symbols == ("f",)

"""Resolution of references, rule by rule, on small corpora."""

from __future__ import annotations

import random
import time

import pytest

from ragx.algo.references import Reference, Resolver


def resolve(
    paths: str,
    source: str,
    target: str,
    form: str = "path",
    fragment: str = "",
    names: dict[str, list[str]] | None = None,
    roots: dict[str, str] | None = None,
) -> str:
    """The paths found, joined by a space; the source is part of the corpus."""
    reference = Reference("link", target, form, fragment, 0, 1)
    corpus = [*paths.split(), source]
    resolver = Resolver(corpus, names=names, roots=roots)
    found = resolver.resolve(reference, source)
    random.Random(7).shuffle(corpus)
    assert Resolver(corpus, names=names, roots=roots).resolve(reference, source) == found
    assert resolver.resolve(reference, source) == found
    return " ".join(found)


DOCS = (
    "README.md docs/setup.md docs/guide/index.md docs/guide/Intro.md docs/api.rst"
    " docs/ref/README.md docs/dup.md docs/Dup.md other/page.adoc src/a.py docs/v1.2.md"
    " site/built.html"
)


@pytest.mark.parametrize(
    ("target", "source", "expected"),
    [
        ("setup.md", "docs/x.md", "docs/setup.md"),
        ("./setup.md", "docs/x.md", "docs/setup.md"),
        ("../README.md", "docs/x.md", "README.md"),
        ("../../README.md", "docs/x.md", ""),
        ("../docs/../../x", "docs/x.md", ""),
        ("/docs/setup.md", "docs/guide/x.md", "docs/setup.md"),
        ("/setup.md", "docs/guide/x.md", "docs/setup.md"),  # the site's root is `docs`
        ("/setup", "other/x.md", ""),
        ("setup", "docs/x.md", "docs/setup.md"),
        ("api", "docs/x.md", "docs/api.rst"),
        ("v1.2", "docs/x.md", "docs/v1.2.md"),
        ("../other/page", "docs/x.md", "other/page.adoc"),
        ("guide/", "docs/x.md", "docs/guide/index.md"),
        ("guide", "docs/x.md", "docs/guide/index.md"),
        ("ref/", "docs/x.md", "docs/ref/README.md"),
        ("..", "docs/x.md", "README.md"),
        ("/", "docs/x.md", "README.md"),
        ("setup.html", "docs/x.md", "docs/setup.md"),
        ("api.html", "docs/x.md", "docs/api.rst"),
        ("guide/index.html", "docs/x.md", "docs/guide/index.md"),
        ("../site/built.html", "docs/x.md", "site/built.html"),
        ("SETUP.md", "docs/x.md", "docs/setup.md"),
        ("Setup", "docs/x.md", "docs/setup.md"),
        ("guide/intro.md", "docs/x.md", "docs/guide/Intro.md"),
        ("Dup.md", "docs/x.md", "docs/Dup.md"),
        ("dup.md", "docs/x.md", "docs/dup.md"),
        ("DUP.md", "docs/x.md", ""),  # two files differ in case alone
        ("setup.md?plain=1", "docs/x.md", "docs/setup.md"),
        ("../src/a.py:12", "docs/x.md", "src/a.py"),
        ("../src/a.py:12:3", "docs/x.md", "src/a.py"),
        ("guide\\Intro.md", "docs/x.md", "docs/guide/Intro.md"),
        ("@site/docs/setup.md", "docs/x.md", "docs/setup.md"),
        ("nothing.md", "docs/x.md", ""),
        ("", "docs/x.md", "docs/x.md"),
    ],
)
def test_paths(target: str, source: str, expected: str) -> None:
    assert resolve(DOCS, source, target) == expected


def test_precomposed_and_decomposed_names_are_the_same_file() -> None:
    assert resolve("docs/Caf\u0065\u0301.md", "docs/x.md", "Caf\u00e9.md") == "docs/Cafe\u0301.md"


WIKI = (
    "Home.md notes/Project-Plan.md notes/deep/er/Daily.md work/Daily.md work/a/Daily.md setup.py"
    " far/setup.md v/v1.2.md people/Ada_Lovelace.org"
)


@pytest.mark.parametrize(
    ("target", "source", "expected"),
    [
        ("Home", "notes/x.md", "Home.md"),
        ("home", "notes/x.md", "Home.md"),
        ("Home.md", "notes/x.md", "Home.md"),
        ("notes/Project-Plan", "work/x.md", "notes/Project-Plan.md"),
        ("project plan", "work/x.md", "notes/Project-Plan.md"),
        ("Project_Plan", "work/x.md", "notes/Project-Plan.md"),
        ("ada lovelace", "work/x.md", "people/Ada_Lovelace.org"),
        ("Daily", "work/a/x.md", "work/a/Daily.md"),
        ("Daily", "work/x.md", "work/Daily.md"),
        ("Daily", "notes/x.md", "notes/deep/er/Daily.md"),
        ("Daily", "x.md", "work/Daily.md"),  # nothing in common: the shortest
        ("er/Daily", "work/x.md", "notes/deep/er/Daily.md"),
        ("a/daily", "x.md", "work/a/Daily.md"),
        ("setup", "x.md", "far/setup.md"),  # a page before a program
        ("setup.py", "far/x.md", "setup.py"),
        ("v1.2", "x.md", "v/v1.2.md"),
        ("../Home", "notes/x.md", "Home.md"),
        ("Old Name", "notes/x.md", "work/Daily.md"),
        ("The-plan", "notes/x.md", "notes/Project-Plan.md"),
        ("Nowhere", "x.md", ""),
        ("no/Home", "x.md", ""),
    ],
)
def test_wiki_pages(target: str, source: str, expected: str) -> None:
    names = {
        "old name": ["work/Daily.md", "gone.md"],
        "The Plan": ["notes/Project-Plan.md"],
        "Home": ["work/Daily.md"],
    }
    assert resolve(WIKI, source, target, "wiki", names=names) == expected


def test_labels_are_names_first_and_file_stems_second() -> None:
    names = {"Setup guide": ["docs/b.rst"]}
    assert resolve("docs/b.rst", "docs/a.rst", "setup-guide", "ref", names=names) == "docs/b.rst"
    assert resolve("docs/b.rst", "docs/a.rst", "b", "ref") == "docs/b.rst"
    assert resolve("docs/b.rst", "docs/a.rst", "c", "ref") == ""


PYTHON = (
    "pkg/__init__.py pkg/a/__init__.py pkg/a/b.py pkg/a/c/__init__.py pkg/d.py pkg/types.py"
    " tools/json.py tools/run.py tests/test_x.py src/other/__init__.py src/other/m.py"
    " one/src/lib1/core.py two/src/lib1/core.py ns/x/y.py vendor/deep/click.py"
)


@pytest.mark.parametrize(
    ("target", "names", "source", "expected"),
    [
        (".", "b", "pkg/a/z.py", "pkg/a/b.py"),
        (".", "Thing", "pkg/a/z.py", "pkg/a/__init__.py"),
        (".b", "f g", "pkg/a/z.py", "pkg/a/b.py"),
        ("..", "d a", "pkg/a/z.py", "pkg/d.py pkg/a/__init__.py"),
        ("..d", "x", "pkg/a/z.py", "pkg/d.py"),
        ("..a", "b c x", "pkg/a/z.py", "pkg/a/b.py pkg/a/c/__init__.py pkg/a/__init__.py"),
        ("....x", "y", "pkg/a/z.py", ""),
        (".b", "", "pkg/a/__init__.py", "pkg/a/b.py"),
        ("pkg.a.b", "", "tests/test_x.py", "pkg/a/b.py"),
        ("pkg.a", "b", "tests/test_x.py", "pkg/a/b.py"),
        ("pkg.a", "", "tests/test_x.py", "pkg/a/__init__.py"),
        ("pkg", "", "tests/test_x.py", "pkg/__init__.py"),
        ("pkg.a", "Thing b", "tests/test_x.py", "pkg/a/__init__.py pkg/a/b.py"),
        ("other.m", "f", "tests/test_x.py", "src/other/m.py"),
        ("other", "", "tests/test_x.py", "src/other/__init__.py"),
        ("lib1.core", "f", "one/tests/t.py", "one/src/lib1/core.py"),
        ("lib1.core", "f", "two/tests/t.py", "two/src/lib1/core.py"),
        ("ns.x", "y", "tests/t.py", "ns/x/y.py"),  # a namespace package
        ("x.y", "", "tests/t.py", "ns/x/y.py"),
        ("json", "", "tools/run.py", "tools/json.py"),  # a script's sibling hides it
        ("json", "", "pkg/d.py", ""),
        ("types", "", "pkg/d.py", ""),  # a package's module does not
        ("os.path", "", "pkg/d.py", ""),
        ("click", "", "pkg/d.py", ""),  # elsewhere under that name: not what is meant
        ("click.core", "", "pkg/d.py", ""),
        ("numpy", "", "pkg/d.py", ""),
    ],
)
def test_python(target: str, names: str, source: str, expected: str) -> None:
    assert resolve(PYTHON, source, target, "python", names) == expected


JS = (
    "web/src/app.ts web/src/lib/util.ts web/src/lib/index.tsx web/src/ui/Button.svelte"
    " web/src/data.json web/src/types.d.ts web/src/old.js web/src/old.ts packages/ui/src/index.ts"
    " web/src/m.mts"
)


@pytest.mark.parametrize(
    ("target", "source", "expected"),
    [
        ("./app", "web/src/x.ts", "web/src/app.ts"),
        ("./app.js", "web/src/x.ts", "web/src/app.ts"),
        ("./m.mjs", "web/src/x.ts", "web/src/m.mts"),
        ("./lib", "web/src/x.ts", "web/src/lib/index.tsx"),
        ("./lib/", "web/src/x.ts", "web/src/lib/index.tsx"),
        (".", "web/src/lib/x.ts", "web/src/lib/index.tsx"),
        ("../app", "web/src/lib/x.ts", "web/src/app.ts"),
        ("./ui/Button.svelte", "web/src/x.ts", "web/src/ui/Button.svelte"),
        ("./ui/Button", "web/src/x.ts", "web/src/ui/Button.svelte"),
        ("./data.json", "web/src/x.ts", "web/src/data.json"),
        ("./types", "web/src/x.ts", "web/src/types.d.ts"),
        ("./old", "web/src/x.ts", "web/src/old.ts"),
        ("./old.js", "web/src/x.ts", "web/src/old.js"),
        ("@/lib/util", "web/src/deep/x.ts", "web/src/lib/util.ts"),
        ("@/app", "web/src/deep/x.ts", "web/src/app.ts"),
        ("~/lib/util.ts", "web/src/x.ts", "web/src/lib/util.ts"),
        ("$lib/util", "web/src/routes/x.svelte", "web/src/lib/util.ts"),
        ("lib/util", "web/src/x.ts", "web/src/lib/util.ts"),
        ("src/lib", "web/x.ts", "web/src/lib/index.tsx"),
        ("lib/util.js", "other/x.ts", "web/src/lib/util.ts"),
        ("util", "web/src/lib/x.ts", ""),
        ("react", "web/src/x.ts", ""),
        ("@acme/ui", "web/src/x.ts", ""),
        ("../../../out", "web/src/x.ts", ""),
    ],
)
def test_javascript(target: str, source: str, expected: str) -> None:
    assert resolve(JS, source, target, "js") == expected


def test_a_declared_package_is_found_by_its_name() -> None:
    roots = {"@acme/ui": "packages/ui"}
    assert resolve(JS, "web/x.ts", "@acme/ui", "js", roots=roots) == "packages/ui/src/index.ts"


GO = "go.mod cmd/a/main.go pkg/util/a.go pkg/util/b.go pkg/util/a_test.go util/u.go errors/e.go"


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("example.com/org/repo/pkg/util", "pkg/util/a.go pkg/util/b.go"),
        ("github.com/org/repo/util", "util/u.go"),
        ("github.com/org/errors", ""),
        ("errors", ""),
        ("encoding/json", ""),
        ("fmt", ""),
        ("../../util", "util/u.go"),
    ],
)
def test_go(target: str, expected: str) -> None:
    assert resolve(GO, "cmd/a/x.go", target, "go") == expected


def test_go_with_a_declared_module_and_a_limit() -> None:
    many = " ".join(f"pkg/n/f{number:02}.go" for number in range(30))
    found = resolve(many, "a.go", "m.io/x/pkg/n", "go", roots={"m.io/x": ""})
    assert found.split() == [f"pkg/n/f{number:02}.go" for number in range(20)]
    assert resolve(many, "a.go", "m.io/y", "go", roots={"m.io/x": ""}) == ""


RUST = (
    "Cargo.toml src/lib.rs src/a.rs src/a/b.rs src/c/mod.rs src/c/d.rs crates/my-core/src/lib.rs"
    " crates/my-core/src/x.rs crates/my-core/src/y/mod.rs src/bin/tool.rs src/bin/helper.rs"
    " tests/common/mod.rs"
)


@pytest.mark.parametrize(
    ("target", "names", "source", "expected"),
    [
        ("crate::a", "b", "src/c/mod.rs", "src/a/b.rs"),
        ("crate::a", "Thing", "src/c/mod.rs", "src/a.rs"),
        ("crate::a::b", "f", "src/c/mod.rs", "src/a/b.rs"),
        ("crate::a::b::Type", "new", "src/lib.rs", "src/a/b.rs"),
        ("crate", "a Thing", "src/c/d.rs", "src/a.rs src/lib.rs"),
        ("crate::c", "d E", "src/lib.rs", "src/c/d.rs src/c/mod.rs"),
        ("super", "E", "src/c/d.rs", "src/c/mod.rs"),
        ("super", "d", "src/c/e.rs", "src/c/d.rs"),
        ("super", "a", "src/c/mod.rs", "src/a.rs"),
        ("super::super::a", "b", "src/c/d.rs", "src/a/b.rs"),
        ("self::a", "", "src/lib.rs", "src/a.rs"),
        ("self::b", "", "src/a.rs", "src/a/b.rs"),
        ("self::d", "", "src/c/mod.rs", "src/c/d.rs"),
        ("self::helper", "", "src/bin/tool.rs", "src/bin/helper.rs"),
        ("self::common", "", "tests/it.rs", "tests/common/mod.rs"),
        ("self::missing", "", "src/lib.rs", ""),
        ("self", "", "src/a.rs", "src/a.rs"),
        ("b", "f", "src/a.rs", "src/a/b.rs"),
        ("my_core::x", "f", "src/lib.rs", "crates/my-core/src/x.rs"),
        ("my_core", "y Z", "src/a.rs", "crates/my-core/src/y/mod.rs crates/my-core/src/lib.rs"),
        ("crate::x", "f", "crates/my-core/src/y/mod.rs", "crates/my-core/src/x.rs"),
        ("std::io", "Read", "src/lib.rs", ""),
        ("serde", "Serialize", "src/lib.rs", ""),
    ],
)
def test_rust(target: str, names: str, source: str, expected: str) -> None:
    assert resolve(RUST, source, target, "rust", names) == expected


def test_a_declared_crate_is_the_root() -> None:
    assert resolve(RUST, "tests/it.rs", "ragx::a", "rust", "b", roots={"ragx": ""}) == "src/a/b.rs"


JVM = (
    "app/src/main/java/a/b/C.java app/src/main/java/a/b/D.java lib/src/main/kotlin/a/k/E.kt"
    " app/src/main/java/a/Main.java"
)


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("a.b.C", "app/src/main/java/a/b/C.java"),
        ("a.b.C.Inner", "app/src/main/java/a/b/C.java"),
        ("a.k.E", "lib/src/main/kotlin/a/k/E.kt"),
        ("a.b.*", "app/src/main/java/a/b/C.java app/src/main/java/a/b/D.java"),
        ("a.b.C.*", "app/src/main/java/a/b/C.java"),
        ("java.util.List", ""),
        ("a.b.missing", ""),
        ("Main", "app/src/main/java/a/Main.java"),
    ],
)
def test_jvm(target: str, expected: str) -> None:
    assert resolve(JVM, "app/src/main/java/a/X.java", target, "java") == expected


C = (
    "src/a.h src/sub/b.h include/lib/c.hpp one/x.h two/x.h include/string.h util/string.h"
    " gen/vector"
)


@pytest.mark.parametrize(
    ("target", "form", "source", "expected"),
    [
        ("a.h", "include", "src/m.c", "src/a.h"),
        ("sub/b.h", "include", "src/m.c", "src/sub/b.h"),
        ("../src/a.h", "include", "one/m.c", "src/a.h"),
        ("b.h", "include", "src/m.c", "src/sub/b.h"),
        ("lib/c.hpp", "system", "src/m.c", "include/lib/c.hpp"),
        ("x.h", "include", "two/deep/m.c", "two/x.h"),
        ("x.h", "include", "src/m.c", "one/x.h"),
        ("A.h", "include", "src/m.c", "src/a.h"),
        ("sub\\b.h", "include", "src/m.c", "src/sub/b.h"),
        ("string.h", "system", "util/m.c", "include/string.h"),
        ("string.h", "include", "util/m.c", "util/string.h"),
        ("stdio.h", "system", "src/m.c", ""),
        ("vector", "system", "src/m.cpp", "gen/vector"),
        ("map", "system", "src/m.cpp", ""),
    ],
)
def test_includes(target: str, form: str, source: str, expected: str) -> None:
    assert resolve(C, source, target, form) == expected


@pytest.mark.parametrize(
    ("form", "paths", "source", "target", "expected"),
    [
        ("ruby", "lib/a/b.rb lib/c.rb", "lib/x.rb", "./a/b", "lib/a/b.rb"),
        ("ruby", "lib/a/b.rb lib/c.rb", "spec/x.rb", "a/b", "lib/a/b.rb"),
        ("ruby", "lib/a/b.rb lib/c.rb", "spec/x.rb", "c", "lib/c.rb"),
        ("ruby", "gems/q/lib/a/b.rb", "spec/x.rb", "a/b.rb", "gems/q/lib/a/b.rb"),
        ("ruby", "gems/q/lib/json.rb", "spec/x.rb", "json", ""),
        ("php", "src/Models/User.php", "src/x.php", "App\\Models\\User", "src/Models/User.php"),
        ("php", "src/Kernel.php", "public/x.php", "App\\Kernel", "src/Kernel.php"),
        ("php", "src/Tr.php", "src/x.php", "Tr", "src/Tr.php"),
        ("php", "src/TestCase.php", "src/x.php", "PHPUnit\\Framework\\TestCase", ""),
        ("php-file", "inc/x.php", "inc/a.php", "x.php", "inc/x.php"),
        ("php-file", "inc/x.php", "b/a.php", "inc/x.php", "inc/x.php"),
        (
            "csharp",
            "Acme.Core/Models/A.cs Acme.Core/Models/B.cs",
            "Acme.Web/x.cs",
            "Acme.Core.Models",
            "Acme.Core/Models/A.cs Acme.Core/Models/B.cs",
        ),
        (
            "csharp",
            "src/Ordering.API/A.cs",
            "src/Web/x.cs",
            "Shop.Ordering.API",
            "src/Ordering.API/A.cs",
        ),
        ("csharp", "Models/A.cs", "Views/x.cs", "App.Models", "Models/A.cs"),
        ("csharp", "Acme/Util.cs", "Views/x.cs", "Acme.Util", "Acme/Util.cs"),
        ("csharp", "Text/A.cs", "x.cs", "System.Text", ""),
        ("csharp", "Linq/A.cs", "x.cs", "System", ""),
        ("dart", "lib/a.dart", "lib/x.dart", "a.dart", "lib/a.dart"),
        ("dart", "lib/src/a.dart", "test/x.dart", "package:me/src/a.dart", "lib/src/a.dart"),
        (
            "dart",
            "p/foo/lib/a.dart lib/b.dart",
            "lib/x.dart",
            "package:foo/a.dart",
            "p/foo/lib/a.dart",
        ),
        ("dart", "lib/b.dart", "lib/x.dart", "package:flutter/material.dart", ""),
        ("css", "s/_base.scss", "s/x.scss", "base", "s/_base.scss"),
        ("css", "s/a/_index.scss", "s/x.scss", "a", "s/a/_index.scss"),
        ("css", "s/b.css", "t/x.css", "../s/b.css", "s/b.css"),
        ("lua", "lua/a/b.lua", "init.lua", "a.b", "lua/a/b.lua"),
        ("lua", "lua/a/init.lua", "lua/x.lua", "a", "lua/a/init.lua"),
        ("lua", "deep/er/lua/a/b.lua", "init.lua", "a.b", "deep/er/lua/a/b.lua"),
        ("shell", "bin/lib.sh", "bin/x.sh", "./lib.sh", "bin/lib.sh"),
        ("shell", "scripts/lib.sh", "bin/x.sh", "scripts/lib.sh", "scripts/lib.sh"),
        ("shell", "a/lib/c.sh", "bin/x.sh", "lib/c.sh", "a/lib/c.sh"),
        ("shell", "etc/profile", "bin/x.sh", "/usr/etc/profile", ""),
        ("tex", "paper/ch/one.tex", "paper/main.tex", "ch/one", "paper/ch/one.tex"),
        ("tex", "paper/refs.bib", "paper/main.tex", "refs", "paper/refs.bib"),
        ("haskell", "src/Data/X.hs", "app/Main.hs", "Data.X", "src/Data/X.hs"),
        ("perl", "lib/A/B.pm", "bin/x.pl", "A::B", "lib/A/B.pm"),
        ("elm", "src/Page/Home.elm", "src/Main.elm", "Page.Home", "src/Page/Home.elm"),
        ("cmake", "sub/CMakeLists.txt", "CMakeLists.txt", "sub", "sub/CMakeLists.txt"),
        ("cmake", "cmake/Tools.cmake", "CMakeLists.txt", "Tools", "cmake/Tools.cmake"),
        ("nix", "m/default.nix", "flake.nix", "./m", "m/default.nix"),
        ("terraform", "m/a.tf m/b.tf", "main.tf", "./m", "m/a.tf m/b.tf"),
        ("include", "proto/a/b.proto", "x/y.proto", "a/b.proto", "proto/a/b.proto"),
        ("unheard-of", "a.md", "b.md", "a.md", ""),
    ],
)
def test_other_languages(form: str, paths: str, source: str, target: str, expected: str) -> None:
    assert resolve(paths, source, target, form) == expected


def test_an_empty_corpus_and_a_source_outside_it() -> None:
    resolver = Resolver([])
    for form in ("path", "wiki", "python", "js", "go", "rust", "java", "csharp", "css"):
        assert resolver.resolve(Reference("link", "a", form, "", 0, 1), "x/y") == ()
    assert resolver.resolve(Reference("link", "", "path", "h", 0, 1), "x") == ()


def test_many_files_of_one_name_cost_no_more_than_one() -> None:
    paths = [f"p{number}/src/index.ts" for number in range(20_000)]
    began = time.perf_counter()
    resolver = Resolver(paths)
    reference = Reference("import", "src/index", "js", "", 0, 1)
    for path in paths:
        assert resolver.resolve(reference, path) == (path,)
    assert time.perf_counter() - began < 10

"""Languages by file name."""

from __future__ import annotations

import pytest

from ragx.algo.chunking import kind_of, language_of


@pytest.mark.parametrize(
    ("path", "language", "kind"),
    [
        ("a/b.md", "markdown", "docs"),
        ("b.MDX", "markdown", "docs"),
        ("b.rst", "rst", "docs"),
        ("b.adoc", "asciidoc", "docs"),
        ("b.org", "org", "docs"),
        ("b.txt", "text", "docs"),
        ("LICENSE", "text", "docs"),
        ("b.py", "python", "code"),
        ("b.pyi", "python", "code"),
        ("b.d.ts", "typescript", "code"),
        ("b.tsx", "tsx", "code"),
        ("b.h", "c", "code"),
        ("b.hpp", "cpp", "code"),
        ("b.cs", "csharp", "code"),
        ("src/Dockerfile", "dockerfile", "code"),
        ("Dockerfile.prod", "dockerfile", "code"),
        ("Makefile", "makefile", "code"),
        ("CMakeLists.txt", "cmake", "code"),
        ("b.json", "json", "data"),
        ("b.yml", "yaml", "data"),
        ("b.html", "html", "docs"),
        (".gitignore", "ini", "data"),
        ("b.unheard-of", "text", "docs"),
        ("no_extension", "text", "docs"),
        ("dir.py/file", "text", "docs"),
        ("", "text", "docs"),
    ],
)
def test_language_and_kind(path: str, language: str, kind: str) -> None:
    assert (language_of(path), kind_of(language)) == (language, kind)

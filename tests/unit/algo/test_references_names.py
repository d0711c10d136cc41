"""Names of pages, and fragments against headings."""

from __future__ import annotations

import pytest

from ragx.algo.references import PageName, heading_slug, matches_heading, page_names


@pytest.mark.parametrize(
    ("heading", "slug"),
    [
        ("Getting Started", "getting-started"),
        ("What's new in 2.0?", "whats-new-in-20"),
        ("`code` and *more*", "code-and-more"),
        ("[Link](x.md) here", "link-here"),
        ("snake_case-name", "snake_case-name"),
        ("A & B", "a--b"),
        ("Über uns", "über-uns"),
        ("日本語 の 見出し", "日本語-の-見出し"),
        ("Title ##", "title"),
        ("Setup {#install}", "setup"),
        ("!!!", ""),
        ("", ""),
    ],
)
def test_slugs(heading: str, slug: str) -> None:
    assert heading_slug(heading) == slug


@pytest.mark.parametrize(
    ("fragment", "heading", "expected"),
    [
        ("getting-started", "Getting Started", True),
        ("Getting Started", "Getting Started", True),
        ("getting started", "Getting Started", True),
        ("Getting%20Started", "Getting Started", True),
        ("_getting_started", "Getting Started", True),
        ("%C3%BCber-uns", "Über uns", True),
        ("install", "Setup {#install}", True),
        ("setup", "Setup {#install}", True),
        ("code-and-more", "`code` and *more*", True),
        ("a--b", "A & B", True),
        ("???", "???", True),
        ("!!!", "???", False),
        ("getting", "Getting Started", False),
        ("", "", False),
        ("", "Setup", False),
    ],
)
def test_fragments(fragment: str, heading: str, expected: bool) -> None:
    assert matches_heading(fragment, heading) is expected


def names(path: str, text: str = "", language: str = "markdown", title: str = "") -> list[str]:
    return [f"{name.origin}: {name.text}" for name in page_names(path, text, language, title)]


def test_all_names_of_a_page() -> None:
    text = (
        '---\ntitle: "The `Plan`"\naliases: [Old Plan, \'It\'\'s, old\', "A \\"q\\""]\n---\n'
        "# Our *great* plan ##\n"
    )
    assert page_names("notes/01-project_plan.md", text, "markdown", "The Plan") == [
        PageName("The Plan", "title"),
        PageName("Our great plan", "heading"),
        PageName("Old Plan", "alias"),
        PageName("It's, old", "alias"),
        PageName('A "q"', "alias"),
        PageName("project plan", "stem"),
        PageName("01-project_plan.md", "filename"),
    ]


@pytest.mark.parametrize(
    ("header", "aliases"),
    [
        ("aliases:\n  - One\n  - 'Two: b'\n- Three", ["One", "Two: b", "Three"]),
        ("alias: Single one # comment", ["Single one"]),
        ('Aliases: "Quoted, one"', ["Quoted, one"]),
        ("aliases: [a,\n  b]", ["a", "b"]),
        ("aliases: []", []),
        ("aliases:", []),
        ("aliases: [/old/address/]", []),
        ("tags: [x]\nalias: Y", ["Y"]),
    ],
)
def test_aliases(header: str, aliases: list[str]) -> None:
    text = f"---\n{header}\n---\ntext\n"
    found = page_names("1.md", text, "markdown", "")
    assert [name.text for name in found if name.origin == "alias"] == aliases


@pytest.mark.parametrize(
    ("file", "stem"),
    [
        ("setup.md", "setup"),
        ("getting-started.md", "getting started"),
        ("01-intro.md", "intro"),
        ("1.2_two words.md", "two words"),
        ("2024-01-31-standup notes.md", "standup notes"),
        ("2024-01-31.md", ""),
        ("20240131.md", ""),
        ("42.md", ""),
        ("deadbeef01.md", ""),
        ("decade.md", "decade"),
        ("README.md", ""),
        ("index.rst", ""),
        ("v1.2.md", ""),
        ("日本語.md", "日本語"),
        ("3d-printing.md", "3d printing"),
    ],
)
def test_stems(file: str, stem: str) -> None:
    found = page_names("a/" + file, "", "markdown", "")
    assert [name.text for name in found if name.origin == "stem"] == ([stem] if stem else [])
    # The file's own name is always one, unless the stem has said it.
    assert any(name.text == file for name in found)


def test_other_languages() -> None:
    assert names("a/pipeline.py", "# Title\n", "python") == ["filename: pipeline.py"]
    assert names("a.rst", "Title `x`\n=========\n", "rst") == [
        "heading: Title x",
        "filename: a.rst",
    ]
    text = '#+TITLE: Big One\n:ROAM_ALIASES: "other name" Brief\n* First\n'
    assert names("b.org", text, "org") == [
        "title: Big One",
        "heading: First",
        "alias: other name",
        "alias: Brief",
        "filename: b.org",
    ]  # fmt: skip
    assert names("c.adoc", "= Top\n", "asciidoc") == ["heading: Top", "filename: c.adoc"]
    page = "<title>T &amp; x</title><h1 class='a'>Head</h1>"
    assert names("page.html", page, "html") == [
        "heading: Head",
        "stem: page",
        "filename: page.html",
    ]
    assert names("LICENSE", "text", "text") == ["stem: LICENSE"]


def test_names_alike_but_for_case_are_one() -> None:
    assert names("Setup.md", "# SETUP\n", title="setup") == ["title: setup", "filename: Setup.md"]


def test_empty_input() -> None:
    assert page_names("", "", "markdown", "") == []
    assert page_names("x.md", "---", "markdown", "") == [PageName("x.md", "filename")]

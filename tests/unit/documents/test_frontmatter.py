"""Date and tags in front matter."""

from __future__ import annotations

import pytest

from ragx.documents.frontmatter import FrontMatter, read_front_matter


def read(text: str) -> tuple[str, list[str]]:
    found = read_front_matter(text)
    return found.date.isoformat() if found.date else "", list(found.tags)


@pytest.mark.parametrize(
    ("rows", "day", "tags"),
    [
        ("date: 2024-03-17\ntags: [a, \"b, c\", 'd''e', f g]", "2024-03-17", "a|b, c|d'e|f g"),
        ("tags:\n  - one\n  - 'two' # no\n- three\nkeywords: x, y", "", "one|two|three|x|y"),
        ('tags: [a,\n  b,\n  "c"]', "", "a|b|c"),
        ("Tags: '#alpha'\nDate: 2024-3-1", "2024-03-01", "alpha"),
        ("tags: a, b,a ,", "", "a|b"),
        ("created: 2020-01-01\ndate: 2021-01-01\nupdated: 2022-01-01", "2022-01-01", ""),
        ('date: "17 March 2024"  # about then', "2024-03-17", ""),
        ("updated: soon\ndate: 2021-01-01", "2021-01-01", ""),
        ("date: &day 2024-01-01\ntags: *all", "", ""),
        ("tags: {a: b}", "", ""),
        ("tags: [a, b", "", ""),
        ("tags: [a, [b]]", "", ""),
        ("tags: []", "", ""),
        ("tags: |\n  a", "", ""),
        ("about:\n  date: 2020-01-01\n  tags: [x]", "", ""),
        ("tags: [2024, 1.5]", "", "2024|1.5"),
        (f"tags: [{'x' * 101}]", "", ""),
        ("date: [2024-01-01]", "", ""),
        ('"date": 2024-01-01', "2024-01-01", ""),
    ],
)
def test_yaml(rows: str, day: str, tags: str) -> None:
    for newline in ("\n", "\r\n", "\r"):
        text = f"---\n{rows}\n---\n# Title\n".replace("\n", newline)
        assert read(text) == (day, tags.split("|") if tags else [])


def test_toml() -> None:
    assert read('+++\ndate = 2024-03-17T10:00:00Z\ntags = ["a", "b"]\n+++\n') == (
        "2024-03-17",
        ["a", "b"],
    )
    assert read('+++\n[taxonomies]\ntags = ["a"]\n+++\n') == ("", ["a"])
    assert read('+++\ndate = "2024-03-17"\n+++\n') == ("2024-03-17", [])
    assert read("+++\ndate = [\n+++\n") == ("", [])
    assert read("+++\ndate = 0001-01-01\n+++\n") == ("", [])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "---",
        "---\n---\n",
        "# Title\n---\ndate: 2024-01-01\n---\n",
        "---\nA rule above a text, and date: 2024-01-01\n---\n",
        "---\ndate: 2024-01-01\n",
        " ---\ndate: 2024-01-01\n---\n",
    ],
)
def test_no_front_matter(text: str) -> None:
    assert read_front_matter(text) == FrontMatter()


def test_there_is_an_end_to_tags() -> None:
    rows = ", ".join(f"t{n}" for n in range(1000))
    assert len(read(f"---\ntags: {rows}\n---\n")[1]) == 100
    long = "\n".join(f"  - t{n}" for n in range(100_000))
    assert read(f"---\ntags:\n{long}\n---\n") == ("", [])

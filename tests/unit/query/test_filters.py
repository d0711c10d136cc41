"""What filters let through, and what they say of values that mean nothing."""

from __future__ import annotations

from datetime import date

import pytest

from ragx.errors import UsageError
from ragx.query.filters import Filters, parse_filters, resolve
from ragx.store.base import FileFacts


def facts(
    path: str,
    language: str = "markdown",
    *,
    content_hash: str = "",
    day: str = "2024-01-01",
    tags: tuple[str, ...] = (),
) -> FileFacts:
    return FileFacts(0, path, content_hash, language, day, True, day, tags)


class Facts:
    """A reader that knows nothing but facts."""

    def __init__(self, *rows: FileFacts) -> None:
        self.rows = list(rows)

    def facts(self) -> list[FileFacts]:
        return self.rows


FILES = Facts(
    facts("README.md", content_hash="aaaaaaaa11", day="2024-03-17", tags=("Home",)),
    facts("docs/a b.md", content_hash="aaaaaaaa22", day="2024-02-29", tags=("home", "alpha")),
    facts("docs/#one.md", day="2024-03-01"),
    facts("docs/!two.md", day="2023-12-31"),
    facts("src/main.py", "python", day="2022-01-01"),
    facts("src/deep/er/main.rs", "rust", day="2022-01-02"),
    facts("data/x.json", "json", day="2021-06-01"),
)
ALL = {row.path for row in FILES.rows}


def passing(**given: object) -> set[str]:
    scope = resolve(FILES, parse_filters(**given))  # type: ignore[arg-type]
    return ALL if scope.paths is None else set(scope.paths)


@pytest.mark.parametrize(
    ("globs", "left"),
    [
        (["src/"], {"src/main.py", "src/deep/er/main.rs"}),
        (["src"], {"src/main.py", "src/deep/er/main.rs"}),
        (["./src/*"], {"src/main.py", "src/deep/er/main.rs"}),
        (["src/*.py"], {"src/main.py"}),
        (["*.py", "*.rs"], {"src/main.py", "src/deep/er/main.rs"}),
        (["main.*", "!src/deep/"], {"src/main.py"}),
        (["!src/deep/", "main.*"], {"src/main.py"}),
        (["!*.md"], {"src/main.py", "src/deep/er/main.rs", "data/x.json"}),
        (["/*.md"], {"README.md"}),
        (["src/**/main.*"], {"src/main.py", "src/deep/er/main.rs"}),
        (["docs/#one.md"], {"docs/#one.md"}),
        (["#one.md"], {"docs/#one.md"}),
        (["docs/a b.md"], {"docs/a b.md"}),
        (["docs/\\!two.md"], {"docs/!two.md"}),
        (["!!two.md", "docs/"], {"docs/a b.md", "docs/#one.md"}),
        (["**"], ALL),
        (["readme.md"], set()),
    ],
)
def test_globs_as_git_reads_them_in_any_order(globs: list[str], left: set[str]) -> None:
    assert passing(paths=globs) == left


@pytest.mark.parametrize(
    ("given", "left"),
    [
        ({"files": ["README.md", "./src/main.py"]}, {"README.md", "src/main.py"}),
        ({"languages": ["py", "Rust"]}, {"src/main.py", "src/deep/er/main.rs"}),
        ({"languages": [".md"]}, {"README.md", "docs/a b.md", "docs/#one.md", "docs/!two.md"}),
        ({"kinds": ["code"]}, {"src/main.py", "src/deep/er/main.rs"}),
        ({"kinds": ["data", "CODE"]}, {"src/main.py", "src/deep/er/main.rs", "data/x.json"}),
        ({"tags": ["HOME"]}, {"README.md", "docs/a b.md"}),
        ({"tags": ["alpha", "beta"]}, {"docs/a b.md"}),
        ({"since": "2024-03-01"}, {"README.md", "docs/#one.md"}),
        ({"since": "2024", "until": "2024-02"}, {"docs/a b.md"}),
        ({"until": "2021"}, {"data/x.json"}),
        ({"since": "2022-1-2", "until": "2022-01-02"}, {"src/deep/er/main.rs"}),
        ({"source_versions": ["aaaaaaaa"]}, {"README.md", "docs/a b.md"}),
        ({"source_versions": ["AAAAAAAA11"]}, {"README.md"}),
        ({"kinds": ["code"], "since": "2022-01-02"}, {"src/deep/er/main.rs"}),
        ({}, ALL),
    ],
)
def test_values_widen_and_filters_narrow(given: dict[str, object], left: set[str]) -> None:
    assert passing(**given) == left


def test_a_filter_that_keeps_everything_is_none() -> None:
    for given in ({}, {"paths": ["**"]}, {"since": "1999"}, {"kinds": ["docs", "code", "data"]}):
        assert resolve(FILES, parse_filters(**given)).paths is None  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "warning"),
    [
        ({"languages": ["go"], "kinds": ["code"]}, "no file passes --lang go"),
        ({"languages": ["go"], "tags": ["x"]}, "no file passes --lang go nor --tag x"),
        ({"kinds": ["data"], "since": "2024"}, "--kind data and --since 2024-01-01 together"),
        ({"files": ["docs/main.py"]}, "no file passes --file docs/main.py; close to it: src/main"),
        ({"tags": ["alfa"]}, "no file passes --tag alfa; there are alpha"),
        ({"paths": ["a", "b", "c", "d"]}, "no file passes --path a --path b --path c ..."),
        ({"until": "1999"}, "no file passes --until 1999-12-31"),
    ],
)
def test_the_filter_that_leaves_nothing_is_named(given: dict[str, object], warning: str) -> None:
    scope = resolve(FILES, parse_filters(**given))  # type: ignore[arg-type]
    assert scope.paths == frozenset()
    assert warning in scope.warning


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"languages": ["pithon"]}, "python"),
        ({"languages": ["xyzzyx"]}, "known: "),
        ({"kinds": ["prose"]}, "code, data, docs"),
        ({"since": "yesterday"}, "2024-03-17"),
        ({"since": "2024-13"}, "2024-03-17"),
        ({"until": "2023-02-29"}, "2024-03-17"),
        ({"until": "2024-0"}, "2024-03-17"),
        ({"since": "2024-02", "until": "2024-01"}, "swap"),
        ({"paths": ["[z-a]"]}, "such as"),
        ({"paths": [""]}, "leave out"),
        ({"paths": ["!"]}, "leave out"),
        ({"paths": ["/"]}, "such as"),
        ({"paths": ["\\"]}, "such as"),
        ({"paths": ["../x"]}, "root"),
        ({"paths": ["!a/../x"]}, "root"),
        ({"files": ["/etc/passwd"]}, "root"),
        ({"files": ["a/../../b"]}, "root"),
        ({"tags": [" "]}, "leave out"),
        ({"source_versions": ["xyz"]}, "0-9"),
        ({"source_versions": ["abc"]}, "8 to 32"),
    ],
)
def test_what_means_nothing_is_refused(given: dict[str, object], told: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_filters(**given)  # type: ignore[arg-type]
    assert caught.value.code == "bad_filter"
    assert told in f"{caught.value.message} {caught.value.hint}"


def test_equal_questions_have_equal_filters() -> None:
    assert parse_filters(paths=["b", "a", "b"]) == parse_filters(paths=["a", "b"])
    assert parse_filters(until="2024-02").until == date(2024, 2, 29)
    assert not Filters()
    assert Filters(tags=("x",))
    assert parse_filters(since="2024").about_time
    assert not parse_filters(kinds=["docs"]).about_time

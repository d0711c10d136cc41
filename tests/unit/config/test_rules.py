from __future__ import annotations

import datetime

import pytest

from ragx.config.rules import (
    Auto,
    Choice,
    EnvName,
    Flag,
    Globs,
    Int,
    Real,
    Rejected,
    Rule,
    Text,
    Url,
    found,
)

INT = Int(1, 1000)
UNIT = Real(0, 1)


@pytest.mark.parametrize(
    ("rule", "value", "expected"),
    [
        (Flag(), True, True),
        (INT, 1, 1),
        (INT, 1000, 1000),
        (UNIT, 0, 0.0),
        (UNIT, 1, 1.0),
        (UNIT, 0.25, 0.25),
        (Real(0, 1, above=True), 1e-9, 1e-9),
        (Auto(INT), "auto", "auto"),
        (Auto(INT), 7, 7),
        (Choice("a", "b"), "b", "b"),
        (Text(), "", ""),
        (Text(), "task: x | query: \n", "task: x | query: \n"),
        (EnvName(), "", ""),
        (EnvName(), "_MY_KEY2", "_MY_KEY2"),
        (Url(), "", ""),
        (Url(), "http://localhost:1234/v1", "http://localhost:1234/v1"),
        (Url(), "https://api.example.org", "https://api.example.org"),
        (Url(), "http://[::1]:8080/v1", "http://[::1]:8080/v1"),
        (Globs(), [], ()),
        (Globs(), ["*.md", "!a b/"], ("*.md", "!a b/")),
    ],
)
def test_a_fitting_value_is_taken(rule: Rule[object], value: object, expected: object) -> None:
    taken = rule.check(value)
    assert taken == expected
    assert type(taken) is type(expected)


@pytest.mark.parametrize(
    ("rule", "value"),
    [
        (Flag(), 1),
        (Flag(), "true"),
        (INT, True),
        (INT, 0),
        (INT, 1001),
        (INT, 20.0),
        (INT, "20"),
        (UNIT, True),
        (UNIT, float("nan")),
        (UNIT, float("inf")),
        (UNIT, -float("inf")),
        (UNIT, 10**400),
        (UNIT, -0.1),
        (Real(0, 1, above=True), 0),
        (Auto(INT), "automatic"),
        (Auto(INT), True),
        (Choice("a", "b"), "c"),
        (Choice("a", "b"), 1),
        (Text(), 5),
        (Text(), "\udcff"),
        (EnvName(), "sk-abc"),
        (EnvName(), "1A"),
        (EnvName(), "A\n"),
        (EnvName(), 3),
        (Url(), "localhost:1234"),
        (Url(), "ftp://host/"),
        (Url(), "http://"),
        (Url(), "http://user:pw@host/v1"),
        (Url(), "http://host/v1?key=1"),
        (Url(), "http://host/a b"),
        (Url(), "http://host\n"),
        (Globs(), "*.md"),
        (Globs(at_least=1), []),
        (Globs(), ["a", 3]),
        (Globs(), [" "]),
        (Globs(), ["a\nb"]),
        (Globs(), ["\udcff"]),
    ],
)
def test_any_other_value_is_refused(rule: Rule[object], value: object) -> None:
    with pytest.raises(Rejected):
        rule.check(value)


@pytest.mark.parametrize(
    ("rule", "raw", "expected"),
    [
        (Flag(), " TRUE ", True),
        (Flag(), "yes", "yes"),
        (INT, "1_000", 1000),
        (INT, "+7", 7),
        (INT, "7.0", "7.0"),
        (INT, "9" * 50, "9" * 50),
        (UNIT, "0.5", 0.5),
        (UNIT, "half", "half"),
        (Auto(UNIT), "auto", "auto"),
        (Auto(UNIT), "1", 1.0),
        (Text(), " kept ", " kept "),
        (Globs(), "a, b ,,c", ["a", "b", "c"]),
        (Globs(), "", []),
        (Globs(), '["{a,b}.md", "c"]', ["{a,b}.md", "c"]),
        (Globs(), "[a-z]*.md", ["[a-z]*.md"]),
        (Globs(), "[1, 2]", [1, 2]),
    ],
)
def test_command_line_text_becomes_a_value(rule: Rule[object], raw: str, expected: object) -> None:
    assert rule.parse(raw) == expected


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (True, "true"),
        ("x", "'x'"),
        ("y" * 100, repr("y" * 57 + "...")),
        ("\udc80", "'\\udc80'"),
        (3, "3"),
        (10**400, "a very long integer"),
        ([1], "a list"),
        ({}, "a table"),
        (datetime.date(2024, 1, 1), "a date or time"),
    ],
)
def test_a_wrong_value_is_described_briefly(value: object, words: str) -> None:
    assert found(value) == words


def test_what_may_be_a_secret_is_not_echoed() -> None:
    for rule, secret in ((EnvName(), "sk-12345"), (Url(), "http://me:12345@host/v1")):
        with pytest.raises(Rejected) as caught:
            rule.check(secret)
        assert "12345" not in str(caught.value)


def test_a_near_miss_among_names_is_suggested() -> None:
    with pytest.raises(Rejected, match='did you mean "weighted"'):
        Choice("weighted", "rrf").check("wieghted")

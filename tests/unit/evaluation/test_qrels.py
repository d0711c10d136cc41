"""Files of judged questions: what is read from them, and what is refused."""

from __future__ import annotations

import json

import pytest

from ragx.errors import UsageError
from ragx.evaluation.qrels import Topic, check_paths, every_kth, parse_queries


def one(**line: object) -> Topic:
    (topic,) = parse_queries(json.dumps(line), name="q.jsonl")
    return topic


def fault(text: str) -> UsageError:
    with pytest.raises(UsageError) as caught:
        parse_queries(text, name="q.jsonl")
    assert caught.value.code == "bad_queries"
    assert caught.value.hint
    assert caught.value.message.startswith("q.jsonl")
    return caught.value


# What is read.


@pytest.mark.parametrize(
    ("line", "grades"),
    [
        ({"relevant_files": ["a.md", "b/c.py"]}, {"a.md": 1, "b/c.py": 1}),
        ({"relevant": ["a.md"]}, {"a.md": 1}),
        ({"relevant": {"a.md": 3, "b.md": 0, "c.md": 0.5}}, {"a.md": 3, "b.md": 0, "c.md": 0.5}),
        ({"relevant": ["a.md", "b.md"], "grades": {"a.md": 2}}, {"a.md": 2, "b.md": 1}),
        ({"relevant": ["a.md"], "grades": {"a.md": 2, "b.md": -1}}, {"a.md": 2, "b.md": -1}),
        ({"relevant_files": ["a.md"], "relevant": {"b.md": 2}}, {"a.md": 1, "b.md": 2}),
        ({"relevant_files": ["./a.md", "a.md"]}, {"a.md": 1}),
        ({"relevant": ["a.md"], "grades": {"./a.md": 2}}, {"a.md": 2}),
        ({"relevant_files": ["a\\b.md"]}, {"a\\b.md": 1}),
        ({"relevant": ["a.md"], "relevant_files": None, "grades": None}, {"a.md": 1}),
    ],
)
def test_forms_of_judgments(line: dict[str, object], grades: dict[str, float]) -> None:
    assert one(query="q", **line).grades == grades


def test_ids_lines_and_what_has_no_meaning() -> None:
    text = (
        '\ufeff{"query": "one", "relevant": ["a"], "kind": "x", "answer": null}\r\n'
        "\n   \n"
        '{"query": "two\u2028lines", "relevant": ["a"], "id": "named"}\n'
        '{"query": "three", "relevant": ["a"], "id": 17}'
    )
    topics = parse_queries(text, name="q.jsonl")
    assert [(topic.id, topic.query, topic.line) for topic in topics] == [
        ("1", "one", 1),
        ("named", "two\u2028lines", 4),
        ("17", "three", 5),
    ]


# What is refused.


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("{not json", "not JSON"),
        ('["query"]', "not an object"),
        ('"query"', "not an object"),
        ("[" * 100_000, "nested too deeply"),
        ('{"relevant": ["a"]}', "query is missing"),
        ('{"query": 3, "relevant": ["a"]}', "query must be a text"),
        ('{"query": " \\t", "relevant": ["a"]}', "query is blank"),
        ('{"query": "\\ud800 x", "relevant": ["a"]}', "half a character"),
        ('{"query": "' + "x" * 100_001 + '", "relevant": ["a"]}', "100001 bytes"),
        ('{"query": "q"}', "no relevant file"),
        ('{"query": "q", "relevant_files": []}', "no relevant file"),
        ('{"query": "q", "relevant": {"a": 0, "b": -1}}', "no relevant file"),
        ('{"query": "q", "relevant": ["a"], "grades": {"a": 0}}', "no relevant file"),
        ('{"query": "q", "relevant": "a"}', "must be a list of paths"),
        ('{"query": "q", "relevant_files": [1]}', "paths as texts"),
        ('{"query": "q", "relevant_files": ["a", null]}', "paths as texts"),
        ('{"query": "q", "relevant_files": ["./"]}', "empty path"),
        ('{"query": "q", "relevant": {"a": "high"}}', "the grade of a must be a number"),
        ('{"query": "q", "relevant": {"a": true}}', "the grade of a must be a number"),
        ('{"query": "q", "relevant": {"a": null}}', "the grade of a must be a number"),
        ('{"query": "q", "relevant": {"a": NaN}}', "the grade of a must be 1,000,000"),
        ('{"query": "q", "relevant": {"a": 1e999}}', "the grade of a must be 1,000,000"),
        (
            '{"query": "q", "relevant": {"a": 1' + "0" * 400 + "}}",
            "the grade of a must be 1,000,000",
        ),
        ('{"query": "q", "relevant": {"a": 1, "./a": 2}}', "a has two grades"),
        ('{"query": "q", "relevant": ["a"], "grades": [1]}', "grades must be grades by path"),
        ('{"query": "q", "relevant": ["a"], "id": true}', "id must be"),
        ('{"query": "q", "relevant": ["a"], "id": ""}', "id must be"),
        ('{"query": "q", "relevant": ["a"], "id": [1]}', "id must be"),
    ],
)
def test_a_wrong_line_is_named_with_what_is_wrong(line: str, what: str) -> None:
    good = '{"query": "q", "relevant": ["a"]}\n\n'
    found = fault(good + line)
    assert found.message.startswith("q.jsonl, line 3: ")
    assert what in found.message
    assert found.details == {"line": 3}


def test_one_id_for_two_questions_is_refused() -> None:
    line = '{"query": "q", "relevant": ["a"], "id": "x"}\n'
    assert "line 3: id 'x' is also the one of line 1" in fault(line + "\n" + line).message
    # A line number is an id like any other.
    numbered = '{"query": "q", "relevant": ["a"], "id": 2}\n{"query": "q", "relevant": ["a"]}\n'
    assert "id '2' is also the one of line 1" in fault(numbered).message


@pytest.mark.parametrize("text", ["", "\n \n", "\ufeff"])
def test_a_file_without_a_question_is_refused(text: str) -> None:
    assert "holds no question" in fault(text).message


# Paths against the index.


def topics(*grades: dict[str, float]) -> list[Topic]:
    return [Topic(f"t{n}", "q", item, line=n + 1) for n, item in enumerate(grades)]


def test_known_paths_pass() -> None:
    check_paths(topics({"a.md": 1, "b.md": 0}), {"a.md", "b.md", "c.md"})


def test_unknown_paths_are_listed_with_line_and_nearest_names() -> None:
    with pytest.raises(UsageError) as caught:
        check_paths(
            topics({"docs/guide.md": 1}, {"docs/giude.md": 1, "zzz": 0}, {"docs/giude.md": 2}),
            {"docs/guide.md", "docs/other.md"},
        )
    error = caught.value
    assert error.code == "unknown_paths"
    assert error.message == (
        "2 judged files are not in the index: docs/giude.md (line 2), zzz (line 2)"
    )
    assert "docs/guide.md" in error.hint
    assert error.details["unknown_count"] == 2
    assert error.details["unknown"][0] == {
        "path": "docs/giude.md",
        "line": 2,
        "id": "t1",
        "nearest": ["docs/guide.md", "docs/other.md"],
    }


def test_of_many_unknown_paths_the_first_few_are_listed() -> None:
    with pytest.raises(UsageError) as caught:
        check_paths(topics({f"f{n}": 1 for n in range(9)}), {"other"})
    assert caught.value.message.startswith("9 judged files")
    assert caught.value.message.endswith("f4 (line 1), ...")
    assert len(caught.value.details["unknown"]) == 5


# Fewer questions.


@pytest.mark.parametrize(
    ("n", "limit", "places"),
    [(10, 5, [0, 2, 4, 6, 8]), (10, 3, [0, 3, 6]), (10, 1, [0]), (3, 3, [0, 1, 2]), (2, 9, [0, 1])],
)
def test_a_limit_takes_questions_from_the_whole_list(n: int, limit: int, places: list[int]) -> None:
    assert [int(topic.id[1:]) for topic in every_kth(topics(*[{}] * n), limit)] == places

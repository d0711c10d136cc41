"""Questions with judged files, as JSON Lines give them.

    {"query": "how are redirects followed?", "relevant_files": ["httpx/_client.py"]}
    {"id": "q2", "query": "...", "relevant": {"docs/a.md": 2, "docs/b.md": 1}}

A wrong line is an error and never a score of zero.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ragx.errors import UsageError
from ragx.query.pipeline import check_text

__all__ = ["Topic", "check_paths", "every_kth", "parse_queries"]

_FORM = 'a line looks like {"query": "how ...?", "relevant_files": ["docs/a.md"]}'
_SHOWN = 5  # of the paths that are not in the index
_LISTS = ("relevant_files", "relevant")
_HIGHEST_GRADE = 1_000_000


@dataclass(frozen=True, slots=True)
class Topic:
    """One question and what was judged for it.

    Args:
        grades: grade by path relative to the root; above 0 is relevant, one at least is.
        line: where it stands in its file, from 1.
    """

    id: str
    query: str
    grades: Mapping[str, float]
    line: int = 0


def parse_queries(text: str, *, name: str) -> tuple[Topic, ...]:
    """Read JSON Lines: an object with a query and the files that answer it on each.

    The files are a list under `relevant_files` or `relevant`, or grades by path under `relevant` or
    `grades`; a grade wins over being listed, which counts 1. `id` may name the question, else its
    line number does. Other keys, blank lines and a byte-order mark have no meaning.

    Args:
        name: what messages call the file.
    Raises:
        UsageError: code "bad_queries"; a line is not what it must be, or there is none.
    """
    topics: dict[str, Topic] = {}
    # Not splitlines(): JSON strings may hold U+2028 and its like as they are.
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), start=1):
        if not line.strip():
            continue
        try:
            topic = _topic(line, number)
            if topic.id in topics:
                raise ValueError(
                    f"id {topic.id!r} is also the one of line {topics[topic.id].line};"
                    " each question needs its own"
                )
        except ValueError as fault:
            raise UsageError(
                f"{name}, line {number}: {fault}",
                code="bad_queries",
                hint=_FORM,
                details={"line": number},
            ) from fault
        topics[topic.id] = topic
    if not topics:
        raise UsageError(f"{name} holds no question", code="bad_queries", hint=_FORM)
    return tuple(topics.values())


def every_kth(topics: Sequence[Topic], limit: int) -> tuple[Topic, ...]:
    """At most `limit` of the topics, evenly spread over the whole list, the first included."""
    n = len(topics)
    return tuple(topics) if limit >= n else tuple(topics[i * n // limit] for i in range(limit))


def check_paths(topics: Sequence[Topic], known_paths: Collection[str]) -> None:
    """Make sure that every judged file can be found at all.

    Args:
        known_paths: files of the index that have text.
    Raises:
        UsageError: code "unknown_paths"; `details` has each such path once, with the first line
            that names it, and names of the index that are close to it.
    """
    unknown: dict[str, Topic] = {}
    for topic in topics:
        for path in topic.grades:
            if path not in known_paths:
                unknown.setdefault(path, topic)
    if not unknown:
        return
    import difflib

    shown: list[dict[str, object]] = []
    close: dict[str, None] = {}
    for path, topic in list(unknown.items())[:_SHOWN]:
        nearest = difflib.get_close_matches(path, known_paths, n=3, cutoff=0.6)
        close.update(dict.fromkeys(nearest))
        shown.append({"path": path, "line": topic.line, "id": topic.id, "nearest": nearest})
    listed = ", ".join(f"{item['path']} (line {item['line']})" for item in shown)
    n = len(unknown)
    near = list(close)[:3]
    raise UsageError(
        f"{n} judged {'file is' if n == 1 else 'files are'} not in the index: {listed}"
        + (", ..." if n > len(shown) else ""),
        code="unknown_paths",
        hint=(f"did you mean {' or '.join(near)}? " if near else "")
        + "paths are relative to the root; ragx index -v lists what is left out",
        details={"unknown": shown, "unknown_count": n},
    )


def _topic(line: str, number: int) -> Topic:
    """One line's topic; ValueError says what is wrong with it."""
    try:
        found = json.loads(line)
    except json.JSONDecodeError as fault:
        raise ValueError(f"not JSON ({fault.msg}, column {fault.colno})") from fault
    except RecursionError as fault:
        raise ValueError("nested too deeply") from fault
    except ValueError as fault:  # Python reads no number of over 4,300 digits
        raise ValueError("a number has too many digits") from fault
    if not isinstance(found, dict):
        raise ValueError("not an object in braces")
    return Topic(_id(found, number), _query(found), _grades(found), number)


def _id(found: Mapping[str, Any], number: int) -> str:
    given = found.get("id")
    if given is None:
        return str(number)
    if isinstance(given, bool) or not isinstance(given, str | int) or not str(given).strip():
        raise ValueError("id must be a name or a whole number")
    return str(given)


def _query(found: Mapping[str, Any]) -> str:
    query = found.get("query")
    if not isinstance(query, str):
        raise ValueError("query must be a text" if "query" in found else "query is missing")
    if not query.strip():
        raise ValueError("query is blank")
    try:
        query.encode()
        check_text(query)
    except UnicodeEncodeError as fault:
        raise ValueError("query holds half a character (a lone surrogate)") from fault
    except UsageError as fault:
        raise ValueError(fault.message) from fault
    return query


def _grades(found: Mapping[str, Any]) -> dict[str, float]:
    """Grades by path; listed files count 1 unless they are graded, too."""
    listed: dict[str, float] = {}
    graded: dict[str, float] = {}
    for key in _LISTS:
        given = found.get(key)
        if isinstance(given, dict):
            _add_graded(graded, key, given)
        elif isinstance(given, list):
            listed.update(dict.fromkeys((_path(key, item) for item in given), 1.0))
        elif given is not None:
            raise ValueError(f"{key} must be a list of paths or grades by path")
    grades = found.get("grades")
    if isinstance(grades, dict):
        _add_graded(graded, "grades", grades)
    elif grades is not None:
        raise ValueError("grades must be grades by path")
    judged = {**listed, **graded}
    if not any(grade > 0 for grade in judged.values()):
        raise ValueError("no relevant file: list one under relevant_files, or grade one above 0")
    return judged


def _add_graded(graded: dict[str, float], key: str, given: Mapping[str, Any]) -> None:
    for name, value in given.items():
        path, grade = _path(key, name), _grade(key, name, value)
        if graded.setdefault(path, grade) != grade:
            raise ValueError(f"{path} has two grades")


def _grade(key: str, name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{key}: the grade of {name} must be a number")
    try:
        grade = float(value)
    except OverflowError:
        grade = math.inf
    if not abs(grade) <= _HIGHEST_GRADE:
        raise ValueError(f"{key}: the grade of {name} must be {_HIGHEST_GRADE:,} at most")
    return grade


def _path(key: str, item: object) -> str:
    if not isinstance(item, str):
        raise ValueError(f"{key} must hold paths as texts")
    path = item
    while path.startswith("./"):
        path = path[2:]
    if not path.strip():
        raise ValueError(f"{key} holds an empty path")
    return path

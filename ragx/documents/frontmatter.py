"""Date and tags in a document's front matter.

Only what is needed is read, so YAML stays the plain subset that front matter is written in: keys
at the left margin with text, a list in brackets or one of dashes. What is beyond that (anchors,
blocks of text, nested keys) says nothing here, and loses nothing either: the text is indexed.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from ragx.algo.chunking.markdown import front_matter_end
from ragx.documents.dates import written_date

__all__ = ["FrontMatter", "read_front_matter"]

_MAX_CHARS = 1 << 16
_MAX_TAGS = 100
_MAX_TAG_CHARS = 100
# What says when it was last changed comes before what says when it was made, as git does.
_DATE_KEYS = (
    "updated", "modified", "lastmod", "last_modified", "last-modified", "last_updated",
    "last-updated", "date", "published", "pubdate", "created",
)  # fmt: skip
_TAG_KEYS = ("tags", "tag", "keywords", "keyword")
_KEY = re.compile(r"""(["']?)([\w.-]+)\1\s*:(?:\s+(.*)|$)""")
_ITEM = re.compile(r"\s*-\s+(.*)")
_COMMENT = re.compile(r"(?:^|\s)#.*$")
_FLOW = re.compile(r"""\s*("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^,\[\]{}"']+)\s*(?:,|$)""")
_QUOTED = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^']|'')*')\s*(?:#.*)?$""")
_NOT_PLAIN = ("&", "*", "!", "|", ">", "{", "%", "@", "`")


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """What front matter says of its document; tags as written, without repeats."""

    date: date | None = None
    tags: tuple[str, ...] = ()


def read_front_matter(text: str) -> FrontMatter:
    """Date and tags of a text's YAML (`---`) or TOML (`+++`) front matter; empty without any."""
    if not text.startswith(("---", "+++")):
        return FrontMatter()
    lines = re.split(r"\r\n|\n|\r", text[:_MAX_CHARS])
    end = front_matter_end(lines)
    if not end:
        return FrontMatter()
    rows = lines[1 : end - 1]
    values = _toml(rows) if text[0] == "+" else _yaml(rows)
    return FrontMatter(_date(values), tuple(_tags(values)))


def _date(values: Mapping[str, Any]) -> date | None:
    for key in _DATE_KEYS:
        value = values.get(key)
        if isinstance(value, datetime):
            value = value.date()
        if isinstance(value, str):
            value = written_date(value)
        if isinstance(value, date) and 1900 <= value.year <= 2099:
            return value
    return None


def _tags(values: Mapping[str, Any]) -> list[str]:
    found: dict[str, None] = {}
    for key in _TAG_KEYS:
        value = values.get(key)
        items = value.split(",") if isinstance(value, str) else value
        for item in items if isinstance(items, list) else ():
            if isinstance(item, str | int | float) and not isinstance(item, bool):
                tag = " ".join(str(item).split()).removeprefix("#")
                if 0 < len(tag) <= _MAX_TAG_CHARS:
                    found.setdefault(tag)
    return list(found)[:_MAX_TAGS]


def _toml(rows: Sequence[str]) -> dict[str, Any]:
    try:
        values = tomllib.loads("\n".join(rows))
    except (ValueError, RecursionError):
        return {}
    # Zola keeps tags in a table of their own.
    taxonomies = values.get("taxonomies")
    nested = taxonomies if isinstance(taxonomies, dict) else {}
    return {key.lower(): value for key, value in {**nested, **values}.items()}


def _yaml(rows: Sequence[str]) -> dict[str, str | list[str]]:
    values: dict[str, str | list[str]] = {}
    for key, value, below in _entries(rows):
        if key in values or not (key in _DATE_KEYS or key in _TAG_KEYS):
            continue
        if value.startswith("["):
            values[key] = _flow(" ".join((value, *below)))
        elif value and not value.startswith(_NOT_PLAIN):
            values[key] = _scalar(value)
        elif not value:
            items = [match[1] for row in below if (match := _ITEM.match(row))]
            values[key] = [_scalar(item) for item in items if not item.startswith(_NOT_PLAIN)]
    return values


def _entries(rows: Sequence[str]) -> Iterator[tuple[str, str, list[str]]]:
    """Keys at the margin with what follows them in their row, and the rows below that."""
    key, value, below = "", "", []
    for row in rows:
        match = _KEY.match(row)
        if match is None:
            if row.strip() and not row.startswith("#"):
                below.append(_COMMENT.sub("", row))
            continue
        if key:
            yield key, value, below
        key, value, below = match[2].lower(), (match[3] or "").strip(), []
        if value.startswith("#"):
            value = ""
    if key:
        yield key, value, below


def _flow(text: str) -> list[str]:
    """Items of a list in brackets; none of one that is not closed or holds more than text."""
    body = text[1:]
    items: list[str] = []
    while True:
        body = body.lstrip()
        if body.startswith("]") or not body:
            return items if body else []
        end = body.find("]")
        match = _FLOW.match(body) if body[0] in "\"'" else _FLOW.match(body[: max(0, end)])
        if match is None:
            # The last item, with the bracket right behind its quotes.
            match = re.match(r"""("(?:[^"\\]|\\.)*"|'(?:[^']|'')*')\s*(?=\])""", body)
        if match is None:
            return []
        items.append(_scalar(match[1]))
        body = body[match.end() :]


def _scalar(value: str) -> str:
    """Text without quotes, escapes and a comment behind it."""
    value = value.strip()
    quoted = _QUOTED.match(value)
    if quoted is None:
        return _COMMENT.sub("", value).strip()
    inner = quoted[1][1:-1]
    if value[0] == "'":
        return inner.replace("''", "'")
    return re.sub(r"\\(.)", r"\1", inner)

"""The day that a file's name or a written date stands for.

A date that is read here is one of the calendar, between 1900 and 2099. What could as well be a
version, a number or a month first is none.
"""

from __future__ import annotations

import re
from datetime import date

__all__ = ["date_in_name", "written_date"]

_YEAR = r"(?P<y>19\d\d|20\d\d)"
_MONTH = r"(?P<m>0[1-9]|1[0-2])"
_DAY = r"(?P<d>0[1-9]|[12]\d|3[01])"
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_ORDINAL = r"(?:st|nd|rd|th|\.)?"
_MONTH_NAME = r"(?P<name>(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6})"

# Whole days come first. With dots it may be a version, which has a "v" before it or goes on.
_IN_NAME = (
    re.compile(rf"(?<![\d.])(?<!\d[-_]){_YEAR}(?P<s>[-_]){_MONTH}(?P=s){_DAY}(?!\d)"),
    re.compile(rf"(?<![\d.\w]){_YEAR}\.{_MONTH}\.{_DAY}(?![\d.]\d|\d)"),
    re.compile(rf"(?<![\d.])(?<!\d[-_]){_YEAR}{_MONTH}{_DAY}(?!\d|\.\d)"),
    re.compile(
        rf"(?<!\d){_YEAR}{_MONTH}{_DAY}(?=[-_T]?(?:[01]\d|2[0-3])[0-5]\d(?:[0-5]\d)?(?!\d))"
    ),
)
_MONTH_IN_NAME = re.compile(rf"(?<![\d.A-Za-z])(?<!\d[-_]){_YEAR}[-_]{_MONTH}(?![\dA-Za-z]|[-_]\d)")
_NOT_DATED = re.compile(r"(?i)(?:^|[-_ ])(?:cve|rfc|pep|iso|issue|pr|bug)[-_ ]?$")

_WRITTEN = (
    re.compile(r"(?P<y>\d{4})(?P<s>[-/.])(?P<m>\d{1,2})(?P=s)(?P<d>\d{1,2})(?![\d-])"),
    re.compile(rf"{_YEAR}{_MONTH}{_DAY}(?!\d)"),
    re.compile(r"(?P<d>\d{1,2})\.[ ]?(?P<m>\d{1,2})\.[ ]?(?P<y>\d{4})(?!\d)"),
    re.compile(r"(?P<y>\d{4})-(?P<m>\d{1,2})(?![\d-])"),
)
_IN_WORDS = (
    re.compile(rf"(?i)(?P<d>\d{{1,2}}){_ORDINAL}[ -]{_MONTH_NAME}\.?,?[ -](?P<y>\d{{4}})\b"),
    re.compile(rf"(?i)\b{_MONTH_NAME}\.?[ ](?P<d>\d{{1,2}}){_ORDINAL},?[ ](?P<y>\d{{4}})\b"),
    re.compile(rf"(?i)\b{_MONTH_NAME}\.?,?[ ](?P<y>\d{{4}})\b"),
)
_LONGEST = 100  # characters of what can be one date


def date_in_name(path: str) -> date | None:
    """The first day that a file's name holds, or else its first month, as its first day.

    `2024-03-17`, `2024_03_17`, `20240317` with or without a time of day, `2024.03.17` standing
    alone, `2024-03`. Directories do not count.
    """
    name = path.rsplit("/", 1)[-1]
    found = [
        (match.start(), day)
        for pattern in _IN_NAME
        for match in pattern.finditer(name)
        if (day := _day_of(match)) is not None
    ]
    if found:
        return min(found)[1]
    for match in _MONTH_IN_NAME.finditer(name):
        if not _NOT_DATED.search(name[: match.start()]):
            return _day_of(match)
    return None


def written_date(text: str) -> date | None:
    """The day that a written date means: ISO with or without a time, `2024/03/17`, `17.03.2024`,
    `17 March 2024`, `March 17, 2024`, and months as their first day. None for all else.
    """
    text = text.strip()[:_LONGEST]
    for pattern in _WRITTEN:
        match = pattern.match(text)
        if match is not None:
            return _day_of(match)
    for pattern in _IN_WORDS:
        match = pattern.search(text)
        if match is not None:
            return _day_of(match)
    return None


def _day_of(match: re.Match[str]) -> date | None:
    parts = match.groupdict()
    try:
        year, day = int(parts["y"]), int(parts.get("d") or 1)
        month = _MONTHS.index(parts["name"][:3].lower()) + 1 if "name" in parts else int(parts["m"])
        return date(year, month, day) if 1900 <= year <= 2099 else None
    except ValueError:
        return None

"""Which files a question is about: globs, languages, kinds, tags, dates, versions.

Filters are resolved to a set of files once, before anything is searched, so that they bind before
the best are chosen and before heat spreads. Values of one filter widen it, filters narrow each
other: a file passes if each filter that is given has a value which fits it.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import date
from typing import Literal

from ragx.algo.chunking.languages import LANGUAGES, kind_of, named_language
from ragx.errors import UsageError
from ragx.store.base import FileFacts, Reader

__all__ = ["KINDS", "Filters", "Scope", "Temporal", "parse_filters", "resolve"]

KINDS = ("code", "data", "docs")

Temporal = Literal["", "recent", "oldest"]
"""Whether a document's date counts in its score, and which end of time is wanted."""

_DAY = re.compile(r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2}))?)?\Z")
_HASH = re.compile(r"[0-9a-f]{8,32}\Z")
_MOST_COMPARED = 1000  # comparing takes some 20 microseconds each
_SHOWN = 3  # values of a filter that a message names


@dataclass(frozen=True, slots=True)
class Filters:
    """What a file has to be to count; an empty filter lets all pass. See `parse_filters`.

    Args:
        paths: gitignore-style globs relative to the root. A file passes if one matches it, or if
            all begin with `!`; and none that begins with `!` matches it. Order means nothing.
        files: exact paths, as in results.
        languages, kinds: of `LANGUAGES` and `KINDS`.
        tags: from front matter, compared without regard to case.
        since, until: first and last day; the file's date is the one that `documents.dates` finds.
        source_versions: content hashes, as in evidence packs, or how they begin.
    """

    paths: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    since: date | None = None
    until: date | None = None
    source_versions: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Whether anything is asked of a file."""
        return any(getattr(self, item.name) for item in fields(self))

    @property
    def about_time(self) -> bool:
        """Whether a file's date decides."""
        return self.since is not None or self.until is not None


@dataclass(frozen=True, slots=True)
class Scope:
    """The files that filters let through.

    Args:
        paths: those of them that have chunks; None for all there are.
        warning: which filter leaves nothing, if nothing is left.
    """

    paths: frozenset[str] | None = None
    warning: str = ""


def parse_filters(
    *,
    paths: Iterable[str] = (),
    files: Iterable[str] = (),
    languages: Iterable[str] = (),
    kinds: Iterable[str] = (),
    tags: Iterable[str] = (),
    since: str = "",
    until: str = "",
    source_versions: Iterable[str] = (),
) -> Filters:
    """Check what a person or a program wrote.

    Args:
        languages: names, or extensions such as `py`.
        since, until: YYYY, YYYY-MM or YYYY-MM-DD; `until` means the last day of what it names.

    Raises:
        UsageError: code "bad_filter"; a value means nothing, with the nearest that would.
    """
    found = Filters(
        paths=_unique(_checked_glob(glob) for glob in paths),
        files=_unique(_checked_file(path) for path in files),
        languages=_unique(_language(name) for name in languages),
        kinds=_unique(_kind(name) for name in kinds),
        tags=_unique(_filled("--tag", tag).strip().casefold() for tag in tags),
        since=_day("--since", since, last=False) if since else None,
        until=_day("--until", until, last=True) if until else None,
        source_versions=_unique(_version(text) for text in source_versions),
    )
    if found.since and found.until and found.since > found.until:
        raise _bad(
            f"--since {found.since} is after --until {found.until}",
            "no day is in between: swap them",
        )
    return found


def resolve(reader: Reader, filters: Filters) -> Scope:
    """The files of a snapshot that may count.

    Raises:
        UsageError: code "bad_filter"; a glob is none.
    """
    if not filters:
        return Scope()
    left = rows = reader.facts()
    for _, passes in _tests(filters):
        left = [row for row in left if passes(row)]
    if not left:
        return Scope(frozenset(), _why_nothing(rows, filters))
    if len(left) == len(rows):
        return Scope()
    return Scope(frozenset(row.path for row in left))


def _why_nothing(rows: Sequence[FileFacts], filters: Filters) -> str:
    if not rows:
        return ""
    tests = _tests(filters)
    alone = [name for name, passes in tests if not any(map(passes, rows))]
    if not alone:
        return f"no file passes {' and '.join(name for name, _ in tests)} together"
    near = ""
    if filters.files and alone[0].startswith("--file"):
        close = _nearest_paths(filters.files[0], [row.path for row in rows])
        near = f"; close to it: {', '.join(close)}" if close else ""
    elif filters.tags and alone[0].startswith("--tag"):
        tags = sorted({tag for row in rows for tag in row.tags})
        close = _nearest(filters.tags[0], tags) or tags[:_SHOWN]
        near = f"; there are {', '.join(close)}" if close else "; no file has tags"
    return f"no file passes {' nor '.join(alone)}{near}"


def _tests(filters: Filters) -> list[tuple[str, Callable[[FileFacts], bool]]]:
    """Each filter that is given, as it is written, and whether a file passes it."""
    tests: list[tuple[str, Callable[[FileFacts], bool]]] = []

    def add(name: str, values: Collection[object], passes: Callable[[FileFacts], bool]) -> None:
        if values:
            shown = [f"{name} {value}" for value in list(values)[:_SHOWN]]
            tests.append((" ".join(shown) + (" ..." if len(values) > _SHOWN else ""), passes))

    files, languages, kinds = set(filters.files), set(filters.languages), set(filters.kinds)
    tags, since, until = set(filters.tags), filters.since, filters.until
    add("--path", filters.paths, _path_test(filters.paths) if filters.paths else _all_pass)
    add("--file", filters.files, lambda row: row.path in files)
    add("--lang", filters.languages, lambda row: row.language in languages)
    add("--kind", filters.kinds, lambda row: kind_of(row.language) in kinds)
    add("--tag", filters.tags, lambda row: any(tag.casefold() in tags for tag in row.tags))
    add(
        "--source-version",
        filters.source_versions,
        lambda row: row.content_hash.startswith(filters.source_versions),
    )
    if since is not None:
        first = since.isoformat()
        add("--since", (first,), lambda row: row.day >= first)
    if until is not None:
        last = until.isoformat()
        add("--until", (last,), lambda row: row.day <= last)
    return tests


def _all_pass(_: FileFacts) -> bool:
    return True


def _path_test(globs: Sequence[str]) -> Callable[[FileFacts], bool]:
    wanted = _regex([glob for glob in globs if glob[0] != "!"])
    unwanted = _regex([glob[1:] for glob in globs if glob[0] == "!"])
    return lambda row: (
        (wanted is None or wanted(row.path) is not None)
        and (unwanted is None or unwanted(row.path) is None)
    )


def _regex(globs: Sequence[str]) -> Callable[[str], re.Match[str] | None] | None:
    """Whether a path matches one of the globs; None without any."""
    from pathspec import GitIgnoreSpec

    # One expression for all: asking the library about each path takes several times as long.
    found = [pattern.regex for pattern in GitIgnoreSpec.from_lines(map(_pattern, globs)).patterns]
    texts = [regex.pattern for regex in found if regex is not None]
    # Names of groups are of use to the library alone, and may stand in one expression only once.
    plain = [re.sub(r"\(\?P<\w+>", "(?:", text) for text in texts]
    return re.compile("|".join(f"(?:{text})" for text in plain)).match if plain else None


def _pattern(glob: str) -> str:
    """A glob as a line of an ignore file, where `#` begins a comment and `!` negates."""
    glob = glob.removeprefix("./")
    return f"\\{glob}" if glob[:1] in ("#", "!") else glob


def _checked_glob(glob: str) -> str:
    from pathspec import GitIgnoreSpec

    bare = _filled("--path", glob.removeprefix("!")).removeprefix("./")
    if ".." in bare.split("/"):
        raise _bad(f"--path {glob}: it leads out of the corpus", "globs are relative to its root")
    if bare.strip("/"):
        try:
            if len(GitIgnoreSpec.from_lines([_pattern(bare)])):
                return glob
        except (ValueError, re.error):
            pass
    raise _bad(
        f"--path {glob}: not a gitignore-style glob",
        "such as 'src/**/*.py', 'docs/' or '!tests/'; a backslash makes [ ] * ? plain",
    )


def _checked_file(path: str) -> str:
    bare = _filled("--file", path).removeprefix("./")
    if bare.startswith("/") or ".." in bare.split("/"):
        raise _bad(
            f"--file {path}: it leads out of the corpus", "paths are as in results: from its root"
        )
    return bare


def _language(name: str) -> str:
    known = named_language(_filled("--lang", name).strip())
    if known is None:
        close = _nearest(name.lower(), LANGUAGES)
        raise _bad(f"--lang {name}: no such language", f"known: {', '.join(close or LANGUAGES)}")
    return known


def _kind(name: str) -> str:
    if name.lower() not in KINDS:
        raise _bad(f"--kind {name}: no such kind", f"known: {', '.join(KINDS)}")
    return name.lower()


def _version(text: str) -> str:
    if not _HASH.match(text.lower()):
        raise _bad(
            f"--source-version {text}: not a content hash",
            "8 to 32 of the digits 0-9 and a-f, as source_version in evidence",
        )
    return text.lower()


def _day(option: str, text: str, *, last: bool) -> date:
    match = _DAY.match(text.strip())
    try:
        if match is None:
            raise ValueError
        year, month, day = (int(part) if part else None for part in match.groups())
        year = year or 0
        if month is None:
            month = 12 if last else 1
        if day is None:
            # A month that is none fails below.
            day = calendar.monthrange(year, month)[1] if last and 1 <= month <= 12 else 1
        return date(year, month, day)
    except ValueError as fault:
        raise _bad(
            f"{option} {text}: not a date", f"{option} 2024-03-17, or 2024-03, or 2024"
        ) from fault


def _filled(option: str, text: str) -> str:
    if not text.strip() or "\n" in text or "\0" in text:
        raise _bad(f"{option} {text!r} says nothing", f"leave out {option}, or give it a value")
    return text


def _bad(message: str, hint: str) -> UsageError:
    return UsageError(message, code="bad_filter", hint=hint)


def _nearest(name: str, known: Sequence[str]) -> list[str]:
    from difflib import get_close_matches

    return get_close_matches(name, known, n=_SHOWN, cutoff=0.5)


def _nearest_paths(path: str, known: Sequence[str]) -> list[str]:
    """Files of the same name elsewhere; of few files, those whose path is much the same."""
    name = path.rpartition("/")[2].lower()
    same = [other for other in known if other.rpartition("/")[2].lower() == name]
    return same[:_SHOWN] or _nearest(path, known[:_MOST_COMPARED])


def _unique(values: Iterable[str]) -> tuple[str, ...]:
    """Without repeats, in one order, so that equal questions are equal."""
    return tuple(sorted(set(values)))

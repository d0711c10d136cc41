"""Ignore patterns as git reads them, compiled for a walk over many entries.

Git matches bytes, not characters: `?` is one byte and `[é]` two. Patterns and names are therefore
held as "keys", strings with one character per byte (`match_key`), which for ASCII is the name
itself. The rules follow git's own parser where it departs from its manual: a literal head of a
pattern is compared apart, so that in `foo**/bar` the stars count as standing at a border.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

__all__ = [
    "IgnoreRules",
    "enclosing_repository",
    "exclude_file",
    "match_key",
    "parse_globs",
    "parse_ignore_file",
]

_SPECIAL = re.compile(r"[*?\[\\]")
_CLASSES = {
    "alpha": "A-Za-z",
    "upper": "A-Z",
    "lower": "a-z",
    "digit": "0-9",
    "alnum": "A-Za-z0-9",
    "xdigit": "0-9A-Fa-f",
    "space": r" \t\n\r",
    "blank": r" \t",
    "punct": r"!-/:-@\[-`{-~",
    "print": " -~",
    "graph": "!-~",
    "cntrl": r"\x00-\x1f\x7f",
}

# Tokens that are not a regular expression for exactly one byte.
_STAR = "*"  # any run without a slash
_TREE = "**/"  # any number of whole directories, none included
_REST = "**"  # anything at all
_SLASH = "/"

_Matcher = Callable[[str], "re.Match[str] | None"]


@dataclass(slots=True)
class _Side:
    """The rules that can decide one kind of entry (file or directory), by how they are found.

    Every value is a rule's position in its file; the highest that matches decides.
    """

    names: dict[str, int] = field(default_factory=dict)
    suffixes: dict[str, int] = field(default_factory=dict)
    paths: dict[str, int] = field(default_factory=dict)
    name_regexes: list[tuple[int, str]] = field(default_factory=list)
    path_regexes: list[tuple[int, str]] = field(default_factory=list)


class IgnoreRules:
    """The patterns of one ignore file, or of one list of globs, in order."""

    __slots__ = ("_dirs", "_files", "_signs")

    def __init__(self, lines: Iterable[str]) -> None:
        """Compile lines given as match keys; comments and patterns that match nothing drop out."""
        signs: list[bool] = []
        files, dirs = _Side(), _Side()
        for line in lines:
            rule = _parse(line)
            if rule is None:
                continue
            for side in (dirs,) if rule.dirs_only else (files, dirs):
                _place(side, rule, len(signs))
            signs.append(not rule.negated)
        self._signs = signs
        self._files = _compile(files)
        self._dirs = _compile(dirs)

    def __bool__(self) -> bool:
        return bool(self._signs)

    def verdict(self, name_key: str, path_key: str, *, is_dir: bool) -> bool | None:
        """What the last matching rule says: True matched, False negated, None no rule.

        Args:
            name_key: last part of the entry's path.
            path_key: its path relative to the directory that the rules belong to.
            is_dir: whether it is a directory (a link to one is not).
        """
        best = (self._dirs if is_dir else self._files)(name_key, path_key)
        return None if best < 0 else self._signs[best]


def parse_ignore_file(data: bytes) -> IgnoreRules:
    """Read the content of a `.gitignore`-like file; any bytes are legal."""
    if data.startswith(b"\xef\xbb\xbf"):
        data = data[3:]
    lines = []
    for line in data.decode("latin-1").split("\n"):
        line = line.removesuffix("\r").partition("\0")[0]
        if line and not line.startswith("#"):
            lines.append(_strip_spaces(line))
    return IgnoreRules(lines)


def parse_globs(globs: Sequence[str]) -> IgnoreRules:
    """Compile gitignore-style globs from settings, one pattern an item."""
    return IgnoreRules(_strip_spaces(match_key(glob)) for glob in globs if glob[:1] != "#")


def match_key(text: str) -> str:
    """One character per byte of the name as the file system stores it."""
    return text if text.isascii() else text.encode("utf-8", "surrogateescape").decode("latin-1")


def enclosing_repository(directory: Path) -> Path | None:
    """Nearest directory, itself included, that holds a `.git` entry; None outside repositories."""
    for candidate in (directory, *directory.parents):
        if os.path.lexists(candidate / ".git"):
            return candidate
    return None


def exclude_file(top: Path) -> Path:
    """Where a repository keeps patterns of its own, `info/exclude`; the file may be absent.

    In a worktree or submodule `.git` is a file that names the real directory.
    """
    git = top / ".git"
    try:
        if git.is_file():
            named = git.read_text("utf-8", "surrogateescape").partition("gitdir:")[2].strip()
            git = top / named
        common = git / "commondir"
        if common.is_file():
            git = git / common.read_text("utf-8", "surrogateescape").strip()
    except (OSError, ValueError):
        return top / ".git" / "info" / "exclude"
    return git / "info" / "exclude"


@dataclass(frozen=True, slots=True)
class _Rule:
    head: str  # literal start, compared as it stands
    tokens: tuple[str, ...]  # the rest: `_STAR` and the like, or a regex for one byte
    literal: str | None  # the whole pattern where it is free of wildcards
    suffix: str | None  # what follows in a pattern `*` + literal
    negated: bool
    dirs_only: bool
    by_name: bool


def _strip_spaces(line: str) -> str:
    """Drop trailing spaces that no backslash protects."""
    end = len(line)
    while end and line[end - 1] == " ":
        end -= 1
    if end == len(line):
        return line
    # An odd number of backslashes before the spaces protects the first of them.
    slashes = end - len(line[:end].rstrip("\\"))
    return line[: end + slashes % 2]


def _parse(line: str) -> _Rule | None:
    negated = line.startswith("!")
    pattern = line[negated:]
    dirs_only = pattern.endswith("/")
    if dirs_only:
        pattern = pattern[:-1]
    by_name = "/" not in pattern
    pattern = pattern.removeprefix("/")
    if not pattern:
        return None
    special = _SPECIAL.search(pattern)
    cut = 0 if by_name else len(pattern) if special is None else special.start()
    tokens = _tokens(pattern[cut:], by_name=by_name)
    if tokens is None:
        return None
    literal = pattern if special is None else None
    suffix = None
    if by_name and pattern.startswith("*") and not _SPECIAL.search(pattern, 1):
        suffix = pattern[1:]
    return _Rule(pattern[:cut], tokens, literal, suffix, negated, dirs_only, by_name)


def _tokens(pattern: str, *, by_name: bool) -> tuple[str, ...] | None:
    """Split into tokens; None if the pattern is malformed, which in git matches nothing."""
    tokens: list[str] = []
    at, end = 0, len(pattern)
    while at < end:
        char = pattern[at]
        if char == "*":
            stop = at
            while stop < end and pattern[stop] == "*":
                stop += 1
            bordered = not by_name and stop - at > 1 and (at == 0 or pattern[at - 1] == "/")
            if bordered and stop == end:
                tokens.append(_REST)
            elif bordered and pattern[stop] == "/":
                tokens.append(_TREE)
                stop += 1
            elif bordered and pattern.startswith("\\/", stop):
                tokens.append(_REST)
            else:
                tokens.append(_STAR)
            at = stop
        elif char == "?":
            tokens.append("[^/]")
            at += 1
        elif char == "[":
            parsed = _bracket(pattern, at + 1)
            if parsed is None:
                return None
            token, at = parsed
            tokens.append(token)
        else:
            at += char == "\\"
            if at == end:
                return None
            tokens.append(_SLASH if pattern[at] == "/" else re.escape(pattern[at]))
            at += 1
    return tuple(tokens)


def _bracket(pattern: str, at: int) -> tuple[str, int] | None:
    """Translate a bracket expression that opens before `at` into a regex for one byte.

    The closing bracket may be the first member, a backslash escapes, and the slash never matches.
    """
    end = len(pattern)
    negated = at < end and pattern[at] in "!^"
    at += negated
    members: list[str] = []
    previous = ""
    first = True
    while True:
        if at >= end:
            return None
        char = pattern[at]
        if char == "]" and not first:
            break
        first = False
        if char == "\\":
            at += 1
            if at >= end:
                return None
            previous = pattern[at]
            members.append(_member(previous))
        elif char == "-" and previous and at + 1 < end and pattern[at + 1] != "]":
            at += 1
            if pattern[at] == "\\":
                at += 1
                if at >= end:
                    return None
            if previous <= pattern[at]:
                members.append(f"{_member(previous)}-{_member(pattern[at])}")
            previous = ""
        elif pattern.startswith("[:", at):
            close = pattern.find("]", at + 2)
            if close < 0:
                return None
            # `[:]` and `[:x]` are plain members; only `[:x:]` is a class.
            if close - at - 2 >= 1 and pattern[close - 1] == ":":
                members_of = _CLASSES.get(pattern[at + 2 : close - 1])
                if members_of is None:
                    return None
                members.append(members_of)
                previous = ""
                at = close
            else:
                previous = char
                members.append(_member(char))
        else:
            previous = char
            members.append(_member(char))
        at += 1
    at += 1
    if not members:
        return ("[^/]" if negated else "(?!)"), at
    body = "".join(members)
    return (f"[^/{body}]" if negated else f"(?!/)[{body}]"), at


def _member(char: str) -> str:
    return f"\\x{ord(char):02x}"


def _regex(tokens: Sequence[str]) -> str:
    """Regex for a token list, to be matched to the very end of the subject.

    Where stars follow each other, the leftmost place for what stands between two of them is as
    good as any other, so the choice is made once (atomic groups): no pattern takes exponential
    time, however hostile.
    """
    segments = _split(tokens, _TREE)
    parts = [_segment(segments[0])]
    for segment in segments[1:-1]:
        parts.append(f"(?>(?:[^/]*/)*?{_segment(segment)})")
    if len(segments) > 1:
        parts.append(f"(?:[^/]*/)*{_segment(segments[-1])}")
    return "".join(parts)


def _segment(tokens: Sequence[str]) -> str:
    return "/".join(_component(part) for part in _split(tokens, _SLASH))


def _component(tokens: Sequence[str]) -> str:
    pieces = [
        "".join(".*" if token == _REST else token for token in piece)
        for piece in _split(tokens, _STAR)
    ]
    if len(pieces) == 1:
        return pieces[0]
    middle = "".join(f"(?>[^/]*?{piece})" for piece in pieces[1:-1])
    return f"{pieces[0]}{middle}[^/]*{pieces[-1]}"


def _split(tokens: Sequence[str], at: str) -> list[list[str]]:
    groups: list[list[str]] = [[]]
    for token in tokens:
        if token == at:
            groups.append([])
        else:
            groups[-1].append(token)
    return groups


def _place(side: _Side, rule: _Rule, position: int) -> None:
    """File a rule where the cheapest test finds it; later rules overwrite earlier equal ones."""
    if rule.literal is not None:
        (side.names if rule.by_name else side.paths)[rule.literal] = position
    elif rule.suffix is not None and rule.suffix[:1] == "." and "." not in rule.suffix[1:]:
        side.suffixes[rule.suffix] = position
    else:
        regex = re.escape(rule.head) + _regex(rule.tokens)
        (side.name_regexes if rule.by_name else side.path_regexes).append((position, regex))


def _alternatives(regexes: list[tuple[int, str]]) -> tuple[_Matcher, list[int]] | None:
    """One matcher for many regexes that tries the last rule first; group number -> position."""
    if not regexes:
        return None
    backwards = regexes[::-1]
    source = "|".join(f"({regex})" for _, regex in backwards)
    positions = [-1, *(position for position, _ in backwards)]
    return re.compile(rf"(?s:{source})\Z").match, positions


def _compile(side: _Side) -> Callable[[str, str], int]:
    """A function of (name, path) that gives the highest matching position, or -1."""
    names, suffixes, paths = side.names, side.suffixes, side.paths
    by_name = _alternatives(side.name_regexes)
    by_path = _alternatives(side.path_regexes)

    def find(name: str, path: str) -> int:
        best = names.get(name, -1)
        if suffixes:
            dot = name.rfind(".")
            if dot >= 0:
                best = max(best, suffixes.get(name[dot:], -1))
        if by_name:
            match = by_name[0](name)
            if match and match.lastindex:
                best = max(best, by_name[1][match.lastindex])
        if paths:
            best = max(best, paths.get(path, -1))
        if by_path:
            match = by_path[0](path)
            if match and match.lastindex:
                best = max(best, by_path[1][match.lastindex])
        return best

    return find

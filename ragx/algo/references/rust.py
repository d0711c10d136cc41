"""Rust's `use`, `mod` and included files."""

from __future__ import annotations

import re

from ragx.algo.references.base import Reference, line_before

__all__ = ["rust_imports"]

_TOKEN = re.compile(
    r"//[^\n]*+|/\*(?:[^*]++|\*(?!/))*+(?:\*/)?"
    r'|"[^"\\]*+(?:\\.[^"\\]*+)*+"?'
    r"|'(?:\\[^\n']{1,12}'|\\''|[^'\\\n]')"
    r"|r#*\"|use\b|mod\b|extern\b|include|\{|\}",
    re.S,
)
_USE = re.compile(r"use\s{1,99}([^;]{1,3000}+);")
_MOD = re.compile(r"mod\s{1,99}(?:r#)?(\w+)\s{0,99}([;{])")
_EXTERN = re.compile(r"extern\s{1,99}crate\s{1,99}(\w+)[^;\n]{0,99}+;")
_INCLUDE = re.compile(r"include(?:_str|_bytes)?!\s{0,99}\(\s{0,99}\"([^\"\n]{1,500}+)\"\s{0,99}\)")
_TREE = re.compile(r"\bas\s+\w+|(?:r#)?\w+|[{},*]|//[^\n]*+|/\*(?:[^*]++|\*(?!/))*+(?:\*/)?")
_VISIBILITY = re.compile(r"(?:pub(?:\s*\([^()\n]*\))?|[;{}\])]|\*/)?\s*")


def rust_imports(text: str) -> list[Reference]:
    """Read `use`, `mod x;`, `extern crate` and `include_str!("x")`.

    `use a::{b, c::d}` gives one reference per module, with the names taken from it: `a` with `b`,
    `a::c` with `d`. `mod x;` is `self::x`. `super` inside an inline module is relative to the
    file: one `super` there leads to the file itself and is dropped.
    """
    found: list[Reference] = []
    last = max(map(text.rfind, ("use", "mod", "extern", "include")))
    if last < 0:
        return found
    depth = 0
    inline: list[int] = []  # brace depths at which inline modules opened
    unclosed: set[str] = set()
    at = 0
    while True:
        token = _TOKEN.search(text, at)
        if token is None or token.start() > last:
            return found
        start, at = token.span()
        word = token[0]
        if word == "{":
            depth += 1
        elif word == "}":
            depth -= 1
            if inline and inline[-1] > depth:
                inline.pop()
        elif word[0] == "r" and word[-1] == '"':
            closer = '"' + word[1:-1]
            if start and (text[start - 1].isalnum() or text[start - 1] == "_"):
                at = start + 1 if len(word) == 2 else at
                continue
            end = -1 if closer in unclosed else text.find(closer, at)
            if end < 0:
                unclosed.add(closer)
            else:
                at = end + len(closer)
        elif word == "include":
            match = _INCLUDE.match(text, start)
            if match:
                at = match.end()
                found.append(Reference("import", match[1], "include", "", start, at))
        elif word[0] in "ume" and _is_item(text, start):
            if word == "mod":
                match = _MOD.match(text, start)
                if match:
                    at = match.end()
                    if match[2] == "{":
                        depth += 1
                        inline.append(depth)
                    elif not inline:
                        name = "self::" + match[1]
                        found.append(Reference("import", name, "rust", "", start, at))
            elif word == "extern":
                match = _EXTERN.match(text, start)
                if match:
                    at = match.end()
                    found.append(Reference("import", match[1], "rust", "", start, at))
            else:
                match = _USE.match(text, start)
                if match:
                    at = match.end()
                    found += _uses(match[1], len(inline), start, at)


def _is_item(text: str, offset: int) -> bool:
    """Tell whether an item may start here: at a line's start, or after `pub`, `;` or a brace."""
    before = line_before(text, offset).rstrip()
    if not before or before[-1] in ";{}])/":
        return True
    return before.endswith("pub") or _VISIBILITY.fullmatch(before.lstrip()) is not None


def _uses(tree: str, n_inline: int, start: int, end: int) -> list[Reference]:
    names_of: dict[tuple[str, ...], dict[str, None]] = {}
    for path in _leaves(tree):
        parts = _outside_inline(path, n_inline)
        if not parts:
            continue
        if len(parts) > 1 and parts[-1] != "*":
            names_of.setdefault(tuple(parts[:-1]), {})[parts[-1]] = None
        else:
            module = parts[:-1] if parts[-1] == "*" else parts
            if module:
                names_of.setdefault(tuple(module), {})
    return [
        Reference("import", "::".join(module), "rust", " ".join(names), start, end)
        for module, names in names_of.items()
    ]


def _leaves(tree: str) -> list[list[str]]:
    """Expand a use tree into paths; `self` in braces is the module that the braces belong to."""
    leaves: list[list[str]] = []
    prefixes: list[list[str]] = []
    path: list[str] = []
    opened = False  # the path so far ended in braces that gave its leaves
    for token in _TREE.finditer(tree):
        word = token[0]
        if word == "{":
            prefixes.append(path)
            path = list(path)
            opened = False
        elif word in ",}":
            base = prefixes[-1] if prefixes else []
            if not opened and len(path) > len(base):
                leaves.append(path)
            opened = False
            if word == "}":
                if prefixes:
                    prefixes.pop()
                opened = True
                path = list(base)
            else:
                path = list(base)
        elif word[0] not in "/" and not word.startswith(("as ", "as\t", "as\n")):
            path = [*path, word.removeprefix("r#")]
    if not opened and path:
        leaves.append(path)
    return [leaf[:-1] if leaf[-1] == "self" and len(leaf) > 1 else leaf for leaf in leaves]


def _outside_inline(path: list[str], n_inline: int) -> list[str]:
    """Rewrite a path so that it starts at the file's own module; [] if it stays inside it."""
    if not n_inline or path[0] not in {"self", "super"}:
        return path
    n_super = 0
    while n_super < len(path) and path[n_super] == "super":
        n_super += 1
    if n_super < n_inline:
        return []
    rest = path[n_inline:]
    return rest if n_super > n_inline else ["self", *rest] if rest else []

"""Source code along its definitions: by grammar where there is one, else by indentation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING

from ragx.algo.chunking.grammars import (
    GRAMMARS,
    Role,
    load_grammar,
    paths_of,
    roles_of,
)
from ragx.algo.chunking.lines import Source
from ragx.algo.chunking.packing import Piece, Unit, merge_small, pack, split_rows

if TYPE_CHECKING:
    from tree_sitter import Language, Node

__all__ = ["code_units"]

_MAX_PARSED_CHARS = 1_000_000
# Longer rows on average mean minified or generated code: no rows to cut at, nothing worth naming.
_MAX_MEAN_ROW = 500
# The parser reports progress once in about 200 bytes of source, in 48 of the densest found. Where
# recovery from errors explodes (time quadratic in length), reports come many times as often.
_MIN_BYTES_PER_REPORT = 48
_FREE_REPORTS = 500
_READ_BYTES = 1 << 16
_MAX_ERROR_SHARE = 1 / 3
_MAX_LEVELS = 60
_OPAQUE = re.compile(r"string|comment|heredoc|regex|raw_text|template_literal")

_MODIFIER = (
    r"(?:(?:export|default|public|private|protected|internal|fileprivate|static|abstract|final"
    r"|sealed|open|override|async|inline|suspend|data|case|implicit|lazy|local|virtual|extern"
    r"|pub(?:\([^()\n]*\))?|comptime|mutating|indirect|external|late|factory|opaque|rec)[ \t]+)*"
)
_DEFINITION = re.compile(
    r"^[ \t]*+\(?" + _MODIFIER + r"(?:def|defp|defn|defmodule|defmacro|defun|class|function|fn|func"
    r"|fun|struct|enum|trait|interface|protocol|extension|mixin|module|object|record|type"
    r"|typealias|newtype|data|proc|sub|subroutine|package|namespace|actor|union|contract|message"
    r"|service|rpc|input|scalar|macro|program|procedure|entity)[ \t]+"
    # `enum class Color`, `fun <T> first()`
    r"(?:(?:class|struct|object|interface)[ \t]+|<[^>\n]*>[ \t]*)?([^\W\d][\w.:?!]*)"
    r"|^" + _MODIFIER + r"(?:val|let|var|const|define|constant)[ \t]+"
    r"(?:(?:val|rec|mut)[ \t]+)?([^\W\d]\w*)"  # `const val MAX`, `let rec map`
    r"|^[ \t]*+create[ \t]+(?:or[ \t]+replace[ \t]+)?(?:\w+[ \t]+)?(?:table|view|function|procedure"
    r"|index|trigger|type|schema)[ \t]+(?:if[ \t]+not[ \t]+exists[ \t]+)?[\"`\[]?([\w.]+)"
    r"|^([^\W\d][\w']*)[ \t]*(?:::|<-[ \t]*function\b|=[ \t]*function\b)"
    r"|^(?:resource|module|variable|output)[ \t]+(?:\"[\w-]+\"[ \t]+)?\"([\w-]+)\"",
    re.MULTILINE | re.IGNORECASE,
)
_DEFINITION_OF = MappingProxyType(
    {
        "makefile": re.compile(r"^([\w./%-]+)[ \t]*:(?!=)", re.MULTILINE),
        "bash": re.compile(
            r"^[ \t]*+(?:function[ \t]+)?([\w:.-]+)[ \t]*\(\)[ \t]*(?:[{(]|$)"
            r"|^[ \t]*+function[ \t]+([\w:.-]+)"
            r"|^(?:readonly |export |declare (?:-\w+ )*)?([A-Za-z_]\w*)\+?=",
            re.MULTILINE,
        ),
    }
)
_CLOSER = re.compile(r"[)}\]]|(?:end|else|elif|except|catch|finally|fi|done|esac|begin)\b", re.I)

Symbol = tuple[int, str]  # row, name


@dataclass(slots=True)
class _Item:
    """Rows `[first, after)` that belong together; `names` is what they add to the path."""

    first: int
    last: int
    after: int = 0
    names: tuple[str, ...] = ()
    nodes: list[Node] = field(default_factory=list)


def code_units(source: Source, language: str) -> tuple[list[Unit], list[Symbol]]:
    """Cut source code at definitions, and find the names it defines.

    A definition that fits is never cut, and one of half the size limit or more is a chunk of its
    own; smaller neighbours are packed. A longer one is cut at what it holds (a class at its
    methods, a function at its statements). Comments and attributes right above a definition stay
    with it. The path holds the names around the chunk, and its own if it is a single definition.

    Returns:
        Units in order, and (row, name) pairs in order of row.
    """
    root = _parsed(source, language)
    cutter = _Cutter(source, language)
    if root is None:
        cutter.symbols.update(_guessed_symbols(source, language))
        items = _indented_items(source, cutter.symbols)
    else:
        cutter.symbols.update(_symbols(root, language))
        items = cutter.items_of(root.named_children, 0, source.n_rows)
    cutter.emit(items, (), 0)
    return merge_small(source, cutter.units), sorted(cutter.symbols)


def _parsed(source: Source, language: str) -> Node | None:
    """Return the root of the syntax tree; None where indentation is the better guide."""
    n_chars = len(source.view)
    if (
        language not in GRAMMARS
        or n_chars > _MAX_PARSED_CHARS
        or n_chars > _MAX_MEAN_ROW * source.n_rows
    ):
        return None
    grammar = load_grammar(language)
    if grammar is None:
        return None
    root = _syntax_root(grammar, source.view.encode("utf-8", "replace"))
    if root is None:
        return None
    if root.has_error:
        broken = sum(
            child.end_point.row - child.start_point.row + 1
            for child in root.children
            if child.is_error
        )
        if root.is_error or broken > source.n_rows * _MAX_ERROR_SHARE:
            return None
    return root


def _syntax_root(grammar: Language, raw: bytes) -> Node | None:
    """Parse, and give up where error recovery takes far more steps than source code ever needs."""
    from tree_sitter import Parser

    allowed = _FREE_REPORTS + len(raw) // _MIN_BYTES_PER_REPORT
    n_reports = 0

    def give_up(_at: int, _has_error: bool) -> bool:
        nonlocal n_reports
        n_reports += 1
        return n_reports > allowed

    def read(at: int, _point: object) -> bytes:
        return raw[at : at + _READ_BYTES]

    try:
        return Parser(grammar).parse(read, progress_callback=give_up).root_node
    except ValueError:  # how the binding says that the callback stopped it
        return None


def _symbols(root: Node, language: str) -> Iterable[Symbol]:
    """Name every definition outside function bodies."""
    roles = roles_of(language)
    module_constants_only = language == "python"
    pending: list[tuple[Node, bool]] = [(child, False) for child in reversed(root.named_children)]
    while pending:
        node, inside = pending.pop()
        role = roles.get(node.type)
        if role is None or role == "lead":
            continue
        if role not in {"through", "scope"} and not (
            role == "constant" and inside and module_constants_only
        ):
            row = node.start_point.row
            yield from ((row, path[-1]) for path in paths_of(node, role))
        if role in {"container", "scope", "through"}:
            inside = inside or role == "container"
            pending.extend((child, inside) for child in reversed(node.named_children))


class _Cutter:
    """Collects units and the symbols of definitions met on the way down."""

    def __init__(self, source: Source, language: str) -> None:
        self.source = source
        self.roles = roles_of(language) if language in GRAMMARS else {}
        self.units: list[Unit] = []
        self.symbols: set[Symbol] = set()

    def emit(self, items: Sequence[_Item], path: tuple[str, ...], depth: int) -> None:
        """Make units of items that follow each other under one path.

        A nameless item that is too long is replaced by what it holds, so that a function's head
        is packed with its first statements, and a class's head with its first members.
        """
        run: list[tuple[Piece, _Item]] = []
        pending = [(item, 0) for item in reversed(items)]
        while pending:
            item, level = pending.pop()
            extent = self.source.extent(item.first, item.after)
            if extent is None:
                continue
            if not self.source.fits(*extent) or self.strands_head(run, item, extent[1]):
                if item.names and depth < _MAX_LEVELS:
                    if depth and self.is_head(run):
                        item.first = run[0][1].first
                        run = []
                    self.emit_run(run, path, depth)
                    run = []
                    self.emit([self.unnamed(item)], path + item.names, depth + 1)
                    continue
                inner = self.inner_items(item) if level < _MAX_LEVELS else []
                pending.extend((one, level + 1) for one in reversed(inner))
                if not inner and self.source.fits(*extent):
                    run.append((Piece(*extent), item))
                elif not inner:
                    rows = split_rows(self.source, item.first, item.after)
                    run.extend((piece, item) for piece in rows)
            elif item.names and self.source.size(*extent) * 2 >= self.source.size_tokens:
                self.emit_run(run, path, depth)
                run = []
                self.units.append(Unit(*extent, path + item.names, depth))
            else:
                run.append((Piece(*extent), item))
        self.emit_run(run, path, depth)

    def is_small(self, run: Sequence[tuple[Piece, _Item]]) -> bool:
        """Tell whether a run is too short to be a chunk, and free to join what follows."""
        return (
            bool(run)
            and self.source.size(run[0][0].start, run[-1][0].end) * 4 < self.source.size_tokens
            and not any(piece.alone for piece, _ in run)
        )

    def is_head(self, run: Sequence[tuple[Piece, _Item]]) -> bool:
        """Tell whether a run is just what precedes a container's first member."""
        return self.is_small(run) and not any(item.names for _, item in run)

    def strands_head(self, run: Sequence[tuple[Piece, _Item]], item: _Item, end: int) -> bool:
        """Tell whether a nameless item, kept whole, would leave a small run before it alone."""
        return not item.names and self.is_small(run) and not self.source.fits(run[0][0].start, end)

    def emit_run(
        self, run: Sequence[tuple[Piece, _Item]], path: tuple[str, ...], depth: int
    ) -> None:
        """Pack small items; a pack with one definition in it takes that one's name."""
        at = 0
        for packed in pack(self.source, [piece for piece, _ in run]):
            names: list[tuple[str, ...]] = []
            while at < len(run) and run[at][0].end <= packed.end:
                if run[at][1].names:
                    names.append(run[at][1].names)
                at += 1
            own = names[0] if len(names) == 1 else ()
            self.units.append(Unit(packed.start, packed.end, path + own, depth, packed.alone))

    def unnamed(self, item: _Item) -> _Item:
        return _Item(item.first, item.last, item.after, nodes=item.nodes)

    def inner_items(self, item: _Item) -> list[_Item]:
        """Return the items that an item's nodes hold; [] when it can only be cut at rows."""
        nodes = item.nodes
        for _ in range(_MAX_LEVELS):
            nodes = [
                child
                for node in nodes
                if node.start_point.row < node.end_point.row and not _OPAQUE.search(node.type)
                for child in node.named_children
            ]
            if not nodes:
                return []
            items = self.items_of(nodes, item.first, item.after)
            if len(items) > 1 or items[0].names:
                return items
        return []

    def items_of(self, nodes: Iterable[Node], first: int, after: int) -> list[_Item]:
        """Group sibling nodes into items that together hold rows `[first, after)`.

        Nodes that share a row are one item; comments and attributes join the node below them.
        """
        items: list[_Item] = []
        lead: _Item | None = None
        for node in nodes:
            start, last = _rows(node)
            if items and lead is None and start <= items[-1].last:
                items[-1].last = max(items[-1].last, last)
                items[-1].nodes.append(node)
                continue
            role = self.roles.get(node.type)
            if lead is not None and start > lead.last + 1:
                items.append(lead)
                lead = None
            if role == "lead":
                if lead is None:
                    lead = _Item(start, last, nodes=[node])
                else:
                    lead.last = max(lead.last, last)
                continue
            begin = lead.first if lead is not None else start
            lead = None
            names, inner = self.definition(node, role)
            items.append(_Item(begin, last, names=names, nodes=[inner]))
        if lead is not None:
            items.append(lead)
        if not items:
            return [_Item(first, after - 1, after)]
        items[0].first = first
        for item, following in pairwise(items):
            item.after = following.first
        items[-1].after = after
        return items

    def definition(self, node: Node, role: Role | None) -> tuple[tuple[str, ...], Node]:
        """Return what a node adds to the path, and the definition inside its wrappers.

        Notes the symbols of definitions, as those inside functions are met only here.
        """
        inner = node
        for _ in range(_MAX_LEVELS):
            if role != "through":
                break
            held = [
                child
                for child in inner.named_children
                if self.roles.get(child.type, "lead") != "lead"
            ]
            if len(held) != 1:
                return (), node
            inner = held[0]
            role = self.roles.get(inner.type)
        if role is None or role in {"through", "lead"}:
            return (), node
        paths = paths_of(inner, role)
        if role in {"definition", "container"}:
            row = inner.start_point.row
            self.symbols.update((row, path[-1]) for path in paths)
        # Several names (`a, b = 1, 2`) say less about a chunk than where it stands.
        return (paths[0], inner) if len(paths) == 1 else ((), node)


def _rows(node: Node) -> tuple[int, int]:
    """Return a node's first and last row; one that ends at a row's start ends above it."""
    start = node.start_point.row
    end = node.end_point
    return start, end.row - 1 if end.column == 0 and end.row > start else end.row


def _guessed_symbols(source: Source, language: str) -> Iterable[Symbol]:
    pattern = _DEFINITION_OF.get(language, _DEFINITION)
    row = at = 0
    for found in pattern.finditer(source.view):
        row += source.view.count("\n", at, found.start())
        at = found.start()
        yield row, found[found.lastindex or 0].rstrip(".:")


def _indented_items(source: Source, symbols: Iterable[Symbol]) -> list[_Item]:
    """Start an item at each unindented row below a blank one; name it after its first symbol."""
    items: list[_Item] = []
    after_blank = True
    for row in range(source.n_rows):
        line = source.lines[row]
        if not line or line.isspace():
            after_blank = True
            continue
        if not items or (after_blank and line[0] not in " \t" and not _CLOSER.match(line)):
            items.append(_Item(row, row))
        after_blank = False
    for item, following in pairwise(items):
        item.after = following.first
    if items:
        items[-1].after = source.n_rows
    _name_items(source, items, symbols)
    return items


def _name_items(source: Source, items: Sequence[_Item], symbols: Iterable[Symbol]) -> None:
    """Name each item that defines exactly one thing at the left margin after that thing."""
    outer = sorted((row, name) for row, name in symbols if source.lines[row][:1] not in {" ", "\t"})
    at = 0
    for item in items:
        begin = at
        while at < len(outer) and outer[at][0] < item.after:
            at += 1
        if at - begin == 1:
            item.names = (outer[begin][1],)

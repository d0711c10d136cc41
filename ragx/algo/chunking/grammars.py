"""What definitions look like in each tree-sitter grammar, and how their names are read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from tree_sitter import Language, Node

__all__ = ["GRAMMARS", "Role", "load_grammar", "paths_of", "roles_of"]

# definition: named, and what it holds is of no interest. container: named, holds definitions.
# scope: gives a path its name, defines nothing itself (namespaces, Rust's impl). through: nameless
# holder of definitions. constant: names values or types in nodes below it. lead: belongs to what
# follows it (comments, attributes).
Role = Literal["definition", "container", "scope", "through", "constant", "lead"]

# Not Bash: on broken scripts its scanner now and then crashes the whole process, even with plain
# `Parser.parse(bytes)` (tree-sitter-bash 0.25.1, fuzzed with and without MALLOC_PERTURB_). The
# other grammars came through 6,000 such texts each.
GRAMMARS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "python": ("tree_sitter_python", "language"),
        "javascript": ("tree_sitter_javascript", "language"),
        "typescript": ("tree_sitter_typescript", "language_typescript"),
        "tsx": ("tree_sitter_typescript", "language_tsx"),
        "go": ("tree_sitter_go", "language"),
        "rust": ("tree_sitter_rust", "language"),
        "java": ("tree_sitter_java", "language"),
        "c": ("tree_sitter_c", "language"),
        "cpp": ("tree_sitter_cpp", "language"),
        "csharp": ("tree_sitter_c_sharp", "language"),
        "ruby": ("tree_sitter_ruby", "language"),
        "php": ("tree_sitter_php", "language_php"),
    }
)

_ECMASCRIPT: dict[Role, str] = {
    "definition": "function_declaration generator_function_declaration method_definition "
    "function_signature field_definition public_field_definition abstract_method_signature "
    "interface_declaration type_alias_declaration enum_declaration",
    "container": "class_declaration abstract_class_declaration",
    "scope": "internal_module module",
    "through": "export_statement ambient_declaration class_body statement_block "
    "expression_statement",
    "constant": "lexical_declaration variable_declaration assignment_expression",
    "lead": "comment decorator",
}
_C: dict[Role, str] = {
    "definition": "function_definition struct_specifier union_specifier enum_specifier "
    "preproc_def preproc_function_def",
    "through": "preproc_ifdef preproc_if preproc_else preproc_elif linkage_specification "
    "declaration_list",
    "constant": "type_definition declaration",
    "lead": "comment",
}
_ROLES: dict[str, dict[Role, str]] = {
    "python": {
        "definition": "function_definition type_alias_statement",
        "container": "class_definition",
        "through": "decorated_definition block if_statement elif_clause else_clause "
        "try_statement except_clause finally_clause with_statement",
        "constant": "expression_statement",
        "lead": "comment",
    },
    "javascript": _ECMASCRIPT,
    "typescript": _ECMASCRIPT,
    "tsx": _ECMASCRIPT,
    "go": {
        "definition": "function_declaration method_declaration",
        "constant": "const_declaration var_declaration type_declaration",
        "lead": "comment",
    },
    "rust": {
        "definition": "function_item function_signature_item struct_item enum_item union_item "
        "type_item macro_definition const_item static_item associated_type",
        "container": "trait_item",
        "scope": "impl_item mod_item",
        "through": "declaration_list foreign_mod_item",
        "lead": "line_comment block_comment attribute_item",
    },
    "java": {
        "definition": "method_declaration constructor_declaration compact_constructor_declaration "
        "annotation_type_element_declaration",
        "container": "class_declaration interface_declaration enum_declaration record_declaration "
        "annotation_type_declaration",
        "through": "class_body interface_body enum_body enum_body_declarations "
        "annotation_type_body",
        "constant": "field_declaration constant_declaration",
        "lead": "line_comment block_comment",
    },
    "c": _C,
    "cpp": {
        "definition": "function_definition enum_specifier alias_declaration concept_definition "
        "preproc_def preproc_function_def union_specifier",
        "container": "class_specifier struct_specifier",
        "scope": "namespace_definition",
        "through": "template_declaration field_declaration_list export_declaration "
        + _C["through"],
        "constant": _C["constant"],
        "lead": "comment",
    },
    "csharp": {
        "definition": "method_declaration constructor_declaration destructor_declaration "
        "property_declaration delegate_declaration event_declaration local_function_statement",
        "container": "class_declaration struct_declaration interface_declaration "
        "record_declaration enum_declaration",
        "scope": "namespace_declaration",
        "through": "declaration_list global_statement",
        "constant": "field_declaration",
        "lead": "comment",
    },
    "ruby": {
        "definition": "method singleton_method",
        "container": "class module",
        "through": "body_statement singleton_class",
        "constant": "assignment",
        "lead": "comment",
    },
    "php": {
        "definition": "function_definition method_declaration",
        "container": "class_declaration interface_declaration trait_declaration enum_declaration",
        "scope": "namespace_definition",
        "through": "declaration_list enum_declaration_list compound_statement",
        "constant": "const_declaration",
        "lead": "comment attribute_list",
    },
}

# The field that a node keeps its name in, where that is not `name`.
_NAME_FIELD = MappingProxyType(
    {
        "impl_item": "type",
        "field_definition": "property",
        "type_alias_statement": "left",
        "assignment": "left",
        "init_declarator": "declarator",
        "function_definition": "name",
    }
)
# Nodes below a `constant` that may hold names.
_NAMING = frozenset(
    "assignment variable_declarator const_spec var_spec var_spec_list type_spec type_alias "
    "variable_declaration const_element".split()
)
_BODIED = frozenset({"struct_specifier", "union_specifier", "enum_specifier", "class_specifier"})
_FUNCTIONS = frozenset(
    {"arrow_function", "function_expression", "function", "class", "generator_function"}
)
_FINAL = frozenset({"static final", "const", "static readonly"})
_NAME_NODES = frozenset(
    "identifier type_identifier field_identifier constant name "
    "property_identifier private_property_identifier".split()
)
_PATTERNS = frozenset({"pattern_list", "tuple_pattern"})
_SEPARATOR = re.compile(r"::|[.\\]")
_GENERICS = re.compile(r"[<\[(].*", re.DOTALL)
_MAX_NAME = 120


@cache
def roles_of(language: str) -> Mapping[str, Role]:
    """Return the role of each node type that matters in a language of GRAMMARS."""
    return MappingProxyType(
        {kind: role for role, kinds in _ROLES[language].items() for kind in kinds.split()}
    )


@cache
def load_grammar(language: str) -> Language | None:
    """Load a language's grammar; None when its wheel is not installed."""
    import importlib

    module_name, factory = GRAMMARS[language]
    try:
        from tree_sitter import Language

        module = importlib.import_module(module_name)
    except ImportError:
        return None
    return Language(getattr(module, factory)())


def paths_of(node: Node, role: Role) -> list[tuple[str, ...]]:
    """Return the names that a node defines, each as a path ending with the name itself.

    A method defined outside its class (C++, Go) and a nested class name bring their owner along;
    any other path has one part. A `scope` has the path that its contents stand under.
    """
    kind = node.type
    if role == "constant":
        return _constant_paths(node, kind)
    if kind in _BODIED and node.child_by_field_name("body") is None:
        return []
    if kind.endswith("field_definition") and not _is_function(node.child_by_field_name("value")):
        return []
    if kind == "preproc_def" and node.child_by_field_name("value") is None:
        return []  # an include guard
    name = node.child_by_field_name(_NAME_FIELD.get(kind, "name"))
    if name is None:
        name = _declared(node)
    path = _split_name(name)
    if kind == "method_declaration" and path:
        path = (*_receiver(node), *path)
    return [path] if path else []


def _receiver(node: Node) -> tuple[str, ...]:
    """Return the type that a Go method belongs to."""
    receiver = node.child_by_field_name("receiver")
    words = _text(receiver).strip("()").split("[", 1)[0].split() if receiver is not None else []
    return (words[-1].strip("*&"),) if words else ()


def _constant_paths(node: Node, kind: str) -> list[tuple[str, ...]]:
    if kind == "assignment_expression":
        return _assigned_function(node)
    if kind in {"declaration", "type_definition"}:
        return _c_paths(node, kind)
    if kind == "field_declaration" and not _is_constant_field(node):
        return []
    found: list[tuple[str, ...]] = []
    pending = [node]
    while pending:
        current = pending.pop()
        if current is not node and current.type not in _NAMING:
            continue
        names = current.children_by_field_name(_NAME_FIELD.get(current.type, "name"))
        if current.type == "const_element" and not names:
            names = current.named_children[:1]
        for name in names:
            parts = name.named_children if name.type in _PATTERNS else [name]
            found.extend((_text(part),) for part in parts if part.type in _NAME_NODES)
        if not names:
            pending.extend(reversed(current.named_children))
    return found


def _assigned_function(node: Node) -> list[tuple[str, ...]]:
    """Name `exports.x = ...` and functions assigned to a member, as in `A.prototype.b = ...`."""
    left = node.child_by_field_name("left")
    if left is None or left.type != "member_expression":
        return []
    target = _text(left)
    exported = target.startswith(("exports.", "module.exports."))
    if not exported and not _is_function(node.child_by_field_name("right")):
        return []
    parts = [part for part in target.split(".") if part.isidentifier()]
    owners = [part for part in parts[:-1] if part not in {"exports", "module", "prototype", "this"}]
    return [(*owners, parts[-1])] if parts and parts[-1] != "exports" else []


def _is_function(node: Node | None) -> bool:
    return node is not None and node.type in _FUNCTIONS


def _is_constant_field(node: Node) -> bool:
    modifiers = " ".join(
        _text(child) for child in node.children if child.type in {"modifiers", "modifier"}
    )
    words = modifiers.split()
    return any(all(word in words for word in final.split()) for final in _FINAL)


def _c_paths(node: Node, kind: str) -> list[tuple[str, ...]]:
    """Name the variables and types of a C declaration; prototypes define nothing."""
    found: list[tuple[str, ...]] = []
    of_type = node.child_by_field_name("type")
    if of_type is not None and of_type.type in _BODIED:
        found.extend(paths_of(of_type, "definition"))
    for declarator in node.children_by_field_name("declarator"):
        current: Node | None = declarator
        is_function = False
        while current is not None and current.type not in _NAME_NODES:
            is_function = is_function or current.type == "function_declarator"
            current = _inner_declarator(current)
        path = _split_name(current)
        if path and path not in found and (kind == "type_definition" or not is_function):
            found.append(path)
    return found


def _declared(node: Node) -> Node | None:
    """Return the name inside a C declarator: `*f(int)` names f."""
    current = node.child_by_field_name("declarator")
    while current is not None:
        inner = _inner_declarator(current)
        if inner is None:
            return current
        current = inner
    return None


def _inner_declarator(node: Node) -> Node | None:
    if node.type in {"reference_declarator", "parenthesized_declarator"}:
        return node.named_children[-1] if node.named_children else None
    return node.child_by_field_name("declarator")


def _split_name(node: Node | None) -> tuple[str, ...]:
    if node is None:
        return ()
    text = _text(node).strip("\"' ")
    if not text.startswith("operator"):
        text = _GENERICS.sub("", text)
    parts = [part.strip() for part in _SEPARATOR.split(text)]
    return tuple(part for part in parts if part and len(part) <= _MAX_NAME)


def _text(node: Node) -> str:
    raw = node.text
    return raw.decode("utf-8", "replace") if raw is not None and len(raw) <= 4096 else ""

"""`__all__` says what a module offers, and says it truly."""

from __future__ import annotations

import ast
import importlib
import inspect
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


def modules() -> list[str]:
    """Every module that offers something: all but `__main__` and packages without code."""
    found = []
    for path in sorted((REPOSITORY / "ragx").rglob("*.py")):
        parts = path.relative_to(REPOSITORY).with_suffix("").parts
        if parts[-1] == "__init__":
            parts = parts[:-1]
            if not path.read_text(encoding="utf-8").strip():
                continue
        if not parts[-1].startswith("_"):
            found.append(".".join(parts))
    return found


MODULES = modules()


def _order(name: str) -> tuple[int, str]:
    """Constants, then classes, then functions, each by the alphabet: what ruff asks for."""
    return (0 if name.isupper() else 1 if name[:1].isupper() else 2), name


@pytest.mark.parametrize("name", MODULES)
def test_all_is_there_and_true(name: str) -> None:
    module = importlib.import_module(name)
    exported = getattr(module, "__all__", None)
    assert exported is not None, f"{name} has no __all__"
    assert list(exported) == sorted(set(exported), key=_order)
    assert [item for item in exported if not hasattr(module, item)] == []


@pytest.mark.parametrize("name", MODULES)
def test_modules_and_exported_functions_are_explained(name: str) -> None:
    module = importlib.import_module(name)
    assert (module.__doc__ or "").strip()
    functions = (getattr(module, item) for item in module.__all__)
    bare = [
        function.__name__
        for function in functions
        if inspect.isfunction(function) and not (function.__doc__ or "").strip()
    ]
    assert bare == []


def test_what_modules_take_from_each_other_is_exported() -> None:
    taken = set()
    for path in sorted((REPOSITORY / "ragx").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module in MODULES:
                taken |= {(str(node.module), alias.name) for alias in node.names}
    hidden = [
        f"{module}.{name}"
        for module, name in sorted(taken)
        if f"{module}.{name}" not in MODULES and name not in importlib.import_module(module).__all__
    ]
    assert hidden == []

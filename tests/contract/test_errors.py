"""Every error code is documented, and the documentation lists no other."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

from ragx import errors
from ragx.shells.cli import envelope

REPOSITORY = Path(__file__).resolve().parents[2]
CLASSES = {name: getattr(errors, name) for name in errors.__all__}
# Raised by no one as such: they gather their children for `except`.
BASES = {"RagxError", "ExtractionError", "StoreError"}

Table = dict[str, tuple[frozenset[str], int]]


def raised() -> dict[str, set[str]]:
    """Codes that the package gives out, by source: code -> names of classes."""
    found: dict[str, set[str]] = defaultdict(set)
    for cls in CLASSES.values():
        found[cls.default_code].add(cls.__name__)
    for path in sorted((REPOSITORY / "ragx").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            name = ast.unparse(node.func).rsplit(".", 1)[-1]
            codes = [keyword.value for keyword in node.keywords if keyword.arg == "code"]
            if name == "Failure":  # path, code, message
                codes += node.args[1:2]
            for code in codes:
                # A code that is passed on was made elsewhere.
                if isinstance(code, ast.Constant) and isinstance(code.value, str):
                    found[code.value].add(name)
    return found


def test_the_classes_codes_are_unique() -> None:
    codes = [cls.default_code for cls in CLASSES.values()]
    assert len(codes) == len(set(codes))


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_has_its_own_code_and_an_exit_status(name: str) -> None:
    cls = CLASSES[name]
    assert issubclass(cls, errors.RagxError)
    assert "default_code" in vars(cls)
    assert cls.exit_status == envelope.ERROR
    error = cls("what", hint="do", details={"key": 1})
    assert (error.code, error.message, error.hint) == (cls.default_code, "what", "do")
    assert error.details == {"key": 1}
    assert cls("what", code="other").code == "other"


def test_every_code_in_the_package_is_documented_with_its_classes(error_table: Table) -> None:
    assert {code: set(classes) for code, (classes, _) in error_table.items()} == raised()


def test_documented_exits_are_the_classes(error_table: Table) -> None:
    for classes, status in error_table.values():
        for name in classes - {"Failure"}:
            assert CLASSES[name].exit_status == status


def test_codes_are_words(error_table: Table) -> None:
    assert [code for code in error_table if not re.fullmatch(r"[a-z][a-z0-9_]*", code)] == []


def test_classes_called_bases_are_never_raised_without_a_code_of_their_own() -> None:
    bare = []
    for path in sorted((REPOSITORY / "ragx").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Call)
                and ast.unparse(node.func) in BASES
                and not any(keyword.arg == "code" for keyword in node.keywords)
            ):
                bare.append(f"{path.name}:{node.lineno}")
    assert bare == []


def test_the_documented_exit_codes_are_the_envelopes() -> None:
    text = (REPOSITORY / "CONTRACTS.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| `([A-Z]+)` \|", text, re.MULTILINE)
    assert rows == [
        (str(getattr(envelope, name)), name) for name in ("OK", "EMPTY", "ERROR", "INTERRUPTED")
    ]

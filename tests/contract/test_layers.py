"""Imports point down: HOUSE-STYLE's order of rooms, read from the sources themselves."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGE = REPOSITORY / "ragx"

# From top to bottom; rooms on one level are neighbours and never import each other.
LEVELS: tuple[frozenset[str], ...] = (
    frozenset({"__main__"}),
    frozenset({"shells"}),
    frozenset({"api"}),
    frozenset({"config"}),
    frozenset({"evaluation"}),
    frozenset({"query", "indexing"}),
    frozenset({"store", "providers", "documents"}),
    frozenset({"algo"}),
    frozenset({"types", "contracts"}),
    frozenset({"errors"}),
    frozenset({""}),  # the package's own __init__: its version
)
LEVEL_OF = {room: depth for depth, rooms in enumerate(LEVELS) for room in rooms}

SHELLS_MAY_IMPORT = frozenset({"shells", "api", "types", "errors", "contracts", ""})
# Commands about the settings themselves, and what finds and opens a corpus for all commands.
SETTINGS_SHELLS = frozenset(
    f"ragx.shells.cli.{name}" for name in ("init", "config", "trust", "frame", "top")
)

# What only an impure function needs.
IMPURE = frozenset(
    "asyncio ctypes datetime glob http io logging multiprocessing os pathlib random secrets select"
    " shutil signal socket sqlite3 subprocess sys tempfile threading time urllib uuid".split()
)
OUTSIDE = frozenset({"tests", "research", "benchmarks"})


def sources() -> list[tuple[str, str]]:
    """Dotted name and text of every module; a package's `__init__` has the package's name."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(REPOSITORY).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found.append((name, path.read_text(encoding="utf-8")))
    return found


SOURCES = sources()
MODULES = frozenset(name for name, _ in SOURCES)


def imported(source: str) -> Iterator[tuple[int, str]]:
    """Line and dotted name of all that a module imports, at whatever depth it does so.

    Imports for type checkers alone count, as does a literal name given to `import_module`.
    """
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                yield node.lineno, "." * node.level + (node.module or "")
                continue
            for alias in node.names:
                below = f"{node.module}.{alias.name}"
                yield node.lineno, below if below in MODULES else str(node.module)
        elif (
            isinstance(node, ast.Call)
            and getattr(node.func, "attr", getattr(node.func, "id", "")) == "import_module"
            and node.args
            and isinstance(node.args[0], ast.Constant)
        ):
            yield node.lineno, str(node.args[0].value)


def room_of(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ""


def violations(module: str, source: str) -> list[str]:
    """What a module imports against the order, one line each."""
    room = room_of(module)
    found = []
    for line, target in imported(source):
        complaint = ""
        if target.startswith("."):
            complaint = "relative import"
        elif target.split(".")[0] in OUTSIDE:
            complaint = "the package does not know what stands around it"
        elif target.split(".")[0] == "ragx":
            complaint = _against_order(module, room, target)
        if complaint:
            found.append(f"{module}:{line} imports {target}: {complaint}")
    return found


def _against_order(module: str, room: str, target: str) -> str:
    below = room_of(target)
    if below not in LEVEL_OF:
        return "a room without a place in the order"
    if room == below:
        return ""
    if room == "shells":
        allowed = below in SHELLS_MAY_IMPORT or (
            module in SETTINGS_SHELLS and (below == "config" or target == "ragx.indexing.scan")
        )
        return "" if allowed else "shells import api, types and errors only"
    if LEVEL_OF[below] == LEVEL_OF[room]:
        return "neighbours never import each other"
    return "" if LEVEL_OF[below] > LEVEL_OF[room] else "imports point down"


def test_every_room_has_a_place_in_the_order() -> None:
    assert {room_of(name) for name in MODULES} <= LEVEL_OF.keys()


@pytest.mark.parametrize(("module", "source"), SOURCES, ids=[name for name, _ in SOURCES])
def test_imports_point_down(module: str, source: str) -> None:
    assert violations(module, source) == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("ragx.algo.heat", "def spread():\n    from ragx.store import sqlite"),
        ("ragx.query.seeds", "from ragx.indexing.build import build"),
        ("ragx.store.sqlite", "import ragx.providers.base"),
        ("ragx.errors", "from ragx import types"),
        ("ragx.evaluation.harness", "from ragx.config import Config"),
        ("ragx.indexing.build", "from ragx.api import open_corpus"),
        ("ragx.shells.cli.status", "from ragx.config import Config"),
        ("ragx.shells.cli.frame", "from ragx.indexing.build import build"),
        (
            "ragx.shells.cli.index",
            "if TYPE_CHECKING:\n    from ragx.indexing.build import BuildReport",
        ),
        ("ragx.shells.cli.query", "importlib.import_module('ragx.query.pipeline')"),
        ("ragx.query.seeds", "from . import pipeline"),
        ("ragx.query.seeds", "from ragx.nowhere import anything"),
        ("ragx.algo.fusion", "import research.fusion"),
    ],
)
def test_the_check_sees(module: str, source: str) -> None:
    assert len(violations(module, source)) == 1


@pytest.mark.parametrize(
    ("module", "source"), [item for item in SOURCES if room_of(item[0]) in ("algo", "types")]
)
def test_algo_is_pure(module: str, source: str) -> None:
    """No I/O, clock, logging or global random state; printing and opening need no import."""
    impure = [name for _, name in imported(source) if name.split(".")[0] in IMPURE]
    calls = {
        node.func.id
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert impure == []
    assert calls & {"open", "print", "input", "exec", "eval"} == set()


def test_the_envelope_alone_writes_standard_output() -> None:
    writers = set()
    for module, source in SOURCES:
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Call):
                name = ast.unparse(node.func)
                if name in ("print", "click.echo", "click.secho", "sys.stdout.write"):
                    writers.add(module)
            elif isinstance(node, ast.Attribute) and ast.unparse(node) == "sys.stdout":
                writers.add(module)
    assert writers == {"ragx.shells.cli.envelope"}


def test_input_is_never_checked_by_assert() -> None:
    """`python -O` drops asserts, so one may only tell a type checker what is known anyway."""
    asserting = {
        module
        for module, source in SOURCES
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Assert)
        and not ast.unparse(node.test).endswith("is not None")
        and "isinstance" not in ast.unparse(node.test)
    }
    assert asserting == set()

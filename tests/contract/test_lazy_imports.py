"""What a command does not need is not imported: start-up is most of a short command's time."""

from __future__ import annotations

import ast
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "ragx"

HEAVY = frozenset(
    "charset_normalizer hnswlib httpx igraph leidenalg numpy onnxruntime pathspec"
    " sentence_transformers tokenizers tomlkit torch tree_sitter".split()
)
# Slow parts of the standard library that a short command has no use for.
SLOW = frozenset({"asyncio", "unittest", "xml", "email", "http.client", "multiprocessing"})
# Runs a command line as the console script does, then names what was imported on standard error.
PROBE = """\
import json, sys
from ragx.shells.cli.main import main
status = main(sys.argv[1:])
print("MODULES", json.dumps([status, sorted(sys.modules)]), file=sys.stderr)
"""

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def loaded(done: subprocess.CompletedProcess[str]) -> tuple[int, set[str]]:
    """Exit code, and names of all modules that a probe had at its end."""
    _, found, listed = done.stderr.rpartition("MODULES ")
    assert found, done.stderr
    status, modules = json.loads(listed)
    return status, set(modules)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("--help", 0),
        ("--version", 0),
        ("config list", 0),
        ("status --json", 0),
        ("inspect file docs/log.md", 0),
        ("inspect file src/stowage.py --text --json", 0),
        ("schema", 0),
        ("schema ragx.query.v3", 0),
        ("index --help", 0),
        ("nonsense", 2),
        ("query --nonsense --json", 2),
        ("eval --help", 0),
        ("eval absent.jsonl --json", 2),
    ],
)
def test_a_light_command_loads_nothing_heavy(
    line: str, expected: int, corpora: Any, run_ragx: Run
) -> None:
    args = line.format(chunk=corpora.chunk_id).split()
    status, modules = loaded(run_ragx(*args, cwd=corpora.built, python=("-c", PROBE)))
    assert status == expected
    assert modules & HEAVY == set()
    assert modules & SLOW == set()


@pytest.mark.parametrize("name", ["built", "lexical"])
def test_a_lexical_query_without_graph_loads_nothing_heavy(
    name: str, corpora: Any, run_ragx: Run
) -> None:
    args = ("query", "pelican", "--mode", "lexical", "--no-graph", "--json")
    done = run_ragx(*args, cwd=getattr(corpora, name), python=("-c", PROBE))
    status, modules = loaded(done)
    assert status == 0
    assert modules & HEAVY == set()


@pytest.mark.parametrize(
    "line",
    [
        "query pelican --mode lexical --explain",
        "inspect chunk {chunk}",
        "inspect neighbors {chunk}",
        "inspect path docs/log.md {chunk}",
    ],
)
def test_what_reads_the_graph_loads_arrays_alone(line: str, corpora: Any, run_ragx: Run) -> None:
    args = line.format(chunk=corpora.chunk_id).split()
    done = run_ragx(*args, "--json", cwd=corpora.built, python=("-c", PROBE))
    status, modules = loaded(done)
    assert status == 0
    assert modules & HEAVY == {"numpy"}


def test_known_communities_are_shown_without_finding_them_again(
    corpora: Any, run_ragx: Run
) -> None:
    run_ragx("inspect", "communities", cwd=corpora.built)
    done = run_ragx("inspect", "communities", cwd=corpora.built, python=("-c", PROBE))
    status, modules = loaded(done)
    assert status == 0
    assert modules & HEAVY == {"numpy"}


def test_a_query_of_both_sides_loads_the_model_but_no_client(corpora: Any, run_ragx: Run) -> None:
    done = run_ragx("query", "pelican", cwd=corpora.built, python=("-c", PROBE))
    status, modules = loaded(done)
    assert status == 0
    assert modules & HEAVY == {"numpy", "onnxruntime", "tokenizers"}


def test_importing_the_package_loads_the_package_alone(run_ragx: Run, tmp_path: Path) -> None:
    probe = (
        "import sys; before = set(sys.modules); import ragx;"
        "print(*sorted(set(sys.modules) - before))"
    )
    done = run_ragx(cwd=tmp_path, python=("-c", probe))
    assert set(done.stdout.split()) <= {"ragx", "__future__"}


def test_importing_the_library_loads_nothing_heavy(run_ragx: Run, tmp_path: Path) -> None:
    probe = "import sys, ragx.api; print(*sys.modules)"
    done = run_ragx(cwd=tmp_path, python=("-c", probe))
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) & HEAVY == set()


def test_no_module_imports_a_heavy_library_when_it_is_imported_itself() -> None:
    """Also for modules that no light command reaches today."""
    eager = []
    for path in sorted(PACKAGE.rglob("*.py")):
        pending: list[ast.AST] = [*ast.parse(path.read_text(encoding="utf-8")).body]
        while pending:
            node = pending.pop()
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
                pending.extend(node.orelse)
                continue
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [str(node.module)]
            eager += [
                f"{path.relative_to(PACKAGE)}:{getattr(node, 'lineno', 0)} {name}"
                for name in names
                if name.split(".")[0] in HEAVY or name.startswith("tree_sitter")
            ]
            pending.extend(ast.iter_child_nodes(node))
    assert eager == []


def test_the_probe_sees_what_is_loaded(run_ragx: Run, tmp_path: Path) -> None:
    done = run_ragx("--help", cwd=tmp_path, python=("-c", "import numpy\n" + PROBE))
    assert "numpy" in loaded(done)[1] & HEAVY

"""Corpora made of a few lines, without a model unless a test asks for one."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

RunCli = Callable[..., "subprocess.CompletedProcess[str]"]
MakeCorpus = Callable[..., Path]
Document = Callable[..., dict[str, Any]]

# Frozen copies of real files, among them tests: a corpus, not code of this project.
collect_ignore_glob = ["golden/*"]


def write_files(root: Path, files: Mapping[str, str | bytes]) -> None:
    for path, content in files.items():
        full = root / path
        full.parent.mkdir(parents=True, exist_ok=True)
        full.write_bytes(content.encode() if isinstance(content, str) else content)


@pytest.fixture
def make_corpus(tmp_path: Path) -> MakeCorpus:
    """`make_corpus({path: content}, provider="none", settings="", root=tmp_path / "corpus")`."""

    def make(
        files: Mapping[str, str | bytes],
        *,
        provider: str = "none",
        settings: str = "",
        root: Path | None = None,
    ) -> Path:
        root = root or tmp_path / "corpus"
        root.mkdir(parents=True, exist_ok=True)
        (root / "ragx.toml").write_text(f'[embeddings]\nprovider = "{provider}"\n{settings}')
        write_files(root, files)
        return root

    return make


@pytest.fixture
def put() -> Callable[[Path, Mapping[str, str | bytes]], None]:
    """Write files below a directory."""
    return write_files


@pytest.fixture
def ask(ragx_inline: RunCli) -> Document:
    """Run a command in this process with `--json` and return its one document.

    `ask("query", "text", cwd=root, status=0)`; the exit code must be the one given (None: any).
    """

    def run(*args: str, cwd: Path, status: int | None = 0, **how: Any) -> dict[str, Any]:
        done = ragx_inline(args[0], "--json", *args[1:], cwd=cwd, **how)
        assert status in (None, done.returncode), done.stdout + done.stderr
        assert done.stdout.endswith("\n")
        assert done.stdout.count("\n") == 1
        assert "Traceback" not in done.stderr
        document = json.loads(done.stdout)
        assert document.get("error", {}).get("code") != "internal", document
        return document  # type: ignore[no-any-return]

    return run

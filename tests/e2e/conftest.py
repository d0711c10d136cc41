"""Corpora made of a few lines, without a model unless a test asks for one."""

from __future__ import annotations

import json
import subprocess
import sys
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


_LMS = '''\
#!{python}
"""Stands in for LM Studio's lms: lists what lies in its folder, and downloads an empty file."""
import json, pathlib, sys
here = pathlib.Path(__file__).parent
models = pathlib.Path({models!r})
with open(here / "asked.jsonl", "a") as log:
    log.write(json.dumps(sys.argv[1:]) + "\\n")
if sys.argv[1] == "ls":
    rows = []
    for path in sorted(models.rglob("*.gguf")):
        stem = path.stem.lower().removesuffix("-q8_0")
        rows.append(dict(
            type="llm" if "rerank" in stem else "embedding",
            modelKey=stem if "rerank" in stem else "text-embedding-" + stem,
            format="gguf", displayName=path.stem, path=path.relative_to(models).as_posix(),
            sizeBytes=path.stat().st_size, architecture="bert", maxContextLength=2048,
        ))
    print(json.dumps(rows))
elif sys.argv[1] == "get":
    if (here / "offline").exists():
        print("Searching for models with the term")
        print("Error: network is unreachable", file=sys.stderr)
        sys.exit(1)
    print("Downloading", sys.argv[2], flush=True)
    if (here / "slow").exists():
        import signal
        signal.pause()
    repository = sys.argv[2].split("//")[1].split("/", 1)[1].split("@")[0]
    files = {files!r}
    target = models / repository / files[repository]
    target.parent.mkdir(parents=True)
    target.write_bytes(b"GGUF")
else:
    sys.exit(2)
'''


class StandIns:
    """Programs that a machine may have, in a directory of their own.

    `environment` puts them on PATH, and nothing else that could be taken for them; `asked(word)`
    lists command lines that `lms` was run with.
    """

    def __init__(self, base: Path, home: Path) -> None:
        self.bin = base / "programs"
        self.bin.mkdir()
        self.models = home / ".lmstudio" / "models"
        self.environment = {"PATH": str(self.bin)}

    def llama_server(self) -> None:
        self._program("llama-server", "#!/bin/sh\nexit 1\n")

    def lms(self) -> None:
        from ragx.api.catalog import CATALOG, RERANKER

        files = {model.repository: model.file for model in (*CATALOG, RERANKER)}
        text = _LMS.format(python=sys.executable, models=str(self.models), files=files)
        self._program("lms", text)

    def go_offline(self) -> None:
        """From now on `lms get` fails."""
        (self.bin / "offline").touch()

    def become_slow(self) -> None:
        """From now on `lms get` does not end by itself."""
        (self.bin / "slow").touch()

    def asked(self, word: str) -> list[list[str]]:
        log = self.bin / "asked.jsonl"
        lines = log.read_text().splitlines() if log.exists() else []
        return [args for args in map(json.loads, lines) if args[0] == word]

    def _program(self, name: str, text: str) -> None:
        path = self.bin / name
        path.write_text(text)
        path.chmod(0o755)


@pytest.fixture
def stand_ins(tmp_path_factory: pytest.TempPathFactory, home: Path) -> StandIns:
    """No program yet: `stand_ins.lms()` and `.llama_server()` install one."""
    return StandIns(tmp_path_factory.mktemp("machine"), home)

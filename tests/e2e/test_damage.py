"""HOSTILE: Truncate or corrupt each file under .ragx/ in turn: a clear message and a way back.

Whatever is damaged, a command answers as if nothing were, or says so and names the command that
repairs it; and that command does.
"""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

MakeCorpus = Callable[..., Path]
Ask = Callable[..., dict[str, Any]]
Environment = Callable[..., dict[str, str]]

FILES = {
    f"f{i}.md": f"# Note {i}\n\nA zebra number{i} and an okapi.\n\n## More\n\n{'gnu ' * i}kudu.\n"
    for i in range(16)
}
SHARES = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0)
DAMAGES = ("half", "zeros", "empty", "longer", *(f"flip at {share}" for share in SHARES))
AT_REST = (".gitignore", "graph.bin", "index.db", "index.seal", "vectors.bin", "writer.lock")
GRAPH = ("vectors.hnsw", "vectors.hnsw.json", "vectors.bin")
LOG = ("index.db-wal", "index.db-shm", "index.db")


def damaged(raw: bytes, how: str) -> bytes:
    if how == "half":
        return raw[: len(raw) // 2]
    if how == "zeros":
        return bytes(len(raw))
    if how == "empty":
        return b""
    if how == "longer":
        return raw + b"\xff" * 100
    place = round(float(how.rpartition(" ")[2]) * (len(raw) - 1))
    return raw[:place] + bytes([raw[place] ^ 0x41]) + raw[place + 1 :]


def commands(document: dict[str, Any]) -> list[str]:
    """The command that a hint names."""
    found = re.search(r"ragx (index(?: --full)?)", document["error"]["hint"])
    assert found, document
    return found[1].split()


class Patient:
    """An index that is damaged again and again."""

    def __init__(self, root: Path, ask: Ask) -> None:
        self.root, self._ask = root, ask
        self._directory = root / ".ragx"
        self._healthy = root.parent / "healthy"
        shutil.copytree(self._directory, self._healthy)
        self._right = self._answers()

    def _answers(self) -> list[dict[str, Any]]:
        return [
            self._ask(*command, cwd=self.root, status=None)
            for command in (
                ["query", "zebra kudu", "--mode", "hybrid"],
                ["query", "number7", "--mode", "lexical"],
                ["status"],
                ["inspect", "file", "f7.md"],
            )
        ]

    def suffer(self, name: str, how: str) -> str:
        """Damage one file; check what is said; repair. Returns the codes of what was said."""
        shutil.rmtree(self._directory)
        shutil.copytree(self._healthy, self._directory)
        path = self._directory / name
        path.write_bytes(damaged(path.read_bytes(), how))
        repair = ["index"]
        codes = set()
        for answer, right in zip(self._answers(), self._right, strict=True):
            if "error" not in answer:
                if answer["schema"] == "ragx.status.v1" and not answer["indexed"]:
                    codes.add("no index")
                else:
                    assert answer == right, (name, how)
                continue
            codes.add(answer["error"]["code"])
            assert answer["error"]["code"] in ("index_damaged", "index_missing"), answer
            repair = commands(answer)
        tried = self._ask("index", cwd=self.root, status=None)
        if "error" in tried:
            codes.add(tried["error"]["code"])
            repair = commands(tried)
        assert self._ask(*repair, cwd=self.root)["ok"], (name, how)
        assert self._ask("verify", cwd=self.root)["ok"], (name, how)
        assert self._answers() == self._right, (name, how)
        return " ".join(sorted(codes))


@pytest.fixture
def root(make_corpus: MakeCorpus, embedding_server: Any) -> Path:
    embedding_server.delay_s = 0.0
    root = make_corpus(FILES)
    (root / "ragx.toml").write_text(
        f"[embeddings]\n{embedding_server.settings}[chunking]\nsize_tokens = 32\n"
    )
    return root


@pytest.mark.parametrize("name", AT_REST)
def test_a_file_at_rest(root: Path, ask: Ask, name: str) -> None:
    ask("index", cwd=root)
    patient = Patient(root, ask)
    # Of files that hold nothing, some damages stand for all.
    hows = DAMAGES if name.startswith(("graph", "index", "vectors")) else DAMAGES[:5]
    said = {how: patient.suffer(name, how) for how in hows}
    if name == "index.db":
        assert all(said.values()), said  # no damage to the one that counts goes unnoticed
    elif name == "index.seal":
        # A digest with a changed figure cannot be told from a changed database.
        assert set(said.values()) <= {"", "index_damaged"}
    else:
        assert not any(said.values()), said  # the others can be done without


@pytest.mark.parametrize("name", GRAPH)
def test_the_graph_of_a_large_index(
    root: Path, ask: Ask, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr("ragx.store.vectors.EXACT_LIMIT", 10)
    ask("index", cwd=root)
    patient = Patient(root, ask)
    for how in DAMAGES:
        assert patient.suffer(name, how) == ""


@pytest.mark.parametrize("name", LOG)
def test_what_a_killed_run_leaves(
    root: Path, ask: Ask, ragx_environment: Environment, name: str
) -> None:
    """SQLite checks its log itself: what of it does not hold together has not happened.

    The state before the killed run, or a clear message, is all that can be asked for then.
    """
    (root / "f7.md").rename(root / "old.md")
    ask("index", cwd=root)
    (root / "old.md").rename(root / "f7.md")
    killed = subprocess.run(
        [sys.executable, "-m", "ragx", "index"], cwd=root, check=False, timeout=60,
        env=ragx_environment({"RAGX_FAILPOINT": "matrix_replaced=kill"}),
    )  # fmt: skip
    assert killed.returncode == -signal.SIGKILL
    healthy = shutil.copytree(root / ".ragx", root.parent / "healthy")
    hows = DAMAGES if name != "index.db" else (*DAMAGES, *(f"flip at {i / 21}" for i in range(21)))
    for how in hows:
        shutil.rmtree(root / ".ragx")
        shutil.copytree(healthy, root / ".ragx")
        path = root / ".ragx" / name
        path.write_bytes(damaged(path.read_bytes(), how))
        repair = ["index"]
        for command in (["query", "number7"], ["status"], ["inspect", "file", "f1.md"], ["index"]):
            answer = ask(*command, cwd=root, status=None)
            if "error" in answer:
                assert answer["error"]["code"] in ("index_damaged", "index_missing"), (how, answer)
                repair = commands(answer)
        assert ask(*repair, cwd=root)["ok"], how
        checked = ask("verify", cwd=root, status=None)
        if not checked.get("ok"):
            # A byte of an unsealed database that no structure depends on: verify sees it.
            assert name == "index.db"
            assert checked.get("error", {}).get("code", "") in ("", "index_damaged"), (how, checked)
            assert ask("index", "--full", cwd=root)["ok"], how
            assert ask("verify", cwd=root)["ok"], how
        assert "f7.md" in {e["file"] for e in ask("query", "number7", cwd=root)["results"]}


def test_all_of_it_gone_or_something_else(root: Path, ask: Ask) -> None:
    """Anything may be deleted; deleting everything is a first run."""
    ask("index", cwd=root)
    healthy = shutil.copytree(root / ".ragx", root.parent / "healthy")
    right = ask("query", "zebra kudu", cwd=root)
    for name in [path.name for path in healthy.iterdir()]:
        shutil.rmtree(root / ".ragx")
        shutil.copytree(healthy, root / ".ragx")
        (root / ".ragx" / name).unlink()
        answer = ask("query", "zebra kudu", cwd=root, status=None)
        if name == "index.db":
            assert answer["error"]["code"] == "index_missing"
        else:
            assert answer == right
        assert ask("index", cwd=root)["ok"]
        assert ask("verify", cwd=root)["ok"]
        assert ask("query", "zebra kudu", cwd=root) == right
    shutil.rmtree(root / ".ragx")
    assert ask("index", cwd=root)["embedded"] > 0
    assert ask("query", "zebra kudu", cwd=root) == right

"""A cloned corpus that its maker has prepared: nothing of its reader's is read, changed or run, and
nothing that it holds commands the reader's terminal or shell."""

from __future__ import annotations

import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ragx.shells.cli.main import COMMANDS

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links need privileges there")

Run = Callable[..., "subprocess.CompletedProcess[str]"]
MakeCorpus = Callable[..., Path]
Ask = Callable[..., dict[str, Any]]

FILES = {
    "a.md": "# Pelican\n\nThe pelican keeps the harbour accounts. See [b](b.md).\n",
    "b.md": "# Harbour\n\nBoats come in at nine; the Pelican watches.\n",
}
USES_THE_INDEX = (
    "index",
    "index --full",
    "index --edges-only",
    "query pelican",
    "status",
    "verify",
    "eval-draft",
    "inspect communities",
    "inspect file a.md",
)


def files_of(directory: Path) -> dict[str, tuple[int, bytes]]:
    return {
        path.name: (path.stat().st_mode, path.read_bytes())
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


@pytest.mark.parametrize("entry", ["", "index.db", "writer.lock", ".gitignore", "server.json"])
def test_links_in_the_index_are_refused_by_all_that_use_it(
    entry: str, make_corpus: MakeCorpus, ask: Ask, tmp_path: Path
) -> None:
    theirs = make_corpus(FILES, root=tmp_path / "theirs")
    ask("index", cwd=theirs)
    clone = make_corpus(FILES, root=tmp_path / "clone")
    ask("index", cwd=clone)
    link = clone / ".ragx" / entry if entry else clone / ".ragx"
    shutil.rmtree(link) if link.is_dir() else link.unlink(missing_ok=True)
    link.symlink_to(theirs / ".ragx" / entry if entry else theirs / ".ragx")
    before = files_of(theirs)
    for line in USES_THE_INDEX:
        error = ask(*line.split(), cwd=clone, status=2)["error"]
        assert error["code"] == "linked_index", line
        assert "rm " in error["hint"]
    doctor = ask("doctor", "--deep", "--fix", cwd=clone, status=1)
    checks = {check["name"]: check for check in doctor["checks"]}
    assert checks["index"]["hint"] == f"rm {link}"
    assert files_of(theirs) == before
    link.unlink()
    ask("index", "--full", cwd=clone)
    assert ask("query", "pelican", cwd=clone)["results"]


def test_rows_for_other_files_are_damage_that_the_hint_mends(
    make_corpus: MakeCorpus, ask: Ask, tmp_path: Path
) -> None:
    root = make_corpus(FILES)
    ask("index", cwd=root)
    (tmp_path / "secret.md").write_text(FILES["b.md"])
    (root / ".ragx" / "index.seal").unlink()
    with closing(sqlite3.connect(root / ".ragx" / "index.db")) as db, db:
        db.execute("UPDATE files SET path = '../secret.md' WHERE path = 'b.md'")
    for line in ("query boats -B 3 -A 3", "status", "index", "inspect file ../secret.md"):
        error = ask(*line.split(), cwd=root, status=2)["error"]
        assert error["code"] == "index_damaged", line
        assert error["hint"].startswith("ragx index --full")
    differing = ask("verify", cwd=root, status=1)["differing"]  # it compares, and opens nothing
    assert {"file": "../secret.md", "how": "no longer in the corpus"} in differing
    ask("index", "--full", cwd=root)
    assert ask("verify", cwd=root)["ok"]


def test_a_linked_settings_file_is_read_and_never_written(
    make_corpus: MakeCorpus, ask: Ask, tmp_path: Path
) -> None:
    root = make_corpus(FILES)
    real = tmp_path / "precious.toml"
    (root / "ragx.toml").rename(real)
    (root / "ragx.toml").symlink_to(real)
    before = real.read_bytes()
    assert ask("config", "get", "embeddings.provider", cwd=root)["settings"][0]["value"] == "none"
    error = ask("config", "set", "query.top", "3", cwd=root, status=2)["error"]
    assert error["code"] == "linked_config"
    error = ask("models", "--embed-engine", "builtin", "--yes", cwd=root, status=2)["error"]
    assert error["code"] == "linked_config"
    assert real.read_bytes() == before


def test_settings_of_another_directory_are_not_moved_here(
    make_corpus: MakeCorpus, ask: Ask, tmp_path: Path
) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "config.toml").write_text("[query]\ntop = 4\n")
    root = make_corpus(FILES)
    (root / "ragx.toml").unlink()
    (root / ".ragx").symlink_to(theirs)
    for command in ("status", "init"):
        assert ask(command, cwd=root, status=2)["error"]["code"] == "linked_config"
    assert (theirs / "config.toml").exists()


# An escape sequence, a bell, text turned around, and a line break that would forge a line.
EVIL = "e\x1b]0;owned\x07\x9b2J\u202e\u200f\nFORGED \u2066v\x7fil"
RAW = "\x1b\x07\x9b\u202e\u2066\x7f"
TOML = "".join(f"\\u{ord(char):04x}" for char in EVIL)
LINES: Mapping[str, tuple[str, ...]] = {
    "init": ("init --yes", "init absent"),
    "index": ("index", "index -v --force a.md", "index --dry-run -v", "index --full", "index none"),
    "query": (
        "query pelican",
        "query pelican --explain",
        "query pelican --brief",
        "query pelican --files",
        "query pelican -A 3 -B 3",
        "query pelican --mode lexical",
        "query pelican --expand",
        "query zzz",
    ),
    "status": ("status",),
    "ask": ("ask pelican", "ask --verify a.md:1-2@0f3c21ab", "ask --verify none"),
    "agents": ("agents",),
    "web": ("web --host 192.0.2.1", "web --token-env NONE", "web --nonsense"),
    "mcp": ("mcp --http --host 192.0.2.1", "mcp --nonsense"),
    "read": ("read a.md", "read a.md:1-2", "read none", "read 1"),
    "doctor": ("doctor", "doctor --deep", "doctor --fix"),
    "verify": ("verify",),
    "eval-draft": ("eval-draft", "eval-draft -o drafted"),
    "eval": ("eval none", "eval queries.jsonl --configs lexical --per-query"),
    "inspect": (
        "inspect communities --all",
        "inspect community 0",
        "inspect community 99",
        "inspect file a.md",
        "inspect file a.md --text",
        "inspect file none",
        "inspect path a.md b.md",
        "inspect path none b.md",
        "inspect chunk 1",
        "inspect neighbors 1",
    ),
    "models": ("models --dry-run", "models --embed-engine builtin --yes"),
    "trust": ("trust --list", "trust --revoke"),
    "config": ("config list", "config get expansion.model", "config set query.top 7", "config x"),
    "schema": ("schema", "schema none"),
    "": ("--version", "none", "--help"),
}
# One value, as it is, for a script.
MAY_HOLD_LINES = {"config get expansion.model"}

WORKS = f"""[embeddings]
provider = "none"
[expansion]
enabled = true
provider = "openai"
base_url = "http://127.0.0.1:9/v1"
timeout_s = 1
model = "{TOML}"
"""
WAITS = f"""[embeddings]
provider = "openai"
base_url = "https://models.example/v1"
model = "{TOML}"
[rerank]
provider = "llama-server"
gguf = "{TOML}.gguf"
server_bin = "./{TOML}"
"""
FAILS = f"""[embeddings]
provider = "onnx"
model = "{TOML}"
"""
WRONG = f"""["{TOML}"]
x = 1
"""
SETTINGS = {"works": WORKS, "waits": WAITS, "fails": FAILS, "wrong": WRONG}


def test_every_command_is_tried_on_the_hostile_corpus() -> None:
    assert set(LINES) == {*COMMANDS, ""}


@pytest.mark.parametrize("name", SETTINGS)
def test_no_command_prints_what_could_command_a_terminal(
    name: str, ragx_inline: Run, tmp_path: Path
) -> None:
    root = tmp_path / EVIL
    root.mkdir()
    (root / "ragx.toml").write_text('[embeddings]\nprovider = "none"\n')
    for path, text in FILES.items():
        (root / path).write_text(text)
    for path in (f"{EVIL}.md", f"{EVIL}/b.md"):
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_text(f"# {RAW} Pelican {RAW}\n\nThe pelican {RAW} of [a](a.md).\n")
    (root / f"{EVIL}.bin").write_bytes(bytes(64))
    (root / "queries.jsonl").write_text('{"id": "q1", "query": "pelican", "relevant": ["a.md"]}\n')
    assert ragx_inline("index", cwd=root).returncode == 0
    (root / "ragx.toml").write_text(SETTINGS[name])
    printed = ""
    ids: list[str] = []
    for line in (line for lines in LINES.values() for line in lines):
        words = line.split()
        if words[0] == "inspect" and words[-1] == "1" and ids:
            words[-1] = ids[0]
        done = ragx_inline(*words, cwd=root)
        said = done.stdout + done.stderr
        assert not set(RAW) & set(said), (line, said)
        assert "internal error" not in said, (line, said)
        if line not in MAY_HOLD_LINES:
            assert not re.search(r"^FORGED", said, re.MULTILINE), (line, said)
        printed += said
        ids = ids or re.findall(r"^ +(\d{6,})  ", done.stdout, re.MULTILINE)
    assert printed.count(r"\x1b]0;owned\x07") > len(COMMANDS) / 2  # it was there to be printed

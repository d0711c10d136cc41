"""Small real corpora, made once, and the real command line to look at them with."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]

SHIP_LOG = """\
# Ship log

The pelican landed at dawn, and nobody moved.

We counted the barrels twice.

## Storage

Barrels of salt stay below deck; see `stow_barrel`.
"""
STOWAGE = '''\
"""Where things go."""

CAPACITY = 40


class Hold:
    """Below deck."""

    def stow_barrel(self, barrel):
        return self.barrels.append(barrel)
'''

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def run_ragx(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Run the real command line as a process, for fixtures that outlive one test.

    `run_ragx(*args, cwd=..., python=(...))`; `python` replaces `-m ragx` on Python's own command
    line. HOME is empty, and no variable from outside reaches the settings.
    """
    home = tmp_path_factory.mktemp("home")
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("OPENAI_", "RAGX_", "HF_", "XDG_"))
        and not name.lower().endswith("_proxy")
    }
    environment.update(HOME=str(home), USERPROFILE=str(home), PYTHONPATH=str(REPOSITORY))

    def run(
        *args: str, cwd: Path, python: tuple[str, ...] = ("-m", "ragx")
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *python, *args],
            cwd=cwd,
            env=environment,
            input="",
            capture_output=True,
            encoding="utf-8",
            timeout=60,
            check=False,
        )

    return run


@dataclass(frozen=True)
class Corpora:
    """Directories in the states that a command can meet.

    Args:
        built: indexed with the built-in model; holds a binary, a secret, a copy, a cp1252 file.
        lexical: the same files indexed without embeddings.
        partial: indexed through a server that refuses one file's text; `partial_run` is what
            that run printed.
        unindexed: settings and files, no index.
        reranked: `built` with rank fusion.
        resized: `lexical` with other chunk settings than its index.
        damaged: `lexical` with its database overwritten.
        down: `partial` with the address of a server that is not there.
        untrusted: `lexical` with an address that waits for trust.
        chatting: `lexical` with a chat model.
        nowhere: no corpus.
        chunk_id: of the Python file's chunk in `built` and in `lexical`.

    Beside them lie `queries.jsonl`, one judged query, and `unknown.jsonl`, which judges none of
    their files.
    """

    built: Path
    lexical: Path
    partial: Path
    unindexed: Path
    reranked: Path
    resized: Path
    damaged: Path
    down: Path
    untrusted: Path
    chatting: Path
    nowhere: Path
    chunk_id: int
    partial_run: subprocess.CompletedProcess[str]


@pytest.fixture(scope="session")
def corpora(
    tmp_path_factory: pytest.TempPathFactory, run_ragx: Run, embedding_server: str
) -> Corpora:
    """All corpora; read-only by agreement."""
    base = tmp_path_factory.mktemp("corpora")

    def make(name: str, settings: str) -> Path:
        root = base / name
        write_files(root)
        (root / "ragx.toml").write_text(settings, encoding="utf-8")
        return root

    def copy(source: Path, name: str, settings: str) -> Path:
        root = base / name
        shutil.copytree(source, root, symlinks=True)
        (root / "ragx.toml").write_text(settings, encoding="utf-8")
        return root

    def index(root: Path) -> subprocess.CompletedProcess[str]:
        return run_ragx("index", "--json", cwd=root)

    none = '[embeddings]\nprovider = "none"\n'
    served = f'[embeddings]\nprovider = "openai"\nmodel = "tiny"\nbase_url = "{embedding_server}"\n'

    unindexed = make("unindexed", none)
    built = make("built", "[corpus]\nmax_file_bytes = 4000\n")
    lexical = make("lexical", none)
    partial = make("partial", served)
    (partial / "docs" / "refused.md").write_text("# Odd\n\nREFUSE-THIS text.\n", encoding="utf-8")
    for root in (built, lexical):
        done = index(root)
        assert done.returncode == 0, done.stderr + done.stdout
    partial_run = index(partial)

    damaged = copy(lexical, "damaged", none)
    for name in ("index.db-wal", "index.db-shm"):
        (damaged / ".ragx" / name).unlink(missing_ok=True)
    (damaged / ".ragx" / "index.db").write_bytes(b"this was a database once\n" * 400)
    nowhere = base / "nowhere"
    nowhere.mkdir()
    for name, path in (("queries", "docs/log.md"), ("unknown", "docs/lag.md")):
        line = {"query": "who counted the barrels of salt?", "relevant_files": [path]}
        (base / f"{name}.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")

    shown = run_ragx("inspect", "file", "src/stowage.py", "--json", cwd=lexical)
    return Corpora(
        built=built,
        lexical=lexical,
        partial=partial,
        unindexed=unindexed,
        reranked=copy(built, "reranked", '[fusion]\nmethod = "rrf"\n'),
        resized=copy(lexical, "resized", none + "[chunking]\noverlap = 0.4\n"),
        damaged=damaged,
        down=copy(partial, "down", served.replace(embedding_server, "http://127.0.0.1:9/v1")),
        untrusted=copy(
            lexical, "untrusted", served.replace(embedding_server, "http://models.example/v1")
        ),
        chatting=copy(
            lexical,
            "chatting",
            f'{none}[expansion]\nmodel = "tiny"\nbase_url = "{embedding_server}"\n',
        ),
        nowhere=nowhere,
        chunk_id=json.loads(shown.stdout)["chunks"][0]["id"],
        partial_run=partial_run,
    )


def write_files(root: Path) -> None:
    (root / "docs").mkdir(parents=True)
    (root / "src").mkdir()
    (root / "docs" / "log.md").write_text(SHIP_LOG, encoding="utf-8")
    (root / "docs" / "copy.md").write_text(SHIP_LOG, encoding="utf-8")
    (root / "docs" / "price.txt").write_bytes(
        "Sch\xf6ne Preise \x96 ab f\xfcnf\n".encode("latin-1")
    )
    (root / "docs" / "picture.md").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")
    (root / "docs" / "long.md").write_text("filler words " * 400, encoding="utf-8")
    (root / "src" / "stowage.py").write_text(STOWAGE, encoding="utf-8")
    (root / "src" / ".env").write_text("TOKEN=1\n", encoding="utf-8")
    (root / "src" / "loop").symlink_to("..")
    (root / "docs" / "empty.md").write_bytes(b"")


class _Embeddings(BaseHTTPRequestHandler):
    """`/v1/embeddings` that counts hashed words and refuses one marked text as too long, and a chat
    model that cites a passage too many, or knows of no emperor."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path.endswith("/chat/completions"):
            text = "NOT_IN_EVIDENCE" if "emperor" in str(body["messages"]) else "Below deck [1][9]."
            reply: dict[str, Any] = {
                "choices": [{"message": {"content": text}, "finish_reason": "stop"}]
            }
            status = 200
        elif any("REFUSE-THIS" in text for text in body["input"]):
            reply = {"error": {"message": "input is longer than the maximum context length"}}
            status = 400
        else:
            reply = {
                "data": [
                    {"index": place, "embedding": _counts(text)}
                    for place, text in enumerate(body["input"])
                ]
            }
            status = 200
        payload = json.dumps(reply).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def _counts(text: str) -> list[float]:
    counts = [0.01] * 16
    for word in text.lower().split():
        counts[zlib.crc32(word.encode()) % 16] += 1.0
    return counts


@pytest.fixture(scope="session")
def embedding_server() -> Iterator[str]:
    """Base URL of a server on this machine."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Embeddings)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(scope="session")
def error_table() -> dict[str, tuple[frozenset[str], int]]:
    """Error codes as CONTRACTS.md lists them: code -> (classes, exit status)."""
    table: dict[str, tuple[frozenset[str], int]] = {}
    text = (REPOSITORY / "CONTRACTS.md").read_text(encoding="utf-8")
    section = text.split("\n## Error codes\n")[1].split("\n## ")[0]
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("| `"):
            continue
        code, classes, status, when = cells
        assert when, code
        code = code.strip("`")
        assert code not in table, f"{code} is listed twice"
        table[code] = frozenset(name.strip(" `") for name in classes.split(",")), int(status)
    return table

"""A harness that breaks indexing runs and looks at what they leave.

One corpus directory holds the new tree; `.ragx/` is put back to the state before each run, so that
every broken run starts from exactly the same place. `Lab.check` is the judge.

    lab.begin("incremental")
    lab.kill_at("incremental", "commit_before_end")
    outcome = lab.check("incremental")
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pytest

RunCli = Callable[..., "subprocess.CompletedProcess[str]"]

REPOSITORY = Path(__file__).resolve().parents[2]
# Random kills of each kind of run; the campaign by hand takes 50 (research/crash-safety.md).
RUNS = int(os.environ.get("RAGX_CRASH_RUNS", "4"))
SEED = int(os.environ.get("RAGX_CRASH_SEED", "1"))
LOG = os.environ.get("RAGX_CRASH_LOG", "")
# Enough to save embeddings twice in a run, or many times in the campaign.
SECTIONS = 96 if RUNS <= 8 else 240

KINDS = {"first": (), "incremental": (), "full": ("--full",)}
QUERIES = (("zebra okapi rarely",), ("zebra quagga", "--mode", "lexical"))
WORDS = "zebra okapi quagga gnu kudu eland oryx topi dikdik impala bongo nyala".split()
# What may lie in the index directory after a run.
AT_REST = {
    ".gitignore",
    "communities.json",
    "graph.bin",
    "index.db",
    "index.db-shm",
    "index.db-wal",
    "index.seal",
    "server.json",
    "vectors.bin",
    "writer.lock",
}
# Embeddings that a run may hold unsaved: a batch for the store, and what is in flight.
UNSAVED = 256 + 64


@dataclass(frozen=True)
class Course:
    """An undisturbed run: time from lock to first text, number of texts, time from the last on.

    A moment in it is a share: up to `READING` of the first stretch, up to `EMBEDDING` of the texts,
    then of the last stretch. Counted so, moments are spread alike on a busy machine.
    """

    reading_s: float
    n_texts: int
    storing_s: float


READING, EMBEDDING = 0.15, 0.5


@dataclass(frozen=True)
class Outcome:
    """What a broken run left, and what making up for it took."""

    kind: str
    where: str
    status: int
    state: str
    saved: int
    asked: int
    repeated: int
    leftovers: list[str] = field(default_factory=list)


def paragraphs(rng: random.Random, n: int) -> str:
    """Sections that are no one else's, so that each is an embedding of its own."""
    return "".join(
        f"# Part {rng.randrange(10**9)}\n\n{' '.join(rng.choices(WORDS, k=24))}.\n\n"
        for _ in range(n)
    )


def write_tree(root: Path, files: dict[str, str]) -> None:
    """Make the directory hold these files and `ragx.toml`; files that are right stay untouched."""
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if path.is_file() and name not in files and name != "ragx.toml" and ".ragx/" not in name:
            path.unlink()
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


class Lab:
    """One corpus, what its index was, and what it shall be."""

    def __init__(self, root: Path, server: Any, cli: RunCli, *, sections: int) -> None:
        """Make a corpus of about 3 x `sections` chunks, of which two thirds are in the new tree."""
        self.root, self._server, self.cli = root, server, cli
        self._directory, self._before = root / ".ragx", root.with_name(root.name + "-before")
        rng = random.Random(sections)
        old = {f"sub/f{i}.md": paragraphs(rng, sections // 4) for i in range(4)}
        old |= {
            "gone.md": "# Gone\n\nA zebra that left, rarely.\n",
            "move.md": "# M\n\nzebra gnu\n",
        }
        new = {name: text for name, text in old.items() if name != "gone.md"}
        new |= {f"new/g{i}.md": paragraphs(rng, sections // 2) for i in range(4)}
        new["sub/f1.md"] = "# Ahead\n\nAn okapi, rarely.\n\n" + new["sub/f1.md"]
        new["else/moved.md"] = new.pop("move.md")
        # A document, which each kind of run has to extract.
        new["new/order.eml"] = "From: a@example.org\nSubject: Hay\n\nHay for a zebra, rarely.\n"
        root.mkdir()
        (root / "ragx.toml").write_text(
            f"[embeddings]\n{server.settings}[chunking]\nsize_tokens = 32\n"
        )
        write_tree(root, old)
        self._clean("first")
        self._before_keys = self._stored()
        shutil.copytree(self._directory, self._before)
        write_tree(root, new)
        self.expected: dict[str, list[tuple[int, Any]]] = {}
        self.courses: dict[str, Course] = {}
        for kind in KINDS:
            self.begin(kind)
            self.expected[f"{kind} old"] = self._answers()
            self.begin(kind)
            n_texts = self._clean(kind).n_texts
            self.begin(kind)
            self.courses[kind] = self._clean(kind, n_texts)
            # All three kinds end in the same state.
            answers = self._answers()
            assert self.expected.setdefault("new", answers) == answers, kind
        assert self.expected["first old"] != self.expected["incremental old"]
        assert self.expected["incremental old"] != self.expected["new"]
        self._needed = self._window_keys()
        assert len(self._needed - self._before_keys) > 2 * sections

    def begin(self, kind: str) -> None:
        """Put the index back to what it was before a run of this kind."""
        shutil.rmtree(self._directory, ignore_errors=True)
        if kind != "first":
            shutil.copytree(self._before, self._directory)
        self._server.taken()

    def start(self, kind: str, **environment: str) -> subprocess.Popen[bytes]:
        """Start the real `ragx index` of this kind."""
        return subprocess.Popen(
            [sys.executable, "-m", "ragx", "index", "--json", *KINDS[kind]],
            cwd=self.root,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY), **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def kill_at(self, kind: str, failpoint: str) -> int:
        """Run until the failpoint kills the process; return its status."""
        process = self.start(kind, RAGX_FAILPOINT=f"{failpoint}=kill")
        process.communicate(timeout=60)
        return process.returncode

    def kill_after(self, kind: str, share: float) -> int:
        """Kill a run at a moment of its course; return its status."""
        course = self.courses[kind]
        process = self.start(kind)
        self._await_writer(process)
        if share < READING:
            time.sleep(share / READING * course.reading_s)
        else:
            done = min(1.0, (share - READING) / (EMBEDDING - READING))
            self._await_texts(process, max(1, round(done * course.n_texts)))
        if share > EMBEDDING:
            time.sleep((share - EMBEDDING) / (1.0 - EMBEDDING) * course.storing_s)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
        return process.returncode

    def check(self, kind: str, where: str, status: int) -> Outcome:
        """Judge what a broken run left, repair it by the next run and judge that, too."""
        asked_before, self._server.delay_s = self._server.taken(), 0.0
        saved = self._stored()
        answers = self._answers()
        old, new = self.expected[f"{kind} old"], self.expected["new"]
        assert answers in (old, new), f"neither the old nor the new state: {answers}"
        self._server.taken()

        done = self.cli("index", "--json", cwd=self.root)
        assert done.returncode == 0, done.stdout + done.stderr
        assert json.loads(done.stdout)["ok"]
        asked = self._server.taken()
        assert len(set(asked)) == len(asked)
        assert len(asked) == len(self._needed - saved), "what was saved was paid for again"
        repeated = len(set(asked) & set(asked_before))
        assert repeated <= UNSAVED
        assert self._answers() == new
        self._server.taken()

        done = self.cli("verify", "--json", cwd=self.root)
        assert done.returncode == 0, done.stdout + done.stderr
        assert self._server.taken() == []
        leftovers = sorted({path.name for path in self._directory.iterdir()} - AT_REST)
        assert all(name.endswith(".tmp") for name in leftovers), leftovers
        state = "old" if answers == old else "new"
        outcome = Outcome(kind, where, status, state, len(saved), len(asked), repeated, leftovers)
        if LOG:
            with open(LOG, "a", encoding="utf-8") as log:
                log.write(json.dumps(asdict(outcome)) + "\n")
        return outcome

    def sweep(self) -> list[str]:
        """Let leftovers grow old, run once more, and return what still lies there."""
        for path in self._directory.glob("*.tmp"):
            os.utime(path, (time.time() - 3600,) * 2)
        assert self.cli("index", "--json", cwd=self.root).returncode == 0
        return sorted({path.name for path in self._directory.iterdir()} - AT_REST)

    def _clean(self, kind: str, n_texts: int = 0) -> Course:
        process = self.start(kind)
        self._await_writer(process)
        locked = time.monotonic()
        self._await_texts(process, 1)
        embedding = time.monotonic()
        self._await_texts(process, n_texts or 10**9)
        storing = time.monotonic()
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, out + err
        n_texts = len(self._server.taken())
        return Course(embedding - locked, n_texts, time.monotonic() - storing)

    def _await_writer(self, process: subprocess.Popen[bytes]) -> None:
        """Wait until the process holds the writer's lock."""
        lock, mine = self._directory / "writer.lock", str(process.pid)
        while process.poll() is None:
            if lock.exists() and lock.read_text() == mine:
                return
            time.sleep(0.001)

    def _await_texts(self, process: subprocess.Popen[bytes], n: int) -> None:
        """Wait until the server has been asked for n texts."""
        while process.poll() is None and len(self._server.texts) < n:
            time.sleep(0.001)

    def _answers(self) -> list[tuple[int, Any]]:
        """Exit code and document of each query; of an error its code."""
        answers = []
        for query in QUERIES:
            done = self.cli("query", "--json", *query, cwd=self.root)
            document = json.loads(done.stdout)
            answers.append((done.returncode, document.get("error", {}).get("code", "") or document))
        return answers

    def _window_keys(self) -> set[bytes]:
        return self._keys("SELECT key FROM windows")

    def _stored(self) -> set[bytes]:
        """Keys of all embeddings that are safe on disk."""
        return self._keys("SELECT key FROM embeddings")

    def _keys(self, statement: str) -> set[bytes]:
        path = self._directory / "index.db"
        if not path.exists():
            return set()
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as db:
            if not db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                return set()
            return {key for (key,) in db.execute(statement)}


@pytest.fixture(scope="session")
def _labs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Lab]:
    return {}


def _lab(
    name: str,
    sections: int,
    labs: dict[str, Lab],
    factory: pytest.TempPathFactory,
    server: Any,
    cli: RunCli,
) -> Lab:
    if name not in labs:
        labs[name] = Lab(factory.mktemp(name) / "corpus", server, cli, sections=sections)
    lab = labs[name]
    lab.cli = cli
    return lab


@pytest.fixture
def small_lab(
    _labs: dict[str, Lab],
    tmp_path_factory: pytest.TempPathFactory,
    embedding_server: Any,
    ragx_inline: RunCli,
) -> Lab:
    """A lab whose runs are as short as can be: for named places."""
    embedding_server.delay_s = 0.0
    return _lab("small", 8, _labs, tmp_path_factory, embedding_server, ragx_inline)


@pytest.fixture
def large_lab(
    _labs: dict[str, Lab],
    tmp_path_factory: pytest.TempPathFactory,
    embedding_server: Any,
    ragx_inline: RunCli,
) -> Lab:
    """A lab whose runs save embeddings more than once: for moments in time."""
    return _lab("large", SECTIONS, _labs, tmp_path_factory, embedding_server, ragx_inline)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give `share` one value per random kill, the same for the same seed."""
    if "share" in metafunc.fixturenames:
        cases = []
        for kind in KINDS:
            rng = random.Random(f"{SEED} {kind}")
            cases += [(kind, rng.uniform(0.0, 1.0)) for _ in range(RUNS)]
        metafunc.parametrize(
            ("kind", "share"), cases, ids=[f"{kind}-{share:.3f}" for kind, share in cases]
        )


@pytest.fixture(scope="session")
def temporary_name() -> re.Pattern[str]:
    """Names of files that a killed run leaves half written."""
    return re.compile(
        r"(vectors\.bin|graph\.bin|communities\.json|index\.seal|index\.db)\.[0-9a-f]+\.tmp"
    )

"""Many processes at one index, and interrupts in each phase of a run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

RunCli = Callable[..., "subprocess.CompletedProcess[str]"]
MakeCorpus = Callable[..., Path]
Ask = Callable[..., dict[str, Any]]
Put = Callable[[Path, Mapping[str, str | bytes]], None]
Environment = Callable[..., dict[str, str]]
Start = Callable[..., "subprocess.Popen[bytes]"]

NOTES = {
    "a.md": "# Alpha\n\nThe zebra grazes.\n",
    "sub/b.md": "# Beta\n\nA lion sleeps.\n",
    "c.py": "def count(zebra):\n    return len(zebra)\n",
}
# The real command line, held at a failpoint until something ends it. `held` says that it is there.
HELD = """
import pathlib, sys, time
from ragx.store import failpoints
def hold():
    pathlib.Path("../held").touch()
    while True:
        time.sleep(0.01)
failpoints._break = hold
from ragx.shells.cli.main import run
run()
"""
# Seconds that an interrupted run may take on a machine that does other things, too.
PATIENCE_S = 30


@pytest.fixture
def start(ragx_environment: Environment) -> Iterator[Start]:
    """Start a command line in the background; none outlives its test."""
    processes = []

    def run(
        *args: str, cwd: Path, env: Mapping[str, str] | None = None, code: str = ""
    ) -> subprocess.Popen[bytes]:
        program = ["-c", code] if code else ["-m", "ragx"]
        process = subprocess.Popen(
            [sys.executable, *program, *args], cwd=cwd, env=ragx_environment(env),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        processes.append(process)
        return process

    yield run
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture
def served(make_corpus: MakeCorpus, embedding_server: Any) -> Path:
    """A corpus with the slow server's embeddings, not yet indexed."""
    root = make_corpus(NOTES, provider="none")
    (root / "ragx.toml").write_text(f"[embeddings]\n{embedding_server.settings}")
    return root


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.005)


def names(answer: dict[str, Any]) -> set[str]:
    return {entry["file"] for entry in answer["results"]}


# Many readers, one writer.


def test_eight_queries_at_once_where_nothing_is_ready(served: Path, ask: Ask, start: Start) -> None:
    """HOSTILE: eight cold `query` runs at once on a fresh index; the vectors' file is missing."""
    ask("index", cwd=served)
    for name in ("vectors.bin", "graph.bin", "index.seal", "index.db-shm", "index.db-wal"):
        (served / ".ragx" / name).unlink(missing_ok=True)
    processes = [start("query", "zebra", "--json", cwd=served) for _ in range(8)]
    outputs = [process.communicate(timeout=60) for process in processes]
    assert {process.returncode for process in processes} == {0}
    assert len({out for out, _ in outputs}) == 1
    assert {err for _, err in outputs} == {b""}
    assert json.loads(outputs[0][0])["stages"]["vector"] == "used"
    for name in ("vectors.bin", "graph.bin"):  # made again for the next one
        assert (served / ".ragx" / name).exists()
    assert list((served / ".ragx").glob("*.tmp")) == []


@contextmanager
def asking(ask_once: Callable[[], None]) -> Iterator[list[BaseException]]:
    """Ask again and again in other threads while the block runs."""
    faults: list[BaseException] = []
    stop = threading.Event()

    def loop() -> None:
        try:
            while not stop.is_set():
                ask_once()
        except BaseException as fault:
            faults.append(fault)

    threads = [threading.Thread(target=loop) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        yield faults
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_queries_while_runs_of_every_kind_go_on(
    served: Path, ask: Ask, put: Put, start: Start, ragx_cli: RunCli
) -> None:
    """HOSTILE: query loop during index. No "database is locked", no torn state."""
    put(served, {f"f{i}.md": f"zebra number{i} generation0\n" for i in range(12)})
    ask("index", cwd=served)
    seen: list[set[str]] = []

    def ask_once() -> None:
        done = ragx_cli("query", "zebra generation0", "--json", "--top", "50", cwd=served)
        assert (done.returncode, done.stderr) == (0, "")
        chunks = [c["text"] for e in json.loads(done.stdout)["results"] for c in e["chunks"]]
        generations = {text.split()[-1] for text in chunks if "number" in text}
        assert len(generations) == 1
        assert len(chunks) >= 12
        seen.append(generations)

    with asking(ask_once) as faults:
        for generation, flags in enumerate([(), ("--full",), ("--full", "--no-cache"), ()], 1):
            put(
                served, {f"f{i}.md": f"zebra number{i} generation{generation}\n" for i in range(12)}
            )
            process = start("index", "--json", *flags, cwd=served)
            out, err = process.communicate(timeout=60)
            assert (process.returncode, err) == (0, b"")
            assert json.loads(out)["ok"]
    assert faults == []
    assert len(set(map(str, seen))) > 1
    assert ask("verify", cwd=served)["ok"]


def test_two_runs_at_once(
    served: Path, ask: Ask, start: Start, ragx_cli: RunCli, embedding_server: Any
) -> None:
    """HOSTILE: Two `index` runs at once: second writer told clearly; readers are not blocked."""
    ask("index", cwd=served)
    (served / "new.md").write_text("# New\n\nAn okapi.\n")
    embedding_server.taken()
    embedding_server.free.clear()
    first = start("index", "--json", cwd=served)
    wait_for(lambda: bool(embedding_server.texts), first)
    for flags in ([], ["--full"], ["new.md"]):
        second = ragx_cli("index", "--json", *flags, cwd=served)
        assert second.returncode == 2
        error = json.loads(second.stdout)["error"]
        assert error["code"] == "index_busy"
        assert str(first.pid) in error["message"]
        assert error["hint"]
        assert second.stderr == ""
    told = ragx_cli("index", cwd=served)
    assert (told.returncode, told.stdout, told.stderr.count("\n")) == (2, "", 2)
    # The writer sits there with everything open; whoever reads is served all the same.
    assert names(ask("query", "zebra", "--mode", "lexical", cwd=served)) == {"a.md", "c.py"}
    assert ask("status", cwd=served)["drift"]["new"] == 1
    assert ask("inspect", "file", "a.md", cwd=served)["chunk_count"] == 1
    assert ask("index", "--dry-run", cwd=served)["files"] == 1
    embedding_server.free.set()
    out, err = first.communicate(timeout=60)
    assert (first.returncode, err) == (0, b"")
    assert json.loads(out)["files_indexed"] == 1
    assert ask("verify", cwd=served)["ok"]


def test_four_runs_started_at_once_end_in_a_right_index(
    served: Path, ask: Ask, start: Start
) -> None:
    """Each either does the work or is told that another does; on a fresh corpus, too."""
    processes = [start("index", "--json", cwd=served) for _ in range(4)]
    outputs = [process.communicate(timeout=60) for process in processes]
    assert {err for _, err in outputs} == {b""}
    codes = {json.loads(out).get("error", {}).get("code", "ok") for out, _ in outputs}
    assert "ok" in codes
    assert codes <= {"ok", "index_busy"}
    assert ask("verify", cwd=served)["ok"]


def test_a_reader_in_a_long_query_does_not_hold_a_run_up(
    served: Path, ask: Ask, put: Put, start: Start, embedding_server: Any
) -> None:
    """A query waits for its model with the snapshot open; runs come and go meanwhile."""
    ask("index", cwd=served)
    embedding_server.taken()
    embedding_server.free.clear()
    query = start("query", "zebra", "--json", "--mode", "hybrid", cwd=served)
    wait_for(lambda: bool(embedding_server.texts), query)
    (served / "a.md").unlink()
    report = ask("index", cwd=served)
    assert report["files_deleted"] == 1
    embedding_server.free.set()
    out, _ = query.communicate(timeout=60)
    assert query.returncode == 0
    entry = {entry["file"]: entry for entry in json.loads(out)["results"]}["a.md"]
    assert entry["state"] == "gone"  # of the state that it began with, and it says so
    assert names(ask("query", "zebra", cwd=served)) == {"c.py", "sub/b.md"}
    # The last reader is gone: the next run folds the log in and seals the database again.
    ask("index", cwd=served)
    assert ask("verify", cwd=served)["ok"]


# Interrupts.


def interrupt(process: subprocess.Popen[bytes], n_signals: int) -> tuple[bytes, bytes]:
    for _ in range(n_signals):
        process.send_signal(signal.SIGINT)
        time.sleep(0.02)
    out, err = process.communicate(timeout=PATIENCE_S)
    # A second one may come when Python is past all handlers: a shell says 130 of that, too.
    assert process.returncode in ((130,) if n_signals == 1 else (130, -signal.SIGINT))
    assert out == b""
    assert b"Traceback" not in err
    return out, err


@pytest.mark.skipif(sys.platform == "win32", reason="interrupts by signal")
@pytest.mark.parametrize("n_signals", [1, 2])
@pytest.mark.parametrize(
    ("failpoint", "committed"),
    [
        ("writer_opened", False),
        ("embeddings_saved", False),
        ("commit_before_end", False),
        ("committed", True),
        ("matrix_written", True),
        ("sealed", True),
    ],
)
def test_an_interrupt_in_each_phase(
    served: Path, ask: Ask, start: Start, failpoint: str, committed: bool, n_signals: int
) -> None:
    """HOSTILE: Ctrl-C in each phase, twice: under a second, index intact."""
    ask("index", cwd=served)
    (served / "new.md").write_text("# New\n\nAn okapi and a zebra.\n")
    held = served.parent / "held"
    process = start(
        "index", "--json", cwd=served, code=HELD, env={"RAGX_FAILPOINT": f"{failpoint}=hold"}
    )
    wait_for(held.exists, process)
    interrupt(process, n_signals)
    found = names(ask("query", "okapi", "--mode", "lexical", cwd=served, status=None))
    assert found == ({"new.md"} if committed else set())
    assert ask("index", cwd=served)["ok"]
    assert names(ask("query", "okapi", "--mode", "lexical", cwd=served)) == {"new.md"}
    assert ask("verify", cwd=served)["ok"]
    assert not list((served / ".ragx").glob("*.tmp")) or n_signals == 2


@pytest.mark.skipif(sys.platform == "win32", reason="interrupts by signal")
@pytest.mark.parametrize("n_signals", [1, 2])
@pytest.mark.parametrize(
    "command", [("index",), ("index", "--full"), ("query", "zebra"), ("verify",)]
)
def test_an_interrupt_while_a_server_does_not_answer(
    served: Path,
    ask: Ask,
    start: Start,
    embedding_server: Any,
    command: tuple[str, ...],
    n_signals: int,
) -> None:
    ask("index", cwd=served)
    (served / "new.md").write_text("# New\n\nAn okapi and a zebra.\n")
    before = embedding_server.n_requests
    embedding_server.free.clear()
    process = start(*command, "--json", cwd=served)
    wait_for(lambda: embedding_server.n_requests > before, process)
    interrupt(process, n_signals)
    embedding_server.free.set()
    assert names(ask("query", "okapi", "--mode", "lexical", cwd=served, status=None)) == set()
    assert ask("index", cwd=served)["ok"]
    assert ask("verify", cwd=served)["ok"]


@pytest.mark.skipif(sys.platform == "win32", reason="interrupts by signal")
@pytest.mark.parametrize("n_signals", [1, 2])
def test_an_interrupt_while_the_built_in_model_works(
    make_corpus: MakeCorpus, ask: Ask, start: Start, n_signals: int
) -> None:
    words = " ".join(f"word{i} zebra okapi quagga" for i in range(4000))
    root = make_corpus({"long.txt": words}, provider="builtin")
    process = start("index", "--json", cwd=root)
    lock = root / ".ragx" / "writer.lock"
    wait_for(lambda: lock.exists() and lock.read_text() == str(process.pid), process)
    time.sleep(1.0)
    if process.poll() is not None:
        pytest.skip("this machine embeds too fast")
    interrupt(process, n_signals)
    assert ask("query", "zebra", cwd=root, status=2)["error"]["code"] == "index_missing"
    assert not os.path.exists(root / ".ragx" / "vectors.bin")

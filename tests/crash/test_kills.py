"""Killed, out of space or with a failing disk at any place: the old state or the new, never a mix.

The harness is in conftest.py. `RAGX_CRASH_RUNS=50 RAGX_CRASH_LOG=kills.jsonl pytest tests/crash`
is the campaign of research/crash-safety.md.
"""

from __future__ import annotations

import json
import re
import signal
import sqlite3
import sys
from contextlib import closing
from typing import Any

import pytest

from ragx.store import failpoints

KINDS = ("first", "incremental", "full")
COMMITTED = failpoints.FAILPOINTS.index("committed")
# Where only files that readers can make for themselves are at stake, the run has succeeded.
SPARED = ("matrix_written", "matrix_replaced", "derived_written")

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="kills by signal")


def is_new(failpoint: str) -> bool:
    """Whether a run that breaks here has committed."""
    return failpoints.FAILPOINTS.index(failpoint) >= COMMITTED


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("failpoint", failpoints.FAILPOINTS)
def test_killed_at_a_named_place(
    small_lab: Any, kind: str, failpoint: str, temporary_name: re.Pattern[str]
) -> None:
    small_lab.begin(kind)
    status = small_lab.kill_at(kind, failpoint)
    assert status == -signal.SIGKILL, "the run never came there"
    outcome = small_lab.check(kind, failpoint, status)
    assert outcome.state == ("new" if is_new(failpoint) else "old")
    assert all(temporary_name.fullmatch(name) for name in outcome.leftovers)
    if outcome.leftovers:
        assert failpoint == "matrix_written"
        assert small_lab.sweep() == []


@pytest.mark.parametrize("failpoint", failpoints.FAILPOINTS)
@pytest.mark.parametrize(
    ("kind", "action", "code"),
    [
        ("first", "enospc", "disk_full"),
        ("incremental", "eio", "io_error"),
        ("full", "enospc", "disk_full"),
    ],
)
def test_the_disk_fails_at_a_named_place(
    small_lab: Any,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    failpoint: str,
    action: str,
    code: str,
) -> None:
    small_lab.begin(kind)
    with monkeypatch.context() as patch:
        patch.setattr(failpoints, "_name", failpoint)
        patch.setattr(failpoints, "_action", action)
        patch.setattr(failpoints, "_left", 1)
        flags = ["--full"] if kind == "full" else []
        done = small_lab.cli("index", "--json", "-v", *flags, cwd=small_lab.root)
        # Some places are passed once for each file that is written.
        assert failpoints._left <= 0, "the run never came there"
    document = json.loads(done.stdout)
    if failpoint in SPARED:
        assert done.returncode == 0
        assert [item["file"] for item in document["notes"]] == [".ragx"]
    else:
        assert (done.returncode, document["error"]["code"]) == (2, code)
        assert document["error"]["hint"]
    outcome = small_lab.check(kind, f"{failpoint}={action}", done.returncode)
    assert outcome.state == ("new" if is_new(failpoint) else "old")
    assert outcome.leftovers == []


@pytest.mark.parametrize("statement", ["", "PRAGMA journal_mode = WAL"])
def test_killed_before_there_are_tables(small_lab: Any, statement: str) -> None:
    """A first run that has only just made its database has left nothing that is damaged."""
    small_lab.begin("first")
    directory = small_lab.root / ".ragx"
    directory.mkdir()
    with closing(sqlite3.connect(directory / "index.db")) as db:
        db.execute(statement)
    assert (directory / "index.db").exists()
    assert small_lab.check("first", "no tables", -signal.SIGKILL).state == "old"


def test_killed_after_some_of_the_work(large_lab: Any) -> None:
    large_lab.begin("first")
    status = large_lab.kill_at("first", "embeddings_saved:2")
    assert status == -signal.SIGKILL
    outcome = large_lab.check("first", "embeddings_saved:2", status)
    assert outcome.state == "old"
    assert outcome.saved > 256  # and none of them was asked for again


def test_killed_at_any_moment(large_lab: Any, kind: str, share: float) -> None:
    large_lab.begin(kind)
    status = large_lab.kill_after(kind, share)
    assert status in (0, -signal.SIGKILL)
    large_lab.check(kind, f"{share:.3f}", status)

from __future__ import annotations

from dataclasses import replace

import pytest

from ragx.indexing.plan import Plan, StoredFile, plan
from ragx.indexing.scan import SeenFile

SECOND = 1_000_000_000
NOW = 1_000 * SECOND


def seen(path: str = "a.py", *, size: int = 5, age_s: float = 100, inode: int = 7) -> SeenFile:
    at = NOW - int(age_s * SECOND)
    return SeenFile(path, size, at, at, inode)


def stored(file: SeenFile, status: str = "ok") -> StoredFile:
    return StoredFile(
        file.path, "h", file.size, file.mtime_ns, file.ctime_ns, file.inode, NOW, status
    )


def decide(old: StoredFile | None, new: SeenFile | None) -> tuple[str, str]:
    made = plan({old.path: old} if old else {}, [new] if new else [])
    (decision,) = made.decisions
    return decision.action, decision.reason


def actions(made: Plan) -> dict[str, str]:
    return {decision.path: decision.action for decision in made.decisions}


def test_new_gone_and_unchanged() -> None:
    assert decide(None, seen()) == ("add", "new")
    assert decide(stored(seen()), None) == ("delete", "no longer on disk or excluded")
    assert decide(stored(seen()), seen()) == ("keep", "unchanged")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"size": 6}, "size changed"),
        ({"mtime_ns": 1}, "mtime changed"),
        ({"ctime_ns": 1}, "ctime changed"),
        ({"inode": 8}, "inode changed"),
        ({"size": 6, "mtime_ns": 1}, "size, mtime changed"),
    ],
)
def test_any_stat_field_that_differs_means_a_second_look(
    change: dict[str, int], reason: str
) -> None:
    assert decide(stored(seen()), replace(seen(), **change)) == ("check", reason)


@pytest.mark.parametrize(
    ("age_s", "action"), [(2.1, "keep"), (2, "check"), (1.9, "check"), (0, "check"), (-5, "check")]
)
def test_timestamps_near_the_last_scan_prove_nothing(age_s: float, action: str) -> None:
    file = seen(age_s=age_s)
    made, reason = decide(stored(file), file)
    assert made == action
    assert reason == ("unchanged" if action == "keep" else "touched within 2 s of the last scan")


def test_a_young_ctime_alone_is_enough() -> None:
    file = replace(seen(), ctime_ns=NOW - SECOND)
    assert decide(stored(file), file)[0] == "check"


def test_a_failure_is_tried_again_and_a_skip_is_remembered() -> None:
    assert decide(stored(seen(), "failed"), seen()) == ("check", "failed last time")
    assert decide(stored(seen(), "skipped:binary"), seen())[0] == "keep"
    assert decide(stored(seen(), "skipped:binary"), seen(size=9))[0] == "check"


def test_full_forces_what_is_stored() -> None:
    made = plan({"a": stored(seen("a")), "gone": stored(seen("gone"))}, [seen("a"), seen("b")],
                full=True)  # fmt: skip
    assert actions(made) == {"a": "force", "b": "add", "gone": "delete"}


def test_only_restricts_to_files_and_directories() -> None:
    old = {path: stored(seen(path)) for path in ("src/a", "src/sub/b", "srcx", "z", "src/gone")}
    now = [seen(path) for path in ("src/a", "src/sub/b", "src/new", "srcx", "z")]
    expected = {"src/a": "keep", "src/sub/b": "keep", "src/new": "add", "src/gone": "delete"}
    assert actions(plan(old, now, only=["src/"])) == expected
    assert actions(plan(old, now, only=["src"])) == expected
    assert actions(plan(old, now, only=["z", "src/new"])) == {"z": "keep", "src/new": "add"}
    assert actions(plan(old, now, only=["./"])) == actions(plan(old, now))
    assert actions(plan(old, now, only=[])) == {}


def test_names_that_nothing_answers_to_are_told() -> None:
    made = plan({"old": stored(seen("old"))}, [seen("a")], only=["nope", "a", "dir/", "old"])
    assert made.unmatched == ("dir/", "nope")
    assert plan({}, [seen("a")], force=["nope"]).unmatched == ("nope",)


def test_force_beats_an_unchanged_stat_and_counts_as_named() -> None:
    old = {path: stored(seen(path)) for path in ("a", "b", "c")}
    now = [seen("a"), seen("b")]
    assert actions(plan(old, now, force=["a", "c"])) == {"a": "force", "b": "keep", "c": "delete"}
    assert actions(plan(old, now, only=["b"], force=["a"])) == {"a": "force", "b": "keep"}


def test_what_could_not_be_looked_into_is_not_deleted() -> None:
    old = {path: stored(seen(path)) for path in ("dark/a", "dark.py", "gone")}
    made = plan(old, [], unreadable=["dark/", "dark.py"])
    assert actions(made) == {"dark/a": "keep", "dark.py": "keep", "gone": "delete"}


def test_views_of_a_plan() -> None:
    made = plan({"b": stored(seen("b"))}, [seen("b"), seen("c"), seen("a")])
    assert made.paths("add") == ("a", "c")
    assert made.paths("add", "keep") == ("a", "b", "c")
    assert not made.is_empty
    assert plan({}, []).is_empty

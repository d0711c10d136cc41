from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ragx.indexing.plan import StoredFile, plan
from ragx.indexing.scan import SeenFile

NOW = 10**13
paths = st.sampled_from(["a", "b", "d/a", "d/b", "d/e/f", "dd", "é", "Z"])
numbers = st.integers(0, 2)
seen_files = st.builds(SeenFile, paths, numbers, numbers, numbers, numbers)
seen_lists = st.lists(seen_files, unique_by=lambda file: file.path)
statuses = st.sampled_from(["ok", "failed", "skipped:binary"])


def remember(file: SeenFile, status: str = "ok", scanned_ns: int = NOW) -> StoredFile:
    return StoredFile(
        file.path, "h", file.size, file.mtime_ns, file.ctime_ns, file.inode, scanned_ns, status
    )


@st.composite
def stores(draw: st.DrawFn) -> dict[str, StoredFile]:
    scanned = st.sampled_from([0, NOW])
    return {file.path: remember(file, draw(statuses), draw(scanned)) for file in draw(seen_lists)}


@given(seen_lists)
def test_a_plan_after_a_build_is_empty(seen: list[SeenFile]) -> None:
    made = plan({file.path: remember(file) for file in seen}, seen)
    assert made.is_empty
    assert len(made.decisions) == len(seen)


@given(stores(), seen_lists, st.booleans(), st.lists(paths))
def test_every_path_has_one_decision_in_order(
    stored: dict[str, StoredFile], seen: list[SeenFile], full: bool, force: list[str]
) -> None:
    made = plan(stored, seen, full=full, force=force)
    assert [decision.path for decision in made.decisions] == sorted(
        {*stored, *(file.path for file in seen)}
    )
    assert all(decision.reason for decision in made.decisions)
    again = plan(dict(reversed(stored.items())), seen[::-1], full=full, force=force[::-1])
    assert again == made
    present = {file.path for file in seen}
    for decision in made.decisions:
        assert (decision.action == "add") == (decision.path not in stored)
        assert (decision.action == "delete") == (decision.path not in present)


@given(stores(), seen_lists, st.lists(st.sampled_from(["a", "d", "d/", "d/e/", "./", "no"])))
def test_naming_paths_filters_the_whole_plan(
    stored: dict[str, StoredFile], seen: list[SeenFile], only: list[str]
) -> None:
    def named(path: str) -> bool:
        return any(
            name == "./" or path == name or path.startswith(name.rstrip("/") + "/") for name in only
        )

    whole = plan(stored, seen).decisions
    assert plan(stored, seen, only=only).decisions == tuple(
        decision for decision in whole if named(decision.path)
    )

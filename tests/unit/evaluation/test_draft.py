"""What is taken into a draft, and how it is shared out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import pytest

from ragx.algo.chunking.languages import language_of
from ragx.errors import UsageError
from ragx.evaluation.draft import Draft, DraftRequest, draft
from ragx.evaluation.history import Commit, History
from ragx.store.base import FileRow, Reader
from ragx.types import Chunk


class Files:
    """The two questions a draft asks of a snapshot, over texts of one chunk each."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.texts = texts

    def files(self) -> dict[str, FileRow]:
        return {
            path: FileRow(
                path,
                str(hash(text)),
                1,
                1,
                1,
                1,
                1,
                language=language_of(path),
                n_chunks=bool(text),
            )
            for path, text in sorted(self.texts.items())
        }

    def chunks_of(self, path: str) -> list[Chunk]:
        text = self.texts[path]
        return [Chunk(1, path, 0, 0, len(text), 1, 1 + text.count("\n"), text)]


def drafted(
    texts: Mapping[str, str], commits: tuple[Commit, ...] = (), note: str = "", **how: Any
) -> Draft:
    reader = cast("Reader", Files(texts))
    return draft(reader, History(commits, note), DraftRequest(**how))


PLACES = "harbour lighthouse quay anchor rudder compass sail mast keel deck".split()


def page(n: int, *, first: int = 0) -> str:
    return "".join(
        f"# Painting the {place} in winter\n\nText.\n\n" for place in PLACES[first : first + n]
    )


def test_each_kind_is_named_and_traced() -> None:
    found = drafted(
        {
            "docs/a.md": "Intro.\n\n# Painting the keel in winter\n",
            "src/b.py": '"""Where barrels of salt are stowed. Or not."""\n',
            "src/empty.py": "",
        },
        (Commit("c" * 40, "feat: Stow barrels below the deck (#3)", ("src/b.py",)),),
    )
    assert [
        (item.name, item.query, item.relevant, item.kind, item.origin) for item in found.queries
    ] == [
        ("h1", "Painting the keel in winter", ("docs/a.md",), "headings", "docs/a.md:3"),
        ("d1", "Where barrels of salt are stowed", ("src/b.py",), "docstrings", "src/b.py:1"),
        ("c1", "Stow barrels below the deck", ("src/b.py",), "commits", "c" * 12),
    ]
    assert found.by_kind == {"headings": 1, "docstrings": 1, "commits": 1}
    assert found.notes == ()


def test_kinds_share_the_limit_and_leave_what_they_lack_to_the_others() -> None:
    texts = {"a.md": page(8), "b.py": '"""Where barrels of salt are stowed."""\n'}
    commits = tuple(
        Commit(f"{n:040d}", f"Mend the {place} after storms", ("b.py",))
        for n, place in enumerate(PLACES)
    )
    assert drafted(texts, commits, limit=7).by_kind == {
        "headings": 3,
        "docstrings": 1,
        "commits": 3,
    }
    assert drafted(texts, commits, limit=2).by_kind == {
        "headings": 1,
        "docstrings": 1,
        "commits": 0,
    }
    everything = {"headings": 8, "docstrings": 1, "commits": 10}
    assert drafted(texts, commits, limit=500).by_kind == everything


def test_every_file_has_its_turn_before_one_has_a_second() -> None:
    texts = {"a.md": page(6), "b.md": page(1, first=6), "c.md": page(2, first=7)}
    files = [item.relevant[0] for item in drafted(texts, limit=5).queries]
    assert files == ["a.md", "a.md", "b.md", "c.md", "c.md"]


def test_few_queries_are_spread_over_many_files() -> None:
    texts = {f"{n}.md": page(1, first=n) for n in range(9)}
    files = [item.relevant[0] for item in drafted(texts, limit=3).queries]
    assert files == ["1.md", "4.md", "7.md"]


def test_the_same_input_gives_the_same_draft() -> None:
    texts = {f"{n}.md": page(4, first=n) + f"# Riddle {n} of old sailors\n" for n in range(6)}
    backwards = dict(reversed(texts.items()))
    assert drafted(texts, limit=4) == drafted(backwards, limit=4)


def test_a_heading_of_several_files_is_left_out_but_copies_of_a_file_count_as_one() -> None:
    shared = "# Painting the keel in winter\n\n"
    assert drafted({"a.md": shared + "One.", "b.md": shared + "Two."}).queries == ()
    (copied,) = drafted({"a.md": shared, "b.md": shared}).queries
    assert copied.relevant == ("a.md", "b.md")
    assert drafted({f"{n}.md": shared for n in range(6)}).queries == ()


def test_equal_wordings_are_merged_across_kinds() -> None:
    (only,) = drafted(
        {"a.md": "# Painting the keel in winter\n", "b.py": "x = 1\n"},
        (Commit("c" * 40, "painting the KEEL, in winter!", ("b.py",)),),
    ).queries
    assert (only.kind, only.relevant) == ("headings", ("a.md", "b.py"))


def test_what_is_missing_is_noted_once() -> None:
    assert drafted({}, note="no commits: no git").notes == (
        "no commits: no git",
        "no headings: none reads like a query",
        "no docstrings: none reads like a query",
    )
    only = drafted({}, kinds=("headings",), note="no commits: no git")
    assert only.notes == ("no headings: none reads like a query",)
    assert only.by_kind == {"headings": 0}


@pytest.mark.parametrize("how", [{"kinds": ()}, {"kinds": ("titles",)}, {"limit": 0}])
def test_a_request_that_cannot_be_meant(how: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        drafted({}, **how)

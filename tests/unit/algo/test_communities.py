"""Communities of small graphs by hand, and labels that a reader would understand."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Sequence

import numpy as np
import pytest

from ragx.algo import communities
from ragx.algo.communities import LABEL_CHARS, Member, detect, label_communities

Edge = tuple[int, int, float]


def find(n: int, edges: Sequence[Edge], *, resolution: float = 1.0, seed: int = 42) -> list[int]:
    src, dst, weights = zip(*edges, strict=True) if edges else ((), (), ())
    found = detect(
        n,
        np.array(src, dtype=np.int64),
        np.array(dst, dtype=np.int64),
        np.array(weights, dtype=np.float64),
        resolution=resolution,
        seed=seed,
    )
    assert found.dtype == np.int32
    assert found.shape == (n,)
    return found.tolist()


def clique(*nodes: int, weight: float = 1.0) -> list[Edge]:
    return [(a, b, weight) for a in nodes for b in nodes if a < b]


def test_no_nodes_and_no_edges() -> None:
    assert find(0, []) == []
    assert find(3, []) == [0, 1, 2]


def test_two_cliques_and_a_bridge() -> None:
    edges = [*clique(0, 2, 4), *clique(1, 3, 5, 6), (4, 5, 0.1)]
    # The larger one is number 0 although the smaller one holds node 0; node 7 has no edge.
    assert find(8, edges) == [1, 0, 1, 0, 1, 0, 0, 2]


def test_equal_sizes_go_by_the_lowest_node() -> None:
    assert find(6, [*clique(1, 2), *clique(0, 5), *clique(3, 4)]) == [0, 1, 1, 2, 2, 0]


def test_the_heaviest_of_parallel_edges_counts() -> None:
    cliques = [*clique(0, 1, 2), *clique(3, 4, 5)]
    assert find(6, [*cliques, *[(3, 2, 0.3), (2, 3, 0.4)] * 20]) == [0, 0, 0, 1, 1, 1]
    # What their sum would do:
    assert find(6, [*cliques, (2, 3, 14.0)]) != [0, 0, 0, 1, 1, 1]
    low, high, weights = communities._simple_edges(
        4,
        np.array([3, 1, 0, 2]),
        np.array([1, 3, 1, 2]),
        np.array([0.25, 0.5, 0.125, 1.0], dtype=np.float32),
    )
    assert (low.tolist(), high.tolist(), weights.tolist()) == ([0, 1], [1, 3], [0.125, 0.5])


@pytest.mark.parametrize("edge", [(1, 1, 1.0), (0, 1, 0.0), (0, 1, 4e-7)])
def test_loops_and_nothing_connect_nothing(edge: Edge) -> None:
    assert find(2, [edge]) == [0, 1]


def test_noise_in_the_last_digits_does_not_matter() -> None:
    edges = tangle(60, 240)
    noisy = [(a, b, weight + 1e-9) for a, b, weight in edges]
    assert find(60, noisy) == find(60, edges)


def test_resolution_sets_the_size() -> None:
    edges = [*clique(0, 1, 2), *clique(3, 4, 5), (2, 3, 0.5)]
    counts = [len(set(find(6, edges, resolution=value))) for value in (0.01, 1.0, 50.0)]
    assert counts == [1, 2, 6]


@pytest.mark.parametrize(
    ("edges", "options"),
    [
        ([(0, 3, 1.0)], {}),
        ([(-1, 0, 1.0)], {}),
        ([(0, 1, float("nan"))], {}),
        ([(0, 1, float("inf"))], {}),
        ([(0, 1, -0.1)], {}),
        ([], {"resolution": 0.0}),
        ([], {"resolution": float("nan")}),
        ([], {"seed": -1}),
        ([], {"seed": 2**31}),
    ],
)
def test_what_makes_no_graph_is_refused(edges: list[Edge], options: dict[str, float]) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        find(3, edges, **options)


def test_shapes_must_agree() -> None:
    two, one = np.zeros(2, dtype=np.int64), np.ones(1)
    for src, dst, weights in (
        (two, two, one),
        (two, two[:1], np.ones(2)),
        (two, two, one[:, None]),
    ):
        with pytest.raises(ValueError, match=r"edges|sources"):
            detect(3, src, dst, weights, resolution=1.0, seed=1)


def tangle(n: int, m: int) -> list[Edge]:
    """A graph without clear groups, where the seed decides."""
    source = random.Random(5)
    return [
        (source.randrange(n), source.randrange(n), round(source.uniform(0.2, 1), 3))
        for _ in range(m)
    ]


SCRIPT = """\
import numpy as np
from ragx.algo.communities import detect
edges = {edges}
src, dst, weights = (np.array(column) for column in zip(*edges))
print(detect({n}, src, dst, weights, resolution=1.0, seed=42).tolist())
"""


def test_every_process_finds_the_same() -> None:
    edges = tangle(200, 800)
    script = SCRIPT.format(edges=edges, n=200)
    here = find(200, edges)
    assert find(200, edges) == here
    for hash_seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": hash_seed, "PYTHONPATH": ":".join(filter(None, sys.path))},
        )
        assert done.stdout.strip() == str(here)


def test_global_random_state_is_neither_read_nor_changed() -> None:
    edges = tangle(200, 800)
    random.seed(1)
    before = random.getstate()
    one = find(200, edges)
    assert random.getstate() == before
    random.seed(2)
    assert find(200, edges) == one


def test_the_library_loads_with_the_first_edge_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "leidenalg", None)
    assert find(2, []) == [0, 1]
    with pytest.raises(ImportError):
        find(2, [(0, 1, 1.0)])


def test_a_large_sparse_graph_takes_seconds() -> None:
    source = np.random.default_rng(3)
    group = np.arange(20_000) // 50
    src = source.integers(0, 20_000, 60_000)
    dst = group[src] * 50 + source.integers(0, 50, 60_000)
    began = time.perf_counter()
    found = detect(20_000, src, dst, np.ones(60_000), resolution=1.0, seed=1)
    assert time.perf_counter() - began < 30  # 0.6 s on the machine of 2026
    assert 300 < len(set(found.tolist())) < 500


def prose(*texts: str, title: str = "", heading: tuple[str, ...] = ()) -> list[Member]:
    return [Member(f"docs/{at}.md", text, title, heading) for at, text in enumerate(texts)]


def label(*groups: list[Member]) -> list[str]:
    members = [member for group in groups for member in group]
    numbers = [number for number, group in enumerate(groups) for _ in group]
    labels = label_communities(members, numbers)
    assert all(0 < len(line) <= LABEL_CHARS for line in labels)
    return labels


KEYS = prose(
    "Each client sends its token. The token refresh happens at login.",
    "A token refresh needs a valid login.",
    "After login, the server answers with a token refresh.",
    title="API keys",
    heading=("API keys",),
)
BREAD = prose(
    "Knead the dough and let it rest.",
    "The dough rises in a warm oven.",
    "Bake in the oven until brown.",
    title="Bread",
    heading=("Bread", "Baking"),
)


def test_no_members_and_unused_numbers() -> None:
    assert label_communities([], []) == []
    assert label_communities([Member("a.md", title="A tree")], [1]) == ["", "A tree"]


def test_words_that_set_a_community_apart_then_its_title() -> None:
    keys, bread = label(KEYS, BREAD)
    assert keys.startswith("token refresh, login")
    assert keys.endswith(' — "API keys"')
    assert bread.startswith("dough, oven")
    assert '"Baking"' in bread or '"Bread"' in bread


def test_words_without_a_topic_make_no_label() -> None:
    noise = "See the example 42, x of 2024-01-01: use https://example.org/zebra for `b`"
    assert label(prose(noise, noise, title="Overview"), KEYS)[0] == "untitled"


def test_forms_of_a_word_appear_once() -> None:
    texts = ["test tests testing tested harness", "tests testing test harness"]
    (line, _) = label(prose(*texts, *texts), BREAD)
    assert sum(line.count(word) for word in ("test", "tests", "testing")) <= 2
    assert "harness" in line


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("test", "testing", True),
        ("log", "logs", True),
        ("configuration", "configure", True),
        ("config", "configuration", True),
        ("restore", "restic", False),
        ("doc", "docker", False),
        ("key", "keyboard", False),
        ("same", "same", True),
    ],
)
def test_forms_of_a_word(one: str, other: str, alike: bool) -> None:
    assert communities._alike(one, other) is communities._alike(other, one) is alike


def test_words_are_spelled_as_most_members_spell_them() -> None:
    texts = ["reads JSON and UTF-8 from PostgreSQL"] * 3
    line = label(prose(*texts), BREAD)[0]
    assert "JSON" in line
    assert "PostgreSQL" in line


def test_code_is_named_by_files_and_symbols() -> None:
    lexer = [
        Member("src/lexer.py", "def f(): return 1", symbols=(name,))
        for name in ("nextToken", "peek_token", "skip_blanks")
    ]
    store = [
        Member("src/store.py", "x", heading=("RowStore", name), symbols=(name,))
        for name in ("open_row", "close_row", "drop")
    ]
    first, second = label(lexer, store)
    assert "token" in first
    assert "lexer.py" in first
    assert "return" not in first
    assert "row" in second.casefold()
    assert "RowStore" in second or "store.py" in second


def test_a_generic_file_name_comes_with_its_directory() -> None:
    members = [Member("src/parser/__init__.py", symbols=(name,)) for name in ("parse", "emit")]
    assert "parser/__init__.py" in label(members, BREAD)[0]


@pytest.mark.parametrize(
    ("member", "expected"),
    [
        (Member("a.md", "text", "Guide", ("Guide", "Set-up", "Linux")), "Guide > Linux"),
        (Member("a.md", "text", "Guide"), "Guide"),
        (Member("a.md", "text", "", ("Linux",)), "Linux"),
        (Member("a.md", "`run` it\n  first,\x1b[31m please"), "run it first, [31m please"),
        (Member("notes/a.md"), "a.md"),
        (Member("a.md", "", "Overview"), "Overview — a.md"),
        (Member("a.py", "x = 1", symbols=("load", "save")), "load, save — a.py"),
        (Member("a.py", "x = 1"), "a.py"),
        (Member("d/table.csv", "a,b,c"), "table.csv"),
        (Member("", ""), "untitled"),
        (Member("a\udcff.csv"), "a .csv"),
    ],
)
def test_a_community_of_one_has_its_own_name(member: Member, expected: str) -> None:
    assert label([member], BREAD)[0] == expected


def test_long_names_are_cut_after_a_word() -> None:
    title = "A very long title about many wonderful things that never wants to come to any end " * 2
    (single,) = label([Member("a.md", "", title)])
    assert single.endswith("…")
    assert title.startswith(single[:-1] + " ")
    many = label(prose("one", "two", title=title), BREAD)[0]
    shown = many[many.index('"') + 1 : many.index("…")]
    assert title.startswith(shown + " ")


def test_no_grapheme_is_cut() -> None:
    family = "👩\u200d👩\u200d👧"
    (line,) = label([Member("a.md", "", family * 40)])
    assert line == family * (len(line) // len(family)) + "…"


def test_scripts_without_spaces_and_marks() -> None:
    japanese = prose(*["データベースの検索を行う。検索は速い。"] * 3, title="検索")
    hindi = prose(*["हिन्दी पुस्तक पढ़ना"] * 3)
    first, second = label(japanese, hindi)
    assert "データベース" in first
    assert "検索" in first
    assert "हिन्दी" in second


def test_quotes_in_titles_stay_apart_from_ours() -> None:
    line = label(prose("a", "b", title='The "big" one'), BREAD)[0]
    assert line.endswith("\"The 'big' one\"")


def test_one_community_for_all_still_has_a_label() -> None:
    (line,) = label([*KEYS, *BREAD])
    assert line


@pytest.mark.parametrize(("members", "numbers"), [(2, [0]), (1, [0, 0]), (1, [-1])])
def test_numbers_must_fit_the_members(members: int, numbers: list[int]) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        label_communities([Member("a.md")] * members, numbers)


def test_long_names_and_texts_take_no_longer_than_their_beginnings() -> None:
    began = time.perf_counter()
    for hostile in ("<", ":a", "](", "1a", "\u0301", "検", "\n ", "aB_"):
        long = hostile * 100_000
        heading, symbols = (long, long), (long,)
        for path in ("a.md", "a.py"):
            members = [Member(path, long, long, heading, symbols)] * 2
            label(members, [Member(path, long, long, heading, symbols)])
    assert time.perf_counter() - began < 10  # 0.1 s on the machine of 2026


def test_members_are_read_once() -> None:
    stream = iter(KEYS)
    numbers = np.zeros(len(KEYS), dtype=np.int32)
    assert label_communities(stream, numbers) == label(KEYS)
    assert next(stream, None) is None

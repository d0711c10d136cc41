"""Communities depend on the edges as a set; labels on the members as a set."""

from __future__ import annotations

import unicodedata

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ragx.algo.chunking.graphemes import is_boundary
from ragx.algo.communities import LABEL_CHARS, Member, _clean, detect, label_communities

NODES = 14
# Few distinct weights, so that ties are common; some edges are loops, doubled or worth nothing.
edges = st.lists(
    st.tuples(
        st.integers(0, NODES - 1),
        st.integers(0, NODES - 1),
        st.sampled_from([0.0, 0.25, 0.5, 0.5000001, 1.0]),
    ),
    max_size=40,
)
resolutions = st.sampled_from([0.3, 1.0, 2.0])
seeds = st.integers(0, 2**31 - 1)


def find(listed, resolution: float, seed: int) -> list[int]:
    columns = zip(*listed, strict=True) if listed else ((), (), ())
    src, dst, weights = columns
    return detect(
        NODES,
        np.array(src, dtype=np.int64),
        np.array(dst, dtype=np.int64),
        np.array(weights, dtype=np.float64),
        resolution=resolution,
        seed=seed,
    ).tolist()


@given(edges, resolutions, seeds, st.randoms(use_true_random=False))
def test_order_direction_and_repetition_of_edges_never_matter(
    listed, resolution, seed, random
) -> None:
    other = [(b, a, w) if random.random() < 0.5 else (a, b, w) for a, b, w in listed]
    other += [(a, b, w / 2) for a, b, w in listed if random.random() < 0.3]
    random.shuffle(other)
    assert find(other, resolution, seed) == find(listed, resolution, seed)


@given(edges, resolutions, seeds)
def test_numbers_are_canonical_and_communities_connected(listed, resolution, seed) -> None:
    found = find(listed, resolution, seed)
    groups = [[i for i in range(NODES) if found[i] == number] for number in range(max(found) + 1)]
    assert all(groups)
    order = [(-len(group), group[0]) for group in groups]
    assert order == sorted(order)
    for group in groups:
        reached, todo = {group[0]}, [group[0]]
        while todo:
            node = todo.pop()
            for a, b, weight in listed:
                for one, other in ((a, b), (b, a)):
                    if weight and one == node and other in group and other not in reached:
                        reached.add(other)
                        todo.append(other)
        assert reached == set(group)


texts = st.one_of(
    st.text(max_size=60),
    st.lists(
        st.sampled_from(
            [
                "token",
                "Tokens",
                "refresh",
                "the",
                "login",
                "検索データ",
                "\n\n",
                "हिन्दी",
                "é",
                "a_b",
            ]
        ),
        max_size=12,
    ).map(" ".join),
)
members = st.builds(
    Member,
    path=st.sampled_from(["a.md", "b/a.md", "a.py", "b/__init__.py", "t.csv", "x"]) | st.text(),
    text=texts,
    title=texts,
    heading=st.lists(texts, max_size=2).map(tuple),
    symbols=st.lists(st.sampled_from(["parse", "_Lexer", "getToken", "x", ""]), max_size=3).map(
        tuple
    ),
)
grouped = st.lists(st.tuples(members, st.integers(0, 3)), max_size=12)


def labels(pairs: list[tuple[Member, int]]) -> list[str]:
    return label_communities([member for member, _ in pairs], [number for _, number in pairs])


@settings(max_examples=200)
@given(grouped, st.randoms(use_true_random=False))
def test_a_label_is_one_short_line_and_independent_of_order(pairs, random) -> None:
    found = labels(pairs)
    used = {number for _, number in pairs}
    assert len(found) == max(used, default=-1) + 1
    for number, line in enumerate(found):
        assert bool(line) is (number in used)
        assert len(line) <= LABEL_CHARS
        assert line == " ".join(line.split())
        assert not any(unicodedata.category(character) in ("Cc", "Cs") for character in line)
    random.shuffle(pairs)
    assert labels(pairs) == found


@given(st.text(min_size=LABEL_CHARS, max_size=200))
def test_a_long_title_is_cut_between_graphemes(title) -> None:
    full = _clean("x" + title)
    (line,) = label_communities([Member("x", title=full)], [0])
    if len(full) > LABEL_CHARS:
        assert line.endswith("…")
        assert full.startswith(line[:-1])
        assert is_boundary(full, len(line) - 1)

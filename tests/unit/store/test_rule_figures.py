"""What ranking rules ask of the index: how rare a word is, how long a file, how alike all is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import pytest

from ragx.algo.lexical import analyse
from ragx.algo.rules import content_words
from ragx.store import reader as reader_module
from ragx.store.sqlite import SqliteReader
from ragx.store.vectors import VectorIndex, VectorRows

Write = Callable[..., None]
SAMPLED = 400  # rows at most, evenly spaced


@contextmanager
def opened(root: Path) -> Iterator[SqliteReader]:
    with closing(SqliteReader(root)) as reader:
        yield reader


# How rare a word is.

TEXTS = [
    "one zebra runs",
    "the zebra was running and running",
    "a lion runs near a zebra and not a fish",
    "to run, or not to run",
    "getUserName reads a user",
    "an error AND an ERROR",
    'she said "quoted" things',
    "die Größe der Straße",
    "索引 解析",
    "nothing of that kind",
]


def test_a_word_is_counted_once_for_each_chunk_that_has_it(tmp_path: Path, write: Write) -> None:
    write({f"{i}.md": [text] for i, text in enumerate(TEXTS)})
    words = [
        "zebra",
        "lion",
        "user",
        "getusername",
        "quoted",
        "grosse",
        "strasse",
        "索引",
        "error",
        "absent",
    ]
    # No word here is another one's stem.
    expected = [sum(word in analyse(text).split() for text in TEXTS) for word in words]
    with opened(tmp_path) as reader:
        assert reader.frequencies(words) == expected
    assert expected[:2] == [3, 1]
    assert expected[-2:] == [1, 0]


def test_a_word_is_counted_in_all_its_forms(tmp_path: Path, write: Write) -> None:
    write({f"{i}.md": [text] for i, text in enumerate(TEXTS)})
    expected = sum(bool(re.search(r"\brun(s|ning)?\b", text)) for text in TEXTS)
    with opened(tmp_path) as reader:
        assert reader.frequencies(["run", "runs", "running"]) == [expected] * 3


def test_words_that_are_operators_elsewhere_are_words_here(tmp_path: Path, write: Write) -> None:
    write({f"{i}.md": [text] for i, text in enumerate(TEXTS)})
    words = ["and", "or", "not", "near", "AND", "OR", "NOT", "NEAR"]
    expected = [sum(word.lower() in analyse(text).split() for text in TEXTS) for word in words]
    with opened(tmp_path) as reader:
        assert reader.frequencies(words) == expected
    assert min(expected) > 0


@pytest.mark.parametrize(
    "text",
    [
        'say "hello" -world',
        "a* (b) ^c {d} e:f body:g -h +i",
        "\"unbalanced 'quotes` \\ ; DROP TABLE postings --",
        "NEAR(a b, 5) AND NOT OR",
        "🦓 斑马 \x00 \u0301 _ __",
        "",
    ],
)
def test_words_of_any_question_can_be_counted(tmp_path: Path, write: Write, text: str) -> None:
    write({"a.md": [text or "x"]})
    words = content_words(text)
    with opened(tmp_path) as reader:
        assert reader.frequencies(words) == [1] * len(words)


def test_no_words_are_no_counts_and_their_order_is_kept(tmp_path: Path, write: Write) -> None:
    write({"a.md": ["zebra", "zebra lion"]})
    with opened(tmp_path) as reader:
        assert reader.frequencies([]) == []
        assert reader.frequencies(["lion", "zebra", "lion"]) == [1, 2, 1]


def test_counting_stops_where_a_word_is_common(
    tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write({f"{i}.md": ["zebra", "lion"][: 1 + i % 2] for i in range(9)})
    monkeypatch.setattr(reader_module, "_VERY_COMMON", 5)
    with opened(tmp_path) as reader:
        assert reader.frequencies(["zebra", "lion"]) == [min(9, 5), min(4, 5)]


def test_what_is_deleted_is_not_counted(tmp_path: Path, write: Write) -> None:
    write({"a.md": ["zebra"], "b.md": ["zebra", "zebra again"]})
    write({"b.md": None})
    with opened(tmp_path) as reader:
        assert reader.frequencies(["zebra", "again"]) == [1, 0]
        assert reader.n_chunks() == 1


# How long a file is.


def test_chunks_of_given_files_are_counted(tmp_path: Path, write: Write) -> None:
    files = {"a.md": ["one"], "b/c.md": ["one", "two", "three"], "empty.md": [], "other.md": ["x"]}
    write(files)
    with opened(tmp_path) as reader:
        asked = ["a.md", "b/c.md", "empty.md", "absent.md", "c.md", "b", "", "A.md", "b/%", "?.md"]
        assert reader.n_chunks_of(asked) == {"a.md": 1, "b/c.md": 3}
        assert reader.n_chunks_of([]) == {}
        assert reader.n_chunks_of({"a.md", "other.md"}) == {"a.md": 1, "other.md": 1}
        assert reader.n_chunks_of(files) == {
            path: len(reader.chunks_of(path)) for path, texts in files.items() if texts
        }
        assert reader.n_chunks() == sum(map(len, files.values()))


def test_file_names_with_marks_of_their_own_are_found(tmp_path: Path, write: Write) -> None:
    names = ['a"b.md', "it's.md", "käse 斑马.md", "a,b[1].md", "back\\slash.md", "new\nline.md"]
    write({name: ["one", "two"] for name in names})
    with opened(tmp_path) as reader:
        assert reader.n_chunks_of(names) == dict.fromkeys(names, 2)


def test_more_files_than_a_statement_takes_parameters(tmp_path: Path, write: Write) -> None:
    write({"a.md": ["one"]})
    with opened(tmp_path) as reader:
        assert reader.n_chunks_of(["a.md", *(f"{i}.md" for i in range(50_000))]) == {"a.md": 1}


# How alike all is.


def index_of(matrix: np.ndarray) -> VectorIndex:
    n = len(matrix)
    return VectorIndex(VectorRows(np.arange(n), np.arange(n), matrix.astype(np.float32)))


def unit(rows: np.ndarray) -> np.ndarray:
    return (rows / np.linalg.norm(rows, axis=-1, keepdims=True)).astype(np.float32)


def expected_spread(matrix: np.ndarray) -> float:
    """Standard deviation over all pairs, one by one."""
    wide = matrix.astype(np.float64)
    pairs = [wide[i] @ wide[j] for j in range(len(wide)) for i in range(j)]
    return float(np.std(pairs))


def test_less_than_two_vectors_have_no_likeness() -> None:
    assert index_of(np.zeros((0, 0))).spread == (0.0, 0)
    assert index_of(np.eye(1, 4)).spread == (0.0, 0)


def test_two_vectors_are_one_pair_that_does_not_spread() -> None:
    assert index_of(np.eye(2, 4)).spread == (0.0, 2 * 1 / 2)


@pytest.mark.parametrize("n", [3, 17, SAMPLED])
def test_the_spread_is_that_of_all_pairs(n: int) -> None:
    matrix = unit(np.random.default_rng(n).normal(size=(n, 8)))
    spread, n_pairs = index_of(matrix).spread
    assert n_pairs == n * (n - 1) / 2
    assert spread == pytest.approx(expected_spread(matrix), abs=5e-5 + 1e-6)  # four places


def test_copies_do_not_spread() -> None:
    assert index_of(np.tile(np.eye(1, 8), (30, 1))).spread == (0.0, 30 * 29 / 2)


def test_of_many_vectors_an_even_sample_is_taken() -> None:
    n = 3 * SAMPLED
    matrix = unit(np.random.default_rng(5).normal(size=(n, 8)))
    spread, n_pairs = index_of(matrix).spread
    assert n_pairs == SAMPLED * (SAMPLED - 1) / 2
    chosen = [i * (n - 1) // (SAMPLED - 1) for i in range(SAMPLED)]
    assert spread == pytest.approx(expected_spread(matrix[chosen]), abs=5e-5 + 1e-6)


def test_an_index_without_vectors_has_no_likeness(tmp_path: Path, write: Write) -> None:
    write({"a.md": ["one", "two"]}, vectors=False)
    with opened(tmp_path) as reader:
        assert reader.likeness_spread() == (0.0, 0)


@pytest.mark.parametrize("derived", [True, False], ids=["from vectors.bin", "from the database"])
def test_every_way_to_an_index_gives_it_the_same_likeness(
    tmp_path: Path, write: Write, derived: bool
) -> None:
    """Over the sample, too, whose rows must stand in an order that does not tell what came first.

    SPEC: an incremental run leaves what a full one does.
    """
    n = SAMPLED + 150
    files = {f"{i:03}.md": [f"text number {i}", f"more of {i}"] for i in range(n // 2)}
    full, steps = tmp_path / "full", tmp_path / "steps"
    for root in (full, steps):
        root.mkdir()
    write(files, root=full, derived=derived)
    names = sorted(files, reverse=True)
    write({"gone.md": ["a text", "that goes"], names[7]: ["an old text"]}, root=steps)
    write({name: files[name] for name in names[:100]}, root=steps, derived=derived)
    write({"gone.md": None, **{name: files[name] for name in names[100:]}}, root=steps)
    with opened(full) as one, opened(steps) as other:
        assert one.n_chunks() == other.n_chunks() == n
        assert one.likeness_spread() == other.likeness_spread()
        assert one.likeness_spread()[1] == SAMPLED * (SAMPLED - 1) / 2

from __future__ import annotations

from ragx.algo.packing import Candidate, Run, join_texts, pack, trial_order
from ragx.types import Chunk


def chunk(number: int, path: str = "a", ordinal: int = 0, text: str = "") -> Chunk:
    return Chunk(number, path, ordinal, 0, 0, 1, 1, text or f"text {number}")


def candidate(number: int, path: str, score: float, ordinal: int = 0, text: str = "") -> Candidate:
    return Candidate(chunk(number, path, ordinal, text), score, score)


def cost_of(**tokens: int) -> object:
    """Tokens of a run by the numbers of its chunks: `cost_of(c1=10)`."""

    def cost(run: Run) -> int:
        return sum(tokens.get(f"c{item.chunk.chunk_id}", 1) for item in run)

    return cost


def numbers(runs: tuple[Run, ...]) -> list[list[int]]:
    return [[item.chunk.chunk_id for item in run] for run in runs]


def test_trial_order_by_formula() -> None:
    found = [
        Candidate(chunk(1, "a", 0), 0.9, 1.0),
        Candidate(chunk(2, "a", 5), 0.8, 1.0),
        Candidate(chunk(3, "b", 0), 0.6, 0.5),
        Candidate(chunk(4, "c", 0), -0.2, -0.2),
    ]
    ordered = trial_order(found, further=0.5)
    # a's first by its file: 1.0; b's by its file: 0.5; a's second: 0.8 * 0.5; c's: below 0.
    assert [item.chunk.chunk_id for item in ordered] == [1, 3, 2, 4]
    # 0.8 * 0.625 = 0.5 is a tie by path.
    tied = trial_order(found, further=0.625)
    assert [item.chunk.chunk_id for item in tied] == [1, 2, 3, 4]
    assert trial_order([]) == []


def test_what_does_not_fit_makes_way() -> None:
    found = [candidate(n, path, 1 / n) for n, path in enumerate("abcd", start=1)]
    packed = pack(
        found, cost_of(c1=6, c2=60, c3=5, c4=5), budget=12, most=9, joinable=lambda _: True
    )
    assert numbers(packed.runs) == [[1], [3]]
    assert [(left.candidate.chunk.chunk_id, left.why) for left in packed.left] == [
        (2, "budget"),
        (4, "budget"),
    ]


def test_neighbours_join_from_both_sides_and_count_once() -> None:
    found = [
        candidate(1, "a", 0.5, 1),
        candidate(2, "a", 0.9, 3),
        candidate(3, "a", 0.4, 2),
        candidate(4, "b", 0.7, 3),
    ]
    packed = pack(found, cost_of(), budget=99, most=2, joinable=lambda _: True)
    assert numbers(packed.runs) == [[1, 3, 2], [4]]
    apart = pack(found, cost_of(), budget=99, most=9, joinable=lambda _: False)
    assert numbers(apart.runs) == [[2], [4], [1], [3]]


def test_repeats_are_left_out_while_the_first_is_there() -> None:
    found = [
        candidate(1, "a", 0.9, text="the same"),
        candidate(2, "b", 0.8, text="the same"),
        candidate(3, "c", 0.7, text="another"),
    ]
    packed = pack(found, cost_of(c1=5, c2=5, c3=5), budget=99, most=9, joinable=lambda _: True)
    assert [(left.candidate.chunk.chunk_id, left.why) for left in packed.left] == [(2, "repeat")]
    # The first does not fit, so that the second says something new.
    packed = pack(found, cost_of(c1=50, c2=5, c3=5), budget=20, most=9, joinable=lambda _: True)
    assert numbers(packed.runs) == [[2], [3]]


def stretch(ordinal: int, start: int, text: str, line: int, encoding: str = "utf-8") -> Chunk:
    end_line = line + text.count("\n")
    end = start + len(text.encode(encoding))
    return Chunk(ordinal, "a", ordinal, start, end, line, end_line, text)


def test_joined_texts() -> None:
    one = stretch(0, 0, "one\ntwo", 1)
    assert join_texts([one], "utf-8") == "one\ntwo"
    assert join_texts([one, stretch(1, 9, "four", 4)], "utf-8") == "one\ntwo\n\nfour"
    assert join_texts([one, stretch(1, 7, "more", 2)], "utf-8") == "one\ntwomore"
    assert join_texts([one, stretch(1, 4, "two\nmore", 2)], "utf-8") == "one\ntwo\nmore"
    wide = "\u00e9\u00e9x"
    both = [stretch(0, 0, f"a{wide}", 1), stretch(1, 1, f"{wide}b", 1)]
    assert join_texts(both, "utf-8") == f"a{wide}b"
    windows = [stretch(0, 0, "one\r\n", 1), stretch(1, 3, "\r\ntwo", 1)]
    assert join_texts(windows, "utf-8") == "one\r\ntwo"
    sixteen = [
        stretch(0, 0, "one", 1, "utf-16-le"),
        stretch(1, 8, "two", 2, "utf-16-le"),
    ]
    assert join_texts(sixteen, "utf-16-le") == "one\ntwo"


def test_what_cannot_be_joined() -> None:
    one = stretch(0, 0, "one\ntwo", 1)
    assert join_texts([one, stretch(2, 9, "four", 4)], "utf-8") is None  # one is missing
    assert join_texts([one, stretch(1, 11, "four", 4)], "utf-8") is None  # more than line ends
    assert join_texts([one, stretch(1, 4, "tow\nmore", 2)], "utf-8") is None  # no overlap
    assert join_texts([one, stretch(1, 4, "two", 2)], "utf-8") == "one\ntwo"  # inside the first
    # Two bytes for one line end: a carriage return with it, or a blank before it.
    windows = [stretch(0, 0, "one\r\ntwo", 1), stretch(1, 10, "four", 3)]
    assert join_texts(windows, "utf-8") is None

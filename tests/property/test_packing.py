"""Packs hold exact slices, fit their budget, and lose nothing without saying so."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from ragx.algo.chunking.base import ChunkOptions
from ragx.algo.hidden import hidden_kinds, one_visible_line, plain_form, visible
from ragx.algo.packing import Candidate, Run, join_texts, pack, trial_order
from ragx.indexing.prepare import Preparer
from ragx.types import Chunk

PIECES = st.sampled_from(
    [
        *[
            "\n",
            "\r\n",
            "\n\n",
            "\r\n\r\n",
            " \n",
            "\t\n",
            "\x0c",
            "\x0b\n",
            "\u2028",
            "\x85",
        ],
        *["# Head\n", "# Head\r\n", "## Sub\r\n", "- item\n", "```\n", "def f():\n", "    x = 1\n"],
        *[
            "words of a line ",
            "more words of it.\r\n",
            "and the end.\n",
            "\u6587\u5b57 ",
            "caf\u00e9 ",
        ],
    ]
)
TEXTS = st.lists(PIECES, max_size=60).map("".join)
ENCODINGS = st.sampled_from(["utf-8", "utf-8-sig", "utf-16"])


@settings(max_examples=1000, deadline=None)
@given(
    text=TEXTS,
    encoding=ENCODINGS,
    path=st.sampled_from(["a.md", "a.py", "a.txt"]),
    size=st.integers(4, 40),
    overlap=st.sampled_from([0.0, 0.15]),
)
@example("words\r\nof a \nline", "utf-8", "a.txt", 4, 0.0)
@example("# Head\r\n \n# Head\r\n    x = 1\n", "utf-8", "a.md", 4, 0.0)
def test_joined_chunks_are_the_files_own_bytes(
    text: str, encoding: str, path: str, size: int, overlap: float
) -> None:
    raw = text.encode(encoding)
    options = ChunkOptions(size_tokens=size, overlap=overlap, max_chunk_chars=2000)
    prepared = Preparer(options, None).prepare(path, raw)
    chunks = prepared.chunks
    for first in range(len(chunks)):
        for last in range(first, len(chunks)):
            joined = join_texts(chunks[first : last + 1], prepared.encoding)
            if joined is None:
                break
            piece = raw[chunks[first].byte_start : chunks[last].byte_end]
            assert joined == piece.decode(prepared.encoding)


def chunk(number: int, path: str, ordinal: int, text: str) -> Chunk:
    start = ordinal * 100
    return Chunk(number, path, ordinal, start, start + len(text), 1, 1, text)


CANDIDATES = st.lists(
    st.tuples(
        st.sampled_from("abc"),
        st.integers(0, 9),
        st.floats(-1, 3, allow_nan=False),
        st.integers(1, 40),
    ),
    max_size=25,
    unique_by=lambda item: item[:2],
)


@settings(max_examples=300, deadline=None)
@given(CANDIDATES, st.integers(0, 200), st.integers(1, 8), st.booleans())
def test_a_pack_fits_and_everything_is_in_it_or_left(
    rows: list[tuple[str, int, float, int]], budget: int, most: int, join: bool
) -> None:
    found = [
        Candidate(chunk(number, path, ordinal, f"{number} " * length), score, score)
        for number, (path, ordinal, score, length) in enumerate(rows)
    ]

    def cost(run: Run) -> int:
        return 3 + sum(len(item.chunk.text.split()) for item in run)

    ordered = trial_order(found)
    assert sorted(item.chunk.chunk_id for item in ordered) == list(range(len(rows)))
    packed = pack(ordered, cost, budget=budget, most=most, joinable=lambda _: join)
    assert sum(cost(run) for run in packed.runs) <= budget
    assert len(packed.runs) <= most
    kept = [item for run in packed.runs for item in run]
    left = [item.candidate for item in packed.left]
    assert sorted(item.chunk.chunk_id for item in (*kept, *left)) == list(range(len(rows)))
    scores = [max(item.score for item in run) for run in packed.runs]
    assert scores == sorted(scores, reverse=True)
    for run in packed.runs:
        assert len({item.chunk.path for item in run}) == 1
        assert [item.chunk.ordinal - run[0].chunk.ordinal for item in run] == list(range(len(run)))
    if packed.left and all(item.why == "budget" for item in packed.left):
        # What was too long for what was left then is too long for what is left now, or joins.
        rest = budget - sum(cost(run) for run in packed.runs)
        assert join or all(cost((item.candidate,)) > rest for item in packed.left)
    assert pack(ordered, cost, budget=budget, most=most, joinable=lambda _: join) == packed


@given(st.text())
def test_shown_text_holds_nothing_that_commands(text: str) -> None:
    shown, line = visible(text), one_visible_line(text)
    assert "\r" not in shown
    assert not {"bidi", "control", "tags"} & {*hidden_kinds(shown)}
    assert "\n" not in line
    assert not {"bidi", "control", "tags"} & {*hidden_kinds(line)}
    shown.encode()
    line.encode()
    plain_form(text)

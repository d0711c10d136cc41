"""The first results do not depend on how many are asked for."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from ragx.algo.chunking.base import ChunkOptions
from ragx.algo.fold import STRETCH, fold
from ragx.algo.ordering import rank_hits
from ragx.indexing.build import BuildOptions, build, expected_manifest
from ragx.indexing.scan import ScanOptions
from ragx.providers.fakes import HashEmbedder
from ragx.query.pipeline import QueryOptions, QueryRequest, run_query
from ragx.query.spread import SpreadOptions
from ragx.store.base import LinkOptions
from ragx.store.sqlite import SqliteReader, SqliteWriter
from ragx.types import FileHit, Hit

EMBEDDER = HashEmbedder()
TOPS = (5, 10, 20)
MOST = 50
MODES = ("hybrid", "lexical", "vector")

Entries = list[tuple[str, float]]
Ask = Callable[..., Entries]

WORDS = (
    "river bridge winter summer paper copper silver engine violin garden castle letter market"
    " harbour forest window retry parser config user session token"
).split()


def small_files(n: int, *, seed: int = 1) -> dict[str, str]:
    """Notes that name each other and modules that import each other, each of one or two chunks."""
    chance = random.Random(seed)
    files = {}
    names = [f"{one.title()} {other.title()}" for one in WORDS[:8] for other in WORDS[8:16]]
    for i in range(n):
        words = " ".join(chance.choices(WORDS, k=14))
        if i % 3:
            near = chance.choice(names[:n])
            files[f"notes/{i:02}.md"] = f"# {names[i]}\n\nAbout {words}, and of {near} too.\n"
        else:
            one, other = chance.sample(WORDS, 2)
            files[f"src/{one}_{i:02}.py"] = (
                f"def {one}_{other}(argument):\n    # {words}\n    return argument\n\n\n"
                f"def {other}_all(argument):\n    return {one}_{other}(argument)\n"
            )
    return files


def long_files(n: int) -> dict[str, str]:
    """Few files of many chunks: more than a shortlist holds."""
    chance = random.Random(3)
    return {
        f"long/{i:02}.md": "".join(
            f"## Part {part}\n\n{' '.join(chance.choices(WORDS, k=14))} {i} {part}\n\n"
            for part in range(12)
        )
        for i in range(n)
    }


def indexed(root: Path, files: Mapping[str, str]) -> Ask:
    for path, text in files.items():
        full = root / path
        full.parent.mkdir(parents=True, exist_ok=True)
        full.write_text(text)
    chunking = ChunkOptions(size_tokens=40)
    manifest = expected_manifest(
        fingerprint=EMBEDDER.fingerprint,
        provider="hash",
        model="",
        mode="",
        chunking=chunking,
        linking=LinkOptions(),
        part_tokens=256,
    )
    with closing(SqliteWriter(root)) as writer:
        build(root, writer, HashEmbedder(), BuildOptions(ScanOptions(), chunking), manifest)
        writer.write_derived()

    def ask(text: str, top: int, **request: object) -> Entries:
        options = request.pop("options", QueryOptions())
        with closing(SqliteReader(root)) as reader:
            asked = QueryRequest(text, top=top, texts=False, **request)  # type: ignore[arg-type]
            answer = run_query(root, reader, asked, options, embed=EMBEDDER.embed_query)  # type: ignore[arg-type]
        return [(entry.path, round(entry.score, 6)) for entry in answer.results]

    return ask


@pytest.fixture(scope="module", params=[30, 36, 60], ids="{} files".format)
def small(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Ask:
    return indexed(tmp_path_factory.mktemp("small"), small_files(request.param))


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Ask:
    return indexed(tmp_path_factory.mktemp("long"), long_files(40))


QUESTIONS = (
    *(" ".join(random.Random(seed).sample(WORDS, k=1 + seed % 4)) for seed in range(10)),
    '"silver engine" violin',
    "retry -paper",
    "where is retry_all defined",
    "River Violin",
)


# The graph without likeness, which fills lists that are thin.
REFERENCES = QueryOptions(spread=SpreadOptions(weights={"adjacent": 0.0, "similar": 0.0}))


def check(ask: Ask, questions: Sequence[str], **request: object) -> None:
    """Entries of each answer are the first of those of the longest."""
    for text in questions:
        most = ask(text, MOST, **request)
        for top in TOPS:
            assert ask(text, top, **request) == most[:top], (text, top)


@pytest.mark.parametrize("mode", MODES)
def test_of_small_files_without_the_graph(small: Ask, mode: str) -> None:
    check(small, QUESTIONS, mode=mode, graph=False)


@pytest.mark.parametrize("mode", MODES)
def test_of_small_files_with_references(small: Ask, mode: str) -> None:
    check(small, QUESTIONS, mode=mode, options=REFERENCES)


@pytest.mark.parametrize("mode", MODES)
def test_of_small_files_by_reciprocal_ranks(small: Ask, mode: str) -> None:
    check(small, QUESTIONS, mode=mode, options=QueryOptions(method="rrf"), graph=False)


@pytest.mark.parametrize("graph", [True, False], ids=["references", "no graph"])
@pytest.mark.parametrize("mode", MODES)
def test_of_long_files(long: Ask, mode: str, graph: bool) -> None:
    """More chunks match than a shortlist holds, and the longest answer looks deeper."""
    # Operators need the words' side, see below.
    plain = [text for text in QUESTIONS if not {'"', "-"} & set(text)]
    check(
        long, plain if mode == "vector" else QUESTIONS, mode=mode, options=REFERENCES, graph=graph
    )


@pytest.mark.parametrize("mode", ["lexical", "hybrid", "vector"])
def test_of_small_files_with_likeness(small: Ask, mode: str) -> None:
    check(small, QUESTIONS, mode=mode)


def test_likeness_fills_lists_by_what_is_there_and_not_by_what_is_wanted(tmp_path: Path) -> None:
    files = {f"{i:02}.md": f"word{i} filler{i}\n" for i in range(18)}
    files["a.md"] = "zebra lion violin garden castle letter market harbour\n"
    files["b.md"] = "forest lion violin garden castle letter market harbour\n"
    ask = indexed(tmp_path, files)
    assert ask("zebra lion violin garden", 20) == ask("zebra lion violin garden", 21)


def test_by_vectors_a_phrase_is_found_however_many_are_asked_for(tmp_path: Path) -> None:
    files = {f"{i:03}.md": f"silver violin engine {i}\n" for i in range(120)}
    files["phrase.md"] = "silver engine " + " ".join(f"x{i}" for i in range(30)) + "\n"
    ask = indexed(tmp_path, files)
    text = '"silver engine" violin'
    assert ask(text, MOST, mode="vector", graph=False)[0][0] == "phrase.md"
    assert ask(text, 20, mode="vector", graph=False)[0][0] == "phrase.md"


def test_by_vectors_a_word_to_leave_out_moves_no_floor(tmp_path: Path) -> None:
    near = {f"{i:03}.md": f"zebra {'lion' if i % 2 else 'horse'} {'x' * i}\n" for i in range(100)}
    far = {f"far{i:02}.md": f"zebra among others {i}, far away from all\n" for i in range(60)}
    ask = indexed(tmp_path, near | far)
    asked = {"mode": "vector", "graph": False}
    assert ask("zebra horse -lion", 20, **asked) == ask("zebra horse -lion", MOST, **asked)[:20]


# By hand.


def hit(path: str, score: float, ordinal: int = 0) -> Hit:
    return Hit(zlib.crc32(f"{path}:{ordinal}".encode()), path, ordinal, score, {"lexical": score})


def by_path(entries: Sequence[FileHit]) -> dict[str, FileHit]:
    return {entry.path: entry for entry in entries}


@pytest.mark.parametrize("n", [STRETCH - 1, STRETCH, STRETCH + 1, STRETCH + 30])
def test_from_the_stretch_on_entries_do_not_depend_on_how_many_are_wanted(n: int) -> None:
    """Each file has a second hit, ten places below its first."""
    ranking = rank_hits(
        hit(f"f{at:03}", 1.0 - (at + 10 * ordinal) / 128 - ordinal / 512, ordinal)
        for at in range(n)
        for ordinal in (0, 1)
    )
    most = fold(ranking, top=STRETCH + 50, fold_weight=0.25)
    assert len(most) == n
    for top in (STRETCH, STRETCH + 1, STRETCH + 7):
        entries = by_path(fold(ranking, top=top, fold_weight=0.25))
        assert len(entries) == min(top, n)
        for entry in most:
            assert entries.get(entry.path, entry) == entry


def test_further_hits_past_the_stretch_do_not_count() -> None:
    first = [hit(f"f{at:03}", 1.0) for at in range(STRETCH)]
    second = hit("f000", 0.5, 1)
    near = by_path(fold([*first, second, hit("last", 0.25)], top=99, fold_weight=0.5))
    far = by_path(fold([*first, hit("last", 0.75), second], top=99, fold_weight=0.5))
    assert near["f000"].score == 1.0 + 0.5 * 0.5
    assert far["f000"].score == 1.0


def test_a_further_hit_below_0_does_not_count_against_a_file() -> None:
    (entry,) = fold([hit("a", 0.5), hit("a", -0.25, 1)], top=1, fold_weight=1.0)
    assert entry.score == 0.5
    assert entry.terms == {"best": 0.5, "further": 0.0}

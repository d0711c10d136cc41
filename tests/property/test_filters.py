"""Filters against brute force: what an unfiltered search finds, less what is not allowed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragx.algo.chunking.base import ChunkOptions
from ragx.algo.lexical import parse_query
from ragx.indexing.build import BuildOptions, build, expected_manifest
from ragx.indexing.scan import ScanOptions
from ragx.providers.fakes import HashEmbedder
from ragx.query.filters import Filters, parse_filters
from ragx.query.pipeline import Answer, QueryOptions, QueryRequest, run_query
from ragx.query.seeds import COLUMN_WEIGHTS, find_seeds, lexical_match
from ragx.store.base import LinkOptions
from ragx.store.sqlite import SqliteReader, SqliteWriter

EMBEDDER = HashEmbedder()
ALL = 10_000
WORDS = (
    "river bridge winter summer paper copper silver engine violin garden castle letter market"
    " harbour forest window retry parser config user session token"
).split()


def corpus() -> dict[str, str]:
    """Notes of several parts that link each other, modules that import each other, and copies."""
    chance = random.Random(7)
    files = {}
    for i in range(40):
        words = [" ".join(chance.choices(WORDS, k=14)) for _ in range(3)]
        if i % 4 == 0:
            one, other = chance.sample(WORDS, 2)
            files[f"src/{one}_{i:02}.py"] = (
                f"def {one}_{other}(argument):\n    # {words[0]}\n    return argument\n"
            )
        else:
            near = chance.choice(list(files))
            files[f"notes/2024-{1 + i % 12:02}-{1 + i % 28:02}-n{i:02}.md"] = (
                f"---\ntags: [t{i % 5}]\n---\n# {words[0][:20]}\n\nSee [that](../{near}).\n\n"
                + "\n\n".join(f"## Part {part}\n\n{text}" for part, text in enumerate(words))
            )
    for i in range(5):
        files[f"copies/c{i}.md"] = "# Copy\n\nThe harbour of silver and copper.\n"
    return files


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("filtered")
    for path, text in corpus().items():
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
    return root


@pytest.fixture(scope="module")
def reader(root: Path) -> Iterator[SqliteReader]:
    with closing(SqliteReader(root)) as reader:
        yield reader


def ask(root: Path, reader: SqliteReader, request: QueryRequest) -> Answer:
    return run_query(root, reader, request, QueryOptions(), embed=EMBEDDER.embed_query)


PATHS = sorted(corpus())
QUERIES = st.builds(
    lambda words, phrase, left_out: (
        " ".join(words)
        + (f' "{phrase[0]} {phrase[1]}"' if phrase else "")
        + (f" -{left_out}" if left_out else "")
    ),
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=4),
    st.one_of(st.none(), st.tuples(st.sampled_from(WORDS), st.sampled_from(WORDS))),
    st.one_of(st.none(), st.sampled_from(WORDS)),
)
ALLOWED = st.sets(st.sampled_from(PATHS), min_size=1)
# The corpus does not change between examples.
STEADY = settings(max_examples=60, deadline=None)


@STEADY
@given(QUERIES, ALLOWED, st.integers(1, 30))
def test_both_sides_find_the_best_of_the_allowed_chunks_with_unchanged_scores(
    reader: SqliteReader, text: str, allowed: set[str], depth: int
) -> None:
    query, vector = parse_query(text), EMBEDDER.embed_query(text)
    match = lexical_match(reader, query)
    paths = reader.chunk_paths()

    def best(scored: list[tuple[int, float]]) -> list[tuple[int, float]]:
        return [(key, score) for key, score in scored if paths[key] in allowed][:depth]

    with closing(reader.within(allowed)) as scoped:
        assert scoped.vector(vector, depth=depth) == best(reader.vector(vector, depth=ALL))
        assert scoped.lexical(
            match, depth=depth, weights=COLUMN_WEIGHTS, exclude=query.exclude
        ) == best(reader.lexical(match, depth=ALL, weights=COLUMN_WEIGHTS, exclude=query.exclude))
        assert scoped.scope is not None
        assert set(scoped.scope.tolist()) == {key for key, path in paths.items() if path in allowed}
        seeds = find_seeds(scoped, query, match, vector, depth=depth, definitions=True)
    whole = find_seeds(reader, query, match, vector, depth=ALL, definitions=True)
    assert {paths[key] for key in seeds.candidates} <= allowed
    assert seeds.cosines.items() <= whole.cosines.items()
    assert seeds.bm25.items() <= whole.bm25.items()
    assert {key for key in whole.named if paths[key] in allowed} == set(seeds.named)


@STEADY
@given(QUERIES, ALLOWED, st.sampled_from(["hybrid", "vector", "lexical"]), st.integers(1, 60))
def test_an_answer_holds_nothing_else_and_leaves_out_nothing_that_is_found_at_all(
    root: Path, reader: SqliteReader, text: str, allowed: set[str], mode: str, top: int
) -> None:
    asked = QueryRequest(text, top=top, mode=mode, texts=False, graph=top % 2 == 0)  # type: ignore[arg-type]
    answer = ask(root, reader, replace(asked, filters=parse_filters(files=allowed)))
    named = {entry.path for entry in answer.results}
    named |= {path for entry in answer.results for path in entry.also_in}
    assert named <= allowed
    hops = [hop for entry in answer.results for part in entry.chunks for hop in part.hit.hops]
    paths = reader.chunk_paths()
    assert {paths[one] for hop in hops for one in (hop.source, hop.target)} <= allowed
    if top == 60 and mode == "lexical":
        everything = ask(root, reader, replace(asked, graph=False))
        found = {entry.path for entry in everything.results} & allowed
        assert found <= named


@STEADY
@given(QUERIES, st.sampled_from(["", "recent", "oldest"]), st.integers(1, 60))
def test_a_filter_that_keeps_everything_changes_nothing(
    root: Path, reader: SqliteReader, text: str, temporal: str, top: int
) -> None:
    asked = QueryRequest(text, top=top, texts=False, temporal=temporal)  # type: ignore[arg-type]
    plain = ask(root, reader, asked)
    keeps_all = parse_filters(paths=["*"], kinds=["docs", "code", "data"])
    assert ask(root, reader, replace(asked, filters=keeps_all)) == plain
    # The same by the long way, where the scope is every chunk.
    with closing(reader.within(PATHS)) as scoped:
        assert ask(root, scoped, asked) == plain  # type: ignore[arg-type]


@STEADY
@given(QUERIES, st.sampled_from(["recent", "oldest"]))
def test_a_date_takes_half_of_a_score_at_most(
    root: Path, reader: SqliteReader, text: str, temporal: str
) -> None:
    asked = QueryRequest(text, top=60, texts=False, temporal=temporal)  # type: ignore[arg-type]
    for entry in ask(root, reader, asked).results:
        assert entry.date
        assert entry.date_source == ("mtime" if entry.path[:5] != "notes" else "name")
        for part in entry.chunks:
            terms = dict(part.hit.terms)
            taken = -terms.pop("temporal", 0.0)
            phrases = terms.pop("phrase", 0.0)
            own = sum(terms.values())
            assert part.hit.score == pytest.approx(own + phrases - taken)
            assert 0 <= taken <= max(0.0, own) / 2 + 1e-9


@pytest.mark.parametrize("mode", ["hybrid", "vector"])
def test_a_filter_that_leaves_two_chunks_returns_them(
    root: Path, reader: SqliteReader, mode: str
) -> None:
    filters = Filters(files=("copies/c0.md", "src/" + Path(PATHS[-1]).name))
    for text in ("violin", "no such word", '"harbour of" silver'):
        answer = ask(root, reader, QueryRequest(text, mode=mode, texts=False, filters=filters))  # type: ignore[arg-type]
        assert {entry.path for entry in answer.results} == set(filters.files)

"""The first results do not depend on how many are asked for."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

import pytest

from ragx.algo.chunking.base import ChunkOptions
from ragx.indexing.build import BuildOptions, build, expected_manifest
from ragx.indexing.scan import ScanOptions
from ragx.providers.fakes import HashEmbedder
from ragx.query.pipeline import QueryOptions, QueryRequest, run_query
from ragx.store.base import LinkOptions
from ragx.store.sqlite import SqliteReader, SqliteWriter

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


@pytest.mark.parametrize("graph", [True, False], ids=["graph", "no graph"])
@pytest.mark.parametrize("mode", MODES)
def test_of_small_files(small: Ask, mode: str, graph: bool) -> None:
    for text in QUESTIONS:
        most = small(text, MOST, mode=mode, graph=graph)
        for top in TOPS:
            assert small(text, top, mode=mode, graph=graph) == most[:top], (text, top)


@pytest.mark.parametrize("graph", [True, False], ids=["graph", "no graph"])
@pytest.mark.parametrize("mode", MODES)
def test_of_long_files(long: Ask, mode: str, graph: bool) -> None:
    for text in QUESTIONS:
        most = long(text, MOST, mode=mode, graph=graph)
        for top in TOPS:
            assert long(text, top, mode=mode, graph=graph) == most[:top], (text, top)


@pytest.mark.parametrize("mode", MODES)
def test_by_reciprocal_ranks(small: Ask, mode: str) -> None:
    options = QueryOptions(method="rrf")
    for text in QUESTIONS:
        most = small(text, MOST, mode=mode, options=options, graph=False)
        for top in TOPS:
            found = small(text, top, mode=mode, options=options, graph=False)
            assert found == most[:top], (text, top)

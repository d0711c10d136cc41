"""The stages of a query over hand-made readers and over a small real index."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from ragx.algo import fusion
from ragx.algo.chunking.base import ChunkOptions
from ragx.algo.lexical import parse_query
from ragx.errors import ProviderUnavailable, UsageError
from ragx.indexing.build import BuildOptions, build, expected_manifest
from ragx.indexing.scan import ScanOptions
from ragx.providers.fakes import HashEmbedder
from ragx.query.pipeline import Answer, QueryOptions, QueryRequest, auto_weight, run_query
from ragx.query.seeds import find_seeds
from ragx.store.base import LinkOptions
from ragx.store.sqlite import SqliteReader, SqliteWriter

EMBEDDER = HashEmbedder()


class Library:
    """A corpus whose files are given as texts, indexed with vectors or without."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def index(self, files: dict[str, str | bytes], *, vectors: bool = True, size: int = 60) -> None:
        for path, text in files.items():
            full = self.root / path
            full.parent.mkdir(parents=True, exist_ok=True)
            full.write_bytes(text.encode() if isinstance(text, str) else text)
        embedder = HashEmbedder() if vectors else None
        chunking = ChunkOptions(size_tokens=size)
        manifest = expected_manifest(
            fingerprint=embedder.fingerprint if embedder else "none",
            provider="hash" if embedder else "none",
            model="",
            mode="",
            chunking=chunking,
            linking=LinkOptions(),
            part_tokens=256,
        )
        with closing(SqliteWriter(self.root)) as writer:
            build(self.root, writer, embedder, BuildOptions(ScanOptions(), chunking), manifest)
            writer.write_derived()

    def ask(self, text: str, *, vectors: bool = True, **request: object) -> Answer:
        options = request.pop("options", QueryOptions())
        with closing(SqliteReader(self.root)) as reader:
            return run_query(
                self.root,
                reader,
                QueryRequest(text, **request),  # type: ignore[arg-type]
                options,  # type: ignore[arg-type]
                embed=EMBEDDER.embed_query if vectors else None,
            )

    def paths(self, text: str, **request: object) -> list[str]:
        return [entry.path for entry in self.ask(text, **request).results]


@pytest.fixture
def library(tmp_path: Path) -> Library:
    return Library(tmp_path)


ANIMALS = {
    "zebra.md": "# Zebra\n\nThe zebra is striped and lives on the savanna.\n",
    "lion.md": "# Lion\n\nThe lion hunts the zebra on the savanna at night.\n",
    "fish.md": "# Fish\n\nThe trout swims in the river and likes cold water.\n",
    "code.py": "def count_stripes(zebra):\n    return len(zebra.stripes)\n",
}


# What can be asked.


@pytest.mark.parametrize("text", ["", " ", "\n\t", "\u00a0"])
@pytest.mark.parametrize("mode", ["hybrid", "vector", "lexical"])
def test_an_empty_question_is_refused(library: Library, text: str, mode: str) -> None:
    library.index(ANIMALS)
    with pytest.raises(UsageError) as caught:
        library.ask(text, mode=mode)
    assert caught.value.code == "empty_query"


@pytest.mark.parametrize(("size", "fits"), [(100_000, True), (100_001, False)])
def test_the_longest_question(library: Library, size: int, fits: bool) -> None:
    library.index(ANIMALS)
    text = ("zebra " * 20_000)[:size].ljust(size, "x")
    if fits:
        answer = library.ask(text, mode="hybrid")
        assert answer.results
        assert any("windows" in warning for warning in answer.warnings)
    else:
        with pytest.raises(UsageError) as caught:
            library.ask(text)
        assert caught.value.code == "query_too_long"
        assert "100000" in caught.value.message


def test_bytes_count_and_not_characters(library: Library) -> None:
    library.index(ANIMALS)
    with pytest.raises(UsageError):
        library.ask("é" * 50_001)
    library.ask("é" * 50_000, mode="lexical")


def test_an_index_without_vectors_answers_by_words(library: Library) -> None:
    library.index(ANIMALS, vectors=False)
    answer = library.ask("zebra", vectors=False)
    assert answer.stages["vector"] == "off"
    assert {entry.path for entry in answer.results} == {"zebra.md", "lion.md", "code.py"}
    with pytest.raises(UsageError) as caught:
        library.ask("zebra", vectors=False, mode="vector")
    assert "lexical" in caught.value.hint


def test_a_model_that_is_down_is_an_error_and_not_a_fallback(library: Library) -> None:
    library.index(ANIMALS)

    def down(_: str) -> np.ndarray:
        raise ProviderUnavailable("refused")

    with closing(SqliteReader(library.root)) as reader:
        with pytest.raises(ProviderUnavailable):
            run_query(library.root, reader, QueryRequest("zebra"), QueryOptions(), embed=down)
        request = QueryRequest("zebra", mode="lexical")
        answer = run_query(library.root, reader, request, QueryOptions(), embed=down)
    assert answer.results


def test_each_mode_uses_its_sides(library: Library) -> None:
    library.index(ANIMALS)
    stages = {
        mode: library.ask("zebra", mode=mode).stages for mode in ("hybrid", "vector", "lexical")
    }
    after = {"rules": "used", "graph": "used", "expansion": "off", "rerank": "off"}
    assert stages == {
        "hybrid": {"vector": "used", "lexical": "used", "fusion": "weighted", **after},
        "vector": {"vector": "used", "lexical": "off", "fusion": "off", **after},
        "lexical": {"vector": "off", "lexical": "used", "fusion": "off", **after},
    }
    assert library.ask("zebra", rules=False).stages == {**stages["hybrid"], "rules": "off"}
    assert library.ask("zebra", options=QueryOptions(method="rrf")).stages["fusion"] == "rrf"


# Scores.


@pytest.mark.parametrize("method", ["weighted", "rrf"])
@pytest.mark.parametrize("mode", ["hybrid", "vector", "lexical"])
def test_terms_add_up_to_the_score(library: Library, method: str, mode: str) -> None:
    library.index(ANIMALS)
    answer = library.ask(
        '"striped and lives" zebra savanna', mode=mode, options=QueryOptions(method=method)
    )
    assert answer.results
    for entry in answer.results:
        hits = [part.hit for part in entry.chunks]
        for hit in hits:
            assert hit.score == math.fsum(hit.terms.values())
        rest = (0.25 * hit.score for hit in hits[1:])
        assert entry.score == math.fsum([hits[0].score, *rest])


def test_weights_follow_the_kind_of_file() -> None:
    assert auto_weight("a.md") == auto_weight("a.json") == 0.45
    assert auto_weight("a.py") == 0.52


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0, "auto"])
def test_the_best_on_both_sides_scores_one_shared_by_the_weights(
    library: Library, share: float | str
) -> None:
    library.index(ANIMALS)
    text = "trout swims river cold water"
    answer = library.ask(text, options=QueryOptions(vector_weight=share), graph=False)  # type: ignore[arg-type]
    (best, *_) = answer.results
    assert best.path == "fish.md"
    with closing(SqliteReader(library.root)) as reader:
        vector = EMBEDDER.embed_query(text)
        seeds = find_seeds(reader, parse_query(text), parse_query(text).match, vector, depth=100)
        spread, n_pairs = reader.likeness_spread()
        n_chunks = reader.n_chunks()
    hit = best.chunks[0].hit
    assert hit.raw == {
        "cosine": max(seeds.cosines.values()),
        "bm25": max(seeds.bm25.values()),
    }
    # The words find fish.md alone, and by the vectors it is the first of four: they are believed
    # as far as its words are most of what four hold.
    trust = min(1.0, (1 / 4) / 0.3) ** 2
    weight = trust * 0.45 if share == "auto" else share
    floor, unit = min(seeds.cosines.values()), fusion.cosine_unit(spread, n_pairs)
    near = weight * (hit.raw["cosine"] - floor) / unit
    words = (1 - weight) * hit.raw["bm25"] / fusion.bm25_unit(n_chunks, hit.raw["bm25"])
    expected = {"vector": near / (near + words), "lexical": words / (near + words)}
    assert hit.terms == pytest.approx(expected)
    assert hit.score == pytest.approx(1.0)


def test_a_phrase_ranks_first_and_loses_nobody(library: Library) -> None:
    library.index(
        {
            "words.md": "savanna hunts lion zebra night the on at " * 8,
            "phrase.md": "something else, and hunts the zebra, and more " + "filler " * 40,
        }
    )
    assert library.paths("zebra lion savanna night", mode="lexical")[0] == "words.md"
    assert library.paths('"hunts the zebra" lion savanna', mode="lexical") == [
        "phrase.md",
        "words.md",
    ]
    assert library.paths('"hunts the zebra"', mode="lexical") == ["phrase.md"]


def test_a_word_to_leave_out_counts_on_both_sides(library: Library) -> None:
    library.index(ANIMALS)
    for mode in ("hybrid", "vector", "lexical"):
        found = library.paths("zebra -lion", mode=mode)
        assert "lion.md" not in found
        assert "zebra.md" in found


@pytest.mark.parametrize("mode", ["hybrid", "lexical"])
def test_only_words_to_leave_out_find_nothing(library: Library, mode: str) -> None:
    library.index(ANIMALS)
    assert library.paths("-zebra -lion", mode=mode) == []


def test_same_question_same_answer_in_every_order_of_indexing(tmp_path: Path) -> None:
    answers = []
    for order in (sorted(ANIMALS), sorted(ANIMALS, reverse=True)):
        root = tmp_path / "-".join(order)
        root.mkdir()
        library = Library(root)
        for path in order:
            library.index({path: ANIMALS[path]})
        answer = library.ask("zebra savanna")
        answers.append(
            [(e.path, e.score, [p.hit for p in e.chunks], e.also_in) for e in answer.results]
        )
    assert answers[0] == answers[1]


# How many.


@pytest.mark.parametrize("top", [1, 2, 3, 1000])
@pytest.mark.parametrize("mode", ["hybrid", "vector", "lexical"])
def test_top_files(library: Library, top: int, mode: str) -> None:
    library.index(ANIMALS)
    found = library.paths("zebra savanna", top=top, mode=mode)
    assert len(found) == len(set(found))
    assert len(found) == min(top, 4 if mode != "lexical" else 3)


@pytest.mark.parametrize("mode", ["hybrid", "vector", "lexical"])
def test_a_file_of_many_chunks_does_not_eat_the_others(library: Library, mode: str) -> None:
    """The shortlist may hold one file alone: then it must grow."""
    big = "".join(
        f"# Part {i}\n\nzebra zebra savanna number{i} {'zebra ' * 40}\n\n" for i in range(260)
    )
    others = {f"f{i:02}.md": f"One zebra, seen on day {i} by someone.\n" for i in range(12)}
    library.index({"big.md": big, **others})
    found = library.paths("zebra savanna", top=10, mode=mode)
    assert len(found) == 10
    assert "big.md" in found


def test_copies_are_one_result_and_k_are_still_returned(library: Library) -> None:
    """HOSTILE: Near-duplicates eat all slots: collapse with `also_in`, still return k."""
    licence = "Permission is hereby granted to the zebra, free of charge, to any person.\n"
    files = {f"copy/{i:03}.md": licence for i in range(150)}
    files |= {
        f"own/{i}.md": f"A zebra of its own kind, number {i}, says hello.\n" for i in range(12)
    }
    library.index(files)
    for mode in ("hybrid", "vector", "lexical"):
        answer = library.ask("zebra permission granted", top=10, mode=mode)
        paths = [entry.path for entry in answer.results]
        assert len(paths) == 10
        assert [path for path in paths if path.startswith("copy/")] == ["copy/000.md"]
        entry = answer.results[paths.index("copy/000.md")]
        assert set(entry.also_in) <= {f"copy/{i:03}.md" for i in range(1, 150)}
        assert len(entry.also_in) >= 20


def test_all_files_alike(library: Library) -> None:
    """HOSTILE: One file, two unrelated files, all files identical."""
    library.index({f"f{i}.md": "The very same zebra.\n" for i in range(5)})
    answer = library.ask("zebra")
    assert [entry.path for entry in answer.results] == ["f0.md"]
    assert answer.results[0].also_in == ("f1.md", "f2.md", "f3.md", "f4.md")


def test_a_text_repeated_in_one_file_counts_once(library: Library) -> None:
    library.index(
        {"a.md": "# Same\n\nzebra here\n\n" * 30 + "# Other\n\nanother zebra there\n"}, size=10
    )
    (entry,) = library.ask("zebra").results
    texts = [part.chunk.text.strip() for part in entry.chunks]
    assert len(texts) == len(set(texts))
    assert entry.also_in == ()


def test_ties_break_by_path_whatever_the_shortlist(library: Library) -> None:
    library.index({f"f{i:03}.md": f"zebra number{i:03}\n" for i in range(300)}, vectors=False)
    found = library.paths("zebra", vectors=False, mode="lexical", top=20)
    assert found == [f"f{i:03}.md" for i in range(20)]


def test_ties_break_by_path_within_the_shortlist(library: Library) -> None:
    library.index({f"f{i:03}.md": f"zebra number{i:03}\n" for i in range(60)}, vectors=False)
    found = library.paths("zebra", vectors=False, mode="lexical", top=20)
    assert found == [f"f{i:03}.md" for i in range(20)]


# Seeds.


def test_a_candidate_of_one_side_has_its_score_on_the_other(library: Library) -> None:
    library.index(ANIMALS)
    from ragx.algo.lexical import parse_query

    with closing(SqliteReader(library.root)) as reader:
        vector = EMBEDDER.embed_query("zebra savanna")
        seeds = find_seeds(
            reader, parse_query("zebra savanna"), '"zebra" OR "savanna"', vector, depth=1
        )
        assert len(seeds.vector_ranking) == len(seeds.lexical_ranking) == 1
        for chunk_id in seeds.candidates:
            assert chunk_id in seeds.cosines
        assert not seeds.exhausted
        every = find_seeds(
            reader, parse_query("zebra savanna"), '"zebra" OR "savanna"', vector, depth=99
        )
        assert every.exhausted
        for chunk_id in seeds.candidates:
            assert seeds.cosines[chunk_id] == every.cosines[chunk_id]
            assert seeds.bm25.get(chunk_id) == every.bm25.get(chunk_id)


def test_chunks_without_a_vector_are_named_and_found_by_words(library: Library) -> None:
    """SPEC 5: Chunks without a vector are named in `warnings` and found lexically."""
    library.index(ANIMALS)
    (library.root / "poison.md").write_text("A poisoned zebra quagga passage.\n")
    from ragx.errors import BadEmbedding

    embedder = HashEmbedder(fail=lambda t: BadEmbedding("no") if "poisoned" in t else None)
    chunking = ChunkOptions(size_tokens=60)
    manifest = expected_manifest(
        fingerprint=embedder.fingerprint,
        provider="hash",
        model="",
        mode="",
        chunking=chunking,
        linking=LinkOptions(),
        part_tokens=256,
    )
    with closing(SqliteWriter(library.root)) as writer:
        build(library.root, writer, embedder, BuildOptions(ScanOptions(), chunking), manifest)
        writer.write_derived()
    answer = library.ask("quagga")
    assert "poison.md" in [entry.path for entry in answer.results]
    assert any("poison.md" in warning for warning in answer.warnings)
    assert "poison.md" in library.paths("quagga", mode="lexical")
    assert library.ask("quagga", mode="lexical").warnings == ()


# Context lines.

LINES = "one\n\ntwo\nthree\n\n\nfour\n"


def test_context_is_read_from_disk_and_only_if_it_is_still_the_text(library: Library) -> None:
    library.index(
        {"a.md": "# A\n\nalpha zebra\n\n# B\n\nbeta quagga\n\n# C\n\ngamma lion\n"}, size=8
    )
    (entry,) = library.ask("quagga", before=2, after=2, mode="lexical").results
    (part,) = entry.chunks
    assert (part.chunk.line_start, part.chunk.line_end) == (5, 7)
    assert part.before is not None
    assert part.after is not None
    assert (part.before.line_start, part.before.text.split()) == (1, ["#", "A", "alpha", "zebra"])
    assert (part.after.line_end, part.after.text.split()) == (11, ["#", "C", "gamma", "lion"])
    assert entry.state == "current"

    (library.root / "a.md").write_text("# A\n\nsomething else\n")
    answer = library.ask("quagga", before=2, after=2, mode="lexical")
    (entry,) = answer.results
    assert entry.state == "changed"
    assert (entry.chunks[0].before, entry.chunks[0].after) == (None, None)
    assert any("a.md" in warning and "changed" in warning for warning in answer.warnings)

    (library.root / "a.md").unlink()
    answer = library.ask("quagga", before=2, after=2, mode="lexical")
    assert answer.results[0].state == "gone"
    assert any("gone" in warning for warning in answer.warnings)


def test_a_file_that_became_a_directory_is_not_guessed(library: Library) -> None:
    library.index({"a.md": "zebra\n"})
    (library.root / "a.md").unlink()
    (library.root / "a.md").mkdir()
    (entry,) = library.ask("zebra", before=2, after=2).results
    assert entry.state in ("changed", "gone")


def test_without_texts_no_file_is_read(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    library.index(ANIMALS)

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a file was read")

    monkeypatch.setattr("ragx.query.pipeline.read_current", refuse)
    assert library.ask("zebra", before=5, after=5, texts=False).results
    assert library.ask("zebra", before=0, after=0).results


# A reader that is not SQLite.


class Shelf:
    """The protocol by hand: any engine may stand behind it."""

    def __init__(self, cosines: dict[int, float], bm25: dict[int, float]) -> None:
        self.cosines, self.bm25 = cosines, bm25

    def lexical(self, expression: str, *, depth: int, weights: Sequence[float], exclude: str = ""):
        return sorted(self.bm25.items(), key=lambda item: (-item[1], item[0]))[:depth]

    def lexical_scores(self, expression: str, chunk_ids: Collection[int], *, weights):
        return {key: self.bm25[key] for key in chunk_ids if key in self.bm25}

    def matching(self, expression: str, chunk_ids: Collection[int]) -> set[int]:
        return set()

    def vector(self, query: np.ndarray, *, depth: int):
        return sorted(self.cosines.items(), key=lambda item: (-item[1], item[0]))[:depth]

    def vector_scores(self, query: np.ndarray, chunk_ids: Collection[int]):
        return {key: self.cosines[key] for key in chunk_ids if key in self.cosines}


def test_seeds_of_any_engine() -> None:
    from ragx.algo.lexical import parse_query

    shelf = Shelf({1: 0.9, 2: 0.8, 3: 0.1}, {3: 5.0, 4: 1.0, 2: 0.5})
    seeds = find_seeds(shelf, parse_query("x"), '"x"', np.ones(2, np.float32), depth=2)  # type: ignore[arg-type]
    assert seeds.vector_ranking == (1, 2)
    assert seeds.lexical_ranking == (3, 4)
    assert seeds.cosines == {1: 0.9, 2: 0.8, 3: 0.1}
    assert seeds.bm25 == {3: 5.0, 4: 1.0, 2: 0.5}
    assert not seeds.exhausted

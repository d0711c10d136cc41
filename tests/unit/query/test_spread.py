"""Heat in queries over small real indexes: what comes in, why, and at which score."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from ragx.algo import fusion
from ragx.algo.chunking.base import ChunkOptions
from ragx.algo.fold import fold
from ragx.algo.graph import EDGE_KINDS
from ragx.algo.heat import CAP, HeatOptions, propagate
from ragx.algo.lexical import parse_query
from ragx.algo.ordering import rank_hits
from ragx.indexing.build import BuildOptions, build, expected_manifest
from ragx.indexing.scan import ScanOptions
from ragx.providers.fakes import HashEmbedder
from ragx.query.pipeline import Answer, QueryOptions, QueryRequest, auto_weight, run_query
from ragx.query.seeds import find_seeds
from ragx.query.spread import SpreadOptions, spread
from ragx.store.base import LinkOptions
from ragx.store.sqlite import SqliteReader, SqliteWriter
from ragx.types import Chunk, Hit

EMBEDDER = HashEmbedder()
OFF = dict.fromkeys(EDGE_KINDS, 0.0)


class Library:
    """A corpus whose files are given as texts, indexed with vectors."""

    def __init__(self, root: Path, files: dict[str, str], *, size: int = 60) -> None:
        self.root = root
        for path, text in files.items():
            full = root / path
            full.parent.mkdir(parents=True, exist_ok=True)
            full.write_text(text)
        chunking = ChunkOptions(size_tokens=size)
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

    def ask(self, text: str, options: QueryOptions | None = None, **request: object) -> Answer:
        asked = QueryRequest(text, **{"mode": "lexical", **request})  # type: ignore[arg-type]
        with self.reader() as reader:
            return run_query(
                self.root, reader, asked, options or QueryOptions(), embed=EMBEDDER.embed_query
            )

    def paths(self, text: str, options: QueryOptions | None = None, **request: object) -> list[str]:
        return [entry.path for entry in self.ask(text, options, **request).results]

    @contextmanager
    def reader(self) -> Iterator[SqliteReader]:
        with closing(SqliteReader(self.root)) as reader:
            yield reader

    def first(self, path: str) -> Chunk:
        with self.reader() as reader:
            return reader.chunks_of(path)[0]


def hit_of(answer: Answer, path: str) -> Hit:
    return next(entry for entry in answer.results if entry.path == path).chunks[0].hit


def with_spread(**settings: object) -> QueryOptions:
    return QueryOptions(spread=SpreadOptions(**settings))  # type: ignore[arg-type]


# The question names the bridge alone; the bridge names Otto, and Otto names Vienna.
CHAIN = {
    "bridge.md": "# Bridge notes\n\nThe quagga experiment was led by Otto Fischer in winter.\n",
    "otto.md": "# Otto Fischer\n\nHe grew up in Vienna Heights and studied rivers.\n",
    "vienna.md": "# Vienna Heights\n\nA district known for wine.\n",
    "other.md": "# Other things\n\nNothing of note here.\n",
}


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return Library(tmp_path_factory.mktemp("chain"), CHAIN)


# What comes in.


def test_a_file_that_only_another_one_names_is_found_below_it(chain: Library) -> None:
    assert chain.paths("quagga experiment", graph=False) == ["bridge.md"]
    answer = chain.ask("quagga experiment", hops=1)
    assert [entry.path for entry in answer.results] == ["bridge.md", "otto.md"]
    assert answer.stages["graph"] == "used"
    seed, hit = hit_of(answer, "bridge.md"), hit_of(answer, "otto.md")
    (hop,) = hit.hops
    assert (hop.source, hop.target) == (seed.chunk_id, hit.chunk_id)
    assert (hop.kind, hop.weight) == ("mention", 1.0)
    assert hit.seed_path == "bridge.md"
    assert (seed.hops, seed.seed_path, "heat" in seed.terms) == ((), "", False)
    # Bridge has one mention, Otto two.
    heat = 1.0 * 1.0 / 1**0.25 / (1 + math.log(1 + 2) / 6)
    assert hit.terms["heat"] == pytest.approx(heat)
    assert hit.terms["cap"] == pytest.approx(CAP * 1.0 - heat)
    assert hit.score == pytest.approx(CAP * 1.0)
    assert hit.raw == {}


def test_two_hops_reach_what_the_named_names(chain: Library) -> None:
    answer = chain.ask("quagga experiment", hops=2)
    assert [entry.path for entry in answer.results] == ["bridge.md", "otto.md", "vienna.md"]
    hit = hit_of(answer, "vienna.md")
    ids = [chain.first(path).chunk_id for path in ("bridge.md", "otto.md", "vienna.md")]
    assert [(hop.source, hop.target) for hop in hit.hops] == list(pairwise(ids))
    first = 1 / (1 + math.log(3) / 6)
    assert hit.score == pytest.approx(first * 0.7 / 2**0.25 / (1 + math.log(2) / 6))
    assert hit.seed_path == "bridge.md"


@pytest.mark.parametrize(
    ("kind", "files"),
    [
        ("link", {"a.md": "# Quagga\n\nSee [there](b.md).\n", "b.md": "# Wine\n\nRed.\n"}),
        ("link", {"a.md": "# Quagga\n\nSee [[b]].\n", "b.md": "Red wine.\n"}),
        ("mention", {"a.md": "A quagga, as in Red Wine.\n", "b.md": "# Red Wine\n\nText.\n"}),
        ("import", {"a.py": "import b\n\nquagga = 1\n", "b.py": "def other():\n    return 1\n"}),
        (
            "symbol",
            {
                "a.py": "def quagga():\n    return blend_grapes(1)\n",
                "b.py": "def blend_grapes(n):\n    return n\n",
            },
        ),
        (
            "symbol",
            {
                "a.md": "A quagga calls `blend` here.\n",
                "b.py": "def blend(n):\n    return n\n",
            },
        ),
    ],
)
@pytest.mark.parametrize("there", [True, False], ids=["there", "back"])
def test_every_kind_of_reference_leads_there_and_back(
    tmp_path: Path, kind: str, files: dict[str, str], there: bool
) -> None:
    if not there:
        files = {
            p: t.replace("quagga", "zebra").replace("Quagga", "Zebra") for p, t in files.items()
        }
        last = max(files)
        files[last] += "# quagga\n"
    library = Library(tmp_path, files)
    one, other = sorted(files) if there else sorted(files, reverse=True)
    answer = library.ask("quagga")
    assert [entry.path for entry in answer.results] == [one, other]
    assert [hop.kind for hop in hit_of(answer, other).hops] == [kind]
    assert library.paths("quagga", with_spread(weights={**OFF, kind: 0.5})) == [one, other]
    only_others = {name: float(name != kind) for name in EDGE_KINDS if name != "similar"}
    assert library.paths("quagga", with_spread(weights=only_others), top=1) == [one]
    assert library.paths("quagga", graph=False) == [one]


def test_what_the_searches_found_good_stays_as_it_was(tmp_path: Path) -> None:
    files = {
        "a.md": "# Quagga herd\n\nquagga experiment and Otto Fischer\n",
        "otto.md": "# Otto Fischer\n\nquagga experiment quagga experiment\n",
    }
    library = Library(tmp_path, files)
    before = library.ask("quagga experiment", graph=False)
    after = library.ask("quagga experiment")
    assert [e.path for e in before.results] == [e.path for e in after.results]
    for path in files:
        one, other = hit_of(before, path), hit_of(after, path)
        assert other.score >= one.score
        if other.score == one.score:
            assert one == other
    best = before.results[0].path
    assert hit_of(before, best) == hit_of(after, best)


# What may not come in.


def test_an_excluded_word_bars_what_holds_it(chain: Library) -> None:
    assert chain.paths("quagga experiment -wine") == ["bridge.md", "otto.md"]
    assert "otto.md" not in chain.paths("quagga experiment -rivers")
    assert chain.paths("quagga experiment -rivers", hops=1) == ["bridge.md"]
    assert chain.paths("quagga experiment -winter") == []
    for mode in ("hybrid", "vector"):
        assert "otto.md" not in chain.paths("quagga experiment -rivers", mode=mode)


def test_the_way_over_an_excluded_chunk_can_be_explained(chain: Library) -> None:
    answer = chain.ask("quagga experiment -rivers", explain=True)
    for ends in answer.evidence:
        assert set(ends) <= answer.places.keys()


@pytest.mark.parametrize("mode", ["hybrid", "vector", "lexical"])
@pytest.mark.parametrize("method", ["weighted", "rrf"])
@pytest.mark.parametrize("rules", [False, True], ids=["searches alone", "and rules"])
def test_without_the_graph_the_first_stage_alone_answers(
    town: Library, mode: str, method: str, rules: bool
) -> None:
    # In prose, the length of a file is all that a rule looks at.
    names = {"vector", "lexical", "phrase"} | ({"length"} if rules else set())
    for text in ("river bridge", "copper", '"silver engine"', "Otto Fischer -garden"):
        options = QueryOptions(method=method)  # type: ignore[arg-type]
        asked = {"mode": mode, "rules": rules}
        off = town.ask(text, options, **asked, graph=False)
        assert off.stages["graph"] == "off"
        no_hops = replace(options, spread=SpreadOptions(hops=0))
        assert town.ask(text, options, **asked, hops=0) == off
        assert town.ask(text, no_hops, **asked) == off
        # One file is enough found, so that nothing helps to fill the list.
        no_kinds = replace(options, spread=SpreadOptions(weights=OFF))
        one = town.ask(text, no_kinds, **asked, top=1)
        assert one.results == town.ask(text, options, **asked, top=1, graph=False).results
        for entry in off.results:
            for part in entry.chunks:
                assert part.hit.hops == ()
                assert part.hit.terms.keys() <= names


def test_the_first_stage_is_the_weighted_sum_and_nothing_else(town: Library) -> None:
    text = "river bridge winter"
    answer = town.ask(text, mode="hybrid", graph=False, rules=False)
    entries = fold(rank_hits(first_stage(town, text)), top=20, fold_weight=0.0)
    assert [(entry.path, entry.score) for entry in answer.results] == [
        (entry.path, entry.score) for entry in entries
    ]


# Scores.


def test_what_a_phrase_adds_to_a_seed_is_not_passed_on(chain: Library) -> None:
    plain, quoted = chain.ask("quagga experiment led"), chain.ask('"quagga experiment" led')
    boost = hit_of(quoted, "bridge.md").terms["phrase"]
    assert boost == 3 + 3 * 1.0  # more than a fold makes of the best hit
    seed = hit_of(quoted, "bridge.md").score - boost
    for path in ("otto.md", "vienna.md"):
        hit = hit_of(quoted, path)
        assert "phrase" not in hit.terms
        assert hit.score <= CAP * seed + 1e-12
        assert hit.terms == pytest.approx(hit_of(plain, path).terms)


def test_a_phrase_in_what_came_in_counts(tmp_path: Path) -> None:
    files = {
        "a.md": "# Notes\n\nA quagga, by Otto Fischer.\n",
        "otto.md": "# Otto Fischer\n\nBorn near the river.\n",
    }
    answer = Library(tmp_path, files).ask('quagga "otto fischer"')
    for path in files:
        assert hit_of(answer, path).terms["phrase"] == 3 + 3 * 1.0


def test_without_a_cap_heat_adds_up(chain: Library) -> None:
    answer = chain.ask("quagga experiment", with_spread(cap=False))
    hit = hit_of(answer, "otto.md")
    assert "cap" not in hit.terms
    assert hit.score == pytest.approx(1 / (1 + math.log(3) / 6))
    assert hit.score > CAP * hit_of(answer, "bridge.md").score


def test_without_a_cap_entries_are_not_held_either(town: Library) -> None:
    for text in ("quagga experiment", "river bridge", "copper", "silver engine violin"):
        for entry in town.ask(text, with_spread(cap=False), mode="hybrid").results:
            assert "cap" not in entry.terms
            assert entry.score == entry.chunks[0].hit.score


def test_the_seed_formula_knows_no_cap(tmp_path: Path) -> None:
    files = {
        "a.md": "copper silver engine violin garden castle letter quagga\n",
        "b.md": "copper silver engine violin garden castle letter market\n",
        "c.md": f"one quagga among {' '.join(f'word{i}' for i in range(45))}\n",
    }
    answer = Library(tmp_path, files).ask("quagga", with_spread(formula="seed"))
    entry = next(entry for entry in answer.results if entry.path == "b.md")
    assert entry.chunks[0].hit.seed_path == "a.md"
    assert entry.score == entry.chunks[0].hit.score > 0
    assert "cap" not in entry.terms


def test_the_cap_is_a_share_of_the_seeds_own_score(town: Library) -> None:
    checked = 0
    for text in QUESTIONS:
        for hit in all_hits(town.ask(text, mode="hybrid", top=50, rules=False)):
            if "cap" in hit.terms:
                checked += 1
                with town.reader() as reader:
                    (source,) = reader.chunks([hit.hops[0].source]).values()
                own = {h.chunk_id: h for h in first_stage(town, text)}[source.chunk_id].score
                assert hit.score == pytest.approx(max(hit.unheated, CAP * own), abs=1e-12)
    assert checked


def test_hits_that_one_seed_holds_tie_exactly(town: Library) -> None:
    """Else rounding, and not what the cap took, decides their order."""
    held: dict[tuple[str, int], set[float]] = {}
    for text in QUESTIONS:
        own = {hit.chunk_id: hit.score for hit in first_stage(town, text)}
        for hit in all_hits(town.ask(text, mode="hybrid", top=50, rules=False)):
            source = hit.hops[0].source if hit.hops else 0
            if "cap" in hit.terms and abs(hit.score - CAP * own[source]) < 1e-9:
                held.setdefault((text, source), set()).add(hit.score)
    assert max(map(len, held.values())) == 1


def all_hits(answer: Answer) -> list[Hit]:
    return [part.hit for entry in answer.results for part in entry.chunks]


def first_stage(library: Library, text: str) -> list[Hit]:
    """Every candidate of a hybrid question with its fused score, without rules."""
    query = parse_query(text)
    with library.reader() as reader:
        seeds = find_seeds(reader, query, query.match, EMBEDDER.embed_query(text), depth=100)
        chunks = reader.chunks(sorted(seeds.candidates))
        scales = fusion.Scales(
            floor=min(seeds.cosines.values()),
            cosine_unit=fusion.cosine_unit(*reader.likeness_spread()),
            bm25_unit=fusion.bm25_unit(reader.n_chunks(), max(seeds.bm25.values())),
        )
    assert seeds.exhausted  # so that the floor is that of all candidates, at any depth
    share = fusion.trust(seeds.vector_ranking, seeds.lexical_ranking, seeds.bm25)
    fused = fusion.weighted_sum(
        seeds.cosines,
        seeds.bm25,
        scales=scales,
        vector_weight=lambda key: share * auto_weight(chunks[key].path),
    )
    return [
        Hit(key, chunks[key].path, chunks[key].ordinal, fusion.total(terms), terms)
        for key, terms in fused.items()
    ]


# Similar edges, and spread by itself.

ALIKE = {
    "a.md": "copper silver engine violin garden castle letter quagga\n",
    "b.md": "copper silver engine violin garden castle letter market\n",
    "c.md": "nothing about anything of that kind here\n",
}


@pytest.fixture(scope="module")
def alike(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return Library(tmp_path_factory.mktemp("alike"), ALIKE)


def spread_from(
    library: Library,
    scores: dict[str, float],
    options: SpreadOptions | None = None,
    *,
    vector: np.ndarray | None = None,
    exclude: str = "",
    top: int = 1,
) -> dict[str, Hit]:
    """What spreads from the first chunks of files; the hits by path."""
    chunks = {library.first(path).chunk_id: library.first(path) for path in scores}
    hits = [
        Hit(chunk.chunk_id, chunk.path, 0, scores[chunk.path], {"lexical": scores[chunk.path]})
        for chunk in chunks.values()
    ]
    with library.reader() as reader:
        found = spread(
            reader,
            hits,
            chunks,
            options or SpreadOptions(),
            vector=vector,
            exclude=exclude,
            top=top,
        )
        assert {hit.chunk_id for hit in found} <= chunks.keys()
        assert all(chunks[hit.chunk_id].path == hit.path for hit in found)
    return {hit.path: hit for hit in found}


# Any question will do where nothing is too far from it.
LIKE_ANY = replace(SpreadOptions(), query_floor=-1.0)
QUESTION = EMBEDDER.embed_query("quagga")


def test_a_thin_list_is_filled_with_what_is_alike(alike: Library) -> None:
    # Enough was found: no similar edge is used.
    enough = replace(LIKE_ANY, thin=1)
    assert spread_from(alike, {"a.md": 1.0}, enough, vector=QUESTION, top=2).keys() == {"a.md"}
    short = replace(LIKE_ANY, thin=2)
    hit = spread_from(alike, {"a.md": 1.0}, short, vector=QUESTION, top=2)["b.md"]
    (hop,) = hit.hops
    assert hop.kind == "similar"
    assert hit.terms["heat"] == pytest.approx(0.3 * hop.weight / (1 + math.log(2) / 6))


def test_who_asks_for_words_gets_no_likeness(alike: Library) -> None:
    assert alike.paths("quagga", graph=False) == ["a.md"]
    assert alike.paths("quagga") == ["a.md"]
    assert spread_from(alike, {"a.md": 1.0}, LIKE_ANY, top=5).keys() == {"a.md"}


def test_the_weight_of_similar_edges_is_for_thin_lists(alike: Library) -> None:
    options = replace(LIKE_ANY, weights={"similar": 0.8})

    def reached(options: SpreadOptions, thin: int) -> dict[str, Hit]:
        options = replace(options, thin=thin)
        return spread_from(alike, {"a.md": 1.0}, options, vector=QUESTION, top=5)

    hit = reached(options, 5)["b.md"]
    heat = 0.8 * hit.hops[0].weight / (1 + math.log(2) / 6)
    assert hit.terms["heat"] == pytest.approx(heat)
    assert "b.md" not in reached(options, 1)
    assert "b.md" in reached(replace(options, similar_always=True), 1)
    assert "b.md" not in reached(replace(options, weights={"similar": 0.0}), 5)


def test_what_is_too_far_from_the_question_is_not_brought_in_by_likeness(alike: Library) -> None:
    near, far = EMBEDDER.embed_query("copper market"), EMBEDDER.embed_query("quagga")
    with alike.reader() as reader:
        chunk_id = alike.first("b.md").chunk_id
        cosine = reader.vector_scores(near, [chunk_id])[chunk_id]
    assert cosine > 0.35
    assert "b.md" in spread_from(alike, {"a.md": 1.0}, vector=near, top=9)
    assert "b.md" not in spread_from(alike, {"a.md": 1.0}, vector=far, top=9)
    for floor, brought in ((-1.0, True), (cosine - 1e-6, True), (cosine + 1e-6, False)):
        options = SpreadOptions(query_floor=floor)
        found = spread_from(alike, {"a.md": 1.0}, options, vector=near, top=9)
        assert ("b.md" in found) is brought


def test_references_need_not_resemble_the_question(chain: Library) -> None:
    vector = EMBEDDER.embed_query("quagga")
    options = SpreadOptions(query_floor=1.0)
    found = spread_from(chain, {"bridge.md": 1.0}, options, vector=vector, top=9)
    assert found.keys() == {"bridge.md", "otto.md", "vienna.md"}


def test_nothing_to_spread(chain: Library, tmp_path: Path) -> None:
    assert spread_from(chain, {}) == {}
    assert spread_from(chain, {"bridge.md": 1.0}, SpreadOptions(hops=0)).keys() == {"bridge.md"}
    assert spread_from(chain, {"bridge.md": 0.0}).keys() == {"bridge.md"}
    lonely = Library(tmp_path, {"a.md": "one quagga\n", "b.md": "other things\n"})
    assert spread_from(lonely, {"a.md": 1.0}, top=9).keys() == {"a.md"}
    assert lonely.paths("quagga") == ["a.md"]


def test_heat_starts_from_the_five_best(tmp_path: Path) -> None:
    files = {f"f{i}.md": f"# Note {i}\n\nSee [there](t{i}.md).\n" for i in range(7)}
    files |= {f"t{i}.md": f"target number {i}\n" for i in range(7)}
    library = Library(tmp_path, files)
    found = spread_from(library, {f"f{i}.md": (i + 1) / 10 for i in range(7)})
    assert {path for path in found if path.startswith("t")} == {f"t{i}.md" for i in range(2, 7)}


def test_spread_bars_what_matches_the_excluded_expression(chain: Library) -> None:
    found = spread_from(chain, {"bridge.md": 1.0}, exclude='"wine"')
    assert found.keys() == {"bridge.md", "otto.md"}


def test_the_formula_of_the_seed_document(alike: Library) -> None:
    """beta x heat + gamma x vector, each scaled over the candidates, over beta + gamma."""
    options = SpreadOptions(formula="seed", hops=2, decay=0.5, query_floor=-1.0)
    vector = EMBEDDER.embed_query("copper quagga letter")
    scores = {"a.md": 0.8, "c.md": 0.1}
    found = spread_from(alike, scores, options, vector=vector)
    ids = {path: alike.first(path).chunk_id for path in ALIKE}
    with alike.reader() as reader:
        graph = reader.graph()
        cosines = reader.vector_scores(vector, ids.values())
        nodes = graph.nodes_of([ids[path] for path in scores])
        only = {kind: float(kind == "similar") for kind in EDGE_KINDS}
        heat = propagate(
            graph,
            nodes,
            np.array(list(scores.values())),
            HeatOptions(2, 0.5, True, False, 150, only),
        )
    reached = dict(zip(graph.ids[heat.nodes].tolist(), heat.heat.tolist(), strict=True))
    assert reached.keys() == {ids["b.md"]}  # undamped, decayed at once
    similarity = found["b.md"].hops[0].weight
    assert reached[ids["b.md"]] == pytest.approx(0.8 * similarity * 0.5)
    warm = {ids["a.md"]: 0.8, ids["b.md"]: reached[ids["b.md"]], ids["c.md"]: 0.1}
    for path, chunk_id in ids.items():
        expected = {
            "heat": 0.25 / 0.4 * fusion.scale_by_range(warm)[chunk_id],
            "vector": 0.15 / 0.4 * fusion.scale_by_range(cosines)[chunk_id],
        }
        assert found[path].terms == pytest.approx(expected)
        assert found[path].score == pytest.approx(math.fsum(expected.values()))
    assert [(hop.kind, found["b.md"].seed_path) for hop in found["b.md"].hops] == [
        ("similar", "a.md")
    ]
    assert found["a.md"].hops == found["c.md"].hops == ()


def test_the_seed_formula_uses_no_references(chain: Library) -> None:
    assert chain.paths("quagga experiment", with_spread(formula="seed")) == ["bridge.md"]
    zero = with_spread(formula="seed", beta_heat=0.0, gamma_vector=0.0)
    (entry,) = chain.ask("quagga experiment", zero).results
    assert entry.score == 0.0


# A town of people who name each other.

VOCABULARY = (
    "river bridge winter summer paper copper silver engine violin garden castle letter market"
    " harbour forest window"
).split()
PEOPLE = [
    f"{first} {last}"
    for first, last in zip(
        "Otto Anna Karl Lena Hugo Ida Emil Vera Paul Rosa Max Nora".split(),
        "Fischer Weber Wagner Becker Hoffmann Koch Richter Klein Wolf Neumann Braun Lange".split(),
        strict=True,
    )
]


def town_files() -> dict[str, str]:
    chance = random.Random(5)
    files = {"quagga.md": "# Quagga experiment\n\nIt was led by Otto Fischer.\n"}
    for name in PEOPLE:
        sentences = []
        for _ in range(chance.randint(2, 6)):
            words = chance.choices(VOCABULARY, k=7)
            if chance.random() < 0.7:
                words += ["with", chance.choice(PEOPLE)]
            sentences.append(" ".join(words) + ".")
        path = name.lower().replace(" ", "-") + ".md"
        files[path] = f"# {name}\n\n" + "\n\n".join(sentences) + "\n"
    return files


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return Library(tmp_path_factory.mktemp("town"), town_files(), size=20)


def questions(n: int, seed: int) -> list[str]:
    chance = random.Random(seed)
    found = []
    for _ in range(n):
        words = chance.choices(VOCABULARY, k=chance.randint(1, 4))
        words += [f"-{word}" for word in chance.choices(VOCABULARY, k=chance.choice([0, 0, 1]))]
        words += [chance.choice(PEOPLE)] if chance.random() < 0.3 else []
        words += [f'"{" ".join(chance.choices(VOCABULARY, k=2))}"'] if chance.random() < 0.2 else []
        found.append(" ".join(words))
    return found


QUESTIONS = [" ".join(random.Random(i).choices(VOCABULARY, k=1 + i % 3)) for i in range(40)]


@pytest.mark.parametrize("mode", ["hybrid", "vector", "lexical"])
@pytest.mark.parametrize(
    "spreading",
    [
        {},
        {"cap": False},
        {"formula": "seed", "query_floor": -1.0},
        {"weights": {}},
        {"hops": 5, "decay": 1.0},
    ],
    ids=["default", "no cap", "seed", "all kinds", "far"],
)
def test_terms_of_every_hit_and_entry_add_up(town: Library, mode: str, spreading: dict) -> None:
    heated = 0
    for method in ("weighted", "rrf"):
        options = QueryOptions(method=method, spread=SpreadOptions(**spreading))  # type: ignore[arg-type]
        for text in questions(12, seed=1):
            answer = town.ask(text, options, mode=mode, top=30)
            assert [e.score for e in answer.results] == sorted(
                (e.score for e in answer.results), reverse=True
            )
            for entry in answer.results:
                assert abs(math.fsum(entry.terms.values()) - entry.score) < 1e-9
                for hit in (part.hit for part in entry.chunks):
                    assert abs(math.fsum(hit.terms.values()) - hit.score) < 1e-9
                    assert math.isfinite(hit.score)
                    assert bool(hit.hops) == bool(hit.seed_path)
                    if hit.hops:
                        heated += 1
                        assert hit.hops[-1].target == hit.chunk_id
                        assert len(hit.hops) <= options.spread.hops
                        assert all(a.target == b.source for a, b in pairwise(hit.hops))
                        assert hit.hops[0].source not in {hop.target for hop in hit.hops}
    assert heated


@pytest.mark.parametrize("mode", ["hybrid", "lexical"])
def test_explaining_changes_nothing(town: Library, mode: str) -> None:
    explained = 0
    for text in questions(25, seed=2):
        if " -" in text:
            continue  # see the way over an excluded chunk, above
        plain, full = town.ask(text, mode=mode), town.ask(text, mode=mode, explain=True)
        assert replace(full, evidence={}, places={}) == plain
        assert plain.evidence == plain.places == {}
        hops = {hop for hit in all_hits(full) for hop in hit.hops}
        assert full.evidence.keys() == {(hop.source, hop.target) for hop in hops}
        assert full.places.keys() == {end for pair in full.evidence for end in pair}
        for hop in hops:
            said = full.evidence[hop.source, hop.target]
            assert hop.kind in {edge.kind for edge in said}
            for edge in said:
                assert {edge.source, edge.target} == {hop.source, hop.target}
                assert edge.text == full.places[edge.source].text[edge.start : edge.end]
                explained += bool(edge.text)
    assert explained


def test_no_hit_from_outside_passes_the_seed_it_came_from(town: Library) -> None:
    """What the searches did not find stays below what led there."""
    for text in questions(25, seed=3):
        answer = town.ask(text, mode="lexical", top=50)
        best = {hit.chunk_id: hit.score for hit in all_hits(answer)}
        for hit in all_hits(answer):
            if hit.hops and not hit.raw and "phrase" not in hit.terms:
                source = hit.hops[0].source
                assert source not in best or hit.score < best[source]


def test_same_question_same_answer_in_every_order_of_indexing(tmp_path: Path) -> None:
    answers = []
    files = town_files()
    for order in (sorted(files), sorted(files, reverse=True)):
        root = tmp_path / order[0]
        root.mkdir()
        for path in order:
            (root / path).write_text(files[path])
        library = Library(root, {}, size=20)
        answers.append([library.ask(text, mode="hybrid").results for text in QUESTIONS[:10]])
    assert answers[0] == answers[1]

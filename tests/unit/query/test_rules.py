"""Each rule's term: where it stands, how great it is, and that it stands nowhere else."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import fields, replace
from pathlib import Path

import pytest

from ragx.algo import fusion
from ragx.algo.chunking.base import ChunkOptions
from ragx.algo.lexical import parse_query
from ragx.algo.rules import defines, file_name_match, path_share, read_asked
from ragx.indexing.build import BuildOptions, build, expected_manifest
from ragx.indexing.scan import ScanOptions
from ragx.providers.fakes import HashEmbedder
from ragx.query.pipeline import Answer, QueryOptions, QueryRequest, run_query
from ragx.query.rules import RuleOptions, apply_rules, rule_heat
from ragx.query.seeds import find_seeds
from ragx.store.base import LinkOptions
from ragx.store.sqlite import SqliteReader, SqliteWriter
from ragx.types import Chunk, Hit, Hop

RULES = tuple(field.name for field in fields(RuleOptions))
NONE = RuleOptions(**dict.fromkeys(RULES, 0.0))
# Balance takes the same share of every hit in source; tests of its own look at it.
DEFAULT = RuleOptions(balance=0.0)


def only(**weights: float) -> RuleOptions:
    """These rules and no other."""
    return replace(NONE, **weights)


# By hand.


class Shelf:
    """What rules ask of a reader, from numbers; it counts how often word counts were asked for."""

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self.sizes = sizes
        self.n_asked = 0

    def n_chunks(self) -> int:
        return 1000

    def n_chunks_of(self, paths: Collection[str]) -> dict[str, int]:
        return {path: self.sizes[path] for path in paths if path in self.sizes}

    def paths_below(self, directory: str, limit: int) -> list[str]:
        return [path for path in sorted(self.sizes) if path.startswith(f"{directory}/")][:limit]

    def frequencies(self, words: Sequence[str]) -> list[int]:
        self.n_asked += 1
        return [1 + 7 * at for at, _ in enumerate(words)]


class Found:
    """Hits of the searches, each with a score of its own."""

    def __init__(self) -> None:
        self.hits: list[Hit] = []
        self.chunks: dict[int, Chunk] = {}
        self.sizes: dict[str, int] = {}

    def add(self, path: str, score: float, *symbols: str, of: int = 2) -> int:
        """A chunk of a file with so many."""
        key = len(self.hits)
        ordinal = sum(hit.path == path for hit in self.hits)
        terms = {"vector": 0.25 * score, "lexical": 0.75 * score}
        self.hits.append(Hit(key, path, ordinal, fusion.total(terms), terms))
        self.chunks[key] = Chunk(key, path, ordinal, 0, 1, 1, 1, path, (), symbols)
        self.sizes[path] = of
        return key

    def shelf(self, **others: int) -> Shelf:
        return Shelf({**self.sizes, **others})

    def ruled(
        self, text: str, options: RuleOptions = DEFAULT, shelf: Shelf | None = None
    ) -> dict[int, Hit]:
        reader = shelf or self.shelf()
        ruled = apply_rules(reader, text, self.hits, self.chunks, options)  # type: ignore[arg-type]
        assert [hit.chunk_id for hit in ruled] == [hit.chunk_id for hit in self.hits]
        for hit, before in zip(ruled, self.hits, strict=True):
            assert hit.score == math.fsum(hit.terms.values())
            assert before.terms.items() <= hit.terms.items()
        return {hit.chunk_id: hit for hit in ruled}

    def added(
        self, text: str, options: RuleOptions = DEFAULT, shelf: Shelf | None = None
    ) -> dict[int, dict[str, float]]:
        """What rules added to each hit."""
        return {
            key: {name: value for name, value in hit.terms.items() if name in RULES}
            for key, hit in self.ruled(text, options, shelf).items()
        }


@pytest.fixture
def found() -> Found:
    return Found()


def test_names_count_by_what_they_cover_of_the_question(found: Found) -> None:
    best = found.add("other.py", 0.8)
    near = found.add("http/retry_budget.py", 0.5)
    text = "retry of http calls"
    asked = read_asked(text, 1000, Shelf({}).frequencies)
    added = found.added(text)
    assert added[best] == {}
    assert added[near] == pytest.approx(
        {
            "path": DEFAULT.path * 0.8 * path_share(asked, "http/retry_budget.py"),
            "file_name": DEFAULT.file_name * 0.8 * file_name_match(asked, "http/retry_budget.py"),
        }
    )


def test_definitions_count_against_the_best_of_them(found: Found) -> None:
    text = "load user settings"
    asked = read_asked(text, 1000, Shelf({}).frequencies)
    symbols = [("loadUser",), ("user", "zebra"), ("zebra",), ()]
    keys = [found.add("a.py", 0.5, *names) for names in symbols]
    best = max(defines(asked, names) for names in symbols)
    added = found.added(text, only(definition=0.3))
    assert added[keys[0]] == pytest.approx({"definition": 0.3 * 0.5 * 1})
    share = defines(asked, symbols[1]) / best
    assert added[keys[1]] == pytest.approx({"definition": 0.3 * 0.5 * share})
    assert added[keys[2]] == added[keys[3]] == {}


def test_a_file_of_one_definition_says_it_with_its_name(found: Found) -> None:
    alone = found.add("x.py", 0.5, "retry", of=1)
    two = found.add("y.py", 0.5, "retry", "zebra", of=1)
    many = found.add("z.py", 0.5, "retry", of=2)
    added = found.added("retry calls", only(definition=0.3))
    assert added[alone] == {}
    assert added[two] == added[many] == pytest.approx({"definition": 0.3 * 0.5})


def test_a_name_that_is_written_out_counts_where_it_is_defined(found: Found) -> None:
    here = found.add("a.py", 0.4, "Store.load_user", of=1)
    like = found.add("b.py", 0.9, "load_users", of=1)
    prose = found.add("c.md", 0.9, "load_user", of=1)
    added = found.added("where does load_user fail", only(symbol=0.5))
    assert added == {here: {"symbol": pytest.approx(0.5 * 0.9)}, like: {}, prose: {}}


def test_prose_in_a_long_file_counts_less(found: Found) -> None:
    keys = {n: found.add(f"{n}.md", 0.6, of=n) for n in (1, 2, 50)}
    code = found.add("a.py", 0.6, of=50)
    data = found.add("a.json", 0.6, of=50)
    added = found.added("zebra", only(length=0.03))
    assert added[keys[1]] == added[code] == {}
    for key, n in ((keys[2], 2), (keys[50], 50), (data, 50)):
        assert added[key] == pytest.approx({"length": -0.03 * math.log(n) * 0.6})


def test_secondary_files_lose_a_share_of_all_they_have(found: Found) -> None:
    test = found.add("tests/test_retry.py", 0.5)
    log = found.add("CHANGELOG.md", 0.5, of=20)
    page = found.add("tests/notes.md", 0.5, of=1)
    added = found.added("retry calls", only(path=0.5, length=0.03, secondary=0.4))
    named = 0.5 + added[test]["path"]
    assert added[test]["secondary"] == pytest.approx(-0.4 * named)
    # One after the other.
    assert added[log]["length"] == pytest.approx(-0.03 * math.log(20) * 0.5)
    assert added[log]["secondary"] == pytest.approx(-0.4 * (0.5 + added[log]["length"]))
    assert added[page] == {}
    # Asked for, it loses nothing.
    assert "secondary" not in found.added("retry test")[test]


def test_what_is_taken_never_turns_a_score_around(found: Found) -> None:
    key = found.add("CHANGELOG.md", 0.5, of=10**6)
    hit = found.ruled("zebra", only(length=1.0, secondary=1.0))[key]
    assert hit.score == pytest.approx(0.5 * (1 - 0.9) * (1 - 0.9))


def test_an_old_version_is_lowered_where_a_newer_one_is_there(found: Found) -> None:
    old = found.add("api/v1/users.py", 0.5)
    beside = found.add("api/v1/groups.py", 0.5)
    new = found.add("api/v2/users.py", 0.5)
    options = only(secondary=0.4)
    lowered = {"secondary": pytest.approx(-0.4 * 0.5)}
    assert found.added("users", options) == {old: lowered, beside: lowered, new: {}}


def test_a_newer_version_need_not_be_among_the_hits(found: Found) -> None:
    old = found.add("api/v1/users.py", 0.5)
    options = only(secondary=0.4)
    lowered = {old: {"secondary": pytest.approx(-0.4 * 0.5)}}
    for newer in ("api/v2/users.py", "api/v3/users.py", "api/users.py"):
        assert found.added("users", options, found.shelf(**{newer: 1})) == lowered, newer
    for other in ("api/v4/users.py", "api/v2/groups.py", "v2/users.py", "api/v0/users.py"):
        assert found.added("users", options, found.shelf(**{other: 1})) == {old: {}}, other


def test_versions_are_numbers(found: Found) -> None:
    nine, ten = found.add("api/v9/a.py", 0.5), found.add("api/v10/a.py", 0.5)
    added = found.added("users", only(secondary=0.4))
    assert added == {nine: {"secondary": pytest.approx(-0.4 * 0.5)}, ten: {}}


def test_a_version_alone_is_not_lowered(found: Found) -> None:
    key = found.add("api/v1/users.py", 0.5)
    assert found.added("zebra", only(secondary=0.4)) == {key: {}}


@pytest.mark.parametrize("name", ["__init__.py", "index.ts", "mod.rs", "doc.go"])
def test_an_entry_file_one_level_up_replaces_no_version(found: Found, name: str) -> None:
    entry, users = found.add(f"api/v1/{name}", 0.5), found.add("api/v1/users.py", 0.4)
    found.add(f"api/{name}", 0.5)
    added = found.added("zebra", only(secondary=0.4))
    assert added[entry] == added[users] == {}


@pytest.mark.parametrize("path", ["long.md", "tests/a.py"])
def test_nothing_is_taken_from_what_has_less_than_nothing(found: Found, path: str) -> None:
    """A chunk that is farther than the floor scores below 0."""
    found.add("best.md", 0.5, of=1)
    key = found.add(path, -0.1, of=20)
    assert found.ruled("zebra")[key].score <= -0.1


def test_a_rule_that_takes_nothing_says_nothing(found: Found) -> None:
    found.add("best.md", 0.5, of=1)
    key = found.add("CHANGELOG.md", 0.0, of=20)
    assert found.added("zebra")[key] == {}


def test_no_hits_and_hits_without_a_score_stay_as_they_are(found: Found) -> None:
    assert found.ruled("retry") == {}
    found.add("retry.py", 0.0, "retry")
    found.add("tests/retry.py", -0.5, "retry")
    shelf = found.shelf()
    assert list(found.ruled("retry", shelf=shelf).values()) == found.hits
    assert shelf.n_asked == 0


@pytest.mark.parametrize("paths", [("a.md", "docs/retry.rst"), ("retry.json", "retry.md")])
def test_where_nothing_is_source_no_word_is_counted(found: Found, paths: tuple[str, str]) -> None:
    for path in paths:
        found.add(path, 0.5, "retry", of=1)
    shelf = found.shelf()
    assert list(found.ruled("retry", shelf=shelf).values()) == found.hits
    assert shelf.n_asked == 0
    found.add("retry.py", 0.5)
    found.added("retry", shelf=shelf)
    assert shelf.n_asked == 1


def test_a_rule_of_weight_0_is_off_and_the_others_are_what_they_were(found: Found) -> None:
    found.add("src/retry_all.py", 0.7, "retry_all", of=4)
    found.add("tests/retry_all.py", 0.5, "retry_all", of=4)
    found.add("CHANGELOG.md", 0.5, of=9)
    text = "where is retry_all"
    everything = found.added(text, RuleOptions())
    assert {name for terms in everything.values() for name in terms} == set(RULES)
    adding = [name for name in RULES if name not in ("length", "secondary", "balance")]
    for name in RULES:
        off = found.added(text, replace(RuleOptions(), **{name: 0.0}))
        for key, terms in everything.items():
            assert off[key].keys() == terms.keys() - {name}
            for other in set(adding) & off[key].keys():
                assert off[key][other] == terms[other]
    assert list(found.ruled(text, NONE).values()) == found.hits


def test_terms_follow_the_unit_of_the_best_hit(found: Found) -> None:
    """So that they weigh the same beside reciprocal ranks."""
    other = Found()
    for made, factor in ((found, 1.0), (other, 1 / 64)):
        made.add("src/retry.py", 0.7 * factor, "retry_all", of=4)
        made.add("tests/retry.py", 0.5 * factor, "retry", of=4)
    for key, terms in found.added("retry calls").items():
        small = other.added("retry calls")[key]
        assert small == pytest.approx({name: value / 64 for name, value in terms.items()})


def test_the_order_of_hits_has_no_influence(found: Found) -> None:
    found.add("src/retry.py", 0.7, "retry_all", of=4)
    found.add("api/v1/retry.py", 0.6, "retry", of=4)
    found.add("api/v2/retry.py", 0.5, "retry", of=4)
    found.add("CHANGELOG.md", 0.5, of=9)
    one = found.ruled("retry calls")
    found.hits.reverse()
    assert found.ruled("retry calls") == one


# Over an index.

EMBEDDER = HashEmbedder()


class Library:
    """A corpus whose files are given as texts."""

    def __init__(self, root: Path, files: Mapping[str, str], *, vectors: bool, size: int) -> None:
        self.root, self.vectors = root, vectors
        for path, text in files.items():
            full = root / path
            full.parent.mkdir(parents=True, exist_ok=True)
            full.write_text(text)
        chunking = ChunkOptions(size_tokens=size)
        manifest = expected_manifest(
            fingerprint=EMBEDDER.fingerprint if vectors else "none",
            provider="hash" if vectors else "none",
            model="",
            mode="",
            chunking=chunking,
            linking=LinkOptions(),
            part_tokens=256,
        )
        embedder = HashEmbedder() if vectors else None
        with closing(SqliteWriter(root)) as writer:
            build(root, writer, embedder, BuildOptions(ScanOptions(), chunking), manifest)
            writer.write_derived()

    def ask(self, text: str, rules: RuleOptions | None = DEFAULT, **request: object) -> Answer:
        """Without rules if there are None."""
        method = request.pop("method", "weighted")
        options = QueryOptions(method=method, rules=rules or DEFAULT)  # type: ignore[arg-type]
        with closing(SqliteReader(self.root)) as reader:
            return run_query(
                self.root,
                reader,
                QueryRequest(text, rules=rules is not None, **request),  # type: ignore[arg-type]
                options,
                embed=EMBEDDER.embed_query if self.vectors else None,
            )

    def hits(self, text: str, rules: RuleOptions | None = DEFAULT, **request: object) -> list[Hit]:
        """Hits of all entries."""
        answer = self.ask(text, rules, graph=False, **request)
        return [part.hit for entry in answer.results for part in entry.chunks]


def function(name: str, says: str) -> str:
    body = "".join(f"    step_{i} = prepare_{i}(argument)  # {says}\n" for i in range(8))
    return f"def {name}(argument):\n{body}    return step_0\n\n\n"


PROJECT = {
    "src/retry.py": function("retry_call", "call again") + function("wait_longer", "then wait"),
    "src/http/client.py": function("send", "retry what failed") + function("close", "at last"),
    "src/many.py": "".join(function(f"other_{i}", "retry here, retry there") for i in range(6)),
    "tests/test_retry.py": function("test_retry_call", "retry call") + function("test_b", "no"),
    "api/v1/users.py": function("list_users", "users by retry") + function("b", "x"),
    "api/v2/users.py": function("list_users", "users by retry, new") + function("b", "y"),
    "only/v1/groups.py": function("list_groups", "groups by retry") + function("b", "z"),
    "CHANGELOG.md": "# Changes\n\n" + "\n\n".join(f"## 1.{i}\n\nretry {i}" for i in range(9)),
    "guide.md": "# Guide\n\n" + "\n\n".join(f"## Part {i}\n\nretry call {i}" for i in range(9)),
    "short.md": "# Retry\n\nWhen to retry a call.\n",
}


@pytest.fixture(scope="module", params=[True, False], ids=["vectors", "words"])
def project(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Library:
    root = tmp_path_factory.mktemp("project")
    return Library(root, PROJECT, vectors=request.param, size=40)


QUESTIONS = ("retry", "how does retry_call work", "list users", "retry call again", "test of retry")


@pytest.mark.parametrize("method", ["weighted", "rrf"])
@pytest.mark.parametrize("text", QUESTIONS)
def test_terms_stand_where_their_rule_applies_and_add_up(
    project: Library, text: str, method: str
) -> None:
    hits = project.hits(text, method=method)
    assert hits
    for hit in hits:
        assert hit.score == math.fsum(hit.terms.values())
        if not hit.path.endswith(".py"):
            assert not hit.terms.keys() & {"path", "file_name", "definition", "symbol"}
        else:
            assert "length" not in hit.terms
        if "secondary" in hit.terms:
            assert hit.path in ("tests/test_retry.py", "CHANGELOG.md", "api/v1/users.py")
        if hit.path == "tests/test_retry.py":
            assert ("secondary" in hit.terms) == ("test of" not in text)
    assert "short.md" not in {hit.path for hit in hits if "length" in hit.terms}


def test_the_file_of_that_name_comes_first(project: Library) -> None:
    (first, *_) = project.ask("retry").results
    assert first.path == "src/retry.py"
    assert {"path", "file_name", "definition"} <= first.chunks[0].hit.terms.keys()


def test_the_chunk_that_defines_a_name_comes_first(project: Library) -> None:
    (first, *_) = project.ask("how does wait_longer work").results
    hit = first.chunks[0].hit
    assert first.path == "src/retry.py"
    assert "symbol" in hit.terms
    with closing(SqliteReader(project.root)) as reader:
        assert "wait_longer" in reader.chunks([hit.chunk_id])[hit.chunk_id].symbols
    named = [hit for hit in project.hits("how does wait_longer work") if "symbol" in hit.terms]
    assert [hit.chunk_id for hit in named] == [hit.chunk_id]


def test_of_two_versions_the_newer_one_comes_first(project: Library) -> None:
    paths = [entry.path for entry in project.ask("list users").results]
    assert paths.index("api/v2/users.py") < paths.index("api/v1/users.py")


@pytest.mark.parametrize("method", ["weighted", "rrf"])
@pytest.mark.parametrize("text", QUESTIONS)
def test_without_rules_the_searches_alone_answer(project: Library, text: str, method: str) -> None:
    answer = project.ask(text, rules=None, method=method)
    assert answer.stages["rules"] == "off"
    for entry in answer.results:
        for part in entry.chunks:
            assert part.hit.terms.keys() <= {"vector", "lexical", "heat", "cap"}
    # And what rules of no weight leave is the same, but for what they found to look at.
    plain = {hit.chunk_id: hit for hit in project.hits(text, rules=None, method=method, top=50)}
    for hit in project.hits(text, NONE, method=method, top=50):
        assert plain.get(hit.chunk_id, hit) == hit


def test_weights_of_0_switch_rules_off(project: Library) -> None:
    text = "where is retry_call"
    everything = {
        name for hit in project.hits(text, RuleOptions()) for name in hit.terms.keys() & set(RULES)
    }
    assert everything == set(RULES)
    for name in RULES:
        off = project.hits(text, replace(RuleOptions(), **{name: 0.0}))
        assert {n for hit in off for n in hit.terms.keys() & set(RULES)} == everything - {name}
    assert not {n for hit in project.hits(text, NONE) for n in hit.terms.keys() & set(RULES)}


def test_rules_never_lose_a_file(project: Library) -> None:
    for text in QUESTIONS:
        plain = {hit.path for hit in project.hits(text, NONE, top=50)}
        assert plain <= {hit.path for hit in project.hits(text, top=50)}


def test_over_prose_no_word_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {path: text for path, text in PROJECT.items() if path.endswith(".md")}
    library = Library(tmp_path, files, vectors=True, size=40)
    expected = library.ask("retry call")

    def refuse(*_: object) -> list[int]:
        raise AssertionError("words were counted")

    monkeypatch.setattr(SqliteReader, "frequencies", refuse)
    assert library.ask("retry call") == expected


# Definitions among the seeds.


def deep(n: int = 150) -> dict[str, str]:
    """A long file in which each function speaks of zebras more than the one that defines them."""
    functions = [function(f"other_{i}", "count zebra, zebra zebra stripes") for i in range(n)]
    functions.insert(n - 5, function("count_zebra", "hidden"))
    return {"long.py": "".join(functions)}


@pytest.mark.parametrize("vectors", [True, False])
def test_a_definition_deep_in_a_long_file_is_a_candidate(tmp_path: Path, vectors: bool) -> None:
    library = Library(tmp_path, deep(), vectors=vectors, size=60)
    query = parse_query("count zebra")
    vector = EMBEDDER.embed_query("count zebra") if vectors else None
    with closing(SqliteReader(tmp_path)) as reader:
        (defined,) = [c for c in reader.chunks_of("long.py") if "count_zebra" in c.symbols]
        assert defined.ordinal > 100
        without = find_seeds(reader, query, query.match, vector, depth=20)
        seeds = find_seeds(reader, query, query.match, vector, depth=20, definitions=True)
        assert without.named == ()
        assert defined.chunk_id not in without.candidates
        assert seeds.named[0] == defined.chunk_id
        assert seeds.candidates == without.candidates | set(seeds.named)
        # The shortlists and their scores are what they were.
        assert seeds.vector_ranking == without.vector_ranking
        assert seeds.lexical_ranking == without.lexical_ranking
        assert without.bm25.items() <= seeds.bm25.items()
        assert without.cosines.items() <= seeds.cosines.items()
        # And the definition has a score on each side that there is.
        assert seeds.bm25[defined.chunk_id] > 0
        assert (defined.chunk_id in seeds.cosines) is vectors
    (entry,) = library.ask("count zebra", mode="lexical").results
    assert entry.chunks[0].hit.chunk_id == defined.chunk_id
    assert "definition" in entry.chunks[0].hit.terms


def test_definitions_keep_to_what_is_left_out(tmp_path: Path) -> None:
    Library(tmp_path, deep(20), vectors=False, size=60)
    query = parse_query("count zebra -hidden")
    with closing(SqliteReader(tmp_path)) as reader:
        seeds = find_seeds(reader, query, query.match, None, depth=20, definitions=True)
        assert seeds.named == ()
        # Who asks for vectors alone gets no words.
        query = parse_query("count zebra")
        assert find_seeds(reader, query, "", None, depth=20, definitions=True).candidates == set()


def test_definitions_are_not_looked_for_without_rules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = Library(tmp_path, deep(20), vectors=False, size=60)
    asked: list[str] = []
    lexical = SqliteReader.lexical

    def listened(self: SqliteReader, expression: str, **how: object) -> list[tuple[int, float]]:
        asked.append(expression)
        return lexical(self, expression, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(SqliteReader, "lexical", listened)
    match = parse_query("count zebra").match
    library.ask("count zebra", rules=NONE)
    assert asked == [match, f"symbols : ({match})"]
    asked.clear()
    library.ask("count zebra", rules=None)
    assert asked == [match]


def test_source_gives_back_what_several_passages_add(found: Found) -> None:
    """A share of what the other rules have made of the score, and nothing from prose."""
    source, prose = found.add("retry.py", 0.5), found.add("notes.md", 0.5, of=1)
    ruled = found.ruled("retry", RuleOptions())
    terms = ruled[source].terms
    assert terms["balance"] == pytest.approx(
        -RuleOptions().balance * (0.5 + terms["path"] + terms["file_name"])
    )
    assert "balance" not in ruled[prose].terms


def test_heat_does_not_give_back_what_a_role_took() -> None:
    terms = {"vector": 0.25, "heat": 0.75, "cap": -0.25}
    hop = Hop(1, 2, "import", 1.0)
    test, source = (
        Hit(at, path, 0, math.fsum(terms.values()), dict(terms), hops=(hop,))
        for at, path in enumerate(("tests/test_a.py", "src/a.py"))
    )
    lowered, kept = rule_heat("what is this", [test, source], only(secondary=0.5))
    assert kept == source
    assert lowered.terms == {**terms, "secondary": -0.5 * (0.75 - 0.25)}
    assert lowered.score == math.fsum(lowered.terms.values())
    assert rule_heat("how is this tested", [test], only(secondary=0.5)) == [test]

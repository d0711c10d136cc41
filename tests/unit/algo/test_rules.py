"""What names say about a question: expected shares are sums of the words' own weights."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pytest

from ragx.algo.rules import (
    AskedWords,
    asks_version,
    content_words,
    defines,
    defines_exactly,
    file_name_match,
    newer_path,
    path_share,
    read_asked,
    root,
    secondary_role,
    version_directory,
)

NOTHING = AskedWords({}, frozenset())


def asked(text: str, **n_of: int) -> AskedWords:
    """A question over 100 chunks; each word is in one of them, where `n_of` says nothing else."""
    return read_asked(text, 100, lambda words: [n_of.get(word, 1) for word in words])


def rarity(n: int, n_chunks: int = 100) -> float:
    return math.log(1 + (n_chunks - n + 0.5) / (n + 0.5))


# Roots.


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("parsing", "parser"),
        ("configuration", "configure"),
        ("errors", "error"),
        ("dispatcher", "dispatch"),
        ("retries", "retry"),
        ("retried", "retry"),
        ("caching", "cache"),
        ("writer", "writing"),
        ("comments", "comment"),
        ("settings", "setting"),
        ("tokenizer", "tokenize"),
        ("resolvers", "resolve"),
        ("deletion", "delete"),
        ("entities", "entity"),
        ("readable", "reader"),
    ],
)
def test_words_of_one_family_meet(one: str, other: str) -> None:
    assert root(one) == root(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("string", "strong"),
        ("string", "strand"),
        ("table", "tab"),
        ("user", "use"),
        ("message", "mess"),
        ("status", "state"),
        ("commit", "comment"),
        ("import", "important"),
        ("service", "server"),
        ("general", "generate"),
        ("number", "num"),
        ("ring", "red"),
    ],
)
def test_words_of_different_families_do_not_meet(one: str, other: str) -> None:
    assert root(one) != root(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("validation", "validate"),
        ("creation", "create"),
        ("generator", "generation"),
        ("authentication", "authenticate"),
        ("class", "classes"),
        ("process", "processes"),
        ("address", "addresses"),
        ("cookie", "cookies"),
        ("run", "running"),
        ("map", "mapping"),
        ("embed", "embedding"),
        ("render", "renderer"),
    ],
)
def test_more_words_of_one_family_meet(one: str, other: str) -> None:
    assert root(one) == root(other)


@pytest.mark.parametrize("word", ["", "a", "is", "ing", "ated", "des", "größe", "索引", "斑马"])
def test_a_short_or_foreign_word_keeps_enough_to_tell_it_by(word: str) -> None:
    assert word.startswith(root(word))
    assert len(root(word)) >= min(3, len(word))


# Questions.


def test_weights_are_shares_of_rarity() -> None:
    question = asked("the parser of retries", parser=9)
    whole = rarity(9) + rarity(1)
    assert question.weights == pytest.approx(
        {root("parser"): rarity(9) / whole, root("retries"): rarity(1) / whole}
    )


@pytest.mark.parametrize(
    "text",
    [
        "parser",
        "where is the parser",
        "parseConfig in HTTPServer",
        "索引 解析",
        "the of and",
        "naïve",
    ],
)
def test_weights_sum_to_one(text: str) -> None:
    weights = asked(text).weights
    assert math.fsum(weights.values()) == pytest.approx(1.0)
    assert min(weights.values()) > 0


def test_a_rare_word_weighs_more_and_one_that_is_everywhere_almost_nothing() -> None:
    weights = asked("zebra lion everywhere", zebra=1, lion=20, everywhere=100).weights
    zebra, lion, everywhere = (weights[root(word)] for word in ("zebra", "lion", "everywhere"))
    assert zebra > lion > everywhere > 0
    assert everywhere < 0.01


def test_a_count_above_the_number_of_chunks_is_that_number() -> None:
    assert asked("zebra lion", zebra=1000).weights == asked("zebra lion", zebra=100).weights


def test_words_of_one_root_count_once_with_the_rarest() -> None:
    whole = rarity(2) + rarity(1)
    assert asked("parsing parser zebra", parsing=50, parser=2).weights == pytest.approx(
        {root("parser"): rarity(2) / whole, root("zebra"): rarity(1) / whole}
    )


def test_stop_words_count_only_where_there_is_nothing_else() -> None:
    assert content_words("where is the parser") == ("parser",)
    assert content_words("the of the and") == ("the", "of", "and")
    assert asked("who am i").weights.keys() == {root("who"), "am", "i"}


@pytest.mark.parametrize("text", ["", " ", "!!! ...", "()"])
def test_a_question_without_words_has_no_weights_and_names_nothing(text: str) -> None:
    question = asked(text)
    assert question.weights == {}
    assert path_share(question, "src/parser.py") == 0
    assert file_name_match(question, "src/parser.py") == 0
    assert defines(question, ["parser"]) == 0
    assert not defines_exactly(question, ["parser"])


def test_an_empty_corpus_weighs_all_words_alike() -> None:
    weights = read_asked("zebra lion", 0, lambda words: [0] * len(words)).weights
    assert list(weights.values()) == [1 / 2, 1 / 2]


def test_of_a_very_long_question_a_bounded_number_of_words_is_looked_up() -> None:
    looked_up: list[str] = []

    def frequencies(words: Sequence[str]) -> list[int]:
        looked_up.extend(words)
        return [1] * len(words)

    question = read_asked(" ".join(f"word{i}" for i in range(10_000)), 100, frequencies)
    assert looked_up == [f"word{i}" for i in range(64)]
    assert len(question.weights) == 64


# Names written out.


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("retry", {"retry"}),
        ("load()", {"load"}),
        ("Retry", {"Retry"}),
        ("retry policy", set()),
        ("where is get_user used", {"get_user"}),
        ("where is getUser used", {"getUser"}),
        ("where is UserStore used", {"UserStore"}),
        ("where is `retry` used", {"retry"}),
        ("where is load() used", {"load"}),
        ("where is load(path) used", {"load"}),
        ("where is self.load() used", {"load"}),
        ("where is `Store.load` used", {"load"}),
        ("where is `Store.load()` used", {"load"}),
        ("use of _ and __ there", set()),
        ("The Parser of John", set()),
        ("a number 10_000 here", set()),
        ("two words: größe_max zählen", {"größe_max"}),
    ],
)
def test_identifiers_of_a_question(text: str, found: set[str]) -> None:
    assert asked(text).identifiers == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("where is `load(path)` used", {"load"}),
        ("where is HTTPServer used", {"HTTPServer"}),
    ],
)
def test_more_identifiers_of_a_question(text: str, found: set[str]) -> None:
    assert asked(text).identifiers == found


def test_a_name_written_out_is_matched_exactly() -> None:
    question = asked("where does `Store.load` fail")
    assert defines_exactly(question, ["save", "Store.load"])
    assert defines_exactly(question, ["Cache.load"])
    assert not defines_exactly(question, ["Load", "load_all", "Store", "load.all"])
    assert not defines_exactly(question, [])
    assert not defines_exactly(asked("where does load fail"), ["load"])


# Paths and file names.


def shares(question: AskedWords, *words: str) -> float:
    return math.fsum(question.weights[root(word)] for word in words)


def test_a_path_covers_the_words_of_its_directories_and_its_name() -> None:
    question = asked("http client retries", http=30, client=10)
    for path, words in {
        "http/client/retry.py": ("http", "client", "retries"),
        "http/retry.py": ("http", "retries"),
        "src/HttpClient/index.ts": ("http", "client"),
        "src/http_client.py": ("http", "client"),
        "a/b.py": (),
        "retry": ("retries",),
    }.items():
        assert path_share(question, path) == pytest.approx(shares(question, *words)), path


def test_a_file_name_that_says_more_matches_less() -> None:
    question = asked("client retries")
    one, both = shares(question, "retries"), shares(question, "client", "retries")
    for path, share, named, of in (
        ("x/retry.py", one, 1, 1),
        ("client/retry.py", one, 1, 1),  # directories do not count
        ("x/client_retry.py", both, 2, 2),
        ("x/retry_budget.py", one, 1, 2),
        ("x/retryBudgetTimer.ts", one, 1, 3),
        ("x/client-retry.budget.py", both, 2, 2),  # what follows a dot is an extension
        ("x/zebra.py", 0.0, 0, 1),
    ):
        expected = share * math.sqrt(named / of)
        assert file_name_match(question, path) == pytest.approx(expected), path


@pytest.mark.parametrize(
    "path", ["x/retry/index.ts", "x/retry/__init__.py", "x/retry/mod.rs", "retry/main.go"]
)
def test_an_entry_file_takes_its_directorys_name(path: str) -> None:
    question = asked("retry")
    assert file_name_match(question, path) == pytest.approx(1.0 * math.sqrt(1 / 2))
    assert file_name_match(question, path.rpartition("/")[2]) == 0


def test_another_file_does_not_take_its_directorys_name() -> None:
    assert file_name_match(asked("retry"), "retry/indexes.ts") == 0


@pytest.mark.parametrize(
    "path", ["retry.py", "retry.test.ts", "retry.d.mts", "retry.tar.gz", "retry", "a/.retry"]
)
def test_extensions_are_no_part_of_a_name(path: str) -> None:
    assert file_name_match(asked("retry"), path) == pytest.approx(1.0)


def test_names_are_folded_as_words_are() -> None:
    assert file_name_match(asked("größe"), "x/Größe.py") == pytest.approx(1.0)
    assert file_name_match(asked("uber"), "x/Über.py") == pytest.approx(1.0)
    assert file_name_match(asked("索引"), "x/索引.py") == pytest.approx(1.0)
    assert path_share(asked("解析"), "解析/a.py") == pytest.approx(1.0)


@pytest.mark.parametrize(
    "path", ["", "/", "//", "a//b.py", "/retry.py", "retry/", "./retry.py", "."]
)
def test_empty_parts_of_a_path_are_harmless(path: str) -> None:
    question = asked("retry zebra")
    expected = shares(question, "retry") if "retry" in path else 0.0
    assert path_share(question, path) == pytest.approx(expected)
    assert 0 <= file_name_match(question, path) <= expected


@pytest.mark.parametrize(
    "name", ["id_provider", "x_axis", "on_connection", "isVisible", "re_render"]
)
def test_a_word_of_a_name_may_hold_a_shorter_one(name: str) -> None:
    word = {"isVisible": "visible"}.get(name, name.rpartition("_")[2])
    question = asked(word)
    assert path_share(question, f"x/{name}.py") == pytest.approx(1.0)
    assert file_name_match(question, f"x/{name}.py") == pytest.approx(math.sqrt(1 / 2))
    assert defines(question, [name]) == pytest.approx(1 / 2)


def test_a_name_without_spaces_covers_its_own_question() -> None:
    assert path_share(asked("索引"), "索引.py") == pytest.approx(1.0)


# Definitions.


def test_a_defined_name_counts_by_what_it_covers_and_how_much_more_it_says() -> None:
    question = asked("load user settings", user=20)
    for symbols, words, named, of in (
        (["load_user_settings"], ("load", "user", "settings"), 3, 3),
        (["loadUser"], ("load", "user"), 2, 2),
        (["Store.load"], ("load",), 1, 1),  # a method by its own name
        (["load_cache"], ("load",), 1, 2),
        (["SettingsLoaderFactoryBean"], ("load", "settings"), 2, 4),
        (["zebra", "user"], ("user",), 1, 1),
        (["zebra"], (), 0, 1),
        ([], (), 0, 1),
    ):
        expected = shares(question, *words) * named / of
        assert defines(question, symbols) == pytest.approx(expected), symbols


def test_of_several_names_the_best_counts() -> None:
    question = asked("load user settings")
    names = ["user", "load_everything_else", "loadUserSettings", "settings"]
    best = max(defines(question, [name]) for name in names)
    assert best == defines(question, ["loadUserSettings"]) == pytest.approx(1.0)
    assert defines(question, names) == defines(question, names[::-1]) == best


# What files are for.

ROLES: Mapping[str, Sequence[str]] = {
    "test": (
        "tests/helpers.py test/a.go src/Tests/A.cs __tests__/a.js spec/a.rb fixtures/a.py"
        " __mocks__/fs.js pkg/testdata/a.go test_a.py x/conftest.py a_test.go a_test.py a_spec.rb"
        " a_test.exs a_test.dart a_test.cc a.test.ts a.spec.tsx a-test.js FooTest.java FooTests.cs"
        " FooSpec.scala FooIT.java FooTest.php FooTests.swift FooTest.kt"
    ).split(),
    "example": "examples/a.py example/a.go demo/a.js Demos/a.ts samples/a.cs tutorial/a.py".split(),
    "benchmark": "bench/a.rb benchmarks/a.py benchmark/a.go".split(),
    "documentation": "docs/conf.py doc/a.go website/docs/a.ts".split(),
    "vendored": (
        "vendor/a.go vendored/a.py pip/_vendor/a.py node_modules/a.js third_party/a.cc"
        " third-party/a.cc extern/a.c"
    ).split(),
    "generated": (
        "a.d.ts a.d.mts a.min.js a_pb2.py a_pb2_grpc.py a_pb2.pyi a.pb.go a.pb.cc a.generated.ts"
        " a_generated.go generated/a.py"
    ).split(),
    "old": "deprecated/a.py legacy/a.php Legacy/a.php old/a.py compat/a.js _compat/a.py".split(),
}


@pytest.mark.parametrize(("role", "path"), [(r, p) for r, paths in ROLES.items() for p in paths])
def test_secondary_source_files(role: str, path: str) -> None:
    assert secondary_role(NOTHING, path, code=True) == role
    assert secondary_role(NOTHING, f"deep/down/{path}", code=True) == role
    # A page about tests is no test.
    assert secondary_role(NOTHING, path, code=False) == ""


@pytest.mark.parametrize(
    "path",
    "CHANGELOG CHANGELOG.md change_log.rst Changes.txt CHANGES HISTORY.md NEWS NEWS.md"
    " release-notes.md RELEASE_NOTES.txt whatsnew.rst CHANGELOG-2.x.md".split(),
)
def test_changelogs_are_secondary_as_prose(path: str) -> None:
    assert secondary_role(NOTHING, path, code=False) == "changelog"
    assert secondary_role(NOTHING, f"packages/x/{path}", code=False) == "changelog"


@pytest.mark.parametrize(
    "path",
    "latest.py latest/a.py contest.js contests/a.py testimonials.ts specification.py"
    " attest/attest.go protest_.py documents/models.py documentary.py oldenburg.py household/a.py"
    " threshold/a.py benchpress.py workbench/a.ts demography/a.py democracy.py sampler/a.py"
    " resample.py vendors.py vending/machine.py degenerated/a.py regenerate.py legacyless.py"
    " compatible/a.py examplesque/a.py Manifest.java Latest.java Contest.java Audit.java Request.cs"
    " inspect.go inspector/spec_reader.py pub.go admin.ts mind.ts renewschedule.py historian.py"
    " exchange.py interchanges.go prehistory.ts newsletter.py testing.go tester.rb"
    " docstring.py".split(),
)
def test_part_of_a_word_makes_no_file_secondary(path: str) -> None:
    assert secondary_role(NOTHING, path, code=True) == ""


@pytest.mark.parametrize(
    "path",
    "latest-news-room.md specification.md histories.md newsletter.md exchange.md changes/a.md"
    " tests/README.md docs/guide.md examples/a.md legacy/notes.md vendor/README.md".split(),
)
def test_other_prose_is_not_secondary(path: str) -> None:
    assert secondary_role(NOTHING, path, code=False) == ""


@pytest.mark.parametrize("path", ["docs/release-notes.md", "docs/CHANGES.rst", "doc/NEWS.md"])
def test_a_changelog_among_the_documentation_is_secondary(path: str) -> None:
    assert secondary_role(NOTHING, path, code=False) == "changelog"


@pytest.mark.parametrize(
    "path",
    "src/history.ts history.go news.py lib/changes.rb src/changes/changes.go news.component.ts"
    " history-panel.tsx".split(),
)
def test_source_about_history_or_news_is_no_changelog(path: str) -> None:
    assert secondary_role(NOTHING, path, code=True) == ""


@pytest.mark.parametrize("path", ["history-of-rome.md", "news-feed.md", "changes-in-policy.md"])
def test_an_article_about_history_is_no_changelog(path: str) -> None:
    assert secondary_role(NOTHING, path, code=False) == ""


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("test of the parser", "tests/parser.py"),
        ("tests for the parser", "parser_test.go"),
        ("testing the parser", "test_parser.py"),
        ("parser fixtures", "fixtures/parser.py"),
        ("mock of the parser", "__mocks__/parser.js"),
        ("parser spec", "spec/parser.rb"),
        ("an example of parsing", "examples/parser.py"),
        ("parser demo", "examples/parser.py"),
        ("benchmark the parser", "bench/parser.rb"),
        ("parser performance", "benchmarks/parser.py"),
        ("docs of the parser", "docs/parser.py"),
        ("vendored parser", "vendor/parser.go"),
        ("third party parser", "third_party/parser.cc"),
        ("generated parser", "generated/parser.py"),
        ("type declarations of the parser", "parser.d.ts"),
        ("legacy parser", "legacy/parser.py"),
        ("deprecated parser", "old/parser.py"),
    ],
)
def test_what_is_asked_for_is_not_secondary(text: str, path: str) -> None:
    assert secondary_role(asked(text), path, code=True) == ""
    assert secondary_role(asked("parser"), path, code=True) != ""


@pytest.mark.parametrize(
    "text", ["what changed: changelog", "release history", "what is new", "news"]
)
def test_a_changelog_that_is_asked_for_is_not_secondary(text: str) -> None:
    assert secondary_role(asked(text), "CHANGELOG.md", code=False) == ""
    assert secondary_role(asked("parser"), "CHANGELOG.md", code=False) == "changelog"


def test_what_asks_for_one_role_does_not_ask_for_another() -> None:
    assert secondary_role(asked("test the parser"), "vendor/parser.go", code=True) == "vendored"
    assert secondary_role(asked("vendored parser"), "tests/parser.py", code=True) == "test"


# Versions.


@pytest.mark.parametrize(
    ("path", "directory"),
    [
        ("api/v1/users.py", "api/v1"),
        ("v2/users.py", "v2"),
        ("a/b/v10/c/users.py", "a/b/v10"),
        ("api/v1/sub/v2/users.py", "api/v1"),
        ("api/v1.py", ""),
        ("api/v1", ""),
        ("dev1/users.py", ""),
        ("v1beta1/users.py", ""),
        ("api/v2024/users.py", ""),
        ("api/vx/users.py", ""),
        ("users.py", ""),
        ("", ""),
    ],
)
def test_the_directory_that_is_a_version(path: str, directory: str) -> None:
    assert version_directory(path) == directory


@pytest.mark.parametrize(
    ("path", "newer"),
    [
        ("api/v1/users.py", ("api/v2/users.py", "api/v3/users.py", "api/users.py")),
        ("v1/a/b.go", ("v2/a/b.go", "v3/a/b.go", "a/b.go")),
        ("api/v9/a.go", ("api/v10/a.go", "api/v11/a.go", "api/a.go")),  # by number, not by letter
        ("api/v10/a.go", ("api/v11/a.go", "api/v12/a.go", "api/a.go")),
        ("api/users.py", ()),
        ("api/v1.py", ()),
        ("", ()),
    ],
)
def test_what_would_replace_a_file_of_a_version(path: str, newer: tuple[str, ...]) -> None:
    assert newer_path(path) == newer


def test_a_long_token_is_data_and_takes_no_time() -> None:
    """Each of these once took a minute: a token is looked at once, whatever its length."""
    for token in ("x" * 100_000, "x" + "er" * 50_000, "x(" * 50_000, "`" + "a." * 50_000):
        found = read_asked(f"cache {token}", 10, lambda words: [1] * len(words))
        assert root("cache") in found.weights
        assert root(token) == token
        defines(found, [token])
        path_share(found, f"{token[:2000]}/{token[:2000]}.py")  # no system has longer paths


@pytest.mark.parametrize("text", ["session v1", "API version 1 session", "what does V2 change"])
def test_a_question_may_ask_for_a_version(text: str) -> None:
    assert asks_version(text)


@pytest.mark.parametrize("text", ["session", "which version is this", "vv1", "review1"])
def test_other_questions_ask_for_none(text: str) -> None:
    assert not asks_version(text)


def test_a_package_called_example_is_no_example() -> None:
    assert secondary_role(NOTHING, "src/main/java/com/example/shop/Invoice.java", code=True) == ""
    assert secondary_role(NOTHING, "examples/shop/Invoice.java", code=True) == "example"


@pytest.mark.parametrize("path", ["news.md", "history.md", "changes.md", "notes/releases.md"])
def test_a_note_by_an_everyday_name_is_no_changelog(path: str) -> None:
    assert secondary_role(NOTHING, path, code=False) == ""

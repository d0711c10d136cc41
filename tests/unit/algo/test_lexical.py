"""Analysis and query parsing against a real full-text table with the schema's tokenizer."""

from __future__ import annotations

import sqlite3
import sys
import time
import unicodedata
from collections.abc import Callable, Iterator

import pytest

from ragx.algo.lexical import _WORD, analyse, fold, parse_query, query_terms
from ragx.store import schema

Finds = Callable[[str, str], bool]


@pytest.fixture
def table() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    schema.create(connection)
    yield connection
    connection.close()


@pytest.fixture
def finds(table: sqlite3.Connection) -> Finds:
    """Whether a query, parsed as the search does it, finds a text."""

    def found(text: str, question: str) -> bool:
        table.execute("INSERT INTO postings (postings) VALUES ('delete-all')")
        table.execute("INSERT INTO postings (rowid, body) VALUES (1, ?)", (analyse(text),))
        query = parse_query(question)
        match = f"({query.match}) NOT ({query.exclude})" if query.exclude else query.match
        if not match:
            return False
        rows = table.execute("SELECT rowid FROM postings WHERE postings MATCH ?", (match,))
        return bool(rows.fetchall())

    return found


def test_analysis_by_hand() -> None:
    assert analyse("") == analyse(" \n\t ") == analyse("... --- !!!") == ""
    assert analyse("Hello, World") == "hello world"
    assert analyse("getUserName") == "getusername get user name"
    assert analyse("HTTPServer") == "httpserver http server"
    assert analyse("snake_case __init__ _x_") == "snake_case snake case __init__ init _x_ x"
    assert analyse("MAX_SIZE") == "max_size max size"
    assert analyse("Naïve CAFÉ straße") == "naive cafe strasse"
    assert analyse("東京都") == "東京 京都 都"
    assert analyse("v2 2026") == "v2 2026"


@pytest.mark.parametrize(
    ("text", "question"),
    [
        # HOSTILE: FTS syntax in plain text: `POL-358`, `a'b`, `"`, `NEAR(`, `col:x`, ...
        ("see POL-358 for it", "POL-358"),
        ("the a'b case", "a'b"),
        ("we said NEAR( here", "NEAR("),
        ("set col:x now", "col:x"),
        ("that is foo AND more", "foo AND"),
        ("we write ^x here", "^x"),
        ("an 🐘 here", "🐘"),
        ("body: thing", "body:thing"),
        ("{a b}: thing", "{a b}:thing"),
        ("it said OR", "OR"),
        ("it said NOT", "NOT"),
        ('a "b c', 'a "b c'),
        ("a) (b", "a) (b"),
        ("a+b", "a+b"),
        # HOSTILE: `2026.4.10`, `snake_case`, `real-time`, `grammar::fa` found as written.
        ("release 2026.4.10 is out", "2026.4.10"),
        ("call snake_case now", "snake_case"),
        ("a real-time thing", "real-time"),
        ("use grammar::fa::x", "grammar::fa"),
        ("foo.bar_baz(1)", "foo.bar_baz"),
        ("path/to/some-file.txt", "path/to/some-file.txt"),
        ("getUserName()", "getUserName"),
        ("getUserName()", "getUser"),
        ("XMLHttpRequest", "http"),
        ("C++ and C#", "C++"),
        ("don't stop", "don't"),
        ("don’t stop", "don't"),
        ("__init__", "init"),
        ("port 8080/tcp", "8080"),
        ("0x1F600", "0x1f600"),
        ("naïve café", "naive cafe"),
        ("naive cafe", "naïve"),
        (unicodedata.normalize("NFD", "Škoda žluťoučký"), "Škoda"),
        ("Škoda", unicodedata.normalize("NFD", "škoda")),
        ("STRASSE", "straße"),
        ("ΣΊΣΥΦΟΣ", "σίσυφος"),
        ("ＦＵＬＬ width", "full"),
        ("ﬁle", "file"),
        ("İstanbul", "istanbul"),
        ("running", "runs"),
        ("❤️ love", "❤"),
        ("👩‍👩‍👧 family", "👧"),
        ("✅ done", "✅"),
        ("a → b", "→"),
        ("1️⃣ first", "1️⃣"),
        # HOSTILE: CJK, Thai: two-character query finds nothing in the lexical index.
        ("我们讨论了数据库的迁移", "数据"),
        ("我们讨论了数据库的迁移", "迁移"),
        ("我们讨论了数据库的迁移", "移"),
        ("我们讨论了数据库的迁移", "我"),
        ("我们讨论了数据库的迁移", "数据库的迁移"),
        ("東京タワー", "タワ"),
        ("ｶﾀｶﾅ", "カタ"),
        ("データベース", "ベース"),
        ("ประเทศไทยสวยงาม", "ไทย"),
        ("ประเทศไทยสวยงาม", "สว"),
        ("ประเทศไทยสวยงาม", "ป"),
        ("대한민국 정부", "민국"),
        ("ភាសាខ្មែរ", "ខ្មែរ"),
        ("မြန်မာ", "မြန်"),
        ("हिन्दी भाषा", "भाषा"),
        ("हिन्दी भाषा", "हिन्दी"),
        ("தமிழ் மொழி", "தமிழ்"),
        ("עִבְרִית", "עברית"),
        ("اَلْعَرَبِيَّةُ", "العربية"),
        ("日本語API設計", "API"),
        ("日本語API設計", "日本語API"),
        ("日本語API設計", "設計"),
        ("𠮷野家", "𠮷野"),
    ],
)
def test_found_as_written(finds: Finds, text: str, question: str) -> None:
    assert finds(f"before {text} after", question)
    assert not finds("something else entirely", question)


@pytest.mark.parametrize("question", ["*", '"', '""', "'", "()", "^", "...", "-", "--", ":", "\0"])
def test_nothing_but_signs_asks_for_nothing(question: str) -> None:
    query = parse_query(question)
    assert (query.match, query.phrases, query.exclude) == ("", (), "")
    assert query.plain == question.strip()


def test_every_word_character_there_is_can_be_found(table: sqlite3.Connection) -> None:
    """SQLite's own Unicode tables are older than Python's: a term that they split is lost."""
    chars = [
        chr(code)
        for code in range(sys.maxunicode + 1)
        if not 0xD800 <= code < 0xE000 and _WORD.fullmatch(chr(code))
    ]
    uniform = [("\u3400", "\ud7ff"), ("\U00017000", "\U00018cff"), ("\U00020000", "\U0003ffff")]
    chars = [
        char
        for i, char in enumerate(chars)
        if i % 37 == 0 or (i % 3 == 0 and not any(first <= char <= last for first, last in uniform))
    ]
    table.execute("BEGIN")
    table.executemany(
        "INSERT INTO postings (rowid, body) VALUES (?, ?)",
        ((ord(c), analyse(f"alpha {c} omega")) for c in chars),
    )
    table.execute("COMMIT")
    lost = []
    for char in chars:
        query = parse_query(char)
        found = (
            query.match
            and table.execute(
                "SELECT 1 FROM postings WHERE postings MATCH ? AND rowid = ?",
                (query.match, ord(char)),
            ).fetchone()
        )
        # A mark without a letter below it folds to nothing, which is no loss.
        mark_alone = not analyse(char)
        if not found and not mark_alone and not _is_mark(char):
            lost.append(f"{char!r} {unicodedata.name(char, '?')}")
    assert lost == []


def _is_mark(char: str) -> bool:
    """A diacritic on its own, also in its isolated presentation form."""
    parts = unicodedata.normalize("NFKD", char)
    return all(unicodedata.category(part) in ("Mn", "Cf", "Zs") for part in parts)


def test_terms_never_hold_what_fts_would_read_as_syntax() -> None:
    everything = "\n".join(
        chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000
    )
    assert set(analyse(everything)) & set('"\0\n\r\t') == set()


# Operators: "a phrase" and -word, nothing else.


def test_a_phrase_stands_together(finds: Finds) -> None:
    assert finds("the quick brown fox", '"quick brown"')
    assert not finds("brown and quick", '"quick brown"')
    assert finds("running dogs", '"run dog"')  # stemmed like everything else
    assert finds("set snake_case here", '"set snake_case here"')


def test_a_phrase_among_words_ranks_and_does_not_filter(finds: Finds) -> None:
    assert finds("brown and quick", 'fox "quick brown"')
    assert parse_query('fox "quick brown"').phrases == ('"quick brown"',)


def test_words_to_leave_out(finds: Finds) -> None:
    assert finds("kubernetes with kustomize", "kubernetes -helm")
    assert not finds("kubernetes with helm", "kubernetes -helm")
    assert not finds("kubernetes with getUserName", "kubernetes -getUserName")


@pytest.mark.parametrize(
    "question",
    [
        "a--b",
        "real-time",
        "x -1",
        "x - y",
        "x -5.3",
        "pages 3-7",
        "foo-",
        "-",
        "a -- b",
        "state-of",
    ],
)
def test_a_hyphen_elsewhere_is_no_operator(question: str) -> None:
    assert parse_query(question).exclude == ""


@pytest.mark.parametrize("question", ['5" pipe', "it's 6'2\" tall", 'say "', 'a"b"c', '""', '"  "'])
def test_a_quote_elsewhere_is_no_operator(finds: Finds, question: str) -> None:
    assert parse_query(question).phrases == ()


def test_the_plain_question_keeps_no_operator() -> None:
    assert parse_query('why "switch tools" -npm now').plain == "why switch tools now"
    assert parse_query("  spaced   out ").plain == "spaced   out"


def test_words_without_topic_count_only_alone(finds: Finds) -> None:
    assert parse_query("what is the zebra").match == '"zebra"'
    assert finds("to be or not to be", "to be or not to be")
    assert finds("the who", '"the who"')


def test_query_terms_for_highlighting() -> None:
    assert query_terms("What is the userName of the user") == ("username", "user", "name")
    assert query_terms("the the") == ("the",)
    assert query_terms("") == ()


def test_long_queries_are_bounded_and_quick(finds: Finds) -> None:
    words = " ".join(f"word{i}" for i in range(12_000))
    started = time.perf_counter()
    assert finds("here is word7", words)
    assert time.perf_counter() - started < 2


def test_a_long_query_is_used_to_its_end(finds: Finds) -> None:
    filler = " ".join(f"unknown{i}" for i in range(450))
    assert finds("a zebra crossed", f"{filler} zebra")


def test_the_phrase_of_one_token_is_bounded() -> None:
    """A row of numbers without spaces, as data files hold them: FTS5 takes quadratic time."""
    longest = max(parse_query("0," * 15_000).match.split(" OR "), key=len)
    assert len(longest.split()) <= 1000


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("東京都庁舎", '"東京都"'),
        ("我们讨论了数据库的迁移", '"数据库"'),
        ("ที่ประเทศไทยสวย", '"ประเทศ"'),
        ("대한민국정부는", '"대한민국"'),
        ("東京都庁舎", '"都"'),
    ],
)
def test_a_phrase_in_an_unspaced_script(finds: Finds, text: str, question: str) -> None:
    assert finds(text, question)


def test_a_word_to_leave_out_in_an_unspaced_script(finds: Finds) -> None:
    assert not finds("tower 東京都庁舎", "tower -東京都")


@pytest.mark.parametrize("word", ["v2", "snake_case", "हिन्दी", "cafe\u0301", "ab", "re-use", "🐘"])
def test_any_word_can_be_left_out(finds: Finds, word: str) -> None:
    assert not finds(f"tower {word} here", f"tower -{word}")


def test_a_phrase_may_hold_a_hyphened_word(finds: Finds) -> None:
    assert finds("run grep -rin foo here", '"grep -rin foo"')


@pytest.mark.parametrize("word", ["대한민국", "한국어"])
def test_decomposed_hangul_is_found_by_composed(finds: Finds, word: str) -> None:
    assert finds(f"{unicodedata.normalize('NFD', word)} 정부", word)


@pytest.mark.parametrize("mark", ["\u037a", "\u00b4", "\ufe49"])
def test_a_mark_that_stands_alone_is_no_word(mark: str) -> None:
    assert fold(mark) == ""
    assert analyse(f"zebra {mark} lion") == "zebra lion"

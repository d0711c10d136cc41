"""Names of chunks and the texts that hold them, kept in step by commits that touch either."""

from __future__ import annotations

import sqlite3
import unicodedata
from contextlib import closing
from typing import Any

import pytest

from ragx.algo.lexical import analyse
from ragx.algo.mentions import name_key
from ragx.store import linking
from ragx.store.linking import MAX_BEARERS, SYMBOL, TITLE


def mentions(bench: Any) -> list[str]:
    """What is mentioned, as the texts say it, sorted."""
    with closing(sqlite3.connect(bench.root / ".ragx" / "index.db")) as db:
        return sorted(
            text
            for (text,) in db.execute(
                "SELECT substr(c.text, m.char_start + 1, m.char_end - m.char_start)"
                " FROM mentions m JOIN chunks c USING (chunk_id)"
            )
        )


# What is stored.


def test_a_title_a_symbol_and_where_they_stand(bench: Any) -> None:
    bench.commit(
        {
            "panda.md": [bench.Piece("Eats bamboo.", names=("Red Panda",))],
            "lib.py": [bench.Piece("def compute_total(): ...", symbols=("compute_total",))],
            "x.md": [bench.Piece("The red panda calls `compute_total`.")],
        }
    )
    # The definition itself holds the name, too; that makes no edge.
    assert mentions(bench) == ["compute_total", "compute_total", "red panda"]
    rows = {(row[2], row[3]) for row in bench.rows()["mentions"]}
    assert (4, 13) in rows


def test_names_that_say_nothing_are_not_stored(bench: Any) -> None:
    bench.commit(
        {
            "a.md": [bench.Piece("Text.", names=("Introduction", "12", "a"), symbols=("get", "f"))],
            "b.md": [bench.Piece("Introduction 12 a get f")],
        }
    )
    assert bench.rows()["names"] == bench.rows()["mentions"] == []


def test_a_number_stands_for_kind_and_key() -> None:
    numbers = {linking.name_number(kind, key) for kind in (TITLE, SYMBOL) for key in ("a", "b")}
    assert len(numbers) == 4
    assert all(0 <= number < 2**63 for number in numbers)
    assert linking.name_number(TITLE, "\ud800") >= 0  # what a file name of odd bytes gives


def test_of_names_inside_each_other_the_longest_counts(bench: Any) -> None:
    tree = {
        "a.md": [bench.Piece("One.", names=("Red Panda",))],
        "x.md": [bench.Piece("On the red panda farm yard.")],
    }
    bench.commit(tree)
    assert mentions(bench) == ["red panda"]
    bench.commit({"b.md": [bench.Piece("Two.", names=("Panda Farm Yard",))]})
    assert mentions(bench) == ["red panda"]
    bench.commit({"c.md": [bench.Piece("Three.", names=("Red Panda Farm",))]})
    assert mentions(bench) == ["red panda farm"]
    bench.commit({"a.md": None})
    assert mentions(bench) == ["red panda farm"]
    bench.commit({"c.md": None})
    assert mentions(bench) == ["panda farm yard"]


def test_source_code_mentions_titles_of_several_words_only(bench: Any) -> None:
    bench.commit(
        {
            "a.md": [bench.Piece("One.", names=("Quagga",))],
            "b.md": [bench.Piece("Two.", names=("Red Panda",))],
            "x.py": [bench.Piece("# see Quagga and Red Panda")],
            "x.md": [bench.Piece("see Quagga and Red Panda")],
        }
    )
    assert mentions(bench) == ["Quagga", "Red Panda", "Red Panda"]


def test_prose_uses_a_symbol_only_where_it_looks_like_one(bench: Any) -> None:
    bench.commit(
        {
            "lib.py": [bench.Piece("...", symbols=("compute_total", "gallop"))],
            "x.md": [bench.Piece("Zebras gallop; compute_total does not.")],
            "y.md": [bench.Piece("Call `gallop()` now.")],
            "z.py": [bench.Piece("gallop()")],
        }
    )
    assert mentions(bench) == ["compute_total", "gallop", "gallop"]


# Few bearers.


@pytest.mark.parametrize("kind", ["title", "symbol"])
def test_a_name_stops_and_starts_counting(bench: Any, kind: str) -> None:
    def bearer(i: int) -> Any:
        if kind == "title":
            return [bench.Piece(f"Text {i}.", names=("Red Panda",))]
        return [bench.Piece(f"Text {i}.", symbols=("red_panda",))]

    ending = "md" if kind == "title" else "py"
    said = "red panda" if kind == "title" else "red_panda"
    bench.commit({"x.md": [bench.Piece(f"On the {said}."), bench.Piece("Else.")]})
    assert mentions(bench) == []
    for i in range(MAX_BEARERS):
        bench.commit({f"{i}.{ending}": bearer(i)})
        assert mentions(bench) == [said], i
    bench.commit({f"more.{ending}": bearer(9)})
    assert mentions(bench) == []
    # A text that comes while the name does not count is found as soon as it does.
    bench.commit({"y.md": [bench.Piece(f"Another {said}.")]})
    assert mentions(bench) == []
    bench.commit({f"0.{ending}": None})
    assert mentions(bench) == [said, said]
    # One goes and one comes in the same run: it counts all the while.
    bench.commit({f"1.{ending}": None, f"again.{ending}": bearer(1)})
    assert mentions(bench) == [said, said]
    bench.commit({f"{i}.{ending}": bearer(i) for i in range(3)})
    assert mentions(bench) == []
    bench.commit({path: None for path in bench.tree if path.endswith(ending) and path != "x.md"
                  and path != "y.md"})  # fmt: skip
    assert mentions(bench) == []


def test_a_rename_moves_a_name(bench: Any) -> None:
    pieces = [bench.Piece("Text.", names=("Red Panda",))]
    bench.commit({"a.md": pieces, "x.md": [bench.Piece("A red panda.")]})
    before = bench.id_of("a.md")
    bench.commit({"a.md": None, "sub/a.md": pieces})
    assert mentions(bench) == ["red panda"]
    assert bench.edges("mention").keys() == {("sub/a.md", "x.md")}
    assert bench.id_of("sub/a.md") != before
    bench.commit({"x.md": None, "y/x.md": [bench.Piece("A red panda.")]})
    assert bench.edges("mention").keys() == {("sub/a.md", "y/x.md")}


def test_equal_texts_are_read_each(bench: Any) -> None:
    text = [bench.Piece("A red panda."), bench.Piece("A red panda.")]
    bench.commit({"x.md": text, "y.md": text})
    bench.commit({"a.md": [bench.Piece("Text.", names=("Red Panda",))]})
    assert mentions(bench) == ["red panda"] * 4
    bench.commit({"y.md": text[:1]})
    assert mentions(bench) == ["red panda"] * 3


# Reading again what the full text finds.

NAMES = [
    "Red Panda",
    "getUserName Guide",
    "snake_case things",
    "日本語",
    "日本語の本",
    "東京 Tower",
    "Tower東京x",
    "가나다",
    "ㄱㄴㄷ순",
    "น้ำตาล",
    "ﾊﾝｶｸ ｶﾞｷﾞ",
    "Café Crème",
    unicodedata.normalize("NFD", "Café Crème"),
    unicodedata.normalize("NFD", "각시탈 영화"),
    "½ Pint",
    "a\u3220 Zebra",
    "\u3280\u3281 Zebra",
    "2½ Men",
    "Co\u0140lecció d'art",
    "Straße Nord",
    "İstanbul Guide",
    "\ufb01le names",
    "\U0001e900\U0001e901\U0001e902 Adlam",
    "\U0001e900\U0001e901\U0001e902",
    "\U00030000\U00030001",
    "क्षेत्र मानचित्र",
    "עִבְרִית שפה",
    "\u06dd\u06dd Zebra",
    "ﷺ Zebra",
]


@pytest.mark.parametrize("name", NAMES, ids=ascii)
@pytest.mark.parametrize("full_scan", [400, -1])
def test_a_title_that_appears_and_goes(
    bench: Any, monkeypatch: pytest.MonkeyPatch, name: str, full_scan: int
) -> None:
    """However the names' chunks are found, no text that holds one is missed."""
    monkeypatch.setattr(linking, "_FULL_SCAN", full_scan)
    around = ["see «{}» there", "{}", "x {}, y", "前{}後", "`{}`"]
    said = {
        f"x{i}.md": [bench.Piece(form.format(unicodedata.normalize(normal, name)))]
        for i, (form, normal) in enumerate((form, n) for form in around for n in ("NFC", "NFD"))
    }
    bench.commit(said)
    bench.commit({"a.md": [bench.Piece("Text.", names=(name,))]})
    found = bench.rows()["mentions"]
    bench.commit({"a.md": None})
    assert bench.rows()["mentions"] == []
    bench.commit({"b.md": [bench.Piece("Text.", names=(name,))]})
    assert bench.rows()["mentions"] == found
    if name_key(name) and "ﷺ" not in name:
        assert found


def test_radicals_stand_for_characters(bench: Any) -> None:
    """What tools write that take text out of PDF files."""
    bench.commit({"x.md": [bench.Piece("see \u2f47\u672c\u8a9e there")]})
    bench.commit({"a.md": [bench.Piece("Text.", names=("\u65e5\u672c\u8a9e",))]})


SYMBOLS = [
    "compute_total",
    "getUserName",
    "_private_name",
    "ZebraStripe",
    "計算_する",
    "日本語処理",
    "処理ForAll",
    "naïve_sum",
    "größteZahl",
    "ａｂｃｄ",
    "\u3131\u3134_\u3137",
    unicodedata.normalize("NFD", "\uac01\uc2dc_\ud0c8"),
    "\U0001e900\U0001e901\U0001e902\U0001e903",
]


@pytest.mark.parametrize("name", SYMBOLS, ids=ascii)
def test_a_symbol_that_appears_and_goes(bench: Any, name: str) -> None:
    bench.commit(
        {
            "x.py": [bench.Piece(f"return {name}(1)")],
            "y.py": [bench.Piece(f"x.{name.upper()} = {name}")],
            "x.md": [bench.Piece(f"call `{name}` there, or 前{name}後")],
        }
    )
    bench.commit({"lib.py": [bench.Piece("...", symbols=(name,))]})
    assert len(bench.rows()["mentions"]) == 3
    bench.commit({"lib.py": None})
    assert bench.rows()["mentions"] == []


def test_the_expression_of_a_name() -> None:
    assert linking._expression(TITLE, "red panda red") == '"red" AND "panda"'
    assert linking._expression(TITLE, name_key("日本 Tower")) == '"日"* AND "本"* AND "tower"'
    assert linking._expression(SYMBOL, "getUserName") == '"getusername"'
    assert linking._expression(SYMBOL, "計算_x") == '"計"* AND "算"*'
    # A name that the index may not hold: every chunk has to be read.
    assert linking._expression(TITLE, name_key("\U0001e900\U0001e901")) == ""
    assert linking._expression(TITLE, name_key("\u3131\u3134")) == ""


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_the_expression_matches_the_name(name: str) -> None:
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute(
            "CREATE VIRTUAL TABLE postings USING fts5 (body, tokenize ="
            " \"porter unicode61 remove_diacritics 0 categories 'L* N* M* S* P* Co'\")"
        )
        db.execute("INSERT INTO postings VALUES (?)", (analyse(f"x {name} y 日{name}本"),))
        expression = linking._expression(TITLE, name_key(name))
        if expression:
            found = db.execute("SELECT 1 FROM postings WHERE postings MATCH ?", (expression,))
            assert found.fetchall() == [(1,)]


def test_a_commit_that_changes_no_chunk_reads_none(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.commit(
        {"a.md": [bench.Piece("Text.", names=("Red Panda",))], "x.md": [bench.Piece("Red panda.")]}
    )
    read: list[str] = []
    scan = linking.MentionUpdate._scan

    def spy(self: Any, which: str) -> None:
        read.extend(
            text
            for (text,) in self.db.execute(
                f"SELECT text FROM chunks WHERE chunk_id IN ({which}) ORDER BY text"
            )
        )
        scan(self, which)

    with monkeypatch.context() as patch:
        patch.setattr(linking.MentionUpdate, "_scan", spy)
        bench._run(bench.root, {}, relink=False)
        assert read == []
        # A name that neither comes nor goes makes nobody read again.
        bench._run(bench.root, {"a.md": [bench.Piece("Else.", names=("Red Panda",))]}, relink=False)
        assert read == ["Else."]
        bench._run(bench.root, {"b.md": [bench.Piece("B.", names=("Quagga",))]}, relink=False)
        assert read == ["Else.", "B."]

"""Names in running text, by table."""

from __future__ import annotations

import time
import unicodedata

import pytest

from ragx.algo.mentions import (
    Mention,
    NameTree,
    find_symbols,
    is_code_like,
    is_telling,
    is_telling_symbol,
    name_key,
)


def found(names: list[str], text: str) -> list[str]:
    """The characters that stand for each mention."""
    return [text[m.start : m.end] for m in NameTree(map(name_key, names)).find(text)]


# Keys.


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("", ""),
        ("...", ""),
        ("Zebra", "zebra"),
        ("New York", "new york"),
        (" New-York,\n(city) ", "new york city"),
        ("snake_case", "snake_case"),
        ("getUserName", "getusername"),
        ("Müller", "muller"),
        ("Mu\u0308ller", "muller"),
        ("Straße", "strasse"),
        ("STRASSE", "strasse"),
        ("日本", "日 本"),
        ("한국", "한 국"),
        (unicodedata.normalize("NFD", "한국"), "한 국"),
        ("GPTモデル", "gpt モ デ ル"),
        ("ﾃﾞｰﾀ", "デ ー タ"),
        ("データ", "デ ー タ"),
        ("\u200d", ""),  # a mark alone folds to nothing
    ],
)
def test_keys(name: str, key: str) -> None:
    assert name_key(name) == key


def test_a_key_is_its_own_key() -> None:
    for name in ("New-York", "Straße", "Müller", "日本 GPT-4", "ﾃﾞｰﾀ"):
        assert name_key(name_key(name)) == name_key(name)


@pytest.mark.parametrize(
    ("name", "telling"),
    [
        ("", False),
        ("zebra", True),
        ("New York", True),
        ("The", False),
        ("of the", False),
        ("The Zebra", True),
        ("README", False),
        ("Introduction", False),
        ("Table of Contents", False),
        ("Getting Started", False),
        ("Test Results 2024", False),
        ("Zebra Overview", True),
        ("2024", False),
        ("2024-01-31", False),
        ("1.2.3", False),
        ("Version 2", False),
        ("Windows 11", True),
        ("Go", False),  # one short word
        ("C", False),
        ("Go Fish", True),
        ("ab", False),
        ("abc", True),
        ("東京", True),
        ("東", False),
        ("ÅÄ", False),  # "aa" once folded
        ("да", True),
        ("ไทย", True),
        (" ".join(f"word{i}" for i in range(12)), True),
        (" ".join(f"word{i}" for i in range(13)), False),
    ],
)
def test_which_names_tell_something(name: str, telling: bool) -> None:
    assert is_telling(name_key(name)) is telling


# One word.


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # A capital where none is due.
        ("we saw the Zebra today", ["Zebra"]),
        ("we saw the ZEBRA today", ["ZEBRA"]),
        ("of (Zebra) and others", ["Zebra"]),
        ("a, Zebra", ["Zebra"]),
        # A common word.
        ("we saw the zebra today", []),
        ("(zebra)", []),
        # Where any word has a capital.
        ("Zebra runs", []),
        ("It ran. Zebra followed", []),
        ("It ran! Zebra followed", []),
        ('He said: "Zebra followed"', []),
        ("- one\n- Zebra two", []),
        ("line one\nZebra two", []),
        ("line one\n    Zebra two", []),
        ("## Zebra", []),
        ("| a | Zebra |", []),
        ("> Zebra", []),
        ("終わり。Zebra", []),
        # Marked as a name.
        ("`zebra`", ["zebra"]),
        ("the `zebra` there", ["zebra"]),
        ("[zebra](x.md)", ["zebra"]),
        ("[[zebra]]", ["zebra"]),
        ("It ran. *Zebra* followed", ["Zebra"]),
        ("“zebra”", ["zebra"]),
        ("'zebra' <zebra>", ["zebra"]),
        # Only on one side, or as part of something else.
        ("zebra`", []),
        ("the `zebra herd`", []),
        ("zebras and the Zebras", []),
        ("a prefixZebra", []),
        ("the Zebra_x", []),
        # The first place that shows it.
        ("Zebra runs. The zebra, or Zebra, runs", ["Zebra"]),
        ("Zebra runs. A zebra. Zebra.", []),
        ("", []),
    ],
)
def test_one_word(text: str, expected: list[str]) -> None:
    assert found(["zebra"], text) == expected


def test_the_first_place_that_shows_a_name_is_the_one() -> None:
    text = "Zebra runs. The zebra, or Zebra, or Zebra"
    (mention,) = NameTree(["zebra"]).find(text)
    assert mention == Mention("zebra", text.index("or Zebra") + 3, text.index("or Zebra") + 8)


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("log4j", "uses log4j for logs", ["log4j"]),  # digits inside: no common word
        ("utf8", "Utf8 it is", []),
        ("ไก", "มีไก", ["ไก"]),
        ("зебра", "видели зебра там", []),
        ("зебра", "видели Зебра там", ["Зебра"]),
        ("שלום", "אמר שלום לי", ["שלום"]),  # no case to go by
        ("ä", "x", []),
    ],
)
def test_one_word_of_other_kinds(name: str, text: str, expected: list[str]) -> None:
    assert found([name], text) == expected


# Several words.


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("in New York today", ["New York"]),
        ("in new york today", ["new york"]),
        ("NEW YORK", ["NEW YORK"]),
        ("New-York", ["New-York"]),
        ("new  \n york", ["new  \n york"]),
        ("New (York)", ["New (York"]),
        ("New, York", ["New, York"]),
        ("New Yorker", []),
        ("renew york", []),
        ("new_york", []),
        ("newyork", []),
        ("New of York", []),
        ("new new york york", ["new york"]),
        ("New York and New York", ["New York"]),
    ],
)
def test_several_words_in_any_case_with_anything_between(text: str, expected: list[str]) -> None:
    assert found(["New York"], text) == expected


@pytest.mark.parametrize(
    ("names", "text", "expected"),
    [
        # Of names inside each other the longest.
        (["New York", "New York Times"], "the New York Times said", ["New York Times"]),
        (["a b", "a b c"], "a b c, a b", ["a b c", "a b"]),
        (["York", "New York"], "in New York", ["New York"]),
        (["York", "New York"], "in New York, not York", ["New York", "York"]),
        (["Times", "New York Times Square"], "the New York Times", ["Times"]),
        # Overlapping: the one that starts first.
        (["New York", "York Times"], "the New York Times", ["New York"]),
        (["New York", "York Times"], "the York Times, New York", ["York Times", "New York"]),
        # A start that comes to nothing gives its words back.
        (["a b c d", "b c"], "a b c x", ["b c"]),
        (["a b c d", "a b"], "a b c x", ["a b"]),
        (["one two three", "two four"], "one two four", ["two four"]),
        (["one one two"], "one one one two", ["one one two"]),
        # In order of start.
        (["alpha beta", "gamma delta"], "gamma delta alpha beta", ["gamma delta", "alpha beta"]),
        (["", "alpha beta"], "alpha beta", ["alpha beta"]),
        ([], "alpha", []),
        ([""], "alpha", []),
    ],
)  # fmt: skip
def test_names_that_share_words(names: list[str], text: str, expected: list[str]) -> None:
    assert found(names, text) == expected
    assert found(names[::-1], text) == expected


# Other scripts.


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("Hans Müller", "mit Hans Müller dort", ["Hans Müller"]),
        ("Hans Müller", "mit Hans Muller dort", ["Hans Muller"]),
        ("Hans Muller", "mit HANS MÜLLER dort", ["HANS MÜLLER"]),
        ("Hans Mu\u0308ller", "mit Hans Müller dort", ["Hans Müller"]),
        ("Lange Straße", "in der LANGE STRASSE", ["LANGE STRASSE"]),
        ("Lange Strasse", "in der Lange Straße", ["Lange Straße"]),
        # Inside a run without spaces.
        ("東京タワー", "昨日東京タワーに行った", ["東京タワー"]),
        ("東京", "東 京", ["東 京"]),
        ("한국어", "나는한국어를 배운다", ["한국어"]),
        ("กรุงเทพ", "ไปกรุงเทพเมื่อวาน", ["กรุงเทพ"]),
        ("データ", "このデータは", ["データ"]),
        ("GPTモデル", "新GPTモデルを", ["GPTモデル"]),
        ("हिन्दी भाषा", "यह हिन्दी भाषा है", ["हिन्दी भाषा"]),
        ("𠮷野家 市", "の𠮷野家市で", ["𠮷野家市"]),
    ],
)
def test_scripts(name: str, text: str, expected: list[str]) -> None:
    assert found([name], text) == expected


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Hans Müller", "mit Hans Mu\u0308ller dort"),
        ("データ", "このﾃﾞｰﾀは"),
        ("ﾃﾞｰﾀ", "このデータは"),
        ("한국어", unicodedata.normalize("NFD", "나는 한국어를")),
        ("ガラス", "カ\u3099ラス"),
    ],
)
def test_characters_in_pieces_and_narrow_ones_are_found(name: str, text: str) -> None:
    (mention,) = NameTree([name_key(name)]).find(text)
    assert mention.key == name_key(name)
    assert 0 <= mention.start < mention.end <= len(text)


def test_a_word_that_folds_to_a_space_ends_a_name() -> None:
    """U+037A is a letter to the tokeniser and a blank once folded."""
    assert found(["New York"], "New York \u037a there") == ["New York"]
    assert found(["zebra"], "a Zebra \u037a there") == ["Zebra"]
    assert found(["New York"], "New \u037a York") == []


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["alpha beta gamma delta"], "alpha beta gamma "),
        (["alpha"], "alpha "),
        (["alpha alpha alpha alpha alpha beta"], "alpha "),
        (["alpha"], "`alpha "),
        (["東東東東京"], "東"),
        ([f"alpha{'x' * i} beta" for i in range(200)], "alphaxxx alpha "),
    ],
    ids=["starts", "common", "repeating", "half marked", "unspaced", "many"],
)
def test_a_megabyte_of_beginnings_takes_linear_time(names: list[str], text: str) -> None:
    """Ten times the text takes about ten times as long; measured against a tenth of it."""
    tree = NameTree(map(name_key, names))

    def seconds(size: int) -> float:
        body = (text * (size // len(text) + 1))[:size]
        began = time.process_time()
        tree.find(body)
        return time.process_time() - began

    tenth = min(seconds(100_000) for _ in range(3))
    assert seconds(1_000_000) < 40 * tenth + 0.1


# Symbols.


@pytest.mark.parametrize(
    ("name", "telling"),
    [
        ("propagate", True),
        ("HeatOptions", True),
        ("_private_thing", True),
        ("naïve", True),
        ("run", False),  # short
        ("main", False),
        ("Config", False),  # common in any case
        ("_parse", False),
        ("__init__", False),
        ("__all_of_it__", False),
        ("a.b.c", False),
        ("operator+", False),
        ("two words", False),
        ("1abc", False),
        ("", False),
    ],
)
def test_which_symbols_tell_something(name: str, telling: bool) -> None:
    assert is_telling_symbol(name) is telling


@pytest.mark.parametrize(
    ("word", "code"),
    [
        ("snake_case", True),
        ("camelCase", True),
        ("PascalCase", True),
        ("_private", False),
        ("__dunder__", False),
        ("_a_b", True),
        ("Word", False),
        ("word", False),
        ("HTTP", False),
        ("größeÄndern", True),
        ("_", False),
        ("", False),
    ],
)
def test_what_looks_like_code(word: str, code: bool) -> None:
    assert is_code_like(word) is code


def symbols_in(text: str, *names: str, prose: bool) -> list[str]:
    mentions = find_symbols(text, set(names), prose=prose)
    assert all(text[m.start : m.end] == m.key for m in mentions)
    assert [m.start for m in mentions] == sorted(m.start for m in mentions)
    return [m.key for m in mentions]


def test_symbols_in_code_are_found_as_they_are_written() -> None:
    code = "x = propagate(graph)\nlift(x); propagate(2)\n"
    assert symbols_in(code, "propagate", "lift", "spread", prose=False) == ["propagate", "lift"]
    assert symbols_in("Propagate, propagated, my_propagate", "propagate", prose=False) == []
    assert symbols_in("$propagate 1propagate", "propagate", prose=False) == []
    assert symbols_in("a.propagate(b)", "propagate", prose=False) == ["propagate"]
    assert symbols_in("größe = 1", "größe", prose=False) == ["größe"]


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        ("we propagate the heat", "propagate", False),
        ("we call `propagate` first", "propagate", True),
        ("we call `heat.propagate()` first", "propagate", True),
        ("a `b and propagate c`", "propagate", False),  # more than one word between backticks
        ("we build_graph first", "build_graph", True),
        ("a HeatOptions object", "HeatOptions", True),
        ("Zebra", "Zebra", False),
        ("", "propagate", False),
    ],
)
def test_symbols_in_prose_must_look_like_code(text: str, name: str, expected: bool) -> None:
    assert bool(symbols_in(text, name, prose=True)) is expected
    assert bool(symbols_in(text, name, prose=False)) is (name in text)


def test_only_the_first_use_counts() -> None:
    assert find_symbols("heat_of heat_of", {"heat_of"}, prose=True) == [Mention("heat_of", 0, 7)]
    assert find_symbols("anything", set(), prose=True) == []

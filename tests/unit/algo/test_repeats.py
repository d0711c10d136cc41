"""Texts that say the same: the first of each kind, whatever follows it."""

from __future__ import annotations

import itertools
import random

import pytest

from ragx.algo.repeats import Repeats

RUN = 3  # words whose row is compared


def sentences(n: int, seed: int = 0) -> list[str]:
    """Lines of eight words; no word occurs twice."""
    words = [f"word{seed}x{i}" for i in range(8 * n)]
    random.Random(seed).shuffle(words)
    return [" ".join(words[at : at + 8]) + "." for at in range(0, len(words), 8)]


def text(n: int, seed: int = 0) -> str:
    return "\n".join(sentences(n, seed))


def changed(whole: str, *places: int, word: str = "other") -> str:
    """The text with the words at these places replaced."""
    words = whole.replace("\n", " \n ").split(" ")
    real = [at for at, found in enumerate(words) if found != "\n"]
    for place in places:
        words[real[place]] = f"{word}{place}"
    return " ".join(words).replace(" \n ", "\n")


def likeness(n_words: int, n_changed: int) -> float:
    """Runs that both have, of all that either has, where changed words stand far apart."""
    n_runs = n_words - RUN + 1
    return (n_runs - RUN * n_changed) / (n_runs + RUN * n_changed)


def firsts(*texts: str, near: bool = True) -> list[int]:
    """Place of the first text that says what each one says."""
    repeats = Repeats(near=near)
    return [repeats.first_of(key, said) for key, said in enumerate(texts)]


def test_nothing_before_is_the_first() -> None:
    assert firsts("a") == [0]
    assert firsts("", "") == [0, 0]


@pytest.mark.parametrize("near", [True, False])
def test_equal_texts_have_one_first_however_short(near: bool) -> None:
    assert firsts("zebra", "lion", "zebra", " zebra\n", "Zebra", near=near) == [0, 1, 0, 0, 4]


def test_a_long_text_with_a_word_changed_is_a_near_copy() -> None:
    said = text(10)
    assert likeness(80, 1) >= 0.85
    assert firsts(said, changed(said, 37)) == [0, 0]
    assert firsts(said, changed(said, 37), near=False) == [0, 1]


def test_too_many_changed_words_make_another_text() -> None:
    said = text(20)
    places = range(5, 160, 10)
    for n in range(1, 10):
        expected = 0 if likeness(160, n) >= 0.9 else 1
        assert firsts(said, changed(said, *places[:n])) == [0, expected], n
    assert likeness(160, 2) >= 0.9 > likeness(160, 3)


def test_a_line_added_to_a_long_text_is_a_near_copy() -> None:
    said = text(20)
    assert firsts(said, f"{said}\n{sentences(1, seed=1)[0]}") == [0, 0]
    assert firsts(said, f"{said}\n{text(10, seed=1)}") == [0, 1]


def test_in_a_short_text_a_changed_word_changes_what_is_said() -> None:
    said = text(5)  # 40 words are 38 rows of three
    assert firsts(said, said.replace("word0x3", "word0x3 "), changed(said, 0)) == [0, 1, 2]
    longer = said + " and two"
    assert firsts(longer, changed(longer, 0)) == [0, 0]
    assert 42 - RUN + 1 == 40


def test_texts_of_one_group_are_never_near_copies() -> None:
    said = text(20)
    repeats = Repeats()
    assert repeats.first_of(0, said, group="a") == 0
    assert repeats.first_of(1, changed(said, 3), group="a") == 1
    assert repeats.first_of(2, changed(said, 50), group="b") == 0
    assert repeats.first_of(3, said, group="a") == 0  # equal is equal


def test_no_group_is_not_a_group() -> None:
    said = text(20)
    repeats = Repeats()
    assert repeats.first_of(0, said) == 0
    assert repeats.first_of(1, changed(said, 3)) == 0


def test_the_first_that_comes_is_the_one_that_stays() -> None:
    said = [text(20), changed(text(20), 30), changed(text(20), 90)]
    for order in itertools.permutations(said):
        assert firsts(*order) == [0, 0, 0]


def test_keys_are_the_callers_own() -> None:
    repeats = Repeats()
    said = text(20)
    assert repeats.first_of(70, said) == 70
    assert repeats.first_of(-5, changed(said, 3)) == 70
    assert repeats.first_of(6, text(20, seed=1)) == 6


def test_a_shared_licence_makes_no_near_copies() -> None:
    licence = text(12, seed=99)
    files = [f"{licence}\n{text(12, seed=i)}" for i in range(30)]
    assert firsts(*files) == list(range(30))


def test_a_long_licence_before_little_of_their_own_does() -> None:
    licence = text(60, seed=99)
    files = [f"{licence}\n{sentences(1, seed=i)[0]}" for i in range(5)]
    assert firsts(*files) == [0] * 5


def test_lines_that_stand_everywhere_are_not_compared() -> None:
    """Short lines, as closing brackets, tie no texts together."""
    files = ["\n".join(f"a{i}x{j} {{\n}}" for j in range(60)) for i in range(3)]
    assert firsts(*files) == [0, 1, 2]


def test_a_chain_of_copies_follows_from_their_order() -> None:
    a = text(20)
    b = changed(a, 5, 15)
    c = changed(b, 85, 95)
    assert likeness(160, 2) >= 0.9 > likeness(160, 4)
    # The one in the middle draws both; seen after the first, it is folded away and draws none.
    assert firsts(b, a, c) == firsts(b, c, a) == [0, 0, 0]
    assert firsts(a, b, c) == [0, 0, 2]
    assert firsts(c, b, a) == [0, 0, 2]
    assert firsts(a, c, b) in ([0, 1, 0], [0, 1, 1])
    assert firsts(a, c, b) == firsts(a, c, b)


def test_an_equal_of_a_near_copy_has_the_same_first() -> None:
    said = text(20)
    copy = changed(said, 40)
    assert firsts(said, copy, copy, said) == [0, 0, 0, 0]


def test_texts_that_share_no_line_are_never_compared_word_by_word(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared: list[tuple[int, int]] = []
    alike = Repeats._alike

    def counted(self: Repeats, one: int, other: int) -> bool:
        compared.append((one, other))
        return alike(self, one, other)

    monkeypatch.setattr(Repeats, "_alike", counted)
    files = [text(10, seed=i) for i in range(200)]
    assert firsts(*files) == list(range(200))
    assert compared == []
    assert firsts(*files[:5], changed(files[2], 5)) == [*range(5), 2]
    assert compared == [(5, 2)]


@pytest.mark.parametrize("said", ["", " ", "\n\n", "a", "} }\n" * 100, "斑马" * 200, "\ud800" * 60])
def test_no_text_is_refused(said: str) -> None:
    assert firsts(said, said + " x", said) == [0, 1, 0]

from __future__ import annotations

import re

import pytest

from ragx.errors import InputTooLong
from ragx.providers.limits import (
    Learned,
    batch_refusal,
    find_limit,
    is_unknown_field,
    is_unknown_model,
    probe_text,
)


def test_probe_texts_have_the_length_and_the_change_asked_for():
    plain = probe_text(100).split()
    assert len(plain) == 100
    changed = probe_text(100, 40).split()
    assert [at for at in range(100) if plain[at] != changed[at]] == list(range(40, 56))
    assert all(re.fullmatch("[a-z]{3,6}", word) for word in plain + changed)


@pytest.mark.parametrize("limit", [20, 100, 255, 1000, 2111])
def test_refusals_are_narrowed_down_from_below(limit):
    def takes(n):
        return InputTooLong("too long") if n > limit else None

    found, truncates = find_limit(2112, takes, lambda length, place: True)
    assert limit - 16 <= found <= limit
    assert not truncates


@pytest.mark.parametrize("limit", [20, 100, 255, 1000, 2080])
def test_what_is_dropped_is_narrowed_down_from_below(limit):
    found, truncates = find_limit(2112, lambda n: None, lambda length, place: place < limit)
    assert limit - 16 <= found <= limit
    assert truncates


def test_nothing_refused_nothing_dropped_is_no_limit():
    assert find_limit(2112, lambda n: None, lambda length, place: True) == (None, False)


def test_vectors_that_depend_on_no_word_show_no_limit():
    assert find_limit(2112, lambda n: None, lambda length, place: False) == (None, False)


def test_everything_refused_is_the_refusal():
    with pytest.raises(InputTooLong):
        find_limit(2112, lambda n: InputTooLong("at most 512"), lambda length, place: True)


@pytest.mark.parametrize(
    ("status", "words", "most"),
    [
        (400, "batch size 32 > maximum allowed batch size 8", 8),
        (422, "List should have at most 10 items after validation, not 32", 10),
        (400, "Too many inputs in request, split into more batches", None),
    ],
)
def test_batch_refusals(status, words, most):
    found = batch_refusal(status, words, 32)
    assert found is not None
    assert found.details.get("max_items") == most
    assert found.details["scope"] == "input"
    assert batch_refusal(status, words, 1) is None


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (500, "increase the physical batch size (current batch size: 512)"),
        (400, "Too many tokens in batch: 9000"),
        (400, "too long"),
        (429, "batch size 32 > 8"),
    ],
)
def test_other_refusals_are_not_about_the_number_of_texts(status, words):
    assert batch_refusal(status, words, 32) is None


def test_fields_and_models():
    assert is_unknown_field(400, "Extra inputs are not permitted")
    assert not is_unknown_field(400, "the input is too long")
    assert not is_unknown_field(500, "unknown field x")
    assert is_unknown_model(400, 'model "x" not found, try pulling it first')
    assert is_unknown_model(404, "The model `x` does not exist")
    assert not is_unknown_model(400, "This model's maximum context length is 512 tokens")
    assert not is_unknown_model(500, "model not loaded")


def test_learned_values_survive_and_nonsense_does_not():
    learned = Learned(10, 5000, 8, 384, 128)
    assert Learned.of(learned.as_dict()) == learned
    assert Learned.of({"max_items": -1, "in_flight": "8", "dimension": True, "x": 1}) == Learned()

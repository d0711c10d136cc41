"""Options and sizers."""

from __future__ import annotations

import pytest

from ragx.algo.chunking import ChunkOptions, EstimatedSizer, OffsetSizer
from ragx.errors import ConfigError


@pytest.mark.parametrize(
    "options",
    [{"size_tokens": 0}, {"max_chunk_chars": 0}, {"overlap": -0.1}, {"overlap": 0.95}],
)
def test_options_out_of_range(options: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=next(iter(options))):
        ChunkOptions(**options)  # type: ignore[arg-type]  # deliberately generic


def test_offset_sizer_counts_starts_in_the_range() -> None:
    sizer = OffsetSizer([0, 3, 3, 7])
    assert [sizer.size(0, 8), sizer.size(1, 7), sizer.size(3, 4), sizer.size(8, 9)] == [4, 2, 2, 0]


@pytest.mark.parametrize(
    ("text", "chars_per_token", "tolerance"),
    [
        ("The quick brown fox jumps over the lazy dog, and then it goes home again. ", 4.0, 0.7),
        ("QmFzZTY0IGlzIGEgZ3JvdXAgb2YgYmluYXJ5LXRvLXRleHQgZW5jb2Rpbmc5", 2.5, 0.6),
        ("\u68c0\u7d22\u589e\u5f3a\u751f\u6210", 1.0, 0.1),
        (
            "\u041f\u043e\u0438\u0441\u043a \u043f\u043e \u0442\u0435\u043a\u0441\u0442\u0443",
            2.0,
            0.7,
        ),
    ],
)
def test_estimate_by_script(text: str, chars_per_token: float, tolerance: float) -> None:
    text *= 50
    estimate = len(text) / EstimatedSizer(text).size(0, len(text))
    assert abs(estimate - chars_per_token) <= tolerance


@pytest.mark.parametrize(
    "text", ["", " ", "a", "\u00e9", "?", "?\u6587?", "\U0001f418" * 40, "\x85"]
)
def test_estimate_is_additive_up_to_rounding(text: str) -> None:
    sizer = EstimatedSizer(text)
    whole = sizer.size(0, len(text))
    for cut in range(len(text) + 1):
        parts = sizer.size(0, cut) + sizer.size(cut, len(text))
        assert whole <= parts <= whole + 1
    assert sizer.size(0, 0) == 0

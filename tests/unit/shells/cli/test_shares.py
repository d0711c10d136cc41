"""How much text each place shows."""

from __future__ import annotations

import pytest

from ragx.shells.cli.shares import Shares


@pytest.mark.parametrize(
    ("rank", "nth", "chars"),
    [
        (1, 1, 1200),
        (3, 1, 1200),
        (1, 2, 1200 // 4),
        (3, 3, 1200 // 4),
        (4, 1, 1200 // 4),
        (10, 2, 1200 // 12),
        (11, 1, 1200 // 12),
        (1000, 3, 1200 // 12),
    ],
)
def test_the_first_in_full_the_rest_in_part(rank: int, nth: int, chars: int) -> None:
    assert Shares(1200, context_everywhere=False).text_chars(rank, nth) == chars


@pytest.mark.parametrize(
    ("limit", "chars"), [(1, 1), (99, 99), (100, 100), (400, 100), (2400, 200)]
)
def test_a_share_is_never_too_small_to_say_anything(limit: int, chars: int) -> None:
    assert Shares(limit, context_everywhere=False).text_chars(20, 2) == chars


def test_context_stands_where_it_is_read() -> None:
    shares = Shares(1200, context_everywhere=False)
    places = [(rank, nth) for rank in range(1, 6) for nth in (1, 2, 3)]
    assert [place for place in places if shares.has_context(*place)] == [(1, 1), (2, 1), (3, 1)]
    assert all(Shares(1200, context_everywhere=True).has_context(*place) for place in places)

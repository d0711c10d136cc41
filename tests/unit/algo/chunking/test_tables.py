from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragx.algo.chunking.tables import TableHeaders

TABLE = "| fruit | price |\n|---|---:|\n| apple | 3 |\n| pear | 4 |\n"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_rows_have_the_header_above_them(end: str) -> None:
    text = f"# Prices\n\n{TABLE}\nAfter the table.\n".replace("\n", end)
    tables = TableHeaders(text)
    header = "| fruit | price |\n|---|---:|"
    assert tables.above(text.index("| apple")) == header
    assert tables.above(text.index("4 |")) == header
    for outside in ("# Prices", "| fruit", "|---|", "After"):
        assert tables.above(text.index(outside)) == ""


def test_two_tables_have_their_own_headers() -> None:
    text = TABLE + "\n" + TABLE.replace("fruit", "car").replace("apple", "van")
    tables = TableHeaders(text)
    assert tables.above(text.index("| apple")).startswith("| fruit")
    assert tables.above(text.index("| van")).startswith("| car")
    assert tables.longest(0, len(text)).startswith("| fruit")
    assert tables.longest(text.index("| van"), len(text)).startswith("| car")


@pytest.mark.parametrize(
    "text",
    ["", "a | b\n", "Heading\n-------\ntext | more\n", "---\n\n| a |\n", "no pipes\n---\nat all\n"],
)
def test_what_is_no_table(text: str) -> None:
    assert not TableHeaders(text)


def test_tables_without_outer_pipes() -> None:
    text = "fruit | price\n--- | ---\napple | 3\n"
    assert TableHeaders(text).above(text.index("apple")) == "fruit | price\n--- | ---"


@given(st.text("|-: a\n\r", max_size=80))
def test_longest_covers_every_position(text: str) -> None:
    tables = TableHeaders(text)
    for position in range(len(text)):
        assert len(tables.above(position)) <= len(tables.longest(position, position + 1))
        assert len(tables.above(position)) <= len(tables.longest(0, len(text)))


def test_a_long_table_takes_one_pass() -> None:
    rows = "".join(f"| {i} | {i} |\n" for i in range(200_000))
    tables = TableHeaders("| a | b |\n|---|---|\n" + rows)
    assert tables.above(len(rows)) == "| a | b |\n|---|---|"

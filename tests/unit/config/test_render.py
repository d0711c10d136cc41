from __future__ import annotations

import itertools
import tomllib
from pathlib import Path

import pytest

from ragx.config import Value, default_toml, keys, literal, load_config

REPOSITORY = Path(__file__).resolve().parents[3]


def test_the_example_is_the_generated_file() -> None:
    example = (REPOSITORY / "ragx.toml.example").read_text(encoding="utf-8")
    assert example == default_toml(), (
        "regenerate it: python -c 'from ragx.config import default_toml; "
        "print(default_toml(), end=str())' > ragx.toml.example"
    )


def test_every_key_is_written_once_and_reads_back_as_its_default(tmp_path: Path) -> None:
    (tmp_path / "ragx.toml").write_text(default_toml(), encoding="utf-8")
    loaded = load_config(tmp_path, env={}, home=None)
    written = {dotted for dotted, origin in loaded.origins.items() if origin == "ragx.toml"}
    assert written == keys().keys() - {"expansion.base_url"}  # resolved: the provider's own
    assert loaded.config.embeddings.base_url == ""
    assert loaded.config.expansion.base_url == "http://localhost:1234/v1"


def test_every_key_has_its_comment_above_and_no_line_is_long() -> None:
    lines = default_toml().splitlines()
    assert max(map(len, lines)) <= 100
    for item in keys().values():
        name = item.path[-1]
        assert any(
            line.startswith(f"{name} = ") and above.startswith("#")
            for above, line in itertools.pairwise(lines)
        ), item.dotted


@pytest.mark.parametrize(
    "value",
    [
        True,
        False,
        0,
        -3,
        0.5,
        1e-7,
        1e20,
        "",
        'a"b\\c\n\t\x7f é',
        (),
        ("a",),
        ("a, b", 'c"', "[d]"),
    ],
)
def test_literals_are_one_line_of_toml(value: Value) -> None:
    text = literal(value)
    assert "\n" not in text
    read = tomllib.loads(f"v = {text}")["v"]
    assert read == (list(value) if isinstance(value, tuple) else value)
    assert type(read) is (list if isinstance(value, tuple) else type(value))

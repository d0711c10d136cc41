"""Any valid value, set in any file of ours, reads back as itself and disturbs nothing else."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragx.config import Value, default_toml, keys, load_config, set_value, values_of
from ragx.config.rules import Auto, Choice, EnvName, Flag, Globs, Int, Real, Rule, Text, Url
from ragx.config.table import Key

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
GLOB = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8).filter(
    str.strip
)


@pytest.fixture(scope="module")
def directory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def typed(rule: Rule[Value]) -> st.SearchStrategy[tuple[str, Value]]:
    """Command-line text and the value it stands for."""
    match rule:
        case Flag():
            return st.booleans().map(lambda flag: (str(flag).lower(), flag))
        case Int():
            return st.integers(rule.low, rule.high).map(lambda number: (str(number), number))
        case Real():
            numbers = st.floats(rule.low, rule.high, exclude_min=rule.above)
            return numbers.map(lambda number: (repr(number), number))
        case Auto():
            return st.just(("auto", "auto")) | typed(rule.inner)
        case Choice():
            return st.sampled_from(rule.names).map(lambda name: (name, name))
        case Text():
            return TEXT.map(lambda text: (text, text))
        case EnvName():
            return st.from_regex(r"[A-Z_][A-Z0-9_]{0,8}", fullmatch=True).map(lambda n: (n, n))
        case Url():
            return st.from_regex(r"https?://[a-z]{1,8}(:[0-9]{1,4})?/v1", fullmatch=True).map(
                lambda url: (url, url)
            )
        case Globs():
            return st.lists(GLOB, min_size=max(rule.at_least, 1), max_size=30).map(as_array)
    raise AssertionError(f"no strategy for {rule}")


def as_array(globs: list[str]) -> tuple[str, Value]:
    quoted = ", ".join('"' + glob.replace("\\", "\\\\").replace('"', '\\"') + '"' for glob in globs)
    return f"[{quoted}]", tuple(globs)


@st.composite
def edits(draw: st.DrawFn) -> tuple[Key, str, Value]:
    item = draw(st.sampled_from(list(keys().values())))
    raw, value = draw(typed(item.rule))
    return item, raw, value


@st.composite
def files(draw: st.DrawFn) -> bytes:
    """Our own file with some keys and blank lines left out, comments added, and any line ends."""
    lines = []
    skipping = False
    for line in default_toml().split("\n")[:-1]:
        if not skipping and " = " in line and not line.startswith("#"):
            skipping = draw(st.integers(0, 5)) == 0
        if not skipping and (line or draw(st.booleans())):
            lines.append(line)
        if skipping and not line.endswith(("[", ",")):
            skipping = False
        if lines and draw(st.integers(0, 30)) == 0 and lines[-1].startswith("["):
            lines.append("# mine: " + draw(st.text("aé[]=#\"' ", max_size=10)))
    end = draw(st.sampled_from(["\n", "\r\n"]))
    bom = draw(st.sampled_from(["", "\ufeff"]))
    return (bom + end.join(lines) + draw(st.sampled_from(["", end]))).encode()


@settings(max_examples=80, deadline=None)
@given(file=files(), edit=edits())
def test_a_set_value_reads_back_and_nothing_else_moves(
    directory: Path, file: bytes, edit: tuple[Key, str, Value]
) -> None:
    item, raw, value = edit
    path = directory / "ragx.toml"
    path.write_bytes(file)
    before = values_of(load_config(directory, env={}, home=None).config)
    assert set_value(path, item.dotted, raw, create=False) == value
    after = path.read_bytes()
    loaded = load_config(directory, env={}, home=None)
    expected = {**before, item.dotted: value}
    read = values_of(loaded.config)
    resolved = {"embeddings.base_url", "expansion.base_url"}  # follow the provider
    assert {k: v for k, v in read.items() if k not in resolved} == {
        k: v for k, v in expected.items() if k not in resolved
    }
    assert comments(after) == comments(file)
    assert after.startswith(b"\xef\xbb\xbf") == file.startswith(b"\xef\xbb\xbf")
    if b"\r\n" in file:
        assert after.count(b"\n") == after.count(b"\r\n")
    again = path.stat().st_mtime_ns
    set_value(path, item.dotted, raw, create=False)
    assert path.stat().st_mtime_ns == again


def comments(file: bytes) -> list[str]:
    lines = file.decode("utf-8-sig").replace("\r\n", "\n").split("\n")
    return [line for line in lines if line.startswith("#")]

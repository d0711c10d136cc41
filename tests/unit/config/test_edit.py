from __future__ import annotations

import os
import stat
import subprocess
import tomllib
from pathlib import Path

import pytest

from ragx.config import get_value, list_values, load_config, require_machine_key, set_value
from ragx.config.edit import write_file
from ragx.errors import ConfigError

NESTED = "[graph]\nk = 1  # few\n\n# about weights\n[graph.weights]\nlink = 0.5\n"


def edit(path: Path, before: str | bytes, dotted: str, raw: str) -> bytes:
    path.write_bytes(before if isinstance(before, bytes) else before.encode())
    set_value(path, dotted, raw, create=False)
    return path.read_bytes()


@pytest.mark.parametrize(
    ("before", "dotted", "raw", "after"),
    [
        ("[query]\ntop = 5  # mine\n", "query.top", "7", "[query]\ntop = 7  # mine\n"),
        # A new key goes under the last of its section, above what introduces the next one.
        (
            "[query]\ntop = 5\n\n# next\n[graph]\nk = 1\n",
            "query.context_lines",
            "2",
            "[query]\ntop = 5\ncontext_lines = 2\n\n# next\n[graph]\nk = 1\n",
        ),
        ("[query]\ntop = 5\n", "graph.k", "3", "[query]\ntop = 5\n\n[graph]\nk = 3\n"),
        ("", "graph.k", "3", "[graph]\nk = 3\n"),
        (NESTED, "graph.weights.link", "1", NESTED.replace("0.5", "1.0")),
        (NESTED, "graph.k", "2", NESTED.replace("k = 1 ", "k = 2 ")),
        ("query.top = 5\n", "query.top", "6", "query.top = 6\n"),
        ("query = { top = 5 }\n", "query.top", "6", "query = { top = 6 }\n"),
        ("[corpus]\nexclude = [\n  'a',\n]  # x\n", "corpus.exclude", "b, c",
         '[corpus]\nexclude = ["b", "c"]  # x\n'),
        ("[graph]\nk = 1\n[query]\n[graph.weights]\nlink = 1.0\n", "graph.weights.link", "0",
         "[graph]\nk = 1\n[query]\n[graph.weights]\nlink = 0.0\n"),
    ],
)  # fmt: skip
def test_only_the_one_value_changes(
    tmp_path: Path, before: str, dotted: str, raw: str, after: str
) -> None:
    assert edit(tmp_path / "f", before, dotted, raw).decode() == after


@pytest.mark.parametrize(
    ("before", "dotted"),
    [
        (NESTED, "graph.min_edge_sim"),
        ("[graph.weights]\nlink = 1.0\n", "graph.min_edge_sim"),
        ("graph = { k = 1 }\n", "graph.weights.link"),
        ("[graph]\nk = 1\n[query]\ntop = 1\n[graph.weights]\nlink = 1.0\n", "graph.min_edge_sim"),
        ("[graph]\nk = 1\n[query]\ntop = 1", "graph.weights.link"),
        ("graph.k = 1\n", "graph.min_edge_sim"),
        ("# only a comment", "query.top"),
    ],
)
def test_new_keys_find_a_place_in_any_layout(tmp_path: Path, before: str, dotted: str) -> None:
    path = tmp_path / "f"
    after = edit(path, before, dotted, "1").decode()
    kept = [line for line in before.split("\n") if line.startswith("#")]
    assert [line for line in after.split("\n") if line.startswith("#")] == kept
    table: object = tomllib.loads(after)
    for name in dotted.split("."):
        assert isinstance(table, dict)
        table = table[name]
    assert table == 1


def test_line_ends_and_byte_order_mark_stay(tmp_path: Path) -> None:
    before = b"\xef\xbb\xbf# a\r\n[query]\r\ntop = 5\r\n\r\n[graph]\r\nk = 1\r\n"
    path = tmp_path / "f"
    assert edit(path, before, "query.top", "6") == before.replace(b"5", b"6")
    after = edit(path, before, "query.context_lines", "2")
    assert after == before.replace(b"= 5\r\n", b"= 5\r\ncontext_lines = 2\r\n")
    after = edit(path, before, "corpus.include", ",".join(f"*.extension{n}" for n in range(20)))
    assert after.count(b"\n") == after.count(b"\r\n") > 20


def test_mixed_line_ends_stay_where_they_are(tmp_path: Path) -> None:
    before = b"# a\r\n[query]\ntop = 5\r\n# b\n"
    assert edit(tmp_path / "f", before, "query.top", "6") == before.replace(b"5", b"6")


def test_the_file_keeps_its_mode_and_its_link(tmp_path: Path) -> None:
    real, link = tmp_path / "dotfiles", tmp_path / ".ragxrc"
    real.write_text("[rerank]\nenabled = false\n", encoding="utf-8")
    real.chmod(0o640)
    link.symlink_to(real)
    set_value(link, "rerank.enabled", "true", create=True)
    assert link.is_symlink()
    assert real.read_text(encoding="utf-8") == "[rerank]\nenabled = true\n"
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert sorted(item.name for item in tmp_path.iterdir()) == [".ragxrc", "dotfiles"]


def test_a_link_out_of_the_corpus_is_not_written_through(tmp_path: Path) -> None:
    root, outside = tmp_path / "it's a corpus", tmp_path / "settings.toml"
    root.mkdir()
    text = "[query]\ntop = 5\n"
    outside.write_text(text, encoding="utf-8")
    path = root / "ragx.toml"
    path.symlink_to(outside)
    for write in (
        lambda: set_value(path, "query.top", "6", create=True, inside=root),
        lambda: write_file(path, b"", inside=root),
    ):
        with pytest.raises(ConfigError) as caught:
            write()
        assert caught.value.code == "linked_config"
        assert outside.read_text(encoding="utf-8") == text
    assert set_value(path, "query.top", "5", create=True, inside=root) == 5  # is there already
    subprocess.run(
        caught.value.hint.partition(": ")[2], shell=True, check=True, stdin=subprocess.DEVNULL
    )
    set_value(path, "query.top", "6", create=True, inside=root)
    assert outside.read_text(encoding="utf-8") == text
    assert path.read_text(encoding="utf-8") == text.replace("5", "6")


def test_links_within_the_corpus_and_to_it_are_followed(tmp_path: Path) -> None:
    root, link = tmp_path / "corpus", tmp_path / "link"
    (root / "conf").mkdir(parents=True)
    real = root / "conf" / "ragx.toml"
    real.write_text("[query]\ntop = 5\n", encoding="utf-8")
    (root / "ragx.toml").symlink_to("conf/ragx.toml")
    link.symlink_to(root)
    set_value(link / "ragx.toml", "query.top", "6", create=True, inside=link)
    assert real.read_text(encoding="utf-8") == "[query]\ntop = 6\n"
    assert (root / "ragx.toml").is_symlink()


def test_a_value_that_is_there_already_is_not_written_again(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("[query]\ntop=5\n", encoding="utf-8")
    os.utime(path, ns=(1, 1))
    assert set_value(path, "query.top", "5", create=False) == 5
    assert path.stat().st_mtime_ns == 1


def test_a_missing_file_is_made_only_if_asked(tmp_path: Path) -> None:
    path = tmp_path / "f"
    with pytest.raises(ConfigError) as caught:
        set_value(path, "query.top", "5", create=False)
    assert caught.value.hint == "ragx init"
    set_value(path, "query.top", "5", create=True)
    assert path.read_text(encoding="utf-8") == "[query]\ntop = 5\n"


def test_an_invalid_setting_elsewhere_does_not_prevent_mending(tmp_path: Path) -> None:
    after = edit(tmp_path / "f", "[query]\ntop = 5000\nbogus = 1\n", "query.top", "5")
    assert after == b"[query]\ntop = 5\nbogus = 1\n"


@pytest.mark.parametrize(
    ("before", "dotted", "raw", "message"),
    [
        ("", "query.tpo", "5", "unknown key query.tpo"),
        ("", "query.top", "5000", "query.top must be an integer from 1 to 1000, not 5000"),
        ("", "query.top", "many", "query.top must be an integer from 1 to 1000, not 'many'"),
        ("", "traversal.cap", "maybe", "traversal.cap must be true or false, not 'maybe'"),
        ("query = 3\n", "query.top", "5", "[query] must be a table, not 3"),
        ("[query\n", "query.top", "5", "not valid TOML"),
    ],
)
def test_refused_edits_leave_the_file_alone(
    tmp_path: Path, before: str, dotted: str, raw: str, message: str
) -> None:
    path = tmp_path / "f"
    with pytest.raises(ConfigError) as caught:
        edit(path, before, dotted, raw)
    assert message in caught.value.message
    assert path.read_text(encoding="utf-8") == before


def test_a_failed_write_leaves_the_old_file_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "f"
    path.write_text("[query]\ntop = 5\n", encoding="utf-8")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ConfigError, match="No space left on device"):
        set_value(path, "query.top", "6", create=False)
    assert path.read_text(encoding="utf-8") == "[query]\ntop = 5\n"
    assert list(tmp_path.iterdir()) == [path]


def test_exclusive_writing_never_replaces(tmp_path: Path) -> None:
    path = tmp_path / "f"
    write_file(path, b"one", exclusive=True)
    with pytest.raises(FileExistsError):
        write_file(path, b"two", exclusive=True)
    dangling = tmp_path / "link"
    dangling.symlink_to("nowhere")
    with pytest.raises(FileExistsError):
        write_file(dangling, b"two", exclusive=True)
    assert path.read_bytes() == b"one"
    assert sorted(item.name for item in tmp_path.iterdir()) == ["f", "link"]


def test_exclusive_writing_works_without_hard_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unsupported(source: Path, target: Path) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(os, "link", unsupported)
    write_file(tmp_path / "f", b"one", exclusive=True)
    assert (tmp_path / "f").read_bytes() == b"one"


def test_the_machine_file_takes_only_its_keys() -> None:
    require_machine_key("embeddings.model")
    with pytest.raises(ConfigError, match=r"\[embeddings\], \[expansion\], \[rerank\]"):
        require_machine_key("query.top")
    with pytest.raises(ConfigError, match="unknown key"):
        require_machine_key("embeddings.modle")


def test_settings_are_listed_with_their_origin(tmp_path: Path) -> None:
    set_value(tmp_path / "ragx.toml", "query.top", "5", create=True)
    loaded = load_config(tmp_path, env={}, home=None)
    setting = get_value(loaded, "query.top")
    assert (setting.value, setting.origin, setting.default) == (5, "ragx.toml", 20)
    assert [item.key for item in list_values(loaded, "query")] == [
        "query.top",
        "query.max_chunk_chars",
        "query.context_lines",
    ]
    assert [item.key for item in list_values(loaded, "graph.weights")][2] == "graph.weights.import"
    assert len(list_values(loaded)) == len(loaded.origins)
    for call in (get_value, list_values):
        with pytest.raises(ConfigError):
            call(loaded, "quer")

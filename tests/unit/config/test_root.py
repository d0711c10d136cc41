from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from ragx.config import find_root, migrate_legacy
from ragx.errors import ConfigError, UsageError


def silent(line: str) -> None:
    raise AssertionError(f"unexpected notice: {line}")


@pytest.mark.parametrize("marker", ["ragx.toml", ".ragx"])
def test_the_nearest_directory_above_counts(tmp_path: Path, marker: str) -> None:
    outer, inner = tmp_path / "outer", tmp_path / "outer" / "inner"
    deep = inner / "a" / "b"
    deep.mkdir(parents=True)
    (outer / "ragx.toml").touch()
    assert find_root(deep, None) == outer
    (inner / ".ragx").mkdir() if marker == ".ragx" else (inner / "ragx.toml").touch()
    assert find_root(deep, None) == inner
    assert find_root(inner, None) == inner


def test_a_file_called_like_the_index_is_no_corpus(tmp_path: Path) -> None:
    (tmp_path / ".ragx").touch()
    with pytest.raises(ConfigError) as caught:
        find_root(tmp_path, None)
    assert (caught.value.code, caught.value.hint) == ("no_corpus", "ragx init")


def test_an_explicit_root_is_taken_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "ragx.toml").touch()
    (tmp_path / "sub").mkdir()
    assert find_root(tmp_path, Path("sub")) == tmp_path / "sub"
    assert find_root(tmp_path / "sub", Path("..")) == tmp_path
    (tmp_path / "link").symlink_to("sub")
    assert find_root(tmp_path, Path("link")) == tmp_path / "link"
    for wrong in ("absent", "ragx.toml"):
        with pytest.raises(UsageError, match=wrong):
            find_root(tmp_path, Path(wrong))


def legacy(root: Path) -> Path:
    old = root / ".ragx" / "config.toml"
    old.parent.mkdir()
    old.write_text("[query]\ntop = 4\n", encoding="utf-8")
    return old


def test_old_settings_move_by_themselves_when_nobody_is_there(tmp_path: Path) -> None:
    old = legacy(tmp_path)
    said: list[str] = []
    migrate_legacy(tmp_path, ask=None, notice=said.append)
    assert (tmp_path / "ragx.toml").read_text(encoding="utf-8") == "[query]\ntop = 4\n"
    assert not old.exists()
    assert said == [f"moved {old} to {tmp_path / 'ragx.toml'}"]
    migrate_legacy(tmp_path, ask=None, notice=silent)


def test_a_person_is_asked_and_may_decline(tmp_path: Path) -> None:
    root = tmp_path / "it's mine"
    root.mkdir()
    old = legacy(root)
    with pytest.raises(ConfigError) as caught:
        migrate_legacy(root, ask=lambda question: False, notice=silent)
    assert old.exists()
    assert not (root / "ragx.toml").exists()
    command = caught.value.hint.removeprefix("move them: ")
    assert shlex.split(command) == ["mv", str(old), str(root / "ragx.toml")]
    questions: list[str] = []

    def agree(question: str) -> bool:
        questions.append(question)
        return True

    migrate_legacy(root, ask=agree, notice=lambda line: None)
    assert len(questions) == 1
    assert (root / "ragx.toml").exists()


def test_settings_in_both_places_are_an_error(tmp_path: Path) -> None:
    legacy(tmp_path)
    (tmp_path / "ragx.toml").touch()
    with pytest.raises(ConfigError) as caught:
        migrate_legacy(tmp_path, ask=None, notice=silent)
    assert caught.value.code == "two_configs"


def test_nothing_old_is_nothing_to_do(tmp_path: Path) -> None:
    migrate_legacy(tmp_path, ask=None, notice=silent)


@pytest.mark.parametrize("which", [".ragx", ".ragx/config.toml"])
def test_settings_are_not_moved_out_of_where_a_link_leads(tmp_path: Path, which: str) -> None:
    theirs, root = tmp_path / "theirs", tmp_path / "it's a clone"
    theirs.mkdir()
    (theirs / "config.toml").write_text("[query]\ntop = 4\n", encoding="utf-8")
    link = root / which
    link.parent.mkdir(parents=True)
    link.symlink_to(theirs if which == ".ragx" else theirs / "config.toml")
    with pytest.raises(ConfigError) as caught:
        migrate_legacy(root, ask=None, notice=silent)
    assert caught.value.code == "linked_config"
    assert caught.value.hint == f"rm {shlex.quote(str(link))}"
    assert (theirs / "config.toml").is_file()
    assert not (root / "ragx.toml").exists()
    link.unlink()  # what the hint says
    migrate_legacy(root, ask=None, notice=silent)


def test_a_linked_index_without_settings_is_none_of_this_ones_business(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / ".ragx").symlink_to("theirs")
    migrate_legacy(tmp_path, ask=None, notice=silent)

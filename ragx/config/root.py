"""Find the corpus a command is about, and bring an old layout up to date."""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Callable
from pathlib import Path

from ragx.config.load import CONFIG_NAME
from ragx.errors import ConfigError, UsageError

__all__ = ["INDEX_DIRECTORY", "find_legacy", "find_root", "migrate_legacy"]

INDEX_DIRECTORY = ".ragx"


def find_root(start: Path, explicit: Path | None) -> Path:
    """Return the corpus root: the directory asked for, else the nearest one above `start`.

    Raises:
        UsageError: the directory asked for does not exist.
        ConfigError: code "no_corpus": no directory above holds `ragx.toml` or `.ragx/`.
    """
    if explicit is not None:
        root = Path(os.path.abspath(start / explicit))
        if not root.is_dir():
            raise UsageError(
                f"--root {explicit}: {'not a' if root.exists() else 'no such'} directory",
                hint="name one that exists",
                code="no_directory",
            )
        return root
    here = Path(os.path.abspath(start))
    for directory in (here, *here.parents):
        if os.path.lexists(directory / CONFIG_NAME) or (directory / INDEX_DIRECTORY).is_dir():
            return directory
    raise ConfigError(
        f"no corpus here: neither {here} nor a directory above it holds {CONFIG_NAME}",
        hint="ragx init",
        code="no_corpus",
    )


def find_legacy(root: Path) -> Path | None:
    """The file where the settings used to be, if there is one.

    Raises:
        ConfigError: code "linked_config": a link leads there, as a clone could bring one to files
            of somebody else.
    """
    old = root / INDEX_DIRECTORY / "config.toml"
    if not os.path.lexists(old):
        return None
    for path in (old.parent, old):
        if stat.S_ISLNK(path.lstat().st_mode):
            raise ConfigError(
                f"{path} is a link: settings are not moved out of where it leads",
                hint=f"rm {shlex.quote(str(path))}",
                code="linked_config",
            )
    return old


def migrate_legacy(
    root: Path, *, ask: Callable[[str], bool] | None, notice: Callable[[str], None]
) -> None:
    """Move `.ragx/config.toml`, where the settings used to be, to `ragx.toml`.

    Args:
        ask: puts a yes/no question to a person; None if nobody is there, which means yes.
        notice: receives one line that says what was done.
    Raises:
        ConfigError: both files exist, the move was declined or failed, or as `find_legacy`.
    """
    old, new = find_legacy(root), root / CONFIG_NAME
    if old is None:
        return
    command = f"mv {shlex.quote(str(old))} {shlex.quote(str(new))}"
    if os.path.lexists(new):
        raise ConfigError(
            f"settings in two places: {old} and {new}",
            hint="keep one of them and delete the other",
            code="two_configs",
        )
    if ask is not None and not ask(f"Settings now live in {new}. Move {old} there?"):
        raise ConfigError(
            f"settings are still in {old}", hint=f"move them: {command}", code="legacy_config"
        )
    try:
        old.rename(new)
    except OSError as exc:
        raise ConfigError(
            f"{old}: cannot be moved: {exc.strerror or exc}", hint=f"move it: {command}"
        ) from exc
    notice(f"moved {old} to {new}")

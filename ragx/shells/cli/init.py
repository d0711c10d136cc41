"""`ragx init`: make a directory a corpus."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import click

from ragx.config import CONFIG_NAME, INDEX_DIRECTORY, default_toml, find_root, write_file
from ragx.errors import ConfigError, CorpusError, UsageError
from ragx.indexing.scan import check_root
from ragx.shells.cli import envelope
from ragx.shells.cli.frame import Command, command_options, working_directory

__all__ = ["command"]

_NOTES = (
    (
        "Tailor [corpus] include and exclude in ragx.toml to what should be found here "
        '(ragx config set corpus.include "docs/**, *.md").'
    ),
    (
        "Tell your coding agent in AGENTS.md or CLAUDE.md to search with "
        '`ragx query "..." --json --files-only`.'
    ),
)


@click.command(
    "init",
    cls=Command,
    short_help="Write ragx.toml: make a directory a corpus.",
    help="Write ragx.toml with every setting at its default into PATH (default: here).",
)
@click.argument("path", required=False, type=click.Path(path_type=Path))
@click.option("--yes", is_flag=True, help="Also where it is refused otherwise: $HOME, /.")
@command_options
def command(path: Path | None, yes: bool, root: Path | None, as_json: bool) -> int:
    """Write the settings of a new corpus."""
    if path is not None and root is not None:
        raise UsageError("init: give PATH or --root, not both", hint="ragx init PATH")
    directory = Path(os.path.abspath(working_directory() / (path or root or ".")))
    if not directory.is_dir():
        raise CorpusError(
            f"{directory}: no such directory",
            hint=f"mkdir -p {shlex.quote(str(directory))}",
            code="no_directory",
        )
    check_root(directory, confirmed=yes)
    legacy = directory / INDEX_DIRECTORY / "config.toml"
    if os.path.lexists(legacy):
        raise ConfigError(
            f"{legacy} already holds settings",
            hint=f"move them: mv {shlex.quote(str(legacy))} "
            f"{shlex.quote(str(directory / CONFIG_NAME))}",
            code="legacy_config",
        )
    above = _enclosing(directory)
    target = directory / CONFIG_NAME
    try:
        write_file(target, default_toml().encode("utf-8"), exclusive=True)
    except FileExistsError as exc:
        raise ConfigError(
            f"{target} exists already", hint="ragx config list shows it", code="config_exists"
        ) from exc
    if above is not None:
        envelope.warn(f"{directory} lies inside the corpus {above}, which indexes its files too")
    if as_json:
        envelope.emit(
            {
                "schema": "ragx.init.v1",
                "root": str(directory),
                "config": CONFIG_NAME,
                "created": True,
                "notes": list(_NOTES),
            }
        )
    else:
        lines = [f"wrote {target}", *(f"- {note}" for note in _NOTES), "Next: ragx index"]
        envelope.emit_text("\n".join(envelope.one_line(line) for line in lines))
    return envelope.OK


def _enclosing(directory: Path) -> Path | None:
    """Return the corpus that already covers the directory, if there is one."""
    try:
        return find_root(directory.parent, None)
    except ConfigError:
        return None

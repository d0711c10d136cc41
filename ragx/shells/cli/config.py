"""`ragx config get|set|list`: settings in force, where they come from, and changing one."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

import click

from ragx.config import (
    CONFIG_NAME,
    MACHINE_SECTIONS,
    RC_LABEL,
    RC_NAME,
    LoadedConfig,
    Setting,
    get_value,
    list_values,
    literal,
    load_config,
    require_machine_key,
    set_value,
    trust_written,
)
from ragx.errors import ConfigError
from ragx.shells.cli import envelope
from ragx.shells.cli.frame import (
    Command,
    Group,
    command_options,
    find_corpus,
    home_directory,
    open_corpus,
)

__all__ = ["command"]

_NUMBER = re.compile(r"-\.?\d")
_machine_option = click.option(
    "--global", "machine", is_flag=True, help=f"This machine's settings alone, in {RC_LABEL}."
)


class _SetCommand(Command):
    """Takes a negative number for a value, where click would see an option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        numbers = [] if "--" in args else [item for item in args if _NUMBER.match(item)]
        if len(numbers) == 1:
            args = [*(item for item in args if item not in numbers), "--", *numbers]
        return super().parse_args(ctx, args)


@click.group(
    "config",
    cls=Group,
    short_help="Show and change settings.",
    help=f"Show and change settings: {CONFIG_NAME} in the corpus, {RC_LABEL} on this machine.",
)
@command_options
def command(root: Path | None, as_json: bool) -> None:
    """Group the three commands, which take the options from here too."""


@command.command("get", help="Print the value of KEY (such as query.top) as it applies here.")
@click.argument("key")
@_machine_option
@command_options
def get(key: str, machine: bool, root: Path | None, as_json: bool) -> int:
    """Print one value."""
    if machine:
        require_machine_key(key)
    loaded = _load(root, machine=machine)
    setting = get_value(loaded, key)
    if as_json:
        envelope.emit(_document([setting], root=None if machine else loaded.root))
    else:
        value = setting.value if isinstance(setting.value, str) else literal(setting.value)
        envelope.emit_text(envelope.harmless(f"{value}\n"))
    return envelope.OK


@command.command("list", help="Print all settings and their origin, or those of one section.")
@click.argument("section", required=False, default="")
@_machine_option
@command_options
def list_(section: str, machine: bool, root: Path | None, as_json: bool) -> int:
    """Print many values."""
    loaded = _load(root, machine=machine)
    settings = list_values(loaded, section)
    if machine:
        if section:
            require_machine_key(settings[0].key)
        settings = tuple(item for item in settings if item.key.split(".")[0] in MACHINE_SECTIONS)
    if as_json:
        envelope.emit(_document(settings, root=None if machine else loaded.root))
    else:
        envelope.emit_text("\n".join(map(_line, settings)))
    return envelope.OK


@command.command(
    "set",
    cls=_SetCommand,
    help="Set KEY to VALUE: true, 20, 0.5, auto, text, or a list (a, b). Comments are kept.",
)
@click.argument("key")
@click.argument("value")
@_machine_option
@command_options
def set_(key: str, value: str, machine: bool, root: Path | None, as_json: bool) -> int:
    """Change one value, then say what applies now."""
    path = _machine_file(key) if machine else find_corpus(root) / CONFIG_NAME
    before = None if machine else _settings_if_valid(path.parent)
    written = set_value(path, key, value, create=True, inside=None if machine else path.parent)
    origin = RC_LABEL if machine else CONFIG_NAME
    try:
        loaded = _load(root, machine=machine)
        setting = get_value(loaded, key)
        if not machine and not trust_written(before, loaded, [key]):
            envelope.warn(f"{CONFIG_NAME} holds settings that do not count yet: ragx trust --list")
    except ConfigError as exc:
        # The file may be on its way to being mended, key by key: this step is done.
        envelope.warn(f"other settings are still invalid: {exc.message}")
        built_in = get_value(load_config(None, env={}, home=None), key)
        setting = built_in._replace(value=written, origin=origin)
    if as_json:
        corpus = None if machine else path.parent
        envelope.emit(_document([setting], root=corpus, file=path))
    else:
        envelope.emit_text(_line(setting))
    return envelope.OK


def _load(root: Path | None, *, machine: bool) -> LoadedConfig:
    if machine:
        return load_config(None, env=os.environ, home=home_directory())
    return open_corpus(root)


def _settings_if_valid(root: Path) -> LoadedConfig | None:
    try:
        return load_config(root, env=os.environ, home=home_directory())
    except ConfigError:
        return None


def _machine_file(key: str) -> Path:
    require_machine_key(key)
    home = home_directory()
    if home is None:
        raise ConfigError("no home directory to keep ~/.ragxrc in", hint="set HOME")
    return home / RC_NAME


def _line(setting: Setting) -> str:
    return envelope.one_line(f"{setting.key} = {literal(setting.value)}  # {setting.origin}")


def _document(
    settings: Sequence[Setting], *, root: Path | None, file: Path | None = None
) -> dict[str, object]:
    """Make `ragx.config.v1`; `file` is the one that was written, if one was."""
    document: dict[str, object] = {
        "schema": "ragx.config.v1",
        "root": None if root is None else str(root),
        "settings": [setting._asdict() for setting in settings],
    }
    if file is not None:
        document["file"] = str(file)
    return document

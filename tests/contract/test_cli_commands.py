"""Every command is made of the frame's parts and documents itself."""

from __future__ import annotations

import importlib
from collections.abc import Iterator

import click
import pytest

from ragx.shells.cli.frame import Command, Group
from ragx.shells.cli.main import COMMANDS


def commands() -> Iterator[tuple[str, click.Command]]:
    for name, (module, attribute, _help) in COMMANDS.items():
        command = getattr(importlib.import_module(module), attribute)
        yield name, command
        if isinstance(command, click.Group):
            for below, subcommand in command.commands.items():
                yield f"{name} {below}", subcommand


ALL = list(commands())


@pytest.mark.parametrize(("path", "command"), ALL, ids=[path for path, _ in ALL])
def test_a_command_answers_in_documents_and_explains_itself(
    path: str, command: click.Command
) -> None:
    # click's own classes would print help and usage errors past the envelope.
    assert isinstance(command, Command | Group)
    assert command.name == path.rsplit(" ", 1)[-1]
    assert (command.help or "").strip()
    options = [item for item in command.params if isinstance(item, click.Option)]
    assert {"--root", "--json"} <= {name for option in options for name in option.opts}
    assert [option.opts for option in options if not option.hidden and not option.help] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_the_table_says_what_the_command_says(name: str) -> None:
    assert dict(ALL)[name].short_help == COMMANDS[name][2]

"""Every command and option is explained by `--help`, and every command by README.md."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from ragx.shells.cli.frame import Group
from ragx.shells.cli.main import COMMANDS

REPOSITORY = Path(__file__).resolve().parents[2]

RunCli = Callable[..., Any]


def commands() -> Iterator[tuple[str, click.Command]]:
    """Every command with its path, groups and what is in them."""
    pending = [
        (name, getattr(importlib.import_module(module), attribute))
        for name, (module, attribute, _help) in COMMANDS.items()
    ]
    while pending:
        path, command = pending.pop(0)
        yield path, command
        if isinstance(command, Group):
            pending += [(f"{path} {name}", below) for name, below in command.commands.items()]


ALL = dict(commands())


@pytest.mark.parametrize("path", ALL)
def test_help_explains_the_command_its_options_and_arguments(
    path: str, ragx_inline: RunCli
) -> None:
    command = ALL[path]
    done = ragx_inline(*path.split(), "--help")
    assert done.returncode == 0
    shown = " ".join(done.stdout.split())
    assert f"Usage: ragx {path} " in shown
    assert " ".join((command.help or "?").split()) in shown
    for parameter in command.params:
        if isinstance(parameter, click.Argument):
            assert parameter.make_metavar(click.Context(command)).strip("[].") in shown
        elif isinstance(parameter, click.Option) and not parameter.hidden:
            assert set(parameter.opts) <= set(re.split(r"[\s,]+", shown)), parameter.name
            assert " ".join((parameter.help or "?").split()) in shown, parameter.name


@pytest.mark.parametrize("path", ALL)
def test_help_is_short_sentences(path: str) -> None:
    """One line that ends in a full stop; more belongs into README.md."""
    command = ALL[path]
    texts = [command.help or "", command.short_help or command.help or ""]
    texts += [
        option.help or ""
        for option in command.params
        if isinstance(option, click.Option) and not option.hidden
    ]
    assert [text for text in texts if not text.endswith(".") or "\n" in text] == []


def test_the_overview_lists_every_command_with_its_line(ragx_inline: RunCli) -> None:
    shown = " ".join(ragx_inline("--help").stdout.split())
    for name, (_module, _attribute, line) in COMMANDS.items():
        assert f"{name} {line}" in shown


@pytest.mark.parametrize(
    "path", [path for path, command in ALL.items() if not isinstance(command, Group)]
)
def test_readme_mentions_the_command(path: str) -> None:
    text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    group, _, name = path.rpartition(" ")
    # `ragx config get|set|list` mentions three.
    pattern = rf"\bragx {group} (?:[\w-]+\|)*{name}\b" if group else rf"\bragx {name}\b"
    assert re.search(pattern, text)

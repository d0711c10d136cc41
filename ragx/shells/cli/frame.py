"""What the commands are made of: lazy groups, shared options, faults turned into documents."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from ragx.errors import CorpusError, RagxError, UsageError
from ragx.shells.cli import envelope
from ragx.shells.cli.ask import person_there

if TYPE_CHECKING:
    from ragx.config import LoadedConfig

__all__ = [
    "Command",
    "Entry",
    "Group",
    "LazyGroup",
    "command_options",
    "find_corpus",
    "home_directory",
    "invoke",
    "open_corpus",
    "wants_json",
    "working_directory",
]

F = TypeVar("F", bound=Callable[..., Any])  # whatever click decorates
Entry = tuple[str, str, str]
"""A command's module, the name of its object there, and its line in `ragx --help`."""

_SETTINGS = {"help_option_names": ["-h", "--help"]}


class _Helpful(click.Command):
    """Help goes through the envelope: text, or one document with `--json`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs["context_settings"] = {**kwargs.get("context_settings", {}), **_SETTINGS}
        super().__init__(*args, **kwargs)
        self._own_help: click.Option | None = None

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        # One object per command: click compares options by identity when it orders them.
        if self._own_help is None:
            self._own_help = click.Option(
                ["-h", "--help", "show_help"],
                is_flag=True,
                is_eager=True,
                expose_value=False,
                callback=_show_help,
                help="Show this message and exit.",
            )
        return self._own_help


def _show_help(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if not value or ctx.resilient_parsing:
        return
    text = ctx.get_help()
    if envelope.json_wanted():
        envelope.emit({"schema": "ragx.help.v1", "command": ctx.command_path, "text": text})
    else:
        envelope.emit_text(text)
    ctx.exit(envelope.OK)


class Command(_Helpful):
    """A command; its function returns the exit code, None meaning 0."""


class Group(_Helpful, click.Group):
    """A command with subcommands; without one it says which there are."""

    command_class = Command

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.update(no_args_is_help=False, invoke_without_command=True)
        super().__init__(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        result = super().invoke(ctx)
        if ctx.invoked_subcommand is None:
            names = ", ".join(self.list_commands(ctx))
            if not envelope.json_wanted():
                envelope.notice(ctx.get_help() + "\n")
            raise UsageError(
                f"{ctx.command_path}: which command?", hint=f"one of: {names}", code="no_command"
            )
        return result

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        command = self.get_command(ctx, name)
        if command is not None:
            return name, command, args[1:]
        names = self.list_commands(ctx)
        raise UsageError(
            f"no such command: {ctx.command_path} {name}",
            hint=_suggest(name, names) or f"one of: {', '.join(names)}",
            code="unknown_command",
        )


class LazyGroup(Group):
    """A group that imports a command's module only when that command runs."""

    def __init__(self, *args: Any, table: Mapping[str, Entry], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.table = table

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.table:
            return None
        import importlib

        module, attribute, _help = self.table[cmd_name]
        return cast("click.Command", getattr(importlib.import_module(module), attribute))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry[2]) for name, entry in self.table.items()])


def command_options(function: F) -> F:
    """Add `--root DIR` and `--json`, passed as `root: Path | None` and `as_json: bool`.

    Either may also stand before the command's name: `ragx --json status`.
    """
    function = click.option(
        "--json",
        "as_json",
        is_flag=True,
        callback=_inherited,
        help="Print one JSON document instead of text.",
    )(function)
    return click.option(
        "--root",
        type=click.Path(path_type=Path),
        metavar="DIR",
        callback=_inherited,
        help="Corpus root; default: the nearest directory above that holds ragx.toml or .ragx.",
    )(function)


def _inherited(ctx: click.Context, parameter: click.Parameter, value: Any) -> Any:
    above = ctx.parent
    while not value and above is not None:
        value = above.params.get(str(parameter.name))
        above = above.parent
    return value


def home_directory() -> Path | None:
    """Return the directory of `~/.ragxrc`, None where the user has no home."""
    try:
        return Path.home()
    except RuntimeError:
        return None


def working_directory() -> Path:
    """Return the current directory.

    Raises:
        CorpusError: it has been deleted.
    """
    try:
        return Path.cwd()
    except FileNotFoundError as exc:
        raise CorpusError(
            "the current directory no longer exists", hint="cd to another", code="no_directory"
        ) from exc


def find_corpus(root: Path | None) -> Path:
    """Return the corpus root for `--root`, its settings moved from the old place if need be.

    Raises:
        RagxError: no such directory, no corpus, or settings in two places.
    """
    from ragx.config import find_root, migrate_legacy

    corpus = find_root(working_directory(), root)
    # A program that asked for a document is not there to answer, even on a terminal.
    ask = _ask if person_there() and not envelope.json_wanted() else None
    migrate_legacy(corpus, ask=ask, notice=lambda line: envelope.notice(envelope.one_line(line)))
    return corpus


def open_corpus(root: Path | None) -> LoadedConfig:
    """Return the settings for `--root`; what `~/.ragxrc` overrides is said on standard error.

    Raises:
        RagxError: as `find_corpus`, or invalid settings.
    """
    from ragx.config import load_config

    loaded = load_config(find_corpus(root), env=os.environ, home=home_directory())
    for line in loaded.overrides:
        envelope.warn(line)
    return loaded


def _ask(question: str) -> bool:
    return click.confirm(envelope.one_line(question), default=True, err=True)


def wants_json(args: Sequence[str]) -> bool:
    """Whether `--json` stands among the options, also on a command line that cannot be parsed."""
    for argument in args:
        if argument == "--":
            return False
        if argument == "--json" or argument.startswith("--json="):
            return True
    return False


def invoke(command: click.Command, args: Sequence[str]) -> int:
    """Run a command line and return its exit code; every fault has been reported by then.

    Raises:
        KeyboardInterrupt: the user interrupted.
    """
    envelope.begin(as_json=wants_json(args))
    try:
        return _reported(command, args)
    except envelope.OutputClosed:
        return envelope.OK
    except RagxError as exc:  # even the report could not be written
        return envelope.emit_error(exc)


def _reported(command: click.Command, args: Sequence[str]) -> int:
    try:
        # Not command.main(): it would turn a broken pipe into exit 1 and print on its own.
        with command.make_context("ragx", list(args)) as ctx:
            result = command.invoke(ctx)
        return result if isinstance(result, int) else envelope.OK
    except click.exceptions.Exit as exc:
        return exc.exit_code
    except click.ClickException as exc:
        return envelope.emit_error(_usage_error(exc))
    except click.Abort as exc:
        if isinstance(exc.__cause__ or exc.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt from exc
        fault = UsageError("input ended before the question was answered", code="no_input")
        return envelope.emit_error(fault)
    except RagxError as exc:
        _trace()
        return envelope.emit_error(exc)
    except envelope.OutputClosed:
        raise
    except Exception as exc:  # the shell's last resort: a defect must not look like a crash
        _trace()
        return envelope.emit_error(
            RagxError(
                f"internal error: {type(exc).__name__}: {exc}".rstrip(": "),
                hint="run it again with RAGX_DEBUG=1 set, and report what it prints",
                code="internal",
            )
        )


def _trace() -> None:
    """Print the traceback for whoever asked for it."""
    if os.environ.get("RAGX_DEBUG"):
        import traceback

        traceback.print_exc(file=sys.stderr)


def _usage_error(exc: click.ClickException) -> UsageError:
    """Translate click's complaint: one line, and a hint with the nearest names."""
    ctx = exc.ctx if isinstance(exc, click.UsageError) else None
    path = ctx.command_path if ctx is not None else "ragx"
    if isinstance(exc, click.NoSuchOption):
        options = [] if ctx is None else _option_names(ctx)
        hint = _suggest(exc.option_name, options)
        return UsageError(
            f"{path}: no such option: {exc.option_name}", hint=hint or f"{path} --help"
        )
    return UsageError(f"{path}: {exc.format_message()}", hint=f"{path} --help")


def _option_names(ctx: click.Context) -> list[str]:
    return [
        name
        for parameter in ctx.command.get_params(ctx)
        if isinstance(parameter, click.Option)
        for name in (*parameter.opts, *parameter.secondary_opts)
        if name.startswith("--")
    ]


def _suggest(name: str, known: Sequence[str]) -> str:
    import difflib

    close = difflib.get_close_matches(name, known, n=3, cutoff=0.6)
    return f"did you mean {' or '.join(close)}?" if close else ""

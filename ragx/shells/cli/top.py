"""`ragx` itself: the options before a command's name, and `--version`."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ragx import __version__
from ragx.errors import ConfigError
from ragx.shells.cli import envelope
from ragx.shells.cli.frame import LazyGroup, command_options, home_directory, working_directory
from ragx.shells.cli.main import COMMANDS

if TYPE_CHECKING:
    from ragx.config import Config

__all__ = ["command"]


@click.command(
    "ragx",
    cls=LazyGroup,
    table=COMMANDS,
    help="Find the right files, and the exact lines in them, by plain words.",
    epilog="Exit codes: 0 results, 1 success but empty, 2 error.",
)
@command_options
@click.option("--version", "show_version", is_flag=True, help="Show version, corpus and models.")
@click.pass_context
def command(ctx: click.Context, root: Path | None, as_json: bool, show_version: bool) -> None:
    """Answer `--version`; everything else is a subcommand's work."""
    if show_version:
        _show_version(root, as_json=as_json)
        ctx.exit(envelope.OK)


def _show_version(root: Path | None, *, as_json: bool) -> None:
    """Print what runs here; invalid settings are a warning, as the version is known anyway."""
    from ragx.config import find_root, load_config

    corpus: Path | None = None
    config: Config | None = None
    warnings: list[str] = []
    # Outside a corpus the machine's own settings are shown.
    with contextlib.suppress(ConfigError):
        corpus = find_root(working_directory(), root)
    try:
        config = load_config(corpus, env=os.environ, home=home_directory()).config
    except ConfigError as exc:
        warnings.append(exc.message)
    stages = {} if config is None else _stages(config)
    if as_json:
        envelope.emit(
            {
                "schema": "ragx.version.v1",
                "version": __version__,
                "root": None if corpus is None else str(corpus),
                "stages": stages,
                "warnings": warnings,
            }
        )
        return
    lines = [f"ragx {__version__}", f"root        {corpus or 'none (not inside a corpus)'}"]
    for name, stage in stages.items():
        label = f"{stage['provider']}/{stage['model']}" if stage["model"] else stage["provider"]
        lines.append(f"{name:<11} {label if stage['enabled'] else 'off'}")
    envelope.emit_text("\n".join(map(envelope.one_line, lines)))
    for line in warnings:
        envelope.warn(line)


def _stages(config: Config) -> dict[str, dict[str, str | bool | None]]:
    """Return provider and model per stage; a model that only its provider knows is None."""
    embeddings, expansion, rerank = config.embeddings, config.expansion, config.rerank
    return {
        name: {"enabled": enabled, "provider": provider, "model": model or None}
        for name, enabled, provider, model in (
            ("embeddings", embeddings.provider != "none", embeddings.provider, embeddings.model),
            ("expansion", expansion.enabled, expansion.provider, expansion.model),
            ("rerank", rerank.enabled, rerank.provider, rerank.model),
        )
    }

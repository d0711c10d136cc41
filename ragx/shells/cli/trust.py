"""`ragx trust`: let settings of a `ragx.toml` count that somebody else may have written."""

from __future__ import annotations

from pathlib import Path

import click

from ragx.config import (
    CONFIG_NAME,
    TRUST_LABEL,
    LoadedConfig,
    forget,
    get_value,
    is_trusted,
    remember,
    sensitive,
)
from ragx.errors import UsageError
from ragx.shells.cli import ask, envelope
from ragx.shells.cli.frame import Command, command_options, open_corpus

__all__ = ["command"]


@click.command(
    "trust",
    cls=Command,
    short_help="Let settings of a cloned ragx.toml count.",
    help=(
        "Let the settings of this ragx.toml count that send text or keys away, run a program or"
        " load a file. They are shown first; any change to them asks anew. Exit code 1 with"
        " --list: some do not count yet."
    ),
)
@click.option("--list", "only_list", is_flag=True, help="Show these settings, change nothing.")
@click.option("--revoke", is_flag=True, help="Let them no longer count on this machine.")
@click.option("--yes", is_flag=True, help="Do not ask on a terminal.")
@command_options
def command(only_list: bool, revoke: bool, yes: bool, root: Path | None, as_json: bool) -> int:
    """Show the settings, and note the user's word."""
    if only_list and revoke:
        raise UsageError("trust: give --list or --revoke, not both", hint="ragx trust --list")
    loaded = open_corpus(root)
    found = sensitive(loaded)
    if not as_json:
        envelope.emit_text("\n".join(map(envelope.one_line, _lines(loaded, found))))
    changed = False
    if revoke:
        changed = forget(loaded)
    elif not only_list and not is_trusted(loaded) and (yes or _agreed(as_json=as_json)):
        changed = remember(loaded)
    trusted = is_trusted(loaded)
    if as_json:
        envelope.emit(_document(loaded, found, trusted=trusted, changed=changed))
    elif found:
        envelope.emit_text(_outcome(trusted=trusted, changed=changed))
    return envelope.OK if trusted or revoke else envelope.EMPTY


def _agreed(*, as_json: bool) -> bool:
    """A person is asked; who runs the command in a script has said so by that."""
    if as_json or not ask.person_there():
        return True
    return click.confirm("Trust these settings on this machine?", default=False, err=True)


def _lines(loaded: LoadedConfig, found: dict[str, str]) -> list[str]:
    if not found:
        return [f"nothing in {loaded.root / CONFIG_NAME} needs trust"]
    lines = [f"{loaded.root / CONFIG_NAME} sets:"]
    for dotted, why in found.items():
        lines.append(f"  {dotted} = {get_value(loaded, dotted).value}")
        lines.append(f"      {why}")
    return lines


def _outcome(*, trusted: bool, changed: bool) -> str:
    if trusted:
        return f"trusted: noted in {TRUST_LABEL}" if changed else "trusted already"
    return "no longer trusted" if changed else "not trusted: these settings do not count"


def _document(
    loaded: LoadedConfig, found: dict[str, str], *, trusted: bool, changed: bool
) -> dict[str, object]:
    return {
        "schema": "ragx.trust.v1",
        "root": str(loaded.root),
        "trusted": trusted,
        "changed": changed,
        "settings": [
            {"key": dotted, "value": get_value(loaded, dotted).value, "why": why}
            for dotted, why in found.items()
        ],
    }

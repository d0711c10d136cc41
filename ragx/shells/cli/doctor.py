"""`ragx doctor`: does everything that is configured work, and what helps where it does not?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ragx.errors import RagxError
from ragx.shells.cli import envelope
from ragx.shells.cli.frame import Command, command_options, open_corpus

if TYPE_CHECKING:
    from ragx.api.health import Check, Health

__all__ = ["command"]

_MARKS = {"ok": ("✓", "green"), "warn": ("!", "yellow"), "fail": ("✗", "red"), "skip": ("-", "dim")}
_SLOW_MS = 1000


@click.command(
    "doctor",
    cls=Command,
    short_help="Test models, servers and the index; say what helps.",
    help=(
        "Ask the configured models for real, compare the index with settings and disk, and name"
        " the command that helps. Exit code 1: a check failed; warnings are no failure."
    ),
)
@click.option(
    "--deep",
    is_flag=True,
    help="Also find out how much of a text the model reads, and check all that is stored.",
)
@click.option(
    "--fix", "repair", is_flag=True, help="Run the index command that helps, then test again."
)
@command_options
def command(deep: bool, repair: bool, root: Path | None, as_json: bool) -> int:
    """Test, then show."""
    from ragx.api import Corpus
    from ragx.api.health import check_health, fix

    corpus = Corpus.of(open_corpus(root))
    health = check_health(corpus, deep=deep, notice=envelope.tell)
    fixed = failed = ""
    if repair:
        try:
            fixed = fix(corpus, health)
        except RagxError as fault:
            failed = fault.message
            envelope.warn(f"--fix: {failed}")
        if fixed:
            envelope.notice(f"ran: {fixed}")
            health = check_health(corpus, deep=deep, notice=envelope.tell)
    if as_json:
        envelope.emit(_document(corpus.root, health, fixed, failed))
    else:
        envelope.emit_text("\n".join(_lines(health)))
    return envelope.OK if health.ok else envelope.EMPTY


def _document(root: Path, health: Health, fixed: str, failed: str) -> dict[str, object]:
    return {
        "schema": "ragx.doctor.v1",
        "root": str(root),
        "ok": health.ok,
        "checks": [
            {
                "name": check.name,
                "status": check.status,
                "detail": envelope.one_line(check.detail),
                "hint": envelope.one_line(check.hint),
                "elapsed_ms": check.elapsed_ms,
                "notes": [envelope.one_line(note) for note in check.notes],
            }
            for check in health.checks
        ],
        "fixed": fixed,
        "fix_failed": envelope.one_line(failed),
    }


def _lines(health: Health) -> list[str]:
    lines = []
    for check in health.checks:
        lines += _check_lines(check)
    return lines


def _check_lines(check: Check) -> list[str]:
    mark, style = _MARKS[check.status]
    took = f"  {check.elapsed_ms / 1000:.1f}s" if check.elapsed_ms >= _SLOW_MS else ""
    lines = [
        f"{envelope.styled(mark, style)} {check.name:<11} {envelope.one_line(check.detail)}{took}"
    ]
    lines += [f"  {'':<11} {envelope.one_line(note)}" for note in check.notes]
    if check.hint:
        lines.append(f"  {'':<11} → {envelope.one_line(check.hint)}")
    return lines

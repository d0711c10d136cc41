"""Questions to a person at a terminal: shown on standard error, answered line by line.

An answer that will not do is asked for again, with the reason. The end of input is an error, an
interrupt ends the program: callers write nothing before the last answer.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TypeVar

from ragx.errors import RagxError, UsageError
from ragx.shells.cli import envelope

__all__ = ["ask", "choose", "confirm", "person_there", "pick", "say"]

T = TypeVar("T")


def person_there() -> bool:
    """Whether somebody can read a question and answer it."""
    return sys.stdin is not None and envelope.is_tty(sys.stdin) and envelope.is_tty(sys.stderr)


def say(text: str = "", style: str = "") -> None:
    """Show one line that is no question."""
    line = envelope.one_line(text)
    envelope.notice(envelope.styled(line, style, sys.stderr) if style else line)


def ask(question: str, read: Callable[[str], T], *, default: str = "", shown: str = "") -> T:
    """Ask until `read` takes the answer.

    Args:
        read: turns the answer into a value; raises a RagxError that says what is wrong with it.
        default: what an empty line stands for.
        shown: what to put in brackets in place of `default`.
    Raises:
        UsageError: code "no_input": input ended.
    """
    bracket = shown or default
    prompt = envelope.one_line(f"{question} [{bracket}]: " if bracket else f"{question}: ")
    while True:
        try:
            return read(_line(prompt) or default)
        except RagxError as fault:
            if fault.code == "no_input":
                raise
            hint = f" ({fault.hint})" if fault.hint else ""
            say(f"  {fault.message}{hint}", "yellow")


def confirm(question: str, *, default: bool) -> bool:
    """Ask for yes or no."""

    def read(answer: str) -> bool:
        word = answer.lower()
        if word not in ("y", "yes", "n", "no"):
            raise UsageError("y or n")
        return word.startswith("y")

    return ask(question, read, default="y" if default else "n", shown="Y/n" if default else "y/N")


def pick(answer: str, names: Sequence[str]) -> str:
    """Read a number of a list shown from 1 on, or one of its names.

    Raises:
        UsageError: it is neither.
    """
    if answer.isdecimal() and len(answer) < 10 and 1 <= int(answer) <= len(names):
        return names[int(answer) - 1]
    if answer in names:
        return answer
    numbers = "1" if len(names) == 1 else f"1 to {len(names)}"
    raise UsageError(f"{answer!r} is not in the list: {numbers}, or a name")


def choose(title: str, rows: Sequence[tuple[str, str]], *, default: str) -> str:
    """Show a numbered menu and return the name that is picked; `»` marks the default."""
    say(title, "bold")
    width = max(len(name) for name, _ in rows)
    for number, (name, about) in enumerate(rows, start=1):
        mark = "»" if name == default else " "
        say(f"  {mark} {number}  {name:<{width}}  {about}".rstrip())
    names = [name for name, _ in rows]
    place = str(names.index(default) + 1)
    return ask("Number or name", lambda answer: pick(answer, names), default=place)


def _line(prompt: str) -> str:
    """Read one line; what is not text, or could command a terminal, is asked for again."""
    while True:
        try:
            sys.stderr.write(prompt)
            sys.stderr.flush()
            raw = sys.stdin.buffer.readline() if sys.stdin is not None else b""
        except KeyboardInterrupt:
            envelope.notice("")
            raise
        if not raw:
            envelope.notice("")
            raise UsageError(
                "input ended before the question was answered",
                hint="run it again with --yes to take every default",
                code="no_input",
            )
        try:
            answer = raw.decode("utf-8").strip()
        except UnicodeDecodeError:
            say("  that is not UTF-8 text", "yellow")
            continue
        if answer.isprintable():
            return answer
        say("  that holds keys that are no text, such as arrows: type it again", "yellow")

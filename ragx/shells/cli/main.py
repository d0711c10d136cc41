"""The `ragx` program: what commands there are, and how the process starts and ends.

Only `sys` and `os` are imported up here, so that an interrupt during start is as quiet as one
later.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

__all__ = ["COMMANDS", "main", "run"]

COMMANDS = {
    "init": ("ragx.shells.cli.init", "command", "Write ragx.toml: make a directory a corpus."),
    "index": ("ragx.shells.cli.index", "command", "Bring the index up to date with the files."),
    "query": ("ragx.shells.cli.query", "command", "Find files and exact lines by plain words."),
    "ask": (
        "ragx.shells.cli.answer",
        "command",
        "Let a chat model answer from the files, citations checked.",
    ),
    "status": ("ragx.shells.cli.status", "command", "Show what is indexed and what has changed."),
    "doctor": (
        "ragx.shells.cli.doctor",
        "command",
        "Test models, servers and the index; say what helps.",
    ),
    "verify": ("ragx.shells.cli.verify", "command", "Compare the index with a fresh one."),
    "eval-draft": (
        "ragx.shells.cli.eval_draft",
        "command",
        "Draft queries for an evaluation, to be edited.",
    ),
    "eval": ("ragx.shells.cli.eval", "command", "Measure the answers on judged questions."),
    "inspect": (
        "ragx.shells.cli.inspect",
        "command",
        "Look into the index: chunks, files, edges, communities.",
    ),
    "read": ("ragx.shells.cli.read", "command", "Show a chunk, or lines of an indexed file."),
    "web": ("ragx.shells.cli.web", "command", "Look at the graph and ask, in a browser."),
    "mcp": (
        "ragx.shells.cli.mcp",
        "command",
        "Serve the corpus to agents by the Model Context Protocol.",
    ),
    "agents": (
        "ragx.shells.cli.agents",
        "command",
        "Print or write set-up for coding agents.",
    ),
    "models": ("ragx.shells.cli.models", "command", "Choose, download and set up models."),
    "trust": ("ragx.shells.cli.trust", "command", "Let settings of a cloned ragx.toml count."),
    "config": ("ragx.shells.cli.config", "command", "Show and change settings."),
    "schema": ("ragx.shells.cli.schema", "command", "Print the JSON Schema of a document."),
}


def run() -> NoReturn:
    """Run the command line of this process and exit with its code.

    The first interrupt unwinds, so that files and locks are released; a second one ends the
    process at once, which the index survives as it does a kill.
    """
    status = 130
    try:
        import signal

        # A shell that starts jobs in the background makes them ignore interrupts: respect it.
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, _first_interrupt)
        from ragx.shells.cli import envelope

        envelope.claim_stdout()
        status = main(sys.argv[1:])
    except KeyboardInterrupt:
        status = 130
    sys.exit(status)


def main(args: Sequence[str]) -> int:
    """Run one command line and return its exit code.

    Raises:
        KeyboardInterrupt: the user interrupted.
    """
    from ragx.shells.cli.frame import invoke
    from ragx.shells.cli.top import command

    return invoke(command, args)


def _first_interrupt(_number: int, _frame: object) -> NoReturn:
    import signal

    signal.signal(signal.SIGINT, _second_interrupt)
    raise KeyboardInterrupt


def _second_interrupt(_number: int, _frame: object) -> NoReturn:
    os._exit(130)

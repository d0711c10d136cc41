"""`python -m ragx` is the `ragx` command."""

from __future__ import annotations

from ragx.shells.cli.main import run

if __name__ == "__main__":
    run()

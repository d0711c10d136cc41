"""Set-up for coding agents: what they should know of the corpus, and how clients start `ragx mcp`.

The text goes between two markers into AGENTS.md or CLAUDE.md, where it can be brought up to date;
whatever else stands in the file keeps every byte.
"""

from __future__ import annotations

import codecs
import os
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ragx.config.edit import write_file
from ragx.documents.read import read_inside
from ragx.errors import ConfigError, ExtractionError

__all__ = ["BEGIN", "BLOCK", "END", "Client", "WrittenBlock", "clients", "edited", "write_block"]

BEGIN = "<!-- ragx:begin -->"
END = "<!-- ragx:end -->"
NAMES = ("AGENTS.md", "CLAUDE.md")
BLOCK = """\
## Searching this repository
This repository has a ragx index. To find where something is explained, decided or implemented,
run `ragx query "<question in plain words>" --brief`: each line `path:first-last  heading` is a
place to read, with the lines that say most. `--json --top 3` instead gives three files with the
text of their best passages. For exact identifiers use
`--mode lexical --no-graph`. After editing files run `ragx index` (only what changed is read).
Exit codes: 0 results, 1 nothing found, 2 error (the JSON says what to do).
"""
_HEADING = BLOCK.partition("\n")[0]
_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"),
         (codecs.BOM_UTF16_BE, "utf-16-be"))  # fmt: skip

Action = Literal["created", "added", "updated", "unchanged"]


@dataclass(frozen=True, slots=True)
class WrittenBlock:
    """What became of the block: in which file of the root, and how."""

    file: str
    action: Action


@dataclass(frozen=True, slots=True)
class Client:
    """How a program that speaks MCP learns of this corpus.

    Args:
        file: where its settings are, as its manual has it.
        command, args: what it shall start.
        shell: a command that does the same; "" where there is none.
    """

    name: str
    file: str
    command: str
    args: tuple[str, ...]
    shell: str = ""


def clients(root: Path) -> tuple[Client, ...]:
    """The clients whose formats are known.

    Claude Desktop starts programs anywhere and without the user's PATH, and hence is given
    absolute paths. The other two files belong to the project and go to others with it.
    """
    command, *args = _own_program()
    return (
        Client(
            "Claude Desktop",
            "claude_desktop_config.json (Settings > Developer > Edit Config)",
            command,
            (*args, "mcp", "--root", str(root)),
        ),
        Client(
            "Claude Code",
            ".mcp.json",
            "ragx",
            ("mcp",),
            "claude mcp add --scope project ragx -- ragx mcp",
        ),
        Client("Cursor", ".cursor/mcp.json", "ragx", ("mcp", "--root", "${workspaceFolder}")),
    )


def _own_program() -> list[str]:
    """How this ragx is started from anywhere."""
    beside = Path(sys.executable).with_name("ragx.exe" if os.name == "nt" else "ragx")
    if beside.is_file():
        return [str(beside)]
    found = shutil.which("ragx")
    return [os.path.abspath(found)] if found else [sys.executable, "-m", "ragx"]


def write_block(root: Path) -> WrittenBlock:
    """Put the block into AGENTS.md, or into CLAUDE.md if that is all there is.

    Raises:
        ConfigError: the file cannot be read or written, leads out of the corpus, or its markers
            or an older copy of the text leave open what should be replaced (code "bad_markers").
    """
    there = [name for name in NAMES if os.path.lexists(root / name)]
    name = there[0] if there else NAMES[0]
    if not there:
        write_file(root / name, edited(b"", name), inside=root)
        return WrittenBlock(name, "created")
    try:
        old = read_inside(root, name)[0]
    except ExtractionError as exc:
        raise ConfigError(
            f"{root / name} is not a regular file of the corpus: it is not written to",
            hint=f"make {name} a file of its own",
            code="linked_config",
        ) from exc
    except OSError as exc:
        raise ConfigError(f"{root / name}: cannot be read: {exc.strerror or exc}") from exc
    new = edited(old, name)
    if new == old:
        return WrittenBlock(name, "unchanged")
    write_file(root / name, new, inside=root)
    return WrittenBlock(name, "updated" if _finds(old, BEGIN) else "added")


def edited(raw: bytes, name: str = NAMES[0]) -> bytes:
    """A file's bytes with the block in them once, and everything else as it was.

    Args:
        raw: the file; byte-order mark and line ends are kept and followed.
        name: for messages.
    Raises:
        ConfigError: code "bad_markers": it does not say what to replace.
    """
    encoding, line_end = _manner(raw)
    block = f"{BEGIN}\n{BLOCK}{END}".replace("\n", line_end).encode(encoding)
    starts, ends = _places(raw, BEGIN, encoding), _places(raw, END, encoding)
    if starts or ends:
        if len(starts) != 1 or len(ends) != 1 or ends[0] < starts[0]:
            raise ConfigError(
                f"{name} holds {len(starts)} of {BEGIN} and {len(ends)} of {END}: one pair, in"
                " that order, shows where the text belongs",
                hint=f"put {name} right by hand, and run ragx agents --write again",
                code="bad_markers",
            )
        return raw[: starts[0]] + block + raw[ends[0] + len(END.encode(encoding)) :]
    pasted = BLOCK.rstrip("\n").replace("\n", line_end).encode(encoding)
    copies = _places(raw, pasted.decode(encoding), encoding)
    if len(copies) == 1:  # put there by hand, as README says
        return raw[: copies[0]] + block + raw[copies[0] + len(pasted) :]
    text = raw.decode(encoding, "replace")
    if re.search(rf"^{re.escape(_HEADING)}[ \t]*\r?$", text, re.MULTILINE):
        raise ConfigError(
            f'{name} has a section "{_HEADING.lstrip("# ")}" already, without markers',
            hint=f"put {BEGIN} above it and {END} below it, or delete it; then run"
            " ragx agents --write again",
            code="bad_markers",
        )
    gap = line_end.encode(encoding)
    before = raw
    if text.lstrip("\ufeff"):
        before += gap if text.endswith(("\n", "\r")) else gap * 2
    return before + block + gap


def _manner(raw: bytes) -> tuple[str, str]:
    """Encoding and line end of a file; UTF-8 and LF where it shows none."""
    encoding = next((name for bom, name in _BOMS if raw.startswith(bom)), "utf-8")
    first = re.search(r"\r\n|\n|\r", raw.decode(encoding, "replace"))
    return encoding, first[0] if first else "\n"


def _finds(raw: bytes, text: str) -> bool:
    return bool(_places(raw, text, _manner(raw)[0]))


def _places(raw: bytes, text: str, encoding: str) -> list[int]:
    """Byte offsets of a text, none inside another; in UTF-16 at whole characters."""
    wanted = text.encode(encoding)
    width = len("x".encode(encoding))
    found, at = [], raw.find(wanted)
    while at >= 0:
        if at % width == 0:
            found.append(at)
        at = raw.find(wanted, at + (len(wanted) if at % width == 0 else 1))
    return found

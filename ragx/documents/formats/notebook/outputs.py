"""What a notebook's cell has put out: text alone, and not much of it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from ragx.documents.formats.base import Block, Place
from ragx.documents.formats.notebook.markdown import cell_blocks
from ragx.documents.formats.tidy import clean, strip_markup

__all__ = ["Outputs", "joined"]

# Enough for a table's head, a summary or a message; a log that goes on helps no search.
_MAX_LINES = 20
_MAX_CHARS = 2_000
_MAX_CELL_CHARS = 4_000
# What is looked at of one output at all: its end would be cut anyway.
_MAX_READ = 200_000
_MAX_NAME = 1_000

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
# `<Figure size 640x480 with 1 Axes>`, `[<matplotlib.lines.Line2D at 0x7f...>]`: names of objects.
_OBJECT = re.compile(r"[\[(]*<[^\n]*>[\])]*,?")
_FORMAT_3 = {"text": "text/plain", "html": "text/html", "png": "image/png", "jpeg": "image/jpeg",
             "svg": "image/svg+xml", "latex": "text/latex", "javascript": "text/javascript",
             "json": "application/json"}  # fmt: skip


def joined(value: object) -> str:
    """A text that is kept as one string or as a list of lines; "" for anything else."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(line for line in value if isinstance(line, str))
    return ""


class Outputs:
    """The outputs of one cell as blocks; `left_out` counts what is not in them."""

    def __init__(self, place: Place, left_out: Counter[str]) -> None:
        self.place = place
        self.left_out = left_out
        self.n_chars = 0

    def blocks(self, outputs: list[Any]) -> Iterator[Block]:
        outputs = [output for output in outputs if isinstance(output, dict)]
        for stream, group in groupby(outputs, key=_stream):
            if stream:
                # A program that prints often has many outputs which are one text.
                yield from self.printed("".join(joined(output.get("text")) for output in group))
                continue
            for output in group:
                if output.get("output_type") in ("error", "pyerr"):
                    yield from self.printed(_error(output))
                else:
                    yield from self.shown(output)

    def shown(self, output: dict[str, Any]) -> Iterator[Block]:
        """Take the plainest text of an output that exists in several forms."""
        data = output.get("data")
        if not isinstance(data, dict):
            data = {_FORMAT_3[key]: value for key, value in output.items() if key in _FORMAT_3}
        images = any(key.startswith("image/") for key in data)
        self.left_out["images"] += images
        if any("widget-view" in key for key in data):
            self.left_out["widgets"] += 1
            return
        plain = joined(data.get("text/plain")).strip()
        is_name = len(plain) < _MAX_NAME and _OBJECT.fullmatch(plain) is not None
        if plain and not is_name:
            yield from self.printed(plain)
        elif "text/markdown" in data:
            markdown = self.cut(joined(data["text/markdown"]))
            yield from cell_blocks(markdown, self.place, self.left_out, headings=False)
        elif "text/html" in data:
            yield from self.printed(strip_markup(joined(data["text/html"])[:_MAX_READ]))
        elif "text/latex" in data:
            yield from self.printed(joined(data["text/latex"]))
        elif data and not images:
            self.left_out["outputs without text"] += 1

    def printed(self, text: str) -> Iterator[Block]:
        text = self.cut(text)
        if text:
            yield Block("code", text, self.place)

    def cut(self, text: str) -> str:
        """Its first lines, as a terminal would show them; the others are counted."""
        lines = _as_shown(text[:_MAX_READ])
        beyond = text.count("\n", _MAX_READ)
        room = min(_MAX_CHARS, _MAX_CELL_CHARS - self.n_chars)
        taken: list[str] = []
        for line in lines[:_MAX_LINES]:
            if len(line) > room:
                break
            taken.append(line)
            room -= len(line) + 1
        if not taken and lines and room > 0:
            taken = [lines[0][:room]]
        self.left_out["lines of output"] += len(lines) - len(taken) + beyond
        result = "\n".join(taken).strip()
        self.n_chars += len(result)
        return result


def _stream(output: dict[str, Any]) -> str:
    if output.get("output_type") != "stream":
        return ""
    name = output.get("name", output.get("stream"))
    return name if isinstance(name, str) and name else "stdout"


def _as_shown(text: str) -> list[str]:
    """Lines without escapes, blank ones at the ends, and what a progress bar has overwritten."""
    text = _ANSI.sub("", text).replace("\r\n", "\n")
    lines = [line.rstrip("\r").rsplit("\r", 1)[-1] for line in text.split("\n")]
    lines = [line.rstrip() for line in clean("\n".join(lines)).split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    first = next((index for index, line in enumerate(lines) if line), 0)
    return lines[first:]


def _error(output: dict[str, Any]) -> str:
    """The frame that raised, and the message."""
    name, value = joined(output.get("ename")), joined(output.get("evalue"))
    message = f"{name}: {value}" if value else name
    traceback = output.get("traceback")
    frames = (
        [frame for frame in traceback if isinstance(frame, str)]
        if isinstance(traceback, list)
        else []
    )
    bare = [_ANSI.sub("", frame[:_MAX_READ]).strip() for frame in frames]
    last = next((frame for frame in reversed(bare) if frame and not _is_message(frame, name)), "")
    if last.startswith("-----"):
        last = ""
    return f"{last}\n{message}".strip()


def _is_message(frame: str, name: str) -> bool:
    return bool(name) and frame.startswith(name) and "Traceback" not in frame.split("\n", 1)[0]

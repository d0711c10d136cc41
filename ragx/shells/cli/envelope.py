"""The only writer of standard output: one document, or text for people; errors; exit codes.

Whatever a library or a stray print sends to standard output ends on standard error instead (see
`claim_stdout`), so that what a program reads is the document and nothing else.

| exit | means                                                                              |
|------|------------------------------------------------------------------------------------|
| 0    | results; also: the reader closed the pipe, and so has what it wanted               |
| 1    | success, but empty                                                                 |
| 2    | error                                                                              |
| 130  | interrupted                                                                        |
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from typing import IO, BinaryIO, cast

from ragx.errors import RagxError

__all__ = [
    "EMPTY",
    "ERROR",
    "INTERRUPTED",
    "OK",
    "OutputClosed",
    "begin",
    "claim_stdout",
    "emit",
    "emit_error",
    "emit_piece",
    "emit_text",
    "harmless",
    "is_tty",
    "json_bytes",
    "json_wanted",
    "notice",
    "one_line",
    "styled",
    "take_stdout",
    "tell",
    "warn",
]

OK = 0
EMPTY = 1
ERROR = 2
INTERRUPTED = 130

# Controls, line breaks of Unicode, and what turns the direction of writing.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_HARMFUL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_STYLES = {"red": "31", "yellow": "33", "green": "32", "cyan": "36", "bold": "1", "dim": "2"}


class OutputClosed(Exception):
    """Nobody reads standard output any more; there is nothing left to do and nothing to say."""


class _Output:
    """Where documents go in this process, and what the running command owes."""

    descriptor: int | None = None
    as_json = False
    documents = 0


def begin(*, as_json: bool) -> None:
    """Start a command: whether it owes a document; none has been written yet."""
    _Output.as_json = as_json
    _Output.documents = 0


def json_wanted() -> bool:
    """Whether the running command line asks for a document."""
    return _Output.as_json


def claim_stdout() -> None:
    """Keep standard output for documents; everybody else's writes to it go to standard error.

    Works on descriptors, so that prints by native libraries and child processes are caught too.
    A standard stream that was closed is opened on the null device first: the next file opened
    would otherwise take its number and receive its output.
    """
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    _Output.descriptor = os.dup(1)
    os.dup2(2, 1)


def take_stdout() -> BinaryIO:
    """Standard output for a protocol, unbuffered, while prints still go to standard error.

    Whoever takes it owes no document any more.
    """
    _Output.documents += 1
    if _Output.descriptor is None:  # inside another program, which owns sys.stdout
        return cast("BinaryIO", sys.stdout.buffer)
    return open(os.dup(_Output.descriptor), "wb", buffering=0)


def emit(document: Mapping[str, object]) -> None:
    """Write the command's one JSON document: compact, UTF-8, keys in the given order.

    Raises:
        OutputClosed: nobody reads any more.
        ValueError: a number is NaN or infinite.
    """
    data = json_bytes(document)
    _Output.documents += 1  # before writing: half a document must not be followed by another
    _write(data + b"\n")


def json_bytes(document: Mapping[str, object]) -> bytes:
    """A document as it is written: compact, UTF-8, keys in the given order.

    Raises:
        ValueError: a number is NaN or infinite.
    """
    import json

    text = json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # Names that are not UTF-8 arrive as lone surrogates; a reader gets them as visible text.
    text = _SURROGATE.sub(lambda match: f"\\\\u{ord(match[0]):04x}", text)
    # A document that ends on a terminal must not command it; to a program it is the same one.
    text = _HARMFUL.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
    return text.encode("utf-8")


def emit_text(text: str) -> None:
    """Write text for people, with a line end if it has none.

    Raises:
        OutputClosed: nobody reads any more.
    """
    if text and not text.endswith("\n"):
        text += "\n"
    _write(text.encode("utf-8", "backslashreplace"))


def emit_piece(text: str) -> None:
    """Write a piece of text for people that is still being made; `emit_text` ends it."""
    _write(text.encode("utf-8", "backslashreplace"))


def emit_error(error: RagxError) -> int:
    """Report a fault and return its exit code.

    It becomes the command's document if one is owed and none has been begun; else it goes to
    standard error.
    """
    if _Output.as_json and not _Output.documents:
        body: dict[str, object] = {
            "code": error.code,
            "message": one_line(error.message),
            "hint": one_line(error.hint),
        }
        if error.details:
            body["details"] = error.details
        emit({"schema": "ragx.error.v1", "error": body})
    else:
        notice(f"{styled('error:', 'red', sys.stderr)} {one_line(error.message)}")
        if error.hint:
            notice(f"hint: {one_line(error.hint)}")
    return error.exit_status


def warn(line: str) -> None:
    """Say on standard error what a person should know; the result stands all the same."""
    notice(f"{styled('warning:', 'yellow', sys.stderr)} {one_line(line)}")


def notice(line: str) -> None:
    """Write a line to standard error; one that nobody can read is dropped."""
    try:
        sys.stderr.write(line + "\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        # Closed or full: there is no other place to complain, and the result matters more.
        return


def tell(line: str) -> None:
    """Write a line to standard error that may hold foreign text."""
    notice(one_line(line))


def one_line(text: str) -> str:
    """Make text safe for one line of a terminal: control characters show as escapes."""
    return _CONTROL.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def is_tty(stream: IO[str] | None = None) -> bool:
    """Whether a person looks at the stream; without one, at the document's output."""
    if stream is None and _Output.descriptor is not None:
        return os.isatty(_Output.descriptor)
    try:
        return (stream or sys.stdout).isatty()
    except (AttributeError, ValueError):  # no stream at all, or a closed one
        return False


def harmless(text: str) -> str:
    """Text of a file as a terminal may show it: whatever could command it becomes U+FFFD."""
    return _HARMFUL.sub("\ufffd", text.replace("\r\n", "\n"))


def styled(text: str, style: str, stream: IO[str] | None = None) -> str:
    """Colour text for a terminal; unchanged elsewhere and where NO_COLOR is set.

    Args:
        style: red, yellow, green, cyan, bold or dim.
        stream: where the text will go; None for the document's output.
    """
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not is_tty(stream):
        return text
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m"


def _write(data: bytes) -> None:
    descriptor = _Output.descriptor
    try:
        if descriptor is None:  # inside another program, which owns sys.stdout
            sys.stdout.flush()
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
        else:
            _write_all(descriptor, data)
    except BrokenPipeError as exc:
        raise OutputClosed from exc
    except OSError as exc:
        raise RagxError(
            f"standard output cannot be written: {exc.strerror or exc}", code="output"
        ) from exc


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(descriptor, view) :]
        except BlockingIOError:
            # Some parents hand over a non-blocking pipe; wait until it drains.
            import select

            select.select([], [descriptor], [])

from __future__ import annotations

import io
import json
import os
import sys
import threading
from collections.abc import Iterator

import pytest

from ragx.errors import ConfigError, RagxError
from ragx.shells.cli import envelope


@pytest.fixture
def pipe(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Make the envelope write into a pipe; yields the end to read from."""
    reader, writer = os.pipe()
    monkeypatch.setattr(envelope._Output, "descriptor", writer)
    yield reader
    for descriptor in (reader, writer):
        try:
            os.close(descriptor)
        except OSError:  # a test closed it
            continue


def test_a_document_is_one_compact_line_in_the_given_order(
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    envelope.emit({"schema": "x", "b": 1.5, "a": ["é 🐘 \u2028", None, True]})
    written = capfdbinary.readouterr().out
    assert written == '{"schema":"x","b":1.5,"a":["é 🐘 \u2028",null,true]}\n'.encode()


def test_a_document_commands_no_terminal(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    document = {"a": "\x1b[2J \x07 \x9b \x7f \u202e \u2066 \\ é"}
    envelope.emit(document)
    written = capfdbinary.readouterr().out.decode()
    assert json.loads(written) == document
    assert not set(written) & set("\x1b\x07\x9b\x7f\u202e\u2066")


def test_what_is_not_unicode_shows_as_text(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    envelope.emit({"name": "a\udcff\\"})
    envelope.emit_text("a\udcff")
    document, text = capfdbinary.readouterr().out.splitlines()
    assert json.loads(document.decode()) == {"name": "a\\udcff\\"}
    assert text == b"a\\udcff"


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_no_document_holds_what_json_cannot(number: float) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        envelope.emit({"score": number})


def test_text_gets_a_line_end_unless_it_has_one(capsys: pytest.CaptureFixture[str]) -> None:
    for text in ("a", "b\n", "", "c\r\n"):
        envelope.emit_text(text)
    assert capsys.readouterr().out == "a\nb\nc\r\n"


def test_errors_are_a_document_or_lines(capsys: pytest.CaptureFixture[str]) -> None:
    fault = ConfigError("a\nb\x1b[31m", hint="do c", details={"line": 3})
    envelope.begin(as_json=False)
    assert envelope.emit_error(fault) == 2
    assert capsys.readouterr() == ("", "error: a\\nb\\x1b[31m\nhint: do c\n")
    envelope.begin(as_json=True)
    assert envelope.emit_error(fault) == 2
    written = capsys.readouterr()
    assert written.err == ""
    assert json.loads(written.out)["error"] == {
        "code": "config",
        "message": "a\\nb\\x1b[31m",
        "hint": "do c",
        "details": {"line": 3},
    }


def test_a_fault_after_the_document_makes_no_second_one(capsys: pytest.CaptureFixture[str]) -> None:
    envelope.begin(as_json=True)
    envelope.emit({"schema": "x"})
    envelope.emit_error(RagxError("late"))
    assert capsys.readouterr() == ('{"schema":"x"}\n', "error: late\n")
    envelope.begin(as_json=False)


def test_a_closed_pipe_is_told_apart_from_a_full_disk(
    pipe: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.close(pipe)
    with pytest.raises(envelope.OutputClosed):
        envelope.emit_text("x")
    full = os.open("/dev/full", os.O_WRONLY)
    monkeypatch.setattr(envelope._Output, "descriptor", full)
    with pytest.raises(RagxError, match="No space left on device"):
        envelope.emit_text("x")
    os.close(full)


def test_a_slow_reader_on_a_non_blocking_pipe_gets_everything(pipe: int) -> None:
    assert envelope._Output.descriptor is not None
    os.set_blocking(envelope._Output.descriptor, False)
    received = io.BytesIO()
    size = 1_000_000

    def read() -> None:
        while received.tell() < size:
            received.write(os.read(pipe, 65_536))

    reader = threading.Thread(target=read)
    reader.start()
    envelope.emit_text("x" * (size - 1))
    reader.join(timeout=60)
    assert received.getvalue() == b"x" * (size - 1) + b"\n"


@pytest.mark.parametrize("stream", [None, io.StringIO()])
def test_warnings_nobody_can_read_are_dropped(
    monkeypatch: pytest.MonkeyPatch, stream: io.StringIO | None
) -> None:
    if stream is not None:
        stream.close()
        monkeypatch.setattr(sys, "stderr", stream)
        envelope.warn("lost")
    assert not envelope.is_tty(stream)


def test_colour_is_for_terminals_that_want_it(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    assert envelope.styled("a", "red", Terminal()) == "\x1b[31ma\x1b[0m"
    assert envelope.styled("a", "red", io.StringIO()) == "a"
    monkeypatch.setenv("NO_COLOR", "1")
    assert envelope.styled("a", "red", Terminal()) == "a"
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert envelope.styled("a", "red", Terminal()) == "a"

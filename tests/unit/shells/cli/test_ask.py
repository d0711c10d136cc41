from __future__ import annotations

import io
import sys
from collections.abc import Callable

import pytest

from ragx.errors import UsageError
from ragx.shells.cli.ask import ask, choose, confirm, person_there, pick

Type = Callable[[bytes], None]


@pytest.fixture
def type_in(monkeypatch: pytest.MonkeyPatch) -> Type:
    def put(raw: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw), "utf-8"))

    return put


def number(answer: str) -> int:
    if not answer.isdecimal():
        raise UsageError("a number, please", hint="such as 3")
    return int(answer)


def test_an_answer_is_asked_for_until_it_will_do(
    type_in: Type, capsys: pytest.CaptureFixture[str]
) -> None:
    type_in(b"x\n\x1b[A\n\xff\xfe\n  12 \nrest\n")
    assert ask("How many", number, default="3") == 12
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("How many [3]: ") == 4
    assert "a number, please (such as 3)" in captured.err
    assert "keys that are no text" in captured.err
    assert "not UTF-8" in captured.err


def test_enter_takes_the_default(type_in: Type) -> None:
    type_in(b"\n\n\n")
    assert ask("How many", number, default="3", shown="three") == 3
    assert confirm("Sure?", default=True) is True
    assert confirm("Sure?", default=False) is False


@pytest.mark.parametrize(("raw", "expected"), [(b"Y\n", True), (b"oui\nno\n", False)])
def test_yes_or_no(type_in: Type, raw: bytes, expected: bool) -> None:
    type_in(raw)
    assert confirm("Sure?", default=not expected) is expected


def test_a_last_line_without_an_end_is_an_answer(type_in: Type) -> None:
    type_in(b"7")
    assert ask("How many", number) == 7


def test_the_end_of_input_is_an_error(type_in: Type) -> None:
    type_in(b"")
    with pytest.raises(UsageError) as caught:
        ask("How many", number, default="3")
    assert caught.value.code == "no_input"
    assert "--yes" in caught.value.hint


def test_a_program_without_input_has_no_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert not person_there()
    with pytest.raises(UsageError):
        ask("How many", number)


def test_a_menu_marks_its_default(type_in: Type, capsys: pytest.CaptureFixture[str]) -> None:
    type_in(b"3\nb\n")
    assert choose("Which:", [("a", "one"), ("b", "other")], default="b") == "b"
    shown = capsys.readouterr().err
    assert "    1  a  one\n  » 2  b  other\n" in shown
    assert "'3' is not in the list: 1 to 2, or a name" in shown


def test_what_a_server_lists_cannot_command_the_terminal(
    type_in: Type, capsys: pytest.CaptureFixture[str]
) -> None:
    type_in(b"\n")
    choose("Which:", [("a\x1b]0;x\x07", "")], default="a\x1b]0;x\x07")
    assert "\x1b" not in capsys.readouterr().err


@pytest.mark.parametrize("answer", ["0", "3", "-1", "", "c", "9" * 20, "²"])
def test_what_is_not_in_a_list(answer: str) -> None:
    with pytest.raises(UsageError):
        pick(answer, ["a", "b"])

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from ragx.errors import IndexBusy
from ragx.shells.cli import envelope, frame
from ragx.shells.cli.frame import Command, Group, LazyGroup, command_options, invoke, wants_json


def make(function: Callable[..., int | None]) -> click.Command:
    """A program `ragx` with the command `do` around a function of (root, as_json)."""
    group = Group("ragx", callback=command_options(lambda root, as_json: None))
    group.params = list(reversed(group.callback.__click_params__))  # type: ignore[union-attr]  # click's own attribute
    group.add_command(click.command("do", cls=Command)(command_options(function)))
    return group


def raising(fault: BaseException) -> click.Command:
    def fail(root: Path | None, as_json: bool) -> int:
        raise fault

    return make(fail)


@pytest.mark.parametrize(("result", "status"), [(None, 0), (0, 0), (1, 1), (2, 2)])
def test_a_command_returns_its_exit_code(result: int | None, status: int) -> None:
    assert invoke(make(lambda root, as_json: result), ["do"]) == status


@pytest.mark.parametrize(
    ("args", "root", "as_json"),
    [
        (["do"], None, False),
        (["do", "--json", "--root", "x"], Path("x"), True),
        (["--json", "--root", "x", "do"], Path("x"), True),
        (["--root", "x", "do", "--root", "y"], Path("y"), False),
    ],
)
def test_options_count_before_and_after_the_name(
    args: list[str], root: Path | None, as_json: bool
) -> None:
    seen: list[tuple[Path | None, bool]] = []

    def note(root: Path | None, as_json: bool) -> None:
        seen.append((root, as_json))

    assert invoke(make(note), args) == 0
    assert seen == [(root, as_json)]


@pytest.mark.parametrize(
    ("args", "wanted"),
    [
        ([], False),
        (["query", "x", "--json"], True),
        (["--json", "query"], True),
        (["query", "--json=yes"], True),
        (["query", "--jsonl"], False),
        (["query", "--", "--json"], False),
    ],
)
def test_wants_json(args: list[str], wanted: bool) -> None:
    assert wants_json(args) is wanted


@pytest.mark.parametrize(
    ("fault", "code", "message"),
    [
        (IndexBusy("busy", hint="wait"), "index_busy", "busy"),
        (ZeroDivisionError("division by zero"), "internal",
         "internal error: ZeroDivisionError: division by zero"),
        (RecursionError(), "internal", "internal error: RecursionError"),
        (BrokenPipeError(32, "Broken pipe"), "internal",
         "internal error: BrokenPipeError: [Errno 32] Broken pipe"),
        (click.Abort(), "no_input", "input ended before the question was answered"),
        (click.FileError("f", "gone"), "usage", "ragx: Could not open file 'f': gone"),
    ],
)  # fmt: skip
def test_every_fault_is_one_document_or_one_line(
    fault: BaseException, code: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    program = raising(fault)
    assert invoke(program, ["do", "--json"]) == 2
    written = capsys.readouterr()
    assert written.err == ""
    error = json.loads(written.out)["error"]
    assert (error["code"], error["message"]) == (code, message)
    assert invoke(program, ["do"]) == 2
    written = capsys.readouterr()
    assert written.out == ""
    assert written.err.splitlines()[0].endswith(message)


def test_the_traceback_is_for_those_who_ask(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = raising(ZeroDivisionError())
    invoke(program, ["do"])
    assert "Traceback" not in capsys.readouterr().err
    monkeypatch.setenv("RAGX_DEBUG", "1")
    invoke(program, ["do", "--json"])
    written = capsys.readouterr()
    assert "Traceback" in written.err
    assert json.loads(written.out)["error"]["code"] == "internal"


def test_a_closed_output_ends_quietly(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(raising(envelope.OutputClosed()), ["do"]) == 0
    assert capsys.readouterr() == ("", "")


def test_interrupts_go_up_to_whoever_owns_the_process() -> None:
    with pytest.raises(KeyboardInterrupt):
        invoke(raising(KeyboardInterrupt()), ["do"])
    aborted = click.Abort()
    aborted.__context__ = KeyboardInterrupt()  # how click reports one inside a question
    with pytest.raises(KeyboardInterrupt):
        invoke(raising(aborted), ["do"])


@pytest.mark.parametrize(
    ("args", "code", "message", "hint"),
    [
        (["doo"], "unknown_command", "no such command: ragx doo", "did you mean do?"),
        (["where is x"], "unknown_command", "no such command: ragx where is x", "one of: do"),
        ([], "no_command", "ragx: which command?", "one of: do"),
        (["do", "--jsom"], "usage", "ragx do: no such option: --jsom", "did you mean --json?"),
        (["do", "-z"], "usage", "ragx do: no such option: -z", "ragx do --help"),
        (["do", "extra"], "usage", "ragx do: Got unexpected extra argument (extra)",
         "ragx do --help"),
        (["--rot", "x", "do"], "usage", "ragx: no such option: --rot", "did you mean --root?"),
        (["do", "--root"], "usage", "ragx: Option '--root' requires an argument.",
         "ragx --help"),
    ],
)  # fmt: skip
def test_usage_errors(
    args: list[str], code: str, message: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    program = make(lambda root, as_json: 0)
    assert invoke(program, ["--json", *args]) == 2
    written = capsys.readouterr()
    assert written.err == ""
    error = json.loads(written.out)["error"]
    assert error["code"] == code
    assert error["message"].rstrip(".") == message.rstrip(".")
    assert error["hint"] == hint
    assert invoke(program, args) == 2
    written = capsys.readouterr()
    assert written.out == ""
    assert f"hint: {hint}\n" in written.err


def test_json_that_is_no_flag_still_gets_its_document(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(make(lambda root, as_json: 0), ["do", "--json=yes"]) == 2
    assert json.loads(capsys.readouterr().out)["schema"] == "ragx.error.v1"


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_is_output_and_with_json_a_document(
    flag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    program = make(lambda root, as_json: 0)
    assert invoke(program, ["do", flag]) == 0
    text = capsys.readouterr().out
    assert text.startswith("Usage: ragx do")
    assert invoke(program, ["do", flag, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document == {
        "schema": "ragx.help.v1",
        "command": "ragx do",
        "text": text.rstrip("\n"),
    }


def test_a_lazy_group_imports_nothing_for_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    group = LazyGroup("ragx", table={"do": ("no.such.module", "command", "Do a thing.")})
    assert invoke(group, ["--help"]) == 0
    assert "do  Do a thing." in capsys.readouterr().out
    assert invoke(group, ["do", "--json"]) == 2
    assert "ModuleNotFoundError" in json.loads(capsys.readouterr().out)["error"]["message"]


def test_a_missing_home_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    assert frame.home_directory() is None

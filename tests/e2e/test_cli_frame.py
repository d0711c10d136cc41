"""The program as a process: streams, exit codes, what it loads."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from ragx import contracts

RunCli = Callable[..., "subprocess.CompletedProcess[str]"]
Environment = Callable[..., dict[str, str]]

HEAVY = {
    "numpy",
    "onnxruntime",
    "tokenizers",
    "httpx",
    "hnswlib",
    "igraph",
    "leidenalg",
    "tree_sitter",
    "tomlkit",
    "jsonschema",
    "importlib.metadata",
    "importlib.resources",
    "asyncio",
    "sqlite3",
    "pathspec",
}


def document(text: str) -> dict[str, Any]:
    """The one document on stdout, checked against its schema."""
    parsed: dict[str, Any] = json.loads(text)
    assert text.count("\n") == 1
    jsonschema.validate(parsed, contracts.load(parsed["schema"]))
    return parsed


def test_help_lists_every_command_without_loading_any(ragx_cli: RunCli) -> None:
    done = ragx_cli("--help")
    assert (done.returncode, done.stderr) == (0, "")
    for name in ("init", "index", "query", "status", "inspect", "config", "schema"):
        assert f"\n  {name} " in done.stdout
    assert document(ragx_cli("--help", "--json").stdout)["command"] == "ragx"


@pytest.mark.parametrize(
    ("args", "allowed"),
    [
        (["--help"], set()),
        (["--version"], set()),
        (["init", "--json"], set()),
        (["config", "list"], set()),
        (["config", "get", "query.top", "--json"], set()),
        (["config", "set", "query.top", "5"], {"tomlkit"}),
        (["schema"], {"importlib.resources"}),
    ],
)
def test_light_commands_load_nothing_heavy(
    tmp_path: Path, ragx_environment: Environment, args: list[str], allowed: set[str]
) -> None:
    if args[0] == "config":
        (tmp_path / "ragx.toml").touch()
    code = (
        "import sys\n"
        "from ragx.shells.cli.main import main\n"
        f"status = main({args!r})\n"
        "print(*sorted(sys.modules), file=sys.stderr)\n"
        "sys.exit(status)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=ragx_environment(),
        capture_output=True,
        check=True,
        text=True,
    )
    loaded = set(done.stderr.split())
    assert "ragx.shells.cli.frame" in loaded
    assert not loaded & (HEAVY - allowed)
    if args[0].startswith("-"):
        assert not {name for name in loaded if name.startswith("ragx.shells.cli.c")}


def test_version_inside_and_outside_a_corpus(ragx_cli: RunCli, tmp_path: Path, home: Path) -> None:
    from ragx import __version__

    done = ragx_cli("--version")
    assert done.returncode == 0
    assert done.stdout.splitlines() == [
        f"ragx {__version__}",
        "root        none (not inside a corpus)",
        "embeddings  builtin",
        "expansion   off",
        "rerank      off",
    ]
    (tmp_path / "ragx.toml").write_text(
        '[embeddings]\nprovider = "openai"\nmodel = "m"\n[expansion]\nenabled = true\n',
        encoding="utf-8",
    )
    (home / ".ragxrc").write_text('[expansion]\nmodel = "chat"\n', encoding="utf-8")
    lines = ragx_cli("--version").stdout.splitlines()
    assert lines[1:4] == [
        f"root        {tmp_path}",
        "embeddings  openai/m",
        "expansion   openai/chat",
    ]
    parsed = document(ragx_cli("--json", "--version").stdout)
    assert parsed["root"] == str(tmp_path)
    assert parsed["stages"]["embeddings"] == {"enabled": True, "provider": "openai", "model": "m"}


def test_version_is_known_even_if_the_settings_are_broken(
    ragx_inline: RunCli, tmp_path: Path
) -> None:
    (tmp_path / "ragx.toml").write_text("[query]\ntop = 0\n", encoding="utf-8")
    done = ragx_inline("--version")
    assert done.returncode == 0
    assert "query.top" in done.stderr
    parsed = document(ragx_inline("--version", "--json").stdout)
    assert parsed["stages"] == {}
    assert "query.top" in parsed["warnings"][0]


@pytest.mark.parametrize(
    "args",
    [
        [],
        ["nonsense"],
        ["--bogus"],
        ["init", "--bogus"],
        ["init", "a", "b"],
        ["init", "absent"],
        ["init", ".", "--root", "."],
        ["config"],
        ["config", "gte", "query.top"],
        ["config", "get"],
        ["config", "get", "query.top"],
        ["config", "set", "query.top"],
        ["config", "list", "--root", "absent"],
        ["config", "get", "--global", "query.top"],
        ["schema", "nonsense"],
    ],
)
def test_every_error_is_one_document_with_json_and_words_without(
    ragx_inline: RunCli, args: list[str]
) -> None:
    done = ragx_inline(*args, "--json")
    assert (done.returncode, done.stderr) == (2, "")
    error = document(done.stdout)["error"]
    assert error["message"]
    assert error["hint"]
    done = ragx_inline(*args)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"error: {error['message']}\nhint: {error['hint']}\n" in done.stderr


def test_a_real_process_agrees(ragx_cli: RunCli) -> None:
    done = ragx_cli("config", "get", "--json", "--bogus")
    assert (done.returncode, done.stderr) == (2, "")
    assert document(done.stdout)["error"]["code"] == "usage"
    done = ragx_cli("config", "get", "query.top")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith("hint: ragx init\n")


def test_output_is_utf8_whatever_the_locale(ragx_cli: RunCli, tmp_path: Path) -> None:
    root = tmp_path / "caf\u00e9 \U0001f418"
    root.mkdir()
    plain = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "LANG": None}
    done = ragx_cli("init", "--json", cwd=root, env=plain)
    assert done.returncode == 0
    assert document(done.stdout)["root"] == str(root)
    assert str(root) in ragx_cli("--version", cwd=root, env=plain).stdout
    done = ragx_cli("config", "set", "embeddings.doc_prefix", "d\u00e9: ", cwd=root, env=plain)
    assert done.returncode == 0
    text = (root / "ragx.toml").read_text(encoding="utf-8")
    assert 'doc_prefix = "d\u00e9: "\n' in text
    # Even where Python itself is told to use ASCII.
    done = ragx_cli(
        "config", "get", "embeddings.doc_prefix", cwd=root, env={**plain, "PYTHONUTF8": "0"}
    )
    assert done.stdout == "d\u00e9: \n"


def test_a_directory_name_that_is_not_unicode(ragx_cli: RunCli, tmp_path: Path) -> None:
    raw = os.fsencode(tmp_path) + b"/a\xff"
    os.mkdir(raw)
    done = ragx_cli("init", "--json", cwd=Path(os.fsdecode(raw)))
    assert document(done.stdout)["root"] == f"{tmp_path}/a\\udcff"
    assert "\\udcff" in ragx_cli("--version", cwd=Path(os.fsdecode(raw))).stdout


def test_a_reader_that_left_is_no_error(tmp_path: Path, ragx_environment: Environment) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    for args in (["--help"], ["config", "get", "nonsense", "--json"], ["init"]):
        done = subprocess.run(
            [sys.executable, "-m", "ragx", *args],
            cwd=tmp_path,
            env=ragx_environment(),
            stdout=writer,
            stderr=subprocess.PIPE,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, b"")
    os.close(writer)
    assert (tmp_path / "ragx.toml").exists()


def test_a_closed_standard_output_does_not_swallow_files(
    tmp_path: Path, ragx_environment: Environment
) -> None:
    done = subprocess.run(
        ["sh", "-c", f'"{sys.executable}" -m ragx init >&- <&-'],
        cwd=tmp_path,
        env=ragx_environment(),
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"wrote" not in (tmp_path / "ragx.toml").read_bytes()


def test_an_output_that_cannot_be_written_is_said(ragx_environment: Environment) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "ragx", "--version", "--json"],
            env=ragx_environment(),
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr == b"error: standard output cannot be written: No space left on device\n"


STRAY = """
import os, subprocess, sys
from ragx.shells.cli import envelope
envelope.claim_stdout()
print("python print")
sys.stdout.flush()
os.write(1, b"native print\\n")
subprocess.run(["echo", "child print"])
envelope.emit({"schema": "x"})
"""


def test_stray_prints_end_on_standard_error(ragx_environment: Environment) -> None:
    done = subprocess.run(
        [sys.executable, "-c", STRAY], env=ragx_environment(), capture_output=True, check=True
    )
    assert done.stdout == b'{"schema":"x"}\n'
    assert done.stderr.splitlines() == [b"python print", b"native print", b"child print"]


# A command that sits in a loop, says when it is there, and cleans up slowly when interrupted.
SLOW = """
import os, sys, time, types, click
from ragx.shells.cli.main import COMMANDS, run

@click.command("slow")
@click.argument("pause", type=float)
def slow(pause):
    try:
        os.write(2, b"ready\\n")
        while True:
            time.sleep(0.01)
    finally:
        os.write(2, b"cleaning\\n")
        time.sleep(pause)

sys.modules["slow"] = types.SimpleNamespace(command=slow)
COMMANDS["slow"] = ("slow", "command", "")
sys.argv[1:1] = ["slow"]
run()
"""


@pytest.mark.parametrize(("times", "pause"), [(1, "0"), (2, "60")])
def test_interrupts_end_quietly_and_at_once(
    ragx_environment: Environment, times: int, pause: str
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SLOW, pause],
        env=ragx_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == b"ready\n"
        started = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert process.stderr.readline() == b"cleaning\n"
        if times == 2:
            process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=30)
    assert (process.returncode, output, errors) == (130, b"", b"")
    assert time.monotonic() - started < 5

"""What every test starts from: an empty home, no settings from outside, no network."""

from __future__ import annotations

import io
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
_STRAY = ("OPENAI_", "RAGX_", "HF_")
_STRAY_NAMES = {
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "no_color",
    "force_color",
    "columns",
}

RunCli = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(autouse=True)
def clean_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Point HOME at an empty directory and drop variables that change what ragx does."""
    home = tmp_path_factory.mktemp("home")
    for name in list(os.environ):
        if name.startswith(_STRAY) or name.lower() in _STRAY_NAMES:
            monkeypatch.delenv(name)
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / ".cache"))
    monkeypatch.setenv("XDG_DATA_HOME", str(home / ".local" / "share"))
    return home


@pytest.fixture
def home(clean_environment: Path) -> Path:
    """The user's home directory, empty."""
    return clean_environment


class NetworkBlocked(BaseException):
    """A test tried to leave this machine. No `except Exception` may hide that."""


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse sockets to, and look-ups of, anything but this machine."""
    resolve = socket.getaddrinfo

    def guard(name: str) -> None:
        original = getattr(socket.socket, name)

        def checked(self: socket.socket, *args: Any) -> Any:
            # The address is the last argument of connect, connect_ex and sendto alike.
            if self.family in (socket.AF_INET, socket.AF_INET6) and not _is_local(args[-1][0]):
                raise NetworkBlocked(f"{name} to {args[-1]}")
            return original(self, *args)

        monkeypatch.setattr(socket.socket, name, checked)

    def lookup(host: Any, *args: Any, **kwargs: Any) -> Any:
        if host is not None and not _is_local(host):
            raise NetworkBlocked(f"look-up of {host}")
        return resolve(host, *args, **kwargs)

    for name in ("connect", "connect_ex", "sendto"):
        guard(name)
    monkeypatch.setattr(socket, "getaddrinfo", lookup)


def _is_local(host: str | bytes) -> bool:
    name = host.decode() if isinstance(host, bytes) else host
    return name in ("", "localhost", "::1", "0.0.0.0", "::") or name.startswith("127.")


@pytest.fixture
def ragx_cli(tmp_path: Path) -> RunCli:
    """Run the real command line as a process.

    `ragx_cli(*args, cwd=tmp_path, input="", env={...})` returns a CompletedProcess with text
    (UTF-8, line ends as written); `env` adds to the environment, a value None removes a variable.
    """

    def run(
        *args: str,
        cwd: Path = tmp_path,
        input: str = "",
        env: Mapping[str, str | None] | None = None,
        timeout: float = 60,
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", "ragx", *args],
            cwd=cwd,
            input=input.encode(),
            env=process_environment(env),
            capture_output=True,
            timeout=timeout,
            check=False,
        )
        return subprocess.CompletedProcess(
            done.args, done.returncode, done.stdout.decode(), done.stderr.decode()
        )

    return run


@pytest.fixture
def ragx_environment() -> Callable[..., dict[str, str]]:
    """The environment `ragx_cli` gives its process, for tests that start one themselves."""
    return process_environment


def process_environment(extra: Mapping[str, str | None] | None = None) -> dict[str, str]:
    """Return the cleaned environment, with the repository importable from any directory."""
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    for name, value in (extra or {}).items():
        if value is None:
            environment.pop(name, None)
        else:
            environment[name] = value
    return environment


class _Captured(io.BytesIO):
    """Output whose bytes outlive the text layer above it."""

    def close(self) -> None:
        """Stay open: the text layer closes what is below it when it is collected."""


@pytest.fixture
def ragx_inline(tmp_path: Path) -> Iterator[RunCli]:
    """Run a command line inside this process: same arguments and result as `ragx_cli`."""
    before = Path.cwd()

    def run(
        *args: str,
        cwd: Path = tmp_path,
        input: str = "",
        env: Mapping[str, str | None] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        from ragx.shells.cli.main import main

        output, errors = _Captured(), io.StringIO()
        with pytest.MonkeyPatch.context() as patch, redirect_stderr(errors):
            patch.chdir(cwd)
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(input.encode()), "utf-8"))
            patch.setattr(sys, "stdout", io.TextIOWrapper(output, "utf-8", newline="\n"))
            for name, value in (env or {}).items():
                if value is None:
                    patch.delenv(name, raising=False)
                else:
                    patch.setenv(name, value)
            status = main(args)
        return subprocess.CompletedProcess(
            args, status, output.getvalue().decode(), errors.getvalue()
        )

    yield run
    os.chdir(before)

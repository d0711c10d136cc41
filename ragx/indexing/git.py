"""Git, asked as if the repository meant harm.

A repository's own configuration can name programs: pagers, hooks, monitors, diff and signature
tools, remote helpers. Everything that would start a program is turned off, and time and output are
bounded. Git's own refusal of a repository that belongs to somebody else stands.

A directory can also borrow a repository: `.git` may be a file that names any other, or a link; so
may its parts. Only a repository that lies in the working tree, or itself says that this is its
working tree, is read (see `_borrowed`).
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from ragx.providers.programs import program_on_path

__all__ = ["LOG_OPTIONS", "NOT_INSTALLED", "TOO_LONG", "TOO_SLOW", "Git"]

NOT_INSTALLED = "git is not installed"
TOO_SLOW = "git took too long"
TOO_LONG = "the history is too long"

LOG_OPTIONS = (
    "--no-merges",
    "--no-ext-diff",
    "--no-textconv",
    "--no-renames",
    "--no-color",
    "--no-notes",
    "--no-decorate",
    "--no-show-signature",
    "--no-follow",
    f"-O{os.devnull}",
    "--encoding=UTF-8",
    "--name-only",
    "--relative",
    "-z",
)
"""Of `git log`: nothing but the format that is asked for and names of files, NUL after each."""

_BORROWED = "the repository belongs to another directory"
_MESSAGE_BYTES = 2000
_AT_ONCE = 1 << 16

_SAFE_SETTINGS = (
    "core.fsmonitor=false",
    f"core.hooksPath={os.devnull}",
    "core.pager=cat",
    "diff.external=",
    "log.showSignature=false",
    "log.showRoot=true",
    "log.mailmap=false",
    "submodule.recurse=false",
)


class Git:
    """Questions about the repository that holds a directory.

    Args:
        root: existing directory, at or below the top of a working tree.
        timeout_s, max_output_bytes: bounds of each answer.
        env: variables of the process; None takes this one's. Those of git are dropped.
    """

    def __init__(
        self,
        root: Path,
        *,
        timeout_s: float,
        max_output_bytes: int,
        env: Mapping[str, str] | None = None,
    ) -> None:
        variables = dict(os.environ if env is None else env)
        program = program_on_path("git", variables)
        self._root = root
        self._limits = timeout_s, max_output_bytes
        self._env = _environment(variables)
        self._command: list[str] = []
        if program is not None:
            self._command = [program, "--no-pager", "--no-replace-objects", "--literal-pathspecs"]
            for setting in _SAFE_SETTINGS:
                self._command += ["-c", setting]

    def complaint(self) -> str | None:
        """Why there is nothing to ask: no git, no repository of the directory's own."""
        return _borrowed(self._root, self.ask) if self._command else NOT_INSTALLED

    def ask(
        self, *args: str, take: Callable[[bytes], bool] | None = None
    ) -> tuple[bytes, str | None]:
        """Output up to the limit, and what went wrong; None if nothing did.

        Args:
            take: is given the output piece by piece in place of the caller; False ends it.
        """
        if not self._command:
            return b"", NOT_INSTALLED
        return _run([*self._command, *args], self._root, self._env, *self._limits, take)


def _borrowed(root: Path, ask: Callable[..., tuple[bytes, str | None]]) -> str | None:
    """Why the repository that git finds is not this directory's own; None if it is.

    Its own is one that lies within the working tree, no part of it a link that leads out; or one
    elsewhere that points back: a worktree that the other repository has on its list, a submodule
    or a separate directory whose settings name this working tree.
    """
    found = []
    for question in ("--show-toplevel", "--absolute-git-dir", "--git-common-dir"):
        said, complaint = ask("rev-parse", question)
        if complaint is not None:
            return complaint
        found.append(Path(os.path.realpath(root / os.fsdecode(said.removesuffix(b"\n")))))
    top, git_directory, common = found
    if not Path(os.path.realpath(root)).is_relative_to(top):
        return _BORROWED
    if common.is_relative_to(top) and git_directory.is_relative_to(top):
        return _BORROWED if _leads_out(common) or _leads_out(git_directory) else None
    if common.is_relative_to(top) or git_directory.is_relative_to(top):
        return _BORROWED
    if git_directory.parent == common / "worktrees":
        listed = _first_line(git_directory / "gitdir")
        points_back = os.path.realpath(git_directory / listed) == str(top / ".git")
    else:
        # Only what stands in its own settings: anybody's could name any working tree.
        said, _ = ask("config", "--file", str(common / "config"), "--get", "core.worktree")
        named = os.fsdecode(said.removesuffix(b"\n"))
        points_back = bool(named) and os.path.realpath(common / named) == str(top)
    return None if points_back else _BORROWED


def _leads_out(git_directory: Path) -> bool:
    """Whether a part of a repository that decides what its history is lies elsewhere.

    Objects that are borrowed are no such part: only who knows a commit's id could name it.
    """
    parts = [git_directory / name for name in ("HEAD", "packed-refs", "objects", "refs")]
    for directory, folders, files in os.walk(git_directory / "refs"):
        parts += (Path(directory, name) for name in (*folders, *files))
    return any(
        part.is_symlink() and not Path(os.path.realpath(part)).is_relative_to(git_directory)
        for part in parts
    )


def _first_line(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return os.fsdecode(file.readline(_MESSAGE_BYTES).rstrip(b"\r\n"))
    except OSError:
        return ""


def _environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Variables without those that redirect git, and with those that hold it back."""
    kept = {name: value for name, value in variables.items() if not name.startswith("GIT_")}
    return kept | {
        "LC_ALL": "C",
        "GIT_ALLOW_PROTOCOL": "none",  # a partial clone must not fetch what it lacks
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_PROTOCOL_FROM_USER": "0",
        "GIT_TERMINAL_PROMPT": "0",
    }


def _run(
    command: list[str],
    root: Path,
    env: Mapping[str, str],
    timeout_s: float,
    max_bytes: int,
    take: Callable[[bytes], bool] | None,
) -> tuple[bytes, str | None]:
    with tempfile.TemporaryFile() as errors:
        try:
            process = subprocess.Popen(
                command,
                cwd=root,
                env=dict(env),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )
        except OSError as fault:
            return b"", f"git cannot be run: {fault.strerror or fault}"
        late = threading.Event()

        def stop() -> None:
            late.set()
            _kill(process)

        timer = threading.Timer(timeout_s, stop)
        timer.daemon = True
        timer.start()
        output, n_bytes, enough = bytearray(), 0, False
        try:
            assert process.stdout is not None
            while n_bytes <= max_bytes and not enough:
                piece = os.read(process.stdout.fileno(), _AT_ONCE)
                if not piece:
                    break
                n_bytes += len(piece)
                if take is None:
                    output += piece
                else:
                    enough = not take(piece)
            over = n_bytes > max_bytes
            if over or enough:
                _kill(process)
            process.wait()
        finally:
            timer.cancel()
            _kill(process)
            if process.stdout is not None:
                process.stdout.close()
            process.wait()
        if enough:
            return b"", None
        if late.is_set():
            return bytes(output), TOO_SLOW
        if over:
            return bytes(output[: max_bytes + 1]), TOO_LONG
        if process.returncode == 0:
            return bytes(output), None
        errors.seek(0)
        text = errors.read(_MESSAGE_BYTES).decode("utf-8", "replace").strip()
        first = text.splitlines()[0] if text else f"exit code {process.returncode}"
        return b"", f"git: {first.removeprefix('fatal: ')}"


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a process that is still running, with all it has started."""
    if process.poll() is not None:
        return
    with contextlib.suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()

"""Starting LM Studio's server through its command line program, `lms`."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ragx.errors import ProviderRefused, ProviderUnavailable
from ragx.providers.base import Notice
from ragx.providers.endpoint import Endpoint, EndpointOptions, wait_until_answering
from ragx.providers.programs import program_on_path

__all__ = ["downloaded_models", "find_lms", "start_lm_studio"]

# The first call may have to start the application itself.
_LIST_S = 60.0
_START_S = 60.0
_LOAD_S = 300.0
_ANSWER_S = 15.0
_MAX_NAMED = 8
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def find_lms() -> str | None:
    """Find the program on PATH or where LM Studio puts it; None without LM Studio."""
    own = str(Path.home() / ".lmstudio" / "bin")
    return program_on_path("lms") or shutil.which("lms", path=own)


def downloaded_models(lms: str) -> list[dict[str, Any]]:
    """List what is downloaded.

    Args:
        lms: path of the program.
    Returns:
        What `lms ls --json` says of each model that has a `modelKey`: `type`, `path` and more.
    Raises:
        ProviderUnavailable: `lms` fails or answers something else.
    """
    said, logged = _run(lms, ["ls", "--json"], _LIST_S)
    entries = _list_in(said)
    if entries is None:
        last = _last_line(said) or _last_line(logged) or "no answer"
        raise ProviderUnavailable(
            f"LM Studio cannot list its models: {last}",
            hint="open LM Studio once, then try: lms ls",
        )
    return [entry for entry in entries if entry.get("modelKey")]


def start_lm_studio(lms: str, options: EndpointOptions, notice: Notice) -> Endpoint:
    """Start LM Studio's server at the settings' port with the model; both are left running.

    Args:
        lms: path of the program.
        options: a local `base_url` where nothing answers; `model` "" loads none.
        notice: told before each start.
    Raises:
        ProviderRefused: the model is not downloaded; the message names those that are.
        ProviderUnavailable: LM Studio fails.
    """
    key = _model_key(lms, options) if options.model else ""
    parts = urlsplit(options.base_url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    notes = [f"started LM Studio's server for {options.section} on port {port}; it stays running"]
    notice(f"starting LM Studio's server for {options.section} on port {port}")
    said, logged = _run(lms, ["server", "start", "--port", str(port)], _START_S)
    if not wait_until_answering(options.base_url, _ANSWER_S):
        raise ProviderUnavailable(
            f"LM Studio's server does not answer on port {port}: "
            f"{_last_line(logged) or _last_line(said)}",
            hint="open LM Studio once, then try: lms server start",
        )
    if key:
        notice(f"loading {key} in LM Studio")
        # Under the very name that requests will use, or LM Studio would load it a second time.
        _run(lms, ["load", key, "--identifier", options.model, "--yes"], _LOAD_S)
        notes.append(f"loaded {key} in LM Studio; it stays loaded")
    return Endpoint(options.base_url, tuple(notes))


def _model_key(lms: str, options: EndpointOptions) -> str:
    """How LM Studio names the model, which may be written as its file's path, too."""
    entries = downloaded_models(lms)
    for entry in entries:
        if options.model in (entry.get("modelKey"), entry.get("path")):
            return str(entry["modelKey"])
    of_role = "llm" if options.role == "chat" else "embedding"
    entries.sort(key=lambda entry: entry.get("type") != of_role)
    names = [str(entry["modelKey"]) for entry in entries]
    named = ", ".join(names[:_MAX_NAMED]) or "none"
    more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
    raise ProviderRefused(
        f"nothing answers at {options.base_url}, and LM Studio does not have {options.model}; "
        f"it has: {named}{more}",
        hint=f"lms get {shlex.quote(options.model)}, or ragx config set {options.section}.model "
        f"{shlex.quote(names[0]) if names else 'NAME'}",
        details={"models": names, "scope": "server"},
    )


def _list_in(said: str) -> list[dict[str, Any]] | None:
    """The list of objects in what the program wrote; its log may stand around it."""
    decoder = json.JSONDecoder()
    for start in re.finditer(r"^\[", said, re.MULTILINE):
        try:
            entries, _ = decoder.raw_decode(said, start.start())
        except (ValueError, RecursionError):
            continue
        # "[1] ..." and the like are lists to a decoder, too.
        if all(isinstance(entry, dict) for entry in entries):
            return list(entries)
    return None


def _run(lms: str, args: list[str], timeout_s: float) -> tuple[str, str]:
    """Run the program; returns what it wrote to standard output, and to standard error.

    In a session of its own, since LM Studio, which it may start, shall outlive the terminal.
    """
    command = shlex.join(["lms", *args])
    try:
        done = subprocess.run(
            [lms, *args],
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout_s,
            start_new_session=True,
        )
    except subprocess.TimeoutExpired as exc:
        raise ProviderUnavailable(
            f"{command}: no end after {timeout_s:.0f} s", hint=f"try it yourself: {command}"
        ) from exc
    except OSError as exc:
        raise ProviderUnavailable(
            f"{lms} cannot be started: {exc}", hint=f"try: {shlex.quote(lms)}"
        ) from exc
    said, logged = (
        _ESCAPES.sub("", part.decode("utf-8", "replace")) for part in (done.stdout, done.stderr)
    )
    if done.returncode != 0:
        last = _last_line(logged) or _last_line(said) or f"status {done.returncode}"
        raise ProviderUnavailable(
            f"{command} failed: {last}",
            hint=f"try it yourself: {command}",
            details={"scope": "server"},
        )
    return said, logged


def _last_line(said: str) -> str:
    return next((line.strip() for line in reversed(said.splitlines()) if line.strip()), "")

"""Which settings of a corpus count only once its reader has said so, and where that is noted.

A `ragx.toml` comes with the files of a stranger as soon as somebody clones them. It must not send
its reader's text or keys away, run a program, or load files. So these settings wait for
`ragx trust`; what ragx itself writes on a user's behalf is trusted by that act.

Trust is in a digest of these settings with all that decides what they do: the provider beside
them, where a relative path leads, what a program inside the corpus holds. The record is one JSON
object a line in `~/.ragxtrust`: appended, never rewritten but to revoke, so that two processes can
add to it at once.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Collection, Mapping
from pathlib import Path

from ragx.config.edit import write_file
from ragx.config.load import CONFIG_NAME, LoadedConfig, read_bytes
from ragx.config.table import MACHINE_SECTIONS, find_key, values_of
from ragx.errors import ConfigError
from ragx.providers.address import is_hub_name, is_local

__all__ = [
    "TRUST_LABEL",
    "TRUST_NAME",
    "digest",
    "forget",
    "is_trusted",
    "remember",
    "require_trust",
    "sensitive",
    "trust_written",
    "untrusted",
]

TRUST_NAME = ".ragxtrust"
TRUST_LABEL = "~/.ragxtrust"

_REMOTE = "is not on this machine: text and keys would go there"
_KEY = "names a variable whose content would be sent"
_PROGRAM = "is a program that would be run"
_FILE = "is a file that would be loaded"
_MODEL = "is a model that would be loaded, and may hold code"
_WITHOUT = {
    "embeddings": "; to do without them: ragx config set embeddings.provider builtin",
}
_HUB_MODEL = "is a model that would be downloaded, and may hold code"
# What each provider makes use of; a leftover that is not used harms nobody.
_USED = {
    "openai": ("base_url", "api_key_env", "provider"),
    "ollama": ("base_url", "api_key_env", "provider"),
    "llama-server": ("base_url", "gguf", "server_bin"),
    "onnx": ("model",),
    "sentence-transformers": ("model",),
}
_WHY_BY_NAME = {"api_key_env": _KEY, "server_bin": _PROGRAM, "gguf": _FILE}


def sensitive(loaded: LoadedConfig) -> dict[str, str]:
    """Settings in force that come from the corpus and could do harm: dotted key -> why, in words.

    A value that `~/.ragxrc` overrides is not in force, and what that file says is the user's own.
    """
    values = values_of(loaded.config)
    found = {}
    for dotted, value in values.items():
        section, _, name = dotted.rpartition(".")
        if section not in MACHINE_SECTIONS or not isinstance(value, str) or not value:
            continue
        if loaded.origins.get(dotted) == CONFIG_NAME:
            why = _why(name, value, str(values[f"{section}.provider"]), dotted)
        elif dotted in _from_environment(loaded):
            # The user's own address, but the corpus has chosen to send text there.
            dotted, why = f"{section}.provider", "" if is_local(value) else _sends_to(value)
        else:
            why = ""
        if why:
            found[dotted] = why
    return found


def digest(loaded: LoadedConfig) -> str:
    """SHA-256 over the sensitive settings and what decides their effect, hex; "" without any."""
    found = sensitive(loaded)
    if not found:
        return ""
    values = values_of(loaded.config)
    facts: dict[str, object] = {dotted: values[dotted] for dotted in found}
    for section in {dotted.partition(".")[0] for dotted in found}:
        facts[f"{section}.provider"] = values[f"{section}.provider"]
        if f"{section}.api_key_env" in found:
            facts[f"{section}.base_url"] = values[f"{section}.base_url"]
    for dotted in found:
        name = dotted.rpartition(".")[2]
        if name in ("server_bin", "gguf") or found[dotted] == _MODEL:
            facts[f"{dotted} leads to"] = _place(str(values[dotted]), loaded.root)
        if name == "server_bin":
            facts[f"{dotted} holds"] = _content_inside(str(values[dotted]), loaded.root)
    text = json.dumps(facts, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def is_trusted(loaded: LoadedConfig) -> bool:
    """Whether nothing in these settings waits for the user's word.

    Raises:
        ConfigError: the record cannot be read.
    """
    wanted = digest(loaded)
    return not wanted or wanted in _recorded(loaded.home)


def untrusted(loaded: LoadedConfig) -> dict[str, str]:
    """What `sensitive` gives, as long as the user has not trusted it; else nothing.

    Raises:
        ConfigError: the record cannot be read.
    """
    return {} if is_trusted(loaded) else sensitive(loaded)


def require_trust(loaded: LoadedConfig, section: str) -> None:
    """Stop before a section is used whose provider would use settings the user has not trusted.

    Raises:
        ConfigError: code "untrusted"; `details["settings"]` has them with their values.
    """
    values = values_of(loaded.config)
    used = [f"{section}.{name}" for name in _USED.get(str(values[f"{section}.provider"]), ())]
    waiting = {dotted: why for dotted, why in untrusted(loaded).items() if dotted in used}
    if not waiting:
        return
    dotted, why = next(iter(waiting.items()))
    more = f" ({len(waiting) - 1} more like it)" if len(waiting) > 1 else ""
    raise ConfigError(
        f"{CONFIG_NAME} sets {dotted} to {values[dotted]!r}, which {why}{more}; it does not count"
        " until you trust it",
        hint=f"look at the values (ragx trust --list), then: ragx trust{_WITHOUT.get(section, '')}",
        code="untrusted",
        details={"settings": {name: values[name] for name in waiting}},
    )


def remember(loaded: LoadedConfig) -> bool:
    """Note that the user trusts the sensitive settings as they are now.

    Returns:
        Whether anything was written: not where there is nothing to trust, or it is trusted.
    Raises:
        ConfigError: there is no home directory, or the record cannot be written.
    """
    wanted = digest(loaded)
    if not wanted or wanted in _recorded(loaded.home):
        return False
    path = _record_path(loaded.home)
    line = json.dumps(
        {"digest": wanted, "root": os.fsencode(loaded.root).decode("utf-8", "replace")}
    )
    try:
        before = read_bytes(path) or b""
        start = "\n" if before and not before.endswith(b"\n") else ""
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with open(descriptor, "ab") as file:
            file.write(f"{start}{line}\n".encode())
            file.flush()
            os.fsync(file.fileno())
    except OSError as exc:
        raise ConfigError(f"{TRUST_LABEL}: cannot be written: {exc.strerror or exc}") from exc
    return True


def trust_written(
    before: LoadedConfig | None, after: LoadedConfig, written: Collection[str]
) -> bool:
    """Trust settings that ragx has written on the user's behalf.

    Not where others wait that somebody else may have put there: writing one setting is no word on
    those, nor on what they have become by it.

    Args:
        before: settings as they were; None for a file that is new or could not be read.
        after: settings as they are now.
        written: dotted keys that the user had written.
    Returns:
        Whether nothing waits any more.
    Raises:
        ConfigError: the record cannot be read or written.
    """
    others = {key: why for key, why in sensitive(after).items() if key not in written}
    if others and (before is None or not _were_trusted(before, after, others)):
        return is_trusted(after)
    remember(after)
    return True


def forget(loaded: LoadedConfig) -> bool:
    """Take back what `remember` noted for these very settings.

    Returns:
        Whether they were trusted.
    Raises:
        ConfigError: the record cannot be read or written.
    """
    wanted = digest(loaded)
    path = _record_path(loaded.home)
    lines = (read_bytes(path) or b"").splitlines()
    kept = [line for line in lines if _digest_in(line) != wanted]
    if not wanted or len(kept) == len(lines):
        return False
    write_file(path, b"".join(line + b"\n" for line in kept))
    return True


def _why(name: str, value: str, provider: str, dotted: str) -> str:
    """What a value from the corpus could do; "" if nothing."""
    if name == "base_url":
        return "" if is_local(value) else _REMOTE
    if name == "model" and provider == "onnx":
        return _MODEL
    if name == "model" and provider == "sentence-transformers":
        if not is_hub_name(value):
            return _MODEL
        # Loading one may run what its files name; ragx vouches for its own default alone.
        return "" if value == find_key(dotted).default else _HUB_MODEL
    return _WHY_BY_NAME.get(name, "")


def _from_environment(loaded: LoadedConfig) -> list[str]:
    """Addresses that OPENAI_BASE_URL gives to a provider that the corpus has chosen."""
    return [
        f"{section}.base_url"
        for section in MACHINE_SECTIONS
        if loaded.origins.get(f"{section}.base_url") == "OPENAI_BASE_URL"
        and loaded.origins.get(f"{section}.provider") == CONFIG_NAME
    ]


def _sends_to(address: str) -> str:
    return f"would send text and keys to {address}, which OPENAI_BASE_URL names"


def _were_trusted(before: LoadedConfig, after: LoadedConfig, others: Mapping[str, str]) -> bool:
    """Whether what the user did not write now is as it was, and was trusted then."""
    if not is_trusted(before):
        return False
    known = sensitive(before)
    old, new = values_of(before.config), values_of(after.config)
    return all(known.get(key) == why and old[key] == new[key] for key, why in others.items())


def _place(path: str, root: Path) -> str:
    """Where a path leads from the corpus."""
    return os.fsencode(os.path.realpath(root / os.path.expanduser(path))).hex()


def _content_inside(program: str, root: Path) -> str:
    """Digest of a program that came with the corpus: its next version is another program."""
    path = os.path.realpath(root / os.path.expanduser(program))
    if not Path(path).is_relative_to(os.path.realpath(root)):
        return ""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def _record_path(home: Path | None) -> Path:
    if home is None:
        raise ConfigError(f"no home directory to keep {TRUST_LABEL} in", hint="set HOME")
    return home / TRUST_NAME


def _recorded(home: Path | None) -> set[str]:
    if home is None:
        return set()
    lines = (read_bytes(_record_path(home)) or b"").splitlines()
    return {found for line in lines if (found := _digest_in(line))}


def _digest_in(line: bytes) -> str:
    """The digest of one line; "" for a line that is none, which trusts nothing."""
    with contextlib.suppress(ValueError, RecursionError):
        entry = json.loads(line)
        if isinstance(entry, dict) and isinstance(entry.get("digest"), str):
            return str(entry["digest"])
    return ""

"""Read and check settings: built-in, then `ragx.toml`, then `~/.ragxrc`."""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ragx.config.endpoints import default_base_url
from ragx.config.rules import Rejected, Value, did_you_mean, found, nearest
from ragx.config.sections import Config
from ragx.config.table import MACHINE_SECTIONS, build, find_key, keys, table_keys
from ragx.errors import ConfigError

__all__ = [
    "BOM",
    "CONFIG_NAME",
    "RC_LABEL",
    "RC_NAME",
    "LoadedConfig",
    "decode_toml",
    "load_config",
    "parse_toml",
    "read_bytes",
]

CONFIG_NAME = "ragx.toml"
RC_NAME = ".ragxrc"
RC_LABEL = "~/.ragxrc"
BOM = b"\xef\xbb\xbf"

_POSITION = re.compile(r" \(at line (\d+), column (\d+)\)$")


@dataclass(frozen=True)
class LoadedConfig:
    """Settings in force, and where they came from.

    `root` is the corpus root (the home directory for machine-only settings); `config_path` its
    `ragx.toml`, None if there is none. `overrides` are lines for people, one per corpus value
    that `~/.ragxrc` replaces. `origins` names the source of every dotted key: "default",
    "ragx.toml", "~/.ragxrc" or "OPENAI_BASE_URL". `home` is where the user's own files are, None if
    none were to be read.
    """

    config: Config
    root: Path
    config_path: Path | None
    overrides: tuple[str, ...]
    origins: Mapping[str, str]
    home: Path | None = None


def load_config(root: Path | None, *, env: Mapping[str, str], home: Path | None) -> LoadedConfig:
    """Read the settings of a corpus as they apply on this machine.

    A server's `base_url` that no file sets becomes the provider's own default, or for provider
    "openai" the value of OPENAI_BASE_URL; no variable ever changes a provider.

    Args:
        root: corpus root; None reads the machine's settings alone.
        home: directory of `.ragxrc`; None if the user has none.
    Raises:
        ConfigError: a file cannot be read, is not TOML, or holds an unknown or invalid setting.
    """
    values: dict[str, Value] = {}
    origins = dict.fromkeys(keys(), "default")
    config_path = None if root is None else root / CONFIG_NAME
    raw = read_bytes(config_path) if config_path else None
    if config_path is None or raw is None:
        config_path = None
    else:
        values = _checked(parse_toml(raw, str(config_path)), str(config_path), machine=False)
        origins.update(dict.fromkeys(values, CONFIG_NAME))
    overrides: list[str] = []
    raw = read_bytes(home / RC_NAME) if home else None
    if raw is not None:
        for dotted, value in _checked(parse_toml(raw, RC_LABEL), RC_LABEL, machine=True).items():
            if dotted in values and values[dotted] != value:
                change = f"{values[dotted]!r} -> {value!r}"
                overrides.append(f"{RC_LABEL} overrides {dotted}: {change}")
            values[dotted] = value
            origins[dotted] = RC_LABEL
    for dotted, (value, origin) in default_base_url(values, env).items():
        values[dotted] = value
        origins[dotted] = origin
    return LoadedConfig(
        config=build(values),
        root=root or home or Path("/"),
        config_path=config_path,
        overrides=tuple(overrides),
        origins=origins,
        home=home,
    )


def read_bytes(path: Path) -> bytes | None:
    """Return a settings file's bytes, None if there is no such file.

    Raises:
        ConfigError: it exists but is no readable regular file.
    """
    try:
        # Opening a FIFO would wait for ever, so the kind comes first.
        if not stat.S_ISREG(path.stat().st_mode):
            raise ConfigError(f"{path}: not a regular file")
        return path.read_bytes()
    except FileNotFoundError:
        if path.is_symlink():
            raise ConfigError(f"{path}: a link to a file that does not exist") from None
        return None
    except NotADirectoryError:
        return None
    except OSError as exc:
        raise ConfigError(f"{path}: cannot be read: {exc.strerror or exc}") from exc


def decode_toml(raw: bytes, label: str) -> str:
    """Decode a settings file, without its byte order mark.

    Raises:
        ConfigError: it is not UTF-8; the message gives line and column (bytes, from 1).
    """
    body = raw.removeprefix(BOM)
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as exc:
        before = body[: exc.start]
        line = before.count(b"\n") + 1
        column = exc.start - (before.rfind(b"\n") + 1) + 1
        raise ConfigError(
            f"{label}:{line}:{column}: not UTF-8 (byte 0x{body[exc.start]:02x})",
            hint="save the file as UTF-8",
        ) from exc


def parse_toml(raw: bytes, label: str) -> dict[str, object]:
    """Parse a settings file.

    Raises:
        ConfigError: not UTF-8 or not TOML; the message gives file, line and column.
    """
    import tomllib

    text = decode_toml(raw, label)
    try:
        parsed: dict[str, object] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as exc:
        message = str(exc)
        position = _POSITION.search(message)
        if position:
            line, column = int(position[1]), int(position[2])
            message = message[: position.start()]
        else:  # "(at end of document)"
            message = message.split(" (at ", 1)[0]
            line = text.count("\n") + 1
            column = len(text) - (text.rfind("\n") + 1) + 1
        raise ConfigError(f"{label}:{line}:{column}: not valid TOML: {message}") from exc
    except ValueError as exc:  # an integer of thousands of digits
        raise ConfigError(f"{label}: holds a number that is too long") from exc
    except RecursionError as exc:
        raise ConfigError(f"{label}: nested too deeply") from exc
    return parsed


def _checked(parsed: Mapping[str, object], label: str, *, machine: bool) -> dict[str, Value]:
    """Check a parsed file against the table; return its values by dotted key."""
    values: dict[str, Value] = {}
    for dotted, value in _leaves(parsed, "", label, machine=machine):
        item = find_key(dotted)
        try:
            values[dotted] = item.rule.check(value)
        except Rejected as exc:
            raise ConfigError(
                f"{label}: {dotted} must be {item.rule.allowed}, not {exc}", code="bad_value"
            ) from exc
    return values


def _leaves(
    table: Mapping[str, object], above: str, label: str, *, machine: bool
) -> Iterator[tuple[str, object]]:
    """Walk the known keys of a table and its sub-tables; anything unknown is an error."""
    known = MACHINE_SECTIONS if machine and not above else table_keys(above)
    for name, value in table.items():
        dotted = f"{above}.{name}" if above else name
        if name not in known:
            raise _unknown(name, above, known, label, machine=machine)
        if dotted in keys():
            yield dotted, value
        elif isinstance(value, Mapping):
            yield from _leaves(value, dotted, label, machine=machine)
        else:
            raise ConfigError(
                f"{label}: [{dotted}] must be a table, not {found(value)}", code="bad_value"
            )


def _unknown(
    name: str, above: str, known: tuple[str, ...], label: str, *, machine: bool
) -> ConfigError:
    shown = name if len(name) <= 60 else name[:57] + "..."
    if machine and not above:
        return ConfigError(
            f"{label}: accepts only {', '.join(f'[{name}]' for name in known)}, not {shown!r}",
            hint=f"other settings belong in the corpus's {CONFIG_NAME}",
            code="unknown_key",
        )
    kind = f"key {above}.{shown}" if above else f"section or key {shown!r}"
    close = nearest(name, known)
    if close:
        hint = did_you_mean(close)
    else:
        hint = ("keys here: " if above else "sections: ") + ", ".join(known)
    return ConfigError(f"{label}: unknown {kind}", hint=hint, code="unknown_key")

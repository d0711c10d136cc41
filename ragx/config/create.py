"""Write the settings file of a new corpus, and several settings at once."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from ragx.config.edit import set_value, write_file
from ragx.config.load import CONFIG_NAME, load_config
from ragx.config.render import default_toml, literal
from ragx.config.rules import Value
from ragx.config.trust import trust_written
from ragx.errors import ConfigError

__all__ = ["create_config", "edited"]


def create_config(
    root: Path, answers: Mapping[str, Value], *, env: Mapping[str, str], home: Path | None
) -> Path:
    """Write a new `ragx.toml`: every key at its default but for the answers, in one step.

    Raises:
        ConfigError: code "config_exists", or it cannot be written.
    """
    target = root / CONFIG_NAME
    try:
        write_file(target, edited(default_toml().encode("utf-8"), answers), exclusive=True)
    except FileExistsError as exc:
        raise ConfigError(
            f"{target} exists already", hint="ragx config list shows it", code="config_exists"
        ) from exc
    if answers:
        trust_written(None, load_config(root, env=env, home=home), answers)
    return target


def edited(text: bytes, values: Mapping[str, Value]) -> bytes:
    """Set values in the text of a settings file; comments stay.

    Args:
        text: of the file as it is.
        values: by dotted key.
    Raises:
        ConfigError: a key or a value is wrong, or the text is no TOML.
    """
    if not values:
        return text
    with tempfile.TemporaryDirectory(prefix="ragx-setup-") as scratch:
        copy = Path(scratch, CONFIG_NAME)
        copy.write_bytes(text)
        for key, value in values.items():
            set_value(copy, key, value if isinstance(value, str) else literal(value), create=True)
        return copy.read_bytes()

"""Change one setting in a file that people wrote: comments, order, line ends, BOM and mode stay."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ragx.config.load import BOM, LoadedConfig, decode_toml, parse_toml, read_bytes
from ragx.config.rules import Rejected, Value, found
from ragx.config.table import MACHINE_SECTIONS, Key, find_key, keys, values_of
from ragx.errors import ConfigError

if TYPE_CHECKING:
    from tomlkit import TOMLDocument

__all__ = [
    "Setting",
    "get_value",
    "list_values",
    "parse_value",
    "require_machine_key",
    "set_value",
    "write_file",
]


class Setting(NamedTuple):
    """One setting in force: `origin` as in LoadedConfig, `doc` and `allowed` in words."""

    key: str
    value: Value
    origin: str
    default: Value
    doc: str
    allowed: str


def list_values(loaded: LoadedConfig, prefix: str = "") -> tuple[Setting, ...]:
    """Return all settings in force, or those of one section or key, in the order of `ragx.toml`.

    Raises:
        ConfigError: nothing has that name.
    """
    values = values_of(loaded.config)
    chosen = [
        item
        for dotted, item in keys().items()
        if not prefix or dotted == prefix or dotted.startswith(f"{prefix}.")
    ]
    if not chosen:
        find_key(prefix)
    return tuple(
        Setting(
            item.dotted,
            values[item.dotted],
            loaded.origins[item.dotted],
            item.default,
            item.doc,
            item.rule.allowed,
        )
        for item in chosen
    )


def get_value(loaded: LoadedConfig, dotted_key: str) -> Setting:
    """Return one setting in force.

    Raises:
        ConfigError: there is no such key; the hint gives the nearest names.
    """
    find_key(dotted_key)
    return list_values(loaded, dotted_key)[0]


def require_machine_key(dotted_key: str) -> None:
    """Refuse a key that `~/.ragxrc` may not hold.

    Raises:
        ConfigError: unknown key, or one that belongs to the corpus.
    """
    if find_key(dotted_key).section not in MACHINE_SECTIONS:
        sections = ", ".join(f"[{section}]" for section in MACHINE_SECTIONS)
        raise ConfigError(
            f"{dotted_key} belongs to the corpus: ~/.ragxrc accepts only {sections}",
            hint=f"run it without --global: ragx config set {dotted_key} VALUE",
            code="not_machine",
        )


def parse_value(dotted_key: str, raw_value: str) -> Value:
    """Read a value typed at the command line by the rule of its key.

    Raises:
        ConfigError: unknown key, or a value the key does not accept.
    """
    item = find_key(dotted_key)
    try:
        return item.rule.check(item.rule.parse(raw_value))
    except Rejected as exc:
        raise ConfigError(
            f"{dotted_key} must be {item.rule.allowed}, not {exc}", code="bad_value"
        ) from exc


def set_value(
    path: Path, dotted_key: str, raw_value: str, *, create: bool, inside: Path | None = None
) -> Value:
    """Write one setting into a file and return it as typed.

    Only that setting changes; other settings may be invalid, so that they can be mended one by
    one. The file is replaced whole (temporary file, fsync, rename) and keeps its permissions; a
    link is followed. Nothing is written if the value is there already.

    Args:
        raw_value: text as typed: `true`, `20`, `0.5`, `auto`, `a, b` or `["a", "b"]`.
        create: whether a file that does not exist is made.
        inside: as for `write_file`.
    Raises:
        ConfigError: unknown key, invalid value, no file, a file that is not UTF-8 TOML, or one that
            lies outside of `inside`.
    """
    item = find_key(dotted_key)
    value = parse_value(dotted_key, raw_value)
    raw = read_bytes(path)
    if raw is None and not create:
        raise ConfigError(f"{path}: no such file", hint="ragx init")
    before = parse_toml(raw or b"", str(path))
    wanted = _with_value(before, item, value, str(path))
    if raw is None or not _same(before, wanted):
        text = decode_toml(raw or b"", str(path))
        edited = _edited(text, item, value)
        bom = BOM if raw and raw.startswith(BOM) else b""
        data = bom + edited.encode("utf-8")
        # The editor keeps comments; that it changed nothing else is checked, not trusted.
        if not _same(parse_toml(data, str(path)), wanted):
            raise ConfigError(
                f"{path}: {dotted_key} cannot be set without disturbing other settings",
                hint=f"edit the file by hand: {dotted_key} = {raw_value}",
            )
        write_file(path, data, inside=inside)
    return value


def write_file(
    path: Path, data: bytes, *, exclusive: bool = False, inside: Path | None = None
) -> None:
    """Write a file whole or not at all, keeping the mode and owner of what it replaces.

    Args:
        exclusive: refuse to replace anything.
        inside: the corpus whose file it is. A clone can bring a link that leads out of it, and
            writing where that leads would change a file of the user's; None follows any link.
    Raises:
        FileExistsError: `exclusive`, and something has that name.
        ConfigError: the directory or file cannot be written; code "linked_config": it lies outside
            of `inside`.
    """
    target = Path(os.path.realpath(path))
    if inside is not None and not target.is_relative_to(os.path.realpath(inside)):
        own = shlex.quote(str(path))
        copy = shlex.quote(f"{path}.copy")
        raise ConfigError(
            f"{path} is a link to {target}, outside of the corpus: it is read, never written",
            hint=f"make it a file of the corpus: cp {own} {copy} && mv {copy} {own}",
            code="linked_config",
        )
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        try:
            _write_synced(temporary, data, like=target)
            if exclusive:
                if os.path.lexists(path):
                    raise FileExistsError(str(path))
                _publish(temporary, target)
            else:
                os.replace(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)
        _sync_directory(target.parent)
    except FileExistsError:
        raise
    except OSError as exc:
        raise ConfigError(f"{path}: cannot be written: {exc.strerror or exc}") from exc


def _publish(temporary: Path, target: Path) -> None:
    """Give the file its name; of two processes doing so, one gets FileExistsError."""
    try:
        os.link(temporary, target)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        os.replace(temporary, target)


def _write_synced(temporary: Path, data: bytes, *, like: Path) -> None:
    temporary.unlink(missing_ok=True)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    with open(descriptor, "wb") as file:
        try:
            old = like.stat()
        except FileNotFoundError:
            pass
        else:
            if os.name == "posix" and (old.st_uid, old.st_gid) != (os.geteuid(), os.getegid()):
                # Only root may give files away; the content matters more.
                with contextlib.suppress(PermissionError):
                    os.chown(temporary, old.st_uid, old.st_gid)
            os.chmod(temporary, old.st_mode & 0o7777)
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync_directory(directory: Path) -> None:
    """Make the rename itself durable, where the system lets a directory be synced."""
    with contextlib.suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _with_value(
    parsed: Mapping[str, object], item: Key, value: Value, label: str
) -> dict[str, object]:
    """Return the parsed file as it must read after the edit."""
    result = dict(parsed)
    table = result
    for depth, name in enumerate(item.path[:-1], start=1):
        inner = table.get(name, {})
        if not isinstance(inner, dict):
            where = ".".join(item.path[:depth])
            raise ConfigError(
                f"{label}: [{where}] must be a table, not {found(inner)}", code="bad_value"
            )
        table[name] = dict(inner)
        table = table[name]  # type: ignore[assignment]  # the dict put there a line above
    table[item.path[-1]] = list(value) if isinstance(value, tuple) else value
    return result


def _same(left: object, right: object) -> bool:
    """Equality of parsed TOML in which 1, 1.0 and true differ and NaN equals itself."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_same(left[k], right[k]) for k in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_same, left, right))
    return repr(left) == repr(right)


def _edited(text: str, item: Key, value: Value) -> str:
    """Set one value in TOML text. Text with CRLF line ends throughout keeps them throughout."""
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    crlf = "\r\n" in text and not re.search(r"(?<!\r)\n", text)
    try:
        document = tomlkit.parse(text.replace("\r\n", "\n") if crlf else text)
        _assign(document, item, value)
        edited = tomlkit.dumps(document)
    except (TOMLKitError, ValueError, RecursionError) as exc:
        raise ConfigError(
            f"the file cannot be edited ({exc})", hint=f"set {item.dotted} by hand"
        ) from exc
    return edited.replace("\n", "\r\n") if crlf else edited


def _assign(document: TOMLDocument, item: Key, value: Value) -> None:
    import tomlkit
    from tomlkit.items import InlineTable

    table: Any = document  # tomlkit's containers share no typed interface
    for name in item.path[:-1]:
        if name not in table:
            inline = isinstance(table, InlineTable)
            table[name] = tomlkit.inline_table() if inline else tomlkit.table()
        table = table[name]
    new: object = list(value) if isinstance(value, tuple) else value
    if isinstance(new, list):
        array = tomlkit.array()
        array.extend(new)
        new = array.multiline(len(tomlkit.dumps({item.path[-1]: new})) > 100)
    body = getattr(getattr(table, "value", None), "body", None)
    if item.path[-1] in table or body is None:
        table[item.path[-1]] = new
        return
    # Blank lines and comments that end a table belong, to the reader, to what follows it: a new
    # key goes above them.
    trailing = []
    while body and body[-1][0] is None:
        trailing.append(body.pop())
    table[item.path[-1]] = new
    body.extend(reversed(trailing))

"""What a sweep needs: options by their dotted names, and a reader that reads each thing once."""

from __future__ import annotations

import itertools
import typing
from collections.abc import Mapping, Sequence, Set
from dataclasses import fields, is_dataclass, replace
from types import UnionType
from typing import Any

import numpy as np

from ragx.query.pipeline import QueryOptions
from ragx.store.sqlite import SqliteReader


class Memo:
    """A snapshot that reads each thing once: the same question gets the same answer.

    Chunks are kept one by one, as their sets differ from setting to setting.
    """

    def __init__(self, reader: SqliteReader) -> None:
        self._reader = reader
        self._known: dict[object, Any] = {}
        self._chunks: dict[int, Any] = {}

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._reader, name)
        if not callable(method):
            return method

        def ask(*args: Any, **named: Any) -> Any:
            key = name, hashable(args), hashable(named)
            if key not in self._known:
                self._known[key] = method(*args, **named)
            found = self._known[key]
            return found.copy() if isinstance(found, list | dict | set) else found

        self.__dict__[name] = ask
        return ask

    def chunks(self, chunk_ids: Sequence[int]) -> dict[int, Any]:
        missing = [chunk_id for chunk_id in chunk_ids if chunk_id not in self._chunks]
        if missing:
            self._chunks.update(self._reader.chunks(missing))
        return {i: self._chunks[i] for i in chunk_ids if i in self._chunks}


def hashable(value: Any) -> Any:
    """What is equal for equal arguments."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, Set):
        return frozenset(value)
    if isinstance(value, Mapping):
        return frozenset((key, hashable(item)) for key, item in value.items())
    if isinstance(value, list | tuple):
        flat = all(isinstance(item, int | float | str) for item in value)
        return tuple(value) if flat else tuple(map(hashable, value))
    return value


Setting = tuple[tuple[str, str], ...]
"""(key, value) pairs that hold together; none is the default."""


def settings_of(texts: Sequence[str], *, each: bool = False) -> list[Setting]:
    """The default and every pairing of `KEY=V1,V2,...` values, or each value alone, all checked.

    Raises:
        ValueError: one is no option, or cannot have that value.
    """
    axes = []
    for text in texts:
        key, equals, values = text.partition("=")
        if not equals or not values:
            raise ValueError(f"{text}: write KEY=V1,V2,...")
        axes.append([(key, value) for value in values.split(",")])
    alone = [(pair,) for axis in axes for pair in axis]
    settings: list[Setting] = [(), *(alone if each else itertools.product(*axes))]
    for setting in settings:
        with_setting(QueryOptions(), setting)
    return settings


def with_setting(options: QueryOptions, setting: Setting) -> QueryOptions:
    """The options with these values instead."""
    for key, text in setting:
        options = put(options, key, key, text)
    return options


def put(holder: Any, path: str, key: str, text: str) -> Any:
    """A copy of a dataclass or mapping with the value at a dotted path replaced."""
    head, _, rest = path.partition(".")
    if isinstance(holder, Mapping):
        old, hint = holder.get(head, 1.0), float
    else:
        names = [item.name for item in fields(holder)]
        if head not in names:
            raise ValueError(f"{key}: no {head!r} among {', '.join(names)}")
        old, hint = getattr(holder, head), typing.get_type_hints(type(holder))[head]
    nested = is_dataclass(old) or isinstance(old, Mapping)
    if bool(rest) != nested:
        raise ValueError(f"{key}: {head} {'has fields' if nested else 'has no fields'}")
    value = put(old, rest, key, text) if rest else parsed(text, hint, key)
    return (
        {**holder, head: value} if isinstance(holder, Mapping) else replace(holder, **{head: value})
    )


def parsed(text: str, hint: Any, key: str) -> Any:
    """A value of the field's type."""
    origin = typing.get_origin(hint)
    choices = typing.get_args(hint) if origin in (typing.Union, UnionType) else (hint,)
    for choice in choices:
        if typing.get_origin(choice) is typing.Literal:
            if text in typing.get_args(choice):
                return text
        elif choice is bool:
            if text in ("true", "false"):
                return text == "true"
        elif choice in (int, float):
            try:
                return choice(text)
            except ValueError:
                continue
    raise ValueError(f"{key}: {text!r} is no value of it")

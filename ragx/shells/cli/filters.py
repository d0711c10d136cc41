"""Options that say which files a question is about; one decorator for every command that asks."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from ragx.api import Filters

__all__ = ["filter_options"]

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "--path", "paths", multiple=True, metavar="GLOB",
        help="Only files that a gitignore-style glob matches; !GLOB takes files out.",
    ),
    click.option("--file", "files", multiple=True, metavar="PATH", help="Only this file."),
    click.option(
        "--lang", "languages", multiple=True, metavar="NAME",
        help="Only this language, by name or extension.",
    ),
    click.option("--kind", "kinds", multiple=True, metavar="KIND", help="Only code, docs or data."),
    click.option(
        "--tag", "tags", multiple=True, metavar="TAG", help="Only files whose front matter has it."
    ),
    click.option("--since", default="", metavar="DATE", help="Only files of this day or later."),
    click.option("--until", default="", metavar="DATE", help="Only files of this day or earlier."),
    click.option(
        "--source-version", "source_versions", multiple=True, metavar="HASH",
        help="Only files with this content.",
    ),
)  # fmt: skip


def filter_options(function: F) -> F:
    """Add the filters, passed as one `filters: Filters`.

    An option that is repeated widens what it lets through; options narrow each other.
    """

    @functools.wraps(function)
    def checked(
        *,
        paths: tuple[str, ...],
        files: tuple[str, ...],
        languages: tuple[str, ...],
        kinds: tuple[str, ...],
        tags: tuple[str, ...],
        since: str,
        until: str,
        source_versions: tuple[str, ...],
        **others: Any,
    ) -> Any:
        return function(
            filters=_parsed(
                paths=paths,
                files=files,
                languages=languages,
                kinds=kinds,
                tags=tags,
                since=since,
                until=until,
                source_versions=source_versions,
            ),
            **others,
        )

    wrapped: Any = checked
    for option in reversed(_OPTIONS):
        wrapped = option(wrapped)
    return wrapped  # type: ignore[no-any-return]


def _parsed(**given: Any) -> Filters:
    from ragx.api import parse_filters

    return parse_filters(**given)

"""Explicit references: what a file's text links to, includes or imports, and which file that is.

`references` reads them out of one text, `Resolver` finds the files they mean among the paths of a
corpus, `page_names` lists the names under which running text elsewhere may mention a file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ragx.algo.references.base import Reference
    from ragx.algo.references.names import (
        PageName,
        fragment_keys,
        heading_keys,
        heading_slug,
        matches_heading,
        page_names,
    )
    from ragx.algo.references.reading import references
    from ragx.algo.references.resolve import Resolver

__all__ = [
    "PageName",
    "Reference",
    "Resolver",
    "fragment_keys",
    "heading_keys",
    "heading_slug",
    "matches_heading",
    "page_names",
    "references",
]

# The readers compile some hundred patterns; what only looks at stored edges needs none of them.
_HOMES = {
    "PageName": "names",
    "Reference": "base",
    "Resolver": "resolve",
    "fragment_keys": "names",
    "heading_keys": "names",
    "heading_slug": "names",
    "matches_heading": "names",
    "page_names": "names",
    "references": "reading",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)

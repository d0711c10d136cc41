"""JSON Schemas of every document that ragx prints, shipped with the package."""

from __future__ import annotations

from typing import Any

from ragx.errors import UsageError

__all__ = ["load", "names", "text"]


def names() -> tuple[str, ...]:
    """Return the documents' names, sorted: `ragx.error.v1` and so on."""
    from importlib.resources import files

    found = (entry.name for entry in files(__name__).iterdir())
    return tuple(sorted(name.removesuffix(".json") for name in found if name.endswith(".json")))


def text(name: str) -> str:
    """Return a document's schema as it is shipped.

    Raises:
        UsageError: no document has that name.
    """
    from importlib.resources import files

    known = names()
    if name not in known:
        import difflib

        close = difflib.get_close_matches(name, known, n=3, cutoff=0.4)
        hint = f"did you mean {' or '.join(close)}?" if close else "ragx schema lists all names"
        raise UsageError(f"no schema is called {name}", hint=hint, code="unknown_schema")
    return files(__name__).joinpath(f"{name}.json").read_text(encoding="utf-8")


def load(name: str) -> dict[str, Any]:
    """Return a document's schema, parsed.

    Raises:
        UsageError: no document has that name.
    """
    import json

    schema: dict[str, Any] = json.loads(text(name))
    return schema

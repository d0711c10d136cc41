"""All references of one text, links and imports together."""

from __future__ import annotations

from ragx.algo.references.base import Reference
from ragx.algo.references.imports import import_references
from ragx.algo.references.links import link_references

__all__ = ["references"]


def references(text: str, language: str) -> list[Reference]:
    """Read the explicit references of one file, in order of start.

    Args:
        text: the decoded text of the file.
        language: a name that `language_of` gives.
    Returns:
        References whose targets lie, or may lie, in the corpus; URLs are left out. Empty for an
        empty text and for a language it does not know.
    """
    found = link_references(text, language)
    found += import_references(text, language)
    found.sort(key=lambda reference: (reference.start, reference.end))
    return found

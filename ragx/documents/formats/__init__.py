"""A folder for each family of formats: bytes of a document to blocks of text with their places."""

from __future__ import annotations

__all__: list[str] = []

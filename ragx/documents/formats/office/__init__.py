"""Office and OpenDocument: text, slides and sheets, read from the XML in their archives."""

from __future__ import annotations

__all__: list[str] = []

"""PDF: pages to rows to blocks, in reading order."""

from __future__ import annotations

__all__: list[str] = []

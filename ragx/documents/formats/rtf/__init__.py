"""RTF: groups and control words to paragraphs."""

from __future__ import annotations

__all__: list[str] = []

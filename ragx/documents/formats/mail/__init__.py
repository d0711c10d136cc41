"""Mail: headers, bodies and what is attached."""

from __future__ import annotations

__all__: list[str] = []

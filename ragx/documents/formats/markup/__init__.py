"""HTML pages and the e-books made of them."""

from __future__ import annotations

__all__: list[str] = []

"""Jupyter notebooks: cells and what they printed."""

from __future__ import annotations

__all__: list[str] = []

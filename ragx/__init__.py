"""ragx: graph-augmented local retrieval. `ragx.api` is the library, `ragx` the command."""

from __future__ import annotations

__all__ = ["__version__"]

__version__ = "0.1.0"

"""Text to chunks: spans of decoded text along the structure of the document or program.

Every character that is not white space is in a span. Spans come in order; they overlap only as
consecutive windows of one block that had to be split. A span starts at a row and ends at a row's
end, unless a single row was too long; none is blank, none cuts a grapheme, none is longer than
`max_chunk_chars`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ragx.algo.chunking.languages import kind_of, language_of

if TYPE_CHECKING:
    from ragx.algo.chunking.base import ChunkOptions, EstimatedSizer, OffsetSizer, Sizer
    from ragx.algo.chunking.chunker import body_start, chunk_rows, chunk_text, document_title
    from ragx.algo.chunking.windows import split_windows

__all__ = [
    "ChunkOptions",
    "EstimatedSizer",
    "OffsetSizer",
    "Sizer",
    "body_start",
    "chunk_rows",
    "chunk_text",
    "document_title",
    "kind_of",
    "language_of",
    "split_windows",
]

# A query asks for a file's language and nothing else here: what cuts text loads when it is used.
_HOMES = {
    "ChunkOptions": "base",
    "EstimatedSizer": "base",
    "OffsetSizer": "base",
    "Sizer": "base",
    "body_start": "chunker",
    "chunk_rows": "chunker",
    "chunk_text": "chunker",
    "document_title": "chunker",
    "split_windows": "windows",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)

"""Text to chunks: spans of decoded text along the structure of the document or program.

Every character that is not white space is in a span. Spans come in order; they overlap only as
consecutive windows of one block that had to be split. A span starts at a row and ends at a row's
end, unless a single row was too long; none is blank, none cuts a grapheme, none is longer than
`max_chunk_chars`.
"""

from __future__ import annotations

from ragx.algo.chunking.base import ChunkOptions, EstimatedSizer, OffsetSizer, Sizer
from ragx.algo.chunking.chunker import chunk_text, document_title
from ragx.algo.chunking.languages import kind_of, language_of
from ragx.algo.chunking.windows import split_windows

__all__ = [
    "ChunkOptions",
    "EstimatedSizer",
    "OffsetSizer",
    "Sizer",
    "chunk_text",
    "document_title",
    "kind_of",
    "language_of",
    "split_windows",
]

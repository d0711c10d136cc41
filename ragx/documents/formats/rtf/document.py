"""Rich Text Format: paragraphs, headings by outline level, lists, tables, notes and links."""

from __future__ import annotations

import re

from ragx.documents.formats.base import Extracted, ExtractLimits, SkippedPart, bounded, damaged
from ragx.documents.formats.rtf.body import Body
from ragx.documents.formats.rtf.groups import Groups
from ragx.documents.formats.tidy import one_line

__all__ = ["extract"]

_HEAD = re.compile(rb"(?:\xef\xbb\xbf)?\s*\{\s*\\rtf(?![a-z])")


def extract(raw: bytes, limits: ExtractLimits) -> Extracted:
    """Read an RTF document; its blocks have no place but the headings above them.

    A file without any content gives no blocks.

    Raises:
        ExtractionError: it is no RTF, or is cut off before its text begins.
    """
    if not raw.strip():
        return Extracted(())
    head = _HEAD.match(raw)
    if head is None:
        raise damaged("it is no RTF: it does not begin with {\\rtf")
    body = Body(limits)
    groups = Groups(raw, raw.index(b"{"), body)
    groups.read()
    body.close()
    blocks, rest = bounded(body.blocks, limits)
    skipped = [SkippedPart(what, n) for what, n in sorted(groups.left_out.items()) if n]
    if rest is not None:
        skipped.append(rest)
    elif body.is_full:
        skipped.append(SkippedPart("rest", 0, f"over {limits.max_chars:,} characters"))
    elif groups.is_cut:
        if not blocks:
            raise damaged("it is cut off before its text begins")
        skipped.append(SkippedPart("rest", 0, "the file is cut off"))
    info = groups.info
    first = next((block for block in blocks if block.kind == "heading"), None)
    title = one_line(info.title)
    if not title and first is not None and first.level <= 2:
        title = first.text
    tags = (one_line(tag) for tag in re.split("[,;]", info.keywords))
    return Extracted(
        blocks=tuple(blocks),
        title=title,
        date=info.date(),
        tags=tuple(dict.fromkeys(filter(None, tags))),
        skipped_parts=tuple(skipped),
    )

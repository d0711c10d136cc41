"""Jupyter notebooks, formats 2 to 4: cells in order, what they put out cut short."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from ragx.algo.chunking.languages import named_language
from ragx.documents.formats.base import (
    Block,
    Extracted,
    ExtractLimits,
    Place,
    SkippedPart,
    bounded,
    damaged,
)
from ragx.documents.formats.notebook.markdown import cell_blocks
from ragx.documents.formats.notebook.outputs import Outputs, joined
from ragx.documents.formats.tidy import clean, one_line

__all__ = ["extract"]

# Kernels call their language by names of their own.
_KERNEL_NAMES = {
    "ipython": "python",
    "ipython2": "python",
    "ipython3": "python",
    "python3": "python",
}
_MAGIC_LANGUAGES = {"bash": "bash", "sh": "bash", "script": "bash", "javascript": "javascript",
                    "js": "javascript", "html": "html", "perl": "perl", "ruby": "ruby", "r": "r",
                    "sql": "sql", "latex": "latex", "cython": "python",
                    "writefile": ""}  # fmt: skip


def extract(raw: bytes, limits: ExtractLimits) -> Extracted:
    """Read a notebook; each block's place is its cell, counted from 1 over all cells.

    A file without any content, or a notebook without cells, gives no blocks.

    Raises:
        ExtractionError: it is damaged or no notebook.
    """
    if not raw.strip():
        return Extracted(())
    notebook = _parsed(raw)
    metadata = notebook.get("metadata")
    reader = _Reader(metadata if isinstance(metadata, dict) else {})
    blocks, rest = bounded(reader.blocks(_cells(notebook)), limits)
    return Extracted(
        blocks=tuple(blocks),
        title=reader.title(blocks),
        tags=reader.tags(),
        skipped_parts=(*reader.skipped(), *([rest] if rest else ())),
    )


def _parsed(raw: bytes) -> dict[str, Any]:
    try:
        notebook = json.loads(raw)
    except json.JSONDecodeError as exc:
        cut = exc.pos >= len(exc.doc.rstrip()) or exc.msg.startswith("Unterminated")
        why = "it is cut off" if cut else "it is no JSON"
        raise damaged(f"{why}: line {exc.lineno}, column {exc.colno}") from exc
    except UnicodeDecodeError as exc:
        raise damaged("it is no JSON: not in UTF-8") from exc
    except (RecursionError, ValueError) as exc:
        raise damaged("its JSON cannot be read: nested too deep or a number too long") from exc
    if not isinstance(notebook, dict) or not ("cells" in notebook or "worksheets" in notebook):
        raise damaged("it is JSON, but no notebook: it has no cells")
    return notebook


def _cells(notebook: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """All cells; what should be one and is not counts as an empty one."""
    groups = [notebook.get("cells")]
    if groups[0] is None:
        sheets = notebook.get("worksheets")
        sheets = sheets if isinstance(sheets, list) else []
        groups = [sheet.get("cells") for sheet in sheets if isinstance(sheet, dict)]
    for cells in groups:
        for cell in cells if isinstance(cells, list) else ():
            yield cell if isinstance(cell, dict) else {}


class _Reader:
    """One pass over the cells, which counts what it leaves out."""

    def __init__(self, metadata: dict[str, Any]) -> None:
        self.metadata = metadata
        self.language = _kernel_language(metadata)
        self.left_out: Counter[str] = Counter()

    def blocks(self, cells: Iterator[dict[str, Any]]) -> Iterator[Block]:
        for number, cell in enumerate(cells, start=1):
            place = Place("cell", number)
            attachments = cell.get("attachments")
            if isinstance(attachments, dict):
                self.left_out["attachments"] += len(attachments)
            kind = cell.get("cell_type")
            source = joined(cell.get("source", cell.get("input")))
            if kind == "code":
                yield from self.code(cell, source, place)
            elif kind == "heading":  # of format 3
                title = one_line(source)
                level = cell.get("level")
                level = level if isinstance(level, int) and 1 <= level <= 6 else 1
                if title:
                    yield Block("heading", title, place, level=level)
            elif kind in ("markdown", "html"):
                yield from cell_blocks(source, place, self.left_out)
            else:  # "raw", "text", and what comes after format 4
                text = clean(source).strip()
                if text:
                    yield Block("text", text, place)

    def code(self, cell: dict[str, Any], source: str, place: Place) -> Iterator[Block]:
        lines = [line.rstrip() for line in clean(source).split("\n")]
        while lines and not lines[0]:
            del lines[0]
        # White space before the first line goes with `strip`; the lines keep theirs.
        text = "\n".join(lines).strip()
        if text:
            language = _magic_language(text)
            if language is None:
                language = self.language
            yield Block("code", text, place, language=language)
        outputs = cell.get("outputs")
        if isinstance(outputs, list):
            yield from Outputs(place, self.left_out).blocks(outputs)

    def title(self, blocks: list[Block]) -> str:
        for block in blocks:
            if block.kind == "heading" and block.level == 1:
                return block.text
        title = self.metadata.get("title")
        return one_line(title) if isinstance(title, str) else ""

    def tags(self) -> tuple[str, ...]:
        found: list[str] = []
        for key in ("keywords", "tags"):
            value = self.metadata.get(key)
            values = value.split(",") if isinstance(value, str) else value
            if isinstance(values, list):
                found += [one_line(tag) for tag in values if isinstance(tag, str)]
        return tuple(dict.fromkeys(filter(None, found)))

    def skipped(self) -> list[SkippedPart]:
        return [SkippedPart(what, count) for what, count in sorted(self.left_out.items()) if count]


def _kernel_language(metadata: dict[str, Any]) -> str:
    for key, name in (
        ("language_info", "name"),
        ("kernelspec", "language"),
        ("kernelspec", "name"),
    ):
        section = metadata.get(key)
        value = section.get(name) if isinstance(section, dict) else None
        if isinstance(value, str) and value:
            value = value.lower()
            known = named_language(_KERNEL_NAMES.get(value, value))
            if known:
                return known
    # Format 3 names a language in its cells only, and that is Python.
    return "" if metadata.get("language_info") or metadata.get("kernelspec") else "python"


def _magic_language(source: str) -> str | None:
    """The language of a cell that IPython hands to another interpreter; None if it does not."""
    if not source.startswith("%%"):
        return None
    words = source[2:].split(None, 1)
    return _MAGIC_LANGUAGES.get(words[0].lower()) if words else None

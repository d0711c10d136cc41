"""Evidence packs as documents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragx.shells.cli.places import bytes_document, lines_document

if TYPE_CHECKING:
    from ragx.api import EvidencePack, Passage

__all__ = ["evidence_document", "passage_document"]

_COPIES_LISTED = 20


def evidence_document(pack: EvidencePack) -> dict[str, object]:
    """A pack as `ragx.evidence.v1`."""
    return {
        "schema": "ragx.evidence.v1",
        "query": pack.query,
        "variants": list(pack.variants),
        "budget_tokens": pack.budget_tokens,
        "tokens": pack.tokens,
        "tokenizer": pack.tokenizer,
        "notice": pack.notice,
        "boundary": pack.boundary,
        "passages": [passage_document(item) for item in pack.passages],
        "omitted": [
            {
                "file": item.path,
                **lines_document(item),
                "tokens": item.tokens,
                "score": round(item.score, 6),
                "why": item.why,
            }
            for item in pack.omitted
        ],
        "omitted_more": pack.omitted_more,
        "shrunk": list(pack.shrunk),
        "stages": dict(pack.stages),
        "warnings": list(pack.warnings),
    }


def passage_document(item: Passage) -> dict[str, object]:
    """One passage with its text."""
    more = len(item.also_in) - _COPIES_LISTED
    return {
        "citation": item.number,
        "id": item.id,
        "chunk_ids": list(item.chunk_ids),
        "file": item.path,
        **lines_document(item),
        **bytes_document(item, item.byte_start, item.byte_end),
        "heading": list(item.heading),
        "source_version": item.version,
        "score": round(item.score, 6),
        "tokens": item.tokens,
        "flags": list(item.flags),
        **({"also_in": list(item.also_in[:_COPIES_LISTED])} if item.also_in else {}),
        **({"also_in_more": more} if more > 0 else {}),
        **({"date": item.date, "date_source": item.date_source} if item.date else {}),
        "text": item.text,
    }

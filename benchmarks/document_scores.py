"""Whether an answer names the right place of the right document, and the tables of that."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from document_corpus import KINDS, Question

TOP = 10
METRICS = ("file@1", "file@3", "file@10", "place@1", "place@3", "answer@3", "mrr")
_LEAST_SHARE = 0.6  # of a heading that must be left without a number or a note


def is_place(found: Mapping[str, Any] | None, wanted: Mapping[str, Any], text: str = "") -> bool:
    """Whether a chunk's locator covers the place where an answer stands.

    Numbers count before names: a range holds its ends. A chapter or part is right by its number
    or its name, as extractors may number a table of contents with a single root differently. A
    heading is right wherever it stands in the breadcrumb, or as a line of the chunk's text: small
    sections share a chunk, whose breadcrumb is that of the first.
    """
    kind = wanted["kind"]
    if not found:
        return False
    if kind == "heading":
        heading = str(wanted["heading"])
        return any(_is_same(one, heading) for one in found.get("heading", ())) or any(
            _plain(line) == _plain(heading) for line in text.splitlines()
        )
    if found.get("kind") != kind:
        return False
    if kind == "sheet":
        named = str(found.get("sheet", "")).strip() == str(wanted["sheet"]).strip()
        return named and _holds(found, "row", wanted["row"])
    name = wanted.get("name", "")
    if kind in ("chapter", "part") and name:
        titles = (found.get("name", ""), *found.get("heading", ()))
        if any(_is_same(str(title), name) for title in titles):
            return True
    if kind == "part" and name:
        return False  # attachments are counted in more than one way
    return _holds(found, kind, wanted[kind])


def _holds(found: Mapping[str, Any], key: str, number: int) -> bool:
    first = found.get(key)
    if first is None:
        return False
    return bool(first <= number <= found.get("end", found.get(f"{key}_end", first)))


def _is_same(one: str, other: str) -> bool:
    """Whether two headings are one, apart from white space, signs, a number or a note at an end."""
    shorter, longer = sorted((_plain(one), _plain(other)), key=len)
    if len(shorter) < len(longer) * _LEAST_SHARE:
        return False
    return bool(shorter) and (longer.startswith(shorter) or longer.endswith(shorter))


def _plain(text: str) -> str:
    return re.sub(r"[\W_]+", "", unicodedata.normalize("NFKC", text)).casefold()


def scores(question: Question, results: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """All metrics of one answer; `results` as `ragx query --json` has them, best first.

    "place" asks for the locator, "answer" for the text: both of the right file's chunks.
    """
    ranks = [i for i, one in enumerate(results, 1) if one["file"] == question.file]
    rank = ranks[0] if ranks and ranks[0] <= TOP else 0
    chunks = results[rank - 1]["chunks"] if rank else ()
    # Breadcrumbs stand beside the locator where it has none of its own.
    hits = [
        any(is_place(_with_heading(one), wanted, one["text"]) for wanted in question.places)
        for one in chunks
    ]
    answer = _plain(question.answer)
    return {
        "file@1": float(rank == 1),
        "file@3": float(0 < rank <= 3),
        "file@10": float(rank > 0),
        "place@1": float(any(hits[:1])),
        "place@3": float(any(hits[:3])),
        "answer@3": float(any(answer in _plain(one["text"]) for one in chunks[:3])),
        "mrr": 1 / rank if rank else 0.0,
    }


def _with_heading(chunk: Mapping[str, Any]) -> dict[str, Any] | None:
    locator = chunk.get("locator")
    if locator is None:
        return None
    return {"heading": chunk.get("heading", ()), **locator}


def table(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Means by kind, as Markdown; each row has `kind`, `cross` and `scores`."""
    rows = list(rows)
    yield f"| kind | questions | {' | '.join(METRICS)} |"
    yield "|---|---:|" + "---:|" * len(METRICS)
    groups = {kind: [row for row in rows if row["kind"] == kind] for kind in KINDS}
    groups["across kinds"] = [row for row in rows if row["cross"]]
    groups["all"] = rows
    for name, some in groups.items():
        if some:
            means = (math.fsum(row["scores"][m] for row in some) / len(some) for m in METRICS)
            yield f"| {name} | {len(some)} | {' | '.join(f'{mean:.2f}' for mean in means)} |"


def misses(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Questions that were not answered by the right place, with what came instead."""
    for row in rows:
        if not row["scores"]["place@3"]:
            wanted = {key: value for key, value in row["wanted"].items() if key != "kind"}
            yield f"{row['id']}: {row['query']}"
            yield f"    wanted {row['file']} {wanted}; found {row['found'] or 'nothing'}"

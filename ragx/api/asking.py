"""Answers from evidence: what the chat model is shown, what it cites, and whether that still holds.

A citation names a version of a file by its content. Another version is never shown in its place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ragx.errors import ExtractionError, InputTooLong, UsageError
from ragx.query.evidence import EvidencePack, EvidenceRequest, Passage, make_pack
from ragx.query.grounding import Status, instructions, prompt, read_answer

if TYPE_CHECKING:
    from ragx.providers.base import Generator
    from ragx.query.pipeline import Answer
    from ragx.store.base import Reader

__all__ = [
    "AskRequest",
    "CitationPlace",
    "CitationState",
    "GroundedAnswer",
    "Version",
    "ask_model",
    "citation_state",
    "pack_evidence",
    "parse_citation",
]

_ID = re.compile(r"(.+):([1-9]\d{0,8})-([1-9]\d{0,8})@([0-9a-f]{8,32})", re.DOTALL)
# A server that cuts in silence reads far less than was sent, by any tokenizer's count.
_LEAST_READ = 0.5

Version = Literal["current", "replaced", "deleted"]


@dataclass(frozen=True, slots=True)
class AskRequest:
    """A question for the chat model, and the evidence that it gets.

    Args:
        max_answer_tokens: what the model may write, its thinking included.
    """

    evidence: EvidenceRequest
    max_answer_tokens: int = 2048


@dataclass(frozen=True, slots=True)
class GroundedAnswer:
    """What the model said, and what of it could be checked.

    Args:
        text: the model's own words; "" where it was not asked.
        cited: passages that it cites, in the order of their first mention.
        unverified: numbers that it cites and that are no passage of the evidence.
        misquoted: what it puts in quotation marks and no cited passage holds.
        flags: "contradictory", "cut_off", "misquoted", "uncited", "unverified".
    """

    status: Status
    text: str
    evidence: EvidencePack
    model: str
    cited: tuple[Passage, ...] = ()
    unverified: tuple[int, ...] = ()
    misquoted: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    stages: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CitationPlace:
    """Lines of one version of a file; `version` is the start of its content hash."""

    id: str
    path: str
    line_start: int
    line_end: int
    version: str


@dataclass(frozen=True, slots=True)
class CitationState:
    """What has become of a cited version, on disk and in the index.

    `text` holds the cited lines if the version on disk is the cited one and indexed, else "";
    `lines_exist` is False where that version has no such lines: nobody has cited them from it.
    """

    place: CitationPlace
    disk: Version
    index: Version
    text: str = ""
    lines_exist: bool = True

    @property
    def holds(self) -> bool:
        """Whether the cited lines are on disk as they were cited."""
        return self.disk == "current" and self.lines_exist


def pack_evidence(reader: Reader, answer: Answer, request: EvidenceRequest) -> EvidencePack:
    """Make a pack of an answer, by the shipped tokenizer.

    Args:
        reader: the snapshot that the answer came from.
    """
    from ragx.providers.counting import token_counter

    rows = {entry.path: reader.file(entry.path) for entry in answer.results}
    counter = token_counter()
    return make_pack(
        answer,
        request,
        rows={path: row for path, row in rows.items() if row is not None},
        count=counter.count,
        tokenizer=counter.name,
    )


def ask_model(
    generator: Generator,
    pack: EvidencePack,
    request: AskRequest,
    *,
    on_text: Callable[[str], None] | None = None,
) -> GroundedAnswer:
    """Ask, read the reply, and check what it cites. Without evidence the model is not asked.

    Raises:
        UsageError: code "no_passage_fits": something was found, and all of it is too long.
        InputTooLong: the model cannot read all of the evidence.
        ProviderError: the model failed, or its reply holds no text.
    """
    if not pack.passages:
        if pack.omitted:
            raise UsageError(
                next(line for line in pack.warnings if line.startswith("no passage fits")),
                hint=f"ragx ask TEXT --budget {2 * pack.budget_tokens}",
                code="no_passage_fits",
            )
        stages = {**pack.stages, "answer": "off"}
        return GroundedAnswer(
            "missing", "", pack, generator.model, stages=stages, warnings=pack.warnings
        )
    reply = generator.chat(
        instructions(pack), prompt(pack), max_tokens=request.max_answer_tokens, on_text=on_text
    )
    if reply.prompt_tokens is not None and reply.prompt_tokens < _LEAST_READ * pack.tokens:
        raise InputTooLong(
            f"the server read {reply.prompt_tokens} tokens of a prompt with {pack.tokens} tokens of"
            " evidence: it drops what is too long for the model",
            hint="serve the model with a larger context, or ask for less: --budget 1200",
        )
    checked = read_answer(reply.text, pack)
    by_number = {item.number: item for item in pack.passages}
    answered = checked.status == "answered"
    warnings = {
        "contradictory": "the model says that passages contradict each other",
        "cut_off": f"the answer breaks off after {request.max_answer_tokens} tokens",
        "misquoted": f"no cited passage holds what is quoted: {'; '.join(checked.misquoted)}",
        "uncited": "the answer cites no passage: nothing in it can be checked",
        "unverified": "not in the evidence: "
        + ", ".join(f"[{number}]" for number in checked.unverified),
    }
    found = {
        "contradictory": checked.contradictory,
        "cut_off": reply.cut_off,
        "misquoted": bool(checked.misquoted),
        "uncited": answered and not checked.cited,
        "unverified": bool(checked.unverified),
    }
    flags = tuple(name for name, is_so in found.items() if is_so)
    return GroundedAnswer(
        checked.status,
        reply.text,
        pack,
        generator.model,
        cited=tuple(by_number[number] for number in checked.cited),
        unverified=checked.unverified,
        misquoted=checked.misquoted,
        flags=flags,
        stages={**pack.stages, "answer": "used"},
        warnings=(*pack.warnings, *(warnings[name] for name in flags)),
    )


def parse_citation(name: str) -> CitationPlace:
    """Take a citation id apart.

    Raises:
        UsageError: code "bad_citation".
    """
    match = _ID.fullmatch(name)
    if match is None or int(match[2]) > int(match[3]):
        raise UsageError(
            f"{name!r} is no citation id",
            hint="it looks like docs/a.md:3-9@0f3c21ab; ragx query TEXT --budget 2400 gives some",
            code="bad_citation",
        )
    return CitationPlace(name, match[1], int(match[2]), int(match[3]), match[4])


def citation_state(root: Path, reader: Reader, place: CitationPlace) -> CitationState:
    """Compare a cited version with the file on disk and with the index.

    Text is given of indexed files alone: an id must not be a way to others.
    """
    from ragx.documents.read import read_inside
    from ragx.indexing.prepare import content_hash
    from ragx.query.context import read_current

    row = reader.file(place.path)
    index: Version = "deleted"
    if row is not None and row.n_chunks:
        index = "current" if row.content_hash.startswith(place.version) else "replaced"
    try:
        raw = read_inside(root, place.path)[0]
    except (FileNotFoundError, NotADirectoryError, ExtractionError):
        return CitationState(place, "deleted", index)
    except (OSError, ValueError):
        return CitationState(place, "replaced", index)
    if not content_hash(raw).startswith(place.version):
        return CitationState(place, "replaced", index)
    if row is not None and index == "current":
        lines = read_current(root, row, reader.chunks_of).lines
        if place.line_end > len(lines):
            return CitationState(place, "current", index, lines_exist=False)
        text = "".join(lines[place.line_start - 1 : place.line_end]).rstrip("\r\n")
        return CitationState(place, "current", index, text)
    return CitationState(place, "current", index)

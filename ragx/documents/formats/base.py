"""What every extractor gives: blocks of text in reading order, each with its place.

An extractor turns the bytes of one document into an `Extracted`. It runs in a guarded process
(`documents.guard`), so it may use libraries that crash, hang or eat memory on hostile input; what
it raises on purpose is an `ExtractionError` with one of the codes of `FAULTS`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from ragx.errors import ExtractionError

__all__ = [
    "FAULTS",
    "Block",
    "BlockKind",
    "ExtractLimits",
    "Extracted",
    "Extractor",
    "Link",
    "Place",
    "SkippedPart",
    "bounded",
    "damaged",
    "encrypted",
    "from_wire",
    "no_text",
    "to_wire",
    "too_big",
]

BlockKind = Literal["heading", "text", "list", "table", "code"]

# Codes of what is wrong with a document. The first three are a matter of policy: the file is
# skipped and a run is still a success. The others fail the file.
FAULTS = ("encrypted", "no_text", "too_big", "damaged")


@dataclass(frozen=True, slots=True)
class ExtractLimits:
    """What one document may cost.

    Args:
        max_bytes: size of the document itself.
        max_chars: characters of text taken from it; the rest is named in `skipped_parts`.
        max_blocks: blocks taken from it, likewise.
        max_expanded_bytes: what all parts of a compressed document may unpack to, together.
        timeout_s: wall clock seconds.
        max_memory_bytes: address space that extraction may take beyond what it starts with.
    """

    max_bytes: int = 32 << 20
    max_chars: int = 2_000_000
    max_blocks: int = 100_000
    max_expanded_bytes: int = 256 << 20
    timeout_s: float = 60.0
    max_memory_bytes: int = 1 << 30


@dataclass(frozen=True, slots=True)
class Place:
    """Where in its document a block stands.

    `kind` is "page", "slide", "sheet", "cell", "chapter", "part" (of a mail), or "heading" where a
    document has nothing but headings to go by. `number` counts from 1 as a reader of the document
    would count (page 1 is the first page, whatever is printed on it); 0 where nothing counts.
    `name` is what the place is called: a sheet's or chapter's title, a slide's title, a printed
    page label that differs from the number, an attachment's file name. With `by_line` each line of
    the block's text is one number further: rows of a sheet.
    """

    kind: str
    number: int = 0
    name: str = ""
    by_line: bool = False


@dataclass(frozen=True, slots=True)
class Link:
    """`text[start:end]` of a block leads to `target`, a URL or a path as written."""

    start: int
    end: int
    target: str


@dataclass(frozen=True, slots=True)
class Block:
    """A stretch of text of one kind.

    Args:
        kind: "heading" with its `level` from 1; "text" is a paragraph; "list" one item or a whole
            list; "table" has one row a line, cells divided by " | ", and its first `header_rows`
            lines name the columns; "code" is kept line by line.
        text: lines end in LF; neither blank lines nor white space at either end; never empty.
        place: where it stands; chunks do not reach over a change of `kind`, `number` or `name`
            (numbers of `by_line` places excepted).
        links: within `text`, in order.
        language: of "code", as `language_of` names it; "" if unknown.
    """

    kind: BlockKind
    text: str
    place: Place
    level: int = 0
    header_rows: int = 0
    links: tuple[Link, ...] = ()
    language: str = ""


@dataclass(frozen=True, slots=True)
class SkippedPart:
    """A part of a document that is not in its blocks.

    `what` is a short plural in plain words, the same for all documents of a format: "images",
    "footnotes", "headers and footers", "text frames", "attachments", "scanned pages", "rest".
    `count` is how many there are, 0 if that is not known; `note` may say more, such as where.
    """

    what: str
    count: int = 0
    note: str = ""


@dataclass(frozen=True, slots=True)
class Extracted:
    """The text of one document.

    `date` is YYYY-MM-DD where the document itself says when it was last changed or sent, else "";
    `tags` are its keywords. `blocks` may be empty only if a document is truly empty: one whose
    text cannot be had (scanned pages) raises `no_text` instead.
    """

    blocks: tuple[Block, ...]
    title: str = ""
    date: str = ""
    tags: tuple[str, ...] = ()
    skipped_parts: tuple[SkippedPart, ...] = ()


class Extractor(Protocol):
    """What reads one format. Plug-ins give an object of this kind as entry point `ragx.extractors`.

    Args:
        name: of the format, a lower-case word: "pdf".
        version: any text; a document is extracted again once it differs.
        extensions: lower-case, without a dot, of the files that it is for.
    """

    name: str
    version: str
    extensions: tuple[str, ...]

    def extract(self, raw: bytes, limits: ExtractLimits) -> Extracted:
        """Read a document.

        Raises:
            ExtractionError: by `encrypted`, `no_text`, `too_big` or `damaged`. Any other exception
                counts as `damaged`.
        """
        ...


def encrypted(what: str = "it is encrypted") -> ExtractionError:
    """A document that opens with a password only."""
    return ExtractionError(f"{what}; an unprotected copy can be indexed", code="encrypted")


def no_text(why: str) -> ExtractionError:
    """A document that holds no text that can be read: `why` says what it holds instead."""
    return ExtractionError(why, code="no_text")


def too_big(why: str) -> ExtractionError:
    """A document that unpacks to more than the limits allow."""
    return ExtractionError(why, code="too_big")


def damaged(why: str) -> ExtractionError:
    """A document that is broken, cut off, or not what it claims to be."""
    return ExtractionError(why, code="damaged")


def bounded(
    blocks: Iterable[Block], limits: ExtractLimits
) -> tuple[list[Block], SkippedPart | None]:
    """Take blocks until a limit is reached; a last part says where the rest begins.

    Pulls no more blocks than it takes, plus one. A block that crosses `max_chars` is not taken.
    """
    taken: list[Block] = []
    n_chars = 0
    for block in blocks:
        n_chars += len(block.text)
        if n_chars > limits.max_chars or len(taken) >= limits.max_blocks:
            over = (
                f"{limits.max_chars:,} characters"
                if n_chars > limits.max_chars
                else f"{limits.max_blocks:,} blocks"
            )
            return taken, SkippedPart("rest", 0, f"all from {_spoken(block.place)} on: over {over}")
        taken.append(block)
    return taken, None


def _spoken(place: Place) -> str:
    return " ".join(filter(None, (place.kind, str(place.number or ""), place.name)))


def to_wire(extracted: Extracted) -> dict[str, Any]:
    """JSON-ready form, as it crosses the process border and lies in the index."""
    return {
        "title": extracted.title,
        "date": extracted.date,
        "tags": list(extracted.tags),
        "skipped_parts": [[part.what, part.count, part.note] for part in extracted.skipped_parts],
        "places": [
            [place.kind, place.number, place.name, place.by_line]
            for place in dict.fromkeys(block.place for block in extracted.blocks)
        ],
        "blocks": list(_wire_blocks(extracted.blocks)),
    }


def _wire_blocks(blocks: Iterable[Block]) -> Iterator[list[Any]]:
    numbers: dict[Place, int] = {}
    for block in blocks:
        number = numbers.setdefault(block.place, len(numbers))
        links = [[link.start, link.end, link.target] for link in block.links]
        yield [
            block.kind, block.text, number, block.level, block.header_rows, links, block.language
        ]  # fmt: skip


def from_wire(data: dict[str, Any]) -> Extracted:
    """The inverse of `to_wire`.

    Raises:
        KeyError, TypeError, ValueError, IndexError: it is not what `to_wire` gives.
    """
    places = [Place(*place) for place in data["places"]]
    return Extracted(
        blocks=tuple(
            Block(
                kind,
                text,
                places[place],
                level,
                header,
                tuple(Link(*link) for link in links),
                language,
            )
            for kind, text, place, level, header, links, language in data["blocks"]
        ),
        title=data["title"],
        date=data["date"],
        tags=tuple(data["tags"]),
        skipped_parts=tuple(SkippedPart(*part) for part in data["skipped_parts"]),
    )

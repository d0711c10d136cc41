"""The parts of a mail: which is its text, which attachments are read, which are only named."""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from email.errors import CloseBoundaryNotFoundDefect
from email.message import Message

from ragx.algo.chunking.languages import kind_of, language_of
from ragx.documents.decode import SNIFF_BYTES, looks_binary
from ragx.documents.formats.base import Block, ExtractLimits, Place, SkippedPart
from ragx.documents.formats.mail.headers import (
    charset_of,
    decoded_text,
    file_name,
    header,
    parameter,
    payload,
)
from ragx.documents.formats.mail.text import flowed, text_blocks
from ragx.documents.formats.tidy import clean, strip_markup
from ragx.errors import ExtractionError

__all__ = ["Parts"]

_SHOWN = ("From", "To", "Cc", "Subject", "Date")
_MAX_SHOWN = 1_000
_MAX_DEPTH = 5
_MAX_ATTACHMENT = 200_000
_MAX_NAMES = 300
_TEXT_EXTENSIONS = (".txt", ".log", ".patch", ".diff", ".text", ".asc", ".ics", ".vcf")
_HTML_ONLY = 200  # shorter plain texts may merely say that there is an HTML one
_CHANGES = re.compile(r"(?m)^(?:@@ -\d[\d,]* \+\d|diff --?\w|Index: \S)")
_PGP = re.compile(r"\s*-----BEGIN PGP MESSAGE-----.*", re.S)
# Clear text in a PGP signature: what stands before it, and the signature after it.
_SIGNED = re.compile(r"(?m)^-----BEGIN PGP SIGNED MESSAGE-----\n(?:[A-Z][\w-]*: [^\n]*\n)*")
_SIGNATURE = re.compile(
    r"(?m)^-----BEGIN PGP SIGNATURE-----\n(?:[^-\n][^\n]*\n|\n)*(?:-----END .*)?"
)
_DASHES = re.compile(r"(?m)^- -")
_SIGNATURES = frozenset(
    ("application/pgp-signature", "application/pkcs7-signature", "application/x-pkcs7-signature")
)
_SMIME = frozenset(("application/pkcs7-mime", "application/x-pkcs7-mime"))
_MESSAGES = frozenset(("message/rfc822", "message/global", "message/news"))
_REPORTS = frozenset(("message/delivery-status", "message/disposition-notification"))


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A message or an attachment that is to be read; `depth` counts the messages around it."""

    part: Message
    depth: int
    name: str
    is_message: bool


class Parts:
    """One pass over a mail, which counts what it leaves out."""

    def __init__(self, limits: ExtractLimits) -> None:
        self.has_text = False
        self.n_encrypted = 0
        self._limits = limits
        self._number = 0
        self._attachments: list[str] = []
        self._left_out: Counter[str] = Counter()
        self._is_cut = False

    def blocks(self, message: Message) -> Iterator[Block]:
        """Blocks of the message, its text attachments, and the messages inside it, in order."""
        waiting = [_Waiting(message, 0, "message", True)]
        while waiting:
            item = waiting.pop()
            self._number += 1
            place = Place("part", self._number, item.name)
            if item.is_message:
                attached: list[_Waiting] = []
                yield from self._message(item, place, attached)
                waiting += reversed(attached)
            else:
                yield from self._attachment(item.part, place)

    def skipped(self) -> list[SkippedPart]:
        """What is not in the blocks."""
        names = ", ".join(filter(None, self._attachments))
        if len(names) > _MAX_NAMES:
            names = f"{names[:_MAX_NAMES].rpartition(', ')[0]}, ..."
        found = [SkippedPart("attachments", len(self._attachments), names)]
        found = found if self._attachments else []
        found += [SkippedPart(what, n) for what, n in sorted(self._left_out.items()) if n]
        if self.n_encrypted:
            found.append(SkippedPart("encrypted parts", self.n_encrypted))
        if self._is_cut:
            found.append(SkippedPart("rest", 0, "the file is cut off"))
        return found

    def _message(self, item: _Waiting, place: Place, attached: list[_Waiting]) -> Iterator[Block]:
        shown = ((name, header(item.part, name.lower())[:_MAX_SHOWN]) for name in _SHOWN)
        lines = [f"{name}: {value}" for name, value in shown if value]
        if lines:
            yield Block("text", "\n".join(lines), place)
        for part in self._leaves(item.part):
            kind, content_type = part.get_content_maintype(), part.get_content_type()
            if kind == "image" and part.get_content_disposition() != "attachment":
                self._left_out["images"] += 1
            elif content_type in _SIGNATURES:
                self._left_out["signatures"] += 1
            elif content_type in _SMIME:
                self.n_encrypted += 1
            elif content_type in _REPORTS:
                yield from self._texts(_report(part), place)
            elif part is not item.part and (kind == "message" or _is_attached(part)):
                self._attach(part, item.depth, attached)
            elif content_type == "text/html":
                yield from self._html(part, place)
            elif kind in ("text", "multipart"):  # a multipart without parts is text
                yield from self._plain(part, place)
            else:
                self._attach(part, item.depth, attached)

    def _leaves(self, message: Message) -> Iterator[Message]:
        """Parts that hold something; of alternatives one, the plainest that says enough."""
        waiting = [(message, False)]
        while waiting:
            part, only_attached = waiting.pop()
            for defect in part.defects:
                self._is_cut |= isinstance(defect, CloseBoundaryNotFoundDefect)
            children = part.get_payload()
            if part.get_content_maintype() != "multipart" or not isinstance(children, list):
                if not only_attached or _is_attached(part):
                    yield part
                continue
            if part.get_content_type() == "multipart/encrypted":
                self.n_encrypted += 1
                continue
            inner = [child for child in children if isinstance(child, Message)]
            is_choice = part.get_content_type() == "multipart/alternative" and inner
            best = _best(inner) if is_choice else None
            waiting += [
                (child, only_attached or (best is not None and child is not best))
                for child in reversed(inner)
            ]

    def _attach(self, part: Message, depth: int, attached: list[_Waiting]) -> None:
        """Note an attachment: to be read, or to be named as left out."""
        name = file_name(part)
        if part.get_content_type() in _MESSAGES:
            inner = part.get_payload()
            inner = inner[0] if isinstance(inner, list) and inner else None
            if not isinstance(inner, Message) or depth >= _MAX_DEPTH:
                self._left_out["messages inside messages"] += 1
            else:
                name = name or header(inner, "subject")[:100] or "message"
                attached.append(_Waiting(inner, depth + 1, name, True))
        elif _is_text(part, name):
            attached.append(_Waiting(part, depth, name or "attachment", False))
        else:
            self._attachments.append(name or part.get_content_type())

    def _attachment(self, part: Message, place: Place) -> Iterator[Block]:
        language = language_of(place.name)
        if part.get_content_type() == "text/html" or language == "html":
            yield from self._html(part, place)
            return
        text = clean(decoded_text(payload(part), charset_of(part)))
        self._left_out["characters of attachments"] += max(0, len(text) - _MAX_ATTACHMENT)
        text = text[:_MAX_ATTACHMENT]
        if kind_of(language) == "docs" and not _CHANGES.search(text):
            yield from self._texts(text, place)
        elif text.strip():
            self.has_text = True
            yield Block(
                "code", text.strip(), place, language="" if language == "text" else language
            )

    def _plain(self, part: Message, place: Place) -> Iterator[Block]:
        text = decoded_text(payload(part), charset_of(part)).replace("\r\n", "\n")
        if _PGP.fullmatch(text):
            self.n_encrypted += 1
            return
        if parameter(part, "format").lower() == "flowed":
            text = flowed(text, delete_space=parameter(part, "delsp").lower() == "yes")
        text, n_signed = _SIGNED.subn("", text)
        if n_signed:
            text, n_signatures = _SIGNATURE.subn("", text)
            text = _DASHES.sub("-", text)
            self._left_out["signatures"] += n_signatures
        yield from self._texts(text, place)

    def _texts(self, text: str, place: Place) -> Iterator[Block]:
        for block in text_blocks(text, place):
            self.has_text = True
            yield block

    def _html(self, part: Message, place: Place) -> Iterator[Block]:
        """Blocks of an HTML text, by the reader of HTML files or else by a plain strip."""
        text = decoded_text(payload(part), charset_of(part))
        try:
            from ragx.documents.formats.markup.html import extract

            # The mark settles the encoding, whatever the page itself still says.
            found = extract(BOM_UTF8 + text.encode("utf-8", "replace"), self._limits)
        except ImportError:
            self._left_out["markup of HTML"] += 1
            yield from self._texts(strip_markup(text), place)
            return
        except ExtractionError:
            yield from self._texts(strip_markup(text), place)
            return
        for skipped in found.skipped_parts:
            if skipped.what.startswith("images"):
                self._left_out["images"] += skipped.count
        for block in found.blocks:
            self.has_text = True
            yield replace(block, place=place)


def _best(children: Sequence[Message]) -> Message:
    """Of several forms of one text: plain, unless it merely points to the one in HTML."""
    plain = [part for part in children if part.get_content_type() == "text/plain"]
    others = [part for part in children if part.get_content_maintype() in ("text", "multipart")]
    others = [part for part in others if part not in plain]
    others = [part for part in others if part.get_content_type() != "text/calendar"] or others
    if plain:
        size = len(payload(plain[0]).strip())
        if size >= _HTML_ONLY or not others or (size and _size_of(others[-1]) < 4 * size):
            return plain[0]
    return others[-1] if others else children[0]


def _size_of(part: Message) -> int:
    """Characters of text in an HTML alternative."""
    for _ in range(_MAX_DEPTH):
        inner = part.get_payload()
        if not isinstance(inner, list) or not inner or not isinstance(inner[0], Message):
            break
        part = inner[0]
    return len(strip_markup(decoded_text(payload(part), charset_of(part))))


def _is_attached(part: Message) -> bool:
    return part.get_content_disposition() == "attachment" or bool(file_name(part))


def _is_text(part: Message, name: str) -> bool:
    """Whether it is a text, by its type or its name and by its bytes."""
    known = language_of(name) != "text" or name.lower().endswith(_TEXT_EXTENSIONS)
    if part.get_content_maintype() != "text" and not known:
        return False
    # UTF-16 would be text as well, but its charset must then be said.
    return not looks_binary(payload(part)[:SNIFF_BYTES])


def _report(part: Message) -> str:
    """What a mail server says about a delivery: groups of headers."""
    groups = part.get_payload()
    if not isinstance(groups, list):
        return ""
    return "\n\n".join(
        "\n".join(f"{name}: {' '.join(str(value).split())}" for name, value in group.raw_items())
        for group in groups
        if isinstance(group, Message)
    )

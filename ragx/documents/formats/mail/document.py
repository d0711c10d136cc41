"""Mail messages (EML): the message first, then text attachments and forwarded messages."""

from __future__ import annotations

import re
from email import message_from_bytes
from email.message import Message

from ragx.documents.formats.base import (
    Extracted,
    ExtractLimits,
    bounded,
    damaged,
    encrypted,
)
from ragx.documents.formats.mail.headers import MailPart, header, mail_date
from ragx.documents.formats.mail.parts import Parts

__all__ = ["extract"]

_STRUCTURED = re.compile(rb"(?im)^content-(?:type|disposition):[^\n]*(?:\n[ \t][^\n]*)*")
_MAX_STRUCTURED = 50_000
_BEFORE = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:>?From [^\r\n]*\r?\n)?")
# One of these stands in every mail; a text that has none but others merely looks like one.
_NEEDED = ("from", "to", "subject", "date", "message-id", "received", "return-path", "sender",
           "cc", "bcc", "reply-to", "delivered-to", "mime-version", "content-type")  # fmt: skip


def extract(raw: bytes, limits: ExtractLimits) -> Extracted:
    """Read a mail; part 1 is the message, attachments count on from there.

    A file without any content gives no blocks.

    Raises:
        ExtractionError: it has no header, is encrypted, or is nested too deep.
    """
    if not raw.strip():
        return Extracted(())
    before = _BEFORE.match(raw)
    start = before.end() if before else 0
    # The standard library takes a time that grows with the square of their length to read these.
    for found in _STRUCTURED.finditer(raw):
        if len(found[0]) > _MAX_STRUCTURED:
            raise damaged(f"it has a header of {len(found[0]):,} bytes")
    try:
        message = message_from_bytes(raw[start:], _class=MailPart)
    except RecursionError as exc:
        raise damaged("its parts are nested too deep") from exc
    if not any(name.lower() in _NEEDED for name in message.keys()):  # noqa: SIM118 - no dict
        raise damaged("it is not a mail: no header")
    parts = Parts(limits)
    blocks, rest = bounded(parts.blocks(message), limits)
    if parts.n_encrypted and not parts.has_text:
        raise encrypted("its text is encrypted")
    return Extracted(
        blocks=tuple(blocks),
        title=header(message, "subject"),
        date=mail_date(message),
        tags=_keywords(message),
        skipped_parts=(*parts.skipped(), *([rest] if rest else ())),
    )


def _keywords(message: Message) -> tuple[str, ...]:
    words = (word.strip() for word in header(message, "keywords").split(","))
    return tuple(dict.fromkeys(filter(None, words)))

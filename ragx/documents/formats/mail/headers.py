"""Headers and encodings of mails, read as what their writers meant.

Only the standard library's parser of the whole mail is used. Its reader of headers parses each by
grammar, which takes longer than all else here together and gives no better text.
"""

from __future__ import annotations

import base64
import binascii
import re
from email.message import Message
from email.utils import parsedate_to_datetime
from typing import Any

from ragx.documents.formats.charsets import meant
from ragx.documents.formats.tidy import one_line

__all__ = [
    "MailPart",
    "charset_of",
    "decoded_text",
    "file_name",
    "header",
    "mail_date",
    "parameter",
    "payload",
]

_WORD = re.compile(r"=\?([^?\s]{1,80})\?([bBqQ])\?([^?\n]*)\?=")
_BETWEEN_WORDS = re.compile(r"(\?=)\s+(?==\?[^?\s]{1,80}\?[bBqQ]\?)")
_ESCAPED = re.compile(rb"=([0-9A-Fa-f]{2})")
_MAX_HEADER = 20_000
_WHOLE = 4  # characters of UTF-8 for each broken byte that make it likely


class MailPart(Message):
    """A message or part of one, of whose charsets the standard library never hears.

    It would decode by whatever codec is named there, before it is asked for any text.
    """

    def get_param(
        self, param: str, failobj: Any = None, header: str = "content-type", unquote: bool = True
    ) -> Any:
        """As the library has it, but every charset is ASCII: `charset_of` tells the real one."""
        if param.lower() == "charset":
            return "ascii"
        return super().get_param(param, failobj, header, unquote)


def header(message: Message, name: str) -> str:
    """A header's text on one line, with encoded words read; "" if there is none."""
    for key, value in message.raw_items():
        if key.lower() == name:
            return _header_text(str(value))
    return ""


def _header_text(value: str) -> str:
    value = value[:_MAX_HEADER]
    if not value.isascii():  # raw bytes, which no header may hold and many do
        value = decoded_text(value.encode("utf-8", "surrogateescape"), "")
    value = re.sub(r"\r?\n(?=[ \t])", "", value)
    value = _BETWEEN_WORDS.sub(r"\1", value)
    pieces: list[str] = []
    at = 0
    pending = b""
    charset = ""
    for word in _WORD.finditer(value):
        # Neighbours of one charset may share a character that was cut in two.
        if word.start() > at or word[1].lower() != charset:
            pieces += (decoded_text(pending, charset), value[at : word.start()])
            pending = b""
        charset = word[1].lower()
        pending += _word_bytes(word[2], word[3])
        at = word.end()
    pieces += (decoded_text(pending, charset), value[at:])
    return one_line("".join(pieces))


def _word_bytes(form: str, text: str) -> bytes:
    data = text.encode("utf-8", "replace")
    if form in "qQ":
        return _ESCAPED.sub(lambda found: bytes((int(found[1], 16),)), data.replace(b"_", b" "))
    data = re.sub(rb"[^A-Za-z0-9+/]", b"", data)
    data = data[: len(data) - (len(data) % 4 == 1)]
    return base64.b64decode(data + b"=" * (-len(data) % 4))


def decoded_text(data: bytes, charset: str) -> str:
    """Text in the charset that is claimed, or else in the one that it seems to be in."""
    claimed = meant(charset.partition("*")[0])
    for codec in dict.fromkeys((claimed, "utf-8")):
        if codec:
            try:
                return data.decode(codec)
            except UnicodeError:
                continue
    if claimed and claimed not in ("utf-8", "ascii"):
        return data.decode(claimed, "replace")
    text = data.decode("utf-8", "replace")
    n_broken = text.count("\ufffd")
    n_whole = sum(char > "\x7f" for char in text) - n_broken
    # A stray byte in UTF-8, or else what Windows makes of bytes.
    return text if n_whole > _WHOLE * n_broken else data.decode("cp1252", "replace")


def charset_of(part: Message) -> str:
    """The charset that a part claims, whatever that is; "" if it claims none."""
    return parameter(part, "charset")


def parameter(part: Message, name: str, within: str = "content-type") -> str:
    """A parameter of a header, decoded; "" if there is none."""
    try:
        value = Message.get_param(part, name, "", within)  # as it stands there, charsets too
    except (ValueError, TypeError, LookupError):
        return ""
    if isinstance(value, tuple):  # charset, language, and bytes as the characters of their numbers
        return decoded_text(value[2].encode("latin-1", "replace"), value[0] or "")
    return value if isinstance(value, str) else ""


def payload(part: Message) -> bytes:
    """A part's bytes; what is broken in their encoding is left out."""
    try:
        data = part.get_payload(decode=True)
    except (binascii.Error, ValueError, UnicodeError, LookupError):
        data = None
        text = part.get_payload()
        if isinstance(text, str):
            return text.encode("utf-8", "surrogateescape")
    return data if isinstance(data, bytes) else b""


def file_name(part: Message) -> str:
    """The name that an attachment is to be saved by, without directories; "" if there is none."""
    name = parameter(part, "filename", "content-disposition") or parameter(part, "name")
    name = _header_text(name)
    return name.replace("\\", "/").rsplit("/", 1)[-1][:200]


def mail_date(message: Message) -> str:
    """The day that it was sent, where its sender was; "" if there is no valid one."""
    text = header(message, "date")
    try:
        sent = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return ""
    return sent.date().isoformat() if 1900 <= sent.year < 2100 else ""

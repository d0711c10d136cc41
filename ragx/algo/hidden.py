"""Characters that a person does not see and a model reads, or that turn what a person sees.

Text smuggled that way is a known carrier of instructions (Unicode tags, bidirectional controls:
Boucher and Anderson, "Trojan Source", 2021). Marks that writing needs are left alone: joiners
between letters of scripts that use them, direction marks beside them, variation selectors of
emoji.
"""

from __future__ import annotations

import re
import unicodedata

__all__ = ["hidden_kinds", "one_visible_line", "plain_form", "visible"]

_CONTROL = r"\x00-\x08\x0b\x0e-\x1f\x7f-\x9f"  # a form feed parts pages
_BIDI = r"\u202a-\u202e\u2066-\u2069"
_TAGS = r"\U000e0000-\U000e007f\U000e0100-\U000e01ef"
_INVISIBLE = r"\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b\u2060-\u2065\u206a-\u206f"
_FILLERS = r"\u3164\ufeff\uffa0\ufff0-\ufffb"
_KINDS = {
    "bidi": re.compile(f"[{_BIDI}]"),
    "control": re.compile(f"[{_CONTROL}]"),
    # Joiners and marks count only beside ASCII, where nothing needs them.
    "invisible": re.compile(
        f"[{_INVISIBLE}{_FILLERS}]|(?<=[!-~])[\u061c\u200c-\u200f]|[\u061c\u200c-\u200f](?=[!-~])"
    ),
    "tags": re.compile(f"[{_TAGS}]"),
}
# Tokenizers may drop them uncounted, so that a run of them is shown as one, too.
_SHOWN_AS_MARK = re.compile(
    f"[{_CONTROL}\x0c{_BIDI}{_TAGS}]+|[{_INVISIBLE}{_FILLERS}\u061c\u200c-\u200f]{{4,}}"
)
_SURROGATE = re.compile("[\ud800-\udfff]")
_UNSEEN = re.compile(f"[{_CONTROL}{_BIDI}{_TAGS}{_INVISIBLE}{_FILLERS}\u061c\u200c-\u200f]")
_NO_LINE = re.compile(rf"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff{_BIDI}{_TAGS}]")
_LINE_ENDS = re.compile(r"\r\n|[\r\u2028\u2029\u0085]")


def hidden_kinds(text: str) -> tuple[str, ...]:
    """Which kinds of such characters a text holds, sorted: bidi, control, invisible, tags."""
    if text.isascii() and text.isprintable():
        return ()
    return tuple(kind for kind, pattern in _KINDS.items() if pattern.search(text))


def visible(text: str) -> str:
    """Text as it may be shown: line ends as line feeds, runs of what is hidden as one U+FFFD."""
    return _SURROGATE.sub("\ufffd", _SHOWN_AS_MARK.sub("\ufffd", _LINE_ENDS.sub("\n", text)))


def one_visible_line(text: str) -> str:
    """Text as one line: line ends, controls and tags show as escapes."""
    return _NO_LINE.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def plain_form(text: str) -> str:
    """What a text looks like: compatibility forms as plain ones, nothing unseen, lower case."""
    if text.isascii():
        return _UNSEEN.sub("", text).lower()
    return unicodedata.normalize("NFKC", _UNSEEN.sub("", text)).lower()

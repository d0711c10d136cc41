"""The syntax of RTF: groups, control words, code pages; text goes to a `Body`.

Nothing here recurses, and what is skipped is passed over at the speed of one pattern.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from copy import copy

from ragx.documents.formats.base import damaged
from ragx.documents.formats.rtf.body import Body, ParagraphStyle
from ragx.documents.formats.rtf.tables import Fonts, Info, Styles
from ragx.documents.formats.rtf.text import SYMBOLS, symbol_text

__all__ = ["Groups"]

_TOKEN = re.compile(
    rb"\\(?:([A-Za-z]{1,32})(-?\d{1,20})? ?|'([0-9A-Fa-f]{2})|([^A-Za-z]))"
    rb"|([{}])|([^\\{}\r\n]+)|[\r\n]+",
    re.S,
)
_SKIPPED = re.compile(rb"\\bin(\d{1,20}) ?|\\[^A-Za-z]|[{}]", re.S)
_ARGUMENT = re.compile(r'\\[A-Za-z]|"[^"]*"|[^\s"]+')
# Groups that hold no text, and by what name those are counted that a reader would see.
_NO_TEXT = frozenset(
    "colortbl filetbl sp shprslt nonesttables nonshppict xe rxe tc tcn template pntxta pntxtb"
    " ftnsep ftnsepc ftncn aftnsep aftnsepc aftncn objdata objclass objname bkmkstart bkmkend"
    " listtable listoverridetable rsidtbl revtbl themedata".split()
)
_COUNTED = {
    **dict.fromkeys(("pict",), "images"),
    **dict.fromkeys(
        "header headerl headerr headerf footer footerl footerr footerf".split(),
        "headers and footers",
    ),
    "annotation": "comments",
    "moMath": "formulas",
}
# Groups that old readers are told to skip, by a star, and that hold text all the same.
_STARRED = frozenset(
    "shpinst shppict shptxt do dptxbxtext fldinst footnote ud annotation moMath pict listtext"
    " pntext title subject keywords header footer headerl headerr headerf footerl footerr"
    " footerf".split()
)
_INFO = frozenset(("title", "keywords"))
_NO_INFO = frozenset(
    "subject author operator doccomm company manager category comment hlinkbase".split()
)
_MAX_DEPTH = 150_000
_MAX_INFO = 10_000
_SIZE = 24  # half points, of text that does not say


class _State:
    """What a group inherits from the group around it."""

    __slots__ = ("bold", "font", "hidden", "indent", "level", "place", "silent", "sink", "size",
                 "style", "table", "uc")  # fmt: skip

    def __init__(self) -> None:
        self.uc = 1
        self.font = -1
        self.hidden = False
        self.silent = False
        self.place = ""  # "fonttbl", "stylesheet", "info" or "" for the text
        self.sink: list[str] | None = None
        self.style = 0
        self.level = -1
        self.table = False
        self.indent = 0
        self.bold = False
        self.size = _SIZE


class Groups:
    """One pass over the bytes from `start` on."""

    def __init__(self, raw: bytes, start: int, body: Body) -> None:
        self.raw = raw
        self.at = start
        self.body = body
        self.info = Info()
        self.fonts = Fonts()
        self.styles = Styles()
        self.left_out: Counter[str] = Counter()
        self.is_cut = False
        self._state = _State()
        self._shared = True  # whether a group around uses the same state
        self._stack: list[_State] = []
        self._enders: dict[int, list[Callable[[], None]]] = {}
        self._pending = bytearray()
        self._to_skip = 0
        self._starred = False
        self._field: list[str] = []
        self._is_header = False
        self._n_notes = 0

    def read(self) -> None:
        """Read up to the end of the outermost group, or until the body is full."""
        raw, end = self.raw, len(self.raw)
        while self.at < end and not self.body.is_full:
            token = _TOKEN.match(raw, self.at)
            if token is None:  # a lone backslash ends the file
                break
            self.at = token.end()
            word, number, code, symbol, brace, text = token.groups()
            if text is not None:
                self._literal(text)
            elif code is not None:
                self._literal(bytes((int(code, 16),)))
            elif word is not None:
                self._word(word.decode("ascii"), int(number) if number else None)
            elif brace is not None:
                self._brace(brace)
                if not self._stack:
                    break
            elif symbol is not None:
                self._symbol(symbol.decode("latin-1"))
        self._flush()
        self.is_cut = bool(self._stack)

    def _own(self) -> _State:
        """The group's own state, to be changed."""
        if self._shared:
            self._state = copy(self._state)
            self._shared = False
        return self._state

    def _brace(self, brace: bytes) -> None:
        self._flush()
        self._to_skip = 0
        self._starred = False
        if brace == b"{":
            if len(self._stack) >= _MAX_DEPTH:
                raise damaged(f"its groups are nested more than {_MAX_DEPTH:,} deep")
            self._stack.append(self._state)
            self._shared = True
            if self._state.place == "stylesheet":
                self.styles.current = 0
            return
        for end in self._enders.pop(len(self._stack), ()):
            end()
        self._state = self._stack.pop()
        # The outer group may have shared it with the groups around: a copy too many does no harm.
        self._shared = True

    def _literal(self, data: bytes) -> None:
        if self._to_skip:
            n = min(self._to_skip, len(data))
            self._to_skip -= n
            data = data[n:]
        self._pending += data

    def _flush(self) -> None:
        """Decode what has come in since the last control word: characters of several bytes too."""
        if not self._pending:
            return
        data = bytes(self._pending)
        self._pending.clear()
        self._emit(self.fonts.decode(data, self._state.font))

    def _emit(self, text: str) -> None:
        state = self._state
        if state.sink is not None:
            if len(state.sink) < _MAX_INFO:
                state.sink.append(text)
        elif state.place == "fonttbl":
            self.fonts.add_name(text)
        elif state.place == "stylesheet":
            self.styles.add_name(text)
        elif not (state.place or state.silent or state.hidden):
            self.body.text(text, state.size, is_bold=state.bold)

    def _symbol(self, symbol: str) -> None:
        self._flush()
        self._to_skip = 0
        if symbol == "*":
            self._starred = True
        elif symbol in SYMBOLS:
            self._emit(SYMBOLS[symbol])
        elif symbol in "\r\n":
            self._paragraph()

    def _word(self, word: str, number: int | None) -> None:
        self._flush()
        self._to_skip = 0
        starred, self._starred = self._starred, False
        if word == "u":
            self._unicode(number)
        elif word == "bin":
            self._binary(number)
        elif word in _COUNTED:
            self.left_out[_COUNTED[word]] += 1
            self._skip_group()
        elif word in _NO_TEXT or (starred and word not in _STARRED):
            self._skip_group()
        elif word in SYMBOLS:
            self._emit(SYMBOLS[word])
        elif word in _GROUPS:
            _GROUPS[word](self)
        elif word in _MARKS:
            _MARKS[word](self)
        elif word in _VALUES:
            _VALUES[word](self, number or 0)
        elif word in _SWITCHES:
            _SWITCHES[word](self, 1 if number is None else number)
        elif self._state.place == "info":
            self._info_word(word, number)

    def _unicode(self, number: int | None) -> None:
        code = number or 0
        if -0x8000 <= code < 0:
            code += 0x10000
        if 0 < code <= 0x10FFFF:
            private = 0xF000 <= code <= 0xF0FF
            self._emit(symbol_text(chr(code), greek=False) if private else chr(code))
        self._to_skip = self._state.uc

    def _binary(self, number: int | None) -> None:
        # A number that leads beyond the end is a lie: then the bytes are read as RTF.
        if number and 0 < number <= len(self.raw) - self.at:
            self.at += number

    def _skip_group(self) -> None:
        """Go to the brace that ends this group."""
        depth = 0
        while True:
            found = _SKIPPED.search(self.raw, self.at)
            if found is None:
                self.at = len(self.raw)
                return
            token = found[0]
            if token == b"{":
                depth += 1
            elif token == b"}":
                if not depth:
                    self.at = found.start()
                    return
                depth -= 1
            self.at = found.end()
            if found[1]:
                self._binary(int(found[1]))

    def _at_end(self, action: Callable[[], None]) -> None:
        """Do something where the present group ends."""
        self._enders.setdefault(len(self._stack), []).append(action)

    # Groups that mean something.

    def _table_of(self, place: str) -> None:
        self._own().place = place

    def _info_word(self, word: str, number: int | None) -> None:
        if word in _INFO:
            sink: list[str] = []
            self._own().sink = sink
            self._at_end(lambda: setattr(self.info, word, "".join(sink)[:_MAX_INFO]))
        elif word.endswith("tim"):
            self.info.start_date(word)
        elif word in ("yr", "mo", "dy"):
            self.info.set_part(word, number or 0)
        elif word in _NO_INFO:
            self._skip_group()

    def _start_aside(self) -> None:
        state = self._own()
        if state.silent or state.hidden or state.place:
            self._skip_group()
            return
        if self.body.in_aside:  # a note in a frame is part of it
            self.body.paragraph(ParagraphStyle())
            return
        state.table = False
        state.indent = 0
        state.level = -1
        state.style = 0
        self.body.aside()
        self._at_end(self.body.aside_end)

    def _start_field(self) -> None:
        outer, self._field = self._field, []

        def restore() -> None:
            self._field = outer

        self._at_end(restore)

    def _start_instruction(self) -> None:
        self._own().sink = self._field

    def _start_result(self) -> None:
        instruction = "".join(self._field)
        if instruction.lstrip().startswith("TOC"):
            self.left_out["tables of contents"] += 1
            self._skip_group()
            return
        state = self._state
        if state.sink is not None or state.silent or state.hidden or state.place:
            return
        target = _hyperlink(instruction)
        if target:
            self.body.link(target)
            self._at_end(self.body.link_end)

    def _start_marker(self) -> None:
        if self._state.sink is None and not self._state.silent and not self._state.hidden:
            sink: list[str] = []
            self._own().sink = sink
            self._at_end(lambda: self.body.marker("".join(sink)))

    def _start_twin(self) -> None:
        self._own().silent = True

    def _start_unicode_twin(self) -> None:
        self._own().silent = False

    def _count_object(self) -> None:
        self.left_out["embedded objects"] += 1

    # Marks between texts.

    def _paragraph(self) -> None:
        state = self._state
        if state.sink is not None:
            state.sink.append(" ")
        elif not state.place and not state.silent:
            self.body.paragraph(
                ParagraphStyle(
                    self.styles.heading_level(state.style, state.level), state.table, state.indent
                )
            )

    def _cell(self) -> None:
        if not self._state.place:
            self.body.cell()

    def _row(self) -> None:
        if not self._state.place:
            self.body.row(is_header=self._is_header)

    def _row_defaults(self) -> None:
        self._is_header = False

    def _header_row(self) -> None:
        self._is_header = True

    def _note_number(self) -> None:
        # Before a note it counts on; inside one it repeats the number.
        if not self.body.in_aside:
            self._n_notes += 1
        self._emit(f"[{self._n_notes}]")

    def _paragraph_defaults(self) -> None:
        state = self._own()
        state.style, state.level, state.table, state.indent = 0, -1, False, 0

    def _character_defaults(self) -> None:
        state = self._own()
        state.font, state.hidden, state.bold, state.size = -1, False, False, _SIZE

    def _in_table(self) -> None:
        self._own().table = True

    # Values.

    def _set_font(self, number: int) -> None:
        if self._state.place == "fonttbl":
            self.fonts.current = number
        else:
            self._own().font = number

    def _set_charset(self, number: int) -> None:
        if self._state.place == "fonttbl":
            self.fonts.set_charset(number)

    def _set_font_page(self, number: int) -> None:
        if self._state.place == "fonttbl":
            self.fonts.set_page(number)

    def _set_code_page(self, number: int) -> None:
        self.fonts.set_document_page(number)

    def _set_default_font(self, number: int) -> None:
        self.fonts.default = number

    def _set_style(self, number: int) -> None:
        if self._state.place == "stylesheet":
            self.styles.current = number
        else:
            self._own().style = number

    def _set_base(self, number: int) -> None:
        if self._state.place == "stylesheet":
            self.styles.set_base(number)

    def _set_level(self, number: int) -> None:
        if self._state.place == "stylesheet":
            self.styles.set_level(number)
        else:
            self._own().level = number

    def _set_indent(self, number: int) -> None:
        if not self._state.place:
            self._own().indent = max(number, 0)

    def _set_size(self, number: int) -> None:
        self._own().size = number

    def _other_style(self, _number: int) -> None:
        if self._state.place == "stylesheet":
            self.styles.current = -1

    # Switches: on without a number, off with 0.

    def _set_fallback(self, number: int) -> None:
        self._own().uc = min(max(number, 0), 1000)

    def _set_hidden(self, number: int) -> None:
        self._own().hidden = number != 0

    def _set_bold(self, number: int) -> None:
        self._own().bold = number != 0

    def _set_deleted(self, number: int) -> None:
        if number and not self._state.hidden:
            self.left_out["deletions"] += 1
        self._own().hidden = number != 0


def _hyperlink(instruction: str) -> str:
    """Where a field leads: to a file or URL, to a bookmark as "#name", or to both; else ""."""
    arguments = _ARGUMENT.findall(instruction[:_MAX_INFO])
    if not arguments or arguments[0].upper() != "HYPERLINK":
        return ""
    target = bookmark = before = ""
    for argument in arguments[1:]:
        if argument.startswith("\\") and len(argument) == 2:
            before = argument
            continue
        if before == "\\l":
            bookmark = bookmark or argument.strip('"')
        elif before not in ("\\t", "\\o"):  # of a window and a tool tip
            target = target or argument.strip('"')
        before = ""
    return f"{target}#{bookmark}" if bookmark else target


_GROUPS: dict[str, Callable[[Groups], None]] = {
    "footnote": Groups._start_aside,
    "shptxt": Groups._start_aside,
    "dptxbxtext": Groups._start_aside,
    "field": Groups._start_field,
    "fldinst": Groups._start_instruction,
    "fldrslt": Groups._start_result,
    "listtext": Groups._start_marker,
    "pntext": Groups._start_marker,
    "upr": Groups._start_twin,
    "ud": Groups._start_unicode_twin,
    "object": Groups._count_object,
}

_MARKS: dict[str, Callable[[Groups], None]] = {
    **dict.fromkeys(("par", "sect", "page", "column"), Groups._paragraph),
    "cell": Groups._cell,
    "row": Groups._row,
    "trowd": Groups._row_defaults,
    "trhdr": Groups._header_row,
    "chftn": Groups._note_number,
    "pard": Groups._paragraph_defaults,
    "plain": Groups._character_defaults,
    "intbl": Groups._in_table,
}
_VALUES: dict[str, Callable[[Groups, int], None]] = {
    "f": Groups._set_font,
    "fcharset": Groups._set_charset,
    "cpg": Groups._set_font_page,
    "ansicpg": Groups._set_code_page,
    "deff": Groups._set_default_font,
    "s": Groups._set_style,
    "cs": Groups._other_style,
    "ds": Groups._other_style,
    "ts": Groups._other_style,
    "sbasedon": Groups._set_base,
    "outlinelevel": Groups._set_level,
    "ilvl": Groups._set_indent,
    "fs": Groups._set_size,
    "fonttbl": lambda groups, _: groups._table_of("fonttbl"),
    "stylesheet": lambda groups, _: groups._table_of("stylesheet"),
    "info": lambda groups, _: groups._table_of("info"),
    "mac": lambda groups, _: groups._set_code_page(10000),
    "pc": lambda groups, _: groups._set_code_page(437),
    "pca": lambda groups, _: groups._set_code_page(850),
}
_SWITCHES: dict[str, Callable[[Groups, int], None]] = {
    "uc": Groups._set_fallback,
    "v": Groups._set_hidden,
    "b": Groups._set_bold,
    "deleted": Groups._set_deleted,
}

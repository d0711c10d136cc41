"""Names in running text: where one chunk mentions what another is called.

A text is read once whatever the number of names: its words walk down a tree of the names' words.
Words are compared folded; scripts written without spaces count each character as a word.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from ragx.algo.lexical import STOP_WORDS, UNSPACED, UNSPACED_CHARACTER, WORD_MARKS, fold

__all__ = [
    "Mention",
    "NameTree",
    "find_symbols",
    "first_words",
    "is_code_like",
    "is_telling",
    "is_telling_symbol",
    "name_key",
    "without_destinations",
]

_TOKEN = re.compile(rf"(?=[\w{WORD_MARKS}])[{UNSPACED}]|(?:(?![{UNSPACED}])[\w{WORD_MARKS}])+")
_ASCII_TOKEN = re.compile(r"\w+", re.ASCII)
_NARROW = re.compile("[\uff66-\uff9f]+")
# Longer titles are sentences: nobody repeats them word for word.
_MAX_WORDS, _MAX_CHARACTERS = 12, 40

# What documents call themselves by their place, not by their subject.
_PLACE_WORDS = frozenset(
    """abstract acknowledgements appendix background changelog changes chapter conclusion contents
    contributing contributors copyright credits description details discussion docs documentation
    example examples faq features foreword general getting glossary guide help history home
    imprint index info information installation introduction introductions license links main
    manual misc miscellaneous news note notes options other overview page part preface readme
    reference references release releases requirements resources result results section see setup
    start started summary support table test tests title todo tutorial untitled usage version
    welcome""".split()
)


@dataclass(frozen=True, slots=True)
class Mention:
    """A name in a text: its key and the characters `text[start:end]` that stand for it."""

    key: str
    start: int
    end: int


def _matches(text: str) -> Iterator[re.Match[str]]:
    return (_ASCII_TOKEN if text.isascii() else _TOKEN).finditer(text)


def _words(text: str) -> list[str]:
    """Folded words of a text, one for each of `_matches`."""
    if text.isascii():
        return _ASCII_TOKEN.findall(text.lower())
    return [fold(word) for word in _TOKEN.findall(text)]


def _composed(text: str) -> str:
    """The form in which full text is indexed: characters composed, narrow kana made wide."""
    if text.isascii():
        return text
    composed = unicodedata.normalize("NFC", text)
    if not _NARROW.search(composed):
        return composed
    wide = _NARROW.sub(lambda run: unicodedata.normalize("NFKC", run.group()), composed)
    return unicodedata.normalize("NFC", wide)


def name_key(name: str) -> str:
    """Folded words of a name, joined by single spaces: what is compared. "" if it has none."""
    return " ".join(filter(None, _words(_composed(name))))


def first_words(texts: Iterable[str]) -> set[str]:
    """Words of the texts: a name can only be in one of them if its first word is among these."""
    return {word for text in texts for word in _words(_composed(text))}


def is_telling(key: str) -> bool:
    """Whether a name says enough to be looked for in other texts.

    Not: names of common words and of places in a document, numbers, single characters, sentences.
    """
    words = key.split()
    limit = _MAX_CHARACTERS if all(map(UNSPACED_CHARACTER.match, words)) else _MAX_WORDS
    if not 0 < len(words) <= limit or len(key) < 2:
        return False
    return any(
        word not in STOP_WORDS and word not in _PLACE_WORDS and not word.isdigit()
        for word in words
        if len(words) > 1 or len(word) > 2 or not word.isascii()
    )


_MARKS = tuple("`'\"*_[]<>\u201c\u201d\u2018\u2019\u00ab\u00bb")
_SENTENCE_END = re.compile(r"(?:[.!?:;|#>*\u3002]|\n[ \t]*|^)[ \t\"'(\u201c*_-]*\Z")


def _stands_as_name(text: str, start: int, end: int) -> bool:
    """Whether one word is written as names are: marked, or with a capital where none is due."""
    word = text[start:end]
    if text[start - 1 : start] in _MARKS and text[end : end + 1] in _MARKS:
        return True
    if not word[:1].isupper():
        # Without case (other scripts), or with digits inside: no common word of a language.
        return word[:1].lower() == word[:1].upper() or any(map(str.isdigit, word))
    return _SENTENCE_END.search(text[max(0, start - 40) : start]) is None


# Where a link leads, tags and web addresses: nobody reads them as running text.
_DESTINATION = re.compile(
    r"\]\([^()\n]{0,500}\)|</?[A-Za-z][^<>\n]{0,500}>|https?://[^\s<>)\]]{1,500}"
    r"|\bxref:[^\s\[]{1,500}|\[\[file:[^\]\n]{1,500}"
)
# What may not stand between the words of a name: a new item or paragraph, or a link's brackets.
_BREAK = re.compile(r"\n[ \t]*(?:\n|[-*+#>|]|\d+[.)])|\]\(|[{}]")


def without_destinations(text: str) -> str:
    """The text with addresses of links blanked out; positions stay."""
    return _DESTINATION.sub(lambda match: "|" * len(match.group()), text)


class NameTree:
    """Finds every one of many names in a text.

    Args:
        keys: of `name_key`; the order has no influence.
    """

    __slots__ = ("_root",)

    def __init__(self, keys: Iterable[str]) -> None:
        self._root: _Branch = {}
        for key in keys:
            branch = self._root
            for word in key.split():
                branch = branch.setdefault(word, {})
            branch[_END] = key

    def find(self, text: str) -> list[Mention]:
        """First mention of each name, in order of start; of names inside each other the longest.

        Takes time in proportion to the words of the text, times the words of the longest name
        at worst.
        """
        given, text = text, _composed(text)
        words = _words(text)
        root = self._root
        starts = [at for at, word in enumerate(words) if word in root]
        if not starts:
            return []
        found: dict[str, Mention] = {}
        spans: list[tuple[int, int]] = []
        after = 0
        for at in starts:
            if at < after:
                continue
            branch, key, last = root[words[at]], "", at
            for step in range(at, len(words)):
                if step > at:
                    branch = branch.get(words[step])
                    if branch is None:
                        break
                if _END in branch:
                    key, last = branch[_END], step
            if key and key not in found:
                spans = spans or [match.span() for match in _matches(text)]
                start, end = spans[at][0], spans[last][1]
                # Not here, perhaps, but the next place may show that it is one.
                if last > at:
                    stands = _BREAK.search(text, start, end) is None
                else:
                    stands = _stands_as_name(text, start, end)
                if stands:
                    found[key] = Mention(key, start, end)
            if key:
                after = last + 1
        if text != given:
            return [_in_given(mention, given) for mention in found.values()]
        return list(found.values())


def _in_given(mention: Mention, given: str) -> Mention:
    """A mention in the composed text with the positions of the given one."""
    start = _given_position(given, mention.start + 1) - 1
    return Mention(mention.key, max(0, start), _given_position(given, mention.end))


def _given_position(given: str, offset: int) -> int:
    """The shortest beginning of the text that is composed to at least so many characters."""
    low, high = 0, len(given)
    while low < high:
        middle = (low + high) // 2
        if len(_composed(given[:middle])) < offset:
            low = middle + 1
        else:
            high = middle
    return low


_Branch = dict[str | None, Any]
_END = None  # no word, not even one of marks: what stands there is the name that ends here


_IDENTIFIER = re.compile(rf"(?<![\w${WORD_MARKS}])[^\W\d]\w*(?![{WORD_MARKS}])")
_MARKED = re.compile(r"`([^`\s]{3,60})`")
_MIN_SYMBOL = 4
_COMMON_SYMBOLS = frozenset(
    """args await bool build call check class clear click close code config const context copy count
    create data default delete dict exec execute exit false field fields file files find float
    format func function group handle handler head header headers hash index info init inner input
    insert instance items iter json keys kind kwargs left length level line list load main make
    match message method mode model module name names node none null number object open option
    options order output params parse path pattern print process props query read remove render
    replace request reset response result return right root save self send session setup size sort
    source split start state status stop string style super target test tests text this title token
    tokens true type types undefined update user util utils value values version void width wrap
    write yield""".split()
)


def is_telling_symbol(name: str) -> bool:
    """Whether a defined name is worth looking for: an identifier, not short and not common."""
    return (
        len(name) >= _MIN_SYMBOL
        and name.isidentifier()
        and name.strip("_").lower() not in _COMMON_SYMBOLS
        and not (name.startswith("__") and name.endswith("__"))
    )


def is_code_like(word: str) -> bool:
    """Whether a word of prose can only be an identifier: snake_case or camelCase."""
    inner = word.strip("_")
    return "_" in inner or any(a.islower() and b.isupper() for a, b in pairwise(inner))


def find_symbols(text: str, symbols: Container[str], *, prose: bool) -> list[Mention]:
    """First use of each known symbol, in order of start.

    Args:
        symbols: names as they are written; a set, so that a text costs its words and no more.
        prose: whether the text is no source code: then a word counts only if it looks like code
            or stands between backticks.
    """
    known = {word for word in set(_IDENTIFIER.findall(text)) if word in symbols}
    if not known:
        return []
    marked = [match.span(1) for match in _MARKED.finditer(text)] if prose else []
    at = 0
    found: dict[str, Mention] = {}
    for match in _IDENTIFIER.finditer(text):
        word = match.group()
        if word not in known or word in found:
            continue
        while at < len(marked) and marked[at][1] < match.end():
            at += 1
        is_marked = at < len(marked) and marked[at][0] <= match.start()
        if not prose or is_marked or is_code_like(word):
            found[word] = Mention(word, *match.span())
    return list(found.values())

"""Text -> index terms, and a plain-text query -> a full-text match expression.

The same analysis serves both sides, so a thing is found as it was written. One word gives its
folded form and, if it is an identifier, its parts: `getUserName` -> `getusername get user name`.
Scripts
written without spaces give overlapping pairs of characters. SQLite's FTS5 then sees terms separated
by single spaces and only stems them (Porter 1980), so ranking stays inside the database.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = [
    "ANALYSIS_VERSION",
    "STOP_WORDS",
    "UNSPACED",
    "UNSPACED_CHARACTER",
    "WORD_MARKS",
    "LexicalQuery",
    "analyse",
    "fold",
    "is_exclusion",
    "parse_query",
    "query_terms",
]

# Part of the index manifest: a change here means that stored postings no longer match.
ANALYSIS_VERSION = 1

# Marks that belong inside words; Python's \w leaves them out, which would cut Hindi or Thai apart.
WORD_MARKS = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a"
    "\u064b-\u065f\u0670\u06d6-\u06ed\u0900-\u0963\u0966-\u0dff\u0e00-\u0fff\u1000-\u109f"
    "\u1780-\u17ff\u1ab0-\u1aff\u1dc0-\u1dff\u200c\u200d\u20d0-\u20ff\ufe20-\ufe2f"
)
# Han, kana, hangul, Thai, Lao, Tibetan, Myanmar, Khmer: no spaces to rely on between words.
UNSPACED = (
    "\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u3035"
    "\u3040-\u30ff\u3105-\u312f\u3131-\u318e\u31a0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f"
    "\uac00-\ud7ff\uf900-\ufaff\uff66-\uff9f\U0001b000-\U0001b16f\U00020000-\U0003fffd"
)
_PICTURES = "\u2190-\u21ff\u2300-\u23ff\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff"
_WORD = re.compile(rf"[\w{WORD_MARKS}]+|[{_PICTURES}]")
_ASCII_WORD = re.compile(r"\w+", re.ASCII)
_UNSPACED_RUN = re.compile(rf"[{UNSPACED}]+")
UNSPACED_CHARACTER = re.compile(rf"[{UNSPACED}]")
_FOLDED_MARKS = re.compile("[\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0670\u200c\u200d]+")
# lower|Upper, UPPER|Upper-lower, and underscores bound the parts of an identifier.
_PART = re.compile(r"[^\W_]+?(?:(?<=[^\WA-Z_])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][^\W\dA-Z_])|(?=_)|$)")

# Words that carry no topic. Dropped from a query's alternatives while anything else is left; kept
# inside quoted phrases and in the index.
STOP_WORDS = frozenset(
    """a about after again all also am an and any are as at be because been before being but by can
    could did do does doing down during each few for from further had has have having he her here
    hers him his how i if in into is it its itself just me more most my no nor not now of off on
    once only or other our out over own same she should so some such than that the their them then
    there these they this those through to too under until up very was we were what when where which
    while who whom whose why will with would you your""".split()
)
_MAX_PHRASE_WORDS = 16  # FTS5 takes quadratic time over long phrases of frequent words


class _Expansions(dict[str, str]):
    """Word -> its terms joined by spaces; computed once per distinct word."""

    _LIMIT = 200_000

    def __missing__(self, word: str) -> str:
        if len(self) >= self._LIMIT:
            self.clear()
        terms = self[word] = " ".join(_expand(word))
        return terms


def fold(word: str) -> str:
    """One word as it is compared: case, marks and compatibility forms folded away."""
    if word.isascii():
        return word.lower()
    decomposed = unicodedata.normalize("NFKD", word.casefold())
    # Some marks that stand alone decompose into a space and what would stand on it.
    return unicodedata.normalize("NFKC", _FOLDED_MARKS.sub("", decomposed)).casefold().strip()


def _pairs(run: str) -> list[str]:
    """Overlapping pairs, then the last character: any one character is the start of some term."""
    folded = unicodedata.normalize("NFKC", run).casefold()
    return [folded[i : i + 2] for i in range(len(folded))]


def _expand(word: str) -> list[str]:
    if not word.isascii() and _UNSPACED_RUN.search(word):
        terms: list[str] = []
        position = 0
        for match in _UNSPACED_RUN.finditer(word):
            if match.start() > position:
                terms += _expand(word[position : match.start()])
            terms += _pairs(match.group())
            position = match.end()
        if position < len(word):
            terms += _expand(word[position:])
        return terms
    whole = fold(word)
    if "_" not in word and (word.islower() or word.isupper() or word[1:].islower()):
        return [whole] if whole else []
    parts = [fold(part) for part in _PART.findall(word)]
    if len(parts) < 2:
        stripped = whole.strip("_")
        return [term for term in dict.fromkeys((whole, stripped)) if term]
    return [whole, *(part for part in parts if part and part != whole)]


_EXPANSIONS = _Expansions()


def _words(text: str) -> list[str]:
    if text.isascii():
        return _ASCII_WORD.findall(text)
    # Composed first: decomposed hangul would not count as an unspaced script.
    return _WORD.findall(unicodedata.normalize("NFC", text))


def analyse(text: str) -> str:
    """Index terms of a text, in order, separated by single spaces; "" for text without any."""
    # A word of marks alone folds to nothing.
    return " ".join(filter(None, map(_EXPANSIONS.__getitem__, _words(text))))


@dataclass(frozen=True, slots=True)
class LexicalQuery:
    """A query as full-text expressions; each part may be empty.

    `alternatives` find chunks worth ranking, `phrases` are expressions whose chunks rank first,
    `exclude` matches chunks to leave out. `plain` is the query without its operators, for a model.
    """

    alternatives: tuple[str, ...]
    phrases: tuple[str, ...]
    exclude: str
    plain: str

    @property
    def match(self) -> str:
        """One expression for all alternatives."""
        return " OR ".join(self.alternatives)


_QUOTED = re.compile(r'(?<!\w)"([^"]+)"(?!\w)')
# Not `-v` or `-10`: flags and numbers are things to look for.
_EXCLUDED = re.compile(
    rf"(?<!\S)-(?![\d\s-])((?:[\w{WORD_MARKS}][\w{WORD_MARKS}-]+)|[{_PICTURES}])(?!\S)"
)


def is_exclusion(token: str) -> bool:
    """Whether a token of a query is `-word`, a word to leave out."""
    return _EXCLUDED.fullmatch(token) is not None


def _row(words: Sequence[str]) -> tuple[list[str], str]:
    """The words' terms in a row, and "*" if the last may be a beginning.

    A run of an unspaced script ends in the index with its last character alone. Here the run may
    go on where the question stops, so that the last one is left out, or taken for a beginning.
    """
    terms = [term for word in words for term in analyse(word).split()]
    last = _UNSPACED_RUN.findall(words[-1]) if terms else []
    if last and words[-1].endswith(last[-1]):
        if len(last[-1]) == 1:
            return terms, "*"
        terms.pop()
    return terms, ""


def _phrase(words: Sequence[str]) -> str:
    """The words in a row as one expression; "" if they hold no term.

    A long phrase is matched piece by piece: all pieces in one chunk are as good as the phrase.
    """
    terms, suffix = _row(words)
    # Terms hold word characters and pictures only, so no quote can occur inside.
    pieces = [
        f'"{" ".join(terms[at : at + _MAX_PHRASE_WORDS])}"'
        for at in range(0, len(terms), _MAX_PHRASE_WORDS)
    ]
    if len(pieces) > 1:
        return f"({' AND '.join(pieces)})"
    return f"{pieces[0]}{suffix}" if pieces else ""


def _alternatives(text: str) -> list[str]:
    """Expressions for one stretch of plain text, most specific first within a word."""
    found: list[str] = []
    for token in text.split():
        words = _words(token)
        if len(words) > 1:  # `2026.4.10`, `real-time`, `grammar::fa`: as written, then its words
            found += [
                _phrase(words[at : at + _MAX_PHRASE_WORDS])
                for at in range(0, len(words), _MAX_PHRASE_WORDS)
            ]
        apostrophe = "'" in token or "\u2019" in token
        for word in words:
            if len(words) > 1 and apostrophe and len(word) == 1:
                continue  # the s of "Women's"
            # The pairs of a run are the words of a script that marks none.
            terms, suffix = _row([word])
            found += [f'"{term}"' for term in terms[:-1]]
            found += [f'"{term}"{suffix}' for term in terms[-1:]]
    return [expression for expression in found if expression]


def query_terms(text: str) -> tuple[str, ...]:
    """Folded words of a query that carry meaning, in order, once each: for highlighting."""
    terms = dict.fromkeys(analyse(text).split())
    kept = [term for term in terms if term not in STOP_WORDS]
    return tuple(kept or terms)


def parse_query(text: str) -> LexicalQuery:
    """Read plain text; `"a phrase"` and `-word` are the only operators, all else is literal.

    Never raises and never yields an expression that FTS5 cannot parse.
    """
    quoted = _QUOTED.findall(text)
    phrases = [_phrase(_words(part)) for part in quoted]
    phrases = [phrase for phrase in dict.fromkeys(phrases) if phrase]
    rest = _QUOTED.sub(" ", text)  # what stands in quotes is no operator
    excluded = [_phrase(_words(word)) for word in _EXCLUDED.findall(rest)]
    rest = _EXCLUDED.sub(" ", rest)
    plain = text.strip()
    if quoted or excluded:
        unquoted = (
            part if i % 2 else _EXCLUDED.sub(" ", part)
            for i, part in enumerate(_QUOTED.split(text))
        )
        plain = " ".join(" ".join(unquoted).split())
    # Nothing but phrases: only chunks that hold one are worth ranking. Otherwise a phrase's words
    # count as words too, since questions quote titles that other files mention in part.
    words = _alternatives(plain) if rest.strip() or not phrases else []
    alternatives = dict.fromkeys([*phrases, *words])
    useful = [term for term in alternatives if term.strip('"*') not in STOP_WORDS]
    return LexicalQuery(
        alternatives=tuple(useful or alternatives),
        phrases=tuple(phrases),
        exclude=" OR ".join(dict.fromkeys(phrase for phrase in excluded if phrase)),
        plain=plain,
    )

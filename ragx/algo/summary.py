"""A few whole sentences that say what a group of chunks is about, without any model.

A sentence is central if it has the words that many chunks of the group have and few elsewhere; the
next one has to add words (Nenkova and Vanderwende, "The impact of frequency on summarization",
2005: words already said count by their square). Nothing is cut and nothing made up: what stands in
markup, code, tables or lists without sentences says nothing here.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ragx.algo.chunking.languages import kind_of, language_of
from ragx.algo.hidden import hidden_kinds
from ragx.algo.lexical import query_terms

__all__ = ["Sentence", "Source", "defines", "leans", "sentences", "summarize"]

_MIN_CHARS = 32
_MAX_CHARS = 230
_MIN_WORDS = 5
_MAX_TERM_CHARS = 40
_MAX_PER_SOURCE = 6  # what a chunk is about is said at its beginning
_MAX_TEXT_CHARS = 20_000
_EARLIER = 0.85  # what a sentence counts, against the one before it in a chunk
_OPENING = 1.4  # how much more the beginning of a file counts: it says what the file is about
_DEFINES = 1.3  # `X is a ...`
_ASKED = 2.0  # how much more a word of the question counts
_LEANING = 0.6  # of a sentence that points at what stands before it
_FILE_AGAIN = 0.5  # of a sentence from a file that has spoken already
_ENOUGH = 0.25  # a further sentence says at least so much of what the first says

_FENCE = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[^\n]*$|\Z)", re.MULTILINE | re.DOTALL)
_FRONT = re.compile(r"\A(---|\+\+\+)[ \t]*\n.*?^\1[ \t]*$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_IMAGE = re.compile(r"\[?!\[[^\]]*\]\([^)]*\)(?:\]\([^)]*\))?")
_LINK = re.compile(r"\[([^\]\[]+)\](?:\([^()\s]*(?:\s+\"[^\"]*\")?\)|\[[^\]]*\])")
_REST_LINK = re.compile(r"`([^`<]+?)\s*<[^`>]*>`_{0,2}")
_ROLE = re.compile(r":[a-zA-Z][\w:+-]*:`~?!?([^`<]+?)(?:\s*<[^`>]*>)?`")
_ROLE_PATH = re.compile(r"^[~/.!]*(?:[\w.-]+/)*")
_TAG = re.compile(r"</?[a-zA-Z][^<>\n]{0,200}>")
_EMPHASIS = re.compile(r"(\*{1,3}|(?<!\w)_{1,2})(?=\S)(.+?)(?<=\S)\1(?!\w)")
_LITERAL = re.compile(r"``?([^`\n]+)``?_{0,2}")
_ESCAPE = re.compile(r"\\(?=[^\w\\]|$)")
_REFERENCE = re.compile(r"(?<=\w)__?(?=\W|$)|\[\d+\]_|\|[\w-]+\|")
# A line that is no running text: headings, rules, tables, directives, definitions, quotes of code.
_NO_TEXT = re.compile(
    r"^(?:#|=+$|-+$|~+$|\^+$|\++[-=+]+$|\||\.\. |:[\w -]+:|\[[^\]]+\]:|!!!|:::|@|\$ |> ?\$|%|\{%)"
)
_UNDERLINE = re.compile(r"([=\-~^\"'`#*+.:_])\1{2,}\s*")
_ITEM = re.compile(r"^(?:[-*+\u2022]|\(?\d{1,3}[.)]|\(?[a-z][.)])\s+")
_QUOTE = re.compile(r"^(?:>\s?)+")
_ENDED = re.compile(r"[.!?\u2026\u3002\uff01\uff1f\u0964][\"'\u201d\u2019)\]]*$")
_NEXT = re.compile(
    r"(?<=[.!?\u2026])[\"'\u201d\u2019)\]]*\s+(?=[\"'\u201c\u2018(\[]*[^\W_a-z])|(?<=[\u3002\uff01\uff1f\u0964])\s*"
)
_ABBREVIATION = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|cf|vs|approx|resp|incl|Mr|Mrs|Dr|St|No|Fig|Sec|[A-Z])\.)$"
)
_BEGINS = re.compile(r"[\"'\u201c\u2018(]*[^\W_]")
_LEANS = re.compile(
    r"(?:this|that|these|those|it|its|they|their|he|she|his|here|there|however|but|and|or|so|also"
    r"|then|thus|therefore|otherwise|instead|additionally|furthermore|moreover|again|both|such|note"
    r"|in this|in that|for example|for instance|as above|as (?:you|we) |see|if so|yes|no"
    r"|the (?:above|following|former|latter|same|next|previous|other)"
    r"|you can|we|if|when|since|finally|please"
    r"|after|before|now|first|second|third|alternatively|unfortunately|interestingly|normally"
    r"|similarly|likewise|all of|none of|hence|because|by default|one of)\b",
    re.IGNORECASE,
)
# A sentence may begin with a name in lower case, but not with a word that goes on with another.
_GOES_ON = re.compile(
    r"(?:a|an|and|are|as|at|be|because|but|by|can|for|from|if|in|is|may|must|nor|not|of|on|only|or"
    r"|should|since|so|than|that|the|then|to|was|were|when|where|which|while|who|will|with|without"
    r"|you|your)\b|[\w-]+: "  # nor with a key
)
_DEFINES_RE = re.compile(
    r"(?:The )?[\w.-]+(?: [\w.-]+){0,2}(?: \([^)]*\))? (?:is|are) (?:a|an|the|your)\b"
)
_TO_DEFINE = frozenset("this that it there here what which these those he she".split())
_UNSPACED = re.compile("[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
_DOC_STRING = re.compile(r"(?:\"\"\"|''')(.*?)(?:\"\"\"|''')", re.DOTALL)
_BLOCK = re.compile(r"/\*+!?(.*?)\*/", re.DOTALL)
_LINE_MARK = re.compile(r"^[ \t]*(?:///?!?|#+(?!!)|--+|;+|%+)[ \t]?(?P<text>.*)$")
_STAR = re.compile(r"^[ \t]*\*[ \t]?", re.MULTILINE)
_SECTION = re.compile(
    r"^[ \t]*(?:Args|Arguments|Returns|Raises|Yields|Attributes|Examples?|Notes?|Source"
    r"|Parameters|@\w+.*|:\w+.*):?[ \t]*$",
    re.MULTILINE,
)
_COPYRIGHT = re.compile(r"copyright|licen[cs]e|all rights reserved|spdx|noqa|pylint|eslint", re.I)


@dataclass(frozen=True, slots=True)
class Source:
    """A chunk to choose from.

    Args:
        path: tells prose from code.
        opening: whether it begins its file.
        factor: how much its sentences count.
    """

    key: int
    path: str
    text: str
    opening: bool = False
    factor: float = 1.0


@dataclass(frozen=True, slots=True)
class Sentence:
    """One whole sentence, its markup taken off, and the chunk that it is from."""

    key: int
    path: str
    text: str


def summarize(
    sources: Sequence[Source],
    *,
    everywhere: Mapping[str, int],
    n_everywhere: int,
    query: str = "",
    most: int = 3,
    max_chars: int = 320,
) -> list[Sentence]:
    """Choose sentences that are central to a group and differ from each other.

    Args:
        sources: chunks of the group, the most central first; earlier ones win ties.
        everywhere: in how many chunks of all groups each word occurs; absent words in none.
        n_everywhere: how many chunks that counts.
        query: words that count more; "" for none.
        most, max_chars: limits; a sentence that does not fit into what is left is passed over.
    Returns:
        At most `most` sentences, the most central first; none if no chunk holds a whole one.
    """
    asked = set(query_terms(query))
    found: list[tuple[Sentence, frozenset[str], float]] = []
    counts: Counter[str] = Counter()
    for source in sources:
        counts.update(_terms(source.text[:_MAX_TEXT_CHARS]))
        factor = source.factor * (_OPENING if source.opening else 1.0)
        for text in sentences(source.text, source.path):
            leaning = _LEANING if leans(text) else _DEFINES if defines(text) else 1.0
            sentence = Sentence(source.key, source.path, text)
            found.append((sentence, _terms(text), factor * leaning))
            factor *= _EARLIER
    n = max(1, len(sources))
    weights = {
        term: _weight(times, n, everywhere.get(term, 1), max(n_everywhere, n))
        * (_ASKED if term in asked else 1.0)
        for term, times in counts.items()
        if times > 1 or n < 4 or term in asked
    }
    return _chosen(found, weights, most, max_chars)


def leans(sentence: str) -> bool:
    """Whether a sentence points at what stands before it, or is an aside."""
    return bool(_LEANS.match(sentence))


def defines(sentence: str) -> bool:
    """Whether a sentence says what something is: `X is a ...`."""
    match = _DEFINES_RE.match(sentence)
    return match is not None and sentence.split(maxsplit=1)[0].casefold() not in _TO_DEFINE


def _chosen(
    found: Sequence[tuple[Sentence, frozenset[str], float]],
    weights: dict[str, float],
    most: int,
    max_chars: int,
) -> list[Sentence]:
    chosen: list[Sentence] = []
    said: set[str] = set()
    files: Counter[str] = Counter()
    first = 0.0
    left = max_chars
    while len(chosen) < most:
        best, best_score = -1, 0.0
        for at, (sentence, terms, factor) in enumerate(found):
            if len(sentence.text) > left or sentence.text in said:
                continue
            total = math.fsum(weights.get(term, 0.0) for term in terms)
            score = round(
                factor * total / (len(terms) + 4) ** 0.7 * _FILE_AGAIN ** files[sentence.path], 9
            )
            if score > best_score:
                best, best_score = at, score
        if best < 0 or best_score < _ENOUGH * first:
            break
        first = first or best_score
        sentence, terms, _ = found[best]
        chosen.append(sentence)
        said.add(sentence.text)
        files[sentence.path] += 1
        left -= len(sentence.text) + 1
        for term in terms:
            weights[term] = weights.get(term, 0.0) * 0.3
    return chosen


def _weight(times: int, n: int, times_everywhere: int, n_everywhere: int) -> float:
    """How well a word stands for a group: its share of chunks here, more if it is rare elsewhere.

    A group that is all there is has no elsewhere: then the share decides, and words of nearly
    every chunk still count.
    """
    here = times / n
    there = min(1.0, max(times_everywhere, 1) / n_everywhere)
    return math.sqrt(here) * (0.3 + max(0.0, math.log(max(here, there) / there) + 0.2))


def _terms(text: str) -> frozenset[str]:
    return frozenset(
        term
        for term in query_terms(text)
        if 2 < len(term) <= _MAX_TERM_CHARS or _UNSPACED.search(term)
    )


def sentences(text: str, path: str, *, longest: int = _MAX_CHARS) -> list[str]:
    """The first whole sentences of a chunk that read well by themselves, markup taken off.

    Args:
        path: its ending tells whether only comments and docstrings are running text.
        longest: characters of a sentence that counts.
    """
    text = text[:_MAX_TEXT_CHARS].replace("\r\n", "\n").replace("\r", "\n")
    kind = kind_of(language_of(path))
    if kind == "data":
        return []
    prose = _comments(text) if kind == "code" else [text]
    found: list[str] = []
    for part in prose:
        for paragraph in _paragraphs(part):
            for sentence in _split(paragraph):
                if _reads_well(sentence, longest) and sentence not in found:
                    found.append(sentence)
                    if len(found) == _MAX_PER_SOURCE:
                        return found
    return found


def _comments(text: str) -> Iterator[str]:
    """Docstrings, block comments and runs of line comments, each as a text."""
    for match in _DOC_STRING.finditer(text):
        yield _SECTION.split(match[1])[0]
    for match in _BLOCK.finditer(text):
        yield _SECTION.split(_STAR.sub("", match[1]))[0]
    run: list[str] = []
    for line in [*text.split("\n"), ""]:
        marked = _LINE_MARK.match(line)
        if marked is not None:
            run.append(marked["text"])
        elif run:
            yield "\n".join(run)
            run = []


def _paragraphs(text: str) -> Iterator[str]:
    """Running text in one line each: between blank lines, and each item of a list."""
    text = _COMMENT.sub(" ", _FENCE.sub("\n\n", _FRONT.sub("\n", text)))
    lines = text.split("\n")
    held: list[str] = []
    previous_blank = True
    literal = False  # an indented block after `::` is code
    for at, raw in enumerate(lines):
        stripped = _QUOTE.sub("", raw.strip())
        indent = len(raw.expandtabs(4)) - len(raw.expandtabs(4).lstrip())
        if not stripped:
            yield from _joined(held)
            held, previous_blank = [], True
            continue
        if literal and indent >= 2:
            continue
        literal = False
        following = lines[at + 1].strip() if at + 1 < len(lines) else ""
        is_heading = bool(_UNDERLINE.fullmatch(following)) and indent == 0
        item = _ITEM.match(stripped)
        is_code = indent >= 4 and previous_blank and not item and not held
        if _NO_TEXT.match(stripped) or is_heading or _UNDERLINE.fullmatch(stripped) or is_code:
            yield from _joined(held)
            held = []
            literal = stripped.startswith((".. ", "!!!"))
        else:
            if item:
                yield from _joined(held)
                held = []
                stripped = stripped[item.end() :]
            held.append(stripped)
            if stripped.endswith("::"):
                literal = True
            previous_blank = False
    yield from _joined(held)


def _joined(lines: Iterable[str]) -> Iterator[str]:
    text = " ".join(lines)
    if not text:
        return
    text = _IMAGE.sub("", text)
    text = _ROLE.sub(lambda match: _ROLE_PATH.sub("", match[1].strip()), text)
    for pattern in (_LINK, _REST_LINK, _LITERAL):
        text = pattern.sub(r"\1", text)
    text = _EMPHASIS.sub(r"\2", text)
    text = _TAG.sub("", _REFERENCE.sub("", text))
    yield " ".join(_ESCAPE.sub("", text).split())


def _split(paragraph: str) -> Iterator[str]:
    start = 0
    for match in _NEXT.finditer(paragraph):
        end = match.end() if match[0].isspace() or not match[0] else match.start()
        piece = paragraph[start : match.end()].strip()
        if _ABBREVIATION.search(piece):
            continue
        if piece:
            yield piece
        start = max(end, match.end())
    rest = paragraph[start:].strip()
    if rest:
        yield rest


def _reads_well(sentence: str, longest: int) -> bool:
    """Whole, of a usual length, mostly words, and nothing hidden in it."""
    unspaced = bool(_UNSPACED.search(sentence))
    least = _MIN_CHARS // 3 if unspaced else _MIN_CHARS
    if not least <= len(sentence) <= longest or not _ENDED.search(sentence):
        return False
    if not _BEGINS.match(sentence) or _GOES_ON.match(sentence) or _COPYRIGHT.search(sentence):
        return False
    if not unspaced and len(sentence.split()) < _MIN_WORDS:
        return False
    if sentence.endswith(("e.g.", "i.e.", "etc.", "...")) or hidden_kinds(sentence):
        return False
    if "http" in sentence or "\ufffd" in sentence or sentence.count('"') % 2:
        return False
    letters = sum(char.isalpha() or char.isspace() for char in sentence)
    return letters >= 0.85 * len(sentence) and sentence.count("(") == sentence.count(")")

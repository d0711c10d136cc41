"""What names say about a question: path, file name, defined names, and what a file is for.

Pure evidence, each in [0, 1]; `query.rules` weighs it. A name is compared by its words: identifiers
fall into their parts, and words meet in their root, so that "parsing errors" meets `ErrorParser`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

from ragx.algo.lexical import WORD_MARKS, analyse, fold, query_terms

__all__ = [
    "AskedWords",
    "asks_version",
    "content_words",
    "defines",
    "defines_exactly",
    "file_name_match",
    "newer_path",
    "own_name",
    "path_share",
    "read_asked",
    "root",
    "secondary_role",
    "version_directory",
]

# Taken off one after the other, the longest that leaves three letters. Coarser than Porter's
# algorithm, which keeps `parser` and `parsing` apart; strange roots do no harm, for both sides have
# them, and words that wrongly meet (`state`, `station`) seldom stand in one question and one name.
_ENDINGS = (
    "ations", "ation", "ators", "ator", "ating", "ated", "ates", "ate", "ments", "ment", "able",
    "ings", "ions", "ing", "ers", "ors", "ion", "ive", "er", "or", "ed", "ly", "ie", "e", "y", "i",
)  # fmt: skip
_LEAST_ROOT = 3
_PLURAL = re.compile(r"(?<=[^aeiouys])ies$|(?<=s|x|z)es$|(?<=[cs]h)es$|(?<=[^sui])s$")
_DOUBLED = re.compile(r"([bdfglmnprstz])\1$")
_LONGEST_WORD, _LONGEST_NAME = 40, 400  # longer ones are data
_MAX_WORDS = 64  # of a longer text, names say nothing
_IDENTIFIER = re.compile(r"[^\W\d][\w$]*")
_TOKEN = re.compile(rf"[\w{WORD_MARKS}]+")
_CALLED = re.compile(r"(?<![\w$])([^\W\d][\w$]{0,99})\(|`(?:[\w$]+[.:]+)*([^\W\d][\w$]*)")
_HUMP = re.compile(r"[^\WA-Z_\d][A-Z]|[A-Z]{2}[a-z]{2}")
_EXTENSIONS = re.compile(r"(?<!^)(\.[A-Za-z0-9]+)+$")
# File names that stand for their directory.
_ENTRY_NAMES = frozenset({"index", "__init__", "mod", "main", "lib", "doc"})
_INSIDE = re.compile(r"[.:#/]+")
_ASKED_VERSION = re.compile(r"(?i)\bv\d{1,3}\b|\bversion\s+\d")
_VERSIONED = re.compile(r"(?:^|/)v(\d{1,3})(?=/)")


def root(word: str) -> str:
    """A folded word without common English endings."""
    return _root(word) if len(word) <= _LONGEST_WORD else word


@lru_cache(maxsize=100_000)
def _root(word: str) -> str:
    rest = _PLURAL.sub("", word) if len(word) > _LEAST_ROOT else word
    while True:
        shorter = next(
            (
                rest[: -len(ending)]
                for ending in _ENDINGS
                if rest.endswith(ending) and len(rest) - len(ending) >= _LEAST_ROOT
            ),
            rest,
        )
        # "running" to "run", and "class" with it, to meet "classes".
        shorter = _DOUBLED.sub(r"\1", shorter) if len(shorter) > _LEAST_ROOT else shorter
        if shorter == rest:
            return rest
        rest = shorter


@lru_cache(maxsize=20_000)
def _words(name: str) -> tuple[str, ...]:
    """The words of a name; of an identifier its parts without the whole."""
    words: list[str] = []
    for token in _TOKEN.findall(name[:_LONGEST_NAME]):
        terms = analyse(token).split()
        whole = len(terms) > 1 and terms[0] == fold(token)
        words += terms[1:] if whole else terms
    return tuple(dict.fromkeys(words))


@lru_cache(maxsize=20_000)
def _roots(name: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(root, _words(name))))


@lru_cache(maxsize=20_000)
def own_name(symbol: str) -> str:
    """A defined name without what it is a part of: `Parser.parse`, `M:method`, `std::vec`."""
    return _INSIDE.split(symbol)[-1]


def content_words(text: str) -> tuple[str, ...]:
    """Folded words of a question that carry meaning, once each; all if none does."""
    return query_terms(text)[:_MAX_WORDS]


@dataclass(frozen=True, slots=True)
class AskedWords:
    """A question as names are compared with it.

    Args:
        weights: share of the question's rarity by root; they sum to 1, or to 0.
        identifiers: tokens that are written as names of things in code.
    """

    weights: Mapping[str, float]
    identifiers: frozenset[str]

    def share(self, roots: Collection[str]) -> float:
        """How much of the question these roots cover, by rarity."""
        if self.weights.keys().isdisjoint(roots):  # as for nearly all names
            return 0.0
        return math.fsum(weight for word, weight in self.weights.items() if word in roots)

    def precision(self, roots: Sequence[str]) -> float:
        """Which part of these roots the question names; 0 without any."""
        if self.weights.keys().isdisjoint(roots):
            return 0.0
        return sum(word in self.weights for word in roots) / len(roots)


def read_asked(
    text: str, n_chunks: int, frequencies: Callable[[Sequence[str]], Sequence[int]] | None
) -> AskedWords:
    """Weigh the words of a question by how rare they are in the corpus.

    Args:
        frequencies: in how many of the chunks each word occurs; None where only the words matter,
            which then weigh nothing.
    """
    words = content_words(text)
    if frequencies is None:
        return AskedWords(dict.fromkeys(map(root, words), 0.0), _identifiers(text))
    rarity: dict[str, float] = {}
    for word, n in zip(words, frequencies(words), strict=True):
        n = min(n, n_chunks)
        value = math.log(1 + (n_chunks - n + 0.5) / (n + 0.5))
        rarity[root(word)] = max(value, rarity.get(root(word), 0.0))
    whole = math.fsum(rarity.values())
    weights = {word: value / whole if whole > 0 else 0.0 for word, value in rarity.items()}
    return AskedWords(weights, _identifiers(text))


def _identifiers(text: str) -> frozenset[str]:
    found = set(_IDENTIFIER.findall(text))
    if len(text.split()) > 1:
        found = {token for token in found if "_" in token.strip("_") or _HUMP.search(token)}
        found |= {a or b for a, b in _CALLED.findall(text)}
    return frozenset(found)


@lru_cache(maxsize=20_000)
def _file_name(path: str) -> str:
    """A file's name without extensions; that of an entry file with its directory's."""
    *directories, name = path.split("/")
    name = _EXTENSIONS.sub("", name)
    return f"{directories[-1]} {name}" if name in _ENTRY_NAMES and directories else name


@lru_cache(maxsize=20_000)
def _name_roots(path: str) -> frozenset[str]:
    """Of a file's name, with the whole of an identifier beside its parts."""
    return frozenset(map(root, analyse(_file_name(path)).split()))


@lru_cache(maxsize=20_000)
def _path_roots(path: str) -> frozenset[str]:
    directories = " ".join(path.split("/")[:-1])
    return frozenset(map(root, analyse(directories).split())) | _name_roots(path)


def path_share(asked: AskedWords, path: str) -> float:
    """How much of the question stands in directories and file name."""
    return asked.share(_path_roots(path))


def file_name_match(asked: AskedWords, path: str) -> float:
    """How much of the question stands in the file's name, less where the name says more."""
    share = asked.share(_name_roots(path))
    return share * math.sqrt(asked.precision(_roots(_file_name(path)))) if share else 0.0


@lru_cache(maxsize=20_000)
def _symbol_roots(symbols: tuple[str, ...]) -> frozenset[str]:
    return frozenset(word for symbol in symbols for word in _roots(own_name(symbol)))


def defines(asked: AskedWords, symbols: Sequence[str]) -> float:
    """The best match of the question with a defined name: share covered times precision."""
    if asked.weights.keys().isdisjoint(_symbol_roots(tuple(symbols))):
        return 0.0
    names = [_roots(own_name(symbol)) for symbol in symbols]
    return max(asked.precision(roots) * asked.share(roots) for roots in names)


def defines_exactly(asked: AskedWords, symbols: Sequence[str]) -> bool:
    """Whether one of the names is written in the question as a name."""
    return bool(asked.identifiers) and any(
        own_name(symbol) in asked.identifiers for symbol in symbols
    )


# What a file is for, if not what the program is made of: words that ask for such files, then the
# directories and file names that mark them. Whole names only, never a part of a word.
_ROLES = {
    "changelog": (
        "changelog change history news release version new",
        (
            # `news.md` is a note as likely as not, `NEWS` is a habit of programs.
            r"(^|/)((?i:change_?log|release[-_ ]?notes|whats_?new)"
            r"|CHANGES|Changes|HISTORY|History|NEWS|RELEASES)"
            r"([-_.]?v?\d[\w.-]*)?(\.(md|markdown|rst|txt|adoc|org))?$"
        ),
    ),
    "test": (
        "test spec fixture mock",
        r"(^|/)([Tt]ests?|__tests__|[Ss]pecs?|e2e|fixtures?|mocks|__mocks__|testdata)/",
        r"(^|/)(test_[^/]*|tests|conftest)\.py$",
        r"[._-](test|tests|spec)\.[a-z]+$",
        r"_(test|spec)\.(go|py|rb|c|cc|cpp|exs|dart)$",
        r"[a-z](Test|Tests|Spec|IT)\.(java|kt|cs|scala|swift|groovy|php)$",
    ),
    "example": (
        "example demo sample tutorial",
        r"(?i)(^|(?<!com)(?<!org)(?<!net)/)(example|demo|sample|tutorial)s?/",
    ),
    "benchmark": ("benchmark bench performance", r"(?i)(^|/)bench(es|marks?)?/"),
    "documentation": ("docs documentation", r"(?i)(^|/)docs?/"),
    "vendored": (
        "vendor vendored third",
        r"(?i)(^|/)(_?vendor(ed)?|_vendored_packages|third[_-]?party|node_modules|extern)/",
    ),
    "generated": (
        "generated declaration typings minified protobuf",
        r"\.d\.[cm]?ts$",
        r"\.min\.[a-z]+$",
        r"_pb2(_grpc)?\.pyi?$",
        r"\.pb\.(go|cc|h)$",
        r"([._]generated\.[a-z]+|(^|/)zz_generated[^/]*)$",
        r"(^|/)[Gg]enerated/",
    ),
    "old": ("deprecated legacy old compat", r"(?i)(^|/)(deprecated|legacy|old|_?compat)/"),
}


@cache
def _roles() -> Mapping[str, tuple[frozenset[str], tuple[re.Pattern[str], ...]]]:
    return {
        role: (frozenset(map(root, asked.split())), tuple(map(re.compile, patterns)))
        for role, (asked, *patterns) in _ROLES.items()
    }


@lru_cache(maxsize=20_000)
def _role(path: str) -> str:
    return next(
        (
            role
            for role, (_, patterns) in _roles().items()
            if any(pattern.search(path) for pattern in patterns)
        ),
        "",
    )


def secondary_role(asked: AskedWords, path: str, *, code: bool) -> str:
    """What a file is for besides the program itself, unless the question asks for that; or "".

    Args:
        code: whether it is source; of other files only changelogs are set apart.
    """
    role = _role(path)
    if not role or not (code or role == "changelog"):
        return ""
    asking, _ = _roles()[role]
    return "" if asking & asked.weights.keys() else role


def asks_version(text: str) -> bool:
    """Whether a question names a version, as `v1` or "version 1"."""
    return _ASKED_VERSION.search(text) is not None


def version_directory(path: str) -> str:
    """The directory of a path that is a version, as `api/v1`; "" if none is."""
    match = _VERSIONED.search(path)
    return path[: match.end(1)] if match else ""


def newer_path(path: str) -> tuple[str, ...]:
    """Paths of what would replace a file in a directory like `v1`: the next versions, or none.

    An entry file has none: every directory has one, whatever its version.
    """
    match = _VERSIONED.search(path)
    name = _EXTENSIONS.sub("", path.rpartition("/")[2])
    if match is None or name in _ENTRY_NAMES:
        return ()
    number = int(match[1])
    start, end = match.start(1) - 1, match.end(1)
    later = [f"{path[:start]}v{n}{path[end:]}" for n in (number + 1, number + 2)]
    return (*later, path[:start] + path[end + 1 :])

"""What in a corpus reads like a query: headings, first sentences of comments, subjects of commits.

Everything here looks at rows of text; no program is parsed as a whole. What is missed costs one
query of many, so the rules lean towards leaving out.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from ragx.algo.chunking.languages import kind_of
from ragx.types import Chunk

if TYPE_CHECKING:
    from ragx.evaluation.history import Commit

__all__ = [
    "Candidate",
    "commit_query",
    "docstring_query",
    "docstrings",
    "from_commits",
    "from_file",
    "heading_query",
    "headings",
    "kind_from_file",
]

MAX_CHARS = 160
_MAX_LOOKED_AT = 4 * MAX_CHARS  # no pattern below meets more, however long a text may be
MAX_COMMIT_FILES = 30  # a commit that touches more is a sweep, whatever is left of it


@dataclass(frozen=True, slots=True)
class Candidate:
    """A possible query; `merit` orders those of one file, higher is better."""

    query: str
    paths: tuple[str, ...]
    kind: str
    origin: str
    merit: int = 0

    @property
    def wording(self) -> str:
        """What is equal for queries that differ in case and punctuation alone."""
        return " ".join(re.findall(r"\w+", self.query.casefold()))


# Words.

_WORD = re.compile(r"[^\W_][\w'’-]*")
_PLAIN = re.compile(r"[\"'“‘(]*[^\W\d_]+(?:['’/-][^\W\d_]+)*[\"'”’).,:;?!…]*")
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]+")
_CAMEL = re.compile(r"[a-z][A-Z]")
_ASKING = re.compile(
    r"(?:how|why|what|when|where|which|who|can|could|does|do|is|are|should|will|must)\b.*\w"
    r"|.*\?$",
    re.I,
)
# They say nothing about which file is meant.
_EMPTY_WORDS = frozenset(
    """
    a about above after again all also although always an and another any are aren't around as
    at be because been before being below between both but by can can't could did do does
    doesn't don't done down during each either else etc even ever every few for from further had
    has have having he her here how i i'm if in into is isn't it it's its itself just let like
    made make makes making many may me might more most much must my need needs new no non nor
    not now of off on once one only or other our out over own per rather same shall she should
    show since so some still such than that the their them then there these they thing things
    this those through to too two under until up upon us use used user uses using very via want
    was way ways we well were what when where whether which while who whom whose why will with
    within without work working works would yes yet you your
    add added adding allow allows also another argument arguments array arrays avoid better
    boolean call called calls case cases change changed changes check code contains create
    created creates current data default define defined definition detail details different do
    doc docs document documentation example examples feature features file files first fix fixed
    fixes following function functions get gets give given gives handle handles hold holds
    implement implementation improve improved improvements information instance intro
    introduction issue issues item items last list main method methods misc name names next note
    notes number object objects option options overview param parameter parameters params part
    parts remove removed return returned returns run section set sets setting settings simple
    simply small specific specified stand stands started string strings stuff support supported
    supports take takes test testing tests text tip tips true type types update updated updates
    usage value values version versions
    """.split()
)


def _clean(text: str) -> str:
    return " ".join(_CONTROL.sub(" ", text).split())


def _n_words(text: str) -> int:
    """Words; of scripts without spaces, every two characters count as one."""
    unspaced = len(_UNSPACED.findall(text))
    return len(_WORD.findall(_UNSPACED.sub(" ", text))) + unspaced // 2


def _n_telling(text: str) -> int:
    """Different words that say what it is about."""
    words = {word.casefold().strip("'’-") for word in _WORD.findall(_UNSPACED.sub(" ", text))}
    telling = {word for word in words if len(word) > 1 and not word.isdecimal()}
    return len(telling - _EMPTY_WORDS) + len(_UNSPACED.findall(text)) // 2


def _n_plain(text: str) -> int:
    """Words of a language, not of a program."""
    spaced = _UNSPACED.sub(" ", text).split()
    plain = sum(1 for word in spaced if _PLAIN.fullmatch(word) and not _CAMEL.search(word))
    return plain + len(_UNSPACED.findall(text)) // 2


def _merit(text: str) -> int:
    """Higher for questions and telling words, lower for identifiers and long sentences."""
    foreign = max(0, _n_words(text) - _n_plain(text))
    asks = 2 if _ASKING.fullmatch(text) else 0
    return min(_n_telling(text), 6) + asks - 2 * foreign - max(0, len(text) - 80) // 10


# Files.

_TEST_PATH = re.compile(
    r"(?:^|/)(?:tests?|__tests__|specs?|testdata|fixtures?|__mocks__|vendor|node_modules"
    r"|third_party)/|(?:^|/)(?:test_[^/]*|conftest\.py|[^/]*(?:_test|_spec|\.test|\.spec)\.\w+)$",
    re.I,
)
_RECORD_PATH = re.compile(
    r"(?:^|/)(?:change(?:s|log)?|history|news|release[-_ ]?notes?|releases|licen[cs]es?|copying"
    r"|notice|authors|contributors|maintainers|(?:code[-_]of[-_])?conduct|security|acknowledge?ments?"
    r"|third[-_]party[^/]*)(?:[-_.][\w.-]*)?$"
    r"|(?:^|/)(?:changelogs?|changes|news|release[-_]notes)/"
    r"|(?:^|/)[^/]*(?:[-.]lock|lock\.(?:json|yaml|toml))$",
    re.I,
)
_MARKUP = frozenset({"markdown", "rst", "asciidoc", "org"})


def kind_from_file(path: str, language: str) -> str:
    """Which kind of query a file may give: "headings", "docstrings", or "" for none.

    Tests, vendored files, and records such as changelogs and licences give none.
    """
    if _TEST_PATH.search(path) or _RECORD_PATH.search(path):
        return ""
    if language in _MARKUP:
        return "headings"
    return "docstrings" if kind_of(language) == "code" else ""


def from_file(
    kind: str, path: str, language: str, title: str, chunks: Sequence[Chunk]
) -> list[Candidate]:
    """Candidates of one file in order, each wording once.

    Args:
        title: as stored; front matter may have one that stands in no heading.
        chunks: of the file, in order.
    """
    rows = _rows(chunks)
    found: Iterable[tuple[int, str]]
    if kind == "headings":
        found = [(1, title), *headings(language, rows)]
        as_query = heading_query
    else:
        symbols = {chunk.line_start: frozenset(chunk.symbols) for chunk in chunks}
        found = docstrings(language, rows, symbols)
        as_query = docstring_query
    items: dict[str, Candidate] = {}
    for line, text in found:
        query = as_query(text)
        if query:
            item = Candidate(query, (path,), kind, f"{path}:{line}", _merit(query))
            items.setdefault(item.wording, item)
    return list(items.values())


_LINE_END = re.compile(r"\r\n|\n|\r")


def _rows(chunks: Sequence[Chunk]) -> list[str]:
    """The rows of a file, put together from its chunks; what no chunk has is blank.

    Where chunks share a row, the longer part of it stands.
    """
    rows = [""] * max((chunk.line_end for chunk in chunks), default=0)
    for chunk in chunks:
        parts = _LINE_END.split(chunk.text)
        for row, part in enumerate(parts[: len(rows) - chunk.line_start + 1], chunk.line_start - 1):
            if len(part) > len(rows[row]):
                rows[row] = part
    return rows


# Headings.

_NUMBERING = re.compile(
    r"(?i:(?:chapter|section|part|step|appendix|question|faq|rule)\s+)?"
    r"\(?(?:\d+(?:\.\d+)*[.):]+|[A-Z][.)]+|[Qq]\d*[.):]+|[ivxIVX]+[.)]+|\d+(?:\.\d+)+)\s+"
    r"|(?i:chapter|section|part|step|appendix)\s+(?:\d+|[A-Z]\b)\s*[-:–—.]*\s*"
)
_ENDING = re.compile(r"[\s¶#§:.…,;–—-]+$")
_LEADING = re.compile(r"^[^\w\"'“‘(`.$/@<-]+")
_BOILERPLATE = re.compile(
    r"table of contents|contents of this|.*code of conduct.*|how to (?:use|install|run|contribute)"
    r"(?: (?:it|this))?|how (?:it|this) works?|what is (?:it|this)(?: \w+)?|getting started.*"
    r"|quick ?start.*|frequently asked questions|before you (?:start|begin)|see also.*"
    r"|further reading.*|more information.*|(?:known )?issues and limitations|indices and tables"
    r"|license and .*|what'?s new.*|changes? (?:in|since|from) .*|(?:in )?this (?:page|document).*"
    r"|to ?do.*|untitled.*|authors? and .*|thanks to .*|special thanks.*|list of (?:tables|figures)"
    r"|.*\b(?:changelog|release notes|copyright|licen[cs]es?)\b.*"
    r"|(?:version|release|v)\s*\d.*|.*\b\d+\.\d+\.\d+\b.*|.*\d{4}-\d\d-\d\d.*",
    re.I,
)
_NOT_PROSE = re.compile(r"://|\{\{|\{%|<%|\$\{|[{}|\\]|=>|::|==|\w\(\)?$")


def headings(language: str, rows: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Headings of marked-up text with their lines, from 1."""
    from ragx.algo.chunking.headings import asciidoc_blocks, org_blocks, rst_blocks
    from ragx.algo.chunking.markdown import markdown_blocks

    blocks_of = {
        "markdown": markdown_blocks,
        "rst": rst_blocks,
        "asciidoc": asciidoc_blocks,
        "org": org_blocks,
    }
    for block in blocks_of[language](rows):
        if block.kind == "heading" and block.title:
            yield block.row + 1, block.title


def heading_query(text: str) -> str:
    """A heading as a query; "" for one that nobody would ask."""
    text = _clean(text[:_MAX_LOOKED_AT])
    text = _LEADING.sub("", text)
    numbering = _NUMBERING.match(text)
    text = _LEADING.sub("", text[numbering.end() :] if numbering else text)
    text = _ENDING.sub("", text)
    asks = _ASKING.fullmatch(text) is not None
    if (
        len(text) > MAX_CHARS
        or _BOILERPLATE.fullmatch(text)
        or _NOT_PROSE.search(text)
        or text.startswith(("-", "/", "$", "@", "<"))
        or _n_words(text) < 3
        or _n_plain(text) < 3
        or _n_telling(text) < (1 if asks and _n_words(text) > 3 else 2)
    ):
        return ""
    return text


# Comments and docstrings.

_SLASHES = (
    "javascript typescript tsx vue svelte go rust java c cpp csharp php kotlin swift scala groovy"
    " dart d objc solidity zig protobuf thrift verilog fsharp"
)
_HASHES = (
    "ruby bash fish powershell perl r julia elixir nim terraform nix cmake makefile graphql php"
    " python"
)
_MARKS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        **dict.fromkeys(_HASHES.split(), ("#",)),
        **dict.fromkeys(_SLASHES.split(), ("//",)),
        **dict.fromkeys("lua haskell elm sql ada vhdl".split(), ("--",)),
        **dict.fromkeys("lisp clojure scheme".split(), (";",)),
        "erlang": ("%",),
        "php": ("//", "#"),
        "python": (),  # its docstrings serve
    }
)
_BLOCK_COMMENTS = frozenset(_SLASHES.split()) | {"sql"}
_MODIFIERS = (
    r"(?:export|default|pub(?:\([^)]*\))?|public|private|protected|internal|static|abstract|final"
    r"|async|unsafe|extern|virtual|override|inline|open|sealed|data|local|declare|readonly|partial"
    r"|suspend|constexpr|create|or\s+replace)\s+"
)
_DEFINES = re.compile(
    rf"\s*(?:{_MODIFIERS})*(?:function\b|func|fn|fun|def[a-z]*|class|struct|enum|trait|interface"
    r"|type|impl|module|mod|namespace|record|union|macro_rules!|object|protocol|extension|message"
    r"|service|rpc|contract|resource|variable|sub|procedure|table|view)\b[\s*!(\"'].*"
    r"|\s*[\w:.-]+\s*\(\)\s*[{(]?\s*",
    re.I,
)
_BINDS = re.compile(r"(?:export\s+)?(?:const|let|var|static|val)\s+\w")
_FLOW = re.compile(
    r"\s*(?:return|if|else|for|while|do|switch|case|throw|raise|await|yield|try|catch|new|delete"
    r"|and|or|not|elif|elsif|end|fi|done|then|when|match|\W)\b|\s*[}\])]"
)
_ATTRIBUTE = re.compile(r"\s*(?:@[\w.]+.*|#!?\[.*|\[[\w.].*\]\s*)")
_MAX_ATTRIBUTES = 8
_NO_NAMES: frozenset[str] = frozenset()
_MAX_SIGNATURE_ROWS = 60

# A row this short was not broken for want of room: what follows with a capital is a new sentence.
_BROKEN_ON_PURPOSE = 66

_PY_QUOTES = re.compile(r"\s*[rRuU]?(\"\"\"|''')(.*)")
_PY_DEFINES = re.compile(r"(\s*)(?:async\s+def|def|class)\s+\w")
_DECORATION = re.compile(r"^\s*(?:/{2,}!?|/\*+!?|\*+/|\*+(?!/)|#+['!]?|-{2,}\s*\|?|;+|%+)[ \t]?")
_STOPS = re.compile(
    r"\s*(?:[@\\]\w|:\w[\w ]*:(?!`)|(?:Args|Arguments|Parameters|Params|Returns?|Yields|Raises"
    r"|Examples?|Usage|Notes?|See [Aa]lso|Attributes)\s*:"
    r"|>>>|```|~~~|[-=*_#]{3,}\s*$|[-*+•]\s|\d+[.)]\s)"
)


def docstrings(
    language: str, rows: Sequence[str], symbols: Mapping[int, frozenset[str]]
) -> Iterator[tuple[int, str]]:
    """First paragraphs of what explains definitions, with the lines they start at.

    Args:
        symbols: names defined in the chunk that starts at a line.
    """
    if language == "python":
        yield from _python_docstrings(rows)
    elif _MARKS.get(language) or language in _BLOCK_COMMENTS:
        starts = sorted(symbols)
        for first, after in _comments(language, rows):
            place = bisect_right(starts, after + 1)
            names = symbols[starts[place - 1]] if place else _NO_NAMES
            if _defines(rows, after, names):
                yield first + 1, _paragraph(_DECORATION.sub("", row) for row in rows[first:after])


def _python_docstrings(rows: Sequence[str]) -> Iterator[tuple[int, str]]:
    above = -1  # the last row that is neither blank nor a comment
    row = 0
    while row < len(rows):
        text = rows[row].strip()
        opening = _PY_QUOTES.match(rows[row])
        if opening is None:
            if text and not text.startswith("#"):
                above = row
                if text.count('"""') % 2:
                    row = _closing(rows, row + 1, '"""')
            row += 1
            continue
        quotes, rest = opening[1], opening[2]
        end = row if quotes in rest else _closing(rows, row + 1, quotes)
        if above < 0 or _heads(rows, above, len(rows[row]) - len(rows[row].lstrip())):
            lines = [rest, *rows[row + 1 : end + 1]]
            whole = "\n".join(lines).partition(quotes)[0]
            yield row + 1, _paragraph(whole.split("\n"))
        above = end
        row = end + 1


def _closing(rows: Sequence[str], row: int, quotes: str) -> int:
    """The row from `row` on where a text in these quotes ends; the last one if none."""
    while row < len(rows) - 1 and quotes not in rows[row]:
        row += 1
    return row


def _heads(rows: Sequence[str], last: int, indent: int) -> bool:
    """Whether row `last` ends the signature of a definition whose body has this indentation."""
    text = rows[last].partition("  #")[0].rstrip()
    if not text.endswith(":"):
        return False
    header = _PY_DEFINES.match(text)
    if header is None and text.count(")") + text.count("]") > text.count("(") + text.count("["):
        for row in range(last - 1, max(-1, last - _MAX_SIGNATURE_ROWS), -1):
            header = _PY_DEFINES.match(rows[row])
            if header is not None:
                break
    return header is not None and len(header[1]) < indent


def _comments(language: str, rows: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Runs of rows `[first, after)` that hold one comment and nothing else."""
    marks = _MARKS.get(language, ())
    row = 0
    while row < len(rows):
        text = rows[row].lstrip()
        first = row
        if language in _BLOCK_COMMENTS and text.startswith("/*"):
            while row < len(rows) - 1 and "*/" not in rows[row]:
                row += 1
            if rows[row].rstrip().endswith("*/"):
                yield first, row + 1
        elif marks and text.startswith(marks) and not text.startswith(("#!", "#[")):
            while row + 1 < len(rows) and rows[row + 1].lstrip().startswith(marks):
                row += 1
            yield first, row + 1
        row += 1


def _defines(rows: Sequence[str], row: int, names: frozenset[str]) -> bool:
    """Whether a definition, perhaps of one of the names, starts at a row or its attributes do."""
    last = min(len(rows), row + _MAX_ATTRIBUTES)
    while row < last and _ATTRIBUTE.fullmatch(rows[row]):
        row += 1
    if row >= len(rows) or not rows[row].strip():
        return False
    text = rows[row]
    if _DEFINES.fullmatch(text) or _BINDS.match(text):
        return True
    if _FLOW.match(text) or text.rstrip().endswith(";"):
        return False
    return not names.isdisjoint(re.findall(r"\w+", text))


def _paragraph(lines: Iterable[str]) -> str:
    """The first paragraph: up to a blank row, a tag, a list or a listing."""
    taken: list[str] = []
    for line in lines:
        text = line.strip().removesuffix("*/").strip()
        if text in {"<summary>", "</summary>"}:
            continue
        if (not text and taken) or _STOPS.match(text):
            break
        if taken and text[0].isupper() and len(taken[-1]) < _BROKEN_ON_PURPOSE:
            break
        if text:
            taken.append(text)
    return " ".join(taken)


_ROLE = re.compile(r":[\w:+.-]{1,40}:`(?:~[\w.]*\.)?([^`<]*?)(?:\s*<[^`>]*>)?`")
_INLINE_TAG = re.compile(r"\{@\w+\s+([^{}]*)\}")
_SENTENCE_END = re.compile(r"[.!?](?=\s|$)|[。！？]")
_ABBREVIATION = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|resp|incl|no|fig|eq|dr|mr|st)|\b\w)$", re.I
)
_NOISE = re.compile(
    r"\b(?:todo|fixme|xxx|hack|copyright|licen[cs]ed?|spdx|rights reserved|eslint|pylint|noqa"
    r"|prettier|istanbul|clang-format|nolint|shellcheck|type: ignore|mypy:|rubocop|phpcs"
    r"|(?:auto-?|code )generated|generated (?:by|from)|do not edit|pragma|deprecated|internal use"
    r"|for internal|subclass(?:es)? should|override this|see (?:above|below)|same as above"
    r"|inherit(?:ed)?doc|(?:use|call) this (?:class|function|method)|vim?:|coding[:=])",
    re.I,
)
_LOOKS_LIKE_CODE = re.compile(r"[{};]|=>|->|==|\w\s=\s|\|\||&&|::|://|\\|^[<$@.(\[-]|\w\(.*\)\s*$")


def docstring_query(text: str) -> str:
    """The first sentence of an explanation as a query; "" for one that tells nothing."""
    from ragx.algo.chunking.outline import plain_heading

    text = _clean(text[:_MAX_LOOKED_AT])
    text = _INLINE_TAG.sub(r"\1", _ROLE.sub(r"\1", text))
    text = plain_heading(_first_sentence(text).strip())
    text = _ENDING.sub("", text.replace("`", ""))
    if (
        len(text) > MAX_CHARS
        or not text
        or _NOISE.search(text)
        or _LOOKS_LIKE_CODE.search(text)
        or _n_plain(text) < 4
        or _n_telling(text) < 3
    ):
        return ""
    return text


def _first_sentence(text: str) -> str:
    for end in _SENTENCE_END.finditer(text):
        if end[0] != "." or not _ABBREVIATION.search(text[: end.start()]):
            return text[: end.end()]
    return text


# Commits.

_COMMIT_KINDS = (
    "fix|fixes|fixed|bugfix|hotfix|feat|feature|docs?|chore|refactor|perf|tests?|style|ci|build|deps"
    "|improvement|enhancement|bug|cleanup|misc|minor|security"
)
_COMMIT_PREFIX = re.compile(
    rf"(?:(?:{_COMMIT_KINDS})(?:\([^)]*\))?!?:\s*|\[[^\]]*\]\s*|:\w+:\s*|(?:gh-?|#|bpo-)\d+:?\s*"
    r"|\([^)]*\):\s*|[A-Z]{2,10}-\d+:?\s*)",
    re.I,
)
_COMMIT_REFERENCE = re.compile(
    r"[\s,;-]{0,3}\(?(?:\b(?:fix(?:es|ed)?|close[sd]?|resolve[sd]?|refs?|see|issues?|prs?|bug|for|from|in)"
    r"[\s:]+)?(?:(?:[\w.-]{1,40}/[\w.-]{1,40})?#|gh-?|bpo-)\d+(?:\s*(?:,|and|&)\s*#\d+)*\)?"
    r"|\s*\[(?:skip ci|ci skip|[a-z]+ skip)\]",
    re.I,
)
_COMMIT_NOISE = re.compile(
    r"\b(?:bump(?:s|ed)?|releas(?:e|es|ed|ing)|merge[sd]?|revert(?:s|ed)?|typos?|wip|fixup|squash"
    r"|changelog|initial commit|first commit|lint(?:er|ing)?|formatting|reformat|pre-commit"
    r"|version \d|back to dev|whitespace|prettier|ruff|black|flake8|isort|mypy|eslint|pylint"
    r"|dependabot|lockfile|requirements|code review|review comments?|address(?:es|ed)? comments?"
    r"|cherry.?pick|spelling|grammar|wording|copyright|licen[cs]e|readme|contributors?|nits?"
    r"|cosmetic|minor changes?|clean ?ups?|tidy(?:ing)?|tweaks?)\b"
    r"|\bupdat(?:e|es|ed|ing) (?:\w+ )?(?:dependenc|version|docs|submodule)",
    re.I,
)


def commit_query(subject: str) -> str:
    """A commit's subject as a query; "" for one about housekeeping."""
    text = _clean(subject[:_MAX_LOOKED_AT])
    if _COMMIT_NOISE.search(text):
        return ""
    while (prefix := _COMMIT_PREFIX.match(text)) is not None:
        text = text[prefix.end() :]
    text = _COMMIT_REFERENCE.sub("", text).replace("`", "")
    text = _ENDING.sub("", _LEADING.sub("", text))
    if (
        len(text) > MAX_CHARS
        or "://" in text
        or _n_words(text) < 4
        or _n_plain(text) < 3
        or _n_telling(text) < 3
    ):
        return ""
    return text


def from_commits(
    commits: Iterable[Commit], indexed: Collection[str], max_files: int
) -> list[Candidate]:
    """Candidates of commits that changed few of the indexed files, records such as changelogs
    left out of account."""
    found = []
    for commit in commits:
        changed = sorted({path for path in commit.paths if path in indexed})
        paths = tuple(path for path in changed if not _RECORD_PATH.search(path))
        if len(commit.paths) > MAX_COMMIT_FILES or not 1 <= len(paths) <= max_files:
            continue
        query = commit_query(commit.subject)
        if query:
            number = commit.number[:12]
            found.append(Candidate(query, paths, "commits", number, _merit(query) - len(paths)))
    return found

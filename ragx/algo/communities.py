"""Groups of nodes that belong together, and one line that says what each group is about.

Groups come from the Leiden algorithm over the weighted graph. Labels are extractive, without any
model: words that are frequent inside a group and rare outside it, beside the title, heading or file
name that most of its members share.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ragx.algo.chunking.graphemes import boundary_at_or_before
from ragx.algo.chunking.languages import kind_of, language_of
from ragx.algo.lexical import analyse

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["LABEL_CHARS", "Member", "detect", "label_communities"]

# On 20,000 nodes and 200,000 edges two passes take 3.5 to 6 s; passes until nothing changes gain
# under 0.02 % of quality where there are groups to find, and take up to 187 s where there are none.
_PASSES = 2
_WEIGHT_DECIMALS = 6  # what differs in later digits is noise of summation


def detect(
    n: int,
    src: NDArray[np.int64],
    dst: NDArray[np.int64],
    weights: NDArray[np.float32] | NDArray[np.float64],
    *,
    resolution: float,
    seed: int,
) -> NDArray[np.int32]:
    """Find the communities of an undirected weighted graph.

    The result depends on the set of edges alone: their order and direction have no influence,
    of several edges between two nodes the heaviest counts, self loops do not count, nor do edges
    whose weight rounds to zero at six decimals. A node without edges is a community of its own.

    Args:
        n: number of nodes; the caller's order of nodes is part of the input.
        src, dst: (m,) integers in [0, n).
        weights: (m,) float32 or float64, finite and not negative.
        resolution: gamma of the paper, above 0; higher gives more and smaller communities.
        seed: of the algorithm's random moves, in [0, 2**31).
    Returns:
        (n,) int32 community of each node, numbered from 0 by falling size, then by lowest node.
        Every community is connected. Empty for n = 0.
    Raises:
        ValueError: shapes disagree, or a node, weight, resolution or seed is out of its range.
        ImportError: igraph or leidenalg is missing; they load at the first graph with an edge.
    Source: Traag, Waltman and van Eck, "From Louvain to Leiden", Scientific Reports 9:5233, 2019;
        quality of Reichardt and Bornholdt, Physical Review E 74:016110, 2006.
    """
    import numpy as np

    if not (math.isfinite(resolution) and resolution > 0):
        raise ValueError(f"resolution is {resolution}; it must be above 0")
    if not 0 <= seed < 2**31:
        raise ValueError(f"seed is {seed}; it must be in [0, 2**31)")
    low, high, heaviest = _simple_edges(n, src, dst, weights)
    membership = np.arange(n, dtype=np.int64)
    if low.size:
        # Nodes without edges stay out: they are known, and only cost time.
        nodes, ends = np.unique(np.concatenate((low, high)), return_inverse=True)
        edges = ends.reshape(2, -1).T
        membership[nodes] = n + _leiden(len(nodes), edges, heaviest, resolution, seed)
    return _canonical(membership)


def _simple_edges(
    n: int, src: NDArray[Any], dst: NDArray[Any], weights: NDArray[Any]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Return each connected pair once as low < high, in order, with its largest weight."""
    import numpy as np

    if n < 0 or not src.ndim == dst.ndim == weights.ndim == 1:
        raise ValueError("edges must be three flat arrays over n >= 0 nodes")
    if not len(src) == len(dst) == len(weights):
        raise ValueError(f"{len(src)} sources, {len(dst)} targets and {len(weights)} weights")
    low = np.minimum(src, dst).astype(np.int64)
    high = np.maximum(src, dst).astype(np.int64)
    if low.size and (low.min() < 0 or high.max() >= n):
        raise ValueError(f"an edge leads outside of the {n} nodes")
    rounded = np.round(weights.astype(np.float64), _WEIGHT_DECIMALS)
    if not np.isfinite(rounded).all() or (rounded < 0).any():
        raise ValueError("a weight is negative or not finite")
    kept = (low != high) & (rounded > 0)
    low, high, rounded = low[kept], high[kept], rounded[kept]
    order = np.lexsort((-rounded, high, low))
    low, high, rounded = low[order], high[order], rounded[order]
    first = np.ones(len(low), dtype=bool)
    first[1:] = (low[1:] != low[:-1]) | (high[1:] != high[:-1])
    return low[first], high[first], rounded[first]


def _leiden(
    n: int, edges: NDArray[np.int64], weights: NDArray[np.float64], resolution: float, seed: int
) -> NDArray[np.int64]:
    # GPL and slow to load: only whoever asks for communities needs them.
    import igraph
    import leidenalg
    import numpy as np

    partition = leidenalg.find_partition(
        igraph.Graph(n=n, edges=edges.tolist()),
        leidenalg.RBConfigurationVertexPartition,
        weights=weights.tolist(),
        resolution_parameter=resolution,
        n_iterations=_PASSES,
        seed=seed,
    )
    return np.asarray(partition.membership, dtype=np.int64)


def _canonical(membership: NDArray[np.int64]) -> NDArray[np.int32]:
    """Renumber communities by falling size, then by lowest node."""
    import numpy as np

    _, first, inverse, sizes = np.unique(
        membership, return_index=True, return_inverse=True, return_counts=True
    )
    number = np.empty(len(sizes), dtype=np.int32)
    number[np.lexsort((first, -sizes))] = np.arange(len(sizes), dtype=np.int32)
    return number[inverse]


LABEL_CHARS = 90
_TEXT_CHARS = 400  # a chunk's beginning says what it is about; reading all of it triples the time
_NAME_CHARS = 44
_MAX_TERMS = 5
_LEAST_SHARE = 10  # a name stands for a community if one in 10 members bears it
_MAX_WORD_CHARS = 28

# Words that make no label: those without a topic, and those that any manual is full of.
_STOP = frozenset(
    """a about above according across actually add added after again against all allow allows
    almost along already also although always am among an and another any anything are
    around as at away be became because become been before behind being below best better
    between both but by call called came can cannot case come comes contains correctly
    could currently default description did different do does doing done down due during
    e.g each either else end enough especially etc even ever every exactly example
    examples except false few first following follows for from full further general get
    gets give given gives go goes good got had has have having he hence her here hers him
    his how however i i.e if in include included includes including instead into
    introduction is it its itself just keep know known last least less let like likely
    long look lot made main make makes making many may maybe me might more most much must
    my near need needed needs neither never new next no non none nor not note nothing now
    of off often ok old on once one only onto or other others otherwise our out over
    overview own part per perhaps please possible possibly probably provide provided
    provides put quite rather really recommended respectively same say says second see
    seem seen set several shall she should show shows similar simple simply since so some
    something sometimes soon still such sure synopsis take taken than thank thanks that
    the their them then there therefore these they thing things think this those though
    three through thus to together too toward true try turn two under unless until up upon
    us use used useful user uses using usually value values various very via want was way
    we well went were what when where whether which while who whom whose why will with
    within without work works would yes yet you your""".split()
)
# Controls, marks that turn the direction of text, and bytes of file names that are not text.
_HIDDEN_SET = (
    r"\x00-\x08\x0e-\x1b\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\ud800-\udfff"
)
_HIDDEN = re.compile(f"[{_HIDDEN_SET}]+")
# What separates words beside white space: all punctuation but the marks inside them.
_BREAK = re.compile(
    rf"[{_HIDDEN_SET}!-&(-,./:-@\[-^`{{-~\u00a1-\u00a9\u00ab\u00ac\u00ae-\u00b4\u00b6-\u00b9"
    r"\u00bb-\u00bf\u00d7\u00f7\u0964\u0965\u2010-\u2018\u201a-\u2027\u2030-\u205e\u2190-\u2bff"
    r"\u3000-\u3004\u3008-\u3020\u3030\u30fb\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65]+"
    r"|\n[ \t]*\n"
)
# Addresses, tags, link targets, fences, directives and roles: markup is not what a text is about.
_NOISE = re.compile(
    r"https?://\S+|<[^<>\n]{1,200}>|\]\([^()\s]*\)|^[ \t]*(?:```|~~~).*|:[\w:+-]+:(?=`)"
    r"|^[ \t]*\.\. (?:(?:include|image|figure|literalinclude|code|code-block)::.*|\S+::)",
    re.MULTILINE,
)
_UNSPACED = re.compile("[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
_CJK_WORD = re.compile("[\u3005\u3400-\u4dbf\u4e00-\u9fff]{2,}|[\u30a1-\u30ff]{2,}")
_SERIAL = re.compile(r"\d\D+\d")  # a hash, a date, a version: unlike `sha256` or `s3`
_ENDINGS = frozenset("s es ed d ing er ers ly".split())


@dataclass(frozen=True, slots=True)
class Member:
    """What a chunk says of itself; all but the path may be empty.

    Args:
        path: root-relative path; its ending tells code from prose.
        text: the chunk; only its beginning is read, and nothing of code that defines symbols.
        title: title of the whole document.
        heading: what stands above the chunk, outermost first.
        symbols: names that the chunk defines.
    """

    path: str
    text: str = ""
    title: str = ""
    heading: tuple[str, ...] = ()
    symbols: tuple[str, ...] = ()


@dataclass(slots=True)
class _Counts:
    """In how many members of a community each word, pair of words and name occurs."""

    n: int = 0
    words: Counter[str] = field(default_factory=Counter)
    pairs: Counter[tuple[str, str]] = field(default_factory=Counter)
    names: Counter[str] = field(default_factory=Counter)

    def add(self, other: _Counts) -> None:
        """Count the members of another community too."""
        self.n += other.n
        self.words.update(other.words)
        self.pairs.update(other.pairs)
        self.names.update(other.names)


def label_communities(members: Iterable[Member], communities: Sequence[int]) -> list[str]:
    """Describe every community in one line by what sets it apart from the others.

    `token, refresh, login — "API keys", "Sessions"`: first words that are frequent in this
    community and rare elsewhere, as its members write them, then the titles, headings or files that
    hold most of it. A community of one is named after its own heading, title or file.

    Args:
        members: every chunk once; read once, one at a time, so that texts need not be in memory.
            Their order has no influence.
        communities: (n,) community of each member, from 0 as `detect` numbers them.
    Returns:
        A label for each number up to the largest: one line of 1 to `LABEL_CHARS` characters,
        without control characters. "" for a number that no member has; [] for no members.
    Raises:
        ValueError: members and numbers differ in count, or a number is negative.
    Source: weights after Grootendorst, "BERTopic", arXiv:2203.05794, 2022 (class-based TF-IDF),
        with a term's part of the Kullback-Leibler divergence for TF-IDF: communities of very
        different size need no correction there.
    """
    sizes = Counter(int(number) for number in communities)
    if sizes and min(sizes) < 0:
        raise ValueError(f"community {min(sizes)} is negative")
    vocabulary = _Vocabulary()
    groups: dict[int, _Counts] = {}
    every = _Counts()
    labels = [""] * (max(sizes, default=-1) + 1)
    for member, number in zip(members, communities, strict=True):
        if sizes[number] == 1:
            labels[number] = _own_name(member)
            vocabulary.count(member, every)
        else:
            vocabulary.count(member, groups.setdefault(int(number), _Counts()))
    for counts in groups.values():
        every.add(counts)
    vocabulary.settle()
    for number, counts in groups.items():
        labels[number] = _label(counts, every, vocabulary)
    return labels


class _Keys(dict[str, str]):
    """Word as written -> what it is counted as, computed once per word."""

    def __missing__(self, word: str) -> str:
        key = self[word] = _word_key(word)
        return key


class _Vocabulary:
    """Words and names as keys for counting, and the spelling that most members use."""

    def __init__(self) -> None:
        self._keys = _Keys()
        self._spellings: Counter[str] = Counter()
        self._name_spellings: dict[str, Counter[str]] = {}
        self._best: dict[str, str] = {}

    def count(self, member: Member, counts: _Counts) -> None:
        """Count one member."""
        counts.n += 1
        kind = kind_of(language_of(member.path))
        names = dict(_names(member, kind))
        for key, spelling in names.items():
            self._name_spellings.setdefault(key, Counter())[spelling] += 1
        counts.names.update(names.keys())
        if kind == "code" and (member.symbols or member.heading):
            words = set(_code_words(member))
            self._spellings.update(words)
            counts.words.update({key for word in words if (key := self._keys[word])})
            return
        head = " | ".join(map(_clean, (*member.heading[::-1], member.title)))
        words, pairs = self._prose(member.text)
        head_words, head_pairs = self._prose(head)
        counts.words.update(words | head_words)
        counts.pairs.update(pairs | head_pairs)

    def _prose(self, text: str) -> tuple[set[str], set[tuple[str, str]]]:
        """Return what a text's words and neighbours among them are counted as."""
        words = _words(text)
        self._spellings.update(set(words))
        keys = [self._keys[word] for word in words]
        return {*keys} - {""}, {pair for pair in pairwise(keys) if pair[0] and pair[1]}

    def settle(self) -> None:
        """Choose each word's spelling: the most frequent one, rather lower case."""
        ranks: dict[str, tuple[int, str]] = {}
        for word, times in self._spellings.items():
            key = self._keys[word]
            spelling = _bare(word)
            # Headings begin words with a capital that are written without one in running text.
            rank = (times * (10 if spelling.islower() else 1), spelling)
            if key and rank > ranks.get(key, (0, "")):
                ranks[key] = rank
        self._best = {key: spelling for key, (_, spelling) in ranks.items()}

    def phrase(self, keys: Sequence[str]) -> str:
        """Return the spelling of counted words; those before the last in the singular, if known."""
        spelled = [self._best[key] for key in keys]
        for at, key in enumerate(keys[:-1]):
            if spelled[at].casefold() != key and key in self._spellings:
                spelled[at] = key
        return " ".join(spelled)

    def words_of_name(self, key: str) -> tuple[str, ...]:
        """Return the words of a counted name that make a label."""
        kind, _, name = key.partition(" ")
        if kind == "head":
            parts = _words(name)
        else:
            parts = _parts(_stem(name) if kind == "file" else name)
        return tuple(dict.fromkeys(key for part in parts if (key := self._keys[part])))

    def name(self, key: str) -> str:
        """Return the spelling of a counted name."""
        return max(self._name_spellings[key].items(), key=lambda item: (item[1], item[0]))[0]


def _words(text: str) -> list[str]:
    """Words as written; a bar stands wherever two words are not neighbours."""
    words = _BREAK.sub(" | ", _NOISE.sub(" | ", text[:_TEXT_CHARS])).split()
    if _UNSPACED.search(text):
        return [piece for word in words for piece in _pieces(word)]
    return words


def _bare(word: str) -> str:
    word = word.strip("-_'\u2019")
    return word[:-2] if word.endswith(("'s", "\u2019s")) else word


def _word_key(word: str) -> str:
    """Fold a word so that its spellings and numbers meet; "" for what makes no label."""
    word = _bare(word)
    if not 2 <= len(word) <= _MAX_WORD_CHARS or not word[0].isalpha() or _SERIAL.search(word):
        return ""
    folded = word.casefold()
    if folded in _STOP or "'" in word or "\u2019" in word:
        return ""
    if len(folded) > 3 and folded[-1] == "s" and folded[-2] not in "sui":
        folded = folded[:-3] + "y" if folded.endswith("ies") else folded[:-1]
    return "" if folded in _STOP else folded


def _pieces(word: str) -> Iterator[str]:
    """Split what is written without spaces into what may pass for words."""
    if not _UNSPACED.search(word):
        yield word
        return
    for match in _CJK_WORD.finditer(word):
        run = match.group()
        if len(run) <= 4 or (run[0] >= "\u30a1" and run[0] <= "\u30ff"):
            yield run
        else:
            yield from (run[at : at + 2] for at in range(len(run) - 1))


def _code_words(member: Member) -> Iterator[str]:
    """Parts of the names that a chunk of code defines or stands in, and of its file's name."""
    for name in (*member.symbols, *member.heading, _stem(member.path)):
        yield from _parts(name)


def _parts(name: str) -> list[str]:
    terms = analyse(name[:_TEXT_CHARS]).split()
    return terms[1:] if len(terms) > 1 else terms


def _stem(path: str) -> str:
    return path.rpartition("/")[2].partition(".")[0]


_GENERIC = frozenset("__init__ __main__ index readme main mod lib".split())


def _file_name(path: str) -> str:
    parts = path.split("/")
    return "/".join(parts[-2:] if _stem(path).casefold() in _GENERIC else parts[-1:])


def _names(member: Member, kind: str) -> Iterator[tuple[str, str]]:
    """Key and spelling of each name that may stand for a member."""
    headed = member.title or member.heading
    if kind != "docs" or not headed:
        yield f"file {member.path}", _clean(_file_name(member.path))
    if kind == "code":
        for name in dict.fromkeys((*member.heading, *member.symbols)):
            if not name.startswith("__") and _clean(name):
                yield f"name {name}", _clean(name)
    else:
        for name in (member.title, *member.heading):
            if name := _clean(name):
                yield f"head {name.casefold()}", name


def _clean(text: str) -> str:
    """Return the beginning of a text as one line without hidden characters."""
    return " ".join(_HIDDEN.sub(" ", text[:_TEXT_CHARS]).split())


def _weight(times: int, n: int, times_everywhere: int, n_everywhere: int) -> float:
    """Tell how well a word marks a community: p (log(p / q) + log(1 / q) / 5).

    p and q are its shares of members here and everywhere. The second part is for communities that
    are most of the corpus: the words of nearly every chunk weigh nothing.
    """
    p, q = times / n, times_everywhere / n_everywhere
    return p * (math.log(p / q) - 0.2 * math.log(q))


def _label(counts: _Counts, every: _Counts, vocabulary: _Vocabulary) -> str:
    names = _best_names(counts, every, vocabulary)
    taken = [word for key in names for word in vocabulary.words_of_name(key)]
    quoted = ", ".join(names.values())
    room = LABEL_CHARS - len(quoted) - 3
    terms: list[str] = []
    for term, keys in _ranked_terms(counts, every, vocabulary):
        if len(terms) == _MAX_TERMS:
            break
        if any(_alike(key, other) for key in keys for other in taken):
            continue
        if len(", ".join([*terms, term])) > room:
            continue
        terms.append(term)
        taken += keys
    return " — ".join(filter(None, (", ".join(terms), quoted))) or "untitled"


def _ranked_terms(
    counts: _Counts, every: _Counts, vocabulary: _Vocabulary
) -> Iterator[tuple[str, tuple[str, ...]]]:
    least = 2 if counts.n > 2 else 1
    weights: dict[tuple[str, ...], float] = {
        (word,): _weight(times, counts.n, every.words[word], every.n)
        for word, times in counts.words.items()
        if times >= least
    }
    for pair, times in counts.pairs.items():
        one, other = counts.words[pair[0]], counts.words[pair[1]]
        if pair[0] != pair[1] and times >= 2 and 2 * times >= max(one, other):
            weights[pair] = 1.01 * max(weights[pair[:1]], weights[pair[1:]])
    for keys, weight in sorted(weights.items(), key=lambda item: (-item[1], item[0])):
        if weight > 0:
            yield vocabulary.phrase(keys), keys


def _best_names(counts: _Counts, every: _Counts, vocabulary: _Vocabulary) -> dict[str, str]:
    """Return key and spelling of the one or two names that stand for most of a community."""
    ranked = sorted(
        (key for key, times in counts.names.items() if times * _LEAST_SHARE >= counts.n),
        key=lambda key: (-_name_weight(key, counts, every, vocabulary), key),
    )
    chosen: dict[str, str] = {}
    words: set[str] = set()
    best = 0.0
    for key in ranked:
        own = set(vocabulary.words_of_name(key))
        weight = _name_weight(key, counts, every, vocabulary)
        best = best or weight
        if 2 * weight < best:
            break
        if own <= words:  # says nothing new; so does a name without a single word
            continue
        name = _shorten(vocabulary.name(key), _NAME_CHARS)
        if key.startswith("head "):
            name = '"' + name.replace('"', "'") + '"'
        if len(", ".join([*chosen.values(), name])) <= _NAME_CHARS + 2:
            chosen[key] = name
            words |= own
        if len(chosen) == 2:
            break
    return chosen


def _name_weight(key: str, counts: _Counts, every: _Counts, vocabulary: _Vocabulary) -> float:
    """Weigh a name by the members that bear it, and by its words if it has what makes a label."""
    words = vocabulary.words_of_name(key)
    if not words:
        return 0.0
    found = (
        _weight(counts.words[word], counts.n, every.words[word], every.n)
        for word in words
        if word in counts.words
    )
    own = _weight(counts.names[key], counts.n, every.names[key], every.n)
    return own + 0.5 * math.fsum(found) / max(2, len(words))


def _alike(one: str, other: str) -> bool:
    """Tell whether two words look like forms of one: `test`, `tests`, `testing`."""
    if len(one) > len(other):
        one, other = other, one
    shared = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        shared += 1
    if shared == len(one):
        return shared > 3 or other[shared:] in _ENDINGS or one == other
    return shared > 4 and len(other) - shared <= max(3, 2 * shared // 3)


def _shorten(text: str, limit: int) -> str:
    """Cut after a word, or inside one that is longer than all there is room for."""
    if len(text) <= limit:
        return text
    space = text.rfind(" ", 0, limit)
    at = boundary_at_or_before(text, space if space >= limit // 2 else limit - 1, 0)
    return text[:at].rstrip(" ,;:-") + "…"


def _own_name(member: Member) -> str:
    """Name a community of one after its heading, title, symbols, first words or file."""
    kind = kind_of(language_of(member.path))
    file = _clean(_file_name(member.path))
    if kind == "code":
        symbols = ", ".join(filter(None, map(_clean, member.symbols or member.heading[-1:])))
        room = LABEL_CHARS - len(file) - 3
        if symbols and file and room > _MAX_WORD_CHARS:
            return f"{_shorten(symbols, room)} — {file}"
        own = symbols or file
    else:
        above = [_clean(name) for name in dict.fromkeys((member.title, *member.heading))]
        above = [name for name in above if name]
        own = above[-1] if above else ""
        if len(above) > 1 and len(own) + len(above[0]) + 3 <= LABEL_CHARS:
            own = f"{above[0]} > {own}"
        if not own and kind == "docs":
            own = _clean(_NOISE.sub(" ", member.text[:_TEXT_CHARS]).replace("`", ""))
        elif own and file and not any(map(_word_key, own.split())):
            own = f"{own} — {file}"  # "Introduction" alone says nothing
        own = own or file
    return _shorten(own, LABEL_CHARS) or "untitled"

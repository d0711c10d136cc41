"""Ranking rules: what names, and what a file is for, add to the score that the searches give.

Each rule has a name, a weight and a term of its own in the score. Two searches compare texts; they
do not know that `retry.py` is about retrying, that the chunk which defines a thing tells more about
it than those that use it, or that a test resembles what it tests (research/rules.md has what each
is worth).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ragx.algo import fusion
from ragx.algo.chunking.languages import kind_of, language_of
from ragx.algo.rules import (
    AskedWords,
    asks_version,
    defines,
    defines_exactly,
    file_name_match,
    newer_path,
    path_share,
    read_asked,
    secondary_role,
    version_directory,
)
from ragx.store.base import Reader
from ragx.types import Chunk, Hit

__all__ = ["RuleOptions", "apply_rules", "rule_heat"]

_MOST_TAKEN = 0.9  # rules that lower never turn a score around
_CLEAR_MATCH = 0.1  # a name that covers less is no more than a hint, even if none covers more
_MOSTLY = 0.5
_MOST_LOOKED_AT = 200  # files of a directory


@dataclass(frozen=True, slots=True)
class RuleOptions:
    """Weights from `[scoring.rules]`; 0 turns a rule off. The best hit of the searches has 1.

    Args:
        path: the share of the question that stands in a source file's path.
        file_name: the same of its name, less where the name says more.
        definition: the best match with a name that the chunk defines.
        symbol: a name that the question writes out is defined here.
        secondary: share of the score taken from tests, examples, vendored, generated and old
            files and changelogs, unless the question asks for such.
        length: share taken from prose for each e-fold of chunks in its file: many chunks have many
            chances.
        balance: share taken from source, where a file's further hits count: about what they add, so
            that it does not come before prose by that alone.
    """

    path: float = 0.5
    file_name: float = 0.6
    definition: float = 0.3
    symbol: float = 0.5
    secondary: float = 0.4
    length: float = 0.03
    balance: float = 0.17


@dataclass(frozen=True, slots=True)
class _File:
    """What holds for all hits of a file."""

    code: bool
    added: Mapping[str, float]
    n_chunks: int
    secondary: bool


def apply_rules(
    reader: Reader,
    text: str,
    hits: Sequence[Hit],
    chunks: Mapping[int, Chunk],
    options: RuleOptions,
) -> list[Hit]:
    """Hits with a term for each rule that has something to say.

    Args:
        text: the question without operators.
        hits: scored by the searches, in any order.
        chunks: those of the hits, at least.
    """
    unit = max((hit.score for hit in hits), default=0.0)
    if unit <= 0:
        return list(hits)
    paths = sorted({hit.path for hit in hits})
    code = {path for path in paths if kind_of(language_of(path)) == "code"}
    sizes = reader.n_chunks_of(paths)
    frequencies = reader.frequencies if code else None
    asked = read_asked(text, reader.n_chunks(), frequencies)
    replaced: frozenset[str] = frozenset()
    if options.secondary and not asks_version(text):
        replaced = _replaced(reader, paths)
    files = {
        path: _File(
            path in code,
            _by_names(asked, path, unit, options) if path in code else {},
            sizes.get(path, 1),
            path in replaced or bool(secondary_role(asked, path, code=path in code)),
        )
        for path in paths
    }
    definitions = {
        hit.chunk_id: match
        for hit in hits
        if hit.path in code and (match := defines(asked, chunks[hit.chunk_id].symbols))
    }
    best_definition = max((_CLEAR_MATCH, *definitions.values()))
    ruled = []
    for hit in hits:
        file = files[hit.path]
        added = dict(file.added)
        if file.code:
            symbols = chunks[hit.chunk_id].symbols
            match = definitions.get(hit.chunk_id, 0.0)
            # Where a file is one function, its name is no more than its text says.
            if match and options.definition and (file.n_chunks > 1 or len(symbols) > 1):
                added["definition"] = options.definition * unit * match / best_definition
            if options.symbol and defines_exactly(asked, symbols):
                added["symbol"] = options.symbol * unit
        if file.code or file.secondary or file.n_chunks > 1:
            added |= _taken(fusion.total({**hit.terms, **added}), file, options)
        ruled.append(_with_terms(hit, added) if added else hit)
    return ruled


def rule_heat(text: str, hits: Sequence[Hit], options: RuleOptions) -> list[Hit]:
    """Hits after the graph: what heat gives to files of a secondary role loses the same share."""
    asked = read_asked(text, 0, None)
    share = min(_MOST_TAKEN, options.secondary)
    ruled = []
    for hit in hits:
        gained = hit.terms.get("heat", 0.0) + hit.terms.get("cap", 0.0)
        code = kind_of(language_of(hit.path)) == "code"
        if share and hit.hops and gained > 0 and secondary_role(asked, hit.path, code=code):
            taken = -share * gained
            terms = {**hit.terms, "secondary": hit.terms.get("secondary", 0.0) + taken}
            hit = replace(hit, terms=terms, score=hit.score + taken)
        ruled.append(hit)
    return ruled


def _by_names(asked: AskedWords, path: str, unit: float, options: RuleOptions) -> dict[str, float]:
    share = path_share(asked, path)
    if not share:  # then nothing stands in its last part either
        return {}
    terms = {
        "path": options.path * unit * share,
        "file_name": options.file_name * unit * file_name_match(asked, path),
    }
    return {name: value for name, value in terms.items() if value}


def _taken(score: float, file: _File, options: RuleOptions) -> dict[str, float]:
    """Negative terms: shares of the score so far, one after the other."""
    taken: dict[str, float] = {}
    if score <= 0:
        return taken
    shares = {
        "length": 0.0 if file.code else options.length * math.log(file.n_chunks),
        "secondary": options.secondary if file.secondary else 0.0,
        "balance": options.balance if file.code else 0.0,
    }
    for name, share in shares.items():
        if share:
            taken[name] = -min(_MOST_TAKEN, share) * score
            score += taken[name]
    return taken


def _with_terms(hit: Hit, added: Mapping[str, float]) -> Hit:
    terms = {**hit.terms, **added}
    return replace(hit, terms=terms, score=fusion.total(terms))


def _replaced(reader: Reader, paths: Sequence[str]) -> frozenset[str]:
    """Paths in directories like `v1` most of whose files have a newer version beside them."""
    directories = sorted({directory for path in paths if (directory := version_directory(path))})
    old = set()
    for directory in directories:
        inside = reader.paths_below(directory, _MOST_LOOKED_AT)
        newer = [found for path in inside if (found := newer_path(path))]
        known = reader.n_chunks_of(sorted({path for found in newer for path in found}))
        n_replaced = sum(any(path in known for path in found) for found in newer)
        if newer and n_replaced >= _MOSTLY * len(newer):
            old.add(directory)
    return frozenset(path for path in paths if version_directory(path) in old)

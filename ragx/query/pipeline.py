"""The stages of a query, in order, once: seeds, fuse, rules, heat, collapse, fold, context."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ragx.algo import fusion
from ragx.algo.chunking.languages import kind_of, language_of
from ragx.algo.fold import STRETCH, fold
from ragx.algo.lexical import LexicalQuery, analyse, parse_query
from ragx.algo.ordering import rank_hits
from ragx.algo.repeats import Repeats
from ragx.errors import UsageError
from ragx.query.context import ContextLines, lines_after, lines_before, read_current
from ragx.query.rules import RuleOptions, apply_rules, rule_heat
from ragx.query.seeds import Seeds, find_seeds, lexical_match
from ragx.query.spread import SpreadOptions, spread
from ragx.store.base import Evidence, Reader
from ragx.types import Chunk, FileHit, Hit

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "Answer",
    "ChunkResult",
    "FileResult",
    "Mode",
    "QueryOptions",
    "QueryRequest",
    "check_text",
    "run_query",
]

Mode = Literal["hybrid", "vector", "lexical"]

MAX_QUERY_BYTES = 100_000
LONG_QUERY_CHARS = 4096
# "auto", by kind of file (research/fusion.md, research/first-stage.md): several good passages speak
# for a source file, while a long page must not outweigh the short one that answers.
_AUTO_VECTOR_WEIGHT = {"docs": 0.45, "code": 0.52, "data": 0.45}
_AUTO_FOLD_WEIGHT = {"docs": 0.0, "code": 0.15, "data": 0.0}
_LEAST_PHRASE_BOOST = 4.0
_WIDEN = 4  # how much deeper to look when the shortlists hold too few distinct files
_MAX_DEPTH = 40_000
_NEAR_FILES = 40  # from the top, among which near copies are looked for
# Files that are looked at however few are wanted, so that the first do not depend on how many.
_LEAST_FILES = STRETCH


@dataclass(frozen=True, slots=True)
class QueryOptions:
    """Settings of the read side, from `[fusion]` and `[scoring]`."""

    method: Literal["weighted", "rrf"] = "weighted"
    vector_weight: float | Literal["auto"] = "auto"
    rrf_k: float = 60.0
    per_query_top: int = 100
    fold_weight: float | Literal["auto"] = "auto"
    spread: SpreadOptions = field(default_factory=SpreadOptions)
    rules: RuleOptions = field(default_factory=RuleOptions)


@dataclass(frozen=True, slots=True)
class QueryRequest:
    """One question.

    Args:
        before, after: non-blank context lines wanted; `texts` off skips reading files.
        graph: whether heat spreads; `hops` overrides how far.
        rules: whether the named rules of ranking count besides the two searches.
        explain: whether the answer carries the evidence of the edges that heat took.
        enough: files that the searches have to find, and look deeper for; None for `top`. With
            fewer than `top`, the answer is that of a query for so many, and what else it found.
    """

    text: str
    top: int = 20
    mode: Mode = "hybrid"
    before: int = 0
    after: int = 0
    texts: bool = True
    graph: bool = True
    hops: int | None = None
    rules: bool = True
    explain: bool = False
    enough: int | None = None


@dataclass(frozen=True, slots=True)
class ChunkResult:
    """A hit with its stored chunk and what stands around it on disk."""

    hit: Hit
    chunk: Chunk
    before: ContextLines | None = None
    after: ContextLines | None = None


@dataclass(frozen=True, slots=True)
class FileResult:
    """One file's entry; `also_in` lists files whose same text was folded into it."""

    path: str
    score: float
    chunks: tuple[ChunkResult, ...]
    also_in: tuple[str, ...] = ()
    state: Literal["current", "changed", "gone"] = "current"
    terms: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a query found, best file first.

    `evidence` holds, if it was asked for, what stands behind each hop of the hits, and `places`
    the chunks at its ends.
    """

    query: str
    results: tuple[FileResult, ...]
    stages: Mapping[str, str]
    warnings: tuple[str, ...] = ()
    evidence: Mapping[tuple[int, int], Sequence[Evidence]] = field(default_factory=dict)
    places: Mapping[int, Chunk] = field(default_factory=dict)


@dataclass(slots=True)
class _Ranked:
    entries: list[FileHit]
    chunks: dict[int, Chunk]
    also_in: dict[int, tuple[str, ...]] = field(default_factory=dict)

    def first(self, top: int) -> _Ranked:
        """The best `top` entries alone."""
        return _Ranked(self.entries[:top], self.chunks, self.also_in)


def run_query(
    root: Path,
    reader: Reader,
    request: QueryRequest,
    options: QueryOptions,
    *,
    embed: Callable[[str], NDArray[np.float32]] | None,
) -> Answer:
    """Answer one question from one snapshot.

    Args:
        embed: gives the (d,) unit vector of a query; needed unless `mode` is "lexical" and None
            where the index was built without embeddings.
    Raises:
        UsageError: the query is empty, too long, or asks for vectors that the index lacks.
        ProviderError: the query could not be embedded.
    """
    noted: list[str] = []
    check_text(request.text)
    query = parse_query(request.text)
    if not analyse(query.plain):
        what = "only says what to leave out" if query.exclude else "holds no word to look for"
        noted.append(f"the query {what}")
        return Answer(request.text, (), {}, tuple(noted))
    if not reader.n_chunks():
        noted.append("the index is empty: ragx index -v lists what is left out and why")
        return Answer(request.text, (), {}, tuple(noted))
    use_vector, use_lexical = request.mode != "lexical", request.mode != "vector"
    if use_vector and embed is None:
        if request.mode == "vector":
            raise UsageError(
                "this index has no vectors: embeddings.provider is none",
                hint="use --mode lexical, or set embeddings.provider and run ragx index --full",
            )
        use_vector = False
    vector = embed(query.plain) if embed is not None and use_vector else None
    if vector is not None:
        if len(request.text) > LONG_QUERY_CHARS:
            noted.append(
                f"the query has {len(request.text)} characters: the vector side uses the mean of"
                " its windows, the lexical side its rarest words"
            )
        noted += _unembedded_warning(reader)
    ranked = _rank_files(reader, query, vector, request, options, use_lexical=use_lexical)
    shown = {entry.path for entry in ranked.entries}
    results = [
        _file_result(root, reader, entry, ranked, request, noted, shown=shown)
        for entry in ranked.entries
    ]
    stages = {
        "vector": "used" if vector is not None else "off",
        "lexical": "used" if use_lexical and query.match else "off",
        "fusion": options.method if vector is not None and use_lexical else "off",
        "rules": "used" if request.rules else "off",
        "graph": "used" if _uses_graph(request, options) else "off",
    }
    evidence: dict[tuple[int, int], list[Evidence]] = {}
    if request.explain:
        hops = {hop for entry in ranked.entries for hit in entry.hits for hop in hit.hops}
        evidence = reader.evidence({(hop.source, hop.target) for hop in hops})
    places = {chunk_id: ranked.chunks[chunk_id] for pair in evidence for chunk_id in pair}
    return Answer(request.text, tuple(results), stages, tuple(noted), evidence, places)


def _uses_graph(request: QueryRequest, options: QueryOptions) -> bool:
    hops = options.spread.hops if request.hops is None else request.hops
    return request.graph and hops > 0


def check_text(text: str) -> None:
    """Refuse a query that cannot be meant.

    Raises:
        UsageError: it is blank or over 100 KB.
    """
    if not text.strip():
        raise UsageError(
            "the query is empty", code="empty_query", hint='ragx query "your question"'
        )
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > MAX_QUERY_BYTES:
        raise UsageError(
            f"the query has {size} bytes, at most {MAX_QUERY_BYTES} are taken",
            code="query_too_long",
            hint="ask with the passage that matters",
        )


def _unembedded_warning(reader: Reader) -> list[str]:
    n, paths = reader.unembedded(4)
    if not n:
        return []
    return [
        f"{n} chunks have no vector and are found by their words only, in {', '.join(paths[:3])}"
        + (" and others" if len(paths) > 3 else "")
        + "; ragx index tries them again"
    ]


def _rank_files(
    reader: Reader,
    query: LexicalQuery,
    vector: NDArray[np.float32] | None,
    request: QueryRequest,
    options: QueryOptions,
    *,
    use_lexical: bool,
) -> _Ranked:
    enough = request.top if request.enough is None else request.enough
    depth = max(options.per_query_top, 5 * enough)
    match = lexical_match(reader, query) if use_lexical else ""
    wanted = max(enough, _LEAST_FILES)
    n_files = -1
    while True:
        seeds = find_seeds(reader, query, match, vector, depth=depth, definitions=request.rules)
        chunks = reader.chunks(sorted(seeds.candidates))
        hits = _hits(reader, seeds, chunks, options)
        if request.rules:
            hits = apply_rules(reader, query.plain, hits, chunks, options.rules)
        # What the searches find decides how deep they look, not what the graph adds.
        ranked = _folded(reader, query, hits, chunks, request, options)
        done = len(ranked.entries) >= wanted or seeds.exhausted or depth >= _MAX_DEPTH
        if not done:
            # Every file may have been found although most of its chunks have not.
            n_files = reader.counts().files if n_files < 0 else n_files
            found = {entry.path for entry in ranked.entries}.union(*ranked.also_in.values())
            done = len(found) >= n_files
        if done:
            break
        depth *= _WIDEN
    if not _uses_graph(request, options):
        return ranked.first(request.top)
    hits = spread(
        reader,
        hits,
        chunks,
        replace(
            options.spread,
            hops=options.spread.hops if request.hops is None else request.hops,
            ranked=options.method == "rrf",
        ),
        vector=vector,
        exclude=query.exclude,
        top=wanted,
    )
    if request.rules:
        hits = rule_heat(query.plain, hits, options.rules)
    return _folded(reader, query, hits, chunks, request, options).first(request.top)


def _folded(
    reader: Reader,
    query: LexicalQuery,
    hits: Sequence[Hit],
    chunks: dict[int, Chunk],
    request: QueryRequest,
    options: QueryOptions,
) -> _Ranked:
    """Hits with phrases first, equal texts as one, an entry for each file."""
    ranking = rank_hits(_with_phrases(reader, query, hits))
    kept, also_in = _collapse(ranking, chunks)
    entries = fold(
        kept,
        top=max(request.top, _LEAST_FILES),
        fold_weight=_auto_fold_weight if options.fold_weight == "auto" else options.fold_weight,
        capped=options.spread.cap and options.spread.formula == "capped",
    )
    return _Ranked(entries, chunks, also_in)


def _hits(
    reader: Reader, seeds: Seeds, chunks: Mapping[int, Chunk], options: QueryOptions
) -> list[Hit]:
    hits = []
    for chunk_id, parts in _fused(reader, seeds, chunks, options).items():
        chunk = chunks[chunk_id]
        raw = {
            name: side[chunk_id]
            for name, side in (("cosine", seeds.cosines), ("bm25", seeds.bm25))
            if chunk_id in side
        }
        hits.append(
            Hit(chunk_id, chunk.path, chunk.ordinal, fusion.total(parts), terms=parts, raw=raw)
        )
    return hits


def _with_phrases(reader: Reader, query: LexicalQuery, hits: Sequence[Hit]) -> list[Hit]:
    """Lift what holds a quoted phrase by more than any folded score: it comes first, none is lost.

    Heat has spread before, so that what a phrase adds to a seed is not passed on.
    """
    if not query.phrases:
        return list(hits)
    by_id = {hit.chunk_id: hit for hit in hits}
    # A fold gives at most the best hit and twice as much again; a hit has -1 at least.
    boost = max(_LEAST_PHRASE_BOOST, 3 + 3 * max((hit.score for hit in hits), default=0.0))
    for phrase in query.phrases:
        for chunk_id in reader.matching(phrase, by_id.keys()):
            hit = by_id[chunk_id]
            terms = {**hit.terms, "phrase": hit.terms.get("phrase", 0.0) + boost}
            by_id[chunk_id] = replace(hit, terms=terms, score=hit.score + boost)
    return list(by_id.values())


def _fused(
    reader: Reader, seeds: Seeds, chunks: Mapping[int, Chunk], options: QueryOptions
) -> dict[int, fusion.Terms]:
    if options.method == "rrf":
        ranks = fusion.reciprocal_ranks(
            {"vector": seeds.vector_ranking, "lexical": seeds.lexical_ranking},
            rrf_k=options.rrf_k,
        )
        return {**{key: {"lexical": 0.0} for key in seeds.named}, **ranks}
    return fusion.weighted_sum(
        seeds.cosines,
        seeds.bm25,
        scales=_scales(reader, seeds, options),
        vector_weight=_vector_weight(seeds, chunks, options),
    )


def _scales(reader: Reader, seeds: Seeds, options: QueryOptions) -> fusion.Scales:
    # The floor comes from the shortlists of the usual depth, however deep the searches went.
    usual = options.per_query_top
    near = list(seeds.nearest[:usual])
    near += [seeds.cosines[key] for key in seeds.lexical_ranking[:usual] if key in seeds.cosines]
    spread, n_pairs = reader.likeness_spread() if near else (0.0, 0)
    return fusion.Scales(
        floor=min(near, default=0.0),
        cosine_unit=fusion.cosine_unit(spread, n_pairs),
        bm25_unit=fusion.bm25_unit(reader.n_chunks(), max(seeds.bm25.values(), default=0.0)),
    )


def _vector_weight(
    seeds: Seeds, chunks: Mapping[int, Chunk], options: QueryOptions
) -> Callable[[int], float]:
    if not seeds.vector_ranking or not seeds.lexical_ranking:
        only = 1.0 if seeds.vector_ranking else 0.0
        return lambda _: only
    if options.vector_weight != "auto":
        fixed = float(options.vector_weight)
        return lambda _: fixed
    share = fusion.trust(seeds.vector_ranking, seeds.lexical_ranking, seeds.bm25)
    return lambda key: share * auto_weight(chunks[key].path)


def auto_weight(path: str) -> float:
    """Weight of a vector side that suits the text, for chunks of this kind of file."""
    return _AUTO_VECTOR_WEIGHT[kind_of(language_of(path))]


def _auto_fold_weight(path: str) -> float:
    return _AUTO_FOLD_WEIGHT[kind_of(language_of(path))]


def _collapse(
    ranking: Sequence[Hit], chunks: Mapping[int, Chunk]
) -> tuple[list[Hit], dict[int, tuple[str, ...]]]:
    """Keep the best hit of each text; the files of those that say the same go into its `also_in`.

    Near copies count between files, and as far down as files are shown: within a file, a passage
    that differs from another by a word is there for that word.
    """
    equal, copies = Repeats(near=False), Repeats()
    kept: list[Hit] = []
    others: dict[int, list[str]] = {}
    shown: set[str] = set()
    shown_by: dict[int, int] = {}
    for hit in ranking:
        text = chunks[hit.chunk_id].text
        owner = equal.first_of(hit.chunk_id, text)
        if owner == hit.chunk_id and len(shown) < _NEAR_FILES:
            owner = copies.first_of(hit.chunk_id, text, group=hit.path)
        owner = shown_by.setdefault(hit.chunk_id, shown_by.get(owner, owner))
        if owner == hit.chunk_id:
            kept.append(hit)
            shown.add(hit.path)
        elif hit.path != chunks[owner].path:
            others.setdefault(owner, []).append(hit.path)
    also_in = {owner: tuple(dict.fromkeys(sorted(paths))) for owner, paths in others.items()}
    return kept, also_in


def _file_result(
    root: Path,
    reader: Reader,
    entry: FileHit,
    ranked: _Ranked,
    request: QueryRequest,
    noted: list[str],
    *,
    shown: Set[str],
) -> FileResult:
    chunks = [ChunkResult(hit, ranked.chunks[hit.chunk_id]) for hit in entry.hits]
    also_in = {path for hit in entry.hits for path in ranked.also_in.get(hit.chunk_id, ())}
    state: Literal["current", "changed", "gone"] = "current"
    if request.texts and (request.before > 0 or request.after > 0):
        row = reader.file(entry.path)
        current = read_current(
            root,
            entry.path,
            content_hash=row.content_hash if row else "",
            encoding=row.encoding if row else "utf-8",
        )
        state = current.state
        if state == "current":
            chunks = [
                ChunkResult(
                    part.hit,
                    part.chunk,
                    lines_before(current.lines, part.chunk.line_start, request.before),
                    lines_after(current.lines, part.chunk.line_end, request.after),
                )
                for part in chunks
            ]
        else:
            noted.append(f"{entry.path} has {state} since it was indexed; ragx index brings it up")
    return FileResult(
        entry.path,
        entry.score,
        tuple(chunks),
        tuple(sorted(also_in - shown)),
        state,
        entry.terms,
    )

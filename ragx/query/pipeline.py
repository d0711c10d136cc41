"""The stages of a query, in order, once.

expand, seeds, fuse, rules, heat, rerank, collapse, fold, context
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ragx.algo import fusion
from ragx.algo.chunking.languages import kind_of, language_of
from ragx.algo.fold import CHUNKS_PER_FILE, STRETCH, fold
from ragx.algo.lexical import LexicalQuery, analyse, parse_query
from ragx.algo.ordering import rank_hits
from ragx.algo.repeats import Repeats
from ragx.errors import ConfigError, MissingDependency, ProviderError, RagxError, UsageError
from ragx.providers.base import Generator, Reranker
from ragx.query.context import ContextLines, FileText, lines_after, lines_before, read_current
from ragx.query.expand import ExpandRule, Reworded, Search, as_plain, reword
from ragx.query.filters import Filters, Scope, Temporal, resolve
from ragx.query.rerank import RerankRule, rerank
from ragx.query.rules import RuleOptions, apply_rules, rule_heat
from ragx.query.seeds import Seeds, find_seeds, lexical_match
from ragx.query.spread import SpreadOptions, spread
from ragx.query.temporal import TemporalRule, apply_dates, nearness_of
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
    "SecondStage",
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
    """Settings of the read side: `[fusion]`, `[scoring]`, `[expansion]` and `[temporal]`."""

    method: Literal["weighted", "rrf"] = "weighted"
    vector_weight: float | Literal["auto"] = "auto"
    rrf_k: float = 60.0
    per_query_top: int = 100
    fold_weight: float | Literal["auto"] = "auto"
    spread: SpreadOptions = field(default_factory=SpreadOptions)
    rules: RuleOptions = field(default_factory=RuleOptions)
    rerank: RerankRule = field(default_factory=RerankRule)
    expand: ExpandRule = field(default_factory=ExpandRule)
    temporal: TemporalRule = field(default_factory=TemporalRule)


@dataclass(frozen=True, slots=True)
class QueryRequest:
    """One question.

    Args:
        before, after: non-blank context lines wanted; `texts` off skips reading files.
        graph: whether heat spreads; `hops` overrides how far.
        rules: whether the named rules of ranking count besides the two searches.
        explain: whether the answer carries the evidence of the edges that heat took.
        expand: whether a chat model is asked for other wordings, which are searched, too.
        rerank: whether a cross-encoder reads the best chunks.
        enough: files that the searches have to find, and look deeper for; None for `top`. With
            fewer than `top`, the answer is that of a query for so many, and what else it found.
        chunks_per_file: chunks that an entry shows at most.
        filters: which files count; they bind before anything is searched.
        temporal: whether a document's date counts, and which end of time is wanted.
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
    expand: bool = False
    rerank: bool = False
    chunks_per_file: int = CHUNKS_PER_FILE
    filters: Filters = field(default_factory=Filters)
    temporal: Temporal = ""


@dataclass(frozen=True, slots=True)
class SecondStage:
    """Models beside the embedder; each is opened when its turn comes, and closed by its owner.

    A model that cannot be opened (`ProviderError`, `MissingDependency`) or fails costs a warning,
    not the answer.
    """

    generator: Callable[[], Generator] | None = None
    reranker: Callable[[], Reranker] | None = None


@dataclass(frozen=True, slots=True)
class ChunkResult:
    """A hit with its stored chunk and what stands around it on disk."""

    hit: Hit
    chunk: Chunk
    before: ContextLines | None = None
    after: ContextLines | None = None


@dataclass(frozen=True, slots=True)
class FileResult:
    """One file's entry; `also_in` lists files whose same text was folded into it.

    `date` and `date_source` are there if the question is about time: YYYY-MM-DD, and "name",
    "front_matter", "git" or "mtime".
    """

    path: str
    score: float
    chunks: tuple[ChunkResult, ...]
    also_in: tuple[str, ...] = ()
    state: Literal["current", "changed", "gone"] = "current"
    terms: Mapping[str, float] = field(default_factory=dict)
    date: str = ""
    date_source: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a query found, best file first.

    `evidence` holds, if it was asked for, what stands behind each hop of the hits, and `places`
    the chunks at its ends. `variants` are the texts that were searched besides the query.
    """

    query: str
    results: tuple[FileResult, ...]
    stages: Mapping[str, str]
    warnings: tuple[str, ...] = ()
    evidence: Mapping[tuple[int, int], Sequence[Evidence]] = field(default_factory=dict)
    places: Mapping[int, Chunk] = field(default_factory=dict)
    variants: tuple[str, ...] = ()


@dataclass(slots=True)
class _Asked:
    """A question on its way through the stages, what is used for it, and what there is to say."""

    request: QueryRequest
    options: QueryOptions
    query: LexicalQuery
    vector: NDArray[np.float32] | None = None
    use_lexical: bool = False
    scope: Scope = field(default_factory=Scope)
    searched: bool = False
    variants: tuple[str, ...] = ()
    searches: tuple[Search, ...] = ()
    expansion: str = "off"
    rerank: str = "off"
    noted: list[str] = field(default_factory=list)

    def failed(self, what: str, fault: RagxError) -> str:
        """Note why a stage is left out."""
        fix = f" ({fault.hint})" if fault.hint else ""
        self.noted.append(f"{what}: {fault.message}{fix}")
        return "failed"

    def answer(
        self,
        results: Sequence[FileResult] = (),
        evidence: Mapping[tuple[int, int], Sequence[Evidence]] | None = None,
        places: Mapping[int, Chunk] | None = None,
    ) -> Answer:
        """The answer, with the stages as they ran."""
        request, by_vector = self.request, self.vector is not None
        stages = {
            "expansion": self.expansion,
            "vector": "used" if by_vector else "off",
            "lexical": "used" if self.use_lexical and self.query.match else "off",
            "fusion": self.options.method if by_vector and self.use_lexical else "off",
            "rules": "used" if self.searched and request.rules else "off",
            "graph": "used" if self.searched and _uses_graph(request, self.options) else "off",
            "rerank": self.rerank,
        }
        return Answer(
            request.text,
            tuple(results),
            stages,
            tuple(self.noted),
            evidence or {},
            places or {},
            self.variants,
        )


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
    models: SecondStage | None = None,
) -> Answer:
    """Answer one question from one snapshot.

    Args:
        embed: gives the (d,) unit vector of a query; needed unless `mode` is "lexical" and None
            where the index was built without embeddings.
        models: what `expand` and `rerank` of the request need; without it they are off.
    Raises:
        UsageError: the query is empty, too long, or asks for vectors that the index lacks.
        ProviderError: the query could not be embedded.
    """
    check_text(request.text)
    asked = _Asked(request, options, parse_query(request.text))
    query, noted, models = asked.query, asked.noted, models or SecondStage()
    if not analyse(query.plain):
        what = "only says what to leave out" if query.exclude else "holds no word to look for"
        noted.append(f"the query {what}")
        return asked.answer()
    if not reader.n_chunks():
        noted.append("the index is empty: ragx index -v lists what is left out and why")
        return asked.answer()
    use_vector, asked.use_lexical = request.mode != "lexical", request.mode != "vector"
    if use_vector and embed is None:
        if request.mode == "vector":
            raise UsageError(
                "this index has no vectors: embeddings.provider is none",
                hint="use --mode lexical, or set embeddings.provider and run ragx index --full",
            )
        use_vector = False
    scope = resolve(reader, request.filters)
    if scope.paths is not None and not scope.paths:
        noted.append(scope.warning)
        return asked.answer()
    asked.scope = scope
    embed = embed if use_vector else None
    asked.vector = embed(query.plain) if embed is not None else None
    if asked.vector is not None:
        if len(request.text) > LONG_QUERY_CHARS:
            noted.append(
                f"the query has {len(request.text)} characters: the vector side uses the mean of"
                " its windows, the lexical side its rarest words"
            )
        noted += _unembedded_warning(reader)
    if request.expand and models.generator is not None:
        _expand(asked, models.generator, embed)
    asked.searched = True
    open_reranker = models.reranker if request.rerank else None
    if scope.paths is None:
        ranked = _rank_files(reader, asked, open_reranker)
    else:
        with closing(reader.within(scope.paths)) as allowed:
            ranked = _rank_files(allowed, asked, open_reranker)
    shown = {entry.path for entry in ranked.entries}
    results = [
        _file_result(root, reader, entry, ranked, request, noted, shown=shown)
        for entry in ranked.entries
    ]
    evidence: dict[tuple[int, int], list[Evidence]] = {}
    if request.explain:
        hops = {hop for entry in ranked.entries for hit in entry.hits for hop in hit.hops}
        evidence = reader.evidence({(hop.source, hop.target) for hop in hops})
    places = {chunk_id: ranked.chunks[chunk_id] for pair in evidence for chunk_id in pair}
    return asked.answer(results, evidence, places)


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


def _expand(
    asked: _Asked,
    open_generator: Callable[[], Generator],
    embed: Callable[[str], NDArray[np.float32]] | None,
) -> None:
    """Let a model reword the question; whatever fails leaves the question as it is."""
    query, rule = asked.query, asked.options.expand
    try:
        generator = open_generator()
    except (ProviderError, MissingDependency, ConfigError) as fault:
        _raise_if_the_users(fault)
        asked.expansion = asked.failed("not expanded", fault)
        return
    try:
        found = reword(query.plain, generator, replace(rule, hyde=rule.hyde and embed is not None))
        searches = tuple(_searches(found, query, embed, use_lexical=asked.use_lexical))
    except RagxError as fault:
        asked.expansion = asked.failed("not expanded", fault)
        return
    asked.variants, asked.searches, asked.expansion = found.texts, searches, "used"


def _searches(
    found: Reworded,
    query: LexicalQuery,
    embed: Callable[[str], NDArray[np.float32]] | None,
    *,
    use_lexical: bool,
) -> Iterator[Search]:
    for text in found.texts:
        plain = as_plain(text, query.exclude)
        if not use_lexical or text == found.passage:
            plain = replace(plain, alternatives=())
        yield Search(plain, embed(text) if embed is not None else None)


def _rank_files(
    reader: Reader, asked: _Asked, open_reranker: Callable[[], Reranker] | None
) -> _Ranked:
    request, options, query = asked.request, asked.options, asked.query
    enough = request.top if request.enough is None else request.enough
    depth = max(options.per_query_top, 5 * enough)
    match = lexical_match(reader, query) if asked.use_lexical else ""
    wanted = max(enough, _LEAST_FILES)
    n_files = -1
    while True:
        others = [_found_by(reader, search, depth, options) for search in asked.searches]
        seeds = find_seeds(
            reader,
            query,
            match,
            asked.vector,
            depth=depth,
            definitions=request.rules,
            others={chunk_id for scores, _ in others for chunk_id in scores},
        )
        chunks = reader.chunks(sorted(seeds.candidates))
        hits = _hits(reader, seeds, chunks, [scores for scores, _ in others], options)
        if request.rules:
            hits = apply_rules(reader, query.plain, hits, chunks, options.rules)
        # What the searches find decides how deep they look, not what the graph adds.
        ranked = _folded(reader, query, hits, chunks, request, options)
        exhausted = seeds.exhausted and all(over for _, over in others)
        done = len(ranked.entries) >= wanted or exhausted or depth >= _MAX_DEPTH
        if not done:
            # Every file may have been found although most of its chunks have not.
            if n_files < 0:
                n_files = reader.counts().files
                if asked.scope.paths is not None:
                    n_files = len(asked.scope.paths)
            found = {entry.path for entry in ranked.entries}.union(*ranked.also_in.values())
            done = len(found) >= n_files
        if done:
            break
        depth *= _WIDEN
    if _uses_graph(request, options):
        hits = spread(
            reader,
            hits,
            chunks,
            replace(
                options.spread,
                hops=options.spread.hops if request.hops is None else request.hops,
                ranked=options.method == "rrf",
            ),
            vector=asked.vector,
            exclude=query.exclude,
            top=wanted,
        )
        if request.rules:
            hits = rule_heat(query.plain, hits, options.rules)
    elif open_reranker is None and not request.temporal:
        return ranked.first(request.top)
    if open_reranker is not None:
        hits = _reranked(reader, asked, hits, chunks, open_reranker)
    if request.temporal:
        paths = {hit.path for hit in hits}
        nearness = nearness_of(reader, paths, request.temporal, options.temporal)
        hits = apply_dates(hits, nearness, options.temporal)
    return _folded(reader, query, hits, chunks, request, options).first(request.top)


def _raise_if_the_users(fault: RagxError) -> None:
    """Pass on what only the user can decide: whom to trust, and which key to give."""
    if fault.code in ("untrusted", "api_key_unset"):
        raise fault


def _found_by(
    reader: Reader, search: Search, depth: int, options: QueryOptions
) -> tuple[dict[int, float], bool]:
    """Scores of what another wording finds, its best 1, and whether there is no more to find."""
    match = lexical_match(reader, search.query)
    seeds = find_seeds(reader, search.query, match, search.vector, depth=depth)
    chunks = reader.chunks(sorted(seeds.candidates))
    fused = _fused(reader, seeds, chunks, options)
    return {key: max(0.0, fusion.total(terms)) for key, terms in fused.items()}, seeds.exhausted


def _reranked(
    reader: Reader,
    asked: _Asked,
    hits: Sequence[Hit],
    chunks: Mapping[int, Chunk],
    open_reranker: Callable[[], Reranker],
) -> list[Hit]:
    """Hits after the second look; whatever fails leaves them as they are."""
    if not hits:
        return list(hits)
    kept, owners = _collapse(rank_hits(_with_phrases(reader, asked.query, hits)), chunks)
    try:
        reranker = open_reranker()
    except (ProviderError, MissingDependency, ConfigError) as fault:
        _raise_if_the_users(fault)
        asked.rerank = asked.failed("not reranked", fault)
        return list(hits)
    rule = asked.options.rerank
    try:
        found = rerank(asked.query.plain, hits, kept, owners, chunks, reranker, rule)
    except RagxError as fault:
        asked.rerank = asked.failed("not reranked", fault)
        return list(hits)
    asked.rerank = "used"
    return found


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
    kept, owners = _collapse(ranking, chunks)
    entries = fold(
        kept,
        top=max(request.top, _LEAST_FILES),
        fold_weight=_auto_fold_weight if options.fold_weight == "auto" else options.fold_weight,
        capped=options.spread.cap and options.spread.formula == "capped",
        keep=request.chunks_per_file,
    )
    return _Ranked(entries, chunks, _also_in(ranking, owners, chunks))


def _hits(
    reader: Reader,
    seeds: Seeds,
    chunks: Mapping[int, Chunk],
    others: Sequence[Mapping[int, float]],
    options: QueryOptions,
) -> list[Hit]:
    fused = _fused(reader, seeds, chunks, options)
    if others:
        fused = fusion.with_others(
            fused,
            others,
            weight=options.expand.weight,
            to_one=options.method == "weighted",
        )
    hits = []
    for chunk_id, parts in fused.items():
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
) -> tuple[list[Hit], dict[int, int]]:
    """The best hit of each text, and for every hit the one that stands for its text.

    Near copies count between files, and as far down as files are shown: within a file, a passage
    that differs from another by a word is there for that word.
    """
    equal, copies = Repeats(near=False), Repeats()
    kept: list[Hit] = []
    shown: set[str] = set()
    owners: dict[int, int] = {}
    for hit in ranking:
        text = chunks[hit.chunk_id].text
        owner = equal.first_of(hit.chunk_id, text)
        if owner == hit.chunk_id and len(shown) < _NEAR_FILES:
            owner = copies.first_of(hit.chunk_id, text, group=hit.path)
        owner = owners.setdefault(hit.chunk_id, owners.get(owner, owner))
        if owner == hit.chunk_id:
            kept.append(hit)
            shown.add(hit.path)
    return kept, owners


def _also_in(
    ranking: Sequence[Hit], owners: Mapping[int, int], chunks: Mapping[int, Chunk]
) -> dict[int, tuple[str, ...]]:
    """Files of the hits that were folded into another file's, by the chunk that stands for them."""
    others: dict[int, set[str]] = {}
    for hit in ranking:
        owner = owners[hit.chunk_id]
        if hit.path != chunks[owner].path:
            others.setdefault(owner, set()).add(hit.path)
    return {owner: tuple(sorted(paths)) for owner, paths in others.items()}


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
    about_time = bool(request.temporal) or request.filters.about_time
    with_context = request.texts and (request.before > 0 or request.after > 0)
    row = reader.file(entry.path) if about_time or with_context else None
    if with_context:
        current = read_current(root, row, reader.chunks_of) if row else FileText(state="changed")
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
        row.day if row and about_time else "",
        row.day_source if row and about_time else "",
    )

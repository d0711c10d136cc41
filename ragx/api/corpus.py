"""A directory with its settings and its index: everything that is done with it.

Only `index` changes an index; `search` may write anew what is derived from it.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ragx.algo.excerpt import excerpt
from ragx.algo.lexical import is_exclusion, query_terms
from ragx.algo.locators import locator_document
from ragx.algo.locators import spoken as spoken_locator
from ragx.api.asking import (
    AskRequest,
    CitationState,
    GroundedAnswer,
    ask_model,
    citation_state,
    pack_evidence,
    parse_citation,
)
from ragx.api.kept import KeptEmbedder
from ragx.api.learned import recall, remember
from ragx.api.mapping import CorpusMap, draw_map
from ragx.api.options import (
    community_options,
    embedding_options,
    expansion_options,
    extract_limits,
    link_options,
    query_options,
    rerank_options,
    scan_options,
)
from ragx.api.reading import Reading, ReadRequest, check_range, read_chunk, read_lines
from ragx.config import Config, LoadedConfig, load_config, require_trust, untrusted
from ragx.documents.formats.registry import HINT as DOCUMENTS_HINT
from ragx.errors import (
    ConfigError,
    CorpusError,
    ExtractionError,
    IndexMissing,
    ManifestMismatch,
    MissingDependency,
    ProviderUnavailable,
    StoreError,
    UsageError,
)
from ragx.evaluation.compare import Comparison
from ragx.evaluation.draft import Draft, DraftedQuery, DraftRequest, check_request, draft
from ragx.evaluation.harness import Evaluation
from ragx.providers.base import Notice, no_notice
from ragx.query.context import (
    ContextLines,
    lines_after,
    lines_before,
    read_current,
    stored_lines,
)
from ragx.query.evidence import (
    CHUNKS_TRIED,
    FILES_TRIED,
    EvidencePack,
    EvidenceRequest,
    Passage,
    check_budget,
)
from ragx.query.filters import Filters, parse_filters
from ragx.query.overview import Lead, Overview, OverviewRequest, Topic, run_overview, summaries_of
from ragx.query.pipeline import (
    Answer,
    ChunkResult,
    FileResult,
    QueryRequest,
    SecondStage,
    check_text,
    run_query,
)
from ragx.store.base import Counts, Evidence, FileRow, Reader
from ragx.store.communities import Partition
from ragx.store.sqlite import SqliteReader
from ragx.types import BuildReport, Chunk, DryRun, Hop, Progress, Verification

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ragx.algo.chunking.base import ChunkOptions
    from ragx.documents.formats.base import ExtractLimits
    from ragx.indexing.build import BuildOptions
    from ragx.indexing.extract import DocumentReader
    from ragx.indexing.sample import Sample
    from ragx.indexing.scan import ScanOptions
    from ragx.providers.base import Embedder, EmbeddingOptions, Generator, Reranker

__all__ = [
    "DOCUMENTS_HINT",
    "Answer",
    "AskRequest",
    "ChunkResult",
    "ChunkView",
    "CitationState",
    "Community",
    "Comparison",
    "ContextLines",
    "Corpus",
    "CorpusMap",
    "Draft",
    "DraftRequest",
    "DraftedQuery",
    "EvalRequest",
    "Evaluation",
    "Evidence",
    "EvidencePack",
    "EvidenceRequest",
    "FileResult",
    "FileView",
    "Filters",
    "GroundedAnswer",
    "IndexRequest",
    "Lead",
    "Neighbour",
    "Overview",
    "OverviewRequest",
    "Passage",
    "QueryRequest",
    "ReadRequest",
    "Reading",
    "Status",
    "Surroundings",
    "Topic",
    "Way",
    "excerpt",
    "is_exclusion",
    "locator_document",
    "open_corpus",
    "parse_filters",
    "query_terms",
    "scan_options_of",
    "shorten",
    "spoken_locator",
]

# Without a tokenizer to ask or a model to suit: a few paragraphs, or a function.
_DEFAULT_CHUNK_TOKENS = 450
_LONGER_THAN_IDS = 17
_FRAME_BYTES = 2**31 - 1
_FAILED = ("failed", "unembedded")
_MANIFEST_HINT = "run: ragx index --full, or set the old value again"


@dataclass(frozen=True, slots=True)
class IndexRequest:
    """What an indexing run shall do; None leaves a limit as configured."""

    only: Sequence[str] = ()
    force: Sequence[str] = ()
    full: bool = False
    no_cache: bool = False
    edges_only: bool = False
    refresh_dates: bool = False
    confirmed: bool = False
    max_files: int | None = None
    max_file_bytes: int | None = None
    max_chunk_chars: int | None = None
    follow_symlinks: bool = False
    cwd: Path | None = None


@dataclass(frozen=True, slots=True)
class EvalRequest:
    """Judged questions, and the configurations to ask them under.

    Args:
        queries: JSON Lines, see `evaluation.qrels.parse_queries`; messages call them `name`.
        configs: names of `evaluation.harness.CONFIGS`; none means all that the index can tell
            apart.
        compare: two of them to compare question by question; one that is not among `configs` is
            asked, too.
        metric: of `evaluation.harness.METRICS`; what comparisons are by.
        limit: ask so many of the questions, evenly spread; None asks all.
    """

    queries: str
    name: str = "queries"
    configs: Sequence[str] = ()
    compare: tuple[str, str] | None = None
    metric: str = "ndcg_at_10"
    top: int = 100
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Status:
    """State of a corpus. `counts` is None while there is no index."""

    root: Path
    provider: str
    model: str
    counts: Counts | None
    new: int
    changed: int
    deleted: int
    skipped: Mapping[str, int]
    failed: tuple[FileRow, ...]
    unembedded: int
    communities: int
    communities_stale: bool
    settings_differ: str
    settings_fix: str
    untrusted: tuple[str, ...]
    limits: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class FileView:
    """One indexed file and its chunks in order."""

    row: FileRow
    chunks: tuple[Chunk, ...]

    @property
    def text(self) -> str:
        """The text that was indexed: of a document all of it, else its chunks, a line apart."""
        if self.row.extractor and self.chunks and self.chunks[0].locator:
            return "".join(stored_lines(self.chunks, self.row.encoding))
        return "\n".join(chunk.text for chunk in self.chunks)


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A chunk at the other end of an edge, and what the edge rests on."""

    chunk: Chunk
    edge: Evidence


@dataclass(frozen=True, slots=True)
class ChunkView:
    """One chunk and its edges, the strongest first; `degree` counts them all."""

    chunk: Chunk
    neighbours: tuple[Neighbour, ...]
    degree: int


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Lines around a chunk; None where there are none, or its file is another by now."""

    state: Literal["current", "changed", "gone"]
    before: ContextLines | None
    after: ContextLines | None


@dataclass(frozen=True, slots=True)
class Community:
    """A group of chunks that belong together; `chunk_ids` and `files` in order.

    `summary` holds whole sentences of its chunks, if it was asked for and there are any.
    """

    number: int
    label: str
    chunk_ids: tuple[int, ...]
    files: tuple[str, ...]
    summary: str = ""


@dataclass(frozen=True, slots=True)
class Way:
    """The strongest way between two places; strength 0 and no hops where none leads.

    `places` holds the chunks at the ends of every hop, or the one in which both places meet.
    """

    strength: float
    hops: tuple[Hop, ...]
    evidence: Mapping[tuple[int, int], Sequence[Evidence]]
    places: Mapping[int, Chunk]


@dataclass(frozen=True)
class Corpus:
    """A directory with its settings.

    Args:
        root: existing directory.
        loaded: its settings and where they came from.
        env: variables that may hold keys.
    """

    root: Path
    loaded: LoadedConfig
    env: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, loaded: LoadedConfig, env: Mapping[str, str] | None = None) -> Corpus:
        """The corpus of settings that were read already; `env` as in `open_corpus`."""
        return cls(loaded.root, loaded, dict(os.environ) if env is None else dict(env))

    @property
    def config(self) -> Config:
        """Settings in force."""
        return self.loaded.config

    def waiting_for_trust(self, section: str = "") -> tuple[str, ...]:
        """Settings, of one section or all, that do not count until the user trusts them."""
        return tuple(key for key in untrusted(self.loaded) if key.startswith(section))

    def index(
        self,
        request: IndexRequest,
        *,
        progress: Callable[[Progress], None] = lambda _: None,
        notice: Notice = no_notice,
        kept: KeptEmbedder | None = None,
    ) -> BuildReport:
        """Bring the index in step with the disk.

        Args:
            progress: called now and then from this thread.
            notice: told what is started on the way.
            kept: holds the embedder for further runs; without it, the run closes its own.
        Raises:
            RagxError: see `indexing.build.build`; nothing was committed then.
        """
        from ragx.indexing.build import build, rebuild_edges, refresh_dates
        from ragx.indexing.scan import check_root
        from ragx.store.sqlite import SqliteWriter

        check_root(self.root, confirmed=request.confirmed or self.loaded.config_path is not None)
        if request.edges_only or request.refresh_dates:
            SqliteReader(self.root).close()  # says so where there is no index to work on
        if request.refresh_dates:
            with closing(SqliteWriter(self.root)) as writer:
                report = refresh_dates(self.root, writer, link_options(self.config))
            self._count_communities(report, anew=False)
            return report
        with closing(SqliteWriter(self.root, rebuild=request.full or request.no_cache)) as writer:
            stored = writer.manifest()
            served = self._embedding_space({})

            def opened() -> Embedder | None:
                embedder = self.open_embedder(stored, notice=notice)
                if not (request.full or request.no_cache):
                    recall(self.root, served, embedder)
                return embedder

            embedder = (kept or KeptEmbedder()).take(opened)
            try:
                options = self._build_options(request, embedder)
                manifest = self._manifest(embedder, options)
                if request.edges_only:
                    report = rebuild_edges(writer, embedder, options, manifest, progress=progress)
                else:
                    report = build(
                        self.root, writer, embedder, options, manifest, progress=progress
                    )
            finally:
                if embedder is not None:
                    remember(self.root, served, embedder)
                    if kept is None:
                        embedder.close()
            try:
                writer.write_derived()
            except StoreError as fault:
                # The run is committed; whoever reads next makes these files again.
                report.notes.append((".ragx", f"{fault.message}; queries are slower until then"))
        self._count_communities(report, anew=request.full or request.no_cache or request.edges_only)
        return report

    def _count_communities(self, report: BuildReport, *, anew: bool) -> None:
        """Find the communities of an index made as a whole; after an update they can wait."""
        options = community_options(self.config)
        with closing(SqliteReader(self.root)) as reader:
            known = reader.known_communities(options)
            if anew or known is None:
                try:
                    known = reader.communities(options)
                except MissingDependency as fault:
                    known = None
                    report.notes.append((".ragx", f"no communities: {fault.message}"))
        report.communities_total = len(known.labels) if known else 0

    def dry_run(self, request: IndexRequest) -> DryRun:
        """Say what `index` would do: read and cut the files, embed and write nothing.

        Raises:
            RagxError: the tree cannot be scanned, or the index not read.
        """
        from ragx.indexing.dry_run import dry_run
        from ragx.indexing.scan import check_root

        if request.edges_only or request.refresh_dates:
            flag = "--edges-only" if request.edges_only else "--refresh-dates"
            raise UsageError(f"{flag} reads no file: there is nothing for --dry-run to tell")
        check_root(self.root, confirmed=request.confirmed or self.loaded.config_path is not None)
        reader = self._reader_if_any()
        embedder = None
        try:
            embedder = self.open_embedder(reader.manifest() if reader else {})
            options = self._build_options(request, embedder)
            manifest = self._manifest(embedder, options)
            return dry_run(self.root, reader, embedder, options, manifest)
        finally:
            if embedder is not None:
                embedder.close()
            if reader is not None:
                reader.close()

    def search(self, request: QueryRequest, *, notice: Notice = no_notice) -> Answer:
        """Answer a question from the last committed index.

        Args:
            notice: told what is started on the way.
        Raises:
            UsageError: the query cannot be meant, or asks for what the index lacks or a stage that
                is not enabled.
            IndexMissing, IndexDamaged, ManifestMismatch: the index does not serve.
            ConfigError: settings of a model do not serve, or wait for the user's trust.
            ProviderError: the query could not be embedded.
        """
        with self._answered(request, notice) as (_, answer):
            return answer

    def evidence(self, request: EvidenceRequest, *, notice: Notice = no_notice) -> EvidencePack:
        """Answer a question with whole passages within a budget of tokens.

        Args:
            notice: told what is started on the way.
        Raises:
            UsageError: as `search`, or the budget cannot be meant.
            RagxError: as `search`.
        """
        check_budget(request)
        query = replace(
            request.query,
            top=max(request.query.top, FILES_TRIED),
            chunks_per_file=CHUNKS_TRIED,
        )
        with self._answered(query, notice) as (reader, answer):
            return pack_evidence(reader, answer, request)

    def ask(
        self,
        request: AskRequest,
        *,
        notice: Notice = no_notice,
        on_evidence: Callable[[EvidencePack], None] = lambda _: None,
        on_text: Callable[[str], None] | None = None,
    ) -> GroundedAnswer:
        """Let the chat model of the settings answer from evidence, and check what it cites.

        Args:
            notice: told what is started on the way.
            on_evidence: called with what the model is shown, before it is asked.
            on_text: called with each piece of the answer as it comes.
        Raises:
            UsageError: as `evidence`; code "no_passage_fits" where all passages are too long.
            InputTooLong: evidence and question do not fit into the model's context.
            ProviderError: the model failed, or its reply holds no text.
            RagxError: as `evidence`, or no chat model is set.
        """
        generator = self._chat_model(notice)
        with closing(generator):
            pack = self.evidence(request.evidence, notice=notice)
            on_evidence(pack)
            return ask_model(generator, pack, request, on_text=on_text)

    def overview(self, request: OverviewRequest, *, notice: Notice = no_notice) -> Overview:
        """Answer a question about the corpus by its topics.

        Args:
            notice: told what is started on the way.
        Raises:
            UsageError: as `search`.
            RagxError: as `search`.
        """
        from ragx.store.summaries import WrittenSummaries

        check_text(request.text)
        self._require_enabled(expand=request.expand, rerank=False)
        with (
            closing(SqliteReader(self.root)) as reader,
            self._query_embedder(reader, wanted=request.wants_vector, notice=notice) as embedder,
            self._second_stage(notice) as models,
            closing(WrittenSummaries(self.root)) as written,
        ):
            return run_overview(
                reader,
                request,
                community_options(self.config),
                embed=_checked_embed(embedder, reader),
                open_generator=models.generator,
                written=written,
            )

    def _chat_model(self, notice: Notice) -> Generator:
        if self.config.expansion.provider == "none":
            raise ConfigError(
                "no chat model: expansion.provider is none",
                hint="ragx config set expansion.provider openai; then set expansion.model",
                code="no_chat_model",
            )
        return self.open_generator(notice=notice)

    def check_citations(self, ids: Sequence[str]) -> tuple[CitationState, ...]:
        """Say of each cited version of a file whether it is still the one on disk and in the index.

        Raises:
            UsageError: code "bad_citation": an id is none.
            IndexMissing, IndexDamaged: the index does not serve.
        """
        places = [parse_citation(name) for name in ids]
        with closing(SqliteReader(self.root)) as reader:
            return tuple(citation_state(self.root, reader, place) for place in places)

    @contextmanager
    def _answered(self, request: QueryRequest, notice: Notice) -> Iterator[tuple[Reader, Answer]]:
        """The answer to a question, and the snapshot that it came from."""
        check_text(request.text)
        self._require_enabled(expand=request.expand, rerank=request.rerank)
        with (
            closing(SqliteReader(self.root)) as reader,
            self._query_embedder(
                reader, wanted=request.mode != "lexical", notice=notice
            ) as embedder,
            self._second_stage(notice) as models,
        ):
            embed = _checked_embed(embedder, reader)
            options = query_options(self.config)
            answer = run_query(self.root, reader, request, options, embed=embed, models=models)
            yield reader, answer

    def _require_enabled(self, *, expand: bool, rerank: bool) -> None:
        """Refuse a stage that the settings have switched off."""
        for asked, flag, section, on in (
            (expand, "--expand", "expansion", self.config.expansion.enabled),
            (rerank, "--rerank", "rerank", self.config.rerank.enabled),
        ):
            if asked and not on:
                raise UsageError(
                    f"{flag}: {section}.enabled is false",
                    hint=f"ragx config set {section}.enabled true",
                    code="stage_off",
                )

    @contextmanager
    def _second_stage(self, notice: Notice) -> Iterator[SecondStage]:
        """The models beside the embedder, each opened once if it is needed, all closed after."""
        with ExitStack() as opened:
            yield SecondStage(
                generator=cache(
                    lambda: opened.enter_context(closing(self.open_generator(notice=notice)))
                ),
                reranker=cache(
                    lambda: opened.enter_context(closing(self.open_reranker(notice=notice)))
                ),
            )

    @contextmanager
    def _query_embedder(
        self, reader: Reader, *, wanted: bool, notice: Notice = no_notice
    ) -> Iterator[Embedder | None]:
        """The model whose vectors can be compared with the index's; None where none is wanted or
        set."""
        if not wanted:
            yield None
            return
        manifest = reader.manifest()
        self._require_same_space(manifest)
        embedder = self.open_embedder(manifest, notice=notice)
        try:
            yield embedder
        finally:
            if embedder is not None:
                embedder.close()

    def evaluate(
        self,
        request: EvalRequest,
        *,
        progress: Callable[[int, int], None] = lambda _done, _total: None,
        notice: Notice = no_notice,
    ) -> Evaluation:
        """Ask judged questions under several configurations, and measure the answers.

        Vectors of the questions are kept beside the index, so that asking again embeds nothing.

        Raises:
            UsageError: the questions are not what they must be, name files that are not in the
                index, or a configuration asks for what there is not or is not enabled.
            IndexMissing, IndexDamaged, ManifestMismatch: the index does not serve.
            ProviderError: a question could not be embedded, reworded or reranked.
        """
        from ragx.evaluation.harness import choose_configs, evaluate, needs_vectors, second_stages
        from ragx.evaluation.qrels import check_paths, every_kth, parse_queries
        from ragx.store.queries import QueryVectors
        from ragx.store.sqlite import index_directory

        topics = parse_queries(request.queries, name=request.name)
        vectors = self.config.embeddings.provider != "none"
        configs = choose_configs(request.configs, vectors=vectors)
        if request.compare is not None:
            configs = choose_configs((*configs, *request.compare), vectors=vectors)
        expand, rerank = second_stages(configs)
        self._require_enabled(expand=expand, rerank=rerank)
        with closing(SqliteReader(self.root)) as reader:
            indexed = {path for path, row in reader.files().items() if row.n_chunks}
            check_paths(topics, indexed)
            if request.limit is not None:
                topics = every_kth(topics, request.limit)
            with (
                self._query_embedder(
                    reader, wanted=needs_vectors(configs), notice=notice
                ) as embedder,
                self._second_stage(notice) as models,
            ):
                known = None
                if embedder is not None:
                    known = QueryVectors(
                        index_directory(self.root), embedder.fingerprint, reader.dimension()
                    )
                try:
                    return evaluate(
                        self.root,
                        reader,
                        topics,
                        configs,
                        query_options(self.config),
                        embed=_checked_embed(embedder, reader),
                        cache=known,
                        models=models,
                        top=request.top,
                        metric=request.metric,
                        pair=request.compare,
                        progress=progress,
                    )
                finally:
                    if known is not None:
                        known.save()

    def draft_queries(self, request: DraftRequest) -> Draft:
        """Draft queries for an evaluation from the indexed files and their history.

        Raises:
            UsageError: an unknown kind, or a limit below 1.
            IndexMissing, IndexDamaged: the index does not serve.
        """
        from ragx.evaluation.history import History, read_history

        check_request(request)
        with closing(SqliteReader(self.root)) as reader:
            history = read_history(self.root) if "commits" in request.kinds else History()
            return draft(reader, history, request)

    def verify(self) -> Verification:
        """Compare the index with one built from scratch out of the same embeddings.

        Raises:
            RagxError: there is no index, it cannot be read, or the tree cannot be indexed.
        """
        import tempfile

        from ragx.indexing.verify import verify
        from ragx.store.sqlite import SqliteWriter

        with (
            closing(SqliteReader(self.root)) as reader,
            tempfile.TemporaryDirectory(prefix="ragx-verify-") as scratch,
        ):
            manifest = reader.manifest()
            embedder = self.open_embedder(manifest)
            try:
                options = self._build_options(IndexRequest(), embedder)
                expected = self._manifest(embedder, options)
                fresh = SqliteWriter(self.root, directory=Path(scratch))
                return verify(self.root, reader, fresh, embedder, options, expected)
            finally:
                if embedder is not None:
                    embedder.close()

    def status(self) -> Status:
        """Counts, and how far the index is from disk and settings. Loads no model."""
        from ragx.algo.chunking.base import ChunkOptions
        from ragx.indexing.build import BuildOptions, make_plan
        from ragx.indexing.extract import DocumentReader
        from ragx.indexing.scan import scan

        reader = self._reader_if_any()
        try:
            rows = reader.files() if reader else {}
            scan_options = _scan_options(self.config, IndexRequest())
            seen = scan(self.root, scan_options)
            options = BuildOptions(scan_options, ChunkOptions())
            with DocumentReader(extract_limits(self.config), hasty=True) as documents:
                todo = make_plan(rows, seen, options, documents)
                changed = sum(
                    documents.expected(path, rows[path].extractor) != rows[path].extractor
                    or self._differs(path, rows[path], reader, documents)
                    for path in todo.paths("check")
                )
            has_vectors = self.config.embeddings.provider != "none"
            differ, fix = self._settings_differ(reader)
            known = reader.known_communities(community_options(self.config)) if reader else None
            skipped = Counter(item.reason for item in seen.skipped)
            skipped.update(
                row.status.removeprefix("skipped:")
                for row in rows.values()
                if row.status.startswith("skipped:")
            )
            return Status(
                root=self.root,
                provider=self.config.embeddings.provider,
                model=self._model_name(reader),
                counts=reader.counts() if reader else None,
                new=len(todo.paths("add")),
                changed=changed,
                deleted=len(todo.paths("delete")),
                skipped=dict(sorted(skipped.items())),
                failed=tuple(row for row in rows.values() if row.status in _FAILED),
                unembedded=reader.unembedded(0)[0] if reader and has_vectors else 0,
                communities=len(known.labels) if known else 0,
                communities_stale=reader is not None
                and (known is None or known.stamp != reader.graph_stamp()),
                settings_differ=differ,
                settings_fix=fix,
                untrusted=self.waiting_for_trust(),
                limits={
                    "max_file_bytes": scan_options.max_file_bytes,
                    "max_document_bytes": scan_options.max_document_bytes,
                    "max_files": scan_options.max_files,
                    "max_chunk_chars": self.config.chunking.max_chunk_chars,
                },
            )
        finally:
            if reader:
                reader.close()

    def chunk(self, chunk_id: int, *, most: int | None = None) -> ChunkView:
        """One stored chunk and its edges, the strongest first.

        Args:
            most: so many of its edges at most.
        Raises:
            UsageError: code "no_such_chunk".
        """
        with closing(SqliteReader(self.root)) as reader:
            chunk = _known_chunk(reader, chunk_id)
            near, degree = _neighbours(reader, chunk_id, most)
            return ChunkView(chunk, tuple(near), degree)

    def surroundings(self, chunk_id: int, n_lines: int) -> Surroundings:
        """The lines around a chunk, if its file is still the one that was indexed.

        Args:
            n_lines: non-blank lines wanted on either side.
        Raises:
            UsageError: code "no_such_chunk".
        """
        with closing(SqliteReader(self.root)) as reader:
            chunk = _known_chunk(reader, chunk_id)
            _, row = self._file_row(reader, chunk.path, self.root)
            found = read_current(self.root, row, reader.chunks_of)
            return Surroundings(
                found.state,
                lines_before(found.lines, chunk.line_start, n_lines),
                lines_after(found.lines, chunk.line_end, n_lines),
            )

    def map(self) -> CorpusMap:
        """The graph as a map, communities found now if it has changed.

        Raises:
            IndexMissing, IndexDamaged: the index does not serve.
        """
        graph = self.config.graph
        with closing(SqliteReader(self.root)) as reader:
            return draw_map(
                self.root,
                reader,
                community_options(self.config),
                edge_source=graph.edge_source,
                subchunk_size_tokens=graph.subchunk_size_tokens,
                embedding_model=self._model_name(reader),
            )

    def stamp(self) -> str:
        """What changes whenever the index does, or what a map is drawn by."""
        with closing(SqliteReader(self.root)) as reader:
            options = community_options(self.config)
            return f"{reader.generation}-{reader.graph_stamp()}-{options}"

    def communities(self, *, summaries: bool = False) -> tuple[Community, ...]:
        """Communities of the graph, the largest first; found now if the graph has changed.

        Args:
            summaries: whether to say what those of several chunks are about.
        Raises:
            MissingDependency: leidenalg or igraph is not installed.
        """
        with closing(SqliteReader(self.root)) as reader:
            partition = reader.communities(community_options(self.config))
            members = _members(reader, partition)
            paths = reader.chunk_paths()
            asked = [number for number, ids in enumerate(members) if summaries and len(ids) > 1]
            about = summaries_of(reader, community_options(self.config), asked)
        return tuple(
            Community(
                number, label, tuple(members[number]), tuple(dict.fromkeys(
                    paths[chunk_id] for chunk_id in members[number]
                )),
                about.get(number, ""),
            )
            for number, label in enumerate(partition.labels)
        )  # fmt: skip

    def community(self, number: int) -> tuple[Community, tuple[Chunk, ...]]:
        """One community with its chunks, in order of path and position.

        Raises:
            UsageError: code "no_such_community".
        """
        with closing(SqliteReader(self.root)) as reader:
            partition = reader.communities(community_options(self.config))
            if not 0 <= number < len(partition.labels):
                raise UsageError(
                    f"no community {number}: there are {len(partition.labels)}, counted from 0",
                    code="no_such_community",
                    hint="ragx inspect communities lists them",
                )
            ids = _members(reader, partition)[number]
            found = reader.chunks(ids)
            about = summaries_of(reader, community_options(self.config), [number])
        chunks = tuple(found[chunk_id] for chunk_id in ids)
        files = tuple(dict.fromkeys(chunk.path for chunk in chunks))
        return Community(number, partition.labels[number], tuple(ids), files, about[number]), chunks

    def path(self, one: str, other: str, cwd: Path) -> Way:
        """The strongest way through the graph between two places: chunk ids or files.

        Raises:
            UsageError: code "no_such_chunk" or "no_such_file".
        """
        with closing(SqliteReader(self.root)) as reader:
            ends = [self._chunk_ids(reader, name, cwd) for name in (one, other)]
            return _strongest_way(reader, *ends)

    def path_between(self, one: int, other: int) -> Way:
        """The strongest way through the graph between two chunks.

        Raises:
            UsageError: code "no_such_chunk".
        """
        with closing(SqliteReader(self.root)) as reader:
            ends = [[_known_chunk(reader, chunk_id).chunk_id] for chunk_id in (one, other)]
            return _strongest_way(reader, *ends)

    def _chunk_ids(self, reader: Reader, name: str, cwd: Path) -> list[int]:
        """A chunk by its number, or all chunks of a file; a file of that very name wins."""
        if name.isdecimal() and reader.file(name) is None:
            return [_known_chunk(reader, int(name[:_LONGER_THAN_IDS])).chunk_id]
        path, _ = self._file_row(reader, name, cwd)
        return [chunk.chunk_id for chunk in reader.chunks_of(path)]

    def file(self, name: str, cwd: Path) -> FileView:
        """One indexed file with its chunks.

        Raises:
            UsageError: code "no_such_file"; the nearest names are in the hint.
        """
        with closing(SqliteReader(self.root)) as reader:
            path, row = self._file_row(reader, name, cwd)
            return FileView(row, tuple(reader.chunks_of(path)))

    def read(self, request: ReadRequest) -> Reading:
        """A chunk, or lines of an indexed file, of the version in the index. Loads no model.

        Raises:
            UsageError: there is no such chunk, file, version or range, or the file is not indexed.
            IndexMissing, IndexDamaged: the index does not serve.
        """
        check_range(request)
        with closing(SqliteReader(self.root)) as reader:
            if request.chunk_id is None:
                path, row = self._file_row(reader, request.path, request.cwd or self.root)
                return read_lines(self.root, row, reader.chunks_of(path), request)
            chunk = _known_chunk(reader, request.chunk_id)
            _, row = self._file_row(reader, chunk.path, self.root)
            return read_chunk(self.root, row, chunk, request)

    def _file_row(self, reader: Reader, name: str, cwd: Path) -> tuple[str, FileRow]:
        path = self._indexed_path(reader, name, cwd)
        row = reader.file(path)
        if row is None:
            raise UsageError(
                f"{name} is not in the index",
                code="no_such_file",
                hint=_nearest(path, reader.files()),
            )
        return path, row

    def _indexed_path(self, reader: Reader, name: str, cwd: Path) -> str:
        """A path as results give it, or as the user sees it from where they stand."""
        from ragx.indexing.scan import resolve_named

        if not _is_unicode(name):
            return name.encode("utf-8", "backslashreplace").decode()  # no such name is stored
        if reader.file(name) is not None:
            return name
        return resolve_named(self.root, [name], cwd)[0].rstrip("/")

    def _build_options(self, request: IndexRequest, embedder: Embedder | None) -> BuildOptions:
        from ragx.indexing.build import BuildOptions
        from ragx.indexing.scan import resolve_named

        if (request.full or request.no_cache) and request.only:
            raise UsageError(
                f"--{'full' if request.full else 'no-cache'} rebuilds the whole index and takes no"
                " file names",
                hint="index some files anew with --force FILE",
            )
        if request.edges_only and (
            request.full or request.no_cache or request.only or request.force
        ):
            raise UsageError(
                "--edges-only works on what is stored: it goes with no file, --full, --no-cache or"
                " --force",
                hint="ragx index --full makes the edges anew, too",
            )
        cwd = request.cwd or self.root
        return BuildOptions(
            scan=_scan_options(self.config, request),
            chunking=self._chunking(request, embedder),
            linking=link_options(self.config),
            documents=_extract_limits(self.config, request),
            part_tokens=self.config.graph.subchunk_size_tokens,
            only=resolve_named(self.root, request.only, cwd) if request.only else None,
            force=resolve_named(self.root, request.force, cwd),
            # To embed anew what has not changed, every file has to be gone through.
            full=request.full or request.no_cache,
            no_cache=request.no_cache,
        )

    def _manifest(self, embedder: Embedder | None, options: BuildOptions) -> dict[str, str]:
        from ragx.indexing.build import expected_manifest

        return expected_manifest(
            fingerprint=embedder.fingerprint if embedder else "none",
            provider=self.config.embeddings.provider,
            model=embedder.model if embedder else "",
            mode=str(getattr(embedder, "mode", "")),
            max_tokens=_measured(embedder),
            chunking=options.chunking,
            linking=options.linking,
            part_tokens=options.part_tokens,
        )

    def _reader_if_any(self) -> SqliteReader | None:
        try:
            return SqliteReader(self.root)
        except IndexMissing:
            return None

    def _chunking(self, request: IndexRequest, embedder: Embedder | None) -> ChunkOptions:
        from ragx.algo.chunking.base import ChunkOptions

        chunking = self.config.chunking
        size = chunking.size_tokens
        if size == "auto":
            size = embedder.default_chunk_tokens if embedder else _DEFAULT_CHUNK_TOKENS
        return ChunkOptions(
            size_tokens=int(size),
            overlap=chunking.overlap,
            max_chunk_chars=request.max_chunk_chars or chunking.max_chunk_chars,
        )

    def open_embedder(
        self, manifest: Mapping[str, str], *, notice: Notice = no_notice
    ) -> Embedder | None:
        """The model of the settings, with what an index made with it has fixed.

        Args:
            manifest: of that index; empty for a new one.
            notice: told what is started on the way.
        Returns:
            None for provider "none"; else to be closed by the caller.
        Raises:
            ConfigError: settings that do not serve, or wait for the user's trust.
            MissingDependency: the provider's library is not installed.
        """
        from ragx.providers.registry import open_embedder

        require_trust(self.loaded, "embeddings")
        options = embedding_options(self.config, self.env, manifest, root=self.root)
        return open_embedder(options, notice=notice)

    def open_reranker(self, *, notice: Notice = no_notice) -> Reranker:
        """The reranker of the settings, enabled or not; to be closed by the caller.

        Args:
            notice: told what is started on the way.
        Raises:
            ConfigError: settings that do not serve, or wait for the user's trust.
            MissingDependency: the provider's library is not installed.
        """
        from ragx.providers.registry import open_reranker

        require_trust(self.loaded, "rerank")
        options = rerank_options(self.config, self.env, root=self.root)
        return open_reranker(options, notice=notice)

    def open_generator(self, *, notice: Notice = no_notice) -> Generator:
        """The chat model of the settings, enabled or not; to be closed by the caller.

        Args:
            notice: told what is started on the way.
        Raises:
            ConfigError: settings that do not serve, or wait for the user's trust.
        """
        from ragx.providers.registry import open_generator

        require_trust(self.loaded, "expansion")
        options = expansion_options(self.config, self.env, root=self.root)
        return open_generator(options, notice=notice)

    def manifest(self) -> dict[str, str]:
        """What the index was built with; empty where there is none.

        Raises:
            StoreError: there is one that cannot be read.
        """
        reader = self._reader_if_any()
        if reader is None:
            return {}
        with closing(reader):
            return reader.manifest()

    def files_from_the_future(self, margin_s: float) -> int:
        """How many indexed files were changed later than now, by this machine's clock.

        Args:
            margin_s: seconds that clocks of other machines may be ahead.
        """
        import time

        latest = time.time_ns() + int(margin_s * 1e9)
        with closing(SqliteReader(self.root)) as reader:
            return sum(row.mtime_ns > latest for row in reader.files().values())

    def compare_sample(self, size: int) -> Sample:
        """Cut some unchanged files anew and compare them with what is stored of them.

        Raises:
            RagxError: there is no index, or the model's settings do not serve.
        """
        from ragx.indexing.extract import DocumentReader
        from ragx.indexing.sample import compare_sample
        from ragx.providers.registry import open_embedder

        require_trust(self.loaded, "embeddings")
        with closing(SqliteReader(self.root)) as reader:
            embedder = open_embedder(self._embedding_space(reader.manifest()))
            try:
                options = self._build_options(IndexRequest(), embedder)
                with DocumentReader(options.documents) as documents:
                    preparer = options.preparer(embedder)
                    return compare_sample(self.root, reader, preparer, documents, size=size)
            finally:
                if embedder is not None:
                    embedder.close()

    def _embedding_space(self, manifest: Mapping[str, str]) -> EmbeddingOptions:
        """Settings that name a model; nothing can be asked with them."""
        return embedding_options(self.config, self.env, manifest, root=self.root, with_key=False)

    def _require_same_space(self, manifest: Mapping[str, str]) -> None:
        """Stop a query whose vectors would not belong to the index's space. Loads no model."""
        from ragx.providers.registry import fingerprint

        require_trust(self.loaded, "embeddings")

        options = self._embedding_space(manifest)
        now = fingerprint(options)
        old = manifest.get("embeddings_fingerprint", "")
        if now == old:
            return
        key, before, after = _first_difference(manifest, options.provider, options.model, old, now)
        raise ManifestMismatch(
            f"the index was built with {key} {before!r}, now it is {after!r}",
            hint=_MANIFEST_HINT,
            details={"key": key, "old": before, "new": after},
        )

    def _model_name(self, reader: Reader | None) -> str:
        if self.config.embeddings.model or reader is None:
            return self.config.embeddings.model
        return reader.manifest().get("embeddings_model", "")

    def _settings_differ(self, reader: Reader | None) -> tuple[str, str]:
        """The first setting that an incremental run would stop at, and the command that helps."""
        if reader is None or self.waiting_for_trust("embeddings"):
            return "", ""
        from ragx.indexing.build import check_manifest, expected_manifest
        from ragx.providers.registry import fingerprint

        manifest = reader.manifest()
        options = self._embedding_space(manifest)
        size = self.config.chunking.size_tokens
        chunking = self._chunking(IndexRequest(), None)
        if size == "auto":
            # What suits the model is known once it is loaded; the index remembers the outcome.
            stored = manifest.get("chunking_size_tokens", str(chunking.size_tokens))
            chunking = replace(chunking, size_tokens=int(stored))
        expected = expected_manifest(
            fingerprint=fingerprint(options),
            provider=options.provider,
            model=manifest.get("embeddings_model", ""),
            mode=manifest.get("embeddings_mode", ""),
            max_tokens=options.max_tokens,
            chunking=chunking,
            linking=link_options(self.config),
            part_tokens=self.config.graph.subchunk_size_tokens,
        )
        try:
            check_manifest(manifest, expected)
        except ManifestMismatch as fault:
            return fault.message, fault.hint.partition(" rebuilds")[0]
        return "", ""

    def _differs(
        self, path: str, row: FileRow, reader: SqliteReader | None, documents: DocumentReader
    ) -> bool:
        from ragx.documents.read import read_inside
        from ragx.indexing.extract import is_of_the_document
        from ragx.indexing.prepare import content_hash

        if row.status in _FAILED and not is_of_the_document(row.code):
            return True
        try:
            raw = read_inside(self.root, path)[0]
        except (OSError, ExtractionError):
            return True
        digest = content_hash(raw)
        if row.status in _FAILED:
            # Known to fail as it is now: another run would bring nothing in.
            key = documents.key(documents.claim(path, raw), digest)
            return reader is None or reader.extraction(key) is None
        return digest != row.content_hash


def open_corpus(
    root: Path, *, env: Mapping[str, str] | None = None, home: Path | None = None
) -> Corpus:
    """Read the settings of a directory; nothing is made or changed.

    Args:
        env: variables for keys and addresses; None takes the process's own.
        home: directory of `.ragxrc`; None reads none.
    Raises:
        CorpusError: there is no such directory.
        ConfigError: a settings file is wrong.
    """
    if not root.is_dir():
        raise CorpusError(f"{root} is not a directory", code="no_directory")
    variables = dict(os.environ) if env is None else dict(env)
    return Corpus.of(load_config(root, env=variables, home=home), variables)


def shorten(text: str, max_chars: int) -> str:
    """At most `max_chars` characters from the start, never cut inside what reads as one."""
    from ragx.algo.chunking.graphemes import boundary_at_or_before

    return text if len(text) <= max_chars else text[: boundary_at_or_before(text, max_chars, 0)]


def _measured(embedder: Embedder | None) -> int | None:
    """The limit of a model that had to be asked for it; others have theirs in their name."""
    from ragx.providers.limits import MeasuresLimit

    if embedder is None or not isinstance(embedder, MeasuresLimit):
        return None
    return embedder.max_tokens


def _scan_options(config: Config, request: IndexRequest) -> ScanOptions:
    options = scan_options(config)
    return replace(
        options,
        follow_symlinks=options.follow_symlinks or request.follow_symlinks,
        max_files=options.max_files if request.max_files is None else request.max_files,
        max_file_bytes=(
            options.max_file_bytes if request.max_file_bytes is None else request.max_file_bytes
        ),
        max_document_bytes=(
            options.max_document_bytes if request.max_file_bytes is None else request.max_file_bytes
        ),
    )


def _extract_limits(config: Config, request: IndexRequest) -> ExtractLimits:
    limits = extract_limits(config)
    if request.max_file_bytes is None:
        return limits
    # Two lengths of four bytes stand before what crosses to the process that reads it.
    return replace(limits, max_bytes=min(request.max_file_bytes or _FRAME_BYTES, _FRAME_BYTES))


def scan_options_of(corpus: Corpus, request: IndexRequest) -> ScanOptions:
    """What of a corpus counts in a run."""
    return _scan_options(corpus.config, request)


def _checked_embed(
    embedder: Embedder | None, reader: Reader
) -> Callable[[str], NDArray[np.float32]] | None:
    """Embed a query and make sure that it can be compared with what is stored."""
    if embedder is None:
        return None

    def embed(text: str) -> NDArray[np.float32]:
        try:
            vector = embedder.embed_query(text)
        except ProviderUnavailable as fault:
            fault.hint = f"{fault.hint}; words alone need no model: ragx query --mode lexical"
            raise
        stored = reader.dimension()
        if stored and len(vector) != stored:
            raise ManifestMismatch(
                f"the model gives vectors of {len(vector)} numbers, the index holds {stored}",
                # Cached vectors are of the old width, and go by the same name.
                hint="ragx index --no-cache embeds everything anew",
                details={"key": "dimension", "old": stored, "new": len(vector)},
            )
        return vector

    return embed


def _first_difference(
    manifest: Mapping[str, str], provider: str, model: str, old: str, new: str
) -> tuple[str, str, str]:
    for key, stored, now in (
        ("embeddings.provider", manifest.get("embeddings_provider", ""), provider),
        ("embeddings.model", manifest.get("embeddings_model", ""), model),
    ):
        if now and stored != now:
            return key, stored, now
    return "the embedding", old, new


def _known_chunk(reader: Reader, chunk_id: int) -> Chunk:
    chunk = reader.chunks([chunk_id]).get(chunk_id)
    if chunk is None:
        raise UsageError(
            f"no chunk {chunk_id} in the index",
            code="no_such_chunk",
            hint="ids change with the text they stand for: query again, or ragx inspect file",
        )
    return chunk


def _neighbours(reader: Reader, chunk_id: int, most: int | None) -> tuple[list[Neighbour], int]:
    """Edges of a chunk, the strongest first, ties by place; and how many there are."""
    graph = reader.graph()
    node = int(graph.nodes_of([chunk_id])[0])
    if node < 0:
        return [], 0
    row = slice(int(graph.indptr[node]), int(graph.indptr[node + 1]))
    targets = graph.targets[row]
    if most is not None and len(targets) > most:  # what an edge rests on takes time to look up
        targets = targets[(-graph.weights[row]).argsort(kind="stable")[:most]]
    ids = list(dict.fromkeys(graph.ids[targets].tolist()))
    chunks = reader.chunks(ids)
    evidence = reader.evidence({(chunk_id, other) for other in ids})
    found = [Neighbour(chunks[pair[1]], edge) for pair, edges in evidence.items() for edge in edges]
    found.sort(key=lambda item: (-item.edge.weight, item.chunk.path, item.chunk.ordinal))
    return found[:most], row.stop - row.start


def _strongest_way(reader: Reader, ones: Sequence[int], others: Sequence[int]) -> Way:
    """The strongest way from any of some chunks to any of others."""
    from ragx.algo.heat import hops_of
    from ragx.algo.paths import strongest_path

    graph = reader.graph()
    ends = [graph.nodes_of(ids).tolist() for ids in (ones, others)]
    found = strongest_path(graph, *ends)
    if found is None:
        return Way(0.0, (), {}, {})
    strength, steps = found
    hops = hops_of(graph, steps)
    evidence = reader.evidence({(hop.source, hop.target) for hop in hops})
    shared = sorted(set(ends[0]) & set(ends[1]))[:1]
    ids = {chunk_id for hop in hops for chunk_id in (hop.source, hop.target)}
    ids |= {int(graph.ids[node]) for node in shared}
    return Way(strength, hops, evidence, reader.chunks(sorted(ids)))


def _members(reader: Reader, partition: Partition) -> list[list[int]]:
    """Chunk ids of each community, in order of path and position."""
    members: list[list[int]] = [[] for _ in partition.labels]
    for chunk_id, number in zip(reader.graph().ids.tolist(), partition.of, strict=True):
        members[number].append(chunk_id)
    return members


def _is_unicode(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _nearest(path: str, rows: Mapping[str, FileRow]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(path, rows, n=3, cutoff=0.5)
    if near:
        return f"did you mean {' or '.join(near)}?"
    return "ragx index -v lists what is left out and why"

"""The library: open a corpus, bring its index up to date, ask it, look into it.

    corpus = open_corpus(Path("notes"))
    corpus.index(IndexRequest())
    answer = corpus.search(QueryRequest("why did we switch build tools?"))

Everything a shell shows comes from here. Nothing here prints. Only `index` changes an index;
`search` may write anew what is derived from it.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ragx.algo.excerpt import excerpt
from ragx.algo.lexical import is_exclusion, query_terms
from ragx.config import Config, LoadedConfig, load_config, resolve_api_key
from ragx.errors import (
    CorpusError,
    ExtractionError,
    IndexMissing,
    ManifestMismatch,
    MissingDependency,
    StoreError,
    UsageError,
)
from ragx.evaluation.compare import Comparison
from ragx.evaluation.draft import Draft, DraftedQuery, DraftRequest, check_request, draft
from ragx.evaluation.harness import Evaluation
from ragx.query.context import ContextLines
from ragx.query.pipeline import (
    Answer,
    ChunkResult,
    FileResult,
    QueryOptions,
    QueryRequest,
    check_text,
    run_query,
)
from ragx.query.rules import RuleOptions
from ragx.query.spread import SpreadOptions
from ragx.store.base import Counts, Evidence, FileRow, LinkOptions, Reader
from ragx.store.communities import CommunityOptions, Partition
from ragx.store.sqlite import SqliteReader
from ragx.types import BuildReport, Chunk, DryRun, Hop, Progress, Verification

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ragx.algo.chunking.base import ChunkOptions
    from ragx.indexing.build import BuildOptions
    from ragx.indexing.scan import ScanOptions
    from ragx.providers.base import Embedder, EmbeddingOptions

__all__ = [
    "Answer",
    "ChunkResult",
    "ChunkView",
    "Community",
    "Comparison",
    "ContextLines",
    "Corpus",
    "Draft",
    "DraftRequest",
    "DraftedQuery",
    "EvalRequest",
    "Evaluation",
    "Evidence",
    "FileResult",
    "FileView",
    "IndexRequest",
    "Neighbour",
    "QueryRequest",
    "Status",
    "Way",
    "excerpt",
    "is_exclusion",
    "open_corpus",
    "query_terms",
    "shorten",
]

# Without a tokenizer to ask or a model to suit: a few paragraphs, or a function.
_DEFAULT_CHUNK_TOKENS = 450
_LONGER_THAN_IDS = 17
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
    limits: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class FileView:
    """One indexed file and its chunks in order."""

    row: FileRow
    chunks: tuple[Chunk, ...]


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A chunk at the other end of an edge, and what the edge rests on."""

    chunk: Chunk
    edge: Evidence


@dataclass(frozen=True, slots=True)
class ChunkView:
    """One chunk and its edges, the strongest first."""

    chunk: Chunk
    neighbours: tuple[Neighbour, ...]


@dataclass(frozen=True, slots=True)
class Community:
    """A group of chunks that belong together; `chunk_ids` and `files` in order."""

    number: int
    label: str
    chunk_ids: tuple[int, ...]
    files: tuple[str, ...]


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

    def index(
        self,
        request: IndexRequest,
        *,
        progress: Callable[[Progress], None] = lambda _: None,
    ) -> BuildReport:
        """Bring the index in step with the disk.

        Raises:
            RagxError: see `indexing.build.build`; nothing was committed then.
        """
        from ragx.indexing.build import build, rebuild_edges
        from ragx.indexing.scan import check_root
        from ragx.store.sqlite import SqliteWriter

        check_root(self.root, confirmed=request.confirmed or self.loaded.config_path is not None)
        if request.edges_only:
            SqliteReader(self.root).close()  # says so where there is no index to work on
        with closing(SqliteWriter(self.root, rebuild=request.full or request.no_cache)) as writer:
            embedder = self._embedder(writer.manifest())
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
        options = self._community_options()
        with closing(SqliteReader(self.root)) as reader:
            known = reader.known_communities(options)
            if anew or known is None:
                try:
                    known = reader.communities(options)
                except MissingDependency as fault:
                    known = None
                    report.notes.append((".ragx", f"no communities: {fault.message}"))
        report.communities_total = len(known.labels) if known else 0

    def _community_options(self) -> CommunityOptions:
        section = self.config.communities
        return CommunityOptions(resolution=section.resolution, seed=section.seed)

    def dry_run(self, request: IndexRequest) -> DryRun:
        """Say what `index` would do: read and cut the files, embed and write nothing.

        Raises:
            RagxError: the tree cannot be scanned, or the index not read.
        """
        from ragx.indexing.dry_run import dry_run
        from ragx.indexing.scan import check_root

        if request.edges_only:
            raise UsageError("--edges-only reads no file: there is nothing for --dry-run to tell")
        check_root(self.root, confirmed=request.confirmed or self.loaded.config_path is not None)
        reader = self._reader_if_any()
        embedder = None
        try:
            embedder = self._embedder(reader.manifest() if reader else {})
            options = self._build_options(request, embedder)
            manifest = self._manifest(embedder, options)
            return dry_run(self.root, reader, embedder, options, manifest)
        finally:
            if embedder is not None:
                embedder.close()
            if reader is not None:
                reader.close()

    def search(self, request: QueryRequest) -> Answer:
        """Answer a question from the last committed index.

        Raises:
            UsageError: the query cannot be meant, or asks for what the index lacks.
            IndexMissing, IndexDamaged, ManifestMismatch: the index does not serve.
            ProviderError: the query could not be embedded.
        """
        check_text(request.text)
        with (
            closing(SqliteReader(self.root)) as reader,
            self._query_embedder(reader, wanted=request.mode != "lexical") as embedder,
        ):
            embed = _checked_embed(embedder, reader)
            return run_query(self.root, reader, request, self._query_options(), embed=embed)

    @contextmanager
    def _query_embedder(self, reader: Reader, *, wanted: bool) -> Iterator[Embedder | None]:
        """The model whose vectors can be compared with the index's; None where none is wanted or
        set."""
        if not wanted:
            yield None
            return
        manifest = reader.manifest()
        self._require_same_space(manifest)
        embedder = self._embedder(manifest)
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
    ) -> Evaluation:
        """Ask judged questions under several configurations, and measure the answers.

        Vectors of the questions are kept beside the index, so that asking again embeds nothing.

        Raises:
            UsageError: the questions are not what they must be, name files that are not in the
                index, or a configuration asks for what there is not.
            IndexMissing, IndexDamaged, ManifestMismatch: the index does not serve.
            ProviderError: a question could not be embedded.
        """
        from ragx.evaluation.harness import choose_configs, evaluate, needs_vectors
        from ragx.evaluation.qrels import check_paths, every_kth, parse_queries
        from ragx.store.queries import QueryVectors
        from ragx.store.sqlite import index_directory

        topics = parse_queries(request.queries, name=request.name)
        vectors = self.config.embeddings.provider != "none"
        configs = choose_configs(request.configs, vectors=vectors)
        if request.compare is not None:
            configs = choose_configs((*configs, *request.compare), vectors=vectors)
        with closing(SqliteReader(self.root)) as reader:
            indexed = {path for path, row in reader.files().items() if row.n_chunks}
            check_paths(topics, indexed)
            if request.limit is not None:
                topics = every_kth(topics, request.limit)
            with self._query_embedder(reader, wanted=needs_vectors(configs)) as embedder:
                cache = None
                if embedder is not None:
                    cache = QueryVectors(
                        index_directory(self.root), embedder.fingerprint, reader.dimension()
                    )
                try:
                    return evaluate(
                        self.root,
                        reader,
                        topics,
                        configs,
                        self._query_options(),
                        embed=_checked_embed(embedder, reader),
                        cache=cache,
                        top=request.top,
                        metric=request.metric,
                        pair=request.compare,
                        progress=progress,
                    )
                finally:
                    if cache is not None:
                        cache.save()

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
            embedder = self._embedder(manifest)
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
        from ragx.indexing.scan import scan

        reader = self._reader_if_any()
        try:
            rows = reader.files() if reader else {}
            scan_options = self._scan_options(IndexRequest())
            seen = scan(self.root, scan_options)
            todo = make_plan(rows, seen, BuildOptions(scan_options, ChunkOptions()))
            changed = sum(1 for path in todo.paths("check") if self._differs(path, rows[path]))
            has_vectors = self.config.embeddings.provider != "none"
            differ, fix = self._settings_differ(reader)
            known = reader.known_communities(self._community_options()) if reader else None
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
                limits={
                    "max_file_bytes": scan_options.max_file_bytes,
                    "max_files": scan_options.max_files,
                    "max_chunk_chars": self.config.chunking.max_chunk_chars,
                },
            )
        finally:
            if reader:
                reader.close()

    def chunk(self, chunk_id: int) -> ChunkView:
        """One stored chunk and its edges, the strongest first.

        Raises:
            UsageError: code "no_such_chunk".
        """
        with closing(SqliteReader(self.root)) as reader:
            chunk = _known_chunk(reader, chunk_id)
            return ChunkView(chunk, tuple(_neighbours(reader, chunk_id)))

    def communities(self) -> tuple[Community, ...]:
        """Communities of the graph, the largest first; found now if the graph has changed.

        Raises:
            MissingDependency: leidenalg or igraph is not installed.
        """
        with closing(SqliteReader(self.root)) as reader:
            partition = reader.communities(self._community_options())
            members = _members(reader, partition)
            paths = reader.chunk_paths()
        return tuple(
            Community(
                number, label, tuple(members[number]), tuple(dict.fromkeys(
                    paths[chunk_id] for chunk_id in members[number]
                )),
            )
            for number, label in enumerate(partition.labels)
        )  # fmt: skip

    def community(self, number: int) -> tuple[Community, tuple[Chunk, ...]]:
        """One community with its chunks, in order of path and position.

        Raises:
            UsageError: code "no_such_community".
        """
        with closing(SqliteReader(self.root)) as reader:
            partition = reader.communities(self._community_options())
            if not 0 <= number < len(partition.labels):
                raise UsageError(
                    f"no community {number}: there are {len(partition.labels)}, counted from 0",
                    code="no_such_community",
                    hint="ragx inspect communities lists them",
                )
            ids = _members(reader, partition)[number]
            found = reader.chunks(ids)
        chunks = tuple(found[chunk_id] for chunk_id in ids)
        files = tuple(dict.fromkeys(chunk.path for chunk in chunks))
        return Community(number, partition.labels[number], tuple(ids), files), chunks

    def path(self, one: str, other: str, cwd: Path) -> Way:
        """The strongest way through the graph between two places: chunk ids or files.

        Raises:
            UsageError: code "no_such_chunk" or "no_such_file".
        """
        from ragx.algo.heat import hops_of
        from ragx.algo.paths import strongest_path

        with closing(SqliteReader(self.root)) as reader:
            graph = reader.graph()
            ends = [
                graph.nodes_of(self._chunk_ids(reader, name, cwd)).tolist() for name in (one, other)
            ]
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
            scan=self._scan_options(request),
            chunking=self._chunking(request, embedder),
            linking=self._link_options(),
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
            chunking=options.chunking,
            linking=options.linking,
            part_tokens=options.part_tokens,
        )

    def _reader_if_any(self) -> SqliteReader | None:
        try:
            return SqliteReader(self.root)
        except IndexMissing:
            return None

    def _scan_options(self, request: IndexRequest) -> ScanOptions:
        from ragx.indexing.scan import ScanOptions

        corpus = self.config.corpus
        options = ScanOptions(
            include=corpus.include,
            exclude=corpus.exclude,
            respect_gitignore=corpus.respect_gitignore,
            max_file_bytes=corpus.max_file_bytes,
            max_files=corpus.max_files,
            follow_symlinks=corpus.follow_symlinks or request.follow_symlinks,
        )
        if request.max_files is not None:
            options = replace(options, max_files=request.max_files)
        if request.max_file_bytes is not None:
            options = replace(options, max_file_bytes=request.max_file_bytes)
        return options

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

    def _embedding_options(self, manifest: Mapping[str, str]) -> EmbeddingOptions:
        from ragx.providers.base import EmbeddingOptions

        section = self.config.embeddings
        same = manifest.get("embeddings_provider") == section.provider
        return EmbeddingOptions(
            provider=section.provider,
            base_url=section.base_url,
            model=section.model,
            doc_prefix=section.doc_prefix,
            query_prefix=section.query_prefix,
            batch_size=section.batch_size,
            api_key=resolve_api_key(section, env=self.env),
            timeout_s=section.timeout_s,
            connect_timeout_s=section.connect_timeout_s,
            max_in_flight=section.max_in_flight,
            # Arithmetic that the index was built with, whatever suits this CPU best.
            mode=manifest.get("embeddings_mode", "") if same else "",
        )

    def _embedder(self, manifest: Mapping[str, str]) -> Embedder | None:
        from ragx.providers.registry import open_embedder

        return open_embedder(self._embedding_options(manifest))

    def _require_same_space(self, manifest: Mapping[str, str]) -> None:
        """Stop a query whose vectors would not belong to the index's space. Loads no model."""
        from ragx.providers.registry import fingerprint

        options = self._embedding_options(manifest)
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

    def _query_options(self) -> QueryOptions:
        fusion, scoring = self.config.fusion, self.config.scoring
        method: Literal["weighted", "rrf"] = "rrf" if fusion.method == "rrf" else "weighted"
        return QueryOptions(
            method=method,
            vector_weight=fusion.vector_weight,
            rrf_k=fusion.rrf_k,
            per_query_top=fusion.per_query_top,
            fold_weight=scoring.fold_weight,
            rules=RuleOptions(
                path=scoring.rules.path,
                file_name=scoring.rules.file_name,
                definition=scoring.rules.definition,
                symbol=scoring.rules.symbol,
                secondary=scoring.rules.secondary,
                length=scoring.rules.length,
                balance=scoring.rules.balance,
            ),
            spread=self._spread_options(),
        )

    def _spread_options(self) -> SpreadOptions:
        from ragx.algo.graph import EDGE_KINDS

        traversal, scoring = self.config.traversal, self.config.scoring
        weights = self.config.graph.weights
        return SpreadOptions(
            hops=traversal.hops,
            decay=traversal.decay,
            query_floor=traversal.query_floor,
            max_frontier=traversal.max_frontier,
            cap=traversal.cap,
            weights={
                kind: getattr(weights, "import_" if kind == "import" else kind)
                for kind in EDGE_KINDS
            },
            formula="seed" if scoring.formula == "seed" else "capped",
            beta_heat=scoring.beta_heat,
            gamma_vector=scoring.gamma_vector,
        )

    def _link_options(self) -> LinkOptions:
        graph = self.config.graph
        return LinkOptions(
            k=graph.k,
            min_edge_sim=graph.min_edge_sim,
            near_dup_sim=graph.near_dup_sim,
            edge_source="chunk" if graph.edge_source == "chunk" else "subchunk",
        )

    def _model_name(self, reader: Reader | None) -> str:
        if self.config.embeddings.model or reader is None:
            return self.config.embeddings.model
        return reader.manifest().get("embeddings_model", "")

    def _settings_differ(self, reader: Reader | None) -> tuple[str, str]:
        """The first setting that an incremental run would stop at, and the command that helps."""
        if reader is None:
            return "", ""
        from ragx.indexing.build import check_manifest, expected_manifest
        from ragx.providers.registry import fingerprint

        manifest = reader.manifest()
        options = self._embedding_options(manifest)
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
            chunking=chunking,
            linking=self._link_options(),
            part_tokens=self.config.graph.subchunk_size_tokens,
        )
        try:
            check_manifest(manifest, expected)
        except ManifestMismatch as fault:
            return fault.message, fault.hint.partition(" rebuilds")[0]
        return "", ""

    def _differs(self, path: str, row: FileRow) -> bool:
        from ragx.documents.read import read_regular
        from ragx.indexing.prepare import content_hash

        if row.status in _FAILED:
            return True
        try:
            return content_hash(read_regular(self.root / path)[0]) != row.content_hash
        except (OSError, ExtractionError):
            return True


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


def _checked_embed(
    embedder: Embedder | None, reader: Reader
) -> Callable[[str], NDArray[np.float32]] | None:
    """Embed a query and make sure that it can be compared with what is stored."""
    if embedder is None:
        return None

    def embed(text: str) -> NDArray[np.float32]:
        vector = embedder.embed_query(text)
        stored = reader.dimension()
        if stored and len(vector) != stored:
            raise ManifestMismatch(
                f"the model gives vectors of {len(vector)} numbers, the index holds {stored}",
                hint=_MANIFEST_HINT,
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


def _neighbours(reader: Reader, chunk_id: int) -> list[Neighbour]:
    """Every edge of a chunk, the strongest first, ties by place."""
    graph = reader.graph()
    node = int(graph.nodes_of([chunk_id])[0])
    if node < 0:
        return []
    row = graph.targets[int(graph.indptr[node]) : int(graph.indptr[node + 1])]
    ids = graph.ids[row].tolist()
    chunks = reader.chunks(ids)
    evidence = reader.evidence({(chunk_id, other) for other in ids})
    found = [Neighbour(chunks[pair[1]], edge) for pair, edges in evidence.items() for edge in edges]
    found.sort(key=lambda item: (-item.edge.weight, item.chunk.path, item.chunk.ordinal))
    return found


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

"""Settings as each layer below takes them: from `Config` to their own options."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ragx.config import Config, resolve_api_key
from ragx.providers.address import is_hub_name
from ragx.query.expand import ExpandRule
from ragx.query.pipeline import QueryOptions
from ragx.query.rerank import RerankRule
from ragx.query.rules import RuleOptions
from ragx.query.spread import SpreadOptions
from ragx.query.temporal import TemporalRule
from ragx.store.base import LinkOptions
from ragx.store.communities import CommunityOptions

if TYPE_CHECKING:
    from ragx.documents.formats.base import ExtractLimits
    from ragx.indexing.scan import ScanOptions
    from ragx.providers.base import EmbeddingOptions, ExpansionOptions, RerankOptions

__all__ = [
    "community_options",
    "embedding_options",
    "expansion_options",
    "extract_limits",
    "link_options",
    "query_options",
    "rerank_options",
    "scan_options",
    "spread_options",
]


def scan_options(config: Config) -> ScanOptions:
    """Which files count, as the settings alone say."""
    from ragx.indexing.scan import ScanOptions

    corpus = config.corpus
    return ScanOptions(
        include=corpus.include,
        exclude=corpus.exclude,
        respect_gitignore=corpus.respect_gitignore,
        max_file_bytes=corpus.max_file_bytes,
        max_document_bytes=config.documents.max_file_bytes,
        max_files=corpus.max_files,
        follow_symlinks=corpus.follow_symlinks,
    )


def extract_limits(config: Config) -> ExtractLimits:
    """What one document may cost."""
    from ragx.documents.formats.base import ExtractLimits

    documents = config.documents
    return ExtractLimits(
        max_bytes=documents.max_file_bytes,
        max_chars=documents.max_chars,
        max_blocks=documents.max_blocks,
        max_expanded_bytes=documents.max_expanded_bytes,
        timeout_s=documents.timeout_s,
        max_memory_bytes=documents.max_memory_bytes,
    )


def embedding_options(
    config: Config,
    env: Mapping[str, str],
    manifest: Mapping[str, str],
    *,
    root: Path,
    with_key: bool = True,
) -> EmbeddingOptions:
    """The embedder of an index.

    Args:
        env: variables that may hold the key.
        manifest: of the index; empty for a new one.
        root: of the corpus, which relative paths start from.
        with_key: False where nothing will be asked, so that a key that is not set does not matter.
    Raises:
        ConfigError: the variable for the key is not set.
    """
    from ragx.providers.base import EmbeddingOptions

    section = config.embeddings
    same = manifest.get("embeddings_provider") == section.provider
    max_tokens = manifest.get("embeddings_max_tokens", "") if same else ""
    return EmbeddingOptions(
        provider=section.provider,
        base_url=section.base_url,
        model=_model(section.provider, section.model, root),
        doc_prefix=section.doc_prefix,
        query_prefix=section.query_prefix,
        batch_size=None if section.batch_size == "auto" else int(section.batch_size),
        api_key=resolve_api_key("embeddings", section, env=env) if with_key else None,
        timeout_s=section.timeout_s,
        connect_timeout_s=section.connect_timeout_s,
        max_in_flight=None if section.max_in_flight == "auto" else int(section.max_in_flight),
        autostart=section.autostart,
        gguf=_from_root(section.gguf, root),
        server_bin=_program(section.server_bin, root),
        # Arithmetic that the index was built with, whatever suits this CPU best.
        mode=manifest.get("embeddings_mode", "") if same else "",
        max_tokens=int(max_tokens) if max_tokens.isdecimal() else None,
    )


def expansion_options(config: Config, env: Mapping[str, str], *, root: Path) -> ExpansionOptions:
    """The chat model that rewords questions.

    Raises:
        ConfigError: the variable for the key is not set.
    """
    from ragx.providers.base import ExpansionOptions

    section = config.expansion
    return ExpansionOptions(
        provider=section.provider,
        base_url=section.base_url,
        model=section.model,
        variants=section.variants,
        hyde=section.hyde,
        api_key=resolve_api_key("expansion", section, env=env),
        timeout_s=section.timeout_s,
        autostart=section.autostart,
        gguf=_from_root(section.gguf, root),
        server_bin=_program(section.server_bin, root),
    )


def rerank_options(config: Config, env: Mapping[str, str], *, root: Path) -> RerankOptions:
    """The reranker.

    Raises:
        ConfigError: the variable for the key is not set.
    """
    from ragx.providers.base import RerankOptions

    section = config.rerank
    return RerankOptions(
        provider=section.provider,
        base_url=section.base_url,
        model=_model(section.provider, section.model, root),
        api_key=resolve_api_key("rerank", section, env=env),
        timeout_s=section.timeout_s,
        autostart=section.autostart,
        gguf=_from_root(section.gguf, root),
        server_bin=_program(section.server_bin, root),
    )


def query_options(config: Config) -> QueryOptions:
    """How a question is answered."""
    fusion, scoring = config.fusion, config.scoring
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
        spread=spread_options(config),
        rerank=RerankRule(
            alpha=scoring.alpha_rerank,
            formula="seed" if scoring.formula == "seed" else "capped",
            beta_heat=scoring.beta_heat,
            gamma_vector=scoring.gamma_vector,
        ),
        expand=ExpandRule(variants=config.expansion.variants, hyde=config.expansion.hyde),
        temporal=TemporalRule(half_life_days=config.temporal.half_life_days),
    )


def spread_options(config: Config) -> SpreadOptions:
    """How a question spreads over the graph."""
    from ragx.algo.graph import EDGE_KINDS

    traversal, scoring = config.traversal, config.scoring
    weights = config.graph.weights
    return SpreadOptions(
        hops=traversal.hops,
        decay=traversal.decay,
        query_floor=traversal.query_floor,
        max_frontier=traversal.max_frontier,
        cap=traversal.cap,
        weights={
            kind: getattr(weights, "import_" if kind == "import" else kind) for kind in EDGE_KINDS
        },
        formula="seed" if scoring.formula == "seed" else "capped",
        beta_heat=scoring.beta_heat,
        gamma_vector=scoring.gamma_vector,
    )


def link_options(config: Config) -> LinkOptions:
    """Which chunks a similar edge joins."""
    graph = config.graph
    return LinkOptions(
        k=graph.k,
        min_edge_sim=graph.min_edge_sim,
        near_dup_sim=graph.near_dup_sim,
        edge_source="chunk" if graph.edge_source == "chunk" else "subchunk",
    )


def community_options(config: Config) -> CommunityOptions:
    """How communities are found."""
    section = config.communities
    return CommunityOptions(resolution=section.resolution, seed=section.seed)


def _from_root(path: str, root: Path) -> str:
    """A file as the settings name it: from the corpus root, or from `~`."""
    return os.path.join(root, os.path.expanduser(path)) if path else ""


def _program(name: str, root: Path) -> str:
    """A program: one by its bare name is looked for on PATH, anything else is a file."""
    return name if name == Path(name).name else _from_root(name, root)


def _model(provider: str, name: str, root: Path) -> str:
    """A model: for what loads a directory, its place; a hub's name looks like no path."""
    if provider == "onnx" or (provider == "sentence-transformers" and not is_hub_name(name)):
        return _from_root(name, root)
    return name

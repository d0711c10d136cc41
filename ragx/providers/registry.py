"""From settings to a model, importing only the backend that is asked for."""

from __future__ import annotations

from collections.abc import Sequence

from ragx.errors import ConfigError
from ragx.providers.base import (
    Embedder,
    EmbeddingOptions,
    ExpansionOptions,
    Generator,
    Notice,
    Reranker,
    RerankOptions,
    no_notice,
)

__all__ = [
    "PROVIDERS",
    "fingerprint",
    "open_embedder",
    "open_generator",
    "open_reranker",
]

PROVIDERS = (
    "builtin",
    "onnx",
    "openai",
    "ollama",
    "llama-server",
    "sentence-transformers",
    "none",
)
# They speak one protocol and differ in how the server comes about.
_SERVERS = ("openai", "ollama", "llama-server")


def open_embedder(options: EmbeddingOptions, *, notice: Notice = no_notice) -> Embedder | None:
    """Make the embedder that the options name; models load and servers are asked on first use.

    Args:
        notice: told what is started on the way.
    Returns:
        None for provider "none".
    Raises:
        ConfigError: unknown provider, or options it cannot use.
        MissingDependency: the provider's library is not installed.
    """
    if options.provider == "builtin":
        from ragx.providers.builtin import BuiltinEmbedder

        return BuiltinEmbedder(options)
    if options.provider in _SERVERS:
        from ragx.providers.openai import OpenAIEmbedder

        return OpenAIEmbedder(options, notice=notice)
    if options.provider == "onnx":
        from ragx.providers.onnx import OnnxEmbedder

        return OnnxEmbedder(options)
    if options.provider == "sentence-transformers":
        from ragx.providers.torch import TorchEmbedder

        return TorchEmbedder(options)
    _require_none("embeddings", options.provider, PROVIDERS)
    return None


def fingerprint(options: EmbeddingOptions) -> str:
    """Return what the embedder's `fingerprint` would be, without loading or asking anything.

    Returns:
        "none" for provider "none".
    Raises:
        ConfigError: unknown provider, or options it cannot use.
    """
    if options.provider == "builtin":
        from ragx.providers import builtin

        return builtin.fingerprint(options)
    if options.provider in _SERVERS:
        from ragx.providers import openai

        return openai.fingerprint(options)
    if options.provider == "onnx":
        from ragx.providers import onnx

        return onnx.fingerprint(options)
    if options.provider == "sentence-transformers":
        from ragx.providers import torch

        return torch.fingerprint(options)
    _require_none("embeddings", options.provider, PROVIDERS)
    return "none"


def open_reranker(options: RerankOptions, *, notice: Notice = no_notice) -> Reranker:
    """Make the reranker that the options name; models load and servers are asked on first use.

    Raises:
        ConfigError: unknown provider, "none", or options it cannot use.
        MissingDependency: the provider's library is not installed.
    """
    if options.provider in ("openai", "llama-server"):
        from ragx.providers.rerank import ServerReranker

        return ServerReranker(options, notice=notice)
    if options.provider == "onnx":
        from ragx.providers.onnx import OnnxReranker

        return OnnxReranker(options)
    if options.provider == "sentence-transformers":
        from ragx.providers.torch import TorchReranker

        return TorchReranker(options)
    known = ("sentence-transformers", "onnx", "openai", "llama-server")
    _require_none("rerank", options.provider, known)
    raise _no_provider("rerank", known)


def open_generator(options: ExpansionOptions, *, notice: Notice = no_notice) -> Generator:
    """Make the chat model that the options name; its server is asked on first use.

    Raises:
        ConfigError: unknown provider, "none", or options it cannot use.
    """
    if options.provider in _SERVERS:
        from ragx.providers.chat import ServerGenerator

        return ServerGenerator(options, notice=notice)
    _require_none("expansion", options.provider, _SERVERS)
    raise _no_provider("expansion", _SERVERS)


def _no_provider(section: str, known: Sequence[str]) -> ConfigError:
    return ConfigError(
        f'{section}.provider is "none"', hint=f"ragx config set {section}.provider {known[0]}"
    )


def _require_none(section: str, provider: str, known: Sequence[str]) -> None:
    if provider == "none":
        return
    from difflib import get_close_matches

    near = get_close_matches(provider, known) or known
    raise ConfigError(
        f"{section}.provider {provider!r} is unknown",
        hint=f"use {' or '.join(near)}",
        details={"allowed": list(known)},
    )

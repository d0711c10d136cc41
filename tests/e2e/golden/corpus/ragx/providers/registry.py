"""From `[embeddings]` settings to an embedder, importing only the backend that is asked for."""

from __future__ import annotations

from ragx.errors import ConfigError
from ragx.providers.base import Embedder, EmbeddingOptions

__all__ = ["PROVIDERS", "fingerprint", "open_embedder"]

PROVIDERS = ("builtin", "openai", "ollama", "none")
# Ollama speaks the same protocol; it differs in its default address alone, which settings fill in.
_SERVERS = ("openai", "ollama")


def open_embedder(options: EmbeddingOptions) -> Embedder | None:
    """Make the embedder that the options name; models load and servers are asked on first use.

    Returns:
        None for provider "none".
    Raises:
        ConfigError: unknown provider, or options it cannot use.
    """
    if options.provider == "builtin":
        from ragx.providers.builtin import BuiltinEmbedder

        return BuiltinEmbedder(options)
    if options.provider in _SERVERS:
        from ragx.providers.openai import OpenAIEmbedder

        return OpenAIEmbedder(options)
    _require_none(options)
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
    _require_none(options)
    return "none"


def _require_none(options: EmbeddingOptions) -> None:
    if options.provider == "none":
        return
    from difflib import get_close_matches

    near = get_close_matches(options.provider, PROVIDERS) or PROVIDERS
    raise ConfigError(
        f"embeddings.provider {options.provider!r} is unknown",
        hint=f"use {' or '.join(near)}",
        details={"allowed": list(PROVIDERS)},
    )

"""Where a provider is reached and with which key: files first, the environment only as default."""

from __future__ import annotations

from collections.abc import Mapping

from ragx.config.rules import Rejected, Value
from ragx.config.sections import Embeddings, Expansion, Rerank
from ragx.config.table import find_key, keys
from ragx.errors import ConfigError

__all__ = ["BASE_URLS", "default_base_url", "resolve_api_key"]

BASE_URLS: Mapping[str, str] = {
    "openai": "http://localhost:1234/v1",
    "ollama": "http://localhost:11434/v1",
}
"""Built-in address per provider: LM Studio's and Ollama's. Others have none."""

_SERVED = ("embeddings", "expansion")
# In this process, or a server of our own that nobody else is told of.
_NEEDS_NO_KEY = frozenset({"builtin", "sentence-transformers", "onnx", "llama-server", "none"})


def default_base_url(
    values: Mapping[str, Value], env: Mapping[str, str]
) -> dict[str, tuple[Value, str]]:
    """Fill in the addresses that no file sets: dotted key -> (address, origin).

    The sections resolve independently, and an address written in a file stays what it is.

    Raises:
        ConfigError: OPENAI_BASE_URL would apply but is no URL.
    """
    filled: dict[str, tuple[Value, str]] = {}
    for section in _SERVED:
        dotted = f"{section}.base_url"
        provider_key = f"{section}.provider"
        provider = values.get(provider_key, keys()[provider_key].default)
        if values.get(dotted) or provider not in BASE_URLS:
            continue
        # A variable that points OpenAI clients elsewhere says nothing about an Ollama.
        variable = env.get("OPENAI_BASE_URL", "") if provider == "openai" else ""
        if not variable:
            filled[dotted] = (BASE_URLS[str(provider)], "default")
            continue
        rule = find_key(dotted).rule
        try:
            filled[dotted] = (rule.check(variable), "OPENAI_BASE_URL")
        except Rejected as exc:
            raise ConfigError(
                f"environment: OPENAI_BASE_URL must be {rule.allowed}, not {exc}",
                hint=f"unset it, or run: ragx config set {dotted} URL",
                code="bad_value",
            ) from exc
    return filled


def resolve_api_key(
    name: str, section: Embeddings | Expansion | Rerank, *, env: Mapping[str, str]
) -> str | None:
    """Return the key to send to the server of the section `name`, None if there is none to send.

    Raises:
        ConfigError: `api_key_env` names a variable that is not set.
    """
    if section.provider in _NEEDS_NO_KEY:
        return None
    if not section.api_key_env:
        return env.get("OPENAI_API_KEY") or None
    value = env.get(section.api_key_env)
    if value:
        return value
    raise ConfigError(
        f"{name}.api_key_env names the variable {section.api_key_env}, which is not set",
        hint=f"export {section.api_key_env}=..., or run: ragx config set {name}.api_key_env ''",
        code="api_key_unset",
    )

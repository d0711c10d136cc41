"""The short list of models that `ragx models` chooses from: facts, and what suits a machine."""

from __future__ import annotations

from dataclasses import dataclass

from ragx.api.machine import Machine
from ragx.errors import UsageError

__all__ = [
    "BUILTIN",
    "CATALOG",
    "LICENCE_TO_CONFIRM",
    "LOW_RAM_BYTES",
    "RERANKER",
    "Model",
    "find_model",
    "heavy_for",
    "recommended",
]

LOW_RAM_BYTES = 8_000_000_000
"""With less memory than this, the smallest model is recommended."""
LICENCE_TO_CONFIRM = "jina-nano"
"""The model whose licence forbids commercial use: shown and confirmed before it is planned."""

_HUB = "https://huggingface.co/"
_HEAVY = ("balanced", "best")


@dataclass(frozen=True, slots=True)
class Model:
    """One model of the short list.

    Args:
        repository: on the hub, holding the GGUF.
        file: name of the GGUF there, at 8 bits a weight.
        size_bytes: of that file, roughly.
        key: how LM Studio's server calls it.
        hub_id: for sentence-transformers; empty where that is not offered.
        hub_bytes: of that download, roughly.
    """

    quality: str
    name: str
    params: str
    context_tokens: int
    languages: str
    licence: str
    repository: str
    file: str
    size_bytes: int
    key: str = ""
    doc_prefix: str = ""
    query_prefix: str = ""
    hub_id: str = ""
    hub_bytes: int = 0

    @property
    def source(self) -> str:
        """What `lms get` takes; an address is never taken for a search."""
        return f"{_HUB}{self.repository}@q8_0"


CATALOG = (
    Model(
        quality="fast",
        name="EmbeddingGemma 300M",
        params="308M",
        context_tokens=2048,
        languages="100+ languages",
        licence="Gemma terms",
        repository="ggml-org/embeddinggemma-300M-GGUF",
        file="embeddinggemma-300M-Q8_0.gguf",
        size_bytes=334_000_000,
        key="text-embedding-embeddinggemma-300m",
        doc_prefix="title: none | text: ",
        query_prefix="task: search result | query: ",
    ),
    Model(
        quality="balanced",
        name="BGE-M3",
        params="568M",
        context_tokens=8192,
        languages="100+ languages",
        licence="MIT",
        repository="gpustack/bge-m3-GGUF",
        file="bge-m3-Q8_0.gguf",
        size_bytes=635_000_000,
        key="text-embedding-bge-m3",
    ),
    Model(
        quality="best",
        name="Qwen3-Embedding-0.6B",
        params="0.6B",
        context_tokens=32_768,
        languages="100+ languages",
        licence="Apache-2.0",
        repository="Qwen/Qwen3-Embedding-0.6B-GGUF",
        file="Qwen3-Embedding-0.6B-Q8_0.gguf",
        size_bytes=639_000_000,
        key="text-embedding-qwen3-embedding-0.6b",
        query_prefix=(
            "Instruct: Given a search query, retrieve relevant passages that answer it\nQuery: "
        ),
    ),
    Model(
        quality=LICENCE_TO_CONFIRM,
        name="Jina embeddings v5 nano",
        params="239M",
        context_tokens=8192,
        languages="multilingual",
        licence="CC BY-NC 4.0",
        repository="jinaai/jina-embeddings-v5-text-nano-retrieval-GGUF",
        file="v5-nano-retrieval-Q8_0.gguf",
        size_bytes=233_000_000,
        doc_prefix="Document: ",
        query_prefix="Query: ",
    ),
)
"""Embedding models that can be had through LM Studio, the smallest general one first."""

BUILTIN = Model(
    quality="built-in",
    name="all-MiniLM-L6-v2",
    params="23M",
    context_tokens=256,
    languages="English",
    licence="Apache-2.0",
    repository="",
    file="",
    size_bytes=0,
)
"""What comes with ragx: runs in its process, nothing to download."""

RERANKER = Model(
    quality="reranker",
    name="bge-reranker-v2-m3",
    params="568M",
    context_tokens=8192,
    languages="100+ languages",
    licence="Apache-2.0",
    repository="gpustack/bge-reranker-v2-m3-GGUF",
    file="bge-reranker-v2-m3-Q8_0.gguf",
    size_bytes=636_000_000,
    hub_id="BAAI/bge-reranker-v2-m3",
    hub_bytes=2_290_000_000,
)


def find_model(quality: str) -> Model:
    """The embedding model of a quality.

    Raises:
        UsageError: there is no such quality.
    """
    for model in CATALOG:
        if model.quality == quality:
            return model
    raise UsageError(
        f"no quality {quality!r}", hint=f"one of: {', '.join(model.quality for model in CATALOG)}"
    )


def recommended(machine: Machine) -> str:
    """The quality that suits the machine's memory."""
    low = machine.ram_bytes is not None and machine.ram_bytes < LOW_RAM_BYTES
    return "fast" if low else "balanced"


def heavy_for(machine: Machine, quality: str | None) -> bool:
    """Whether a model is larger than what is recommended for so little memory."""
    return recommended(machine) == "fast" and quality in _HEAVY

"""Embedding models and cross-encoders through sentence-transformers, in this process.

A model is a local directory or a name on the model hub. What the hub's cache holds is used without
asking the network; `HF_ENDPOINT`, `HF_HUB_OFFLINE` and `HF_HOME` count as the library reads them.
A directory whose files name code that is not the library's own is refused: some versions run it.
"""

from __future__ import annotations

import inspect
import json
import logging
import os
import shlex
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragx.errors import (
    ConfigError,
    InputTooLong,
    MissingDependency,
    ProviderError,
    ProviderRefused,
    ProviderUnavailable,
    RagxError,
)
from ragx.providers.address import is_hub_name
from ragx.providers.base import EmbeddingOptions, RerankOptions, prefix_fingerprint
from ragx.providers.model_files import files_digest
from ragx.providers.model_tokens import ModelTokens
from ragx.providers.tokens import encodable
from ragx.providers.vectors import mean_direction, unit_rows

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Array = npt.NDArray[np.float32]

__all__ = ["TorchEmbedder", "TorchReranker", "fingerprint"]

_LIBRARY = "sentence_transformers"
_INSTALL_HINT = "from ragx's checkout: pip install '.[rerank]' (README: without CUDA)"
_SHORT_MODEL_TOKENS = 1024
_SHORT_CHUNK_TOKENS = 450
_LONG_CHUNK_TOKENS = 800
# Where the settings leave it open.
_BATCH_TEXTS = 32
# Pairs of several hundred tokens: more at once gains nothing on a CPU and takes memory.
_RERANK_BATCH = 16
# Some tokenizers name a limit of 10**30.
_NO_LIMIT = 1 << 20
_MODEL_SUFFIXES = frozenset({".safetensors", ".bin", ".json", ".txt", ".model"})
# Files of other engines lie there.
_OTHER_ENGINES = frozenset({"onnx", "openvino"})
# What the library takes the names of classes from.
_NAMES_CLASSES = frozenset({"modules.json", "router_config.json", "config.json"})
_MESSAGE_CHARS = 200
_TALKATIVE = ("sentence_transformers", "transformers", "huggingface_hub")


def fingerprint(options: EmbeddingOptions) -> str:
    """Name the vector space: a local model by its content, one from the hub by its name.

    Raises:
        ConfigError: no model is named, or its directory does not exist.
    """
    folder = _local(options.model, "embeddings")
    name = options.model if folder is None else files_digest(_model_files(folder))
    return f"sentence-transformers:{name}:{prefix_fingerprint(options)}"


class TorchEmbedder:
    """A SentenceTransformer; the model loads when its limit or a vector is first asked for."""

    workers = 1
    in_process = True

    def __init__(self, options: EmbeddingOptions) -> None:
        """Take settings.

        Args:
            options: `model` is a directory or a name on the hub.
        Raises:
            ConfigError: no model is named, or its directory does not exist.
            MissingDependency: sentence-transformers is not installed.
        """
        self.fingerprint = fingerprint(options)
        _require_library()
        folder = _local(options.model, "embeddings")
        self.model = options.model if folder is None else folder.name
        self.dimension: int | None = None
        self.batch_size = options.batch_size or _BATCH_TEXTS
        self._options = options
        self._name = options.model if folder is None else str(folder)
        self._load_lock = threading.Lock()
        self._run_lock = threading.Lock()
        self._loaded: Any = None
        self._tokens = ModelTokens(lambda: _own_tokenizer(self._model(), self.model))

    @property
    def max_tokens(self) -> int | None:
        """Tokens one text may have, special tokens and prefix included; None if unknown."""
        limit = self._model().max_seq_length
        return int(limit) if limit and limit < _NO_LIMIT else None

    @property
    def default_chunk_tokens(self) -> int:
        """The chunk size that suits the model."""
        limit = self.max_tokens
        is_short = limit is not None and limit < _SHORT_MODEL_TOKENS
        return _SHORT_CHUNK_TOKENS if is_short else _LONG_CHUNK_TOKENS

    def embed_documents(self, texts: Sequence[str]) -> Array:
        """Embed passages, each behind the document prefix.

        Returns:
            (n, dimension) float32 unit rows.
        Raises:
            InputTooLong: a text is over the model's limit; nothing was embedded.
            ProviderUnavailable: the model cannot be downloaded.
            ProviderRefused: the files are not a model.
            ProviderError: torch failed.
        """
        import numpy as np

        passages = [self._options.doc_prefix + text for text in texts]
        limit = self.max_tokens
        for position, passage in enumerate(passages):
            n_tokens = self._tokens.count(passage) if limit is not None else 0
            if limit is not None and n_tokens > limit:
                raise InputTooLong(
                    f"a text has {n_tokens} tokens; {self.model} reads {limit}",
                    hint="make chunking.size_tokens smaller",
                    details={"tokens": n_tokens, "limit": limit, "position": position},
                )
        if not passages:
            return np.zeros((0, self.dimension or 0), np.float32)
        return self._embed(passages)

    def embed_query(self, text: str) -> Array:
        """Embed a question behind the query prefix; a long one as the mean of its windows.

        Returns:
            (dimension,) float32 unit vector.
        Raises:
            InputTooLong: the prefix alone fills the model's window.
            ProviderUnavailable: the model cannot be downloaded.
            ProviderRefused: the files are not a model.
            ProviderError: torch failed.
        """
        prefix = self._options.query_prefix
        windows = self._tokens.windows(
            text, self.max_tokens, lambda part: self._tokens.encode(prefix + part)
        )
        rows = self._embed([prefix + part for part, _ in windows])
        return mean_direction(rows, [len(encoding) for _, encoding in windows])

    def token_starts(self, text: str) -> Sequence[int]:
        """Return the character offsets at which tokens of `text` start, ascending.

        Raises:
            ProviderError: the model cannot be loaded.
        """
        return self._tokens.starts(text)

    def count_tokens(self, text: str) -> int:
        """Count the tokens of a passage with document prefix and special tokens.

        Raises:
            ProviderError: the model cannot be loaded.
        """
        return self._tokens.count(self._options.doc_prefix + text)

    def close(self) -> None:
        """Drop the model; the next call loads it again."""
        with self._load_lock:
            self._loaded = None

    def _embed(self, texts: list[str]) -> Array:
        model = self._model()
        # One call at a time: the library's tokenizer is not made for several.
        with self._run_lock, _translated(f"{self.model} failed on {len(texts)} texts"):
            rows: Array = model.encode(
                [encodable(text) for text in texts],
                # The prefixes of the settings are the only ones.
                prompt="",
                batch_size=self.batch_size,
                show_progress_bar=False,
                convert_to_numpy=True,
            )
        self.dimension = int(rows.shape[1])
        return unit_rows(rows)

    def _model(self) -> Any:
        with self._load_lock:
            if self._loaded is None:
                self._loaded = _load("SentenceTransformer", self._name, "embeddings")
            return self._loaded


class TorchReranker:
    """A CrossEncoder; the model loads on first use."""

    def __init__(self, options: RerankOptions) -> None:
        """Take settings.

        Args:
            options: `model` is a directory or a name on the hub.
        Raises:
            ConfigError: no model is named, or its directory does not exist.
            MissingDependency: sentence-transformers is not installed.
        """
        _require_library()
        folder = _local(options.model, "rerank")
        self.model = options.model if folder is None else folder.name
        self._name = options.model if folder is None else str(folder)
        self._load_lock = threading.Lock()
        self._run_lock = threading.Lock()
        self._loaded: Any = None
        self._tokens = ModelTokens(lambda: _own_tokenizer(self._model(), self.model))

    def scores(self, query: str, passages: Sequence[str]) -> list[float]:
        """Score passages against a question; one over the limit counts as its best window.

        Of a question that fills more than half of what the model reads, the first half of the
        limit counts.

        Returns:
            One logit per passage, in order; of two classes the difference.
        Raises:
            InputTooLong: not even one token of a passage has room beside the question.
            ProviderUnavailable: the model cannot be downloaded.
            ProviderRefused: the files are not a cross-encoder.
            ProviderError: torch failed, or a score is not finite.
        """
        if not passages:
            return []
        model = self._model()
        limit = _pair_limit(model)
        if limit is not None:
            query = self._tokens.head(query, limit // 2)
        windows = [
            self._tokens.windows(text, limit, lambda part: self._tokens.encode(query, part))
            for text in passages
        ]
        pairs = [(encodable(query), encodable(part)) for some in windows for part, _ in some]
        scored = iter(self._predict(model, pairs))
        return [max(next(scored) for _ in some) for some in windows]

    def close(self) -> None:
        """Drop the model; the next call loads it again."""
        with self._load_lock:
            self._loaded = None

    def _predict(self, model: Any, pairs: list[tuple[str, str]]) -> list[float]:
        import numpy as np
        from torch.nn import Identity

        # Raw logits: a sigmoid makes the best ones equal. Its name has changed between versions.
        known = inspect.signature(model.predict).parameters
        activation = "activation_fn" if "activation_fn" in known else "activation_fct"
        with self._run_lock, _translated(f"{self.model} failed on {len(pairs)} pairs"):
            logits = np.asarray(
                model.predict(
                    pairs,
                    batch_size=_RERANK_BATCH,
                    show_progress_bar=False,
                    convert_to_numpy=True,
                    **{activation: Identity()},
                ),
                np.float64,
            ).reshape(len(pairs), -1)
        if logits.shape[1] not in (1, 2):
            raise ProviderRefused(
                f"{self.model} gives {logits.shape[1]} numbers for one pair; a cross-encoder one",
                hint="name a cross-encoder: ragx config set rerank.model NAME",
                details={"scope": "server"},
            )
        scores = logits[:, -1] - (logits[:, 0] if logits.shape[1] == 2 else 0.0)
        if not np.isfinite(scores).all():
            raise ProviderError(f"{self.model} gave a score that is not finite")
        return [float(score) for score in scores]

    def _model(self) -> Any:
        with self._load_lock:
            if self._loaded is None:
                self._loaded = _load("CrossEncoder", self._name, "rerank")
            return self._loaded


def _require_library() -> None:
    if find_spec(_LIBRARY) is None:
        raise MissingDependency("sentence-transformers is not installed", hint=_INSTALL_HINT)


def _local(model: str, section: str) -> Path | None:
    """The model's directory; None for a name on the hub."""
    key = f"{section}.model"
    if not model:
        raise ConfigError(
            f"{key} is not set", hint=f"ragx config set {key} NAME (or a model's directory)"
        )
    path = Path(os.path.expanduser(model))
    if is_hub_name(model):
        if os.path.lexists(path):
            # The library would load that instead, whoever has put it there.
            raise ConfigError(
                f"{key}: {model} is a name on the hub, and also something in this directory",
                hint="run ragx from another directory, or give the path: "
                f"ragx config set {key} {shlex.quote(str(path.absolute()))}",
            )
        return None
    if not path.is_dir():
        raise ConfigError(
            f"{key}: {path} is not a directory",
            hint=f"ragx config set {key} /path/to/model-directory",
        )
    return path.absolute()


def _model_files(folder: Path) -> list[Path]:
    """What decides a vector, in a fixed order."""
    found = [
        path
        for path in folder.rglob("*")
        if path.suffix in _MODEL_SUFFIXES
        and path.relative_to(folder).parts[0] not in _OTHER_ENGINES
    ]
    return sorted(path for path in found if path.is_file())


def _load(kind: str, name: str, section: str) -> Any:
    """Open a model: what is cached first, as the library would else ask the network each time."""
    try:
        import sentence_transformers
    except ImportError as exc:
        raise MissingDependency(
            f"sentence-transformers cannot be imported: {exc}", hint=_INSTALL_HINT
        ) from exc
    make: Callable[..., Any] = getattr(sentence_transformers, kind)
    with _quiet():
        if Path(name).is_absolute():
            _refuse_foreign_code(Path(name), section)
            try:
                return make(name, local_files_only=True, trust_remote_code=False)
            except _library_faults() as exc:
                raise ProviderRefused(
                    f"{name} is not a model that sentence-transformers can load: {_first(exc)}",
                    hint=f"ragx config set {section}.model NAME (or another directory)",
                    details={"scope": "server"},
                ) from exc
        try:
            return make(name, local_files_only=True, trust_remote_code=False)
        except _library_faults():
            pass
        try:
            return make(name, trust_remote_code=False)
        except _library_faults() as exc:
            raise ProviderUnavailable(
                f"the model {name} cannot be had from the hub: {_first(exc)}",
                hint='see "Restricted networks" in README, or name a model\'s directory: '
                f"ragx config set {section}.model /path/to/model-directory",
                details={"scope": "server"},
            ) from exc


def _refuse_foreign_code(folder: Path, section: str) -> None:
    """Stop before the library imports whatever a model's files name.

    Raises:
        ProviderRefused: a part of the model is of a class that is not the library's own.
    """
    for path in folder.rglob("*.json"):
        if path.name not in _NAMES_CLASSES:
            continue
        try:
            found = json.loads(path.read_bytes())
        except (OSError, ValueError, RecursionError):
            continue  # the library says what is wrong with it
        for name in _classes(found):
            if not name.startswith(f"{_LIBRARY}."):
                raise ProviderRefused(
                    f"{path} names code that is not of sentence-transformers: {name[:80]!r}",
                    hint=f"ragx config set {section}.model NAME (or another directory)",
                    details={"scope": "server"},
                )


def _classes(found: object) -> Iterator[str]:
    """The classes that a list of modules or a router's table names."""
    if isinstance(found, list):
        for item in found:
            if isinstance(item, dict) and "type" in item:
                yield str(item["type"])
    elif isinstance(found, dict) and isinstance(found.get("types"), dict):
        yield from map(str, found["types"].values())


def _library_faults() -> tuple[type[Exception], ...]:
    """What loading and running raise; the hub's own errors are of both first kinds."""
    import httpx

    known = (OSError, httpx.HTTPError, ValueError, RuntimeError, KeyError, TypeError)
    return (*known, ImportError, AttributeError, IndexError)


@contextmanager
def _translated(what: str) -> Iterator[None]:
    try:
        yield
    except RagxError:
        raise
    except _library_faults() as exc:
        raise ProviderError(f"{what}: {_first(exc)}") from exc


def _first(exc: Exception) -> str:
    """The first line, without the list of all models that one message goes on with."""
    line = next((line for line in str(exc).splitlines() if line.strip()), type(exc).__name__)
    return line if len(line) <= _MESSAGE_CHARS else f"{line[:_MESSAGE_CHARS]}..."


@contextmanager
def _quiet() -> Iterator[None]:
    """No progress bars, log lines or warnings while a model loads: standard error is ragx's."""
    from huggingface_hub.utils.tqdm import disable_progress_bars
    from transformers.utils import logging as transformers_logging

    disable_progress_bars()
    transformers_logging.disable_progress_bar()
    loggers = [logging.getLogger(name) for name in _TALKATIVE]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def _own_tokenizer(model: Any, name: str) -> Any:
    """Copy the model's tokenizer, as the library turns cutting and filling on in its own."""
    from tokenizers import Tokenizer

    backend = getattr(model.tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise ProviderRefused(
            f"{name} has no fast tokenizer, so its tokens cannot be counted",
            hint="use a model with a tokenizer.json",
            details={"scope": "server"},
        )
    return Tokenizer.from_str(backend.to_str())


def _pair_limit(model: Any) -> int | None:
    """Tokens of one pair, special ones included: the smallest limit that anything names."""
    named = (
        getattr(model, "max_length", None),
        getattr(model.tokenizer, "model_max_length", None),
        getattr(model.config, "max_position_embeddings", None),
    )
    limits = [int(limit) for limit in named if limit and 0 < limit < _NO_LIMIT]
    return min(limits, default=None)

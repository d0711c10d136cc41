"""Any local embedding model or cross-encoder with an ONNX graph, in this process, without torch.

Texts run one at a time on as many threads as there are CPUs: nothing is padded, which costs more
than batches save, and no vector can depend on its neighbours, as it would where a graph quantizes
activations over a whole batch.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragx.errors import InputTooLong, MissingDependency, ProviderError, ProviderRefused
from ragx.providers.base import EmbeddingOptions, RerankOptions, prefix_fingerprint
from ragx.providers.model_files import OnnxDirectory, files_digest, onnx_directory
from ragx.providers.model_tokens import ModelTokens
from ragx.providers.runtime import runtime_faults, session_options, usable_cpus
from ragx.providers.vectors import mean_direction, unit_rows

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from tokenizers import Encoding, Tokenizer

    Array = npt.NDArray[np.float32]

__all__ = ["OnnxEmbedder", "OnnxReranker", "fingerprint"]

# Models of short inputs read a chunk as windows, as the built-in one does; the others have room
# for the chunks that their makers had in mind.
_SHORT_MODEL_TOKENS = 1024
_SHORT_CHUNK_TOKENS = 450
_LONG_CHUNK_TOKENS = 800

_INPUTS = ("input_ids", "attention_mask", "token_type_ids", "position_ids")
_SENTENCE_OUTPUT = "sentence_embedding"
_TOKEN_OUTPUTS = ("last_hidden_state", "token_embeddings")
_INSTALL_HINT = "install ragx again from its checkout: pip install ."


def fingerprint(options: EmbeddingOptions) -> str:
    """Name the vector space of a local model by the content of its files.

    Where the directory lies and what it is called make no difference.

    Raises:
        ConfigError: the directory or one of its files cannot be used.
    """
    return _fingerprint(onnx_directory(options.model, "embeddings"), options)


def _fingerprint(files: OnnxDirectory, options: EmbeddingOptions) -> str:
    # Weights of large models lie beside the graph: model.onnx_data, model.onnx.data and the like.
    beside = files.graph.parent.glob(f"{files.graph.name}?*")
    digest = files_digest([files.graph, *sorted(beside), files.tokenizer])
    pooling = "+".join(files.pooling)
    return f"onnx:{digest}:{pooling}:{files.max_tokens}:{prefix_fingerprint(options)}"


class OnnxEmbedder:
    """A sentence-embedding directory; the model loads on first use."""

    batch_size = 1
    in_process = True

    def __init__(self, options: EmbeddingOptions) -> None:
        """Take settings; the small files of the directory are read, and its content hashed.

        Args:
            options: `model` is the directory, or one of several ONNX files in it.
        Raises:
            ConfigError: the directory or one of its files cannot be used.
        """
        files = onnx_directory(options.model, "embeddings")
        self.fingerprint = _fingerprint(files, options)
        self.model = files.name
        self.dimension: int | None = None
        self.max_tokens = files.max_tokens
        is_short = files.max_tokens is not None and files.max_tokens < _SHORT_MODEL_TOKENS
        self.default_chunk_tokens = _SHORT_CHUNK_TOKENS if is_short else _LONG_CHUNK_TOKENS
        self.workers = usable_cpus()
        self._files = files
        self._options = options
        self._graph = _Graph(files)
        self._tokens = _tokens(files.tokenizer)

    def embed_documents(self, texts: Sequence[str]) -> Array:
        """Embed passages one by one, each behind the document prefix.

        Returns:
            (n, dimension) float32 unit rows.
        Raises:
            InputTooLong: a text is over the model's limit; nothing was embedded.
            ProviderRefused: the files are not a model that gives sentence embeddings.
            ProviderError: onnxruntime failed.
        """
        import numpy as np

        encodings = [self._tokens.encode(self._options.doc_prefix + text) for text in texts]
        limit = self.max_tokens
        for position, encoding in enumerate(encodings):
            if limit is not None and len(encoding) > limit:
                raise InputTooLong(
                    f"a text has {len(encoding)} tokens; {self.model} reads {limit}",
                    hint="make chunking.size_tokens smaller",
                    details={"tokens": len(encoding), "limit": limit, "position": position},
                )
        if not encodings:
            return np.zeros((0, self.dimension or 0), np.float32)
        return unit_rows(np.stack([self._vector(encoding) for encoding in encodings]))

    def embed_query(self, text: str) -> Array:
        """Embed a question behind the query prefix; a long one as the mean of its windows.

        Returns:
            (dimension,) float32 unit vector.
        Raises:
            InputTooLong: the prefix alone fills the model's window.
            ProviderRefused: the files are not a model that gives sentence embeddings.
            ProviderError: onnxruntime failed.
        """
        import numpy as np

        prefix = self._options.query_prefix
        windows = self._tokens.windows(
            text, self.max_tokens, lambda part: self._tokens.encode(prefix + part)
        )
        rows = unit_rows(np.stack([self._vector(encoding) for _, encoding in windows]))
        return mean_direction(rows, [len(encoding) for _, encoding in windows])

    def token_starts(self, text: str) -> Sequence[int]:
        """Return the character offsets at which tokens of `text` start, ascending.

        Raises:
            ProviderRefused: the tokenizer cannot be used.
        """
        return self._tokens.starts(text)

    def count_tokens(self, text: str) -> int:
        """Count the tokens of a passage with document prefix and special tokens.

        Raises:
            ProviderRefused: the tokenizer cannot be used.
        """
        return self._tokens.count(self._options.doc_prefix + text)

    def close(self) -> None:
        """Drop the model; the next call loads it again."""
        self._graph.close()

    def _vector(self, encoding: Encoding) -> Array:
        """One text's vector, of any length."""
        import numpy as np

        output = self._graph.run(encoding, self._output)
        if output.ndim == 3 and self._files.further and output.shape[0] == 1:
            raise ProviderRefused(
                f"{self._files.graph} ends before the module {self._files.further[0]} that "
                "modules.json names",
                hint="export the model with its sentence_embedding output, "
                "or ragx config set embeddings.provider sentence-transformers",
                details={"scope": "server"},
            )
        if output.ndim == 3 and output.shape[:2] == (1, len(encoding)):
            parts = [_POOL[name](output[0]) for name in self._files.pooling]
            vector: Array = np.concatenate(parts)
        elif output.ndim == 2 and output.shape[0] == 1:
            vector = output[0]
        else:
            raise ProviderRefused(
                f"{self._files.graph} gives an array of shape {output.shape} for one text of "
                f"{len(encoding)} tokens, neither a vector per token nor one per text",
                hint="name a model for sentence embeddings: "
                "ragx config set embeddings.model /path/to/model-directory",
                details={"scope": "server"},
            )
        self.dimension = len(vector)
        return vector

    def _output(self, outputs: Sequence[Any]) -> str:
        """Which output to read: the model's own sentence vector, or what to pool."""
        names = [output.name for output in outputs]
        for name in (_SENTENCE_OUTPUT, *_TOKEN_OUTPUTS):
            if name in names:
                return name
        # `pooler_output` and its like stand beside the tokens, and were trained for other things.
        return next((o.name for o in outputs if len(o.shape or ()) == 3), str(names[0]))


class OnnxReranker:
    """A local cross-encoder; the model loads on first use."""

    def __init__(self, options: RerankOptions) -> None:
        """Take settings; only the small files of the directory are read.

        Args:
            options: `model` is the directory, or one of several ONNX files in it.
        Raises:
            ConfigError: the directory or one of its files cannot be used.
        """
        self._files = onnx_directory(options.model, "rerank")
        self.model = self._files.name
        self._graph = _Graph(self._files)
        self._tokens = _tokens(self._files.tokenizer)

    def scores(self, query: str, passages: Sequence[str]) -> list[float]:
        """Score passages against a question; one over the limit counts as its best window.

        Of a question that fills more than half of what the model reads, the first half of the
        limit counts.

        Returns:
            One logit per passage, in order; of two classes the difference.
        Raises:
            InputTooLong: not even one token of a passage has room beside the question.
            ProviderRefused: the files are not a cross-encoder.
            ProviderError: onnxruntime failed, or a score is not finite.
        """
        if not passages:
            return []
        limit = self._files.max_tokens
        if limit is not None:
            query = self._tokens.head(query, limit // 2)
        windows = [
            self._tokens.windows(text, limit, lambda part: self._tokens.encode(query, part))
            for text in passages
        ]
        pool = ThreadPoolExecutor(usable_cpus(), thread_name_prefix="ragx-rerank")
        try:
            pairs = [pair for some in windows for _, pair in some]
            scored = iter(list(pool.map(self._score, pairs)))
        finally:
            # After Ctrl-C nobody waits for what has not begun.
            pool.shutdown(cancel_futures=True)
        return [max(next(scored) for _ in some) for some in windows]

    def close(self) -> None:
        """Drop the model; the next call loads it again."""
        self._graph.close()

    def _score(self, pair: Encoding) -> float:
        output = self._graph.run(pair, self._output)
        logits = [float(value) for value in output.reshape(-1)]
        if len(logits) not in (1, 2) or output.shape[0] != 1:
            raise ProviderRefused(
                f"{self._files.graph} gives an array of shape {output.shape} for one pair; "
                "a cross-encoder gives one number",
                hint="name a cross-encoder: ragx config set rerank.model /path/to/model-directory",
                details={"scope": "server"},
            )
        score = logits[-1] - (logits[0] if len(logits) == 2 else 0.0)
        if not math.isfinite(score):
            raise ProviderError(f"{self.model} gave the score {score}")
        return score

    def _output(self, outputs: Sequence[Any]) -> str:
        names = [output.name for output in outputs]
        return "logits" if "logits" in names else str(names[0])


class _Graph:
    """A graph that is loaded once, at the first text, and run by any number of threads."""

    def __init__(self, files: OnnxDirectory) -> None:
        self._path = files.graph
        self._lock = threading.Lock()
        self._session: Any = None

    def run(self, encoding: Encoding, choose: Callable[[Sequence[Any]], str]) -> Array:
        """Run one tokenized text; `choose` picks the output by name from all of them."""
        import numpy as np

        session = self._loaded()
        n_tokens = len(encoding)
        values = {
            "input_ids": encoding.ids,
            "attention_mask": [1] * n_tokens,
            "token_type_ids": encoding.type_ids,
            "position_ids": range(n_tokens),
        }
        feed = {
            wanted.name: np.array(
                [values[wanted.name]], np.int32 if "int32" in wanted.type else np.int64
            )
            for wanted in session.get_inputs()
        }
        try:
            output = session.run([choose(session.get_outputs())], feed)[0]
        except runtime_faults() as exc:
            reason = str(exc).splitlines()[0]
            raise ProviderError(
                f"onnxruntime failed on a text of {n_tokens} tokens: {reason}"
            ) from exc
        return np.asarray(output, np.float32)

    def close(self) -> None:
        with self._lock:
            self._session = None

    def _loaded(self) -> Any:
        with self._lock:
            if self._session is None:
                self._session = self._load()
            return self._session

    def _load(self) -> Any:
        try:
            import onnxruntime
        except ImportError as exc:
            raise MissingDependency(
                f"onnxruntime cannot be imported: {exc}", hint=_INSTALL_HINT
            ) from exc
        try:
            # By path, as weights may lie in files beside it.
            session = onnxruntime.InferenceSession(
                str(self._path), session_options(), providers=["CPUExecutionProvider"]
            )
        except runtime_faults() as exc:
            reason = str(exc).splitlines()[0]
            raise ProviderRefused(
                f"onnxruntime cannot open {self._path}: {reason}",
                hint=f"get or export the model again: {self._path.parent}",
                details={"scope": "server"},
            ) from exc
        for wanted in session.get_inputs():
            shape = wanted.shape
            if wanted.name not in _INPUTS or any(isinstance(size, int) for size in shape[1:]):
                raise ProviderRefused(
                    f"{self._path} wants an input {wanted.name} of shape {shape}; supported are "
                    f"{', '.join(_INPUTS)}, for any number of tokens",
                    hint="export the model for feature extraction, with dynamic axes "
                    "and without a cache",
                    details={"scope": "server"},
                )
        return session


def _tokens(path: Path) -> ModelTokens:
    def load() -> Tokenizer:
        try:
            from tokenizers import Tokenizer
        except ImportError as exc:
            raise MissingDependency(
                f"tokenizers cannot be imported: {exc}", hint=_INSTALL_HINT
            ) from exc
        try:
            return Tokenizer.from_file(str(path))
        except Exception as exc:  # the library raises no class of its own
            raise ProviderRefused(
                f"{path} is not a tokenizer: {exc}",
                hint=f"get the model's files again: {path.parent}",
                details={"scope": "server"},
            ) from exc

    return ModelTokens(load)


def _weighted_mean(tokens: Array) -> Array:
    import numpy as np

    # Later tokens of a causal model have seen more of the text.
    weights = np.arange(1, len(tokens) + 1, dtype=np.float32)
    weighted: Array = weights @ tokens / weights.sum()
    return weighted


# (n_tokens, d) -> (d,), without padding.
_POOL: dict[str, Callable[[Array], Array]] = {
    "mean": lambda tokens: tokens.mean(axis=0),
    "cls": lambda tokens: tokens[0],
    "lasttoken": lambda tokens: tokens[-1],
    "max": lambda tokens: tokens.max(axis=0),
    "mean_sqrt_len": lambda tokens: tokens.sum(axis=0) / math.sqrt(len(tokens)),
    "weightedmean": _weighted_mean,
}

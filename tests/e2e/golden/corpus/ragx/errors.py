"""Every fault ragx raises on purpose.

    RagxError                    code, exit_status, hint, details
    ├── UsageError               bad flag, argument or query text
    ├── ConfigError              ragx.toml, ~/.ragxrc or the environment says something invalid
    ├── CorpusError              the root cannot be used as a corpus
    ├── ExtractionError          one file's bytes could not be turned into text
    ├── ProviderError            a model or server failed
    │   ├── ProviderUnavailable    nothing answers (refused, timed out, circuit open)
    │   ├── ProviderRefused        it answered no, and asking again cannot help (401, 404, ...)
    │   ├── InputTooLong           one text is over the model's limit
    │   └── BadEmbedding           the reply is not what was asked for (count, dimension, NaN)
    ├── MissingDependency        a part needs a library that is not installed
    └── StoreError               the index cannot be read or written
        ├── IndexMissing           there is no index yet
        ├── IndexBusy              another process is writing
        ├── IndexDamaged           stored data contradicts itself
        └── ManifestMismatch       the index was built with other settings

`code` is stable and documented in CONTRACTS.md; a message says what and where, a hint says what
to do next. Foreign exceptions become one of these in `providers/` and `store/` only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

__all__ = [
    "BadEmbedding",
    "ConfigError",
    "CorpusError",
    "ExtractionError",
    "IndexBusy",
    "IndexDamaged",
    "IndexMissing",
    "InputTooLong",
    "ManifestMismatch",
    "MissingDependency",
    "ProviderError",
    "ProviderRefused",
    "ProviderUnavailable",
    "RagxError",
    "StoreError",
    "UsageError",
]


class RagxError(Exception):
    """Base of every deliberate fault.

    Args:
        message: one line: what is wrong, and where.
        hint: one line: the command or change that helps; may be empty.
        code: overrides the class's code for a more specific one.
        details: JSON-ready extra facts for machines.
    """

    default_code: ClassVar[str] = "error"
    exit_status: ClassVar[int] = 2

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        code: str | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.code = code or self.default_code
        self.details: dict[str, Any] = dict(details or {})


class UsageError(RagxError):
    """The command line or a request asks for something that does not exist or make sense."""

    default_code = "usage"


class ConfigError(RagxError):
    """A setting is unknown, ill-typed, out of range or contradicts another."""

    default_code = "config"


class CorpusError(RagxError):
    """The directory cannot serve as a corpus (absent, too broad, not a directory)."""

    default_code = "corpus"


class ExtractionError(RagxError):
    """One file's bytes could not be turned into text; other files are unaffected."""

    default_code = "extraction"


class ProviderError(RagxError):
    """A model or a model server failed."""

    default_code = "provider"


class ProviderUnavailable(ProviderError):
    """Nothing usable answers: refused, timed out, or gave up after retries."""

    default_code = "provider_unavailable"


class ProviderRefused(ProviderError):
    """The provider said no in a way that a retry cannot change."""

    default_code = "provider_refused"


class InputTooLong(ProviderError):
    """One text exceeds what the model reads; the caller may split it."""

    default_code = "input_too_long"


class BadEmbedding(ProviderError):
    """A reply does not hold the vectors that were asked for."""

    default_code = "bad_embedding"


class MissingDependency(RagxError):
    """A part of ragx needs a library that is not installed."""

    default_code = "missing_dependency"


class StoreError(RagxError):
    """The index could not be read or written."""

    default_code = "store"


class IndexMissing(StoreError):
    """There is no index at this root yet."""

    default_code = "index_missing"


class IndexBusy(StoreError):
    """Another process holds the writer's lock."""

    default_code = "index_busy"


class IndexDamaged(StoreError):
    """Stored data fails its checks."""

    default_code = "index_damaged"


class ManifestMismatch(StoreError):
    """Settings that shape the index differ from those it was built with."""

    default_code = "manifest_mismatch"

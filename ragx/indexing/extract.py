"""Documents on their way into an index: who reads them, what was read before, what went wrong.

What a document holds follows from its bytes, its extractor and the limits alone. So the result is
stored under these, a failure like a success, and a copy, a rename or `--full` extracts nothing.
"""

from __future__ import annotations

import json
import zlib
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol

import orjson

from ragx.documents.formats import registry
from ragx.documents.formats.base import Extracted, ExtractLimits, to_wire
from ragx.documents.formats.sniff import OLE, choose
from ragx.documents.guard import Guard
from ragx.documents.secrets import secret_reason
from ragx.documents.wire import checked, max_reply_bytes, one_line
from ragx.errors import ExtractionError
from ragx.indexing.prepare import Document
from ragx.store.base import Reader

__all__ = [
    "POLICY",
    "Claim",
    "DocumentReader",
    "ExtractionCache",
    "KeptExtractions",
    "is_of_the_document",
    "not_installed",
]

# What leaves a document out and is nobody's fault: by the code of the error the reason for it.
POLICY = {
    "encrypted": "encrypted",
    "no_text": "no_text",
    "too_big": "too_large",
    "no_extractor": "no_extractor",
    "secret": "secret",
}
# Failures that are kept: of the content, and those by time, memory or a crash with their limits.
_PASSING = ("extraction_timeout", "extraction_memory", "extraction_crashed")
_KEPT = frozenset(("encrypted", "no_text", "too_big", "damaged", *_PASSING))
# The first byte of what is kept says which it is: the store lets go of them by other rules.
_TEXT, _FAILURE = b"T", b"F"
# Markup that is text itself: where nothing can be extracted, its source is indexed as it stands.
_READABLE_AS_TEXT = frozenset({"html"})


class ExtractionCache(Protocol):
    """Where results are kept; see `store.base.Writer`."""

    def extraction(self, key: str) -> bytes | None:
        """What was stored under a key."""

    def put_extraction(self, key: str, data: bytes) -> None:
        """Store a result."""


class KeptExtractions:
    """Results that a snapshot has; keeps nothing more."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def extraction(self, key: str) -> bytes | None:
        """What was stored under a key."""
        return self._reader.extraction(key)

    def put_extraction(self, key: str, data: bytes) -> None:
        """Let go of a result."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What is to read a file: `format` is "" for text; `extractor` is stored with the file."""

    format: str = ""
    extractor: str = ""
    installed: bool = True


class DocumentReader(AbstractContextManager["DocumentReader"]):
    """Extracts documents, each content once.

    Args:
        limits: what one document may cost.
        cache: None keeps nothing.
        retry: whether what failed by time, memory or a crash is tried again.
        hasty: whether `expected` asks plug-ins about a file only if one may have read it before:
            to find them takes longer than all else that `status` does.
    """

    def __init__(
        self,
        limits: ExtractLimits,
        cache: ExtractionCache | None = None,
        *,
        retry: bool = False,
        hasty: bool = False,
    ) -> None:
        self._limits = limits
        self._retry = retry
        self._hasty = hasty
        self._cache = cache
        self._guard = Guard(limits)
        self._plugins: tuple[registry.Description, ...] | None = None
        self._claims: dict[str, Claim] = {"": Claim()}

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the process that extracts."""
        self._guard.close()

    @property
    def plugins(self) -> tuple[registry.Description, ...]:
        """The extractors that are installed beside ragx's own; asks for them once."""
        if self._plugins is None:
            # Only their own code tells their versions, and that runs under guard.
            self._plugins = tuple(self._guard.describe()) if registry.plugins() else ()
        return self._plugins

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is wrong with extractors that are installed, a line each."""
        return self._guard.warnings

    def key(self, claim: Claim, content_hash: str) -> str:
        """Under which the result for a file's content is kept."""
        return f"{content_hash} {claim.extractor}"

    def claim(self, path: str, raw: bytes) -> Claim:
        """What reads a file, told by its content before its name."""
        return self._claim_of(choose(path, raw, self.plugins))

    def expected(self, path: str, stored: str) -> str:
        """What would read a file now that was read by `stored`, its bytes being the same."""
        name = stored.partition("@")[0]
        if self._hasty and (not name or self._built_in(name).extractor == stored):
            return stored
        if not any(one.name == name for one in self.plugins):
            # As `choose` has it: by extension, unless the content is of another format than that.
            found = registry.find(name)
            if found is None or path.lower().rpartition(".")[2] in found.extensions:
                taken = [one.name for one in self.plugins if path.lower().endswith(_endings(one))]
                name = taken[0] if taken else name
        return self._claim_of(name).extractor

    def _claim_of(self, name: str) -> Claim:
        if name not in self._claims:
            self._claims[name] = self._new_claim(name)
        return self._claims[name]

    def _new_claim(self, name: str) -> Claim:
        identity = next((one.identity for one in self.plugins if one.name == name), "")
        return Claim(name, self._bounded(identity)) if identity else self._built_in(name)

    def _built_in(self, name: str) -> Claim:
        if name == OLE:
            return Claim(name, self._bounded(f"{OLE}@1"))
        found = registry.find(name)
        if found is None or not registry.is_installed(found):
            return Claim(name, f"{name}@", installed=False)
        return Claim(name, self._bounded(registry.identity(found)))

    def _bounded(self, identity: str) -> str:
        """With the limits that what is extracted depends on."""
        limits = self._limits
        return f"{identity} {limits.max_chars}/{limits.max_blocks}/{limits.max_expanded_bytes}"

    def read(
        self, path: str, claim: Claim, raw: bytes, content_hash: str, *, anew: bool = False
    ) -> Document | None:
        """The text of a document; None for a file that is text itself.

        Args:
            anew: whether to extract what was extracted before, too.
        Raises:
            ExtractionError: with a code of `POLICY` if it is to be left out, another if it failed.
        """
        if not claim.format:
            return None
        try:
            extracted = self._extracted(path, claim, raw, content_hash, anew=anew)
        except ExtractionError as fault:
            if claim.format in _READABLE_AS_TEXT and fault.code in ("no_text", "no_extractor"):
                return None
            raise
        return Document(claim.format, claim.extractor, extracted)

    def _extracted(
        self, path: str, claim: Claim, raw: bytes, content_hash: str, *, anew: bool
    ) -> Extracted:
        if claim.format == OLE:
            raise _explained(raw)
        if not claim.installed:
            raise ExtractionError(not_installed(claim.format), code="no_extractor")
        if len(raw) > self._limits.max_bytes:
            what = f"it has {len(raw):,} bytes, over {self._limits.max_bytes:,}"
            raise ExtractionError(what, code="too_big")
        key = self.key(claim, content_hash)
        stored = None if anew else self._stored(key)
        if isinstance(stored, ExtractionError):
            raise stored
        if stored is not None:
            _refuse_secrets(path, stored)
            return stored
        try:
            extracted = self._guard.extract(claim.format, raw)
            if not extracted.blocks:
                raise ExtractionError("it holds no text", code="no_text")
        except ExtractionError as fault:
            self._keep_failure(key, fault)
            raise
        # A secret depends on the file's name, too, and its text is not kept.
        _refuse_secrets(path, extracted)
        self._keep(key, _TEXT, to_wire(extracted))
        return extracted

    def _stored(self, key: str) -> Extracted | ExtractionError | None:
        """What was kept under a key; None if that is nothing that can be believed or counts now."""
        data = self._cache.extraction(key) if self._cache is not None else None
        if not data:
            return None
        try:
            unpacker = zlib.decompressobj()
            body = unpacker.decompress(data[1:], max_reply_bytes(self._limits))
            if unpacker.unconsumed_tail:
                return None
            if data[:1] == _TEXT:
                return checked(body, self._limits)
            result = orjson.loads(body)
            code, message, passing = result["code"], result["message"], result["passing"]
            if code not in _KEPT or (passing and (self._retry or passing != self._passing())):
                return None
            return ExtractionError(one_line(message), code=code)
        except (zlib.error, ValueError, KeyError, TypeError):
            return None  # an index may come from anybody

    def _keep_failure(self, key: str, fault: ExtractionError) -> None:
        if fault.code in _KEPT:
            passing = self._passing() if fault.code in _PASSING else None
            result = {"code": fault.code, "message": fault.message, "passing": passing}
            self._keep(key, _FAILURE, result)

    def _passing(self) -> list[float]:
        """What a failure that is not of the document alone depends on."""
        return [self._limits.timeout_s, self._limits.max_memory_bytes]

    def _keep(self, key: str, mark: bytes, result: dict[str, Any]) -> None:
        if self._cache is not None:
            text = json.dumps(result, ensure_ascii=False, separators=(",", ":"))
            self._cache.put_extraction(
                key, mark + zlib.compress(text.encode("utf-8", "replace"), 1)
            )


def _refuse_secrets(path: str, extracted: Extracted) -> None:
    """What is packed up in a document is as plain in an index as anything else.

    Raises:
        ExtractionError: code "secret".
    """
    strings = [extracted.title, *extracted.tags]
    strings += [f"{part.what} {part.note}" for part in extracted.skipped_parts]
    places = dict.fromkeys(block.place for block in extracted.blocks)
    strings += [place.name for place in places]
    for block in extracted.blocks:
        strings.append(block.text)
        strings += [link.target for link in block.links]
    secret = secret_reason(path, "\n".join(strings).encode("utf-8", "replace"))
    if secret:
        raise ExtractionError(secret, code="secret")


def _endings(plugin: registry.Description) -> tuple[str, ...]:
    return tuple(f".{extension}" for extension in plugin.extensions)


def _explained(raw: bytes) -> ExtractionError:
    """Why a file of Office's old container cannot be read: no fault of the file."""
    from ragx.documents.formats.office.ole import explain

    fault = explain(raw)
    if fault.code in POLICY:
        return fault
    return ExtractionError(fault.message, code="no_extractor")


def is_of_the_document(code: str) -> bool:
    """Whether a failure follows from a document's content, so that it fails until that changes."""
    return code == "damaged" or code in _PASSING


def not_installed(name: str) -> str:
    """That nothing here reads a format, and what would."""
    found = registry.find(name)
    label = found.label if found else name
    return f"{label}: {registry.HINT}"

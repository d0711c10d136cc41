"""Documents are read in a process of their own, which may crash, hang or run out of memory.

The libraries that read documents are large, partly written in C, and fed with whatever lies in a
directory. `Guard` keeps one worker process (`documents.worker`), hands it document after document,
and replaces it when one has brought it down; that document alone fails. What the worker says is
believed as little as the document (`documents.wire`).
"""

from __future__ import annotations

import re
import threading
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any

from ragx.documents.formats import registry
from ragx.documents.formats.base import (
    FAULTS,
    Extracted,
    ExtractLimits,
    too_big,
)
from ragx.documents.formats.registry import Description, Plugin
from ragx.documents.wire import Frame, WireError, checked, one_line
from ragx.documents.worker import BROKEN, OUT_OF_MEMORY
from ragx.documents.worker_process import WorkerGone, WorkerProcess, WorkerSilent
from ragx.errors import ExtractionError, MissingDependency

__all__ = ["Guard"]

# A worker is replaced after so many documents, or once its memory has grown by a share of what a
# document may take: libraries leak, and a leak must not fail a later document.
_MAX_SERVED = 500
_MAX_GROWN_SHARE = 0.25
_NAME = re.compile(r"[a-z][a-z0-9_+.-]{0,39}")
_EXTENSION = re.compile(r"[a-z0-9_+-][a-z0-9_+.-]{0,39}")


class Guard(AbstractContextManager["Guard"]):
    """Extracts documents, whatever they do to what reads them.

    A process is started with the first document; to close the guard ends it. Calls from several
    threads take turns.

    Args:
        limits: for each document. That of memory holds on Linux only, see `documents.worker`.
    """

    def __init__(self, limits: ExtractLimits) -> None:
        self._limits = limits
        self._lock = threading.Lock()
        self._worker: WorkerProcess | None = None
        self._served = 0
        self._grown = 0
        self._descriptions: tuple[Description, ...] | None = None
        self._warnings: list[str] = []

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _exc: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is wrong with plug-ins, and what they take over; complete after `describe`."""
        return tuple(self._warnings)

    @property
    def worker_pid(self) -> int:
        """The worker's process id; 0 while there is none."""
        return self._worker.pid if self._worker else 0

    def extract(self, name: str, raw: bytes) -> Extracted:
        """Read a document.

        Args:
            name: of a format or a plug-in's extractor, as `sniff.choose` gives it.
            raw: the document's bytes.
        Raises:
            ExtractionError: code "encrypted", "no_text", "too_big" or "damaged" as the extractor
                says; "extraction_timeout", "extraction_memory" or "extraction_crashed" if it could
                not; "extractor_broken" if the extractor, or the
                process that it runs in, does not start.
            MissingDependency: a library that the format needs is not installed.
        """
        if len(raw) > self._limits.max_bytes:
            raise too_big(f"it has {len(raw):,} bytes, over {self._limits.max_bytes:,}")
        with self._lock:
            header = self._request(name)
            reply, body = self._ask(header, raw)
            if error := reply.get("error"):
                raise _fault(error, one_line(reply.get("message") or "no reason is given"))
            try:
                return checked(body, self._limits)
            except WireError as exc:
                # Who says such things may have more of the kind in the pipe.
                self._drop()
                raise _crashed(f"what was read of it makes no document: {exc}") from exc

    def describe(self) -> tuple[Description, ...]:
        """The extractors of all plug-ins, in the order in which they win.

        A plug-in that cannot be loaded, or hangs while it is, is left out and named in `warnings`.
        """
        with self._lock:
            return self._described()

    def close(self) -> None:
        """End the worker. The guard stays usable: another document starts another."""
        with self._lock:
            self._drop()

    def _request(self, name: str) -> dict[str, Any]:
        for description in self._described():
            if description.name == name:
                return {"op": "extract", "plugin": _entry_point(description.plugin)}
        format = registry.find(name)
        if format is not None and not registry.is_installed(format):
            needs = ", ".join(format.requires)
            what = f"{format.label}: to read it takes {needs}, which is not installed"
            raise MissingDependency(what, hint=registry.HINT)
        return {"op": "extract", "name": name}

    def _described(self) -> tuple[Description, ...]:
        if self._descriptions is None:
            found: dict[str, Description] = {}
            for plugin in registry.plugins():
                description = self._describe(plugin)
                if description is None:
                    continue
                if description.name in found:
                    self._warn(plugin, f"is not used: another one reads {description.name}")
                    continue
                if registry.find(description.name):
                    self._warn(plugin, f"takes over {description.name}")
                found[description.name] = description
            self._descriptions = tuple(found.values())
        return self._descriptions

    def _describe(self, plugin: Plugin) -> Description | None:
        try:
            reply, _ = self._ask({"op": "describe", "plugin": _entry_point(plugin)}, b"")
        except ExtractionError as exc:
            self._warn(plugin, f"is not used: {exc.message}")
            return None
        name, version, extensions = (
            reply.get(key) for key in ("name", "version", "extensions")
        )  # fmt: skip
        if "error" in reply:
            self._warn(plugin, f"is not used: {one_line(reply.get('message', 'out of memory'))}")
        elif not (
            isinstance(name, str)
            and _NAME.fullmatch(name)
            and isinstance(version, str)
            and isinstance(extensions, list)
            and all(isinstance(each, str) and _EXTENSION.fullmatch(each) for each in extensions)
        ):
            self._warn(plugin, "is not used: its name, version or extensions are not valid")
        else:
            return Description(name, one_line(version, 100), tuple(extensions), plugin)
        return None

    def _warn(self, plugin: Plugin, what: str) -> None:
        package = f" of {plugin.distribution}" if plugin.distribution else ""
        self._warnings.append(f"plug-in {plugin.name}{package} {what}")

    def _ask(self, header: dict[str, Any], raw: bytes) -> Frame:
        """Ask the worker; one that has served before and fails is not held against the document.

        What it had read until then may have left it with too little memory, or a heap in pieces.
        """
        is_fresh = self._prepare()
        try:
            return self._ask_once(header, raw)
        except ExtractionError as exc:
            if is_fresh or exc.code == "extraction_timeout":
                raise
        self._prepare()
        return self._ask_once(header, raw)

    def _ask_once(self, header: dict[str, Any], raw: bytes) -> Frame:
        if self._worker is None:
            raise _crashed("there is no process to read it")
        try:
            reply, body = self._worker.ask(header, raw)
            if reply.get("error") == "memory":
                raise _out_of_memory(self._limits)
        except WorkerSilent:
            self._drop()
            seconds = f"{self._limits.timeout_s:g} s"
            raise _too_slow(f"to read it takes longer than {seconds}") from None
        except WorkerGone as exc:
            self._drop()
            raise _crash(exc, self._limits) from exc
        except BaseException:  # an interrupt, too: a worker in the middle of things is of no use
            self._drop()
            raise
        self._served += 1
        grown = reply.get("grown")
        self._grown = grown if isinstance(grown, int) else 0
        return reply, body

    def _prepare(self) -> bool:
        """See to it that there is a worker; whether it is a new one."""
        worn = (
            self._served >= _MAX_SERVED
            or self._grown > _MAX_GROWN_SHARE * self._limits.max_memory_bytes
        )
        if self._worker is not None and (worn or not self._worker.is_running):
            self._drop()
        if self._worker is None:
            self._served = self._grown = 0
            try:
                self._worker = WorkerProcess(self._limits)
            except WorkerGone as exc:
                raise _not_started(str(exc), tail=exc.tail) from exc
            except WorkerSilent:
                raise _not_started("does not start") from None
        return self._served == 0

    def _drop(self) -> None:
        if self._worker is not None:
            worker, self._worker = self._worker, None
            worker.end()


def _entry_point(plugin: Plugin) -> dict[str, str]:
    return {"name": plugin.name, "value": plugin.value, "group": registry.PLUGIN_GROUP}


def _fault(code: object, message: str) -> ExtractionError:
    """The extractor's own words; a code of any other kind is not its to give."""
    if code == BROKEN:
        what = f"what reads it cannot be loaded: {message}"
        return ExtractionError(what, hint=registry.HINT, code="extractor_broken")
    return ExtractionError(message, code=str(code) if code in FAULTS else "damaged")


def _crashed(message: str, *, tail: str = "") -> ExtractionError:
    details = {"stderr": one_line(tail, 2000)} if tail.strip() else {}
    return ExtractionError(message, code="extraction_crashed", details=details)


def _not_started(how: str, *, tail: str = "") -> ExtractionError:
    """No fault of any document: the machine is out of processes, say."""
    details = {"stderr": one_line(tail, 2000)} if tail.strip() else {}
    what = f"the process that reads documents {how}"
    return ExtractionError(what, code="extractor_broken", details=details)


def _too_slow(message: str) -> ExtractionError:
    return ExtractionError(message, code="extraction_timeout")


def _out_of_memory(limits: ExtractLimits) -> ExtractionError:
    size = f"{limits.max_memory_bytes / (1 << 20):,.0f} MiB"
    message = f"to read it takes more than {size} of memory"
    return ExtractionError(message, code="extraction_memory")


def _crash(gone: WorkerGone, limits: ExtractLimits) -> ExtractionError:
    if any(words in gone.tail for words in OUT_OF_MEMORY):
        return _out_of_memory(limits)
    if str(gone) == "SIGXCPU":
        return _too_slow(f"to read it takes longer than {limits.timeout_s:g} s")
    return _crashed(f"what reads it has crashed: {gone}", tail=gone.tail)

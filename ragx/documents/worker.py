"""The process that reads documents: the child's side of `documents.guard`.

It is run by its path, with `-P`, since this folder has modules named like those of the standard
library. It takes frames (`documents.wire`) on standard input and answers each on what was standard
output; a library that prints writes to nowhere. What it imports before it is ready is on the
clock of every first document, so libraries are imported with the first document that needs them.

What holds where:

- Linux: all that `_limit` sets, and the kernel ends this process with the one that started it.
- macOS: the limits but that of memory, which the system does not keep. A thread looks every half
  second whether the parent is still there; a library that holds the interpreter meanwhile delays
  that, at most until the time limit.
- Windows: the time limit alone, by the parent and by a watchdog here; no limit of memory.
"""

from __future__ import annotations

import os
import sys
from io import FileIO
from typing import Any

if __name__ == "__main__":
    # The same code as the parent's, whatever else is installed.
    _ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    if _ROOT not in sys.path:
        sys.path.insert(0, _ROOT)

from ragx.documents.formats.base import FAULTS, ExtractLimits, to_wire
from ragx.documents.wire import Frame, one_line, read_frame, write_frame
from ragx.errors import ExtractionError

__all__ = ["BROKEN", "OUT_OF_MEMORY", "main"]

# The extractor itself cannot be loaded.
BROKEN = "broken"
# How libraries say that they got no memory, where that is no MemoryError.
OUT_OF_MEMORY = (
    "MemoryError", "bad_alloc", "out of memory", "Out of memory", "cannot allocate",
    "Cannot allocate", "emory allocation failed",
)  # fmt: skip
_PR_SET_PDEATHSIG = 1
_MAX_FILE_BYTES = 16 << 20
_MAX_OPEN_FILES = 128
# Beyond the time limit that the parent keeps.
_SPARE_S = 5


def main(parent: int, limits: ExtractLimits) -> None:
    """Answer frames until the parent closes the pipe, or memory has run out."""
    source, sink = _take_pipes()
    _end_with(parent)
    _limit(limits)
    at_start = _address_space()
    write_frame(sink, {"ready": os.getpid()})
    while frame := read_frame(source, limits.max_bytes):
        _allow(limits.timeout_s)
        header, body = _answer(frame, limits)
        _rest()
        write_frame(sink, {**header, "grown": max(0, _address_space() - at_start)}, body)
        if header.get("error") == "memory":
            return


def _take_pipes() -> tuple[FileIO, FileIO]:
    """Move the pipes to where nothing else finds them by chance."""
    source = os.fdopen(os.dup(0), "rb", buffering=0)
    sink = os.fdopen(os.dup(1), "wb", buffering=0)
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    os.close(nowhere)
    return source, sink


def _answer(frame: Frame, limits: ExtractLimits) -> Frame:
    header, raw = frame
    try:
        if header.get("op") == "describe":
            return _describe(header), b""
        return {}, _dumped(to_wire(_extractor(header)(raw, limits)))
    except ImportError as exc:  # no fault of the document: a library that does not load here
        return {"error": BROKEN, "message": one_line(f"{type(exc).__name__}: {exc}")}, b""
    except ExtractionError as exc:
        code = exc.code if exc.code in FAULTS else "damaged"
        return {"error": code, "message": one_line(exc)}, b""
    except MemoryError:
        return {"error": "memory"}, b""
    except RecursionError:
        return {"error": "damaged", "message": "it is nested too deeply"}, b""
    except BaseException as exc:  # whatever a library raises, exits included
        said = str(exc)
        if any(words in said for words in OUT_OF_MEMORY):
            return {"error": "memory"}, b""
        first = said.strip().partition("\n")[0]
        message = f"{type(exc).__name__}: {first}" if first else type(exc).__name__
        return {"error": "damaged", "message": one_line(message)}, b""


def _extractor(header: dict[str, Any]) -> Any:
    from importlib import import_module

    from ragx.documents.formats.registry import find

    if "plugin" in header:
        return _plugin(header).extract
    if header["name"] == "ole":
        return _explained
    format = find(header["name"])
    if format is None:
        raise LookupError(f"there is no format {header['name']}")
    return import_module(format.module).extract


def _explained(raw: bytes, _limits: ExtractLimits) -> None:
    from importlib import import_module

    raise import_module("ragx.documents.formats.office.ole").explain(raw)


def _plugin(header: dict[str, Any]) -> Any:
    from importlib.metadata import EntryPoint

    return EntryPoint(**header["plugin"]).load()


def _describe(header: dict[str, Any]) -> dict[str, Any]:
    extractor = _plugin(header)
    return {
        "name": str(extractor.name),
        "version": str(extractor.version),
        "extensions": [str(extension) for extension in extractor.extensions],
    }


def _dumped(document: dict[str, Any]) -> bytes:
    import orjson

    try:
        return orjson.dumps(document)
    except TypeError:
        # Halves of surrogate pairs, as broken documents hold them; each becomes "?".
        import json

        return json.dumps(document, ensure_ascii=False).encode("utf-8", "replace")


def _end_with(parent: int) -> None:
    """See to it that this process does not outlive the one that started it."""
    if sys.platform == "linux":
        import ctypes
        import signal

        # The kernel watches the thread that started this process; the guard keeps it.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)
    elif sys.platform != "win32":
        import threading

        threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    import time

    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def _limit(limits: ExtractLimits) -> None:
    if sys.platform == "win32":
        return
    import resource

    bounds = [
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, _MAX_FILE_BYTES),
        (resource.RLIMIT_NOFILE, _MAX_OPEN_FILES),
    ]
    if size := _address_space():
        bounds.append((resource.RLIMIT_AS, size + limits.max_memory_bytes))
    for kind, bound in bounds:
        # Never beyond what the whole program was given.
        ceiling = resource.getrlimit(kind)[1]
        bound = bound if ceiling == resource.RLIM_INFINITY else min(bound, ceiling)
        resource.setrlimit(kind, (bound, bound))


def _allow(timeout_s: float) -> None:
    """Give one document its time, should the parent be unable to watch it."""
    if sys.platform == "linux":
        import resource

        usage = resource.getrusage(resource.RUSAGE_SELF)
        seconds = int(usage.ru_utime + usage.ru_stime + timeout_s + _SPARE_S)
        ceiling = resource.getrlimit(resource.RLIMIT_CPU)[1]
        seconds = seconds if ceiling == resource.RLIM_INFINITY else min(seconds, ceiling)
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, ceiling))
    else:
        import faulthandler

        # Its clock runs in a thread of its own, which needs no interpreter.
        faulthandler.dump_traceback_later(timeout_s + _SPARE_S, exit=True)


def _rest() -> None:
    if sys.platform != "linux":
        import faulthandler

        faulthandler.cancel_dump_traceback_later()


def _address_space() -> int:
    """Bytes of address space in use; 0 where that is not known."""
    if sys.platform != "linux":
        return 0
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    import json

    main(int(sys.argv[1]), ExtractLimits(**json.loads(sys.argv[2])))

"""Embedding of a stream of texts on several threads, with back-pressure.

The consuming thread reads the texts and receives the results, so they may come from a generator
that is not thread-safe, and no more than a bounded number of them is ever waiting. A worker cuts
its next batch when it is free.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar, runtime_checkable

from ragx.errors import ProviderError, RagxError
from ragx.providers.base import Embedder, may_concern_one_text

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Result = npt.NDArray[np.float32] | ProviderError

__all__ = ["EmbedPool", "embed_each"]

K = TypeVar("K")

# Texts read ahead for each worker, at least: about half a second of work for the built-in model,
# so that a slow step of the consumer leaves no worker idle. Of larger batches it is one and a half.
_AHEAD_TEXTS = 32
# The rest of the texts is not cut into smaller batches than this.
_LEAST_SHARE = 16
# What closing waits for: a call of the built-in model mostly ends far sooner, a request to a
# server is left behind.
_CLOSE_WAIT_S = 0.6
_LIVENESS_CHECK_S = 1.0


@runtime_checkable
class _PartsBatches(Protocol):
    """An embedder that finds out itself which of several texts is at fault."""

    def embed_each(
        self, texts: Sequence[str], *, stop: threading.Event | None = None
    ) -> list[Result]:
        """What the function of this name gives."""


def embed_each(
    embedder: Embedder, texts: Sequence[str], *, stop: threading.Event | None = None
) -> list[Result]:
    """Embed a batch so that a text that cannot be embedded fails alone.

    A batch that fails because of its content is halved until the fault is found, unless the
    embedder knows better how to part it; a fault of the server itself fails all of it at once.

    Args:
        embedder: called in this thread.
        texts: any number of passages.
        stop: when set, no further half is tried.
    Returns:
        Per text, in order, its (dimension,) float32 unit vector or the error.
    """
    if not texts:
        return []
    if isinstance(embedder, _PartsBatches):
        return embedder.embed_each(texts, stop=stop)
    try:
        return list(embedder.embed_documents(texts))
    except ProviderError as error:
        if len(texts) == 1 or not may_concern_one_text(error) or (stop and stop.is_set()):
            return [error] * len(texts)
    middle = len(texts) // 2
    halves = (texts[:middle], texts[middle:])
    return [result for half in halves for result in embed_each(embedder, half, stop=stop)]


@dataclass(frozen=True, slots=True)
class _Died:
    """Last word of a worker that ended by anything but an order to stop."""

    cause: BaseException


class _Run(Generic[K]):
    """The threads and texts of one stream; a worker never sees another stream's texts."""

    def __init__(self, embedder: Embedder) -> None:
        self.done: queue.SimpleQueue[list[tuple[K, Result]] | _Died] = queue.SimpleQueue()
        self.stop = threading.Event()
        self._texts: deque[tuple[K, str]] = deque()
        self._is_last = False
        self._n_open = 0  # texts handed over whose results have not been received
        self._n_busy = 0
        self._changed = threading.Condition()
        self._ended: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._n_running = 0
        self._embedder = embedder

    def _work(self) -> None:
        try:
            while batch := self._take():
                texts = [text for _, text in batch]
                results = embed_each(self._embedder, texts, stop=self.stop)
                with self._changed:
                    self._n_busy -= 1
                self.done.put(
                    [(key, result) for (key, _), result in zip(batch, results, strict=True)]
                )
        except BaseException as exc:
            # Every way to die must reach the consumer, or it would wait for ever.
            self.done.put(_Died(exc))
        finally:
            self._ended.put(None)

    def _take(self) -> list[tuple[K, str]]:
        """Wait for work; [] once there is to be no more.

        A batch is cut when somebody is free to embed it: how large, and how many at a time, may
        change while texts are waiting.
        """
        with self._changed:
            while not self.stop.is_set():
                n_workers = max(1, self._embedder.workers)
                size = max(1, self._embedder.batch_size)
                if self._is_last:
                    # The rest is shared out, or all but one would be idle while it is embedded.
                    share = max(_LEAST_SHARE, -(-len(self._texts) // n_workers))
                    size = min(size, share, len(self._texts))
                if self._n_busy < n_workers and 0 < size <= len(self._texts):
                    self._n_busy += 1
                    self._changed.notify()  # there may be work for the next one, too
                    return [self._texts.popleft() for _ in range(size)]
                self._changed.wait()
        return []

    def fill(self, source: Iterator[tuple[K, str]]) -> bool:
        """Read as many texts ahead as may be waiting; False once all results have been received."""
        while not self._is_last:
            n_workers = max(1, self._embedder.workers)
            size = max(1, self._embedder.batch_size)
            if self._n_open >= n_workers * max(size + size // 2, _AHEAD_TEXTS):
                break
            texts = list(islice(source, size))
            self._n_open += len(texts)
            share = min(size, _LEAST_SHARE)
            while len(self._threads) < min(n_workers, -(-self._n_open // share)):
                self._start_thread()
            with self._changed:
                self._texts += texts
                self._is_last = len(texts) < size
                self._changed.notify_all()
        return self._n_open > 0

    def _start_thread(self) -> None:
        # A server that never answers must not keep the process alive, so its threads are daemons.
        # A daemon inside native code when Python ends aborts the process (measured: SIGABRT on
        # every other Ctrl-C), so the threads of a model in this process are not.
        thread = threading.Thread(
            target=self._work,
            name=f"ragx-embed-{len(self._threads)}",
            daemon=not self._embedder.in_process,
        )
        self._threads.append(thread)
        thread.start()
        self._n_running += 1

    def receive(self) -> list[tuple[K, Result]]:
        """Wait for a batch of results; [] if there was none for a while.

        Raises:
            ProviderError: a worker died; code "worker_died".
            RagxError: a worker met a fault that concerns no text, such as a wrong setting.
        """
        try:
            message = self.done.get(timeout=_LIVENESS_CHECK_S)
        except queue.Empty:
            if any(thread.is_alive() for thread in self._threads):
                return []
            raise ProviderError(
                "the embedding threads ended without a result", code="worker_died"
            ) from None
        if isinstance(message, _Died):
            if isinstance(message.cause, RagxError):
                raise message.cause
            raise ProviderError(
                f"an embedding thread died: {type(message.cause).__name__}: {message.cause}",
                code="worker_died",
            ) from message.cause
        self._n_open -= len(message)
        return message

    def order_stop(self) -> None:
        """Hand out no more work; waits for nothing."""
        self.stop.set()
        with self._changed:
            self._changed.notify_all()

    def wait(self, deadline: float) -> None:
        """Wait until all threads have ended, at most until `time.monotonic()` is `deadline`.

        Not by `Thread.join`: before Python 3.13 a Ctrl-C in it marks a running thread as ended,
        and the interpreter then no longer waits for it.
        """
        while self._n_running:
            try:
                self._ended.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                return
            self._n_running -= 1


class EmbedPool:
    """Runs streams of texts through an embedder on as many threads as it has `workers`.

    Use it as a context manager: leaving the block stops the threads within a second, whatever
    ended it, and leaves the embedder open.
    """

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._runs: list[_Run[Any]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def run(self, jobs: Iterable[tuple[K, str]]) -> Iterator[tuple[K, Result]]:
        """Embed (key, passage) pairs.

        Args:
            jobs: read lazily in the calling thread, at most a bounded number ahead.
        Returns:
            An iterator of (key, (dimension,) float32 unit vector or the ProviderError that only
            this text or its whole server met), one per job, in order of completion.
        Raises:
            ProviderError: a thread died; code "worker_died".
        """
        run: _Run[K] = _Run(self._embedder)
        source = iter(jobs)
        self._runs.append(run)
        try:
            while run.fill(source):
                yield from run.receive()
        finally:
            # This may run while the generator is thrown away, where a second Ctrl-C would be
            # printed instead of raised: so it does not wait. `close` does.
            run.order_stop()

    def close(self) -> None:
        """Stop every stream and wait briefly for the threads; calling it twice does nothing."""
        for run in self._runs:
            run.order_stop()
        deadline = time.monotonic() + _CLOSE_WAIT_S
        for run in self._runs:
            run.wait(deadline)
        self._runs.clear()

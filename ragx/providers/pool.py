"""Embedding of a stream of texts on several threads, with back-pressure.

The consuming thread reads the jobs, hands out batches and receives the results, so the jobs may
come from a generator that is not thread-safe, and no more than a bounded number of texts is ever
waiting.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from ragx.errors import ProviderError
from ragx.providers.base import Embedder, may_concern_one_text

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Result = npt.NDArray[np.float32] | ProviderError

__all__ = ["EmbedPool", "embed_each"]

K = TypeVar("K")

# Texts handed to each worker ahead of the result being awaited: about half a second of work for
# the built-in model, so that a slow step of the consumer leaves no worker idle.
_AHEAD_TEXTS = 32
_MIN_AHEAD_BATCHES = 2
# What closing waits for: a call of the built-in model mostly ends far sooner, a request to a
# server is left behind.
_CLOSE_WAIT_S = 0.6
_LIVENESS_CHECK_S = 1.0


def embed_each(
    embedder: Embedder, texts: Sequence[str], *, stop: threading.Event | None = None
) -> list[Result]:
    """Embed a batch so that a text that cannot be embedded fails alone.

    A batch that fails because of its content is halved until the fault is found; a fault of the
    server itself fails all of it at once.

    Args:
        embedder: called in this thread.
        texts: any number of passages.
        stop: when set, no further half is tried.
    Returns:
        Per text, in order, its (dimension,) float32 unit vector or the error.
    """
    if not texts:
        return []
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
    """The threads and queues of one stream; a worker never sees another stream's jobs."""

    def __init__(self, embedder: Embedder) -> None:
        self.jobs: queue.SimpleQueue[list[tuple[K, str]] | None] = queue.SimpleQueue()
        self.done: queue.SimpleQueue[list[tuple[K, Result]] | _Died] = queue.SimpleQueue()
        self.stop = threading.Event()
        self._ended: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._n_running = 0
        self._embedder = embedder
        # A server that never answers must not keep the process alive, so its threads are daemons.
        # A daemon inside native code when Python ends aborts the process (measured: SIGABRT on
        # every other Ctrl-C), so the threads of a model in this process are not.
        self.threads = [
            threading.Thread(
                target=self._work, name=f"ragx-embed-{i}", daemon=not embedder.in_process
            )
            for i in range(max(1, embedder.workers))
        ]

    def _work(self) -> None:
        try:
            while not self.stop.is_set():
                batch = self.jobs.get()
                if batch is None:
                    return
                texts = [text for _, text in batch]
                results = embed_each(self._embedder, texts, stop=self.stop)
                self.done.put(
                    [(key, result) for (key, _), result in zip(batch, results, strict=True)]
                )
        except BaseException as exc:
            # Every way to die must reach the consumer, or it would wait for ever.
            self.done.put(_Died(exc))
        finally:
            self._ended.put(None)

    def receive(self) -> list[tuple[K, Result]]:
        """Wait for a batch of results.

        Raises:
            ProviderError: a worker died; code "worker_died".
        """
        while True:
            try:
                message = self.done.get(timeout=_LIVENESS_CHECK_S)
            except queue.Empty:
                if any(thread.is_alive() for thread in self.threads):
                    continue
                raise ProviderError(
                    "the embedding threads ended without a result", code="worker_died"
                ) from None
            if isinstance(message, _Died):
                raise ProviderError(
                    f"an embedding thread died: {type(message.cause).__name__}: {message.cause}",
                    code="worker_died",
                ) from message.cause
            return message

    def start(self) -> None:
        """Start the threads."""
        for thread in self.threads:
            self._n_running += 1
            thread.start()

    def order_stop(self) -> None:
        """Hand out no more work; waits for nothing."""
        self.stop.set()
        for _ in self.threads:
            self.jobs.put(None)

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
    """Runs streams of texts through an embedder on its `workers` threads.

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
        size = max(1, self._embedder.batch_size)
        run: _Run[K] = _Run(self._embedder)
        limit = len(run.threads) * max(_MIN_AHEAD_BATCHES, _AHEAD_TEXTS // size)
        source = iter(jobs)
        in_flight = 0
        exhausted = False
        self._runs.append(run)
        try:
            run.start()
            while True:
                while not exhausted and in_flight < limit:
                    batch = list(islice(source, size))
                    exhausted = len(batch) < size
                    if batch:
                        run.jobs.put(batch)
                        in_flight += 1
                if in_flight == 0:
                    return
                results = run.receive()
                in_flight -= 1
                yield from results
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

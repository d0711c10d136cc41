"""Keep an index in step with its files for as long as the process lives."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

from ragx.api.corpus import Corpus, IndexRequest, scan_options_of
from ragx.api.kept import KeptEmbedder
from ragx.errors import RagxError
from ragx.indexing.watch import Seen, WatchTimes, look, watch
from ragx.providers.base import Notice, no_notice
from ragx.types import BuildReport, Progress

if TYPE_CHECKING:
    from ragx.indexing.scan import ScanOptions

__all__ = ["WatchTimes", "watch_corpus"]


def watch_corpus(
    open_it: Callable[[], Corpus],
    request: IndexRequest,
    *,
    ran: Callable[[BuildReport, float], None],
    failed: Callable[[RagxError], None],
    starts: Callable[[], None] = lambda: None,
    progress: Callable[[Progress], None] = lambda _: None,
    notice: Notice = no_notice,
    hints: bool = True,
    times: WatchTimes | None = None,
) -> None:
    """Bring an index up, and keep it so; ends only by an exception.

    The embedder stays loaded. Changed settings are read anew. A run that fails, or leaves files
    that failed, is tried again later each time, and at once when something changes.

    Args:
        open_it: reads the settings; called again when `ragx.toml` has changed.
        request: of the first run; `full`, `no_cache` and `force` are for that one alone.
        ran: told of each run that changed something or whose failures are new, with its seconds.
        failed: told of a run that failed, once for each reason in a row.
        starts: called before each run.
        notice: told what is started on the way, and of how changes are found.
        hints: whether to ask the operating system for word of changes.
    Raises:
        RagxError: the first run failed in a way that waiting does not mend.
        KeyboardInterrupt: the user ended it.
    """
    with closing(KeptEmbedder()) as kept:
        keeper = _Keeper(open_it, request, kept, ran, failed, starts, progress, notice)
        watch(
            keeper.corpus.root,
            keeper.see,
            keeper.run,
            failed=keeper.tell_failure,
            tell=notice,
            hints=hints,
            times=times or WatchTimes(),
        )


class _Keeper:
    """One corpus being kept, and what was said of it last."""

    def __init__(
        self,
        open_it: Callable[[], Corpus],
        request: IndexRequest,
        kept: KeptEmbedder,
        ran: Callable[[BuildReport, float], None],
        failed: Callable[[RagxError], None],
        starts: Callable[[], None],
        progress: Callable[[Progress], None],
        notice: Notice,
    ) -> None:
        self.corpus = open_it()
        self._open = open_it
        self._request = request
        self._kept = kept
        self._ran = ran
        self._failed = failed
        self._starts = starts
        self._progress = progress
        self._notice = notice
        self._settings: tuple[int, int] | None = None
        self._is_first = True
        self._said: object = ()

    def see(self) -> Seen:
        seen = look(self.corpus.root, self._options())
        if self._is_first:
            self._settings = seen.settings
        elif seen.settings != self._settings:
            self._kept.close()
            self.corpus = self._open()
            self._settings = seen.settings
            seen = look(self.corpus.root, self._options())
        return seen

    def _options(self) -> ScanOptions:
        return scan_options_of(self.corpus, self._request)

    def run(self) -> bool:
        started = time.monotonic()
        self._starts()
        try:
            report = self.corpus.index(
                self._request, progress=self._progress, notice=self._notice, kept=self._kept
            )
        except RagxError:
            self._kept.close()  # whatever is wrong, the next run starts afresh
            raise
        failures = tuple((failure.path, failure.message) for failure in report.failed)
        # Times of files that have not changed are committed, too.
        is_news = report.files_indexed or report.files_deleted or failures != self._said
        if self._is_first or is_news:
            self._ran(report, time.monotonic() - started)
        self._said = failures
        self._request = replace(self._request, full=False, no_cache=False, force=())
        self._is_first = False
        return not failures

    def tell_failure(self, fault: RagxError) -> None:
        if fault.message != self._said:
            self._failed(fault)
        self._said = fault.message

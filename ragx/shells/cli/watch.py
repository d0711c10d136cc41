"""`ragx index --watch`: the index follows the files until Ctrl-C."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NoReturn, Protocol

from ragx.errors import RagxError, UsageError
from ragx.shells.cli import envelope

if TYPE_CHECKING:
    from ragx.api import Corpus, IndexRequest
    from ragx.types import BuildReport, Progress

__all__ = ["Line", "refuse_beside_watch", "watch_index"]


class Line(Protocol):
    """Where progress is shown."""

    def show(self, progress: Progress) -> None:
        """Show how far a run is."""

    def notice(self, line: str) -> None:
        """Say something in between."""

    def clear(self) -> None:
        """Take back what is shown."""

    def restart(self) -> None:
        """Begin with another run."""


def refuse_beside_watch(given: Mapping[str, object]) -> None:
    """Refuse what does not go with `--watch`.

    Raises:
        UsageError: something is given.
    """
    wrong = [name for name, value in given.items() if value]
    if wrong:
        hint = "ragx status --json says how the index stands" if "--json" in wrong else ""
        raise UsageError(
            f"--watch goes on for ever over all files: it takes no {', '.join(wrong)}",
            hint=hint or f"leave out {' and '.join(wrong)}, or --watch",
        )


def watch_index(
    open_it: Callable[[], Corpus],
    request: IndexRequest,
    line: Line,
    summary: Callable[[BuildReport, float], str],
    *,
    quiet: bool,
) -> NoReturn:
    """Bring the index up and keep it so.

    Args:
        summary: says what a run did.
    Raises:
        RagxError: the first run failed in a way that waiting does not mend.
        KeyboardInterrupt: the user ended it.
    """
    from ragx.api.watching import watch_corpus

    told = False

    def ran(report: BuildReport, seconds: float) -> None:
        nonlocal told
        line.clear()
        if not quiet:
            envelope.emit_text(summary(report, seconds))
        for failure in report.failed:
            envelope.warn(f"{failure.path}: {failure.message}; it is tried again")
        if not told and not quiet:
            envelope.notice("watching for changes; Ctrl-C ends")
        told = True

    def failed(fault: RagxError) -> None:
        line.clear()
        fix = f" ({fault.hint})" if fault.hint else ""
        envelope.warn(f"{fault.message}{fix}; it is tried again")

    watch_corpus(
        open_it,
        request,
        ran=ran,
        failed=failed,
        starts=line.restart,
        progress=line.show,
        notice=line.notice,
    )
    raise AssertionError("a watch ends by an exception alone")

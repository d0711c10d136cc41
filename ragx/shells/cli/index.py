"""`ragx index`: bring the index in step with the files."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ragx.errors import UsageError
from ragx.shells.cli import envelope
from ragx.shells.cli.frame import Command, command_options, open_corpus, working_directory
from ragx.shells.cli.watch import refuse_beside_watch, watch_index
from ragx.shells.cli.wording import count, duration, size

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ragx.types import BuildReport, DryRun, Progress

__all__ = ["command"]

INDEX_DIRECTORY = ".ragx"  # where notes of the run as a whole stand


@click.command(
    "index",
    cls=Command,
    short_help="Bring the index up to date with the files.",
    help="Bring the index in step with the files: all that changed, or the FILEs named.",
)
@click.argument("files", nargs=-1, metavar="[FILE]...")
@click.option("--full", is_flag=True, help="Rebuild everything; stored embeddings are used again.")
@click.option("--no-cache", is_flag=True, help="Compute embeddings anew.")
@click.option("--edges-only", is_flag=True, help="Make edges and communities anew; read no file.")
@click.option("--refresh-dates", is_flag=True, help="Ask git for dates anew; read no file.")
@click.option("--force", multiple=True, metavar="FILE", help="Index FILE though it is unchanged.")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
@click.option("--watch", "watching", is_flag=True, help="Go on, and follow the files.")
@click.option("--changed", is_flag=True, hidden=True)
@click.option("--max-files", type=click.IntRange(0), help="More files than this are an error.")
@click.option("--max-file-bytes", type=click.IntRange(1), help="Skip larger files.")
@click.option("--max-chunk-chars", type=click.IntRange(200), help="Hard limit of a chunk.")
@click.option("--follow-symlinks", is_flag=True, help="Follow links that stay inside the root.")
@click.option("--yes", is_flag=True, help="Also where it is refused otherwise: $HOME, /.")
@click.option("-v", "--verbose", is_flag=True, help="List what was skipped, and why.")
@click.option("--quiet", is_flag=True, help="No progress, no summary.")
@command_options
def command(
    *,
    files: tuple[str, ...],
    full: bool,
    no_cache: bool,
    edges_only: bool,
    refresh_dates: bool,
    force: tuple[str, ...],
    dry_run: bool,
    watching: bool,
    changed: bool,
    max_files: int | None,
    max_file_bytes: int | None,
    max_chunk_chars: int | None,
    follow_symlinks: bool,
    yes: bool,
    verbose: bool,
    quiet: bool,
    root: Path | None,
    as_json: bool,
) -> int:
    """Run, then report."""
    from ragx.api import Corpus, IndexRequest

    if refresh_dates:
        _refuse_beside_dates(
            {"FILE": files, "--full": full, "--no-cache": no_cache, "--edges-only": edges_only,
             "--force": force}
        )  # fmt: skip
    if watching:
        refuse_beside_watch(
            {"FILE": files, "--dry-run": dry_run, "--edges-only": edges_only,
             "--refresh-dates": refresh_dates, "--json": as_json}
        )  # fmt: skip
    if changed:
        envelope.warn("--changed is what ragx index does anyway; the flag will go")
    corpus = Corpus.of(open_corpus(root))
    request = IndexRequest(
        only=files,
        force=force,
        full=full,
        no_cache=no_cache,
        edges_only=edges_only,
        refresh_dates=refresh_dates,
        confirmed=yes,
        max_files=max_files,
        max_file_bytes=max_file_bytes,
        max_chunk_chars=max_chunk_chars,
        follow_symlinks=follow_symlinks,
        cwd=working_directory(),
    )
    if dry_run:
        return _show_dry_run(corpus.dry_run(request), as_json=as_json, verbose=verbose)
    if watching:
        with _ProgressLine(quiet=quiet) as line:
            watch_index(lambda: Corpus.of(open_corpus(root)), request, line, _summary, quiet=quiet)
    started = time.monotonic()
    with _ProgressLine(quiet=quiet or as_json) as line:
        report = corpus.index(request, progress=line.show, notice=line.notice)
    if as_json:
        envelope.emit(_document(report, verbose=verbose, dates=refresh_dates))
    elif refresh_dates and not quiet:
        envelope.emit_text(f"{count(report.dates_changed, 'date')} changed; no file was read")
    elif not quiet:
        envelope.emit_text(_summary(report, time.monotonic() - started))
    if not report.files_total and not as_json:
        envelope.warn("no file of this directory counts: ragx index -v lists what is left out")
    if verbose and not as_json:
        for path, reason in report.skipped_paths:
            note = report.skipped_notes.get(path)
            envelope.tell(f"skipped ({reason}): {path}" + (f": {note}" if note else ""))
    for path, note in report.notes:
        if path == INDEX_DIRECTORY:  # not of a file: what the run itself could not do
            envelope.warn(note)
    if not as_json:
        for path, note in report.notes:
            if verbose and path != INDEX_DIRECTORY:
                envelope.tell(f"{path}: {note}")
        for failure in report.failed:
            envelope.warn(f"{failure.path}: {failure.message}")
    return envelope.ERROR if report.failed else envelope.OK


def _refuse_beside_dates(given: Mapping[str, object]) -> None:
    wrong = [name for name, value in given.items() if value]
    if wrong:
        raise UsageError(
            f"--refresh-dates reads no file and goes without {', '.join(wrong)}",
            hint="ragx index first, then ragx index --refresh-dates",
        )


def _document(report: BuildReport, *, verbose: bool, dates: bool) -> dict[str, object]:
    document: dict[str, object] = {
        "schema": "ragx.index.v1",
        "ok": not report.failed,
        "files_total": report.files_total,
        "files_indexed": report.files_indexed,
        "files_deleted": report.files_deleted,
        "files_unchanged": report.files_unchanged,
        "files_read": report.files_read,
        "chunks_added": report.chunks_added,
        "chunks_deleted": report.chunks_deleted,
        "edges_total": report.edges_total,
        "communities_total": report.communities_total,
        "embedded": report.embedded,
        "cached": report.cached,
        **({"dates_changed": report.dates_changed} if dates else {}),
        "skipped": dict(sorted(report.skipped.items())),
        "failed": [
            {"file": failure.path, "code": failure.code, "message": failure.message}
            for failure in report.failed
        ],
    }
    if verbose:
        document["skipped_files"] = [
            {
                "file": path,
                "reason": reason,
                **({"note": note} if (note := report.skipped_notes.get(path)) else {}),
            }
            for path, reason in sorted(report.skipped_paths)
        ]
        document["notes"] = [{"file": path, "note": note} for path, note in report.notes]
    return document


def _summary(report: BuildReport, seconds: float) -> str:
    if not report.committed:
        text = f"up to date: {count(report.files_unchanged, 'file')}, nothing changed"
    else:
        text = (
            f"indexed {count(report.files_indexed, 'file')}"
            f" ({count(report.files_unchanged, 'file')} unchanged,"
            f" {report.files_deleted} deleted):"
            f" {count(report.chunks_added, 'new chunk')}, {report.chunks_deleted} gone,"
            f" {count(report.embedded, 'passage')} embedded, {report.cached} from cache,"
            f" {count(report.edges_total, 'edge')}"
        )
    lines = [f"{text}; {duration(seconds)}"]
    if report.skipped:
        parts = ", ".join(f"{n} {reason}" for reason, n in sorted(report.skipped.items()))
        lines.append(f"skipped: {parts} (-v lists them, and says why)")
    if n := report.skipped.get("no_extractor"):
        from ragx.api import DOCUMENTS_HINT

        lines.append(f"{count(n, 'document')} could be read: {DOCUMENTS_HINT}")
    return "\n".join(lines)


def _show_dry_run(plan: DryRun, *, as_json: bool, verbose: bool) -> int:
    if as_json:
        document: dict[str, object] = {
            "schema": "ragx.dry_run.v1",
            "files": plan.files,
            "by_kind": dict(plan.by_kind),
            "bytes": plan.n_bytes,
            "chunks": plan.chunks,
            "tokens": plan.tokens,
            "to_embed": plan.embeddings,
            "cached": plan.cached,
            "seconds": None if plan.seconds is None else round(plan.seconds, 1),
            "files_to_delete": plan.to_delete,
            "files_unchanged": plan.unchanged,
            "skipped": dict(plan.skipped),
        }
        if verbose:
            document["decisions"] = [
                {"file": path, "action": action, "reason": reason}
                for path, action, reason in plan.decisions
            ]
        envelope.emit(document)
        return envelope.OK
    kinds = ", ".join(f"{n} {kind}" for kind, n in plan.by_kind.items()) or "none"
    if plan.seconds is None:
        time_left = "as fast as the server answers"
    else:
        time_left = f"about {duration(plan.seconds)}"
    work = f"{count(plan.embeddings, 'embedding')} to compute ({plan.cached} cached): {time_left}"
    lines = [
        f"to index: {count(plan.files, 'file')} ({kinds}), {size(plan.n_bytes)}",
        f"  {count(plan.chunks, 'chunk')}, {count(plan.tokens, 'token')}, {work}",
        f"to delete: {count(plan.to_delete, 'file')}; unchanged: {plan.unchanged}",
    ]
    if plan.skipped:
        parts = ", ".join(f"{n} {reason}" for reason, n in plan.skipped.items())
        lines.append(f"left out: {parts}")
    if verbose:
        lines += [f"  {action:6} {path}: {reason}" for path, action, reason in plan.decisions]
    envelope.emit_text("\n".join(map(envelope.one_line, lines)))
    return envelope.OK


class _ProgressLine:
    """One line on a terminal that is rewritten, or one line per tenth elsewhere."""

    _EVERY_S = 0.1
    _WIDTH = 24

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._tty = envelope.is_tty(sys.stderr)
        self._dirty = False
        self.restart()

    def restart(self) -> None:
        """Begin with another run."""
        self._started = time.monotonic()
        self._shown_at = 0.0
        self._tenth = 0

    def __enter__(self) -> _ProgressLine:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def notice(self, line: str) -> None:
        """Say something in between."""
        self.clear()
        envelope.tell(line)

    def clear(self) -> None:
        """Take back the line that is shown."""
        if self._dirty:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._dirty = False

    def show(self, progress: Progress) -> None:
        if self._quiet or not progress.bytes_total:
            return
        now = time.monotonic()
        share = min(1.0, progress.bytes_done / progress.bytes_total)
        if self._tty:
            if now - self._shown_at >= self._EVERY_S:
                self._shown_at = now
                self._dirty = True
                sys.stderr.write(f"\r\x1b[K{self._bar(share)} {self._words(progress, share, now)}")
                sys.stderr.flush()
        elif int(share * 10) > self._tenth and now - self._started > 2.0:
            self._tenth = int(share * 10)
            envelope.notice(f"{self._tenth * 10:3d} % {self._words(progress, share, now)}")

    def _bar(self, share: float) -> str:
        done = round(share * self._WIDTH)
        return "[" + "#" * done + "-" * (self._WIDTH - done) + "]"

    def _words(self, progress: Progress, share: float, now: float) -> str:
        elapsed = now - self._started
        text = (
            f"{progress.files_done}/{progress.files_total} files,"
            f" {progress.chunks} chunks, {progress.embedded} embedded"
        )
        if elapsed > 2.0 and 0.02 < share < 1.0:
            text += f", {duration(elapsed / share - elapsed)} left"
        return text

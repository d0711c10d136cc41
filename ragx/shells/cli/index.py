"""`ragx index`: bring the index in step with the files."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ragx.shells.cli import envelope
from ragx.shells.cli.frame import Command, command_options, open_corpus, working_directory
from ragx.shells.cli.wording import count, duration, size

if TYPE_CHECKING:
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
@click.option("--force", multiple=True, metavar="FILE", help="Index FILE though it is unchanged.")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
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
    force: tuple[str, ...],
    dry_run: bool,
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

    if changed:
        envelope.warn("--changed is what ragx index does anyway; the flag will go")
    corpus = Corpus.of(open_corpus(root))
    request = IndexRequest(
        only=files,
        force=force,
        full=full,
        no_cache=no_cache,
        edges_only=edges_only,
        confirmed=yes,
        max_files=max_files,
        max_file_bytes=max_file_bytes,
        max_chunk_chars=max_chunk_chars,
        follow_symlinks=follow_symlinks,
        cwd=working_directory(),
    )
    if dry_run:
        return _show_dry_run(corpus.dry_run(request), as_json=as_json, verbose=verbose)
    started = time.monotonic()
    with _ProgressLine(quiet=quiet or as_json) as line:
        report = corpus.index(request, progress=line.show)
    if as_json:
        envelope.emit(_document(report, verbose=verbose))
    elif not quiet:
        envelope.emit_text(_summary(report, time.monotonic() - started))
    if not report.files_total and not as_json:
        envelope.warn("no file of this directory counts: ragx index -v lists what is left out")
    if verbose and not as_json:
        for path, reason in report.skipped_paths:
            envelope.notice(f"skipped ({reason}): {envelope.one_line(path)}")
    for path, note in report.notes:
        if path == INDEX_DIRECTORY:  # not of a file: what the run itself could not do
            envelope.warn(note)
    if not as_json:
        for path, note in report.notes:
            if verbose and path != INDEX_DIRECTORY:
                envelope.notice(f"{envelope.one_line(path)}: {note}")
        for failure in report.failed:
            envelope.warn(f"{failure.path}: {failure.message}")
    return envelope.ERROR if report.failed else envelope.OK


def _document(report: BuildReport, *, verbose: bool) -> dict[str, object]:
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
        "skipped": dict(sorted(report.skipped.items())),
        "failed": [
            {"file": failure.path, "code": failure.code, "message": failure.message}
            for failure in report.failed
        ],
    }
    if verbose:
        document["skipped_files"] = [
            {"file": path, "reason": reason} for path, reason in sorted(report.skipped_paths)
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
        lines.append(f"skipped: {parts} (-v lists them)")
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
        lines += [
            f"  {action:6} {envelope.one_line(path)}: {reason}"
            for path, action, reason in plan.decisions
        ]
    envelope.emit_text("\n".join(lines))
    return envelope.OK


class _ProgressLine:
    """One line on a terminal that is rewritten, or one line per tenth elsewhere."""

    _EVERY_S = 0.1
    _WIDTH = 24

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._tty = envelope.is_tty(sys.stderr)
        self._started = time.monotonic()
        self._shown_at = 0.0
        self._tenth = 0
        self._dirty = False

    def __enter__(self) -> _ProgressLine:
        return self

    def __exit__(self, *_: object) -> None:
        if self._dirty:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

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

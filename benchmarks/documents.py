"""Documents of all kinds: how well they answer, how fast they are read, what broken ones do.

    python benchmarks/documents.py collect DIR    # lay the corpus out: needs apt-get, dpkg and pip
    python benchmarks/documents.py ask DIR        # questions with a known place in the corpus
    python benchmarks/documents.py speed DIR      # extraction and chunking, by kind
    python benchmarks/documents.py hostile DIR    # broken documents among good ones

    --json FILE    write everything
    --only KIND    ask, speed: these kinds of documents
    --work DIR     hostile: where it is made (default: a directory for temporary files)
    --misses       ask: also list what was not found
    --words        ask: without vectors, in a minute instead of ten

Prints Markdown. The corpus is what `data/documents/manifest.jsonl` lists: files of released Debian
and PyPI packages, which stay where they come from and are checked by their hash. The questions are
in `data/documents/questions.jsonl`; their places were looked up without ragx's extractors, with
pdftotext and by reading the XML and JSON inside.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import document_hostile
from document_corpus import KINDS, ODD, CorpusError, Document, check, collect, read_manifest
from document_corpus import read_questions as questions
from document_corpus import table as corpus_table
from document_scores import TOP, misses, scores
from document_scores import table as scores_table
from document_trial import Run, TrialError, outcomes, ragx, settle

_HOSTILE = "hostile"
_COUNTED = {"page": "pages", "slide": "slides", "cell": "cells", "sheet": "sheets"}


def say(line: str) -> None:
    """Tell what is going on."""
    print(line, file=sys.stderr, flush=True)


def index(root: Path, *options: str) -> Run:
    """Bring the index of a directory up to date."""
    run = ragx("index", "--json", "-v", *options, root=root)
    say(f"ragx index: exit {run.code}, {run.seconds:.1f} s, {run.peak_mb:.0f} MB")
    return run


def ask(arguments: argparse.Namespace) -> Iterator[str]:
    """Ask every question and score the answers."""
    root: Path = arguments.directory
    documents = [one for one in read_manifest() if one.kind in KINDS]
    check(root, documents)
    settle(root, [one.file for one in documents], words=arguments.words)
    for failure in index(root).document()["failed"]:
        say(f"failed: {failure}")
    rows = []
    for question in questions():
        if arguments.only and question.kind not in arguments.only:
            continue
        run = ragx("query", question.query, "--json", "--top", str(TOP), root=root)
        results = run.document().get("results", [])
        first = results[0] if results else None
        rows.append(
            {
                "id": question.id,
                "kind": question.kind,
                "cross": question.cross,
                "query": question.query,
                "file": question.file,
                "wanted": question.places[0],
                "found": first and [first["file"], _label(first["chunks"][0])],
                "seconds": run.seconds,
                "scores": scores(question, results),
            }
        )
    arguments.result["answers"] = rows
    yield from scores_table(rows)
    if arguments.misses:
        yield ""
        yield from misses(rows)


def _label(chunk: dict[str, Any]) -> str:
    locator = chunk.get("locator") or {}
    return str(locator.get("label", f"lines {chunk['line_start']}-{chunk['line_end']}"))


def speed(arguments: argparse.Namespace) -> Iterator[str]:
    """Read every document through the guard, and cut what comes out into chunks."""
    documents = [one for one in read_manifest() if one.kind in (arguments.only or KINDS)]
    check(arguments.directory, documents)
    yield (
        "| kind | documents | MB | extraction at MB/s | places/s | characters"
        " | reading and hashing at MB/s | extraction / reading | chunking at M chars/s | left out |"
    )
    yield "|---|" + "---:|" * 8 + "---|"
    for kind in dict.fromkeys(one.kind for one in documents):
        row = _speed_of([one for one in documents if one.kind == kind], arguments.directory)
        arguments.result.setdefault("speed", {})[kind] = row
        yield _speed_line(kind, row)


def _speed_of(documents: Sequence[Document], root: Path) -> dict[str, Any]:
    from ragx.algo.chunking.base import ChunkOptions
    from ragx.documents.formats.base import ExtractLimits
    from ragx.documents.formats.sniff import sniff
    from ragx.documents.guard import Guard
    from ragx.errors import ExtractionError
    from ragx.indexing.prepare import Document as Extraction
    from ragx.indexing.prepare import Preparer

    preparer = Preparer(ChunkOptions(), None)
    row: dict[str, Any] = {"documents": len(documents), "bytes": 0, "characters": 0, "places": 0}
    row |= {"read_s": 0.0, "extract_s": 0.0, "chunk_s": 0.0, "chunks": 0}
    faults: Counter[str] = Counter()
    unit = ""
    with Guard(ExtractLimits()) as guard:
        # The first document waits for the worker and its libraries; it is read twice.
        for i, one in enumerate([documents[0], *documents]):
            started = time.perf_counter()
            raw = (root / one.file).read_bytes()
            hashlib.sha256(raw).hexdigest()
            read = time.perf_counter()
            name = sniff(one.file, raw)
            try:
                extracted = guard.extract(name, raw)
            except ExtractionError as fault:
                faults[fault.code] += bool(i)
                continue
            extracted_at = time.perf_counter()
            prepared = preparer.prepare(one.file, raw, Extraction(name, "", extracted))
            if not i:
                continue
            row["chunk_s"] += time.perf_counter() - extracted_at
            row["extract_s"] += extracted_at - read
            row["read_s"] += read - started
            row["bytes"] += len(raw)
            row["chunks"] += len(prepared.chunks)
            row["characters"] += sum(len(block.text) for block in extracted.blocks)
            places = {(b.place.kind, b.place.number, b.place.name) for b in extracted.blocks}
            row["places"] += len(places)
            unit = unit or _COUNTED.get(next(iter(places), ("",))[0], "")
    return {**row, "unit": unit, "faults": dict(faults)}


def _speed_line(kind: str, row: dict[str, Any]) -> str:
    if not row["extract_s"]:
        return f"| {kind} | {row['documents']} | | | | | | | | {row['faults']} |"
    mb, read_s, extract_s = row["bytes"] / 1e6, row["read_s"], row["extract_s"]
    places = f"{row['places'] / extract_s:.0f} {row['unit']}" if row["unit"] else ""
    faults = ", ".join(f"{n} {code}" for code, n in row["faults"].items())
    return (
        f"| {kind} | {row['documents']} | {mb:.1f} | {mb / extract_s:.2f} | {places}"
        f" | {row['characters']} | {mb / read_s:.0f} | {extract_s / read_s:.0f}"
        f" | {row['characters'] / 1e6 / max(row['chunk_s'], 1e-9):.1f} | {faults} |"
    )


def hostile(arguments: argparse.Namespace) -> Iterator[str]:
    """Index good documents, then the same with hostile ones among them, and compare."""
    documents = read_manifest()
    check(arguments.directory, documents)
    with tempfile.TemporaryDirectory(dir=arguments.work) as scratch:
        alone, mixed = Path(scratch) / "alone", Path(scratch) / "mixed"
        for root in (alone, mixed):
            for one in documents:
                target = root / one.file
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(arguments.directory / one.file, target)
        for line in document_hostile.make(mixed / _HOSTILE, _samples(documents, alone)):
            say(line)
        # Vectors decide nothing here, and would take most of the time.
        good = [f"{kind}/" for kind in KINDS]
        settle(alone, good, words=True)
        settle(mixed, [*good, f"{ODD}/", f"{_HOSTILE}/"], words=True)
        yield from _compare(alone, mixed, documents, arguments.result)


def _samples(documents: Sequence[Document], root: Path) -> dict[str, Path]:
    """A document of each kind, of middle size."""
    found = {}
    for kind in KINDS:
        some = sorted((one for one in documents if one.kind == kind), key=lambda one: one.bytes)
        found[kind] = root / some[len(some) // 2].file
    return found


def _compare(
    alone: Path, mixed: Path, documents: Sequence[Document], result: dict[str, Any]
) -> Iterator[str]:
    without, among = index(alone), index(mixed)
    good = [one.file for one in documents if one.kind in KINDS]
    evil = sorted(
        path.relative_to(mixed).as_posix()
        for folder in (mixed / _HOSTILE, mixed / ODD)
        for path in folder.rglob("*")
        if path.is_file()
    )
    before, after = outcomes(alone, good), outcomes(mixed, [*good, *evil])
    changed = [name for name in good if before[name] != after[name]]
    silent = [name for name in evil if _is_silent(after[name])]
    leaked = ragx(
        "query", document_hostile.CANARY, "--mode", "lexical", "--no-graph", "--json", root=mixed
    ).document()["results"]
    traces = [run for run in (without, among) if "Traceback" in run.err + run.out]
    result["hostile"] = {name: after[name][:2] for name in evil}
    result["runs"] = [[run.code, run.seconds, run.peak_mb, run.left] for run in (without, among)]
    yield f"{len(good)} good documents, {len(evil)} hostile ones"
    yield ""
    yield "| hostile | documents | outcomes |"
    yield "|---|---:|---|"
    for folder in dict.fromkeys(name.rpartition("/")[0] for name in evil):
        some = [after[name][0] for name in evil if name.rpartition("/")[0] == folder]
        counts = ", ".join(f"{n} {status}" for status, n in Counter(some).most_common())
        yield f"| {folder.removeprefix(f'{_HOSTILE}/')} | {len(some)} | {counts} |"
    yield ""
    yield "| check | result |"
    yield "|---|---|"
    expected = 2 if any(after[name][0] == "failed" for name in evil) else 0
    yield _checked("exit code", among.code == expected, f"{among.code}, {expected} expected")
    yield _checked("good documents as without", not changed, ", ".join(changed[:5]))
    yield _checked("each hostile one indexed or with a reason", not silent, ", ".join(silent[:5]))
    yield _checked("no file named by an entity was read", not leaked, str(leaked)[:80])
    yield _checked("no traceback", not traces, traces[0].err[-200:] if traces else "")
    left = without.left + among.left
    yield _checked("no process left", not left, str(left))
    yield f"| time | {without.seconds:.0f} s, with hostile ones {among.seconds:.0f} s |"
    yield f"| peak memory | {without.peak_mb:.0f} MB, with hostile ones {among.peak_mb:.0f} MB |"


def _is_silent(outcome: tuple[str, str, tuple[int, ...]]) -> bool:
    """Whether nobody is told that a file's text is not in the index."""
    status, note, _ = outcome
    return status == "unknown" or (status == "failed" and not note)


def _checked(what: str, held: bool, detail: str) -> str:
    return f"| {what} | {'holds' if held else f'FAILS: {detail}'} |"


def lay_out(arguments: argparse.Namespace) -> Iterator[str]:
    """Download the corpus."""
    documents = read_manifest()
    for line in collect(arguments.directory, documents):
        say(line)
    yield from corpus_table(documents)


COMMANDS = {"collect": lay_out, "ask": ask, "speed": speed, "hostile": hostile}


def main() -> int:
    """Run one command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=COMMANDS)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--json", type=Path, help="file to write everything to")
    parser.add_argument("--only", nargs="+", choices=KINDS, metavar="KIND")
    parser.add_argument("--work", type=Path, help="where hostile documents are made")
    parser.add_argument("--misses", action="store_true", help="list what was not found")
    parser.add_argument("--words", action="store_true", help="ask without vectors")
    arguments = parser.parse_args()
    arguments.result = {"command": arguments.command}
    try:
        for line in COMMANDS[arguments.command](arguments):
            print(line, flush=True)
    except (CorpusError, TrialError) as fault:
        say(str(fault))
        return 2
    if arguments.json:
        arguments.json.write_text(json.dumps(arguments.result, ensure_ascii=False), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""What indexing costs beside embedding, in one run, as ratios.

    python benchmarks/indexing.py [DIRECTORY] [--rounds 2]

Indexes a copy of DIRECTORY (default: some packages of Python's standard library) with the built-in
model and embeds exactly the same passages alone, in turns, then runs `ragx index` again unchanged,
after touching everything, after renaming directories, after copying files, and after one edit.
Every process is measured from outside: wall time, CPU time and peak memory.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

STANDARD = ("asyncio", "email", "http", "json")

EMBED_ALONE = """
import json, sys, time
from ragx.providers.base import EmbeddingOptions
from ragx.providers.builtin import BuiltinEmbedder
from ragx.providers.pool import EmbedPool
texts = json.load(open(sys.argv[1], encoding="utf-8"))
embedder = BuiltinEmbedder(EmbeddingOptions())
with EmbedPool(embedder) as pool:
    n = sum(1 for _ in pool.run(enumerate(texts)))
print(n)
"""


def measured(*command: str, cwd: Path | None = None) -> tuple[str, float, float, float]:
    """Run a process; its output, wall seconds, CPU seconds and peak memory in MB."""
    started = time.perf_counter()
    with subprocess.Popen(
        command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        out, err = process.communicate() if os.name == "nt" else (None, None)
        if out is None:
            assert process.stdout
            assert process.stderr
            out, err = process.stdout.read(), process.stderr.read()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            cpu, peak = usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024
        else:
            cpu = peak = 0.0
    wall = time.perf_counter() - started
    if process.returncode:
        sys.exit(f"{' '.join(command)} failed: {out}{err}")
    return out, wall, cpu, peak


def passages(root: Path) -> list[str]:
    """Every distinct text that a first run embeds."""
    from ragx.api import IndexRequest, open_corpus
    from ragx.api.options import scan_options
    from ragx.indexing.prepare import Preparer
    from ragx.indexing.scan import scan

    corpus = open_corpus(root)
    embedder = corpus.open_embedder({})
    preparer = Preparer(corpus._chunking(IndexRequest(), embedder), embedder)
    found: dict[bytes, str] = {}
    for file in scan(root, scan_options(corpus.config)).files:
        for windows in preparer.prepare(file.path, (root / file.path).read_bytes()).passages:
            found.update((passage.key, passage.text) for passage in windows)
    return list(found.values())


def copy_corpus(source: Path | None, target: Path) -> None:
    """A fresh copy, without an index."""
    if source is not None:
        shutil.copytree(source, target, ignore=shutil.ignore_patterns(".ragx", "ragx.toml"))
        return
    library = Path(sysconfig.get_path("stdlib"))
    for name in STANDARD:
        shutil.copytree(library / name, target / name, ignore=shutil.ignore_patterns("*.pyc"))


def main() -> None:
    """Measure and print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", nargs="?", type=Path)
    parser.add_argument("--rounds", type=int, default=2)
    arguments = parser.parse_args()
    ragx = [sys.executable, "-m", "ragx"]
    rows: list[tuple[str, float, float, float, str]] = []
    with tempfile.TemporaryDirectory() as scratch:
        work = Path(scratch)
        alone: list[float] = []
        whole: list[float] = []
        for turn in range(arguments.rounds):
            root = work / f"corpus{turn}"
            copy_corpus(arguments.directory, root)
            measured(*ragx, "init", "--yes", cwd=root)
            if not turn:
                texts = passages(root)
                (work / "texts.json").write_text(json.dumps(texts), encoding="utf-8")
            _, wall, cpu, peak = measured(
                sys.executable, "-c", EMBED_ALONE, str(work / "texts.json")
            )
            rows.append((f"embed alone {turn + 1}", wall, cpu, peak, f"{len(texts)} passages"))
            alone.append(wall)
            out, wall, cpu, peak = measured(*ragx, "index", "--json", cwd=root)
            report = json.loads(out)
            note = f"{report['chunks_added']} chunks, {report['embedded']} embedded"
            rows.append((f"index {turn + 1}", wall, cpu, peak, note))
            whole.append(wall)
        for name, change in (
            ("unchanged", lambda: None),
            ("all touched", lambda: touch(root)),
            ("directories renamed", lambda: rename(root)),
            ("files copied", lambda: copy_some(root)),
            ("one file edited", lambda: edit_one(root)),
        ):
            change()
            out, wall, cpu, peak = measured(*ragx, "index", "--json", cwd=root)
            report = json.loads(out)
            note = f"{report['files_read']} read, {report['embedded']} embedded"
            rows.append((name, wall, cpu, peak, note))
    print(f"{platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}")
    print(f"{'run':<22}{'wall s':>8}{'CPU s':>8}{'peak MB':>9}  what")
    for name, wall, cpu, peak, note in rows:
        print(f"{name:<22}{wall:>8.2f}{cpu:>8.2f}{peak:>9.0f}  {note}")
    ratio = statistics.median(whole) / statistics.median(alone)
    print(f"index / embed alone: {ratio:.3f}")


def corpus_files(root: Path) -> list[Path]:
    """Files of the corpus, without ragx's own."""
    files = (path for path in root.rglob("*") if path.is_file() and ".ragx" not in path.parts)
    return sorted(path for path in files if path.name != "ragx.toml")


def touch(root: Path) -> None:
    """New timestamps for every file."""
    for path in corpus_files(root):
        os.utime(path)


def rename(root: Path) -> None:
    """Rename every top-level directory, or move half of the files into a new one."""
    directories = [p for p in sorted(root.iterdir()) if p.is_dir() and p.name != ".ragx"]
    for path in directories:
        path.rename(path.with_name(path.name + "_moved"))
    if not directories:
        (root / "moved").mkdir()
        for path in corpus_files(root)[::2]:
            path.rename(root / "moved" / path.name)


def copy_some(root: Path) -> None:
    """Copy ten files to new names."""
    for path in corpus_files(root)[:10]:
        shutil.copy(path, path.with_name(f"copy_of_{path.name}"))


def edit_one(root: Path) -> None:
    """Put one paragraph at the end of the largest file."""
    largest = max(corpus_files(root), key=lambda path: path.stat().st_size)
    with largest.open("a", encoding="utf-8") as file:
        file.write("\n\nOne more paragraph, about zeppelins.\n")


if __name__ == "__main__":
    main()

"""Lay consecutive releases of a package over each other and index each step incrementally.

After every release the index must equal a fresh one of the same tree: rows, vectors, postings,
graph, communities and the answers to 50 questions. Results are in research/increments.md.

    python research/releases.py WORKDIR            # downloads with pip, prints Markdown tables
"""

from __future__ import annotations

import argparse
import random
import shutil
import subprocess
import sys
import time
import zipfile
from contextlib import closing
from pathlib import Path

from ragx.api import Answer, IndexRequest, QueryRequest, open_corpus
from ragx.store.sqlite import SqliteReader, SqliteWriter

PACKAGE = "click"
RELEASES = (
    "7.0 7.1 7.1.1 7.1.2 8.0.0 8.0.1 8.0.2 8.0.3 8.0.4 8.1.0 8.1.1 8.1.2 8.1.3 8.1.4 8.1.5 8.1.6"
    " 8.1.7 8.1.8 8.2.0 8.2.1"
).split()
N_QUESTIONS = 50
SEED = 20


def main() -> None:
    """Run both studies: without vectors, and with the built-in model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workdir", type=Path)
    workdir = parser.parse_args().workdir
    wheels = [download(version, workdir / "wheels") for version in RELEASES]
    questions = draw_questions((wheels[0], wheels[-1]), workdir / "drawn")
    for provider in ("none", "builtin"):
        study(provider, wheels, questions, workdir / provider)


def download(version: str, directory: Path) -> Path:
    """The wheel of a release, by pip unless it is there."""
    own = directory / version
    if not own.exists():
        subprocess.run(
            [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary",
             ":all:", "--dest", str(own), f"{PACKAGE}=={version}"],
            check=True,
        )  # fmt: skip
    return next(own.glob("*.whl"))


def lay_over(wheel: Path, root: Path) -> None:
    """Make the tree the release's: its files over the old ones, what it lacks removed."""
    staging = root.with_name(root.name + "-unpacked")
    shutil.rmtree(staging, ignore_errors=True)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(staging)
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root)
        ours = name.parts[0] in (".ragx", "ragx.toml")
        if path.is_file() and not ours and not (staging / name).exists():
            path.unlink()
    shutil.copytree(staging, root, dirs_exist_ok=True)
    shutil.rmtree(staging)


def draw_questions(wheels: tuple[Path, ...], root: Path) -> list[str]:
    """Names that the first and the last release define, alone and with a word of their chunk."""
    names: set[tuple[str, str]] = set()
    for wheel in wheels:
        shutil.rmtree(root, ignore_errors=True)
        make_corpus(root, "none")
        lay_over(wheel, root)
        open_corpus(root, env={}).index(IndexRequest())
        with closing(SqliteReader(root)) as reader:
            for path in reader.files():
                for chunk in reader.chunks_of(path):
                    words = [
                        word for word in chunk.text.split() if word.isalpha() and len(word) > 4
                    ]
                    names.update((symbol, " ".join(words[:3])) for symbol in chunk.symbols)
    drawn = random.Random(SEED).sample(sorted(names), N_QUESTIONS)
    return [f"{name} {words}" if place % 2 else name for place, (name, words) in enumerate(drawn)]


def make_corpus(root: Path, provider: str) -> None:
    """An empty corpus with settings."""
    root.mkdir(parents=True)
    (root / "ragx.toml").write_text(f'[embeddings]\nprovider = "{provider}"\n', encoding="utf-8")


def study(provider: str, wheels: list[Path], questions: list[str], workdir: Path) -> None:
    """One table: a line per release."""
    root, fresh = workdir / "corpus", workdir / "fresh"
    shutil.rmtree(workdir, ignore_errors=True)
    make_corpus(root, provider)
    print(f"\n### Provider {provider}\n")
    print("| release | files | chunks | edges | groups | indexed | deleted | embedded | cached | s"
          " | rows | vectors | postings | graph | communities | answers |")  # fmt: skip
    print("|---" * 16 + "|")
    for version, wheel in zip(RELEASES, wheels, strict=True):
        lay_over(wheel, root)
        started = time.monotonic()
        report = open_corpus(root, env={}).index(IndexRequest())
        seconds = time.monotonic() - started
        shutil.rmtree(fresh, ignore_errors=True)
        shutil.copytree(root, fresh, ignore=shutil.ignore_patterns(".ragx"))
        # The last one is built from nothing at all; the others need not pay the model again.
        if version != RELEASES[-1]:
            with closing(SqliteWriter(fresh)) as writer:
                writer.borrow_embeddings(root)
        open_corpus(fresh, env={}).index(IndexRequest())
        with closing(SqliteReader(root)) as one, closing(SqliteReader(fresh)) as other:
            ours, theirs, counts = one.digests(), other.digests(), one.counts()
            assert counts == other.counts()
        groups, fresh_groups = (open_corpus(place, env={}).communities() for place in (root, fresh))
        equal = sum(answer(root, text) == answer(fresh, text) for text in questions)
        print(
            f"| {version} | {counts.files} | {counts.chunks} | {counts.edges} | {len(groups)}"
            f" | {report.files_indexed}"
            f" | {report.files_deleted} | {report.embedded} | {report.cached} | {seconds:.1f}"
            f" | {said(ours.files == theirs.files)} | {said(ours.vectors == theirs.vectors)}"
            f" | {said(ours.postings == theirs.postings)} | {said(ours.edges == theirs.edges)}"
            f" | {said(groups == fresh_groups)} | {equal}/{len(questions)} |",
            flush=True,
        )


def answer(root: Path, text: str) -> Answer:
    """All of what a query says, lines around the chunks and explanations included."""
    return open_corpus(root, env={}).search(QueryRequest(text, before=3, after=3, explain=True))


def said(equal: bool) -> str:
    """A table's word for it."""
    return "equal" if equal else "DIFFER"


if __name__ == "__main__":
    main()

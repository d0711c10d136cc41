"""Quality of retrieval on the test collections: the instrument for everything that ranks.

    python benchmarks/quality.py [run options]                 # nDCG@10 of every configuration
    python benchmarks/quality.py diff A.json B.json            # two runs, query by query
    python benchmarks/quality.py sweep KEY=V1,V2 [KEY=V1,V2]   # options of the query, all pairings

    --data DIR          collections: folders with queries.jsonl (default: $RAGX_DATA)
    --work DIR          their files, indexes and results, kept from run to run
                        (default: ragx-quality in the system's directory for temporary files)
    --only NAME ...     these collections; a folder's name stands for all in it
    --configs A,B       configurations of `ragx eval` (sweep: the last one is swept)
    --compare A B       also list queries that B wins and loses against A
    --limit N           at most N queries a collection, evenly spread
    --settings FILE     a ragx.toml for every collection instead of the defaults
    --each              sweep: change one thing at a time
    --fresh             rebuild the indexes (stored embeddings serve), measure again
    --json FILE         write everything, for diff

Prints Markdown. A collection's files are written or fetched once, its index is brought up to date
before it is measured, and its result is kept as long as ragx's sources, the settings and the
questions stay the same. KEY is a field of QueryOptions, or a dotted name below one:
vector_weight, spread.decay, spread.weights.symbol. A sweep reads each answer of the store once.

The rule (section 5 of the specification): the default is not worse than the best of the single
searches and their fusions by more than .003, nor significantly.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from fetching import STATE_NAME, Collection, FetchError, find_collections, write_collection
from scores import (
    Result,
    compare_lines,
    depth_table,
    diff_table,
    quality_table,
    result_of,
    say,
    sweep_table,
    with_groups,
)
from sweeping import Memo, Setting, settings_of, with_setting

import ragx
from ragx.api import Corpus, EvalRequest, IndexRequest, open_corpus
from ragx.api.options import query_options
from ragx.errors import IndexDamaged, ManifestMismatch, RagxError
from ragx.evaluation.harness import CONFIGS, choose_configs, evaluate
from ragx.evaluation.qrels import every_kth, parse_queries
from ragx.store.connect import index_directory
from ragx.store.queries import QueryVectors
from ragx.store.sqlite import SqliteReader

FORMAT = 1  # of stored results
DEFAULT = list(CONFIGS)[-1]
# Sources that decide what an index holds.
WRITE_SIDE = ("algo/chunking", "algo/references", "documents", "indexing", "providers", "store")


class Runner:
    """Collections on disk, their indexes and their results."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.work: Path = arguments.work
        self.fresh: bool = arguments.fresh
        self.limit: int | None = arguments.limit
        self.configs: tuple[str, ...] = arguments.configs
        self.settings = ""
        if arguments.settings:
            self.settings = arguments.settings.read_text("utf-8")
        self.sources = digest_of_sources("")
        self.write_side = digest_of_sources(*WRITE_SIDE)

    def measured(self, collection: Collection) -> Result:
        """The collection's result, the stored one if it still holds."""
        path = self.work / STATE_NAME / f"{collection.slug}-{self._key(collection)}.json"
        if path.is_file() and not self.fresh:
            return Result(**json.loads(path.read_text("utf-8")))
        corpus, n_files = self.indexed(collection)
        started = time.perf_counter()
        request = EvalRequest(
            queries=collection.queries().decode("utf-8"),
            name=f"{collection.name}/queries.jsonl",
            configs=self.configs,
            limit=self.limit,
        )
        found = corpus.evaluate(request)
        for line in found.warnings:
            say(f"{collection.name}: {line}")
        say(f"{collection.name}: {len(found.topics)} queries in {since(started)}")
        result = result_of(collection.name, n_files, found)
        save(path, result.document())
        return result

    def indexed(self, collection: Collection) -> tuple[Corpus, int]:
        """The collection as a corpus with an index that is up to date, and its number of files."""
        started = time.perf_counter()
        root = write_collection(collection, self.work)
        settings = root / "ragx.toml"
        if not settings.is_file() or settings.read_text("utf-8") != self.settings:
            settings.write_text(self.settings, "utf-8")
        paths = {
            path
            for topic in parse_queries(collection.queries().decode("utf-8"), name=collection.name)
            for path in topic.grades
        }
        missing = sorted(path for path in paths if not (root / path).is_file())
        if missing:
            raise FetchError(f"{len(missing)} judged files are missing: {', '.join(missing[:5])}")
        corpus = open_corpus(root)
        made_by = self.work / STATE_NAME / f"{collection.slug}.indexed"
        anew = self.fresh or not made_by.is_file()
        try:
            report = corpus.index(IndexRequest(full=anew))
        except (ManifestMismatch, IndexDamaged) as fault:
            say(f"{collection.name}: rebuilt, {fault.message}")
            anew = True
            report = corpus.index(IndexRequest(full=True))
        for failure in report.failed:
            say(f"{collection.name}: {failure}")
        if anew:
            made_by.write_text(self.write_side, "utf-8")
        elif made_by.read_text("utf-8") != self.write_side:
            # An update leaves what other sources made of unchanged files.
            say(f"{collection.name}: indexed by other sources of ragx (--fresh rebuilds)")
        if report.files_read or anew:
            say(
                f"{collection.name}: {report.files_total} files indexed,"
                f" {report.embedded} texts embedded, in {since(started)}"
            )
        return corpus, report.files_total

    def _key(self, collection: Collection) -> str:
        facts = (
            FORMAT,
            self.sources,
            self.settings,
            collection.stamp(),
            hashlib.sha256(collection.queries()).hexdigest(),
            self.configs,
            self.limit,
        )
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:20]


def digest_of_sources(*folders: str) -> str:
    """Digest of ragx's own Python files below the given folders."""
    package = Path(ragx.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(path for folder in folders for path in (package / folder).rglob("*.py")):
        digest.update(path.relative_to(package).as_posix().encode() + b"\0")
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def for_each(
    collections: Sequence[Collection], measure: Callable[[Collection], Any]
) -> tuple[list[Any], bool]:
    """What can be measured; whether all could. One collection's fault does not stop the others."""
    found = []
    for collection in collections:
        try:
            found.append(measure(collection))
        except RagxError as fault:
            say(f"{collection.name}: {told(fault)}")
        except FetchError as fault:
            say(f"{collection.name}: {fault}")
    return found, len(found) == len(collections)


def sweep_one(runner: Runner, collection: Collection, settings: Sequence[Setting]) -> list[Result]:
    """One configuration's scores under each setting, over one snapshot."""
    corpus, n_files = runner.indexed(collection)
    topics = parse_queries(collection.queries().decode("utf-8"), name=collection.name)
    topics = every_kth(topics, runner.limit or len(topics))
    config = runner.configs[-1] if runner.configs else DEFAULT
    results, seconds = [], []
    with closing(SqliteReader(corpus.root)) as reader:
        embedder = corpus.open_embedder(reader.manifest())
        cache = None
        if embedder is not None:
            directory = index_directory(corpus.root)
            cache = QueryVectors(directory, embedder.fingerprint, reader.dimension())
        memo: Any = Memo(reader)
        try:
            for setting in settings:
                started = time.perf_counter()
                found = evaluate(
                    corpus.root,
                    memo,
                    topics,
                    (config,),
                    with_setting(query_options(corpus.config), setting),
                    embed=embedder.embed_query if embedder else None,
                    cache=cache,
                )
                results.append(result_of(collection.name, n_files, found))
                gc.freeze()  # what the memo keeps shall not be gone through again and again
                seconds.append(time.perf_counter() - started)
        finally:
            gc.unfreeze()
            if cache is not None:
                cache.save()
            if embedder is not None:
                embedder.close()
    later = f", then {sum(seconds[1:]) / len(seconds[1:]):.1f} s each" if seconds[1:] else ""
    say(f"{collection.name}: {len(topics)} queries in {seconds[0]:.1f} s{later}")
    return results


def told(fault: RagxError) -> str:
    """A fault in one line."""
    return f"{fault.message} ({fault.hint})" if fault.hint else fault.message


def since(started: float) -> str:
    """Time from a reading of the clock till now."""
    return f"{time.perf_counter() - started:.1f} s"


def save(path: Path, document: object) -> None:
    """Write JSON so that nobody sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}.part")
    draft.write_text(json.dumps(document), "utf-8")
    draft.replace(path)


def load(path: Path) -> list[Result]:
    """The results of a run's JSON."""
    document = json.loads(path.read_text("utf-8"))
    if not isinstance(document, dict) or "collections" not in document:
        raise ValueError(f"{path} is not what --json of a run writes")
    return [Result(**one) for one in document["collections"]]


def arguments_of(argv: Sequence[str]) -> argparse.Namespace:
    """The command line, checked."""
    usage = "quality.py [diff A.json B.json | sweep KEY=V1,V2 ...] [options]; --help lists them"
    parser = argparse.ArgumentParser(usage=usage, add_help=False)
    parser.add_argument("-h", "--help", action="store_true")
    parser.add_argument("--data", type=Path, default=os.environ.get("RAGX_DATA"))
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "ragx-quality")
    parser.add_argument("--only", nargs="+", default=[], action="extend")
    parser.add_argument("--configs", default="")
    parser.add_argument("--config", default="", help="of diff")
    parser.add_argument("--compare", nargs=2)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--settings", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--each", action="store_true")
    command = argv[0] if argv and argv[0] in ("diff", "sweep") else "run"
    if command != "run":
        parser.add_argument("operands", nargs="+")
    arguments = parser.parse_args(argv[command != "run" :])
    arguments.command = command
    if arguments.help:
        print(__doc__)
        sys.exit(0)
    names = tuple(name.strip() for name in arguments.configs.split(",") if name.strip())
    if arguments.compare and names:
        names = (*names, *arguments.compare)
    arguments.configs = choose_configs(names, vectors=True) if names else ()
    if arguments.compare:
        choose_configs(arguments.compare, vectors=True)
    if arguments.limit is not None and arguments.limit < 1:
        raise ValueError("--limit must be 1 at least")
    return arguments


def chosen(arguments: argparse.Namespace) -> list[Collection]:
    """The collections that the command line asks for."""
    if arguments.data is None or not arguments.data.is_dir():
        raise ValueError("no collections: name their directory with --data or RAGX_DATA")
    known = find_collections(arguments.data)
    for name in arguments.only:
        if not any(name in (one.name, one.group) for one in known):
            raise ValueError(f"no collection {name}; there are: {', '.join(c.name for c in known)}")
    only = set(arguments.only)
    return [one for one in known if not only or {one.name, one.group} & only]


def run(arguments: argparse.Namespace) -> bool:
    """Measure, print, and say whether everything could be measured."""
    runner = Runner(arguments)
    found, complete = for_each(chosen(arguments), runner.measured)
    if not found:
        return False
    results = with_groups(found)
    lines = [*quality_table(results), "", *depth_table(results)]
    if arguments.compare:
        lines += ["", *compare_lines(results, arguments.compare)]
    print("\n".join(lines))
    if arguments.json:
        document = {"format": FORMAT, "sources": runner.sources, "settings": runner.settings}
        save(arguments.json, {**document, "collections": [one.document() for one in found]})
    return complete


def sweep(arguments: argparse.Namespace) -> bool:
    """Measure one configuration under several settings."""
    settings = settings_of(arguments.operands, each=arguments.each)
    runner = Runner(arguments)
    found, complete = for_each(
        chosen(arguments), lambda collection: sweep_one(runner, collection, settings)
    )
    if not found:
        return False
    print("\n".join([f"nDCG@10 of {found[0][0].last}", "", *sweep_table(settings, found)]))
    if arguments.json:
        by_setting = [
            {"setting": dict(setting), "collections": [one.document() for one in results]}
            for setting, results in zip(settings, zip(*found, strict=True), strict=True)
        ]
        save(arguments.json, {"format": FORMAT, "sources": runner.sources, "sweep": by_setting})
    return complete


def diff(arguments: argparse.Namespace) -> bool:
    """Compare two runs."""
    if len(arguments.operands) != 2:
        raise ValueError("diff takes the JSON files of two runs")
    before, after = (load(Path(name)) for name in arguments.operands)
    print("\n".join(diff_table(before, after, arguments.config)))
    return True


def main() -> None:
    """Read the command line and do it."""
    commands = {"run": run, "sweep": sweep, "diff": diff}
    try:
        arguments = arguments_of(sys.argv[1:])
        complete = commands[arguments.command](arguments)
    except (ValueError, OSError, FetchError) as fault:
        sys.exit(f"quality.py: {fault}")
    except RagxError as fault:
        sys.exit(f"quality.py: {told(fault)}")
    sys.exit(0 if complete else 1)


if __name__ == "__main__":
    main()

"""Evidence packs against plain output cut at the same number of tokens.

    python research/evidence.py CORPUS QUERIES.jsonl [CORPUS QUERIES.jsonl ...] [--limit N] [--tune]

CORPUS is an indexed directory. Checks every pack (fits by a recount, nothing cut, ids resolve) and
prints Markdown: recall of judged files at 1,000 and 2,000 tokens. --tune compares shares of
further chunks of a file. Results: research/evidence.md.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from ragx.algo.packing import trial_order
from ragx.api import Corpus, EvidencePack, EvidenceRequest, QueryRequest, open_corpus
from ragx.api.asking import citation_state, parse_citation
from ragx.api.options import query_options
from ragx.evaluation.qrels import Topic, every_kth, parse_queries
from ragx.providers.builtin import shipped_tokenizer
from ragx.providers.counting import TokenCounter
from ragx.query import evidence
from ragx.query.pipeline import Answer, run_query
from ragx.shells.cli.query import query_document
from ragx.shells.cli.shares import Shares
from ragx.store.base import FileRow
from ragx.store.sqlite import SqliteReader

BUDGETS = (1000, 2000)
FURTHER = (0.0, 0.5, 0.7, 1.0)
TOKENIZER = shipped_tokenizer()
UNKNOWN = TOKENIZER.token_to_id("[UNK]")
COUNTER = TokenCounter()


@dataclass
class Asked:
    """One question, what the search found, and what `query --json` would print."""

    topic: Topic
    answer: Answer
    plain: str
    rows: dict[str, FileRow]
    begun: dict[str, int] = field(default_factory=dict)
    whole: dict[str, int] = field(default_factory=dict)


def recount(text: str) -> int:
    """The tokenizer's own count, with unknown words at their size; other code than ragx's."""
    found = TOKENIZER.encode(text, add_special_tokens=False)
    return sum(
        -(-len(text[start:end].encode()) // 3) if token == UNKNOWN else 1
        for token, (start, end) in zip(found.ids, found.offsets, strict=True)
    )


def positions(asked: Asked) -> None:
    """At which token of the plain output each file's first text begins, and the first one ends."""
    document = json.loads(asked.plain)
    starts = [start for start, _ in TOKENIZER.encode(asked.plain, add_special_tokens=False).offsets]

    def tokens_before(at: int) -> int:
        from bisect import bisect_left

        return bisect_left(starts, at)

    cursor = 0
    for entry in document["results"]:
        for part in entry["chunks"]:
            shown = '"text":' + json.dumps(part["text"], ensure_ascii=False)
            cursor = asked.plain.index(shown, cursor)
            asked.begun.setdefault(entry["file"], tokens_before(cursor + 9))
            cursor += len(shown)
            asked.whole.setdefault(entry["file"], tokens_before(cursor))


def collect(corpus: Corpus, topics: Sequence[Topic]) -> list[Asked]:
    """Ask every question once for packs and once for the plain output."""
    found = []
    options = query_options(corpus.config)
    with closing(SqliteReader(corpus.root)) as reader:
        embedder = corpus.open_embedder(reader.manifest())
        assert embedder is not None
        shares = Shares(corpus.config.query.max_chunk_chars, context_everywhere=False)
        for topic in topics:
            vector = embedder.embed_query(topic.query)
            lines = corpus.config.query.context_lines
            plain = QueryRequest(topic.query, top=20, before=lines, after=lines)
            wide = QueryRequest(
                topic.query, top=20, texts=False, chunks_per_file=evidence.CHUNKS_TRIED
            )
            shown, answer = (
                run_query(corpus.root, reader, request, options, embed=partial(same, vector))
                for request in (plain, wide)
            )
            text = json.dumps(
                query_document(shown, plain, shares), ensure_ascii=False, separators=(",", ":")
            )
            rows = {entry.path: reader.file(entry.path) for entry in answer.results}
            asked = Asked(topic, answer, text, {k: row for k, row in rows.items() if row})
            positions(asked)
            found.append(asked)
    return found


def same(vector: NDArray[np.float32], _text: str) -> NDArray[np.float32]:
    """The vector that is known already."""
    return vector


def packed(asked: Asked, budget: int, most: int = 20) -> EvidencePack:
    """The pack of `query --budget`."""
    return evidence.make_pack(
        asked.answer,
        EvidenceRequest(QueryRequest(asked.topic.query), budget, most),
        rows=asked.rows,
        count=COUNTER.count,
        tokenizer=COUNTER.name,
    )


def check(root: Path, reader: SqliteReader, asked: Asked, pack: EvidencePack) -> list[str]:
    """What is wrong with a pack; nothing should be."""
    wrong = []
    if not recount(pack.text) == pack.tokens <= pack.budget_tokens:
        wrong.append(f"{pack.tokens} tokens, {recount(pack.text)} by a recount")
    for item in pack.passages:
        raw = (root / item.path).read_bytes()[item.byte_start : item.byte_end]
        if raw.decode(asked.rows[item.path].encoding) != item.text:
            wrong.append(f"{item.id} is no slice of its file")
        if not citation_state(root, reader, parse_citation(item.id)).holds:
            wrong.append(f"{item.id} does not resolve")
    return wrong


def recall(topic: Topic, files: set[str]) -> float:
    """Share of the judged files that are among `files`."""
    relevant = {path for path, grade in topic.grades.items() if grade > 0}
    return len(relevant & files) / len(relevant)


def scores(found: Sequence[Asked], budget: int, most: int = 20) -> tuple[float, float]:
    """Mean recall of packs, and how many of them hold the first file of the answer."""
    packs = [packed(asked, budget, most) for asked in found]
    files = [{item.path for item in pack.passages} for pack in packs]
    recalls = fmean(recall(asked.topic, names) for asked, names in zip(found, files, strict=True))
    first = [
        asked.answer.results[0].path in names
        for asked, names in zip(found, files, strict=True)
        if asked.answer.results
    ]
    return recalls, fmean(first)


def cut(asked: Asked, budget: int, *, whole: bool) -> set[str]:
    """Files whose first text the plain output shows within so many tokens: all of it, or some."""
    places = asked.whole if whole else asked.begun
    return {path for path, at in places.items() if at <= budget}


def main(arguments: Sequence[str]) -> None:
    limit = int(arguments[arguments.index("--limit") + 1]) if "--limit" in arguments else 50
    places = [item for item in arguments if not item.startswith("--") and not item.isdecimal()]
    everything: list[tuple[str, list[Asked]]] = []
    n_packs, wrong = 0, []
    for corpus_path, queries_path in zip(places[::2], places[1::2], strict=True):
        corpus = open_corpus(Path(corpus_path))
        topics = parse_queries(Path(queries_path).read_text("utf-8"), name=queries_path)
        found = collect(corpus, list(every_kth(topics, limit)))
        everything.append((Path(queries_path).parent.name, found))
        print(f"{queries_path}: {len(found)} questions", file=sys.stderr, flush=True)
        with closing(SqliteReader(corpus.root)) as reader:
            for asked in found:
                for budget in (300, *BUDGETS, 2400):
                    pack = packed(asked, budget, 6 if budget == 2400 else 20)
                    wrong += check(corpus.root, reader, asked, pack)
                    n_packs += 1
    print(f"{n_packs} packs checked, {len(wrong)} faults\n")
    for line in wrong[:20]:
        print(f"- {line}")
    if "--tune" in arguments:
        tune(everything)
    table(everything)


def table(everything: Sequence[tuple[str, list[Asked]]]) -> None:
    """Recall of each collection."""
    heads = [f"{name}, {budget:,}" for budget in BUDGETS for name in ("begun", "whole", "pack")]
    print(f"| collection | questions | {' | '.join(heads)} | pack, 6 of 2,400 | first file |")
    print(f"|---|---|{'---|' * (len(heads) + 2)}")
    columns: list[list[float]] = []
    for name, found in everything:
        cells = []
        for budget in BUDGETS:
            for whole in (False, True):
                cells.append(
                    fmean(recall(item.topic, cut(item, budget, whole=whole)) for item in found)
                )
            cells.append(scores(found, budget)[0])
        cells += [scores(found, 2400, 6)[0], scores(found, 1000)[1]]
        columns.append(cells)
        print(f"| {name} | {len(found)} | {' | '.join(f'{cell:.3f}' for cell in cells)} |")
    means = [fmean(values) for values in zip(*columns, strict=True)]
    n = sum(len(found) for _, found in everything)
    print(f"| **mean** | {n} | {' | '.join(f'{value:.3f}' for value in means)} |")


def tune(everything: Sequence[tuple[str, list[Asked]]]) -> None:
    """Recall under every setting: the mean over collections, and the worst against the cut."""
    print("| further | mean 1,000 | mean 2,000 | least gain | first 1,000 | first 2,000 |")
    print("|---|---|---|---|---|---|")
    for further in FURTHER:
        setattr(evidence, "trial_order", partial(trial_order, further=further))  # noqa: B010
        means, firsts, gains = [], [], []
        for budget in BUDGETS:
            found = [scores(asked, budget) for _, asked in everything]
            means.append(fmean(value for value, _ in found))
            firsts.append(fmean(value for _, value in found))
            for (value, _), (_, asked) in zip(found, everything, strict=True):
                base = fmean(recall(q.topic, cut(q, budget, whole=False)) for q in asked)
                gains.append(value - base)
        cells = [*means, min(gains), *firsts]
        print(f"| {further} | {' | '.join(f'{cell:.3f}' for cell in cells)} |")
    setattr(evidence, "trial_order", trial_order)  # noqa: B010


if __name__ == "__main__":
    main(sys.argv[1:])

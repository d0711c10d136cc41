"""What each kind of edge and each setting of heat is worth on a labelled collection.

    python research/graph.py rule     CORPUS QUERIES.jsonl [CORPUS QUERIES.jsonl ...]
    python research/graph.py ablation CORPUS QUERIES.jsonl
    python research/graph.py sums     CORPUS QUERIES.jsonl     # do explained terms add up?

CORPUS is an indexed directory. A line of QUERIES is `{"query", "relevant": [paths]}`, or with
`"grades": {path: grade}`. Prints Markdown. Significance is a paired randomisation test with 10,000
draws, seed 1, on nDCG@10. Results are in research/graph.md.
"""

from __future__ import annotations

import json
import math
import random
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np

from ragx.algo import heat, metrics
from ragx.algo.graph import EDGE_KINDS
from ragx.api import open_corpus
from ragx.query import spread
from ragx.query.pipeline import QueryOptions, QueryRequest, run_query
from ragx.query.spread import SpreadOptions
from ragx.store.sqlite import SqliteReader

METRICS = ("nDCG@10", "MRR@10", "R@5", "R@10", "R@20")
REFERENCES = ("link", "mention", "import", "symbol")


class Collection:
    """A corpus, its questions and their vectors."""

    def __init__(self, root: Path, queries: Path) -> None:
        self.root = root
        corpus = open_corpus(root)
        self.reader = SqliteReader(root)
        self.questions = [json.loads(line) for line in queries.read_text("utf-8").splitlines()]
        with closing(corpus.open_embedder(self.reader.manifest())) as embedder:
            self.vectors = {q["query"]: embedder.embed_query(q["query"]) for q in self.questions}

    def run(self, options: QueryOptions, **request: object) -> np.ndarray:
        """(questions, metrics) scores."""
        return np.array([self.scored(q, options, **request) for q in self.questions])

    def scored(self, question: dict, options: QueryOptions, **request: object) -> list[float]:
        """Metrics of one question's ranking of files."""
        asked = QueryRequest(question["query"], top=20, texts=False, **request)
        answer = run_query(self.root, self.reader, asked, options, embed=self.vectors.get)
        got = [entry.path for entry in answer.results]
        judged = question.get("grades") or dict.fromkeys(question["relevant"], 1)
        return [
            metrics.ndcg(got, judged, 10),
            metrics.reciprocal_rank(got, judged, 10),
            *(metrics.recall(got, judged, k) for k in (5, 10, 20)),
        ]


def significance(one: np.ndarray, other: np.ndarray) -> float:
    """Two-sided p of the difference of means under random signs."""
    difference = one - other
    if not difference.any():
        return 1.0
    signs = np.random.default_rng(1).choice([-1, 1], size=(10_000, len(difference)))
    drawn = np.abs((signs * difference).mean(axis=1))
    return float((drawn >= abs(difference.mean()) - 1e-12).mean())


def row(name: str, scores: np.ndarray, base: np.ndarray | None = None) -> str:
    """A line of a table."""
    cells = [f"{value:.4f}" for value in scores.mean(axis=0)]
    if base is not None:
        change = scores[:, 0].mean() - base[:, 0].mean()
        cells += [f"{change:+.4f}", f"{significance(scores[:, 0], base[:, 0]):.3f}"]
    return "| " + " | ".join([name, *cells]) + " |"


def rule(pairs: list[tuple[Path, Path]]) -> None:
    """The default against each leg, their sum without graph, and reciprocal ranks."""
    print("| collection | questions | vector | lexical | RRF | sum | sum + graph | change | p"
          " | R@20 sum | R@20 graph |")  # fmt: skip
    print("|---" * 11 + "|")
    for root, queries in pairs:
        collection = Collection(root, queries)
        runs = [
            collection.run(QueryOptions(), graph=False, mode="vector"),
            collection.run(QueryOptions(), graph=False, mode="lexical"),
            collection.run(QueryOptions(method="rrf"), graph=False),
            collection.run(QueryOptions(), graph=False),
            collection.run(QueryOptions()),
        ]
        before, after = runs[-2:]
        cells = [root.name, str(len(before)), *(f"{scores[:, 0].mean():.4f}" for scores in runs)]
        cells.append(f"{after[:, 0].mean() - before[:, 0].mean():+.4f}")
        cells.append(f"{significance(after[:, 0], before[:, 0]):.3f}")
        cells += [f"{scores[:, 4].mean():.4f}" for scores in (before, after)]
        print("| " + " | ".join(cells) + " |", flush=True)


def ablation(collection: Collection) -> None:
    """One change at a time to the defaults."""
    plain = SpreadOptions()
    none = dict.fromkeys(EDGE_KINDS, 0.0)
    every = {kind: float(kind in REFERENCES) for kind in EDGE_KINDS}
    base = collection.run(QueryOptions(), graph=False)
    print("edges:", collection.reader.graph().counts_by_kind())
    print("| " + " | ".join(["heat", *METRICS, "change", "p"]) + " |")
    print("|---" * 8 + "|")
    print(row("none", base))
    settings: list[tuple[str, SpreadOptions]] = [("default", plain)]
    settings += [
        (f"{kind} alone", replace(plain, similar_always=True, weights={**none, kind: 1.0}))
        for kind in EDGE_KINDS
    ]
    settings += [
        ("references + adjacent .3", replace(plain, weights={**every, "adjacent": 0.3})),
        (
            "references + similar .3",
            replace(plain, similar_always=True, weights={**every, "similar": 0.3}),
        ),
        ("1 hop", replace(plain, hops=1)),
        ("3 hops", replace(plain, hops=3)),
        ("decay .5", replace(plain, decay=0.5)),
        ("decay 1", replace(plain, decay=1.0)),
        ("no cap", replace(plain, cap=False)),
        (
            "seed document: kNN edges, uncapped, .25 heat + .15 vector",
            replace(plain, formula="seed", decay=0.5),
        ),
    ]
    for name, options in settings:
        print(row(name, collection.run(QueryOptions(spread=options)), base), flush=True)
    vectors_only = collection.run(QueryOptions(spread=settings[-1][1]), mode="vector")
    print(row("the same from vector seeds alone, as it is there", vectors_only, base), flush=True)
    for module, constant, values in (
        (heat, "CAP", (0.6, 0.9, 0.999)),
        (heat, "_GIVES", (0.0, 0.5)),
        (heat, "_TAKES", (3.0, 12.0, math.inf)),
        (spread, "_N_SEEDS", (3, 10, 20)),
    ):
        kept = getattr(module, constant)
        for value in values:
            setattr(module, constant, value)
            name = f"{constant.strip('_')} {value} (default {kept})"
            print(row(name, collection.run(QueryOptions()), base), flush=True)
        setattr(module, constant, kept)


def sums(collection: Collection) -> None:
    """500 random queries: do terms add up, and does explaining change anything?"""
    reader, draw = collection.reader, random.Random(500)
    words = sorted({word for chunk in reader.chunks(reader.graph().ids.tolist()).values()
                    for word in chunk.text.split()})  # fmt: skip
    worst = rounded = heated = 0.0
    for _ in range(500):
        text = " ".join(draw.sample(words, draw.randint(1, 6)))
        options = QueryOptions()
        embed = lambda text: collection.vectors[draw.choice(sorted(collection.vectors))]  # noqa: E731
        state = draw.getstate()
        plain = run_query(
            collection.root, reader, QueryRequest(text, texts=False), options, embed=embed
        )
        draw.setstate(state)
        asked = QueryRequest(text, texts=False, explain=True)
        answer = run_query(collection.root, reader, asked, options, embed=embed)
        assert (answer.results, answer.stages, answer.warnings) == (
            plain.results, plain.stages, plain.warnings
        )  # fmt: skip
        for entry in answer.results:
            worst = max(worst, abs(math.fsum(entry.terms.values()) - entry.score))
            for part in entry.chunks:
                terms = part.hit.terms.values()
                worst = max(worst, abs(math.fsum(terms) - part.hit.score))
                shown = math.fsum(round(term, 6) for term in terms)
                rounded = max(rounded, abs(shown - round(part.hit.score, 6)))
                heated += bool(part.hit.hops)
    print(f"worst difference {worst:.1e}, of rounded terms {rounded:.1e}; {heated:.0f} heated hits")


def main() -> None:
    """Read the command line."""
    if len(sys.argv) < 4 or len(sys.argv) % 2:
        sys.exit(__doc__)
    what, *paths = sys.argv[1:]
    pairs = [(Path(a), Path(b)) for a, b in zip(paths[::2], paths[1::2], strict=True)]
    if what == "rule":
        rule(pairs)
    else:
        {"ablation": ablation, "sums": sums}[what](Collection(*pairs[0]))


if __name__ == "__main__":
    main()

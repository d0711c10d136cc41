"""`ragx eval`: what each stage of the query is worth on judged questions."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ragx.errors import UsageError
from ragx.shells.cli import envelope
from ragx.shells.cli.frame import Command, command_options, open_corpus

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ragx.api import Comparison, Evaluation

__all__ = ["COLUMNS", "command"]

COLUMNS = {
    "ndcg_at_10": "nDCG@10",
    "mrr_at_10": "MRR@10",
    "mrr": "MRR",
    "recall_at_5": "R@5",
    "recall_at_10": "R@10",
    "recall_at_20": "R@20",
    "recall_at_100": "R@100",
}
"""Metrics in the order of the table, with their headings."""

_SHOWN = 10  # queries won, and as many lost
_QUERY_CHARS = 60


@click.command(
    "eval",
    cls=Command,
    short_help="Measure the answers on judged questions.",
    help="Measure each stage of the query on judged questions, one JSON object per line; - reads"
    " stdin.",
)
@click.argument("queries", metavar="QUERIES")
@click.option("--configs", metavar="A,B,...", help="Configurations to ask, by name.")
@click.option("--compare", nargs=2, metavar="A B", help="Queries that B wins and loses against A.")
@click.option(
    "--metric",
    type=click.Choice(list(COLUMNS)),
    default="ndcg_at_10",
    show_default=True,
    help="What comparisons are by.",
)
@click.option(
    "--top",
    type=click.IntRange(1, 1000),
    default=100,
    show_default=True,
    help="Files asked for per query.",
)
@click.option("--limit", type=click.IntRange(1), help="Ask so many queries, evenly spread.")
@click.option("--per-query", is_flag=True, help="Also list every query; JSON always does.")
@command_options
def command(
    *,
    queries: str,
    configs: str | None,
    compare: tuple[str, str] | None,
    metric: str,
    top: int,
    limit: int | None,
    per_query: bool,
    root: Path | None,
    as_json: bool,
) -> int:
    """Ask, then show."""
    from ragx.api import Corpus, EvalRequest

    corpus = Corpus.of(open_corpus(root))
    text, name = _read(queries)
    request = EvalRequest(
        queries=text,
        name=name,
        configs=_names(configs),
        compare=compare,
        metric=metric,
        top=top,
        limit=limit,
    )
    with _Progress() as progress:
        found = corpus.evaluate(
            request,
            progress=progress.show,
            notice=envelope.tell,
        )
    if as_json:
        envelope.emit(_document(found))
        return envelope.OK
    for line in found.warnings:
        envelope.warn(line)
    lines = _table(found)
    if found.asked is not None:
        lines += ["", *_compared(found.asked, found)]
    if per_query:
        lines += ["", *_queries(found)]
    envelope.emit_text("\n".join(lines))
    return envelope.OK


def _read(queries: str) -> tuple[str, str]:
    """Text of the judged questions, and what to call them."""
    name = "standard input" if queries == "-" else queries
    try:
        if queries != "-":
            raw = Path(queries).read_bytes()
        else:
            raw = sys.stdin.buffer.read() if sys.stdin is not None else b""
        return raw.decode("utf-8-sig"), name
    except (OSError, ValueError) as fault:
        if isinstance(fault, UnicodeDecodeError):
            line = raw.count(b"\n", 0, fault.start) + 1
            why = f"line {line} is not UTF-8"
        else:
            why = f"cannot be read ({getattr(fault, 'strerror', None) or fault})"
        raise UsageError(
            f"{name}: {why}", code="bad_queries", hint="ragx eval QUERIES.jsonl, or - for stdin"
        ) from fault


def _names(configs: str | None) -> tuple[str, ...]:
    if configs is None:
        return ()
    names = tuple(name.strip() for name in configs.split(",") if name.strip())
    if not names:
        raise UsageError("--configs names no configuration", hint="ragx eval --help")
    return names


def _document(found: Evaluation) -> dict[str, object]:
    return {
        "schema": "ragx.eval.v1",
        "top": found.top,
        "query_count": len(found.topics),
        "configs": [
            {
                "name": config.name,
                **_rounded(config.means),
                "latency_ms": {"p50": round(config.p50_ms, 1), "p95": round(config.p95_ms, 1)},
            }
            for config in found.configs
        ],
        "queries": [
            {
                "id": topic.id,
                "query": topic.query,
                "per_config": {
                    name: {
                        "hit_ranks": list(scores[topic.id].hit_ranks),
                        **_rounded(scores[topic.id].values),
                        "latency_ms": round(scores[topic.id].elapsed_ms, 1),
                    }
                    for name, scores in found.per_topic.items()
                },
            }
            for topic in found.topics
        ],
        "comparisons": [
            *(_comparison(item, queries=False) for item in found.comparisons),
            *([_comparison(found.asked, queries=True)] if found.asked else []),
        ],
        "warnings": list(found.warnings),
    }


def _rounded(values: Mapping[str, float]) -> dict[str, float]:
    return {name: round(value, 6) for name, value in values.items()}


def _comparison(item: Comparison, *, queries: bool) -> dict[str, object]:
    document: dict[str, object] = {
        "metric": item.metric,
        "one": item.one,
        "other": item.other,
        "mean_one": round(item.mean_one, 6),
        "mean_other": round(item.mean_other, 6),
        "difference": round(item.difference, 6),
        "p": round(item.p, 6),
        "queries_won": len(item.won),
        "queries_lost": len(item.lost),
        "queries_tied": item.tied,
    }
    if queries:
        for name, pairs in (("won", item.won), ("lost", item.lost)):
            document[name] = [
                {"id": pair.topic, "one": round(pair.one, 6), "other": round(pair.other, 6)}
                for pair in pairs
            ]
    return document


def _table(found: Evaluation) -> list[str]:
    last = found.configs[-1].name
    p_of = {item.one: f"{item.p:.4f}" for item in found.comparisons}
    rows = [["config", *COLUMNS.values(), "p50 ms", "p95 ms", *([f"p vs {last}"] if p_of else [])]]
    for config in found.configs:
        rows.append(
            [
                config.name,
                *(f"{config.means[metric]:.4f}" for metric in COLUMNS),
                f"{config.p50_ms:.1f}",
                f"{config.p95_ms:.1f}",
                *([p_of.get(config.name, "")] if p_of else []),
            ]
        )
    lines = [f"{_n_queries(len(found.topics))}, {found.top} files asked for", ""]
    lines += _aligned(rows, n_left=1)
    if p_of:
        lines += ["", f"p: paired randomisation test of {COLUMNS[found.metric]} against {last}"]
    return lines


def _n_queries(n: int) -> str:
    return f"{n} {'query' if n == 1 else 'queries'}"


def _aligned(rows: Sequence[Sequence[str]], *, n_left: int) -> list[str]:
    """Columns two spaces apart, the first `n_left` flush left, the others flush right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if place < n_left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _compared(item: Comparison, found: Evaluation) -> list[str]:
    texts = {topic.id: topic.query for topic in found.topics}
    head = (
        f"{COLUMNS[item.metric]} from {item.one} to {item.other}: {item.mean_one:.4f} ->"
        f" {item.mean_other:.4f} ({item.difference:+.4f}), p {item.p:.4f};"
        f" {len(item.won)} won, {len(item.lost)} lost, {item.tied} tied"
    )
    lines = [head]
    for title, pairs in (("won", item.won), ("lost", item.lost)):
        if not pairs:
            continue
        lines.append(f"{title}:")
        lines += _aligned(
            [
                [
                    f"  {pair.difference:+.4f}",
                    f"{pair.one:.4f} -> {pair.other:.4f}",
                    envelope.one_line(pair.topic),
                    _short(texts[pair.topic]),
                ]
                for pair in pairs[:_SHOWN]
            ],
            n_left=4,
        )
        if len(pairs) > _SHOWN:
            lines.append(f"  and {len(pairs) - _SHOWN} more (--json lists all)")
    return lines


def _queries(found: Evaluation) -> list[str]:
    names = list(found.per_topic)
    rows = [["query", *names, "text"]]
    for topic in found.topics:
        values = (found.per_topic[name][topic.id].values[found.metric] for name in names)
        rows.append([envelope.one_line(topic.id), *(f"{value:.4f}" for value in values)])
        rows[-1].append(_short(topic.query))
    # The last column is text of any length and stays as it is.
    heads = _aligned([row[:-1] for row in rows], n_left=1)
    title = f"{COLUMNS[found.metric]} of each query"
    return [title, *(f"{head}  {row[-1]}" for head, row in zip(heads, rows, strict=True))]


def _short(query: str) -> str:
    from ragx.api import shorten

    line = envelope.one_line(" ".join(query.split()))
    cut = shorten(line, _QUERY_CHARS)
    return cut if len(cut) == len(line) else cut + "..."


class _Progress:
    """One line on a terminal, rewritten; nothing elsewhere."""

    _EVERY_S = 0.1

    def __init__(self) -> None:
        self._tty = envelope.is_tty(sys.stderr)
        self._shown_at = 0.0
        self._dirty = False

    def __enter__(self) -> _Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._dirty:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def show(self, done: int, total: int) -> None:
        now = time.monotonic()
        if self._tty and now - self._shown_at >= self._EVERY_S:
            self._shown_at = now
            self._dirty = True
            sys.stderr.write(f"\r\x1b[K{done} of {total} answers")
            sys.stderr.flush()

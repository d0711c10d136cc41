"""Scores of test collections, query by query, and the tables that they make."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sweeping import Setting

from ragx.evaluation.compare import Comparison, compare
from ragx.evaluation.harness import CONFIGS, Evaluation
from ragx.evaluation.runs import percentile

LEGS = ("baseline", "lexical", "rrf", "fusion")
NDCG = "ndcg_at_10"
SHOWN = 5  # queries won, and as many lost
MOST_LOST = 0.003  # of nDCG@10, by the rule


def say(line: str) -> None:
    """Tell what is going on."""
    print(line, file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Result:
    """Scores of a collection, or of a group: then means are over its members.

    `values[config][metric]` has one number for each of `ids`; "elapsed_ms" is one of the metrics.
    """

    name: str
    files: int
    ids: list[str]
    values: dict[str, dict[str, list[float]]]
    members: tuple[Result, ...] = ()

    @property
    def last(self) -> str:
        """The configuration that the others are compared with."""
        return list(self.values)[-1]

    def mean(self, config: str, metric: str = NDCG) -> float:
        """Mean over the queries, or of the members' means."""
        if self.members:
            return math.fsum(one.mean(config, metric) for one in self.members) / len(self.members)
        return math.fsum(self.values[config][metric]) / len(self.ids)

    def by_id(self, config: str, metric: str = NDCG) -> dict[str, float]:
        """A metric by query."""
        return dict(zip(self.ids, self.values[config][metric], strict=True))

    def document(self) -> dict[str, Any]:
        """As JSON has it."""
        return {"name": self.name, "files": self.files, "ids": self.ids, "values": self.values}


def with_groups(results: Sequence[Result]) -> list[Result]:
    """The results, and after each folder's members the folder as one."""
    found: list[Result] = []
    for group, members in itertools.groupby(results, lambda one: one.name.rpartition("/")[0]):
        alike = list(members)
        found += alike
        if group and len(alike) > 1:
            found.append(_pooled(group, alike))
    return found


def _pooled(group: str, members: Sequence[Result]) -> Result:
    configs = [name for name in members[0].values if all(name in one.values for one in members)]
    return Result(
        f"{group} (mean of {len(members)})",
        sum(one.files for one in members),
        [f"{one.name}/{key}" for one in members for key in one.ids],
        {
            config: {
                metric: [value for one in members for value in one.values[config][metric]]
                for metric in members[0].values[config]
            }
            for config in configs
        },
        tuple(members),
    )


def result_of(name: str, files: int, found: Evaluation) -> Result:
    """What an evaluation measured, query by query."""
    values: dict[str, dict[str, list[float]]] = {}
    ids = [topic.id for topic in found.topics]
    for config, by_topic in found.per_topic.items():
        scores = [by_topic[key] for key in ids]
        of_config = {
            metric: [round(one.values[metric], 6) for one in scores] for metric in scores[0].values
        }
        of_config["elapsed_ms"] = [round(one.elapsed_ms, 2) for one in scores]
        values[config] = of_config
    return Result(name, files, ids, values)


def quality_table(results: Sequence[Result]) -> list[str]:
    """Every configuration by nDCG@10, the default by the rest, and the rule."""
    configs = [name for name in CONFIGS if any(name in one.values for one in results)]
    last = configs[-1]
    metrics = {"R@5": "recall_at_5", "R@10": "recall_at_10", "R@20": "recall_at_20"}
    metrics["MRR@10"] = "mrr_at_10"
    rows = [
        ["collection", "files", "queries", *configs]
        + [f"{last} {title}" for title in metrics]
        + ["best leg", f"{last} - best", "p", "rule"]
    ]
    for one in results:
        row = [one.name, str(one.files), str(len(one.ids))]
        row += [f"{one.mean(name):.4f}" if name in one.values else "" for name in configs]
        row += [f"{one.mean(one.last, metric):.4f}" for metric in metrics.values()]
        rows.append(row + rule(one))
    return ["nDCG@10", "", *markdown(rows)]


def rule(one: Result) -> list[str]:
    """Best leg, difference to it, p, and what the rule says."""
    legs = [name for name in LEGS if name in one.values and name != one.last]
    if not legs:
        return [""] * 4
    best = max(legs, key=one.mean)
    difference = one.mean(one.last) - one.mean(best)
    p = compare(NDCG, best, one.last, one.by_id(best), one.by_id(one.last)).p
    broken = difference < -MOST_LOST or (difference < 0 and p < 0.05)
    return [best, f"{difference:+.4f}", f"{p:.4f}", "BROKEN" if broken else "kept"]


def depth_table(results: Sequence[Result]) -> list[str]:
    """What is found at all, and how fast."""
    configs = [name for name in CONFIGS if any(name in one.values for one in results)]
    last = configs[-1]
    rows = [["collection", *(f"{name} R@100" for name in configs), f"{last} p50 ms", "p95 ms"]]
    for one in results:
        row = [one.name]
        for name in configs:
            row.append(f"{one.mean(name, 'recall_at_100'):.4f}" if name in one.values else "")
        times = one.values[one.last]["elapsed_ms"]
        rows.append(row + [f"{percentile(times, share):.1f}" for share in (0.5, 0.95)])
    return markdown(rows)


def diff_table(before: Sequence[Result], after: Sequence[Result], config: str) -> list[str]:
    """Two runs, collection by collection, over the queries that both asked."""
    rows = [["collection", "queries", "before", "after", "difference", "p", "won", "lost"]]
    olds = {one.name: one for one in with_groups(before)}
    for new in with_groups(after):
        old = olds.get(new.name)
        name = config or new.last
        if old is None or name not in old.values or name not in new.values:
            say(f"{new.name}: not in both runs")
            continue
        if old.ids != new.ids:
            say(f"{new.name}: the runs asked different queries")
            continue
        rows.append([new.name, str(len(new.ids)), *changed(old, name, new, name)])
    return markdown(rows)


def changed(old: Result, config_old: str, new: Result, config_new: str) -> list[str]:
    """Means before and after, difference, p, queries won and lost."""
    found = compared(old, config_old, new, config_new)
    one, other = old.mean(config_old), new.mean(config_new)
    cells = [f"{one:.4f}", f"{other:.4f}", f"{other - one:+.4f}", f"{found.p:.4f}"]
    return [*cells, str(len(found.won)), str(len(found.lost))]


def compared(old: Result, config_old: str, new: Result, config_new: str) -> Comparison:
    """The paired test over the queries."""
    return compare(NDCG, config_old, config_new, old.by_id(config_old), new.by_id(config_new))


def compare_lines(results: Sequence[Result], pair: tuple[str, str]) -> list[str]:
    """Two configurations of one run, and the queries that they differ most on."""
    one, other = pair
    having = [item for item in results if one in item.values and other in item.values]
    rows = [["collection", "queries", one, other, "difference", "p", "won", "lost"]]
    rows += [[item.name, str(len(item.ids)), *changed(item, one, item, other)] for item in having]
    lines = markdown(rows)
    for item in having:
        if item.members:
            continue
        found = compared(item, one, item, other)
        for title, pairs in (("won", found.won), ("lost", found.lost)):
            shown = (f"{at.topic} {at.one:.3f} -> {at.other:.3f}" for at in pairs[:SHOWN])
            if pairs:
                lines += ["", f"{item.name}, {title}: {'; '.join(shown)}"]
    return lines


def markdown(rows: Sequence[Sequence[str]]) -> list[str]:
    """A table whose columns also line up as plain text."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        lines.append(f"| {' | '.join(cells)} |")
    lines.insert(1, "|-" + "-|-".join("-" * width for width in widths) + "-|")
    return lines


def sweep_table(settings: Sequence[Setting], swept: Sequence[Sequence[Result]]) -> list[str]:
    """A row for each setting, a column for each collection or group, and their mean."""
    # From lists by collection to lists by setting.
    by_setting = [whole(with_groups(results)) for results in zip(*swept, strict=True)]
    plain = by_setting[0]
    rows = [["setting", *(one.name for one in plain), "mean"]]
    for setting, results in zip(settings, by_setting, strict=True):
        row = [" ".join(f"{key}={value}" for key, value in setting) or "as configured"]
        differences = []
        for old, new in zip(plain, results, strict=True):
            mean = new.mean(new.last)
            differences.append(mean - old.mean(old.last))
            p = compared(old, old.last, new, new.last).p
            row.append(f"{mean:.4f}" + (f" {differences[-1]:+.4f} p {p:.3f}" if setting else ""))
        mean = math.fsum(one.mean(one.last) for one in results) / len(results)
        change = math.fsum(differences) / len(differences)
        rows.append([*row, f"{mean:.4f}" + (f" {change:+.4f}" if setting else "")])
    return markdown(rows)


def whole(results: Sequence[Result]) -> list[Result]:
    """Groups instead of their members."""
    inside = {member.name for one in results for member in one.members}
    return [one for one in results if one.name not in inside]

"""What an agent pays for an answer: tokens of each output form, and what they tell it.

    python benchmarks/tokens.py [--limit N] [--forms='A;B'] ROOT=QUERIES.jsonl...

Asks every query of QUERIES.jsonl (`{"query": ..., "relevant": [path, ...]}` a line, with `answer`
if there is one) on the indexed corpus ROOT through the command line's own code, in this process.
Prints for each corpus a Markdown table of means over its queries:

- tokens: of the whole output;
- to first: tokens read until a relevant file has been named, in the order of the output; the
  whole output where none is;
- named, text, whole: share of the relevant files that the first so many tokens name, show text of
  (a line, or an excerpt of one), and show the best chunk of from its first line to its last;
- answer: share of the queries whose answer stands there literally.

Tokens are those of the WordPiece tokenizer of all-MiniLM-L6-v2, which ragx ships, as a proxy for an
agent's own: it counts no white space and nearly every sign for one, so it compares forms, but is
hard on JSON and code, and its numbers are nobody's bill. `--parts` says what `--json` is made of.
"""

from __future__ import annotations

import argparse
import functools
import io
import json
import re
import shlex
import statistics
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from tokenizers import Tokenizer

import ragx.providers
from ragx.api import Answer, Corpus, FileResult, QueryRequest
from ragx.providers import registry
from ragx.shells.cli import envelope
from ragx.shells.cli.main import main as ragx_main
from ragx.shells.cli.query import command as query_command

FORMS = ("--json", "--brief --json", "--json --files-only", "", "--brief", "--files-only")
BUDGETS = (500, 1000, 2000)
ASSETS = Path(ragx.providers.__file__).with_name("assets")


class Kept:
    """An embedder that stays loaded between commands and knows what it has embedded."""

    def __init__(self, embedder: Any) -> None:
        self._embedder = embedder
        self.embed_query = functools.cache(embedder.embed_query)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._embedder, name)

    def close(self) -> None:
        """Stay."""


@dataclass
class Desk:
    """Runs command lines, and keeps the answer that the last one showed."""

    answers: list[Answer] = field(default_factory=list)

    @contextmanager
    def open(self) -> Iterator[None]:
        """Put the shared embedder and the look over the shoulder in place."""
        open_one, search = registry.open_embedder, Corpus.search

        @functools.cache
        def kept(options: Any) -> Kept | None:
            embedder = open_one(options)
            return None if embedder is None else Kept(embedder)

        def open_kept(options: Any, **_: Any) -> Kept | None:
            return kept(options)

        def watched(corpus: Corpus, request: QueryRequest, **more: Any) -> Answer:
            self.answers.append(search(corpus, request, **more))
            return self.answers[-1]

        with (
            mock.patch.object(registry, "open_embedder", open_kept),
            mock.patch.object(Corpus, "search", watched),
        ):
            yield

    def run(self, root: str, form: str, query: str) -> tuple[str, Answer]:
        """The standard output of `ragx query` and the answer that it shows."""
        raw = io.BytesIO()
        out = io.TextIOWrapper(raw, encoding="utf-8")
        args = ["query", "--root", root, *shlex.split(form), "--", query]
        with redirect_stdout(out), redirect_stderr(io.StringIO()) as complaints:
            status = ragx_main(args)
        if status not in (envelope.OK, envelope.EMPTY):
            raise SystemExit(f"{args}: {complaints.getvalue() or raw.getvalue().decode()}")
        return raw.getvalue().decode(), self.answers[-1]


@dataclass(frozen=True)
class Places:
    """Where an output shows a file: ends of its name, a first line of text, its best chunk."""

    named: int
    text: int | None
    whole: int | None


def written(text: str, as_json: bool) -> str:
    """A text as the output spells it."""
    return json.dumps(text, ensure_ascii=False)[1:-1] if as_json else envelope.harmless(text)


def entries(output: str, answer: Answer, as_json: bool) -> list[tuple[int, int]]:
    """Start and end of each file's entry in the output."""
    starts, at = [], 0
    for entry in answer.results:
        if as_json:
            found = re.compile(re.escape(f'"file":"{written(entry.path, True)}"')).search(
                output, at
            )
        else:
            name = re.escape(envelope.one_line(entry.path))
            found = re.compile(rf"^{name}(?=$|:|  )", re.MULTILINE).search(output, at)
        if found is None:
            raise SystemExit(f"{entry.path} is not in the output")
        starts.append(found.start())
        at = found.end()
    return list(zip(starts, [*starts, len(output)][1:], strict=True))


def lines_of(text: str, as_json: bool) -> list[str]:
    """Lines that are not blank, without indentation, as the output spells them."""
    rows = (row.strip() for row in re.split(r"\r\n|\r|\n", text))
    return [written(row, as_json) for row in rows if row]


def look(output: str, span: tuple[int, int], entry: FileResult, path: str, as_json: bool) -> Places:
    """Where the entry names the path and shows text; a copy counts by its entry."""
    name = f'"{written(path, True)}"' if as_json else envelope.one_line(path)
    at = output.find(name, *span)
    named = at + len(name) if at >= 0 else len(output) + 1
    # What the entry holds from its text on; a heading alone is no text.
    firsts: list[int] = []
    for part in entry.chunks:
        # A form may cut a long line: some words in a row of it are text, too.
        for row in lines_of(part.chunk.text, as_json):
            firsts += [
                found + len(row) for found in [find_text(output, row, span, as_json)] if found >= 0
            ]
    text = min(firsts, default=excerpt_end(output, span, as_json))
    whole: int | None = span[0]
    for row in lines_of(entry.chunks[0].chunk.text, as_json):
        found = output.find(row, whole, span[1])
        if found < 0:
            whole = None
            break
        whole = found + len(row)
    return Places(named, text, whole)


def find_text(output: str, row: str, span: tuple[int, int], as_json: bool) -> int:
    """Where a line of a chunk stands as text, not as a heading or name; -1 if nowhere."""
    after = output.find('"text":"' if as_json else "\n    ", *span)
    return -1 if after < 0 else output.find(row, after, span[1])


def excerpt_end(output: str, span: tuple[int, int], as_json: bool) -> int | None:
    """End of the first piece of text in an entry that shows no line whole; None without text."""
    if as_json:
        found = re.compile(r'"text":"((?:[^"\\]|\\.)+)"').search(output, *span)
    else:
        found = re.compile(r"^ {4}\S.*", re.MULTILINE).search(output, *span)
    return None if found is None else found.end()


@dataclass
class Row:
    """What was measured of one form on one query."""

    tokens: int
    n_bytes: int
    to_first: int
    shares: dict[str, float]


class Counter:
    """Counts tokens up to any place of a text."""

    def __init__(self) -> None:
        self._tokenizer = Tokenizer.from_file(str(next(ASSETS.glob("*tokenizer*.json"))))
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()

    def upto(self, text: str) -> tuple[int, Callable[[int], int]]:
        """Tokens of a text, and a function that gives those before a place in it."""
        starts = [a for a, _ in self._tokenizer.encode(text, add_special_tokens=False).offsets]
        return len(starts), lambda place: bisect_left(starts, place)


def measure(
    output: str, answer: Answer, topic: dict[str, Any], as_json: bool, counter: Counter
) -> Row:
    """Measure one output."""
    total, tokens_before = counter.upto(output)
    owners = {
        path: (entry, span)
        for entry, span in reversed(
            list(zip(answer.results, entries(output, answer, as_json), strict=True))
        )
        for path in (*entry.also_in, entry.path)
    }
    places = {
        path: look(output, owners[path][1], owners[path][0], path, as_json)
        for path in topic["relevant"]
        if path in owners
    }
    n = len(topic["relevant"])
    shares = {}
    wanted = topic.get("answer")
    at = -1
    if wanted:
        results = min((span[0] for _, span in owners.values()), default=0)
        at = output.lower().find(written(str(wanted), as_json).lower(), results)
    for budget in BUDGETS:
        for what in ("named", "text", "whole"):
            ends = [getattr(place, what) for place in places.values()]
            shares[f"{what} {budget}"] = (
                sum(
                    end is not None and end <= len(output) and tokens_before(end) <= budget
                    for end in ends
                )
                / n
            )
        if wanted:
            shares[f"answer {budget}"] = float(
                at >= 0 and tokens_before(at + len(str(wanted))) <= budget
            )
    firsts = [place.named for place in places.values() if place.named <= len(output)]
    return Row(total, len(output.encode()), tokens_before(min(firsts)) if firsts else total, shares)


def table(rows: dict[str, list[Row]]) -> str:
    """Forms down, measures across."""
    keys = list(next(iter(rows.values()))[0].shares)
    kinds = list(dict.fromkeys(key.split()[0] for key in keys))
    heads = ["form", "bytes", "tokens", "to first"]
    heads += [f"{kind} {' / '.join(map(str, BUDGETS))}" for kind in kinds]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for form, found in rows.items():
        cells = [f"`{form}`" if form else "(text)"]
        cells += [
            f"{statistics.fmean(getattr(row, name) for row in found):,.0f}"
            for name in ("n_bytes", "tokens", "to_first")
        ]
        for kind in kinds:
            means = (statistics.fmean(row.shares[f"{kind} {b}"] for row in found) for b in BUDGETS)
            cells.append(" / ".join(f"{mean:.2f}".removeprefix("0") for mean in means))
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def parts(output: str, counter: Counter) -> dict[str, int]:
    """Tokens of a `ragx.query.v3` by what they are spent on."""
    chunks = [chunk for entry in json.loads(output)["results"] for chunk in entry["chunks"]]
    spent = {
        name: sum(
            counter.upto(json.dumps(chunk[name], ensure_ascii=False, separators=(",", ":")))[0]
            for chunk in chunks
            if name in chunk
        )
        for name in ("text", "context", "breakdown", "heading")
    }
    return {**spent, "other": counter.upto(output)[0] - sum(spent.values())}


def known(form: str) -> bool:
    """Whether this version of ragx has all options of a form."""
    options = {name for option in query_command.params for name in option.opts}
    return {word for word in shlex.split(form) if word.startswith("-")} <= options


def main(args: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("corpora", nargs="+", metavar="ROOT=QUERIES.jsonl")
    parser.add_argument("--limit", type=int, help="ask so many queries of each, evenly spread")
    parser.add_argument("--parts", action="store_true", help="also what --json spends tokens on")
    parser.add_argument("--forms", help="output forms, split by semicolons")
    given = parser.parse_args(args)
    forms = FORMS if given.forms is None else tuple(form.strip() for form in given.forms.split(";"))
    forms = tuple(form for form in forms if known(form))
    counter, desk = Counter(), Desk()
    with desk.open():
        for corpus in given.corpora:
            root, _, queries = corpus.rpartition("=")
            lines = Path(queries).read_text(encoding="utf-8").splitlines()
            topics = [json.loads(line) for line in lines if line.strip()]
            if given.limit and given.limit < len(topics):
                topics = [topics[i * len(topics) // given.limit] for i in range(given.limit)]
            rows: dict[str, list[Row]] = {form: [] for form in forms}
            spent: list[dict[str, int]] = []
            for topic in topics:
                for form in forms:
                    output, answer = desk.run(root, form, topic["query"])
                    as_json = "--json" in form
                    rows[form].append(measure(output, answer, topic, as_json, counter))
                    if given.parts and form == "--json":
                        spent.append(parts(output, counter))
                desk.answers.clear()
            print(f"\n**{Path(root).name}**, {len(topics)} queries\n\n{table(rows)}", flush=True)
            if spent:
                means = {name: statistics.fmean(one[name] for one in spent) for name in spent[0]}
                print("\n`--json` by part: " + ", ".join(f"{k} {v:,.0f}" for k, v in means.items()))


if __name__ == "__main__":
    main()

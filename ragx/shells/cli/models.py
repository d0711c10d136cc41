"""`ragx models`: choose an embedding model and a reranker, fetch them, write the settings."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from ragx.shells.cli import ask, envelope
from ragx.shells.cli.frame import Command, command_options, open_corpus
from ragx.shells.cli.wording import count, size

if TYPE_CHECKING:
    from ragx.api import Corpus
    from ragx.api.catalog import Model
    from ragx.api.machine import Machine
    from ragx.api.setup import Change, Choice, Engine, Plan

__all__ = ["Wishes", "command", "walk_through"]

_QUALITIES = ("fast", "balanced", "best", "jina-nano")
_EMBED_ENGINES = ("llama-server", "lm-studio", "builtin")
_RERANK_ENGINES = ("llama-server", "sentence-transformers", "none")


class Wishes(NamedTuple):
    """What was asked for by flags; None leaves it to menus or to what suits the machine."""

    quality: str | None = None
    embed_engine: str | None = None
    rerank_engine: str | None = None


@click.command(
    "models",
    cls=Command,
    short_help="Choose, download and set up models.",
    help="Recommend an embedding model and a reranker for this machine, download them, and write"
    " them into ragx.toml.",
)
@click.option("--quality", type=click.Choice(_QUALITIES), help="The embedding model.")
@click.option(
    "--embed-engine", type=click.Choice(_EMBED_ENGINES), help="What runs the embedding model."
)
@click.option("--rerank-engine", type=click.Choice(_RERANK_ENGINES), help="What runs the reranker.")
@click.option("--yes", is_flag=True, help="Ask nothing: take what suits the machine, and do it.")
@click.option("--dry-run", is_flag=True, help="Show what would be done; change nothing.")
@command_options
def command(
    *,
    quality: str | None,
    embed_engine: str | None,
    rerank_engine: str | None,
    yes: bool,
    dry_run: bool,
    root: Path | None,
    as_json: bool,
) -> int:
    """Choose by flags or menus, show the plan, carry it out."""
    from ragx.api import Corpus

    corpus = Corpus.of(open_corpus(root))
    wishes = Wishes(quality, embed_engine, rerank_engine)
    if ask.person_there() and not (yes or dry_run or as_json):
        return walk_through(corpus, wishes)
    return _by_flags(corpus, wishes, apply=yes and not dry_run, dry_run=dry_run, as_json=as_json)


def walk_through(corpus: Corpus, wishes: Wishes) -> int:
    """Ask for what was not wished for, show the plan, and carry it out if the person agrees.

    Raises:
        RagxError: what was wished for cannot be had, a download failed, or input ended.
    """
    from ragx.api.machine import look_at_machine
    from ragx.api.setup import apply_plan, check_choice, make_plan

    machine = look_at_machine(corpus.config, corpus.loaded.home)
    for line in _header(machine):
        ask.say(line)
    ask.say()
    choice = _ask_choice(machine, wishes)
    if choice is None:
        return _nothing_changed()
    check_choice(machine, choice)
    plan = make_plan(corpus.loaded, machine, choice, corpus.env)
    ask.say()
    for line in _plan_lines(plan):
        ask.say(line)
    if not plan.changes and all(item.present for item in plan.downloads):
        envelope.emit_text("everything is set up this way already")
        return envelope.OK
    if not ask.confirm("Do this now?", default=True):
        return _nothing_changed()
    done = apply_plan(corpus.loaded, machine, plan, corpus.env, show_progress=True)
    _report(corpus, plan, done)
    return envelope.OK


def _by_flags(corpus: Corpus, wishes: Wishes, *, apply: bool, dry_run: bool, as_json: bool) -> int:
    """Take what suits the machine where nothing was wished for; carry it out only if told to."""
    from ragx.api.catalog import heavy_for
    from ragx.api.machine import look_at_machine
    from ragx.api.setup import apply_plan, check_choice, default_choice, make_plan

    machine = look_at_machine(corpus.config, corpus.loaded.home)
    choice = default_choice(machine, **wishes._asdict())
    notes = []
    if heavy_for(machine, choice.quality):
        notes.append(
            f"{choice.quality} is heavy for {_memory(machine)}: took fast instead (at a terminal,"
            " ragx models asks)"
        )
        choice = replace(choice, quality="fast")
    check_choice(machine, choice)
    notes += _choice_notes(machine, wishes, choice)
    if not apply and not dry_run:
        notes.append("nothing was changed: ragx models --yes does it")
    plan = make_plan(corpus.loaded, machine, choice, corpus.env)
    if not as_json:
        lines = [*_header(machine), "", *_catalog_lines(machine), "", *_plan_lines(plan)]
        lines += [f"note: {note}" for note in notes]
        if not apply:
            envelope.emit_text("\n".join(map(envelope.one_line, lines)))
            return envelope.OK
        for line in lines:
            ask.say(line)
    done = plan
    if apply:
        show = not as_json and envelope.is_tty(sys.stderr)
        done = apply_plan(corpus.loaded, machine, plan, corpus.env, show_progress=show)
    if as_json:
        envelope.emit(_document(corpus, machine, done, applied=apply, notes=notes))
    else:
        _report(corpus, plan, done)
    return envelope.OK


def _ask_choice(machine: Machine, wishes: Wishes) -> Choice | None:
    """Go through the menus; None if the person wants none of it."""
    from ragx.api.catalog import LICENCE_TO_CONFIRM
    from ragx.api.setup import Choice, embed_engines, nothing_to_download, rerank_engines

    quality, embed_engine, rerank_engine = wishes
    lacking = nothing_to_download(machine)
    if lacking and embed_engine is None:
        ask.say(f"No model can be downloaded: {lacking}.")
        if not ask.confirm("Use the built-in model, which is there (English)?", default=True):
            return None
        embed_engine, quality = "builtin", None
    elif embed_engine != "builtin":
        quality = _ask_quality(machine, quality, builtin=embed_engine is None)
        if quality is None:
            embed_engine = "builtin"
        elif embed_engine is None and quality == LICENCE_TO_CONFIRM:
            embed_engine = "llama-server"
        elif embed_engine is None:
            engines = embed_engines(machine)
            embed_engine = _ask_engine("What runs it:", engines) or engines[0].name
    if rerank_engine is None:
        rerank_engine = _ask_engine("Reranker (ragx query --rerank):", rerank_engines(machine))
    return Choice(quality, embed_engine, rerank_engine)


def _ask_quality(machine: Machine, wished: str | None, *, builtin: bool) -> str | None:
    """Pick the embedding model; None is the built-in one."""
    from ragx.api.catalog import (
        BUILTIN,
        CATALOG,
        LICENCE_TO_CONFIRM,
        find_model,
        heavy_for,
        recommended,
    )

    models = (*CATALOG, BUILTIN) if builtin else CATALOG
    rows = [(model.quality, about) for model, about in zip(models, _abouts(models), strict=True)]
    while True:
        picked = wished or ask.choose("Embedding model:", rows, default=recommended(machine))
        wished = None
        if picked == BUILTIN.quality:
            return None
        if picked == LICENCE_TO_CONFIRM:
            model = find_model(picked)
            ask.say(f"{model.name}: licence {model.licence}, not for commercial use.")
            if not ask.confirm("Is that what you need?", default=False):
                continue
        if heavy_for(machine, picked):
            ask.say(f"{picked} is heavy for {_memory(machine)}; fast is recommended.")
            if not ask.confirm(f"Take {picked} all the same?", default=False):
                continue
        return picked


def _ask_engine(title: str, engines: Sequence[Engine]) -> str | None:
    """Pick one of those that can run here; None if there is nothing to choose."""
    usable = [(engine.name, engine.about) for engine in engines if not engine.missing]
    for engine in engines:
        if engine.missing:
            ask.say(f"  ({engine.name} is left out: {engine.missing})", "dim")
    if not usable or usable[0][0] == "none":
        return None
    return ask.choose(title, usable, default=usable[0][0])


def _choice_notes(machine: Machine, wishes: Wishes, choice: Choice) -> list[str]:
    """What somebody who was not asked should know about what was chosen for them."""
    from ragx.api.catalog import LICENCE_TO_CONFIRM, find_model
    from ragx.api.setup import nothing_to_download

    notes = []
    if choice.embed_engine == "builtin" and wishes.embed_engine is None:
        notes.append(f"{nothing_to_download(machine)}: the built-in model is used")
    if choice.quality == LICENCE_TO_CONFIRM:
        notes.append(f"licence {find_model(choice.quality).licence}: not for commercial use")
    if choice.rerank_engine is None:
        notes.append("no reranker can be run here: [rerank] is left as it is")
    return notes


def _nothing_changed() -> int:
    envelope.emit_text("nothing was changed")
    return envelope.EMPTY


def _header(machine: Machine) -> list[str]:
    return [
        f"This machine: {_memory(machine)}, {machine.platform}, {count(machine.cpus, 'CPU')}",
        f"  llama-server  {machine.llama_server or 'not found'}",
        f"  lms           {machine.lms or 'not found'}",
    ]


def _memory(machine: Machine) -> str:
    return f"{size(machine.ram_bytes)} of memory" if machine.ram_bytes else "memory unknown"


def _abouts(models: Sequence[Model]) -> list[str]:
    """Columns of facts, aligned."""
    rows = [
        (
            model.name,
            _about(model.size_bytes) if model.size_bytes else "no download",
            model.languages,
            _tokens(model.context_tokens),
            model.licence,
        )
        for model in models
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def _about(n_bytes: int) -> str:
    """`~334 MB`, `~2.3 GB`: what lies on the hub may be packed anew."""
    return f"~{size(n_bytes)}".replace(".0 ", " ")


def _tokens(n: int) -> str:
    return f"{n // 1024}K tokens" if n >= 1024 else f"{n} tokens"


def _catalog_lines(machine: Machine) -> list[str]:
    from ragx.api.catalog import CATALOG, recommended

    width = max(len(model.quality) for model in CATALOG)
    best = recommended(machine)
    return [
        "Embedding models (» is recommended here):",
        *(
            f"  {'»' if model.quality == best else ' '} {model.quality:<{width}}  {about}"
            for model, about in zip(CATALOG, _abouts(CATALOG), strict=True)
        ),
    ]


def _plan_lines(plan: Plan) -> list[str]:
    lines = ["Plan:"]
    for item in plan.downloads:
        state = "already downloaded" if item.present else f"download {_about(item.size_bytes)}"
        how = {"lms": "lms get", "hub": "from the hub:"}[item.via]
        lines.append(f"  {item.what}: {item.model}, {state} ({how} {item.source})")
    lines += [f"  {_shown(change)}" for change in plan.changes]
    if not plan.changes:
        lines.append("  no setting changes")
    lines.append(
        "  the index has to be built again: ragx index --full"
        if plan.reindex
        else "  no index has to be built again"
    )
    return [*lines, *(f"  note: {note}" for note in plan.notes)]


def _shown(change: Change) -> str:
    return f"{change.key}: {json.dumps(change.old)} -> {json.dumps(change.new)}"


def _report(corpus: Corpus, planned: Plan, done: Plan) -> None:
    """Say what was done; notes of the plan have been shown with it."""
    for note in done.notes:
        if note not in planned.notes:
            envelope.warn(note)
    path = corpus.root / "ragx.toml"
    changed = f"{count(len(done.changes), 'setting')} written to {path}"
    following = "ragx index --full" if done.reindex else "ragx index"
    lines = [changed if done.changes else "no setting had to change", f"Next: {following}"]
    envelope.emit_text("\n".join(map(envelope.one_line, lines)))


def _document(
    corpus: Corpus, machine: Machine, plan: Plan, *, applied: bool, notes: Sequence[str]
) -> dict[str, object]:
    from ragx.api.catalog import CATALOG, recommended

    best = recommended(machine)
    return {
        "schema": "ragx.models.v1",
        "root": str(corpus.root),
        "machine": {
            "ram_bytes": machine.ram_bytes,
            "platform": machine.platform,
            "cpus": machine.cpus,
            "llama_server": machine.llama_server or None,
            "lms": machine.lms or None,
            "sentence_transformers": machine.sentence_transformers,
        },
        "catalog": [
            {
                "quality": model.quality,
                "model": model.name,
                "params": model.params,
                "context_tokens": model.context_tokens,
                "languages": model.languages,
                "licence": model.licence,
                "size_bytes": model.size_bytes,
                "doc_prefix": model.doc_prefix,
                "query_prefix": model.query_prefix,
                "recommended": model.quality == best,
            }
            for model in CATALOG
        ],
        "chosen": asdict(plan.choice),
        "plan": {
            "downloads": [asdict(item) for item in plan.downloads],
            "changes": [asdict(change) for change in plan.changes],
            "reindex": plan.reindex,
        },
        "applied": applied,
        "notes": [*notes, *plan.notes],
    }

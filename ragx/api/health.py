"""`ragx doctor`: the configured pipeline run for real, stage by stage, and what helps.

Each stage is asked for what a query or an index run will ask it for: a server that answers
`/models` may still refuse to embed. Every failure carries a hint that names a command.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Literal

from ragx.api.corpus import Corpus, IndexRequest, Status
from ragx.api.learned import learned_limits
from ragx.api.machine import chat_first, embedding_first
from ragx.api.options import embedding_options
from ragx.config import CONFIG_NAME, sensitive
from ragx.errors import IndexMissing, ProviderRefused, RagxError, StoreError
from ragx.providers.address import is_local
from ragx.providers.base import Notice, no_notice
from ragx.store.sqlite import SqliteReader

if TYPE_CHECKING:
    from ragx.providers.base import Embedder, Generator

__all__ = ["CHECKS", "Check", "Health", "check_health", "fix"]

State = Literal["ok", "warn", "fail", "skip"]
CHECKS = ("config", "embeddings", "expansion", "rerank", "index")
"""Names of the checks in order; `deep` adds "integrity"."""

_PROBES = ("The ferry to the island leaves at nine.", "Bread rises because yeast makes gas.")
_QUESTION = "When does the boat go to the island?"
_PROBE_TOKENS = 8
_QUERY_TOKENS = 4096
_SAMPLE_FILES = 40
# Two vectors of one text: servers that compute in batches differ a little, others not at all.
_LEAST_REPEAT_COSINE = 0.999
_FUTURE_S = 60.0
_WITHOUT = {
    "embeddings": "to do without a server: ragx config set embeddings.provider builtin",
    "expansion": "to do without it: ragx config set expansion.enabled false",
    "rerank": "to do without it: ragx config set rerank.enabled false",
}


# Faults of settings, whose own hint is the whole remedy.
_OWN_HINT = frozenset({"untrusted", "api_key_unset", "config"})


@dataclass(frozen=True, slots=True)
class Check:
    """Outcome of one stage: `detail` in words, `hint` with a command where something is amiss.

    `notes` are further lines for people: what was started, what the server can do.
    """

    name: str
    status: State
    detail: str
    hint: str = ""
    elapsed_ms: float = 0.0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Health:
    """Outcome of all stages, in the order of `CHECKS`."""

    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing failed; warnings are no failure."""
        return all(check.status != "fail" for check in self.checks)


@dataclass(slots=True)
class _Found:
    """What one stage has to say so far; a later word replaces an earlier only by being worse."""

    status: State = "ok"
    detail: list[str] = field(default_factory=list)
    hint: str = ""
    notes: list[str] = field(default_factory=list)

    def worse(self, status: State, detail: str, hint: str) -> None:
        if status == "fail" and self.status != "fail":
            self.detail.clear()
        if status == self.status == "fail":
            self.notes.append(f"{detail}: {hint}")
            return
        if self.status != "fail":
            self.status, self.hint = status, self.hint if self.status == "warn" else hint
            self.detail.append(detail)


def check_health(corpus: Corpus, *, deep: bool = False, notice: Notice = no_notice) -> Health:
    """Run every stage once.

    Args:
        deep: also find out how much of a text the model reads, and check all that is stored.
        notice: told what is started on the way.
    Returns:
        One check per stage; faults of a stage are in its check, none is raised.
    """
    stages: list[tuple[str, Callable[[], _Found]]] = [
        ("config", lambda: _config(corpus)),
        ("embeddings", lambda: _embeddings(corpus, deep=deep, notice=notice)),
        ("expansion", lambda: _expansion(corpus, notice)),
        ("rerank", lambda: _rerank(corpus, notice)),
        ("index", lambda: _index(corpus)),
    ]
    if deep:
        stages.append(("integrity", lambda: _integrity(corpus)))
    return Health(tuple(_timed(name, stage) for name, stage in stages))


def _timed(name: str, stage: Callable[[], _Found]) -> Check:
    began = time.perf_counter()
    try:
        found = stage()
    except RagxError as fault:
        found = _Found("fail", [fault.message], _hint(name, fault))
    elapsed = round((time.perf_counter() - began) * 1000, 1)
    return Check(
        name, found.status, " · ".join(found.detail), found.hint, elapsed, tuple(found.notes)
    )


def _hint(name: str, fault: RagxError) -> str:
    """The fault's own hint, and for a model that does not serve how to go on without it."""
    hint = fault.hint.replace("; `ragx doctor` tests it", "")
    without = _WITHOUT.get(name, "")
    if fault.code in _OWN_HINT or not without:
        return hint or "ragx config list"
    return f"{hint}; {without}" if hint else without


def _config(corpus: Corpus) -> _Found:
    config = corpus.config
    where = str(corpus.loaded.config_path or f"no {CONFIG_NAME}: built-in settings")
    stages = [
        f"embeddings={_named(config.embeddings.provider, config.embeddings.model)}",
        "expansion="
        + (_named(config.expansion.provider, config.expansion.model) if config.expansion.enabled
           else "off"),
        "rerank="
        + (_named(config.rerank.provider, config.rerank.model) if config.rerank.enabled
           else "off"),
    ]  # fmt: skip
    found = _Found(detail=[where, *stages], notes=list(corpus.loaded.overrides))
    waiting = corpus.waiting_for_trust()
    if waiting:
        why = sensitive(corpus.loaded)
        found.worse(
            "fail",
            f"{where} holds settings that do not count until you trust them: {', '.join(waiting)}",
            "look at them (ragx trust --list), then: ragx trust",
        )
        found.notes += [f"{key} {why[key]}" for key in waiting]
    for name in ("embeddings", "expansion", "rerank"):
        url = getattr(config, name).base_url
        if url.startswith("http://") and not is_local(url):
            found.worse(
                "warn",
                f"{name}.base_url {url} is not encrypted",
                f"ragx config set {name}.base_url https://...",
            )
    return found


def _named(provider: str, model: str) -> str:
    return f"{provider}/{model}" if model else provider


def _embeddings(corpus: Corpus, *, deep: bool, notice: Notice) -> _Found:
    import numpy as np

    manifest = _manifest_if_readable(corpus)
    embedder = corpus.open_embedder(manifest, notice=notice)
    if embedder is None:
        return _Found("skip", ["embeddings.provider is none: answers come from words alone"])
    name = _named(corpus.config.embeddings.provider, embedder.model)
    with closing(embedder):
        began = time.perf_counter()
        rows = embedder.embed_documents(_PROBES)
        first_ms = (time.perf_counter() - began) * 1000
        began = time.perf_counter()
        again = embedder.embed_documents(_PROBES)
        next_ms = (time.perf_counter() - began) * 1000
        found = _Found(detail=[f"{name} answered, {rows.shape[1]} dimensions"])
        found.notes += _endpoint_notes(embedder)
        found.notes.append(f"first answer {first_ms:.0f} ms, the next {next_ms:.0f} ms")
        if corpus.config.embeddings.provider == "builtin":
            found.notes.append("reads English; other languages are found by their words mostly")
        worst = float(np.min(np.sum(rows * again, axis=1)))
        if worst < _LEAST_REPEAT_COSINE:
            found.worse(
                "warn",
                f"the same text twice gives vectors of cosine {worst:.4f}",
                "check the server: an index of such vectors cannot be kept in step",
            )
        found.notes += _learned(corpus, manifest)
        _check_width(found, corpus, rows.shape[1])
        if corpus.config.embeddings.provider != "llama-server":  # it has the file it was given
            _check_listed(found, embedder)
        if deep:
            _check_limit(found, embedder, manifest)
    return found


def _manifest_if_readable(corpus: Corpus) -> dict[str, str]:
    """What the index was built with; a damaged one is said by the check of the index."""
    try:
        return corpus.manifest()
    except StoreError:
        return {}


def _endpoint_notes(embedder: Embedder) -> list[str]:
    return list(getattr(embedder, "endpoint_notes", ()))


def _learned(corpus: Corpus, manifest: Mapping[str, str]) -> Iterator[str]:
    """What indexing runs have found out about the server."""
    limit = manifest.get("embeddings_max_tokens", "")
    if limit:
        yield f"the index has texts of at most {limit} tokens for it, longer ones in parts"
    options = embedding_options(corpus.config, corpus.env, {}, root=corpus.root, with_key=False)
    known = learned_limits(corpus.root, options)
    said = [
        *([f"{known.max_items} texts"] if known.max_items else []),
        *([f"{known.max_request_tokens} tokens"] if known.max_request_tokens else []),
    ]
    if said:
        yield f"takes at most {' and '.join(said)} in one request"
    if known.in_flight:
        size = f" of {known.batch_size} texts" if known.batch_size else ""
        yield f"{known.in_flight} requests{size} at a time served best"


def _check_width(found: _Found, corpus: Corpus, dimension: int) -> None:
    try:
        with closing(SqliteReader(corpus.root)) as reader:
            stored = reader.dimension()
    except RagxError:
        return  # the check of the index says so
    if stored and stored != dimension:
        found.worse(
            "fail",
            f"the model gives vectors of {dimension} numbers, the index holds {stored}",
            "ragx index --no-cache",
        )


def _check_listed(found: _Found, embedder: Embedder) -> None:
    """A model that the server does not list may be loaded on demand: no failure."""
    from ragx.providers.openai import OpenAIEmbedder

    if not isinstance(embedder, OpenAIEmbedder):
        return
    try:
        listed = embedder.served_models()
    except RagxError:
        return
    if listed and not _is_listed(embedder.model, listed):
        near = _nearest(embedder.model, embedding_first(listed))
        found.worse(
            "warn",
            f"the server does not list {embedder.model!r}; it lists {_some(listed)}",
            f"ragx config set embeddings.model {shlex.quote(near)}",
        )


def _check_limit(found: _Found, embedder: Embedder, manifest: Mapping[str, str]) -> None:
    """How much of one text the model reads, and whether the index knows."""
    from ragx.providers.openai import OpenAIEmbedder

    if not isinstance(embedder, OpenAIEmbedder):
        if embedder.max_tokens is not None:
            found.notes.append(f"reads {embedder.max_tokens} tokens at once; longer texts in parts")
        return
    limit = embedder.probe_limit()
    if limit.max_tokens is None:
        found.notes.append("reads texts of every size that chunks have")
    elif limit.truncates:
        found.notes.append(f"cuts a text after about {limit.max_tokens} tokens without a word")
    else:
        found.notes.append(f"refuses a text of more than about {limit.max_tokens} tokens")
    if not manifest:
        return
    known = manifest.get("embeddings_max_tokens", "")
    if limit.truncates and limit.max_tokens and (not known or int(known) > limit.max_tokens):
        found.worse(
            "fail",
            f"the server cuts texts after about {limit.max_tokens} tokens, and the index was built"
            f" for {known or 'more'}: the ends of chunks are not in their vectors",
            "ragx index --full",
        )


def _is_listed(model: str, listed: Sequence[str]) -> bool:
    """Whether a server has a model; Ollama lists `name` as `name:latest`."""
    return model in listed or f"{model}:latest" in listed


def _nearest(model: str, likely: Sequence[str]) -> str:
    """The listed name most like what was asked for, or else the likeliest of its kind."""
    return next(iter(get_close_matches(model, likely, n=1)), likely[0])


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:5])
    return f"{shown} and {len(names) - 5} more" if len(names) > 5 else shown


def _expansion(corpus: Corpus, notice: Notice) -> _Found:
    section = corpus.config.expansion
    if not section.enabled:
        return _Found("skip", ["expansion.enabled is false"])
    with closing(corpus.open_generator(notice=notice)) as generator:
        reply = _first_words(generator)
        found = _Found(detail=[f"{_named(section.provider, generator.model)} answered"])
        found.notes += getattr(generator, "endpoint_notes", ())
        found.notes.append(f"its first words: {' '.join(reply.split())[:60]}")
        try:
            listed = generator.models()
        except RagxError:
            listed = ()
        own = section.provider == "llama-server"  # it has the file it was given
        if listed and not own and not _is_listed(generator.model, listed):
            near = _nearest(generator.model, chat_first(listed))
            found.worse(
                "warn",
                f"the server does not list {generator.model!r}; it lists {_some(listed)}",
                f"ragx config set expansion.model {shlex.quote(near)}",
            )
    return found


def _first_words(generator: Generator) -> str:
    """Ask for one word; a model that thinks first gets the room that a query would give it."""
    ask = "Answer in one word.", "What colour is snow?"
    try:
        return generator.complete(*ask, max_tokens=_PROBE_TOKENS)
    except ProviderRefused:
        return generator.complete(*ask, max_tokens=_QUERY_TOKENS)


def _rerank(corpus: Corpus, notice: Notice) -> _Found:
    section = corpus.config.rerank
    if not section.enabled:
        return _Found("skip", ["rerank.enabled is false"])
    with closing(corpus.open_reranker(notice=notice)) as reranker:
        scores = reranker.scores(_QUESTION, _PROBES)
        shown = ", ".join(f"{score:.2f}" for score in scores)
        found = _Found(
            detail=[f"{_named(section.provider, reranker.model)} scored a pair ({shown})"]
        )
        found.notes += getattr(reranker, "endpoint_notes", ())
        if scores[0] <= scores[1]:
            found.worse(
                "warn",
                "it prefers the passage that does not answer the question",
                "ragx config set rerank.model BAAI/bge-reranker-v2-m3",
            )
    return found


def _index(corpus: Corpus) -> _Found:
    try:
        status = corpus.status()
    except IndexMissing:
        return _Found("warn", ["there is no index yet"], "ragx index")
    counts = status.counts
    if counts is None:
        return _Found("warn", ["there is no index yet"], "ragx index")
    model = _named(status.provider, status.model)
    found = _Found(detail=[f"{counts.files} files, {counts.chunks} chunks, built with {model}"])
    if status.settings_differ:
        found.worse("fail", status.settings_differ, status.settings_fix)
    for detail, hint in _drift(status):
        found.worse("warn", detail, hint)
    if found.status == "ok":
        found.detail.append("in step with the disk")
    ahead = corpus.files_from_the_future(_FUTURE_S)
    if ahead:
        found.worse(
            "warn",
            f"{ahead} files were changed in the future, by this machine's clock",
            "set the clock; until then such files are read anew in each run: ragx index",
        )
    return found


def _drift(status: Status) -> Iterator[tuple[str, str]]:
    drift = (status.new, status.changed, status.deleted)
    if any(drift):
        yield f"{drift[0]} new, {drift[1]} changed, {drift[2]} deleted files", "ragx index"
    if status.failed:
        first = status.failed[0]
        yield f"{len(status.failed)} files failed, {first.path} first: {first.note}", "ragx index"
    if status.unembedded:
        yield f"{status.unembedded} chunks without a vector", "ragx index"


def _integrity(corpus: Corpus) -> _Found:
    """What `verify` does to all files, done to some, and every row and checksum of the store."""
    from ragx.store.audit import audit

    try:
        findings = audit(corpus.root)
    except IndexMissing:
        return _Found("skip", ["there is no index yet"])
    found = _Found(detail=[f"{item.name}: {item.detail}" for item in findings if item.ok])
    for item in findings:
        if not item.ok:
            found.worse("fail", f"{item.name}: {item.detail}", "ragx index --full")
    if found.status == "ok":
        sample = corpus.compare_sample(_SAMPLE_FILES)
        found.detail.append(f"{sample.n_compared} files cut anew are as stored")
        if sample.differing:
            found.worse(
                "fail",
                f"{len(sample.differing)} of {sample.n_compared} files cut anew differ from what is"
                f" stored, {sample.differing[0]} first",
                "ragx index --full",
            )
    return found


def fix(corpus: Corpus, health: Health) -> str:
    """Run what helps the index, and nothing else: settings and servers are the user's own.

    Returns:
        The command that was run; "" where none helps.
    Raises:
        RagxError: as `Corpus.index`.
    """
    hints = [check.hint for check in health.checks if check.name in ("index", "integrity")]
    hints += [
        check.hint
        for check in health.checks
        if check.name == "embeddings" and check.hint.startswith("ragx index")
    ]
    for flag, request in _REPAIRS.items():
        command = f"ragx index{flag}"
        if any(hint.startswith(command) for hint in hints):
            corpus.index(request)
            return command
    return ""


# What repairs most comes first: it repairs what the others would.
_REPAIRS = {
    " --no-cache": IndexRequest(no_cache=True),
    " --full": IndexRequest(full=True),
    " --edges-only": IndexRequest(edges_only=True),
    "": IndexRequest(),
}

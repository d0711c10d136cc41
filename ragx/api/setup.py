"""Setting ragx up: a first `ragx.toml`, and models chosen from a short list.

A plan says everything that would be downloaded and changed before anything is; carrying it out
downloads first and writes the settings last, so that a failed download leaves them as they were.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ragx.api.catalog import LICENCE_TO_CONFIRM, RERANKER, Model, find_model, recommended
from ragx.api.machine import (
    LocalModel,
    Machine,
    fetch_from_hub,
    fetch_with_lms,
    list_lms_models,
)
from ragx.api.options import embedding_options
from ragx.config import (
    BASE_URLS,
    CONFIG_NAME,
    RC_LABEL,
    LoadedConfig,
    Value,
    build,
    edited,
    load_config,
    trust_written,
    values_of,
    write_file,
)
from ragx.config.load import read_bytes
from ragx.errors import (
    ConfigError,
    IndexMissing,
    MissingDependency,
    ProviderUnavailable,
    StoreError,
    UsageError,
)

__all__ = [
    "Change",
    "Choice",
    "Download",
    "Engine",
    "Plan",
    "apply_plan",
    "check_choice",
    "default_choice",
    "embed_engines",
    "make_plan",
    "nothing_to_download",
    "rerank_engines",
]

_PLAIN_NETWORK = "see README.md, section Restricted networks"


@dataclass(frozen=True, slots=True)
class Engine:
    """A way to run a model. `missing` says why it cannot be used here, `fix` what helps."""

    name: str
    about: str
    missing: str = ""
    fix: str = ""


@dataclass(frozen=True, slots=True)
class Choice:
    """What to set up. No quality: the built-in model; no rerank engine: left as it is."""

    quality: str | None
    embed_engine: str
    rerank_engine: str | None


@dataclass(frozen=True, slots=True)
class Download:
    """A model to fetch: `via` is lms or hub, `source` what that takes; sizes are approximate."""

    what: str
    model: str
    via: str
    source: str
    size_bytes: int
    present: bool


@dataclass(frozen=True, slots=True)
class Change:
    """One setting of `ragx.toml`, before and after."""

    key: str
    old: Value
    new: Value


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that carrying out a choice does. `reindex`: the index there is will not fit."""

    choice: Choice
    downloads: tuple[Download, ...]
    changes: tuple[Change, ...]
    reindex: bool
    notes: tuple[str, ...] = ()


def nothing_to_download(machine: Machine) -> str:
    """Why no embedding model can be had here; empty if one can."""
    return "" if machine.lms else "LM Studio's program lms, which downloads models, was not found"


def embed_engines(machine: Machine) -> tuple[Engine, ...]:
    """Ways to run a downloaded embedding model, in order of preference."""
    lacking = nothing_to_download(machine)
    no_lms = "install LM Studio and open it once, or use --embed-engine builtin"
    return (
        Engine(
            "llama-server",
            "ragx starts it when needed and ends it; nothing else has to run",
            lacking or ("" if machine.llama_server else "llama-server was not found on PATH"),
            no_lms if lacking else "install llama.cpp, or use --embed-engine lm-studio",
        ),
        Engine(
            "lm-studio",
            "LM Studio serves it and stays running; one place for all your models",
            lacking,
            no_lms,
        ),
    )


def rerank_engines(machine: Machine) -> tuple[Engine, ...]:
    """Ways to run the reranker, in order of preference; the last is to have none."""
    lacking = nothing_to_download(machine)
    return (
        Engine(
            "llama-server",
            "ragx starts it when needed and ends it; 0.6 GB, no Python libraries",
            lacking or ("" if machine.llama_server else "llama-server was not found on PATH"),
            "install LM Studio and open it once, or use --rerank-engine none"
            if lacking
            else "install llama.cpp, or use --rerank-engine none",
        ),
        Engine(
            "sentence-transformers",
            "runs inside ragx on torch; 2.3 GB, some seconds to load for each query",
            "" if machine.sentence_transformers else "sentence-transformers is not installed",
            "in the checkout of ragx: pip install '.[rerank]'",
        ),
        Engine("none", "no reranking: queries stay fast"),
    )


def default_choice(
    machine: Machine,
    *,
    quality: str | None = None,
    embed_engine: str | None = None,
    rerank_engine: str | None = None,
) -> Choice:
    """Fill in what was not asked for by name with what suits the machine."""
    if embed_engine is None:
        usable = [engine.name for engine in embed_engines(machine) if not engine.missing]
        wanted = "llama-server" if quality == LICENCE_TO_CONFIRM else None
        embed_engine = wanted or (usable[0] if usable else None)
    if embed_engine is None:
        embed_engine = "lm-studio" if quality else "builtin"
    if embed_engine != "builtin" and quality is None:
        quality = recommended(machine)
    if rerank_engine is None:
        first = next(engine.name for engine in rerank_engines(machine) if not engine.missing)
        rerank_engine = None if first == "none" else first
    return Choice(quality, embed_engine, rerank_engine)


def check_choice(machine: Machine, choice: Choice) -> None:
    """Refuse what cannot be had on this machine.

    Raises:
        UsageError: the parts do not go together.
        MissingDependency: a program or library is missing.
    """
    if choice.embed_engine == "builtin" and choice.quality is not None:
        raise UsageError(
            "--embed-engine builtin has one model: it goes with no --quality",
            hint="ragx models --embed-engine builtin",
        )
    if choice.quality == LICENCE_TO_CONFIRM and choice.embed_engine != "llama-server":
        raise UsageError(
            f"{LICENCE_TO_CONFIRM} runs on llama-server only: LM Studio does not load it",
            hint=f"ragx models --quality {LICENCE_TO_CONFIRM} --embed-engine llama-server",
        )
    for engines, name in (
        (embed_engines(machine), choice.embed_engine),
        (rerank_engines(machine), choice.rerank_engine),
    ):
        for engine in engines:
            if engine.name == name and engine.missing:
                raise MissingDependency(f"{name}: {engine.missing}", hint=engine.fix)


def make_plan(
    loaded: LoadedConfig, machine: Machine, choice: Choice, env: Mapping[str, str]
) -> Plan:
    """Say what setting up a choice would download and change; writes nothing.

    Args:
        loaded: settings of the corpus as they are in force.
        env: variables that may hold keys.
    Raises:
        ProviderUnavailable: LM Studio cannot say what it has.
        ConfigError: `ragx.toml` cannot be read.
    """
    needs_lms = choice.embed_engine != "builtin" or choice.rerank_engine == "llama-server"
    there = list_lms_models(machine) if needs_lms else ()
    downloads: list[Download] = []
    wanted: dict[str, Value] = {}
    notes: list[str] = []
    _plan_embeddings(choice, machine, there, downloads, wanted)
    _plan_rerank(choice, machine, there, downloads, wanted)
    changes = _changes(loaded, wanted)
    overridden = [change.key for change in changes if loaded.origins.get(change.key) == RC_LABEL]
    if overridden:
        notes.append(f"{RC_LABEL} overrides {', '.join(overridden)}: change it there, too")
    if any(change.key.endswith(".gguf") and change.new for change in changes):
        notes.append(
            f"the paths of models in {CONFIG_NAME} are this machine's; on another, run ragx models"
        )
    in_force = {change.key: change.new for change in changes if change.key not in overridden}
    return Plan(
        choice,
        tuple(downloads),
        changes,
        _needs_reindex(loaded, in_force, env),
        tuple(notes),
    )


def apply_plan(
    loaded: LoadedConfig,
    machine: Machine,
    plan: Plan,
    env: Mapping[str, str],
    *,
    show_progress: bool = False,
) -> Plan:
    """Download, then write the settings. Starts no server.

    Args:
        show_progress: let the downloading programs write to standard error.
    Returns:
        The plan as carried out: files as they are now, and notes on what did not work.
    Raises:
        ProviderUnavailable: a download failed; no setting was written.
        ConfigError: the settings cannot be written.
    """
    notes: list[str] = []
    for download in plan.downloads:
        if download.present:
            continue
        if download.via == "lms":
            fetch_with_lms(machine, download.source, show=show_progress)
            continue
        try:
            fetch_from_hub(download.source, show=show_progress)
        except ProviderUnavailable as fault:
            # Queries go unreranked, with a warning, until it can be loaded.
            notes.append(f"{fault.message}; the reranker cannot be used yet: {_PLAIN_NETWORK}")
    done = make_plan(loaded, machine, plan.choice, env)
    missing = [item for item in done.downloads if item.via == "lms" and not item.present]
    if missing:
        raise ProviderUnavailable(
            f"lms get ended well, but LM Studio does not list {missing[0].model}",
            hint="lms ls shows what it has; open LM Studio and try again",
        )
    path = loaded.root / CONFIG_NAME
    before = read_bytes(path) or b""
    written = {change.key: change.new for change in done.changes}
    if written:
        write_file(path, edited(before, written), inside=loaded.root)
        after = load_config(loaded.root, env=env, home=loaded.home)
        if not trust_written(loaded, after, written):
            notes.append(f"{CONFIG_NAME} holds settings that do not count yet: ragx trust --list")
    return replace(done, notes=(*done.notes, *notes))


def _plan_embeddings(
    choice: Choice,
    machine: Machine,
    there: Sequence[LocalModel],
    downloads: list[Download],
    wanted: dict[str, Value],
) -> None:
    section: dict[str, Value] = {
        "provider": "builtin", "base_url": "", "model": "", "gguf": "",
        "doc_prefix": "", "query_prefix": "", "api_key_env": "",
    }  # fmt: skip
    if choice.embed_engine != "builtin":
        model = find_model(str(choice.quality))
        found = _local(model, there)
        downloads.append(_from_lms("embedding model", model, found))
        section["doc_prefix"], section["query_prefix"] = model.doc_prefix, model.query_prefix
        if choice.embed_engine == "llama-server":
            path = found.path if found else _expected_path(machine, model)
            section |= {"provider": "llama-server", "gguf": str(path), "model": path.stem}
        else:
            # Written out: an address in the file wins over OPENAI_BASE_URL.
            section |= {
                "provider": "openai",
                "base_url": BASE_URLS["openai"],
                "model": found.key if found else model.key,
            }
    wanted.update({f"embeddings.{key}": value for key, value in section.items()})


def _plan_rerank(
    choice: Choice,
    machine: Machine,
    there: Sequence[LocalModel],
    downloads: list[Download],
    wanted: dict[str, Value],
) -> None:
    if choice.rerank_engine is None:
        return
    if choice.rerank_engine == "none":
        wanted["rerank.enabled"] = False
        return
    section: dict[str, Value] = {"enabled": True, "provider": choice.rerank_engine, "base_url": ""}
    if choice.rerank_engine == "llama-server":
        found = _local(RERANKER, there)
        downloads.append(_from_lms("reranker", RERANKER, found))
        path = found.path if found else _expected_path(machine, RERANKER)
        section |= {"gguf": str(path), "model": path.stem}
    else:
        downloads.append(
            Download(
                "reranker", RERANKER.name, "hub", RERANKER.hub_id, RERANKER.hub_bytes,
                present=_in_hub_cache(RERANKER.hub_id),
            )
        )  # fmt: skip
        section |= {"gguf": "", "model": RERANKER.hub_id}
    wanted.update({f"rerank.{key}": value for key, value in section.items()})


def _from_lms(what: str, model: Model, found: LocalModel | None) -> Download:
    return Download(what, model.name, "lms", model.source, model.size_bytes, found is not None)


def _expected_path(machine: Machine, model: Model) -> Path:
    """Where LM Studio puts a file of the hub."""
    return machine.models_directory / model.repository / model.file


def _local(model: Model, there: Sequence[LocalModel]) -> LocalModel | None:
    """The downloaded copy of a model, whoever published it; its own repository's first."""
    same = [item for item in there if item.path.name.lower() == model.file.lower()]
    publisher = model.repository.lower()
    return min(same, key=lambda item: publisher not in str(item.path).lower(), default=None)


def _in_hub_cache(hub_id: str) -> bool:
    """Whether a model's weights lie in the hub's cache, as far as that can be seen from here."""
    home = os.environ.get("HF_HOME") or os.path.expanduser("~/.cache/huggingface")
    cache = Path(os.environ.get("HF_HUB_CACHE") or os.path.join(home, "hub"))
    folder = cache / f"models--{hub_id.replace('/', '--')}" / "snapshots"
    try:
        return any(folder.glob("*/*.safetensors"))
    except OSError:
        return False


def _changes(loaded: LoadedConfig, wanted: Mapping[str, Value]) -> tuple[Change, ...]:
    """Compare with what the corpus's own file says, whatever `~/.ragxrc` makes of it."""
    own = load_config(loaded.root, env={}, home=None)
    values = values_of(own.config)
    for key in wanted:
        if key.endswith(".base_url") and own.origins[key] == "default":
            values[key] = ""  # a provider's own address stands in no file
    return tuple(Change(key, values[key], new) for key, new in wanted.items() if values[key] != new)


def _needs_reindex(
    loaded: LoadedConfig, changed: Mapping[str, Value], env: Mapping[str, str]
) -> bool:
    """Whether the index, if there is one, holds vectors of another model."""
    from ragx.providers.registry import fingerprint
    from ragx.store.sqlite import SqliteReader

    try:
        reader = SqliteReader(loaded.root)
    except IndexMissing:
        return False
    except StoreError:
        return True
    try:
        manifest = reader.manifest()
    finally:
        reader.close()
    config = build({**values_of(loaded.config), **changed})
    try:
        now = fingerprint(embedding_options(config, env, manifest, root=loaded.root))
    except ConfigError:
        return True  # a GGUF that is still to be downloaded is none that the index was built with
    return now != manifest.get("embeddings_fingerprint", "")

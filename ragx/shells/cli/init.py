"""`ragx init`: make a directory a corpus, by questions where somebody is there to answer."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ragx.config import (
    BASE_URLS,
    CONFIG_NAME,
    RC_LABEL,
    Value,
    create_config,
    find_key,
    find_legacy,
    find_root,
    load_config,
    parse_value,
)
from ragx.errors import ConfigError, CorpusError, UsageError
from ragx.indexing.scan import check_root
from ragx.shells.cli import ask, envelope
from ragx.shells.cli.frame import Command, command_options, home_directory, working_directory
from ragx.shells.cli.wording import count

if TYPE_CHECKING:
    from ragx.api.machine import LocalServer

__all__ = ["command"]

_NOTES = (
    (
        "Tailor [corpus] include and exclude in ragx.toml to what should be found here "
        '(ragx config set corpus.include "docs/**, *.md").'
    ),
    (
        "Tell your coding agent in AGENTS.md or CLAUDE.md to search with "
        '`ragx query "..." --json --files-only`.'
    ),
)
_SERVERS = tuple(BASE_URLS)
_PROVIDERS = (
    ("builtin", "in this process, nothing to install or download (English)"),
    ("openai", "any OpenAI-compatible server, such as LM Studio"),
    ("ollama", "a running Ollama"),
    ("llama-server", "llama.cpp, started by ragx from a GGUF file"),
    ("onnx", "a local directory with an ONNX model, in this process"),
    ("sentence-transformers", "a local directory or hub name, in this process on torch"),
    ("none", "no vectors: words only"),
)
_CHAT_PROVIDERS = ("openai", "ollama", "llama-server")
_NO_VARIABLE = "none"
# More than one screen of names helps nobody.
_LISTED = 20


@click.command(
    "init",
    cls=Command,
    short_help="Write ragx.toml: make a directory a corpus.",
    help="Write ragx.toml with every setting into PATH (default: here); at a terminal, ask first.",
)
@click.argument("path", required=False, type=click.Path(path_type=Path))
@click.option(
    "--yes",
    is_flag=True,
    help="Every default, no question; also where refused otherwise: $HOME, /.",
)
@click.option(
    "--interactive/--no-interactive",
    default=None,
    help="Whether to ask questions; without either, if a person is there and --yes is not given.",
)
@command_options
def command(
    path: Path | None, yes: bool, interactive: bool | None, root: Path | None, as_json: bool
) -> int:
    """Write the settings of a new corpus."""
    if path is not None and root is not None:
        raise UsageError("init: give PATH or --root, not both", hint="ragx init PATH")
    if interactive and as_json:
        raise UsageError(
            "init: --interactive asks, --json never does", hint="leave one of them out"
        )
    directory = Path(os.path.abspath(working_directory() / (path or root or ".")))
    _check(directory, confirmed=yes)
    above = _enclosing(directory)
    if interactive is None:
        interactive = not yes and not as_json and ask.person_there()
    answers: dict[str, Value] = {}
    and_models = False
    if interactive:
        answers = _questions(directory)
        and_models = ask.confirm(
            "Once ragx.toml is written, choose and download models (ragx models)?", default=False
        )
    _create(directory, answers)
    if above is not None:
        envelope.warn(f"{directory} lies inside the corpus {above}, which indexes its files too")
    if as_json:
        envelope.emit(
            {
                "schema": "ragx.init.v1",
                "root": str(directory),
                "config": CONFIG_NAME,
                "created": True,
                "notes": list(_NOTES),
            }
        )
        return envelope.OK
    lines = [f"wrote {directory / CONFIG_NAME}", *(f"- {note}" for note in _NOTES)]
    if not and_models:
        lines.append("Next: ragx index")
    envelope.emit_text("\n".join(envelope.one_line(line) for line in lines))
    if and_models:
        _models(directory)
    return envelope.OK


def _check(directory: Path, *, confirmed: bool) -> None:
    """Refuse, before any question, a directory that cannot become a corpus."""
    if not directory.is_dir():
        raise CorpusError(
            f"{directory}: no such directory",
            hint=f"mkdir -p {shlex.quote(str(directory))}",
            code="no_directory",
        )
    check_root(directory, confirmed=confirmed)
    legacy, target = find_legacy(directory), directory / CONFIG_NAME
    if legacy is not None:
        raise ConfigError(
            f"{legacy} already holds settings",
            hint=f"move them: mv {shlex.quote(str(legacy))} {shlex.quote(str(target))}",
            code="legacy_config",
        )
    if os.path.lexists(target):
        raise ConfigError(
            f"{target} exists already", hint="ragx config list shows it", code="config_exists"
        )


def _create(directory: Path, answers: dict[str, Value]) -> None:
    create_config(directory, answers, env=os.environ, home=home_directory())


def _models(directory: Path) -> None:
    from ragx.api import Corpus
    from ragx.shells.cli.models import Wishes, walk_through

    loaded = load_config(directory, env=os.environ, home=home_directory())
    for line in loaded.overrides:
        envelope.warn(line)
    ask.say()
    walk_through(Corpus.of(loaded), Wishes())


def _questions(directory: Path) -> dict[str, Value]:
    """Go through all questions; return what differs from the defaults, by dotted key."""
    from ragx.api.machine import LOCAL_SERVERS, probe_servers

    rc = load_config(None, env={}, home=home_directory())  # invalid: said before any question
    ask.say(f"Settings for {directory}.", "bold")
    ask.say("Enter takes what is in brackets; nothing is written before the last question.")
    servers = probe_servers()
    for server in servers:
        ask.say(f"{server.name} answers at {server.base_url}: {count(len(server.models), 'model')}")
    silent = [name for name, _ in LOCAL_SERVERS if name not in {item.name for item in servers}]
    if silent:
        ask.say(f"Not running here: {', '.join(silent)}")
    ask.say()
    answers = {**_embeddings(directory, servers), **_expansion(directory, servers)}
    for name, question in (("include", "Files that count"), ("exclude", "Files left out")):
        answers[f"corpus.{name}"] = _globs(f"corpus.{name}", question)
    overridden = [key for key in answers if rc.origins.get(key) == RC_LABEL]
    if overridden:
        ask.say(f"{RC_LABEL} wins over these answers: {', '.join(overridden)}", "yellow")
    return {key: value for key, value in answers.items() if value != find_key(key).default}


def _embeddings(directory: Path, servers: Sequence[LocalServer]) -> dict[str, Value]:
    from ragx.api.machine import embedding_first

    provider = ask.choose("What turns text into vectors:", _PROVIDERS, default="builtin")
    answers: dict[str, Value] = {"embeddings.provider": provider}
    if provider in _SERVERS:
        base_url, served = _address("embeddings", provider, servers)
        answers["embeddings.base_url"] = base_url
        answers["embeddings.model"] = _model("embeddings.model", embedding_first(served))
        answers["embeddings.api_key_env"] = _variable("embeddings.api_key_env")
    elif provider == "llama-server":
        answers["embeddings.gguf"] = _path("embeddings.gguf", "GGUF file", directory, "is_file")
    elif provider == "onnx":
        answers["embeddings.model"] = _path(
            "embeddings.model", "Directory of the model", directory, "is_dir"
        )
    elif provider == "sentence-transformers":
        answers["embeddings.model"] = _model("embeddings.model", [])
    return answers


def _expansion(directory: Path, servers: Sequence[LocalServer]) -> dict[str, Value]:
    from ragx.api.machine import chat_first

    wanted = ask.confirm(
        "Let a chat model reword questions when asked to (ragx query --expand)?", default=False
    )
    if not wanted:
        return {}
    known = dict(_PROVIDERS)
    names = {BASE_URLS["openai"]: "openai", BASE_URLS["ollama"]: "ollama"}
    running = [names[server.base_url] for server in servers if server.base_url in names]
    provider = ask.choose(
        "What runs the chat model:",
        [(name, known[name]) for name in _CHAT_PROVIDERS],
        default=running[0] if running else "openai",
    )
    answers: dict[str, Value] = {"expansion.enabled": True, "expansion.provider": provider}
    if provider == "llama-server":
        answers["expansion.gguf"] = _path("expansion.gguf", "GGUF file", directory, "is_file")
        return answers
    base_url, served = _address("expansion", provider, servers)
    answers["expansion.base_url"] = base_url
    answers["expansion.model"] = _model("expansion.model", chat_first(served))
    answers["expansion.api_key_env"] = _variable("expansion.api_key_env")
    return answers


def _address(
    section: str, provider: str, servers: Sequence[LocalServer]
) -> tuple[str, Sequence[str]]:
    """Ask where a server is; return that with the models it lists, if it is on this machine."""
    from ragx.api.machine import list_models, same_address

    key = f"{section}.base_url"
    base_url = ask.ask(
        "Base URL", lambda answer: str(parse_value(key, answer)), default=BASE_URLS[provider]
    )
    for server in servers:
        if same_address(server.base_url, base_url):
            return base_url, server.models
    return base_url, list_models(base_url)


def _model(key: str, served: Sequence[str]) -> str:
    """Ask for a model, by number where a server lists some; a name may be any."""

    def read(answer: str) -> str:
        if not answer:
            raise UsageError("a name is needed")
        if served and answer.isdecimal():
            return ask.pick(answer, served)
        return str(parse_value(key, answer))

    for number, name in enumerate(served[:_LISTED], start=1):
        ask.say(f"    {number:>2}  {name}")
    if len(served) > _LISTED:
        ask.say(f"        and {len(served) - _LISTED} more, by number or name")
    if served:
        return ask.ask("Model, number or name", read, default="1", shown=f"1: {served[0]}")
    return ask.ask("Model name", read)


def _variable(key: str) -> str:
    """Ask for the name of a variable; a key that is pasted here is refused and not repeated."""
    from ragx.api.machine import looks_like_key

    def read(answer: str) -> str:
        if answer == _NO_VARIABLE:
            return ""
        if looks_like_key(answer):
            raise UsageError(
                "that looks like a key: it never goes in a file",
                hint="put it in a variable, and give the variable's name",
            )
        return str(parse_value(key, answer))

    name = ask.ask("Environment variable that holds the API key", read, default=_NO_VARIABLE)
    if name and not os.environ.get(name):
        ask.say(f"  {name} is not set in this shell: set it before ragx index")
    return name


def _path(key: str, question: str, directory: Path, kind: str) -> str:
    """Ask for a file or directory that exists; a relative one starts from the corpus."""

    def read(answer: str) -> str:
        value = str(parse_value(key, answer))
        if not value or not getattr(directory / os.path.expanduser(value), kind)():
            raise UsageError(f"{value or 'nothing'}: no such {_KINDS[kind]}")
        return value

    return ask.ask(question, read)


_KINDS = {"is_file": "file", "is_dir": "directory"}


def _globs(key: str, question: str) -> Value:
    """Ask for a list of globs; Enter keeps the default one."""
    default = find_key(key).default
    globs = default if isinstance(default, tuple) else ()
    shown = f"the usual {len(globs)}: {', '.join(globs[:4])}, ..."
    return ask.ask(
        f"{question}, globs with commas between",
        lambda answer: parse_value(key, answer) if answer else default,
        shown=shown,
    )


def _enclosing(directory: Path) -> Path | None:
    """Return the corpus that already covers the directory, if there is one."""
    try:
        return find_root(directory.parent, None)
    except ConfigError:
        return None

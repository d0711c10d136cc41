"""What this machine offers for running models: memory, programs, local servers, LM Studio."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ragx.config import BASE_URLS, Config
from ragx.errors import ProviderUnavailable

if TYPE_CHECKING:
    import httpx

__all__ = [
    "LOCAL_SERVERS",
    "LocalModel",
    "LocalServer",
    "Machine",
    "chat_first",
    "embedding_first",
    "fetch_from_hub",
    "fetch_with_lms",
    "list_lms_models",
    "list_models",
    "look_at_machine",
    "looks_like_key",
    "probe_servers",
    "same_address",
]

LOCAL_SERVERS = (
    ("LM Studio", BASE_URLS["openai"]),
    ("Ollama", BASE_URLS["ollama"]),
)
"""Servers that people run at their usual place."""

# Names of models that turn text into vectors, and of chat models that think before they answer:
# servers list names alone, so this is a guess that only sets the order of a list.
_EMBEDS = re.compile(
    r"embed|\bbge-(?!reranker)|\be5-|\bgte-|minilm|\bmxbai|\barctic|\bjina-(?!reranker)|nomic"
)
_RERANKS = re.compile(r"rerank")
_THINKS = re.compile(
    r"think|reason|\br1\b|\bqwq|\bo[134]\b|gpt-oss|magistral|deepseek-r|\bqwen-?3(?!.*instruct)"
)
_KEY_START = re.compile(r"sk-|hf_[A-Za-z0-9]{20}|gsk_|xai-|ghp_|AIza")
_LARGEST_LIST = 1_000_000


@dataclass(frozen=True, slots=True)
class Machine:
    """Facts that decide what can be recommended.

    Args:
        ram_bytes: memory; None where the system does not tell.
        llama_server, lms: paths of the programs; empty if they were not found.
        sentence_transformers: whether that library is installed.
        models_directory: where LM Studio keeps models.
    """

    ram_bytes: int | None
    platform: str
    cpus: int
    llama_server: str = ""
    lms: str = ""
    sentence_transformers: bool = False
    models_directory: Path = field(default_factory=Path)


@dataclass(frozen=True, slots=True)
class LocalServer:
    """A model server that answered, and the names of what it serves, in its own order."""

    name: str
    base_url: str
    models: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LocalModel:
    """A model that LM Studio has downloaded: its key there, and where its file is."""

    key: str
    path: Path


def look_at_machine(config: Config, home: Path | None) -> Machine:
    """Find out what this machine has; starts nothing and asks no server.

    Args:
        config: may name a llama-server program.
        home: of the user; None if there is none.
    """
    import platform
    from importlib.util import find_spec

    from ragx.providers.llama_server import find_llama_server
    from ragx.providers.lm_studio import find_lms

    named = (config.embeddings.server_bin, config.rerank.server_bin, "")
    found = map(find_llama_server, named)
    return Machine(
        ram_bytes=_ram_bytes(),
        platform=f"{platform.system() or 'unknown'} {platform.machine()}".strip(),
        cpus=os.cpu_count() or 1,
        llama_server=next((path for path in found if path), ""),
        lms=find_lms() or "",
        sentence_transformers=find_spec("sentence_transformers") is not None,
        models_directory=_models_directory(_lm_studio_home(home)),
    )


def probe_servers(
    addresses: Sequence[tuple[str, str]] = LOCAL_SERVERS,
    *,
    connect_s: float = 0.4,
    answer_s: float = 2.0,
) -> tuple[LocalServer, ...]:
    """Ask all addresses at once what they serve; who does not answer in time is not there.

    Args:
        addresses: (name, base URL) each.
        connect_s: how long nothing may be there; where nothing listens this is known at once.
        answer_s: how long all of them together may take, one that is busy included.
    Returns:
        Those that answered, in the order of `addresses`.
    """
    import threading
    import time

    import httpx

    found: dict[int, tuple[str, ...]] = {}
    # A proxy has nothing to do with this machine's own servers; no secret is sent to any.
    client = httpx.Client(
        timeout=httpx.Timeout(answer_s, connect=connect_s), trust_env=False, verify=False
    )

    def ask(place: int, base_url: str) -> None:
        models = _served(client, base_url)
        if models is not None:
            found[place] = models

    # Daemons: a server that sends a byte a second must not keep the program from ending.
    threads = [
        threading.Thread(target=ask, args=(place, base_url), daemon=True)
        for place, (_, base_url) in enumerate(addresses)
    ]
    deadline = time.monotonic() + answer_s
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    answered = dict(found)
    if not any(thread.is_alive() for thread in threads):
        client.close()
    return tuple(
        LocalServer(name, base_url, answered[place])
        for place, (name, base_url) in enumerate(addresses)
        if place in answered
    )


def list_models(base_url: str) -> tuple[str, ...]:
    """What a server on this machine serves; nothing of one that is elsewhere, which is not asked
    before the user has finished."""
    from ragx.providers.address import is_local

    if not is_local(base_url):
        return ()
    return next((server.models for server in probe_servers([("", base_url)])), ())


def embedding_first(models: Sequence[str]) -> list[str]:
    """Order names so that what likely gives vectors comes first; rerankers come last."""
    return sorted(models, key=lambda name: (_is(_RERANKS, name), not _is(_EMBEDS, name)))


def chat_first(models: Sequence[str]) -> list[str]:
    """Keep likely chat models, those that think before they answer last; all, if there is none."""
    chat = [name for name in models if not _is(_EMBEDS, name) and not _is(_RERANKS, name)]
    return sorted(chat or models, key=lambda name: _is(_THINKS, name))


def looks_like_key(text: str) -> bool:
    """Whether text reads like a secret rather than like the name of a variable."""
    mixed = any(char.isdigit() for char in text) and any(char.islower() for char in text)
    # Names of variables have underscores; what is as long as a key and has none is likely one.
    plain = len(text) >= 16 and "_" not in text
    return bool(_KEY_START.match(text)) or plain or (len(text) >= 20 and mixed)


def same_address(one: str, other: str) -> bool:
    """Whether two base URLs name the same place; localhost is 127.0.0.1."""
    return _plain(one) == _plain(other)


def list_lms_models(machine: Machine) -> tuple[LocalModel, ...]:
    """What LM Studio has downloaded as GGUF; nothing where `lms` is not there.

    Raises:
        ProviderUnavailable: `lms` does not work.
    """
    from ragx.providers.lm_studio import downloaded_models

    if not machine.lms:
        return ()
    return tuple(
        LocalModel(str(item["modelKey"]), machine.models_directory / str(item["path"]))
        for item in downloaded_models(machine.lms)
        if item.get("modelKey") and item.get("path") and item.get("format", "gguf") == "gguf"
    )


def fetch_with_lms(machine: Machine, source: str, *, show: bool) -> None:
    """Download a model through LM Studio.

    Args:
        source: what `lms get` takes.
        show: let the program's progress through to standard error.
    Raises:
        ProviderUnavailable: it failed.
    """
    command = ["get", source, "--gguf", "--yes"]
    hint = f"try it by hand: lms {shlex.join(command)}"
    _run([machine.lms, *command], f"lms get {source}", hint, show=show)


def fetch_from_hub(model: str, *, show: bool) -> None:
    """Put a model of the hub into its cache, with the library that will load it from there.

    Raises:
        ProviderUnavailable: it failed.
    """
    import sys

    # In a process of its own: the library keeps threads, and prints as it likes.
    code = (
        "import sys; from huggingface_hub import snapshot_download;"
        "snapshot_download(sys.argv[1], allow_patterns=['*.json', '*.safetensors', '*.model'])"
    )
    hint = "README.md, section Restricted networks, has other ways"
    # -P, and away from here: Python would look for modules in the current directory first, which
    # may be a clone that has some.
    command = [sys.executable, "-P", "-c", code, model]
    _run(command, f"download of {model}", hint, show=show, cwd=os.path.abspath(os.sep))


def _run(command: list[str], label: str, hint: str, *, show: bool, cwd: str | None = None) -> None:
    """Run a program to its end, without input.

    Args:
        label: what it does, for messages.
        show: let both its streams through to standard error.
        cwd: where it runs; None is here.
    """
    # Descriptor 2: nothing but documents goes to standard output.
    output = 2 if show else subprocess.PIPE
    try:
        done = subprocess.run(
            command,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=2 if show else subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
    except OSError as exc:
        raise ProviderUnavailable(f"{label}: {exc.strerror or exc}", hint=hint) from exc
    if done.returncode != 0:
        said = (done.stdout or "").splitlines()
        last = next((line.strip() for line in reversed(said) if line.strip()), "")
        ending = f": {last}" if last else f" with exit code {done.returncode}"
        raise ProviderUnavailable(f"{label} failed{ending}", hint=hint)


def _served(client: httpx.Client, base_url: str) -> tuple[str, ...] | None:
    """Names that a server lists; None if nothing that lists models answers."""
    import httpx

    try:
        with client.stream("GET", f"{base_url.rstrip('/')}/models") as reply:
            if reply.status_code != httpx.codes.OK:
                return None
            body = b""
            for part in reply.iter_bytes():
                body += part
                if len(body) > _LARGEST_LIST:
                    return None
        listed = json.loads(body)["data"]
        names = [item["id"] for item in listed if isinstance(item.get("id"), str)]
    except (httpx.HTTPError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return tuple(dict.fromkeys(name for name in names if name.strip()))


def _plain(base_url: str) -> str:
    return base_url.rstrip("/").replace("//localhost", "//127.0.0.1").lower()


def _is(pattern: re.Pattern[str], name: str) -> bool:
    return pattern.search(name.lower()) is not None


def _ram_bytes() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def _lm_studio_home(home: Path | None) -> Path:
    """LM Studio's own directory: where its pointer file leads, else its usual places."""
    home = home or Path("/")
    try:
        pointed = (home / ".lmstudio-home-pointer").read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        pointed = ""
    if pointed:
        return home / pointed
    former = home / ".cache" / "lm-studio"
    return former if former.is_dir() else home / ".lmstudio"


def _models_directory(lm_studio: Path) -> Path:
    try:
        settings = json.loads((lm_studio / "settings.json").read_text(encoding="utf-8"))
        chosen = settings.get("downloadsFolder")
    except (OSError, ValueError, AttributeError, RecursionError):
        chosen = None
    return Path(chosen) if isinstance(chosen, str) and chosen else lm_studio / "models"

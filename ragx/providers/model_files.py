"""What the files of a local model directory say, in the layout of sentence-transformers.

`model.onnx` or `onnx/model.onnx`, `tokenizer.json`, and optionally `modules.json`,
`1_Pooling/config.json`, `sentence_bert_config.json`, `tokenizer_config.json`, `config.json` and
`config_sentence_transformers.json`.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragx.errors import ConfigError

__all__ = [
    "POOLINGS",
    "OnnxDirectory",
    "files_digest",
    "model_directory",
    "onnx_directory",
    "suggested_prefixes",
]

# Names as in `pooling_mode_*`, and what they are called since.
POOLINGS = {
    "cls_token": "cls",
    "mean_tokens": "mean",
    "max_tokens": "max",
    "mean_sqrt_len_tokens": "mean_sqrt_len",
    "weightedmean_tokens": "weightedmean",
    "lasttoken": "lasttoken",
}

_GRAPHS = ("model.onnx", "onnx/model.onnx")
# Beyond this, a tokenizer's limit means "none"; files say 10**30, for one.
_NO_LIMIT = 1 << 20
# These number positions from the padding token's id on, so two of them hold no text.
_OFFSET_POSITIONS = frozenset({"roberta", "xlm-roberta", "camembert", "mpnet"})
_READ_BYTES = 1 << 20
_DOCUMENT_PROMPTS = ("document", "passage", "doc")
_QUERY_PROMPTS = ("query", "s2p_query", "search_query")


@dataclass(frozen=True, slots=True)
class OnnxDirectory:
    """A local model: where its files are, and how its outputs are to be read.

    `pooling` are the ways to make one vector of many, joined end to end; `further` the modules
    after pooling that only the graph itself can hold. `max_tokens` includes special tokens.
    """

    name: str
    graph: Path
    tokenizer: Path
    pooling: tuple[str, ...]
    further: tuple[str, ...]
    max_tokens: int | None


def model_directory(model: str, section: str) -> Path:
    """Turn a setting into the directory it names.

    Args:
        model: a directory, or an ONNX file in it or in its folder `onnx`.
        section: of ragx.toml, for hints.
    Raises:
        ConfigError: nothing is named, or nothing is there.
    """
    key = f"{section}.model"
    hint = f"ragx config set {key} /path/to/model-directory"
    if not model:
        raise ConfigError(f"{key} is not set; it names the model's directory", hint=hint)
    path = Path(model).expanduser()
    if path.is_dir():
        return path
    if path.suffix == ".onnx" and path.is_file():
        folder = path.parent
        return folder.parent if folder.name == "onnx" else folder
    what = "is not a directory" if path.exists() else "does not exist"
    raise ConfigError(f"{key}: {path} {what}", hint=hint)


def onnx_directory(model: str, section: str) -> OnnxDirectory:
    """Read a model directory's settings; the model itself stays unread.

    Args:
        model: a directory, or one of several ONNX files in it.
        section: of ragx.toml, for hints.
    Raises:
        ConfigError: a file is missing, not JSON or asks for what is not supported.
    """
    root = model_directory(model, section)
    path = Path(model).expanduser()
    graph = path if path.is_file() else _graph(root, section)
    tokenizer = root / "tokenizer.json"
    if not tokenizer.is_file():
        raise ConfigError(
            f"{root} has no tokenizer.json",
            hint=f"copy the model's tokenizer.json to {shlex.quote(str(tokenizer))}",
        )
    pooling_folder, further = _modules(root / "modules.json")
    return OnnxDirectory(
        name=root.absolute().name,
        graph=graph,
        tokenizer=tokenizer,
        pooling=_pooling(root / pooling_folder / "config.json"),
        further=further,
        max_tokens=_max_tokens(root, tokenizer),
    )


def suggested_prefixes(model: str, section: str) -> tuple[str, str]:
    """Return the document and query prefixes that the model's own files recommend; "" for none.

    They are never applied by themselves: prefixes are settings.

    Raises:
        ConfigError: the directory is not there, or its file is not JSON.
    """
    root = model_directory(model, section)
    prompts = _object(_read(root / "config_sentence_transformers.json").get("prompts"))

    def first(names: tuple[str, ...]) -> str:
        return next((str(prompts[name]) for name in names if prompts.get(name)), "")

    return first(_DOCUMENT_PROMPTS), first(_QUERY_PROMPTS)


def files_digest(files: list[Path]) -> str:
    """Hash the content of files in the order given; returns 16 hex digits.

    Raises:
        ConfigError: one cannot be read.
    """
    import xxhash

    digest = xxhash.xxh3_64()
    for path in files:
        try:
            with path.open("rb") as file:
                while data := file.read(_READ_BYTES):
                    digest.update(data)
        except OSError as exc:
            raise _unreadable(path, exc) from exc
        digest.update(b"\0")
    return digest.hexdigest()


def _graph(root: Path, section: str) -> Path:
    for name in _GRAPHS:
        if (root / name).is_file():
            return root / name
    found = sorted([*root.glob("*.onnx"), *root.glob("onnx/*.onnx")])
    if len(found) == 1:
        return found[0]
    if not found:
        raise ConfigError(
            f"{root} has neither model.onnx nor onnx/model.onnx",
            hint=f"export the model to ONNX there (optimum-cli export onnx), "
            f"or ragx config set {section}.provider sentence-transformers",
        )
    names = ", ".join(path.relative_to(root).as_posix() for path in found)
    raise ConfigError(
        f"{root} has several ONNX files and no model.onnx: {names}",
        hint=f"name one: ragx config set {section}.model {shlex.quote(str(found[0]))}",
    )


def _modules(path: Path) -> tuple[str, tuple[str, ...]]:
    """The folder of the pooling module, and the kinds of modules that follow it."""
    folder, further = "1_Pooling", []
    entries = _json(path)
    for entry in entries if isinstance(entries, list) else []:
        entry = _object(entry)
        kind = str(entry.get("type", "")).rpartition(".")[2]
        if kind == "Pooling":
            folder = str(entry.get("path") or folder)
        elif kind not in ("Transformer", "Normalize"):
            further.append(kind)
    return folder, tuple(further)


def _pooling(path: Path) -> tuple[str, ...]:
    config = _read(path)
    if config.get("include_prompt") is False:
        raise ConfigError(
            f"{path}: a model that leaves its prompt out of the mean is not supported",
            hint="ragx config set embeddings.provider sentence-transformers",
        )
    chosen = [name for key, name in POOLINGS.items() if config.get(f"pooling_mode_{key}") is True]
    named = config.get("pooling_mode")
    if not chosen and named is not None:
        chosen = [str(name) for name in (named if isinstance(named, list) else [named])]
    unknown = sorted(set(chosen) - set(POOLINGS.values()))
    if unknown:
        raise ConfigError(
            f"{path}: pooling {unknown[0]!r} is not supported",
            hint=f"use a model with one of {', '.join(POOLINGS.values())}",
        )
    return tuple(chosen) or ("mean",)


def _max_tokens(root: Path, tokenizer: Path) -> int | None:
    """The smallest limit that the files name; the tokenizer's own only where it is the only one,
    as it is often set to what one benchmark wanted."""
    config = _read(root / "config.json")
    positions = config.get("max_position_embeddings")
    if isinstance(positions, int) and config.get("model_type") in _OFFSET_POSITIONS:
        positions -= 2
    named = (
        _read(root / "sentence_bert_config.json").get("max_seq_length"),
        _read(root / "tokenizer_config.json").get("model_max_length"),
        positions,
    )
    limits = [limit for limit in named if isinstance(limit, int) and 0 < limit < _NO_LIMIT]
    if limits:
        return min(limits)
    truncation = _object(_read(tokenizer).get("truncation")).get("max_length")
    return truncation if isinstance(truncation, int) else None


def _read(path: Path) -> dict[str, Any]:
    """A file's object; {} without the file."""
    return _object(_json(path))


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _json(path: Path) -> object:
    try:
        return json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as exc:
        raise _unreadable(path, exc) from exc
    except ValueError as exc:
        raise ConfigError(f"{path} is not JSON: {exc}", hint="get the model's files again") from exc


def _unreadable(path: Path, exc: OSError) -> ConfigError:
    return ConfigError(
        f"{path} cannot be read: {exc.strerror}",
        hint=f"make it readable: chmod u+r {shlex.quote(str(path))}",
    )

"""Corpora of odd shapes: all alike, nearly empty, without a single edge. No file becomes a hub."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ragx.algo.graph import kind_code
from ragx.providers.fakes import HashEmbedder
from ragx.store.sqlite import SqliteReader

MakeCorpus = Callable[..., Path]
Ask = Callable[..., dict[str, Any]]

N, K = 200, 8
HEADER = "# Copyright\n\n" + "All rights are granted to whoever asks for them in writing. " * 5
VOCABULARY = [f"w{i:03}ord" for i in range(400)]


def body(i: int) -> str:
    return " ".join(random.Random(i).choices(VOCABULARY, k=40)) + f" number{i}.\n"


CORPORA: Mapping[str, Mapping[str, str]] = {
    "header and body in one": {f"f{i:03}.md": f"{HEADER}\n\n{body(i)}" for i in range(N)},
    "header apart": {f"f{i:03}.md": f"{HEADER}\n\n# Part {i}\n\n{body(i)}" for i in range(N)},
    "header in code": {
        f"f{i:03}.py": f"# {HEADER}\nimport os\n\n\ndef main():\n    {body(i)}" for i in range(N)
    },
    "identical": {f"f{i:03}.md": f"{HEADER}\n\n{body(0)}" for i in range(N)},
    "one": {"a.md": f"# Title\n\n{body(0)}"},
    "none": {},
    "no edge": {"a.md": "zebra number0\n", "b.md": "quagga\n"},
    "one line": {"a.txt": "number0"},
    "empty files": {f"{i}.md": "" for i in range(5)},
}


@pytest.fixture(params=["none", "words", "whole chunks"])
def provider(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """No vectors, or such that texts with words in common are close."""

    def opened(options: Any, **_: Any) -> HashEmbedder | None:
        return None if options.provider == "none" else HashEmbedder(options)

    def fingerprint(options: Any) -> str:
        return "none" if options.provider == "none" else HashEmbedder(options).fingerprint

    monkeypatch.setattr("ragx.providers.registry.open_embedder", opened)
    monkeypatch.setattr("ragx.providers.registry.fingerprint", fingerprint)
    return str(request.param)


@pytest.fixture
def make(make_corpus: MakeCorpus, provider: str) -> Callable[[str], Path]:
    """A corpus by name, not yet indexed."""
    source = "chunk" if provider == "whole chunks" else "subchunk"
    settings = f'[graph]\nk = {K}\nedge_source = "{source}"\nsubchunk_size_tokens = 40\n'
    return lambda name: make_corpus(
        CORPORA[name], provider="none" if provider == "none" else "builtin", settings=settings
    )


def degrees(root: Path, kind: str) -> np.ndarray:
    """Edges of the kind at each chunk."""
    with closing(SqliteReader(root)) as reader:
        graph = reader.graph()
    sources = np.repeat(np.arange(len(graph)), np.diff(graph.indptr))
    return np.bincount(sources[graph.kinds == kind_code(kind)], minlength=len(graph))


@pytest.mark.parametrize("name", CORPORA)
def test_every_command_works(make: Callable[[str], Path], ask: Ask, name: str) -> None:
    root = make(name)
    said = ask("index", cwd=root)
    assert said["failed"] == []
    files = CORPORA[name]
    found = ask("query", "number0", cwd=root, status=None)
    expected = any("number0" in text for text in files.values())
    assert bool(found["results"]) >= expected
    for command in (["verify"], ["status"], ["index"], ["index", "--edges-only"], ["verify"]):
        ask(*command, cwd=root)  # ends with 0
    assert ask("query", "number0", cwd=root, status=None)["results"] == found["results"]
    # Half of it goes, and comes back.
    texts = {path: (root / path).read_bytes() for path in sorted(files)[::2]}
    for path in texts:
        (root / path).unlink()
    assert ask("index", cwd=root)["files_deleted"] == len(texts)
    assert ask("verify", cwd=root)["ok"]
    for path, text in texts.items():
        (root / path).write_bytes(text)
    assert ask("index", cwd=root)["ok"]
    assert ask("verify", cwd=root)["ok"]
    assert ask("query", "number0", cwd=root, status=None)["results"] == found["results"]


@pytest.mark.parametrize("name", [name for name, files in CORPORA.items() if len(files) == N])
def test_no_file_is_a_hub(
    make: Callable[[str], Path],
    ask: Ask,
    provider: str,
    name: str,
    request: pytest.FixtureRequest,
) -> None:
    root = make(name)
    ask("index", cwd=root)
    for kind in ("link", "mention", "import", "symbol"):
        assert degrees(root, kind).max() == 0, kind
    assert degrees(root, "similar").max() <= 2 * K
    if name == "identical":
        assert degrees(root, "similar").max() == 0


def test_no_edge_at_all(make: Callable[[str], Path], ask: Ask) -> None:
    root = make("no edge")
    ask("index", cwd=root)
    with closing(SqliteReader(root)) as reader:
        assert reader.counts().edges == reader.graph().n_edges == 0

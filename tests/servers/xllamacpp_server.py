"""usage: xllamacpp_server.py embed|rerank|chat MODEL PORT: llama.cpp inside a Python process."""

from __future__ import annotations

import sys
import threading

import xllamacpp

_CONTEXT = {"embed": 512, "rerank": 512, "chat": 4096}
_POOLING = {
    "embed": xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN,
    "rerank": xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_RANK,
}


def main(role: str, model: str, port: int) -> None:
    """Serve one model on this machine until the process is ended."""
    settings = xllamacpp.CommonParams()
    settings.model.path = model
    settings.hostnames = ["127.0.0.1"]
    settings.port = port
    settings.ui = False
    settings.cpuparams.n_threads = 2
    settings.n_parallel = 1
    settings.n_ctx = _CONTEXT[role]
    if role in _POOLING:
        settings.embedding = True
        settings.pooling_type = _POOLING[role]
        settings.n_batch = settings.n_ubatch = _CONTEXT[role]
    server = xllamacpp.Server(settings)
    threading.Event().wait()
    del server


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))

"""How onnxruntime is used, whatever the model."""

from __future__ import annotations

import os
from typing import Any

__all__ = ["runtime_faults", "session_options", "usable_cpus"]

_MAX_WORKERS = 8


def usable_cpus() -> int:
    """Count the processors this process may use, at most 8."""
    affinity = getattr(os, "sched_getaffinity", None)
    n_cpus = len(affinity(0)) if affinity else (os.cpu_count() or 1)
    return max(1, min(n_cpus, _MAX_WORKERS))


def session_options() -> Any:
    """Make options for a session that many threads share, each running on itself alone."""
    import onnxruntime

    onnxruntime.set_default_logger_severity(3)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    # Plans per input shape gain nothing and add up, as nearly every text has its own length.
    options.enable_mem_pattern = False
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return options


def runtime_faults() -> tuple[type[Exception], ...]:
    """List onnxruntime's own exception classes, which share no base but Exception."""
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    own = [c for c in vars(state).values() if isinstance(c, type) and issubclass(c, Exception)]
    return (*own, RuntimeError, ValueError)

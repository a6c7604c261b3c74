"""Settings that MXNet, oneDNN and OpenMP read once from the environment, so before MXNet is imported; and their reading back."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from steelyard_worker.protocol import Refusal

if TYPE_CHECKING:
    from steelyard_worker.protocol import Settings

MODES = ("hybridized", "imperative")
ENGINES = {"threaded": "ThreadedEnginePerDevice", "naive": "NaiveEngine"}


def export(settings: Settings) -> None:
    """Put the settings into the environment; MXNet must not have been imported yet."""
    if settings.mode not in MODES:
        raise Refusal("unsupported", f"MXNet has no mode {settings.mode!r}; modes: {', '.join(MODES)}.")
    if settings.threads:
        os.environ["OMP_NUM_THREADS"] = str(settings.threads)
    os.environ["MXNET_ENFORCE_DETERMINISM"] = str(int(settings.deterministic))
    os.environ["MXNET_ENGINE_TYPE"] = ENGINES[str(settings.knobs.get("engine", "threaded"))]
    os.environ["MXNET_MKLDNN_ENABLED"] = str(int(settings.knobs.get("onednn", True)))


def read_back() -> dict[str, Any]:
    """Ask the loaded library for its own view: its environment, and the OpenMP runtime that it is linked with."""
    from mxnet import base, util

    engines = {variable: name for name, variable in ENGINES.items()}
    return {
        "threads": int(base._LIB.omp_get_max_threads()),
        "deterministic": util.getenv("MXNET_ENFORCE_DETERMINISM") == "1",
        "engine": engines.get(util.getenv("MXNET_ENGINE_TYPE")),
        "onednn": util.getenv("MXNET_MKLDNN_ENABLED") == "1",
    }

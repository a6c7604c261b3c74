"""Settings that MXNet, oneDNN and OpenMP read from the environment when they are loaded, and their reading back."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

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


def read_back(settings: Settings) -> dict[str, Any]:
    """Ask the loaded library: its view of the environment, its OpenMP runtime, and what a probe array turns out to be."""
    import mxnet as mx

    engines = {variable: name for name, variable in ENGINES.items()}
    probe = mx.nd.zeros(1, mx.gpu() if settings.device == "cuda" else mx.cpu(), settings.precision)
    return {
        "mode": settings.mode,
        "device": {"cpu": "cpu", "gpu": "cuda"}[probe.context.device_type],
        "threads": int(mx.base._LIB.omp_get_max_threads()),  # noqa: SLF001 - nothing public tells
        "precision": np.dtype(probe.dtype).name,
        "deterministic": mx.util.getenv("MXNET_ENFORCE_DETERMINISM") == "1",
        "engine": engines.get(mx.util.getenv("MXNET_ENGINE_TYPE")),
    }


def libraries() -> dict[str, Any]:
    """Versions and builds that do the arithmetic."""
    import mxnet as mx

    features = mx.runtime.Features()
    return {
        "mxnet": mx.__version__,
        "numpy": np.__version__,
        "features": sorted(name for name, feature in features.items() if feature.enabled),
        "onednn": features.is_enabled("MKLDNN"),
        **_openblas(Path(mx.__file__).with_name("libopenblas.so.0")),
    }


def _openblas(library: Path) -> dict[str, Any]:
    """Describe the OpenBLAS that the Linux wheel brings; a build of one's own has no such file."""
    if not library.is_file():
        return {}
    blas = ctypes.CDLL(str(library))
    blas.openblas_get_config.restype = ctypes.c_char_p
    return {"blas": blas.openblas_get_config().decode().strip(), "blas_threads": int(blas.openblas_get_num_threads())}

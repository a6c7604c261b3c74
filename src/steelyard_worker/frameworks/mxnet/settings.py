"""Settings that MXNet, oneDNN and OpenMP read from the environment when they are loaded, and how they are read back."""

from __future__ import annotations

import ctypes
import os
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard_worker import accumulation, dropout
from steelyard_worker.protocol import Refusal

if TYPE_CHECKING:
    from steelyard_worker.case import Settings

MODES = ("hybridized", "imperative")
# What operators read each time, for how precisely they add and multiply.
PRECISION = ("MXNET_SAFE_ACCUMULATION", "MXNET_CUDA_ALLOW_TENSOR_CORE", "MXNET_CUDA_TENSOR_OP_MATH_ALLOW_CONVERSION")
OFF = b"MXNET_MKLDNN_ENABLED flag is off"


def export(settings: Settings) -> None:
    """Put the settings into the environment; MXNet must not have been imported yet."""
    if settings.mode not in MODES:
        raise Refusal("unsupported", f"MXNet has no mode {settings.mode!r}; modes: {', '.join(MODES)}.")
    if settings.threads:
        os.environ["OMP_NUM_THREADS"] = str(settings.threads)
    os.environ["MXNET_MKLDNN_ENABLED"] = str(int(settings.knobs["onednn"]))
    os.environ["MXNET_ENFORCE_DETERMINISM"] = str(int(settings.deterministic))
    os.environ["MXNET_ENGINE_TYPE"] = "ThreadedEnginePerDevice"  # MXNet's default, which runs operators asynchronously


def read_back(settings: Settings) -> dict[str, Any]:
    """Return the settings as the loaded library has them.

    Mode, device and precision are those of a small block that is cast and hybridized as the network is. An LSTM is known by the
    operators of a small layer.
    """
    import mxnet as mx

    from steelyard_worker.frameworks.mxnet import recurrent
    from steelyard_worker.frameworks.mxnet.predictor import Probe, context_of, hybridized

    onednn = _onednn()  # before other operators
    probe = hybridized(Probe(settings.precision), settings)
    probe.initialize(mx.init.One(), context_of(settings))
    found = probe(mx.nd.ones_like(probe.weight.data()))
    return {
        "mode": "hybridized" if found.asscalar() else "imperative",
        "device": {"cpu": "cpu", "gpu": "cuda"}[found.context.device_type],
        "threads": int(mx.base._LIB.omp_get_max_threads()),  # noqa: SLF001 - there is no public function
        "precision": np.dtype(found.dtype).name,
        "deterministic": mx.util.getenv("MXNET_ENFORCE_DETERMINISM") == "1",
        "engine": _engine(),
        "onednn": onednn,
        "lstm": recurrent.implementation_of(settings.knobs["lstm"]),
        "embedding": _embedding(settings.knobs["embedding"]),
        "shapes": "dynamic" if ("static_shape", False) in probe._flags else "static",  # noqa: SLF001 - nothing public tells
        "dropout": _dropout(settings.knobs["dropout"]),
        "recomputation": "none",  # MXNet has no other way
        # The executors of a pipeline are made for this number.
        "micro_batches": settings.knobs["micro_batches"],
        **accumulation.applied(settings),
    }


def arithmetic() -> dict[str, Any]:
    """Return what decides the precision of products, and the threads, as MXNet has it now.

    Its mixed precision replaces functions of MXNet for the whole process.
    """
    import mxnet as mx

    mixed = sys.modules.get("mxnet.contrib.amp.amp")
    return {
        "mixed_precision": bool(getattr(mixed, "_amp_initialized", False)),
        **{name.removeprefix("MXNET_").lower(): mx.util.getenv(name) for name in PRECISION},
        # oneDNN reads these when it is first used, so what the library sees counts, not Python's copy.
        "onednn_fpmath": [mx.util.getenv(f"{name}_DEFAULT_FPMATH_MODE") for name in ("ONEDNN", "DNNL")],
        "numpy_arrays": mx.util.is_np_array(),
        "deterministic": mx.util.getenv("MXNET_ENFORCE_DETERMINISM"),
        "threads": int(mx.base._LIB.omp_get_max_threads()),  # noqa: SLF001 - there is no public function
    }


@cache
def _onednn() -> bool:
    """Return whether MXNet may use oneDNN. That it may not, it reports once, at the first operator that oneDNN could compute."""
    import mxnet as mx

    with TemporaryFile() as said:
        standard_error = os.dup(2)
        os.dup2(said.fileno(), 2)
        try:
            mx.nd.log_softmax(mx.nd.zeros((1, 2))).wait_to_read()
        finally:
            os.dup2(standard_error, 2)
            os.close(standard_error)
        said.seek(0)
        return OFF not in said.read()


def _embedding(requested: str) -> str:
    """Look at the gradient of a small table; what an optimizer makes of a sparse one is decided when it is built."""
    import mxnet as mx

    from steelyard_worker.frameworks.mxnet import layers

    table = mx.gluon.nn.Embedding(1, 1)
    layers.choose_gradients(table, requested)
    table.initialize()
    with mx.autograd.record():
        score = table(mx.nd.zeros(1)).sum()
    score.backward()
    if table.weight.grad().stype == "default":
        return "dense"
    return "lazy" if requested == "lazy" else "sparse"


def _dropout(requested: str) -> str:
    """Count the zeros that a layer of a network in training makes of ones."""
    import mxnet as mx

    from steelyard_worker.frameworks.mxnet import layers

    with dropout.built_as(requested):
        layer = layers.dropout(0.5)
    with mx.autograd.train_mode():
        found = layer(mx.nd.ones(64)).asnumpy()
    return dropout.ON if (found == 0).any() else dropout.OFF


def _engine() -> str:
    """Return the running engine: the naive one never bundles operations, so it does not store the size of a bundle."""
    import mxnet as mx

    before = mx.engine.set_bulk_size(2)
    return "threaded" if mx.engine.set_bulk_size(before) == 2 else "naive"


def libraries() -> dict[str, Any]:
    """Return the versions and builds that do the arithmetic."""
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
    """Describe the OpenBLAS inside the Linux wheel; other builds of MXNet have no such file."""
    if not library.is_file():
        return {}
    blas = ctypes.CDLL(str(library))
    blas.openblas_get_config.restype = ctypes.c_char_p
    return {"blas": blas.openblas_get_config().decode().strip(), "blas_threads": int(blas.openblas_get_num_threads())}

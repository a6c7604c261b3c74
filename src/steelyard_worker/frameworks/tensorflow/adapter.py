"""Drive TensorFlow: settings, what came of them, input pipeline.

TensorFlow is imported by the constructor, because it reads its environment variables on import.
"""

from __future__ import annotations

import os
from importlib import metadata
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import numpy as np

from steelyard_worker.protocol import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from types import ModuleType

    from steelyard_worker.batches import Source
    from steelyard_worker.frameworks.base import Array
    from steelyard_worker.frameworks.tensorflow.trainer import Trainer
    from steelyard_worker.network import Network
    from steelyard_worker.protocol import Optimizer, Settings

MODES = ("graph", "eager", "xla")


class Adapter:
    """One process of TensorFlow."""

    def __init__(self, settings: Settings) -> None:
        if settings.mode not in MODES:
            raise Refusal("unsupported", f"TensorFlow has no mode {settings.mode!r}; modes: {', '.join(MODES)}.")
        os.environ["KERAS_BACKEND"] = "tensorflow"
        os.environ["TF_ENABLE_ONEDNN_OPTS"] = "1" if settings.knobs.get("onednn", True) else "0"
        import tensorflow as tf

        # Weakly: a function holds the trainer whose variables it uses.
        self._settings, self._functions, self._tf = settings, WeakSet[Any](), tf
        self._convolution = str(settings.knobs.get("convolution", "auto"))
        self._recurrence = str(settings.knobs.get("recurrence", "auto"))
        self._update = str(settings.knobs.get("update", "fused"))
        self._choose_devices()
        if settings.threads:
            tf.config.threading.set_intra_op_parallelism_threads(settings.threads)
            tf.config.threading.set_inter_op_parallelism_threads(settings.threads)
        if settings.deterministic:
            tf.config.experimental.enable_op_determinism()
        tf.config.experimental.enable_tensor_float_32_execution(bool(settings.knobs.get("tf32", False)))

    def _choose_devices(self) -> None:
        config = self._tf.config
        if self._settings.device == "cpu":
            config.set_visible_devices([], "GPU")
        elif not config.list_physical_devices("GPU"):
            raise Refusal("unsupported", "TensorFlow sees no GPU here (tf.config.list_physical_devices is empty).")

    def applied(self) -> dict[str, Any]:
        """Read the settings back; the mode is what a function compiled as the training step is turns out to be."""
        from tensorflow.python.framework.config import is_op_determinism_enabled
        from tensorflow.python.util._pywrap_util_port import IsMklEnabled

        config, dtype = self._tf.config, self._settings.precision
        probe = self._tf.zeros((), dtype)
        return {
            "mode": self._observed_mode(probe),
            "device": "cuda" if "GPU" in probe.device else "cpu",
            "threads": config.threading.get_intra_op_parallelism_threads(),
            "interop_threads": config.threading.get_inter_op_parallelism_threads(),
            "precision": probe.dtype.name,
            "deterministic": is_op_determinism_enabled(),
            "tf32": config.experimental.tensor_float_32_execution_enabled(),
            "onednn": IsMklEnabled(),
            "convolution": self._convolution,
            "recurrence": self._recurrence,
            "update": self._update,
        }

    def _observed_mode(self, probe: Any) -> str:
        function = self._compile(lambda x: x + float(self._tf.executing_eagerly()))
        if float(function(probe)):
            return "eager"
        try:
            # Only a function that is compiled as a whole has compiler text to show.
            function.experimental_get_compiler_ir(probe)()
        except ValueError:
            return "graph"
        return "xla"

    def libraries(self) -> dict[str, Any]:
        """Versions, and how TensorFlow was built."""
        return {
            "tensorflow": self._tf.__version__,
            "keras": metadata.version("keras"),  # importing it would cost every start two seconds
            "numpy": np.__version__,
            "git": self._tf.version.GIT_VERSION,
            "compiler": self._tf.version.COMPILER_VERSION,
            "build": dict(self._tf.sysconfig.get_build_info()),
        }

    def _compile(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function as the mode runs it."""
        if self._settings.mode == "eager":
            return function
        return self._tf.function(function, jit_compile=self._settings.mode == "xla", autograph=False)

    def _wrap(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Compile, and remember what TensorFlow compiles for `compilations`."""
        wrapped = self._compile(function)
        if wrapped is not function:
            self._functions.add(wrapped)
        return wrapped

    def trainer(
        self, implementation: ModuleType, sizes: dict[str, Any], network: Network, weights: Mapping[str, Array],
        optimizer: Optimizer,
    ) -> Trainer:  # fmt: skip
        """Build the network and load the canonical weights into it."""
        from steelyard_worker.frameworks.tensorflow.layers import Variables
        from steelyard_worker.frameworks.tensorflow.recurrence import Recurrence
        from steelyard_worker.frameworks.tensorflow.trainer import Trainer

        mode = self._settings.mode
        recurrence = Recurrence(self._recurrence, small="loop" if mode == "graph" else "hoisted")
        automatic = "xla" if mode == "xla" else "library"
        convolution = automatic if self._convolution == "auto" else self._convolution
        dtype = self._tf.as_dtype(self._settings.precision)
        variables = Variables(dtype, convolution, fuse=mode != "xla", recurrence=recurrence)
        return Trainer(self._wrap, variables, implementation, sizes, network, weights, optimizer, self._update)

    def pipeline(self, trainer: Trainer, source: Source, workers: int) -> Iterator[Any]:
        """`tf.data`: steps in order, `workers` batches decoded at a time (0: one), prefetched by TensorFlow's own choice."""
        from steelyard_worker.frameworks.tensorflow import feed

        return iter(feed.dataset(trainer, source, workers))

    def compilations(self) -> int:
        """Traces of the functions made here; XLA compiles once for each, as every shape is fixed."""
        return sum(function.experimental_get_tracing_count() for function in self._functions)

    def peak_bytes(self) -> int | None:
        """Peak of the GPU allocator; TensorFlow keeps no count for the CPU."""
        if self._settings.device == "cpu":
            return None
        return int(self._tf.config.experimental.get_memory_info("GPU:0")["peak"])

"""TensorFlow: settings of the process and input pipeline; `trainer` has the training step.

The constructor imports TensorFlow, because TensorFlow reads its environment variables on import.
"""

from __future__ import annotations

import os
from functools import partial
from importlib import metadata
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import numpy as np

from steelyard_worker import accumulation, dropout
from steelyard_worker.protocol import Refusal
from steelyard_worker.ranks import Ranks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path
    from types import ModuleType

    from steelyard_worker.batches import Source
    from steelyard_worker.case import Optimizer, Settings
    from steelyard_worker.communication import AllReduce
    from steelyard_worker.exchange import Signature
    from steelyard_worker.frameworks.base import Array, CountingTrainer
    from steelyard_worker.frameworks.tensorflow.layers import Variables
    from steelyard_worker.frameworks.tensorflow.predictor import Predictor
    from steelyard_worker.frameworks.tensorflow.trainer import Learner
    from steelyard_worker.graphs import Stage
    from steelyard_worker.network import Network

MODES = ("graph", "eager", "xla", "fit")


class Adapter:
    """One process of TensorFlow."""

    def __init__(self, settings: Settings, ranks: Ranks = Ranks()) -> None:  # noqa: B008 - it is not changed
        if settings.mode not in MODES:
            raise Refusal("unsupported", f"TensorFlow has no mode {settings.mode!r}; modes: {', '.join(MODES)}.")
        os.environ["KERAS_BACKEND"] = "tensorflow"
        if settings.knobs["lstm"] == "fused" and settings.device == "cpu":
            raise Refusal("unsupported", "Keras's fused LSTM is cuDNN's, which computes on NVIDIA GPUs only.")
        os.environ["TF_ENABLE_ONEDNN_OPTS"] = "1" if settings.knobs["onednn"] else "0"
        os.environ["TF_CUDNN_USE_AUTOTUNE"] = "1" if settings.knobs["cudnn_search"] else "0"
        import tensorflow as tf

        # Weak references, because a function keeps alive the trainer whose variables it uses.
        self._settings, self._functions, self._tf = settings, WeakSet[Any](), tf
        self._choose_devices()
        if settings.threads:
            tf.config.threading.set_intra_op_parallelism_threads(settings.threads)
            tf.config.threading.set_inter_op_parallelism_threads(settings.threads)
        if settings.deterministic:
            tf.config.experimental.enable_op_determinism()
        if settings.knobs["dropout"] == dropout.ON:
            tf.random.set_seed(dropout.SEED)
        tf.config.experimental.enable_tensor_float_32_execution(settings.knobs["tf32"])
        if settings.knobs["passes"] != "all":
            from steelyard_worker.frameworks.tensorflow import passes

            passes.choose(settings.knobs["passes"])
        self._strategy: Any = None
        if ranks.spread:
            from steelyard_worker.frameworks.tensorflow import strategies

            self._strategy = strategies.of(ranks, settings)
        if settings.mode == "fit":
            import keras  # noqa: F401 - it takes two seconds, which users of `fit` wait for, too

    def _choose_devices(self) -> None:
        config = self._tf.config
        if self._settings.device == "cpu":
            config.set_visible_devices([], "GPU")
        elif not config.list_physical_devices("GPU"):
            raise Refusal(
                "unsupported",
                "TensorFlow finds no GPU here (tf.config.list_physical_devices('GPU') is empty).",
            )

    def applied(self) -> dict[str, Any]:
        """Read the settings back.

        The mode is that of a function that is wrapped as the training step is, the knobs are found by tracing small layers,
        device and precision are those of a variable.
        """
        from tensorflow.python.framework.config import is_op_determinism_enabled
        from tensorflow.python.util._pywrap_util_port import IsMklEnabled

        from steelyard_worker.frameworks.tensorflow import mistakes, passes, shapes, traced

        config, knobs, probe = self._tf.config, self._settings.knobs, self._variables().new("probe")
        return {
            "mode": self._observed_mode(probe),
            "device": "cuda" if "GPU" in probe.device else "cpu",
            "threads": config.threading.get_intra_op_parallelism_threads(),
            "interop_threads": config.threading.get_inter_op_parallelism_threads(),
            "precision": probe.dtype.name,
            "deterministic": is_op_determinism_enabled(),
            "tf32": config.experimental.tensor_float_32_execution_enabled(),
            "onednn": IsMklEnabled(),
            # TensorFlow has no function that returns it.
            "cudnn_search": os.environ["TF_CUDNN_USE_AUTOTUNE"] == "1",
            "convolution": traced.convolution(self._variables, knobs["convolution"]),
            "embedding": traced.embedding(self._variables, knobs["embedding"]),
            "dropout": traced.dropout(self._variables()),
            # The graph of a pipeline is traced with this number.
            "micro_batches": knobs["micro_batches"],
            **accumulation.applied(self._settings),
            "recomputation": traced.recomputation(self._variables()),
            "passes": passes.observed(is_spread=self._strategy is not None),
            "lstm": traced.lstm(self._variables()),
            "shapes": shapes.observed(self._compile),
            "recurrence": traced.recurrence(self._variables, knobs["recurrence"]),
            "loss": mistakes.observed(knobs["loss"]),
            "update": traced.update(self._variables, knobs["update"], self._kernel),
            **({"strategy": self._strategy.observed()} if self._strategy else {}),
        }

    def _observed_mode(self, variable: Any) -> str:
        """Ask within a function whether it runs eagerly; then ask the function for text that only XLA produces.

        Where `fit` trains, ask a small model that it trains.
        """
        if self._settings.mode == "fit":
            from steelyard_worker.frameworks.tensorflow import fitting

            return fitting.observed_mode(variable.dtype)
        probe = self._tf.zeros_like(variable)
        function = self._compile(lambda x: x + float(self._tf.executing_eagerly()))
        if float(function(probe)):
            return "eager"
        try:
            function.experimental_get_compiler_ir(probe)()
        except ValueError:
            return "graph"
        return "xla"

    def arithmetic(self) -> dict[str, Any]:
        """Return precision, modes and threads as TensorFlow has them now."""
        from steelyard_worker.frameworks.tensorflow import arithmetic

        return arithmetic.now()

    def libraries(self) -> dict[str, Any]:
        """Return versions, and how TensorFlow was built."""
        return {
            "tensorflow": self._tf.__version__,
            "keras": metadata.version("keras"),  # not imported for this: that takes two seconds
            "numpy": np.__version__,
            "git": self._tf.version.GIT_VERSION,
            "compiler": self._tf.version.COMPILER_VERSION,
            "build": dict(self._tf.sysconfig.get_build_info()),
        }

    def _compile(self, function: Callable[..., Any], xla: bool = True) -> Callable[..., Any]:
        """Return the function as the mode runs it; without `xla`, XLA may compile what it calls, but not itself."""
        if self._settings.mode == "eager":
            return function
        relaxed = self._settings.knobs["shapes"] == "dynamic"
        return self._tf.function(
            function, jit_compile=xla and self._settings.mode == "xla", autograph=False, reduce_retracing=relaxed
        )

    def _wrap(self, function: Callable[..., Any], xla: bool = True) -> Callable[..., Any]:
        """Return the function as the mode runs it, and include its traces in `compilations`."""
        wrapped = self._compile(function, xla)
        if wrapped is not function:
            self._functions.add(wrapped)
        return wrapped

    def trainer(
        self,
        implementation: ModuleType,
        sizes: dict[str, Any],
        network: Network,
        weights: Mapping[str, Array],
        optimizer: Optimizer,
        rates: Array | None = None,
    ) -> Learner:
        """Build the network and load the canonical weights into it."""
        built = self._wrap, self._variables(), implementation, sizes, network, weights, optimizer
        if self._settings.mode == "fit":
            from steelyard_worker.frameworks.tensorflow.fitting import FitTrainer

            fitted = FitTrainer(*built, rates)
            self._functions.add(fitted.model)
            return fitted
        from steelyard_worker.frameworks.tensorflow.trainer import Trainer

        knobs = self._settings.knobs
        if hasattr(self._strategy, "trainer"):
            outer, compiled = partial(self._wrap, xla=False), self._settings.mode == "xla"
            found: Learner = self._strategy.trainer(outer, compiled, *built, self._kernel, rates, knobs["loss"])
            return found
        parts = accumulation.parts_of(self._settings)
        return Trainer(*built, self._kernel, rates, knobs["embedding"], knobs["loss"], parts)

    @property
    def _kernel(self) -> str:
        """What updates the variables: "fused" or "keras"."""
        requested: str = self._settings.knobs["update"]
        automatic = "keras" if self._settings.mode == "fit" else "fused"
        return automatic if requested == "auto" else requested

    def predictor(
        self, implementation: ModuleType, sizes: dict[str, Any], network: Network, weights: Mapping[str, Array]
    ) -> Predictor:
        """Build the network and load the canonical weights into it."""
        from steelyard_worker.frameworks.tensorflow.predictor import Predictor

        return Predictor(self._wrap, self._variables(), implementation, sizes, network, weights)

    def export(self, predictor: Predictor, batch: dict[str, Any], path: Path) -> Signature:
        """Write the network of a predictor, at the shapes of a batch, as an ONNX file."""
        from steelyard_worker.frameworks.tensorflow import export

        return export.export(predictor, batch, path)

    def _variables(self) -> Variables:
        """Return an empty collection of variables, which also holds how layers are computed."""
        from steelyard_worker.frameworks.tensorflow.layers import Variables
        from steelyard_worker.frameworks.tensorflow.recurrence import Recurrence

        mode, knobs = self._settings.mode, self._settings.knobs
        recurrence = Recurrence(knobs["recurrence"], small="loop" if mode == "graph" else "hoisted")
        automatic = "xla" if mode == "xla" else "library"
        convolution = automatic if knobs["convolution"] == "auto" else knobs["convolution"]
        dtype = self._tf.as_dtype(self._settings.precision)
        return Variables(
            dtype,
            convolution,
            fuse=mode != "xla",
            recurrence=recurrence,
            lstm=knobs["lstm"],
            dropout=knobs["dropout"] == dropout.ON,
            recomputation=knobs["recomputation"] == "blocks",
        )

    def checkpoint(
        self, implementation: ModuleType, sizes: dict[str, Any], network: Network, path: Path
    ) -> dict[str, Array]:
        """Return the tensors of a checkpoint, canonical."""
        from steelyard_worker.frameworks.tensorflow import checkpoint

        return checkpoint.read(self._variables(), implementation, sizes, network, path)

    def pipeline(self, trainer: Predictor, source: Source, workers: int) -> Iterable[Any]:
        """Yield batches from `tf.data`, which decodes `workers` batches at a time (0: one) and chooses how many to prefetch."""
        from steelyard_worker.frameworks.tensorflow import feed

        if hasattr(self._strategy, "pipeline"):
            found: Iterable[Any] = self._strategy.pipeline(trainer, source, workers)
            return found
        dataset = feed.dataset(trainer, source, workers)
        if self._settings.mode == "fit":
            from steelyard_worker.frameworks.tensorflow import fitting

            return fitting.Feed(dataset, source.steps_per_epoch)
        return iter(dataset)

    def profiler(self, folder: Path, timed: Any, batch: Any) -> Any:
        """Return TensorFlow's profiler."""
        from steelyard_worker.frameworks.tensorflow.profiling import Profiler

        del timed, batch
        return Profiler(folder)

    def graphs(self, timed: Any, batch: Any) -> Iterator[Stage]:
        """Return the stages of the training step's graph."""
        if self._settings.mode != "graph":
            reasons = {
                "eager": "Eager TensorFlow makes no graph.",
                "xla": "XLA rewrites the traced graph with passes of its own, which TensorFlow does not count.",
                "fit": "Keras makes its graph inside fit; it is counted in mode graph.",
            }
            raise Refusal("unsupported", reasons[self._settings.mode])
        from steelyard_worker.frameworks.tensorflow import graphs

        return graphs.stages(timed.whole_step, self._wrap, batch, self._settings.knobs["passes"])

    def counting_trainer(
        self,
        implementation: ModuleType,
        sizes: dict[str, Any],
        network: Network,
        weights: Mapping[str, Array],
        optimizer: Optimizer,
        rates: Array | None = None,
    ) -> CountingTrainer:
        """Return a trainer of the parameter server that counts updates."""
        if not hasattr(self._strategy, "counting_trainer"):
            raise Refusal("unsupported", "This strategy of TensorFlow has no asynchronous updates.")
        built = self._wrap, self._variables(), implementation, sizes, network, weights, optimizer
        found: CountingTrainer = self._strategy.counting_trainer(
            *built, self._kernel, rates, self._settings.knobs["loss"]
        )
        return found

    def all_reduce(self, array: Array) -> AllReduce:
        """Return the all-reduce of the strategy."""
        if not hasattr(self._strategy, "all_reduce"):
            raise Refusal("unsupported", "This strategy of TensorFlow exchanges no gradients between its processes.")
        found: AllReduce = self._strategy.all_reduce(array)
        return found

    def compilations(self) -> int:
        """Count the traces of the wrapped functions; XLA compiles once per trace, because every trace has one shape."""
        return sum(function.experimental_get_tracing_count() for function in self._functions)

    def peak_bytes(self) -> int | None:
        """Return the peak of the GPU allocator, bytes; TensorFlow has none for the CPU."""
        if self._settings.device == "cpu":
            return None
        return int(self._tf.config.experimental.get_memory_info("GPU:0")["peak"])

    def reset_peak_bytes(self) -> bool:
        """Begin the peak of the GPU allocator again."""
        self._tf.config.experimental.reset_memory_stats("GPU:0")
        return True

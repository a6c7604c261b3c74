"""Drive TensorFlow: settings, what came of them, input pipeline.

TensorFlow is imported by the constructor, because it reads its environment variables on import.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

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

        self._settings, self._functions, self._tf = settings, list[Any](), tf
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

"""ONNX Runtime: runs networks that other frameworks have exported; `settings` has the settings of a session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import onnxruntime

from steelyard_worker.frameworks.onnxruntime import settings as process
from steelyard_worker.frameworks.onnxruntime.predictor import Predictor
from steelyard_worker.protocol import Refusal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from steelyard_worker.batches import Source
    from steelyard_worker.case import Settings
    from steelyard_worker.exchange import Networks
    from steelyard_worker.frameworks.base import Array
    from steelyard_worker.network import Network


class Adapter:
    """One process of ONNX Runtime."""

    def __init__(self, settings: Settings) -> None:
        process.check(settings)
        self._settings = settings

    def applied(self) -> dict[str, Any]:
        """Read the settings back from a small session."""
        return process.read_back(self._settings)

    def libraries(self) -> dict[str, Any]:
        """Return the versions and builds that do the arithmetic."""
        return {
            "onnxruntime": onnxruntime.__version__,
            "onnx": onnx.__version__,
            "numpy": np.__version__,
            "build": onnxruntime.get_build_info(),
        }

    def trainer(self, *_: Any) -> Any:
        """Refuse: a network that was exported for inference has no loss and no gradients."""
        raise Refusal("unsupported", "ONNX Runtime runs exported networks and does not train them.")

    def predictor(
        self, implementation: Networks, sizes: dict[str, Any], network: Network, weights: Mapping[str, Array]
    ) -> Predictor:
        """Load the file that holds these weights."""
        del sizes, network
        return Predictor(self._settings, implementation, weights)

    def pipeline(self, trainer: Predictor, source: Source, workers: int) -> Iterator[Any]:
        """Yield batches one after the other: ONNX Runtime has no input pipeline."""
        if workers:
            raise Refusal("unsupported", "ONNX Runtime has no loader processes; use --loader-workers 0.")
        step = 0
        while True:
            yield trainer.put(source.batch(step))
            step += 1

    def compilations(self) -> int:
        """Return 0: a network is optimised when it is loaded."""
        return 0

    def peak_bytes(self) -> int | None:
        """Return None: there is no device memory."""
        return None

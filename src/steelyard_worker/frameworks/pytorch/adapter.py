"""PyTorch: input pipeline and facts; `settings` has the settings of the process, `trainer` the training step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.utils.data import DataLoader

from steelyard_worker.batches import Steps
from steelyard_worker.frameworks.pytorch import arithmetic
from steelyard_worker.frameworks.pytorch import settings as process
from steelyard_worker.frameworks.pytorch.predictor import Predictor
from steelyard_worker.frameworks.pytorch.trainer import Trainer
from steelyard_worker.protocol import Refusal
from steelyard_worker.ranks import Ranks

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path
    from types import ModuleType

    from steelyard_worker.batches import Source
    from steelyard_worker.case import Optimizer, Settings
    from steelyard_worker.communication import AllReduce
    from steelyard_worker.exchange import Signature
    from steelyard_worker.frameworks.base import Array
    from steelyard_worker.graphs import Stage
    from steelyard_worker.network import Network

SINGLE = Ranks()


class Adapter:
    """One process of PyTorch."""

    def __init__(self, settings: Settings, ranks: Ranks = SINGLE) -> None:
        process.apply(settings)
        self._settings, self._ranks, self._trainer = settings, ranks, Trainer
        if ranks.spread:
            from steelyard_worker.frameworks.pytorch import strategies  # takes long to import

            self._trainer = strategies.joined(settings, ranks)

    def applied(self) -> dict[str, Any]:
        """Read the settings back from PyTorch."""
        found = process.read_back(self._settings)
        if self._ranks.spread:
            from steelyard_worker.frameworks.pytorch import strategies

            found |= strategies.read_back(self._ranks)
        return found

    def arithmetic(self) -> dict[str, Any]:
        """Return precision and threads as PyTorch has them now."""
        return arithmetic.now(self._settings.device)

    def libraries(self) -> dict[str, Any]:
        """Return the versions and builds that do the arithmetic."""
        return {
            "torch": torch.__version__,
            "numpy": np.__version__,
            "cuda": torch.version.cuda,
            "onednn": torch.backends.mkldnn.is_available(),
            "cpu_capability": torch.backends.cpu.get_cpu_capability(),
            "build": " ".join(torch.__config__.show().split()),
        }

    def trainer(
        self,
        implementation: ModuleType,
        sizes: dict[str, Any],
        network: Network,
        weights: Mapping[str, Array],
        optimizer: Optimizer,
        rates: Array | None = None,
    ) -> Trainer:
        """Build the module and load the canonical weights into it."""
        return self._trainer(self._settings, implementation, sizes, network, weights, optimizer, rates)

    def predictor(
        self, implementation: ModuleType, sizes: dict[str, Any], network: Network, weights: Mapping[str, Array]
    ) -> Predictor:
        """Build the module in evaluation mode and load the canonical weights into it."""
        return Predictor(self._settings, implementation, sizes, network, weights)

    def export(self, predictor: Predictor, batch: dict[str, torch.Tensor], path: Path) -> Signature:
        """Write the network of a predictor, at the shapes of a batch, as an ONNX file."""
        return predictor.export(batch, path)

    def checkpoint(
        self, implementation: ModuleType, sizes: dict[str, Any], network: Network, path: Path
    ) -> dict[str, Array]:
        """Return the tensors of a state dict, canonical."""
        from steelyard_worker.frameworks.pytorch import checkpoint

        return checkpoint.read(implementation, sizes, network, path)

    def pipeline(self, trainer: Predictor, source: Source, workers: int) -> Iterator[Any]:
        """Yield batches from `torch.utils.data.DataLoader`; its worker processes decode them when there are any.

        Those of worker processes are put into pinned memory by a thread of the loader, from which a GPU copies them while it
        computes. Without worker processes the main thread would do that with all of PyTorch's threads: on an H200 with 16 of
        them, steps of 8 ms took 3 ms longer.
        """
        options: dict[str, Any] = {"prefetch_factor": 2, "persistent_workers": True} if workers else {}
        options["pin_memory"] = bool(workers) and self._settings.device == "cuda"
        while True:
            for batch in DataLoader(Steps(source), batch_size=None, num_workers=workers, **options):
                yield trainer.place(batch)

    def profiler(self, folder: Path, timed: Any, batch: Any) -> Any:
        """Return PyTorch's profiler."""
        from steelyard_worker.frameworks.pytorch.profiling import Profiler

        del timed, batch
        return Profiler(folder, self._settings.device)

    def graphs(self, timed: Any, batch: Any) -> Iterator[Stage]:
        """Return the stages of the graphs of a step."""
        if self._settings.mode != "compiled":
            raise Refusal("unsupported", "Eager PyTorch makes no graph.")
        from steelyard_worker.frameworks.pytorch import graphs

        return graphs.stages(timed, batch)

    def all_reduce(self, array: Array) -> AllReduce:
        """Return the all-reduce of the strategy."""
        from steelyard_worker.frameworks.pytorch import strategies

        return strategies.all_reduce(self._ranks, self._settings, array)

    def compilations(self) -> int:
        """Count the frames and graphs that TorchDynamo has compiled."""
        if self._settings.mode == "eager":
            return 0
        from torch._dynamo.utils import counters

        return int(counters["stats"]["unique_graphs"]) + int(counters["frames"]["ok"])

    def peak_bytes(self) -> int | None:
        """Return the peak of the CUDA caching allocator, bytes."""
        return torch.cuda.max_memory_allocated() if self._settings.device == "cuda" else None

    def reset_peak_bytes(self) -> bool:
        """Begin the peak of the CUDA caching allocator again."""
        torch.cuda.reset_peak_memory_stats()
        return True

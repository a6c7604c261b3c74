"""MindSpore: input pipeline and facts; `runtime` has the settings of the process, `trainer` the training step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mindspore
import mindspore.dataset
import numpy as np

from steelyard_worker import accumulation, dropout
from steelyard_worker.batches import Steps
from steelyard_worker.frameworks.mindspore import arithmetic, distributed, layers, onednn, recurrent, runtime
from steelyard_worker.frameworks.mindspore.predictor import Predictor
from steelyard_worker.frameworks.mindspore.trainer import Trainer
from steelyard_worker.protocol import Refusal
from steelyard_worker.ranks import Ranks

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path
    from types import ModuleType

    from mindspore import Tensor

    from steelyard_worker.batches import Source
    from steelyard_worker.case import Optimizer, Settings
    from steelyard_worker.communication import AllReduce
    from steelyard_worker.exchange import Signature
    from steelyard_worker.frameworks.base import Array
    from steelyard_worker.graphs import Stage
    from steelyard_worker.network import Network

    Tensors = tuple[Tensor, ...]

SINGLE = Ranks()


class Adapter:
    """One process of MindSpore."""

    def __init__(self, settings: Settings, ranks: Ranks = SINGLE) -> None:
        self._settings, self._ranks = settings, ranks
        self._instructions = onednn.Instructions(settings.knobs["avx512"])
        runtime.apply(settings)
        if distributed.shares_gradients(ranks):
            distributed.join(ranks)
        if settings.knobs["dropout"] == dropout.ON:
            mindspore.set_seed(dropout.SEED)

    def applied(self) -> dict[str, Any]:
        """Read the settings back from MindSpore and oneDNN."""
        lstm = recurrent.implementation_of(self._settings.knobs["lstm"])
        again = layers.observed_recomputation(self._settings.knobs["recomputation"])
        own = {
            "recomputation": again,
            "lstm": lstm,
            **accumulation.applied(self._settings),
            "embedding": "dense",
            "dropout": layers.observed_dropout(self._settings.knobs["dropout"]),
        }
        return runtime.applied() | self._instructions.applied() | own | distributed.applied(self._ranks)

    def arithmetic(self) -> dict[str, Any]:
        """Return precision and threads as MindSpore and oneDNN have them now."""
        return arithmetic.now()

    def libraries(self) -> dict[str, Any]:
        """Return the versions and builds that do the arithmetic."""
        return {"mindspore": mindspore.__version__, "numpy": np.__version__, "onednn": onednn.version()}

    def trainer(
        self,
        implementation: ModuleType,
        sizes: dict[str, Any],
        network: Network,
        weights: Mapping[str, Array],
        optimizer: Optimizer,
        rates: Array | None = None,
    ) -> Trainer:
        """Build the cell and load the canonical weights into it."""
        self._instructions.decide(network)
        kind = distributed.Trainer if distributed.shares_gradients(self._ranks) else Trainer
        return kind(self._settings, implementation, sizes, network, weights, optimizer, rates)

    def predictor(
        self, implementation: ModuleType, sizes: dict[str, Any], network: Network, weights: Mapping[str, Array]
    ) -> Predictor:
        """Build the cell in inference mode and load the canonical weights into it."""
        self._instructions.decide(network)
        return Predictor(self._settings, implementation, sizes, network, weights)

    def export(self, predictor: Predictor, batch: Tensors, path: Path) -> Signature:
        """Write the network of a predictor, at the shapes of a batch, as an ONNX file."""
        return predictor.export(batch, path)

    def checkpoint(
        self, implementation: ModuleType, sizes: dict[str, Any], network: Network, path: Path
    ) -> dict[str, Array]:
        """Return the tensors of a checkpoint, canonical."""
        from steelyard_worker.frameworks.mindspore import checkpoint

        return checkpoint.read(implementation, sizes, network, path)

    def pipeline(self, trainer: Predictor, source: Source, workers: int) -> Iterator[Tensors]:
        """Yield batches from `GeneratorDataset`; workers are processes, 0 means its one thread in this process."""
        # An input of both network and loss is in two columns, whose names must differ.
        names = [f"{number} {name}" for number, name in enumerate(trainer.columns)]
        data = mindspore.dataset.GeneratorDataset(
            _Columns(source, trainer.columns),
            names,
            shuffle=False,
            num_parallel_workers=max(1, workers),
            python_multiprocessing=workers > 0,
        )
        while True:
            yield from map(tuple, data.create_tuple_iterator(num_epochs=1))

    def profiler(self, folder: Path, timed: Any, batch: Any) -> Any:
        """Return MindSpore's profiler."""
        from steelyard_worker.frameworks.mindspore.profiling import Profiler

        del timed, batch
        return Profiler(folder)

    def graphs(self, timed: Any, batch: Any) -> Iterator[Stage]:
        """Return the stages of the graph of a step."""
        if self._settings.mode != "graph":
            raise Refusal("unsupported", "PyNative MindSpore makes no graph of a whole step.")
        from steelyard_worker.frameworks.mindspore import graphs

        return graphs.stages(timed, batch)

    def all_reduce(self, array: Array) -> AllReduce:
        """Return the all-reduce of the cluster."""
        from steelyard_worker.frameworks.mindspore.communication import ClusterReduce

        return ClusterReduce(array)

    def compilations(self) -> int:
        """Count the graphs compiled so far, including those inside the optimizers."""
        return runtime.compilations()

    def peak_bytes(self) -> int | None:
        """Return the peak of the device memory pool, bytes."""
        return int(mindspore.runtime.max_memory_allocated()) if self._settings.device == "ascend" else None


class _Columns(Steps):
    """The batches as tuples in the order of `columns`, as `GeneratorDataset` needs them."""

    def __init__(self, source: Source, columns: tuple[str, ...]) -> None:
        super().__init__(source)
        self._columns = columns

    def __getitem__(self, step: int) -> tuple[Array, ...]:
        batch = super().__getitem__(step)
        return tuple(batch[name] for name in self._columns)

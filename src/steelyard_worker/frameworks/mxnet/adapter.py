"""MXNet: settings of the process and input pipeline; `trainer`, imported once the environment is set, has the training step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from steelyard_worker import dropout
from steelyard_worker.frameworks.mxnet import settings as process
from steelyard_worker.frameworks.mxnet import strategies
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
    from steelyard_worker.frameworks.base import Array, CountingTrainer
    from steelyard_worker.frameworks.mxnet.predictor import Predictor
    from steelyard_worker.frameworks.mxnet.trainer import Trainer
    from steelyard_worker.graphs import Stage
    from steelyard_worker.network import Network


class Adapter:
    """One process of MXNet."""

    def __init__(self, settings: Settings, ranks: Ranks = Ranks()) -> None:  # noqa: B008 - never changed
        process.export(settings)
        self._spread = strategies.of(ranks)
        import mxnet as mx

        if settings.device == "cuda" and not mx.runtime.Features().is_enabled("CUDA"):
            raise Refusal("unsupported", "This build of MXNet has no CUDA (mxnet.runtime.Features).")
        if settings.knobs["dropout"] == dropout.ON:
            mx.random.seed(dropout.SEED)
        self._spread.join()
        self._settings = settings
        self._graphs = 0
        self._latest: Predictor | None = None

    def applied(self) -> dict[str, Any]:
        """Read the settings back from the loaded library."""
        return process.read_back(self._settings) | self._spread.applied(self._settings)

    def arithmetic(self) -> dict[str, Any]:
        """Return precision and threads as MXNet has them now."""
        return process.arithmetic()

    def libraries(self) -> dict[str, Any]:
        """Versions and builds that do the arithmetic."""
        return process.libraries()

    def trainer(
        self,
        implementation: ModuleType,
        sizes: dict[str, Any],
        network: Network,
        weights: Mapping[str, Array],
        optimizer: Optimizer,
        rates: Array | None = None,
    ) -> Trainer:
        """Build the block and load the canonical weights into it."""
        self._graphs = self.compilations()
        trainer = self._spread.trainer(self._settings, implementation, sizes, network, weights, optimizer, rates)
        self._latest = trainer
        return trainer

    def predictor(
        self, implementation: ModuleType, sizes: dict[str, Any], network: Network, weights: Mapping[str, Array]
    ) -> Predictor:
        """Build the block without gradients and load the canonical weights into it."""
        from steelyard_worker.frameworks.mxnet.predictor import Predictor

        self._graphs = self.compilations()
        self._latest = Predictor(self._settings, implementation, sizes, network, weights)
        return self._latest

    def export(self, predictor: Predictor, batch: tuple[Any, ...], path: Path) -> Signature:
        """Write the network of a predictor, at the shapes of a batch, as an ONNX file."""
        return predictor.export(batch, path)

    def checkpoint(
        self, implementation: ModuleType, sizes: dict[str, Any], network: Network, path: Path
    ) -> dict[str, Array]:
        """Return the tensors of saved parameters, canonical."""
        from steelyard_worker.frameworks.mxnet import checkpoint

        return checkpoint.read(implementation, sizes, network, path)

    def pipeline(self, trainer: Predictor, source: Source, workers: int) -> Iterator[Any]:
        """Yield batches from `mxnet.gluon.data.DataLoader`; its worker processes decode them when there are any."""
        from steelyard_worker.frameworks.mxnet import pipeline

        return pipeline.feed(trainer, source, workers)

    def profiler(self, folder: Path, timed: Any, batch: Any) -> Any:
        """Return MXNet's profiler."""
        from steelyard_worker.frameworks.mxnet.profiling import Profiler

        del timed, batch
        return Profiler(folder)

    def graphs(self, timed: Any, batch: Any) -> Iterator[Stage]:
        """Return the stages of the graph of a step, which is made when it first runs."""
        if self._settings.mode != "hybridized":
            raise Refusal("unsupported", "Imperative MXNet makes no graph.")
        from steelyard_worker.frameworks.mxnet import graphs

        timed.step(batch)
        return graphs.stages(timed.forward)

    def counting_trainer(
        self,
        implementation: ModuleType,
        sizes: dict[str, Any],
        network: Network,
        weights: Mapping[str, Array],
        optimizer: Optimizer,
        rates: Array | None = None,
    ) -> CountingTrainer:
        """Return a trainer of an asynchronous strategy that counts updates."""
        return self._spread.counting_trainer(self._settings, implementation, sizes, network, weights, optimizer, rates)

    def all_reduce(self, array: Array) -> AllReduce:
        """Return the exchange of the store."""
        return self._spread.all_reduce(array)

    def compilations(self) -> int:
        """Count the graphs that `hybridize` has built."""
        return self._graphs + (self._latest.graphs if self._latest else 0)

    def peak_bytes(self) -> int | None:
        """Return None: MXNet does not record a peak."""
        return None

"""A cut network whose parts compute at the same time, each on a micro-batch of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from mxnet import gluon

from steelyard_worker.frameworks.mxnet.predictor import shapes_of
from steelyard_worker.frameworks.mxnet.split import SplitTrainer
from steelyard_worker.protocol import Refusal
from steelyard_worker.strategy import MICRO_BATCHES

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType

    from mxnet.nd import NDArray

    from steelyard_worker.batches import Batch
    from steelyard_worker.case import Optimizer, Settings
    from steelyard_worker.frameworks.base import Array
    from steelyard_worker.frameworks.mxnet.split import Bound
    from steelyard_worker.network import Network

    Pieces = list[tuple[NDArray, ...]]


class PipelinedTrainer(SplitTrainer):
    """A network with one executor for each micro-batch; all go forward, then all go back, as in GPipe (Huang et al. 2019).

    Python queues the operators of all micro-batches. Those of different parts run at the same time where none needs the other's
    result. Gradients of the first micro-batch are written, those of the others are added.
    """

    def __init__(
        self,
        parts: int,
        settings: Settings,
        implementation: ModuleType,
        sizes: dict[str, Any],
        network: Network,
        weights: Mapping[str, Array],
        optimizer: Optimizer,
        rates: Array | None = None,
    ) -> None:
        self._pieces = settings.knobs[MICRO_BATCHES]
        if sizes["batch"] % self._pieces:
            raise Refusal(
                "unsupported", f"A batch of {sizes['batch']} cannot be divided into {self._pieces} micro-batches."
            )
        if settings.knobs["embedding"] != "dense":
            raise Refusal("unsupported", "MXNet does not add row-sparse gradients of several executors.")
        piece = sizes | {"batch": sizes["batch"] // self._pieces}
        super().__init__(parts, settings, implementation, piece, network, weights, optimizer, rates)

    def put(self, batch: Batch) -> Pieces:
        """Copy a canonical batch to the devices, in micro-batches."""
        columns = [gluon.utils.split_data(column, self._pieces) for column in super().put(batch)]
        return list(zip(*columns, strict=True))

    def step(self, batch: Pieces) -> list[NDArray]:
        """Queue forward and backward of all micro-batches, and the update."""
        for piece in batch:  # each changes the statistics of batch norms
            self._statistics.advance(shapes_of(piece[: self._inputs]) if self._changing else None)
        losses = [found[0].copy() for found in self._run(batch)]
        self.rule.step(1)
        self.latest = losses[-1]
        return losses

    def _run(self, batch: Pieces) -> list[list[NDArray]]:
        bound = self._bound_pieces(batch)
        outputs = [
            executor.forward(is_train=True, **dict(zip(self._columns, piece, strict=True)))
            for (executor, _), piece in zip(bound, batch, strict=True)
        ]
        for executor, heads in bound:
            executor.backward(heads)
        return outputs

    def _bound_pieces(self, batch: Pieces) -> list[Bound]:
        return [self._bound_piece(number, piece) for number, piece in enumerate(batch)]

    def _bound_piece(self, number: int, piece: tuple[NDArray, ...]) -> Bound:
        key = number, shapes_of(piece)
        if key not in self._executors:
            self._executors[key] = self._bind(piece, "add" if number else "write", 1 / self._pieces)
        return self._executors[key]

    def losses(self, handles: list[list[NDArray]]) -> Array:
        """Read the losses of whole batches back."""
        return np.array([np.mean([float(each.asscalar()) for each in pieces]) for pieces in handles], np.float32)

    def gradients(self, batch: Pieces) -> tuple[dict[str, Array], float, dict[str, Array]]:
        """Forward in training mode and backward."""
        found = self._run(batch)
        gradients = {name: parameter.grad().asnumpy() for name, parameter in self._trained.items()}
        loss = float(np.mean([float(each[0].asscalar()) for each in found]))
        return self._joined([self._canonical(outputs) for _, *outputs in found]), loss, gradients

    def outputs(self, batch: Pieces) -> dict[str, Array]:
        """Forward in inference mode, with the canonical running statistics instead of MXNet's own."""
        with self._statistics.in_place():
            return self._joined(
                [
                    self._canonical(
                        executor.forward(is_train=False, **dict(zip(self._columns, piece, strict=True)))[1:]
                    )
                    for (executor, _), piece in zip(self._bound_pieces(batch), batch, strict=True)
                ]
            )

    @staticmethod
    def _joined(pieces: list[dict[str, Array]]) -> dict[str, Array]:
        return {name: np.concatenate([each[name] for each in pieces]) for name in pieces[0]}

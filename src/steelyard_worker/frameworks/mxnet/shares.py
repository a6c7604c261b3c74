"""Trainers whose batch norms see a share of every batch, on each rank or device: what they do with the statistics."""

from __future__ import annotations

from abc import abstractmethod
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import mxnet as mx

from steelyard_worker.frameworks.mxnet.trainer import Trainer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mxnet.nd import NDArray

    from steelyard_worker.frameworks.base import Array


class SharingTrainer(Trainer):
    """Statistics of batch norms are those of one share in training.

    What is read, or used for inference, is their average over the shares, as Gluon averages the copies of several devices when it
    saves a network.
    """

    @property
    def _statistics_of_share(self) -> list[str]:
        return [name for name in self._named if name not in self._trained]

    @abstractmethod
    def _averaged_statistics(self) -> dict[str, Array]:
        """Return the canonical statistics, averaged over all shares."""

    def outputs(self, batch: Any) -> dict[str, Array]:
        """Forward in inference mode, with the averaged statistics."""
        with self._averaged_in_place():
            return self._inferred(batch)

    def _inferred(self, batch: Any) -> dict[str, Array]:
        return self._canonical(self.forward(*batch)[1:])

    def state(self) -> dict[str, Array]:
        """Return parameters, and the averages of batch-norm statistics."""
        return super().state() | self._averaged_statistics()

    @contextmanager
    def _averaged_in_place(self) -> Iterator[None]:
        own = {name: [array.copy() for array in self._named[name].list_data()] for name in self._statistics_of_share}
        for name, array in self._averaged_statistics().items():
            self._named[name].set_data(mx.nd.array(array, dtype=array.dtype))
        yield
        for name, kept in own.items():
            for array, before in zip(self._named[name].list_data(), kept, strict=True):
                before.copyto(array)


class AveragingTrainer(SharingTrainer):
    """A rank that exchanges what it has computed of its share with the other ranks."""

    @abstractmethod
    def _averages(self, arrays: dict[str, Array]) -> dict[str, Array]:
        """Return the averages of arrays over all ranks, by the exchange that a step uses."""

    def gradients(self, batch: tuple[NDArray, ...]) -> tuple[dict[str, Array], float, dict[str, Array]]:
        """Forward in training mode and backward; the gradients are averaged as in a step."""
        outputs, loss, own = super().gradients(batch)
        return outputs, loss, self._averages(own)

    def _averaged_statistics(self) -> dict[str, Array]:
        found = Trainer.state(self)
        return self._averages({name: found[name] for name in self._statistics_of_share})

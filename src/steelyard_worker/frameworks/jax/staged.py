"""Model parallel training: the traced network is cut into stages (see `cutting`), each on a device of its own.

A batch passes through them in micro-batches; one micro-batch is the plain split. All forward passes come before the loss of the
whole batch, and all backward passes after it (GPipe), so any loss gives the result of one device, not only a mean over samples.
JAX starts programs without waiting for them, so a device can work on one micro-batch while others work on the next.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from steelyard_worker import dropout
from steelyard_worker.frameworks.jax import cutting, layouts, passes
from steelyard_worker.frameworks.jax.layers import RANDOM
from steelyard_worker.frameworks.jax.predictor import Predictor, to_numpy
from steelyard_worker.frameworks.jax.trainer import Trainer
from steelyard_worker.frameworks.jax.updates import Update
from steelyard_worker.protocol import Refusal

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType

    from steelyard_worker.batches import Batch
    from steelyard_worker.case import Optimizer
    from steelyard_worker.frameworks.base import Array
    from steelyard_worker.frameworks.jax.layers import Choices
    from steelyard_worker.network import Network

Tensors = dict[str, jax.Array]


def trainer(devices: list[jax.Device], most: int) -> type[Staged]:
    """Return the trainer over these devices with `most` micro-batches; fewer for the batches of an evaluation that need it."""
    return type("Staged", (Staged,), {"devices": devices, "most": most})


class Staged(Trainer):
    """`trainer` sets `devices` and `most`. The first batch decides the cut; until then, all tensors are on the first device.

    `_trained` and `_fixed` have the tensors of each stage. A tensor that several stages read belongs to the first of them; the
    others get a copy at every step, and send its gradient back.
    """

    devices: list[jax.Device]
    most: int

    def __init__(
        self,
        implementation: ModuleType,
        sizes: dict[str, Any],
        network: Network,
        weights: Mapping[str, Array],
        optimizer: Optimizer,
        precision: str,
        choices: Choices,
        rates: Array | None = None,
    ) -> None:
        Predictor.__init__(self, implementation, sizes, network, weights, precision, choices)
        self._trainable = {p.name for p in network.parameters if p.trainable}
        self._first: Tensors = self._with_random(dict(self.tensors))
        self.tensors = {}
        self._optimizer, self._rates = optimizer, rates
        self._cuts: dict[Any, passes.Passes] = {}
        self._lock = Lock()  # batches are put by several threads
        self._trained: list[Tensors] = []
        self._fixed: list[Tensors] = []
        self._updates: list[Update] = []
        self._owned: list[list[str]] = []
        self.loss: jax.Array | None = None

    def put(self, batch: Batch) -> list[Any]:
        """Copy a canonical batch to the devices: of every micro-batch, each stage gets the arrays that it reads."""
        native = {name: layouts.input_to_native(array, self._precision) for name, array in batch.items()}
        samples = len(next(iter(native.values())))
        parts = next(parts for parts in range(min(self.most, samples), 0, -1) if samples % parts == 0)
        few = {name: np.split(array, parts) for name, array in native.items()}
        micro = [{name: few[name][number] for name in few} for number in range(parts)]
        with self._lock:
            cut = self._cut(micro[0])
        placed = [
            [
                jax.device_put({name: each[name] for name in stage.inputs}, device, may_alias=False)
                for stage, device in zip(cut.stages, self.devices, strict=True)
            ]
            for each in micro
        ]
        return [cut, placed, jax.device_put(native, self.devices[-1], may_alias=False)]

    def _cut(self, batch: Mapping[str, Array]) -> passes.Passes:
        """Return the passes for micro-batches of this shape; the first time, place the tensors."""
        shapes = {name: jax.ShapeDtypeStruct(array.shape, array.dtype) for name, array in batch.items()}
        key = tuple((name, each.shape) for name, each in sorted(shapes.items()))
        if key not in self._cuts:
            stages, structure = cutting.stages(self._traced, self._all, shapes, len(self.devices))
            found = passes.Passes(stages, structure, self._implementation.loss, self.devices)
            if not self._updates:
                self._place(found)
            elif found.owned != self._owned:
                raise Refusal("unsupported", "Batches of different lengths would cut the network in different places.")
            self._cuts[key] = found
        return self._cuts[key]

    def _traced(self, tensors: Any, batch: Any) -> Any:
        return self._forward(tensors, batch, training=True)

    def _place(self, found: passes.Passes) -> None:
        self._owned = found.owned
        self._distribute()
        self._updates = [Update(self._optimizer, tensors, self._rates) for tensors in self._trained]

    def _distribute(self) -> None:
        """Bring the tensors of each stage to its device."""
        for names, device in zip(self._owned, self.devices, strict=True):
            own = {name: jax.device_put(self._first[name], device) for name in names}
            self._trained.append({name: own[name] for name in own if name in self._trainable})
            self._fixed.append({name: own[name] for name in own if name not in self._trainable})
        self._first = {}

    def _with_random(self, tensors: Tensors) -> Tensors:
        return tensors | ({RANDOM: jax.random.key(dropout.SEED)} if self._choices.dropout else {})

    def restart(self, weights: Mapping[str, Array]) -> None:
        """Load weights as the constructor did, and bring them to the stages; the programs of the stages are kept."""
        self.synchronise()
        self._trained, self._fixed = [], []
        loaded = {name: self._load(kind, weights[name]) for name, kind in self._kinds.items()}
        self._first = self._with_random(loaded)
        if self._updates:
            self._distribute()
            for update, tensors in zip(self._updates, self._trained, strict=True):
                update.restart(tensors)

    def step(self, batch: Any) -> jax.Array:
        """Forward, backward, update; the loss stays on its device."""
        self.loss, _, gradients = self._differentiate(batch)
        squares = self._squares(gradients)
        for stage, update in enumerate(self._updates):
            self._trained[stage] = update.run(self._trained[stage], gradients[stage], squares[stage])
        return self.loss

    def _squares(self, gradients: list[Any]) -> list[Any]:
        """Return, on every device, the sums of squares of the gradients of all stages, where clipping needs them."""
        if not self._optimizer.clip:
            return [None] * len(gradients)
        own = [update.square(each) for update, each in zip(self._updates, gradients, strict=True)]
        return [jax.device_put(own, device) for device in self.devices]

    def _differentiate(self, batch: Any) -> tuple[jax.Array, Tensors, list[Any]]:
        cut, placed, whole = batch
        loss, outputs, gradients, self._fixed = cut.run(self._trained, self._fixed, placed, whole)
        return loss, outputs, gradients

    def synchronise(self) -> None:
        """Wait for every tensor that the last step replaces and for its loss."""
        jax.block_until_ready((self._trained, self._fixed, [each.memory for each in self._updates], self.loss))

    def gradients(self, batch: Any) -> tuple[dict[str, Array], float, dict[str, Array]]:
        """Forward in training mode and backward, by the programs of a step."""
        loss, outputs, gradients = self._differentiate(batch)
        joined = {name: sum(part[name] for part in parts if name in part) for parts in gradients for name in parts[0]}
        return to_numpy(outputs), float(loss), self._canonical(joined)

    def outputs(self, batch: Any) -> dict[str, Array]:
        """Forward in inference mode, on the last device alone: this is for evaluations, which are not timed."""
        return to_numpy(self._infer(jax.device_put(self._current, self.devices[-1]), batch[-1]))

    def lowered(self, batch: Any) -> Any:
        """Refuse: a step consists of several programs."""
        raise Refusal("unsupported", "A training step that is cut into stages consists of several programs.")

    @property
    def _all(self) -> Tensors:
        return self._first or {name: each for part in self._trained + self._fixed for name, each in part.items()}

"""Model parallel with `torch.distributed.pipelining`: every rank has a part of the network, and passes tensors on to the next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import distributed
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe

from steelyard_worker.frameworks.pytorch import cutting
from steelyard_worker.frameworks.pytorch import settings as process
from steelyard_worker.frameworks.pytorch.clipping import ClippedTogether
from steelyard_worker.frameworks.pytorch.predictor import to_numpy
from steelyard_worker.frameworks.pytorch.trainer import Trainer
from steelyard_worker.protocol import Refusal
from steelyard_worker.strategy import MICRO_BATCHES

if TYPE_CHECKING:
    from steelyard_worker.case import Settings
    from steelyard_worker.frameworks.base import Array
    from steelyard_worker.frameworks.pytorch.predictor import Tensors
    from steelyard_worker.network import Network

    Values = tuple[torch.Tensor, ...]


class Pipeline(Trainer):
    """A part of the network. Every batch passes through all parts in `pieces` micro-batches, by the schedule of GPipe."""

    clipping = ClippedTogether
    pieces = 0  # as many as the knob says

    def _spread(self, settings: Settings, sizes: dict[str, Any], network: Network) -> None:
        self.pieces = self.pieces or settings.knobs[MICRO_BATCHES]
        if sizes["batch"] % self.pieces:
            raise Refusal(
                "unsupported", f"A batch of {sizes['batch']} cannot be divided into {self.pieces} equal parts."
            )
        self._rank, self._count = distributed.get_rank(), distributed.get_world_size()
        self._module.eval()
        channels_last, one = self._layout == torch.channels_last, self.put(example(network))
        self._part = cutting.cut(self._module, one, self._inputs, self._count, channels_last)[self._rank]
        self._module.train()
        self._keep_own()
        self._stage = process.wrapped(self._part.module, settings)
        self._criterion = process.wrapped(self._loss, settings)
        self._schedules: dict[Any, ScheduleGPipe] = {}
        self._targets = torch.arange(self.pieces)
        self._pieces: list[Tensors] = []

    def _keep_own(self) -> None:
        """Free the memory of the other parts."""
        own = {id(tensor) for tensor in (*self._part.module.parameters(), *self._part.module.buffers())}
        for tensor in (*self._module.parameters(), *self._module.buffers()):
            if id(tensor) not in own:
                tensor.data = tensor.new_empty(0)
        self._named = {name: tensor for name, tensor in self._named.items() if id(tensor) in own}

    @property
    def _is_last(self) -> bool:
        return self._rank == self._count - 1

    def step(self, batch: Tensors) -> torch.Tensor | None:
        """Forward and backward of all micro-batches, update; the last rank has the loss."""
        self._rule.zero_grad(set_to_none=True)
        _, loss = self._pass(batch, outputs=False)
        self._rule.step()
        return loss

    def losses(self, handles: list[Any]) -> Array:
        """Read the losses back, on the last rank."""
        return super().losses(handles) if self._is_last else np.empty(0, np.float32)

    def gradients(self, batch: Tensors) -> tuple[dict[str, Array], float, dict[str, Array]]:
        """Forward in training mode and backward: what this rank has of the outputs, the loss and the gradients."""
        self._rule.zero_grad(set_to_none=True)
        outputs, loss = self._pass(batch, outputs=True)
        gradients = {name: to_numpy(tensor.grad.to_dense()) for name, tensor in self._trained.items()}
        found = self._by_name(outputs) if self._is_last else {}
        return (
            {name: to_numpy(tensor) for name, tensor in found.items()},
            loss.item() if loss is not None else np.nan,
            gradients,
        )

    def _pass(self, batch: Tensors, outputs: bool) -> tuple[Any, torch.Tensor | None]:
        """Run the schedule on a batch: the outputs, if they are wanted, and the mean of the losses, on the last rank."""
        shapes = tuple(tensor.shape for tensor in batch.values())
        if shapes not in self._schedules:
            self._schedules[shapes] = self._schedule(batch)
        own = {name: batch[name] for name in self._part.inputs}
        given, named = (tuple(own.values()), {}) if self._rank == 0 else ((), own)
        if not self._is_last:
            self._schedules[shapes].step(*given, **named)
            return None, None
        self._pieces = _divided(batch, self.pieces)
        losses: list[torch.Tensor] = []
        found = self._schedules[shapes].step(
            *given, target=self._targets, losses=losses, return_outputs=outputs, **named
        )
        return found, torch.stack([loss.detach() for loss in losses]).mean()

    def _schedule(self, batch: Tensors) -> ScheduleGPipe:
        """Return the schedule for batches of these shapes.

        Without the tensors between the parts, PyTorch finds their shapes by a pass on memory without values, in which batch norms
        change their statistics.
        """
        self._module.eval()
        received, found = self._forward_part(_divided(batch, self.pieces)[0])
        self._module.train()
        first = tuple(batch[name] for name in self._part.inputs)
        given = tuple(each[: len(each) // self.pieces] for each in first) if self._rank == 0 else received
        stage = PipelineStage(self._stage, self._rank, self._count, self._device, input_args=given, output_args=found)
        return ScheduleGPipe(stage, self.pieces, self._loss_of_piece)

    def _loss_of_piece(self, output: Any, number: torch.Tensor) -> torch.Tensor:
        loss: torch.Tensor = self._criterion(self._by_name(output), self._pieces[int(number)])
        return loss

    def _by_name(self, output: Any) -> Tensors:
        return dict(zip(self._part.outputs, output if isinstance(output, tuple) else (output,), strict=True))

    def _outputs(self, batch: Tensors) -> Tensors:
        """Forward, one part after the other: the outputs on the last rank, and none on the others."""
        _, found = self._forward_part(batch)
        return self._by_name(found) if self._is_last else {}

    def _forward_part(self, batch: Tensors) -> tuple[Values, Values]:
        """Receive from the rank before, run this part, and send to the next rank: what was received, and what was returned."""
        received: Values = self._received() if self._rank else ()
        found = self._part.module(*received, *[batch[name] for name in self._part.inputs])
        found = found if isinstance(found, tuple) else (found,)
        if not self._is_last:
            message = [(tensor.detach(), tensor.requires_grad) for tensor in found]
            distributed.send_object_list([message], self._rank + 1, device=self._device)
        return received, found

    def _received(self) -> Values:
        message: list[Any] = [None]
        distributed.recv_object_list(message, self._rank - 1, device=self._device)
        with_gradient = torch.is_grad_enabled()
        return tuple(each.to(self._device).requires_grad_(needs and with_gradient) for each, needs in message[0])


class Split(Pipeline):
    """A part of the network, through which whole batches pass: the parts take turns."""

    pieces = 1


def _divided(batch: Tensors, pieces: int) -> list[Tensors]:
    divided = {name: tensor.chunk(pieces) for name, tensor in batch.items()}
    return [{name: parts[number] for name, parts in divided.items()} for number in range(pieces)]


def example(network: Network) -> dict[str, Array]:
    """Return a batch of one sample."""
    generator = np.random.default_rng(0)
    if network.draw:
        return network.draw(generator, 1)
    return {
        each.name: generator.integers(0, each.high, (1, *each.shape)).astype(each.dtype)
        if each.high
        else generator.standard_normal((1, *each.shape)).astype(each.dtype)
        for each in network.inputs
    }

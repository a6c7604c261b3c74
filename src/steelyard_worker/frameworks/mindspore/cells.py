"""Training step, gradients and inference: each is one graph in graph mode, and runs operator by operator in PyNative mode.

They are cells called in GRAPH_MODE, like `nn.TrainOneStepCell`. MindSpore runs such cells in the caller's thread, but passes
every kernel of a function under `mindspore.jit` from thread to thread, which takes more time on busy processors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mindspore
from mindspore import Parameter, Tensor, nn, ops

from steelyard_worker import accumulation

if TYPE_CHECKING:
    Tensors = tuple[Tensor, ...]


class Loss(nn.Cell):
    """Network with loss: inputs and targets -> loss."""

    def __init__(self, network: nn.Cell, loss: nn.Cell, inputs: int) -> None:
        super().__init__()
        self.network, self.loss, self.inputs = network, loss, inputs

    def construct(self, *batch: Tensor) -> Tensor:
        return self.loss(*self.network(*batch[: self.inputs]), *batch[self.inputs :])


class LossAndOutputs(Loss):
    """Network with loss: inputs and targets -> (loss, outputs)."""

    def construct(self, *batch: Tensor) -> tuple[Tensor, Tensors]:
        outputs = self.network(*batch[: self.inputs])
        return self.loss(*outputs, *batch[self.inputs :]), outputs


class Added(nn.Cell):
    """Inputs and targets -> (mean loss, mean gradients) of equal parts of the batch, which follow each other."""

    def __init__(self, differentiate: Any, parts: int) -> None:
        super().__init__()
        self.differentiate, self.parts = differentiate, parts

    def construct(self, *batch: Tensor) -> tuple[Tensor, Tensors]:
        parts = _parts_for(self.parts, batch[0].shape[0])
        size = batch[0].shape[0] // parts
        loss, gradients = self.differentiate(*[each[:size] for each in batch])
        for part in range(1, parts):
            # Without this, a graph may compute several forward passes before it frees what the first one keeps.
            own = [ops.depend(each[part * size : (part + 1) * size], gradients) for each in batch]
            more, others = self.differentiate(*own)
            loss = loss + more
            gradients = tuple([gradients[i] + others[i] for i in range(len(others))])
        return loss / parts, tuple([each / parts for each in gradients])


@ops.constexpr
def _parts_for(wanted: int, samples: int) -> int:
    """Compute the number while a graph is compiled."""
    return accumulation.parts_for(wanted, samples)


class Step(nn.Cell):
    """One optimizer step with MindSpore's own update rule -> loss. `parts`: of the batch, whose gradients are added."""

    def __init__(
        self, loss: Loss, rule: nn.Cell, parameters: tuple[Parameter, ...], clip: float, parts: int = 1
    ) -> None:
        super().__init__()
        self.rule, self.clip = rule, clip
        differentiate = mindspore.value_and_grad(loss, None, parameters)
        self.differentiate = differentiate if parts == 1 else Added(differentiate, parts)

    def construct(self, *batch: Tensor) -> Tensor:
        loss, gradients = self.differentiate(*batch)
        self.rule(self.clipped(gradients))
        return loss

    def clipped(self, gradients: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """Scale all gradients so that their global norm does not exceed the limit."""
        return ops.clip_by_global_norm(gradients, self.clip) if self.clip else gradients


class ReferenceStep(Step):
    """One optimizer step with a reference rule, which takes two scalars of the step -> loss."""

    def construct(self, one: Tensor, two: Tensor, *batch: Tensor) -> Tensor:
        loss, gradients = self.differentiate(*batch)
        self.rule(self.clipped(gradients), one, two)
        return loss


class Gradients(nn.Cell):
    """Inputs and targets -> ((loss, outputs), gradients)."""

    def __init__(self, loss: LossAndOutputs, parameters: tuple[Parameter, ...]) -> None:
        super().__init__()
        self.differentiate = mindspore.value_and_grad(loss, None, parameters, has_aux=True)

    def construct(self, *batch: Tensor) -> Any:
        return self.differentiate(*batch)


class Inference(nn.Cell):
    """Inputs -> outputs."""

    def __init__(self, network: nn.Cell) -> None:
        super().__init__()
        self.network = network

    def construct(self, *inputs: Tensor) -> Tensors:
        return self.network(*inputs)

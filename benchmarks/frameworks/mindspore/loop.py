"""MindSpore as a user would write it by hand: a bare loop around our objects, and `nn.TrainOneStepCell` in graph mode.

A reference file has `model(sizes)`, a cell; `inputs(batch)` and `targets(batch)`, tuples of NumPy arrays; and `loss()`, a cell
over the model's outputs and the targets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mindspore
import numpy as np
from mindspore import Tensor, nn, ops

if TYPE_CHECKING:
    from collections.abc import Callable


# Kinds of parameters that may be excluded from weight decay: part of the name here -> canonical last names.
EXCLUDABLE = {"bias": {"bias", "b"}, "gamma": {"gamma"}, "beta": {"beta"}}


def bare_loop(trainer: Any, batch: Any, steps: int) -> None:
    """Train on one batch with the Trainer's own compiled step; ends without synchronisation."""
    train = trainer._train
    for _ in range(steps):
        train(*batch)


def reference(
    module: Any, sizes: dict[str, Any], optimizer: dict[str, Any], batch: dict[str, np.ndarray[Any, Any]]
) -> tuple[Callable[[], Any], Callable[[], Any], int]:
    """Return (step, synchronise, count): `nn.TrainOneStepCell` as in MindSpore's guide to graph mode."""
    mindspore.set_context(mode=mindspore.GRAPH_MODE)
    network = module.model(sizes)
    rule = update_rule(optimizer, network.trainable_params())
    inputs, targets = (
        tuple(Tensor(np.ascontiguousarray(array)) for array in each(batch)) for each in (module.inputs, module.targets)
    )
    scored = Scored(network, module.loss(), len(inputs))
    train = (
        Clipped(scored, rule, optimizer["clip"]) if optimizer["clip"] else nn.TrainOneStepCell(scored, rule)
    ).set_train()
    last: list[Tensor] = []

    def step() -> Tensor:
        last[:] = [train(*inputs, *targets)]
        return last[0]

    def synchronise() -> None:
        """Wait for the last parameter and the loss; kernels run in the order in which they are issued."""
        for tensor in (rule.parameters[-1], *last):
            tensor.asnumpy()

    return step, synchronise, sum(parameter.size for parameter in network.trainable_params())


class Scored(nn.Cell):
    """Network with loss: inputs and targets -> loss. `nn.WithLossCell` takes one of each."""

    def __init__(self, network: nn.Cell, loss: nn.Cell, inputs: int) -> None:
        super().__init__(auto_prefix=False)
        self.network, self.loss, self.inputs = network, loss, inputs

    def construct(self, *batch: Tensor) -> Tensor:
        outputs = self.network(*batch[: self.inputs])
        if isinstance(outputs, tuple):
            return self.loss(*outputs, *batch[self.inputs :])
        return self.loss(outputs, *batch[self.inputs :])


class Clipped(nn.TrainOneStepCell):
    """`nn.TrainOneStepCell` that scales all gradients down if their global norm is above the limit."""

    def __init__(self, network: nn.Cell, rule: nn.Cell, limit: float) -> None:
        super().__init__(network, rule)
        self.limit = limit

    def construct(self, *batch: Tensor) -> Tensor:
        loss = self.network(*batch)
        gradients = self.grad(self.network, self.weights)(*batch, ops.ones_like(loss))
        return ops.depend(loss, self.optimizer(ops.clip_by_global_norm(gradients, self.limit)))


def update_rule(spec: dict[str, Any], parameters: Any) -> nn.Cell:
    """MindSpore's own optimizer; the decay is coupled except in AdamW (`nn.AdamWeightDecay`, which has no bias correction)."""
    endings = {name.rpartition(".")[2] for name in spec["decay"]}
    excluded = [name for name, ours in EXCLUDABLE.items() if not endings & ours]
    if spec["weight_decay"]:
        others = [each for each in parameters if any(name in each.name.rpartition(".")[2] for name in excluded)]
        names = {each.name for each in others}
        decayed = [each for each in parameters if each.name not in names]
        parameters = [{"params": decayed, "weight_decay": spec["weight_decay"]}]
        if others:
            parameters.append({"params": others, "weight_decay": 0.0})
    if spec["name"] == "sgd":
        return nn.SGD(parameters, spec["learning_rate"], momentum=spec["momentum"], nesterov=spec["nesterov"])
    kind = {"adam": nn.Adam, "adamw": nn.AdamWeightDecay}[spec["name"]]
    return kind(parameters, spec["learning_rate"], spec["beta1"], spec["beta2"], spec["epsilon"])

"""Data parallel with `fully_shard`: weights, gradients and optimizer state are divided among the ranks."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import distributed, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor

from steelyard_worker.frameworks import named_tensors
from steelyard_worker.frameworks.pytorch.clipping import ClippedTogether
from steelyard_worker.frameworks.pytorch.predictor import fill, to_numpy
from steelyard_worker.frameworks.pytorch.replicated import send_from_first
from steelyard_worker.frameworks.pytorch.trainer import Trainer
from steelyard_worker.protocol import Refusal

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType

    from steelyard_worker.case import Settings
    from steelyard_worker.frameworks.base import Array
    from steelyard_worker.frameworks.pytorch.predictor import Tensors
    from steelyard_worker.network import Network


class Sharded(Trainer):
    """A module whose weights are divided among the ranks; a layer's are gathered while it computes."""

    clipping = ClippedTogether

    def __init__(self, settings: Settings, implementation: ModuleType, *arguments: Any) -> None:
        self._variables = implementation.variables
        super().__init__(settings, implementation, *arguments)

    def _spread(self, settings: Settings, sizes: dict[str, Any], network: Network) -> None:
        del sizes
        if settings.knobs["embedding"] != "dense":
            raise Refusal("unsupported", "fully_shard has no sparse gradients.")
        mesh = init_device_mesh(self._device.type, (distributed.get_world_size(),))
        for module in repeated(self._module):
            fully_shard(module, mesh=mesh)
        fully_shard(self._module, mesh=mesh)
        self._named = named_tensors.distinct(network, self._variables(self._module))

    def _fill(self, weights: Mapping[str, Array]) -> None:
        """Give every rank its parts; weights that a pass has gathered and kept are dropped."""
        for module in self._module.modules():
            if isinstance(module, FSDPModule):
                module.reshard()
        divided = {name: tensor for name, tensor in self._named.items() if isinstance(tensor, DTensor)}
        fill({name: tensor for name, tensor in self._named.items() if name not in divided}, weights)
        for name, tensor in divided.items():
            whole = torch.from_numpy(np.array(weights[name])).to(tensor.device, tensor.dtype)
            tensor.copy_(distribute_tensor(whole, tensor.device_mesh, tensor.placements))

    def gradients(self, batch: Tensors) -> tuple[dict[str, Array], float, dict[str, Array]]:
        """Forward in training mode and backward, and gather the gradients."""
        self._rule.zero_grad(set_to_none=True)
        outputs, loss = self._forward(batch)
        loss.backward()
        gradients = {name: to_numpy(_whole(tensor.grad)) for name, tensor in self._trained.items()}
        return {name: to_numpy(tensor) for name, tensor in outputs.items()}, loss.item(), gradients

    @torch.no_grad()
    def outputs(self, batch: Tensors) -> dict[str, Array]:
        """Forward in inference mode, with the statistics of the first rank.

        Not with `torch.inference_mode`: weights that were gathered in it could not be used in training.
        """
        send_from_first(self._module.buffers())
        self._module.eval()
        outputs = self._outputs(batch)
        self._module.train()
        return {name: to_numpy(tensor) for name, tensor in outputs.items()}

    def state(self) -> dict[str, Array]:
        """Gather all tensors, with the statistics of the first rank."""
        send_from_first(self._module.buffers())
        return {name: to_numpy(_whole(tensor)) for name, tensor in self._named.items()}


def repeated(network: nn.Module) -> list[nn.Module]:
    """Return the layers of a network that occur several times, as those of a transformer; each is gathered by itself.

    All other weights are gathered together, for the whole pass: networks use some of them outside the module that has them.
    """
    children = [each for each in network.children() if any(True for _ in each.parameters())]
    count = Counter(type(each) for each in children)
    return [each for each in children if count[type(each)] > 1 and not isinstance(each, nn.ModuleDict | nn.ModuleList)]


def _whole(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor

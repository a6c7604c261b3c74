"""One PyTorch module with its weights: batches on the device, the forward pass in inference mode, tensors by canonical name."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from steelyard_worker import dropout, probes
from steelyard_worker.frameworks import named_tensors
from steelyard_worker.frameworks.pytorch import layers
from steelyard_worker.frameworks.pytorch import settings as process
from steelyard_worker.probes import probe_output

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path
    from types import ModuleType

    from torch import nn

    from steelyard_worker.batches import Batch
    from steelyard_worker.case import Settings
    from steelyard_worker.exchange import Signature
    from steelyard_worker.frameworks.base import Array
    from steelyard_worker.network import Network

    Tensors = dict[str, torch.Tensor]

# The end of the name of what a batch norm counts its batches in; no network names it.
COUNTER = "num_batches_tracked"


class Predictor:
    """One module, in evaluation mode."""

    def __init__(
        self,
        settings: Settings,
        implementation: ModuleType,
        sizes: dict[str, Any],
        network: Network,
        weights: Mapping[str, Array],
    ) -> None:
        self._device = torch.device(settings.device)
        self._dtype, self._layout = process.DTYPES[settings.precision], process.LAYOUTS[settings.knobs["layout"]]
        self._inputs = implementation.INPUTS
        with layers.uninitialised(), dropout.built_as(settings.knobs["dropout"]):
            self._module: nn.Module = process.placed(implementation.build(sizes), settings).eval()
        self._named = named_tensors.distinct(network, implementation.variables(self._module))
        load(self._named, network, weights)
        self._infer = process.wrapped(self._outputs, settings)

    def put(self, batch: Batch) -> Tensors:
        """Copy a canonical batch to the device."""
        return self.place({name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in batch.items()})

    def place(self, batch: Tensors) -> Tensors:
        """Move host tensors to the device: floats in the precision of the run, integers as int64, as labels must be."""
        return {name: self._convert(tensor) for name, tensor in batch.items()}

    def _convert(self, tensor: torch.Tensor) -> torch.Tensor:
        dtype = self._dtype if tensor.is_floating_point() else torch.int64
        if self._device.type == "cuda":  # first as it is: the host would convert it, and wait for that
            tensor = tensor.to(self._device, non_blocking=True)
        if tensor.dim() == 4:
            return tensor.to(self._device, dtype, memory_format=self._layout)
        return tensor.to(self._device, dtype)

    def _outputs(self, batch: Tensors) -> Tensors:
        # A list: with a generator and a module that breaks its graph, the compiler tries and abandons this frame at every step.
        outputs: Tensors = self._module(*[batch[name] for name in self._inputs])
        return outputs

    @torch.inference_mode()
    def infer(self, batch: Tensors) -> Tensors:
        """Forward without autograd; the outputs stay on the device."""
        return self._infer(batch)

    def synchronise(self) -> None:
        """Wait for CUDA kernels; on CPU the work has finished when a call returns."""
        if self._device.type == "cuda":
            torch.cuda.synchronize()

    def outputs(self, batch: Tensors) -> dict[str, Array]:
        """Forward in inference mode."""
        return {name: to_numpy(tensor) for name, tensor in self.infer(batch).items()}

    @torch.no_grad()
    def inner(self, batch: Tensors, names: Collection[str]) -> dict[str, Array]:
        """Run forward in the mode of the module, always eagerly; the output of a module counts under the module's name."""
        with probes.collected() as found:
            for name, module in self._module.named_modules():
                if name in names:
                    module.register_forward_hook(partial(_keep, name))
            self._outputs(batch)
        return {name: to_numpy(found[name]) for name in found.keys() & names}

    def export(self, batch: Tensors, path: Path) -> Signature:
        """Write the module as an ONNX file for batches of this shape."""
        from steelyard_worker.frameworks.pytorch import export  # PyTorch's exporter takes long to import

        return export.export(self._module, {name: batch[name] for name in self._inputs}, path)

    def state(self) -> dict[str, Array]:
        """Return parameters and batch-norm statistics; PyTorch's layouts are the canonical ones."""
        return {name: to_numpy(tensor) for name, tensor in self._named.items()}


@torch.no_grad()
def load(named: Tensors, network: Network, weights: Mapping[str, Array]) -> None:
    """Copy canonical weights into the tensors; PyTorch's layouts are the canonical ones."""
    own = {name: tuple(tensor.shape) for name, tensor in named.items() if not name.endswith(COUNTER)}
    named_tensors.check(network, own)
    fill(named, weights)


@torch.no_grad()
def fill(named: Tensors, weights: Mapping[str, Array]) -> None:
    """Copy canonical weights into these tensors, which may be some of a network's."""
    for name, tensor in named.items():
        if not name.endswith(COUNTER):
            tensor.copy_(torch.from_numpy(np.array(weights[name])))


def to_numpy(tensor: torch.Tensor) -> Array:
    """Return a tensor as an array in host memory."""
    return tensor.detach().cpu().contiguous().numpy()


def _keep(name: str, module: nn.Module, inputs: Any, output: Any) -> None:
    """Keep a copy of a module's output, because the next module may work in place."""
    del module, inputs
    probe_output(name, output, torch.Tensor, torch.clone)

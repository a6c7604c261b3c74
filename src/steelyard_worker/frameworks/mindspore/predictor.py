"""One MindSpore cell with its weights, and its forward pass in inference mode."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import mindspore
import numpy as np
from mindspore import Parameter, Tensor, nn
from mindspore.nn.utils import no_init_parameters

from steelyard_worker import dropout, probes
from steelyard_worker.exchange import Signature
from steelyard_worker.frameworks import named_tensors
from steelyard_worker.frameworks.mindspore import cells, recurrent
from steelyard_worker.probes import probe_output
from steelyard_worker.protocol import Refusal

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from types import ModuleType

    from steelyard_worker.batches import Batch
    from steelyard_worker.case import Settings
    from steelyard_worker.frameworks.base import Array
    from steelyard_worker.network import Network

    Tensors = tuple[Tensor, ...]


class Predictor:
    """One cell in inference mode. `columns` are the arrays of a batch that it takes, in order."""

    def __init__(
        self,
        settings: Settings,
        implementation: ModuleType,
        sizes: dict[str, Any],
        network: Network,
        weights: Mapping[str, Array],
    ) -> None:
        self._implementation = implementation
        self.columns: tuple[str, ...] = tuple(implementation.INPUTS)
        chosen = settings.knobs["dropout"]
        # All weights are loaded, and random initialisation takes seconds.
        with no_init_parameters(), recurrent.built_as(settings.knobs["lstm"]), dropout.built_as(chosen):
            self._cell: nn.Cell = implementation.build(sizes)
        self._named = named_tensors.distinct(network, implementation.variables(self._cell))
        load(self._named, network, weights)
        self._infer = cells.Inference(self._cell).set_train(False)
        self._latest: Tensors = ()
        self._on_ascend = settings.device == "ascend"

    def put(self, batch: Batch) -> Tensors:
        """Copy a canonical batch into tensors; MindSpore accepts int32 indices and labels."""
        return tuple(Tensor(np.ascontiguousarray(batch[name])) for name in self.columns)

    def infer(self, batch: Tensors) -> Tensors:
        """Forward in inference mode; the outputs are not read."""
        self._latest = self._infer(*batch)
        return self._latest

    def synchronise(self) -> None:
        """Wait until the outputs of the last pass can be read: kernels run in the order in which they are issued.

        `mindspore.runtime.synchronize` is documented for accelerators only; on CPU its first call fails and does not wait.
        """
        if self._on_ascend:
            mindspore.runtime.synchronize()
        for output in self._latest:
            output.asnumpy()

    def outputs(self, batch: Tensors) -> dict[str, Array]:
        """Forward in inference mode."""
        return self._canonical(self.infer(batch))

    def _canonical(self, outputs: Tensors) -> dict[str, Array]:
        # The last names may belong to heads that only some presets have.
        names = self._implementation.OUTPUTS[: len(outputs)]
        return dict(zip(names, map(to_numpy, outputs), strict=True))

    def inner(self, batch: Tensors, names: Collection[str]) -> dict[str, Array]:
        """Run forward in the mode of the cell, always in PyNative mode; the output of a cell counts under the cell's name."""
        mode = mindspore.get_context("mode")
        mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
        with probes.collected() as found:
            for name, cell in self._cell.cells_and_names():
                if name in names:
                    cell.register_forward_hook(partial(_keep, name))
            self._cell(*batch[: len(self._implementation.INPUTS)])
        mindspore.set_context(mode=mode)  # settings of the process must stay as they were
        return {name: to_numpy(found[name]) for name in found.keys() & names}

    def export(self, batch: Tensors, path: Path) -> Signature:
        """Write the cell as an ONNX file for batches of this shape; Refusal: an operator has no counterpart."""
        outputs = tuple(self.outputs(batch))
        with TemporaryDirectory() as folder:  # MindSpore refuses paths with some characters, such as "="
            written = Path(folder) / path.name
            try:
                mindspore.onnx.export(self._infer, *batch, file_name=str(written), input_names=list(self.columns))
            except (RuntimeError, ValueError, TypeError) as error:
                reason = str(error).strip().splitlines()[0]  # what follows is for the developers of MindSpore
                raise Refusal("unsupported", f"MindSpore cannot export this network to ONNX: {reason}") from error
            shutil.copyfile(written, path)
        return Signature(self.columns, outputs)

    def state(self) -> dict[str, Array]:
        """Return parameters and batch-norm statistics; MindSpore's layouts are the canonical ones on CPU."""
        return {name: to_numpy(parameter) for name, parameter in self._named.items()}


def load(named: dict[str, Parameter], network: Network, weights: Mapping[str, Array]) -> None:
    """Copy canonical weights and names into the parameters; MindSpore's layouts are the canonical ones on CPU."""
    named_tensors.check(network, {name: tuple(parameter.shape) for name, parameter in named.items()})
    for name, parameter in named.items():
        parameter.set_data(Tensor(np.asarray(weights[name], np.float32)))
        parameter.name = name  # optimizers and graphs tell parameters apart by name
        parameter.init_mode = None  # otherwise copies, such as an optimizer's moments, are initialised at random first


def to_numpy(tensor: Tensor) -> Array:
    """Return a tensor as an array with its own memory."""
    return np.array(tensor.asnumpy())


def _keep(name: str, cell: nn.Cell, inputs: Any, output: Any) -> None:
    """Keep the output of a cell."""
    del cell, inputs
    probe_output(name, output, Tensor)

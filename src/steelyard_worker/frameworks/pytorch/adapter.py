"""Drive PyTorch: settings, training step, input pipeline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from steelyard_worker.frameworks.pytorch import layers, optimizers
from steelyard_worker.protocol import Refusal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import ModuleType

    from steelyard_worker.batches import Batch, Source
    from steelyard_worker.frameworks.base import Array
    from steelyard_worker.network import Network
    from steelyard_worker.protocol import Optimizer, Settings

DTYPES = {"float32": torch.float32, "float64": torch.float64}
LAYOUTS = {"channels-last": torch.channels_last, "channels-first": torch.contiguous_format}


class Adapter:
    """One process of PyTorch."""

    def __init__(self, settings: Settings) -> None:
        if settings.device == "cuda" and not torch.cuda.is_available():
            raise Refusal("unsupported", "PyTorch sees no CUDA device here (torch.cuda.is_available() is False).")
        if settings.mode not in ("eager", "compiled"):
            raise Refusal("unsupported", f"PyTorch has no mode {settings.mode!r}; modes: eager, compiled.")
        self._settings = settings
        if settings.threads:
            torch.set_num_threads(settings.threads)
        tf32 = bool(settings.knobs.get("tf32", False))
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
        torch.use_deterministic_algorithms(settings.deterministic)
        self.layout = str(settings.knobs.get("layout", "channels-last"))

    def applied(self) -> dict[str, Any]:
        """Read the settings back; the memory format is taken from an image-shaped tensor placed as batches are."""
        probe = torch.empty(2, 2, 3, 3).to(memory_format=LAYOUTS[self.layout])
        last = probe.is_contiguous(memory_format=torch.channels_last)
        return {
            "mode": self._settings.mode,
            "device": torch.empty(0, device=self._settings.device).device.type,
            "threads": torch.get_num_threads(),
            "interop_threads": torch.get_num_interop_threads(),
            "precision": str(torch.empty(0, dtype=DTYPES[self._settings.precision]).dtype).removeprefix("torch."),
            "deterministic": torch.are_deterministic_algorithms_enabled(),
            "tf32": torch.backends.cudnn.allow_tf32,
            "layout": "channels-last" if last else "channels-first",
        }

    def libraries(self) -> dict[str, Any]:
        """Versions and builds that do the arithmetic."""
        return {
            "torch": torch.__version__,
            "numpy": np.__version__,
            "cuda": torch.version.cuda,
            "onednn": torch.backends.mkldnn.is_available(),
            "cpu_capability": torch.backends.cpu.get_cpu_capability(),
            "build": " ".join(torch.__config__.show().split()),
        }

    def trainer(
        self, implementation: ModuleType, sizes: dict[str, Any], network: Network, weights: Mapping[str, Array],
        optimizer: Optimizer,
    ) -> Trainer:  # fmt: skip
        """Build the module and load the canonical weights into it."""
        return Trainer(self._settings, self.layout, implementation, sizes, network, weights, optimizer)

    def pipeline(self, trainer: Trainer, source: Source, workers: int) -> Iterator[Any]:
        """`torch.utils.data.DataLoader` over whole batches; workers decode when there are any."""
        options: dict[str, Any] = {"prefetch_factor": 2, "persistent_workers": True} if workers else {}
        while True:
            for batch in DataLoader(_Steps(source), batch_size=None, num_workers=workers, **options):
                yield trainer.place(batch)

    def compilations(self) -> int:
        """Frames and graphs that TorchDynamo has compiled."""
        if self._settings.mode == "eager":
            return 0
        from torch._dynamo.utils import counters

        return int(counters["stats"]["unique_graphs"]) + int(counters["frames"]["ok"])

    def peak_bytes(self) -> int | None:
        """Peak of the CUDA caching allocator."""
        return torch.cuda.max_memory_allocated() if self._settings.device == "cuda" else None


class _Steps(Dataset):
    """Item i is the whole batch of step i, so that the loader keeps the order of the run."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def __len__(self) -> int:
        return len(self._source.order)

    def __getitem__(self, step: int) -> dict[str, torch.Tensor]:
        return {name: torch.from_numpy(array) for name, array in self._source.batch(step).items()}


class Trainer:
    """One module with its update rule."""

    def __init__(
        self, settings: Settings, layout: str, implementation: ModuleType, sizes: dict[str, Any], network: Network,
        weights: Mapping[str, Array], optimizer: Optimizer,
    ) -> None:  # fmt: skip
        self._device = torch.device(settings.device)
        self._dtype, self._layout = DTYPES[settings.precision], LAYOUTS[layout]
        self._inputs, self._loss = implementation.INPUTS, implementation.loss
        with layers.left_blank():
            module: nn.Module = implementation.build(sizes).to(self._device, self._dtype)
        self._module = module.to(memory_format=self._layout).train()
        self._named = implementation.variables(self._module)
        load(self._named, network, weights)
        self._trained = {p.name: self._named[p.name] for p in network.parameters if p.trainable}
        compiled = settings.mode == "compiled"
        self._rule = optimizers.update_rule(optimizer, self._trained)
        self._forward = torch.compile(self._forward_and_loss) if compiled else self._forward_and_loss

    def put(self, batch: Batch) -> dict[str, torch.Tensor]:
        """Copy a canonical batch to the device."""
        return self.place({name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in batch.items()})

    def place(self, batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Move host tensors to the device: floats in the precision of the run, integers as the int64 that labels want."""
        return {name: self._convert(tensor) for name, tensor in batch.items()}

    def _convert(self, tensor: torch.Tensor) -> torch.Tensor:
        dtype = self._dtype if tensor.is_floating_point() else torch.int64
        if tensor.dim() == 4:
            return tensor.to(self._device, dtype, memory_format=self._layout)
        return tensor.to(self._device, dtype)

    def _forward_and_loss(self, batch: dict[str, torch.Tensor]) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
        # A list: where a compiled module breaks its graph, a generator would make the compiler give this frame up anew each step.
        outputs = self._module(*[batch[name] for name in self._inputs])
        return outputs, self._loss(outputs, batch)

    def step(self, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        """Forward, backward, update; the loss stays on the device."""
        self._rule.zero_grad(set_to_none=True)
        _, loss = self._forward(batch)
        loss.backward()
        self._rule.step()
        return loss.detach()

    def synchronise(self) -> None:
        """CUDA kernels are waited for; on CPU every call has finished when it returns."""
        if self._device.type == "cuda":
            torch.cuda.synchronize()

    def losses(self, handles: list[torch.Tensor]) -> Array:
        """Read the losses back."""
        return _numpy(torch.stack(handles).float()) if handles else np.empty(0, np.float32)

    def gradients(self, batch: dict[str, torch.Tensor]) -> tuple[dict[str, Array], float, dict[str, Array]]:
        """Forward in training mode and backward."""
        self._rule.zero_grad(set_to_none=True)
        outputs, loss = self._forward(batch)
        loss.backward()
        gradients = {name: _numpy(tensor.grad) for name, tensor in self._trained.items()}
        return {name: _numpy(tensor) for name, tensor in outputs.items()}, loss.item(), gradients

    @torch.inference_mode()
    def outputs(self, batch: dict[str, torch.Tensor]) -> dict[str, Array]:
        """Forward in inference mode."""
        self._module.eval()
        outputs = self._module(*(batch[name] for name in self._inputs))
        self._module.train()
        return {name: _numpy(tensor) for name, tensor in outputs.items()}

    def state(self) -> dict[str, Array]:
        """Parameters and batch-norm statistics; PyTorch's layouts are the canonical ones."""
        return {name: _numpy(tensor) for name, tensor in self._named.items()}


@torch.no_grad()
def load(named: dict[str, torch.Tensor], network: Network, weights: Mapping[str, Array]) -> None:
    """Copy canonical weights into the tensors; a tensor missing on either side, or of another shape, is refused."""
    expected = {parameter.name: parameter.shape for parameter in network.parameters}
    for name in sorted(expected.keys() ^ named.keys() - {n for n in named if n.endswith("num_batches_tracked")}):
        raise Refusal(
            "implementation",
            f"Tensor {name} is {'missing from' if name in expected else 'only in'} the module.",
        )
    for name, shape in expected.items():
        if tuple(named[name].shape) != shape:
            raise Refusal("implementation", f"Tensor {name} has shape {tuple(named[name].shape)}, expected {shape}.")
        named[name].copy_(torch.from_numpy(np.array(weights[name])))


def _numpy(tensor: torch.Tensor) -> Array:
    return tensor.detach().cpu().contiguous().numpy()

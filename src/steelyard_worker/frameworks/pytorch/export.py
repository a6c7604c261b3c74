"""Write a PyTorch module as an ONNX file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn

from steelyard_worker.exchange import Signature
from steelyard_worker.protocol import Refusal

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor


class Listed(nn.Module):
    """A module whose outputs are a tuple, because a file has them in an order."""

    def __init__(self, module: nn.Module, outputs: tuple[str, ...]) -> None:
        super().__init__()
        self.module, self.outputs = module, outputs

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        found = self.module(*inputs)
        return tuple(found[name] for name in self.outputs)


def export(module: nn.Module, inputs: dict[str, Tensor], path: Path) -> Signature:
    """Trace a module in evaluation mode with these inputs and write it, its weights included; Refusal: it cannot be exported."""
    # ONNX has images and kernels in the order NCHW.
    module = module.to(memory_format=torch.contiguous_format)
    placed = tuple(each.contiguous() for each in inputs.values())
    with torch.no_grad():
        outputs = tuple(module(*placed))
    try:
        torch.onnx.export(
            Listed(module, outputs).eval(),
            placed,
            str(path),
            input_names=list(inputs),
            output_names=list(outputs),
            dynamo=True,
            external_data=False,
            verbose=False,
        )
    except torch.onnx.OnnxExporterError as error:
        reason = " ".join(str(error).split())[:200]
        raise Refusal("unsupported", f"PyTorch cannot export this network to ONNX: {reason}") from error
    return Signature(tuple(inputs), outputs)

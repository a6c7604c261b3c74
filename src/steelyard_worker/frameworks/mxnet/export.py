"""Write a hybridized block as an ONNX file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import mxnet as mx
import onnx

from steelyard_worker.exchange import Signature
from steelyard_worker.protocol import Refusal

if TYPE_CHECKING:
    from mxnet import gluon
    from mxnet.nd import NDArray

# The newest whose operators MXNet 1.9 writes.
OPSET = 13


def export(
    block: gluon.HybridBlock, batch: tuple[NDArray, ...], inputs: tuple[str, ...], outputs: tuple[str, ...], path: Path
) -> Signature:
    """Write the graph that a block has built for this batch, its weights included; Refusal: an operator has no counterpart."""
    stem = str(path.with_suffix(""))
    block.export(stem)
    symbol, weights = f"{stem}-symbol.json", f"{stem}-0000.params"
    try:
        mx.onnx.export_model(symbol, weights, [each.shape for each in batch], [each.dtype for each in batch], str(path))
    except (AttributeError, NotImplementedError, ValueError, KeyError) as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise Refusal("unsupported", f"MXNet cannot export this network to ONNX ({reason}).") from error
    finally:
        for written in (symbol, weights):
            Path(written).unlink()
    _correct_opset(path)
    return Signature(inputs, outputs)


def _correct_opset(path: Path) -> None:
    """State the opset whose operators the file has: MXNet writes the newest that the package onnx knows."""
    model = onnx.load(str(path))
    model.opset_import[0].version = OPSET
    onnx.save(model, str(path))

"""Write a TensorFlow network as an ONNX file, by tf2onnx."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorflow as tf
import tf2onnx

from steelyard_worker.exchange import Signature
from steelyard_worker.frameworks.tensorflow import layouts
from steelyard_worker.protocol import Refusal

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard_worker.frameworks.tensorflow.predictor import Predictor

# The newest that tf2onnx writes.
OPSET = 18


def export(predictor: Predictor, batch: dict[str, tf.Tensor], path: Path) -> Signature:
    """Convert the graph of a forward pass over such a batch and write it; Refusal: an operator has no counterpart."""
    inputs = predictor.inputs
    outputs = tuple(predictor.infer(batch))

    def forward(*tensors: tf.Tensor) -> Any:
        found = predictor.infer(dict(zip(inputs, tensors, strict=True)))
        return [found[name] for name in outputs]

    signature = [tf.TensorSpec(batch[name].shape, batch[name].dtype, name=name) for name in inputs]
    function = tf.function(forward, autograph=False)
    function.get_concrete_function(*signature)  # what fails while the network is traced is no fault of the converter
    try:
        tf2onnx.convert.from_function(function, signature, opset=OPSET, output_path=str(path))
    except (ValueError, RuntimeError, NotImplementedError) as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise Refusal("unsupported", f"tf2onnx cannot convert this network ({reason}).") from error
    images = {name: layouts.AXES["image"] for name in inputs if len(batch[name].shape) == 4}
    return Signature(inputs, outputs, images)

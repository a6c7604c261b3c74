"""What the ONNX Runtime adapter relies on: exported networks."""

import hashlib
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

from checks.onnxruntime.shared import SETTINGS
from steelyard_worker import exchange, tensors
from steelyard_worker.frameworks.onnxruntime import settings as process
from steelyard_worker.frameworks.onnxruntime.adapter import Adapter
from steelyard_worker.protocol import Refusal

WEIGHTS = {"head.weight": np.ones((3, 3), np.float32)}


def check_the_runtime_has_no_convolution_in_float64():
    image = helper.make_tensor_value_info("image", TensorProto.DOUBLE, (1, 1, 2, 2))
    graph = helper.make_graph(
        [helper.make_node("Conv", ["image", "kernel"], ["found"])],
        "double",
        [image],
        [helper.make_tensor_value_info("found", TensorProto.DOUBLE, (1, 1, 2, 2))],
        [helper.make_tensor("kernel", TensorProto.DOUBLE, (1, 1, 1, 1), [1.0])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    try:
        onnxruntime.InferenceSession(model.SerializeToString(), process.options(SETTINGS), providers=process.PROVIDERS)
    except Exception as error:
        assert "Conv" in str(error), error
    else:
        raise AssertionError("ONNX Runtime convolves in float64: list the precision in framework.toml.")


def written(folder):
    """Write a network of one product, its image in the order NHWC, as an exporting process does."""
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["image", "weight"], ["found"])],
        "product",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, (1, 2, 4, 3))],
        [helper.make_tensor_value_info("found", TensorProto.FLOAT, (1, 2, 4, 3))],
        [helper.make_tensor("weight", TensorProto.FLOAT, (3, 3), [1.0] * 9)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, folder / "network0.onnx")
    sha256 = hashlib.sha256((folder / "network0.onnx").read_bytes()).hexdigest()
    signature = {"inputs": ["image"], "outputs": ["logits"], "axes": {"image": [0, 2, 3, 1]}}
    described = {"name": "network0.onnx", "sha256": sha256, "signature": signature}
    tensors.write(folder, {}, {"networks": {exchange.digest(WEIGHTS): described}})
    return exchange.Networks(folder)


def check_a_batch_is_placed_in_the_order_of_the_file_and_copied():
    with TemporaryDirectory() as folder:
        predictor = Adapter(SETTINGS).predictor(written(Path(folder)), {}, None, WEIGHTS)
        image = np.arange(24, dtype=np.float32).reshape(1, 3, 2, 4)
        placed = predictor.put({"image": image, "label": np.zeros(1, np.int32)})
        expected = image.transpose(0, 2, 3, 1) @ np.ones((3, 3), np.float32)
        image[...] = 0
        assert np.array_equal(predictor.outputs(placed)["logits"], expected)
        assert predictor.description()["operators"] == {"MatMul": 1}


def check_other_weights_and_an_altered_file_are_refused():
    with TemporaryDirectory() as folder:
        networks = written(Path(folder))
        refused(networks, {"head.weight": np.zeros((3, 3), np.float32)}, "No exported network has the weights")
        path = Path(folder) / "network0.onnx"
        path.write_bytes(path.read_bytes() + b"\0")
        refused(networks, WEIGHTS, "is not the file that was exported")


def refused(networks, weights, reason):
    """Fail unless a predictor of these weights is refused for this reason."""
    try:
        Adapter(SETTINGS).predictor(networks, {}, None, weights)
    except Refusal as refusal:
        assert reason in str(refusal), refusal
    else:
        raise AssertionError(f"It was not refused: {reason}")

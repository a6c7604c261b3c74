"""What several checks of TensorFlow use."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import tensorflow as tf
import tomllib

import steelyard_worker
from steelyard_worker import batches
from steelyard_worker.case import Optimizer, Settings
from steelyard_worker.frameworks.tensorflow import layers, trainer
from steelyard_worker.frameworks.tensorflow.adapter import Adapter
from steelyard_worker.network import Network, Parameter

WORKER = Path(steelyard_worker.__file__).parent
FRAMEWORK = tomllib.loads((WORKER / "frameworks" / "tensorflow" / "framework.toml").read_text())
KNOBS = {name: knob["default"] for name, knob in FRAMEWORK["knobs"].items()}


def embedding_trainer(kernel, mode, spec=None, embedding="dense"):
    """Return a trainer of three rows of one number; its loss is the sum of the rows that the tokens select."""

    def build(sizes, variables):
        table = variables.new("table", *sizes["shape"])
        return lambda tokens, training: {"rows": tf.gather(table, tokens)}

    parts = SimpleNamespace(INPUTS=("tokens",), build=build, loss=lambda outputs, batch: tf.reduce_sum(outputs["rows"]))
    tensors = Network((Parameter("table", (3, 1), "embedding", "constant:1"),), (), 0)
    weights, spec = {"table": np.ones((3, 1), "f4")}, spec or Optimizer("adam", 0.1, epsilon=1e-8)
    wrap = (lambda f: f) if mode == "eager" else tf.function
    return trainer.Trainer(
        wrap,
        layers.Variables(tf.float32),
        parts,
        {"shape": (3, 1)},
        tensors,
        weights,
        spec,
        kernel,
        embedding=embedding,
    )


def adapter_of(mode, **knobs):
    """Return an adapter; `knobs` replaces the defaults."""
    return Adapter(Settings(mode, knobs=KNOBS | knobs))


def classifier(adapter, spec):
    """Return a trainer of a dense layer with the mean cross-entropy, and the 20 batches of five samples that are its feed."""

    def build(sizes, variables):
        layer = layers.Dense(variables, "head", sizes["features"], sizes["classes"])
        return lambda values, training: {"logits": layer(values)}

    def loss(outputs, batch):
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(batch["label"], outputs["logits"]))

    parts = SimpleNamespace(INPUTS=("values",), build=build, loss=loss)
    tensors = Network(
        (Parameter("head.weight", (3, 4), "dense", "normal"), Parameter("head.bias", (3,), "bias", "zero")), (), 0
    )
    draw = np.random.default_rng(1)
    weights = {"head.weight": draw.normal(size=(3, 4)).astype("f4"), "head.bias": np.zeros(3, "f4")}
    values, labels = draw.normal(size=(100, 4)).astype("f4"), draw.integers(0, 3, 100, np.int32)
    split = batches.Split({"values": values, "label": labels}, None)
    source = batches.Source(split, np.arange(100, dtype=np.int32).reshape(20, 5))
    built = adapter.trainer(parts, {"features": 4, "classes": 3}, tensors, weights, spec)
    return built, source

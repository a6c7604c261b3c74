"""Find out which formulations TensorFlow really traces, from the operations of small graphs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from steelyard_worker.case import Optimizer
from steelyard_worker.dropout import OFF, ON
from steelyard_worker.frameworks.tensorflow import optimizers
from steelyard_worker.frameworks.tensorflow.layers import Convolution, Dropout
from steelyard_worker.frameworks.tensorflow.recurrent import Lstm

if TYPE_CHECKING:
    from collections.abc import Callable

    from steelyard_worker.frameworks.tensorflow.layers import Variables


def convolution(new: Callable[[], Variables], requested: str) -> str:
    """Return the value of the knob `convolution` that small graphs show; `new` makes the variables of a network.

    Images of 8 and of 2 pixels a side: with XLA, `auto` computes the second, on which XLA is slow, in another way.
    """
    library = []
    for size in (8, 2):
        variables = new()
        layer = Convolution(variables, "c", 2, 2, 3, 1, 1)
        library.append("Conv2D" in _operations(layer, (1, size, size, 2), variables.dtype))
    automatic = [True, new().convolution != "xla"]
    shown = {"library": [True, True], "matmul": [False, False], "auto": automatic}
    return next((name for name in (requested, *shown) if shown.get(name) == library), "unknown")


def recurrence(new: Callable[[], Variables], requested: str) -> str:
    """Return the value of the knob `recurrence` that small graphs show.

    Loops of two and of four units per sample: `auto` computes them in different ways.
    """
    few, many = (_formulation(replace(new(), lstm="loop"), units) for units in (2, 4))
    if requested == "auto" and (few, many) == (new().recurrence.small, "deferred"):
        return "auto"
    return few if few == many else "unknown"


def lstm(variables: Variables) -> str:
    """Return the value of the knob `lstm` that the graph of a small layer shows: Keras names the operations of its cells."""
    layer = Lstm(variables, "l", 1, 1)
    specification = tf.TensorSpec((2, 1, 1), variables.dtype)
    graph = tf.function(lambda x: layer.every(x, backward=False), autograph=False).get_concrete_function(specification)
    shown = str(graph.graph.as_graph_def())
    return "fused" if "CudnnRNN" in shown else "cell" if "lstm_cell" in shown else "loop"


def _formulation(variables: Variables, units: int) -> str:
    """Return how a layer runs, by what its loop stores and multiplies at every step."""
    lstm = Lstm(variables, "l", units, units)
    operations = _operations(lambda x: lstm.every(x, backward=False), (3, 1, units), variables.dtype, inside_loops=True)
    # "deferred" stores not only the states but also what the matrices are multiplied with.
    if operations.count("TensorListSetItem") > 1:
        return "deferred"
    return {2: "loop", 1: "hoisted"}.get(operations.count("MatMul"), "unknown")


def embedding(new: Callable[[], Variables], requested: str) -> str:
    """Return the value of the knob `embedding` that the graph of a rule for a table shows."""
    variables = new()
    variables.new("p", 1, 1)
    tables = ["p"] if requested == "sparse" else []
    rule = optimizers.update_rule(Optimizer("sgd", 0.1), variables.named, "fused", sparse=tables)

    def update(values: tf.Tensor) -> None:
        slices = tf.IndexedSlices(values, tf.constant([0]), tf.constant([1, 1]))
        rule([slices if tables else tf.convert_to_tensor(slices)])

    return "sparse" if "ResourceScatterSub" in _operations(update, (1, 1), variables.dtype) else "dense"


def recomputation(variables: Variables) -> str:
    """Count how often a block runs until its input is differentiated."""
    passes = []

    def part(x: tf.Tensor) -> tf.Tensor:
        passes.append(x)
        return tf.sin(x)

    x = tf.constant(1.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = variables.block(part)(x)
    tape.gradient(y, x)
    return "blocks" if len(passes) == 2 else "none"


def dropout(variables: Variables) -> str:
    """Return the value of the knob `dropout` that the graph of a layer in training shows."""
    layer = Dropout(variables, 0.5)
    random = "RandomUniform" in _operations(lambda x: layer(x, training=True), (2,), variables.dtype)
    return ON if random else OFF


def update(new: Callable[[], Variables], requested: str, kernel: str) -> str:
    """Return the value of the knob `update` that the graph of a native rule shows; `kernel` is what the value means here."""
    variables = new()
    variables.new("p", 1)
    rule = optimizers.update_rule(Optimizer("sgd", 0.1, momentum=0.9), variables.named, kernel)
    operations = _operations(lambda gradient: rule([gradient]), (1,), variables.dtype)
    found = "fused" if "ResourceApplyMomentum" in operations else "keras"
    return requested if found == kernel else found


def _operations(
    function: Callable[[tf.Tensor], Any], shape: tuple[int, ...], dtype: tf.DType, *, inside_loops: bool = False
) -> list[str]:
    """Return the type of every operation that a function traces, or of those inside its loops only."""
    traced = tf.function(function, autograph=False).get_concrete_function(tf.TensorSpec(shape, dtype))
    graph = traced.graph.as_graph_def()
    if not inside_loops:
        return [node.op for node in graph.node]
    return [node.op for body in graph.library.function for node in body.node_def]

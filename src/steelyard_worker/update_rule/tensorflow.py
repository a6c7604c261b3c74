"""Tensors with given gradients in TensorFlow; the kernel is (in, out)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorflow as tf

if TYPE_CHECKING:
    from steelyard_worker.frameworks.tensorflow.layers import Variables


class Network:
    """Gradients of all tensors, (1, ...) each -> the loss (1,)."""

    def __init__(self, variables: Variables) -> None:
        self.weight = variables.new("kernel.weight", 8, 6)
        self.bias = variables.new("kernel.bias", 12)
        self.gamma = variables.new("norm.gamma", 10)
        self.beta = variables.new("norm.beta", 10)
        self.table = variables.new("table.weight", 9, 4)
        self.fixed = variables.new("fixed.weight", 5)

    def __call__(
        self,
        weight: tf.Tensor,
        bias: tf.Tensor,
        gamma: tf.Tensor,
        beta: tf.Tensor,
        rows: tf.Tensor,
        table: tf.Tensor,
        fixed: tf.Tensor,
        training: bool,
    ) -> dict[str, tf.Tensor]:
        del training  # it is the same in training and inference
        products = (
            tf.transpose(self.weight) * weight,
            self.bias * bias,
            self.gamma * gamma,
            self.beta * beta,
            tf.gather(self.table, rows) * table,
            self.fixed * fixed,
        )
        return {"total": tf.add_n([tf.reduce_sum(each) for each in products])[None]}


# Inputs of the network, in order; `loss` gets all inputs.
INPUTS = ("weight", "bias", "gamma", "beta", "rows", "table", "fixed")


def build(sizes: dict[str, Any], variables: Variables) -> Network:
    """Return the network; it creates its variables in `variables`."""
    del sizes
    return Network(variables)


def loss(outputs: dict[str, tf.Tensor], batch: dict[str, tf.Tensor]) -> tf.Tensor:
    """The sum."""
    del batch
    return tf.reduce_mean(outputs["total"])

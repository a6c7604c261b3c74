"""GELU, exact and in its tanh form.

`tf.nn.gelu` rounds its constants to float32 before it casts them, so in float64 it is wrong by 2e-8.
"""

from __future__ import annotations

import math

import tensorflow as tf


def gelu(x: tf.Tensor, tanh: bool) -> tf.Tensor:
    """GELU (Hendrycks & Gimpel 2016): x times the normal distribution function of x, or its tanh approximation (P-30)."""
    if tanh:
        return 0.5 * x * (1 + tf.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))
    return 0.5 * x * (1 + tf.math.erf(math.sqrt(0.5) * x))

"""How precisely TensorFlow multiplies float32 matrices now, and on how many threads."""

from __future__ import annotations

import sys
from typing import Any

import tensorflow as tf
from tensorflow.python.framework.config import is_op_determinism_enabled

# What Keras has before it is imported. Most runs never import it.
PLAIN = {"keras_policy": "float32", "keras_dtype": "float32"}


def now() -> dict[str, Any]:
    """Return every setting that decides the precision of products, how functions run, and the threads."""
    rewriting = tf.config.optimizer.get_experimental_options()
    return {
        "tf32": tf.config.experimental.tensor_float_32_execution_enabled(),
        "mixed_precision": sorted(name for name, on in rewriting.items() if on and "mixed_precision" in name),
        **_of_keras(),
        "functions_run_eagerly": tf.config.functions_run_eagerly(),
        "deterministic": is_op_determinism_enabled(),
        "threads": tf.config.threading.get_intra_op_parallelism_threads(),
        "interop_threads": tf.config.threading.get_inter_op_parallelism_threads(),
    }


def _of_keras() -> dict[str, str]:
    """Return the types that Keras's layers compute in; Keras is not imported for this."""
    keras = sys.modules.get("keras")
    if not hasattr(keras, "config"):
        return PLAIN
    return {"keras_policy": keras.config.dtype_policy().name, "keras_dtype": keras.config.floatx()}

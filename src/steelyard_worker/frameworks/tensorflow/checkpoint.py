"""Read a checkpoint of `tf.train.Checkpoint(**variables)`, whose variables have the canonical names.

Keras keeps weights by the layers of a model, and an implementation has none: it is made of variables.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from steelyard_worker import checkpoints
from steelyard_worker.frameworks.tensorflow import layouts

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

    from steelyard_worker.frameworks.base import Array
    from steelyard_worker.frameworks.tensorflow.layers import Variables
    from steelyard_worker.network import Network

INDEX = ".index"
# What TensorFlow adds to the path of a variable, and what `Checkpoint.save` counts.
VALUE, COUNTER = "/.ATTRIBUTES/VARIABLE_VALUE", "save_counter"


def read(
    variables: Variables, implementation: ModuleType, sizes: dict[str, Any], network: Network, path: Path
) -> dict[str, Array]:
    """Load a checkpoint, named by its index, into the variables of an implementation; returns them, canonical. Raises Refusal."""
    reader = tf.train.load_checkpoint(str(path).removesuffix(INDEX))
    implementation.build(sizes, variables)
    own, held = variables.named, reader.get_variable_to_shape_map()
    keys = _keys(held, set(own))
    shapes = {name: tuple(held[key]) for name, key in keys.items()}
    checkpoints.check(path, {name: tuple(each.shape) for name, each in own.items()}, shapes, "TensorFlow")
    kinds = {parameter.name: parameter.kind for parameter in network.parameters}
    found = {}
    for name, variable in own.items():
        array = reader.get_tensor(keys[name])
        variable.assign(tf.cast(array, variable.dtype))
        checkpoints.check_value(path, name, variable.numpy(), array)
        found[name] = layouts.canonical(kinds[name], variable.numpy())
    return found


def _keys(held: dict[str, Any], own: set[str]) -> dict[str, str]:
    """Return {name: key} of the variables that lie beside those of the implementation; an optimizer's lie elsewhere."""
    paths = {key: key.removesuffix(VALUE).split("/") for key in held if key.endswith(VALUE)}
    beside = Counter("/".join(path[:-1]) for path in paths.values() if _plain(path[-1]) in own)
    parent = beside.most_common(1)[0][0] if beside else ""
    names = {_plain(path[-1]): key for key, path in paths.items() if "/".join(path[:-1]) == parent}
    return {name: key for name, key in names.items() if name != COUNTER}


def _plain(escaped: str) -> str:
    """Undo how TensorFlow writes a name as a part of a path."""
    return escaped.replace(".S", "/").replace("..", ".")

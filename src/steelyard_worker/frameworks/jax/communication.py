"""The all-reduce that XLA's partitioner puts into the program of a training over several processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from steelyard_worker.frameworks.jax.sharding import AXIS

if TYPE_CHECKING:
    from steelyard_worker.frameworks.base import Array


class Psum:
    """`lax.psum` of a buffer of every device, compiled as one program over all of them."""

    name = "jax.lax.psum"
    mean = False

    def __init__(self, array: Array, devices: list[jax.Device]) -> None:
        mesh = Mesh(np.array(devices), (AXIS,))
        each = NamedSharding(mesh, PartitionSpec(AXIS))
        self._buffer = jax.make_array_from_process_local_data(each, array[None])
        summed = jax.shard_map(
            lambda own: lax.psum(own, AXIS), mesh=mesh, in_specs=each.spec, out_specs=PartitionSpec()
        )
        self._program = jax.jit(summed).lower(self._buffer).compile()

    def __call__(self) -> None:
        """Run the program, and wait for its result."""
        self._result = self._program(self._buffer)
        self._result.block_until_ready()

    def result(self) -> Array:
        """Copy the result to the host."""
        return np.asarray(self._result.addressable_data(0))

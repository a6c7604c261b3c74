"""Processes that compute for rank 0: `tf.distribute.Server` in every other rank and role."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from steelyard_worker.batches import Batch
    from steelyard_worker.frameworks.base import Array
    from steelyard_worker.ranks import Ranks

WORKER, SERVER = "worker", "ps"


def of_workers(ranks: Ranks) -> tf.train.ClusterSpec:
    """Return the addresses of all workers, one for each rank."""
    places = zip(ranks.addresses, ranks.ports[1:], strict=False)
    return tf.train.ClusterSpec({WORKER: [f"{address}:{port}" for address, port in places]})


def of_servers(ranks: Ranks) -> tf.train.ClusterSpec:
    """Return the addresses of all workers and of the parameter server."""
    server = f"{ranks.host}:{ranks.ports[1 + ranks.parts]}"
    return tf.train.ClusterSpec(of_workers(ranks).as_dict() | {SERVER: [server]})


def waiting_threads(ranks: Ranks, threads: int) -> int:
    """Return how many operations a process may run at a time.

    With fewer than one for each worker, operations that wait for other processes occupy them all, and the cluster hangs.
    """
    return ranks.parts + 1 + max(1, threads)


def start(ranks: Ranks, members: tf.train.ClusterSpec, job: str, number: int, threads: int) -> tf.distribute.Server:
    """Start a member of the cluster in this process; its threads wait in C++."""
    config = tf.compat.v1.ConfigProto(
        intra_op_parallelism_threads=threads, inter_op_parallelism_threads=waiting_threads(ranks, threads)
    )
    return tf.distribute.Server(members, job_name=job, task_index=number, protocol="grpc", config=config, start=True)


class Follower:
    """The trainer of a rank that only works for the coordinator: it has nothing to do or to return by itself."""

    def put(self, batch: Batch) -> None:
        """Ignore the batch: the coordinator sends the shares."""

    def step(self, batch: Any) -> None:
        """Do nothing: the worker of this process computes when the coordinator tells it to."""

    def restart(self, weights: Mapping[str, Array]) -> None:
        """Do nothing: the coordinator has the variables."""
        del weights

    def synchronise(self) -> None:
        """Wait for nothing: the coordinator waits for the workers."""

    def losses(self, handles: list[Any]) -> Array:
        """Return no losses."""
        del handles
        return np.zeros(0, np.float32)

    def staleness(self) -> Array:
        """Return nothing: the coordinator knows the updates of all workers."""
        return np.zeros(0, np.int64)

    def outputs(self, batch: Any) -> dict[str, Array]:
        """Return no outputs."""
        del batch
        return {}

    def gradients(self, batch: Any) -> tuple[dict[str, Array], float, dict[str, Array]]:
        """Return no gradients."""
        del batch
        return {}, float("nan"), {}

    def state(self) -> dict[str, Array]:
        """Return no tensors."""
        return {}

    def inner(self, batch: Any, names: Collection[str]) -> dict[str, Array]:
        """Return no tensors."""
        del batch, names
        return {}

"""Which devices of JAX a strategy uses, and the trainer that spreads the computation over them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import jax

from steelyard_worker.frameworks.jax.trainer import Trainer
from steelyard_worker.protocol import Refusal

if TYPE_CHECKING:
    from steelyard_worker.case import Settings
    from steelyard_worker.ranks import Ranks

# Limits of waiting, seconds: for the other ranks to start, for a rank that does not answer, and for the others at the end.
START_S, SILENCE_S, END_S = 300, 100, 60


def devices_here(ranks: Ranks) -> int:
    """Return the number of devices that this process drives."""
    return ranks.parts if ranks.spread and not ranks.spread.several_processes else 1


def prepare(settings: Settings, ranks: Ranks) -> None:
    """Make as many devices as the strategy needs, before JAX starts, and join the other ranks."""
    if ranks.spread is None or ranks.spread.kind == "alone":
        return
    if ranks.count == 1:
        if settings.device == "cpu":
            jax.config.update("jax_num_cpu_devices", ranks.parts)
        return
    if settings.device == "cpu":
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
    # This service answers SIGTERM in place of the worker, which is to end then.
    jax.config.update("jax_enable_preemption_service", False)
    first = f"{ranks.host}:{ranks.ports[1]}"
    jax.distributed.initialize(
        first,
        ranks.count,
        ranks.rank,
        coordinator_bind_address=first,
        local_device_ids=None if settings.device == "cpu" else [ranks.rank],
        initialization_timeout=START_S,
        heartbeat_timeout_seconds=SILENCE_S,
        shutdown_timeout_seconds=END_S,
    )


def devices(ranks: Ranks) -> list[jax.Device]:
    """Return the devices of all ranks; Refusal: there are too few."""
    found = jax.devices()[: ranks.parts]
    if len(found) < ranks.parts:
        raise Refusal("unsupported", f"{ranks.strategy} needs {ranks.parts} devices, and JAX has {len(found)}.")
    return found


def reported(ranks: Ranks) -> str:
    """Return the strategy with the number of devices that JAX reports; ranks that train alone see only their own."""
    count = ranks.parts if ranks.name == "alone" else len(devices(ranks))
    return f"{ranks.name}:{count}"


def peak_bytes(ranks: Ranks) -> int | None:
    """Return the sum of the peaks of this process's devices, by their allocators; JAX has none for CPU."""
    found = [device.memory_stats() or {} for device in jax.local_devices()[: devices_here(ranks)]]
    peaks = [each["peak_bytes_in_use"] for each in found if "peak_bytes_in_use" in each]
    return sum(peaks) if peaks else None


def threads_of_each(pool: int, ranks: Ranks) -> int:
    """Return the threads of each device that compute: XLA has one pool for all devices of a process."""
    return (pool - _waiting(ranks)) // devices_here(ranks)


def set_threads(threads: int, ranks: Ranks) -> None:
    """Tell XLA how many threads its pool gets."""
    os.environ["PJRT_NPROC"] = str(threads * devices_here(ranks) + _waiting(ranks))


def _waiting(ranks: Ranks) -> int:
    """Return the threads of the pool that may wait for other devices of the process without being missed.

    An exchange blocks a thread of the pool on each device. With as many threads as compute, the last device to arrive finds none,
    and the process ends after 40 seconds. Its cores are fixed, so more threads do not compute on more of them.
    """
    exchanges = ranks.spread is not None and ranks.spread.kind in ("devices", "local")
    return devices_here(ranks) if exchanges else 0


def trainer_of(ranks: Ranks, micro_batches: int) -> type[Trainer]:
    """Return the trainer that computes with the devices of a strategy; a pipeline divides batches into micro-batches."""
    kind = ranks.spread.kind if ranks.spread else "alone"
    if kind == "alone":
        return Trainer
    if kind == "local":
        from steelyard_worker.frameworks.jax import local

        return local.trainer(devices(ranks))
    if kind in ("model", "pipeline"):
        from steelyard_worker.frameworks.jax import staged

        return staged.trainer(devices(ranks), micro_batches if kind == "pipeline" else 1)
    from steelyard_worker.frameworks.jax import sharding

    return sharding.trainer(devices(ranks), ranks.count, by_share=ranks.spread.statistics == "share")

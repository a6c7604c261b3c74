"""The resources of a new process: logical processors and memory of this machine, or of the machine that a plan is for."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True)
class Resources:
    """The resources of a machine. `accelerators`: the device's name in frameworks -> names of its accelerators.

    `nodes`: how many such machines there are.
    """

    cores: int
    memory_bytes: int
    accelerators: dict[str, tuple[str, ...]]
    nodes: int = 1


_other: ContextVar[Resources | None] = ContextVar("other", default=None)


@contextmanager
def of_another(machine: Resources) -> Iterator[None]:
    """Report the resources of another machine during the block: a plan is made here and carried out there."""
    token = _other.set(machine)
    try:
        yield
    finally:
        _other.reset(token)


def other() -> Resources | None:
    """Return the machine whose resources are reported; None: this one."""
    return _other.get()


def usable_nodes() -> int:
    """Return the number of equal machines that measure; 0 where there is no cluster."""
    machine = other()
    return machine.nodes if machine else 0


def usable_cores() -> int:
    """Return the number of logical processors that this process may run on."""
    if machine := other():
        return machine.cores
    # Only Linux restricts a process to some processors (affinity); macOS does not have the function.
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def available_memory_bytes() -> int:
    """Return the memory in bytes that a new process may take without swapping."""
    if machine := other():
        return machine.memory_bytes
    import psutil  # imported here, as most callers need only `usable_cores`

    return int(psutil.virtual_memory().available)
